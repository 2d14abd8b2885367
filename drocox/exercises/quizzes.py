"""A short quiz for every chapter of parts I and II.

The questions are in ``quiz_foundations.toml`` and ``quiz_method.toml``, a table for each chapter. A
question has a text in Markdown, and then either choices by letter, the right letter, and an
explanation of every other choice; or the right number, which a test compares with what the package
computes, and explanations of numbers that result from known mistakes.
:func:`drocox.exercises.check` grades both under names such as "quiz-dual-1".

>>> from drocox.exercises import quiz
>>> [question.name for question in quiz("dual")]
['quiz-dual-1', 'quiz-dual-2', 'quiz-dual-3', 'quiz-dual-4']
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from drocox.exercises._answers import UNKNOWN, Question, choice_question, numbers_question
from drocox.exercises._core import QUIZ, asks

FILES = ("quiz_foundations.toml", "quiz_method.toml")


@dataclass(frozen=True)
class QuizQuestion:
    """A question of a quiz."""

    name: str  # for :func:`drocox.exercises.check`
    text: str  # Markdown with formulas
    right: str | float
    shows: Mapping[str, str]  # what is said of each wrong letter or number
    choices: Mapping[str, str] = field(default_factory=dict)  # none if a number is asked for

    @property
    def question(self) -> Question:
        """The cases by which an answer is graded."""
        if self.choices:
            return choice_question(str(self.right), self.shows)
        mistakes = {says: float(value) for value, says in self.shows.items()}
        return numbers_question(self.right, mistakes, otherwise=UNKNOWN)


@cache
def quizzes() -> Mapping[str, list[QuizQuestion]]:
    """The questions of all quizzes by chapter, in their order."""
    by_chapter = {}
    for file in FILES:
        text = resources.files(__package__).joinpath(file).read_text("utf8")
        for chapter, tables in tomllib.loads(text).items():
            by_chapter[chapter] = [
                QuizQuestion(f"{QUIZ}{chapter}-{number}", **table)
                for number, table in enumerate(tables, start=1)
            ]
    return by_chapter


def quiz(chapter: str) -> list[QuizQuestion]:
    """The questions of a chapter's quiz."""
    if chapter not in quizzes():
        raise ValueError(f"chapter is {chapter!r}; those with a quiz: {', '.join(quizzes())}")
    return quizzes()[chapter]


for _questions in quizzes().values():
    for _question in _questions:
        asks(_question.name, _question.question)
