"""Exercises of part V: exact optima, protected groups, rivals, one's own data."""

from functools import partial

import numpy as np
from scipy.stats import norm

import drocox
from drocox.exercises._core import exercise, judged, judged_function
from drocox.exercises.training import EVENT, FIRST, TIME, chosen, equal_losses

RULES = ("paper", "definition")


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
    mistakes = {
        "this is the share of the censored": 1 - EVENT.mean(),
        "1/(αn) is the largest weight of one patient, not the share of all deaths": 1 / EVENT.sum(),
        "at α = 1 it is Cox's for certain, but a smaller α does as well": 1.0,
    }
    return judged(answer, EVENT.mean(), mistakes, atol=5e-3)


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


@exercise(
    "alpha-share",
    "A group of share π has a ratio dQ/dP of 1/π: how far is it from P?",
    "The ball of constant C holds all weights with n Σ q² of at most C².",
)
def _share(answer):
    paper, definition = (drocox.dual_constant(0.25, rule=rule) ** 2 for rule in RULES)
    mistakes = {
        "this is α, which the paper's constant does not keep to": 25.0,
        "the share is compared with C², not with C": 100 / np.sqrt(paper),
        "the paper's constant has twice the radius of its definition": 100 / definition,
        "this is C²; a larger ball protects smaller groups": paper,
    }
    return judged(answer, 100 / paper, mistakes, atol=5e-2)


def _edge(losses, event, *, of=None, power=2.0):
    own = losses[event == 1] if of is None else of(losses)
    return event.mean() / (1 + (own.std() / own.mean()) ** power)


@exercise(
    "alpha-edge",
    "You need the share of events, and how unequal the losses of events are.",
    "The coefficient of variation is a standard deviation divided by a mean.",
)
def _edges(answer):
    event = np.array([1, 0, 1, 1, 0, 1, 0])
    cases = [(event * losses, event) for losses in ([2.0, 1, 1, 3, 1, 5, 1], np.arange(7.0) + 1)]
    mistakes = {
        "this is the share of events, whose losses are not all equal": lambda _, d: d.mean(),
        "κ is of the events alone; the zeros are counted by e": partial(_edge, of=np.copy),
        "κ² stands in the formula": partial(_edge, power=1.0),
        "SD by mean: the unit must cancel": lambda u, d: d.mean() / (1 + u[d == 1].var()),
    }
    return judged_function(answer, cases, _edge, mistakes)


@exercise(
    "alpha-cvar",
    "Sort the losses. How many patients are a quarter of six?",
    "A weight is at most 1/(αn); the last patient takes what is left of the sum of 1.",
)
def _cvar_six(answer):
    u = np.sort(equal_losses(TIME, EVENT))[::-1]
    mistakes = {
        "half a patient has no right to a full weight: weights must sum to 1": u[:2].mean(),
        "the one worst patient may not take all the weight": u[0],
        "these weights do not sum to 1: divide by αn": u[0] + u[1] / 2,
        "this is the mean of all; the adversary chooses": u.sum() / 6,
    }
    return judged(answer, (u[0] + u[1] / 2) / 1.5, mistakes, atol=5e-3)


@exercise(
    "groups-when",
    "At equal scores the loss of a death is the log of how many are at risk.",
    "A group's mean is over all its patients, and its risk sets hold both groups.",
)
def _when(answer):
    u, halves = equal_losses(TIME, EVENT), (FIRST, ~FIRST)
    right = np.array([u[half].mean() for half in halves])
    mistakes = {
        "the censored are patients as well": [u[half & EVENT].mean() for half in halves],
        "a risk set holds both groups": [equal_losses(TIME[h], EVENT[h]).mean() for h in halves],
        "these are sums over the groups, not means": 3 * right,
        "first a, then b": right[::-1],
    }
    return judged(answer, right, mistakes, atol=5e-3)


def _regret(common, own, event, codes):
    return np.bincount(codes, common - own) / np.bincount(codes, event)


@exercise(
    "groups-regret",
    "Two sums for each group: what its deaths lose, and how many these are.",
    "np.bincount(codes, weights) adds up by group.",
)
def _regrets(answer):
    codes, event = np.array([0, 1, 0, 2, 1, 2, 0]), np.array([1, 1, 0, 1, 0, 1, 1])
    common, own = event * np.random.default_rng(2).exponential(size=(2, 7))
    mistakes = {
        "this is the loss; how much of it can be helped?": lambda u, v, *r: _regret(u, 0 * v, *r),
        "per death, not per patient": lambda u, v, d, g: _regret(u, v, d**0, g),
        "the sign: how much more does the common model lose?": lambda u, v, *r: _regret(v, u, *r),
        "deaths of the group, not of everybody": lambda u, v, d, g: np.bincount(g, u - v) / d.sum(),
    }
    return judged_function(answer, [(common, own, event, codes)], _regret, mistakes)


@exercise(
    "groups-range",
    "Each loss lies within ρ of the log of its own risk set.",
    "The first may be as low, and the second as high, as that allows.",
)
def _range(answer):
    edge = np.log(1000 / 100) / 2
    mistakes = {
        "both losses may move, towards each other": 2 * edge,
        "this is the factor between hazards; the range is of scores": np.exp(edge),
        "losses are logs of risk sets, not their sizes": 10.0,
        "it is the ratio of the two risk sets that counts": np.log(1000) / 2,
    }
    return judged(answer, edge, mistakes, atol=5e-3)


@exercise(
    "rivals-shrunken",
    "Half the scores have the same order.",
    "Which of these look at hazards or probabilities, and not at order alone?",
)
def _shrunken(answer):
    order = "order is all that concordance sees, among everybody and in a group"
    wrong = {"a": order, "b": order, "e": order}
    wrong["c"] = "F_A compares hazards, and those of half the scores lie closer together"
    wrong["d"] = "a baseline is fitted again, but survival curves of half the scores lie closer"
    return chosen(answer, "cd", wrong)


def _within(scores, time, event, fold, *, pairs=np.equal):
    pairs = pairs(fold[:, None], fold) & (event[:, None] == 1) & (time[:, None] < time)
    return (pairs & (scores[:, None] > scores)).sum() / pairs.sum()


@exercise(
    "rivals-folds",
    "Scores of two models have no common scale: which pairs may be compared?",
    "Add up concordant and comparable pairs over the folds, and divide once.",
)
def _within_folds(answer):
    rng = np.random.default_rng(3)
    fold = np.array([0] * 4 + [1] * 8)
    event = rng.integers(0, 2, 12) | 1 - fold
    cases = [(rng.normal(size=12), rng.permutation(12) + 1.0, event, fold)]
    mistakes = {
        "you compare scores of different models": lambda f, t, d, k: _within(f, t, d, 0 * k),
        "a mean of folds gives pairs of a small fold more say": lambda f, t, d, k: np.mean(
            [_within(f[k == j], t[k == j], d[k == j], k[k == j]) for j in (0, 1)]
        ),
        "these are the pairs across folds": partial(_within, pairs=np.not_equal),
    }
    return judged_function(answer, cases, _within, mistakes)


@exercise(
    "rivals-detectable",
    "The estimate must land beyond 1.96 σ, and it scatters around the true difference.",
    "A normal variable is above its mean minus 0.84 σ with probability 80 %.",
)
def _detectable(answer):
    significant, power = norm.ppf([0.975, 0.8])
    mistakes = {
        "a true difference of that size is seen only half of the time": 0.4 * significant,
        "a test of both sides has 2.5 % on each": 0.4 * (norm.ppf(0.95) + power),
        "the estimate may fall short: the two distances add": 0.4 * (significant - power),
        "this is in units of σ": significant + power,
    }
    return judged(answer, 0.4 * (significant + power), mistakes, atol=1e-2)
