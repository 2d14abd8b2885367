"""The parts that all explorables have: the element, its inputs, and axes drawn as SVG.

The element is a ``figure`` that holds a picture, the inputs (hidden until a script works them), a
read-out and the data as JSON. ``book/_ext/explore.py`` gives a page the scripts it needs.
"""

import html
import json
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from drocox.bookstyle import COLOURS

MINUS = "\N{MINUS SIGN}"
MOST_DATA = 400_000  # characters of JSON in a page


class Explorable:
    """HTML of an explorable, with a sentence in its place where only text is shown."""

    def __init__(self, markup: str, description: str) -> None:
        self.markup = markup
        self.description = description

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return f"<interactive figure: {self.description}>"


def element(
    kind: str,
    name: str,
    *,
    title: str,
    alt: str,
    pictures: Sequence[str],
    inputs: Sequence[str],
    readout: str,
    data: Mapping,
    prompt: str = "",
) -> Explorable:
    """Put the parts of an explorable together.

    Parameters
    ----------
    kind : str
        Name of its script in ``book/_static/explore``.
    name : str
        Unique in the chapter; the HTML id is ``explore-<name>``.
    title : str
        What the whole is called.
    alt : str
        What the picture shows, for those who do not see it.
    pictures : sequence of str
        Each an ``svg`` element, of :func:`picture`.
    inputs : sequence of str
        HTML of the inputs, which only a script shows.
    readout : str
        HTML of the numbers below the picture, read aloud when they change.
    data : mapping
        What the script computes from.
    prompt : str
        HTML of what there is to do; only a script shows it.

    Returns
    -------
    Explorable
        Equal input gives equal bytes.
    """
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    if len(packed) > MOST_DATA:
        raise ValueError(f"{len(packed)} characters of data: take fewer values or fewer points")
    shown = "".join(f'<div class="explore-picture">{svg}</div>' for svg in pictures)
    task = f'<p class="explore-prompt" hidden>{prompt}</p>' if prompt else ""
    named = f'id="explore-{name}" data-explore="{kind}" aria-label="{escape(title)}"'
    markup = f"""\
<figure class="explore" {named}>{task}
<div class="explore-pictures" role="img" aria-label="{escape(alt)}">{shown}</div>
<div class="explore-inputs" hidden>{"".join(inputs)}</div>
<p class="explore-readout" aria-live="polite">{readout}</p>
<script type="application/json">{packed}</script>
</figure>"""
    return Explorable(markup, alt)


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


def output(name: str, text: str) -> str:
    """A place in the read-out that the script fills anew.

    Parameters
    ----------
    name : str
    text : str
        What it shows at first.

    Returns
    -------
    str
    """
    return f'<span class="explore-value" data-out="{name}">{escape(text)}</span>'


def range_input(
    figure: str,
    name: str,
    label: str,
    low: float,
    high: float,
    step: float,
    value: float,
    said: str,
) -> str:
    """A slider with its label and the value that it shows.

    Parameters
    ----------
    figure, name : str
        Name of the explorable, and of the input within it.
    label : str
        HTML.
    low, high, step, value : float
    said : str
        The value as text.

    Returns
    -------
    str
    """
    key = f"explore-{figure}-{name}"
    return (
        f'<div class="explore-range"><label for="{key}">{label}</label>'
        f'<input type="range" id="{key}" data-in="{name}" min="{low:g}" max="{high:g}"'
        f' step="{step:g}" value="{value:g}" aria-valuetext="{escape(said)}">'
        f'<span class="explore-value" aria-hidden="true" data-out="{name}">{escape(said)}</span>'
        "</div>"
    )


def choice(figure: str, name: str, label: str, options: Mapping[str, str], chosen: str) -> str:
    """A list to choose one option from, with its label.

    Parameters
    ----------
    figure, name : str
        Name of the explorable, and of the input within it.
    label : str
        HTML.
    options : mapping of str to str
        Value to what is shown.
    chosen : str
        The value chosen at first.

    Returns
    -------
    str
    """
    key = f"explore-{figure}-{name}"
    entries = ""
    for value, shown in options.items():
        mark = " selected" if value == chosen else ""
        entries += f'<option value="{escape(value)}"{mark}>{escape(shown)}</option>'
    return (
        f'<div class="explore-choice"><label for="{key}">{label}</label>'
        f'<select id="{key}" data-in="{name}">{entries}</select></div>'
    )


def checkbox(figure: str, name: str, label: str, checked: bool) -> str:
    """A box to tick, with its label.

    Parameters
    ----------
    figure, name : str
        Name of the explorable, and of the input within it.
    label : str
        HTML.
    checked : bool

    Returns
    -------
    str
    """
    key = f"explore-{figure}-{name}"
    mark = " checked" if checked else ""
    return (
        f'<div class="explore-check"><input type="checkbox" id="{key}" data-in="{name}"{mark}>'
        f'<label for="{key}">{label}</label></div>'
    )


def button(name: str, label: str) -> str:
    """A button.

    Parameters
    ----------
    name, label : str

    Returns
    -------
    str
    """
    return f'<button type="button" data-do="{name}">{label}</button>'


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
