"""Small cells that must not be printed, and others from which they could be worked out.

A group is hidden if it has fewer patients, events or patients without an event than allowed. Counts
add up: those of an attribute's groups to everybody's, those of intersections to a group's. Where
one count of such a sum is missing it could be worked out, so the smallest of the others is hidden,
too, until every sum lacks none or at least two.
"""

import numpy as np

from drocox.auditing.families import Family


def hidden_groups(
    kinds: list[Family], event: np.ndarray, smallest: int
) -> frozenset[tuple[str, str]]:
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
    set of (attribute, label)
    """
    sizes: dict[tuple[str, str], int] = {}
    hidden = set()
    for family in kinds[1:]:
        patients = np.bincount(family.codes, minlength=len(family.labels))
        events = np.bincount(family.codes, event, minlength=len(family.labels))
        for label, n, deaths in zip(family.labels, patients, events, strict=True):
            sizes[family.attribute, label] = int(n)
            if min(n, deaths, n - deaths) < smallest:
                hidden.add((family.attribute, label))
    sums = _sums(kinds)
    while smallest and hidden:
        for total, parts in sums:
            missing = [part for part in parts if part in hidden]
            shown = [part for part in parts if part not in hidden]
            unknown = len(missing) + (total in hidden)
            if unknown == 1 and shown:
                hidden.add(min(shown, key=lambda part: sizes[part]))
                break
        else:
            break
    return frozenset(hidden)


def _sums(kinds: list[Family]) -> list[tuple]:
    """Counts that add up: a group, or everybody, and its parts."""
    attributes = [family for family in kinds[1:] if family.compared]
    sums: list[tuple] = []
    for family in attributes:
        sums.append((None, [(family.attribute, label) for label in family.labels]))
    for cells in kinds[1 + len(attributes) :]:
        for k, family in enumerate(attributes):
            for code, label in zip(family.parts, family.labels, strict=True):
                inside = [
                    (cells.attribute, cell)
                    for part, cell in zip(cells.parts, cells.labels, strict=True)
                    if part[k] == code[0]
                ]
                sums.append(((family.attribute, label), inside))
    return sums
