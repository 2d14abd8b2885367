"""The audit of models of any kind: one model passed in several ways, ties, pairs, small cells."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cohort import simulated
from lifelines import KaplanMeierFitter
from lifelines.datasets import load_rossi
from sksurv.ensemble import RandomSurvivalForest

import drocox
from drocox.auditing.page import page as page_of
from drocox.tuning import cross_fit

KNOWN_FROM_SCORES = ["c_index", "concordance", "uno_c", "slope", "risk_observed", "auc"]


@pytest.fixture(scope="module")
def model():
    """Patients, log-hazards and the baseline hazard, which is 1."""
    data, scores = simulated(3, n=500, effects=(0.8, 0.5, 0))
    return data, scores


def test_one_model_passed_in_several_ways(model):
    data, scores = model
    times = np.linspace(data.time.min() / 2, data.time.max(), 80)
    at = 0.5
    curves = np.exp(-np.outer(np.exp(scores), times))
    as_scores = drocox.audit(data, scores, horizon=at)
    as_curves = drocox.audit(data, survival=curves, times=times, horizon=at)
    at_once = drocox.audit(data, survival=np.exp(-at * np.exp(scores)), times=at)
    expected = drocox.audit(data, expected=data.time * np.exp(scores), horizon=at)
    for other in (as_curves, at_once):
        np.testing.assert_allclose(
            other.table[KNOWN_FROM_SCORES], as_scores.table[KNOWN_FROM_SCORES], rtol=1e-6
        )
        assert other.notes == ()
    np.testing.assert_allclose(as_curves.table["calibration"], expected.table["calibration"])
    np.testing.assert_allclose(as_curves.table["brier"], at_once.table["brier"], rtol=1e-6)
    assert (as_curves.table["calibration_low"] < 1).all()
    assert as_scores.table[["calibration", "risk_predicted", "brier"]].isna().all(axis=None)
    assert expected.table[["c_index", "slope", "auc", "brier"]].isna().all(axis=None)
    assert expected.sentence.startswith("By group, calibration does not differ beyond noise.")
    assert expected.slices.empty


def _with_outlier(log_hazards):
    """Hazards of which one is so high that they have no slope."""
    hazards = np.exp(log_hazards)
    hazards[np.argmax(hazards)] *= 20
    return hazards


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (np.exp, "look like hazards or numbers of events: pass np.log(scores)"),
        (_with_outlier, "look like hazards or numbers of events: pass np.log(scores)"),
        (lambda f: np.round(4 * f + 20), "they look like points: pass log-hazards"),
        (lambda f: 300 * f, "on another scale, or far too extreme: pass log-hazards"),
        (lambda f: 1 - np.exp(-np.exp(f)), "look like risks: pass survival=1 - scores"),
        (lambda f: -f, "Higher scores must mean earlier events: pass -scores"),
        (lambda f: np.exp(-f), "look like times to the event: pass -scores"),
        (lambda f: np.exp(-np.exp(f)), "look like survival: pass survival="),
    ],
)
def test_scores_on_another_scale_are_noticed(model, change, words):
    data, scores = model
    found = drocox.audit(data, change(scores), train=(data, change(scores)))
    assert words in found.sentence and words in page_of({"": found}).replace("&#39;", "'")
    assert found.table[["slope", "mean_risk", "calibration"]].isna().all(axis=None)
    right = drocox.audit(data, scores)
    assert right.notes == ()
    if change in (_with_outlier,) or "points" in words:
        assert found.table["c_index"].iloc[0] == pytest.approx(
            right.table["c_index"].iloc[0], abs=0.01
        )
    elif "higher" not in words and "pass -scores" not in words and "like survival" not in words:
        np.testing.assert_allclose(found.table["c_index"], right.table["c_index"])


def test_curves_of_scikit_survival_and_transposed_tables(model):
    """Functions of time are evaluated; lifelines has patients in columns."""
    data, scores = model
    times = np.array([0.2, 0.5])
    curves = np.exp(-np.outer(np.exp(scores), times))
    functions = [lambda t, h=h: np.exp(-h * np.asarray(t)) for h in np.exp(scores)]
    of_array = drocox.audit(data, survival=curves, times=times)
    for given in (functions, np.array(functions)):
        found = drocox.audit(data, survival=given, times=times)
        pd.testing.assert_frame_equal(found.table, of_array.table)
    with pytest.raises(ValueError, match=r"one column for each of 2 time\(s\); that is survival.T"):
        drocox.audit(data, survival=curves.T, times=times)


def test_curves_end_with_the_training_times(model):
    data, _ = model
    tree = RandomSurvivalForest(n_estimators=2, min_samples_leaf=50, random_state=0)
    curves = tree.fit(data.X, data.y).predict_survival_function(data.X)
    late = [tree.unique_times_[-1] * 2]
    with pytest.raises(ValueError, match="times go beyond those of the survival curves"):
        drocox.audit(data, survival=curves, times=late)
    assert "ranking" in drocox.audit(data, survival=curves, times=0.5).sentence


def test_survival_that_is_risk_is_noticed(model):
    data, scores = model
    found = drocox.audit(data, survival=1 - np.exp(-np.exp(scores)), times=1.0)
    assert "pass survival=1 - risk" in found.sentence
    with pytest.raises(ValueError, match="survival rises with time"):
        drocox.audit(data, survival=np.tile([0.1, 0.2], (500, 1)), times=[1.0, 2.0])


def test_what_cannot_be_judged_is_refused(model):
    data, scores = model
    half = np.full(500, 0.5)
    gap = np.where(np.arange(500) == 7, np.nan, half)
    for arguments, words in (
        ({}, "nothing to judge: pass scores"),
        ({"scores": scores, "times": 1.0}, "times goes with survival="),
        ({"survival": half}, "survival needs times="),
        ({"survival": half, "times": 1.0, "train": (data, scores)}, "train is the baseline of"),
    ):
        with pytest.raises(TypeError, match=words):
            drocox.audit(data, **arguments)
    for arguments, words in (
        ({"survival": half[1:], "times": 1.0}, "one row for each of 500 patients"),
        ({"survival": 3 * half, "times": 1.0}, "between 0 and 1; divide percentages by 100"),
        ({"survival": gap, "times": 1.0}, "survival holds 1 NaN .* row 7; score these patients"),
        ({"survival": half, "times": 1.0, "horizon": 0.5}, "leave horizon out"),
        ({"scores": scores, "horizon": 1e9}, "beyond the last observed time"),
        ({"expected": -half}, "expected holds negative"),
        ({"scores": scores, "smallest": -1}, "smallest must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=words):
            drocox.audit(data, **arguments)


def test_a_difference_is_that_of_the_values_above_it():
    """Times in coarse units: values and differences count ties alike, and the sentence, too."""
    df = load_rossi()
    groups = ["fin", "wexp"]
    data = drocox.SurvivalData.from_frame(df, time="week", event="arrest", groups=groups)
    scores = df["prio"] / 10 - df["age"] / 20
    found = drocox.audit(data, scores, expected=np.full(len(df), data.event.mean()))
    table = found.table.set_index("group")
    columns = ["attribute", "group", "versus", "measure", "difference", "low", "high"]
    assert list(found.differences.columns) == [*columns, "beyond_noise"]
    for row in found.differences.itertuples():
        unit = 1 if row.measure in ("slope", "calibration", "brier") else 100
        apart = unit * (table.loc[row.group, row.measure] - table.loc[row.versus, row.measure])
        assert row.difference == pytest.approx(apart, abs=1e-9), row.measure
        assert row.low < row.difference < row.high
        assert row.beyond_noise == (row.low > 0 or row.high < 0)
    for attribute in groups:
        line = next(x for x in found.sentence.splitlines() if x.startswith(f"By {attribute},"))
        ranking = line[line.index("c-index") : line.index(" points")]
        better, worse = map(float, re.findall(r"0\.\d\d\b", ranking)[:2])
        points = float(ranking.split()[-1])
        assert points == pytest.approx(100 * (better - worse), abs=1.05)


def test_coarse_times_are_mentioned():
    """A perfect ranking in years: the c-index and Algorithm B.1 see a gap, and a note says why."""
    rng = np.random.default_rng(0)
    n = 3000
    group = rng.integers(0, 2, n)
    death = rng.exponential(np.where(group == 1, 0.7, 4.0))
    leaves = rng.exponential(4.0, n)
    time = np.minimum(death, leaves)
    X = pd.DataFrame({"x": death})
    exact = drocox.SurvivalData("days", X, time, death <= leaves, {"group": group})
    assert drocox.audit(exact, -death).notes == ()
    coarse = replace(exact, time=np.ceil(time))
    pairs = 0
    tied = 0
    for i in np.flatnonzero(coarse.event):
        pairs += (coarse.time > coarse.time[i]).sum()
        tied += ((coarse.time == coarse.time[i]) & ~coarse.event).sum()
    share = f"in {100 * tied / (pairs + tied):.0f} % of the pairs behind the c-index one patient"
    assert share in drocox.audit(coarse, -death).sentence.splitlines()[0]


def test_the_sentence_on_flc_over_75_does_not_contradict_the_own_c_index():
    """Once "ranked better by 6 points": with everybody, yes; among themselves they are worse."""
    flc = drocox.load_dataset("flc")
    old = np.where(flc.X["age"] > 75, "over 75", "up to 75")
    frame = flc.X.assign(days=flc.time, died=flc.event)
    data = drocox.SurvivalData.from_frame(frame, time="days", event="died", groups={"age": old})
    found = drocox.audit(data, **cross_fit(data))
    line = found.sentence.splitlines()[0]
    assert line.startswith("By age, ranking differs beyond noise. age = up to 75 is ranked better")
    assert "c-index 0.73 against 0.67: 5.9 points (95 % interval 3.2 to 8.5)" in line
    assert "over 75 is ranked better" not in found.sentence
    table = found.table.set_index("group")
    assert table.loc["age = over 75", "c_index"] < table.loc["age = up to 75", "c_index"]
    by_algorithm = found.imparity.iloc[0]  # which says the opposite, and is not the headline
    assert by_algorithm["versus"] == "age = over 75" and by_algorithm["high"] < -4


def test_two_models_are_compared_on_the_same_patients(model):
    data, scores = model
    noise = 0.6 * np.random.default_rng(0).normal(size=500)
    first, second = drocox.audit(data, scores), drocox.audit(data, scores + noise)
    found = first.compare(second)
    everybody = found[(found["group"] == "everybody") & (found["measure"] == "c_index")].iloc[0]
    apart = first.table["c_index"][0] - second.table["c_index"][0]
    assert everybody["difference"] == pytest.approx(100 * apart) and everybody["beyond_noise"]
    alone = first.table["c_index_high"][0] - first.table["c_index_low"][0]
    assert everybody["high"] - everybody["low"] < 100 * alone  # paired
    backwards = second.compare(first)
    np.testing.assert_allclose(backwards["difference"], -found["difference"])
    np.testing.assert_allclose(first.compare(first)["difference"], 0)
    with pytest.raises(ValueError, match="same data and groups"):
        first.compare(drocox.audit(data.subset(slice(0, 400)), scores[:400]))


def test_many_sites_are_compared_with_everybody():
    data, scores = simulated(1, n=4000)
    site = np.random.default_rng(0).integers(0, 45, 4000)
    scores = np.where(site == 7, -scores, scores)
    found = drocox.audit(replace(data, groups={"site": site}, group_labels={}), scores)
    rows = found.differences[found.differences["measure"] == "c_index"]
    assert len(rows) == 45 and (rows["versus"] == "everybody").all() and len(found.imparity) == 45
    assert list(rows.loc[rows["beyond_noise"], "group"]) == ["site = 7"]
    assert "1 of 45 groups differs from everybody; most of all" in found.sentence
    page = page_of({"": found})
    assert page.count("<svg") == 1 and len(page) < 150_000
    assert "beyond noise: site = 7." in page and "Performance by site, each group" in page
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
@pytest.mark.parametrize("at_once", [False, True])
def test_limits_of_a_funnel_hold_groups_without_difference(at_once):
    outside = []
    for seed in range(6):
        data, scores = simulated(seed, n=3000, effects=(0.8, 0.5, 0))
        share = np.random.default_rng(1).dirichlet(np.full(20, 3.0))
        site = np.random.default_rng(seed).choice(20, 3000, p=share)
        data = replace(data, X=data.X[["a"]], groups={"site": site}, group_labels={})
        (one,) = drocox.audit(data, scores).funnels()
        low, high = one.limits(one.groups["events"].to_numpy(), at_once)
        outside.append((~one.groups["c_index"].between(low, high)).sum())
    assert sum(outside) <= (2 if at_once else 14)  # of 120; 6 are expected outside the narrow ones
    assert at_once or sum(outside) >= 1


def test_a_funnel_with_a_group_that_cannot_be_compared():
    """Whoever is ranked without a mistake has a c-index, and no error to compare it by."""
    data, scores = simulated(n=400)
    site = np.arange(400) % 7
    site[data.groups["group"] == 0] %= 6
    few = np.flatnonzero(site == 6)
    scores[few] = -data.time[few]
    found = drocox.audit(replace(data, groups={"site": site}, group_labels={}), scores)
    groups = found.funnels()[0].groups.set_index("group")
    assert groups.loc["site = 6", "c_index"] == 1 and not groups.loc["site = 6", "beyond_noise"]
    of_c_index = found.differences[found.differences["measure"] == "c_index"]
    assert "site = 6" not in set(of_c_index["group"])


def test_too_many_intersections_are_left_out():
    data, scores = simulated(n=400)
    rng = np.random.default_rng(0)
    groups = {f"a{k}": rng.integers(0, 2, 400) for k in range(10)}
    found = drocox.audit(replace(data, groups=groups, group_labels={}), scores)
    assert (
        len(found.table) == 21 and "intersections of 10 attributes are not judged" in found.notes[0]
    )


# What goes elsewhere ------------------------------------------------------------------------


def test_tables_for_other_programs(model, tmp_path):
    data, scores = model
    found = drocox.audit(data, scores)
    told = json.loads(found.to_json(tmp_path / "a.json"))
    assert told["table"][0]["patients"] == 500 and told["table"][0]["brier"] is None
    assert len(told["differences"]) == len(found.differences)
    assert (tmp_path / "a.json").exists()
    assert found.to_csv().splitlines()[0].startswith("attribute,group,patients,events,c_index")
    assert "| everybody | 500 |" in found.to_markdown() and "nan" not in found.to_markdown()
    assert "<table" in found._repr_html_() and "beyond noise" in found._repr_html_()


def test_the_calibration_plot(model):
    data, scores = model
    found = drocox.audit(data, scores, train=(data, scores))
    assert len(found.plot_calibration().axes) == 2
    curves = found.calibration_curves()
    assert curves.groupby("attribute")["patients"].sum().tolist() == [500, 500]
    risk = found._predictions.patients.risk[data.groups["sex"] == 1]
    mine = curves[curves["group"] == "sex = 1"]
    assert mine["predicted"].iloc[-1] == pytest.approx(
        np.sort(risk)[-len(risk) // 5 :].mean(), 0.02
    )
    page = page_of({"": found})
    assert page.count("Calibration by ") == 2 and page.count("<svg") == 3
    alone = drocox.audit(data, scores)
    assert alone.calibration_curves().empty and "Calibration by " not in page_of({"": alone})
    hidden = drocox.audit(data, scores, train=(data, scores), smallest=60)
    assert "group = 1" not in set(hidden.calibration_curves()["group"])
    with pytest.raises(ValueError, match="no risks to draw"):
        drocox.audit(data, scores).plot_calibration()
    with pytest.raises(ValueError, match="no group is large enough to be drawn in parts"):
        found.plot_calibration(bins=251)  # two patients in each part of 500


def test_intervals_of_calibration_curves_are_those_of_kaplan_and_meier(model):
    data, scores = model
    found = drocox.audit(data, scores, train=(data, scores))
    curves = found.calibration_curves(bins=1).set_index("group")
    assert (curves["low"] < curves["observed"]).all() and (
        curves["observed"] < curves["high"]
    ).all()
    mine = data.groups["sex"] == 1
    fitter = KaplanMeierFitter().fit(data.time[mine], data.event[mine])
    ends = 1 - fitter.confidence_interval_.asof(found.horizon).to_numpy()
    row = curves.loc["sex = 1"]
    assert sorted(ends) == pytest.approx([row["low"], row["high"]], rel=1e-9)
    assert row["events"] == (data.event[mine] & (data.time[mine] <= found.horizon)).sum()


def test_data_from_arrays(model):
    data, scores = model
    sex = np.where(data.groups["sex"] == 1, "m", "f")
    made = drocox.SurvivalData.from_arrays(data.time, data.event, groups={"sex": sex})
    same = drocox.SurvivalData.from_arrays(data.y, groups={"sex": sex}, X=data.X)
    for one in (made, same):
        table = drocox.audit(one, scores).table.set_index("group")
        assert table.loc["sex = m", "patients"] == (sex == "m").sum()
    assert made.feature_names == ["sex"] and same.feature_names == data.feature_names
    with pytest.raises(TypeError, match="pass time and event, or scikit-survival"):
        drocox.SurvivalData.from_arrays(data.time, groups={"sex": sex})
    with pytest.raises(TypeError, match=r"groups=\{'sex': labels\}, not be of type ndarray"):
        drocox.SurvivalData.from_arrays(data.y, groups=sex)
    frame = drocox.SurvivalData.from_arrays(data.y, groups=pd.DataFrame({"sex": sex}))
    assert frame.group_labels == made.group_labels


# The page's warnings ------------------------------------------------------------------------


def test_the_page_warns_of_few_events_and_of_what_was_said(model):
    data, scores = model
    site = np.zeros(500, int)
    site[np.flatnonzero(data.event)[:3]] = 1
    site[np.flatnonzero(data.event)[3:12]] = 2
    found = drocox.audit(replace(data, groups={"site": site}, group_labels={}), scores)
    assert found.cautions == [
        "Not judged, with fewer than 5 events: site = 1 (3).",
        "Few events, so that intervals are wide and rough, those of concordance a little short: "
        "site = 2 (9).",
    ]
    assert "Not judged, with fewer than 5 events: site = 1 (3)." in str(found)
    assert max(map(len, str(found).splitlines())) <= 80
    page = page_of({"": found}, warnings=["Cox: coefficients run <away>."])
    assert "</b> Cox: coefficients run &lt;away&gt;." in page and found.cautions[0] in page
    hidden = drocox.audit(
        replace(data, groups={"site": site}, group_labels={}), scores, smallest=10
    )
    assert hidden.cautions == []  # nor are small cells told here
    for words in ("8a", "12e", "23a", "BMJ 2024", "Performance by subgroup"):
        assert words in page


# Several attributes -------------------------------------------------------------------------


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
    # 16 nearly independent comparisons in the headline, 2.95 by 1.96, and 8 of slopes, 2.73
    for measure, factor in (("c_index", 2.95 / 1.96), ("calibration", 1.6), ("slope", 2.73 / 1.96)):
        assert wider[apart["measure"] == measure].mean() == pytest.approx(factor, abs=0.1)
    assert "5 % of such pages would call a difference in c-index" in page_of({"": found})
    one = replace(data, groups={"a0": groups["a0"]}, group_labels={})
    both, ranking = drocox.audit(one, **given), drocox.audit(one, scores)
    width = [(a.differences["high"] - a.differences["low"])[0] for a in (both, ranking)]
    assert width[0] / width[1] == pytest.approx(2.24 / 1.96, abs=0.03)  # with calibration


@pytest.mark.slow
def test_no_attribute_of_many_is_found_by_chance():
    """Ten attributes without any difference: one in twenty audits may find one, not four in ten."""
    alarms = {True: 0, False: 0}
    for seed in range(20):
        data, scores = simulated(seed, n=300, effects=(0.8, 0.5, 0))
        rng = np.random.default_rng(seed)
        groups = {f"a{k}": rng.integers(0, 2, len(data)) for k in range(10)}
        data = replace(data, X=data.X[["a"]], groups=groups, group_labels={})
        for familywise in alarms:
            found = drocox.audit(data, scores, familywise=familywise).differences
            rows = found[found["measure"] == "c_index"]
            alarms[familywise] += rows["beyond_noise"].any()
    assert alarms[True] <= 3 and alarms[False] >= 5


@pytest.mark.slow
def test_a_few_data_sets_of_the_table_of_coverage(monkeypatch):
    """Two dozen draws cannot tell 95 % from 90, but would show intervals of half their width."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import audit_coverage

    monkeypatch.setattr(audit_coverage, "LARGE", 20_000)
    design = audit_coverage.Design(2, 0.3, "tied times")
    shares = audit_coverage.covered(design, sets=24, seed=0)
    assert len(shares) == 17 and min(shares.values()) > 0.7
    assert np.mean(list(shares.values())) > 0.88
