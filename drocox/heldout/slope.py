r"""The calibration slope: the change of the log-hazard per unit of the score.

It is the coefficient :math:`\beta` of a Cox regression on the score alone, stratified by fold: 1
for log-hazards on the right scale, below 1 for predictions that are too extreme, 0 for noise,
negative for a score that ranks backwards. With weights :math:`w_j = e^{\beta f_j}`, mean
:math:`E_t` and variance :math:`V_t` of the scores at risk at time t, and :math:`d_t` events there
(Breslow's ties),

.. math:: U(\beta) = \sum_i \delta_i (f_i - E_{Y_i}) = 0 , \qquad I(\beta) = \sum_t d_t V_t .

The slope without patient i is :math:`\beta` plus one Newton step :math:`U_{(-i)} / I_{(-i)}`. With
:math:`S_t` the sum of weights at risk,

.. math:: U_{(-i)} = -\delta_i (f_i - E_{Y_i}) + \sum_{t \le Y_i} d_t (f_i - E_t)
          \Big(\frac{w_i}{S_t} + \frac{w_i^2}{S_t^2} + \dots\Big) , \qquad
          I_{(-i)} = I - \delta_i V_{Y_i} + \sum_{t \le Y_i} d_t \frac{w_i}{S_t}
          \big(V_t - (f_i - E_t)^2\big) + \dots
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

STEPS = 60  # maximum number of Newton steps
SMALL = 1e-10  # converged: step for standardised scores, relative to the slope if that is over 1
LEAST = 1e-12  # information below this share of the mean squares is rounding


class _Sums(NamedTuple):
    """Sums over the risk sets of one fold, indexed by rank of the time."""

    at_risk: np.ndarray
    mean: np.ndarray
    square: np.ndarray  # mean of the squared scores
    variance: np.ndarray
    weight: np.ndarray  # of each patient


class _Fold:
    """Patients scored by one model."""

    def __init__(self, scores: np.ndarray, time: np.ndarray, event: np.ndarray):
        self.scores = scores
        self.event = event
        self.rank = np.unique(time, return_inverse=True)[1]
        self.deaths = np.bincount(self.rank, event)

    def sums(self, slope: float) -> _Sums:
        """Weighted moments of the scores in every risk set, at a given slope."""
        weight = slope * self.scores
        weight = np.exp(weight - weight.max(), out=weight)  # in place: it may be a large array

        def later(values: np.ndarray) -> np.ndarray:
            """Sum over the patients at risk, by rank of the time."""
            return np.cumsum(np.bincount(self.rank, values)[::-1])[::-1]

        at_risk = later(weight)
        with np.errstate(invalid="ignore"):  # 0 / 0 where all at risk have a weight of 0
            mean = later(weight * self.scores) / at_risk
            square = later(weight * self.scores**2) / at_risk
        variance = np.maximum(square - mean**2, 0.0)
        return _Sums(at_risk, mean, square, variance, weight)

    def score_and_information(self, slope: float) -> tuple[float, float, float]:
        """First derivative of the log partial likelihood, information, and scale of its rounding.

        The information is a sum of variances, mean square minus squared mean; the scale is the sum
        of the mean squares.
        """
        sums = self.sums(slope)
        score = (self.event * self.scores).sum() - (self.deaths * sums.mean).sum()
        return score, (self.deaths * sums.variance).sum(), (self.deaths * sums.square).sum()

    def left_out(self, slope: float) -> tuple[np.ndarray, np.ndarray]:
        """Score function without each patient, and the information lost with them."""
        sums = self.sums(slope)
        rank = self.rank
        f = self.scores
        weight = sums.weight
        step = self.deaths / sums.at_risk

        def until(values: np.ndarray) -> np.ndarray:
            """Sum over the times up to each patient's own."""
            return np.cumsum(values)[rank]

        first = f * until(step) - until(step * sums.mean)
        step_2 = step / sums.at_risk
        second = f * until(step_2) - until(step_2 * sums.mean)
        own_event = self.event * (f - sums.mean[rank])
        # the patient's own event no longer contributes to the sums over event times
        own_share = weight / sums.at_risk[rank]
        score = weight * first + weight**2 * second - own_event * (1 + own_share + own_share**2)
        apart = f**2 * until(step) - 2 * f * until(step * sums.mean)
        apart = apart + until(step * (sums.mean**2 - sums.variance))
        lost = self.event * sums.variance[rank] + weight * apart
        return score, lost


def newton(
    terms: Callable[[float], np.ndarray], slope: float, unit: float, small: float
) -> tuple[float, np.ndarray]:
    """Where a decreasing score function is 0, by steps within a bracket; NaN if not found.

    At a slope, ``terms`` has those of the score function and of the information as two columns; the
    last of them are returned, too. A step is no longer than the slope or a ``unit``, of which a
    ``small`` part ends the search.
    """
    low, high = -np.inf, np.inf
    for _ in range(STEPS):
        parts = terms(slope)
        score, information = parts.sum(axis=0)
        if not information > 0:
            break
        low, high = (slope, high) if score > 0 else (low, slope)
        limit = max(unit, abs(slope))
        step = np.clip(score / information, -limit, limit)
        if not low <= slope + step <= high:
            step = (low + high) / 2 - slope
        slope += step
        if abs(step) <= small * limit:
            return slope, parts
    return np.nan, parts


def calibration_slope(
    scores: np.ndarray, time: np.ndarray, event: np.ndarray, fold: np.ndarray
) -> tuple[float, np.ndarray]:
    """Coefficient of the scores in a Cox regression stratified by fold, and leave-one-out values.

    NaN if the slope is undefined: all scores are equal, or they order the events perfectly, or they
    spread so far that every hazard in some risk set underflows relative to the largest.
    """
    nothing = (np.nan, np.full(len(scores), np.nan))
    with np.errstate(over="ignore", invalid="ignore"):
        centre = np.bincount(fold, scores) / np.maximum(np.bincount(fold), 1)
        centred = scores - centre[fold]
        largest = np.abs(centred).max()
    if not 0 < largest < np.inf:
        return nothing
    unit = largest * np.sqrt(((centred / largest) ** 2).mean())
    z = centred / unit
    rows_of = {}
    for k in np.unique(fold[event]):  # patients censored before the first event are never at risk
        rows_of[k] = np.flatnonzero((fold == k) & (time >= time[event & (fold == k)].min()))
    folds = {k: _Fold(z[rows], time[rows], event[rows]) for k, rows in rows_of.items()}

    def terms(slope: float) -> np.ndarray:
        parts = np.array([one.score_and_information(slope) for one in folds.values()])
        score, information, squares = parts.sum(axis=0)
        return np.array([[score, information if information > LEAST * squares else 0.0]])

    slope = newton(terms, 0.0, 1.0, SMALL)[0]
    if np.isnan(slope):
        return nothing
    information = terms(slope)[0, 1]
    without = np.full(len(scores), slope)
    for k, rows in rows_of.items():
        score, lost = folds[k].left_out(slope)
        left = information - lost
        without[rows] += score / np.where(left > 0, left, np.nan)
    return slope / unit, without / unit
