r"""Linear Cox and DRO-COX models to a certified optimum.

With scores :math:`f_i = \theta^T x_i` every Cox loss :math:`\ell_i(\theta)`, split or not, is a
log-sum-exp of linear functions, and the risk is a maximum over the adversary's weights,

.. math:: R(\theta) = \max_{q \in Q} F_q(\theta), \qquad F_q(\theta) = \sum_i q_i \ell_i(\theta)
          + \tfrac\lambda2 \lVert\theta\rVert^2,

so it is convex, and the distance to its minimum can be bounded.

**The certificate.** :math:`\min R \ge \min F_q` for every :math:`q \in Q`. Along a direction
:math:`v` the second derivative of a log-sum-exp is a variance and the third a third central moment
of :math:`v^T x` under the same distribution, and a quadratic penalty adds to the second only, so
that :math:`|F_q'''| \le d\, F_q''` where :math:`d = \max_{j,k} v^T (x_j - x_k)`
(self-concordance). Two integrations give, with gradient :math:`g` and Hessian :math:`H` of
:math:`F_q` at :math:`\theta`,

.. math:: F_q(\theta + tv) \ge F_q(\theta) + t\, g^T v
          + v^T H v\, \frac{e^{-td} + td - 1}{d^2} \quad (t \ge 0).

Minimised over :math:`t` the right side is :math:`F_q - (h / d^2)\, \omega(\gamma d / h)`, where
:math:`\gamma = -g^T v`, :math:`h = v^T H v` and :math:`\omega(s) = s + (1 - s) \log(1 - s)`, as
long as :math:`s = \gamma d / h < 1`. Now :math:`\gamma \le \lambda \sqrt h` with the Newton
decrement :math:`\lambda = \sqrt{g^T H^{-1} g}`, and :math:`d \le M \sqrt h` with :math:`M = 2
\max_j \lVert x_j - \bar x \rVert_{H^{-1}}`; since :math:`\omega(s) / s^2` grows with :math:`s`,

.. math:: \min_\theta R \;\ge\; F_q(\theta) - \omega(\lambda M) / M^2 \qquad (\lambda M < 1),

which is about :math:`F_q(\theta) - \lambda^2 / 2`. Directions without variance in any risk set that
:math:`q` weights are left out: :math:`F_q` is constant along them. Code:
:meth:`drocox.solver.objective.Weighted.bound`.

**The steps** are Newton's, damped where necessary, in the whitened features of
:mod:`drocox.solver.coordinates`, so the units of features do not matter. The Hessian of :math:`R`
is :math:`H` plus a term for the adversary's response, known in closed form where the worst case is
unique. It is not unique at a kink, where losses tie. There the risk is smoothed (Nesterov, 2005):
the adversary's objective is reduced by :math:`\frac\mu2 \sum_i (q_i - p_i)^2 / p_i`, which makes
:math:`q` unique, and :math:`\mu` is lowered step by step until the certificate, which does not
depend on :math:`\mu`, is satisfied. Away from kinks smoothing changes nothing and one level is
enough. The minimum for the rule "cvar" is almost always at a kink: there :math:`\mu` falls to the
last level, and gaps of 1e-8 are usual.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from drocox import _checks, kernels
from drocox.dual import RULES
from drocox.risksets import RiskSets
from drocox.solver.coordinates import Coordinates, whitened
from drocox.solver.objective import SMALL_MOVE, Losses, Problem, Smoothed, Weighted

# The starting point: the optimum of a sample, for problems WORTH_A_SAMPLE times larger than it.
SAMPLE = 4_000
WORTH_A_SAMPLE = 10
SAMPLE_TOLERANCE = 1e-4  # gap at which the sample's optimum is accurate enough
SAMPLE_STEPS = 50

# Each model of a path of penalties: for scores, not for coefficients that are reported.
PATH_TOLERANCE = 1e-6
PATH_STEPS = 50

# Smoothing mu, in units of loss over the largest q_i / p_i that the adversary may choose.
FIRST_SMOOTHING = 0.1
SMOOTHING_FACTOR = 0.1  # from one level to the next
LAST_SMOOTHING = 1e-13  # absolute; at lower levels q depends on the rounding of losses
FINE_SMOOTHING = 1e-9

# Thresholds on the squared Newton decrement of a step, twice the decrease that it predicts. Risks
# are of size 1, and sums over patients are rounded at 1e-13.
#
#       1e-20             1e-10          1e-9            1e-7                 decrement
#   ──────┼─────────────────┼──────────────┼───────────────┼──────────────────────►
#     CONVERGED   CONVERGED_MOVING    COMPARABLE       DIVERGING
#
CONVERGED = 1e-20  # stop: the square of rounding
CONVERGED_MOVING = 1e-10  # stop, if scores still move far: the decrement falls only geometrically
COMPARABLE = 1e-9  # below, rounding hides the decrease of the risk, and gradients judge the step
DIVERGING = 1e-7  # scores that still move far for less than this diverge
ROUNDED = 1e-13  # relative error of a risk

# Levenberg's damping, by the gain ratio of a step: actual over predicted decrease.
POOR_GAIN = 0.25  # below, more damping
GOOD_GAIN = 0.75  # above, less damping
ACCEPTED_GAIN = 0.1  # below, the step is rejected
FIRST_DAMPING = 1e-3  # in units of the trace of H
LAST_DAMPING = 1e-9  # smaller damping becomes 0
DAMPING_FACTOR = 10.0

# The search ends at a gap of ENOUGH times tol if that gap is rounding (EXACT_GAP) or the smoothing
# is fine: at a kink the coefficients have only half as many correct digits as the gap.
EXACT_GAP = 1e-12
ENOUGH = 1e-3

# Coefficients are reported as separated if the scores are farther apart than this:
SPREAD_IF_DIVERGING = 10.0  # while they diverge
SPREAD_IF_UNPROVED = 100.0  # without a certificate
# The search was stopped by the floating-point range if scores spread over this share of it; it is
# one outlier's fault if the others spread over less than the second share of that.
OUT_OF_RANGE = 0.8
WITHOUT_OUTLIER = 0.5

# Directions in which curvature (as a share of the largest) and slope are both rounding.
FLAT_CURVATURE = 1e-12
FLAT_SLOPE = 1e-13
WELL_CONDITIONED = 1e-8  # reciprocal condition number above which there are no such directions
SAME_CURVATURE = 1e-7  # scores that differ by less have the same Hessian, for standard errors


@dataclass(frozen=True)
class Solution:
    """Coefficients of a linear model with a lower bound of the smallest possible risk."""

    coef: np.ndarray  # (d,), for the features as given
    risk: float  # R at coef, penalty included; with a split the sum of both halves' risks
    bound: float  # lower bound of the risk of all coefficients
    gap: float  # (risk - bound) / max(1, risk)
    weights: np.ndarray  # (n,), the q of the bound; with a split it sums to 1 in each half
    n_iter: int
    separated: bool  # whether coefficients diverge (monotone likelihood): no minimum is attained
    losses: np.ndarray  # (n,), at coef
    standard_errors: np.ndarray | None  # (d,), for Cox regression: alpha=1, no penalty, no split


class _Progress:
    """The best point so far, and the best bound with its q."""

    diverging: bool  # whether scores still move far while the risk hardly falls
    last: Weighted  # the last point, or one next to it, whose Hessian is known

    def __init__(self, best: Losses, bound: float, q: np.ndarray):
        self.best = best
        self.bound = bound
        self.q = q
        self.steps = 0
        self.on_a_ray = False  # whether the best point separates: losses fall along its ray

    @property
    def gap(self) -> float:
        """Relative gap between the best risk and the best bound."""
        return _relative_gap(self.best.risk, self.bound)

    def improve(self, new: Losses) -> None:
        """Keep a point with a smaller risk; a null optimum is set to exact zeros."""
        problem = new.problem
        if self.best.point.any() and problem.farthest(new.point) < SMALL_MOVE:
            self.best = problem.at_null()
        if new.risk < self.best.risk - ROUNDED * abs(self.best.risk):
            self.best = new

    def prove(self, weighted: Weighted) -> None:
        """Keep a larger bound."""
        self.last = weighted
        bound = weighted.bound()
        if bound > self.bound:
            self.bound = bound
            self.q = weighted.q

    def follow_the_ray(self, tol: float) -> bool:
        """Whether the best point separates; if so, double it until the gap is at most ``tol``.

        Then losses fall along the whole ray from 0 through the point (monotone likelihood).
        """
        problem = self.best.problem
        if problem.penalty > 0 or not self.best.separates:
            return False
        self.on_a_ray = True
        while self.gap > tol:
            farther = problem.at(2 * self.best.point)
            if farther is None or farther.risk >= self.best.risk - ROUNDED * abs(self.best.risk):
                break
            self.best = farther
        return True

    def separated(self, tol: float) -> bool:
        """Whether coefficients diverge."""
        problem = self.best.problem
        if problem.penalty > 0:
            return False  # a penalised risk attains its minimum
        if self.on_a_ray:
            return True
        spread = problem.farthest(self.best.point)
        if self.diverging:
            return bool(spread > SPREAD_IF_DIVERGING)
        return bool(self.gap > tol and spread > SPREAD_IF_UNPROVED)


def minimise(
    X: ArrayLike,
    risk: RiskSets,
    alpha: float,
    *,
    rule: str = "sharp",
    first: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    tol: float = 1e-6,
    n_iter: int = 500,
    penalty: float = 0.0,
) -> Solution:
    r"""Coefficients with the smallest risk :math:`R(\theta)`, and a bound that proves it.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, in any units. Columns, or sums of them, that agree to 13 digits in every patient
        are taken for copies.
    risk : RiskSets
        The outcomes, ``risk_sets(time, event)``, with strata or without.
    alpha : float in (0, 1]
        Smallest probability of a group to protect; 1 is Cox regression with Breslow's ties.
    rule : {"paper", "definition", "sharp", "cvar"}
        As in :func:`drocox.dro_risk`.
    first : bool array of shape (n,), optional
        True for the patients of :math:`D_1`: the sum of the two split risks is minimised.
    weights : array of shape (n,), optional
        Counts of patients, not together with ``first``: whole numbers stand for repeated rows.
        For alpha < 1 their scale matters, see :func:`drocox.cox_losses`.
    tol : float > 0
        The gap at which steps may stop. They mostly end far below it, where they help no more.
    n_iter : int
        Most Newton steps.
    penalty : float >= 0
        Ridge penalty :math:`\lambda`: :math:`\frac\lambda2 \lVert\theta\rVert^2`, for the features
        as given, is added to the risk, a mean over patients. Wide data (d > n) and data that a
        linear score separates have an answer with it only. ``CoxPHSurvivalAnalysis`` of
        scikit-survival adds its ``alpha`` to a sum over patients instead: there ``alpha = n *
        penalty`` is the same model as here with alpha = 1.

    Returns
    -------
    Solution

    Examples
    --------
    >>> from drocox import risk_sets
    >>> s = minimise([[1.0], [0.0], [1.0], [0.0]], risk_sets([4, 3, 2, 1], [1, 1, 1, 0]), 1)
    >>> print(s.coef.round(4), s.gap < 1e-9)
    [-0.3466] True
    """
    X = _checks.numbers(X, "X", 2)
    _checks.number_in(alpha, "alpha", 0, 1)
    _checks.one_of(rule, "rule", RULES)
    _checks.at_least_zero(penalty, "penalty")
    if risk.order.shape != (1, len(X)):
        raise ValueError(
            f"risk has shape {risk.order.shape}, X {X.shape}; "
            f"pass risk_sets(time, event), one time for each row of X"
        )
    if first is not None and weights is not None:
        raise ValueError("weights cannot be used with first; leave one of them out")
    order = risk.order[0]
    weights = np.ones(len(X)) if weights is None else _checks.weights(weights, len(X))[order]
    half = None if first is None else np.asarray(first, bool)
    if half is not None:
        _checks.same_length(first=half, X=order)
        half = half[order]
    coordinates = whitened(X, risk, weights, penalty)
    problem = Problem(coordinates, risk, weights, half, alpha, rule, penalty)
    progress = _solve(problem, _start(problem), tol, n_iter)
    best = progress.best
    if progress.gap > tol and not progress.on_a_ray:
        _refuse_scores_out_of_range(best, X, progress.separated(tol))
    bound = min(progress.bound, best.risk)  # rounding may put the bound above the risk
    worst = np.empty(len(X))
    worst[order] = progress.q
    losses = np.empty(len(X))
    losses[order] = best.losses
    likelihood = alpha == 1 and penalty == 0 and first is None
    return Solution(
        coef=coordinates.back @ best.point,
        risk=best.risk,
        bound=bound,
        gap=_relative_gap(best.risk, bound),
        weights=worst,
        n_iter=progress.steps,
        separated=progress.separated(tol),
        losses=losses,
        standard_errors=_standard_errors(progress) if likelihood else None,
    )


def ridge_path(X: np.ndarray, risk: RiskSets, penalties) -> np.ndarray:
    """Coefficients (d, k) of Cox models with k ridge penalties, each started at the one before.

    For features of similar scales, which are not whitened; input is not checked.
    """
    d = X.shape[1]
    coordinates = Coordinates(X[risk.order[0]], np.eye(d))
    coef = np.zeros((d, len(penalties)))
    point = np.zeros(d)
    for k, penalty in enumerate(penalties):
        problem = Problem(coordinates, risk, np.ones(len(X)), None, 1.0, "sharp", penalty)
        point = _solve(problem, point, PATH_TOLERANCE, PATH_STEPS).best.point
        coef[:, k] = point
    return coef


def _standard_errors(progress: _Progress) -> np.ndarray:
    """Standard errors of a Cox regression, from the inverse of the observed information.

    NaN for features without variance, and for all features if they are linearly dependent.
    """
    best = progress.best
    problem = best.problem
    last = progress.last
    if problem.farthest(best.point - last.point) > SAME_CURVATURE:
        last = Weighted(best, problem.mass)
    back = problem.coordinates.back
    varies = back.any(axis=1)
    errors = np.full(len(back), np.nan)
    curvature, vectors = np.linalg.eigh(last.hessian)
    if varies.sum() == len(curvature) and curvature[0] > FLAT_CURVATURE * curvature[-1]:
        # H is a mean over patients, the information a sum
        root = back[varies] @ (vectors / np.sqrt(curvature * problem.weights.sum()))
        errors[varies] = np.hypot.reduce(root, axis=1)  # squares may overflow
    return errors


def _relative_gap(risk: float, bound: float) -> float:
    """Difference of risk and bound, relative to the risk if that is above 1."""
    return (risk - bound) / max(1.0, risk)


def _start(problem: Problem) -> np.ndarray:
    """Starting point: 0, or for large problems the optimum of a sample."""
    start = np.zeros(problem.Z.shape[1])
    step = len(problem.Z) // SAMPLE
    if step >= WORTH_A_SAMPLE:
        with suppress(ValueError):  # unless the sample has too few events
            start = _solve(problem.thinned(step), start, SAMPLE_TOLERANCE, SAMPLE_STEPS).best.point
    return start


def _refuse_scores_out_of_range(best: Losses, X: np.ndarray, separated: bool) -> None:
    """Raise if the steps ended because hazards left the floating-point range.

    An outlier may look like separation; other scores that far apart are separated.
    """
    problem = best.problem
    scores = best.scores
    spread = np.ptp(scores)
    if spread < OUT_OF_RANGE * kernels.SAFE_SPREAD:
        return
    farthest = np.abs(scores - np.median(scores)).argmax()
    if np.ptp(np.delete(scores, farthest)) < WITHOUT_OUTLIER * spread:
        row = problem.risk_sets.order[0][farthest]
        coef = problem.coordinates.back @ best.point
        column = np.abs((X[row] - np.median(X, axis=0)) * coef).argmax()
        raise ValueError(
            f"X holds an outlier in column {column}, row {row}: the best model would put its score "
            f"out of the range of floating-point numbers; clip or transform that column"
        )
    if separated:
        return
    raise ValueError(
        f"the features predict the order of events nearly perfectly: with penalty="
        f"{problem.penalty:g} the best scores lie {spread:.0f} apart or more, out of the range of "
        f"floating-point numbers; use a larger penalty, or clip outliers"
    )


def _newton(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Newton direction, 0 along directions where slope and curvature are rounding."""
    factor, failed = lapack.dpotrf(hessian)
    if not failed:
        share, _ = lapack.dpocon(factor, np.abs(hessian).sum(axis=0).max())
        if share > WELL_CONDITIONED:
            return -lapack.dpotrs(factor, gradient)[0]
    curvature, vectors = np.linalg.eigh(hessian)
    slope = vectors.T @ gradient
    least = max(FLAT_CURVATURE * curvature[-1], 1e-100)  # not 0, should all curvature be
    flat = (curvature <= least) & (np.abs(slope) <= FLAT_SLOPE)
    return -vectors @ np.where(flat, 0.0, slope / np.maximum(curvature, least))


def _damping(damping: float, gain: float, trace: float) -> float:
    """Levenberg's damping after a step with the given gain ratio."""
    if gain < POOR_GAIN:
        return DAMPING_FACTOR * damping if damping > 0 else FIRST_DAMPING * trace
    if gain > GOOD_GAIN:
        less = damping / DAMPING_FACTOR
        return less if less > LAST_DAMPING * trace else 0.0
    return damping


def _solve(problem: Problem, start: np.ndarray, tol: float, n_iter: int) -> _Progress:
    """Minimise the smoothed risk, then lower the smoothing until the certificate is satisfied.

    Starts at ``start``, or at 0 if scores are out of range there.
    """
    at = problem.at(start) or problem.at_null()
    mu = FIRST_SMOOTHING / problem.cap
    state = Smoothed(at, mu)
    progress = _Progress(at, *problem.lowest())
    while True:
        left = max(1, n_iter - progress.steps)
        state, for_bound, steps, progress.diverging = _descend(problem, state, mu, left)
        progress.steps += steps
        progress.improve(state.at)
        progress.prove(for_bound)
        if progress.follow_the_ray(tol):
            return progress
        gap = progress.gap
        enough = gap <= ENOUGH * tol and (gap <= EXACT_GAP or mu * problem.cap < FINE_SMOOTHING)
        over = progress.diverging or not state.smoothed or progress.steps >= n_iter
        if enough or over or mu < LAST_SMOOTHING:
            return progress
        mu *= SMOOTHING_FACTOR
        state = Smoothed(state.at, mu)


def _descend(
    problem: Problem, state: Smoothed, mu: float, n_iter: int
) -> tuple[Smoothed, Smoothed, int, bool]:
    """Newton steps at one level of smoothing, damped where the risk is not quadratic (Levenberg).

    Returns the last state, the state for the bound (the last, or the one before it, whose Hessian
    is known), the number of steps, and whether scores diverge.
    """
    damping = 0.0
    for step in range(1, n_iter + 1):
        fixed, added = state.hessian_parts
        hessian = fixed + added
        damped = hessian + damping * np.eye(len(hessian)) if damping > 0 else hessian
        direction = _newton(damped, state.gradient)
        decrement = -direction @ state.gradient
        moves_far = problem.farthest(direction) > SMALL_MOVE
        may_diverge = problem.penalty == 0 and moves_far
        if decrement <= (CONVERGED_MOVING if may_diverge else CONVERGED):
            break
        at = problem.at(state.point + direction)
        new = None if at is None else Smoothed(at, mu)
        gain = -1.0 if new is None else _gain_ratio(state, new, direction, hessian, damped)
        damping = _damping(damping, gain, np.trace(fixed))
        if new is not None and gain > ACCEPTED_GAIN:
            if decrement < COMPARABLE and not (new.smoothed or moves_far):
                return new, state, step, False
            state = new
            if may_diverge and state.at.separates:
                break
        elif decrement < COMPARABLE:
            break
    return state, state, step, may_diverge and decrement < DIVERGING


def _gain_ratio(
    state: Smoothed, new: Smoothed, direction: np.ndarray, hessian: np.ndarray, damped: np.ndarray
) -> float:
    """Actual over predicted decrease of a step; 1 or -1 where decreases cannot be compared."""
    decrement = -direction @ state.gradient
    if decrement > COMPARABLE:
        predicted = decrement - 0.5 * direction @ hessian @ direction
        return (state.minimised - new.minimised) / predicted
    new_decrement = -_newton(damped, new.gradient) @ new.gradient
    return 1.0 if new_decrement <= 0.25 * decrement else -1.0
