"""Exercises of part V: exact optima, protected groups, rivals, one's own data."""

from functools import partial

import numpy as np

from drocox.bookstyle import SIX
from drocox.exercises._core import exercise, judged, judged_function


@exercise(
    "optimum-kappa",
    "Who dies at the first death time? Only these patients may have weight.",
    "Two weights, two conditions: they sum to 1, and the weighted feature is everybody's mean.",
)
def _kappa(answer):
    q = np.linalg.solve([[1.0, 1.0], [-1.0, 2.0]], [1.0, 0.0])
    mistakes = {
        "this is the sum of squares alone; κ is n times it": q @ q,
        "equal weights do not give the mean of everybody": 6 * 2 * 0.5**2,
        "n counts all patients, not only those who die first": 2 * q @ q,
        "κ is compared with C², not with C: no root": np.sqrt(6 * q @ q),
    }
    return judged(answer, 6 * q @ q, mistakes, atol=5e-3)


def _bound(F, decrement, M, scale=1.0):
    s = decrement * M
    return F - scale * (s + (1 - s) * np.log1p(-s)) / M**2 if s < 1 else -np.inf


@exercise(
    "optimum-bound",
    "With s = λM, what ω(s)/M² takes away is what the decrement could still win.",
    "For s of 1 or more there is no minimum to insert: what is then the best that is proved?",
)
def _certificate(answer):
    cases = [(1.0, 0.5, 1.0), (2.0, 0.2, 3.0), (0.5, 1.0, 1.5)]
    mistakes = {
        "λ²/2 takes too little away": lambda F, g, M: F - g**2 / 2 if g * M < 1 else -np.inf,
        "ω has still to be divided by M²": lambda F, g, M: _bound(F, g, M, M**2),
        "a lower bound of the minimum cannot lie above F": partial(_bound, scale=-1.0),
        "λM of 1 or more proves nothing": lambda F, g, M: _bound(F, min(g, (1 - 1e-12) / M), M),
    }
    return judged_function(answer, cases, _bound, mistakes)


@exercise(
    "optimum-cvar",
    "With weights of at most 1/(αn) the adversary must weigh at least αn patients.",
    "When do all deaths get the largest weight, whatever the scores are?",
)
def _cvar(answer):
    event = SIX.event
    mistakes = {
        "this is the share of the censored": 1 - event.mean(),
        "1/(αn) is the largest weight of one patient, not the share of all deaths": 1 / event.sum(),
        "at α = 1 it is Cox's for certain, but a smaller α does as well": 1.0,
    }
    return judged(answer, event.mean(), mistakes, atol=5e-3)


@exercise(
    "own-data-size",
    "A standard error falls like one over the root of n.",
    "To halve the floor, how many times as many patients?",
)
def _size(answer):
    mistakes = {
        "the floor does not fall like 1/n, but more slowly": lambda n, a, b: n * a / b,
        "the root is on the wrong side": lambda n, a, b: n * (a / b) ** 0.5,
        "a smaller floor needs more patients, not fewer": lambda n, a, b: n * (b / a) ** 2,
        "this is how many times as many; asked is how many": lambda n, a, b: (a / b) ** 2,
    }
    cases = [(500, 3.0, 0.1), (1000, 2.0, 0.5)]
    return judged_function(answer, cases, lambda n, a, b: n * (a / b) ** 2, mistakes)


@exercise(
    "own-data-jackknife",
    "Values with one patient left out hardly differ: their plain spread is far too small.",
    "Sum the squared deviations from their mean; which factor stands in front?",
)
def _jackknife(answer):
    def right(x):
        return np.sqrt((len(x) - 1) * np.var(x))

    mistakes = {
        "this is the spread of the left-out values, far smaller than that of Δ": np.std,
        "that factor is for the variance of independent values": partial(np.std, ddof=1),
        "these are not independent values: no division by √n": lambda x: np.std(x) / len(x) ** 0.5,
        "this is the variance": lambda x: right(x) ** 2,
    }
    cases = [(np.array([4.0, 1, 2, 2]),), (np.arange(9.0),)]
    return judged_function(answer, cases, right, mistakes)


@exercise(
    "own-data-many",
    "What is the probability that not one of the twenty stands out?",
    "Independent: probabilities multiply.",
)
def _many(answer):
    mistakes = {
        "this is the probability that none stands out": 0.95**20,
        "this is how many stand out on average; a probability is smaller": 1.0,
        "so often a single one stands out; the hospital looks at twenty": 0.05,
    }
    return judged(answer, 1 - 0.95**20, mistakes, atol=5e-3)
