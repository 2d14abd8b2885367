"""Small cells that must not be shown, and others from which they could be worked out.

A group is small if it has fewer patients, events or patients without an event than allowed. Counts
add up in many ways: those of an attribute's groups to everybody's, those of intersections to a
group's, and one group may lie inside another. Every count that is shown is a sum over the smallest
cells, the intersections of all attributes. The largest count of a cell that agrees with all of
these sums is the maximum of a linear program. If it is below the number allowed, a reader knows
that the cell is small, and the smallest group among the sums that bind the maximum is hidden, too.
In the end groups that were hidden without need are shown again.

As far as a reader can tell, each cell may then have as many events as required, and as many
patients without an event. So no small count can be worked out, neither of a cell nor of several
cells together: none of these has more than all of them.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from drocox.auditing.groupings import Grouping
from drocox.heldout import HeldOut

ROUNDING = 1e-6  # of the solutions of linear programs


class Hidden(NamedTuple):
    """Attributes and labels of the groups that are not shown."""

    groups: frozenset[tuple[str, str]] = frozenset()
    at_horizon: frozenset[tuple[str, str]] = frozenset()  # too few events up to then
    decisions: bool = False  # whether decisions of groups are not shown

    def of(self, whole_follow_up: bool) -> frozenset[tuple[str, str]]:
        """The groups for which a measure is not shown.

        Any measure may tell the number of events up to the horizon, unless it is known to be of the
        ``whole_follow_up``.
        """
        return self.groups if whole_follow_up else self.at_horizon


def small_counts(patients, events, smallest: int):
    """Whether groups have fewer patients, events or patients without an event than allowed."""
    return np.minimum(events, patients - events) < smallest


def count_text(count: int, smallest: int) -> str:
    """A number of patients in words, which do not tell a small one."""
    return f"fewer than {smallest}" if 0 < count < smallest else f"{count:,}"


def hidden_groups(
    groupings: list[Grouping], event: np.ndarray, smallest: int
) -> tuple[frozenset[tuple[str, str]], int]:
    """The groups that are not shown, and how many of them are not small themselves.

    Everybody is always shown.
    """
    if not smallest:
        return frozenset(), 0
    names = [(grouping.attribute, label) for grouping in groupings for label in grouping.labels]
    attributes = [grouping.codes for grouping in groupings if grouping.compared]
    cell = np.unique(np.column_stack(attributes), axis=0, return_inverse=True)[1].ravel()
    parts = [pd.crosstab(grouping.codes, cell) > 0 for grouping in groupings]
    rows = np.vstack(parts).astype(float)  # which cells each group consists of
    kinds = [np.bincount(cell, event), np.bincount(cell, ~event)]
    patients = rows @ sum(kinds)
    whole = rows.sum(axis=1) == rows.shape[1]  # everybody
    small = small_counts(patients, rows @ kinds[0], smallest) & ~whole

    shown = ~small
    while (bound := _binding_sums(rows, shown, kinds, smallest)) is not None:
        bound = bound[~whole[bound]]
        if not len(bound):  # everybody is small
            break
        shown[bound[np.argmin(patients[bound])]] = False
    for k in np.argsort(-patients, kind="stable"):
        if not shown[k] and not small[k]:
            shown[k] = True
            shown[k] = _binding_sums(rows, shown, kinds, smallest) is None
    others = int((~shown & ~small).sum())
    return frozenset(names[k] for k in np.flatnonzero(~shown)), others


def hidden_at_horizon(
    groupings: list[Grouping], early: np.ndarray, smallest: int, hidden: frozenset[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """The groups whose measures at the horizon are not shown; ``early``: an event up to then.

    The observed risk times the number of patients is the number of these events.
    """
    if small_counts(len(early), early.sum(), smallest):
        return frozenset((one.attribute, label) for one in groupings for label in one.labels)
    return hidden | hidden_groups(groupings, early, smallest)[0]


def _binding_sums(
    rows: np.ndarray, shown: np.ndarray, kinds: list[np.ndarray], smallest: int
) -> np.ndarray | None:
    """Shown groups whose counts together say that some cell is small; None if no counts do."""
    from scipy.optimize import linprog  # here: it loads slowly, and few audits need it

    sums = rows[shown]
    for counts in kinds:
        totals = sums @ counts
        unclear = np.flatnonzero(counts < smallest)
        while len(unclear):
            # lift as many of these cells as possible to the smallest count allowed
            ends = [(0, smallest)] * len(unclear) + [(0, None)] * len(counts)
            gain = -np.repeat([1.0, 0.0], [len(unclear), len(counts)])
            twice = np.hstack([sums[:, unclear], sums])
            found = linprog(gain, A_eq=twice, b_eq=totals, bounds=ends)
            lifted = found.x[: len(unclear)] > smallest - ROUNDING
            if not lifted.any():  # but perhaps one at a time
                first = -np.eye(len(counts))[unclear[0]]
                found = linprog(first, A_eq=sums, b_eq=totals)
                if -found.fun < smallest - ROUNDING:
                    binds = np.abs(found.eqlin.marginals) > ROUNDING
                    return np.flatnonzero(shown)[binds]
                lifted[0] = True
            unclear = unclear[~lifted]
    return None


def small_decisions(patients: HeldOut, groupings: list[Grouping], smallest: int) -> bool:
    """Whether decisions would tell of a small number of patients.

    Shares of flagged patients and their risks tell numbers of flagged and other patients with and
    without an event up to the horizon. All sums and differences of groups are safe if these
    numbers are large enough in each intersection of all attributes.
    """
    codes = np.column_stack([grouping.codes for grouping in groupings])
    cell = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    flagged, early = patients.flags, patients.event_by_horizon
    cells = cell.max() + 1
    for part in (flagged, ~flagged):
        everybody = np.bincount(cell[part], minlength=cells)
        events = np.bincount(cell[part], early[part], minlength=cells)
        if small_counts(everybody, events, smallest).any():
            return True
    return False
