"""The chapter *Rivals on equal terms*: what is firm in the league, its drawings and its tables.

The rows come from :mod:`drocox.beyond.rivals`: one for each data set, attribute and rival, with
differences to Cox in points (``c_diff``, ``ci_diff``, ...), the sum of both gaps (``ci_sum``) and
jackknife errors (``..._se``). A difference is firm *alone* if its 95 % interval excludes 0, and
*together* if it still does when all comparisons of the league share the 5 % (Bonferroni). The
chapter's sentences are in :mod:`drocox.chapters.rivals_sentences`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from drocox.beyond.methods import CROSSED, METHODS, STOPPED
from drocox.chapters.sentences import WRITTEN, with_minus
from drocox.paper.comparisons import PAIRS
from drocox.paper.datasets import load_dataset
from drocox.paper.signed import verdict_words

ALONE = stats.norm.ppf(0.975)
ROUNDING = 1e-5  # points: a shrunken Cox has the same ranks but for scores within 1e-8
LEAGUE = [name for name, method in METHODS.items() if method.against == "Cox" and name != "Cox"]
GENTLE = "DRO-COX, sharp 0.5"
PAPER = "DRO-COX"
AGE = ("support", "age")
# models whose service to either group is tabulated
SERVED = ("Cox", PAPER, GENTLE, "DRO-COX (SPLIT), sharp 0.5", "CVaR 0.5", CROSSED, STOPPED)
MARKS = {"Cox": ("k", "D"), GENTLE: ("C0", "o"), PAPER: ("C1", "s")}


def pair_name(dataset: str, attribute: str) -> str:
    """A data set and an attribute, as the chapter writes them.

    Parameters
    ----------
    dataset, attribute : str

    Returns
    -------
    str
        For example "SUPPORT (age)".
    """
    return f"{WRITTEN[dataset]} ({attribute})"


def of_league(runs: pd.DataFrame) -> pd.DataFrame:
    """The rivals that are compared with Cox, and what the signed gaps say of each.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.

    Returns
    -------
    DataFrame
        With the words ``alone`` and ``together``, of :mod:`drocox.paper.signed`.
    """
    league = runs[runs.index.get_level_values("method").isin(LEAGUE)].copy()
    difference = -in_errors(league, "ci_diff")  # Cox less rival
    total = in_errors(league, "ci_sum")
    league["alone"] = verdict_words(difference, total, ALONE)
    league["together"] = verdict_words(difference, total, together_bar(league))
    return league


def together_bar(league: pd.DataFrame) -> float:
    """How many standard errors a difference needs when all comparisons are looked at.

    Parameters
    ----------
    league : DataFrame
        A row for each comparison.

    Returns
    -------
    float
    """
    return float(stats.norm.ppf(1 - 0.025 / len(league)))


def in_errors(rows: pd.DataFrame, name: str) -> np.ndarray:
    """A difference or sum in units of its standard error; 0 where it is rounding.

    Parameters
    ----------
    rows : DataFrame
    name : str
        Of a column with an error beside it.

    Returns
    -------
    array
    """
    value = rows[name].to_numpy()
    error = np.maximum(rows[f"{name}_se"].to_numpy(), ROUNDING)
    return np.where(np.abs(value) > ROUNDING, value / error, 0.0)


def firm(league: pd.DataFrame, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Comparisons with a difference to Cox that holds up when all are looked at.

    Parameters
    ----------
    league : DataFrame
        Of :func:`of_league`.
    name : str
        A figure, such as "c".

    Returns
    -------
    higher, lower : DataFrame
    """
    statistic = in_errors(league, f"{name}_diff")
    bar = together_bar(league)
    return league[statistic > bar], league[statistic < -bar]


def plus_minus(row: pd.Series, name: str, digits: int = 2) -> str:
    """A signed figure with its 95 % interval, as "+0.97 ± 0.36".

    Parameters
    ----------
    row : Series
    name : str
        Of a column with an error beside it.
    digits : int

    Returns
    -------
    str
    """
    value = round(row[name], digits) + 0.0  # no minus before a zero
    return f"{value:+.{digits}f} ± {ALONE * row[f'{name}_se']:.{digits}f}"


def group_names(dataset: str, attribute: str) -> list[str]:
    """The two groups, as the chapter writes them.

    Parameters
    ----------
    dataset, attribute : str

    Returns
    -------
    list of str
    """
    labels = load_dataset(dataset).group_labels[attribute]
    return [label.replace("<=", "≤") for label in labels]


# Drawings -------------------------------------------------------------------------------------


def _point(axes: Axes, row: pd.Series, name: str, y: float, colour: str, mark: str, filled=True):
    face = colour if filled else "none"
    half = ALONE * row[f"{name}_se"]
    axes.errorbar(row[name], y, xerr=half, fmt=mark, color=colour, mfc=face, ms=5, lw=1.2)


def _mark_zero(axes: Axes) -> None:
    axes.axvline(0, color="0.5", lw=1)
    axes.grid(axis="y", visible=False)


def _name_rows(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)


def draw_pairs(runs: pd.DataFrame) -> Figure:
    """Signed gaps of three models on the seven pairs, and what two of them cost in c-index.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.

    Returns
    -------
    Figure
    """
    figure, (gap, price) = plt.subplots(
        1, 2, figsize=(8.6, 4.4), width_ratios=[3, 2], sharey=True, layout="constrained"
    )
    for y, pair in enumerate(PAIRS):
        for k, (method, (colour, mark)) in enumerate(MARKS.items()):
            row = runs.loc[(*pair, method)]
            _point(gap, row, "ci", y + 0.22 * (k - 1), colour, mark)
            if method != "Cox":
                _point(price, row, "c_diff", y + 0.22 * (k - 1), colour, mark)
    _name_rows(gap, [pair_name(*pair) for pair in PAIRS])
    for panel in (gap, price):
        _mark_zero(panel)
    gap.set_xlabel("signed gap Δ, points (0: equal)")
    price.set_xlabel("c-index less Cox's, points")
    for method, (colour, mark) in MARKS.items():
        gap.plot([], [], mark, color=colour, label=method)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def draw_league(league: pd.DataFrame, dataset: str, attribute: str) -> Figure:
    """All rivals on one pair: how far the gap moved, the c-index, and either group's own.

    Parameters
    ----------
    league : DataFrame
        Of :func:`of_league`.
    dataset, attribute : str

    Returns
    -------
    Figure
        Filled marks are firm over all comparisons of the league.
    """
    rows = league.loc[(dataset, attribute)]
    names = [name for name in LEAGUE if name in rows.index]
    labels = group_names(dataset, attribute)
    panels = {
        "ci_diff": "gap Δ",
        "c_diff": "c-index",
        "own_0_diff": f"own c-index,\n{labels[0]}",
        "own_1_diff": f"own c-index,\n{labels[1]}",
    }
    figure, axes = plt.subplots(1, 4, figsize=(9.2, 5.6), sharey=True, layout="constrained")
    bar = together_bar(league)
    for axis, (column, title) in zip(axes, panels.items(), strict=True):
        for y, name in enumerate(names):
            row = rows.loc[name]
            held = abs(row[column]) > max(bar * row[f"{column}_se"], ROUNDING)
            _point(axis, row, column, y, "C0" if held else "0.45", "o", held)
        _mark_zero(axis)
        axis.set_title(with_minus(title), fontsize="medium")
    _name_rows(axes[0], names)
    figure.supxlabel(f"{pair_name(dataset, attribute)}: rival less Cox, points", fontsize="medium")
    return figure


def draw_levels(runs: pd.DataFrame) -> Figure:
    """Who levels up and who down: either group's own c-index less Cox's, on the seven pairs.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.

    Returns
    -------
    Figure
    """
    shown = (GENTLE, PAPER, CROSSED)
    figure, axes = plt.subplots(
        1, 3, figsize=(9.2, 5.0), sharey=True, sharex=True, layout="constrained"
    )
    labels = []
    for pair in PAIRS:
        labels += [f"{WRITTEN[pair[0]]}, {name}" for name in group_names(*pair)]
    for axis, method in zip(axes, shown, strict=True):
        for i, pair in enumerate(PAIRS):
            for group in (0, 1):
                row = runs.loc[(*pair, method)]
                column = f"own_{group}_diff"
                away = abs(row[column]) > ALONE * row[f"{column}_se"]
                colour = ("C0" if row[column] > 0 else "C1") if away else "0.45"
                mark = "o" if row[column] > 0 else "s"
                _point(axis, row, column, 2 * i + group, colour, mark, away)
        _mark_zero(axis)
        axis.set_title(method, fontsize="medium")
    _name_rows(axes[0], labels)
    axes[1].set_xlabel("own c-index less Cox's, points")
    return figure


# Tables ---------------------------------------------------------------------------------------


def shown_pairs(runs: pd.DataFrame, league: pd.DataFrame) -> pd.DataFrame:
    """Signed gaps on the seven pairs and what is said of two robust models.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.
    league : DataFrame
        Of :func:`of_league`.

    Returns
    -------
    DataFrame
        Texts: Δ with 95 % intervals, in points, and the words for one look.
    """
    table = {}
    for pair in PAIRS:
        line = {"Cox": plus_minus(runs.loc[(*pair, "Cox")], "ci", 1)}
        for method in (GENTLE, PAPER):
            row = league.loc[(*pair, method)]
            line[method] = plus_minus(row, "ci", 1)
            line[f"{method}: verdict"] = row["alone"]
        table[pair_name(*pair)] = line
    return pd.DataFrame(table).T.map(with_minus)


def shown_groups(runs: pd.DataFrame, dataset: str, attribute: str) -> pd.DataFrame:
    """How well some models serve either group.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.
    dataset, attribute : str

    Returns
    -------
    DataFrame
        Texts: own c-index (Cox's in per cent, the others' less Cox's in points), observed by
        expected events, and calibration slope, with 95 % intervals.
    """
    labels = group_names(dataset, attribute)
    table = {}
    for method in SERVED:
        row = runs.loc[(dataset, attribute, method)]
        line = {}
        for group in (0, 1):
            shown = f"{row[f'own_{group}']:.1f} ± {ALONE * row[f'own_{group}_se']:.1f}"
            if method != "Cox":
                shown = plus_minus(row, f"own_{group}_diff")
            line["own c-index", labels[group]] = shown
        for heading, name in (("observed/expected", "oe"), ("slope", "slope")):
            for group in (0, 1):
                half = ALONE * row[f"{name}_{group}_se"]
                line[heading, labels[group]] = f"{row[f'{name}_{group}']:.2f} ± {half:.2f}"
        table[method] = line
    text = pd.DataFrame(table).T.map(with_minus)
    text.columns = pd.MultiIndex.from_tuples(text.columns)
    return text


def shown_detectable(league: pd.DataFrame) -> pd.DataFrame:
    """Differences to Cox that would be found with probability 80 %, in points.

    Parameters
    ----------
    league : DataFrame
        Of :func:`of_league`.

    Returns
    -------
    DataFrame
        By pair: gap and c-index of two robust models, alone.
    """
    table = {}
    for pair in PAIRS:
        line = {}
        for method in (GENTLE, PAPER):
            row = league.loc[(*pair, method)]
            for name, title in (("ci_diff", "gap"), ("c_diff", "c-index")):
                line[f"{method}: {title}"] = (ALONE + 0.84) * row[f"{name}_se"]
        table[pair_name(*pair)] = line
    return pd.DataFrame(table).T.round(2)
