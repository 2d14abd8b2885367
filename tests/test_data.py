"""Survival data: what the object holds, checks and refuses; a user's own frame or arrays."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from cohort import simulated

import drocox
from drocox.data import SurvivalData
from drocox.paper.datasets import load_dataset

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
def test_subset_refuses_rows_that_do_not_exist_or_select_nobody(rows, error, message):
    with pytest.raises(error, match=message):
        make().subset(rows)


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"time": [1, 2]}, ValueError, "time has 2, event has 3"),
        ({"X": pd.DataFrame({"x": [1.0]})}, ValueError, "X has 1, time has 3"),
        ({"groups": {"g": [0, 1]}}, ValueError, r"groups\['g'\] has 2, time has 3"),
        ({"time": [1, np.nan, 3]}, ValueError, "time holds 1 NaN"),
        ({"time": [1, -2, 3]}, ValueError, "time holds negative"),
        ({"event": [1, 2, 1]}, ValueError, "event must be 0/1"),
        ({"X": np.ones((3, 1))}, TypeError, "X must be a DataFrame"),
        ({"X": pd.DataFrame(index=range(3))}, TypeError, "at least one feature"),
        ({"X": pd.DataFrame({"x": ["a", "b", "c"]})}, TypeError, "non-numeric columns: x; encode"),
        ({"X": pd.DataFrame({"x": [1, np.inf, 2]})}, ValueError, "X holds infinite"),
        ({"X": pd.DataFrame(np.ones((3, 2)), columns=["x", "x"])}, ValueError, "repeated column"),
        ({"time": np.array(["2020-01-01"] * 3, "M8[D]")}, TypeError, "time holds dates or dur"),
        ({"X": pd.DataFrame({"mol": [1e-170, 2e-170, 0]})}, ValueError, "of 'mol' is 2e-170; choo"),
        ({"X": pd.DataFrame({"x": [1e200, 1, 0]})}, ValueError, "value of 'x' is 1e.200; choose"),
        ({"groups": {"g": [0, 1, -1]}}, ValueError, r"groups\['g'\] must hold codes"),
        ({"groups": {"g": [0, 0.5, 1]}}, ValueError, r"groups\['g'\] must hold codes"),
        ({"group_labels": {"g": ("only one",)}}, ValueError, r"groups\['g'\] must hold codes"),
        ({"group_labels": {"h": ("a", "b")}}, ValueError, "group_labels names .*h"),
    ],
)
def test_bad_data_are_refused_by_name(changes, error, message):
    with pytest.raises(error, match=message):
        make(**changes)


def test_data_are_copied():
    X, time = pd.DataFrame({"x": [1.0, 2.0, 3.0]}), np.array([1.0, 2.0, 3.0])
    d = make(X=X, time=time)
    X.loc[0, "x"], time[0] = 9, 9
    assert d.X.loc[0, "x"] == 1 and d.time[0] == 1
    with pytest.raises(AttributeError):
        d.time = time


def test_labels_have_defaults_and_data_can_be_pickled():
    d = make()
    assert d.group_labels == {"g": ("g = 0", "g = 1")}
    assert repr(d) == "SurvivalData('d': 3 patients, 2 events, 1 features, groups: g)"
    assert make(groups={}).group_matrix.shape == (3, 0)
    assert pickle.loads(pickle.dumps(d)).sha256 == d.sha256


def test_sha256_depends_on_values_names_and_groups_but_not_on_the_bits_of_nan():
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


def test_from_frame_encodes_features_and_groups(frame):
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


def test_from_frame_reproduces_a_loaded_data_set(loaded):
    flc = loaded["flc"]
    df = flc.X.assign(days=flc.time, died=flc.event)
    again = SurvivalData.from_frame(
        df, time="days", event="died", groups={"age": df["age"] > 65, "gender": df["sex"]}
    )
    assert again.sha256 == flc.sha256


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (
            {"time": "day"},
            ValueError,
            "time: no column 'day'; did you mean 'days'. the columns are: days, died",
        ),
        ({"event": "dead"}, ValueError, "event: no column 'dead'"),
        ({"groups": ["race"]}, ValueError, "groups: no column 'race'"),
        ({"features": ["race"]}, ValueError, "features: no column 'race'"),
        ({"groups": ["died"]}, ValueError, "groups: 'died' is the outcome"),
        ({"features": ["age", "days"]}, ValueError, "features: 'days' is the outcome"),
        ({"features": []}, TypeError, "at least one feature"),
        ({"time": "age"}, ValueError, "time column 'age' holds 1 NaN"),
        ({"event": "sex"}, ValueError, "event column 'sex' must be 0/1 .* df.'sex'. == 'm'"),
        ({"time": "died"}, ValueError, "time and event are both 'died'; name two columns"),
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
def test_from_frame_refuses_bad_columns_by_name(frame, arguments, error, message):
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
            "stay": np.full(n, 2, dtype="timedelta64[s]"),
        }
    )
    read = SurvivalData.from_frame
    said = r"60 distinct .*groups=\{'age': df\['age'\] > 65\}, and make text of numbers that are"
    with pytest.raises(ValueError, match=said):
        read(df, time="t", event="e", groups=["age"], features=["age"])
    with pytest.raises(ValueError, match="60 distinct labels, more than 50; merge those"):
        read(df, time="t", event="e", groups=["id"], features=["age"])
    with pytest.raises(ValueError, match=r"and holds 2; convert it, as in df\['status'\] == 2"):
        read(df.assign(status=1 + df["t"] % 2), time="t", event="status", features=["age"])
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


def test_from_arrays_takes_outcomes_groups_and_features():
    data, scores = simulated(3, n=500, effects=(0.8, 0.5, 0))
    sex = np.where(data.groups["sex"] == 1, "m", "f")
    made = drocox.SurvivalData.from_arrays(data.time, data.event, groups={"sex": sex})
    same = drocox.SurvivalData.from_arrays(data.y, groups={"sex": sex}, X=data.X)
    for one in (made, same):
        table = drocox.audit(one, scores).table.set_index("group")
        assert table.loc["sex = m", "patients"] == (sex == "m").sum()
    assert made.feature_names == ["sex"] and same.feature_names == data.feature_names
    with pytest.raises(TypeError, match="pass time and event, or scikit-survival"):
        drocox.SurvivalData.from_arrays(data.time, groups={"sex": sex})
    with pytest.raises(TypeError, match=r"groups=\{'sex': labels\}, not be of type ndarray"):
        drocox.SurvivalData.from_arrays(data.y, groups=sex)
    frame = drocox.SurvivalData.from_arrays(data.y, groups=pd.DataFrame({"sex": sex}))
    assert frame.group_labels == made.group_labels


def test_spaces_around_labels_are_ignored():
    data, _ = simulated(n=400)
    df = pd.DataFrame({"days": data.time, "died": data.event, "risk": data.X["a"]})
    df["sex"] = np.tile(["m", "m ", " f", "f"], 100)
    order = pd.CategoricalDtype(["m", " f", "f", "m "])
    for labels in (df["sex"], df["sex"].to_numpy(), df["sex"].astype(order)):
        data = drocox.SurvivalData.from_frame(
            df[["days", "died", "risk"]], time="days", event="died", groups={"sex": labels}
        )
        assert sorted(data.group_labels["sex"]) == ["sex = f", "sex = m"]
        codes = data.groups["sex"]
        male = np.isin(df["sex"], ["m", "m "])
        assert len(set(codes[male])) == len(set(codes[~male])) == 1 and codes[0] != codes[2]
    assert data.group_labels["sex"] == ("sex = m", "sex = f")  # in the user's order
