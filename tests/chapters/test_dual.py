"""Drawings and values of the chapter on the dual."""

import numpy as np
import pytest

from drocox.bookstyle import SIX
from drocox.chapters import dual as chapter

LOSSES = np.log([10 / 4, 1, 4 / 1, 3 / 2, 1, 1])


@pytest.fixture(scope="module")
def solutions():
    return chapter.solve(LOSSES)


def test_solutions_lie_on_the_edge_of_the_ball(solutions):
    for alpha, (eta, risk, q) in solutions.items():
        assert q @ LOSSES == pytest.approx(risk)
        assert q.sum() == pytest.approx(1)
        if alpha == 0.1:
            assert eta == risk == LOSSES.max()
        else:
            assert 6 * (q**2).sum() == pytest.approx(1 / alpha)
            assert q == pytest.approx(np.maximum(LOSSES - eta, 0) / (LOSSES - eta).clip(0).sum())


def test_the_bottom_of_the_objective_is_the_risk(solutions):
    for alpha, (eta, risk, _) in solutions.items():
        assert chapter.objective(np.array([eta]), LOSSES, alpha) == pytest.approx(risk)


def test_minima_and_weights_are_drawn(solutions):
    left, right = chapter.draw_six(LOSSES, SIX.index, solutions).axes
    dots = [line for line in left.lines if line.get_marker() == "o"]
    assert [dot.get_ydata()[0] for dot in dots] == [solutions[a][1] for a in (0.3, 0.5, 0.8)]
    heights = [bar.get_height() for bar in right.patches]
    assert heights[:2] == pytest.approx([200 / 3, 100 / 3])  # C, then A
    assert [label.get_text() for label in right.get_xticklabels()] == list("CADBEF")


def test_sentences_are_held(solutions):
    chapter.tell_six(LOSSES, solutions)
    eta, risk, q = solutions[0.5]
    wrong = solutions | {0.5: (eta, risk + 0.1, q)}
    with pytest.raises(AssertionError, match="attain the risk"):
        chapter.tell_six(LOSSES, wrong)
    with pytest.raises(AssertionError, match="two to one"):
        chapter.tell_six(LOSSES, solutions | {0.3: solutions[0.5]})
    with pytest.raises(AssertionError, match="negative"):
        chapter.tell_six(LOSSES, solutions | {0.5: solutions[0.3]})
