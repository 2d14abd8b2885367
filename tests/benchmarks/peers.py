"""Linear Cox models beside other packages': seconds on one core, and whether answers agree.

``peers.py [N ...] [--python PATH ...]``: n x 10 features for n = 1,000, 100,000 and 1,000,000 (or
the n given), without ties and with about 100 distinct times. Measured is all from arrays to
coefficients, in processor seconds of one thread, the best of several: ours with checks and a
certificate, the others' to the loosest of their tolerances that brings coefficients within 1e-4 of
ours, which is checked. Penalties that a package insists on are 1e-6 or smaller. lifelines has
Efron's ties only, and skglm 0.5 takes them whatever its ``method`` says (a text counts as "use
Efron"), so their coefficients are compared without ties.

Each package runs in a process of its own: in this Python, or in the first of those given by
``--python`` that can import it. None is a dependency; to try them all:

    python -m venv peers && peers/bin/pip install coxdev==0.4.1 skglm==0.5 lifelines==0.30.3
    python -m venv old && old/bin/pip install adelie==1.1.52 "numpy<2"
    python tests/benchmarks/peers.py --python peers/bin/python --python old/bin/python

adelie is compiled where it has no wheel, and needs the headers of Eigen 3.4 on
``CPLUS_INCLUDE_PATH``.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

SIZES = (10**3, 10**5, 10**6)
FEATURES = 10
SECONDS = 2.0  # for repeats of one measurement
PENALTY = 1e-6  # where a package insists on one
AGREE = 1e-4
LIFELINES_MOST = 10**5
MODULES = {"Coxnet": "sksurv", "lifelines": "lifelines", "coxdev": "coxdev", "skglm": "skglm",
           "adelie": "adelie"}  # fmt: skip
OURS = ("Cox, minimise", "Cox", "DRO-COX, sharp .2", "CVaR .2", "ridge", "strata")
EFRON = ("lifelines", "skglm")  # ties by Efron, always
SAME = ("Cox, minimise", "Cox", *MODULES)  # the same optimum


def cohort(n: int, tied: bool) -> dict[str, np.ndarray]:
    """Features, times, events and five strata of a Cox model with exponential censoring."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, FEATURES))
    hazard = np.exp(X @ (0.3 * rng.standard_normal(FEATURES)))
    dies = rng.exponential(1 / hazard)
    leaves = rng.exponential(1.0, n)
    observed = np.minimum(dies, leaves)
    if tied:
        observed = np.ceil(40 * observed).clip(max=100)
    return {"X": X, "time": observed, "event": dies <= leaves, "strata": rng.integers(0, 5, n)}


# One function for each package: coefficients from arrays. They import what they measure.


def fit_ours(name: str, X, time, event, strata) -> np.ndarray:
    """Ours, by the name of the model."""
    from sksurv.util import Surv

    from drocox import DROCox, risk_sets
    from drocox.solver import minimise

    if name == "Cox, minimise":
        return minimise(X, risk_sets(time, event), 1).coef
    y = Surv.from_arrays(event, time)
    if name == "strata":
        return DROCox(alpha=1).fit(X, y, strata=strata).coef_
    models = {
        "Cox": DROCox(alpha=1),
        "DRO-COX, sharp .2": DROCox(alpha=0.2, rule="sharp"),
        "CVaR .2": DROCox(alpha=0.2, rule="cvar"),
        "ridge": DROCox(alpha=1, penalty=0.01),
    }
    return models[name].fit(X, y).coef_


def fit_coxnet(X, time, event, strata) -> np.ndarray:
    """scikit-survival's Coxnet without baseline."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis
    from sksurv.util import Surv

    model = CoxnetSurvivalAnalysis(alphas=[PENALTY], l1_ratio=1e-3, tol=1e-9)
    return model.fit(X, Surv.from_arrays(event, time)).coef_[:, 0]


def fit_lifelines(X, time, event, strata) -> np.ndarray:
    """lifelines' CoxPHFitter."""
    import pandas as pd
    from lifelines import CoxPHFitter

    table = pd.DataFrame(X).assign(time=time, event=event)
    return CoxPHFitter().fit(table, "time", "event").params_.to_numpy()


def fit_coxdev(X, time, event, strata) -> np.ndarray:
    """coxdev's deviance with its information matrix, in Newton steps until they are below 1e-6."""
    from coxdev import CoxDeviance

    deviance = CoxDeviance(time, event.astype(int), tie_breaking="breslow")
    coef = np.zeros(X.shape[1])
    for _ in range(30):
        scores = X @ coef
        gradient = X.T @ deviance(scores).gradient / 2  # of half the deviance
        step = np.linalg.solve(X.T @ (deviance.information(scores) @ X), gradient)
        coef = coef - step
        if np.abs(step).max() < 1e-6:
            break
    return coef


def fit_skglm(X, time, event, strata) -> np.ndarray:
    """skglm's CoxEstimator with a ridge penalty of next to nothing."""
    from skglm import CoxEstimator

    y = np.column_stack([time, event.astype(float)])
    model = CoxEstimator(alpha=PENALTY, l1_ratio=0.0, method="breslow", tol=1e-6, max_iter=500)
    return model.fit(X, y).coef_


def fit_adelie(X, time, event, strata) -> np.ndarray:
    """adelie's group elastic net at one penalty of next to nothing."""
    import adelie

    model = adelie.glm.cox(
        start=np.full(len(time), -1.0), stop=time, status=event.astype(float), tie_method="breslow"
    )
    path = adelie.grpnet(
        np.asfortranarray(X),
        model,
        lmda_path=[PENALTY],
        early_exit=False,
        tol=1e-10,
        progress_bar=False,
    )
    return path.betas.toarray()[-1]


FITS: dict[str, Callable] = {
    "Coxnet": fit_coxnet,
    "lifelines": fit_lifelines,
    "coxdev": fit_coxdev,
    "skglm": fit_skglm,
    "adelie": fit_adelie,
}


def measure(name: str, file: str) -> dict:
    """Fit one model several times, in this process."""
    warnings.simplefilter("ignore")
    data = dict(np.load(file))
    few = {key: values[:500] for key, values in data.items()}

    def fit(part: dict) -> np.ndarray:
        return fit_ours(name, **part) if name in OURS else FITS[name](**part)

    fit(few)  # imports and compiles
    taken = []
    while not taken or (sum(taken) < SECONDS and len(taken) < 50):
        begin = time.thread_time()
        coef = fit(data)
        taken.append(time.thread_time() - begin)
    return {"seconds": min(taken), "coef": np.asarray(coef, float).tolist()}


def interpreter(name: str, pythons: list[str]) -> str | None:
    """The first Python that can import what a model needs."""
    module = MODULES.get(name, "drocox")
    for python in pythons:
        done = subprocess.run([python, "-c", f"import {module}"], capture_output=True)
        if done.returncode == 0:
            return python
    return None


def show(name: str, python: str, file: str, reference: np.ndarray | None, same: bool) -> tuple:
    """Measure one model in a process of its own and print its row."""
    command = [python, __file__, "--one", name, file]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["killed"])[-1]
        print(f"  {name:<18} failed: {last[:80]}", flush=True)
        return None, False
    answer = json.loads(done.stdout.splitlines()[-1])
    coef = np.array(answer["coef"])
    note = ""
    agrees = True
    if same and reference is not None:
        difference = np.abs(coef - reference).max()
        agrees = bool(difference <= AGREE)
        note = f"coefficients within {difference:.0e}" + ("" if agrees else ", NOT THE SAME")
    print(f"  {name:<18} {answer['seconds']:9.4f} s  {note}".rstrip(), flush=True)
    return coef, agrees


def compare(n: int, tied: bool, interpreters: dict[str, str]) -> bool:
    """Measure all models on one cohort."""
    times = "about 100 distinct times" if tied else "no ties"
    print(f"\nn = {n:,} x {FEATURES}, {times}")
    agree = []
    reference = None
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "cohort.npz")
        np.savez(file, **cohort(n, tied))
        for name, python in interpreters.items():
            if name == "lifelines" and n > LIFELINES_MOST:
                continue
            same = name in SAME and not (name in EFRON and tied)
            coef, agrees = show(name, python, file, reference, same)
            agree.append(agrees)
            if name == OURS[0]:
                reference = coef
    return all(agree)


def main() -> None:
    """Measure all and print a table; status 1 if something fails or coefficients differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(*chosen.one)))
        return
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{platform.machine()}, load {load}; processor seconds, one thread, best of several")
    interpreters = {}
    for name in (*OURS, *FITS):
        python = interpreter(name, [sys.executable, *chosen.python])
        if python is None:
            print(f"{name} is not importable; {Path(__file__).name} says how to install it")
        else:
            interpreters[name] = python
    results = [compare(n, tied, interpreters) for n in chosen.sizes for tied in (False, True)]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
