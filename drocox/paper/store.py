"""The store of finished runs: its files, written whole, and read only if they are today's.

A store is a folder. While a protocol runs, every finished stack is one file
``parts/<protocol>/<stack>.csv`` whose first line carries the hash of its rows and of the code and
data that made them (see :mod:`drocox.paper.provenance`); it is written under another name and
renamed, so a file is whole or absent. A finished protocol is one file ``<protocol>.csv.gz`` with
one row per trained model, described in ``provenance.json``. Plain text throughout: nothing in a
store can run code.

The stores of the book come with the package, in :data:`DEFAULT`, and are read from there. Runs are
written there only in a source checkout; an installed package writes into the current folder.
"""

import gzip
import io
import json
import shlex
import shutil
import zlib
from functools import lru_cache
from pathlib import Path

import pandas as pd

from drocox import _checks
from drocox.paper import provenance
from drocox.paper.stores import known_stores
from drocox.paper.work import WORK, StoreError, Unit, runner_of

DEFAULT = Path(__file__).with_name("results")
SPENT = ("cpu", "wall", "peak")  # what a stack cost: seconds of one thread, seconds, GB

Part = tuple[dict, pd.DataFrame]  # of a finished stack: what its file begins with, and rows


class DamagedError(StoreError):
    """A file of a store is truncated or was edited."""


def _today(unit: Unit) -> dict:
    """What decides the numbers of a unit of work by now."""
    return provenance.today(unit.code, unit.dataset)


def own_folder() -> Path:
    """Folder that runs are written to unless one is given.

    Returns
    -------
    Path
        :data:`DEFAULT` in a source checkout, else ``results`` in the current folder: what is
        installed stays as it is.
    """
    checkout = Path(__file__).parents[2] / "pyproject.toml"
    return DEFAULT if checkout.exists() else Path("results")


def command(protocol: str, out: Path | None = None, *flags: str) -> str:
    """The sweep to advise, with ``--out`` where a folder other than the default was given.

    Parameters
    ----------
    protocol : str
    out : path, optional
    *flags : str
        Further arguments.

    Returns
    -------
    str
    """
    folder = [] if out is None or Path(out) == DEFAULT else ["--out", shlex.quote(str(out))]
    return " ".join(["drocox sweep --protocol", protocol, *flags, *folder])


def _damaged(path: Path, protocol: str, out: Path) -> DamagedError:
    advice = f"restore it, or delete it and run: {command(protocol, out)}"
    return DamagedError(f"{path} is truncated or was edited; {advice}")


def _stale(path: Path, protocol: str, out: Path) -> StoreError:
    what = f"{path} was made by other code or data; give another folder with --out"
    again = "or delete it and run the command below without --revalidate"
    keep = command(protocol, out, "--revalidate")
    return StoreError(f"{what}; {again}; or keep it if a recomputed sample agrees: {keep}")


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or absent, also if the process is killed meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def _csv(rows: pd.DataFrame) -> bytes:
    return rows.to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()


def _frame(content: bytes) -> pd.DataFrame:
    # all rows at once: a column of one study is empty in the first rows of another
    rows = pd.read_csv(io.BytesIO(content), dtype={"attribute": str}, low_memory=False)
    return rows.fillna({"attribute": ""})


def part_path(out: Path, stack: Unit) -> Path:
    """File of a finished stack.

    Parameters
    ----------
    out : path
        Folder of the store.
    stack : Stack, or another unit of work

    Returns
    -------
    Path
    """
    return Path(out) / "parts" / stack.protocol / f"{stack.name}.csv"


def save_part(out: Path, stack: Unit, rows: pd.DataFrame, **spent: float | None) -> None:
    """Store the rows of a finished stack.

    Parameters
    ----------
    out : path
        Folder of the store.
    stack : Stack, or another unit of work
    rows : DataFrame
        From :func:`drocox.paper.run.run_stack`.
    **spent : float
        What it cost, by :data:`SPENT`: ``cpu`` and ``wall`` in seconds, ``peak`` in GB (None where
        not known).
    """
    body = _csv(rows)
    facts = {"rows": len(rows), "sha256": provenance.sha256(body), **spent}
    header = _today(stack) | facts
    _write(part_path(out, stack), b"# " + json.dumps(header).encode() + b"\n" + body)


def load_part(out: Path, stack: Unit, *, any_code: bool = False) -> Part:
    """Header and rows of a finished stack; a damaged file is refused by name.

    Parameters
    ----------
    out : path
        Folder of the store.
    stack : Stack, or another unit of work
    any_code : bool
        Whether to accept rows that other code made, or other data.

    Returns
    -------
    header : dict
    rows : DataFrame
    """
    path = part_path(out, stack)
    first, _, body = path.read_bytes().partition(b"\n")
    try:
        header = json.loads(first.removeprefix(b"# "))
        whole = provenance.sha256(body) == header["sha256"]
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise _damaged(path, stack.protocol, out)
    return header, _frame(body)


def load_parts(protocol: str, out: Path, *, any_code: bool = False) -> dict[Unit, Part]:
    """Headers and rows of the finished stacks of an unfinished protocol.

    Parameters
    ----------
    protocol : str
    out : path
        Folder of the store.
    any_code : bool
        Whether to accept rows that other code made, or other data.

    Returns
    -------
    dict
        In the order of the protocol; empty if there are none.
    """
    there = [
        stack for stack in runner_of(protocol).stacks(protocol) if part_path(out, stack).exists()
    ]
    return {stack: load_part(out, stack, any_code=any_code) for stack in there}


def _join(parts: dict[Unit, Part]) -> pd.DataFrame:
    return pd.concat([rows for _, rows in parts.values()], ignore_index=True)


def finish(out: Path, protocol: str, machine: dict) -> None:
    """Join the parts of a complete protocol into one file, describe it, and drop the parts.

    Parameters
    ----------
    out : path
        Folder of the store.
    protocol : str
    machine : dict
        Facts about the machine, for the provenance.
    """
    parts = load_parts(protocol, out)
    wanted = runner_of(protocol).stacks(protocol)
    missing = [stack.name for stack in wanted if stack not in parts]
    if missing:
        what = f"{len(missing)} stacks of {protocol!r} are missing in {out}, for example"
        raise StoreError(f"{what} {missing[0]}; run: {command(protocol, out)}")
    content = _csv(_join(parts))
    _write(Path(out) / f"{protocol}.csv.gz", gzip.compress(content, mtime=0))
    spent = pd.DataFrame([header | {"method": s.method} for s, (header, _) in parts.items()])
    of_method = spent.groupby("method", sort=False)[["cpu", "rows"]].sum()
    facts = {
        "rows": int(spent["rows"].sum()),
        "sha256": provenance.sha256(content),
        "command": command(protocol),
        "wall_minutes": round(spent["wall"].sum() / 60, 1),
        "core_hours": round(spent["cpu"].sum() / 3600, 2),
        "core_minutes": (of_method["cpu"] / 60).round(1).to_dict(),
        "seconds_per_model": (of_method["cpu"] / of_method["rows"]).round(2).to_dict(),
        "peak_gb_per_worker": max(spent["peak"].dropna(), default=None),
    }
    _describe(out, protocol, facts | machine)
    shutil.rmtree(Path(out) / "parts" / protocol)


def load_provenance(out: Path | None = None) -> dict:
    """What is known about the finished protocols of a store.

    Parameters
    ----------
    out : path, optional
        Folder of the store, by default the book's.

    Returns
    -------
    dict
        One record per finished protocol; empty if there is none.
    """
    path = Path(out or DEFAULT) / "provenance.json"
    if not path.exists():
        return {}
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
        whole = all("sha256" in record for record in records.values())
    except (ValueError, TypeError, AttributeError):
        whole = False
    if not whole:
        advice = "restore it, or delete it with the runs beside it and sweep again"
        raise DamagedError(f"{path} is truncated or was edited; {advice}")
    return records


def is_finished(protocol: str, out: Path | None = None) -> bool:
    """Whether a store holds a whole protocol: its file and what is known about it.

    Parameters
    ----------
    protocol : str
    out : path, optional
        Folder of the store, by default the book's.

    Returns
    -------
    bool
    """
    file = Path(out or DEFAULT) / f"{protocol}.csv.gz"
    return protocol in load_provenance(out) and file.exists()


def is_current(protocol: str, out: Path | None = None) -> bool:
    """Whether today's code and data are those of the finished runs.

    Parameters
    ----------
    protocol : str
    out : path, optional
        Folder of the store, by default the book's.

    Returns
    -------
    bool
    """
    record = load_provenance(out).get(protocol, {})
    return record | provenance.today(protocol) == record


def _describe(out: Path, protocol: str, facts: dict) -> None:
    """Add facts to the record of a finished protocol, and that today's code and data give it."""
    known = load_provenance(out)
    known[protocol] = known.get(protocol, {}) | facts | provenance.today(protocol)
    _write(Path(out) / "provenance.json", json.dumps(known, indent=1, sort_keys=True).encode())


def stamp(out: Path, protocol: str) -> None:
    """Record that today's code and data give the stored runs, finished or in parts.

    Parameters
    ----------
    out : path
        Folder of the store.
    protocol : str
    """
    if is_finished(protocol, out):
        _describe(out, protocol, {})
        return
    for stack, (header, rows) in load_parts(protocol, out, any_code=True).items():
        save_part(out, stack, rows, **{name: header[name] for name in SPENT})


@lru_cache(maxsize=8)
def _load(protocol: str, out: Path, changed: int) -> pd.DataFrame:
    """Finished runs, kept in memory until their file changes (``changed``: when it last did)."""
    path = out / f"{protocol}.csv.gz"
    try:
        content = gzip.decompress(path.read_bytes())
        whole = provenance.sha256(content) == load_provenance(out)[protocol]["sha256"]
    except (OSError, EOFError, zlib.error):
        whole = False
    if not whole:
        raise _damaged(path, protocol, out)
    return _frame(content)


def load_runs(
    protocol: str = "as_published", *, out: Path | None = None, any_code: bool = False
) -> pd.DataFrame:
    """Load stored runs: one row per trained model.

    Results are refused if a file is damaged, or if the code or data that decide numbers have
    changed since they were computed and nobody has revalidated them.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic", "beyond"}
    out : path, optional
        Folder of the store, by default the book's, which must hold the whole protocol. Where a
        sweep into a folder that is given is not finished, or was restricted to some data sets,
        methods or repeats, the rows that are there are returned.
    any_code : bool
        Whether to accept rows that other code made, or other data.

    Returns
    -------
    DataFrame
        Keys, ``val_...`` and ``test_...`` metrics, ``moved`` and ``unstable``; the caller's own
        copy.
    """
    _checks.one_of(protocol, "protocol", known_stores())
    folder = Path(out or DEFAULT)
    path = folder / f"{protocol}.csv.gz"
    if is_finished(protocol, folder):
        return _load(protocol, folder, path.stat().st_mtime_ns).copy()
    parts = {} if out is None else load_parts(protocol, folder, any_code=any_code)
    if not parts:
        what = f"{folder} holds no finished {protocol!r} runs"
        raise StoreError(f"{what}; run: {command(protocol, folder)}")
    return _join(parts)


def version(protocol: str, out: Path | None = None) -> tuple | None:
    """What changes whenever the finished runs of a protocol do.

    Parameters
    ----------
    protocol : str
    out : path, optional
        Folder of the store, by default the book's.

    Returns
    -------
    tuple or None
        The folder, and when its runs and those of the forensic store last changed; None if the
        protocol is not finished.
    """
    if not is_finished(protocol, out):
        return None
    folder = Path(out or DEFAULT)
    files = [folder / f"{name}.csv.gz" for name in (protocol, "forensic")]
    return folder, *(file.stat().st_mtime_ns for file in files if file.exists())


def rows_of(runs: pd.DataFrame, stack: Unit) -> pd.DataFrame:
    """Rows of one stack, in the order in which they are stored.

    Parameters
    ----------
    runs : DataFrame
    stack : Stack, or another unit of work

    Returns
    -------
    DataFrame
        Without rows if the stack is not stored.
    """
    keys = pd.Series({k: v for k, v in vars(stack).items() if v is not None})
    rows = runs[(runs[keys.index] == keys).all(axis=1)].reset_index(drop=True)
    if WORK[stack.protocol].uniform:
        return rows
    empty = rows.isna() | (rows == "")  # columns of other studies
    return rows.loc[:, ~empty.all()]
