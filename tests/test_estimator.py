"""``DROCox`` against the trainer, scikit-survival, and the conventions of scikit-learn."""

import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from lifelines.datasets import load_rossi
from scipy.optimize import minimize
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import (
    as_concordance_index_ipcw_scorer,
    as_cumulative_dynamic_auc_scorer,
    as_integrated_brier_score_scorer,
)
from sksurv.util import Surv

import drocox
from drocox import training
from drocox.curves import StepFunction
from drocox.estimator import DROCox
from drocox.paper.prepare import prepare


def rossi() -> tuple[pd.DataFrame, np.ndarray]:
    """432 prisoners: seven features, scaled, and weeks to the next arrest, with many ties."""
    frame = load_rossi()
    X = frame.drop(columns=["week", "arrest"]).astype(float)
    return (X - X.mean()) / X.std(ddof=0), Surv.from_arrays(frame.arrest == 1, frame.week)


# a quarter have events, and some alphas are large; tests/test_estimator_acts.py is about it
pytestmark = pytest.mark.filterwarnings("ignore:alpha=.* hardly acts")
X, Y = rossi()
TIME, EVENT = Y["time"], Y["event"]
SMALL, SMALL_Y = X[:120].to_numpy(), Y[:120]
KINDS = [{}, {"split": True}, {"hidden_units": 4}, {"hidden_units": 4, "split": True}]
ADAM = {"solver": "adam", "tol": np.inf}  # the paper's way, which may stop anywhere


def kinds(values=KINDS):
    return pytest.mark.parametrize("kind", values, ids=lambda kind: "-".join(kind) or "linear")


# What is trained ----------------------------------------------------------------------------


@kinds()
def test_fits_equal_the_models_of_a_training_stack(kind):
    alphas, hidden = (0.2, 0.5, 0.9), kind.get("hidden_units")
    models = [DROCox(alpha=a, n_iter=40, random_state=3, **ADAM, **kind).fit(X, Y) for a in alphas]
    c = np.array([drocox.dual_constant(a, rule="sharp") for a in alphas])
    risk = drocox.risk_sets(TIME, EVENT)
    objective = (
        training.split_objective(risk, models[0].first_, c)
        if kind.get("split")
        else training.dro_objective(risk, c)
    )
    start = training.initial_parameters(X.shape[1], hidden, 3)
    stack = training.fit_stack(
        X,
        objective,
        np.tile(start, (3, 1)),
        [0.01] * 3,
        hidden=hidden,
        n_iter=40,
        centre=hidden is not None,
    )
    expected = stack.scores(X)
    for model, scores in zip(models, expected, strict=True):
        np.testing.assert_allclose(model.predict(X), scores, atol=1e-10)
    found = objective(torch.from_numpy(expected)).numpy()
    np.testing.assert_allclose([m.loss_ for m in models], found, rtol=1e-10)


def test_alpha_one_is_cox_regression():
    model = DROCox(alpha=1).fit(X, Y)
    cox = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-14).fit(X, Y)
    np.testing.assert_allclose(model.coef_, cox.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), cox.predict(X), atol=1e-8)
    assert model.score(X, Y) == pytest.approx(cox.score(X, Y))
    for name in ("predict_survival_function", "predict_cumulative_hazard_function"):
        ours, theirs = (getattr(m, name)(X[:9], return_array=True) for m in (model, cox))
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    np.testing.assert_array_equal(model.unique_times_, cox.unique_times_)
    assert model.eta_ == -np.inf
    np.testing.assert_allclose(model.worst_case_weights_, 1 / len(X))


@pytest.mark.parametrize("solver", ["convex", "adam"])
def test_reaches_the_minimum_of_the_printed_formula(solver):
    features, time, event = SMALL[:, :2], SMALL_Y["time"], SMALL_Y["event"]
    at_risk = time[None, :] >= time[:, None]
    c = np.sqrt(2 * (1 / 0.5 - 1) ** 2 + 1)

    def objective(beta_eta):
        f, eta = features @ beta_eta[:2], beta_eta[2]
        losses = event * -(f - np.log(at_risk @ np.exp(f)))
        return c * np.sqrt(np.mean(np.maximum(losses - eta, 0) ** 2)) + eta

    found = minimize(objective, np.zeros(3), tol=1e-12)
    model = DROCox(alpha=0.5, rule="paper", solver=solver, n_iter=1000).fit(features, SMALL_Y)
    assert model.loss_ == pytest.approx(found.fun, abs=1e-9)
    np.testing.assert_allclose([*model.coef_, model.eta_], found.x, atol=1e-4)
    assert model.gap_ <= 1e-6


def test_a_large_gap_warns():
    best = DROCox(0.5).fit(X, Y)
    assert best.gap_ <= 1e-10 and best.n_iter_ < 20
    with pytest.warns(ConvergenceWarning, match=r"may exceed its minimum.*use solver='convex'"):
        adam = DROCox(0.5, solver="adam", n_iter=30).fit(X, Y)
    assert adam.gap_ == pytest.approx((adam.loss_ - best.loss_) / adam.loss_, rel=1e-6)
    assert adam.n_iter_ == 30
    with pytest.warns(ConvergenceWarning, match=r"may exceed its minimum.*raise n_iter"):
        hasty = DROCox(0.5, n_iter=1).fit(X, Y)
    assert hasty.gap_ > 1e-6 and hasty.n_iter_ == 1
    assert DROCox(0.5, n_iter=1, hidden_units=2).fit(X, Y).gap_ is None


def test_separation_warns():
    apart = X.assign(late=(TIME == TIME.max()).astype(float))
    for kind in ({"alpha": 0.5}, {}, ADAM):
        with pytest.warns(ConvergenceWarning, match=r"diverge.*separates.*drop or merge"):
            model = DROCox(**kind).fit(apart, Y)
        assert model.separated_ is True
    assert np.isfinite(model.predict(apart)).all()
    assert DROCox(0.5).fit(X, Y).separated_ is False
    assert DROCox(0.5, hidden_units=2, n_iter=1).fit(X, Y).separated_ is None


@kinds(
    [
        {},
        {"alpha": 0.05, "rule": "cvar"},
        {"n_iter": 400, **ADAM},
        {"hidden_units": 2, "n_iter": 100},
    ]
)
def test_case_weights_stand_for_repeated_rows(kind):
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    model = DROCox(**{"alpha": 0.5} | kind).fit(X, Y, sample_weight=weights)
    other = DROCox(**{"alpha": 0.5} | kind).fit(X.iloc[rows], Y[rows])
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-5)
    assert model.loss_ == pytest.approx(other.loss_, rel=1e-7)
    assert model.eta_ == pytest.approx(other.eta_, abs=1e-5)
    shared = other.worst_case_weights_ * weights[rows]
    if "alpha" not in kind:  # the tail of CVaR has an edge
        np.testing.assert_allclose(model.worst_case_weights_[rows], shared, atol=1e-7)
    ours = model.predict_survival_function(X[:5])
    theirs = other.predict_survival_function(X[:5])
    times = other.unique_times_
    np.testing.assert_allclose([c(times) for c in ours], [c(times) for c in theirs], atol=1e-6)


def test_fit_works_under_no_grad():
    for kind in ({}, {"hidden_units": 2}):
        expected = DROCox(0.5, n_iter=50, **kind).fit(X, Y).predict(X)
        with torch.no_grad():
            found = DROCox(0.5, n_iter=50, **kind).fit(X, Y).predict(X)
        np.testing.assert_array_equal(found, expected)


@kinds([{}, {"split": True}, {"n_iter": 50, **ADAM}])
@pytest.mark.parametrize("rule", ["sharp", "paper", "definition", "cvar"])
def test_every_rule_reports_its_risk_and_worst_case(rule, kind):
    model = DROCox(alpha=0.3, rule=rule, **kind).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), X.to_numpy() @ model.coef_, atol=1e-14)
    scores = torch.from_numpy(model.predict(X))
    losses, parts = drocox.cox_losses(scores, TIME, EVENT), [np.full(len(EVENT), True)]
    if model.split:
        first = model.first_
        losses, parts = drocox.split_cox_losses(scores, TIME, EVENT, first), [first, ~first]
        assert abs(first.sum() - (~first).sum()) <= 1
        assert abs(EVENT[first].sum() - EVENT[~first].sum()) <= 1
    else:
        assert isinstance(model.eta_, float)
    assert model.c_ == (None if rule == "cvar" else drocox.dual_constant(0.3, rule=rule))
    risk = 0.0
    for part, eta in zip(parts, np.atleast_1d(model.eta_), strict=True):
        own = float(drocox.dro_risk(losses[part], 0.3, rule=rule))
        risk += own
        if rule == "cvar":
            tail = float((losses[part] - eta).clamp(min=0).mean()) / 0.3
            assert eta + tail == pytest.approx(own)
        else:
            assert eta == pytest.approx(float(drocox.optimal_eta(losses[part], model.c_)))
        worst = drocox.worst_case_weights(losses[part], 0.3, rule=rule)
        np.testing.assert_allclose(len(parts) * model.worst_case_weights_[part], worst, atol=1e-12)
    assert model.loss_ == pytest.approx(risk)
    if model.solver == "adam":
        assert model.n_iter_ == 50
    else:
        assert model.gap_ <= 1e-6


def test_splits_like_the_corrected_protocol():
    ready = prepare("corrected", "seer", 3, 0.5, 2)
    y = Surv.from_arrays(ready.train.event, ready.train.time)
    model = DROCox(0.5, split=True, random_state=3).fit(ready.X[0], y)
    np.testing.assert_array_equal(model.first_, ready.first)


def test_scores_of_a_network_are_centred():
    model = DROCox(0.5, hidden_units=3, n_iter=20).fit(X, Y)
    assert abs(model.predict(X).mean()) < 1e-12
    assert not hasattr(model, "coef_")


@kinds([{"alpha": 0.1}, {"alpha": 0.5, **ADAM}, {"alpha": 0.1, "hidden_units": 4}])
def test_order_of_rows_does_not_matter(kind):
    rows = np.random.default_rng(1).permutation(len(X))
    model = DROCox(n_iter=300, **kind).fit(X, Y)
    other = DROCox(n_iter=300, **kind).fit(X.iloc[rows], Y[rows])
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=1e-8)
    expected = model.worst_case_weights_[rows]
    np.testing.assert_allclose(other.worst_case_weights_, expected, atol=1e-8)


# Survival curves ----------------------------------------------------------------------------


@kinds()
def test_curves_equal_breslow_survival(kind):
    model = DROCox(0.5, n_iter=20, **kind).fit(X[:300], Y[:300])
    time, event = TIME[:300], EVENT[:300]
    times = np.concatenate([[0.0, 0.5], np.unique(time), [7.3, 51.9]])
    scores = model.predict(X[300:])
    expected = drocox.breslow_survival(model.predict(X[:300]), time, event, scores, times).numpy()
    survival = model.predict_survival_function(X[300:])
    hazard = model.predict_cumulative_hazard_function(X[300:])
    assert survival.shape == hazard.shape == (132,)
    assert all(isinstance(curve, StepFunction) for curve in (*survival, *hazard))
    np.testing.assert_allclose([curve(times) for curve in survival], expected, atol=1e-12)
    np.testing.assert_allclose([np.exp(-c(times)) for c in hazard], expected, atol=1e-12)
    assert survival[0](0) == 1.0 and hazard[0](0.5) == 0.0  # the first event is in week 1
    inside = model.predict_survival_function(X[300:], return_array=True)
    np.testing.assert_array_equal(inside, [curve(model.unique_times_) for curve in survival])


def test_curves_with_a_time_of_zero_and_scores_that_overflow():
    y = Surv.from_arrays([True, True, False, True], [0.0, 1.0, 2.0, 3.0])
    model = DROCox(0.5).fit([[1.0], [2.0], [0.0], [0.5]], y)
    assert model.unique_times_.tolist() == [0, 1, 2, 3]
    curve = model.predict_survival_function([[1.0]])[0]
    assert curve.x.tolist() == [0, 1, 2, 3] and curve(0) < 1
    far = [[1e5 / model.coef_[0]], [-1e5 / model.coef_[0]]]
    assert model.predict_survival_function(far, return_array=True).tolist() == [[0] * 4, [1] * 4]
    assert not np.isnan(model.predict_cumulative_hazard_function(far, return_array=True)).any()


# Conventions --------------------------------------------------------------------------------


class OfNumbers(DROCox):
    """Takes plain numbers as event times, as scikit-learn's checks pass them."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, self._times(y), sample_weight)

    def score(self, X, y):
        return super().score(X, self._times(y))

    @staticmethod
    def _times(y):
        if y is None or not np.isfinite(y).all():
            return y
        y = np.asarray(y).ravel()
        return Surv.from_arrays(np.ones(len(y), dtype=bool), y - y.min())


class WithoutWeights(OfNumbers):
    """A split takes no case weights."""

    def fit(self, X, y):
        return super().fit(X, y)


@pytest.mark.parametrize(
    "model",
    [OfNumbers(), OfNumbers(hidden_units=2, n_iter=3), WithoutWeights(0.5, split=True)],
    ids=["linear", "hidden_units", "split"],
)
def test_passes_the_checks_of_scikit_learn(model):
    known = {"check_dtype_object": "our message names X and the remedy instead"}
    if not model.hidden_units:  # ... and repeated rows then lead to another model without end
        known["check_sample_weight_equivalence_on_dense_data"] = "30 features separate 15 patients"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke some
        checks = check_estimator(model, expected_failed_checks=known, on_fail=None, on_skip=None)
    assert len(checks) > 35
    assert [c["check_name"] for c in checks if c["status"] == "failed"] == []


def test_parameters_keep_their_order_and_defaults_and_survive_clone():
    positional = {
        "alpha": 1.0,
        "rule": "sharp",
        "split": False,
        "hidden_units": None,
        "solver": "auto",
        "learning_rate": 0.01,
        "n_iter": 500,
        "tol": 1e-6,
        "random_state": 0,
        "verbose": False,
    }
    keyword = {"penalty": 0.0, "recalibrate": False, "ties": "breslow"}
    parameters = inspect.signature(DROCox).parameters.values()
    for kind, expected in (("POSITIONAL_OR_KEYWORD", positional), ("KEYWORD_ONLY", keyword)):
        found = {p.name: p.default for p in parameters if p.kind.name == kind}
        assert list(found.items()) == list(expected.items())
    assert [*inspect.signature(DROCox().fit).parameters] == ["X", "y", "sample_weight", "strata"]
    model = DROCox(alpha=0.3, split=True, hidden_units=5, n_iter=7)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(alpha=0.4).alpha == 0.4
    assert repr(DROCox(alpha=0.4)) == "DROCox(alpha=0.4)"
    assert model.__sklearn_tags__().target_tags.required


@kinds()
def test_pickle_keeps_every_prediction(kind):
    model = DROCox(0.5, n_iter=20, **kind).fit(X, Y)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert twin.predict_survival_function(X[:2])[1] == model.predict_survival_function(X[:2])[1]
    np.testing.assert_array_equal(twin.eta_, model.eta_)


def test_feature_names_are_kept_and_must_match():
    model = DROCox(0.5).fit(X, Y)
    assert model.n_features_in_ == 7
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert not hasattr(DROCox(0.5).fit(SMALL, SMALL_Y), "feature_names_in_")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[X.columns[::-1]])


def test_works_in_a_pipeline_and_a_grid_search():
    raw = load_rossi().drop(columns=["week", "arrest"])
    pipeline = make_pipeline(StandardScaler(), DROCox(n_iter=30))
    search = GridSearchCV(pipeline, {"drocox__alpha": [0.2, 0.5, 1.0]}, cv=3).fit(raw, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    single = DROCox(n_iter=30, **{"alpha": search.best_params_["drocox__alpha"]}).fit(X, Y)
    np.testing.assert_allclose(best.predict(raw), single.predict(X), atol=1e-10)
    assert best.score(raw, Y) == pytest.approx(single.score(X, Y))
    curve = best.predict_survival_function(raw[:1])[0]
    assert curve(30) == pytest.approx(single.predict_survival_function(X[:1])[0](30))


def test_a_grid_search_passes_weights_on_to_fit_and_score():
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    with config_context(enable_metadata_routing=True):
        model = DROCox().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"penalty": [0.0, 0.1]}, cv=2, error_score="raise")
        search.fit(X, Y, sample_weight=weight)
    repeated = [np.repeat(rows, weight[rows]) for rows in next(iter(KFold(2).split(X)))]
    train, test = (X.iloc[rows] for rows in repeated)
    expected = DROCox().fit(train, Y[repeated[0]]).score(test, Y[repeated[1]])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "wrapper",
    [
        as_concordance_index_ipcw_scorer,
        as_cumulative_dynamic_auc_scorer,
        as_integrated_brier_score_scorer,
    ],
)
def test_works_with_the_scorers_of_scikit_survival(wrapper):
    """They give a model of ours what they give scikit-survival's own."""
    how = {"tau": 30} if wrapper is as_concordance_index_ipcw_scorer else {"times": [10, 20, 30]}
    y = Surv.from_arrays(EVENT & (TIME < 52), TIME)  # all others are censored at 52
    ours, theirs = (
        wrapper(model, **how).fit(X, y).score(X, y) for model in (DROCox(), CoxPHSurvivalAnalysis())
    )
    assert ours == pytest.approx(theirs, abs=1e-6)


@kinds([{"split": True}, {"hidden_units": 2}])
def test_random_state_makes_fits_repeatable(kind):
    def scores(state):
        return DROCox(0.5, n_iter=20, random_state=state, **kind).fit(X, Y).predict(X)

    before = torch.random.get_rng_state()
    np.testing.assert_array_equal(scores(5), scores(5))
    np.testing.assert_array_equal(scores(np.int64(5)), scores(5))
    assert torch.equal(torch.random.get_rng_state(), before)
    state = np.random.RandomState(2)
    first, second = scores(state), scores(state)
    np.testing.assert_array_equal(first, scores(np.random.RandomState(2)))
    for other in (second, scores(6), scores(None)):
        assert not np.array_equal(first, other)


def test_refitting_removes_earlier_attributes():
    model = DROCox(0.5, split=True).fit(X, Y)
    assert hasattr(model, "coef_") and hasattr(model, "first_")
    model.set_params(split=False, hidden_units=2).fit(SMALL, SMALL_Y)
    assert not hasattr(model, "coef_") and not hasattr(model, "first_")
    assert model.predict(SMALL).shape == model.worst_case_weights_.shape == (120,)


def test_progress_is_shown_on_request_only(capsys):
    DROCox(0.5, hidden_units=2, n_iter=2).fit(SMALL, SMALL_Y)
    assert capsys.readouterr() == ("", "")
    DROCox(0.5, hidden_units=2, n_iter=2, verbose=True).fit(SMALL, SMALL_Y)
    shown = capsys.readouterr()
    assert shown.out == "" and "training" in shown.err


# Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        *(
            ({"alpha": a}, "alpha.*must be a")
            for a in (0, -0.1, 1.1, np.nan, "0.2", None, [0.2], True)
        ),
        *(({"n_iter": n}, "n_iter.*must be an int") for n in (0, 2.5, None)),
        *(
            ({"learning_rate": r}, "learning_rate.*must be a float")
            for r in (0, -1, np.inf, "fast")
        ),
        *(({"hidden_units": h}, "hidden_units.*must be an int") for h in (0, 2.0, (4,))),
        ({"split": "yes"}, "split.*must be"),
        ({"rule": "blunt"}, "rule.*must be a str among"),
        ({"solver": "newton"}, "solver.*must be a str among"),
        ({"solver": "convex", "hidden_units": 3}, "linear models; set hidden_units=None"),
        *(({"penalty": v}, "penalty.*must be a float") for v in (-1, np.inf, "much")),
        ({"recalibrate": "yes"}, "recalibrate.*must be"),
        *(({"tol": t}, "tol.*must be a float") for t in (0, -1e-6, "small")),
        ({"random_state": -1}, "random_state.*must be"),
        ({"random_state": "seed"}, "random_state.*must be"),
        ({"ties": "efron"}, "ties='efron' is not offered.*CoxPHSurvivalAnalysis"),
    ],
)
def test_bad_parameters_are_refused_by_name(params, message):
    model = DROCox(**params)  # refused by fit, as scikit-learn has it
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(SMALL, SMALL_Y)


def changed(column, value):
    frame = X[:120].copy()
    frame[column] = value
    return frame


def outcome(event=SMALL_Y["event"], time=SMALL_Y["time"]):
    y = SMALL_Y.copy()
    y["event"], y["time"] = event, time
    return y


def competing():
    """Causes of death as codes 0, 1, 2."""
    y = SMALL_Y.astype([("event", int), ("time", float)])
    y["event"][:5] = 2
    return y


def delayed():
    """Entry times beside the outcomes."""
    y = np.zeros(120, dtype=[("entry", float), ("event", bool), ("time", float)])
    y["event"], y["time"] = SMALL_Y["event"], SMALL_Y["time"]
    return y


@pytest.mark.parametrize(
    ("features", "y", "message"),
    [
        (changed("age", np.nan), SMALL_Y, "X holds 120 NaN or infinite.*impute"),
        (changed("age", "old"), SMALL_Y, "X must be numeric; encode"),
        (SMALL[:, 0], SMALL_Y, "Expected 2D array.*Reshape"),
        (SMALL[:0], SMALL_Y[:0], "0 sample"),
        (SMALL[:1], SMALL_Y[:1], "minimum of 2 is required"),
        (SMALL[:, :0], SMALL_Y, "0 feature"),
        (SMALL, None, "requires y to be passed"),
        (SMALL, SMALL_Y["time"], "y must be a structured array.*Surv"),
        (SMALL, list(SMALL_Y), "y must be a structured array.*Surv"),
        (SMALL, SMALL_Y[:100], "y has 100 rows, X 120.*each row"),
        (SMALL, SMALL_Y[:, None], "time in y must have 1 dimension"),
        (SMALL, outcome(time=np.nan), "time in y holds 120 NaN or infinite"),
        (SMALL, outcome(time=-1.0), "time in y holds negative"),
        (SMALL, outcome(event=False), "nobody has an event.*in y"),
        (
            SMALL,
            SMALL_Y.astype([("event", float), ("time", float)]),
            "first field, must be boolean",
        ),
        (SMALL, competing(), "event in y holds codes other than 0 and 1.*cause == 1"),
        (SMALL, delayed(), r"y has 3 fields \(entry, event, time\).*entry_col.*cause == 1"),
    ],
)
def test_bad_data_are_refused_by_name(features, y, message):
    with pytest.raises((TypeError, ValueError), match=re.compile(message, re.DOTALL)):
        DROCox(0.5, n_iter=1).fit(features, y)


@pytest.mark.parametrize(
    ("weights", "kind", "message"),
    [
        (np.ones(5), {}, r"weights must hold one number per patient \(120\), got 5"),
        (-np.ones(120), {}, "weights must be finite numbers >= 0"),
        (np.full(120, np.nan), {}, "weights holds 120 NaN"),
        (np.full(120, 1 / 120), {}, "weights are counts of patients"),
        (np.full(120, 1 / 120), {"hidden_units": 2}, "weights are counts of patients"),
        (~SMALL_Y["event"], {}, "nobody has an event and a weight above 0"),
        (~SMALL_Y["event"], {"hidden_units": 2}, "nobody has an event and a weight above 0"),
        (np.ones(120), {"split": True}, "sample_weight cannot be used with split=True"),
    ],
)
def test_bad_weights_are_refused(weights, kind, message):
    with pytest.raises(ValueError, match=message):
        DROCox(0.5, **kind).fit(SMALL, SMALL_Y, sample_weight=weights)


def test_predict_refuses_data_that_do_not_match_the_fit():
    model = DROCox(0.5)
    for method in (
        model.predict,
        model.predict_survival_function,
        model.predict_cumulative_hazard_function,
        lambda Z: model.score(Z, SMALL_Y),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            method(SMALL)
    with pytest.raises(ValueError, match="nobody"):
        model.fit(SMALL, outcome(event=False))
    with pytest.raises(NotFittedError):  # a fit that failed is none
        model.predict(SMALL)
    model.fit(SMALL, SMALL_Y)
    with pytest.raises(ValueError, match="X has 3 features, but DROCox is expecting 7"):
        model.predict(SMALL[:, :3])
    with pytest.raises(ValueError, match="X holds 1 NaN"):
        model.predict([[np.nan] + [0.0] * 6])
    with pytest.raises(ValueError, match="y must be a structured array"):
        model.score(SMALL, SMALL_Y["time"])
    with pytest.raises(ValueError, match="y has 5 rows"):
        model.score(SMALL, SMALL_Y[:5])


def test_divergence_is_an_error():
    with pytest.raises(ValueError, match=r"diverged.*StandardScaler.*learning_rate"):
        DROCox(0.5, learning_rate=1e308, n_iter=5, **ADAM).fit(SMALL, SMALL_Y)


@pytest.mark.parametrize("kind", [ADAM, {"hidden_units": 2}], ids=["adam", "network"])
def test_features_too_large_for_adam_are_refused(kind):
    with pytest.raises(
        ValueError, match=r"X holds 1e\+39, too large for Adam; use a StandardScaler"
    ):
        DROCox(0.5, **kind).fit(changed("age", 1e39), SMALL_Y)


def test_split_needs_an_event_in_each_half():
    lone = outcome(event=np.arange(120) == 3)
    with pytest.raises(ValueError, match="split=True needs an event in each half"):
        DROCox(0.5, split=True).fit(SMALL, lone)
    two = outcome(event=np.isin(np.arange(120), (3, 4)))
    with pytest.warns(ConvergenceWarning, match="diverge"):  # two are always separated
        model = DROCox(0.5, split=True).fit(SMALL, two)
    assert two["event"][model.first_].sum() == 1
    for censored in (0, 1):  # too few to stratify by
        most = outcome(event=np.arange(120) >= censored)
        assert DROCox(0.5, split=True).fit(SMALL, most).eta_.shape == (2,)


def test_an_entry_far_out_is_named_and_not_called_separation():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 3))
    time = rng.exponential(np.exp(X[:, 0]))
    event = rng.random(300) < 0.7
    row = np.argmax(time * ~event)
    X[row, 0] = 1000
    y = Surv.from_arrays(event, time)
    with pytest.raises(ValueError, match=f"X holds an outlier in column 0, row {row}: .*clip or"):
        DROCox(alpha=1.0).fit(X, y)


UNITS = (1.0, 1e-170, 1e170)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_the_gap_does_not_depend_on_units(alpha):
    """Squares of coefficients overflow where features are of size 1e-170."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = Surv.from_arrays(rng.random(200) < 0.7, rng.exponential(np.exp(-X[:, 0])))
    for steps in (1, 500):
        models = []
        for unit in UNITS:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", ConvergenceWarning)
                models.append(DROCox(alpha=alpha, n_iter=steps).fit(unit * X, y))
            assert len(said) == (steps == 1)
            np.testing.assert_allclose(models[-1].coef_ * unit, models[0].coef_, rtol=1e-6)
            assert models[-1].gap_ == pytest.approx(models[0].gap_, rel=1e-6, abs=1e-9)
    if alpha == 1:
        errors = [
            model.summary_["standard_error"] * unit
            for model, unit in zip(models, UNITS, strict=True)
        ]
        np.testing.assert_allclose(errors[1:], [errors[0]] * 2, rtol=1e-6)


@pytest.mark.parametrize("rule", ["sharp", "paper", "definition", "cvar"])
def test_a_share_far_below_one_patient_is_refused(rule):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 2))
    y = Surv.from_arrays(np.full(100, True), rng.exponential(size=100))
    with pytest.raises(ValueError, match=r"alpha=1e-300 is far less than one of 100 .* 0.01 or"):
        DROCox(alpha=1e-300, rule=rule).fit(X, y)
