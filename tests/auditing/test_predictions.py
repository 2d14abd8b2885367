"""What predictions of any kind mean, against literal computations: risks, horizons, folds."""

import pickle
import re
from dataclasses import replace

import literal
import numpy as np
import pandas as pd
import pytest
from cohort import simulated
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis

import drocox
from drocox.auditing.page import page


def patients(seed=0, n=400, unit=0.1):
    """Data whose times are tied, as in months, and the log-hazards that made them."""
    data, scores = simulated(seed, n=n, effects=(0.8, 0.5, 0))
    return replace(data, time=np.ceil(data.time / unit) * unit), scores


def groups_of(data):
    """Rows of the table that are groups of one attribute, with their members."""
    out = {}
    for name, codes in data.groups.items():
        for k, label in enumerate(data.group_labels[name]):
            out[label] = codes == k
    return out


# Risks of exactly 0 and 1 -------------------------------------------------------------------


def test_rounded_risks_of_a_right_model_are_judged_as_right():
    """Risks of two decimals, one in ten of which is 0.00 or 1.00: a right model stays right."""
    data, scores = simulated(5, n=3000, effects=(0.8, 0.5, 0))
    scores = 2 * scores
    rng = np.random.default_rng(0)
    death, leaves = rng.exponential(np.exp(-scores)), rng.exponential(1.5, len(data))
    data = replace(data, time=np.minimum(death, leaves), event=death <= leaves)
    survival = np.exp(-0.2 * np.exp(scores))
    rounded = (1 - survival).round(2)
    ends = ((rounded == 0) | (rounded == 1)).sum()
    assert 0.05 < ends / len(data) < 0.2
    exact = drocox.audit(data, survival=survival, times=0.2)
    found = drocox.audit(data, survival=1 - rounded, times=0.2)
    assert exact.notes == ()
    assert f"{ends} of 3000 predicted risks are exactly 0 or 1" in found.sentence
    assert "extreme" not in found.sentence and "extreme" not in exact.sentence
    for name in ("c_index", "slope", "auc", "brier", "calibration", "risk_predicted"):
        np.testing.assert_allclose(found.table[name], exact.table[name], atol=0.07, err_msg=name)
        assert found.table[[f"{name}_low", f"{name}_high"]].notna().all(axis=None)
    assert found.table["mean_risk"].isna().all()


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_the_slope_is_that_of_risks_between_0_and_1(end):
    """Scikit-survival's Cox regression on the other patients."""
    data, scores = simulated(n=300)
    survival = np.exp(-0.3 * np.exp(scores))
    survival[::7] = end
    found = drocox.audit(data, survival=survival, times=0.3).table.set_index("group")
    between = np.arange(300) % 7 > 0
    linear = np.log(-np.log(survival[between]))
    model = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-12)
    model.fit(linear[:, None], data.subset(between).y)
    assert found.loc["everybody", "slope"] == pytest.approx(model.coef_[0], rel=1e-6)
    c_index = literal.concordance_index(-survival, data.time, data.event)
    assert found.loc["everybody", "c_index"] == pytest.approx(c_index, rel=1e-12)
    risk = 1 - survival[data.groups["sex"] == 1]
    assert found.loc["sex = 1", "risk_predicted"] == pytest.approx(risk.mean(), rel=1e-12)


def test_a_group_of_rounded_risks_has_no_slope():
    data, scores = simulated(n=300)
    members = data.groups["group"] == 1
    survival = np.where(members, 1.0, np.exp(-0.3 * np.exp(scores)))
    found = drocox.audit(data, survival=survival, times=0.3).table.set_index("group")
    assert np.isnan(found.loc["group = 1", "slope"]) and found.loc["group = 1", "c_index"] == 0.5
    assert np.isfinite(found.loc["group = 0", "slope"])


@pytest.mark.parametrize(("events", "known"), [(4, False), (5, True)])
def test_a_slope_of_risks_between_0_and_1_needs_five_events(events, known):
    data, scores = simulated(n=300)
    members = np.flatnonzero((data.groups["group"] == 1) & data.event)
    survival = np.exp(-0.3 * np.exp(scores))
    survival[members[events:]] = 1.0
    found = drocox.audit(data, survival=survival, times=0.3).table.set_index("group")
    assert np.isfinite(found.loc["group = 1", "slope"]) == known


def test_the_horizon_may_be_the_last_observed_time():
    data, scores = simulated(n=300)
    last = data.time.max()
    found = drocox.audit(data, scores, horizon=last)
    assert found.horizon == last and np.isfinite(found.table["risk_observed"][0])
    with pytest.raises(ValueError, match="is beyond the last observed time"):
        drocox.audit(data, scores, horizon=1.001 * last)


def test_risks_are_compared_if_curves_end_at_0():
    """Nobody survives the last time: expected events are unknown, and risks are compared."""
    data, scores = simulated(n=300)
    times = np.append(np.quantile(data.time, [0.3, 0.6]), data.time.max())
    curves = np.exp(-np.outer(np.exp(scores), times))
    curves[:, 2] = 0
    assert data.event[data.time > times[1]].any()
    found = drocox.audit(data, survival=curves, times=times, horizon=times[1])
    without = drocox.audit(data, survival=curves[:, :2], times=times[:2], horizon=times[1])
    assert "Survival of 1 of 300 patients falls to exactly 0 before they leave" in found.sentence
    for name in ("calibration", "slope", "brier", "risk_predicted", "c_index"):
        np.testing.assert_allclose(found.table[name], without.table[name], err_msg=name)


def test_a_curve_falls_to_0_in_a_straight_line():
    data, _ = simulated(n=300)
    end = data.time.max()
    found = drocox.audit(
        data, survival=np.tile([0.8, 0.0], (300, 1)), times=[end / 2, end], horizon=0.75 * end
    )
    assert found.table["risk_predicted"][0] == pytest.approx(0.6)


# Curves -------------------------------------------------------------------------------------


def test_curves_may_have_their_times_in_any_order():
    data, scores = patients()
    times = np.linspace(0.2, data.time.max(), 6)
    curves = np.exp(-np.outer(np.exp(scores), times))
    order = np.random.default_rng(1).permutation(6)
    mixed = drocox.audit(data, survival=curves[:, order], times=times[order])
    pd.testing.assert_frame_equal(
        mixed.table, drocox.audit(data, survival=curves, times=times).table
    )


def literal_expected(times, survival, at):
    """Cumulative hazard of one patient at a time: a line between those of the curve, then flat."""
    before, hazard_before = 0.0, 0.0
    for t, s in zip(times, survival, strict=True):
        hazard = -np.log(s)
        if at <= t:
            return hazard_before + (hazard - hazard_before) * (at - before) / (t - before)
        before, hazard_before = t, hazard
    return hazard_before


def test_expected_events_are_the_cumulative_hazard_of_the_curves():
    """Curves that reach the last event, not the last patient: what comes later is not expected."""
    data, scores = patients()
    last = data.time[data.event].max()
    data = replace(data, time=np.where(~data.event & (data.time > 0.8 * last), 2 * last, data.time))
    times = np.append(np.linspace(0.3, 0.9 * last, 4), last)
    curves = np.exp(-(np.outer(np.exp(scores), times) ** 1.3))
    found = drocox.audit(data, survival=curves, times=times).table.set_index("group")
    expected = [literal_expected(times, s, t) for s, t in zip(curves, data.time, strict=True)]
    for label, members in groups_of(data).items():
        ratio = data.event[members].sum() / np.array(expected)[members].sum()
        assert found.loc[label, "calibration"] == pytest.approx(ratio, rel=1e-12)


def kaplan_meier_ratio(data, members, risk, at):
    outcomes = data.time[members], data.event[members]
    return (1 - literal.kaplan_meier(*outcomes, at)) / risk[members].mean()


@pytest.mark.parametrize("kind", ["one time", "one late time", "too short"])
@pytest.mark.usefixtures("undrawn")
def test_without_expected_events_risks_are_compared(kind):
    """One time, or curves that end before the last event: a ratio of risks, which is said."""
    data, scores = patients()
    at = np.quantile(data.time[data.event], 1 if kind == "one late time" else 0.7)
    times = np.array([at / 2, at]) if kind == "too short" else np.array([at])
    curves = np.exp(-1.5 * np.outer(np.exp(scores), times))
    found = drocox.audit(data, survival=curves, times=times)
    table = found.table.set_index("group")
    assert found.horizon == pytest.approx(at)
    for label, members in groups_of(data).items():
        ratio = kaplan_meier_ratio(data, members, 1 - curves[:, -1], at)
        assert table.loc[label, "calibration"] == pytest.approx(ratio, rel=1e-10)
    assert "- Observed / predicted risk: " in found.sentence
    if kind != "one late time":
        assert "On the whole, the observed risk is 0." in found.sentence
    assert "Observed / expected" not in found.sentence
    shown = page({"": found})
    assert "<dt>Observed / predicted risk</dt><dd>Kaplan and Meier's" in shown
    assert "Events by those that the model expects" not in shown
    with_events = drocox.audit(data, survival=curves, times=times, expected=0 * scores + 0.5)
    assert "- Observed / expected: " in with_events.sentence
    assert "Events by those that the model expects" in page({"": with_events})


def test_a_tenth_is_still_observed_at_the_default_horizon():
    """A tenth of the patients is still observed then, or it is the last time of the curves."""
    data, scores = patients(unit=0.01)
    usual = drocox.audit(data, scores).horizon
    events = np.unique(data.time[data.event])
    enough = [t for t in events if 10 * (data.time > t).sum() >= len(data)]
    assert usual == pytest.approx(max(enough))
    for last in (0.5 * usual, 2 * usual):
        times = np.array([0.1 * usual, last])
        survival = np.exp(-np.outer(np.exp(scores), times))
        found = drocox.audit(data, survival=survival, times=times)
        assert found.horizon == pytest.approx(min(usual, last))
        share = (found.horizon - times[0]) / (last - times[0])
        hazard = -np.log(survival) @ [1 - share, share]
        assert found.table["risk_predicted"][0] == pytest.approx(-np.expm1(-hazard).mean())


# Training parts and folds -------------------------------------------------------------------


def test_each_fold_has_the_baseline_of_its_training_part():
    """Events at tied times count as passed; folds differ in their baseline and their labels."""
    data, scores = patients()
    early, late = patients(1, n=200), patients(2, n=150)
    late = (replace(late[0], time=3 * late[0].time), late[1])
    fold = np.where(np.arange(len(data)) % 3 == 0, "z", "b")
    train = {"z": early, "b": late}
    at = 0.6
    found = drocox.audit(data, scores, folds=fold, train=train, horizon=at)
    expected = np.empty(len(data))
    risk = np.empty(len(data))
    for label, (part, of_part) in train.items():
        for i in np.flatnonzero(fold == label):
            curve = literal.breslow_survival(
                of_part, part.time, part.event, scores[i : i + 1], np.array([data.time[i], at])
            )[0]
            expected[i], risk[i] = -np.log(curve[0]), 1 - curve[1]
    table = found.table.set_index("group")
    assert np.isin(data.time[data.event], early[0].time).mean() > 0.5  # ties matter
    for label, members in groups_of(data).items():
        ratio = data.event[members].sum() / expected[members].sum()
        assert table.loc[label, "calibration"] == pytest.approx(ratio, rel=1e-10)
        assert table.loc[label, "risk_predicted"] == pytest.approx(risk[members].mean(), rel=1e-10)
    one = drocox.audit(data, scores, train=early).table
    same = drocox.audit(data, scores, folds=np.zeros(len(data)), train={0: early}).table
    pd.testing.assert_frame_equal(one, same)


def test_expected_events_that_are_given_go_before_those_of_a_training_part():
    data, scores = patients()
    expected = np.linspace(0.2, 1.4, len(data))
    found = drocox.audit(data, scores, expected=expected, train=(data, scores))
    ratio = data.event.sum() / expected.sum()
    assert found.table["calibration"][0] == pytest.approx(ratio, rel=1e-12)
    alone = drocox.audit(data, scores, train=(data, scores))
    np.testing.assert_allclose(found.table["risk_predicted"], alone.table["risk_predicted"])


def test_scores_rank_and_survival_has_the_slope():
    """Both are given: c-index and AUC of the scores, slope and mean risk of the probabilities."""
    data, scores = simulated(n=300)
    noise = scores + np.random.default_rng(0).normal(size=300)
    survival = np.exp(-0.3 * np.exp(0.5 * scores))
    names = {"rank": ["c_index", "uno_c", "auc"], "scale": ["slope", "mean_risk", "brier"]}
    both = drocox.audit(data, noise, survival=survival, times=0.3).table
    ranked = drocox.audit(data, noise, horizon=0.3).table
    scaled = drocox.audit(data, survival=survival, times=0.3).table
    np.testing.assert_allclose(both[names["rank"]], ranked[names["rank"]], rtol=1e-9)
    np.testing.assert_allclose(both[names["scale"]], scaled[names["scale"]], rtol=1e-9)


# Backwards ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", ["scores", "survival"])
def test_no_verdict_on_a_score_that_is_backwards(kind):
    """The group that is ranked worst would be called the best."""
    data, scores = simulated(n=1000, minority=0.4, effects=(0, 0, 0))
    right = drocox.audit(data, scores)
    assert "to expect: worse for group = 1." in right.sentence
    survival = 1 - np.exp(-0.3 * np.exp(scores))
    given = {"scores": -scores} if kind == "scores" else {"survival": survival, "times": 0.3}
    found = drocox.audit(data, **given)
    assert found.sentence.startswith("Backwards: the c-index is 0.")
    assert "Groups are not compared" in found.sentence
    shown = page({"": found})
    for text in (found.sentence, str(found)):
        assert "expected" not in text and "cannot tell" not in text
    assert "ranked better" not in shown and '<b class="bad">yes' not in shown
    assert found.differences.empty and found.imparity.empty and found.slices.empty
    assert (found.table["c_index"] < 0.5)[[0, 1]].all()


@pytest.mark.usefixtures("undrawn")
def test_no_verdict_on_two_models_one_of_which_is_backwards():
    data, scores = simulated(n=400)
    found = drocox.audit(data, {"old": scores, "new": -scores})
    assert found.sentence == "new and old are not compared: by new, ranking is backwards."
    assert found.paired.empty and "Backwards: the c-index is 0." in str(found)
    assert "by new, ranking is backwards" in page(found)


# One model passed in several ways -----------------------------------------------------------


KNOWN_FROM_SCORES = ["c_index", "concordance", "uno_c", "slope", "risk_observed", "auc"]


def test_one_model_passed_in_several_ways_has_the_same_table(model):
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
    assert expected.sentence.startswith(
        "By group, with 95 % intervals:\n- Observed / expected: cannot tell. It is "
    )
    assert expected.slices.empty


@pytest.fixture(scope="module")
def right(model):
    """The audit of the right scores."""
    return drocox.audit(*model)


def _with_outlier(log_hazards):
    """Hazards of which one is so high that they have no slope."""
    hazards = np.exp(log_hazards)
    hazards[np.argmax(hazards)] *= 20
    return hazards


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (np.exp, "look like hazards or numbers of events: pass their logarithms"),
        (_with_outlier, "look like hazards or numbers of events: pass their logarithms"),
        (lambda f: np.round(4 * f + 20), "they look like points: their ranking is judged"),
        (lambda f: 300 * f, "on another scale, or far too extreme: their ranking is judged"),
        (lambda f: 1 - np.exp(-np.exp(f)), "look like risks: pass them as risks, with a horizon"),
        (lambda f: -f, "must mean earlier events: pass -scores, or add --later to the command"),
        (lambda f: np.exp(-f), "times to the event: pass -scores, or add --later to the command"),
        (lambda f: np.exp(-np.exp(f)), "look like survival: pass them as survival, with a horizon"),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_scores_on_another_scale_are_noticed(model, right, change, words):
    data, scores = model
    found = drocox.audit(data, change(scores), train=(data, change(scores)))
    assert words in found.sentence and words in page({"": found})
    for name in ("survival=", "np."):  # of the function: the command says the same
        assert name not in found.sentence
    assert found.table[["slope", "mean_risk", "calibration"]].isna().all(axis=None)
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


def test_times_beyond_the_survival_curves_are_refused(model):
    data, _ = model
    tree = RandomSurvivalForest(n_estimators=2, min_samples_leaf=50, random_state=0)
    curves = tree.fit(data.X, data.y).predict_survival_function(data.X)
    late = [tree.unique_times_[-1] * 2]
    with pytest.raises(ValueError, match="times go beyond those of the survival curves"):
        drocox.audit(data, survival=curves, times=late)
    found = drocox.audit(data, survival=curves, times=0.5)
    assert found.table["c_index"].notna().all()


def test_survival_that_is_risk_is_noticed(model):
    data, scores = model
    found = drocox.audit(data, survival=1 - np.exp(-np.exp(scores)), times=1.0)
    assert "and their absence, look exchanged" in found.sentence
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


# Input --------------------------------------------------------------------------------------


def test_bad_input_is_refused_by_name():
    data, scores = simulated(n=50)
    with pytest.raises(TypeError, match="SurvivalData with groups"):
        drocox.audit(data.X, scores)
    with pytest.raises(TypeError, match="SurvivalData with groups"):
        drocox.audit(replace(data, groups={}, group_labels={}), scores)
    with pytest.raises(ValueError, match="scores has 49, data has 50"):
        drocox.audit(data, scores[1:])
    with pytest.raises(ValueError, match="folds has 3"):
        drocox.audit(data, scores, folds=[1, 2, 3])
    with pytest.raises(ValueError, match="scores holds 1 NaN"):
        drocox.audit(data, np.append(scores[1:], np.nan))
    with pytest.raises(ValueError, match="the first in row 49; score these patients, or leave"):
        drocox.audit(data, np.append(scores[1:], np.nan))
    with pytest.raises(ValueError, match="scores in train has 3"):
        drocox.audit(data, scores, train=(data, scores[:3]))
    with pytest.raises(ValueError, match="folds leaves nobody to be compared with; use fewer"):
        drocox.audit(data, scores, folds=np.arange(50))
    with pytest.raises(ValueError, match="one label per patient, and none may be missing"):
        drocox.audit(data, scores, folds=np.append(np.ones(49), np.nan))
    rare = replace(data, event=np.arange(50) < 4)
    with pytest.raises(ValueError, match="4 event"):
        drocox.audit(rare, scores)


def test_bad_training_parts_are_refused_by_name():
    data, scores = simulated(n=50)
    fold = np.arange(50) % 3
    pair = (data, scores)
    with pytest.raises(ValueError, match=r"train lacks fold 1, 2; pass a pair \(SurvivalData, sc"):
        drocox.audit(data, scores, folds=fold, train={0: pair})
    with pytest.raises(ValueError, match="train is a mapping by fold; pass folds=, the fold of ea"):
        drocox.audit(data, scores, train={0: pair, 1: pair})
    for train in (scores, data, pair[:1], (scores, data), {0: pair, 1: scores, 2: pair}):
        folds = fold if isinstance(train, dict) else None
        with pytest.raises(TypeError, match=r"train must be a pair \(SurvivalData, scores"):
            drocox.audit(data, scores, folds=folds, train=train)


def test_eight_patients_are_enough():
    """Half of them may hold nobody to be compared with."""
    for seed in range(8):
        data, scores = simulated(seed, n=8)
        data = replace(data, event=np.arange(8) < 5)
        found = drocox.audit(data, scores, folds=np.arange(8) // 2)
        assert found.slices.empty and found.table["events"].iloc[0] == 5


def test_huge_scores_leave_text_and_page_readable():
    data, scores = simulated(n=200)
    for options in ({}, {"train": (data, scores)}):
        found = drocox.audit(data, 1e300 * scores, **options)
        text = str(found) + page({"": found})
        assert max(map(len, str(found).splitlines())) <= 80
        assert "inf" not in text and "nan" not in text
        assert max(map(len, re.findall(r"\d+", text))) < 15


# Labels of rows, and other doors ---------------------------------------------------------------


def test_a_series_with_another_index_is_refused():
    data, scores = patients()
    series = pd.Series(scores)
    expected = drocox.audit(data, scores).table
    pd.testing.assert_frame_equal(drocox.audit(data, series).table, expected)
    shuffled = series.sort_values()
    words = r"scores has another index than data\.X; pass scores\.reindex\(data\.X\.index\)"
    with pytest.raises(ValueError, match=words):
        drocox.audit(data, shuffled)
    aligned = drocox.audit(data, shuffled.reindex(data.X.index)).table
    pd.testing.assert_frame_equal(aligned, expected)
    with pytest.raises(ValueError, match="scores has another index"):
        drocox.audit(data, pd.DataFrame({"one": scores, "two": scores}, shuffled.index))
    risk = np.exp(shuffled) / (1 + np.exp(shuffled))
    for name, given in (
        ("risk", {"risk": risk, "horizon": 1.0}),
        ("survival", {"survival": 1 - risk, "times": 1.0}),
        ("expected", {"expected": risk}),
        ("folds", {"scores": scores, "folds": (shuffled > 0).astype(int)}),
        ("scores in train", {"scores": scores, "train": (data, shuffled)}),
    ):
        with pytest.raises(ValueError, match=f"{name} has another index"):
            drocox.audit(data, **given)


def test_risks_are_one_minus_survival():
    data, scores = patients()
    risk = -np.expm1(-np.exp(scores) / 2)
    by_risk = drocox.audit(data, risk=risk, horizon=0.5)
    by_survival = drocox.audit(data, survival=1 - risk, times=0.5)
    pd.testing.assert_frame_equal(by_risk.table, by_survival.table)
    both = drocox.audit(data, risk={"a": risk, "b": risk / 2}, horizon=0.5)
    pd.testing.assert_frame_equal(both["a"].table, by_risk.table)
    with pytest.raises(TypeError, match="risk needs horizon="):
        drocox.audit(data, risk=risk)
    with pytest.raises(TypeError, match="risk and survival both give risks"):
        drocox.audit(data, risk=risk, survival=risk, horizon=1.0)
    with pytest.raises(ValueError, match="divide percentages by 100"):
        drocox.audit(data, risk=100 * risk, horizon=1.0)


@pytest.mark.usefixtures("undrawn")
def test_an_audit_is_saved_and_read_again():
    data, scores = patients(n=200)
    found = drocox.audit(data, {"one": scores, "two": scores / 2}, features=["a"])
    again = pickle.loads(pickle.dumps(found))
    assert again.sentence == found.sentence and page(again) == page(found)


def test_an_audit_is_named_in_one_line():
    data, scores = patients()
    found = drocox.audit(data, scores)
    words = f"Audit('cohort': 400 patients, {data.event.sum()} events, by group, sex)"
    assert repr(found) == words
    both = drocox.audit(data, {"one": scores, "two": scores / 2})
    assert repr(both) == f"Audits('one', 'two': {words})"
