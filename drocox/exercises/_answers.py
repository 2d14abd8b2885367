"""Answers that are data: numbers, or a choice among letters.

Such an exercise is a list of cases in order. A case has a sentence and, for every number of the
answer, the values that match it, each with a tolerance. The first case that matches gives the
verdict. The built page grades by the same list, as JSON (``book/_static/exercises.js``), so that
page and notebook give the same verdicts.

Numbers are asked for with three significant digits. With ``u`` one unit in the third digit of the
right value, an answer within ``u`` of it is right, even if it was truncated rather than rounded.
A known mistake comes next. The right value rounded to two digits is "right as far as it goes"; one
digit fits too many answers to be called right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

DIGITS = 3
RIGHT = "right"
ROUNDED = "right as far as it goes, but give three digits"
COARSE = "one digit cannot tell this from a wrong answer: give three"
UNKNOWN = "not right, and not one of the mistakes we anticipated"
HELP = "; a hint helps"
NO_ANSWER = "no answer yet"
NO_VALUE = "the function returns nothing yet"
MARKS = {
    RIGHT: "✓",
    ROUNDED: "≈",
    COARSE: "≈",
    NO_ANSWER: "○",
    NO_VALUE: "○",
}  # anything else that is said has a cross
CROSS = "✗"
NOT_FINITE = "the answer holds NaN or infinity"
COMMA = "; write decimals with a point, such as 0.25"
EXACT = 1e-6  # tolerance of whole numbers, which are not rounded

# A value that counts, and how far from it an answer may be.
Value = tuple[float, float]
Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Case:
    """A sentence, and the answers to which it applies.

    ``numbers`` has an entry for every number of an answer: the matching values, or None for any
    number.
    """

    says: str
    numbers: tuple[tuple[Value, ...] | None, ...]

    def fits(self, answer: Numbers) -> bool:
        """Whether the case matches this answer."""
        return all(
            values is None or any(abs(given - value) <= off for value, off in values)
            for given, values in zip(answer, self.numbers, strict=True)
        )


@dataclass(frozen=True)
class Question:
    """An exercise whose answer is data."""

    kind: str  # "numbers", "several" (some of the labels are ticked) or "one" (of the letters)
    labels: tuple[str, ...]  # of each number, or the letters; none for a single number
    cases: tuple[Case, ...]  # the first that fits an answer gives the verdict
    otherwise: str  # the verdict if none fits
    letters: bool = False
    digits: int | None = None

    @property
    def expected(self) -> str:
        """The kind of answer that is asked for, in words."""
        if self.kind == "one":
            return f"expected one of the letters {', '.join(self.labels)}"
        if self.letters:
            return 'expected letters in one string such as "ab"'
        return f"expected {len(self.labels)} numbers" if self.labels else "expected a number"

    def grade(self, answer: object) -> str | None:
        """An explanation of what is wrong with an answer; None if nothing is."""
        numbers = self._read_letters(answer) if self.letters else self._read_numbers(answer)
        if isinstance(numbers, str):
            return numbers
        if not np.isfinite(numbers).all():
            return NOT_FINITE
        says = next((case.says for case in self.cases if case.fits(numbers)), self.otherwise)
        return None if says == RIGHT else says

    def _read_numbers(self, answer: object) -> Numbers | str:
        """The numbers of an answer, or a message if their number is wrong."""
        if isinstance(answer, str):
            return f"{self.expected}, got text"
        if isinstance(answer, Sequence) and any(isinstance(part, str) for part in answer):
            return f'{self.expected}, got text in a list: write 1 / 4 and not "1/4"'
        try:
            numbers = np.asarray(answer, float)
        except (TypeError, ValueError, RuntimeError):  # the last: a tensor with a gradient
            return f"{self.expected}, got {type(answer).__name__}"
        shape = (len(self.labels),) if self.labels else ()
        if numbers.shape == shape:
            return np.atleast_1d(numbers)
        # 0,446 is two numbers in Python
        comma = COMMA if numbers.shape == (2 * max(len(self.labels), 1),) else ""
        if self.labels and numbers.ndim == 1:
            return f"{self.expected}, got {numbers.size}{comma}"
        return f"{self.expected}, got an array of shape {numbers.shape}{comma}"

    def _read_letters(self, answer: object) -> Sequence[float] | str:
        """1 for each chosen letter, 0 for the others; for a choice of one, its position."""
        if not isinstance(answer, str):
            return f"{self.expected}, got {type(answer).__name__}"
        taken = set(answer.lower()) - set(" ,()")
        if not taken <= set(self.labels):
            return f"the letters are {', '.join(self.labels)}"
        if self.kind == "several":
            return [float(letter in taken) for letter in self.labels]
        if len(taken) != 1:
            return f"{self.expected}, got {len(taken)}"
        return [float(self.labels.index(taken.pop()))]

    def data(self) -> dict:
        """The data with which the page grades an answer, as plain lists and mappings."""
        return {
            "kind": self.kind,
            "labels": self.labels,
            "digits": self.digits,
            "expected": self.expected,
            "noAnswer": NO_ANSWER,
            "notFinite": NOT_FINITE,
            "marks": MARKS,
            "cross": CROSS,
            "otherwise": self.otherwise,
            "cases": [{"says": case.says, "numbers": case.numbers} for case in self.cases],
        }


def unit(value: float, digits: int) -> float:
    """One unit in the last significant digit of a value; 0 counts as if it began at 0.1."""
    first = floor(log10(abs(value)) + 1e-12) if value else -1
    return 10.0 ** (first - digits + 1)


def near(value: float, digits: int | None) -> Value:
    """A value and its tolerance for the number of digits that is asked for; None: exact."""
    off = EXACT if digits is None else 1.001 * unit(value, digits)
    return float(value), off


def rounded(value: float, digits: int) -> list[Value]:
    """The possible results of rounding to some significant digits: up or down if it is halfway."""
    step = unit(value, digits)
    below = floor(value / step)
    multiples = [below * step, (below + 1) * step]
    return [(m, 1e-6 * step) for m in multiples if abs(m - value) <= (0.5 + 1e-9) * step]


def _or_rounded(values: Numbers, digits: int | None, fewer: Sequence[int]):
    """For each value, the value with its tolerance or rounded to fewer digits."""
    numbers = []
    for value in values:
        fits = [near(value, digits)]
        if digits is not None:
            for number in fewer:
                fits += rounded(value, number)
        numbers.append(tuple(fits))
    return tuple(numbers)


def numbers_question(
    right: object,
    mistakes: Mapping[str, object],
    *,
    labels: Sequence[str] = (),
    digits: int | None = DIGITS,
    otherwise: str = UNKNOWN + HELP,
) -> Question:
    """A question for one or several numbers, whose known mistakes concern the whole answer.

    A mistake with three digits is tested before the right answer with two, and a mistake with two
    before the right answer with one.

    ``mistakes`` maps an explanation to the value of each known mistake, ``labels`` name several
    numbers, and ``digits`` is None for whole numbers.
    """
    right = np.atleast_1d(np.asarray(right, float))
    wrong = {says: np.atleast_1d(np.asarray(value, float)) for says, value in mistakes.items()}
    cases = [Case(RIGHT, _or_rounded(right, digits, []))]
    cases += [Case(says, _or_rounded(value, digits, [])) for says, value in wrong.items()]
    if digits is not None:
        cases.append(Case(ROUNDED, _or_rounded(right, digits, [2])))
        cases += [Case(says, _or_rounded(value, digits, [2])) for says, value in wrong.items()]
        cases.append(Case(COARSE, _or_rounded(right, digits, [2, 1])))
    return Question("numbers", tuple(labels), tuple(cases), otherwise, digits=digits)


def parts_question(
    parts: Mapping[str, tuple[float, Mapping[Any, str]]],
    *,
    digits: int | None = DIGITS,
    kind: str = "numbers",
) -> Question:
    """A question for several numbers that are graded one by one: the first wrong one is explained.

    ``parts`` has for each label the right value and the explanations of known mistakes. With the
    kind "several" the numbers are 0 or 1, and labels are ticked.
    """
    right = [value for value, _ in parts.values()]
    exact = _or_rounded(right, digits, [])
    two = _or_rounded(right, digits, [2])
    fewer = _or_rounded(right, digits, [2, 1])
    cases = [Case(RIGHT, exact)]
    # From the last number to the first: if all those before a number are right, it is this one.
    places = list(reversed(list(enumerate(parts.items()))))

    def known(rounding):
        for place, (label, (_, mistakes)) in places:
            after = (None,) * (len(parts) - place - 1)
            for value, says in mistakes.items():
                wrong = _or_rounded([value], digits, rounding)
                cases.append(Case(f"{label}: {says}", fewer[:place] + wrong + after))

    known([])
    if digits is not None:
        cases.append(Case(ROUNDED, two))
        known([2])
        cases.append(Case(COARSE, fewer))
    for place, (label, _) in places:
        after = (None,) * (len(parts) - place)
        cases.append(Case(f"{label}: {UNKNOWN}{HELP}", fewer[:place] + after))
    return Question(kind, tuple(parts), tuple(cases), UNKNOWN, digits=digits)


def letters_question(right: str, wrong: Mapping[str, str]) -> Question:
    """A choice of several letters, such as "ad"; the first wrong one is explained."""
    truth = [float(letter in right) for letter in wrong]
    cases = [Case(RIGHT, _or_rounded(truth, None, []))]
    for place, says in reversed(list(enumerate(wrong.values()))):
        before = _or_rounded(truth[:place], None, [])
        after = (None,) * (len(wrong) - place)
        cases.append(Case(says, before + after))
    return Question("several", tuple(wrong), tuple(cases), UNKNOWN, letters=True)


def choice_question(right: str, shows: Mapping[str, str]) -> Question:
    """A choice of one letter; ``shows`` has the explanation of every wrong one."""
    letters = tuple(sorted({right, *shows}))
    cases = []
    for place, letter in enumerate(letters):
        says = RIGHT if letter == right else shows[letter]
        cases.append(Case(says, (((float(place), EXACT),),)))
    return Question("one", letters, tuple(cases), UNKNOWN, letters=True)
