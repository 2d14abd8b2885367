"""Fairness metrics against literal loops (Algorithm B.1 line by line), by hand, and their traps."""

import literal
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from refused import bad_calls

from drocox import fairness, regularizers

sizes = st.integers(4, 30)
shares = st.sampled_from([0.0, 0.5, 0.8, 0.95, 1.0])  # of tied times
scales = st.sampled_from([1e-6, 1e-2, 1.0, 50.0])
groupings = st.integers(2, 4)
seeds = st.integers(0, 2**32 - 1)


class Patients:
    """n patients with tied times and scores, repeated feature rows and rows of zeros."""

    def __init__(self, seed: int, n: int, share: float = 0.8, scale: float = 1.0, groups: int = 2):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.X, self.time, self.event = literal.random_survival(rng, n, share)
        self.X[rng.random(n) < 0.2] = 0.0
        self.X[rng.random(n) < 0.2] = self.X[0]
        self.scores = rng.integers(0, rng.integers(2, n + 1), n) * 0.1 * scale
        self.hazards = np.exp(self.scores)
        self.codes = rng.permutation(np.arange(n) % groups)
        self.second = rng.permutation(np.arange(n) % 2)
        self.codes_2d = np.column_stack([self.codes, self.second])


# Against literal loops ----------------------------------------------------------------------


@given(
    n=sizes, scale=scales, groups=groupings, seed=seeds, smoothing=st.booleans(),
    gamma=st.sampled_from([0.0, 0.01, 0.3]),
)  # fmt: skip
def test_metrics_of_hazards_equal_the_loops(n, scale, groups, seed, smoothing, gamma):
    patients = Patients(seed, n, scale=scale, groups=groups)
    X, codes, codes_2d = patients.X, patients.codes, patients.codes_2d
    h = patients.hazards * patients.rng.choice([1e-3, 1.0, 100.0])
    got = fairness.individual(h, X, gamma)
    assert type(got) is float
    assert got == pytest.approx(literal.individual_fairness(h, X, gamma), rel=1e-12, abs=1e-14)
    assert fairness.individual(h, regularizers.all_pairs(X, gamma)) == pytest.approx(got, rel=1e-14)
    got = fairness.group(h, codes, smoothing)
    assert type(got) is float
    assert got == pytest.approx(literal.group_fairness(h, codes, smoothing), rel=1e-10, abs=1e-12)
    filled = len(np.unique(codes_2d, axis=0)) == 2 * groups
    if smoothing or filled:
        got = fairness.intersectional(h, codes_2d, smoothing)
        expected = literal.intersectional_fairness(h, codes_2d, smoothing)
        assert type(got) is float
        assert got == pytest.approx(expected, rel=1e-10, abs=1e-12)
    else:
        with pytest.raises(ValueError, match=r"cell of codes_2d.*smoothing=True"):
            fairness.intersectional(h, codes_2d, smoothing)


@settings(max_examples=150)
@given(n=sizes, share=shares, scale=scales, groups=groupings, seed=seeds)
def test_concordance_imparity_equals_the_algorithm(n, share, scale, groups, seed):
    patients = Patients(seed, n, share, scale, groups)
    arguments = (patients.scores, patients.time, patients.event, patients.codes)
    try:
        expected = literal.concordance_imparity(*arguments)
    except ZeroDivisionError:
        with pytest.raises(ValueError, match=r"group of codes has no comparable pair.*merge"):
            fairness.concordance_imparity(*arguments)
        return
    got = fairness.concordance_imparity(*arguments)
    assert type(got) is float and 0 <= got <= 100
    assert got == pytest.approx(expected, abs=1e-10)


@given(n=sizes, share=shares, groups=groupings, seed=seeds)
def test_several_attributes_equal_one_at_a_time(n, share, groups, seed):
    patients = Patients(seed, n, share, groups=groups)
    outcome = (patients.scores, patients.time, patients.event)
    attributes = {"site": patients.codes, "sex": np.where(patients.second, "m", "f")}
    try:
        got = fairness.concordance_fractions(*outcome, attributes)
    except ValueError:
        assume(False)
    assert list(got) == ["site", "sex"]
    for name, codes in attributes.items():
        assert 100 * np.ptp(got[name]) == fairness.concordance_imparity(*outcome, codes)


def test_imparity_of_every_kind_of_pair_by_hand():
    # Times tie in 0-1 (two events), 2-3 (event and censored), 4-5 (two censored). Of every
    # patient's pairs: points / comparable, group a = 0, 1, 2 and group b = 3, 4, 5.
    time, event = [1, 1, 2, 2, 3, 3], [1, 1, 1, 0, 0, 0]
    scores = [5, 5, 4, 4, 6, 1]
    # Patient 0: 1 (tied scores), 1, 1, 0, 1 = 4 of 5; patient 1 the same. Patient 2: loses to
    # nobody above it: 1, 1 with 0 and 1; 1/2 with 3 (not higher); 0, 1 = 3.5 of 5.
    # Patient 3: 1, 1, 1/2 = 2.5 of 3; patient 4: 0, 0, 0 of 3; patient 5: 1, 1, 1 of 3.
    assert fairness.concordance_imparity(scores, time, event, list("aaabbb")) == pytest.approx(
        100 * abs(11.5 / 15 - 5.5 / 9), abs=1e-12
    )
    # Two events at one time with different scores count one half, in both directions.
    assert fairness.concordance_imparity([1, 2, 0], [1, 1, 2], [1, 1, 0], [0, 1, 1]) == (
        pytest.approx(100 * abs(1.5 / 2 - 3.5 / 4), abs=1e-12)
    )
    # An event with a lower score than somebody censored at that time: one half, not zero.
    assert fairness.concordance_imparity([0, 1, -1], [1, 1, 1], [1, 0, 0], [0, 1, 0]) == (
        pytest.approx(100 * abs(2.5 / 3 - 0.5), abs=1e-12)
    )


def test_any_list_array_tensor_or_series_gives_the_same():
    patients = Patients(7, 12)
    h, codes, X = patients.hazards, patients.codes, patients.X
    outcome = (patients.scores, patients.time, patients.event)
    for form in (list, torch.as_tensor, pd.Series):
        assert fairness.group(form(h), form(codes)) == fairness.group(h, codes)
        assert fairness.individual(form(h), X.tolist()) == fairness.individual(h, X)
        got = fairness.intersectional(form(h), torch.from_numpy(patients.codes_2d))
        assert got == fairness.intersectional(h, patients.codes_2d)
        got = fairness.concordance_imparity(*map(form, outcome), form(codes))
        assert got == fairness.concordance_imparity(*outcome, codes)
    leaf = torch.from_numpy(h).requires_grad_()
    assert fairness.group(leaf, codes) == fairness.group(h, codes)
    locked = h.copy()
    locked.flags.writeable = False  # as columns of pandas 3 are; torch would warn of them
    assert fairness.group(locked, codes) == fairness.group(h, codes)
    low = torch.from_numpy(patients.scores).to(torch.bfloat16)
    got = fairness.concordance_imparity(low, *outcome[1:], codes)
    assert got == fairness.concordance_imparity(low.double(), *outcome[1:], codes)


# What must hold -----------------------------------------------------------------------------


@given(n=st.integers(2, 25), seed=seeds, scale=scales)
def test_individual_is_zero_exactly_for_lipschitz_hazards(n, seed, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    h = rng.exponential(size=n) * scale
    rows = np.array(literal.unit_rows(X))
    apart = np.linalg.norm(rows[:, None] - rows, axis=-1) + np.eye(n)
    assume(apart.min() > 1e-6)
    steepest = (np.abs(h[:, None] - h) / apart).max()  # the smallest Lipschitz constant
    assert fairness.individual(h, X, gamma=steepest * (1 + 1e-9)) == 0
    assert fairness.individual(h, X, gamma=steepest * (1 - 1e-6)) > 0
    # Patients alike in direction must have the same hazard, whatever gamma.
    twins = np.vstack([X, 3 * X[:1]])
    assert fairness.individual(np.append(h, h[0]), twins, gamma=steepest * (1 + 1e-6)) == 0
    assert fairness.individual(np.append(h, h[0] + scale), twins, gamma=0.0) > 0


@given(n=sizes, m=st.integers(1, 9), shift=st.floats(-50, 50), seed=seeds)
def test_centred_scores_ignore_a_constant(n, m, shift, seed):
    rng = np.random.default_rng(seed)
    train, test = rng.standard_normal(n), rng.standard_normal(m)
    got = fairness.centred(test, train)
    np.testing.assert_allclose(got, test - sum(train) / n, atol=1e-14)
    np.testing.assert_allclose(fairness.centred(test + shift, train + shift), got, atol=1e-12)
    assert fairness.centred(torch.from_numpy(train), train).mean() == pytest.approx(0, abs=1e-14)


# Bad input ----------------------------------------------------------------------------------

GOOD = {
    "hazards": np.ones(4),
    "X": np.eye(4),
    "scores": np.array([4.0, 3.0, 1.0, 2.0]),
    "time": np.arange(1.0, 5.0),
    "event": np.array([1, 0, 1, 1]),
    "codes": np.array([0, 1, 0, 1]),
    "codes_2d": np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),
    "train_scores": np.zeros(3),
}
CALLS = {
    "individual": ["hazards", "X"],
    "group": ["hazards", "codes"],
    "intersectional": ["hazards", "codes_2d"],
    "concordance_imparity": ["scores", "time", "event", "codes"],
    "centred": ["scores", "train_scores"],
}
BAD = [
    ("hazards", [1.0, np.nan, 1.0, 1.0], "hazards holds 1 NaN or infinite value.*impute or drop"),
    ("hazards", [1.0, -0.5, 1.0, 1.0], r"hazards holds negative values.*; pass exp\(scores\)"),
    ("hazards", np.ones((2, 4)), "hazards must have 1 dimension"),
    ("hazards", np.ones(3), r"lengths differ: hazards has 3|one group label per patient \(3\)"),
    ("scores", [1.0, np.nan, 2.0, 3.0], "scores holds 1 NaN or infinite value"),
    ("train_scores", [np.nan], "train_scores holds 1 NaN"),
    ("time", [1, 2, -1, 4], "time holds negative values; durations start at 0"),
    ("time", [1, 2], "time has 2, event has 4; pass one value per patient"),
    ("event", [1, 0, 3, 1], "event must be 0/1"),
    ("codes", [0, 1, 0], r"codes must hold one group label per patient \(4\)"),
    ("codes", [1, 1, 1, 1], "codes holds a single group.*at least two"),
]


@pytest.mark.parametrize(("function", "name", "value", "message"), bad_calls(CALLS, BAD))
def test_bad_input_is_refused_by_name(function, name, value, message):
    arguments = {**GOOD, name: value}
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(fairness, function)(*(arguments[each] for each in CALLS[function]))


def test_a_bad_attribute_is_named():
    outcome = (GOOD["scores"], GOOD["time"], GOOD["event"])
    with pytest.raises(ValueError, match=r"^race holds a single group"):
        fairness.concordance_fractions(*outcome, {"age": GOOD["codes"], "race": np.zeros(4)})


@pytest.mark.parametrize("function", ["individual", "group", "intersectional"])
def test_huge_hazards_never_give_nan(function):
    other = {"individual": np.eye(4), "group": [0, 1, 0, 1], "intersectional": np.eye(4)[:, :1]}
    try:
        got = getattr(fairness, function)([0.0, 1.7e308, 1.7e308, 1.7e308], other[function])
    except ValueError as error:
        assert "hazards" in str(error)
    else:
        assert np.isfinite(got)


def test_gamma_beside_prepared_pairs_is_refused():
    with pytest.raises((ValueError, TypeError), match="gamma"):
        fairness.individual(GOOD["hazards"], regularizers.all_pairs(GOOD["X"], 0.5), gamma=0.1)
