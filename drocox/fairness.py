r"""Fairness metrics: individual, group, intersectional, their mean, and concordance imparity.

The first three look at predicted hazards only (Keya et al., 2021; the paper's Appendix B):

.. math:: F_I = \frac{1}{N(N-1)}\sum_{i<j} \big[|h_i-h_j| - \gamma\lVert\hat x_i-\hat x_j\rVert
          \big]_+, \quad F_G = \max_g |\bar h_g - \bar h|, \quad
          F_\cap = \max_{s,s'} \Big|\log\frac{\bar h_s}{\bar h_{s'}}\Big|,

and :math:`F_A = (F_I + F_G + F_\cap)/3`. They change when a constant is added to all scores,
although no prediction does; pass ``exp(centred(scores, train_scores))`` to compare models free of
that constant. Concordance imparity (Zhang & Weiss, 2022; Algorithm B.1) is the largest difference
between two groups' concordance fractions.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from drocox import _checks, regularizers
from drocox.regularizers import GAMMA, Pairs


def centred(scores, train_scores) -> np.ndarray:
    r"""Scores minus the mean training score: :math:`f(x) - \frac1n\sum_i f(x_i)`."""
    return _checks.numbers(scores, "scores") - _checks.numbers(train_scores, "train_scores").mean()


def _hazards(hazards) -> torch.Tensor:
    hazards = _checks.numbers(hazards, "hazards", 1)
    if (hazards < 0).any():
        raise ValueError("hazards holds negative values; pass exp(scores)")
    return torch.from_numpy(hazards)


def individual(hazards, X, gamma: float = GAMMA) -> float:
    r"""Individual fairness :math:`F_I`; 0 exactly when the hazard is ``gamma``-Lipschitz on ``X``.

    Parameters
    ----------
    hazards : array of shape (n,)
        Predicted hazards :math:`e^{f(x_i)}`.
    X : array of shape (n, d), or Pairs
        Scaled features, whose rows are normalised to unit length here; or the prepared
        :func:`drocox.regularizers.all_pairs`.
    gamma : float
        Lipschitz constant.

    Examples
    --------
    >>> individual([1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], gamma=0.5) == (1 - 0.5 * 2 ** 0.5) / 2
    True
    """
    pairs = X if isinstance(X, Pairs) else regularizers.all_pairs(X, gamma)
    return float(regularizers.hinge_penalty(_hazards(hazards), pairs))


def group(hazards, codes, smoothing: bool = True) -> float:
    r"""Group fairness :math:`F_G = \max_g |\bar h_g - \bar h|`.

    Parameters
    ----------
    hazards : array of shape (n,)
    codes : array of shape (n,)
        Group label of each patient.
    smoothing : bool
        ``(sum + 1/2)/(count + 1)`` for group means, as in the released code; False: as printed.
    """
    return float(regularizers.group_keya(_hazards(hazards), codes, smoothing))


def intersectional(hazards, codes_2d, smoothing: bool = True) -> float:
    r"""Intersectional fairness :math:`F_\cap`, over all cells of the product of the columns.

    Parameters
    ----------
    hazards : array of shape (n,)
    codes_2d : array of shape (n, number of attributes)
    smoothing : bool
        As in :func:`group`.
    """
    return float(regularizers.intersectional_keya(_hazards(hazards), codes_2d, smoothing))


@njit(cache=True)
def _concordance_counts(f, time, event):
    """Numerator and denominator of Algorithm B.1, patient by patient (each pair serves both)."""
    n = len(f)
    above, below = np.zeros(n), np.zeros(n)
    for i in range(n):
        for j in range(i):
            if time[i] == time[j]:
                if not (event[i] or event[j]):
                    continue
                if event[i] and event[j]:
                    point = 1.0 if f[i] == f[j] else 0.5
                else:
                    died, lived = (i, j) if event[i] else (j, i)
                    point = 1.0 if f[died] > f[lived] else 0.5
            else:
                early, late = (i, j) if time[i] < time[j] else (j, i)
                if not event[early]:
                    continue
                point = 1.0 if f[early] > f[late] else (0.5 if f[early] == f[late] else 0.0)
            above[i] += point
            above[j] += point
            below[i] += 1.0
            below[j] += 1.0
    return above, below


def concordance_imparities(scores, time, event, groups: dict) -> dict[str, float]:
    """Concordance imparity in percent for several attributes, from one pass over the pairs."""
    scores = _checks.numbers(scores, "scores", 1)
    time, event = _checks.outcomes(time, event)
    _checks.same_length(scores=scores, time=time)
    above, below = _concordance_counts(scores, time, event)
    out = {}
    for name, codes in groups.items():
        codes = _checks.codes(codes, name, len(scores))
        pairs = np.bincount(codes, below)
        if (pairs == 0).any():
            raise ValueError(f"a group of {name} has no comparable pair, so its concordance "
                             "fraction does not exist; merge groups or use more patients")
        out[name] = 100 * float(np.ptp(np.bincount(codes, above) / pairs))
    return out


def concordance_imparity(scores, time, event, codes) -> float:
    r"""Concordance imparity in percent: the paper's Algorithm B.1.

    .. math:: CI = 100 \max_{a \ne a'} |CF(a) - CF(a')|

    Parameters
    ----------
    scores : array of shape (n,)
        Risk scores, higher for earlier events.
    time, event : arrays of shape (n,)
    codes : array of shape (n,)
        Group label of each patient.

    Examples
    --------
    >>> concordance_imparity([3.0, 2.0, 1.0, 4.0], [1, 2, 3, 4], [1, 1, 1, 1], [0, 0, 1, 1])
    33.33333333333333
    """
    return concordance_imparities(scores, time, event, {"codes": codes})["codes"]
