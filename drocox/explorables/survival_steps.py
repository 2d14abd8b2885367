r"""The Kaplan-Meier curve of a few patients whose times and deaths can be changed.

With :math:`d_k` deaths on day :math:`a_k` and :math:`n_k` patients at risk,

.. math:: \hat S(t) = \prod_{k : a_k \le t} \Bigl(1 - \frac{d_k}{n_k}\Bigr) .
"""

from collections.abc import Sequence

import numpy as np

from drocox.explorables.element import Explorable, button, checkbox, element, output, range_input
from drocox.explorables.svg import Axes, colour, number, part, picture

WIDTH = 340
HEIGHT = 260
END = 14  # months
ASKED = 9  # the month that the patient asks about


def lives(n: int) -> Axes:
    """Axes of the patients' lines.

    Parameters
    ----------
    n : int
        Patients.

    Returns
    -------
    Axes
    """
    return Axes(WIDTH, HEIGHT, (0, END), (n - 0.4, -0.6), left=30)


def survival() -> Axes:
    """Axes of the curve.

    Returns
    -------
    Axes
    """
    return Axes(WIDTH, HEIGHT, (0, END), (0, 1.05), left=52)


def life_table(time: np.ndarray, event: np.ndarray) -> list[tuple[float, int, int]]:
    """Days with deaths, how many died, how many were at risk.

    Parameters
    ----------
    time, event : arrays of shape (n,)

    Returns
    -------
    list of (day, deaths, at risk)
    """
    days = np.unique(time[event])
    return [(day, int((event & (time == day)).sum()), int((time >= day).sum())) for day in days]


def estimate(table: list[tuple[float, int, int]], t: float) -> float:
    """The Kaplan-Meier estimate at a time.

    Parameters
    ----------
    table : list
        Of :func:`life_table`.
    t : float

    Returns
    -------
    float
    """
    factors = [1 - deaths / at_risk for day, deaths, at_risk in table if day <= t]
    return float(np.prod(factors))


def answer(table: list[tuple[float, int, int]], last: float) -> str:
    """The estimate at the month asked about, as a product.

    Parameters
    ----------
    table : list
        Of :func:`life_table`.
    last : float
        The longest time.

    Returns
    -------
    str
    """
    value = estimate(table, ASKED)
    factors = [f"{n - d}/{n}" for day, d, n in table if day <= ASKED]
    product = " · ".join(factors)
    text = f"{product} = {number(value, 3)}" if factors else "1, as nobody died before"
    if last < ASKED and value > 0:
        text += f"; but nobody was watched beyond month {last:.0f}"
    return text + "."


def staircase(axes: Axes, table: list[tuple[float, int, int]], last: float) -> str:
    """Path of the curve, up to the longest time.

    Parameters
    ----------
    axes : Axes
    table : list
        Of :func:`life_table`.
    last : float

    Returns
    -------
    str
    """
    path = f"M{axes.x(0):.1f} {axes.y(1):.1f}"
    for day, _, _ in table:
        path += f"H{axes.x(day):.1f}V{axes.y(estimate(table, day)):.1f}"
    return path + f"H{axes.x(last):.1f}"


def draw_lives(time: np.ndarray, event: np.ndarray, names: Sequence) -> str:
    """A line for each patient: a full dot for a death, an open one for censoring.

    Parameters
    ----------
    time, event : arrays of shape (n,)
    names : sequence of str

    Returns
    -------
    str
        An ``svg`` element.
    """
    axes = lives(len(time))
    months = {month: str(month) for month in range(0, END + 1, 2)}
    content = [axes.drawn("months since entry", "", months, dict(enumerate(names)))]
    for i, (t, died) in enumerate(zip(time, event, strict=True)):
        x, y = axes.x(t), axes.y(i)
        beyond = "" if died else f"M{x:.1f} {y:.1f}H{axes.right}"
        line = {"stroke": "currentColor", "stroke_width": "2.5"}
        path = f"M{axes.left} {y:.1f}H{x:.1f}"
        content.append(part("path", f"life{i}", d=path, **line))
        unknown = {"d": beyond, "stroke_dasharray": "2 5", **line}
        content.append(part("path", f"beyond{i}", **unknown))
        inside = colour(1) if died else "var(--pst-color-background,#fff)"
        style = f"stroke:{colour(1)};fill:{inside};stroke-width:2.5"
        content.append(part("circle", f"end{i}", cx=x, cy=y, r="8", style=style))
    return picture(WIDTH, HEIGHT, "".join(content))


def draw_curve(time: np.ndarray, event: np.ndarray, first: list[tuple[float, int, int]]) -> str:
    """The curve, what died of how many at each step, and the month asked about.

    Parameters
    ----------
    time, event : arrays of shape (n,)
    first : list
        Life table of the patients as they were, whose curve stays as a thin line; with the longest
        time :data:`END` drawn to the end.

    Returns
    -------
    str
        An ``svg`` element.
    """
    axes = survival()
    table = life_table(time, event)
    months = {month: str(month) for month in range(0, END + 1, 2)}
    thin = {"fill": "none", "stroke": "currentColor", "stroke_dasharray": "2 4"}
    x = axes.x(ASKED)
    content = [
        axes.drawn("months t", "alive, Ŝ(t)", months),
        part("path", "", d=staircase(axes, first, END), **thin),
        part("path", "", d=f"M{x:.1f} {axes.top}V{axes.bottom}", stroke_opacity="0.4", **thin),
    ]
    blue = f"fill:none;stroke:{colour(0)};stroke-width:3"
    content.append(part("path", "curve", d=staircase(axes, table, time.max()), style=blue))
    for i, (t, died) in enumerate(zip(time, event, strict=True)):
        y = axes.y(estimate(table, t))
        tick = "" if died else f"M{axes.x(t):.1f} {y - 7:.1f}V{y + 7:.1f}"
        content.append(part("path", f"left{i}", d=tick, style=blue))
        day, deaths, at_risk = table[i] if i < len(table) else (0, 0, 0)
        text = f"{deaths}/{at_risk}" if deaths else ""
        place = {"x": axes.x(day), "y": axes.bottom - 5, "text_anchor": "middle"}
        content.append(part("text", f"step{i}", text, **place))
    dot = {"cx": x, "cy": axes.y(estimate(table, ASKED)), "r": "6"}
    content.append(part("circle", "asked", style=f"fill:{colour(1)}", **dot))
    return picture(WIDTH, HEIGHT, "".join(content))


def kaplan_meier(
    time: np.ndarray,
    event: np.ndarray,
    names: Sequence,
    *,
    first: tuple[np.ndarray, np.ndarray] | None = None,
) -> Explorable:
    """The Kaplan-Meier curve of a few patients; times can be moved and deaths taken back.

    Parameters
    ----------
    time, event : arrays of shape (n,)
        Whole months, and who died.
    names : sequence of str
        What the patients are called.
    first : pair of arrays, optional
        Times and deaths to go back to; ``time`` and ``event`` if not given.

    Returns
    -------
    Explorable
    """
    first_time, first_event = first or (time, event)
    figure = "kaplan-meier"
    rows = []
    for i, name in enumerate(names):
        months = f"{time[i]:.0f}"
        label = f"time of {name}"
        moved = range_input(figure, f"time{i}", label, 1, END, 1, time[i], months)
        died = checkbox(figure, f"died{i}", f"{name} died", bool(event[i]))
        rows.append(f'<div class="explore-row">{moved}{died}</div>')
    at_nine = answer(life_table(time, event), time.max())
    return element(
        "kaplan-meier",
        figure,
        title="The Kaplan–Meier curve of six patients",
        alt="Left, a line for each patient, which ends in a full dot at a death and in an open one "
        "at the end of observation. Right, the Kaplan–Meier curve: a staircase with a step at each "
        "death, each step labelled by deaths over patients at risk, and the estimate for month 9.",
        pictures=[
            draw_lives(time, event, names),
            draw_curve(time, event, life_table(first_time, first_event)),
        ],
        inputs=[
            f'<div class="explore-rows">{"".join(rows)}</div>',
            button("reset", "as they were"),
        ],
        readout=f"Alive at nine months: <i>Ŝ</i>(9) = {output('answer', at_nine)}",
        data={
            "time": [float(t) for t in first_time],
            "event": [bool(died) for died in first_event],
            "lives": lives(len(time)).data(),
            "curve": survival().data(),
            "asked": ASKED,
        },
        prompt="Move a dot, or let somebody be censored instead of dying. Which steps move?",
    )
