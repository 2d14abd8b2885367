"""Exercises of part V: exact optima, protected groups, rivals, one's own data."""

import numpy as np
from scipy.stats import norm, t

import drocox
from drocox.exercises._core import asks_function, asks_letters, asks_numbers
from drocox.exercises.survival import EVENT, IN_A, TIME
from drocox.exercises.training import equal_losses

_q = np.linalg.solve([[1.0, 1.0], [-1.0, 2.0]], [1.0, 0.0])  # on features -1 and 2, with mean 0
asks_numbers(
    "optimum-kappa",
    6 * _q @ _q,
    {
        "this is the sum of squares alone; κ is n times it": _q @ _q,
        "equal weights do not give the mean of everybody": 6 * 2 * 0.5**2,
        "n counts all patients, not only those who die first": 2 * _q @ _q,
        "κ is compared with c², not with c: no root": np.sqrt(6 * _q @ _q),
    },
)


@asks_function("optimum-bound", [(1.0, 0.5, 1.0), (2.0, 0.2, 3.0), (0.5, 1.0, 1.5)])
def lower_bound(F, decrement, M, *, scale=1.0):
    """F minus ω(λM)/M², or −∞ from λM = 1 on."""
    s = decrement * M
    if s >= 1:
        return -np.inf
    return F - scale * (s + (1 - s) * np.log1p(-s)) / M**2


@lower_bound.mistake("λ²/2 takes too little away")
def _quadratic_bound(F, decrement, M):
    return F - decrement**2 / 2 if decrement * M < 1 else -np.inf


@lower_bound.mistake("ω has still to be divided by M²")
def _bound_not_divided(F, decrement, M):
    return lower_bound(F, decrement, M, scale=M**2)


@lower_bound.mistake("a lower bound of the minimum cannot lie above F")
def _bound_above(F, decrement, M):
    return lower_bound(F, decrement, M, scale=-1.0)


@lower_bound.mistake("λM of 1 or more proves nothing")
def _bound_from_anywhere(F, decrement, M):
    return lower_bound(F, min(decrement, (1 - 1e-12) / M), M)


asks_numbers(
    "optimum-cvar",
    EVENT.mean(),
    {
        "this is the share of the censored": 1 - EVENT.mean(),
        "1/(αn) is the largest weight of one patient, not the share of all deaths": 1 / EVENT.sum(),
        "at α = 1 it is Cox's for certain, but a smaller α does as well": 1.0,
    },
)

_radius = drocox.dual_constant(0.25, rule="paper") ** 2 - 1
asks_numbers(
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
asks_numbers(
    "alpha-cvar",
    _six.sum() / 4.5,
    {
        "this is the mean: what is the largest weight of a patient?": _six.mean(),
        "the tail is more than the deaths; the rest of it has loss 0": _six[EVENT].mean(),
        "a tail of αn patients, not of α": _six.sum() / 0.75,
    },
)


_d = np.array([1, 0, 1, 1, 0, 1, 0])
_event_cases = [_d * np.array([2.0, 1, 1, 3, 1, 5, 1]), _d * (np.arange(7.0) + 1)]


def _edge_of(losses, event, *, power=2.0):
    """The share e / (1 + κ²), κ of the losses given."""
    return event.mean() / (1 + (losses.std() / losses.mean()) ** power)


@asks_function("alpha-edge", [(losses, _d) for losses in _event_cases])
def edge(losses, event):
    """The share up to which every event has weight."""
    return _edge_of(losses[event == 1], event)


@edge.mistake("this is the share of events, whose losses are not all equal")
def _share_of_events(losses, event):
    return event.mean()


edge.mistake("κ is of the events alone; the zeros are counted by e")(_edge_of)


@edge.mistake("κ² stands in the formula")
def _edge_without_square(losses, event):
    return _edge_of(losses[event == 1], event, power=1.0)


@edge.mistake("SD by mean: the unit must cancel")
def _edge_with_a_unit(losses, event):
    return event.mean() / (1 + losses[event == 1].var())


_halves = (IN_A, ~IN_A)
_means = np.array([_six[half].mean() for half in _halves])
asks_numbers(
    "groups-when",
    _means,
    {
        "the censored are patients as well": [_six[half & EVENT].mean() for half in _halves],
        "a risk set holds both groups": [equal_losses(TIME[h], EVENT[h]).mean() for h in _halves],
        "these are sums over the groups, not means": 3 * _means,
        "first a, then b": _means[::-1],
    },
    labels=["group a", "group b"],
)

_rho = np.log(1000 / 100) / 2
asks_numbers(
    "groups-range",
    _rho,
    {
        "both losses may move, towards each other": 2 * _rho,
        "this is the factor between hazards; the range is of scores": np.exp(_rho),
        "losses are logs of risk sets, not their sizes": 10.0,
        "it is the ratio of the two risk sets that counts": np.log(1000) / 2,
    },
)


_common, _own = _d * np.random.default_rng(2).exponential(size=(2, 7))
_codes = np.array([0, 1, 0, 1, 1, 2, 0])


@asks_function("groups-regret", [(_common, _own, _d, _codes)])
def regret(common, own, event, codes):
    """Regret of each group under the common model, per death."""
    return np.bincount(codes, common - own) / np.bincount(codes, event)


@regret.mistake("this is the loss; how much of it can be helped?")
def _loss_for_regret(common, own, event, codes):
    return regret(common, 0 * own, event, codes)


@regret.mistake("per death, not per patient")
def _regret_per_patient(common, own, event, codes):
    return regret(common, own, np.ones_like(event), codes)


@regret.mistake("the sign: how much more does the common model lose?")
def _regret_turned(common, own, event, codes):
    return regret(own, common, event, codes)


@regret.mistake("deaths of the group, not of everybody")
def _regret_per_any_death(common, own, event, codes):
    return np.bincount(codes, common - own) / event.sum()


_ORDER = "order is all that concordance sees, among everybody and in a group"
asks_letters(
    "rivals-shrunken",
    "cd",
    {
        "a": _ORDER,
        "b": _ORDER,
        "c": "F_A compares hazards, and those of half the scores lie closer together",
        "d": ("a baseline is fitted again, but survival curves of half the scores lie closer"),
        "e": _ORDER,
    },
)


_rng = np.random.default_rng(3)
_fold = np.array([0] * 4 + [1] * 8)
_outcome = _rng.permutation(12) + 1.0, _rng.integers(0, 2, 12) | 1 - _fold


def _concordance_of(pairs, scores, time, event):
    """Harrell's index of the pairs allowed."""
    comparable = pairs & (event[:, None] == 1) & (time[:, None] < time)
    return (comparable & (scores[:, None] > scores)).sum() / comparable.sum()


@asks_function("rivals-folds", [(_rng.normal(size=12), *_outcome, _fold)])
def within_folds(scores, time, event, fold):
    """Concordance of pairs with the same model."""
    return _concordance_of(fold[:, None] == fold, scores, time, event)


@within_folds.mistake("you compare scores of different models")
def _all_pairs(scores, time, event, fold):
    return _concordance_of(np.full((len(fold), len(fold)), True), scores, time, event)


@within_folds.mistake("a mean of folds gives pairs of a small fold more say")
def _mean_of_folds(scores, time, event, fold):
    of_folds = []
    for number in np.unique(fold):
        mine = fold == number
        of_folds.append(within_folds(scores[mine], time[mine], event[mine], fold[mine]))
    return np.mean(of_folds)


@within_folds.mistake("these are the pairs across folds")
def _across_folds(scores, time, event, fold):
    return _concordance_of(fold[:, None] != fold, scores, time, event)


_seen, _often = norm.ppf([0.975, 0.8])
asks_numbers(
    "rivals-detectable",
    0.4 * (_seen + _often),
    {
        "a true difference of that size is seen only half of the time": 0.4 * _seen,
        "a test of both sides has 2.5 % on each": 0.4 * (norm.ppf(0.95) + _often),
        "the estimate may fall short: the two distances add": 0.4 * (_seen - _often),
        "this is in units of σ": _seen + _often,
    },
)

asks_numbers(
    "many-closing",
    [3.0, 1.0],
    {
        "Δ of DRO-COX enters with its sign, and closing is made of the difference": [1.0, 3.0],
        "s turns both round: Cox's gap is negative": [-3.0, -1.0],
        "neither is a mean of the two gaps: nothing is halved": [1.5, 0.5],
    },
    labels=["closing", "guard"],
    digits=None,
)

_gaps = np.array([0.1, 1.0, 4.0])
_closings = np.array([0.3, 0.2, 0.5])
asks_numbers(
    "many-share",
    _closings.sum() / _gaps.sum(),
    {
        "this is the mean of three ratios, and the smallest gap decides it": (
            _closings / _gaps
        ).mean(),
        "this is the mean closing in points; divide by the mean gap": _closings.mean(),
        "closings go above, gaps below": _gaps.sum() / _closings.sum(),
    },
)

_mean = 1.5
_se = 0.6
_tau = 0.8
_data_sets = 22
_far = t.ppf(0.975, _data_sets - 2)


def _around(half):
    return [_mean - half, _mean + half]


asks_numbers(
    "many-next",
    _around(_far * np.hypot(_tau, _se)),
    {
        "this is where the mean lies; the next true effect also varies by τ": _around(
            t.ppf(0.975, _data_sets - 1) * _se
        ),
        "variances add up, standard deviations do not": _around(_far * (_tau + _se)),
        "the error of the mean is missing": _around(_far * _tau),
        "with τ² for τ": _around(_far * np.hypot(_tau**2, _se)),
    },
    labels=["low", "high"],
)


@asks_function("own-data-size", [(500, 3.0, 0.1), (1000, 2.0, 0.5)])
def needed_patients(n, floor, wanted):
    """The noise floor falls like one over the root of n."""
    return n * (floor / wanted) ** 2


@needed_patients.mistake("the floor does not fall like 1/n, but more slowly")
def _patients_without_square(n, floor, wanted):
    return n * floor / wanted


@needed_patients.mistake("the root is on the wrong side")
def _patients_by_a_root(n, floor, wanted):
    return n * (floor / wanted) ** 0.5


@needed_patients.mistake("a smaller floor needs more patients, not fewer")
def _fewer_patients(n, floor, wanted):
    return n * (wanted / floor) ** 2


@needed_patients.mistake("this is how many times as many; asked is how many")
def _times_as_many(n, floor, wanted):
    return (floor / wanted) ** 2


@asks_function("own-data-jackknife", [(np.array([4.0, 1, 2, 2]),), (np.arange(9.0),)])
def jackknife_error(without):
    """Standard error from the values without each patient."""
    return np.sqrt((len(without) - 1) * np.var(without))


jackknife_error.mistake("this is the spread of the left-out values, far smaller than that of Δ")(
    np.std
)


@jackknife_error.mistake("that factor is for the variance of independent values")
def _sample_deviation(without):
    return np.std(without, ddof=1)


@jackknife_error.mistake("these are not independent values: no division by √n")
def _error_of_a_mean(without):
    return np.std(without) / np.sqrt(len(without))


@jackknife_error.mistake("this is the variance")
def _jackknife_variance(without):
    return (len(without) - 1) * np.var(without)


asks_numbers(
    "own-data-many",
    1 - 0.95**20,
    {
        "this is the probability that none stands out": 0.95**20,
        "this is how many stand out on average; a probability is smaller": 1.0,
        "so often a single one stands out; the hospital looks at twenty": 0.05,
    },
)
