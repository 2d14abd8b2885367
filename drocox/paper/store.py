"""Stores of finished runs: plain files that are complete or absent, with their provenance.

A folder of stores has one file ``<name>.csv.gz`` for each protocol of the paper (``as_published``,
``corrected``, ``forensic``) and for each study (``beyond/rivals`` and so on), with one row per
trained model. ``provenance.json`` records for each protocol its cost, machine, package versions and
the hashes of its files. While a sweep runs, every finished job is a file ``parts/<name>/<job>.csv``
whose first line records its cost. Plain text throughout: nothing in a store can run code.

The book's stores come with the package, in :data:`DEFAULT`. Runs are written there only in a source
checkout; an installed package writes into the current folder.
"""

import gzip
import hashlib
import io
import json
import shlex
import shutil
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper import StoreError
from drocox.paper.protocol import PROCEDURES, stacks

DEFAULT = Path(__file__).with_name("results")


class Job(Protocol):
    """One job of a sweep, such as a stack of models: its rows are one part of a store."""

    @property
    def name(self) -> str:
        """The name of its file."""

    @property
    def method(self) -> str:
        """The method or study by which costs are summed."""

    def keys(self) -> list[dict]:
        """The columns that identify its rows."""


class DamagedError(StoreError):
    """A file of a store is truncated or was edited."""


def own_folder() -> Path:
    """Folder that runs are written to unless one is given: the book's in a source checkout."""
    checkout = Path(__file__).parents[2] / "pyproject.toml"
    return DEFAULT if checkout.exists() else Path("results")


def command(name: str, out: Path | str | None = None) -> str:
    """The sweep command for a store, with ``--out`` unless the folder is the default."""
    protocol, _, study = name.partition("/")
    method = ["--method", study] if study else []
    folder = [] if out is None or Path(out) == DEFAULT else ["--out", shlex.quote(str(out))]
    return " ".join(["drocox sweep --protocol", protocol, *method, *folder])


def sha256(content: bytes) -> str:
    """Hash of a content, 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically: it is complete or absent, even if the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def to_csv(rows: pd.DataFrame) -> bytes:
    """Rows as they are stored: nine significant digits."""
    return rows.to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()


def from_csv(content: bytes) -> pd.DataFrame:
    """Rows as they are read back."""
    # all rows at once: a column may be empty in the first rows
    rows = pd.read_csv(io.BytesIO(content), dtype={"attribute": str}, low_memory=False)
    return rows.fillna({"attribute": ""})


def lines(rows: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """The keys of each row as text, in which 2, 2.0 and "2" are the same."""
    text = rows.reindex(columns=keys).to_csv(index=False, header=False, float_format="%g")
    return text.splitlines()


def job_lines(jobs: Iterable[Job]) -> tuple[list[str], pd.DataFrame]:
    """The key columns, and every key that should be stored with the number of its job."""
    keys = [key | {"_job": i} for i, job in enumerate(jobs) for key in job.keys()]
    wanted = pd.DataFrame(keys)
    columns = [name for name in wanted if name != "_job"]
    return columns, pd.DataFrame({"line": lines(wanted, columns), "job": wanted["_job"]})


@dataclass(frozen=True)
class Store:
    """One store: a file in a folder, its parts while it is unfinished, and its provenance."""

    folder: Path
    name: str  # "corrected", "beyond/rivals"

    @property
    def file(self) -> Path:
        """The file of all rows."""
        return self.folder / f"{self.name}.csv.gz"

    @property
    def parts(self) -> Path:
        """The folder of finished jobs while the store is unfinished."""
        return self.folder / "parts" / self.name

    @property
    def protocol(self) -> str:
        """The name of its record in ``provenance.json``."""
        return self.name.partition("/")[0]

    def _damaged(self, path: Path) -> DamagedError:
        advice = f"restore it, or delete it and run: {command(self.name, self.folder)}"
        return DamagedError(f"{path} is truncated or was edited; {advice}")

    def is_finished(self) -> bool:
        """Whether the file of all rows exists and is recorded."""
        return self.name in hashes(self.protocol, self.folder) and self.file.exists()

    def read(self) -> pd.DataFrame:
        """All rows of a finished store; a damaged file raises a DamagedError with its name."""
        digest = hashes(self.protocol, self.folder)[self.name]
        rows = _read(self.file, self.file.stat().st_mtime_ns, digest)
        if rows is None:
            raise self._damaged(self.file)
        rows = rows.copy()
        if "study" in rows:  # its name is that of the file, also where it was another when it ran
            rows["study"] = self.name.rpartition("/")[2]
        return rows

    def save_part(self, job: Job, rows: pd.DataFrame, **spent: float | None) -> None:
        """Store the rows of a finished job and its cost: ``cpu``, ``wall`` (s), ``peak`` (GB)."""
        body = to_csv(rows)
        header = {"rows": len(rows), "sha256": sha256(body), "method": job.method, **spent}
        described = json.dumps(header | {"job": vars(job)}).encode()
        content = b"# " + described + b"\n" + body
        _write(self.parts / f"{job.name}.csv", content)

    def load_part(self, job_name: str) -> tuple[dict, pd.DataFrame]:
        """Header and rows of a finished job; a damaged file raises a DamagedError with its name."""
        path = self.parts / f"{job_name}.csv"
        first, _, body = path.read_bytes().partition(b"\n")
        try:
            header = json.loads(first.removeprefix(b"# "))
            whole = sha256(body) == header["sha256"]
        except (ValueError, TypeError, KeyError):
            whole = False
        if not whole:
            raise self._damaged(path)
        return header, from_csv(body)

    def part_names(self) -> list[str]:
        """Names of finished jobs in an unfinished store, in the order of the protocol."""
        names = sorted(path.stem for path in self.parts.glob("*.csv"))
        if self.name not in PROCEDURES:
            return names
        place = {stack.name: i for i, stack in enumerate(stacks(self.name))}
        return sorted(names, key=lambda name: place.get(name, len(place)))

    def rows(self) -> pd.DataFrame:
        """All rows, of the file and of parts; a part replaces the file's rows of the same job."""
        parts = [self.load_part(name) for name in self.part_names()]
        frames = [rows for _, rows in parts]
        if self.is_finished():
            old = self.read()
            for header, _ in parts:
                old = old[~_is_of(old, header["job"])]
            frames.insert(0, old)
        if not frames:
            raise absent(self.name, self.folder)
        return pd.concat(frames, ignore_index=True)

    def finish(self, jobs: Sequence[Job], facts: dict) -> None:
        """Join all rows into one file in the order of the jobs, and record it.

        Costs are added to the recorded ones.
        """
        columns, wanted = job_lines(jobs)
        place = dict(zip(wanted["line"], wanted["job"], strict=True))
        rows = self.rows()
        order = [place.get(line, len(place)) for line in lines(rows, columns)]
        rows = rows.iloc[np.argsort(order, kind="stable")]
        content = to_csv(rows)
        extended = self.is_finished()
        _write(self.file, gzip.compress(content, mtime=0))
        spent = pd.DataFrame([self.load_part(name)[0] for name in self.part_names()])
        self._describe(len(rows), sha256(content), spent, facts, extended)
        shutil.rmtree(self.parts)

    def _describe(
        self, rows: int, digest: str, spent: pd.DataFrame, facts: dict, extended: bool
    ) -> None:
        """Record a finished store in ``provenance.json``."""
        known = load_provenance(self.folder)
        record = known.get(self.protocol, {})
        others = {n: h for n, h in record.get("sha256", {}).items() if n != self.name}
        if not (extended or others):
            record = {}
        minutes = record.get("core_minutes", {})
        for method, seconds in spent.groupby("method", sort=False)["cpu"].sum().items():
            before = minutes.get(method, 0) if extended else 0
            minutes = minutes | {method: round(before + seconds / 60, 1)}
        by_store = {name: n for name, n in record.get("stored", {}).items() if name in others}
        by_store[self.name] = rows
        machines = dict.fromkeys(others, record.get("machine")) | record.get("machines", {})
        peaks = [*spent["peak"].dropna(), record.get("peak_gb_per_worker")]
        facts = facts | {"data": record.get("data", {}) | facts.get("data", {})}
        record |= facts | {
            "rows": sum(by_store.values()),
            "stored": by_store,
            "sha256": record.get("sha256", {}) | {self.name: digest},
            "machines": machines | {self.name: facts.get("machine")},
            "command": command(self.protocol),
            "wall_minutes": round(record.get("wall_minutes", 0) + spent["wall"].sum() / 60, 1),
            "core_hours": round(sum(minutes.values()) / 60, 2),
            "core_minutes": minutes,
            "peak_gb_per_worker": max((peak for peak in peaks if peak is not None), default=None),
        }
        records = dict(sorted((known | {self.protocol: record}).items()))
        text = json.dumps(records, indent=1) + "\n"
        _write(self.folder / "provenance.json", text.encode())


@lru_cache(maxsize=16)
def _read(file: Path, changed: int, digest: str) -> pd.DataFrame | None:
    """Rows of a file, cached until its modification time ``changed`` differs; None if damaged."""
    try:
        content = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error):
        return None
    return from_csv(content) if sha256(content) == digest else None


def load_provenance(out: Path | str | None = None) -> dict:
    """The records of the finished protocols in a folder, by default the book's; {} without any."""
    path = Path(out or DEFAULT) / "provenance.json"
    if not path.exists():
        return {}
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
        whole = all(isinstance(record["sha256"], dict) for record in records.values())
    except (ValueError, TypeError, AttributeError, KeyError):
        whole = False
    if not whole:
        advice = "restore it, or delete it with the runs beside it and sweep again"
        raise DamagedError(f"{path} is truncated or was edited; {advice}")
    return records


def hashes(protocol: str, out: Path | str | None = None) -> dict[str, str]:
    """The hashes of a protocol's finished stores, by the names of the stores; {} without any."""
    return load_provenance(out).get(protocol, {"sha256": {}})["sha256"]


def load_runs(protocol: str = "as_published", *, out: Path | str | None = None) -> pd.DataFrame:
    """Load stored runs: one row per trained model.

    A damaged file is refused. Whether today's code still gives these rows is checked by ``drocox
    verify``, which trains again.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic", "beyond"}
        "beyond" is all studies, one after the other; "beyond/rivals", say, is one of them.
    out : path, optional
        Folder of the stores, by default the book's, which must hold the whole protocol. If a sweep
        into another folder is unfinished, or was restricted to some data sets, methods or repeats,
        the rows that exist are returned; so are new rows beside a finished protocol.

    Returns
    -------
    DataFrame
        Keys, ``val_...`` and ``test_...`` metrics, ``moved`` and ``unstable``, as a copy.
    """
    _checks.one_of(protocol, "protocol", (*PROCEDURES, "beyond", *hashes("beyond")))
    folder = Path(out or DEFAULT)
    names = [protocol]
    if protocol == "beyond":  # a folder with a file per study; unfinished ones come last
        names = list(hashes("beyond", folder))
        if out is not None:
            names += sorted(f"beyond/{path.name}" for path in (folder / "parts/beyond").glob("*"))
    frames = []
    for name in dict.fromkeys(names):
        store = Store(folder, name)
        if out is None and not store.is_finished():
            raise absent(name, folder)
        frames.append(store.read() if out is None else store.rows())
    if not frames:
        raise absent(protocol, folder)
    return pd.concat(frames, ignore_index=True).fillna({"attribute": ""})


def absent(name: str, folder: Path) -> StoreError:
    """The error for a missing store, with the command that creates it."""
    what = f"{folder} holds no finished {name!r} runs"
    return StoreError(f"{what}; run: {command(name, folder)}")


def _is_of(runs: pd.DataFrame, job: dict) -> pd.Series:
    """Which rows belong to the job with these fields."""
    keys = pd.Series({name: value for name, value in job.items() if value is not None})
    return (runs[keys.index] == keys).all(axis=1)


def rows_of(runs: pd.DataFrame, job: Job) -> pd.DataFrame:
    """Rows of one stack or job of a study, in the order in which they are stored; maybe none."""
    return runs[_is_of(runs, vars(job))].reset_index(drop=True)
