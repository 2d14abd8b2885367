"""The DRO dual against a scalar search, an independent primal solver, and what must hold of it."""

import inspect

import literal
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

import drocox
from drocox.solver import minimise

RULES = ("paper", "definition", "sharp")

sizes = st.integers(1, 40)
alphas = st.sampled_from([1e-3, 0.05, 0.1, 0.15, 0.3, 0.5, 0.6, 2 / 3, 0.9, 0.999, 1.0])
rules = st.sampled_from(RULES)
scales = st.sampled_from([1e-6, 1e-2, 1.0, 40.0, 1e5])
kinds = st.sampled_from(["distinct", "many zeros", "rounded", "two values", "ties at the top"])
seeds = st.integers(0, 2**32 - 1)


def draw_losses(seed: int, n: int, kind: str, scale: float = 1.0) -> np.ndarray:
    """Losses of n patients; "many zeros" is what Cox losses look like: the censored have 0."""
    rng = np.random.default_rng(seed)
    losses = rng.exponential(size=n)
    if kind == "many zeros":
        losses *= rng.random(n) < 0.4
    elif kind == "rounded":
        losses = losses.round()
    elif kind == "two values":
        losses = (losses > 1) * 1.0
    elif kind == "ties at the top":
        losses = np.minimum(losses, np.quantile(losses, 0.7))
    return losses * scale


def solve(losses, alpha: float, rule: str = "paper"):
    """Minimiser, risk and weights as NumPy values."""
    losses = torch.as_tensor(losses)
    c = drocox.dual_constant(alpha, rule=rule)
    eta, risk = drocox.optimal_eta(losses, c), drocox.dro_risk(losses, alpha, rule=rule)
    weights = drocox.worst_case_weights(losses, alpha, rule=rule)
    return eta.numpy(), risk.numpy(), weights.numpy()


# The constant -------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@given(alpha=st.floats(1e-6, 1.0))
def test_constants_equal_the_formulas(rule, alpha):
    got = drocox.dual_constant(alpha, rule=rule)
    assert type(got) is float and got >= 1
    assert got == pytest.approx(literal.dual_constant(alpha, rule), rel=1e-14)
    assert drocox.dual_constant(np.float64(alpha), rule=rule) == got


def test_constants_by_hand():
    assert [drocox.dual_constant(1, rule=rule) for rule in RULES] == [1.0, 1.0, 1.0]
    squares = [drocox.dual_constant(0.1, rule=rule) ** 2 for rule in RULES]
    assert squares == pytest.approx([163, 82, 10], rel=1e-14)


@pytest.mark.parametrize(
    "function",
    [
        drocox.choose_alpha,
        drocox.DROCox,
        drocox.dro_risk,
        drocox.dual_constant,
        drocox.worst_case_weights,
        minimise,
    ],
)
def test_the_default_rule_is_sharp_everywhere(function):
    assert inspect.signature(function).parameters["rule"].default == "sharp"


# Against the dual by search and the primal solver -------------------------------------------


@settings(max_examples=100)
@given(n=sizes, kind=kinds, scale=scales, alpha=alphas, rule=rules, seed=seeds)
def test_optimal_eta_minimises_the_dual(n, kind, scale, alpha, rule, seed):
    losses = draw_losses(seed, n, kind, scale)
    c = literal.dual_constant(alpha, rule)
    eta, risk, _ = solve(losses, alpha, rule)
    by_search, _ = literal.dro_by_search(losses, c)
    assert risk == pytest.approx(by_search, abs=1e-9 * scale)
    if alpha == 1:
        assert risk == pytest.approx(losses.mean(), abs=1e-12 * scale)
        assert eta == (losses.max() if np.ptp(losses) == 0 else -np.inf)
        return
    at_eta = literal.dro_objective(losses, c, eta)
    assert at_eta == pytest.approx(risk, abs=1e-10 * scale)
    for step in (1e-3, 1e-1, 1.0):  # the objective is convex: nothing lower on either side
        for moved in (eta - step * scale, eta + step * scale):
            assert literal.dro_objective(losses, c, moved) >= at_eta - 1e-10 * scale


@settings(max_examples=100)
@given(n=sizes, kind=kinds, scale=scales, alpha=alphas, rule=rules, seed=seeds)
def test_risk_and_weights_equal_the_primal_solution(n, kind, scale, alpha, rule, seed):
    losses = draw_losses(seed, n, kind, scale)
    c = literal.dual_constant(alpha, rule)
    _, risk, weights = solve(losses, alpha, rule)
    expected, q = literal.dro_primal(losses, c)
    assert risk == pytest.approx(expected, abs=1e-10 * scale)
    np.testing.assert_allclose(weights, q, atol=1e-9)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert n * (weights**2).sum() <= c**2 * (1 + 1e-10)  # inside the ball of Definition 1
    assert weights @ losses == pytest.approx(risk, abs=1e-10 * scale)  # and attains the risk
    assert (weights > 0).sum() >= n / c**2 - 1e-9
    assert losses.mean() - 1e-12 * scale <= risk <= losses.max()


def test_risk_and_weights_of_three_patients_by_hand():
    # c^2 = 2, losses 0, 1, 2. All three: mean 1, variance 2/3, eta = 1 - sqrt(2/3) > 0, so the
    # first is not active. The other two: mean 3/2, variance 1/4, c^2 k/n - 1 = 1/3.
    eta, risk, weights = solve(np.array([0.0, 1.0, 2.0]), 0.5, "definition")
    assert eta == pytest.approx(3 / 2 - np.sqrt(3 / 4), abs=1e-14)
    assert risk == pytest.approx(3 / 2 + np.sqrt(1 / 12), abs=1e-14)
    assert weights == pytest.approx([0, 0.5 - np.sqrt(1 / 12), 0.5 + np.sqrt(1 / 12)], abs=1e-14)
    # With a third of the spread below, all three are active.
    eta, risk, _ = solve(np.array([0.0, 1.0, 1.0]) + 2, 0.9, "sharp")
    assert eta == pytest.approx(2 + 2 / 3 - np.sqrt(2 / 9 * 9), abs=1e-14)
    assert risk == pytest.approx(2 + 2 / 3 + np.sqrt(2 / 9 / 9), abs=1e-14)


@given(n=sizes, alpha=alphas, rule=rules, value=st.sampled_from([0.0, 1e-9, 3.7, -2.0, 1e8]))
def test_the_risk_of_equal_losses_is_their_value(n, alpha, rule, value):
    eta, risk, weights = solve(np.full(n, value), alpha, rule)
    assert eta == risk == value
    assert weights == pytest.approx(np.full(n, 1 / n), abs=1e-15)


@settings(max_examples=100)
@given(
    n=sizes, top=st.sampled_from([1.0, 1e3, 7e-5]), gaps=st.integers(1, 3), alpha=alphas,
    rule=rules, seed=seeds,
)  # fmt: skip
def test_losses_that_differ_only_by_rounding_have_a_finite_risk_and_weights(
    n, top, gaps, alpha, rule, seed
):
    steps = np.random.default_rng(seed).integers(0, gaps + 1, n)
    losses = top - np.spacing(top) * steps
    _, risk, weights = solve(losses, alpha, rule)
    assert np.isfinite(weights).all() and (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert losses.min() - 2 * np.spacing(top) <= risk <= losses.max()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_risk_and_weights_of_losses_of_any_size_are_exact(scale):
    losses = np.array([1.0, 0.0, 2.0, 5.0, 1.0])
    _, risk, weights = solve(losses * scale, 0.9)
    _, risk_of_one, weights_of_one = solve(losses, 0.9)
    assert risk / scale == pytest.approx(risk_of_one, rel=1e-12)
    assert weights == pytest.approx(weights_of_one, abs=1e-12)


# Equivariance, order, bounds ----------------------------------------------------------------


@given(
    n=sizes, kind=kinds, alpha=alphas, rule=rules, seed=seeds, shift=st.floats(-100, 100),
    factor=st.sampled_from([1e-8, 0.3, 7.0, 1e8]),
)  # fmt: skip
def test_risk_and_weights_follow_a_shift_a_scale_and_a_permutation(
    n, kind, alpha, rule, seed, shift, factor
):
    losses = draw_losses(seed, n, kind)
    # Losses closer than the rounding of the shift are not the same problem afterwards.
    assume(n == 1 or (np.diff(np.unique(losses)) > 1e-6).all())
    eta, risk, weights = solve(losses, alpha, rule)
    moved = solve(losses + shift, alpha, rule)
    assert moved[1] - shift == pytest.approx(risk, abs=1e-10)
    np.testing.assert_allclose(moved[2], weights, atol=1e-8)
    larger = solve(losses * factor, alpha, rule)
    assert larger[1] / factor == pytest.approx(risk, rel=1e-10, abs=1e-14)
    np.testing.assert_allclose(larger[2], weights, atol=1e-10)
    if np.isfinite(eta):
        assert moved[0] - shift == pytest.approx(eta, rel=1e-8, abs=1e-8)
        assert larger[0] / factor == pytest.approx(eta, rel=1e-10, abs=1e-12)
    rows = np.random.default_rng(seed).permutation(n)
    mixed = solve(losses[rows], alpha, rule)
    assert mixed[1] == pytest.approx(risk, abs=1e-12)
    np.testing.assert_allclose(mixed[2], weights[rows], atol=1e-12)


@settings(max_examples=100)
@given(n=st.integers(2, 40), kind=kinds, alpha=st.floats(0.02, 0.5), seed=seeds)
def test_group_risk_cvar_sharp_definition_and_paper_are_ordered(n, kind, alpha, seed):
    losses = draw_losses(seed, n, kind)
    rng = np.random.default_rng(seed)
    group = rng.permutation(n)[: rng.integers(int(np.ceil(alpha * n)), n + 1)]
    rules = ("cvar", "sharp", "definition", "paper")
    risks = [float(drocox.dro_risk(losses, alpha, rule=rule)) for rule in rules]
    ladder = [losses[group].mean(), *risks]
    assert (np.diff(ladder) >= -1e-12).all()


def test_proposition_2_fails_for_alpha_above_one_half():
    # Loss 1 in a group of mass 0.8, 0 elsewhere: the group's own risk is 1.
    losses = torch.tensor([1.0] * 8 + [0.0] * 2, dtype=torch.float64)
    risks = {rule: float(drocox.dro_risk(losses, 0.8, rule=rule)) for rule in RULES}
    assert risks["definition"] == pytest.approx(0.9, abs=1e-12)
    assert risks["paper"] == pytest.approx(0.9414, abs=1e-4)
    assert risks["sharp"] == pytest.approx(1.0, abs=1e-12)
    bounded = torch.tensor([1.0] * 2 + [0.0], dtype=torch.float64)
    assert drocox.dro_risk(bounded, 2 / 3, rule="paper") == pytest.approx(1.0, abs=1e-12)


# Gradients, stacks, types -------------------------------------------------------------------


@settings(max_examples=25)
@given(n=st.integers(2, 12), alpha=alphas, rule=rules, seed=seeds, rows=st.integers(1, 2))
def test_gradient_equals_finite_differences_and_weights(n, alpha, rule, seed, rows):
    losses = np.stack([draw_losses(seed + k, n, "distinct") for k in range(rows)])
    losses = torch.from_numpy(losses).requires_grad_()
    assert gradcheck(lambda v: drocox.dro_risk(v, alpha, rule=rule), losses, eps=1e-7, atol=1e-5)
    drocox.dro_risk(losses, alpha, rule=rule).sum().backward()
    worst = drocox.worst_case_weights(losses, alpha, rule=rule)
    assert torch.allclose(losses.grad, worst, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["equal", "zeros", "two at the top", "one patient"])
def test_gradient_is_finite_where_the_risk_has_a_kink(kind, alpha):
    losses = {
        "equal": torch.full((6,), 2.0),
        "zeros": torch.zeros(6),
        "two at the top": torch.tensor([0.0, 3.0, 1.0, 3.0, 0.0]),
        "one patient": torch.tensor([0.7]),
    }[kind].requires_grad_()
    drocox.dro_risk(losses, alpha, rule="paper").backward()
    assert torch.isfinite(losses.grad).all()
    assert losses.grad.sum() == pytest.approx(1, abs=1e-6)


@given(
    shape=st.sampled_from([(1,), (3,), (2, 3), (2, 1, 2)]), n=sizes, kind=kinds, alpha=alphas,
    rule=rules, seed=seeds,
)  # fmt: skip
def test_a_stack_equals_its_rows(shape, n, kind, alpha, rule, seed):
    rows = [draw_losses(seed + k, n, kind) for k in range(np.prod(shape))]
    losses = np.array(rows).reshape(*shape, n)
    eta, risk, weights = solve(losses, alpha, rule)
    assert eta.shape == risk.shape == shape and weights.shape == losses.shape
    upstream = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))
    leaf = torch.from_numpy(losses).requires_grad_()
    drocox.dro_risk(leaf, alpha, rule=rule).backward(upstream)
    slope = upstream[..., None].numpy() * weights
    np.testing.assert_allclose(leaf.grad, slope, rtol=0, atol=1e-11)
    for at in np.ndindex(shape):
        single = solve(losses[at], alpha, rule)
        for whole, alone in zip((eta, risk, weights), single, strict=True):
            np.testing.assert_array_equal(whole[at], alone)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_dtype_is_kept(dtype):
    losses = torch.tensor([0.0, 0.3, 2.0, 0.9], dtype=dtype)
    weights = drocox.worst_case_weights(losses, 0.5)
    eta = drocox.optimal_eta(losses, 2.0)
    assert eta.dtype == drocox.dro_risk(losses, 0.5).dtype == weights.dtype == dtype
    assert float(weights.double().sum()) == pytest.approx(1, abs=2 * torch.finfo(dtype).eps)
    whole = drocox.dro_risk([0, 1, 2], 0.5)
    assert whole.dtype == torch.float64


# Bad input ----------------------------------------------------------------------------------

BAD_ALPHA = [0, 0.0, -0.1, 1.0001, 2, np.nan, np.inf, -np.inf]
NOT_A_NUMBER = ["0.5", None, True, [0.5], np.array([0.5]), {}]
BAD_LOSSES = [
    ([0.0, np.nan], "losses holds NaN or infinite values; check the model"),
    ([0.0, np.inf], "losses holds NaN or infinite values; check the model"),
    ([0.0, -np.inf], "losses holds NaN or infinite values; check the model"),
    ([], "losses is empty; pass a tensor"),
    (torch.zeros(3, 0), "losses is empty; pass a tensor"),
    (torch.tensor(1.0), "losses is empty; pass a tensor"),
]
FUNCTIONS = [drocox.dro_risk, drocox.worst_case_weights]


@pytest.mark.parametrize("alpha", BAD_ALPHA)
def test_alpha_outside_its_range_is_refused(alpha):
    for call in (drocox.dual_constant, *(lambda a, f=f: f([0.0, 1.0], a) for f in FUNCTIONS)):
        with pytest.raises(ValueError, match=r"alpha must lie in \(0, 1\], got"):
            call(alpha)


@pytest.mark.parametrize("alpha", NOT_A_NUMBER)
def test_an_alpha_that_is_not_a_number_is_refused(alpha):
    for call in (drocox.dual_constant, *(lambda a, f=f: f([0.0, 1.0], a) for f in FUNCTIONS)):
        with pytest.raises(TypeError, match=r"alpha must be a number in \(0, 1\], got"):
            call(alpha)


def test_an_alpha_next_to_one_is_nearly_the_mean():
    rng = np.random.default_rng(4)
    for n in (3, 1000):
        losses = torch.from_numpy(rng.exponential(size=n))
        weights = rng.uniform(0.5, 2, n)
        mean = np.average(losses, weights=weights)
        for alpha in (1 - 2**-53, 1 - 2**-52, 1 - 1e-15, 1 - 1e-12):
            risk = float(drocox.dro_risk(losses, alpha, rule="sharp", weights=weights))
            assert mean - 1e-12 <= risk <= mean + 1e-5
            worst = drocox.worst_case_weights(losses, alpha, rule="sharp", weights=weights)
            assert float(worst @ losses) == pytest.approx(risk, abs=1e-12)
            # c^2 - 1 is at most 1e-12, and the worst case differs by its root, times a few
            np.testing.assert_allclose(worst, weights / weights.sum(), rtol=1e-4)


def test_a_tiny_alpha_does_not_overflow():
    assert drocox.dual_constant(1e-200, rule="paper") > 1e199  # C is about sqrt(2)/alpha


@pytest.mark.parametrize("rule", ["Paper", "chi2", "", None, 1])
def test_unknown_rule_is_refused_with_the_known_ones(rule):
    for call in (
        lambda: drocox.dual_constant(0.5, rule=rule),
        *(lambda f=f: f([0.0, 1.0], 0.5, rule=rule) for f in FUNCTIONS),
    ):
        with pytest.raises(ValueError, match=r"unknown rule .*: paper, definition, sharp"):
            call()


@pytest.mark.parametrize(("losses", "message"), BAD_LOSSES)
def test_bad_losses_are_refused(losses, message):
    for call in (*(lambda v, f=f: f(v, 0.5) for f in FUNCTIONS),
                 lambda v: drocox.optimal_eta(v, 2.0)):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call(losses)


@pytest.mark.parametrize("c", [0.99, 0, -2.0, np.nan, np.inf])
def test_bad_constant_is_refused(c):
    with pytest.raises(ValueError, match=r"^c must be a finite number >= 1, got .*dual_constant"):
        drocox.optimal_eta([0.0, 1.0], c)


@pytest.mark.parametrize("c", ["2", None, [2.0]])
def test_a_constant_that_is_not_a_number_is_refused(c):
    with pytest.raises(TypeError, match=r"^c must be a number"):
        drocox.optimal_eta([0.0, 1.0], c)
