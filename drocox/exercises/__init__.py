"""Exercises of the book that check themselves.

>>> from drocox.exercises import check, hint
>>> check("kaplan-meier-steps", ...)
○ kaplan-meier-steps: no answer yet

A check explains what is wrong with an answer and never gives the right one away. Its result is true
if the answer is right.
"""

from drocox.exercises._core import check, hint, hints, names, question

__all__ = ["QuizQuestion", "check", "hint", "hints", "names", "question", "quiz", "quiz_chapters"]


def __getattr__(name: str):
    """Load the quizzes when they are first used: they need torch, most checks do not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from drocox.exercises import quizzes

    return getattr(quizzes, name)
