"""Wrong answers to the checks of ``drocox/exercises/metrics.py``, and words of what is said."""

import numpy as np

HAZARDS = np.array([4, 2, 1, 2, 0.5, 0.5])


def breslow(hazards, time, event, upto):
    return sum(
        1 / hazards[time >= y].sum()
        for y, died in zip(time, event, strict=True)
        if died and y <= upto
    )


def observed_over_expected(hazards, time, event, members):
    expected = sum(
        hazards[i] * breslow(hazards, time, event, time[i]) for i in np.where(members)[0]
    )
    return event[members].sum() / expected


def of_members_only(hazards, time, event, members):
    m = members
    return observed_over_expected(hazards[m], time[m], event[m], np.full(m.sum(), True))


def without_hazard(hazards, time, event, members):
    return event[members].sum() / sum(breslow(hazards, time, event, y) for y in time[members])


def by_heads(hazards, time, event, members):
    ones = np.ones(len(time))
    expected = [hazards[i] * breslow(ones, time, event, time[i]) for i in np.where(members)[0]]
    return event[members].sum() / sum(expected)


def of_the_dead(hazards, time, event, members):
    return observed_over_expected(hazards, time, event, members & event)


def upside_down(*given):
    return 1 / observed_over_expected(*given)


def slope(scores, time, event):
    """Bisection on the derivative of the log partial likelihood."""

    def derivative(s):
        total = 0.0
        for i in np.where(event)[0]:
            at_risk = scores[time >= time[i]]
            weight = np.exp(s * at_risk)
            total += scores[i] - (weight * at_risk).sum() / weight.sum()
        return total

    low, high = -50.0, 50.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if derivative(middle) > 0:
            low = middle
        else:
            high = middle
    return low


def push(hazards, X, gamma, *, factor=lambda h: h, active=None, scale=1.0):
    n = len(hazards)
    unit = [row / np.sqrt((row**2).sum()) for row in X]
    out = np.zeros(n)
    for i in range(n):
        for j in range(n):
            excuse = gamma * np.sqrt(((unit[i] - unit[j]) ** 2).sum())
            if active or abs(hazards[i] - hazards[j]) > excuse:
                out[i] += np.sign(hazards[i] - hazards[j])
    return scale * out * factor(hazards) / (n * (n - 1))


def ratio(after, before):
    return np.abs(after[:, None] - after).sum() / np.abs(before[:, None] - before).sum()


HALVED = ratio(np.sqrt(HAZARDS), HAZARDS)
THIRD = 4 / 3

WRONG = {
    "curves-weights": [
        ([1, 0, THIRD, THIRD, THIRD, THIRD], "just before C's death"),
        ([1, 0, 1, 1.25, 1.25, 1.25], "deaths come first"),
        ([1, 0, 1, 1, 1, 1], "nobody speaks for B"),
        ([1, 0, 1, 0.75, 0.75, 0.75], "must count more"),
        ([1, 1, 1, THIRD, THIRD, THIRD], "nobody knows"),
        ([2, 0, 1, 1, 1, 1], "not one of the mistakes we anticipated"),
        ([1, 1.25, 1.25, 1.25, 1.25], "expected 6 numbers, got 5"),
    ],
    "curves-forecast": [
        ([0.5, 15 / 64], "one half: this is the error"),
        ([5 / 24, 15 / 64], "one half: the weights are missing"),
        ([1.5, 15 / 64], "one half: this is the sum"),
        ([0.25, 0.25], "the smallest: some other forecast"),
        ([0.25, 5 / 8], "the smallest: this is the best forecast"),
        ([0.25, 0.24], "the smallest: B was left out"),
        ([0.25, 0], "the smallest: the cases want"),
        ([0.25, 0.4], "the smallest: not right"),
    ],
    "curves-expected": [
        (of_members_only, "members alone"),
        (without_hazard, "for a hazard of 1"),
        (by_heads, "count heads where"),
        (of_the_dead, "censored were at risk"),
        (upside_down, "upside down"),
    ],
    "curves-notice": [
        ([2, 2, 2, 2], "c-index: does any"),
        ([0, 1, 2, 2], "AUC: does any"),
        ([0, 0, 0, 2], "LPL: it is made of ratios"),
        ([0, 0, 2, 0], "IBS: do the curves"),
        ([0, 0, 2, 3], "IBS: what does moving"),
        ([0, 0, 1, 2], "LPL: not right"),
    ],
    "fair-hand": [
        ([6.5 / 3 - 4.5 / 5, 14.29], "F_G: compare each group"),
        ([3 - 10 / 6, 14.29], "F_G: the means are not smoothed"),
        ([6.5 / 3 - 10.5 / 7, 14.29], "F_G: the mean of everybody"),
        ([6.5 / 3 - 10 / 6, 14.29], "F_G: smoothing may change"),
        ([0.767, 1 / 7], "CI: a share"),
        ([0.77, 20], "CI: pairs across"),
        ([0.77, 100 / 24], "CI: that is CI of groups"),
    ],
    "fair-slope": [
        (lambda *given: 1 / slope(*given), "upside down"),
        (lambda scores, time, event: 1 / np.std(scores), "standard deviation"),
        (lambda scores, time, event: slope(scores, time, event >= 0), "everybody died"),
        (lambda *given: -slope(*given), "sign is turned"),
    ],
    "fair-zero": [
        ([False, True, False, True, False, False], "F_I: all hazards are equal"),
        ([1, 0, 0, 1, 0, 0], "F_G printed: all hazards are equal"),
        ([1, 1, 1, 1, 0, 0], "F_G smoothed: an imaginary patient"),
        ([1, 1, 0, 1, 1, 0], "F_∩ smoothed: an imaginary patient"),
        ([1, 1, 0, 1, 0, 1], "CI: pairs of equal scores"),
    ],
    "base-hand": [
        ([2.5 / 4, 1.5 / 2], "I (R&P): divide by"),
        ([8 * 0.3125, 1.5], "I (R&P): your sum is not divided"),
        ([(2 + 1 + 0 + 1.5 + 3.5 + 0.5 + 1.5 + 0) / 8, 0], "I (R&P): only events after"),
        ([0.3125, 0.3125], "G (R&P): a pair must lie inside"),
        ([0.3125, 0.75], "G (R&P): divide by"),
        ([0.3125, (0 + 1.5 + 3.5 + 0.5) / 8], "G (R&P): only events after"),
    ],
    "base-push": [
        (lambda *given: push(*given, factor=lambda h: 1), "not in the score"),
        (lambda *given: push(*given, active=True), "excuses"),
        (lambda *given: push(*given, scale=2), "twice too much"),
        (lambda *given: push(*given, scale=-1), "sign is turned"),
        (lambda h, X, gamma: push(h, X)[0], "raised TypeError"),
    ],
    "base-repair": [
        ([1, HALVED, 1, 1 / 2], "hazards, moved: the Cox loss"),
        ([np.exp(-3), 1 / 2, 1, 1 / 2], "hazards, halved: halved scores"),
        ([np.exp(-3), HALVED, np.exp(-3), 1 / 2], "scores, moved: still"),
        ([np.exp(-3), HALVED, 1, HALVED], "scores, halved: still"),
        ([np.exp(-3), HALVED, 1, 1], "scores, halved: does a factor"),
    ],
}
