"""Many groups, and many attributes: funnels, and intervals that hold for all at once."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cohort import simulated

import drocox
from drocox.auditing.page import page as page_of


def test_many_sites_are_compared_with_everybody():
    data, scores = simulated(1, n=4000)
    site = np.random.default_rng(0).integers(0, 45, 4000)
    scores = np.where(site == 7, -scores, scores)
    found = drocox.audit(replace(data, groups={"site": site}, group_labels={}), scores)
    rows = found.differences[found.differences["measure"] == "c_index"]
    assert len(rows) == 45 and (rows["versus"] == "everybody").all() and len(found.imparity) == 45
    assert list(rows.loc[rows["says"] == "differ", "group"]) == ["site = 7"]
    assert "to expect: worse for site = 7." in found.sentence
    page = page_of({"": found})
    assert page.count("<svg") == 1 and len(page) < 150_000
    assert "differ from everybody: site = 7." in page and "Performance by site, each group" in page
    figure = found.plot()
    assert figure.axes[0].get_xlabel() == "events" and len(figure.axes[0].lines) == 7
    (one,) = found.funnels()
    events = one.groups["events"].to_numpy()
    inside = one.groups[one.groups["group"] != "site = 7"]
    low, high = one.limits(inside["events"].to_numpy(), at_once=True)
    assert inside["c_index"].between(low, high).all()
    low, high = one.limits(events, at_once=False)
    wide_low, wide_high = one.limits(events, at_once=True)
    assert (wide_low < low).all() and (high < wide_high).all()


@pytest.mark.parametrize(("number", "paired"), [(6, True), (7, False)])
def test_six_groups_are_compared_with_each_other_and_seven_with_everybody(number, paired):
    data, scores = simulated(2, n=700)
    site = np.arange(700) % number
    found = drocox.audit(replace(data, groups={"site": site}, group_labels={}), scores)
    versus = found.differences.loc[found.differences["measure"] == "c_index", "versus"]
    assert len(versus) == (15 if paired else 7)
    assert (versus == "everybody").sum() == (0 if paired else 7)
    assert len(found.funnels()) == (0 if paired else 1)


@pytest.mark.slow
def test_limits_of_a_funnel_hold_groups_without_difference():
    outside = {False: 0, True: 0}
    for seed in range(6):
        data, scores = simulated(seed, n=3000, effects=(0.8, 0.5, 0))
        share = np.random.default_rng(1).dirichlet(np.full(20, 3.0))
        site = np.random.default_rng(seed).choice(20, 3000, p=share)
        data = replace(data, X=data.X[["a"]], groups={"site": site}, group_labels={})
        (one,) = drocox.audit(data, scores).funnels()
        for at_once in outside:
            low, high = one.limits(one.groups["events"].to_numpy(), at_once)
            outside[at_once] += (~one.groups["c_index"].between(low, high)).sum()
    assert outside[True] <= 2 and 1 <= outside[False] <= 14  # of 120; 6 are expected


def test_a_funnel_with_a_group_that_cannot_be_compared():
    """A group ranked without a mistake has a c-index, but no standard error to compare it with."""
    data, scores = simulated(n=400)
    site = np.arange(400) % 7
    site[data.groups["group"] == 0] %= 6
    few = np.flatnonzero(site == 6)
    scores[few] = -data.time[few]
    found = drocox.audit(replace(data, groups={"site": site}, group_labels={}), scores)
    groups = found.funnels()[0].groups.set_index("group")
    assert groups.loc["site = 6", "c_index"] == 1 and not groups.loc["site = 6", "differs"]
    of_c_index = found.differences[found.differences["measure"] == "c_index"]
    assert "site = 6" not in set(of_c_index["group"])


def test_many_groups_of_which_none_is_judged_have_no_funnel():
    data, scores = simulated(n=60)
    small = replace(data, groups={"site": np.arange(60) % 20}, group_labels={})
    found = drocox.audit(small, scores)
    assert found.funnels() == [] and "site = 19" in page_of({"": found})


def test_intervals_hold_for_all_attributes_at_once(model):
    data, scores = model
    rng = np.random.default_rng(0)
    groups = {f"a{k}": rng.integers(0, 2, len(data)) for k in range(8)}
    data = replace(data, groups=groups, group_labels={})
    given = {"scores": scores, "expected": data.time * np.exp(scores)}
    apart = drocox.audit(data, **given, familywise=False).differences
    found = drocox.audit(data, **given)
    together = found.differences
    columns = ["attribute", "group", "versus", "measure", "difference"]
    pd.testing.assert_frame_equal(together[columns], apart[columns])
    wider = (together["high"] - together["low"]) / (apart["high"] - apart["low"])
    # 32 comparisons in the headline, 3.16 by 1.96, and more for ratios; 8 of slopes, 2.73 by 1.96
    for measure, factor in (("c_index", 3.16 / 1.96), ("calibration", 1.65), ("slope", 1.39)):
        assert wider[apart["measure"] == measure].mean() == pytest.approx(factor, abs=0.1)
    assert "5 % of such pages would say of one of these three that it does" in page_of({"": found})
    one = replace(data, groups={"a0": groups["a0"]}, group_labels={})
    apart = drocox.audit(one, **given, familywise=False)
    width = [
        (a.differences["high"] - a.differences["low"])[0]
        for a in (drocox.audit(one, **given), apart)
    ]
    # with calibration, and what is expected of two groups, one of which nearly tells the other:
    # three by Bonferroni is 2.39
    assert width[0] / width[1] == pytest.approx(2.39 / 1.96, abs=0.04)
