r"""The dual as a water level: losses as bars, eta to move, and the part above it filled.

With :math:`C = 1/\sqrt\alpha`, the weights at eta, how much of the ball they use, and the bound are

.. math:: q_i = \frac{[\ell_i - \eta]_+}{\sum_j [\ell_j - \eta]_+}, \qquad
   \frac{n \sum_i q_i^2}{C^2}, \qquad
   g(\eta) = C \sqrt{\tfrac1n \textstyle\sum_i [\ell_i - \eta]_+^2} + \eta .
"""

from collections.abc import Sequence

import numpy as np
import torch

import drocox
from drocox.bookstyle import SIX
from drocox.explorables.element import Explorable, button, element, output, range_input
from drocox.explorables.svg import Axes, colour, number, part, picture

WIDTH = 340
HEIGHT = 300
LOWEST = -0.8  # eta that can be chosen
NO_BREAK = "\N{NO-BREAK SPACE}"
GAUGE = (54, 328)  # pixels for 0 % and 200 %
POINTS = 121  # of the curve
STEPS = (0.0, 0.1, 0.2, 0.3, 0.4)  # ticks of the bound above its minimum, the risk


def six_losses() -> np.ndarray:
    """Cox losses of the six patients under the hazards :math:`2^x`.

    Returns
    -------
    array of shape (6,)
    """
    scores = torch.tensor(np.log(2) * SIX["x"].to_numpy())
    return drocox.cox_losses(scores, SIX["time"].to_numpy(), SIX["event"].to_numpy()).numpy()


def bars(losses: np.ndarray) -> Axes:
    """Axes of the bars.

    Parameters
    ----------
    losses : array of shape (n,)

    Returns
    -------
    Axes
    """
    xlim = (-0.5, len(losses) - 0.5)
    return Axes(WIDTH, HEIGHT, xlim, (LOWEST - 0.1, 1.5), right=34, bottom=60)


def curve(losses: np.ndarray) -> Axes:
    """Axes of the bound, less the risk, as a function of eta.

    Parameters
    ----------
    losses : array of shape (n,)

    Returns
    -------
    Axes
    """
    return Axes(WIDTH, HEIGHT, (LOWEST, float(losses.max())), (-0.04, 0.44), left=54, top=64)


def bound(losses: np.ndarray, alpha: float, etas: np.ndarray) -> np.ndarray:
    r"""The dual's objective :math:`g(\eta)` at several eta.

    Parameters
    ----------
    losses : array of shape (n,)
    alpha : float
    etas : array of shape (m,)

    Returns
    -------
    array of shape (m,)
    """
    excess = np.maximum(losses - etas[:, None], 0)
    return drocox.dual_constant(alpha, rule="sharp") * np.sqrt((excess**2).mean(axis=1)) + etas


def state(losses: np.ndarray, alpha: float, eta: float) -> dict:
    """Everything that depends on alpha and eta.

    Parameters
    ----------
    losses : array of shape (n,)
    alpha, eta : float

    Returns
    -------
    dict
        Weights ``q``, the share ``used`` of the ball, the bound ``g``, the ``mean`` loss under q,
        ``c2``, and the best eta as ``best`` with the risk ``risk``.
    """
    c = drocox.dual_constant(alpha, rule="sharp")
    tensor = torch.tensor(losses)
    excess = np.maximum(losses - eta, 0)
    largest = losses == losses.max()
    q = excess / excess.sum() if excess.sum() > 0 else largest / largest.sum()
    return {
        "q": q,
        "used": len(losses) * (q**2).sum() / c**2,
        "g": bound(losses, alpha, np.array([eta]))[0],
        "mean": q @ losses,
        "c2": c**2,
        "best": drocox.optimal_eta(tensor, c).item(),
        "risk": drocox.dro_risk(tensor, alpha, rule="sharp").item(),
    }


def verdict(losses: np.ndarray, eta: float, used: float) -> str:
    """What the gauge says in words.

    Parameters
    ----------
    losses : array of shape (n,)
    eta : float
    used : float
        Share of the ball that the weights use.

    Returns
    -------
    str
    """
    if abs(used - 1) < 1e-9:
        return "The ball is used up: this is η*, and the bound is the risk."
    if eta >= losses.max() and used < 1:
        return "All weight is on the largest loss, and the ball allows it: this is η*."
    if used < 1:
        return "There is room left in the ball: raise η."
    return "These weights are outside the ball: lower η."


def draw_bars(losses: np.ndarray, names: Sequence, now: dict, eta: float) -> str:
    """Losses as bars, the level eta, the excess filled, and the weights in percent.

    Parameters
    ----------
    losses : array of shape (n,)
    names : sequence of str
    now : dict
        Of :func:`state`.
    eta : float

    Returns
    -------
    str
        An ``svg`` element.
    """
    axes = bars(losses)
    level = axes.y(eta)
    ink = {"fill": "none", "stroke": "currentColor"}
    water = {"x": axes.left, "width": axes.right - axes.left, "style": f"fill:{colour(5)}"}
    content = [
        part("rect", "water", y=level, height=axes.bottom - level, opacity="0.18", **water),
        axes.drawn("patient, weight", "loss", dict(enumerate(names))),
    ]
    wide = 0.62 * (axes.x(1) - axes.x(0))
    for i, loss in enumerate(losses):
        left = axes.x(i) - wide / 2
        top = axes.y(max(loss, eta))
        above = {"x": left, "y": top, "width": wide, "height": level - top}
        content.append(part("rect", f"excess{i}", style=f"fill:{colour(1)}", **above))
        whole = {"x": left, "y": axes.y(loss), "width": wide, "height": axes.y(0) - axes.y(loss)}
        content.append(part("rect", "", **whole, **ink))
        place = {"x": axes.x(i), "y": axes.bottom + 36, "text_anchor": "middle"}
        content.append(part("text", f"weight{i}", f"{100 * now['q'][i]:.0f} %", **place))
    best = axes.y(now["best"])
    dotted = {"stroke_dasharray": "2 4", "stroke_width": "1.5", **ink}
    content.append(part("path", "best", d=f"M{axes.left} {best:.1f}H{axes.right + 14}", **dotted))
    content.append(part("text", "bestname", "η*", x=axes.right + 17, y=best + 4.5))
    blue = f"stroke:{colour(0)};fill:{colour(0)}"
    line = f"M{axes.left} {level:.1f}H{axes.right}"
    content.append(part("path", "level", d=line, stroke_width="2.5", style=blue))
    content.append(part("circle", "handle", cx=axes.right, cy=level, r="10", style=blue))
    name = {"x": axes.right, "y": level + 4, "text_anchor": "middle", "pointer_events": "none"}
    paper = "fill:var(--pst-color-background,#fff)"
    content.append(part("text", "levelname", "η", style=paper, **name))
    return picture(WIDTH, HEIGHT, "".join(content))


def draw_curve(losses: np.ndarray, now: dict, alpha: float, eta: float) -> str:
    """The gauge, and the bound against eta with the present point and the lowest.

    Parameters
    ----------
    losses : array of shape (n,)
    now : dict
        Of :func:`state`.
    alpha, eta : float

    Returns
    -------
    str
        An ``svg`` element.
    """
    axes = curve(losses)
    etas = np.linspace(*axes.xlim, POINTS)
    above = bound(losses, alpha, etas) - now["risk"]
    left, right = GAUGE
    full = (left + right) / 2
    used = min(now["used"], 2) * (full - left)
    ink = {"fill": "none", "stroke": "currentColor"}
    box = {"x": left, "y": 20, "height": 14}
    content = [
        part("text", "", "n Σ qᵢ² / C²", x=left, y=14),
        part("text", "", "100 %", x=full, y=14, text_anchor="middle"),
        part("rect", "gauge", width=used, style=f"fill:{colour(2)}", **box),
        part("rect", "", width=right - left, **box, **ink),
        part("path", "", d=f"M{full:.1f} 17V37", stroke_width="2.5", **ink),
        axes.drawn("η", "bound g(η)", yticks=dict.fromkeys(STEPS, "")),
    ]
    for i, step in enumerate(STEPS):
        place = {"x": axes.left - 6, "y": axes.y(step) + 4.5, "text_anchor": "end"}
        content.append(part("text", f"tick{i}", number(now["risk"] + step, 2), **place))
    blue = colour(0)
    line = {"d": axes.line(etas, above), "stroke_width": "2.5"}
    content.append(axes.clipped(part("path", "bound", style=f"fill:none;stroke:{blue}", **line)))
    x = axes.x(now["best"])
    down = f"M{x:.1f} {axes.y(0):.1f}V{axes.bottom}"
    content.append(part("path", "down", d=down, stroke_dasharray="2 4", **ink))
    content.append(part("circle", "lowest", cx=x, cy=axes.y(0), r="8", **ink))
    content.append(part("text", "lowestname", "η*", x=x, y=axes.y(0) - 14, text_anchor="middle"))
    y = axes.y(min(now["g"] - now["risk"], axes.ylim[1]))
    content.append(part("circle", "point", cx=axes.x(eta), cy=y, r="5", style=f"fill:{blue}"))
    return picture(WIDTH, HEIGHT, "".join(content))


def water_level(
    losses: np.ndarray, names: Sequence, *, alpha: float = 0.3, eta: float = 0.1
) -> Explorable:
    """Losses as bars and the dual's threshold as a water level to move.

    Parameters
    ----------
    losses : array of shape (n,)
        Not negative; drawn with the largest first.
    names : sequence of str
        What the patients are called.
    alpha, eta : float
        The first state.

    Returns
    -------
    Explorable
    """
    order = np.argsort(-losses, kind="stable")
    losses = losses[order]
    names = [names[i] for i in order]
    now = state(losses, alpha, eta)
    figure = "dual"
    inputs = [
        range_input(figure, "eta", "level <i>η</i>", LOWEST, 1.38, 0.01, eta, number(eta, 2)),
        range_input(figure, "alpha", "share <i>α</i>", 0.1, 0.8, 0.05, alpha, number(alpha, 2)),
        button("best", "go to <i>η</i>*"),
    ]
    readout = (
        f"<i>C</i>² = 1/<i>α</i> = {output('c2', number(now['c2'], 2))}, "
        f"<i>n</i> Σ <i>q<sub>i</sub></i>² / <i>C</i>² = "
        f"{output('used', number(100 * now['used'], 1) + NO_BREAK + '%')}. "
        f"Bound <i>g</i>(<i>η</i>) = {output('g', number(now['g'], 3))}, "
        f"loss under these weights Σ <i>q<sub>i</sub>ℓ<sub>i</sub></i> = "
        f"{output('mean', number(now['mean'], 3))}. "
        f"{output('verdict', verdict(losses, eta, now['used']))}"
    )
    data = {
        "losses": losses.tolist(),
        "bars": bars(losses).data(),
        "curve": curve(losses).data(),
        "gauge": GAUGE,
        "points": POINTS,
        "steps": STEPS,
    }
    return element(
        "dual",
        figure,
        title="The dual as a water level",
        alt="Bars of the six losses with a water level eta; what is above it is filled and, in "
        "percent of all that is filled, is the patient's weight. Beside them a gauge of how much "
        "of the ball these weights use, and the bound as a function of eta, lowest at eta star.",
        pictures=[draw_bars(losses, names, now, eta), draw_curve(losses, now, alpha, eta)],
        inputs=inputs,
        readout=readout,
        data=data,
        prompt="Move the level until the gauge stands at 100 %. The bound is then at its lowest.",
    )
