r"""Survival curves: step functions, Kaplan and Meier's estimate, and the curve of the censoring.

With :math:`d_u` events among :math:`N_u` patients at risk at time u, and :math:`c_u` censored,

.. math:: \hat S(t) = \prod_{u \le t} \Big(1 - \frac{d_u}{N_u}\Big), \qquad
          G(t) = \prod_{u \le t} \Big(1 - \frac{c_u}{N_u - d_u}\Big) .

Events of a time leave before the patients censored at it. An event at :math:`Y_i` has the
inverse-probability-of-censoring weight :math:`1 / G(Y_i)`: it represents similar patients who were
censored earlier. Both curves are scikit-survival's. Breslow's curves of a model are computed from
logarithms of the sums of hazards in the risk sets; :mod:`drocox.cox` has the formulas.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from drocox import _checks
from drocox.kernels import SAFE_SPREAD
from drocox.risksets import RiskSets


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


class LifeTable(NamedTuple):
    """Patients by their distinct times, which increase."""

    time: np.ndarray  # (k,)
    rank: np.ndarray  # (n,), of each patient's time among the distinct ones
    events: np.ndarray  # (k,), at each time; so are
    censored: np.ndarray  # those whose observation ends, and
    at_risk: np.ndarray  # those observed up to it


def by_time(time: np.ndarray, event: np.ndarray) -> LifeTable:
    """Count the events, the censored and the patients at risk at each distinct time."""
    distinct, rank = np.unique(time, return_inverse=True)
    everybody = np.bincount(rank)
    events = np.bincount(rank, event)
    at_risk = np.cumsum(everybody[::-1])[::-1]
    return LifeTable(distinct, rank, events, everybody - events, at_risk)


def kaplan_meier(time: np.ndarray, event: np.ndarray, censoring: bool = False) -> StepFunction:
    """The curve of survival, or that of the ``censoring``; constant after the last time."""
    counts = by_time(time, event)
    lost, at_risk = counts.events, counts.at_risk
    if censoring:
        lost = counts.censored
        at_risk = np.maximum(at_risk - counts.events, 1)  # 1: nobody is left, and nobody lost
    alive = np.cumprod(1 - lost / at_risk)
    return StepFunction(np.append(-np.inf, counts.time), np.append(1.0, alive), (-np.inf, np.inf))


def censoring_weights(time: np.ndarray, event: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Inverse-probability-of-censoring weights 1 / G at the times ``at``; 0 where G is 0."""
    G = kaplan_meier(time, event, censoring=True)(at)
    return np.divide(1.0, G, out=np.zeros(np.shape(G)), where=G > 0)


def squared_errors(survival: np.ndarray, cases: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """What each patient adds to a Brier score; weights of cases and controls are 0 for others."""
    return survival**2 * cases + (1 - survival) ** 2 * controls


def _log_running_sums(x: np.ndarray) -> np.ndarray:
    """Logarithms of the running sums of exp(x), with one common shift where no term underflows."""
    top = x.max(initial=-np.inf)
    if x.min(initial=top) > top - SAFE_SPREAD:
        sums = x - top
        np.exp(sums, out=sums)
        np.cumsum(sums, out=sums)
        np.log(sums, out=sums)
        sums += top
        return sums
    return np.logaddexp.accumulate(x)


def log_risk_sums(scores: np.ndarray, risk: RiskSets, weights: np.ndarray | None = None):
    """Logarithm of the sum of the hazards in each patient's risk set, (n,)."""
    order = risk.order[0]
    x = scores[order]
    if weights is not None:
        with np.errstate(divide="ignore"):  # a weight of 0 adds nothing
            x = x + np.log(weights[order])
    sums = [_log_running_sums(x[low:high]) for low, high in pairwise(risk.bounds)]
    out = np.empty(len(x))
    out[order] = np.concatenate(sums)[risk.stop[0] - 1]
    return out


def log_baseline(log_sums, risk: RiskSets, times, weights: np.ndarray | None = None) -> np.ndarray:
    """Logarithm of Breslow's cumulative baseline hazard, shape (strata, len(times))."""
    counts = np.ones(len(log_sums)) if weights is None else weights
    died = risk.event[0] & (counts[risk.order[0]] > 0)
    baselines = []
    for low, high in pairwise(risk.bounds):
        at = low + np.flatnonzero(died[low:high])[::-1]  # earliest event first
        who = risk.order[0][at]
        steps = np.log(counts[who]) - log_sums[who]
        happened = np.searchsorted(risk.time[0][at], times, side="right")
        baselines.append(np.append(-np.inf, _log_running_sums(steps))[happened])
    return np.array(baselines)


def stratum_of_each(strata, labels: np.ndarray | None, m: int) -> np.ndarray:
    """Position of each patient's stratum in the training ``labels``; 0 without strata."""
    if labels is None:
        if strata is not None:
            raise ValueError(
                "strata: the training patients have none; leave it out, or fit with it"
            )
        return np.zeros(m, int)
    if strata is None:
        raise ValueError("the training patients have strata; pass strata= for those to predict")
    own_labels, codes = _checks.labels(strata, "strata", m)
    position = {label: k for k, label in enumerate(labels.tolist())}
    unknown = [label for label in own_labels.tolist() if label not in position]
    if unknown:
        raise ValueError(
            f"strata holds {unknown[0]!r}, a stratum without training patients and so without a "
            f"baseline; use labels of the training strata"
        )
    return np.array([position[label] for label in own_labels.tolist()])[codes]
