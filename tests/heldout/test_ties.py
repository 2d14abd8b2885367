"""Limits of the c-index with exact times, against loops over pairs."""

from dataclasses import replace

import numpy as np
import pytest
from leave_one_out import SEEDS, drawn

from drocox.heldout import ties


def limits(patients):
    """Tied events count one half below; above, only patients with other times are compared."""
    low = np.zeros(2)
    high = np.zeros(2)
    n = len(patients.time)
    for i in np.flatnonzero(patients.event):
        for j in range(n):
            if i == j or patients.fold[i] != patients.fold[j]:
                continue
            apart = patients.scores[i] - patients.scores[j]
            point = np.array([1.0 if apart > 1e-8 else 0.5 if apart >= -1e-8 else 0.0, 1.0])
            if patients.time[j] > patients.time[i]:
                low += point
                high += point
            elif patients.time[j] == patients.time[i]:
                low += np.array([0.25, 0.5]) if patients.event[j] else point
    return low[0] / low[1], high[0] / high[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_equal_loops(seed):
    _, patients = drawn(seed)
    assert ties.c_index_limits(patients) == pytest.approx(limits(patients), rel=1e-12)
    value = patients.c_index(np.full(len(patients.time), True)).value
    low, high = limits(patients)
    slack = ties.c_index_slack(patients)
    assert slack == pytest.approx((max(value - low, 0), max(high - value, 0)), abs=1e-12)
    exact = replace(patients, time=np.random.default_rng(seed).permutation(len(patients.time)))
    assert ties.c_index_slack(exact) == (0, 0) and not ties.many_tied(exact)


@pytest.mark.parametrize("leaves_by", [0.3, 1.0, 100.0])
@pytest.mark.parametrize("unit", [0.05, 0.3, 1.0])
def test_the_c_index_of_exact_times_is_between_the_limits(unit, leaves_by):
    rng = np.random.default_rng(1)
    _, patients = drawn(0)
    scores = rng.normal(size=2000)
    death = rng.exponential(np.exp(-scores))
    leaves = rng.exponential(leaves_by, 2000)
    time = np.minimum(death, leaves)
    exact = replace(
        patients, scores=scores, time=time, event=death <= leaves, fold=0 * scores.astype(int)
    )
    coarse = replace(exact, time=np.ceil(time / unit))
    low, high = ties.c_index_limits(coarse)
    assert low < exact.c_index(np.full(2000, True)).value < high
    assert ties.many_tied(coarse)
