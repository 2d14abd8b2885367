"""Exercises of parts III and IV: tables, rules of selection, and how sure they are."""

import numpy as np
from scipy.stats import binom

from drocox import fairness
from drocox.exercises._core import asks_numbers, asks_parts

# Four cells of equal size: young women, young men, old women, old men.
_HAZARDS = np.array([1.0, 2.0, 2.0, 1.0])
_OLD = np.array([0, 0, 1, 1])
_MEN = np.array([0, 1, 0, 1])
_cells = fairness.intersectional(_HAZARDS, np.column_stack([_OLD, _MEN]), smoothing=False)
_HALF = "compare the group's mean hazard with that of everybody"
_ONE_CELL = "this is a cell's mean; a group is made of two cells"
asks_parts(
    "fair-twice",
    {
        "F_G by age": (
            fairness.group(_HAZARDS, _OLD, smoothing=False),
            {0.5: _ONE_CELL, 1.5: _HALF, 1: _ONE_CELL},
        ),
        "F_G by gender": (
            fairness.group(_HAZARDS, _MEN, smoothing=False),
            {0.5: _ONE_CELL, 1.5: _HALF, 1: _ONE_CELL},
        ),
        "F_∩": (
            _cells,
            {
                2: "this is a ratio of mean hazards; its log is asked for",
                1: "a ratio of means, not their difference, and then its log",
                0: "the groups have equal means, but do their intersections?",
                np.log10(2): "your log is to base 10; the book's is the natural one",
            },
        ),
    },
)

_MEANS = np.array([0.2113, 0.0439, 0.4490])
_SDS = np.array([0.0093, 0.0052, 0.0322])
asks_parts(
    "mean-of-three",
    {
        "F_A": (
            _MEANS.mean(),
            {
                _MEANS.sum(): "this is the sum of the three",
                _MEANS.max(): "this is the largest of the three",
            },
        ),
        "largest SD": (
            _SDS.mean(),
            {
                np.sqrt((_SDS**2).sum()) / 3: (
                    "this is for metrics that move independently; when is the SD largest?"
                ),
                _SDS.sum(): "this is the largest SD of the sum; a mean is a third of it",
                _SDS.max(): "no single SD is the bound: all three enter the mean",
            },
        ),
    },
)

_FEW = (6 + 0.5) / (6 + 1)
asks_numbers(
    "smoothing-floor",
    -np.log(_FEW),
    {
        "this is the smoothed mean of the small cell; F_∩ compares it with another": _FEW,
        "this is a ratio of means; its log is asked for": 1 / _FEW,
        "F_∩ is an absolute value": np.log(_FEW),
        "without smoothing; what does the imaginary patient do to six?": 0.0,
        "your log is to base 10; the book's is the natural one": -np.log10(_FEW),
    },
)

_NOT_ALLOWED = "this one has lost more c-index than the rule allows"
_ALLOWED = "the smallest CI among all that keep enough of the c-index, not the largest c-index"
asks_parts(
    "protocol-choose",
    {
        "goes into the table": (3, {4: _NOT_ALLOWED, 5: _NOT_ALLOWED, 1: _ALLOWED, 2: _ALLOWED}),
        "if 10 % may be lost": (5, dict.fromkeys((1, 2, 3, 4), "who passes the lower bar?")),
        "if Cox had 0.750": (
            1,
            dict.fromkeys((2, 3, 4, 5), "who passes the bar now? If nobody, what decides?"),
        ),
    },
    digits=None,
)

_BAR = "compare its c-index with 95 % of Cox's"
_SMALLEST = "one with a smaller value of the metric passes the bar, too"
asks_parts(
    "tuned-rules",
    {
        "by CI": (2, {3: _BAR, 1: _SMALLEST}),
        "by F_A": (2, {3: _BAR, 1: _SMALLEST}),
        "by CI, Cox 0.78": (3, {1: _SMALLEST, 2: _SMALLEST}),
        "by F_A, Cox 0.78": (3, {1: _SMALLEST, 2: _SMALLEST}),
    },
    digits=None,
)


def _at_least(count: int, chance: float) -> float:
    """The probability of so many of eight, or more."""
    return binom.sf(count - 1, 8, chance)


asks_numbers(
    "claims-chance",
    [_at_least(7, 1 / 4), _at_least(5, 1 / 4)],
    {
        "two of the eight methods are DRO": [_at_least(7, 1 / 8), _at_least(5, 1 / 8)],
        "at least so many: add the larger counts": [binom.pmf(7, 8, 1 / 4), binom.pmf(5, 8, 1 / 4)],
        "more than 7 is not at least 7": [_at_least(8, 1 / 4), _at_least(6, 1 / 4)],
        "a coin is not the null hypothesis: which share of the methods is DRO?": [
            _at_least(7, 1 / 2),
            _at_least(5, 1 / 2),
        ],
    },
    labels=["at least 7", "at least 5"],
)

_SHARE = 0.2 / (1 - 0.2)  # what the shared patients add to 1/J
_TEN = 1 / 10 + _SHARE
_THOUSAND = 1 / 1000 + _SHARE
asks_numbers(
    "repeats-length",
    [np.sqrt(_TEN * 10), np.sqrt(_THOUSAND / _TEN)],
    {
        "these are ratios of variances; lengths go with the root": [_TEN * 10, _THOUSAND / _TEN],
        "ρ/(1 − ρ) is added, not ρ": [
            np.sqrt((1 / 10 + 0.2) * 10),
            np.sqrt((1 / 1000 + 0.2) / (1 / 10 + 0.2)),
        ],
        "repeats do not bring new patients: the second part does not shrink with J": [
            np.sqrt(_TEN * 10),
            0.1,
        ],
        "the second is compared with ten repeats, not with the naive interval": [
            np.sqrt(_TEN * 10),
            np.sqrt(_THOUSAND * 1000),
        ],
    },
    labels=["ten repeats, by the naive one", "a thousand, by ten"],
)
