r"""The calibration slope: by how much a unit of the score changes the log-hazard.

It is the coefficient :math:`\beta` of a Cox regression on the score alone, within each fold: 1 for
log-hazards on the right scale, below 1 where predictions are too extreme, 0 for noise, negative for
a score that ranks backwards. With weights :math:`w_j = e^{\beta f_j}`, mean :math:`E_t` and
variance :math:`V_t` of the scores at risk at time t, and :math:`d_t` events there (Breslow's ties),

.. math:: U(\beta) = \sum_i \delta_i (f_i - E_{Y_i}) = 0 , \qquad I(\beta) = \sum_t d_t V_t .

Without patient i, the slope is :math:`\beta` plus one Newton step :math:`U_{(-i)} / I_{(-i)}`. With
:math:`S_t` the sum of weights at risk,

.. math:: U_{(-i)} = -\delta_i (f_i - E_{Y_i}) + \sum_{t \le Y_i} d_t (f_i - E_t)
          \Big(\frac{w_i}{S_t} + \frac{w_i^2}{S_t^2} + \dots\Big) , \qquad
          I_{(-i)} = I - \delta_i V_{Y_i} + \sum_{t \le Y_i} d_t \frac{w_i}{S_t}
          \big(V_t - (f_i - E_t)^2\big) + \dots
"""

from typing import NamedTuple

import numpy as np

STEPS = 60  # of Newton's method at most
SMALL = 1e-10  # a step in standard deviations of the scores that ends the search
LEAST = 1e-12  # information by mean square of the scores at risk, below which it is rounding


class _Sums(NamedTuple):
    """Of one fold, by rank of the time: deaths, sum of weights, moments of the scores at risk."""

    deaths: np.ndarray
    at_risk: np.ndarray
    mean: np.ndarray
    square: np.ndarray  # mean of the squared scores
    variance: np.ndarray
    weight: np.ndarray  # of each patient


class _Fold:
    """Patients who were scored by one model."""

    def __init__(self, scores: np.ndarray, time: np.ndarray, event: np.ndarray):
        self.scores = scores
        self.event = event
        self.rank = np.unique(time, return_inverse=True)[1]
        self.deaths = np.bincount(self.rank, event)

    def sums(self, slope: float) -> _Sums:
        """Sums over risk sets at a slope."""
        linear = slope * self.scores
        weight = np.exp(linear - linear.max())

        def later(values: np.ndarray) -> np.ndarray:
            """By rank of the time, the sum over patients at risk."""
            return np.cumsum(np.bincount(self.rank, values)[::-1])[::-1]

        at_risk = later(weight)
        with np.errstate(invalid="ignore"):  # 0 / 0 where all at risk have a weight of 0
            mean = later(weight * self.scores) / at_risk
            square = later(weight * self.scores**2) / at_risk
        variance = np.maximum(square - mean**2, 0.0)
        return _Sums(self.deaths, at_risk, mean, square, variance, weight)

    def score_and_information(self, slope: float) -> tuple[float, float, float]:
        """Derivative of the log partial likelihood, its negative second derivative, their scale.

        The second is a difference of mean squares at risk, whose sum is the scale.
        """
        sums = self.sums(slope)
        score = (self.event * self.scores).sum() - sums.deaths @ sums.mean
        return score, sums.deaths @ sums.variance, sums.deaths @ sums.square

    def left_out(self, slope: float) -> tuple[np.ndarray, np.ndarray]:
        """What the score is without each patient, and how much information is lost."""
        sums = self.sums(slope)
        rank = self.rank
        f = self.scores
        weight = sums.weight
        step = sums.deaths / sums.at_risk

        def until(values: np.ndarray) -> np.ndarray:
            """Sum over the times up to each patient's own."""
            return np.cumsum(values)[rank]

        first = f * until(step) - until(step * sums.mean)
        step_2 = step / sums.at_risk
        second = f * until(step_2) - until(step_2 * sums.mean)
        own_event = self.event * (f - sums.mean[rank])
        # the own event is not there any more to be compared with the own weight
        own_share = weight / sums.at_risk[rank]
        score = weight * first + weight**2 * second - own_event * (1 + own_share + own_share**2)
        apart = f**2 * until(step) - 2 * f * until(step * sums.mean)
        apart = apart + until(step * (sums.mean**2 - sums.variance))
        lost = self.event * sums.variance[rank] + weight * apart
        return score, lost


def calibration_slope(
    scores: np.ndarray, time: np.ndarray, event: np.ndarray, fold: np.ndarray
) -> tuple[float, np.ndarray]:
    """Slope of the log-hazard by the scores, with and without each patient.

    Parameters
    ----------
    scores, time, event, fold : arrays of shape (n,)
        Only patients of one fold are compared.

    Returns
    -------
    value, without : float and array of shape (n,)
        NaN where there is no slope: scores that are all equal, or in the order of the events, or so
        far apart that the hazards of all who are at risk at some event are 0 beside another's.
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
    for k in np.unique(fold[event]):  # who left before the first event is never at risk
        rows_of[k] = np.flatnonzero((fold == k) & (time >= time[event & (fold == k)].min()))
    folds = {k: _Fold(z[rows], time[rows], event[rows]) for k, rows in rows_of.items()}
    slope = 0.0
    low, high = -np.inf, np.inf  # the score falls with the slope: its root lies between
    for _ in range(STEPS):
        parts = np.array([one.score_and_information(slope) for one in folds.values()])
        score, information, squares = parts.sum(axis=0)
        if not information > LEAST * squares:
            return nothing
        if score > 0:
            low = slope
        else:
            high = slope
        limit = max(1.0, abs(slope))
        step = np.clip(score / information, -limit, limit)
        if not low <= slope + step <= high:
            step = (low + high) / 2 - slope
        slope += step
        if abs(step) < SMALL * limit:
            break
    else:
        return nothing
    information = sum(one.score_and_information(slope)[1] for one in folds.values())
    without = np.full(len(scores), slope)
    for k, rows in rows_of.items():
        score, lost = folds[k].left_out(slope)
        left = information - lost
        without[rows] += score / np.where(left > 0, left, np.nan)
    return slope / unit, without / unit
