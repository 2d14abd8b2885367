r"""Numbers of the decks, sheets, quiz and exam of the course, computed when they are built.

The six patients of :data:`drocox.bookstyle.SIX` have the scores :math:`f_i = \theta x_i`. Here are
their Kaplan-Meier curve, their Cox losses

.. math:: \ell_i = \delta_i \Bigl[ \log \sum_{j : Y_j \ge Y_i} e^{f_j} - f_i \Bigr],

and, for several :math:`\alpha`, the risk :math:`R`, the threshold :math:`\eta` and the weights
:math:`q_i` of the dual.
"""

import functools
from fractions import Fraction

import numpy as np
import torch

from drocox import accuracy, dual_constant, fairness
from drocox.bookstyle import SIX
from drocox.cox import cox_losses
from drocox.dro import dro_risk, optimal_eta, worst_case_weights
from drocox.paper.datasets import dataset_summary

LETTERS = list(SIX.index)
TIME = SIX["time"].to_numpy()
EVENT = SIX["event"].to_numpy(bool)
X = SIX["x"].to_numpy()
BALL_RULES = ["sharp", "definition", "paper"]


def losses_of_six(theta: float) -> np.ndarray:
    r"""Cox losses of the six patients under the scores :math:`\theta x_i`.

    Parameters
    ----------
    theta : float

    Returns
    -------
    array of shape (6,)
    """
    return cox_losses(torch.tensor(theta * X), TIME, EVENT).numpy()


def survival_of_six(event: np.ndarray) -> list[tuple[float, int, Fraction]]:
    r"""Steps of the Kaplan-Meier curve :math:`\prod_k (1 - d_k / n_k)`, as fractions.

    Parameters
    ----------
    event : array of bool, shape (6,)
        Who died.

    Returns
    -------
    list of (month, number at risk, value of the curve after the step)
    """
    steps = []
    curve = Fraction(1)
    for month in np.unique(TIME[event]):
        at_risk = int((TIME >= month).sum())
        deaths = int((event & (TIME == month)).sum())
        curve *= 1 - Fraction(deaths, at_risk)
        steps.append((float(month), at_risk, curve))
    return steps


@functools.cache
def values() -> dict[str, str]:
    """All numbers by name, as they stand in a sentence.

    Returns
    -------
    dict of str to str
    """
    return (
        _patients()
        | _curves()
        | _losses()
        | _constants()
        | _robust()
        | _gradient()
        | _judged()
        | _data_sets()
    )


def _number(value: float, digits: int = 3) -> str:
    """A number with a true minus sign, and none before a rounded 0."""
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:.{digits}f}".replace("-", "−")


def _patients() -> dict[str, str]:
    named = {}
    for letter, row in SIX.iterrows():
        named[f"time-{letter}"] = f"{row['time']:.0f}"
        named[f"x-{letter}"] = _number(row["x"], 0)
        named[f"event-{letter}"] = "died" if row["event"] else "left"
        named[f"delta-{letter}"] = str(int(row["event"]))
        named[f"group-{letter}"] = row["group"]
        named[f"risk-set-{letter}"] = "".join(SIX.index[TIME >= row["time"]])
        named[f"at-risk-{letter}"] = str(int((TIME >= row["time"]).sum()))
    return named


def _curves() -> dict[str, str]:
    dies = EVENT.copy()
    dies[LETTERS.index("E")] = True
    named = {}
    for lead, event in (("km", EVENT), ("km-e-dies", dies)):
        for month, at_risk, curve in survival_of_six(event):
            named[f"{lead}-{month:.0f}"] = _number(curve)
            named[f"{lead}-{month:.0f}-fraction"] = f"{curve.numerator}/{curve.denominator}"
            named[f"{lead}-{month:.0f}-at-risk"] = str(at_risk)
    return named


def _losses() -> dict[str, str]:
    named = {}
    for lead, theta in (("loss", np.log(2)), ("loss-blind", 0.0), ("loss-wrong", -np.log(2))):
        losses = losses_of_six(theta)
        for letter, loss in zip(LETTERS, losses, strict=True):
            named[f"{lead}-{letter}"] = _number(loss)
        named[f"{lead}-sum"] = _number(losses.sum())
        named[f"{lead}-mean"] = _number(losses.mean())
    hazards = 2.0**X
    for letter, hazard in zip(LETTERS, hazards, strict=True):
        named[f"hazard-{letter}"] = f"{hazard:g}"
        named[f"hazards-at-{letter}"] = f"{hazards[TIME >= SIX['time'][letter]].sum():g}"
    losses = losses_of_six(np.log(2))
    for group in ("a", "b"):
        named[f"mean-{group}"] = _number(losses[(SIX["group"] == group).to_numpy()].mean())
    named["worst-two"] = _number(np.sort(losses)[-2:].mean())
    return named


def _constants() -> dict[str, str]:
    named = {}
    for alpha in (0.1, 0.2, 0.3, 0.4, 0.5):
        for rule in BALL_RULES:
            square = dual_constant(alpha, rule=rule) ** 2
            named[f"c2-{rule}-{alpha}"] = f"{square:.4g}"
            named[f"radius-{rule}-{alpha}"] = f"{square - 1:.4g}"
            named[f"protects-{rule}-{alpha}"] = f"{100 / square:.3g}"
    return named


def _robust() -> dict[str, str]:
    """The dual on the six losses, with the sharp constant."""
    losses = torch.tensor(losses_of_six(np.log(2)))
    named = {}
    for alpha in (0.3, 0.4, 0.5):
        named[f"eta-{alpha}"] = _number(optimal_eta(losses, dual_constant(alpha, rule="sharp")))
        named[f"risk-{alpha}"] = _number(dro_risk(losses, alpha, rule="sharp"))
        named[f"cvar-{alpha}"] = _number(dro_risk(losses, alpha, rule="cvar"))
        weights = worst_case_weights(losses, alpha, rule="sharp").numpy()
        for letter, weight in zip(LETTERS, weights, strict=True):
            named[f"q-{letter}-{alpha}"] = _number(weight)
        named[f"effective-{alpha}"] = _number(1 / (weights**2).sum(), 1)
    return named


def _gradient() -> dict[str, str]:
    r"""Events expected and observed of each patient, for :math:`\theta = \log 2`."""
    hazards = 2.0**X
    expected = np.zeros(len(X))
    for month in TIME[EVENT]:
        at_risk = TIME >= month
        expected += at_risk * hazards / hazards[at_risk].sum()
    named = {}
    for letter, sum_of_shares, died in zip(LETTERS, expected, EVENT, strict=True):
        named[f"expected-{letter}"] = _number(sum_of_shares)
        named[f"gradient-{letter}"] = _number(sum_of_shares - died)
    named["gradient-theta"] = _number(((expected - EVENT) * X).sum())
    return named


def _judged() -> dict[str, str]:
    """C-index and concordance imparity of the six, for scores x."""
    codes = (SIX["group"] == "b").to_numpy().astype(int)
    return {
        "c-index": _number(accuracy.concordance_index(X, TIME, EVENT)),
        "ci": _number(fairness.concordance_imparity(X, TIME, EVENT, codes), 1),
    }


def _data_sets() -> dict[str, str]:
    named = {}
    for name, row in dataset_summary().iterrows():
        named[f"{name}-patients"] = f"{row['rows']:,}"
        named[f"{name}-features"] = f"{row['features']}"
        named[f"{name}-censored"] = f"{100 * row['censoring_rate']:.0f}"
    return named
