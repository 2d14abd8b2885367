"""The three data sets of the paper, from files inside installed Python packages.

Loading only encodes: rows keep the order of the original files, missing values stay NaN.
Stacking, imputation and scaling are steps of the protocol, because that is where they can leak.
Nothing is downloaded: ``results/sources.toml`` names the package, file and hash of each data set,
and ``results/coding.toml`` has the coding of its columns.
"""

import hashlib
import importlib.util
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.data import SurvivalData

_FACTS = Path(__file__).with_name("results")
CODING = tomllib.loads((_FACTS / "coding.toml").read_text("utf-8"))
SOURCES = tomllib.loads((_FACTS / "sources.toml").read_text("utf-8"))


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
        A copy. Missing values are NaN: "flc" and "support" have some.
    """
    name = _checks.one_of(str(name).lower(), "data set", SOURCES)
    X, time, event, groups = _read(name)  # kept in memory, and copied into the object
    return SurvivalData(name, X, time, event, groups, {a: CODING["labels"][a] for a in groups})


def measured(name: str, expression: str) -> np.ndarray:
    """A measurement in a data set's file that is not a feature, such as age in years.

    ``expression`` is in the columns of the file; rows are in the order of :func:`load_dataset`.
    """
    return _coded(_rows(name), expression).to_numpy(dtype=float)


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
        for attribute, (zero, one) in d.group_labels.items():
            counts = np.bincount(d.groups[attribute])
            sizes.append(f"{zero}: {counts[0]:,} / {one}: {counts[1]:,}")
        rows[name] = {
            "rows": len(d),
            "events": int(d.event.sum()),
            "censoring_rate": float(1 - d.event.mean()),
            "features": d.X.shape[1],
            "missing": int(missing.sum()),
            "missing_by_feature": ", ".join(f"{f} {n}" for f, n in missing.items() if n) or "none",
            "attributes": ", ".join(d.groups),
            "group_sizes": "; ".join(sizes),
            **source,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("dataset")


def original_seer_csv() -> bytes:
    """Rebuild the original SEER file, byte for byte, from the package's shortened one."""
    rows = _rows("seer").replace(CODING["seer"]["shortened"])
    rows["Grade"] = rows.pop("differentiate") + "; " + rows["Grade"]
    rows.insert(3, "", "")  # the original has an empty fourth column
    rows.columns = rows.columns.str.replace("_", " ")
    rows = rows.rename(columns={"Race": "Race ", "T Stage": "T Stage "})
    return rows.to_csv(index=False, lineterminator="\r\n").encode()


@cache
def installed_file(file: str, package: str, sha256: str, extra: str) -> Path:
    """Path of a file inside an installed package, found without importing it and checked by hash.

    ``file`` begins with the name of the module; ``package`` is the requirement that brings it, and
    ``extra`` names the extra of drocox that has this requirement.
    """
    module, _, inside = file.partition("/")
    advice = f"{_checks.install(extra)}, which brings {package}"
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no package {module!r} with the file {inside}; {advice}")
    path = Path(spec.origin).parent / inside
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
    if found != sha256:
        what = f"{file} differs from the file of {package}"
        raise RuntimeError(f"{what} (sha256 {sha256}, found {found}); {advice}")
    return path


def _rows(name: str) -> pd.DataFrame:
    """The rows of a file in the original order; of SEER, row i is the package's row order[i]."""
    source = SOURCES[name]
    path = installed_file(source["file"], source["package"], source["sha256"], "paper")
    rows = pd.read_csv(path, **CODING[name]["read"])
    if name != "seer":
        return rows
    order = np.loadtxt(Path(__file__).with_name("seer_order.txt"), dtype=int)
    return rows.iloc[order].reset_index(drop=True)


def _coded(rows: pd.DataFrame, how: str | list[str]) -> pd.Series:
    """An expression in the columns, or the labels of a column coded by their place in a list."""
    if isinstance(how, str):
        return rows.eval(how, engine="python")
    column, *labels = how
    return rows[column].str.strip().map({label: code for code, label in enumerate(labels)})


@cache
def _read(name: str) -> tuple:
    """Features, time, event and groups of a data set."""
    rows = _rows(name)
    coding = CODING[name]
    X = pd.DataFrame({feature: _coded(rows, how) for feature, how in coding["features"].items()})
    groups = {attribute: _coded(rows, how) for attribute, how in coding["groups"].items()}
    return X, _coded(rows, coding["time"]), _coded(rows, coding["event"]), groups
