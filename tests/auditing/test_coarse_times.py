"""Times in coarse units: groups that are ranked alike are not said to differ."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cohort import simulated

import drocox
from drocox.auditing import group_measures
from drocox.auditing.groupings import Grouping
from drocox.auditing.measures import MEASURES
from drocox.heldout import Estimate


def cohort(seed, effect=1.0, n=600, faster=100):
    """Two groups, the second so many times as fast as the first, for which the score is right.

    Otherwise they are alike if the ``effect`` of the score in the second group is 1.
    """
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    x = rng.normal(size=n)
    pace = np.where(group == 1, 1 / faster, 1.0)
    death = pace * rng.exponential(np.exp(-np.where(group == 1, effect, 1.0) * x))
    leaves = pace * rng.exponential(3.0, n)
    X = pd.DataFrame({"x": x})
    times = np.minimum(death, leaves)
    return drocox.SurvivalData("cohort", X, times, death <= leaves, {"group": group}), x


def in_units(data, unit):
    return replace(data, time=np.ceil(data.time / unit) * unit)


def test_coarse_times_make_no_difference_between_groups():
    """The c-index of the fast group is five points too high, and its slope half as steep."""
    raised = []
    for seed in range(6):
        data, x = cohort(seed)
        found = drocox.audit(in_units(data, 0.01), x)
        assert "Ranking (c-index): cannot tell." in found.sentence
        assert "extreme" not in found.sentence
        rows = found.differences.set_index("measure")
        raised.append(rows.loc["c_index", "difference"])
        assert rows.loc["c_index", "says"] != "differ"
        assert not {"slope", "uno_c", "c_minus_expected"} & set(rows.index)
        slope = found.table.set_index("group")["slope"]
        assert np.isnan(slope["group = 1"]) and np.isfinite(slope["group = 0"])
    assert np.mean(raised) > 0.04


def test_a_difference_is_found_despite_coarse_times():
    data, x = cohort(0, effect=0.0)
    assert "to expect: worse for group = 1." in drocox.audit(data, x).sentence
    months = drocox.audit(in_units(data, 0.005), x)
    assert months.differences.set_index("measure").loc["c_index", "says"] == "differ"
    assert months.notes[0].startswith("Times are coarse: in ")


def test_coarse_times_are_mentioned():
    """A perfect ranking in years: the c-index sees a gap of its own making, and a note says so."""
    rng = np.random.default_rng(0)
    n = 500
    group = rng.integers(0, 2, n)
    death = rng.exponential(np.where(group == 1, 0.7, 4.0))
    leaves = rng.exponential(4.0, n)
    time = np.minimum(death, leaves)
    X = pd.DataFrame({"x": death})
    exact = drocox.SurvivalData("days", X, time, death <= leaves, {"group": group})
    assert not any("coarse" in note for note in drocox.audit(exact, -death).notes)
    coarse = in_units(exact, 1.0)
    known = tied = 0
    for i in np.flatnonzero(coarse.event):
        known += (coarse.time > coarse.time[i]).sum()
        same = coarse.time == coarse.time[i]
        tied += (same & ~coarse.event).sum() + (same & coarse.event).sum() / 2 - 0.5
    found = drocox.audit(coarse, -death)
    share = f"in {100 * tied / (known + tied):.0f} % of the pairs of patients the order of events"
    assert share in found.sentence.splitlines()[0]
    assert ": cannot tell. " in found.sentence or ": alike. " in found.sentence


def test_a_difference_may_fall_by_what_lowers_one_group_or_raises_the_other():
    nothing = Estimate(0.0, np.zeros(2))
    both = Grouping("x", ["b", "a"], np.array([0, 1]), True, ["b", "a"])
    slack = {"a": (0.01, 0.02), "b": (0.04, 0.08)}  # by which exact times could lower and raise it
    of_groups = {"b": nothing, "a": nothing}
    (pair,) = group_measures._contrasts(of_groups, {}, both, MEASURES["c_index"], slack)
    assert (pair.names["group"], pair.names["versus"]) == ("a", "b")
    assert pair.slack == pytest.approx((0.09, 0.06))


def test_what_is_expected_of_a_group_allows_for_coarse_times_too(monkeypatch):
    """With too few ties to leave the measure out, its intervals are wider than without."""
    data, scores = simulated(0, n=600, effects=(0.8, 0.5, 0))
    data = replace(data, time=np.round(data.time, 3))

    def widths():
        rows = drocox.audit(data, scores).differences
        rows = rows[rows["measure"] == "c_minus_expected"]
        return (rows["high"] - rows["low"]).to_numpy()

    allowing = widths()
    monkeypatch.setattr(group_measures.ties, "c_index_slack", lambda _: (0.0, 0.0))
    assert len(allowing) == 4 and (allowing > widths() + 1e-6).all()
