"""Values for the sentences of the report against plain computations; guards that can fail."""

from functools import cache

import pandas as pd
import pytest
from perturbed import check, told

from drocox import dual_constant
from drocox.chapters import report as chapter
from drocox.chapters.sentences import BOTH_READINGS
from drocox.paper import claims, protocol, signed, store, tables


@cache
def ledger():
    return claims.ledger().replace({"view": {new: old for old, new in claims.OLD.items()}})


@pytest.mark.slow
def test_published_numbers():
    cells = tables.fidelity_cells()
    points = pd.concat([tables.alpha_table(dataset) for dataset in protocol.ATTRIBUTES])
    points = points.dropna(subset="paper_mean")
    other = cells.assign(distance=9 * cells["distance"], rule="test CI")
    values = check(chapter, "tell_fit", cells, points, variants=[(other, points)])
    assert (values["rows"], values["cells"], values["points"]) == ("62", "558", "90")
    kinds = chapter.by_selection(cells)
    close = sum(row["distance"].mean() <= 1 for _, row in kinds["stated"].groupby(chapter.ROW))
    assert values["rows-stated"] == str(close)


@pytest.mark.slow
def test_counts_and_verdicts():
    values = told(chapter, "tell_counts", ledger()).values
    best = claims.best("corrected", metric="ci_percent", pairs=claims.PAIRS)
    assert values["corrected-ci_percent-7"] == str(best.value)
    values = check(
        chapter, "tell_verdicts", ledger(), variants=[(ledger().assign(undecided=True),)]
    )
    assert values["protects"] == f"{100 / dual_constant(0.1, rule='paper') ** 2:.1f}"


def test_gaps():
    gaps = {view: signed.gaps(view) for view in BOTH_READINGS}
    nothing = {view: table.assign(alone=signed.UNDECIDED) for view, table in gaps.items()}
    values = check(chapter, "tell_gaps", gaps, variants=[(nothing,)])
    assert [values["undecided"], values["firm"]] == ["13", "-1.96 ± 0.53"]


def test_costs():
    record = store.load_provenance()
    runs = store.load_runs()
    values = told(chapter, "tell_cost", record, runs).values
    assert values["as_published-models"] == "8,280"
    known = [row.unstable for row in runs.itertuples() if row.model == "nonlinear"]
    known = [bool(unstable) for unstable in known if not pd.isna(unstable)]
    assert values["unstable"] == f"{100 * sum(known) / len(known):.0f}"


@pytest.mark.slow
def test_the_figure_has_a_step_per_cell():
    cells = tables.fidelity_cells()
    (panel,) = chapter.draw_distances(cells).axes
    for line, part in zip(panel.lines, chapter.by_selection(cells).values(), strict=False):
        within = line.get_ydata()[line.get_xdata() <= 1].max()
        assert within == pytest.approx(100 * (part["distance"] <= 1).mean())
