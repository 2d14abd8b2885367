r"""Groups nobody named, a study: which groups do models serve that were given no groups?

First with simulated patients, among whom a minority is planted that differs in one of five ways;
then with the patients of the paper's three data sets, in groups that were found on a third of them.
Linear models with an adversary over patients, and :mod:`drocox.beyond.group_models`,
which are given groups, are evaluated within the groups.

Simulated patients die with hazard :math:`h = e^f` and are censored with hazard :math:`r`, so that
the death of patient i is observed with probability :math:`h_i / (h_i + r)`. The scores :math:`f` of
majority and minority are normal with variance 1 and mean 0 or the minority's level :math:`b`: the
share of observed deaths is, with :math:`Z` standard normal and :math:`s` the minority's share,

.. math:: (1 - s) \, E \sigma(Z - \log r) + s \, E \sigma(Z + b - \log r), \qquad
          \sigma(z) = \frac{1}{1 + e^{-z}} .
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import optimize, special

from drocox import heldout
from drocox.accuracy import concordance_index
from drocox.beyond.group_models import by_group, group_dro, own_effects
from drocox.beyond.group_search import FAMILIES, found_groups
from drocox.cox import cox_losses, risk_sets
from drocox.data import SurvivalData
from drocox.dro import worst_case_weights
from drocox.evaluation import scaled_features
from drocox.heldout import intervals
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES
from drocox.solver import minimise

# of the others, found by general solvers or at kinks, the last digits depend on the platform
STABLE = ("Cox", "DRO-COX", "DRO-COX, paper's C", "DRO-COX (SPLIT)", "minority alone")


# Planted minorities ---------------------------------------------------------------------------

# features whose coefficients are 1/2 or -1/2 for the minority, and the logarithm of the factor by
# which its hazards are larger; for the majority the first four have 1/2
DESIGNS = {
    "opposite": (slice(0, 4), -0.5, 0.0),
    "other": (slice(4, 8), 0.5, 0.0),
    "other-early": (slice(4, 8), 0.5, 1.5),
    "other-late": (slice(4, 8), 0.5, -1.5),
    "early": (slice(0, 4), 0.5, 1.5),
}
NAMES = [f"x{j + 1}" for j in range(8)] + ["marker"]
TEST_PATIENTS = 5_000  # of either kind, on whom a model is evaluated
CENSORING = 0.5  # hazard of being censored, where nothing else is said
NODES = 80  # of the quadrature over normal scores


def share_of_events(design: str, share: float, rate: float) -> float:
    """Expected share of observed deaths when ``rate`` is the hazard of censoring."""
    if rate == 0:
        return 1.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    level = DESIGNS[design][2]
    majority = weights @ special.expit(nodes - np.log(rate))
    minority = weights @ special.expit(nodes + level - np.log(rate))
    return (1 - share) * majority + share * minority


def censoring_rate(design: str, share: float, events: float) -> float:
    """Hazard of censoring at which a share ``events`` of the deaths is observed."""
    if events == 1:
        return 0.0

    def too_many(log_rate: float) -> float:
        return share_of_events(design, share, np.exp(log_rate)) - events

    return float(np.exp(optimize.brentq(too_many, -15, 15)))


def planted(
    design: str, minority: np.ndarray, marker: float, seed, rate: float = CENSORING
) -> SurvivalData:
    """Simulated patients: eight standard normal features and a marker of the minority.

    The mean of the marker is higher in the minority by ``marker`` standard deviations, and
    ``design`` says how the minority's hazard differs. Times are exponential and censored by
    exponential times of hazard ``rate``, where 0 follows everybody until death; with the same seed,
    features and deaths are the same at every rate. The only attribute in ``groups`` is
    ``minority``.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((len(minority), len(NAMES)))
    X[:, -1] += marker * minority
    features, effect, level = DESIGNS[design]
    of_minority = effect * X[:, features].sum(axis=1) + level
    f = np.where(minority, of_minority, 0.5 * X[:, :4].sum(axis=1))
    death = rng.exponential(np.exp(-f))
    mean_follow_up = 1 / rate if rate > 0 else np.inf
    censored = rng.exponential(1.0, len(f)) * mean_follow_up
    outcomes = np.minimum(death, censored), death <= censored
    frame = pd.DataFrame(X, columns=NAMES)
    return SurvivalData(design, frame, *outcomes, {"minority": minority.astype(int)})


def fits(train: SurvivalData, X, alphas: Sequence[float]) -> Iterator[tuple]:
    """Certified optima with an adversary over patients: name, alpha and coefficients.

    Cox comes first, with alpha 1. CVaR is left out where alpha is at least the share of events,
    because it is then the same as Cox.
    """
    risk = risk_sets(train.time, train.event)
    half = heldout.assign_folds(train.event, 2, seed=0) == 0

    def certified(alpha: float, rule: str, first: np.ndarray | None) -> np.ndarray:
        solution = minimise(X, risk, alpha, rule=rule, first=first)
        if solution.gap > 1e-6 or solution.separated:
            raise RuntimeError(
                f"rule {rule}, alpha {alpha} is not certified: gap {solution.gap:.1e}"
            )
        return solution.coef

    yield "Cox", 1.0, certified(1.0, "sharp", None)
    for alpha in alphas:
        yield "DRO-COX", alpha, certified(alpha, "sharp", None)
        yield "DRO-COX, paper's C", alpha, certified(alpha, "paper", None)
        yield "DRO-COX (SPLIT)", alpha, certified(alpha, "sharp", half)
        if alpha < train.event.mean():  # else it is Cox
            yield "CVaR", alpha, certified(alpha, "cvar", None)


def _group_fits(X, Z, train: SurvivalData, groups: list, words: str) -> Iterator[tuple]:
    """Three models that are given groups: name, scores of the training and of other patients.

    ``groups`` holds the members' masks among both.
    """
    time, event = train.time, train.event
    members = np.array([inside for inside, _ in groups])
    others = np.array([inside for _, inside in groups])
    for name, regret in (("loss", False), ("regret", True)):
        coef = group_dro(X, time, event, members, regret=regret)
        yield f"{name}, {words}", X @ coef, Z @ coef
    coef = own_effects(X, time, event, members)
    yield f"own, {words}", by_group(X, members) @ coef, by_group(Z, others) @ coef


def seed_of(design: str, share: float, n: int, marker: float, draw: int) -> list[int]:
    """Seed of the training patients of a draw; with a 1 appended, that of the test patients."""
    return [list(DESIGNS).index(design), round(100 * share), n, round(10 * marker), draw]


def minority_alone(train: SurvivalData, X) -> np.ndarray:
    """Coefficients of a Cox model that is fitted to the minority only."""
    inside = train.groups["minority"] == 1
    return minimise(X[inside], risk_sets(train.time[inside], train.event[inside]), 1).coef


def _planted_rows(design: str, share: float, n: int, marker: float, draw: int) -> pd.DataFrame:
    """All methods on one draw of a planted minority, evaluated on fresh patients of both groups."""
    seed = seed_of(design, share, n, marker, draw)
    minority = np.arange(n) < round(share * n)
    kinds = np.arange(2 * TEST_PATIENTS) < TEST_PATIENTS
    train = planted(design, minority, marker, seed)
    test = planted(design, kinds, marker, [*seed, 1])
    X, Z = scaled_features(train, test)
    models = [(name, X @ coef, Z @ coef) for name, _, coef in fits(train, X, [share])]
    drawn = {"design": design, "share": share, "n": n, "marker": marker, "draw": draw}
    drawn["seen"] = train.event.mean()
    if (share, n) == TOLD_SIZE:
        known = [(minority, kinds), (~minority, ~kinds)]
        leaves = [(leaf(train), leaf(test)) for leaf in found_groups(train, share=share).values()]
        models += _group_fits(X, Z, train, known, "known")
        models += _group_fits(X, Z, train, leaves, "found")
        drawn["purity"] = max(minority[inside].mean() for inside, _ in leaves)
    coef = minority_alone(train, X)
    models.append(("minority alone", X @ coef, Z @ coef))
    rows = []
    for name, f_train, f in models:
        row = {"method": name, "sd": f.std()}
        if name == "DRO-COX":
            row |= weight_of(train, f_train, share)
        expected = heldout.expected_events(train, f_train, f, test.time)
        for kind, inside in (("minority", kinds), ("majority", ~kinds)):
            row[f"c_{kind}"] = concordance_index(f[inside], test.time[inside], test.event[inside])
            row[f"oe_{kind}"] = test.event[inside].sum() / expected[inside].sum()
        rows.append(row)
    return pd.DataFrame(rows).assign(**drawn)


def weight_of(train: SurvivalData, scores: np.ndarray, alpha: float) -> dict[str, float]:
    """The adversary's weight on the minority and on the first fifth of deaths (sharp constant)."""
    losses = cox_losses(torch.from_numpy(scores), train.time, train.event)
    q = worst_case_weights(losses, alpha, rule="sharp").numpy()
    early = train.time <= np.quantile(train.time[train.event], 0.2)
    inside = train.groups["minority"] == 1
    return {"q_minority": q[inside].sum(), "q_first_fifth": q[early].sum()}


# Real patients --------------------------------------------------------------------------------


def lpl(tested: heldout.HeldOut, members: np.ndarray) -> tuple[float, np.ndarray]:
    """Log partial likelihood per event in the group's own risk sets, and its jackknife values.

    Computed fold by fold; the value without each patient is a first-order approximation.
    """
    parts = np.zeros((len(members), 2))  # what is lost with each patient
    total = 0.0
    for fold in np.unique(tested.fold[members]):
        rows = np.flatnonzero(members & (tested.fold == fold))
        f = tested.scores[rows] - tested.scores[rows].max()
        event = tested.event[rows]
        at, at_risk, step = heldout.breslow_steps(np.exp(f), tested.time[rows], event)
        own = event * (f - np.log(at_risk[at]))
        total += own.sum()
        # others' risk sets shrink: log(S - h) is about log S - h / S
        others = np.exp(f) * (np.cumsum(step)[at] - event / at_risk[at])
        parts[rows] = np.column_stack([own - others, event])
    left = total - parts[:, 0], parts[:, 1].sum() - parts[:, 1]
    return total / parts[:, 1].sum(), left[0] / left[1]


CRITERIA: dict[str, tuple[Callable, ...]] = {  # with the scale of its intervals, there and back
    "c_index": (heldout.HeldOut.c_index, special.logit, special.expit),
    "lpl": (lpl,),
    "calibration": (heldout.HeldOut.calibration, np.log, np.exp),
}


def _intervals(name: str, values, without, forward=np.asarray, back=np.asarray) -> dict:
    """Columns with the values of several groups and simultaneous intervals."""
    covariance, df = intervals.jackknife(forward(without).T)
    critical, _ = intervals.simultaneous(covariance, df)
    half = critical * np.sqrt(np.diag(covariance))
    ends = {name: 0.0, f"{name}_low": -half, f"{name}_high": half}
    return {column: back(forward(values) + by) for column, by in ends.items()}


def _gains(
    tested: dict[tuple[str, float | None], heldout.HeldOut], members: dict[str, np.ndarray]
) -> pd.DataFrame:
    """All models in the groups of one family, with intervals, and their gains over Cox.

    Models are identified by method and alpha (None if they have none). Intervals are simultaneous
    over the groups of one family, not over several families or models.
    """
    tables = []
    of_cox: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for (method, alpha), scored in tested.items():
        table: dict[str, Any] = {"method": method, "group": list(members)}
        table["alpha"] = np.nan if alpha is None else alpha
        table["patients"] = [mask.sum() for mask in members.values()]
        table["events"] = [scored.event[mask].sum() for mask in members.values()]
        for name, (metric, *scale) in CRITERIA.items():
            estimates = [metric(scored, mask) for mask in members.values()]
            values = np.array([one[0] for one in estimates])
            without = np.array([one[1] for one in estimates])
            table |= _intervals(name, values, without, *scale)
            cox_values, cox_without = of_cox.setdefault(name, (values, without))  # it comes first
            table |= _intervals(f"{name}_gain", values - cox_values, without - cox_without)
        tables.append(pd.DataFrame(table))
    return pd.concat(tables)


def _real_rows(dataset: str, third: int) -> pd.DataFrame:
    """All models cross-fitted on two thirds of a data set; groups come from the other third."""
    data = load_dataset(dataset)
    finds = heldout.assign_folds(data.event, 3, seed=0) == third - 1
    rest = data.subset(~finds)
    families = {family: found_groups(data.subset(finds), family) for family in FAMILIES}
    fold = heldout.assign_folds(rest.event, 5, seed=0)
    # and expected events
    scores: dict[tuple, np.ndarray] = defaultdict(lambda: np.empty((2, len(rest))))
    for k in range(5):
        train, test = rest.subset(fold != k), rest.subset(fold == k)
        X, Z = scaled_features(train, test)
        models = []
        for name, alpha, coef in fits(train, X, REAL_ALPHAS):
            models.append((name, alpha, X @ coef, Z @ coef))
        for family in TOLD_FAMILIES:
            masks = [(group(train), group(test)) for group in families[family].values()]
            for name, f_train, f in _group_fits(X, Z, train, masks, family):
                models.append((name, None, f_train, f))
        for name, alpha, f_train, f in models:
            expected = heldout.expected_events(train, f_train, f, test.time)
            scores[name, alpha][:, fold == k] = f, expected
    tested = {
        model: heldout.HeldOut(f, rest.time, rest.event, fold, expected)
        for model, (f, expected) in scores.items()
    }
    tables = [_gains(tested, {"everybody": fold >= 0}).assign(family="everybody")]
    for family, groups in families.items():
        members = {name: group(rest) for name, group in groups.items()}
        tables.append(_gains(tested, members).assign(family=family))
    return pd.concat(tables, ignore_index=True).assign(third=third)


# The study ------------------------------------------------------------------------------------

SIZES = [(0.2, 1_000, 1.0), (0.2, 4_000, 1.0), (0.2, 50_000, 1.0)]  # share, n, marker
SIZES += [(0.1, 4_000, 1.0), (0.05, 4_000, 1.0), (0.2, 4_000, 3.0)]
TOLD_SIZE = (0.2, 4_000)  # share and n of the draws in which some models are given the groups
REAL_ALPHAS = (0.1, 0.2, 0.5)  # shares that models of real patients protect
TOLD_FAMILIES = ("named", "leaves", "clusters")  # families whose groups some models are given


def jobs() -> list[dict]:
    """Draws of planted minorities and, for each data set, the third on which groups are found."""
    keys = ("design", "share", "n", "marker", "draw")
    drawn = [(d, *size, draw) for size in SIZES for d in DESIGNS for draw in range(1, 6)]
    out = [dict(zip(keys, values, strict=True)) for values in drawn]
    return out + [{"dataset": name, "third": k} for name in ATTRIBUTES for k in (1, 2, 3)]


def rows(**job) -> pd.DataFrame:
    """Run one job: a row for each method, or with real patients for each method and group."""
    out = _real_rows(**job) if "dataset" in job else _planted_rows(**job)
    return out.assign(moved=np.where(out["method"].isin(STABLE), 0.0, np.nan))
