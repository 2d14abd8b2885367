"""Whitened features: copies and sums recognised, columns that rounding makes alike refused."""

import numpy as np
import pytest

import drocox
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
