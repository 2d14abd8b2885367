r"""Accuracy: how well scores rank patients, and how well survival curves fit what happened.

:math:`f_i` is the score of test patient :math:`i` (higher: earlier event), :math:`Y_i` the time,
:math:`\delta_i` the event indicator, :math:`G` the Kaplan-Meier curve of the *training* part's
censoring times, so that :math:`1/G` are inverse-probability-of-censoring weights. At time
:math:`t`, cases have :math:`Y_i \le t, \delta_i = 1` and controls :math:`Y_j > t`; they give

.. math:: \mathrm{AUC}(t) = \frac{\sum_{i\,\text{case}} \sum_{j\,\text{control}}
          1\{f_i > f_j\} / G(Y_i)}{\sum_{i\,\text{case}} \sum_{j\,\text{control}} 1 / G(Y_i)}, \quad
          \mathrm{BS}(t) = \frac1n \Big[\sum_{i\,\text{case}} \frac{\hat S_i(t)^2}{G(Y_i)}
          + \sum_{j\,\text{control}} \frac{(1 - \hat S_j(t))^2}{G(t)}\Big].

A pair of equal scores counts one half. Concordance, AUC and Brier score equal scikit-survival's.
This module adds the time points of the experiments, and errors for inputs for which scikit-survival
returns NaN or silently reorders rows.
:class:`CumulativeAUC` and :class:`BrierScore` prepare everything that depends on the outcomes only,
to evaluate any number of models.
"""

import numpy as np
from numpy.typing import ArrayLike

from drocox import _checks, concordance
from drocox.curves import censoring_weights, kaplan_meier, log_risk_sums, squared_errors
from drocox.risksets import RiskSets

AUC_PERCENTILES = np.linspace(5, 81, 15)
TRAIN = ("train_time", "train_event")


def concordance_index(
    scores: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> float:
    r"""Harrell's concordance index: the share of comparable pairs with :math:`f_i > f_j`.

    A pair is comparable if ``i`` has an event and ``j`` is observed longer, or is censored at the
    same time. Scores within 1e-8 of each other are tied and count one half.

    Parameters
    ----------
    scores : array of shape (n,)
        Higher for earlier events.
    time, event : arrays of shape (n,)
        Observed times and event indicators.
    strata : array of shape (n,), optional
        Stratum of each patient: only pairs within a stratum are comparable.
    weights : array of shape (n,), optional
        How many patients each row stands for: a pair counts as often as the product of its two.

    Returns
    -------
    float
    """
    return concordance.count(scores, time, event, strata=strata, weights=weights).index()


class CumulativeAUC:
    r"""Mean AUC over the times :math:`t_1, \dots, t_{15}`, percentiles 5 to 81 of the test times.

    .. math:: \sum_k \frac{S(t_{k-1}) - S(t_k)}{1 - S(t_{15})}\, \mathrm{AUC}(t_k),

    with :math:`S` the Kaplan-Meier curve of the test part and :math:`S(t_0) = 1`: the second value
    of scikit-survival's ``cumulative_dynamic_auc``, not the plain mean of its first.

    Parameters
    ----------
    train_time, train_event : arrays of shape (n_train,)
        Outcomes of the training part, for :math:`G`.
    time, event : arrays of shape (n,)
        Outcomes of the test part.
    """

    def __init__(
        self, train_time: ArrayLike, train_event: ArrayLike, time: ArrayLike, event: ArrayLike
    ):
        train_time, train_event = _checks.outcomes(train_time, train_event, TRAIN)
        time, event = _checks.outcomes(time, event)
        times = np.percentile(time, AUC_PERCENTILES)
        if not event[time <= times[0]].any():
            raise ValueError(
                f"no event up to the 5th percentile of time ({times[0]:g}), "
                "so no cases for the AUC; pass a larger test part"
            )
        if times[-1] >= time.max():
            raise ValueError(
                f"the 81st percentile of time is its maximum ({time.max():g}), "
                "so no controls for the AUC; pass longer follow-up"
            )
        # G is unknown beyond the last training time, and 0 there if somebody is censored at it.
        last = train_time.max()
        known = time <= last if train_event[train_time == last].all() else time < last
        if not known[event].all():
            raise ValueError(
                f"time holds events at or beyond the last of train_time ({last:g}), "
                "where G is not known; censor them before that time"
            )
        weights = event * censoring_weights(train_time, train_event, time)
        alive = kaplan_meier(time, event)(times)
        self.falls = -np.diff(alive, prepend=1.0) / (1.0 - alive[-1])
        self.cases = weights[:, None] * (time[:, None] <= times)
        self.controls = (time[:, None] > times).astype(float)

    def __call__(self, scores: ArrayLike) -> float:
        """Mean AUC of scores (n,), higher for earlier events."""
        scores = _checks.numbers(scores, "scores", 1)
        _checks.same_length(scores=scores, time=self.cases[:, 0])
        won = (self.cases * concordance.weight_below(scores, self.controls)).sum(axis=0)
        auc = won / (self.cases.sum(axis=0) * self.controls.sum(axis=0))
        return float(auc @ self.falls)


def cumulative_auc(
    train_time: ArrayLike,
    train_event: ArrayLike,
    scores: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
) -> float:
    """Mean AUC of one model: :class:`CumulativeAUC`.

    Parameters
    ----------
    train_time, train_event : arrays of shape (n_train,)
        Outcomes of the training part, for the censoring distribution.
    scores, time, event : arrays of shape (n,)
        Scores (higher for earlier events) and outcomes of the test part.

    Returns
    -------
    float
    """
    return CumulativeAUC(train_time, train_event, time, event)(scores)


def log_partial_likelihood(
    scores: ArrayLike,
    time: ArrayLike | RiskSets,
    event: ArrayLike | None = None,
    ties: str = "breslow",
) -> float:
    r"""Log partial likelihood per event, :math:`-\sum_i \ell_i / \sum_i \delta_i`, paper's (3).

    Parameters
    ----------
    scores : array of shape (n,)
        Higher for earlier events.
    time, event : arrays of shape (n,)
        Observed times and event indicators; or :func:`drocox.risk_sets` of them as ``time`` alone.
    ties : {"breslow", "efron", "order"}
        As in :func:`drocox.cox_losses`.

    Returns
    -------
    float
    """
    scores, risk = concordance.scored(scores, time, event)
    if ties == "breslow":
        losses = (log_risk_sums(scores, risk) - scores)[risk.order[risk.event]]
    else:
        import torch

        from drocox.cox import cox_losses

        losses = cox_losses(torch.from_numpy(scores), risk, ties=ties)
    return -float(losses.sum()) / int(risk.event.sum())


def brier_times(train_time: ArrayLike, time: ArrayLike) -> np.ndarray:
    """Times at which the experiments evaluate survival curves.

    Parameters
    ----------
    train_time, time : arrays of shape (n_train,) and (n,)
        Observed times of the training and the test part.

    Returns
    -------
    array of shape (50,)
        Evenly spaced from the larger of both parts' smallest times to the largest test time, which
        is excluded.
    """
    train_time = _checks.numbers(train_time, "train_time", 1)
    time = _checks.numbers(time, "time", 1)
    start = max(train_time.min(), time.min())
    stop = time.max()
    if start >= stop:
        raise ValueError(
            f"no times between {start:g}, where train_time and time have begun, and {stop:g}, "
            "the largest of time; pass overlapping parts"
        )
    return np.linspace(start, stop, 50, endpoint=False)


class BrierScore:
    r"""Integrated Brier score, :math:`\int \mathrm{BS}(t)\, dt / (t_K - t_1)`; lower is better.

    The integral is by the trapezoidal rule. At and beyond the end of a training part whose last
    patient is censored, G and the weight are 0.

    Parameters
    ----------
    train_time, train_event : arrays of shape (n_train,)
        Outcomes of the training part, for :math:`G`.
    time, event : arrays of shape (n,)
        Outcomes of the test part.
    times : array of shape (K,)
        Increasing, as from :func:`brier_times`.
    """

    def __init__(
        self,
        train_time: ArrayLike,
        train_event: ArrayLike,
        time: ArrayLike,
        event: ArrayLike,
        times: ArrayLike,
    ):
        train_time, train_event = _checks.outcomes(train_time, train_event, TRAIN)
        time, event = _checks.outcomes(time, event)
        times = _checks.numbers(times, "times", 1)
        if len(times) < 2 or (np.diff(times) <= 0).any():
            raise ValueError(
                "times must hold two or more increasing values; "
                "sort them together with the columns of survival"
            )
        if times[0] < time.min() or times[-1] >= time.max():
            raise ValueError(
                f"times must lie in [{time.min():g}, {time.max():g}), the range of time; "
                "use brier_times(train_time, time)"
            )
        last = train_time.max()
        if time.max() > last and train_event[train_time == last].all():
            raise ValueError(
                f"time goes beyond the last of train_time ({last:g}), where G is not known; "
                "end the test follow-up there"
            )
        weights = event * censoring_weights(train_time, train_event, time)
        alive = time[:, None] > times
        self.times = times
        self.cases = weights[:, None] * ~alive
        self.controls = alive * censoring_weights(train_time, train_event, times)

    def __call__(self, survival: ArrayLike) -> float:
        """Integrated Brier score of predicted survival probabilities (n, K) at the times."""
        survival = _checks.numbers(survival, "survival", 2)
        if survival.shape != self.cases.shape:
            rows, columns = self.cases.shape
            wanted = f"one row per test patient ({rows}) and one column for each time ({columns})"
            raise ValueError(f"survival has shape {survival.shape}; pass {wanted}")
        if survival.min() < 0 or survival.max() > 1:
            raise ValueError("survival must lie in [0, 1]; pass probabilities, not scores")
        score = squared_errors(survival, self.cases, self.controls).mean(axis=0)
        return float(np.trapezoid(score, self.times) / (self.times[-1] - self.times[0]))


def integrated_brier_score(
    train_time: ArrayLike,
    train_event: ArrayLike,
    survival: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    times: ArrayLike,
) -> float:
    """Integrated Brier score of one model: :class:`BrierScore`.

    Parameters
    ----------
    train_time, train_event : arrays of shape (n_train,)
        Outcomes of the training part, for the censoring distribution.
    survival : array of shape (n, K)
        Predicted probabilities of surviving beyond each of ``times``.
    time, event : arrays of shape (n,)
        Outcomes of the test part.
    times : array of shape (K,)
        Increasing, as from :func:`brier_times`.

    Returns
    -------
    float
    """
    return BrierScore(train_time, train_event, time, event, times)(survival)
