"""Penalty, strata, recalibration, survival at given times and coefficient tables of ``DROCox``."""

import tracemalloc

import literal
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from lifelines import CoxPHFitter
from lifelines.datasets import load_rossi
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import StratifiedKFold
from sksurv.datasets import load_whas500
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

import drocox
from drocox import accuracy, training
from drocox.estimator import DROCox


def untied_rossi() -> pd.DataFrame:
    """432 prisoners without ties, so that Breslow's and Efron's likelihoods are one."""
    frame = load_rossi()
    frame["week"] = frame["week"] + np.random.default_rng(0).permutation(len(frame)) / 1e3
    return frame


# at the default alpha, since a quarter have events; tests/test_estimator_acts.py is about it
pytestmark = pytest.mark.filterwarnings("ignore:alpha=.* hardly acts")
FRAME = untied_rossi()
X = FRAME.drop(columns=["week", "arrest"]).astype(float)
TIME, EVENT = FRAME["week"].to_numpy(), FRAME["arrest"].to_numpy() == 1
Y = Surv.from_arrays(EVENT, TIME)
SCALED = (X - X.mean()) / X.std()
STRATA = np.where(X["wexp"] == 1, "worked", "not")
INSIDE = X.drop(columns="wexp")


# Penalty ------------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.1, 10.0, 1000.0])
def test_penalty_is_the_ridge_of_scikit_survival_per_patient(strength):
    model = DROCox(alpha=1, penalty=strength / len(X)).fit(X, Y)
    ridge = CoxPHSurvivalAnalysis(alpha=strength, ties="breslow", tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-6)
    assert model.gap_ <= 1e-6


@pytest.mark.parametrize("split", [False, True])
def test_adam_and_the_certified_solver_have_one_penalised_minimum(split):
    best = DROCox(0.5, penalty=0.2, split=split).fit(SCALED, Y)
    adam = DROCox(0.5, penalty=0.2, split=split, solver="adam", n_iter=2000).fit(SCALED, Y)
    np.testing.assert_allclose(adam.coef_, best.coef_, atol=1e-4)
    assert adam.gap_ <= 1e-6
    free = DROCox(0.5, split=split).fit(SCALED, Y)
    assert np.linalg.norm(best.coef_) < 0.97 * np.linalg.norm(free.coef_)
    assert best.loss_ > free.loss_  # the risk alone, without the penalty


def test_a_penalty_gives_wide_and_separated_data_a_minimum():
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(60, 100))
    with pytest.warns(ConvergenceWarning, match="or set a penalty"):
        assert DROCox(0.5).fit(wide, Y[:60]).separated_
    model = DROCox(0.5, penalty=0.1).fit(wide, Y[:60])
    assert not model.separated_ and model.gap_ <= 1e-6


def test_weight_decay_of_a_network_is_that_of_training():
    model = DROCox(0.3, hidden_units=4, n_iter=40, penalty=0.5).fit(SCALED, Y)
    objective = training.dro_objective(drocox.risk_sets(TIME, EVENT), model.c_)
    start = training.initial_parameters(SCALED.shape[1], 4, 0)
    options = {"hidden": 4, "n_iter": 40, "penalty": 0.5, "centre": True}
    stack = training.fit_stack(SCALED, objective, start, [0.01], **options)
    np.testing.assert_allclose(model.predict(SCALED), stack.scores(SCALED)[0], atol=1e-9)
    free = DROCox(0.3, hidden_units=4, n_iter=40).fit(SCALED, Y)
    assert np.ptp(model.predict(SCALED)) < np.ptp(free.predict(SCALED))


# Strata -------------------------------------------------------------------------------------


def lifelines_with_strata() -> CoxPHFitter:
    frame = FRAME.drop(columns="wexp").assign(site=STRATA)
    return CoxPHFitter().fit(
        frame, "week", "arrest", strata="site", fit_options={"precision": 1e-10}
    )


def test_cox_with_strata_equals_lifelines():
    model = DROCox(alpha=1).fit(INSIDE, Y, strata=STRATA)
    theirs = lifelines_with_strata()
    np.testing.assert_allclose(model.coef_, theirs.params_[INSIDE.columns], atol=1e-6)
    np.testing.assert_allclose(
        model.summary_["standard_error"], theirs.standard_errors_[INSIDE.columns], rtol=1e-5
    )
    for label in ("not", "worked"):
        here = label == STRATA
        times = np.sort(TIME[here & EVENT])[[3, 20, -1]]  # lifelines interpolates between events
        rows = INSIDE.assign(site=STRATA)[here]
        expected = theirs.predict_survival_function(rows, times=times).T
        got = model.predict_survival_function(INSIDE[here], times=times, strata=STRATA[here])
        np.testing.assert_allclose(got, expected, atol=1e-6)
    assert model.strata_.tolist() == ["not", "worked"]


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"split": True},
        {"solver": "adam", "tol": np.inf},
        {"hidden_units": 3},
        {"hidden_units": 3, "split": True},
        {"hidden_units": 3, "rule": "cvar"},
    ],
    ids=["convex", "split", "adam", "network", "network-split", "network-cvar"],
)
def test_risk_and_curves_with_strata(kind):
    model = DROCox(alpha=0.3, n_iter=60, **kind).fit(SCALED, Y, strata=STRATA)
    scores = torch.from_numpy(model.predict(SCALED))
    losses = np.zeros(len(X))
    survival = np.zeros((len(X), 3))
    times = [3.3, 20.0, 50.0]
    for label in ("not", "worked"):
        here = label == STRATA
        f, time, event = scores[here].numpy(), TIME[here], EVENT[here]
        if model.split:
            losses[here] = literal.split_cox_losses(f, time, event, model.first_[here])
        else:
            losses[here] = literal.cox_losses(f, time, event)
        survival[here] = drocox.breslow_survival(f, time, event, f, times)
    parts = [model.first_, ~model.first_] if model.split else [np.full(len(X), True)]
    rule = kind.get("rule", "sharp")
    risk = sum(float(drocox.dro_risk(losses[part], 0.3, rule=rule)) for part in parts)
    assert model.loss_ == pytest.approx(risk)
    got = model.predict_survival_function(SCALED, times=times, strata=STRATA)
    np.testing.assert_allclose(got, survival, atol=1e-10)
    curves = model.predict_survival_function(SCALED[:4], strata=STRATA[:4])
    np.testing.assert_allclose([curve(times) for curve in curves], survival[:4], atol=1e-10)


def test_score_with_strata_compares_within_them():
    model = DROCox(0.5).fit(INSIDE, Y, strata=STRATA)
    scores = model.predict(INSIDE)
    expected = accuracy.concordance_index(scores, TIME, EVENT, strata=STRATA)
    assert model.score(INSIDE, Y, strata=STRATA) == expected
    assert expected != accuracy.concordance_index(scores, TIME, EVENT)
    with pytest.raises(ValueError, match="have strata; pass strata="):
        model.score(INSIDE, Y)


def test_strata_that_do_not_fit_are_refused():
    model = DROCox(0.5).fit(INSIDE, Y, strata=STRATA)
    with pytest.raises(ValueError, match="have strata; pass strata="):
        model.predict_survival_function(INSIDE)
    with pytest.raises(ValueError, match="strata holds 'new', a stratum without training"):
        model.predict_cumulative_hazard_function(INSIDE[:2], strata=["new", "not"])
    with pytest.raises(ValueError, match=r"strata must hold one .* per patient"):
        DROCox(0.5).fit(INSIDE, Y, strata=STRATA[1:])
    with pytest.raises(ValueError, match="the training patients have none; leave it out"):
        DROCox(0.5).fit(INSIDE, Y).predict_survival_function(INSIDE, strata=STRATA)


# Recalibration ------------------------------------------------------------------------------


def slope_by_lifelines(X, strata=None):
    """The coefficient of held-out scores of five folds, stratified by fold and stratum."""
    order = np.lexsort((*(X[name] for name in X.columns), TIME, EVENT))
    fold = np.empty(len(X), int)
    fold[order] = np.arange(len(X)) % 5
    held_out = np.empty(len(X))
    for k in range(5):
        mine = None if strata is None else strata[fold != k]
        rest = DROCox(0.2).fit(X[fold != k], Y[fold != k], strata=mine)
        held_out[fold == k] = rest.predict(X[fold == k])
    frame = pd.DataFrame({"f": held_out, "fold": fold, "week": TIME, "arrest": EVENT})
    within = ["fold"]
    if strata is not None:
        frame["stratum"] = strata
        within.append("stratum")
    cox = CoxPHFitter().fit(
        frame, "week", "arrest", strata=within, fit_options={"precision": 1e-10}
    )
    return cox.params_["f"]


def test_slope_is_that_of_held_out_scores_by_lifelines():
    model = DROCox(0.2, recalibrate=True).fit(X, Y)
    assert model.slope_ == pytest.approx(slope_by_lifelines(X), abs=1e-6)
    assert model.slope_ > 1.2  # scores are shrunken
    raw = DROCox(0.2).fit(X, Y)
    assert raw.slope_ == 1.0
    np.testing.assert_array_equal(model.predict(X), raw.predict(X))
    scores = model.slope_ * raw.predict(X)
    expected = drocox.breslow_survival(scores, TIME, EVENT, scores, [10.0, 40.0])
    got = model.predict_survival_function(X, times=[10.0, 40.0])
    np.testing.assert_allclose(got, expected, atol=1e-12)
    rows = np.random.default_rng(1).permutation(len(X))
    other = DROCox(0.2, recalibrate=True).fit(X.iloc[rows], Y[rows])
    assert other.slope_ == pytest.approx(model.slope_, rel=1e-6)


def test_slope_of_a_stratified_model_compares_within_strata():
    strata = np.where(X["prio"] > 2, "many", "few")  # goes with the scores
    slopes = []
    for labels in (strata, None):
        slopes.append(DROCox(0.2, recalibrate=True).fit(X, Y, strata=labels).slope_)
        assert slopes[-1] == pytest.approx(slope_by_lifelines(X, labels), abs=1e-6)
    assert abs(slopes[0] - slopes[1]) > 0.1


def test_weights_that_are_counts_give_the_slope_of_repeated_rows():
    counts = np.random.default_rng(0).integers(0, 12, len(X))  # some are several in one fold
    rows = np.repeat(np.arange(len(X)), counts)
    weighted = DROCox(0.3, recalibrate=True).fit(X, Y, sample_weight=counts)
    repeated = DROCox(0.3, recalibrate=True).fit(X.iloc[rows], Y[rows])
    assert weighted.slope_ == pytest.approx(repeated.slope_, rel=1e-6)
    curves = (model.predict_survival_function(X, times=[20.0]) for model in (weighted, repeated))
    np.testing.assert_allclose(next(curves), next(curves), rtol=1e-5)
    few = np.zeros(len(X), int)
    few[np.flatnonzero(EVENT)[:2]] = 3  # six events in two rows
    few[np.flatnonzero(~EVENT)[:9]] = 1
    assert DROCox(1.0, recalibrate=True, penalty=1.0).fit(X, Y, sample_weight=few).slope_ >= 0


def test_weights_that_are_no_counts_keep_a_row_in_one_fold():
    """A factor on all weights, which changes no Cox model, does not change how rows are dealt."""
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(X))
    found = []
    for factor in (1.0, 1.37):
        model = DROCox(1.0, recalibrate=True).fit(X, Y, sample_weight=factor * weights)
        found.append(model.slope_)
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    near = DROCox(1.0, recalibrate=True).fit(X, Y, sample_weight=1 + 1e-9 * weights)
    assert near.slope_ == pytest.approx(DROCox(1.0, recalibrate=True).fit(X, Y).slope_, rel=1e-6)


def test_scores_that_rank_backwards_give_one_curve_for_all():
    """Held-out scores of noise may have a negative slope; curves are not turned round."""
    seen = []
    for seed in range(12):
        noise = pd.DataFrame(np.random.default_rng(seed).standard_normal((len(X), 3))).add_prefix(
            "x"
        )
        if slope_by_lifelines(noise) > -0.1:
            continue
        model = DROCox(0.2, recalibrate=True).fit(noise, Y)
        curves = model.predict_survival_function(noise, times=[10.0, 40.0])
        seen.append((model.slope_, np.ptp(curves, axis=0).max()))
        break
    assert seen == [(0.0, 0.0)]


@pytest.mark.slow
def test_recalibration_restores_the_brier_score_on_whas500():
    """The numbers in the docstring of ``DROCox``."""
    features, y = load_whas500()
    features = features.astype(float)
    event, time = y["fstat"], y["lenfol"]
    models = {"raw": DROCox(0.2), "recalibrated": DROCox(0.2, recalibrate=True), "cox": DROCox(1)}
    brier = {name: [] for name in models}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(features, event):
        test = test[time[test] < time[train].max()]
        times = np.linspace(*np.percentile(time[test], [10, 80]), 50)
        score = accuracy.BrierScore(time[train], event[train], time[test], event[test], times)
        for name, model in models.items():
            model.fit(features.iloc[train], y[train])
            survival = model.predict_survival_function(features.iloc[test], times=times)
            brier[name].append(score(survival))
    means = {name: np.mean(values) for name, values in brier.items()}
    assert means == pytest.approx({"raw": 0.179, "recalibrated": 0.165, "cox": 0.159}, abs=1e-3)


def test_recalibration_with_every_kind_of_model_and_too_few_events():
    for kind in ({"split": True}, {"hidden_units": 2, "n_iter": 30}, {"rule": "cvar"}):
        model = DROCox(0.4, recalibrate=True, **kind).fit(SCALED, Y, strata=STRATA)
        assert model.slope_ >= 0
    few = Surv.from_arrays(np.arange(len(X)) < 4, TIME)
    with pytest.raises(ValueError, match="recalibrate=True needs 5 events"):
        DROCox(0.5, recalibrate=True, penalty=0.1).fit(X, few)


# Survival at given times --------------------------------------------------------------------


def test_times_give_the_values_of_the_functions():
    model = DROCox(0.3).fit(X, Y)
    times = [0.0, 0.5, *TIME[:5], TIME.max()]
    for name in ("predict_survival_function", "predict_cumulative_hazard_function"):
        predict = getattr(model, name)
        expected = np.array([curve(times) for curve in predict(X[:30])])
        np.testing.assert_array_equal(predict(X[:30], times=times), expected)
        with pytest.raises(ValueError, match="times must lie between 0 and the last training time"):
            predict(X[:2], times=[1.0, TIME.max() + 1])
        with pytest.raises(ValueError, match="times must lie between 0"):
            predict(X[:2], times=[-1.0])
        with pytest.raises(NotFittedError):
            getattr(DROCox(0.5), name)(X, times=times)


def test_curves_at_given_times_need_memory_for_one_array():
    rng = np.random.default_rng(0)
    n = 20_000
    features = rng.normal(size=(n, 2))
    y = Surv.from_arrays(rng.random(n) < 0.5, rng.exponential(size=n))
    model = DROCox(0.5).fit(features, y)
    times = np.linspace(0, 1, 50)
    tracemalloc.start()
    survival = model.predict_survival_function(features, times=times)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert survival.shape == (n, 50)
    assert peak < 1.5 * survival.nbytes  # all training times would be 200 times as much


# Coefficient table --------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_summary_of_cox_regression_equals_lifelines(weighted):
    weights = np.random.default_rng(3).integers(1, 3, len(X)) if weighted else np.ones(len(X))
    keep = EVENT | (weights > 0)
    model = DROCox(alpha=1).fit(X, Y, sample_weight=weights)
    frame = FRAME.assign(count=weights)[keep]
    theirs = CoxPHFitter().fit(
        frame, "week", "arrest", weights_col="count", fit_options={"precision": 1e-10}
    )
    table = model.summary_
    names = {
        "coefficient": "coef",
        "hazard_ratio": "exp(coef)",
        "standard_error": "se(coef)",
        "z": "z",
        "p": "p",
        "low": "coef lower 95%",
        "high": "coef upper 95%",
    }
    assert list(table) == list(names)
    assert table.index.tolist() == X.columns.tolist()
    for ours, name in names.items():
        if weighted and ours not in ("coefficient", "hazard_ratio"):
            continue
        np.testing.assert_allclose(table[ours], theirs.summary[name], rtol=1e-5, atol=1e-7)
    if weighted:  # as if rows were repeated
        rows = np.repeat(np.arange(len(X)), weights)
        again = DROCox(alpha=1).fit(X.iloc[rows], Y[rows]).summary_
        np.testing.assert_allclose(table, again, rtol=1e-6)


def test_standard_errors_are_given_only_for_cox_regression():
    for kind in ({"alpha": 0.5}, {"alpha": 1, "penalty": 0.1}, {"alpha": 0.9, "split": True}):
        assert list(DROCox(**kind).fit(X, Y).summary_) == ["coefficient", "hazard_ratio"]
    assert DROCox(0.5).fit(X.to_numpy(), Y).summary_.index.tolist() == [f"x{k}" for k in range(7)]
    network = DROCox(0.5, hidden_units=2, n_iter=1).fit(X, Y)
    with pytest.raises(AttributeError, match="summary_ is for linear models"):
        _ = network.summary_
    constant = DROCox(alpha=1).fit(X.assign(one=1.0), Y).summary_
    assert np.isnan(constant.loc["one", "standard_error"])
    plain = DROCox(alpha=1).fit(X, Y).summary_["standard_error"]
    np.testing.assert_allclose(constant["standard_error"][:-1], plain, rtol=1e-8)
    twice = DROCox(alpha=1).fit(X.assign(again=X["age"]), Y).summary_
    assert twice["standard_error"].isna().all()


# What an option must not lose -----------------------------------------------------------------


def test_the_gap_counts_the_penalty():
    """A penalised model that is not optimal says so."""
    with pytest.warns(ConvergenceWarning, match="may exceed its minimum"):
        hasty = DROCox(0.2, penalty=1.0, n_iter=1).fit(SCALED, Y)
    best = DROCox(0.2, penalty=1.0).fit(SCALED, Y)
    value = [m.loss_ + 0.5 * float(m.coef_ @ m.coef_) for m in (hasty, best)]
    assert best.gap_ < 1e-9
    assert hasty.gap_ >= (value[0] - value[1]) / value[0] > 1e-6


def test_rows_of_weight_0_are_no_patients():
    weights = np.where(np.arange(len(Y)) < 10, 1.0, 0.0)  # some of them have events
    with pytest.raises(ValueError, match="far less than one of 10 patients"):
        DROCox(5e-5).fit(X, Y, sample_weight=weights)


def test_sparse_features_are_refused_as_such():
    with pytest.raises(TypeError, match=r"(?i)sparse.*toarray"):
        DROCox().fit(scipy.sparse.csr_matrix(SCALED), Y)
