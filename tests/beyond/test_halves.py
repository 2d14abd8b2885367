"""Data sets, halves and outcomes of the study on many data sets: against literal loops."""

import dataclasses
from functools import partial

import invented_patients
import numpy as np
import pandas as pd
import pytest

from drocox import concordance, training
from drocox.beyond import datasets, fresh, halves, many_data_sets, models, outcomes, run
from drocox.data import SurvivalData
from drocox.evaluation import scaled_features
from drocox.heldout.intervals import jackknife

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package


@pytest.fixture(scope="module")
def patients():
    return invented_patients.draw(260, 0.4, seed=3)


def test_halves_are_stratified_by_event(patients):
    event = patients.data.event
    for split in range(halves.SPLITS):
        (a, b), (b_again, a_again) = halves.deal(event, split)
        assert sorted([*a, *b]) == list(range(len(event)))
        assert set(a) == set(a_again) and set(b) == set(b_again)
        assert abs(int(event[a].sum()) - int(event[b].sum())) <= 1
        assert abs(len(a) - len(b)) <= 1


def test_the_order_of_rows_has_no_influence(patients):
    shuffled = patients.subset(np.random.default_rng(1).permutation(len(patients))).in_order()
    np.testing.assert_array_equal(shuffled.data.time, patients.data.time)
    np.testing.assert_array_equal(shuffled.data.X, patients.data.X)
    for name, values in patients.attributes.items():
        np.testing.assert_array_equal(shuffled.attributes[name], values)


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
    groups = datasets.described_groups(datasets.Patients(data, covariates, {}))
    names = [(group.covariate, group.side) for group in groups]
    expected = [("stage", "="), ("stage", "="), ("number", ">"), ("number", "≤")]
    assert names == [*expected, ("two", ">"), ("two", "≤")]
    assert [group.value for group in groups[:2]] == ["a", "b"]
    inside = [group.members(covariates) for group in groups]
    assert inside[2].sum() + inside[3].sum() == n - 20  # a missing number is in neither
    assert inside[4].sum() == 50
    few = datasets.Patients(dataclasses.replace(data, event=np.arange(n) % 5 == 1), covariates, {})
    assert [group.covariate for group in datasets.described_groups(few)] == ["two"]


def test_the_worst_group_has_the_smallest_c_index(patients):
    half = patients.subset(next(halves.deal(patients.data.event, 0))[0])
    decided = halves.decide(half, 0)
    held = halves.cross_fitted(half, models.COX, 0, decided.horizon).held
    own = {group: held.c_index(group.members(half.covariates)).value for group in decided.groups}
    assert decided.groups == datasets.described_groups(half)
    assert own[decided.worst] == min(own.values())


def c_and_gap(scores, time, event, women):
    """The c-index and the gap by sex in points."""
    counts = concordance.count(scores, time, event)
    men_s, women_s = counts.fractions(women.astype(int))
    return 100 * np.array([counts.index(), women_s - men_s])


def test_errors_leave_out_each_patient_in_turn():
    patients = invented_patients.draw(100, 0.3, seed=5)
    tested, both, values, moves = [], [], [], []
    for rows_a, rows_b in halves.deal(patients.data.event, 0):
        a, b = patients.subset(rows_a), patients.subset(rows_b)
        X, X_b = scaled_features(a.data, b.data)
        coef = models.FORMS[models.HALF].fit(X, a, 0).coef
        scores, women = models.rounded(X_b @ coef), b.attributes["sex"] == 1
        held = b.held_out(scores)
        c = outcomes.combined((100, held.c_index(np.full(len(b), True))))
        both.append({"c": c, "gap": halves.gap_of(held, women.astype(int))})
        tested.append(rows_b)
        values.append(c_and_gap(scores, b.data.time, b.data.event, women))
        for i in range(len(b)):
            rest = np.arange(len(b)) != i
            without = c_and_gap(scores[rest], b.data.time[rest], b.data.event[rest], women[rest])
            moves.append((without - values[-1]) / 2)
    found = outcomes.mean_of_halves(tested, both)
    errors = np.sqrt(np.diag(jackknife(np.array(moves))[0]))
    for k, name in enumerate(("c", "gap")):
        assert found[name].value == pytest.approx(np.mean(values, axis=0)[k], abs=1e-9)
        assert found[name].error == pytest.approx(errors[k], rel=1e-6)


def test_data_without_attributes_and_groups_have_a_c_index_only(monkeypatch):
    monkeypatch.setattr(training, "fit_stack", partial(training.fit_stack, n_iter=20))
    patients = invented_patients.draw(120, 2.0, seed=1)  # a half has fewer than 30 events
    patients = dataclasses.replace(patients, attributes={})
    rows = many_data_sets.study(patients, 0, networks=False, forms=[models.QUARTER])
    assert not set(rows["model"]) & {models.HALF, models.DOSE, models.GENTLE, models.HALF_SPLIT}
    assert models.QUARTER in set(rows.loc[rows["against"] == "Cox", "model"])
    known = rows[rows["se"].notna()]
    assert set(known["measure"]) == {"c", "c_diff", "optimism", "brier", "brier_slope"}
    assert "imparity" not in set(rows["choice"])
    assert rows["draw"].isna().all()


def test_every_data_set_has_a_job_for_each_split():
    jobs = many_data_sets.jobs()
    assert len(jobs) == 31 * 5
    assert {job["name"] for job in jobs} == set(datasets.ALL)
    assert set(fresh.NAMES) < set(datasets.ALL)
    assert len(datasets.TESTED) == 16 and len(many_data_sets.NETWORKS) == 20
    assert [job.job for job in run.jobs_of("many_data_sets")][:2] == ["support2-0", "support2-1"]


def test_fresh_data_are_loaded_like_the_others():
    patients = datasets.load("METABRIC")
    assert len(patients) == 1981 and list(patients.attributes) == ["age"]
    assert (np.diff(patients.data.time) >= 0).all()
    with pytest.raises(ValueError, match="data set"):
        datasets.load("metabric")
