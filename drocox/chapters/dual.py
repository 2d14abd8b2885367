r"""What the chapter on the dual draws and tells: the objective of six patients and their weights.

With :math:`C = 1/\sqrt\alpha` the dual objective of n losses is

.. math:: g(\eta) = C \sqrt{\frac1n \sum_i [\ell_i - \eta]_+^2} + \eta .
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

import drocox
from drocox.bookstyle import guard, say

ALPHAS = np.arange(1, 9) / 10


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


def solve(losses: np.ndarray) -> dict:
    """The minimum of the dual for each of ``ALPHAS``, with the sharp constant.

    Parameters
    ----------
    losses : array of shape (n,)

    Returns
    -------
    dict of alpha to (eta, risk, weights)
    """
    values = torch.tensor(losses)
    solutions = {}
    for alpha in ALPHAS:
        eta = drocox.optimal_eta(values, _constant(alpha)).item()
        risk = drocox.dro_risk(values, alpha, rule="sharp").item()
        q = drocox.worst_case_weights(values, alpha, rule="sharp").numpy()
        solutions[alpha] = (eta, risk, q)
    return solutions


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
        _, risk, q = solutions[alpha]
        guard(np.isclose(q @ losses, risk), "the weights attain the risk")
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
