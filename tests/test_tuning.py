"""Choosing alpha: folds, the paper's rule, intervals for repeated cross-validation."""

import numpy as np
import pandas as pd
import pytest
from cohort import simulated
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxnetSurvivalAnalysis

import drocox
from drocox import accuracy, fairness, tuning
from drocox.evaluation import scaled_features
from drocox.heldout import assign_folds
from drocox.tuning import KEPT, Choice, choose, most_accurate

pytestmark = pytest.mark.filterwarnings("ignore:choose_alpha:DeprecationWarning")


class Stub(BaseEstimator):
    """A model without training: the smaller alpha, the larger the weight of the last feature."""

    slope_ = 1.0

    def __init__(self, alpha=1.0, rule="sharp"):
        self.alpha = alpha
        self.rule = rule

    def fit(self, X, y):
        self.mean_ = X.mean(axis=0)
        return self

    def predict(self, X):
        return X[:, 0] + (1 - self.alpha) * X[:, 2]


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr("drocox.DROCox", Stub)


def test_cross_fit_scores_patients_by_models_that_have_not_seen_them():
    data, _ = simulated(n=90)
    data.X.iloc[::5, 0] = np.nan
    seen = []

    class Remembers(Stub):
        def fit(self, X, y):
            seen.append(len(X))
            return super().fit(X, y)

    found = tuning.cross_fit(data, Remembers(), folds=3)
    assert seen == [60, 60, 60] and np.isfinite(found["scores"]).all()
    for k, (part, train_scores) in found["train"].items():
        assert len(part) == len(train_scores) == 60
        out = found["folds"] == k
        assert not set(part.time) & set(data.time[out])
    audit = drocox.audit(data, **found)
    assert audit.table["calibration"].notna().all()


def test_cross_fit_uses_cox_by_default():
    data, _ = simulated(n=120)
    found = tuning.cross_fit(data, folds=2)
    c_index = accuracy.concordance_index(found["scores"], data.time, data.event)
    assert c_index > 0.6
    with pytest.raises(ValueError, match="too few for folds=99"):
        tuning.cross_fit(data, folds=99)


def test_cross_fit_scores_of_a_recalibrated_model_are_recalibrated():
    """Expected events and risks are those of its survival curves, not of its raw scores."""
    data, _ = simulated(n=300)
    model = drocox.DROCox(alpha=0.5, rule="sharp", recalibrate=True)
    found = drocox.cross_fit(data, model, folds=3)
    fold = found["folds"]
    X, X_out = scaled_features(data.subset(fold != 0), data.subset(fold == 0))
    fitted = model.fit(X, data.y[fold != 0])
    assert fitted.slope_ != 1
    np.testing.assert_allclose(found["scores"][fold == 0], fitted.slope_ * fitted.predict(X_out))
    part, scores = found["train"][0]
    at = np.quantile(data.time, [0.3, 0.6])
    curves = drocox.breslow_survival(scores, part.time, part.event, found["scores"][fold == 0], at)
    np.testing.assert_allclose(curves, fitted.predict_survival_function(X_out, times=at), rtol=1e-6)


def test_alphas_that_hardly_act_are_compared_without_a_warning():
    data, _ = simulated(n=200)
    alpha = max(0.9, data.event.mean())
    with pytest.warns(UserWarning, match="hardly acts"):
        drocox.DROCox(alpha).fit(data.X, data.y)
    chosen = drocox.choose_alpha(data, "group", alphas=[alpha], folds=3, repeats=1)
    assert abs(chosen.table["c_difference"].iloc[1]) < 0.01


def test_the_table_equals_means_over_folds_with_nadeau_bengio_intervals(stub):
    data, _ = simulated(n=200)
    chosen = drocox.choose_alpha(data, "group", alphas=[0.5, 0.1, 1.0], folds=4, repeats=2)
    assert list(chosen.table.index) == [1.0, 0.5, 0.1]
    c, cf = [], []
    for repeat in range(2):
        fold = assign_folds(2 * data.groups["group"] + data.event, 4, repeat)
        for k in range(4):
            train, test = data.subset(fold != k), data.subset(fold == k)
            X = (test.X - train.X.mean()) / train.X.std(ddof=0)
            scores = [Stub(alpha).predict(X.to_numpy()) for alpha in chosen.table.index]
            outcomes = (test.time, test.event)
            groups = {"g": test.groups["group"]}
            c.append([accuracy.concordance_index(s, *outcomes) for s in scores])
            cf.append([fairness.concordance_fractions(s, *outcomes, groups)["g"] for s in scores])
    c, cf = np.array(c), np.array(cf)
    np.testing.assert_allclose(chosen.table["c_index"], c.mean(axis=0))
    signed = 100 * np.diff(cf)[..., 0]
    np.testing.assert_allclose(chosen.table["ci_percent"], np.abs(signed.mean(axis=0)))
    # Nadeau and Bengio: of 8 folds, tested a quarter and trained on three
    for name, values in (("c", c), ("ci", signed)):
        differences = values[:, 1:] - values[:, :1]
        error = np.sqrt((1 / 8 + 1 / 3) * differences.var(axis=0, ddof=1))
        half = (chosen.table[f"{name}_high"] - chosen.table[f"{name}_low"]).iloc[1:] / 2
        critical = half / error  # the same for all alphas, more than for one
        np.testing.assert_allclose(critical, critical.iloc[0], rtol=1e-6)
        assert 2.36 < critical.iloc[0] < 3.2
    assert (chosen.table.iloc[0][["c_low", "c_high", "ci_low", "ci_high"]] == 0).all()


@pytest.mark.parametrize(
    ("c_index", "imparity", "position"),
    [
        ([0.70, 0.68, 0.60], [3.0, 2.0, 1.0], 1),  # the last is not eligible
        ([0.70, 0.665], [3.0, 2.0], 1),  # exactly 95 %
        ([0.70, 0.664], [3.0, 2.0], 0),
        ([0.60, 0.65, 0.62], [3.0, 2.0, 1.0], 1),  # none is eligible
        ([0.68, 0.69, 0.69], [2.0, 2.0, 2.0], 1),  # ties
        ([np.nan, 0.69, 0.70], [1.0, 3.0, np.nan], 1),
        ([np.nan, 0.60], [1.0, np.nan], 1),
        ([0.70, 0.72], [np.nan, np.nan], 1),
        ([0.70], [np.inf], 0),
    ],
)
def test_the_papers_rule_on_examples(c_index, imparity, position):
    assert tuning.choose(c_index, imparity, 0.7) == position


def test_candidates_without_a_c_index_are_never_chosen():
    assert most_accurate([np.nan, 0.6, 0.6]) == 1
    assert tuning.choose([0.5, 0.6], [1.0, 2.0], np.nan) == 1
    with pytest.raises(ValueError, match="c_index holds no number"):
        tuning.choose([np.nan], [1.0], 0.7)


def test_choose_alpha_follows_the_papers_rule(stub):
    data, _ = simulated(n=300)
    chosen = drocox.choose_alpha(data, "group", alphas=[0.9, 0.5, 0.01], folds=3, repeats=1)
    table = chosen.table
    assert (table["eligible"] == (table["c_index"] >= 0.95 * table["c_index"][1.0])).all()
    assert chosen.alpha == table["ci_percent"][table["eligible"]].idxmin()
    row = table.loc[chosen.alpha]
    noise = row["ci_low"] <= 0 <= row["ci_high"]
    assert ("No difference beyond noise" in chosen.sentence) == noise
    assert f"α = {chosen.alpha:g}" in chosen.sentence


def test_the_sentence_reports_difference_and_noise():
    columns = ["eligible", "c_index", "ci_percent", "ci_difference", "ci_low", "ci_high"]
    rows = {1.0: [True, 0.7, 5, 0, 0, 0], 0.2: [True, 0.69, 2, -3, -5, -1]}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    said = Choice(0.2, table).sentence
    assert "imparity 2.0 % and c-index 0.690, plain Cox 5.0 % and 0.700" in said
    assert "-3.0 points (95 % interval, all α at once: -5.0 to -1.0)" in said
    assert said.endswith(
        "Beyond noise: fairer than plain Cox. Tuning α on fairness is not advised."
    )
    table.loc[0.2, "ci_high"] = 1
    assert Choice(0.2, table).sentence.endswith(
        "noise: plain Cox is as good a choice. Tuning α on fairness is not advised."
    )
    table.loc[0.2] = [True, 0.69, 9, 4, 1, 7]
    said = Choice(1.0, table).sentence
    assert said.startswith("No α that keeps 95 % of plain Cox's c-index has a smaller imparity: pl")
    assert "α = 0.2 has concordance imparity 9.0 %" in said
    assert "Beyond noise: less fair than plain Cox. Tuning" in said
    table.loc[0.2] = [False, 0.5, 2, -3, -5, 1]
    said = Choice(1.0, table).sentence
    assert said.startswith("No α keeps 95 % of plain Cox's c-index. α = 0.2 has")
    assert "No difference beyond noise. Tuning" in said


def test_plain_cox_is_chosen_if_no_alpha_is_better(stub, monkeypatch):
    """A robust model that is worse on both criteria is no choice."""
    monkeypatch.setattr(Stub, "predict", lambda self, X: X[:, 0] - (1 - self.alpha) * X[:, 2])
    data, _ = simulated(n=300)
    chosen = drocox.choose_alpha(data, "group", alphas=[0.9, 0.5], folds=3, repeats=1)
    assert (chosen.table["ci_percent"].iloc[1:] > chosen.table["ci_percent"].iloc[0]).all()
    assert chosen.alpha == 1.0 and "plain Cox is the choice" in chosen.sentence


class Plain:
    """Nothing but ``fit`` and ``predict``."""

    def fit(self, X, y):
        self.weight = np.arange(1, X.shape[1] + 1)
        return self

    def predict(self, X):
        return np.asarray(X) @ self.weight


def test_any_object_with_fit_and_predict_can_be_cross_fitted():
    """A model of no library, and one whose curves would need an option that was not set."""
    data, _ = simulated(n=60)
    model = Plain()
    found = tuning.cross_fit(data, model, folds=2)
    assert found["scores"].std() > 0 and "train" in found and not hasattr(model, "weight")
    coxnet = CoxnetSurvivalAnalysis(alphas=[0.1])
    assert "train" in tuning.cross_fit(data, coxnet, folds=2)
    coxnet.set_params(fit_baseline_model=True)
    assert "survival" in tuning.cross_fit(data, coxnet, folds=2)


def test_choose_alpha_with_the_default_estimator_says_that_it_leaves():
    data, _ = simulated(n=150)
    with pytest.warns(DeprecationWarning, match="gone in the next edition"):
        chosen = drocox.choose_alpha(data, "group", alphas=[0.5], folds=3, repeats=1)
    assert chosen.alpha in (0.5, 1.0)
    assert chosen.table["c_index"].between(0.5, 0.9).all()


def test_bad_input_is_refused_by_name():
    data, _ = simulated(n=60)
    with pytest.raises(ValueError, match="unknown attribute 'race'; choose one of: group, sex"):
        drocox.choose_alpha(data, "race")
    with pytest.raises(ValueError, match="'rule' parameter of DROCox must be"):
        drocox.choose_alpha(data, "sex", rule="x")
    with pytest.raises(ValueError, match="'alpha' parameter of DROCox must be"):
        drocox.choose_alpha(data, "sex", alphas=[0])
    with pytest.raises(ValueError, match="an alpha below 1, and 3 folds in all"):
        drocox.choose_alpha(data, "sex", alphas=[1.0])
    with pytest.raises(ValueError, match="too few for folds=50"):
        drocox.choose_alpha(data, "sex", folds=50)
    for folds in (0, 1, -3):
        with pytest.raises(ValueError, match=f"folds must be 2 or more, got {folds}"):
            tuning.cross_fit(data, folds=folds)
        with pytest.raises(ValueError, match=f"folds must be 2 or more, got {folds}"):
            drocox.choose_alpha(data, "sex", folds=folds)
    with pytest.raises(TypeError, match=r"folds must be a whole number, got 2\.5"):
        tuning.cross_fit(data, folds=2.5)
    with pytest.raises(ValueError, match="repeats must be 1 or more, got 0"):
        drocox.choose_alpha(data, "sex", repeats=0)
    with pytest.raises(TypeError, match="data must be a SurvivalData, not DataFrame; see"):
        drocox.choose_alpha(data.X, "sex")
    with pytest.raises(TypeError, match="data must be a SurvivalData, not DataFrame; see"):
        tuning.cross_fit(data.X)


def test_cross_fit_returns_survival_curves_of_a_forest():
    data, _ = simulated(n=200)
    forest = RandomSurvivalForest(n_estimators=10, min_samples_leaf=15, random_state=0)
    found = tuning.cross_fit(data, forest, folds=2)
    assert set(found) == {"scores", "folds", "survival", "times"}
    table = drocox.audit(data, **found).table
    assert 0.7 < table["calibration"][0] < 1.4 and table["brier"][0] < 0.25


def test_another_model_can_be_tuned(stub):
    data, _ = simulated(n=200)
    usual = drocox.choose_alpha(data, "group", alphas=[0.5], folds=3, repeats=1)
    mine = drocox.choose_alpha(data, "group", alphas=[0.5], model=Stub(), folds=3, repeats=1)
    assert mine.table.equals(usual.table)


# --- The paper's rule -----------------------------------------------------------------------------


few = st.sampled_from([0.6, 0.65, KEPT * 0.7, 0.7, 0.72])
unfairness = st.sampled_from([0.0, 1.0, 2.0, np.inf])


def one_by_one(c_index, imparity, plain, ties):
    """One candidate after the other; a later one has to be better."""
    best = None
    for i in range(len(c_index)):
        if not c_index[i] >= KEPT * plain:
            continue
        if best is None or (imparity[i], ties[i]) < (imparity[best], ties[best]):
            best = i
    return c_index.index(max(c_index)) if best is None else best


@given(st.lists(st.tuples(few, unfairness, st.integers(0, 2)), min_size=1, max_size=6))
def test_the_papers_rule_equals_a_loop(candidates):
    c_index, imparity, ties = map(list, zip(*candidates, strict=True))
    negative = [-c for c in c_index]
    assert choose(c_index, imparity, 0.7) == one_by_one(c_index, imparity, 0.7, negative)
    assert choose(c_index, imparity, 0.7, ties=ties) == one_by_one(c_index, imparity, 0.7, ties)
