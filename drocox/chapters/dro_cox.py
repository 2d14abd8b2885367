r"""What the chapter on DRO-COX draws and tells: two groups in one room, and training step by step.

With hazards :math:`h_k` and a share :math:`\pi` of slow patients, the loss of a patient of group k
who dies at y tends to
:math:`\log n + \log\bigl((1-\pi) h_0 e^{-h_0 y} + \pi h_1 e^{-h_1 y}\bigr) - \log h_k`.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.sliders import SliderFigure, slider

SHARES = np.round(np.arange(0.05, 0.96, 0.05), 2)  # of the slow group, on the slider


def draw_mixture(
    shares: np.ndarray, means: np.ndarray, fine: np.ndarray, limits: np.ndarray
) -> Figure:
    """Mean loss of each group by the share of the slow one: Cox (left) and likelihood (right).

    Parameters
    ----------
    shares : array of shape (m,)
        Of the slow group, where losses were simulated.
    means : array of shape (2, 2, m)
        Mean simulated loss by kind of loss (Cox, likelihood) and group (fast, slow).
    fine : array of shape (k,)
        Shares at which the limit is drawn.
    limits : array of shape (2, k)
        The limit of the Cox loss by group.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.4), layout="constrained")
    for k, (group, marker) in enumerate({"fast": "o", "slow": "s"}.items()):
        style = {"color": f"C{k}", "label": f"{group} group"}
        axes[0].plot(fine, limits[k], **style)
        axes[0].plot(shares, means[0, k], marker, **style)
        axes[1].plot(shares, means[1, k], marker + "-", **style)
    axes[0].set(title="Cox loss", ylabel="mean loss of the group")
    axes[1].set(title="likelihood", ylim=(-0.5, 2.5))
    axes[1].legend()
    figure.supxlabel("share of the slow group", fontsize=11)
    return figure


def losses_without_log_n(hazards: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The limit of the Cox loss minus log n, by group, share of the slow group, and time of death.

    Parameters
    ----------
    hazards : array of shape (2,)
        Of the fast and of the slow group.
    time : array of shape (m,)

    Returns
    -------
    array of shape (2, shares, m)
    """
    fast = hazards[0] * np.exp(-hazards[0] * time)
    slow = hazards[1] * np.exp(-hazards[1] * time)
    mixture = np.outer(1 - SHARES, fast) + np.outer(SHARES, slow)
    return np.array([np.log(mixture) - np.log(hazard) for hazard in hazards])


def mixture_slider(hazards: np.ndarray, mean_losses: np.ndarray) -> SliderFigure:
    """Loss of one patient of each group against the time of death, by the share of the slow group.

    Parameters
    ----------
    hazards : array of shape (2,)
        Of the fast and of the slow group.
    mean_losses : array of shape (2, shares)
        Mean loss of each group, minus log n, at each of ``SHARES``.

    Returns
    -------
    SliderFigure
    """
    fast, slow = mean_losses
    guard(fast[0] > slow[0], "the worst group is the fast one when it is common")
    guard(fast[-1] < slow[-1], "and the slow one when that is common")
    time = np.linspace(0, 5, 81)
    fast_patient, slow_patient = losses_without_log_n(hazards, time)
    return slider(
        "mixture",
        {"share of the slow": SHARES},
        time,
        {"fast patient": fast_patient, "slow patient": slow_patient},
        readouts={"mean loss of the fast": fast, "of the slow": slow},
        formats={
            "share of the slow": "{:.2f}",
            "mean loss of the fast": "{:.2f}",
            "of the slow": "{:.2f}",
        },
        xlabel="time of death",
        ylabel="loss − log n",
        ylim=(-8, 2),
        alt="Loss of a fast and of a slow patient against the time of death; "
        "the slider changes the share of the slow group, and both curves "
        "fall steeply at late times when few are slow.",
    )


def draw_training(
    alphas: Sequence, risks: np.ndarray, steps: np.ndarray, spread: np.ndarray, metrics: np.ndarray
) -> Figure:
    """Risk, spread of the scores, c-index and imparity along the training of several models.

    Parameters
    ----------
    alphas : sequence of three floats
        A model for each.
    risks : array of shape (all steps, models)
    steps : int array of shape (m,)
        At which the others were measured.
    spread : array of shape (m, models)
        Standard deviation of the scores.
    metrics : array of shape (m, models, 2)
        c-index and concordance imparity.

    Returns
    -------
    Figure
    """
    excess = np.maximum(risks - risks[-1], 1e-6)
    figure, axes = plt.subplots(2, 2, figsize=(6.4, 5.2), sharex=True, layout="constrained")
    styles = zip(alphas, ("-", "--", ":"), strict=True)
    for m, (alpha, style) in enumerate(styles):
        colour = f"C{m}"
        axes[0, 0].semilogy(excess[:, m], style, color=colour, label=f"α = {alpha:g}")
        axes[0, 1].plot(steps, spread[:, m], style, color=colour)
        axes[1, 0].plot(steps, metrics[:, m, 0], style, color=colour)
        axes[1, 1].plot(steps, metrics[:, m, 1], style, color=colour)
    axes[0, 0].set(ylabel="excess risk", ylim=(1e-6, None))
    axes[0, 1].set(ylabel="SD of scores", ylim=(0, None))
    axes[1, 0].set(ylabel="c-index", xlabel="step")
    axes[1, 1].set(ylabel="CI (%)", xlabel="step", ylim=(0, None))
    axes[0, 0].legend()
    return figure


def tell_training(n: int, risks: np.ndarray, spread: np.ndarray, metrics: np.ndarray) -> None:
    """How flat the scores end, and what is left of the c-index.

    Parameters
    ----------
    n : int
        Patients in training.
    risks, spread, metrics : arrays
        As for :func:`draw_training`; the models are Cox, alpha = 0.2 and alpha = 0.1.
    """
    cox, fifth, tenth = spread[-1]
    risk = risks[-1][2]
    guard(tenth < fifth < 0.1 < 1 < cox, "the scores of DRO-COX are flat, those of Cox are not")
    guard(abs(risk - np.log(n)) < 0.05, "the risk is close to log n")
    loss_of_order = metrics[-1, 0, 0] - metrics[-1, 2, 0]
    guard(0 < loss_of_order < 0.03, "the c-index falls little")
    say("sd-cox", f"{cox:.2f}")
    say("sd-02", f"{fifth:.2f}")
    say("sd-01", f"{tenth:.3f}")
    say("log-n", f"{np.log(n):.2f}")
    say("risk-01", f"{risk:.2f}")
