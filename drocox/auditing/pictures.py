"""Where the pictures of an audit's page have their marks: numbers that ``page.html`` draws.

All are in the units of a drawing that is 400 wide; y grows downwards.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from drocox.auditing.funnel import Funnel

LEFT, RIGHT = 38.0, 392.0  # of the axes
TOP, BOTTOM = 8.0, 220.0  # of a funnel's axes
SIDE = 300.0  # of the square of a calibration plot
SYMBOLS = "●■▲◆▼★"  # one for each group: at most six are compared with each other
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a6a00", "#555555")
STEPS = 60  # points of a line
TICKS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000)  # of events


class Mark(NamedTuple):
    """A point, or the text of a tick."""

    x: float
    y: float
    label: str
    loud: bool = False


class FunnelDrawing(NamedTuple):
    """Points of the groups, lines of the limits, and ticks."""

    attribute: str
    marks: list[Mark]
    limits: list[tuple[str, str]]  # path and dashes
    centre: float
    across: list[Mark]
    upwards: list[Mark]
    alternative: str


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """A line through points, as SVG has it."""
    points = [f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)]
    return "M" + "L".join(points)


def _shares(low: float, high: float) -> np.ndarray:
    """Round numbers between two shares."""
    step = 0.1 if high - low > 0.25 else 0.05
    ticks = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return np.round(ticks, 2)


def funnel_drawing(one: Funnel) -> FunnelDrawing:
    """The c-index of many groups by their events.

    Parameters
    ----------
    one : Funnel

    Returns
    -------
    FunnelDrawing
    """
    groups = one.groups
    events = groups["events"].to_numpy(float)
    least, most = np.log(events.min()), np.log(events.max())
    unit = (RIGHT - LEFT - 20) / max(most - least, 1e-9)

    def across(count):
        return LEFT + 10 + unit * (np.log(count) - least)

    sizes = np.geomspace(events.min(), events.max(), STEPS)
    lines = []
    for at_once, dashes in ((False, "2 4"), (True, "7 4")):
        for limit in one.limits(sizes, at_once):
            lines.append((limit, dashes))
    values = np.concatenate([groups["c_index"].to_numpy(), *(line for line, _ in lines)])
    values = values[np.isfinite(values)]
    low, high = values.min() - 0.01, values.max() + 0.01

    def upwards(value):
        return BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low)

    marks = []
    for row in groups.itertuples():
        place = across(row.events), upwards(row.c_index)
        marks.append(Mark(*place, row.group, row.beyond_noise))
    drawn = []
    if np.isfinite(one.spread):
        drawn = [(_path(across(sizes), upwards(line)), dashes) for line, dashes in lines]
    counts = [count for count in TICKS if events.min() <= count <= events.max()]
    loud = ", ".join(groups.loc[groups["beyond_noise"], "group"]) or "none"
    return FunnelDrawing(
        one.attribute,
        marks,
        drawn,
        upwards(one.centre),
        [Mark(across(count), BOTTOM + 16, f"{count:,}") for count in counts],
        [Mark(LEFT - 6, upwards(share) + 4, f"{share:g}") for share in _shares(low, high)],
        f"c-index of {len(groups)} groups of {one.attribute} by events; beyond noise: {loud}.",
    )


class Curve(NamedTuple):
    """One group's points of a calibration plot."""

    label: str
    symbol: str
    colour: str
    path: str
    marks: list[Mark]


class CalibrationDrawing(NamedTuple):
    """Groups of one attribute, and ticks."""

    attribute: str
    curves: list[Curve]
    ticks: list[Mark]
    alternative: str


def calibration_drawings(curves: pd.DataFrame) -> list[CalibrationDrawing]:
    """Observed against predicted risk, a drawing for each attribute.

    Parameters
    ----------
    curves : DataFrame
        Of :meth:`drocox.auditing.audit.Audit.calibration_curves`.

    Returns
    -------
    list of CalibrationDrawing
    """
    drawings = []
    for attribute, rows in curves.groupby("attribute", sort=False):
        known = rows.dropna(subset=["predicted", "observed"])
        highest = max(known[["predicted", "observed"]].to_numpy().max(initial=0.0), 0.01)
        unit = SIDE / highest
        drawn = []
        words = []
        for k, (label, curve) in enumerate(known.groupby("group", sort=False)):
            x = LEFT + unit * curve["predicted"].to_numpy(float)
            y = TOP + SIDE - unit * curve["observed"].to_numpy(float)
            marks = [Mark(a, b, label) for a, b in zip(x, y, strict=True)]
            kind = k % len(SYMBOLS)
            drawn.append(Curve(label, SYMBOLS[kind], COLOURS[kind], _path(x, y), marks))
            pairs = zip(curve["predicted"], curve["observed"], strict=True)
            points = ", ".join(f"{p:.2f} {o:.2f}" for p, o in pairs)
            words.append(f"{label}: {points}")
        ticks = []
        for share in _shares(0.0, highest):
            ticks.append(Mark(LEFT + unit * share, TOP + SIDE - unit * share, f"{share:g}"))
        text = f"Predicted and observed risk by {attribute}. " + "; ".join(words) + "."
        drawings.append(CalibrationDrawing(str(attribute), drawn, ticks, text))
    return drawings
