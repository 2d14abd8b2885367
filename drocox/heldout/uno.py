r"""Uno's c: the concordance of scores that does not depend on how long patients were followed.

Events :math:`i` before a time :math:`\tau` are compared with patients :math:`j` observed longer (or
censored at the same time), and weighted for those lost to censoring
(:mod:`drocox.heldout.censoring`):

.. math:: C(\tau) = \frac{\sum_{i: \delta_i = 1, Y_i < \tau} G(Y_i)^{-2} \sum_j
          (1\{f_i > f_j\} + \tfrac12 1\{f_i = f_j\})}
          {\sum_{i: \delta_i = 1, Y_i < \tau} G(Y_i)^{-2} \sum_j 1} .

The value is that of scikit-survival's ``concordance_index_ipcw`` with the same patients for
:math:`G`; scores within 1e-8 are tied. A patient who is left out takes along their pairs and
changes G, and both are followed exactly, in :math:`O(n \log n)`.
"""

import numpy as np
from numba import njit

from drocox.concordance import TOLERANCE
from drocox.heldout.censoring import Censoring


def sums(
    scores: np.ndarray, event: np.ndarray, fold: np.ndarray, weights: Censoring, counted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numerator and denominator of Uno's c, and both without each patient.

    Parameters
    ----------
    scores, event, fold : arrays of shape (n,)
        Only patients of one fold are compared.
    weights : Censoring
        Of these patients, in all folds.
    counted : bool array of shape (n,)
        Events before the time of truncation.

    Returns
    -------
    total, without : arrays of shape (2,) and (n, 2)
        Points and pairs, weighted.
    """
    n = len(scores)
    # points and pairs: of an event with later patients; of a patient with earlier events, by the
    # weights without a later patient; and with events at the patient's time, not weighted
    with_later = np.zeros((2, n))
    with_earlier = np.zeros((2, n))
    with_tied = np.zeros((2, n))
    weight = np.where(counted, weights.weight**2, 0.0)
    changed = weight * weights.without_later**2
    for label in np.unique(fold[counted]):
        rows = np.flatnonzero(fold == label)
        rows = rows[np.lexsort((~event[rows], weights.rank[rows]))]  # events first at each time
        value, score = np.unique(scores[rows], return_inverse=True)
        low = np.searchsorted(value, value - TOLERANCE, side="left")[score]
        high = np.searchsorted(value, value + TOLERANCE, side="right")[score]
        time = weights.rank[rows]
        line = (score, low, high, time, event[rows])
        with_later[:, rows] = _later(*line)
        earlier, tied = _earlier(*line, changed[rows], counted[rows])
        with_earlier[:, rows] = earlier
        with_tied[:, rows] = tied
    at_time = np.zeros(weights.rank.max() + 1)
    at_time[weights.rank[counted]] = weight[counted]
    total = []
    without = []
    for later, earlier, tied in zip(with_later, with_earlier, with_tied, strict=True):
        terms = weight * later
        total.append(terms.sum())
        without.append(weights.sum_without(terms, 2, earlier, at_time[weights.rank] * tied))
    return np.array(total), np.column_stack(without)


@njit(cache=True)
def _later(score, low, high, time, event):
    """Points and pairs of each event with patients observed longer, or censored at its time.

    Patients enter a Fenwick tree over the ranks of their scores, the latest first: of one time the
    censored, then the events ask, then they enter, too.
    """
    n = len(score)
    out = np.zeros((2, n))
    tree = np.zeros(score.max() + 2, np.int64)
    inside = 0
    end = n
    while end > 0:
        begin = end - 1
        while begin > 0 and time[begin - 1] == time[end - 1]:
            begin -= 1
        for q in range(end - 1, begin - 1, -1):  # the censored stand last
            if not event[q]:
                _enter(tree, score[q], 1)
                inside += 1
        for q in range(begin, end):
            if event[q]:
                out[0, q] = (_below(tree, low[q]) + _below(tree, high[q])) / 2
                out[1, q] = inside
        for q in range(begin, end):
            if event[q]:
                _enter(tree, score[q], 1)
                inside += 1
        end = begin
    return out


@njit(cache=True)
def _earlier(score, low, high, time, event, weight, counted):
    """Points and pairs of each patient with earlier events, weighted, and with those at one time.

    The same walk from the earliest on. The events of one time enter a second tree for a while.
    """
    n = len(score)
    earlier = np.zeros((2, n))
    tied = np.zeros((2, n))
    tree = np.zeros(score.max() + 2)
    of_time = np.zeros(score.max() + 2, np.int64)
    inside = 0.0
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and time[end] == time[begin]:
            end += 1
        for q in range(begin, end):
            earlier[0, q] = inside - (_below(tree, low[q]) + _below(tree, high[q])) / 2
            earlier[1, q] = inside
        if counted[begin] and not event[end - 1]:  # events, and censored at their time
            events = 0
            for q in range(begin, end):
                if counted[q]:
                    _enter(of_time, score[q], 1)
                    events += 1
            for q in range(begin, end):
                if not event[q]:
                    halves = _below(of_time, low[q]) + _below(of_time, high[q])
                    tied[0, q] = events - halves / 2
                    tied[1, q] = events
            for q in range(begin, end):
                if counted[q]:
                    _enter(of_time, score[q], -1)
        for q in range(begin, end):
            if counted[q]:
                _enter(tree, score[q], weight[q])
                inside += weight[q]
        begin = end
    return earlier, tied


@njit(cache=True)
def _enter(tree, rank, amount):
    """Add an amount at a rank."""
    k = rank + 1
    while k < len(tree):
        tree[k] += amount
        k += k & -k


@njit(cache=True)
def _below(tree, rank):
    """Sum of the amounts at lower ranks."""
    total = tree[0]  # nothing
    k = rank
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total
