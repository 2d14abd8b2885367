"""Wrong answers to the checks of ``drocox/exercises/beyond.py``, and words of what is said."""

import math

import numpy as np

LOG = math.log


def bound(F, decrement, M):
    s = decrement * M
    return F - (s + (1 - s) * LOG(1 - s)) / M**2 if s < 1 else -math.inf


def jackknife(x):
    n = len(x)
    return math.sqrt((n - 1) / n * sum((x - x.mean()) ** 2))


def regret(common, own, event, codes):
    out = []
    for k in range(codes.max() + 1):
        lost = sum(u - v for u, v, g in zip(common, own, codes, strict=True) if g == k)
        out.append(lost / sum(d for d, g in zip(event, codes, strict=True) if g == k))
    return np.array(out)


def concordance(scores, time, event, fold, across=False):
    good = total = 0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if event[i] and time[i] < time[j] and (fold[i] != fold[j]) == across:
                total += 1
                good += scores[i] > scores[j]
    return good / total


WRONG = {
    "optimum-kappa": [
        (5 / 9, "n times"),
        (3.0, "equal weights"),
        (10 / 9, "all patients"),
        (1.826, "no root"),
    ],
    "optimum-bound": [
        (lambda F, g, M: F - g**2 / 2 if g * M < 1 else -math.inf, "too little"),
        (lambda F, g, M: F - M**2 * (F - bound(F, g, M)), "divided by M²"),
        (lambda F, g, M: 2 * F - bound(F, g, M) if g * M < 1 else -math.inf, "above F"),
        (lambda F, g, M: bound(F, g, M) if g * M < 1 else F - 1 / M**2, "proves nothing"),
    ],
    "optimum-cvar": [(1 / 3, "censored"), (0.25, "one patient"), (1, "smaller α")],
    "own-data-size": [
        (lambda n, floor, target: n * floor / target, "more slowly"),
        (lambda n, floor, target: n * math.sqrt(floor / target), "wrong side"),
        (lambda n, floor, target: n * target**2 / floor**2, "more patients"),
        (lambda n, floor, target: floor**2 / target**2, "asked is how many"),
    ],
    "own-data-jackknife": [
        (lambda x: x.std(), "left-out values"),
        (lambda x: x.std(ddof=1), "independent values"),
        (lambda x: x.std() / math.sqrt(len(x)), "division by √n"),
        (lambda x: jackknife(x) ** 2, "the variance"),
    ],
    "own-data-many": [(0.36, "none stands out"), (1.0, "on average"), (0.05, "a single one")],
    "alpha-labels": [
        (0.25, "equal labels"),
        (1 / 19, "this is the share"),
        (0.3204, "other way round"),
        (math.sqrt(18), "1/α - 1"),
    ],
    "alpha-edge": [
        (lambda u, d: sum(d) / len(d), "not all equal"),
        (lambda u, d: sum(d) / len(d) / (1 + u.var() / u.mean() ** 2), "zeros"),
        (lambda u, d: sum(d) / len(d) / (1 + u[d == 1].std() / u[d == 1].mean()), "κ² stands"),
        (lambda u, d: sum(d) / len(d) / (1 + u[d == 1].std() ** 2), "must cancel"),
    ],
    "alpha-cvar": [
        (LOG(72) / 6, "this is the mean"),
        (LOG(72) / 4, "more than the deaths"),
        (LOG(72) / 0.75, "not of α"),
    ],
    "groups-when": [
        ([LOG(24) / 2, LOG(3) / 2], "censored"),
        ([LOG(6) / 3, LOG(2) / 3], "both groups"),
        ([LOG(24), LOG(3)], "sums"),
        ([LOG(3) / 3, LOG(24) / 3], "first a"),
    ],
    "groups-regret": [
        (lambda u, v, d, g: regret(u, 0 * v, d, g), "can be helped"),
        (lambda u, v, d, g: regret(u, v, 1 + 0 * d, g), "per death"),
        (lambda u, v, d, g: -regret(u, v, d, g), "the sign"),
        (lambda u, v, d, g: [sum((u - v)[g == k]) / sum(d) for k in range(3)], "everybody"),
    ],
    "groups-range": [
        (2.3026, "both losses"),
        (10**0.5, "between hazards"),
        (10, "not their sizes"),
        (3.4539, "ratio"),
    ],
    "rivals-shrunken": [
        ("acd", "order is all"),
        ("d", "compares hazards"),
        ("c", "survival curves"),
    ],
    "rivals-folds": [
        (lambda f, t, d, k: concordance(f, t, d, 0 * k), "different models"),
        (
            lambda *case: np.mean([concordance(*(x[case[3] == j] for x in case)) for j in (0, 1)]),
            "small fold",
        ),
        (lambda f, t, d, k: concordance(f, t, d, k, across=True), "across folds"),
    ],
    "rivals-detectable": [
        (0.784, "half of the time"),
        (0.4 * (1.645 + 0.842), "both sides"),
        (0.4 * (1.96 - 0.842), "distances add"),
        (2.8, "units of σ"),
    ],
    "many-closing": [
        ([1, 3], "enters with its sign"),
        ([-3, -1], "turns both round"),
        ([1.5, 0.5], "nothing is halved"),
    ],
    "many-share": [
        ((3 + 0.2 + 0.125) / 3, "mean of three ratios"),
        (1 / 3, "in points"),
        (5.1, "closings go above"),
    ],
    "many-next": [
        ([1.5 - 2.08 * 0.6, 1.5 + 2.08 * 0.6], "also varies by τ"),
        ([1.5 - 2.086 * 1.4, 1.5 + 2.086 * 1.4], "variances add up"),
        ([1.5 - 2.086 * 0.8, 1.5 + 2.086 * 0.8], "error of the mean is missing"),
        ([1.5 - 2.086 * 0.8773, 1.5 + 2.086 * 0.8773], "with τ² for τ"),
    ],
}
