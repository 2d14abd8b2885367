"""Wrong answers to the checks of ``drocox/exercises/worst_case.py``, and words of what is said."""

import numpy as np

L52, L4, L32 = np.log(2.5), np.log(4), np.log(1.5)
SIX = [L52, 0, L4, L32, 0, 0]


def eta(losses, c):
    """Minimum of the dual on a fine grid, refined."""
    low, high = min(losses) - 10, max(losses)
    for _ in range(12):
        grid = np.linspace(low, high, 201)
        excess = np.maximum(np.subtract.outer(losses, grid), 0)
        at = np.argmin(c * np.sqrt(np.mean(excess**2, axis=0)) + grid)
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, 200)]
    return (low + high) / 2


def by_search(losses, c):
    levels = np.linspace(losses.min() - 2, losses.max(), 500)
    excess = np.maximum(losses - levels[:, None], 0)
    return levels[np.argmin(levels + c * np.sqrt((excess**2).mean(axis=1)))]


def by_sorting(losses, c):
    ordered = np.sort(losses)[::-1]
    for k in range(1, len(ordered) + 1):
        s = c * c * k / len(ordered) - 1
        if s <= 0:
            continue
        found = ordered[:k].mean() - ordered[:k].std() / np.sqrt(s)
        if found < ordered[k - 1] and (k == len(ordered) or ordered[k] <= found):
            return found


def everybody(losses, c):
    return losses.mean() - losses.std() / np.sqrt(c * c - 1)


def risk(losses, c):
    at = by_sorting(losses, c)
    return c * np.sqrt(np.mean(np.maximum(losses - at, 0) ** 2)) + at


def positive(losses, at):
    return np.where(losses > at, losses - at, 0)


WRONG = {
    "worst-case-cvar": [
        (L4, "worst patient alone"),
        ((L4 + L52) / 2, "both count whole"),
        ((L4 + L52 / 2) / 2, "divide by the patients that were counted"),
        ((L4 + L52 / 2) / 6, "not by all"),
    ],
    "worst-case-divergence": [
        (2.25, "distance from 1"),
        (1 / 4 + 1 / 16 + 1 / 16 - 1 / 6, "about densities"),
        ((4 + 0.25 + 0.25) / 6, "without weight"),
        (0.625, "this is half of it"),
        (7.5, "divided by six"),
        (0.5 * np.log(3) + 0.5 * np.log(1.5), "Kullback–Leibler"),
        (0.752, "Kullback–Leibler"),
    ],
    "dual-by-hand": [
        (np.mean(SIX) - np.std(SIX) / np.sqrt(7 / 3), "after one pass"),
        (np.mean([L52, L4, L32]) - np.std([L52, L4, L32]) / np.sqrt(2 / 3), "two passes"),
        ((L4 + L52) / 2 + (L4 - L52) / 6, "this is the risk"),
        ((L4 + L52) / 2 - 3 * (L4 - L52) / np.sqrt(2), "divisor k"),
        ((L4 + L52) / 2 - (L4 - L52) / 2 / np.sqrt(7 / 3), "the share k/n"),
    ],
    "who-censored-weight": [
        (0, "the sign of η"),
        ((np.sqrt(0.96) - 0.8) / (10 * np.sqrt(0.96)), "one of them"),
        (0.6, "equal weights"),
        (1 - 6 * (np.sqrt(0.96) - 0.8) / (10 * np.sqrt(0.96)), "what the four deaths have"),
    ],
    "worst-case-share": [
        (lambda a: 1 / (1 + (1 / a - 1) ** 2), "Proposition 2"),
        (lambda a: a, "sharp radius protects"),
        (lambda a: 1 / np.sqrt(2 * (1 / a - 1) ** 2 + 1), "the square of the constant"),
        (lambda a: 1 / (2 * (1 / a - 1) ** 2), "one over the radius"),
    ],
    "dual-weights": [
        (positive, "do not sum to one"),
        (lambda losses, at: (losses - at) / (losses - at).sum(), "cut at 0"),
        (lambda losses, at: (losses > at) / (losses > at).sum(), "weigh the same"),
        (
            lambda losses, at: np.where(losses > at, losses, 0) / losses[losses > at].sum(),
            "proportional to the loss",
        ),
        (lambda losses, at: np.exp(losses - at) / sum(np.exp(losses - at)), "a softmax: "),
        (
            lambda losses, at: np.exp(losses) * (losses > at) / np.exp(losses[losses > at]).sum(),
            "a softmax of those above",
        ),
        (
            lambda losses, at: np.exp(positive(losses, at)) / np.exp(positive(losses, at)).sum(),
            "a softmax of the excess",
        ),
        (
            lambda losses, at: positive(losses, at) ** 2 / sum(positive(losses, at) ** 2),
            "no square",
        ),
    ],
    "dual-eta": [
        (everybody, "everybody active"),
        (risk, "not the threshold"),
        (lambda losses, c: by_sorting(losses, np.sqrt(c)), "the square of c"),
        (lambda losses, c: losses.max(), "only if c²"),
        (lambda losses, c: max(by_sorting(losses, c), 0), "may be negative"),
        (by_search, "close, but not exact"),
    ],
    "who-effective-size": [
        (lambda q: (q > 0).sum(), "however little"),
        (lambda q: q @ q, "inverse"),
        (lambda q: len(q) / (q @ q), "n does not come in"),
        (lambda q: 1 / np.linalg.norm(q), "no root"),
        (lambda q: 1 / max(q), "the largest weight alone"),
        (lambda q: len(q) * (q @ q), "n over the effective size"),
    ],
    "who-needed-alpha": [
        (lambda n, m: m / n, "sharp constant"),
        (lambda n, m: 1 / (1 + np.sqrt(n / m - 1)), "factor 2"),
        (lambda n, m: 1 / (1 + (n / m - 1) / 2), "square root"),
        (lambda n, m: n / m, "c², not alpha"),
    ],
}
ALSO_RIGHT = [("dual-eta", eta)]
