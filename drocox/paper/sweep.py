"""Running a protocol: parallel, with progress, resumable.

Stacks go to worker processes through joblib: loky on one machine, a dask cluster with an address.
This process alone writes. A finished stack is on disk before the next is taken, so an interrupted
sweep loses the stacks in flight and nothing else.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

from drocox.paper import store
from drocox.paper.protocol import ATTRIBUTES, METHODS, REPEATS, Stack, stacks
from drocox.paper.run import MOVED, TWICE, run_stack
from drocox.paper.store import StoreError

try:
    import fcntl
    import resource
except ImportError:  # Windows
    import msvcrt

    fcntl = resource = None

SIZE = {"flc": 5.0, "support": 5.8, "seer": 2.6}  # training patients, in thousands
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
    step = 3 * n if deep else n
    if method.loss == "split":
        step += n
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


def _lock(file: TextIO) -> None:
    """Lock a file or raise OSError; the system unlocks it whenever and however the process ends."""
    if fcntl is None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """Hold the lock of a store, or refuse.

    Parameters
    ----------
    out : path
        Folder of the store; made if it does not exist.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = open(out / ".lock", "a+")
    except OSError as error:
        raise StoreError(
            f"cannot write to {out} ({error.strerror}); give a folder of your own with --out"
        ) from None
    with file:
        try:
            _lock(file)
        except OSError:
            raise StoreError(
                f"another sweep is writing to {out}; wait for it to end, or give "
                "this one another folder with --out"
            ) from None
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
        if stack.protocol not in store.load_provenance(out):
            return False
        current = store.is_current(stack.protocol, out)
        made = f"{stack.protocol}.csv.gz"
    else:
        try:
            header, _ = store.load_part(out, stack)
        except StoreError as error:
            print(f"recomputing: {error}", file=sys.stderr)
            return False
        current = store.is_current_part(stack, header)
        made = store.part_path(out, stack).name
    if not current:
        advice = store.command(stack.protocol, out, "--revalidate")
        raise StoreError(
            f"{made} in {out} was made by other code or data; give another folder with --out, or "
            f"check and keep what is there with: {advice}"
        )
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
    trained = 0
    with only_writer(out):
        todo = [stack for stack in wanted if not _is_done(out, stack)]
        todo.sort(key=cost, reverse=True)  # dearest first, so that no worker ends long after others
        whole = sum(map(cost, wanted))
        bar = tqdm(
            total=round(whole),
            initial=round(whole - sum(map(cost, todo))),
            disable=not progress,
            smoothing=0.05,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed} passed, {remaining} left",
        )
        before = time.monotonic()
        with _workers(scheduler), bar:
            run = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            for stack, rows, spent in run(delayed(_timed)(stack) for stack in todo):
                now = time.monotonic()
                store.save_part(out, stack, rows, **spent, wall=round(now - before, 2))
                before = now
                trained += len(rows)
                bar.set_description(f"{protocol} {stack.name[:40]:40s}")
                bar.update(round(cost(stack)))
        if all(store.part_path(out, stack).exists() for stack in stacks(protocol)):
            store.finish(out, protocol, machine())
    return trained


def _sample(stored: list[Stack], protocol: str, size: int) -> list[Stack]:
    """Stored stacks that are cheap to repeat, chosen by the hash of the code.

    They are linear, because only those agree between machines, and of repeats in which stability
    was measured. A store without linear models offers one of its cheapest.
    """
    measured = [stack for stack in stored if stack.repeat in TWICE]
    pool = [
        stack
        for stack in measured
        if stack.model == "linear" and METHODS[stack.method].penalty != "keya_i"
    ]
    if not pool:
        least = min(map(cost, measured), default=0.0)
        pool = [stack for stack in measured if cost(stack) == least]
        size = 1
    draw = np.random.default_rng(int(store.code_hash(protocol), 16))
    chosen = draw.choice(len(pool), min(size, len(pool)), replace=False) if pool else []
    return [pool[i] for i in sorted(chosen)]


def differences(stored: pd.DataFrame, new: pd.DataFrame, tolerance: float = 1e-6) -> list[str]:
    """What differs between stored and recomputed rows of one stack, among those marked stable.

    Parameters
    ----------
    stored, new : DataFrame
        Rows of the same stack; the numeric columns of ``new`` are compared.
    tolerance : float
        Largest difference that is none, relative to values above 1.

    Returns
    -------
    list of str
        One line per column that differs.
    """
    if len(stored) != len(new):
        return [f"{len(stored)} rows stored, {len(new)} computed"]
    stable = stored["unstable"] == 0
    found = []
    for column in new.columns[new.dtypes.map(pd.api.types.is_numeric_dtype)]:
        a = stored.loc[stable, column].to_numpy(float)
        b = new.loc[stable, column].to_numpy(float)
        apart = np.abs(a - b) > tolerance * np.maximum(1, np.abs(b))
        if (apart | (np.isnan(a) != np.isnan(b))).any():
            found.append(f"{column}: {np.nanmax(np.abs(a - b)):.2g} apart")
    return found


def _recompute(protocol: str, out: Path, size: int, progress: bool) -> list[str]:
    """Differences of a recomputed sample of the stored stacks."""
    if protocol in store.load_provenance(out):
        rows = store.by_stack(store.read_runs(protocol, out), protocol)
    else:
        rows = {stack: part for stack, (_, part) in store.load_parts(protocol, out).items()}
    sample = _sample(list(rows), protocol, size)
    if not any((rows[stack]["unstable"] == 0).any() for stack in sample):
        return [
            f"nothing of {protocol!r} in {out} can be compared: that takes runs of repeats "
            f"{TWICE[0]} to {TWICE[-1]}; run: {store.command(protocol, out)}"
        ]
    problems = []
    for stack in tqdm(sample, disable=not progress, desc="recomputing"):
        new = run_stack(stack)
        if stack.model == "linear":
            found = differences(rows[stack], new)
        else:  # a stable network holds its c-index, not its digits
            found = differences(rows[stack], new[["test_c_index"]], MOVED)
        problems += [f"{stack.name}: {difference}" for difference in found]
    return problems


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
        Number of linear stacks to recompute.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    list of str
        Empty if the file is whole, holds every model of the protocol once, and a recomputed sample
        agrees: linear models to 1e-6; where a store has none, the c-index of one stack of networks
        to 1e-3.
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
        Number of linear stacks to recompute.
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
