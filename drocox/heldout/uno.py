r"""Uno's c: a concordance index that does not depend on the censoring distribution.

Events :math:`i` before a time :math:`\tau` are compared with patients :math:`j` observed longer (or
censored at the same time), with inverse-probability-of-censoring weights
(:mod:`drocox.heldout.censoring`):

.. math:: C(\tau) = \frac{\sum_{i: \delta_i = 1, Y_i < \tau} G(Y_i)^{-2} \sum_j
          (1\{f_i > f_j\} + \tfrac12 1\{f_i = f_j\})}
          {\sum_{i: \delta_i = 1, Y_i < \tau} G(Y_i)^{-2} \sum_j 1} .

The value is that of scikit-survival's ``concordance_index_ipcw`` with the same patients for
:math:`G`; scores within 1e-8 are tied. Leaving out a patient removes their pairs and changes G;
the leave-one-out values account for both exactly, in :math:`O(n \log n)`.
"""

import numpy as np

from drocox import concordance
from drocox.heldout.censoring import Censoring


def sums(
    scores: np.ndarray, event: np.ndarray, fold: np.ndarray, weights: Censoring, counted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numerator and denominator of Uno's c (2,), and both without each patient (n, 2).

    Pairs are formed within a fold. ``weights`` are estimated from all these patients;
    ``counted`` marks the events before the time of truncation.
    """
    n = len(scores)
    # points and pairs of an event with later patients; of a patient with earlier events, at the
    # weights these have if the patient is left out; with events at the patient's time, unweighted
    with_later = np.zeros((2, n))
    with_earlier = np.zeros((2, n))
    with_tied = np.zeros((2, n))
    weight = np.where(counted, weights.weight**2, 0.0)
    changed = weight * weights.without_later**2
    for label in np.unique(fold[counted]):
        rows = np.flatnonzero(fold == label)
        line = concordance.line_up(scores[rows], -weights.rank[rows], event[rows])
        rows = rows[line.patient]
        with_later[:, rows] = _later(line)
        with_earlier[:, rows] = _earlier(line, changed[rows])
        with_tied[:, rows] = _tied(line)
    at_time = np.zeros(weights.rank.max() + 1)
    at_time[weights.rank[counted]] = weight[counted]
    terms = weight * with_later
    lost = zip(terms, with_earlier, at_time[weights.rank] * with_tied, strict=True)
    without = [weights.sum_without(one, 2, earlier, tied) for one, earlier, tied in lost]
    return terms.sum(axis=1), np.column_stack(without)


def _later(line: concordance.Line) -> tuple[np.ndarray, np.ndarray]:
    """Points and pairs of each event with the patients observed longer or censored at its time."""
    everybody = np.ones(len(line.rank))
    (halves,) = concordance.sums_below(line, line.limits, everybody, asks=line.died)
    return halves / 2, line.begin


def _earlier(line: concordance.Line, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points and pairs of each patient with the events of earlier times, which carry weights."""
    (halves,) = concordance.sums_below(line, line.limits, weight, back=True, by_time=True)
    time = line.place // (2 * line.ranks)
    to_the_right = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    total = to_the_right[np.searchsorted(time, time, side="right")]
    return total - halves / 2, total


def _tied(line: concordance.Line) -> tuple[np.ndarray, np.ndarray]:
    """Points and pairs of each censored patient with the events of the same time."""
    # which stand one block to the right; there the same rank has a place larger by line.ranks
    first = line.place - line.rank + line.ranks
    limits = (line.low, line.high, line.ranks)
    low, high, events = (np.searchsorted(line.place, first + rank) - line.end for rank in limits)
    points = events - (low + high) / 2
    return np.where(line.died, 0.0, points), np.where(line.died, 0.0, events)
