"""The audit: every measure has values and intervals, and the sentence says what they show."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cohort import simulated
from lifelines.datasets import load_rossi

import drocox
from drocox import terminal
from drocox.auditing.findings import sentences
from drocox.auditing.measures import MEASURES
from drocox.auditing.page import page

pytestmark = pytest.mark.usefixtures("undrawn")

# Measures -----------------------------------------------------------------------------------


def test_every_measure_has_values_with_intervals():
    """Log-hazards with a training part answer all questions, risks those without features."""
    data, scores = simulated(n=300)
    of_scores = drocox.audit(data, scores, train=(data, scores), threshold=0.5, features=["a", "b"])
    of_risks = drocox.audit(data, survival=np.exp(-np.exp(scores)), times=1.0)
    for name, measure in MEASURES.items():
        columns = [f"{name}_low", name, f"{name}_high"] if measure.interval else [name]
        known = of_scores.table[columns].dropna().to_numpy()
        assert len(known), name
        assert (np.diff(known, axis=1) >= -1e-12).all() and np.ptp(known) > 0, name
        compared = (of_scores.differences["measure"] == name).any()
        assert compared == measure.compared, name
        if measure.needs != "threshold":  # columns of decisions are there if they are asked for
            unknown = of_risks.table[name].isna().all()
            assert unknown == (measure.needs == "features"), name


# Intervals ----------------------------------------------------------------------------------


def test_a_small_group_leaves_the_others_their_intervals():
    """It is one more comparison, and no more than that."""
    data, scores = simulated(n=2000, minority=0.5, effects=(0.4, 0.2, 0.6))
    data = data.subset(data.event)
    scores = data.X[["a", "b", "c"]].to_numpy() @ [0.8, 0.5, 0]
    alone = replace(data, groups={"group": data.groups["group"]}, group_labels={})
    before = drocox.audit(alone, scores).imparity.iloc[0]
    assert before["says"] == "differ"
    sites = data.groups["group"].copy()
    sites[:7], sites[7:14] = 2, 3
    found = drocox.audit(replace(alone, groups={"group": sites}, group_labels={}), scores)
    after = found.imparity.set_index(["versus", "group"]).loc[("group = 0", "group = 1")]
    assert after["says"] == "differ"
    wider = (after["high"] - after["low"]) / (before["high"] - before["low"])
    assert 1.2 < wider < 1.4  # 2.6 by 1.96: six pairs instead of one
    assert 1 < after["noise_floor"] / before["noise_floor"] < 2
    small = found.imparity.iloc[-1]
    assert small["group"] == "group = 3" and small["high"] - small["low"] > 30


def test_few_events_are_counted_and_not_judged():
    data, scores = simulated(n=100)
    few = np.zeros(100, int)
    few[np.flatnonzero(data.event)[:4]] = 1
    found = drocox.audit(replace(data, groups={"few": few}, group_labels={}), scores)
    last = found.table.iloc[-1]
    sizes = list(found.table.columns[:7])
    assert last["events"] == 4 and sizes[-1] == "follow_up" and last.drop(sizes).isna().all()
    assert found.imparity.empty
    assert "Not judged: few = 1 (4 events)." in found.sentence
    assert "–" in page({"": found})
    assert "few = 1" in str(found)
    one = replace(data, groups={"one": np.zeros(100, int)}, group_labels={})
    said = drocox.audit(one, scores).sentence
    assert said.startswith("By one, ") and "alike" not in said and "differ " not in said


@pytest.mark.parametrize("early, late", [(4, 20), (5, 20), (20, 4), (20, 5)])
def test_a_group_needs_five_patients_on_either_side_of_the_horizon(early, late):
    """Five with an event up to the horizon, and five who are observed longer."""
    rng = np.random.default_rng(0)
    time = np.concatenate([rng.uniform(0, 1, 30 + early), rng.uniform(1, 2, 30 + late)])
    small = np.concatenate([np.arange(30 + early) >= 30, np.arange(30 + late) >= 30])
    event = rng.random(len(time)) < np.where(small, 1.0, 0.7)
    data = drocox.SurvivalData.from_arrays(time, event, groups={"small": small})
    risk = rng.uniform(0.1, 0.9, len(time))
    row = drocox.audit(data, survival=1 - risk, times=1.0).table.set_index("group")
    row = row.loc["small = True", ["c_index", "auc", "brier"]]
    assert row.notna().tolist() == [True, *(min(early, late) >= 5,) * 2]


def test_scores_without_information_make_no_difference():
    data, _ = simulated(n=100)
    found = drocox.audit(data, np.zeros(100))
    assert (found.table["c_index"] == 0.5).all() and (found.table["c_index_high"] == 0.5).all()
    assert not (found.imparity["says"] == "differ").any() and found.slices.empty


def test_the_sentence_and_the_table_have_one_sign():
    data, scores = simulated(n=1000, minority=0.4, effects=(-0.8, -0.5, 0))
    found = drocox.audit(data, scores)
    by_group, c_index, first, slopes, by_sex, second = found.sentence.splitlines()[:6]
    assert by_group.startswith("By group, ") and "(c-index): differs. It is 0." in c_index
    assert first.startswith("- Ranking, beside") and "worse for group = 1. " in first
    assert slopes.startswith("- Calibration slope: differs. ") and by_sex.startswith("By sex, ")
    rows = found.differences.set_index(["measure", "group"])
    told = [("c_minus_expected", "group = 1", first, 3), ("slope", "group = 1", slopes, 2)]
    for name, label, line, digits in [*told, ("c_index", "sex = 1", second, 3)]:
        row = rows.loc[[(name, label)]].iloc[0]
        assert f" {row['difference']:.{digits}f}" in line, name
        assert f"{row['low']:.{digits}f} to {row['high']:.{digits}f})" in line, name
    assert "fair" not in found.sentence


def test_noise_is_not_backwards_and_intersections_are_named_by_their_values():
    """One of two opposite noises has a c-index below one half, within its interval."""
    data, _ = simulated(n=300)
    noise = np.random.default_rng(0).normal(size=300)
    for scores in (noise, -noise):
        assert "Backwards" not in drocox.audit(data, scores).sentence
    lines = str(drocox.audit(data, noise)).splitlines()
    assert any(line.startswith("0, 1 ") for line in lines)


# Labels -------------------------------------------------------------------------------------


def test_labels_stay_distinct_when_they_are_shortened():
    alike = [
        f"black_male = {a}, other = {b}, black_female = {c}"
        for a in "01"
        for b in "01"
        for c in "01"
    ]
    for labels in (["short", *alike], alike[:2], [f"{'a' * 40}{k}{'b' * 40}" for k in range(12)]):
        short = terminal.short_labels(labels)
        assert len(set(short)) == len(labels) and max(map(len, short)) <= terminal.LABEL_WIDTH
    assert terminal.short_labels(alike[:2])[0] == "black_male =…k_female = 0"
    assert terminal.short_labels(["short"]) == ["short"]


# Differences in words -----------------------------------------------------------------------


def test_a_difference_is_that_of_the_values_above_it():
    """Times in coarse units: values and differences count ties alike, and the sentence, too."""
    df = load_rossi()
    groups = ["fin", "wexp"]
    data = drocox.SurvivalData.from_frame(df, time="week", event="arrest", groups=groups)
    scores = df["prio"] / 10 - df["age"] / 20
    found = drocox.audit(data, scores, expected=np.full(len(df), data.event.mean()))
    table = found.table.set_index("group")
    columns = ["attribute", "group", "versus", "measure", "difference", "low", "high"]
    assert list(found.differences.columns) == [*columns, "says"]
    for row in found.differences.itertuples():
        unit = 100 if row.measure == "concordance" else 1  # the paper's percent
        apart = unit * table.loc[row.group, row.measure]
        if row.measure == "calibration":
            apart /= table.loc[row.versus, row.measure]
        elif not MEASURES[row.measure].versus:  # it is no difference itself
            apart -= unit * table.loc[row.versus, row.measure]
        assert row.difference == pytest.approx(apart, abs=1e-9), row.measure
        assert row.low < row.difference < row.high
    for attribute in groups:
        line = found.sentence.split(f"By {attribute},")[1].splitlines()[1]
        numbers = re.findall(r"-?\d\.\d\d\d", line)
        row = found.differences.query("attribute == @attribute and measure == 'c_index'").iloc[0]
        assert f"{row['difference']:.3f}" in numbers
        assert f"({row['low']:.3f} to {row['high']:.3f})" in line


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ((1.004, 1.13, 1.29), "(1.004 to 1.290): risks are too low"),
        ((0.77, 0.88, 0.9996), "(0.7700 to 0.9996): risks are too high"),
        ((1.2, 1.3, 1.4), "1.30 events are observed for each expected (1.20 to 1.40): risks are"),
        ((0.996, 1.0, 1.004), ""),
    ],
)
def test_the_ends_of_an_interval_agree_with_what_is_said(limits, said):
    """No end that is not 1 is printed as 1, and risks are too low if more is observed."""
    table = pd.DataFrame({"attribute": [""], "group": ["everybody"]})
    table[["calibration_low", "calibration", "calibration_high"]] = [limits]
    table[["slope_low", "slope", "slope_high"]] = [limits]
    table[["c_index_low", "c_index_high"]] = [(0.6, 0.8)]
    none = pd.DataFrame(columns=["attribute", "measure", "low", "high", "says"])
    text = " ".join(sentences(table, none, none, (), features=None))
    assert (said in text) if said else not text
    if said:
        ends = "too low" if limits[0] > 1 else "too high"
        slope = "not extreme enough" if limits[0] > 1 else "too extreme"
        assert f"risks are {ends}" in text and f"predictions are {slope}" in text
        assert "1.00 " not in text and "1.00)" not in text


def test_hidden_groups_are_not_said_to_have_few_events():
    """Two groups of many events: one is hidden since few have none, the other to protect it."""
    data, scores = simulated(n=300)
    sex = data.groups["sex"]
    few = replace(data, event=data.event | (sex == 1), groups={"sex": sex}, group_labels={})
    found = drocox.audit(few, scores, smallest=10)
    assert found.table["patients"].isna().tolist() == [False, True, True]
    said = "By sex, nothing can be compared.\n- Not shown: sex = 0 and sex = 1."
    assert said in found.sentence
