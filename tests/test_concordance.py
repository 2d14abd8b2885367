"""Pair counts against loops over the pairs and scikit-survival, digit for digit."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from leave_one_out import b1_point, harrell_point
from sksurv.metrics import concordance_index_censored

from drocox import accuracy, concordance, fairness
from drocox.cox import risk_sets

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 40)


def draw(seed: int, n: int):
    """Scores, times and events with few or many ties; scores may lie around the tolerance."""
    rng = np.random.default_rng(seed)
    time = rng.integers(0, rng.integers(1, n + 1), n) * 0.25
    event = rng.random(n) < rng.random()
    event[rng.integers(n)] = True
    step = rng.choice([1.0, 0.1, 2e-8, 1e-8, 0.5e-8, 0.3e-8, 1e-9])
    base = rng.choice([0.0, 1.0, -100.3, 1e8])
    return base + rng.integers(0, rng.integers(1, n + 1), n) * step, time, event


def points_and_pairs(scores, time, event, point=b1_point):
    """By the rule for a pair, Algorithm B.1's or Harrell's: points and pairs of each patient."""
    n = len(scores)
    points = np.zeros(n)
    pairs = np.zeros(n)
    for i in range(n):
        for j in range(n):
            found = None if i == j else point(scores, time, event, i, j)
            if found is not None:
                pairs[i] += 1
                points[i] += found
    return points, pairs


# Algorithm B.1 ------------------------------------------------------------------------------


@settings(max_examples=100)
@given(n=sizes, seed=seeds)
def test_counts_of_every_patient_equal_the_pairs(n, seed):
    outcome = draw(seed, n)
    counts = concordance.count(*outcome)
    points, pairs = counts.points, counts.pairs
    expected = points_and_pairs(*outcome)
    assert points.tolist() == expected[0].tolist()
    assert pairs.tolist() == expected[1].tolist()


def test_fractions_are_points_over_pairs_in_the_order_of_the_groups():
    # 3 and 4 have both events first, and the higher scores: every pair is in order but one tie.
    scores, time, event = [1.0, 1.0, 0.0, 3.0, 4.0], [5, 3, 4, 2, 1], [0, 1, 0, 1, 1]
    counts = concordance.count(scores, time, event)
    points, pairs = counts.points, counts.pairs
    assert points.tolist() == [2.5, 3.5, 3.0, 4.0, 4.0]
    assert pairs.tolist() == [3, 4, 3, 4, 4]
    groups = {"sex": list("mmmff"), "site": [9, -1, 9, 9, -1]}
    got = fairness.concordance_fractions(scores, time, event, groups)
    assert list(got) == ["sex", "site"]
    np.testing.assert_allclose(got["sex"], [1.0, 9 / 10])  # f before m
    np.testing.assert_allclose(got["site"], [7.5 / 8, 9.5 / 10])


# Harrell's index ----------------------------------------------------------------------------


@settings(max_examples=100)
@given(n=sizes, seed=seeds)
def test_harrells_counts_equal_scikit_survival(n, seed):
    scores, time, event = draw(seed, n)
    counts = concordance.count(scores, time, event)
    assume(counts.harrell_pairs.any())
    c, concordant, discordant, tied, _ = concordance_index_censored(event, time, scores)
    # each pair is counted with both of its patients
    assert counts.harrell_points.sum() == 2 * concordant + tied
    assert counts.harrell_pairs.sum() == 2 * (concordant + discordant + tied)
    assert accuracy.concordance_index(scores, time, event) == c


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0, 0.0, 0.0], (0, 3)),
        ([2e-9, 1e-9, 0.0], (0, 3)),
        ([1e-8, 0.0, -1e-8], (1, 2)),  # a distance of exactly the tolerance is a tie
        ([1.2e-8, 0.6e-8, 0.0], (1, 2)),  # ties do not pass on: the first and last are apart
        ([0.0, 0.6e-8, 1.2e-8], (0, 2)),
        ([2.2e-8, 1.1e-8, 0.0], (3, 0)),
        ([1.7e308, 0.0, -1.7e308], (3, 0)),  # a difference beyond the largest number
    ],
)
def test_scores_within_the_tolerance_tie_in_harrells_index(scores, expected):
    counts = concordance.count(scores, [1, 2, 3], [1, 1, 0])
    concordant, tied = expected
    assert counts.harrell_points.sum() == 2 * concordant + tied
    assert counts.harrell_pairs.tolist() == [2, 2, 2]


# Strata -------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(n=st.integers(4, 40), strata=st.integers(1, 4), seed=seeds)
def test_with_strata_pairs_are_compared_within_a_stratum_only(n, strata, seed):
    scores, time, event = draw(seed, n)
    labels = np.random.default_rng(seed).choice(["b", "a", "d", "c"][:strata], n)
    counts = concordance.count(scores, time, event, strata=labels)
    points = np.zeros(n)
    pairs = np.zeros(n)
    harrell = np.zeros(2)
    for label in set(labels):
        here = labels == label
        part = scores[here], time[here], event[here]
        points[here], pairs[here] = points_and_pairs(*part)
        harrell += np.sum(points_and_pairs(*part, harrell_point), axis=1)
    assert counts.points.tolist() == points.tolist()
    assert counts.pairs.tolist() == pairs.tolist()
    again = concordance.count(scores, risk_sets(time, event, strata=labels))
    assert again.points.tolist() == points.tolist()
    if harrell[1] == 0:
        with pytest.raises(ValueError, match="no comparable pair"):
            accuracy.concordance_index(scores, time, event, strata=labels)
        return
    index = accuracy.concordance_index(scores, time, event, strata=labels)
    assert index == harrell[0] / harrell[1]
    codes = np.arange(n) % 2
    means = [points[codes == k].sum() / max(pairs[codes == k].sum(), 1) for k in (0, 1)]
    if all(pairs[codes == k].any() for k in (0, 1)):
        imparity = fairness.concordance_imparity(scores, time, event, codes, strata=labels)
        assert imparity == 100 * abs(means[0] - means[1])
        groups = {"sex": codes}
        fractions = fairness.concordance_fractions(scores, time, event, groups, strata=labels)
        assert fractions["sex"].tolist() == means


def test_strata_may_lack_events_but_not_labels():
    scores, time, event = [1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4], [1, 1, 0, 0]
    strata = ["a", "a", "b", "b"]  # nobody of b has an event
    assert concordance.count(scores, time, event, strata=strata).pairs.tolist() == [1, 1, 0, 0]
    with pytest.raises(ValueError, match=r"strata must hold one .* per patient"):
        accuracy.concordance_index(scores, time, event, strata=strata[1:])
    with pytest.raises(TypeError, match="strata: leave it out; pass risk_sets"):
        concordance.count(scores, risk_sets(time, event), strata=strata)


@pytest.mark.parametrize("seed", range(4))
def test_whole_weights_of_the_c_index_are_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    scores, time = rng.integers(0, 9, 40), rng.integers(1, 12, 40)
    event, strata = rng.random(40) < 0.6, rng.integers(0, 1 + seed % 2, 40)
    counts = rng.integers(0, 4, 40)
    repeated = np.repeat(np.arange(40), counts)
    expected = accuracy.concordance_index(
        scores[repeated], time[repeated], event[repeated], strata=strata[repeated]
    )
    got = accuracy.concordance_index(scores, time, event, strata=strata, weights=counts)
    assert got == pytest.approx(expected, rel=1e-14)
    with pytest.raises(ValueError, match="weights hold no comparable pair"):
        accuracy.concordance_index(scores, time, event, weights=np.arange(40) == 3)


# Many patients ------------------------------------------------------------------------------


def test_two_hundred_thousand_patients_need_no_table_of_pairs():
    # too many for a table of all pairs; with perfect scores every pair is in order
    n = 200_000
    time = np.random.default_rng(6).permutation(n).astype(float)
    event = np.ones(n, dtype=bool)
    counts = concordance.count(-time, time, event)
    assert counts.index() == 1.0
    assert (counts.harrell_pairs == n - 1).all()
    assert (counts.points == n - 1).all()


# Forms of input -----------------------------------------------------------------------------


def test_prepared_risk_sets_give_the_same_counts():
    scores, time, event = draw(3, 30)
    expected = concordance.count(scores, time, event)
    got = concordance.count(torch.from_numpy(scores), risk_sets(time, event))
    assert got.points.tolist() == expected.points.tolist()
    assert got.harrell_points.tolist() == expected.harrell_points.tolist()
    lpl = accuracy.log_partial_likelihood(scores, risk_sets(time, event), ties="efron")
    assert lpl == accuracy.log_partial_likelihood(scores, time, event, ties="efron")


def test_bad_input_is_refused_by_name():
    scores, time, event = draw(3, 30)
    risk = risk_sets(time, event)
    with pytest.raises(TypeError, match="either time and event, or risk_sets"):
        concordance.count(scores, risk, event)
    with pytest.raises(TypeError, match="either time and event, or risk_sets"):
        concordance.count(scores, time)
    with pytest.raises(ValueError, match="scores has 29, time has 30"):
        concordance.count(scores[1:], risk)
    with pytest.raises(ValueError, match="risk sets of several data sets; pass those of one"):
        concordance.count(scores, risk_sets([time, time], [event, event]))
    with pytest.raises(ValueError, match="scores holds 1 NaN"):
        concordance.count(np.where(np.arange(30) == 4, np.nan, scores), time, event)
