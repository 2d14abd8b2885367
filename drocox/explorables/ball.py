r"""The χ² ball on three patients, for a slider of alpha: all distributions, and three balls.

A distribution q on three patients is a point of a triangle, :math:`\sum_i q_i` corner :math:`_i`.
Two corners are :math:`\sqrt 2` apart in q. With :math:`w = 3q` the ball
:math:`\int w^2 dP - 1 \le r` is a disc of radius :math:`\sqrt{r / 3}` around the middle.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch

import drocox
from drocox.bookstyle import COLOURS, guard
from drocox.explorables.element import Explorable
from drocox.explorables.sliders import frames

# The slider's steps, and the drawing in pixels.
SHARES = (0.25, 0.3, 1 / 3, 0.4, 0.45, 0.5, 0.55, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 1.0)
CORNERS = np.array([[60.0, 376], [260, 30], [460, 376]])
CENTRE = CORNERS.mean(axis=0)
SCALE = 400 / np.sqrt(2)  # pixels for a distance of 1 in q


def _ink(number: int, dashes: str = "") -> str:
    """Attributes of an outline in one of the book's colours."""
    colour = f"var(--dc-{number},{COLOURS[number]})"
    return (
        f'style="color:{colour}" stroke="currentColor" fill="none" '
        f'stroke-width="2.5" stroke-dasharray="{dashes}"'
    )


def _filled(ink: str, opacity: str) -> str:
    """The same outline with a light fill."""
    return ink.replace('none"', f'currentColor" fill-opacity="{opacity}"')


def _path(points: np.ndarray) -> str:
    """The attribute of a closed path through points."""
    inside = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'd="M{inside}Z"'


STYLES = {"sharp": _ink(0), "definition": _ink(1, "7 4"), "paper": _ink(3, "2 3")}
DISC = _filled(_ink(0), ".18")
POLYGON = _filled(_ink(2), ".25")
DOT = f'style="fill:var(--dc-0,{COLOURS[0]})"'
BOX = f'width="10" height="10" style="fill:var(--dc-2,{COLOURS[2]})"'


def under_ceiling(alpha: float) -> np.ndarray:
    r"""Corners of the set :math:`q_i \le 1 / (3 \alpha)` of distributions on three patients.

    Parameters
    ----------
    alpha : float

    Returns
    -------
    array of shape (6, 3)
        In order around the set.
    """
    top = min(1.0, 1 / (3 * alpha))
    second = min(top, 1 - top)
    order = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)]  # largest weight, second
    corners = np.full((6, 3), 1 - top - second)
    for q, (largest, next_largest) in zip(corners, order, strict=True):
        q[largest] = top
        q[next_largest] = second
    return corners


def farthest_divergence(alpha: float) -> float:
    r"""Divergence :math:`\frac13 \sum_i (3 q_i)^2 - 1` of the farthest q under the ceiling.

    Parameters
    ----------
    alpha : float

    Returns
    -------
    float
    """
    return 3 * (under_ceiling(alpha) ** 2).sum(axis=1).max() - 1


def guard_ball(radius: Mapping[str, Callable], bounds: Mapping[str, list]) -> None:
    """Hold the text on the drawing of the ball to the numbers.

    Parameters
    ----------
    radius : mapping of str to function
        Radius of the ball for an alpha, by rule.
    bounds : mapping of str to list of float
        Bound at each of ``SHARES``, by rule, and of CVaR.
    """
    for alpha in SHARES:
        distance = farthest_divergence(alpha)
        guard(distance < radius["sharp"](alpha) + 1e-12, "the sharp ball holds every group")
        escapes = distance > radius["definition"](alpha) + 1e-12
        guard(escapes == (1 / np.sqrt(3) < alpha < 1), "from 0.6 on groups escape")
    for alpha in (1 / 3, 2 / 3):
        guard(
            np.isclose(farthest_divergence(alpha), radius["sharp"](alpha)),
            "at 1/3 and 2/3 the corners of the polygon lie on the sharp circle",
        )
    for alpha, definition, cvar in zip(SHARES, bounds["definition"], bounds["CVaR"], strict=True):
        if 0.6 <= alpha < 1:
            guard(definition < cvar, "from 0.6 on definition reads less than CVaR")
    corner = 3 * 1 - 1  # the divergence of a corner of the triangle
    guard(radius["paper"](0.5) == corner, "at 0.5 the paper's disc holds the whole triangle")


def _triangle(losses: np.ndarray, names: str) -> str:
    """What stays: the triangle with its corners' names, the middle, and the way to worse."""
    outline = _path(CORNERS)
    parts = [
        f'<path fill="none" stroke="currentColor" {outline}/>',
        f'<clipPath id="wc-triangle"><path {outline}/></clipPath>',
    ]
    for name, loss, (x, y) in zip(names, losses, CORNERS, strict=True):
        below = y - 12 if y < 100 else y + 24
        parts.append(
            f'<text x="{x:.0f}" y="{below:.0f}" text-anchor="middle">{name}: loss {loss:.2f}</text>'
        )
    uphill = (losses - losses.mean()) @ (CORNERS - CENTRE)
    end = CENTRE + 70 * uphill / np.linalg.norm(uphill)
    way = _path([CENTRE, end])
    x, y = CENTRE
    parts += [
        f'<path fill="none" stroke="currentColor" stroke-dasharray="1 3" {way}/>',
        f'<circle r="3" cx="{x:.1f}" cy="{y:.1f}"/>',
        f'<text x="{x + 8:.0f}" y="{y + 8:.0f}">P</text>',
    ]
    return f'<g font-size="17">{"".join(parts)}</g>'


def _picture(alpha: float, radius: Mapping, worst: np.ndarray, tail: np.ndarray) -> str:
    """What moves: the polygon under the ceiling, three discs, the worst q of disc and polygon."""
    x, y = CENTRE
    parts = f"<path {POLYGON} {_path(under_ceiling(alpha) @ CORNERS)}/>"
    for rule, style in STYLES.items():
        pixels = SCALE * np.sqrt(radius[rule](alpha) / 3)
        ink = DISC if rule == "sharp" else style
        parts += f'<circle {ink} cx="{x:.1f}" cy="{y:.1f}" r="{pixels:.1f}"/>'
    dot_x, dot_y = worst @ CORNERS
    left, top = tail @ CORNERS - 5  # the middle of a box of 10
    return (
        f'<g clip-path="url(#wc-triangle)">{parts}</g>'
        f'<rect {BOX} x="{left:.1f}" y="{top:.1f}"/>'
        f'<circle {DOT} r="6" cx="{dot_x:.1f}" cy="{dot_y:.1f}"/>'
    )


def ball_slider(
    name: str, losses: np.ndarray, patients: str, radius: Mapping[str, Callable]
) -> Explorable:
    """All distributions on three patients: the balls of three radii, and the set under the ceiling.

    Parameters
    ----------
    name : str
        Of the slider.
    losses : array of shape (3,)
    patients : str
        Three letters.
    radius : mapping of str to function
        Radius of the ball for an alpha, by rule.

    Returns
    -------
    Explorable
    """
    three = torch.tensor(losses)
    bounds = {
        "CVaR" if rule == "cvar" else rule: [
            drocox.dro_risk(three, alpha, rule=rule).item() for alpha in SHARES
        ]
        for rule in ("cvar", *radius)
    }
    guard_ball(radius, bounds)
    pictures, mixes = [], []
    for alpha in SHARES:
        worst = drocox.worst_case_weights(three, alpha, rule="sharp").numpy()
        tail = drocox.worst_case_weights(three, alpha, rule="cvar").numpy()
        pictures.append(_picture(alpha, radius, worst, tail))
        percents = [f"{who} {100 * q:.0f} %" for who, q in zip(patients, worst, strict=True)]
        mixes.append(" ".join(percents))
    shown = {rule: [f"{value:.3f}" for value in values] for rule, values in bounds.items()}
    return frames(
        name,
        "α",
        [f"{alpha:.2f}" for alpha in SHARES],
        pictures,
        size=(520, 410),
        still=_triangle(losses, patients),
        start=7,
        legend={
            "sharp disc": f'<circle {DISC} cx="14" cy="5" r="4"/>',
            "definition": f'<path {STYLES["definition"]} d="M1 5H27"/>',
            "paper": f'<path {STYLES["paper"]} d="M1 5H27"/>',
            "under the ceiling": f'<path {POLYGON} d="M4 2H24V8H4Z"/>',
            "worst q, sharp": f'<circle {DOT} r="4" cx="14" cy="5"/>',
            "worst q, CVaR": f'<rect {BOX} x="9"/>',
        },
        readouts={"worst q, sharp": mixes} | shown,
        alt="A triangle whose points are the distributions on patients A, C and "
        "D. Around its middle lie a polygon, the distributions under the "
        "ceiling, and three circles for the radii sharp, definition and "
        "paper. They shrink to the middle as alpha grows; a dot and a square "
        "mark the worst distributions of disc and polygon, towards C.",
    )
