"""The data sets of the study on many data sets: patients, attributes, groups of one covariate.

Patients are sorted by their values, so that the order of a file has no influence. All cut points
come from the half A on which models are learned: age is cut at its median there, and so is a
covariate that describes a group (:class:`Described`), which needs enough events there.
"""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.beyond import fresh, survset
from drocox.cox import RiskSets, risk_sets
from drocox.data import SurvivalData, scaled_features
from drocox.heldout import HeldOut

EVENTS_OF_GROUP = 30  # that a described group has in the half where it is found
SMALLEST, LARGEST = 0.1, 0.9  # its share of the patients there
PRIMARY = ("sex", "age")  # attributes whose closings are averaged

PLANS = Path(__file__).with_name("plans")
REGISTERED = tomllib.loads((PLANS / "preregistration.toml").read_text("utf-8"))
ENOUGH_FOR_NETWORKS = 300  # events of a data set on which networks are tested
TESTED = tuple(  # networks are compared on these
    name for name, facts in REGISTERED["included"].items() if facts["events"] >= ENOUGH_FOR_NETWORKS
)
BESIDE = tuple(REGISTERED["beside"])  # shown, but in no mean
FRESH = tuple(fresh.NAMES)  # no earlier study had used them
ALL = (*REGISTERED["included"], *BESIDE, *FRESH)


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
        """The risk sets of these patients."""
        return risk_sets(self.data.time, self.data.event)

    @cached_property
    def _scaled(self) -> dict[int, tuple["Patients", np.ndarray]]:
        return {}

    def scaled(self, others: "Patients") -> np.ndarray:
        """Features of others, imputed and scaled by these patients; they are kept."""
        if id(others) not in self._scaled:
            self._scaled[id(others)] = others, scaled_features(self.data, others.data)[1]
        return self._scaled[id(others)][1]

    def held_out(self, scores: np.ndarray) -> HeldOut:
        """These patients with the scores of one model."""
        return HeldOut(scores, self.data.time, self.data.event, np.zeros(len(self), int))

    def subset(self, rows: np.ndarray) -> "Patients":
        """The patients in the given rows."""
        some = {name: values[rows] for name, values in self.attributes.items()}
        return Patients(self.data.subset(rows), self.covariates.iloc[rows], some)

    def in_order(self) -> "Patients":
        """The same patients, sorted by time, event, features and attributes."""
        columns = [self.data.time, self.data.event, *self.data.X.to_numpy().T]
        columns += list(self.attributes.values())
        return self.subset(np.lexsort([np.nan_to_num(one, nan=-np.inf) for one in columns[::-1]]))


@dataclass(frozen=True)
class Described:
    """Patients described by one covariate: a level of a factor, or one side of a cut."""

    covariate: str
    value: float | str
    side: str  # "=", ">" or "≤"

    def members(self, covariates: pd.DataFrame) -> np.ndarray:
        """Mask of the members; patients with a missing covariate are not members."""
        values = covariates[self.covariate]
        if self.side == "=":
            return (values == self.value).to_numpy(bool)
        return ((values > self.value) if self.side == ">" else (values <= self.value)).to_numpy()


def described_groups(patients: Patients) -> list[Described]:
    """Groups described by one covariate: a level of a factor, or either side of the median.

    Numbers with two values are cut between them. Groups have at least 30 events and 10 to 90 % of
    the patients.
    """
    candidates = []
    for name, values in patients.covariates.items():
        distinct = values.dropna().unique()
        if not pd.api.types.is_numeric_dtype(values):
            candidates += [Described(name, level, "=") for level in sorted(distinct)]
        elif len(distinct) > 1:
            cut = float(distinct.min() if len(distinct) == 2 else values.median())
            candidates += [Described(name, cut, ">"), Described(name, cut, "≤")]
    found = []
    for group in candidates:
        members = group.members(patients.covariates)
        events = patients.data.event[members].sum()
        if SMALLEST <= members.mean() <= LARGEST and events >= EVENTS_OF_GROUP:
            found.append(group)
    return found


def codes_of(patients: Patients, cuts: dict[str, float]) -> dict[str, np.ndarray]:
    """Group codes by attribute: 1 above the cut, else 0, and -1 where unknown."""
    out = {}
    for name, cut in cuts.items():
        values = patients.attributes[name]
        out[name] = np.where(np.isnan(values), -1, values > cut)
    return out


def cuts_of(patients: Patients) -> dict[str, float]:
    """The cut point of each attribute; that of age is the median of these patients."""
    out = {}
    for name, values in patients.attributes.items():
        out[name] = float(np.nanmedian(values)) if name == "age" else 0.5
    return out


def present(cuts: dict[str, float]) -> list[str]:
    """The attributes whose closings are averaged, as far as these patients have them."""
    return [attribute for attribute in PRIMARY if attribute in cuts]


def load(name: str) -> Patients:
    """Patients of a data set of the study by name, sorted, with the study's attributes."""
    _checks.one_of(name, "data set", ALL)
    one = fresh.load(name) if name in FRESH else survset.load(name)
    attributes = {
        attribute: values
        for attribute, values in one.attributes.items()
        if survset.eligible(one, attribute)
    }
    data = SurvivalData(name, one.X, one.time, one.event)
    return Patients(data, one.covariates[one.describing], attributes).in_order()
