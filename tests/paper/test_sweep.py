"""The sweep on a small part of the protocol: resuming, refusing, verifying, and a dask cluster."""

import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import fresh
import invented
import numpy as np
import pandas as pd
import pytest
import threadpoolctl
import torch

from drocox.paper import provenance, runner, store, sweep
from drocox.paper.protocol import KEYS, Stack, stacks
from drocox.paper.run import TWICE

pytestmark = pytest.mark.slow

SMALL = {"datasets": ("seer",), "methods": ("Cox", "Cox_G(Keya)"), "repeats": (1,)}
OPTIONS = "--dataset seer --method Cox Cox_G(Keya) --repeats 1 --out"
COMMAND = ["-m", "drocox.cli", "sweep", *OPTIONS.split()]


def made_up(stack):
    """Invented rows of a stack, of runs that are stable where that is measured."""
    measured = stack.repeat in TWICE
    return invented.rows_of(stack).assign(moved=0.0 if measured else np.nan)


def bodies(out):
    """Rows of every finished stack, byte for byte, without the header that tells what it cost."""
    folder = out / "parts" / "as_published"
    return {p.name: p.read_bytes().partition(b"\n")[2] for p in sorted(folder.glob("*.csv"))}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    assert sweep.sweep("as_published", **SMALL, jobs=1, out=out, progress=False) == 3 + 2 * 9
    return out


def test_a_second_run_has_nothing_to_do(undisturbed):
    assert sweep.sweep("as_published", **SMALL, jobs=1, out=undisturbed, progress=False) == 0


def test_a_sweep_killed_three_times_ends_with_the_same_bytes(undisturbed, tmp_path):
    def started(jobs):
        command = [*COMMAND, tmp_path, "--jobs", jobs]
        return fresh.start(*command, outputs=(os.devnull, os.devnull))

    def killed(process):
        with suppress(ProcessLookupError):  # if it has ended meanwhile
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    for seconds in np.random.default_rng(5).uniform(0.5, 3, size=2):
        process = started(jobs=1)
        time.sleep(seconds)
        killed(process)
    before = bodies(tmp_path)
    process = started(jobs=2)
    while bodies(tmp_path) == before and process.poll() is None:
        time.sleep(0.1)
    killed(process)  # with two processes at work, when the first has come to an end
    sweep.sweep("as_published", **SMALL, jobs=1, out=tmp_path, progress=False)
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


def spent():
    """What a made-up stack cost."""
    return {"cpu": 1.0, "peak": 0.5, "wall": 0.5}


def test_parts_of_other_code_are_refused_and_can_be_revalidated(undisturbed, tmp_path, monkeypatch):
    stack = Stack("as_published", "seer", "Cox", 1)
    _, rows = store.load_part(undisturbed, stack)
    one = {"datasets": ("seer",), "methods": ("Cox",), "repeats": (1,)}
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "code_hash", lambda name: "0" * 16)
        store.save_part(tmp_path, stack, rows, **spent())
    for refused in (
        lambda: sweep.sweep("as_published", **one, out=tmp_path, progress=False),
        lambda: store.load_runs("as_published", out=tmp_path),
    ):
        advice = f"delete it and run .* without --revalidate; .*--revalidate --out {tmp_path}"
        with pytest.raises(store.StoreError, match=advice):
            refused()
    assert sweep.revalidate("as_published", out=tmp_path) == []
    assert sweep.sweep("as_published", **one, out=tmp_path, progress=False) == 0
    rows.loc[0, "test_auc"] += 1e-4
    store.save_part(tmp_path, stack, rows, **spent())
    problems = sweep.revalidate("as_published", out=tmp_path)
    assert len(problems) == 1 and "test_auc" in problems[0] and stack.name in problems[0]


def test_nothing_is_stamped_that_nobody_can_compare(tmp_path, monkeypatch):
    """Stability is unknown in repeat 4, so agreement would mean nothing."""
    stack = Stack("as_published", "seer", "Cox", 4)
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "code_hash", lambda name: "0" * 16)
        store.save_part(tmp_path, stack, made_up(stack), **spent())
    problems = sweep.revalidate("as_published", out=tmp_path)
    assert len(problems) == 1 and "repeats 1 to 3" in problems[0]
    with pytest.raises(store.StoreError, match="other code or data"):
        store.load_part(tmp_path, stack)


def test_parts_of_other_data_are_refused(undisturbed, tmp_path, monkeypatch):
    stack = Stack("as_published", "seer", "Cox", 1)
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "data_hash", lambda dataset: "0" * 16)
        store.save_part(tmp_path, stack, made_up(stack), **spent())
    with pytest.raises(store.StoreError, match="other code or data"):
        store.load_runs("as_published", out=tmp_path)


def test_an_unfinished_store_gives_what_is_there(undisturbed):
    runs = store.load_runs("as_published", out=undisturbed)
    assert len(runs) == 21
    assert set(runs["method"]) == set(SMALL["methods"])
    stack = Stack("as_published", "seer", "Cox_G(Keya)", 1, "race")
    assert store.rows_of(runs, stack).equals(store.load_part(undisturbed, stack)[1])


def test_parts_are_read_from_a_folder_that_is_given_only(undisturbed, monkeypatch):
    """The book's own store is whole or refused, also while a sweep into it is under way."""
    monkeypatch.setattr(store, "DEFAULT", undisturbed)
    with pytest.raises(store.StoreError, match="no finished 'as_published' runs; run: drocox"):
        store.load_runs("as_published")
    assert len(store.load_runs("as_published", out=undisturbed)) == 21


def test_methods_that_the_protocol_lacks_are_refused_with_those_it_has(tmp_path):
    """Also beside methods that it has: none of them is dropped in silence."""
    for protocol, methods, expected in (
        ("forensic", ["Deep DRO-COX (SPLIT)", "Cox"], "'Cox'; choose one of: Deep DRO-COX (SPLIT)"),
        ("corrected", ["Cox", "rivals"], "'rivals'; choose one of: Cox, Cox_I(Keya)"),
        (
            "beyond",
            ["rivals", "Cox"],
            "'Cox'; choose one of: protection, groups, censoring, rivals, many",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(f"method of {protocol} {expected}")):
            sweep.sweep(protocol, methods=methods, out=tmp_path, progress=False)
    for none in ({"methods": []}, {"datasets": ["seer"], "repeats": []}):
        with pytest.raises(ValueError, match="corrected has none of these"):
            sweep.sweep("corrected", **none, out=tmp_path, progress=False)
    with pytest.raises(
        ValueError, match="choose one of: as_published, corrected, forensic, beyond"
    ):
        sweep.sweep("published", out=tmp_path, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "results"
    with pytest.raises(store.StoreError, match=f"cannot write to {out}.*--out"):
        sweep.sweep("as_published", **SMALL, out=out, progress=False)


def test_an_installed_package_says_where_it_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "own_folder", lambda: Path("results"))
    monkeypatch.setattr(runner, "run_stack", made_up)
    one = {"datasets": ("seer",), "methods": ("Cox",), "repeats": (1,)}
    for stack in stacks("as_published", **one):
        store.save_part(Path("results"), stack, made_up(stack), **spent())
    assert sweep.sweep("as_published", **one, progress=False) == 0
    assert "--out results" in capsys.readouterr().err
    assert (tmp_path / "results" / ".lock").exists()


def test_a_lock_ends_with_the_sweep_and_an_error_in_it_passes(tmp_path):
    with pytest.raises(KeyError), sweep.only_writer(tmp_path):
        raise KeyError
    with sweep.only_writer(tmp_path):
        pass


def test_a_process_that_is_killed_lets_go_of_its_lock(tmp_path):
    code = "import sys, pathlib, time; from drocox.paper.sweep import only_writer\n"
    code += "with only_writer(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(99)"
    printed = tmp_path / "printed"
    folder = tmp_path / "store"
    process = fresh.start("-c", code, folder, outputs=(printed, os.devnull))
    while not (printed.exists() and printed.read_text() == "held\n"):
        assert process.poll() is None
        time.sleep(0.05)
    with pytest.raises(store.StoreError, match="another sweep"), sweep.only_writer(folder):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    with sweep.only_writer(folder):
        pass


def test_windows_tells_no_peak_memory(monkeypatch):
    assert sweep._peak_gb() > 0
    monkeypatch.setitem(sys.modules, "resource", None)
    assert sweep._peak_gb() is None


def test_the_time_of_a_stack_is_that_of_its_thread(monkeypatch):
    """As in a worker of a dask cluster that runs another stack meanwhile."""

    def busy(seconds):
        start = time.thread_time()
        while time.thread_time() - start < seconds:
            pass
        return {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}

    monkeypatch.setattr(runner, "run_stack", lambda stack: busy(0.2))
    other = threading.Thread(target=busy, args=(0.4,))
    start = time.process_time()
    other.start()
    _, threads, spent = sweep._timed(Stack("as_published", "seer", "Cox", 1))
    other.join()
    both = time.process_time() - start  # 0.4 s or more of it are the other thread's
    assert 0.19 < spent["cpu"] < both - 0.35
    assert threads == {1} and torch.get_num_threads() == 1


def test_a_dask_cluster_gives_the_same_rows(undisturbed, tmp_path):
    """Its only worker runs two stacks at once, in two threads."""
    distributed = pytest.importorskip("dask.distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        sweep.sweep("as_published", **SMALL, scheduler=address, out=tmp_path, progress=False)
    assert bodies(tmp_path) == bodies(undisturbed)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    for protocol in ("corrected", "forensic"):
        for stack in stacks(protocol):
            store.save_part(out, stack, made_up(stack), **spent())
        store.finish(out, protocol, sweep.machine())
    return out


@pytest.mark.parametrize(("protocol", "models"), [("corrected", 8280), ("forensic", 1440)])
def test_a_finished_protocol_is_one_file_with_every_model_once(finished, protocol, models):
    runs = store.load_runs(protocol, out=finished)
    assert len(runs) == models
    assert not runs.duplicated(KEYS).any()
    assert not (finished / "parts" / protocol).exists()
    record = store.load_provenance(finished)[protocol]
    assert record["rows"] == models and record["core_hours"] > 0
    assert record["seconds_per_model"]["Deep DRO-COX (SPLIT)"] == round(1 / 18, 2)
    assert sweep.sweep(protocol, out=finished, progress=False) == 0


def test_an_incomplete_protocol_is_not_finished(tmp_path):
    for stack in list(stacks("forensic"))[1:]:
        store.save_part(tmp_path, stack, made_up(stack), **spent())
    with pytest.raises(store.StoreError, match=f"1 stacks .* missing.*--out {tmp_path}"):
        store.finish(tmp_path, "forensic", {})
    assert len(store.load_runs("forensic", out=tmp_path)) == 1440 - 18


@pytest.mark.parametrize("what", ["code_hash", "data_hash"])
def test_parts_of_different_code_or_data_are_not_joined(tmp_path, monkeypatch, what):
    for i, stack in enumerate(stacks("forensic")):
        with monkeypatch.context() as patch:
            if i == 7:
                patch.setattr(provenance, what, lambda name: "0" * 16)
            store.save_part(tmp_path, stack, made_up(stack), **spent())
    with pytest.raises(store.StoreError, match=f"--revalidate --out {tmp_path}"):
        store.finish(tmp_path, "forensic", {})


def test_the_peak_is_that_of_the_parts_where_it_is_known(tmp_path):
    for i, stack in enumerate(stacks("forensic")):
        cost = spent() | {"peak": None if i else 0.25}
        store.save_part(tmp_path, stack, made_up(stack), **cost)
    store.finish(tmp_path, "forensic", {})
    assert store.load_provenance(tmp_path)["forensic"]["peak_gb_per_worker"] == 0.25


def test_runs_are_the_callers_own(finished):
    runs = store.load_runs("corrected", out=finished)
    before = runs["test_auc"].copy()
    runs["test_auc"] = 0.0
    assert store.load_runs("corrected", out=finished)["test_auc"].equals(before)


@pytest.mark.parametrize("protocol", ["corrected", "forensic"])
def test_verify_says_what_is_missing_or_different(finished, monkeypatch, protocol):
    monkeypatch.setattr(runner, "run_stack", made_up)
    assert sweep.verify(protocol, out=finished) == []
    runs = store.load_runs(protocol, out=finished)
    same = (runs["dataset"] == "seer") & (runs["repeat"] == 3)
    same &= runs["method"] == "Deep DRO-COX (SPLIT)"
    name = f"{protocol},seer,nonlinear,Deep DRO-COX (SPLIT),,3,0.01,,0.1,0.5,2"
    other = runs.assign(alpha=runs["alpha"].mask(same & (runs["alpha"] == 0.1), 0.11))
    for changed, problems in (
        (runs[~same], [f"18 models missing, for example {name}"]),
        (pd.concat([runs, runs[same]]), [f"18 models too many, for example {name}"]),
        (other, [f"3 models missing, for example {name}",
                 f"3 models too many, for example {name.replace('0.1,', '0.11,')}"]),
    ):  # fmt: skip
        monkeypatch.setattr(store, "load_runs", lambda protocol, out, found=changed: found)
        assert sweep.verify(protocol, out=finished) == problems
    changed = runs.assign(test_auc=runs["test_auc"] + 2e-6)
    monkeypatch.setattr(store, "load_runs", lambda protocol, out: changed)
    problems = sweep.verify(protocol, out=finished)
    assert len(problems) == {"corrected": 4, "forensic": 1}[protocol]
    assert all("test_auc: 2e-06 apart" in problem for problem in problems)


@pytest.mark.parametrize(("protocol", "size"), [("corrected", 4), ("forensic", 1)])
def test_verify_passes_over_stacks_that_are_not_stable(finished, monkeypatch, protocol, size):
    order = runner.drawn(store.load_runs(protocol, out=finished), protocol)
    shaky = {order[0], order[2]}
    again = []

    def run(stack):
        again.append(stack)
        return made_up(stack).assign(moved=1e-8) if stack in shaky else made_up(stack)

    monkeypatch.setattr(runner, "run_stack", run)
    assert sweep.verify(protocol, out=finished) == []
    assert again == order[: 6 if size == 4 else 2]
    shaky |= set(order)
    problems = sweep.verify(protocol, out=finished)
    assert len(problems) == 1 and "no stable runs of repeats 1 to 3" in problems[0]


def test_a_damaged_or_absent_store_is_named(finished, tmp_path):
    advice = f"drocox sweep --protocol as_published --out {finished}"
    with pytest.raises(store.StoreError, match=advice):
        store.load_runs("as_published", out=finished)
    assert any(advice in p for p in sweep.verify("as_published", out=finished))
    for name in ("corrected.csv.gz", "provenance.json"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    file = tmp_path / "corrected.csv.gz"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(store.StoreError, match=f"truncated.*--out {tmp_path}"):
        store.load_runs("corrected", out=tmp_path)
    assert any("truncated" in p for p in sweep.verify("corrected", out=tmp_path))


@pytest.mark.parametrize("what", ["code_hash", "data_hash"])
def test_runs_of_other_code_or_data_are_refused(finished, monkeypatch, what):
    store.load_runs("corrected", out=finished)  # and what is in memory is refused, too
    monkeypatch.setattr(provenance, what, lambda name: "0" * 16)
    for refused in (
        lambda: store.load_runs("corrected", out=finished),
        lambda: sweep.sweep("corrected", out=finished, progress=False),
    ):
        with pytest.raises(store.StoreError, match=f"--revalidate --out {finished}"):
            refused()
    problems = sweep.verify("corrected", out=finished)
    assert len(problems) == 1 and f"--revalidate --out {finished}" in problems[0]


def test_a_finished_store_can_be_revalidated(finished, tmp_path, monkeypatch):
    for name in ("forensic.csv.gz", "provenance.json"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    monkeypatch.setattr(runner, "run_stack", made_up)
    monkeypatch.setattr(provenance, "code_hash", lambda name: "1" * 16)
    assert not store.is_current("forensic", tmp_path)
    assert sweep.revalidate("forensic", out=tmp_path) == []
    assert store.is_current("forensic", tmp_path)
    assert store.load_provenance(tmp_path)["forensic"]["rows"] == 1440


@pytest.mark.parametrize(("gap", "apart"), [(9e-7, False), (1.1e-6, True), (2e-5, True)])
@pytest.mark.parametrize("size", [0.5, 30.0])
def test_differences_are_those_beyond_a_millionth(gap, apart, size):
    rows = pd.DataFrame({"a": [size, size], "moved": [0.0, 1e-9]})
    again = rows.assign(a=[size, size + gap * max(1, size)])
    assert bool(sweep.differences(rows, again)) is apart


@pytest.mark.parametrize("moved", [1.1e-9, np.nan])
def test_differences_are_those_of_runs_that_hold_their_digits(moved):
    """Not of one that moved, were its c-index stable, nor of one that was not measured."""
    rows = pd.DataFrame({"a": [1.0, 2.0], "moved": [0.0, moved], "unstable": [0, 0]})
    again = rows.assign(a=[1.0 + 1e-8, 5.0])
    assert sweep.differences(rows, again) == []
    assert sweep.differences(rows, rows.assign(a=[1.1, 2.0])) == ["a: 0.1 apart"]
    assert sweep.differences(rows, rows.head(1)) == [
        "other rows or columns: (2, 3) stored, (1, 3) computed"
    ]


def test_differences_are_those_of_all_columns():
    rows = pd.DataFrame({"a": [1.0], "moved": [0.0], "unstable": [0]})
    for other in (rows.drop(columns="a"), rows.drop(columns="unstable"), rows.assign(b=1.0)):
        assert "other rows or columns" in sweep.differences(other, rows)[0]
        assert "other rows or columns" in sweep.differences(rows, other)[0]
    assert sweep.differences(rows, rows.assign(unstable=1)) == ["unstable: 1 apart"]
    assert sweep.differences(rows, rows.assign(moved=1e-10)) == []  # it is noise
    assert "no row is stable" in sweep.differences(rows, rows.assign(moved=1e-8))[0]


def test_differences_know_infinity_and_nothing():
    rows = pd.DataFrame({"a": [np.inf, np.nan], "moved": [0.0, 0.0]})
    assert sweep.differences(rows, rows) == []
    assert sweep.differences(rows, rows.assign(a=[1.0, np.nan])) == ["a: inf apart"]
    assert sweep.differences(rows, rows.assign(a=[np.inf, 1.0])) == ["a: nan apart"]


def test_a_sample_is_linear_and_follows_the_code(monkeypatch):
    def keys(protocol, **which):
        return pd.DataFrame([key for s in stacks(protocol, **which) for key in s.keys()])

    runs = keys("corrected").query("method != 'DRO-COX'")
    drawn = runner.drawn(runs, "corrected")
    assert all(s.model == "linear" and s.repeat in TWICE for s in drawn)
    assert "DRO-COX (SPLIT)" in {s.method for s in drawn}
    assert not {"DRO-COX", "Cox_I(Keya)"} & {s.method for s in drawn}
    assert len(set(drawn)) == len(drawn) == 93
    monkeypatch.setattr(provenance, "code_hash", lambda name: "1" * 16)
    assert runner.drawn(runs, "corrected") != drawn
    networks = runner.drawn(keys("forensic"), "forensic")
    assert [s.dataset for s in networks] == ["seer"] * 3 + ["flc"] * 18 + ["support"] * 3
    assert {s.repeat for s in networks} == set(TWICE)
    assert runner.drawn(keys("forensic", repeats=(4,)), "forensic") == []


def test_the_dearest_stacks_come_first():
    order = sorted(stacks("corrected", repeats=(1,)), key=runner.cost, reverse=True)
    assert order[0].method == "DeepSurv_I(Keya)"
    assert order[-1].method == "Cox"
