r"""Rivals on equal terms: linear models tuned by one rule and judged on every patient.

Every data set is dealt into five folds, twice. Each training part is imputed and scaled by itself
and split once more, 75 to 25, for tuning: of a grid of six settings those whose validation c-index
is at least 95 % of Cox's are eligible, and the smallest validation imparity wins (the paper's
rule); the model with that setting is then fitted to the whole training part.

Pairs of patients are compared within a test fold only. A figure is the mean of the two repeats, and
so are its values without each patient in turn, of which the jackknife makes standard errors: who is
tested twice counts once. They speak of the models that were fitted, and of other patients.

**A free baseline.** With a hazard :math:`\lambda_k` at each event time the full loss is

.. math:: \ell_i = -\delta_i (f_i + \log \lambda_{k(i)}) + e^{f_i} \sum_{t_k \le Y_i} \lambda_k ,

a function of patient :math:`i` alone. The worst case over it is convex in :math:`\theta` and
:math:`\log \lambda`. For fixed weights :math:`q` the best hazards are Breslow's, and what is left
is Cox regression with case weights :math:`q`: its minimum is a lower bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd
import torch
from scipy import optimize

from drocox import concordance, kernels, training
from drocox.beyond.described import found_groups, group_dro
from drocox.beyond.protection import MAIN_ATTRIBUTE
from drocox.choosing import choose
from drocox.cox import RiskSets, cox_losses, risk_sets
from drocox.data import SurvivalData
from drocox.dro import dual_constant
from drocox.evaluation import Judge, scaled_features
from drocox.heldout import HeldOut, assign_folds
from drocox.intervals import jackknife
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ALPHAS
from drocox.solver import minimise

FOLDS = 5
REPEATS = 2
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of ridge, with the mean loss of an event
STEPS = (5, 10, 20, 40, 80, 160)  # of Adam from 0, at the learning rate below
RATE = 0.01
WEIGHTS = (0.1, 0.25, 0.4, 0.6, 0.75, 0.9)  # of the second of two groups
FREE_ALPHAS = (0.25, 0.3, 0.4, 0.5, 0.7, 0.9)  # of a free baseline: certified on all data sets


@dataclass(frozen=True)
class Part:
    """Patients to train on."""

    data: SurvivalData
    X: np.ndarray  # scaled
    codes: np.ndarray  # of the known groups, 0 and 1
    seed: int  # of halves and of initial weights

    @cached_property
    def risk(self) -> RiskSets:
        """The time order of the patients."""
        return risk_sets(self.data.time, self.data.event)

    @cached_property
    def first(self) -> np.ndarray:
        """Mask of D1, a random half."""
        return assign_folds(self.data.event, 2, self.seed) == 0


def weighted_cox(X, risk: RiskSets, weights, penalty: float = 0.0) -> np.ndarray:
    r"""Minimise :math:`\sum_i w_i \ell_i(\theta) + \frac\lambda2 \lVert\theta\rVert^2`.

    Parameters
    ----------
    X : array of shape (n, d)
    risk : RiskSets
    weights : array of shape (n,)
        Of the losses; risk sets are everybody's.
    penalty : float

    Returns
    -------
    array of shape (d,)
    """
    features, w = torch.from_numpy(X), torch.from_numpy(weights)

    def value(point: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.tensor(point, requires_grad=True)
        risk_of = w @ cox_losses(features @ theta, risk) + 0.5 * penalty * theta @ theta
        risk_of.backward()
        return risk_of.item(), theta.grad.numpy()

    tight = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000}
    return optimize.minimize(value, np.zeros(X.shape[1]), jac=True, options=tight,
                             method="L-BFGS-B").x  # fmt: skip


def free_baseline(X, time, event, alpha: float, *, rule="sharp", n_iter=3000) -> tuple:
    """DRO risk of the full loss, minimised over coefficients and hazards at once.

    Parameters
    ----------
    X : array of shape (n, d)
    time, event : arrays of shape (n,)
    alpha : float in (0, 1)
    rule : {"paper", "definition", "sharp"}
    n_iter : int
        Most steps of L-BFGS.

    Returns
    -------
    coef, risk, bound : array of shape (d,), float, float
        No coefficients and hazards have a risk below the bound.
    """
    n, d = X.shape
    c = np.array([dual_constant(alpha, rule=rule)])
    times, own = np.unique(time[event], return_inverse=True)
    seen = np.searchsorted(times, time, side="right")  # event times up to each patient's own
    ones = np.ones(n)

    def losses(point: np.ndarray) -> tuple:
        f, logs = X @ point[:d], point[d:]
        expected = np.append(0, np.cumsum(np.exp(logs)))[seen] * np.exp(f)
        loss = expected.copy()
        loss[event] -= f[event] + logs[own]
        return loss, expected, np.exp(f)

    def value(point: np.ndarray) -> tuple[float, np.ndarray]:
        loss, expected, hazard = losses(point)
        _, worst, q = (found[0] for found in kernels.worst_cases(loss[None], ones, c))
        at_risk = np.cumsum(np.bincount(seen, q * hazard, len(times) + 1)[::-1])[::-1][1:]
        slope = np.exp(point[d:]) * at_risk - np.bincount(own, q[event], len(times))
        return worst, np.append((q * (expected - event)) @ X, slope)

    risk = risk_sets(time, event)
    coef = minimise(X, risk, 1).coef
    at_risk = np.cumsum(np.bincount(seen, np.exp(X @ coef), len(times) + 1)[::-1])[::-1][1:]
    start = np.append(coef, np.log(np.bincount(own) / at_risk))
    tight = {"ftol": 1e-13, "gtol": 1e-7, "maxiter": n_iter, "maxfun": 2 * n_iter, "maxcor": 50}
    point = optimize.minimize(value, start, jac=True, method="L-BFGS-B", options=tight).x
    loss = losses(point)[0]
    _, worst, q = (found[0] for found in kernels.worst_cases(loss[None], ones, c))
    deaths = np.bincount(own, q[event])
    deaths = deaths[deaths > 0]
    # case weights are counts of mean 1, n q, whose factor n adds log n to the loss of each death
    cox = minimise(X, risk, 1, weights=n * q).bound - np.log(n) * deaths.sum()
    below = cox + deaths.sum() - deaths @ np.log(deaths)
    return point[:d], worst, below


# Methods: each takes a part and some settings, and returns coefficients for each setting.

Fit = Callable[[Part, Sequence], list[np.ndarray]]


def _exact(part: Part, settings, rule: str = "sharp", split: bool = False) -> list[np.ndarray]:
    """Certified optima, a setting being an alpha."""
    first = part.first if split else None
    how = {"rule": rule, "first": first, "n_iter": 80}  # enough, also at the kinks of CVaR
    found = [minimise(part.X, part.risk, alpha, **how) for alpha in settings]
    if max(one.gap for one in found) > 1e-6:
        raise RuntimeError("an optimum is not certified to 1e-6")
    return [one.coef for one in found]


def _adam(part: Part, settings, split: bool = False) -> list[np.ndarray]:
    """The paper's way: 500 steps from random weights, with the paper's constant."""
    c = np.array([dual_constant(alpha, rule="paper") for alpha in settings])
    objective = training.dro_objective(part.risk, c)
    if split:
        objective = training.split_objective(part.risk, part.first, c)
    start = training.initial_parameters(part.X.shape[1], None, part.seed)
    starts = np.tile(start, (len(c), 1))
    return list(training.fit_stack(part.X, objective, starts, [RATE] * len(c)).theta)


def _stopped(part: Part, settings) -> list[np.ndarray]:
    """Cox after some steps of Adam from 0."""
    objective = training.cox_objective(part.risk)
    zero = np.zeros((1, part.X.shape[1]))
    fits = [training.fit_stack(part.X, objective, zero, [RATE], n_iter=n) for n in settings]
    return [one.theta[0] for one in fits]


def _ridge(part: Part, settings) -> list[np.ndarray]:
    per_event = part.data.event / part.data.event.sum()
    return [weighted_cox(part.X, part.risk, per_event, penalty) for penalty in settings]


def _weighted(part: Part, settings) -> list[np.ndarray]:
    """The known groups' mean losses per event, weighed by a setting and what it leaves of 1."""
    events = np.bincount(part.codes, part.data.event)
    weights = [np.array([1 - share, share]) / events for share in settings]
    return [weighted_cox(part.X, part.risk, one[part.codes]) for one in weights]


def _group_dro(part: Part, settings, regret: bool = False) -> list[np.ndarray]:
    members = part.codes == np.array([[0], [1]])
    return [group_dro(part.X, part.data.time, part.data.event, members, regret=regret)]


def _free(part: Part, settings) -> list[np.ndarray]:
    outcomes = part.data.time, part.data.event
    found = [free_baseline(part.X, *outcomes, alpha) for alpha in settings]
    if max(risk - below for _, risk, below in found) > 1e-6:
        raise RuntimeError("an optimum with a free baseline is not certified to 1e-6")
    return [coef for coef, _, _ in found]


METHODS: dict[str, tuple[Sequence, Fit]] = {  # settings, and what fits them
    "Cox": ((1.0,), _exact),
    "shrunken Cox": ((1.0,), _exact),
    "ridge Cox": (PENALTIES, _ridge),
    "early-stopped Cox": (STEPS, _stopped),
    "group weights": (WEIGHTS, _weighted),
    "group DRO": ((1.0,), _group_dro),
    "group DRO by regret": ((1.0,), partial(_group_dro, regret=True)),
    "CVaR": (ALPHAS, partial(_exact, rule="cvar")),
    "DRO-COX, sharp": (ALPHAS, _exact),
    "DRO-COX": (ALPHAS, partial(_exact, rule="paper")),
    "DRO-COX (SPLIT)": (ALPHAS, partial(_exact, rule="paper", split=True)),
    "DRO-COX, Adam": (ALPHAS, _adam),
    "DRO-COX (SPLIT), Adam": (ALPHAS, partial(_adam, split=True)),
    "free baseline": (FREE_ALPHAS, _free),
}

# of the others, found by general solvers or at kinks, the last digits depend on the platform
STABLE = ("Cox", "shrunken Cox", "DRO-COX, sharp", "DRO-COX", "DRO-COX (SPLIT)")


def fit_tuned(part: Part, inner: tuple[Part, Part], method: str) -> tuple[np.ndarray, float]:
    """Tune a method on an inner split and fit it to the whole part.

    Parameters
    ----------
    part : Part
    inner : (Part, Part)
        To fit and to validate, both scaled by the first.
    method : str
        A key of :data:`METHODS`.

    Returns
    -------
    coef, setting : array of shape (d,), float
    """
    settings, fit = METHODS[method]
    best = 0
    if len(settings) > 1:
        train, val = inner
        # Adam takes the alpha of the exact optimum, so that the two differ in nothing else
        tuned = METHODS[method.removesuffix(", Adam")][1]
        models = [METHODS["Cox"][1](train, (1.0,))[0], *tuned(train, settings)]
        counts = [concordance.count(val.X @ coef, val.risk) for coef in models]
        imparity = [np.ptp(one.fractions(val.codes)) for one in counts[1:]]
        best = choose([one.index() for one in counts[1:]], imparity, counts[0].index())
    coef = fit(part, settings[best : best + 1])[0]
    if method == "shrunken Cox":  # to the spread of DRO-COX
        robust, _ = fit_tuned(part, inner, "DRO-COX")
        coef = coef * np.std(part.X @ robust) / np.std(part.X @ coef)
    return coef, settings[best]


def parts(data: SurvivalData, attribute: str, repeat: int, fold: int) -> tuple:
    """One fold of one repeat, prepared.

    Parameters
    ----------
    data : SurvivalData
    attribute : str
    repeat, fold : int
        From 0.

    Returns
    -------
    rows, train, inner, test : int array, Part, (Part, Part), Part
        Rows of the test fold; to train; to fit and to validate while tuning; to test.
    """
    codes = data.groups[attribute]
    dealt = assign_folds(2 * codes + data.event, FOLDS, repeat)
    seed = FOLDS * repeat + fold

    def prepared(*rows: np.ndarray) -> list[Part]:
        some = [data.subset(part) for part in rows]
        features = scaled_features(*some)
        return [
            Part(one, X, one.groups[attribute], seed) for one, X in zip(some, features, strict=True)
        ]

    inside, rows = np.flatnonzero(dealt != fold), np.flatnonzero(dealt == fold)
    quarter = assign_folds(2 * codes[inside] + data.event[inside], 4, seed) == 0
    train, test = prepared(inside, rows)
    inner = prepared(inside[~quarter], inside[quarter])
    return rows, train, tuple(inner), test


def _judge(judged: Sequence[HeldOut], codes, worst) -> tuple[np.ndarray, np.ndarray]:
    """Concordance in percent, mean of the repeats, and without each patient in turn (n, 3).

    Harrell's of everybody, the second group's less the first's, and that of the worst group found.
    """
    values, without = [], []
    for one, members in zip(judged, worst, strict=True):
        found = [one.c_index(codes >= 0), one.concordance(codes == 1), one.concordance(codes == 0)]
        (c, c_i), (a, a_i), (b, b_i) = found
        w, w_i = one.concordance(members)
        values.append([c, a - b, w])
        without.append(np.column_stack([c_i, a_i - b_i, w_i]))
    return 100 * np.mean(values, axis=0), 100 * np.mean(without, axis=0)


def jobs() -> list[dict]:
    """One job for each data set and method.

    Returns
    -------
    list of dict
    """
    return [{"dataset": name, "method": method} for name in MAIN_ATTRIBUTE for method in METHODS]


def rows(dataset: str, method: str) -> pd.DataFrame:
    """A method on every patient of a data set.

    Parameters
    ----------
    dataset : {"flc", "support", "seer"}
    method : str
        A key of :data:`METHODS`.

    Returns
    -------
    DataFrame
        One row, concordances in percent: ``c``, ``ci`` (signed), ``worst`` (the worst group found
        on training patients), each with its standard error (``..._se``), its difference to Cox
        (``..._diff``) and the error of that (``..._diff_se``); ``f_a``, ``ibs`` (means of the ten
        folds), ``slope`` of calibration (the median), ``spread`` of the scores (the mean), and the
        settings ``chosen``.
    """
    data = load_dataset(dataset)
    attribute = MAIN_ATTRIBUTE[dataset]
    codes = data.groups[attribute]
    names = dict.fromkeys(("Cox", method))
    judged = {name: [] for name in names}
    worst, folds, chosen = [], [], []
    for repeat in range(REPEATS):
        scores = {name: np.empty(len(data)) for name in names}
        dealt, inside = np.empty(len(data), int), np.empty(len(data), bool)
        for fold in range(FOLDS):
            out, train, inner, test = parts(data, attribute, repeat, fold)
            dealt[out] = fold
            inside[out] = next(iter(found_groups(train.data).values()))(test.data)
            for name in names:
                coef, setting = fit_tuned(train, inner, name)
                scores[name][out] = test.X @ coef
            chosen.append(f"{setting:g}")
            folds.append(_of_fold(train, test, attribute, coef))
        worst.append(inside)
        for name in names:
            judged[name].append(HeldOut(scores[name], data.time, data.event, dealt))
    figures = {name: _judge(judged[name], codes, worst) for name in names}
    row = {
        "method": method,
        "chosen": " ".join(chosen),
        "moved": 0.0 if method in STABLE else np.nan,
    }
    errors = np.sqrt(np.diag(jackknife(figures[method][1])[0]))
    difference = figures[method][1] - figures["Cox"][1]
    apart = np.sqrt(np.diag(jackknife(difference)[0]))
    for j, name in enumerate(("c", "ci", "worst")):
        row[name] = figures[method][0][j]
        row[f"{name}_se"] = errors[j]
        row[f"{name}_diff"] = figures[method][0][j] - figures["Cox"][0][j]
        row[f"{name}_diff_se"] = apart[j]
    of_folds = pd.DataFrame(folds)
    row |= of_folds.drop(columns="slope").mean().to_dict() | {"slope": of_folds["slope"].median()}
    return pd.DataFrame([row])


def _of_fold(train: Part, test: Part, attribute: str, coef: np.ndarray) -> dict[str, float]:
    """What is judged fold by fold: F_A, the Brier score, the calibration slope, the spread."""
    scores = test.X @ coef
    judge = Judge(train.data, test.data, test.X)
    fair = judge.fairness(train.X @ coef, scores, [attribute])
    slope = minimise(scores[:, None], test.risk, 1).coef[0]
    return {
        "f_a": (fair["f_i"] + fair[f"f_g_{attribute}"] + fair["f_cap"]) / 3,
        "ibs": judge.accuracy(train.X @ coef, scores)["ibs"],
        "slope": slope if scores.std() > 0 else np.nan,
        "spread": scores.std(),
    }
