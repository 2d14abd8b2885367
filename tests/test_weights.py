"""Case weights and the rule "cvar": repeated rows, a linear programme, and what must hold."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from test_cox import draw, equal, random_sides, scales, seeds, shares
from test_dro import draw_losses, kinds
from torch.autograd import gradcheck

import drocox
from drocox.solver import minimise

RULES = ("paper", "definition", "sharp", "cvar")
alphas = st.sampled_from([0.05, 0.1, 0.15, 0.3, 0.5, 2 / 3, 0.9, 1.0])


def repeated(weights, *arrays):
    """Rows repeated as whole weights say, and where the first copy of each kept row stands."""
    first_copy = np.cumsum(weights) - weights
    return first_copy[weights > 0], *(np.repeat(array, weights, axis=-1) for array in arrays)


@given(n=st.integers(1, 20), share=shares, scale=scales, seed=seeds)
def test_whole_weights_of_cox_losses_are_repeated_rows(n, share, scale, seed):
    rng, scores, time, event = draw(seed, n, share, scale)
    weights = rng.integers(0, 4, n)
    assume((event & (weights > 0)).any())
    at, *rows = repeated(weights, scores.numpy(), time, event)
    got = drocox.cox_losses(scores, time, event, weights=weights).numpy()
    equal(got[weights > 0], drocox.cox_losses(*rows)[at])
    assert (got[weights == 0] == 0).all()
    scaled = drocox.cox_losses(scores, time, event, weights=weights * 8)
    equal(scaled.numpy()[event & (weights > 0)], got[event & (weights > 0)] + np.log(8))


@given(n=st.integers(2, 20), share=shares, scale=scales, seed=seeds)
def test_whole_weights_of_split_losses_are_repeated_rows(n, share, scale, seed):
    rng, scores, time, event = draw(seed, n, share, scale)
    first = random_sides(rng, n)
    weights = rng.integers(0, 4, n)
    kept = weights > 0
    assume((event & kept).any() and first[kept].any() and not first[kept].all())
    at, *rows = repeated(weights, scores.numpy(), time, event, first)
    got = drocox.split_cox_losses(scores, time, event, first, weights=weights).numpy()
    equal(got[kept], drocox.split_cox_losses(*rows)[at])
    assert (got[~kept] == 0).all()


@settings(max_examples=10)
@given(n=st.integers(2, 8), share=shares, seed=seeds)
def test_gradients_of_weighted_losses_equal_finite_differences(n, share, seed):
    rng, scores, time, event = draw(seed, n, share, 1.0)
    weights = rng.integers(0, 3, n) * rng.uniform(0.5, 2, n)
    weights[np.flatnonzero(event)[0]] = 1.5
    first = random_sides(rng, n)
    scores.requires_grad_()
    assert gradcheck(lambda f: drocox.cox_losses(f, time, event, weights=weights), scores)
    assert gradcheck(
        lambda f: drocox.split_cox_losses(f, time, event, first, weights=weights), scores
    )


@given(n=st.integers(1, 25), kind=kinds, alpha=alphas, rule=st.sampled_from(RULES), seed=seeds)
def test_whole_weights_of_the_risk_are_repeated_losses(n, kind, alpha, rule, seed):
    losses = draw_losses(seed, n, kind)
    weights = np.random.default_rng(seed).integers(0, 4, n)
    assume(weights.any())
    _, rows = repeated(weights, losses)
    how = {"alpha": alpha, "rule": rule}
    leaf = torch.from_numpy(losses).requires_grad_()
    risk = drocox.dro_risk(leaf, **how, weights=weights)
    risk.backward()
    equal(risk.detach(), drocox.dro_risk(rows, **how), atol=1e-9)
    got = drocox.worst_case_weights(losses, **how, weights=weights)
    equal(leaf.grad, got)
    person = np.repeat(np.arange(n), weights)
    worst = drocox.worst_case_weights(rows, **how).numpy()
    equal(got, np.bincount(person, worst, minlength=n), atol=1e-7)
    equal(drocox.dro_risk(losses, **how, weights=weights * 0.7), risk.detach(), atol=1e-9)


@given(n=st.integers(1, 20), kind=kinds, alpha=alphas, seed=seeds)
def test_cvar_equals_a_linear_programme(n, kind, alpha, seed):
    losses = draw_losses(seed, n, kind)
    p = np.random.default_rng(seed).dirichlet(np.ones(n))
    bounds = [(0, share / alpha) for share in p]
    best = linprog(-losses, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=bounds)
    got = drocox.dro_risk(losses, alpha, rule="cvar", weights=n * p)
    assert float(got) == pytest.approx(-best.fun, abs=1e-8)
    worst = drocox.worst_case_weights(losses, alpha, rule="cvar", weights=n * p).numpy()
    assert worst.sum() == pytest.approx(1) and (worst <= p / alpha + 1e-9).all()
    assert worst @ losses == pytest.approx(float(got), abs=1e-10)


def test_cvar_ignores_the_order_of_tied_patients():
    losses = torch.tensor([1.0, 3.0, 1.0, 1.0, 2.0])
    worst = drocox.worst_case_weights(losses, 0.5, rule="cvar")
    assert worst.tolist() == pytest.approx([1 / 15, 0.4, 1 / 15, 1 / 15, 0.4])
    flipped = drocox.worst_case_weights(losses.flip(0), 0.5, rule="cvar")
    assert flipped.flip(0).tolist() == pytest.approx(worst.tolist())


def test_stacks_of_models_share_weights():
    losses = torch.from_numpy(np.random.default_rng(2).exponential(size=(2, 3, 9)))
    weights = np.arange(9.0)
    for rule in RULES:
        whole = drocox.dro_risk(losses, 0.3, rule=rule, weights=weights)
        for i, j in np.ndindex(2, 3):
            alone = drocox.dro_risk(losses[i, j], 0.3, rule=rule, weights=weights)
            assert float(whole[i, j]) == pytest.approx(float(alone), abs=1e-12)


@pytest.mark.parametrize("ties", ["efron", "order"])
def test_weights_are_refused_with_other_ties(ties):
    with pytest.raises(ValueError, match=f"weights need ties='breslow', not '{ties}'"):
        drocox.cox_losses([0.0, 1.0], [1, 2], [1, 1], ties=ties, weights=[1, 2])


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0, -1.0], ">= 0"),
        ([0.0, 0.0], "not all zero"),
        ([1.0], "one number per patient"),
        ([1.0, np.nan], "NaN"),
        ([0.5, 0.5], "counts.*w / w.mean"),
        ([0.3, 0.0], "counts.*w / w.mean"),
        ([1e-9, 0.6], "counts.*w / w.mean"),
        (["a", "b"], "numeric"),
    ],
)
def test_bad_weights_are_refused_by_name(weights, said):
    for call in (
        lambda: drocox.cox_losses([0.0, 1.0], [1, 2], [1, 1], weights=weights),
        lambda: drocox.split_cox_losses([0.0, 1.0], [1, 2], [1, 1], [1, 0], weights=weights),
        lambda: drocox.dro_risk([0.0, 1.0], 0.5, weights=weights),
        lambda: drocox.worst_case_weights([0.0, 1.0], 0.5, rule="cvar", weights=weights),
        lambda: minimise([[0.0], [1.0]], drocox.risk_sets([1, 2], [1, 1]), 0.5, weights=weights),
    ):
        with pytest.raises((ValueError, TypeError), match=f"weights.*{said}"):
            call()


def test_cvar_has_no_dual_constant():
    with pytest.raises(ValueError, match="dro_risk"):
        drocox.dual_constant(0.5, rule="cvar")


def test_weights_may_have_negative_strides():
    losses = torch.tensor([0.3, 2.0, 1.0]).double()
    weights = np.array([1.0, 2.0, 3.0])
    weights.setflags(write=False)
    for rule in ("sharp", "cvar"):
        how = {"alpha": 0.4, "rule": rule}
        got = drocox.dro_risk(losses, weights=weights[::-1], **how)
        assert got == drocox.dro_risk(losses, weights=[3, 2, 1], **how)
    got = drocox.cox_losses(losses, [1, 2, 3], [1, 1, 1], weights=weights[::-1])
    assert torch.equal(got, drocox.cox_losses(losses, [1, 2, 3], [1, 1, 1], weights=[3, 2, 1]))


def test_weights_that_would_make_hazards_underflow():
    """exp(-400) times 1e-200 is 0 in floating-point numbers; the loss is log w all the same."""
    scores = torch.tensor([0.0, -400.0]).double()
    losses = drocox.cox_losses(scores, [1, 2], [1, 1], weights=[2.0, 1e-200])
    assert losses[1] == pytest.approx(np.log(1e-200))
    assert losses[0] == pytest.approx(np.log(2))
