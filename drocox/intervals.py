r"""Intervals: the jackknife's standard errors, and critical values for several estimates at once.

From the values :math:`\hat\vartheta_{(-i)}` of an estimate without each of n patients (or folds),

.. math:: \widehat{\mathrm{Var}}(\hat\vartheta) = \frac{n-1}{n} \sum_i
          \big(\hat\vartheta_{(-i)} - \bar\vartheta\big)^2 .
"""

import numpy as np
from scipy import stats

DRAWS = 20_000  # of the largest of several errors


def spread(without: np.ndarray) -> tuple[np.ndarray, float]:
    """Jackknife covariance of several estimates, and its degrees of freedom.

    Parameters
    ----------
    without : array of shape (n, k)
        The k estimates without each patient in turn.

    Returns
    -------
    covariance, df : array of shape (k, k), float
        The degrees of freedom are those of as many equal squares as the n unequal ones are worth.
    """
    apart = without - without.mean(axis=0)
    squares = apart**2
    size = squares.sum(axis=0)
    worth = np.divide(size**2, (squares**2).sum(axis=0), np.full(len(size), 2.0), where=size > 0)
    return (1 - 1 / len(apart)) * apart.T @ apart, max(1.0, worth.min() - 1)


def simultaneous(covariance: np.ndarray, df: float) -> tuple[float, float]:
    r"""Critical value for several estimates at once, and how large the largest error is.

    Parameters
    ----------
    covariance : array of shape (k, k)
        Of the k estimates.
    df : float
        Degrees of freedom of their standard errors.

    Returns
    -------
    critical, floor : float
        All k intervals, estimate ± critical × standard error, hold together with probability 95 %
        (Student's t for k = 1, else simulated with a fixed seed). The floor is the mean of
        :math:`\max_j |\epsilon_j|`: what is seen on average where nothing is.
    """
    error = np.sqrt(np.diag(covariance))
    if len(error) == 1:
        return float(stats.t.ppf(0.975, df)), float(np.sqrt(2 / np.pi) * error[0])
    rng = np.random.default_rng(0)
    size, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(size, 0)) @ axes.T  # the symmetric one is unique
    draws = rng.standard_normal((DRAWS, len(error))) @ root
    largest = np.abs(draws / np.where(error > 0, error, np.inf)).max(axis=1)
    largest /= np.sqrt(rng.chisquare(df, DRAWS) / df)
    return float(np.quantile(largest, 0.95)), float(np.abs(draws).max(axis=1).mean())
