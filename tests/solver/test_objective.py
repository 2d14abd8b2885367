"""Value, gradient, Hessian and lower bound of the risk at a point, and the smoothed worst case."""

import fuzz_solver
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from test_newton import literal_losses, patients

import drocox
from drocox.dual import RULES
from drocox.solver import minimise, objective
from drocox.solver.coordinates import Coordinates


def states(rule, split=False, weights=None, mu=1e-3, alpha=0.3, penalty=0.0):
    """A problem and its state at a few points."""
    Z, time, event, first = patients(8, n=40, d=3, distinct=25)
    risk = drocox.risk_sets(time, event)
    order = risk.order[0]
    weights = np.ones(40) if weights is None else weights
    first = first[order] if split else None
    coordinates = Coordinates(Z[order], np.eye(3))
    problem = objective.Problem(coordinates, risk, weights[order], first, alpha, rule, penalty)
    rng = np.random.default_rng(2)
    points = [scale * rng.standard_normal(3) for scale in (0, 0.2, 1.0)]
    return problem, [objective.Smoothed(problem.at(point), mu) for point in points]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_the_bound_is_below_the_minimum_of_the_weighted_risk(rule, split):
    problem, found = states(rule, split)
    first = problem.first
    time, event = problem.risk_sets.time[0], problem.event
    for state in found:

        def mean(theta, q=state.q):
            losses, slopes = literal_losses(problem.Z, time, event, theta, first)
            return q @ losses, q @ slopes

        np.testing.assert_allclose(mean(state.point)[0], state.value, rtol=1e-12)
        np.testing.assert_allclose(mean(state.point)[1], state.gradient, atol=1e-12)
        smallest = minimize(mean, state.point, jac=True, options={"gtol": 1e-9}).fun
        fixed, _ = state.hessian_parts
        assert state.bound() <= smallest + 1e-12
        # a gradient made a thousand times smaller stands for a point near the minimum
        state.gradient = state.gradient / 1000
        lost = state.value - state.bound()
        assert 0 <= lost <= state.gradient @ np.linalg.solve(fixed, state.gradient)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("rule", ["paper", "sharp"])
def test_the_hessian_equals_automatic_differentiation(rule, split, weighted):
    if split and weighted:
        return
    weights = np.random.default_rng(5).choice([0.5, 1.0, 3.0], 40) if weighted else None
    problem, found = states(rule, split, weights, mu=1e-9)
    risk = drocox.risk_sets(problem.risk_sets.time[0], problem.event)
    first = problem.first
    w = problem.weights if weighted else None

    def value(theta):
        scores = torch.from_numpy(problem.Z) @ theta
        if split:
            losses = drocox.split_cox_losses(scores, risk, first=first)
            return sum(drocox.dro_risk(losses[h], 0.3, rule=rule) for h in (first, ~first))
        losses = drocox.cox_losses(scores, risk, weights=w)
        return drocox.dro_risk(losses, 0.3, rule=rule, weights=w)

    for state in found[1:]:
        assert not state.smoothed
        point = torch.from_numpy(state.point)
        assert state.at.risk == pytest.approx(float(value(point)), rel=1e-12)
        expected = torch.autograd.functional.hessian(value, point).numpy()
        np.testing.assert_allclose(sum(state.hessian_parts), expected, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_the_hessian_of_the_smoothed_risk_equals_finite_differences(rule):
    problem, _ = states(rule, mu=0.5, alpha=0.1)
    point = np.array([0.3, -0.2, 0.1])
    state = objective.Smoothed(problem.at(point), 0.5)
    assert state.smoothed
    step = 1e-6
    for j in range(3):
        shift = step * np.eye(3)[j]
        up = objective.Smoothed(problem.at(point + shift), 0.5)
        down = objective.Smoothed(problem.at(point - shift), 0.5)
        assert (up.minimised - down.minimised) / 2 / step == pytest.approx(
            state.gradient[j], abs=1e-7
        )
        slope = (up.gradient - down.gradient) / 2 / step
        np.testing.assert_allclose(sum(state.hessian_parts)[j], slope, atol=1e-6)


@given(st.integers(0, 10**6), st.sampled_from([2.0, 5.0, np.inf]), st.floats(1e-9, 10))
def test_the_smoothed_worst_case_is_optimal(seed, cap, mu):
    rng = np.random.default_rng(seed)
    losses = rng.choice([0.0, 1.0, 1.0 + 1e-9, 3.0], 9) + rng.choice([0.0, 0.1], 9)
    mass = rng.dirichlet(np.ones(9)) * 0.9 + 0.1 / 9
    ratio, _ = objective.smoothed_worst_case(losses, mass, mu, cap)
    q = mass * ratio
    assert q.sum() == pytest.approx(1, abs=1e-14)
    assert (q >= 0).all() and (q <= mass * cap * (1 + 1e-12)).all()
    # optimal: nobody with room for more gains more than somebody who could give
    gain = losses - mu * q / mass
    receives = gain[q < mass * cap * (1 - 1e-9)].max(initial=-np.inf)
    assert receives <= gain[q > 0].min() + 1e-9 * max(1, mu)


# The bound at its limits --------------------------------------------------------------------------


def one_feature(died, plus, minus):
    """One event time: features of the deaths, and of ``plus`` survivors at +1, ``minus`` at -1."""
    z = np.array([*died, *([1.0] * plus), *([-1.0] * minus)])
    time = np.array([1.0] * len(died) + [2.0] * (plus + minus))
    event = time == 1
    risk = drocox.risk_sets(time, event)
    order = risk.order[0]
    Z = z[order, None]
    problem = objective.Problem(
        Coordinates(Z - Z.mean(), np.eye(1)), risk, np.ones(len(z)), None, 1.0, "sharp"
    )
    return problem, z[:, None], time, event


@pytest.mark.slow
def test_every_finite_bound_is_below_the_minimum():
    """In a skewed risk set the third derivative is close to its bound."""
    problem, z, time, event = one_feature([-1.0] * 99 + [1.0], 100, 2)
    p = np.full(len(z), 1 / len(z))
    smallest = minimize(lambda t: p @ literal_losses(z, time, event, t)[0], [0.0], tol=1e-12).fun
    given = 0
    for theta in np.linspace(-6, 3, 201):
        weighted = objective.Weighted(problem.at(np.array([theta])), p)
        bound = weighted.bound()
        given += np.isfinite(bound)
        assert bound <= smallest + 1e-12
    assert given > 20


def test_there_is_no_bound_if_a_slope_has_no_curvature():
    problem, z, *_ = one_feature([1.0, 1.0, 1.0, -1.0], 8, 10)
    p = np.full(len(z), 1 / len(z))
    far = objective.Weighted(problem.at(np.array([-60.0])), p)
    assert far.hessian[0, 0] < 1e-40 and abs(far.gradient[0]) > 0.1
    assert far.bound() == -np.inf


def test_the_bound_allows_negative_losses_of_weights_below_one():
    risk = drocox.risk_sets([1, 2, 3], [1, 1, 1])
    found = minimise([[3.0], [2.0], [1.0]], risk, 1, weights=np.full(3, 0.6))
    assert found.separated
    assert found.bound <= np.log(0.6) + 1e-12  # the infimum, attained by no coefficients
    assert found.risk > found.bound - 1e-12


@pytest.mark.parametrize("rule", RULES)
def test_the_bound_of_separated_data_is_the_worst_case_of_log_weights(rule):
    """Patients who die in the order of their scores, far apart, have losses of log w."""
    weights = np.array([0.7, 3.5, 1.0, 2.0, 1.5])
    risk = drocox.risk_sets(np.arange(1.0, 6.0), np.ones(5))
    found = minimise(-np.arange(5.0)[:, None], risk, 0.3, rule=rule, weights=weights)
    mass = weights / weights.sum()
    expected, _ = fuzz_solver.literal_worst(np.log(weights), mass, 0.3, rule)
    assert found.separated
    assert found.bound == pytest.approx(expected, abs=1e-8)
    assert found.gap <= 1e-6
