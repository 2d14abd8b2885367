r"""Groups nobody named: whom a model serves, and an adversary who must describe whom he picks.

Groups are found on some patients and can then be told for any others. Three families: the
intersections of the named attributes, the leaves of a tree on discordance, clusters of covariates.

The robust Cox model lets an adversary weigh *patients*, after seeing their outcomes. Here he may
weigh *groups* only, which covariates describe:

.. math:: \min_\theta \max_g \; L_g(\theta) - r_g, \qquad
          L_g(\theta) = \frac{1}{|g|} \sum_{i \in g} \ell_i(\theta), \quad r_g = 0,

with everybody in the risk sets; or by *regret*, where :math:`L_g` is the group's own Cox loss per
event, members compared with members only, and :math:`r_g = \min_\theta L_g(\theta)` what a model
of the group's own would reach. Both are maxima of a few smooth convex functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import torch
from scipy import optimize, stats
from sklearn.cluster import KMeans

from drocox import report
from drocox.accuracy import concordance_index
from drocox.cox import cox_losses, risk_sets
from drocox.data import SurvivalData
from drocox.evaluation import scaled_features
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES
from drocox.solver import minimise

MOST = 5  # groups of a family
SHARE = 0.1  # of the patients, that a group has at least
Group = Callable[[SurvivalData], np.ndarray]  # tells who is a member


# Groups ---------------------------------------------------------------------------------------


def _named(part: SurvivalData, share: float) -> dict[str, Group]:
    """The largest intersections of all named attributes."""
    found = {}
    for attribute, label, members in report._groups(part):
        if attribute == " × ".join(part.groups) and members.mean() >= share:
            cell = part.group_matrix[members][0]
            found[label] = (members.mean(), lambda data, c=cell: (data.group_matrix == c).all(1))
    largest = sorted(found, key=lambda label: -found[label][0])[:MOST]
    return {label: found[label][1] for label in largest}


def _leaves(part: SurvivalData, share: float) -> dict[str, Group]:
    """Leaves of a tree on discordance, the worst first: one half fits Cox, the other the tree."""
    first = report.assign_folds(part.event, 2, seed=0) == 0
    fit, rest = part.subset(first), part.subset(~first)
    Z_fit, Z = scaled_features(fit, rest)
    scores = Z @ minimise(Z_fit, risk_sets(fit.time, fit.event), 1).coef
    judged = report._Judged(scores, rest.time, rest.event, np.zeros(len(rest), int))
    tenth = np.ceil(10 * stats.rankdata(scores) / len(scores))
    medians = part.X.median().fillna(0)
    X = rest.X.fillna(medians)
    tree = report._grow(judged, tenth, X.to_numpy(), MOST, share)
    paths = sorted(report._paths(tree.tree_, X), key=lambda it: -tree.tree_.value.ravel()[it[0]])
    return {
        name or "everybody": lambda data, node=node: (
            tree.apply(data.X.fillna(medians).to_numpy()) == node
        )
        for node, name in paths
    }


def _clusters(part: SurvivalData, share: float) -> dict[str, Group]:
    """As many clusters of scaled covariates, up to five, as leave none below ``share``."""
    Z = scaled_features(part)[0]
    for k in range(MOST, 0, -1):
        means = KMeans(k, n_init=10, random_state=0).fit(Z)
        if np.bincount(means.labels_).min() >= share * len(Z):
            break
    found = {}
    for j, centre in enumerate(means.cluster_centers_):
        far = np.argsort(-np.abs(centre), kind="stable")[:2]
        words = [f"{'high' if centre[c] > 0 else 'low'} {part.feature_names[c]}" for c in far]
        found[f"{j + 1}: " + ", ".join(words)] = lambda data, j=j: (
            means.predict(scaled_features(part, data)[1]) == j
        )
    return found


FAMILIES = {"named": _named, "leaves": _leaves, "clusters": _clusters}


def found_groups(
    part: SurvivalData, family: str = "leaves", share: float = SHARE
) -> dict[str, Group]:
    """Groups of some patients, described so that members can be told among any patients.

    Parameters
    ----------
    part : SurvivalData
        The patients on whom groups are found; take others to judge a model by them.
    family : {"leaves", "named", "clusters"}
        Leaves of a tree on the discordance of a Cox model, worst first; intersections of the named
        attributes; clusters of covariates by k-means.
    share : float
        Smallest share of a group. There are at most five.

    Returns
    -------
    dict of str to function
        By description; the function takes a SurvivalData and returns the mask of the members.
    """
    return FAMILIES[family](part, share)


# The restricted adversary ---------------------------------------------------------------------


def _piece(X: torch.Tensor, time, event, members, regret: bool):
    """The loss of one group as a function of theta, and its floor."""
    if not regret:
        risk = risk_sets(time, event)
        inside = torch.from_numpy(members / members.sum())
        return lambda theta: inside @ cox_losses(X @ theta, risk), 0.0
    own = X[torch.from_numpy(members)]
    risk = risk_sets(time[members], event[members])
    events = int(event[members].sum())
    floor = minimise(own.numpy(), risk, 1).risk * len(own) / events
    return lambda theta: cox_losses(own @ theta, risk).sum() / events, floor


def group_dro(X, time, event, members, *, regret: bool = False) -> np.ndarray:
    r"""Coefficients with the smallest loss, or regret, of the group that has most of it.

    Solved in the form :math:`\min t` such that :math:`L_g(\theta) - r_g \le t`, by sequential
    quadratic programming; the answer is checked by its multipliers: a convex combination of the
    gradients of the worst groups vanishes, which is sufficient as all is convex.

    Parameters
    ----------
    X : array of shape (n, d)
        Scaled features.
    time, event : arrays of shape (n,)
    members : bool array of shape (k, n)
        A row for each group; they may overlap, and need not cover everybody.
    regret : bool
        Whether a group's loss is its own and measured against its own best model.

    Returns
    -------
    array of shape (d,)
    """
    tensor = torch.from_numpy(np.ascontiguousarray(X, dtype=float))
    pieces = [_piece(tensor, time, event, row, regret) for row in np.asarray(members, bool)]
    d = tensor.shape[1]
    kept = {}

    def at(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses above the floor, and their gradients."""
        key = point[:d].tobytes()
        if key not in kept:
            theta = torch.tensor(point[:d], requires_grad=True)
            values = [loss(theta) - floor for loss, floor in pieces]
            slopes = [torch.autograd.grad(value, theta)[0].numpy() for value in values]
            kept.clear()
            kept[key] = np.array([value.item() for value in values]), np.array(slopes)
        return kept[key]

    start = np.zeros(d + 1)
    start[d] = at(start)[0].max()
    last = np.eye(d + 1)[d]
    below = {
        "type": "ineq",
        "fun": lambda point: point[d] - at(point)[0],
        "jac": lambda point: last - np.pad(at(point)[1], ((0, 0), (0, 1))),
    }
    found = optimize.minimize(
        lambda point: point[d], start, jac=lambda point: last, method="SLSQP",
        constraints=[below], options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    values, slopes = at(found.x)
    worst = slopes[values > values.max() - 1e-5]
    # nonnegative multipliers of the worst groups that sum to 1 and balance their gradients
    left = optimize.nnls(np.vstack([worst.T, np.ones(len(worst))]), last)[1]
    if left > 1e-3:
        raise RuntimeError(f"group DRO has not converged: slopes of {left:.1e} are left")
    return found.x[:d]


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
TESTED = 5_000  # patients of either kind who judge a model


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


def fits(train: SurvivalData, X, alpha: float) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Certified optima with an adversary over patients: name, coefficients, the weights of q.

    Parameters
    ----------
    train : SurvivalData
    X : array of shape (n, d)
        Its scaled features.
    alpha : float
        Share to protect.

    Returns
    -------
    iterator of (str, array, array)
    """
    risk = risk_sets(train.time, train.event)
    half = report.assign_folds(train.event, 2, seed=0) == 0
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
        yield name, found.coef, found.weights / found.weights.sum()


def _planted_rows(design: str, share: float, n: int, marker: float, draw: int) -> pd.DataFrame:
    """All methods on one draw of a planted minority, judged on fresh patients of either kind."""
    seed = [list(DESIGNS).index(design), round(100 * share), n, round(10 * marker), draw]
    minority = np.arange(n) < round(share * n)
    train = planted(design, minority, marker, seed)
    test = planted(design, np.arange(2 * TESTED) < TESTED, marker, [*seed, 1])
    X, Z = scaled_features(train, test)
    fitted = [(name, coef, {
        "q_minority": q[minority].sum(),
        "q_first_fifth": q[train.time <= np.quantile(train.time[train.event], 0.2)].sum(),
    }) for name, coef, q in fits(train, X, share)]
    known = np.array([minority, ~minority])
    leaves = found_groups(train, share=share).values()
    found = np.array([group(train) for group in leaves])
    for words, members in (("known", known), ("found", found)):
        for regret in (False, True):
            coef = group_dro(X, train.time, train.event, members, regret=regret)
            fitted.append((f"{'regret' if regret else 'loss'}, {words}", coef, {}))
    own = risk_sets(train.time[minority], train.event[minority])
    fitted.append(("minority alone", minimise(X[minority], own, 1).coef, {}))
    rows = []
    for name, coef, weights in fitted:
        row = {"method": name, "norm": np.linalg.norm(coef), **weights}
        expected = report._expected(train, X @ coef, Z @ coef, test.time)
        for kind, rows_of in (("minority", slice(TESTED)), ("majority", slice(TESTED, None))):
            part = test.time[rows_of], test.event[rows_of]
            row[f"c_{kind}"] = concordance_index(Z[rows_of] @ coef, *part)
            row[f"oe_{kind}"] = part[1].sum() / expected[rows_of].sum()
        rows.append(row)
    described = dict(design=design, share=share, n=n, marker=marker, draw=draw)
    purity = max(minority[row].mean() for row in found)
    return pd.DataFrame(rows).assign(**described, events=train.event[minority].sum(), purity=purity)


# Real patients --------------------------------------------------------------------------------


def lpl(judged: report._Judged, members: np.ndarray) -> tuple[float, np.ndarray]:
    """Log partial likelihood per event in the group's own risk sets, fold by fold.

    Parameters
    ----------
    judged : report._Judged
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
        at, at_risk, step = report._breslow(np.exp(f), judged.time[rows], event)
        own = event * (f - np.log(at_risk[at]))
        total += own.sum()
        # others' risk sets shrink: log(S - h) is about log S - h / S
        others = np.exp(f) * (np.cumsum(step)[at] - event / at_risk[at])
        parts[rows] = np.column_stack([own - others, event])
    left = total - parts[:, 0], parts[:, 1].sum() - parts[:, 1]
    return total / parts[:, 1].sum(), left[0] / left[1]


def _intervals(name: str, values, without, forward, back) -> list[dict]:
    """Values of several groups with intervals that hold for all of them at once."""
    covariance, df = report.spread(forward(np.column_stack(without)))
    half = report.simultaneous(covariance, df)[0] * np.sqrt(np.diag(covariance))
    middle = forward(np.array(values))
    ends = {name: middle, f"{name}_low": middle - half, f"{name}_high": middle + half}
    return pd.DataFrame({key: back(value) for key, value in ends.items()}).to_dict("records")


def _same(values):
    return values


def _judge(judged: dict[str, report._Judged], members: dict[str, np.ndarray]) -> list[dict]:
    """All methods in the groups of one family, with intervals, and what they gain over Cox."""
    metrics = {"c_index": report._Judged.c_index, "lpl": lpl}
    metrics["calibration"] = report._Judged.calibration
    rows = []
    kept = {}
    for method, scored in judged.items():
        found = [{"method": method, "group": group} for group in members]
        for name, metric in metrics.items():
            pairs = [metric(scored, inside) for inside in members.values()]
            values, without = (np.array(part) for part in zip(*pairs, strict=True))
            kept.setdefault(name, (values, without))  # Cox comes first
            scale = report.SCALES.get(name, (_same, _same))
            more = [_intervals(name, values, without, *scale)]
            if name != "calibration" and method != "Cox":
                gain = values - kept[name][0], without - kept[name][1]
                more.append(_intervals(f"{name}_gain", *gain, _same, _same))
            for part in more:
                found = [row | new for row, new in zip(found, part, strict=True)]
        rows += found
    return rows


def _real_rows(dataset: str, third: int) -> pd.DataFrame:
    """All methods on two thirds of a data set, cross-fitted; the other third found the groups."""
    data = load_dataset(dataset)
    finds = report.assign_folds(data.event, 3, seed=0) == third - 1
    rest = data.subset(~finds)
    families = {family: found_groups(data.subset(finds), family) for family in FAMILIES}
    fold = report.assign_folds(rest.event, 5, seed=0)
    scores = {}
    expected = {}
    for k in range(5):
        train, test = rest.subset(fold != k), rest.subset(fold == k)
        X, Z = scaled_features(train, test)
        models = {name: coef for name, coef, _ in fits(train, X, SHARE)}
        for family, groups in families.items():
            members = np.array([group(train) for group in groups.values()])
            for regret in (False, True):
                coef = group_dro(X, train.time, train.event, members, regret=regret)
                models[f"{'regret' if regret else 'loss'}, {family}"] = coef
        for name, coef in models.items():
            f = Z @ coef
            scores.setdefault(name, np.empty(len(rest)))[fold == k] = f
            hazard = report._expected(train, X @ coef, f, test.time)
            expected.setdefault(name, np.empty(len(rest)))[fold == k] = hazard
    given = rest.time, rest.event, fold
    judged = {name: report._Judged(f, *given, expected[name]) for name, f in scores.items()}
    rows = []
    for family, groups in ({"everybody": {"everybody": _everybody}} | families).items():
        members = {name: group(rest) for name, group in groups.items()}
        sizes = pd.DataFrame(
            [[name, m.sum(), rest.event[m].sum()] for name, m in members.items()],
            columns=["group", "patients", "events"],
        )
        found = pd.DataFrame(_judge(judged, members)).merge(sizes, on="group")
        rows.append(found.assign(family=family, third=third))
    return pd.concat(rows, ignore_index=True)


def _everybody(data: SurvivalData) -> np.ndarray:
    return np.full(len(data), True)


# The study ------------------------------------------------------------------------------------

SIZES = [(0.2, 1_000, 1.0), (0.2, 4_000, 1.0), (0.2, 16_000, 1.0), (0.2, 50_000, 1.0)]
SIZES += [(0.1, 4_000, 1.0), (0.05, 4_000, 1.0), (0.05, 50_000, 1.0), (0.2, 4_000, 3.0)]


def jobs() -> list[dict]:
    """Draws of planted minorities, and for each data set who finds the groups.

    Returns
    -------
    list of dict
    """
    keys = ("share", "n", "marker")
    sizes = [dict(zip(keys, size, strict=True)) for size in SIZES]
    out = [{"design": design, **size, "draw": draw}
           for size in sizes for design in DESIGNS for draw in range(1, 6)]
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
    return _real_rows(**job) if "dataset" in job else _planted_rows(**job)
