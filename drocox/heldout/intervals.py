r"""Jackknife standard errors, and critical values of simultaneous intervals.

From the leave-one-out values :math:`\hat\vartheta_{(-i)}` of an estimate (without each of n
patients or folds),

.. math:: \widehat{\mathrm{Var}}(\hat\vartheta) = \frac{n-1}{n} \sum_i s_i, \qquad
          s_i = \big(\hat\vartheta_{(-i)} - \bar\vartheta\big)^2 .

Where a few patients dominate the sum, the variance estimate itself is uncertain. Student's t then
has the effective degrees of freedom

.. math:: \nu = \frac{(\sum_i s_i)^2}{\sum_i s_i^2} - 1 ,

which is n - 1 if all squares are equal.
"""

import copy

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

DRAWS = 20_000  # simulated maxima of several errors
LEVEL = 0.95
ALIKE = "alike"
DIFFER = "differ"
CANNOT_TELL = "cannot tell"


def says(low: float, high: float, inside: tuple[float, float] | None = None) -> str:
    """What an interval says of a difference.

    It is small (``alike``) if the interval lies ``inside`` limits of what does not matter, and not
    0 (``differ``) if 0 lies outside the interval.
    """
    if inside is not None and inside[0] < low and high < inside[1]:
        return ALIKE
    return DIFFER if low > 0 or high < 0 else CANNOT_TELL


def wilson(share: ArrayLike, size: ArrayLike, critical: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score limits of a share among a number of patients, which need not be whole."""
    share, square = np.asarray(share), np.square(critical) / size
    centre = (share + square / 2) / (1 + square)
    half = np.sqrt(share * (1 - share) * square + square**2 / 4) / (1 + square)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def jackknife(without: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jackknife covariance (k, k) of k estimates, and the degrees of freedom of each variance.

    ``without`` (n, k) holds the leave-one-out values. An estimate that never changes has one
    degree of freedom.
    """
    apart = without - without.mean(axis=0)
    covariance = (1 - 1 / len(apart)) * (apart.T @ apart)
    squares = np.square(apart, out=apart)  # in place: it may be a large array
    total = squares.sum(axis=0)
    of_squares = np.square(squares, out=squares).sum(axis=0)
    equal = np.full(len(total), 2.0)  # effective number of squares
    np.divide(total**2, of_squares, out=equal, where=total > 0)
    return covariance, np.maximum(1.0, equal - 1)


def half_width(without: np.ndarray, df: float | None = None) -> float:
    """Half the width of the 95 % interval of one estimate, by its leave-one-out values (n,)."""
    covariance, by_jackknife = jackknife(without[:, None])
    critical, _ = simultaneous(covariance, by_jackknife if df is None else [df])
    return float(critical.item() * np.sqrt(covariance.item()))


def simultaneous(covariance: np.ndarray, df: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    r"""Critical values of simultaneous 95 % intervals, and the expected size of the largest error.

    With errors :math:`\epsilon \sim N(0, \Sigma)` and :math:`M = \max_j |\epsilon_j| / \sigma_j`,
    the critical value of estimate j is the 95 % quantile of

    .. math:: M \Big/ \sqrt{\chi^2_{\nu_j} / \nu_j} ,

    which is Student's t for one estimate and is simulated with a fixed seed for several. All
    intervals, estimate ± critical × standard error, cover together with probability 95 %. Few
    degrees of freedom widen the estimate's own interval only. The second array is the noise floor
    :math:`\sigma_j \, E M`: the size of the most extreme estimate to expect if all true values
    are 0.
    """
    error = np.sqrt(np.diag(covariance))
    df = np.broadcast_to(np.asarray(df, dtype=float), error.shape)
    if len(error) == 1:
        return special.stdtrit(df, (1 + LEVEL) / 2), np.sqrt(2 / np.pi) * error
    rng = np.random.default_rng(0)
    size, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(size, 0)) @ axes.T  # symmetric square root: unique
    draws = rng.standard_normal((DRAWS, len(error))) @ root
    largest = np.abs(draws / np.where(error > 0, error, np.inf)).max(axis=1)

    def quantile(df: float) -> float:
        same = copy.deepcopy(rng)  # the same draws for every df: estimates stay independent
        return np.quantile(largest / np.sqrt(same.chisquare(df, DRAWS) / df), LEVEL)

    distinct, which = np.unique(df, return_inverse=True)
    critical = np.array([quantile(value) for value in distinct])[which]
    return critical, error * largest.mean()
