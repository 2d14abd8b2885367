r"""Observed risk, AUC and Brier score at one horizon, with and without each patient.

With predicted risks :math:`r_i`, of the patients with an event up to the horizon t (cases, weight
:math:`1/G(Y_i)`) and those observed longer (controls),

.. math:: R = 1 - \prod_{u \le t} \Big(1 - \frac{d_u}{n_u}\Big) , \qquad
          \mathrm{AUC} = \frac{\sum_{i\,\text{case}} G(Y_i)^{-1} \sum_{j\,\text{control}}
          1\{f_i > f_j\}}{\sum_{i\,\text{case}} G(Y_i)^{-1} \sum_{j\,\text{control}} 1} , \qquad
          \mathrm{BS} = \frac1n \Big[\sum_{i\,\text{case}} \frac{(1 - r_i)^2}{G(Y_i)} +
          \sum_{j\,\text{control}} \frac{r_j^2}{G(t)}\Big] .

The observed risk R is one minus the Kaplan-Meier estimate, which also equals the estimate with
weights :math:`1/G`; AUC and Brier score equal scikit-survival's. G
(:mod:`drocox.heldout.censoring`) is estimated from the patients of the group, so censoring must be
random only within the group. Leave-one-out values are exact and include the change of G.
"""

import numpy as np
from scipy import special

from drocox import concordance
from drocox.curves import by_time, kaplan_meier, squared_errors
from drocox.heldout.censoring import Censoring, without_each
from drocox.heldout.intervals import LEVEL


def observed_risk(time: np.ndarray, event: np.ndarray, horizon: float) -> tuple[float, np.ndarray]:
    """Risk of an event up to the horizon by Kaplan and Meier, and its leave-one-out values.

    NaN if the horizon is beyond the last observed time.
    """
    if horizon > time.max():
        return np.nan, np.full(len(time), np.nan)
    counts = by_time(time, event)
    deaths = counts.events * (counts.time <= horizon)
    step, without_one, without_death = without_each(deaths, counts.at_risk)
    before = np.append(0.0, np.cumsum(without_one)[:-1])
    own = np.where(event, without_death[counts.rank], without_one[counts.rank])
    left = step.sum() + before[counts.rank] + own
    return 1 - kaplan_meier(time, event)(horizon), -np.expm1(left)


def risk_interval(time: np.ndarray, event: np.ndarray, horizon: float) -> tuple[float, float]:
    """95 % interval of the observed risk, by Greenwood's variance on the scale log(-log S).

    This is the usual interval of a Kaplan-Meier curve; with few survivors in a small group the
    jackknife has hardly any degrees of freedom. NaN if the horizon is beyond the last observed
    time, or if the risk is 0 or 1.
    """
    survival = 1 - observed_risk(time, event, horizon)[0]
    if not 0 < survival < 1:
        return np.nan, np.nan
    counts = by_time(time, event)
    survivors = np.maximum(counts.at_risk - counts.events, 1)
    terms = counts.events / (counts.at_risk * survivors)
    variance = terms[counts.time <= horizon].sum()
    half = special.ndtri((1 + LEVEL) / 2) * np.sqrt(variance) / np.log(survival)
    return 1 - survival ** np.exp(half), 1 - survival ** np.exp(-half)


def auc(
    scores: np.ndarray,
    time: np.ndarray,
    event: np.ndarray,
    fold: np.ndarray,
    weights: Censoring,
    horizon: float,
) -> tuple[float, np.ndarray]:
    """Share of (case, control) pairs within a fold in which the case has the higher score.

    Cases carry censoring weights; scores within 1e-8 are tied and count one half. Returns the
    value and its leave-one-out values; NaN without cases or controls.
    """
    case = event & (time <= horizon)
    control = time > horizon
    weight = np.where(case, weights.weight, 0.0)
    changed = weight * weights.without_later
    of_case = np.zeros((2, len(scores)))  # points and pairs of a case with controls
    of_control = np.zeros((2, len(scores)))  # of a control with cases, weighted
    for label in np.unique(fold[case]):
        rows = np.flatnonzero(fold == label)
        controls = control[rows].astype(float)
        of_case[0, rows] = concordance.weight_below(scores[rows], controls)
        of_case[1, rows] = controls.sum()
        cases = changed[rows]
        of_control[0, rows] = controls * (
            cases.sum() - concordance.weight_below(scores[rows], cases)
        )
        of_control[1, rows] = controls * cases.sum()
    terms = weight * of_case
    total = terms.sum(axis=1)
    lost = zip(terms, of_control, strict=True)
    without = [weights.sum_without(one, 1, with_cases) for one, with_cases in lost]
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is NaN: not defined
        return float(total[0] / total[1]), without[0] / without[1]


def weight_of_controls(
    weights: Censoring, time: np.ndarray, horizon: float
) -> tuple[float, np.ndarray]:
    """1 / G at the horizon, and the factor on it if each patient in turn is left out."""
    early = time <= horizon
    if not early.any():
        return 1.0, np.ones(len(time))
    last = np.argmax(np.where(early, time, -np.inf))
    changed = np.where(early, weights.without_self, weights.without_later[last])
    return weights.weight[last], changed


def brier_score(
    risk: np.ndarray, time: np.ndarray, event: np.ndarray, weights: Censoring, horizon: float
) -> tuple[float, np.ndarray]:
    """Mean squared difference of predicted risk and outcome at the horizon, with censoring weights.

    Returns the value and its leave-one-out values; NaN if nobody is observed beyond the horizon.
    """
    n = len(time)
    early = time <= horizon
    nothing = np.nan, np.full(n, np.nan)
    if early.all():
        return nothing
    weight, changed = weight_of_controls(weights, time, horizon)
    if not weight > 0:
        return nothing
    of_cases = np.where(event & early, weights.weight, 0.0)
    terms = squared_errors(1 - risk, of_cases, np.where(early, 0.0, weight))
    late = np.where(early, 0.0, terms)
    left = weights.sum_without(terms - late, 1) + changed * (late.sum() - late)
    return float(terms.mean()), left / max(n - 1, 1)
