"""Evaluating one model: all metrics of a test part against their literal formulas."""

import literal
import numpy as np
import pandas as pd
import pytest
import torch
from test_fairness import Patients

import drocox
from drocox import SurvivalData, fairness
from drocox.evaluation import Judge, scaled_features
from drocox.paper import prepare as preparation


def two_parts(seed: int, n: int = 40):
    """Two parts of one population; the training follow-up ends last, with an event."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(2):
        X, time, event = literal.random_survival(rng, n, 0.6)
        X = X * [1.0, 50.0, 1e-3] + [0.0, 400.0, 2.0]
        X[rng.random((n, 3)) < 0.1] = np.nan
        time[:3], event[:3] = 1.0, True  # early events, so that the AUC has cases
        groups = {"age": np.arange(n) % 2, "race": rng.permutation(np.arange(n) % 3)}
        frame = pd.DataFrame(X, columns=list("abc"))
        parts.append(drocox.SurvivalData("drawn", frame, time, event, groups))
    train, test = parts
    train.time[-1], train.event[-1] = max(train.time.max(), test.time.max()) + 1, True
    return train, test, rng.standard_normal(n).round(1), rng.standard_normal(n).round(1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("attribute", ["age", "race"])
def test_evaluate_equals_the_formulas(seed, attribute):
    train, test, train_scores, scores = two_parts(seed)
    raw = train.X.to_numpy()
    medians = np.nanmedian(raw, axis=0)
    filled = np.where(np.isnan(raw), medians, raw)
    scaled = np.where(test.X.isna(), medians, test.X)
    scaled = (scaled - filled.mean(0)) / filled.std(0)
    outcome, learnt = (test.time, test.event), (train.time, train.event)
    start = max(train.time.min(), test.time.min())
    times = start + (test.time.max() - start) * np.arange(50) / 50
    curves = literal.breslow_survival(train_scores, *learnt, scores, times)
    h, codes = np.exp(scores), test.groups[attribute]
    f_i = literal.individual_fairness(h, scaled)
    f_g = literal.group_fairness(h, codes)
    f_cap = literal.intersectional_fairness(h, np.column_stack(list(test.groups.values())))
    expected = {
        "c_index": literal.concordance_index(scores, *outcome),
        "auc": literal.cumulative_auc(*learnt, scores, *outcome),
        "lpl": literal.log_partial_likelihood(literal.cox_losses(scores, *outcome), test.event),
        "ibs": literal.integrated_brier_score(*learnt, curves, *outcome, times),
        "f_i": f_i,
        "f_g": f_g,
        "f_cap": f_cap,
        "f_a": (f_i + f_g + f_cap) / 3,
        "ci_percent": literal.concordance_imparity(scores, *outcome, codes),
    }
    got = drocox.evaluate(train, test, train_scores, scores, attribute)
    assert list(got) == list(expected)
    assert all(type(value) is float for value in got.values())
    for key, value in expected.items():
        assert got[key] == pytest.approx(value, rel=1e-10, abs=1e-10), key
    tensors = torch.from_numpy(train_scores), torch.from_numpy(scores)
    assert drocox.evaluate(train, test, *tensors, attribute) == got


def test_a_judge_has_the_literal_metrics_for_every_attribute():
    train, test, train_scores, scores = two_parts(2)
    X = scaled_features(train, test)[1]
    order = preparation.introsort_order(test.time)[::-1]
    judge = Judge(train, test, X, ties="order", order=order)
    train_scores = train_scores + 1.5
    fair = judge.fairness(train_scores, scores)
    exact = judge.accuracy(train_scores, scores, train_scores * 0.5)
    for suffix, h in (("", np.exp(scores)), ("_centred", np.exp(scores - train_scores.mean()))):
        assert fair[f"f_i{suffix}"] == pytest.approx(literal.individual_fairness(h, X), abs=1e-12)
        expected = literal.intersectional_fairness(h, test.group_matrix)
        assert fair[f"f_cap{suffix}"] == pytest.approx(expected, abs=1e-12)
        for name, codes in test.groups.items():
            expected = literal.group_fairness(h, codes)
            assert fair[f"f_g{suffix}_{name}"] == pytest.approx(expected, abs=1e-12)
    for name, codes in test.groups.items():
        expected = literal.concordance_imparity(scores, test.time, test.event, codes)
        assert fair[f"ci_percent_{name}"] == pytest.approx(expected, abs=1e-10)
    losses = literal.cox_losses_order(scores, test.time, test.event)
    expected = literal.log_partial_likelihood(losses, test.event)
    assert exact["lpl"] == pytest.approx(expected, abs=1e-12)
    learnt = (train.time, train.event)
    curves = literal.breslow_survival(train_scores * 0.5, *learnt, scores, judge.times)[order]
    expected = literal.integrated_brier_score(*learnt, curves, test.time, test.event, judge.times)
    assert exact["ibs_misaligned"] == pytest.approx(expected, rel=1e-10)
    assert exact["ibs"] != exact["ibs_misaligned"]


BAD = [
    ("attribute", "sex", "unknown attribute 'sex'; choose one of: age, race"),
    ("test_scores", np.full(40, np.nan), "test_scores holds 40 NaN or infinite"),
    ("test_scores", np.zeros(39), "test_scores has 39, test has 40; pass one value per patient"),
    ("train_scores", np.full(40, np.nan), "train_scores holds 40 NaN"),
    ("train_scores", np.zeros(41), "train_scores has 41, train has 40; pass one value"),
    ("train_scores", np.zeros((1, 40)), "train_scores must have 1 dimension"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_evaluate_refuses_bad_input_by_name(name, value, message):
    train, test, train_scores, scores = two_parts(0)
    arguments = {"train_scores": train_scores, "test_scores": scores, "attribute": "age"}
    with pytest.raises((ValueError, TypeError), match=message):
        drocox.evaluate(train, test, **{**arguments, name: value})


def judge_of(groups: dict) -> tuple[Judge, Patients]:
    """Judge of 40 patients with these groups, who are their own training part."""
    patients = Patients(7, 40, share=0.5)
    X = pd.DataFrame(patients.X, columns=list("abcdefgh")[: patients.X.shape[1]])
    data = SurvivalData("drawn", X, patients.time, patients.event, groups)
    return Judge(data, data, patients.X), patients


def test_judge_names_an_attribute_with_a_single_group():
    judge, patients = judge_of({"sex": np.arange(40) % 2, "site": np.zeros(40)})
    with pytest.raises(ValueError, match=r"^site holds a single group"):
        judge.fairness(patients.scores, patients.scores, ["sex"])


def test_judge_gives_the_signed_difference_and_both_fractions():
    codes = np.arange(40) % 2
    judge, patients = judge_of({"sex": codes, "site": np.arange(40) % 3})
    scores, outcome = patients.scores, (patients.time, patients.event)
    got = judge.fairness(scores, scores)
    fractions = fairness.concordance_fractions(scores, *outcome, {"sex": codes})["sex"]
    assert got["cf_0_sex"] == fractions[0]
    assert got["cf_1_sex"] == fractions[1]
    assert got["ci_signed_sex"] == 100 * (fractions[1] - fractions[0])
    assert got["ci_percent_sex"] == abs(got["ci_signed_sex"]) > 0
    assert {type(value) for value in got.values()} == {float}
    # the other way round: the sign turns; three groups have no sign
    turned = judge_of({"sex": 1 - codes})[0].fairness(scores, scores)
    assert turned["ci_signed_sex"] == -got["ci_signed_sex"]
    assert [key for key in got if key.endswith("_site")] == [
        "f_g_site", "f_g_centred_site", "ci_percent_site",
    ]  # fmt: skip
