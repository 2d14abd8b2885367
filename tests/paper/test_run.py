"""Training and judging one stack of models."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import drocox
from drocox import accuracy, dual_constant, regularizers, training
from drocox.paper import run
from drocox.paper.prepare import prepare
from drocox.paper.protocol import LEARNING_RATES, Stack
from drocox.training import cox_objective, dro_objective, initial_parameters, split_objective

SEER = ("as_published", "seer", 3)


def codes_of(ready, name):
    return ready.train.groups[name]


EXPECTED = {
    ("Cox", ""): lambda r, lam, c: cox_objective(r.risk, "order"),
    ("Cox_I(Keya)", ""): lambda r, lam, c: cox_objective(
        r.risk, "order", regularizers.all_pairs(r.X[0], 0.01), lam),
    ("Cox_I(R&P)", ""): lambda r, lam, c: cox_objective(
        r.risk, "order",
        regularizers.censored_event_pairs(r.X[0], r.train.time, r.train.event), lam),
    ("Cox_G(R&P)", "race"): lambda r, lam, c: cox_objective(
        r.risk, "order",
        regularizers.censored_event_pairs(
            r.X[0], r.train.time, r.train.event, codes_of(r, "race")), lam),
    ("Cox_G(Keya)", "age"): lambda r, lam, c: cox_objective(
        r.risk, "order", lambda h: regularizers.group_keya(h, codes_of(r, "age")), lam),
    ("Cox_G(Keya)", "race"): lambda r, lam, c: cox_objective(
        r.risk, "order", lambda h: regularizers.group_keya(h, codes_of(r, "race")), lam),
    ("Cox_cap(Keya)", ""): lambda r, lam, c: cox_objective(
        r.risk, "order", lambda h: regularizers.intersectional_keya(
            h, np.column_stack([codes_of(r, "age"), codes_of(r, "race")])), lam),
    ("DRO-COX", ""): lambda r, lam, c: dro_objective(r.risk, c, "order"),
    ("DRO-COX (SPLIT)", ""): lambda r, lam, c: split_objective(r.risk, r.first, c, 2),
    ("Deep DRO-COX (SPLIT)", ""): lambda r, lam, c: split_objective(r.risk, r.first, c, 2),
    ("DeepSurv", ""): lambda r, lam, c: cox_objective(r.risk, "order"),
    ("Deep DRO-COX", ""): lambda r, lam, c: dro_objective(r.risk, c, "order"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "attribute"), EXPECTED)
def test_a_stack_trains_what_its_method_says(method, attribute):
    split = {"n2_share": 0.5, "sides": 2} if "SPLIT" in method else {}
    stack = Stack(*SEER[:2], method, SEER[2], attribute, **split)
    ready = prepare(*SEER, *split.values())
    got, grid = run.fit(stack, ready, n_iter=4), pd.DataFrame(stack.grid(), dtype=float)
    assert got.theta.shape[0] == len(grid)  # more than one chunk for 18 models
    hidden = 24 if method.startswith("Deep") else None
    start = initial_parameters(ready.X[0].shape[1], hidden, 1)
    for i in (0, len(grid) // 2, len(grid) - 1):  # each as if alone
        lam, alpha = grid["lam"][i], grid["alpha"][i]
        c = None if np.isnan(alpha) else dual_constant(alpha, rule="paper")
        objective = EXPECTED[method, attribute](ready, np.array([lam]), c)
        alone = training.fit_stack(ready.X[0], objective, start, [grid["learning_rate"][i]],
                                   hidden=hidden, n_iter=4)  # fmt: skip
        np.testing.assert_allclose(got.theta[i], alone.theta[0], atol=1e-10)
    assert len(np.unique(got.theta.round(12), axis=0)) >= len(LEARNING_RATES)


def test_scores_beyond_exp_make_hazards_and_their_metrics_infinite():
    judge = prepare("as_published", "seer", 1).judges[1]
    scores = np.linspace(0, 2000, len(judge.part))
    found = judge.fairness(np.zeros(3), scores)
    assert found["f_i"] == found["f_cap"] == found["f_g_age"] == found["f_i_centred"] == np.inf
    rank = judge.fairness(np.zeros(3), scores / 1000)
    assert found["c_index"] == rank["c_index"] and np.isfinite(rank["f_i"])
    assert found["ci_percent_age"] == rank["ci_percent_age"]


def test_forensic_training_cuts_the_gradient_of_the_reference_sum():
    stack = Stack("forensic", "seer", "Deep DRO-COX (SPLIT)", 1, n2_share=0.5, sides=2)
    ready = prepare("forensic", "seer", 1, 0.5, 2)
    c = np.array([dual_constant(setting.alpha, rule="paper") for setting in stack.grid()[:1]])
    cut = split_objective(ready.risk, ready.first, c, 2, reference_gradient=False)
    start = initial_parameters(ready.X[0].shape[1], 24, 1)
    alone = training.fit_stack(ready.X[0], cut, start, [0.01], hidden=24, n_iter=4)
    got = run.fit(stack, ready, n_iter=4)
    np.testing.assert_allclose(got.theta[0], alone.theta[0], atol=1e-10)
    whole = run.fit(replace(stack, protocol="as_published"), prepare("as_published", "seer", 1,
                    0.5, 2), n_iter=4)  # fmt: skip
    assert np.abs(whole.theta[0] - got.theta[0]).max() > 1e-4


def test_rows_of_a_corrected_run_equal_evaluate(monkeypatch):
    monkeypatch.setattr(run, "fit", partial(run.fit, n_iter=20))
    stack = Stack("corrected", "seer", "Cox", 2)
    frame, ready = run.run_stack(stack), prepare("corrected", "seer", 2)
    models = run.fit(stack, ready)
    on_train, on_test = models.scores(ready.X[0]), models.scores(ready.X[2])
    assert list(frame.columns) == run.columns()
    assert frame["learning_rate"].tolist() == list(LEARNING_RATES)
    assert (frame["dataset"] == "seer").all() and (frame["repeat"] == 2).all()
    assert frame[["lam", "alpha", "n2_share", "sides"]].isna().all(axis=None)
    assert frame["test_ibs_misaligned"].isna().all()
    for i, attribute in ((0, "age"), (2, "race")):
        found = drocox.evaluate(ready.train, ready.test, on_train[i], on_test[i], attribute)
        row = frame.loc[i]
        for key in ("c_index", "auc", "lpl", "ibs", "f_i", "f_cap"):
            assert row[f"test_{key}"] == pytest.approx(found[key], abs=1e-12)
        assert row[f"test_f_g_{attribute}"] == pytest.approx(found["f_g"], abs=1e-12)
        assert row[f"test_ci_percent_{attribute}"] == pytest.approx(found["ci_percent"], abs=1e-12)
    # Linear scores of scaled features have mean 0 in training: centring changes nothing.
    for key in ("f_i", "f_cap"):
        np.testing.assert_allclose(frame[f"test_{key}_centred"], frame[f"test_{key}"], atol=1e-10)


def test_rows_say_whether_they_are_stable(monkeypatch):
    monkeypatch.setattr(run, "fit", partial(run.fit, n_iter=3))
    frame = run.run_stack(Stack("as_published", "seer", "DeepSurv", 1))
    assert frame["unstable"].tolist() == [0, 0, 0]  # three steps are not chaotic
    assert (frame["test_f_i_centred"] != frame["test_f_i"]).all()
    assert (frame["test_ibs_misaligned"] != frame["test_ibs"]).all()
    monkeypatch.setattr(run, "PERTURBATION", 0.5)
    frame = run.run_stack(Stack("as_published", "seer", "DeepSurv", 1))
    assert frame["unstable"].tolist() == [1, 1, 1]
    # The perturbed twins are judged for stability only: the rows are those of the given weights.
    stack, ready = Stack("as_published", "seer", "Cox", 1), prepare("as_published", "seer", 1)
    scores = run.fit(stack, ready).scores(ready.X[2])
    expected = [accuracy.concordance_index(f, ready.test.time, ready.test.event) for f in scores]
    assert run.run_stack(stack)["test_c_index"].tolist() == pytest.approx(expected, abs=1e-12)
