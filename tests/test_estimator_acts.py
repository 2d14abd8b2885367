"""``acts_``: whether the worst case of ``DROCox`` can make it differ from a Cox model."""

import re

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from test_estimator import EVENT, TIME, X, Y

import drocox
from drocox.estimator import DROCox

SHARE = EVENT.mean()  # 114 of 432
STRATA = X["race"].to_numpy()
HARDLY = r"alpha=\S+ hardly acts"
KINDS = {
    "linear": {},
    "split": {"split": True},
    "network": {"hidden_units": 4, "n_iter": 30},
    "adam": {"solver": "adam", "tol": np.inf, "n_iter": 30},
    "recalibrated": {"recalibrate": True},
}


def losses_of(model):
    return drocox.cox_losses(model.predict(X), TIME, EVENT).numpy()


@pytest.mark.parametrize("alpha", [SHARE, 0.5])
def test_cvar_of_all_events_is_exactly_cox(alpha):
    with pytest.warns(UserWarning, match=HARDLY):
        model = DROCox(alpha=alpha, rule="cvar").fit(X, Y)
    assert model.acts_ is False
    np.testing.assert_allclose(model.coef_, DROCox(alpha=1).fit(X, Y).coef_, atol=1e-6)
    assert model.loss_ == pytest.approx(losses_of(model).mean() / alpha)
    fewer = DROCox(alpha=SHARE - 1 / len(Y), rule="cvar").fit(X, Y)  # one event does not fit
    assert fewer.acts_ is True


@pytest.mark.parametrize(
    ("rule", "idle", "acting"),
    [("sharp", 0.27, 0.25), ("definition", 0.4, 0.35), ("paper", 0.46, 0.44)],
)
def test_a_ball_that_contains_everybody_is_mean_plus_deviation_and_nearly_cox(rule, idle, acting):
    cox = DROCox(alpha=1).fit(X, Y)
    with pytest.warns(UserWarning, match=HARDLY):
        model = DROCox(alpha=idle, rule=rule).fit(X, Y)
    assert model.acts_ is False
    assert (model.worst_case_weights_ > 0).all()
    losses = losses_of(model)
    assert model.loss_ == pytest.approx(losses.mean() + np.sqrt(model.c_**2 - 1) * losses.std())
    weights, own = model.worst_case_weights_[EVENT], losses[EVENT]
    assert weights.std() / weights.mean() < own.std() / own.mean()
    assert np.corrcoef(model.predict(X), cox.predict(X))[0, 1] > 0.99

    model = DROCox(alpha=acting, rule=rule).fit(X, Y)
    assert model.acts_ is True
    assert (model.worst_case_weights_[~EVENT] == 0).all()


@pytest.mark.parametrize("strata", [None, STRATA], ids=["whole", "strata"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_of_model_says_it_once(kind, strata):
    with pytest.warns(UserWarning, match=HARDLY) as said:
        model = DROCox(alpha=0.5, **kind).fit(X, Y, strata=strata)
    assert len(said) == 1 and said[0].filename == __file__
    assert model.acts_ is False and (model.worst_case_weights_ > 0).all()
    assert DROCox(alpha=0.1, **kind).fit(X, Y, strata=strata).acts_ is True


def test_the_warning_says_why_and_advises_nothing():
    with pytest.warns(UserWarning, match=r"26 % of the patients have events") as said:
        DROCox(0.5).fit(X, Y)
    assert not re.search("choose|use |lower|less", str(said[0].message))


def test_a_cox_model_was_not_asked_to_act():
    assert DROCox().fit(X, Y).acts_ is False  # and nothing is said


@pytest.mark.parametrize("option", [{"rule": "paper"}, {"rule": "cvar"}, {"split": True}])
def test_robustness_is_asked_for_with_alpha(option):
    (name,) = option
    with pytest.raises(ValueError, match=f"^{name}=.* needs an alpha below 1.*pass alpha, or"):
        DROCox(**option).fit(X, Y)


@pytest.mark.parametrize("rule", ["sharp", "cvar"])
def test_weights_count_patients(rule):
    weights = np.where(EVENT, 4, np.arange(len(Y)) % 2)  # some censored rows are ignored
    model = DROCox(alpha=0.5, rule=rule).fit(X, Y, sample_weight=weights)
    assert model.acts_ is True
    with pytest.warns(UserWarning, match="74 % of the patients have events"):
        model = DROCox(alpha=0.8, rule=rule).fit(X, Y, sample_weight=weights)
    assert model.acts_ is False


def test_a_split_acts_if_one_half_does():
    first_of_each = [np.flatnonzero(EVENT)[0], np.flatnonzero(~EVENT)[0]]
    rest = np.delete(np.arange(len(Y)), first_of_each)  # 113 events, 57 of them in one half of 215
    larger_first = set()
    for seed in range(6):
        model = DROCox(56.5 / 215, rule="cvar", split=True, random_state=seed)
        assert model.fit(X.iloc[rest], Y[rest]).acts_ is True
        larger_first.add(int(EVENT[rest][model.first_].sum()) == 57)
    assert larger_first == {True, False}


def test_without_censoring_one_half_acts():
    model = DROCox(0.5).fit(X[EVENT], Y[EVENT])
    assert model.acts_ is True and (model.worst_case_weights_ == 0).any()


def test_a_problem_of_the_fit_is_reported_besides():
    with pytest.warns(UserWarning, match=HARDLY), pytest.warns(ConvergenceWarning, match="n_iter"):
        DROCox(0.5, n_iter=1).fit(X, Y)
