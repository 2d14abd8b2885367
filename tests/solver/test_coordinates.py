"""Coordinates without correlation and units: what they promise."""

import numpy as np
import pytest

import drocox
from drocox.solver.coordinates import uncorrelated

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
def test_covariance_and_penalty_together_are_the_unit_matrix(penalty, strata):
    X, risk, _ = features(strata)
    made = uncorrelated(X, risk, np.ones(N), penalty)
    together = made.Z.T @ made.Z / N + penalty * made.back.T @ made.back
    np.testing.assert_allclose(together, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_scores_are_those_of_the_coefficients(penalty, strata):
    X, risk, labels = features(strata)
    made = uncorrelated(X, risk, np.ones(N), penalty)
    order = risk.order[0]
    apart = X[order] @ made.back - made.Z  # a constant in each stratum, which changes no loss
    for label in np.unique(labels):
        np.testing.assert_allclose(np.ptp(apart[labels[order] == label], axis=0), 0.0, atol=1e-8)


def test_with_a_penalty_copies_share_so_that_coefficients_are_smallest():
    X, risk, _ = features(strata=False)
    made = uncorrelated(X, risk, np.ones(N), 0.5)
    nothing = np.array([2.0, 0.0, 0.0, -1.0])  # changes no score
    np.testing.assert_allclose(nothing @ made.back, 0.0, atol=1e-9)


def test_columns_that_rounding_cannot_tell_apart_are_named():
    """Beside an outlier of 1e17 a difference of 1e-6 is less than its rounding."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(N)
    X = np.column_stack([np.ones(N), a, rng.standard_normal(N), (1 + 1e-6) * a])
    X[11, [1, 3]] = 1e17
    risk = drocox.risk_sets(np.arange(N) + 1.0, np.ones(N, bool))
    with pytest.raises(ValueError, match=r"columns 1 and 3 .* rounding of row 11; clip"):
        uncorrelated(X, risk, np.ones(N), 0.0)


def test_a_sum_of_columns_is_a_copy_where_some_patients_are_zero():
    """Their own sum has no rounding, that of the others has."""
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((N, 3))) * [1000.0, 10000.0, 1000.0]
    X[:5] = 0.0
    X = np.column_stack([X, X @ [0.1, 0.7, -0.3] / 7e5])
    risk = drocox.risk_sets(np.arange(N) + 1.0, np.ones(N, bool))
    assert uncorrelated(X, risk, np.ones(N), 0.0).Z.shape[1] == 3
