"""Estimates of a group, against loops over pairs and explicit leave-one-out; folds."""

from dataclasses import replace

import numpy as np
import pytest
from leave_one_out import LITERAL, SEEDS, drawn, left_out
from sksurv.metrics import concordance_index_censored

from drocox.heldout import assign_folds


@pytest.mark.parametrize("name", sorted(LITERAL))
@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_and_leave_one_out_values_equal_loops(seed, name):
    data, patients = drawn(seed)
    members = data.groups["site"] == 0
    if name == "calibration" and patients.expected is None:
        with pytest.raises(ValueError, match="pass expected_events"):
            patients.calibration(members)
        return
    estimate = getattr(patients, name)(members)
    assert estimate.value == pytest.approx(LITERAL[name](patients, members), rel=1e-12)
    exact = left_out(LITERAL[name], patients, members)
    np.testing.assert_allclose(estimate.without, exact, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_c_index_equals_scikit_survival(seed):
    data, patients = drawn(seed)
    patients = replace(patients, fold=0 * patients.fold)
    for code in np.unique(data.groups["site"]):
        mine = data.groups["site"] == code
        theirs = concordance_index_censored(data.event[mine], data.time[mine], data.X["x"][mine])
        assert patients.c_index(mine).value == pytest.approx(theirs[0], rel=1e-12)


def test_folds_are_balanced_in_every_stratum():
    strata = np.repeat([0, 1, 2], [50, 23, 4])
    fold = assign_folds(strata, 5, seed=3)
    for part in (slice(None), strata == 0, strata == 1, strata == 2):
        sizes = np.bincount(fold[part], minlength=5)
        assert np.ptp(sizes) <= 1
    assert (fold == assign_folds(strata, 5, seed=3)).all()
    assert (fold != assign_folds(strata, 5, seed=4)).any()


def test_a_group_is_set_apart_once_while_it_is_in_use():
    """Its pairs are counted once, and groups of the same size are not confused."""
    _, patients = drawn(2)
    members = np.arange(len(patients.time)) % 2 == 0
    others = np.roll(members, 1)
    one, two = patients.alone(members), patients.alone(others)
    assert patients.alone(members.copy()) is one and one is not two
    np.testing.assert_array_equal(two.scores, patients.scores[others])
    assert patients.alone(np.full(len(members), True)) is patients
