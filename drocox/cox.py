r"""Cox losses: one loss per patient, from one pass over the patients in time order.

The paper's equation (3), with risk set :math:`R_i = \{j : Y_j \ge Y_i\}`, and its split form (8),
which compares patient :math:`i` with itself and with the patients of the *other* half only:

.. math:: \ell_i = -\delta_i \Big[f_i - \log \sum_{j \in R_i} w_j e^{f_j}\Big], \quad \tilde\ell_i =
          -\delta_i \Big[f_i - \log\Big(e^{f_i} + \sum_{j \in D' \cap R_i} w_j e^{f_j}\Big)\Big],

with case weights :math:`w_j = 1` unless given. Latest patients first, a risk set is a prefix, so
every sum is a value of one running sum: linear time, no matrix. With strata (such as sites, each
with its own baseline hazard) :math:`R_i` contains only patients of the same stratum: patients are
sorted by stratum, and the running sum restarts with each. Hazards are relative to the largest;
where scores spread so far that hazards could underflow, torch's ``logcumsumexp`` is used.
"""

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike

from drocox import _checks, kernels
from drocox.curves import stratum_of_each
from drocox.risksets import RiskSets, as_risk_sets
from drocox.risksets import risk_sets as risk_sets  # so that it can be imported from here, too

TIES = ("breslow", "efron", "order")


def _take(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Columns of each row by an index; both of shape (1 or rows, n)."""
    return torch.take_along_dim(rows, index, -1)


def _within(running, bounds: list[int]):
    """A running sum along the last dimension that restarts with each stratum."""
    if len(bounds) == 2:
        return running
    return lambda values, dim: torch.cat(
        [running(values[..., low:high], dim) for low, high in pairwise(bounds)], dim
    )


def _sums(values, stop, first=None, running=torch.cumsum, nothing=0.0) -> torch.Tensor:
    """Running sum up to each patient's ``stop``; with ``first``, over the other half only.

    ``nothing`` is the neutral element of the running sum.
    """
    if first is None:
        return _take(running(values, -1), stop - 1)
    own = [running(torch.where(half, values, nothing), -1) for half in (first, ~first)]
    return torch.where(first, _take(own[1], stop - 1), _take(own[0], stop - 1))


def _refuse_second_derivatives(upstream: torch.Tensor) -> None:
    """Hook: raise where torch's second derivative would be NaN."""
    if torch.is_grad_enabled():
        apart = f"{kernels.SAFE_SPREAD:g} or more apart"
        raise RuntimeError(f"no second derivatives of scores {apart}; centre or shrink them")


def _efron(x: torch.Tensor, log_sum: torch.Tensor, stop, died) -> torch.Tensor:
    """Efron's correction of a risk set's log-sum: mean of log(1 - k/d * share of the tied deaths).

    Of the d deaths at one time, the k-th (k = 0, 1, ...) has a risk set without the share k/d of
    those deaths.
    """
    block = (stop - 1).expand(x.shape)
    so_far = died.cumsum(-1)
    k = (_take(so_far, stop - 1) - so_far) * died  # in any order

    def block_sum(values):
        """Sum over the deaths of each patient's block."""
        return torch.zeros_like(x).scatter_add(-1, block, values * died).gather(-1, block)

    deaths = block_sum(torch.ones_like(x)).clamp(min=1)
    share = block_sum(torch.exp(torch.where(died, x - log_sum, 0.0)))
    return block_sum(torch.log1p(-k / deaths * share)) / deaths


def unchecked_losses(
    scores: torch.Tensor, risk: RiskSets, ties="breslow", weights=None, first=None, through=True
) -> torch.Tensor:
    """Cox losses (..., n), or split ones with ``first`` (True in D1); input is not checked.

    ``through=False`` detaches the logarithm of the sum, so that it passes no gradient.
    """
    n = scores.shape[-1]
    order, stop, died = risk.on(scores.device)
    bounds = risk.bounds
    if ties == "order":  # each patient is a block
        stop = torch.arange(1, n + 1, device=scores.device)[None]
    x = _take(scores.reshape(-1, n), order)  # from here on in time order, latest first
    high = x.detach().amax(-1, keepdim=True)
    spread = (high - x.detach()).amax()
    if weights is not None:
        mass = _take(torch.from_numpy(weights).to(x)[None], order)
        died = died & (mass > 0)  # rows with weight 0 are ignored
        spread = spread + np.abs(np.log(weights[weights > 0])).max()
    if first is not None:
        first = _take(torch.as_tensor(first, device=x.device), order)
    if spread < kernels.SAFE_SPREAD:
        x = x - high  # a constant changes no loss
        hazard = x.exp()
        running = _within(torch.cumsum, bounds)
        total = _sums(hazard if weights is None else hazard * mass, stop, first, running)
        if first is not None:
            total = total + hazard
        log_sum = torch.where(died, total, 1.0).log()
    else:
        nothing = x.detach().amin() - spread - 1000.0
        summed = x if weights is None else torch.where(mass > 0, x + mass.log(), nothing)
        running = _within(torch.logcumsumexp, bounds)
        log_sum = _sums(summed, stop, first, running, nothing)
        if first is not None:
            log_sum = torch.logaddexp(x, log_sum)
        if log_sum.requires_grad:
            log_sum.register_hook(_refuse_second_derivatives)
    if ties == "efron":
        log_sum = log_sum + _efron(x, log_sum, stop, died)
    losses = torch.where(died, (log_sum if through else log_sum.detach()) - x, 0.0)
    return torch.empty_like(x).scatter(-1, order.expand_as(x), losses).reshape(scores.shape)


def _prepare(scores, time, event, name: str = "scores") -> tuple[torch.Tensor, RiskSets]:
    """Check scores against outcomes; return a tensor and risk sets."""
    scores = _checks.floats(scores, name)
    shape = tuple(scores.shape)
    n = shape[-1]
    risk = as_risk_sets(time, event)
    given = risk.order.shape if event is None else tuple(np.shape(time))
    fitting = ((1, n), (scores.numel() // n, n)) if event is None else ((n,), shape)
    if given not in fitting:
        said = f"{name} has shape {shape}, time {given}; pass one score per patient"
        raise ValueError(f"{said}, and time of shape (n,) or of the scores' shape")
    return scores, risk


def cox_losses(
    scores: torch.Tensor,
    time: ArrayLike | RiskSets,
    event: ArrayLike | None = None,
    *,
    ties: str = "breslow",
    weights: ArrayLike | None = None,
) -> torch.Tensor:
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
        sum is Efron's likelihood (JASA, 1977). Order: of the patients with equal times, a
        risk set has only those up to the patient's own row, so that the last row leaves first.
    weights : array of shape (n,), optional
        Case weights :math:`w_j \ge 0`, with Breslow's ties only. They enter the sums over risk
        sets; a patient's own loss is not multiplied by its weight. Weights are counts: whole
        numbers stand for repeated rows, and rows with weight 0 are ignored and have loss 0. So
        their scale matters, as the sample size does: doubling all weights adds :math:`\log 2` to
        the loss of every event but not to the 0 of the censored, and for alpha < 1 the worst case
        then puts more weight on events. Scale weights that are not counts to mean 1; a mean of one
        half or less raises a ValueError: pass ``w / w.mean()``.

    Returns
    -------
    tensor of shape (..., n)
        In the dtype and on the device of ``scores``, which must support float64; twice
        differentiable by ``torch.autograd``.

    Examples
    --------
    >>> cox_losses(torch.zeros(3), [3.0, 2.0, 1.0], [1, 0, 1]).exp()
    tensor([1., 1., 3.])
    """
    _checks.one_of(ties, "ties", TIES)
    scores, risk = _prepare(scores, time, event)
    if weights is not None:
        if ties != "breslow":
            raise ValueError(f"weights need ties='breslow', not {ties!r}; change one of the two")
        weights = _checks.weights(weights, scores.shape[-1])
    return unchecked_losses(scores.double(), risk, ties, weights).to(scores.dtype)


def split_cox_losses(
    scores: torch.Tensor,
    time: ArrayLike | RiskSets,
    event: ArrayLike | None = None,
    first: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
) -> torch.Tensor:
    r"""Split Cox loss of every patient, the paper's equation (8), both directions at once.

    .. math:: \tilde\ell_i = -\delta_i \Big[f_i - \log\Big(e^{f_i} +
              \sum_{j \in D',\, Y_j \ge Y_i} w_j e^{f_j}\Big)\Big]

    with :math:`D' = D_2` for patients of :math:`D_1`, and the reverse.

    Parameters
    ----------
    scores, time, event
        As in :func:`cox_losses`; with prepared risk sets, ``split_cox_losses(scores, risk,
        first=first)``.
    first : bool array or tensor of shape (n,) or the shape of ``scores``
        True for the patients of :math:`D_1`. A tensor on the device of ``scores`` stays there.
    weights : array of shape (n,), optional
        Counts of patients in the sum, as in :func:`cox_losses`.

    Returns
    -------
    tensor of shape (..., n)

    Examples
    --------
    >>> split_cox_losses(torch.zeros(3), [3.0, 2.0, 1.0], [1, 1, 1], [True, False, True]).exp()
    tensor([1., 2., 2.])
    """
    scores, risk = _prepare(scores, time, event)
    first = _sides(first, scores)
    if weights is not None:
        weights = _checks.weights(weights, scores.shape[-1])
    return unchecked_losses(scores.double(), risk, weights=weights, first=first).to(scores.dtype)


def _sides(first, scores: torch.Tensor) -> torch.Tensor:
    """Check a split; return it as booleans (1 or rows, n) on the scores' device.

    A tensor that is there already is neither moved nor copied.
    """
    if not isinstance(first, torch.Tensor):
        # a copy: torch rejects negative strides
        first = torch.from_numpy(np.array(False if first is None else first))
    shape = tuple(scores.shape)
    if tuple(first.shape) not in (shape[-1:], shape):
        raise ValueError(
            f"first has shape {tuple(first.shape)}, not {shape}; pass one boolean per score"
        )
    first = first.to(scores.device)
    if first.dtype != torch.bool:
        if not ((first == 0) | (first == 1)).all():
            raise ValueError("first must be boolean or 0/1 (True for the patients of D1)")
        first = first.bool()
    first = first.reshape(-1, shape[-1])
    if (first.all(-1) | ~first.any(-1)).any():
        raise ValueError("first leaves one side of the split empty; put patients on both sides")
    return first


def breslow_survival(
    train_scores: torch.Tensor,
    time: ArrayLike | RiskSets,
    event: ArrayLike | None,
    scores: torch.Tensor,
    times: ArrayLike,
    *,
    strata: ArrayLike | None = None,
) -> torch.Tensor:
    r"""Survival probabilities by Breslow's baseline (the paper's Appendix A).

    .. math:: \hat H_0(t) = \sum_{i: \delta_i = 1,\, Y_i \le t} \frac{1}{\sum_{j \in R_i} e^{f_j}},
              \qquad \hat S(t \mid x) = \exp\big(-\hat H_0(t)\, e^{f(x)}\big),

    computed with logarithms throughout, so that large scores neither overflow nor vanish. Each
    stratum has a baseline of its own, from its own events.

    Parameters
    ----------
    train_scores : tensor of shape (..., n)
        Scores of the patients from whom the baseline is estimated.
    time, event : arrays of shape (n,)
        Their outcomes; or their :func:`risk_sets`, with or without strata, and None.
    scores : tensor of shape (..., m)
        Scores of the patients to predict.
    times : array of shape (k,)
    strata : array of shape (m,), optional
        Stratum of each patient to predict, by the labels given to :func:`risk_sets`.

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
        said = f"scores has shape {tuple(scores.shape)}, train_scores {tuple(train_scores.shape)}"
        raise ValueError(f"{said}; pass the same stack of models")
    stratum = stratum_of_each(strata, risk.labels, scores.shape[-1])
    exact = train_scores.double()
    log_sum = unchecked_losses(exact, risk) + exact  # of the risk set, where there is an event
    baseline = _log_baseline(log_sum, risk, times)
    if baseline.shape[-2] > 1:
        baseline = baseline[..., torch.from_numpy(stratum), :]
    log_hazard = scores.double()[..., :, None] + baseline
    kept = torch.promote_types(train_scores.dtype, scores.dtype)
    return torch.exp(-torch.exp(log_hazard)).to(kept)


def _log_baseline(log_sum: torch.Tensor, risk: RiskSets, times) -> torch.Tensor:
    """:func:`drocox.curves.log_baseline` of a stack (..., n): (..., strata, len(times))."""
    baselines = []
    for low, high in pairwise(risk.bounds):
        at = low + np.flatnonzero(risk.event[0, low:high])[::-1]  # earliest event first
        steps = -log_sum[..., torch.from_numpy(risk.order[0][at])]
        if len(at):
            steps = _running_log_sum(steps)
        before = torch.full_like(log_sum[..., :1], -torch.inf)
        happened = torch.searchsorted(torch.from_numpy(risk.time[0][at]), times, right=True)
        baselines.append(torch.cat([before, steps], -1)[..., happened])
    return torch.stack(baselines, -2)


def _running_log_sum(x: torch.Tensor) -> torch.Tensor:
    """Logarithm of the running sum of exp(x)."""
    high = x.detach().amax(-1, keepdim=True)
    if (high - x.detach()).max() < kernels.SAFE_SPREAD:
        return torch.cumsum(torch.exp(x - high), -1).log() + high
    return torch.logcumsumexp(x, -1)
