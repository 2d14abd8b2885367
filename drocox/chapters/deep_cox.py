"""What the chapter on deep Cox models draws and tells: overfitting, the constant, chaotic runs."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say

CALM = 1e-9  # a disturbance that stays below has not grown
FAR = 1e6  # one that has grown by this factor is far


def draw_gains(steps: np.ndarray, train: list, val: list, linear: float) -> Figure:
    """How far the loss per event lies below that of constant scores, along the training.

    Parameters
    ----------
    steps : int array of shape (m,)
        Steps after which the network was judged, from 0.
    train, val : sequences of m floats
        Gain of the network in the training and in the validation part.
    linear : float
        Gain of the linear model in the validation part.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots()
    axes.plot(steps + 1, np.round(train, 3), label="training part")
    axes.plot(steps + 1, np.round(val, 3), "--", label="validation part")
    label = "linear, validation part"
    axes.axhline(round(linear, 3), linestyle=":", color="C2", label=label)
    axes.set(xlabel="step", ylabel="gain in loss per event", ylim=(0, 1))
    axes.legend()
    return figure


def tell_gains(steps: np.ndarray, train: list, val: list, linear: float) -> None:
    """The step at which the network is best, and how it compares with the linear model.

    Parameters
    ----------
    steps : int array of shape (m,)
    train, val : sequences of m floats
    linear : float
        As for :func:`draw_gains`.
    """
    best = max(val)
    guard(
        linear < best < linear + 0.1,
        "on the validation part the network is a little better than the linear model",
    )
    guard(
        val[-1] < linear and train[-1] > 2 * best, "then it learns the training patients by heart"
    )
    say("deep-best-step", int(steps[np.argmax(val)] + 1))


def tell_factors(metrics: pd.DataFrame) -> None:
    """By what factor five networks differ in F_I, with and without the free constant.

    Parameters
    ----------
    metrics : DataFrame
        Columns ``f_i`` and ``f_i_centred``, a row for each network.
    """
    factors = metrics.max() / metrics.min()
    guard(
        factors["f_i"] > 2 * factors["f_i_centred"],
        "they differ mostly because of a number that means nothing",
    )
    say("deep-factor", f"{factors['f_i']:.1f}")
    say("deep-factor-centred", f"{factors['f_i_centred']:.1f}")


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
