r"""Who is next, by a model with one coefficient theta to move, and the sum of the losses beside it.

With scores :math:`f_i = \theta x_i` the bars of a death and its loss are

.. math:: p_k = \frac{e^{f_k}}{\sum_{j \in R_i} e^{f_j}} \quad (k \in R_i), \qquad
   \ell_i = -\log p_i .
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import brentq

import drocox
from drocox.explorables.element import Explorable, button, element, output, range_input
from drocox.explorables.svg import Axes, colour, number, part, picture

WIDTH = 340
HEIGHT = 300
THETAS = (-1.0, 2.0)  # from which to choose
POINTS = 121  # of the curve


def panel(place: int, n: int) -> Axes:
    """Axes of one of four panels, two in a row.

    Parameters
    ----------
    place : int
        0 to 3.
    n : int
        Patients.

    Returns
    -------
    Axes
    """
    column, row = place % 2, place // 2
    half, high = WIDTH // 2, HEIGHT // 2
    margins = {
        "left": 30 + column * half,
        "right": 6 + (1 - column) * half,
        "top": 24 + row * high,
        "bottom": 28 + (1 - row) * high,
    }
    return Axes(WIDTH, HEIGHT, (-0.6, n - 0.4), (0, 1.05), **margins)


def curve(highest: float) -> Axes:
    """Axes of the sum of the losses against theta.

    Parameters
    ----------
    highest : float
        The largest sum.

    Returns
    -------
    Axes
    """
    return Axes(WIDTH, HEIGHT, THETAS, (2, float(np.ceil(highest))))


def sums(time: np.ndarray, event: np.ndarray, x: np.ndarray, thetas: np.ndarray) -> np.ndarray:
    """Sum of the Cox losses at several theta.

    Parameters
    ----------
    time, event, x : arrays of shape (n,)
    thetas : array of shape (m,)

    Returns
    -------
    array of shape (m,)
    """
    scores = torch.tensor(np.outer(thetas, x))
    return drocox.cox_losses(scores, time, event).sum(dim=-1).numpy()


def best_theta(time: np.ndarray, event: np.ndarray, x: np.ndarray) -> float:
    """The theta with the smallest sum, where its derivative vanishes.

    Parameters
    ----------
    time, event, x : arrays of shape (n,)

    Returns
    -------
    float
    """

    def slope(theta: float) -> float:
        at = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
        drocox.cox_losses(at * torch.tensor(x), time, event).sum().backward()
        return at.grad.item()

    return brentq(slope, *THETAS, xtol=1e-12)


def chances(time: np.ndarray, x: np.ndarray, theta: float, i: int) -> np.ndarray:
    """Probability of each patient to be the one who dies when i does; 0 for those not at risk.

    Parameters
    ----------
    time, x : arrays of shape (n,)
    theta : float
    i : int

    Returns
    -------
    array of shape (n,)
    """
    hazards = np.where(time >= time[i], np.exp(theta * x), 0.0)
    return hazards / hazards.sum()


def draw_panels(
    time: np.ndarray, event: np.ndarray, x: np.ndarray, names: Sequence, theta: float
) -> str:
    """A panel for each death: who might have died, with what probability, and who did.

    Parameters
    ----------
    time, event, x : arrays of shape (n,)
        Of patients of whom four died.
    names : sequence of str
    theta : float

    Returns
    -------
    str
        An ``svg`` element.
    """
    content = []
    n = len(time)
    for place, i in enumerate(np.flatnonzero(event)):
        axes = panel(place, n)
        chance = chances(time, x, theta, i)
        halves = {0.0: "0", 0.5: "½", 1.0: "1"}
        content.append(axes.drawn("", "", dict(enumerate(names)), halves))
        title = f"month {time[i]:.0f}, loss {number(-np.log(chance[i]), 2)}"
        at = {"x": (axes.left + axes.right) / 2, "y": axes.top - 8, "text_anchor": "middle"}
        content.append(part("text", f"title{place}", title, **at))
        wide = 0.7 * (axes.x(1) - axes.x(0))
        for j in np.flatnonzero(time >= time[i]):
            top = axes.y(chance[j])
            box = {"x": axes.x(j) - wide / 2, "y": top, "width": wide, "height": axes.bottom - top}
            inside = colour(1) if j == i else "none"
            ink = colour(1) if j == i else colour(0)
            style = f"fill:{inside};stroke:{ink};stroke-width:1.5"
            content.append(part("rect", f"bar{place}-{j}", style=style, **box))
    return picture(WIDTH, HEIGHT, "".join(content))


def draw_sum(axes: Axes, thetas: np.ndarray, values: np.ndarray, best: tuple, now: tuple) -> str:
    """The sum of the losses against theta, with its lowest and the present point.

    Parameters
    ----------
    axes : Axes
    thetas, values : arrays of shape (m,)
    best, now : pairs of float
        A theta and its sum.

    Returns
    -------
    str
        An ``svg`` element.
    """
    ink = {"fill": "none", "stroke": "currentColor"}
    low_x, low_y = axes.x(best[0]), axes.y(best[1])
    down = f"M{low_x:.1f} {low_y:.1f}V{axes.bottom}"
    blue = f"fill:none;stroke:{colour(0)};stroke-width:2.5"
    dot = {"cx": axes.x(now[0]), "cy": axes.y(now[1]), "r": "5", "style": f"fill:{colour(1)}"}
    content = [
        axes.drawn("θ", "sum of the losses"),
        part("path", "", d=down, stroke_dasharray="2 4", **ink),
        part("path", "", d=axes.line(thetas, values), style=blue),
        part("circle", "", cx=low_x, cy=low_y, r="8", **ink),
        part("text", "", "smallest", x=low_x, y=low_y - 14, text_anchor="middle"),
        part("circle", "point", **dot),
    ]
    return picture(WIDTH, HEIGHT, "".join(content))


def who_is_next(
    time: np.ndarray,
    event: np.ndarray,
    x: np.ndarray,
    names: Sequence,
    *,
    theta: float = float(np.log(2)),
) -> Explorable:
    """Four deaths and who might have died, with theta to move; the sum of the losses beside them.

    Parameters
    ----------
    time, event, x : arrays of shape (n,)
        Of patients of whom four died; one feature.
    names : sequence of str
        What they are called.
    theta : float
        The first state.

    Returns
    -------
    Explorable
    """
    thetas = np.linspace(*THETAS, POINTS)
    values = sums(time, event, x, thetas)
    axes = curve(values.max())
    lowest = best_theta(time, event, x)
    best_sum, total = sums(time, event, x, np.array([lowest, theta]))
    losses = drocox.cox_losses(torch.tensor(theta * x), time, event).numpy()
    deaths = np.flatnonzero(event)
    figure = "cox-loss"
    shown = [f"{names[i]} {output(f'loss{i}', number(losses[i], 3))}" for i in deaths]
    slider = range_input(figure, "theta", "<i>θ</i>", *THETAS, 0.01, theta, number(theta, 2))
    return element(
        "cox-loss",
        figure,
        title="Who is next, for any theta",
        alt="Left, a panel for each of four deaths with a bar for each patient at risk, the "
        "probability to be the one who dies; the bar of who died is solid. Right, the sum of the "
        "four losses against theta, a curve with one lowest point.",
        pictures=[
            draw_panels(time, event, x, names, theta),
            draw_sum(axes, thetas, values, (lowest, best_sum), (theta, total)),
        ],
        inputs=[
            slider,
            '<div class="explore-buttons">'
            + button("zero", "<i>θ</i> = 0")
            + button("log2", "<i>θ</i> = log 2")
            + button("best", "smallest sum")
            + "</div>",
        ],
        readout=f"Losses: {', '.join(shown)}; sum {output('sum', number(total, 3))}.",
        data={
            "time": time.tolist(),
            "event": event.tolist(),
            "x": x.tolist(),
            "panels": [panel(place, len(time)).data() for place in range(len(deaths))],
            "curve": axes.data(),
            "best": lowest,
            "theta": theta,
        },
        prompt="Find the θ that makes the solid bars long and the sum of the losses small.",
    )
