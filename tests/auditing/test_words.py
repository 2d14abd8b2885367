"""Promise and headroom in words, on the page and in the figure."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from cohort import simulated

import drocox
from drocox.auditing.findings import NO_FAULT, NO_HEADROOM, NO_MERIT, UNTOLD, sentences
from drocox.auditing.measures import MEASURES
from drocox.auditing.page import page


@pytest.fixture(scope="module")
def wrong():
    """A model that is wrong for one of two groups."""
    data, scores = simulated(0, n=1500, minority=0.2, effects=(-0.4, 0.2, 0.9))
    return drocox.audit(data, scores, train=(data, scores))


@pytest.fixture(scope="module")
def perfect():
    """Log-hazards of two groups, in one of which patients are alike."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 2000)
    truth = rng.normal(0, np.where(group == 1, 0.3, 1.2))
    death, leaves = rng.exponential(np.exp(-truth)), rng.exponential(2, 2000)
    groups = {"group": group}
    return drocox.SurvivalData.from_arrays(
        np.minimum(death, leaves), death <= leaves, groups=groups
    ), truth


def test_a_perfect_model_with_a_gap_is_as_promised(perfect):
    data, truth = perfect
    found = drocox.audit(data, truth, expected=data.time * np.exp(truth))
    rows = found.differences.set_index("measure")
    assert rows.loc["c_index", "high"] < -10
    start = "By group, no fault is seen: every group is ranked as promised, within noise; cal"
    assert found.sentence.startswith(start)
    table = found.table.set_index("group")
    for label in ("group = 0", "group = 1"):
        c_index, promised = table.loc[label, ["c_index", "c_promised"]]
        assert f"{c_index:.3f} for {label} (promised {promised:.3f})" in found.sentence
    assert UNTOLD in found.sentence.splitlines() and UNTOLD in page({"": found})
    low, high = rows.loc["c_index", ["low", "high"]]
    line = found.sentence.splitlines()[0]
    assert line.endswith(f" points (95 % interval {low:.1f} to {high:.1f}).{NO_FAULT}")


def test_a_gap_that_is_not_promised_is_not_excused(wrong):
    """Nor is one where the worse group is promised more."""
    assert NO_FAULT not in wrong.sentence
    names = ["group = 0", "group = 1"]
    table = pd.DataFrame({"attribute": ["", "x", "x"], "group": ["everybody", *names]})
    table[["calibration_low", "calibration_high", "slope_low", "slope_high"]] = np.nan
    pair = {"attribute": "x", "group": names[1], "versus": names[0], "measure": "c_index"}
    pair |= {"difference": -5.0, "low": -9.0, "high": -1.0, "beyond_noise": True}
    kept = [pair | {"group": name, "versus": "promised"} for name in names]
    quiet = {"measure": "c_minus_promised", "difference": 0.0, "low": -3.0, "high": 3.0}
    kept = [one | quiet | {"beyond_noise": False} for one in kept]
    for promised, excused in (([0.7, 0.72, 0.68], True), ([0.7, 0.69, 0.7], False)):
        known = table.assign(c_index=[0.7, 0.72, 0.67], c_promised=promised)
        said = sentences(known, pd.DataFrame([pair, *kept]), pd.DataFrame(columns=["high"]), ())[0]
        assert said.startswith("By x, no fault is seen") and (NO_FAULT in said) == excused


def test_survival_probabilities_promise_an_auc(perfect):
    """Of survival curves hazards need not be proportional."""
    data, truth = perfect
    times = np.array([0.5, 1.0, 2.0])
    curves = np.exp(-np.exp(truth)[:, None] * times)
    for given in ({"survival": curves, "times": times}, {"survival": curves[:, 1], "times": 1.0}):
        found = drocox.audit(data, **given)
        assert found.table["c_promised"].isna().all()
        assert (found.table["auc"] - found.table["auc_promised"]).abs().max() < 0.03
        assert found.sentence.startswith("By group, no fault is seen: every group is")
        assert "nan" not in found.sentence
        heads = BeautifulSoup(page({"": found}), "html.parser").select_one("table.groups thead")
        assert "Promised AUC" in heads.get_text() and "Promised c-index" not in heads.get_text()
    backwards = np.where(np.arange(2000) % 2, -truth, truth)
    risk = 1 - np.exp(-np.exp(np.where(data.groups["group"] == 0, truth, backwards)))
    found = drocox.audit(data, survival=1 - risk, times=1.0)
    assert "group = 1 is ranked below its promise" in found.sentence
    assert "For group = 1 the AUC is 0." in found.sentence


def test_scores_on_another_scale_promise_nothing(perfect):
    data, truth = perfect
    points = np.round(10 * (truth - truth.min()))
    found = drocox.audit(data, points)
    assert found.table["c_promised"].isna().all() and "Whole numbers" in found.sentence
    assert "By group, the c-index differs beyond noise. The c-index is 0." in found.sentence


def test_headroom_is_told_where_another_model_ranks_better(wrong):
    row = wrong.differences.set_index(["measure", "group"]).loc[("headroom", "group = 1")]
    said = f"; a model of its own ranks group = 1 better, by {row['difference']:.1f} points"
    assert said in wrong.sentence and NO_HEADROOM not in wrong.sentence
    data, scores = simulated(1, n=500, effects=(0.8, 0.5, 0))
    assert NO_HEADROOM in drocox.audit(data, scores).sentence.splitlines()
    many = replace(data, groups={"site": np.arange(500) % 7}, group_labels={})
    said = drocox.audit(many, scores).sentence
    assert NO_HEADROOM not in said and UNTOLD not in said


def test_slopes_that_differ_are_told_by_group_and_not_on_the_whole(wrong):
    """One scale for everybody would spoil the group for which the model is right."""
    slopes = wrong.table.set_index("group")["slope"]
    said = f"1 where predictions are right, is {slopes['group = 1']:.2f} for group = 1 and "
    assert said + f"{slopes['group = 0']:.2f} for group = 0" in wrong.sentence
    assert wrong.table["slope_high"].iloc[0] < 1 and "On the whole" not in wrong.sentence


def test_what_is_beyond_noise_is_bold_and_nothing_else(wrong):
    soup = BeautifulSoup(page({"": wrong}), "html.parser")
    bold = {}
    for table in soup.select("table.differences"):
        for cells in (row.select("td") for row in table.select("tr")[1:]):
            bold[cells[0].get_text()] = [cell.b is not None for cell in cells[1:]]
    first, *_, last = bold
    assert any(bold["group = 1"]) and not any(bold["sex = 1 minus sex = 0"])
    assert any(bold[first]) and not any(bold[last])  # what is beyond noise comes first
    rows = wrong.differences.itertuples()
    loud = {(row.group, row.versus, row.measure): row.beyond_noise for row in rows}
    for label in ("group = 0", "group = 1", "sex = 0", "sex = 1"):
        own = loud[label, "this model", "headroom"]
        assert bold[label] == [loud[label, "promised", "c_minus_promised"], own]
    pair = ("group = 1", "group = 0")
    shown = [name for name, measure in MEASURES.items() if measure.pairs_on_page]
    assert bold["group = 1 minus group = 0"] == [loud[*pair, name] for name in shown]
    assert loud[*pair, "slope"] and not any(bold["sex = 1 minus sex = 0"])
    assert len(bold["sex = 1 minus sex = 0"]) == len(shown)


def test_one_meets_a_target_only_where_there_is_one(wrong):
    """Dotted is perfect calibration; everybody's c-index would look like a target."""
    figure = wrong.plot()
    dotted = [[x for x in ax.lines if x.get_linestyle() == ":"] for ax in figure.axes]
    assert not dotted[0] and {tuple(line.get_xdata()) for line in dotted[1]} == {(1, 1)}
    plt.close(figure)


def test_an_interval_that_one_patient_decides_is_told(wrong):
    """A hundred times the usual score, and an early event or a late one."""
    data, scores = simulated(0, n=600, effects=(0.8, 0.5, 0))
    sex = data.groups["sex"]
    far = np.flatnonzero((sex == 1) & ~data.event)[0]
    time = data.time.copy()
    time[far] = data.time.max() + 1
    scores[far] = 9.0
    said = drocox.audit(replace(data, time=time), scores).cautions
    assert any("Decided by one or two patients" in x and "Slope of sex = 1" in x for x in said)
    assert not any("Slope of sex = 0" in line for line in said)
    assert not any("Decided" in line for line in wrong.cautions)


def test_the_promised_c_index_is_drawn_and_printed(wrong):
    figure = wrong.plot()
    ticks = [line for line in figure.axes[0].lines if line.get_marker() == "|"]
    np.testing.assert_allclose(ticks[0].get_xdata(), wrong.table["c_promised"])
    assert not [line for line in figure.axes[1].lines if line.get_marker() == "|"]
    plt.close(figure)
    words = BeautifulSoup(page({"": wrong}), "html.parser").select_one("figure div")["aria-label"]
    row = wrong.table.iloc[2]
    text = f"group = 1 {row['c_index']:.2f}, promised {row['c_promised']:.2f};"
    assert text in words
    line = [line for line in str(wrong).splitlines() if line.startswith("group = 1")][-1]
    assert line.split()[-2] == f"{row['c_promised']:.2f}"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ([-3, -3, -3], [-1, -1, -1], "3 of 3 groups are ranked below their promise"),
        ([-3, -3, -1], [-1, -1, 1], "a and b are ranked below their promise."),
        (
            [-3, 1, -1],
            [-1, 3, 1],
            "a is ranked below its promise and b is ranked above its promise",
        ),
        ([1, 1, -1], [3, 3, 1], "a and b are ranked above their promise."),
        ([-1, -1, -1], [1, 1, 1], "every group is ranked as promised, within noise."),
    ],
)
def test_words_for_promises(low, high, words):
    table = pd.DataFrame({"attribute": ["", *["x"] * 3], "group": ["everybody", *"abc"]})
    table = table.assign(c_index=0.7, c_promised=0.72, calibration=1.0)
    table[["calibration_low", "calibration_high", "slope_low", "slope_high"]] = np.nan
    rows = pd.DataFrame({"attribute": "x", "group": list("abc"), "versus": "promised"})
    rows = rows.assign(measure="c_minus_promised", low=low, high=high)
    middle = (np.array(low) + np.array(high)) / 2
    rows = rows.assign(difference=middle, beyond_noise=middle != 0)
    pair = {"attribute": "x", "group": "a", "versus": "b", "measure": "c_index", "low": -1.0}
    pair |= {"difference": 0.0, "high": 1.0, "beyond_noise": False}
    rows = pd.concat([rows, pd.DataFrame([pair])])
    said = sentences(table, rows, pd.DataFrame(columns=["high"]), ())[0]
    verdict = "faults are" if (middle != 0).any() else "no fault is"
    assert said.startswith(f"By x, {verdict} seen: {words}")
    assert (NO_MERIT in said) == (middle > 0).any()
    loud = (middle != 0).sum()
    assert said.count(" is promised, a difference of ") == min(loud, 2)
    if middle.min() < 0:
        assert "-2.0 points (95 % interval -3.0 to -1.0)" in said
    if middle.max() > 0:
        assert " 2.0 points (95 % interval 1.0 to 3.0)" in said
