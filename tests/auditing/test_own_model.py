"""Headroom: whether a model of the group's own would rank it better."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cohort import simulated
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

import drocox
from drocox.auditing import own_model
from drocox.auditing.own_model import OwnModelGain, own_scores
from drocox.heldout import HeldOut


def versus_own(found):
    return found.differences[found.differences["measure"] == "own_model_gain"].set_index("group")


def test_a_model_that_is_wrong_for_one_group_leaves_headroom_there():
    data, scores = simulated(0, n=1500, minority=0.3, effects=(-0.4, 0.2, 0.9))
    rows = versus_own(drocox.audit(data, scores))
    assert rows.loc["group = 1", "low"] > 0 and (rows["versus"] == "this model").all()
    assert not rows.loc[["group = 0", "sex = 0", "sex = 1"], "low"].gt(5).any()
    assert rows.loc["group = 0", "high"] < 3


def test_a_perfect_model_leaves_none():
    above = 0
    for seed in range(6):
        data, scores = simulated(seed, n=600, effects=(0.8, 0.5, 0))
        above += (versus_own(drocox.audit(data, scores))["low"] > 0).any()
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


def test_its_intervals_hold_together_with_those_of_the_c_index():
    """With headroom in the family, c-index and promise need wider intervals."""
    data, scores = simulated(1, n=400)
    bare = drocox.SurvivalData.from_arrays(data.time, data.event, groups=data.groups)
    width = []
    for one in (data, bare):
        rows = drocox.audit(one, scores).differences
        rows = rows[rows["measure"].isin(["c_index", "c_minus_promised"])]
        width.append((rows["high"] - rows["low"]).to_numpy())
    assert len(width[0]) == 6 and (width[0] > 1.01 * width[1]).all()


def test_it_is_a_difference_over_the_same_pairs():
    """Audited models of five folds: pairs within these; else within parts of its own."""
    data, scores = simulated(2, n=400)
    members = data.groups["sex"] == 1
    for fold in (np.arange(400) % 5, np.zeros(400, int), np.arange(400) % 2):
        patients = HeldOut(scores, data.time, data.event, fold)
        measure = OwnModelGain(data.X)
        value, without = measure(patients, members)
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
    drocox.audit(data, {"a": scores, "b": data.X["a"].to_numpy()}, folds=fold)
    assert len(calls) == 4  # two groups of two attributes


def test_large_groups_and_many_features_cost_no_more(monkeypatch):
    monkeypatch.setattr(own_model, "MOST_PATIENTS", 150)
    monkeypatch.setattr(own_model, "MOST_FEATURES", 4)
    data, scores = simulated(n=800)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(800, 30))).assign(a=data.X["a"]).rename(columns=str)
    measure = OwnModelGain(X)
    value, without = measure(HeldOut(scores, data.time, data.event, np.zeros(800, int)), scores < 9)
    (own,) = measure.scored.values()
    assert 100 < len(own) <= 150 and np.isfinite(value)
    assert (without == value).sum() >= 800 - len(own)


def test_without_features_it_cannot_be_told():
    data, scores = simulated(n=300)
    bare = drocox.SurvivalData.from_arrays(data.time, data.event, groups=data.groups)
    assert drocox.audit(bare, scores).table["own_model_gain"].isna().all()
    only = replace(data, X=pd.DataFrame({"score": scores}))
    assert drocox.audit(only, scores).table["own_model_gain"].isna().all()
    risk = 1 / (1 + np.exp(-scores))
    only = replace(data, X=pd.DataFrame({"risk": risk}))
    assert drocox.audit(only, survival=1 - risk, times=1.0).table["own_model_gain"].isna().all()
    assert (
        drocox.audit(data, scores).table["own_model_gain"].notna().sum() == 4
    )  # of attributes only


def test_few_events_many_groups_and_useless_features_have_none():
    data, scores = simulated(n=300)
    few = np.zeros(300, int)
    few[np.flatnonzero(data.event)[:19]] = 1
    found = drocox.audit(replace(data, groups={"few": few}, group_labels={}), scores)
    assert found.table["own_model_gain"].notna().tolist() == [False, True, False]
    many = replace(data, groups={"site": np.arange(300) % 7}, group_labels={})
    assert drocox.audit(many, scores).table["own_model_gain"].isna().all()
    flat = replace(data, X=pd.DataFrame({"x": np.ones(300)}))
    table = drocox.audit(flat, scores).table.set_index("group")
    row = table.loc["sex = 1"]
    assert row["own_model_gain"] == pytest.approx(0.5 - row["c_index"], abs=0.05)  # it says nothing
    expected = drocox.audit(data, expected=np.ones(300))  # no ranking
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
