"""Exercises of the book that check themselves.

>>> from drocox.exercises import check, hint
>>> check("kaplan-meier-steps", ...)
○ kaplan-meier-steps: no answer yet

A check explains what is wrong with an answer and never gives the right one away. Its result is true
if the answer is right.
"""

from drocox.exercises._core import check, hint, hints, names, question
from drocox.exercises.quizzes import QuizQuestion, quiz

__all__ = ["QuizQuestion", "check", "hint", "hints", "names", "question", "quiz"]
