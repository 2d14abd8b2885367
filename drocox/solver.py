r"""Linear Cox and DRO-COX models to a certified optimum.

With scores :math:`f_i = \theta^T x_i` every Cox loss :math:`\ell_i(\theta)`, split or not, is a
log-sum-exp of linear functions, and the risk is a maximum over the adversary's weights,

.. math:: R(\theta) = \max_{q \in Q} F_q(\theta), \qquad F_q(\theta) = \sum_i q_i \ell_i(\theta),

so it is convex, and a minimiser can be proved to be one.

**The certificate.** :math:`\min R \ge \min F_q` for every :math:`q` that the adversary may choose.
Along a direction :math:`v` the second derivative of a log-sum-exp is a variance and the third a
third central moment of :math:`v^T x` under the same distribution, so that :math:`|F_q'''| \le d\,
F_q''` where :math:`d = \max_{j,k} v^T (x_j - x_k)`. Two integrations give, with gradient :math:`g`
and Hessian :math:`H` of :math:`F_q` at :math:`\theta`,

.. math:: F_q(\theta + tv) \ge F_q(\theta) + t\, g^T v
          + v^T H v\, \frac{e^{-td} + td - 1}{d^2} \quad (t \ge 0).

Minimised over :math:`t` the right side is :math:`F_q - (h / d^2)\, \omega(\gamma d / h)`, where
:math:`\gamma = -g^T v`, :math:`h = v^T H v` and :math:`\omega(s) = s + (1 - s) \log(1 - s)`, as
long as :math:`s = \gamma d / h < 1`. Now :math:`\gamma \le \lambda \sqrt h` with the Newton
decrement :math:`\lambda = \sqrt{g^T H^{-1} g}`, and :math:`d \le M \sqrt h` with :math:`M = 2
\max_j \lVert x_j - \bar x \rVert_{H^{-1}}`; since :math:`\omega(s) / s^2` grows with :math:`s`,

.. math:: \min_\theta R \;\ge\; F_q(\theta) - \omega(\lambda M) / M^2 \qquad (\lambda M < 1),

which is about :math:`F_q(\theta) - \lambda^2 / 2`. Where a direction has no variance in any risk
set that :math:`q` weighs, :math:`F_q` is constant along it, and it is left out.

**The steps** are Newton's, damped where they need to be, in coordinates in which features are
uncorrelated with variance 1, so the units of features do not matter. The Hessian of :math:`R` is
:math:`H` plus the response of the adversary, known in closed form where the worst case is unique.
Where losses tie and it is not (a kink), the adversary pays :math:`\frac\mu2 \sum_i (q_i - p_i)^2 /
p_i`; then :math:`q` is unique, the risk smooth, and :math:`\mu` falls until the certificate, which
knows nothing of :math:`\mu`, is satisfied. Away from kinks the price changes nothing and the steps
converge at once.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from scipy import optimize

from drocox import _checks, kernels
from drocox.cox import RiskSets, risk_sets
from drocox.dro import RULES, dro_risk, dual_constant

FIRST_PRICE = 0.1  # of the adversary, in units of loss over the largest q_i / p_i it may choose
SAMPLE = 20_000  # patients of the sample that finds a starting point


@dataclass(frozen=True)
class Solution:
    """A linear model and the proof of how good it is."""

    coef: np.ndarray  # (d,), for the features as given
    risk: float  # R at coef; of a split the sum of both halves' risks
    bound: float  # no coefficients have a smaller risk than this
    gap: float  # (risk - bound) / max(1, risk)
    weights: np.ndarray  # (n,), the q of the bound; of a split it sums to 1 in each half
    n_iter: int
    separated: bool  # whether coefficients run away: no minimum is attained


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
) -> Solution:
    r"""Coefficients with the smallest risk :math:`R(\theta)`, and a bound that proves it.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, in any units.
    risk : RiskSets
        The outcomes, ``risk_sets(time, event)``.
    alpha : float in (0, 1]
        Smallest probability of a group to protect; 1 is Cox regression with Breslow's ties.
    rule : {"sharp", "paper", "definition", "cvar"}
        As in :func:`drocox.dro_risk`.
    first : bool array of shape (n,), optional
        True for the patients of :math:`D_1`: the sum of the two split risks is minimised.
    weights : array of shape (n,), optional
        Case weights >= 0, not together with ``first``.
    tol : float > 0
        The gap at which steps may stop. They mostly end far below it, where they help no more.
    n_iter : int
        Most Newton steps.

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
    if risk.order.shape != (1, len(X)):
        said = f"risk has shape {risk.order.shape}, X {X.shape}"
        raise ValueError(f"{said}; pass risk_sets(time, event), one time for each row of X")
    if first is not None and weights is not None:
        raise ValueError("weights cannot be used with first; leave one of them out")
    order = risk.order[0]
    weights = np.ones(len(X)) if weights is None else _checks.weights(weights, len(X))[order]
    if first is not None:
        _checks.same_length(first=np.asarray(first), X=order)
        first = np.asarray(first, bool)[order]
    Z, back = _uncorrelated(np.take(X, order, axis=0), risk)
    problem = _Problem(Z, risk, weights, first, alpha, rule)
    start = np.zeros(Z.shape[1])
    step = len(Z) // SAMPLE
    if step > 1:  # a sample is near the optimum at a fraction of the cost
        with suppress(ValueError):  # unless it has too few events
            start = _solve(problem.thinned(step), start, 1e-4, 50)[0].point
    best, bound, q, steps, separated = _solve(problem, start, tol, n_iter)
    bound = min(bound, best.risk)  # rounding may put them the other way round
    gap = (best.risk - bound) / max(1.0, best.risk)
    worst = np.empty(len(X))
    worst[order] = q
    return Solution(back @ best.point, best.risk, bound, gap, worst, steps, separated)


def _uncorrelated(Z: np.ndarray, risk: RiskSets) -> tuple[np.ndarray, np.ndarray]:
    """Features of mean 0 and unit covariance, and the matrix that takes coefficients back.

    Directions without variance are left out, so that copies of a feature share its coefficient.
    Patients censored before the first event are in no risk set and do not count. ``Z`` is reused.
    """
    used = risk.stop[0][np.flatnonzero(risk.event[0])[-1]]
    Z -= Z[:used].mean(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = Z[:used].T @ Z[:used] / used
    scale = np.sqrt(covariance.diagonal())
    if not np.isfinite(scale).all():
        raise ValueError("X holds numbers too large to square; choose larger units")
    scale[scale == 0] = 1.0
    correlation = covariance / np.outer(scale, scale)
    variance, vectors = np.linalg.eigh(correlation)
    kept = variance > 1e-11
    if not kept.any():
        return np.zeros((len(Z), 1)), np.zeros((Z.shape[1], 1))
    back = vectors[:, kept] / np.sqrt(variance[kept]) / scale[:, None]
    return Z @ back, back


@njit(cache=True)
def _risk_set_means(Z, hazard, total, event, stop, enters, meets, split, low, high, sums, p):
    """Mean features in the risk sets of the events at positions ``low`` to ``high``, else 0.

    Positions before ``p`` are in ``sums``, the running sums of the two halves, which go on from
    there; returns the means and the new ``p``.
    """
    d = Z.shape[1]
    means = np.zeros((high - low, d))
    for i in range(low, high):
        while p <= i:  # one block of equal times after the other, latest first
            end = stop[0, p]
            for q in range(p, end):
                for j in range(d):
                    sums[enters[0, q], j] += hazard[q] * Z[q, j]
            p = end
        if event[i]:
            for j in range(d):
                own = hazard[i] * Z[i, j] if split else 0.0
                means[i - low, j] = (own + sums[meets[0, i], j]) / total[i]
    return means, p


def _priced_worst_case(losses, mass, mu: float, cap: float) -> tuple[np.ndarray, np.ndarray]:
    """The q_i / p_i = min((loss_i - eta)_+ / mu, cap) for which q sums to 1, and who is inside."""

    below = losses - losses.max()  # relative to the largest: nearly tied losses keep their digits

    def excess(eta: float) -> float:
        return mass @ np.clip((below - eta) / mu, 0.0, cap) - 1.0

    eta = optimize.brentq(excess, below.min() - 2 * mu, 0.0, xtol=1e-6 * mu)
    above = below - eta
    inside = (above > 0) & (above < mu * cap) & (mass > 0)
    ratio = np.where(above < mu * cap, 0.0, cap)
    if inside.any():
        left = mu * (1.0 - mass @ ratio)
        shift = (mass[inside] @ above[inside] - left) / mass[inside].sum()
        ratio[inside] = np.clip((above[inside] - shift) / mu, 0.0, cap)
    return ratio / (mass @ ratio), inside


class _Problem:
    """Patients in time order, latest first; the risk as a function of a point, theta in ``Z``."""

    def __init__(self, Z, outcomes: RiskSets, weights, first, alpha: float, rule: str):
        self.Z, self.outcomes, self.weights, self.first = Z, outcomes, weights, first
        self.alpha, self.rule = alpha, rule
        self.event = outcomes.event[0] & (weights > 0)  # a weight of 0 is nobody
        self.split = first is not None
        side = np.where(first, 0, 1) if self.split else np.zeros(len(Z), int)
        self.sets = (outcomes.stop, side[None], (1 - side if self.split else side)[None])
        self.parts = [first, ~first] if self.split else [slice(None)]
        if not all(self.event[part].any() for part in self.parts):
            said = "nobody has an event and a weight above 0, or not on both sides of first"
            raise ValueError(f"{said}; pass an event on each side")
        self.mass = weights.copy()  # p
        for part in self.parts:
            self.mass[part] /= self.mass[part].sum()
        self.radius = np.sqrt(np.einsum("ij,ij->i", Z, Z).max())
        no_ball = rule == "cvar" and alpha < 1  # else C = 1, a ball of one point
        self.c = None if no_ball else dual_constant(alpha, rule="sharp" if alpha == 1 else rule)
        self.cap = 1 / alpha if self.c is None else self.c**2

    def thinned(self, step: int) -> "_Problem":
        """The same problem for every ``step``-th patient."""
        outcomes = risk_sets(self.outcomes.time[0][::step], self.outcomes.event[0][::step])
        rows = outcomes.order[0] * step
        first = self.first[rows] if self.split else None
        Z = np.take(self.Z, rows, axis=0)
        return _Problem(Z, outcomes, self.weights[rows], first, self.alpha, self.rule)

    def farthest(self, step: np.ndarray) -> float:
        """How far apart a step moves two scores at most; if that is little, a bound of it."""
        most = 2 * self.radius * np.linalg.norm(step)
        return most if most < 0.1 else np.ptp(self.Z @ step)

    def at(self, point: np.ndarray, mu: float) -> "_State | None":
        """Risk and gradient; None where hazards leave the range of floating-point numbers."""
        f = self.Z @ point
        f -= f.max()
        return _State(self, point, f, mu) if f.min() > -kernels.SAFE_SPREAD else None


class _State:
    """Risk and gradient at one point, where scores are ``f``; Hessians and bound when asked for."""

    def __init__(self, problem: _Problem, point: np.ndarray, f: np.ndarray, mu: float):
        self.problem, self.point = problem, point
        self.hazard = np.exp(f) * problem.weights
        self.total = kernels.risk_sums(self.hazard[None], *problem.sets)[0]
        if problem.split:
            self.total += self.hazard
        self.total[~problem.event] = 1.0
        self.losses = (np.log(self.total) - f) * problem.event
        self.q = np.empty_like(f)
        self.risk = 0.0  # R
        self.value = 0.0  # what is minimised: R, less the adversary's price
        self.priced = False  # whether the price matters here
        self.halves = []  # patients, how fast their q follows their loss, moments of it that stay
        for part in problem.parts:
            self._meet(part, problem.mass[part], mu)
        self.pull = self.q * problem.event
        push = self.pull / self.total
        self.received = self.hazard * kernels.risk_sums_back(push[None], *problem.sets)[0]
        if problem.split:
            self.received += self.hazard * push
        self.gradient = (self.received - self.pull) @ problem.Z

    def _meet(self, part, mass: np.ndarray, mu: float) -> None:
        """Add the adversary's answer in one half."""
        losses = self.losses[part]
        c = self.problem.c
        if c is None:
            alpha = self.problem.alpha
            self.risk += float(dro_risk(losses, alpha, rule="cvar", weights=mass))
        else:
            (eta,), (risk,), (q,) = kernels.worst_cases(losses[None], mass, np.array([c]))
            self.risk += risk
            # q_i = p_i (loss_i - eta)_+ / width; for C = 1 the adversary has no choice
            width = (risk - eta) / c**2 if c > 1 else np.inf
            if width >= mu:
                self.q[part] = q
                self.value += risk - 0.5 * mu * (c**2 - 1)
                self.halves.append((part, mass * (q > 0) / width, 2))
                return
        cap = self.problem.cap if c is None else np.inf
        ratio, inside = _priced_worst_case(losses, mass, mu, cap)
        q = mass * ratio
        self.q[part] = q
        self.value += q @ losses - 0.5 * mu * (q @ ratio - 1)
        self.halves.append((part, mass * inside / mu, 1))
        self.priced = True

    @cached_property
    def hessians(self) -> tuple[np.ndarray, np.ndarray]:
        """Hessian of F_q, and what the response of q to the losses adds to it.

        The response is p_i / width on the diagonal, less what keeps the sum of q at 1 and, on the
        edge of the ball, its length at C: the projection of 1 and of the losses, made orthogonal.
        """
        problem = self.problem
        n, d = problem.Z.shape
        slope = np.zeros(n)
        kept = []
        for part, own, moments in self.halves:
            slope[part] = own
            for power in range(moments if own.any() else 0):
                level = self.losses[part] - np.average(self.losses[part], weights=own)
                vector = np.zeros(n)
                vector[part] = own * level**power
                kept.append((vector * problem.event, vector[part] @ level**power))
        slope *= problem.event
        fixed, added = np.zeros((2, d, d))
        moved = np.zeros((len(kept), d))
        sums = np.zeros((2, d))
        reached = 0
        given = (self.hazard, self.total, problem.event, *problem.sets, problem.split)
        block = 1 + 2**17 // d  # as many patients at a time as the processor keeps at hand
        for low in range(0, n, block):
            high = min(n, low + block)
            z = problem.Z[low:high]
            means, reached = _risk_set_means(problem.Z, *given, low, high, sums, reached)
            fixed += z.T @ (self.received[low:high, None] * z)
            fixed -= means.T @ (self.pull[low:high, None] * means)
            if kept:
                means -= z  # the gradients of the losses
                added += means.T @ (slope[low:high, None] * means)
                moved += [vector[low:high] @ means for vector, _ in kept]
        for vector, (_, size) in zip(moved, kept, strict=True):
            added -= np.outer(vector, vector) / max(size, 1e-300)
        return fixed, added

    def bound(self) -> float:
        """The certificate, a number that no risk is below; -inf if a slope is too large for it."""
        curvature, vectors = np.linalg.eigh(self.hessians[0])
        slope = vectors.T @ self.gradient
        # others are 0 to rounding, with their slope
        steep = curvature > max(1e-13 * curvature[-1], 1e-16 * self.problem.radius**2)
        square = (slope[steep] ** 2 / curvature[steep]).sum()  # of the Newton decrement
        least = curvature[steep].min(initial=np.inf)
        reach = 2 * self.problem.radius / np.sqrt(least)  # M, or more
        x = np.sqrt(square) * reach
        if x >= 1 or np.abs(slope[~steep]).max(initial=0.0) > 1e-13:
            return -np.inf
        # omega has terms x^k / (k (k - 1)); x^4 / 9 is more than all from x^4 / 12 on
        lost = square * (1 / 2 + x / 6 + x**2 / 9)
        if x >= 1e-3:
            lost = (x + (1 - x) * np.log1p(-x)) / reach**2
        return self.q @ self.losses - lost


def _newton(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Newton's direction, 0 where neither slope nor curvature is more than rounding."""
    curvature, vectors = np.linalg.eigh(hessian)
    slope = vectors.T @ gradient
    floor = max(1e-12 * curvature[-1], 1e-100)
    flat = (curvature <= floor) & (np.abs(slope) <= 1e-13)
    return -vectors @ np.where(flat, 0.0, slope / np.maximum(curvature, floor))


def _descend(problem: _Problem, state: _State, mu: float, n_iter: int):
    """Newton's steps at one price, damped where the risk is far from quadratic (Levenberg).

    Returns the last state, the one before it if a bound is to be had there for less, the number of
    steps, and whether scores still move.
    """
    damping = 0.0
    for step in range(1, n_iter + 1):
        hessian = sum(state.hessians)
        damped = hessian + damping * np.eye(len(hessian))
        direction = _newton(damped, state.gradient)
        drop = -direction @ state.gradient
        away = problem.farthest(direction) > 0.1
        if drop <= (1e-10 if away else 1e-20):
            break
        new = problem.at(state.point + direction, mu)
        gain = -1.0  # of the step, by what it promised
        if new is not None and drop > 1e-9:
            gain = (state.value - new.value) / (drop - 0.5 * direction @ hessian @ direction)
        elif new is not None:  # values are rounded: is the slope, by the same Hessian, half of it?
            gain = 1.0 if -_newton(damped, new.gradient) @ new.gradient <= 0.25 * drop else -1.0
        least = 1e-3 * np.trace(state.hessians[0])
        if gain < 0.25:
            damping = max(10 * damping, least)
        elif gain > 0.75:
            damping = damping / 10 if damping > least else 0.0
        if gain > 0.1:
            if drop < 1e-9 and not (new.priced or away):  # the bound before this step will do
                return new, state, step, False
            state = new
        elif drop < 1e-9:
            break
    return state, state, step, away and drop < 1e-7


def _solve(problem: _Problem, start: np.ndarray, tol: float, n_iter: int) -> tuple:
    """Descend from ``start``, again with a lower price where it matters.

    Returns the state, the bound with its q, the number of steps, whether coefficients run away.
    """
    mu = FIRST_PRICE / problem.cap
    state = problem.at(start, mu)
    best = state
    q = best.q
    bound = q[problem.event] @ np.log(problem.weights[problem.event])  # loss_i >= log w_i
    steps = 0
    while True:
        state, before, more, away = _descend(problem, state, mu, max(1, n_iter - steps))
        steps += more
        if best.point.any() and problem.farthest(state.point) < 0.1:
            best = problem.at(np.zeros(len(start)), mu)  # a null optimum is to be exactly that
        if state.risk < best.risk - 1e-13 * abs(best.risk):
            best = state
        here = before.bound()
        if here > bound:
            bound = here
            q = before.q
        gap = (best.risk - bound) / max(1.0, best.risk)
        # at a kink, half of the digits of the gap are those of the coefficients: go on for more
        enough = gap <= 1e-3 * tol and (gap <= 1e-12 or mu * problem.cap < 1e-9)
        if away or enough or not state.priced or steps >= n_iter or mu < 1e-13:
            # scores still move, or are far apart and nothing is proved of them
            limit = 10 if away else 100 if gap > tol else np.inf
            return best, bound, q, steps, bool(problem.farthest(best.point) > limit)
        mu *= 0.1
        state = problem.at(state.point, mu)
