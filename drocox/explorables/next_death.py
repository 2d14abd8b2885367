r"""Who dies next under a model with one coefficient theta to move, and the sum of the losses.

With scores :math:`f_i = \theta x_i` the bars of a death and its loss are

.. math:: p_k = \frac{e^{f_k}}{\sum_{j \in R_i} e^{f_j}} \quad (k \in R_i), \qquad
   \ell_i = -\log p_i .
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

import drocox
from drocox.explorables.element import element
from drocox.paper.tables import Shown
from drocox.solver import minimise

THETAS = (-1.0, 2.0)  # from which to choose


def who_is_next(
    time: np.ndarray, event: np.ndarray, x: np.ndarray, names: Sequence, figure: Figure
) -> Shown:
    """Four deaths with the patients at risk, theta to move, and the sum of the losses.

    ``x`` is the one feature; ``figure`` is shown where no script runs.
    """
    risk_sets = drocox.risk_sets(time, event)
    best = minimise(x[:, None], risk_sets, 1.0, rule="sharp").coef.item()

    return element(
        "cox-loss",
        "cox-loss",
        title="Who is next, for any theta",
        alt="Left, a panel for each of four deaths with a bar for each patient at risk, the "
        "probability of being the one who dies; the bar of the patient who died is solid. Right, "
        "the sum of the four losses against theta, a curve with one lowest point.",
        figure=figure,
        data={
            "time": time.tolist(),
            "event": event.tolist(),
            "x": x.tolist(),
            "names": list(names),
            "thetas": THETAS,
            "theta": float(np.log(2)),  # at first
            "best": best,
        },
    )
