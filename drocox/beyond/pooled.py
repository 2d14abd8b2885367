r"""Random-effects meta-analysis of many data sets.

Data set :math:`k` has an estimate :math:`y_k` with a standard error :math:`\sigma_k`, and its own
true effect, drawn around a mean,

.. math:: y_k \sim N(\theta_k, \sigma_k^2), \qquad \theta_k \sim N(\mu, \tau^2) .

With :math:`w_k = 1 / (\sigma_k^2 + \tau^2)` and the weighted mean :math:`\bar y` the restricted
likelihood (REML) of :math:`\tau^2` is

.. math:: 2\,\ell(\tau^2) = \sum_k \log w_k - \log \sum_k w_k - \sum_k w_k (y_k - \bar y)^2 .

**Knapp and Hartung** estimate the precision of the mean from the residuals: :math:`q = \sum_k w_k
(y_k - \bar y)^2 / (K - 1)` and

.. math:: \widehat{\mathrm{Var}}(\hat\mu) = q / \sum_k w_k, \qquad \text{Student's } t_{K-1}.

Where residuals happen to be small this can be narrower than if all data sets had the same true
effect. To prevent this, an interval is the wider of this one and of the *fixed-effect* one,
:math:`\hat\mu \pm z\, \mathrm{se}_0` with :math:`\mathrm{se}_0^{-2} = \sum_k \sigma_k^{-2}`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from drocox.heldout.intervals import LEVEL

FEWEST = 3  # data sets that can be pooled


@dataclass(frozen=True)
class Pooled:
    """The mean effect of many data sets."""

    k: int  # data sets
    mean: float
    se: float  # by Knapp and Hartung
    fixed_se: float  # as if all data sets had one true effect
    tau2: float  # variance of the true effects

    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the mean."""
        upper = (1 + LEVEL) / 2
        half = max(stats.t.ppf(upper, self.k - 1) * self.se, stats.norm.ppf(upper) * self.fixed_se)
        return self.mean - half, self.mean + half


def pool(effect: ArrayLike, se: ArrayLike) -> Pooled:
    """Random-effects mean of one effect per data set, with standard errors above 0; at least three.

    >>> mean = pool([0.1, 0.3, 0.2, 0.4], [0.1, 0.1, 0.1, 0.1])
    >>> round(mean.mean, 3), round(mean.tau2, 4)
    (0.25, 0.0067)
    """
    effect, se = _checked(effect, se)
    tau2 = between_variance(effect, se)
    mean, weights = _mean(effect, se, tau2)
    k = len(effect)
    q = weights @ (effect - mean) ** 2 / (k - 1)
    return Pooled(
        k=k,
        mean=float(mean),
        se=float(np.sqrt(q / weights.sum())),
        fixed_se=float((1 / se**2).sum() ** -0.5),
        tau2=float(tau2),
    )


def _checked(effect: ArrayLike, se: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    effect = np.asarray(effect, dtype=float)
    se = np.asarray(se, dtype=float)
    if effect.ndim != 1 or effect.shape != se.shape or len(effect) < FEWEST:
        raise ValueError(
            f"effect and se have shapes {effect.shape} and {se.shape}; pass one of each for at "
            f"least {FEWEST} data sets"
        )
    if not (np.isfinite(effect).all() and np.isfinite(se).all() and (se > 0).all()):
        raise ValueError("effect and se must be finite and se above 0; leave other data sets out")
    return effect, se


def _mean(effect: np.ndarray, se: np.ndarray, tau2: float) -> tuple[float, np.ndarray]:
    """The weighted mean, and the weights."""
    weights = 1 / (se**2 + tau2)
    return weights @ effect / weights.sum(), weights


def between_variance(effect: np.ndarray, se: np.ndarray) -> float:
    r"""The :math:`\tau^2` that maximises the restricted likelihood, by Brent's search over tau."""

    def lost(tau: float) -> float:
        """Minus the restricted log likelihood, without constants."""
        mean, weights = _mean(effect, se, tau**2)
        squares = weights @ (effect - mean) ** 2
        return float(-0.5 * (np.log(weights).sum() - np.log(weights.sum()) - squares))

    # tau is at most the distance between the farthest effects
    found = optimize.minimize_scalar(
        lost, bounds=(0, np.ptp(effect)), method="bounded", options={"xatol": 1e-12}
    )
    return min(0.0, found.x**2, key=lambda tau2: lost(tau2**0.5))


def holm(p: ArrayLike) -> np.ndarray:
    """Holm's adjusted p-values, which control the family-wise error.

    >>> holm([0.04, 0.01, 0.03]).tolist()
    [0.06, 0.03, 0.06]
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    left = len(p) - np.arange(len(p))  # hypotheses that are not rejected before
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(left * p[order]))
    return adjusted
