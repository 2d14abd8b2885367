"""Training the runs that a store lacks, and verifying a store by training again.

Jobs go to worker processes through joblib. Every job is computed on one thread, whose CPU time is
recorded as its cost. Only this process writes. A finished job is on disk before the next is taken,
so an interrupted sweep loses the jobs in flight and nothing else.
"""

import os
import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from filelock import FileLock, Timeout
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from drocox import _checks
from drocox.paper import StoreError, store
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES, METHODS, PROCEDURES, Stack, stacks
from drocox.paper.run import TWICE, run_stack
from drocox.paper.store import DamagedError, Job, Store

HELD = 1e-9  # movement of a run's test scores up to which it gives the same digits elsewhere
COARSE = 1e-3  # where stability was not measured, on the kind of machine that made the store
NEAR = 1e-6  # difference up to which recomputed metrics agree; relative where they exceed 1
BAR = "{desc} {percentage:3.0f}%|{bar}| {elapsed} passed, {remaining} left"
PACKAGES = ("numpy", "pandas", "scikit-learn", "scikit-survival", "survivors", "torch", "numba")
STABLE, UNSTABLE, UNKNOWN = "stable", "unstable", "unknown"  # what is known of a run's digits
LISTED = 10  # missing jobs that a dry run names
PATIENTS = {"flc": 5.0, "support": 5.8, "seer": 2.6}  # in a training part, in thousands


@dataclass(frozen=True)
class Plan:
    """The jobs of a store, and how to run them."""

    store: Store
    jobs: Sequence[Job]
    run: Callable[[Any], pd.DataFrame]  # of a job, in a worker
    sample: Sequence[Job]  # to train again in order to verify the store
    cost: Callable[[Any], float] = lambda job: 1.0  # for the order of work and the time left
    # a sample that is trained again in part: how, which rows that gives, and what is wrong with the
    # means of unstable ones, from all stored rows and the new ones
    again: Callable[[Any], pd.DataFrame] | None = None
    part: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    means: Callable[[pd.DataFrame, pd.DataFrame], list[str]] | None = None


def stack_cost(stack: Stack) -> float:
    """Rough cost of a stack, in no particular unit."""
    method = METHODS[stack.method]
    n = PATIENTS[stack.dataset]
    deep = method.model == "nonlinear"
    pairs = n * (2.0 if deep else 0.5) if method.penalty == "keya_i" else 0.0
    step = n * (1 + 2 * deep + (method.loss == "split") + pairs)
    return len(stack.grid()) * step * (2 if stack.repeat in TWICE else 1)


def plan(protocol: str, out: Path | str | None = None) -> Plan:
    """The stacks of a protocol of the paper, and its store in ``out`` (by default the book's).

    The sample for verification has every method once, on the smallest data set, and the cheapest
    stack of each other data set, in the first repeat, in which the stability of every run was
    measured.
    """
    _checks.one_of(protocol, "protocol", PROCEDURES)
    cheapest_first = sorted(stacks(protocol, repeats=TWICE[:1]), key=stack_cost)
    sample: dict[str, Stack] = {}
    for stack in cheapest_first:
        sample.setdefault(stack.method if stack.dataset == "seer" else stack.dataset, stack)
    of_protocol = Store(Path(out or store.DEFAULT), protocol)
    return Plan(of_protocol, list(stacks(protocol)), run_stack, list(sample.values()), stack_cost)


def _peak_gb() -> float | None:
    """Peak memory of this process in GB, or None on Windows."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9, 3)


def _timed(run: Callable[[Job], pd.DataFrame], job: Job) -> tuple[Job, pd.DataFrame, dict]:
    """Run a job in a worker, with its CPU seconds and the worker's peak memory."""
    torch.set_num_threads(1)
    threadpool_limits(1)
    start = time.thread_time()
    rows = run(job)
    return job, rows, {"cpu": round(time.thread_time() - start, 2), "peak": _peak_gb()}


def _commit() -> str | None:
    """The commit of a source checkout, marked if files have been changed since."""
    checkout = str(Path(__file__).parent)
    command = ["git", "-C", checkout, "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:  # no git
        return None
    return done.stdout.strip() or None


def machine() -> str:
    """The kind of machine: system and processor."""
    return f"{platform.system()} {platform.machine()}"


def facts() -> dict:
    """Commit, machine, versions and hashes of the data, to be kept beside a store."""
    installed = {dist.name.lower() for dist in distributions()}
    packages = {name: version(name) for name in PACKAGES if name in installed}
    versions = {"python": platform.python_version(), "packages": packages}
    data = {}
    for name in ATTRIBUTES:
        with suppress(ModuleNotFoundError, RuntimeError):  # some studies do without them
            data[name] = load_dataset(name).sha256[:16]
    where = {"cores": os.cpu_count(), "machine": machine()}
    return {"commit": _commit(), **where, **versions, "data": data}


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """Hold the lock of a folder of stores, or raise a StoreError.

    The system releases the lock however the process ends.
    """
    lock = FileLock(out / ".lock", timeout=0)
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, Timeout) as error:
        advice = "wait if another sweep writes there, or give a folder of your own with --out"
        raise StoreError(f"cannot write to {out} ({error}); {advice}") from None
    try:
        yield
    finally:
        lock.release()


def _stored_rows(of: Store) -> pd.DataFrame:
    """Rows that need no training: finished ones and those of parts; damaged parts are reported."""
    frames = [of.read()] if of.is_finished() else []
    for name in of.part_names():
        try:
            frames.append(of.load_part(name)[1])
        except DamagedError as error:
            print(f"recomputing: {error}", file=sys.stderr)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def missing(jobs: Sequence[Job], rows: pd.DataFrame) -> list[Job]:
    """Jobs with a row that is not stored."""
    columns, wanted = store.job_lines(jobs)
    absent = wanted.loc[~wanted["line"].isin(store.lines(rows, columns)), "job"]
    return [jobs[i] for i in absent.unique()]


def _results(
    what: Plan, todo: Sequence[Job], jobs: int, progress: bool
) -> Iterator[tuple[Job, pd.DataFrame, dict]]:
    """Run jobs in parallel with a progress bar; each is yielded as soon as it is finished."""
    todo = sorted(todo, key=what.cost, reverse=True)  # so that no worker ends long after others
    total = sum(map(what.cost, todo))
    with tqdm(total=total, disable=not progress, smoothing=0.05, bar_format=BAR) as bar:
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        for done in parallel(delayed(_timed)(what.run, job) for job in todo):
            yield done
            bar.set_description(f"{what.store.name} {done[0].name[:40]:40s}")
            bar.update(what.cost(done[0]))


def train_missing(
    what: Plan,
    some: Sequence[Job] | None = None,
    *,
    jobs: int = -1,
    progress: bool = True,
    dry_run: bool = False,
) -> int:
    """Run the jobs of a plan, or ``some`` of them, that the store lacks; return how many models.

    When no job is missing any more, the parts are joined into one file. ``jobs`` is the number of
    worker processes, -1 for one per core. A ``dry_run`` lists and counts them instead.
    """
    of = what.store
    wanted = what.jobs if some is None else some
    if dry_run:
        todo = missing(wanted, _stored_rows(of))
        for job in todo[:LISTED]:
            print(f"{of.name}: {job.name}")
        if len(todo) > LISTED:
            print(f"{of.name}: and {len(todo) - LISTED} more")
        return sum(len(job.keys()) for job in todo)
    with only_writer(of.folder):
        todo = missing(wanted, _stored_rows(of))
        before = time.monotonic()
        for job, rows, spent in _results(what, todo, jobs, progress):
            now = time.monotonic()
            of.save_part(job, rows, **spent, wall=round(now - before, 2))
            before = now
        if of.part_names() and not missing(what.jobs, _stored_rows(of)):
            of.finish(what.jobs, facts())
    return sum(len(job.keys()) for job in todo)


def sweep(
    protocol: str = "as_published",
    *,
    jobs: int = -1,
    out: Path | str | None = None,
    progress: bool = True,
    dry_run: bool = False,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    repeats: Sequence[int] | None = None,
) -> int:
    """Train the models of a protocol that the store lacks, and keep their rows.

    When the whole protocol is there, ``<protocol>.csv.gz`` and ``provenance.json`` are written too.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic"}
        Studies have :func:`drocox.beyond.run.sweep`.
    jobs : int
        Number of worker processes; -1: one per core.
    out : path, optional
        Folder of the store; by default the book's in a source checkout, and ``results`` in the
        current folder where drocox is installed.
    progress : bool
        Whether to show a progress bar.
    dry_run : bool
        Whether only to list and count what is missing.
    datasets, methods, repeats : sequences, optional
        Restrict the sweep; a method that the protocol lacks is refused.

    Returns
    -------
    int
        Number of models trained, or in a dry run those that are missing.
    """
    what = plan(protocol, writable(out))
    wanted = list(stacks(protocol, datasets, methods, repeats))
    if not wanted:
        raise ValueError(f"{protocol} has none of these datasets, methods and repeats together")
    return train_missing(what, wanted, jobs=jobs, progress=progress, dry_run=dry_run)


def writable(out: Path | str | None) -> Path:
    """The folder to write to; an installed package prints its default."""
    if out is None:
        out = store.own_folder()
        if out != store.DEFAULT:
            print(f"writing to {out}/; read it with --out {out}", file=sys.stderr)
    return Path(out)


# Verification: training again, and comparing.


def deviations(stored: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """How far stored and recomputed rows in the same order are apart, column by column.

    Absolute, but relative where values exceed 1; infinite where words differ or one value is
    missing. The index is :data:`STABLE` for runs of which rounding in the initial weights changed
    no test score by more than :data:`HELD`, neither when they were stored nor now; of other runs
    the c-index may be stable, but its digits depend on the platform. The column ``moved``, that
    change, is itself noise and left out.
    """
    if len(stored) != len(new):
        raise StoreError(f"{len(stored)} rows stored, {len(new)} computed")
    a, b = stored.reset_index(drop=True), new.reset_index(drop=True)
    change = np.full(len(a), np.nan)
    if "moved" in a and "moved" in b:
        change = np.maximum(a["moved"].to_numpy(float), b["moved"].to_numpy(float))
    how = np.select([np.isnan(change), change <= HELD], [UNKNOWN, STABLE], UNSTABLE)
    columns = [name for name in dict.fromkeys([*a, *b]) if name != "moved"]
    a, b = a.reindex(columns=columns), b.reindex(columns=columns)
    gaps = {}
    for name in columns:
        if pd.api.types.is_numeric_dtype(a[name]) and pd.api.types.is_numeric_dtype(b[name]):
            x, y = a[name].to_numpy(float), b[name].to_numpy(float)
            with np.errstate(invalid="ignore"):
                gap = np.abs(x - y) / np.maximum(1, np.abs(y))
            same = (x == y) | (np.isnan(x) & np.isnan(y))
        else:
            gap = np.full(len(a), np.inf)
            same = (a[name].fillna("") == b[name].fillna("")).to_numpy()
        gaps[name] = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
    return pd.DataFrame(gaps, index=how)


def _beyond(gaps: pd.DataFrame, how: str, limit: float) -> list[str]:
    """The largest difference of each column that differs by more than a limit."""
    worst = gaps[gaps.index == how].max()
    return [f"{name}: {gap:.2g} apart" for name, gap in worst[worst > limit].items()]


def differences(stored: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Columns of one stack that differ by more than 1e-6 in stable rows, see :func:`deviations`."""
    try:
        gaps = deviations(stored, new)
    except StoreError as error:
        return [str(error)]
    if STABLE not in gaps.index:
        return ["no row is stable enough to be compared"]
    return _beyond(gaps, STABLE, NEAR)


def _completeness(what: Plan, runs: pd.DataFrame) -> list[str]:
    """Missing and surplus rows of a store."""
    columns, wanted = store.job_lines(what.jobs)
    lines = store.lines(runs, columns)
    one_each = len(wanted) > len(what.jobs)  # a job of a study has many rows with one key
    stored = Counter(lines if one_each else set(lines))
    there = Counter(wanted["line"])
    unit = "models" if one_each else "jobs"
    return [
        f"{which.total()} {unit} {word}, for example {next(iter(which))}"
        for which, word in ((there - stored, "missing"), (stored - there, "too many"))
        if which
    ]


@dataclass(frozen=True)
class Verification:
    """The result of training a store again."""

    lines: list[str]  # how many rows were compared, and how well they agree
    problems: list[str]  # damage, missing rows, stable rows that differ


def _summary(gaps: pd.DataFrame) -> list[str]:
    """How many recomputed rows agree, and the largest difference of each metric that does not."""
    lines = []
    for how, rows in gaps.groupby(gaps.index):
        if how == UNSTABLE:
            lines.append(f"unstable: {len(rows)} rows, whose digits may differ between platforms")
            continue
        label = how if how == STABLE else "stability not measured"
        agree = int((rows.max(axis=1) <= NEAR).sum())
        worst = rows.max().sort_values(ascending=False)
        beyond = ", ".join(f"{name} {gap:.2g}" for name, gap in worst[worst > NEAR].items())
        line = f"{label}: {agree} of {len(rows)} rows agree to {NEAR:g}, largest difference "
        lines.append(f"{line}{worst.iloc[0]:.2g}" + (beyond and f"; by metric {beyond}"))
    return lines


def _same_machine(of: Store) -> bool:
    """Whether this is the kind of machine that made a store."""
    record = store.load_provenance(of.folder)[of.protocol]
    return record.get("machines", {}).get(of.name, record.get("machine")) == machine()


def verify_plan(
    what: Plan, *, jobs: int = -1, progress: bool = True, everything: Path | None = None
) -> Verification:
    """Train a fixed sample of a store again, or all of it, and compare.

    Rows that are stable, see :func:`deviations`, have to agree to 1e-6. Rows of the sample whose
    stability was not measured have to agree to 1e-3 on the kind of machine that made the store;
    other differences are reported without being a problem. With a folder
    ``everything`` all jobs are trained into it, except those that are there already.
    """
    of = what.store
    try:
        if not of.is_finished():
            raise store.absent(of.name, of.folder)
        runs = of.read()
    except StoreError as error:
        return Verification([], [str(error)])
    if problems := _completeness(what, runs):
        return Verification([], problems)
    if everything is None:
        part = what.part or (lambda rows: rows)
        trained = _results(replace(what, run=what.again or what.run), what.sample, jobs, progress)
        pairs = {job.name: (part(store.rows_of(runs, job)), part(rows)) for job, rows, _ in trained}
    else:
        again = Store(everything, of.name)
        pairs = {f"all of {of.name}": (runs, _train_all(what, again, jobs, progress))}
    apart = {}
    for name, (stored, new) in sorted(pairs.items()):
        try:
            apart[name] = deviations(stored, new)
        except StoreError as error:
            return Verification([], [f"{name}: {error}"])
    lines = _summary(pd.concat(apart.values()))
    coarse = everything is None and _same_machine(of)
    for name, gaps in apart.items():
        found = _beyond(gaps, STABLE, NEAR) + (_beyond(gaps, UNKNOWN, COARSE) if coarse else [])
        problems += [f"{name}: {line}" for line in found]
        if STABLE not in gaps.index:
            lines.append(f"no stable row to compare: {name}")
    if everything is None and what.means is not None:
        problems += what.means(runs, pd.concat([rows for _, rows in pairs.values()]))
    return Verification(lines, problems)


def _train_all(what: Plan, again: Store, jobs: int, progress: bool) -> pd.DataFrame:
    """Train all jobs of a plan again, into another store, and return its rows."""
    before = again.part_names()
    if before or again.is_finished():
        said = f"{len(before)} of {len(what.jobs)} jobs" if before else "all jobs"
        print(f"{again.name}: {said} were trained before; delete {again.folder} to start over")
    train_missing(replace(what, store=again), jobs=jobs, progress=progress)
    return again.read()


def verify(protocol: str, *, out: Path | str | None = None, jobs: int = -1) -> list[str]:
    """Problems of a finished protocol: damage, missing or surplus rows, numbers that changed.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic"}
    out : path, optional
        Folder of the store, by default the book's.
    jobs : int
        Number of worker processes; -1: one per core.

    Returns
    -------
    list of str
        Empty if the file is whole, holds every model of the protocol once, and the stable runs of a
        sample with every method agree to 1e-6 when they are trained again.
    """
    return verify_plan(plan(protocol, out), jobs=jobs).problems
