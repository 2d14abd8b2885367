"""The paper's Section 4 as data: methods, grids, splits, and how a part is prepared.

Two protocols run the same methods on the same grids. ``as_published`` follows the procedure that
gives the published numbers back; ``corrected`` puts right what it leaks or misaligns:

==================  ==============================================  ===========================
step                as_published                                    corrected
==================  ==============================================  ===========================
missing values      medians of each intersectional group, all rows  medians of the training part
row order           group by group, then unstable sort by time      as in the file
test set            one for all repeats (seed 7)                    one for each repeat (seed r)
validation, D1/D2   seed r                                          seed r
scaling of SPLIT    by D1                                           by the whole training part
initial weights     seed 1                                          seed r
score of an MLP     with its free constant                          centred on the training mean
ties                by position                                     as in equation (3)
==================  ==============================================  ===========================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from drocox import _checks
from drocox.cox import RiskSets, risk_sets
from drocox.data import SurvivalData, load_dataset
from drocox.evaluation import Judge, scaled_features

PROTOCOLS = ("as_published", "corrected")
ATTRIBUTES = {"flc": ("age", "gender"), "support": ("age", "gender", "race"),
              "seer": ("age", "race")}
MODELS = ("linear", "nonlinear")
HIDDEN = {"linear": None, "nonlinear": 24}
REPEATS = tuple(range(1, 11))
LEARNING_RATES = (0.01, 0.001, 0.0001)
LAMBDAS = (1.0, 0.7, 0.4)
ALPHAS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
N2_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
TEST_SEED = 7  # as_published: the one test set of all repeats
WEIGHT_SEED = 1  # as_published: the one draw of initial weights
STACKED_BY = {"flc": ("gender", "age"), "support": ("age", "gender", "race"),
              "seer": ("age", "race")}  # first key slowest


@dataclass(frozen=True)
class Method:
    """A row of the paper's tables: score function, loss, and the penalty added to it."""

    model: str
    loss: str  # "cox" | "dro" | "split"
    penalty: str | None = None  # "keya_i" | "rp_i" | "keya_g" | "rp_g" | "keya_cap"

    @property
    def by_attribute(self) -> bool:
        """Whether the sensitive attribute enters training."""
        return self.penalty in ("keya_g", "rp_g")


def _methods() -> dict[str, Method]:
    penalties = {"": None, "_I(Keya)": "keya_i", "_I(R&P)": "rp_i", "_G(Keya)": "keya_g",
                 "_G(R&P)": "rp_g", "_cap(Keya)": "keya_cap"}
    out = {}
    for model, plain, deep in (("linear", "Cox", ""), ("nonlinear", "DeepSurv", "Deep ")):
        out |= {plain + suffix: Method(model, "cox", p) for suffix, p in penalties.items()}
        out[deep + "DRO-COX"] = Method(model, "dro")
        out[deep + "DRO-COX (SPLIT)"] = Method(model, "split")
    return out


METHODS: dict[str, Method] = _methods()
PLAIN = {"linear": "Cox", "nonlinear": "DeepSurv"}


@dataclass(frozen=True)
class Stack:
    """Models trained together: one method on one repeat, over its whole grid."""

    protocol: str
    dataset: str
    method: str
    repeat: int
    attribute: str = ""  # of a group penalty
    n2_share: float | None = None  # of SPLIT
    sides: int | None = None  # of SPLIT

    @property
    def model(self) -> str:
        return METHODS[self.method].model

    def grid(self) -> pd.DataFrame:
        """Learning rate, lambda and alpha of each model; NaN where a method has none."""
        m = METHODS[self.method]
        lambdas = (np.nan,) if m.penalty is None else LAMBDAS
        alphas = (np.nan,) if m.loss == "cox" else ALPHAS
        rows = list(product(LEARNING_RATES, lambdas, alphas))
        return pd.DataFrame(rows, columns=["learning_rate", "lam", "alpha"])

    @property
    def name(self) -> str:
        """A file name: lower-case letters, digits, dots, underscores and hyphens."""
        parts = [self.dataset, self.method, self.attribute, f"r{self.repeat}"]
        if METHODS[self.method].loss == "split":
            parts += [f"n{self.n2_share}", f"s{self.sides}"]
        raw = "_".join(p for p in parts if p).lower()
        return "".join(c if c.isalnum() or c in "._-" else "-" for c in raw)


def stacks(protocol: str, datasets=tuple(ATTRIBUTES), methods=tuple(METHODS),
           repeats=REPEATS) -> Iterator[Stack]:
    """All stacks of a protocol: the main tables, then T16 (other n2) and T17 (one side)."""
    _checks.one_of(protocol, "protocol", PROTOCOLS)
    for dataset, method in product(datasets, methods):
        _checks.one_of(dataset, "data set", ATTRIBUTES)
        m = METHODS[_checks.one_of(method, "method", METHODS)]
        variants: list[dict] = [{}]
        if m.by_attribute:
            variants = [{"attribute": a} for a in ATTRIBUTES[dataset]]
        elif m.loss == "split":
            variants = [{"n2_share": 0.5, "sides": 2}]
            if dataset == "flc":
                variants += [{"n2_share": s, "sides": 2} for s in N2_SHARES[:-1]]
                variants += [{"n2_share": 0.5, "sides": 1}]
        for variant, repeat in product(variants, repeats):
            yield Stack(protocol, dataset, method, repeat, **variant)


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
            i, j = low, high - 1
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


def stacked(data: SurvivalData) -> SurvivalData:
    """Impute by the medians of each intersectional group, and stack the rows group by group."""
    keys = [data.groups[name] for name in STACKED_BY[data.name]]
    cell = np.ravel_multi_index(keys, [2] * len(keys))
    filled = data.X.fillna(data.X.groupby(cell).transform("median"))
    return replace(data, X=filled).subset(np.argsort(cell, kind="stable"))


def _split(rows: np.ndarray, event: np.ndarray, share: float, seed: int):
    """Two stratified parts of ``rows``; ``share`` of them in the second."""
    return train_test_split(rows, test_size=share, stratify=event[rows], random_state=seed)


@dataclass(frozen=True)
class Prepared:
    """One repeat, ready for training and judging."""

    train: SurvivalData
    val: SurvivalData
    test: SurvivalData
    X: tuple[np.ndarray, np.ndarray, np.ndarray]  # scaled features of the three parts
    baseline_X: np.ndarray  # gives the baseline hazard of the published Brier score
    risk: RiskSets
    first: np.ndarray | None  # marks D1
    ties: str
    weight_seed: int
    centre: bool
    judges: tuple[Judge, Judge]


@lru_cache(maxsize=3)
def _whole(protocol: str, dataset: str) -> SurvivalData:
    data = load_dataset(dataset)
    return stacked(data) if protocol == "as_published" else data


@lru_cache(maxsize=4)
def prepare(protocol: str, dataset: str, repeat: int, n2_share: float | None = None,
            sides: int | None = None) -> Prepared:
    """Split, order and scale the data of one repeat; ``n2_share`` and ``sides`` for SPLIT."""
    data = _whole(protocol, dataset)
    published = protocol == "as_published"
    rest, test = _split(np.arange(len(data)), data.event, 0.2, TEST_SEED if published else repeat)
    train, val = _split(rest, data.event, 0.2, repeat)
    first = None
    if n2_share is not None:
        first = np.isin(train, _split(train, data.event, n2_share, repeat)[0])
    orders = [None, None, None]
    if published:
        orders = [introsort_order(data.time[rows])[::-1] for rows in (train, val, test)]
        train, val, test = (rows[o] for rows, o in zip((train, val, test), orders, strict=True))
        first = None if first is None else first[orders[0]]
    parts = [data.subset(rows) for rows in (train, val, test)]
    X = scaled_features(*parts)
    baseline_X = X[0]
    if published and first is not None:
        raw = [part.X.to_numpy() for part in parts]
        scaler = StandardScaler().fit(raw[0][first])
        X = [scaler.transform(x) for x in raw]
        baseline_X = raw[0] if sides == 2 else X[0]
    ties = "order" if published else "breslow"
    judges = [Judge(parts[0], part, x, ties, order)
              for part, x, order in zip(parts[1:], X[1:], orders[1:], strict=True)]
    return Prepared(*parts, tuple(X), baseline_X, risk_sets(parts[0].time, parts[0].event), first,
                    ties, WEIGHT_SEED if published else repeat, not published, tuple(judges))
