"""Sliders over states that Python has computed beforehand: curves, bars, or whole pictures.

For what cannot be computed in a page, such as models trained on real data.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from drocox.explorables.element import Explorable, element, output, range_input
from drocox.explorables.svg import MINUS, Axes, colour, escape, part, picture

WIDTH = 520
HEIGHT = 320
LETTERS = 17  # pixels of 520, so that they can be read on a phone
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2")


def slider(
    name: str,
    controls: Mapping[str, Sequence],
    x: Sequence,
    curves: Mapping[str, np.ndarray],
    *,
    alt: str,
    xlabel: str = "",
    ylabel: str = "",
    start: Mapping[str, int],
    readouts: Mapping[str, np.ndarray],
    formats: Mapping[str, str],
    ylim: tuple | None = None,
    bars: Collection[str] = (),
) -> Explorable:
    """A chart with one range input per control, everything computed beforehand.

    Parameters
    ----------
    name : str
        Unique in the chapter; the HTML id is ``explore-<name>``.
    controls : mapping of str to sequence
        Label and the values that its slider steps through.
    x : sequence of m floats
    curves : mapping of str to array
        Shape ``(*sizes of the controls, m)``.
    alt : str
        What the picture shows, for those who do not see it.
    xlabel, ylabel : str
    start : mapping of str to int
        Index at which each slider starts.
    readouts : mapping of str to array
        Numbers shown below the sliders, one for each combination of the controls.
    formats : mapping of str to str
        Format of the values of each control and each readout.
    ylim : pair of float, optional
    bars : collection of str
        Curves drawn as bars from zero.

    Returns
    -------
    Explorable
    """
    x = np.asarray(x, dtype=float)
    sizes = tuple(len(values) for values in controls.values())
    for key, value in curves.items():
        if np.shape(value) != (*sizes, len(x)):
            shape = np.shape(value)
            raise ValueError(f"{key!r} has shape {shape}, expected {(*sizes, len(x))}")
    for key, value in readouts.items():
        if np.shape(value) != sizes:
            raise ValueError(f"{key!r} has shape {np.shape(value)}, expected {sizes}")
    now = int(np.ravel_multi_index([start[key] for key in controls], sizes))
    between = (x.max() - x.min()) / (len(x) - 1)
    room = between / 2 if bars else 0.0  # for the first and the last bar
    if ylim is None:
        highest = max(np.max(value) for value in curves.values())
        ylim = (0, 1.04 * highest)
    axes = Axes(WIDTH, HEIGHT, (x.min() - room, x.max() + room), ylim, left=58, bottom=52)
    drawn = []
    keys = []
    rows = []
    for k, (key, value) in enumerate(curves.items()):
        wide = 0.7 * (axes.x(between) - axes.x(0)) if key in bars else 2.5
        ink = {
            "style": f"fill:none;stroke:{colour(k)}",
            "stroke_width": float(wide),
            "stroke_dasharray": "" if key in bars else DASHES[k],
        }
        flat = np.reshape(value, (-1, len(x)))
        paths = [_bars(axes, x, row) if key in bars else axes.line(x, row) for row in flat]
        drawn.append(part("path", f"curve{k}", d=paths[now], **ink))
        rows.append(paths)
        if len(curves) > 1:
            keys.append(_sample(part("path", "", d="M1 5H27", **ink), key))
    content = axes.drawn(xlabel, ylabel) + axes.clipped("".join(drawn))
    return _assembled(
        name,
        controls,
        start,
        readouts,
        formats,
        alt,
        picture_of=(content, HEIGHT),
        keys=keys,
        data={"curves": rows},
    )


def frames(
    name: str,
    label: str,
    values: Sequence[str],
    pictures: Sequence[str],
    *,
    alt: str,
    size: tuple[int, int],
    still: str,
    legend: Mapping[str, str],
    readouts: Mapping[str, Sequence[str]],
    start: int,
) -> Explorable:
    """A drawing with one range input that shows one of several pictures.

    Parameters
    ----------
    name : str
        Unique in the chapter; the HTML id is ``explore-<name>``.
    label : str
        What the input is called.
    values : sequence of str
        What it shows at each step.
    pictures : sequence of str
        SVG elements at each step.
    alt : str
        What the picture shows, for those who do not see it.
    size : pair of int
        Width and height of the drawing.
    still : str
        SVG elements that stay, drawn first.
    legend : mapping of str to str
        A name and its sample, SVG elements 28 wide and 10 high.
    readouts : mapping of str to sequence of str
        What is shown below the input at each step.
    start : int
        Step shown first.

    Returns
    -------
    Explorable
    """
    if len(pictures) != len(values):
        raise ValueError(f"{len(pictures)} pictures for {len(values)} values; give one for each")
    content = still + part("g", "frame", pictures[start])
    keys = [_sample(sample, key) for key, sample in legend.items()]
    formats = dict.fromkeys([label, *readouts], "{}")
    return _assembled(
        name,
        {label: values},
        {label: start},
        readouts,
        formats,
        alt,
        picture_of=(content, size[1]),
        keys=keys,
        data={"frames": list(pictures)},
    )


def _assembled(
    name, controls, start, readouts, formats, alt, *, picture_of, keys, data
) -> Explorable:
    """Inputs, numbers, data and picture put together."""

    def texts(key, values):
        return [formats[key].format(value).replace("-", MINUS) for value in np.ravel(values)]

    sizes = [len(values) for values in controls.values()]
    now = int(np.ravel_multi_index([start[key] for key in controls], sizes))
    shown = [texts(key, values) for key, values in controls.items()]
    numbers = [texts(key, values) for key, values in readouts.items()]
    inputs = []
    for k, key in enumerate(controls):
        at = start[key]
        text = shown[k][at]
        inputs.append(range_input(name, f"control{k}", escape(key), 0, sizes[k] - 1, 1, at, text))
    told = []
    for k, key in enumerate(readouts):
        value = output(f"readout{k}", numbers[k][now])
        told.append(f'<span class="explore-number">{escape(key)}: {value}</span>')
    content, height = picture_of
    lettered = f'<g font-size="{LETTERS}">{content}</g>'
    return element(
        "slider",
        name,
        title=f"Picture to move by {' and '.join(controls)}",
        alt=alt,
        pictures=[picture(WIDTH, height, lettered)],
        inputs=inputs,
        readout=" ".join(keys + told),
        data={"sizes": sizes, "values": shown, "readouts": numbers, **data},
    )


def _bars(axes: Axes, x: np.ndarray, heights: np.ndarray) -> str:
    """Path of upright lines from zero."""
    base = axes.y(0)
    points = zip(axes.x(x), axes.y(heights), strict=True)
    return "".join(f"M{left:.1f} {base:.1f}V{top:.1f}" for left, top in points)


def _sample(drawing: str, key: str) -> str:
    """An entry of the legend."""
    svg = f'<svg width="28" height="10" aria-hidden="true" fill="currentColor">{drawing}</svg>'
    return f'<span class="explore-number">{svg} {escape(key)}</span>'
