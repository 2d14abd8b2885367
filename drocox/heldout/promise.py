r"""What predictions promise: the c-index and the AUC of a group if they are right.

Harrell's c-index compares patient i, who has an event at time t, with patient j, who is at risk
then and has none. Under proportional hazards, given that one of the two has the event at t, it is i
with probability :math:`e^{f_i} / (e^{f_i} + e^{f_j})`, and the patient with the higher log-hazard
with probability

.. math:: K(f_i - f_j) = \frac{1}{1 + e^{-|f_i - f_j|}} .

The mean of K over exactly the pairs that the index compares is the c-index that the log-hazards
promise. It holds whatever the censoring, as long as that is independent given the scores; over all
pairs, as Gönen and Heller average, it would be the c-index without censoring. A group whose
patients are alike has a low c-index, and a low promise.

Scores are first multiplied by one slope for everybody: without it a model that shrinks its scores
would promise little, and keep more than that. The slope b makes everybody's pairs most likely,

.. math:: U(b) = \sum_{(i, j)} \frac{f_i - f_j}{1 + e^{b (f_i - f_j)}} = 0 ,

a logistic regression of the order of events on differences of scores. For log-hazards it is 1, as
is the slope of a Cox regression, but it also fits the pairs that are left where times are tied.
Each pair has the slope without its two patients, to first order

.. math:: b_{(-ij)} \approx b - d_i - d_j , \qquad d_i = b - b_{(-i)} , \qquad
          \sum_{(i, j)} K_{b_{(-ij)}} \approx \sum_{(i, j)} K_b - \sum_i d_i \sum_{j}
          \frac{\partial K_b}{\partial b} ,

where the last sum runs over the pairs of patient i. The remainder of each pair is below
:math:`0.05 \, (d_i + d_j)^2 (f_i - f_j)^2`.

Predicted risks :math:`r_i` at a horizon promise an AUC: with :math:`p_i = \mathrm{logit}^{-1}(a + b
\, \mathrm{logit}\, r_i)`, a recalibration of everybody with censoring weights,

.. math:: \sum_{i \ne j} p_i (1 - p_j) \big(1\{f_i > f_j\} + \tfrac12 1\{f_i = f_j\}\big) \Big/
          \sum_{i \ne j} p_i (1 - p_j) .

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

from drocox import concordance
from drocox.compiled import njit
from drocox.concordance import TOLERANCE
from drocox.heldout.censoring import Censoring
from drocox.heldout.horizon import weight_of_controls
from drocox.heldout.slope import calibration_slope

EXACT = 1000  # patients up to which all pairs are summed one by one
NODES = 128  # of the grid of scores, for more patients
STEPS = 60  # maximum number of Newton steps
SMALL = 1e-9  # relative step that ends them; of standardised scores, if the slope is below 1


class Pairs:
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

    Scores that are tied in the c-index promise one half.
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
                left, right = kernel[cell[q]], kernel[cell[q] + 1]
                a = b = c = d = 0.0
                for m in range(len(entered)):
                    a += entered[m] * left[m, 0]
                    b += entered[m] * right[m, 0]
                    c += entered[m] * left[m, 1]
                    d += entered[m] * right[m, 1]
                sums[q, 0] = a + share[q] * (b - a)
                sums[q, 1] = c + share[q] * (d - c)
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
    """The sums of :meth:`Pairs.sums`, over pairs within a fold."""
    out = np.zeros((len(scores), 2))
    for k in np.unique(fold[event]):
        rows = np.flatnonzero(fold == k)
        out[rows] = Pairs(scores[rows], time[rows], event[rows]).sums(slope, of_slope)
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
    nothing = np.nan, np.full(len(scores), np.nan)
    start = calibration_slope(scores, time, event, fold)[0]  # near it, and found faster
    slope = start if np.isfinite(start) else 0.0
    unit = 1 / scores.std()
    low, high = -np.inf, np.inf  # bracket of the root: U decreases
    for _ in range(STEPS):
        lost = pair_sums(scores, time, event, fold, slope, of_slope=True)
        score, information = lost.sum(axis=0) / 2
        if not information > 0:
            return nothing
        if score > 0:
            low = slope
        else:
            high = slope
        step = score / information
        if not low <= slope + step <= high:
            step = (low + high) / 2 - slope
        slope += step
        if abs(step) <= SMALL * max(abs(slope), unit):
            break
    else:
        return nothing
    left = information - lost[:, 1]
    return slope, slope - lost[:, 0] / np.where(left > 0, left, np.nan)


def recalibrated(
    risk: np.ndarray, time: np.ndarray, event: np.ndarray, weights: Censoring, horizon: float
) -> tuple[np.ndarray, np.ndarray]:
    """Intercept and slope of a logistic regression of events by the horizon on logits of risks.

    Patients have censoring weights; those with a risk of exactly 0 or 1 are left out. The second
    array (n, 2) is the change of both without each patient, by one Newton step and with the change
    of the weights. NaN where the regression has no solution.
    """
    n = len(time)
    nothing = np.full(2, np.nan), np.full((n, 2), np.nan)
    logit = special.logit(risk)
    used = np.isfinite(logit)
    case = event & (time <= horizon) & used
    control = (time > horizon) & used
    if not case.any() or not control.any():
        return nothing
    if np.ptp(logit[used]) == 0:  # they tell nobody apart, so that coefficients do not matter
        return np.zeros(2), np.zeros((n, 2))
    weight, changed = weight_of_controls(weights, time, horizon)
    X = np.column_stack([np.ones(n), np.where(used, logit, 0.0)])
    mass = np.where(case, weights.weight, 0.0) + control * weight
    coef = np.zeros(2)
    for _ in range(STEPS):
        p = special.expit(X @ coef)
        residual = X * (case - p)[:, None]
        information = (X * (mass * p * (1 - p))[:, None]).T @ X
        if not np.isfinite(information).all() or np.linalg.cond(information) > 1e12:
            return nothing
        step = np.linalg.solve(information, mass @ residual)
        coef = coef + step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < SMALL:
            break
    else:
        return nothing
    without = np.empty((n, 2))
    for k in range(2):
        cases = np.where(case, weights.weight * residual[:, k], 0.0)
        controls = control * residual[:, k]
        without[:, k] = weights.sum_without(cases, 1)
        without[:, k] += changed * weight * (controls.sum() - controls)
    return coef, np.linalg.solve(information, without.T).T


def implied_auc_terms(
    scores: np.ndarray, logit: np.ndarray, coef: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Terms of the promised AUC that are lost with each patient, and their derivatives.

    The terms (n, 2) are those of numerator and denominator; derivatives by intercept and slope
    have shape (n, 2, 2).
    """
    p = special.expit(coef[0] + coef[1] * logit)
    spread = p * (1 - p)
    by_coef = np.column_stack([spread, spread * np.where(spread > 0, logit, 0.0)])

    def below(weight: np.ndarray) -> np.ndarray:
        """Weight of the others with a lower score, half of it if tied, and of all others."""
        lower = concordance.weight_below(scores, weight)
        return np.column_stack([lower - weight / 2, weight.sum() - weight])

    def above(weight: np.ndarray) -> np.ndarray:
        lower, every = below(weight).T
        return np.column_stack([every - lower, every])

    as_case = below(1 - p)
    as_control = above(p)
    terms = p[:, None] * as_case + (1 - p)[:, None] * as_control
    derivatives = np.empty((len(p), 2, 2))
    for k, change in enumerate(by_coef.T):
        derivatives[:, :, k] = change[:, None] * (as_case - as_control)
        derivatives[:, :, k] += (1 - p)[:, None] * above(change) - p[:, None] * below(change)
    return terms, derivatives


def promised_ratio(
    lost: np.ndarray, derivatives: np.ndarray, shift: np.ndarray, members: np.ndarray
) -> tuple[float, np.ndarray]:
    """A ratio of two sums over pairs of members, cross-fitted, and its leave-one-out values.

    ``lost`` (m, 2) has the terms of numerator and denominator that are lost with each member,
    ``derivatives`` (m, 2, q) their derivatives by q coefficients, which everybody shares, and
    ``shift`` (n, q) the change of these without each of all patients.
    """
    total = lost.sum(axis=0) / 2  # a pair is lost with either patient
    slope = derivatives.sum(axis=0) / 2
    left = total + shift @ slope.T
    own = np.einsum("kcq,kq->kc", derivatives, shift[members])
    left[members] -= lost + own
    fitted_without = total + own.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is NaN: not defined
        value = fitted_without[0] / fitted_without[1]
        return float(value), left[:, 0] / left[:, 1] + value - total[0] / total[1]
