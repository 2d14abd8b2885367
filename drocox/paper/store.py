"""The store of finished runs, and where they came from.

A store is a folder. While a protocol runs, every finished stack is one file
``parts/<protocol>/<stack>.csv`` whose first line carries the hash of its rows and of the code and
data that made them; it is written under another name and renamed, so a file is whole or absent.
A finished protocol is one file ``<protocol>.csv.gz`` with one row per trained model, described in
``provenance.json``. Plain text throughout: nothing in a store can run code.
"""

import ast
import gzip
import hashlib
import io
import json
import os
import shutil
import tokenize
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES, KEYS, STORES, Stack, stacks

DEFAULT = Path(__file__).with_name("results")
DECIDING = (
    "kernels",
    "cox",
    "dro",
    "regularizers",
    "accuracy",
    "fairness",
    "evaluation",
    "training",
    "protocol",
    "runs",
)  # modules whose code decides numbers


class StoreError(RuntimeError):
    """A store is incomplete, damaged, or made by other code; the message says what to do."""


@cache
def code_hash() -> str:
    """Hash of the modules that decide numbers, blind to comments, docstrings and layout."""
    digest = hashlib.sha256()
    for name in DECIDING:
        source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        lines = source.splitlines()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
        for node in ast.walk(ast.parse(source)):
            kinds = ast.Module | ast.ClassDef | ast.FunctionDef
            if isinstance(node, kinds) and ast.get_docstring(node) is not None:
                span = slice(node.body[0].lineno - 1, node.body[0].end_lineno)
                lines[span] = [""] * len(lines[span])
        digest.update("".join("".join(lines).split()).encode())
    return digest.hexdigest()[:16]


@cache
def data_hash(dataset: str) -> str:
    """Hash of a loaded data set."""
    return load_dataset(dataset).sha256[:16]


def _today() -> dict:
    """What decides the numbers of a whole protocol, as provenance records it."""
    return {"code": code_hash(), "data": {d: data_hash(d) for d in ATTRIBUTES}}


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or absent, whatever happens meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _csv(rows: pd.DataFrame) -> bytes:
    return rows.to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()


def _frame(content: bytes) -> pd.DataFrame:
    text = ["protocol", "dataset", "model", "method", "attribute"]
    frame = pd.read_csv(io.BytesIO(content), dtype={c: str for c in text})
    return frame.fillna({"attribute": ""})


def part_path(out: Path, stack: Stack) -> Path:
    """File of a finished stack."""
    return Path(out) / "parts" / stack.protocol / f"{stack.name}.csv"


def save_part(out: Path, stack: Stack, rows: pd.DataFrame, **spent: float) -> None:
    """Store the rows of a finished stack, with what it cost (cpu, wall: seconds; peak: GB)."""
    body = _csv(rows)
    header = {
        "code": code_hash(),
        "data": data_hash(stack.dataset),
        "rows": len(rows),
        "sha256": hashlib.sha256(body).hexdigest(),
        **spent,
    }
    _write(part_path(out, stack), b"# " + json.dumps(header).encode() + b"\n" + body)


def load_part(out: Path, stack: Stack) -> tuple[dict, pd.DataFrame]:
    """Header and rows of a finished stack; refuse a damaged file by name."""
    path = part_path(out, stack)
    first, _, body = path.read_bytes().partition(b"\n")
    try:
        header = json.loads(first.removeprefix(b"# "))
        whole = hashlib.sha256(body).hexdigest() == header["sha256"]
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise StoreError(f"{path} is truncated or was edited; delete it and run the sweep again")
    return header, _frame(body)


def finish(out: Path, protocol: str, machine: dict) -> None:
    """Join the parts of a complete protocol into one file, describe it, and drop the parts."""
    headers, frames = zip(*(load_part(out, stack) for stack in stacks(protocol)), strict=True)
    if {h["code"] for h in headers} != {code_hash()}:
        raise StoreError(
            f"the parts of {protocol!r} in {out} were made by different code; check "
            f"and keep them with: drocox sweep --protocol {protocol} --revalidate"
        )
    content = _csv(pd.concat(frames, ignore_index=True))
    minutes: dict[str, float] = {}
    for stack, header in zip(stacks(protocol), headers, strict=True):
        minutes[stack.method] = minutes.get(stack.method, 0.0) + header["cpu"] / 60
    _write(Path(out) / f"{protocol}.csv.gz", gzip.compress(content, compresslevel=9, mtime=0))
    _describe(
        out,
        protocol,
        rows=sum(map(len, frames)),
        sha256=hashlib.sha256(content).hexdigest(),
        command=f"drocox sweep --protocol {protocol}",
        wall_minutes=round(sum(h["wall"] for h in headers) / 60, 1),
        core_hours=round(sum(h["cpu"] for h in headers) / 3600, 2),
        core_minutes={method: round(m, 1) for method, m in minutes.items()},
        peak_gb_per_worker=max(h["peak"] for h in headers),
        **machine,
    )
    shutil.rmtree(Path(out) / "parts" / protocol)


def load_provenance(out: Path | None = None) -> dict:
    """What is known about the finished protocols of a store."""
    path = Path(out or DEFAULT) / "provenance.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _describe(out: Path, protocol: str, **facts) -> None:
    """Add facts to the record of a finished protocol, and that today's code and data give it."""
    known = load_provenance(out)
    known[protocol] = known.get(protocol, {}) | facts | _today()
    _write(Path(out) / "provenance.json", json.dumps(known, indent=1, sort_keys=True).encode())


def stamp(out: Path, protocol: str) -> None:
    """Record that today's code and data give the stored runs, finished or in parts."""
    if protocol in load_provenance(out):
        return _describe(out, protocol)
    for stack in stacks(protocol):
        if part_path(out, stack).exists():
            header, rows = load_part(out, stack)
            save_part(out, stack, rows, **{k: header[k] for k in ("cpu", "peak", "wall")})


def read_runs(protocol: str, out: Path | None = None) -> pd.DataFrame:
    """Runs of a finished protocol, whatever code computed them; a damaged file is refused."""
    out = Path(out or DEFAULT)
    record, path = load_provenance(out).get(protocol), out / f"{protocol}.csv.gz"
    if record is None or not path.exists():
        raise StoreError(
            f"{out} holds no finished {protocol!r} runs; run: drocox sweep --protocol {protocol}"
        )
    try:
        content = gzip.decompress(path.read_bytes())
        whole = hashlib.sha256(content).hexdigest() == record["sha256"]
    except (OSError, EOFError, zlib.error):
        whole = False
    if not whole:
        raise StoreError(
            f"{path} is truncated or was edited; restore it, or delete it and run: "
            f"drocox sweep --protocol {protocol}"
        )
    return _frame(content)


def is_current(protocol: str, out: Path | None = None) -> bool:
    """Whether today's code and data are those of the finished runs."""
    record = load_provenance(out).get(protocol, {})
    return {key: record.get(key) for key in ("code", "data")} == _today()


@cache
def _load(protocol: str, out: Path) -> pd.DataFrame:
    frame = read_runs(protocol, out)
    if not is_current(protocol, out):
        raise StoreError(
            f"the code or data that decide numbers have changed since "
            f"{protocol}.csv.gz was computed; check and keep it with: "
            f"drocox sweep --protocol {protocol} --revalidate"
        )
    return frame


def load_runs(protocol: str = "as_published", *, out: Path | None = None) -> pd.DataFrame:
    """All runs of a finished protocol, ``"as_published"`` or ``"corrected"``: a row per model.

    Columns are keys, ``val_...`` and ``test_...`` metrics, and ``unstable``. Results are refused if
    the file is damaged, or if the code that decides numbers has changed since they were computed
    and nobody has revalidated them. ``out`` is the folder of the store, by default the book's.
    """
    _checks.one_of(protocol, "protocol", STORES)
    return _load(protocol, Path(out or DEFAULT)).copy()


def rows_of(runs: pd.DataFrame, stack: Stack) -> pd.DataFrame:
    """The rows of one stack, in grid order."""
    same = [runs[k] == vars(stack)[k] for k in KEYS if vars(stack).get(k) is not None]
    return runs[np.logical_and.reduce(same)].reset_index(drop=True)
