r"""Breslow's baseline hazard of a fitted model, and the cumulative hazards of patients by it.

With case weights w and scores f, the baseline of a stratum rises at the time of each death i by
:math:`w_i / \sum_{j \in R_i} w_j e^{f_j}`. It is kept as logarithms, since scores may be far apart:
a patient's cumulative hazard is :math:`\exp(\log H_0(t) + f(x))`.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from drocox import _checks
from drocox.cox import cox_losses
from drocox.sample import Sample


@dataclass(frozen=True)
class Baseline:
    """The baseline hazard of each stratum, all on one grid of times."""

    grid: np.ndarray  # 0, then the training times in order
    log_hazards: np.ndarray  # (strata, times of the grid): logarithms of the cumulative hazard

    def cumulative_hazards(
        self, scores: np.ndarray, stratum: np.ndarray, times: np.ndarray
    ) -> np.ndarray:
        """Cumulative hazards of patients.

        Parameters
        ----------
        scores : array of shape (n,)
        stratum : int array of shape (n,)
            Number of each patient's stratum.
        times : array of shape (k,)
            From 0 to the last training time.

        Returns
        -------
        array of shape (n, k)
            Made in the memory that it takes, and no more.
        """
        times = _checks.numbers(times, "times", 1)
        last = self.grid[-1]
        if times.min() < 0 or times.max() > last:
            raise ValueError(
                f"times must lie between 0 and the last training time ({last:g}), beyond "
                "which no hazard is known; leave out the others"
            )
        at = np.searchsorted(self.grid, times, side="right") - 1
        baseline = self.log_hazards[:, at]
        hazards = baseline[stratum] if len(baseline) > 1 else np.repeat(baseline, len(scores), 0)
        hazards += scores[:, None]
        with np.errstate(over="ignore"):
            return np.exp(hazards, out=hazards)


def breslow_baseline(scores: np.ndarray, sample: Sample) -> Baseline:
    """The baseline hazard by which the training patients were expected to die as they did.

    Parameters
    ----------
    scores : array of shape (n,)
        Of the training patients.
    sample : Sample

    Returns
    -------
    Baseline
    """
    risk = sample.risk
    with_scores = torch.from_numpy(scores)
    # the loss of i is the logarithm of its sum over the risk set, less its score
    log_sums = (cox_losses(with_scores, risk, weights=sample.weights) + with_scores).numpy()
    grid = np.union1d(0.0, risk.time)
    log_hazards = []
    for low, high in pairwise(risk.bounds):
        positions = low + np.flatnonzero(risk.event[0, low:high])[::-1]  # earliest first
        died = risk.order[0][positions]
        with np.errstate(divide="ignore"):  # a weight of 0 is nobody
            steps = np.log(sample.weights[died]) - log_sums[died]
        log_steps = np.append(-np.inf, np.logaddexp.accumulate(steps))
        happened = np.searchsorted(risk.time[0][positions], grid, side="right")
        log_hazards.append(log_steps[happened])
    return Baseline(grid, np.array(log_hazards))
