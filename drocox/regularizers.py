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

import numpy as np
import torch
from numpy.typing import ArrayLike

from drocox import _checks, kernels
from drocox.pairs import GAMMA, Pairs, all_pairs, cells, censored_event_pairs, hinge_means


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
        value = hinge_means(_rows(hazards, pairs), pairs)
        return torch.from_numpy(value).reshape(hazards.shape[:-1]).to(hazards)

    @staticmethod
    def backward(ctx, upstream):
        return upstream[..., None] * hinge_gradient(*ctx.saved_tensors, ctx.pairs), None


def hinge_penalty(hazards: torch.Tensor, pairs: Pairs) -> torch.Tensor:
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


def individual_keya(hazards: torch.Tensor, X: ArrayLike, gamma: float = GAMMA) -> torch.Tensor:
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


def individual_rp(
    hazards: torch.Tensor, X: ArrayLike, time: ArrayLike, event: ArrayLike, gamma: float = GAMMA
) -> torch.Tensor:
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


def group_rp(
    hazards: torch.Tensor,
    X: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    codes: ArrayLike,
    gamma: float = GAMMA,
) -> torch.Tensor:
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


def group_keya(hazards: torch.Tensor, codes: ArrayLike, smoothing: bool = True) -> torch.Tensor:
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


def intersectional_keya(
    hazards: torch.Tensor, codes_2d: ArrayLike, smoothing: bool = True
) -> torch.Tensor:
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
