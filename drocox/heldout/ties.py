r"""Coarse times: which c-index exact times could have given.

Two patients with the event in the same year have no known order, and Harrell's c-index leaves the
pair out. With exact times it would count, and its order would be nearly random: events that are
close in time follow each other by chance, whatever the scores. So coarse times raise the c-index,
by :math:`s\,(c - \tfrac12)` to first order if a share s of the pairs is tied, and most in groups
whose events come fast. An event and a censoring in the same year count as a pair in which the event
came first, although it may have come later; this lowers the c-index. Neither has to do with
the model. The c-index of exact times lies between two values that can be computed:

.. math:: \frac{\sum_{\text{pairs}} \text{points} + \tfrac12 \, \#\text{tied events}}
          {\#\text{pairs} + \#\text{tied events}} \;\le\; c_{\text{exact}} \;\le\;
          c \text{ of the pairs with different times} ,

below if tied events are ranked no worse than by chance, and above if patients tied in time are
ranked no better than others. The calibration slope falls, too, by about 0.02 if one pair in a
hundred is tied, and no such limits of it are known.
"""

import numpy as np

from drocox.heldout.estimates import HeldOut

MANY_TIED = 0.01  # share of pairs with tied events that puts a slope off by some hundredths


def tied_events(patients: HeldOut) -> float:
    """Number of pairs of a fold in which both patients have the event at the same time."""
    distinct, rank = np.unique(patients.time[patients.event], return_inverse=True)
    deaths = np.bincount(patients.fold[patients.event] * len(distinct) + rank)
    return float((deaths * (deaths - 1)).sum() / 2)


def many_tied(patients: HeldOut) -> bool:
    """Whether so many events are tied that the slope says more about the times than the model."""
    tied = tied_events(patients)
    return tied > 0 and tied >= MANY_TIED * (patients.harrell_pairs[:, 1].sum() / 2 + tied)


def c_index_slack(patients: HeldOut) -> tuple[float, float]:
    """By how much exact times could lower and raise the c-index."""
    low, high = c_index_limits(patients)
    value = patients.c_index(np.full(len(patients.time), True)).value
    return max(value - low, 0.0), max(high - value, 0.0)


def c_index_limits(patients: HeldOut) -> tuple[float, float]:
    """The values between which the c-index would lie if times were exact."""
    tied = tied_events(patients)
    points, pairs = patients.harrell_pairs.sum(axis=0) / 2
    if len(np.unique(patients.time)) == len(patients.time):
        return points / pairs, points / pairs
    # a censoring before the events of its time makes no pair with them
    rank = np.unique(patients.time, return_inverse=True)[1]
    apart = HeldOut(patients.scores, 2.0 * rank + patients.event, patients.event, patients.fold)
    high = apart.c_index(np.full(len(rank), True)).value
    return (points + tied / 2) / (pairs + tied), high if np.isfinite(high) else 1.0
