"""Critical values of intervals that hold together, against theory and simulation."""

import numpy as np
import pytest
from scipy import stats

from drocox.heldout.intervals import jackknife, simultaneous


def test_critical_values_equal_theory_and_simulation():
    assert simultaneous(np.eye(1), 9)[0] == pytest.approx(stats.t.ppf(0.975, 9))
    assert simultaneous(4 * np.eye(1), 9)[1] == pytest.approx(2 * np.sqrt(2 / np.pi))
    for k in (2, 5):
        exact = stats.norm.ppf((1 + 0.95 ** (1 / k)) / 2)
        critical, floor = simultaneous(np.eye(k), 1e9)
        assert critical == pytest.approx(exact, abs=0.03)
        draws = np.abs(np.random.default_rng(1).standard_normal((100_000, k)))
        assert floor == pytest.approx(draws.max(axis=1).mean(), rel=0.02)
        critical, floor = simultaneous(4 * np.ones((k, k)), 1e9)
        assert critical == pytest.approx(1.96, abs=0.03)
        assert floor == pytest.approx(2 * np.sqrt(2 / np.pi), rel=0.02)
    critical, floor = simultaneous(np.diag([1.0, 0.0]), 1e9)
    assert critical == pytest.approx(1.96, abs=0.03)
    assert floor == pytest.approx([np.sqrt(2 / np.pi), 0], rel=0.02)


def test_each_estimate_has_degrees_of_freedom_of_its_own():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((200, 2))
    x[3:, 1] = 0  # three patients decide
    df = jackknife((x.sum(axis=0) - x) / 199)[1]
    assert df[0] > 50 and df[1] < 3
    together = simultaneous(np.eye(2), df)[0]
    assert together[0] == simultaneous(np.eye(2), df[0])[0][0]
    assert together[1] == simultaneous(np.eye(2), df[1])[0][0]
    assert together[0] < 2.4 < 4 < together[1]


def test_intervals_of_uneven_estimates_hold_together():
    rng = np.random.default_rng(4)
    root = np.linalg.cholesky([[1.0, 0.5, 0.2], [0.5, 4.0, 0.3], [0.2, 0.3, 9.0]])
    df = np.array([60.0, 4.0, 2.0])
    critical, _ = simultaneous(root @ root.T, df)
    errors = rng.standard_normal((100_000, 3)) @ root.T / np.linalg.norm(root, axis=1)
    errors /= np.sqrt(rng.chisquare(df, (100_000, 3)) / df)
    assert (np.abs(errors) <= critical).all(axis=1).mean() > 0.935
