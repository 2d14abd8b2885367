r"""The Kaplan-Meier curve of a few patients whose times and deaths can be changed.

With :math:`d_k` deaths on day :math:`a_k` and :math:`n_k` patients at risk,

.. math:: \hat S(t) = \prod_{k : a_k \le t} \Bigl(1 - \frac{d_k}{n_k}\Bigr) .
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from drocox.bookstyle import COLOURS
from drocox.explorables.element import Explorable, element, number, picture

END = 14  # months
MONTHS = range(0, END + 1, 2)
ASKED = 9  # the month that the patient asks about


def estimate(time: np.ndarray, event: np.ndarray, t: float) -> float:
    """The Kaplan-Meier estimate at a time."""
    days = np.unique(time[event & (time <= t)])
    return float(np.prod([1 - (event & (time == day)).sum() / (time >= day).sum() for day in days]))


def kaplan_meier(time: np.ndarray, event: np.ndarray, names: Sequence) -> Explorable:
    """The Kaplan-Meier curve of a few patients; times, whole months, and deaths can be changed."""

    def draw_lives(figure: Figure) -> None:
        axes = figure.subplots()
        for row, (t, died) in enumerate(zip(time, event, strict=True)):
            axes.plot([0, t], [row, row], color="#000000")
            if not died:
                axes.plot([t, END], [row, row], color="#000000", linestyle=":")
            inside = COLOURS[1] if died else "white"
            axes.plot(t, row, "o", color=COLOURS[1], markerfacecolor=inside, markersize=9)
        axes.set(xlim=(0, END), xticks=MONTHS, xlabel="months since entry")
        axes.set_yticks(range(len(time)), names)
        axes.invert_yaxis()

    def draw_curve(figure: Figure) -> None:
        axes = figure.subplots()
        days = np.append(np.unique(time[event]), time.max())
        alive = [estimate(time, event, day) for day in days]
        axes.step([0, *days], [1, *alive], where="post", color=COLOURS[0], linewidth=2)
        for t, died in zip(time, event, strict=True):
            inside = COLOURS[1] if died else "white"
            axes.plot(t, estimate(time, event, t), "o", color=COLOURS[1], markerfacecolor=inside)
        value = estimate(time, event, ASKED)
        axes.plot([0, ASKED, ASKED], [value, value, 0], color="#000000", linestyle=":")
        axes.set_title(f"alive at nine months: Ŝ(9) = {number(value, 3)}")
        axes.set(xlim=(0, END), xticks=MONTHS, xlabel="months t", ylabel="alive, Ŝ(t)")
        axes.set_ylim(0, 1.05)

    return element(
        "kaplan-meier",
        "kaplan-meier",
        title="The Kaplan–Meier curve of six patients",
        alt="Left, a line for each patient, which ends in a full dot at a death and in an open one "
        "at the end of observation. Right, the Kaplan–Meier curve with the same dots: a staircase "
        "with a step at each death, and dotted lines from month 9 to the estimate there.",
        pictures=[picture(draw_lives), picture(draw_curve)],
        data={
            "time": [float(t) for t in time],
            "event": [bool(died) for died in event],
            "names": list(names),
            "end": END,
            "asked": ASKED,
        },
    )
