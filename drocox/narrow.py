"""Figures for phones: the panels of a drawn figure below each other, at a phone's width.

While the book is built, each figure of a chapter is drawn twice. The second, narrow drawing travels
with the first in the metadata of a cell's output, where notebooks ignore it; the page shows it on
small screens.
"""

import base64
import gzip
import re
import textwrap
import warnings
from itertools import pairwise

from IPython.core.pylabtools import print_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

FITS = 5.2  # inches. Such a figure is shown on a phone as it is
WIDTH = 4.25  # inches. On a phone letters of 9 points are then 9 pixels high
ABOUT = {"Date": None, "Creator": None}  # metadata of an SVG: none, so that its bytes do not change
NARROW = "narrow"  # the key in the metadata
NUMBER = re.compile(r"[-\N{MINUS SIGN}]?[\d.]+")
LINE = 24  # letters above or below one of two panels side by side
LEAST = 10  # letters of a line
GAP = 3  # pixels between two numbers below a panel, at least
Place = tuple[int, int]  # row and column


def panels_by_place(figure: Figure) -> dict[Place, Axes]:
    """The panels of a figure that is a grid of them.

    Parameters
    ----------
    figure : Figure

    Returns
    -------
    dict of Axes
        By row and column.
    """
    places = {}
    for panel in figure.axes:
        cell = panel.get_subplotspec()
        if cell is not None:
            places[cell.rowspan.start, cell.colspan.start] = panel
    return places


def new_places(panels: dict[Place, Axes]) -> dict[Place, Place]:
    """Where panels go: up to three of one row below each other, otherwise into two columns.

    Two rows become two columns, so that what stood above each other stands side by side.

    Parameters
    ----------
    panels : dict of Axes
        By row and column.

    Returns
    -------
    dict of tuple
        New row and column, by the old ones.
    """
    rows = 1 + max(row for row, _ in panels)
    columns = 1 + max(column for _, column in panels)
    if columns == 1 or (rows == 1 and columns <= 3):
        return {place: (k, 0) for k, place in enumerate(sorted(panels))}
    if rows == 2:
        return {(row, column): (column, row) for row, column in panels}
    return {place: divmod(k, 2) for k, place in enumerate(sorted(panels))}


def complete(panels: dict[Place, Axes], places: dict[Place, Place]) -> None:
    """Give each panel the title, labels and numbers that a neighbour had for both.

    Numbers and labels that panels share stay away where such panels are neighbours again.

    Parameters
    ----------
    panels : dict of Axes
        By the old row and column.
    places : dict of tuple
        Of :func:`new_places`.
    """
    panel_at = {places[old]: panel for old, panel in panels.items()}
    for (row, column), panel in sorted(panels.items()):
        of_row = [other for (r, _), other in sorted(panels.items()) if r == row]
        of_column = [other for (_, c), other in sorted(panels.items()) if c == column]
        new_row, new_column = places[row, column]
        left = panel_at.get((new_row, new_column - 1))
        below = panel_at.get((new_row + 1, new_column))
        own_y = left is None or not panel.get_shared_y_axes().joined(panel, left)
        own_x = below is None or not panel.get_shared_x_axes().joined(panel, below)
        panel.tick_params(labelleft=own_y, labelbottom=own_x)
        names = of_row[0].get_yticklabels()
        if own_y and names:
            panel.tick_params(axis="y", labelsize=names[0].get_fontsize())
        if own_y and not panel.get_ylabel():
            panel.set_ylabel(of_row[0].get_ylabel())
        if own_x and not panel.get_xlabel():
            labels = [other.get_xlabel() for other in (of_column[-1], *of_row)]
            panel.set_xlabel(next(filter(None, labels), ""))
        if not panel.get_title():
            panel.set_title(of_column[0].get_title(), fontsize=of_column[0].title.get_fontsize())
    for old, panel in panels.items():  # when all have been copied
        below = panel_at.get((places[old][0] + 1, places[old][1]))
        if below is not None and panel.get_shared_x_axes().joined(panel, below):
            panel.set_xlabel("")


def refold(figure: Figure, legend: Legend) -> None:
    """Draw a figure's legend again, above the panels, with as many columns as fit.

    Parameters
    ----------
    figure : Figure
    legend : Legend
        Of the figure, not of a panel.
    """
    labels = [text.get_text() for text in legend.get_texts()]
    drawn = zip(labels, legend.legend_handles, strict=True)
    handles = {name: handle for name, handle in drawn if handle is not None}
    for panel in figure.axes:  # theirs are whole, those of the legend may lack the marker
        of_panel, names = panel.get_legend_handles_labels()
        handles |= {name: h for name, h in zip(names, of_panel, strict=True) if name in handles}
    size = legend.get_texts()[0].get_fontproperties().get_size_in_points()
    letters = WIDTH * 72 / (0.6 * size)  # in a line
    columns = max(1, int(letters / (max(map(len, labels)) + 7)))
    legend.remove()
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside upper center",
        ncols=columns,
        fontsize=size,
    )


def wrap(words: Text, letters: int) -> None:
    """Break a title or label into lines.

    Parameters
    ----------
    words : Text
    letters : int
        Of a line; a longer word stays whole.
    """
    lines = [
        textwrap.fill(line, letters, break_long_words=False, break_on_hyphens=False)
        for line in words.get_text().split("\n")
    ]
    words.set_text("\n".join(lines))


def labels_below(panel: Axes) -> list[Text]:
    """What can be read below a panel, from left to right.

    Parameters
    ----------
    panel : Axes

    Returns
    -------
    list of Text
    """
    low, high = sorted(panel.get_xlim())
    labels = [label for label in panel.get_xticklabels() if low <= label.get_position()[0] <= high]
    return [label for label in labels if label.get_text() and label.get_visible()]


def collide(words: list[Text]) -> bool:
    """Whether words of one line run into each other.

    Parameters
    ----------
    words : list of Text
        From left to right.

    Returns
    -------
    bool
    """
    boxes = [word.get_window_extent() for word in words]
    return any(right.x0 < left.x1 + GAP for left, right in pairwise(boxes))


def spread_numbers(panel: Axes) -> None:
    """Of numbers below a panel show two at least, and fewer than there are if they collide.

    Parameters
    ----------
    panel : Axes
        Of a figure that was laid out.
    """
    labels = labels_below(panel)
    if not labels or not all(NUMBER.fullmatch(label.get_text()) for label in labels):
        return
    automatic = isinstance(panel.xaxis.get_major_locator(), MaxNLocator)
    if automatic and (len(labels) == 1 or collide(labels)):
        panel.xaxis.set_major_locator(MaxNLocator(nbins=3, steps=[1, 2, 5, 10], min_n_ticks=2))
        labels = labels_below(panel)
    if len(labels) > 2 and collide(labels):
        kept = labels[::2]
        limits = panel.get_xlim()
        panel.set_xticks(
            [label.get_position()[0] for label in kept], [label.get_text() for label in kept]
        )
        panel.set_xlim(limits)


def turn_words(panel: Axes) -> float:
    """Write words below a panel upwards, if they run into each other.

    Parameters
    ----------
    panel : Axes
        Of a figure that was laid out.

    Returns
    -------
    float
        Inches of height that they need; 0 if they stay as they are.
    """
    labels = labels_below(panel)
    if not collide(labels) or all(NUMBER.fullmatch(label.get_text()) for label in labels):
        return 0.0
    whole = [label.get_text().replace("-\n", "").replace("\n", " ") for label in labels]
    places = [label.get_position()[0] for label in labels]
    panel.set_xticks(places, whole, rotation=90, fontsize=labels[0].get_fontsize())
    inches = panel.figure.dpi_scale_trans.inverted()
    return max(
        label.get_window_extent().transformed(inches).height for label in panel.get_xticklabels()
    )


def break_words(panels: list[Axes]) -> bool:
    """Break titles and labels of panels of one row, if they do not fit.

    Parameters
    ----------
    panels : list of Axes
        From left to right, of a figure that was laid out.

    Returns
    -------
    bool
        Whether any had to be broken.
    """
    right = panels[0].figure.dpi * WIDTH
    room = [panel.get_window_extent().width for panel in panels]
    broken = False
    for words in ([panel.title for panel in panels], [panel.xaxis.label for panel in panels]):
        reach = max(word.get_window_extent().x1 for word in words)
        if not collide(words) and reach <= right:
            continue
        for word, pixels in zip(words, room, strict=True):
            longest = max(map(len, word.get_text().split("\n")))
            of_letter = word.get_window_extent().width / max(1, longest)
            wrap(word, max(LEAST, int(pixels / max(1, of_letter))))
        broken = True
    return broken


def lay_out(figure: Figure, height: float) -> None:
    """Set the size and place the panels, so that nothing reaches beyond a phone's width.

    Parameters
    ----------
    figure : Figure
    height : float
        In inches.
    """
    figure.set_layout_engine("constrained", h_pad=0.1)
    width = WIDTH
    for _ in range(2):  # a long title may reach beyond its panel: then there is less for the panel
        figure.set_size_inches(width, height)
        figure.draw_without_rendering()
        beyond = figure.get_tightbbox().width - WIDTH
        if beyond <= 0:
            break
        width -= beyond
    figure.set_layout_engine("none")  # this was it; every drawing would lay it out again


def fit_words(figure: Figure, height: float) -> None:
    """Break or turn words that run into each other, and lay the figure out again.

    Parameters
    ----------
    figure : Figure
        That was laid out.
    height : float
        In inches, of the figure.
    """
    rows: dict[int, list[Axes]] = {}
    for (row, _), panel in sorted(panels_by_place(figure).items()):
        rows.setdefault(row, []).append(panel)
    broken = [break_words(panels) for panels in rows.values()]
    needed = sum(max(map(turn_words, panels)) for panels in rows.values())
    if any(broken) or needed:
        lay_out(figure, height + needed)


def make_narrow(figure: Figure) -> None:
    """Lay a figure out anew for a phone. The figure itself is changed.

    Parameters
    ----------
    figure : Figure
    """
    for panel in list(figure.axes):
        if not panel.get_visible():  # it filled a corner of the wide figure
            panel.remove()
    panels = panels_by_place(figure)
    height = figure.get_figheight()
    if len(panels) > 1:
        places = new_places(panels)
        rows = 1 + max(row for row, _ in places.values())
        columns = 1 + max(column for _, column in places.values())
        height *= rows / (1 + max(row for row, _ in panels))
        grid = figure.add_gridspec(rows, columns)
        complete(panels, places)
        for place, panel in panels.items():
            panel.set_subplotspec(grid[places[place]])
            if columns == 2:
                wrap(panel.title, LINE)
                wrap(panel.xaxis.label, LINE)
    for legend in list(figure.legends):
        refold(figure, legend)
    lay_out(figure, height)
    fit_words(figure, height)
    for panel in figure.axes:
        spread_numbers(panel)


def svg_and_narrow(figure: Figure) -> tuple[str, dict[str, str]]:
    """A figure as SVG, and metadata with its narrow variant, compressed.

    Parameters
    ----------
    figure : Figure
        Laid out anew afterwards: it is not to be shown a second time.

    Returns
    -------
    str
    dict of str
    """
    wide = print_figure(figure, "svg", metadata=ABOUT)
    if figure.get_figwidth() <= FITS:
        return wide, {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            make_narrow(figure)
        except UserWarning:  # no room for what stands around the panels: the wide one will scroll
            return wide, {}
    narrow = print_figure(figure, "svg", metadata=ABOUT)
    packed = gzip.compress(narrow.encode("utf8"), mtime=0)
    return wide, {NARROW: base64.b64encode(packed).decode("ascii")}
