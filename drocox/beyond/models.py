r"""Models of the study where DRO-COX can act, all learned on one half of the patients.

With the share :math:`s` of events in the half, DRO-COX with the sharp constant and :math:`\alpha =
s/2` protects a share of the *events*: below :math:`\pi_0 = s / (1 + \kappa^2)` the weights of the
events have a squared coefficient of variation of :math:`s/\alpha - 1`, whatever the censoring.

**Certified.** Cox; DRO-COX with :math:`s/2`, :math:`s/4` and a dose that changes the order of
patients; ridge Cox; Cox models that are told a group, by interactions with it or by giving it half
of the weight. Every penalty is chosen inside the half.

**As published.** Cox and DRO-COX, linear and with one hidden layer, by 500 steps of Adam over the
paper's grid, fitted to three quarters of the half and chosen on the last one by the paper's rule,
for each attribute, or by the c-index alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import stats

from drocox import concordance, training
from drocox.beyond.cohorts import PRIMARY, Described, Patients, codes_of, cuts_of, described_groups
from drocox.beyond.described import by_group
from drocox.beyond.learning import COX, FOLDS, RIDGE, ROUNDED, Setting, fit, fraction, gap_of
from drocox.beyond.many import EXACT
from drocox.beyond.methods import PENALTIES
from drocox.cox import cox_losses, risk_sets
from drocox.dro import dual_constant
from drocox.evaluation import scaled_features
from drocox.heldout import HeldOut, assign_folds, expected_events
from drocox.heldout.slope import calibration_slope
from drocox.paper.protocol import ALPHAS, HIDDEN, LEARNING_RATES
from drocox.paper.run import CHUNK, PERTURBATION
from drocox.solver import Solution, minimise
from drocox.tuning import choose, most_accurate

HALF = "DRO-COX, half of the events"
QUARTER = "DRO-COX, a quarter of the events"
DOSE = "DRO-COX, dose-matched"
RIDGE_COX = "ridge Cox"
CROSSED = "Cox, interactions with the attribute"
WEIGHTED = "Cox, groups of the attribute weighted equally"
CROSSED_WORST = "Cox, interactions with the worst group"
WEIGHTED_WORST = "Cox, worst group weighted equally"
ALONE = "Cox, worst group alone"
ADAM = {"linear": "Cox, Adam", "nonlinear": "DeepSurv"}
PUBLISHED = {"linear": "DRO-COX, as published", "nonlinear": "Deep DRO-COX, as published"}
BY_C_INDEX = {"linear": "DRO-COX, Adam, by c-index", "nonlinear": "Deep DRO-COX, by c-index"}
PLAIN = COX.method

AGAINST = {  # the model that each one is compared with
    HALF: PLAIN,
    QUARTER: PLAIN,
    DOSE: PLAIN,
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
        return np.round(self.score(X, patients), ROUNDED) + 0.0  # no negative zeros

    def moved(self, patients: Patients) -> float:
        """How far rounding moves a score; NaN where neither training nor a certificate tells."""
        if self.again is None:
            return 0.0 if self.facts["certificate"] <= EXACT else np.nan
        X = scaled_features(self.fitted.data, patients.data)[1]
        return float(np.abs(self.score(X, patients) - self.again(X, patients)).max())


Key = tuple[str, str]  # name of a model, and the attribute for which it was fitted or ""


@dataclass(frozen=True)
class Learned:
    """Everything that one half decides."""

    models: dict[Key, Model]
    cuts: dict[str, float]  # of the attributes
    gaps: dict[str, float]  # Cox's, cross-fitted, in points
    worst: dict[Key, Described | None]  # lowest c-index under Cox, and under robust models
    horizon: float  # of calibration and Brier score: the median time of an event
    signs: dict[str, float]  # of Cox's log O/E, cross-fitted: by attribute, and of the worst group


# Certified models ------------------------------------------------------------------------------


def _linear(coef: np.ndarray, features: Scorer | None = None) -> Scorer:
    if features is None:
        return lambda X, patients: X @ coef
    return lambda X, patients: features(X, patients) @ coef


def protecting(X: np.ndarray, patients: Patients, share: float, seed: int) -> Solution:
    """DRO-COX that protects a share of these patients' events; 1 stands for Cox."""
    if share == 1:
        return fit(X, patients, COX, seed)
    alpha = share * patients.data.event.mean()
    return fit(X, patients, Setting("DRO-COX", alpha, "sharp"), seed)


@dataclass(frozen=True)
class CrossFit:
    """A model's scores inside one half, each by a model that was not fitted to that patient."""

    held: HeldOut
    until: HeldOut  # up to the horizon, with expected events


def cross_fit(patients: Patients, share: float, seed: int, horizon: float) -> CrossFit:
    """Cross-fit DRO-COX that protects a share of the events, on the first study's folds."""
    data = patients.data
    fold = assign_folds(data.event, FOLDS, seed)
    scores = np.empty(len(data))
    expected = np.empty(len(data))
    time = np.minimum(data.time, horizon)
    for k in range(FOLDS):
        inside = patients.subset(np.flatnonzero(fold != k))
        out = fold == k
        X, X_out = scaled_features(inside.data, data.subset(out))
        coef = protecting(X, inside, share, seed).coef
        scores[out] = np.round(X_out @ coef, ROUNDED) + 0.0
        expected[out] = expected_events(inside.data, X @ coef, scores[out], time[out])
    event = data.event & (data.time <= horizon)
    return CrossFit(
        HeldOut(scores, data.time, data.event, fold), HeldOut(scores, time, event, fold, expected)
    )


def _usable(slope: float) -> float:
    """A slope that scores can be multiplied by: unknown is 1, a reversed order a constant."""
    return max(0.0, slope) if np.isfinite(slope) else 1.0


def _slope(held: HeldOut) -> float:
    return _usable(calibration_slope(held.scores, held.time, held.event, held.fold)[0])


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


def _told(patients: Patients, codes_of_patients: Callable, seed: int) -> tuple[Model, Model]:
    """Cox models that are told two groups: by interactions, and by equal weights."""
    X = scaled_features(patients.data)[0]
    codes = codes_of_patients(patients)

    def crossed(X, some: Patients) -> np.ndarray:
        return by_group(X, (codes_of_patients(some) == 1)[None])

    flat = np.ones(len(patients))
    of_crossed, penalty = ridge(crossed(X, patients), patients, flat, seed)
    facts = {"penalty": penalty, "certificate": of_crossed.gap}
    first = Model(patients, _linear(of_crossed.coef, crossed), facts=facts)
    of_weighted, penalty = ridge(X, patients, balanced(patients.data.event, codes), seed)
    facts = {"penalty": penalty, "certificate": of_weighted.gap}
    return first, Model(patients, _linear(of_weighted.coef), facts=facts)


def rank_correlation(scores: np.ndarray, others: np.ndarray) -> float:
    """Spearman's rank correlation; NaN if either is constant."""
    ranks = [stats.rankdata(np.round(one, ROUNDED)) for one in (scores, others)]
    if min(np.ptp(one) for one in ranks) == 0:
        return np.nan
    return float(np.corrcoef(ranks)[0, 1])


def matched_dose(X: np.ndarray, patients: Patients, of_cox: np.ndarray, seed: int) -> float:
    """The largest share of the events at which DRO-COX reorders the patients.

    If it reorders them at none, the share with the lowest rank correlation. Constant scores do not
    count as an order; if all are constant, the largest share.
    """
    found = {}
    for share in DOSES:
        scores = X @ protecting(X, patients, share, seed).coef
        found[share] = rank_correlation(scores, of_cox)
        if found[share] <= REORDERED:
            return share
    return min(found, key=lambda share: np.nan_to_num(found[share], nan=2.0))


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
    scores = np.vstack([np.round(stack.scores(X_out), ROUNDED) for stack in stacks])
    counts = [concordance.count(row, out.risk) for row in scores]
    c_index = np.array([one.index() for one in counts])
    plain, robust = c_index[: len(PLAINS)], c_index[len(PLAINS) :]
    best = most_accurate(plain)
    positions = {
        (ADAM[kind], ""): best,
        (BY_C_INDEX[kind], ""): len(PLAINS) + most_accurate(robust),
    }
    codes = codes_of(out, cuts)
    for attribute in _primary(cuts):
        imparity = [
            abs(fraction(one, codes[attribute] == 1) - fraction(one, codes[attribute] == 0))
            for one in counts[len(PLAINS) :]
        ]
        chosen = choose(robust, imparity, plain[best])
        positions[PUBLISHED[kind], attribute] = len(PLAINS) + chosen
    models = {}
    for some, first, stack in ((PLAINS, 0, stacks[0]), (ROBUSTS, len(PLAINS), stacks[1])):
        chosen = sorted({at - first for at in positions.values() if 0 <= at - first < len(some)})
        settings = [some[at] for at in chosen]
        again = train(inside, kind, settings, weight_seed, 1 + PERTURBATION)
        for place, (at, setting) in enumerate(zip(chosen, settings, strict=True)):
            held = HeldOut(
                scores[first + at], out.data.time, out.data.event, np.zeros(len(out), int)
            )
            facts = {"learning_rate": setting.learning_rate}
            if setting.alpha is not None:
                share = dual_constant(setting.alpha, rule="paper") ** -2
                facts |= {"alpha": setting.alpha, "protected": share / inside.data.event.mean()}
            scorers = _one_of(stack, at), _one_of(again, place)
            models[first + at] = Model(inside, scorers[0], _slope(held), facts, scorers[1])
    return {key: models[at] for key, at in positions.items()}


def _one_of(stack: training.ScoreStack, at: int) -> Scorer:
    alone = training.ScoreStack(stack.theta[[at]], stack.hidden, stack.offset[[at]])
    return lambda X, patients: alone.scores(X)[0]


# All of them -----------------------------------------------------------------------------------


def _primary(cuts: dict[str, float]) -> list[str]:
    return [attribute for attribute in PRIMARY if attribute in cuts]


def _worst(held: HeldOut, groups: list[Described], patients: Patients) -> Described | None:
    """The group with the lowest c-index among its members."""
    if not groups:
        return None
    own = [held.c_index(group.members(patients.covariates)).value for group in groups]
    return groups[int(np.nanargmin(own))]


def log_oe(held: HeldOut, members: np.ndarray) -> float:
    """Logarithm of observed to expected events; NaN without events."""
    value = held.calibration(members).value
    return float(np.log(value)) if value > 0 else np.nan


def _sign(value: float) -> float:
    return -1.0 if value < 0 else 1.0


def learn(patients: Patients, split: int, half: int) -> Learned:
    """Learn everything on one half; ``split`` is the seed of folds, as in the first study."""
    data = patients.data
    cuts = cuts_of(patients)
    codes = codes_of(patients, cuts)
    horizon = float(np.median(data.time[data.event]))
    by_share = {share: cross_fit(patients, share, split, horizon) for share in (1.0, 0.5, 0.25)}
    of_cox = by_share[1.0]
    gaps = {name: gap_of(of_cox.held, values).value for name, values in codes.items()}
    groups = described_groups(patients)
    worst = _worst(of_cox.held, groups, patients)
    worst_of: dict[Key, Described | None] = {(PLAIN, ""): worst}
    X = scaled_features(data)[0]
    flat = np.ones(len(patients))
    cox = protecting(X, patients, 1.0, split)
    matched = matched_dose(X, patients, X @ cox.coef, split)
    models: dict[Key, Model] = {}
    for name, share in ((PLAIN, 1.0), (HALF, 0.5), (QUARTER, 0.25), (DOSE, matched)):
        if share not in by_share:
            by_share[share] = cross_fit(patients, share, split, horizon)
        fitted = protecting(X, patients, share, split)
        facts = {"certificate": fitted.gap} | ({} if name == PLAIN else {"protected": share})
        models[name, ""] = Model(
            patients, _linear(fitted.coef), _slope(by_share[share].held), facts
        )
        worst_of[name, ""] = _worst(by_share[share].held, groups, patients)
    found, penalty = ridge(X, patients, flat, split)
    facts = {"certificate": found.gap, "penalty": penalty}
    models[RIDGE_COX, ""] = Model(patients, _linear(found.coef), facts=facts)
    for attribute in _primary(cuts):
        told = _told(patients, lambda some, a=attribute: codes_of(some, cuts)[a], split)
        models[CROSSED, attribute], models[WEIGHTED, attribute] = told
    if worst is not None:
        told = _told(patients, lambda some: worst.members(some.covariates).astype(int), split)
        models[CROSSED_WORST, ""], models[WEIGHTED_WORST, ""] = told
        models[ALONE, ""] = _alone(patients, worst, split)
    for kind in HIDDEN:
        found_by_adam = published(patients, kind, cuts, split, 2 * split + half)
        for (name, attribute), model in found_by_adam.items():
            models[name, attribute] = model
            if name != ADAM[kind]:
                folds = np.zeros(len(patients), int)
                held = HeldOut(model.scores(patients), data.time, data.event, folds)
                worst_of[name, attribute] = _worst(held, groups, patients)
    signs = {}
    for attribute, values in codes.items():
        of_groups = [log_oe(of_cox.until, values == code) for code in (1, 0)]
        signs[attribute] = _sign(of_groups[0] - of_groups[1])
    if worst is not None:
        signs["worst"] = _sign(log_oe(of_cox.until, worst.members(patients.covariates)))
    on_a = {key: model.scores(patients) for key, model in models.items()}
    for key, scores in on_a.items():
        on_base = on_a[AGAINST.get(key[0], PLAIN), ""]
        of_scores = {
            "constant": float(np.ptp(scores) == 0),
            "rank_correlation": rank_correlation(scores, on_a[PLAIN, ""]),
            "rank_correlation_base": rank_correlation(scores, on_base),
        }
        models[key] = replace(models[key], facts=models[key].facts | of_scores)
    return Learned(models, cuts, gaps, worst_of, horizon, signs)


def _alone(patients: Patients, worst: Described, seed: int) -> Model:
    """Ridge Cox of the worst group's members alone: what features could give them."""
    members = patients.subset(np.flatnonzero(worst.members(patients.covariates)))
    X = scaled_features(members.data)[0]
    found, penalty = ridge(X, members, np.ones(len(members)), seed)
    facts = {"certificate": found.gap, "penalty": penalty}
    return Model(members, _linear(found.coef), facts=facts)
