"""From a data set to one repeat that is ready for training and evaluation: splits, order, scaling.

The differences between protocols are read from :data:`drocox.paper.protocol.PROCEDURES`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from drocox.cox import RiskSets, risk_sets
from drocox.data import SurvivalData
from drocox.evaluation import Judge, scaled_features
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import PROCEDURES, SORTED_BY, Procedure


def introsort_order(values) -> np.ndarray:
    """Positions that sort ``values`` as a plain introsort leaves them, ties included.

    Median of three, Hoare partition, insertion sort for runs of at most 16: NumPy's default
    ``argsort`` where it has no vector instructions. Its order of ties decides the fourth digit of
    published numbers, so it is spelt out here instead of depending on the machine.
    """
    v = np.asarray(values, dtype=float).tolist()
    order = list(range(len(v)))
    todo = [(0, len(v) - 1)]
    while todo:
        low, high = todo.pop()
        while high - low >= 16:
            middle = low + (high - low) // 2
            for a, b in ((middle, low), (high, middle), (middle, low)):
                if v[order[a]] < v[order[b]]:
                    order[a], order[b] = order[b], order[a]
            pivot = v[order[middle]]
            order[middle], order[high - 1] = order[high - 1], order[middle]
            i = low
            j = high - 1
            while True:
                i += 1
                while v[order[i]] < pivot:
                    i += 1
                j -= 1
                while pivot < v[order[j]]:
                    j -= 1
                if i >= j:
                    break
                order[i], order[j] = order[j], order[i]
            order[i], order[high - 1] = order[high - 1], order[i]
            todo.append((i + 1, high))
            high = i - 1
        order[low : high + 1] = sorted(order[low : high + 1], key=v.__getitem__)
    return np.array(order)


def sorted_by_group(data: SurvivalData) -> SurvivalData:
    """Impute by the medians of each intersectional group, and sort the rows by group.

    The first key of ``SORTED_BY`` varies slowest; rows keep the file's order inside a group.
    """
    keys = [data.groups[name] for name in SORTED_BY[data.name]]
    cell = np.ravel_multi_index(keys, [2] * len(keys))
    filled = data.X.fillna(data.X.groupby(cell).transform("median"))
    return replace(data, X=filled).subset(np.argsort(cell, kind="stable"))


@dataclass(frozen=True)
class Prepared:
    """One repeat, ready for training and evaluation."""

    procedure: Procedure
    train: SurvivalData
    val: SurvivalData
    test: SurvivalData
    X: tuple[np.ndarray, ...]  # scaled features of the three parts
    baseline_X: np.ndarray  # gives the baseline hazard of the published Brier score
    risk: RiskSets
    first: np.ndarray | None  # marks D1
    weight_seed: int
    judges: tuple[Judge, Judge]  # of the validation and the test part


@lru_cache(maxsize=3)
def _whole(dataset: str, by_group: bool) -> SurvivalData:
    data = load_dataset(dataset)
    return sorted_by_group(data) if by_group else data


def _split(rows: np.ndarray, event: np.ndarray, share: float, seed: int):
    """Two stratified parts of ``rows``; ``share`` of them in the second."""
    return train_test_split(rows, test_size=share, stratify=event[rows], random_state=seed)


def prepare(
    protocol: str,
    dataset: str,
    repeat: int,
    n2_share: float | None = None,
    sides: int | None = None,
    *,
    data: SurvivalData | None = None,
) -> Prepared:
    """Split, order and scale the data of one repeat.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic"}
    dataset : {"flc", "support", "seer"}
    repeat : int
        1 to 10; seeds the splits.
    n2_share, sides : float, int, optional
        For SPLIT: the share of the training part in D2, and how many sides are trained on.
    data : SurvivalData, optional
        All patients, in the order in which they are split, instead of those of ``dataset`` as the
        protocol has them: sorted by group as published, else in the order of the file.

    Returns
    -------
    Prepared
    """
    procedure = PROCEDURES[protocol]
    if data is None:
        data = _whole(dataset, procedure.sorted_by_group)
    rest, test = _split(np.arange(len(data)), data.event, 0.2, procedure.test_seed or repeat)
    rows = [*_split(rest, data.event, 0.2, repeat), test]
    in_first = None if n2_share is None else _split(rows[0], data.event, n2_share, repeat)[0]

    # As published, every part is sorted by time with an unstable sort, latest first. The Brier
    # score then pairs predictions in that order with outcomes in the order before sorting.
    orders: list[np.ndarray | None] = [None, None, None]
    if procedure.sorted_by_group:
        orders = [introsort_order(data.time[part])[::-1] for part in rows]
        rows = [part[order] for part, order in zip(rows, orders, strict=True)]

    train, val, test = (data.subset(part) for part in rows)
    X = scaled_features(train, val, test)
    first = None if in_first is None else np.isin(rows[0], in_first)
    baseline_X = X[0]
    if first is not None and procedure.split_scaled_by_first:
        raw = [part.X.to_numpy() for part in (train, val, test)]
        scaler = StandardScaler().fit(raw[0][first])
        X = [scaler.transform(features) for features in raw]
        baseline_X = raw[0] if sides == 2 else X[0]  # published: two sides, unscaled baseline
    risk = risk_sets(train.time, train.event)
    weight_seed = procedure.weight_seed or repeat
    judge_val = Judge(train, val, X[1], procedure.ties, orders[1])
    judge_test = Judge(train, test, X[2], procedure.ties, orders[2])
    parts = (train, val, test, tuple(X), baseline_X)
    return Prepared(procedure, *parts, risk, first, weight_seed, (judge_val, judge_test))
