"""Curves or bars that Python has computed for every position of one or two sliders.

For states that a page cannot compute, such as models trained on real data.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from drocox.explorables.element import MINUS, Explorable, element, rounded


def slider(
    name: str,
    controls: Mapping[str, Sequence],
    x: np.ndarray,
    curves: Mapping[str, np.ndarray],
    figure: Figure,
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
    named in ``bars`` are drawn as bars from zero. ``figure`` is shown where no script runs.
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
    return element(
        "slider",
        name,
        title=f"Picture to move by {' and '.join(controls)}",
        alt=alt,
        figure=figure,
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
