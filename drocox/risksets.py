"""Risk sets: patients in time order, prepared once for losses, solver and concordance.

This module needs NumPy only, so that an audit of scores in a file starts without torch.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from drocox import _checks

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class RiskSets:
    """Patients in time order, latest first; arrays of shape (rows, n).

    With strata, patients are sorted by stratum, latest first in each. The risk set of the patient
    at position i is positions ``begin[i]`` to ``stop[i] - 1``.
    """

    order: np.ndarray  # the patient at each position; equal times keep their given order
    stop: np.ndarray  # one past the last position with the same time, and stratum
    event: np.ndarray  # events and times in this order
    time: np.ndarray
    begin: np.ndarray  # the first position of the same stratum: 0 without strata
    labels: np.ndarray | None = None  # of the strata, sorted; None without strata
    copies: dict = field(default_factory=dict, repr=False, compare=False)  # see on()

    @property
    def bounds(self) -> list[int]:
        """First position of each stratum, and n: ``[0, n]`` without strata."""
        n = self.begin.shape[-1]
        if self.begin[0, -1] == 0:
            return [0, n]
        return [*np.flatnonzero(self.begin[0] == np.arange(n)).tolist(), n]

    def on(self, device: "torch.device") -> tuple["torch.Tensor", ...]:
        """``order``, ``stop`` and ``event`` as tensors on a device; copies are kept."""
        if device not in self.copies:
            import torch  # here, because concordance does not need it

            arrays = (self.order, self.stop, self.event)
            self.copies[device] = tuple(torch.from_numpy(a).to(device) for a in arrays)
        return self.copies[device]


def risk_sets(time: ArrayLike, event: ArrayLike, *, strata: ArrayLike | None = None) -> RiskSets:
    """Prepare the time order that :func:`cox_losses` and :func:`split_cox_losses` accept.

    Parameters
    ----------
    time, event : arrays of shape (n,), or (..., n) for a stack of data sets
        Observed times and event indicators (bool or 0/1).
    strata : array of shape (n,), optional
        Label of each patient's stratum: patients are compared within their stratum only.

    Returns
    -------
    RiskSets

    Examples
    --------
    >>> r = risk_sets([5.0, 2.0, 5.0], [1, 1, 0])
    >>> r.order.tolist(), r.stop.tolist()
    ([[0, 2, 1]], [[2, 2, 3]])
    >>> r = risk_sets([5.0, 2.0, 5.0], [1, 1, 0], strata=["b", "a", "a"])
    >>> r.order.tolist(), r.begin.tolist(), r.stop.tolist()
    ([[2, 1, 0]], [[0, 0, 2]], [[1, 2, 3]])
    """
    time, event = _checks.outcomes(time, event, ndim=None)
    n = time.shape[-1]
    time = time.reshape(-1, n)
    event = event.reshape(-1, n)
    labels = None
    stratum = np.zeros(n, int)
    if strata is not None:
        labels, stratum = _checks.labels(strata, "strata", n)
        order = np.lexsort((-time, np.broadcast_to(stratum, time.shape)), axis=-1)
    else:
        order = np.argsort(-time, axis=-1, kind="stable")
    time, event, stop, begin = in_time_order(time, event, stratum, order)
    return RiskSets(order, stop, event, time, begin, labels)


def in_time_order(time, event, stratum, order) -> tuple[np.ndarray, ...]:
    """Times and events (rows, n) in an order that sorts ``stratum`` (n,), with stop and begin."""
    time = np.take_along_axis(time, order, axis=1)
    event = np.take_along_axis(event, order, axis=1)
    position = np.arange(order.shape[1])
    first = _first(time)  # whether a time begins here,
    begin = np.zeros(order.shape, int)
    if stratum.any():
        of_stratum = _first(stratum[order])  # or a stratum
        first |= of_stratum
        begin = np.maximum.accumulate(np.where(of_stratum, position, 0), axis=1)
    stop = np.full(order.shape, len(position))
    np.copyto(stop[:, :-1], position[1:], where=first[:, 1:])
    back = stop[:, ::-1]
    np.minimum.accumulate(back, axis=1, out=back)
    return time, event, stop, begin


def _first(values) -> np.ndarray:
    """Whether each value differs from the one before it in its row."""
    first = np.ones(values.shape, bool)
    np.not_equal(values[:, 1:], values[:, :-1], out=first[:, 1:])
    return first


def as_risk_sets(time, event) -> RiskSets:
    """Risk sets of ``time`` and ``event``; risk sets passed as ``time`` are returned unchanged."""
    if isinstance(time, RiskSets) == (event is not None):
        raise TypeError("event: pass either time and event, or risk_sets(time, event) alone")
    return time if event is None else risk_sets(time, event)
