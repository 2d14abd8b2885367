"""Bootstrap, noise floors, paired differences, budgets and cells of *uncertainty*."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from perturbed import failed, rescaled, told
from scipy import stats

from drocox import accuracy, fairness
from drocox.chapters import uncertainty as chapter
from drocox.chapters import uncertainty_cells as cells
from drocox.chapters import uncertainty_choice as choice
from drocox.chapters import uncertainty_paired as paired
from drocox.paper import claims


def patients(n=40, seed=0):
    """Scores, times with ties, deaths."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n).round(1), rng.integers(1, 12, n).astype(float), rng.random(n) < 0.6


def test_pair_matrices_give_the_metrics_of_the_package():
    f, time, event = patients()
    codes = np.arange(len(f)) % 2
    won, comparable, points, pairs = chapter.pair_matrices(f, time, event)
    c = won.sum() / comparable.sum()
    assert np.isclose(c, accuracy.concordance_index(f, time, event))
    fraction = np.bincount(codes, points.sum(1)) / np.bincount(codes, pairs.sum(1))
    ci = fairness.concordance_imparity(f, time, event, codes)
    assert np.isclose(100 * np.ptp(fraction), ci)
    for matrix in (won, comparable, points, pairs):
        assert not np.diagonal(matrix).any()


def test_hinges_give_individual_fairness():
    f, _, _ = patients()
    X = np.random.default_rng(1).normal(size=(len(f), 3))
    n = len(f)
    total = chapter.hinges(np.exp(f), X).sum() / 2
    assert np.isclose(total / (n * (n - 1)), fairness.individual(np.exp(f), X))


def test_folding():
    names = ["SUPPORT (gender) Cox", "SEER (race) Cox", "a", "b", "c", "d"]
    gaps = pd.DataFrame({"CI": 1.0, "Δ": 0.1, "SE of Δ": 1.0, "mean CI": 1.5}, index=names)
    gaps.loc["SUPPORT (gender) Cox", "Δ"] = -1.2
    result = told(chapter, "tell_folding", gaps)
    assert result.values == {"z-max": "1.2", "seer-ci": "1.0", "seer-mean-ci": "1.5"}
    other = gaps.iloc[1:].copy()
    assert failed(chapter, "tell_folding", (other,)) == set(result.held)


def test_differences_and_their_interval():
    table = chapter.chosen("seer", "race", "ci_percent", "as_published")
    d = paired.differences("seer", "race", "ci_percent", "as_published", "DRO-COX", "linear")
    assert np.allclose(d["Cox"], table["DRO-COX"] - table["Cox"])
    reference = stats.ttest_rel(table["DRO-COX"], table["Cox"]).confidence_interval()
    mine = paired.interval(d, "as_published").loc["Cox"]
    assert np.allclose([mine["mean"] - mine["half"], mine["mean"] + mine["half"]], reference)


@pytest.mark.parametrize("model", paired.BASELINES)
@pytest.mark.parametrize(("dataset", "attribute"), claims.MAIN_PAIRS)
def test_intervals_of_the_published_splits_are_short(dataset, attribute, model):
    """As the chapter says of its first picture: beside those of the corrected protocol."""
    half = {}
    for protocol in ("as_published", "corrected"):
        gap = f"ci_signed_{attribute}"
        apart = paired.differences(dataset, attribute, gap, protocol, paired.DRO[model][0], model)
        half[protocol] = paired.interval(apart, protocol)["half"]
    assert (half["as_published"] < half["corrected"]).all()


def test_words_of_comparisons():
    words = paired.against_best("corrected", "ci_percent", claims.DRO_COX)
    assert words["support age linear"] == "better"
    assert (words != "undecided").sum() == 1
    lead = claims.leads("corrected", metric="c_index", pairs=claims.PAIRS, ours=claims.DRO_COX)
    words = paired.against_best("corrected", "c_index", claims.DRO_COX)
    assert list(words.index[words == "worse"]) == list(lead.index[lead["mean"] < -lead["half"]])


def test_power():
    power = pd.DataFrame({"printed": [0.1, 0.3], "half": [1.0, 2.0], "detectable": [1.5, 3.0]})
    result = told(paired, "tell_power", power)
    assert result.values["printed-lead"] == "0.10 to 0.30"
    large = power.assign(printed=5.0)
    assert failed(paired, "tell_power", (large,)) == set(result.held)


def test_taken_counts_subsets():
    for m, k in ((9, 3), (5, 5), (4, 1), (3, 18)):
        chances = choice.taken(m, k)
        subsets = list(combinations(range(m), min(k, m)))
        first = np.bincount([min(s) for s in subsets], minlength=m) / len(subsets)
        assert np.allclose(chances, first)


def test_a_choice_at_random():
    values = np.array([[1.0, 2.0, 6.0], [5.0, 7.0, 9.0]])
    eligible = np.array([[True, True, False], [False, False, False]])
    assert choice.at_random(values, eligible).tolist() == [1.5, 5.0]
    grid = (values, values, eligible)
    assert choice.outcome(grid, "random") == 3.25
    assert choice.outcome(grid, 18) == 3.0


def test_leave_one_out_by_a_loop():
    rng = np.random.default_rng(0)
    h, codes = rng.random(20), rng.integers(0, 2, (20, 2))
    cell = codes @ [2, 1]
    value, without = cells.leave_one_out(h, cell, 1)
    assert np.isclose(value, fairness.intersectional(h, codes))
    for i, expected in zip(np.flatnonzero(cell == 1), without, strict=True):
        rest = fairness.intersectional(np.delete(h, i), np.delete(codes, i, axis=0))
        assert np.isclose(rest, expected)


def test_cells_in_words():
    groups = {"age": np.array([0, 1]), "gender": np.array([1, 0])}
    assert cells.cell_names(groups).tolist() == ["up to 65, men", "over 65, women"]


@pytest.mark.slow
def test_budgets_of_the_real_stores():
    grids = choice.ranked_grids()
    at_budget = choice.at_budgets(grids)
    summary = choice.by_kind(grids, at_budget)
    won = choice.wins_of_dro(at_budget)
    result = told(choice, "tell_budgets", summary, at_budget, won)
    assert result.values["dro-18"] == f"{summary.loc[('corrected', 'DRO-COX'), 18]:.2f}"
    told(choice, "tell_optimism", grids)
    other = (rescaled(summary, 1.0, 5.0), rescaled(at_budget, -1.0), rescaled(won, -1.0))
    assert failed(choice, "tell_budgets", other)
    told(paired, "tell_all_pairs")
