r"""Weights that make up for patients lost to censoring, with and without each patient.

With :math:`c_u` of :math:`N_u` patients censored at time u (those at risk, without the events at
u), the curve of censoring is :math:`G(t) = \prod_{u \le t} (1 - c_u / N_u)`, and an event at
:math:`Y_i` has weight :math:`1 / G(Y_i)`: it stands for others like it who were lost before. All of
this is scikit-survival's ``CensoringDistributionEstimator``.

Without patient k the curve is another one. At a time u before :math:`Y_k` it loses one patient at
risk, at :math:`Y_k` the own censoring, later nothing:

.. math:: \log \frac{G_{(-k)}(t)}{G(t)} = \sum_{u \le t,\, u < Y_k} \log
          \frac{1 - c_u / (N_u - 1)}{1 - c_u / N_u} + 1\{t \ge Y_k\} \, (1 - \delta_k) \log
          \frac{1 - (c_{Y_k} - 1) / (N_{Y_k} - 1)}{1 - c_{Y_k} / N_{Y_k}} .

For :math:`t < Y_k` this does not depend on k, and for :math:`t \ge Y_k` not on t. So a weighted sum
over patients is known without each of them in turn, exactly and in :math:`O(n \log n)`.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Censoring:
    """Weights of patients, and the factors by which they change without one of them."""

    rank: np.ndarray  # of each patient's time among the distinct times, from 0
    weight: np.ndarray  # 1 / G at each patient's time; 0 where G is
    without_later: np.ndarray  # factor of a patient's weight without one who is observed longer
    without_self: np.ndarray  # factor of all weights from a patient's time on, without this patient

    def sum_without(
        self,
        terms: np.ndarray,
        power: int,
        lost_earlier: np.ndarray | float = 0.0,
        lost_tied: np.ndarray | float = 0.0,
    ) -> np.ndarray:
        """A sum of weighted terms, without each patient.

        Parameters
        ----------
        terms : array of shape (n,)
            Of each patient, weight included.
        power : int
            Of the weight in each term.
        lost_earlier : array of shape (n,), optional
            What the terms of patients with earlier times lose with each patient, by weights that
            are those ``without_later``.
        lost_tied : array of shape (n,), optional
            What the terms of others at a patient's time lose with this patient.

        Returns
        -------
        array of shape (n,)
        """
        changed = np.bincount(self.rank, terms * self.without_later**power)
        before = np.cumsum(changed) - changed
        since = np.cumsum(np.bincount(self.rank, terms)[::-1])[::-1]
        rest = since[self.rank] - terms - lost_tied
        return before[self.rank] - lost_earlier + self.without_self**power * rest


def censoring(time: np.ndarray, event: np.ndarray) -> Censoring:
    """Weights of patients by the curve of their censoring times.

    Parameters
    ----------
    time, event : arrays of shape (n,)

    Returns
    -------
    Censoring
    """
    rank = np.unique(time, return_inverse=True)[1]
    everybody = np.bincount(rank)
    events = np.bincount(rank, event)
    lost = everybody - events
    at_risk = np.cumsum(everybody[::-1])[::-1] - events
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.log1p(-lost / np.maximum(at_risk, 1))
        without_one = np.log1p(-lost / (at_risk - 1)) - step
        without_loss = np.log1p(-(lost - 1) / np.maximum(at_risk - 1, 1)) - step
        log_curve = np.cumsum(step)
        # times at which nobody is censored, and the last one, leave the curve alone
        without_one = np.where((lost > 0) & np.isfinite(step), without_one, 0.0)
        without_loss = np.where(np.isfinite(step), without_loss, 0.0)
        until = np.cumsum(without_one)
        before = np.append(0.0, until[:-1])
        own = np.where(event, 0.0, without_loss[rank])
        weight = np.exp(-log_curve)
        without_later = np.exp(-until)
        without_self = np.exp(-(before[rank] + own))
    return Censoring(
        rank,
        np.where(np.isfinite(weight), weight, 0.0)[rank],
        np.where(np.isfinite(without_later), without_later, 0.0)[rank],
        np.where(np.isfinite(without_self), without_self, 0.0),
    )
