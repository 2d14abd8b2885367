"""Values for the sentences of the landing page against the ledger's; guards that can fail."""

import re
from functools import cache

import pytest
from bs4 import BeautifulSoup
from perturbed import check, rescaled, told

from drocox.chapters import gaps, panel
from drocox.chapters import index as chapter
from drocox.chapters.sentences import BOTH_READINGS
from drocox.chapters.should_you_use_it import against_cox
from drocox.paper import claims, signed, tables


@cache
def both_readings():
    return chapter.gaps_in_both_readings()


@cache
def of_panel():
    return chapter.gaps_of_panel()


@pytest.mark.slow
def test_table():
    leads = chapter.accuracy_of_panel()
    fewer = {view: table.iloc[1:] for view, table in of_panel().items()}
    sure = {view: lead.assign(half=0.0) for view, lead in leads.items()}
    variants = [(fewer, leads), (of_panel(), rescaled(sure, -1))]
    values = check(chapter, "tell_table", of_panel(), leads, variants=variants)
    best = claims.best("corrected", metric="ci_percent", pairs=claims.PAIRS)
    assert values["lowest-corrected"] == f"{best.value} of 14"
    assert values["closer-as"] == "3 of 6"
    assert values["lower-corrected"] == "6 of 14"


def test_the_panel_shows_the_numbers_of_its_tables():
    shown = panel.Panel(of_panel())
    page = BeautifulSoup(shown._repr_html_(), "html.parser")
    assert [box["id"] for box in page.select("input[checked]")] == ["panel-corrected"]
    for view, table in of_panel().items():
        box = page.select_one(f".view-{panel.PANEL_VIEWS[view].key}")
        rows = box.select("ul:not(.axis) li")
        assert len(rows) == 14
        assert f"Moved beyond noise: {panel.beyond_noise(table)}" in box.p.get_text()
        drawn = [row for row in rows if row.select_one(".dot")]
        assert len(drawn) == len(table)
        for row, (name, wanted) in zip(drawn, table.iterrows(), strict=True):
            assert row.span.get_text() == gaps.comparison(name)
            assert points(row.select_one(".dot"), "left", shown) == close_to(wanted["difference"])
            left = points(row.select_one(".line"), "left", shown)
            low = wanted["difference"] - wanted["difference_half"]
            assert left == close_to(low)
            is_sure = "sure" in row.get("class", [])
            assert is_sure == (abs(wanted["difference"]) > wanted["difference_half"])
    assert repr(shown).endswith("as published 4 of 6, stated rule 6 of 14, corrected 1 of 14>")


def close_to(value):
    return pytest.approx(value, abs=0.01)


def points(mark, side, shown):
    """Where a mark of the panel lies, in points."""
    percent = float(re.search(rf"{side}:([\d.]+)%", mark["style"])[1])
    return (percent - 50) / 50 * shown.reach


def other(**columns):
    return {view: table.assign(**columns) for view, table in both_readings().items()}


def test_gaps():
    fewer = {view: table.iloc[1:] for view, table in both_readings().items()}
    nothing_moves = other(alone=signed.UNDECIDED, together=signed.UNDECIDED)
    exact = other(difference_error=1e-3, sum_error=1e-3)
    variants = [(fewer,), (nothing_moves,), (exact,)]
    values = check(chapter, "tell_gaps", both_readings(), variants=variants)
    assert values["firm-cox"] == "-2.2"
    assert values["firm-difference"] == "2.0 ± 0.5"


def test_figure():
    table = both_readings()["corrected"]
    figure = gaps.draw_gaps(table)
    left, right = figure.axes
    assert [text.get_text() for text in left.get_yticklabels()][4] == "SUPPORT age, linear"
    marks = [container.lines[0].get_xdata() for container in right.containers if container.lines[0]]
    assert [len(mark) for mark in marks] == [13, 1]
    shown = gaps.show_power(table)
    assert (shown["1 point closes"] == "").sum() == 1
    assert shown.loc["SUPPORT age, linear", "difference"] == "−1.96 ± 0.53"


@pytest.mark.slow
def test_published_rows():
    cells = tables.fidelity_cells()
    other = cells.assign(distance=9 * cells["distance"])
    values = check(chapter, "tell_fit", cells, variants=[(other,)])
    stated = cells.loc[cells["rule"] == "stated CI", "distance"]
    assert values["within-stated"] == f"{100 * sum(d <= 1 for d in stated) / 558:.0f}"


@pytest.mark.slow
def test_theory():
    values = told(chapter, "tell_theory").values
    assert int(values["hold"]) + int(values["partly"]) == int(values["theory"]) == 6


@pytest.mark.slow
def test_accuracy():
    leads = {v: against_cox(v, "c_index", claims.PAIRS) for v in BOTH_READINGS}
    sure = {view: lead.assign(half=0.0) for view, lead in leads.items()}
    check(chapter, "tell_accuracy", leads, variants=[(rescaled(sure, -1),)])
