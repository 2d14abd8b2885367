r"""Inverse-probability-of-censoring weights, with and without each patient.

With :math:`c_u` of :math:`N_u` patients censored at time u (those at risk, without the events at
u), the Kaplan-Meier curve of the censoring times is :math:`G(t) = \prod_{u \le t} (1 - c_u /
N_u)`, and an event at :math:`Y_i` has weight :math:`1 / G(Y_i)`: it represents similar patients who
were censored earlier. This is scikit-survival's ``CensoringDistributionEstimator``.

Leaving out patient k changes the curve. Each time u before :math:`Y_k` loses one patient at risk,
:math:`Y_k` loses a censoring if k was censored, and later times are unchanged:

.. math:: \log \frac{G_{(-k)}(t)}{G(t)} = \sum_{u \le t,\, u < Y_k} \log
          \frac{1 - c_u / (N_u - 1)}{1 - c_u / N_u} + 1\{t \ge Y_k\} \, (1 - \delta_k) \log
          \frac{1 - (c_{Y_k} - 1) / (N_{Y_k} - 1)}{1 - c_{Y_k} / N_{Y_k}} .

For :math:`t < Y_k` this does not depend on k, and for :math:`t \ge Y_k` not on t. So weighted sums
over patients have exact leave-one-out values in :math:`O(n \log n)`.
"""

from dataclasses import dataclass

import numpy as np

from drocox.curves import by_time, censoring_weights


@dataclass(frozen=True)
class Censoring:
    """Censoring weights of patients, and the factors by which leaving one out changes them."""

    rank: np.ndarray  # of each patient's time among the distinct times, from 0
    weight: np.ndarray  # 1 / G at each patient's time; 0 where G is 0
    without_later: np.ndarray  # factor on a patient's weight if one observed longer is left out
    without_self: np.ndarray  # factor on weights at or after a patient's time if they are left out

    def sum_without(
        self,
        terms: np.ndarray,
        power: int,
        lost_earlier: np.ndarray | float = 0.0,
        lost_tied: np.ndarray | float = 0.0,
    ) -> np.ndarray:
        """Leave-one-out values of a sum of ``terms``, each with a ``power`` of its weight in it.

        Besides the own term and the change of weights, leaving out a patient may lower the terms of
        others: ``lost_earlier`` is the loss of patients with earlier times (at weights already
        multiplied by ``without_later``), ``lost_tied`` that of other patients at the same time.
        """
        changed = np.bincount(self.rank, terms * self.without_later**power)
        before = np.cumsum(changed) - changed
        since = np.cumsum(np.bincount(self.rank, terms)[::-1])[::-1]
        rest = since[self.rank] - terms - lost_tied
        return before[self.rank] - lost_earlier + self.without_self**power * rest


def without_each(lost: np.ndarray, at_risk: np.ndarray) -> tuple[np.ndarray, ...]:
    """Logarithms of the steps of a Kaplan-Meier curve, and how they change without one patient.

    The second array is the change without a patient who stays, the third without one who is lost.
    Nothing changes at times without a loss, nor once the curve is at 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.log1p(-lost / np.maximum(at_risk, 1))
        without_one = np.log1p(-lost / np.maximum(at_risk - 1, 1)) - step
        without_loss = np.log1p(-(lost - 1) / np.maximum(at_risk - 1, 1)) - step
    changes = (lost > 0) & np.isfinite(step)
    return step, np.where(changes, without_one, 0.0), np.where(changes, without_loss, 0.0)


def censoring(time: np.ndarray, event: np.ndarray) -> Censoring:
    """Censoring weights by the Kaplan-Meier curve of the patients' own censoring times."""
    counts = by_time(time, event)
    rank = counts.rank
    _, without_one, without_loss = without_each(counts.censored, counts.at_risk - counts.events)
    until = np.cumsum(without_one)
    before = np.append(0.0, until[:-1])
    own = np.where(event, 0.0, without_loss[rank])
    with np.errstate(over="ignore"):
        without_later = np.exp(-until)[rank]
        without_self = np.exp(-(before[rank] + own))
    return Censoring(
        rank,
        censoring_weights(time, event, time),
        np.where(np.isfinite(without_later), without_later, 0.0),
        np.where(np.isfinite(without_self), without_self, 0.0),
    )
