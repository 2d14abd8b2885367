"""Compiled loops over patients and pairs of patients, for the other modules.

Nothing is checked here. Arrays are float64 with one row per model of a stack; each kernel is tested
against a literal transcription of the formula in the module that calls it.

Loops are written out, because expressions over whole arrays take seconds to compile, once for every
installation.
"""

import numpy as np

from drocox.compiled import njit

SAFE_SPREAD = 600.0  # exp(-600) does not underflow: scores this close need one common shift


# --- Risk sets: sums over patients in time order, latest first ------------------------------------


@njit(cache=True)
def _scan(values, stop, enters, meets, begin, back):
    """Running sums over blocks of equal times: a block's values enter, then its patients read.

    The sums restart with each stratum.
    """
    models, n = values.shape
    out = np.empty((models, n))
    for m in range(models):
        sums = np.zeros(2)
        start = end = n if back else 0
        while (start > 0) if back else (end < n):
            if back:  # the block that ends where the last one began
                end = start
                while start > 0 and stop[0, start - 1] == end:
                    start -= 1
            else:
                start = end
                end = stop[0, start]
            if (end < n and begin[0, end] == end) if back else begin[0, start] == start:
                sums[:] = 0.0
            for q in range(start, end):
                sums[enters[0, q]] += values[m, q]
            for q in range(start, end):
                out[m, q] = sums[meets[0, q]]
    return out


def risk_sums(values, stop, enters, meets, begin):
    """Sum over the risk set of each patient: those of the same block and of earlier positions.

    ``values`` (models, n); the others (1, n). ``stop`` is one past the last position with the same
    time, ``begin`` the first position of the same stratum. There are two sums, one for each half of
    a split: a patient's value enters the sum ``enters``, and the patient reads the sum ``meets``.
    """
    return _scan(values, stop, enters, meets, begin, False)


def risk_sums_back(values, stop, enters, meets, begin):
    """The transposed map: sum over all patients in whose risk set each patient is."""
    return _scan(values, stop, meets, enters, begin, True)


# --- The worst case over a chi-square ball --------------------------------------------------------


@njit(cache=True)
def _worst_case_of_row(losses, weights, c, worst):
    """Minimiser and risk of one row; fills ``worst`` with the worst-case distribution.

    Losses are shifted by the largest and divided by their range, so that squares do not overflow
    and differences do not cancel.
    """
    n = len(losses)
    above = np.empty(n)
    mass = np.empty(n)
    active = 0
    top = -np.inf
    bottom = np.inf
    for i in range(n):
        if weights[i] > 0.0:
            above[active] = losses[i]
            mass[active] = weights[i]
            active += 1
            top = np.maximum(top, losses[i])  # NaN stays NaN
            bottom = np.minimum(bottom, losses[i])
    size = max(top - bottom, 1e-300)
    whole = 0.0
    tied = 0.0  # weight of the largest loss
    for i in range(active):
        above[i] = (above[i] - top) / size
        whole += mass[i]
        tied += mass[i] * (above[i] == 0.0)
    square = c * c
    if tied * square >= whole:  # everything on the largest losses
        for i in range(n):
            worst[i] = weights[i] / tied if losses[i] == top else 0.0
        return top, top
    if square == 1.0:  # C = 1: the mean, approached as eta falls without bound
        for i in range(n):
            worst[i] = weights[i] / whole
        total = 0.0
        for i in range(active):
            total += mass[i] * above[i]
        return -np.inf, top + total / whole * size
    share = whole
    while True:  # drop losses at or below eta, until there are none
        mean = 0.0
        for i in range(active):
            mean += mass[i] * above[i]
        mean /= share
        variance = 0.0
        for i in range(active):
            variance += mass[i] * (above[i] - mean) ** 2
        variance /= share
        spare = square * share / whole - 1.0
        at = mean - np.sqrt(variance / spare)
        left = 0
        share = 0.0
        for i in range(active):
            if above[i] > at:
                above[left] = above[i]
                mass[left] = mass[i]
                share += mass[i]
                left += 1
        if left == active or share * square <= whole:  # the second happens by rounding only
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
    eta, risk = np.empty((2, len(losses)))
    worst = np.empty(losses.shape)
    for m in range(len(losses)):
        eta[m], risk[m] = _worst_case_of_row(losses[m], weights, c[m], worst[m])
    return eta, risk, worst


# --- The smoothed worst case ----------------------------------------------------------------------


@njit(cache=True)
def smoothed_eta(below, mass, mu, cap):
    """The eta for which the masses times min((below - eta)_+ / mu, cap) sum to 1; ``below`` <= 0.

    The sum is piecewise linear and decreasing in eta. A Newton step is exact once eta is on the
    right piece; a step that leaves the bracket is replaced by bisection.
    """
    low = below.min() - 2.0 * mu
    high = 0.0
    eta = 0.5 * (low + high)
    known = -1  # numbers of patients between 0 and cap, and at cap, at the last Newton step
    known_capped = -1
    for _ in range(200):
        total = 0.0
        inside_mass = 0.0
        inside = 0
        capped = 0
        for i in range(len(below)):
            ratio = (below[i] - eta) / mu
            if ratio >= cap:
                total += mass[i] * cap
                capped += 1
            elif ratio > 0.0:
                total += mass[i] * ratio
                inside_mass += mass[i]
                inside += 1
        if inside == known and capped == known_capped:
            return eta  # the same piece as before, so the last step was exact
        if total > 1.0:
            low = eta
        else:
            high = eta
        known = -1
        eta_new = 0.5 * (low + high)
        if inside_mass > 0.0:
            step = eta + (total - 1.0) * mu / inside_mass
            if low <= step <= high:
                eta_new = step
                known = inside
                known_capped = capped
        if eta_new == eta:
            return eta
        eta = eta_new
    return eta


# --- Hinges |h_i - h_j| - margin over pairs of patients -------------------------------------------


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def hinge_sums(h, rows, columns, start, stop, margin):
    """Sum of the hinges over the given pairs, for each model."""
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


@njit(cache=True)
def hinge_gradients(h, rows, columns, start, stop, margin):
    """Gradient of the sum of hinges: each active pair adds +1 and -1 to its two hazards' entries.

    These are whole numbers, so the order of summation does not matter.
    """
    grad = np.zeros(h.shape)
    met = np.ascontiguousarray(h[:, columns])
    back = np.zeros(met.shape, np.int32)  # half the width of float64: twice as many per instruction
    at = 0
    for r in range(len(rows)):
        margin_of_row = margin[at : at + stop[r] - start[r]]
        at += len(margin_of_row)
        for m in range(len(h)):
            mine = h[m, rows[r]]
            others = met[m, start[r] : stop[r]]
            pushed = back[m, start[r] : stop[r]]
            push = np.int32(0)
            for k in range(len(others)):
                gap = mine - others[k]
                sign = np.int32(gap > margin_of_row[k]) - np.int32(gap < -margin_of_row[k])
                push += sign
                pushed[k] -= sign
            grad[m, rows[r]] += push
    for m in range(len(h)):
        for k in range(len(columns)):
            grad[m, columns[k]] += back[m, k]
    return grad


@njit(cache=True, fastmath={"reassoc", "contract"})
def _squares(x, p, low, square):
    """Squared distances of patient ``p`` to patients ``low`` to ``p - 1``; ``x`` (d, n)."""
    square[: p - low] = 0.0
    for d in range(len(x)):
        mine = x[d, p]
        others = x[d, low:p]
        for k in range(len(others)):
            square[k] += (mine - others[k]) ** 2


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def all_hinge_sum(h, x, gamma):
    """Sum of hinges over all pairs, in memory linear in n; ``x`` (d, n)."""
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
    """Gradient of :func:`all_hinge_sum`, given ascending hazards and their unit rows ``x`` (d, n).

    Unit rows are at most 2 apart, so pairs with hazards more than 2 gamma apart are always active
    and need only be counted; distances are computed for the pairs inside that window.
    """
    n = len(h)
    grad = np.zeros(n)
    far = np.zeros(n)  # far[k]: patients whose window begins at k
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
        grad[p] += low + push  # pairs with patients before the window are active
    # n - cumsum(far): number of patients whose window begins after p, each of which adds -1
    return grad + np.cumsum(far) - n


# --- A network with one hidden layer --------------------------------------------------------------


@njit(cache=True)
def activate(units, outer, scores):
    """Apply ReLU to the ``units`` (hidden, n) in place; add their weighted sum to ``scores``."""
    for h in range(len(units)):
        unit = units[h]
        weight = outer[h]
        for i in range(len(unit)):
            unit[i] = max(unit[i], 0.0)
            scores[i] += weight * unit[i]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def deactivate(units, upstream, grad_outer, passed):
    """Gradient of the outer weights; ``passed`` gets the upstream gradient of active units."""
    for h in range(len(units)):
        unit = units[h]
        out = passed[h]
        total = 0.0
        for i in range(len(unit)):
            total += unit[i] * upstream[i]
            out[i] = upstream[i] if unit[i] > 0.0 else 0.0
        grad_outer[h] = total
