"""The preregistered analysis: from rows with known effects to claims, and back."""

import numpy as np
import pytest
import synthetic_many

import drocox
from drocox.beyond import cohorts, control_evidence, evidence, learning, many
from drocox.beyond.pooled import pool

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package


@pytest.fixture(scope="module")
def runs():
    return synthetic_many.study()


def test_every_data_set_contributes_one_effect(runs):
    included = many.REGISTERED["included"]
    c = evidence.effects(runs, "c_diff")
    assert list(c.index) == sorted(included)
    closing = evidence.effects(runs, "joint_closing")
    primary = set(cohorts.PRIMARY)
    labelled = [name for name in included if primary & set(included[name]["attributes"])]
    assert list(closing.index) == sorted(labelled)
    beside = evidence.effects(runs, "c_diff", which="beside")
    assert sorted(beside.index) == sorted(many.REGISTERED["beside"])
    assert (evidence.effects(runs, "c_diff", learning.COX)["se"] == 0.01).all()


def test_uncertified_models_are_left_out(runs):
    rows = runs.copy()
    bad = (rows["dataset"] == "zinc") & (rows["method"] == "DRO-COX")
    rows.loc[bad, "certificate"] = 1e-3
    assert "zinc" not in evidence.effects(rows, "c_diff").index
    assert "zinc" in evidence.effects(rows, "c_diff", learning.COX).index


def test_the_primary_table_pools_effects_and_adjusts_p_values(runs):
    table = evidence.primary_table(runs)
    assert list(table.index) == [*evidence.PRIMARIES, *evidence.SECONDS]
    rows = evidence.effects(runs, "worst_own_diff")
    expected = pool(rows["effect"], rows["se"])
    assert table.loc["worst", "mean"] == expected.mean
    assert (table.loc["worst", "low"], table.loc["worst", "high"]) == expected.interval()
    p = table.loc[list(evidence.PRIMARIES), "p"].to_numpy(float)
    assert table["p_holm"].iloc[0] >= p[0]
    assert table["p_holm"].iloc[3:].isna().all()


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        ({"c_diff": 0.0, "joint_closing": 0.0, "worst_own_diff": 0.0}, (False, False, False, True)),
        ({"c_diff": -2.0, "joint_closing": 2.0, "worst_own_diff": 2.0}, (True, True, True, False)),
        (
            {"c_diff": 0.0, "joint_closing": -2.0, "worst_own_diff": -2.0},
            (False, False, False, True),
        ),
    ],
)
def test_claims_follow_from_planted_effects(effects, expected):
    found = evidence.claims(synthetic_many.study(effects, tau=0.0, seed=1))
    assert (found.c_differs, found.closes, found.worst_gains, found.harmless) == expected


def test_a_gap_that_closes_without_its_guard_has_only_moved():
    rows = synthetic_many.study({"c_diff": 0.0, "joint_closing": 2.0, "worst_own_diff": 2.0})
    rows["joint_guard"] -= 2.0
    rows["worst_dro_diff"] -= 2.0
    found = evidence.claims(rows)
    assert found.moves and not found.closes and not found.worst_gains


def test_tables_have_a_row_for_every_model(runs):
    models = evidence.all_models(runs)
    assert len(models) == 3 * (len(learning.SETTINGS) - 1)
    first = evidence.primary_table(runs)
    assert models.loc[(evidence.label(learning.DRO), "c"), "mean"] == first.loc["c", "mean"]
    accuracy = evidence.accuracy_table(runs)
    assert len(accuracy) == len(learning.SETTINGS)
    assert accuracy.loc["Cox", "ibs_diff"] == 0
    assert len(set(map(evidence.label, learning.SETTINGS))) == len(learning.SETTINGS)
    attributes = evidence.by_attribute(runs)
    assert set(attributes.index.get_level_values(0)) == {"sex", "age"}  # too few know race


def test_the_share_of_the_gap_that_closes_is_the_planted_one(runs):
    assert evidence.share_of_gap(runs).value == pytest.approx(0.2)


def test_a_moderator_that_drives_the_effect_is_found(runs):
    table = evidence.moderator_table(runs)
    assert len(table) == 3 * len(evidence.MODERATORS)
    rows = runs.copy()
    rows["c_diff"] = 0.05 * (rows["inside_c"] - 70) + 0 * rows["c_diff"]
    strong = evidence.moderator_table(rows).loc[("c-index of Cox", "c")]
    assert strong["low"] > 0
    kept = evidence.effects(rows, "c_diff").index
    spread = rows.drop_duplicates("dataset").set_index("dataset")["inside_c"][kept].std(ddof=1)
    assert strong["slope"] == pytest.approx(0.05 * spread)


def test_the_power_table_finds_planted_effects_and_no_others():
    runs = synthetic_many.study({"c_diff": 0.0, "joint_closing": 0.0, "worst_own_diff": 0.0})
    power = control_evidence.power_table(runs, synthetic_many.controls())
    assert list(power.columns) == list(control_evidence.PLANTED)
    assert (power[0.0] < 0.1).all()
    assert (power[2.0] == 1).all()
    rows = evidence.effects(runs, "c_diff")
    draws = control_evidence.swapped_draws(runs, "c_diff", draws=20)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(20, len(rows)))
    again = [pool(sign * rows["effect"] + 0.5, rows["se"]).p < 0.05 for sign in signs]
    assert control_evidence.rejections(draws, 0.5) == np.mean(again)


def test_the_coverage_table_of_right_errors_is_near_95_percent():
    table = control_evidence.coverage_table(synthetic_many.controls(draws=2000))
    assert table["covered"].between(0.93, 0.97).all()
    assert table["ratio"].between(0.9, 1.1).all()


def test_equal_weights_give_the_plain_mean_and_its_t_interval(runs):
    effect = evidence.effects(runs, "c_diff")["effect"]
    found = evidence.equal_weights(runs, "c_diff")
    assert found.mean == pytest.approx(np.mean(effect))
    error = np.std(effect, ddof=1) / np.sqrt(len(effect))
    assert (found.high - found.low) / 2 / error == pytest.approx(2.056, abs=1e-3)  # t, 26 df


def test_the_stored_study_is_whole():
    store = drocox.load_runs("beyond")
    runs = store[store["study"] == "many"]
    registered = many.REGISTERED["included"] | many.REGISTERED["beside"]
    assert set(runs["dataset"]) == set(registered)
    for name, rows in runs.groupby("dataset"):
        facts = registered[name]
        assert (rows["patients"] == facts["patients"]).all()
        assert set(rows["attribute"]) == set(facts["attributes"] or [""])
        models = rows.groupby("attribute")["method"].count()
        assert (models >= len(learning.SETTINGS) - 1).all()
    assert (runs["certificate"] <= evidence.LARGEST_CERTIFICATE).all()
    controls = store[store["study"] == "controls"]
    draws = controls[controls["kind"] == "permuted"].groupby("dataset")["draw"].nunique()
    assert (draws == 200).all() and len(draws) == 25
    designs = controls[controls["kind"] == "coverage"].groupby("dataset")["draw"].nunique()
    assert designs.to_dict() == {"large": 200, "small": 200}
