"""Uno's c and the calibration slope, against loops, other packages and real refits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_ipcw
from sksurv.util import Surv

from drocox.heldout import HeldOut, default_horizon
from drocox.heldout.slope import calibration_slope


def patients_and_group(seed, n=90):
    """Patients with or without ties and folds, and the members of a group."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n).round(1 + 2 * (seed % 2))
    death = rng.exponential(np.exp(-scores))
    leaves = rng.exponential(1.5, n)
    time = np.minimum(death, leaves)
    if seed % 3:
        time = np.ceil(time * 5) / 5
    fold = rng.integers(0, 1 + seed % 3, n)
    patients = HeldOut(scores, time, death <= leaves, fold, horizon=np.quantile(time, 0.8))
    return patients, rng.random(n) < 0.7


def value_without_each(name, patients, members):
    """The value of a method of the package without each patient in turn."""
    everyone = np.arange(len(members))
    values = []
    for i in everyone:
        rest = everyone != i
        values.append(getattr(patients.subset(rest), name)(members[rest]).value)
    return np.array(values)


@pytest.mark.parametrize("seed", range(9))
def test_uno_c_equals_scikit_survival(seed):
    patients, members = patients_and_group(seed)
    patients = replace(patients, fold=0 * patients.fold)
    outcomes = Surv.from_arrays(patients.event[members], patients.time[members])
    theirs = concordance_index_ipcw(
        outcomes, outcomes, patients.scores[members], tau=patients.horizon
    )
    assert patients.uno_c(members).value == pytest.approx(theirs[0], rel=1e-12)


@pytest.mark.parametrize("seed", range(9))
def test_uno_c_leave_one_out_values_are_exact(seed):
    """Including pairs within folds and the censoring weights of the remaining patients."""
    patients, members = patients_and_group(seed)
    exact = value_without_each("uno_c", patients, members)
    np.testing.assert_allclose(patients.uno_c(members).without, exact, rtol=1e-10)


def test_uno_c_is_nan_without_events_before_the_horizon():
    patients, members = patients_and_group(0)
    assert np.isnan(replace(patients, horizon=0.0).uno_c(members).value)


def test_default_horizon_leaves_a_tenth_under_observation():
    patients, _ = patients_and_group(0, n=1000)
    horizon = default_horizon(patients.time, patients.event)
    assert 0.1 <= (patients.time > horizon).mean() < 0.11
    assert horizon in patients.time[patients.event]
    assert default_horizon(np.array([1.0, 2, 3]), np.array([False, False, True])) == 3
    ended = np.array([1.0, 2, 3, 3, 3, 3])  # when the study ends, nobody is observed longer
    assert default_horizon(ended, np.array([True, True, True, False, False, False])) == 2


def score_function(patients, members):
    """Derivative of the log partial likelihood, by loops over the events."""

    def derivative(slope):
        total = 0.0
        for i in np.flatnonzero(members & patients.event):
            at_risk = members & (patients.fold == patients.fold[i])
            f = patients.scores[at_risk & (patients.time >= patients.time[i])]
            weight = np.exp(slope * f - (slope * f).max())
            total += patients.scores[i] - (weight * f).sum() / weight.sum()
        return total

    return derivative


@pytest.mark.parametrize("seed", range(6))
def test_slope_solves_the_score_equation(seed):
    patients, members = patients_and_group(seed)
    root = brentq(score_function(patients, members), -5, 5, xtol=1e-12)
    assert patients.slope(members).value == pytest.approx(root, rel=1e-8)
    if seed % 3 == 0:
        alone = Surv.from_arrays(patients.event[members], patients.time[members])
        theirs = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-12)
        theirs.fit(patients.scores[members, None], alone)
        assert patients.slope(members).value == pytest.approx(theirs.coef_[0], rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_slope_leave_one_out_values_approximate_refits(seed):
    """One Newton step against a refit; the error falls with the number of patients in a fold."""
    patients, members = patients_and_group(seed, n=300)
    exact = value_without_each("slope", patients, members)
    without = patients.slope(members).without
    assert (without[~members] == exact[~members]).all()
    assert np.corrcoef(without[members], exact[members])[0, 1] > 0.99
    assert without[members].std() == pytest.approx(exact[members].std(), rel=0.05)


def test_slope_of_few_patients_without_each_is_near_a_refit():
    """The step knows that the risk sets lose the patient: without that it is off by a tenth."""
    n = 80
    apart = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=n)
        death, leaves = rng.exponential(np.exp(-scores)), rng.exponential(1, n)
        outcomes = np.minimum(death, leaves), death <= leaves, np.zeros(n, int)
        patients, everybody = HeldOut(scores, *outcomes), np.full(n, True)
        exact = value_without_each("slope", patients, everybody)
        error = patients.slope(everybody).without - exact
        apart.append(np.sqrt((error**2).mean()) / exact.std())
    assert np.median(apart) < 0.07


def with_outlier(score, leaves):
    """Patients of whom the first, middle or last to leave has a score far from all others."""
    patients, _ = patients_and_group(0)
    place = {"first": 0, "in the middle": 45, "last": -1}[leaves]
    outlier = np.argsort(patients.time)[place]
    scores, event = patients.scores.copy(), patients.event.copy()
    scores[outlier] = score
    event[outlier] = leaves != "first"  # the first is at risk at no event
    return replace(patients, scores=scores, event=event), np.full(len(event), True)


@pytest.mark.parametrize("score", [50.0, -50.0, 1e4, -1e4, 1e6, -1e6])
@pytest.mark.parametrize("leaves", ["first", "in the middle", "last"])
def test_slope_is_found_despite_an_outlier(score, leaves):
    patients, everyone = with_outlier(score, leaves)
    found = patients.slope(everyone).value
    if leaves == "last" and score <= -1e4:  # alone at risk, with a hazard of 0 beside the others'
        assert np.isnan(found)
    else:
        root = brentq(score_function(patients, everyone), -5, 5, xtol=1e-16, rtol=1e-14)
        assert found == pytest.approx(root, rel=1e-6)


def test_undefined_slopes_are_nan():
    time = np.arange(1.0, 11)
    event = np.full(10, True)
    fold = np.zeros(10, int)
    assert np.isnan(calibration_slope(np.ones(10), time, event, fold)[0])
    assert np.isnan(calibration_slope(-time, time, event, fold)[0])  # the order of the events
    small = calibration_slope(np.tile([1.0, -1], 5), time, event, fold)[0]
    large = calibration_slope(1e300 * np.tile([1.0, -1], 5), time, event, fold)[0]
    assert 1e300 * large == pytest.approx(small)
    nobody = HeldOut(-time, time, ~event, fold)
    assert np.isnan(nobody.slope(event).value)
