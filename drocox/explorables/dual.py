r"""The dual as a water level: losses as bars, eta to move, and the part above it filled.

With :math:`c = 1/\sqrt\alpha`, the weights at eta, how much of the ball they use, and the bound are

.. math:: q_i = \frac{[\ell_i - \eta]_+}{\sum_j [\ell_j - \eta]_+}, \qquad
   \frac{n \sum_i q_i^2}{c^2}, \qquad
   g(\eta) = c \sqrt{\tfrac1n \textstyle\sum_i [\ell_i - \eta]_+^2} + \eta .
"""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

import drocox
from drocox.bookstyle import COLOURS, SIX
from drocox.explorables.element import Explorable, element, number, picture

LOWEST = -0.8  # eta that can be chosen


def six_losses() -> np.ndarray:
    """Cox losses of the six patients under the hazards :math:`2^x`."""
    scores = torch.tensor(np.log(2) * SIX["x"].to_numpy())
    return drocox.cox_losses(scores, SIX["time"].to_numpy(), SIX["event"].to_numpy()).numpy()


def bound(losses: np.ndarray, alpha: float, eta: float) -> float:
    r"""The dual's objective :math:`g(\eta)`."""
    excess = np.maximum(losses - eta, 0)
    return drocox.dual_constant(alpha, rule="sharp") * np.sqrt((excess**2).mean()) + eta


def water_level(
    losses: np.ndarray, names: Sequence, *, alpha: float = 0.3, eta: float = 0.1
) -> Explorable:
    """Losses as bars, the largest first, and the dual's threshold as a water level to move.

    ``alpha`` and ``eta`` are the initial values.
    """
    order = np.argsort(-losses, kind="stable")
    losses = losses[order]
    names = [names[i] for i in order]
    constant = drocox.dual_constant(alpha, rule="sharp")
    best = drocox.optimal_eta(torch.tensor(losses), constant).item()
    excess = np.maximum(losses - eta, 0)
    weights = excess / excess.sum()

    def draw_bars(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axhspan(LOWEST, eta, color=COLOURS[5], alpha=0.2)
        axes.bar(range(len(losses)), excess, bottom=eta, width=0.62, color=COLOURS[1])
        axes.bar(range(len(losses)), losses, width=0.62, color="none", edgecolor="#000000")
        axes.axhline(eta, color=COLOURS[0], linewidth=2)
        axes.axhline(best, color="#000000", linestyle=":")
        beside = axes.get_yaxis_transform()
        axes.text(1.02, eta, "η", color=COLOURS[0], va="center", transform=beside)
        axes.text(1.02, best, "η*", va="center", transform=beside)
        axes.set(xticks=range(len(losses)), xlabel="patient, weight", ylabel="loss")
        shares = zip(names, weights, strict=True)
        axes.set_xticklabels([f"{name}\n{100 * share:.0f} %" for name, share in shares])

    def draw_bound(figure: Figure) -> None:
        axes = figure.subplots()
        etas = np.linspace(LOWEST, losses.max(), 121)
        axes.plot(etas, [bound(losses, alpha, value) for value in etas], color=COLOURS[0])
        axes.plot(best, bound(losses, alpha, best), "o", color="#000000", markerfacecolor="none")
        place = (best, bound(losses, alpha, best))
        axes.annotate("η*", place, (0, 8), textcoords="offset points", ha="center")
        now = bound(losses, alpha, eta)
        axes.plot(eta, now, "o", color=COLOURS[0])
        axes.set_title(f"α = {number(alpha, 2)}, g({number(eta, 2)}) = {number(now, 3)}")
        axes.set(xlabel="η", ylabel="bound g(η)")

    return element(
        "dual",
        "dual",
        title="The dual as a water level",
        alt="Bars of the six losses with a water level eta; the part of a bar above the level is "
        "filled, and its share of all that is filled is the patient's weight. Beside them the "
        "bound as a function of eta, lowest at eta star.",
        pictures=[picture(draw_bars), picture(draw_bound)],
        data={
            "losses": losses.tolist(),
            "names": names,
            "lowest": LOWEST,
            "alpha": alpha,
            "eta": eta,
        },
    )
