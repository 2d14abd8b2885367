"""Differences between groups: lopsided intervals, digits, and groups that are too small."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import drocox
from drocox.auditing import group_measures
from drocox.auditing.contrasts import Contrast, contrast, estimable
from drocox.auditing.findings import interval_text
from drocox.auditing.measures import MEASURES
from drocox.heldout import Estimate, HeldOut
from drocox.heldout.intervals import jackknife, simultaneous, wilson


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
    assert same["low"] == same["difference"] == same["high"] == 0 and same["says"] != "differ"


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


def test_a_limit_is_not_printed_as_none_if_the_interval_excludes_it():
    assert interval_text(0.1, 0.0002, 0.196, 3) == "0.1000 (0.0002 to 0.1960)"
    assert interval_text(0.1, -0.0002, 0.196, 3) == "0.100 (0.000 to 0.196)"
    assert interval_text(1.1, 1.004, 1.2, 2, none=1) == "1.100 (1.004 to 1.200)"


def decided(flagged, known, event, threshold=0.5):
    """Patients of whom some are flagged, with outcomes at time 1."""
    n = len(flagged)
    time = np.where(known, np.where(event, 0.5, 2.0), 0.3)
    return HeldOut(
        np.zeros(n),
        time + 1e-6 * np.arange(n),
        event & known,
        np.zeros(n, int),
        horizon=1.0,
        risk=np.where(flagged, 0.9, 0.1),
        threshold=threshold,
    )


def test_shares_without_censoring_have_wilson_and_newcombe_intervals():
    """3 of 130 flagged, and sensitivity, against scipy and statsmodels."""
    flagged = np.r_[np.arange(130) < 3, np.arange(100) < 20]
    event = np.arange(230) % 3 == 0
    patients = decided(flagged, np.full(230, True), event)
    groups = [np.arange(230) < 130, np.arange(230) >= 130]
    first, second = (patients.flagged(one) for one in groups)
    theirs = stats.binomtest(3, 130).proportion_ci(method="wilson")
    row = group_measures.with_interval("flagged", MEASURES["flagged"], first)
    assert [row["flagged_low"], row["flagged_high"]] == pytest.approx([theirs.low, theirs.high])
    pair = Contrast({}, second, first)
    row = contrast(MEASURES["flagged"], estimable(MEASURES["flagged"], [pair]))[0]
    ends = [stats.binomtest(k, n).proportion_ci(method="wilson") for k, n in ((20, 100), (3, 130))]
    apart = 0.2 - 3 / 130
    low = apart - np.hypot(0.2 - ends[0].low, ends[1].high - 3 / 130)
    high = apart + np.hypot(ends[0].high - 0.2, 3 / 130 - ends[1].low)
    assert [row["low"], row["high"]] == pytest.approx([low, high], rel=1e-3)
    some = groups[1]
    share = patients.sensitivity(some)
    cases = event & some
    theirs = stats.binomtest(int((flagged & cases).sum()), int(cases.sum()))
    theirs = theirs.proportion_ci(method="wilson")
    # the jackknife's variance is n / (n - 1) times that of the sample
    assert share.limits(1.959964) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_censoring_widens_the_interval_of_a_share_and_few_cases_have_none():
    rng = np.random.default_rng(0)
    flagged, event = rng.random(200) < 0.4, rng.random(200) < 0.5
    everybody = np.full(200, True)
    known = rng.random(200) < 0.6
    widths = []
    for one in (everybody, known):
        low, high = decided(flagged, one, event).sensitivity(everybody).limits(1.96)
        widths.append(high - low)
    assert widths[1] > 1.15 * widths[0]
    few = event & (np.cumsum(event) <= 4)
    assert np.isnan(decided(flagged, everybody, few).sensitivity(everybody).value)
    five = event & (np.cumsum(event) <= 5)
    assert decided(flagged, everybody, five).sensitivity(everybody).limits is not None
    all_found = decided(flagged | event, everybody, event).sensitivity(everybody)
    low, high = all_found.limits(1.96)  # Kish's size, without censoring the number of cases
    assert (
        all_found.value == 1 and high == 1 and low == pytest.approx(1 / (1 + 1.96**2 / event.sum()))
    )


def test_net_benefit_is_as_uncertain_as_the_flagged():
    """With everybody flagged at a threshold of one half it is twice the risk minus one."""
    rng = np.random.default_rng(0)
    event = rng.random(60) < 0.7
    everybody = np.full(60, True)
    one = decided(everybody, everybody, event).net_benefit(everybody)
    low, high = one.limits(1.96)
    theirs = wilson(event.mean(), 60, 1.96)
    assert one.value == pytest.approx(2 * event.mean() - 1)
    assert low == pytest.approx(2 * theirs[0] - 1, abs=0.05)
    assert high == pytest.approx(2 * theirs[1] - 1, abs=0.05)
    nobody = decided(~everybody, everybody, event).net_benefit(everybody)
    assert nobody.value == 0 and np.isnan(nobody.without).all()


def test_ratios_are_compared_by_their_ratio():
    rng = np.random.default_rng(0)
    values = rng.gamma(4, size=400)
    group = np.arange(400) % 2 == 0
    one, two = mean_of(values, group), mean_of(values, ~group)
    pairs = estimable(MEASURES["calibration"], [Contrast({}, one, two)])
    row = contrast(MEASURES["calibration"], pairs)[0]
    assert row["difference"] == pytest.approx(one.value / two.value)
    assert row["low"] * row["high"] == pytest.approx(row["difference"] ** 2)
    half = np.log(row["high"] / row["difference"])
    error = values.std() / values.mean() * np.sqrt(2 / 200)
    assert half == pytest.approx(1.97 * error, rel=0.1) and row["says"] == "alike"


def test_a_slope_has_as_many_degrees_of_freedom_as_events_less_one():
    """Whatever its kurtosis; those of a difference are Welch's."""
    one = Estimate(0.7, 0.7 + np.r_[0.2, np.zeros(299)], df=19.0)
    row = group_measures.with_interval("slope", MEASURES["slope"], one)
    error = np.sqrt(jackknife(one.without[:, None])[0].item())
    assert row["slope_high"] - 0.7 == pytest.approx(stats.t.ppf(0.975, 19) * error)
    two = one._replace(without=np.roll(one.without, 5))
    row = contrast(MEASURES["slope"], [Contrast({}, one, two)])[0]
    assert row["high"] == pytest.approx(stats.t.ppf(0.975, 38) * error * np.sqrt(2), rel=0.01)
