r"""Concordance: the share of patient pairs that a model ranks in the order of their outcomes.

Two ways of counting share one pass through time. Both compare a patient :math:`i` who has an event
with patients observed longer, and give one point if :math:`f_i > f_j` and one half if the scores
are tied. They differ in these rules:

================================  ============================  ==================================
pair                              Harrell's c-index             Algorithm B.1 (for CI)
================================  ============================  ==================================
enters the count of               all patients together         each of its patients separately
event and censored at one time    as if censored later          one point if :math:`f_i > f_j`,
                                                                else one half
two events at one time            not compared                  one point if the scores are tied,
                                                                else one half
tied scores                       at most 1e-8 apart            equal
================================  ============================  ==================================

Patients enter a Fenwick tree (drawn in :mod:`drocox.heldout.uno`) over the ranks of their scores in
the order of their times; the number of patients in the tree with a lower score is then a sum of
:math:`\log_2 n` entries, so all pairs are counted in :math:`O(n \log n)`. A pass from the latest
patient gives each event its pairs with patients observed longer, another from the earliest gives
each patient their pairs with earlier events; pairs at one time are corrected afterwards. The counts
are whole and half numbers, equal to those of a loop over the pairs. With strata, whose baseline
hazards need not be comparable, only pairs within a stratum are counted.
"""

from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from drocox import _checks
from drocox.compiled import njit
from drocox.risksets import RiskSets, as_risk_sets, risk_sets

TOLERANCE = 1e-8  # scores this close are tied in Harrell's index, as in scikit-survival


@dataclass(frozen=True)
class Counts:
    """Points and pairs of each patient, for one model's scores."""

    points: np.ndarray  # Algorithm B.1: numerator of each patient,
    pairs: np.ndarray  # and denominator
    harrell_points: np.ndarray  # the same by Harrell's rules:
    harrell_pairs: np.ndarray  # every pair enters the counts of both its patients

    def index(self) -> float:
        """Harrell's c-index: points of all comparable pairs divided by their number."""
        if not self.harrell_pairs.any():
            raise ValueError("time and event hold no comparable pair; pass more patients")
        return float(self.harrell_points.sum() / self.harrell_pairs.sum())

    def fractions(self, codes, name: str = "codes") -> np.ndarray:
        """Concordance fraction of each group (sorted codes), the last line of Algorithm B.1.

        ``name`` is the name of the attribute in error messages.
        """
        codes = _checks.codes(codes, name, len(self.pairs))
        pairs = np.bincount(codes, self.pairs)
        if (pairs == 0).any():
            raise ValueError(f"a group of {name} has no comparable pair; merge it or add patients")
        return np.bincount(codes, self.points) / pairs


def scored(scores, time, event=None, *, strata=None) -> tuple[np.ndarray, RiskSets]:
    """Check the scores of one model (higher for earlier events), and prepare the risk sets.

    Instead of ``time`` and ``event``, :func:`drocox.risk_sets` may be passed as ``time`` alone.
    """
    scores = np.ascontiguousarray(_checks.numbers(scores, "scores", 1))
    if strata is None:
        risk = as_risk_sets(time, event)
    elif event is None:
        raise TypeError("strata: leave it out; pass risk_sets(time, event, strata=strata) alone")
    else:
        risk = risk_sets(time, event, strata=strata)
    if len(risk.order) > 1:
        raise ValueError("time holds risk sets of several data sets; pass those of one")
    _checks.same_length(scores=scores, time=risk.order)
    return scores, risk


def count(scores, time, event=None, *, strata=None) -> Counts:
    """Count the pairs of one model, for the c-index and for CI; arguments as in :func:`scored`."""
    scores, risk = scored(scores, time, event, strata=strata)
    ordered = scores[risk.order[0]]
    by_stratum = []
    for begin, end in pairwise(risk.bounds):
        stratum = slice(begin, end)
        line = _line_up(ordered[stratum], risk.stop[0, stratum], risk.event[0, stratum])
        by_stratum.append(_count_within(line))
    place = np.argsort(risk.order[0])
    columns = [field.name for field in fields(Counts)]
    whole = {
        name: np.concatenate([getattr(counts, name) for counts in by_stratum])[place]
        for name in columns
    }
    return Counts(**whole)


@dataclass(frozen=True)
class _Line:
    """Patients of one stratum in a line: latest first, at one time the censored before the events.

    ::

        time            9       7             4
                     ┌─────┐ ┌─────┬─────┐ ┌─────┬───────┐      ○ censored   ● event
                     │  ○  │ │ ○ ○ │  ●  │ │  ○  │ ● ● ● │
                     └─────┘ └─────┴─────┘ └─────┴───────┘
        position        0      1 2    3       4    5 6 7
        begin, end     0,1     1,3   3,4     4,5    5,8         of the patient's block
                        ─────────────────────────────────►      pass for pairs with later patients
                        ◄─────────────────────────────────      pass for pairs with earlier events

    A block is the censored patients of one time, or its events, the lowest score first. An event is
    compared with all blocks to its left: patients observed longer, or censored at its time, which
    Harrell's index treats as later.
    """

    ranks: int  # number of distinct scores
    patient: np.ndarray  # at each position; all arrays have shape (n,)
    place: np.ndarray  # grows along the line: block number times number of ranks, plus rank
    rank: np.ndarray  # of the score among the distinct scores
    low: np.ndarray  # ranks low to high - 1 are within the tolerance of the score
    high: np.ndarray
    died: np.ndarray
    begin: np.ndarray  # first position of the block, and one past its last
    end: np.ndarray


def _line_up(scores: np.ndarray, stop: np.ndarray, event: np.ndarray) -> _Line:
    """The line of patients given latest first, with the ``stop`` of their risk sets."""
    value, rank = np.unique(scores, return_inverse=True)
    low = _first_tied(value)
    high = np.searchsorted(low, np.arange(len(value)), side="right")  # ties go both ways
    # one number that sorts by time, then the censored before the events, then by score
    place = (2 * stop + event) * len(value) + rank
    patient = np.argsort(place, kind="stable")
    place = place[patient]
    block: np.ndarray = place // len(value)
    rank = place % len(value)
    return _Line(
        ranks=len(value),
        patient=patient,
        place=place,
        rank=rank,
        low=low[rank],
        high=high[rank],
        died=block % 2 == 1,
        begin=np.searchsorted(block, block, "left"),
        end=np.searchsorted(block, block, "right"),
    )


def _count_within(line: _Line) -> Counts:
    """Counts of one line, in the order in which its patients were given."""
    halves, harrell_halves, harrell_pairs = _between_blocks(line)
    more_halves, more_pairs = _at_one_time(line)
    place = np.argsort(line.patient)
    return Counts(
        points=((halves + more_halves) / 2)[place],
        pairs=(harrell_pairs + more_pairs)[place],
        harrell_points=(harrell_halves / 2)[place],
        harrell_pairs=harrell_pairs[place],
    )


def _between_blocks(line: _Line) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half points (exact ties, ties within the tolerance) and pairs of different blocks.

    If an event meets L patients with a lower score and E with an equal one, it gets 2 L + E half
    points: the number of scores below its rank plus the number up to it. A patient with M events to
    the right gets 2 (higher) + (equal) half points, hence 2 M minus the same sum.
    """
    n = len(line.rank)
    begins = np.flatnonzero(line.begin == np.arange(n))
    ends = line.end[begins]
    everybody = np.ones(n, dtype=bool)
    limits = np.stack([line.rank, line.rank + 1, line.low, line.high])
    events = np.append(0, np.cumsum(line.died))  # to the left of each position
    events_right = events[-1] - events[line.end]
    with_later = _sums_below(line.rank, limits, begins, ends, line.died, everybody)
    below = _sums_below(line.rank, limits, begins[::-1], ends[::-1], everybody, line.died)
    with_earlier = 2 * events_right - below
    halves, harrell_halves = with_later + with_earlier
    pairs = np.where(line.died, line.begin, 0) + events_right
    return halves, harrell_halves, pairs


def _at_one_time(line: _Line) -> tuple[np.ndarray, np.ndarray]:
    """Half points and pairs that Algorithm B.1 adds for pairs at one time.

    An event and a patient censored at its time already have 0, 1 or 2 half points from different
    blocks; the algorithm gives at least 1, so 1 more if the censored score is higher. Two events
    get 1, and 2 if their scores are equal.
    """
    place = line.place
    # the same time's censored stand one block to the left of its events, so the number of a rank
    # there is smaller by the number of ranks
    first_higher_censored = np.searchsorted(place, place - line.ranks + 1)
    higher_censored = line.begin - first_higher_censored
    first_event_not_lower = np.searchsorted(place, place + line.ranks)
    lower_events = first_event_not_lower - line.end
    equal = np.searchsorted(place, place, "right") - np.searchsorted(place, place, "left") - 1
    other_events = np.where(line.died, line.end - line.begin - 1, 0)
    halves = np.where(line.died, higher_censored + other_events + equal, lower_events)
    return halves, other_events


@njit(cache=True)
def _first_tied(value):
    """For each of the ascending values, the rank of the lowest value within the tolerance.

    Rounded differences keep the order of the values, so all values in between are tied as well, and
    the rank never decreases.
    """
    low = np.empty(len(value), np.int64)
    first = 0
    for r in range(len(value)):
        while value[r] - value[first] > TOLERANCE:
            first += 1
        low[r] = first
    return low


@njit(cache=True)
def _sums_below(rank, limits, begins, ends, asks, enters):
    """Numbers of earlier entries with a lower rank, block by block, by a Fenwick tree.

    In each block the patients marked ``asks`` read the tree, then those marked ``enters`` are
    added. Returned, with shape (2, n), are the counts of ranks below the first two of the four
    ``limits``, added, and below the last two, added.
    """
    tree = np.zeros(rank.max() + 2, np.int64)  # tree[k] counts ranks k - (k & -k), ..., k - 1
    below = np.zeros((2, len(rank)), np.int64)
    for block in range(len(begins)):
        for q in range(begins[block], ends[block]):
            if asks[q]:
                for limit in range(len(limits)):
                    k = limits[limit, q]
                    while k > 0:
                        below[limit // 2, q] += tree[k]
                        k -= k & -k
        for q in range(begins[block], ends[block]):
            if enters[q]:
                k = rank[q] + 1
                while k < len(tree):
                    tree[k] += 1
                    k += k & -k
    return below
