r"""Features without correlation and units, in which the solver takes its steps.

Features :math:`X`, centred within each stratum (a constant changes no Cox loss), become :math:`Z =
XB` with unit covariance; a point :math:`u` there stands for the coefficients :math:`\theta = Bu`,
since :math:`X\theta = Zu`. Each column is first divided by a power of two near its largest entry,
which rounds nothing, so that neither squares nor sums leave the range of floating-point numbers.

With the correlation matrix :math:`C = V \Lambda V^T` of columns that have standard deviations
:math:`D`, :math:`B = D^{-1} V \Lambda^{-1/2}`. Where an eigenvalue is small, :math:`C` cannot tell
a copy of a column, which rounding has made different, from columns that share an outlier and differ
in all other patients. Then columns are turned to :math:`XD^{-1}V` and looked at again, until no
eigenvalue of their correlation matrix is small. A direction is left out only if every patient's
value along it is a constant but for rounding: it changes no score. So constant columns have
coefficient 0, and copies of a column share its coefficient.

With a ridge penalty it matters how copies share. Scores :math:`Zu` have coordinates :math:`u =
F^T D \theta` with :math:`F = D^{-1} X^T Z / n`; the smallest coefficients with these scores are
:math:`\theta = Q R^{-T} u`, where :math:`DF = QR`. Then the coordinates are turned and shrunk once
more, so that not the covariance :math:`I` but :math:`I + \lambda B^T B` is the unit matrix: a
heavily penalised direction is not seen as a steep one.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit

from drocox import kernels
from drocox.cox import RiskSets

# A column varies if its standard deviation is more than what rounding its entries and their mean
# leaves, a few units in the last place of the largest entry.
ROUNDING = 10 * np.finfo(float).eps
# Eigenvalues of a correlation matrix below this are looked at again: a covariance is exact to 1e-16
# of the largest.
IN_DOUBT = 1e-9
# A sum of columns is constant if it is to this share of its terms, in each patient: a copy made in
# floating-point numbers, and an eigenvector's entries, are exact to 1e-14 or better.
SAME = 1e-13
MOST_TURNS = 5  # two are usual, three where some differences are tiny beside others
# A column is of no use under a ridge penalty if its standard deviation is less than this times the
# root of the penalty: it could lower the risk by no more than the square.
NO_USE = 1e-15
# Columns with a largest entry below 2 to this power, 1e-300, are divided by it all the same: the
# reciprocal of a smaller one is no number.
LEAST_EXPONENT = -1000
BLOCK = 2**15  # numbers at a time that the processor keeps at hand


@dataclass(frozen=True)
class Coordinates:
    """Patients in time order, in coordinates without correlation and units."""

    Z: np.ndarray  # (n, r): Z = X B, X centred within each stratum
    back: np.ndarray  # (d, r): B, which takes a point to coefficients


def uncorrelated(X: np.ndarray, risk: RiskSets, weights: np.ndarray, penalty: float) -> Coordinates:
    """Features of mean 0 and unit covariance, and the matrix that takes coefficients back.

    Means and variances are those of patients who count, who are in the risk set of some event.
    ``X`` is in the order in which patients were given to ``risk``, ``weights`` in that of ``risk``.
    With a penalty, coefficients are the smallest with their scores, and covariance and penalty
    together have unit size.
    """
    n, d = X.shape
    nothing = Coordinates(np.zeros((n, 1)), np.zeros((d, 1)))
    exponent = np.frexp(_largest(X))[1]
    exponent = np.maximum(exponent, LEAST_EXPONENT)
    Z = _gathered(X, risk.order[0], np.ldexp(1.0, -exponent))
    counts = _who_counts(risk, weights)
    squares = _centre(Z, counts, np.array(risk.bounds))
    scale = np.sqrt(squares / max(1, counts.sum()))
    deviation = np.ldexp(scale, exponent)  # D, in the units of X
    varies = scale > ROUNDING  # of a column whose largest entry was between 1/2 and 1
    varies &= deviation > NO_USE * np.sqrt(penalty)
    if not varies.any():
        return nothing
    if not varies.all():
        Z = Z[:, varies]
        scale = scale[varies]
        deviation = deviation[varies]
    shown = _rows(Z, counts)
    if len(shown) < Z.shape[1]:
        vectors, variance = _from_the_rows(shown / scale)
    else:
        correlation = shown.T @ shown / len(shown) / np.outer(scale, scale)
        variance, vectors = np.linalg.eigh(correlation)
    if variance.min() > IN_DOUBT:
        turn = vectors / np.sqrt(variance)
        Z = _turned(Z, turn / scale[:, None])
        smallest = turn / deviation[:, None]
    else:
        columns = _gathered(X, risk.order[0], np.ldexp(1.0, -exponent))[:, varies] / scale
        Z, turn = _told_apart(columns, vectors, counts, risk, np.flatnonzero(varies))
        if turn.shape[1] == 0:
            return nothing
        smallest = turn / deviation[:, None]
        if penalty > 0 and turn.shape[1] < turn.shape[0]:
            smallest = _smallest(shown / scale, _rows(Z, counts), deviation)
    back = np.zeros((d, Z.shape[1]))
    back[varies] = smallest
    if not np.isfinite(back).all():
        raise ValueError("X holds a column whose unit is too large; choose a smaller one")
    if penalty > 0:
        weight, turn = np.linalg.eigh(penalty * back.T @ back)
        turn /= np.sqrt(1 + np.maximum(weight, 0.0))
        Z = _turned(Z, turn)
        back = back @ turn
    Z[~counts] = 0.0  # who is in no risk set has no part, however far out
    return Coordinates(Z, back)


def _who_counts(risk: RiskSets, weights: np.ndarray) -> np.ndarray:
    """Who is in the risk set of an event: not those censored before the first of their stratum."""
    event = risk.event[0] & (weights > 0)
    nobody = np.zeros(risk.stop.shape, int)
    events = kernels.risk_sums_back(
        event.astype(float)[None], risk.stop, nobody, nobody, risk.begin
    )
    return (events[0] > 0) & (weights > 0)


def _told_apart(
    columns: np.ndarray, turn: np.ndarray, counts: np.ndarray, risk: RiskSets, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of columns that may be copies of each other, from a first guess of ``turn``.

    Returns the coordinates Z, without the directions in which all patients are the same, and the
    matrix that makes them of the columns; ``numbers`` are those that a message calls them by.
    """
    bounds = risk.bounds
    size = np.abs(columns)
    distance = np.abs(_less_medians(columns, counts, bounds))
    for _ in range(MOST_TURNS):
        largest = np.abs(turn).max(axis=0)
        turn = np.where(np.abs(turn) > SAME * largest, turn, 0.0)
        # columns as given, not less their means: an outlier would spoil everybody's digits
        Z = columns @ turn
        # what rounding the columns' entries and those of ``turn`` may have done to each patient
        rounding = size @ np.abs(turn) + distance @ (turn != 0) * largest
        differs = _differ(Z, SAME * rounding, counts, bounds)
        Z = Z[:, differs]
        turn = turn[:, differs]
        scale = np.sqrt(_centre(Z, counts, np.array(bounds)) / counts.sum())
        Z /= scale
        turn = turn / scale
        shown = _rows(Z, counts)
        variance, vectors = np.linalg.eigh(shown.T @ shown / len(shown))
        if variance.min(initial=1.0) > IN_DOUBT:
            unit = vectors / np.sqrt(variance)
            return Z @ unit, turn @ unit
        turn = turn @ vectors
    doubtful = np.abs(turn[:, 0])  # the smallest eigenvalue's
    one, other = sorted(numbers[np.argsort(doubtful)[-2:]])
    row = risk.order[0][(size @ doubtful).argmax()]
    raise ValueError(
        f"X: columns {one} and {other} differ by little more than the rounding of row {row}; "
        f"clip that row's entries, or leave out one of the columns"
    )


def _differ(Z: np.ndarray, reach: np.ndarray, counts: np.ndarray, bounds: list[int]) -> np.ndarray:
    """Which columns no constant is within everybody's reach of, in some stratum."""
    out = np.zeros(Z.shape[1], bool)
    for low, high in pairwise(bounds):
        mine = counts[low:high]
        if mine.any():
            least = (Z[low:high] - reach[low:high])[mine].max(axis=0)
            most = (Z[low:high] + reach[low:high])[mine].min(axis=0)
            out |= least > most
    return out


def _less_medians(Z: np.ndarray, counts: np.ndarray, bounds: list[int]) -> np.ndarray:
    """``Z`` less the median of those who count in each stratum."""
    out = Z.copy()
    for low, high in pairwise(bounds):
        if counts[low:high].any():
            out[low:high] -= np.median(_rows(Z[low:high], counts[low:high]), axis=0)
    return out


def _smallest(columns: np.ndarray, Z: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """What takes a point to the smallest coefficients that have its scores."""
    unit = deviation.max()
    coordinates = columns.T @ Z / len(Z)  # F
    basis, triangle = np.linalg.qr(deviation[:, None] / unit * coordinates)
    return basis @ np.linalg.inv(triangle).T / unit


@njit(cache=True)
def _largest(X: np.ndarray) -> np.ndarray:
    """Largest size of the entries of each column."""
    out = np.zeros(X.shape[1])
    for i in range(len(X)):
        for j in range(X.shape[1]):
            out[j] = max(out[j], abs(X[i, j]))
    return out


@njit(cache=True)
def _gathered(X: np.ndarray, order: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Rows of ``X`` in an order, each column multiplied by its number in ``unit``."""
    n, d = X.shape
    out = np.empty((n, d))
    for i in range(n):
        row = order[i]
        for j in range(d):
            out[i, j] = X[row, j] * unit[j]
    return out


@njit(cache=True)
def _centre(Z: np.ndarray, counts: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Take the mean of those who count from each stratum of ``Z``, in place; returns their squares.

    It is done twice: the second time takes away what rounding the first mean has left.
    """
    d = Z.shape[1]
    squares = np.zeros(d)
    for stratum in range(len(bounds) - 1):
        low = bounds[stratum]
        high = bounds[stratum + 1]
        patients = counts[low:high].sum()
        if patients == 0:
            continue
        for _ in range(2):
            mean = np.zeros(d)
            for i in range(low, high):
                if counts[i]:
                    for j in range(d):
                        mean[j] += Z[i, j]
            for j in range(d):
                mean[j] /= patients
            for i in range(low, high):
                for j in range(d):
                    Z[i, j] -= mean[j]
        for i in range(low, high):
            if counts[i]:
                for j in range(d):
                    squares[j] += Z[i, j] ** 2
    return squares


def _rows(Z: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The rows that count; no copy where they are the first ones."""
    first = counts.sum()
    return Z[:first] if counts[:first].all() else Z[counts]


def _turned(Z: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """``Z @ turn``, in the memory of ``Z`` where it has as many columns."""
    if turn.shape[0] > turn.shape[1]:
        return Z @ turn
    rows = 1 + BLOCK // len(turn)
    for low in range(0, len(Z), rows):
        Z[low : low + rows] = Z[low : low + rows] @ turn
    return Z


def _from_the_rows(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors and eigenvalues of the covariance of more columns than rows."""
    _, size, vectors = np.linalg.svd(Z, full_matrices=False)
    return vectors.T, size**2 / len(Z)
