"""Curves or bars that Python has computed for every position of one or two sliders.

For states that a page cannot compute, such as models trained on real data.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from drocox.bookstyle import COLOURS
from drocox.explorables.element import MINUS, Explorable, element, picture, rounded


def slider(
    name: str,
    controls: Mapping[str, Sequence],
    x: np.ndarray,
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

    Curves have the shape ``(*sizes of the controls, len(x))``, readouts ``sizes``; ``start`` has
    the first index of each control, ``formats`` the format of each control and readout. Curves
    named in ``bars`` are drawn as bars from zero.
    """
    sizes = tuple(len(values) for values in controls.values())
    for key, value in curves.items():
        if np.shape(value) != (*sizes, len(x)):
            shape = np.shape(value)
            raise ValueError(f"{key!r} has shape {shape}, expected {(*sizes, len(x))}")
    for key, value in readouts.items():
        if np.shape(value) != sizes:
            raise ValueError(f"{key!r} has shape {np.shape(value)}, expected {sizes}")
    if ylim is None:
        ylim = (0, 1.04 * float(max(np.max(value) for value in curves.values())))
    flat = {key: np.reshape(value, (-1, len(x))) for key, value in curves.items()}
    shown = {
        key: [
            formats[key].format(value).replace("-", MINUS) for value in np.asarray(values).ravel()
        ]
        for key, values in {**controls, **readouts}.items()
    }
    now = int(np.ravel_multi_index([start[key] for key in controls], sizes))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for k, (key, rows) in enumerate(flat.items()):
            if key in bars:
                axes.bar(x, rows[now], width=0.7 * (x[1] - x[0]), color=COLOURS[k], label=key)
            else:
                axes.plot(x, rows[now], color=COLOURS[k], label=key, linestyle=("-", "--", ":")[k])
        if len(flat) > 1:
            axes.legend(frameon=False)
        positions = [f"{key} {shown[key][start[key]]}" for key in controls]
        numbers = [f"{key} {shown[key][now]}" for key in readouts]
        axes.set_title(
            ", ".join(positions) + ": " + ", ".join(numbers), fontsize="small", wrap=True
        )
        axes.set(xlabel=xlabel, ylabel=ylabel, ylim=ylim)

    return element(
        "slider",
        name,
        title=f"Picture to move by {' and '.join(controls)}",
        alt=alt,
        pictures=[picture(draw, 5.2, 3.2)],
        data={
            "controls": [
                {"label": key, "values": shown[key], "start": start[key]} for key in controls
            ],
            "readouts": [{"label": key, "values": shown[key]} for key in readouts],
            "x": rounded(x),
            "curves": [
                {"label": key, "bars": key in bars, "values": rounded(rows, 4)}
                for key, rows in flat.items()
            ],
            "ylim": ylim,
            "xlabel": xlabel,
            "ylabel": ylabel,
        },
    )
