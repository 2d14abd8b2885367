r"""Groups nobody named: whom a model serves, and an adversary who must describe whom he picks.

Groups are found on some patients and can then be told for any others. Three families: the
intersections of the named attributes, the leaves of a tree on discordance, clusters of covariates.

The robust Cox model lets an adversary weigh *patients*, after seeing their outcomes. Here he may
weigh *groups* only, which covariates describe:

.. math:: \min_\theta \; \max_g \, [L_g(\theta) - r_g] + \varepsilon L(\theta), \qquad
          L_g(\theta) = \frac{1}{|g|} \sum_{i \in g} \ell_i(\theta), \quad r_g = 0,

with everybody in the risk sets; or by *regret*, where :math:`L_g` is the group's own Cox loss per
event, members compared with members only, and :math:`r_g = \min_\theta L_g(\theta)` what a model
of the group's own would reach. Both are maxima of a few smooth convex functions. The Cox loss
:math:`L` of everybody per event, times a small :math:`\varepsilon`, settles what groups cannot see:
a feature that is constant in each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import torch
from scipy import optimize, stats
from sklearn.cluster import KMeans

from drocox import _checks, report
from drocox.accuracy import concordance_index
from drocox.cox import cox_losses, risk_sets
from drocox.data import SurvivalData
from drocox.dro import worst_case_weights
from drocox.evaluation import scaled_features
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES
from drocox.solver import minimise

MOST = 5  # groups of a family
EPSILON = 0.01  # of everybody's loss, beside the worst group's
SHARE = 0.1  # of the patients, that a group has at least
Group = Callable[[SurvivalData], np.ndarray]  # tells who is a member


# Groups ---------------------------------------------------------------------------------------


def _named(part: SurvivalData, share: float) -> dict[str, Group]:
    """The largest intersections of all named attributes."""
    cells, counts = np.unique(part.group_matrix, axis=0, return_counts=True)
    found = {}
    for k in np.argsort(-counts, kind="stable")[:MOST]:
        labels = zip(part.group_labels.values(), cells[k], strict=True)
        if counts[k] >= share * len(part):
            found[", ".join(names[code] for names, code in labels)] = lambda data, cell=cells[k]: (
                data.group_matrix == cell
            ).all(axis=1)
    return found


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
        name: lambda data, node=node: tree.apply(data.X.fillna(medians).to_numpy()) == node
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


def _own_loss(X: torch.Tensor, time, event, members) -> Callable[[torch.Tensor], torch.Tensor]:
    """Cox loss per event among some patients, as a function of theta."""
    own = X[torch.from_numpy(members)]
    risk = risk_sets(time[members], event[members])
    return lambda theta: cox_losses(own @ theta, risk).sum() / risk.event.sum()


def _pieces(X: torch.Tensor, time, event, members, regret: bool) -> list[Callable]:
    """What the adversary may choose from: functions of theta, one for each group."""
    if not regret:
        risk = risk_sets(time, event)
        shares = torch.from_numpy(members / members.sum(axis=1, keepdims=True))
        return [lambda theta, row=row: row @ cox_losses(X @ theta, risk) for row in shares]
    out = []
    for row in members:
        best = minimise(X.numpy()[row], risk_sets(time[row], event[row]), 1)
        floor = best.risk * row.sum() / event[row].sum()
        loss = _own_loss(X, time, event, row)
        out.append(lambda theta, loss=loss, floor=floor: loss(theta) - floor)
    return out


def group_dro(X, time, event, members, *, regret: bool = False) -> np.ndarray:
    r"""Coefficients with the smallest loss, or regret, of the group that has most of it.

    Solved in the form :math:`\min t + \varepsilon L(\theta)` such that :math:`L_g(\theta) - r_g \le
    t`, by sequential quadratic programming. The answer is checked: weights :math:`\lambda_g \ge 0`
    of the worst groups that sum to 1 have :math:`\sum_g \lambda_g \nabla L_g + \varepsilon \nabla L
    = 0`, which is sufficient as all is convex.

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
    X = torch.from_numpy(_checks.numbers(X, "X", 2))
    time, event = _checks.outcomes(time, event)
    members = np.atleast_2d(np.asarray(members, bool))
    if members.shape[1] != len(time) or not members[:, event].any(axis=1).all():
        said = f"members has shape {members.shape} and needs (groups, {len(time)})"
        raise ValueError(f"{said}, with an event in each group; merge or drop groups without")
    pieces = _pieces(X, time, event, members, regret)
    pieces.append(_own_loss(X, time, event, np.full(len(time), True)))  # L
    d = X.shape[1]
    kept = {}

    def at(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and gradients of the pieces."""
        key = point[:d].tobytes()
        if key not in kept:
            theta = torch.tensor(point[:d], requires_grad=True)
            values = [piece(theta) for piece in pieces]
            slopes = [torch.autograd.grad(value, theta)[0].numpy() for value in values]
            kept.clear()
            kept[key] = np.array([value.item() for value in values]), np.array(slopes)
        return kept[key]

    last = np.eye(d + 1)[d]
    start = at(np.zeros(d))[0][:-1].max() * last
    below = {
        "type": "ineq",
        "fun": lambda point: point[d] - at(point)[0][:-1],
        "jac": lambda point: last - np.pad(at(point)[1][:-1], ((0, 0), (0, 1))),
    }
    found = optimize.minimize(
        lambda point: point[d] + EPSILON * at(point)[0][-1],
        start,
        jac=lambda point: last + EPSILON * np.append(at(point)[1][-1], 0.0),
        method="SLSQP",
        constraints=[below],
        options={"maxiter": 500, "ftol": 1e-15},
    )
    values, slopes = at(found.x)
    worst = slopes[:-1][values[:-1] > values[:-1].max() - 1e-6]
    balance = np.append(-EPSILON * slopes[-1], 1.0)
    left = optimize.nnls(np.vstack([worst.T, np.ones(len(worst))]), balance)[1]
    if left > 1e-5:
        raise RuntimeError(f"group DRO has not converged: a slope of {left:.0e} is left")
    return found.x[:d]


def by_group(X: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Features that give each group a level and coefficients of its own.

    Parameters
    ----------
    X : array of shape (n, d)
    members : bool array of shape (k, n)

    Returns
    -------
    array of shape (n, d + k (d + 1))
    """
    more = np.column_stack([X, np.ones(len(X))])
    return np.hstack([X, *(row[:, None] * more for row in np.asarray(members))])


def own_effects(X: np.ndarray, time, event, members: np.ndarray) -> np.ndarray:
    r"""Coefficients of a Cox model in which groups may differ from the others.

    The sum of losses plus :math:`\frac{1}{2 \tau^2} \lVert \delta \rVert^2`, where :math:`\delta`
    are the coefficients that only groups have: a normal prior of deviation :math:`\tau = 1/2` draws
    them together, and keeps them finite where a few deaths could be told apart completely.

    Parameters
    ----------
    X, time, event, members
        As in :func:`group_dro`.

    Returns
    -------
    array of shape (d + k (d + 1),)
        Of the features that :func:`by_group` makes.
    """
    wide = torch.from_numpy(by_group(X, members))
    risk = risk_sets(time, event)
    events = float(np.sum(event))

    def value(point: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.tensor(point, requires_grad=True)
        prior = 2 * (theta[X.shape[1] :] ** 2).sum()
        out = (cox_losses(wide @ theta, risk).sum() + prior) / events
        return out.item(), torch.autograd.grad(out, theta)[0].numpy()

    how = {"maxiter": 5_000, "maxfun": 10_000, "ftol": 0.0, "gtol": 1e-9}
    found = optimize.minimize(
        value, np.zeros(wide.shape[1]), jac=True, method="L-BFGS-B", options=how
    )
    return found.x


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
    kinds = np.arange(2 * TESTED) < TESTED
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
        expected = report._expected(train, f_train, f, test.time)
        for kind, inside in (("minority", kinds), ("majority", ~kinds)):
            row[f"c_{kind}"] = concordance_index(f[inside], test.time[inside], test.event[inside])
            row[f"oe_{kind}"] = test.event[inside].sum() / expected[inside].sum()
        rows.append(row)
    drawn = {"design": design, "share": share, "n": n, "marker": marker, "draw": draw}
    return pd.DataFrame(rows).assign(
        **drawn, purity=max(minority[mask].mean() for mask, _ in found)
    )


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


METRICS = {"c_index": report._Judged.c_index, "lpl": lpl}
METRICS["calibration"] = report._Judged.calibration


def _intervals(name: str, values, without, forward=np.asarray, back=np.asarray) -> dict:
    """Columns: values of several groups, with intervals that hold for all of them at once."""
    covariance, df = report.spread(forward(without).T)
    half = report.simultaneous(covariance, df)[0] * np.sqrt(np.diag(covariance))
    ends = {name: 0.0, f"{name}_low": -half, f"{name}_high": half}
    return {column: back(forward(values) + by) for column, by in ends.items()}


def _judge(judged: dict[str, report._Judged], members: dict[str, np.ndarray]) -> pd.DataFrame:
    """All methods in the groups of one family, with intervals, and what they gain over Cox."""
    tables = []
    of_cox = {}
    for method, scored in judged.items():
        table = {"method": method, "group": list(members)}
        table["patients"] = [mask.sum() for mask in members.values()]
        table["events"] = [scored.event[mask].sum() for mask in members.values()]
        for name, metric in METRICS.items():
            found = [metric(scored, mask) for mask in members.values()]
            values, without = (np.array(part) for part in zip(*found, strict=True))
            table |= _intervals(name, values, without, *report.SCALES.get(name, ()))
            cox = of_cox.setdefault(name, (values, without))  # which comes first
            table |= _intervals(f"{name}_gain", values - cox[0], without - cox[1])
        tables.append(pd.DataFrame(table))
    return pd.concat(tables)


def _real_rows(dataset: str, third: int) -> pd.DataFrame:
    """All methods on two thirds of a data set, cross-fitted; the other third found the groups."""
    data = load_dataset(dataset)
    finds = report.assign_folds(data.event, 3, seed=0) == third - 1
    rest = data.subset(~finds)
    families = {family: found_groups(data.subset(finds), family) for family in FAMILIES}
    fold = report.assign_folds(rest.event, 5, seed=0)
    scores = defaultdict(lambda: np.empty((2, len(rest))))  # and expected events
    for k in range(5):
        train, test = rest.subset(fold != k), rest.subset(fold == k)
        X, Z = scaled_features(train, test)
        models = [(name, X @ coef, Z @ coef) for name, coef in fits(train, X, SHARE)]
        for family, groups in families.items():
            masks = [(group(train), group(test)) for group in groups.values()]
            models += _group_fits(X, Z, train, masks, family)
        for name, f_train, f in models:
            scores[name][:, fold == k] = f, report._expected(train, f_train, f, test.time)
    judged = {
        name: report._Judged(f, rest.time, rest.event, fold, expected)
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
    return _real_rows(**job) if "dataset" in job else _planted_rows(**job)
