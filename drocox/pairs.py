"""Pairs of patients for the hinges of the fairness metrics and penalties, and cells of groups.

Formulas are in :mod:`drocox.regularizers`. This module needs no torch.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from drocox import _checks, kernels

GAMMA = 0.01


@dataclass(frozen=True)
class Pairs:
    """Pairs of patients and their margins: ``rows[r]`` meets ``columns[start[r]:stop[r]]``."""

    spans: tuple[np.ndarray, ...]  # rows, columns, start, stop
    margin: np.ndarray | None  # gamma times each pair's distance, row after row; None: not stored
    divisor: float  # the sum of hinges is divided by it
    n: int
    gamma: float
    unit: np.ndarray | None = None  # unit rows (d, n), if these are all pairs


def _unit_rows(X, gamma) -> np.ndarray:
    """Rows scaled to unit length; rows of zeros stay zero."""
    if not _checks.is_number(gamma) or not 0 <= gamma < np.inf:
        raise ValueError(f"gamma must be a finite number >= 0, got {gamma!r}")
    X = _checks.numbers(X, "X", 2)
    X = X / np.maximum(np.abs(X).max(axis=1, keepdims=True), 1e-300)  # else squares may overflow
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1.0)


def _margins(x: np.ndarray, rows, columns, start, stop, gamma: float) -> np.ndarray:
    """Margin of each pair, row after row."""
    met = x[columns]
    spans = zip(rows, start, stop, strict=True)
    return gamma * np.concatenate([cdist(x[r : r + 1], met[a:b])[0] for r, a, b in spans])


def all_pairs(X, gamma: float = GAMMA, keep: bool = True) -> Pairs:
    """All pairs of patients, for the individual penalty of Keya et al. and for F_I.

    Parameters
    ----------
    X : array of shape (n, d)
        Scaled features; rows are normalised to unit length here.
    gamma : float
        Lipschitz constant: difference of hazards allowed per unit of distance.
    keep : bool
        Whether to keep the n(n-1)/2 distances, for repeated use; otherwise they are computed anew
        each time, and memory is linear in n.

    Returns
    -------
    Pairs
    """
    x = _unit_rows(X, gamma)
    n = len(x)
    if n < 2:
        raise ValueError("X has one row; a comparison needs at least two patients")
    index = np.arange(n)
    spans = (index, index, np.zeros_like(index), index)  # row r meets the rows before it
    margin = _margins(x, *spans, gamma) if keep else None
    unit = np.ascontiguousarray(x.T)
    return Pairs(spans, margin, divisor=float(n * (n - 1)), n=n, gamma=gamma, unit=unit)


def censored_event_pairs(X, time, event, codes=None, gamma: float = GAMMA) -> Pairs:
    """Pairs of a censored patient and an event no earlier, for both penalties of R&P.

    Parameters
    ----------
    X : array of shape (n, d)
        Scaled features; rows are normalised to unit length here.
    time, event : arrays of shape (n,)
    codes : array of shape (n,), optional
        Groups: pairs inside one group only.
    gamma : float
        Lipschitz constant: difference of hazards allowed per unit of distance.

    Returns
    -------
    Pairs
    """
    x = _unit_rows(X, gamma)
    time, event = _checks.outcomes(time, event)
    _checks.same_length(X=x[:, 0], time=time)
    if event.all():
        raise ValueError("nobody is censored (event is all 1); the penalty compares them to events")
    n = len(time)
    codes = np.zeros(n, int) if codes is None else _checks.codes(codes, "codes", n)
    later = np.unique(-time, return_inverse=True)[1]  # 0 at the latest time
    key = codes * n + later  # sorts by group, latest first
    rows = np.flatnonzero(~event)
    columns = np.flatnonzero(event)
    columns = columns[np.argsort(key[columns], kind="stable")]
    start = np.searchsorted(key[columns], codes[rows] * n)
    stop = np.searchsorted(key[columns], key[rows], side="right")
    spans = (rows, columns, start, stop)
    divisor = float(len(rows) * len(columns))
    return Pairs(spans, _margins(x, *spans, gamma), divisor=divisor, n=n, gamma=gamma)


def hinge_means(hazards: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Sum of the hinges of each row of hazards (models, n), over the divisor."""
    if pairs.margin is None:
        sums = np.array([kernels.all_hinge_sum(row, pairs.unit, pairs.gamma) for row in hazards])
    else:
        sums = kernels.hinge_sums(hazards, *pairs.spans, pairs.margin)
    return sums / pairs.divisor


def cells(codes_2d, n: int) -> tuple[np.ndarray, int]:
    """Cell of each patient in the product of the columns of ``codes_2d``, and their number.

    Parameters
    ----------
    codes_2d : array of shape (n, number of attributes)
    n : int
        Number of patients, for the check.

    Returns
    -------
    int array of shape (n,), int
    """
    codes_2d = _checks.array(codes_2d)
    if codes_2d.ndim != 2 or codes_2d.shape[1] == 0:
        raise ValueError(
            f"codes_2d must have shape (n, number of attributes), got {codes_2d.shape}; "
            "stack the attributes' codes as columns"
        )
    columns = [_checks.codes(column, "codes_2d", n) for column in codes_2d.T]
    sizes = [column.max() + 1 for column in columns]
    return np.ravel_multi_index(columns, sizes), int(np.prod(sizes))
