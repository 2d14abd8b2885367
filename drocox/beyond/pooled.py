r"""Random-effects meta-analysis of many data sets.

Data set :math:`k` has an estimate :math:`y_k` with a standard error :math:`\sigma_k`, and its own
true effect, drawn around a mean,

.. math:: y_k \sim N(\theta_k, \sigma_k^2), \qquad \theta_k \sim N(x_k^T \beta, \tau^2),

where :math:`x_k = 1` (for the mean :math:`\mu`), or 1 and one moderator. With :math:`W =
\mathrm{diag}\,1 / (\sigma_k^2 + \tau^2)` and :math:`P = W - W X (X^T W X)^{-1} X^T W` the
restricted likelihood (REML) of :math:`\tau^2` is

.. math:: 2\,\ell(\tau^2) = \log\det W - \log\det X^T W X - y^T P y .

**Knapp and Hartung** estimate the precision of the mean from the residuals: :math:`q = y^T P y / (K
- p)` and

.. math:: \widehat{\mathrm{Var}}(\hat\beta) = q\, (X^T W X)^{-1}, \qquad \text{Student's } t_{K-p}.

Where residuals happen to be small this can be narrower than if all data sets had the same true
effect. To prevent this, an interval is the wider of this one and of the *fixed-effect* one,
:math:`\hat\beta \pm z\, \mathrm{se}_0` with :math:`\mathrm{se}_0^{-2} = \sum_k \sigma_k^{-2}`; a
p-value is the larger of both.

**The next data set.** Its true effect lies with probability 95 % in :math:`\hat\mu \pm t_{K-2}
\sqrt{\tau^2 + \mathrm{se}^2}`, the *prediction interval*.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

FEWEST = 3  # data sets that can be pooled
MOST_STEPS = 200  # of Fisher's scoring
SETTLED = 1e-10  # relative change of tau^2 at which it stops


@dataclass(frozen=True)
class Pooled:
    """The mean effect of many data sets, or a coefficient of a regression over them."""

    k: int  # data sets
    mean: float
    se: float  # by Knapp and Hartung
    fixed_se: float  # as if all data sets had one true effect
    df: int
    tau2: float  # variance of the true effects

    @property
    def p(self) -> float:
        """Two-sided p-value of the hypothesis that the mean is 0."""
        if self.mean == 0:
            return 1.0
        by_residuals = 2 * stats.t.sf(abs(self.mean) / self.se, self.df) if self.se > 0 else 0.0
        by_errors = 2 * stats.norm.sf(abs(self.mean) / self.fixed_se)
        return float(max(by_residuals, by_errors))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the mean."""
        upper = (1 + level) / 2
        half = max(stats.t.ppf(upper, self.df) * self.se, stats.norm.ppf(upper) * self.fixed_se)
        return self.mean - half, self.mean + half

    def prediction(self, level: float = 0.95) -> tuple[float, float]:
        """Prediction interval for the true effect on another data set."""
        error = np.sqrt(self.tau2 + max(self.se, self.fixed_se) ** 2)
        half = stats.t.ppf((1 + level) / 2, self.k - 2) * error
        return self.mean - half, self.mean + half

    def equivalent(self, margin: float) -> bool:
        """Whether the mean is within ±margin by two one-sided tests at 5 % (the 90 % interval)."""
        low, high = self.interval(0.9)
        return bool(-margin < low and high < margin)

    def lower_bound(self, level: float = 0.95) -> float:
        """Prediction bound that the next true effect exceeds with probability ``level``."""
        return self.prediction(2 * level - 1)[0]


def pool(effect: ArrayLike, se: ArrayLike) -> Pooled:
    """Random-effects mean of one effect per data set, with standard errors above 0; at least three.

    >>> mean = pool([0.1, 0.3, 0.2, 0.4], [0.1, 0.1, 0.1, 0.1])
    >>> round(mean.mean, 3), round(mean.tau2, 4)
    (0.25, 0.0067)
    """
    effect, se = _checked(effect, se)
    return _regression(effect, se, np.ones((len(effect), 1)))


def moderated(effect: ArrayLike, se: ArrayLike, moderator: ArrayLike) -> Pooled:
    """Change of an effect per standard deviation of one moderator, by meta-regression."""
    effect, se = _checked(effect, se)
    moderator = np.asarray(moderator, dtype=float)
    spread = moderator.std(ddof=1)
    if len(moderator) != len(effect) or len(effect) <= FEWEST or not spread > 0:
        raise ValueError("moderator must hold a number for each of at least four data sets, not "
                         "all the same; leave it out otherwise")  # fmt: skip
    standardised = (moderator - moderator.mean()) / spread
    return _regression(effect, se, np.column_stack([standardised, np.ones(len(effect))]))


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


def _coefficients(effect, weights, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted least squares: the coefficients, the inverse of X'WX, and P y."""
    WX = weights[:, None] * X
    inverse = np.linalg.inv(X.T @ WX)
    beta = inverse @ (WX.T @ effect)
    return beta, inverse, weights * (effect - X @ beta)


def restricted_likelihood(effect: np.ndarray, se: np.ndarray, X: np.ndarray, tau2: float) -> float:
    """Logarithm of the restricted likelihood, up to a constant."""
    weights = 1 / (se**2 + tau2)
    _, inverse, Py = _coefficients(effect, weights, X)
    log_det = np.log(weights).sum() + np.log(np.linalg.det(inverse))
    return float(0.5 * (log_det - effect @ Py))


def between_variance(effect: np.ndarray, se: np.ndarray, X: np.ndarray) -> float:
    r"""The :math:`\tau^2` that maximises the restricted likelihood, by Fisher scoring.

    The slope is :math:`\frac12 (y^T P P y - \mathrm{tr} P)`, its information :math:`\frac12
    \mathrm{tr} P P`; steps below 0 are cut off there, and steps that lose likelihood are halved.
    """
    unit = np.median(se) ** 2
    # from the variance of the residuals, and from 0: the better of both ends
    starts = (max(0.0, np.var(effect, ddof=1) - np.mean(se**2)), 0.0)
    ends = [_scored(effect, se, X, start, unit) for start in starts]
    return max(ends, key=lambda tau2: restricted_likelihood(effect, se, X, tau2))


def _scored(effect, se, X, tau2: float, unit: float) -> float:
    value = restricted_likelihood(effect, se, X, tau2)
    for _ in range(MOST_STEPS):
        weights = 1 / (se**2 + tau2)
        _, inverse, Py = _coefficients(effect, weights, X)
        second = inverse @ (X.T @ (weights[:, None] ** 2 * X))
        third = inverse @ (X.T @ (weights[:, None] ** 3 * X))
        trace = weights.sum() - np.trace(second)  # of P
        information = (weights**2).sum() - 2 * np.trace(third) + (second * second.T).sum()
        step = (Py @ Py - trace) / information
        while True:
            new = max(0.0, tau2 + step)
            new_value = restricted_likelihood(effect, se, X, new)
            if new_value >= value or abs(new - tau2) <= SETTLED * (tau2 + unit):
                break
            step /= 2
        change = abs(new - tau2)
        tau2 = new
        value = new_value
        if change <= SETTLED * (tau2 + unit):
            break
    return tau2


def _regression(effect: np.ndarray, se: np.ndarray, X: np.ndarray) -> Pooled:
    """The first coefficient of a random-effects regression."""
    k, columns = X.shape
    tau2 = between_variance(effect, se, X)
    weights = 1 / (se**2 + tau2)
    beta, inverse, Py = _coefficients(effect, weights, X)
    q = max(0.0, effect @ Py / (k - columns))
    _, fixed, _ = _coefficients(effect, 1 / se**2, X)
    return Pooled(
        k=k,
        mean=float(beta[0]),
        se=float(np.sqrt(q * inverse[0, 0])),
        fixed_se=float(np.sqrt(fixed[0, 0])),
        df=k - columns,
        tau2=float(tau2),
    )


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


@dataclass(frozen=True)
class Share:
    """A ratio of sums over data sets, with its jackknife error."""

    value: float
    se: float
    low: float
    high: float


def share_closed(of_cox: ArrayLike, of_dro: ArrayLike) -> Share:
    r"""The share of Cox's gaps that closes, with a jackknife interval over data sets (Student's t).

    .. math:: 1 - \frac{\sum_k \Delta^A_{\mathrm{Cox}} \Delta^B_{\mathrm{DRO}}}
                       {\sum_k \Delta^A_{\mathrm{Cox}} \Delta^B_{\mathrm{Cox}}} .

    The arguments are the products in the denominator and in the numerator. Because gaps are found
    on one half (A) and evaluated on the other (B), the choice of a direction does not bias them;
    noise of A enters numerator and denominator alike.
    """
    of_cox = np.asarray(of_cox, dtype=float)
    of_dro = np.asarray(of_dro, dtype=float)
    k = len(of_cox)
    value = 1 - of_dro.sum() / of_cox.sum()
    without = 1 - (of_dro.sum() - of_dro) / (of_cox.sum() - of_cox)
    se = np.sqrt((k - 1) / k * ((without - without.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, k - 1) * se
    return Share(float(value), float(se), float(value - half), float(value + half))
