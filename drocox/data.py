"""Survival data as one object: features, outcomes and groups of patients, checked once.

:meth:`SurvivalData.from_frame` makes one from a user's own table. It only encodes: missing values
stay NaN, and imputation and scaling come after the data are split, because before it they leak.
"""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pandas.api.types import is_numeric_dtype

from drocox import _checks

MAX_NUMERIC_GROUPS = 10  # more distinct numbers than this are a measurement, not groups
MAX_LABELS = 50  # more distinct labels than this are an identifier, not a category
LEAST = 1e-150  # smallest size of a feature, its inverse the largest: squares must not overflow


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalData:
    """Features, outcomes and groups of patients, one row each.

    Attributes
    ----------
    name : str
        Name of the data set.
    X : DataFrame of shape (n, p)
        Numeric features; NaN where one is missing.
    time : array of shape (n,)
        Observed times.
    event : bool array of shape (n,)
        Whether the event was seen at that time; else the patient was censored there.
    groups : dict of str to int array of shape (n,)
        By sensitive attribute, the code 0, 1, ... of each patient's group.
    group_labels : dict of str to tuple of str
        By attribute, what each code is called.
    """

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
            raise TypeError(
                f"X has non-numeric columns: {', '.join(odd)}; encode them, or let "
                "SurvivalData.from_frame do it"
            )
        X = self.X.astype(np.float64)
        _check_range(X)
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
            if doubled := [one for one in labels[a] if labels[a].count(one) > 1]:
                raise ValueError(
                    f"group_labels[{a!r}] names {doubled[0]!r} twice; give each code its own label"
                )
            if not np.isin(codes, np.arange(len(labels[a]))).all():
                raise ValueError(
                    f"{title} must hold codes 0, 1, ... below its number of labels; "
                    "SurvivalData.from_frame makes such codes"
                )
        # the object is frozen: set the checked copies directly
        vars(self).update(X=X, time=time.copy(), event=event, groups=groups, group_labels=labels)

    @classmethod
    def from_frame(
        cls,
        df: pd.DataFrame,
        *,
        time: str,
        event: str,
        groups: Sequence[str] | Mapping[str, ArrayLike] = (),
        features: Sequence[str] | None = None,
        name: str = "data",
    ) -> "SurvivalData":
        """Make a data set from a frame with one row per patient.

        Parameters
        ----------
        df : DataFrame
        time, event : str
            Columns with the observed time and the 0/1 event indicator; no missing values.
        groups : list of str, or mapping of str to labels
            Columns that hold sensitive attributes, or the labels themselves, one per patient:
            ``groups={"age": df["age"] > 65}`` bins a measurement.
        features : list of str, optional
            By default all columns but ``time`` and ``event``. Labels become one 0/1 column
            "column=label" for each label but the first; missing values stay NaN.
        name : str
            Name of the data set.

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
        if time == event:
            raise ValueError(f"time and event are both {time!r}; name two columns")
        outcomes = (time, event)
        if isinstance(groups, str):
            groups = [groups]
        if not isinstance(groups, Mapping):
            groups = {attribute: column(df, attribute, "groups", outcomes) for attribute in groups}
        if isinstance(features, str):
            features = [features]
        if features is None:
            features = [c for c in df.columns if c not in outcomes]
        times = column(df, time, "time")
        time_title = f"time column {time!r}"
        if not is_numeric_dtype(times):
            raise TypeError(
                f"{time_title} must be numeric, not {times.dtype}; convert to a number such as days"
            )
        events = column(df, event, "event")
        event_title = f"event column {event!r}"
        odd = [value for value in events.dropna().unique().tolist() if value not in (0, 1)]
        if odd:
            raise ValueError(
                f"{event_title} must be 0/1 or boolean (1 = event, 0 = censored), and holds "
                f"{odd[0]!r}; convert it, as in df[{event!r}] == {odd[-1]!r}"
            )
        observed, died = _checks.outcomes(
            times.to_numpy(dtype=float, na_value=np.nan),
            events.to_numpy(dtype=float, na_value=np.nan),
            names=(time_title, event_title),
        )
        coded = _coded(groups, df.index)
        encoded = [encode(column(df, feature, "features", outcomes)) for feature in features]
        X = pd.concat(encoded, axis=1) if encoded else df[[]]
        return cls(name, X, observed, died, *coded)

    @classmethod
    def from_arrays(
        cls,
        time: ArrayLike,
        event: ArrayLike | None = None,
        *,
        groups: Mapping[str, ArrayLike] | pd.DataFrame,
        X: ArrayLike | None = None,
        name: str = "data",
    ) -> "SurvivalData":
        """Make a data set from arrays, to audit predictions of any model.

        Parameters
        ----------
        time, event : arrays of shape (n,)
            Observed times and 0/1 event indicators; or a structured array (event, time) of
            scikit-survival as ``time`` alone.
        groups : mapping of str to labels, or DataFrame
            One label per patient, for each attribute.
        X : DataFrame or array of shape (n, d), optional
            Features, in which badly served groups are searched for; by default the groups.
        name : str
            Name of the data set.

        Returns
        -------
        SurvivalData

        Examples
        --------
        >>> d = SurvivalData.from_arrays([5, 8, 2], [1, 0, 1], groups={"sex": ["f", "m", "f"]})
        >>> d.group_labels
        {'sex': ('sex = f', 'sex = m')}
        """
        if event is None:
            y = np.asarray(time)
            names = y.dtype.names
            if not names or len(names) != 2:
                raise TypeError("pass time and event, or scikit-survival's array (event, time)")
            time, event = y[names[1]], y[names[0]]
        if not isinstance(groups, (Mapping, pd.DataFrame)):
            raise TypeError(
                "groups must map attributes to labels, such as groups={'sex': labels}, "
                f"not be of type {type(groups).__name__}"
            )
        frame = pd.DataFrame({"time": np.asarray(time), "event": np.asarray(event)})
        given = {attribute: np.asarray(labels) for attribute, labels in groups.items()}
        if X is None:
            codes = {a: pd.Categorical(labels).codes for a, labels in given.items()}
            features = pd.DataFrame(codes)
        elif isinstance(X, pd.DataFrame):
            features = X
        else:
            features = pd.DataFrame(np.asarray(X)).add_prefix("x")
        encoded = pd.concat([encode(features[one]) for one in features], axis=1)
        coded = _coded(given, frame.index)
        return cls(name, encoded.reset_index(drop=True), frame["time"], frame["event"], *coded)

    def subset(self, rows: Sequence[int] | np.ndarray | slice) -> "SurvivalData":
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
            raise IndexError(
                f"rows must be integers below {len(self)} or a mask of that many patients: {error}"
            ) from error
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
        return structured(self.event, self.time)

    @property
    def sha256(self) -> str:
        """Hash of column names, values, outcomes and groups in row order (not of ``name``)."""
        values = np.column_stack([self.X, self.time, self.event, self.group_matrix]) + 0.0
        values[np.isnan(values)] = np.nan  # one bit pattern for all NaN, as + 0.0 gives for -0.0
        names = "\n".join(map(str, [*self.X.columns, *self.groups]))
        return hashlib.sha256(names.encode() + values.astype("<f8").tobytes()).hexdigest()

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        groups = ", ".join(map(str, self.groups)) or "none"
        size = f"{len(self):,} patients, {self.event.sum():,} events, {self.X.shape[1]} features"
        return f"SurvivalData({self.name!r}: {size}, groups: {groups})"


def structured(event: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Outcomes as the structured array (event, time) that scikit-survival uses."""
    y = np.empty(len(time), dtype=[("event", bool), ("time", float)])
    y["event"] = event
    y["time"] = time
    return y


def scaled_features(train: SurvivalData, *others: SurvivalData) -> list[np.ndarray]:
    """Features of all parts, imputed and scaled by medians, means and deviations of ``train``."""
    from sklearn.impute import SimpleImputer  # here, because it takes seconds to import
    from sklearn.preprocessing import StandardScaler

    imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(train.X)
    scaler = StandardScaler().fit(imputer.transform(train.X))
    return [scaler.transform(imputer.transform(part.X)) for part in (train, *others)]


def column(df: pd.DataFrame, name: str, argument: str, outcomes: tuple = ()) -> pd.Series:
    """A column of a user's frame; an unknown name, or an outcome used as input, is an error.

    ``argument`` is the name of the argument in messages.
    """
    if name not in df.columns:
        known = ", ".join(map(str, df.columns[:20])) + ", …" * (len(df.columns) > 20)
        hint = _checks.like(name, df.columns)
        raise ValueError(f"{argument}: no column {name!r};{hint} the columns are: {known}")
    if name in outcomes:
        raise ValueError(f"{argument}: {name!r} is the outcome; leave it out")
    return df[name].infer_objects()


def _check_range(X: pd.DataFrame) -> None:
    """Raise if features are infinite, or so large or small that squares overflow or underflow."""
    values = X.to_numpy()
    if np.isinf(values).any():
        raise ValueError("X holds infinite values; replace them, or use NaN for missing ones")
    size = np.nanmax(np.abs(values), axis=0, initial=0.0)
    for name, largest in zip(X.columns, size, strict=True):
        if largest > 0 and not LEAST <= largest <= 1 / LEAST:
            raise ValueError(
                f"X: the largest value of {name!r} is {largest:.0e}; choose another unit of "
                "measurement, or correct it"
            )


def plain_text(label: object) -> object:
    """A text without what nobody sees: spaces at its ends, marks of no width, two kinds of é.

    Anything else than a text stays as it is.
    """
    if not isinstance(label, str):
        return label
    seen = (c for c in unicodedata.normalize("NFC", label) if unicodedata.category(c) != "Cf")
    return " ".join("".join(seen).split())


def _coded(groups: Mapping, index: pd.Index) -> tuple[dict, dict]:
    """Codes of all sensitive attributes of a user's data, and what they mean."""
    found = {name: _categories(name, values, index) for name, values in groups.items()}
    meant = {name: tuple(f"{name} = {k}" for k in one.categories) for name, one in found.items()}
    return {name: one.codes for name, one in found.items()}, meant


def _categories(name: str, values: ArrayLike, index: pd.Index) -> pd.Categorical:
    """Codes and labels of one sensitive attribute of a user's frame."""
    title = f"groups[{name!r}]"
    _checks.codes(values, title, len(index))
    if isinstance(values, pd.Series) and not values.index.equals(index):
        raise ValueError(f"{title} has another index than df; align it with df first")
    values = values if isinstance(values, pd.Series) else np.asarray(values)
    labelled = pd.Categorical(values).remove_unused_categories()  # keeps the user's order
    plain = [plain_text(label) for label in labelled.categories]
    if plain != list(labelled.categories):  # "male " is "male"
        codes = [list(dict.fromkeys(plain)).index(label) for label in plain]
        labelled = pd.Categorical.from_codes(
            np.array(codes)[labelled.codes], categories=list(dict.fromkeys(plain))
        )
    size = len(labelled.categories)
    numeric = is_numeric_dtype(labelled.categories)
    if numeric and size > MAX_NUMERIC_GROUPS:
        raise ValueError(
            f"{title} has {size} distinct values; bin a measurement, as in "
            f"groups={{{name!r}: df[{name!r}] > 65}}, and make text of numbers that are labels"
        )
    if size > MAX_LABELS:
        raise ValueError(
            f"{title} has {size} distinct labels, more than {MAX_LABELS}; merge those that are rare"
        )
    return labelled


def encode(column: pd.Series) -> pd.DataFrame:
    """Numeric feature columns from one column of a user's frame; missing values stay NaN.

    Labels become one 0/1 column "column=label" for each label but the first.
    """
    if is_numeric_dtype(column):
        numbers = column.astype(np.float64).to_frame()
        _check_range(numbers)  # the command of the audit leaves out columns that cannot be encoded
        return numbers
    title = f"feature column {column.name!r}"
    remedy = "leave it out with features=[...], or make it numeric (dates: days since entry)"
    if not isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype | np.dtypes.ObjectDType):
        raise TypeError(f"{title} has dtype {column.dtype}; {remedy}")
    labels = column.astype("category").cat.remove_unused_categories()
    size = len(labels.cat.categories)
    text = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
    if size > MAX_NUMERIC_GROUPS and 0 < 2 * len(text) < len(column):  # mostly numbers
        raise ValueError(f"{title} holds {text.iloc[0]!r} among numbers; correct or blank it")
    if not 2 <= size <= MAX_LABELS:
        raise ValueError(f"{title} has {size} distinct labels, not 2 to {MAX_LABELS}; {remedy}")
    dummies = pd.get_dummies(labels, prefix=str(column.name), prefix_sep="=", dtype=float)
    return dummies.iloc[:, 1:].mask(column.isna())
