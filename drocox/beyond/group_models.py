r"""Linear models that are told groups: an adversary over them, or coefficients of their own.

In DRO-COX the adversary weighs *patients*, after seeing their outcomes. Here the adversary weighs
only *groups*, which covariates describe:

.. math:: \min_\theta \; \max_g \, [L_g(\theta) - r_g] + \varepsilon L(\theta), \qquad
          L_g(\theta) = \frac{1}{|g|} \sum_{i \in g} \ell_i(\theta), \quad r_g = 0,

with everybody in the risk sets; or by *regret*, where :math:`L_g` is the group's own Cox loss per
event, members compared with members only, and :math:`r_g = \min_\theta L_g(\theta)` is the loss of
a model fitted to the group alone. Both are maxima of a few smooth convex functions. The Cox loss
:math:`L` of everybody per event, times a small :math:`\varepsilon`, determines the coefficients
that no group does: those of a feature that is constant in each group.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy import optimize

from drocox import _checks
from drocox.cox import cox_losses, risk_sets
from drocox.solver import minimise

EPSILON = 0.01  # of everybody's loss, beside the worst group's


def _own_loss(X: torch.Tensor, time, event, members) -> Callable[[torch.Tensor], torch.Tensor]:
    """Cox loss per event among some patients, as a function of theta."""
    own = X[torch.from_numpy(members)]
    risk = risk_sets(time[members], event[members])
    return lambda theta: cox_losses(own @ theta, risk).sum() / risk.event.sum()


def _pieces(X: torch.Tensor, time, event, members, regret: bool) -> list[Callable]:
    """The functions of theta whose maximum is minimised, one for each group."""
    if not regret:
        risk = risk_sets(time, event)
        shares = torch.from_numpy(members / members.sum(axis=1, keepdims=True))
        return [lambda theta, row=row: row @ cox_losses(X @ theta, risk) for row in shares]
    out = []
    for row in members:
        best = minimise(X.numpy()[row], risk_sets(time[row], event[row]), 1)
        least = best.risk * row.sum() / event[row].sum()
        loss = _own_loss(X, time, event, row)
        out.append(lambda theta, loss=loss, least=least: loss(theta) - least)
    return out


def group_dro(X, time, event, members, *, regret: bool = False) -> np.ndarray:
    r"""Coefficients that minimise the largest loss, or regret, of any group.

    Solved in the form :math:`\min t + \varepsilon L(\theta)` such that :math:`L_g(\theta) - r_g \le
    t` by sequential quadratic programming. The solution is checked: weights :math:`\lambda_g \ge 0`
    of the worst groups that sum to 1 have :math:`\sum_g \lambda_g \nabla L_g + \varepsilon \nabla L
    = 0`, which is sufficient because the problem is convex. Groups (rows of ``members``) may
    overlap and need not cover everybody.
    """
    X = torch.from_numpy(_checks.numbers(X, "X", 2))
    time, event = _checks.outcomes(time, event)
    members = np.atleast_2d(np.asarray(members, bool))
    if members.shape[1] != len(time) or not members[:, event].any(axis=1).all():
        raise ValueError(
            f"members has shape {members.shape} and needs (groups, {len(time)}), with an event in "
            "each group; merge or drop groups without"
        )
    pieces = _pieces(X, time, event, members, regret)
    pieces.append(_own_loss(X, time, event, np.full(len(time), True)))  # L
    d = X.shape[1]
    kept: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def at(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and gradients of the pieces."""
        key = point[:d].tobytes()
        if key not in kept:
            theta = torch.tensor(point[:d], requires_grad=True)
            values = [piece(theta) for piece in pieces]
            slopes = [torch.autograd.grad(value, theta)[0].numpy() for value in values]
            kept.clear()
            kept[key] = np.array([value.item() for value in values]), np.array(slopes)
        return kept[key]

    last = np.eye(d + 1)[d]
    start = at(np.zeros(d))[0][:-1].max() * last
    below = {
        "type": "ineq",
        "fun": lambda point: point[d] - at(point)[0][:-1],
        "jac": lambda point: last - np.pad(at(point)[1][:-1], ((0, 0), (0, 1))),
    }
    found = optimize.minimize(
        lambda point: point[d] + EPSILON * at(point)[0][-1],
        start,
        jac=lambda point: last + EPSILON * np.append(at(point)[1][-1], 0.0),
        method="SLSQP",
        constraints=[below],
        options={"maxiter": 500, "ftol": 1e-15},
    )
    values, slopes = at(found.x)
    worst = slopes[:-1][values[:-1] > values[:-1].max() - 1e-6]
    balance = np.append(-EPSILON * slopes[-1], 1.0)
    left = optimize.nnls(np.vstack([worst.T, np.ones(len(worst))]), balance)[1]
    if left > 1e-5:
        raise RuntimeError(f"group DRO has not converged: a slope of {left:.0e} is left")
    return found.x[:d]


def by_group(X: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Features, (n, d + k (d + 1)), that give k groups their own level and coefficients."""
    more = np.column_stack([X, np.ones(len(X))])
    return np.hstack([X, *(row[:, None] * more for row in np.asarray(members))])


def own_effects(X: np.ndarray, time, event, members: np.ndarray) -> np.ndarray:
    r"""Coefficients for :func:`by_group`: a Cox model in which groups may differ.

    Minimises the sum of losses plus :math:`\frac{1}{2 \tau^2} \lVert \delta \rVert^2`, where
    :math:`\delta` are the coefficients of the groups: a normal prior with standard deviation
    :math:`\tau = 1/2` shrinks them towards 0 and keeps them finite under separation.
    """
    wide = torch.from_numpy(by_group(X, members))
    risk = risk_sets(time, event)
    events = float(np.sum(event))

    def value(theta: torch.Tensor) -> torch.Tensor:
        prior = 2 * (theta[X.shape[1] :] ** 2).sum()
        return (cox_losses(wide @ theta, risk).sum() + prior) / events

    return smallest(value, wide.shape[1], maxiter=5_000, maxfun=10_000, ftol=0.0)


def smallest(value: Callable[[torch.Tensor], torch.Tensor], d: int, **options) -> np.ndarray:
    """The coefficients (d,) of the smallest value of a smooth function, by L-BFGS from 0."""

    def with_slope(point: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.tensor(point, requires_grad=True)
        out = value(theta)
        return out.item(), torch.autograd.grad(out, theta)[0].numpy()

    how = {"gtol": 1e-9} | options
    return optimize.minimize(with_slope, np.zeros(d), jac=True, method="L-BFGS-B", options=how).x
