"""Groups found on some patients by their covariates, and recognised among any others.

There are four kinds: the groups of each named attribute, their intersections, the leaves of a tree
on discordance, and clusters of covariates.
"""

from collections.abc import Callable

import numpy as np
from scipy import stats
from sklearn.cluster import KMeans

from drocox.auditing.slices import describe_leaves, grow_tree
from drocox.cox import risk_sets
from drocox.data import SurvivalData
from drocox.evaluation import scaled_features
from drocox.heldout import HeldOut, assign_folds
from drocox.solver import minimise

MOST = 5  # groups of a family
SHARE = 0.1  # of the patients, that a group has at least
Group = Callable[..., np.ndarray]  # of a SurvivalData: the mask of its members


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
