"""Whether a model of the group's own would rank it better."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cohort import simulated
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

import drocox
from drocox.auditing import own_model
from drocox.auditing.findings import NOT_ASKED
from drocox.auditing.own_model import OwnModelGain, own_scores
from drocox.heldout import HeldOut


def versus_own(found):
    return found.differences[found.differences["measure"] == "own_model_gain"].set_index("group")


def test_a_model_that_is_wrong_for_one_group_is_gained_on_there():
    data, scores = simulated(0, n=1500, minority=0.3, effects=(-0.4, 0.2, 0.9))
    rows = versus_own(drocox.audit(data, scores, features=list(data.X)))
    assert rows.loc["group = 1", "low"] > 0 and (rows["versus"] == "this model").all()
    assert not rows.loc[["group = 0", "sex = 0", "sex = 1"], "low"].gt(0.05).any()
    assert rows.loc["group = 0", "high"] < 0.03


@pytest.mark.slow
def test_a_perfect_model_leaves_none():
    above = 0
    for seed in range(6):
        data, scores = simulated(seed, n=600, effects=(0.8, 0.5, 0))
        above += (versus_own(drocox.audit(data, scores, features=list(data.X)))["low"] > 0).any()
    assert above == 0


def test_scores_are_those_of_ridge_models_without_the_patients(monkeypatch):
    """One penalty: scikit-survival's ridge Cox model, fitted part by part."""
    monkeypatch.setattr(own_model, "PENALTIES", np.array([0.05]))
    data, _ = simulated(1, n=200)
    X = data.X[["a", "b", "c"]].to_numpy(copy=True)
    X[5, 0] = np.nan
    part = np.arange(200) % 5
    mine = own_scores(X, data.time, data.event, part)
    X[5, 0] = np.nanmedian(X[:, 0])
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for k in range(5):
        train = part != k
        y = Surv.from_arrays(data.event[train], data.time[train])
        theirs = CoxPHSurvivalAnalysis(alpha=0.05 * train.sum()).fit(Z[train], y)
        expected = Z[part == k] @ theirs.coef_
        np.testing.assert_allclose(mine[part == k], expected, atol=1e-6)


def test_it_is_a_difference_over_the_same_pairs():
    """Audited models of five folds: pairs within these; else within parts of its own."""
    data, scores = simulated(2, n=400)
    members = data.groups["sex"] == 1
    for fold in (np.arange(400) % 5, np.zeros(400, int), np.arange(400) % 2):
        patients = HeldOut(scores, data.time, data.event, fold)
        measure = OwnModelGain(data.X)
        value, without, *_ = measure(patients, members)
        (own,) = measure.scored.values()
        used = np.flatnonzero(members)
        order = np.lexsort((scores[used], data.event[used], data.time[used]))
        used = used[order]
        part = fold[used] if len(np.unique(fold)) == 5 else np.arange(len(used)) % 5
        both = 10 * part + fold[used]
        c = []
        for one in (own, scores[used]):
            alone = HeldOut(one, data.time[used], data.event[used], both)
            c.append(alone.c_index(np.full(len(used), True)).value)
        assert value == pytest.approx(c[0] - c[1])
        assert (without[~members] == value).all() and np.ptp(without[members]) > 0


def test_another_model_of_the_same_patients_reuses_the_fits(monkeypatch):
    data, scores = simulated(n=300)
    calls = []
    original = own_model.own_scores
    monkeypatch.setattr(own_model, "own_scores", lambda *a: calls.append(1) or original(*a))
    fold = np.arange(300) % 5
    drocox.audit(
        data, {"a": scores, "b": data.X["a"].to_numpy()}, folds=fold, features=list(data.X)
    )
    assert len(calls) == 5  # everybody, and two groups of two attributes


def test_large_groups_and_many_features_cost_no_more(monkeypatch):
    monkeypatch.setattr(own_model, "MOST_PATIENTS", 150)
    monkeypatch.setattr(own_model, "MOST_FEATURES", 4)
    data, scores = simulated(n=800)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(800, 30))).assign(a=data.X["a"]).rename(columns=str)
    measure = OwnModelGain(X)
    value, without, *_ = measure(
        HeldOut(scores, data.time, data.event, np.zeros(800, int)), scores < 9
    )
    (own,) = measure.scored.values()
    assert 100 < len(own) <= 150 and np.isfinite(value)
    assert (without == value).sum() >= 800 - len(own)


def test_only_named_columns_are_used():
    """A column that nobody named does nothing, whatever it knows."""
    data, scores = simulated(n=300)
    knowing = replace(data, X=data.X.assign(months=data.time / 30.4))
    plain = drocox.audit(knowing, scores)
    assert plain.table["own_model_gain"].isna().all() and plain.slices.empty
    assert plain.features == () and NOT_ASKED in plain.sentence.splitlines()
    found = drocox.audit(knowing, scores, features=["a", "b"])
    same = drocox.audit(data, scores, features=["a", "b"])
    pd.testing.assert_frame_equal(found.table, same.table)
    assert found.features == ("a", "b")
    assert found.table["own_model_gain"].notna().sum() == 5  # everybody, and groups
    labels = data.X.assign(**{"arm=x": data.X["member"], "arm=y": data.X["a"] > 0}).astype(float)
    found = drocox.audit(replace(data, X=labels), scores, features="arm")
    assert found.features == ("arm=x", "arm=y")
    with pytest.raises(ValueError, match="unknown features 'd'; choose one of: a, b, c, member"):
        drocox.audit(data, scores, features=["a", "d"])


@pytest.mark.parametrize("what", ["time", "event", "visits"])
def test_a_column_that_knows_the_outcome_is_told_and_not_used(what):
    data, scores = simulated(n=600)
    rng = np.random.default_rng(0)
    column = {
        "time": data.time / 30.4,
        "event": data.event + 0.01 * rng.normal(size=600),
        "visits": np.round(4 * data.time + 0.3 * rng.random(600)),
    }[what]
    data = replace(data, X=data.X.assign(late=column))
    found = drocox.audit(data, scores, features=["a", "late"])
    assert "No model was fitted here: late alone tells nearly who has the event" in found.sentence
    assert found.table["own_model_gain"].isna().all() and found.slices.empty
    assert "ridge Cox" not in found.sentence and NOT_ASKED not in found.sentence


def test_columns_that_know_the_outcome_together_are_told():
    """The time is a sum of two columns, neither of which says much."""
    data, scores = simulated(n=600)
    noise = np.random.default_rng(0).normal(size=600)
    rank = np.argsort(np.argsort(data.time)) / 600
    data = replace(data, X=pd.DataFrame({"one": rank + 3 * noise, "two": noise}))
    found = drocox.audit(data, scores, features=["one", "two"])
    assert "A model of one, two ranks a group almost perfectly" in found.sentence
    assert found.slices.empty and "ridge Cox" not in found.sentence


def test_few_events_many_groups_and_useless_features_have_none():
    data, scores = simulated(n=300)
    few = np.zeros(300, int)
    few[np.flatnonzero(data.event)[:19]] = 1
    found = drocox.audit(
        replace(data, groups={"few": few}, group_labels={}), scores, features=list(data.X)
    )
    assert found.table["own_model_gain"].notna().tolist() == [True, True, False]
    many = replace(data, groups={"site": np.arange(300) % 7}, group_labels={})
    gains = drocox.audit(many, scores, features=["a"]).table["own_model_gain"]
    assert gains.notna().tolist() == [True, *[False] * 7]
    flat = replace(data, X=pd.DataFrame({"x": np.ones(300)}))
    table = drocox.audit(flat, scores, features=["x"]).table.set_index("group")
    row = table.loc["sex = 1"]
    assert row["own_model_gain"] == pytest.approx(0.5 - row["c_index"], abs=0.05)  # it says nothing
    expected = drocox.audit(data, expected=np.ones(300), features=["a"])  # no ranking
    assert expected.table["own_model_gain"].isna().all()


def test_the_penalty_is_chosen_by_patients_who_were_left_out(monkeypatch):
    """Features that say nothing get the strongest penalty; on their own patients, the weakest."""
    data, _ = simulated(3, n=150)
    noise = np.random.default_rng(0).normal(size=(150, 30))
    part = np.arange(150) % 5
    chosen = own_scores(noise, data.time, data.event, part)
    monkeypatch.setattr(own_model, "PENALTIES", own_model.PENALTIES[:1])
    strongest = own_scores(noise, data.time, data.event, part)
    same = [np.allclose(chosen[part == k], strongest[part == k], atol=1e-3) for k in range(5)]
    assert sum(same) >= 4
