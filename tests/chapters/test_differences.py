"""The ledger and the values of *differences* against plain computations; guards that can fail."""

import numpy as np
import pandas as pd
import pytest
from perturbed import failed, rescaled, told

from drocox import fairness
from drocox.chapters import differences as chapter
from drocox.chapters import differences_choice as choice
from drocox.chapters import differences_gradient as missing
from drocox.chapters import differences_metrics as metrics
from drocox.paper import selection, store, tables


def test_published_rows_are_those_of_the_paper():
    rows = chapter.published_rows()
    assert rows.index.is_unique and len(rows) == 3 * 16 * 9
    printed = tables.published_table("t4")
    one = printed[(printed["method"] == "Cox") & (printed["metric"] == "c_index")].iloc[0]
    assert rows.loc[("t4", "Cox", "c_index"), "mean"] == one["mean"]


def test_a_line_of_the_ledger_has_its_size_in_published_sds_or_as_a_factor():
    ledger = chapter.Ledger()
    sd = ledger.sd("seer", "Cox", "c_index")
    where = ("seer", "Cox", "c_index")
    ledger.note("shifted", where, 0.7, 0.7 - 3 * sd, "none")
    ledger.note("doubled", where, 0.35, 0.7, "none", factor=True)
    frame = ledger.frame()
    assert list(frame["size"]) == ["3.0 SD", "× 2"]
    assert list(frame["where"]) == ["SEER Cox", "SEER Cox"]


def test_the_spread_of_test_sets():
    spread = {
        "stratified": {"fewest events": 90, "most": 90, "SD": 0.030},
        "random": {"fewest events": 80, "most": 99, "SD": 0.033},
    }
    ledger = chapter.Ledger()
    result = told(chapter, "tell_splits", ledger, spread)
    sd = ledger.sd("seer", "Cox", "c_index")
    assert result.values["seer-ratio"] == f"{0.030 / sd:.0f}"
    narrow = {kind: rescaled(pd.Series(row), 0.001) for kind, row in spread.items()}
    unequal = spread | {"stratified": spread["random"] | {"SD": 0.06}}
    variants = [(ledger, narrow), (ledger, unequal)]
    assert failed(chapter, "tell_splits", *variants) == set(result.held)


def test_the_printed_individual_unfairness_by_a_loop():
    rng = np.random.default_rng(0)
    h, X = rng.random(7), rng.normal(size=(7, 2))
    terms = []
    for i in range(7):
        for j in range(i + 1, 7):
            terms.append(max(abs(h[i] - h[j]) - 0.01 * np.linalg.norm(X[i] - X[j]), 0))
    assert np.allclose(metrics.printed_individual(h, X), terms)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    halved = metrics.printed_individual(h, unit).mean() / 2
    assert np.isclose(halved, fairness.individual(h, X))


def test_who_beats_the_plain_model():
    rows = chapter.published_rows().xs("c_index", level="metric")["mean"]["t2"]
    every = metrics.beaten(rows)
    assert 0 <= every <= 14
    assert metrics.beaten(pd.Series(1.0, rows.index)) == 0


def test_distances_and_chance():
    printed = pd.DataFrame({"mean": [1.0, 2.0], "std": [0.5, 1.0]})
    assert choice.distance(np.array([[1.5, 2.0], [1.0, 4.0]]), printed).tolist() == [0.5, 1.0]
    rows = selection.candidates(store.load_runs("as_published"), "seer", "race")
    rows = rows[rows["method"] == "Cox"]
    of_paper = chapter.published_rows().loc[("t4", "Cox")].loc[list(tables.METRICS)]
    luck = choice.by_chance(rows, of_paper, np.random.default_rng(0))
    assert luck.shape == (choice.DRAWS,)
    assert luck.min() > 0 and np.isfinite(luck).all()


def test_growth_is_finite_where_hazards_overflow():
    runs = pd.DataFrame(
        {"learning_rate": [0.001, 0.001, 0.01, 0.0001], "test_f_i": [1e20, 1e40, np.inf, 3.0]}
    )
    exponent, overflowed, fast = missing.growth(runs)
    assert np.isclose(exponent, 30) and (overflowed, fast) == (1, 1)
    result = told(missing, "tell_growth", store.load_runs("forensic"))
    assert result.values["fast-overflow"] == "480"
    assert 10 < float(result.values["fast-f-i"]) < 308
    tame = runs.assign(test_f_i=1.0)
    assert failed(missing, "tell_growth", (tame,)) == set(result.held)


@pytest.mark.slow
def test_rules_and_the_gradient():
    cells = tables.fidelity_cells()
    by_rule = cells.pivot_table("distance", ["exhibit", "model", "method"], "rule", sort=False)
    side = by_rule[list(choice.RULES_IN_TABLES)].copy()
    side["closest rule"] = by_rule.idxmin(axis=1)
    side["its distance"] = by_rule.min(axis=1)
    result = told(choice, "tell_rules", side, by_rule)
    assert result.values["n-rows"] == "62"
    one = cells[(cells["exhibit"] == "t4") & (cells["method"] == "DRO-COX")]
    one = one[one["rule"] == "test CI"]
    assert np.isclose(side.loc[("t4", "linear", "DRO-COX"), "test CI"], one["distance"].mean())
    far = (rescaled(side, 100.0), rescaled(by_rule, 100.0))
    assert "all 62 published rows come back within 1 SD" in failed(choice, "tell_rules", far)
    assert len(choice.draw_rules(side).axes) == 1

    stores = {"cut": store.load_runs("forensic"), "full": store.load_runs("as_published")}
    distances = {}
    for kind, runs in stores.items():
        columns = {d.upper(): missing.by_setting(runs, d) for d in chapter.MAIN_ATTRIBUTE}
        distances[kind] = pd.DataFrame(columns)
    distances = pd.concat(distances, axis=1)
    result = told(missing, "tell_gradient", distances, by_rule)
    assert float(result.values["cut-largest"]) < 0.5
    swapped = distances.rename(columns={"cut": "full", "full": "cut"})
    lost = failed(missing, "tell_gradient", (swapped, by_rule), (distances, 100 * by_rule))
    assert lost == set(result.held)


def test_marks():
    marks = pd.DataFrame(
        {
            "mark": ["bold"] * 3 + ["green"] * 2,
            "printed on": ["Cox 1"] * 5,
            "by the means": ["DRO-COX 1"] * 5,
        }
    )
    result = told(choice, "tell_marks", marks)
    assert result.values["bold-wrong"] == "3"
    swapped = marks.rename(columns={"printed on": "by the means", "by the means": "printed on"})
    lost = failed(choice, "tell_marks", (swapped,), (marks.iloc[2:4],))
    assert lost == set(result.held) - {"F_A is the mean of its three parts in all 62 rows"}
