"""Columns of somebody's table as events, groups and predictions; what is none is refused.

Messages name the arguments of ``drocox audit``. pandas is imported where it is needed, so that a
wrong argument is refused at once.
"""

import operator
import re
import shlex
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
CUT = re.compile(r"(?P<column>.+?) *(?P<sign>>=|<=|>|<) *(?P<number>.*)")
NUMBER = re.compile(r"-?\d+(\.\d*)?")
BINS = re.compile(r"(?P<column>.+?) *: *(?P<edges>-?[\d.]+(,-?[\d.]+)*)")
DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4}")  # how a date begins
MISSING = "missing"  # label of the patients who have none
FEWEST_OF_A_CODE = 20  # patients, in the middle of the codes, for numbers to be labels
MOST_LABELS = 10  # of an event, that a message shows


def event_column(df, given: str) -> tuple[str, "pd.Series"]:
    """Column and indicator of the event.

    Parameters
    ----------
    df : DataFrame
    given : str
        COLUMN, or COLUMN=VALUE.

    Returns
    -------
    str and Series
    """
    import pandas as pd

    from drocox.data import column

    if given in df.columns:
        events = column(df, given, "--event")
        labels = sorted(_texts(events.dropna().unique()))
        if not set(labels) <= {"0", "1", "False", "True"} and len(labels) <= MOST_LABELS:
            raise ValueError(
                f"event column {given!r} holds {', '.join(labels)}; say which of them is the "
                f"event, as in --event {shlex.quote(f'{given}={labels[-1]}')}"
            )
        return given, events
    name, equals, value = given.rpartition("=")
    if not equals:
        column(df, given, "--event")  # which refuses it
    events = column(df, name.strip(), "--event")
    if events.isna().any():
        raise ValueError(
            f"--event: {name!r} has {events.isna().sum()} gap(s); fill them, or leave these "
            "patients out"
        )
    labels = _texts(events)
    if value.strip() not in labels:
        known = ", ".join(sorted(set(labels))[:MOST_LABELS])
        raise ValueError(f"--event: {name!r} never holds {value!r}; it holds: {known}")
    return name.strip(), pd.Series([label == value.strip() for label in labels], df.index)


def several_censored(df, given: str) -> str:
    """A warning where several labels count as censored, one of which may be another event.

    Parameters
    ----------
    df : DataFrame
    given : str
        As in :func:`event_column`.

    Returns
    -------
    str
        Empty where there is nothing to warn of.
    """
    if given in df.columns:
        return ""
    name, _, value = given.rpartition("=")
    labels = sorted(set(_texts(df[name.strip()].dropna().unique())) - {value.strip()})
    if len(labels) < 2:
        return ""
    shown = ", ".join(labels[:MOST_LABELS])
    return (
        f"{name.strip()}: {shown} all count as censored. If one of them is a competing event, such "
        "as death from another cause, risks come out too high."
    )


def refuse_dates(times: "pd.Series", name: str) -> None:
    """Refuse dates in place of times.

    Parameters
    ----------
    times : Series
    name : str
        Of its column.
    """
    first = next(iter(times.dropna().astype(str)), "")
    if DATE.match(first):
        raise ValueError(
            f"--time: {name!r} holds dates, such as {first}; pass the time from entry to the event "
            "or the last visit, in days for example"
        )


def _texts(values) -> list[str]:
    """Labels as text, whole numbers without a point."""
    return [f"{v:g}" if isinstance(v, float) else str(v).strip() for v in values]


def score_column(df, name: str, outcomes: tuple[str, ...], argument: str) -> "np.ndarray":
    """Scores of the patients; who lacks one is named.

    Parameters
    ----------
    df : DataFrame
    name : str
    outcomes : tuple of str
        Columns with the outcome, which are refused.
    argument : str
        That named the column.

    Returns
    -------
    array of shape (n,)
    """
    import numpy as np
    import pandas as pd

    from drocox.data import column

    given = column(df, name, argument, outcomes)
    scores = pd.to_numeric(given, errors="coerce").to_numpy(float)
    if not np.isfinite(scores).all():
        first = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise ValueError(
            f"{argument}: {name!r} holds {given.iloc[first]} for patient {first + 1} of {len(df)}, "
            "which is no score; complete the column, or leave such patients out of the file"
        )
    return scores


def probability_column(df, name: str, outcomes: tuple[str, ...], argument: str) -> "np.ndarray":
    """Survival probabilities or risks of the patients; whose is none is named.

    Parameters
    ----------
    df : DataFrame
    name : str
    outcomes : tuple of str
        Columns with the outcome, which are refused.
    argument : str
        That named the column.

    Returns
    -------
    array of shape (n,)
    """
    import numpy as np

    values = score_column(df, name, outcomes, argument)
    outside = np.flatnonzero((values < 0) | (values > 1))
    if len(outside):
        first = outside[0]
        advice = "pass scores with --score"
        if values.min() >= 0 and values.max() <= 100:
            advice = f"divide percentages by 100, or {advice}"
        raise ValueError(
            f"{argument}: {name!r} holds {values[first]:g} for patient {first + 1} of {len(df)}, "
            f"which is no probability; {advice}"
        )
    return values


def group_column(df, name: str, outcomes: tuple[str, ...]) -> "pd.Series":
    """Labels of one attribute.

    Parameters
    ----------
    df : DataFrame
    name : str
        A column, or a cut of it such as age>65 or age:50,65,75.
    outcomes : tuple of str
        Columns with the outcome, which are refused.

    Returns
    -------
    Series
        Labels that are missing are a group of their own.
    """
    import pandas as pd
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    from drocox.data import MAX_NUMERIC_GROUPS, column

    cut = None if name in df.columns else CUT.fullmatch(name)
    bins = None if name in df.columns or cut else BINS.fullmatch(name)
    parted = cut or bins
    labels = column(df, parted["column"] if parted else name, "--groups", outcomes)
    if cut and not NUMBER.fullmatch(cut["number"]):
        raise ValueError(f"--groups: {name!r} needs a number after {cut['sign']}, as in age>65")
    if cut:
        values = _measurements(labels, name)
        inside = COMPARISONS[cut["sign"]](values, float(cut["number"]))
        labels = inside.where(values.notna())
    elif bins:
        labels = _binned(_measurements(labels, name), bins["edges"].split(","))
    elif is_numeric_dtype(labels) and not is_bool_dtype(labels) and _are_codes(labels):
        order = [f"{code:g}" for code in sorted(labels.dropna().unique())]  # 1, and not 1.0
        named = labels.map(lambda code: f"{code:g}", na_action="ignore")
        labels = named.astype(pd.CategoricalDtype(order))
    elif is_numeric_dtype(labels) and labels.nunique() > MAX_NUMERIC_GROUPS:
        raise ValueError(
            f"--groups: {name!r} holds {labels.nunique()} distinct values; cut a measurement, as "
            f"in --groups '{name}>65' or '{name}:50,65,75'; write numbers that are labels as text, "
            "such as 'no 12'"
        )
    return _with_missing(labels) if labels.isna().any() else labels


def _measurements(values, name: str) -> "pd.Series":
    """Numbers that can be cut, with gaps."""
    import pandas as pd

    numbers = pd.to_numeric(values, errors="coerce")
    text = values[numbers.isna() & values.notna()]
    if len(text):
        raise ValueError(f"--groups: {name!r} cannot cut {text.iloc[0]!r}, which is no number")
    return numbers


def _with_missing(labels) -> "pd.Series":
    """Labels of which those that are missing are a group of their own, the last."""
    import pandas as pd

    if isinstance(labels.dtype, pd.CategoricalDtype):
        known = list(labels.cat.categories)
    else:
        known = sorted(labels.dropna().unique())
    order = list(dict.fromkeys([*map(str, known), MISSING]))  # each once
    named = labels.astype(object).map(str, na_action="ignore").fillna(MISSING)
    return named.astype(pd.CategoricalDtype(order))


def attribute_titles(df, names: list[str]) -> list[str]:
    """What attributes are called: those in bins like their column, if no other is.

    Parameters
    ----------
    df : DataFrame
    names : list of str
        As in :func:`group_column`.

    Returns
    -------
    list of str
    """
    columns = []
    for name in names:
        bins = None if name in df.columns or CUT.fullmatch(name) else BINS.fullmatch(name)
        columns.append(bins["column"].strip() if bins else name)
    titles = []
    for name, short in zip(names, columns, strict=True):
        titles.append(short if columns.count(short) == 1 else name)
    return titles


def _are_codes(values) -> bool:
    """Whether numbers are labels: few, or whole and each of several patients, as of sites."""
    from drocox.data import MAX_LABELS, MAX_NUMERIC_GROUPS

    known = values.dropna()
    if known.nunique() <= MAX_NUMERIC_GROUPS:
        return True
    several = known.value_counts().median() >= FEWEST_OF_A_CODE
    return bool(several and known.nunique() <= MAX_LABELS and (known % 1 == 0).all())


def _binned(values, edges: list[str]) -> "pd.Series":
    """Labels of a measurement between edges; whoever is at an edge belongs to the part above."""
    import numpy as np
    import pandas as pd

    limits = [float(edge) for edge in edges]
    if limits != sorted(set(limits)):
        raise ValueError(f"--groups: edges must grow, as in age:50,65,75, not {','.join(edges)}")
    names = [f"below {edges[0]}"]
    for low, high in pairwise(edges):
        names.append(f"{low} to below {high}")
    names.append(f"{edges[-1]} or more")
    return pd.cut(values, [-np.inf, *limits, np.inf], right=False, labels=names)


def searchable(df, names: list[str]) -> tuple[list[str], list[str]]:
    """Columns in which badly served groups can be searched for, and the others.

    Parameters
    ----------
    df : DataFrame
    names : list of str

    Returns
    -------
    two lists of str
    """
    from drocox.data import column, encode

    usable = []
    unusable = []
    for name in names:
        try:
            encode(column(df, name, "features"))
            usable.append(name)
        except (TypeError, ValueError):
            unusable.append(name)
    return usable, unusable
