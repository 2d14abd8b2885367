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

Numbers of lower scores come from Fenwick trees over the ranks of the scores. ``tree[k]`` holds the
sum over the ranks ``k - (k & -k), ..., k - 1``, so adding a patient changes, and a sum over the
lower ranks reads, at most :math:`\log_2 n` entries::

    rank       0     1     2     3     4     5     6     7
             ├───────────────── tree[8] ─────────────────────┤
             ├────── tree[4] ────────┤
             ├─ tree[2] ─┤           ├─ tree[6] ─┤
             ├ t[1]┤     ├ t[3]┤     ├ t[5]┤     ├ t[7]┤

    sum over ranks 0 to 6 = tree[7] + tree[6] + tree[4]
    a patient at rank 4 enters tree[5], tree[6], tree[8]
"""

import numpy as np

from drocox.compiled import njit
from drocox.concordance import TOLERANCE
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
    """Points and pairs of each event with the patients observed longer or censored at its time.

    Patients are sorted by time, events first at each time. The walk goes from the latest time
    to the earliest; at each time::

        tree: scores of later patients
          1. the censored enter
          2. every event reads its points and pairs
          3. the events enter
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
        for q in range(end - 1, begin - 1, -1):  # the censored are last
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
    """Points and pairs of each patient with earlier events, weighted, and with tied ones, counted.

    These are lost by the events if the patient is left out. The walk goes from the earliest time to
    the latest; at each time::

          earlier_events: weights of the events     tied_events: events of this time only,
          at earlier times                          empty between two times
          1. everybody reads: earlier
                                                    2. the events enter
                                                    3. the censored read: tied
                                                    4. the events leave
          5. the events enter, weighted

        time          2             5                    9
                   ┌─────┐   ┌─────────┬─────┐   ┌─────┬─────┐     ● event   ○ censored
                   │  ●  │   │  ●   ●  │  ○  │   │  ●  │  ○  │
                   └─────┘   └─────────┴─────┘   └─────┴─────┘
        in earlier_events at time 5: the event of time 2; in tied_events: the two events of time 5
    """
    n = len(score)
    earlier = np.zeros((2, n))
    tied = np.zeros((2, n))
    earlier_events = np.zeros(score.max() + 2)
    tied_events = np.zeros(score.max() + 2, np.int64)
    total = 0.0  # weight of all earlier events
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and time[end] == time[begin]:
            end += 1
        for q in range(begin, end):
            lower = (_below(earlier_events, low[q]) + _below(earlier_events, high[q])) / 2
            earlier[0, q] = total - lower
            earlier[1, q] = total
        if counted[begin] and not event[end - 1]:  # both events and censored patients
            events = 0
            for q in range(begin, end):
                if counted[q]:
                    _enter(tied_events, score[q], 1)
                    events += 1
            for q in range(begin, end):
                if not event[q]:
                    halves = _below(tied_events, low[q]) + _below(tied_events, high[q])
                    tied[0, q] = events - halves / 2
                    tied[1, q] = events
            for q in range(begin, end):
                if counted[q]:
                    _enter(tied_events, score[q], -1)
        for q in range(begin, end):
            if counted[q]:
                _enter(earlier_events, score[q], weight[q])
                total += weight[q]
        begin = end
    return earlier, tied


@njit(cache=True)
def _enter(tree, rank, amount):
    """Add an amount at a rank of a Fenwick tree."""
    k = rank + 1
    while k < len(tree):
        tree[k] += amount
        k += k & -k


@njit(cache=True)
def _below(tree, rank):
    """Sum of the amounts at lower ranks of a Fenwick tree."""
    total = tree[0]  # 0, in the dtype of the tree
    k = rank
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total
