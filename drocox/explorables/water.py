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
from drocox.bookstyle import SIX
from drocox.explorables.element import element
from drocox.paper.tables import Shown

LOWEST = -0.8  # eta that can be chosen


def six_losses() -> np.ndarray:
    """Cox losses of the six patients under the hazards :math:`2^x`."""
    scores = torch.tensor(np.log(2) * SIX["x"].to_numpy())
    return drocox.cox_losses(scores, SIX["time"].to_numpy(), SIX["event"].to_numpy()).numpy()


def water_level(losses: np.ndarray, names: Sequence, figure: Figure) -> Shown:
    """Losses as bars, the largest first, and the dual's threshold as a water level to move.

    ``figure`` is shown where no script runs.
    """
    order = np.argsort(-losses, kind="stable")
    losses = losses[order]
    names = [names[i] for i in order]
    return element(
        "dual",
        "dual",
        title="The dual as a water level",
        alt="Bars of the six losses with a water level eta; the part of a bar above the level is "
        "filled, and its share of all that is filled is the patient's weight. Beside them the "
        "bound as a function of eta, lowest at eta star.",
        figure=figure,
        data={
            "losses": losses.tolist(),
            "names": names,
            "lowest": LOWEST,
            "alpha": 0.3,  # at first
            "eta": 0.1,
        },
    )
