r"""Accuracy: how well scores rank patients, and how well survival curves fit what happened.

:math:`f_i` is the score of test patient :math:`i` (higher: earlier event), :math:`Y_i` the time,
:math:`\delta_i` the event indicator, :math:`G` the Kaplan-Meier curve of the *training* part's
censoring times; :math:`1/G` makes up for patients lost to censoring. At time :math:`t`, cases have
:math:`Y_i \le t, \delta_i = 1` and controls :math:`Y_j > t`; they give

.. math:: \mathrm{AUC}(t) = \frac{\sum_{i\,\text{case}} \sum_{j\,\text{control}}
          1\{f_i > f_j\} / G(Y_i)}{\sum_{i\,\text{case}} \sum_{j\,\text{control}} 1 / G(Y_i)}, \quad
          \mathrm{BS}(t) = \frac1n \Big[\sum_{i\,\text{case}} \frac{\hat S_i(t)^2}{G(Y_i)}
          + \sum_{j\,\text{control}} \frac{(1 - \hat S_j(t))^2}{G(t)}\Big].

Concordance, AUC and Brier score are scikit-survival's; added here are the time points of the
experiments and checks for inputs that scikit-survival would answer with NaN or quietly reorder.
"""

from __future__ import annotations

import numpy as np
import torch
from sksurv import metrics
from sksurv.util import Surv

from drocox import _checks
from drocox.cox import TIES, cox_losses

AUC_PERCENTILES = np.linspace(5, 81, 15)
TRAIN = ("train_time", "train_event")


def concordance_index(scores, time, event) -> float:
    r"""Harrell's concordance index: the share of comparable pairs with :math:`f_i > f_j`.

    A pair is comparable if ``i`` has an event and ``j`` is observed longer, or is censored at the
    same time. Scores within 1e-8 of each other are tied and count one half.
    """
    scores, time, event = _scored(scores, time, event)
    start = time[event].min()
    if not ((time > start) | ((time == start) & ~event)).any():
        raise ValueError(
            "time and event hold no comparable pair, as nobody is observed beyond "
            "the first event; pass more patients"
        )
    return float(metrics.concordance_index_censored(event, time, scores)[0])


def cumulative_auc(train_time, train_event, scores, time, event) -> float:
    r"""Mean AUC over the times :math:`t_1, \dots, t_{15}`, percentiles 5 to 81 of the test times.

    .. math:: \sum_k \frac{S(t_{k-1}) - S(t_k)}{1 - S(t_{15})}\, \mathrm{AUC}(t_k),

    with :math:`S` the Kaplan-Meier curve of the test part and :math:`S(t_0) = 1`: the second value
    of scikit-survival's ``cumulative_dynamic_auc``, not the plain mean of its first.
    """
    train_time, train_event = _checks.outcomes(train_time, train_event, TRAIN)
    scores, time, event = _scored(scores, time, event)
    times = np.percentile(time, AUC_PERCENTILES)
    if not event[time <= times[0]].any():
        raise ValueError(
            f"no event up to the 5th percentile of time ({times[0]:g}), so the AUC "
            "has no cases there; pass a larger test part"
        )
    if times[-1] >= time.max():
        raise ValueError(
            f"the 81st percentile of time is its maximum ({time.max():g}), so the "
            "AUC has no controls there; pass a test part with longer follow-up"
        )
    # G is unknown beyond the last training time, and 0 there if somebody is censored at it.
    last = train_time.max()
    known = time <= last if train_event[train_time == last].all() else time < last
    if not known[event].all():
        raise ValueError(
            f"time holds events at or beyond the last of train_time ({last:g}), where "
            "no censoring distribution is known; censor them before that time"
        )
    train, test = Surv.from_arrays(train_event, train_time), Surv.from_arrays(event, time)
    return float(metrics.cumulative_dynamic_auc(train, test, scores, times)[1])


def log_partial_likelihood(scores, time, event, ties: str = "breslow") -> float:
    r"""Log partial likelihood per event, :math:`-\sum_i \ell_i / \sum_i \delta_i` with eq. (3).

    ``ties`` as in :func:`drocox.cox_losses`.
    """
    _checks.one_of(ties, "ties", TIES)
    scores, time, event = _scored(scores, time, event)
    losses = cox_losses(torch.from_numpy(scores), time, event, ties=ties)
    return -float(losses.sum()) / int(event.sum())


def brier_times(train_time, time) -> np.ndarray:
    """Return the 50 times at which the experiments evaluate survival curves.

    Evenly spaced from the larger of both parts' smallest times to the largest test time, left out.
    """
    train_time = _checks.numbers(train_time, "train_time", 1)
    time = _checks.numbers(time, "time", 1)
    start, stop = max(train_time.min(), time.min()), time.max()
    if start >= stop:
        raise ValueError(
            f"no times between {start:g}, the larger smallest time of train_time and "
            f"time, and {stop:g}, the largest of time; pass overlapping parts"
        )
    return np.linspace(start, stop, 50, endpoint=False)


def integrated_brier_score(train_time, train_event, survival, time, event, times) -> float:
    r"""Integrated Brier score, :math:`\int \mathrm{BS}(t)\, dt / (t_K - t_1)`; lower is better.

    ``survival`` (n, K) holds predicted probabilities of surviving beyond each of the increasing
    ``times`` (K,), as from :func:`brier_times`; the integral is by the trapezoidal rule. At and
    beyond the end of a training part whose last patient is censored, G and the weight are 0.
    """
    train_time, train_event = _checks.outcomes(train_time, train_event, TRAIN)
    time, event = _checks.outcomes(time, event)
    survival, times = _checks.numbers(survival, "survival", 2), _checks.numbers(times, "times", 1)
    if survival.shape != (len(time), len(times)):
        raise ValueError(
            f"survival has shape {survival.shape}; pass one row per test patient "
            f"({len(time)}) and one column for each of times ({len(times)})"
        )
    if (survival < 0).any() or (survival > 1).any():
        raise ValueError("survival must lie in [0, 1]; pass probabilities, not scores or hazards")
    if len(times) < 2 or (np.diff(times) <= 0).any():
        raise ValueError(
            "times must hold two or more increasing values; sort them together with "
            "the columns of survival"
        )
    if times[0] < time.min() or times[-1] >= time.max():
        raise ValueError(
            f"times must lie in [{time.min():g}, {time.max():g}), the range of time; "
            "use brier_times(train_time, time)"
        )
    last = train_time.max()
    if time.max() > last and train_event[train_time == last].all():
        raise ValueError(
            f"time goes beyond the last of train_time ({last:g}), where no censoring "
            "distribution is known; end the test follow-up there"
        )
    train, test = Surv.from_arrays(train_event, train_time), Surv.from_arrays(event, time)
    return float(metrics.integrated_brier_score(train, test, survival, times))


def misaligned_brier_score(train_time, train_event, survival, time, event, times, order) -> float:
    """Integrated Brier score of row ``order[i]`` of ``survival`` against outcome ``i``.

    The published values come back when predictions are sorted by descending time and outcomes are
    not, so that curves meet other patients' outcomes. To judge a model, use
    :func:`integrated_brier_score`.
    """
    survival, order = _checks.numbers(survival, "survival", 2), np.asarray(order)
    if order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), range(len(survival))):
        raise ValueError(
            f"order must hold each row number, 0 to {len(survival) - 1}, once; pass "
            "an argsort of time"
        )
    return integrated_brier_score(train_time, train_event, survival[order], time, event, times)


def _scored(scores, time, event) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, times and events of one part, checked, as float, float and bool arrays."""
    scores = _checks.numbers(scores, "scores", 1)
    time, event = _checks.outcomes(time, event)
    _checks.same_length(scores=scores, time=time)
    return scores, time, event
