"""The main tables as ranked dots: choose data set, metric, view and kind of model; keep it as CSV.

A dot is the mean over ten repeats, its bar one standard deviation to either side. The best method
is at the top. Means and deviations are those of :func:`drocox.paper.tables.main_table`.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.explorables.element import element, rounded
from drocox.paper import protocol, tables

METRICS = {  # their names without markup: F_I
    metric: name.replace("<sub>", "_").replace("</sub>", "")
    for metric, (name, _) in tables.METRICS.items()
}
VIEWS = ("printed", "reproduced", "corrected")
FIRST = {"exhibit": "t2", "metric": "ci_percent", "view": "corrected", "model": "both"}


def kind_of(method: str) -> str:
    """The kind of a method: plain, penalised, DRO-COX or SPLIT."""
    settings = protocol.METHODS[method]
    if settings.loss == "dro":
        return "DRO-COX"
    if settings.loss == "split":
        return "SPLIT"
    return "penalised" if settings.penalty else "plain"


def cells(table: pd.DataFrame, metric: str, *, printed: bool) -> np.ndarray:
    """Mean and standard deviation, ours or the printed ones, of every method of the protocol."""
    one = table[table["metric"] == metric].set_index("method")
    columns = ["paper_mean", "paper_std"] if printed else ["mean", "std"]
    return one.loc[list(protocol.METHODS), columns].to_numpy()


def limits(rows: list[np.ndarray]) -> tuple[float, float]:
    """Axis limits shared by all views; means far from all others are ignored."""
    mean, std = np.array(rows).reshape(-1, 2).T
    distance = np.abs(mean - np.median(mean))
    near = distance <= 8 * np.median(distance) + 1e-9
    low = (mean - std)[near].min()
    high = (mean + std)[near].max()
    pad = 0.03 * (high - low)
    return float(f"{low - pad:.4g}"), float(f"{high + pad:.4g}")


def results_browser(
    main_tables: Mapping[tuple[str, str], pd.DataFrame], titles: Mapping[str, str], figure: Figure
) -> tables.Shown:
    """The main tables as ranked dots, of which the choices of ``FIRST`` are shown at first.

    ``main_tables`` has two tables of :func:`drocox.paper.tables.main_table` for each exhibit, under
    "reproduced" and "corrected"; ``titles`` has the names of the exhibits. ``figure`` is shown
    where no script runs.
    """
    methods = list(protocol.METHODS)
    values = {}
    spans = {}
    for name in titles:
        by_view = {}
        for each in VIEWS:
            printed = each == "printed"
            table = main_tables[name, "reproduced" if printed else each]
            by_view[each] = {m: cells(table, m, printed=printed) for m in METRICS}
        values[name] = by_view
        spans[name] = {m: limits([v[m] for v in by_view.values()]) for m in METRICS}
    return element(
        "results",
        "results",
        title="The main tables as ranked dots",
        alt=f"Methods ranked by the mean of a metric, each a dot with a bar of one standard "
        f"deviation to either side; here {METRICS[FIRST['metric']]} on {titles[FIRST['exhibit']]}, "
        f"{FIRST['view']}.",
        figure=figure,
        data={
            "values": {
                name: {
                    v: {m: rounded(rows, 9) for m, rows in by_metric.items()}  # as they are stored
                    for v, by_metric in by_view.items()
                }
                for name, by_view in values.items()
            },
            "spans": spans,
            "metrics": METRICS,
            "digits": tables.DIGITS,
            "larger": [m for m in METRICS if tables.METRICS[m][1]],
            "titles": titles,
            "views": VIEWS,
            "methods": methods,
            "models": [protocol.METHODS[m].model for m in methods],
            "kinds": [kind_of(m) for m in methods],
            "first": FIRST,
        },
    )
