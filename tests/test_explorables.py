"""Explorables in headless Chromium: inputs are set, and what is drawn is what Python draws.

Each explorable stands on a small page of its own with the scripts of ``book/_static/explore``.
Python draws any state (:mod:`drocox.explorables`) from the package's own functions; the script
computes it anew in the page. Compared are all parts of the picture and all numbers.
"""

import functools
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from bs4 import BeautifulSoup
from lifelines import CoxPHFitter, KaplanMeierFitter
from pages import CHROMIUM, FLAGS

import drocox
from drocox import explorables
from drocox.bookstyle import SIX
from drocox.explorables import cox_loss, dual, results, sliders, survival_steps, weights
from drocox.paper import claims, protocol, tables

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import explore  # noqa: E402

STATIC = ROOT / "book" / "_static"
NUMBER = re.compile(r"[-\N{MINUS SIGN}]?\d+(?:\.\d+)?")
IGNORED = {"class", "data-part", "data-out"}
# Attributes and text of all parts of the picture, and the text of all numbers.
LOOK = """() => Object.fromEntries(
    [...document.querySelectorAll("[data-part], [data-out]")].map((e) => {
        const found = {text: e.textContent};
        for (const {name, value} of e.attributes) found[name] = value;
        for (const name of ["class", "data-part", "data-out"]) delete found[name];
        return [e.dataset.part || "out " + e.dataset.out, found];
    }))"""
NAMES = list(SIX.index)
TIME = SIX["time"].to_numpy()
EVENT = SIX["event"].to_numpy()
X = SIX["x"].to_numpy()
LOSSES = np.log([10 / 4, 1, 4 / 1, 3 / 2, 1, 1])  # by hand: hazards 4, 2, 1, 2, 1/2, 1/2

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no page was looked at")


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """A page with one explorable."""

    def __init__(self, page, trouble):
        self.page = page
        self.trouble = trouble

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

    def drag_by_finger(self, part, right=0.0, down=0.0):
        """Put a finger on a part of the drawing, move it by some pixels and lift it."""
        box = self.page.locator(f'[data-part="{part}"]').bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        screen = self.page.context.new_cdp_session(self.page)
        for kind, share in (("Start", 0), ("Move", 0.5), ("Move", 1), ("End", None)):
            places = [] if share is None else [{"x": x + share * right, "y": y + share * down}]
            event = {"type": f"touch{kind}", "touchPoints": places}
            screen.send("Input.dispatchTouchEvent", event)
            self.page.evaluate("() => new Promise(requestAnimationFrame)")  # moves wait for a frame

    def states(self, states):
        """What is drawn in each of several states of the inputs, set by script in one go."""
        return self.page.evaluate(
            """([states, look]) => states.map((state) => {
                Object.entries(state).forEach(([name, value]) => {
                    const input = document.querySelector(`[data-in="${name}"]`);
                    if (input.type === "checkbox") input.checked = value;
                    else input.value = value;
                    input.dispatchEvent(new Event("input", {bubbles: true}));
                });
                return eval(look)();
            })""",
            [states, LOOK],
        )

    def look(self):
        """What is drawn now."""
        return self.page.evaluate(LOOK)


@pytest.fixture
def show(chromium, tmp_path):
    """A function that opens an explorable in a page; at the end nothing may have gone wrong."""
    contexts = []
    trouble = []

    def open_page(explorable, *, javascript=True, width=1280):
        folder = tmp_path / str(len(contexts))
        shutil.copytree(STATIC / "explore", folder / "explore")
        file = folder / "page.html"
        file.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>x</title>'
            f"{explore.tags(explorable.markup, '.')}{explorable.markup}</html>",
            encoding="utf8",
        )
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=javascript, has_touch=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("requestfailed", lambda request: trouble.append(request.url))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((folder.as_uri(), "blob:"))
                else trouble.append(request.url)
            ),
        )
        page.goto(file.as_uri())
        return Tab(page, trouble)

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []


def drawn(explorable):
    """The same as ``LOOK``, from the HTML that Python makes."""
    found = {}
    markup = re.sub("<script.*?</script>", "", explorable.markup, flags=re.DOTALL)
    for element in BeautifulSoup(markup, "html.parser").select("[data-part], [data-out]"):
        name = element.get("data-part") or "out " + element["data-out"]
        found[name] = {k: v for k, v in element.attrs.items() if k not in IGNORED}
        found[name]["text"] = element.get_text()
    assert found
    return found


def differences(got, expected):
    """Where two drawings differ by more than the rounding of a pixel or of a last digit."""
    bad = []
    if got.keys() != expected.keys():
        bad.append(sorted(got.keys() ^ expected.keys()))
    for name in sorted(got.keys() & expected.keys()):
        for key in sorted(got[name].keys() | expected[name].keys()):
            ours = str(got[name].get(key, ""))
            theirs = str(expected[name].get(key, ""))
            if ours != theirs and not alike(ours, theirs, in_text=key == "text"):
                bad.append((name, key, ours, theirs))
    return bad


def alike(ours, theirs, *, in_text):
    """The same words around nearly the same numbers: 0.11 pixels, or one unit of the last digit."""
    if NUMBER.sub("#", ours) != NUMBER.sub("#", theirs):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    for one, other in pairs:
        digits = len(other.partition(".")[2])
        unit = 10.0**-digits if in_text else 0.1
        distance = float(one.replace("\N{MINUS SIGN}", "-")) - float(
            other.replace("\N{MINUS SIGN}", "-")
        )
        if abs(distance) > 1.1 * unit:
            return False
    return True


def same(shown, explorable):
    """What the page shows is what Python draws."""
    assert differences(shown, drawn(explorable)) == []


EXPLORABLES = {
    "dual": lambda: explorables.water_level(explorables.six_losses(), NAMES),
    "cox-loss": lambda: explorables.who_is_next(TIME, EVENT, X, NAMES),
    "frames": lambda: many_frames(),
    "kaplan-meier": lambda: explorables.kaplan_meier(TIME, EVENT, NAMES),
    "results": lambda: explorables.results_browser(gathered()),
    "slider": lambda: two_sliders(),
    "weights": lambda: explorables.who_gets_the_weight(*many()),
}


DISCS = [f'<circle r="{radius}" cx="50" cy="50"/>' for radius in range(1, 41)]


def two_sliders(a=2, b=3):
    """A line and bars that depend on two controls."""
    values = np.arange(6.0)[:, None, None] + 2 * np.arange(7.0)[:, None] + np.arange(5.0)
    return sliders.slider(
        "two",
        {"a": np.arange(6), "b": np.arange(7)},
        np.arange(5),
        {"line": values, "bars": values[..., ::-1]},
        alt="a line and bars, which rise",
        xlabel="place",
        ylabel="height",
        start={"a": a, "b": b},
        readouts={"sum": values.sum(axis=2)},
        formats={"a": "{:d}", "b": "{:d}", "sum": "{:.1f}"},
        bars=["bars"],
    )


def many_frames(start=2):
    """A disc that grows."""
    steps = [str(step) for step in range(40)]
    return sliders.frames(
        "disc",
        "size",
        steps,
        DISCS,
        alt="a disc that grows",
        size=(520, 100),
        still="".join(f'<text y="{10 * k}">{k}</text>' for k in range(7)),
        legend={"disc": '<circle r="4" cx="14" cy="5"/>'},
        readouts={"radius": steps},
        start=start,
    )


TITLES = {"t2": "FLC (age)", "t3": "SUPPORT (gender)", "t4": "SEER (race)"}


@functools.cache
def invented_tables():
    """A table for each exhibit and view, with one mean far from all others."""
    rng = np.random.default_rng(2)
    made = {}
    for exhibit in TITLES:
        for view in claims.IN_ORDER[1:]:
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
def gathered():
    return explorables.Gathered(invented_tables(), TITLES)


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


@pytest.mark.parametrize("name", sorted(EXPLORABLES))
def test_it_shows_without_scripts(show, name):
    explorable = EXPLORABLES[name]()
    tab = show(explorable, javascript=False)
    figure = tab.page.locator("figure.explore")
    assert figure.locator("svg").first.is_visible()
    assert not figure.locator(".explore-inputs").is_visible()
    texts = [text for text in figure.locator("svg text").all_text_contents() if text.strip()]
    assert len(texts) > 5
    assert repr(explorable).startswith("<interactive figure: ")
    assert "<script src" not in explorable.markup and "http" not in explorable.markup


@pytest.mark.parametrize("name", sorted(EXPLORABLES))
@pytest.mark.parametrize("width", [390, 1280])
def test_everything_has_a_name_and_fits(show, name, width):
    explorable = EXPLORABLES[name]()
    tab = show(explorable, width=width)
    same(tab.look(), explorable)  # the script has changed nothing yet
    page = tab.page
    assert page.locator("figure.explore > [hidden]").count() == 0
    if page.locator("input[type=radio]").count():  # a guess comes first
        page.locator("input[type=radio]").first.check()
    for control in page.locator("input, select, button").all():
        assert control.is_visible()
        named = control.evaluate(
            "e => e.labels && e.labels.length ? e.labels[0].innerText : e.innerText"
        )
        assert named.strip(), control.evaluate("e => e.outerHTML")
        assert control.evaluate("e => e.getBoundingClientRect().height") >= 18
    assert page.locator("[aria-live=polite]").count() == 1
    for labelled in ("figure.explore", ".explore-pictures"):
        assert len(page.locator(labelled).get_attribute("aria-label")) > 10
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_the_extension_names_the_scripts():
    markup = EXPLORABLES["dual"]().markup
    assert explore.scripts(markup) == ["explore/common.js", "explore/dual.js"]
    assert explore.scripts("<p>data-explore</p>") == []
    for name in [*explore.scripts(markup), explore.STYLE]:
        assert (STATIC / name).exists()


@pytest.fixture
def water(show):
    return show(EXPLORABLES["dual"]())


def test_the_water_level_by_script(water):
    states = [
        {"alpha": alpha, "eta": eta}
        for alpha in (0.1, 0.2, 0.3, 0.45, 0.5, 0.8)
        for eta in (-0.8, -0.35, 0.0, 0.1, 0.41, 0.92, 1.38)
    ]
    assert len(states) >= 30
    for state, shown in zip(states, water.states(states), strict=True):
        same(shown, explorables.water_level(LOSSES, NAMES, **state))


def test_eta_star_is_reached_exactly_by_the_keyboard(water):
    water.press("alpha", "Home")
    for step in range(15):
        alpha = 0.1 + 0.05 * step
        assert water.value("alpha") == pytest.approx(alpha)
        water.do("best")
        constant = drocox.dual_constant(alpha, rule="sharp")
        eta = drocox.optimal_eta(torch.tensor(LOSSES), constant).item()
        same(water.look(), explorables.water_level(LOSSES, NAMES, alpha=alpha, eta=eta))
        shown = water.look()
        assert "this is η*" in shown["out verdict"]["text"]
        risk = drocox.dro_risk(torch.tensor(LOSSES), alpha, rule="sharp").item()
        assert shown["out g"]["text"] == f"{risk:.3f}"
        weights = drocox.worst_case_weights(torch.tensor(np.sort(LOSSES)[::-1].copy()), alpha)
        percent = [f"{100 * q:.0f} %" for q in weights]
        assert [shown[f"weight{i}"]["text"] for i in range(6)] == percent
        water.press("alpha", "ArrowRight")


def test_the_water_level_follows_keys_and_the_pointer(water):
    water.press("eta", "ArrowRight", 3)
    assert water.value("eta") == pytest.approx(0.13)
    same(water.look(), explorables.water_level(LOSSES, NAMES, eta=0.13))
    handle = water.page.locator('[data-part="handle"]').bounding_box()
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
    water.page.mouse.move(x, y)
    water.page.mouse.down()
    water.page.mouse.move(x, y - 40, steps=3)
    water.page.mouse.up()
    eta = water.value("eta")
    assert 0.25 < eta < 0.6
    shown = water.look()
    level = float(shown["handle"]["cy"])
    assert level == pytest.approx(dual.bars(LOSSES).y(eta), abs=0.9)


def test_the_water_level_follows_a_finger(water):
    water.drag_by_finger("handle", down=-40)
    eta = water.value("eta")
    assert 0.3 < eta < 0.6
    level = float(water.look()["handle"]["cy"])
    assert level == pytest.approx(dual.bars(LOSSES).y(eta), abs=0.9)


def test_the_verdict_follows_the_slope():
    losses = np.sort(LOSSES)[::-1].copy()
    for alpha in (0.2, 0.3, 0.5, 0.8):
        best = dual.state(losses, alpha, 0.0)["best"]
        below = dual.state(losses, alpha, best - 0.05)
        above = dual.state(losses, alpha, best + 0.05)
        assert below["used"] < 1 < above["used"]
        assert below["risk"] <= min(below["g"], above["g"])
        assert "raise" in dual.verdict(losses, best - 0.05, below["used"])
        assert "lower" in dual.verdict(losses, best + 0.05, above["used"])


@pytest.fixture
def curve(show):
    return show(EXPLORABLES["kaplan-meier"]())


def as_inputs(time, event):
    inputs = {f"time{i}": t for i, t in enumerate(time)}
    return inputs | {f"died{i}": bool(died) for i, died in enumerate(event)}


def redrawn(time, event):
    return explorables.kaplan_meier(time, event, NAMES, first=(TIME, EVENT))


def test_the_kaplan_meier_curve_by_script(curve):
    rng = np.random.default_rng(0)
    cases = [(rng.integers(1, 15, 6).astype(float), rng.random(6) < 0.6) for _ in range(40)]
    cases += [(TIME, np.zeros(6, bool)), (np.full(6, 4.0), EVENT)]
    drawings = curve.states([as_inputs(*case) for case in cases])
    for (time, event), shown in zip(cases, drawings, strict=True):
        same(shown, redrawn(time, event))
        expected = KaplanMeierFitter().fit(time, event).survival_function_at_times(9.0).item()
        said = re.search(r"(?<== )[\d.]+\d|^1(?=,)", shown["out answer"]["text"])[0]
        assert float(said) == pytest.approx(expected, abs=6e-4)
        at_nine = survival_steps.survival().y(expected)
        assert float(shown["asked"]["cy"]) == pytest.approx(at_nine, abs=0.06)


def test_the_kaplan_meier_curve_by_keys_and_pointer(curve):
    time, event = TIME.copy(), EVENT.copy()
    curve.press("time4", "ArrowRight", 2)
    curve.press("died4", "Space")
    time[4], event[4] = 11.0, True
    same(curve.look(), redrawn(time, event))
    curve.press("time0", "End")
    curve.press("died0", "Space")
    time[0], event[0] = 14.0, False
    same(curve.look(), redrawn(time, event))
    curve.do("reset")
    same(curve.look(), redrawn(TIME, EVENT))
    dot = curve.page.locator('[data-part="end2"]').bounding_box()
    x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
    axes = survival_steps.lives(6)
    scale = curve.page.locator("svg").first.bounding_box()["width"] / axes.width
    curve.page.mouse.move(x, y)
    curve.page.mouse.down()
    curve.page.mouse.move(x + scale * (axes.x(7) - axes.x(5)), y, steps=3)
    curve.page.mouse.up()
    moved = TIME.copy()
    moved[2] = 7.0
    same(curve.look(), redrawn(moved, EVENT))


def test_the_kaplan_meier_curve_by_finger(curve):
    axes = survival_steps.lives(6)
    scale = curve.page.locator("svg").first.bounding_box()["width"] / axes.width
    curve.drag_by_finger("end2", right=scale * (axes.x(7) - axes.x(5)))
    curve.page.locator('[data-in="died4"]').tap()
    time, event = TIME.copy(), EVENT.copy()
    time[2] = 7.0
    event[4] = True
    same(curve.look(), redrawn(time, event))


@pytest.fixture
def next_one(show):
    return show(EXPLORABLES["cox-loss"]())


def losses_at(theta):
    losses = []
    for i in np.flatnonzero(EVENT):
        at_risk = TIME >= TIME[i]
        losses.append(np.log(np.exp(theta * X[at_risk]).sum()) - theta * X[i])
    return losses


def test_the_cox_losses_by_script(next_one):
    thetas = [round(-1 + 0.08 * step, 2) for step in range(38)]
    drawings = next_one.states([{"theta": theta} for theta in thetas])
    for theta, shown in zip(thetas, drawings, strict=True):
        same(shown, explorables.who_is_next(TIME, EVENT, X, NAMES, theta=theta))
        said = [float(shown[f"out loss{i}"]["text"]) for i in np.flatnonzero(EVENT)]
        assert said == pytest.approx(losses_at(theta), abs=6e-4)
        assert float(shown["out sum"]["text"]) == pytest.approx(sum(losses_at(theta)), abs=6e-4)


def test_the_smallest_sum_is_that_of_lifelines(next_one):
    fitted = CoxPHFitter().fit(SIX[["time", "event", "x"]], "time", "event")
    best = cox_loss.best_theta(TIME, EVENT, X)
    assert best == pytest.approx(fitted.params_["x"], abs=1e-4)
    assert sum(losses_at(best)) == pytest.approx(-fitted.log_likelihood_, abs=1e-6)
    for key, theta in (("best", best), ("zero", 0.0), ("log2", np.log(2))):
        next_one.do(key)
        same(next_one.look(), explorables.who_is_next(TIME, EVENT, X, NAMES, theta=theta))
    next_one.press("theta", "ArrowLeft", 4)
    same(next_one.look(), explorables.who_is_next(TIME, EVENT, X, NAMES, theta=0.65))
    next_one.press("theta", "End")
    same(next_one.look(), explorables.who_is_next(TIME, EVENT, X, NAMES, theta=2.0))


@pytest.fixture
def adversary(show):
    return show(EXPLORABLES["weights"]())


def test_the_weights_by_script(adversary):
    choices = [(step, trained) for step in range(len(weights.ALPHAS)) for trained in (False, True)]
    assert len(choices) >= 30
    drawings = adversary.states([{"alpha": step, "trained": on} for step, on in choices])
    losses, _, event, old = many()
    for (step, trained), shown in zip(choices, drawings, strict=True):
        same(shown, explorables.who_gets_the_weight(*many(), step=step, trained=trained))
        row = np.round(losses[step if trained else -1], 2)
        q = drocox.worst_case_weights(torch.tensor(row), weights.ALPHAS[step], rule="paper").numpy()
        heavy = shown["heavy-old"]["d"].count("M") + shown["heavy-young"]["d"].count("M")
        assert heavy == (q[event] > 0).sum()
        assert float(shown["out old"]["text"]) == pytest.approx(100 * q[old].sum(), abs=0.51)
        assert float(shown["out chosen"]["text"]) == (q > 0).sum()


def test_a_guess_comes_first(adversary):
    page = adversary.page
    assert not page.locator('[data-in="alpha"]').is_visible()
    assert not page.locator('[data-part="level"]').is_visible()
    assert page.locator('[data-part="calm-old"]').is_visible()
    adversary.press("guess0", "Space")
    assert page.locator('[data-out="feedback"]').inner_text().startswith("No: ")
    adversary.press("guess0", "ArrowDown")
    assert page.locator('[data-out="feedback"]').inner_text().startswith("Yes: ")
    adversary.press("guess1", "ArrowDown")
    assert page.locator('[data-out="feedback"]').inner_text().startswith("Only in part: ")
    adversary.press("alpha", "ArrowRight", 3)
    adversary.press("trained", "Space")
    expected = explorables.who_gets_the_weight(*many(), step=3, trained=True)
    same(adversary.look(), expected)


def test_losses_are_trained_to_the_optimum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    risk = drocox.risk_sets(rng.exponential(np.exp(-X[:, 0])), np.ones(60))
    rows = weights.losses_by_alpha(X, risk)
    for step in (0, 8, weights.COX):
        alpha = weights.ALPHAS[step]
        risks = [drocox.dro_risk(torch.tensor(row), alpha, rule="paper") for row in rows]
        assert risks[step] <= min(risks) + 1e-6
    with pytest.raises(ValueError, match="must lie between"):
        weights.packed(np.array([13.0]))


@pytest.fixture
def browser_of_results(show):
    return show(EXPLORABLES["results"]())


def test_results_by_script(browser_of_results):
    views = claims.IN_ORDER
    metrics = list(results.METRICS)
    states = [
        {"exhibit": exhibit, "metric": metric, "view": views[i % 6], "model": model}
        for exhibit in TITLES
        for i, metric in enumerate(metrics)
        for model in ("both", "nonlinear")
    ]
    assert len(states) >= 30
    drawings = browser_of_results.states(states)
    for state, shown in zip(states, drawings, strict=True):
        same(shown, explorables.results_browser(gathered(), **state))
        printed = state["view"] == "printed"
        table = invented_tables()[state["exhibit"], "corrected" if printed else state["view"]]
        table = table[table["metric"] == state["metric"]]
        if state["model"] != "both":
            table = table[table["model"] == state["model"]]
        up = tables.METRICS[state["metric"]][1]
        ordered = table.sort_values("paper_mean" if printed else "mean", ascending=not up)
        names = [shown[f"name{rank}"]["text"] for rank in range(len(ordered))]
        assert names == [method.replace("_cap", "_∩") for method in ordered["method"]]


def test_results_by_the_keyboard_and_as_csv(browser_of_results):
    tab = browser_of_results
    tab.press("metric", "Home")
    tab.press("view", "ArrowUp")
    tab.press("exhibit", "ArrowDown")
    state = {"exhibit": "t3", "metric": "c_index", "view": "one setting"}
    same(tab.look(), explorables.results_browser(gathered(), **state))
    described = tab.page.locator(".explore-pictures").get_attribute("aria-label")
    assert described.endswith("; here c-index on SUPPORT (gender), one setting.")
    with tab.page.expect_download() as download:
        tab.do("shown")
    assert download.value.suggested_filename == "t3-c_index-one-setting.csv"
    saved = pd.read_csv(download.value.path())
    table = invented_tables()["t3", "one setting"]
    table = table[table["metric"] == "c_index"].sort_values("mean", ascending=False)
    assert saved["method"].tolist() == table["method"].tolist()
    assert saved["mean"].to_numpy() == pytest.approx(table["mean"].to_numpy(), rel=1e-4)
    assert saved["sd"].to_numpy() == pytest.approx(table["std"].to_numpy(), rel=1e-4)
    with tab.page.expect_download() as download:
        tab.do("all")
    everything = pd.read_csv(download.value.path())
    assert len(everything) == 3 * 6 * 9 * 16
    assert everything.groupby(["data", "view", "metric"])["rank"].max().eq(16).all()


def test_sliders_over_states_computed_beforehand(show):
    tab = show(two_sliders())
    choices = [(a, b) for a in range(6) for b in range(7)]
    drawings = tab.states([{"control0": a, "control1": b} for a, b in choices])
    for (a, b), shown in zip(choices, drawings, strict=True):
        same(shown, two_sliders(a, b))
        assert shown["out readout0"]["text"] == f"{5 * a + 10 * b + 10:.1f}"
    tab.press("control0", "Home")
    tab.press("control1", "ArrowLeft", 4)
    same(tab.look(), two_sliders(0, 2))
    with pytest.raises(ValueError, match="expected"):
        sliders.slider(
            "x",
            {"a": [1, 2]},
            [0, 1],
            {"y": np.zeros(2)},
            alt="",
            start={},
            readouts={},
            formats={},
        )


def test_frames_show_the_start_and_hold_the_rest(show):
    tab = show(many_frames())
    part = tab.page.locator('[data-part="frame"]')
    for step in range(3, 40):
        tab.press("control0", "ArrowRight")
        assert part.locator("circle").get_attribute("r") == str(step + 1)
        assert tab.look()["out readout0"]["text"] == str(step)
    assert 'data-part="frame"><circle r="6"' in many_frames(5).markup
    with pytest.raises(ValueError, match="1 pictures for 2 values"):
        sliders.frames(
            "x",
            "r",
            ["1", "2"],
            [""],
            alt="",
            size=(9, 9),
            still="",
            legend={},
            readouts={},
            start=0,
        )
