"""The dual constant, and the worst case of the rule "cvar", in NumPy for the solver.

:mod:`drocox.dro` derives both.
"""

import numpy as np

from drocox import _checks

CONSTANTS = ("paper", "definition", "sharp")
RULES = (*CONSTANTS, "cvar")


def dual_constant(alpha: float, *, rule: str = "sharp") -> float:
    r"""Constant :math:`c` of the dual that protects groups of probability at least ``alpha``.

    Parameters
    ----------
    alpha : float in (0, 1]
        Smallest probability of a group to protect.
    rule : {"sharp", "paper", "definition"}
        ``"sharp"`` is :math:`1/\sqrt\alpha`, from the radius :math:`1/\alpha - 1` that suffices for
        such a group; ``"paper"`` :math:`\sqrt{2(1/\alpha-1)^2+1}`, as printed in Proposition 3;
        ``"definition"`` :math:`\sqrt{(1/\alpha-1)^2+1}`, what Definition 1 gives with the radius of
        Proposition 2. The rule "cvar" of :func:`dro_risk` has no such constant.

    Returns
    -------
    float

    Examples
    --------
    >>> dual_constant(0.25), round(dual_constant(0.5, rule="paper"), 6)
    (2.0, 1.732051)
    """
    alpha = _checks.number_in(alpha, "alpha", 0, 1)
    if rule == "cvar":
        raise ValueError("rule 'cvar' has no constant; call dro_risk(losses, alpha, rule='cvar')")
    _checks.one_of(rule, "rule", CONSTANTS)
    if rule == "sharp":
        return float(1 / np.sqrt(alpha))
    times = 2.0 if rule == "paper" else 1.0
    return float(np.hypot(1, np.sqrt(times) * (1 / alpha - 1)))


def tail(losses: np.ndarray, alpha: float, weights: np.ndarray) -> np.ndarray:
    """Worst case of the rule "cvar": mass/alpha on the largest of the losses (..., n).

    Losses tied at the edge of the tail share the remaining mass, so the order of patients does not
    matter. Input is not checked.
    """
    mass = np.broadcast_to(weights / weights.sum(), losses.shape)
    order = np.argsort(-losses, axis=-1)
    reached = np.cumsum(np.take_along_axis(mass, order, -1), axis=-1) >= alpha * (1 - 1e-12)
    # the first patient at which the tail has mass alpha; the last one if rounding prevents it
    edge = np.where(reached.any(axis=-1), reached.argmax(axis=-1), losses.shape[-1] - 1)
    last = np.take_along_axis(order, edge[..., None], -1)
    threshold = np.take_along_axis(losses, last, -1)
    above = mass * (losses > threshold) / alpha
    tied = mass * (losses == threshold)
    left = 1 - above.sum(axis=-1, keepdims=True)
    return above + left * tied / tied.sum(axis=-1, keepdims=True)
