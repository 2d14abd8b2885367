"""Wrong answers to the checks of ``drocox/exercises/survival.py``, and words of what is said."""

import numpy as np
import torch

import drocox


def median(time, event, *, below=lambda s: s <= 0.5 + 1e-9, never=np.inf):
    alive = 1.0
    for day in sorted(set(time[event])):
        alive *= 1 - sum(event[time == day]) / sum(time >= day)
        if below(alive):
            return day
    return never


def gradient(scores, time, event, *, own=False, all_rows=False, ties=True):
    total = np.zeros(len(scores))
    for i in range(len(scores)):
        if event[i] or all_rows:
            there = (time >= time[i]) if ties else (time > time[i]) | (np.arange(len(time)) == i)
            hazards = np.exp(scores) * there
            total += hazards / hazards.sum() * ((np.arange(len(scores)) == i) if own else 1)
    return total - event


def everybody_at_risk(scores, time, event):
    share = np.exp(scores) / sum(np.exp(scores))
    return sum(share for died in event if died) - event


def only_the_dead(scores, time, event):
    total = np.zeros(len(scores))
    for i in np.flatnonzero(event):
        hazards = np.exp(scores) * (time >= time[i]) * event
        total += hazards / hazards.sum()
    return total - event


def below_half(time, event):
    alive = [
        np.prod(
            [
                1 - np.sum(event & (time == day)) / np.sum(time >= day)
                for day in np.unique(time[event])
                if day <= t
            ]
        )
        for t in time
    ]
    return np.array(alive) <= 0.5 + 1e-12


def by_autograd(scores, time, event):
    f = torch.tensor(scores, requires_grad=True)
    drocox.cox_losses(f, time, event).sum().backward()
    return f.grad.numpy()


def backprop(residual, X, W1, b1, w2, *, slope=lambda u: float(u > 0), last=True):
    out = np.zeros_like(W1)
    for r, x in zip(residual, X, strict=True):
        for unit in range(len(b1)):
            push = slope(W1[unit] @ x + b1[unit]) * (w2[unit] if last else 1.0)
            out[unit] += r * push * x
    return out


def by_torch(residual, X, W1, b1, w2):
    weights = torch.tensor(W1, requires_grad=True)
    hidden = torch.relu(torch.tensor(X) @ weights.T + torch.tensor(b1))
    (torch.tensor(residual) * (hidden @ torch.tensor(w2))).sum().backward()
    return weights.grad.numpy()


LATER = [np.log(6 * 4), 0, np.log(4.5), np.log(4 * 2), 0, 0]  # hazards of those who come after
RIGHT = [np.log(25), 0, np.log(5.5), np.log(9), 0, 0]
WRONG = {
    "kaplan-meier-steps": [
        ([5 / 6, 5 / 8, 5 / 12, 0], "gone before C dies"),
        (["5/6", "2/3", "4/9", "0"], "got text in a list"),
        ([5 / 6, 1 / 2, 1 / 3, 0], "among the dead"),
        ([3 / 4, 1 / 2, 1 / 4, 0], "leave the censored out"),
        ([5 / 6, 4 / 6, 3 / 6, 2 / 6], "until they leave"),
        ([1 / 6, 1 / 5, 1 / 3, 1], "shares who die"),
        ([5 / 6, 4 / 5, 2 / 3, 0], "their product"),
        ([1 / 6, 1 / 3, 5 / 9, 1], "have died so far"),
    ],
    "kaplan-meier-median": [
        (lambda t, e: np.median(t), "takes a censoring for a death"),
        (lambda t, e: np.median(t[e]), "only the dead are counted"),
        (lambda t, e: median(t, e, below=lambda s: s < 0.5 - 1e-9), "one half exactly"),
        (lambda t, e: median(t, e, never=t.max()), "never falls to one half"),
        (lambda t, e: t[99], "raised IndexError"),
        (lambda t, e: t[below_half(t, e)].min(), "of a list that is empty"),
        (lambda t, e: t[below_half(t, e)][0], "of a list that is empty"),
        (lambda t, e: min(list(t[below_half(t, e)])), "of a list that is empty"),
    ],
    "log-rank-six": [
        (np.sqrt(8 / 13), "root"),
        (2 / 3, "observed minus expected"),
        (4 / 9, "not yet divided by its variance"),
        (1 / 2, "divided by expected numbers"),
        (0, "the share of a changes"),
        ((1 / 4 + 1 / 4 + 1 / 9) / (13 / 18), "not of each term"),
    ],
    "cox-loss-six": [
        (np.negative(RIGHT), "the sign: a loss"),
        ([np.log(2.5), 0, np.log(4), np.log(1.5), 0, 0], "other sign of theta"),
        ([3.989, 0, 1.918, 2.759, 0, 0], "this is for theta = -1"),
        (LATER, "own risk sets"),
        ([RIGHT[0], np.log(12), RIGHT[2], RIGHT[3], np.log(2), 0], "no event to explain"),
        ([np.log(25), 0, np.log(6.25), np.log(12.5), 0, np.log(3.125)], "shrink"),
        ([1 / 25, 0, 1 / 5.5, 1 / 9, 0, 1], "these are probabilities"),
        ([25, 0, 5.5, 9, 0, 1], "the log is still missing"),
        ([np.log2(25), 0, np.log2(5.5), np.log2(9), 0, 0], "to base 2"),
        ([np.log10(25), 0, np.log10(5.5), np.log10(9), 0, 0], "to base 10"),
    ],
    "cox-loss-gradient": [
        (lambda *a: -gradient(*a), "the sign"),
        (lambda f, t, e: gradient(f, t, e) + e, "what was observed is missing"),
        (lambda *a: gradient(*a, all_rows=True), "a censoring is not an event"),
        (lambda *a: gradient(*a, own=True), "other patients' events"),
        (lambda *a: gradient(*a) / 6, "not the mean"),
        (lambda *a: gradient(*a, ties=False), "at a tie"),
        (everybody_at_risk, "no longer at risk"),
        (only_the_dead, "the censored are at risk"),
    ],
    "cox-loss-efron": [
        (8 / 8**3, "Breslow"),
        (8 / (10 * (10 - 7 / 3) * (10 - 14 / 3)), "B has left"),
        (8 / (8 * (8 - 7 / 2) * (8 - 7)), "not one half"),
        (np.log(8 * (8 - 7 / 3) * (8 - 14 / 3) / 8), "sum of the losses"),
        (1 / (8 * (8 - 7 / 3) * (8 - 14 / 3)), "above the line"),
    ],
    "deep-shift": [
        ([np.exp(-2), np.exp(2), 1], "wrong way round"),
        ([np.exp(-2), np.exp(-2), 1], "below the fraction line"),
        ([1, np.exp(-2), 1], "does it stay"),
        ([2, -2, 0], "not what is added"),
        ([np.exp(2), np.exp(-2), np.exp(-2)], "do they cancel"),
    ],
    "deep-adam": [
        ([1e-11, 1e-9, 1e-5], "gradient descent"),
        ([0.01, 0.01, 0.01], "smaller still"),
        ([0.001 * g / (0.001**0.5 * g + 1e-8) for g in (1e-9, 1e-7, 1e-3)], "corrections"),
        ([0.01 * g / (g * g + 1e-8) ** 0.5 for g in (1e-9, 1e-7, 1e-3)], "outside the root"),
    ],
    "deep-backprop": [
        (lambda *a: backprop(*a, slope=lambda u: 1.0), "silent unit"),
        (lambda *a: backprop(*a, last=False), "depends on w2"),
        (lambda *a: backprop(*a) / len(a[0]), "not the mean"),
        (lambda *a: backprop(*a, slope=lambda u: max(u, 0.0)), "derivative is 0 or 1"),
    ],
}
ALSO_RIGHT = [
    ("cox-loss-gradient", by_autograd),
    ("deep-backprop", by_torch),
    ("kaplan-meier-steps", [0.833, 0.667, 0.444, 0.0]),  # three digits are enough
    ("kaplan-meier-steps", [0.833, 0.666, 0.444, 0.0]),  # also if the rest was cut off
    ("log-rank-six", 0.615),
]
