"""Coordinates without correlation and units: what they promise."""

import numpy as np
import pytest

import drocox
from drocox.coordinates import uncorrelated

N = 60


def features(strata: bool):
    """Columns in three units, one of them twice, in the order of the risk sets; and strata."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, 3)) @ rng.standard_normal((3, 3)) * [1.0, 100.0, 0.01] + 5.0
    X = np.column_stack([X, 2 * X[:, 0]])
    labels = np.arange(N) % 2 if strata else np.zeros(N, int)
    risk = drocox.risk_sets(np.arange(N) + 1.0, np.ones(N, bool), strata=labels)
    order = risk.order[0]
    return X[order], risk, labels[order]


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
    apart = X @ made.back - made.Z  # a constant in each stratum, which changes no loss
    for label in np.unique(labels):
        np.testing.assert_allclose(np.ptp(apart[labels == label], axis=0), 0.0, atol=1e-8)


def test_with_a_penalty_copies_share_so_that_coefficients_are_smallest():
    X, risk, _ = features(strata=False)
    made = uncorrelated(X, risk, np.ones(N), 0.5)
    nothing = np.array([2.0, 0.0, 0.0, -1.0])  # changes no score
    np.testing.assert_allclose(nothing @ made.back, 0.0, atol=1e-9)
