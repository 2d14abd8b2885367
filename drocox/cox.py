r"""Cox losses: one loss per patient, in one pass over the patients ordered by time.

The paper's equation (3), with risk set :math:`R_i = \{j : Y_j \ge Y_i\}`:

.. math:: \ell_i = -\delta_i \Big[f_i - \log \sum_{j \in R_i} e^{f_j}\Big],

and its sample-splitting form, equation (8), in which patient :math:`i` is compared with itself and
with the patients of the *other* half only:

.. math:: \tilde\ell_i = -\delta_i \Big[f_i - \log\Big(e^{f_i} + \sum_{j \in D',\, Y_j \ge Y_i}
          e^{f_j}\Big)\Big].

Ordered by descending time, a risk set is a prefix, so all the sums come from one running sum. The
sum is kept relative to the running maximum of the scores: it is never smaller than 1 and never
overflows, whatever the scores. The gradient is the same scan backwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numba import njit

from drocox import _checks

TIES = ("breslow", "efron", "order")


@dataclass(frozen=True)
class RiskSets:
    """Patients in descending order of time, prepared once and used at every step.

    Attributes
    ----------
    order : (b, n) int array
        Patient at each position, latest first; patients with equal times keep their given order.
    stop : (b, n) int array
        One past the last position that shares the position's time.
    event : (b, n) bool array
        Event indicator at each position.
    time : (b, n) float array
        Observed time at each position.
    """

    order: np.ndarray
    stop: np.ndarray
    event: np.ndarray
    time: np.ndarray

    @property
    def n_events(self) -> np.ndarray:
        """Number of events in each row, shape (b,)."""
        return self.event.sum(axis=-1)


def risk_sets(time, event) -> RiskSets:
    """Prepare the time order that :func:`cox_losses` and :func:`split_cox_losses` share.

    Parameters
    ----------
    time, event : array or tensor of shape (n,) or (..., n)
        Observed times and event indicators (bool or 0/1).

    Returns
    -------
    RiskSets
        Accepted by both losses in place of ``(time, event)``.

    Examples
    --------
    >>> r = risk_sets([5.0, 2.0, 5.0], [1, 1, 0])
    >>> r.order.tolist(), r.stop.tolist()
    ([[0, 2, 1]], [[2, 2, 3]])
    """
    time, event = _checks.outcomes(time, event, ndim=None)
    time, event = np.atleast_2d(time), np.atleast_2d(event)
    time, event = time.reshape(-1, time.shape[-1]), event.reshape(-1, event.shape[-1])
    order = np.argsort(-time, axis=-1, kind="stable")
    time = np.take_along_axis(time, order, -1)
    ends = np.ones(time.shape, dtype=bool)
    ends[:, :-1] = time[:, 1:] != time[:, :-1]
    position = np.arange(1, time.shape[-1] + 1)
    stop = np.where(ends, position, time.shape[-1] + 1)
    stop = np.minimum.accumulate(stop[:, ::-1], axis=-1)[:, ::-1]
    return RiskSets(order, np.ascontiguousarray(stop), np.take_along_axis(event, order, -1), time)


def _prepare(scores, time, event) -> tuple[torch.Tensor, RiskSets]:
    """Check scores against outcomes; return both in the form the kernels take."""
    scores = _checks.floats(scores, "scores")
    if isinstance(time, RiskSets):
        if event is not None:
            raise TypeError("pass either risk_sets(time, event) or time and event, not both")
        risk = time
    elif event is None:
        raise TypeError("event is missing; pass time and event, or risk_sets(time, event)")
    else:
        if np.ndim(time) > 1 and np.shape(time) != tuple(scores.shape):
            raise ValueError(f"time has shape {tuple(np.shape(time))}, scores {tuple(scores.shape)}"
                             "; pass time of shape (n,) or of the scores' shape")
        risk = risk_sets(time, event)
    rows, n = risk.order.shape
    if scores.shape[-1] != n:
        raise ValueError(f"lengths differ: scores has {scores.shape[-1]}, time has {n}; "
                         "pass one score per patient")
    if rows > 1 and rows != scores.numel() // n:
        raise ValueError(f"{rows} rows of times for {scores.numel() // n} rows of scores; "
                         "pass one shared row of times or one per row of scores")
    return scores, risk


SAFE_SPREAD = 600.0  # exp(-600) is far from underflow: one shift serves the whole row


@njit(cache=True)
def _cox_forward(f, order, stop, event, efron):
    """Losses, and per position what the way back needs.

    ``hazard`` is exp(score - shift), ``weight`` the mean of 1/(sum over the risk set) and ``tied``
    the part of it that Efron takes from tied events. The shift is the largest score of the row or,
    where scores spread too far, the running maximum.
    """
    models, n = f.shape
    loss, hazard, weight = np.zeros((models, n)), np.empty((models, n)), np.zeros((models, n))
    shift, tied = np.empty((models, n)), np.zeros((models, n if efron else 0))
    x = np.empty(n)
    for m in range(models):
        b = m if order.shape[0] > 1 else 0
        high, low = -np.inf, np.inf
        for q in range(n):
            x[q] = f[m, order[b, q]]
            high, low = max(high, x[q]), min(low, x[q])
        top = high if high - low < SAFE_SPREAD else -np.inf
        total, p = 0.0, 0
        while p < n:
            end = stop[b, p]
            block = top
            if top < high:
                for q in range(p, end):
                    block = max(block, x[q])
            if block > top:
                total *= np.exp(top - block)
                top = block
            deaths, dying = 0, 0.0
            for q in range(p, end):
                e = np.exp(x[q] - top)
                hazard[m, q] = e
                total += e
                if event[b, q]:
                    deaths += 1
                    dying += e
            shift[m, p] = top
            if deaths > 0:
                log_sum, up, down = np.log(total), 1.0 / total, 0.0
                if efron and deaths > 1:
                    log_sum, up = 0.0, 0.0
                    for k in range(deaths):
                        part = total - k / deaths * dying
                        log_sum += np.log(part) / deaths
                        up += 1.0 / part / deaths
                        down += k / part / deaths**2
                for q in range(p, end):
                    if event[b, q]:
                        loss[m, order[b, q]] = log_sum + top - x[q]
                        weight[m, q] = up
                        if efron:
                            tied[m, q] = down
            p = end
    return loss, hazard, weight, shift, tied


@njit(cache=True)
def _cox_backward(upstream, order, stop, event, hazard, weight, shift, tied):
    """Gradient: what each event passes back to everyone in its risk set."""
    models, n = upstream.shape
    grad = np.empty((models, n))
    for m in range(models):
        b = m if order.shape[0] > 1 else 0
        passed, end = 0.0, n
        while end > 0:
            p = end - 1
            while p > 0 and stop[b, p - 1] == end:
                p -= 1
            if end < n and shift[m, p] != shift[m, end]:
                passed *= np.exp(shift[m, p] - shift[m, end])
            own = 0.0
            for q in range(p, end):
                if event[b, q]:
                    g = upstream[m, order[b, q]]
                    passed += g * weight[m, q]
                    if tied.shape[1] > 0:
                        own += g * tied[m, q]
            for q in range(p, end):
                i = order[b, q]
                value = hazard[m, q] * passed
                if event[b, q]:
                    value -= upstream[m, i] + hazard[m, q] * own
                grad[m, i] = value
            end = p
    return grad


class _CoxLosses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, risk, ties):
        f = scores.detach().to("cpu", torch.float64).reshape(-1, scores.shape[-1]).numpy()
        stop = risk.stop
        if ties == "order":
            stop = np.ascontiguousarray(np.broadcast_to(np.arange(1, f.shape[1] + 1), stop.shape))
        loss, *saved = _cox_forward(f, risk.order, stop, risk.event, ties == "efron")
        ctx.saved, ctx.risk, ctx.stop = saved, risk, stop
        return torch.from_numpy(loss).reshape(scores.shape).to(scores)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        g = upstream.to("cpu", torch.float64).reshape(-1, upstream.shape[-1]).contiguous().numpy()
        grad = _cox_backward(g, ctx.risk.order, ctx.stop, ctx.risk.event, *ctx.saved)
        return torch.from_numpy(grad).reshape(upstream.shape).to(upstream), None, None


def cox_losses(scores, time, event=None, *, ties: str = "breslow") -> torch.Tensor:
    r"""Cox loss of every patient, the paper's equation (3); 0 where censored.

    .. math:: \ell_i = -\delta_i \Big[f_i - \log \sum_{j: Y_j \ge Y_i} e^{f_j}\Big]

    Parameters
    ----------
    scores : tensor of shape (..., n)
        Scores :math:`f(x_i; \theta)`; leading dimensions are a stack of models.
    time : array of shape (n,) or the shape of ``scores``, or RiskSets
        Observed times, or the prepared :func:`risk_sets`.
    event : array like ``time``
        Event indicators, bool or 0/1; left out when ``time`` is a :class:`RiskSets`.
    ties : {"breslow", "efron", "order"}
        Breslow: the formula above. Efron: tied events share the mean of their terms, so that the
        sum is Efron's likelihood [1]_. Order: patients with equal times leave the risk set one by
        one, in the given row order.

    Returns
    -------
    tensor of shape (..., n)
        Losses in the dtype of ``scores``, differentiable once.

    References
    ----------
    .. [1] B. Efron, "The efficiency of Cox's likelihood function for censored data", JASA, 1977.

    Examples
    --------
    >>> cox_losses(torch.zeros(3), [3.0, 2.0, 1.0], [1, 0, 1]).exp()
    tensor([1.0000, 1.0000, 3.0000])
    """
    _checks.one_of(ties, "ties", TIES)
    scores, risk = _prepare(scores, time, event)
    return _CoxLosses.apply(scores, risk, ties)


@njit(cache=True)
def _split_forward(f, order, stop, event, first):
    """Split losses; ``top[m, q, s]`` is the running maximum of side s at position q."""
    models, n = f.shape
    loss, log_sum = np.zeros((models, n)), np.zeros((models, n))
    top = np.empty((models, n, 2))
    for m in range(models):
        b = m if order.shape[0] > 1 else 0
        c = m if first.shape[0] > 1 else 0
        t0, t1, s0, s1, p = -np.inf, -np.inf, 0.0, 0.0, 0
        while p < n:
            end = stop[b, p]
            for q in range(p, end):
                x = f[m, order[b, q]]
                if first[c, order[b, q]]:
                    if x > t0:
                        s0 = s0 * np.exp(t0 - x) + 1.0
                        t0 = x
                    else:
                        s0 += np.exp(x - t0)
                elif x > t1:
                    s1 = s1 * np.exp(t1 - x) + 1.0
                    t1 = x
                else:
                    s1 += np.exp(x - t1)
            for q in range(p, end):
                i = order[b, q]
                top[m, q, 0] = t0
                top[m, q, 1] = t1
                if event[b, q]:
                    x = f[m, i]
                    other_top, other = (t1, s1) if first[c, i] else (t0, s0)
                    high = max(x, other_top)
                    total = high + np.log(np.exp(x - high) + other * np.exp(other_top - high))
                    log_sum[m, q] = total
                    loss[m, i] = total - x
            p = end
    return loss, log_sum, top


@njit(cache=True)
def _split_backward(upstream, f, order, stop, event, first, log_sum, top):
    models, n = upstream.shape
    grad = np.zeros((models, n))
    for m in range(models):
        b = m if order.shape[0] > 1 else 0
        c = m if first.shape[0] > 1 else 0
        to0, to1, end = 0.0, 0.0, n
        while end > 0:
            p = end - 1
            while p > 0 and stop[b, p - 1] == end:
                p -= 1
            t0, t1 = top[m, p, 0], top[m, p, 1]
            if end < n:
                if top[m, end, 0] != t0:
                    to0 *= np.exp(t0 - top[m, end, 0])
                if top[m, end, 1] != t1:
                    to1 *= np.exp(t1 - top[m, end, 1])
            for q in range(p, end):
                if event[b, q]:
                    i = order[b, q]
                    g = upstream[m, i]
                    grad[m, i] = g * (np.exp(f[m, i] - log_sum[m, q]) - 1.0)
                    if first[c, i]:
                        to1 += g * np.exp(t1 - log_sum[m, q])
                    else:
                        to0 += g * np.exp(t0 - log_sum[m, q])
            for q in range(p, end):
                i = order[b, q]
                if first[c, i]:
                    grad[m, i] += np.exp(f[m, i] - t0) * to0
                else:
                    grad[m, i] += np.exp(f[m, i] - t1) * to1
            end = p
    return grad


class _SplitCoxLosses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, risk, first):
        f = scores.detach().to("cpu", torch.float64).reshape(-1, scores.shape[-1]).numpy()
        loss, *saved = _split_forward(f, risk.order, risk.stop, risk.event, first)
        ctx.f, ctx.risk, ctx.first, ctx.saved = f, risk, first, saved
        return torch.from_numpy(loss).reshape(scores.shape).to(scores)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        r = ctx.risk
        g = upstream.to("cpu", torch.float64).reshape(-1, upstream.shape[-1]).contiguous().numpy()
        grad = _split_backward(g, ctx.f, r.order, r.stop, r.event, ctx.first, *ctx.saved)
        return torch.from_numpy(grad).reshape(upstream.shape).to(upstream), None, None


def split_cox_losses(scores, time, event=None, first=None) -> torch.Tensor:
    r"""Split Cox loss of every patient, the paper's equation (8), both directions at once.

    .. math:: \tilde\ell_i = -\delta_i \Big[f_i - \log\Big(e^{f_i} +
              \sum_{j \in D',\, Y_j \ge Y_i} e^{f_j}\Big)\Big]

    where :math:`D'` is :math:`D_2` for patients of :math:`D_1`, and the reverse. It needs no
    :math:`n_1 \times n_2` matrix: one pass in time order with a running sum for each half.

    Parameters
    ----------
    scores : tensor of shape (..., n)
    time, event : as in :func:`cox_losses`
        With prepared risk sets: ``split_cox_losses(scores, risk, first=first)``.
    first : bool array of shape (n,) or the shape of ``scores``
        True for the patients of :math:`D_1`.

    Returns
    -------
    tensor of shape (..., n)

    Examples
    --------
    >>> first = [True, False, True]
    >>> split_cox_losses(torch.zeros(3), [3.0, 2.0, 1.0], [1, 1, 1], first).exp()
    tensor([1., 2., 2.])
    """
    if first is None:
        raise TypeError("first is missing; pass a boolean per patient, True for D1")
    scores, risk = _prepare(scores, time, event)
    first = np.asarray(first)
    if not np.isin(first, (0, 1)).all():
        raise ValueError("first must be boolean or 0/1 (True for the patients of D1)")
    if first.shape[-1:] != scores.shape[-1:]:
        raise ValueError(f"lengths differ: scores has {scores.shape[-1]}, first has "
                         f"{first.shape[-1] if first.ndim else 0}; pass one value per patient")
    first = np.ascontiguousarray(first.astype(bool).reshape(-1, first.shape[-1]))
    if not (first.any(axis=-1) & ~first.all(axis=-1)).all():
        raise ValueError("first leaves one side of the split empty; put patients on both sides")
    return _SplitCoxLosses.apply(scores, risk, first)


def breslow_survival(train_scores, time, event, scores, times) -> torch.Tensor:
    r"""Survival probabilities by Breslow's baseline (the paper's Appendix A).

    .. math:: \hat H_0(t) = \sum_{i: \delta_i = 1,\, Y_i \le t} \frac{1}{\sum_{j \in R_i} e^{f_j}},
              \qquad \hat S(t \mid x) = \exp\big(-\hat H_0(t)\, e^{f(x)}\big),

    computed with logarithms throughout, so that large scores neither overflow nor vanish.

    Parameters
    ----------
    train_scores : tensor of shape (..., n)
        Scores of the patients that carry the baseline.
    time, event : arrays of shape (n,)
        Their outcomes.
    scores : tensor of shape (..., m)
        Scores of the patients to predict.
    times : array of shape (k,)
        Times at which to predict.

    Returns
    -------
    tensor of shape (..., m, k)
    """
    train_scores, risk = _prepare(train_scores, time, event)
    scores = _checks.floats(scores, "scores")
    times = torch.as_tensor(_checks.numbers(times, "times", 1))
    if risk.order.shape[0] > 1:
        raise ValueError("time must have shape (n,): a baseline comes from one training set")
    ordered = train_scores[..., torch.from_numpy(risk.order[0])]
    at_risk = torch.logcumsumexp(ordered, -1)[..., torch.from_numpy(risk.stop[0] - 1)]
    events = torch.from_numpy(np.flatnonzero(risk.event[0])[::-1].copy())  # earliest event first
    steps = torch.logcumsumexp(-at_risk[..., events], -1)
    happened = torch.searchsorted(torch.from_numpy(risk.time[0])[events], times, right=True)
    before = torch.full_like(steps[..., :1], -torch.inf)
    log_baseline = torch.cat([before, steps], -1)[..., happened]
    return torch.exp(-torch.exp(scores[..., :, None] + log_baseline[..., None, :]))
