"""The store of finished runs, and where they came from.

A store is a folder. While a protocol runs, every finished stack is one file
``parts/<protocol>/<stack>.csv`` whose first line carries the hash of its rows and of the code and
data that made them; it is written under another name and renamed, so a file is whole or absent.
A finished protocol is one file ``<protocol>.csv.gz`` with one row per trained model, described in
``provenance.json``. Plain text throughout: nothing in a store can run code.

The stores of the book come with the package, in :data:`DEFAULT`, and are read from there. Runs are
written there only in a source checkout; an installed package writes into the current folder.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import keyword
import os
import shlex
import shutil
import tokenize
import zlib
from collections.abc import Iterator
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES, KEYS, STORES, Stack, stacks

DEFAULT = Path(__file__).with_name("results")

# modules whose code decides the numbers of trained and judged models
_TRAINING = (
    "kernels",
    "cox",
    "dro",
    "regularizers",
    "concordance",
    "accuracy",
    "fairness",
    "evaluation",
    "training",
    "data",
    "paper.datasets",
    "paper.protocol",
    "paper.prepare",
    "paper.run",
)
DECIDING = dict.fromkeys(STORES, _TRAINING)  # by store

# layout among the tokens of a source: no token of Python looks like these
INDENT = "<indent>"
DEDENT = "<dedent>"
NEWLINE = "<newline>"


class StoreError(RuntimeError):
    """A store is incomplete, damaged, or made by other code; the message says what to do."""


def _pieces(source: str) -> Iterator[str]:
    """Tokens of a source, without comments and blank lines; layout by name.

    An f-string is one piece in every version of Python; since 3.12 ``tokenize`` takes it apart.
    """
    names = {tokenize.INDENT: INDENT, tokenize.DEDENT: DEDENT, tokenize.NEWLINE: NEWLINE}
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER)
    opening = getattr(tokenize, "FSTRING_START", None)
    closing = getattr(tokenize, "FSTRING_END", None)
    starts = [0]  # of the lines, in characters
    for line in io.StringIO(source):
        starts.append(starts[-1] + len(line))
    depth = 0
    begin = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == opening:
            depth += 1
            if depth == 1:
                begin = starts[token.start[0] - 1] + token.start[1]
        elif token.type == closing:
            depth -= 1
            if depth == 0:
                yield source[begin : starts[token.end[0] - 1] + token.end[1]]
        elif depth == 0 and token.type not in nothing:
            yield names.get(token.type, token.string)


def _is_text(token: str) -> bool:
    """Whether a token is a plain string."""
    return token.lstrip("rRuUbB").startswith(('"', "'"))


def code_tokens(source: str) -> list[str]:
    """What decides numbers in a source: its tokens with indentation, in order.

    Comments, docstrings, blank lines and the layout inside brackets do not count, nor does a comma
    before a closing bracket, unless it makes a tuple.

    Parameters
    ----------
    source : str
        Text of a Python module.

    Returns
    -------
    list of str
    """
    tokens = [NEWLINE]  # so that the docstring of the module follows one, too
    brackets: list[tuple[bool, int]] = []  # open ones: can a comma make a tuple, commas so far
    for text in _pieces(source):
        last = tokens[-1]
        if text == NEWLINE and _is_text(last) and tokens[-2] in (NEWLINE, INDENT, DEDENT):
            tokens.pop()  # a statement that is a string and nothing else: a docstring
            continue
        if text in ("(", "[", "{"):
            # f(x,) is a call and [x,] a list, but (x,) is a tuple and y[x,] takes one
            is_name = last.isidentifier() and not keyword.iskeyword(last)
            after_value = is_name or last in (")", "]")
            brackets.append(({"(": not after_value, "[": after_value}.get(text, False), 0))
        elif text in (")", "]", "}"):
            makes_tuple, commas = brackets.pop()
            if last == "," and not (makes_tuple and commas == 1):
                tokens.pop()
        elif text == "," and brackets:
            makes_tuple, commas = brackets[-1]
            brackets[-1] = (makes_tuple, commas + 1)
        tokens.append(text)
    return tokens


@cache
def code_hash(name: str) -> str:
    """Hash of the modules that decide the numbers of a store.

    Parameters
    ----------
    name : {"as_published", "corrected", "forensic"}

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for module in DECIDING[name]:
        path = package.joinpath(*module.split(".")).with_suffix(".py")
        tokens = code_tokens(path.read_text(encoding="utf-8"))
        digest.update("\0".join([module, *tokens]).encode())
    return digest.hexdigest()[:16]


@cache
def data_hash(dataset: str) -> str:
    """Hash of a loaded data set.

    Parameters
    ----------
    dataset : {"flc", "support", "seer"}

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    return load_dataset(dataset).sha256[:16]


def _today(protocol: str) -> dict:
    """What decides the numbers of a whole protocol, as provenance records it."""
    return {"code": code_hash(protocol), "data": {d: data_hash(d) for d in ATTRIBUTES}}


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
    """File of a finished stack.

    Parameters
    ----------
    out : path
        Folder of the store.
    stack : Stack

    Returns
    -------
    Path
    """
    return Path(out) / "parts" / stack.protocol / f"{stack.name}.csv"


def save_part(out: Path, stack: Stack, rows: pd.DataFrame, **spent: float | None) -> None:
    """Store the rows of a finished stack.

    Parameters
    ----------
    out : path
        Folder of the store.
    stack : Stack
    rows : DataFrame
        From :func:`drocox.paper.run.run_stack`.
    **spent : float
        What it cost: ``cpu`` and ``wall`` in seconds, ``peak`` in GB (None where not known).
    """
    body = _csv(rows)
    header = {
        "code": code_hash(stack.protocol),
        "data": data_hash(stack.dataset),
        "rows": len(rows),
        "sha256": hashlib.sha256(body).hexdigest(),
        **spent,
    }
    _write(part_path(out, stack), b"# " + json.dumps(header).encode() + b"\n" + body)


def load_part(out: Path, stack: Stack) -> tuple[dict, pd.DataFrame]:
    """Header and rows of a finished stack; a damaged file is refused by name.

    Parameters
    ----------
    out : path
        Folder of the store.
    stack : Stack

    Returns
    -------
    header : dict
    rows : DataFrame
    """
    path = part_path(out, stack)
    first, _, body = path.read_bytes().partition(b"\n")
    try:
        header = json.loads(first.removeprefix(b"# "))
        whole = hashlib.sha256(body).hexdigest() == header["sha256"]
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise StoreError(
            f"{path} is truncated or was edited; delete it and run: {command(stack.protocol, out)}"
        )
    return header, _frame(body)


def is_current_part(stack: Stack, header: dict) -> bool:
    """Whether a finished stack was made by today's code from today's data.

    Parameters
    ----------
    stack : Stack
    header : dict
        From :func:`load_part`.

    Returns
    -------
    bool
    """
    today = (code_hash(stack.protocol), data_hash(stack.dataset))
    return (header["code"], header["data"]) == today


def load_parts(protocol: str, out: Path) -> dict[Stack, tuple[dict, pd.DataFrame]]:
    """Headers and rows of the finished stacks of an unfinished protocol, whoever made them.

    Parameters
    ----------
    protocol : str
    out : path
        Folder of the store.

    Returns
    -------
    dict
        In the order of the protocol; empty if there are none.
    """
    there = [stack for stack in stacks(protocol) if part_path(out, stack).exists()]
    return {stack: load_part(out, stack) for stack in there}


def _refuse_stale(parts: dict[Stack, tuple[dict, pd.DataFrame]], protocol: str, out: Path) -> None:
    """Refuse parts of which one was made by other code or data."""
    for stack, (header, _) in parts.items():
        if not is_current_part(stack, header):
            raise StoreError(
                f"{part_path(out, stack)} was made by other code or data; check and keep what is "
                f"there with: {command(protocol, out, '--revalidate')}"
            )


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
    if missing := [stack.name for stack in stacks(protocol) if stack not in parts]:
        raise StoreError(
            f"{len(missing)} stacks of {protocol!r} are missing in {out}, for example "
            f"{missing[0]}; run: {command(protocol, out)}"
        )
    _refuse_stale(parts, protocol, out)
    headers = [header for header, _ in parts.values()]
    seconds: dict[str, float] = {}
    models: dict[str, int] = {}
    for stack, (header, rows) in parts.items():
        seconds[stack.method] = seconds.get(stack.method, 0.0) + header["cpu"]
        models[stack.method] = models.get(stack.method, 0) + len(rows)
    content = _csv(pd.concat([rows for _, rows in parts.values()], ignore_index=True))
    _write(Path(out) / f"{protocol}.csv.gz", gzip.compress(content, compresslevel=9, mtime=0))
    _describe(
        out,
        protocol,
        rows=sum(models.values()),
        sha256=hashlib.sha256(content).hexdigest(),
        command=command(protocol),
        wall_minutes=round(sum(h["wall"] for h in headers) / 60, 1),
        core_hours=round(sum(seconds.values()) / 3600, 2),
        core_minutes={method: round(s / 60, 1) for method, s in seconds.items()},
        seconds_per_model={method: round(s / models[method], 2) for method, s in seconds.items()},
        peak_gb_per_worker=max((h["peak"] for h in headers if h["peak"]), default=None),
        **machine,
    )
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
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _describe(out: Path, protocol: str, **facts) -> None:
    """Add facts to the record of a finished protocol, and that today's code and data give it."""
    known = load_provenance(out)
    known[protocol] = known.get(protocol, {}) | facts | _today(protocol)
    _write(Path(out) / "provenance.json", json.dumps(known, indent=1, sort_keys=True).encode())


def stamp(out: Path, protocol: str) -> None:
    """Record that today's code and data give the stored runs, finished or in parts.

    Parameters
    ----------
    out : path
        Folder of the store.
    protocol : str
    """
    if protocol in load_provenance(out):
        _describe(out, protocol)
        return
    for stack, (header, rows) in load_parts(protocol, out).items():
        save_part(out, stack, rows, **{k: header[k] for k in ("cpu", "peak", "wall")})


def read_runs(protocol: str, out: Path | None = None) -> pd.DataFrame:
    """Runs of a finished protocol, whatever code computed them; a damaged file is refused.

    Parameters
    ----------
    protocol : str
    out : path, optional
        Folder of the store, by default the book's.

    Returns
    -------
    DataFrame
        One row per trained model.
    """
    out = Path(out or DEFAULT)
    record = load_provenance(out).get(protocol)
    path = out / f"{protocol}.csv.gz"
    if record is None or not path.exists():
        raise StoreError(
            f"{out} holds no finished {protocol!r} runs; run: {command(protocol, out)}"
        )
    try:
        content = gzip.decompress(path.read_bytes())
        whole = hashlib.sha256(content).hexdigest() == record["sha256"]
    except (OSError, EOFError, zlib.error):
        whole = False
    if not whole:
        raise StoreError(
            f"{path} is truncated or was edited; restore it, or delete it and run: "
            f"{command(protocol, out)}"
        )
    return _frame(content)


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
    return {key: record.get(key) for key in ("code", "data")} == _today(protocol)


@lru_cache(maxsize=8)
def _load(protocol: str, out: Path, changed: int) -> pd.DataFrame:
    """Finished runs, kept in memory until their file changes (``changed``: when it last did)."""
    return read_runs(protocol, out)


def load_runs(protocol: str = "as_published", *, out: Path | None = None) -> pd.DataFrame:
    """Load stored runs: one row per trained model.

    Results are refused if a file is damaged, or if the code or data that decide numbers have
    changed since they were computed and nobody has revalidated them.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic"}
    out : path, optional
        Folder of the store, by default the book's. Where a sweep into it is not finished, or was
        restricted to some data sets, methods or repeats, the rows that are there are returned.

    Returns
    -------
    DataFrame
        Keys, ``val_...`` and ``test_...`` metrics, and ``unstable``; the caller's own copy.
    """
    _checks.one_of(protocol, "protocol", STORES)
    out = Path(out or DEFAULT)
    path = out / f"{protocol}.csv.gz"
    if not path.exists() and (parts := load_parts(protocol, out)):
        _refuse_stale(parts, protocol, out)
        return pd.concat([rows for _, rows in parts.values()], ignore_index=True)
    frame = _load(protocol, out, path.stat().st_mtime_ns if path.exists() else 0)
    if not is_current(protocol, out):
        raise StoreError(
            f"the code or data that decide numbers have changed since {path.name} was computed; "
            f"check and keep it with: {command(protocol, out, '--revalidate')}"
        )
    return frame.copy()


def by_stack(runs: pd.DataFrame, protocol: str) -> dict[Stack, pd.DataFrame]:
    """Rows of every stack of a protocol, in the order in which they are stored.

    Parameters
    ----------
    runs : DataFrame
    protocol : str

    Returns
    -------
    dict
        Without rows for a stack that is not stored.
    """
    keys = [field.name for field in fields(Stack)]
    known = runs[keys].astype(object).where(runs[keys].notna(), None)
    positions: dict[Stack, list[int]] = {stack: [] for stack in stacks(protocol)}
    for position, values in enumerate(known.itertuples(index=False)):
        positions.setdefault(Stack(*values), []).append(position)
    return {s: runs.iloc[positions[s]].reset_index(drop=True) for s in stacks(protocol)}


def rows_of(runs: pd.DataFrame, stack: Stack) -> pd.DataFrame:
    """Rows of one stack, in the order in which they are stored.

    Parameters
    ----------
    runs : DataFrame
    stack : Stack

    Returns
    -------
    DataFrame
        Without rows if the stack is not stored.
    """
    same = [runs[k] == vars(stack)[k] for k in KEYS if vars(stack).get(k) is not None]
    return runs[np.logical_and.reduce(same)].reset_index(drop=True)
