"""What is drawn in an explorable: numbers and texts, SVG elements, and axes with ticks.

A script of ``book/_static/explore`` draws the same with the same formulas; it gets the axes from
:meth:`Axes.data` and finds a part by the name that :func:`part` gives it.
"""

import html
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from drocox.bookstyle import COLOURS

MINUS = "\N{MINUS SIGN}"


def escape(text: str) -> str:
    """A text as it may stand in HTML and its attributes.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    return html.escape(str(text))


def number(value: float, digits: int) -> str:
    """A number for readers, with a proper minus sign and without minus zero.

    Parameters
    ----------
    value : float
    digits : int
        After the point.

    Returns
    -------
    str
    """
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


def colour(index: int) -> str:
    """One of the book's colours, which follows the ground; in a notebook that for white.

    Parameters
    ----------
    index : int

    Returns
    -------
    str
    """
    return f"var(--dc-{index},{COLOURS[index]})"


def part(tag: str, name: str, text: str = "", **attributes: object) -> str:
    """An SVG element; numbers are written with one digit.

    Parameters
    ----------
    tag : str
    name : str
        By which the script finds it, or empty for what stays.
    text : str
        What it contains, as HTML.
    **attributes : str or float
        ``_`` in a name stands for ``-``.

    Returns
    -------
    str
    """
    written = f' data-part="{name}"' if name else ""
    for key, value in attributes.items():
        shown = value if isinstance(value, str) else f"{value:.1f}"
        written += f' {key.replace("_", "-")}="{shown}"'
    return f"<{tag}{written}>{text}</{tag}>"


def picture(width: int, height: int, content: str, widest: int | None = None) -> str:
    """A drawing, as wide as there is room.

    Parameters
    ----------
    width, height : int
        In units of its own.
    content : str
        SVG elements.
    widest : int, optional
        Most pixels of its width; ``width`` if not given.

    Returns
    -------
    str
    """
    return (
        f'<svg viewBox="0 0 {width} {height}" width="100%"'
        f' style="display:block;max-width:{widest or width}px"'
        f' font-size="13" fill="currentColor" aria-hidden="true">{content}</svg>'
    )


def _pixels(value, limits: tuple[float, float], start: float, end: float):
    """Where values lie on an axis between its limits, which are drawn at ``start`` and ``end``."""
    low, high = limits
    return start + (np.asarray(value) - low) / (high - low) * (end - start)


class Axes:
    """Axes of a drawing in pixels.

    Parameters
    ----------
    width, height : int
        Of the drawing.
    xlim, ylim : pair of float
        What the axes span.
    left, right, top, bottom : int
        Margins.
    """

    def __init__(
        self,
        width: int,
        height: int,
        xlim: tuple,
        ylim: tuple,
        *,
        left: int = 44,
        right: int = 12,
        top: int = 12,
        bottom: int = 44,
    ) -> None:
        self.width = width
        self.height = height
        self.xlim = xlim
        self.ylim = ylim
        self.left = left
        self.right = width - right
        self.top = top
        self.bottom = height - bottom

    def data(self) -> dict:
        """What a script needs to draw on these axes.

        Returns
        -------
        dict
        """
        return {
            "x": [*map(float, self.xlim), self.left, self.right],
            "y": [*map(float, self.ylim), self.bottom, self.top],
        }

    def x(self, value: float) -> float:
        """Pixels from the left.

        Parameters
        ----------
        value : float or array

        Returns
        -------
        float or array
        """
        return _pixels(value, self.xlim, self.left, self.right)

    def y(self, value: float) -> float:
        """Pixels from the top.

        Parameters
        ----------
        value : float or array

        Returns
        -------
        float or array
        """
        return _pixels(value, self.ylim, self.bottom, self.top)

    def line(self, xs: Sequence, ys: Sequence) -> str:
        """Path through points given in the units of the axes.

        Parameters
        ----------
        xs, ys : sequence of float

        Returns
        -------
        str
        """
        points = zip(self.x(np.asarray(xs)), self.y(np.asarray(ys)), strict=True)
        steps = [f"{x:.1f} {y:.1f}" for x, y in points]
        return "M" + "L".join(steps)

    def clipped(self, content: str) -> str:
        """Elements of which only the part between the axes is shown.

        Parameters
        ----------
        content : str
            SVG elements.

        Returns
        -------
        str
        """
        wide = self.right - self.left
        high = self.bottom - self.top
        box = f"{self.left} {self.top} {wide} {high}"
        place = {"x": self.left, "y": self.top, "width": wide, "height": high, "viewBox": box}
        return part("svg", "", content, **place)

    def drawn(
        self,
        xlabel: str = "",
        ylabel: str = "",
        xticks: Mapping | None = None,
        yticks: Mapping | None = None,
    ) -> str:
        """The axes with ticks and labels.

        Parameters
        ----------
        xlabel, ylabel : str
        xticks, yticks : mapping of float to str, optional
            In place of round numbers.

        Returns
        -------
        str
        """
        if xticks is None:
            xticks = ticks(*self.xlim)
        if yticks is None:
            yticks = ticks(*self.ylim)
        parts = []
        for value, text in xticks.items():
            place = {"x": self.x(value), "y": self.bottom + 18, "text_anchor": "middle"}
            parts.append(part("text", "", escape(text), **place))
        for value, text in yticks.items():
            y = self.y(value)
            grid = f"M{self.left} {y:.1f}H{self.right}"
            parts.append(part("path", "", d=grid, stroke="currentColor", stroke_opacity="0.15"))
            place = {"x": self.left - 6, "y": y + 4.5, "text_anchor": "end"}
            parts.append(part("text", "", escape(text), **place))
        frame = f"M{self.left} {self.top}V{self.bottom}H{self.right}"
        parts.append(part("path", "", d=frame, fill="none", stroke="currentColor"))
        middle = (self.left + self.right) / 2
        place = {"x": middle, "y": self.height - 6, "text_anchor": "middle"}
        parts.append(part("text", "", escape(xlabel), **place))
        turn = f"translate(12 {(self.top + self.bottom) / 2:.1f}) rotate(-90)"
        parts.append(part("text", "", escape(ylabel), transform=turn, text_anchor="middle"))
        return "".join(parts)


def ticks(low: float, high: float) -> dict[float, str]:
    """Round numbers between two bounds, and how they are written.

    Parameters
    ----------
    low, high : float

    Returns
    -------
    dict of float to str
    """
    slack = 1e-9 * (high - low)
    inside = [t for t in MaxNLocator(5).tick_values(low, high) if low - slack <= t <= high + slack]
    return {t: f"{t + 0.0:.3g}".replace("-", MINUS) for t in inside}
