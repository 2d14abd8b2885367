"""The instructor's guide: answers that go wrong, what the checks say to them, and a question each.

The answers are given to :func:`drocox.exercises.check`, so the guide's table says what a student
reads.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from IPython.display import HTML

from drocox.bookstyle import SIX, guard, say
from drocox.exercises import check, hint, names


def all_at_risk() -> np.ndarray:
    """Cox losses of the six patients for hazards 2**(-x), with everybody in every risk set.

    Returns
    -------
    array of shape (6,)
    """
    hazards = 0.5 ** SIX["x"].to_numpy()
    return SIX["event"].to_numpy() * np.log(hazards.sum() / hazards)


def everybody_active(losses: np.ndarray, c: float) -> float:
    """The dual variable η as if every patient had weight: mean less a multiple of the SD.

    Parameters
    ----------
    losses : array
    c : float
        Dual constant.

    Returns
    -------
    float
    """
    return losses.mean() - np.sqrt(losses.var() / (c**2 - 1))


def equal_above(losses: np.ndarray, eta: float) -> np.ndarray:
    """Equal weights for all losses above η.

    Parameters
    ----------
    losses : array
    eta : float

    Returns
    -------
    array
    """
    above = losses > eta
    return above / above.sum()


class Misconception(NamedTuple):
    """A wrong answer to an exercise, in words and as given to the check, and a question."""

    exercise: str
    given: str
    answer: object
    ask: str


WRONG = [
    Misconception(
        "kaplan-meier-steps",
        "the curve of those who died",
        [0.75, 0.5, 0.25, 0],
        "Whom does a curve without the censored describe?",
    ),
    Misconception(
        "cox-loss-six",
        "all six in each sum",
        all_at_risk(),
        "When the last patient dies, who could have been next?",
    ),
    Misconception(
        "curves-notice",
        "every change, by every metric",
        [3, 3, 3, 3],
        "Which metrics see ranks, which see hazards?",
    ),
    Misconception(
        "fair-zero",
        "all six are 0",
        [1, 1, 1, 1, 1, 1],
        "Whom does smoothing add to a group of three? To one of 300?",
    ),
    Misconception(
        "base-repair",
        "a shift changes nothing",
        [1, 0.5, 1, 0.5],
        "What does the loss not see that the penalty sees?",
    ),
    Misconception(
        "worst-case-share",
        "α",
        lambda alpha: alpha,
        "Which group of share 5 % lies in the ball for α = 0.2?",
    ),
    Misconception(
        "dual-weights",
        "equal weight for all above η",
        equal_above,
        "Where does Cauchy–Schwarz become an equality?",
    ),
    Misconception(
        "dual-eta",
        "mean minus a multiple of the SD of everybody",
        everybody_active,
        "May a patient below η enter the mean?",
    ),
    Misconception(
        "who-censored-weight", "none", 0.0, "Who pays for the weight of a patient without loss?"
    ),
    Misconception(
        "who-effective-size",
        "the number with weight",
        np.count_nonzero,
        "99 % on one patient: is a step worth two?",
    ),
    Misconception("dro-cox-valid", "a, b and d", "abd", "Change one outcome: whose losses move?"),
    Misconception(
        "split-company",
        "also who shares the half of A",
        "abc",
        "Given the other half, what is random?",
    ),
    Misconception(
        "optimum-cvar", "only α = 1", 1.0, "How much weight may all deaths together have?"
    ),
    Misconception(
        "own-data-many", "5 %", 0.05, "Twenty hospitals, nothing wrong: how many letters are sent?"
    ),
]


def reply(wrong: Misconception) -> str:
    """What the check says to a wrong answer.

    Parameters
    ----------
    wrong : Misconception

    Returns
    -------
    str
    """
    verdict = check(wrong.exercise, wrong.answer)
    words = repr(verdict)
    known = not verdict and "not a mistake known" not in words
    guard(known, f"{wrong.exercise} is among the answers that the checks know")
    return words.removeprefix(f"✗ {wrong.exercise}: ")


def misconceptions() -> HTML:
    """The table of wrong answers, with what the checks say and a question for the board.

    Returns
    -------
    HTML
    """
    rows = []
    for wrong in WRONG:
        answer = f"<code>{wrong.exercise}</code>: {wrong.given}"
        rows.append([answer, reply(wrong), wrong.ask])
    table = pd.DataFrame(rows, columns=["exercise: answer", "the check says", "ask the room"])
    return HTML(table.to_html(index=False, border=0, escape=False, classes="misconceptions"))


def hints(name: str) -> int:
    """How many hints an exercise has.

    Parameters
    ----------
    name : str

    Returns
    -------
    int
    """
    number = 0
    while True:
        try:
            hint(name, number + 1)
        except ValueError:
            return number
        number += 1


def tell_counts() -> None:
    """The sentences on how many exercises check themselves, and with how many hints."""
    by_exercise = [hints(name) for name in names()]
    guard(min(by_exercise) >= 2, "every check has a second hint for those who ask for more")
    say("guide-checks", len(by_exercise))
    say("guide-hints", sum(by_exercise))
    say("guide-known", len(WRONG))
