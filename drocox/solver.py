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

**The steps** are Newton's, in coordinates in which features are uncorrelated with variance 1, so
the units of features do not matter. The Hessian of :math:`R` is :math:`H` plus the response of the
adversary, known in closed form where the worst case is unique. Where losses tie and it is not (a
kink), the adversary pays :math:`\frac\mu2 \sum_i (q_i - p_i)^2 / p_i`; then :math:`q` is unique,
the risk smooth, and :math:`\mu` falls until the certificate, which knows nothing of :math:`\mu`, is
satisfied. Away from kinks the price changes nothing and the steps converge at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numba import njit
from tqdm import tqdm

from drocox import _checks, kernels
from drocox.cox import RiskSets, risk_sets
from drocox.dro import RULES, dro_risk, dual_constant

FIRST_PRICE = 0.1  # of the adversary, in units of loss over the largest q_i / p_i it may choose
FAR = 20.0  # the most that one step may change a score
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
    rule: str = "paper",
    first=None,
    weights=None,
    tol: float = 1e-6,
    n_iter: int = 500,
    verbose: bool = False,
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
    rule : {"paper", "definition", "sharp", "cvar"}
        As in :func:`drocox.dro_risk`.
    first : bool array of shape (n,), optional
        True for the patients of :math:`D_1`: the sum of the two split risks is minimised.
    weights : array of shape (n,), optional
        Case weights >= 0, not together with ``first``.
    tol : float > 0
        The gap at which steps may stop. They mostly end far below it, where they help no more.
    n_iter : int
        Most Newton steps.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    Solution

    Examples
    --------
    >>> from drocox import risk_sets
    >>> s = minimise([[1.0], [0.0], [1.0], [0.0]], risk_sets([4, 3, 2, 1], [1, 1, 1, 0]), 1)
    >>> s.coef.round(4), s.gap < 1e-9
    """
    X = _checks.numbers(X, "X", 2)
    _checks.number_in(alpha, "alpha", 0, 1)
    _checks.one_of(rule, "rule", RULES)
    _checks.number_in(tol, "tol", 0, np.inf)
    _checks.number_in(n_iter, "n_iter", 0, np.inf)
    if risk.order.shape != (1, len(X)):
        raise ValueError(
            f"risk has shape {risk.order.shape}, X {X.shape}; pass risk_sets(time, event) with one "
            "time for each row of X"
        )
    split = first is not None
    if split and weights is not None:
        raise ValueError("weights cannot be used with first; leave one of them out")
    first = _checks.numbers(first, "first", 1) if split else np.ones(len(X))
    _checks.same_length(first=first, X=X[:, 0])
    weights = np.ones(len(X)) if weights is None else _checks.weights(weights, len(X))
    order = risk.order[0]
    Z, back = _uncorrelated(np.take(X, order, axis=0), risk)
    side = np.where(first[order] == 1, 0, 1)
    problem = _Problem(Z, risk, weights[order], side, split, alpha, rule)
    if not all(problem.event[part].any() for part in problem.parts):
        raise ValueError("nobody has an event and a weight above 0, or not on both sides of first")
    bar = partial(tqdm, disable=not verbose, desc="solving", leave=False)
    state, bound, q, steps, separated, _ = _solve(problem, *_start(problem), tol, n_iter, bar)
    bound = min(bound, state.risk)  # rounding may put them the other way round
    gap = (state.risk - bound) / max(1.0, state.risk)
    worst = np.empty(len(X))
    worst[order] = q
    return Solution(back @ state.point, state.risk, bound, gap, worst, steps, separated)


def _uncorrelated(Z: np.ndarray, risk: RiskSets) -> tuple[np.ndarray, np.ndarray]:
    """Features of mean 0 and unit covariance, and the matrix that takes coefficients back.

    Directions without variance are left out, so that copies of a feature share its coefficient.
    Patients censored before the first event are in no risk set and do not count. ``Z`` is reused.
    """
    used = risk.stop[0][np.flatnonzero(risk.event[0])[-1]]
    Z -= np.ones(used) @ Z[:used] / used
    scale = np.sqrt(np.einsum("ij,ij->j", Z[:used], Z[:used]) / used)
    if not np.isfinite(scale).all():
        raise ValueError("X holds numbers too large to square; choose larger units")
    scale[scale == 0] = 1.0
    if Z.shape[1] > used:
        size, vectors = np.linalg.svd(Z[:used] / scale, full_matrices=False)[1:]
        size = size**2 / used
        vectors = vectors.T
    else:
        size, vectors = np.linalg.eigh(Z[:used].T @ Z[:used] / used / np.outer(scale, scale))
    kept = size > 1e-11
    if not kept.any():
        return np.zeros((len(Z), 1)), np.zeros((Z.shape[1], 1))
    back = vectors[:, kept] / np.sqrt(size[kept]) / scale[:, None]
    return Z @ back, back


@njit(cache=True)
def _risk_set_means(Z, hazard, total, event, stop, side, split, low, high, sums, p):
    """Mean features in the risk sets of the events at positions ``low`` to ``high``, else 0.

    Positions before ``p`` are in ``sums``, the running sums of the two halves, which go on from
    there; returns the means and the new ``p``.
    """
    d = Z.shape[1]
    means = np.zeros((high - low, d))
    for i in range(low, high):
        while p <= i:  # one block of equal times after the other, latest first
            end = stop[p]
            for q in range(p, end):
                for j in range(d):
                    sums[side[q], j] += hazard[q] * Z[q, j]
            p = end
        if event[i]:
            for j in range(d):
                own = hazard[i] * Z[i, j] + sums[1 - side[i], j] if split else sums[0, j]
                means[i - low, j] = own / total[i]
    return means, p


def _priced_worst_case(losses, mass, mu: float, cap: float) -> tuple[np.ndarray, np.ndarray]:
    """The q_i / p_i = min((loss_i - eta)_+ / mu, cap) for which q sums to 1, and who is inside."""
    low = losses.min() - mu
    high = losses.max()
    eta = high - mu
    for _ in range(100):  # Newton's method inside a shrinking bracket; the sum falls with eta
        ratio = (losses - eta) / mu
        excess = mass @ np.clip(ratio, 0.0, cap) - 1.0
        if abs(excess) < 1e-12:
            break
        low, high = (eta, high) if excess > 0 else (low, eta)
        slope = mass[(ratio > 0) & (ratio < cap)].sum() / mu
        guess = eta + excess / slope if slope > 0 else low
        eta = guess if low < guess < high else 0.5 * (low + high)
    # once more relative to that eta: differences of nearly tied losses are exact
    above = losses - eta
    inside = (above > 0) & (above < mu * cap) & (mass > 0)
    ratio = np.where(above < mu * cap, 0.0, cap)
    if inside.any():
        left = mu * (1.0 - mass @ ratio)
        shift = (mass[inside] @ above[inside] - left) / mass[inside].sum()
        ratio[inside] = np.clip((above[inside] - shift) / mu, 0.0, cap)
    return ratio / (mass @ ratio), inside


@dataclass
class _State:
    """Risk and gradient at one point, and what the Hessian needs."""

    point: np.ndarray
    losses: np.ndarray
    hazard: np.ndarray
    total: np.ndarray
    q: np.ndarray
    risk: float = 0.0  # R
    value: float = 0.0  # what is minimised: R, less the adversary's price
    priced: bool = False  # whether the price matters here
    halves: list = field(default_factory=list)  # patients, whose q moves, its width, what is fixed
    gradient: np.ndarray | None = None
    received: np.ndarray | None = None  # weight of each patient in the risk sets' second moments


@dataclass
class _Problem:
    """Patients in time order, latest first; the risk as a function of a point, theta in ``Z``."""

    Z: np.ndarray
    outcomes: RiskSets
    weights: np.ndarray
    side: np.ndarray  # 0 for D1 and 1 for D2
    split: bool
    alpha: float
    rule: str

    def __post_init__(self) -> None:
        self.event = self.outcomes.event[0] & (self.weights > 0)  # a weight of 0 is nobody
        self.walk = (self.outcomes.stop[0], self.side, self.split)
        self.parts = (
            [np.flatnonzero(self.side == s) for s in (0, 1)] if self.split else [slice(None)]
        )
        self.mass = self.weights.copy()  # p
        for part in self.parts:
            self.mass[part] /= self.mass[part].sum()
        self.radius = np.sqrt(np.einsum("ij,ij->i", self.Z, self.Z).max())
        self.c = None  # the dual constant
        if self.alpha == 1 or self.rule != "cvar":
            self.c = dual_constant(self.alpha, rule="sharp" if self.alpha == 1 else self.rule)
        self.cap = 1 / self.alpha if self.c is None else self.c**2

    def thinned(self, step: int) -> _Problem:
        """The same problem for every ``step``-th patient."""
        outcomes = risk_sets(self.outcomes.time[0][::step], self.outcomes.event[0][::step])
        rows = outcomes.order[0] * step
        Z = np.take(self.Z, rows, axis=0)
        how = {"outcomes": outcomes, "weights": self.weights[rows], "side": self.side[rows]}
        return replace(self, Z=Z, **how)

    def farthest(self, step: np.ndarray) -> float:
        """How far apart a step moves two scores at most; if that is little, a bound of it."""
        most = 2 * self.radius * np.linalg.norm(step)
        return most if most < 0.1 else np.ptp(self.Z @ step)

    def at(self, point: np.ndarray, mu: float) -> _State | None:
        """Risk and gradient; None where hazards leave the range of floating-point numbers."""
        f = self.Z @ point
        f -= f.max()
        if not f.min() > -kernels.SAFE_SPREAD:
            return None
        hazard = np.exp(f)
        hazard *= self.weights
        stop, *rest = self.walk
        total = kernels.totals(hazard[None], stop, self.event, *rest)[0]
        losses = np.log(total)
        losses -= f
        losses *= self.event
        state = _State(point, losses, hazard, total, np.empty_like(f))
        for part in self.parts:
            self._meet(state, part, mu)
        pull = state.q * self.event
        push = (pull / total)[None]
        state.received = kernels.pull_back(hazard[None], pull[None], push, *self.walk)[0]
        state.gradient = state.received @ self.Z
        state.received += pull
        return state

    def _meet(self, state: _State, part, mu: float) -> None:
        """Add the adversary's answer in one half."""
        losses = state.losses[part]
        mass = self.mass[part]
        if self.c is None:
            state.risk += float(dro_risk(losses, self.alpha, rule="cvar", weights=mass))
        else:
            etas, risks, worst = kernels.worst_cases(losses[None], mass[None], np.array([self.c]))
            state.risk += risks[0]
            # q_i = p_i (loss_i - eta)_+ / width; for C = 1 the adversary has no choice
            width = (risks[0] - etas[0]) / self.c**2 if self.c > 1 else np.inf
            if width >= mu:
                state.q[part] = worst[0]
                state.value += risks[0] - 0.5 * mu * (self.c**2 - 1)
                state.halves.append((part, worst[0] > 0, width, 2 if self.c > 1 else 0))
                return
        ratio, inside = _priced_worst_case(losses, mass, mu, np.inf if self.c else self.cap)
        q = mass * ratio
        state.q[part] = q
        state.value += q @ losses - 0.5 * mu * (q @ ratio - 1)
        state.halves.append((part, inside, mu, 1 if inside.any() else 0))
        state.priced = True

    def hessians(self, s: _State) -> tuple[np.ndarray, np.ndarray]:
        """Hessian of F_q, and what the response of q to the losses adds to it.

        The response is p_i / width on the diagonal, less what keeps the sum of q at 1 and, on the
        edge of the ball, its length at C: the projection of 1 and of the losses, made orthogonal.
        """
        n, d = self.Z.shape
        slope = np.zeros(n)
        kept = []
        for part, inside, width, fixed_moments in s.halves:
            slope[part] = self.mass[part] * inside / width
            for power in range(fixed_moments):
                level = s.losses[part] - np.average(s.losses[part], weights=slope[part])
                vector = np.zeros(n)
                vector[part] = slope[part] * level**power
                kept.append((vector * self.event, vector[part] @ level**power))
        slope *= self.event
        fixed = np.zeros((d, d))
        added = np.zeros((d, d))
        moved = np.zeros((len(kept), d))
        sums = np.zeros((2, d))
        reached = 0
        block = 1 + 2**17 // d  # as many patients at a time as the processor keeps at hand
        for low in range(0, n, block):
            high = min(n, low + block)
            z = self.Z[low:high]
            given = (s.hazard, s.total, self.event, *self.walk)
            means, reached = _risk_set_means(self.Z, *given, low, high, sums, reached)
            fixed += z.T @ (s.received[low:high, None] * z)
            fixed -= means.T @ ((s.q * self.event)[low:high, None] * means)
            if kept:
                means -= z  # the gradients of the losses
                added += means.T @ (slope[low:high, None] * means)
                moved += [vector[low:high] @ means for vector, _ in kept]
        for vector, (_, size) in zip(moved, kept, strict=True):
            added -= np.outer(vector, vector) / max(size, 1e-300)
        return fixed, added

    def bound(self, s: _State, hessian: np.ndarray) -> tuple[float, float]:
        """The certificate, a number that no risk is below; and M of its proof, or more.

        Minus infinity where the gradient is too large for a proof.
        """
        curvature, vectors = np.linalg.eigh(hessian)
        slope = vectors.T @ s.gradient
        steep = curvature > 1e-13 * curvature[-1]  # others are 0 to rounding, with their slope
        if np.abs(slope[~steep]).max(initial=0.0) > 1e-13:
            return -np.inf, np.inf
        if not steep.any():
            return s.q @ s.losses, 0.0
        decrement = np.sqrt((slope[steep] ** 2 / curvature[steep]).sum())
        reach = 2 * self.radius / np.sqrt(curvature[steep][0])
        x = decrement * reach
        if x >= 1:
            return -np.inf, reach
        # the series has terms x^k / (k (k - 1)); x^4 / 9 is more than all from x^4 / 12 on
        omega = x * x / 2 + x**3 / 6 + x**4 / 9 if x < 1e-3 else x + (1 - x) * np.log1p(-x)
        return s.q @ s.losses - omega / reach**2, reach


def _newton(hessian: np.ndarray, gradient: np.ndarray, floor: float) -> np.ndarray:
    """Newton's direction, 0 where neither slope nor curvature is more than rounding."""
    curvature, vectors = np.linalg.eigh(hessian)
    slope = vectors.T @ gradient
    flat = (curvature <= floor) & (np.abs(slope) <= 1e-13)
    return -vectors @ np.where(flat, 0.0, slope / np.maximum(curvature, max(floor, 1e-300)))


def _search(problem: _Problem, state: _State, direction, drop: float, mu: float) -> _State | None:
    """Go along ``direction`` until the value has fallen and the slope is at most half as steep."""
    length = min(1.0, FAR / max(problem.farthest(direction), 1e-300))
    slack = 1e-14 * max(1.0, abs(state.value))
    for _ in range(40):
        new = problem.at(state.point + length * direction, mu)
        slope = np.inf if new is None else new.gradient @ direction
        fallen = new is not None and new.value <= state.value - 1e-4 * length * drop + slack
        if fallen and slope <= 0.5 * drop:
            return new
        if slope <= 0:
            break  # downhill all the way, and yet not: rounding
        # back to where a straight line puts the slope's zero, or nearby
        length *= np.clip(drop / (drop + slope), 0.1, 0.9)
    return None


def _lowest(best: _State, states: list[_State]) -> _State:
    """The state of the smallest risk; ``best`` if others are better by rounding only."""
    for state in states:
        if state.risk < best.risk - 1e-13 * abs(best.risk):
            best = state
    return best


def _solve(problem: _Problem, points: list, guide, tol: float, n_iter: int, bar=iter) -> tuple:
    """Newton steps from the best of some points, the price falling where it matters.

    The first steps take the Hessian ``guide``, if there is one, as long as it serves. Returns the
    state, the bound with its q, the number of steps, whether coefficients run away, the Hessian.
    """
    mu = FIRST_PRICE / problem.cap
    states = [s for s in (problem.at(point, mu) for point in points) if s]
    state = min(states, key=lambda s: s.value)
    best = _lowest(state, states)
    bound = state.q[problem.event] @ np.log(problem.weights[problem.event])  # loss_i >= log w_i
    q = state.q
    ended = None  # price and point where the last price led
    last = np.inf
    steps = 0
    for _ in bar(range(max(1, int(n_iter)))):
        steps += 1
        if guide is not None:
            direction = _newton(guide, state.gradient, 0.0)
            drop = -direction @ state.gradient
            useful = 1e-9 < drop < 0.01 * last and steps < n_iter
            new = problem.at(state.point + direction, mu) if useful else None
            if new is not None and new.value < state.value:
                state = new
                best = _lowest(best, [new])
                last = drop
                continue
            guide = None
        fixed, added = problem.hessians(state)
        here, reach = problem.bound(state, fixed)
        if here > bound:
            bound = here
            q = state.q
        direction = _newton(fixed + added, state.gradient, 1e-12 * np.trace(fixed) / len(fixed))
        drop = -direction @ state.gradient
        away = problem.farthest(direction) > 0.1
        gap = (best.risk - bound) / max(1.0, best.risk)
        # what the next step leaves, at most reach * drop / 2 in the norm of the Hessian, is nothing
        settled = drop * max(1.0, reach) <= 3e-8
        # at a kink, half of the digits of the gap are those of the coefficients: go on for more
        enough = gap <= 1e-12 or mu * problem.cap < 1e-9
        if state.priced and gap <= 1e-3 * tol and (away or (settled and enough)):
            break
        if drop <= 1e-10 and (away or (drop <= 1e-18 and not state.priced)):
            break  # the risk falls no more; in the first case coefficients run away
        mean = state.q @ state.losses
        new = None
        if not state.priced or mean - here > state.risk - mean:
            new = _search(problem, state, direction, drop, mu)
        if new is not None:
            states = [new]
        elif state.priced and mu > 1e-13:  # the steps have done what they can at this price
            path = [state.point]
            if ended is not None:  # the minimiser moves almost in proportion to the price
                pace = (state.point - ended[1]) / (mu - ended[0])
                path += [state.point - mu * pace, state.point - 0.9 * mu * pace]
            ended = (mu, state.point)
            mu *= 0.1
            states = [s for s in (problem.at(point, mu) for point in path) if s]
        else:
            break
        state = min(states, key=lambda s: s.value)
        best = _lowest(best, states)
        if settled and gap <= tol and not state.priced:
            break
    if not state.priced:
        best = _lowest(state, [best])
    separated = bool(away and drop < 1e-7 and problem.farthest(best.point) > 10)
    return best, bound, q, steps, separated, fixed + added


def _start(problem: _Problem) -> tuple[list, np.ndarray | None]:
    """Points to begin at, and a Hessian: those of a sample if there are many patients."""
    zero = np.zeros(problem.Z.shape[1])
    step = len(problem.Z) // SAMPLE
    sample = problem.thinned(step) if step > 1 else problem
    if sample is problem or not all(sample.event[part].any() for part in sample.parts):
        return [zero], None
    state, *_, separated, hessian = _solve(sample, [zero], None, 1e-4, 50)
    if separated or state.priced:
        return [zero, state.point], None
    return [state.point], hessian
