"""Patients of many data sets: their attributes, the groups that one covariate describes, halves.

Patients stand in an order of their own, so that the order of a file means nothing. The patients of
a data set are dealt into halves A and B, evenly by event. What is cut is cut on A: age at its
median there, and a covariate that describes a group (:class:`Group`) at its median there; a group
needs enough events in the half where it is found.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from drocox.beyond import survset
from drocox.cox import RiskSets, risk_sets
from drocox.data import SurvivalData
from drocox.heldout import assign_folds

FEWEST_EVENTS = 30  # of a described group, in the half where it is found
SMALLEST, LARGEST = 0.1, 0.9  # its share of the patients there
PRIMARY = ("sex", "age")  # attributes whose closings are averaged
ATTRIBUTES = (*PRIMARY, "race")


@dataclass(frozen=True)
class Patients:
    """Patients of a data set, or some of them."""

    data: SurvivalData
    covariates: pd.DataFrame  # that describe groups, before encoding: numbers or text
    attributes: dict[str, np.ndarray]  # sex, race: 0, 1; age: a number; NaN: not known

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def risk(self) -> RiskSets:
        """The time order."""
        return risk_sets(self.data.time, self.data.event)

    def subset(self, rows: np.ndarray) -> "Patients":
        """Some of the patients.

        Parameters
        ----------
        rows : int array

        Returns
        -------
        Patients
        """
        some = {name: values[rows] for name, values in self.attributes.items()}
        return Patients(self.data.subset(rows), self.covariates.iloc[rows], some)

    def in_order(self) -> "Patients":
        """The same in an order of their own, so that the order of the file means nothing.

        Returns
        -------
        Patients
            Sorted by time, event, features and attributes.
        """
        columns = [self.data.time, self.data.event, *self.data.X.to_numpy().T]
        columns += list(self.attributes.values())
        return self.subset(np.lexsort([np.nan_to_num(one, nan=-np.inf) for one in columns[::-1]]))


@dataclass(frozen=True)
class Group:
    """Patients whom one covariate describes: a level of a factor, or one side of a cut."""

    covariate: str
    value: float | str
    side: str  # "=", ">" or "≤"

    def members(self, covariates: pd.DataFrame) -> np.ndarray:
        """Who belongs to it.

        Parameters
        ----------
        covariates : DataFrame
            Before encoding; whose covariate is missing is no member.

        Returns
        -------
        bool array of shape (n,)
        """
        values = covariates[self.covariate]
        if self.side == "=":
            return (values == self.value).to_numpy(bool)
        return ((values > self.value) if self.side == ">" else (values <= self.value)).to_numpy()


def described_groups(patients: Patients) -> list[Group]:
    """Groups that one covariate describes: a level of a factor, either side of a median.

    A number with two values is cut between them.

    Parameters
    ----------
    patients : Patients
        Of the half on which groups are found.

    Returns
    -------
    list of Group
        With at least 30 events and 10 to 90 % of the patients, in the order of the covariates.
    """
    candidates = []
    for name, values in patients.covariates.items():
        distinct = values.dropna().unique()
        if not pd.api.types.is_numeric_dtype(values):
            candidates += [Group(name, level, "=") for level in sorted(distinct)]
        elif len(distinct) > 1:
            cut = float(distinct.min() if len(distinct) == 2 else values.median())
            candidates += [Group(name, cut, ">"), Group(name, cut, "≤")]
    found = []
    for group in candidates:
        members = group.members(patients.covariates)
        events = patients.data.event[members].sum()
        if SMALLEST <= members.mean() <= LARGEST and events >= FEWEST_EVENTS:
            found.append(group)
    return found


def codes_of(patients: Patients, cuts: dict[str, float]) -> dict[str, np.ndarray]:
    """Group codes by attribute, 0 and 1; -1: not known. Age: 1 above the cut.

    Parameters
    ----------
    patients : Patients
    cuts : dict of str to float
        What values of each attribute are compared with.

    Returns
    -------
    dict of str to int arrays of shape (n,)
    """
    out = {}
    for name, cut in cuts.items():
        values = patients.attributes[name]
        out[name] = np.where(np.isnan(values), -1, values > cut)
    return out


def cuts_of(patients: Patients) -> dict[str, float]:
    """Where each attribute is cut: age at the median of these patients.

    Parameters
    ----------
    patients : Patients

    Returns
    -------
    dict of str to float
    """
    out = {}
    for name, values in patients.attributes.items():
        out[name] = float(np.nanmedian(values)) if name == "age" else 0.5
    return out


def load(name: str) -> Patients:
    """Patients of a data set, in an order of their own, with the attributes that are judged.

    Parameters
    ----------
    name : str
        A data set of SurvSet that has been registered.

    Returns
    -------
    Patients
    """
    one = survset.load(name)
    attributes = {
        attribute: np.asarray(getattr(one, attribute), dtype=float)
        for attribute in ATTRIBUTES
        if survset.eligible(one, attribute)
    }
    data = SurvivalData(name, one.X, one.time, one.event)
    return Patients(data, one.covariates[one.describing], attributes).in_order()


def halves(event: np.ndarray, split: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn on and rows to judge on: two halves, evenly by event, both ways.

    Parameters
    ----------
    event : array of shape (n,)
    split : int
        The seed.

    Returns
    -------
    iterator of (int array, int array)
    """
    dealt = assign_folds(event, 2, split)
    for half in (0, 1):
        yield np.flatnonzero(dealt == half), np.flatnonzero(dealt != half)
