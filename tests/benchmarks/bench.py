"""The package's speed, measured in one run on one thread: ``make bench``.

Each line shows what was measured, the target and whether it is met; a miss ends the run with status
1. Times are this thread's processor time (the process's reads low at times, and a minimum finds
that), the best of several repeats. ``--quick`` takes small sizes and judges nothing; names of
sections as further arguments (``fit cells``) run those alone.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

import math
import multiprocessing
import platform
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from sksurv.linear_model import CoxnetSurvivalAnalysis
from sksurv.util import Surv

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import literal

from drocox import DROCox, accuracy, fairness, regularizers
from drocox.cox import cox_losses, risk_sets, split_cox_losses
from drocox.dro import dual_constant
from drocox.paper import protocol, run
from drocox.paper.prepare import prepare
from drocox.solver import minimise
from drocox.training import dro_objective, fit_stack, initial_parameters

torch.set_num_threads(1)
warnings.simplefilter("ignore")  # torchsurv announces every tie
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


def bench_cox() -> None:
    try:
        from torchsurv.loss.cox import neg_partial_log_likelihood as torchsurv
    except ImportError:
        print("\nCOX LOSSES: pip install torchsurv to compare with its loss")
        return
    print("\nCOX LOSSES WITH GRADIENT, Breslow ties; ours in float64, torchsurv's in float32")
    for tied in (False, True):
        for n in (10**3, 10**4) if QUICK else (10**3, 10**4, 10**5, 10**6):
            f, *outcomes, _ = patients(n, tied)
            risk, (t, e) = risk_sets(*outcomes), map(torch.tensor, outcomes)
            cases = (cox_losses, risk), (cox_losses, *outcomes), (torchsurv, e, t, "breslow", "sum")
            calls = [lambda f=f, case=case: gradient(case[0], f, *case[1:]) for case in cases]
            assert np.allclose(calls[0](), calls[2](), atol=2e-3), "gradients differ"
            a, b, c = best(*calls)
            name, theirs = f"n = {n:>9,}, {TIMES[tied]}", f"torchsurv {ms(c)}"
            line(f"{name}: prepared", f"{ms(a)}, {theirs}: {c / a:.2f} x", ">= 2 x", c >= 2 * a)
            line(f"{name}: stateless", f"{ms(b)}, {theirs}: {c / b:.2f} x", ">= 1 x", c >= b)


def dense_sides(at, first) -> list:
    """For each side of a split: its patients, the other side's, and who of those is at risk."""
    a, b = np.flatnonzero(first), np.flatnonzero(~first)
    return [(i, j, torch.from_numpy(at[j] >= at[i][:, None])) for i, j in ((a, b), (b, a))]


def dense_split_losses(scores, event, sides) -> torch.Tensor:
    """Equation (8) as printed: a matrix with a row for each i and a column for each j."""
    losses = torch.zeros_like(scores)
    for own, other, at_risk in sides:
        total = scores[own].exp() + (at_risk * scores[other].exp()).sum(1)
        losses[own] = event[own] * (total.log() - scores[own])
    return losses


def split_call(form: str, n: int, tied: bool = False):
    """A function that computes split losses and their gradient once."""
    f, at, event, first = patients(n, tied)
    if form == "dense":
        sides, event = dense_sides(at, first), torch.tensor(event)
        return lambda: gradient(dense_split_losses, f, event, sides)
    outcomes = (risk_sets(at, event),) if form == "prepared" else (at, event)
    return lambda: gradient(split_cox_losses, f, *outcomes, first=first)


def memory_rise(form: str, n: int) -> float:
    """Bytes by which one call and its inputs raise the memory of this process (on Linux)."""
    split_call(form, 100)()
    if sys.platform != "linux":
        return math.nan
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    split_call(form, n)()
    after = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    return 1024 * (int(after) - int(before))


def bench_split() -> None:
    print("\nSPLIT LOSSES WITH GRADIENT")
    few, many, sizes = (10**3, 10**4, (500, 2000)) if QUICK else (10**4, 10**6, (2000, 8000))
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
        used, dense = pool.starmap(memory_rise, (("stateless", many), ("dense", sizes[1])), 1)
    line(f"n = {many:>9,}: extra memory", f"{used / 1e6:.0f} MB", "<= 1 GB", not used > 1e9)
    for n in sizes:
        calls = split_call("prepared", n), split_call("dense", n)
        assert np.allclose(calls[0](), calls[1](), atol=1e-10), "gradients differ"
        a, b = best(*calls)
        line(f"n = {n:>9,}: dense n1 x n2 matrices", f"{ms(b)}, ours {ms(a)}: {b / a:.0f} x")
    line(
        f"    memory they need, from n = {sizes[1]:,}",
        f"{dense * (5e4 / sizes[1]) ** 2 / 1e9:.0f} "
        f"GB at 50,000, 16 GB at {sizes[1] * math.sqrt(16e9 / dense):,.0f}",
    )


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


def cohort(n: int, tied: bool, d: int = 10):
    """Features and outcomes of a Cox model with exponential times and censoring."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    hazard = np.exp(X @ (0.3 * rng.standard_normal(d)))
    at = rng.exponential(1 / hazard)
    end = rng.exponential(1.0, n)
    event = at <= end
    at = np.minimum(at, end)
    return X, np.ceil(20 * at).clip(max=50) if tied else at, event


def fit_memory(n: int) -> float:
    """Bytes by which a fit raises the memory of this process above its inputs (on Linux)."""
    X, at, event = cohort(n, False)
    y = Surv.from_arrays(event, at)
    DROCox().fit(X[:500], y[:500])
    if sys.platform != "linux":
        return math.nan
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    DROCox().fit(X, y)
    after = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    return 1024 * (int(after) - int(before))


def bench_fit() -> None:
    few, many = (200, 5000) if QUICK else (10**3, 10**6)
    print(
        f"\nLINEAR FITS, n = {many:,} x 10 features: all from arrays to a fitted model; ours\n"
        "with checks, certificate, worst case and baseline, to a gap of 1e-9 or better; Coxnet\n"
        "without penalty to its own tolerance, Breslow's ties (other packages: peers.py)"
    )
    for tied in (False, True):
        X, at, event = cohort(many, tied)
        y = Surv.from_arrays(event, at)
        calls = {
            "Cox": lambda X=X, y=y: DROCox(alpha=1).fit(X, y),
            "DRO-COX": lambda X=X, y=y: DROCox(alpha=0.2).fit(X, y),
            "Coxnet": lambda X=X, y=y: CoxnetSurvivalAnalysis(alphas=[1e-12]).fit(X, y),
        }
        took = dict(zip(calls, best(*calls.values(), seconds=0), strict=True))
        ours, robust, others = calls["Cox"](), calls["DRO-COX"](), list(calls)[2:]
        assert max(ours.gap_, robust.gap_) <= 1e-9, "not certified"
        assert np.allclose(ours.coef_, calls["Coxnet"]().coef_[:, 0], atol=2e-3), "not the same"
        first = min(took[name] for name in others)
        theirs = ", ".join(f"{name} {took[name]:.2f} s" for name in others)
        name = f"n = {many:>9,}, {TIMES[tied]}"
        met = took["Cox"] <= first
        line(f"{name}: Cox", f"{took['Cox']:.2f} s; {theirs}", "no slower", met)
        met = took["DRO-COX"] <= 2 * first
        line(f"{name}: DRO-COX", f"{took['DRO-COX']:.2f} s, gap {robust.gap_:.0e}", "<= 2 x", met)
        X, at, event = cohort(few, tied)
        y = Surv.from_arrays(event, at)
        for alpha, what in ((1, "Cox"), (0.2, "DRO-COX")):
            small = best(lambda X=X, y=y, a=alpha: DROCox(alpha=a).fit(X, y))[0]
            power = math.log(took[what] / small) / math.log(many / few)
            told = f"exponent {power:.2f} (n = {few:,}: {ms(small)})"
            line(f"    growth, {what}", told, "<= 1.1", power <= 1.1)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        line("    extra memory of DRO-COX", f"{pool.apply(fit_memory, (many,)) / 1e6:.0f} MB")


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


def bench_stack() -> None:
    ready, steps = prepare("as_published", "flc", 1), 5 if QUICK else 50
    X, start = ready.X[0], initial_parameters(6, None, 1)[None]
    rates = np.repeat([0.01, 0.003, 0.001, 0.0003, 0.0001], len(protocol.ALPHAS))
    c = np.tile([dual_constant(a, rule="paper") for a in protocol.ALPHAS], 5)
    print(f"\n{len(c)} LINEAR DRO-COX MODELS ON FLC, n = {len(X):,}, {steps} steps")

    def fit(low: int, high: int) -> np.ndarray:
        return fit_stack(
            X,
            dro_objective(ready.risk, c[low:high], ready.ties),
            start.repeat(high - low, 0),
            rates[low:high],
            n_iter=steps,
        ).theta

    calls = lambda: fit(0, 30), lambda: np.vstack([fit(i, i + 1) for i in range(30)])
    assert np.allclose(calls[0](), calls[1](), rtol=0, atol=1e-12), "stack and single fits differ"
    a, b = best(*calls)
    line(
        "time a step and model, as a stack",
        f"{ms(a / steps / 30)}, one by one {ms(b / steps / 30)}: {b / a:.2f} x",
        ">= 3 x",
        b >= 3 * a,
    )


def literal_time(ready, scores) -> float:
    """Time of the metrics over pairs and groups on validation and test, as the tests write them."""
    total = 0.0  # AUC and IBS are left out: written literally, they would take hours
    for k, judge in enumerate(ready.judges, 1):
        part, f, h = judge.part, scores[k].tolist(), np.exp(scores[k]).tolist()
        at, event = part.time.tolist(), part.event.tolist()
        start = time.thread_time()
        found = {
            "c_index": literal.concordance_index(f, at, event),
            "f_i": literal.individual_fairness(h, ready.X[k]),
            "f_cap": literal.intersectional_fairness(h, part.group_matrix),
        }
        for name, codes in part.groups.items():
            found[f"f_g_{name}"] = literal.group_fairness(h, codes.tolist())
            found[f"ci_percent_{name}"] = literal.concordance_imparity(f, at, event, codes.tolist())
        total += time.thread_time() - start
        ours = judge.fairness(scores[0], scores[k])
        assert all(abs(ours[key] - found[key]) < 1e-9 for key in found), "metrics differ"
    return total


def bench_metrics() -> None:
    name = "seer" if QUICK else "support"
    print(f"\nALL METRICS OF ONE {name.upper()} MODEL, validation and test, all attributes")
    ready = prepare("as_published", name, 1)
    model = fit_stack(
        ready.X[0],
        dro_objective(ready.risk, dual_constant(0.5, rule="paper"), ready.ties),
        initial_parameters(ready.X[0].shape[1], None, 1),
        0.01,
        n_iter=100,
    )
    train, *parts = (model.scores(X)[0] for X in ready.X)
    both = list(zip(ready.judges, parts, strict=True))
    a, b = best(
        lambda: [judge.fairness(train, f) for judge, f in both],
        lambda: [judge.accuracy(train, f, train) for judge, f in both],
    )
    slow = literal_time(ready, [train, *parts])
    line("c-index, CI, F_I, F_G, F_∩", f"{ms(a)}, literal loops {slow:.1f} s: {slow / a:.0f} x")
    line("AUC, LPL, IBS; the same calls in both", ms(b))
    line("all", f"{a + b:.3f} s: {(slow + b) / (a + b):.0f} x", "<= 0.3 s", a + b <= 0.3)


def dense_fit(ready, c: float, rate: float, steps: int) -> np.ndarray:
    """Algorithm C.2 for a linear model: whole matrices, and eta from a bounded scalar search."""
    X, event = torch.tensor(ready.X[0]), torch.tensor(ready.train.event)
    sides = dense_sides(ready.train.time, ready.first)
    w = torch.tensor(initial_parameters(X.shape[1], None, ready.weight_seed), requires_grad=True)
    adam = torch.optim.Adam([w], lr=rate)
    for _ in range(steps):
        losses, risk = dense_split_losses(X @ w, event, sides), 0.0
        for own, v in ((own, losses[own].detach().numpy()) for own, _, _ in sides):
            eta = minimize_scalar(
                lambda eta, v=v: c * np.sqrt((np.maximum(v - eta, 0) ** 2).mean()) + eta,
                bounds=(v.min() - 10 * np.ptp(v), v.max()),
            ).x
            risk = risk + c * (losses[own] - eta).clip(0).square().mean().sqrt() + eta
        adam.zero_grad()
        risk.backward()
        adam.step()
    return w.detach().numpy()


def bench_model() -> None:
    dataset, steps = ("seer", 4) if QUICK else ("flc", 50)
    print(f"\nONE LINEAR DRO-COX (SPLIT) MODEL ON {dataset.upper()}, trained and evaluated")
    stack = protocol.Stack("as_published", dataset, "DRO-COX (SPLIT)", 1, n2_share=0.5, sides=2)
    rate, _, alpha = stack.grid()[0]
    ready = prepare("as_published", dataset, 1, 0.5, 2)
    dense_fit(ready, dual_constant(alpha, rule="paper"), rate, 1)
    took, w = timed(lambda: dense_fit(ready, dual_constant(alpha, rule="paper"), rate, steps))
    scores = [X @ w for X in ready.X]
    rest, _ = timed(lambda: ready.judges[1].accuracy(*scores[::2], ready.baseline_X @ w))
    parts = took * 500 / steps, literal_time(ready, scores), rest
    prepare.cache_clear()
    fast, rows = timed(lambda: run.run_stack(stack))
    line(f"literal: 500 dense steps, scaled from {steps}", f"{parts[0]:.1f} s")
    line("literal: double loops; AUC, LPL, IBS as ours", f"{parts[1]:.1f} s; {parts[2]:.2f} s")
    line(
        f"package: a stack of {len(rows)}, per model",
        f"{fast / len(rows):.3f} s, literal "
        f"{sum(parts):.1f} s: {sum(parts) / fast * len(rows):.0f} x",
    )


if __name__ == "__main__":
    started, load = time.perf_counter(), ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load}; "
        f"Python {platform.python_version()}, torch {torch.__version__}, one thread"
    )
    chosen = [name for name in sys.argv[1:] if name != "--quick"]
    for bench in (
        bench_cox, bench_split, bench_penalty, bench_concordance, bench_individual, bench_fit,
        bench_cells, bench_stack, bench_metrics, bench_model,
    ):  # fmt: skip
        if not chosen or bench.__name__.removeprefix("bench_") in chosen:
            bench()
    print(f"\n{time.perf_counter() - started:.0f} s; missed: {', '.join(MISSED) or 'nothing'}")
    sys.exit(bool(MISSED))
