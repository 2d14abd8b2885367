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
LEAST = 1e-9  # information for each event, below which the likelihood is flat


class _Sums(NamedTuple):
    """Of one fold, by rank of the time: deaths, sum of weights, mean and variance of the scores."""

    deaths: np.ndarray
    at_risk: np.ndarray
    mean: np.ndarray
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
        mean = later(weight * self.scores) / at_risk
        square = later(weight * self.scores**2) / at_risk
        return _Sums(self.deaths, at_risk, mean, np.maximum(square - mean**2, 0.0), weight)

    def score_and_information(self, slope: float) -> tuple[float, float]:
        """Derivative of the log partial likelihood, and its negative second derivative."""
        sums = self.sums(slope)
        score = (self.event * self.scores).sum() - sums.deaths @ sums.mean
        return score, sums.deaths @ sums.variance

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
        NaN where there is no slope: scores that are all equal, or in the order of the events.
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
    rows_of = {k: np.flatnonzero(fold == k) for k in np.unique(fold[event])}
    folds = {k: _Fold(z[rows], time[rows], event[rows]) for k, rows in rows_of.items()}
    slope = 0.0
    for _ in range(STEPS):
        parts = np.array([one.score_and_information(slope) for one in folds.values()])
        score, information = parts.sum(axis=0)
        if not information > LEAST * event.sum():
            return nothing
        limit = max(1.0, abs(slope))
        step = np.clip(score / information, -limit, limit)
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
