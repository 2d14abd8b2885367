"""Compiled loops: the passes over patients and pairs that the other modules stand on.

Nothing is checked here. Every array is float64 with one row per model of a stack; each kernel is
tested equal to a literal transcription of the formula in the module that calls it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SAFE_SPREAD = 600.0  # exp(-600) is far from underflow: one shift serves the whole row


@njit(cache=True)
def sums_forward(f, order, stop, event, member, others):
    """Log-sum-exp over the members of each event's risk set, and what the way back needs.

    With ``others``, members' own events are left out. At each position ``hazard`` is exp(score) of
    a member, ``inverse`` one over the running sum, both relative to exp(``shift``).
    """
    models, n = f.shape
    log_sum, hazard = np.zeros((models, n)), np.zeros((models, n))
    inverse, shift = np.zeros((models, n)), np.empty((models, n))
    x, inside, counts = np.empty(n), np.empty(n, np.bool_), np.empty(n, np.bool_)
    for m in range(models):
        b, c = min(m, order.shape[0] - 1), min(m, member.shape[0] - 1)
        high, low = -np.inf, np.inf
        for q in range(n):
            x[q], inside[q] = f[m, order[b, q]], member[c, order[b, q]]
            counts[q] = event[b, q] and not (others and inside[q])
            if inside[q]:
                high, low = max(high, x[q]), min(low, x[q])
        top = high if high - low < SAFE_SPREAD else -np.inf
        total, p = 0.0, 0
        while p < n:
            end, deaths = stop[b, p], False
            for q in range(p, end):
                if inside[q]:
                    if x[q] > top:  # only where scores spread too far for one shift
                        total *= np.exp(top - x[q])
                        hazard[m, p:q] *= np.exp(top - x[q])
                        top = x[q]
                    hazard[m, q] = np.exp(x[q] - top)
                    total += hazard[m, q]
                deaths |= counts[q]
            shift[m, p] = top
            if deaths:
                value = top + np.log(total) if total > 0.0 else -np.inf
                for q in range(p, end):
                    if counts[q]:
                        log_sum[m, order[b, q]] = value
                        inverse[m, q] = 1.0 / total if total > 0.0 else 0.0
            p = end
    return log_sum, hazard, inverse, shift


@njit(cache=True)
def sums_backward(upstream, order, stop, event, hazard, inverse, shift):
    """Gradient: what each event passes back to the members of its risk set."""
    models, n = upstream.shape
    grad, g = np.empty((models, n)), np.empty(n)
    for m in range(models):
        b = min(m, order.shape[0] - 1)
        for q in range(n):
            g[q] = upstream[m, order[b, q]]
        passed, end = 0.0, n
        while end > 0:
            p = end - 1
            while p > 0 and stop[b, p - 1] == end:
                p -= 1
            if end < n and shift[m, p] < shift[m, end]:
                passed *= np.exp(shift[m, p] - shift[m, end])
            for q in range(p, end):
                if event[b, q]:
                    passed += g[q] * inverse[m, q]
            for q in range(p, end):
                grad[m, order[b, q]] = hazard[m, q] * passed
            end = p
    return grad


@njit(cache=True)
def solve(losses, c):
    """Minimiser, risk and worst-case weights of each row of ``losses`` for its constant c."""
    models, n = losses.shape
    eta, risk, weights = np.empty(models), np.empty(models), np.zeros((models, n))
    above = np.empty(n)  # losses relative to largest and range, those still active in front
    for m in range(models):
        square, top, ties = c[m] * c[m], losses[m].max(), 0
        size = max(top - losses[m].min(), 1e-300)
        for i in range(n):
            above[i] = (losses[m, i] - top) / size
            ties += above[i] == 0.0
        if ties * square >= n:  # everything on the largest losses
            eta[m], risk[m] = top, top
            weights[m] = (losses[m] == top) / ties
            continue
        if square == 1.0:  # C = 1: the mean, approached as eta falls without bound
            eta[m], risk[m] = -np.inf, top + above.mean() * size
            weights[m] = 1.0 / n
            continue
        active = n
        while True:
            mean = above[:active].sum() / active
            variance = ((above[:active] - mean) ** 2).sum() / active
            spare = square * active / n - 1.0
            at, left = mean - np.sqrt(variance / spare), 0
            for i in range(active):
                if above[i] > at:
                    above[left] = above[i]
                    left += 1
            if left == active or left * square <= n:  # the second only by rounding
                break
            active = left
        eta[m], risk[m] = top + at * size, top + (mean + np.sqrt(variance * spare)) * size
        weights[m] = np.maximum((losses[m] - top) / size - at, 0.0)
        weights[m] /= weights[m].sum()
    return eta, risk, weights


@njit(cache=True)
def margins(x, rows, columns, start, stop, gamma):
    out, at = np.empty((stop - start).sum()), 0
    for r in range(len(rows)):
        for k in range(start[r], stop[r]):
            square = 0.0
            for d in range(x.shape[1]):
                square += (x[rows[r], d] - x[columns[k], d]) ** 2
            out[at] = gamma * np.sqrt(square)
            at += 1
    return out


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def hinge_sums(h, rows, columns, start, stop, margin):
    """Sum of hinges of each model."""
    value, met, at = np.zeros(len(h)), np.ascontiguousarray(h[:, columns]), 0
    for r in range(len(rows)):
        margins = margin[at : at + stop[r] - start[r]]
        at += len(margins)
        for m in range(len(h)):
            mine, others, total = h[m, rows[r]], met[m, start[r] : stop[r]], 0.0
            for k in range(len(others)):
                excess = abs(mine - others[k]) - margins[k]
                total += excess if excess > 0.0 else 0.0
            value[m] += total
    return value


@njit(cache=True)
def hinge_gradients(h, rows, columns, start, stop, margin):
    """Gradient of the sum of hinges: every active pair pushes its two hazards together."""
    # whole numbers, slices and no branch: the compiler makes vector code of the inner loop
    grad, met, at = np.zeros(h.shape), np.ascontiguousarray(h[:, columns]), 0
    back = np.zeros(met.shape, np.int64)
    for r in range(len(rows)):
        margins = margin[at : at + stop[r] - start[r]]
        at += len(margins)
        for m in range(len(h)):
            mine, push = h[m, rows[r]], 0
            others, pushed = met[m, start[r] : stop[r]], back[m, start[r] : stop[r]]
            for k in range(len(others)):
                gap = mine - others[k]
                sign = np.int64(gap > margins[k]) - np.int64(gap < -margins[k])
                push += sign
                pushed[k] -= sign
            grad[m, rows[r]] += push
    for m in range(len(h)):
        for k in range(len(columns)):
            grad[m, columns[k]] += back[m, k]
    return grad


@njit(cache=True, fastmath={"reassoc", "contract"})
def window_gradient(h, x, gamma):
    """The same for all pairs, given hazards in ascending order and their unit rows ``x`` (d, n)."""
    # Unit rows are at most 2 apart, so hazards more than 2 gamma apart are an active pair whatever
    # the features: those are counted, and distances are computed for the few pairs inside.
    dims, n = x.shape
    grad, far_from, near, low = np.zeros(n), np.zeros(n + 1), np.empty(n), 0
    for p in range(n):
        while h[p] - h[low] > 2 * gamma:
            low += 1
        far_from[low] += 1.0
        square, met, pushed, push = near[: p - low], h[low:p], grad[low:p], 0.0
        square[:] = 0.0
        for d in range(dims):
            mine, others = x[d, p], x[d, low:p]
            for k in range(len(others)):
                square[k] += (mine - others[k]) ** 2
        for k in range(len(met)):
            gap = h[p] - met[k]
            active = 1.0 if gap * gap > gamma * gamma * square[k] else 0.0
            push += active
            pushed[k] -= active
        grad[p] += low + push
    beyond = 0.0
    for p in range(n - 1, -1, -1):
        beyond += far_from[p + 1]
        grad[p] -= beyond
    return grad


@njit(cache=True)
def concordance_counts(f, time, event):
    """Numerator and denominator of Algorithm B.1, patient by patient (each pair serves both)."""
    n = len(f)
    above, below = np.zeros(n), np.zeros(n)
    for i in range(n):
        for j in range(i):
            if time[i] == time[j]:
                if not (event[i] or event[j]):
                    continue
                if event[i] and event[j]:
                    point = 1.0 if f[i] == f[j] else 0.5
                else:
                    died, lived = (i, j) if event[i] else (j, i)
                    point = 1.0 if f[died] > f[lived] else 0.5
            else:
                early, late = (i, j) if time[i] < time[j] else (j, i)
                if not event[early]:
                    continue
                point = 1.0 if f[early] > f[late] else (0.5 if f[early] == f[late] else 0.0)
            above[i] += point
            above[j] += point
            below[i] += 1.0
            below[j] += 1.0
    return above, below


@njit(cache=True)
def activate(units, w2, out):
    """Apply ReLU in place and add the weighted units to ``out``."""
    for h in range(units.shape[0]):
        row, v = units[h], w2[h]
        for i in range(len(row)):
            row[i] = row[i] if row[i] > 0.0 else 0.0
            out[i] += v * row[i]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def deactivate(units, upstream, grad_w2, masked):
    """Gradient of w2, and the upstream gradient where a unit is active."""
    for h in range(units.shape[0]):
        row, out, total = units[h], masked[h], 0.0
        for i in range(len(row)):
            total += row[i] * upstream[i]
            out[i] = upstream[i] if row[i] > 0.0 else 0.0
        grad_w2[h] = total
