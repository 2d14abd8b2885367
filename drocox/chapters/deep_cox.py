"""What the chapter on deep Cox models draws and tells: overfitting, and the constant."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say


def draw_curved(feature: np.ndarray, truth: np.ndarray, fits: Mapping) -> Figure:
    """True scores and two fits against the one feature, each centred.

    Parameters
    ----------
    feature, truth : arrays of shape (n,)
    fits : mapping of str to array of shape (n,)
        Scores of the "linear" model and of the "network".

    Returns
    -------
    Figure
    """
    scores = {"truth": truth, **fits}
    centred = {name: values - values.mean() for name, values in scores.items()}
    missed = {name: np.abs(centred[name] - centred["truth"]).max() for name in fits}
    guard(np.ptp(fits["linear"]) < 0.2 * np.ptp(truth), "the line can do nothing")
    guard(missed["network"] < 0.1 * np.ptp(truth), "the network finds the truth")
    figure, axes = plt.subplots()
    styles = {"truth": "k-", "linear": "C1--", "network": "C0-."}
    for name, style in styles.items():
        axes.plot(feature, np.round(centred[name], 2), style, label=name)
    axes.set(xlabel="weight (0 is usual)", ylabel="score, centred")
    axes.legend(loc="upper center")
    return figure


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


def keep_rates(gains: pd.DataFrame) -> None:
    """Hold the text to what the largest learning rate does to a network.

    Parameters
    ----------
    gains : DataFrame
        Columns ``training``, ``validation`` and ``test``, a row for each model and rate.
    """
    network = gains.loc["DeepSurv, rate 0.01"]
    linear = gains.loc["Cox, rate 0.01"]
    guard(
        network["training"] > 2 * linear["training"],
        "the network knows its training patients far better than the linear model does",
    )
    new = network[["validation", "test"]]
    guard((new < 0).all(), "and new patients worse than nothing")


def tell_factors(constants: pd.DataFrame) -> None:
    """By what factor the hazards of five networks differ, with and without the free constant.

    Parameters
    ----------
    constants : DataFrame
        Columns ``gain, test``, ``mean hazard`` and ``mean hazard, centred``; a row per network.
    """
    hazards = constants[["mean hazard", "mean hazard, centred"]]
    free, centred = hazards.max() / hazards.min()
    guard(free > 2 * centred, "hazards differ because of a number that means nothing")
    guard(np.ptp(constants["gain, test"]) < 0.05, "all five predict about equally well")
    say("deep-factor", f"{free:.1f}")
    say("deep-factor-centred", f"{centred:.1f}")
