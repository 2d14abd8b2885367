r"""Distributionally robust risk over a chi-square ball: the dual, solved exactly.

The worst mean loss over all distributions close to the empirical one is, by duality (the paper's
equations (5) and (7)),

.. math:: R(\ell) = \min_\eta \Big\{ C \sqrt{\tfrac1n \sum_i [\ell_i - \eta]_+^2} + \eta \Big\}.

If the :math:`k` largest losses lie above the minimiser, with mean :math:`m` and variance
:math:`v`, then :math:`\eta^* = m - \sqrt{v / (C^2 k/n - 1)}`. Starting from all patients and
dropping those at or below :math:`\eta` finds that set exactly, in a few passes. The distribution
that attains the worst case puts weight proportional to :math:`[\ell_i - \eta^*]_+` on patient
:math:`i`; it is also the gradient of the risk.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from drocox import _checks

RULES = ("paper", "definition", "sharp")


def dual_constant(alpha: float, *, rule: str = "paper") -> float:
    r"""Constant :math:`C` of the dual that protects groups of probability at least ``alpha``.

    Parameters
    ----------
    alpha : float in (0, 1]
        Smallest group probability to protect.
    rule : {"paper", "definition", "sharp"}
        ``"paper"``: :math:`\sqrt{2(1/\alpha-1)^2+1}`, as printed in Proposition 3.
        ``"definition"``: :math:`\sqrt{(1/\alpha-1)^2+1}`, what the radius of Proposition 2 gives
        with the divergence of Definition 1. ``"sharp"``: :math:`1/\sqrt\alpha`, from the radius
        :math:`1/\alpha - 1` that every group of that probability satisfies.

    Examples
    --------
    >>> dual_constant(0.5), dual_constant(0.5, rule="definition") ** 2
    (1.7320508075688772, 2.0000000000000004)
    """
    alpha = _checks.number_in(alpha, "alpha", 0, 1)
    _checks.one_of(rule, "rule", RULES)
    if rule == "sharp":
        return float(1 / np.sqrt(alpha))
    scale = 2.0 if rule == "paper" else 1.0
    return float(np.sqrt(scale * (1 / alpha - 1) ** 2 + 1))


@njit(cache=True)
def _solve(losses, c):
    """Minimiser, risk and worst-case weights of each row of ``losses`` for its constant c."""
    models, n = losses.shape
    eta, risk, weights = np.empty(models), np.empty(models), np.zeros((models, n))
    above = np.empty(n)  # losses relative to the largest, those still active in front
    for m in range(models):
        square = c[m] * c[m]
        top = losses[m].max()
        ties = 0
        for i in range(n):
            ties += losses[m, i] == top
        if ties * square >= n or square <= 1.0:
            # everything on the largest losses, or (C = 1) evenly on all
            everyone = ties * square < n
            total = 0.0
            for i in range(n):
                if everyone or losses[m, i] == top:
                    weights[m, i] = 1.0 / (n if everyone else ties)
                    total += losses[m, i] - top
            eta[m] = -np.inf if everyone else top
            risk[m] = top + total / n if everyone else top
            continue
        for i in range(n):
            above[i] = losses[m, i] - top
        active = n
        while True:
            mean = above[:active].sum() / active
            variance = 0.0
            for i in range(active):
                variance += (above[i] - mean) ** 2
            variance /= active
            spare = square * active / n - 1.0
            new = mean - np.sqrt(variance / spare)
            left = 0
            for i in range(active):
                if above[i] > new:
                    above[left] = above[i]
                    left += 1
            if left == active or left * square <= n:  # the second only by rounding
                break
            active = left
        risk[m] = top + (mean + np.sqrt(variance * spare))
        new += top
        eta[m] = new
        total = 0.0
        for i in range(n):
            if losses[m, i] > new:
                weights[m, i] = losses[m, i] - new
                total += weights[m, i]
        for i in range(n):
            weights[m, i] /= total
    return eta, risk, weights


def _rows(losses: torch.Tensor) -> np.ndarray:
    return losses.detach().to("cpu", torch.float64).reshape(-1, losses.shape[-1]).numpy()


def _constants(c, shape) -> np.ndarray:
    """One constant per row of losses, from a number or an array that broadcasts to the stack."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(c, dtype=float), shape)).reshape(-1)


class _DRORisk(torch.autograd.Function):
    @staticmethod
    def forward(ctx, losses, c):
        _, risk, weights = _solve(_rows(losses), _constants(c, losses.shape[:-1]))
        ctx.weights = torch.from_numpy(weights).reshape(losses.shape).to(losses)
        return torch.from_numpy(risk).reshape(losses.shape[:-1]).to(losses)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return upstream[..., None] * ctx.weights, None


def optimal_eta(losses, c: float) -> torch.Tensor:
    r"""Exact minimiser :math:`\eta^*` of :math:`C\sqrt{\frac1n\sum_i[\ell_i-\eta]_+^2} + \eta`.

    Parameters
    ----------
    losses : tensor of shape (..., n)
    c : float >= 1
        The dual constant. At ``c = 1`` the infimum is the mean, reached only as
        :math:`\eta \to -\infty`, and ``-inf`` is returned (unless all losses are equal).

    Returns
    -------
    tensor of shape (...)

    Examples
    --------
    >>> optimal_eta(torch.tensor([0.0, 1.0, 2.0]), 2 ** 0.5)
    tensor(0.1835)
    """
    losses = _checks.floats(losses, "losses")
    c = _checks.number_in(c, "c", 0, np.inf)
    if c < 1 or np.isinf(c):
        raise ValueError(f"c must be a finite number >= 1, got {c:g}; use dual_constant(alpha)")
    eta = _solve(_rows(losses), _constants(c, losses.shape[:-1]))[0]
    return torch.from_numpy(eta).reshape(losses.shape[:-1]).to(losses)


def dro_risk(losses, alpha: float, *, rule: str = "paper") -> torch.Tensor:
    r"""Worst-case mean loss, equation (7) at the optimal :math:`\eta`; differentiable.

    .. math:: \min_\eta \Big\{ C \sqrt{\tfrac1n \sum_i [\ell_i - \eta]_+^2} + \eta \Big\},
              \qquad \frac{\partial R}{\partial \ell_i} = q_i^*.

    Parameters
    ----------
    losses : tensor of shape (..., n)
    alpha : float in (0, 1]
        Smallest group probability to protect; 1 gives the mean.
    rule : {"paper", "definition", "sharp"}
        How ``alpha`` becomes the constant, see :func:`dual_constant`.

    Returns
    -------
    tensor of shape (...)
        The gradient is finite everywhere: it is the worst-case distribution.

    Examples
    --------
    >>> dro_risk(torch.tensor([0.0, 1.0, 2.0]), alpha=1.0)
    tensor(1.)
    """
    losses = _checks.floats(losses, "losses")
    return _DRORisk.apply(losses, dual_constant(alpha, rule=rule))


def worst_case_weights(losses, alpha: float, *, rule: str = "paper") -> torch.Tensor:
    r"""The distribution :math:`q^*` that attains the DRO risk; sums to 1.

    .. math:: q_i^* = \frac{[\ell_i - \eta^*]_+}{\sum_j [\ell_j - \eta^*]_+}

    Parameters
    ----------
    losses, alpha, rule : as in :func:`dro_risk`

    Returns
    -------
    tensor of shape (..., n)
    """
    losses = _checks.floats(losses, "losses")
    c = _constants(dual_constant(alpha, rule=rule), losses.shape[:-1])
    weights = _solve(_rows(losses), c)[2]
    return torch.from_numpy(weights).reshape(losses.shape).to(losses)
