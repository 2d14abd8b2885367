r"""Who dies next under a model with one coefficient theta to move, and the sum of the losses.

With scores :math:`f_i = \theta x_i` the bars of a death and its loss are

.. math:: p_k = \frac{e^{f_k}}{\sum_{j \in R_i} e^{f_j}} \quad (k \in R_i), \qquad
   \ell_i = -\log p_i .
"""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy.optimize import brentq

import drocox
from drocox.bookstyle import COLOURS
from drocox.explorables.element import Explorable, element, number, picture

THETAS = (-1.0, 2.0)  # from which to choose


def sums(time: np.ndarray, event: np.ndarray, x: np.ndarray, thetas: np.ndarray) -> np.ndarray:
    """Sum of the Cox losses at several theta."""
    scores = torch.tensor(np.outer(thetas, x))
    return drocox.cox_losses(scores, time, event).sum(dim=-1).numpy()


def best_theta(time: np.ndarray, event: np.ndarray, x: np.ndarray) -> float:
    """The theta with the smallest sum, where its derivative vanishes."""

    def slope(theta: float) -> float:
        at = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
        drocox.cox_losses(at * torch.tensor(x), time, event).sum().backward()
        return at.grad.item()

    return brentq(slope, *THETAS, xtol=1e-12)


def who_is_next(
    time: np.ndarray,
    event: np.ndarray,
    x: np.ndarray,
    names: Sequence,
    *,
    theta: float = float(np.log(2)),
) -> Explorable:
    """Four deaths with the patients at risk, theta to move, and the sum of the losses.

    ``x`` is the one feature; ``theta`` is the initial value.
    """
    best = best_theta(time, event, x)

    def draw_panels(figure: Figure) -> None:
        panels = figure.subplots(2, 2, sharex=True, sharey=True)
        for axes, i in zip(panels.flat, np.flatnonzero(event), strict=True):
            at_risk = time >= time[i]
            chances = np.where(at_risk, np.exp(theta * x), 0) / np.exp(theta * x[at_risk]).sum()
            inside = [COLOURS[1] if j == i else "none" for j in range(len(x))]
            edges = [COLOURS[1] if j == i else COLOURS[0] for j in range(len(x))]
            shown = np.flatnonzero(at_risk)
            ink = {"color": [inside[j] for j in shown], "edgecolor": [edges[j] for j in shown]}
            axes.bar(shown, chances[shown], width=0.7, **ink)
            axes.set_title(f"month {time[i]:.0f}, loss {number(-np.log(chances[i]), 2)}")
            axes.set(xticks=range(len(x)), ylim=(0, 1.05))
            axes.set_xticklabels(names)

    def draw_sum(figure: Figure) -> None:
        axes = figure.subplots()
        thetas = np.linspace(*THETAS, 121)
        axes.plot(thetas, sums(time, event, x, thetas), color=COLOURS[0])
        lowest, now = sums(time, event, x, np.array([best, theta]))
        axes.plot(best, lowest, "o", color="#000000", markerfacecolor="none", markersize=10)
        axes.annotate("smallest", (best, lowest), (0, 10), textcoords="offset points", ha="center")
        axes.plot(theta, now, "o", color=COLOURS[1])
        axes.set_title(f"θ = {number(theta, 2)}: sum {number(now, 3)}")
        axes.set(xlabel="θ", ylabel="sum of the losses")

    return element(
        "cox-loss",
        "cox-loss",
        title="Who is next, for any theta",
        alt="Left, a panel for each of four deaths with a bar for each patient at risk, the "
        "probability of being the one who dies; the bar of the patient who died is solid. Right, "
        "the sum of the four losses against theta, a curve with one lowest point.",
        pictures=[picture(draw_panels), picture(draw_sum)],
        data={
            "time": time.tolist(),
            "event": event.tolist(),
            "x": x.tolist(),
            "names": list(names),
            "thetas": THETAS,
            "theta": theta,
            "best": best,
        },
    )
