"""The search for badly served groups that nobody named."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from cohort import simulated
from leave_one_out import EACH_KIND, concordance, drawn, harrell_point, left_out, points_and_pairs

import drocox
from drocox import heldout
from drocox.auditing import slices
from drocox.heldout import HeldOut

by_harrell = partial(concordance, point=harrell_point)


def counted(patients):
    """Points and pairs of each patient by Harrell's rules, by a loop."""
    everybody = np.full(len(patients.time), True)
    rows = range(len(everybody))
    return np.array([points_and_pairs(patients, i, everybody, harrell_point) for i in rows])


@pytest.mark.parametrize("seed", EACH_KIND)
def test_slices_are_compared_with_others_of_similar_scores(seed):
    data, patients = drawn(seed)
    members = data.groups["sex"] == 1
    half = (patients.scores > np.median(patients.scores)).astype(float)
    pairs = np.bincount(half[members].astype(int), counted(patients)[members, 1], minlength=2)
    expected = by_harrell(patients, members)
    exact = left_out(by_harrell, patients, members)
    for k in (0, 1):
        if pairs[k]:
            others = ~members & (half == k)
            expected -= pairs[k] / pairs.sum() * by_harrell(patients, others)
            exact = exact - pairs[k] / pairs.sum() * left_out(by_harrell, patients, others)
    estimate = slices._less_like_scores(patients, members, half)
    assert estimate.value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(estimate.without, exact, atol=1e-12)


@pytest.mark.parametrize("seed", EACH_KIND)
def test_leaf_values_are_means_weighted_by_pairs(seed):
    data, patients = drawn(seed)
    points, pairs = counted(patients).T
    half = patients.scores > np.median(patients.scores)
    usual = np.empty(len(data))
    for like in (half, ~half):
        usual[like] = points[like].sum() / pairs[like].sum()
    excess = np.where(pairs > 0, usual - points / np.maximum(pairs, 1), 0)
    X = np.column_stack([data.groups["site"], data.groups["sex"]])
    tree = slices.grow_tree(patients.harrell_pairs, half, X, leaves=3)
    leaf = tree.apply(X)
    for node in np.unique(leaf):
        mean = np.average(excess[leaf == node], weights=pairs[leaf == node])
        assert tree.tree_.value.ravel()[node] == pytest.approx(mean, abs=1e-12)


def test_slices_impute_medians_of_the_half_that_finds_them(monkeypatch):
    rng = np.random.default_rng(0)
    n = 200
    event = rng.random(n) < 0.7
    finding = heldout.assign_folds(event, 2, seed=0) == 0
    x = np.where(finding, 1.0, 5.0) + rng.random(n)
    x[::10] = np.nan
    X = pd.DataFrame({"x": x, "none": np.nan})
    seen = []
    grow_tree = slices.grow_tree

    def watched(of_each, tenth, features, leaves):
        seen.append(features)
        return grow_tree(of_each, tenth, features, leaves)

    monkeypatch.setattr(slices, "grow_tree", watched)
    patients = HeldOut(rng.standard_normal(n), rng.random(n), event, np.zeros(n, int))
    slices.find_slices(patients, X)
    (features,) = seen
    median = np.nanmedian(x[finding])
    assert median < 2 < np.nanmedian(x)
    np.testing.assert_array_equal(features[:, 0], np.where(np.isnan(x), median, x)[finding])
    assert (features[:, 1] == 0).all()


def test_a_planted_group_is_found_and_judged_on_others():
    data, scores = simulated(n=2000, minority=0.25, effects=(-0.8, -0.5, 0))
    found = drocox.audit(data, scores, features=list(data.X)).slices
    worst = found.iloc[0]
    assert worst["group"].startswith("member = 1")
    assert worst["high"] < 0 and worst["says"] == "differ"
    assert 0 < worst["patients"] < 0.35 * 1000  # of one half
    assert (found["noise_floor"] > 0).all()


def searched(data, scores):
    """The groups that the search finds, without the rest of an audit."""
    patients = HeldOut(scores, data.time, data.event, np.zeros(len(data), int))
    return slices.find_slices(patients, data.X)


def test_nothing_is_found_where_the_scores_say_all():
    alarms = 0
    for seed in range(5):
        data, scores = simulated(seed, n=800, effects=(0.8, 0.5, 0))
        alarms += (searched(data, scores)["says"] == "differ").any()
    assert alarms <= 1


@pytest.mark.parametrize("kind", ["constant", "noise"])
def test_nothing_is_found_in_scores_that_say_nothing_where_times_are_coarse(kind):
    """Ties in time alone make no group badly served."""
    alarms = 0
    for seed in range(5):
        data, _ = simulated(seed, n=600)
        noise = np.random.default_rng(seed).standard_normal(len(data))
        scores = noise if kind == "noise" else np.zeros(len(data))
        quarters = replace(data, time=np.ceil(4 * data.time) / 4)
        found = searched(quarters, scores)
        alarms += (found["says"] == "differ").any()
        assert kind == "noise" or found.empty
    assert alarms <= 1


def test_only_leaves_worse_than_patients_with_like_scores_are_tested():
    """A better served group is a leaf, too, but no finding, whatever else is found."""
    for seed in range(3):
        data, scores = simulated(seed, n=600, effects=(0.8, 0.5, 0))
        patients = HeldOut(scores, data.time, data.event, np.zeros(600, int))
        found = slices.find_slices(patients, data.X)
        half = heldout.assign_folds(data.event, 2, seed=0) == 0
        rank = pd.Series(scores).rank(pct=True)
        tenth = np.ceil(10 * rank).to_numpy()[half]
        X = data.X[half].to_numpy()
        of_each = patients.subset(half).harrell_pairs
        tree = slices.grow_tree(of_each, tenth, X, slices.LEAVES)
        leaves = dict(slices.describe_leaves(tree.tree_, data.X))
        worse = [name for k, name in leaves.items() if tree.tree_.value.ravel()[k] > 0]
        assert 0 < len(worse) < len(leaves)
        assert set(found["group"]) <= set(worse) and len(found) == min(3, len(worse))


def test_a_found_group_is_described_by_its_features():
    data, scores = simulated(n=1500, minority=0.3, effects=(-0.8, -0.5, 0))
    X = data.X.rename(columns={"member": "arm=B", "a": "dose"})
    X.loc[::7, "dose"] = np.nan
    names = searched(replace(data, X=X), scores)["group"]
    assert names[0].startswith("arm=B") and not names.str.contains("0.5").any()


def test_a_feature_in_units_of_any_size_is_searched():
    data, scores = simulated(n=800, minority=0.3, effects=(-0.8, -0.5, 0))
    X = data.X.assign(huge=1e39 * (1 + data.X["a"]), member=1e39 * data.X["member"])
    names = drocox.audit(replace(data, X=X), scores, features=list(X)).slices["group"]
    assert names[0].startswith("member > ")
