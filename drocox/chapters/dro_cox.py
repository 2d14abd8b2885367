r"""What the chapter on DRO-COX draws and tells: who is in whose loss, two groups, training."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say


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


def keep_crossing(limits: np.ndarray) -> None:
    """Hold the text on two groups in one room to the limit of their losses.

    Parameters
    ----------
    limits : array of shape (2, k)
        The limit of the mean Cox loss of the fast and of the slow group, by the share of the slow
        group, the smallest first.
    """
    fast, slow = limits
    guard(fast[0] > slow[0], "the worst group is the fast one when it is common")
    guard(fast[-1] < slow[-1], "and the slow one when that is common")
    guard((np.diff(slow) > 0).all(), "the more slow patients, the larger are their losses")
    guard((np.diff(fast) < 0).all(), "and the smaller are those of the fast")


def draw_who_enters(names: Sequence, by_cox: np.ndarray, by_one: np.ndarray) -> Figure:
    """Whose score enters whose loss: the Cox loss (left), and a loss of one patient (right).

    Parameters
    ----------
    names : sequence of n strings
        Of the patients.
    by_cox, by_one : arrays of shape (n, n)
        Not 0 where the score of patient j (column) enters the loss of patient i (row).

    Returns
    -------
    Figure
    """
    n = len(names)
    guard((by_one != 0).sum() == n and np.diag(by_one).all(), "only the diagonal is filled")
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.5), layout="constrained", sharey=True)
    matrices = {"Cox loss": by_cox, "a loss of one patient": by_one}
    for panel, (title, matrix) in zip(axes, matrices.items(), strict=True):
        i, j = np.nonzero(matrix)
        panel.scatter(j, i, marker="s", s=400, color="C0", linewidths=0)
        panel.set(title=title, aspect="equal", xlim=(-0.7, n - 0.3), ylim=(n - 0.3, -0.7))
        panel.set_xticks(range(n), names)
        panel.set_yticks(range(n), names)
        panel.set_xlabel("score of patient j")
        panel.grid(False)
    axes[0].set_ylabel("loss of patient i")
    return figure


def draw_by_alpha(alphas: Sequence, metrics: np.ndarray) -> Figure:
    """c-index (left) and imparity (right) by alpha; dashed, those of the last, alpha = 1.

    Parameters
    ----------
    alphas : sequence of m floats
        The last is 1.
    metrics : array of shape (m, 2)

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.0), layout="constrained")
    for panel, values, label in zip(axes, metrics.T, ("c-index", "CI (%)"), strict=True):
        panel.plot(alphas[:-1], values[:-1], "o-", color="C0")
        panel.axhline(values[-1], linestyle="--", color="C1")
        panel.set(xlabel="α", ylabel=label)
    axes[1].set_ylim(0, 1.1 * metrics[:, 1].max())
    return figure


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
