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
of those inside have a lower score is then a sum of :math:`\log_2 n` entries. One walk from the
latest patient gives each event its pairs with patients observed longer, another from the earliest
gives each patient its pairs with earlier events; pairs at one time are then set right. The counts
are whole and half numbers, equal to those of a loop over the pairs.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from drocox import _checks
from drocox.cox import RiskSets, as_risk_sets

TOLERANCE = 1e-8  # of tied scores in Harrell's index, as in scikit-survival


@dataclass(frozen=True)
class Counts:
    """Pairs of one model's scores; arrays hold one value per patient."""

    points: np.ndarray  # Algorithm B.1: numerator of each patient,
    pairs: np.ndarray  # and denominator
    harrell_points: np.ndarray  # the same by Harrell's rules:
    harrell_pairs: np.ndarray  # every pair enters the counts of both its patients

    def index(self) -> float:
        """Harrell's c-index.

        Returns
        -------
        float
            Points of all comparable pairs by their number.
        """
        if not self.harrell_pairs.any():
            raise ValueError("time and event hold no comparable pair; pass more patients")
        return float(self.harrell_points.sum() / self.harrell_pairs.sum())

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
            raise ValueError(f"a group of {name} has no comparable pair; merge it or add patients")
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
    risk = as_risk_sets(time, event)
    if len(risk.order) > 1:
        raise ValueError("time holds risk sets of several data sets; pass those of one")
    _checks.same_length(scores=scores, time=risk.order)
    return scores, risk


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
    value, rank = np.unique(scores, return_inverse=True)
    n = len(scores)
    size = len(value)
    low = _first_tied(value)
    high = np.searchsorted(low, np.arange(size), side="right")  # ties go both ways
    # Sort by time, latest first; at one time the censored before the events, as if they were later;
    # and by score. A block is one time's censored, or its events.
    key = (2 * risk.stop[0] + risk.event[0]) * size + rank[risk.order[0]]
    place = np.argsort(key, kind="stable")
    key = key[place]
    block, rank = np.divmod(key, size)
    died = block % 2 == 1
    everybody = np.ones(n, dtype=bool)
    begin, end = (np.searchsorted(block, block, side) for side in ("left", "right"))
    # below a patient's rank, up to it; and the same beyond the tolerance of tied scores
    limits = np.stack([rank, rank + 1, low[rank], high[rank]])
    below = _walk(rank, limits, end, died, everybody)
    # the same from the other end: earlier events, the highest score first
    limits = size - limits[:, ::-1]
    ends = n - begin[::-1]
    above = _walk(size - 1 - rank[::-1], limits, ends, everybody, died[::-1].copy())
    halves, harrell_halves = below + above[:, ::-1]  # two for a right pair, one for a tied one
    # an event meets all who stand before its block, and everybody the events behind their block
    deaths = np.append(0, np.cumsum(died))
    harrell_pairs = np.where(died, begin, 0) + deaths[-1] - deaths[end]
    # Pairs at one time are worth one half at least. An event and a censored patient whose score is
    # higher: where that score stands in the other's block says how many there are.
    at = np.searchsorted(key, np.where(died, key + 1 - size, key + size))
    halves += np.where(died, begin - at, at - end)
    # Two events: one half more if their scores tie.
    same = np.searchsorted(key, key, "right") - np.searchsorted(key, key)
    others = end - begin - 1
    halves += np.where(died, others + same - 1, 0)
    pairs = harrell_pairs + np.where(died, others, 0)
    by_patient = np.argsort(risk.order[0][place])
    found = (halves / 2, pairs, harrell_halves / 2, harrell_pairs)
    return Counts(*(counted[by_patient] for counted in found))


@njit(cache=True)
def _first_tied(value):
    """Rank of the lowest of the ascending values that is within the tolerance of each.

    Rounded differences keep the order of the values, so all in between are tied as well, and that
    rank only moves up.
    """
    low = np.empty(len(value), np.int64)
    first = 0
    for r in range(len(value)):
        while value[r] - value[first] > TOLERANCE:
            first += 1
        low[r] = first
    return low


@njit(cache=True)
def _walk(rank, limits, stop, asks, enters):
    """Block by block, whoever asks is told how many entered before, of what rank.

    ``stop`` is one past the last position of each block. Returned are the counts of ranks below the
    first two of the four ``limits``, added, and below the others: shape (2, n).
    """
    n = len(rank)
    tree = np.zeros(rank.max() + 2, np.int64)  # tree[k] counts ranks k - (k & -k), ..., k - 1
    below = np.zeros((2, n), np.int64)
    start = 0
    while start < n:
        for q in range(start, stop[start]):
            if asks[q]:
                for limit in range(len(limits)):
                    k = limits[limit, q]
                    while k > 0:
                        below[limit // 2, q] += tree[k]
                        k -= k & -k
        for q in range(start, stop[start]):
            if enters[q]:
                k = rank[q] + 1
                while k < len(tree):
                    tree[k] += 1
                    k += k & -k
        start = stop[start]
    return below
