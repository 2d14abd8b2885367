"""Compiled loops: the passes over patients and pairs that the other modules stand on.

Nothing is checked here. Every array is float64 with one row per model of a stack; each kernel is
tested equal to a literal transcription of the formula in the module that calls it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SAFE_SPREAD = 600.0  # exp(-600) is far from underflow: one shift serves the whole row


# --- Risk sets: running sums over patients, latest first -----------------------------------------


@njit(cache=True)
def _sums_of_row(x, inside, counts, stop, value, hazard, inverse, shift):
    """One model of :func:`sums_forward`; all arguments are rows in time order, latest first."""
    n = len(x)
    high = -np.inf
    low = np.inf
    for q in range(n):
        if inside[q]:
            high = max(high, x[q])
            low = min(low, x[q])
    # Sums are relative to exp(top): to the largest score of all where that is safe, otherwise to
    # the largest score so far.
    top = high if high - low < SAFE_SPREAD else -np.inf
    total = 0.0
    p = 0
    while p < n:  # one block of equal times after the other
        end = stop[p]
        for q in range(p, end):
            if not inside[q]:
                continue
            if x[q] > top:  # a new maximum: what was summed so far is relative to the old one
                smaller = np.exp(top - x[q])
                total *= smaller
                hazard[p:q] *= smaller
                top = x[q]
            hazard[q] = np.exp(x[q] - top)
            total += hazard[q]
        shift[p] = top
        log_total = top + np.log(total) if total > 0.0 else -np.inf
        for q in range(p, end):
            if counts[q]:
                value[q] = log_total
                inverse[q] = 1.0 / total if total > 0.0 else 0.0
        p = end


@njit(cache=True)
def sums_forward(scores, order, stop, event, member, others):
    """Log-sum-exp over the members of each event's risk set, and what the way back needs.

    With ``others``, members' own events are left out. At each position ``hazard`` is exp(score) of
    a member and ``inverse`` one over the running sum, both relative to exp(``shift``), which stands
    at the first position of each block of equal times.
    """
    models, n = scores.shape
    log_sum = np.zeros((models, n))
    hazard = np.zeros((models, n))
    inverse = np.zeros((models, n))
    shift = np.empty((models, n))
    x = np.empty(n)
    value = np.empty(n)
    inside = np.empty(n, np.bool_)
    counts = np.empty(n, np.bool_)
    for m in range(models):
        b = min(m, len(order) - 1)  # one data set for all models, or one each
        c = min(m, len(member) - 1)
        for q in range(n):
            i = order[b, q]
            x[q] = scores[m, i]
            inside[q] = member[c, i]
            counts[q] = event[b, q] and not (others and inside[q])
        _sums_of_row(x, inside, counts, stop[b], value, hazard[m], inverse[m], shift[m])
        for q in range(n):
            if counts[q]:
                log_sum[m, order[b, q]] = value[q]
    return log_sum, hazard, inverse, shift


@njit(cache=True)
def sums_backward(upstream, order, stop, event, hazard, inverse, shift):
    """Gradient: what each event passes back to the members of its risk set."""
    models, n = upstream.shape
    grad = np.empty((models, n))
    for m in range(models):
        b = min(m, len(order) - 1)
        passed = 0.0  # by the events of this time and earlier ones
        end = n
        while end > 0:
            p = end - 1
            while p > 0 and stop[b, p - 1] == end:
                p -= 1
            if end < n and shift[m, p] < shift[m, end]:  # sums here are relative to a smaller score
                passed *= np.exp(shift[m, p] - shift[m, end])
            for q in range(p, end):
                if event[b, q]:
                    passed += upstream[m, order[b, q]] * inverse[m, q]
            for q in range(p, end):
                grad[m, order[b, q]] = hazard[m, q] * passed
            end = p
    return grad


# --- The worst case over a chi-square ball --------------------------------------------------------


@njit(cache=True)
def _worst_case_of_row(losses, weights, c, worst, above, mass):
    """Minimiser and risk of one row; fills ``worst``. ``above`` and ``mass`` are work space.

    Losses are taken relative to the largest one and to their range, so that no square overflows and
    no difference cancels.
    """
    n = len(losses)
    top = -np.inf
    low = np.inf
    for i in range(n):
        if weights[i] > 0.0:
            top = max(top, losses[i])
            low = min(low, losses[i])
    size = max(top - low, 1e-300)
    whole = 0.0
    tied = 0.0  # weight of the largest loss
    active = 0
    for i in range(n):
        if weights[i] > 0.0:
            above[active] = (losses[i] - top) / size
            mass[active] = weights[i]
            whole += weights[i]
            if above[active] == 0.0:
                tied += weights[i]
            active += 1
    square = c * c
    if tied * square >= whole:  # everything on the largest losses
        for i in range(n):
            worst[i] = weights[i] / tied if losses[i] == top else 0.0
        return top, top
    if square == 1.0:  # C = 1: the mean, approached as eta falls without bound
        total = 0.0
        for i in range(active):
            total += mass[i] * above[i]
        for i in range(n):
            worst[i] = weights[i] / whole
        return -np.inf, top + total / whole * size
    while True:  # drop what lies at or below eta, until nothing does
        share = 0.0
        total = 0.0
        for i in range(active):
            share += mass[i]
            total += mass[i] * above[i]
        mean = total / share
        spread = 0.0
        for i in range(active):
            spread += mass[i] * (above[i] - mean) ** 2
        variance = spread / share
        spare = square * share / whole - 1.0
        at = mean - np.sqrt(variance / spare)
        left = 0
        heavier = 0.0
        for i in range(active):
            if above[i] > at:
                above[left] = above[i]
                mass[left] = mass[i]
                heavier += mass[i]
                left += 1
        if left == active or heavier * square <= whole:  # the second only by rounding
            break
        active = left
    total = 0.0
    for i in range(n):
        worst[i] = weights[i] * max((losses[i] - top) / size - at, 0.0)
        total += worst[i]
    for i in range(n):
        worst[i] /= total
    return top + at * size, top + (mean + np.sqrt(variance * spare)) * size


@njit(cache=True)
def worst_cases(losses, weights, c):
    """Minimiser, risk and worst-case distribution of each row for its constant c."""
    models, n = losses.shape
    eta = np.empty(models)
    risk = np.empty(models)
    worst = np.empty((models, n))
    above = np.empty(n)
    mass = np.empty(n)
    for m in range(models):
        row = weights[min(m, len(weights) - 1)]
        eta[m], risk[m] = _worst_case_of_row(losses[m], row, c[m], worst[m], above, mass)
    return eta, risk, worst


# --- Training: the same sums with one shift for all scores, nothing saved ------------------------


@njit(cache=True)
def totals(hazard, stop, event, side, split):
    """The sum that each event is compared with; 1 where nobody dies.

    ``hazard`` (models, n) is exp(score), patients in time order, latest first. With ``split`` an
    event meets itself and the other half (``side`` 0: D1, 1: D2), otherwise everybody at risk.
    """
    models, n = hazard.shape
    out = np.ones((models, n))
    for m in range(models):
        sums = np.zeros(2)  # running sums of the two halves
        p = 0
        while p < n:  # one block of equal times after the other
            end = stop[p]
            for q in range(p, end):
                sums[side[q]] += hazard[m, q]
            for q in range(p, end):
                if event[q]:
                    out[m, q] = hazard[m, q] + sums[1 - side[q]] if split else sums[0]
            p = end
    return out


@njit(cache=True)
def add_worst_cases(losses, part, c, value, pull):
    """Add the risk of the patients ``part`` to ``value``, put their worst case into ``pull``."""
    n = len(part)
    row = np.empty(n)
    worst = np.empty(n)
    above = np.empty(n)
    mass = np.empty(n)
    ones = np.ones(n)
    for m in range(len(losses)):
        for k in range(n):
            row[k] = losses[m, part[k]]
        _, risk = _worst_case_of_row(row, ones, c[m], worst, above, mass)
        value[m] += risk
        for k in range(n):
            pull[m, part[k]] = worst[k]


@njit(cache=True)
def pull_back(hazard, pull, push, stop, side, split):
    """Gradient of the scores, in time order.

    An event pulls its own score up by ``pull`` (models, n) and pushes everybody in its sum down by
    ``push``, its pull over that sum, times their hazard.
    """
    models, n = hazard.shape
    grad = np.empty((models, n))
    for m in range(models):
        pushed = np.zeros(2)  # by the events so far, on each half
        end = n
        while end > 0:  # earliest time first
            p = end - 1
            while p > 0 and stop[p - 1] == end:
                p -= 1
            for q in range(p, end):
                pushed[1 - side[q] if split else 0] += push[m, q]
            for q in range(p, end):
                received = pushed[side[q]]
                if split:
                    received += push[m, q]  # the patient's own term of its sum
                grad[m, q] = hazard[m, q] * received - pull[m, q]
            end = p
    return grad


# --- Hinges |h_i - h_j| - margin over pairs of patients -------------------------------------------


@njit(cache=True)
def margins(x, rows, columns, start, stop, gamma):
    """Distance times gamma of each pair, row after row; ``x`` (n, d) holds unit rows."""
    out = np.empty((stop - start).sum())
    at = 0
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
    value = np.zeros(len(h))
    met = np.ascontiguousarray(h[:, columns])
    at = 0
    for r in range(len(rows)):
        margin_of_row = margin[at : at + stop[r] - start[r]]
        at += len(margin_of_row)
        for m in range(len(h)):
            mine = h[m, rows[r]]
            others = met[m, start[r] : stop[r]]
            total = 0.0
            for k in range(len(others)):
                total += max(abs(mine - others[k]) - margin_of_row[k], 0.0)
            value[m] += total
    return value


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def _push(mine, others, margin, pushed):
    """Push of the active pairs of one patient on its hazard; theirs is subtracted in ``pushed``."""
    push = 0.0
    for k in range(len(others)):
        gap = mine - others[k]
        sign = (1.0 if gap > margin[k] else 0.0) - (1.0 if gap < -margin[k] else 0.0)
        push += sign
        pushed[k] -= sign
    return push


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def _push_two(one, two, others, margin_one, margin_two, pushed):
    """The same for two patients that meet the same others: half the loads and stores of those."""
    push_one = 0.0
    push_two = 0.0
    for k in range(len(others)):
        gap = one - others[k]
        gap_two = two - others[k]
        sign = (1.0 if gap > margin_one[k] else 0.0) - (1.0 if gap < -margin_one[k] else 0.0)
        sign_two = (1.0 if gap_two > margin_two[k] else 0.0) - (
            1.0 if gap_two < -margin_two[k] else 0.0
        )
        push_one += sign
        push_two += sign_two
        pushed[k] -= sign + sign_two
    return push_one, push_two


@njit(cache=True)
def hinge_gradients(h, rows, columns, start, stop, margin):
    """Gradient of the sum of hinges: every active pair pushes its two hazards together.

    Pushes are whole numbers, so the order in which they are added does not matter.
    """
    grad = np.zeros(h.shape)
    met = np.ascontiguousarray(h[:, columns])
    back = np.zeros(met.shape)
    at = 0  # where the margins of a row begin
    for r in range(0, len(rows), 2):
        last = min(r + 1, len(rows) - 1)
        next_at = at + stop[r] - start[r]
        # what both rows meet, and then what each meets alone; an odd last row is alone
        low = max(start[r], start[last])
        high = max(low, min(stop[r], stop[last])) if last > r else low
        for m in range(len(h)):
            one = h[m, rows[r]]
            two = h[m, rows[last]]
            shift = at - start[r]
            next_shift = next_at - start[last]
            push, push_two = _push_two(
                one,
                two,
                met[m, low:high],
                margin[shift + low : shift + high],
                margin[next_shift + low : next_shift + high],
                back[m, low:high],
            )
            for a, b in ((start[r], min(low, stop[r])), (high, stop[r])):
                if a < b:
                    push += _push(one, met[m, a:b], margin[shift + a : shift + b], back[m, a:b])
            if last > r:
                for a, b in ((start[last], min(low, stop[last])), (high, stop[last])):
                    if a < b:
                        push_two += _push(
                            two, met[m, a:b], margin[next_shift + a : next_shift + b], back[m, a:b]
                        )
                grad[m, rows[last]] += push_two
            grad[m, rows[r]] += push
        at = next_at + (stop[last] - start[last] if last > r else 0)
    for m in range(len(h)):
        for k in range(len(columns)):
            grad[m, columns[k]] += back[m, k]
    return grad


@njit(cache=True, fastmath={"reassoc", "contract"})
def _squares(x, p, low, square):
    """Squared distances of patient ``p`` to patients ``low`` to ``p``; ``x`` (d, n)."""
    square[: p - low] = 0.0
    for d in range(len(x)):
        mine = x[d, p]
        others = x[d, low:p]
        for k in range(len(others)):
            square[k] += (mine - others[k]) ** 2


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def all_hinge_sum(h, x, gamma):
    """Sum of hinges over all pairs, with memory for one patient's distances; ``x`` (d, n)."""
    n = len(h)
    square = np.empty(n)
    value = 0.0
    for p in range(n):
        _squares(x, p, 0, square)
        total = 0.0
        for k in range(p):
            total += max(abs(h[p] - h[k]) - gamma * np.sqrt(square[k]), 0.0)
        value += total
    return value


@njit(cache=True, fastmath={"reassoc", "contract"})
def all_hinge_gradient(h, x, gamma):
    """Gradient of the same, given hazards in ascending order and their unit rows ``x`` (d, n).

    Unit rows are at most 2 apart, so hazards more than 2 gamma apart are an active pair whatever
    the features: those are counted, and distances are computed for the pairs inside that window.
    """
    n = len(h)
    grad = np.zeros(n)
    far = np.zeros(n + 1)  # far[k]: patients whose window begins at k
    square = np.empty(n)
    low = 0  # where the window of patient p begins
    for p in range(n):
        while h[p] - h[low] > 2 * gamma:
            low += 1
        far[low] += 1.0
        _squares(x, p, low, square)
        near = h[low:p]
        pushed = grad[low:p]
        push = 0.0
        for k in range(len(near)):
            gap = h[p] - near[k]
            active = 1.0 if gap * gap > gamma * gamma * square[k] else 0.0
            push += active
            pushed[k] -= active
        grad[p] += low + push  # all patients before the window are active
    later = 0.0  # patients whose window begins after p: they push p down
    for p in range(n - 1, -1, -1):
        later += far[p + 1]
        grad[p] -= later
    return grad


# --- A network with one hidden layer --------------------------------------------------------------


@njit(cache=True)
def activate(units, outer, scores):
    """Apply ReLU to the hidden ``units`` (hidden, n) in place; add them to ``scores``, weighted."""
    for h in range(len(units)):
        unit = units[h]
        weight = outer[h]
        for i in range(len(unit)):
            unit[i] = max(unit[i], 0.0)
            scores[i] += weight * unit[i]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def deactivate(units, upstream, grad_outer, passed):
    """Gradient of the outer weights, and in ``passed`` what gets past the ReLU."""
    for h in range(len(units)):
        unit = units[h]
        out = passed[h]
        total = 0.0
        for i in range(len(unit)):
            total += unit[i] * upstream[i]
            out[i] = upstream[i] if unit[i] > 0.0 else 0.0
        grad_outer[h] = total
