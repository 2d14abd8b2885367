r"""Cox losses: one loss per patient, from one pass over the patients in time order.

The paper's equation (3), with risk set :math:`R_i = \{j : Y_j \ge Y_i\}`, and its split form (8),
which compares patient :math:`i` with itself and with the patients of the *other* half only:

.. math:: \ell_i = -\delta_i \Big[f_i - \log \sum_{j \in R_i} w_j e^{f_j}\Big], \quad \tilde\ell_i =
          -\delta_i \Big[f_i - \log\Big(e^{f_i} + \sum_{j \in D' \cap R_i} w_j e^{f_j}\Big)\Big],

with case weights :math:`w_j = 1` unless given. Latest patients first, a risk set is a prefix, so
every sum is a value of one running sum: linear time, no matrix. Hazards are relative to the
largest; where scores spread so far that they could vanish, torch's running log-sum takes over.
"""

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
    copies: dict = field(default_factory=dict, repr=False, compare=False)  # see on()

    def on(self, device: torch.device) -> tuple[torch.Tensor, ...]:
        """The arrays as tensors on a device, made once.

        Parameters
        ----------
        device : torch.device

        Returns
        -------
        tuple of tensors
            ``order``, ``stop`` and ``event``.
        """
        if device not in self.copies:
            arrays = (self.order, self.stop, self.event)
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
    order = np.argsort(-time.reshape(-1, n), axis=-1, kind="stable")
    time, event = (np.take_along_axis(a.reshape(-1, n), order, -1) for a in (time, event))
    # the last position of each block of equal times knows where the block stops; earlier positions
    # take the nearest such stop to their right
    last = np.diff(time, axis=-1, append=-1.0) != 0
    stop = np.where(last, np.arange(1, n + 1), n)
    stop = np.minimum.accumulate(stop[:, ::-1], axis=-1)[:, ::-1].copy()
    return RiskSets(order, stop, event, time)


def _take(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Columns of each row by an index; both of shape (1 or rows, n)."""
    return torch.take_along_dim(rows, index, -1)


def _sums(values, stop, first=None, running=torch.cumsum, nothing=0.0) -> torch.Tensor:
    """Running sum up to each patient's ``stop``, or what of it is in the other half.

    ``nothing`` is what adds nothing to that kind of running sum.
    """
    if first is None:
        return _take(running(values, -1), stop - 1)
    own = [running(torch.where(half, values, nothing), -1) for half in (first, ~first)]
    return torch.where(first, _take(own[1], stop - 1), _take(own[0], stop - 1))


def _refuse_second_derivatives(upstream: torch.Tensor) -> None:
    """Hook of a gradient that torch cannot differentiate again without NaN."""
    if torch.is_grad_enabled():
        apart = f"{kernels.SAFE_SPREAD:g} or more apart"
        raise RuntimeError(f"no second derivatives of scores {apart}; centre or shrink them")


def _efron(x: torch.Tensor, log_sum: torch.Tensor, stop, died) -> torch.Tensor:
    """What Efron adds to a risk set's log-sum: mean of log(1 - k/d * share of the tied deaths).

    Of the d deaths at one time, the k-th (k = 0, 1, ...) meets a risk set from which the share k/d
    of those deaths is taken away.
    """
    block = (stop - 1).expand(x.shape)
    so_far = died.cumsum(-1)
    k = (_take(so_far, stop - 1) - so_far) * died  # which of them is which does not matter

    def block_sum(values):
        """Sum over the deaths of each patient's block."""
        return torch.zeros_like(x).scatter_add(-1, block, values * died).gather(-1, block)

    deaths = block_sum(torch.ones_like(x)).clamp(min=1)
    share = block_sum(torch.exp(torch.where(died, x - log_sum, 0.0)))
    return block_sum(torch.log1p(-k / deaths * share)) / deaths


def _losses(
    scores: torch.Tensor, risk: RiskSets, ties="breslow", weights=None, first=None, through=True
) -> torch.Tensor:
    """Cox losses, or split ones if ``first`` (1 or rows, n) is given, unchecked; float64.

    ``through`` says whether the logarithm of a sum passes a gradient.
    """
    n = scores.shape[-1]
    order, stop, died = risk.on(scores.device)
    if ties == "order":  # everybody is a block of its own
        stop = torch.arange(1, n + 1, device=scores.device)[None]
    x = _take(scores.reshape(-1, n), order)  # latest first from here on
    high = x.detach().amax(-1, keepdim=True)
    spread = (high - x.detach()).amax()
    if weights is not None:
        mass = _take(torch.from_numpy(weights).to(x)[None], order)
        died = died & (mass > 0)  # a weight of 0 is nobody
        spread = spread + np.abs(np.log(weights[weights > 0])).max()
    if first is not None:
        first = _take(torch.from_numpy(first).to(x.device), order)
    if spread < kernels.SAFE_SPREAD:
        x = x - high  # a constant changes no loss
        hazard = x.exp()
        total = _sums(hazard if weights is None else hazard * mass, stop, first)
        if first is not None:
            total = total + hazard
        log_sum = torch.where(died, total, 1.0).log()
    else:
        nothing = x.detach().amin() - spread - 1000.0
        summed = x if weights is None else torch.where(mass > 0, x + mass.log(), nothing)
        log_sum = _sums(summed, stop, first, torch.logcumsumexp, nothing)
        if first is not None:
            log_sum = torch.logaddexp(x, log_sum)
        if log_sum.requires_grad:
            log_sum.register_hook(_refuse_second_derivatives)
    if ties == "efron":
        log_sum = log_sum + _efron(x, log_sum, stop, died)
    losses = torch.where(died, (log_sum if through else log_sum.detach()) - x, 0.0)
    return torch.empty_like(x).scatter(-1, order.expand_as(x), losses).reshape(scores.shape)


def _prepared(time, event) -> RiskSets:
    """Risk sets of outcomes, or those given as ``time``."""
    if isinstance(time, RiskSets) == (event is not None):
        raise TypeError("event: pass either time and event, or risk_sets(time, event) alone")
    return time if event is None else risk_sets(time, event)


def _prepare(scores, time, event, name: str = "scores") -> tuple[torch.Tensor, RiskSets]:
    """Check scores against outcomes; return both in the form the functions above take."""
    scores = _checks.floats(scores, name)
    shape = tuple(scores.shape)
    n = shape[-1]
    risk = _prepared(time, event)
    given = risk.order.shape if event is None else tuple(np.shape(time))
    fitting = ((1, n), (scores.numel() // n, n)) if event is None else ((n,), shape)
    if given not in fitting:
        said = f"{name} has shape {shape}, time {given}; pass one score per patient"
        raise ValueError(f"{said}, and time of shape (n,) or of the scores' shape")
    return scores, risk


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
            raise ValueError(f"weights need ties='breslow', not {ties!r}; change one of the two")
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
    shape = tuple(scores.shape)
    if first.shape not in (shape[-1:], shape):
        raise ValueError(f"first has shape {first.shape}, not {shape}; pass one boolean per score")
    if not np.isin(first, (0, 1)).all():
        raise ValueError("first must be boolean or 0/1 (True for the patients of D1)")
    first = np.ascontiguousarray(first.reshape(-1, first.shape[-1]).astype(bool))
    if first.all(axis=-1).any() or not first.any(axis=-1).all():
        raise ValueError("first leaves one side of the split empty; put patients on both sides")
    if weights is not None:
        weights = _checks.weights(weights, scores.shape[-1])
    return _losses(scores.double(), risk, weights=weights, first=first).to(scores.dtype)


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
        said = f"scores has shape {tuple(scores.shape)}, train_scores {tuple(train_scores.shape)}"
        raise ValueError(f"{said}; pass the same stack of models")
    exact = train_scores.double()
    log_sum = _losses(exact, risk) + exact  # of the risk set, where there is an event
    at = np.flatnonzero(risk.event[0])[::-1]  # earliest event first
    steps = _running_log_sum(-log_sum[..., torch.from_numpy(risk.order[0][at])])
    log_baseline = torch.cat([torch.full_like(steps[..., :1], -torch.inf), steps], -1)
    happened = torch.searchsorted(torch.from_numpy(risk.time[0][at]), times, right=True)
    log_hazard = scores.double()[..., :, None] + log_baseline[..., happened][..., None, :]
    kept = torch.promote_types(train_scores.dtype, scores.dtype)
    return torch.exp(-torch.exp(log_hazard)).to(kept)


def _running_log_sum(x: torch.Tensor) -> torch.Tensor:
    """Logarithm of the running sum of exp(x)."""
    high = x.detach().amax(-1, keepdim=True)
    if (high - x.detach()).max() < kernels.SAFE_SPREAD:
        return torch.cumsum(torch.exp(x - high), -1).log() + high
    return torch.logcumsumexp(x, -1)
