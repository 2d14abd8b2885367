r"""Decisions at a threshold of the predicted risk, under censoring, with and without each patient.

Patients whose predicted risk up to the horizon is at least p are flagged. Of a group, a share q is
flagged; :math:`R_1` and :math:`R_0` are Kaplan and Meier's risks up to the horizon of the flagged
and of the other patients. So of all patients the shares

.. math:: \mathrm{TP} = q R_1 , \qquad \mathrm{FP} = q\,(1 - R_1) , \qquad
          \mathrm{FN} = (1 - q) R_0 , \qquad \mathrm{TN} = (1 - q)(1 - R_0)

are true and false positives and negatives, and

.. math:: \text{sensitivity} = \frac{\mathrm{TP}}{\mathrm{TP} + \mathrm{FN}} , \qquad
          \text{specificity} = \frac{\mathrm{TN}}{\mathrm{TN} + \mathrm{FP}} , \qquad
          \mathrm{PPV} = R_1 , \qquad
          \text{net benefit} = \mathrm{TP} - \frac{p}{1 - p}\, \mathrm{FP} .

Censoring must be random among the flagged patients and among the others only. The net benefit is
that of the package dcurves.
"""

from typing import NamedTuple

import numpy as np

from drocox.heldout.horizon import observed_risk


class Shares(NamedTuple):
    """Shares of the patients; each array has the estimate first, then those without each."""

    true_positive: np.ndarray
    false_positive: np.ndarray
    false_negative: np.ndarray
    true_negative: np.ndarray


def shares(flagged: np.ndarray, time: np.ndarray, event: np.ndarray, horizon: float) -> Shares:
    """True and false positives and negatives, as shares of all patients.

    NaN if the risk of flagged or of other patients is unknown; 0 if there are none of them.
    """
    n = len(flagged)
    everybody = np.append(n, np.full(n, max(n - 1, 1)))
    out = []
    for part in (flagged, ~flagged):
        risk = np.zeros(n + 1)
        if part.any():
            value, without = _risk(time[part], event[part], horizon)
            risk[:] = value
            risk[1:][part] = without
        size = part.sum() - np.append(0, part)
        with_event = np.where(size > 0, size * risk, 0.0)
        out += [with_event / everybody, (size - with_event) / everybody]
    return Shares(*out)


def _risk(time: np.ndarray, event: np.ndarray, horizon: float) -> tuple[float, np.ndarray]:
    """Observed risk with its leave-one-out values, also after the last patient has died.

    Flagged patients may all die before the horizon; their risk stays 1.
    """
    until = min(horizon, time.max())
    if not _is_known(time, event, horizon):
        return np.nan, np.full(len(time), np.nan)
    value, without = observed_risk(time, event, until)
    last = time >= until
    if last.sum() == 1 and len(time) > 1 and not _is_known(time[~last], event[~last], horizon):
        without = np.where(last, np.nan, without)
    return value, without


def _is_known(time: np.ndarray, event: np.ndarray, horizon: float) -> bool:
    """Whether somebody is observed up to the horizon, or all who were observed last died."""
    return bool(time.max() >= horizon or event[time == time.max()].all())
