"""What predictions of any kind mean, against literal computations: risks, horizons, folds."""

from dataclasses import replace

import literal
import numpy as np
import pandas as pd
import pytest
from cohort import simulated
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


def test_rounded_risks_of_a_right_model():
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


def test_curves_that_end_at_0():
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


def test_columns_in_any_order_of_their_times():
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


def test_expected_events_of_curves():
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
    assert "Observed by predicted risk: " in found.sentence
    if kind != "one late time":
        assert "On the whole, the observed risk is 0." in found.sentence
    assert "events" not in found.sentence
    shown = page({"": found})
    assert "Observed / predicted risk: Kaplan and Meier's" in shown
    assert "events by those that the model expects" not in shown
    with_events = drocox.audit(data, survival=curves, times=times, expected=0 * scores + 0.5)
    assert "Observed by expected events: " in with_events.sentence
    assert "events by those that the model expects" in page({"": with_events})


def test_the_horizon_unless_it_is_given():
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


@pytest.mark.parametrize("kind", ["scores", "survival"])
def test_no_verdict_on_a_score_that_is_backwards(kind):
    """The group that is ranked worst would be called the best."""
    data, scores = simulated(n=1000, minority=0.4, effects=(0, 0, 0))
    right = drocox.audit(data, scores)
    assert "ranking differs beyond noise. group = 0 is ranked better" in right.sentence
    survival = 1 - np.exp(-0.3 * np.exp(scores))
    given = {"scores": -scores} if kind == "scores" else {"survival": survival, "times": 0.3}
    found = drocox.audit(data, **given)
    assert found.sentence.startswith("Backwards: the c-index is 0.")
    assert "Groups are not compared" in found.sentence
    shown = page({"": found})
    for text in (found.sentence, str(found)):
        assert "ranked better" not in text and "beyond noise" not in text
    assert "ranked better" not in shown and '<b class="bad">yes' not in shown
    assert found.differences.empty and found.imparity.empty and found.slices.empty
    assert (found.table["c_index"] < 0.5)[[0, 1]].all()


def test_no_verdict_on_two_models_one_of_which_is_backwards():
    data, scores = simulated(n=400)
    found = drocox.audit(data, {"old": scores, "new": -scores})
    assert found.sentence == "new and old are not compared: by new, ranking is backwards."
    assert found.paired.empty and "Backwards: the c-index is 0." in str(found)
    assert "by new, ranking is backwards" in page(found)
