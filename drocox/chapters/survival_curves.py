"""What the chapter on survival curves draws and tells: calibration, and misaligned Brier scores."""

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


def draw_misaligned(
    scales: np.ndarray,
    aligned: np.ndarray,
    misaligned: np.ndarray,
    expected: np.ndarray,
    published: float,
) -> Figure:
    """Integrated Brier scores of scaled scores, rows aligned, misaligned, and paired at random.

    Parameters
    ----------
    scales : array of shape (m,)
        By what the scores are multiplied, from 0 on.
    aligned, misaligned : arrays of shape (m,)
    expected : array
        What pairing at random gives for every second scale.
    published : float
        The value in the paper's table.

    Returns
    -------
    Figure
    """
    guard(
        np.abs(expected - misaligned[::2]).max() < 0.005,
        "the misaligned score is that of a random pairing",
    )
    guard(aligned[0] == misaligned[0], "both start at the same value")
    guard((np.diff(misaligned) > 0).all(), "misaligned, the less a model says, the better")
    guard(scales[aligned.argmin()] > 0.85, "aligned, the trained model is best")
    figure, axes = plt.subplots()
    axes.plot(scales, misaligned, "C1--", label="misaligned (as published)")
    axes.plot(scales[::2], expected, "kx", ms=7, label="expected, if random")
    axes.plot(scales, aligned, "C0", label="aligned")
    axes.axhline(published, color="C1", lw=1, alpha=0.5)
    axes.text(0, published + 0.002, "published", color="C1")
    axes.set(xlabel="scores multiplied by", ylabel="integrated Brier score")
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.7))
    return figure
