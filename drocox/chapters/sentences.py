"""What modules of several chapters share: tables and figures for the page, views, verdicts.

A *view* is one of the six of :mod:`drocox.paper.claims`. Names of values on a page contain a view
either in short (:data:`SHORT`) or with dashes (:func:`dashed`).
"""

from typing import NamedTuple

import pandas as pd
from scipy.stats import t as student

from drocox.bookstyle import guard
from drocox.paper import claims, tables

# views in names of values
SHORT = {
    "printed": "printed",
    "as published": "as",
    "stated rule": "stated",
    "one setting": "one",
    "corrected": "corrected",
    "corrected, one setting": "corrected-one",
}
ALL_VIEWS = tables.VIEWS | tables.READINGS  # of our runs: protocol and selection
BOTH_READINGS = ("corrected", "corrected, one setting")
WRITTEN = {"flc": "FLC", "support": "SUPPORT", "seer": "SEER"}
VERDICTS = {"not": "not reproduced", "partly": "partly reproduced"}


def keep(name: str, shown: object, display: bool = False) -> None:
    """Keep a table or a figure for the page, where ``{glue}`` shows it.

    Without the book's builder there is nothing to keep it for.

    Parameters
    ----------
    name : str
    shown : object
        Anything that a notebook can display.
    display : bool
        Whether a notebook shows it below the cell, too.
    """
    try:
        from myst_nb import glue
    except ImportError:
        return
    glue(name, shown, display=display)


def dashed(view: str) -> str:
    """A view as part of a name: "corrected, one setting" is "corrected-one-setting".

    Parameters
    ----------
    view : str

    Returns
    -------
    str
    """
    return view.replace(", ", "-").replace(" ", "-")


def with_minus(text: str) -> str:
    """A text with proper minus signs in the place of hyphens.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    return text.replace("-", "\N{MINUS SIGN}")


def by_method(table: pd.DataFrame, metric: str, value: str = "mean") -> pd.Series:
    """One metric of a table, by method.

    Parameters
    ----------
    table : DataFrame
        As :func:`drocox.paper.tables.main_table` gives it.
    metric : str
    value : str
        The column: "mean", "std", "paper_mean" or "paper_std".

    Returns
    -------
    Series
    """
    return table[table["metric"] == metric].set_index("method")[value]


def within_one_sd(table: pd.DataFrame) -> int:
    """Rows whose nine distances to the printed means are at most 1 printed SD on average.

    Parameters
    ----------
    table : DataFrame
        As :func:`drocox.paper.tables.main_table` gives it.

    Returns
    -------
    int
    """
    gap = (table["mean"] - table["paper_mean"]).abs() / table["paper_std"]
    rows = gap.groupby([table["model"], table["method"]]).mean()
    return int((rows <= 1).sum())


def verdict_words(claim: dict, count: claims.Count) -> str:
    """A verdict as sentences write it: "not reproduced", "partly reproduced, undecided", …

    Parameters
    ----------
    claim : dict
        Of :func:`drocox.paper.claims.claims`.
    count : Count
        Of the claim's judge.

    Returns
    -------
    str
    """
    verdict = claims.verdict(claim, count)
    words = VERDICTS.get(verdict, verdict)
    undecided = claims.recurrence(claim, count) < claims.RECURS
    return f"{words}, undecided" if undecided else words


class Judged(NamedTuple):
    """A claim in one view, as sentences write it."""

    count: claims.Count
    number: str  # "5 of 8"
    words: str  # of :func:`verdict_words`


def judged(name: str, view: str) -> Judged:
    """Count and verdict of a claim in a view.

    Parameters
    ----------
    name : str
        "C1" to "C20".
    view : str

    Returns
    -------
    Judged
    """
    count = claims.JUDGES[name](view)
    words = verdict_words(claims.claims()[name], count)
    return Judged(count, f"{count.value:g} of {count.of}", words)


def interval_width() -> float:
    """Half-width of a 95 % interval of ten repeats, in SDs of one: corrected, eq. (Nadeau).

    Returns
    -------
    float
    """
    return float(student.ppf(0.975, 9) * (1 / 10 + claims.TESTED_PER_LEARNED["corrected"]) ** 0.5)


def keep_unpublished(exhibit: str, view: str, table: pd.DataFrame) -> None:
    """Lay out one of T5 to T15, whose printed numbers are not known.

    Parameters
    ----------
    exhibit : str
    view : str
    table : DataFrame
        As :func:`drocox.paper.tables.main_table` gives it.
    """
    dataset, attribute, tune_by = tables.EXHIBITS[exhibit]
    guard(table["paper_mean"].isna().all(), "Their numbers are not in our copy of the paper")
    goal = {"ci_percent": "CI", "f_a": "F_A"}[tune_by]
    caption = f"{dataset.upper()} ({attribute}), tuned by {goal}, {view}"
    keep(f"{exhibit}-{dashed(view)}", tables.show(table, caption))
