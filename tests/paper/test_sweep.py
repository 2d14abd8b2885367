"""The sweep: resuming, extending, refusing, verifying."""

import gzip
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, replace

import fresh
import numpy as np
import pandas as pd
import pytest

from drocox.beyond import run as beyond
from drocox.paper import store, sweep
from drocox.paper.protocol import Stack
from drocox.paper.store import Store

pytestmark = pytest.mark.slow

SMALL = {"datasets": ("seer",), "methods": ("Cox", "Cox_G(Keya)"), "repeats": (4,)}
OPTIONS = "--dataset seer --method Cox Cox_G(Keya) --repeats 4 --out"
COMMAND = ["-m", "drocox.cli", "sweep", *OPTIONS.split()]


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


def test_a_sweep_that_was_killed_ends_with_the_same_bytes(undisturbed, tmp_path):
    """A killed process releases its lock."""
    process = fresh.start(*COMMAND, tmp_path, "--jobs", 1, outputs=(os.devnull, os.devnull))
    while not bodies(tmp_path) and process.poll() is None:
        time.sleep(0.05)
    with suppress(ProcessLookupError):  # if it has ended meanwhile
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    sweep.sweep("as_published", **SMALL, jobs=1, out=tmp_path, progress=False)
    assert bodies(tmp_path) == bodies(undisturbed)


def test_an_unfinished_store_returns_its_finished_rows(undisturbed, monkeypatch):
    runs = store.load_runs("as_published", out=undisturbed)
    assert len(runs) == 21 and set(runs["method"]) == set(SMALL["methods"])
    stack = Stack("as_published", "seer", "Cox_G(Keya)", 4, "race")
    part = Store(undisturbed, "as_published").load_part(stack.name)[1]
    assert store.rows_of(runs, stack).equals(part)
    monkeypatch.setattr(store, "DEFAULT", undisturbed)  # the book's own is whole or refused
    with pytest.raises(store.StoreError, match="no finished 'as_published' runs; run: drocox"):
        store.load_runs("as_published")


def test_names_that_the_protocol_lacks_are_refused_with_those_it_has(tmp_path):
    """Also beside names that it has: none of them is dropped in silence."""
    how = {"out": tmp_path, "progress": False}
    with pytest.raises(ValueError, match=re.escape("'Cox'; choose one of: Deep DRO-COX (SPLIT)")):
        sweep.sweep("forensic", methods=["Deep DRO-COX (SPLIT)", "Cox"], **how)
    with pytest.raises(ValueError, match="'Cox'; choose one of: protection, groups, censoring"):
        beyond.sweep(methods=["rivals", "Cox"], **how)
    with pytest.raises(ValueError, match="corrected has none of these"):
        sweep.sweep("corrected", methods=[], **how)
    with pytest.raises(ValueError, match="choose one of: as_published, corrected, forensic"):
        sweep.sweep("published", **how)
    with pytest.raises(ValueError, match=r"unknown data set 'seers'; .*flc, support, seer"):
        sweep.sweep("corrected", datasets=["seers"], **how)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "results"
    with pytest.raises(store.StoreError, match=f"cannot write to {out}.*--out"):
        sweep.sweep("as_published", **SMALL, out=out, progress=False)


def test_of_two_sweeps_one_is_refused(tmp_path):
    with sweep.only_writer(tmp_path), pytest.raises(store.StoreError, match="another sweep"):
        sweep.sweep("as_published", **SMALL, out=tmp_path, progress=False)


# A store of small jobs: finishing, extending, verifying.


@dataclass(frozen=True)
class Small:
    """A job with two rows, of which the second is not stable."""

    dataset: str
    repeat: int
    method: str = "small"

    @property
    def name(self):
        return f"{self.dataset}-{self.repeat}"

    def keys(self):
        return [{"dataset": self.dataset, "repeat": self.repeat, "row": row} for row in (0, 1)]


def small_rows(job, shift=0.0, moved=(0.0, 1.0)):
    metric = job.repeat / 3 + shift
    rows = pd.DataFrame(job.keys()).assign(metric=[metric, 5.0], moved=moved)
    return rows.assign(word="a", method=job.method)


def small_plan(out, repeats=(1, 2), run=small_rows):
    jobs = [Small(name, repeat) for name in ("a", "b") for repeat in repeats]
    return sweep.Plan(Store(out, "corrected"), jobs, run, jobs[:1])


HOW = {"jobs": 1, "progress": False}


@pytest.fixture
def finished(tmp_path):
    what = small_plan(tmp_path)
    assert sweep.train_missing(what, what.jobs[2:], **HOW) == 4
    assert not what.store.is_finished()
    assert sweep.train_missing(what, **HOW) == 4
    return what


def test_a_finished_store_is_one_file_in_the_order_of_the_jobs(finished, tmp_path):
    runs = store.load_runs("corrected", out=tmp_path)
    assert runs["dataset"].tolist() == list("aaaabbbb") and not finished.store.parts.exists()
    record = store.load_provenance(tmp_path)["corrected"]
    assert record["rows"] == 8 and {"commit", "machine", "packages", "data"} <= set(record)
    assert sweep.train_missing(finished, **HOW) == 0


def test_a_new_job_is_added_to_a_finished_store(finished, tmp_path):
    """In its place; rows that are there are not trained again."""
    before = finished.store.read()

    def run(job):
        assert job.repeat == 3
        return small_rows(job)

    assert sweep.train_missing(small_plan(tmp_path, (1, 3, 2), run), **HOW) == 4
    runs = finished.store.read()
    assert runs["repeat"].tolist() == [1, 1, 3, 3, 2, 2] * 2
    assert runs[runs["repeat"] != 3].reset_index(drop=True).equals(before)
    assert store.load_provenance(tmp_path)["corrected"]["rows"] == 12


def test_new_rows_beside_a_finished_store_are_read_before_all_are_there(finished, tmp_path):
    """A stack that is trained again replaces its rows; the rest of the file stays."""
    before = finished.store.read()
    more = small_plan(tmp_path, (1, 2, 3), lambda job: small_rows(job, shift=1))
    new = more.jobs[2]
    assert sweep.train_missing(more, [new], **HOW, dry_run=True) == 2
    assert len(store.load_runs("corrected", out=tmp_path)) == 8  # a dry run trains nothing
    assert sweep.train_missing(more, [new], **HOW) == 2
    runs = store.load_runs("corrected", out=tmp_path)
    assert runs.head(8).equals(before) and len(store.rows_of(runs, new)) == 2
    more.store.save_part(more.jobs[0], small_rows(more.jobs[0], shift=1), cpu=0, wall=0, peak=None)
    runs = store.load_runs("corrected", out=tmp_path)
    assert len(runs) == 10 and store.rows_of(runs, more.jobs[0])["metric"].tolist()[0] > 1
    assert sweep.train_missing(more, **HOW, dry_run=True) == 2


def test_a_deleted_file_is_made_again(finished, tmp_path):
    finished.store.file.unlink()
    with pytest.raises(store.StoreError, match=f"run: .* --protocol corrected --out {tmp_path}"):
        store.load_runs("corrected", out=tmp_path)
    assert sweep.train_missing(finished, **HOW) == 8
    assert len(store.load_runs("corrected", out=tmp_path)) == 8


def truncated(content):
    return content[:-20]


def edited(content):
    return gzip.compress(gzip.decompress(content).replace(b"0.333", b"0.444", 1))


@pytest.mark.parametrize("damage", [truncated, edited])
def test_a_damaged_file_is_refused_by_name(finished, tmp_path, damage):
    finished.store.file.write_bytes(damage(finished.store.file.read_bytes()))
    advice = f"corrected.csv.gz is truncated.* delete it and run: .*--out {tmp_path}"
    for use in (finished.store.read, lambda: sweep.train_missing(finished, **HOW)):
        with pytest.raises(store.StoreError, match=advice):
            use()
    assert re.search(advice, sweep.verify("corrected", out=tmp_path)[0])


@pytest.mark.parametrize("damage", [lambda b: b[:-4], lambda b: b.replace(b"0.333", b"0.444", 1)])
def test_a_damaged_part_is_named_and_computed_again(tmp_path, capsys, damage):
    what = small_plan(tmp_path)
    sweep.train_missing(what, what.jobs[:1], **HOW)
    path = what.store.parts / "a-1.csv"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(store.StoreError, match=r"a-1\.csv is truncated or was edited"):
        store.load_runs("corrected", out=tmp_path)
    assert sweep.train_missing(what, what.jobs[:1], **HOW) == 2
    assert "recomputing: " in capsys.readouterr().err


def test_verify_finds_stable_rows_that_differ(finished):
    verdict = sweep.verify_plan(finished, **HOW)
    assert verdict.problems == []
    assert verdict.lines[0].startswith("stable: 1 of 1 rows agree") and "1 rows" in verdict.lines[1]

    def wrong(job):
        return small_rows(job, shift=2e-6)

    verdict = sweep.verify_plan(replace(finished, run=wrong), **HOW)
    assert verdict.problems == ["a-1: metric: 2e-06 apart"]

    def shaky(job):
        return small_rows(job, shift=0.1, moved=(1e-8, 1.0))

    verdict = sweep.verify_plan(replace(finished, run=shaky), **HOW)
    assert verdict.problems == [] and "no stable row to compare: a-1" in verdict.lines


def test_verify_names_rows_that_are_missing_or_too_many(finished, tmp_path):
    (problem,) = sweep.verify_plan(small_plan(tmp_path, (1, 2, 3)), **HOW).problems
    assert problem.startswith("4 models missing, for example a,3,0")
    (problem,) = sweep.verify_plan(small_plan(tmp_path, (1,)), **HOW).problems
    assert problem.startswith("4 models too many, for example a,2,0")


def test_verify_of_everything_is_resumed(finished, tmp_path, capsys):
    """Jobs that were trained before an interruption are not trained again."""
    done = []

    def interrupted(job):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job)
        return small_rows(job, shift=0.1 if job.dataset == "b" else 0)

    again = tmp_path / "again"
    how = {**HOW, "everything": again}
    with pytest.raises(KeyboardInterrupt):
        sweep.verify_plan(replace(finished, run=interrupted), **how)
    verdict = sweep.verify_plan(finished, **how)
    assert "2 of 4 jobs were trained before" in capsys.readouterr().out
    wrong = sum(job.dataset == "b" for job in done)
    assert bool(verdict.problems) == bool(wrong)
    assert verdict.lines[0].startswith(f"stable: {4 - wrong} of 4 rows agree")
    assert len(finished.store.read()) == 8


# Comparing rows.


@pytest.mark.parametrize(("gap", "apart"), [(9e-7, False), (1.1e-6, True)])
@pytest.mark.parametrize("size", [0.5, 30.0])
def test_differences_are_those_beyond_a_millionth(gap, apart, size):
    rows = pd.DataFrame({"a": [size, size], "moved": [0.0, 1e-9]})
    again = rows.assign(a=[size, size + gap * max(1, size)])
    assert bool(sweep.differences(rows, again)) is apart


@pytest.mark.parametrize("moved", [1.1e-9, np.nan])
def test_only_stable_runs_are_compared(moved):
    """Not of one that moved, were its c-index stable, nor of one that was not measured."""
    rows = pd.DataFrame({"a": [1.0, 2.0], "moved": [0.0, moved], "unstable": [0, 0]})
    assert sweep.differences(rows, rows.assign(a=[1.0 + 1e-8, 5.0])) == []
    assert sweep.differences(rows, rows.assign(a=[1.1, 2.0])) == ["a: 0.091 apart"]
    assert sweep.differences(rows, rows.head(1)) == ["2 rows stored, 1 computed"]
    assert "no row is stable" in sweep.differences(rows, rows.assign(moved=1e-8))[0]


def test_differences_in_words_infinities_and_absent_columns_are_found():
    rows = pd.DataFrame({"a": [np.inf, np.nan], "b": ["x", None], "moved": [0.0, 0.0]})
    assert sweep.differences(rows, rows) == []
    assert sweep.differences(rows, rows.assign(a=[1.0, np.nan])) == ["a: inf apart"]
    assert sweep.differences(rows, rows.assign(a=[np.inf, 1.0])) == ["a: inf apart"]
    assert sweep.differences(rows, rows.assign(b="x")) == ["b: inf apart"]
    assert sweep.differences(rows, rows.drop(columns="a")) == ["a: inf apart"]
