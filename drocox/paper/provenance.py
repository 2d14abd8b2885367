"""What decides the numbers of stored runs: hashes of the code and of the data.

Of the code, the syntax tree counts, so comments and layout may change and runs stay valid; what the
modules of a store compute may not. :func:`today` is what a store is compared with.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES
from drocox.paper.stores import known_stores
from drocox.paper.work import WORK

PACKAGE = Path(__file__).parents[1]


def _file(module: str) -> Path:
    """File of a module of the package, named without ``drocox``; it may not exist."""
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _source(module: str) -> str:
    """Text of a module."""
    return _file(module).read_text(encoding="utf-8")


@cache
def _imported(source: str) -> list[tuple[str, str]]:
    """What a source imports of the package: (module, name in it, or nothing for all of it)."""
    pairs = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            pairs += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            pairs += [("." * node.level + (node.module or ""), alias.name) for alias in node.names]
    return [(module, name) for module, name in pairs if module.split(".")[0] in ("drocox", "")]


def _imports(module: str) -> set[str]:
    """Modules of the package that a module imports, anywhere in its code."""
    modules = set()
    for start, name in _imported(_source(module)):
        whole = f"{start}.{name}".removeprefix("drocox.")
        relative = start.startswith(".")
        if name and not relative and _file(whole).exists():
            modules.add(whole)  # from package import module
        elif start.startswith("drocox."):
            modules.add(start.removeprefix("drocox."))
        else:  # the door of the package, or a relative import: nobody knows what is meant
            raise ValueError(
                f"drocox.{module}: import {name or start} from the module it stands in"
            )
    return modules


def _begins(name: str) -> list[str]:
    """Modules in which the computing of a store's rows begins, or of those of one study."""
    if name in known_stores():
        return list(WORK[name].begins.values())
    return [work.begins[name] for work in WORK.values() if name in work.begins]


def deciding(name: str) -> tuple[str, ...]:
    """Modules whose code decides the numbers of a store: what its runs import, and what that does.

    Checks of input are among them: some of them also encode it.

    Parameters
    ----------
    name : {"as_published", "corrected", "forensic", "beyond"}, or a study of the last

    Returns
    -------
    tuple of str
        Sorted, without ``drocox``.
    """
    todo = _begins(name)
    seen = set()
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo += _imports(module)
    return tuple(sorted(seen))


def sha256(content: bytes) -> str:
    """Hash of a content.

    Parameters
    ----------
    content : bytes

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    return hashlib.sha256(content).hexdigest()


def _is_docstring(node: ast.AST | str) -> bool:
    """Whether a part of a syntax tree is a statement that is a string and nothing else."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@cache
def code_form(source: str) -> str:
    """What decides numbers in a source: its syntax tree, the same from Python 3.11 on.

    Comments, docstrings, layout, quotes and commas that make no tuple do not count.

    Parameters
    ----------
    source : str
        Text of a Python module.

    Returns
    -------
    str
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name, value in list(ast.iter_fields(node)):
            if isinstance(value, list):
                value[:] = [part for part in value if not _is_docstring(part)]
            if value == [] or name == "ctx":  # says nothing, and not every Python shows it
                delattr(node, name)
    return ast.dump(tree)


@cache
def code_hash(name: str) -> str:
    """Hash of the modules that decide the numbers of a store.

    Parameters
    ----------
    name : {"as_published", "corrected", "forensic", "beyond"}, or a study of the last

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    modules = deciding(name)
    forms = [code_form(_source(module)) for module in modules]
    return sha256("\0".join([*modules, *forms]).encode())[:16]


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


def today(protocol: str, dataset: str | None = None) -> dict:
    """What decides the numbers of a whole protocol, or of its runs on one data set, by now.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic", "beyond"}
    dataset : {"flc", "support", "seer"}, optional

    Returns
    -------
    dict
        ``code`` and ``data``: a hash, or hashes by data set for a whole protocol.
    """
    data = data_hash(dataset) if dataset else {name: data_hash(name) for name in ATTRIBUTES}
    return {"code": code_hash(protocol), "data": data}
