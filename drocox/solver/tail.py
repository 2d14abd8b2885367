r"""Steps for the conditional value at risk, whose kinks are where its minima are.

The mean of the worst share :math:`\alpha` has a kink wherever two losses tie at the edge of the
tail, and at a minimum about as many tie as there are features. A Newton step knows nothing of
kinks; so each step minimises a model that has them, in which only the losses are linear,

.. math:: \min_s\; \tfrac12 s^T H s + b^T s + \max_{q \in Q} \sum_i q_i (\ell_i + g_i^T s),

with the Hessian :math:`H` of :math:`F_q` at the last :math:`q`, slopes :math:`g_i` of the losses
and :math:`b` of the penalty. Near the minimum the steps converge quadratically, as those of
sequential quadratic programming do, and the model's :math:`q` proves it: :math:`\nabla F_q` is what
the model leaves out.

**The model's minimum** is found in two stages. For an adversary who pays :math:`\frac\mu2 \sum_i
(q_i - p_i)^2 / p_i` the model is smooth: Newton's steps with a falling price :math:`\mu` find out
who is above the edge of the tail and who is below, but for a few. Then an active set: with the
patients :math:`T` on the edge, all others at :math:`q_i = 0` or :math:`q_i = p_i / \alpha`,

.. math:: s = -H^{-1}\Big(b + \sum_i q_i g_i\Big), \qquad \ell_i + g_i^T s = \eta \quad (i \in T),
          \qquad \sum_i q_i = 1

are linear equations. Whose weight would leave its range leaves :math:`T`; who is on the wrong side
of :math:`\eta` enters; each change makes the dual value larger, and in the end there is none. All
who are censored have loss 0 and slope 0, so those of a half stand as one, and one weight is theirs.
Neither stage computes an exponential or passes over risk sets.
"""

from dataclasses import dataclass

import numpy as np

from drocox import kernels
from drocox.solver.objective import Losses, priced_worst_case

FIRST_PRICE = 0.1  # in units of loss over cap: losses this far apart share the edge of the tail
PRICE_FACTOR = 0.1  # from one price to the next
LEAST_PRICE = 1e-9  # below it the active set takes over, however many are on the edge
PRICED_STEPS = 20  # at one price; a handful is usual
# A price is done with when a step promises less than this share of what the price may cost.
PRICED_DROP = 1e-2
# The edge of the tail is this wide in the active set, in units of loss, so that the equations have
# one solution where patients are alike; the rounding of losses is of this size.
WIDTH = 1e-13
WRONG_SIDE = 1e-12  # losses this far on the wrong side of eta are to be moved
ENTERING = 5  # patients on the wrong side who enter at a time


@dataclass(frozen=True)
class ModelMinimum:
    """Where the model of a risk is smallest."""

    step: np.ndarray  # s
    q: np.ndarray  # the adversary's answer there
    drop: float  # how much smaller the model is than at 0


class Model:
    """The risk around a point, losses taken as linear.

    Parameters
    ----------
    at : Losses
    """

    def __init__(self, at: Losses):
        self.problem = at.problem
        self.linear = at.problem.ridge @ at.point
        event = at.problem.event
        self.rows = np.flatnonzero(event)
        # which sum of q each patient belongs to: 0 and 1 are the halves of a split
        half = np.zeros(len(event), int)
        if at.problem.first is not None:
            half = np.where(at.problem.first, 0, 1)
        halves = np.arange(len(at.problem.parts))
        # events, then the censored of each half as one
        self.place = np.where(event, 0, len(self.rows) + half)
        self.place[self.rows] = np.arange(len(self.rows))
        self.half = np.append(half[self.rows], halves)
        self.parts = [self.half == h for h in halves]
        self.mass = np.bincount(self.place, at.problem.mass, len(self.half))
        self.losses = np.append(at.losses[self.rows], np.zeros(len(halves)))
        nothing = np.zeros((len(halves), len(at.point)))
        self.slopes = np.vstack([at.slopes(self.rows), nothing])

    def minimum(self, hessian: np.ndarray, first_price: float) -> ModelMinimum:
        """Its minimum for a curvature, by prices that fall from ``first_price`` and an active set.

        Parameters
        ----------
        hessian : array of shape (r, r)
            H, positive definite.
        first_price : float
            In units of loss.

        Returns
        -------
        ModelMinimum
        """
        few = 10 + 3 * len(hessian)
        step = np.zeros(len(hessian))
        price = max(first_price, LEAST_PRICE)
        while True:
            step, q, inside = self._priced_steps(step, hessian, price / self.problem.cap)
            if price <= LEAST_PRICE or inside.sum() <= few:
                break
            price *= PRICE_FACTOR
        step, q = self._active_set(q, inside, hessian)
        after = self._worst(self.losses + self.slopes @ step)
        quadratic = 0.5 * step @ hessian @ step + self.linear @ step
        drop = self._worst(self.losses) - after - quadratic
        return ModelMinimum(step, self._everybodys(q), drop)

    def _worst(self, losses: np.ndarray) -> float:
        """The adversary's largest mean of losses; the sum over halves."""
        alpha = self.problem.alpha
        return sum(kernels.tail_mean(losses[part], self.mass[part], alpha) for part in self.parts)

    def _everybodys(self, q: np.ndarray) -> np.ndarray:
        """Weights of all patients: the censored of a half share theirs by mass."""
        share = np.zeros(len(q))
        np.divide(q, self.mass, out=share, where=self.mass > 0)
        return self.problem.mass * share[self.place]

    # The first stage: a smooth model

    def _smooth(self, step: np.ndarray, hessian: np.ndarray, mu: float) -> tuple:
        """Value and gradient of the model at a price; q, and who is inside the edge of the tail."""
        losses = self.losses + self.slopes @ step
        value = 0.5 * step @ hessian @ step + self.linear @ step
        q = np.empty(len(losses))
        inside = np.empty(len(losses), bool)
        for part in self.parts:
            mass = self.mass[part]
            ratio, inside[part] = priced_worst_case(losses[part], mass, mu, self.problem.cap)
            q[part] = mass * ratio
            value += q[part] @ losses[part] - 0.5 * mu * (q[part] @ ratio - 1)
        gradient = hessian @ step + self.linear + q @ self.slopes
        return value, gradient, q, inside

    def _response(self, inside: np.ndarray, mu: float) -> np.ndarray:
        """What the response of q adds to the Hessian: covariances of slopes inside the edge."""
        added = np.zeros_like(self.problem.ridge)
        for part in self.parts:
            who = np.flatnonzero(inside & part)
            if len(who):
                mass = self.mass[who]
                slopes = self.slopes[who]
                slopes = slopes - mass @ slopes / mass.sum()
                added += slopes.T @ (mass[:, None] / mu * slopes)
        return added

    def _priced_steps(self, step, hessian, mu: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Newton's steps at one price, halved until they gain; returns the step, q, the inside."""
        value, gradient, q, inside = self._smooth(step, hessian, mu)
        for _ in range(PRICED_STEPS):
            direction = -np.linalg.solve(hessian + self._response(inside, mu), gradient)
            promised = -direction @ gradient
            if promised <= PRICED_DROP * mu:
                break
            size = 1.0
            while True:
                tried = step + size * direction
                new = self._smooth(tried, hessian, mu)
                if new[0] <= value - 1e-4 * size * promised or size < 1e-3:
                    break
                size *= 0.5
            step = tried
            value, gradient, q, inside = new
        return step, q, inside

    # The second stage: who is on the edge

    def _active_set(self, q, inside, hessian) -> tuple[np.ndarray, np.ndarray]:
        """The model's minimum, exact; from a feasible q and a guess of who is on the edge."""
        cap = self.problem.cap
        highest = self.mass * cap
        halves = np.arange(len(self.parts))
        inverse = np.linalg.inv(hessian)
        slopes = self.slopes
        q = np.clip(q, 0.0, highest)
        q[~inside & (q > 0.5 * highest)] = highest[~inside & (q > 0.5 * highest)]
        free = np.flatnonzero(inside & (highest > 0))
        for _ in range(20 * len(hessian) + 200):
            fixed = q.copy()
            fixed[free] = 0.0
            pull = self.linear + fixed @ slopes  # of those who are not on the edge
            mine = slopes[free]
            towards = mine @ inverse
            width = WIDTH / cap / self.mass[free]
            ones = (self.half[free][:, None] == halves[None]).astype(float)
            held = ones.any(axis=0)  # halves with somebody on the edge
            ones = ones[:, held]
            left = np.array([1 - fixed[part].sum() for part in self.parts])[held]
            matrix = np.block(
                [[towards @ mine.T + np.diag(width), ones], [ones.T, np.zeros((len(left),) * 2)]]
            )
            level = self.losses[free] - towards @ pull
            answer = np.linalg.solve(matrix, np.append(level, left))
            wanted = answer[: len(free)]
            eta = np.full(len(halves), np.nan)
            eta[held] = answer[len(free) :]
            change = wanted - q[free]
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(change > 0, highest[free] - q[free], q[free]) / np.abs(change)
            room[change == 0] = np.inf
            if len(free) and room.min() < 1:
                first = room.argmin()
                q[free] += room[first] * change
                q[free[first]] = highest[free[first]] if change[first] > 0 else 0.0
                free = np.delete(free, first)
                continue
            q[free] = wanted
            step = -inverse @ (pull + wanted @ mine)
            entering = self._wrong_side(self.losses + slopes @ step, eta, q, highest, free)
            if len(entering) == 0:
                break
            free = np.append(free, entering)
        else:
            step = -inverse @ (self.linear + q @ slopes)
        return step, q

    def _wrong_side(self, losses, eta, q, highest, free) -> np.ndarray:
        """Those at 0 whose losses are above eta, and those at most who are below, the worst."""
        wrong = np.full(len(losses), -np.inf)
        for part, level in zip(self.parts, eta, strict=True):
            mine = part & (highest > 0)
            out = mine & (q == 0)
            full = mine & (q == highest)
            if np.isnan(level):  # nobody is on the edge: is there a level between the two?
                level = 0.5 * (losses[out].max(initial=-np.inf) + losses[full].min(initial=np.inf))
            if np.isfinite(level):
                wrong[out] = losses[out] - level
                wrong[full] = level - losses[full]
        wrong[free] = -np.inf
        worst = np.argpartition(-wrong, min(ENTERING, len(wrong) - 1))[:ENTERING]
        return worst[wrong[worst] > WRONG_SIDE]
