r"""Cox losses: one loss per patient, from one pass over the patients in time order.

The paper's equation (3), with risk set :math:`R_i = \{j : Y_j \ge Y_i\}`, and its split form (8),
which compares patient :math:`i` with itself and with the patients of the *other* half only:

.. math:: \ell_i = -\delta_i \Big[f_i - \log \sum_{j \in R_i} w_j e^{f_j}\Big], \quad \tilde\ell_i =
          -\delta_i \Big[f_i - \log\Big(e^{f_i} + \sum_{j \in D' \cap R_i} w_j e^{f_j}\Big)\Big],

with case weights :math:`w_j = 1` unless given. Latest patients first, a risk set is a prefix, so
every sum is a value of one running sum: linear time, no matrix. The sum is taken relative to the
largest score, or to the running maximum where scores spread so far that it could vanish. The
gradient is the same scan backwards.

On the CPU the scans are compiled kernels. The same sums in plain torch operations serve tensors on
other devices, and second derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
    copies: dict = field(default_factory=dict, repr=False, compare=False)  # see on()

    def on(self, device: torch.device) -> tuple[torch.Tensor, ...]:
        """The arrays as tensors on a device, made once.

        Parameters
        ----------
        device : torch.device

        Returns
        -------
        tuple of tensors
            ``order``, its inverse, ``stop`` and ``event``.
        """
        if device not in self.copies:
            inverse = np.argsort(self.order, axis=-1, kind="stable")
            arrays = (self.order, inverse, self.stop, self.event)
            self.copies[device] = tuple(torch.from_numpy(a).to(device) for a in arrays)
        return self.copies[device]


def risk_sets(time, event) -> RiskSets:
    """Prepare the time order that :func:`cox_losses` and :func:`split_cox_losses` accept.

    Parameters
    ----------
    time, event : arrays of shape (n,), or (..., n) for a stack of data sets
        Observed times and event indicators (bool or 0/1).

    Returns
    -------
    RiskSets

    Examples
    --------
    >>> r = risk_sets([5.0, 2.0, 5.0], [1, 1, 0])
    >>> r.order.tolist(), r.stop.tolist()
    ([[0, 2, 1]], [[2, 2, 3]])
    """
    time, event = _checks.outcomes(time, event, ndim=None)
    n = time.shape[-1]
    time = time.reshape(-1, n)
    event = event.reshape(-1, n)
    order = np.argsort(-time, axis=-1, kind="stable")
    died = torch.from_numpy(event)
    time = np.take_along_axis(time, order, -1)
    event = np.take_along_axis(event, order, -1)
    # the last position of each block of equal times knows where the block stops; earlier positions
    # take the nearest such stop to their right
    last = np.ones(time.shape, dtype=bool)
    last[:, :-1] = time[:, 1:] != time[:, :-1]
    stop = np.where(last, np.arange(1, n + 1), n)
    stop = np.minimum.accumulate(stop[:, ::-1], axis=-1)[:, ::-1]
    return RiskSets(order, np.ascontiguousarray(stop), event, time, died)


@dataclass(frozen=True)
class _Sums:
    """Which sums over risk sets are wanted: all that defines them but the scores."""

    risk: RiskSets
    stop: np.ndarray
    member: np.ndarray | None = None  # who is summed, (1 or rows, n); None: everybody
    others: bool = False  # whether members' own events are left out

    def forward(self, scores: torch.Tensor) -> tuple[np.ndarray, ...]:
        """The compiled scan: log-sums and what the way back needs."""
        rows = scores.detach().reshape(-1, scores.shape[-1]).numpy()
        member = self.member
        if member is None:
            member = np.ones((1, scores.shape[-1]), dtype=bool)
        risk = self.risk
        return kernels.sums_forward(rows, risk.order, self.stop, risk.event, member, self.others)

    def plain(self, scores: torch.Tensor) -> torch.Tensor:
        """The same in torch operations: any device, any number of derivatives."""
        device = scores.device
        order, inverse, stop, event = self.risk.on(device)
        if self.stop is not self.risk.stop:
            stop = torch.from_numpy(self.stop).to(device)
        x = _take(scores.reshape(-1, scores.shape[-1]), order)
        counts = event
        inside = None
        if self.member is not None:
            inside = _take(torch.from_numpy(self.member).to(device), order)
            counts = event & ~inside if self.others else event
        reached = _take(_running_log_sum(x, inside), stop - 1)
        return _take(torch.where(counts, reached, 0.0), inverse).reshape(scores.shape)


def _running_log_sum(x: torch.Tensor, inside: torch.Tensor | None = None) -> torch.Tensor:
    """Logarithm of the running sum of exp(x) over those inside; very small where nobody is yet."""
    high = x.detach().amax(-1, keepdim=True)
    low = x.detach().amin(-1, keepdim=True)
    if (high - low).max() < kernels.SAFE_SPREAD:
        hazard = torch.exp(x - high)
        total = torch.cumsum(hazard if inside is None else torch.where(inside, hazard, 0.0), -1)
        somebody = total > 0
        nothing = -kernels.SAFE_SPREAD - 60.0  # adds nothing to a score, and its exp is a number
        return torch.where(somebody, torch.where(somebody, total, 1.0).log(), nothing) + high
    if inside is not None:  # so small that it adds nothing, and finite
        x = torch.where(inside, x, low - 1000.0)
    return torch.logcumsumexp(x, -1)


def _take(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Columns of each row by an index of shape (1 or rows, n)."""
    if len(index) == 1:
        return rows.index_select(-1, index[0])
    return rows.expand(len(index), -1).gather(-1, index)


class _LogSums(torch.autograd.Function):
    """Log-sum-exp of the scores over the members of each event's risk set; 0 where left out."""

    @staticmethod
    def forward(ctx, scores, sums):
        log_sum, *saved = sums.forward(scores)
        ctx.save_for_backward(scores)
        ctx.sums = sums
        ctx.saved = saved
        return torch.from_numpy(log_sum).reshape(scores.shape)

    @staticmethod
    def backward(ctx, upstream):
        sums = ctx.sums
        if torch.is_grad_enabled():  # second derivatives are wanted: the plain form has them
            (scores,) = ctx.saved_tensors
            if not (scores.amax(-1) - scores.amin(-1)).max() < kernels.SAFE_SPREAD:
                raise RuntimeError(
                    "second derivatives need scores that spread by less than "
                    f"{kernels.SAFE_SPREAD:g}; centre or shrink them"
                )
            return *torch.autograd.grad(
                sums.plain(scores), scores, upstream, create_graph=True
            ), None
        rows = upstream.reshape(-1, upstream.shape[-1]).contiguous().numpy()
        risk = sums.risk
        grad = kernels.sums_backward(rows, risk.order, sums.stop, risk.event, *ctx.saved)
        return torch.from_numpy(grad).reshape(upstream.shape), None


def _log_sums(scores: torch.Tensor, sums: _Sums) -> torch.Tensor:
    """Sums over risk sets, unchecked; ``scores`` in float64, on any device."""
    return _LogSums.apply(scores, sums) if scores.device.type == "cpu" else sums.plain(scores)


def _like(values: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Values of shape (1 or rows, n) on the device of the scores, in a shape that broadcasts."""
    return (values[0] if len(values) == 1 else values.reshape(scores.shape)).to(scores.device)


def _tied_deaths(risk: RiskSets) -> tuple[torch.Tensor, ...]:
    """For each patient: its block of equal times, the deaths in it, and Efron's fraction k/d.

    Of the d deaths at one time, the k-th (k = 0, 1, ...) meets a risk set from which the share k/d
    of those deaths is taken away.
    """
    so_far = np.cumsum(risk.event, -1)  # deaths up to each position
    begins = np.ones(so_far.shape, dtype=bool)
    begins[:, 1:] = risk.stop[:, 1:] != risk.stop[:, :-1]
    earlier = np.maximum.accumulate(np.where(begins, so_far - risk.event, 0), -1)
    deaths = np.maximum(np.take_along_axis(so_far, risk.stop - 1, -1) - earlier, 1)
    fraction = np.where(risk.event, (so_far - 1 - earlier) / deaths, 0.0)
    by_patient = []
    for at_position in (risk.stop - 1, deaths, fraction):
        values = np.empty_like(at_position)
        np.put_along_axis(values, risk.order, at_position, -1)
        by_patient.append(torch.from_numpy(values))
    return tuple(by_patient)


def _efron(scores: torch.Tensor, log_sum: torch.Tensor, risk: RiskSets) -> torch.Tensor:
    """What Efron adds to a risk set's log-sum: mean of log(1 - k/d * share of the tied deaths)."""
    block, deaths, fraction = (_like(values, scores) for values in _tied_deaths(risk))
    block = block.expand(scores.shape)
    died = _like(risk.died, scores)

    def block_sum(values):
        """Sum over the deaths of each patient's block."""
        return torch.zeros_like(scores).scatter_add(-1, block, values * died).gather(-1, block)

    share = block_sum(torch.exp(torch.where(died, scores - log_sum, 0.0)))
    return block_sum(torch.log1p(-fraction * share)) / deaths


def _losses(
    scores: torch.Tensor, risk: RiskSets, ties: str = "breslow", weights: np.ndarray | None = None
) -> torch.Tensor:
    """Cox losses without checks; ``scores`` in float64."""
    stop = risk.stop
    if ties == "order":  # everybody is a block of its own
        stop = np.tile(np.arange(1, stop.shape[-1] + 1), (len(stop), 1))
    died = _like(risk.died, scores)
    if weights is None:
        log_sum = _log_sums(scores, _Sums(risk, stop))
    else:
        summed, here = _weighted(scores, weights)
        log_sum = _log_sums(summed, _Sums(risk, stop, here.numpy()[None]))
        died = died & here.to(scores.device)
    if ties == "efron":
        log_sum = log_sum + _efron(scores, log_sum, risk)
    return torch.where(died, log_sum - scores, 0.0)


def _weighted(scores: torch.Tensor, weights: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores whose exponential carries the weight, and who is there: a weight of 0 is nobody."""
    weights = torch.from_numpy(weights)
    here = weights > 0
    log_weight = torch.where(here, weights, 1.0).log()
    return scores + log_weight.to(scores.device), here


def _split_losses(
    scores: torch.Tensor, risk: RiskSets, first: np.ndarray, weights: np.ndarray | None = None
) -> torch.Tensor:
    """Split losses without checks; ``scores`` in float64, ``first`` of shape (1 or rows, n)."""
    summed = scores
    died = _like(risk.died, scores)
    halves = (first, ~first)
    if weights is not None:
        summed, here = _weighted(scores, weights)
        died = died & here.to(scores.device)
        halves = (first & here.numpy(), ~first & here.numpy())
    sums = [_log_sums(summed, _Sums(risk, risk.stop, half, others=True)) for half in halves]
    # each is 0 for the events of its own half, so that the sum is that over the other half
    others = sums[0] + sums[1]
    others = torch.maximum(others, scores.detach() - 300.0)  # adds nothing, and is finite
    return torch.where(died, torch.logaddexp(scores, others) - scores, 0.0)


def _prepare(scores, time, event, name: str = "scores") -> tuple[torch.Tensor, RiskSets]:
    """Check scores against outcomes; return both in the form the functions above take."""
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


def cox_losses(scores, time, event=None, *, ties: str = "breslow", weights=None) -> torch.Tensor:
    r"""Cox loss of every patient, the paper's equation (3); 0 where censored.

    .. math:: \ell_i = -\delta_i \Big[f_i - \log \sum_{j: Y_j \ge Y_i} w_j e^{f_j}\Big]

    Parameters
    ----------
    scores : tensor of shape (..., n)
        Scores :math:`f(x_i; \theta)`; leading dimensions are a stack of models.
    time, event : arrays of shape (n,) or the shape of ``scores``
        Observed times and event indicators; or the prepared :func:`risk_sets` as ``time`` alone.
    ties : {"breslow", "efron", "order"}
        Breslow: the formula above. Efron: tied events share the mean of their terms, so that the
        sum is Efron's likelihood (JASA, 1977). Order: patients with equal times leave the risk set
        one by one, in the given row order.
    weights : array of shape (n,), optional
        Case weights :math:`w_j \ge 0`, with Breslow's ties only. They enter the sums over risk
        sets; each patient's loss is its own, once. Whole numbers stand for repeated rows, and a
        patient of weight 0 is absent, with loss 0.

    Returns
    -------
    tensor of shape (..., n)
        In the dtype and on the device of ``scores``, which must know float64; twice differentiable
        by ``torch.autograd``.

    Examples
    --------
    >>> cox_losses(torch.zeros(3), [3.0, 2.0, 1.0], [1, 0, 1]).exp()
    tensor([1., 1., 3.])
    """
    _checks.one_of(ties, "ties", TIES)
    scores, risk = _prepare(scores, time, event)
    if weights is not None:
        if ties != "breslow":
            raise ValueError(
                f"weights need ties='breslow', not {ties!r}: only there do whole "
                "numbers equal repeated rows; leave weights out or change ties"
            )
        weights = _checks.weights(weights, scores.shape[-1])
    return _losses(scores.double(), risk, ties, weights).to(scores.dtype)


def split_cox_losses(scores, time, event=None, first=None, *, weights=None) -> torch.Tensor:
    r"""Split Cox loss of every patient, the paper's equation (8), both directions at once.

    .. math:: \tilde\ell_i = -\delta_i \Big[f_i - \log\Big(e^{f_i} +
              \sum_{j \in D',\, Y_j \ge Y_i} w_j e^{f_j}\Big)\Big]

    with :math:`D' = D_2` for patients of :math:`D_1`, and the reverse.

    Parameters
    ----------
    scores, time, event
        As in :func:`cox_losses`; with prepared risk sets, ``split_cox_losses(scores, risk,
        first=first)``.
    first : bool array of shape (n,) or the shape of ``scores``
        True for the patients of :math:`D_1`.
    weights : array of shape (n,), optional
        Case weights of the patients in the sum; a patient of weight 0 is absent, with loss 0.

    Returns
    -------
    tensor of shape (..., n)

    Examples
    --------
    >>> split_cox_losses(torch.zeros(3), [3.0, 2.0, 1.0], [1, 1, 1], [True, False, True]).exp()
    tensor([1., 2., 2.])
    """
    scores, risk = _prepare(scores, time, event)
    first = _checks.array(False if first is None else first)
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
    if weights is not None:
        weights = _checks.weights(weights, scores.shape[-1])
    return _split_losses(scores.double(), risk, first, weights).to(scores.dtype)


def breslow_survival(train_scores, time, event, scores, times) -> torch.Tensor:
    r"""Survival probabilities by Breslow's baseline (the paper's Appendix A).

    .. math:: \hat H_0(t) = \sum_{i: \delta_i = 1,\, Y_i \le t} \frac{1}{\sum_{j \in R_i} e^{f_j}},
              \qquad \hat S(t \mid x) = \exp\big(-\hat H_0(t)\, e^{f(x)}\big),

    computed with logarithms throughout, so that large scores neither overflow nor vanish.

    Parameters
    ----------
    train_scores : tensor of shape (..., n)
        Scores of the patients who carry the baseline.
    time, event : arrays of shape (n,)
        Their outcomes; or their :func:`risk_sets` and None.
    scores : tensor of shape (..., m)
        Scores of the patients to predict.
    times : array of shape (k,)

    Returns
    -------
    tensor of shape (..., m, k)
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
    log_sum = _log_sums(train_scores.double(), _Sums(risk, risk.stop))
    at = np.flatnonzero(risk.event[0])[::-1]  # earliest event first
    steps = _running_log_sum(-log_sum[..., torch.from_numpy(risk.order[0][at])])
    log_baseline = torch.cat([torch.full_like(steps[..., :1], -torch.inf), steps], -1)
    happened = torch.searchsorted(torch.from_numpy(risk.time[0][at]), times, right=True)
    log_hazard = scores.double()[..., :, None] + log_baseline[..., happened][..., None, :]
    kept = torch.promote_types(train_scores.dtype, scores.dtype)
    return torch.exp(-torch.exp(log_hazard)).to(kept)
