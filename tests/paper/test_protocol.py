"""The protocols: what is trained, on which rows, prepared how, and judged by which values."""

import hashlib
import platform
import re
from collections import Counter
from dataclasses import replace
from functools import partial

import literal
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

import drocox
from drocox import accuracy, dual_constant, regularizers, training
from drocox.evaluation import Judge, scaled_features
from drocox.paper import prepare as preparation
from drocox.paper import protocol, run
from drocox.paper.prepare import prepare
from drocox.paper.protocol import ATTRIBUTES, LEARNING_RATES, METHODS, Stack
from drocox.training import cox_objective, dro_objective, initial_parameters, split_objective

PROTOCOLS = ("as_published", "corrected")

# What is trained ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROTOCOLS)
def test_numbers_of_models(name):
    count = Counter()
    for stack in protocol.stacks(name):
        assert stack.protocol == name
        exhibit = "main"
        if METHODS[stack.method].loss == "split":
            exhibit = {(0.5, 2): "main", (0.5, 1): "T17"}.get((stack.n2_share, stack.sides), "T16")
            assert stack.dataset == "flc" or exhibit == "main"
        count[exhibit] += len(stack.grid())
    assert count == {"main": 6480, "T16": 1440, "T17": 360}
    assert sum(count.values()) == 8280


def test_forensic_runs_are_nonlinear_split_as_published_without_one_gradient():
    found = list(protocol.stacks("forensic"))
    assert sum(len(stack.grid()) for stack in found) == 1440
    assert {stack.method for stack in found} == {"Deep DRO-COX (SPLIT)"}
    published = [s for s in protocol.stacks("as_published") if s.method == "Deep DRO-COX (SPLIT)"]
    assert [replace(s, protocol="as_published") for s in found] == published
    as_published, forensic = (protocol.PROCEDURES[p] for p in ("as_published", "forensic"))
    assert replace(forensic, reference_gradient=True) == as_published != forensic


def test_sixteen_methods_and_their_grids():
    assert len(METHODS) == 16
    for name, method in METHODS.items():
        deep = name.startswith("Deep")
        assert method.model == ("nonlinear" if deep else "linear")
        stack = Stack("corrected", "seer", name, 1)
        assert stack.model == method.model
        grid = pd.DataFrame(stack.grid(), dtype=float)
        assert not grid.duplicated().any()
        assert set(grid["learning_rate"]) == {0.01, 0.001, 0.0001}
        if "DRO" in name:
            assert set(grid["alpha"]) == {0.1, 0.15, 0.2, 0.3, 0.4, 0.5}
            assert grid["lam"].isna().all() and len(grid) == 18
        elif "(" in name:
            assert set(grid["lam"]) == {1.0, 0.7, 0.4}
            assert grid["alpha"].isna().all() and len(grid) == 9
        else:
            assert grid[["lam", "alpha"]].isna().all(axis=None) and len(grid) == 3
    assert METHODS["DeepSurv_G(R&P)"].by_attribute and METHODS["Cox_G(Keya)"].by_attribute
    assert sum(method.by_attribute for method in METHODS.values()) == 4
    published = {"Cox", "Cox_I(Keya)", "Cox_I(R&P)", "Cox_G(Keya)", "Cox_G(R&P)", "Cox_cap(Keya)",
                 "DRO-COX", "DRO-COX (SPLIT)"}  # fmt: skip
    assert {name for name, m in METHODS.items() if m.model == "linear"} == published


@pytest.mark.parametrize("name", PROTOCOLS)
def test_names_of_stacks_are_unique_and_safe(name):
    names = [stack.name for stack in protocol.stacks(name)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*", each) for each in names)
    assert max(map(len, names)) < 100
    keys = ["dataset", "method", "attribute", "repeat", "n2_share", "sides"]
    whole = {tuple(getattr(s, k) for k in keys) for s in protocol.stacks(name)}
    assert len(whole) == len(names)


def test_a_part_of_the_protocol():
    chosen = list(protocol.stacks("corrected", ["seer"], ["Cox_G(R&P)"], [3]))
    assert [(s.attribute, s.repeat) for s in chosen] == [("age", 3), ("race", 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["published"], "unknown protocol 'published'; .*as_published, corrected"),
        (["corrected", ["seers"]], "unknown data set 'seers'; .*flc, support, seer"),
        (["corrected", ["seer"], ["Coxx"]], r"unknown method of corrected 'Coxx'; .*Cox_I\(Keya\)"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(arguments, message):
    with pytest.raises(ValueError, match=message):
        list(protocol.stacks(*arguments))


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


def test_order_of_forty_patients():
    values = [i * 7 % 5 for i in range(40)]  # eight of each value
    assert preparation.introsort_order(values).tolist() == [
        0, 20, 15, 30, 10, 25, 35, 5,
        23, 8, 33, 28, 13, 3, 38, 18,
        6, 21, 1, 36, 16, 26, 11, 31,
        34, 29, 19, 14, 9, 4, 24, 39,
        27, 22, 17, 12, 32, 7, 2, 37,
    ]  # fmt: skip


@settings(max_examples=150)
@given(
    n=st.integers(0, 300), distinct=st.sampled_from([1, 2, 5, 30, 10**6]),
    shape=st.sampled_from(["random", "rising", "falling", "up and down"]),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_order_sorts(n, distinct, shape, seed):
    drawn = np.random.default_rng(seed).integers(0, distinct, n).astype(float)
    rising = np.sort(drawn)
    values = {
        "random": drawn,
        "rising": rising,
        "falling": rising[::-1],
        "up and down": np.concatenate([rising[::2], rising[1::2][::-1]]),
    }[shape]
    order = preparation.introsort_order(values)
    assert sorted(order.tolist()) == list(range(n))
    assert (np.diff(values[order.astype(int)]) >= 0).all()
    if n <= 16:
        assert order.tolist() == np.argsort(values, kind="stable").tolist()
    if SCALAR_ARGSORT:
        assert order.tolist() == np.argsort(values).tolist()


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
def test_stacking_and_medians_of_groups(name, keys):
    data = tiny(name, ATTRIBUTES[name])
    got = preparation.stacked(data)
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


@pytest.mark.parametrize("name", ["seer", "flc"])
@pytest.mark.parametrize("which", PROTOCOLS)
def test_splits_are_stratified_disjoint_and_exhaustive(which, name):
    data = drocox.load_dataset(name)
    tests, trained = [], []
    for repeat in (1, 2):
        ready = prepare(which, name, repeat)
        parts = (ready.train, ready.val, ready.test)
        rows = [rows_of(part) for part in parts]
        assert sorted(np.concatenate(rows)) == list(range(len(data)))
        for part, share in zip(parts, (0.64, 0.16, 0.2), strict=True):
            assert len(part) == pytest.approx(share * len(data), abs=1.5)
            assert part.event.sum() == pytest.approx(share * data.event.sum(), abs=1.5)
            np.testing.assert_array_equal(part.time, data.time[rows_of(part)])
            for key, codes in part.groups.items():
                np.testing.assert_array_equal(codes, data.groups[key][rows_of(part)])
        trained.append(set(rows[0]))
        tests.append(set(rows[2]))
    assert trained[0] != trained[1]
    assert (tests[0] == tests[1]) == (which == "as_published")


@pytest.mark.parametrize("which", PROTOCOLS)
@pytest.mark.parametrize("repeat", [1, 4])
def test_seeds_of_the_splits(which, repeat):
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
    assert ready.weight_seed == (1 if which == "as_published" else repeat)
    assert ready.procedure.ties == ("order" if which == "as_published" else "breslow")
    assert ready.procedure.centred == (which == "corrected")


@pytest.mark.parametrize("which", PROTOCOLS)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_sides_of_the_split_are_stratified(which, share):
    ready = prepare(which, "seer", 2, share, 2)
    n, events = len(ready.train), ready.train.event.sum()
    assert (~ready.first).sum() == pytest.approx(share * n, abs=1)
    assert ready.train.event[~ready.first].sum() == pytest.approx(share * events, abs=1)
    assert prepare(which, "seer", 2).first is None


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
    whole = preparation.stacked(drocox.load_dataset("seer"))
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
    monkeypatch.setattr(preparation, "_whole", lambda *which: preparation.stacked(altered))
    leaked = prepare("as_published", "flc", 1)
    where = data.X["creatinine"].isna().to_numpy()[rows_of(leaked.train)]
    now, then = (ready.train.X["creatinine"].to_numpy()[where] for ready in (leaked, published))
    assert where.sum() > 200 and (now > then + 0.05).all()


# Stacks are trained as their names say --------------------------------------------------------

SEER = ("as_published", "seer", 3)


def codes_of(ready, name):
    return ready.train.groups[name]


EXPECTED = {
    ("Cox", ""): lambda r, lam, c: cox_objective(r.risk, "order"),
    ("Cox_I(Keya)", ""): lambda r, lam, c: cox_objective(
        r.risk, "order", regularizers.all_pairs(r.X[0], 0.01), lam),
    ("Cox_I(R&P)", ""): lambda r, lam, c: cox_objective(
        r.risk, "order",
        regularizers.censored_event_pairs(r.X[0], r.train.time, r.train.event), lam),
    ("Cox_G(R&P)", "race"): lambda r, lam, c: cox_objective(
        r.risk, "order",
        regularizers.censored_event_pairs(
            r.X[0], r.train.time, r.train.event, codes_of(r, "race")), lam),
    ("Cox_G(Keya)", "age"): lambda r, lam, c: cox_objective(
        r.risk, "order", lambda h: regularizers.group_keya(h, codes_of(r, "age")), lam),
    ("Cox_G(Keya)", "race"): lambda r, lam, c: cox_objective(
        r.risk, "order", lambda h: regularizers.group_keya(h, codes_of(r, "race")), lam),
    ("Cox_cap(Keya)", ""): lambda r, lam, c: cox_objective(
        r.risk, "order", lambda h: regularizers.intersectional_keya(
            h, np.column_stack([codes_of(r, "age"), codes_of(r, "race")])), lam),
    ("DRO-COX", ""): lambda r, lam, c: dro_objective(r.risk, c, "order"),
    ("DRO-COX (SPLIT)", ""): lambda r, lam, c: split_objective(r.risk, r.first, c, 2),
    ("Deep DRO-COX (SPLIT)", ""): lambda r, lam, c: split_objective(r.risk, r.first, c, 2),
    ("DeepSurv", ""): lambda r, lam, c: cox_objective(r.risk, "order"),
    ("Deep DRO-COX", ""): lambda r, lam, c: dro_objective(r.risk, c, "order"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "attribute"), EXPECTED)
def test_a_stack_trains_what_its_method_says(method, attribute):
    split = {"n2_share": 0.5, "sides": 2} if "SPLIT" in method else {}
    stack = Stack(*SEER[:2], method, SEER[2], attribute, **split)
    ready = prepare(*SEER, *split.values())
    got, grid = run.fit(stack, ready, n_iter=4), pd.DataFrame(stack.grid(), dtype=float)
    assert got.theta.shape[0] == len(grid)  # more than one chunk for 18 models
    hidden = 24 if method.startswith("Deep") else None
    start = initial_parameters(ready.X[0].shape[1], hidden, 1)
    for i in (0, len(grid) // 2, len(grid) - 1):  # each as if alone
        lam, alpha = grid["lam"][i], grid["alpha"][i]
        c = None if np.isnan(alpha) else dual_constant(alpha, rule="paper")
        objective = EXPECTED[method, attribute](ready, np.array([lam]), c)
        alone = training.fit_stack(ready.X[0], objective, start, [grid["learning_rate"][i]],
                                   hidden=hidden, n_iter=4)  # fmt: skip
        np.testing.assert_allclose(got.theta[i], alone.theta[0], atol=1e-10)
    assert len(np.unique(got.theta.round(12), axis=0)) >= len(LEARNING_RATES)


def test_scores_beyond_exp_make_hazards_and_their_metrics_infinite():
    judge = prepare("as_published", "seer", 1).judges[1]
    scores = np.linspace(0, 2000, len(judge.part))
    found = judge.fairness(np.zeros(3), scores)
    assert found["f_i"] == found["f_cap"] == found["f_g_age"] == found["f_i_centred"] == np.inf
    rank = judge.fairness(np.zeros(3), scores / 1000)
    assert found["c_index"] == rank["c_index"] and np.isfinite(rank["f_i"])
    assert found["ci_percent_age"] == rank["ci_percent_age"]


def test_forensic_training_cuts_the_gradient_of_the_reference_sum():
    stack = Stack("forensic", "seer", "Deep DRO-COX (SPLIT)", 1, n2_share=0.5, sides=2)
    ready = prepare("forensic", "seer", 1, 0.5, 2)
    c = np.array([dual_constant(setting.alpha, rule="paper") for setting in stack.grid()[:1]])
    cut = split_objective(ready.risk, ready.first, c, 2, reference_gradient=False)
    start = initial_parameters(ready.X[0].shape[1], 24, 1)
    alone = training.fit_stack(ready.X[0], cut, start, [0.01], hidden=24, n_iter=4)
    got = run.fit(stack, ready, n_iter=4)
    np.testing.assert_allclose(got.theta[0], alone.theta[0], atol=1e-10)
    whole = run.fit(replace(stack, protocol="as_published"), prepare("as_published", "seer", 1,
                    0.5, 2), n_iter=4)  # fmt: skip
    assert np.abs(whole.theta[0] - got.theta[0]).max() > 1e-4


def test_rows_of_a_corrected_run_equal_evaluate(monkeypatch):
    monkeypatch.setattr(run, "fit", partial(run.fit, n_iter=20))
    stack = Stack("corrected", "seer", "Cox", 2)
    frame, ready = run.run_stack(stack), prepare("corrected", "seer", 2)
    models = run.fit(stack, ready)
    on_train, on_test = models.scores(ready.X[0]), models.scores(ready.X[2])
    assert list(frame.columns) == run.columns()
    assert frame["learning_rate"].tolist() == list(LEARNING_RATES)
    assert (frame["dataset"] == "seer").all() and (frame["repeat"] == 2).all()
    assert frame[["lam", "alpha", "n2_share", "sides"]].isna().all(axis=None)
    assert frame["test_ibs_misaligned"].isna().all()
    for i, attribute in ((0, "age"), (2, "race")):
        found = drocox.evaluate(ready.train, ready.test, on_train[i], on_test[i], attribute)
        row = frame.loc[i]
        for key in ("c_index", "auc", "lpl", "ibs", "f_i", "f_cap"):
            assert row[f"test_{key}"] == pytest.approx(found[key], abs=1e-12)
        assert row[f"test_f_g_{attribute}"] == pytest.approx(found["f_g"], abs=1e-12)
        assert row[f"test_ci_percent_{attribute}"] == pytest.approx(found["ci_percent"], abs=1e-12)
    # Linear scores of scaled features have mean 0 in training: centring changes nothing.
    for key in ("f_i", "f_cap"):
        np.testing.assert_allclose(frame[f"test_{key}_centred"], frame[f"test_{key}"], atol=1e-10)


def test_rows_say_whether_they_are_stable(monkeypatch):
    monkeypatch.setattr(run, "fit", partial(run.fit, n_iter=3))
    frame = run.run_stack(Stack("as_published", "seer", "DeepSurv", 1))
    assert frame["unstable"].tolist() == [0, 0, 0]  # three steps are not chaotic
    assert (frame["test_f_i_centred"] != frame["test_f_i"]).all()
    assert (frame["test_ibs_misaligned"] != frame["test_ibs"]).all()
    monkeypatch.setattr(run, "PERTURBATION", 0.5)
    frame = run.run_stack(Stack("as_published", "seer", "DeepSurv", 1))
    assert frame["unstable"].tolist() == [1, 1, 1]
    # The perturbed twins are judged for stability only: the rows are those of the given weights.
    stack, ready = Stack("as_published", "seer", "Cox", 1), prepare("as_published", "seer", 1)
    scores = run.fit(stack, ready).scores(ready.X[2])
    expected = [accuracy.concordance_index(f, ready.test.time, ready.test.event) for f in scores]
    assert run.run_stack(stack)["test_c_index"].tolist() == pytest.approx(expected, abs=1e-12)


# Evaluation ---------------------------------------------------------------------------------


def two_parts(seed: int, n: int = 40):
    """Two parts of one population; the training follow-up ends last, with an event."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(2):
        X, time, event = literal.random_survival(rng, n, 0.6)
        X = X * [1.0, 50.0, 1e-3] + [0.0, 400.0, 2.0]
        X[rng.random((n, 3)) < 0.1] = np.nan
        time[:3], event[:3] = 1.0, True  # early events, so that the AUC has cases
        groups = {"age": np.arange(n) % 2, "race": rng.permutation(np.arange(n) % 3)}
        frame = pd.DataFrame(X, columns=list("abc"))
        parts.append(drocox.SurvivalData("drawn", frame, time, event, groups))
    train, test = parts
    train.time[-1], train.event[-1] = max(train.time.max(), test.time.max()) + 1, True
    return train, test, rng.standard_normal(n).round(1), rng.standard_normal(n).round(1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("attribute", ["age", "race"])
def test_evaluate_equals_the_formulas(seed, attribute):
    train, test, train_scores, scores = two_parts(seed)
    raw = train.X.to_numpy()
    medians = np.nanmedian(raw, axis=0)
    filled = np.where(np.isnan(raw), medians, raw)
    scaled = np.where(test.X.isna(), medians, test.X)
    scaled = (scaled - filled.mean(0)) / filled.std(0)
    outcome, learnt = (test.time, test.event), (train.time, train.event)
    start = max(train.time.min(), test.time.min())
    times = start + (test.time.max() - start) * np.arange(50) / 50
    curves = literal.breslow_survival(train_scores, *learnt, scores, times)
    h, codes = np.exp(scores), test.groups[attribute]
    f_i = literal.individual_fairness(h, scaled)
    f_g = literal.group_fairness(h, codes)
    f_cap = literal.intersectional_fairness(h, np.column_stack(list(test.groups.values())))
    expected = {
        "c_index": literal.concordance_index(scores, *outcome),
        "auc": literal.cumulative_auc(*learnt, scores, *outcome),
        "lpl": literal.log_partial_likelihood(literal.cox_losses(scores, *outcome), test.event),
        "ibs": literal.integrated_brier_score(*learnt, curves, *outcome, times),
        "f_i": f_i,
        "f_g": f_g,
        "f_cap": f_cap,
        "f_a": literal.average_fairness(f_i, f_g, f_cap),
        "ci_percent": literal.concordance_imparity(scores, *outcome, codes),
    }
    got = drocox.evaluate(train, test, train_scores, scores, attribute)
    assert list(got) == list(expected)
    assert all(type(value) is float for value in got.values())
    for key, value in expected.items():
        assert got[key] == pytest.approx(value, rel=1e-10, abs=1e-10), key
    tensors = torch.from_numpy(train_scores), torch.from_numpy(scores)
    assert drocox.evaluate(train, test, *tensors, attribute) == got


def test_evaluation_scales_by_the_training_part_only():
    train, test, train_scores, scores = two_parts(1)
    before = drocox.evaluate(train, test, train_scores, scores, "age")
    units = replace(test, X=test.X * 100.0)  # the test part in other units than training
    assert drocox.evaluate(train, units, train_scores, scores, "age")["f_i"] != before["f_i"]
    both = replace(train, X=train.X * 100.0)
    moved = drocox.evaluate(both, units, train_scores, scores, "age")
    assert moved == pytest.approx(before, rel=1e-12)
    first, second = scaled_features(train, test)
    assert_standard(first)
    assert np.abs(second.mean(0)).max() > 1e-3


def test_judge_of_all_attributes():
    train, test, train_scores, scores = two_parts(2)
    X = scaled_features(train, test)[1]
    order = preparation.introsort_order(test.time)[::-1]
    judge = Judge(train, test, X, ties="order", order=order)
    train_scores = train_scores + 1.5
    fair = judge.fairness(train_scores, scores)
    exact = judge.accuracy(train_scores, scores, train_scores * 0.5)
    for suffix, h in (("", np.exp(scores)), ("_centred", np.exp(scores - train_scores.mean()))):
        assert fair[f"f_i{suffix}"] == pytest.approx(literal.individual_fairness(h, X), abs=1e-12)
        expected = literal.intersectional_fairness(h, test.group_matrix)
        assert fair[f"f_cap{suffix}"] == pytest.approx(expected, abs=1e-12)
        for name, codes in test.groups.items():
            expected = literal.group_fairness(h, codes)
            assert fair[f"f_g{suffix}_{name}"] == pytest.approx(expected, abs=1e-12)
    for name, codes in test.groups.items():
        expected = literal.concordance_imparity(scores, test.time, test.event, codes)
        assert fair[f"ci_percent_{name}"] == pytest.approx(expected, abs=1e-10)
    losses = literal.cox_losses_order(scores, test.time, test.event)
    expected = literal.log_partial_likelihood(losses, test.event)
    assert exact["lpl"] == pytest.approx(expected, abs=1e-12)
    learnt = (train.time, train.event)
    curves = literal.breslow_survival(train_scores * 0.5, *learnt, scores, judge.times)[order]
    expected = literal.integrated_brier_score(*learnt, curves, test.time, test.event, judge.times)
    assert exact["ibs_misaligned"] == pytest.approx(expected, rel=1e-10)
    assert exact["ibs"] != exact["ibs_misaligned"]


BAD = [
    ("attribute", "sex", "unknown attribute 'sex'; choose one of: age, race"),
    ("attribute", None, "unknown attribute None; choose one of: age, race"),
    ("test_scores", np.full(40, np.nan), "test_scores holds 40 NaN or infinite"),
    ("test_scores", np.full(40, np.inf), "test_scores holds 40 NaN or infinite"),
    ("test_scores", np.zeros(39), "test_scores has 39, test has 40; pass one value per patient"),
    ("test_scores", [], "test_scores is empty"),
    ("train_scores", np.full(40, np.nan), "train_scores holds 40 NaN"),
    ("train_scores", np.zeros(41), "train_scores has 41, train has 40; pass one value"),
    ("train_scores", np.zeros((1, 40)), "train_scores must have 1 dimension"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_evaluate_refuses_bad_input_by_name(name, value, message):
    train, test, train_scores, scores = two_parts(0)
    arguments = {"train_scores": train_scores, "test_scores": scores, "attribute": "age"}
    with pytest.raises((ValueError, TypeError), match=message):
        drocox.evaluate(train, test, **{**arguments, name: value})
