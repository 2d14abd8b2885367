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

Patients enter a Fenwick tree (drawn at the end of this module) over the ranks of their scores in
the order of their times; the number of patients in the tree with a lower score is then a sum of
:math:`\log_2 n` entries, so all pairs are counted in :math:`O(n \log n)`. A pass from the latest
patient gives each event its pairs with patients observed longer, another from the earliest gives
each patient their pairs with earlier events; pairs at one time are corrected afterwards. The counts
are whole and half numbers, equal to those of a loop over the pairs. With strata, whose baseline
hazards need not be comparable, only pairs within a stratum are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

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
            raise ValueError("time, event, weights hold no comparable pair; pass more patients")
        return float(self.harrell_points.sum() / self.harrell_pairs.sum())

    def fractions(self, codes: ArrayLike, name: str = "codes") -> np.ndarray:
        """Concordance fraction of each group (sorted codes), the last line of Algorithm B.1.

        ``name`` is the name of the attribute in error messages.
        """
        codes = _checks.codes(codes, name, len(self.pairs))
        pairs = np.bincount(codes, self.pairs)
        if (pairs == 0).any():
            raise ValueError(f"a group of {name} has no comparable pair; merge it or add patients")
        return np.bincount(codes, self.points) / pairs


def scored(
    scores: ArrayLike,
    time: ArrayLike | RiskSets,
    event: ArrayLike | None = None,
    *,
    strata: ArrayLike | None = None,
) -> tuple[np.ndarray, RiskSets]:
    """Check the scores of one model (higher for earlier events), and prepare the risk sets.

    Instead of ``time`` and ``event``, :func:`drocox.risk_sets` may be passed as ``time`` alone.
    """
    scores = np.ascontiguousarray(_checks.numbers(scores, "scores", 1))
    if strata is None:
        risk = as_risk_sets(time, event)
    elif event is None or isinstance(time, RiskSets):
        raise TypeError("strata: leave it out; pass risk_sets(time, event, strata=strata) alone")
    else:
        risk = risk_sets(time, event, strata=strata)
    if len(risk.order) > 1:
        raise ValueError("time holds risk sets of several data sets; pass those of one")
    _checks.same_length(scores=scores, time=risk.order)
    return scores, risk


def count(
    scores: ArrayLike,
    time: ArrayLike | RiskSets,
    event: ArrayLike | None = None,
    *,
    strata: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Counts:
    """Count the pairs of one model, for the c-index and for CI; arguments as in :func:`scored`.

    With ``weights``, counts of patients, a pair counts as often as the product of its two.
    """
    in_lines = lines(scores, time, event, strata=strata)
    n = sum(len(patients) for patients, _ in in_lines)
    weights = np.ones(n) if weights is None else _checks.weights(weights, n)
    of_one = vars(pairs_with(weights, in_lines))
    return Counts(**{name: weights * counted for name, counted in of_one.items()})


def pairs_with(amounts: np.ndarray, in_lines: Sequence[tuple[np.ndarray, "Line"]]) -> Counts:
    """Counts of each patient's pairs, each by the amount (n,) of the other patient.

    Where members of a group have the amount 1 and others 0, these are the pairs with members.
    """
    counts = np.empty((len(fields(Counts)), len(amounts)))
    for patients, line in in_lines:
        rows = patients[line.patient]
        counts[:, rows] = _count_within(line, amounts[rows])
    return Counts(*counts)


def lines(
    scores: ArrayLike,
    time: ArrayLike | RiskSets,
    event: ArrayLike | None = None,
    *,
    strata: ArrayLike | None = None,
) -> list[tuple[np.ndarray, "Line"]]:
    """The patients of each stratum, latest first, and their line; see :func:`scored`."""
    scores, risk = scored(scores, time, event, strata=strata)
    found = []
    for begin, end in pairwise(risk.bounds):
        patients = risk.order[0, begin:end]
        line = line_up(scores[patients], risk.stop[0, begin:end], risk.event[0, begin:end])
        found.append((patients, line))
    return found


def weight_below(scores: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Total weight of the patients with a lower score than each, half of it if tied.

    This is what a case scores against controls in an AUC, the ROC curve step by step. As in
    scikit-survival, a step ends where the distance to the next score exceeds 1e-8. ``weight`` has
    shape (n,), or (n, K) for K kinds of weights; each patient's own counts one half.
    """
    order = np.argsort(scores, kind="stable")
    apart = np.diff(scores[order], prepend=-np.inf) > TOLERANCE
    of_step = np.add.reduceat(weight[order], np.flatnonzero(apart))
    below = np.empty(weight.shape)
    below[order] = (np.cumsum(of_step, axis=0) - of_step / 2)[np.cumsum(apart) - 1]
    return below


@dataclass(frozen=True)
class Line:
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

    @property
    def limits(self) -> np.ndarray:
        """The ranks between which scores are tied within the tolerance, shape (2, n)."""
        return np.stack([self.low, self.high])


def line_up(scores: np.ndarray, stop: np.ndarray, event: np.ndarray) -> Line:
    """The line of patients with numbers ``stop`` that grow from the latest time to the earliest."""
    value, rank = np.unique(scores, return_inverse=True)
    low = np.searchsorted(value, value - TOLERANCE)  # but for rounding
    with np.errstate(over="ignore"):
        while (tied := (low > 0) & (value - value[low - 1] <= TOLERANCE)).any():
            low -= tied
        while (apart := value - value[low] > TOLERANCE).any():
            low += apart
    high = np.searchsorted(low, np.arange(len(value)), side="right")  # ties go both ways
    # one number that sorts by time, then the censored before the events, then by score
    place = (2 * stop + event) * len(value) + rank
    patient = np.argsort(place, kind="stable")
    place = place[patient]
    block: np.ndarray = place // len(value)
    rank = place % len(value)
    return Line(
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


def _count_within(line: Line, amounts: np.ndarray) -> tuple[np.ndarray, ...]:
    """What :class:`Counts` holds, along a line; other patients count by their amounts."""
    to_the_left = np.append(0.0, np.cumsum(amounts))  # of each position
    halves, harrell_halves, pairs = _between_blocks(line, amounts, to_the_left)
    more_halves, more_pairs = _at_one_time(line, amounts, to_the_left)
    return (halves + more_halves) / 2, pairs + more_pairs, harrell_halves / 2, pairs


def _between_blocks(
    line: Line, amounts: np.ndarray, to_the_left: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half points (exact ties, ties within the tolerance) and pairs of different blocks.

    If an event meets L patients with a lower score and E with an equal one, it gets 2 L + E half
    points: the number of scores below its rank plus the number up to it. A patient with M events to
    the right gets 2 (higher) + (equal) half points, hence 2 M minus the same sum.
    """
    limits = np.stack([line.rank, line.rank + 1])
    if not np.array_equal(limits, line.limits):  # else equal scores are the only ties
        limits = np.concatenate([limits, line.limits])
    of_events = amounts * line.died
    events = np.append(0.0, np.cumsum(of_events))
    events_right = events[-1] - events[line.end]
    with_later = sums_below(line, limits, amounts, asks=line.died)
    below = sums_below(line, limits, of_events, back=True)
    with_earlier = 2 * events_right - below
    halves, harrell_halves = np.broadcast_to(with_later + with_earlier, (2, len(line.rank)))
    pairs = np.where(line.died, to_the_left[line.begin], 0.0) + events_right
    return halves, harrell_halves, pairs


def _at_one_time(
    line: Line, amounts: np.ndarray, to_the_left: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Half points and pairs that Algorithm B.1 adds for pairs at one time.

    An event and a patient censored at its time already have 0, 1 or 2 half points from different
    blocks; the algorithm gives at least 1, so 1 more if the censored score is higher. Two events
    get 1, and 2 if their scores are equal.
    """
    place = line.place
    # the same time's censored stand one block to the left of its events, so the number of a rank
    # there is smaller by the number of ranks
    first_higher_censored = np.searchsorted(place, place - line.ranks + 1)
    higher_censored = to_the_left[line.begin] - to_the_left[first_higher_censored]
    first_event_not_lower = np.searchsorted(place, place + line.ranks)
    lower_events = to_the_left[first_event_not_lower] - to_the_left[line.end]
    first, last = (np.searchsorted(place, place, side) for side in ("left", "right"))
    equal = to_the_left[last] - to_the_left[first] - amounts
    of_block = to_the_left[line.end] - to_the_left[line.begin] - amounts
    other_events = np.where(line.died, of_block, 0.0)
    halves = np.where(line.died, higher_censored + other_events + equal, lower_events)
    return halves, other_events


def sums_below(
    line: Line,
    limits: np.ndarray,
    amounts: np.ndarray,
    *,
    asks: np.ndarray | None = None,
    back: bool = False,
    by_time: bool = False,
) -> np.ndarray:
    """Total amount with a rank below the limits, of the patients of earlier blocks in the line.

    ``limits`` (2 k, n) come in pairs, which are added: (k, n) is returned, for the patients marked
    ``asks`` or for everybody. ``back`` starts from the other end; ``by_time`` joins the blocks of
    one time.
    """
    if asks is None:
        asks = np.ones(len(line.rank), dtype=bool)
    block = line.place // (2 * line.ranks if by_time else line.ranks)
    begins = np.flatnonzero(np.diff(block, prepend=block[0] - 1))
    ends = np.append(begins[1:], len(block))
    if back:
        begins, ends = begins[::-1].copy(), ends[::-1].copy()
    return _walk(line.rank, line.ranks, limits, begins, ends, asks, amounts.astype(float))


@njit(cache=True)
def _walk(rank, ranks, limits, begins, ends, asks, amounts):
    """Block by block, the patients who ask read the tree, then the amounts enter it.

    ``tree[k]`` of the Fenwick tree is the sum over the ranks ``k - (k & -k), ..., k - 1``, so that
    an amount changes, and a sum over the lower ranks reads, at most log2 of n entries::

        rank       0     1     2     3     4     5     6     7
                 ├───────────────── tree[8] ─────────────────────┤
                 ├────── tree[4] ────────┤
                 ├─ tree[2] ─┤           ├─ tree[6] ─┤
                 ├ t[1]┤     ├ t[3]┤     ├ t[5]┤     ├ t[7]┤

        sum over ranks 0 to 6 = tree[7] + tree[6] + tree[4]
        a patient at rank 4 enters tree[5], tree[6], tree[8]
    """
    tree = np.zeros(ranks + 1)
    below = np.zeros((len(limits) // 2, len(rank)))
    for block in range(len(begins)):
        for q in range(begins[block], ends[block]):
            if asks[q]:
                for limit in range(len(limits)):
                    k = limits[limit, q]
                    while k > 0:
                        below[limit // 2, q] += tree[k]
                        k -= k & -k
        for q in range(begins[block], ends[block]):
            if amounts[q] != 0.0:
                k = rank[q] + 1
                while k <= ranks:
                    tree[k] += amounts[q]
                    k += k & -k
    return below
