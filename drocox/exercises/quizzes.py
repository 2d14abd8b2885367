"""A short quiz for every chapter of parts I and II.

The questions are in ``quiz_foundations.toml`` and ``quiz_method.toml``, a table for each chapter. A
question has a text in Markdown, and then either choices by letter, the right letter, and an
explanation of every other choice; or the name of one of the :data:`NUMBERS`, and explanations of
numbers that result from known mistakes. :func:`drocox.exercises.check` grades both under names such
as "quiz-dual-1".

>>> from drocox.exercises import quiz
>>> [question.name for question in quiz("dual")]
['quiz-dual-1', 'quiz-dual-2', 'quiz-dual-3', 'quiz-dual-4']
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import exp, log, sqrt

from drocox.exercises._answers import UNKNOWN, Question, choice_question, numbers_question
from drocox.exercises._core import QUIZ, asks

FILES = ("quiz_foundations.toml", "quiz_method.toml")


@dataclass(frozen=True)
class QuizQuestion:
    """A question of a quiz."""

    name: str  # for :func:`drocox.exercises.check`
    text: str  # Markdown with formulas
    choices: Mapping[str, str]  # by letter; empty if a number is asked for
    right: str | float
    shows: Mapping[str, str]  # what is said of each wrong letter, or of a mistake's value

    @property
    def question(self) -> Question:
        """The cases by which an answer is graded."""
        if self.choices:
            return choice_question(self.right, self.shows)
        mistakes = {says: NUMBERS[value] for value, says in self.shows.items()}
        return numbers_question(self.right, mistakes, otherwise=UNKNOWN)


# The numbers of the quizzes, right answers and the results of known mistakes, in their order. Tests
# compare the right ones with what the package computes.
NUMBERS = {
    # A and D die; a step for C; C at risk in month 8; two of six; B gone from the start
    "km_c_leaves": 5 / 6 * 2 / 3,
    "km_c_dies": 5 / 6 * 3 / 4 * 2 / 3,
    "km_c_stays": 5 / 6 * 3 / 4,
    "km_seen_alive": 2 / 6,
    "km_without_b": 4 / 5 * 2 / 3,
    # D and E with the hazard 2 and F with 1/2 are at risk in month 8
    "d_beside_e": log(4.5 / 2),
    "d_as_it_is": log(3 / 2),
    "d_all_at_risk": log(11.5 / 2),
    "d_without_own": log(2.5 / 2),
    "d_probability": 2 / 4.5,
    "d_no_log": 4.5 / 2,
    "down_one": exp(-1),
    "unchanged": 1.0,
    "up_one": exp(1),
    "minus_one": -1.0,
    # the hazard of A is 4 of 10
    "a_alive": exp(-4 / 10),
    "hazard_one_alive": exp(-1 / 10),
    "a_dead": 1 - exp(-4 / 10),
    "a_linear": 1 - 4 / 10,
    "cell_smoothed": (3 + 0.5) / 2,
    "cell_printed": 3.0,
    "cell_not_counted": 3.5,
    "cell_no_hazard": 1.5,
    # hazards 3 and 1: their difference is divided by n (n - 1)
    "push_both": 3 / 2 - 1 / 2,
    "push_larger": 3 / 2,
    "push_undivided": 2.0,
    "nothing": 0.0,
    # 1/alpha - 1, its square and twice its square
    "radius_sharp": 11.5,
    "radius_definition": 11.5**2,
    "radius_paper": 2 * 11.5**2,
    "inverse_share": 12.5,
    "active": 100 / 4,
    "active_root": 100 / 2,
    "active_constant": 4.0,
    # c² is 3 with the paper's constant, 2 with the sharp one
    "effective": 6000 / 3,
    "effective_sharp": 6000 / 2,
    "effective_root": 6000 / sqrt(3),
    # D among three, or among two of its own group
    "company": log(3) - log(2),
    "company_all": log(3),
    "company_alone": log(2),
    # A and the four of the other part
    "two_split": log(5),
    "two_cox": log(6),
    "two_without_own": log(4),
    "two_own_half": log(2),
    "two_no_log": 5.0,
    "offset": log(0.1),
    "offset_turned": -log(0.1),
    "offset_other": log(0.9),
    "offset_ten": -1.0,
}


@cache
def _quizzes() -> Mapping[str, list[QuizQuestion]]:
    by_chapter = {}
    for file in FILES:
        text = resources.files(__package__).joinpath(file).read_text("utf8")
        for chapter, tables in tomllib.loads(text).items():
            by_chapter[chapter] = [
                _read(f"{QUIZ}{chapter}-{number}", table)
                for number, table in enumerate(tables, start=1)
            ]
    return by_chapter


def _read(name: str, table: Mapping) -> QuizQuestion:
    """A question from its table."""
    choices = table.get("choices", {})
    right = table["right"] if choices else NUMBERS[table["right"]]
    return QuizQuestion(name, table["question"], choices, right, table["shows"])


def quiz_chapters() -> list[str]:
    """The chapters that have a quiz, in their order."""
    return list(_quizzes())


def quiz(chapter: str) -> list[QuizQuestion]:
    """The questions of a chapter's quiz."""
    if chapter not in _quizzes():
        raise ValueError(f"chapter is {chapter!r}; those with a quiz: {', '.join(_quizzes())}")
    return _quizzes()[chapter]


for _questions in _quizzes().values():
    for _question in _questions:
        asks(_question.name, _question.question)
