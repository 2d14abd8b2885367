"""Running a protocol: parallel, with progress, resumable; and checking what is stored.

Stacks go to worker processes through joblib: loky on one machine, a dask cluster with an address.
Every stack is computed on one thread, whose CPU time is what provenance counts. This process alone
writes. A finished stack is on disk before the next is taken, so an interrupted sweep loses the
stacks in flight and nothing else.
"""

import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from filelock import FileLock, Timeout
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from drocox import _checks
from drocox.paper import provenance, store
from drocox.paper.run import TWICE
from drocox.paper.store import DamagedError
from drocox.paper.stores import known_stores
from drocox.paper.work import WORK, StoreError, Unit, runner_of

HELD = 1e-9  # movement of a run's test scores up to which it gives the same digits elsewhere
BAR = "{desc} {percentage:3.0f}%|{bar}| {elapsed} passed, {remaining} left"
PACKAGES = ("numpy", "pandas", "scikit-learn", "scikit-survival", "survivors", "torch", "numba")


def _peak_gb() -> float | None:
    """Most memory that this process has used, where the system tells."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9, 3)


def _timed(stack: Unit) -> tuple[Unit, pd.DataFrame, dict]:
    """Run a stack in a worker, with its CPU seconds and the worker's peak memory.

    A worker of a dask cluster may run several stacks at once, each in a thread of its own. None of
    them starts further threads, so the CPU time of its thread is what a stack costs.
    """
    torch.set_num_threads(1)
    threadpool_limits(1)
    start = time.thread_time()
    rows = runner_of(stack.protocol).run_stack(stack)
    return stack, rows, {"cpu": round(time.thread_time() - start, 2), "peak": _peak_gb()}


def machine() -> dict:
    """Kind of machine and versions, for the provenance.

    Returns
    -------
    dict
    """
    kind = f"{platform.system()} {platform.machine()}"
    versions = {"python": platform.python_version(), "packages": {p: version(p) for p in PACKAGES}}
    return {"cores": os.cpu_count(), "machine": kind, **versions}


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """Hold the lock of a store, or refuse.

    The system ends the lock however the process ends.

    Parameters
    ----------
    out : path
        Folder of the store; made if it does not exist.
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


def _is_done(out: Path, stack: Unit) -> bool:
    """Whether a stack is stored; one of other code is refused, a damaged file named and redone."""
    try:
        store.load_part(out, stack)
    except FileNotFoundError:
        return False
    except DamagedError as error:
        print(f"recomputing: {error}", file=sys.stderr)
        return False
    return True


def sweep(
    protocol: str = "as_published",
    *,
    jobs: int = -1,
    scheduler: str | None = None,
    out: Path | None = None,
    progress: bool = True,
    **some: Sequence | None,
) -> int:
    """Run what is missing of a protocol and store it.

    When the whole protocol is there, ``<protocol>.csv.gz`` and ``provenance.json`` are written too.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic", "beyond"}
    jobs : int
        Number of worker processes; -1: one per core.
    scheduler : str, optional
        Address of a dask scheduler to use instead; its workers decide how many stacks run at once.
    out : path, optional
        Folder of the store; by default the book's in a source checkout, and ``results`` in the
        current folder where drocox is installed.
    progress : bool
        Whether to show a progress bar.
    **some : sequences, optional
        ``datasets``, ``methods`` and ``repeats`` restrict the sweep; a method that the protocol
        lacks is refused.

    Returns
    -------
    int
        Number of models trained.
    """
    if out is None and (out := store.own_folder()) != store.DEFAULT:
        print(f"writing to {out}/; read it with --out {out}", file=sys.stderr)
    out = Path(out)
    _checks.one_of(protocol, "protocol", known_stores())
    runner = runner_of(protocol)
    wanted = list(runner.stacks(protocol, **some))
    if not wanted:
        raise ValueError(f"{protocol} has none of these datasets, methods and repeats together")
    with only_writer(out):
        if store.is_finished(protocol, out):
            store.load_runs(protocol, out=out)  # refuses those of other code, and a damaged file
            return 0
        # dearest first, so that no worker ends long after others
        todo = sorted((s for s in wanted if not _is_done(out, s)), key=runner.cost, reverse=True)
        total = sum(runner.cost(stack) for stack in todo)
        bar = tqdm(total=total, disable=not progress, smoothing=0.05, bar_format=BAR)
        provenance.code_hash(protocol)  # of the code as it is now: an edit meanwhile is not run
        backend = {"backend": "loky"}
        if scheduler:
            backend = {"backend": "dask", "scheduler_host": scheduler}
        before = time.monotonic()
        with parallel_config(**backend), bar:
            run = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            for stack, rows, spent in run(delayed(_timed)(stack) for stack in todo):
                now = time.monotonic()
                store.save_part(out, stack, rows, **spent, wall=round(now - before, 2))
                before = now
                bar.set_description(f"{protocol} {stack.name[:40]:40s}")
                bar.update(runner.cost(stack))
        if all(store.part_path(out, stack).exists() for stack in runner.stacks(protocol)):
            store.finish(out, protocol, machine())
    return sum(len(stack.keys()) for stack in todo)


def differences(stored: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """What differs by more than 1e-6 between stored and recomputed rows of one stack.

    Only rows that have just ``moved`` by at most 1e-9 are compared: the c-index of another run may
    be stable, but its digits depend on the platform. Nor is a row compared whose stability was not
    measured.

    Parameters
    ----------
    stored, new : DataFrame
        Rows of the same stack; numeric columns are compared, values above 1 by relative difference.

    Returns
    -------
    list of str
        One line per column that differs.
    """
    if set(stored) != set(new) or len(stored) != len(new):
        return [f"other rows or columns: {stored.shape} stored, {new.shape} computed"]
    held = new["moved"] <= HELD  # not where it is NaN
    if not held.any():
        return ["no row is stable enough to be compared"]
    lines = []
    for column in new.select_dtypes("number").columns.drop("moved"):
        a = stored.loc[held, column].to_numpy(float)
        b = new.loc[held, column].to_numpy(float)
        near = np.isclose(a, b, rtol=0, atol=1e-6, equal_nan=True)
        apart = ~(near | np.isclose(a, b, rtol=1e-6, atol=0))
        if apart.any():
            lines.append(f"{column}: {np.abs(a[apart] - b[apart]).max():.2g} apart")
    return lines


def _recompute(runs: pd.DataFrame, protocol: str, size: int) -> list[str]:
    """Differences of a recomputed sample of the stored stacks; of networks, one stack is enough.

    A stack without a row that is stable enough to be compared is passed over for the next.
    """
    pool = runner_of(protocol).drawn(runs, protocol)
    size = size if any(stack.model == "linear" for stack in pool) else 1
    again = ((stack, runner_of(protocol).run_stack(stack)) for stack in pool)
    comparable = ((stack, new) for stack, new in again if (new["moved"] <= HELD).any())
    # None: a bar where somebody looks
    sample = list(tqdm(islice(comparable, size), desc="recomputing", total=size, disable=None))
    if not sample:
        what = f"no stable runs of repeats {TWICE[0]} to {TWICE[-1]} of {protocol!r} are stored"
        return [f"{what}, and only such can be compared; sweep these repeats first"]
    problems = []
    for stack, new in sample:
        lines = differences(store.rows_of(runs, stack), new)
        problems += [f"{stack.name}: {line}" for line in lines]
    return problems


def verify(protocol: str, *, out: Path | None = None, size: int = 4) -> list[str]:
    """Problems of a finished protocol: damage, missing or surplus rows, numbers that changed.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic", "beyond"}
    out : path, optional
        Folder of the store, by default the book's.
    size : int
        Number of linear stacks to recompute; of a store without them, one stack is.

    Returns
    -------
    list of str
        Empty if the file is whole, holds every model of the protocol once, and the stable runs of a
        recomputed sample agree to 1e-6 (see :func:`differences`): linear ones, or networks where a
        store has no others.
    """
    try:
        runs = store.load_runs(protocol, out=out)
    except StoreError as error:
        return [str(error)]
    keys = pd.DataFrame([k for s in runner_of(protocol).stacks(protocol) for k in s.keys()])
    by = [name for name in runs if name in keys]
    known = runs if WORK[protocol].uniform else runs.drop_duplicates(by)
    wanted = Counter(keys[by].to_csv(index=False, float_format="%g").splitlines())
    stored = Counter(known[by].to_csv(index=False, float_format="%g").splitlines())
    problems = []
    for which, what in ((wanted - stored, "missing"), (stored - wanted, "too many")):
        if which:
            problems.append(f"{which.total()} models {what}, for example {next(iter(which))}")
    return problems or _recompute(runs, protocol, size)


def revalidate(protocol: str, *, out: Path | None = None, size: int = 8) -> list[str]:
    """Stamp stored runs as made by today's code if a recomputed sample agrees, as in `verify`.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic", "beyond"}
    out : path, optional
        Folder of the store, by default the one that :func:`sweep` writes to.
    size : int
        Number of linear stacks to recompute; of a store without them, one stack is.

    Returns
    -------
    list of str
        What differs; nothing is stamped then.
    """
    out = Path(out or store.own_folder())
    with only_writer(out):
        runs = store.load_runs(protocol, out=out, any_code=True)
        problems = _recompute(runs, protocol, size)
        if not problems:
            store.stamp(out, protocol)
    return problems
