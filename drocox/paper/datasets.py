"""The three data sets of the paper, from files inside installed Python packages.

Loading only encodes: rows keep the order of the original files, missing values stay NaN.
Stacking, imputation and scaling are steps of the protocol, because that is where they can leak.
Nothing is downloaded; ``results/sources.toml`` says which package brings which file, and its hash.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tomllib
from collections import namedtuple
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.data import SurvivalData

Source = namedtuple("Source", "package file sha256 licence citation doi note")
_FILE = Path(__file__).with_name("results") / "sources.toml"
SOURCES = {name: Source(**facts) for name, facts in tomllib.loads(_FILE.read_text("utf-8")).items()}
# fmt: off
LABELS = {
    "age": ("age <= 65", "age > 65"), "gender": ("female", "male"), "race": ("non-white", "white"),
}
# what the package has shortened in the original SEER file
SHORTENED = {
    "Other": "Other (American Indian/AK Native, Asian/Pacific Islander)",
    "Married": "Married (including common law)", "Single ": "Single (never married)",
    "1": "Grade I", "2": "Grade II", "3": "Grade III",
    " anaplastic Grade IV": "anaplastic; Grade IV",
}
# fmt: on


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

    Parameters
    ----------
    name : {"flc", "support", "seer"}
        In any case.

    Returns
    -------
    SurvivalData
        A copy of one's own. Missing values are NaN: "flc" and "support" have some.
    """
    name = _checks.one_of(str(name).lower(), "data set", SOURCES)
    read = {"flc": _read_flc, "support": _read_support, "seer": _read_seer}[name]
    X, time, event, groups = read()  # kept in memory, and copied into the object
    return SurvivalData(name, X, time, event, groups, {a: LABELS[a] for a in groups})


def dataset_summary() -> pd.DataFrame:
    """Describe the three data sets: sizes, missing values, groups, origin, terms.

    Returns
    -------
    DataFrame
        One row per data set.
    """
    rows = {}
    for name, source in SOURCES.items():
        d = load_dataset(name)
        missing = d.X.isna().sum()
        sizes = []
        for a, labels in d.group_labels.items():
            counts = zip(labels, np.bincount(d.groups[a]), strict=True)
            sizes.append(" / ".join(f"{label}: {n:,}" for label, n in counts))
        rows[name] = {
            "rows": len(d),
            "events": int(d.event.sum()),
            "censoring_rate": float(1 - d.event.mean()),
            "features": d.X.shape[1],
            "missing": int(missing.sum()),
            "missing_by_feature": ", ".join(f"{f} {n}" for f, n in missing.items() if n) or "none",
            "attributes": ", ".join(d.groups),
            "group_sizes": "; ".join(sizes),
            **source._asdict(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("dataset")


def original_seer_csv() -> bytes:
    """Rebuild the original SEER file, byte for byte, from the package's shortened one.

    Returns
    -------
    bytes
    """
    rows = _seer_rows().replace(SHORTENED)
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
        raise ModuleNotFoundError(
            f"data set {name!r} is a file of a package that is not "
            f"installed; run: pip install {source.package}"
        )
    path = Path(spec.origin).parent / inside
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
    if found != source.sha256:
        raise RuntimeError(
            f"{source.file} differs from the file of {source.package} (sha256 "
            f"{source.sha256}, found {found}); run: pip install {source.package}"
        )
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
    X = pd.DataFrame(
        {
            "age>65": raw["num_age"] > 65,
            "male": raw["fac_sex"] == "male",
            "white": raw["fac_race"] == "white",
            "num.co": raw["num_num_co"],
            "diabetes": raw["fac_diabetes"] == "Y",
            "dementia": raw["fac_dementia"] == "Y",
            "ca": _ranks(raw["fac_ca"], "no yes metastatic"),
        }
        | {f: raw[f"num_{f}"] for f in "meanbp hrt resp temp wblc sod crea".split()}
    )
    groups = {"age": X["age>65"], "gender": X["male"], "race": X["white"]}
    return X, raw["time"], raw["event"], groups


@cache
def _read_seer() -> tuple:
    raw = _seer_rows()
    grade = raw["differentiate"].str.split().str[0]
    X = pd.DataFrame(
        {
            "age>65": raw["Age"] > 65,
            "white": raw["Race"] == "White",
            "marital": _ranks(raw["Marital_Status"], "Married Divorced Single Widowed Separated"),
            "t_stage": _ranks(raw["T_Stage"], "T1 T2 T3 T4"),
            "n_stage": _ranks(raw["N_Stage"], "N1 N2 N3"),
            "6th_stage": _ranks(raw["6th_Stage"], "IIA IIB IIIA IIIB IIIC"),
            "grade": _ranks(grade, "Moderately Poorly Well Undifferentiated"),  # II, III, I, IV
            "a_stage": raw["A_Stage"] == "Distant",
            "tumor_size": raw["Tumor_Size"],
            "estrogen": raw["Estrogen_Status"] == "Negative",
            "progesterone": raw["Progesterone_Status"] == "Negative",
            "nodes_examined": raw["Regional_Node_Examined"],
            "nodes_positive": raw["Reginol_Node_Positive"],
        }
    )
    groups = {"age": X["age>65"], "race": X["white"]}
    return X, raw["Survival_Months"], raw["Status"] == "Dead", groups


def _seer_rows() -> pd.DataFrame:
    """The package's SEER rows in the original order: row i is the package's row order[i]."""
    order = np.loadtxt(Path(__file__).with_name("seer_order.txt"), dtype=int)
    return pd.read_csv(_source_file("seer")).iloc[order].reset_index(drop=True)


def _ranks(labels: pd.Series, order: str) -> pd.Series:
    """Code labels by their position in ``order``, a blank-separated list."""
    return labels.str.strip().map({label: code for code, label in enumerate(order.split())})
