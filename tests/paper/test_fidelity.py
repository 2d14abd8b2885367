"""How near the stored runs come to the published numbers, and that the recovered rules follow."""

import pandas as pd
import pytest

from drocox.paper import selection, tables
from drocox.paper.protocol import ATTRIBUTES, SPLIT

MATCHED = [
    ("t3", "Cox"),
    ("t4", "Cox"),
    ("t3", "DeepSurv"),
    ("t3", "DRO-COX"),
    ("t4", "DRO-COX"),
    ("t4", "Cox_G(Keya)"),
    ("t4", "Cox_cap(Keya)"),
]


@pytest.fixture(scope="module")
def fidelity():
    return tables.fidelity_table()


def test_every_published_row_is_held_against_every_rule_that_applies(fidelity):
    rows = fidelity.groupby(["exhibit", "model", "method"])["rule"].nunique()
    assert len(rows) == 62
    assert set(rows) == {len(selection.RULES), len(selection.RULES) - 1}  # without a named alpha
    assert fidelity.groupby(["exhibit", "model", "method"])["recovered"].sum().eq(1).all()
    cells = tables.fidelity_cells()
    assert cells["recovered"].sum() == 558 and cells["distance"].notna().all()


def test_recovered_rules_are_what_the_principle_gives(fidelity):
    """Stated, rounded or not, if within 1 SD; else the nearest within 1 SD, test data last."""
    found = {}
    for (_, where, model, method), part in fidelity.groupby(
        ["exhibit", "where", "model", "method"], sort=False
    ):
        distance = part.set_index("rule")["distance"].round(2)
        rule = distance[["stated CI", "stated CI, 2 decimals"]].idxmin()
        if distance[rule] > 1:
            near = distance[distance <= 1].sort_values(kind="stable").index
            clean = [r for r in near if not r.startswith("test")]
            rule = clean[0] if clean else near[0] if len(near) else "stated CI"
        name = SPLIT[model] if where == "n2" else method
        found.setdefault((where, name), set()).add(rule)
    assert {k: r for k, r in found.items() if r != {"stated CI"}} == {
        k: {rule} for k, rule in selection.RECOVERED.items()
    }


@pytest.mark.parametrize(("exhibit", "method"), MATCHED)
def test_matched_rows_stay_matched(fidelity, exhibit, method):
    row = fidelity[(fidelity["exhibit"] == exhibit) & (fidelity["method"] == method)]
    assert row.loc[row["recovered"], "distance"].item() < 0.15


def test_four_fifths_of_the_cells_come_back_under_some_rule(fidelity):
    keys = ["exhibit", "model", "method"]
    best = fidelity.loc[fidelity.groupby(keys)["distance"].idxmin()]
    assert best["within"].sum() >= 0.8 * 558


def test_the_points_of_the_figure_come_back():
    points = pd.concat([tables.alpha_table(d) for d in ATTRIBUTES]).dropna(subset="paper_mean")
    assert len(points) == 90
    assert ((points["mean"] - points["paper_mean"]).abs() <= points["paper_std"]).all()


def test_no_conclusion_rests_on_test_data():
    """The default selection everywhere is the stated rule, and it reads validation columns only."""
    by_test = {name for name, rule in selection.RULES.items() if rule.part == "test"}
    assert by_test == {"test CI", "test F_A"}
    assert {k for k, v in selection.RECOVERED.items() if v in by_test} == {
        ("flc", "DRO-COX"),
        ("flc", "DeepSurv_cap(Keya)"),
        ("seer", "DRO-COX"),
        ("seer", "Deep DRO-COX"),
    }
    assert tables.main_table.__kwdefaults__["selection"] == "stated"
