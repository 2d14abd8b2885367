r"""Cox losses: one loss per patient, from one pass over the patients in time order.

The paper's equation (3), with risk set :math:`R_i = \{j : Y_j \ge Y_i\}`, and its split form (8),
which compares patient :math:`i` with itself and with the patients of the *other* half only:

.. math:: \ell_i = -\delta_i \Big[f_i - \log \sum_{j \in R_i} e^{f_j}\Big], \quad \tilde\ell_i =
          -\delta_i \Big[f_i - \log\Big(e^{f_i} + \sum_{j \in D' \cap R_i} e^{f_j}\Big)\Big].

Latest patients first, a risk set is a prefix, so every sum is a value of one running sum: linear
time, no matrix. The sum is taken relative to the largest score, or to the running maximum where
scores spread so far that it could vanish. The gradient is the same scan backwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from drocox import _checks, kernels

TIES = ("breslow", "efron", "order")


@dataclass(frozen=True)
class RiskSets:
    """Patients latest first, prepared once and used at every step; arrays of shape (rows, n)."""

    order: np.ndarray  # the patient at each position; equal times keep their given order
    stop: np.ndarray  # one past the last position with the same time
    event: np.ndarray  # event and time: the outcomes in this order
    time: np.ndarray
    died: torch.Tensor  # the event indicators in the order of the patients


def risk_sets(time, event) -> RiskSets:
    """Prepare the time order that :func:`cox_losses` and :func:`split_cox_losses` accept.

    ``time`` and ``event`` (bool or 0/1) have shape (n,), or (..., n) for a stack of data sets.

    >>> r = risk_sets([5.0, 2.0, 5.0], [1, 1, 0])
    >>> r.order.tolist(), r.stop.tolist()
    ([[0, 2, 1]], [[2, 2, 3]])
    """
    time, event = _checks.outcomes(time, event, ndim=None)
    time, event = (a.reshape(-1, a.shape[-1]) for a in (time, event))
    order = np.argsort(-time, axis=-1, kind="stable")
    died = torch.from_numpy(event)
    time, event = (np.take_along_axis(a, order, -1) for a in (time, event))
    n = time.shape[-1]
    last = np.ones(time.shape, dtype=bool)
    last[:, :-1] = time[:, 1:] != time[:, :-1]
    stop = np.where(last, np.arange(1, n + 1), n)
    stop = np.minimum.accumulate(stop[:, ::-1], axis=-1)[:, ::-1]
    return RiskSets(order, np.ascontiguousarray(stop), event, time, died)


class _RiskSums(torch.autograd.Function):
    """Log-sum-exp of the scores over the members of each event's risk set; 0 where left out."""

    @staticmethod
    def forward(ctx, scores, risk, stop, member, others):
        f = scores.detach().cpu().reshape(-1, scores.shape[-1]).numpy()
        log_sum, *saved = kernels.sums_forward(f, risk.order, stop, risk.event, member, others)
        ctx.saved = (risk.order, stop, risk.event, *saved)
        return torch.from_numpy(log_sum).reshape(scores.shape).to(scores.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        g = upstream.cpu().reshape(-1, upstream.shape[-1]).contiguous().numpy()
        grad = torch.from_numpy(kernels.sums_backward(g, *ctx.saved))
        return grad.reshape(upstream.shape).to(upstream.device), None, None, None, None


def _like(values: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Values of shape (1 or rows, n) on the device of the scores, in a shape that broadcasts."""
    return (values[0] if len(values) == 1 else values.reshape(scores.shape)).to(scores.device)


def _efron(scores, log_sum, risk: RiskSets) -> torch.Tensor:
    """What Efron adds to a risk set's log-sum: mean of log(1 - k/d * share of the tied events)."""
    count = np.cumsum(risk.event, -1)
    begins = np.ones(count.shape, dtype=bool)
    begins[:, 1:] = risk.stop[:, 1:] != risk.stop[:, :-1]
    before = np.maximum.accumulate(np.where(begins, count - risk.event, 0), -1)
    deaths = np.take_along_axis(count, risk.stop - 1, -1) - before
    fraction = np.where(risk.event, (count - 1 - before) / np.maximum(deaths, 1), 0.0)
    event, *rest = risk.died, *map(np.empty_like, (count, fraction, deaths))
    for out, values in zip(rest, (risk.stop - 1, fraction, np.maximum(deaths, 1)), strict=True):
        np.put_along_axis(out, risk.order, values, -1)  # from positions back to patients
    block, fraction, deaths = (_like(torch.from_numpy(v), scores) for v in rest)
    block, event = block.expand(scores.shape), _like(event, scores)

    def block_sum(values):
        return torch.zeros_like(scores).scatter_add(-1, block, values * event).gather(-1, block)

    share = block_sum(torch.exp(torch.where(event, scores - log_sum, 0.0)))
    return block_sum(torch.log1p(-fraction * share)) / deaths


def _losses(scores: torch.Tensor, risk: RiskSets, ties: str = "breslow") -> torch.Tensor:
    """Cox losses without checks; ``scores`` in float64."""
    stop = risk.stop
    if ties == "order":
        stop = np.tile(np.arange(1, stop.shape[-1] + 1), (len(stop), 1))
    log_sum = _RiskSums.apply(scores, risk, stop, np.ones((1, scores.shape[-1]), bool), False)
    if ties == "efron":
        log_sum = log_sum + _efron(scores, log_sum, risk)
    return torch.where(_like(risk.died, scores), log_sum - scores, 0.0)


def _split_losses(scores: torch.Tensor, risk: RiskSets, first: np.ndarray) -> torch.Tensor:
    """Split losses without checks; ``scores`` in float64, ``first`` of shape (1 or rows, n)."""
    sums = [_RiskSums.apply(scores, risk, risk.stop, half, True) for half in (first, ~first)]
    others = sums[0] + sums[1]  # each is 0 for the events of its own half
    return torch.where(_like(risk.died, scores), torch.logaddexp(scores, others) - scores, 0.0)


def _prepare(scores, time, event, name: str = "scores") -> tuple[torch.Tensor, RiskSets]:
    """Check scores against outcomes; return both in the form the kernels take."""
    scores = _checks.floats(scores, name)
    n = scores.shape[-1]
    if isinstance(time, RiskSets) == (event is not None):
        raise TypeError("event: pass either time and event, or risk_sets(time, event) alone")
    if not isinstance(time, RiskSets):
        if np.ndim(time) > 1 and np.shape(time) != tuple(scores.shape):
            raise ValueError(
                f"time has shape {tuple(np.shape(time))}, {name} {tuple(scores.shape)}"
                "; pass time of shape (n,) or of the scores' shape"
            )
        time = risk_sets(time, event)
    rows = len(time.order)
    if time.order.shape[-1] != n or rows not in (1, scores.numel() // n):
        raise ValueError(
            f"lengths differ: {name} has shape {tuple(scores.shape)}, time "
            f"{time.order.shape}; pass one score per patient"
        )
    return scores, time


def cox_losses(scores, time, event=None, *, ties: str = "breslow") -> torch.Tensor:
    r"""Cox loss of every patient, the paper's equation (3); 0 where censored.

    .. math:: \ell_i = -\delta_i \Big[f_i - \log \sum_{j: Y_j \ge Y_i} e^{f_j}\Big]

    Parameters
    ----------
    scores : tensor of shape (..., n)
        Scores :math:`f(x_i; \theta)`; leading dimensions are a stack of models. Losses have the
        same shape and dtype, and are differentiable once.
    time, event : arrays of shape (n,) or the shape of ``scores``
        Observed times and event indicators; or the prepared :func:`risk_sets` as ``time`` alone.
    ties : {"breslow", "efron", "order"}
        Breslow: the formula above. Efron: tied events share the mean of their terms, so that the
        sum is Efron's likelihood (JASA, 1977). Order: patients with equal times leave the risk set
        one by one, in the given row order.

    Examples
    --------
    >>> cox_losses(torch.zeros(3), [3.0, 2.0, 1.0], [1, 0, 1]).exp()
    tensor([1., 1., 3.])
    """
    _checks.one_of(ties, "ties", TIES)
    scores, risk = _prepare(scores, time, event)
    return _losses(scores.double(), risk, ties).to(scores.dtype)


def split_cox_losses(scores, time, event=None, first=None) -> torch.Tensor:
    r"""Split Cox loss of every patient, the paper's equation (8), both directions at once.

    .. math:: \tilde\ell_i = -\delta_i \Big[f_i - \log\Big(e^{f_i} +
              \sum_{j \in D',\, Y_j \ge Y_i} e^{f_j}\Big)\Big]

    with :math:`D' = D_2` for patients of :math:`D_1`, where ``first`` (bool, (n,) or the shape of
    ``scores``) is True, and the reverse. Other arguments as in :func:`cox_losses`; with prepared
    risk sets, ``split_cox_losses(scores, risk, first=first)``.

    >>> split_cox_losses(torch.zeros(3), [3.0, 2.0, 1.0], [1, 1, 1], [True, False, True]).exp()
    tensor([1., 2., 2.])
    """
    scores, risk = _prepare(scores, time, event)
    first = np.asarray(False if first is None else first)
    if first.shape not in (scores.shape[-1:], tuple(scores.shape)):
        raise ValueError(
            f"first has shape {first.shape}, scores {tuple(scores.shape)}; pass one "
            "boolean per patient, True for D1"
        )
    if not np.isin(first, (0, 1)).all():
        raise ValueError("first must be boolean or 0/1 (True for the patients of D1)")
    first = np.ascontiguousarray(first.reshape(-1, first.shape[-1]).astype(bool))
    if first.all(axis=-1).any() or not first.any(axis=-1).all():
        raise ValueError("first leaves one side of the split empty; put patients on both sides")
    return _split_losses(scores.double(), risk, first).to(scores.dtype)


def breslow_survival(train_scores, time, event, scores, times) -> torch.Tensor:
    r"""Survival probabilities by Breslow's baseline (the paper's Appendix A), shape (..., m, k).

    .. math:: \hat H_0(t) = \sum_{i: \delta_i = 1,\, Y_i \le t} \frac{1}{\sum_{j \in R_i} e^{f_j}},
              \qquad \hat S(t \mid x) = \exp\big(-\hat H_0(t)\, e^{f(x)}\big),

    computed with logarithms throughout, so that large scores neither overflow nor vanish. Patients
    with ``train_scores`` (..., n) and outcomes ``time`` and ``event`` carry the baseline; predicted
    are those with ``scores`` (..., m), at ``times`` (k,).
    """
    train_scores, risk = _prepare(train_scores, time, event, "train_scores")
    scores = _checks.floats(scores, "scores")
    times = torch.from_numpy(np.ascontiguousarray(_checks.numbers(times, "times", 1)))
    if len(risk.order) > 1:
        raise ValueError("time must have shape (n,): a baseline comes from one training set")
    if scores.shape[:-1] != train_scores.shape[:-1]:
        raise ValueError(
            f"scores has shape {tuple(scores.shape)}, train_scores "
            f"{tuple(train_scores.shape)}; pass the same stack of models"
        )
    everyone = np.ones((1, train_scores.shape[-1]), dtype=bool)
    log_sum = _RiskSums.apply(train_scores.double(), risk, risk.stop, everyone, False)
    at = np.flatnonzero(risk.event[0])[::-1]  # earliest event first
    steps = torch.logcumsumexp(-log_sum[..., torch.from_numpy(risk.order[0][at])], -1)
    log_baseline = torch.cat([torch.full_like(steps[..., :1], -torch.inf), steps], -1)
    happened = torch.searchsorted(torch.from_numpy(risk.time[0][at]), times, right=True)
    log_hazard = scores.double()[..., :, None] + log_baseline[..., happened][..., None, :]
    kept = torch.promote_types(train_scores.dtype, scores.dtype)
    return torch.exp(-torch.exp(log_hazard)).to(kept)
