"""The data sets of SurvSet: what is left out, why, and how the rest is encoded."""

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from drocox.beyond import survset

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package

FOLDER = Path(importlib.util.find_spec("SurvSet").origin).parent / "_datagen" / "output"


@pytest.fixture(scope="module")
def flow():
    return survset.flow()


def test_the_table_has_every_file_of_the_package():
    assert survset.NAMES == sorted(path.stem for path in FOLDER.glob("*.csv"))
    assert len(survset.NAMES) == 76


def test_the_table_names_columns_that_exist():
    for name, facts in survset.TABLE.items():
        named = [facts[key] for key in survset.ATTRIBUTES if key in facts]
        assert {*named, *facts.get("drop", {})} <= set(survset._header(name)), name
        assert ("sex" in facts) == ("female" in facts), name


def test_the_rules_are_applied_in_order(flow):
    assert list(flow.index) == survset.NAMES
    assert set(flow["step"]) == set(survset.STEPS)
    leaving = flow.groupby("step").groups
    assert sorted(leaving["people"]) == ["UnempDur", "Unemployment", "divorce", "hdfail"]
    assert sorted(leaving["rows"]) == ["diabetes", "retinopathy"]
    assert list(leaving["study"]) == ["dataDIVAT2"]
    assert sorted(leaving["beside"]) == ["flchain", "support2"]


def test_those_included_keep_the_rules(flow):
    stays = flow[flow["step"].isin(["included", "beside"])]
    assert stays["study"].is_unique
    assert (stays["rows"] == stays["patients"]).all()
    assert stays["patients"].min() >= 200
    assert stays["events"].min() >= 80
    assert (stays["events"] >= 10 * stays["features"]).all()
    assert (stays["describing"] >= 1).all()
    assert stays["reason"].isin([survset.STEPS["included"], survset.STEPS["beside"]]).all()


def test_encoding_by_hand_of_the_lung_cancer_trial():
    table = pd.read_csv(FOLDER / "cancer.csv", dtype={"fac_ph_ecog": str})
    data = survset.load("cancer")
    numbers = ["wt_loss", "ph_karno", "pat_karno", "meal_cal", "age"]
    assert list(data.X.columns) == [*numbers, "ph_ecog=1", "ph_ecog=2", "sex=M"]
    for column in numbers:
        np.testing.assert_array_equal(data.X[column], table[f"num_{column}"])
    # one patient has level 3 and joins the most frequent, 1; one is unknown
    ecog = table["fac_ph_ecog"].replace({"3": "1", "missing": None})
    expected = np.where(ecog.isna(), np.nan, ecog == "1")
    np.testing.assert_array_equal(data.X["ph_ecog=1"], expected)
    np.testing.assert_array_equal(data.attributes["sex"], table["fac_sex"] == "F")
    np.testing.assert_array_equal(data.attributes["age"], table["num_age"])
    assert "race" not in data.attributes
    np.testing.assert_array_equal(data.time, table["time"])
    np.testing.assert_array_equal(data.event, table["event"] == 1)
    assert data.describing == [*numbers, "ph_ecog", "sex"]


def test_encoding_by_hand_of_the_drug_abuse_treatment():
    table = pd.read_csv(FOLDER / "uis.csv")
    data = survset.load("uis")
    known = table["fac_race"] != "missing"
    expected = np.where(known, table["fac_race"] == "white", np.nan)
    np.testing.assert_array_equal(data.attributes["race"], expected)
    np.testing.assert_array_equal(data.X["race=white"], expected)
    assert np.isnan(data.attributes["age"]).sum() == table["num_age"].isna().sum() == 5
    assert "sex" not in data.attributes
    levels = [column for column in data.X if column.startswith("heroic=")]
    assert levels == ["heroic=Heroin", "heroic=Heroin&Cocaine", "heroic=Neither"]


def test_small_levels_are_pooled_without_a_look_at_their_outcomes():
    """Those with fewer than ten events if all levels had the same rate."""
    table = pd.read_csv(FOLDER / "prostate.csv")
    patients = table["fac_pf"].value_counts()
    small = patients.index[patients * table["event"].mean() < 10]
    assert len(small) > 1
    pooled = survset.load("prostate").X["pf=other levels"]
    np.testing.assert_array_equal(pooled, table["fac_pf"].isin(small))


def test_either_event_of_the_lymphoma_counts():
    table = pd.read_csv(FOLDER / "follic.csv")
    data = survset.load("follic")
    assert set(table["event"]) == {0, 1, 2}
    np.testing.assert_array_equal(data.event, table["event"] > 0)


def test_most_patients_with_a_heart_attack_are_men():
    assert survset.load("TRACE").attributes["sex"].mean() < 0.5  # labels are swapped in the file


def test_columns_that_know_the_outcome_are_gone():
    assert not {"pctime", "pcdx"} & set(survset.load("mgus").covariates)
    assert not {"surv2m", "sps", "sfdm2"} & set(survset.load("support2").covariates)
    assert "chapter" not in survset.load("flchain").covariates


def test_times_of_zero_are_kept():
    assert (survset.load("Aids2").time == 0).sum() == 29


def test_groups_of_an_attribute_must_be_large_enough():
    data = survset.load("Aids2")
    assert data.attributes["sex"].mean() < 0.1
    assert not survset.eligible(data, "sex")
    assert survset.eligible(data, "age")
    assert not survset.eligible(data, "race")
    with pytest.raises(ValueError, match="attribute"):
        survset.eligible(data, "height")


def test_data_sets_that_cannot_be_loaded_raise_clear_errors(monkeypatch):
    with pytest.raises(ValueError, match="data set"):
        survset.load("cancers")
    with pytest.raises(ValueError, match="vary in time"):
        survset.load("heart")
    monkeypatch.setitem(survset.TABLE["cancer"], "sha256", "0")
    with pytest.raises(RuntimeError, match=r"differs from the file of SurvSet==0\.2\.6.*beyond"):
        survset.load("cancer")


def test_numbers_are_those_of_the_file_to_the_last_bit():
    with survset._path("follic").open(encoding="utf-8", newline="") as file:
        times = [float(row["time"]) for row in csv.DictReader(file)]
    np.testing.assert_array_equal(survset.load("follic").time, times)
