"""The figures of an audit, drawn by matplotlib into a figure that is passed in.

The page embeds them as SVG (:func:`as_svg`); :meth:`drocox.auditing.audit.Audit.plot` passes
a figure of pyplot's. All are as wide as a phone can show with letters that can be read.
"""

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import rcsetup, style, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drocox.auditing.funnel import Funnel
from drocox.terminal import short_labels

WIDTH = 4.25  # inches: 306 points, so on a screen of 360 pixels a point is about a pixel
WIDE = 10.0
LABEL_WIDTH = 50  # characters that fit into it
MARKERS = "os^Dv*"  # one for each group: at most six are compared with each other
NO_METADATA = dict.fromkeys(["Creator", "Date", "Format", "Type"])
PAGE_STYLE = {
    "axes.prop_cycle": rcsetup.cycler(
        color=["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c7a00", "#767676"]
    ),
    "axes.edgecolor": "0.5",  # as all other lines: it can be seen on a light and on a dark ground
    "xtick.color": "0.5",
    "ytick.color": "0.5",
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "legend.frameon": False,
    "svg.fonttype": "none",  # letters stay letters, in the font and colour of the page
}


def as_svg(draw: Callable, *content: object, salt: str) -> str:
    """A drawing as SVG for a page of HTML, the same whatever style and backend are in use.

    ``draw`` is one of the functions below, ``content`` what it takes besides the figure. A
    different ``salt`` for each drawing makes identifiers unique on the page.
    """
    in_style = style.context(["default", {**PAGE_STYLE, "svg.hashsalt": salt}])
    with in_style, warnings.catch_warnings():
        # letters of other scripts, which matplotlib's font lacks: the browser has them
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure = Figure()
        draw(figure, *content)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=NO_METADATA)
    text = file.getvalue()
    tag, end, inside = text[text.index("<svg") :].partition(">")
    tag = re.sub(r' xmlns(:xlink)?="[^"]*"', "", tag)  # HTML knows the names of SVG
    # matplotlib numbers the groups of every drawing from 1, and nothing refers to them
    return tag + end + re.sub(r'<g id="[^"]*"', "<g", inside)


def draw_groups(
    figure: Figure,
    tables: Mapping[str, pd.DataFrame],
    titles: Mapping[str, str],
    wide: bool = False,
) -> None:
    """c-index and calibration of every group, with intervals.

    A tick beside the c-index is the expected one; the dotted line is at 1, perfect calibration.
    Where calibration is unknown, slopes or observed risks are drawn. Tables are by model, with a
    colour each; everybody is the first row. Labels are above the intervals, or beside them on a
    ``wide`` page.
    """
    together = pd.concat(tables.values())
    names = ["c_index", "calibration"]
    if together["calibration"].isna().all():
        names[1] = "slope" if together["slope"].notna().any() else "risk_observed"
    known = together[together[names].notna().any(axis=1)]
    places = {group: -k for k, group in enumerate(known["group"].unique())}
    several = len(tables) > 1
    step = 0.5 if several else 0.4
    step *= 0.75 if wide else 1.0
    _lay_out(figure, 0.6 + step * len(places) + 0.25 * len(tables) * several)
    figure.set_figwidth(WIDE if wide else WIDTH)
    axes = figure.subplots(1, 2, sharey=True)
    axes[0].set_zorder(1)  # its labels reach over the second panel
    for ax, name in zip(axes, names, strict=True):
        for k, (model, table) in enumerate(tables.items()):
            rows = table[table["group"].isin(places)]
            place = rows["group"].map(places) - 0.4 * k / len(tables)
            color = f"C{k}"
            ax.hlines(place, rows[f"{name}_low"], rows[f"{name}_high"], color, linewidth=2)
            ax.plot(rows[name], place, MARKERS[k % len(MARKERS)], color=color, label=model)
            if name == "c_index":
                known = rows["c_expected"].notna()
                tick = {"color": color if several else "C1", "markersize": 12, "mew": 2}
                ax.plot(rows["c_expected"][known], place[known], "|", **tick)
        for y in places.values() if name in ("calibration", "slope") else ():
            top = 0.52 if wide else 0.14  # else there are gaps where the labels are
            ax.plot([1, 1], [y - 0.48, y + top], ":", color="0.5")
        ax.set(xlabel=titles[name], yticks=[], ylim=(0.6 - len(places), 0.8))
        ax.spines[["left", "right", "top"]].set_visible(False)
        ax.grid(False)
    labels = short_labels(list(places), LABEL_WIDTH)
    if wide:
        axes[0].set_yticks(list(places.values()), labels, parse_math=False)
        axes[0].tick_params(axis="y", length=0)
        labels = []
    for y, label in zip(places.values(), labels, strict=False):  # above the interval, over both
        across = axes[0].get_yaxis_transform()
        text = axes[0].text(0, y + 0.2, label, transform=across, parse_math=False)
        text.set_in_layout(False)
    if several:
        handles, models = axes[0].get_legend_handles_labels()
        shown = figure.legend(
            handles, short_labels(models, LABEL_WIDTH - 6), loc="outside lower left"
        )
        for text in shown.get_texts():
            text.set_parse_math(False)


def draw_funnels(figure: Figure, funnels: Sequence[Funnel]) -> None:
    """The c-index of many groups by their events, and where they would lie by chance."""
    _lay_out(figure, 3.2 * len(funnels))
    axes = figure.subplots(len(funnels), 1, squeeze=False)
    for ax, one in zip(axes[:, 0], funnels, strict=True):
        _draw_funnel(ax, one)


def _draw_funnel(ax: Axes, one: Funnel) -> None:
    """One attribute: groups that differ are triangles with their names."""
    groups = one.groups
    least, most = groups["events"].min(), groups["events"].max()
    for beyond, marker in ((False, "o"), (True, "^")):
        rows = groups[groups["differs"] == beyond]
        ax.plot(rows["events"], rows["c_index"], marker, markersize=7 if beyond else 5)
    sizes = np.geomspace(least, most, 100)
    for at_once, line in ((False, ":"), (True, "--")):
        for limit in one.limits(sizes, at_once):
            ax.plot(sizes, limit, line, color="0.5")
    loud = groups[groups["differs"]].sort_values("c_index")
    line_height = np.ptp(ax.get_ylim()) / 16
    height = -np.inf
    for row, label in zip(loud.itertuples(), short_labels(loud["group"]), strict=True):
        left = row.events**2 < least * most  # the name is where there is more room
        height = max(height + line_height, row.c_index)
        ax.annotate(
            label,
            (row.events, row.c_index),
            xytext=(7 if left else -7, height),
            textcoords=("offset points", "data"),
            ha="left" if left else "right",
            va="center",
            parse_math=False,
        )
    ax.axhline(one.centre, color="0.5", linewidth=0.8)
    ax.set(xlabel="events", ylabel="c-index", xscale="log")
    ax.set_title(short_labels([one.attribute], LABEL_WIDTH)[0], parse_math=False)
    narrow = most < 5 * least
    ticks = ticker.MaxNLocator(4, integer=True) if narrow else ticker.LogLocator(subs=(1, 2, 5))
    ax.xaxis.set_major_locator(ticks)
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    ax.xaxis.set_major_formatter("{x:,.0f}")


def draw_calibration(figure: Figure, curves: pd.DataFrame) -> None:
    """Observed against predicted risk, a panel for each attribute and a curve for each group."""
    by_attribute = list(curves.groupby("attribute", sort=False))
    heights = [4.4 + 0.2 * rows["group"].nunique() for _, rows in by_attribute]
    _lay_out(figure, sum(heights))
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, (attribute, rows) in zip(parts, by_attribute, strict=True):
        ax = part.subplots()
        known = rows.dropna(subset=["predicted", "observed"])
        highest = max(known[["predicted", "observed", "high"]].max(axis=None), 0.01)
        ax.plot([0, highest], [0, highest], ":", color="0.5")
        groups = [curve for _, curve in known.groupby("group", sort=False)]
        labels = short_labels([curve["group"].iloc[0] for curve in groups], LABEL_WIDTH - 6)
        for k, (curve, label) in enumerate(zip(groups, labels, strict=True)):
            line = f"{MARKERS[k % len(MARKERS)]}-"
            ax.vlines(curve["predicted"], curve["low"], curve["high"], f"C{k}", alpha=0.5)
            ax.plot(curve["predicted"], curve["observed"], line, color=f"C{k}", label=label)
        ax.set(xlabel="predicted risk", ylabel="observed risk", aspect="equal")
        ax.locator_params(nbins=5)
        ax.set_title(short_labels([str(attribute)], LABEL_WIDTH)[0], parse_math=False)
        for text in part.legend(loc="outside lower left").get_texts():
            text.set_parse_math(False)


def _lay_out(figure: Figure, height: float) -> None:
    """The size of a figure, with room for titles and labels around its panels."""
    figure.set_layout_engine("constrained")
    figure.set_size_inches(WIDTH, height)
