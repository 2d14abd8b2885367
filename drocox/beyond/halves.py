r"""All decisions that are made on one half of the patients: models, cuts, signs, the worst group.

Half A determines the medians and scales of features, the models and, from scores cross-fitted
inside A, the sign :math:`s` of Cox's gap and the group that Cox serves worst. Every model minimises
the mean loss or its worst case with a small ridge, so that a minimum exists, and is certified:

.. math:: \min_\theta\ R_\alpha(\theta) + \tfrac{\lambda}{2} \lVert\theta\rVert^2 .
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drocox import concordance
from drocox.beyond.cohorts import PRIMARY, Described, Patients, codes_of, cuts_of, described_groups
from drocox.evaluation import scaled_features
from drocox.heldout import Estimate, HeldOut, assign_folds
from drocox.paper.protocol import ALPHAS
from drocox.solver import Solution, minimise
from drocox.tuning import choose

FOLDS = 5  # of the cross-fit inside a half
RIDGE = 1e-6  # of every model, so that each has a minimum, also where a feature separates
ROUNDED = 9  # decimals of scores, so that equal covariates have equal scores everywhere


@dataclass(frozen=True)
class Setting:
    """A method and its settings: the columns that identify a model."""

    method: str
    alpha: float
    rule: str = ""
    penalty: float = 0.0  # with the mean loss of an event

    @property
    def split(self) -> bool:
        """Whether the losses are those of sample splitting."""
        return "SPLIT" in self.method


COX = Setting("Cox", 1.0)
DRO = Setting("DRO-COX", 0.5, "sharp")  # the primary contrast
TUNED = Setting("DRO-COX, tuned", np.nan, "paper")  # alpha by the paper's rule, inside A
SETTINGS = (
    COX,
    DRO,
    Setting("DRO-COX", 0.5, "paper"),
    Setting("DRO-COX", 0.2, "paper"),
    Setting("CVaR", 0.5, "cvar"),
    Setting("DRO-COX (SPLIT)", 0.5, "sharp"),
    Setting("ridge Cox", 1.0, penalty=0.01),
    Setting("ridge Cox", 1.0, penalty=0.1),
    Setting("ridge Cox", 1.0, penalty=1.0),
    TUNED,
)


@dataclass(frozen=True)
class Learned:
    """Everything learned on one half, to be evaluated on the other."""

    models: dict[Setting, Solution]
    tuned: float  # the alpha that the paper's rule chose; NaN: no attribute to tune by
    cuts: dict[str, float]
    gaps: dict[str, float]  # Cox's, cross-fitted inside, in points
    c: float  # Cox's c-index, likewise, in percent
    worst: dict[str, Described | None]  # lowest c-index among members under Cox, and under DRO-COX

    @property
    def signs(self) -> dict[str, float]:
        """Direction of each gap."""
        return {name: 1.0 if gap >= 0 else -1.0 for name, gap in self.gaps.items()}


def fit(X: np.ndarray, patients: Patients, setting: Setting, seed: int) -> Solution:
    """One certified model of scaled features; the seed draws the halves of sample splitting."""
    event = patients.data.event
    return minimise(
        X,
        patients.risk,
        setting.alpha,
        rule=setting.rule or "sharp",
        first=assign_folds(event, 2, seed) == 0 if setting.split else None,
        penalty=RIDGE + setting.penalty * event.mean(),
    )


def scores_of(X: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Scores, equal for equal covariates on every platform."""
    return np.round(X @ coef, ROUNDED) + 0.0  # no negative zeros


def cross_fitted(patients: Patients, seed: int) -> dict[Setting, HeldOut]:
    """Held-out scores of Cox and of DRO-COX within one half."""
    data = patients.data
    fold = assign_folds(data.event, FOLDS, seed)
    scores = {setting: np.empty(len(data)) for setting in (COX, DRO)}
    for k in range(FOLDS):
        inside = patients.subset(np.flatnonzero(fold != k))
        X, X_out = scaled_features(inside.data, data.subset(fold == k))
        for setting, values in scores.items():
            values[fold == k] = scores_of(X_out, fit(X, inside, setting, seed).coef)
    return {
        setting: HeldOut(values, data.time, data.event, fold) for setting, values in scores.items()
    }


def tuned_alpha(patients: Patients, attributes: Sequence[str], seed: int) -> float:
    """Alpha by the paper's rule on one half, with a quarter of it for validation.

    Of the paper's six alphas, with its constant, those that keep 95 % of Cox's c-index are
    eligible; the smallest imparity, averaged over attributes, wins. NaN without attributes.
    """
    if not attributes:
        return np.nan
    quarter = assign_folds(patients.data.event, 4, seed) == 0
    inside = patients.subset(np.flatnonzero(~quarter))
    out = patients.subset(np.flatnonzero(quarter))
    X, X_out = scaled_features(inside.data, out.data)
    codes = codes_of(out, cuts_of(inside))
    c_index = []
    imparity = []
    for setting in (COX, *(Setting("DRO-COX", alpha, "paper") for alpha in ALPHAS)):
        scores = scores_of(X_out, fit(X, inside, setting, seed).coef)
        counts = concordance.count(scores, out.risk)
        c_index.append(counts.index())
        apart = [abs(fraction(counts, codes[a] == 1) - fraction(counts, codes[a] == 0))
                 for a in attributes]  # fmt: skip
        imparity.append(np.mean(apart))
    return ALPHAS[choose(c_index[1:], imparity[1:], c_index[0])]


def fraction(counts: concordance.Counts, members: np.ndarray) -> float:
    """Concordance fraction of a group; NaN without pairs."""
    pairs = counts.pairs[members].sum()
    return float(counts.points[members].sum() / pairs) if pairs > 0 else np.nan


def gap_of(held: HeldOut, codes: np.ndarray) -> Estimate:
    """Gap of an attribute: the second group's concordance fraction minus the first's, in points.

    Patients with code -1 are in neither group, but members are compared with them.
    """
    second = held.concordance(codes == 1)
    first = held.concordance(codes == 0)
    return Estimate(
        100 * (second.value - first.value), 100 * (second.without - first.without)
    )  # fmt: skip


def learn(patients: Patients, settings: Sequence[Setting], seed: int) -> Learned:
    """Fit the models to one half, and find the signs of gaps and the worst groups there."""
    cuts = cuts_of(patients)
    held = cross_fitted(patients, seed)
    codes = codes_of(patients, cuts)
    gaps = {name: gap_of(held[COX], values).value for name, values in codes.items()}
    everybody = np.full(len(patients), True)
    groups = described_groups(patients)
    worst = {}
    for name, setting in (("cox", COX), ("dro", DRO)):
        own = [held[setting].c_index(group.members(patients.covariates)).value for group in groups]
        worst[name] = groups[int(np.nanargmin(own))] if groups else None
    tuned = np.nan
    if TUNED in settings:
        tuned = tuned_alpha(patients, [a for a in PRIMARY if a in cuts], seed)
    X = scaled_features(patients.data)[0]
    models = {}
    for setting in dict.fromkeys((COX, DRO, *settings)):
        if setting != TUNED:
            models[setting] = fit(X, patients, setting, seed)
        elif not np.isnan(tuned):
            models[setting] = fit(X, patients, Setting("DRO-COX", tuned, "paper"), seed)
    c = 100 * held[COX].c_index(everybody).value
    return Learned(models, tuned, cuts, gaps, c, worst)
