"""Losses, risk and penalties in torch: equal to the kernels, right to the second derivative."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cox import TIES, draw, equal, random_sides, seeds, shares
from test_dro import draw_losses, kinds
from torch.autograd import gradgradcheck

import drocox
from drocox import dro, regularizers


def calls(rng, n, time, event):
    """Every loss as a function of the scores."""
    first = random_sides(rng, n)
    weights = rng.uniform(0.5, 2, n) * (rng.random(n) < 0.8)
    weights[np.flatnonzero(event)[0]] = 1.0
    out = {ties: lambda f, k=ties: drocox.cox_losses(f, time, event, ties=k) for ties in TIES}
    out["weighted"] = lambda f: drocox.cox_losses(f, time, event, weights=weights)
    out["split"] = lambda f: drocox.split_cox_losses(f, time, event, first)
    out["weighted split"] = lambda f: drocox.split_cox_losses(
        f, time, event, first, weights=weights
    )
    out["survival"] = lambda f: drocox.breslow_survival(f, time, event, f, [1.0, 3.0])
    return out


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same_results_on_its_device():
    rng, scores, time, event = draw(5, 40, 0.5, 1.0)
    answers = dict(calls(rng, 40, time, event))
    for rule in dro.RULES:
        answers[f"risk {rule}"] = lambda f, k=rule: drocox.dro_risk(f, 0.3, rule=k)
        answers[f"worst {rule}"] = lambda f, k=rule: drocox.worst_case_weights(f, 0.3, rule=k)
    codes = rng.integers(0, 2, (40, 2))
    codes[:4] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    answers["cells"] = lambda f: drocox.regularizers.intersectional_keya(f.exp(), codes, False)
    answers["pairs"] = lambda f: drocox.regularizers.individual_keya(f.exp(), codes + 1.0)
    for name, call in answers.items():
        here, there = (scores.detach().to(d).requires_grad_() for d in ("cpu", "cuda"))
        got = call(there)
        assert got.device.type == "cuda" and got.dtype == scores.dtype, name
        equal(got.detach().cpu(), call(here).detach())
        if got.requires_grad:
            got.sum().backward()
            call(here).sum().backward()
            equal(there.grad.cpu(), here.grad)


@pytest.mark.slow
@settings(max_examples=8)
@given(n=st.integers(2, 7), share=shares, seed=seeds)
def test_second_derivatives_of_losses_equal_finite_differences(n, share, seed):
    rng, scores, time, event = draw(seed, n, share, 1.0)
    scores.requires_grad_()
    for name, call in calls(rng, n, time, event).items():
        assert gradgradcheck(call, scores), name


def test_second_derivatives_of_scores_too_far_apart_are_refused():
    scores = torch.tensor([0.0, 700.0]).double()
    with pytest.raises(RuntimeError, match="centre or shrink"):
        torch.autograd.functional.hessian(
            lambda f: drocox.cox_losses(f, [1, 2], [1, 1]).sum(), scores
        )


def searched(losses, c, mass):
    """In place of ``dro._solve``: who has weight in the worst case, by the search of a GPU."""
    top = torch.where(mass > 0, losses, -torch.inf).amax(-1, keepdim=True)
    size = top - torch.where(mass > 0, losses, torch.inf).amin(-1, keepdim=True)
    above = (losses - top) / size.clamp(min=1e-300)
    square = torch.tensor(c).double().square()
    return None, None, dro._search(above, mass, square).double()


@given(
    n=st.integers(1, 30),
    kind=kinds,
    alpha=st.sampled_from([1e-3, 0.1, 0.3, 0.5, 0.9, 1.0]),
    weighted=st.booleans(),
    seed=seeds,
)
def test_the_risk_in_torch_operations_equals_the_kernel(n, kind, alpha, weighted, seed):
    rng = np.random.default_rng(seed)
    losses = torch.from_numpy(np.stack([draw_losses(seed + k, n, kind) for k in range(3)]))
    weights = rng.integers(0, 3, n) * 1.0 if weighted else None
    if weighted:
        weights[rng.integers(n)] = 2.0
    value = drocox.dro_risk(losses, alpha, rule="paper", weights=weights)
    slope = drocox.worst_case_weights(losses, alpha, rule="paper", weights=weights)
    leaf = losses.clone().requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dro, "_solve", searched)
        plain = drocox.dro_risk(leaf, alpha, rule="paper", weights=weights)
    equal(plain.detach(), value, atol=1e-9)
    plain.sum().backward()
    assert torch.isfinite(leaf.grad).all()
    gap = (leaf.grad - slope).abs().max()  # near ties eta may fall on either side of a loss
    assert gap < 1e-6


@pytest.mark.slow
@settings(max_examples=8)
@given(alpha=st.sampled_from([0.15, 0.3, 0.5]), seed=seeds)
def test_second_derivatives_of_the_risk_equal_finite_differences(alpha, seed):
    losses = torch.from_numpy(draw_losses(seed, 6, "distinct")).requires_grad_()
    weights = np.random.default_rng(seed).uniform(0.5, 2, 6)
    for rule in ("paper", "sharp", "cvar"):
        for w in (None, weights):
            how = {"rule": rule, "weights": w}
            assert gradgradcheck(
                lambda v, how=how: drocox.dro_risk(v, alpha, **how), losses, eps=1e-7, atol=1e-4
            )


@pytest.mark.slow
def test_second_derivatives_of_penalties():
    """A hinge is linear in the hazards, so all curvature is that of the exponential."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(7, 3))
    time = np.arange(1.0, 8.0)
    event = np.array([1, 0, 1, 0, 1, 0, 1], dtype=bool)
    scores = torch.from_numpy(rng.normal(size=7)).requires_grad_()
    for penalty in (
        lambda h: regularizers.individual_keya(h, X),
        lambda h: regularizers.individual_rp(h, X, time, event),
        lambda h: regularizers.group_keya(h, event),
        lambda h: regularizers.intersectional_keya(h, np.column_stack([event, time > 3])),
    ):
        assert gradgradcheck(lambda f, p=penalty: p(f.exp()), scores)


def test_penalties_without_stored_distances_are_the_same():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 5))
    for spread in (1e-4, 1e-2, 1.0):  # all pairs near, some, hardly any
        hazards = torch.from_numpy(np.exp(spread * rng.normal(size=(2, 60)))).requires_grad_()
        kept = regularizers.hinge_penalty(hazards, regularizers.all_pairs(X))
        anew = regularizers.hinge_penalty(hazards, regularizers.all_pairs(X, keep=False))
        equal(anew.detach(), kept.detach(), atol=1e-13)
        slopes = [torch.autograd.grad(value.sum(), hazards)[0] for value in (kept, anew)]
        equal(slopes[0], slopes[1], atol=1e-13)
    assert regularizers.all_pairs(X, keep=False).margin is None
