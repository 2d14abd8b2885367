r"""Linear Cox and DRO-COX models to a certified optimum.

With scores :math:`f_i = \theta^T x_i` every Cox loss :math:`\ell_i(\theta)`, split or not, is a
log-sum-exp of linear functions, and the risk is a maximum over the adversary's weights,

.. math:: R(\theta) = \max_{q \in Q} F_q(\theta), \qquad F_q(\theta) = \sum_i q_i \ell_i(\theta)
          + \tfrac\lambda2 \lVert\theta\rVert^2,

so it is convex, and a minimiser can be proved to be one.

**The certificate.** :math:`\min R \ge \min F_q` for every :math:`q` that the adversary may choose.
Along a direction :math:`v` the second derivative of a log-sum-exp is a variance and the third a
third central moment of :math:`v^T x` under the same distribution, and a quadratic penalty adds to
the second only, so that :math:`|F_q'''| \le d\, F_q''` where :math:`d = \max_{j,k} v^T (x_j -
x_k)`. Two integrations give, with gradient :math:`g` and Hessian :math:`H` of :math:`F_q` at
:math:`\theta`,

.. math:: F_q(\theta + tv) \ge F_q(\theta) + t\, g^T v
          + v^T H v\, \frac{e^{-td} + td - 1}{d^2} \quad (t \ge 0).

Minimised over :math:`t` the right side is :math:`F_q - (h / d^2)\, \omega(\gamma d / h)`, where
:math:`\gamma = -g^T v`, :math:`h = v^T H v` and :math:`\omega(s) = s + (1 - s) \log(1 - s)`, as
long as :math:`s = \gamma d / h < 1`. Now :math:`\gamma \le \lambda \sqrt h` with the Newton
decrement :math:`\lambda = \sqrt{g^T H^{-1} g}`, and :math:`d \le M \sqrt h` with :math:`M = 2
\max_j \lVert x_j - \bar x \rVert_{H^{-1}}`; since :math:`\omega(s) / s^2` grows with :math:`s`,

.. math:: \min_\theta R \;\ge\; F_q(\theta) - \omega(\lambda M) / M^2 \qquad (\lambda M < 1),

which is about :math:`F_q(\theta) - \lambda^2 / 2`. Where a direction has no variance in any risk
set that :math:`q` weighs, :math:`F_q` is constant along it, and it is left out. Code:
:meth:`drocox.solver.objective.Weighted.bound`.

**The steps** are Newton's, damped where they need to be, in the coordinates of
:mod:`drocox.solver.coordinates`, so the units of features do not matter. The Hessian of :math:`R`
is :math:`H` plus the response of the adversary, known in closed form where the worst case is
unique. Where losses tie and it is not (a kink), the adversary pays :math:`\frac\mu2 \sum_i (q_i -
p_i)^2 / p_i`; then :math:`q` is unique, the risk smooth, and :math:`\mu` falls until the
certificate, which knows nothing of :math:`\mu`, is satisfied. Away from kinks the price changes
nothing and the steps converge at once. The rule "cvar" has kinks wherever it matters: there the
price falls to the end, and gaps of 1e-8 are usual.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from drocox import _checks, kernels
from drocox.cox import RiskSets
from drocox.dro import RULES
from drocox.solver.coordinates import uncorrelated
from drocox.solver.objective import SMALL_MOVE, Losses, Priced, Problem, Weighted

SAMPLE = 4_000  # patients of the sample that finds a starting point
WORTH_A_SAMPLE = 10  # how many times more there must be
SAMPLE_TOLERANCE = 1e-4  # the gap at which the sample's own minimum is near enough
SAMPLE_STEPS = 50

FIRST_PRICE = 0.1  # of the adversary, in units of loss over the largest q_i / p_i it may choose
PRICE_FACTOR = 0.1  # from one price to the next
LAST_PRICE = 1e-13  # below, the rounding of losses decides who pays

# What a step promises to gain. Risks are of size 1 and rounded at 1e-16, sums of them at 1e-13:
# below COMPARABLE two risks cannot be compared, and slopes are; NOTHING is the square of rounding,
# and NOTHING_AFAR the same where scores run away and the gain falls by a constant factor a step.
COMPARABLE = 1e-9
NOTHING = 1e-20
NOTHING_AFAR = 1e-10
SEPARATING = 1e-7  # scores move far for a gain below this: they run away
ROUNDED = 1e-13  # relative error of a risk

# Levenberg's damping, by the share of the promised gain that a step makes.
POOR_GAIN = 0.25
GOOD_GAIN = 0.75
ACCEPTED_GAIN = 0.1
FIRST_DAMPING = 1e-3  # in units of the trace of H
LAST_DAMPING = 1e-9  # below, there is none
DAMPING_FACTOR = 10.0

# A gap this small is rounding; and this share of tol is enough once the price is FINE, since at a
# kink half of the digits of the gap are those of the coefficients.
EXACT_GAP = 1e-12
ENOUGH = 1e-3
FINE_PRICE = 1e-9

# Scores farther apart than this, by a model whose scores still move, or of which nothing is proved.
RUN_AWAY = 10.0
FAR_AND_UNPROVED = 100.0
# Steps that end with scores this near to the largest spread there can be were stopped by it.
OUT_OF_RANGE = 0.8
# A patient is an outlier if the scores of all others spread over less than this share of the range.
ALONE = 0.5
# Curvature below this share of the largest is rounding.
NEWTON_FLOOR = 1e-12
# A move of scores by less changes curvature by no larger share than this.
SAME_CURVATURE = 1e-7
NEWTON_SLOPE = 1e-13
# Smallest curvature over the largest, estimated, above which no direction is near that floor.
WELL_CONDITIONED = 1e-8


@dataclass(frozen=True)
class Solution:
    """A linear model and the proof of how good it is."""

    coef: np.ndarray  # (d,), for the features as given
    risk: float  # R at coef, penalty included; of a split the sum of both halves' risks
    bound: float  # no coefficients have a smaller risk than this
    gap: float  # (risk - bound) / max(1, risk)
    weights: np.ndarray  # (n,), the q of the bound; of a split it sums to 1 in each half
    n_iter: int
    separated: bool  # whether coefficients run away: no minimum is attained
    losses: np.ndarray  # (n,), at coef
    standard_errors: np.ndarray | None  # (d,), of a Cox regression: alpha=1, no penalty, no split


class _Progress:
    """The best point so far, and the best bound with its q."""

    away: bool  # whether scores still move, far, and gain next to nothing
    last: Weighted  # the last point, or one next to it, where curvature is known

    def __init__(self, best: Losses, bound: float, q: np.ndarray):
        self.best = best
        self.bound = bound
        self.q = q
        self.steps = 0
        self.on_a_ray = False  # whether the best point is on a ray along which losses always fall

    @property
    def gap(self) -> float:
        """How much smaller a risk might be."""
        return _relative_gap(self.best.risk, self.bound)

    def improve(self, new: Losses) -> None:
        """Take a point with a smaller risk; a null optimum is to be exactly that."""
        problem = new.problem
        if self.best.point.any() and problem.farthest(new.point) < SMALL_MOVE:
            self.best = problem.at_null()
        if new.risk < self.best.risk - ROUNDED * abs(self.best.risk):
            self.best = new

    def prove(self, weighted: Weighted) -> None:
        """Take a larger bound."""
        self.last = weighted
        bound = weighted.bound()
        if bound > self.bound:
            self.bound = bound
            self.q = weighted.q

    def follow_the_ray(self, tol: float) -> bool:
        """Whether the best point separates; if so, go along its ray until little is to be had."""
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
        """Whether coefficients run away."""
        problem = self.best.problem
        if problem.penalty > 0:
            return False  # there is a minimum, proved or not
        if self.on_a_ray:
            return True
        limit = RUN_AWAY if self.away else FAR_AND_UNPROVED if self.gap > tol else np.inf
        return bool(problem.farthest(self.best.point) > limit)


def minimise(
    X,
    risk: RiskSets,
    alpha: float,
    *,
    rule: str = "sharp",
    first=None,
    weights=None,
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
    if first is not None:
        _checks.same_length(first=np.asarray(first), X=order)
        first = np.asarray(first, bool)[order]
    coordinates = uncorrelated(X, risk, weights, penalty)
    problem = Problem(coordinates, risk, weights, first, alpha, rule, penalty)
    progress = _solve(problem, _start(problem), tol, n_iter)
    best = progress.best
    if progress.gap > tol and not progress.separated(tol):
        _refuse_scores_out_of_range(best, X)
    bound = min(progress.bound, best.risk)  # rounding may put them the other way round
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


def _standard_errors(progress: _Progress) -> np.ndarray:
    """Those of a Cox regression, by the inverse of the observed information at its optimum.

    NaN for features without variance, and for all where a combination of features has none.
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
    if varies.sum() == len(curvature) and curvature[0] > NEWTON_FLOOR * curvature[-1]:
        # H is a mean over patients, the information a sum
        root = back[varies] @ (vectors / np.sqrt(curvature * problem.weights.sum()))
        errors[varies] = np.linalg.norm(root, axis=1)
    return errors


def _relative_gap(risk: float, bound: float) -> float:
    """How far a risk is from a bound, relative to the size of the risk if that is over 1."""
    return (risk - bound) / max(1.0, risk)


def _start(problem: Problem) -> np.ndarray:
    """Where to start: at 0, or at the optimum of a sample, found at a fraction of the cost."""
    start = np.zeros(problem.Z.shape[1])
    step = len(problem.Z) // SAMPLE
    if step >= WORTH_A_SAMPLE:
        with suppress(ValueError):  # unless the sample has too few events
            start = _solve(problem.thinned(step), start, SAMPLE_TOLERANCE, SAMPLE_STEPS).best.point
    return start


def _refuse_scores_out_of_range(best: Losses, X: np.ndarray) -> None:
    """Say so where steps ended because hazards left the range of floating-point numbers."""
    problem = best.problem
    scores = best.scores
    spread = np.ptp(scores)
    if spread < OUT_OF_RANGE * kernels.SAFE_SPREAD:
        return
    farthest = np.abs(scores - np.median(scores)).argmax()
    if np.ptp(np.delete(scores, farthest)) < ALONE * spread:
        row = problem.risk_sets.order[0][farthest]
        coef = problem.coordinates.back @ best.point
        column = np.abs((X[row] - np.median(X, axis=0)) * coef).argmax()
        raise ValueError(
            f"X holds an outlier in column {column}, row {row}: the best model would put its score "
            f"out of the range of floating-point numbers; clip or transform that column"
        )
    raise ValueError(
        f"the features tell nearly perfectly who has an event first: with penalty="
        f"{problem.penalty:g} the best scores lie {spread:.0f} apart or more, out of the range of "
        f"floating-point numbers; use a larger penalty, or clip outliers"
    )


def _newton(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Newton's direction, 0 where neither slope nor curvature is more than rounding."""
    factor, failed = lapack.dpotrf(hessian)
    if not failed:
        share, _ = lapack.dpocon(factor, np.abs(hessian).sum(axis=0).max())
        if share > WELL_CONDITIONED:
            return -lapack.dpotrs(factor, gradient)[0]
    curvature, vectors = np.linalg.eigh(hessian)
    slope = vectors.T @ gradient
    floor = max(NEWTON_FLOOR * curvature[-1], 1e-100)
    flat = (curvature <= floor) & (np.abs(slope) <= NEWTON_SLOPE)
    return -vectors @ np.where(flat, 0.0, slope / np.maximum(curvature, floor))


def _damping(damping: float, gain: float, trace: float) -> float:
    """Levenberg's damping after a step with a gain, a share of what it promised."""
    if gain < POOR_GAIN:
        return DAMPING_FACTOR * damping if damping > 0 else FIRST_DAMPING * trace
    if gain > GOOD_GAIN:
        less = damping / DAMPING_FACTOR
        return less if less > LAST_DAMPING * trace else 0.0
    return damping


def _solve(problem: Problem, start: np.ndarray, tol: float, n_iter: int) -> _Progress:
    """Descend from ``start``, or from 0 where scores would be too far apart there; then again with
    a lower price where it matters.
    """
    at = problem.at(start) or problem.at_null()
    mu = FIRST_PRICE / problem.cap
    state = Priced(at, mu)
    progress = _Progress(at, *problem.lowest())
    while True:
        left = max(1, n_iter - progress.steps)
        state, before, steps, progress.away = _descend(problem, state, mu, left)
        progress.steps += steps
        progress.improve(state.at)
        progress.prove(before)
        if progress.follow_the_ray(tol):
            return progress
        gap = progress.gap
        enough = gap <= ENOUGH * tol and (gap <= EXACT_GAP or mu * problem.cap < FINE_PRICE)
        over = progress.away or not state.priced or progress.steps >= n_iter
        if enough or over or mu < LAST_PRICE:
            return progress
        mu *= PRICE_FACTOR
        state = Priced(state.at, mu)


def _descend(
    problem: Problem, state: Priced, mu: float, n_iter: int
) -> tuple[Priced, Priced, int, bool]:
    """Newton's steps at one price, damped where the risk is far from quadratic (Levenberg).

    Returns the last state, the one before it if a bound is to be had there for less, the number of
    steps, and whether scores still move.
    """
    damping = 0.0
    for step in range(1, n_iter + 1):
        fixed, added = state.both
        hessian = fixed + added
        damped = hessian + damping * np.eye(len(hessian)) if damping > 0 else hessian
        direction = _newton(damped, state.gradient)
        drop = -direction @ state.gradient
        moves = problem.farthest(direction) > SMALL_MOVE
        away = problem.penalty == 0 and moves
        if drop <= (NOTHING_AFAR if away else NOTHING):
            break
        at = problem.at(state.point + direction)
        new = None if at is None else Priced(at, mu)
        gain = -1.0  # of the step, by what it promised
        if new is not None and drop > COMPARABLE:
            promised = drop - 0.5 * direction @ hessian @ direction
            gain = (state.minimised - new.minimised) / promised
        elif new is not None:  # is what is left to gain, by the same Hessian, a quarter of it?
            left = -_newton(damped, new.gradient) @ new.gradient
            gain = 1.0 if left <= 0.25 * drop else -1.0
        damping = _damping(damping, gain, np.trace(fixed))
        if new is not None and gain > ACCEPTED_GAIN:
            if drop < COMPARABLE and not (new.priced or moves):  # the bound before it will do
                return new, state, step, False
            state = new
            if problem.penalty == 0 and away and state.at.separates:
                break
        elif drop < COMPARABLE:
            break
    return state, state, step, away and drop < SEPARATING
