"""What the controls of the study on many data sets say, from stored rows.

The rows are those of :mod:`drocox.beyond.controls` (study "controls") and, for names of models that
are swapped, of :mod:`drocox.beyond.many`. Where there is nothing to find, 5 % of the draws should
be called a finding; where an effect is planted, as many as possible; and 95 % of the intervals of
one data set should contain what they estimate.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from drocox.beyond.evidence import PRIMARIES, SMALLEST_ERROR, effects
from drocox.beyond.pooled import Pooled, pool

PLANTED = (0.0, 0.5, 1.0, 2.0)  # points
SWAPS = 200


def permuted_draws(controls: pd.DataFrame) -> list[Pooled]:
    """Pooled closings with labels that mean nothing.

    Parameters
    ----------
    controls : DataFrame
        Rows of the controls.

    Returns
    -------
    list of Pooled
        One for each draw.
    """
    rows = controls[controls["kind"] == "permuted"]
    out = []
    for _, draw in rows.groupby("draw"):
        se = draw["joint_closing_se"].clip(lower=SMALLEST_ERROR)
        out.append(pool(draw["joint_closing"], se))
    return out


def swapped_draws(runs: pd.DataFrame, column: str, draws: int = SWAPS) -> list[Pooled]:
    """Pooled effects when the two models' names are swapped on a random half of the data sets.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.
    column : str
    draws : int

    Returns
    -------
    list of Pooled
    """
    rows = effects(runs, column)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(draws, len(rows)))
    return [pool(sign * rows["effect"], rows["se"]) for sign in signs]


def rejections(draws: list[Pooled], planted: float = 0.0) -> float:
    """Share of draws whose mean differs from 0 at 5 %, with an effect added to all data sets.

    An effect that all data sets share changes the mean and nothing else.

    Parameters
    ----------
    draws : list of Pooled
    planted : float
        In points.

    Returns
    -------
    float
    """
    moved = [replace(draw, mean=draw.mean + planted) for draw in draws]
    return float(np.mean([draw.p < 0.05 for draw in moved]))


def power_table(runs: pd.DataFrame, controls: pd.DataFrame) -> pd.DataFrame:
    """Shares of rejections without an effect, and with effects planted.

    Parameters
    ----------
    runs, controls : DataFrame
        Rows of the study and of its controls.

    Returns
    -------
    DataFrame
        By outcome, a column for each planted effect.
    """
    draws = {
        "c": swapped_draws(runs, PRIMARIES["c"].column),
        "closing": permuted_draws(controls),
        "worst": swapped_draws(runs, PRIMARIES["worst"].column),
    }
    return pd.DataFrame(
        {name: {one: rejections(null, one) for one in PLANTED} for name, null in draws.items()}
    ).T


def coverage_table(controls: pd.DataFrame) -> pd.DataFrame:
    """How often intervals of invented patients contain the mean over draws.

    Parameters
    ----------
    controls : DataFrame
        Rows of the controls.

    Returns
    -------
    DataFrame
        Rows (design, outcome): ``covered``, the share; ``ratio``, the root mean square of the
        errors by the standard deviation of the estimates; ``draws``.
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
