"""The three data sets: rows, order, coding and origin."""

import numpy as np
import pytest

from drocox.paper import datasets
from drocox.paper.datasets import dataset_summary, load_dataset

NAMES = ["flc", "support", "seer"]


@pytest.fixture(scope="module")
def loaded():
    return {name: load_dataset(name) for name in NAMES}


def test_the_summary_has_events_missing_values_group_sizes_and_origin():
    table = dataset_summary()
    assert list(table.index) == NAMES
    assert table["events"].tolist() == [2169, 6201, 616]
    assert table["missing"].tolist() == [1350, 284, 0]
    assert table.loc["seer", "group_sizes"] == (
        "age <= 65: 3,567 / age > 65: 457; non-white: 611 / white: 3,413"
    )
    for column in ("package", "file", "sha256", "licence", "citation", "doi", "note"):
        assert table[column].str.len().min() > 0


@pytest.mark.parametrize(
    "name, digest",
    [
        # computed from the original files with the csv module alone (FLC: from a second package's
        # copy): names, then features, time, event, groups of each patient as little-endian doubles
        ("flc", "fbd65539c2c7f136a994d5de63504c4dd8aa98dac1ddb8d9a4c706033602c6cb"),
        ("support", "9e1b3a8ee1ac236b1301f60c23a345e9853811ca66f56dae9573010bc52ad5ed"),
        ("seer", "741aa53cf45cc54a7965064a509eb1f8930f58d3e4edb7b2ace0505fec9c6723"),
    ],
)
def test_every_value_and_the_row_order_are_the_originals(loaded, name, digest):
    d = loaded[name]
    assert d.sha256 == digest
    assert d.subset(np.arange(len(d))[::-1]).sha256 != digest


@pytest.mark.parametrize("name", NAMES)
def test_arrays_have_the_promised_types_and_names(loaded, name):
    d = loaded[name]
    assert d.name == name and d.feature_names == list(d.X.columns)
    assert len(d) == len(d.X) == len(d.time) == len(d.event)
    assert (d.X.dtypes == np.float64).all() and d.time.dtype == np.float64 and d.event.dtype == bool
    for attribute, codes in d.groups.items():
        assert codes.dtype == np.int64 and set(codes) == {0, 1}
        assert len(d.group_labels[attribute]) == 2
    assert np.array_equal(d.group_matrix, np.column_stack(list(d.groups.values())))
    assert d.y.dtype.names == ("event", "time") and np.array_equal(d.y["time"], d.time)


def test_groups_have_their_labels(loaded):
    assert loaded["support"].group_labels == {
        "age": ("age <= 65", "age > 65"),
        "gender": ("female", "male"),
        "race": ("non-white", "white"),
    }


def test_another_file_is_refused_with_the_package_to_install(monkeypatch):
    datasets._read.cache_clear()
    facts = datasets.SOURCES["seer"]
    monkeypatch.setitem(facts, "sha256", "0" * 64)
    with pytest.raises(RuntimeError, match=r"which brings survivors==1\.8\.0"):
        load_dataset("seer")
    monkeypatch.setitem(facts, "file", "survivors/none.csv")
    with pytest.raises(RuntimeError, match="found no file"):
        load_dataset("seer")
    monkeypatch.setitem(facts, "file", "no_such_module/x")
    with pytest.raises(ModuleNotFoundError, match=r"which brings survivors==1\.8\.0"):
        load_dataset("seer")


def test_a_loaded_data_set_is_a_copy_of_what_is_kept_in_memory():
    before = load_dataset("seer")
    changed = load_dataset("seer")
    changed.X.iloc[0, 0], changed.time[0], changed.event[0] = 7.0, 99.0, not changed.event[0]
    changed.groups["age"][0] = 1 - changed.groups["age"][0]
    assert changed.sha256 != before.sha256 == load_dataset("seer").sha256


def test_names_in_any_case_and_unknown_ones():
    assert load_dataset("SEER").name == "seer"
    for wrong in ("flchain", None):
        with pytest.raises(ValueError, match=r"unknown data set .*flc, support, seer"):
            load_dataset(wrong)
