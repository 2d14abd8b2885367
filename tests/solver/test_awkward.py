"""Ridge penalty, strata, awkward data, and the certificate at its limits."""

import fuzz_solver
import numpy as np
import pytest
from scipy.optimize import minimize
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv
from test_newton import EVENT, RISK, RULES, TIME, X, literal_losses

import drocox
from drocox.solver import minimise, objective
from drocox.solver import newton as solver
from drocox.solver.coordinates import Coordinates, whitened


def made_up(n, d, seed=0, events=0.5):
    """Patients whose first feature matters."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d))
    time = rng.exponential(np.exp(-0.7 * Z[:, 0]))
    event = rng.random(n) < events
    event[0] = True
    return Z, time, event


# Ridge ------------------------------------------------------------------------------------------


def test_ridge_with_more_columns_than_patients_equals_scikit_survival():
    Z, time, event = made_up(40, 100)
    Z[:, ::3] *= 5.0  # features as given: units matter
    found = minimise(Z, drocox.risk_sets(time, event), 1, penalty=0.05)
    peer = CoxPHSurvivalAnalysis(alpha=0.05 * 40, tol=1e-14, n_iter=500)
    expected = peer.fit(Z, Surv.from_arrays(event, time)).coef_
    np.testing.assert_allclose(found.coef, expected, atol=1e-5)
    assert found.gap <= 1e-9 and not found.separated


def test_with_ridge_copies_have_minimum_norm_and_constants_coefficient_zero():
    wide = np.column_stack([X[:, :3], 2 * X[:, 0], np.ones(len(X))])
    found = minimise(wide, RISK, 0.3, penalty=0.01)
    assert found.coef[3] == pytest.approx(2 * found.coef[0])  # the smallest with these scores
    assert found.coef[4] == 0
    scaled = np.column_stack([X[:, 0] * np.sqrt(5), X[:, 1:3]])  # one column in place of both
    alone = minimise(scaled, RISK, 0.3, penalty=0.01)
    assert found.risk == pytest.approx(alone.risk, abs=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_ridge_gives_separated_data_a_minimum(rule):
    late = np.column_stack([X, TIME == TIME.max()]).astype(float)
    assert minimise(late, RISK, 0.3, rule=rule).separated
    found = minimise(late, RISK, 0.3, rule=rule, penalty=1e-3)
    assert found.gap <= 1e-6 and not found.separated
    assert np.abs(found.coef).max() < 20


@pytest.mark.parametrize("rule", ["sharp", "cvar"])
def test_ridge_with_many_columns_is_certified(rule):
    Z, time, event = made_up(198, 80, events=0.26)
    found = minimise(Z, drocox.risk_sets(time, event), 0.3, rule=rule, penalty=0.01)
    assert found.gap <= 1e-6 and not found.separated


def test_more_columns_than_patients_are_reported_as_separated_quickly():
    Z, time, event = made_up(60, 90)
    for rule in ("sharp", "cvar"):
        found = minimise(Z, drocox.risk_sets(time, event), 0.3, rule=rule)
        assert found.separated and found.n_iter < 30


@pytest.mark.parametrize(("penalty", "error"), [(-1.0, ValueError), ("x", TypeError)])
def test_bad_penalties_are_refused(penalty, error):
    with pytest.raises(error, match=r"penalty must be a .*number >= 0"):
        minimise(X, RISK, 1, penalty=penalty)


def test_without_ridge_copies_contribute_equally_to_scores():
    copies = np.column_stack([X[:, :2], 1000 * X[:, 0]])
    found = minimise(copies, RISK, 0.3)
    assert found.coef[0] == pytest.approx(1000 * found.coef[2], rel=1e-6)
    alone = minimise(X[:, :2], RISK, 0.3)
    assert 2 * found.coef[0] == pytest.approx(alone.coef[0], rel=1e-6)


def test_the_gap_is_relative_to_risks_above_one():
    found = minimise(X, RISK, 1, n_iter=1)
    assert found.risk > max(1.0, found.bound)
    assert found.gap == pytest.approx((found.risk - found.bound) / found.risk, rel=1e-9)


def test_the_gap_is_absolute_for_risks_below_one():
    risk = drocox.risk_sets([4, 3, 2, 1], [0, 1, 0, 1])
    found = minimise([[0.0], [5.0], [1.0], [3.0]], risk, 0.5, rule="cvar", n_iter=1)
    assert found.bound < found.risk < 1
    assert found.gap == pytest.approx(found.risk - found.bound, rel=1e-9)


@pytest.mark.parametrize("rule", ["sharp", "cvar"])
def test_at_least_one_step_is_taken(rule):
    found = minimise(X, RISK, 0.3, rule=rule, n_iter=0)
    assert found.n_iter == 1
    assert not found.separated


# Strata -----------------------------------------------------------------------------------------


def test_a_feature_constant_within_strata_has_coefficient_zero():
    site = np.arange(len(X)) % 3
    wide = np.column_stack([X, site == 1, site / 3])
    found = minimise(wide, drocox.risk_sets(TIME, EVENT, strata=site), 0.3)
    alone = minimise(X, drocox.risk_sets(TIME, EVENT, strata=site), 0.3)
    assert found.coef[7:].tolist() == [0, 0]
    np.testing.assert_allclose(found.coef[:7], alone.coef, atol=1e-7)


def test_starting_from_a_sample_works_with_strata(monkeypatch):
    risk = drocox.risk_sets(TIME, EVENT, strata=np.arange(len(X)) % 3)
    expected = minimise(X, risk, 0.2)
    monkeypatch.setattr(solver, "SAMPLE", 40)
    np.testing.assert_allclose(minimise(X, risk, 0.2).coef, expected.coef, atol=1e-6)


# Awkward data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.1, 1 / 3, -0.3, 1e9 + 0.1])
def test_constant_columns_have_coefficient_zero(value):
    column = np.full(len(X), value)
    last_digit = column.copy()
    last_digit[::7] = np.nextafter(value, 2 * value)
    found = minimise(np.column_stack([X, column, last_digit]), RISK, 0.2)
    assert found.coef[7:].tolist() == [0, 0]
    np.testing.assert_allclose(found.coef[:7], minimise(X, RISK, 0.2).coef, atol=1e-9)


def test_a_column_that_varies_only_outside_risk_sets_has_coefficient_zero():
    """Patients of weight 0, and those censored before the first event, are in no risk set."""
    weights = np.ones(len(X))
    weights[:5] = 0
    column = np.where(weights == 0, 3.0, 0.1)
    found = minimise(np.column_stack([X, column]), RISK, 0.2, weights=weights)
    assert found.coef[7] == 0


@pytest.mark.parametrize("unit", [1e-170, 1e-12, 1e12, 1e170, 1e300])
@pytest.mark.parametrize("rule", ["sharp", "cvar"])
def test_units_of_any_size_give_the_same_model(unit, rule):
    expected = minimise(X, RISK, 0.3, rule=rule)
    found = minimise(X * unit, RISK, 0.3, rule=rule)
    np.testing.assert_allclose(found.coef * unit, expected.coef, atol=1e-6)
    assert found.gap <= 1e-9


@pytest.mark.parametrize("far", [1e4, 1e6, 1e8, 1e10, 1e12, 1e14])
@pytest.mark.parametrize("alpha", [1, 0.3])
def test_columns_that_share_an_outlier_are_not_taken_for_copies(far, alpha):
    """Their difference, as a column of its own, has the same models and so the same minimum."""
    Z, time, event = made_up(80, 3)
    Z[7, :2] = far
    apart = Z.copy()
    apart[:, 0] -= Z[:, 1]
    risk = drocox.risk_sets(time, event)
    found = minimise(Z, risk, alpha)
    expected = minimise(apart, risk, alpha)
    if far <= 1e7:  # farther out no model is best: the outlier's hazard goes to 0
        assert found.gap <= 1e-9 and not found.separated
    assert found.bound <= expected.risk + 1e-9
    assert found.risk == pytest.approx(expected.risk, abs=1e-8)


@pytest.mark.parametrize("share", [0.3, 0.7])
@pytest.mark.parametrize("code", [1e9, 1e13])
def test_columns_that_share_a_missing_value_code_are_not_taken_for_copies(code, share):
    """The difference of the columns is 0 where the code stands, and matters elsewhere."""
    Z, time, event = made_up(200, 3)
    Z[np.random.default_rng(1).random(200) < share, :2] = code
    apart = Z.copy()
    apart[:, 0] -= Z[:, 1]
    risk = drocox.risk_sets(time, event)
    found = minimise(Z, risk, 0.3)
    expected = minimise(apart, risk, 0.3)
    assert found.bound <= expected.risk + 1e-9
    assert found.risk == pytest.approx(expected.risk, abs=1e-8)


@pytest.mark.parametrize("far", [1.0, 1e8, 1e12])
@pytest.mark.parametrize("penalty", [0.0, 0.01])
def test_copies_are_recognised_despite_rounding(far, penalty):
    """Sums and multiples of columns, an outlier among them, have no direction of their own.

    Beside an outlier of 1e14 the others' entries of an eigenvector have no digits left, and it
    depends on the processor's rounding whether a copy is seen.
    """
    Z, time, event = made_up(80, 3)
    Z[7, 0] = far
    made = Z @ [[0.3, 1 / 3], [-1.7, 1 / 7], [2.9, 1e-3]]
    risk = drocox.risk_sets(time, event)
    coordinates = whitened(np.column_stack([Z, made, Z[:, 1] / 3]), risk, np.ones(80), penalty)
    assert coordinates.Z.shape[1] == 3


def test_starting_from_a_sample_works_with_an_outlier(monkeypatch):
    """The sample's optimum may put an outlier's score out of range."""
    Z, time, event = made_up(400, 2)
    Z[time.argmin() - 1 if time.argmin() % 4 == 0 else time.argmin(), 0] = -1e5
    risk = drocox.risk_sets(time, event)
    monkeypatch.setattr(solver, "SAMPLE", 40)
    found = minimise(Z, risk, 0.3)
    assert found.gap <= 1e-6 or found.separated


def test_an_outlier_whose_score_leaves_the_range_is_refused_by_row_and_column():
    """The best model puts an outlier, who dies first, more than 600 from the others."""
    problem = fuzz_solver.draw_problem(527)
    distance = np.abs(problem["X"] - np.median(problem["X"], axis=0))
    far = distance / np.median(distance, axis=0)
    row, column = np.unravel_index(far.argmax(), far.shape)
    with pytest.raises(ValueError, match=f"outlier in column {column}, row {row}: .*clip or tran"):
        fuzz_solver.solve(problem)


@pytest.mark.parametrize("rule", ["sharp", "cvar"])
def test_a_penalty_too_small_for_separated_data_is_refused(rule):
    """No patient is an outlier: the scores of all of them spread."""
    time = np.arange(1.0, 61.0)
    risk = drocox.risk_sets(time, np.ones(60))
    with pytest.raises(ValueError, match=r"nearly perfectly: with penalty=1e-08 .*larger penalty"):
        minimise(-time[:, None], risk, 0.3, rule=rule, penalty=1e-8)


# The certificate at its limits --------------------------------------------------------------------


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


def test_steps_continue_while_scores_move_far():
    """With units of 1e-13 and a small penalty, steps with a small decrease may move scores far."""
    assert fuzz_solver.judge(747, others=False) == "certified"


def test_patients_in_no_risk_set_have_no_influence():
    """An outlier of weight 0, whose score would leave the range of floating-point numbers."""
    assert fuzz_solver.judge(147, others=False) == "certified"


@pytest.mark.parametrize("seed", range(25))
def test_random_problems_equal_literal_formulas(seed):
    """The first of the random problems of ``fuzz_solver.py``."""
    assert fuzz_solver.judge(seed, others=False) in ("certified", "separated")
