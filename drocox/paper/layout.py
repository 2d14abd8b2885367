"""The paper's layout: which cells are best, which DRO variants win, and a table as HTML."""

import html

import numpy as np
import pandas as pd

from drocox.paper.exhibits import METRICS


def signed(table: pd.DataFrame) -> pd.Series:
    """Means with the sign that makes higher better.

    Parameters
    ----------
    table : DataFrame
        With the columns metric and mean.

    Returns
    -------
    Series
    """
    return table["mean"].where(table["metric"].map(lambda m: METRICS[m][1]), -table["mean"])


def best_by(table: pd.DataFrame) -> pd.Series:
    """Whether each row has the best mean of its model and metric.

    Parameters
    ----------
    table : DataFrame
        As :func:`drocox.paper.tables.main_table` gives it.

    Returns
    -------
    Series of bool
    """
    goal = signed(table)
    return goal == goal.groupby([table["model"], table["metric"]]).transform("max")


def wins(table: pd.DataFrame) -> pd.Series:
    """Whether each row is a DRO variant whose mean beats all baselines of its model and metric.

    Parameters
    ----------
    table : DataFrame
        As :func:`drocox.paper.tables.main_table` gives it.

    Returns
    -------
    Series of bool
        False throughout where a table has no baselines (T16, T17).
    """
    goal = signed(table)
    ours = table["method"].str.contains("DRO-COX")
    bar = goal.where(~ours).groupby([table["model"], table["metric"]]).transform("max")
    return ours & (goal > bar)


class Shown:
    """A table as HTML, with its caption where only text is shown."""

    def __init__(self, markup: str, caption: str):
        self.markup = markup
        self.caption = caption

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return f"<table: {self.caption}>"


def show(table: pd.DataFrame, caption: str = "test scores", distances: bool = True) -> Shown:
    """Lay a table out as the paper does.

    The best mean of each model and metric is bold; a DRO variant that beats all baselines is
    shaded; below each mean stand its SD and, where published, the paper's mean and our distance to
    it in the paper's SDs. Unlike there, CI and F_A come first.

    Parameters
    ----------
    table : DataFrame
        As :func:`drocox.paper.tables.main_table` gives it.
    caption : str
    distances : bool
        Whether to show the paper's means: not where the runs were judged on other patients.

    Returns
    -------
    Shown
        Displayed as HTML by a notebook.
    """
    marked = table.assign(best=best_by(table), win=wins(table))
    # what the book is about comes first
    metrics = dict.fromkeys(["ci_percent", "f_a", *METRICS])
    order = [metric for metric in metrics if metric in set(table["metric"])]
    twice = table.groupby("method")["model"].nunique().max() > 1  # T16: the same shares in both
    head = "".join(f"<th>{_heading(metric)}</th>" for metric in order)
    body = []
    for (model, method), of_method in marked.groupby(["model", "method"], sort=False):
        cells = of_method.set_index("metric").loc[order]
        data = "".join(_cell(cell, distances) for _, cell in cells.iterrows())
        name = html.escape(f"{model}, {method}" if twice else method).replace("(", "<wbr>(")
        body.append(f'<tr class="{model}"><th>{name}</th>{data}</tr>')
    markup = (
        f'<div class="wide-table"><table class="results"><caption>{html.escape(caption)}'
        f"</caption><thead><tr><th>method</th>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
    return Shown(markup, caption)


def _heading(metric: str) -> str:
    """Name of a metric, and an arrow to where it is better."""
    name, higher_is_better = METRICS[metric]
    return f"{name} {'↑' if higher_is_better else '↓'}"


def _cell(cell: pd.Series, distances: bool) -> str:
    """A mean, its SD and, where published and wanted, the paper's mean and our distance to it."""
    marks = " ".join(mark for mark in ("best", "win") if cell[mark])
    text = f"{cell['mean']:.4f}<br><small>({cell['std']:.4f})</small>"
    if distances and np.isfinite(cell["paper_mean"]):
        distance = (cell["mean"] - cell["paper_mean"]) / cell["paper_std"]
        signed_distance = f"{distance:+.1f}".replace("-", "\N{MINUS SIGN}")
        text += f"<br><small>{cell['paper_mean']:.4f} <i>{signed_distance}</i></small>"
    return f'<td class="{marks}">{text}</td>'
