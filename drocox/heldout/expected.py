r"""The c-index that a model's own predictions lead one to expect in a group.

Harrell's c-index compares patient i, who has an event at time t, with patient j, who is at risk
then and has none. Under proportional hazards, given that one of the two has the event at t, it is i
with probability :math:`e^{f_i} / (e^{f_i} + e^{f_j})`, and the patient with the higher log-hazard
with probability

.. math:: K(f_i - f_j) = \frac{1}{1 + e^{-|f_i - f_j|}} .

The mean of K over all pairs is the concordance probability of Gönen and Heller (2005), the c-index
without censoring; van Klaveren and others (2016, 2019) call it *model-based concordance* and use it
to tell the case mix of a group, whose patients may be alike, from what the model knows of them.
Here the mean is over exactly the pairs that Harrell's index compares, so that it can be set against
that index whatever the censoring, as long as this is independent given the scores.

Scores are first multiplied by one slope for everybody, as in the calibrated model-based
concordance: without it a model that shrinks its scores would be expected to rank badly. The slope b
makes everybody's pairs most likely,

.. math:: U(b) = \sum_{(i, j)} \frac{f_i - f_j}{1 + e^{b (f_i - f_j)}} = 0 ,

a logistic regression of the order of events on differences of scores. For log-hazards it is 1, as
is the slope of a Cox regression, but it also fits the pairs that are left where times are tied.
Each pair has the slope without its two patients, to first order

.. math:: b_{(-ij)} \approx b - d_i - d_j , \qquad d_i = b - b_{(-i)} , \qquad
          \sum_{(i, j)} K_{b_{(-ij)}} \approx \sum_{(i, j)} K_b - \sum_i d_i \sum_{j}
          \frac{\partial K_b}{\partial b} ,

where the last sum runs over the pairs of patient i. The remainder of each pair is below
:math:`0.05 \, (d_i + d_j)^2 (f_i - f_j)^2`.

**Sums over pairs.** Of up to ``EXACT`` patients all pairs are summed one by one. Of more, a
function of two scores is interpolated linearly in both, between nodes at quantiles and at equal
distances (or at all scores, if there are few different ones), while patients enter a histogram of
scores in the order of their times. For a pair in cells of widths :math:`h_i, h_j` the error of K is
at most

.. math:: \frac{b^2 (h_i^2 + h_j^2)}{48 \sqrt 3} + \frac{|b| h_i}{8} 1\{\text{same cell}\} ,

since :math:`|K''| \le b^2 / (6 \sqrt 3)`, except for the kink where scores are equal.
"""

import numpy as np
from scipy import special

from drocox.compiled import njit
from drocox.concordance import TOLERANCE
from drocox.heldout.slope import calibration_slope, newton

EXACT = 1000  # patients up to which all pairs are summed one by one
NODES = 128  # of the grid of scores, for more patients
SMALL = 1e-9  # relative step that ends the search; of standardised scores, if the slope is below 1


class HarrellPairs:
    """The pairs of Harrell's c-index among patients of one fold, for sums over each one's pairs."""

    def __init__(self, scores: np.ndarray, time: np.ndarray, event: np.ndarray):
        # latest first; at one time the censored, who count as later, before the events
        self.order = np.lexsort((event, -time))
        self.scores = scores[self.order]
        self.died = event[self.order]
        new = np.diff(time[self.order]) != 0
        new |= np.diff(self.died)
        self.begins = np.append(0, np.flatnonzero(new) + 1)
        self.ends = np.append(self.begins[1:], len(scores))

    def sums(self, slope: float, of_slope: bool) -> np.ndarray:
        """Sums over each patient's pairs at a slope, shape (n, 2).

        They are those of the terms of U and of minus their derivatives, or those of K and its
        derivatives.
        """
        if len(self.scores) <= EXACT:
            found = _every_pair(self.scores, slope, of_slope, self.died, self.begins)
        else:
            found = self._on_a_grid(slope, of_slope)
        out = np.empty_like(found)
        out[self.order] = found
        return out

    def _on_a_grid(self, slope: float, of_slope: bool) -> np.ndarray:
        """The sums by linear interpolation between nodes."""
        nodes = grid(self.scores)
        cell = np.clip(np.searchsorted(nodes, self.scores, side="right") - 1, 0, len(nodes) - 2)
        share = (self.scores - nodes[cell]) / np.diff(nodes)[cell]
        apart = np.subtract.outer(nodes, nodes)  # the event first
        kernel = np.stack(_terms(apart, slope, of_slope), axis=-1)
        everybody = np.full(len(cell), True)
        begins, ends = self.begins, self.ends
        with_later = _walk(cell, share, kernel, begins, ends, self.died, everybody)
        kernel = np.ascontiguousarray(kernel.transpose(1, 0, 2))  # now the event is the other one
        back = begins[::-1], ends[::-1]
        return with_later + _walk(cell, share, kernel, *back, everybody, self.died)


def grid(scores: np.ndarray) -> np.ndarray:
    """Nodes from the lowest to the highest score; all scores, if there are few different ones."""
    distinct = np.unique(scores)
    if len(distinct) <= NODES:
        return distinct if len(distinct) > 1 else distinct[0] + np.array([0.0, 1.0])
    parts = NODES // 2
    dense = np.quantile(scores, np.linspace(0, 1, parts))
    return np.unique(np.append(dense, np.linspace(distinct[0], distinct[-1], parts)))


def _terms(apart: np.ndarray, slope: float, of_slope: bool) -> tuple[np.ndarray, np.ndarray]:
    """What each pair adds to the sums; ``apart`` is the score of the event minus the other.

    Of scores that are tied in the c-index one half is expected.
    """
    distance = apart if of_slope else np.abs(apart)
    value = special.expit(slope * distance)
    change = distance * value * (1 - value)
    if of_slope:
        value, change = apart * (1 - value), apart * change
    tied = np.abs(apart) <= TOLERANCE
    return np.where(tied, 0.0 if of_slope else 0.5, value), np.where(tied, 0.0, change)


def _every_pair(
    scores: np.ndarray, slope: float, of_slope: bool, died: np.ndarray, begins: np.ndarray
) -> np.ndarray:
    """The sums over all pairs; an event is compared with the patients before its block."""
    events = np.flatnonzero(died)
    before = begins[np.searchsorted(begins, events, side="right") - 1]
    first = np.repeat(events, before)
    other = np.arange(len(first)) - np.repeat(np.cumsum(before) - before, before)
    terms = _terms(scores[first] - scores[other], slope, of_slope)
    sums = [np.bincount(k, t, len(scores)) for t in terms for k in (first, other)]
    return np.column_stack([sums[0] + sums[1], sums[2] + sums[3]])


@njit(cache=True)
def _walk(cell, share, kernel, begins, ends, asks, enters):
    """Block by block, those who ask read the sums over all who have entered; then others enter."""
    entered = np.zeros(len(kernel))
    sums = np.zeros((len(cell), 2))
    for block in range(len(begins)):
        for q in range(begins[block], ends[block]):
            if asks[q]:
                at_left = entered @ kernel[cell[q]]  # of the two nodes around the score
                at_right = entered @ kernel[cell[q] + 1]
                sums[q] = at_left + share[q] * (at_right - at_left)
        for q in range(begins[block], ends[block]):
            if enters[q]:
                entered[cell[q]] += 1 - share[q]
                entered[cell[q] + 1] += share[q]
    return sums


def pair_sums(
    scores: np.ndarray,
    time: np.ndarray,
    event: np.ndarray,
    fold: np.ndarray,
    slope: float,
    of_slope: bool = False,
) -> np.ndarray:
    """The sums of :meth:`HarrellPairs.sums`, over pairs within a fold."""
    out = np.zeros((len(scores), 2))
    for k in np.unique(fold[event]):
        rows = np.flatnonzero(fold == k)
        out[rows] = HarrellPairs(scores[rows], time[rows], event[rows]).sums(slope, of_slope)
    return out


def pair_slope(
    scores: np.ndarray, time: np.ndarray, event: np.ndarray, fold: np.ndarray
) -> tuple[float, np.ndarray]:
    """The slope that makes everybody's pairs most likely, and its leave-one-out values.

    These are one Newton step from it. It is 0 where scores are equal within each fold, so that it
    makes no difference, and NaN where they order the events perfectly.
    """
    lowest = np.full(fold.max() + 1, np.inf)
    np.minimum.at(lowest, fold, scores)
    if (scores == lowest[fold]).all():
        return 0.0, np.zeros(len(scores))

    def terms(slope: float) -> np.ndarray:
        return pair_sums(scores, time, event, fold, slope, of_slope=True) / 2  # each pair is in two

    start = calibration_slope(scores, time, event, fold)[0]  # near it, and found faster
    start = start if np.isfinite(start) else 0.0
    slope, parts = newton(terms, start, 1 / scores.std(), SMALL)
    lost = 2 * parts
    left = parts[:, 1].sum() - lost[:, 1]
    return slope, slope - lost[:, 0] / np.where(left > 0, left, np.nan)


def expected_ratio(
    lost: np.ndarray, derivative: np.ndarray, shift: np.ndarray, members: np.ndarray
) -> tuple[float, np.ndarray]:
    """A ratio of two sums over pairs of members, cross-fitted, and its leave-one-out values.

    ``lost`` (m, 2) has the terms of numerator and denominator that are lost with each member,
    ``derivative`` (m,) that of the first by the slope, which everybody shares, and ``shift`` (n,)
    the change of the slope without each of all patients.
    """
    points, pairs = lost.sum(axis=0) / 2  # a pair is lost with either patient
    own = derivative * shift[members]
    left = points + shift * (derivative.sum() / 2)
    left[members] -= lost[:, 0] + own
    pairs_left = np.full(len(members), pairs)
    pairs_left[members] -= lost[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is NaN: not defined
        value = (points + own.sum()) / pairs
        return float(value), left / pairs_left + value - points / pairs
