r"""Differences of a measure between groups, with intervals as lopsided as the measure is.

A small group that did well by chance has an AUC near 1 and hardly any jackknife variance: an
interval of :math:`\pm` so many standard errors around a difference is far too short on the side of
the truth. So each value gets limits on the scale g where it is nearly normal (the logit of a
share, the logarithm of a ratio),

.. math:: v^{\mp} = g^{-1}\big(g(v) \mp c \, g'(v) \, \sigma_v\big),

and those of a difference :math:`v - w` are put together from the distances (Zou and Donner, 2008),
with the correlation :math:`\rho` of the two:

.. math:: v - w - \sqrt{a^2 + b^2 - 2 \rho a b}, \qquad a = v - v^-, \quad b = w^+ - w,

and likewise upwards. This is for groups, which share few patients or none: two models on the same
patients have values so alike (:math:`\rho` near 1) that their difference is nearly normal itself
(:func:`drocox.heldout.compare`). Limits of a share are Wilson's, so that differences have
Newcombe's hybrid score interval. Two ratios are compared by their ratio. Where g is the identity,
this is the usual interval :math:`v - w \pm c \, \sigma_{v - w}`. The critical value c makes the
intervals of several differences hold together (:func:`drocox.heldout.intervals.simultaneous`).
"""

from typing import NamedTuple

import numpy as np

from drocox.auditing.measures import UNCHANGED, Measure, Scale, inside
from drocox.heldout import Estimate
from drocox.heldout.intervals import jackknife, says, simultaneous

MANY = 1e9  # degrees of freedom: Student's distribution is normal


class Contrast(NamedTuple):
    """A difference, the first value minus the second, and what its row says beside its numbers."""

    names: dict
    first: Estimate
    second: Estimate
    slack: tuple[float, float] = (0.0, 0.0)  # by which exact times could lower and raise it


def estimable(measure: Measure, contrasts: list[Contrast]) -> list[Contrast]:
    """The differences that have an interval.

    Left out are differences that do not exist without some patient, and those of a measure at the
    end of its scale, such as an AUC of 1, which says nothing about its own error. Where both
    values are at the same end, the difference is 0. Of a ratio the values become logarithms.
    """
    told = [one for one in contrasts if _can_be_told(one, measure.scale)]
    if not measure.ratio:
        return told
    return [one._replace(first=_log(one.first), second=_log(one.second)) for one in told]


def _log(estimate: Estimate) -> Estimate:
    return Estimate(np.log(estimate.value), np.log(estimate.without))


def critical_values(contrasts: list[Contrast]) -> tuple[np.ndarray, np.ndarray]:
    """Critical values for all these differences at once, and how far noise alone takes each.

    They may be differences of one or several measures; see
    :func:`drocox.heldout.intervals.simultaneous`.
    """
    without = np.column_stack([one.first.without - one.second.without for one in contrasts])
    covariance, df = jackknife(without)
    return simultaneous(covariance, [_df(one, k) for one, k in zip(contrasts, df, strict=True)])


def _df(one: Contrast, otherwise: float) -> float:
    """Degrees of freedom of a difference, by Welch and Satterthwaite where those of both are known.

    Limits of decisions are Wilson's, which need none.
    """
    if one.first.limits is not None and one.second.limits is not None:
        return MANY
    parts = [(e.error**2, e.df) for e in (one.first, one.second)]
    parts = [(variance, df) for variance, df in parts if variance > 0]
    if not parts or any(df is None for _, df in parts):
        return otherwise
    total = sum(variance for variance, _ in parts)
    return total**2 / sum(variance**2 / df for variance, df in parts if df)


def contrast(
    measure: Measure, contrasts: list[Contrast], critical: np.ndarray | None = None
) -> list[dict]:
    """Rows of :func:`estimable` differences with intervals.

    Without critical values, intervals hold for all these differences at once. ``noise_floor`` is
    that among these differences; with critical values, only concordance imparity has it.
    """
    if not contrasts:
        return []
    scale = UNCHANGED if measure.ratio else measure.scale  # of logarithms, see `estimable`
    limits = inside(measure)
    if measure.ratio and limits is not None:
        limits = np.log(limits[0]), np.log(limits[1])
    floor = np.full(len(contrasts), np.nan)
    if critical is None or measure.imparity:
        of_these, floor = critical_values(contrasts)
        critical = of_these if critical is None else critical
    rows = []
    for one, quantile, noise in zip(contrasts, critical, floor, strict=True):
        difference, low, high = _interval(one, scale, quantile)
        ends = np.array([difference, low, high])
        sizes = np.exp(ends) if measure.ratio else measure.unit * ends
        row = one.names | dict(zip(("difference", "low", "high"), sizes.tolist(), strict=True))
        said = says(low, high, limits)
        rows.append(row | {"noise_floor": measure.unit * noise, "says": said})
    return rows


def _can_be_told(one: Contrast, scale: Scale) -> bool:
    """Whether both values exist without each patient, and have errors of their own."""
    estimates = (one.first, one.second)
    if not all(np.isfinite(estimate.without).all() for estimate in estimates):
        return False
    if all(estimate.limits is not None for estimate in estimates):
        return True  # Wilson's limits exist at 0 and 1, too
    inside = np.isfinite(scale.forward(np.array([one.first.value, one.second.value]))).all()
    return bool(inside or one.first.value == one.second.value)


def _interval(one: Contrast, scale: Scale, critical: float) -> tuple[float, float, float]:
    """The difference, and the ends of its interval."""
    covariance = jackknife(np.column_stack([one.first.without, one.second.without]))[0]
    error, error_of_second = np.sqrt(np.diag(covariance))
    both = error * error_of_second
    correlation = covariance[0, 1] / both if both > 0 else 0.0
    down, up = _distances(scale, one.first, error, critical)
    down_of_second, up_of_second = _distances(scale, one.second, error_of_second, critical)
    difference = one.first.value - one.second.value
    lower, higher = one.slack
    low = difference - _together(down, up_of_second, correlation) - lower
    high = difference + _together(up, down_of_second, correlation) + higher
    return difference, low, high


def _distances(
    scale: Scale, estimate: Estimate, error: float, critical: float
) -> tuple[float, float]:
    """How far the limits lie below and above a value; its ``error`` is for no scale."""
    value = estimate.value
    if estimate.limits is not None:
        low, high = estimate.limits(critical)
        return value - low, high - value
    centre = scale.forward(value)
    if not np.isfinite(centre):  # at the end of the scale
        return 0.0, 0.0
    apart = critical * error * scale.derivative(value)
    return value - scale.back(centre - apart), scale.back(centre + apart) - value


def _together(first: float, second: float, correlation: float) -> float:
    """The distance of a difference's limit, from those of its parts."""
    square = first**2 + second**2 - 2 * correlation * first * second
    return np.sqrt(max(square, 0.0))
