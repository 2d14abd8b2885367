r"""Groups described by covariates: found by a search, and protected by an adversary over groups.

Groups are found on some patients and can then be recognised among any others. There are four kinds:
the groups of each named attribute, their intersections, the leaves of a tree on discordance, and
clusters of covariates.

In DRO-COX the adversary weighs *patients*, after seeing their outcomes. Here the adversary weighs
only *groups*, which covariates describe:

.. math:: \min_\theta \; \max_g \, [L_g(\theta) - r_g] + \varepsilon L(\theta), \qquad
          L_g(\theta) = \frac{1}{|g|} \sum_{i \in g} \ell_i(\theta), \quad r_g = 0,

with everybody in the risk sets; or by *regret*, where :math:`L_g` is the group's own Cox loss per
event, members compared with members only, and :math:`r_g = \min_\theta L_g(\theta)` is the loss of
a model fitted to the group alone. Both are maxima of a few smooth convex functions. The Cox loss
:math:`L` of everybody per event, times a small :math:`\varepsilon`, determines the coefficients
that no group does: those of a feature that is constant in each group.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy import optimize, stats
from sklearn.cluster import KMeans

from drocox import _checks
from drocox.auditing.slices import describe_leaves, grow_tree
from drocox.cox import cox_losses, risk_sets
from drocox.data import SurvivalData
from drocox.evaluation import scaled_features
from drocox.heldout import HeldOut, assign_folds
from drocox.solver import minimise

MOST = 5  # groups of a family
EPSILON = 0.01  # of everybody's loss, beside the worst group's
SHARE = 0.1  # of the patients, that a group has at least
Group = Callable[[SurvivalData], np.ndarray]  # gives the mask of its members


# Groups ---------------------------------------------------------------------------------------


def _attributes(part: SurvivalData, share: float) -> dict[str, Group]:
    """The groups of each named attribute."""
    groups = {}
    for attribute, codes in part.groups.items():
        for code, name in enumerate(part.group_labels[attribute]):
            if np.mean(codes == code) >= share:
                groups[name] = lambda data, attribute=attribute, code=code: (
                    data.groups[attribute] == code
                )
    return groups


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
    """Leaves of a tree on discordance, worst first; Cox and tree are fitted to halves."""
    first = assign_folds(part.event, 2, seed=0) == 0
    fit, rest = part.subset(first), part.subset(~first)
    Z_fit, Z = scaled_features(fit, rest)
    scores = Z @ minimise(Z_fit, risk_sets(fit.time, fit.event), 1).coef
    tested = HeldOut(scores, rest.time, rest.event, np.zeros(len(rest), int))
    tenth = np.ceil(10 * stats.rankdata(scores) / len(scores))
    medians = part.X.median().fillna(0)
    X = rest.X.fillna(medians)
    tree = grow_tree(tested.all_pairs, tenth, X.to_numpy(), MOST, share)
    paths = sorted(describe_leaves(tree.tree_, X), key=lambda it: -tree.tree_.value.ravel()[it[0]])
    return {
        name: lambda data, node=node: tree.apply(data.X.fillna(medians).to_numpy()) == node
        for node, name in paths
    }


def _clusters(part: SurvivalData, share: float) -> dict[str, Group]:
    """K-means clusters of scaled covariates: as many, up to five, as leave none below ``share``."""
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


FAMILIES = {"attributes": _attributes, "named": _named, "leaves": _leaves, "clusters": _clusters}


def found_groups(
    part: SurvivalData, family: str = "leaves", share: float = SHARE
) -> dict[str, Group]:
    """Groups found on ``part``: functions from SurvivalData to a mask, by description.

    Evaluate a model by them on other patients. The families are "leaves" of a tree on the
    discordance of a Cox model, worst first; "attributes", the groups of each named attribute, which
    overlap; "named", intersections of the named attributes; "clusters" of covariates by k-means.
    ``share`` is the smallest share of a group; except for attributes there are at most five.
    """
    return FAMILIES[family](part, share)


# The restricted adversary ---------------------------------------------------------------------


def _own_loss(X: torch.Tensor, time, event, members) -> Callable[[torch.Tensor], torch.Tensor]:
    """Cox loss per event among some patients, as a function of theta."""
    own = X[torch.from_numpy(members)]
    risk = risk_sets(time[members], event[members])
    return lambda theta: cox_losses(own @ theta, risk).sum() / risk.event.sum()


def _pieces(X: torch.Tensor, time, event, members, regret: bool) -> list[Callable]:
    """The functions of theta whose maximum is minimised, one for each group."""
    if not regret:
        risk = risk_sets(time, event)
        shares = torch.from_numpy(members / members.sum(axis=1, keepdims=True))
        return [lambda theta, row=row: row @ cox_losses(X @ theta, risk) for row in shares]
    out = []
    for row in members:
        best = minimise(X.numpy()[row], risk_sets(time[row], event[row]), 1)
        least = best.risk * row.sum() / event[row].sum()
        loss = _own_loss(X, time, event, row)
        out.append(lambda theta, loss=loss, least=least: loss(theta) - least)
    return out


def group_dro(X, time, event, members, *, regret: bool = False) -> np.ndarray:
    r"""Coefficients that minimise the largest loss, or regret, of any group.

    Solved in the form :math:`\min t + \varepsilon L(\theta)` such that :math:`L_g(\theta) - r_g \le
    t` by sequential quadratic programming. The solution is checked: weights :math:`\lambda_g \ge 0`
    of the worst groups that sum to 1 have :math:`\sum_g \lambda_g \nabla L_g + \varepsilon \nabla L
    = 0`, which is sufficient because the problem is convex. Groups (rows of ``members``) may
    overlap and need not cover everybody.
    """
    X = torch.from_numpy(_checks.numbers(X, "X", 2))
    time, event = _checks.outcomes(time, event)
    members = np.atleast_2d(np.asarray(members, bool))
    if members.shape[1] != len(time) or not members[:, event].any(axis=1).all():
        raise ValueError(
            f"members has shape {members.shape} and needs (groups, {len(time)}), with an event in "
            "each group; merge or drop groups without"
        )
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
    """Features, (n, d + k (d + 1)), that give k groups their own level and coefficients."""
    more = np.column_stack([X, np.ones(len(X))])
    return np.hstack([X, *(row[:, None] * more for row in np.asarray(members))])


def own_effects(X: np.ndarray, time, event, members: np.ndarray) -> np.ndarray:
    r"""Coefficients for :func:`by_group`: a Cox model in which groups may differ.

    Minimises the sum of losses plus :math:`\frac{1}{2 \tau^2} \lVert \delta \rVert^2`, where
    :math:`\delta` are the coefficients of the groups: a normal prior with standard deviation
    :math:`\tau = 1/2` shrinks them towards 0 and keeps them finite under separation.
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
