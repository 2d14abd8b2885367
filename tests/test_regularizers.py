"""The five fairness penalties against literal loops, finite differences, and what must hold."""

import literal
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from refused import bad_calls
from torch.autograd import gradcheck

from drocox import regularizers

sizes = st.integers(4, 30)
shares = st.sampled_from([0.0, 0.5, 0.8, 1.0])  # of tied times
gammas = st.sampled_from([0.0, 0.01, 0.5, 3.0])
scales = st.sampled_from([1e-6, 1e-2, 1.0, 50.0, 1e4])
groupings = st.integers(2, 4)
seeds = st.integers(0, 2**32 - 1)
NAMES = ("individual_keya", "individual_rp", "group_rp", "group_keya", "intersectional_keya")


class Patients:
    """n patients with tied times, tied hazards, repeated feature rows and rows of zeros."""

    def __init__(self, seed: int, n: int, share: float = 0.8, scale: float = 1.0, groups: int = 2,
                 shape: tuple = ()):  # fmt: skip
        rng = np.random.default_rng(seed)
        self.rng, self.n = rng, n
        self.X, self.time, self.event = literal.random_survival(rng, n, share)
        self.X[rng.random(n) < 0.2] = 0.0
        self.X[rng.random(n) < 0.3] = self.X[-1]
        self.event[rng.permutation(n)[:2]] = [True, False]
        hazards = np.exp(rng.standard_normal((*shape, n)))
        self.hazards = np.where(rng.random(n) < 0.5, hazards, hazards.round(1)) * scale
        labels = rng.choice(np.arange(100), groups, replace=False)
        self.codes = labels[rng.permutation(np.arange(n) % groups)]
        self.codes_2d = np.column_stack([self.codes, rng.permutation(np.arange(n) % 2)])

    def penalty(self, name: str, hazards=None, gamma: float = 0.01):
        hazards = torch.as_tensor(self.hazards if hazards is None else hazards)
        pairs = {"gamma": gamma}
        return {
            "individual_keya": lambda h: regularizers.individual_keya(h, self.X, **pairs),
            "individual_rp": lambda h: regularizers.individual_rp(
                h, self.X, self.time, self.event, **pairs),
            "group_rp": lambda h: regularizers.group_rp(
                h, self.X, self.time, self.event, self.codes, **pairs),
            "group_keya": lambda h: regularizers.group_keya(h, self.codes),
            "intersectional_keya": lambda h: regularizers.intersectional_keya(h, self.codes_2d),
        }[name](hazards)  # fmt: skip

    def literal(self, name: str, hazards, gamma: float = 0.01) -> float:
        outcome = (self.time, self.event)
        return {
            "individual_keya": lambda h: literal.individual_fairness(h, self.X, gamma),
            "individual_rp": lambda h: literal.penalty_rp(
                h, self.X, *outcome, np.zeros(self.n), gamma),
            "group_rp": lambda h: literal.penalty_rp(h, self.X, *outcome, self.codes, gamma),
            "group_keya": lambda h: literal.group_fairness(h, self.codes),
            "intersectional_keya": lambda h: literal.intersectional_fairness(h, self.codes_2d),
        }[name](hazards)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@given(n=sizes, share=shares, scale=scales, gamma=gammas, groups=groupings, seed=seeds)
def test_penalties_equal_the_loops(name, n, share, scale, gamma, groups, seed):
    patients = Patients(seed, n, share, scale, groups)
    got = patients.penalty(name, gamma=gamma)
    expected = patients.literal(name, patients.hazards, gamma)
    assert got.shape == ()
    small = min(scale, 1.0) if name in NAMES[:3] else 1.0  # smoothed means are never small
    assert float(got) == pytest.approx(expected, rel=1e-10, abs=1e-10 * small)


@pytest.mark.parametrize("name", NAMES)
@given(
    shape=st.sampled_from([(1,), (3,), (2, 3)]), n=sizes, share=shares, groups=groupings,
    seed=seeds, gamma=gammas,
)  # fmt: skip
def test_a_stack_equals_its_rows(name, shape, n, share, groups, seed, gamma):
    patients = Patients(seed, n, share, groups=groups, shape=shape)
    hazards = torch.from_numpy(patients.hazards).requires_grad_()
    got = patients.penalty(name, hazards, gamma)
    assert got.shape == shape
    upstream = torch.from_numpy(patients.rng.standard_normal(shape))
    got.backward(upstream)
    for at in np.ndindex(shape):
        row = torch.from_numpy(patients.hazards[at].copy()).requires_grad_()
        alone = patients.penalty(name, row, gamma)
        assert torch.allclose(alone, got[at], rtol=1e-12, atol=1e-12)
        alone.backward(upstream[at])
        assert torch.allclose(row.grad, hazards.grad[at], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(n=st.integers(4, 12), share=shares, gamma=gammas, groups=groupings, seed=seeds)
def test_gradients_equal_finite_differences(name, n, share, gamma, groups, seed):
    patients = Patients(seed, n, share, groups=groups)
    hazards = np.exp(patients.rng.standard_normal(n))  # distinct, and away from kinks:
    gaps = np.abs(hazards[:, None] - hazards) + np.eye(n)
    rows = np.array(literal.unit_rows(patients.X))
    margins = gamma * np.linalg.norm(rows[:, None] - rows, axis=-1)
    assume(gaps.min() > 1e-4 and np.abs(gaps - margins).min() > 1e-4)
    for codes, whole in ((patients.codes, True), (patients.codes_2d, False)):
        _, cell = np.unique(codes, axis=0, return_inverse=True)
        means = (np.bincount(cell, hazards) + 0.5) / (np.bincount(cell) + 1)
        far = np.sort(np.abs(means - hazards.mean()) if whole else means)
        assume(np.diff(far).min() > 1e-4)
    leaf = torch.from_numpy(hazards).requires_grad_()
    assert gradcheck(lambda h: patients.penalty(name, h, gamma), leaf)


@settings(max_examples=100)
@given(n=sizes, share=shares, scale=scales, gamma=gammas, groups=groupings, seed=seeds)
def test_hinge_gradient_equals_the_pairs(n, share, scale, gamma, groups, seed):
    """Every active pair pushes its larger hazard up by one and its smaller one down.

    Scales from far below to far above the margins: near and far pairs are counted differently.
    """
    patients = Patients(seed, n, share, scale, groups)
    X, time, event, codes, h = (
        patients.X, patients.time, patients.event, patients.codes, patients.hazards
    )  # fmt: skip
    rows = literal.unit_rows(X)
    sets = {
        "all": (regularizers.all_pairs(X, gamma), lambda i, j: i < j, n * (n - 1)),
        "censored and event": (
            regularizers.censored_event_pairs(X, time, event, gamma=gamma),
            lambda i, j: not event[i] and event[j] and time[i] <= time[j],
            (~event).sum() * event.sum(),
        ),
        "of one group": (
            regularizers.censored_event_pairs(X, time, event, codes, gamma),
            lambda i, j: not event[i] and event[j] and time[i] <= time[j] and codes[i] == codes[j],
            (~event).sum() * event.sum(),
        ),
    }
    for pairs, meets, divisor in sets.values():
        assert pairs.divisor == divisor and pairs.n == n
        expected, number = np.zeros(n), 0
        for i in range(n):
            for j in range(n):
                if meets(i, j):
                    number += 1
                    # A margin computed in another order may differ in its last digit.
                    gap = abs(h[i] - h[j])
                    margin = gamma * np.linalg.norm(np.subtract(rows[i], rows[j]))
                    assume(gap == margin == 0 or abs(gap - margin) > 1e-12)
                    sign = np.sign(h[i] - h[j]) * (gap > margin)
                    expected[i] += sign
                    expected[j] -= sign
        assert len(pairs.margin) == number
        got = regularizers.hinge_gradient(torch.from_numpy(h), pairs)
        np.testing.assert_allclose(got, expected / divisor, rtol=1e-14)
        leaf = torch.from_numpy(h.copy()).requires_grad_()
        regularizers.hinge_penalty(leaf, pairs).backward()
        assert torch.equal(leaf.grad, got)


@given(
    n=st.integers(15, 50), spacing=st.floats(0.3, 2.5), gamma=st.sampled_from([0.01, 0.5]),
    seed=seeds,
)  # fmt: skip
def test_opposite_patients_may_differ_by_twice_gamma(n, spacing, gamma, seed):
    """Hazards in even steps around the widest margin, of patients who point two opposite ways."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], n)
    h = rng.permutation(n) * spacing * gamma + 1.0
    gaps = h[:, None] - h
    margins = gamma * np.abs(side[:, None] - side)
    assume(np.abs(np.abs(gaps) - margins + np.eye(n)).min() > 1e-9)
    expected = (np.sign(gaps) * (np.abs(gaps) > margins)).sum(1) / (n * (n - 1))
    pairs = regularizers.all_pairs(side[:, None] * [1.0, -2.0, 0.5], gamma)
    got = regularizers.hinge_gradient(torch.from_numpy(h), pairs)
    np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("name", NAMES)
@given(n=sizes, share=shares, groups=groupings, seed=seeds)
def test_row_order_and_names_of_groups_are_irrelevant(name, n, share, groups, seed):
    patients = Patients(seed, n, share, groups=groups)
    before = float(patients.penalty(name))
    rows = patients.rng.permutation(n)
    for key in ("X", "time", "event", "hazards", "codes", "codes_2d"):
        setattr(patients, key, getattr(patients, key)[rows])
    patients.codes = np.char.add("group ", patients.codes.astype(str))
    patients.codes_2d = np.column_stack([patients.codes, -patients.codes_2d[:, 1]])
    assert float(patients.penalty(name)) == pytest.approx(before, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_equal_hazards_are_fair_and_gradients_stay_finite(name):
    patients = Patients(2, 20)
    hazards = torch.ones(20, dtype=torch.float64, requires_grad=True)
    value = patients.penalty(name, hazards)
    value.backward()
    assert torch.isfinite(hazards.grad).all()
    if name in ("group_keya", "intersectional_keya"):  # smoothing pulls means towards 1/2
        assert value.item() == pytest.approx(patients.literal(name, np.ones(20)), abs=1e-14)
    else:
        assert value.item() == 0


@pytest.mark.parametrize("name", NAMES)
def test_dtype_is_kept(name):
    patients = Patients(4, 25)
    exact = patients.penalty(name)
    low = torch.from_numpy(patients.hazards).float().requires_grad_()
    got = patients.penalty(name, low)
    got.backward()
    assert exact.dtype == torch.float64
    assert got.dtype == low.grad.dtype == torch.float32
    assert float(got.detach()) == pytest.approx(float(exact), rel=1e-5)


def test_penalties_of_two_patients_by_hand():
    X, h = [[3.0, 0.0], [0.0, 0.1]], torch.tensor([1.0, 4.0], dtype=torch.float64)
    root = np.sqrt(2)  # distance of the unit rows
    assert float(regularizers.individual_keya(h, X, gamma=0.5)) == pytest.approx(
        (3 - 0.5 * root) / 2, abs=1e-15
    )
    got = regularizers.individual_rp(h, X, [1, 1], [0, 1], gamma=0.5)
    assert float(got) == pytest.approx(3 - 0.5 * root, abs=1e-15)
    assert float(regularizers.individual_rp(h, X, [2, 1], [0, 1])) == 0  # the event came earlier
    assert float(regularizers.group_rp(h, X, [1, 1], [0, 1], ["a", "b"])) == 0
    assert float(regularizers.group_keya(h, [0, 1])) == pytest.approx(max(2.5 - 0.75, 0.25))
    assert float(regularizers.group_keya(h, [0, 1], smoothing=False)) == pytest.approx(1.5)
    got = regularizers.intersectional_keya(h, [[0], [1]])
    assert float(got) == pytest.approx(np.log(2.25 / 0.75), abs=1e-15)
    got = regularizers.intersectional_keya(h, [[0], [1]], smoothing=False)
    assert float(got) == pytest.approx(np.log(4), abs=1e-15)


def test_empty_cells_of_the_product_count_when_smoothed():
    hazards = torch.tensor([9.5, 9.5, 9.5], dtype=torch.float64)
    codes_2d = [[0, 0], [0, 1], [1, 0]]  # nobody in (1, 1): its smoothed mean is 1/2
    got = regularizers.intersectional_keya(hazards, codes_2d)
    assert float(got) == pytest.approx(np.log(5 / 0.5), abs=1e-15)


# Bad input ----------------------------------------------------------------------------------

GOOD = {
    "hazards": torch.ones(4, dtype=torch.float64),
    "X": np.eye(4),
    "time": np.arange(1.0, 5.0),
    "event": np.array([1, 0, 1, 0]),
    "codes": np.array([0, 0, 1, 1]),
    "codes_2d": np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),
}
CALLS = {
    "individual_keya": ["hazards", "X"],
    "individual_rp": ["hazards", "X", "time", "event"],
    "group_rp": ["hazards", "X", "time", "event", "codes"],
    "group_keya": ["hazards", "codes"],
    "intersectional_keya": ["hazards", "codes_2d"],
}
BAD = [
    ("hazards", [1.0, np.nan, 1.0, 1.0], "hazards holds NaN or infinite values; check"),
    ("hazards", [], "hazards is empty; pass"),
    ("hazards", torch.ones(5), r"hazards has 5.*one hazard per patient|one group label.*\(5\)"),
    ("X", np.full((4, 2), np.nan), "X holds 8 NaN or infinite value.*impute or drop"),
    ("X", np.eye(3), "lengths differ: .*X has 3.*; pass one"),
    ("X", np.ones(4), "X must have 2 dimension"),
    ("time", [1, 2, -3, 4], "time holds negative values; durations start at 0"),
    ("time", [1, 2], "time has 2, event has 4; pass one value per patient"),
    ("event", [1, 0, 2, 0], "event must be 0/1"),
    ("event", [1, 1, 1, 1], "nobody is censored .*event is all 1.*compares"),
    ("codes", [0, 1], r"codes must hold one group label per patient \(4\)"),
    ("codes", [0, 0, 0, 0], "codes holds a single group.*at least two"),
    ("codes", [0, np.nan, 1, 1], "codes holds (NaN|missing).*; give every patient"),
    ("codes", np.array(["a", np.nan, "b", "b"], dtype=object), "codes holds"),
    ("codes", np.array(["a", None, "b", "b"], dtype=object), "codes holds"),
    ("codes_2d", [0, 0, 1, 1], r"codes_2d must have shape .*; stack"),
    ("codes_2d", np.zeros((4, 0)), "codes_2d"),
    ("codes_2d", np.eye(3), r"codes_2d must hold one group label per patient \(4\)"),
    ("codes_2d", np.eye(4)[:, :1] * 0, "codes_2d holds a single group"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "name", "value", "message"), bad_calls(CALLS, BAD))
def test_bad_input_is_refused_by_name(function, name, value, message):
    arguments = {**GOOD, name: value}
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(regularizers, function)(*(arguments[each] for each in CALLS[function]))


def test_undefined_penalties_are_refused():
    with pytest.raises(ValueError, match=r"X has one row; .*at least two patients"):
        regularizers.individual_keya([1.0], [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"hazards holds negative values.*; pass exp\(scores\)"):
        regularizers.intersectional_keya([1.0, -1.0, 1.0, 1.0], GOOD["codes_2d"])
    with pytest.raises(ValueError, match=r"cell of codes_2d.*smoothing=True"):
        regularizers.intersectional_keya(torch.ones(3), GOOD["codes_2d"][:3], smoothing=False)
    with pytest.raises(ValueError, match="hazards"):
        regularizers.intersectional_keya(torch.zeros(4), GOOD["codes_2d"], smoothing=False)


@pytest.mark.parametrize("gamma", [np.nan, np.inf, -0.1, "0.01", None])
@pytest.mark.parametrize("function", ["individual_keya", "individual_rp", "group_rp"])
def test_bad_gamma_is_refused(function, gamma):
    arguments = (GOOD[each] for each in CALLS[function])
    with pytest.raises((ValueError, TypeError), match=r"^gamma must"):
        getattr(regularizers, function)(*arguments, gamma=gamma)
