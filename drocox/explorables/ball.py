r"""All distributions on three patients: the balls of three radii, and the set under the ceiling.

A distribution q on three patients is a point of a triangle, :math:`\sum_i q_i` corner :math:`_i`.
Two corners are :math:`\sqrt 2` apart in q. With :math:`w = 3q` the ball
:math:`\int w^2 dP - 1 \le r` is a disc of radius :math:`\sqrt{r / 3}` around the middle.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

import drocox
from drocox.explorables.element import element, rounded
from drocox.paper.tables import Shown

SHARES = (0.25, 0.3, 1 / 3, 0.4, 0.45, 0.5, 0.55, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 1.0)
FIRST = 7  # of the shares


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
    name: str, losses: np.ndarray, names: Sequence, radius: Mapping[str, Callable], figure: Figure
) -> Shown:
    """The triangle of three patients, with alpha to move.

    ``radius`` has for each of the rules sharp, definition and paper the radius of the ball as a
    function of alpha. ``figure`` is shown where no script runs.
    """
    three = torch.tensor(losses)
    bounds = {
        "CVaR" if rule == "cvar" else rule: [
            drocox.dro_risk(three, alpha, rule=rule).item() for alpha in SHARES
        ]
        for rule in ("cvar", *radius)
    }

    def worst(alpha: float, rule: str) -> np.ndarray:
        return drocox.worst_case_weights(three, alpha, rule=rule).numpy()

    return element(
        "ball",
        name,
        title="The balls on three patients, by alpha",
        alt=f"A triangle whose points are the distributions on patients {', '.join(names[:2])} and "
        f"{names[2]}. Around its middle lie a polygon, the distributions under the ceiling, and "
        "three circles for the radii sharp, definition and paper. They shrink to the middle as "
        "alpha grows; a dot and a square mark the worst distributions of disc and polygon.",
        figure=figure,
        data={
            "names": list(names),
            "losses": rounded(losses),
            "alphas": rounded(SHARES),
            "start": FIRST,
            "radii": {rule: rounded([radius[rule](a) for a in SHARES]) for rule in radius},
            "ceiling": [rounded(under_ceiling(alpha)) for alpha in SHARES],
            "worst": [rounded(worst(alpha, "sharp")) for alpha in SHARES],
            "tail": [rounded(worst(alpha, "cvar")) for alpha in SHARES],
            "bounds": {rule: rounded(values) for rule, values in bounds.items()},
        },
    )
