"""Values for the sentences of the landing page against the ledger's; guards that can fail."""

from functools import cache

import pytest
from perturbed import failed, rescaled, told

from drocox.chapters import gaps
from drocox.chapters import index as chapter
from drocox.chapters.sentences import BOTH_READINGS
from drocox.chapters.should_you_use_it import against_cox
from drocox.paper import claims, signed, tables


def check(function, *arguments, variants):
    """All sentences hold, and each fails for some of the variants."""
    result = told(chapter, function, *arguments)
    assert failed(chapter, function, *variants) == set(result.held)
    return result.values


@cache
def both_readings():
    return chapter.gaps_in_both_readings()


@pytest.mark.slow
def test_lowest_ci():
    values = told(chapter, "tell_lowest").values
    best = claims.best("corrected", metric="ci_percent", pairs=claims.MAIN_PAIRS)
    assert values["corrected-3"] == str(best.value)
    assert values["printed-7"] == "–"


def other(**columns):
    return {view: table.assign(**columns) for view, table in both_readings().items()}


def test_gaps():
    fewer = {view: table.iloc[1:] for view, table in both_readings().items()}
    nothing_moves = other(alone=signed.UNDECIDED, together=signed.UNDECIDED)
    exact = other(difference_error=1e-3, sum_error=1e-3)
    variants = [(fewer,), (nothing_moves,), (exact,)]
    values = check("tell_gaps", both_readings(), variants=variants)
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
    values = check("tell_fit", cells, variants=[(other,)])
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
    check("tell_accuracy", leads, variants=[(rescaled(sure, -1),)])
