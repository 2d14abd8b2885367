"""Badly served groups that nobody named: found on one half of the patients, tested on the other.

A small regression tree looks for features that go with *discordance*: the share of a patient's
pairs that the model orders wrongly, beyond what is usual for patients with like scores. In the
middle of the scores even a good model orders fewer pairs rightly. Pairs are those of Harrell's
c-index: in Algorithm B.1 two patients with equal scores who die at the same time count as ordered
rightly, so that any group with few events would look badly served where times are coarse.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from drocox.heldout import (
    DIFFERENCE_COLUMNS,
    FEWEST_EVENTS,
    Estimate,
    HeldOut,
    assign_folds,
    compare,
)

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeRegressor

LEAVES = 6  # of the tree
WORST_LEAVES = 3  # that are tested
SEARCHED = 100_000  # patients at most, to search and to test
LARGEST = float(np.finfo(np.float32).max)  # the tree's numbers are single


def grow_tree(
    of_each: np.ndarray, tenth: np.ndarray, X: np.ndarray, leaves: int, share: float = 0.1
) -> "DecisionTreeRegressor":
    """A tree on patients' discordance beyond that of patients in the same tenth of the scores.

    ``of_each`` (n, 2) holds the points and pairs of each patient. A leaf has at least ``share`` of
    the patients. Its value is the mean excess, patients weighted by their pairs.
    """
    from sklearn.tree import DecisionTreeRegressor  # here, because it takes a second to import

    counts = pd.DataFrame(of_each, columns=["points", "pairs"])
    alike = counts.groupby(tenth).transform("sum")
    excess = alike["points"] / alike["pairs"] - counts["points"] / counts["pairs"]
    tree = DecisionTreeRegressor(max_leaf_nodes=leaves, min_samples_leaf=share, random_state=0)
    return tree.fit(X, excess.fillna(0), sample_weight=counts["pairs"])


def describe_leaves(
    tree, X: pd.DataFrame, node: int = 0, path: tuple = ()
) -> Iterator[tuple[int, str]]:
    """Number and description of every leaf below a node of a fitted tree's ``tree_``.

    ``path`` leads to the node: ((feature, side), words).
    """
    if tree.children_left[node] < 0:
        # of several thresholds of a feature on one side the last is the tightest
        yield node, " and ".join(dict(path).values())
        return
    name = X.columns[tree.feature[node]]
    threshold = f"{tree.threshold[node]:.4g}"
    if not X[name].isin((0, 1)).all():
        words = [f"{name} ≤ {threshold}", f"{name} > {threshold}"]
    elif "=" in str(name):  # one label of a category
        words = [f"not {name}", str(name)]
    else:
        words = [f"{name} = 0", f"{name} = 1"]
    for side, child in enumerate((tree.children_left[node], tree.children_right[node])):
        yield from describe_leaves(tree, X, child, (*path, ((name, side), words[side])))


def find_slices(
    patients: HeldOut, X: pd.DataFrame, secret: Sequence[np.ndarray] = ()
) -> pd.DataFrame:
    """Up to three worst leaves of a tree grown on one half of the patients, tested on the other.

    Each is compared with other patients, weighted to have the group's scores. Missing features are
    replaced by medians of the first half. Leaves inside one of the ``secret`` groups (masks), or
    that leave out only patients of one, are not named.
    """
    part = assign_folds(patients.event, max(2, 2 * len(X) // SEARCHED), seed=0)
    searched = part == 0
    tested = part == 1
    rank = pd.Series(patients.scores).groupby(patients.fold).rank(pct=True)
    tenth = np.ceil(10 * rank).to_numpy()
    X = X.fillna(X[searched].median()).fillna(0).clip(-LARGEST, LARGEST)

    names: list[dict] = []
    differences: list[Estimate] = []
    found = patients.subset(searched)
    if found.harrell_pairs.any():
        tree = grow_tree(found.harrell_pairs, tenth[searched], X[searched].to_numpy(), LEAVES)
        excess = tree.tree_.value.ravel()
        leaves = sorted(describe_leaves(tree.tree_, X), key=lambda leaf: -excess[leaf[0]])
        where = tree.apply(X.to_numpy())
        others = patients.subset(tested)
        for node, name in leaves:
            inside = where == node
            if any(group[inside].all() or group[~inside].all() for group in secret):
                continue
            members = inside[tested]
            events = others.event[members].sum()
            if len(names) == WORST_LEAVES or excess[node] <= 0 or events < FEWEST_EVENTS:
                continue
            row = {"attribute": "found", "group": name, "versus": "others with like scores"}
            names.append(row | {"patients": members.sum(), "events": events})
            differences.append(_less_like_scores(others, members, tenth[tested]))
    rows = compare(names, differences)
    return pd.DataFrame(rows, columns=[*DIFFERENCE_COLUMNS, "patients", "events"])


def _less_like_scores(patients: HeldOut, members: np.ndarray, tenth: np.ndarray) -> Estimate:
    """Concordance of the members minus that of others, who are weighted to have their scores.

    The weight of a tenth of the scores is the share of the members' pairs that it has.
    """
    value, without = patients.harrell_concordance(members)[:2]
    pairs = pd.Series(patients.harrell_pairs[members, 1]).groupby(tenth[members]).sum()
    for like, weight in (pairs / pairs.sum()).items():
        other_value, other_without = patients.harrell_concordance(~members & (tenth == like))[:2]
        value -= weight * other_value
        without = without - weight * other_without
    return Estimate(value, without)
