r"""Whitened features, in which the solver takes its steps.

Features :math:`X`, centred within each stratum (a constant changes no Cox loss), become :math:`Z =
XB` with unit covariance; a point :math:`u` stands for the coefficients :math:`\theta = Bu`, since
:math:`X\theta = Zu`. Each column is first divided by a power of two near its largest entry, which
rounds nothing and keeps squares and sums in the floating-point range.

With the correlation matrix :math:`C = V \Lambda V^T` of columns that have standard deviations
:math:`D`, :math:`B = D^{-1} V \Lambda^{-1/2}`. A small eigenvalue of :math:`C` has one of two
reasons: a column is a copy of others up to rounding, or columns share an outlier and differ in all
other patients. To decide, columns are rotated to :math:`XD^{-1}V` and rescaled, again and again,
until no eigenvalue of their correlation matrix is small. A direction is dropped only if it is
constant over all patients up to rounding, so that it changes no score. So constant columns have
coefficient 0, and copies of a column share its coefficient.

With a ridge penalty the way in which copies share it matters. Scores :math:`Zu` have coordinates
:math:`u = F^T D \theta` with :math:`F = D^{-1} X^T Z / n`; the coefficients of minimum norm with
these scores are :math:`\theta = Q R^{-T} u`, where :math:`DF = QR`. The coordinates are then
rotated and rescaled once more, so that :math:`I + \lambda B^T B` instead of the covariance becomes
the unit matrix, and heavily penalised directions are not badly scaled.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from drocox import kernels
from drocox.compiled import njit
from drocox.risksets import RiskSets

# A column is constant if its standard deviation is not above the rounding of its entries and their
# mean, a few units in the last place of the largest entry.
ROUNDING = 10 * np.finfo(float).eps
# Smaller eigenvalues of a correlation matrix may be rounding: a covariance is exact to 1e-16 of the
# largest.
SMALL_EIGENVALUE = 1e-9
# A linear combination of columns is constant if it is so to this share of its terms, for each
# patient: floating-point copies and the entries of eigenvectors are exact to 1e-14 or better.
SAME = 1e-13
MOST_ROTATIONS = 5  # usually two, or three if some differences are tiny relative to others
# A column is useless under a ridge penalty if its standard deviation is less than this times the
# root of the penalty: it could lower the risk by at most the square of this number.
USELESS = 1e-15
# Smallest power of two, 1e-300, by which a column is divided: the reciprocal of a smaller one
# overflows.
LEAST_EXPONENT = -1000
BLOCK = 2**15  # numbers per block, which fit into the processor's cache


@dataclass(frozen=True)
class Coordinates:
    """Whitened features of patients in time order."""

    Z: np.ndarray  # (n, r): Z = X B, X centred within each stratum
    back: np.ndarray  # (d, r): B, which maps a point to coefficients


def whitened(X: np.ndarray, risk: RiskSets, weights: np.ndarray, penalty: float) -> Coordinates:
    """Features of mean 0 and unit covariance, and the matrix that maps points back to coefficients.

    Means and covariances are over patients in the risk set of some event. ``X`` is in the order in
    which patients were given to ``risk``, ``weights`` in time order. With a penalty, coefficients
    have minimum norm for their scores, and covariance plus penalty is the unit matrix.
    """
    n, d = X.shape
    null = Coordinates(np.zeros((n, 1)), np.zeros((d, 1)))
    order = risk.order[0]

    # 1. Scale each column by a power of two, centre it, and drop columns that are constant.
    exponent = np.frexp(_largest_entries(X))[1]
    exponent = np.maximum(exponent, LEAST_EXPONENT)
    Z = np.take(X, order, axis=0)
    Z *= np.ldexp(1.0, -exponent)
    at_risk = _in_a_risk_set(risk, weights)
    squares = _centre(Z, at_risk, np.array(risk.bounds))
    scale = np.sqrt(squares / max(1, at_risk.sum()))
    deviation = np.ldexp(scale, exponent)  # D, in the units of X
    varies = scale > ROUNDING  # the largest entry is now between 1/2 and 1
    varies &= deviation > USELESS * np.sqrt(penalty)
    if not varies.any():
        return null
    if not varies.all():
        Z = Z[:, varies]
        scale = scale[varies]
        deviation = deviation[varies]

    # 2. Eigenvectors of the correlation matrix.
    rows = _rows(Z, at_risk)
    if len(rows) < Z.shape[1]:
        vectors, variance = _eigenvectors_of_wide(rows / scale)
    else:
        correlation = rows.T @ rows / len(rows) / np.outer(scale, scale)
        variance, vectors = np.linalg.eigh(correlation)

    # 3. Whiten; where some eigenvalue is small, first separate copies from nearly equal columns.
    if variance.min() > SMALL_EIGENVALUE:
        rotation = vectors / np.sqrt(variance)
        Z = _rotated(Z, rotation / scale[:, None])
        to_coefficients = rotation / deviation[:, None]
    else:
        columns = (X[order] * np.ldexp(1.0, -exponent))[:, varies] / scale
        Z, rotation = _whiten_near_copies(columns, vectors, at_risk, risk, np.flatnonzero(varies))
        if rotation.shape[1] == 0:
            return null
        to_coefficients = rotation / deviation[:, None]
        if penalty > 0 and rotation.shape[1] < rotation.shape[0]:
            to_coefficients = _minimum_norm(rows / scale, _rows(Z, at_risk), deviation)
    back = np.zeros((d, Z.shape[1]))
    back[varies] = to_coefficients
    if not np.isfinite(back).all():
        raise ValueError("X holds a column whose unit is too large; choose a smaller one")

    # 4. With a penalty, make covariance plus penalty the unit matrix.
    if penalty > 0:
        weight, rotation = np.linalg.eigh(penalty * back.T @ back)
        rotation /= np.sqrt(1 + np.maximum(weight, 0.0))
        Z = _rotated(Z, rotation)
        back = back @ rotation
    Z[~at_risk] = 0.0  # patients in no risk set have no influence, whatever their features
    return Coordinates(Z, back)


def _in_a_risk_set(risk: RiskSets, weights: np.ndarray) -> np.ndarray:
    """Mask of the patients in the risk set of some event: not censored before the first."""
    event = risk.event[0] & (weights > 0)
    one_half = np.zeros(risk.stop.shape, int)
    events = kernels.risk_sums_back(
        event.astype(float)[None], risk.stop, one_half, one_half, risk.begin
    )
    return (events[0] > 0) & (weights > 0)


def _whiten_near_copies(
    columns: np.ndarray,
    rotation: np.ndarray,
    at_risk: np.ndarray,
    risk: RiskSets,
    column_numbers: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Whitened coordinates of columns that may be copies, and the matrix that maps to them.

    ::

        columns ─► rotate ─► drop constant ─► scale to ─► eigenvalues of ─► none small: whiten, done
                     ▲         directions     variance 1  the correlation ─► some small ─┐
                     └──────────────────── by the eigenvectors ◄─────────────────────────┘

    ``rotation`` is the first rotation to try; ``column_numbers`` name columns in messages.
    """
    bounds = risk.bounds
    size = np.abs(columns)
    distance = np.abs(_minus_medians(columns, at_risk, bounds))
    for _ in range(MOST_ROTATIONS):
        largest = np.abs(rotation).max(axis=0)
        rotation = np.where(np.abs(rotation) > SAME * largest, rotation, 0.0)
        # columns are not centred here: with an outlier the mean would round away all other digits
        Z = columns @ rotation
        # largest error of each patient's value, from rounding in ``columns`` and ``rotation``
        rounding = size @ np.abs(rotation) + distance @ (rotation != 0) * largest
        differs = _not_constant(Z, SAME * rounding, at_risk, bounds)
        Z = Z[:, differs]
        rotation = rotation[:, differs]
        scale = np.sqrt(_centre(Z, at_risk, np.array(bounds)) / at_risk.sum())
        Z /= scale
        rotation = rotation / scale
        rows = _rows(Z, at_risk)
        variance, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
        if variance.min(initial=1.0) > SMALL_EIGENVALUE:
            unit = vectors / np.sqrt(variance)
            return Z @ unit, rotation @ unit
        rotation = rotation @ vectors
    doubtful = np.abs(rotation[:, 0])  # of the smallest eigenvalue
    one, other = sorted(column_numbers[np.argsort(doubtful)[-2:]])
    row = risk.order[0][(size @ doubtful).argmax()]
    raise ValueError(
        f"X: columns {one} and {other} differ by little more than the rounding of row {row}; "
        f"clip that row's entries, or leave out one of the columns"
    )


def _not_constant(
    Z: np.ndarray, reach: np.ndarray, at_risk: np.ndarray, bounds: list[int]
) -> np.ndarray:
    """Mask of columns that differ between patients of a stratum by more than rounding allows.

    ``reach`` is the error of each entry: a column is constant if some number is within the error of
    every patient's entry.
    """
    out = np.zeros(Z.shape[1], bool)
    for low, high in pairwise(bounds):
        mine = at_risk[low:high]
        if mine.any():
            least = (Z[low:high] - reach[low:high])[mine].max(axis=0)
            most = (Z[low:high] + reach[low:high])[mine].min(axis=0)
            out |= least > most
    return out


def _minus_medians(Z: np.ndarray, at_risk: np.ndarray, bounds: list[int]) -> np.ndarray:
    """``Z`` minus the medians of the patients at risk, by stratum."""
    out = Z.copy()
    for low, high in pairwise(bounds):
        if at_risk[low:high].any():
            out[low:high] -= np.median(_rows(Z[low:high], at_risk[low:high]), axis=0)
    return out


def _minimum_norm(columns: np.ndarray, Z: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Matrix that maps a point to the coefficients of minimum norm with its scores."""
    unit = deviation.max()
    coordinates = columns.T @ Z / len(Z)  # F
    basis, triangle = np.linalg.qr(deviation[:, None] / unit * coordinates)
    return basis @ np.linalg.inv(triangle).T / unit


@njit(cache=True)
def _largest_entries(X: np.ndarray) -> np.ndarray:
    """Largest absolute entry of each column."""
    out = np.zeros(X.shape[1])
    for i in range(len(X)):
        for j in range(X.shape[1]):
            out[j] = max(out[j], abs(X[i, j]))
    return out


@njit(cache=True)
def _centre(Z: np.ndarray, at_risk: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Subtract the mean over patients at risk from each stratum of ``Z``, in place.

    Returns the sums of squares. Means are subtracted twice, the second time to remove the rounding
    of the first.
    """
    d = Z.shape[1]
    squares = np.zeros(d)
    for stratum in range(len(bounds) - 1):
        low = bounds[stratum]
        high = bounds[stratum + 1]
        patients = at_risk[low:high].sum()
        if patients == 0:
            continue
        for _ in range(2):
            mean = np.zeros(d)
            for i in range(low, high):
                if at_risk[i]:
                    for j in range(d):
                        mean[j] += Z[i, j]
            for j in range(d):
                mean[j] /= patients
            for i in range(low, high):
                for j in range(d):
                    Z[i, j] -= mean[j]
        for i in range(low, high):
            if at_risk[i]:
                for j in range(d):
                    squares[j] += Z[i, j] ** 2
    return squares


def _rows(Z: np.ndarray, at_risk: np.ndarray) -> np.ndarray:
    """The rows of patients at risk; a view if they come first."""
    first = at_risk.sum()
    return Z[:first] if at_risk[:first].all() else Z[at_risk]


def _rotated(Z: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """``Z @ rotation``, in the memory of ``Z`` if the number of columns stays the same."""
    if rotation.shape[0] > rotation.shape[1]:
        return Z @ rotation
    rows = 1 + BLOCK // len(rotation)
    for low in range(0, len(Z), rows):
        Z[low : low + rows] = Z[low : low + rows] @ rotation
    return Z


def _eigenvectors_of_wide(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors and eigenvalues of the covariance of more columns than rows."""
    _, size, vectors = np.linalg.svd(Z, full_matrices=False)
    return vectors.T, size**2 / len(Z)
