"""Exercises of part V: exact optima, protected groups, rivals, one's own data."""

from functools import partial

import numpy as np
from scipy.stats import norm

import drocox
from drocox.exercises._core import asks_function, asks_number, exercise
from drocox.exercises.survival import EVENT, IN_A, TIME
from drocox.exercises.training import chosen, equal_losses

_q = np.linalg.solve([[1.0, 1.0], [-1.0, 2.0]], [1.0, 0.0])  # on features -1 and 2, with mean 0
asks_number(
    "optimum-kappa",
    6 * _q @ _q,
    {
        "this is the sum of squares alone; κ is n times it": _q @ _q,
        "equal weights do not give the mean of everybody": 6 * 2 * 0.5**2,
        "n counts all patients, not only those who die first": 2 * _q @ _q,
        "κ is compared with C², not with C: no root": np.sqrt(6 * _q @ _q),
    },
)


def _bound(F, decrement, M, scale=1.0):
    s = decrement * M
    return F - scale * (s + (1 - s) * np.log1p(-s)) / M**2 if s < 1 else -np.inf


asks_function(
    "optimum-bound",
    [(1.0, 0.5, 1.0), (2.0, 0.2, 3.0), (0.5, 1.0, 1.5)],
    _bound,
    {
        "λ²/2 takes too little away": lambda F, g, M: F - g**2 / 2 if g * M < 1 else -np.inf,
        "ω has still to be divided by M²": lambda F, g, M: _bound(F, g, M, M**2),
        "a lower bound of the minimum cannot lie above F": partial(_bound, scale=-1.0),
        "λM of 1 or more proves nothing": lambda F, g, M: _bound(F, min(g, (1 - 1e-12) / M), M),
    },
)

asks_number(
    "optimum-cvar",
    EVENT.mean(),
    {
        "this is the share of the censored": 1 - EVENT.mean(),
        "1/(αn) is the largest weight of one patient, not the share of all deaths": 1 / EVENT.sum(),
        "at α = 1 it is Cox's for certain, but a smaller α does as well": 1.0,
    },
)

_radius = drocox.dual_constant(0.25, rule="paper") ** 2 - 1
asks_number(
    "alpha-labels",
    1 / (1 + np.sqrt(_radius)),
    {
        "equal labels are not equal balls": 0.25,
        "this is the share, which is the label of the sharp constant": 1 / (1 + _radius),
        "other way round: the paper's label of the definition's": 1 / (1 + np.sqrt(4.5)),
        "this is 1/α - 1": np.sqrt(_radius),
    },
)

_six = equal_losses(TIME, EVENT)
asks_number(
    "alpha-cvar",
    _six.sum() / 4.5,
    {
        "this is the mean: what is the largest weight of a patient?": _six.mean(),
        "the tail is more than the deaths; the rest of it has loss 0": _six[EVENT].mean(),
        "a tail of αn patients, not of α": _six.sum() / 0.75,
    },
)


def _edge(losses, event, *, of=None, power=2.0):
    own = losses[event == 1] if of is None else of(losses)
    return event.mean() / (1 + (own.std() / own.mean()) ** power)


_d = np.array([1, 0, 1, 1, 0, 1, 0])
asks_function(
    "alpha-edge",
    [(_d * losses, _d) for losses in ([2.0, 1, 1, 3, 1, 5, 1], np.arange(7.0) + 1)],
    _edge,
    {
        "this is the share of events, whose losses are not all equal": lambda _, d: d.mean(),
        "κ is of the events alone; the zeros are counted by e": partial(_edge, of=np.copy),
        "κ² stands in the formula": partial(_edge, power=1.0),
        "SD by mean: the unit must cancel": lambda u, d: d.mean() / (1 + u[d == 1].var()),
    },
)

_halves = (IN_A, ~IN_A)
_means = np.array([_six[half].mean() for half in _halves])
asks_number(
    "groups-when",
    _means,
    {
        "the censored are patients as well": [_six[half & EVENT].mean() for half in _halves],
        "a risk set holds both groups": [equal_losses(TIME[h], EVENT[h]).mean() for h in _halves],
        "these are sums over the groups, not means": 3 * _means,
        "first a, then b": _means[::-1],
    },
)

_rho = np.log(1000 / 100) / 2
asks_number(
    "groups-range",
    _rho,
    {
        "both losses may move, towards each other": 2 * _rho,
        "this is the factor between hazards; the range is of scores": np.exp(_rho),
        "losses are logs of risk sets, not their sizes": 10.0,
        "it is the ratio of the two risk sets that counts": np.log(1000) / 2,
    },
)


def _regret(common, own, event, codes):
    return np.bincount(codes, common - own) / np.bincount(codes, event)


_common, _own = _d * np.random.default_rng(2).exponential(size=(2, 7))
asks_function(
    "groups-regret",
    [(_common, _own, _d, np.array([0, 1, 0, 1, 1, 2, 0]))],
    _regret,
    {
        "this is the loss; how much of it can be helped?": lambda u, v, *r: _regret(u, 0 * v, *r),
        "per death, not per patient": lambda u, v, d, g: _regret(u, v, d**0, g),
        "the sign: how much more does the common model lose?": lambda u, v, *r: _regret(v, u, *r),
        "deaths of the group, not of everybody": lambda u, v, d, g: np.bincount(g, u - v) / d.sum(),
    },
)


@exercise("rivals-shrunken")
def _shrunken(answer):
    order = "order is all that concordance sees, among everybody and in a group"
    wrong = {"a": order, "b": order, "e": order}
    wrong["c"] = "F_A compares hazards, and those of half the scores lie closer together"
    wrong["d"] = "a baseline is fitted again, but survival curves of half the scores lie closer"
    return chosen(answer, "cd", wrong)


def _within(scores, time, event, fold, *, pairs=np.equal):
    pairs = pairs(fold[:, None], fold) & (event[:, None] == 1) & (time[:, None] < time)
    return (pairs & (scores[:, None] > scores)).sum() / pairs.sum()


def _mean_of_folds(f, t, d, k):
    return np.mean([_within(f[k == j], t[k == j], d[k == j], k[k == j]) for j in np.unique(k)])


_rng = np.random.default_rng(3)
_fold = np.array([0] * 4 + [1] * 8)
_outcome = _rng.permutation(12) + 1.0, _rng.integers(0, 2, 12) | 1 - _fold
asks_function(
    "rivals-folds",
    [(_rng.normal(size=12), *_outcome, _fold)],
    _within,
    {
        "you compare scores of different models": lambda f, t, d, k: _within(f, t, d, 0 * k),
        "a mean of folds gives pairs of a small fold more say": _mean_of_folds,
        "these are the pairs across folds": partial(_within, pairs=np.not_equal),
    },
)

_seen, _often = norm.ppf([0.975, 0.8])
asks_number(
    "rivals-detectable",
    0.4 * (_seen + _often),
    {
        "a true difference of that size is seen only half of the time": 0.4 * _seen,
        "a test of both sides has 2.5 % on each": 0.4 * (norm.ppf(0.95) + _often),
        "the estimate may fall short: the two distances add": 0.4 * (_seen - _often),
        "this is in units of σ": _seen + _often,
    },
)

asks_function(
    "own-data-size",
    [(500, 3.0, 0.1), (1000, 2.0, 0.5)],
    lambda n, a, b: n * (a / b) ** 2,
    {
        "the floor does not fall like 1/n, but more slowly": lambda n, a, b: n * a / b,
        "the root is on the wrong side": lambda n, a, b: n * (a / b) ** 0.5,
        "a smaller floor needs more patients, not fewer": lambda n, a, b: n * (b / a) ** 2,
        "this is how many times as many; asked is how many": lambda n, a, b: (a / b) ** 2,
    },
)

asks_function(
    "own-data-jackknife",
    [(np.array([4.0, 1, 2, 2]),), (np.arange(9.0),)],
    lambda x: np.sqrt((len(x) - 1) * np.var(x)),
    {
        "this is the spread of the left-out values, far smaller than that of Δ": np.std,
        "that factor is for the variance of independent values": partial(np.std, ddof=1),
        "these are not independent values: no division by √n": lambda x: np.std(x) / len(x) ** 0.5,
        "this is the variance": lambda x: (len(x) - 1) * np.var(x),
    },
)

asks_number(
    "own-data-many",
    1 - 0.95**20,
    {
        "this is the probability that none stands out": 0.95**20,
        "this is how many stand out on average; a probability is smaller": 1.0,
        "so often a single one stands out; the hospital looks at twenty": 0.05,
    },
)
