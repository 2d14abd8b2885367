r"""Models of the study on many data sets, fitted to one half of the patients or to parts of it.

With the share :math:`s` of events in the half, DRO-COX with the sharp constant and :math:`\alpha =
s/2` protects a share of the *events*: below :math:`\pi_0 = s / (1 + \kappa^2)` the weights of the
events have a squared coefficient of variation of :math:`s/\alpha - 1`, whatever the censoring.

**Certified.** Every model minimises the mean loss or its worst case with a small ridge, so that a
minimum exists: Cox; DRO-COX in the :data:`FORMS`, and with a dose that changes the order of
patients; ridge Cox; Cox models that are told a group, by interactions with it or by giving it half
of the weight. Every penalty is chosen inside the half.

**By Adam**, as published: :mod:`drocox.beyond.by_adam`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import stats

from drocox.beyond.datasets import Patients
from drocox.beyond.group_models import by_group
from drocox.beyond.rival_methods import RIDGE_PENALTIES
from drocox.cox import cox_losses, risk_sets
from drocox.evaluation import scaled_features
from drocox.heldout import HeldOut, assign_folds
from drocox.heldout.slope import calibration_slope
from drocox.solver import Solution, minimise

FOLDS = 5  # of a cross-fit inside a half
RIDGE = 1e-6  # of every certified model: a minimum exists also where a feature separates
ROUNDED = 9  # decimals of scores, so that equal covariates have equal scores everywhere

# Names in the store
PLAIN = "Cox"
HALF = "DRO-COX, half of the events"
QUARTER = "DRO-COX, a quarter of the events"
DOSE = "DRO-COX, dose-matched"
GENTLE = "gentle DRO-COX"
HALF_SPLIT = "DRO-COX (SPLIT), half of the events"
RIDGE_COX = "ridge Cox"
CROSSED = "Cox, interactions with the attribute"
WEIGHTED = "Cox, groups of the attribute weighted equally"
CROSSED_WORST = "Cox, interactions with the worst group"
WEIGHTED_WORST = "Cox, worst group weighted equally"
ALONE = "Cox, worst group alone"

AGAINST = {  # the model that each one is compared with
    HALF: PLAIN,
    QUARTER: PLAIN,
    DOSE: PLAIN,
    GENTLE: PLAIN,
    HALF_SPLIT: PLAIN,
    RIDGE_COX: PLAIN,
    CROSSED: RIDGE_COX,
    WEIGHTED: RIDGE_COX,
    CROSSED_WORST: RIDGE_COX,
    WEIGHTED_WORST: RIDGE_COX,
    ALONE: RIDGE_COX,
}

# shares of the events that a matched dose may protect
DOSES = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
REORDERED = 0.9  # rank correlation with Cox up to which a dose changes the order

Scorer = Callable[[np.ndarray, Patients], np.ndarray]  # of scaled features, and the patients


class Key(NamedTuple):
    """What identifies a model of one half."""

    name: str
    attribute: str = ""  # for which it was fitted or chosen
    choice: str = ""  # the rule, of models by Adam
    start: int | None = None
    dealt: int | None = None


@dataclass(frozen=True)
class Model:
    """One model, with what it needs for predictions."""

    fitted: Patients  # to which it was fitted: they give medians, scales and the baseline hazard
    score: Scorer
    slope: float = np.nan  # of its held-out scores inside the half
    facts: dict[str, float] = field(default_factory=dict)
    again: Scorer | None = None  # of the same model, trained from weights that differ by rounding

    def scores(self, patients: Patients) -> np.ndarray:
        """Scores, equal for equal covariates."""
        return rounded(self.score(self.fitted.scaled(patients), patients))

    def moved(self, patients: Patients) -> float:
        """How far rounding moves a score of a model by Adam; NaN for certified ones."""
        if self.again is None:
            return np.nan
        X = self.fitted.scaled(patients)
        return float(np.abs(self.score(X, patients) - self.again(X, patients)).max())


def rounded(scores: np.ndarray) -> np.ndarray:
    """Scores, equal for equal covariates on every platform."""
    return np.round(scores, ROUNDED) + 0.0  # no negative zeros


def linear(coef: np.ndarray, features: Scorer = lambda X, patients: X) -> Scorer:
    """Scores of a linear model of the scaled features, or of others made of them."""
    return lambda X, patients: features(X, patients) @ coef


# Cox and DRO-COX ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """Certified DRO-COX that protects a share of the events, or of all patients; or Cox."""

    share: float
    of_events: bool = True
    split: bool = False  # whether the losses are those of sample splitting

    def fit(self, X: np.ndarray, patients: Patients, seed: int) -> Solution:
        """The optimum for scaled features; the seed draws the halves of sample splitting."""
        event = patients.data.event
        return minimise(
            X,
            patients.risk,
            self.share * event.mean() if self.of_events else self.share,
            rule="sharp",
            first=assign_folds(event, 2, seed) == 0 if self.split else None,
            penalty=RIDGE,
        )

    def protected(self, patients: Patients) -> float:
        """The protected share, divided by the share of events."""
        return self.share if self.of_events else self.share / patients.data.event.mean()


COX = Form(1.0, of_events=False)
FORMS = {
    PLAIN: COX,
    HALF: Form(1 / 2),
    QUARTER: Form(1 / 4),
    GENTLE: Form(1 / 2, of_events=False),
    HALF_SPLIT: Form(1 / 2, split=True),
}


def rank_correlation(scores: np.ndarray, others: np.ndarray) -> float:
    """Spearman's rank correlation; NaN if either is constant."""
    ranks = [stats.rankdata(np.round(one, ROUNDED)) for one in (scores, others)]
    if min(np.ptp(one) for one in ranks) == 0:
        return np.nan
    return float(np.corrcoef(ranks)[0, 1])


def matched_dose(patients: Patients, seed: int) -> Form:
    """DRO-COX with the largest share of the events at which it reorders the patients.

    If it reorders them at none, the share with the lowest rank correlation. Constant scores do not
    count as an order; if all are constant, the largest share.
    """
    X = scaled_features(patients.data)[0]
    of_cox = X @ COX.fit(X, patients, seed).coef
    found = {}
    for form in map(Form, DOSES):
        found[form] = rank_correlation(X @ form.fit(X, patients, seed).coef, of_cox)
        if found[form] <= REORDERED:
            return form
    return min(found, key=lambda form: np.nan_to_num(found[form], nan=2.0))


def slope_of(held: HeldOut) -> float:
    """A slope that scores can be multiplied by: unknown is 1, a reversed order a constant."""
    slope = calibration_slope(held.scores, held.time, held.event, held.fold)[0]
    return max(0.0, slope) if np.isfinite(slope) else 1.0


# Models with a ridge penalty, told a group or not ------------------------------------------------


def ridge(
    X: np.ndarray, patients: Patients, weights: np.ndarray, seed: int
) -> tuple[Solution, float]:
    """Weighted Cox with the ridge penalty that has the least cross-validated loss."""
    data = patients.data
    fold = assign_folds(data.event, FOLDS, seed)
    losses = np.zeros(len(RIDGE_PENALTIES))
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        outcomes = risk_sets(data.time[train], data.event[train])
        held_out = risk_sets(data.time[test], data.event[test])
        for j, penalty in enumerate(RIDGE_PENALTIES):
            coef = _weighted(X[train], outcomes, data.event[train], weights[train], penalty).coef
            of_each = cox_losses(X[test] @ coef, held_out, weights=weights[test])
            losses[j] += weights[test] @ of_each.numpy()
    best = RIDGE_PENALTIES[int(losses.argmin())]
    return _weighted(X, patients.risk, data.event, weights, best), best


def _weighted(X, outcomes, event, weights, penalty) -> Solution:
    per_event = penalty * np.average(event, weights=weights)
    return minimise(X, outcomes, 1.0, weights=weights, penalty=RIDGE + per_event)


def balanced(event: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Weights that give the events of both groups the same total; -1 is no group, with weight 1."""
    weights = np.ones(len(event))
    known = event & (codes >= 0)
    for code in (0, 1):
        events = (known & (codes == code)).sum()
        if events:
            weights[codes == code] = known.sum() / (2 * events)
    return weights


def ridge_cox(patients: Patients, seed: int) -> Model:
    """Cox with a ridge penalty; of one group's members, what features could give them alone."""
    X = scaled_features(patients.data)[0]
    found, penalty = ridge(X, patients, np.ones(len(patients)), seed)
    return Model(patients, linear(found.coef), facts=_of_ridge(found, penalty))


def told(patients: Patients, codes: Callable, seed: int) -> tuple[Model, Model]:
    """Cox models that are told two groups: by interactions, and by equal weights.

    ``codes`` is a function of patients; 1 is the group that gets its own coefficients.
    """
    X = scaled_features(patients.data)[0]

    def crossed(X, some: Patients) -> np.ndarray:
        return by_group(X, (codes(some) == 1)[None])

    found, penalty = ridge(crossed(X, patients), patients, np.ones(len(patients)), seed)
    first = Model(patients, linear(found.coef, crossed), facts=_of_ridge(found, penalty))
    weights = balanced(patients.data.event, codes(patients))
    found, penalty = ridge(X, patients, weights, seed)
    return first, Model(patients, linear(found.coef), facts=_of_ridge(found, penalty))


def _of_ridge(found: Solution, penalty: float) -> dict[str, float]:
    return {"certificate": found.gap, "penalty": penalty}
