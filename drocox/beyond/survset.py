r"""Many data sets: which of the 76 in the package SurvSet can test a model of patients, and why.

SurvSet 0.2.6 (GPL-3) carries 76 data sets as plain CSV files. Nothing of it is stored here: files
are read from the installed package and checked by hash. ``survset.toml`` says of each data set who
is followed, whose patients they are, which columns are attributes, and which columns are left out
because they lie after the start, know the outcome, name a place or say something twice.
:func:`flow` applies rules that were fixed before any model was fitted, one after the other:

1. one measurement per patient: features do not vary in time (no column ``time2``);
2. persons, followed for their health;
3. a time to an event that is one;
4. one row per patient;
5. at least 200 patients and 80 events;
6. one data set of a study: the one with more of the attributes sex and age, then more events;
7. with :math:`d` events and :math:`p` encoded features, :math:`d/2 \ge 5 p`: models are fitted on
   halves, and a half then has five events for each feature;
8. FLC and SUPPORT, on which the questions arose, are shown beside the others and not counted.

Encoding (:func:`load`): numbers stay as they are, missing values stay NaN, and a factor becomes one
0/1 column for each level but the first. A level of :math:`m` patients out of :math:`n` is kept if
:math:`m\,d/n \ge 10`, the events that it would have at the common rate; smaller levels are pooled,
and a pool that is still too small joins the most frequent level. No outcome within a level is
looked at. Covariates are left out where more than half of the values are missing, or where all are
equal. Times of 0 are kept, since the partial likelihood needs their order only.
"""

import csv
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.data import encode
from drocox.paper.datasets import installed_file

PACKAGE = "SurvSet==0.2.6"
TABLE = tomllib.loads(Path(__file__).with_name("survset.toml").read_text("utf-8"))
NAMES = sorted(TABLE)
BESIDE = ("flchain", "support2")  # FLC and SUPPORT of the paper
LEAST_PATIENTS = 200
LEAST_EVENTS = 80
EVENTS_PER_FEATURE = 5  # in a half
LEVEL_EVENTS = 10  # that a level of a factor has at the common rate
GROUP_EVENTS = 40  # of each group of an attribute, so that a half has about twenty
GROUP_SHARE = 0.1  # of the patients, in each group of an attribute and each described group
ATTRIBUTES = ("sex", "age", "race")
STEPS = {
    "varying": "features vary in time",
    "people": "not persons followed for their health",
    "outcome": "no usable time to an event",
    "rows": "several rows per patient",
    "size": f"fewer than {LEAST_PATIENTS} patients or {LEAST_EVENTS} events",
    "study": "same study as a data set that is kept",
    "features": f"fewer than {EVENTS_PER_FEATURE} events of a half per feature",
    "beside": "suggested the contrast: shown beside",
    "included": "included",
}


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """One data set: encoded features, outcomes, attributes, and the covariates before encoding."""

    name: str
    X: pd.DataFrame  # encoded features; NaN: missing
    time: np.ndarray
    event: np.ndarray  # bool
    # those there are: sex, 1 = women; age; race, 1 = the most frequent; NaN: unknown
    attributes: dict[str, np.ndarray]
    covariates: pd.DataFrame  # numbers, and factors as text with their levels pooled

    @cached_property
    def describing(self) -> list[str]:
        """Covariates that can describe a group of 10 to 90 % of the patients."""
        return [column for column in self.covariates if _describes(self.covariates[column])]

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        size = f"{len(self):,} patients, {self.event.sum():,} events, {self.X.shape[1]} features"
        return f"DataSet({self.name!r}: {size})"


# Files ----------------------------------------------------------------------------------------


def _path(name: str) -> Path:
    """The file of a data set inside the installed package, checked by hash."""
    file = f"SurvSet/_datagen/output/{name}.csv"
    return installed_file(file, PACKAGE, TABLE[name]["sha256"], "beyond")


def _read(name: str, **how) -> pd.DataFrame:
    """Columns of a data set; numbers are parsed exactly, so that no release rounds the last bit."""
    return pd.read_csv(_path(name), float_precision="round_trip", **how)


def _header(name: str) -> list[str]:
    """Columns of a data set; pandas takes seconds for thousands of them."""
    with _path(name).open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file))


def _outcomes(name: str) -> pd.DataFrame:
    """Patient, event and time of each row."""
    rows = _read(name, usecols=["pid", "event", "time"])
    if "event" not in TABLE[name]:
        return rows
    return rows.assign(event=(rows["event"] > 0).astype(int))  # any of several events


# Encoding -------------------------------------------------------------------------------------


def pooled(levels: pd.Series, share_of_events: float) -> pd.Series:
    """A factor whose levels have at least ten events each at the common rate."""
    patients = levels.value_counts()
    small = patients.index[patients * share_of_events < LEVEL_EVENTS]
    if len(small) == 0:
        return levels
    enough = patients[small].sum() * share_of_events >= LEVEL_EVENTS
    heir = "other levels" if enough else patients.index[0]
    return levels.mask(levels.isin(small), heir)


def _covariates(name: str, events: np.ndarray) -> pd.DataFrame:
    """Covariates that are used, before encoding: factors as text, missing values NaN."""
    outcome = {"pid", "event", "time", "time2"}
    dropped = outcome.union(TABLE[name].get("drop", {}))
    used = [column for column in _header(name) if column not in dropped]
    texts = [column for column in used if column.startswith("fac_")]
    table = _read(name, usecols=used, dtype=dict.fromkeys(texts, str))[used]
    for column in texts:
        levels = table[column]
        table[column] = pooled(levels.mask(levels == "missing"), events.mean())
    return informative(table).rename(columns=lambda column: column.partition("_")[2])


def informative(covariates: pd.DataFrame) -> pd.DataFrame:
    """The covariates of which at least half of the values are known, and not all are equal."""
    known = covariates.notna().mean() >= 0.5
    numbers = covariates.select_dtypes("number")  # thousands of columns in some files
    texts = covariates.drop(columns=numbers.columns)
    varies = pd.concat([numbers.max() > numbers.min(), texts.nunique() > 1])
    return covariates.loc[:, known & varies]


def encoded(covariates: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are, then the 0/1 columns of the factors."""
    numbers = covariates.select_dtypes("number").astype(float)
    factors = covariates.columns.difference(numbers.columns, sort=False)
    return pd.concat([numbers, *(encode(covariates[column]) for column in factors)], axis=1)


def _describes(values: pd.Series) -> bool:
    """Whether a level, or being above the median, holds for 10 to 90 % of the patients."""
    if pd.api.types.is_numeric_dtype(values):
        shares = np.array([(values > values.median()).mean()])
    else:
        shares = values.value_counts().to_numpy() / len(values)
    return bool(((shares >= GROUP_SHARE) & (shares <= 1 - GROUP_SHARE)).any())


def data_set(
    name: str,
    facts: dict,
    outcomes: tuple[np.ndarray, np.ndarray],
    labels: dict[str, pd.Series],
    covariates: pd.DataFrame,
) -> DataSet:
    """A data set from times and events, the columns of its attributes, and its covariates."""
    attributes = {}
    for attribute, values in labels.items():
        if attribute != "age":
            one = facts["female"] if attribute == "sex" else values.value_counts().index[0]
            values = (values == one).astype(float).mask(values.isna())
        attributes[attribute] = values.to_numpy(float)
    return DataSet(name, encoded(covariates), *outcomes, attributes, covariates)


def load(name: str) -> DataSet:
    """Load a data set of SurvSet by name, offline, in the order of its file.

    It is only encoded: imputation and scaling follow the split into training and test patients.
    Data sets with time-varying features are refused.
    """
    _checks.one_of(name, "data set", NAMES)
    if "time2" in _header(name):
        raise ValueError(f"features of {name!r} vary in time; choose one that flow() includes")
    rows = _outcomes(name)
    outcomes = rows["time"].to_numpy(float), rows["event"].to_numpy(bool)
    facts = TABLE[name]
    columns = {facts[one]: float if one == "age" else str for one in ATTRIBUTES if one in facts}
    table = _read(name, usecols=list(columns), dtype=columns)
    table = table.mask(table == "missing")
    labels = {one: table[facts[one]] for one in ATTRIBUTES if one in facts}
    return data_set(name, facts, outcomes, labels, _covariates(name, outcomes[1]))


# The flow -------------------------------------------------------------------------------------


def eligible(data: DataSet, attribute: str) -> bool:
    """Whether both groups of an attribute are large enough for a difference between them.

    Each needs a tenth of the patients and 40 events, so that a half has about twenty. Age is split
    at the median here; a study splits at the median of the half that it fits on.
    """
    _checks.one_of(attribute, "attribute", ATTRIBUTES)
    if attribute not in data.attributes:
        return False
    codes = data.attributes[attribute]
    if attribute == "age":
        codes = np.where(np.isnan(codes), np.nan, codes > np.nanmedian(codes))
    for code in (0, 1):
        members = codes == code
        too_few = members.mean() < GROUP_SHARE
        if too_few or data.event[members].sum() < GROUP_EVENTS:
            return False
    return True


def flow() -> pd.DataFrame:
    """All 76 data sets by name, each with the step at which it leaves and the reason.

    Columns: what, source, study, rows, patients, events, step (a key of ``STEPS``; "included" or
    "beside" for those that stay), features (encoded), describing (how many covariates can describe
    a group), sex, age, race (whether the attribute is eligible), reason. Later columns are missing
    where a data set left earlier.
    """
    table = []
    for name in NAMES:
        facts = TABLE[name]
        outcomes = _outcomes(name)
        patients = outcomes["pid"].nunique()
        events = int(outcomes["event"].sum())
        fails = {  # rules 1 to 5
            "varying": "time2" in _header(name),
            "people": not facts.get("people", True),
            "outcome": "unusable" in facts,
            "rows": patients < len(outcomes),
            "size": patients < LEAST_PATIENTS or events < LEAST_EVENTS,
        }
        step = next((step for step, failed in fails.items() if failed), None)
        attributes = sum(attribute in facts for attribute in ("sex", "age"))
        about = {key: facts[key] for key in ("what", "source", "study")}
        sizes = {"rows": len(outcomes), "patients": patients, "events": events}
        table.append({"name": name, **about, **sizes, "attributes": attributes, "step": step})
    flow = pd.DataFrame(table).set_index("name")
    order = flow[flow["step"].isna()].sort_values(["attributes", "events"], ascending=False)
    flow.loc[order.index[order["study"].duplicated()], "step"] = "study"
    for name in flow.index[flow["step"].isna()]:
        data = load(name)
        features = data.X.shape[1]
        flow.loc[name, "features"] = features
        if data.event.sum() / 2 < EVENTS_PER_FEATURE * features:
            flow.loc[name, "step"] = "features"
            continue
        flow.loc[name, "step"] = "beside" if name in BESIDE else "included"
        flow.loc[name, "describing"] = len(data.describing)
        for attribute in ATTRIBUTES:
            flow.loc[name, attribute] = eligible(data, attribute)
    flow["reason"] = [
        TABLE[name]["unusable"] if step == "outcome" else STEPS[step]
        for name, step in flow["step"].items()
    ]
    counts = {"features": "Int64", "describing": "Int64"}
    flags = dict.fromkeys(ATTRIBUTES, "boolean")
    return flow.drop(columns="attributes").astype({**counts, **flags})
