"""The package's speed, measured in one run on one thread: ``make bench``.

Each line shows what was measured, the target and whether it is met; a miss ends the run with status
1. Times are this thread's processor time (the process's reads low at times, and a minimum finds
that), the best of several repeats. ``--quick`` takes small sizes and judges nothing; names of
sections as further arguments (``split cells``) run those alone. Linear fits: ``peers.py``.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

import math
import multiprocessing
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch

from drocox import accuracy, fairness, regularizers
from drocox.cox import risk_sets, split_cox_losses
from drocox.paper import protocol
from drocox.paper.prepare import prepare
from drocox.solver import minimise

torch.set_num_threads(1)
QUICK, MISSED = "--quick" in sys.argv, []
TIMES = {False: "no ties", True: "50 distinct times"}


def line(what: str, measured: str, target: str = "", met: bool = True) -> None:
    """Print one row of the table and remember a miss."""
    verdict = "" if QUICK or not target else "ok" if met else "MISS"
    MISSED.extend([what.strip()] * (verdict == "MISS"))
    print(f"{what:<46} {measured:<46} {target:<15} {verdict}".rstrip(), flush=True)


def timed(call) -> tuple:
    start, result = time.thread_time(), call()
    return time.thread_time() - start, result


def best(*calls, seconds: float = 0.2 if QUICK else 1.5) -> list[float]:
    """Smallest time of each call after a first one; they take turns, three rounds or more."""
    rounds, stop = [], time.thread_time() + seconds
    while len(rounds) < 4 or time.thread_time() < stop:
        rounds.append([timed(call)[0] for call in calls])
    return np.min(rounds[1:], axis=0).tolist()


def ms(seconds: float) -> str:
    return f"{1e3 * seconds:.{2 if seconds < 0.01 else 1 if seconds < 0.1 else 0}f} ms"


def patients(n: int, tied: bool):
    """Scores, times (distinct, or 50 values), event indicators and sides of a split."""
    rng = np.random.default_rng(n)
    at = rng.integers(1, 51, n).astype(float) if tied else rng.permutation(n) + 1.0
    return rng.standard_normal(n), at, rng.random(n) < 0.5, rng.random(n) < 0.5


def gradient(loss, inputs, *args, **kwargs) -> np.ndarray:
    inputs = torch.tensor(inputs, requires_grad=True)
    loss(inputs, *args, **kwargs).sum().backward()
    return inputs.grad.numpy()


def split_call(form: str, n: int, tied: bool = False):
    """A function that computes split losses and their gradient once."""
    f, at, event, first = patients(n, tied)
    outcomes = (risk_sets(at, event),) if form == "prepared" else (at, event)
    return lambda: gradient(split_cox_losses, f, *outcomes, first=first)


def memory_rise(n: int) -> float:
    """Bytes by which one call and its inputs raise the memory of this process (on Linux)."""
    split_call("stateless", 100)()
    if sys.platform != "linux":
        return math.nan
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    split_call("stateless", n)()
    after = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    return 1024 * (int(after) - int(before))


def bench_split() -> None:
    print("\nSPLIT LOSSES WITH GRADIENT")
    few, many = (10**3, 10**4) if QUICK else (10**4, 10**6)
    for tied in (False, True):
        for form in ("prepared", "stateless"):
            a, b = (best(split_call(form, n, tied))[0] for n in (few, many))
            power = math.log(b / a) / math.log(many / few)
            line(
                f"n = {many:>9,}, {TIMES[tied]}: {form}",
                f"{b:.3f} s (n = {few:,}: {ms(a)}), exponent {power:.2f}",
                "<= 2 s, <= 1.1",
                b <= 2 and power <= 1.1,
            )
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        used = pool.apply(memory_rise, [many])
    line(f"n = {many:>9,}: extra memory", f"{used / 1e6:.0f} MB", "<= 1 GB", not used > 1e9)


def bench_penalty() -> None:
    rng, n = np.random.default_rng(0), 1000 if QUICK else 5039
    print(f"\nINDIVIDUAL PENALTY OF KEYA ET AL. WITH GRADIENT, n = {n:,}, pairs prepared")
    pairs = regularizers.all_pairs(rng.standard_normal((n, 6)))
    for name, h in (
        ("hazards spread, exp(normal)", np.exp(rng.standard_normal(n))),
        ("all hazards within 0.01", 1 + 0.01 * rng.random(n)),
    ):
        a, b = best(
            lambda h=h: gradient(regularizers.hinge_penalty, h, pairs),
            lambda h=h: regularizers.hinge_gradient(torch.tensor(h), pairs),
        )
        line(name, f"{ms(a)} (gradient alone {ms(b)})", "<= 25 ms", a <= 0.025)


def bench_concordance() -> None:
    print("\nCONCORDANCE, scores with ties, outcomes with and without")
    for n in [1000] if QUICK else [10**4, 10**5, 10**6]:
        for tied, name in TIMES.items():
            scores, at, event, group = patients(n, tied)
            scores = scores.round(2)
            index, imparity = best(
                lambda f=scores, t=at, e=event: accuracy.concordance_index(f, t, e),
                lambda f=scores, t=at, e=event, g=group: fairness.concordance_imparity(f, t, e, g),
            )
            what = f"n = {n:>9,}, {name}"
            last = n == 10**6
            line(f"{what}: c-index", ms(index), "<= 3 s" if last else "", index <= 3)
            line(f"{what}: CI", ms(imparity), "<= 5 s" if last else "", imparity <= 5)


def bench_individual() -> None:
    n = 1000 if QUICK else 20_000
    print("\nF_I OF ONE MODEL, distances not kept")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 10))
    hazards = np.exp(rng.standard_normal(n))
    took, _ = timed(lambda: fairness.individual(hazards, X))
    line(f"n = {n:>9,}, 10 features", ms(took))


def bench_cells() -> None:
    print(
        "\nEXACT DRO-COX ON THE CORRECTED SPLITS, the paper's rule and six alpha; the solver alone"
    )
    for dataset in ["seer"] if QUICK else ["flc", "support", "seer"]:
        gaps, took, null = [], [], 0
        for repeat in range(1, 3 if QUICK else 11):
            ready = prepare("corrected", dataset, repeat)
            for alpha in protocol.ALPHAS:
                seconds, found = timed(
                    lambda a=alpha, r=ready: minimise(r.X[0], r.risk, a, rule="paper")
                )
                gaps.append(found.gap)
                took.append(seconds)
                null += not found.coef.any()
        line(
            f"{dataset}: {len(gaps)} cells, {null} of them null",
            f"gap <= {max(gaps):.0e}; mean {ms(np.mean(took))}, longest {ms(max(took))}",
            "<= 1e-6",
            max(gaps) <= 1e-6,
        )


if __name__ == "__main__":
    started, load = time.perf_counter(), ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load}; "
        f"Python {platform.python_version()}, torch {torch.__version__}, one thread"
    )
    chosen = [name for name in sys.argv[1:] if name != "--quick"]
    for bench in (bench_split, bench_penalty, bench_concordance, bench_individual, bench_cells):
        if not chosen or bench.__name__.removeprefix("bench_") in chosen:
            bench()
    print(f"\n{time.perf_counter() - started:.0f} s; missed: {', '.join(MISSED) or 'nothing'}")
    sys.exit(bool(MISSED))
