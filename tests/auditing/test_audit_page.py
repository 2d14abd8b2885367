"""The audit's page, pictures and files: complete, safe with any name, readable on any screen."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup
from cohort import simulated
from lifelines import KaplanMeierFitter
from pages import CHROMIUM

import drocox
from drocox.auditing.measures import MEASURES
from drocox.auditing.page import page as page_of

SITES = 45
# Whether a part of the page sticks out of the screen, unless it lies in a box that scrolls.
STICKS_OUT = """() => [...document.body.querySelectorAll("*")].filter((e) =>
    !e.closest(".long") && e.getBoundingClientRect().right > innerWidth + 1).length"""


@pytest.fixture(scope="module")
def alone(model):
    """The audit of scores without a training part, so that risks are unknown."""
    return drocox.audit(*model)


@pytest.fixture(scope="module")
def known(model):
    """The audit of scores with a training part."""
    return drocox.audit(*model, train=model)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of two models on two groups with long names, of 45 sites, and of own measures."""
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
    own = {f"mean score, again {k}": lambda one, who: one.scores[who].mean() for k in (1, 2)}
    site = [f"Hospital {k:02d}" for k in rng.integers(0, SITES, 600)]
    written = {
        "models.html": page_of(two),
        "sites.html": page_of({"": drocox.audit(of({"hospital": site}), scores)}),
        "own.html": page_of(
            {"": drocox.audit(region, scores, train=(region, scores), measures=own)}
        ),
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


def test_what_differs_comes_first(pages):
    soup = BeautifulSoup((pages / "sites.html").read_text(encoding="utf-8"), "html.parser")
    table = soup.select_one("table.differences")
    beyond = [bool(row.select("b")) for row in table.select("tr")[1:]]
    assert len(beyond) > 40 and beyond == sorted(beyond, reverse=True)
    assert all(table.find_parent(class_="long") for table in soup.select(".differences, .groups"))


@pytest.mark.slow
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
    assert "Not judged: site = 40" in soup.get_text()
    assert "site = 40" in soup.select_one("table.groups").get_text()


def test_the_page_has_the_columns_of_its_measures(pages):
    """The measures of the list that are for the page, among them one c-index."""
    soup = BeautifulSoup((pages / "models.html").read_text(encoding="utf-8"), "html.parser")
    heads = [cell.get_text() for cell in soup.select_one("table.groups thead").select("th")]
    titles = [one.title for one in MEASURES.values() if one.on_page]
    sizes = ["Group", "Patients", "Events", "Events by 1.635", "Censored", "Follow-up"]
    assert heads == [*sizes, *titles] and "c-index" in heads
    assert "Uno" not in soup.get_text() and "Concordance" not in heads


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
    assert len(names) == len(set(names)) and len(soup.select("svg")) == 4
    assert all(svg.find_parent(role="img") for svg in soup.select("svg"))


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
@pytest.mark.parametrize("name", ["models.html", "sites.html", "own.html"])
def test_nothing_is_wider_than_the_screen(chromium, pages, name):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
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
    page.close()


# Hostile names ------------------------------------------------------------------------------


HOSTILE = ["<script>alert(1)</script>", "--> </svg><b>", '=HYPERLINK("x")', "$\\frac{1}$", "a & b"]


class Checked(HTMLParser):
    """Collects tags, and refuses tags that are closed by others."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def hostile():
    """The audit of data whose owner has a strange taste in names."""
    data, scores = simulated(n=400)
    labels = {"group": HOSTILE[:2], "sex": HOSTILE[2:4]}
    data = replace(data, name=HOSTILE[4], group_labels=labels)
    return drocox.audit(data, scores)


def test_the_page_is_whole_and_names_are_only_names(hostile, tmp_path):
    path = hostile.to_html(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    seen = Checked()
    seen.feed(text)
    seen.close()
    assert seen.open == []
    assert {"script", "link", "img", "iframe", "b"} & set(seen.tags) <= {"b"}
    assert not {"src", "href", "onclick"} & {name for name, _ in seen.attributes}
    links = [value for name, value in seen.attributes if name == "xlink:href"]
    links += re.findall(r"url\((.*?)\)", text)
    assert links and all(link.startswith("#") for link in links)  # to parts of the same drawing
    assert "http" not in text and "@import" not in text
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[4]):
        assert name not in text
    assert text.count("&lt;script&gt;") > 3 and "a &amp; b" in text
    labels = [value for name, value in seen.attributes if name == "aria-label"]
    assert HOSTILE[0] in labels[0]  # of the picture; the others are those of tables
    assert text.index(": cannot tell.</b>") < text.index("<figure>") < text.index("<table")
    assert 'name="viewport"' in text and "@media print" in text and "max-width: 40rem" in text
    assert hostile.to_html(tmp_path / "again.html").read_bytes() == path.read_bytes()


def test_text_fits_the_terminal_and_a_dollar_in_a_name_is_no_formula(hostile):
    assert max(map(len, str(hostile).splitlines())) <= 80
    figure = hostile.plot()
    assert len(figure.axes) == 2
    figure.canvas.draw()  # a dollar in a name is no formula
    plt.close(figure)


def test_a_long_label_is_not_hidden_by_the_second_panel(model):
    data, scores = model
    groups = {"an attribute with a name that is longer than a panel": data.groups["sex"]}
    found = drocox.audit(replace(data, groups=groups, group_labels={}), scores)
    drawn = []
    with plt.style.context("default"):
        figure = found.plot()
        figure.canvas.draw()  # the layout is found
        for visible in (True, False):
            figure.axes[0].texts[-1].set_visible(visible)
            figure.canvas.draw()
            drawn.append(np.array(figure.canvas.buffer_rgba()))
    panel = figure.axes[1].get_window_extent()
    assert (drawn[0] != drawn[1])[:, int(panel.x0) + 1 : int(panel.x1)].any()
    plt.close(figure)


# What goes elsewhere ------------------------------------------------------------------------


def test_tables_are_written_as_json_csv_and_markdown(model, alone, tmp_path):
    data, scores = model
    told = json.loads(alone.to_json(tmp_path / "a.json"))
    assert told["table"][0]["patients"] == 500 and told["table"][0]["brier"] is None
    assert len(told["differences"]) == len(alone.differences)
    assert (tmp_path / "a.json").exists()
    assert (
        alone.to_csv()
        .splitlines()[0]
        .startswith("attribute,group,patients,events,events_by_horizon,censored,follow_up,c_")
    )
    assert "| everybody | 500 |" in alone.to_markdown() and "nan" not in alone.to_markdown()
    labels = {"sex": ("<b>", "c")}
    tags = replace(data, groups={"sex": data.groups["sex"]}, group_labels=labels)
    assert "| &lt;b&gt; |" in drocox.audit(tags, scores).to_markdown()
    assert "<table" in alone._repr_html_() and "cannot tell" in alone._repr_html_()


def test_calibration_is_drawn_where_risks_are_known(model, alone, known):
    data, scores = model
    assert len(known.plot_calibration().axes) == 2
    curves = known.calibration_curves()
    assert curves.groupby("attribute")["patients"].sum().tolist() == [500, 500]
    risk = known._predictions.patients.risk[data.groups["sex"] == 1]
    mine = curves[curves["group"] == "sex = 1"]
    assert mine["predicted"].iloc[-1] == pytest.approx(
        np.sort(risk)[-len(risk) // 5 :].mean(), 0.02
    )
    page = page_of({"": known})
    assert page.count("Calibration by ") == 2 and page.count("<svg") == 4
    assert alone.calibration_curves().empty and "Calibration by " not in page_of({"": alone})
    hidden = drocox.audit(data, scores, train=(data, scores), smallest=60)
    assert "group = 1" not in set(hidden.calibration_curves()["group"])
    with pytest.raises(ValueError, match="no risks to draw"):
        alone.plot_calibration()
    with pytest.raises(ValueError, match="no group can be drawn in parts"):
        known.plot_calibration(bins=251)  # two patients in each part of 500


def test_intervals_of_calibration_curves_are_those_of_kaplan_and_meier(model, known):
    data, _ = model
    curves = known.calibration_curves(bins=1).set_index("group")
    assert (curves["low"] < curves["observed"]).all() and (
        curves["observed"] < curves["high"]
    ).all()
    mine = data.groups["sex"] == 1
    fitter = KaplanMeierFitter().fit(data.time[mine], data.event[mine])
    ends = 1 - fitter.confidence_interval_.asof(known.horizon).to_numpy()
    row = curves.loc["sex = 1"]
    assert sorted(ends) == pytest.approx([row["low"], row["high"]], rel=1e-9)
    assert row["events"] == (data.event[mine] & (data.time[mine] <= known.horizon)).sum()


@pytest.mark.usefixtures("undrawn")
def test_the_page_names_event_and_predictions_at_its_top(model, alone, tmp_path):
    data, scores = model
    path = alone.to_html(tmp_path / "a.html")
    top = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").select_one("h1 + p")
    assert "Predictions: passed to drocox.audit, and taken to be of patients" in top.get_text()
    facts = {"Event": "death, time in days", "Predictions": "by our score"}
    both = drocox.audit(data, {"a": scores, "b": -0.5 * scores})
    for one in (alone, both):
        text = one.to_html(tmp_path / "b.html", facts).read_text(encoding="utf-8")
        soup = BeautifulSoup(text, "html.parser")
        top = soup.select_one("h1 + p").get_text()
        assert "Event: death, time in days. Predictions: by our score." in top
        assert "Event" not in [one.get_text() for one in soup.select("dt")]


@pytest.mark.usefixtures("undrawn")
def test_the_page_asks_and_explains_what_it_answers(model, known):
    """Scores alone say nothing about risks; five models scored five folds."""
    folds = drocox.audit(*model, folds=np.arange(500) % 5)
    for one, risks in ((folds, False), (known, True)):
        soup = BeautifulSoup(page_of({"": one}), "html.parser")
        top = soup.select_one("h1 + p").get_text()
        assert ("Risks are those up to time" in top) == risks
        assert ("Risks are not judged, since none were given." in top) != risks
        assert ("by a model for each of 5 folds" in top) != risks
        explained = [term.get_text() for term in soup.select("dl.note dt")]
        assert ("Observed / expected" in explained) == risks
        assert {"c-index", "Expected c-index", "Slope", "Alike, differ, cannot tell"} <= set(
            explained
        )


def numbers_in(cell):
    """The numbers of a cell of the page."""
    return [float(text.replace("−", "-")) for text in re.findall(r"[−\d.]*\d", cell.get_text(" "))]


@pytest.mark.usefixtures("undrawn")
def test_every_number_stands_in_its_row_and_column(model):
    """Values and intervals of two models: of groups, pairs, what is expected, decisions."""
    data, scores = model
    noisy = scores + 0.6 * np.random.default_rng(0).normal(size=500)
    given = {"good": {"scores": scores, "train": (data, scores)}}
    given["noisy"] = {"scores": noisy, "train": (data, noisy)}
    both = drocox.audit(data, given, threshold=0.4)
    soup = BeautifulSoup(page_of(both), "html.parser")

    def rows_of(table):
        for row in table.select("tr")[1:]:
            name, *cells = row.select("td")
            yield name.get_text(), {cell["data-label"]: numbers_in(cell) for cell in cells}

    def shown(row, *columns, digits):
        known = [value for value in row[list(columns)] if value == value]
        return pytest.approx(known, abs=0.6 * 10.0**-digits)

    side = list(rows_of(soup.select_one("table.measured")))
    heads = [cell.get_text() for cell in soup.select("table.measured td:nth-child(2)")]
    paired = both.paired.set_index(["group", "measure"])
    table = both.table.set_index(["model", "group"])
    names = {title: name for name, title in both["good"].titles.items()}
    assert len(side) > 20
    for (group, cells), title in zip(side, heads, strict=True):
        for model_name in given:
            value = table.loc[(model_name, group), names[title]]
            assert cells[model_name] == pytest.approx([value], abs=0.006), (group, title)
        row = paired.loc[(group, names[title])]
        known = shown(row, "difference", "low", "high", digits=2)
        assert cells["noisy minus good"] == known, (group, title)

    of_groups = soup.select("table.groups:not(.decisions)")
    of_pairs = soup.select("table.differences:not(.measured)")
    decided = soup.select("table.decisions")
    for k, (name, one) in enumerate(both.items()):
        differences = one.differences.set_index(["group", "versus", "measure"])
        for group, cells in [*rows_of(of_groups[k]), *rows_of(decided[k])]:
            group, _, versus = group.partition(" against ")
            for title, numbers in cells.items():
                if title in ("Patients", "Events", "Events by 1.472", "Censored", "Follow-up"):
                    continue
                measure = names[title]
                columns = [measure + end for end in ("", "_low", "_high")]
                digits = one.measures[measure].digits
                known = shown(table.loc[(name, group)], *columns, digits=digits)
                if versus:  # unless groups are not compared in it
                    row = differences.reindex([(group, versus, measure)]).iloc[0]
                    known = shown(row, "difference", "low", "high", digits=2)
                assert numbers == known, (group, versus, title)
        beside, pairs = of_pairs[2 * k : 2 * k + 2]
        for group, cells in [*rows_of(beside), *rows_of(pairs)]:
            group, _, versus = group.partition(" against ")
            assert cells and (versus or len(cells) == 1)
            for title, numbers in cells.items():
                measure = names[title.removesuffix(", ratio")]
                of = versus or one.measures[measure].versus
                row = differences.loc[(group, of, measure)]
                known = shown(row, "difference", "low", "high", digits=2)
                assert numbers == known, (group, title)


@pytest.mark.usefixtures("undrawn")
def test_minus_signs_are_those_of_numbers(model):
    data, scores = model
    data = replace(data, groups={"age": data.groups["sex"]}, group_labels={"age": ("-9", "10-19")})
    text = page_of({"": drocox.audit(data, scores)})
    lead = BeautifulSoup(text, "html.parser").select_one(".lead").get_text()
    assert "10-19" in lead and re.search(r" \(−\d\.\d+ to", lead)


@pytest.mark.usefixtures("undrawn")
def test_a_verdict_is_bold_to_its_end_whatever_groups_are_called(model):
    """One of three hospitals is ranked backwards, and another one has too few events."""
    data, scores = model
    site = np.arange(500) % 2
    site[np.flatnonzero(data.event)[:3]] = 2
    labels = {"site": ("St. Mary", "St. John", "St. Luke")}
    scores = np.where(site == 0, -scores, scores)
    found = drocox.audit(replace(data, groups={"site": site}, group_labels=labels), scores)
    soup = BeautifulSoup(page_of({"": found}), "html.parser")
    bold = [one.get_text() for one in soup.select(".lead .item b")]
    assert bold[0] == "Ranking (c-index): differs." and bold[1].endswith(": worse for St. Mary.")
    assert bold[-1] == "Not judged: St. Luke (3 events)."


@pytest.mark.usefixtures("undrawn")
def test_a_search_that_found_nothing_takes_one_line(model):
    data, scores = model
    found = drocox.audit(data, scores, features=["a", "b"])
    last = found.sentence.splitlines()[-1]
    assert len(found.slices) and last.startswith("Found by search: no group of these columns that")
    assert page_of({"": found}).count("ound by search") == 2  # and how to read it
    shy = drocox.audit(data, scores, features=["a", "b"], smallest=5).sentence
    assert "that could tell a small number are not shown" in shy
    assert "that could tell a small number" not in found.sentence


@pytest.mark.usefixtures("undrawn")
def test_the_page_warns_of_few_events_and_of_what_was_said(model):
    data, scores = model
    site = np.zeros(500, int)
    site[np.flatnonzero(data.event)[:3]] = 1
    site[np.flatnonzero(data.event)[3:12]] = 2
    found = drocox.audit(replace(data, groups={"site": site}, group_labels={}), scores)
    assert found.cautions == ["Few events, so that intervals are wide and rough: site = 2 (9)."]
    assert "Not judged: site = 1 (3 events)." in found.sentence
    assert max(map(len, str(found).splitlines())) <= 80
    page = page_of({"": found}, warnings=["Cox: coefficients run <away>."])
    assert "</b> Cox: coefficients run &lt;away&gt;." in page and found.cautions[0] in page
    hidden = drocox.audit(
        replace(data, groups={"site": site}, group_labels={}), scores, smallest=10
    )
    assert hidden.cautions == []  # nor are small cells told here
