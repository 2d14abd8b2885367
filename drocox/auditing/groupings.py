"""Groups of patients by the attributes of a data set, and intersections of all attributes."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from drocox.data import SurvivalData
from drocox.heldout import HeldOut

MOST_CELLS = 64  # intersections of groups that are judged
EVERYBODY = "everybody"
NO_LABELS = ("", "-", "?", "<na>", "n/a", "na", "nan", "none", "null")  # in small letters


class Group(NamedTuple):
    """A group: its members among all patients, and the same patients alone."""

    label: str
    members: np.ndarray
    alone: HeldOut


class Grouping(NamedTuple):
    """Groups of one attribute, or intersections of several: each patient is in one of them."""

    attribute: str
    labels: list[str]
    codes: np.ndarray
    compared: bool  # whether these are the groups of one attribute, which are compared
    short: list[str]  # labels; of intersections without the names of attributes

    def groups(self, patients: HeldOut) -> list[Group]:
        """The groups, in the order of their codes."""
        groups = []
        for code, label in enumerate(self.labels):
            members = self.codes == code
            groups.append(Group(label, members, patients.alone(members)))
        return groups


def groupings_of(data: SurvivalData) -> tuple[list[Grouping], list[str]]:
    """Everybody, the groups of each attribute, the intersections of all attributes, and notes.

    Intersections are left out where there are too many, and a note says so.
    """
    out = [Grouping("", [EVERYBODY], np.zeros(len(data), int), False, [EVERYBODY])]
    notes: list[str] = []
    for name, codes in data.groups.items():
        present, where = np.unique(codes, return_inverse=True)
        labels = [data.group_labels[name][code] for code in present]
        if EVERYBODY in labels:
            raise ValueError(
                f"group_labels[{name!r}] holds {EVERYBODY!r}, the name of all patients; choose "
                "another label"
            )
        notes += _doubtful(name, labels)
        out.append(Grouping(name, labels, where, True, labels))
    if len(data.groups) < 2:
        return out, notes
    matrix = np.column_stack(list(data.groups.values()))
    where = pd.DataFrame(matrix).groupby(list(range(matrix.shape[1]))).ngroup().to_numpy()
    cells = matrix[np.unique(where, return_index=True)[1]]
    if len(cells) > MOST_CELLS:
        words = f"The {len(cells)} intersections of {len(data.groups)} attributes are not judged"
        return out, [*notes, f"{words}; judge fewer attributes together."]
    labels, short = [], []
    for cell in cells:
        named = {a: data.group_labels[a][c] for a, c in zip(data.groups, cell, strict=True)}
        labels.append(", ".join(named.values()))
        short.append(", ".join(label.removeprefix(f"{a} = ") for a, label in named.items()))
    if doubled := [label for label in labels if labels.count(label) > 1]:
        raise ValueError(
            f"group_labels: two intersections would be called {doubled[0]!r}; leave commas out of "
            "the labels"
        )
    out.append(Grouping(" × ".join(data.groups), labels, where, False, short))
    return out, notes


def _doubtful(attribute: str, labels: list[str]) -> list[str]:
    """Notes on labels that may be one group, or none."""
    notes = []
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(label.casefold(), []).append(label)
        if label.removeprefix(f"{attribute} = ").strip().casefold() in NO_LABELS:
            notes.append(f"{label!r} looks like a missing label; it is judged as a group.")
    for same in alike.values():
        if len(same) > 1:
            notes.append(
                f"{' and '.join(same)} differ in capital letters only; they are judged as "
                f"{len(same)} groups."
            )
    return notes
