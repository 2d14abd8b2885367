"""The model of a tail's risk: the first stage's steps, and who is on the wrong side of the edge."""

import numpy as np
import pytest
from scipy.optimize import minimize
from test_solver import states

from drocox import tail


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("mu", [1.0, 0.1, 0.01, 0.001])
def test_steps_at_a_price_reach_the_minimum_of_the_smooth_model(mu, split):
    for state in states("cvar", split)[1]:
        model = tail.Model(state.at)
        hessian = state.hessian + 1e-6 * np.eye(3)

        def smooth(step, model=model, hessian=hessian):
            return model._smooth(step, hessian, mu)[:2]

        step, q, _ = model._priced_steps(np.zeros(3), hessian, mu)
        smallest = minimize(smooth, np.zeros(3), jac=True, options={"gtol": 1e-9}).fun
        assert smooth(step)[0] <= smallest + tail.PRICED_DROP * mu
        for part in model.problem.parts:
            assert q[part].sum() == pytest.approx(1)


@pytest.fixture
def nobody_on_the_edge():
    """A model, and the q of the fifth with the largest losses, each at its most."""
    problem, points = states("cvar", alpha=0.2)
    model = tail.Model(points[1].at)
    highest = problem.mass * problem.cap
    worst = np.argsort(-model.at.losses)[:8]
    q = np.zeros(40)
    q[worst] = highest[worst]
    assert q.sum() == pytest.approx(1)
    return model, q, highest, worst


def wrong_side(model, losses, q, highest):
    nobody = np.array([], int)
    no_level = np.array([np.nan])
    return sorted(model._wrong_side(losses, no_level, q, highest, nobody))


@pytest.mark.parametrize("shift", [0.0, 100.0, -100.0])
def test_a_level_between_in_and_out_has_nobody_on_the_wrong_side(nobody_on_the_edge, shift):
    model, q, highest, _ = nobody_on_the_edge
    assert wrong_side(model, model.at.losses + shift, q, highest) == []


@pytest.mark.parametrize("shift", [0.0, 100.0, -100.0])
def test_two_who_changed_sides_are_on_the_wrong_one(nobody_on_the_edge, shift):
    model, q, highest, worst = nobody_on_the_edge
    losses = model.at.losses + shift
    inside = worst[-1]
    outside = losses.argmin()
    losses[inside], losses[outside] = losses[outside], losses[inside]
    assert {inside, outside} <= set(wrong_side(model, losses, q, highest))
