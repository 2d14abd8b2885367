"""Exercises on the worst case, its dual and who gets the weight."""

from __future__ import annotations

import numpy as np
import torch

from drocox import dro
from drocox.bookstyle import SIX
from drocox.cox import cox_losses
from drocox.exercises._core import exercise, judged, judged_function

# The six patients' losses under hazards 2**x, and some others for functions.
_scores = torch.tensor(np.log(2) * SIX.x.to_numpy())
LOSSES = cox_losses(_scores, SIX.time.to_numpy(), SIX.event.to_numpy()).numpy()
OTHERS = np.array([0.1, 2.0, 0.7, 1.5, 0.0, 0.0, 3.1, 0.2])
DESCENDING = np.sort(LOSSES)[::-1]


@exercise(
    "worst-case-cvar",
    "CVaR is the mean of the worst share of patients. Who is the worst, who comes second?",
    "The second worst counts by half. By how many patients does one divide?",
)
def _(answer):
    first, second = DESCENDING[:2]
    return judged(
        answer,
        (first + second / 2) / 1.5,
        {
            "this is the worst patient alone: one and a half patients count": first,
            "both count whole here, which is a third of the six": (first + second) / 2,
            "the sum is right; divide by the patients that were counted": (first + second / 2) / 2,
            "divide by the patients in the tail, not by all": (first + second / 2) / 6,
            "a tail of the smallest losses: CVaR takes the largest": 0.0,
        },
        atol=5e-3,
    )


@exercise(
    "worst-case-divergence",
    "The density dQ/dP of a patient is the weight in Q over the weight in P.",
    "D is the mean over all six of (density - 1) squared; three of them have density 0.",
)
def _(answer):
    q = np.array([1 / 2, 0, 1 / 4, 1 / 4, 0, 0])
    right = np.mean((6 * q - 1) ** 2)
    return judged(
        answer,
        right,
        {
            "this is the mean of the squared density; its distance from 1 is asked": right + 1,
            "D is about densities, which are 6 times these weights": np.sum((q - 1 / 6) ** 2),
            "the patients without weight are 1 away from P as well": np.sum((6 * q[q > 0] - 1) ** 2)
            / 6,
            "an average under P is a sum over six, divided by six": 6 * right,
            "this is half of the divergence; the definition has no factor ½": right / 2,
        },
        atol=5e-3,
    )


@exercise(
    "worst-case-share",
    "Write down the paper's radius for alpha, then ask whose sharp radius that is.",
    "Solve 1/share - 1 = radius for the share; the next chapter calls 1 + radius C squared.",
)
def _(answer):
    def rule(name, power=2):
        return lambda a: dro.dual_constant(a, rule=name) ** -power

    return judged_function(
        answer,
        [(0.1,), (0.3,), (0.5,)],
        rule("paper"),
        {
            "this is what the radius of Proposition 2 protects: the paper's is larger": rule(
                "definition"
            ),
            "alpha itself is what the sharp radius protects; the paper's is larger": lambda a: a,
            "1/C: the share goes with the square of the constant": rule("paper", 1),
            "this is one over the radius: solve for the share again": lambda a: (
                (1 / a - 1) ** -2 / 2
            ),
        },
    )


def _eta(losses, c, stop=None):
    """The active-set iteration, or its state after ``stop`` passes."""
    active = losses
    for _ in range(stop or len(losses)):
        at = active.mean() - np.sqrt(active.var() / (c**2 * len(active) / len(losses) - 1))
        active = active[active > at]
    return at


@exercise(
    "dual-by-hand",
    "Start with all six: mean, variance, s = C²k/n - 1, η. Drop whoever is not above η, repeat.",
    "There are three passes, with six, three and two patients.",
)
def _(answer):
    c = dro.dual_constant(0.3, rule="sharp")
    two = DESCENDING[:2]
    return judged(
        answer,
        dro.optimal_eta(torch.tensor(LOSSES), c).item(),
        {
            "η after one pass: some patients are below it, drop them and go on": _eta(LOSSES, c, 1),
            "η after two passes: compare it with the smallest loss left": _eta(LOSSES, c, 2),
            "this is the risk, mean plus a multiple of the SD; η is below the mean": (
                dro.dro_risk(torch.tensor(LOSSES), 0.3, rule="sharp").item()
            ),
            "the variance has divisor k here, not k - 1": two.mean()
            - two.std(ddof=1) * np.sqrt(1 / (c**2 / 3 - 1)),
            "s has the share k/n in it: s = C²k/n - 1": two.mean() - two.std() / np.sqrt(c**2 - 1),
            "this is the mean of the active losses: η is below it": two.mean(),
        },
        atol=5e-3,
    )


def _share(weights):
    return weights / weights.sum()


@exercise(
    "dual-weights",
    "Condition 2 of the chapter says what the weights are proportional to.",
    "np.maximum(losses - eta, 0), then divide so that they sum to one.",
)
def _(answer):
    return judged_function(
        answer,
        [(LOSSES, 0.4), (OTHERS, 0.9), (OTHERS, -0.5)],
        lambda losses, eta: _share(np.maximum(losses - eta, 0)),
        {
            "they do not sum to one: divide by their sum": lambda losses, eta: np.maximum(
                losses - eta, 0
            ),
            "patients below η get negative weight: cut at 0 first": lambda losses, eta: _share(
                losses - eta
            ),
            "all above η weigh the same here; those farther above weigh more": lambda losses, eta: (
                _share(1.0 * (losses > eta))
            ),
            "proportional to the loss, not to how far it is above η": lambda losses, eta: _share(
                losses * (losses > eta)
            ),
        },
    )


@exercise(
    "dual-eta",
    "Sort in falling order. For every k, mean and variance of the k largest come from two cumsums.",
    "Only k with C²k/n > 1 count. The right k has η below the k-th loss and not below the next.",
    "Exactly one k fits; np.append(ordered[1:], -np.inf) holds the next losses.",
)
def _(answer):
    return judged_function(
        answer,
        [(LOSSES, 1.6), (LOSSES, 1.2), (OTHERS, 2.0), (OTHERS, 1.3)],
        lambda losses, c: dro.optimal_eta(torch.tensor(losses), c).item(),
        {
            "this is η with everybody active: look for the k that fits": lambda losses, c: _eta(
                losses, c, 1
            ),
            "this is the risk, not the threshold": lambda losses, c: (
                losses @ _share(np.maximum(losses - _eta(losses, c), 0))
            ),
            "the square of C belongs in C²k/n - 1": lambda losses, c: _eta(losses, np.sqrt(c)),
            "the largest loss is η only if C² is n or more": lambda losses, c: losses.max(),
        },
    )


@exercise(
    "who-censored-weight",
    "Is C² below the edge (1 + κ²)/p? Then η is negative and everyone has weight.",
    "With all ten active: m = 0.8, v = 0.96 and s = C² - 1.",
    "A censored patient has weight proportional to 0 - η, one who died to 2 - η.",
)
def _(answer):
    losses = torch.tensor([2.0] * 4 + [0.0] * 6, dtype=torch.float64)
    right = dro.worst_case_weights(losses, 0.5, rule="sharp")[4:].sum().item()
    return judged(
        answer,
        right,
        {
            "loss 0 does not mean weight 0: find the sign of η": 0.0,
            "this is the weight of one of them; all six are asked": right / 6,
            "equal weights are α = 1; here the adversary moves some weight away": 0.6,
            "this is what the four deaths have": 1 - right,
        },
        atol=5e-3,
    )


@exercise(
    "who-effective-size",
    "Equal weights on n patients must give n, all weight on one patient 1.",
    "Sum the squared weights first.",
)
def _(answer):
    return judged_function(
        answer,
        [(_share(OTHERS),), (_share(LOSSES),), (np.full(5, 0.2),)],
        lambda q: 1 / np.sum(q**2),
        {
            "this counts who has any weight, however little": lambda q: np.sum(q > 0),
            "this is its inverse: the more even the weights, the smaller": lambda q: np.sum(q**2),
            "the largest weight alone does not tell how the others share the rest": lambda q: (
                1 / q.max()
            ),
            "this is n over the effective size, the C² of these weights": lambda q: (
                len(q) * np.sum(q**2)
            ),
        },
    )


@exercise(
    "who-needed-alpha",
    "The effective size is n/C². Set it equal to m and solve for C², then for alpha.",
    "n/m - 1 = 2 (1/alpha - 1)²",
)
def _(answer):
    return judged_function(
        answer,
        [(5000, 500), (5000, 31), (100, 100)],
        lambda n, m: 1 / (1 + np.sqrt((n / m - 1) / 2)),
        {
            "right for the sharp constant, C² = 1/alpha; the paper's is asked": lambda n, m: m / n,
            "the paper's constant has a factor 2 before the square": lambda n, m: (
                1 / (1 + np.sqrt(n / m - 1))
            ),
            "the square root is missing": lambda n, m: 1 / (1 + (n / m - 1) / 2),
            "this is C², not alpha": lambda n, m: n / m,
        },
    )
