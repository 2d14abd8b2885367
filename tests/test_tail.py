"""The model of a tail's risk: the first stage's steps, and who is on the wrong side of the edge."""

import numpy as np
import pytest
from scipy.optimize import minimize
from test_solver import states

from drocox import risk_sets
from drocox.solver import minimise, tail


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
        for part in model.parts:
            assert q[part].sum() == pytest.approx(1)


@pytest.fixture
def nobody_on_the_edge():
    """A model, and the q of the fifth with the largest losses, each at its most."""
    problem, points = states("cvar", alpha=0.2)
    model = tail.Model(points[1].at)
    highest = model.mass * problem.cap
    worst = np.argsort(-model.losses)[:8]
    q = np.zeros(len(highest))
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
    assert wrong_side(model, model.losses + shift, q, highest) == []


@pytest.mark.parametrize("shift", [0.0, 100.0, -100.0])
def test_two_who_changed_sides_are_on_the_wrong_one(nobody_on_the_edge, shift):
    model, q, highest, worst = nobody_on_the_edge
    losses = model.losses + shift
    inside = worst[-1]
    outside = losses.argmin()
    losses[inside], losses[outside] = losses[outside], losses[inside]
    assert {inside, outside} <= set(wrong_side(model, losses, q, highest))


@pytest.mark.parametrize("split", [False, True])
def test_the_censored_stand_as_one_in_each_half(split):
    problem, points = states("cvar", split, alpha=0.9)
    model = tail.Model(points[1].at)
    hessian = points[1].hessian + 1e-6 * np.eye(3)
    events = problem.event.sum()
    assert len(model.losses) == events + len(problem.parts)
    minimum = model.minimum(hessian, 0.1)
    for part in problem.parts:
        assert minimum.q[part].sum() == pytest.approx(1)
        assert np.ptp(minimum.q[part][~problem.event[part]]) == pytest.approx(0, abs=1e-15)
    assert (minimum.q <= problem.mass * problem.cap * (1 + 1e-12)).all()


def test_a_tail_with_thousands_of_censored_on_its_edge():
    """Together they fill the tail; one by one they would make a system of 14,000 equations."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20_000, 3))
    time = rng.exponential(np.exp(-Z[:, 0]))
    event = rng.random(20_000) < 0.3
    found = minimise(Z, risk_sets(time, event), 0.5, rule="cvar")
    assert found.gap <= 1e-9
    mean = minimise(Z, risk_sets(time, event), 1)  # all losses are in the tail, the rest is 0
    assert found.risk == pytest.approx(mean.risk / 0.5, abs=1e-9)
