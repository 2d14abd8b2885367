"""Features of any unit, copies and sums of columns, constant columns, and shared outliers."""

import numpy as np
import pytest
from test_newton import EVENT, RISK, TIME, X, made_up

import drocox
from drocox.solver import minimise
from drocox.solver.coordinates import whitened

N = 60


def test_columns_that_differ_only_by_rounding_are_refused_by_number():
    """Beside an outlier of 1e17 a difference of 1e-6 is less than its rounding."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(N)
    X = np.column_stack([np.ones(N), a, rng.standard_normal(N), (1 + 1e-6) * a])
    X[11, [1, 3]] = 1e17
    risk = drocox.risk_sets(np.arange(N) + 1.0, np.ones(N, bool))
    with pytest.raises(ValueError, match=r"columns 1 and 3 .* rounding of row 11; clip"):
        whitened(X, risk, np.ones(N), 0.0)


def test_a_sum_of_columns_is_recognised_with_rows_of_zeros():
    """The sum is rounded, except for the rows of zeros."""
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((N, 3))) * [1000.0, 10000.0, 1000.0]
    X[:5] = 0.0
    X = np.column_stack([X, X @ [0.1, 0.7, -0.3] / 7e5])
    risk = drocox.risk_sets(np.arange(N) + 1.0, np.ones(N, bool))
    assert whitened(X, risk, np.ones(N), 0.0).Z.shape[1] == 3


def test_with_ridge_copies_have_minimum_norm_and_constants_coefficient_zero():
    wide = np.column_stack([X[:, :3], 2 * X[:, 0], np.ones(len(X))])
    found = minimise(wide, RISK, 0.3, penalty=0.01)
    assert found.coef[3] == pytest.approx(2 * found.coef[0])  # the smallest with these scores
    assert found.coef[4] == 0
    scaled = np.column_stack([X[:, 0] * np.sqrt(5), X[:, 1:3]])  # one column in place of both
    alone = minimise(scaled, RISK, 0.3, penalty=0.01)
    assert found.risk == pytest.approx(alone.risk, abs=1e-10)


def test_without_ridge_copies_contribute_equally_to_scores():
    copies = np.column_stack([X[:, :2], 1000 * X[:, 0]])
    found = minimise(copies, RISK, 0.3)
    assert found.coef[0] == pytest.approx(1000 * found.coef[2], rel=1e-6)
    alone = minimise(X[:, :2], RISK, 0.3)
    assert 2 * found.coef[0] == pytest.approx(alone.coef[0], rel=1e-6)


def test_a_feature_constant_within_strata_has_coefficient_zero():
    site = np.arange(len(X)) % 3
    wide = np.column_stack([X, site == 1, site / 3])
    found = minimise(wide, drocox.risk_sets(TIME, EVENT, strata=site), 0.3)
    alone = minimise(X, drocox.risk_sets(TIME, EVENT, strata=site), 0.3)
    assert found.coef[7:].tolist() == [0, 0]
    np.testing.assert_allclose(found.coef[:7], alone.coef, atol=1e-7)


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
