r"""Distributionally robust risk over a chi-square ball: the dual, solved exactly.

The worst mean loss over the distributions near the empirical one is, by duality (the paper's
equations (5) and (7)),

.. math:: R(\ell) = \min_\eta \Big\{ C \sqrt{\tfrac1n \sum_i [\ell_i - \eta]_+^2} + \eta \Big\}.

If the :math:`k` largest losses lie above the minimiser, with mean :math:`m` and variance
:math:`v`, then :math:`\eta^* = m - \sqrt{v / (C^2 k/n - 1)}`. Starting with all patients and
dropping those at or below :math:`\eta` finds that set exactly, in a few passes. The worst case puts
weight :math:`q_i^* \propto [\ell_i - \eta^*]_+` on patient :math:`i`, which is also the gradient.
"""

from __future__ import annotations

import numpy as np
import torch

from drocox import _checks, kernels

RULES = ("paper", "definition", "sharp")


def dual_constant(alpha: float, *, rule: str = "paper") -> float:
    r"""Constant :math:`C` of the dual that protects groups of probability at least ``alpha``.

    ``rule="paper"`` is :math:`\sqrt{2(1/\alpha-1)^2+1}`, as printed in Proposition 3;
    ``"definition"`` :math:`\sqrt{(1/\alpha-1)^2+1}`, what Definition 1 gives with the radius of
    Proposition 2; ``"sharp"`` :math:`1/\sqrt\alpha`, from the radius :math:`1/\alpha - 1` that
    suffices for such a group; ``alpha`` lies in (0, 1].

    >>> round(dual_constant(0.5), 6), dual_constant(0.25, rule="sharp")
    (1.732051, 2.0)
    """
    alpha = _checks.number_in(alpha, "alpha", 0, 1)
    _checks.one_of(rule, "rule", RULES)
    if rule == "sharp":
        return float(1 / np.sqrt(alpha))
    return float(np.hypot(1, np.sqrt(2.0 if rule == "paper" else 1.0) * (1 / alpha - 1)))


def _solve_stack(losses: torch.Tensor, c) -> tuple[torch.Tensor, ...]:
    """``kernels.solve`` for losses (..., n), with ``c`` a number or an array over the stack."""
    rows = losses.detach().to("cpu", torch.float64).reshape(-1, losses.shape[-1]).numpy()
    stack = losses.shape[:-1]
    c = np.broadcast_to(np.asarray(c, dtype=float), stack).reshape(-1)
    shapes = (stack, stack, losses.shape)
    return tuple(
        torch.from_numpy(a).reshape(shape).to(losses)
        for a, shape in zip(kernels.solve(rows, c), shapes, strict=True)
    )


class _DRORisk(torch.autograd.Function):
    @staticmethod
    def forward(ctx, losses, c):
        _, risk, ctx.weights = _solve_stack(losses, c)
        return risk

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return upstream[..., None] * ctx.weights, None


def optimal_eta(losses, c: float) -> torch.Tensor:
    r"""Exact minimiser :math:`\eta^*` of :math:`C\sqrt{\frac1n\sum_i[\ell_i-\eta]_+^2} + \eta`.

    ``losses`` has shape (..., n); ``c >= 1`` is the dual constant. At ``c = 1`` the infimum is the
    mean, a limit of falling :math:`\eta`: then ``-inf``, unless all losses are equal.

    >>> optimal_eta(torch.tensor([0.0, 1.0, 2.0]), 2 ** 0.5)
    tensor(0.6340)
    """
    losses = _checks.floats(losses, "losses")
    if not 1 <= _checks.number_in(c, "c", 0, np.inf) < np.inf:
        raise ValueError(f"c must be a finite number >= 1, got {c:g}; use dual_constant(alpha)")
    return _solve_stack(losses, c)[0]


def dro_risk(losses, alpha: float, *, rule: str = "paper") -> torch.Tensor:
    r"""Worst-case mean loss, equation (7) at the optimal :math:`\eta`; differentiable.

    .. math:: R = \min_\eta \Big\{ C \sqrt{\tfrac1n \sum_i [\ell_i - \eta]_+^2} + \eta \Big\},
              \qquad \frac{\partial R}{\partial \ell_i} = q_i^*.

    ``losses`` has shape (..., n); ``alpha`` in (0, 1] is the smallest group probability to protect
    (1 gives the mean), which :func:`dual_constant` makes the constant :math:`C` by ``rule``.
    """
    losses = _checks.floats(losses, "losses")
    return _DRORisk.apply(losses, dual_constant(alpha, rule=rule))


def worst_case_weights(losses, alpha: float, *, rule: str = "paper") -> torch.Tensor:
    r"""The distribution :math:`q_i^* = [\ell_i - \eta^*]_+ / \sum_j [\ell_j - \eta^*]_+` of the
    worst case, shape (..., n); arguments as in :func:`dro_risk`.
    """
    losses = _checks.floats(losses, "losses")
    return _solve_stack(losses, dual_constant(alpha, rule=rule))[2]
