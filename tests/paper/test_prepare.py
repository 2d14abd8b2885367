"""Preparing a data set: row order, splits, imputation and scaling."""

import hashlib
import platform
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

import drocox
from drocox.paper import prepare as preparation
from drocox.paper.prepare import prepare
from drocox.paper.protocol import ATTRIBUTES

PROTOCOLS = ("as_published", "corrected")

# Row order ----------------------------------------------------------------------------------

ORDERS = {
    "flc": "1bba96ac72af6e8212f519f58f1d065b2c7f36c452d2a79105b6729c676ec766",
    "support": "ea584a23ec9381280fd2e8a4d5495e8165779d0252b4e17896c5477b2de82eca",
    "seer": "2c9ede8078ed784eef9560ee19b760cfea5290e6c36cf1d60ed4c036a1a951b8",
}
SCALAR_ARGSORT = platform.machine() == "aarch64"  # elsewhere NumPy may use vector instructions


@pytest.mark.parametrize("name", ORDERS)
def test_order_of_ties_does_not_depend_on_the_machine(name):
    time = drocox.load_dataset(name).time
    order = preparation.introsort_order(time)
    assert hashlib.sha256(order.astype("<i8").tobytes()).hexdigest() == ORDERS[name]
    assert not np.array_equal(order, np.argsort(time, kind="stable"))  # so it matters
    if SCALAR_ARGSORT:
        np.testing.assert_array_equal(order, np.argsort(time))


def tiny(name: str, keys: tuple, n: int = 24) -> drocox.SurvivalData:
    """Patients of a data set's groups, every cell present, one feature with missing values."""
    rng = np.random.default_rng(8)
    groups = {key: rng.permutation(np.arange(n) % 2) for key in keys}
    X = pd.DataFrame({"row": np.arange(n, dtype=float), "value": rng.standard_normal(n)})
    X.loc[rng.permutation(n)[:6], "value"] = np.nan
    return drocox.SurvivalData(name, X, np.arange(n) + 1.0, np.ones(n), groups)


@pytest.mark.parametrize(
    ("name", "keys"),
    [("flc", ("gender", "age")), ("support", ("age", "gender", "race")), ("seer", ("age", "race"))],
)
def test_as_published_rows_are_stacked_by_group_and_imputed_by_its_medians(name, keys):
    data = tiny(name, ATTRIBUTES[name])
    got = preparation.sorted_by_group(data)
    rows = sorted(range(len(data)), key=lambda i: (*(data.groups[k][i] for k in keys), i))
    assert got.X["row"].tolist() == rows
    assert got.time.tolist() == data.time[rows].tolist()
    for key in ATTRIBUTES[name]:
        assert got.groups[key].tolist() == data.groups[key][rows].tolist()
    for position, i in enumerate(rows):
        value = data.X["value"][i]
        if np.isnan(value):
            same = [j for j in range(len(data))
                    if all(data.groups[k][j] == data.groups[k][i] for k in keys)]  # fmt: skip
            value = np.nanmedian(data.X["value"].to_numpy()[same])
        assert got.X["value"].iloc[position] == value
    assert data.X["value"].isna().sum() == 6  # the data set itself is as it was


# Splits and scaling -------------------------------------------------------------------------


def rows_of(part) -> np.ndarray:
    """Row numbers in the file: the index of the features keeps them."""
    return part.X.index.to_numpy()


@pytest.mark.parametrize("which", PROTOCOLS)
@pytest.mark.parametrize("repeat", [1, 4])
def test_splits_are_those_of_the_stated_seeds(which, repeat):
    data = drocox.load_dataset("seer")
    order = np.arange(len(data))
    if which == "as_published":
        order = np.lexsort((order, data.groups["race"], data.groups["age"]))
    event = data.event[order]
    seed = {"as_published": 7, "corrected": repeat}[which]
    rest, test = train_test_split(
        np.arange(len(data)), test_size=0.2, stratify=event, random_state=seed
    )
    train, val = train_test_split(rest, test_size=0.2, stratify=event[rest], random_state=repeat)
    d1, _ = train_test_split(train, test_size=0.3, stratify=event[train], random_state=repeat)
    ready = prepare(which, "seer", repeat, 0.3, 2)
    for part, expected in zip((ready.train, ready.val, ready.test), (train, val, test),
                              strict=True):  # fmt: skip
        rows = rows_of(part)
        if which == "corrected":
            np.testing.assert_array_equal(rows, order[expected])
        else:  # descending time
            assert set(rows) == set(order[expected])
            assert (np.diff(part.time) <= 0).all()
            by_time = preparation.introsort_order(data.time[order[expected]])[::-1]
            np.testing.assert_array_equal(rows, order[expected][by_time])
    assert set(rows_of(ready.train)[ready.first]) == set(order[d1])
    assert prepare(which, "seer", repeat).first is None
    assert ready.weight_seed == (1 if which == "as_published" else repeat)
    assert ready.procedure.ties == ("order" if which == "as_published" else "breslow")
    assert ready.procedure.centred == (which == "corrected")


def assert_standard(X: np.ndarray):
    np.testing.assert_allclose(X.mean(0), 0, atol=1e-10)
    np.testing.assert_allclose(X.std(0), 1, atol=1e-10)


def test_scaling_is_fitted_on_training_rows():
    for which in PROTOCOLS:
        ready = prepare(which, "seer", 1)
        assert_standard(ready.X[0])
        raw = ready.train.X.to_numpy()
        for X, part in zip(ready.X[1:], (ready.val, ready.test), strict=True):
            np.testing.assert_allclose(
                X, (part.X.to_numpy() - raw.mean(0)) / raw.std(0), atol=1e-12
            )
        np.testing.assert_array_equal(ready.baseline_X, ready.X[0])
    # SPLIT, corrected: by the whole training part; as published: by D1.
    ready = prepare("corrected", "seer", 1, 0.5, 2)
    assert_standard(ready.X[0])
    np.testing.assert_array_equal(ready.baseline_X, ready.X[0])
    for sides in (1, 2):
        ready = prepare("as_published", "seer", 1, 0.5, sides)
        assert_standard(ready.X[0][ready.first])
        assert np.abs(ready.X[0].mean(0)).max() > 1e-3
        raw = ready.train.X.to_numpy()
        d1 = raw[ready.first]
        for X, part in zip(ready.X, (ready.train, ready.val, ready.test), strict=True):
            np.testing.assert_allclose(X, (part.X - d1.mean(0)) / d1.std(0), atol=1e-12)
        np.testing.assert_array_equal(ready.baseline_X, raw if sides == 2 else ready.X[0])


def test_other_patients_can_be_prepared():
    whole = preparation.sorted_by_group(drocox.load_dataset("seer"))
    usual = prepare("as_published", "seer", 1)
    same = prepare("as_published", "seer", 1, data=whole)
    for theirs, mine in zip(usual.X, same.X, strict=True):
        np.testing.assert_array_equal(theirs, mine)
    fewer = whole.subset(np.arange(len(whole)) % 2 == 0)
    halved = prepare("as_published", "seer", 1, data=fewer)
    assert len(halved.train) + len(halved.val) + len(halved.test) == len(fewer)


def test_corrected_features_do_not_depend_on_test_rows(monkeypatch):
    data, before = drocox.load_dataset("flc"), prepare("corrected", "flc", 1)
    published = prepare("as_published", "flc", 1)
    changed = data.X.copy()
    outside = np.concatenate([rows_of(before.val), rows_of(before.test)])
    changed.iloc[outside] *= 3.0
    altered = replace(data, X=changed)
    monkeypatch.setattr(preparation, "_whole", lambda *which: altered)
    after = prepare("corrected", "flc", 1)
    np.testing.assert_array_equal(after.X[0], before.X[0])
    assert (after.X[2] != before.X[2]).all(axis=1).any()
    medians = np.nanmedian(data.X.to_numpy()[rows_of(before.train)], axis=0)
    missing = data.X["creatinine"].isna().to_numpy()[rows_of(before.train)]
    raw = np.where(before.train.X.isna(), medians, before.train.X)
    assert 200 < missing.sum() < 2000
    np.testing.assert_allclose(before.X[0], (raw - raw.mean(0)) / raw.std(0), atol=1e-10)
    # As published, medians come from all rows, and the same change is seen in training.
    monkeypatch.setattr(preparation, "_whole", lambda *which: preparation.sorted_by_group(altered))
    leaked = prepare("as_published", "flc", 1)
    where = data.X["creatinine"].isna().to_numpy()[rows_of(leaked.train)]
    now, then = (ready.train.X["creatinine"].to_numpy()[where] for ready in (leaked, published))
    assert where.sum() > 200 and (now > then + 0.05).all()
