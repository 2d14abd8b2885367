r"""Features without correlation and units, in which the solver takes its steps.

Features :math:`X`, centred within each stratum (a constant changes no Cox loss), become :math:`Z =
XB` with unit covariance; a point :math:`u` there stands for the coefficients :math:`\theta = Bu`,
since :math:`X\theta = Zu`. Each column is first divided by a power of two near its largest entry,
which rounds nothing, so that neither squares nor sums leave the range of floating-point numbers.

With the correlation matrix :math:`C = V \Lambda V^T` of columns that have standard deviations
:math:`D`, and the directions :math:`V_1` that have variance, :math:`B = D^{-1} V_1
\Lambda_1^{-1/2}`. Other directions change no score and are left out: constant columns have
coefficient 0, and copies of a column share its coefficient. Columns whose difference has less than
1e-11 of their variance count as copies. Two columns that share an outlier of more than 10^6
standard deviations may therefore do so, too, however different they are otherwise, and no bound
knows of models that tell them apart: clip such outliers. With a ridge penalty it matters how copies
share a coefficient. The coefficients with the smallest :math:`\lVert\theta\rVert` among those with
:math:`V_1^T D \theta = u` are :math:`\theta = Q R^{-T} u`, where :math:`D V_1 = QR`. Then the
coordinates are turned and shrunk once more, so that not the covariance :math:`I` but :math:`I +
\lambda B^T B` is the unit matrix: a heavily penalised direction is not seen as a steep one.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from drocox import kernels
from drocox.cox import RiskSets

# A column varies if its standard deviation is more than what rounding its entries and their mean
# leaves, a few units in the last place of the largest entry.
ROUNDING = 10 * np.finfo(float).eps
# A direction varies if its share of the variance of a standardised column is more than this: a
# covariance is exact to 1e-16 of the largest, and what is copied through a file to six digits.
LEAST_VARIANCE = 1e-11
# A column is of no use under a ridge penalty if its standard deviation is less than this times the
# root of the penalty: it could lower the risk by no more than the square.
NO_USE = 1e-15


@dataclass(frozen=True)
class Coordinates:
    """Patients in time order, in coordinates without correlation and units."""

    Z: np.ndarray  # (n, r): Z = X B, X centred within each stratum
    back: np.ndarray  # (d, r): B, which takes a point to coefficients


def uncorrelated(X: np.ndarray, risk: RiskSets, weights: np.ndarray, penalty: float) -> Coordinates:
    """Features of mean 0 and unit covariance, and the matrix that takes coefficients back.

    Means and variances are those of patients who count, who are in the risk set of some event.

    Parameters
    ----------
    X : array of shape (n, d)
        In the order of ``risk``.
    risk : RiskSets
    weights : array of shape (n,)
        A patient of weight 0 is nobody.
    penalty : float
        Of the ridge: if above 0, coefficients are the smallest with their scores, and covariance
        and penalty together have unit size.

    Returns
    -------
    Coordinates
    """
    n, d = X.shape
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    exponent = np.frexp(largest)[1]
    Z = np.ldexp(X, -exponent)
    counts = _who_counts(risk, weights)
    for low, high in pairwise(risk.bounds):
        mine = slice(low, high)
        if counts[mine].any():
            for _ in range(2):  # the second time takes away what rounding the first mean has left
                Z[mine] -= _rows(Z[mine], counts[mine]).mean(axis=0)
    if not counts.any():
        return Coordinates(np.zeros((n, 1)), np.zeros((d, 1)))
    shown = _rows(Z, counts)
    scale = np.sqrt(np.einsum("ij,ij->j", shown, shown) / len(shown))
    deviation = np.ldexp(scale, exponent)  # D, in the units of X
    varies = scale > ROUNDING  # of a column whose largest entry was between 1/2 and 1
    varies &= deviation > NO_USE * np.sqrt(penalty)
    if not varies.any():
        return Coordinates(np.zeros((n, 1)), np.zeros((d, 1)))
    deviation = deviation[varies]
    Z = Z[:, varies] / scale[varies]
    shown = _rows(Z, counts)
    if len(shown) < Z.shape[1]:
        vectors, variance = _from_the_rows(shown)
    else:
        variance, vectors = np.linalg.eigh(shown.T @ shown / len(shown))
    kept = variance > LEAST_VARIANCE
    vectors = vectors[:, kept]
    root = np.sqrt(variance[kept])
    Z = Z @ (vectors / root)
    if penalty > 0 and vectors.shape[1] < vectors.shape[0]:
        unit = deviation.max()
        basis, triangle = np.linalg.qr(deviation[:, None] / unit * vectors)
        smallest = basis @ np.linalg.inv(triangle).T / unit
    else:
        smallest = vectors / deviation[:, None]
    back = np.zeros((d, len(root)))
    back[varies] = smallest / root
    if not np.isfinite(back).all():
        raise ValueError("X holds a column whose unit is too large; choose a smaller one")
    if penalty > 0:
        weight, turn = np.linalg.eigh(penalty * back.T @ back)
        turn /= np.sqrt(1 + np.maximum(weight, 0.0))
        Z = Z @ turn
        back = back @ turn
    return Coordinates(Z, back)


def _who_counts(risk: RiskSets, weights: np.ndarray) -> np.ndarray:
    """Who is in the risk set of an event: not those censored before the first of their stratum."""
    event = risk.event[0] & (weights > 0)
    nobody = np.zeros(risk.stop.shape, int)
    events = kernels.risk_sums_back(
        event.astype(float)[None], risk.stop, nobody, nobody, risk.begin
    )
    return (events[0] > 0) & (weights > 0)


def _rows(Z: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The rows that count; no copy where all do."""
    return Z if counts.all() else Z[counts]


def _from_the_rows(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors and eigenvalues of the covariance of more columns than rows."""
    _, size, vectors = np.linalg.svd(Z, full_matrices=False)
    return vectors.T, size**2 / len(Z)
