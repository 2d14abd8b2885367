"""Results of the controls of the study on many data sets, from stored rows.

The rows are those of :mod:`drocox.beyond.controls` (study "controls") and, where names of models
are swapped, of :mod:`drocox.beyond.many`. Without an effect, 5 % of the draws should be rejected;
with a planted effect, as many as possible; and 95 % of the intervals of one data set should contain
the quantity that they estimate.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from drocox.beyond.evidence import PRIMARIES, SMALLEST_ERROR, effects
from drocox.beyond.pooled import Pooled, pool

PLANTED = (0.0, 0.5, 1.0, 2.0)  # points
SWAPS = 200


def permuted_draws(controls: pd.DataFrame) -> list[Pooled]:
    """Pooled closings with permuted labels, one for each draw."""
    rows = controls[controls["kind"] == "permuted"]
    out = []
    for _, draw in rows.groupby("draw"):
        se = draw["joint_closing_se"].clip(lower=SMALLEST_ERROR)
        out.append(pool(draw["joint_closing"], se))
    return out


def swapped_draws(runs: pd.DataFrame, column: str, draws: int = SWAPS) -> list[Pooled]:
    """Pooled effects when the two models' names are swapped on a random half of the data sets."""
    rows = effects(runs, column)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(draws, len(rows)))
    return [pool(sign * rows["effect"], rows["se"]) for sign in signs]


def rejections(draws: list[Pooled], planted: float = 0.0) -> float:
    """Share of draws whose mean differs from 0 at 5 % when ``planted`` points are added to it.

    An effect that all data sets share changes the mean and nothing else.
    """
    shifted = [replace(draw, mean=draw.mean + planted) for draw in draws]
    return float(np.mean([draw.p < 0.05 for draw in shifted]))


def power_table(runs: pd.DataFrame, controls: pd.DataFrame) -> pd.DataFrame:
    """Shares of rejections by outcome, without an effect and with planted effects (columns)."""
    draws = {
        "c": swapped_draws(runs, PRIMARIES["c"].column),
        "closing": permuted_draws(controls),
        "worst": swapped_draws(runs, PRIMARIES["worst"].column),
    }
    return pd.DataFrame(
        {name: {one: rejections(null, one) for one in PLANTED} for name, null in draws.items()}
    ).T


def coverage_table(controls: pd.DataFrame) -> pd.DataFrame:
    """How often intervals from simulated patients contain the mean over draws.

    For each design and outcome: ``covered``, that share; ``ratio``, the root mean square of the
    standard errors divided by the standard deviation of the estimates; ``draws``.
    """
    rows = controls[controls["kind"] == "coverage"]
    table = {}
    for design, some in rows.groupby("dataset"):
        for name, outcome in PRIMARIES.items():
            known = some[[outcome.column, f"{outcome.column}_se"]].dropna()
            value = known[outcome.column]
            se = known[f"{outcome.column}_se"]
            table[design, name] = {
                "covered": ((value - value.mean()).abs() <= 1.96 * se).mean(),
                "ratio": np.sqrt((se**2).mean()) / value.std(ddof=1),
                "draws": len(known),
            }
    return pd.DataFrame(table).T
