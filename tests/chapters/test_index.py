"""Values for the sentences of the landing page against the ledger's; guards that can fail."""

from functools import cache

import pytest
from perturbed import failed, rescaled, told

import drocox
from drocox.chapters import index as chapter
from drocox.paper import claims, tables


def check(function, *arguments, variants):
    """All sentences hold, and each fails for some of the variants."""
    result = told(chapter, function, *arguments)
    assert failed(chapter, function, *variants) == set(result.held)
    return result.values


@cache
def gaps():
    return chapter.leads_in_ci()


@pytest.mark.slow
def test_ci_and_its_figure():
    fewer = {view: lead.iloc[1:].assign(half=0.0) for view, lead in gaps().items()}
    all_in_one = dict.fromkeys(gaps(), gaps()["corrected"])
    values = check("tell_ci", gaps(), variants=[(fewer,), (all_in_one,)])
    assert values["corrected-3"] == str(
        claims.best("corrected", metric="ci_percent", pairs=claims.MAIN_PAIRS).value
    )
    figure = chapter.draw_verdict(gaps())
    assert [len(panel.containers) for panel in figure.axes] == [6, 14, 14]
    for panel, lead in zip(figure.axes, gaps().values(), strict=True):
        assert f"DRO ahead in {sum(mean > 0 for mean in lead['mean'])} of" in panel.get_title()


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
def test_the_answer():
    leads = chapter.against_cox_in_both_readings()
    sure = {key: lead.assign(half=0.0) for key, lead in leads.items()}
    check("tell_answer", leads, variants=[(rescaled(sure, -1),)])


def test_rivals():
    league = drocox.load_runs("beyond").query("study == 'rivals'")
    league = league.set_index(["dataset", "method"])
    fair = league["ci"].where(league.index.isin(["Cox"], level="method"), 0.0)
    check("tell_rivals", league, variants=[(league.assign(ci=fair, ci_diff=9.0),)])
