"""The formulas written out once more, as plain loops, to check the package against.

Nothing here imports the package, nothing is fast, and nothing checks its input. Equation,
algorithm and appendix numbers are those of Hu and Chen (2022). Logarithms of sums of exponentials
are taken relative to the largest term, which changes no value and keeps large scores finite.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar


class Drawn(NamedTuple):
    """Random patients: features (n, d), observed times (n,) and event indicators (n,)."""

    X: np.ndarray
    time: np.ndarray
    event: np.ndarray


def random_survival(rng: np.random.Generator, n: int, ties: float = 0.8, d: int = 3) -> Drawn:
    """Draw ``n`` patients with ``d`` normal features, at least one of them with an event.

    ``ties`` is a share: 0 gives distinct times, 1 one time for all; in between the times are
    whole numbers from 1 to about ``(1 - ties) * n``, so that events and censorings fall together.
    """
    X = rng.standard_normal((n, d))
    if ties == 0:
        time = rng.permutation(n) + 1.0 + 0.5 * rng.random(n)
    else:
        time = rng.integers(1, max(1, round((1 - ties) * n)) + 1, n).astype(float)
    event = rng.random(n) < rng.uniform(0.2, 0.9)
    event[rng.integers(n)] = True
    return Drawn(X, time, event)


# Cox losses ---------------------------------------------------------------------------------


def log_sum_exp(values) -> float:
    """Return log(sum(exp(values)))."""
    values = [float(v) for v in values]
    top = max(values)
    return top + math.log(math.fsum(math.exp(v - top) for v in values))


def cox_losses(scores, time, event) -> np.ndarray:
    """Return the n per-patient losses of eq. (3): tied patients share one risk set (Breslow)."""
    n = len(scores)
    losses = np.zeros(n)
    for i in range(n):
        if event[i]:
            risk_set = [scores[j] for j in range(n) if time[j] >= time[i]]
            losses[i] = -(scores[i] - log_sum_exp(risk_set))
    return losses


def cox_losses_efron(scores, time, event) -> np.ndarray:
    """Return per-patient losses that add up to Efron's log partial likelihood.

    Of d events at one time, with risk sum S and sum T over these d events, each has the loss
    -f_i + (1/d) sum_{k=0}^{d-1} log(S - (k/d) T).
    """
    n = len(scores)
    losses = np.zeros(n)
    for i in range(n):
        if not event[i]:
            continue
        risk_set = [j for j in range(n) if time[j] >= time[i]]
        tied = [j for j in range(n) if time[j] == time[i] and event[j]]
        top = max(scores[j] for j in risk_set)
        # The sum over those who are not tied events comes first: S - (k/d) T without cancellation.
        others = math.fsum(math.exp(scores[j] - top) for j in risk_set if j not in tied)
        tied_sum = math.fsum(math.exp(scores[j] - top) for j in tied)
        d = len(tied)
        terms = [top + math.log(others + (d - k) / d * tied_sum) for k in range(d)]
        losses[i] = -scores[i] + math.fsum(terms) / d
    return losses


def cox_losses_order(scores, time, event) -> np.ndarray:
    """Return per-patient losses whose risk set is a running sum down the sorted rows.

    Rows are sorted by descending time, stably: of tied patients, each one's risk set holds itself
    and those that stand before it in the given row order.
    """
    n = len(scores)
    order = sorted(range(n), key=lambda i: -time[i])
    losses = np.zeros(n)
    for position, i in enumerate(order):
        if event[i]:
            losses[i] = -(scores[i] - log_sum_exp(scores[j] for j in order[: position + 1]))
    return losses


def split_cox_losses(scores, time, event, first) -> np.ndarray:
    """Return the split losses of eq. (8) for every patient, both directions.

    A patient of D1 (``first`` true) is compared with itself and D2, one of D2 with itself and D1.
    """
    n = len(scores)
    losses = np.zeros(n)
    for i in range(n):
        if event[i]:
            phi = [scores[i]]
            for j in range(n):
                if bool(first[j]) != bool(first[i]) and time[j] >= time[i]:
                    phi.append(scores[j])
            losses[i] = -(scores[i] - log_sum_exp(phi))
    return losses


def log_partial_likelihood(losses, event) -> float:
    """Return minus the mean over events of the losses: eq. (2) per event, sign turned."""
    return -math.fsum(losses) / sum(bool(e) for e in event)


# Distributionally robust optimisation ------------------------------------------------------


def dual_constant(alpha: float, rule: str = "paper") -> float:
    """Return C of Proposition 3 ("paper"), or what Definition 1 gives, or the sharp constant."""
    if rule == "paper":
        return math.sqrt(2 * (1 / alpha - 1) ** 2 + 1)
    if rule == "definition":
        return math.sqrt((1 / alpha - 1) ** 2 + 1)
    return 1 / math.sqrt(alpha)  # "sharp"


def dro_objective(losses, c: float, eta: float) -> float:
    """Return eq. (7): C sqrt(mean([loss - eta]_+^2)) + eta."""
    squares = math.fsum(max(float(loss) - eta, 0.0) ** 2 for loss in losses)
    return c * math.sqrt(squares / len(losses)) + eta


def dro_by_search(losses, c: float) -> tuple[float, float]:
    """Return (risk, eta): the minimum of eq. (7) over eta by a scalar search.

    The search runs on losses shifted so that the largest is 0. The minimiser is at most the
    largest loss; the left end moves out until the objective rises towards it.
    """
    top = float(max(losses))
    shifted = [float(loss) - top for loss in losses]
    spread = -min(shifted)
    if c == 1 or spread == 0:  # eta runs to -infinity and the risk to the mean; or all are equal
        return top + math.fsum(shifted) / len(shifted), -math.inf if c == 1 else top
    left = -2 * spread
    while dro_objective(shifted, c, left) <= dro_objective(shifted, c, left / 2):
        left *= 2
    found = minimize_scalar(
        lambda eta: dro_objective(shifted, c, eta),
        bounds=(left, 0.0),
        method="bounded",
        options={"xatol": 1e-13 * -left, "maxiter": 1000},
    )
    # The objective has one kink, at the largest loss; the search never lands on it exactly.
    risk, eta = min((found.fun, found.x), (dro_objective(shifted, c, 0.0), 0.0))
    return top + risk, top + eta


def project_onto_simplex(values) -> np.ndarray:
    """Return the point of {q >= 0, sum q = 1} nearest to ``values``."""
    values = [float(v) for v in values]
    falling = sorted(values, reverse=True)
    shift = falling[0] - 1.0
    for k in range(1, len(falling) + 1):
        candidate = (math.fsum(falling[:k]) - 1.0) / k
        if falling[k - 1] > candidate:
            shift = candidate
    return np.array([max(v - shift, 0.0) for v in values])


def dro_primal(losses, c: float) -> tuple[float, np.ndarray]:
    """Return (risk, q): the supremum of eq. (4) over Definition 1's ball, without the dual.

    Maximise sum q_i loss_i subject to q >= 0, sum q = 1 and (1/n) sum (n q_i - 1)^2 <= c^2 - 1.
    For a multiplier m of the ball the maximiser is the projection of 1/n + loss/(n m) onto the
    simplex; its divergence falls as m grows, so m is found by bisection (on its logarithm).
    """
    top = float(max(losses))
    shifted = np.array([float(loss) - top for loss in losses])
    n, radius = len(shifted), c * c - 1.0
    at_top = shifted == 0
    if n / at_top.sum() - 1.0 <= radius:  # all mass may sit on the largest losses
        return top, at_top / at_top.sum()
    if radius <= 0:
        return float(np.mean(losses)), np.full(n, 1.0 / n)

    def tilted(log_multiplier: float) -> np.ndarray:
        return project_onto_simplex(1.0 / n + shifted / (n * math.exp(log_multiplier)))

    scale = math.log(-shifted.min())
    low, high = scale - 80.0, scale + 80.0
    for _ in range(200):
        middle = (low + high) / 2
        divergence = math.fsum((n * q - 1.0) ** 2 for q in tilted(middle)) / n
        low, high = (middle, high) if divergence > radius else (low, middle)
    q = tilted(high)
    return top + math.fsum(q * shifted), q


# Baseline hazard and survival function ------------------------------------------------------


def breslow_baseline(scores, time, event) -> tuple[np.ndarray, np.ndarray]:
    """Return (event times, baseline hazards) of appendix A."""
    n = len(scores)
    event_times = sorted({float(time[i]) for i in range(n) if event[i]})
    hazards = []
    for t in event_times:
        deaths = sum(1 for i in range(n) if event[i] and time[i] == t)
        hazards.append(deaths / math.fsum(math.exp(scores[i]) for i in range(n) if time[i] >= t))
    return np.array(event_times), np.array(hazards)


def breslow_survival(train_scores, time, event, scores, times) -> np.ndarray:
    """Return S(t | x) of appendix A, eq. (A.1): one row per score, one column per time."""
    event_times, hazards = breslow_baseline(train_scores, time, event)
    out = np.empty((len(scores), len(times)))
    for i, score in enumerate(scores):
        for k, t in enumerate(times):
            total = math.fsum(h for s, h in zip(event_times, hazards, strict=True) if s <= t)
            out[i, k] = math.exp(-total * math.exp(score))
    return out


# Accuracy -----------------------------------------------------------------------------------


def concordance_index(scores, time, event, tolerance: float = 1e-8) -> float:
    """Return Harrell's index by pairs: i has an event, and j outlives i or is censored with it.

    Scores that differ by at most ``tolerance`` count one half, as in scikit-survival.
    """
    n = len(scores)
    numerator = denominator = 0.0
    for i in range(n):
        for j in range(n):
            longer = time[j] > time[i] or (time[j] == time[i] and not event[j])
            if i == j or not event[i] or not longer:
                continue
            denominator += 1
            if abs(scores[i] - scores[j]) <= tolerance:
                numerator += 0.5
            elif scores[i] > scores[j]:
                numerator += 1
    return numerator / denominator


def kaplan_meier(time, event, at: float) -> float:
    """Return the Kaplan-Meier estimate of P(T > at)."""
    out = 1.0
    for t in sorted({float(s) for s, e in zip(time, event, strict=True) if e and s <= at}):
        deaths = sum(1 for s, e in zip(time, event, strict=True) if e and s == t)
        out *= 1 - deaths / sum(1 for s in time if s >= t)
    return out


def censoring_survival(train_time, train_event, at: float) -> float:
    """Return the Kaplan-Meier estimate of P(C > at); at a tie, events leave before censorings."""
    pairs = [(float(s), bool(e)) for s, e in zip(train_time, train_event, strict=True)]
    out = 1.0
    for t in sorted({s for s, e in pairs if not e and s <= at}):
        censored = sum(1 for s, e in pairs if s == t and not e)
        out *= 1 - censored / sum(1 for s, e in pairs if s > t or (s == t and not e))
    return out


def auc_at(train_time, train_event, scores, time, event, at: float) -> float:
    """Return the cumulative/dynamic AUC at one time: cases weighted by 1/G(time), ties one half."""
    n = len(scores)
    cases = [i for i in range(n) if event[i] and time[i] <= at]
    controls = [j for j in range(n) if time[j] > at]
    weights = {i: 1 / censoring_survival(train_time, train_event, time[i]) for i in cases}
    won = 0.0
    for i in cases:
        for j in controls:
            if scores[i] > scores[j]:
                won += weights[i]
            elif scores[i] == scores[j]:
                won += weights[i] / 2
    return won / (math.fsum(weights.values()) * len(controls))


def cumulative_auc(train_time, train_event, scores, time, event) -> float:
    """Return the mean AUC over 15 percentiles of the test times.

    A time's weight is the fall of the test part's Kaplan-Meier curve since the time before.
    """
    at = sorted({float(t) for t in np.percentile(time, np.linspace(5, 81, 15))})
    before, total = 1.0, 0.0
    for t in at:
        now = kaplan_meier(time, event, t)
        total += (before - now) * auc_at(train_time, train_event, scores, time, event, t)
        before = now
    return total / (1 - before)


def brier_score(train_time, train_event, survival, time, event, at: float) -> float:
    """Return the Brier score at one time, weighted for censoring; zero weight where G is 0.

    ``survival`` holds the n predicted probabilities of outliving ``at``.
    """
    total = 0.0
    for i in range(len(time)):
        if time[i] <= at and event[i]:
            g = censoring_survival(train_time, train_event, time[i])
            total += survival[i] ** 2 / g if g > 0 else 0.0
        elif time[i] > at:
            g = censoring_survival(train_time, train_event, at)
            total += (1 - survival[i]) ** 2 / g if g > 0 else 0.0
    return total / len(time)


def integrated_brier_score(train_time, train_event, survival, time, event, times) -> float:
    """Return the mean of the Brier score over [times[0], times[-1]] by the trapezoidal rule."""
    scores = [
        brier_score(train_time, train_event, [row[k] for row in survival], time, event, t)
        for k, t in enumerate(times)
    ]
    area = 0.0
    for k in range(len(times) - 1):
        area += (times[k + 1] - times[k]) * (scores[k] + scores[k + 1]) / 2
    return area / (times[-1] - times[0])


# Fairness metrics, appendix B ---------------------------------------------------------------


def unit_rows(X) -> list[list[float]]:
    """Return the rows of ``X`` scaled to Euclidean length 1; rows of zeros stay as they are."""
    out = []
    for row in np.asarray(X, dtype=float).tolist():
        length = math.sqrt(math.fsum(v * v for v in row))
        out.append([v / length for v in row] if length > 0 else row)
    return out


def excess(hazards, rows, i: int, j: int, gamma: float) -> float:
    """Return [|h_i - h_j| - gamma ||x_i - x_j||]_+, the summand of F_I (appendix B)."""
    distance = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True)))
    return max(abs(float(hazards[i]) - float(hazards[j])) - gamma * distance, 0.0)


def individual_fairness(hazards, X, gamma: float = 0.01) -> float:
    """Return F_I (appendix B) on rows of unit length, divided by N(N-1)."""
    n = len(hazards)
    rows = unit_rows(X)
    total = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            total += excess(hazards, rows, i, j, gamma)
    return total / (n * (n - 1))


def group_mean(hazards, members, smoothing: bool) -> float:
    """Return the mean hazard of ``members``, or (sum + 0.5) / (size + 1) with smoothing."""
    total = math.fsum(float(hazards[i]) for i in members)
    return (total + 0.5) / (len(members) + 1) if smoothing else total / len(members)


def group_fairness(hazards, codes, smoothing: bool = True) -> float:
    """Return F_G (appendix B): the largest distance of a group's mean from everybody's mean."""
    n = len(hazards)
    population = math.fsum(float(h) for h in hazards) / n
    largest = 0.0
    for group in set(np.asarray(codes).tolist()):
        members = [i for i in range(n) if codes[i] == group]
        largest = max(largest, abs(group_mean(hazards, members, smoothing) - population))
    return largest


def intersectional_fairness(hazards, codes, smoothing: bool = True) -> float:
    """Return F_cap (appendix B) over all cells of the product of the columns of ``codes``.

    An empty cell has the smoothed mean 0.5; without smoothing its mean is 0/0, an error.
    """
    rows = [tuple(row) for row in np.asarray(codes).tolist()]
    columns = [sorted({row[k] for row in rows}) for k in range(len(rows[0]))]
    means = []
    for cell in itertools.product(*columns):
        members = [i for i, row in enumerate(rows) if row == cell]
        means.append(group_mean(hazards, members, smoothing))
    largest = 0.0
    for a in means:
        for b in means:
            largest = max(largest, abs(math.log(a / b)))
    return largest


def concordance_imparity(scores, time, event, codes) -> float:
    """Return CI by Algorithm B.1, line by line, in percent."""
    n = len(scores)
    values = sorted(set(np.asarray(codes).tolist()))
    N = {a: 0.0 for a in values}
    D = {a: 0.0 for a in values}
    for i in range(n):
        for j in range(n):
            if j == i:
                continue
            if (
                (time[i] < time[j] and event[i] == 0)
                or (time[j] < time[i] and event[j] == 0)
                or (time[i] == time[j] and event[i] == 0 and event[j] == 0)
            ):
                continue
            D[codes[i]] += 1
            if time[i] < time[j]:
                if scores[i] > scores[j]:
                    N[codes[i]] += 1
                elif scores[i] == scores[j]:
                    N[codes[i]] += 0.5
            elif time[i] > time[j]:
                if scores[i] < scores[j]:
                    N[codes[i]] += 1
                elif scores[i] == scores[j]:
                    N[codes[i]] += 0.5
            elif time[i] == time[j]:
                if event[i] == 1 and event[j] == 1:
                    if scores[i] == scores[j]:
                        N[codes[i]] += 1
                    else:
                        N[codes[i]] += 0.5
                elif event[i] == 0 and event[j] == 1 and scores[i] < scores[j]:
                    N[codes[i]] += 1
                elif event[i] == 1 and event[j] == 0 and scores[i] > scores[j]:
                    N[codes[i]] += 1
                else:
                    N[codes[i]] += 0.5
    CF = {a: N[a] / D[a] for a in values}
    return 100 * max(abs(CF[a] - CF[b]) for a in values for b in values if a != b)


# Penalties of the fair baselines ------------------------------------------------------------


def penalty_rp(hazards, X, time, event, codes, gamma: float = 0.01) -> float:
    """Return G (Rahman & Purushotham), or I if all codes are equal: F_I's summands over censored i
    and events j of one group, Y_i <= Y_j, divided by (number censored) * (number of events)."""
    n = len(hazards)
    rows = unit_rows(X)
    total = 0.0
    for i in range(n):
        for j in range(n):
            if not event[i] and event[j] and time[i] <= time[j] and codes[i] == codes[j]:
                total += excess(hazards, rows, i, j, gamma)
    events = sum(bool(e) for e in event)
    return total / ((n - events) * events)


# Selection ----------------------------------------------------------------------------------


def stated_rule(rows, plain, metric) -> list:
    """Return the index of the row that the paper's rule chooses in each of ten repeats.

    Of the settings with at least 95 % of plain Cox's best validation c-index, the one with the
    smallest ``metric``; if there is none, the setting with the largest validation c-index.
    """
    chosen = []
    for repeat in range(1, 11):
        mine = rows[rows["repeat"] == repeat]
        best = plain.loc[plain["repeat"] == repeat, "val_c_index"].max()
        fair = mine[mine["val_c_index"] >= 0.95 * best]
        if len(fair) == 0:
            chosen.append(mine["val_c_index"].idxmax())
        else:
            chosen.append(fair[metric].idxmin())
    return chosen
