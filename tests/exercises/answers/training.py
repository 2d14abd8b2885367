"""Answers to the exercises on DRO-COX, on splitting and of part V, right and wrong."""

import math

import numpy as np

LOG = math.log


def gradient(f, time, event, alpha, *, equal=False, company=True, c2=None):
    n = len(f)
    losses = np.zeros(n)
    for i in range(n):
        if event[i]:
            losses[i] = LOG(sum(math.exp(f[j]) for j in range(n) if time[j] >= time[i])) - f[i]
    c2 = c2 or 2 * (1 / alpha - 1) ** 2 + 1
    low, high = losses.min() - 1e3, losses.max()
    for _ in range(200):  # the dual's slope is zero where (mean of excess)² c² = mean of excess²
        eta = (low + high) / 2
        excess = np.maximum(losses - eta, 0)
        low, high = (eta, high) if c2 * excess.mean() ** 2 > (excess**2).mean() else (low, eta)
    q = np.full(n, 1 / n) if equal else excess / excess.sum()
    total = np.zeros(n)
    for i in range(n):
        if event[i]:
            at_risk = [j for j in range(n) if time[j] >= time[i]]
            hazard = sum(math.exp(f[j]) for j in at_risk)
            for j in at_risk:
                total[j] += q[i] * math.exp(f[j]) / hazard * company
            total[i] -= q[i]
    return total


def fold_losses(f, time, event, fold, own=True, inside=False, all_=False, strict=False):
    losses = np.zeros(len(f))
    for i in range(len(f)):
        total = math.exp(f[i]) if own else 0.0
        for j in range(len(f)):
            late = time[j] > time[i] if strict else time[j] >= time[i]
            if late and (all_ or (fold[j] == fold[i]) == inside):
                total += math.exp(f[j])
        losses[i] = event[i] * (LOG(total) - f[i])
    return losses


def pulls(f, time, event, first, strict=False, own_half=False):
    total = [0.0, 0.0]
    for i in range(len(f)):
        others = mine = 0.0
        for j in range(len(f)):
            if time[j] > time[i] or (time[j] == time[i] and not strict):
                others += math.exp(f[j]) * (first[j] != first[i])
                mine += math.exp(f[j]) * (first[j] == first[i])
        part = event[i] * others / (others + (mine if own_half else math.exp(f[i])))
        total[0 if first[i] else 1] += part if first[i] else -part
    return total


def bound(F, decrement, M):
    s = decrement * M
    return F - (s + (1 - s) * LOG(1 - s)) / M**2 if s < 1 else -math.inf


def jackknife(x):
    n = len(x)
    return math.sqrt((n - 1) / n * sum((x - x.mean()) ** 2))


def edge(losses, event):
    """Mean square by squared mean of all losses is c² where the last patient becomes active."""
    return sum(losses) ** 2 / len(losses) / sum(losses**2)


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


ANSWERS = {
    "dro-cox-newcomer": (
        [LOG(7 / 6), 0, LOG(5 / 4), LOG(4 / 3), 0, LOG(2)],
        [
            ([LOG(7), 0, LOG(5), LOG(4), 0, LOG(2)], "losses with G"),
            ([LOG(7 / 6), LOG(6 / 5), LOG(5 / 4), LOG(4 / 3), LOG(3 / 2), LOG(2)], "censored"),
            ([LOG(7 / 6), 0, LOG(7 / 6), LOG(7 / 6), 0, LOG(7 / 6)], "alike"),
            ([-LOG(7 / 6), 0, -LOG(5 / 4), -LOG(4 / 3), 0, -LOG(2)], "leaves"),
            ([LOG(7 / 6)] * 6, "not all six rise alike"),
            ([math.log2(7 / 6), 0, math.log2(5 / 4), math.log2(4 / 3), 0, 1], "base 2"),
            (
                [math.log10(7 / 6), 0, math.log10(5 / 4), math.log10(4 / 3), 0, math.log10(2)],
                "base 10",
            ),
        ],
    ),
    "dro-cox-gradient": (
        gradient,
        [
            (lambda *case: gradient(*case, equal=True), "same weight"),
            (lambda *case: -gradient(*case), "way down"),
            (lambda *case: gradient(*case, company=False), "log of the sum"),
            (lambda f, t, d, a: gradient(f, t, d, a, c2=1 / a), "another constant"),
        ],
    ),
    "dro-cox-valid": (
        "a, d",
        [
            ("abd", "subtracting"),
            ("acd", "estimated baseline"),
            ("ade", "two patients"),
            ("a", "fixed before"),
            ("d", "second patient"),
            ("adx", "the letters are"),
        ],
    ),
    "split-six": (
        [LOG(4), 0, LOG(3), LOG(2), 0, 0],
        [
            ([LOG(6), 0, LOG(4), LOG(3), 0, 0], "Cox losses"),
            ([LOG(3), 0, LOG(2), 0, 0, 0], "own term"),
            ([LOG(3), 0, LOG(2), LOG(2), 0, 0], "within their half"),
            ([LOG(4), LOG(3), LOG(3), LOG(2), LOG(2), 0], "censored"),
            ([4, 0, 3, 2, 0, 1], "is a log"),
            ([2, 0, math.log2(3), 1, 0, 0], "base 2"),
            ([math.log10(4), 0, math.log10(3), math.log10(2), 0, 0], "base 10"),
        ],
    ),
    "split-folds": (
        fold_losses,
        [
            (lambda *case: fold_losses(*case, own=False), "own term"),
            (lambda *case: fold_losses(*case, inside=True), "own fold"),
            (lambda *case: fold_losses(*case, own=False, all_=True), "the Cox loss"),
            (lambda *case: fold_losses(*case, strict=True), "same time"),
        ],
    ),
    "split-company": (
        "bc",
        [
            ("abc", "half of A"),
            ("bcd", "half of A"),
            ("b", "time changes"),
            ("bce", "how it ends"),
            ("bcf", "cancels"),
            ("c", "alive when A dies"),
        ],
    ),
    "split-sorted": (
        [2 * LOG(4), 2 * LOG(5 / 2), 0, 0],
        [
            ([LOG(24), LOG(4.5 * 2.5), LOG(3), LOG(3)], "Cox losses"),
            ([2 * LOG(4), 2 * LOG(5 / 2), LOG(3), LOG(3)], "still at risk"),
            ([3 * LOG(4), 3 * LOG(5 / 2), 0, 0], "B is censored"),
            ([2 * LOG(3), 2 * LOG(3 / 2), 0, 0], "own term"),
            ([LOG(4), LOG(5 / 2), 0, 0], "one loss"),
            ([LOG(16) / 3, LOG(6.25) / 3, 0, 0], "means"),
            ([16, 6.25, 1, 1], "product"),
            ([4, 2 * math.log2(5 / 2), 0, 0], "base 2"),
            ([math.log10(16), math.log10(6.25), 0, 0], "base 10"),
        ],
    ),
    "split-safe": (
        "a c e",
        [
            ("ce", "a coin"),
            ("abce", "different ages"),
            ("ae", "a number of this registry"),
            ("acde", "between two"),
            ("ac", "events only"),
            ("acef", "one of many"),
        ],
    ),
    "split-pull": (
        pulls,
        [
            (lambda *case: np.abs(pulls(*case)), "own terms"),
            (lambda *case: -np.array(pulls(*case)), "signs are turned"),
            (lambda f, t, d, half: pulls(f, t, np.ones(len(t)), half), "censored"),
            (lambda *case: pulls(*case, own_half=True), "Cox losses"),
            (lambda *case: pulls(*case, strict=True), "same time"),
            (lambda f, t, d, h: np.array(pulls(f, t, d, h)) / [sum(h), sum(~h)], "means"),
        ],
    ),
    "optimum-kappa": (
        10 / 3,
        [(5 / 9, "n times"), (3.0, "equal weights"), (10 / 9, "all patients"), (1.826, "no root")],
    ),
    "optimum-bound": (
        bound,
        [
            (lambda F, g, M: F - g**2 / 2 if g * M < 1 else -math.inf, "too little"),
            (lambda F, g, M: F - M**2 * (F - bound(F, g, M)), "divided by M²"),
            (lambda F, g, M: 2 * F - bound(F, g, M) if g * M < 1 else -math.inf, "above F"),
            (lambda F, g, M: bound(F, g, M) if g * M < 1 else F - 1 / M**2, "proves nothing"),
        ],
    ),
    "optimum-cvar": (2 / 3, [(1 / 3, "censored"), (0.25, "one patient"), (1, "smaller α")]),
    "own-data-size": (
        lambda n, floor, target: n * floor**2 / target**2,
        [
            (lambda n, floor, target: n * floor / target, "more slowly"),
            (lambda n, floor, target: n * math.sqrt(floor / target), "wrong side"),
            (lambda n, floor, target: n * target**2 / floor**2, "more patients"),
            (lambda n, floor, target: floor**2 / target**2, "asked is how many"),
        ],
    ),
    "own-data-jackknife": (
        jackknife,
        [
            (lambda x: x.std(), "left-out values"),
            (lambda x: x.std(ddof=1), "independent values"),
            (lambda x: x.std() / math.sqrt(len(x)), "division by √n"),
            (lambda x: jackknife(x) ** 2, "the variance"),
        ],
    ),
    "own-data-many": (
        0.642,
        [(0.36, "none stands out"), (1.0, "on average"), (0.05, "a single one")],
    ),
    "alpha-labels": (
        1 / (1 + math.sqrt(18)),
        [
            (0.25, "equal labels"),
            (1 / 19, "this is the share"),
            (0.3204, "other way round"),
            (math.sqrt(18), "1/α - 1"),
        ],
    ),
    "alpha-edge": (
        edge,
        [
            (lambda u, d: sum(d) / len(d), "not all equal"),
            (lambda u, d: sum(d) / len(d) / (1 + u.var() / u.mean() ** 2), "zeros"),
            (lambda u, d: sum(d) / len(d) / (1 + u[d == 1].std() / u[d == 1].mean()), "κ² stands"),
            (lambda u, d: sum(d) / len(d) / (1 + u[d == 1].std() ** 2), "must cancel"),
        ],
    ),
    "alpha-cvar": (
        LOG(72) / 4.5,
        [
            (LOG(72) / 6, "this is the mean"),
            (LOG(72) / 4, "more than the deaths"),
            (LOG(72) / 0.75, "not of α"),
        ],
    ),
    "groups-when": (
        [LOG(24) / 3, LOG(3) / 3],
        [
            ([LOG(24) / 2, LOG(3) / 2], "censored"),
            ([LOG(6) / 3, LOG(2) / 3], "both groups"),
            ([LOG(24), LOG(3)], "sums"),
            ([LOG(3) / 3, LOG(24) / 3], "first a"),
        ],
    ),
    "groups-regret": (
        regret,
        [
            (lambda u, v, d, g: regret(u, 0 * v, d, g), "can be helped"),
            (lambda u, v, d, g: regret(u, v, 1 + 0 * d, g), "per death"),
            (lambda u, v, d, g: -regret(u, v, d, g), "the sign"),
            (lambda u, v, d, g: [sum((u - v)[g == k]) / sum(d) for k in range(3)], "everybody"),
        ],
    ),
    "groups-range": (
        LOG(10) / 2,
        [
            (2.3026, "both losses"),
            (10**0.5, "between hazards"),
            (10, "not their sizes"),
            (3.4539, "ratio"),
        ],
    ),
    "rivals-shrunken": (
        "(c), (d)",
        [("acd", "order is all"), ("d", "compares hazards"), ("c", "survival curves")],
    ),
    "rivals-folds": (
        concordance,
        [
            (lambda f, t, d, k: concordance(f, t, d, 0 * k), "different models"),
            (
                lambda *case: np.mean(
                    [concordance(*(x[case[3] == j] for x in case)) for j in (0, 1)]
                ),
                "small fold",
            ),
            (lambda f, t, d, k: concordance(f, t, d, k, across=True), "across folds"),
        ],
    ),
    "rivals-detectable": (
        1.12,
        [
            (0.784, "half of the time"),
            (0.4 * (1.645 + 0.842), "both sides"),
            (0.4 * (1.96 - 0.842), "distances add"),
            (2.8, "units of σ"),
        ],
    ),
    "many-closing": (
        [3, 1],
        [
            ([1, 3], "enters with its sign"),
            ([-3, -1], "turns both round"),
            ([1.5, 0.5], "nothing is halved"),
        ],
    ),
    "many-share": (
        1.0 / 5.1,
        [
            ((3 + 0.2 + 0.125) / 3, "mean of three ratios"),
            (1 / 3, "in points"),
            (5.1, "closings go above"),
        ],
    ),
    "many-next": (
        [-0.586, 3.586],
        [
            ([1.5 - 2.08 * 0.6, 1.5 + 2.08 * 0.6], "also varies by τ"),
            ([1.5 - 2.086 * 1.4, 1.5 + 2.086 * 1.4], "variances add up"),
            ([1.5 - 2.086 * 0.8, 1.5 + 2.086 * 0.8], "error of the mean is missing"),
            ([1.5 - 2.086 * 0.8773, 1.5 + 2.086 * 0.8773], "with τ² for τ"),
        ],
    ),
}
