"""Drawings and values of the chapter on the dual."""

import numpy as np
import pytest
import torch

import drocox
from drocox.bookstyle import SIX
from drocox.chapters import dual as chapter

LOSSES = np.log([10 / 4, 1, 4 / 1, 3 / 2, 1, 1])


def solve(alpha):
    losses = torch.tensor(LOSSES)
    eta = drocox.optimal_eta(losses, drocox.dual_constant(alpha, rule="sharp")).item()
    risk = drocox.dro_risk(losses, alpha, rule="sharp").item()
    return eta, risk, drocox.worst_case_weights(losses, alpha, rule="sharp").numpy()


@pytest.fixture(scope="module")
def solutions():
    return {alpha: solve(alpha) for alpha in chapter.ALPHAS}


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.8])
def test_weights_are_derivatives_of_the_objective(alpha):
    eta = np.array([-0.5, 0.2])
    step = 1e-6
    for i in range(6):
        move = step * (np.arange(6) == i)
        up = chapter.objective(eta, LOSSES + move, alpha)
        down = chapter.objective(eta, LOSSES - move, alpha)
        slope = (up - down) / (2 * step)
        expected = chapter.weights(eta, LOSSES, alpha)[:, i]
        # at a loss equal to eta there is a kink, which none of these eta meets
        assert slope == pytest.approx(expected, abs=1e-6)


def test_the_bottom_of_the_objective_is_the_risk(solutions):
    for alpha, (eta, risk, q) in solutions.items():
        if alpha == 0.1:
            continue  # the objective falls to the largest loss, where weights are not defined
        at = np.array([eta])
        assert chapter.objective(at, LOSSES, alpha) == pytest.approx(risk)
        assert chapter.weights(at, LOSSES, alpha)[0] == pytest.approx(q)


def test_minima_and_weights_are_drawn(solutions):
    left, right = chapter.draw_six(LOSSES, SIX.index, solutions).axes
    dots = [line for line in left.lines if line.get_marker() == "o"]
    assert [dot.get_ydata()[0] for dot in dots] == [solutions[a][1] for a in (0.3, 0.5, 0.8)]
    heights = [bar.get_height() for bar in right.patches]
    assert heights[:2] == pytest.approx([200 / 3, 100 / 3])  # C, then A
    assert [label.get_text() for label in right.get_xticklabels()] == list("CADBEF")


def test_sentences_are_held(solutions):
    chapter.tell_six(LOSSES, solutions)
    wrong = solutions | {0.3: solutions[0.5]}
    with pytest.raises(AssertionError, match="the package's"):
        chapter.tell_six(LOSSES, wrong)


def test_sliders_hold_the_weights(solutions):
    first = chapter.objective_slider(LOSSES, solutions)
    second = chapter.weights_slider(LOSSES, SIX.index)
    assert "sum of weights" in first.markup
    assert f"{solutions[0.3][1]:.3f}" in first.markup
    assert "dual-objective" in second.markup
    with pytest.raises(AssertionError, match="less than the smallest"):
        higher = {alpha: (eta, risk + 1, q) for alpha, (eta, risk, q) in solutions.items()}
        chapter.objective_slider(LOSSES, higher)
