"""Survival data as one object: features, outcomes and groups of patients, checked once.

:meth:`SurvivalData.from_frame` makes one of a user's own table. It only encodes: missing values
stay NaN, and imputation and scaling are left to whoever splits the data, because that is where they
can leak.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sksurv.util import Surv

from drocox import _checks

MAX_NUMERIC_GROUPS = 10  # more distinct numbers than this are a measurement, not groups
MAX_LABELS = 50  # more distinct labels than this are an identifier, not a category


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalData:
    """Features, outcomes and groups of patients, one row each."""

    name: str
    X: pd.DataFrame  # numeric features; NaN: missing
    time: np.ndarray
    event: np.ndarray  # 1 = event, 0 = censored
    groups: dict[str, np.ndarray] = field(default_factory=dict)  # attribute: codes 0, 1, ...
    group_labels: dict[str, tuple[str, ...]] = field(default_factory=dict)  # what each code means

    def __post_init__(self) -> None:
        time, event = _checks.outcomes(self.time, self.event)
        if not isinstance(self.X, pd.DataFrame) or self.X.shape[1] == 0:
            raise TypeError("X must be a DataFrame with at least one feature column")
        if not self.X.columns.is_unique:
            raise ValueError("X has repeated column names; rename them first")
        if odd := [str(c) for c in self.X if not is_numeric_dtype(self.X[c])]:
            said = f"X has non-numeric columns: {', '.join(odd)}"
            raise TypeError(f"{said}; encode them, or let SurvivalData.from_frame do it")
        X = self.X.astype(np.float64)
        if np.isinf(X.to_numpy()).any():
            raise ValueError("X holds infinite values; replace them, or use NaN for missing ones")
        _checks.same_length(X=X.iloc[:, 0], time=time)
        if extra := set(self.group_labels) - set(self.groups):
            raise ValueError(f"group_labels names {sorted(extra)}, which groups lacks; add them")
        groups = {}
        labels = {}
        for a, values in self.groups.items():
            title = f"groups[{a!r}]"
            codes = _checks.numbers(values, title, ndim=1)
            _checks.same_length(**{title: codes, "time": time})
            default = [f"{a} = {code}" for code in range(int(codes.max()) + 1)]
            groups[a] = codes.astype(int)
            labels[a] = tuple(self.group_labels.get(a, default))
            if not np.isin(codes, np.arange(len(labels[a]))).all():
                said = f"{title} must hold codes 0, 1, ... below its number of labels"
                raise ValueError(f"{said}; SurvivalData.from_frame makes such codes")
        # the object is frozen, so the checked copies go past it
        vars(self).update(X=X, time=time.copy(), event=event, groups=groups, group_labels=labels)

    @classmethod
    def from_frame(
        cls,
        df: pd.DataFrame,
        *,
        time: str,
        event: str,
        groups: Sequence[str] | Mapping[str, Sequence] = (),
        features: Sequence[str] | None = None,
        name: str = "data",
    ) -> "SurvivalData":
        """Make a data set of a frame with one row per patient.

        Parameters
        ----------
        df : DataFrame
        time, event : str
            Columns with the observed time and the 0/1 event indicator; no missing values.
        groups : list of str, or mapping of str to labels
            Columns that hold sensitive attributes, or the labels themselves, one per patient:
            ``groups={"age": df["age"] > 65}`` makes groups of a measurement.
        features : list of str, optional
            By default all columns but ``time`` and ``event``. Labels become one 0/1 column
            "column=label" for each label but the first; missing values stay NaN.
        name : str
            What the data set is called.

        Returns
        -------
        SurvivalData

        Examples
        --------
        >>> df = pd.DataFrame({"days": [5, 8, 2], "died": [1, 0, 1], "sex": ["f", "m", "f"]})
        >>> d = SurvivalData.from_frame(df, time="days", event="died", groups=["sex"])
        >>> d.feature_names, d.group_labels
        (['sex=m'], {'sex': ('sex = f', 'sex = m')})
        """
        if not isinstance(df, pd.DataFrame) or not df.columns.is_unique:
            raise TypeError("df must be a pandas DataFrame without repeated column names")
        groups, features = ([c] if isinstance(c, str) else c for c in (groups, features))
        if not isinstance(groups, Mapping):
            groups = {c: _column(df, c, "groups", (time, event)) for c in groups}
        if features is None:
            features = [c for c in df.columns if c not in (time, event)]
        outcomes = {}
        kinds = (("time", time, "a number such as days"), ("event", event, "1 = event, 0 = none"))
        for argument, c, wanted in kinds:
            column = _column(df, c, argument)
            title = f"{argument} column {c!r}"
            if not is_numeric_dtype(column):
                raise TypeError(f"{title} must be numeric, not {column.dtype}; convert to {wanted}")
            outcomes[title] = column.to_numpy(dtype=float, na_value=np.nan)
        checked = _checks.outcomes(*outcomes.values(), names=list(outcomes))
        found = {a: _categories(a, values, df.index) for a, values in groups.items()}
        codes = {a: labelled.codes for a, labelled in found.items()}
        labels = {a: [f"{a} = {x}" for x in labelled.categories] for a, labelled in found.items()}
        encoded = [_encode(_column(df, c, "features", (time, event))) for c in features]
        X = pd.concat(encoded, axis=1) if encoded else df[[]]
        return cls(name, X, *checked, codes, labels)

    def subset(self, rows) -> "SurvivalData":
        """Some of the patients, in the given order.

        Parameters
        ----------
        rows : indices, mask or slice

        Returns
        -------
        SurvivalData
        """
        try:
            index = np.arange(len(self))[list(rows) if isinstance(rows, tuple) else rows]
        except IndexError as error:
            said = f"rows must be integers below {len(self)} or a mask of that many patients"
            raise IndexError(f"{said}: {error}") from error
        if index.ndim != 1 or index.size == 0:
            raise ValueError("rows selects nobody; pass a list with at least one index, or a mask")
        groups = {a: codes[index] for a, codes in self.groups.items()}
        outcomes = self.time[index], self.event[index]
        return SurvivalData(self.name, self.X.iloc[index], *outcomes, groups, self.group_labels)

    @property
    def feature_names(self) -> list[str]:
        """Names of the feature columns."""
        return list(self.X.columns)

    @property
    def group_matrix(self) -> np.ndarray:
        """Group codes, one column per attribute, shape (n, J): input of intersectional metrics."""
        return np.array(list(self.groups.values()), dtype=np.int64).reshape(-1, len(self)).T

    @property
    def y(self) -> np.ndarray:
        """Outcomes as the structured array (event, time) that scikit-survival uses."""
        return Surv.from_arrays(self.event, self.time)

    @property
    def sha256(self) -> str:
        """Hash of column names, values, outcomes and groups in row order (not of ``name``)."""
        values = np.column_stack([self.X, self.time, self.event, self.group_matrix]) + 0.0
        values[np.isnan(values)] = np.nan  # one bit pattern for all NaN, as + 0.0 made for -0.0
        names = "\n".join(map(str, [*self.X.columns, *self.groups]))
        return hashlib.sha256(names.encode() + values.astype("<f8").tobytes()).hexdigest()

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        groups = ", ".join(map(str, self.groups)) or "none"
        size = f"{len(self):,} patients, {self.event.sum():,} events, {self.X.shape[1]} features"
        return f"SurvivalData({self.name!r}: {size}, groups: {groups})"


def _column(df: pd.DataFrame, column: str, argument: str, outcomes: tuple = ()) -> pd.Series:
    """A column of a user's frame; refuse unknown names, and outcomes used as input."""
    if column not in df.columns:
        known = ", ".join(map(str, df.columns[:20])) + ", …" * (len(df.columns) > 20)
        hint = _checks.like(column, df.columns)
        raise ValueError(f"{argument}: no column {column!r};{hint} the columns are: {known}")
    if column in outcomes:
        raise ValueError(f"{argument}: {column!r} is the outcome; leave it out")
    return df[column].infer_objects()


def _categories(name: str, values, index: pd.Index) -> pd.Categorical:
    """Codes and labels of one sensitive attribute of a user's frame."""
    title = f"groups[{name!r}]"
    _checks.codes(values, title, len(index))
    if isinstance(values, pd.Series) and not values.index.equals(index):
        raise ValueError(f"{title} has another index than df; align it with df first")
    values = values if isinstance(values, pd.Series) else np.asarray(values)
    found = pd.Categorical(values).remove_unused_categories()  # keeps an order of the user's
    size = len(found.categories)
    measured = is_numeric_dtype(found.categories)  # more than two, so no booleans
    if size > (MAX_NUMERIC_GROUPS if measured else MAX_LABELS):
        binned = f"groups={{{name!r}: df[{name!r}] > 65}}"
        raise ValueError(f"{title} has {size} distinct values; bin them, as in {binned}")
    return found


def _encode(column: pd.Series) -> pd.DataFrame:
    """Numeric feature columns of one column of a user's frame."""
    if is_numeric_dtype(column):
        return column.astype(np.float64).to_frame()
    title = f"feature column {column.name!r}"
    rest = "leave it out with features=[...], or make it numeric (dates: days since entry)"
    if not isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype | np.dtypes.ObjectDType):
        raise TypeError(f"{title} has dtype {column.dtype}; {rest}")
    found = column.astype("category").cat.remove_unused_categories()
    size = len(found.cat.categories)
    text = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
    if size > MAX_NUMERIC_GROUPS and 0 < 2 * len(text) < len(column):  # mostly numbers
        raise ValueError(f"{title} holds {text.iloc[0]!r} among numbers; correct or blank it")
    if not 2 <= size <= MAX_LABELS:
        raise ValueError(f"{title} has {size} distinct labels, not 2 to {MAX_LABELS}; {rest}")
    out = pd.get_dummies(found, prefix=str(column.name), prefix_sep="=", dtype=float).iloc[:, 1:]
    return out.mask(column.isna())
