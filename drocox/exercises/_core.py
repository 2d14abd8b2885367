"""Grading: an answer is compared with the right one and with known mistakes.

What is asked for has a ``grade``: it takes an answer and returns an explanation of what is wrong,
or None. The modules beside this one have the exercises, each module those of some chapters, and
register them by :func:`asks`.
"""

import importlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from drocox.exercises._answers import (
    CROSS,
    HELP,
    MARKS,
    NO_ANSWER,
    NO_VALUE,
    NOT_FINITE,
    RIGHT,
    UNKNOWN,
    Question,
    letters_question,
    numbers_question,
    parts_question,
)

# in this order: an exercise of the first two is found without torch
MODULES = ("survival", "worst_case", "metrics", "training", "experiments", "beyond", "quizzes")
QUIZ = "quiz-"  # how the names of quiz questions begin
# Words of NumPy's and Python's errors about an empty list, which say little to a beginner.
EMPTY = ("zero-size array", "with size 0", "empty sequence", "is empty", "list index out of range")


@dataclass(frozen=True)
class Verdict:
    """The result of a check; true if the answer is right."""

    right: bool
    text: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.text


_asked: dict[str, "Question | FunctionExercise"] = {}  # what has a ``grade`` for an answer


@cache
def _hints() -> Mapping[str, list[str]]:
    return tomllib.loads(resources.files(__package__).joinpath("hints.toml").read_text("utf8"))


def names() -> list[str]:
    """The names of all exercises with a check, without those of the quizzes."""
    for module in MODULES:
        importlib.import_module(f"drocox.exercises.{module}")
    return sorted(name for name in _asked if not name.startswith(QUIZ))


def _load(name: str) -> None:
    """Import modules until one has an exercise of this name."""
    for module in MODULES:
        if name in _asked:
            return
        importlib.import_module(f"drocox.exercises.{module}")
    if name not in _asked:
        raise ValueError(f"no exercise is called {name!r}; drocox.exercises.names() lists them")


def check(name: str, answer: object = ...) -> Verdict:
    """Grade an answer: a number, an array or a function, as the exercise asks.

    The answer ``...`` means that there is none yet. The result is true if the answer is right; it
    is shown as one line that explains what is wrong, if anything.
    """
    _load(name)
    if answer is ... or answer is None:
        says = NO_ANSWER
    else:
        says = _asked[name].grade(answer) or RIGHT
    mark = MARKS.get(says, CROSS)
    return Verdict(says == RIGHT, f"{mark} {name}: {says}")


def hint(name: str, number: int = 1) -> Verdict:
    """A hint for an exercise; number 1 is the gentlest, larger numbers give away more."""
    known = hints(name)
    if not known:
        mark = MARKS[NO_ANSWER]
        return Verdict(
            False, f"{mark} {name}: a quiz has no hints; check() explains a wrong answer"
        )
    if not 1 <= number <= len(known):
        raise ValueError(f"number is {number}; {name!r} has hints 1 to {len(known)}")
    more = f" ({len(known) - number} more)" if number < len(known) else ""
    return Verdict(True, f"Hint {number}{more}: {known[number - 1]}")


def difference(answer: object, right: object, atol: float) -> str | None:
    """How the value returned by a function differs from the right one."""
    right = np.asarray(right, float)
    try:
        answer = np.asarray(answer, float)
    except (TypeError, ValueError, RuntimeError):  # the last: a tensor with a gradient
        kind = "a number" if right.ndim == 0 else f"an array of {right.size} numbers"
        return f"expected {kind}, got {type(answer).__name__}"
    if answer.shape != right.shape:
        return f"expected shape {right.shape}, got {answer.shape}"
    if not np.isfinite(answer[np.isfinite(right)]).all():
        return NOT_FINITE
    if np.allclose(answer, right, rtol=0, atol=atol):
        return None
    return UNKNOWN + HELP


def _shown(case: tuple) -> str:
    """The arguments of a case, as a reader sees them."""
    return ", ".join(np.array2string(np.asarray(a), precision=3) for a in case)


def _failed(error: Exception, case: tuple) -> str:
    """What a reader is told whose function raises an error."""
    if any(words in str(error) for words in EMPTY):
        return (
            f"for the input {_shown(case)}: your function takes an element, or the smallest or "
            "largest, of a list that is empty; what should it return then?"
        )
    return f"your function raised {type(error).__name__}: {error}"


def asks(name: str, asked: "Question | FunctionExercise") -> None:
    """Register an exercise under the name that the book uses; ``hints.toml`` has its hints."""
    if name in _asked:
        raise ValueError(f"two exercises are called {name!r}")
    _asked[name] = asked


def asks_numbers(name: str, right: object, mistakes: Mapping[str, object], **how: Any) -> None:
    """Register an exercise whose answer is one or several numbers, see :func:`numbers_question`."""
    asks(name, numbers_question(right, mistakes, **how))


def asks_parts(name: str, parts: Mapping[str, tuple[float, Mapping]], **how: Any) -> None:
    """Register an exercise for numbers that are graded one by one, see :func:`parts_question`."""
    asks(name, parts_question(parts, **how))


def asks_letters(name: str, right: str, wrong: Mapping[str, str]) -> None:
    """Register a choice of several letters, see :func:`letters_question`."""
    asks(name, letters_question(right, wrong))


def question(name: str) -> Question | None:
    """The cases by which a page grades an exercise.

    None if the answer is a function, which only a notebook can grade.
    """
    _load(name)
    asked = _asked[name]
    return asked if isinstance(asked, Question) else None


def hints(name: str) -> list[str]:
    """All hints of an exercise, the gentlest first; a question of a quiz has none."""
    _load(name)
    return [] if name.startswith(QUIZ) else _hints()[name]


@dataclass(frozen=True)
class FunctionExercise:
    """An exercise whose answer is a function: the right one, and known mistakes.

    Calling the exercise calls the right function.
    """

    right: Callable
    cases: Sequence[tuple]  # arguments with which an answer is called
    atol: float
    near: float  # a function whose values are as near as this is told that it is not exact
    mistakes: dict[str, Callable] = field(default_factory=dict)

    def __call__(self, *arguments, **options):
        return self.right(*arguments, **options)

    def mistake(self, text: str) -> Callable[[Callable], Callable]:
        """Register a wrong function that a reader may have written, with its explanation."""

        def register(function: Callable) -> Callable:
            self.mistakes[text] = function
            return function

        return register

    def grade(self, answer: object) -> str | None:
        """An explanation of what is wrong with an answer, found by calling it on each case.

        That of a mistake if the answer agrees with it on all cases; None if nothing is wrong.
        """
        if not callable(answer):
            return f"expected a function, got {type(answer).__name__}; pass it without calling it"
        given = []
        for case in self.cases:
            arguments = [np.array(a) if isinstance(a, np.ndarray) else a for a in case]
            try:
                value = answer(*arguments)
            except Exception as error:  # whatever a reader's code raises is an answer to tell about
                return _failed(error, case)
            if value is None or value is ...:
                return NO_VALUE
            given.append(value)

        def differences(function, atol=self.atol):
            """The cases in which the answer differs from this function, and how."""
            told = [
                (case, difference(value, function(*case), atol))
                for case, value in zip(self.cases, given, strict=True)
            ]
            return [(case, wrong) for case, wrong in told if wrong]

        off = differences(self.right)
        if not off:
            return None
        for text, mistake in self.mistakes.items():
            if not differences(mistake):
                return text
        if self.near and not differences(self.right, self.near):
            by = f"within {self.near:g}, as by a search"
            return f"close, but not exact: {by}, and {self.atol:g} is asked"
        case, wrong = off[0]
        return f"for the input {_shown(case)}: {wrong}"


def asks_function(
    name: str, cases: Sequence[tuple], *, atol: float = 1e-6, near: float = 0.0
) -> Callable[[Callable], FunctionExercise]:
    """Register the right answer of an exercise that asks for a function.

    The result has the decorator :meth:`~FunctionExercise.mistake` for wrong answers.
    """

    def register(right: Callable) -> FunctionExercise:
        asked = FunctionExercise(right, cases, atol, near)
        asks(name, asked)
        return asked

    return register
