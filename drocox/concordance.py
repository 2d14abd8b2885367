r"""Concordance: how many pairs of patients a model ranks as they fared, in O(n log n).

Two ways of counting share one walk through time. Both compare a patient :math:`i` who has an event
with patients observed longer, and give one point if :math:`f_i > f_j` and one half if the scores
are tied. They differ in three rules:

================================  ============================  ==================================
pair                              Harrell's c-index             Algorithm B.1 (for CI)
================================  ============================  ==================================
whose count it enters             everybody's                   that of either patient, separately
event and censored at one time    as if censored later          one point if :math:`f_i > f_j`,
                                                                else one half
two events at one time            not compared                  one point if the scores are tied,
                                                                else one half
tied scores                       at most 1e-8 apart            equal
================================  ============================  ==================================

Patients enter a Fenwick tree over the ranks of their scores in the order of their times; how many
of those inside have a lower score is then a sum of :math:`\log_2 n` entries. The counts are whole
and half numbers, equal to those of a loop over the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from drocox import _checks
from drocox.cox import RiskSets, risk_sets

TOLERANCE = 1e-8  # of tied scores in Harrell's index, as in scikit-survival


@dataclass(frozen=True)
class Counts:
    """Pairs of one model's scores; arrays hold one value per patient."""

    points: np.ndarray  # Algorithm B.1: numerator of each patient,
    pairs: np.ndarray  # and denominator
    concordant: int  # Harrell: comparable pairs ranked rightly,
    tied: int  # with tied scores,
    comparable: int  # and all of them

    def index(self) -> float:
        """Harrell's c-index.

        Returns
        -------
        float
            ``(concordant + tied / 2) / comparable``.
        """
        if self.comparable == 0:
            raise ValueError(
                "time and event hold no comparable pair, as nobody is observed beyond "
                "the first event; pass more patients"
            )
        return (self.concordant + 0.5 * self.tied) / self.comparable

    def fractions(self, codes, name: str = "codes") -> np.ndarray:
        """Concordance fraction of each group, the last line of Algorithm B.1.

        Parameters
        ----------
        codes : array of shape (n,)
            Group of each patient.
        name : str
            What error messages call the groups.

        Returns
        -------
        array of shape (G,)
            In the order of the sorted codes.
        """
        codes = _checks.codes(codes, name, len(self.pairs))
        pairs = np.bincount(codes, self.pairs)
        if (pairs == 0).any():
            raise ValueError(
                f"a group of {name} has no comparable pair, so its concordance "
                "fraction does not exist; merge groups or use more patients"
            )
        return np.bincount(codes, self.points) / pairs


def scored(scores, time, event=None) -> tuple[np.ndarray, RiskSets]:
    """Check the scores of one model against outcomes, and put the patients in order of time.

    Parameters
    ----------
    scores : array of shape (n,)
        Higher for earlier events.
    time, event : arrays of shape (n,)
        Observed times and event indicators; or :func:`drocox.risk_sets` of them as ``time`` alone.

    Returns
    -------
    scores, risk : array of shape (n,), RiskSets
    """
    scores = np.ascontiguousarray(_checks.numbers(scores, "scores", 1))
    if isinstance(time, RiskSets) == (event is not None):
        raise TypeError("event: pass either time and event, or risk_sets(time, event) alone")
    if not isinstance(time, RiskSets):
        time = risk_sets(*_checks.outcomes(time, event))
    if len(time.order) > 1:
        raise ValueError("time holds risk sets of several data sets; pass those of one")
    _checks.same_length(scores=scores, time=time.order)
    return scores, time


def count(scores, time, event=None) -> Counts:
    """Count the pairs of one model, for the c-index and for CI.

    Parameters
    ----------
    scores, time, event : arrays of shape (n,)
        As in :func:`scored`.

    Returns
    -------
    Counts
    """
    scores, risk = scored(scores, time, event)
    order, stop, died = risk.order[0], risk.stop[0], risk.event[0]
    rank, low, high = _ranks(scores, np.argsort(scores, kind="stable"))
    halves = np.zeros(len(scores), np.int64)  # half points: whole numbers only
    pairs = np.zeros(len(scores), np.int64)
    harrell = _compare_with_later(rank[order], low, high, order, stop, died, halves, pairs)
    _compare_with_earlier(rank[order], len(low), order, stop, died, halves, pairs)
    return Counts(halves / 2, pairs, *harrell)


def pair_counts(scores, time, event) -> tuple[np.ndarray, np.ndarray]:
    """Numerator and denominator of Algorithm B.1, patient by patient.

    Parameters
    ----------
    scores, time, event : arrays of shape (n,)
        As in :func:`scored`.

    Returns
    -------
    points, pairs : arrays of shape (n,)
        Points of each patient and number of comparable pairs they come from;
        ``1 - points / pairs`` is the patient's share of discordance.

    Examples
    --------
    >>> points, pairs = pair_counts([3, 1, 2], [1, 2, 3], [1, 1, 0])
    >>> points.tolist(), pairs.tolist()
    ([2.0, 1.0, 1.0], [2, 2, 2])
    """
    counts = count(scores, time, event)
    return counts.points, counts.pairs


# A Fenwick tree: tree[k] counts the members with ranks k - (k & -k), ..., k - 1.


@njit(cache=True)
def _add(tree, rank):
    k = rank + 1
    while k < len(tree):
        tree[k] += 1
        k += k & -k


@njit(cache=True)
def _below(tree, rank):
    """Members with a rank lower than ``rank``."""
    total = 0
    k = rank
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@njit(cache=True)
def _ranks(scores, ascending):
    """Rank of each patient's score among the distinct ones, and what is tied with each rank.

    Scores of ranks ``low[r]``, ..., ``high[r] - 1`` are within the tolerance of rank ``r``. Rounded
    differences keep the order of the scores, so the tied ranks have no gap, and both ends only move
    up with ``r``.
    """
    n = len(scores)
    rank = np.empty(n, np.int64)
    value = np.empty(n)
    size = 0
    for i in ascending:
        if size == 0 or scores[i] != value[size - 1]:
            value[size] = scores[i]
            size += 1
        rank[i] = size - 1
    low = np.empty(size, np.int64)
    high = np.empty(size, np.int64)
    first = 0
    end = 0
    for r in range(size):
        while value[r] - value[first] > TOLERANCE:
            first += 1
        while end < size and value[end] - value[r] <= TOLERANCE:
            end += 1
        low[r] = first
        high[r] = end
    return rank, low, high


@njit(cache=True)
def _compare_with_later(rank, low, high, order, stop, event, halves, pairs):
    """Add each event's pairs with patients no earlier, and count Harrell's pairs.

    ``rank`` and ``event`` stand latest first, as do ``order``, the patient at each position, and
    ``stop``, one past the last position with the same time.
    """
    tree = np.zeros(len(low) + 1, np.int64)  # who is observed longer
    same = np.zeros(len(low), np.int64)  # how many of them have each score
    concordant = 0
    tied = 0
    comparable = 0
    start = 0
    while start < len(rank):
        end = stop[start]
        for q in range(start, end):
            if event[q]:
                # half a point for each lower score and for each tie, ...
                halves[order[q]] += _below(tree, rank[q]) + same[rank[q]]
        censored = 0
        for q in range(start, end):
            if not event[q]:
                _add(tree, rank[q])
                same[rank[q]] += 1
                censored += 1
        deaths = end - start - censored
        for q in range(start, end):
            if event[q]:
                # ... the other half for a lower score, and both for one censored at this time
                halves[order[q]] += _below(tree, rank[q]) + censored
                lower = _below(tree, low[rank[q]])
                concordant += lower
                tied += _below(tree, high[rank[q]]) - lower
                comparable += start + censored
                pairs[order[q]] += start + censored + deaths - 1
                # another event at this time: half a point, and half more if the scores tie;
                # those are what `same` gains by this time's events, less the patient's own
                halves[order[q]] += (deaths - 1) - (same[rank[q]] + 1)
        for q in range(start, end):
            if event[q]:
                _add(tree, rank[q])
                same[rank[q]] += 1
        for q in range(start, end):
            if event[q]:
                halves[order[q]] += same[rank[q]]
        start = end
    return concordant, tied, comparable


@njit(cache=True)
def _compare_with_earlier(rank, size, order, stop, event, halves, pairs):
    """Add each patient's pairs with events that are earlier, or at the time of a censoring."""
    tree = np.zeros(size + 1, np.int64)  # earlier events, highest score first
    same = np.zeros(size, np.int64)  # how many of them have each score
    top = size - 1
    before = 0  # how many they are
    end = len(rank)
    while end > 0:
        start = end - 1
        while start > 0 and stop[start - 1] == end:
            start -= 1
        for q in range(start, end):
            higher = _below(tree, top - rank[q])
            halves[order[q]] += (2 if event[q] else 1) * higher + same[rank[q]]
            pairs[order[q]] += before
        deaths = 0
        for q in range(start, end):
            if event[q]:
                _add(tree, top - rank[q])
                same[rank[q]] += 1
                deaths += 1
        before += deaths
        for q in range(start, end):
            if not event[q]:  # both halves for a higher score at this time, else one
                halves[order[q]] += _below(tree, top - rank[q]) + deaths
                pairs[order[q]] += deaths
        end = start
