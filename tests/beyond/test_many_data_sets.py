"""The study on many data sets: against literal computations, without leaks."""

import dataclasses

import invented_patients
import numpy as np
import pytest
from scipy import stats

from drocox import concordance
from drocox.beyond import datasets, halves, many_data_sets, models, outcomes
from drocox.beyond.models import AGAINST, ALONE, FORMS, GENTLE, HALF, PLAIN, PUBLISHED, SPLIT
from drocox.evaluation import scaled_features
from drocox.solver import minimise
from drocox.tuning import choose

pytestmark = pytest.mark.slow  # of a study beyond the paper; `make check` is for the package


@pytest.fixture(scope="module")
def patients():
    return invented_patients.draw(240, 0.4, seed=3)


@pytest.fixture(scope="module")
def dealt(patients):
    return next(halves.deal(patients.data.event, 0))


@pytest.fixture(scope="module")
def learned(patients, dealt):
    return halves.learn(patients.subset(dealt[0]), 0, 0)


@pytest.fixture(scope="module")
def evaluated(patients, dealt, learned):
    b = patients.subset(dealt[1])
    return outcomes.evaluate(outcomes.scored(learned, b), learned, b)


def c_index(scores, time, event):
    """Harrell's c-index in points, pair by pair."""
    right = pairs = 0.0
    for i in np.flatnonzero(event):
        for j in np.flatnonzero(time > time[i]):
            right += float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j])
            pairs += 1
    return 100 * right / pairs


def test_outcomes_of_the_other_half_decide_nothing(patients, dealt, learned):
    rows_a, rows_b = dealt
    data = patients.data
    rng = np.random.default_rng(0)
    time, event = data.time.copy(), data.event.copy()
    time[rows_b] = rng.permutation(time[rows_b]) * 2
    event[rows_b] = rng.random(len(rows_b)) < 0.3
    changed = dataclasses.replace(patients, data=dataclasses.replace(data, time=time, event=event))
    again = halves.learn(changed.subset(rows_a), 0, 0)
    assert again.gaps == learned.gaps
    assert again.signs == learned.signs
    assert again.worst == learned.worst
    assert again.own_worst == learned.own_worst
    assert again.horizon == learned.horizon
    b = changed.subset(rows_b)
    assert list(again.models) == list(learned.models)
    for key, model in learned.models.items():
        np.testing.assert_array_equal(again.models[key].scores(b), model.scores(b))


@pytest.mark.parametrize("name", [HALF, *PUBLISHED.values()])
def test_contrasts_equal_literal_computations(patients, dealt, learned, evaluated, name):
    b = patients.subset(dealt[1])
    time, event = b.data.time, b.data.event
    members = learned.worst.members(b.covariates)
    base = learned.models[AGAINST[name], ""].scores(b)
    keys = [key for key in learned.models if key[0] == name]
    worst, of_own, c = [], [], []
    for key in keys:
        own = learned.models[key].scores(b)
        mine = learned.own_worst[key].members(b.covariates)
        both = [c_index(one[mine], time[mine], event[mine]) for one in (own, base)]
        of_own.append(both[0] - both[1])
        c.append(c_index(own, time, event) - c_index(base, time, event))
        both = [c_index(one[members], time[members], event[members]) for one in (own, base)]
        worst.append(both[0] - both[1])
    assert evaluated[name, "c_diff", ""].value == pytest.approx(np.mean(c), abs=1e-9)
    assert evaluated[name, "worst_diff", ""].value == pytest.approx(np.mean(worst), abs=1e-9)
    own_worst = evaluated[name, "worst_own_diff", ""].value
    assert own_worst == pytest.approx(np.mean(of_own), abs=1e-9)
    closings = []
    for attribute, codes in datasets.codes_of(b, learned.cuts).items():
        key = (name, attribute) if (name, attribute) in learned.models else (name, "")
        gaps = []
        for scores in (base, learned.models[key].scores(b)):
            counts = concordance.count(scores, time, event)
            second, first = (
                counts.points[codes == code].sum() / counts.pairs[codes == code].sum()
                for code in (1, 0)
            )
            gaps.append(100 * (second - first))
        closings.append(np.sign(learned.gaps[attribute]) * (gaps[0] - gaps[1]))
    assert evaluated[name, "closing", ""].value == pytest.approx(np.mean(closings), abs=1e-9)


def test_calibration_counts_events_up_to_the_horizon(patients, dealt, learned, evaluated):
    a, b = (patients.subset(rows) for rows in dealt)
    horizon = np.median(a.data.time[a.data.event])
    members = learned.worst.members(b.covariates)
    model = learned.models[PLAIN, ""]
    on_a, on_b = np.exp(model.scores(a)), np.exp(model.scores(b))
    expected = np.zeros(len(b))
    for k in np.flatnonzero(a.data.event & (a.data.time <= horizon)):
        jump = 1 / on_a[a.data.time >= a.data.time[k]].sum()
        expected += jump * on_b * (b.data.time >= a.data.time[k])
    observed = (b.data.event & (b.data.time <= horizon))[members].sum()
    literal = 100 * learned.signs["worst"] * np.log(observed / expected[members].sum())
    assert evaluated[PLAIN, "oe_worst", ""].value == pytest.approx(literal, abs=1e-9)


def test_half_of_the_events_doubles_the_weight_of_the_worst(patients, dealt):
    # below pi_0 the weights of the events have a squared coefficient of variation of s/alpha - 1
    a = patients.subset(dealt[0])
    found = FORMS[HALF].fit(scaled_features(a.data)[0], a, 0)
    weights = found.weights[a.data.event]
    assert found.weights[~a.data.event].max() == pytest.approx(0, abs=1e-12)
    assert weights.var() / weights.mean() ** 2 == pytest.approx(1, abs=1e-6)


def test_published_models_are_chosen_by_the_papers_rule(patients, dealt, learned):
    a = patients.subset(dealt[0])
    quarter = models.assign_folds(a.data.event, 4, 0) == 0
    inside, out = a.subset(np.flatnonzero(~quarter)), a.subset(np.flatnonzero(quarter))
    X = scaled_features(inside.data, out.data)[1]
    metrics = []
    for some in (models.PLAINS, models.ROBUSTS):
        for setting in some:
            alone = models.train(inside, "linear", [setting], 0)  # one by one, not a stack
            counts = concordance.count(np.round(alone.scores(X)[0], 9), out.risk)
            codes = datasets.codes_of(out, learned.cuts)["sex"]
            metrics.append((counts.index(), models.imparity_of(counts, codes)))
    c, imparity = np.array(metrics).T
    best = choose(c[3:], imparity[3:], c[:3].max())
    facts = learned.models[PUBLISHED["linear"], "sex"].facts
    assert (facts["learning_rate"], facts["alpha"]) == models.ROBUSTS[best]


def test_gentle_protects_half_of_the_patients_and_split_half_of_the_events(patients, dealt):
    a = patients.subset(dealt[0])
    X = scaled_features(a.data)[0]
    share = a.data.event.mean()
    first = models.assign_folds(a.data.event, 2, 7) == 0
    for name, alpha, halves_of_split in ((GENTLE, 0.5, None), (SPLIT, share / 2, first)):
        found = FORMS[name].fit(X, a, seed=7)
        literal = minimise(X, a.risk, alpha, first=halves_of_split, penalty=1e-6)
        np.testing.assert_array_equal(found.coef, literal.coef)
        assert found.gap < 1e-6
        assert FORMS[name].protected(a) == pytest.approx(alpha / share)


def test_a_matched_dose_reorders_the_patients(patients, dealt):
    a = patients.subset(dealt[0])
    X = scaled_features(a.data)[0]
    of_cox = X @ models.COX.fit(X, a, 0).coef
    ranks = {
        share: stats.spearmanr(X @ models.Form(share).fit(X, a, 0).coef, of_cox)[0]
        for share in (0.5, 0.25, 0.125)
    }
    matched = models.matched_dose(a, 0).share
    assert ranks[matched] <= models.REORDERED
    assert all(ranks[share] > models.REORDERED for share in ranks if share > matched)


def test_constant_scores_have_no_order():
    assert np.isnan(models.rank_correlation(np.zeros(4), np.arange(4.0)))


def test_a_ridge_does_not_depend_on_the_scale_of_weights(patients, dealt):
    a = patients.subset(dealt[0])
    X = scaled_features(a.data)[0]
    weights = models.balanced(a.data.event, (X[:, 0] > 0).astype(int))
    one, two = (models.ridge(X, a, factor * weights, 0)[0].coef for factor in (1, 3))
    np.testing.assert_allclose(one, two, atol=1e-8)


def test_weights_give_both_groups_events_the_same_total():
    event = np.array([True, True, True, True, False, True])
    codes = np.array([1, 0, 0, 0, 1, -1])
    weights = models.balanced(event, codes)
    assert weights.tolist() == pytest.approx([2, 2 / 3, 2 / 3, 2 / 3, 2, 1])


def test_permuted_labels_give_the_closing_of_these_labels(patients, dealt, learned):
    rows_b = dealt[1]
    b = patients.subset(rows_b)
    held = outcomes.scored(learned, b)
    draws = outcomes.permuted_closings(held, learned, patients, rows_b)
    order = np.random.default_rng(7).permutation(len(patients))[rows_b]
    for name in outcomes.CONTROLLED:
        closings = []
        for attribute, codes in datasets.codes_of(patients, learned.cuts).items():
            key = (name, attribute) if (name, attribute) in held else (name, "")
            base, own = (
                halves.gap_of(held[one], codes[order]).value for one in ((AGAINST[name], ""), key)
            )
            closings.append(np.sign(learned.gaps[attribute]) * (base - own))
        assert draws.loc[7, name] == pytest.approx(np.mean(closings), abs=1e-9)


def test_a_row_for_each_model_measure_and_attribute(patients):
    rows = many_data_sets.study(patients, splits=[0], forms=[*halves.STORED, GENTLE, SPLIT])
    known = rows[rows["draw"].isna() & rows["half"].isna()]
    assert not known.duplicated(["model", "measure", "attribute"]).any()
    assert (known["splits"] == 1).all()
    facts = rows[rows["half"].notna()]
    assert not facts.duplicated(["model", "measure", "attribute", "half"]).any()
    assert (facts[facts["measure"] == "constant"].groupby(["model", "attribute"]).size() == 2).all()
    assert set(AGAINST) <= set(known["model"])
    assert set(known.loc[known["model"] == ALONE, "measure"]) >= {"worst", "worst_diff"}
    assert (
        rows["draw"].notna().groupby(rows["model"]).sum()[list(outcomes.CONTROLLED)] == 1000
    ).all()
    contrasts = known[known["measure"].isin(["c_diff", "worst_diff", "closing"])]
    assert (contrasts["se"] >= 0).all()
