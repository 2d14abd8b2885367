"""The rivals: how each method is fitted and tuned, by one rule and on the same folds.

Every data set is divided into five folds, twice, stratified by event and by the groups of all
attributes. Each training part is imputed and scaled by itself and split once more, 75 to 25, for
tuning: of a grid of six settings those whose validation c-index is at least 95 % of Cox's are
eligible, and the smallest validation imparity wins (the paper's rule); the model with that setting
is then fitted to the whole training part. Some rivals have only one setting. Fits that do not
depend on the attribute are shared by all attributes of a data set.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

import numpy as np
import torch

from drocox import concordance, training
from drocox.beyond.free_baseline import free_baseline
from drocox.beyond.group_models import by_group, group_dro, smallest
from drocox.cox import RiskSets, cox_losses, risk_sets
from drocox.data import SurvivalData
from drocox.dro import dual_constant
from drocox.evaluation import scaled_features
from drocox.heldout import assign_folds
from drocox.paper.datasets import load_dataset, measured
from drocox.paper.protocol import ALPHAS
from drocox.solver import minimise
from drocox.tuning import choose

FOLDS = 5
REPEATS = 2
GENTLE_ALPHA = 0.5  # the alpha of the rivals that are not tuned
RIDGE_PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of ridge, with the mean loss of an event
STEPS = (5, 10, 20, 40, 80, 160)  # of Adam from 0, at the learning rate below
FINE_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of Cox stopped at a wanted c-index
RATE = 0.01
WEIGHTS = (0.1, 0.25, 0.4, 0.6, 0.75, 0.9)  # of the second of two groups
FREE_ALPHAS = (0.25, 0.3, 0.4, 0.5, 0.7, 0.9)  # of a free baseline: certified on all data sets
SLIGHT = 1e-4  # penalty of interactions: settles what collinear columns leave open
IN_YEARS = {"support": "num_age", "seer": "Age"}  # columns of ages that the paper cut at 65


# Patients -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Patients for training or for testing."""

    data: SurvivalData
    X: np.ndarray  # scaled
    seed: int  # of halves and of initial weights
    fits: dict = field(default_factory=dict)  # coefficients by method, setting and attribute

    @cached_property
    def risk(self) -> RiskSets:
        """The risk sets of the patients."""
        return risk_sets(self.data.time, self.data.event)

    @cached_property
    def first(self) -> np.ndarray:
        """Mask of D1, a random half."""
        return assign_folds(self.data.event, 2, self.seed) == 0

    def members(self, attribute: str) -> np.ndarray:
        """Masks of the first and the second group, shape (2, n)."""
        return self.data.groups[attribute] == np.array([[0], [1]])

    def features(self, method: str, attribute: str) -> np.ndarray:
        """The design matrix of a method."""
        if RIVALS[method].interactions:
            return by_group(self.X, self.members(attribute)[1:])
        return self.X


@dataclass(frozen=True)
class Fold:
    """One fold of one repeat, prepared."""

    rows: np.ndarray  # of its patients, in the data set
    train: Part
    inner: tuple[Part, Part]  # to fit and to validate while tuning, both scaled by the first
    test: Part


def prepare_fold(data: SurvivalData, repeat: int, fold: int) -> Fold:
    """Fold ``fold`` of repeat ``repeat`` (from 0), with the training part imputed and scaled."""
    cell = np.unique(data.group_matrix, axis=0, return_inverse=True)[1]
    strata = 2 * cell + data.event
    dealt = assign_folds(strata, FOLDS, repeat)
    seed = FOLDS * repeat + fold

    def prepared(*rows: np.ndarray) -> list[Part]:
        some = [data.subset(part) for part in rows]
        features = scaled_features(*some)
        return [Part(one, X, seed) for one, X in zip(some, features, strict=True)]

    inside = np.flatnonzero(dealt != fold)
    outside = np.flatnonzero(dealt == fold)
    quarter = assign_folds(strata[inside], 4, seed) == 0
    train, test = prepared(inside, outside)
    fit, validate = prepared(inside[~quarter], inside[quarter])
    return Fold(outside, train, (fit, validate), test)


@lru_cache(maxsize=2)
def prepared_folds(dataset: str, in_years: bool) -> list[list[Fold]]:
    """All folds of a data set, by repeat and fold.

    With ``in_years`` age is a feature in years, where the paper has an indicator of age above 65.
    """
    data = load_dataset(dataset)
    if in_years:
        years = measured(dataset, IN_YEARS[dataset])
        data = replace(data, X=data.X.assign(**{"age>65": years}))
    return [
        [prepare_fold(data, repeat, fold) for fold in range(FOLDS)] for repeat in range(REPEATS)
    ]


# Methods: each takes a part, features, a setting and members of two groups, gives coefficients ---

Fit = Callable[[Part, np.ndarray, float, np.ndarray], np.ndarray]


def _exact(
    part: Part, X, alpha, members, rule: str = "sharp", split: bool = False, penalty: float = 0.0
) -> np.ndarray:
    """A certified optimum."""
    first = part.first if split else None
    # enough also at the kinks of CVaR, where the number of steps depends on the machine
    found = minimise(X, part.risk, alpha, rule=rule, first=first, n_iter=320, penalty=penalty)
    if found.gap > 1e-6:
        raise RuntimeError(f"the optimum at alpha {alpha:g} is not certified to 1e-6")
    return found.coef


def _cvar(part: Part, X, alpha, members) -> np.ndarray:
    """CVaR; Cox if alpha is at least the share of events, as the censored have loss 0."""
    if alpha >= part.data.event.mean():
        return _exact(part, X, 1.0, members)
    return _exact(part, X, alpha, members, rule="cvar")


def _ridge(part: Part, X, penalty, members) -> np.ndarray:
    """Cox with a ridge penalty per event."""
    return _exact(part, X, 1.0, members, penalty=penalty * part.data.event.mean())


def _adam(part: Part, X, alpha, members, split: bool = False) -> np.ndarray:
    """As in the paper: 500 steps of Adam from random weights, with the paper's constant."""
    c = np.array([dual_constant(alpha, rule="paper")])
    objective = training.dro_objective(part.risk, c)
    if split:
        objective = training.split_objective(part.risk, part.first, c)
    start = training.initial_parameters(X.shape[1], None, part.seed)
    return training.fit_stack(X, objective, [start], [RATE]).theta[0]


def _stopped(part: Part, X, steps, members) -> np.ndarray:
    """Cox after some steps of Adam from 0."""
    objective = training.cox_objective(part.risk)
    zero = np.zeros((1, X.shape[1]))
    return training.fit_stack(X, objective, zero, [RATE], n_iter=int(steps)).theta[0]


def _weighted(part: Part, X, share, members) -> np.ndarray:
    """The two groups' mean losses per event, weighted by ``1 - share`` and ``share``.

    The risk sets contain everybody, unweighted.
    """
    features = torch.from_numpy(X)
    events = (members & part.data.event).sum(axis=1)
    weights = torch.from_numpy(np.array([1 - share, share]) / events @ members)

    def value(theta: torch.Tensor) -> torch.Tensor:
        return weights @ cox_losses(features @ theta, part.risk)

    return smallest(value, X.shape[1], ftol=1e-15, maxiter=1000)


def _group_dro(part: Part, X, setting, members, regret: bool = False) -> np.ndarray:
    return group_dro(X, part.data.time, part.data.event, members, regret=regret)


def _free(part: Part, X, alpha, members) -> np.ndarray:
    coef, risk, bound = free_baseline(X, part.data.time, part.data.event, alpha)
    if risk - bound > 1e-6:
        raise RuntimeError(f"a free baseline at alpha {alpha:g} is not certified to 1e-6")
    return coef


@dataclass(frozen=True)
class Rival:
    """How a rival is fitted, and whether it is given the groups."""

    fit: Fit
    settings: Sequence[float] = (1.0,)  # the grid: alphas unless the method has another parameter
    told: bool = False  # whether the attribute is given: then fitted once per attribute
    interactions: bool = False  # whether products of attribute and features are features, too
    in_years: bool = False  # whether age is in years
    # whether digits agree across platforms: not those of general solvers, or at kinks
    stable: bool = False
    against: str = "Cox"  # the model that it is compared with


_PAPER = partial(_exact, rule="paper")
_SPLIT = partial(_exact, split=True)
_SLIGHT = partial(_exact, penalty=SLIGHT)
STOPPED = "Cox stopped at equal c-index"
INTERACTIONS = "Cox with interactions"
YEARS = "Cox, age in years"

RIVALS: Mapping[str, Rival] = {
    "Cox": Rival(_exact, stable=True),
    "shrunken Cox": Rival(_exact, stable=True),
    "ridge Cox": Rival(_ridge, RIDGE_PENALTIES, stable=True),
    "early-stopped Cox": Rival(_stopped, STEPS),
    STOPPED: Rival(_stopped, FINE_STEPS),
    INTERACTIONS: Rival(_SLIGHT, told=True, interactions=True, stable=True),
    YEARS: Rival(_exact, in_years=True, stable=True),
    "group weights": Rival(_weighted, WEIGHTS, told=True),
    "group DRO": Rival(_group_dro, told=True),
    "group DRO by regret": Rival(partial(_group_dro, regret=True), told=True),
    "CVaR": Rival(_cvar, ALPHAS),
    "CVaR 0.5": Rival(_cvar, (GENTLE_ALPHA,)),
    "DRO-COX, sharp": Rival(_exact, ALPHAS, stable=True),
    "DRO-COX, sharp 0.5": Rival(_exact, (GENTLE_ALPHA,), stable=True),
    "DRO-COX": Rival(_PAPER, ALPHAS, stable=True),
    "DRO-COX, Adam": Rival(_adam, ALPHAS),
    "DRO-COX (SPLIT), sharp 0.5": Rival(_SPLIT, (GENTLE_ALPHA,), stable=True),
    "DRO-COX (SPLIT)": Rival(partial(_SPLIT, rule="paper"), ALPHAS, stable=True),
    "DRO-COX (SPLIT), Adam": Rival(partial(_adam, split=True), ALPHAS),
    "free baseline": Rival(_free, FREE_ALPHAS),
    "DRO-COX with interactions, sharp 0.5": Rival(
        _SLIGHT, (GENTLE_ALPHA,), told=True, interactions=True, stable=True, against=INTERACTIONS
    ),
    "DRO-COX, sharp 0.5, age in years": Rival(
        _exact, (GENTLE_ALPHA,), in_years=True, stable=True, against=YEARS
    ),
}


def fit(part: Part, method: str, setting: float, attribute: str) -> np.ndarray:
    """Coefficients of a method, computed once if they do not depend on the attribute."""
    rival = RIVALS[method]
    key = (method, setting, attribute if rival.told else None)
    if key not in part.fits:
        X = part.features(method, attribute)
        part.fits[key] = rival.fit(part, X, setting, part.members(attribute))
    return part.fits[key]


def tune(inner: tuple[Part, Part], method: str, attribute: str) -> float:
    """Choose a setting on an inner split (training, validation) by the paper's rule.

    The exception is Cox stopped at equal c-index, which takes the number of steps whose validation
    c-index is nearest to that of DRO-COX.
    """
    settings = RIVALS[method].settings
    if len(settings) == 1:
        return settings[0]
    train, val = inner

    def counted(name: str, setting: float) -> concordance.Counts:
        coef = fit(train, name, setting, attribute)
        return concordance.count(val.features(name, attribute) @ coef, val.risk)

    # Adam takes the alpha of the exact optimum, so that the two differ in nothing else
    counts = [counted(method.removesuffix(", Adam"), setting) for setting in settings]
    c_index = np.array([one.index() for one in counts])
    if method == STOPPED:
        wanted = counted("DRO-COX", tune(inner, "DRO-COX", attribute)).index()
        return settings[int(np.abs(c_index - wanted).argmin())]
    imparity = [np.ptp(one.fractions(val.data.groups[attribute])) for one in counts]
    return settings[choose(c_index, imparity, counted("Cox", 1.0).index())]


def fit_tuned(fold: Fold, method: str, attribute: str) -> tuple[np.ndarray, float]:
    """Coefficients on the training part of a fold, and the setting tuned on its inner split."""
    setting = tune(fold.inner, method, attribute)
    coef = fit(fold.train, method, setting, attribute)
    if method == "shrunken Cox":  # to the spread of DRO-COX
        robust, _ = fit_tuned(fold, "DRO-COX", attribute)
        coef = coef * np.std(fold.train.X @ robust) / np.std(fold.train.X @ coef)
    return coef, setting
