"""Small cells that must not be shown, and others from which they could be worked out.

A group is small if it has fewer patients, events or patients without an event than allowed. Counts
add up in many ways: those of an attribute's groups to everybody's, those of intersections to a
group's. Each count is a sum over the smallest cells, the intersections of all attributes, hence a
row of zeros and ones. A count can be worked out exactly if its row is a linear combination of rows
that are shown. Patients and events have the same rows, so that one test is enough for both. While
the row of a small group fails it, the smallest group of such a combination is hidden, too. The same
holds for all groups together that are missing from a sum: if they had no event, none of them had.
In the end, groups that were hidden without need are shown again.

What remains is what every suppressed table tells: bounds, since counts are not negative.
"""

import numpy as np

from drocox.auditing.groupings import Grouping

ROUNDING = 1e-6  # of coefficients and distances, all of which are simple fractions


def small_counts(patients: np.ndarray, events: np.ndarray, smallest: int) -> np.ndarray:
    """Whether groups have fewer patients, events or patients without an event than allowed."""
    return np.minimum(events, patients - events) < smallest


def hidden_groups(
    groupings: list[Grouping], event: np.ndarray, smallest: int
) -> tuple[frozenset[tuple[str, str]], int]:
    """The groups that are not shown, and how many of them are not small themselves."""
    if not smallest:
        return frozenset(), 0
    names = [(grouping.attribute, label) for grouping in groupings for label in grouping.labels]
    counts = _Counts(groupings, event, smallest)
    small = counts.small
    hidden = small.copy()
    secret = list(counts.rows[small])
    while leaks := counts.leaks(hidden, secret):
        secret += leaks
        parts = counts.combination(hidden, leaks[0])
        hidden[parts[np.argmin(counts.patients[parts])]] = True
    for k in np.argsort(-counts.patients):  # the largest first
        if hidden[k] and not small[k]:
            hidden[k] = False
            hidden[k] = bool(counts.leaks(hidden, secret))
    return frozenset(names[k] for k in np.flatnonzero(hidden)), int((hidden & ~small).sum())


class _Counts:
    """Patients and events of each group, and how they add up."""

    def __init__(self, groupings: list[Grouping], event: np.ndarray, smallest: int):
        attributes = [grouping.codes for grouping in groupings if grouping.compared]
        cell = np.unique(np.column_stack(attributes), axis=0, return_inverse=True)[1].ravel()
        self.smallest = smallest
        self.sums: list[tuple[int, np.ndarray]] = []  # a group and others that add up to it
        rows = []
        patients = []
        events = []
        before = 0
        for grouping in groupings:
            size = len(grouping.labels)
            inside = np.zeros((size, cell.max() + 1))
            inside[grouping.codes, cell] = 1.0
            rows.append(inside)
            patients.append(np.bincount(grouping.codes, minlength=size))
            events.append(np.bincount(grouping.codes, event, minlength=size))
            self.sums.append((0, np.arange(before, before + size)))
            before += size
        every = np.vstack(rows)
        if not groupings[-1].compared:  # intersections
            cells = self.sums[-1][1]
            for group in range(1, cells[0]):
                self.sums.append((group, cells[(every[cells] <= every[group]).all(axis=1)]))
        # shorter rows with the same linear relations
        self.rows = np.transpose(np.linalg.qr(every.T, mode="r"))
        self.patients = np.concatenate(patients)
        self.events = np.concatenate(events)
        self.small = small_counts(self.patients, self.events, smallest)
        self.small &= (every != every[0]).any(axis=1)  # everybody is always shown

    def leaks(self, hidden: np.ndarray, secret: list[np.ndarray]) -> list[np.ndarray]:
        """Rows whose counts can be worked out and must not be.

        These are secret ones, and small sums of groups that cannot be worked out one by one.
        """
        known = ~hidden | self._in_span(hidden, self.rows)
        leaks = []
        if secret:
            leaks = list(np.array(secret)[self._in_span(hidden, np.array(secret))])
        for total, parts in self.sums:
            missing = parts[~known[parts]]
            if known[total] and 0 < len(missing) < len(parts):
                counts = self.patients[missing].sum(), self.events[missing].sum()
                if small_counts(*counts, self.smallest):
                    leaks.append(self.rows[missing].sum(axis=0))
        return leaks

    def _in_span(self, hidden: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Whether rows are linear combinations of those that are shown."""
        _, sizes, axes = np.linalg.svd(self.rows[~hidden], full_matrices=False)
        axes = axes[sizes > ROUNDING]
        return np.linalg.norm(rows - rows @ axes.T @ axes, axis=1) < ROUNDING

    def combination(self, hidden: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Shown groups, but everybody, of a linear combination that gives a row."""
        shown = np.flatnonzero(~hidden)
        coefficients = np.linalg.lstsq(self.rows[shown].T, row, rcond=None)[0]
        parts = shown[np.abs(coefficients) > ROUNDING]
        return parts[parts > 0]
