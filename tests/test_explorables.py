"""Explorables in headless Chromium: in several states, the numbers shown are those of the package.

Each explorable stands on a small page of its own with the scripts of ``book/_static/explore``.
"""

import functools
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from lifelines import CoxPHFitter, KaplanMeierFitter
from pages import CHROMIUM

import drocox
from drocox import explorables
from drocox.bookstyle import SIX
from drocox.explorables import ball, results, weights
from drocox.paper import protocol, tables

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import explore  # noqa: E402

STATIC = ROOT / "book" / "_static"
NAMES = list(SIX.index)
TIME = SIX["time"].to_numpy()
EVENT = SIX["event"].to_numpy()
X = SIX["x"].to_numpy()
LOSSES = np.log([10 / 4, 1, 4 / 1, 3 / 2, 1, 1])  # by hand: hazards 4, 2, 1, 2, 1/2, 1/2
DEATHS = np.flatnonzero(EVENT)
TITLES = {"t2": "FLC (age)", "t3": "SUPPORT (gender)", "t4": "SEER (race)"}
RADIUS = {
    "sharp": lambda a: 1 / a - 1,
    "definition": lambda a: (1 / a - 1) ** 2,
    "paper": lambda a: 2 * (1 / a - 1) ** 2,
}

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no page was looked at")


class Tab:
    """A page with one explorable."""

    def __init__(self, page):
        self.page = page

    def value(self, name):
        """The number that a slider is at."""
        return float(self.page.locator(f'[data-in="{name}"]').input_value())

    def press(self, name, key, times=1):
        """Press a key while an input has the focus."""
        self.page.locator(f'[data-in="{name}"]').focus()
        for _ in range(times):
            self.page.keyboard.press(key)

    def do(self, name):
        """Press a button by the keyboard."""
        self.page.locator(f'[data-do="{name}"]').focus()
        self.page.keyboard.press("Enter")

    def middle(self, part):
        """Where an element that can be dragged is, in pixels of the page."""
        box = self.page.locator(f'[data-drag="{part}"]').bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(self, part, right=0.0, down=0.0):
        """Drag with the mouse."""
        x, y = self.middle(part)
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + right, y + down, steps=3)
        self.page.mouse.up()

    def drag_by_finger(self, part, right=0.0, down=0.0):
        """Put a finger on an element of the drawing, move it by some pixels and lift it."""
        x, y = self.middle(part)
        screen = self.page.context.new_cdp_session(self.page)
        for kind, share in (("Start", 0), ("Move", 0.5), ("Move", 1), ("End", None)):
            places = [] if share is None else [{"x": x + share * right, "y": y + share * down}]
            event = {"type": f"touch{kind}", "touchPoints": places}
            screen.send("Input.dispatchTouchEvent", event)
            self.page.evaluate("() => new Promise(requestAnimationFrame)")  # moves wait for a frame

    def texts(self):
        """The words in the pictures."""
        return self.page.locator(".explore-pictures svg text").all_text_contents()

    def shown(self, state=None):
        """What the read-out says by name, after some inputs were set by script."""
        return self.page.evaluate(
            """(state) => {
                Object.entries(state).forEach(([name, value]) => {
                    const input = document.querySelector(`[data-in="${name}"]`);
                    if (input.type === "checkbox") input.checked = value;
                    else input.value = value;
                    input.dispatchEvent(new Event("input", {bubbles: true}));
                });
                return Object.fromEntries([...document.querySelectorAll("[data-out]")].map(
                    (place) => [place.dataset.out, place.textContent]));
            }""",
            state or {},
        )


@pytest.fixture(scope="module")
def tabs(chromium, tmp_path_factory):
    """Tabs with scripts and without, as opening one takes long, and what goes wrong in them."""
    trouble = []
    expected = tmp_path_factory.getbasetemp().as_uri(), STATIC.as_uri(), "blob:"

    def note(request):
        if not request.url.startswith(expected):
            trouble.append(request.url)

    opened = {}
    for javascript in (True, False):
        context = chromium.new_context(java_script_enabled=javascript, has_touch=True)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", note)
        page.on("requestfailed", lambda request: trouble.append(request.url))
        opened[javascript] = page
    yield opened, trouble
    for page in opened.values():
        page.context.close()


@pytest.fixture
def show(tabs, tmp_path):
    """A function that opens an explorable in a page; at the end nothing may have gone wrong."""
    opened, trouble = tabs
    trouble.clear()

    def open_page(explorable, *, javascript=True, width=1280, text="", address=""):
        file = tmp_path / f"{javascript}.html"
        file.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>x</title>'
            f"{explore.tags(explorable.markup, STATIC.as_uri())}{explorable.markup}{text}</html>",
            encoding="utf8",
        )
        page = opened[javascript]
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri() + address)
        return Tab(page)

    yield open_page
    for page in opened.values():
        page.goto("about:blank")  # nothing of this test goes on in the next
    assert trouble == []


def drawn():
    """A figure, as a chapter draws one."""
    figure, axes = plt.subplots(figsize=(5, 3))
    axes.plot([0, 1], [1, 0], "o")
    axes.set(xlabel="time", ylabel="loss")
    return figure


@functools.cache
def invented_tables():
    """A table for each exhibit and view, with one mean far from all others."""
    rng = np.random.default_rng(2)
    made = {}
    for exhibit in TITLES:
        for view in results.VIEWS[1:]:
            rows = [
                {"model": settings.model, "method": method, "metric": metric}
                for method, settings in protocol.METHODS.items()
                for metric in results.METRICS
            ]
            table = pd.DataFrame(rows)
            for column in ("mean", "paper_mean"):
                table[column] = rng.normal(0.5, 2, len(table))
            for column in ("std", "paper_std"):
                table[column] = rng.uniform(0, 1, len(table))
            table.loc[3, "mean"] = 1000.0
            made[exhibit, view] = table
    return made


@functools.cache
def many():
    """Losses of 300 invented patients, ever less flat; years, deaths, who is old."""
    rng = np.random.default_rng(1)
    age = rng.uniform(50, 90, 300)
    lives = rng.exponential(40 * np.exp(-0.09 * (age - 65)))
    time = np.minimum(lives, rng.uniform(3, 14, 300))
    event = lives <= time
    scale = np.linspace(0.02, 1, len(weights.ALPHAS))
    scores = torch.tensor(np.outer(scale, 0.15 * (age - 65)))
    return drocox.cox_losses(scores, time, event).numpy(), time, event, age > 65


EXPLORABLES = {
    "ball": lambda: explorables.ball_slider("ball", LOSSES[[0, 2, 3]], "ACD", RADIUS, drawn()),
    "cox-loss": lambda: explorables.who_is_next(TIME, EVENT, X, NAMES, drawn()),
    "dual": lambda: explorables.water_level(explorables.six_losses(), NAMES, drawn()),
    "kaplan-meier": lambda: explorables.kaplan_meier(TIME, EVENT, NAMES, drawn()),
    "results": lambda: explorables.results_browser(invented_tables(), TITLES, drawn()),
    "weights": lambda: explorables.who_gets_the_weight(*many(), drawn()),
}


@pytest.mark.parametrize("name", sorted(EXPLORABLES))
def test_a_plain_figure_shows_without_scripts(show, name):
    others = plt.get_fignums()
    explorable = EXPLORABLES[name]()
    tab = show(explorable, javascript=False, width=390)
    figure = tab.page.locator("figure.explore")
    assert figure.locator("svg").first.is_visible()
    assert figure.locator("input, select, button").count() == 0
    assert len([text for text in tab.texts() if text.strip()]) > 5
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert repr(explorable).startswith("<interactive figure: ")
    assert "<script src" not in explorable.markup
    assert plt.get_fignums() == others  # else a notebook would show the figure twice
    assert explorable.markup == EXPLORABLES[name]().markup


@pytest.mark.parametrize("name", sorted(EXPLORABLES))
@pytest.mark.parametrize("width", [360, 1280])
def test_every_control_is_named_and_fits_the_screen(show, name, width):
    page = show(EXPLORABLES[name](), width=width).page
    if page.locator("input[type=radio]").count():  # a guess comes first
        page.locator("input[type=radio]").first.check()
    assert page.locator("input, select").count() > 0
    for control in page.locator("input, select, button").all():
        assert control.is_visible()
        named = control.evaluate(
            "e => e.labels && e.labels.length ? e.labels[0].innerText : e.innerText"
        )
        assert named.strip(), control.evaluate("e => e.outerHTML")
        assert control.evaluate("e => e.getBoundingClientRect().height") >= 18
    for slider in page.locator("input[type=range]").all():
        assert slider.get_attribute("aria-valuetext")
    assert page.locator("[aria-live=polite]").count() == 1
    for labelled in ("figure.explore", ".explore-pictures"):
        assert len(page.locator(labelled).get_attribute("aria-label")) > 10
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


@pytest.fixture
def water(show):
    return show(EXPLORABLES["dual"]())


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5, 0.8])
def test_the_water_level_shows_the_packages_risk_and_weights(water, alpha):
    c = drocox.dual_constant(alpha, rule="sharp")
    best = drocox.optimal_eta(torch.tensor(LOSSES), c).item()
    for eta in (-0.8, 0.1, 0.41, 0.92):
        shown = water.shown({"alpha": alpha, "eta": eta})
        excess = np.maximum(LOSSES - eta, 0)
        q = excess / excess.sum()
        assert shown["g"] == f"{c * np.sqrt((excess**2).mean()) + eta:.3f}"
        assert shown["mean"] == f"{q @ LOSSES:.3f}"
        assert shown["used"] == f"{100 * 6 * (q**2).sum() / c**2:.1f}\u00a0%"
        assert ("raise" in shown["verdict"]) == (eta < best)
        texts = water.texts()
        weights = texts[texts.index("patient, weight in %") + 1 :][:6]
        assert weights == [f"{100 * share:.0f}" for share in sorted(q, reverse=True)]


def test_eta_star_is_reached_exactly_by_the_keyboard(water):
    water.press("alpha", "Home")
    for step in range(15):
        alpha = 0.1 + 0.05 * step
        assert water.value("alpha") == pytest.approx(alpha)
        water.do("best")
        shown = water.shown()
        assert "this is η*" in shown["verdict"]
        risk = drocox.dro_risk(torch.tensor(LOSSES), alpha, rule="sharp").item()
        assert shown["g"] == f"{risk:.3f}"
        water.press("alpha", "ArrowRight")


def test_the_water_level_follows_mouse_and_finger(water):
    water.press("eta", "ArrowRight", 3)
    assert water.value("eta") == pytest.approx(0.13)
    before = water.middle("eta")[1]
    water.drag("eta", down=-40)
    assert water.middle("eta")[1] == pytest.approx(before - 40, abs=2)
    assert 0.25 < water.value("eta") < 0.6
    water.drag_by_finger("eta", down=20)
    assert water.middle("eta")[1] == pytest.approx(before - 20, abs=3)
    assert water.shown()["eta"] == f"{water.value('eta'):.2f}"


SENTENCE = (
    '<p>At <a href="?alpha=0.5,best#explore-dual">one half</a> all stand out of the water.</p>'
)


@pytest.mark.parametrize("far", [False, True])
def test_a_link_in_a_sentence_sets_the_figure_by_mouse_and_keyboard(show, far):
    """Where the figure is out of sight the page goes there, and Back returns to the sentence."""
    text = f'<div style="height: {3000 if far else 0}px"></div>{SENTENCE}'
    tab = show(EXPLORABLES["dual"](), text=text)
    c = drocox.dual_constant(0.5, rule="sharp")
    best = drocox.optimal_eta(torch.tensor(LOSSES), c).item()
    for step in (tab.page.get_by_role("link").click, lambda: tab.page.keyboard.press("Enter")):
        tab.page.get_by_role("link").focus()
        step()
        shown = tab.shown()
        assert shown["alpha"] == "0.50"
        assert shown["eta"] == f"{best:.2f}".replace("-", "\N{MINUS SIGN}")
        assert tab.page.evaluate("scrollY") < 1000
        tab.press("alpha", "End")
        if far:
            tab.page.go_back()
            tab.page.wait_for_function("scrollY > 1000")


def test_an_address_sets_the_figure_and_without_scripts_leads_to_it(show):
    address = "?alpha=0.5,best#explore-dual"
    assert show(EXPLORABLES["dual"](), address=address).shown()["alpha"] == "0.50"
    plain = show(EXPLORABLES["dual"](), javascript=False, text=SENTENCE)
    plain.page.get_by_role("link").click()
    assert plain.page.url.endswith(address)
    assert plain.page.locator(":target").get_attribute("id") == "explore-dual"


@pytest.mark.parametrize(
    "name, query, wanted",
    [
        ("ball", "alpha=0.55", {"alpha": "0.55"}),
        ("kaplan-meier", "died0=0,time2=3", {"time2": "3"}),
        ("weights", "alpha=0.3,trained=1", {"alpha": "0.30"}),
    ],
)
def test_a_link_names_values_as_the_page_shows_them(show, name, query, wanted):
    figure = EXPLORABLES[name]()
    anchor = re.search(r'id="(explore-[\w-]+)"', figure.markup)[1]
    shown = show(figure, address=f"?{query}#{anchor}").shown()
    assert {key: shown[key] for key in wanted} == wanted


@pytest.fixture
def curve(show):
    return show(EXPLORABLES["kaplan-meier"]())


def at_nine(shown):
    """The estimate that the read-out gives."""
    return float(re.search(r"(?<== )[\d.]+\d|^1(?=,)", shown["answer"])[0])


def test_the_kaplan_meier_estimate_is_that_of_lifelines(curve):
    rng = np.random.default_rng(0)
    cases = [(rng.integers(1, 15, 6).astype(float), rng.random(6) < 0.6) for _ in range(20)]
    cases += [(TIME, EVENT), (TIME, np.zeros(6, bool)), (np.full(6, 4.0), EVENT)]
    for time, event in cases:
        inputs = {f"time{i}": t for i, t in enumerate(time)}
        shown = curve.shown(inputs | {f"died{i}": bool(died) for i, died in enumerate(event)})
        expected = KaplanMeierFitter().fit(time, event).survival_function_at_times(9.0).item()
        assert at_nine(shown) == pytest.approx(expected, abs=6e-4)


def test_the_kaplan_meier_curve_by_keys_mouse_and_finger(curve):
    first = curve.shown()["answer"]
    assert first == "5/6 · 3/4 · 2/3 = 0.417."
    curve.press("time0", "End")
    curve.press("died0", "Space")
    assert curve.shown()["answer"] == "4/5 · 3/4 = 0.600."
    curve.do("reset")
    assert curve.shown()["answer"] == first
    month = (curve.middle("5")[0] - curve.middle("0")[0]) / (TIME[5] - TIME[0])
    curve.drag("2", right=2 * month)
    assert curve.value("time2") == TIME[2] + 2
    curve.drag_by_finger("2", right=3 * month)
    assert curve.value("time2") == TIME[2] + 5
    curve.page.locator('[data-in="died2"]').tap()
    assert curve.shown()["answer"] == "5/6 · 3/4 = 0.625."


@pytest.fixture
def next_one(show):
    return show(EXPLORABLES["cox-loss"]())


def losses_at(theta):
    """Cox losses of the deaths, by their definition."""
    losses = []
    for i in DEATHS:
        at_risk = TIME >= TIME[i]
        losses.append(np.log(np.exp(theta * X[at_risk]).sum()) - theta * X[i])
    return losses


def test_the_cox_losses_are_those_of_their_definition(next_one):
    for theta in (-1, -0.28, 0, 0.69, 1.4, 2):
        shown = next_one.shown({"theta": theta})
        told = [float(shown[f"loss{i}"]) for i in DEATHS]
        assert told == pytest.approx(losses_at(theta), abs=6e-4)
        assert float(shown["sum"]) == pytest.approx(sum(losses_at(theta)), abs=6e-4)
        titles = [text for text in next_one.texts() if text.startswith("month ")]
        assert titles[0] == f"month 2, loss {losses_at(theta)[0]:.2f}"


def test_the_smallest_sum_is_that_of_lifelines(next_one):
    fitted = CoxPHFitter().fit(SIX[["time", "event", "x"]], "time", "event")
    next_one.do("best")
    shown = next_one.shown()
    assert shown["sum"] == f"{-fitted.log_likelihood_:.3f}"
    assert shown["theta"] == f"{fitted.params_['x']:.2f}"
    next_one.do("zero")
    assert next_one.shown()["theta"] == "0.00"
    next_one.press("theta", "ArrowLeft", 4)
    assert next_one.shown()["theta"] == "\N{MINUS SIGN}0.04"
    next_one.drag("theta", right=30)
    assert next_one.value("theta") > 0.1


@pytest.fixture
def adversary(show):
    return show(EXPLORABLES["weights"]())


def test_the_weights_are_those_of_unrounded_losses(adversary):
    losses, time, event, old = many()
    early = event & (time <= np.quantile(time[event], 0.1))
    for step, alpha in enumerate(weights.ALPHAS):
        for trained in (False, True):
            shown = adversary.shown({"alpha": step, "trained": trained})
            row = torch.tensor(losses[step if trained else -1])
            q = drocox.worst_case_weights(row, alpha, rule="paper").numpy()
            square = drocox.dual_constant(alpha, rule="paper") ** 2
            assert shown["worth"] == f"{len(time) / square:.0f}"
            assert shown["chosen"] == str((q > 0).sum())
            assert shown["old"] == f"{100 * q[old].sum():.0f}"
            assert shown["early"] == f"{100 * q[early].sum() / q[event].sum():.0f}"
            paths = adversary.page.locator(".explore-heavy")
            dots = paths.evaluate_all("all => all.map((e) => e.getAttribute('d')).join()")
            assert dots.count("M") == (q[event] > 0).sum()


def test_sliders_appear_after_a_guess(adversary):
    page = adversary.page
    feedback = page.locator('[data-out="feedback"]')
    assert not page.locator('[data-in="alpha"]').is_visible()
    assert not page.locator("text.explore-weight").is_visible()
    adversary.press("guess0", "Space")
    assert feedback.inner_text().startswith("No: ")
    adversary.press("guess0", "ArrowDown")
    assert feedback.inner_text().startswith("Yes: ")
    adversary.press("guess1", "ArrowDown")
    assert feedback.inner_text().startswith("Only in part: ")
    assert page.locator("text.explore-weight").is_visible()
    adversary.press("alpha", "ArrowRight", 3)
    adversary.press("trained", "Space")
    assert adversary.shown()["alpha"] == f"{weights.ALPHAS[3]:.2f}"
    assert feedback.inner_text() == ""


def test_losses_of_the_weight_explorable_are_trained_to_the_optimum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    risk = drocox.risk_sets(rng.exponential(np.exp(-X[:, 0])), np.ones(60))
    rows = weights.losses_by_alpha(X, risk)
    for step in (0, 8, weights.COX):
        alpha = weights.ALPHAS[step]
        risks = [drocox.dro_risk(torch.tensor(row), alpha, rule="paper") for row in rows]
        assert risks[step] <= min(risks) + 1e-6


@pytest.fixture
def browser_of_results(show):
    return show(EXPLORABLES["results"]())


def ordered(exhibit, metric, view, model="both"):
    """Rows of a table, the best first, as (method, mean, standard deviation)."""
    printed = view == "printed"
    table = invented_tables()[exhibit, "reproduced" if printed else view]
    table = table[(table["metric"] == metric) & (table["model"].eq(model) | (model == "both"))]
    columns = ["paper_mean", "paper_std"] if printed else ["mean", "std"]
    up = tables.METRICS[metric][1]
    return table.sort_values(columns[0], ascending=not up)[["method", *columns]].to_numpy()


def test_results_are_ranked_by_their_means(browser_of_results):
    for i, metric in enumerate(results.METRICS):
        state = {
            "exhibit": list(TITLES)[i % 3],
            "metric": metric,
            "view": results.VIEWS[i % len(results.VIEWS)],
            "model": ("both", "linear", "nonlinear")[i // 3],
        }
        summary = browser_of_results.shown(state)["summary"]
        digits = tables.DIGITS[metric]
        expected = []
        for method, mean, std in ordered(**state):
            numbers = f"{mean:z.{digits}f} ± {std:.{digits}f}".replace("-", "\N{MINUS SIGN}")
            expected += [method.replace("_cap", "_∩"), numbers]
        texts = browser_of_results.texts()
        assert texts[-len(expected) - 1 : -1] == expected
        assert f"is that of {expected[0]}." in summary


def test_results_by_the_keyboard_and_as_csv(browser_of_results):
    tab = browser_of_results
    tab.press("metric", "Home")
    tab.press("view", "ArrowUp")
    tab.press("exhibit", "ArrowDown")
    view = "reproduced"  # the one before "corrected"
    described = tab.page.locator(".explore-pictures").get_attribute("aria-label")
    assert described.endswith(f"; here c-index on SUPPORT (gender), {view}.")
    with tab.page.expect_download() as download:
        tab.do("shown")
    assert download.value.suggested_filename == "t3-c_index-reproduced.csv"
    saved = pd.read_csv(download.value.path())
    rows = ordered("t3", "c_index", view)
    assert saved["method"].tolist() == rows[:, 0].tolist()
    assert saved["mean"].to_numpy() == pytest.approx(rows[:, 1].astype(float), rel=1e-5)
    assert saved["sd"].to_numpy() == pytest.approx(rows[:, 2].astype(float), rel=1e-5)
    with tab.page.expect_download() as download:
        tab.do("all")
    everything = pd.read_csv(download.value.path())
    assert len(everything) == 3 * len(results.VIEWS) * 9 * 16
    assert everything.groupby(["data", "view", "metric"])["rank"].max().eq(16).all()


def test_the_ball_shows_the_packages_bounds(show):
    tab = show(EXPLORABLES["ball"]())
    three = torch.tensor(LOSSES[[0, 2, 3]])
    tab.press("alpha", "Home")
    for alpha in ball.SHARES:
        shown = tab.shown()
        assert shown["alpha"] == f"{alpha:.2f}"
        for rule in ("sharp", "definition", "paper", "cvar"):
            value = drocox.dro_risk(three, alpha, rule=rule).item()
            assert shown["CVaR" if rule == "cvar" else rule] == f"{value:.3f}"
        q = 100 * drocox.worst_case_weights(three, alpha, rule="sharp").numpy()
        assert shown["mix"] == f"A {q[0]:.0f} % C {q[1]:.0f} % D {q[2]:.0f} %"
        tab.press("alpha", "ArrowRight")
    assert "C: loss 1.39" in tab.texts()


@pytest.mark.parametrize("alpha", [0.25, 1 / 3, 0.5, 2 / 3, 0.9])
def test_the_largest_mean_loss_under_the_ceiling_is_the_cvar(alpha):
    corners = ball.under_ceiling(alpha)
    assert np.allclose(corners.sum(axis=1), 1)
    assert corners.min() > -1e-12
    assert corners.max() <= 1 / (3 * alpha) + 1e-12
    three = LOSSES[[0, 2, 3]]
    cvar = drocox.dro_risk(torch.tensor(three), alpha, rule="cvar").item()
    assert (corners @ three).max() == pytest.approx(cvar)
