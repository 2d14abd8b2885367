r"""Fairness metrics: individual, group, intersectional, and concordance imparity.

The first three look at predicted hazards only (Keya et al., 2021; the paper's Appendix B):

.. math:: F_I = \frac{1}{N(N-1)}\sum_{i<j} \big[|h_i-h_j| - \gamma\lVert\hat x_i-\hat x_j\rVert
          \big]_+, \quad F_G = \max_g |\bar h_g - \bar h|, \quad
          F_\cap = \max_{s,s'} \Big|\log\frac{\bar h_s}{\bar h_{s'}}\Big|.

They change when a constant is added to all scores, although no prediction does: compare models by
``exp(centred(scores, train_scores))``. Concordance imparity (Zhang & Weiss, 2022; Algorithm B.1) is
the largest difference between two groups' concordance fractions.
"""

from __future__ import annotations

import numpy as np
import torch

from drocox import _checks, kernels, regularizers
from drocox.regularizers import GAMMA, Pairs


def centred(scores, train_scores) -> np.ndarray:
    r"""Scores minus the mean training score: :math:`f(x) - \frac1n\sum_i f(x_i)`."""
    return _checks.numbers(scores, "scores") - _checks.numbers(train_scores, "train_scores").mean()


def _tensor(hazards) -> torch.Tensor:
    return torch.from_numpy(_checks.numbers(hazards, "hazards", 1))


def individual(hazards, X, gamma: float = GAMMA) -> float:
    r"""Individual fairness :math:`F_I`; 0 exactly when the hazard is ``gamma``-Lipschitz on ``X``.

    ``hazards`` (n,) are predicted, :math:`e^{f(x_i)}`. ``X`` (n, d) holds scaled features, whose
    rows are normalised to unit length here; or it is :func:`drocox.regularizers.all_pairs` of them,
    prepared with a ``gamma`` of their own.

    >>> round(individual([1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], gamma=0.5), 6)  # (1 - 0.5 √2) / 2
    0.146447
    """
    if isinstance(X, Pairs) and gamma not in (GAMMA, X.gamma):
        raise ValueError(
            f"gamma is {gamma:g}, but the prepared pairs have {X.gamma:g}; leave it "
            "out or prepare the pairs with it"
        )
    pairs = X if isinstance(X, Pairs) else regularizers.all_pairs(X, gamma)
    return float(regularizers.hinge_penalty(_tensor(hazards), pairs))


def group(hazards, codes, smoothing: bool = True) -> float:
    r"""Group fairness :math:`F_G = \max_g |\bar h_g - \bar h|` of the groups ``codes`` (n,).

    ``smoothing``: ``(sum + 1/2)/(count + 1)`` for group means, as released; False: as printed.
    """
    return float(regularizers.group_keya(_tensor(hazards), codes, smoothing))


def intersectional(hazards, codes_2d, smoothing: bool = True) -> float:
    r"""Intersectional fairness :math:`F_\cap` of all cells of columns ``codes_2d`` (n, J)."""
    return float(regularizers.intersectional_keya(_tensor(hazards), codes_2d, smoothing))


def concordance_imparities(scores, time, event, groups: dict) -> dict[str, float]:
    """Concordance imparity in percent for several attributes, from one pass over the pairs."""
    scores = _checks.numbers(scores, "scores", 1)
    time, event = _checks.outcomes(time, event)
    _checks.same_length(scores=scores, time=time)
    above, below = kernels.concordance_counts(scores, time, event)
    out = {}
    for name, codes in groups.items():
        codes = _checks.codes(codes, name, len(scores))
        pairs = np.bincount(codes, below)
        if (pairs == 0).any():
            raise ValueError(
                f"a group of {name} has no comparable pair, so its concordance "
                "fraction does not exist; merge groups or use more patients"
            )
        out[name] = 100 * float(np.ptp(np.bincount(codes, above) / pairs))
    return out


def concordance_imparity(scores, time, event, codes) -> float:
    r"""Concordance imparity in percent, :math:`100 \max_{a, a'} |CF(a) - CF(a')|` (Algorithm B.1).

    ``scores`` (n,) are higher for earlier events; ``codes`` (n,) hold the group of each patient.

    >>> round(concordance_imparity([3, 2, 1, 4], [1, 2, 3, 4], [1, 1, 1, 1], [0, 0, 1, 1]), 4)
    33.3333
    """
    return concordance_imparities(scores, time, event, {"codes": codes})["codes"]
