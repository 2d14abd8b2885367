r"""Distributionally robust risk: the worst mean loss over distributions near the empirical one.

Over a chi-square ball it is, by duality (the paper's equations (5) and (7)),

.. math:: R(\ell) = \min_\eta \Big\{ c \sqrt{\tfrac1n \sum_i [\ell_i - \eta]_+^2} + \eta \Big\}.

If the :math:`k` largest losses lie above the minimiser, with mean :math:`m` and variance
:math:`v`, then :math:`\eta^* = m - \sqrt{v / (c^2 k/n - 1)}` and
:math:`R = m + \sqrt{v (c^2 k/n - 1)}`. Starting with all patients and dropping those at or below
:math:`\eta` finds that set exactly, in a few passes. The worst case puts weight
:math:`q_i^* \propto [\ell_i - \eta^*]_+` on patient :math:`i`, which is also the gradient.

Over the groups of probability :math:`\alpha` themselves it is the conditional value at risk
(``rule="cvar"``), the mean of the worst share :math:`\alpha`:

.. math:: \mathrm{CVaR}_\alpha(\ell) = \min_\eta \Big\{ \tfrac{1}{\alpha n} \sum_i [\ell_i - \eta]_+
          + \eta \Big\}, \qquad q_i^* \le \tfrac{1}{\alpha n}.

With case weights the empirical distribution is :math:`p_i = w_i / \sum_j w_j` instead of
:math:`1/n`, and the ball is around it.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike

from drocox import _checks, dual, kernels
from drocox.dual import RULES, dual_constant


def _solve(losses: torch.Tensor, c, weights: torch.Tensor) -> list[torch.Tensor]:
    """Minimiser eta, risk and worst case for losses (..., n); ``c`` is a number or one per row."""
    rows = losses.detach().to("cpu", torch.float64).reshape(-1, losses.shape[-1]).numpy()
    found = kernels.worst_cases(rows, weights.cpu().numpy(), np.ones(len(rows)) * np.ravel(c))
    stack = losses.shape[:-1]
    return [torch.from_numpy(a).reshape(stack + a.shape[1:]).to(losses) for a in found]


def chi_square_risk(losses: torch.Tensor, c, mass: torch.Tensor) -> torch.Tensor:
    """Risk of losses (..., n) for dual constant ``c``, one or one per row; input is not checked.

    Differentiable with the set of losses above eta held fixed. That set is found by a compiled
    kernel on the CPU, and by the same passes as torch operations elsewhere.
    """
    exact = losses.double()
    square = torch.as_tensor(c, dtype=torch.float64, device=losses.device).square()[..., None]
    with torch.no_grad():
        here = mass > 0
        top = torch.where(here, exact, -torch.inf).amax(-1, keepdim=True)
        size = (top - torch.where(here, exact, torch.inf).amin(-1, keepdim=True)).clamp(min=1e-300)
        if losses.device.type == "cpu":
            active = _solve(exact, c, mass)[2] > 0
        else:
            active = _search((exact - top) / size, mass, square)
    mean, variance, spare = _moments((exact - top) / size, mass * active, mass.sum(), square)
    inside = variance * spare
    risk = mean + torch.where(inside > 0, inside.clamp(min=1e-300).sqrt(), 0.0)
    return (top + risk * size).squeeze(-1).to(losses.dtype)


def _moments(above, active, whole, square) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean and variance of the active losses; c^2 times their share of the mass, minus 1."""
    share = active.sum(-1, keepdim=True)
    mean = (active * above).sum(-1, keepdim=True) / share
    variance = (active * (above - mean).square()).sum(-1, keepdim=True) / share
    return mean, variance, torch.where(square > 1, square * share / whole - 1, 0.0)


def _search(above: torch.Tensor, mass: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
    """Mask of the losses above eta: drop losses at or below it until none is left to drop."""
    active = (mass > 0).expand(above.shape)
    while True:
        mean, variance, spare = _moments(above, mass * active, mass.sum(), square)
        kept = active & (above > mean - torch.sqrt(variance / spare))
        # too little mass remains if only ties with the largest loss are left, or by rounding
        enough = (mass * kept).sum(-1, keepdim=True) * square >= mass.sum()
        kept = torch.where(enough, kept, active)
        if torch.equal(kept, active):
            return active
        active = kept


def tail(losses: torch.Tensor, alpha: float, weights: torch.Tensor) -> torch.Tensor:
    """:func:`drocox.dual.tail` of losses (..., n), in their dtype and on their device."""
    exact = losses.detach().to("cpu", torch.float64).numpy()
    return torch.from_numpy(dual.tail(exact, alpha, weights.cpu().numpy())).to(losses)


def optimal_eta(losses: torch.Tensor, c: float) -> torch.Tensor:
    r"""Exact minimiser :math:`\eta^*` of :math:`c\sqrt{\frac1n\sum_i[\ell_i-\eta]_+^2} + \eta`.

    Parameters
    ----------
    losses : tensor of shape (..., n)
    c : float
        Dual constant, at least 1. At 1 the infimum is the mean, a limit of falling :math:`\eta`:
        then ``-inf``, unless all losses are equal.

    Returns
    -------
    tensor of shape (...)

    Examples
    --------
    >>> optimal_eta(torch.tensor([0.0, 1.0, 2.0]), 2 ** 0.5)
    tensor(0.6340)
    """
    losses = _checks.floats(losses, "losses")
    if not _checks.is_number(c):
        raise TypeError(f"c must be a number >= 1, got {c!r}")
    if not 1 <= c < np.inf:
        raise ValueError(f"c must be a finite number >= 1, got {c!r}; use dual_constant(alpha)")
    return _solve(losses, c, torch.ones(losses.shape[-1]).double())[0]


def dro_risk(
    losses: torch.Tensor, alpha: float, *, rule: str = "sharp", weights: ArrayLike | None = None
) -> torch.Tensor:
    r"""Worst-case mean loss, the paper's (7) at the optimal :math:`\eta`; differentiable.

    .. math:: R = \min_\eta \Big\{ c \sqrt{\tfrac1n \sum_i [\ell_i - \eta]_+^2} + \eta \Big\},
              \qquad \frac{\partial R}{\partial \ell_i} = q_i^*.

    Parameters
    ----------
    losses : tensor of shape (..., n)
        Leading dimensions are a stack of models.
    alpha : float in (0, 1]
        Smallest probability of a group to protect; 1 gives the mean.
    rule : {"sharp", "paper", "definition", "cvar"}
        How ``alpha`` becomes the constant :math:`c`, see :func:`dual_constant`; ``"cvar"`` is the
        mean of the worst share ``alpha`` instead.
    weights : array of shape (n,), optional
        Counts of patients: the empirical distribution is :math:`w_i / \sum_j w_j`. Here their
        scale does not matter, but that of the weights in :func:`cox_losses` does; see there, also
        for invalid weights.

    Returns
    -------
    tensor of shape (...)
        In the dtype and on the device of ``losses``.
    """
    losses, weights = _prepare(losses, alpha, rule, weights)
    if rule == "cvar":
        worst = tail(losses.double(), alpha, weights)
        return (worst * losses.double()).sum(-1).to(losses.dtype)
    return chi_square_risk(losses, dual_constant(alpha, rule=rule), weights)


def worst_case_weights(
    losses: torch.Tensor, alpha: float, *, rule: str = "sharp", weights: ArrayLike | None = None
) -> torch.Tensor:
    r"""The distribution :math:`q^*` of the worst case, which sums to 1.

    .. math:: q_i^* = \frac{p_i [\ell_i - \eta^*]_+}{\sum_j p_j [\ell_j - \eta^*]_+}

    for a chi-square ball around :math:`p`; for ``rule="cvar"`` it is :math:`p_i/\alpha` on the
    largest losses. Where only losses tied at the maximum have weight, they share it in proportion
    to :math:`p`; at alpha 1 it is :math:`p`.

    Parameters
    ----------
    losses, alpha, rule, weights
        As in :func:`dro_risk`.

    Returns
    -------
    tensor of shape (..., n)
    """
    losses, weights = _prepare(losses, alpha, rule, weights)
    if rule == "cvar":
        return tail(losses.double(), alpha, weights).to(losses.dtype)
    return _solve(losses, dual_constant(alpha, rule=rule), weights)[2]


def _prepare(losses, alpha: float, rule: str, weights) -> tuple[torch.Tensor, torch.Tensor]:
    """Check the arguments of a risk; return losses and weights as tensors."""
    losses = _checks.floats(losses, "losses")
    _checks.number_in(alpha, "alpha", 0, 1)
    _checks.one_of(rule, "rule", RULES)
    n = losses.shape[-1]
    if weights is None:
        return losses, torch.ones(n, dtype=torch.float64, device=losses.device)
    return losses, torch.from_numpy(_checks.weights(weights, n)).to(losses.device)
