r"""All distributions on three patients: the balls of three radii, and the set under the ceiling.

A distribution q on three patients is a point of a triangle, :math:`\sum_i q_i` corner :math:`_i`.
Two corners are :math:`\sqrt 2` apart in q. With :math:`w = 3q` the ball
:math:`\int w^2 dP - 1 \le r` is a disc of radius :math:`\sqrt{r / 3}` around the middle.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon

import drocox
from drocox.bookstyle import COLOURS
from drocox.explorables.element import Explorable, element, picture, rounded

SHARES = (0.25, 0.3, 1 / 3, 0.4, 0.45, 0.5, 0.55, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 1.0)
FIRST = 7  # of the shares
CORNERS = np.array([[0, 0], [np.sqrt(0.5), np.sqrt(1.5)], [np.sqrt(2), 0]])
STYLES = {"sharp": (0, "-"), "definition": (1, "--"), "paper": (3, ":")}  # colour, line


def under_ceiling(alpha: float) -> np.ndarray:
    r"""Corners, in order, of the set :math:`q_i \le 1 / (3 \alpha)`; shape (6, 3)."""
    top = min(1.0, 1 / (3 * alpha))
    second = min(top, 1 - top)
    order = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)]  # largest weight, second
    corners = np.full((6, 3), 1 - top - second)
    for q, (largest, next_largest) in zip(corners, order, strict=True):
        q[largest] = top
        q[next_largest] = second
    return corners


def ball_slider(
    name: str, losses: np.ndarray, names: Sequence, radius: Mapping[str, Callable]
) -> Explorable:
    """The triangle of three patients, with alpha to move.

    ``radius`` has for each of the rules sharp, definition and paper the radius of the ball as a
    function of alpha.
    """
    three = torch.tensor(losses)
    bounds = {
        "CVaR" if rule == "cvar" else rule: [
            drocox.dro_risk(three, alpha, rule=rule).item() for alpha in SHARES
        ]
        for rule in ("cvar", *STYLES)
    }

    def worst(alpha: float, rule: str) -> np.ndarray:
        return drocox.worst_case_weights(three, alpha, rule=rule).numpy()

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        alpha = SHARES[FIRST]
        triangle = Polygon(CORNERS, facecolor="none", edgecolor="#000000")
        axes.add_patch(triangle)
        inside = Polygon(under_ceiling(alpha) @ CORNERS, color=COLOURS[2], alpha=0.4)
        axes.add_patch(inside)
        inside.set_label("under the ceiling")
        for rule, (colour, line) in STYLES.items():
            size = np.sqrt(radius[rule](alpha) / 3)
            ink = {"edgecolor": COLOURS[colour], "linestyle": line, "label": rule}
            disc = Circle(CORNERS.mean(axis=0), size, facecolor="none", linewidth=2, **ink)
            axes.add_patch(disc)
            disc.set_clip_path(triangle)
        marks = {"sharp": ("o", 0), "cvar": ("s", 2)}
        for rule, (mark, colour) in marks.items():
            label = f"worst q, {'CVaR' if rule == 'cvar' else rule}"
            place = worst(alpha, rule) @ CORNERS
            axes.plot(*place, mark, color=COLOURS[colour], label=label, linestyle="none")
        for name, loss, (x, y) in zip(names, losses, CORNERS, strict=True):
            side = "bottom" if y > 0 else "top"
            axes.text(x, y, f"{name}: loss {loss:.2f}", ha="center", va=side)
        axes.set_title(f"α = {alpha:.2f}\n")
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        axes.set(xlim=(-0.1, 1.5), ylim=(-0.1, 1.3), aspect="equal")
        axes.axis("off")

    return element(
        "ball",
        name,
        title="The balls on three patients, by alpha",
        alt=f"A triangle whose points are the distributions on patients {', '.join(names[:2])} and "
        f"{names[2]}. Around its middle lie a polygon, the distributions under the ceiling, and "
        "three circles for the radii sharp, definition and paper. They shrink to the middle as "
        "alpha grows; a dot and a square mark the worst distributions of disc and polygon.",
        pictures=[picture(draw, 5.2, 3.6)],
        data={
            "names": list(names),
            "losses": rounded(losses),
            "alphas": rounded(SHARES),
            "start": FIRST,
            "radii": {rule: rounded([radius[rule](a) for a in SHARES]) for rule in STYLES},
            "ceiling": [rounded(under_ceiling(alpha)) for alpha in SHARES],
            "worst": [rounded(worst(alpha, "sharp")) for alpha in SHARES],
            "tail": [rounded(worst(alpha, "cvar")) for alpha in SHARES],
            "bounds": {rule: rounded(values) for rule, values in bounds.items()},
        },
    )
