r"""Intervals: the jackknife's standard errors, and critical values for several estimates at once.

From the values :math:`\hat\vartheta_{(-i)}` of an estimate without each of n patients (or folds),

.. math:: \widehat{\mathrm{Var}}(\hat\vartheta) = \frac{n-1}{n} \sum_i s_i, \qquad
          s_i = \big(\hat\vartheta_{(-i)} - \bar\vartheta\big)^2 .

Where few patients make up most of the sum, this variance is uncertain itself. As many equal squares
as the unequal ones are worth give the degrees of freedom of Student's t,

.. math:: \nu = \frac{(\sum_i s_i)^2}{\sum_i s_i^2} - 1 .
"""

import copy

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

DRAWS = 20_000  # of the largest of several errors
LEVEL = 0.95


def jackknife(without: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jackknife covariance of several estimates, and the degrees of freedom of each variance.

    Parameters
    ----------
    without : array of shape (n, k)
        The k estimates without each patient in turn.

    Returns
    -------
    covariance, df : arrays of shape (k, k) and (k,)
        An estimate that never moves has one degree of freedom.
    """
    apart = without - without.mean(axis=0)
    squares = apart**2
    total = squares.sum(axis=0)
    equal = np.full(len(total), 2.0)  # how many equal squares the unequal ones are worth
    np.divide(total**2, (squares**2).sum(axis=0), out=equal, where=total > 0)
    covariance = (1 - 1 / len(apart)) * apart.T @ apart
    return covariance, np.maximum(1.0, equal - 1)


def simultaneous(covariance: np.ndarray, df: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    r"""Critical values for several estimates at once, and how far noise alone takes each.

    With errors :math:`\epsilon \sim N(0, \Sigma)` and :math:`M = \max_j |\epsilon_j| / \sigma_j`,
    the critical value of estimate j is the 95 % quantile of

    .. math:: M \Big/ \sqrt{\chi^2_{\nu_j} / \nu_j} ,

    Student's t for one estimate. An estimate with few degrees of freedom widens its own interval;
    that of another one grows only because there is one more to be compared.

    Parameters
    ----------
    covariance : array of shape (k, k)
        Of the k estimates.
    df : float or array of shape (k,)
        Degrees of freedom of their standard errors.

    Returns
    -------
    critical, floor : arrays of shape (k,)
        All k intervals, estimate ± critical × standard error, hold together with probability 95 %
        (simulated with a fixed seed where k > 1). The floor is :math:`\sigma_j \, E M`: what is
        seen on average in the most striking of the estimates where nothing is.
    """
    error = np.sqrt(np.diag(covariance))
    df = np.broadcast_to(np.asarray(df, dtype=float), error.shape)
    if len(error) == 1:
        return stats.t.ppf((1 + LEVEL) / 2, df), np.sqrt(2 / np.pi) * error
    rng = np.random.default_rng(0)
    size, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(size, 0)) @ axes.T  # the symmetric one is unique
    draws = rng.standard_normal((DRAWS, len(error))) @ root
    largest = np.abs(draws / np.where(error > 0, error, np.inf)).max(axis=1)

    def quantile(df: float) -> float:
        same = copy.deepcopy(rng)  # the same draws for every df, so that none depends on another
        return np.quantile(largest / np.sqrt(same.chisquare(df, DRAWS) / df), LEVEL)

    distinct, which = np.unique(df, return_inverse=True)
    critical = np.array([quantile(value) for value in distinct])[which]
    return critical, error * largest.mean()
