"""Differences between groups: lopsided intervals, digits, and groups that are too small."""

import numpy as np
import pandas as pd
import pytest

import drocox
from drocox.auditing import group_measures
from drocox.auditing.contrasts import Contrast, contrast, estimable
from drocox.auditing.findings import sentences
from drocox.auditing.measures import MEASURES
from drocox.heldout import Estimate
from drocox.heldout.intervals import jackknife, simultaneous


def mean_of(values, members):
    """The mean of the members' values, with and without each of all patients."""
    total, size = values[members].sum(), members.sum()
    left = np.where(members, (total - values) / (size - 1), total / size)
    return Estimate(total / size, left)


@pytest.mark.parametrize("versus", ["another group", "everybody"])
def test_a_measure_without_a_transformation_has_the_usual_interval(versus):
    """Also where the patients of one are among those of the other."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=60)
    group = np.arange(60) % 3
    means = [mean_of(values, group == k) for k in range(3)]
    if versus == "everybody":
        means[0] = mean_of(values, np.full(60, True))
    pairs = [Contrast({"k": k}, means[k], means[0]) for k in (1, 2)]
    rows = pd.DataFrame(contrast(MEASURES["slope"], pairs))
    without = np.column_stack([means[k].without - means[0].without for k in (1, 2)])
    covariance, df = jackknife(without)
    critical, floor = simultaneous(covariance, df)
    half = critical * np.sqrt(np.diag(covariance))
    difference = [means[k].value - means[0].value for k in (1, 2)]
    np.testing.assert_allclose(rows["difference"], difference)
    np.testing.assert_allclose(rows["low"], difference - half)
    np.testing.assert_allclose(rows["high"], difference + half)
    np.testing.assert_allclose(rows["noise_floor"], floor)


@pytest.mark.slow
def test_intervals_of_many_small_groups_hold_together():
    """Shares of 15 patients, 0.85 on average: the usual intervals hold in half of the data sets."""
    rng = np.random.default_rng(2)
    groups, size, share = 20, 15, 0.85
    member = np.repeat(np.arange(groups), size)
    whole = np.full(len(member), True)
    held = {"auc": [], "slope": []}
    for _ in range(60):
        values = (rng.uniform(size=len(member)) < share).astype(float)
        everybody = mean_of(values, whole)
        pairs = []
        for k in range(groups):
            pairs.append(Contrast({}, mean_of(values, member == k), everybody))
        for name, of_sets in held.items():  # the scale of a share, and none
            rows = pd.DataFrame(contrast(MEASURES[name], estimable(MEASURES[name], pairs)))
            of_sets.append(((rows["low"] <= 0) & (rows["high"] >= 0)).all())
    assert np.mean(held["auc"]) >= 0.9
    assert np.mean(held["slope"]) <= 0.6


def test_a_value_at_the_end_of_its_scale_is_not_compared():
    values = np.r_[np.ones(10), np.zeros(3), np.ones(12)]
    first = np.arange(25) < 10
    ones, others = mean_of(values, first), mean_of(values, ~first)
    assert estimable(MEASURES["auc"], [Contrast({}, ones, others)]) == []
    assert len(estimable(MEASURES["slope"], [Contrast({}, ones, others)])) == 1
    both = estimable(MEASURES["auc"], [Contrast({}, ones, ones)])
    same = contrast(MEASURES["auc"], both)[0]  # no difference
    assert same["low"] == same["difference"] == same["high"] == 0 and not same["beyond_noise"]


def small_beyond_the_horizon(beyond):
    """Two groups of 100 patients, of the second of which some are observed beyond time 1."""
    rng = np.random.default_rng(3)
    n = 200
    group = np.repeat([0, 1], 100)
    x = rng.normal(size=n)
    death, leaves = rng.exponential(np.exp(-x)), rng.exponential(2.0, n)
    time, event = np.minimum(death, leaves), death <= leaves
    late = np.flatnonzero((group == 1) & (time > 1))
    assert len(late) > 5
    time[late[beyond:]], event[late[beyond:]] = 0.99, False
    X = pd.DataFrame({"x": x})
    return drocox.SurvivalData("small", X, time, event, {"group": group}), x


@pytest.mark.parametrize(("beyond", "judged"), [(4, False), (5, True)])
def test_measures_at_the_horizon_need_five_patients_beyond_it(beyond, judged):
    data, scores = small_beyond_the_horizon(beyond)
    assert group_measures.FEWEST_AT_HORIZON == 5
    found = drocox.audit(data, scores, train=(data, scores), horizon=1.0, threshold=0.35)
    row = found.table.set_index("group").loc["group = 1"]
    assert np.isfinite(row["c_index"]) and np.isfinite(row["risk_observed"])
    for name in ("auc", "brier"):
        assert np.isfinite(row[name]) == judged, name
        assert (name in set(found.differences["measure"])) == judged, name


def test_an_auc_that_becomes_1_when_one_patient_is_left_out_still_has_an_interval():
    """One wrong pair makes an AUC of 1 without either of its patients."""
    time = np.r_[np.linspace(0.1, 0.9, 8), np.linspace(1.1, 1.9, 8)]
    scores = -time.copy()
    scores[8] = scores[7] + 0.01
    X = pd.DataFrame({"x": time})
    data = drocox.SurvivalData("pair", X, time, np.full(16, True), {"g": np.zeros(16, int)})
    row = drocox.audit(data, scores, horizon=1.0).table.iloc[0]
    assert row["auc"] == pytest.approx(63 / 64)
    assert 0 < row["auc_low"] < row["auc"] < row["auc_high"] < 1


def test_a_limit_is_not_printed_as_0_if_the_interval_excludes_0():
    table = pd.DataFrame({"attribute": ["", "sex", "sex"], "group": ["everybody", "f", "m"]})
    table[["c_index", "calibration"]] = [[0.7, 1.0], [0.75, 1.0], [0.65, 1.0]]
    table[["calibration_low", "calibration_high", "slope_low", "slope_high"]] = np.nan
    row = {"attribute": "sex", "group": "f", "versus": "m", "measure": "c_index", "low": 0.02}
    row |= {"difference": 10.0, "high": 19.6, "noise_floor": 3.0, "beyond_noise": True}
    none = pd.DataFrame(columns=["high"])
    said = sentences(table, pd.DataFrame([row]), none, ())[0]
    assert "10.0 points (95 % interval 0.02 to 19.60)" in said
    said = sentences(table, pd.DataFrame([row | {"low": -0.02, "beyond_noise": False}]), none, ())[
        0
    ]
    assert "10.0 points (95 % interval 0.0 to 19.6)" in said
