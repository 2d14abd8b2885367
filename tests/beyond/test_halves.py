"""The study on many data sets: against literal loops, without leaks, whatever the order of rows."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from drocox import concordance
from drocox.beyond import cohorts, controls, learning, many
from drocox.cox import risk_sets
from drocox.data import SurvivalData
from drocox.heldout import HeldOut
from drocox.heldout.intervals import jackknife
from drocox.solver import minimise

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package

BOTH = (learning.COX, learning.DRO)


@pytest.fixture(scope="module")
def patients():
    return controls.invented(260, 0.4, seed=3)


@pytest.fixture(scope="module")
def rows(patients):
    return many.study(patients, splits=[0, 1])


def scaled(train, out):
    """Features of both, by means and deviations of the first; nothing is missing."""
    mean, deviation = train.mean(), train.std(ddof=0)
    return ((train - mean) / deviation).to_numpy(), ((out - mean) / deviation).to_numpy()


def literal_half(patients, rows_a, rows_b, drop=None):
    """Both models of half A, by the solver; c-index and gap by sex on half B, pair by pair."""
    data = patients.data
    X, X_out = scaled(data.X.iloc[rows_a], data.X.iloc[rows_b])
    risk = risk_sets(data.time[rows_a], data.event[rows_a])
    keep = np.arange(len(rows_b)) != (len(rows_b) if drop is None else drop)
    time, event = data.time[rows_b][keep], data.event[rows_b][keep]
    women = patients.attributes["sex"][rows_b][keep] == 1
    out = {}
    for name, alpha in (("cox", 1.0), ("dro", 0.5)):
        coef = minimise(X, risk, alpha, penalty=1e-6).coef
        scores = (X_out @ coef)[keep]
        points, pairs = np.zeros(len(time)), np.zeros(len(time))
        right = comparable = 0.0
        for i in range(len(time)):
            for j in range(len(time)):
                if event[i] and time[i] < time[j]:
                    point = float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j])
                    right, comparable = right + point, comparable + 1
                    points[i], pairs[i] = points[i] + point, pairs[i] + 1
                    points[j], pairs[j] = points[j] + point, pairs[j] + 1
        fractions = [points[g].sum() / pairs[g].sum() for g in (women, ~women)]
        out[name] = 100 * np.array([right / comparable, fractions[0] - fractions[1]])
    return out


def test_metrics_equal_literal_loops():
    patients = controls.invented(120, 0.3, seed=5)
    sex_only = dataclasses.replace(patients, attributes={"sex": patients.attributes["sex"]})
    row = many.study(sex_only, BOTH, splits=[0]).iloc[-1]
    values, moves = [], []
    for rows_a, rows_b in cohorts.halves(patients.data.event, 0):
        sign = learning.learn(sex_only.subset(rows_a), (), 0).signs["sex"]
        full = literal_half(patients, rows_a, rows_b)

        def contrast(found, sign=sign):
            c, gap = found["dro"], found["cox"][1] - found["dro"][1]
            return np.array([c[0] - found["cox"][0], sign * gap])

        values.append(contrast(full))
        for i in range(0, len(rows_b)):
            without = contrast(literal_half(patients, rows_a, rows_b, drop=i))
            moves.append((without - values[-1]) / 2)
    assert row["c_diff"] == pytest.approx(np.mean(values, axis=0)[0], abs=1e-9)
    assert row["closing"] == pytest.approx(np.mean(values, axis=0)[1], abs=1e-9)
    errors = np.sqrt(np.diag(jackknife(np.array(moves))[0]))
    assert row["c_diff_se"] == pytest.approx(errors[0], rel=1e-6)
    assert row["closing_se"] == pytest.approx(errors[1], rel=1e-6)


def test_worst_groups_products_and_certificates_are_those_of_the_halves(patients):
    row = many.study(patients, BOTH, splits=[1]).iloc[-1]  # DRO-COX, by age
    halves, apart = [], False
    for rows_a, rows_b in cohorts.halves(patients.data.event, 1):
        a, b = patients.subset(rows_a), patients.subset(rows_b)
        learned = learning.learn(a, (), 1)
        apart |= learned.worst["cox"] != learned.worst["dro"]
        codes = cohorts.codes_of(b, learned.cuts)["age"]
        half = {"certificate": learned.models[learning.DRO].gap}
        for name, setting in (("product_cox", learning.COX), ("product", learning.DRO)):
            scores = scaled(a.data.X, b.data.X)[1] @ learned.models[setting].coef
            held = HeldOut(scores, b.data.time, b.data.event, np.zeros(len(b), int))
            half[name] = learned.gaps["age"] * learning.gap_of(held, codes).value
        for name, model in (("worst_own", "cox"), ("worst_dro", "dro")):  # of DRO-COX's scores
            members = learned.worst[model].members(b.covariates)
            outcomes = b.data.time[members], b.data.event[members]
            half[name] = 100 * concordance.count(scores[members], *outcomes).index()
        halves.append(half)
    assert apart  # else the two worst groups could be confused
    halves = pd.DataFrame(halves)
    assert row["certificate"] == halves.pop("certificate").max()
    for name, value in halves.mean().items():
        assert row[name] == pytest.approx(value, rel=1e-9)


def test_rows_have_the_registered_columns_and_certified_models(rows):
    first = ["method", "alpha", "rule", "penalty", "patients", "events", "features", "attribute"]
    then = ["c", "c_se", "c_diff", "c_diff_se", "gap", "closing", "closing_se", "guard"]
    then += ["guard_se", "worst_own", "worst_own_diff", "worst_own_diff_se", "ibs", "slope"]
    assert list(rows)[: len(first) + len(then)] == first + then
    assert len(rows) == len(learning.SETTINGS) * 2
    cox = rows[rows["method"] == "Cox"]
    for name in ("c_diff", "closing", "worst_own_diff", "closing_se", "c_diff_se"):
        assert (cox[name] == 0).all()
    assert rows["certificate"].max() < 1e-6
    assert not rows.drop(columns="moved").isna().any().any()
    tuned = rows[rows["method"] == "DRO-COX, tuned"]["alpha"]
    assert tuned.between(0.1, 0.5).all()


def test_joint_closing_and_guard_are_means_over_attributes(rows):
    both = rows.groupby("method", sort=False)[["closing", "guard"]].mean()
    joint = rows.groupby("method", sort=False)[["joint_closing", "joint_guard"]].mean()
    np.testing.assert_allclose(both, joint)
    # the joint error is that of the mean: between none and full correlation of the attributes
    for _, pair in rows[rows["method"] != "Cox"].groupby(["method", "alpha", "rule", "penalty"]):
        a, b = pair["closing_se"]
        assert abs(a - b) / 2 - 1e-9 <= pair["joint_closing_se"].iloc[0] <= (a + b) / 2 + 1e-9


def test_effects_and_variances_are_means_over_the_splits(patients):
    one = many.study(patients, BOTH, splits=[0])
    other = many.study(patients, BOTH, splits=[1])
    two = many.study(patients, BOTH, splits=[0, 1])
    for name in ("c_diff", "closing", "guard", "worst_own_diff", "worst_dro_diff"):
        values = (one[name] + other[name]) / 2
        variances = (one[f"{name}_se"] ** 2 + other[f"{name}_se"] ** 2) / 2
        np.testing.assert_allclose(two[name], values, atol=1e-12)
        np.testing.assert_allclose(two[f"{name}_se"] ** 2, variances, rtol=1e-9, atol=1e-15)


def test_the_order_of_rows_has_no_influence(patients):
    shuffled = patients.subset(np.random.default_rng(1).permutation(len(patients))).in_order()
    np.testing.assert_array_equal(shuffled.data.time, patients.data.time)
    again = many.study(shuffled, BOTH, splits=[0])
    pd.testing.assert_frame_equal(again, many.study(patients, BOTH, splits=[0]))


def test_outcomes_of_b_do_not_influence_what_is_learned_on_a(patients):
    rows_a, rows_b = next(cohorts.halves(patients.data.event, 0))
    data = patients.data
    time, event = data.time.copy(), data.event.copy()
    time[rows_b] = time[rows_b][::-1] * 3 + 1
    event[rows_b] = ~event[rows_b]
    X = data.X.copy()
    X.iloc[rows_b] = 7.0
    changed = cohorts.Patients(
        SurvivalData("changed", X, time, event),
        X,
        {name: np.where(np.isin(np.arange(len(data)), rows_b), 0.0, values)
         for name, values in patients.attributes.items()},
    )  # fmt: skip
    before = learning.learn(patients.subset(rows_a), learning.SETTINGS, 0)
    after = learning.learn(changed.subset(rows_a), learning.SETTINGS, 0)
    assert before.gaps == after.gaps and before.worst == after.worst and before.cuts == after.cuts
    assert before.tuned == after.tuned and before.c == after.c
    for setting in before.models:
        np.testing.assert_array_equal(before.models[setting].coef, after.models[setting].coef)


def test_halves_are_stratified_by_event(patients):
    event = patients.data.event
    for split in range(many.SPLITS):
        (a, b), (b_again, a_again) = cohorts.halves(event, split)
        assert sorted([*a, *b]) == list(range(len(event)))
        assert set(a) == set(a_again) and set(b) == set(b_again)
        assert abs(int(event[a].sum()) - int(event[b].sum())) <= 1
        assert abs(len(a) - len(b)) <= 1


def test_described_groups_are_large_enough_and_leave_out_missing_values():
    n = 200
    rng = np.random.default_rng(0)
    covariates = pd.DataFrame(
        {
            "stage": np.where(np.arange(n) < 10, "rare", np.where(np.arange(n) < 90, "b", "a")),
            "number": np.append(rng.normal(size=n - 20), np.full(20, np.nan)),
            "two": np.arange(n) % 4 == 0,
            "constant": np.zeros(n),
        }
    ).astype({"two": float})
    X = pd.DataFrame({"x": rng.normal(size=n)})
    data = SurvivalData("groups", X, 1 + rng.random(n), np.arange(n) % 5 != 1)
    groups = cohorts.described_groups(cohorts.Patients(data, covariates, {}))
    names = [(group.covariate, group.side) for group in groups]
    expected = [("stage", "="), ("stage", "="), ("number", ">"), ("number", "≤")]
    assert names == [*expected, ("two", ">"), ("two", "≤")]
    assert [group.value for group in groups[:2]] == ["a", "b"]
    inside = [group.members(covariates) for group in groups]
    assert inside[2].sum() + inside[3].sum() == n - 20  # a missing number is in neither
    assert inside[4].sum() == 50
    few = cohorts.Patients(dataclasses.replace(data, event=np.arange(n) % 5 == 1), covariates, {})
    assert [group.covariate for group in cohorts.described_groups(few)] == ["two"]


def test_the_worst_group_has_the_smallest_c_index(patients):
    rows_a, _ = next(cohorts.halves(patients.data.event, 0))
    half = patients.subset(rows_a)
    learned = learning.learn(half, (), 0)
    for name, held in zip(("cox", "dro"), learning.cross_fitted(half, 0).values(), strict=True):
        own = {}
        for group in cohorts.described_groups(half):
            own[group] = held.c_index(group.members(half.covariates)).value
        assert own[learned.worst[name]] == min(own.values())


def test_data_without_attributes_and_groups_have_a_c_index_only():
    patients = controls.invented(120, 2.0, seed=1)  # a half has fewer than 30 events
    bare = dataclasses.replace(patients, attributes={})
    rows = many.study(bare, (*BOTH, learning.TUNED), splits=[0])
    assert rows["attribute"].tolist() == ["", ""]
    assert rows[["closing", "joint_closing", "worst_own", "product"]].isna().all().all()
    assert rows["c_se"].notna().all()


def test_permuted_gaps_are_those_of_the_pair_counts():
    rng = np.random.default_rng(0)
    n = 150
    scores = np.round(rng.normal(size=n), 1)
    time = np.round(rng.exponential(size=n), 1) + 0.1
    event = rng.random(n) < 0.6
    points, pairs = controls.pair_points(scores, time, event)
    counts = concordance.count(scores, time, event)
    np.testing.assert_array_equal(points.sum(axis=1), counts.points)
    np.testing.assert_array_equal(pairs.sum(axis=1), counts.pairs)
    codes = rng.integers(-1, 2, size=(n, 4))
    gaps, moves = controls.permuted_gaps(points, pairs, codes)
    held = HeldOut(scores, time, event, np.zeros(n, int))
    for k in range(4):
        gap = learning.gap_of(held, codes[:, k])
        assert gaps[k] == pytest.approx(gap.value)
        np.testing.assert_allclose(moves[:, k], gap.without - gap.value, atol=1e-9)


def test_unpermuted_labels_give_the_results_of_the_study(patients, rows):
    order = np.arange(len(patients))
    labels = controls.permuted(patients, order[:, None], splits=[0, 1]).iloc[0]
    study = rows[(rows["method"] == "DRO-COX") & (rows["rule"] == "sharp")].iloc[0]
    assert labels["joint_closing"] == pytest.approx(study["joint_closing"])
    assert labels["joint_closing_se"] == pytest.approx(study["joint_closing_se"])


def test_permuted_labels_are_rarely_significant(patients):
    rng = np.random.default_rng(0)
    orders = np.column_stack([rng.permutation(len(patients)) for _ in range(200)])
    rows = controls.permuted(patients, orders)
    wrong = (rows["joint_closing"].abs() > 1.96 * rows["joint_closing_se"]).mean()
    assert wrong < 0.1


def test_every_registered_data_set_has_a_job():
    names = [job["name"] for job in many.jobs()]
    assert set(names) == set(many.REGISTERED["included"]) | set(many.REGISTERED["beside"])
    kinds = pd.DataFrame(controls.jobs())
    assert set(kinds.loc[kinds["kind"] == "coverage", "name"]) == set(controls.DESIGNS)
    assert not set(kinds["name"]) & set(many.REGISTERED["beside"])
