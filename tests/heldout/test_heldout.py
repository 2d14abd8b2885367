"""Estimates of a group, against loops over pairs and explicit leave-one-out; folds."""

from dataclasses import replace

import literal
import numpy as np
import pytest
from leave_one_out import LITERAL, SEEDS, drawn, left_out, standard_error
from sksurv.metrics import concordance_index_censored

from drocox.heldout import HeldOut, assign_folds
from drocox.heldout.intervals import jackknife


@pytest.mark.parametrize("name", sorted(LITERAL))
@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_and_leave_one_out_values_equal_loops(seed, name):
    data, patients = drawn(seed)
    members = data.groups["site"] == 0
    estimate = getattr(patients, name)(members)
    assert estimate.value == pytest.approx(LITERAL[name](patients, members), rel=1e-12)
    exact = left_out(LITERAL[name], patients, members)
    if name == "calibration" and patients.expected is None:
        # to second order: a rough guide where folds have a dozen patients
        assert np.corrcoef(estimate.without, exact)[0, 1] > 0.95
        assert standard_error(estimate.without) == pytest.approx(standard_error(exact), rel=0.12)
    else:
        np.testing.assert_allclose(estimate.without, exact, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_c_index_equals_scikit_survival(seed):
    data, patients = drawn(seed)
    patients = replace(patients, fold=0 * patients.fold)
    for code in np.unique(data.groups["site"]):
        mine = data.groups["site"] == code
        theirs = concordance_index_censored(data.event[mine], data.time[mine], data.X["x"][mine])
        assert patients.c_index(mine).value == pytest.approx(theirs[0], rel=1e-12)


def tied(seed=1, n=40):
    """Scores, times, events with many ties, folds and the members of a group."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 9, n).astype(float)
    return (
        rng.integers(0, 6, n) / 2,
        time,
        rng.random(n) < 0.6,
        rng.integers(0, 2, n),
        (rng.random(n) < 0.4),
    )


def test_calibration_without_each_patient_approximates_a_new_baseline():
    def loop(scores, time, event, members):
        at_risk = (time >= time[:, None]) @ np.exp(scores)  # at each patient's time
        expected = np.exp(scores) * ((time <= time[:, None]) @ (event / at_risk))
        return event[members].sum() / expected[members].sum()

    scores, time, event, fold, members = tied(n=200)
    value, without = HeldOut(scores, time, event, 0 * fold).calibration(members)
    assert value == pytest.approx(loop(scores, time, event, members), rel=1e-12)
    curves = literal.breslow_survival(scores, time, event, scores[:3], time[:3])
    alone = HeldOut(scores, time, event, 0 * fold).calibration(np.arange(200) < 3)[0]
    assert alone == pytest.approx(event[:3].sum() / -np.log(np.diag(curves)).sum(), rel=1e-12)
    exact = []
    for i in range(200):
        rows = np.arange(200) != i
        exact.append(loop(scores[rows], time[rows], event[rows], members[rows]))
    # the baseline moves to first order only
    assert np.corrcoef(without, exact)[0, 1] > 0.995
    ratio = jackknife(without[:, None])[0] / jackknife(np.array(exact)[:, None])[0]
    assert 0.95 < ratio.item() < 1.06
    folds = HeldOut(scores, time, event, fold)
    moved = HeldOut(scores + 9 * fold, time, event, fold)
    np.testing.assert_allclose(moved.calibration(members)[1], folds.calibration(members)[1])


def test_folds_are_balanced_in_every_stratum():
    strata = np.repeat([0, 1, 2], [50, 23, 4])
    fold = assign_folds(strata, 5, seed=3)
    for part in (slice(None), strata == 0, strata == 1, strata == 2):
        sizes = np.bincount(fold[part], minlength=5)
        assert np.ptp(sizes) <= 1
    assert (fold == assign_folds(strata, 5, seed=3)).all()
    assert (fold != assign_folds(strata, 5, seed=4)).any()
