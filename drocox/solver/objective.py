r"""The risk of a linear model at a point: value, gradient, Hessian and the certificate.

Patients are in the order of their :class:`~drocox.risksets.RiskSets`, features are those of
:mod:`drocox.solver.coordinates`, and a point :math:`u` stands for coefficients :math:`\theta = Bu`.
For weights :math:`q` of an adversary

.. math:: F_q(u) = \sum_i q_i \ell_i(u) + \tfrac\lambda2 \lVert Bu \rVert^2, \qquad
          \nabla F_q = \sum_j (e_j - o_j)\, z_j + \lambda B^T B u,

with *observed* events :math:`o_j = q_j \delta_j` and *expected* events :math:`e_j = w_j e^{f_j}
\sum_{i: j \in R_i} o_i / T_i` of patient :math:`j`, where :math:`T_i` is the sum of hazards in the
risk set of event :math:`i`. With :math:`m_i` the mean of the features in risk set :math:`i` the
Hessian is a weighted sum of the covariances in the risk sets,

.. math:: H = \sum_j e_j z_j z_j^T - \sum_i o_i m_i m_i^T + \lambda B^T B.

:mod:`drocox.solver.newton` derives a lower bound of all risks from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drocox import kernels
from drocox.compiled import njit
from drocox.dual import dual_constant, tail
from drocox.risksets import RiskSets, in_time_order
from drocox.solver.coordinates import BLOCK, Coordinates

Part = slice | np.ndarray  # all patients, or the mask of one half of a split

# Curvature in a direction is rounding if it is below this share of the largest curvature, or of the
# squared length of the longest feature row. F_q is then constant along it, so its slope must be
# rounding, too; a slope above LEAST_SLOPE leaves no bound.
FLAT_BY_LARGEST = 1e-13
FLAT_BY_FEATURES = 1e-16
LEAST_SLOPE = 1e-13
# Below this argument the series of omega is more accurate than its closed form.
SMALL_ARGUMENT = 1e-3
# A step is small if it changes no difference of two scores by more (0.1: hazard ratios by a tenth).
SMALL_MOVE = 0.1


@dataclass(frozen=True)
class WorstCase:
    """The worst case in one half of a split, or in all patients, without smoothing."""

    eta: float  # NaN for the rule "cvar"
    risk: float
    q: np.ndarray


@dataclass(frozen=True)
class Answer:
    """The adversary's weights for the losses of one half, and their derivative.

    For a small change of losses :math:`q_i` changes by ``response`` times the change, projected so
    that the sum of q stays 1 and, on the boundary of a chi-square ball, its length stays constant:
    ``moments`` is the number of these constraints, 1 or 2.
    """

    part: Part
    q: np.ndarray
    response: np.ndarray
    moments: int
    value: float  # q @ losses minus the smoothing term
    smoothed: bool  # whether smoothing changes q


@njit(cache=True)
def _risk_set_means(Z, hazard, total, stop, begin, rows, sums, p):
    """Mean features in the risk sets of the positions ``rows``, in ascending order.

    ``sums`` holds the running sums over the positions before ``p``; they continue from there and
    restart with each stratum. Returns the means and the new ``p``.
    """
    d = Z.shape[1]
    means = np.empty((len(rows), d))
    for k in range(len(rows)):
        i = rows[k]
        while p < stop[0, i]:
            if begin[0, p] == p:
                sums[:] = 0.0
            for j in range(d):
                sums[j] += hazard[p] * Z[p, j]
            p += 1
        share = 1.0 / total[i]
        for j in range(d):
            means[k, j] = sums[j] * share
    return means, p


@njit(cache=True)
def _weighted(rows, weights):
    """Rows times their weights."""
    n, d = rows.shape
    out = np.empty((n, d))
    for i in range(n):
        for j in range(d):
            out[i, j] = weights[i] * rows[i, j]
    return out


@njit(cache=True)
def _all_on_top(f, event, stop, enters, meets, begin):
    """Whether each event has the largest score among the patients it is compared with."""
    top = np.full(2, -np.inf)
    start = 0
    while start < len(f):
        end = stop[0, start]
        if begin[0, start] == start:
            top[:] = -np.inf
        for i in range(start, end):
            top[enters[0, i]] = max(top[enters[0, i]], f[i])
        for i in range(start, end):
            if event[i] and f[i] < top[meets[0, i]]:
                return False
        start = end
    return True


@dataclass(eq=False, repr=False)
class Problem:
    """Patients, penalty and adversary: everything that does not depend on the coefficients."""

    coordinates: Coordinates
    risk_sets: RiskSets
    weights: np.ndarray  # of cases, in the order of the risk sets
    first: np.ndarray | None  # mask of D1, in the same order
    alpha: float
    rule: str
    penalty: float = 0.0

    def __post_init__(self) -> None:
        risk = self.risk_sets
        back = self.coordinates.back
        self.Z = self.coordinates.Z
        self.ridge = self.penalty * back.T @ back  # lambda B^T B
        self.event = risk.event[0] & (self.weights > 0)  # rows with weight 0 are ignored
        self.censored = ~self.event
        self.split = self.first is not None
        half = np.zeros(len(self.weights), int)
        other = half
        self.parts: list[Part] = [slice(None)]
        if self.first is not None:
            half = np.where(self.first, 0, 1)
            other = 1 - half
            self.parts = [self.first, ~self.first]
        self.sets = (risk.stop, half[None], other[None], risk.begin)
        if not all(self.event[part].any() for part in self.parts):
            if self.split:
                raise ValueError("first: one half has no event; put an event into each half")
            raise ValueError("no event has a weight above 0; give some event a positive weight")
        self.mass = self.weights.copy()  # p
        for part in self.parts:
            self.mass[part] /= self.mass[part].sum()
        self.radius = np.sqrt(np.einsum("ij,ij->i", self.Z, self.Z).max())
        self.tail = self.rule == "cvar" and self.alpha < 1  # at alpha=1 the ball of C = 1
        self.c = None
        self.cap = 1 / self.alpha  # the largest q_i / p_i there can be
        if not self.tail:
            self.c = dual_constant(self.alpha, rule="sharp" if self.alpha == 1 else self.rule)
            self.cap = self.c**2

    def thinned(self, step: int) -> "Problem":
        """The same problem for every ``step``-th patient."""
        risk = self.risk_sets
        time = risk.time[:, ::step]
        event = risk.event[:, ::step]
        order = np.arange(time.shape[1])[None]  # already in time order
        time, event, stop, begin = in_time_order(time, event, risk.begin[0, ::step], order)
        return Problem(
            Coordinates(self.Z[::step].copy(), self.coordinates.back),
            RiskSets(order, stop, event, time, begin),
            self.weights[::step].copy(),
            None if self.first is None else self.first[::step].copy(),
            self.alpha,
            self.rule,
            self.penalty,
        )

    def farthest(self, step: np.ndarray) -> float:
        """Largest change of a difference of two scores by a step; an upper bound if small."""
        most = 2 * self.radius * np.linalg.norm(step)
        return most if most < SMALL_MOVE else np.ptp(self.Z @ step)

    def at(self, point: np.ndarray) -> "Losses | None":
        """The losses at a point; None if hazards leave the floating-point range."""
        f = self.Z @ point
        f -= f.max()
        return Losses(self, point, f) if f.min() > -kernels.SAFE_SPREAD else None

    def at_null(self) -> "Losses":
        """The losses of the null model, whose scores are all 0."""
        n, r = self.Z.shape
        return Losses(self, np.zeros(r), np.zeros(n))

    def worst_case(self, losses: np.ndarray, mass: np.ndarray) -> WorstCase:
        """The worst case in one half, without smoothing."""
        if self.tail:
            q = tail(losses, self.alpha, mass)
            return WorstCase(np.nan, q @ losses, q)
        if self.c == 1:  # a ball of one point
            return WorstCase(-np.inf, mass @ losses, mass)
        (eta,), (risk,), (q,) = kernels.worst_cases(losses[None], mass, np.array([self.c]))
        return WorstCase(eta, risk, q)

    def lowest(self) -> tuple[float, np.ndarray]:
        """A lower bound of the risk that holds for any features, and the q that proves it.

        A loss is at least log w, its value if the hazards of all others at risk vanish.
        """
        least = np.log(np.where(self.event, self.weights, 1.0))
        q = self.mass.copy()
        if least.any():
            for part in self.parts:
                q[part] = self.worst_case(least[part], self.mass[part]).q
        return float(q @ least), q


class Losses:
    """Hazards and losses at one point, with scores ``f``."""

    def __init__(self, problem: Problem, point: np.ndarray, f: np.ndarray):
        self.problem = problem
        self.point = point
        self.scores = f
        self.hazard = np.exp(f)
        self.hazard *= problem.weights
        self.total = kernels.risk_sums(self.hazard[None], *problem.sets)[0]
        if problem.split:
            self.total += self.hazard
        self.total[problem.censored] = 1.0
        self.losses = np.log(self.total)
        self.losses -= f
        self.losses *= problem.event

    @cached_property
    def penalty(self) -> float:
        """The ridge penalty, which the risk includes."""
        return 0.5 * self.point @ self.problem.ridge @ self.point

    @cached_property
    def risk(self) -> float:
        """R: the worst case without smoothing, plus the penalty."""
        return sum(half.risk for half in self.worst_cases) + self.penalty

    @cached_property
    def worst_cases(self) -> list[WorstCase]:
        """The worst case in each half, without smoothing."""
        problem = self.problem
        return [problem.worst_case(self.losses[part], problem.mass[part]) for part in problem.parts]

    @property
    def separates(self) -> bool:
        """Whether each event has the largest score of its risk set.

        Then losses fall along the whole ray through the point, and no minimum is attained.
        """
        f = self.scores
        problem = self.problem
        return bool(_all_on_top(f, problem.event, *problem.sets) and np.ptp(f) > 0)

    def means(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Mean features in the risk sets of events at ascending positions, block by block."""
        problem = self.problem
        Z = problem.Z
        stop, half, _, begin = problem.sets
        block = 1 + BLOCK // Z.shape[1]
        for side in range(len(problem.parts)):
            hazard = self.hazard  # of the patients compared with
            mine = rows
            if problem.split:
                hazard = np.where(half[0] == 1 - side, hazard, 0.0)
                mine = rows[half[0, rows] == side]
            sums = np.zeros(Z.shape[1])
            reached = 0
            for low in range(0, len(mine), block):
                some = mine[low : low + block]
                means, reached = _risk_set_means(
                    Z, hazard, self.total, stop, begin, some, sums, reached
                )
                if problem.split:  # each patient is in their own risk set
                    means += (self.hazard[some] / self.total[some])[:, None] * Z[some]
                yield some, means


class Weighted:
    """F_q at a point, for weights q of the adversary."""

    def __init__(self, at: Losses, q: np.ndarray):
        self.at = at
        self.point = at.point
        self.q = q
        problem = at.problem
        self.observed = q * problem.event
        share = self.observed / at.total
        self.expected = at.hazard * kernels.risk_sums_back(share[None], *problem.sets)[0]
        if problem.split:
            self.expected += at.hazard * share
        self.gradient = (self.expected - self.observed) @ problem.Z + problem.ridge @ at.point

    @cached_property
    def value(self) -> float:
        """F_q."""
        return self.q @ self.at.losses + self.at.penalty

    @cached_property
    def hessian(self) -> np.ndarray:
        """H."""
        return self.hessians([])[0]

    def hessians(self, answers: list[Answer]) -> tuple[np.ndarray, np.ndarray]:
        """Hessian of F_q, and the term that the response of q to the losses adds."""
        at = self.at
        problem = at.problem
        n, d = problem.Z.shape
        response = np.zeros(n)
        kept = []  # directions of the losses to which q cannot respond (constraints on q)
        lengths = []  # their squared lengths
        for answer in answers:
            part = answer.part
            response[part] = answer.response
            if not answer.response.any():
                continue
            # 1 and the losses, made orthogonal
            losses = at.losses[part]
            level = losses - answer.response @ losses / answer.response.sum()
            for power in range(answer.moments):
                vector = np.zeros(n)
                vector[part] = answer.response * level**power
                kept.append(vector)
                lengths.append(vector[part] @ level**power)
        fixed = problem.ridge.copy()
        added = np.zeros((d, d))
        moved = np.zeros((len(kept), d))
        block = 1 + BLOCK // d
        for low in range(0, n, block):
            z = problem.Z[low : low + block]
            fixed += z.T @ _weighted(z, self.expected[low : low + block])
        # patients with q_i = 0 have no response, so the events with weight are enough
        for rows, means in at.means(np.flatnonzero(self.observed)):
            fixed -= means.T @ _weighted(means, self.observed[rows])
            if kept:
                means -= problem.Z[rows]  # the gradients of the losses
                added += means.T @ _weighted(means, response[rows])
                moved += [vector[rows] @ means for vector in kept]
        for vector, length in zip(moved, lengths, strict=True):
            added -= np.outer(vector, vector) / max(length, 1e-300)
        return fixed, added

    def bound(self) -> float:
        """The certificate: a lower bound of all risks; -inf if the gradient is too large."""
        radius = self.at.problem.radius
        curvature, vectors = np.linalg.eigh(self.hessian)
        slope = vectors.T @ self.gradient
        flat = max(FLAT_BY_LARGEST * curvature[-1], FLAT_BY_FEATURES * radius**2)
        steep = curvature > flat
        if np.abs(slope[~steep]).max(initial=0.0) > LEAST_SLOPE:
            return -np.inf
        square = (slope[steep] ** 2 / curvature[steep]).sum()  # lambda^2
        reach = 2 * radius / np.sqrt(curvature[steep].min(initial=np.inf))  # M, or more
        x = np.sqrt(square) * reach
        if x >= 1:
            return -np.inf
        # omega has terms x^k / (k (k - 1)); x^4 / 9 is more than all from x^4 / 12 on
        lost = square * (1 / 2 + x / 6 + x**2 / 9)
        if x >= SMALL_ARGUMENT:
            lost = (x + (1 - x) * np.log1p(-x)) / reach**2
        return self.value - lost


class Smoothed(Weighted):
    """The worst case at a point, smoothed by ``mu`` where it is not unique."""

    def __init__(self, at: Losses, mu: float):
        problem = at.problem
        worst_cases = [None] * len(problem.parts) if problem.tail else at.worst_cases
        self.answers = [
            _answer(at.losses[part], worst, problem, part, mu)
            for part, worst in zip(problem.parts, worst_cases, strict=True)
        ]
        q = np.empty(len(at.losses))
        for answer in self.answers:
            q[answer.part] = answer.q
        super().__init__(at, q)
        # what the steps minimise: the smoothed risk, penalty included
        self.minimised = at.penalty + sum(answer.value for answer in self.answers)
        self.smoothed = any(answer.smoothed for answer in self.answers)

    @cached_property
    def hessian_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """H, and the term that the adversary's response adds."""
        return self.hessians(self.answers)

    @cached_property
    def hessian(self) -> np.ndarray:
        """H."""
        return self.hessian_parts[0]


def _answer(
    losses: np.ndarray, worst: WorstCase | None, problem: Problem, part: Part, mu: float
) -> Answer:
    """The adversary's weights in one half: the worst case of a ball, or a smoothed worst case."""
    mass = problem.mass[part]
    cap = problem.cap
    if worst is not None:
        if cap == 1:  # the adversary has no choice
            return Answer(part, worst.q, np.zeros(len(mass)), 0, worst.risk, False)
        # q_i = p_i (loss_i - eta)_+ / width
        width = (worst.risk - worst.eta) / cap
        if width >= mu:
            value = worst.risk - 0.5 * mu * (cap - 1)
            return Answer(part, worst.q, mass * (worst.q > 0) / width, 2, value, False)
        cap = np.inf
    ratio, inside = smoothed_worst_case(losses, mass, mu, cap)
    q = mass * ratio
    value = q @ losses - 0.5 * mu * (q @ ratio - 1)
    return Answer(part, q, mass * inside / mu, 1, value, True)


def smoothed_worst_case(losses, mass, mu: float, cap: float) -> tuple[np.ndarray, np.ndarray]:
    r"""The q that maximises :math:`q^T \ell - \frac\mu2 \sum_i (q_i - p_i)^2 / p_i`.

    .. math:: q_i / p_i = \min\big((\ell_i - \eta)_+ / \mu,\ \text{cap}\big)

    with the :math:`\eta` for which q sums to 1. Returns these ratios and a mask of the patients
    strictly between 0 and ``cap``, whose weight changes with their loss.
    """
    below = losses - losses.max()  # relative to the largest: nearly tied losses keep their digits
    eta = kernels.smoothed_eta(below, mass, mu, cap)
    above = below - eta
    inside = (above > 0) & (above < mu * cap) & (mass > 0)
    ratio = np.where(above < mu * cap, 0.0, cap)
    if inside.any():
        left = mu * (1.0 - mass @ ratio)
        shift = (mass[inside] @ above[inside] - left) / mass[inside].sum()
        ratio[inside] = np.clip((above[inside] - shift) / mu, 0.0, cap)
    return ratio / (mass @ ratio), inside
