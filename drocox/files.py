"""Somebody's file as a table, and no file written over another.

A file is text with a line of names and a line for each patient; commas, semicolons, tabs or bars
stand between the fields; it may be packed (.gz, .zip). What cannot be read so is refused with what
to do. pandas is imported where it is needed, so that a wrong name is refused at once.
"""

import csv
import gzip
import io
import os
import re
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
# files of other programs, and the function of pandas that reads them
OTHER_FORMATS = {
    ".xlsx": "read_excel",
    ".xls": "read_excel",
    ".ods": "read_excel",
    ".parquet": "read_parquet",
    ".feather": "read_feather",
    ".dta": "read_stata",
    ".sav": "read_spss",
    ".sas7bdat": "read_sas",
}


def check_source(name: str | Path) -> Path:
    """Refuse what is no text file, before anything slow is imported.

    Parameters
    ----------
    name : str or Path
        Of the file.

    Returns
    -------
    Path
    """
    if re.match(r"[a-z]+://", str(name)):
        raise ValueError(f"cannot read {name}: it is an address; download the file first")
    path = Path(name)
    if not path.exists():
        raise ValueError(f"cannot read {path}: there is no such file; check its name")
    reader = OTHER_FORMATS.get(path.suffix.lower())
    if reader:
        raise ValueError(
            f"cannot read {path}: a {path.suffix} file is no text; save it as CSV, in its own "
            f"program or by pandas.{reader}(…).to_csv(…, index=False)"
        )
    return path


def check_target(target: Path, source: Path) -> None:
    """Refuse to write where nothing can be written, and over a file that is no page.

    Parameters
    ----------
    target : Path
        The page to write.
    source : Path
        The file that is read: it stays as it is, by whatever name it is called.
    """
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise ValueError(f"cannot write {target}; name a file in a folder that exists")
    if not target.exists():
        return
    if source.exists() and target.samefile(source):  # links and other spellings of the name too
        raise ValueError(f"{target} is the file with the patients; name another one to write")
    if target.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{target} exists and is no page; name another file to write, as p.html")


def read_table(path: Path) -> "pd.DataFrame":
    """The table in a text file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    DataFrame
        Names without spaces at their ends; a column without a name, such as row numbers, is left
        out.
    """
    try:
        return _read(path)
    except UnicodeDecodeError as error:
        raise ValueError(f"cannot read {path}: it is no UTF-8 text; save it as such") from error
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:  # readers' complaints
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(f"cannot read {path}: {reason}") from error


def _read(path: Path) -> "pd.DataFrame":
    import pandas as pd

    separator, names = _header(path)
    if doubled := [name for name in names if name and names.count(name) > 1]:
        raise ValueError(f"its first line names {doubled[0]!r} twice; rename one of the columns")
    layout = {"sep": separator, "skipinitialspace": True, "encoding": "utf-8-sig"}
    with warnings.catch_warnings():
        # rows may end in separators; pandas warns where it would cut off more than those
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            df = pd.read_csv(path, index_col=False, low_memory=False, **layout)
        except pd.errors.ParserWarning:
            _refuse_long_rows(path, separator, len(names))
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            df = pd.read_csv(path, index_col=False, low_memory=False, **layout)
    if df.empty:
        raise ValueError("it holds no patient; pass at least one line below the names")
    df.columns = names
    df = df.loc[:, [name != "" for name in names]]
    return df if separator == "," else _with_decimal_points(df)


def _open(path: Path) -> TextIO:
    """The text in a file, which may be packed."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    if path.suffix.lower() == ".zip":
        archive = zipfile.ZipFile(path)
        names = archive.namelist()
        if len(names) != 1:
            raise ValueError(f"it holds {len(names)} files; pack one")
        return io.TextIOWrapper(archive.open(names[0]), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _header(path: Path) -> tuple[str, list[str]]:
    """The separator, which gives most names of columns, and these names."""
    with _open(path) as file:
        line = next((line for line in file if line.strip()), "")
    if not line:
        raise ValueError("it is empty; pass a line of names and a line for each patient")
    rows = {}
    for separator in SEPARATORS:
        row = next(csv.reader([line], delimiter=separator, skipinitialspace=True))
        rows[separator] = [name.strip() for name in row]
    best = max(SEPARATORS, key=lambda separator: len(rows[separator]))  # of equals the first
    return best, rows[best]


def _refuse_long_rows(path: Path, separator: str, size: int) -> None:
    """Refuse a row with more fields than there are names, unless the others are empty."""
    with _open(path) as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        for row in reader:
            if any(field.strip() for field in row[size:]):
                raise ValueError(
                    f"line {reader.line_num} has {len(row)} fields, and the first line {size} "
                    "names; name every column, and put text that holds a separator in quotes"
                )


def _with_decimal_points(df: "pd.DataFrame") -> "pd.DataFrame":
    """Numbers with a decimal comma as numbers."""
    import pandas as pd

    for name in df.select_dtypes(["object", "string"]):  # texts: pandas 3 keeps them apart
        text = df[name].astype(str)
        if text[df[name].notna()].str.fullmatch(r"-?\d+(,\d+)?").all():
            df[name] = pd.to_numeric(text.str.replace(",", "."), errors="coerce")
    return df
