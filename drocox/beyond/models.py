r"""Models of the study on many data sets, fitted to one half of the patients or to parts of it.

With the share :math:`s` of events in the half, DRO-COX with the sharp constant and :math:`\alpha =
s/2` protects a share of the *events*: below :math:`\pi_0 = s / (1 + \kappa^2)` the weights of the
events have a squared coefficient of variation of :math:`s/\alpha - 1`, whatever the censoring.

**Certified.** Every model minimises the mean loss or its worst case with a small ridge, so that a
minimum exists: Cox; DRO-COX in the :data:`FORMS`, and with a dose that changes the order of
patients; ridge Cox; Cox models that are told a group, by interactions with it or by giving it half
of the weight. Every penalty is chosen inside the half.

**As published.** Cox and DRO-COX, linear and with one hidden layer, by 500 steps of Adam over the
paper's grid, fitted to three quarters of the half and chosen on the last one by the paper's rule,
for each attribute, or by the c-index alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import stats

from drocox import concordance, training
from drocox.beyond.datasets import PRIMARY, Described, Patients, codes_of
from drocox.beyond.group_models import by_group
from drocox.beyond.rival_methods import PENALTIES
from drocox.cox import cox_losses, risk_sets
from drocox.dro import dual_constant
from drocox.evaluation import scaled_features
from drocox.heldout import HeldOut, assign_folds
from drocox.heldout.slope import calibration_slope
from drocox.paper.protocol import ALPHAS, HIDDEN, LEARNING_RATES
from drocox.paper.run import CHUNK, PERTURBATION
from drocox.solver import Solution, minimise
from drocox.tuning import choose, most_accurate

FOLDS = 5  # of a cross-fit inside a half
RIDGE = 1e-6  # of every certified model: a minimum exists also where a feature separates
ROUNDED = 9  # decimals of scores, so that equal covariates have equal scores everywhere
EXACT = 1e-12  # gap of an optimum whose digits do not depend on the platform

# Names in the store
PLAIN = "Cox"
HALF = "DRO-COX, half of the events"
QUARTER = "DRO-COX, a quarter of the events"
DOSE = "DRO-COX, dose-matched"
GENTLE = "gentle DRO-COX"
SPLIT = "DRO-COX (SPLIT), half of the events"
RIDGE_COX = "ridge Cox"
CROSSED = "Cox, interactions with the attribute"
WEIGHTED = "Cox, groups of the attribute weighted equally"
CROSSED_WORST = "Cox, interactions with the worst group"
WEIGHTED_WORST = "Cox, worst group weighted equally"
ALONE = "Cox, worst group alone"
ADAM = {"linear": "Cox, Adam", "nonlinear": "DeepSurv"}
PUBLISHED = {"linear": "DRO-COX, as published", "nonlinear": "Deep DRO-COX, as published"}
BY_C_INDEX = {"linear": "DRO-COX, Adam, by c-index", "nonlinear": "Deep DRO-COX, by c-index"}

AGAINST = {  # the model that each one is compared with
    HALF: PLAIN,
    QUARTER: PLAIN,
    DOSE: PLAIN,
    GENTLE: PLAIN,
    SPLIT: PLAIN,
    RIDGE_COX: PLAIN,
    PUBLISHED["linear"]: ADAM["linear"],
    BY_C_INDEX["linear"]: ADAM["linear"],
    PUBLISHED["nonlinear"]: ADAM["nonlinear"],
    BY_C_INDEX["nonlinear"]: ADAM["nonlinear"],
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
Key = tuple[str, str]  # name of a model, and the attribute for which it was fitted or ""


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
        X = scaled_features(self.fitted.data, patients.data)[1]
        return rounded(self.score(X, patients))

    def moved(self, patients: Patients) -> float:
        """How far rounding moves a score; NaN where neither training nor a certificate tells."""
        if self.again is None:
            return 0.0 if self.facts["certificate"] <= EXACT else np.nan
        X = scaled_features(self.fitted.data, patients.data)[1]
        return float(np.abs(self.score(X, patients) - self.again(X, patients)).max())


def rounded(scores: np.ndarray) -> np.ndarray:
    """Scores, equal for equal covariates on every platform."""
    return np.round(scores, ROUNDED) + 0.0  # no negative zeros


def linear(coef: np.ndarray, features: Scorer | None = None) -> Scorer:
    """Scores of a linear model of the scaled features, or of other ones."""
    if features is None:
        return lambda X, patients: X @ coef
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
    SPLIT: Form(1 / 2, split=True),
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
    losses = np.zeros(len(PENALTIES))
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        outcomes = risk_sets(data.time[train], data.event[train])
        held_out = risk_sets(data.time[test], data.event[test])
        for j, penalty in enumerate(PENALTIES):
            coef = _weighted(X[train], outcomes, data.event[train], weights[train], penalty).coef
            of_each = cox_losses(X[test] @ coef, held_out, weights=weights[test])
            losses[j] += weights[test] @ of_each.numpy()
    best = PENALTIES[int(losses.argmin())]
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


def told(patients: Patients, codes_of_patients: Callable, seed: int) -> tuple[Model, Model]:
    """Cox models that are told two groups: by interactions, and by equal weights."""
    X = scaled_features(patients.data)[0]

    def crossed(X, some: Patients) -> np.ndarray:
        return by_group(X, (codes_of_patients(some) == 1)[None])

    found, penalty = ridge(crossed(X, patients), patients, np.ones(len(patients)), seed)
    first = Model(patients, linear(found.coef, crossed), facts=_of_ridge(found, penalty))
    weights = balanced(patients.data.event, codes_of_patients(patients))
    found, penalty = ridge(X, patients, weights, seed)
    return first, Model(patients, linear(found.coef), facts=_of_ridge(found, penalty))


def told_attribute(patients: Patients, cuts: dict[str, float], attribute: str, seed: int):
    """The models that are told the groups of an attribute."""
    return told(patients, lambda some: codes_of(some, cuts)[attribute], seed)


def told_group(patients: Patients, group: Described, seed: int) -> tuple[Model, Model]:
    """The models that are told who is a member of a group."""
    return told(patients, lambda some: group.members(some.covariates).astype(int), seed)


def _of_ridge(found: Solution, penalty: float) -> dict[str, float]:
    return {"certificate": found.gap, "penalty": penalty}


# As published ----------------------------------------------------------------------------------


class Trained(NamedTuple):
    """Settings of one model by Adam."""

    learning_rate: float
    alpha: float | None  # None: Cox, or DeepSurv


PLAINS = [Trained(rate, None) for rate in LEARNING_RATES]
ROBUSTS = [Trained(rate, alpha) for rate in LEARNING_RATES for alpha in ALPHAS]


def train(
    inside: Patients, kind: str, settings: Sequence[Trained], weight_seed: int, factor: float = 1.0
) -> training.ScoreStack:
    """Models by 500 steps of Adam, all plain or all robust; ``factor`` scales initial weights."""
    X = scaled_features(inside.data)[0]
    hidden = HIDDEN[kind]
    start = factor * training.initial_parameters(X.shape[1], hidden, weight_seed)
    parts = []
    for low in range(0, len(settings), CHUNK):
        rates, alphas = zip(*settings[low : low + CHUNK], strict=True)
        objective = training.cox_objective(inside.risk)
        if alphas[0] is not None:
            c = np.array([dual_constant(alpha, rule="paper") for alpha in alphas])
            objective = training.dro_objective(inside.risk, c)
        starts = np.tile(start, (len(rates), 1))
        how = {"hidden": hidden, "centre": hidden is not None}
        parts.append(training.fit_stack(X, objective, starts, rates, **how))
    theta = np.vstack([part.theta for part in parts])
    return training.ScoreStack(theta, hidden, np.concatenate([part.offset for part in parts]))


def published(
    patients: Patients, kind: str, cuts: dict[str, float], seed: int, weight_seed: int
) -> dict[Key, Model]:
    """The plain model, and the robust ones chosen by c-index and by the paper's rule.

    They are fitted to three quarters of the half and chosen on the last one. Each chosen model is
    trained once more from initial weights that differ by rounding.
    """
    quarter = assign_folds(patients.data.event, 4, seed) == 0
    inside = patients.subset(np.flatnonzero(~quarter))
    out = patients.subset(np.flatnonzero(quarter))
    X_out = scaled_features(inside.data, out.data)[1]
    stacks = [train(inside, kind, some, weight_seed) for some in (PLAINS, ROBUSTS)]
    scores = [np.round(stack.scores(X_out), ROUNDED) for stack in stacks]
    plain, robust = chosen_settings(kind, scores, out, cuts)
    models = {}
    for some, stack, held_out, chosen in zip(
        (PLAINS, ROBUSTS), stacks, scores, (plain, robust), strict=True
    ):
        places = sorted(set(chosen.values()))
        settings = [some[at] for at in places]
        again = train(inside, kind, settings, weight_seed, 1 + PERTURBATION)
        fold = np.zeros(len(out), int)
        of_place = {}
        for i, at in enumerate(places):
            held = HeldOut(held_out[at], out.data.time, out.data.event, fold)
            scorers = _one_of(stack, at), _one_of(again, i)
            facts = facts_of(some[at], inside)
            of_place[at] = Model(inside, scorers[0], slope_of(held), facts, scorers[1])
        models |= {key: of_place[at] for key, at in chosen.items()}
    return models


def chosen_settings(
    kind: str, scores: Sequence[np.ndarray], out: Patients, cuts: dict[str, float]
) -> tuple[dict[Key, int], dict[Key, int]]:
    """Which of the plain settings, and which of the robust ones, validation patients choose."""
    plain, robust = ([concordance.count(row, out.risk) for row in some] for some in scores)
    c_plain, c_robust = (np.array([one.index() for one in some]) for some in (plain, robust))
    best = most_accurate(c_plain)
    chosen = {(BY_C_INDEX[kind], ""): most_accurate(c_robust)}
    codes = codes_of(out, cuts)
    for attribute in of_primary(cuts):
        imparity = [imparity_of(counts, codes[attribute]) for counts in robust]
        chosen[PUBLISHED[kind], attribute] = choose(c_robust, imparity, c_plain[best])
    return {(ADAM[kind], ""): best}, chosen


def imparity_of(counts: concordance.Counts, codes: np.ndarray) -> float:
    """The distance between two groups' concordance fractions; NaN where one has no pairs."""
    fractions = []
    for code in (1, 0):
        members = codes == code
        pairs = counts.pairs[members].sum()
        fractions.append(counts.points[members].sum() / pairs if pairs > 0 else np.nan)
    return float(abs(fractions[0] - fractions[1]))


def facts_of(setting: Trained, inside: Patients) -> dict[str, float]:
    """The learning rate and, of a robust model, α and what it protects."""
    facts = {"learning_rate": setting.learning_rate}
    if setting.alpha is None:
        return facts
    share = dual_constant(setting.alpha, rule="paper") ** -2
    return facts | {"alpha": setting.alpha, "protected": share / inside.data.event.mean()}


def of_primary(cuts: dict[str, float]) -> list[str]:
    """The attributes whose closings are averaged, as far as these patients have them."""
    return [attribute for attribute in PRIMARY if attribute in cuts]


def _one_of(stack: training.ScoreStack, at: int) -> Scorer:
    alone = training.ScoreStack(stack.theta[[at]], stack.hidden, stack.offset[[at]])
    return lambda X, patients: alone.scores(X)[0]
