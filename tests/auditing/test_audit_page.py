"""The audit's page in a browser: nothing is wider than the screen, tables scroll in their boxes."""

import shutil
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup
from cohort import simulated

import drocox
from drocox.auditing.measures import MEASURES
from drocox.auditing.page import page as page_of

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
SITES = 45
# Whether a part of the page sticks out of the screen, unless it lies in a box that scrolls.
STICKS_OUT = """() => [...document.body.querySelectorAll("*")].filter((e) =>
    !e.closest(".long") && e.getBoundingClientRect().right > innerWidth + 1).length"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The page of two models on two groups with long names, and that of 45 sites."""
    folder = tmp_path_factory.mktemp("pages")
    data, scores = simulated(n=600)
    rng = np.random.default_rng(0)
    names = np.array(["from the north of the country", "from the south of the country"])
    frame = data.X.assign(time=data.time, event=data.event)

    def of(groups):
        return drocox.SurvivalData.from_frame(frame, time="time", event="event", groups=groups)

    region = of({"region of the family doctor": names[rng.integers(0, 2, 600)]})
    models = {"first": scores, "second": scores + 1e-4 * rng.normal(size=600)}
    two = drocox.audit(region, models, train=(region, scores))
    site = [f"Hospital {k:02d}" for k in rng.integers(0, SITES, 600)]
    written = {
        "models.html": page_of(two),
        "sites.html": page_of({"": drocox.audit(of({"hospital": site}), scores)}),
    }
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_small_differences_have_enough_digits(pages):
    """Two models that hardly differ: an interval of 0.0 to 0.0 says nothing."""
    text = BeautifulSoup((pages / "models.html").read_text(encoding="utf-8"), "html.parser").text
    assert "second minus first" in text
    for nothing in ("0.0 to 0.0)", "0.00 to 0.00", "−0.0 ", "−0.00 "):
        assert nothing not in text.replace("\n", " "), nothing


def test_what_is_beyond_noise_comes_first(pages):
    soup = BeautifulSoup((pages / "sites.html").read_text(encoding="utf-8"), "html.parser")
    table = soup.select_one("table.differences")
    beyond = [bool(row.select("b.bad")) for row in table.select("tr")[1:]]
    assert len(beyond) > 40 and beyond == sorted(beyond, reverse=True)
    assert all(table.find_parent(class_="long") for table in soup.select(".differences, .groups"))


def test_every_group_is_shown_or_its_absence_explained():
    """Thirty groups in the forest, forty of a crowded attribute in a funnel, those with few events
    in a warning, and intersections in the table."""
    data, scores = simulated(n=3000)
    rng = np.random.default_rng(0)
    groups = {f"a{k}": rng.integers(0, 6, 3000) for k in range(5)}
    data = replace(data, X=data.X[["a"]], groups=groups, group_labels={})
    soup = BeautifulSoup(page_of({"": drocox.audit(data, scores)}), "html.parser")
    (forest,) = soup.select("figure")
    for k in range(30):
        assert f"a{k // 6} = {k % 6}" in forest.svg.get_text()
    assert "intersections of 5 attributes are not judged" in soup.get_text()
    site = np.where(np.arange(3000) < 2995, rng.integers(0, 40, 3000), 40)
    data = replace(data, groups={"site": site, "a": groups["a0"] // 3}, group_labels={})
    soup = BeautifulSoup(page_of({"": drocox.audit(data, scores)}), "html.parser")
    forest, funnel = soup.select("figure")
    assert "everybody" in forest.svg.get_text()
    assert "a = 1" in forest.svg.get_text() and "site" not in forest.svg.get_text()
    assert "c-index of 40 groups of site" in funnel.div["aria-label"]
    assert "Not judged, with fewer than 5 events: site = 40" in soup.get_text()
    assert "site = 40" in soup.select_one("table.groups").get_text()


def test_the_columns_of_the_page(pages):
    """The measures of the list that are for the page, among them one c-index."""
    soup = BeautifulSoup((pages / "models.html").read_text(encoding="utf-8"), "html.parser")
    heads = [cell.get_text() for cell in soup.select_one("table.groups thead").select("th")]
    titles = [measure.title for measure in MEASURES.values() if measure.on_page]
    assert heads == ["Group", "Patients", "Events", *titles] and "c-index" in heads
    assert "Uno" not in soup.get_text() and "Concordance" not in heads


def test_the_page_says_what_intervals_and_auc_need(pages):
    text = " ".join((pages / "sites.html").read_text(encoding="utf-8").split())
    assert "AUC and Brier score need 5 patients with an event up to then and 5 who are" in text
    assert "these very models where several were fitted by cross-fitting" in text


def test_figures_do_not_depend_on_the_style_in_use(pages):
    """Nor do they leave anything behind; what they refer to is theirs alone."""
    data, scores = simulated(n=300)
    found = drocox.audit(data, scores, train=(data, scores))
    before = plt.get_fignums()
    text = page_of({"": found})
    with plt.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "path"}):
        assert page_of({"": found}) == text
    assert plt.get_fignums() == before
    soup = BeautifulSoup((pages / "models.html").read_text(encoding="utf-8"), "html.parser")
    names = [tag["id"] for tag in soup.select("[id]")]
    assert len(names) == len(set(names)) and len(soup.select("svg")) == 3
    assert all(svg.parent["role"] == "img" for svg in soup.select("svg"))


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
@pytest.mark.parametrize("name", ["models.html", "sites.html"])
def test_nothing_is_wider_than_the_screen(pages, name):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto((pages / name).as_uri())
        for width in (1280, 700, 390, 320):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width, width
            assert page.evaluate(STICKS_OUT) == 0, width
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 700, "height": 1000})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 700
        clipped = "e => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1"
        for box in page.locator(".long").all():
            assert not box.evaluate(clipped)
        browser.close()
