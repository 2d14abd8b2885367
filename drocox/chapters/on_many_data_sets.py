"""The chapter *On many data sets*: values of its sentences, their guards, its drawings and tables.

The analysis is :mod:`drocox.beyond.evidence`; rows come from the store, studies "many" and
"controls".
"""

import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

import drocox.beyond
from drocox.beyond import evidence, survset
from drocox.beyond.many import REGISTERED
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import with_minus

# where the preregistration was committed, before the first run
COMMIT = "296de5dca0d3bbe6e499feb34e373fcfac92f83e"
COMMITTED = "17 November 2026, 00:39 UTC"
SHA256 = {
    "preregistration.md": "bae3c93b5588c1fcc550f25bb45e4cd2d748075f1c706a88bef1978de3d0f35f",
    "preregistration.toml": "76373c1716e1915da338638637dc09727dd8a134325602c97b2d4e151921a9db",
}
DEVIATIONS: tuple[str, ...] = ()
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
    return _file("preregistration.md").read_text("utf-8")


def _file(name: str) -> Path:
    return Path(drocox.beyond.__file__).with_name(name)


def print_registration() -> None:
    """Print the preregistration in lines of at most 76 characters."""
    for line in registration().splitlines():
        indent = "  " if line.startswith(("- ", "1.")) else ""
        print("\n".join(textwrap.wrap(line, 76, subsequent_indent=indent) or [""]))


# The flow -------------------------------------------------------------------------------------


def draw_flow(counts: pd.DataFrame) -> Figure:
    """From all data sets to those included, one box for each step.

    Parameters
    ----------
    counts : DataFrame
        Of :func:`drocox.beyond.survset.flow_counts`.

    Returns
    -------
    Figure
    """
    leaving = counts[counts.index != "included"]
    total = int(counts["leaving"].sum())
    figure, axes = plt.subplots(figsize=(7.2, 5.4))
    axes.axis("off")
    axes.set(xlim=(0, 10), ylim=(-len(leaving) - 0.6, 0.6))
    box = {"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": "C0"}
    out = box | {"edgecolor": NEUTRAL}
    axes.text(1.3, 0, f"{total} data sets", ha="center", va="center", bbox=box)
    arrow = {"arrowstyle": "->", "color": NEUTRAL}
    for k, (step, row) in enumerate(leaving.iterrows()):
        y = -k - 1
        last = k == len(leaving) - 1
        words = f"{row['left']} included" if last else str(row["left"])
        axes.text(1.3, y, words, ha="center", va="center", bbox=box)
        axes.annotate("", (1.3, y + 0.3), (1.3, y + 0.7), arrowprops=arrow)
        axes.annotate("", (3.2, y + 0.5), (1.3, y + 0.5), arrowprops=arrow)
        text = f"{row['leaving']}: {row['reason']}"
        style = box if step == "beside" else out
        axes.text(3.3, y + 0.5, text, ha="left", va="center", bbox=style, fontsize=10)
    figure.tight_layout()
    return figure


def data_sets(flow: pd.DataFrame) -> pd.DataFrame:
    """The data sets that stay, for the page.

    Parameters
    ----------
    flow : DataFrame
        Of :func:`drocox.beyond.survset.flow`.

    Returns
    -------
    DataFrame
    """
    stay = flow[flow["step"].isin(["included", "beside"])]
    stay = stay.sort_values(["step", "patients"], ascending=[False, False])
    attributes = [
        ", ".join(name for name in survset.ATTRIBUTES if row[name]) or "–"
        for _, row in stay.iterrows()
    ]
    names = [
        f"{name} (beside)" if step == "beside" else name for name, step in stay["step"].items()
    ]
    table = pd.DataFrame(
        {
            "who, until when": stay["what"].to_numpy(),
            "source": stay["source"].to_numpy(),
            "patients": stay["patients"].map("{:,}".format).to_numpy(),
            "events": stay["events"].map("{:,}".format).to_numpy(),
            "features": stay["features"].astype(int).to_numpy(),
            "attributes": attributes,
        },
        index=pd.Index(names, name="data set"),
    )
    return table


def left_out(flow: pd.DataFrame) -> pd.DataFrame:
    """The data sets that leave, with the reason.

    Parameters
    ----------
    flow : DataFrame
        Of :func:`drocox.beyond.survset.flow`.

    Returns
    -------
    DataFrame
    """
    gone = flow[~flow["step"].isin(["included", "beside"])]
    steps = list(survset.STEPS)
    order = gone["step"].map(steps.index).sort_values(kind="stable").index
    return gone.loc[order, ["what", "patients", "events", "reason"]].rename_axis("data set")


def tell_flow(flow: pd.DataFrame) -> None:
    """Numbers of the flow; the data sets are those that were registered.

    Parameters
    ----------
    flow : DataFrame
        Of :func:`drocox.beyond.survset.flow`.
    """
    included = flow[flow["step"] == "included"]
    beside = flow[flow["step"] == "beside"]
    guard(set(included.index) == set(REGISTERED["included"]), "the data sets that were registered")
    guard(set(beside.index) == set(REGISTERED["beside"]), "FLC and SUPPORT are shown beside")
    for name, facts in (REGISTERED["included"] | REGISTERED["beside"]).items():
        guard(flow.loc[name, "patients"] == facts["patients"], "with the registered patients")
        guard(survset.TABLE[name]["sha256"] == facts["sha256"], "and the registered files")
    say("many-all", len(flow))
    say("many-included", len(included))
    say("many-patients", f"{included['patients'].sum():,}")
    say("many-events", f"{included['events'].sum():,}")
    for attribute in survset.ATTRIBUTES:
        say(f"many-{attribute}", int(included[attribute].sum()))
    say("many-labelled", int((included["sex"] | included["age"]).sum()))
    say("many-smallest", f"{included['patients'].min():,}")
    say("many-largest", f"{included['patients'].max():,}")


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
        words = f"{row['mean']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"
        axes.annotate(with_minus(words), (1.02, y), xycoords=("axes fraction", "data"),
                      va="center", fontsize=10)  # fmt: skip
    axes.axvline(0, color=NEUTRAL, lw=1)
    axes.set_yticks(-np.arange(len(rows)), [OUTCOME_WORDS[name] for name in rows.index])
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
        Of :func:`drocox.beyond.evidence.power_table`.

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


def _interval(row: pd.Series, low: str = "low", high: str = "high") -> str:
    return with_minus(f"{row[low]:+.2f} to {row[high]:+.2f}")


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
            "mean": with_minus(f"{row['mean']:+.2f}"),
            "95 % interval": _interval(row),
            "90 % interval": _interval(row, "low90", "high90"),
            "next true effect, 95 %": _interval(row, "predicted_low", "predicted_high"),
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
                words = f"{one['mean']:+.2f} ({one['low']:+.2f} to {one['high']:+.2f})"
                row[OUTCOME_WORDS[name]] = with_minus(words)
        one = accuracy.loc[model]
        words = f"{one['ibs_diff']:+.2f} ({one['low']:+.2f} to {one['high']:+.2f})"
        row["Brier score × 100"] = "0" if model == "Cox" else with_minus(words)
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
        words = f"{row['slope']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"
        out.setdefault(moderator, {})[OUTCOME_WORDS[name]] = with_minus(words)
    return pd.DataFrame(out).T


def show_power(power: pd.DataFrame) -> pd.DataFrame:
    """Rejections for the page.

    Parameters
    ----------
    power : DataFrame
        Of :func:`drocox.beyond.evidence.power_table`.

    Returns
    -------
    DataFrame
    """
    table = power.rename(index=OUTCOME_WORDS).map(lambda share: f"{100 * share:.1f} %")
    return table.rename(columns=lambda planted: f"{planted:g} points planted")


def show_coverage(coverage: pd.DataFrame) -> pd.DataFrame:
    """Coverage for the page.

    Parameters
    ----------
    coverage : DataFrame
        Of :func:`drocox.beyond.evidence.coverage_table`.

    Returns
    -------
    DataFrame
    """
    out = {}
    for (design, name), row in coverage.iterrows():
        words = f"{100 * row['covered']:.1f} % (error by spread {row['ratio']:.2f})"
        out.setdefault(OUTCOME_WORDS[name], {})[f"{design} design"] = words
    return pd.DataFrame(out).T
