"""Random problems for the solver, judged by formulas written out: ``fuzz_solver.py N [FIRST]``.

Each problem has some of: ties, a split, counts as weights, strata, a ridge penalty, outliers, few
events, collinear and constant columns, other units. Its solution is judged by losses and risks
computed patient by patient (see ``literal_objective``), which share no code with the package:

- the risk it reports is the risk of its coefficients;
- no point anyone finds has a risk below its bound: neither SciPy's minimisers, started at 0 and at
  the solution, nor random points around it (otherwise it is a *false certificate*);
- nobody finds a risk that is smaller by more than the gap it admits;
- it is certified to 1e-6, or says that it is separated (otherwise it is *open*).

Prints a line for each problem that fails and the counts at the end.
"""

import sys
from collections import Counter

import numpy as np
from scipy.optimize import minimize

import drocox
from drocox.solver import Solution, minimise

RULES = ("paper", "definition", "sharp", "cvar")
ROUNDING = 1e-9  # of a literal risk, relative to its size


def draw_problem(seed: int) -> dict:
    """A random problem, by its seed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 60))
    d = int(rng.integers(1, 6))
    X = rng.standard_normal((n, d))
    kinds = rng.random(12)
    if kinds[0] < 0.3:  # few values: many patients are alike
        X = np.round(X)
    if kinds[1] < 0.15:
        X[rng.integers(n), rng.integers(d)] = rng.choice([-1, 1]) * 10 ** rng.uniform(1, 4)
    if kinds[2] < 0.15:
        X = np.column_stack([X, X @ rng.standard_normal(d)])
    if kinds[3] < 0.15:
        X = np.column_stack([X, np.full(n, rng.choice([0.1, 1 / 3, -0.3, 7.0]))])
    if kinds[4] < 0.3:
        X = X * 10.0 ** rng.integers(-6, 7, X.shape[1])
    scores = X[:, 0] / max(np.abs(X[:, 0]).max(), 1e-300)
    time = rng.exponential(np.exp(-scores))
    if kinds[5] < 0.6:
        time = np.ceil(time * rng.choice([2, 5, 20]))
    event = rng.random(n) < rng.choice([0.1, 0.4, 0.7, 1.0])
    event[rng.integers(n)] = True
    first = weights = strata = None
    if kinds[6] < 0.25:
        first = rng.random(n) < 0.5
        first[0] = True
        first[1] = False
        event[:2] = True
    elif kinds[7] < 0.3:
        weights = rng.choice([0.0, 0.7, 1.0, 2.0, 3.5], n)
        weights[np.flatnonzero(event)[0]] = 1.5
    if kinds[8] < 0.3:
        strata = rng.integers(0, rng.integers(2, 5), n)
    penalty = 10 ** rng.uniform(-4, 1) if kinds[9] < 0.4 else 0.0
    return {
        "X": X,
        "time": time,
        "event": event,
        "alpha": float(rng.choice([1.0, 0.7, 0.5, 0.25, 0.1, 0.03])),
        "rule": str(rng.choice(RULES)),
        "first": first,
        "weights": weights,
        "strata": strata,
        "penalty": penalty,
    }


def literal_losses(X, time, event, theta, first, weights, strata) -> np.ndarray:
    """Equations (3) and (8), patient by patient."""
    f = X @ theta
    at_risk = time[None, :] >= time[:, None]
    if strata is not None:
        at_risk &= strata[None, :] == strata[:, None]
    if first is not None:
        at_risk &= first[None, :] != first[:, None]
        np.fill_diagonal(at_risk, True)
    counts = np.ones(len(X)) if weights is None else weights
    at_risk &= counts[None, :] > 0
    dead = np.flatnonzero(event & (counts > 0))
    met = np.where(at_risk[dead], f[None, :], -np.inf)
    top = met.max(axis=1)
    losses = np.zeros(len(X))
    losses[dead] = np.log(np.exp(met - top[:, None]) @ counts) + top - f[dead]
    return losses


def literal_worst(losses, mass, alpha: float, rule: str) -> tuple[float, np.ndarray]:
    """The adversary's largest mean of losses and its weights, by sorting and by bisection."""
    if alpha == 1:
        return mass @ losses, mass
    if rule == "cvar":
        q = np.zeros(len(losses))
        left = 1.0
        for i in np.argsort(-losses):
            q[i] = min(mass[i] / alpha, left)
            left -= q[i]
        return q @ losses, q
    square = drocox.dual_constant(alpha, rule=rule) ** 2
    here = mass > 0
    top = losses[here].max()
    tied = here & (losses >= top)
    if mass[tied].sum() * square >= 1:
        return top, np.where(tied, mass, 0) / mass[tied].sum()

    def length(eta):  # sum of q^2 / p for q proportional to p (loss - eta)_+
        above = np.maximum(losses - eta, 0)
        return mass @ above**2 / (mass @ above) ** 2

    low = top - 1.0
    while length(low) > square:
        low = top - 2 * (top - low)
    high = top
    for _ in range(200):
        middle = 0.5 * (low + high)
        above = mass @ np.maximum(losses - middle, 0)
        if above > 0 and length(middle) <= square:
            low = middle
        else:
            high = middle
    q = mass * np.maximum(losses - low, 0)
    q = q / q.sum()
    return q @ losses, q


def literal_objective(
    theta, X, time, event, alpha, rule, first=None, weights=None, strata=None, penalty=0.0
) -> float:
    """What the solver is to minimise, patient by patient."""
    losses = literal_losses(X, time, event, theta, first, weights, strata)
    counts = np.ones(len(X)) if weights is None else weights
    halves = [np.full(len(X), True)] if first is None else [first, ~first]
    risk = 0.5 * penalty * theta @ theta
    for half in halves:
        mass = counts[half] / counts[half].sum()
        risk += literal_worst(losses[half], mass, alpha, rule)[0]
    return risk


def solve(problem: dict) -> Solution:
    """The solver's answer."""
    names = ("alpha", "rule", "first", "weights", "penalty")
    risk = drocox.risk_sets(problem["time"], problem["event"], strata=problem["strata"])
    return minimise(problem["X"], risk, **{name: problem[name] for name in names})


def smallest_found(problem: dict, found: Solution, rng, others: bool = True) -> float:
    """The smallest risk that anyone else finds."""
    unit = problem["X"].std(axis=0)
    unit[unit <= 1e-12 * np.abs(problem["X"]).max(axis=0)] = np.inf  # constant: nothing to find

    def risk(point):
        return literal_objective(point / unit, **problem)

    here = np.where(np.isfinite(unit), found.coef * unit, 0.0)
    points = [np.zeros_like(here)]
    for scale in (1e-4, 1e-2, 0.3, 3.0):
        points += [here + scale * rng.standard_normal(len(here)) for _ in range(3)]
    values = [risk(point) for point in points]
    if others:
        for start in (np.zeros_like(here), here):
            for method in ("L-BFGS-B", "Nelder-Mead"):
                options = {"maxiter": 200}
                values.append(minimize(risk, start, method=method, options=options).fun)
    return float(np.min(values))


def judge(seed: int, others: bool = True) -> str:
    """A word for what the solver makes of a problem."""
    problem = draw_problem(seed)
    try:
        found = solve(problem)
    except ValueError:
        return "refused"
    size = max(1.0, abs(found.risk))
    if abs(literal_objective(found.coef, **problem) - found.risk) > 1e-7 * size:
        return "wrong risk"
    with np.errstate(over="ignore", invalid="ignore"):
        smallest = smallest_found(problem, found, np.random.default_rng(seed), others)
    if smallest < found.bound - ROUNDING * size:
        return "false certificate"
    if smallest < found.risk - max(found.gap, 1e-8) * size - ROUNDING * size:
        return "beaten"
    if found.separated:
        return "separated"
    return "certified" if found.gap <= 1e-6 else "open"


def main(n: int, first: int = 0) -> None:
    """Judge ``n`` problems and print counts."""
    counts = Counter()
    for seed in range(first, first + n):
        verdict = judge(seed)
        counts[verdict] += 1
        if verdict not in ("certified", "separated"):
            print(f"seed {seed}: {verdict}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
