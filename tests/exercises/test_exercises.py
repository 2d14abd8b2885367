"""Every check of an exercise passes the right answer and tells a reader what a mistake is.

The answers, in ``answers/``, are plain code as a reader would write it. They share nothing with the
graders: neither the right ones nor the mistakes.
"""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from answers import experiments, metrics, survival, training, worst_case

from drocox.exercises import check, hint, hints, names, question

BOOK = Path(__file__).resolve().parents[2] / "book"
MODULES = survival, metrics, worst_case, training, experiments
ANSWERS = {name: both for module in MODULES for name, both in module.ANSWERS.items()}
NUMBERS = sorted(
    n for n, (right, _) in ANSWERS.items() if not callable(right) and not isinstance(right, str)
)
# What is said of answers of a wrong kind, and of mistakes that no exercise knows.
GENERAL = r"expected |your function raised|not a mistake known|the letters are"


@cache
def verdicts(name):
    return [check(name, answer) for answer, _ in ANSWERS[name][1]]


def test_every_exercise_has_answers_here_and_hints():
    assert names() == sorted(ANSWERS)
    assert all(hints(name) for name in names())
    assert len(ANSWERS) == sum(len(module.ANSWERS) for module in MODULES)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_right_answer_passes(name):
    verdict = check(name, ANSWERS[name][0])
    assert verdict, verdict
    assert repr(verdict) == f"✓ {name}: right"


@pytest.mark.parametrize(("name", "answer"), survival.ALSO_RIGHT + worst_case.ALSO_RIGHT)
def test_other_ways_to_the_right_answer_pass(name, answer):
    verdict = check(name, answer)
    assert verdict, verdict


@pytest.mark.parametrize(
    ("name", "answer"), [("kaplan-meier-steps", [0.83, 0.67, 0.44, 0]), ("log-rank-six", 0.62)]
)
def test_a_rounded_answer_is_asked_for_three_digits(name, answer):
    verdict = check(name, answer)
    assert not verdict
    assert repr(verdict) == f"≈ {name}: right as far as it goes, but give three digits"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("worst-case-cvar", 1),
        ("cox-loss-six", [3, 0, 2, 2, 0, 0]),
        ("quiz-fairness-metrics-2", 2),
        ("log-rank-six", 0.6),
    ],
)
def test_one_digit_is_not_called_right(name, answer):
    assert "one digit cannot tell" in repr(check(name, answer))


@pytest.mark.parametrize("name", NUMBERS)
def test_every_right_answer_may_be_rounded(name):
    """Three digits are right, two are told so, and 6 % more is neither."""
    right = np.asarray(ANSWERS[name][0], float)

    def to_digits(digits):
        return np.array([f"{value:.{digits - 1}e}" for value in right.flat], float)

    assert check(name, to_digits(3).reshape(right.shape))
    two = to_digits(2).reshape(right.shape)
    unit = 10.0 ** (np.floor(np.log10(np.abs(right) + 1e-300)) - 2)  # of the third digit
    if (np.abs(two - right) <= unit).all():
        assert check(name, two)
    else:
        assert "give three digits" in repr(check(name, two))
    assert ": right" not in repr(check(name, 1.06 * right))


@pytest.mark.parametrize("name", ANSWERS)
def test_each_known_mistake_is_explained(name):
    for verdict, (_, fragment) in zip(verdicts(name), ANSWERS[name][1], strict=True):
        assert not verdict
        assert fragment in verdict.text
    own = {verdict.text for verdict in verdicts(name) if not re.search(GENERAL, verdict.text)}
    assert len(own) >= 3


@pytest.mark.parametrize("name", ANSWERS)
def test_hints_and_verdicts_do_not_contain_the_answer(name):
    right = ANSWERS[name][0]
    said = [hint(name, number + 1).text for number in range(len(hints(name)))]
    assert len(set(said)) == len(said) >= 2
    if callable(right) or isinstance(right, str):
        return
    said += [verdict.text for verdict in verdicts(name)]
    numbers = re.findall(r"(?<![\d.])\d+\.?\d*", " ".join(said).replace(name, ""))
    found = np.array(numbers, float)
    for value in set(np.ravel(right)) - {0, 1, 2, 0.5}:  # these are no news in a text
        assert np.abs(found - value).min(initial=np.inf) > 5e-3 * abs(value)


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_another_kind_are_told_what_is_expected(name):
    right = ANSWERS[name][0]
    if callable(right):
        cases = [(1.0, "expected a function"), (lambda *given: None, "returns nothing")]
        cases.append((lambda *given: 1 / 0, "your function raised ZeroDivisionError"))
    elif isinstance(right, str):
        cases = [(1, "expected letters in one string"), ("z", "the letters are")]
    else:
        kind = "a number" if np.ndim(right) == 0 else f"{len(right)} numbers"
        cases = [("soon", f"expected {kind}, got text"), ({}, f"expected {kind}, got dict")]
        cases.append((np.zeros(99), f"expected {kind}, got "))
        cases.append((np.zeros((9, 9)), f"expected {kind}, got an array of shape (9, 9)"))
        cases.append((np.full(np.shape(right), np.nan), "NaN or infinity"))
    cases += [(..., "no answer yet"), (None, "no answer yet")]
    for answer, said in cases:
        verdict = check(name, answer)
        assert not verdict
        assert said in repr(verdict)
    assert repr(check(name)) == f"○ {name}: no answer yet"


def test_every_stub_says_how_many_digits_are_asked_for():
    told = {}
    for chapter in sorted(BOOK.glob("*/*.md")):
        text = chapter.read_text(encoding="utf8")
        for stub in re.findall(r"^:tags: \[stub\]\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            told[re.search(r'check\("([\w-]+)"', stub)[1]] = stub
    assert sorted(told) == names()
    for name in names():
        asked = question(name)
        assert ("three digits" in told[name]) == (asked is not None and asked.digits == 3)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("log-rank-six", [0.6], "expected a number, got an array of shape (1,)"),
        ("log-rank-six", 0.63, "not a mistake known here"),
        ("log-rank-six", (0, 63), "shape (2,); write decimals with a point"),
        ("kaplan-meier-steps", [0, 83, 0, 67, 0, 44, 0, 0], "got 8; write decimals with a point"),
        ("kaplan-meier-steps", [1, np.inf, 0, 0], "NaN or infinity"),
        ("kaplan-meier-median", lambda t: 1, "raised TypeError"),
        ("kaplan-meier-median", lambda t, e: ..., "returns nothing"),
        ("kaplan-meier-median", lambda t, e: "soon", "expected a number, got str"),
        ("cox-loss-gradient", lambda f, t, e: 0.0, "expected shape (6,), got ()"),
        ("cox-loss-gradient", lambda f, t, e: f, "for the input"),
    ],
)
def test_odd_answers_get_a_clear_message(name, answer, said):
    assert said in repr(check(name, answer))


@pytest.mark.parametrize("call", [check, hint])
def test_an_unknown_name_is_refused_with_the_way_to_the_known_ones(call):
    with pytest.raises(ValueError, match=r"'kaplan'.*names\(\)"):
        call("kaplan")


def test_a_function_cannot_spoil_the_cases():
    def greedy(time, event):
        time[:] = 0
        return 0.0

    assert not check("kaplan-meier-median", greedy)
    assert check("kaplan-meier-median", survival.median)


def test_hints_go_from_gentle_to_telling():
    first, second = hint("log-rank-six"), hint("log-rank-six", 2)
    assert repr(first).startswith("Hint 1 (1 more): ") and repr(second).startswith("Hint 2: ")
    for number in (0, 3):
        with pytest.raises(ValueError, match="has hints 1 to 2"):
            hint("log-rank-six", number)
