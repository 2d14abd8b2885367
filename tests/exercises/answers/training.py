"""Wrong answers to the checks of ``drocox/exercises/training.py``, and words of what is said."""

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


WRONG = {
    "dro-cox-newcomer": [
        ([LOG(7), 0, LOG(5), LOG(4), 0, LOG(2)], "losses with G"),
        ([LOG(7 / 6), LOG(6 / 5), LOG(5 / 4), LOG(4 / 3), LOG(3 / 2), LOG(2)], "censored"),
        ([LOG(7 / 6), 0, LOG(7 / 6), LOG(7 / 6), 0, LOG(7 / 6)], "alike"),
        ([-LOG(7 / 6), 0, -LOG(5 / 4), -LOG(4 / 3), 0, -LOG(2)], "leaves"),
        ([LOG(7 / 6)] * 6, "not all six rise alike"),
        ([math.log2(7 / 6), 0, math.log2(5 / 4), math.log2(4 / 3), 0, 1], "base 2"),
        ([math.log10(7 / 6), 0, math.log10(5 / 4), math.log10(4 / 3), 0, math.log10(2)], "base 10"),
    ],
    "dro-cox-gradient": [
        (lambda *case: gradient(*case, equal=True), "same weight"),
        (lambda *case: -gradient(*case), "way down"),
        (lambda *case: gradient(*case, company=False), "log of the sum"),
        (lambda f, t, d, a: gradient(f, t, d, a, c2=1 / a), "another constant"),
    ],
    "dro-cox-valid": [
        ("abd", "subtracting"),
        ("acd", "estimated baseline"),
        ("ade", "two patients"),
        ("a", "fixed before"),
        ("d", "second patient"),
        ("adx", "the letters are"),
    ],
    "split-six": [
        ([LOG(6), 0, LOG(4), LOG(3), 0, 0], "Cox losses"),
        ([LOG(3), 0, LOG(2), 0, 0, 0], "own term"),
        ([LOG(3), 0, LOG(2), LOG(2), 0, 0], "within their half"),
        ([LOG(4), LOG(3), LOG(3), LOG(2), LOG(2), 0], "censored"),
        ([4, 0, 3, 2, 0, 1], "is a log"),
        ([2, 0, math.log2(3), 1, 0, 0], "base 2"),
        ([math.log10(4), 0, math.log10(3), math.log10(2), 0, 0], "base 10"),
    ],
    "split-folds": [
        (lambda *case: fold_losses(*case, own=False), "own term"),
        (lambda *case: fold_losses(*case, inside=True), "own fold"),
        (lambda *case: fold_losses(*case, own=False, all_=True), "the Cox loss"),
        (lambda *case: fold_losses(*case, strict=True), "same time"),
    ],
    "split-company": [
        ("abc", "half of A"),
        ("bcd", "half of A"),
        ("b", "time changes"),
        ("bce", "how it ends"),
        ("bcf", "cancels"),
        ("c", "alive when A dies"),
    ],
    "split-sorted": [
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
    "split-safe": [
        ("ce", "a coin"),
        ("abce", "the young only"),
        ("ae", "a number of this registry"),
        ("acde", "between two"),
        ("ac", "events only"),
        ("acef", "one of many"),
    ],
    "split-pull": [
        (lambda *case: np.abs(pulls(*case)), "own terms"),
        (lambda *case: -np.array(pulls(*case)), "signs are turned"),
        (lambda f, t, d, half: pulls(f, t, np.ones(len(t)), half), "censored"),
        (lambda *case: pulls(*case, own_half=True), "Cox losses"),
        (lambda *case: pulls(*case, strict=True), "same time"),
        (lambda f, t, d, h: np.array(pulls(f, t, d, h)) / [sum(h), sum(~h)], "means"),
    ],
}
