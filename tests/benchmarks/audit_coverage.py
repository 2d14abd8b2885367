"""How often the audit's 95 % intervals hold the truth, in simulated data sets.

``python tests/benchmarks/audit_coverage.py`` takes half an hour on one core and writes
``audit_coverage.csv`` beside this file; ``--sets 100`` is a try, which writes nothing. Each design
has a population whose true values come from one large sample. Nominal is 95 % for every figure, and
at most 5 % for false alarms: a data set in which a search calls a group badly served though the
scores say all there is.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import drocox
from drocox.heldout import FEWEST_EVENTS
from drocox.judging import MEASURES, families, group_estimates
from drocox.predictions import predictions

LARGE = 200_000
HORIZON = 1.0  # of risks
SCORE = np.array([0.8, 0.5, 0.0])  # the model judged


@dataclass(frozen=True)
class Design:
    """A population and the size of the samples from it."""

    n: int
    shares: tuple[float, ...]  # of the groups
    effects: np.ndarray  # true effects in the last group; elsewhere those of the score
    censoring: float  # mean time to it
    folds: int = 1  # scored by as many models
    grid: float = 0.0  # times are rounded up to it
    trained: bool = False  # whether the baseline comes from another sample

    def draw(self, rng: np.random.Generator, n: int):
        """A data set with its scores and folds."""
        group = rng.choice(len(self.shares), n, p=self.shares)
        sex = rng.integers(0, 2, n)
        x = rng.standard_normal((n, 3)) + 0.3 * group[:, None]
        last = group == len(self.shares) - 1
        hazard = np.exp(np.where(last, x @ self.effects, x @ SCORE))
        death = rng.exponential(1 / hazard)
        leaves = rng.exponential(self.censoring, n)
        time = np.minimum(death, leaves)
        if self.grid:
            time = np.ceil(time / self.grid) * self.grid
        fold = np.arange(n) % self.folds
        scores = x @ SCORE + 0.3 * fold * x[:, 2]  # each fold's model is another one
        X = pd.DataFrame(x, columns=["a", "b", "c"])
        data = drocox.SurvivalData("d", X, time, death <= leaves, {"group": group, "sex": sex})
        return data, scores, fold


OTHER = np.array([0.2, 0.3, 0.6])
DESIGNS = {
    "two groups, 500 patients": Design(500, (0.7, 0.3), OTHER, 1.0),
    "small minority, 500 patients": Design(500, (0.85, 0.15), OTHER, 0.7),
    "three groups, tied times": Design(800, (0.5, 0.3, 0.2), OTHER, 1.0, grid=0.1),
    "five models, own baseline": Design(1000, (0.7, 0.3), OTHER, 1.0, folds=5),
    "trained baseline": Design(1000, (0.7, 0.3), OTHER, 1.0, trained=True),
    "the scores say all": Design(1000, (0.7, 0.3), SCORE, 1.0),
}


def truth(design: Design, train) -> tuple[dict, dict]:
    """True values of the table's columns by group, and of the signed differences by pair."""
    rng = np.random.default_rng(1)
    data, scores, fold = design.draw(rng, LARGE)
    judged = predictions(data, scores, folds=fold, train=train, horizon=HORIZON)
    found = {}
    pairs = {}
    for family in families(data)[0]:
        for name in judged.measures:
            values = {
                label: one.value for label, one in group_estimates(judged, family, name).items()
            }
            for label, value in values.items():
                found[label, name] = value
                for versus in values:
                    pairs[label, versus, name] = MEASURES[name].unit * (value - values[versus])
    return found, pairs


def covered(design: Design, sets: int, seed: int) -> pd.Series:
    """Share of the data sets in which each figure's interval holds the truth."""
    rng = np.random.default_rng(seed)
    train = design.draw(rng, 1000)[:2] if design.trained else None
    found, pairs = truth(design, train)
    hits = {name: [] for name in MEASURES}
    hits |= {f"{name}, differences": [] for name in MEASURES}
    hits["false alarm"] = []
    for _ in range(sets):
        data, scores, fold = design.draw(rng, design.n)
        audit = drocox.audit(data, scores, folds=fold, train=train, horizon=HORIZON)
        for _, row in audit.table[1:].iterrows():
            if row["events"] >= FEWEST_EVENTS:
                for name in MEASURES:
                    if np.isnan(row[name]):
                        continue
                    true = found[row["group"], name]
                    hits[name].append(row[f"{name}_low"] <= true <= row[f"{name}_high"])
        for (_, name), rows in audit.differences.groupby(["attribute", "measure"]):
            inside = [
                row.low <= pairs[row.group, row.versus, name] <= row.high
                for row in rows.itertuples()
            ]
            hits[f"{name}, differences"].append(all(inside))
        if design.effects is SCORE:
            hits["false alarm"].append(audit.slices["beyond_noise"].astype(bool).any())
    return pd.Series({name: np.mean(values) for name, values in hits.items() if values})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=1000, help="data sets of each design")
    parser.add_argument("--design", type=int, help="only the design with this number")
    args = parser.parse_args()
    columns = {}
    for number, (name, design) in enumerate(DESIGNS.items()):
        if args.design in (None, number):
            columns[name] = covered(design, args.sets, seed=number)
            print(name, columns[name].round(3).to_dict(), flush=True)
    if args.sets >= 1000 and args.design is None:
        table = pd.DataFrame(columns).T.rename_axis("design")
        table.to_csv(Path(__file__).with_suffix(".csv"), float_format="%.4f")


if __name__ == "__main__":
    sys.exit(main())
