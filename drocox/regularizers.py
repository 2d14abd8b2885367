r"""The five fairness penalties of the baselines, with exact gradients.

All act on hazards :math:`h_i = e^{f_i}`. With unit-length feature rows :math:`\hat x_i` and the
hinge :math:`[\,|h_i-h_j| - \gamma\lVert\hat x_i-\hat x_j\rVert\,]_+` of a pair:

* individual (Keya et al., 2021): hinges of all pairs :math:`i<j`, over :math:`N(N-1)`;
* individual (Rahman & Purushotham, 2022): hinges of pairs with :math:`i` censored, :math:`j` an
  event and :math:`Y_i \le Y_j`, over (number censored) x (number of events);
* group (Rahman & Purushotham): the same, pairs inside one group only;
* group (Keya et al.): :math:`\max_g |\bar h_g - \bar h|`;
* intersectional (Keya et al.): :math:`\max_{s,s'} |\log \bar h_s/\bar h_{s'}|`,

where :math:`\bar h_g = (\sum_{i \in g} h_i + \tfrac12)/(n_g+1)` is the smoothed group mean. The
margins do not change during training, so the pairs of the first three penalties are prepared once.
"""

from dataclasses import dataclass

import numpy as np
import torch
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


def _rows(hazards: torch.Tensor, pairs: Pairs) -> np.ndarray:
    """Hazards (..., n) as NumPy rows for the kernels."""
    return hazards.detach().to("cpu", torch.float64).reshape(-1, pairs.n).numpy()


def hinge_gradient(hazards: torch.Tensor, pairs: Pairs) -> torch.Tensor:
    """Gradient of :func:`hinge_penalty` with respect to the hazards; input is not checked.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    pairs : Pairs

    Returns
    -------
    tensor of shape (..., n)
    """
    h = _rows(hazards, pairs)
    grad = np.empty_like(h)
    dense = np.ones(len(h), dtype=bool)  # models for which every pair is evaluated
    if pairs.unit is not None:  # all pairs: those with hazards far apart are only counted
        for m, row in enumerate(h):
            order = np.argsort(row, kind="stable")
            ordered = row[order]
            near = np.searchsorted(ordered, ordered + 2 * pairs.gamma) - np.arange(pairs.n)
            # a near pair costs about 0.5 d + 1 times as much as a pair of the dense loop
            cheap = near.sum() * (0.5 * len(pairs.unit) + 1) < pairs.divisor / 2
            if cheap or pairs.margin is None:
                dense[m] = False
                unit = np.take(pairs.unit, order, axis=1)
                grad[m, order] = kernels.all_hinge_gradient(ordered, unit, pairs.gamma)
    if dense.any():
        grad[dense] = kernels.hinge_gradients(h[dense], *pairs.spans, pairs.margin)
    return torch.from_numpy(grad / pairs.divisor).reshape(hazards.shape).to(hazards)


class _HingePenalty(torch.autograd.Function):
    """The penalty for autograd: piecewise linear in the hazards, so only first derivatives."""

    @staticmethod
    def forward(ctx, hazards, pairs):
        ctx.save_for_backward(hazards)
        ctx.pairs = pairs
        h = _rows(hazards, pairs)
        if pairs.margin is None:
            value = np.array([kernels.all_hinge_sum(row, pairs.unit, pairs.gamma) for row in h])
        else:
            value = kernels.hinge_sums(h, *pairs.spans, pairs.margin)
        return torch.from_numpy(value / pairs.divisor).reshape(hazards.shape[:-1]).to(hazards)

    @staticmethod
    def backward(ctx, upstream):
        return upstream[..., None] * hinge_gradient(*ctx.saved_tensors, ctx.pairs), None


def hinge_penalty(hazards, pairs: Pairs) -> torch.Tensor:
    r"""Sum of :math:`[\,|h_i-h_j| - \text{margin}_{ij}]_+` over prepared pairs, over its divisor.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    pairs : Pairs
        From :func:`all_pairs` (individual, Keya et al.) or :func:`censored_event_pairs` (individual
        and group, Rahman & Purushotham).

    Returns
    -------
    tensor of shape (...)
    """
    hazards = _hazards(hazards)
    if not isinstance(pairs, Pairs):
        raise TypeError("pairs must come from all_pairs(X) or censored_event_pairs(X, ...)")
    if hazards.shape[-1] != pairs.n:
        raise ValueError(
            f"lengths differ: hazards has {hazards.shape[-1]}, X has {pairs.n}; "
            "pass one hazard per patient"
        )
    return _HingePenalty.apply(hazards, pairs)


def individual_keya(hazards, X, gamma: float = GAMMA) -> torch.Tensor:
    """Individual penalty of Keya et al.: hinges of all pairs, with memory linear in n.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    X : array of shape (n, d)
        Scaled features.
    gamma : float

    Returns
    -------
    tensor of shape (...)
    """
    return hinge_penalty(hazards, all_pairs(X, gamma, keep=False))


def individual_rp(hazards, X, time, event, gamma: float = GAMMA) -> torch.Tensor:
    """Individual penalty of Rahman & Purushotham: hinges of censored-event pairs.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    X : array of shape (n, d)
        Scaled features.
    time, event : arrays of shape (n,)
    gamma : float

    Returns
    -------
    tensor of shape (...)
    """
    return hinge_penalty(hazards, censored_event_pairs(X, time, event, gamma=gamma))


def group_rp(hazards, X, time, event, codes, gamma: float = GAMMA) -> torch.Tensor:
    """Group penalty of Rahman & Purushotham: censored-event pairs inside a group.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    X : array of shape (n, d)
        Scaled features.
    time, event, codes : arrays of shape (n,)
    gamma : float

    Returns
    -------
    tensor of shape (...)
    """
    return hinge_penalty(hazards, censored_event_pairs(X, time, event, codes, gamma))


def _hazards(hazards) -> torch.Tensor:
    hazards = _checks.floats(hazards, "hazards")
    if (hazards.detach() < 0).any() or not torch.isfinite(hazards.detach().sum(-1)).all():
        raise ValueError("hazards holds negative values or overflows; pass exp(scores), centred")
    return hazards


def membership(codes: np.ndarray, size: int = -1) -> torch.Tensor:
    """One column of zeros and ones for each group.

    Parameters
    ----------
    codes : int array of shape (n,)
    size : int
        Number of groups, above all codes; by default one more than the largest.

    Returns
    -------
    tensor of shape (n, size)
    """
    return torch.nn.functional.one_hot(torch.as_tensor(codes), size).double()


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


def _means(hazards: torch.Tensor, belongs: torch.Tensor, smoothing: bool) -> torch.Tensor:
    """Mean hazard of each group, smoothed as (sum + 1/2)/(count + 1) or unsmoothed."""
    extra = 1.0 if smoothing else 0.0
    return (hazards @ belongs.to(hazards) + extra / 2) / (belongs.sum(0).to(hazards) + extra)


def group_gap(hazards: torch.Tensor, belongs: torch.Tensor, smoothing: bool = True) -> torch.Tensor:
    """Largest distance of a group mean to the mean of all; input is not checked.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    belongs : tensor of shape (n, groups)
        From :func:`membership`.
    smoothing : bool

    Returns
    -------
    tensor of shape (...)
    """
    return (_means(hazards, belongs, smoothing) - hazards.mean(-1, keepdim=True)).abs().amax(-1)


def log_range(hazards: torch.Tensor, belongs: torch.Tensor, smoothing: bool = True) -> torch.Tensor:
    """Largest log ratio of two group means; input is not checked.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    belongs : tensor of shape (n, groups)
        From :func:`membership`.
    smoothing : bool

    Returns
    -------
    tensor of shape (...)
    """
    means = _means(hazards, belongs, smoothing).log()
    return means.amax(-1) - means.amin(-1)


def group_keya(hazards, codes, smoothing: bool = True) -> torch.Tensor:
    r"""Group penalty of Keya et al., :math:`\max_g |\bar h_g - \bar h|`, of groups ``codes`` (n,).

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    codes : array of shape (n,)
    smoothing : bool
        Whether group means are smoothed.

    Returns
    -------
    tensor of shape (...)
    """
    hazards = _hazards(hazards)
    belongs = membership(_checks.codes(codes, "codes", hazards.shape[-1]))
    return group_gap(hazards, belongs, smoothing)


def intersectional_keya(hazards, codes_2d, smoothing: bool = True) -> torch.Tensor:
    r"""Intersectional penalty of Keya et al., the largest :math:`|\log \bar h_s/\bar h_{s'}|`.

    Parameters
    ----------
    hazards : tensor of shape (..., n)
    codes_2d : array of shape (n, number of attributes)
        Subgroups are all cells of the product of its columns.
    smoothing : bool
        Whether subgroup means are smoothed; without smoothing, a cell whose hazards sum to 0 raises
        a ValueError.

    Returns
    -------
    tensor of shape (...)
    """
    hazards = _hazards(hazards)
    belongs = membership(*cells(codes_2d, hazards.shape[-1]))
    if not smoothing and (_checks.numbers(hazards, "hazards") @ belongs.numpy() == 0).any():
        raise ValueError("hazards sum to 0 in a cell of codes_2d; use smoothing=True or merge it")
    return log_range(hazards, belongs, smoothing)
