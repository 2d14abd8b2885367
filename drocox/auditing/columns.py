"""Columns of somebody's table as times, events, groups and predictions.

Messages name the arguments of ``drocox audit``.
"""

import re
import shlex
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from drocox.data import MAX_LABELS, MAX_NUMERIC_GROUPS, column, encode

CUT = re.compile(r"(?P<column>.+?) *(?P<sign>>=|<=|>|<) *(?P<number>.*)")
NUMBER = re.compile(r"-?\d+(\.\d*)?")
BINS = re.compile(rf"(?P<column>.+?) *: *(?P<edges>{NUMBER.pattern}(,{NUMBER.pattern})*)")
DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4}")  # how a date begins
EVENT = re.compile("dea|die|dec|event|yes", re.IGNORECASE)  # dead, died, deceased
MISSING = "missing"  # label of the patients who have none
FEWEST_OF_A_CODE = 20  # patients, in the middle of the codes, for numbers to be labels
MOST_LABELS = 10  # of an event, that a message shows


def names_in(texts: list[str], known: pd.Index) -> list[str]:
    """Names of columns, or cuts of them, in texts with commas between them; each once.

    A name may hold a comma itself, and a cut such as age:50,65,75 does: the longest part of a text
    that names a column is taken first. Unknown names are kept, to be refused with advice.
    """
    names = []
    for text in texts:
        parts = text.split(",")
        while parts:
            size = next(
                (k for k in range(len(parts), 1, -1) if _is_named(",".join(parts[:k]), known)), 1
            )
            names.append(",".join(parts[:size]).strip())
            parts = parts[size:]
    return [name for name in dict.fromkeys(names) if name]


def _is_named(text: str, known: pd.Index) -> bool:
    """Whether a text is a column or a cut of one."""
    text = text.strip()
    cut = cut_of(text, known)
    is_cut = cut and cut.column in known and all(map(NUMBER.fullmatch, cut.edges))
    return bool(text in known or is_cut)


class Cut(NamedTuple):
    """A measurement that is cut at some edges."""

    column: str
    sign: str  # a colon, if there are several edges
    edges: list[str]  # as they were written


def cut_of(name: str, known: pd.Index) -> Cut | None:
    """The cut that a text such as age>65 or age:50,65,75 stands for, unless it names a column."""
    if name in known:
        return None
    if one := CUT.fullmatch(name):
        return Cut(one["column"], one["sign"], [one["number"]])
    if several := BINS.fullmatch(name):
        return Cut(several["column"], ":", several["edges"].split(","))
    return None


def event_of(df, given: str) -> tuple[str, str | None]:
    """The column of the event and the value that means it, given as COLUMN or COLUMN=VALUE."""
    if given in df.columns or "=" not in given:
        return given.strip(), None
    parts = given.split("=")  # names and values may hold the sign, too: the longest name counts
    cuts = range(len(parts) - 1, 0, -1)
    ways = [("=".join(parts[:cut]).strip(), "=".join(parts[cut:]).strip()) for cut in cuts]
    return next((way for way in ways if way[0] in df.columns), ways[0])


def event_column(df, name: str, value: str | None) -> pd.Series:
    """The indicator of the event: a column of 0 and 1, or where a column has a value."""
    events = df[name].infer_objects()
    labels = sorted(set(_texts(events)))
    shown = ", ".join(labels[:MOST_LABELS]) + ", …" * (len(labels) > MOST_LABELS)
    if value is None:
        if not set(labels) <= {"0", "1", "False", "True"}:
            likely = next(filter(EVENT.search, labels), labels[-1])
            raise ValueError(
                f"--event: {name!r} holds {shown}; say which of them is the event, as in --event "
                f"{shlex.quote(f'{name}={likely}')}"
            )
        return events.map(lambda value: str(value) in ("1", "1.0", "True"))
    if value not in labels:
        raise ValueError(f"--event: {name!r} never holds {value!r}; it holds: {shown}")
    return pd.Series([label == value for label in _texts(events)], df.index)


def number_column(df, name: str, argument: str) -> pd.Series:
    """Numbers of the patients, NaN where empty; an error names the first bad value and its line."""
    given = df[name]
    numbers = pd.to_numeric(given, errors="coerce").astype(float)
    bad = (numbers.isna() & given.notna()) | np.isinf(numbers)
    if bad.any():
        value = given[bad].iloc[0]
        raise ValueError(
            f"{argument}: {name!r} holds {str(value)!r} in {_place(given[bad])}, which is no "
            "number; write digits and a decimal point only, or leave it empty"
        )
    return numbers


def _place(values: pd.Series) -> str:
    """Line or row of the first of these values in the file."""
    return f"{values.index.name} {values.index[0]}"


def refuse_missing(gaps: pd.DataFrame, wanted: dict[str, str]) -> None:
    """Refuse columns with gaps, naming the argument and the first patient."""
    for name in gaps:
        patients = gaps.index[gaps[name]]
        count = f"{len(patients)} patient{'s' * (len(patients) > 1)}"
        first = "the first in " if len(patients) > 1 else "in "
        raise ValueError(
            f"{wanted[name]}: {name!r} is missing for {count}, {first}{gaps.index.name} "
            f"{patients[0]}; complete it, or leave such patients out with --missing drop"
        )


def several_censored(df, name: str, value: str | None) -> str:
    """A warning where several labels count as censored, one of which may be another event."""
    if value is None:
        return ""
    labels = sorted(set(_texts(df[name].dropna().unique())) - {value})
    if len(labels) < 2:
        return ""
    shown = ", ".join(labels[:MOST_LABELS])
    return (
        f"{name}: {shown} all count as censored. If one of them is a competing event, such as "
        "death from another cause, risks come out too high."
    )


def time_column(df, name: str) -> pd.Series:
    """Observed times: numbers from 0 on, no dates."""
    first = next(iter(df[name].dropna().astype(str)), "")
    if DATE.match(first):
        raise ValueError(
            f"--time: {name!r} holds dates, such as {first}; pass the time from entry to the event "
            "or the last visit, in days for example"
        )
    times = number_column(df, name, "--time")
    if (times < 0).any():
        early = times[times < 0]
        raise ValueError(
            f"--time: {name!r} holds {early.iloc[0]:g} in {_place(early)}; times start at 0"
        )
    return times


def _texts(values) -> list[str]:
    """Labels as text, whole numbers without a point."""
    return [f"{v:g}" if isinstance(v, float) else str(v).strip() for v in values]


def probability_column(df, name: str, argument: str) -> np.ndarray:
    """Survival probabilities or risks; an error names the first bad value and its line."""
    values = number_column(df, name, argument)
    outside = values[(values < 0) | (values > 1)]
    if len(outside):
        advice = "pass scores with --score"
        if values.min() >= 0 and values.max() <= 100:
            advice = f"divide percentages by 100, or {advice}"
        raise ValueError(
            f"{argument}: {name!r} holds {outside.iloc[0]:g} in {_place(outside)}, which is no "
            f"probability; {advice}"
        )
    return values.to_numpy()


def group_column(df, name: str, outcomes: tuple[str, ...]) -> pd.Series:
    """Labels of one attribute: a column, or a cut of it such as age>65 or age:50,65,75.

    Missing labels are a group of their own.
    """
    cut = cut_of(name, df.columns)
    labels = column(df, cut.column if cut else name, "--groups", outcomes)
    if cut:
        labels = _parts(df, name, cut)
    elif is_numeric_dtype(labels) and not is_bool_dtype(labels):
        if _are_codes(labels):
            order = [f"{code:g}" for code in sorted(labels.dropna().unique())]  # 1, and not 1.0
            named = labels.map(lambda code: f"{code:g}", na_action="ignore")
            labels = named.astype(pd.CategoricalDtype(order))
        elif labels.nunique() > MAX_NUMERIC_GROUPS:
            raise ValueError(
                f"--groups: {name!r} holds {labels.nunique()} distinct values; cut a measurement, "
                f"as in --groups '{name}>65' or '{name}:50,65,75'; write numbers that are labels "
                "as text, such as 'no 12'"
            )
    if labels.isna().any():
        labels = _with_missing(labels)
    present = labels.astype(str).str.strip().unique()
    if len(present) == 1:
        raise ValueError(f"--groups: {name!r} holds one label, {present[0]}; groups need two")
    if len(present) > MAX_LABELS:
        raise ValueError(
            f"--groups: {name!r} holds {len(present)} distinct labels, more than {MAX_LABELS}; "
            "merge those that are rare"
        )
    return labels


def _parts(df, name: str, cut: Cut) -> pd.Series:
    """Labels of a measurement between edges."""
    first, last = cut.edges[0], cut.edges[-1]
    if not NUMBER.fullmatch(first):
        raise ValueError(f"--groups: {name!r} needs a number after {cut.sign}, as in age>65")
    values = number_column(df, cut.column, "--groups")
    limits = [float(edge) for edge in cut.edges]
    if limits != sorted(set(limits)):
        raise ValueError(
            f"--groups: edges must grow, as in age:50,65,75, not {','.join(cut.edges)}"
        )
    below = cut.sign in (">", "<=")  # where a value at the edge belongs
    if below:
        labels = [f"{first} or less", f"above {last}"]
    else:
        between = [f"{low} to below {high}" for low, high in pairwise(cut.edges)]
        labels = [f"below {first}", *between, f"{last} or more"]
    return pd.cut(values, [-np.inf, *limits, np.inf], right=below, labels=labels)


def _with_missing(labels) -> pd.Series:
    """Labels of which those that are missing are a group of their own, the last."""
    if isinstance(labels.dtype, pd.CategoricalDtype):
        known = list(labels.cat.categories)
    else:
        known = sorted(labels.dropna().unique())
    order = list(dict.fromkeys([*map(str, known), MISSING]))  # each once
    named = labels.astype(object).map(str, na_action="ignore").fillna(MISSING)
    return named.astype(pd.CategoricalDtype(order))


def attribute_titles(df, names: list[str]) -> list[str]:
    """Names of attributes: a cut is named like its column, unless another one is."""
    cuts = [cut_of(name, df.columns) for name in names]
    short = [cut.column if cut else name for cut, name in zip(cuts, names, strict=True)]
    return [s if short.count(s) == 1 else name for s, name in zip(short, names, strict=True)]


def _are_codes(values) -> bool:
    """Whether numbers are labels: few, or whole and each of several patients, as of sites."""
    known = values.dropna()
    if known.nunique() <= MAX_NUMERIC_GROUPS:
        return True
    several = known.value_counts().median() >= FEWEST_OF_A_CODE
    return bool(several and known.nunique() <= MAX_LABELS and (known % 1 == 0).all())


def searchable(df, names: list[str]) -> list[str]:
    """Columns that hold numbers, or labels of categories."""
    usable = []
    for name in names:
        try:
            encode(column(df, name, "features"))
            usable.append(name)
        except (TypeError, ValueError):
            pass
    return usable
