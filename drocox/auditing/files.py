"""Somebody's file as a table, and no file written over another.

A file is text with a line of names and a line for each patient; commas, semicolons, tabs or bars
separate the fields; it may be packed (.gz, .bz2, .xz, .zip). Excel and Parquet are read by
pandas, with a package that must be installed. Any other file is refused, with what to save it as.
pandas is imported where it is needed, so that a wrong name is refused at once.
"""

import bz2
import csv
import gzip
import importlib.util
import io
import lzma
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

if TYPE_CHECKING:
    import pandas as pd

FIRST_ROW = 2  # below the names
SEPARATORS = (",", ";", "\t", "|")
UNPACKED_BY: dict[str, Callable] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class Format(NamedTuple):
    """Files that are no text: the function of pandas that reads them, and the package it needs."""

    reader: str
    package: str


FORMATS = {
    ".xlsx": Format("read_excel", "openpyxl"),
    ".xls": Format("read_excel", "xlrd"),
    ".parquet": Format("read_parquet", "pyarrow"),
}
READERS_COMPLAIN = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    csv.Error,
)
NAMELESS = re.compile(r"(Unnamed: \d+)?")  # what pandas calls a column of a sheet without a name


def check_source(name: str | Path) -> Path:
    """Refuse a file that cannot be read here, before anything slow is imported."""
    if re.match(r"[A-Za-z]\w+://", str(name)):
        raise ValueError(f"cannot read {name}: it is an address; download the file first")
    path = Path(name)
    if not path.exists():
        raise ValueError(f"cannot read {path}: there is no such file; check its name")
    needed = FORMATS.get(path.suffix.lower())
    if needed and importlib.util.find_spec(needed.package) is None:
        raise ValueError(
            f"cannot read {path}: a {path.suffix} file needs a package that is not here; run: pip "
            f"install {needed.package}; or save the file as CSV"
        )
    return path


def check_target(target: Path, source: Path) -> None:
    """Refuse to write where nothing can be written, and over a file that is no page.

    The file with the patients stays as it is, by whatever name it is called.
    """
    try:
        there = target.exists()
        if there and source.exists() and target.samefile(source):  # also by links and other names
            raise ValueError(f"{target} is the file with the patients; name another one to write")
        if target.is_file() and target.suffix.lower() not in (".html", ".htm"):
            raise ValueError(
                f"{target} exists and is no page; name another file to write, as p.html"
            )
        target.open("a").close()
        if not there:
            target.resolve().unlink()  # a link that leads nowhere stays
    except OSError as error:
        raise ValueError(f"cannot write {target}; name a file in a folder that exists") from error


def read_table(path: Path) -> "pd.DataFrame":
    """The table in a file.

    Names and texts lose spaces at their ends. Columns without a name, such as row numbers, are left
    out. The index is each patient's line in a text or row in a sheet.
    """
    other = FORMATS.get(path.suffix.lower())
    try:
        return _plain(_read_other(path, other) if other else _read_text(path))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"cannot read {path}: it is no UTF-8 text; save it as CSV UTF-8, Excel or Parquet"
        ) from error
    except READERS_COMPLAIN as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        advice = "; save it as CSV" if other else ""
        raise ValueError(f"cannot read {path}: {reason}{advice}") from error


def _refuse_doubled(names: list[str]) -> None:
    """Refuse names that occur twice."""
    if doubled := [name for name in names if name and names.count(name) > 1]:
        raise ValueError(f"it names {doubled[0]!r} twice; rename one of the columns")


def _plain(df: "pd.DataFrame") -> "pd.DataFrame":
    """Texts without what nobody sees, so that "male " is "male"; blank ones are missing."""
    from drocox.data import plain_text

    for name in df.select_dtypes(["object", "string"]):
        texts = df[name].map(plain_text)
        df[name] = texts.where(texts != "")
    return df


def _read_other(path: Path, other: Format) -> "pd.DataFrame":
    """A table in a sheet of Excel or in a Parquet file."""
    import pandas as pd

    df = getattr(pd, other.reader)(path)
    if other.reader == "read_excel":  # pandas gives a name that occurs twice a number
        first = pd.read_excel(path, header=None, nrows=1).iloc[0]
        _refuse_doubled([str(name).strip() for name in first.dropna()])
    names = ["" if NAMELESS.fullmatch(str(name)) else str(name).strip() for name in df.columns]
    df.columns = names
    df.index = pd.RangeIndex(FIRST_ROW, FIRST_ROW + len(df), name="row")
    df = df.loc[:, [name != "" for name in names]].dropna(how="all")  # sheets end in empty rows
    if df.empty:
        raise ValueError("it holds no patient; pass at least one line below the names")
    return df


def _read_text(path: Path) -> "pd.DataFrame":
    """A table in a text file."""
    import pandas as pd

    separator, names = _header(path)
    _refuse_doubled(names)
    layout = {"sep": separator, "skipinitialspace": True, "encoding": "utf-8-sig"}
    layout |= {"index_col": False, "low_memory": False}

    def read(**options: Any) -> pd.DataFrame:
        with warnings.catch_warnings():  # rows may end in separators; others are refused below
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            return pd.read_csv(path, **layout, **options)

    df = read().set_axis(names, axis=1)
    lines = _lines(path, separator, len(names))
    if df.empty:
        raise ValueError("it holds no patient; pass at least one line below the names")
    df.index = pd.Index(lines if len(lines) == len(df) else df.index + FIRST_ROW, name="line")
    df = df.loc[:, [name != "" for name in names]]
    if separator == ",":
        return df
    if floats := list(df.select_dtypes("float")):
        texts = read(dtype=str, usecols=[names.index(name) for name in floats])
        _refuse_thousands(texts.set_axis(df.index).set_axis(floats, axis=1))
    return _with_decimal_points(df)


def _lines(path: Path, separator: str, size: int) -> list[int]:
    """The line on which each patient ends; lines may be empty, and a text may go over several.

    A row with more fields than there are names is refused, unless the others are empty.
    """
    lines = []
    with _open(path) as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        for row in reader:
            if any(field.strip() for field in row[size:]):
                raise ValueError(
                    f"line {reader.line_num} has {len(row)} fields, and the first line {size} "
                    "names; name every column, and put text that holds a separator in quotes"
                )
            if row:
                lines.append(reader.line_num)
    return lines[1:]


def _open(path: Path) -> TextIO:
    """The text in a file, which may be packed."""
    if unpack := UNPACKED_BY.get(path.suffix.lower()):
        return unpack(path, "rt", encoding="utf-8-sig", newline="")
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


def _refuse_thousands(df: "pd.DataFrame") -> None:
    """Refuse numbers such as 1.234 beside 999: a point of thousands, or a decimal point?"""
    for name in df:
        known = df[name].dropna().str.strip()
        pointed = known[known.str.contains(".", regex=False)]
        if len(pointed) and known.str.fullmatch(r"-?[1-9]\d{0,2}(\.\d{3})*|0").all():
            first = pointed.iloc[0]
            raise ValueError(
                f"{name!r} holds {first} in line {pointed.index[0]}, which may be "
                f"{first.replace('.', '')}; leave out points of thousands, and write a fraction "
                "with a comma or with another digit"
            )


def _with_decimal_points(df: "pd.DataFrame") -> "pd.DataFrame":
    """Numbers with a decimal comma as numbers; a text among them stays, to be refused later."""
    import pandas as pd

    for name in df.select_dtypes(["object", "string"]):  # texts: pandas 3 keeps them apart
        known = df[name].dropna().astype(str)
        numbers = known.str.fullmatch(r"-?\d+(,\d+)?")
        if numbers.mean() > 0.5:
            pointed = known.where(~numbers, known.str.replace(",", "."))
            df[name] = pointed.reindex(df.index)
        if numbers.all():
            df[name] = pd.to_numeric(df[name], errors="coerce")
    return df
