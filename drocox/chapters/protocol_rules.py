"""The protocol: by which rules the published models were chosen, and how close we come.

``cells``, ``by_rule`` and ``fit`` are what the chapter computes of the published rows: every rule
against every published cell, the mean distance of each row by rule, and of four selections. The
chapter's other sections are in :mod:`drocox.chapters.protocol`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.chapters.protocol import percent
from drocox.paper import protocol, selection, tables

ROW = ["exhibit", "model", "method"]
PAPER_RULES = ["stated CI", "stated CI, 2 decimals", "one setting CI"]


def tell_rules() -> None:
    """For the number of rules, and of groups of rows that have one of their own."""
    say("n-rules", len(selection.SELECTION_RULES))
    say("n-recovered", len(selection.RECOVERED))


# How close do we come?


def draw_fit(fit: pd.DataFrame) -> Figure:
    """How many published rows lie within a mean distance, by selection.

    Parameters
    ----------
    fit : DataFrame
        Mean distance by row and selection.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots()
    counted = np.arange(1, len(fit) + 1)
    for k, (name, style) in enumerate(zip(fit, ("-", "-.", "--", ":"), strict=True)):
        axes.step(np.sort(fit[name]), counted, style, where="post", color=f"C{k}", label=name)
    axes.axvline(1, color="grey", linewidth=1)
    axes.set(
        xscale="log", xlabel="mean distance to the printed row (in printed SDs)",
        ylabel="rows within that distance", ylim=(0, 63),
    )  # fmt: skip
    axes.legend()
    return figure


def recovered_rules(cells: pd.DataFrame) -> pd.Series:
    """The recovered rule of each published row.

    Parameters
    ----------
    cells : DataFrame
        Of :func:`drocox.paper.tables.fidelity_cells`.

    Returns
    -------
    Series of str
        By exhibit, model and method.
    """
    recovered = cells[cells["recovered"]]
    return recovered.drop_duplicates(ROW).set_index(ROW)["rule"]


def choices(by_rule: pd.DataFrame) -> pd.DataFrame:
    """Different choices that the rules make for each row, and how many land within 1 SD.

    Rules that pick the same runs have the same distance and count once.

    Parameters
    ----------
    by_rule : DataFrame
        Mean distance by row and rule; NaN where a rule does not apply.

    Returns
    -------
    DataFrame
        Columns distinct and landed.
    """
    distinct = by_rule.round(9).nunique(axis=1)
    landed = by_rule.where(by_rule <= 1).round(9).nunique(axis=1)
    return pd.DataFrame({"distinct": distinct, "landed": landed})


def _link(exhibit: str) -> str:
    """A link to an exhibit."""
    page = "split-experiments" if exhibit in ("t16", "t17") else "main-tables"
    return f'<a href="{page}.html#{exhibit}">{exhibit.upper()}</a>'


def _row_name(method: str, model: str) -> str:
    """The name of a row; the shares of T16 are the same for both models."""
    is_share = method[0].isdigit()
    return f"{method} (nonlinear)" if is_share and model == "nonlinear" else method


def _distance(value: float) -> str:
    """A distance in SDs: far ones without decimals."""
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def show_rows(cells: pd.DataFrame, by_rule: pd.DataFrame, fit: pd.DataFrame) -> HTML:
    """All 62 published rows: distances by selection, choices, and rules.

    Parameters
    ----------
    cells, by_rule, fit : DataFrame

    Returns
    -------
    HTML
    """
    counts = choices(by_rule)
    recovered = recovered_rules(cells).replace("stated CI", "as stated")
    shown = pd.DataFrame({
        "stated": fit["stated"].map(_distance),
        "one setting": fit["one setting"].map(_distance),
        "recovered": fit["recovered"].map(_distance),
        "closest": fit["best of list"].map(_distance),
        "choices": counts["distinct"],
        "within 1 SD": counts["landed"],
        "recovered rule": recovered,
        "closest rule": by_rule.idxmin(axis=1),
    })  # fmt: skip
    shown = shown.loc[fit.index].reset_index()
    shown["exhibit"] = shown["exhibit"].map(_link)
    names = [_row_name(m, model) for m, model in zip(shown["method"], shown["model"], strict=True)]
    shown.insert(0, "row", names)
    shown = shown.drop(columns=["method", "model"]).replace("&", "&amp;", regex=True)
    return HTML(shown.to_html(index=False, border=0, escape=False))


def tell_fit(cells: pd.DataFrame, by_rule: pd.DataFrame, fit: pd.DataFrame) -> None:
    """For the cells and rows that come back under each selection.

    Parameters
    ----------
    cells, by_rule, fit : DataFrame
    """
    best_rule = by_rule.idxmin(axis=1).rename("best_rule")
    cells = cells.join(best_rule, on=ROW)
    selections = {
        "stated": cells[cells["rule"] == "stated CI"],
        "one": cells[cells["rule"] == "one setting CI"],
        "recovered": cells[cells["recovered"]],
        "best": cells[cells["rule"] == cells["best_rule"]],
    }
    for name, part in selections.items():
        guard(len(part) == 558, "62 rows, 558 cells")
        say(f"cells-{name}", percent((part["distance"] <= 1).mean()))
        gap = (part["mean"] - part["paper_mean"]).abs()
        say(f"digits-{name}", int((gap <= 1e-4).sum()))
    for name in fit:
        say(f"rows-{name.split()[0]}", int((fit[name] <= 1).sum()))
    either = fit[["stated", "one setting"]].min(axis=1)
    say("rows-either", int((either <= 1).sum()))
    guard((fit["recovered"] <= 1).all(), "the recovered rules give all 62 rows back")
    guard((fit["best of list"] <= 1).all(), "the closest rule of the list gives all 62 rows back")
    for name in ("stated", "recovered"):
        say(f"near-{name}", int((fit[name] <= 0.1).sum()))


def tell_cautions(by_rule: pd.DataFrame, fit: pd.DataFrame, recovered: pd.Series) -> None:
    """For "The rules were chosen because they fit".

    Parameters
    ----------
    by_rule, fit : DataFrame
    recovered : Series
        Of :func:`recovered_rules`.
    """
    counts = choices(by_rule)
    say("land-share", percent(counts["landed"].sum() / counts["distinct"].sum()))
    forensic = recovered.index[~recovered.isin(PAPER_RULES)]
    say("n-forensic", len(forensic))
    say("forensic-stated", f"{fit.loc[forensic, 'stated'].median():.1f}")
    say("forensic-recovered", f"{fit.loc[forensic, 'recovered'].median():.2f}")
    say("forensic-single", int((counts.loc[forensic, "landed"] == 1).sum()))

    by_test = recovered.index[recovered.str.startswith("test")]
    expected = [("t2", "linear", "DRO-COX"), ("t4", "linear", "DRO-COX")]
    guard(list(by_test) == expected, "Two rows, linear DRO-COX on FLC and SEER, use test data")
    alone = (counts.loc[by_test, "landed"] == 1).all()
    guard(alone, "come back only with a rule that looks at test data")

    of_split = fit.index.get_level_values("exhibit").isin(["t16", "t17"])
    linear = fit.index.get_level_values("model") == "linear"
    n2 = fit.index[of_split & linear]
    say("n2-rows", len(n2))
    named = (recovered[n2] == "named setting").all()
    guard(named, "come back with the setting that the released instructions name")
    guard(fit.loc[n2, "stated"].min() > 40, "not with the stated rule")

    is_split = fit.index.get_level_values("method").str.contains("SPLIT") | of_split
    deep = fit.index[is_split & ~linear]
    guard(len(deep) == 10, "the ten rows of nonlinear SPLIT")
    guard(set(recovered[deep]) == {"no gradient"}, "the log-sum of its loss passes no gradient")
    others = by_rule.loc[deep].drop(columns="no gradient")
    say("split-nearest", f"{others.min(axis=None):.1f}")
    say("split-recovered", f"{fit.loc[deep, 'recovered'].max():.2f}")


def tell_printed(printed: pd.DataFrame, points: pd.DataFrame) -> None:
    """For rows that are printed twice, and for the points of F1.

    Parameters
    ----------
    printed : DataFrame
        The published cells.
    points : DataFrame
        Tables of F1, as published, rows with a printed mean.
    """
    means = printed.set_index(["table", "model", "method", "metric"])["mean"].sort_index()
    for model in protocol.MODELS:
        of_t17 = means[tables.EXHIBIT_OF["t17"], model, protocol.SPLIT[model]]
        of_t16 = means[tables.EXHIBIT_OF["t16"], model, "0.5n"]
        guard((of_t17 == of_t16).all(), "T17's two-sided SPLIT is T16's 0.5n")
    gap = (points["mean"] - points["paper_mean"]).abs() / points["paper_std"]
    guard(len(points) == 90, "of its 90 points")
    say("points-within", int((gap <= 1).sum()))
    say("points-mean", f"{gap.mean():.2f}")


def tell_control(control: pd.DataFrame) -> None:
    """For the control: the list of rules on runs that cannot be the paper's.

    Parameters
    ----------
    control : DataFrame
        Distance under the best rule: 24 linear rows by protocol.
    """
    for name in protocol.PROTOCOLS:
        say(f"control-{name}", int((control[name] <= 1).sum()))
        say(f"control-median-{name}", f"{control[name].median():.2f}")
    nearest = control["corrected"].min()
    say("control-nearest", f"{nearest:.2f}")
    say("control-nearer", int((control["as_published"] < nearest).sum()))
    guard(nearest > 0.1, "none comes nearer")
    guard((control["as_published"] <= 1).all(), "All rows land with the right runs")
    guard((control["corrected"] <= 1).sum() < 12, "the list does not fit anything")
