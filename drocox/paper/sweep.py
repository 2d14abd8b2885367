"""Running a protocol: parallel, with progress, resumable.

Stacks go to worker processes through joblib: loky on one machine, a dask cluster with an address.
This process alone writes. A finished stack is on disk before the next is taken, so an interrupted
sweep loses the stacks in flight and nothing else.
"""

import fcntl
import os
import platform
import resource
import sys
import time
from contextlib import contextmanager
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
from drocox.paper.store import StoreError

SIZE = {"flc": 5.0, "support": 5.8, "seer": 2.6}  # training patients, in thousands
PACKAGES = ("numpy", "pandas", "scikit-learn", "scikit-survival", "lifelines", "torch", "numba")


def cost(stack: Stack) -> float:
    """Rough cost of a stack, for the order of work and the time left."""
    method, n = METHODS[stack.method], SIZE[stack.dataset]
    step = n * (3.0 if stack.model == "nonlinear" else 1.0) + n * (method.loss == "split")
    if method.penalty == "keya_i":
        step += n * n * (2.0 if stack.model == "nonlinear" else 0.5)
    return len(stack.grid()) * step * (2 if stack.repeat in TWICE else 1)


def _timed(stack: Stack) -> tuple[Stack, pd.DataFrame, dict]:
    """Run a stack in a worker on one thread; also its CPU seconds and the worker's peak memory."""
    torch.set_num_threads(1)
    start = time.process_time()
    rows = run_stack(stack)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return stack, rows, {"cpu": round(time.process_time() - start, 2), "peak": round(peak / 1e9, 3)}


def machine() -> dict:
    """Kind of machine and versions, for the provenance."""
    return {
        "cores": os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {p: version(p) for p in PACKAGES},
    }


@contextmanager
def only_writer(out: Path):
    """Hold the store's lock; the system releases it when the process ends, however it ends."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(
                f"another sweep is writing to {out}; wait for it to end, or give "
                "this one another folder with --out"
            ) from None
        yield


def _state(out: Path, stack: Stack) -> str:
    """Whether a stack is done, to do, or done by other code; damaged files are named and redone."""
    if not store.part_path(out, stack).exists():
        if stack.protocol not in store.load_provenance(out):
            return "todo"
        return "done" if store.is_current(stack.protocol, out) else "other code"
    try:
        header, _ = store.load_part(out, stack)
    except StoreError as error:
        print(f"recomputing: {error}", file=sys.stderr)
        return "todo"
    today = (store.code_hash(), store.data_hash(stack.dataset))
    return "done" if (header["code"], header["data"]) == today else "other code"


def sweep(
    protocol: str = "as_published",
    *,
    datasets=None,
    methods=None,
    repeats=None,
    jobs: int = -1,
    scheduler: str | None = None,
    out: Path | None = None,
    progress: bool = True,
) -> int:
    """Run what is missing of a protocol, store it, and return the number of models trained.

    ``datasets``, ``methods`` and ``repeats`` restrict the sweep; ``jobs`` is the number of worker
    processes (-1: one per core), ``scheduler`` the address of a dask scheduler to use instead;
    ``out`` is the folder of the store, by default the book's. When the whole protocol is there,
    ``<protocol>.csv.gz`` and ``provenance.json`` are written too.
    """
    out = Path(out or store.DEFAULT)
    wanted = list(stacks(protocol, datasets or ATTRIBUTES, methods or METHODS, repeats or REPEATS))
    with only_writer(out):
        states = {stack: _state(out, stack) for stack in wanted}
        if stale := [s for s, state in states.items() if state == "other code"]:
            raise StoreError(
                f"{len(stale)} finished stacks in {out} were made by other code or "
                f"data, for example {store.part_path(out, stale[0])}; check and "
                "keep them with --revalidate, or use another --out"
            )
        todo = sorted((s for s, state in states.items() if state == "todo"), key=cost)[::-1]
        share = {"backend": "loky", "inner_max_num_threads": 1}
        if scheduler is not None:
            from dask.distributed import Client

            client, share = Client(scheduler), {"backend": "dask"}
        whole = sum(map(cost, wanted))
        bar = tqdm(
            total=round(whole),
            initial=round(whole - sum(map(cost, todo))),
            disable=not progress,
            smoothing=0.05,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed} passed, {remaining} left",
        )
        trained, before = 0, time.monotonic()
        with parallel_config(**share), bar:
            run = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            for stack, rows, spent in run(delayed(_timed)(s) for s in todo):
                now = time.monotonic()
                store.save_part(out, stack, rows, **spent, wall=round(now - before, 2))
                trained, before = trained + len(rows), now
                bar.set_description(f"{protocol} {stack.name[:40]:40s}")
                bar.update(round(cost(stack)))
        if scheduler is not None:
            client.close()
        if all(store.part_path(out, s).exists() for s in stacks(protocol)):
            store.finish(out, protocol, machine())
    return trained


def _sample(protocol: str, size: int) -> list[Stack]:
    """Linear stacks that are cheap to repeat, chosen by the hash of the code."""
    cheap = [
        s
        for s in stacks(protocol, repeats=TWICE)
        if s.model == "linear" and METHODS[s.method].penalty != "keya_i"
    ]
    draw = np.random.default_rng(int(store.code_hash(), 16))
    return [cheap[i] for i in sorted(draw.choice(len(cheap), size, replace=False))]


def differences(stored: pd.DataFrame, new: pd.DataFrame, tolerance: float = 1e-6) -> list[str]:
    """What differs between stored and recomputed rows of one stack, among those marked stable."""
    if len(stored) != len(new):
        return [f"{len(stored)} rows stored, {len(new)} computed"]
    found, stable = [], stored["unstable"] == 0
    for column in new.columns[new.dtypes.map(pd.api.types.is_numeric_dtype)]:
        a, b = stored[stable][column].to_numpy(float), new[stable][column].to_numpy(float)
        apart = np.abs(a - b) > tolerance * np.maximum(1, np.abs(b))
        if (apart | (np.isnan(a) != np.isnan(b))).any():
            found.append(f"{column}: {np.nanmax(np.abs(a - b)):.2g} apart")
    return found


def _recompute(protocol: str, out: Path, size: int, progress: bool) -> list[str]:
    """Differences of a recomputed sample of linear stacks, as far as they are stored."""
    finished = protocol in store.load_provenance(out)
    runs, problems = store.read_runs(protocol, out) if finished else None, []
    for stack in tqdm(_sample(protocol, size), disable=not progress, desc="recomputing"):
        if finished:
            stored = store.rows_of(runs, stack)
        elif store.part_path(out, stack).exists():
            stored = store.load_part(out, stack)[1]
        else:
            continue
        problems += [f"{stack.name}: {d}" for d in differences(stored, run_stack(stack))]
    return problems


def verify(
    protocol: str, *, out: Path | None = None, size: int = 4, progress: bool = True
) -> list[str]:
    """Problems of a finished protocol: damage, missing or surplus rows, numbers that changed.

    An empty list means that the file is whole, holds every model of the protocol once, and that a
    recomputed sample of linear stacks agrees to 1e-6.
    """
    try:
        runs = store.read_runs(protocol, out)
    except StoreError as error:
        return [str(error)]
    problems, expected = [], 0
    if not store.is_current(protocol, out):
        problems.append(
            f"computed by other code or data; run: drocox sweep --protocol {protocol} --revalidate"
        )
    for stack in stacks(protocol):
        rows, grid = store.rows_of(runs, stack), stack.grid()
        expected += len(grid)
        if not rows[list(grid)].equals(grid):
            problems.append(f"{stack.name}: {len(rows)} of {len(grid)} models, or another grid")
    if len(runs) != expected:
        problems.append(f"{len(runs)} models stored, {expected} expected")
    return problems or _recompute(protocol, out, size, progress)


def revalidate(
    protocol: str, *, out: Path | None = None, size: int = 8, progress: bool = True
) -> list[str]:
    """Stamp stored runs as today's if a recomputed sample agrees to 1e-6; else say what differs."""
    out = Path(out or store.DEFAULT)
    with only_writer(out):
        problems = _recompute(protocol, out, size, progress)
        if not problems:
            store.stamp(out, protocol)
    return problems
