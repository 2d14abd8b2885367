"""What the chapter on fair baselines draws and tells: penalties beside a shrunken Cox model."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.data import SurvivalData

STYLES = {
    "none": ("k", "o"),
    "I (Keya)": ("C0", "o"),
    "I (R&P)": ("C1", "s"),
    "G (R&P)": ("C2", "D"),
    "G (Keya)": ("C3", "^"),
    "∩ (Keya)": ("C4", "v"),
}


def tell_patients_per_event(parts: Mapping[str, SurvivalData]) -> None:
    """How much more the same penalty weighs when the loss is divided by patients, not by events.

    Parameters
    ----------
    parts : mapping of str to SurvivalData
        Training parts, by name of the data set.
    """
    for name, data in parts.items():
        say(f"base-{name}", f"{len(data) / data.event.sum():.1f}")


def guard_likelihoods(models: pd.DataFrame) -> None:
    """Hold the text to it that a network fooled by shift predicts as well as before.

    Parameters
    ----------
    models : DataFrame
        Column ``LPL``; rows "no penalty" and "I (R&P)".
    """
    moved = models.loc["I (R&P)", "LPL"] - models.loc["no penalty", "LPL"]
    guard(abs(moved) < 0.03, "c-index and LPL are nearly what they were")


def draw_frontier(models: pd.DataFrame, shrunk: pd.DataFrame) -> Figure:
    """Likelihood against F_I of penalised models, and of plain Cox with smaller scores.

    Parameters
    ----------
    models : DataFrame
        Columns ``F_I`` and ``LPL``; indexed by penalty and its weight, larger markers for larger
        weights.
    shrunk : DataFrame
        The same columns, for scores multiplied by several numbers.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    axes.plot(shrunk["F_I"], shrunk["LPL"], color="0.55", lw=3, zorder=0, label="Cox × s")
    for name, (colour, marker) in STYLES.items():
        rows = models.loc[name]
        sizes = 20 + 45 * rows.index
        axes.scatter(rows["F_I"], rows["LPL"], s=sizes, color=colour, marker=marker, label=name)
    axes.set(xlabel="$F_I$ (lower is fairer)", ylabel="LPL per event (higher is better)")
    axes.legend(loc="lower right")
    return figure
