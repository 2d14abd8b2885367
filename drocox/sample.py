"""The patients an estimator is given: outcomes read from ``y``, risk sets and losses, two halves.

A survival array ``y`` has two fields, event and time. Delayed entry and competing risks have no
place in it and are refused with what to use instead.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sksurv.util import Surv, check_array_survival

from drocox import _checks
from drocox.cox import RiskSets, cox_losses, risk_sets, split_cox_losses


@dataclass(frozen=True)
class Sample:
    """Training patients; arrays of n rows."""

    X: np.ndarray
    time: np.ndarray
    event: np.ndarray
    weights: np.ndarray
    strata: np.ndarray | None = None  # codes
    first: np.ndarray | None = None  # of a split

    @cached_property
    def risk(self) -> RiskSets:
        """Their risk sets."""
        return risk_sets(self.time, self.event, strata=self.strata)

    @property
    def y(self) -> np.ndarray:
        """Events and times, as scikit-survival has them."""
        return Surv.from_arrays(self.event, self.time)

    @property
    def masses(self) -> np.ndarray:
        """Case weights in each part whose risks are added: everybody, or the two halves."""
        if self.first is None:
            return self.weights[None]
        return np.stack([self.first, ~self.first]).astype(float)

    def rows(self, rows: np.ndarray) -> "Sample":
        """Some patients, or all in another order.

        Parameters
        ----------
        rows : array
            Positions, or a mask.

        Returns
        -------
        Sample
        """
        return Sample(
            self.X[rows],
            self.time[rows],
            self.event[rows],
            self.weights[rows],
            None if self.strata is None else self.strata[rows],
            None if self.first is None else self.first[rows],
        )

    def losses(self, scores: torch.Tensor) -> torch.Tensor:
        """Cox losses, or split ones.

        Parameters
        ----------
        scores : tensor of shape (n,)

        Returns
        -------
        tensor of shape (n,)
        """
        if self.first is not None:
            return split_cox_losses(scores, self.risk, first=self.first)
        return cox_losses(scores, self.risk, weights=self.weights)


def outcomes_of(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and events of ``y``, as many as rows of ``X``.

    Parameters
    ----------
    X : array of n rows
    y : structured array of shape (n,)
        Events and times, as ``sksurv.util.Surv`` makes it.

    Returns
    -------
    time, event : arrays of shape (n,)
    """
    _refuse_other_designs(y)
    try:
        event, time = check_array_survival(X, y, allow_all_censored=True)
    except ValueError as error:
        remedy = "use sksurv.util.Surv.from_arrays(event, time), a time >= 0 for each row of X"
        raise ValueError(f"y is refused: {str(error).rstrip('.')}; {remedy}") from error
    return _checks.outcomes(time, event, ("time in y", "event in y"))


def _refuse_other_designs(y) -> None:
    """Delayed entry and competing risks have no place in the two fields of ``y``."""
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if fields is None:
        return
    if len(fields) > 2:
        raise ValueError(
            f"y has {len(fields)} fields ({', '.join(fields)}), not event and time alone: for "
            "delayed entry use lifelines' CoxPHFitter.fit(..., entry_col=...), for competing risks "
            "make other causes censored, Surv.from_arrays(cause == 1, time)"
        )
    codes = y[fields[0]]
    if codes.dtype.kind in "iuf" and not np.isin(codes, (0, 1)).all():
        raise ValueError(
            f"{fields[0]} in y holds codes other than 0 and 1: with competing risks, model the "
            "hazard of one cause, others censored, Surv.from_arrays(cause == 1, time); for "
            "cumulative incidences use sksurv.nonparametric.cumulative_incidence_competing_risks"
        )


def random_half(event: np.ndarray, seed: int) -> np.ndarray:
    """Mask of D1, a random half, stratified by event where there are enough of both kinds.

    Parameters
    ----------
    event : bool array of shape (n,)
    seed : int

    Returns
    -------
    bool array of shape (n,)
    """
    strata = event if min(event.sum(), (~event).sum()) > 1 else None
    rows = np.arange(len(event))
    chosen, _ = train_test_split(rows, test_size=0.5, stratify=strata, random_state=seed)
    first = np.isin(rows, chosen)
    if not event[first].any() or not event[~first].any():
        raise ValueError("split=True needs an event in each half; pass more, or split=False")
    return first
