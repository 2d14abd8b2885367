"""Small cells that must not be printed, and others from which they could be worked out.

A group is small if it has fewer patients, events or patients without an event than allowed. Counts
add up in many ways: those of an attribute's groups to everybody's, those of intersections to a
group's. Each count is a sum over the smallest cells, the intersections of all attributes, hence a
row of zeros and ones. A small group's count can be worked out exactly if its row is a linear
combination of rows that are shown. Patients and events have the same rows, so that one test is
enough for both. While a small group fails it, the smallest group of such a combination is hidden,
too; in the end, those are shown again that were hidden without need.

What remains is what every suppressed table tells: bounds, since counts are not negative.
"""

import numpy as np

from drocox.auditing.families import Family

ROUNDING = 1e-6  # of coefficients and distances, all of which are simple fractions


def small_counts(patients: np.ndarray, events: np.ndarray, smallest: int) -> np.ndarray:
    """Whether groups have fewer patients, events or patients without an event than allowed.

    Parameters
    ----------
    patients, events : arrays of shape (k,)
    smallest : int

    Returns
    -------
    bool array of shape (k,)
    """
    return np.minimum(events, patients - events) < smallest


def hidden_groups(
    kinds: list[Family], event: np.ndarray, smallest: int
) -> tuple[frozenset[tuple[str, str]], int]:
    """Groups that are not shown.

    Parameters
    ----------
    kinds : list of Family
        Everybody first, then the attributes, then their intersections, if there are any.
    event : bool array of shape (n,)
    smallest : int
        Number of patients that may be shown; 0 shows all.

    Returns
    -------
    hidden, others : set of (attribute, label), int
        And how many of them are not small themselves.
    """
    names = [(family.attribute, label) for family in kinds for label in family.labels]
    rows, patients, events = _counts(kinds, event)
    small = small_counts(patients, events, smallest)
    small[0] = False  # everybody
    hidden = small.copy()
    if not small.any():
        return frozenset(), 0
    # a group that holds everybody cannot be told from everybody
    secret = small & (rows != rows[0]).any(axis=1)
    # shorter rows with the same linear relations
    rows = np.transpose(np.linalg.qr(rows.T, mode="r"))
    while (known := secret & _can_be_worked_out(rows, hidden)).any():
        parts = _combination(rows, hidden, rows[np.argmax(known)])
        hidden[parts[np.argmin(patients[parts])]] = True
    for k in np.argsort(-patients):  # the largest first
        if hidden[k] and not small[k]:
            hidden[k] = False
            hidden[k] = (secret & _can_be_worked_out(rows, hidden)).any()
    return frozenset(names[k] for k in np.flatnonzero(hidden)), int((hidden & ~small).sum())


def _counts(kinds: list[Family], event: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each group, which of the smallest cells it is made of, its patients and its events."""
    attributes = [family.codes for family in kinds if family.compared]
    cell = np.unique(np.column_stack(attributes), axis=0, return_inverse=True)[1].ravel()
    rows = []
    patients = []
    events = []
    for family in kinds:
        inside = np.zeros((len(family.labels), cell.max() + 1))
        inside[family.codes, cell] = 1.0
        rows.append(inside)
        patients.append(np.bincount(family.codes, minlength=len(family.labels)))
        events.append(np.bincount(family.codes, event, minlength=len(family.labels)))
    return np.vstack(rows), np.concatenate(patients), np.concatenate(events)


def _can_be_worked_out(rows: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Whether each row is a linear combination of those that are shown."""
    _, sizes, axes = np.linalg.svd(rows[~hidden], full_matrices=False)
    axes = axes[sizes > ROUNDING]
    apart = rows - rows @ axes.T @ axes
    return np.linalg.norm(apart, axis=1) < ROUNDING


def _combination(rows: np.ndarray, hidden: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The shown rows, but everybody's, of a linear combination that gives a row."""
    shown = np.flatnonzero(~hidden)
    coefficients = np.linalg.lstsq(rows[shown].T, row, rcond=None)[0]
    parts = shown[np.abs(coefficients) > ROUNDING]
    return parts[parts > 0]
