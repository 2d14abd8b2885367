"""The main tables as ranked dots: choose data set, metric, view and kind of model; keep it as CSV.

A dot is the mean over ten repeats, its bar one standard deviation to either side. The best method
is at the top. Means and deviations are those of :func:`drocox.paper.tables.main_table`.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from drocox.explorables.element import Explorable, button, choice, element, output
from drocox.explorables.svg import colour, escape, number, part, picture, ticks
from drocox.paper import claims, protocol, tables

WIDTH = 400
WIDEST = 540  # pixels on a large screen
LEFT, RIGHT = 150, 300  # of the axis
TOP, LINE = 14, 20  # the first row, and from one to the next
ROWS = len(protocol.METHODS)
BOTTOM = TOP + ROWS * LINE
HEIGHT = BOTTOM + 44
TICKS = 7  # at most
METRICS = {
    "c_index": "c-index",
    "auc": "AUC",
    "lpl": "LPL",
    "ibs": "IBS",
    "f_i": "F_I",
    "f_g": "F_G",
    "f_cap": "F_∩",
    "f_a": "F_A",
    "ci_percent": "CI (%)",
}
DIGITS = dict.fromkeys(METRICS, 3) | {"lpl": 2, "ci_percent": 2}
MODELS = {"both": "linear and nonlinear", "linear": "linear", "nonlinear": "nonlinear"}
FAMILIES = {
    "plain": colour(0),
    "penalised": "var(--pst-color-text-muted,#666)",
    "DRO-COX": colour(1),
    "SPLIT": colour(2),
}


def family(method: str) -> str:
    """Which of ``FAMILIES`` a method belongs to.

    Parameters
    ----------
    method : str

    Returns
    -------
    str
    """
    settings = protocol.METHODS[method]
    if settings.loss == "dro":
        return "DRO-COX"
    if settings.loss == "split":
        return "SPLIT"
    return "penalised" if settings.penalty else "plain"


def cells(table: pd.DataFrame, metric: str, *, printed: bool) -> list[list[float]]:
    """Mean and standard deviation of every method, in the order of the protocol.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drocox.paper.tables.main_table`.
    metric : str
    printed : bool
        Those of the paper, in place of ours.

    Returns
    -------
    list of [mean, standard deviation]
        With five significant digits.
    """
    one = table[table["metric"] == metric].set_index("method")
    columns = ["paper_mean", "paper_std"] if printed else ["mean", "std"]
    values = one.loc[list(protocol.METHODS), columns].to_numpy()
    return [[float(f"{value:.5g}") for value in row] for row in values]


def limits(rows: list[list[list[float]]]) -> tuple[float, float]:
    """What an axis spans that all views share; means far from all others do not count.

    Parameters
    ----------
    rows : list
        Cells of all views.

    Returns
    -------
    pair of float
    """
    mean, std = np.array(rows).reshape(-1, 2).T
    distance = np.abs(mean - np.median(mean))
    near = distance <= 8 * np.median(distance) + 1e-9
    low = (mean - std)[near].min()
    high = (mean + std)[near].max()
    pad = 0.03 * (high - low)
    return float(f"{low - pad:.4g}"), float(f"{high + pad:.4g}")


def ranked(rows: list[list[float]], metric: str, model: str) -> list[int]:
    """Numbers of the methods, the best first.

    Parameters
    ----------
    rows : list
        Of :func:`cells`.
    metric : str
    model : {"both", "linear", "nonlinear"}

    Returns
    -------
    list of int
    """
    methods = list(protocol.METHODS)
    kept = [i for i in range(ROWS) if model in {"both", protocol.METHODS[methods[i]].model}]
    sign = -1 if tables.METRICS[metric][1] else 1
    return sorted(kept, key=lambda i: sign * rows[i][0])


def label(method: str) -> str:
    """A method as it is called in the picture.

    Parameters
    ----------
    method : str

    Returns
    -------
    str
    """
    return method.replace("_cap", "_∩")


def place(value: float, span: tuple[float, float]) -> float:
    """Pixels of a value on the axis; what lies beyond it stands at its end.

    Parameters
    ----------
    value : float
    span : pair of float

    Returns
    -------
    float
    """
    share = (value - span[0]) / (span[1] - span[0])
    return LEFT + min(max(share, 0), 1) * (RIGHT - LEFT)


def draw(rows: list[list[float]], order: list[int], metric: str, span: tuple[float, float]) -> str:
    """Ranked dots with bars, names and numbers.

    Parameters
    ----------
    rows : list
        Of :func:`cells`.
    order : list of int
        Of :func:`ranked`.
    metric : str
    span : pair of float
        Of :func:`limits`.

    Returns
    -------
    str
        An ``svg`` element.
    """
    methods = list(protocol.METHODS)
    marks = list(ticks(*span).items())
    content = []
    for i in range(TICKS):
        value, text = marks[i] if i < len(marks) else (span[0], "")
        x = place(value, span)
        line = f"M{x:.1f} {TOP}V{BOTTOM}"
        content.append(part("path", f"grid{i}", d=line, stroke="currentColor", opacity="0.15"))
        at = {"x": x, "y": BOTTOM + 16, "text_anchor": "middle"}
        content.append(part("text", f"tick{i}", text, **at))
    axis = f"M{LEFT} {BOTTOM}H{RIGHT}"
    content.append(part("path", "", d=axis, stroke="currentColor"))
    for rank in range(ROWS):
        y = TOP + (rank + 0.5) * LINE
        name, value, bar, x, style = "", "", "", 0.0, ""
        if rank < len(order):
            method = methods[order[rank]]
            mean, std = rows[order[rank]]
            digits = DIGITS[metric]
            name = escape(label(method))
            value = f"{number(mean, digits)} ± {number(std, digits)}"
            bar = f"M{place(mean - std, span):.1f} {y:.1f}H{place(mean + std, span):.1f}"
            x = place(mean, span)
            ink = FAMILIES[family(method)]
            linear = protocol.METHODS[method].model == "linear"
            inside = ink if linear else "var(--pst-color-background,#fff)"
            style = f"stroke:{ink};fill:{inside};stroke-width:2"
        content.append(part("text", f"name{rank}", name, x=LEFT - 8, y=y + 4.5, text_anchor="end"))
        content.append(part("path", f"bar{rank}", d=bar, style=style))
        radius = "5" if style else "0"
        content.append(part("circle", f"dot{rank}", cx=x, cy=y, r=radius, style=style))
        content.append(part("text", f"value{rank}", value, x=RIGHT + 8, y=y + 4.5))
    at = {"x": (LEFT + RIGHT) / 2, "y": HEIGHT - 8, "text_anchor": "middle"}
    content.append(part("text", "metric", METRICS[metric], **at))
    return picture(WIDTH, HEIGHT, "".join(content), widest=WIDEST)


def summary(rows: list[list[float]], order: list[int], metric: str) -> str:
    """Who is first, and where the first DRO method is.

    Parameters
    ----------
    rows, order, metric
        As in :func:`draw`.

    Returns
    -------
    str
    """
    methods = [list(protocol.METHODS)[i] for i in order]
    best = "largest" if tables.METRICS[metric][1] else "smallest"
    mean = number(rows[order[0]][0], DIGITS[metric])
    text = f"The {best} mean of {METRICS[metric]}, {mean}, is that of {label(methods[0])}. "
    rank = next(i for i, m in enumerate(methods) if family(m) in {"DRO-COX", "SPLIT"})
    if rank == 0:
        return text
    return text + f"The first DRO method, {label(methods[rank])}, is {rank + 1} of {len(order)}."


class Gathered:
    """Means and deviations of all exhibits, views and metrics, and what their axes span.

    Parameters
    ----------
    main_tables : mapping of (exhibit, view) to DataFrame
        Tables of :func:`drocox.paper.tables.main_table`.
    titles : mapping of str to str
        What the exhibits are called.
    """

    def __init__(
        self, main_tables: Mapping[tuple[str, str], pd.DataFrame], titles: Mapping[str, str]
    ) -> None:
        self.titles = titles
        self.values = {}
        self.spans = {}
        for exhibit in titles:
            by_view = {}
            for view in claims.IN_ORDER:
                printed = view == "printed"
                table = main_tables[exhibit, "corrected" if printed else view]
                by_view[view] = {m: cells(table, m, printed=printed) for m in METRICS}
            self.values[exhibit] = by_view
            self.spans[exhibit] = {m: limits([v[m] for v in by_view.values()]) for m in METRICS}


def results_browser(
    gathered: Gathered,
    *,
    exhibit: str = "t2",
    metric: str = "ci_percent",
    view: str = "corrected",
    model: str = "both",
) -> Explorable:
    """The main tables as ranked dots.

    Parameters
    ----------
    gathered : Gathered
    exhibit, metric, view, model : str
        The first state.

    Returns
    -------
    Explorable
    """
    titles = gathered.titles
    values = gathered.values
    spans = gathered.spans
    views = claims.IN_ORDER
    rows = values[exhibit][view][metric]
    order = ranked(rows, metric, model)
    methods = list(protocol.METHODS)
    figure = "results"
    legend = " ".join(
        f'<span class="explore-key" style="--key:{ink}">{name}</span>'
        for name, ink in FAMILIES.items()
    )
    return element(
        "results",
        figure,
        title="The main tables as ranked dots",
        alt=f"Methods ranked by the mean of a metric, each a dot with a bar of one standard "
        f"deviation to either side; here {METRICS[metric]} on {titles[exhibit]}, {view}.",
        pictures=[draw(rows, order, metric, spans[exhibit][metric])],
        inputs=[
            '<div class="explore-choices">',
            choice(figure, "exhibit", "data set", titles, exhibit),
            choice(figure, "metric", "metric", METRICS, metric),
            choice(figure, "view", "view", {v: v for v in views}, view),
            choice(figure, "model", "models", MODELS, model),
            '</div><div class="explore-buttons">',
            button("shown", "CSV of what is shown"),
            button("all", "CSV of everything"),
            "</div>",
        ],
        readout=f"{legend} Filled: linear, open: nonlinear; bars: one SD of ten repeats. "
        f"{output('summary', summary(rows, order, metric))}",
        data={
            "values": values,
            "spans": spans,
            "ticks": {
                name: {m: list(ticks(*span).items()) for m, span in of_name.items()}
                for name, of_name in spans.items()
            },
            "metrics": METRICS,
            "digits": DIGITS,
            "larger": [m for m in METRICS if tables.METRICS[m][1]],
            "titles": titles,
            "methods": methods,
            "models": [protocol.METHODS[m].model for m in methods],
            "colours": [FAMILIES[family(m)] for m in methods],
            "dro": [family(m) in {"DRO-COX", "SPLIT"} for m in methods],
            "axis": [LEFT, RIGHT, TOP, LINE, BOTTOM],
        },
        prompt="Choose a data set, a metric and a view. The best method is at the top.",
    )
