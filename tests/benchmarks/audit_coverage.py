"""How often the audit's 95 % intervals hold the truth, in simulated data sets.

``python tests/benchmarks/audit_coverage.py`` takes half an hour on one core (``--jobs 4``:
on four) and writes ``drocox/paper/results/beyond/coverage.csv``, which the chapter on one's own
data shows; ``--sets 5`` is a try, which writes nothing. A design has 2, 5 or 20 groups, the last of
which has other effects than the scores say, 30 or 80 % censored patients, and scores of one model,
of one model with times that are rounded up to ten values, or of five models by cross-fitting. The
truth is that of a large sample, scored by the same models; all groups but the last have the same.
A measure is covered if its interval holds the truth; differences are covered if all of an attribute
are, in one measure. What the audit leaves out, since a group has too few patients at the horizon,
counts neither way. The share of false alarms is that of data sets in which a difference is
seen, or a badly served group found, though there is none. Last come models that are
perfect, wrong for a group of 10 %, constant, shrunken, or without a covariate, and what audits say
of them.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy import optimize

import drocox
from drocox.auditing.disclosure import Hidden
from drocox.auditing.group_measures import Measured, measure_groups
from drocox.auditing.groupings import EVERYBODY, groupings_of
from drocox.auditing.measures import MEASURES
from drocox.auditing.predictions import predictions
from drocox.beyond.audit_coverage import FILE
from drocox.heldout import assign_folds, default_horizon

LARGE = 100_000  # patients, for the truth about one model
LARGE_ENOUGH = 30_000  # for the truth about five models, which are new in each data set
FOLDS = 5
DISTINCT = 10  # times, up to the horizon, where they are tied
SETS = {2: 200, 5: 100, 20: 60}  # data sets, by the number of groups
SETS_OF_FIVE_MODELS = {2: 100, 5: 50, 20: 30}
SCORE = np.array([0.8, 0.5, 0.0])  # of the model under audit
OTHER = np.array([0.2, 0.3, 0.6])  # true effects in the last group
PATIENTS = {2: 600, 5: 1000, 20: 2000}  # by the number of groups
WITHOUT_DIFFERENCE = 800  # patients in the data without any
KINDS = ("one model", "tied times", "cross-fitting")
SETS_WITHOUT_DIFFERENCE = 100
WITH_MODELS = 1500  # patients of models that are right, or wrong for a group
SETS_WITH_MODELS = 100
MODELS = [
    ("perfect", 0.3),
    ("perfect", 0.8),
    ("wrong for the small group", 0.3),
    ("constant score", 0.3),
    ("shrunken", 0.3),
    ("omitted covariate", 0.3),
]
ATTRIBUTES = 8  # of the data without any difference
COLUMNS = ["groups", "censored", "kind", "patients", "sets", "figure", "share"]


@dataclass(frozen=True)
class Design:
    """A population and the size of the samples from it."""

    groups: int
    censored: float
    kind: str

    @property
    def n(self) -> int:
        """Patients in a data set."""
        return PATIENTS[self.groups]

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        _, _, death = self.deaths(rng, LARGE_ENOUGH)
        unit = rng.exponential(size=LARGE_ENOUGH)

        def too_many(log_mean: float) -> float:
            return (unit * np.exp(log_mean) < death).mean() - self.censored

        mean = np.exp(optimize.brentq(too_many, -9, 9))
        leaves = mean * unit
        horizon = default_horizon(np.minimum(death, leaves), death <= leaves)
        object.__setattr__(self, "mean_censoring", mean)
        object.__setattr__(self, "horizon", horizon)

    def deaths(self, rng: np.random.Generator, n: int) -> tuple:
        """Groups, features and times of death."""
        group = rng.integers(0, self.groups, n)
        last = group == self.groups - 1
        x = rng.standard_normal((n, 3)) + 0.3 * last[:, None]
        hazard = np.exp(np.where(last, x @ OTHER, x @ SCORE))
        return group, x, rng.exponential(1 / hazard)

    def draw(self, rng: np.random.Generator, n: int) -> drocox.SurvivalData:
        """A data set."""
        group, x, death = self.deaths(rng, n)
        leaves = rng.exponential(self.mean_censoring, n)
        time = np.minimum(death, leaves)
        if self.kind == "tied times":
            grid = self.horizon / DISTINCT
            time = np.ceil(time / grid) * grid
        X = pd.DataFrame(x, columns=["a", "b", "c"])
        return drocox.SurvivalData("d", X, time, death <= leaves, {"group": group})


def measured(data: drocox.SurvivalData, horizon: float, given: dict) -> Measured:
    """The audit's measures, and differences whose intervals hold within attribute and measure."""
    one = predictions(data, horizon=horizon, **given)
    with np.errstate(divide="ignore", invalid="ignore"):
        return measure_groups(one, groupings_of(data)[0], Hidden(), familywise=False)


def by_one_model(data: drocox.SurvivalData, train: drocox.SurvivalData) -> dict:
    """What is passed to the audit of the fixed model, with the baseline of a training part."""
    return {"scores": data.X.to_numpy() @ SCORE, "train": (train, train.X.to_numpy() @ SCORE)}


def by_five_models(data: drocox.SurvivalData, large: drocox.SurvivalData) -> tuple[dict, dict]:
    """What is passed to the audit of cross-fitted models, and of the same models on others."""
    fold = assign_folds(data.event, FOLDS, seed=0)
    fold_of_large = np.arange(len(large)) % FOLDS
    scores = np.empty(len(data))
    scores_of_large = np.empty(len(large))
    train = {}
    X = data.X.to_numpy()
    for k in range(FOLDS):
        part = data.subset(fold != k)
        model = drocox.DROCox(alpha=1.0).fit(X[fold != k], part.y)
        scores[fold == k] = model.predict(X[fold == k])
        mine = fold_of_large == k
        scores_of_large[mine] = model.predict(large.X.to_numpy()[mine])
        train[k] = (part, model.predict(X[fold != k]))
    return (
        {"scores": scores, "folds": fold, "train": train},
        {"scores": scores_of_large, "folds": fold_of_large, "train": train},
    )


class Truth:
    """The measures of each group in a large sample, and their differences."""

    def __init__(self, design: Design, large: drocox.SurvivalData, given: dict) -> None:
        one = predictions(large, horizon=design.horizon, **given)
        last = large.groups["group"] == design.groups - 1
        everybody = np.full(len(large), True)
        self.last = f"group = {design.groups - 1}"
        self.values: dict[tuple[str, str], float] = {}
        for who, members in (("others", ~last), ("last", last), (EVERYBODY, everybody)):
            for name, method in one.measures.items():
                self.values[name, who] = method(one.patients, members).value

    def who(self, label: str) -> str:
        """A group of the sample that has the same truth."""
        return {EVERYBODY: EVERYBODY, self.last: "last"}.get(label, "others")

    def value(self, name: str, label: str) -> float:
        """A measure of a group."""
        return self.values[name, self.who(label)]

    def difference(self, name: str, group: str, versus: str) -> float:
        """A difference, in the audit's unit."""
        first, second = (self.values[name, self.who(label)] for label in (group, versus))
        if versus == MEASURES[name].versus:  # it is a difference itself
            second = 0.0
        if MEASURES[name].ratio:
            return first / second
        return MEASURES[name].unit * (first - second)


def hits(found: Measured, true: Truth) -> dict[str, list[bool]]:
    """For each measure, whether the intervals of the groups hold the truth, and of differences."""
    out: dict[str, list[bool]] = {}
    known = [name for name in MEASURES if name in found.table]  # without decisions
    for _, row in found.table.iterrows():
        for name in known:
            if row["attribute"] and not np.isnan(row[f"{name}_low"]):
                value = true.value(name, row["group"])
                out.setdefault(name, []).append(row[f"{name}_low"] <= value <= row[f"{name}_high"])
    together: dict[str, bool] = {}
    for row in found.comparisons.itertuples():
        value = true.difference(row.measure, row.group, row.versus)
        held = row.low <= value <= row.high
        together[row.measure] = together.get(row.measure, True) and held
    return out | {f"{name}, differences": [held] for name, held in together.items()}


def covered(design: Design, sets: int, seed: int) -> dict[str, float]:
    """Share of the data sets in which each measure's interval holds the truth."""
    rng = np.random.default_rng(seed)
    train = design.draw(rng, 1000)
    large = design.draw(rng, LARGE_ENOUGH if design.kind == "cross-fitting" else LARGE)
    true = None
    if design.kind != "cross-fitting":
        true = Truth(design, large, by_one_model(large, train))
    every: dict[str, list[bool]] = {}
    for _ in range(sets):
        data = design.draw(rng, design.n)
        if design.kind == "cross-fitting":
            given, of_large = by_five_models(data, large)
            true = Truth(design, large, of_large)
        else:
            given = by_one_model(data, train)
        for name, values in hits(measured(data, design.horizon, given), true).items():
            every.setdefault(name, []).extend(values)
    return {name: float(np.mean(values)) for name, values in every.items()}


def differs(rows: pd.DataFrame) -> pd.Series:
    """Whether an interval excludes no difference."""
    none = np.where(rows.get("measure", rows.index.get_level_values(0)) == "calibration", 1.0, 0.0)
    return (rows["low"] > none) | (rows["high"] < none)


def false_alarms(sets: int) -> dict[str, float]:
    """Share of data sets without any difference in which one is seen."""
    rng = np.random.default_rng(99)
    n = WITHOUT_DIFFERENCE
    alarms: dict[str, list[float]] = {}
    for _ in range(sets):
        x = rng.standard_normal((n, 3))
        death = rng.exponential(np.exp(-x @ SCORE))
        leaves = rng.exponential(1.0, n)
        groups = {f"a{k}": rng.integers(0, 2, n) for k in range(ATTRIBUTES)}
        X = pd.DataFrame(x, columns=["a", "b", "c"])
        data = drocox.SurvivalData("d", X, np.minimum(death, leaves), death <= leaves, groups)
        given = {"scores": x @ SCORE, "expected": data.time * np.exp(x @ SCORE)}
        apart = measured(data, None, given).comparisons
        found = drocox.audit(data, **given, features=["a", "b", "c"])
        worded = [name for name, one in MEASURES.items() if one.worded]
        rows = found.differences[found.differences["measure"].isin(worded)]
        alarms.setdefault("first paragraph, any, family-wise", []).append(differs(rows).any())
        own = found.differences[found.differences["measure"] == "own_model_gain"]
        alarms.setdefault("own model, any, family-wise", []).append((own["low"] > 0).any())
        for measure in ("c_index", "c_minus_expected", "calibration"):
            of_apart = differs(apart[apart["measure"] == measure])
            of_all = differs(found.differences[found.differences["measure"] == measure])
            alarms.setdefault(f"{measure}, one attribute", []).append(of_apart.mean())
            alarms.setdefault(f"{measure}, any attribute", []).append(of_apart.any())
            alarms.setdefault(f"{measure}, any, family-wise", []).append(of_all.any())
        alarms.setdefault("search", []).append(differs(found.slices).any())
    return {f"false alarm: {name}": float(np.mean(values)) for name, values in alarms.items()}


def model_and_truth(kind: str, rng: np.random.Generator, few: np.ndarray) -> tuple:
    """Features, scores of a model and true log-hazards; the small group's patients are alike."""
    x = rng.standard_normal((len(few), 3)) * np.where(few, 0.4, 1.0)[:, None]
    truth = x @ SCORE
    scores = truth.copy()
    if kind == "wrong for the small group":
        x[few] *= 2.5
        scores = x @ SCORE
        truth = np.where(few, x @ OTHER, scores)
    elif kind == "constant score":
        scores = np.full(len(few), -1.0)
    elif kind == "shrunken":
        scores = 0.3 * truth
    elif kind == "omitted covariate":
        truth = truth + 1.2 * x[:, 2]
    return x, scores, truth


def by_models(kind: str, censored: float, sets: int) -> dict[str, float]:
    """What audits say of a model with one group of 10 and one of 90 % of the patients.

    Shares of data sets in which an interval of c-index minus expected holds 0, in which a group is
    said to be ranked better or worse than expected, and in which a model of its own is said to be
    better.
    """
    rng = np.random.default_rng(7)
    said: dict[str, list[bool]] = {}
    mean = None
    for _ in range(sets):
        n = WITH_MODELS
        few = rng.random(n) < 0.1
        x, scores, truth = model_and_truth(kind, rng, few)
        death = rng.exponential(np.exp(-truth))
        unit = rng.exponential(size=n)
        if mean is None:  # censoring times with this mean lose as many patients in the first set
            mean = np.quantile(death / unit, 1 - censored)
        leaves = mean * unit
        X = pd.DataFrame(x, columns=["a", "b", "c"])
        time, event = np.minimum(death, leaves), death <= leaves
        data = drocox.SurvivalData("d", X, time, event, {"few": few.astype(int)})
        found = drocox.audit(data, scores, features=["a", "b", "c"])
        table = found.table.set_index("group")
        rows = found.differences.set_index(["measure", "group"])
        for who, label in (("large", "few = 0"), ("small", "few = 1")):
            row = table.loc[label]
            if not np.isnan(row["c_minus_expected_low"]):
                holds = row["c_minus_expected_low"] <= 0 <= row["c_minus_expected_high"]
                said.setdefault(f"{who} group: as expected", []).append(holds)
            for measure, low, high in (
                ("c_minus_expected", "better than expected", "worse than expected"),
                ("own_model_gain", "better by its own model", "worse by its own model"),
            ):
                known = (measure, label) in rows.index
                up = known and rows.loc[(measure, label), "low"] > 0
                down = known and rows.loc[(measure, label), "high"] < 0
                said.setdefault(f"{who} group: {low}", []).append(up)
                said.setdefault(f"{who} group: {high}", []).append(down)
        apart = ("c_index", "few = 1") in rows.index
        apart = apart and bool(differs(rows.loc[[("c_index", "few = 1")]]).item())
        said.setdefault("c-index differs", []).append(apart)
    return {name: float(np.mean(values)) for name, values in said.items()}


def rows_of_models(case: tuple[str, float], sets: int | None) -> list[tuple]:
    """Rows of the table for one kind of model."""
    kind, censored = case
    sets = sets or SETS_WITH_MODELS
    shares = by_models(kind, censored, sets)
    print(kind, censored, shares, flush=True)
    kind = f"{kind}, {100 * censored:.0f} % censored"
    design = (2, np.nan, kind, WITH_MODELS, sets)
    return [(*design, name, share) for name, share in shares.items()]


def rows_of(case: tuple[int, tuple[int, float, str]], sets: int | None) -> list[tuple]:
    """Rows of the table for one design."""
    seed, (groups, censored, kind) = case
    design = Design(groups, censored, kind)
    usual = SETS_OF_FIVE_MODELS if kind == "cross-fitting" else SETS
    sets = sets or usual[groups]
    shares = covered(design, sets, seed)
    print(groups, censored, kind, shares, flush=True)
    return [(groups, censored, kind, design.n, sets, name, held) for name, held in shares.items()]


def rows_without_difference(sets: int | None) -> list[tuple]:
    """Rows of the table for data without any difference."""
    sets = sets or SETS_WITHOUT_DIFFERENCE
    alarms = false_alarms(sets)
    print(alarms, flush=True)
    design = (2, np.nan, "no difference", WITHOUT_DIFFERENCE, sets)
    return [(*design, name, share) for name, share in alarms.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, help="data sets of each design, for a try")
    parser.add_argument("--jobs", type=int, default=1, help="designs at a time")
    args = parser.parse_args()
    cases = list(enumerate(product(PATIENTS, (0.3, 0.8), KINDS)))
    with ProcessPoolExecutor(args.jobs) as pool:
        designs = list(pool.map(partial(rows_of, sets=args.sets), cases[::-1]))  # the longest first
        designs = [*designs[::-1], pool.submit(rows_without_difference, args.sets).result()]
        designs += pool.map(partial(rows_of_models, sets=args.sets), MODELS)
    rows = [row for of_design in designs for row in of_design]
    if not args.sets:
        table = pd.DataFrame(rows, columns=COLUMNS)
        table.to_csv(FILE, index=False, float_format="%.4f")


if __name__ == "__main__":
    sys.exit(main())
