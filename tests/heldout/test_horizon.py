"""Risk up to a horizon: against scikit-survival, and against explicit leave-one-out."""

from dataclasses import replace

import numpy as np
import pytest
from sksurv.metrics import brier_score, cumulative_dynamic_auc
from sksurv.nonparametric import kaplan_meier_estimator
from sksurv.util import Surv
from test_uno_and_slope import patients_and_group, value_without_each

from drocox.heldout import HeldOut
from drocox.heldout.horizon import risk_interval

ESTIMATES = ["auc", "brier", "risk_observed", "risk_predicted", "risk_ratio"]


def predicted(seed, n=90):
    """Patients with a predicted risk."""
    patients, members = patients_and_group(seed, n)
    risk = 1 / (1 + np.exp(-patients.scores))
    return replace(patients, risk=risk), members


@pytest.mark.parametrize("seed", range(6))
def test_risk_auc_and_brier_score_equal_scikit_survival(seed):
    patients, members = predicted(seed)
    patients = replace(patients, fold=0 * patients.fold)
    at = patients.horizon
    y = Surv.from_arrays(patients.event[members], patients.time[members])
    seen = y.copy()  # what happens later makes no difference, but scikit-survival weights it
    seen["event"] &= y["time"] <= at
    auc = cumulative_dynamic_auc(y, seen, patients.scores[members], [at])[1]
    assert patients.auc(members).value == pytest.approx(auc, rel=1e-12)
    brier = brier_score(y, seen, 1 - patients.risk[members, None], [at])[1][0]
    assert patients.brier(members).value == pytest.approx(brier, rel=1e-12)
    times, alive = kaplan_meier_estimator(y["event"], y["time"])
    risk = 1 - alive[times <= at][-1]
    assert patients.risk_observed(members).value == pytest.approx(risk, rel=1e-12)
    ratio = risk / patients.risk[members].mean()
    assert patients.risk_ratio(members).value == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize("name", ESTIMATES)
@pytest.mark.parametrize("seed", range(6))
def test_leave_one_out_values_at_the_horizon_are_exact(seed, name):
    patients, members = predicted(seed)
    exact = value_without_each(name, patients, members)
    np.testing.assert_allclose(getattr(patients, name)(members).without, exact, rtol=1e-10)


def test_estimates_beyond_the_last_time_are_nan():
    patients, members = predicted(0)
    late = replace(patients, horizon=patients.time.max() + 1)
    for name in ("auc", "brier", "risk_observed", "risk_ratio"):
        assert np.isnan(getattr(late, name)(members).value)
    early = replace(patients, horizon=0.0)
    assert early.risk_observed(members).value == 0
    assert early.brier(members).value == pytest.approx((patients.risk[members] ** 2).mean())
    dead = replace(patients, event=np.full(90, True), horizon=patients.time.max())
    assert dead.risk_observed(members).value == 1


@pytest.mark.parametrize("n", [12, 60])
def test_intervals_of_the_observed_risk_equal_scikit_survival(n):
    """Also where many of few patients at risk die at one time."""
    rng = np.random.default_rng(n)
    time = rng.integers(1, 5, n).astype(float)
    event = rng.random(n) < 0.6
    times, _, limits = kaplan_meier_estimator(event, time, conf_type="log-log")
    for k in (1, 2):
        low, high = 1 - limits[::-1, k]
        assert risk_interval(time, event, times[k]) == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "missing"),
    [("risk_predicted", "risk"), ("brier", "risk"), ("calibration", "expected")],
)
def test_an_estimate_without_its_predictions_says_what_to_pass(name, missing):
    patients = HeldOut(np.arange(4.0), np.arange(4.0), np.full(4, True), np.zeros(4, int))
    with pytest.raises(ValueError, match=f"{missing} is missing; pass .* as {missing}="):
        getattr(patients, name)(np.full(4, True))
