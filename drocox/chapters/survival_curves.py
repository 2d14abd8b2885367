"""What the chapter on survival curves draws and tells: calibration."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say

FIFTHS = ["lowest", "", "", "", "highest risk"]


def draw_calibration(years: np.ndarray, predicted: Sequence, observed: Sequence) -> Figure:
    """Mean predicted survival of each fifth of the patients, and its Kaplan-Meier curve as points.

    Parameters
    ----------
    years : array of shape (m,)
    predicted, observed : sequences of five arrays of shape (m,)
        From the lowest to the highest risk.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots()
    for k, name in enumerate(FIFTHS):
        axes.plot(years, predicted[k], color=f"C{k}")
        axes.plot(years, observed[k], "o", ms=3, color=f"C{k}")
        axes.text(years[-1] + 0.2, predicted[k][-1], name, va="center")
    axes.set(
        xlabel="years since entry",
        ylabel="probability to be alive",
        ylim=(0, 1.02),
        xlim=(0, years[-1] + 3.2),
    )
    return figure


def tell_calibration(predicted: Sequence, observed: Sequence) -> None:
    """The largest distance between a predicted curve and what happened.

    Parameters
    ----------
    predicted, observed : sequences of five arrays of shape (m,)
    """
    gap = np.abs(np.subtract(predicted, observed)).max()
    guard(gap < 0.1, "the points lie close to each curve")
    say("gap", f"{gap:.2f}")
