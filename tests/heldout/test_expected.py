"""The c-index that predictions lead one to expect: against loops over pairs, refits."""

from dataclasses import replace

import numpy as np
import pytest
from leave_one_out import drawn
from scipy import special
from scipy.optimize import brentq
from test_uno_and_slope import patients_and_group, value_without_each

from drocox.heldout import HeldOut, expected
from drocox.heldout.intervals import half_width


def compared(patients, members):
    """The pairs that Harrell's c-index compares among members, the event first."""
    for i in np.flatnonzero(members & patients.event):
        for j in np.flatnonzero(members & (patients.fold == patients.fold[i])):
            later = patients.time[j] > patients.time[i]
            if later or (patients.time[j] == patients.time[i] and not patients.event[j]):
                yield i, j


def literal_slope(patients, pairs):
    """Logistic regression of the order of events on differences of scores, without intercept."""
    apart = np.array([patients.scores[i] - patients.scores[j] for i, j in pairs])
    return brentq(lambda b: (apart * special.expit(-b * apart)).sum(), -9, 9, xtol=1e-14)


def kept(patients):
    """Everybody's pairs without each two patients."""
    everybody = np.full(len(patients.time), True)
    pairs = list(compared(patients, everybody))
    return lambda i, j: [pair for pair in pairs if i not in pair and j not in pair]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_slope_and_expected_c_index_equal_loops_over_pairs(seed, exact, monkeypatch):
    """Ties in times and scores, one to three folds; with few different scores a grid is exact."""
    data, patients = drawn(seed)
    monkeypatch.setattr(expected, "EXACT", 1000 if exact else 0)
    members = data.groups["site"] == 0
    everybody = np.full(len(data), True)
    arrays = patients.scores, patients.time, patients.event, patients.fold
    slope, without = expected.pair_slope(*arrays)
    assert slope == pytest.approx(literal_slope(patients, compared(patients, everybody)), rel=1e-9)
    sums = np.zeros(len(data))
    total = []
    for i, j in compared(patients, members):
        apart = abs(patients.scores[i] - patients.scores[j])
        value = special.expit(slope * apart) if apart > 1e-8 else 0.5
        change = apart * value * (1 - value)
        # each pair by the slope without its two patients, to first order
        total.append(value + (without[i] + without[j] - 2 * slope) * change)
        sums[[i, j]] += value
    of_pairs = patients.alone(members).implied_pairs(slope)[:, 0]
    np.testing.assert_allclose(of_pairs, sums[members], rtol=1e-10)
    found = patients.c_expected(members)
    assert found.value == pytest.approx(np.mean(total), rel=1e-10)
    difference = patients.c_minus_expected(members)
    apart = patients.c_index(members).value - found.value
    assert difference.value == pytest.approx(apart, rel=1e-12)


def test_each_pair_has_the_slope_without_its_two_patients():
    """To first order: against a slope refitted for every pair."""
    patients, members = patients_and_group(0, n=60)
    without = kept(patients)
    total = []
    for i, j in compared(patients, members):
        slope = literal_slope(patients, without(i, j))
        total.append(special.expit(slope * abs(patients.scores[i] - patients.scores[j])))
    assert patients.c_expected(members).value == pytest.approx(np.mean(total), abs=1e-3)
    in_sample = literal_slope(patients, without(-1, -1))
    every = [abs(patients.scores[i] - patients.scores[j]) for i, j in compared(patients, members)]
    naive = special.expit(in_sample * np.array(every)).mean()
    assert abs(np.mean(total) - naive) > 2 * abs(
        np.mean(total) - patients.c_expected(members).value
    )


@pytest.mark.parametrize("seed", range(3))
def test_leaving_out_an_outlier_changes_the_slope_nearly_as_a_refit_does(seed):
    """A high score that lives longest carries most of the information, which goes with it."""
    patients, _ = patients_and_group(seed, n=60)
    far = np.flatnonzero(~patients.event)[0]
    scores, time = patients.scores.copy(), patients.time.copy()
    scores[far], time[far] = 4 * np.abs(scores).max(), 1.5 * time.max()
    patients = replace(patients, scores=scores, time=time)
    slope, without = expected.pair_slope(scores, time, patients.event, patients.fold)
    refit = literal_slope(patients, kept(patients)(far, far))
    assert 0.6 < (without[far] - slope) / (refit - slope) < 1.1


@pytest.mark.parametrize("seed", range(2))
def test_leave_one_out_values_approximate_refits(seed):
    """They include the change of everybody's slope, so that patients of other groups count."""
    patients, members = patients_and_group(seed, n=200)
    exact = value_without_each("c_minus_expected", patients, members)
    without = patients.c_minus_expected(members).without
    for rows in (members, ~members):
        assert np.corrcoef(without[rows], exact[rows])[0, 1] > 0.99
        assert without[rows].std() == pytest.approx(exact[rows].std(), rel=0.1)


@pytest.mark.parametrize("outlier", [None, 30.0])
def test_a_grid_keeps_to_its_bound(outlier, monkeypatch):
    rng = np.random.default_rng(0)
    n = 400
    scores = rng.standard_normal(n)
    if outlier:
        scores[7] = outlier
    time = np.ceil(40 * rng.exponential(np.exp(-scores)))
    event = rng.random(n) < 0.5
    arrays = scores, time, event, np.zeros(n, int)
    slope, _ = expected.pair_slope(*arrays)
    exact = expected.pair_sums(*arrays, slope)[:, 0]
    monkeypatch.setattr(expected, "EXACT", 0)
    binned = expected.pair_sums(*arrays, slope)[:, 0]
    assert expected.pair_slope(*arrays)[0] == pytest.approx(slope, rel=3e-3)
    nodes = expected.grid(scores)
    assert len(nodes) <= expected.NODES < n
    cell = np.clip(np.searchsorted(nodes, scores, side="right") - 1, 0, len(nodes) - 2)
    width = np.diff(nodes)[cell]
    bound = np.zeros(n)
    patients = HeldOut(*arrays)
    for i, j in compared(patients, np.full(n, True)):
        error = slope**2 * (width[i] ** 2 + width[j] ** 2) / (48 * np.sqrt(3))
        error += slope * width[i] / 8 * (cell[i] == cell[j])
        bound[[i, j]] += error
    assert (np.abs(binned - exact) <= bound).all()
    pairs = patients.harrell_pairs[:, 1].sum()
    assert bound.sum() / pairs < 1e-3
    # nodes between an outlier and the others serve nobody
    assert abs(binned.sum() - exact.sum()) / pairs < (2e-4 if outlier else 3e-5)


# The published formula ----------------------------------------------------------------------


def test_without_censoring_it_is_model_based_concordance():
    """Gönen and Heller (2005), van Klaveren and others (2016): the mean over all pairs of a group.

    Theirs takes the log-hazards as they are, ours with one slope for everybody.
    """
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1.2, 700)
    outcomes = rng.exponential(np.exp(-scores)), np.full(700, True), np.zeros(700, int)
    patients = HeldOut(scores, *outcomes)
    slope, _ = patients._pair_slope
    for members in (np.full(700, True), scores > 0.3):
        one, two = (scores[members][k] for k in np.triu_indices(members.sum(), 1))
        published = special.expit(slope * np.abs(one - two)).mean()
        sums = patients.alone(members).implied_pairs(slope)[:, 0]
        assert sums.sum() / 2 / len(one) == pytest.approx(published, rel=1e-12)
        assert patients.c_expected(members).value == pytest.approx(published, abs=2e-3)


# What it sees -------------------------------------------------------------------------------


def simulated_groups(seed, n, censoring, truth, shown=1.0, distinct=None):
    """Two groups, a tenth with alike patients; ``truth`` gives log-hazards by score and group."""
    rng = np.random.default_rng(seed)
    few = rng.random(n) < 0.1
    scores = rng.normal(0, np.where(few, 0.3, 1.2))
    death = rng.exponential(np.exp(-truth(scores, few, rng)))
    leaves = rng.exponential(censoring, n)
    time = np.minimum(death, leaves)
    if distinct:
        time = np.ceil(distinct * time)
    return HeldOut(shown * scores, time, death <= leaves, np.zeros(n, int)), few


@pytest.mark.parametrize("distinct", [None, 5])
@pytest.mark.parametrize("censoring", [1.0, 0.1])
def test_a_perfect_model_ranks_as_expected_in_groups_with_a_gap(censoring, distinct):
    """Whatever the censoring, and with times in coarse units."""
    values = []
    for seed in range(12):
        patients, few = simulated_groups(
            seed, 1500, censoring, lambda f, few, rng: f, distinct=distinct
        )
        gap = patients.c_index(~few).value - patients.c_index(few).value
        both = [patients.c_minus_expected(group).value for group in (few, ~few)]
        values.append([gap, *both])
    gap, of_few, of_others = np.mean(values, axis=0)
    assert gap > 0.1
    assert abs(of_others) < 0.004 and abs(of_few) < 0.03


def test_one_scale_for_everybody_changes_nothing():
    shrunken, few = simulated_groups(0, 800, 1.0, lambda f, few, rng: f, shown=0.3)
    plain, _ = simulated_groups(0, 800, 1.0, lambda f, few, rng: f)
    for group in (few, ~few):
        one, two = shrunken.c_minus_expected(group), plain.c_minus_expected(group)
        assert one.value == pytest.approx(two.value, abs=1e-6)


def test_a_group_for_which_the_model_is_wrong_is_ranked_worse_than_expected():
    patients, few = simulated_groups(0, 4000, 1.0, lambda f, few, rng: np.where(few, -f, f))
    found = patients.c_minus_expected(few)
    assert found.value + half_width(found.without) < 0
    assert abs(patients.c_minus_expected(~few).value) < 0.01


def test_a_constant_score_ranks_by_chance_as_expected():
    patients, few = simulated_groups(0, 500, 1.0, lambda f, few, rng: f, shown=0.0)
    assert patients.c_expected(few).value == 0.5
    found = patients.c_minus_expected(few)
    assert found.value == 0 and not np.ptp(found.without)


def test_scores_that_order_events_perfectly_have_no_slope():
    time = np.arange(1.0, 31)
    patients = HeldOut(-time, time, np.full(30, True), np.zeros(30, int))
    assert np.isnan(patients.c_expected(time > 10).value)


def test_the_order_of_rows_makes_no_difference():
    patients, few = simulated_groups(3, 1500, 1.0, lambda f, few, rng: f)
    rows = np.random.default_rng(0).permutation(1500)
    one = patients.c_minus_expected(few)
    two = patients.subset(rows).c_minus_expected(few[rows])
    assert one.value == pytest.approx(two.value, abs=1e-9)
    np.testing.assert_allclose(one.without[rows], two.without, atol=1e-9)
