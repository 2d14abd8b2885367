"""Exercises on survival data, the Cox loss and deep Cox models; they need no torch."""

import numpy as np

from drocox.exercises._answers import Question, numbers_question
from drocox.exercises._core import asks, asks_function, asks_numbers
from drocox.exercises.patients import SIX

TIME, EVENT = SIX["time"].to_numpy(), SIX["event"].to_numpy()
X, IN_A = SIX["x"].to_numpy(), (SIX["group"] == "a").to_numpy()
SCORES = np.log(2) * X  # hazards are powers of 2


def _curve(deaths, at_risk) -> np.ndarray:
    return np.cumprod(1 - np.divide(deaths, at_risk))


PATIENTS = tuple("ABCDEF")
_ones = np.ones(4)
_at_risk = np.array([6, 5, 3, 1])
asks_numbers(
    "kaplan-meier-steps",
    _curve(_ones, _at_risk),
    {
        "B seems to be gone before C dies; who is at risk in month 5?": _curve(_ones, [6, 4, 3, 1]),
        "did you count the censored among the dead?": _curve([1, 2, 1, 1], _at_risk),
        "did you leave the censored out from the start?": _curve(_ones, [4, 3, 2, 1]),
        "the censored are at risk until they leave, and not after": _curve(_ones, [6, 5, 4, 3]),
        "these are the shares who die; the curve is about those who do not": 1 / _at_risk,
        "these are the factors of the single steps; the curve is their product": (1 - 1 / _at_risk),
        "these are the shares who have died so far; the question asks for those who have not": (
            1 - _curve(_ones, _at_risk)
        ),
    },
    labels=["from month 2", "from month 5", "from month 8", "from month 12"],
)

FEW = np.arange(1.0, 5.0)


@asks_function("kaplan-meier-median", [(TIME, EVENT), (FEW, FEW < 3), (FEW, FEW < 2)])
def median_survival(time, event, *, half=0.5 + 1e-12):
    """The first day on which the Kaplan-Meier curve is at most one half."""
    days = np.unique(time[event])
    deaths = [(event & (time == day)).sum() for day in days]
    curve = _curve(deaths, [(time >= day).sum() for day in days])
    return min(days[curve <= half], default=np.inf)


@median_survival.mistake("a median of all times takes a censoring for a death")
def _median_of_all(time, event):
    return np.median(time)


@median_survival.mistake("only the dead are counted: the others are at risk until they leave")
def _median_of_the_dead(time, event):
    return np.median(time[event])


@median_survival.mistake("what if the curve is one half exactly?")
def _median_below_one_half(time, event):
    return median_survival(time, event, half=0.5 - 1e-12)


@median_survival.mistake("and if the curve never falls to one half?")
def _median_that_always_is(time, event):
    return min(median_survival(time, event), time.max())


def _log_rank() -> Question:
    at_risk = TIME >= TIME[EVENT, None]
    share = (at_risk & IN_A).sum(axis=1) / at_risk.sum(axis=1)
    gaps = IN_A[EVENT] - share
    variance = (share * (1 - share)).sum()
    square = gaps.sum() ** 2
    mistakes = {
        "this is the root of the statistic": np.sqrt(square / variance),
        "this is observed minus expected; now compare it with its spread": gaps.sum(),
        "the difference is squared, but not yet divided by its variance": square,
        "divided by expected numbers; here it is the variance of the difference": (
            square / share.sum() + square / (1 - share).sum()
        ),
        "the share of a changes: look at who is at risk, death by death": 0.0,
        "the square is of the sum, not of each term": (gaps**2).sum() / variance,
    }
    return numbers_question(square / variance, mistakes)


asks("log-rank-six", _log_rank())


def losses_of_six(scores, at_risk=TIME >= TIME[:, None], event=EVENT) -> np.ndarray:
    """Cox losses of the six patients, or what comes of wrong risk sets or events."""
    return event * (np.log((at_risk * np.exp(scores)).sum(axis=1)) - scores)


def other_logs(right: np.ndarray) -> dict[str, np.ndarray]:
    """The mistake of a log that is not natural, in an answer made of logs."""
    return {
        f"your log is to base {base}; the book's is the natural one": right / np.log(base)
        for base in (2, 10)
    }


def _six() -> Question:
    scores = -SCORES
    right = losses_of_six(scores)
    later = (TIME > TIME[:, None]) | (TIME == TIME.max())  # for the last, nobody else is there
    mistakes = {
        "the sign: a loss is minus the log of a probability": -right,
        "that is the other sign of theta": losses_of_six(-scores),
        "this is for theta = -1; asked is minus the logarithm of 2": losses_of_six(-X),
        "patients belong to their own risk sets": losses_of_six(scores, later),
        "the censored have no event to explain": losses_of_six(scores, event=True),
        "the risk sets shrink: patients who have left are not at risk": losses_of_six(
            scores, np.ones((6, 6))
        ),
        "these are probabilities; a loss is minus the log of one": EVENT * np.exp(-right),
        "these are sums of hazards divided by the patient's own; the log is still missing": (
            EVENT * np.exp(right)
        ),
    }
    return numbers_question(right, mistakes | other_logs(right), labels=PATIENTS)


asks("cox-loss-six", _six())


def chances(scores, time) -> np.ndarray:
    """Row i: everybody's probability of being next at the time of patient i."""
    at_risk = (time >= time[:, None]) * np.exp(scores)
    return at_risk / at_risk.sum(axis=1, keepdims=True)


TIED = np.array([3.0, 1, 3, 3, 2, 1])


@asks_function("cox-loss-gradient", [(SCORES, TIME, EVENT), (X, TIED, EVENT)])
def gradient(scores, time, event):
    """Expected minus observed events of each patient."""
    return event @ chances(scores, time) - event


@gradient.mistake("the sign: it is expected minus observed")
def _gradient_turned(scores, time, event):
    return event - event @ chances(scores, time)


@gradient.mistake("what was observed is missing")
def _expected_only(scores, time, event):
    return event @ chances(scores, time)


@gradient.mistake("a censoring is not an event: sum over events only")
def _sum_over_everybody(scores, time, event):
    return chances(scores, time).sum(axis=0) - event


@gradient.mistake("the sum over patients was asked for, not the mean")
def _gradient_of_the_mean_loss(scores, time, event):
    return gradient(scores, time, event) / len(scores)


@gradient.mistake("at a tie, all patients who die then are at risk, not only the patient")
def _gradient_without_ties(scores, time, event):
    at_risk = ((time > time[:, None]) | np.eye(len(time), dtype=bool)) * np.exp(scores)
    return event @ (at_risk / at_risk.sum(axis=1, keepdims=True)) - event


@gradient.mistake("patients who have died or left are no longer at risk")
def _gradient_with_everybody_at_risk(scores, time, event):
    return event.sum() * np.exp(scores) / np.exp(scores).sum() - event


@gradient.mistake("the censored are at risk as well, until they leave")
def _gradient_of_the_dead(scores, time, event):
    result = np.zeros(len(scores))
    result[event] = gradient(scores[event], time[event], event[event])
    return result


@gradient.mistake("other patients' events count as well")
def _own_event_only(scores, time, event):
    return event * (np.diag(chances(scores, time)) - 1)


def _efron() -> Question:
    there = np.delete(X, 1)
    tied, total = 2.0 ** there[:3], (2.0**there).sum()
    sums = tied.sum() * np.arange(3)
    right = tied.prod() / (total - sums / 3).prod()
    mistakes = {
        "this is Breslow's factor, in which nobody leaves": tied.prod() / total**3,
        "B has left in month 3": tied.prod() / (total + 2 ** X[1] - sums / 3).prod(),
        "with three tied, it is not one half that goes": tied.prod() / (total - sums / 2).prod(),
        "this is the sum of the losses; the factor was asked for": -np.log(right),
        "the product of the three hazards stands above the line": right / tied.prod(),
    }
    return numbers_question(right, mistakes)


asks("cox-loss-efron", _efron())

_up, _down = np.exp([2.0, -2.0])
asks_numbers(
    "deep-shift",
    [_up, _down, 1],
    {
        "the wrong way round: lower scores make lower hazards": [_down, _up, 1],
        "in the baseline, hazards are below the fraction line": [_down, _down, 1],
        "the baseline is estimated from the shifted scores; does it stay?": [1, _down, 1],
        "factors were asked for, not what is added": [2, -2, 0],
        "in the curve two factors meet; do they cancel?": [_up, _down, _down],
    },
    labels=["baseline", "group metric", "survival curve"],
)


def _adam() -> Question:
    g, rate = np.array([1e-9, 1e-7, 1e-3]), 0.01
    mistakes = {
        "this is gradient descent; Adam divides by the gradient's own size": rate * g,
        "what does the 1e-8 do to a gradient that is smaller still?": np.full(3, rate),
        "the corrections 1 - 0.9 and 1 - 0.999 are missing": rate * g / (0.1**0.5 * g + 1e-7),
        "the 1e-8 stands outside the root": rate * g / np.sqrt(g**2 + 1e-8),
    }
    labels = ["gradient 1e-9", "gradient 1e-7", "gradient 1e-3"]
    return numbers_question(rate * g / (g + 1e-8), mistakes, labels=labels)


asks("deep-adam", _adam())


def _network():
    """Residuals, inputs, and the weights of a network with four units."""
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=size) for size in ((6,), (6, 3), (4, 3), (4,), (4,)))


def _backward(residual, inputs, gate, w2):
    """Sum over patients of residual × gate of a unit × its weight × input."""
    return (residual[:, None] * gate * w2).T @ inputs


@asks_function("deep-backprop", [_network()])
def backprop(residual, inputs, W1, b1, w2):
    """Derivatives in the weights of the first layer."""
    return _backward(residual, inputs, inputs @ W1.T + b1 > 0, w2)


@backprop.mistake("the weights of a silent unit have no effect")
def _backprop_through_silent_units(residual, inputs, W1, b1, w2):
    return _backward(residual, inputs, np.ones((len(inputs), len(b1))), w2)


@backprop.mistake("what a unit does to the score depends on w2")
def _backprop_without_w2(residual, inputs, W1, b1, w2):
    return backprop(residual, inputs, W1, b1, np.ones(len(w2)))


@backprop.mistake("the sum over patients was asked for, not the mean")
def _mean_over_patients(residual, inputs, W1, b1, w2):
    return backprop(residual, inputs, W1, b1, w2) / len(residual)


@backprop.mistake("a rectifier's derivative is 0 or 1")
def _gate_of_the_rectifier_itself(residual, inputs, W1, b1, w2):
    return _backward(residual, inputs, np.maximum(inputs @ W1.T + b1, 0), w2)
