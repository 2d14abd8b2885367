"""Whitened features: unit covariance, unchanged scores, copies recognised."""

import numpy as np
import pytest

import drocox
from drocox.solver.coordinates import whitened

N = 60


def features(strata: bool):
    """Columns in three units, one of them twice; risk sets; and strata."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, 3)) @ rng.standard_normal((3, 3)) * [1.0, 100.0, 0.01] + 5.0
    X = np.column_stack([X, 2 * X[:, 0]])
    labels = np.arange(N) % 2 if strata else np.zeros(N, int)
    risk = drocox.risk_sets(np.arange(N) + 1.0, np.ones(N, bool), strata=labels)
    return X, risk, labels


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 1e-3, 0.5, 2.0, 1e4])
def test_covariance_plus_penalty_is_the_unit_matrix(penalty, strata):
    X, risk, _ = features(strata)
    made = whitened(X, risk, np.ones(N), penalty)
    together = made.Z.T @ made.Z / N + penalty * made.back.T @ made.back
    np.testing.assert_allclose(together, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_points_and_coefficients_have_the_same_scores(penalty, strata):
    X, risk, labels = features(strata)
    made = whitened(X, risk, np.ones(N), penalty)
    order = risk.order[0]
    apart = X[order] @ made.back - made.Z  # a constant in each stratum, which changes no loss
    for label in np.unique(labels):
        np.testing.assert_allclose(np.ptp(apart[labels[order] == label], axis=0), 0.0, atol=1e-8)


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
