"""Groups nobody named, a study: whom do models serve that nobody could tell them about?

First patients are invented, with a minority planted among them that is different in one of five
ways; then real patients of the paper's three data sets, in groups that a third of them found.
Linear models with an adversary over patients, and the answers of :mod:`drocox.beyond.described` to
groups that are told, judged within the groups.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch

from drocox import heldout, intervals
from drocox.accuracy import concordance_index
from drocox.beyond.described import FAMILIES, SHARE, by_group, found_groups, group_dro, own_effects
from drocox.cox import cox_losses, risk_sets
from drocox.data import SurvivalData
from drocox.dro import worst_case_weights
from drocox.evaluation import scaled_features
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


def planted(design: str, minority: np.ndarray, marker: float, seed) -> SurvivalData:
    """Invented patients: eight standard normal features, and a marker that hints at the minority.

    Parameters
    ----------
    design : {"opposite", "other", "other-early", "other-late", "early"}
        What is different about the minority.
    minority : bool array of shape (n,)
    marker : float
        By how many standard deviations the mean of the marker is higher in the minority.
    seed : int or sequence of int

    Returns
    -------
    SurvivalData
        Exponential times, censored by exponential times of rate 1/2; ``minority`` is its only
        attribute in ``groups``.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((len(minority), len(NAMES)))
    X[:, -1] += marker * minority
    features, effect, level = DESIGNS[design]
    own = effect * X[:, features].sum(axis=1) + level
    f = np.where(minority, own, 0.5 * X[:, :4].sum(axis=1))
    death = rng.exponential(np.exp(-f))
    censored = rng.exponential(2.0, len(f))
    outcomes = np.minimum(death, censored), death <= censored
    frame = pd.DataFrame(X, columns=NAMES)
    return SurvivalData(design, frame, *outcomes, {"minority": minority.astype(int)})


def fits(train: SurvivalData, X, alpha: float) -> Iterator[tuple[str, np.ndarray]]:
    """Certified optima with an adversary over patients: name and coefficients.

    Parameters
    ----------
    train : SurvivalData
    X : array of shape (n, d)
        Its scaled features.
    alpha : float
        Share to protect.

    Returns
    -------
    iterator of (str, array)
    """
    risk = risk_sets(train.time, train.event)
    half = heldout.assign_folds(train.event, 2, seed=0) == 0
    settings = {
        "Cox": (1.0, "sharp", None),
        "DRO-COX": (alpha, "sharp", None),
        "DRO-COX, paper's C": (alpha, "paper", None),
        "DRO-COX (SPLIT)": (alpha, "sharp", half),
        "CVaR": (alpha, "cvar", None),
    }
    for name, (level, rule, first) in settings.items():
        found = minimise(X, risk, level, rule=rule, first=first)
        if found.gap > 1e-6 or found.separated:
            raise RuntimeError(f"{name} is not certified: gap {found.gap:.1e}")
        yield name, found.coef


def _group_fits(X, Z, train: SurvivalData, groups: list, words: str) -> Iterator[tuple]:
    """Three answers to groups that are told: name, scores of the training and of other patients.

    ``groups`` holds the masks of the members among both.
    """
    time, event = train.time, train.event
    members, others = (np.array(part) for part in zip(*groups, strict=True))
    for name, regret in (("loss", False), ("regret", True)):
        coef = group_dro(X, time, event, members, regret=regret)
        yield f"{name}, {words}", X @ coef, Z @ coef
    coef = own_effects(X, time, event, members)
    yield f"own, {words}", by_group(X, members) @ coef, by_group(Z, others) @ coef


def _planted_rows(design: str, share: float, n: int, marker: float, draw: int) -> pd.DataFrame:
    """All methods on one draw of a planted minority, judged on fresh patients of either kind."""
    seed = [list(DESIGNS).index(design), round(100 * share), n, round(10 * marker), draw]
    minority = np.arange(n) < round(share * n)
    kinds = np.arange(2 * TEST_PATIENTS) < TEST_PATIENTS
    train = planted(design, minority, marker, seed)
    test = planted(design, kinds, marker, [*seed, 1])
    X, Z = scaled_features(train, test)
    models = [(name, X @ coef, Z @ coef) for name, coef in fits(train, X, share)]
    found = [(leaf(train), leaf(test)) for leaf in found_groups(train, share=share).values()]
    models += _group_fits(X, Z, train, [(minority, kinds), (~minority, ~kinds)], "known")
    models += _group_fits(X, Z, train, found, "found")
    own = minimise(X[minority], risk_sets(train.time[minority], train.event[minority]), 1).coef
    models.append(("minority alone", X @ own, Z @ own))
    rows = []
    for name, f_train, f in models:
        row = {"method": name, "sd": f.std()}
        if name == "DRO-COX":  # whom the adversary picks
            losses = cox_losses(torch.from_numpy(f_train), train.time, train.event)
            q = worst_case_weights(losses, share, rule="sharp").numpy()
            early = train.time <= np.quantile(train.time[train.event], 0.2)
            row |= {"q_minority": q[minority].sum(), "q_first_fifth": q[early].sum()}
        expected = heldout.expected_events(train, f_train, f, test.time)
        for kind, inside in (("minority", kinds), ("majority", ~kinds)):
            row[f"c_{kind}"] = concordance_index(f[inside], test.time[inside], test.event[inside])
            row[f"oe_{kind}"] = test.event[inside].sum() / expected[inside].sum()
        rows.append(row)
    drawn = {"design": design, "share": share, "n": n, "marker": marker, "draw": draw}
    return pd.DataFrame(rows).assign(
        **drawn, purity=max(minority[mask].mean() for mask, _ in found)
    )


# Real patients --------------------------------------------------------------------------------


def lpl(judged: heldout.HeldOut, members: np.ndarray) -> tuple[float, np.ndarray]:
    """Log partial likelihood per event in the group's own risk sets, fold by fold.

    Parameters
    ----------
    judged : heldout.HeldOut
    members : bool array of shape (n,)

    Returns
    -------
    float, array of shape (n,)
        The value, and (to first order) its values without each patient in turn.
    """
    parts = np.zeros((len(members), 2))  # what is lost with each patient
    total = 0.0
    for fold in np.unique(judged.fold[members]):
        rows = np.flatnonzero(members & (judged.fold == fold))
        f = judged.scores[rows] - judged.scores[rows].max()
        event = judged.event[rows]
        at, at_risk, step = heldout.breslow_steps(np.exp(f), judged.time[rows], event)
        own = event * (f - np.log(at_risk[at]))
        total += own.sum()
        # others' risk sets shrink: log(S - h) is about log S - h / S
        others = np.exp(f) * (np.cumsum(step)[at] - event / at_risk[at])
        parts[rows] = np.column_stack([own - others, event])
    left = total - parts[:, 0], parts[:, 1].sum() - parts[:, 1]
    return total / parts[:, 1].sum(), left[0] / left[1]


CRITERIA = {"c_index": heldout.HeldOut.c_index, "lpl": lpl}
CRITERIA["calibration"] = heldout.HeldOut.calibration


def _intervals(name: str, values, without, forward=np.asarray, back=np.asarray) -> dict:
    """Columns: values of several groups, with intervals that hold for all of them at once."""
    covariance, df = intervals.jackknife(forward(without).T)
    critical, _ = intervals.simultaneous(covariance, df.min())  # the groups are of like size
    half = critical * np.sqrt(np.diag(covariance))
    ends = {name: 0.0, f"{name}_low": -half, f"{name}_high": half}
    return {column: back(forward(values) + by) for column, by in ends.items()}


def _judge(judged: dict[str, heldout.HeldOut], members: dict[str, np.ndarray]) -> pd.DataFrame:
    """All methods in the groups of one family, with intervals, and what they gain over Cox."""
    tables = []
    of_cox = {}
    for method, scored in judged.items():
        table = {"method": method, "group": list(members)}
        table["patients"] = [mask.sum() for mask in members.values()]
        table["events"] = [scored.event[mask].sum() for mask in members.values()]
        for name, metric in CRITERIA.items():
            found = [metric(scored, mask) for mask in members.values()]
            values, without = (np.array(part) for part in zip(*found, strict=True))
            table |= _intervals(name, values, without, *heldout.SCALES.get(name, ()))
            cox = of_cox.setdefault(name, (values, without))  # which comes first
            table |= _intervals(f"{name}_gain", values - cox[0], without - cox[1])
        tables.append(pd.DataFrame(table))
    return pd.concat(tables)


def _real_rows(dataset: str, third: int) -> pd.DataFrame:
    """All methods on two thirds of a data set, cross-fitted; the other third found the groups."""
    data = load_dataset(dataset)
    finds = heldout.assign_folds(data.event, 3, seed=0) == third - 1
    rest = data.subset(~finds)
    families = {family: found_groups(data.subset(finds), family) for family in FAMILIES}
    fold = heldout.assign_folds(rest.event, 5, seed=0)
    scores = defaultdict(lambda: np.empty((2, len(rest))))  # and expected events
    for k in range(5):
        train, test = rest.subset(fold != k), rest.subset(fold == k)
        X, Z = scaled_features(train, test)
        models = [(name, X @ coef, Z @ coef) for name, coef in fits(train, X, SHARE)]
        for family, groups in families.items():
            masks = [(group(train), group(test)) for group in groups.values()]
            models += _group_fits(X, Z, train, masks, family)
        for name, f_train, f in models:
            scores[name][:, fold == k] = f, heldout.expected_events(train, f_train, f, test.time)
    judged = {
        name: heldout.HeldOut(f, rest.time, rest.event, fold, expected)
        for name, (f, expected) in scores.items()
    }
    tables = [_judge(judged, {"everybody": fold >= 0}).assign(family="everybody")]
    for family, groups in families.items():
        members = {name: group(rest) for name, group in groups.items()}
        tables.append(_judge(judged, members).assign(family=family))
    return pd.concat(tables, ignore_index=True).assign(third=third)


# The study ------------------------------------------------------------------------------------

SIZES = [(0.2, 1_000, 1.0), (0.2, 4_000, 1.0), (0.2, 50_000, 1.0)]  # share, n, marker
SIZES += [(0.1, 4_000, 1.0), (0.05, 4_000, 1.0), (0.2, 4_000, 3.0)]


def jobs() -> list[dict]:
    """Draws of planted minorities, and for each data set who finds the groups.

    Returns
    -------
    list of dict
    """
    keys = ("design", "share", "n", "marker", "draw")
    drawn = [(d, *size, draw) for size in SIZES for d in DESIGNS for draw in range(1, 6)]
    out = [dict(zip(keys, values, strict=True)) for values in drawn]
    return out + [{"dataset": name, "third": k} for name in ATTRIBUTES for k in (1, 2, 3)]


def rows(**job) -> pd.DataFrame:
    """Do one job.

    Parameters
    ----------
    **job
        One of :func:`jobs`.

    Returns
    -------
    DataFrame
        A row for each method; with real patients for each method and group.
    """
    out = _real_rows(**job) if "dataset" in job else _planted_rows(**job)
    return out.assign(moved=np.where(out["method"].isin(STABLE), 0.0, np.nan))
