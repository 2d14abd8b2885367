"""Data sets: rows, order, coding and origin; and a user's own frame as the same object."""

import csv
import gzip
import hashlib
import pickle
import time as clock
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from drocox import data
from drocox.data import SurvivalData
from drocox.paper.datasets import SOURCES, dataset_summary, load_dataset, original_seer_csv

NAMES = ["flc", "support", "seer"]


@pytest.fixture(scope="module")
def loaded():
    return {name: load_dataset(name) for name in NAMES}


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "days": [5.0, 8.0, 2.0, 2.0],
            "died": [1, 0, 1, 0],
            "age": [70.5, 61.2, np.nan, 66.6],
            "smoker": [True, False, False, True],
            "stage": ["II", "I", None, "III"],
            "sex": ["f", "m", "m", "f"],
        },
        index=["a", "b", "c", "d"],
    )


def make(**changes):
    arguments = {
        "name": "d",
        "X": pd.DataFrame({"x": [1.0, 2.0, 3.0]}),
        "time": [1, 2, 3],
        "event": [1, 0, 1],
        "groups": {"g": [0, 1, 0]},
    } | changes
    return SurvivalData(**arguments)


# The paper's data sets


def test_table_1_of_the_paper():
    table = dataset_summary()
    assert list(table.index) == NAMES
    assert table["rows"].tolist() == [7874, 9105, 4024]
    assert table["events"].tolist() == [2169, 6201, 616]
    assert table["features"].tolist() == [6, 14, 13]
    assert [f"{rate:.3f}" for rate in table["censoring_rate"]] == ["0.725", "0.319", "0.847"]
    assert table["attributes"].tolist() == ["age, gender", "age, gender, race", "age, race"]
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


@pytest.mark.parametrize(
    "name, times, events",
    [
        ("flc", [85, 1281, 69, 115, 1039], [1, 1, 1, 1, 1]),
        ("support", [2029, 4, 47, 133, 2029], [0, 1, 1, 1, 0]),
        ("seer", [1, 2, 2, 2, 3], [0, 0, 1, 1, 1]),
    ],
)
def test_first_rows(loaded, name, times, events):
    assert loaded[name].time[:5].tolist() == times
    assert loaded[name].event[:5].tolist() == events


@pytest.mark.parametrize("name", NAMES)
def test_types_and_names(loaded, name):
    d = loaded[name]
    assert d.name == name and d.feature_names == list(d.X.columns)
    assert len(d) == len(d.X) == len(d.time) == len(d.event)
    assert (d.X.dtypes == np.float64).all() and d.time.dtype == np.float64 and d.event.dtype == bool
    for attribute, codes in d.groups.items():
        assert codes.dtype == np.int64 and set(codes) == {0, 1}
        assert len(d.group_labels[attribute]) == 2
    assert np.array_equal(d.group_matrix, np.column_stack(list(d.groups.values())))
    assert d.y.dtype.names == ("event", "time") and np.array_equal(d.y["time"], d.time)


def test_features_stand_in_the_order_of_the_paper(loaded):
    assert loaded["flc"].feature_names == "age creatinine flc.grp kappa lambda sex".split()
    assert loaded["support"].feature_names == (
        "age>65 male white num.co diabetes dementia ca meanbp hrt resp temp wblc sod crea".split()
    )
    assert loaded["seer"].feature_names == (
        "age>65 white marital t_stage n_stage 6th_stage grade a_stage tumor_size estrogen "
        "progesterone nodes_examined nodes_positive".split()
    )


def test_missing_values_are_kept(loaded):
    def missing(name):
        return loaded[name].X.isna().sum().loc[lambda counts: counts > 0].to_dict()

    assert missing("flc") == {"creatinine": 1350}
    assert missing("support") == {
        "meanbp": 1,
        "hrt": 1,
        "resp": 1,
        "temp": 1,
        "wblc": 212,
        "sod": 1,
        "crea": 67,
    }
    assert missing("seer") == {}


def test_groups(loaded):
    sizes = {
        name: {a: int(codes.sum()) for a, codes in d.groups.items()} for name, d in loaded.items()
    }
    assert sizes == {
        "flc": {"age": 3277, "gender": 3524},
        "support": {"age": 4513, "gender": 5125, "race": 7191},
        "seer": {"age": 457, "race": 3413},
    }
    assert list(loaded["support"].groups) == ["age", "gender", "race"]
    assert loaded["support"].group_labels == {
        "age": ("age <= 65", "age > 65"),
        "gender": ("female", "male"),
        "race": ("non-white", "white"),
    }
    assert np.array_equal(loaded["flc"].groups["age"], loaded["flc"].X["age"] > 65)


def test_coding_of_labels(loaded):
    counts = {
        f: loaded["seer"].X[f].value_counts().sort_index().tolist()
        for f in ("marital", "t_stage", "n_stage", "6th_stage", "grade", "a_stage")
    }
    assert counts == {
        "marital": [2643, 486, 615, 235, 45],
        "t_stage": [1603, 1786, 533, 102],
        "n_stage": [2732, 820, 472],
        "6th_stage": [1305, 1130, 1050, 67, 472],
        "grade": [2351, 1111, 543, 19],
        "a_stage": [3932, 92],
    }
    assert loaded["support"].X["ca"].value_counts().sort_index().tolist() == [5995, 1252, 1858]


def test_flc_has_three_deaths_at_time_zero(loaded):
    flc = loaded["flc"]
    assert flc.event[flc.time == 0].tolist() == [True] * 3


def test_flc_equals_what_scikit_survival_loads(loaded):
    from sksurv.datasets import load_flchain

    raw, outcome = load_flchain()
    flc = loaded["flc"]
    numeric = ["age", "creatinine", "flc.grp", "kappa", "lambda"]
    pd.testing.assert_frame_equal(flc.X[numeric], raw[numeric].astype(float))
    assert np.array_equal(flc.X["sex"] == 1, raw["sex"] == "M")
    assert np.array_equal(flc.time, outcome["futime"])
    assert np.array_equal(flc.event, outcome["death"])


def test_original_seer_file_is_rebuilt_byte_for_byte():
    digest = hashlib.sha256(original_seer_csv()).hexdigest()
    assert digest == "1d64363e87b306bdb241cb7e105271514f74564842c02e01dbce2f4884266d09"


def test_seer_order_is_a_permutation():
    order = np.loadtxt(Path(data.__file__).with_name("seer_order.txt"), dtype=int)
    assert np.array_equal(np.sort(order), np.arange(4024))


def test_support_columns_equal_those_of_the_original_file():
    """The digest is of the original file (sha256 79621945...; its header lacks a first name).

    It covers one line per patient: text as it is, numbers as ``repr(float)``, blanks empty.
    """
    text = ("sex", "race", "ca")
    columns = [
        *text,
        "diabetes",
        "dementia",
        "age",
        "num.co",
        "meanbp",
        "hrt",
        "resp",
        "temp",
        "wblc",
        "sod",
        "crea",
        "d.time",
        "death",
    ]
    renamed = {"d.time": "time", "death": "event"} | {
        c: f"fac_{c}" for c in (*text, "diabetes", "dementia")
    }
    coded = {
        "diabetes": {"N": "0", "Y": "1"},
        "dementia": {"N": "0", "Y": "1"},
        "race": {"missing": ""},
    }
    path = Path(find_spec("survivors").origin).parent / "datasets/data/support2.csv.gz"
    digest, races = hashlib.sha256(), []
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            cells = []
            for c in columns:
                cell = row[renamed.get(c, "num_" + c.replace(".", "_"))]
                cell = coded.get(c, {}).get(cell, cell)
                cells.append(cell if c in text or not cell else repr(float(cell)))
            races.append(cells[1])
            digest.update((",".join(cells) + "\n").encode())
    assert races.count("") == 42
    assert digest.hexdigest() == "0a8a13001388d2688df2cb8fae62697e9222d9ba724405620b4802f0181d57b4"


def test_another_file_is_refused_with_the_package_to_install(monkeypatch):
    data._read_seer.cache_clear()
    monkeypatch.setitem(data.SOURCES, "seer", SOURCES["seer"]._replace(sha256="0" * 64))
    with pytest.raises(RuntimeError, match=r"pip install survivors==1\.8\.0"):
        load_dataset("seer")
    monkeypatch.setitem(data.SOURCES, "seer", SOURCES["seer"]._replace(file="survivors/none.csv"))
    with pytest.raises(RuntimeError, match="found no file"):
        load_dataset("seer")
    monkeypatch.setitem(data.SOURCES, "seer", SOURCES["seer"]._replace(file="no_such_module/x"))
    with pytest.raises(ModuleNotFoundError, match=r"pip install survivors==1\.8\.0"):
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


@pytest.mark.parametrize("name", NAMES)
def test_loading_takes_less_than_two_seconds(name):
    start = clock.perf_counter()
    load_dataset(name)
    assert clock.perf_counter() - start < 2


# SurvivalData


def test_subset_by_index_mask_and_slice(loaded):
    d = loaded["support"]
    rows = np.array([5, 3, 3, 9000])  # order and repeats are kept, as a bootstrap needs
    part = d.subset(rows)
    assert part.X.equals(d.X.iloc[rows]) and np.array_equal(part.time, d.time[rows])
    assert np.array_equal(part.group_matrix, d.group_matrix[rows])
    assert part.group_labels == d.group_labels and part.name == d.name
    mask = d.time > 1000
    assert len(d.subset(mask)) == mask.sum()
    assert d.subset(pd.Series(mask)).sha256 == d.subset(np.flatnonzero(mask)).sha256
    assert len(d.subset(slice(0, 10))) == len(d.subset(range(10))) == 10


@pytest.mark.parametrize(
    "rows, error, message",
    [
        ([], ValueError, "rows selects nobody"),
        ([False] * 3, ValueError, "rows selects nobody"),
        (slice(3, 3), ValueError, "rows selects nobody"),
        (1, ValueError, "pass a list"),
        ([0, 3], IndexError, "rows must be integers below 3"),
        ([True, False], IndexError, "rows must be .* a mask of that many"),
        ([0.0, 1.0], IndexError, "rows must be integers"),
        ([1], ValueError, "nobody has an event"),
    ],
)
def test_subset_refuses(rows, error, message):
    with pytest.raises(error, match=message):
        make().subset(rows)


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"time": [1, 2]}, ValueError, "time has 2, event has 3"),
        ({"X": pd.DataFrame({"x": [1.0]})}, ValueError, "X has 1, time has 3"),
        ({"groups": {"g": [0, 1]}}, ValueError, r"groups\['g'\] has 2, time has 3"),
        ({"time": [1, np.nan, 3]}, ValueError, "time holds 1 NaN"),
        ({"time": [1, np.inf, 3]}, ValueError, "time holds 1 NaN or infinite"),
        ({"time": [1, -2, 3]}, ValueError, "time holds negative"),
        ({"event": [1, 2, 1]}, ValueError, "event must be 0/1"),
        ({"event": [0, 0, 0]}, ValueError, "nobody has an event"),
        ({"time": [], "event": []}, ValueError, "time is empty"),
        ({"X": np.ones((3, 1))}, TypeError, "X must be a DataFrame"),
        ({"X": pd.DataFrame(index=range(3))}, TypeError, "at least one feature"),
        ({"X": pd.DataFrame({"x": ["a", "b", "c"]})}, TypeError, "non-numeric columns: x; encode"),
        ({"X": pd.DataFrame({"x": [1, np.inf, 2]})}, ValueError, "X holds infinite"),
        ({"X": pd.DataFrame(np.ones((3, 2)), columns=["x", "x"])}, ValueError, "repeated column"),
        ({"groups": {"g": [0, 1, -1]}}, ValueError, r"groups\['g'\] must hold codes"),
        ({"groups": {"g": [0, 0.5, 1]}}, ValueError, r"groups\['g'\] must hold codes"),
        ({"group_labels": {"g": ("only one",)}}, ValueError, r"groups\['g'\] must hold codes"),
        ({"group_labels": {"h": ("a", "b")}}, ValueError, "group_labels names .*h"),
    ],
)
def test_constructor_refuses(changes, error, message):
    with pytest.raises(error, match=message):
        make(**changes)


def test_object_is_independent_of_what_it_was_made_of():
    X, time = pd.DataFrame({"x": [1.0, 2.0, 3.0]}), np.array([1.0, 2.0, 3.0])
    d = make(X=X, time=time)
    X.loc[0, "x"], time[0] = 9, 9
    assert d.X.loc[0, "x"] == 1 and d.time[0] == 1
    with pytest.raises(AttributeError):
        d.time = time


def test_defaults_repr_and_pickle():
    d = make()
    assert d.group_labels == {"g": ("g = 0", "g = 1")}
    assert repr(d) == "SurvivalData('d': 3 patients, 2 events, 1 features, groups: g)"
    assert make(groups={}).group_matrix.shape == (3, 0)
    assert pickle.loads(pickle.dumps(d)).sha256 == d.sha256


def test_sha256_sees_values_names_and_groups_but_not_the_bits_of_nan():
    d = make()
    assert make(name="other").sha256 == d.sha256
    assert make(X=pd.DataFrame({"z": [1.0, 2.0, 3.0]})).sha256 != d.sha256
    assert make(groups={"g": [0, 1, 1]}).sha256 != d.sha256
    assert make(event=[1, 1, 1]).sha256 != d.sha256
    signs = [
        make(X=pd.DataFrame({"x": [zero, nan, 1.0]})).sha256
        for zero, nan in ((0.0, np.nan), (-0.0, -np.nan))
    ]
    assert signs[0] == signs[1]


# A user's own frame


def test_from_frame(frame):
    d = SurvivalData.from_frame(frame, time="days", event="died", groups=["sex"], name="mine")
    assert d.name == "mine" and d.time.tolist() == [5, 8, 2, 2]
    assert d.event.tolist() == [True, False, True, False]
    expected = pd.DataFrame(
        {
            "age": frame["age"],
            "smoker": [1.0, 0, 0, 1],
            "stage=II": [1, 0, np.nan, 0],
            "stage=III": [0, 0, np.nan, 1],
            "sex=m": [0.0, 1, 1, 0],
        },
        index=frame.index,
    )
    pd.testing.assert_frame_equal(d.X, expected)
    assert d.groups["sex"].tolist() == [0, 1, 1, 0]
    assert d.group_labels == {"sex": ("sex = f", "sex = m")}


def test_from_frame_with_given_groups_and_features(frame):
    older = frame["age"].fillna(50) > 65
    d = SurvivalData.from_frame(
        frame, time="days", event="died", groups={"age": older}, features=["smoker", "age"]
    )
    assert d.feature_names == ["smoker", "age"]
    assert d.groups["age"].tolist() == [1, 0, 0, 1]
    assert d.group_labels["age"] == ("age = False", "age = True")
    one = SurvivalData.from_frame(frame, time="days", event="died", groups="sex", features="age")
    assert one.feature_names == ["age"] and list(one.groups) == ["sex"]
    assert SurvivalData.from_frame(frame, time="days", event="died").groups == {}
    for labels in (torch.tensor([1, 0, 0, 1]), np.array([1, 0, 0, 1]), ("y", "x", "x", "y")):
        d = SurvivalData.from_frame(frame, time="days", event="died", groups={"g": labels})
        assert d.groups["g"].tolist() == [1, 0, 0, 1]


def test_from_frame_keeps_the_order_of_categories_and_nullable_columns(frame):
    frame["stage"] = pd.Categorical(["low", "high", "low", "mid"], ["low", "mid", "high", "none"])
    frame["count"] = pd.array([1, None, 3, 4], dtype="Int64")
    frame["mixed"] = pd.Series([1, None, 3, 4], dtype=object, index=frame.index)
    d = SurvivalData.from_frame(
        frame, time="days", event="died", groups=["stage"], features=["stage", "count", "mixed"]
    )
    assert d.groups["stage"].tolist() == [0, 2, 0, 1]
    assert d.group_labels["stage"] == ("stage = low", "stage = mid", "stage = high")
    assert d.feature_names == ["stage=mid", "stage=high", "count", "mixed"]
    gaps = [False, True, False, False]
    assert d.X["count"].isna().tolist() == d.X["mixed"].isna().tolist() == gaps


def test_from_frame_gives_a_loaded_data_set_back(loaded):
    flc = loaded["flc"]
    df = flc.X.assign(days=flc.time, died=flc.event)
    again = SurvivalData.from_frame(
        df, time="days", event="died", groups={"age": df["age"] > 65, "gender": df["sex"]}
    )
    assert again.sha256 == flc.sha256


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"time": "day"}, ValueError, "time: df has no column 'day'; its columns are: days, died"),
        ({"event": "dead"}, ValueError, "event: df has no column 'dead'"),
        ({"groups": ["race"]}, ValueError, "groups: df has no column 'race'"),
        ({"features": ["race"]}, ValueError, "features: df has no column 'race'"),
        ({"groups": ["died"]}, ValueError, "groups: 'died' is the outcome"),
        ({"features": ["age", "days"]}, ValueError, "features: 'days' is the outcome"),
        ({"features": []}, TypeError, "at least one feature"),
        ({"time": "age"}, ValueError, "time column 'age' holds 1 NaN"),
        ({"event": "sex"}, TypeError, "event column 'sex' must be numeric"),
        ({"event": "days", "time": "died"}, ValueError, "event column 'days' must be 0/1"),
        ({"groups": ["stage"]}, ValueError, r"groups\['stage'\] holds missing values; give"),
        (
            {"groups": {"g": ["a", "b"]}},
            ValueError,
            r"groups\['g'\] must hold .* \(4\), got \(2,\)",
        ),
        ({"groups": {"g": ["a"] * 4}}, ValueError, r"groups\['g'\] holds a single group"),
        (
            {"groups": {"g": pd.Series([0, 1, 0, 1])}},
            ValueError,
            r"groups\['g'\] has another index",
        ),
    ],
)
def test_from_frame_refuses(frame, arguments, error, message):
    with pytest.raises(error, match=message):
        SurvivalData.from_frame(frame, **{"time": "days", "event": "died"} | arguments)


def test_from_frame_refuses_measurements_as_groups_and_identifiers_as_features():
    n = 60
    df = pd.DataFrame(
        {
            "t": np.arange(n),
            "e": 1,
            "age": np.arange(n) + 40.5,
            "id": [f"p{i}" for i in range(n)],
            "one": "same",
            "entry": pd.Timestamp("2020-01-01"),
            "stay": pd.Timedelta(days=2),
        }
    )
    read = SurvivalData.from_frame
    with pytest.raises(ValueError, match=r"60 distinct .*groups=\{'age': df\['age'\] > 65\}"):
        read(df, time="t", event="e", groups=["age"], features=["age"])
    for column in ("id", "one"):
        with pytest.raises(ValueError, match=f"feature column '{column}' has .* leave it out"):
            read(df, time="t", event="e", features=["age", column])
    with pytest.raises(TypeError, match=r"'entry' has dtype datetime64.*days since entry"):
        read(df, time="t", event="e", features=["entry"])
    with pytest.raises(TypeError, match="time column 'stay' must be numeric"):
        read(df, time="stay", event="e", features=["age"])
    with pytest.raises(TypeError, match="df must be a pandas DataFrame"):
        read(df.to_numpy(), time="t", event="e")
    df.loc[0, "t"] = -1
    with pytest.raises(ValueError, match="time column 't' holds negative"):
        read(df, time="t", event="e", features=["age"])
