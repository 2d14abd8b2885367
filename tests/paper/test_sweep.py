"""The sweep on a small part of the protocol: resuming, refusing, verifying, and a dask cluster."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from drocox.paper import store, sweep
from drocox.paper.protocol import Stack, stacks

SMALL = {"datasets": ("seer",), "methods": ("Cox", "Cox_G(Keya)"), "repeats": (1, 2)}
COMMAND = [
    sys.executable,
    "-m",
    "drocox.cli",
    "sweep",
    "--dataset",
    "seer",
    "--method",
    "Cox",
    "Cox_G(Keya)",
    "--repeats",
    "1",
    "2",
    "--jobs",
    "2",
    "--out",
]


def bodies(out):
    """Rows of every finished stack, byte for byte, without the header that tells what it cost."""
    folder = out / "parts" / "as_published"
    return {p.name: p.read_bytes().partition(b"\n")[2] for p in sorted(folder.glob("*.csv"))}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    assert sweep.sweep("as_published", **SMALL, jobs=2, out=out, progress=False) == 2 * 3 + 4 * 9
    return out


def test_a_second_run_has_nothing_to_do(undisturbed):
    assert sweep.sweep("as_published", **SMALL, jobs=1, out=undisturbed, progress=False) == 0


def test_a_sweep_killed_five_times_ends_with_the_same_bytes(undisturbed, tmp_path):
    pause = np.random.default_rng(5).uniform(3, 12, size=5)
    for seconds in pause:
        process = subprocess.Popen(
            [*COMMAND, str(tmp_path)],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    sweep.sweep("as_published", **SMALL, jobs=2, out=tmp_path, progress=False)
    assert bodies(tmp_path) == bodies(undisturbed)


def test_a_second_writer_is_refused(tmp_path):
    with sweep.only_writer(tmp_path), pytest.raises(store.StoreError, match="another sweep"):
        sweep.sweep("as_published", **SMALL, out=tmp_path, progress=False)


@pytest.mark.parametrize("damage", [lambda b: b[:-40], lambda b: b.replace(b",0.", b",1.", 1)])
def test_a_damaged_part_is_named_and_computed_again(undisturbed, tmp_path, capsys, damage):
    stack = Stack("as_published", "seer", "Cox", 1)
    whole = store.part_path(undisturbed, stack).read_bytes()
    path = store.part_path(tmp_path, stack)
    path.parent.mkdir(parents=True)
    path.write_bytes(damage(whole))
    with pytest.raises(store.StoreError, match=path.name):
        store.load_part(tmp_path, stack)
    trained = sweep.sweep(
        "as_published",
        datasets=("seer",),
        methods=("Cox",),
        repeats=(1,),
        jobs=1,
        out=tmp_path,
        progress=False,
    )
    assert trained == 3
    assert path.name in capsys.readouterr().err
    assert path.read_bytes().partition(b"\n")[2] == whole.partition(b"\n")[2]


def test_parts_of_other_code_are_refused_and_can_be_revalidated(undisturbed, tmp_path, monkeypatch):
    stack = Stack("as_published", "seer", "Cox", 1)
    _, rows = store.load_part(undisturbed, stack)
    one = {"datasets": ("seer",), "methods": ("Cox",), "repeats": (1,)}
    with monkeypatch.context() as patch:
        patch.setattr(store, "code_hash", lambda: "0" * 16)
        store.save_part(tmp_path, stack, rows, cpu=1.0, peak=1.0, wall=1.0)
    with pytest.raises(store.StoreError, match="--revalidate"):
        sweep.sweep("as_published", **one, out=tmp_path, progress=False)
    monkeypatch.setattr(sweep, "_sample", lambda protocol, size: [stack])
    assert sweep.revalidate("as_published", out=tmp_path, progress=False) == []
    assert sweep.sweep("as_published", **one, out=tmp_path, progress=False) == 0
    rows.loc[0, "test_auc"] += 1e-4
    store.save_part(tmp_path, stack, rows, cpu=1.0, peak=1.0, wall=1.0)
    problems = sweep.revalidate("as_published", out=tmp_path, progress=False)
    assert len(problems) == 1 and "test_auc" in problems[0] and stack.name in problems[0]


def test_a_dask_cluster_gives_the_same_rows(undisturbed, tmp_path):
    distributed = pytest.importorskip("dask.distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        sweep.sweep(
            "as_published",
            **SMALL,
            scheduler=cluster.scheduler_address,
            out=tmp_path,
            progress=False,
        )
    assert bodies(tmp_path) == bodies(undisturbed)


def made_up(stack):
    """Rows of a stack with invented metrics, the same on every call."""
    from drocox.paper.run import KEYS, columns

    rows = stack.grid()
    rows = rows.assign(**{k: getattr(stack, k) for k in KEYS if k not in rows})
    rows = rows.reindex(columns=columns())
    draw = np.random.default_rng(sum(stack.name.encode()) + stack.repeat)
    for column in columns()[len(KEYS) : -1]:
        rows[column] = draw.uniform(0.5, 0.9, len(rows))
    return rows.assign(unstable=0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    for stack in stacks("corrected"):
        store.save_part(out, stack, made_up(stack), cpu=1.0, peak=0.5, wall=0.5)
    store.finish(out, "corrected", sweep.machine())
    return out


def test_a_finished_protocol_is_one_file_with_every_model_once(finished):
    runs = store.load_runs("corrected", out=finished)
    assert len(runs) == 8280
    assert not runs.duplicated(store.KEYS).any()
    assert not (finished / "parts" / "corrected").exists()
    record = store.load_provenance(finished)["corrected"]
    assert record["rows"] == 8280 and record["core_hours"] > 0


def test_verify_says_what_is_missing_or_different(finished, monkeypatch):
    monkeypatch.setattr(sweep, "run_stack", made_up)
    assert sweep.verify("corrected", out=finished, progress=False) == []
    runs = store.read_runs("corrected", finished)
    lost = runs.drop(index=runs.index[(runs["method"] == "DRO-COX") & (runs["repeat"] == 3)])
    monkeypatch.setattr(store, "read_runs", lambda protocol, out: lost)
    problems = sweep.verify("corrected", out=finished, progress=False)
    assert any("seer_dro-cox_r3: 0 of 18" in p for p in problems)
    changed = runs.assign(test_auc=runs["test_auc"] + 1e-3)
    monkeypatch.setattr(store, "read_runs", lambda protocol, out: changed)
    problems = sweep.verify("corrected", out=finished, progress=False)
    assert problems and all("test_auc" in p for p in problems)


def test_a_damaged_or_absent_store_is_named(finished, tmp_path):
    with pytest.raises(store.StoreError, match="drocox sweep --protocol as_published"):
        store.load_runs("as_published", out=finished)
    for name in ("corrected.csv.gz", "provenance.json"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    file = tmp_path / "corrected.csv.gz"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(store.StoreError, match="truncated"):
        store.load_runs("corrected", out=tmp_path)


def test_runs_of_other_code_are_refused(finished, monkeypatch):
    store._load.cache_clear()
    monkeypatch.setattr(store, "code_hash", lambda: "0" * 16)
    with pytest.raises(store.StoreError, match="--revalidate"):
        store.load_runs("corrected", out=finished)


def test_the_hash_of_the_code_sees_code_and_nothing_else(tmp_path, monkeypatch):
    source = 'def f(x):\n    """Doc."""\n    return x + 1  # why\n'
    same = 'def f(x):\n    """Other words."""\n    # because\n    return x + 1\n'
    other = source.replace("+ 1", "+ 2")
    monkeypatch.setattr(store, "DECIDING", ("only",))
    monkeypatch.setattr(store, "__file__", str(tmp_path / "results.py"))
    found = []
    for text in (source, same, other):
        (tmp_path / "only.py").write_text(text)
        store.code_hash.cache_clear()
        found.append(store.code_hash())
    store.code_hash.cache_clear()
    assert found[0] == found[1] != found[2]


def test_differences_ignore_unstable_runs():
    rows = pd.DataFrame({"a": [1.0, 2.0], "unstable": [0, 1]})
    moved = rows.assign(a=[1.0 + 1e-8, 5.0])
    assert sweep.differences(rows, moved) == []
    assert sweep.differences(rows, rows.assign(a=[1.1, 2.0])) == ["a: 0.1 apart"]
