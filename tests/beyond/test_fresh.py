"""The data sets that no earlier study had used: sizes, encoding by hand, no column too many."""

import numpy as np
import pandas as pd
import pytest

from drocox.beyond import fresh, survset

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package

SIZES = {"METABRIC": (1981, 1144, 38), "ACTG175": (2139, 521, 19)}  # patients, events, features


def test_every_column_has_one_use_that_the_table_states():
    for name, facts in fresh.TABLE.items():
        outcome = [facts["id"], facts["time"], facts["event"]]
        assert {*outcome, *facts["factors"], *facts["drop"]} <= set(fresh._table(name)), name
        assert not {*outcome, *facts["factors"]} & set(facts["drop"]), name
        attributes = {facts[a] for a in survset.ATTRIBUTES if a in facts}
        assert attributes <= set(fresh.load(name).covariates), name


def test_they_keep_the_rules_of_the_other_data_sets():
    studies = {facts["study"] for facts in survset.TABLE.values()}
    for name, (patients, events, features) in SIZES.items():
        data = fresh.load(name)
        assert (len(data), data.event.sum(), data.X.shape[1]) == (patients, events, features)
        assert events / 2 >= survset.EVENTS_PER_FEATURE * features
        assert events >= 300
        assert data.describing
        assert fresh.TABLE[name]["study"] not in studies
        assert np.isfinite(data.time).all()
        assert data.time.min() >= 0


def test_encoding_by_hand_of_the_breast_cancers():
    table = pd.read_csv(fresh._path("METABRIC"), sep="\t", skiprows=4, dtype={"INTCLUST": str})
    table = table[table["OS_STATUS"].notna()]
    data = fresh.load("METABRIC")
    np.testing.assert_array_equal(data.time, table["OS_MONTHS"])
    np.testing.assert_array_equal(data.event, table["OS_STATUS"].str.startswith("1"))
    np.testing.assert_array_equal(data.attributes["age"], table["AGE_AT_DIAGNOSIS"])
    numbers = ["LYMPH_NODES_EXAMINED_POSITIVE", "NPI", "AGE_AT_DIAGNOSIS"]
    assert list(data.X.columns[:3]) == numbers
    known = table["CELLULARITY"].notna()
    expected = np.where(known, table["CELLULARITY"] == "Low", np.nan)
    np.testing.assert_array_equal(data.X["CELLULARITY=Low"], expected)
    assert sum(column.startswith("INTCLUST=") for column in data.X) == 10
    assert "HER2_SNP6=UNDEF" not in data.X  # five patients, who join the most frequent
    assert "sex" not in data.attributes  # women only: closing is that of age alone
    assert "race" not in data.attributes
    gone = {"VITAL_STATUS", "RFS_STATUS", "RFS_MONTHS", "COHORT", "SEX"}
    assert not gone & set(data.covariates)


def test_encoding_by_hand_of_the_hiv_trial():
    table = pd.read_csv(fresh._path("ACTG175"))
    data = fresh.load("ACTG175")
    np.testing.assert_array_equal(data.event, table["cens"] == 1)
    np.testing.assert_array_equal(data.time, table["days"])
    np.testing.assert_array_equal(data.attributes["sex"], table["gender"] == 0)
    np.testing.assert_array_equal(data.attributes["race"], table["race"] == 0)
    np.testing.assert_array_equal(data.X["gender=1"], table["gender"])
    np.testing.assert_array_equal(data.X["strat=2"], table["strat"] == 2)
    numbers = ["age", "wtkg", "karnof", "preanti", "cd40", "cd80"]
    assert list(data.X.columns[:6]) == numbers
    after = {"cd420", "cd496", "cd820", "r", "offtrt"}
    assert not after & set(data.covariates)
    assert not {"zprior", "pidnum", "Unnamed: 0", "treat", "str2"} & set(data.covariates)


def test_files_that_differ_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="data set"):
        fresh.load("metabric")
    monkeypatch.setitem(fresh.TABLE["ACTG175"], "sha256", "0")
    with pytest.raises(RuntimeError, match=r"differs from the file of lifelines==0\.30\.3.*beyond"):
        fresh.load("ACTG175")
