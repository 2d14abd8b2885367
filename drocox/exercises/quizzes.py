"""A short quiz for every chapter of parts I and II.

The questions are in ``quiz_foundations.toml`` and ``quiz_method.toml``, a table for each chapter. A
question has a text in Markdown, and then either choices by letter, the right letter, and an
explanation of every other choice; or the name of a number of :func:`numbers`, and explanations of
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

import numpy as np
import torch

from drocox import breslow_survival, cox, dro, regularizers
from drocox.exercises._answers import UNKNOWN, Question, choice_question, numbers_question
from drocox.exercises._core import QUIZ, asks
from drocox.exercises.survival import EVENT, IN_A, SCORES, TIME

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
        known = numbers()
        mistakes = {says: known[value] for value, says in self.shows.items()}
        return numbers_question(self.right, mistakes, otherwise=UNKNOWN)


def _equal_scores(time, event) -> np.ndarray:
    """Cox losses if all scores are equal."""
    scores = torch.zeros(len(time), dtype=torch.float64)
    return cox.cox_losses(scores, time, event).numpy()


def _kaplan_meier(time, event, at) -> float:
    """The share alive after some time."""
    alive = 1.0
    for day in np.unique(time[event]):
        if day <= at:
            alive *= 1 - (event & (time == day)).sum() / (time >= day).sum()
    return alive


def _penalty_gradient(hazards) -> np.ndarray:
    """Derivatives of the penalty I (Keya) with gamma = 0 with respect to the scores."""
    scores = torch.tensor(np.log(hazards), requires_grad=True)
    penalty = regularizers.individual_keya(scores.exp(), np.eye(len(hazards)), 0.0)
    return torch.autograd.grad(penalty, scores)[0].numpy()


@cache
def numbers() -> Mapping[str, float]:
    """The computed numbers of the quizzes: right answers, and the results of known mistakes."""
    e_dies = EVENT.copy()
    e_dies[4] = True
    stayed = np.arange(6) != 1
    equal = _equal_scores(TIME, EVENT)
    in_b = _equal_scores(TIME[~IN_A], EVENT[~IN_A])
    first = breslow_survival(torch.tensor(SCORES), TIME, EVENT, torch.tensor(SCORES), [2.0])
    of_a = float(first[0, 0])
    pull = _penalty_gradient([3.0, 1.0])
    two = np.arange(6) < 2  # A and B
    zero = torch.zeros(6, dtype=torch.float64)
    in_company = float(cox.split_cox_losses(zero, TIME, EVENT, two)[0])
    return {
        "km_e_dies": _kaplan_meier(TIME, e_dies, 9.0),
        "km_e_leaves": _kaplan_meier(TIME, EVENT, 9.0),
        "km_seen_alive": 1 / 6,
        "km_without_b": _kaplan_meier(TIME[stayed], e_dies[stayed], 9.0),
        "d_equal": equal[3],
        "d_all_at_risk": np.log(6),
        "d_without_own": np.log(2),
        "d_probability": 1 / 3,
        "d_no_log": 3.0,
        "down_one": np.exp(-1),
        "unchanged": 1.0,
        "up_one": np.exp(1),
        "minus_one": -1.0,
        "a_alive": of_a,
        "hazard_one_alive": of_a**0.25,
        "a_dead": 1 - of_a,
        "a_linear": 1 + np.log(of_a),
        "cell_smoothed": (3 + 0.5) / 2,
        "cell_printed": 3.0,
        "cell_not_counted": 3.5,
        "cell_no_hazard": 1.5,
        "push_both": pull.sum(),
        "push_larger": pull[0],
        "push_undivided": 2.0,
        "nothing": 0.0,
        "radius_sharp": dro.dual_constant(0.2, rule="sharp") ** 2 - 1,
        "radius_definition": dro.dual_constant(0.2, rule="definition") ** 2 - 1,
        "radius_paper": dro.dual_constant(0.2, rule="paper") ** 2 - 1,
        "inverse_share": 5.0,
        "active": 100 / 4,
        "active_root": 100 / 2,
        "active_constant": 4.0,
        "effective": 6000 / dro.dual_constant(0.5, rule="paper") ** 2,
        "effective_sharp": 6000 / dro.dual_constant(0.5, rule="sharp") ** 2,
        "effective_root": 6000 / dro.dual_constant(0.5, rule="paper"),
        "company": equal[3] - in_b[1],
        "company_all": equal[3],
        "company_alone": in_b[1],
        "two_split": in_company,
        "two_cox": equal[0],
        "two_without_own": np.log(4),
        "two_own_half": _equal_scores(TIME[two], EVENT[two])[0],
        "two_no_log": np.exp(in_company),
        "offset": np.log(0.1),
        "offset_turned": -np.log(0.1),
        "offset_other": np.log(0.9),
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
    right = table["right"] if choices else float(numbers()[table["right"]])
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
