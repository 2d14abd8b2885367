r"""What digits hang on: whose outcome a prediction is paired with, and rounding.

If curves and outcomes are paired at random, the expected Brier score is that of the mean curve plus
:math:`\bar w \operatorname{Var}(\hat S)`. Training that listens to few patients amplifies rounding.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from drocox import accuracy
from drocox.bookstyle import guard

CALM = 1e-9  # a disturbance that stays below has not grown
FAR = 1e6  # one that has grown by this factor is far


def random_pairing(
    survival: np.ndarray,
    train_time: np.ndarray,
    train_event: np.ndarray,
    time: np.ndarray,
    event: np.ndarray,
    times: np.ndarray,
) -> float:
    r"""Integrated Brier score to expect if curves and outcomes are paired at random.

    At each time t it is
    :math:`\frac1n \sum_i w_i (y_i - \bar S)^2 + \bar w \operatorname{Var}(\hat S)`.

    Parameters
    ----------
    survival : array of shape (n, m)
        Predicted curves.
    train_time, train_event : arrays
        The training part, for the weights.
    time, event : arrays of shape (n,)
    times : array of shape (m,)

    Returns
    -------
    float
    """
    brier = accuracy.BrierScore(train_time, train_event, time, event, times)
    mean_curve = np.broadcast_to(survival.mean(axis=0), survival.shape)
    mean_weight = (brier.died + brier.alive).mean(axis=0)
    fee = mean_weight * survival.var(axis=0)
    return brier(mean_curve) + float(np.trapezoid(fee, times) / np.ptp(times))


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


def step_of_departure(record: np.ndarray) -> float:
    """The step at which the first of some disturbed copies is far away, infinite if none ever is.

    Parameters
    ----------
    record : array of shape (steps, copies)
        Difference of each copy from the undisturbed model.

    Returns
    -------
    float
    """
    far = record > FAR * record[0]
    if record.max() < CALM:
        guard(not far.any(), "the disturbance of a calm run does not grow")
        return np.inf
    guard(
        far[-100:].any(axis=0).all(),
        "differences grow in all three copies to more than a million times what they were",
    )
    return float(far.any(axis=1).argmax())


def fates(runs: Mapping) -> dict:
    """Which kinds of training are calm, and which let disturbed copies drift apart.

    Parameters
    ----------
    runs : mapping of str to array of shape (steps, copies)
        DRO-COX with a small alpha (network, linear), with a large one, and the Cox loss.

    Returns
    -------
    dict of str to str
    """
    steps = [step_of_departure(record) for record in runs.values()]
    network, linear, large_alpha, cox = steps
    guard(network < linear < np.inf, "with the small alpha the network drifts first")
    guard(large_alpha == cox == np.inf, "with the Cox loss, or a large alpha, runs are calm")
    return {
        name: "calm" if step == np.inf else "drifts apart"
        for name, step in zip(runs, steps, strict=True)
    }


def draw_drift(runs: Mapping) -> Figure:
    """How far the farthest of some disturbed copies is from the undisturbed model, by step.

    Parameters
    ----------
    runs : mapping of str to array of shape (steps, copies)

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots()
    styles = ("-", "--", ":", "-.")
    for (name, record), style in zip(runs.items(), styles, strict=True):
        steps = np.arange(1, len(record) + 1)
        axes.semilogy(steps, record.max(axis=1), style, label=name)
    axes.set(xlabel="step", ylabel="largest difference of scores", ylim=(1e-15, 1e5))
    axes.legend(loc="upper left", fontsize=9, ncols=2)
    return figure
