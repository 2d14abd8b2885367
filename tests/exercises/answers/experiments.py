"""Wrong answers to the checks of ``drocox/exercises/experiments.py``, and words of what is said."""

import math

LOG = math.log


def chance(counts, p):
    return sum(math.comb(8, k) * p**k * (1 - p) ** (8 - k) for k in counts)


WRONG = {
    "fair-twice": [
        ([0.5, 0, LOG(2)], "F_G by age: this is a cell's mean"),
        ([0, 1.5, LOG(2)], "F_G by gender: compare the group's mean"),
        ([0, 0, 2], "F_∩: this is a ratio"),
        ([0, 0, 1], "not their difference"),
        ([0, 0, 0], "do their intersections"),
        ([0, 0, math.log10(2)], "base 10"),
    ],
    "mean-of-three": [
        ([0.7042, 0.0156], "F_A: this is the sum"),
        ([0.449, 0.0156], "F_A: this is the largest"),
        ([0.235, 0.0113], "move independently"),
        ([0.235, 0.0467], "a mean is a third"),
        ([0.235, 0.0322], "no single SD"),
    ],
    "smoothing-floor": [
        (13 / 14, "smoothed mean of the small cell"),
        (14 / 13, "a ratio of means"),
        (-LOG(14 / 13), "absolute value"),
        (0, "without smoothing"),
        (math.log10(14 / 13), "base 10"),
    ],
    "protocol-choose": [
        ([5, 5, 1], "goes into the table: this one has lost more"),
        ([1, 5, 1], "not the largest c-index"),
        ([3, 3, 1], "if 10 % may be lost: who passes"),
        ([3, 5, 3], "if Cox had 0.750: who passes"),
        ([9, 5, 1], "not one of the mistakes we anticipated"),
    ],
    "tuned-rules": [
        ([3, 3, 3, 3], "by CI: compare its c-index"),
        ([2, 1, 3, 3], "by F_A: one with a smaller value"),
        ([2, 2, 2, 2], "by CI, Cox 0.78: one with a smaller value"),
    ],
    "claims-chance": [
        ([chance((7, 8), 1 / 8), chance((5, 6, 7, 8), 1 / 8)], "two of the eight"),
        ([chance((7,), 1 / 4), chance((5,), 1 / 4)], "add the larger counts"),
        ([chance((8,), 1 / 4), chance((6, 7, 8), 1 / 4)], "more than 7"),
        ([chance((7, 8), 1 / 2), chance((5, 6, 7, 8), 1 / 2)], "a coin"),
    ],
    "repeats-length": [
        ([3.5, 0.251 / 0.35], "lengths go with the root"),
        ([3**0.5, (0.201 / 0.3) ** 0.5], "is added, not ρ"),
        ([1.871, 0.1], "new patients"),
        ([1.871, 251**0.5], "not with the naive"),
    ],
}
