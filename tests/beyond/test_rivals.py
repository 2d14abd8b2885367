"""Rivals of DRO-COX: fitted against literal objectives, judged against literal loops."""

from dataclasses import replace
from itertools import permutations

import literal
import numpy as np
import pandas as pd
import pytest
from cohort import patients
from scipy import optimize

from drocox import dual_constant
from drocox.accuracy import concordance_index
from drocox.beyond import outcomes, rival_methods, rivals
from drocox.beyond.free_baseline import free_baseline
from drocox.beyond.weighted_gap import weighted_gap
from drocox.data import SurvivalData
from drocox.heldout import HeldOut, default_horizon
from drocox.solver import minimise

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package


def part_of(X, time, event, codes):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return rival_methods.Part(SurvivalData("few", frame, time, event, {"g": codes}), X, seed=0)


def test_ridge_cox_minimises_what_it_says():
    X, time, event = patients()

    def ridge(theta):
        return literal.cox_losses(X @ theta, time, event).sum() / event.sum() + 0.15 * theta @ theta

    part = part_of(X, time, event, np.arange(40) % 2)
    best = optimize.minimize(ridge, np.zeros(2), method="BFGS").x
    np.testing.assert_allclose(rival_methods.fit(part, "ridge Cox", 0.3, "g"), best, atol=1e-4)


def test_a_free_baseline_is_certified_and_no_other_solver_finds_less():
    X, time, event = patients(n=25, seed=4)
    coef, risk, below = free_baseline(X, time, event, 0.6)
    assert -1e-9 < risk - below < 1e-6
    times = np.unique(time[event])
    c = dual_constant(0.6, rule="sharp")

    def full(point):
        """The full losses, patient by patient."""
        f, hazards = X @ point[:2], np.exp(point[2:])
        losses = np.exp(f) * np.array([hazards[times <= t].sum() for t in time])
        for i in np.flatnonzero(event):
            losses[i] -= f[i] + np.log(hazards[times == time[i]].item())
        return losses

    def printed(point):
        above = np.maximum(full(point[:-1]) - point[-1], 0)
        return c * np.sqrt(np.mean(above**2)) + point[-1]

    start = np.concatenate([coef, np.full(len(times), -2.0), [0.0]])
    best = optimize.minimize(printed, start, method="BFGS", options={"maxiter": 2000})
    assert below - 1e-9 <= best.fun < risk + 1e-3


def test_every_patient_is_tested_once_a_repeat_and_never_trained_on():
    folds = rival_methods.prepared_folds("seer", False)[0]
    tested = []
    for fold in folds:
        train, test = fold.train, fold.test
        assert len(train.data) + len(fold.rows) == 4024 and len(test.data) == len(fold.rows)
        fit, validate = fold.inner
        assert len(validate.data) == pytest.approx(0.25 * len(train.data), abs=4)
        assert len(fit.data) + len(validate.data) == len(train.data)
        assert not set(train.data.X.index) & set(test.data.X.index)
        assert not set(fit.data.X.index) & set(validate.data.X.index)
        np.testing.assert_allclose(train.X.std(axis=0), 1)  # scaled by the training part
        tested.extend(fold.rows)
    assert sorted(tested) == list(range(4024))
    for attribute in ("age", "race"):  # evenly by the groups of all attributes
        shares = [fold.test.data.groups[attribute].mean() for fold in folds]
        assert np.ptp(shares) < 0.005


def test_a_shrunken_cox_model_has_the_ranks_of_cox_and_the_spread_of_dro_cox():
    fold = rival_methods.prepared_folds("seer", False)[0][0]
    scores = {}
    for name in ("Cox", "shrunken Cox", "DRO-COX"):
        scores[name] = fold.train.X @ rival_methods.fit_tuned(fold, name, "race")[0]
    assert np.corrcoef(scores["Cox"], scores["shrunken Cox"])[0, 1] == pytest.approx(1)
    assert scores["shrunken Cox"].std() == pytest.approx(scores["DRO-COX"].std())


def test_group_weights_weigh_events_of_the_groups():
    X, time, event = patients()
    codes = np.arange(40) % 2

    def weighted(theta):
        losses = literal.cox_losses(X @ theta, time, event)
        return sum(w * losses[event & (codes == g)].mean() for g, w in ((0, 0.9), (1, 0.1)))

    best = optimize.minimize(weighted, np.zeros(2), method="BFGS").x
    part = part_of(X, time, event, codes)
    np.testing.assert_allclose(rival_methods.fit(part, "group weights", 0.1, "g"), best, atol=1e-4)


def test_interactions_give_the_second_group_effects_of_its_own():
    X, time, event = patients(n=200)
    codes = np.arange(200) % 2
    part = part_of(X, time, event, codes)
    wide = part.features(rival_methods.INTERACTIONS, "g")
    np.testing.assert_array_equal(wide[:, 2:4], X * codes[:, None])
    np.testing.assert_array_equal(wide[:, 4], codes)
    assert part.features("Cox", "g") is part.X

    def penalised(theta):
        mean = literal.cox_losses(wide @ theta, time, event).mean()
        return mean + rival_methods.SLIGHT / 2 * theta @ theta

    best = optimize.minimize(penalised, np.zeros(5), method="BFGS").x
    np.testing.assert_allclose(
        rival_methods.fit(part, rival_methods.INTERACTIONS, 1.0, "g"), best, atol=1e-3
    )


def test_cvar_beyond_the_share_of_events_is_fitted_as_cox():
    X, time, event = patients()
    part = part_of(X, time, event, np.arange(40) % 2)
    cox = rival_methods.fit(part, "Cox", 1.0, "g")
    beyond = rival_methods.fit(part, "CVaR", event.mean() + 0.01, "g")
    np.testing.assert_array_equal(beyond, cox)
    solved = minimise(X, part.risk, event.mean() + 0.01, rule="cvar").coef
    np.testing.assert_allclose(beyond, solved, atol=1e-6)
    assert np.abs(rival_methods.fit(part, "CVaR", 0.5 * event.mean(), "g") - cox).max() > 1e-3


def test_attributes_share_only_fits_that_do_not_depend_on_them():
    X, time, event = patients()
    part = part_of(X, time, event, np.arange(40) % 2)
    part.data.groups["h"] = (np.arange(40) < 20).astype(int)
    for method in ("DRO-COX", rival_methods.INTERACTIONS):
        rival_methods.fit(part, method, 0.5, "g")
        rival_methods.fit(part, method, 0.5, "h")
    told = [key for key in part.fits if key[2] is not None]
    assert len(part.fits) == 3 and {key[2] for key in told} == {"g", "h"}


def test_cox_is_stopped_where_its_validation_c_index_is_nearest_to_that_of_dro_cox():
    inner = rival_methods.prepared_folds("seer", False)[0][0].inner
    train, val = inner

    def c_index(method, setting):
        scores = val.X @ rival_methods.fit(train, method, setting, "race")
        return concordance_index(scores, val.data.time, val.data.event)

    wanted = c_index("DRO-COX", rival_methods.tune(inner, "DRO-COX", "race"))
    apart = [
        abs(c_index(rival_methods.STOPPED, steps) - wanted) for steps in rival_methods.FINE_STEPS
    ]
    steps = rival_methods.tune(inner, rival_methods.STOPPED, "race")
    assert apart[rival_methods.FINE_STEPS.index(steps)] == min(apart)


def test_age_in_years_takes_the_place_of_a_cut():
    plain = rival_methods.prepared_folds("support", False)[0][0]
    years = rival_methods.prepared_folds("support", True)[0][0]
    np.testing.assert_array_equal(plain.rows, years.rows)
    assert set(plain.train.data.X["age>65"]) == {0.0, 1.0}
    assert ((years.train.data.X["age>65"] > 65) == plain.train.data.X["age>65"]).all()


# Comparing rivals.


def scored_patients(n=120, seed=0):
    X, time, event = patients(n=n, d=1, seed=seed)
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, 2, n)
    scores = np.round(X[:, 0] - 0.1 * time, 1)  # some are tied
    return HeldOut(scores, time, event, fold, rng.random(n)), rng.integers(0, 2, n)


def without(held_out, codes, k):
    rows = np.arange(len(codes)) != k
    return held_out.subset(rows), codes[rows]


def literal_weighted_gap(held_out, codes, at=None):
    """Pair by pair; ``at``: whose censoring curves and horizon are taken."""
    whole, of_whole = at or (held_out, codes)
    horizon = default_horizon(whole.time, whole.event)
    points, pairs = np.zeros((2, 2))
    for i, j in permutations(range(len(codes)), 2):
        t, s = held_out.time[i], held_out.time[j]
        counts = held_out.event[i] and t < horizon and held_out.fold[i] == held_out.fold[j]
        if counts and (s > t or (s == t and not held_out.event[j])):
            weight = 1.0
            for g in (codes[i], codes[j]):
                own = of_whole == g
                weight /= literal.censoring_survival(whole.time[own], whole.event[own], t)
            apart = held_out.scores[i] - held_out.scores[j]
            for g in (codes[i], codes[j]):
                points[g] += weight * (np.sign(apart) + 1) / 2
                pairs[g] += weight
    fractions = points / pairs
    return fractions[1] - fractions[0]


def test_the_weighted_gap_and_its_jackknife_equal_a_loop_over_pairs():
    held_out, codes = scored_patients(n=60)
    found = weighted_gap(held_out, codes)
    assert found.value == pytest.approx(literal_weighted_gap(held_out, codes))
    for k in (0, 7, 31):
        left = literal_weighted_gap(*without(held_out, codes, k), at=(held_out, codes))
        assert found.without[k] == pytest.approx(left)


def test_metrics_of_repeats_are_averaged_and_compared_on_the_same_patients():
    held_out, codes = scored_patients()
    other, _ = scored_patients(seed=1)
    other = replace(held_out, scores=other.scores)
    worst = np.arange(120) < 50
    ours = outcomes.mean([rivals.estimates_of(held_out, codes, worst)] * 2)
    theirs = rivals.estimates_of(other, codes, worst)
    row = rivals.contrasts(ours, theirs)
    ci = 100 * (held_out.concordance(codes == 1).value - held_out.concordance(codes == 0).value)
    assert row["ci"] == pytest.approx(ci) == pytest.approx(row["cf_1"] - row["cf_0"])
    assert row["ci_sum"] == pytest.approx(row["ci"] + theirs["ci"].value)
    assert row["own_0"] == pytest.approx(100 * held_out.subset(codes == 0).c_index(
        np.full((codes == 0).sum(), True)).value)  # fmt: skip
    assert row["oe_1"] == pytest.approx(
        held_out.event[codes == 1].sum() / held_out.expected[codes == 1].sum()
    )
    # the jackknife, by leaving out one patient after another
    values = []
    for k in range(120):
        left, some = without(held_out, codes, k)
        rest, _ = without(other, codes, k)
        gaps = [one.concordance(some == 1).value - one.concordance(some == 0).value
                for one in (left, rest)]  # fmt: skip
        values.append(100 * (gaps[0] + gaps[1]))
    error = np.sqrt(119 * np.var(values))
    assert row["ci_sum_se"] == pytest.approx(error, rel=1e-6)
    same = rivals.contrasts(ours, ours)
    assert same["c_diff"] == 0 and same["c_diff_se"] == 0


def test_a_rival_has_a_row_for_each_attribute():
    rows = rivals.rows("seer", "DRO-COX, sharp 0.5")
    assert list(rows["attribute"]) == ["age", "race"] and (rows["against"] == "Cox").all()
    assert rows["c"].nunique() == 1  # one model, whatever the attribute
    plain = rivals.rows("seer", "Cox")
    np.testing.assert_allclose(rows["ci"] - plain["ci"], rows["ci_diff"])
    np.testing.assert_allclose(rows["own_1"] - plain["own_1"], rows["own_1_diff"])
