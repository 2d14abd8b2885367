"""Every check of an exercise passes the right answer and tells a reader what a mistake is.

Right answers are the solutions in the chapters, which are executed. Wrong ones are in ``answers/``,
a file for each module of checks: plain code as a reader would write it, apart from the checks' own.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from answers import beyond, experiments, metrics, survival, training, worst_case

from drocox.exercises import check, hint, hints, names, question

BOOK = Path(__file__).resolve().parents[2] / "book"
MODULES = survival, metrics, worst_case, training, experiments, beyond
WRONG = {name: answers for module in MODULES for name, answers in module.WRONG.items()}
QUESTIONS = {name: question(name) for name in names()}  # None: the answer is a function
NUMBERS = [name for name, asked in QUESTIONS.items() if asked is not None and not asked.letters]


def right_numbers(name):
    """The right answer of an exercise that asks for numbers."""
    asked = QUESTIONS[name]
    values = [numbers[0][0] for numbers in asked.cases[0].numbers]
    return np.array(values if asked.labels else values[0])


def test_every_exercise_has_hints_and_every_wrong_answer_an_exercise():
    assert all(hints(name) for name in names())
    assert set(WRONG) <= set(names())


def test_every_solution_in_a_chapter_is_called_right():
    """As its notebook shows; that it still does is seen where notebooks are executed."""
    solved = set()
    for path in BOOK.glob("*/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
            for output in cell.get("outputs", ()):
                text = "".join(output.get("data", {}).get("text/plain", ()))
                solved |= set(re.findall(r"^✓ ([\w-]+): right$", text, re.MULTILINE))
    assert solved == set(names())


@pytest.mark.parametrize(("name", "answer"), survival.ALSO_RIGHT + worst_case.ALSO_RIGHT)
def test_other_ways_to_the_right_answer_pass(name, answer):
    verdict = check(name, answer)
    assert verdict, verdict


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
    right = right_numbers(name)

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


@pytest.mark.parametrize("name", WRONG)
def test_each_known_mistake_is_explained(name):
    for answer, fragment in WRONG[name]:
        verdict = check(name, answer)
        assert not verdict
        assert fragment in verdict.text


@pytest.mark.parametrize("name", names())
def test_hints_and_verdicts_do_not_contain_the_answer(name):
    said = hints(name)
    assert len(set(said)) == len(said)
    if name not in NUMBERS:
        return
    text = " ".join([*said, *(check(name, answer).text for answer, _ in WRONG.get(name, ()))])
    found = np.array(re.findall(r"(?<![\d.])\d+\.?\d*", text.replace(name, "")), float)
    for value in set(np.ravel(right_numbers(name))) - {0, 1, 2, 0.5}:  # no news in a text
        assert np.abs(found - value).min(initial=np.inf) > 5e-3 * abs(value)


@pytest.mark.parametrize("name", names())
def test_answers_of_another_kind_are_told_what_is_expected(name):
    if QUESTIONS[name] is None:
        cases = [(1.0, "expected a function"), (lambda *given: None, "returns nothing")]
        cases.append((lambda *given: 1 / 0, "your function raised ZeroDivisionError"))
    elif name not in NUMBERS:
        cases = [(1, "expected letters in one string"), ("z", "the letters are")]
    else:
        shape = right_numbers(name).shape
        kind = f"{shape[0]} numbers" if shape else "a number"
        cases = [("soon", f"expected {kind}, got text"), ({}, f"expected {kind}, got dict")]
        cases.append((np.zeros(99), f"expected {kind}, got "))
        cases.append((np.zeros((9, 9)), f"expected {kind}, got an array of shape (9, 9)"))
        cases.append((np.full(shape, np.nan), "NaN or infinity"))
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
        ("log-rank-six", 0.63, "not one of the mistakes we anticipated"),
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


def test_a_quiz_has_no_hints_and_says_so():
    for number in (1, 2):
        verdict = hint("quiz-dual-1", number)
        assert not verdict and "a quiz has no hints" in repr(verdict)
    assert hints("quiz-dual-1") == []
