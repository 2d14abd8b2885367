r"""The Kaplan-Meier curve of a few patients whose times and deaths can be changed.

With :math:`d_k` deaths on day :math:`a_k` and :math:`n_k` patients at risk,

.. math:: \hat S(t) = \prod_{k : a_k \le t} \Bigl(1 - \frac{d_k}{n_k}\Bigr) .
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from drocox.explorables.element import element
from drocox.paper.tables import Shown

END = 14  # months
ASKED = 9  # the month that the patient asks about


def kaplan_meier(time: np.ndarray, event: np.ndarray, names: Sequence, figure: Figure) -> Shown:
    """The Kaplan-Meier curve of a few patients; times, whole months, and deaths can be changed.

    ``figure`` is shown where no script runs.
    """

    return element(
        "kaplan-meier",
        "kaplan-meier",
        title="The Kaplan–Meier curve of six patients",
        alt="Left, a line for each patient, which ends in a full dot at a death and in an open one "
        "at the end of observation. Right, the Kaplan–Meier curve with the same dots: a staircase "
        "with a step at each death, and dotted lines from month 9 to the estimate there.",
        figure=figure,
        data={
            "time": [float(t) for t in time],
            "event": [bool(died) for died in event],
            "names": list(names),
            "end": END,
            "asked": ASKED,
        },
    )
