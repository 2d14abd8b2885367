"""Running a protocol: parallel, with progress, resumable.

Stacks go to worker processes through joblib: loky on one machine, a dask cluster with an address.
This process alone writes. A finished stack is on disk before the next is taken, so an interrupted
sweep loses the stacks in flight and nothing else.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

from drocox.paper import store
from drocox.paper.protocol import ATTRIBUTES, METHODS, REPEATS, Stack, stacks
from drocox.paper.run import TWICE, run_stack
from drocox.paper.store import DamagedError, StoreError

try:
    import resource
except ImportError:  # Windows
    resource = None

SIZE = {"flc": 5.0, "support": 5.8, "seer": 2.6}  # training patients, in thousands
HELD = 1e-9  # movement of a run's test scores up to which it gives the same digits elsewhere
BAR = "{desc} {percentage:3.0f}%|{bar}| {elapsed} passed, {remaining} left"
PACKAGES = ("numpy", "pandas", "scikit-learn", "scikit-survival", "survivors", "torch", "numba")


def cost(stack: Stack) -> float:
    """Rough cost of a stack, for the order of work and the time left.

    Parameters
    ----------
    stack : Stack

    Returns
    -------
    float
        In no particular unit.
    """
    method = METHODS[stack.method]
    n = SIZE[stack.dataset]
    deep = stack.model == "nonlinear"
    step = n * (1 + 2 * deep + (method.loss == "split"))
    if method.penalty == "keya_i":  # all pairs of patients
        step += n * n * (2.0 if deep else 0.5)
    return len(stack.grid()) * step * (2 if stack.repeat in TWICE else 1)


def _peak_gb() -> float | None:
    """Most memory that this process has used, where the system tells."""
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9, 3)


def _timed(stack: Stack) -> tuple[Stack, pd.DataFrame, dict]:
    """Run a stack in a worker on one thread; also its CPU seconds and the worker's peak memory."""
    torch.set_num_threads(1)
    start = time.process_time()
    rows = run_stack(stack)
    return stack, rows, {"cpu": round(time.process_time() - start, 2), "peak": _peak_gb()}


def machine() -> dict:
    """Kind of machine and versions, for the provenance.

    Returns
    -------
    dict
    """
    return {
        "cores": os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {p: version(p) for p in PACKAGES},
    }


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """Hold the lock of a store, or refuse.

    It is SQLite's lock of an empty data base: of one kind on all systems, and the system ends it
    however the process ends.

    Parameters
    ----------
    out : path
        Folder of the store; made if it does not exist.
    """
    with ExitStack() as held:
        try:
            out.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context(closing(sqlite3.connect(out / ".lock", timeout=0)))
            lock.execute("BEGIN EXCLUSIVE")
        except (OSError, sqlite3.Error) as error:
            text = f"cannot write to {out} ({error}); give a folder of your own with --out"
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                text = f"another sweep is writing to {out}; wait, or give another folder with --out"
            raise StoreError(text) from None
        yield


@contextmanager
def _workers(scheduler: str | None) -> Iterator[None]:
    """Let joblib use the cores of this machine, or the dask cluster at an address."""
    if scheduler is None:
        with parallel_config(backend="loky", inner_max_num_threads=1):
            yield
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise StoreError("--scheduler needs dask; run: pip install dask distributed") from None
    with Client(scheduler), parallel_config(backend="dask"):
        yield


def _is_done(out: Path, stack: Stack) -> bool:
    """Whether a stack is stored; one of other code is refused, a damaged file named and redone."""
    if not store.part_path(out, stack).exists():
        return False
    try:
        store.load_part(out, stack)
    except DamagedError as error:
        print(f"recomputing: {error}", file=sys.stderr)
        return False
    return True


def sweep(
    protocol: str = "as_published",
    *,
    datasets: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    repeats: Iterable[int] | None = None,
    jobs: int = -1,
    scheduler: str | None = None,
    out: Path | None = None,
    progress: bool = True,
) -> int:
    """Run what is missing of a protocol and store it.

    When the whole protocol is there, ``<protocol>.csv.gz`` and ``provenance.json`` are written too.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic"}
    datasets, methods, repeats : sequences, optional
        Restrict the sweep.
    jobs : int
        Number of worker processes; -1: one per core.
    scheduler : str, optional
        Address of a dask scheduler to use instead.
    out : path, optional
        Folder of the store; by default the book's in a source checkout, and ``results`` in the
        current folder where drocox is installed.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    int
        Number of models trained.
    """
    if out is None and (out := store.own_folder()) != store.DEFAULT:
        print(f"writing to {out}/; read it with --out {out}", file=sys.stderr)
    out = Path(out)
    wanted = list(stacks(protocol, datasets or ATTRIBUTES, methods or METHODS, repeats or REPEATS))
    if not wanted:
        raise ValueError(f"methods: protocol {protocol!r} has none of these; leave methods out")
    with only_writer(out):
        if store.is_finished(protocol, out):
            store.load_runs(protocol, out=out)  # refuses those of other code, and a damaged file
            return 0
        # dearest first, so that no worker ends long after others
        todo = sorted((s for s in wanted if not _is_done(out, s)), key=cost, reverse=True)
        whole = sum(map(cost, wanted))
        done = whole - sum(map(cost, todo))
        bar = tqdm(total=whole, initial=done, disable=not progress, smoothing=0.05, bar_format=BAR)
        store.code_hash(protocol)  # of the code as it is now: an edit meanwhile is not in the runs
        before = time.monotonic()
        with _workers(scheduler), bar:
            run = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            for stack, rows, spent in run(delayed(_timed)(stack) for stack in todo):
                now = time.monotonic()
                store.save_part(out, stack, rows, **spent, wall=round(now - before, 2))
                before = now
                bar.set_description(f"{protocol} {stack.name[:40]:40s}")
                bar.update(cost(stack))
        if all(store.part_path(out, stack).exists() for stack in stacks(protocol)):
            store.finish(out, protocol, machine())
    return sum(len(stack.grid()) for stack in todo)


def _sample(stored: dict[Stack, pd.DataFrame], protocol: str, size: int) -> list[Stack]:
    """Stored stacks to recompute, chosen by the hash of the code, where stability is measured.

    They are linear and cheap; a store without linear models offers one of its cheapest.
    """
    pool = [stack for stack, rows in stored.items() if stack.repeat in TWICE and len(rows)]
    linear = [s for s in pool if s.model == "linear" and METHODS[s.method].penalty != "keya_i"]
    pool = linear or sorted(pool, key=cost)[: len(TWICE)]
    draw = np.random.default_rng(int(store.code_hash(protocol), 16)).permutation(len(pool))
    return [pool[i] for i in sorted(draw[: size if linear else 1])]


def differences(stored: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """What differs by more than 1e-6 between stored and recomputed rows of one stack.

    Only rows that have just ``moved`` by at most 1e-9 are compared: the c-index of another run may
    be stable, but its digits depend on the platform. Nor is a row compared whose stability was not
    measured, nor a column that the stored rows do not have.

    Parameters
    ----------
    stored, new : DataFrame
        Rows of the same stack; numeric columns are compared, values above 1 by relative difference.

    Returns
    -------
    list of str
        One line per column that differs.
    """
    if len(stored) != len(new):
        return [f"{len(stored)} rows stored, {len(new)} computed"]
    held = new["moved"] <= HELD  # not where it is NaN
    if not held.any():
        return ["no row is stable enough to be compared"]
    found = []
    shared = [name for name in new.select_dtypes("number") if name in stored and name != "moved"]
    for column in shared:
        a = stored.loc[held, column].to_numpy(float)
        b = new.loc[held, column].to_numpy(float)
        near = np.isclose(a, b, rtol=0, atol=1e-6, equal_nan=True)
        apart = ~(near | np.isclose(a, b, rtol=1e-6, atol=0))
        if apart.any():
            found.append(f"{column}: {np.abs(a[apart] - b[apart]).max():.2g} apart")
    return found


def _recompute(protocol: str, out: Path, size: int, progress: bool) -> list[str]:
    """Differences of a recomputed sample of the stored stacks."""
    if store.is_finished(protocol, out):
        rows = store.by_stack(store.read_runs(protocol, out), protocol)
    else:
        parts = store.load_parts(protocol, out, any_code=True)
        rows = {stack: part for stack, (_, part) in parts.items()}
    sample = _sample(rows, protocol, size)
    if not sample:
        what = f"stable runs of repeats {TWICE[0]} to {TWICE[-1]}"
        advice = f"that takes {what}; run: {store.command(protocol, out)}"
        return [f"nothing of {protocol!r} in {out} can be compared: {advice}"]
    return [
        f"{stack.name}: {difference}"
        for stack in tqdm(sample, disable=not progress, desc="recomputing")
        for difference in differences(rows[stack], run_stack(stack))
    ]


def verify(
    protocol: str, *, out: Path | None = None, size: int = 4, progress: bool = True
) -> list[str]:
    """Problems of a finished protocol: damage, missing or surplus rows, numbers that changed.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic"}
    out : path, optional
        Folder of the store, by default the book's.
    size : int
        Number of linear stacks to recompute; of a store without them, one stack is.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    list of str
        Empty if the file is whole, holds every model of the protocol once, and the stable runs of a
        recomputed sample agree to 1e-6 (see :func:`differences`): linear ones, or networks where a
        store has no others.
    """
    out = Path(out or store.DEFAULT)
    try:
        runs = store.read_runs(protocol, out)
    except StoreError as error:
        return [str(error)]
    problems = []
    if not store.is_current(protocol, out):
        advice = store.command(protocol, out, "--revalidate")
        problems.append(f"computed by other code or data; run: {advice}")
    expected = 0
    for stack, rows in store.by_stack(runs, protocol).items():
        grid = pd.DataFrame(stack.grid(), dtype=float)
        expected += len(grid)
        if not rows[list(grid)].astype(float).equals(grid):
            problems.append(f"{stack.name}: {len(rows)} of {len(grid)} models, or another grid")
    if len(runs) != expected:
        problems.append(f"{len(runs)} models stored, {expected} expected")
    return problems or _recompute(protocol, out, size, progress)


def revalidate(
    protocol: str, *, out: Path | None = None, size: int = 8, progress: bool = True
) -> list[str]:
    """Stamp stored runs as made by today's code if a recomputed sample agrees, as in `verify`.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic"}
    out : path, optional
        Folder of the store, by default the one that :func:`sweep` writes to.
    size : int
        Number of linear stacks to recompute; of a store without them, one stack is.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    list of str
        What differs; nothing is stamped then.
    """
    out = Path(out or store.own_folder())
    with only_writer(out):
        problems = _recompute(protocol, out, size, progress)
        if not problems:
            store.stamp(out, protocol)
    return problems
