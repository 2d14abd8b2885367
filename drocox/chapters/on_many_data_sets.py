"""The chapter *On many data sets*: its preregistration, drawings and tables.

The analysis is :mod:`drocox.beyond.evidence`; rows come from the store, studies "many" and
"controls". The chapter's sentences are in :mod:`drocox.chapters.on_many_data_sets_sentences`.
"""

import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

import drocox.beyond
from drocox.beyond import evidence
from drocox.beyond.cohorts import Group
from drocox.chapters.sentences import with_minus

OUTCOME_WORDS = {
    "c": "c-index of everybody",
    "closing": "closing of the gap (sex, age)",
    "worst": "c-index of Cox's worst group",
    "guard": "guard (sex, age)",
    "worst of DRO-COX": "c-index of DRO-COX's worst group",
}
NEUTRAL = "0.45"


def registration() -> str:
    """The preregistration as it was committed.

    Returns
    -------
    str
    """
    return registered_file("preregistration.md").read_text("utf-8")


def registered_file(name: str) -> Path:
    """Where a file of the preregistration is.

    Parameters
    ----------
    name : str

    Returns
    -------
    Path
    """
    return Path(drocox.beyond.__file__).with_name(name)


def print_registration() -> None:
    """Print the preregistration in lines of at most 76 characters."""
    for line in registration().splitlines():
        indent = "  " if line.startswith(("- ", "1.")) else ""
        print(
            "\n".join(
                textwrap.wrap(line, 76, subsequent_indent=indent, break_on_hyphens=False) or [""]
            )
        )


# Drawings of results --------------------------------------------------------------------------


def draw_answer(table: pd.DataFrame) -> Figure:
    """The three primary outcomes: mean, interval, prediction interval, margin.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drocox.beyond.evidence.primary_table`.

    Returns
    -------
    Figure
    """
    rows = table.loc[list(evidence.PRIMARIES)]
    figure, axes = plt.subplots(figsize=(7.0, 2.9))
    for y, (_, row) in zip(-np.arange(len(rows)), rows.iterrows(), strict=True):
        axes.fill_betweenx([y - 0.38, y + 0.38], -row["margin"], row["margin"], color="C5",
                           alpha=0.15, linewidth=0)  # fmt: skip
        axes.plot([row["predicted_low"], row["predicted_high"]], [y, y], color=NEUTRAL, lw=1.5)
        _diamond(axes, row["low"], row["mean"], row["high"], y, "C0")
    axes.axvline(0, color=NEUTRAL, lw=1)
    labels = [f"{OUTCOME_WORDS[name]}\n{mean_and_interval(row)}" for name, row in rows.iterrows()]
    axes.set_yticks(-np.arange(len(rows)), labels)
    axes.set(xlabel="DRO-COX (sharp, α = 0.5) less Cox, points", ylim=(-len(rows) + 0.4, 0.6))
    axes.grid(axis="y", visible=False)
    figure.tight_layout()
    return figure


def _diamond(axes, low: float, middle: float, high: float, y: float, colour: str) -> None:
    corners = [(low, y), (middle, y + 0.28), (high, y), (middle, y - 0.28)]
    axes.add_patch(Polygon(corners, closed=True, facecolor=colour, edgecolor="none"))
    axes.plot([low, high], [y, y], color=colour, lw=1)  # keeps the limits, and narrow ones visible


def draw_forest(runs: pd.DataFrame, name: str) -> Figure:
    """Every data set with its interval, the pooled mean, and the data sets beside.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.
    name : {"c", "closing", "worst"}

    Returns
    -------
    Figure
    """
    outcome = evidence.PRIMARIES[name]
    rows = evidence.effects(runs, outcome.column).sort_values("effect", ascending=False)
    beside = evidence.effects(runs, outcome.column, which="beside")
    result = evidence.pooled(runs, outcome.column)
    weight = 1 / (rows["se"] ** 2 + result.tau2)
    size = 12 + 60 * weight / weight.max()
    figure, axes = plt.subplots(figsize=(6.6, 0.21 * (len(rows) + len(beside)) + 1.5))
    axes.axvspan(-outcome.margin, outcome.margin, color="C5", alpha=0.15, linewidth=0)
    axes.axvline(0, color=NEUTRAL, lw=1)
    y = -np.arange(len(rows))
    axes.errorbar(rows["effect"], y, xerr=1.96 * rows["se"], fmt="none", ecolor="C0", lw=1)
    axes.scatter(rows["effect"], y, s=size, marker="s", color="C0", zorder=3)
    below = -len(rows) - 0.5
    low, high = result.interval()
    axes.plot(result.prediction(), [below, below], color=NEUTRAL, lw=1.5)
    _diamond(axes, low, result.mean, high, below, "C1")
    y_beside = below - 1.2 - np.arange(len(beside))
    axes.errorbar(beside["effect"], y_beside, xerr=1.96 * beside["se"], fmt="o", color="C2",
                  mfc="none", lw=1)  # fmt: skip
    labels = [*rows.index, "mean; next data set", *(f"{one} (beside)" for one in beside.index)]
    axes.set_yticks([*y, below, *y_beside], labels, fontsize=9)
    axes.set(ylim=(y_beside[-1] - 0.8, 0.8), xlabel=f"{outcome.words}: points, right is better")
    widest = np.quantile(np.abs(rows["effect"]) + 1.96 * rows["se"], 0.9)
    limit = max(widest, 1.3 * outcome.margin, *np.abs(result.prediction()))
    axes.set_xlim(-limit, limit)  # a few long intervals are cut off
    axes.grid(axis="y", visible=False)
    figure.tight_layout()
    return figure


def draw_power(power: pd.DataFrame) -> Figure:
    """Rejections against planted effects.

    Parameters
    ----------
    power : DataFrame
        Of :func:`drocox.beyond.control_evidence.power_table`.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(figsize=(5.6, 3.2))
    for (name, row), marker in zip(power.iterrows(), "os^", strict=True):
        axes.plot(row.index, 100 * row, marker=marker, label=OUTCOME_WORDS[name])
    axes.axhline(5, color=NEUTRAL, lw=1, ls=":")
    axes.set(xlabel="planted effect on all data sets, points", ylabel="draws that reject, %")
    axes.legend()
    figure.tight_layout()
    return figure


# Tables ---------------------------------------------------------------------------------------


def signed(value: float) -> str:
    """A number with a sign and two decimals, and a zero without.

    Parameters
    ----------
    value : float

    Returns
    -------
    str
    """
    return "0.00" if abs(value) < 0.005 else f"{value:+.2f}"


def mean_and_interval(row: pd.Series, mean: str = "mean") -> str:
    """A mean with its interval, as "+0.10 (−0.05 to +0.25)".

    Parameters
    ----------
    row : Series
        With "low" and "high".
    mean : str
        Where the mean is.

    Returns
    -------
    str
    """
    return with_minus(f"{signed(row[mean])} ({signed(row['low'])} to {signed(row['high'])})")


def interval_text(row: pd.Series, low: str = "low", high: str = "high") -> str:
    """An interval, as "−0.05 to +0.25".

    Parameters
    ----------
    row : Series
    low, high : str
        Where its ends are.

    Returns
    -------
    str
    """
    return with_minus(f"{signed(row[low])} to {signed(row[high])}")


def show_primary(table: pd.DataFrame) -> pd.DataFrame:
    """The primary outcomes for the page.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drocox.beyond.evidence.primary_table`.

    Returns
    -------
    DataFrame
    """
    out = {}
    for name, row in table.iterrows():
        out[OUTCOME_WORDS[name]] = {
            "data sets": int(row["data_sets"]),
            "mean": with_minus(signed(row["mean"])),
            "95 % interval": interval_text(row),
            "90 % interval": interval_text(row, "low90", "high90"),
            "next true effect, 95 %": interval_text(row, "predicted_low", "predicted_high"),
            "p (Holm)": "–" if np.isnan(row["p_holm"]) else _probability(row["p_holm"]),
            "within the margin": f"{'yes' if row['equivalent'] else 'no'} (±{row['margin']:g})"
            if name in evidence.PRIMARIES
            else "–",
        }
    return pd.DataFrame(out).T


def _probability(p: float) -> str:
    return "below 0.001" if p < 0.001 else f"{p:.3f}"


def show_models(table: pd.DataFrame, accuracy: pd.DataFrame) -> pd.DataFrame:
    """All models for the page.

    Parameters
    ----------
    table, accuracy : DataFrame
        Of :func:`drocox.beyond.evidence.all_models` and ``accuracy_table``.

    Returns
    -------
    DataFrame
    """
    out = {}
    for model in accuracy.index:
        row = {}
        for name in evidence.PRIMARIES:
            if model == "Cox":
                row[OUTCOME_WORDS[name]] = "0"
            else:
                one = table.loc[(model, name)]
                row[OUTCOME_WORDS[name]] = mean_and_interval(one)
        one = accuracy.loc[model]
        row["Brier score × 100"] = "0" if model == "Cox" else mean_and_interval(one, "ibs_diff")
        row["slope"] = f"{one['slope']:.2f} ({one['slope_25']:.2f} to {one['slope_75']:.2f})"
        out[model] = row
    return pd.DataFrame(out).T


def show_moderators(table: pd.DataFrame) -> pd.DataFrame:
    """Moderators for the page.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drocox.beyond.evidence.moderator_table`.

    Returns
    -------
    DataFrame
    """
    out = {}
    for (moderator, name), row in table.iterrows():
        out.setdefault(moderator, {})[OUTCOME_WORDS[name]] = mean_and_interval(row, "slope")
    return pd.DataFrame(out).T


def show_power(power: pd.DataFrame) -> pd.DataFrame:
    """Rejections for the page.

    Parameters
    ----------
    power : DataFrame
        Of :func:`drocox.beyond.control_evidence.power_table`.

    Returns
    -------
    DataFrame
    """
    table = power.rename(index=OUTCOME_WORDS).map(lambda share: f"{100 * share:.1f} %")
    return table.rename(columns=lambda planted: f"planted: {planted:g}")


def show_coverage(coverage: pd.DataFrame) -> pd.DataFrame:
    """Coverage for the page.

    Parameters
    ----------
    coverage : DataFrame
        Of :func:`drocox.beyond.control_evidence.coverage_table`.

    Returns
    -------
    DataFrame
    """
    out = {}
    for (design, name), row in coverage.iterrows():
        words = f"{100 * row['covered']:.1f} % (error by spread {row['ratio']:.2f})"
        out.setdefault(OUTCOME_WORDS[name], {})[f"{design} design"] = words
    return pd.DataFrame(out).T


def describe(group: Group) -> str:
    """A group in words.

    Parameters
    ----------
    group : Group

    Returns
    -------
    str
    """
    value = group.value if isinstance(group.value, str) else f"{group.value:g}"
    return f"{group.covariate} {group.side} {value}"
