r"""Two halves of the patients: everything is learned on A; B is for evaluation only.

The patients of a data set are dealt into halves A and B, stratified by event. A determines the
medians and scales of features, the models and, from the scores of Cox cross-fitted inside A, the
sign :math:`s` of Cox's gap, the group that Cox serves worst, and the horizon of calibration.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from drocox.beyond.by_adam import MAIN, PREFIX, STARTS, Quarters, chosen
from drocox.beyond.datasets import Described, Patients, codes_of, cuts_of, described_groups, present
from drocox.beyond.models import (
    ALONE,
    COX,
    CROSSED,
    CROSSED_WORST,
    DOSE,
    FOLDS,
    FORMS,
    GENTLE,
    HALF,
    HALF_SPLIT,
    PLAIN,
    QUARTER,
    RIDGE_COX,
    WEIGHTED,
    WEIGHTED_WORST,
    Form,
    Key,
    Model,
    linear,
    matched_dose,
    rank_correlation,
    ridge_cox,
    rounded,
    slope_of,
    told,
)
from drocox.evaluation import scaled_features
from drocox.heldout import Estimate, HeldOut, assign_folds, expected_events

SPLITS = 5
STORED = (PLAIN, HALF, QUARTER, DOSE, GENTLE, HALF_SPLIT)  # certified forms that the store has


def deal(event: np.ndarray, split: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training rows and test rows: two halves, stratified by event, each in both roles."""
    dealt = assign_folds(event, 2, split)
    for half in (0, 1):
        yield np.flatnonzero(dealt == half), np.flatnonzero(dealt != half)


def gap_of(held: HeldOut, codes: np.ndarray) -> Estimate:
    """Gap of an attribute: the second group's concordance fraction minus the first's, in points.

    Patients with code -1 are in neither group, but members are compared with them.
    """
    second = held.concordance(codes == 1)
    first = held.concordance(codes == 0)
    gap = 100 * (second.value - first.value)
    return Estimate(gap, 100 * (second.without - first.without))


def log_oe(held: HeldOut, members: np.ndarray) -> float:
    """Logarithm of observed to expected events; NaN without events."""
    value = held.calibration(members).value
    return float(np.log(value)) if value > 0 else np.nan


def sign_of(value: float) -> float:
    """-1 below 0, else 1."""
    return -1.0 if value < 0 else 1.0


# Cross-fitted inside a half ----------------------------------------------------------------------


@dataclass(frozen=True)
class CrossFit:
    """A model's scores inside one half, each by a model that was not fitted to that patient."""

    held: HeldOut
    until: HeldOut  # up to the horizon, with expected events


def cross_fitted(patients: Patients, form: Form, seed: int, horizon: float) -> CrossFit:
    """Scores of Cox or of a form of DRO-COX in five folds inside one half."""
    data = patients.data
    fold = assign_folds(data.event, FOLDS, seed)
    scores = np.empty(len(data))
    expected = np.empty(len(data))
    time = np.minimum(data.time, horizon)
    for k in range(FOLDS):
        inside = patients.subset(np.flatnonzero(fold != k))
        out = fold == k
        X, X_out = scaled_features(inside.data, data.subset(out))
        coef = form.fit(X, inside, seed).coef
        scores[out] = rounded(X_out @ coef)
        expected[out] = expected_events(inside.data, X @ coef, scores[out], time[out])
    event = data.event & (data.time <= horizon)
    return CrossFit(
        HeldOut(scores, data.time, data.event, fold), HeldOut(scores, time, event, fold, expected)
    )


def worst_group(held: HeldOut, groups: Sequence[Described], patients: Patients) -> Described | None:
    """The group with the lowest c-index among its members."""
    if not groups:
        return None
    own = [held.c_index(group.members(patients.covariates)).value for group in groups]
    return groups[int(np.nanargmin(own))]


@dataclass(frozen=True)
class Decided:
    """What the cross-fitted scores of Cox decide about one half."""

    cuts: dict[str, float]  # of the attributes
    horizon: float  # of calibration and Brier score: the median time of an event
    gaps: dict[str, float]  # Cox's, in points
    groups: list[Described]  # large enough to be the worst
    worst: Described | None  # the one with the lowest c-index
    signs: dict[str, float]  # of Cox's log O/E: by attribute, and of the worst group


def decide(patients: Patients, seed: int) -> Decided:
    """Cut points, horizon, gaps, signs and the worst group of one half."""
    data = patients.data
    cuts = cuts_of(patients)
    horizon = float(np.median(data.time[data.event]))
    cox = cross_fitted(patients, COX, seed, horizon)
    groups = described_groups(patients)
    worst = worst_group(cox.held, groups, patients)
    gaps, signs = {}, {}
    for attribute, codes in codes_of(patients, cuts).items():
        gaps[attribute] = gap_of(cox.held, codes).value
        second, first = (log_oe(cox.until, codes == code) for code in (1, 0))
        signs[attribute] = sign_of(second - first)
    if worst is not None:
        signs["worst"] = sign_of(log_oe(cox.until, worst.members(patients.covariates)))
    return Decided(cuts, horizon, gaps, groups, worst, signs)


# Everything that one half decides ----------------------------------------------------------------


@dataclass(frozen=True)
class Learned(Decided):
    """Everything that one half decides, its models included."""

    models: dict[Key, Model]
    own_worst: dict[Key, Described | None]  # lowest c-index under the robust model itself


def learn(
    patients: Patients,
    split: int,
    half: int,
    *,
    networks: bool = True,
    starts: Sequence[int] = STARTS,
    forms: Sequence[str] = STORED,
) -> Learned:
    """Learn everything on one half; ``split`` is the seed of folds, ``forms`` are certified."""
    decided = decide(patients, split)
    models, own_worst = _certified(patients, decided, split, forms)
    models |= _with_ridge(patients, decided, split)
    by_cox = models[Key(PLAIN)].scores(patients)
    for model in models.values():
        model.facts["rank_correlation"] = rank_correlation(model.scores(patients), by_cox)
    quarters = Quarters.of(patients, decided.cuts, split, half)
    for kind in PREFIX:
        if networks or kind == "linear":
            models |= chosen(quarters, kind, starts)
    for key, model in models.items():
        scores = model.scores(patients)
        model.facts["constant"] = float(np.ptp(scores) == 0)
        if key.name.removeprefix(PREFIX["linear"]) in MAIN and key.dealt == 0:
            own_worst[key] = worst_group(patients.held_out(scores), decided.groups, patients)
    return Learned(**vars(decided), models=models, own_worst=own_worst)


def _certified(
    patients: Patients, decided: Decided, seed: int, names: Sequence[str]
) -> tuple[dict[Key, Model], dict[Key, Described | None]]:
    """Cox and the forms of DRO-COX, and the groups that they serve worst."""
    X = scaled_features(patients.data)[0]
    models, own_worst = {}, {}
    for name in dict.fromkeys((PLAIN, *names)):  # Cox in any case: others are compared with it
        form = matched_dose(patients, seed) if name == DOSE else FORMS[name]
        inside = cross_fitted(patients, form, seed, decided.horizon).held
        found = form.fit(X, patients, seed)
        facts = {"certificate": found.gap}
        if name != PLAIN:
            facts["protected"] = form.protected(patients)
            own_worst[Key(name)] = worst_group(inside, decided.groups, patients)
        models[Key(name)] = Model(patients, linear(found.coef), slope_of(inside), facts)
    return models, own_worst


def _with_ridge(patients: Patients, decided: Decided, seed: int) -> dict[Key, Model]:
    """Ridge Cox, and Cox models that are told an attribute or the worst group."""
    models = {Key(RIDGE_COX): ridge_cox(patients, seed)}
    for attribute in present(decided.cuts):
        both = told(patients, lambda some, a=attribute: codes_of(some, decided.cuts)[a], seed)
        models[Key(CROSSED, attribute)], models[Key(WEIGHTED, attribute)] = both
    if decided.worst is not None:
        worst = decided.worst
        both = told(patients, lambda some: worst.members(some.covariates), seed)
        models[Key(CROSSED_WORST)], models[Key(WEIGHTED_WORST)] = both
        members = worst.members(patients.covariates)
        models[Key(ALONE)] = ridge_cox(patients.subset(np.flatnonzero(members)), seed)
    return models
