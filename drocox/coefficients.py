r"""The table of a linear model's coefficients, with standard errors where there are some.

They are those of a Cox regression, by the inverse of the observed information :math:`\sum_i
\delta_i \mathrm{Var}_{R_i}(x)`.
"""

import numpy as np
import pandas as pd
from scipy import stats

from drocox import kernels
from drocox.sample import Sample

FLAT = 1e-10  # share of the information below which a feature counts as constant
WORST_CONDITION = 1e12  # of an information matrix that is inverted


def standard_errors(sample: Sample, scores: np.ndarray) -> np.ndarray:
    r"""Square roots of the diagonal of the inverse information of a Cox regression.

    The information is the sum over events of the variance of the features in the risk set,

    .. math:: \sum_k h_k x_k x_k^T \sum_{i: k \in R_i} \frac{w_i \delta_i}{T_i}
              - \sum_i w_i \delta_i \bar x_i \bar x_i^T, \qquad T_i = \sum_{j \in R_i} h_j,\;
              \bar x_i = \sum_{j \in R_i} h_j x_j / T_i,\; h_j = w_j e^{f_j}.

    Parameters
    ----------
    sample : Sample
    scores : array of shape (n,)
        The regression's.

    Returns
    -------
    array of shape (n_features,)
        NaN for features without variance, and for all if one is a combination of others.
    """
    risk = sample.risk
    order = risk.order[0]
    X = sample.X[order] - sample.X.mean(axis=0)
    scale = np.abs(X).max(axis=0)
    scale[scale == 0] = 1.0
    X /= scale
    mass = sample.weights[order]
    events = mass * risk.event[0]
    hazard = mass * np.exp(scores[order] - scores.max())
    one_sum = np.zeros((1, len(order)), int)
    sets = (risk.stop, one_sum, one_sum, risk.begin)
    total = kernels.risk_sums(hazard[None], *sets)[0]
    share = np.divide(events, total, out=np.zeros_like(total), where=events > 0)
    received = hazard * kernels.risk_sums_back(share[None], *sets)[0]
    weighted = np.ascontiguousarray((hazard[:, None] * X).T)
    sums = kernels.risk_sums(weighted, *sets)  # (features, n)
    between = (sums * (share / np.where(total > 0, total, 1.0))) @ sums.T
    information = (X * received[:, None]).T @ X - between
    errors = np.full(len(scale), np.nan)
    varies = information.diagonal() > FLAT * max(received.sum(), 1e-300)
    inside = information[np.ix_(varies, varies)]
    if varies.any() and np.linalg.cond(inside) < WORST_CONDITION:
        errors[varies] = np.sqrt(np.linalg.inv(inside).diagonal()) / scale[varies]
    return errors


def coefficient_table(
    names: list[str], coef: np.ndarray, errors: np.ndarray | None = None
) -> pd.DataFrame:
    """Coefficients and hazard ratios, a row for each feature.

    Parameters
    ----------
    names : list of str
        Of the features.
    coef : array of shape (n_features,)
    errors : array of shape (n_features,), optional
        Standard errors, for tests against 0 and 95 % intervals.

    Returns
    -------
    DataFrame
    """
    with np.errstate(over="ignore"):
        ratios = np.exp(coef)
    columns = {"coefficient": coef, "hazard_ratio": ratios}
    if errors is not None:
        z = coef / errors
        reach = stats.norm.ppf(0.975) * errors
        columns |= {"standard_error": errors, "z": z, "p": 2 * stats.norm.sf(np.abs(z))}
        columns |= {"low": coef - reach, "high": coef + reach}
    return pd.DataFrame(columns, index=pd.Index(names, name="feature"))
