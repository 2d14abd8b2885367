r"""Survival curves: step functions, Kaplan and Meier's estimate, and the curve of the censoring.

With :math:`d_u` events among :math:`N_u` patients at risk at time u, and :math:`c_u` censored,

.. math:: \hat S(t) = \prod_{u \le t} \Big(1 - \frac{d_u}{N_u}\Big), \qquad
          G(t) = \prod_{u \le t} \Big(1 - \frac{c_u}{N_u - d_u}\Big) .

Events of a time leave before the patients censored at it. An event at :math:`Y_i` has the
inverse-probability-of-censoring weight :math:`1 / G(Y_i)`: it represents similar patients who were
censored earlier. Both curves are scikit-survival's.
"""

import numpy as np


class StepFunction:
    """A function that jumps to ``y[k]`` at ``x[k]``, as scikit-survival's models return them.

    Attributes
    ----------
    x, y : arrays of shape (k,)
        Increasing places of the jumps, and the values from there on.
    domain : tuple of float
        Smallest and largest argument.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, domain: tuple[float, float] | None = None):
        self.x = x
        self.y = y
        self.domain = (float(x[0]), float(x[-1])) if domain is None else domain

    def __call__(self, x):
        """Value at a number, or values at an array of numbers."""
        low, high = self.domain
        x = np.asarray(x, dtype=float)
        if not ((x >= low) & (x <= high)).all():
            raise ValueError(f"x must lie in [{low:g}, {high:g}], where the function is defined")
        return self.y[np.searchsorted(self.x, x, side="right") - 1]

    def __eq__(self, other) -> bool:
        same = isinstance(other, StepFunction) and self.domain == other.domain
        return same and np.array_equal(self.x, other.x) and np.array_equal(self.y, other.y)

    def __repr__(self) -> str:
        low, high = self.domain
        return f"StepFunction({len(self.x)} steps from {low:g} to {high:g})"


def kaplan_meier(time: np.ndarray, event: np.ndarray, censoring: bool = False) -> StepFunction:
    """The curve of survival, or that of the ``censoring``; constant after the last time."""
    times, rank = np.unique(time, return_inverse=True)
    everybody = np.bincount(rank)
    events = np.bincount(rank, event)
    at_risk = np.cumsum(everybody[::-1])[::-1]
    lost = events
    if censoring:
        lost = everybody - events
        at_risk = np.maximum(at_risk - events, 1)  # 1: nobody is left, and nobody lost
    alive = np.cumprod(1 - lost / at_risk)
    return StepFunction(np.append(-np.inf, times), np.append(1.0, alive), (-np.inf, np.inf))
