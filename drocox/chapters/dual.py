r"""What the chapter on the dual draws and tells: the objective of six patients and their weights.

With :math:`C = 1/\sqrt\alpha` the dual objective of n losses and the weights at any eta are

.. math:: g(\eta) = C \sqrt{\frac1n \sum_i [\ell_i - \eta]_+^2} + \eta, \qquad
   w_i = \frac{C\,[\ell_i - \eta]_+}{\sqrt{n \sum_j [\ell_j - \eta]_+^2}} .
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

import drocox
from drocox.bookstyle import guard, say
from drocox.sliders import SliderFigure, slider

# What the sliders step through, and where they start.
ALPHAS = np.arange(1, 9) / 10
ETAS = np.round(np.arange(-0.8, 1.36, 0.05), 2) + 0.0
START = {"α": 2, "η": 16}


def _constant(alpha: float) -> float:
    return drocox.dual_constant(alpha, rule="sharp")


def objective(eta: np.ndarray, losses: np.ndarray, alpha: float) -> np.ndarray:
    """The dual objective at several eta, with the sharp constant.

    Parameters
    ----------
    eta : array of shape (m,)
    losses : array of shape (n,)
    alpha : float

    Returns
    -------
    array of shape (m,)
    """
    excess = np.maximum(losses - eta[:, None], 0)
    return _constant(alpha) * np.sqrt((excess**2).mean(axis=1)) + eta


def weights(eta: np.ndarray, losses: np.ndarray, alpha: float) -> np.ndarray:
    """Derivatives of the objective by the losses, which sum to 1 at the optimal eta only.

    Parameters
    ----------
    eta : array of shape (m,)
        Below the largest loss.
    losses : array of shape (n,)
    alpha : float

    Returns
    -------
    array of shape (m, n)
    """
    excess = np.maximum(losses - eta[:, None], 0)
    norm = np.sqrt((excess**2).mean(axis=1))
    return _constant(alpha) * excess / (len(losses) * norm[:, None])


def _largest_first(losses: np.ndarray) -> np.ndarray:
    return np.argsort(-losses, kind="stable")


def draw_six(losses: np.ndarray, names: pd.Index, solutions: Mapping) -> Figure:
    """The dual objective for three alpha with its minima (left), and the weights there (right).

    Parameters
    ----------
    losses : array of shape (n,)
    names : Index
        What the patients are called.
    solutions : mapping of alpha to (eta, risk, weights)
        The minima.

    Returns
    -------
    Figure
    """
    order = _largest_first(losses)
    line = np.linspace(-0.9, 1.38, 200)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.5), layout="constrained")
    for number, (alpha, dashes) in enumerate({0.3: "-", 0.5: "--", 0.8: "-."}.items()):
        eta, risk, q = solutions[alpha]
        style = {"color": f"C{number}", "label": f"α = {alpha}"}
        left.plot(line, objective(line, losses, alpha), ls=dashes, **style)
        left.plot(eta, risk, "o", color=f"C{number}")
        places = np.arange(len(losses)) + 0.27 * (number - 1)
        right.bar(places, 100 * q[order], width=0.25, **style)
    for loss in np.unique(losses):
        left.axvline(loss, color="0.5", ls=":", lw=1)
    left.set(xlabel="η", ylabel="objective g(η)", ylim=(0.6, 2.0))
    right.set_xticks(range(len(losses)), names[order])
    right.set(xlabel="patient, largest loss first", ylabel="weight (%)")
    right.legend()
    return figure


def tell_six(losses: np.ndarray, solutions: Mapping) -> None:
    """What there is to see for several alpha.

    Parameters
    ----------
    losses : array of shape (6,)
        Of A to F.
    solutions : mapping of alpha to (eta, risk, weights)
        For each of ``ALPHAS``.
    """
    for alpha in ALPHAS:
        package = drocox.dro_risk(torch.tensor(losses), alpha, rule="sharp").item()
        guard(np.isclose(solutions[alpha][1], package), "the exact risk is the package's")
    guard(
        np.allclose(solutions[0.3][2], [1 / 3, 0, 2 / 3, 0, 0, 0]),
        "alpha = 0.3: C and A share the weight, two to one",
    )
    eta_half, _, q_half = solutions[0.5]
    guard(eta_half < 0, "alpha = 0.5: eta* is negative")
    guard((q_half > 0).all(), "alpha = 0.5: even a patient with loss 0 carries weight")
    guard(
        _constant(0.1) ** 2 > len(losses) and solutions[0.1][2].max() == 1,
        "alpha = 0.1: C² exceeds the number of patients, and C takes everything",
    )
    _, risk, q = solutions[0.8]
    guard(q.min() > 0, "alpha = 0.8: everyone has weight")
    guard(risk > 1.5 * losses.mean(), "the risk is more than one and a half times the mean")
    say("dual-zero", f"{100 * q_half.min():.1f}")
    say("dual-least", f"{len(losses) * q.min():.2f}")
    say("dual-most", f"{len(losses) * q.max():.2f}")
    say("dual-risk", f"{risk:.2f}")
    say("dual-mean", f"{losses.mean():.2f}")


def objective_slider(losses: np.ndarray, solutions: Mapping) -> SliderFigure:
    """The dual objective for an alpha, with an eta to move.

    Parameters
    ----------
    losses : array of shape (n,)
    solutions : mapping of alpha to (eta, risk, weights)
        For each of ``ALPHAS``.

    Returns
    -------
    SliderFigure
    """
    shape = (len(ALPHAS), len(ETAS))
    x = np.linspace(-0.8, 1.38, 45)
    curves = np.array([objective(x, losses, alpha) for alpha in ALPHAS])
    at_eta = np.array([objective(ETAS, losses, alpha) for alpha in ALPHAS])
    sums = np.array([weights(ETAS, losses, alpha).sum(axis=1) for alpha in ALPHAS])
    best_eta = np.array([[solutions[alpha][0]] for alpha in ALPHAS])
    smallest = np.array([[solutions[alpha][1]] for alpha in ALPHAS])
    guard((at_eta >= smallest - 1e-9).all(), "no eta gives less than the smallest objective")
    guard((best_eta > ETAS[0]).all(), "the bottom can be found for each alpha")
    guard((curves.min(axis=1) < 1.4).all(), "the bottom is in the picture")
    return slider(
        "dual-objective",
        {"α": ALPHAS, "η": ETAS},
        x,
        {"objective g(η)": np.broadcast_to(curves[:, None], (*shape, len(x)))},
        marks={"your η": np.broadcast_to(ETAS, shape)},
        readouts={
            "objective": at_eta,
            "smallest": np.broadcast_to(smallest, shape),
            "η*": np.broadcast_to(best_eta, shape),
            "sum of weights": sums,
        },
        start=START,
        formats={
            "α": "{:.1f}",
            "η": "{:.2f}",
            "objective": "{:.3f}",
            "smallest": "{:.3f}",
            "sum of weights": "{:.3f}",
            "η*": "{:.3f}",
        },
        ylim=(0.6, 2.0),
        xlabel="η",
        ylabel="objective",
        alt="The convex dual objective of the six patients as a function of eta "
        "for the chosen alpha, with your eta marked; sliders change alpha "
        "and eta, and with them the weights in the other chart.",
    )


def weights_slider(losses: np.ndarray, names: pd.Index) -> SliderFigure:
    """The weights for the alpha and eta that :func:`objective_slider` is set to.

    Parameters
    ----------
    losses : array of shape (n,)
    names : Index
        What the patients are called.

    Returns
    -------
    SliderFigure
    """
    order = _largest_first(losses)
    percent = 100 * np.array([weights(ETAS, losses[order], alpha) for alpha in ALPHAS])
    return slider(
        "dual-weights",
        {"α": ALPHAS, "η": ETAS},
        np.arange(len(losses)),
        {"weight (%)": percent},
        start=START,
        bars=("weight (%)",),
        ylim=(0, 105),
        ticks=dict(enumerate(names[order])),
        follows="dual-objective",
        xlabel="patient, largest loss first",
        ylabel="weight (%)",
        alt="Bars of the weight that each of the six patients gets for the chosen alpha and eta.",
    )
