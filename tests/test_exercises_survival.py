"""Checks of the exercises on survival data, the Cox loss and deep Cox models; and `check` itself.

Right answers and mistakes are written here as a reader would, not taken from the judges.
"""

import re

import numpy as np
import pytest
import torch

import drocox
from drocox.exercises import check, hint, names


def median(time, event, *, below=lambda s: s <= 0.5 + 1e-9, never=np.inf):
    alive = 1.0
    for day in sorted(set(time[event])):
        alive *= 1 - sum(event[time == day]) / sum(time >= day)
        if below(alive):
            return day
    return never


def gradient(scores, time, event, *, own=False, all_rows=False):
    total = np.zeros(len(scores))
    for i in range(len(scores)):
        if event[i] or all_rows:
            hazards = np.exp(scores) * (time >= time[i])
            total += hazards / hazards.sum() * ((np.arange(len(scores)) == i) if own else 1)
    return total - event


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
TABLE = {
    "kaplan-meier-steps": (
        [5 / 6, 2 / 3, 4 / 9, 0],
        [
            ([5 / 6, 5 / 8, 5 / 12, 0], "gone before C dies"),
            ([5 / 6, 1 / 2, 1 / 3, 0], "among the dead"),
            ([3 / 4, 1 / 2, 1 / 4, 0], "leave the censored out"),
            ([5 / 6, 4 / 6, 3 / 6, 2 / 6], "until they leave"),
            ([1 / 6, 1 / 5, 1 / 3, 1], "shares who die"),
            ([5 / 6, 4 / 5, 2 / 3, 0], "their product"),
        ],
    ),
    "kaplan-meier-median": (
        median,
        [
            (lambda t, e: np.median(t), "takes a censoring for a death"),
            (lambda t, e: np.median(t[e]), "the dead alone"),
            (lambda t, e: median(t, e, below=lambda s: s < 0.5 - 1e-9), "one half exactly"),
            (lambda t, e: median(t, e, never=t.max()), "never falls to one half"),
            (lambda t, e: t[99], "raised IndexError"),
            (lambda t, e: None, "returns nothing"),
            (8.0, "expected a function"),
        ],
    ),
    "log-rank-six": (
        8 / 13,
        [
            (np.sqrt(8 / 13), "root"),
            (2 / 3, "observed minus expected"),
            (1 / 2, "divided by expected numbers"),
            (0, "the share of a changes"),
            ((1 / 4 + 1 / 4 + 1 / 9) / (13 / 18), "not of each term"),
        ],
    ),
    "cox-loss-six": (
        RIGHT,
        [
            (np.negative(RIGHT), "the sign: a loss"),
            ([np.log(2.5), 0, np.log(4), np.log(1.5), 0, 0], "other sign of theta"),
            (LATER, "own risk set"),
            ([RIGHT[0], np.log(12), RIGHT[2], RIGHT[3], np.log(2), 0], "no event to explain"),
            ([np.log(25), 0, np.log(6.25), np.log(12.5), 0, np.log(3.125)], "shrink"),
            ([1 / 25, 0, 1 / 5.5, 1 / 9, 0, 1], "these are probabilities"),
        ],
    ),
    "cox-loss-gradient": (
        gradient,
        [
            (lambda *a: -gradient(*a), "the sign"),
            (lambda f, t, e: gradient(f, t, e) + e, "what was observed is missing"),
            (lambda *a: gradient(*a, all_rows=True), "to be censored is no event"),
            (lambda *a: gradient(*a, own=True), "other patients' events"),
        ],
    ),
    "cox-loss-efron": (
        8 / (8 * (8 - 7 / 3) * (8 - 14 / 3)),
        [
            (8 / 8**3, "Breslow"),
            (8 / (10 * (10 - 7 / 3) * (10 - 14 / 3)), "B has left"),
            (8 / (8 * (8 - 7 / 2) * (8 - 7)), "not one half"),
            (np.log(8 * (8 - 7 / 3) * (8 - 14 / 3) / 8), "sum of the losses"),
        ],
    ),
    "deep-shift": (
        [np.exp(2), np.exp(-2), 1],
        [
            ([np.exp(-2), np.exp(2), 1], "wrong way round"),
            ([np.exp(-2), np.exp(-2), 1], "below the fraction line"),
            ([1, np.exp(-2), 1], "does it stay"),
            ([2, -2, 0], "not what is added"),
            ([np.exp(2), np.exp(-2), np.exp(-2)], "do they cancel"),
        ],
    ),
    "deep-adam": (
        [0.01 / 11, 0.01 * 10 / 11, 0.01 * 1e-3 / (1e-3 + 1e-8)],
        [
            ([1e-11, 1e-9, 1e-5], "gradient descent"),
            ([0.01, 0.01, 0.01], "smaller still"),
            ([0.001 * g / (0.001**0.5 * g + 1e-8) for g in (1e-9, 1e-7, 1e-3)], "corrections"),
            ([0.01 * g / (g * g + 1e-8) ** 0.5 for g in (1e-9, 1e-7, 1e-3)], "outside the root"),
        ],
    ),
    "deep-backprop": (
        backprop,
        [
            (lambda *a: backprop(*a, slope=lambda u: 1.0), "silent unit"),
            (lambda *a: backprop(*a, last=False), "depends on w2"),
            (lambda *a: backprop(*a) / len(a[0]), "not the mean"),
            (lambda *a: backprop(*a, slope=lambda u: max(u, 0.0)), "derivative is 0 or 1"),
        ],
    ),
}
MISTAKES = [(name, *pair) for name, (_, wrong) in TABLE.items() for pair in wrong]


@pytest.mark.parametrize("name", TABLE)
def test_right_answers_pass(name):
    verdict = check(name, TABLE[name][0])
    assert verdict, verdict
    assert repr(verdict) == f"✓ {name}: right"


@pytest.mark.parametrize(
    ("name", "answer"), [("cox-loss-gradient", by_autograd), ("deep-backprop", by_torch)]
)
def test_automatic_derivatives_pass(name, answer):
    verdict = check(name, answer)
    assert verdict, verdict


@pytest.mark.parametrize(("name", "wrong", "said"), MISTAKES)
def test_mistakes_are_told_apart(name, wrong, said):
    verdict = check(name, wrong)
    assert not verdict
    assert said in repr(verdict)


@pytest.mark.parametrize("name", TABLE)
def test_each_exercise_knows_three_mistakes_or_more(name):
    said = {repr(check(name, wrong)) for wrong, _ in TABLE[name][1]}
    assert len(said) >= 3
    assert not any("not a mistake known here" in text for text in said)


@pytest.mark.parametrize(
    "name", [name for name, (right, _) in TABLE.items() if not callable(right)]
)
def test_nothing_gives_the_answer_away(name):
    right, mistakes = TABLE[name]
    told = " ".join(repr(check(name, wrong)) for wrong, _ in mistakes)
    told += " ".join(hint(name, number).text for number in (1, 2))
    numbers = {float(n) for n in re.findall(r"\d+\.\d+(?:e-?\d+)?", told)}
    secret = [v for v in np.ravel(right) if v not in (0, 1)]
    assert not any(abs(n - v) < 5e-3 * v for n in numbers for v in secret)


def test_rounded_answers_pass():
    assert check("kaplan-meier-steps", [0.83, 0.67, 0.44, 0.0])
    assert check("log-rank-six", 0.62)
    assert not check("log-rank-six", 0.63)


def test_all_are_listed():
    assert set(TABLE) <= set(names())
    assert names() == sorted(names())


@pytest.mark.parametrize("call", [check, hint])
def test_an_unknown_name_is_refused_with_the_way_to_the_known_ones(call):
    with pytest.raises(ValueError, match=r"'kaplan'.*names\(\)"):
        call("kaplan")


@pytest.mark.parametrize("answer", [..., None])
def test_no_answer_yet(answer):
    assert not check("log-rank-six", answer)
    assert repr(check("log-rank-six", answer)).startswith("○ log-rank-six: no answer yet")
    assert repr(check("log-rank-six")) == repr(check("log-rank-six", ...))


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("log-rank-six", "eight", "expected a number, got str"),
        ("kaplan-meier-steps", "5/6", "expected an array of 4 numbers, got str"),
        ("kaplan-meier-steps", [0.8, 0.6], r"expected shape (4,), got (2,)"),
        ("log-rank-six", [0.6], r"expected shape (), got (1,)"),
        ("log-rank-six", np.nan, "NaN or infinity"),
        ("kaplan-meier-steps", [1, np.inf, 0, 0], "NaN or infinity"),
        ("log-rank-six", 17, "not a mistake known here"),
        ("kaplan-meier-median", lambda t, e: 1 / 0, "raised ZeroDivisionError"),
        ("kaplan-meier-median", lambda t: 1, "raised TypeError"),
        ("kaplan-meier-median", lambda t, e: ..., "returns nothing"),
        ("kaplan-meier-median", lambda t, e: "soon", "expected a number, got str"),
        ("cox-loss-gradient", lambda f, t, e: 0.0, "expected shape (6,), got ()"),
        ("cox-loss-gradient", lambda f, t, e: f, "for the input"),
    ],
)
def test_answers_of_another_kind_are_told_what_is_expected(name, answer, said):
    verdict = check(name, answer)
    assert not verdict
    assert said in repr(verdict)


def test_a_function_cannot_spoil_the_cases():
    def greedy(time, event):
        time[:] = 0
        return 0.0

    assert not check("kaplan-meier-median", greedy)
    assert check("kaplan-meier-median", median)


def test_hints_go_from_gentle_to_telling():
    first, second = hint("log-rank-six"), hint("log-rank-six", 2)
    assert repr(first).startswith("Hint 1 (1 more): ") and repr(second).startswith("Hint 2: ")
    for number in (0, 3):
        with pytest.raises(ValueError, match="has hints 1 to 2"):
            hint("log-rank-six", number)
