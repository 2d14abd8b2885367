r"""The five fairness penalties of the baselines, with exact gradients.

All act on hazards :math:`h_i = e^{f_i}`. With margins :math:`\gamma\lVert\hat x_i-\hat x_j\rVert`
between unit-length feature rows and the hinge :math:`[\,|h_i-h_j| - \gamma\lVert\hat x_i-\hat
x_j\rVert\,]_+`:

* individual (Keya et al.): hinges of all pairs :math:`i<j`, over :math:`N(N-1)`;
* individual (Rahman & Purushotham): hinges of the pairs with :math:`i` censored, :math:`j` an
  event and :math:`Y_i \le Y_j`, over (number censored) x (number of events);
* group (Rahman & Purushotham): the same, pairs inside one group only;
* group (Keya et al.): :math:`\max_g |\bar h_g - \bar h|`;
* intersectional (Keya et al.): :math:`\max_{s,s'} |\log \bar h_s/\bar h_{s'}|`,

where :math:`\bar h_g = (\sum_{i \in g} h_i + \tfrac12)/(n_g+1)` is the smoothed group mean.

Margins do not change during training, so the pairs are prepared once, and one compiled loop
without branches serves the three hinge penalties.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numba import njit

from drocox import _checks

GAMMA = 0.01


@dataclass(frozen=True)
class Pairs:
    """Pairs of patients and their margins: each row patient meets a run of column patients.

    Attributes
    ----------
    rows : (r,) int array
        Patient of each row.
    columns : (c,) int array
        Patient of each column.
    start, stop : (r,) int arrays
        The run of columns that each row meets.
    margin : (sum of run lengths,) float array
        ``gamma`` times the distance of each pair, row after row.
    divisor : float
        What the sum of hinges is divided by.
    n : int
        Number of patients.
    """

    rows: np.ndarray
    columns: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    margin: np.ndarray
    divisor: float
    n: int


def unit_rows(X) -> np.ndarray:
    """Scale each row to unit length; rows of zeros stay zero."""
    X = _checks.numbers(X, "X", 2)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1.0)


@njit(cache=True)
def _margins(x, rows, columns, start, stop, gamma):
    total = 0
    for r in range(len(rows)):
        total += stop[r] - start[r]
    out = np.empty(total)
    at = 0
    for r in range(len(rows)):
        for k in range(start[r], stop[r]):
            square = 0.0
            for d in range(x.shape[1]):
                square += (x[rows[r], d] - x[columns[k], d]) ** 2
            out[at] = gamma * np.sqrt(square)
            at += 1
    return out


def all_pairs(X, gamma: float = GAMMA) -> Pairs:
    """All pairs of patients, for the individual penalty of Keya et al. and the metric F_I.

    Parameters
    ----------
    X : array of shape (n, d)
        Scaled features; rows are normalised to unit length here.
    gamma : float
        Lipschitz constant of the margin.
    """
    x = unit_rows(X)
    n = len(x)
    if n < 2:
        raise ValueError("X has one row; a comparison needs at least two patients")
    index = np.arange(n)
    margin = _margins(x, index, index, np.zeros_like(index), index, gamma)
    return Pairs(index, index, np.zeros_like(index), index, margin, float(n * (n - 1)), n)


def censored_event_pairs(X, time, event, codes=None, gamma: float = GAMMA) -> Pairs:
    """Pairs of a censored patient and an event that came no earlier (Rahman & Purushotham).

    Parameters
    ----------
    X : array of shape (n, d)
        Scaled features.
    time, event : arrays of shape (n,)
    codes : array of shape (n,), optional
        Group labels; if given, only pairs inside one group are kept.
    gamma : float
    """
    x = unit_rows(X)
    time, event = _checks.outcomes(time, event)
    _checks.same_length(time=time, X=x.T)
    if event.all():
        raise ValueError("nobody is censored (event is all 1); this penalty compares "
                         "censored patients with events")
    codes = np.zeros(len(time), int) if codes is None else _checks.codes(codes, "codes", len(time))
    rows, events = np.flatnonzero(~event), np.flatnonzero(event)
    columns = events[np.lexsort((-time[events], codes[events]))]  # by group, latest first
    start = np.searchsorted(codes[columns], codes[rows], side="left")
    stop = start.copy()
    for g in np.unique(codes):
        of_group = columns[codes[columns] == g]
        mine = codes[rows] == g
        stop[mine] += np.searchsorted(-time[of_group], -time[rows[mine]], side="right")
    margin = _margins(x, rows, columns, start, stop, gamma)
    divisor = float(len(rows) * len(events))
    return Pairs(rows, columns, start, stop, margin, divisor, len(time))


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def _hinge_sums(h, rows, columns, start, stop, margin):
    """Sum of hinges of each model."""
    models = h.shape[0]
    value, met = np.zeros(models), np.ascontiguousarray(h[:, columns])
    at = 0
    for r in range(len(rows)):
        margins = margin[at : at + stop[r] - start[r]]
        at += len(margins)
        for m in range(models):
            mine, others, total = h[m, rows[r]], met[m, start[r] : stop[r]], 0.0
            for k in range(len(others)):
                excess = abs(mine - others[k]) - margins[k]
                total += excess if excess > 0.0 else 0.0
            value[m] += total
    return value


@njit(cache=True)
def _hinge_gradients(h, rows, columns, start, stop, margin):
    """Gradient of the sum of hinges: every active pair pushes its two hazards together.

    Comparisons become whole numbers, runs become slices and nothing branches, so the compiler
    turns the inner loop into vector code; a row's margins are read once for all models.
    """
    models, n = h.shape
    grad, met = np.zeros((models, n)), np.ascontiguousarray(h[:, columns])
    back = np.zeros(met.shape, np.int64)
    at = 0
    for r in range(len(rows)):
        margins = margin[at : at + stop[r] - start[r]]
        at += len(margins)
        for m in range(models):
            mine, push = h[m, rows[r]], 0
            others, pushed = met[m, start[r] : stop[r]], back[m, start[r] : stop[r]]
            for k in range(len(others)):
                gap = mine - others[k]
                sign = np.int64(gap > margins[k]) - np.int64(gap < -margins[k])
                push += sign
                pushed[k] -= sign
            grad[m, rows[r]] += push
    for m in range(models):
        for k in range(len(columns)):
            grad[m, columns[k]] += back[m, k]
    return grad


def hinge_gradient(hazards: torch.Tensor, pairs: Pairs) -> torch.Tensor:
    """Gradient of :func:`hinge_penalty` with respect to the hazards; input is not checked."""
    h = hazards.detach().to("cpu", torch.float64).reshape(-1, pairs.n).numpy()
    grad = _hinge_gradients(h, pairs.rows, pairs.columns, pairs.start, pairs.stop, pairs.margin)
    return torch.from_numpy(grad / pairs.divisor).reshape(hazards.shape).to(hazards)


class _HingePenalty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hazards, pairs):
        ctx.save_for_backward(hazards)
        ctx.pairs = pairs
        h = hazards.detach().to("cpu", torch.float64).reshape(-1, pairs.n).numpy()
        value = _hinge_sums(h, pairs.rows, pairs.columns, pairs.start, pairs.stop, pairs.margin)
        return torch.from_numpy(value / pairs.divisor).reshape(hazards.shape[:-1]).to(hazards)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return upstream[..., None] * hinge_gradient(ctx.saved_tensors[0], ctx.pairs), None


def hinge_penalty(hazards, pairs: Pairs) -> torch.Tensor:
    r"""Sum of :math:`[\,|h_i-h_j| - \text{margin}_{ij}]_+` over prepared pairs, divided.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    pairs : Pairs
        From :func:`all_pairs` or :func:`censored_event_pairs`.

    Returns
    -------
    tensor of shape (...)
    """
    hazards = _checks.floats(hazards, "hazards")
    if hazards.shape[-1] != pairs.n:
        raise ValueError(f"lengths differ: hazards has {hazards.shape[-1]}, X has {pairs.n}; "
                         "pass one hazard per patient")
    return _HingePenalty.apply(hazards, pairs)


def individual_keya(hazards, X, gamma: float = GAMMA) -> torch.Tensor:
    """Individual penalty of Keya et al. (2021): hinges of all pairs; ``X`` scaled features."""
    return hinge_penalty(hazards, all_pairs(X, gamma))


def individual_rp(hazards, X, time, event, gamma: float = GAMMA) -> torch.Tensor:
    """Individual penalty of Rahman & Purushotham (2022): hinges of censored-event pairs."""
    return hinge_penalty(hazards, censored_event_pairs(X, time, event, gamma=gamma))


def group_rp(hazards, X, time, event, codes, gamma: float = GAMMA) -> torch.Tensor:
    """Group penalty of Rahman & Purushotham (2022): censored-event pairs inside a group."""
    return hinge_penalty(hazards, censored_event_pairs(X, time, event, codes, gamma))


def group_means(hazards: torch.Tensor, codes: np.ndarray, size: int, smoothing: bool):
    """Mean hazard of groups 0..size-1, smoothed as (sum + 1/2)/(count + 1) or plain."""
    belongs = torch.nn.functional.one_hot(torch.as_tensor(codes), size).to(hazards)
    extra = 1.0 if smoothing else 0.0
    return (hazards @ belongs + extra / 2) / (belongs.sum(0) + extra)


def group_keya(hazards, codes, smoothing: bool = True) -> torch.Tensor:
    r"""Group penalty of Keya et al. (2021): :math:`\max_g |\bar h_g - \bar h|`.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    codes : array of shape (n,)
        Group label of each patient.
    smoothing : bool
        Add 1/2 to each group's sum and 1 to its count.
    """
    hazards = _checks.floats(hazards, "hazards")
    codes = _checks.codes(codes, "codes", hazards.shape[-1])
    means = group_means(hazards, codes, codes.max() + 1, smoothing)
    return (means - hazards.mean(-1, keepdim=True)).abs().amax(-1)


def cells(codes_2d, n: int) -> tuple[np.ndarray, int]:
    """Cell of each patient in the product of the columns of ``codes_2d``, and their number."""
    codes_2d = np.asarray(codes_2d)
    if codes_2d.ndim != 2:
        raise ValueError(f"codes_2d must have shape (n, number of attributes), got "
                         f"{codes_2d.shape}; stack the attributes' codes as columns")
    columns = [_checks.codes(column, "codes_2d", n) for column in codes_2d.T]
    sizes = [column.max() + 1 for column in columns]
    return np.ravel_multi_index(columns, sizes), int(np.prod(sizes))


def intersectional_keya(hazards, codes_2d, smoothing: bool = True) -> torch.Tensor:
    r"""Intersectional penalty of Keya et al. (2021): largest :math:`|\log \bar h_s/\bar h_{s'}|`.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    codes_2d : array of shape (n, number of attributes)
        Group labels; the subgroups are all cells of the product of the columns.
    smoothing : bool
        As in :func:`group_keya`; without it an empty cell has no mean and is refused.
    """
    hazards = _checks.floats(hazards, "hazards")
    if (hazards.detach() < 0).any():
        raise ValueError("hazards holds negative values; pass exp(scores)")
    cell, size = cells(codes_2d, hazards.shape[-1])
    if not smoothing and len(np.unique(cell)) < size:
        raise ValueError("a cell of codes_2d has no patient, so its mean does not exist; "
                         "use smoothing=True or merge attributes")
    means = group_means(hazards, cell, size, smoothing).log()
    return means.amax(-1) - means.amin(-1)
