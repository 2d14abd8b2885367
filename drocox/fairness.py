r"""Fairness metrics: individual, group, intersectional, and concordance imparity.

The first three look at predicted hazards only (Keya et al., 2021; the paper's Appendix B):

.. math:: F_I = \frac{1}{N(N-1)}\sum_{i<j} \big[|h_i-h_j| - \gamma\lVert\hat x_i-\hat x_j\rVert
          \big]_+, \quad F_G = \max_g |\bar h_g - \bar h|, \quad
          F_\cap = \max_{s,s'} \Big|\log\frac{\bar h_s}{\bar h_{s'}}\Big|.

They change when a constant is added to all scores, although no prediction does: to compare models,
pass ``exp(centred(scores, train_scores))``. Concordance imparity (Zhang & Weiss, 2022; Algorithm
B.1) is the largest difference between two groups' concordance fractions.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from drocox import _checks, concordance
from drocox.pairs import GAMMA, Pairs, all_pairs, cells, hinge_means


def centred(scores: ArrayLike, train_scores: ArrayLike) -> np.ndarray:
    r"""Scores minus the mean training score: :math:`f(x) - \frac1n\sum_i f(x_i)`.

    Parameters
    ----------
    scores, train_scores : arrays
        Scores of the patients to evaluate, and of the training part.

    Returns
    -------
    array of the shape of ``scores``
    """
    return _checks.numbers(scores, "scores") - _checks.numbers(train_scores, "train_scores").mean()


def _hazards(hazards: ArrayLike) -> np.ndarray:
    hazards = _checks.numbers(hazards, "hazards", 1)
    with np.errstate(over="ignore"):
        total = hazards.sum()
    if (hazards < 0).any() or not np.isfinite(total):
        raise ValueError("hazards holds negative values or overflows; pass exp(scores), centred")
    return hazards


def _means(hazards: np.ndarray, codes: np.ndarray, size: int, smoothing: bool) -> np.ndarray:
    """Mean hazard of each group, smoothed as (sum + 1/2)/(count + 1) or unsmoothed."""
    extra = 1.0 if smoothing else 0.0
    sums = np.bincount(codes, hazards, size)
    return (sums + extra / 2) / (np.bincount(codes, minlength=size) + extra)


def group_gap(hazards: np.ndarray, codes: np.ndarray, smoothing: bool = True) -> float:
    """Largest distance of a group mean to the mean of all; input is not checked."""
    return float(np.abs(_means(hazards, codes, 0, smoothing) - hazards.mean()).max())


def log_range(hazards: np.ndarray, cell: np.ndarray, size: int, smoothing: bool = True) -> float:
    """Largest log ratio of the means of two cells, of ``size`` in all; input is not checked."""
    return float(np.ptp(np.log(_means(hazards, cell, size, smoothing))))


def individual(hazards: ArrayLike, X: ArrayLike | Pairs, gamma: float = GAMMA) -> float:
    r"""Individual fairness :math:`F_I`; 0 exactly when the hazard is ``gamma``-Lipschitz on ``X``.

    Parameters
    ----------
    hazards : array of shape (n,)
        Predicted hazards, :math:`e^{f(x_i)}`.
    X : array of shape (n, d), or Pairs
        Scaled features, whose rows are normalised to unit length here; or
        :func:`drocox.regularizers.all_pairs` of them, prepared with a ``gamma`` of their own.
    gamma : float
        Difference of hazards allowed for each unit of distance.

    Returns
    -------
    float

    Examples
    --------
    >>> round(individual([1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], gamma=0.5), 6)  # (1 - 0.5 √2) / 2
    0.146447
    """
    if isinstance(X, Pairs) and gamma not in (GAMMA, X.gamma):
        raise ValueError(f"gamma is {gamma:g}, but the pairs have {X.gamma:g}; leave gamma out")
    pairs = X if isinstance(X, Pairs) else all_pairs(X, gamma, keep=False)
    hazards = _hazards(hazards)
    if len(hazards) != pairs.n:
        raise ValueError(
            f"lengths differ: hazards has {len(hazards)}, X has {pairs.n}; "
            "pass one hazard per patient"
        )
    return float(hinge_means(hazards[None], pairs)[0])


def group(hazards: ArrayLike, codes: ArrayLike, smoothing: bool = True) -> float:
    r"""Group fairness :math:`F_G = \max_g |\bar h_g - \bar h|`.

    Parameters
    ----------
    hazards, codes : arrays of shape (n,)
        Predicted hazards, and the group of each patient.
    smoothing : bool
        Group means are ``(sum + 1/2)/(count + 1)``, as in the released code; False: as printed.

    Returns
    -------
    float
    """
    hazards = _hazards(hazards)
    return group_gap(hazards, _checks.codes(codes, "codes", len(hazards)), smoothing)


def intersectional(hazards: ArrayLike, codes_2d: ArrayLike, smoothing: bool = True) -> float:
    r"""Intersectional fairness :math:`F_\cap`.

    Parameters
    ----------
    hazards : array of shape (n,)
        Predicted hazards.
    codes_2d : array of shape (n, J)
        Group of each patient by each of J attributes; subgroups are all cells of their product.
    smoothing : bool
        As in :func:`group`.

    Returns
    -------
    float
    """
    hazards = _hazards(hazards)
    cell, size = cells(codes_2d, len(hazards))
    if not smoothing and (np.bincount(cell, hazards, size) == 0).any():
        raise ValueError("hazards sum to 0 in a cell of codes_2d; use smoothing=True or merge it")
    return log_range(hazards, cell, size, smoothing)


def concordance_fractions(
    scores: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    groups: Mapping[str, ArrayLike],
    *,
    strata: ArrayLike | None = None,
) -> dict[str, np.ndarray]:
    """Concordance fraction of every group, for several attributes at once.

    Parameters
    ----------
    scores, time, event : arrays of shape (n,)
        Scores (higher for earlier events) and outcomes.
    groups : dict of str to array of shape (n,)
        Group of each patient by each attribute.
    strata : array of shape (n,), optional
        Stratum of each patient: only pairs within a stratum are compared.

    Returns
    -------
    dict of str to array of shape (G,)
        For each attribute the share of points that Algorithm B.1 gives its groups, in the order of
        their sorted codes.

    Examples
    --------
    >>> concordance_fractions([3, 2, 1, 4], [1, 2, 3, 4], [1, 1, 1, 1], {"sex": [0, 0, 1, 1]})
    {'sex': array([0.66666667, 0.33333333])}
    """
    counts = concordance.count(scores, time, event, strata=strata)
    return {name: counts.fractions(codes, name) for name, codes in groups.items()}


def concordance_imparity(
    scores: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    codes: ArrayLike,
    *,
    strata: ArrayLike | None = None,
) -> float:
    r"""Concordance imparity in percent, :math:`100 \max_{a, a'} |CF(a) - CF(a')|` (Algorithm B.1).

    Parameters
    ----------
    scores, time, event : arrays of shape (n,)
        Scores (higher for earlier events) and outcomes.
    codes : array of shape (n,)
        Group of each patient.
    strata : array of shape (n,), optional
        Stratum of each patient: only pairs within a stratum are compared.

    Returns
    -------
    float

    Examples
    --------
    >>> round(concordance_imparity([3, 2, 1, 4], [1, 2, 3, 4], [1, 1, 1, 1], [0, 0, 1, 1]), 4)
    33.3333
    """
    counts = concordance.count(scores, time, event, strata=strata)
    return 100 * float(np.ptp(counts.fractions(codes)))
