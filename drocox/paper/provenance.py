"""What decides the numbers of stored runs: hashes of the code and of the data.

Of the code, the syntax tree counts, so comments and layout may change and runs stay valid; what the
modules of a store compute may not. :func:`today` is what a store is compared with.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

from drocox.paper import STUDIES
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES, STORES

PACKAGE = Path(__file__).parents[1]
# modules whose code decides the numbers of trained and judged models
_TRAINING = (
    "kernels", "cox", "dro", "regularizers", "concordance", "accuracy", "fairness", "evaluation",
    "data", "paper.datasets", "paper.protocol", "training", "paper.prepare", "paper.run",
)  # fmt: skip
_SOLVER = ("coordinates", "objective", "tail", "solver")
_BEYOND = (*_TRAINING[:-3], *_SOLVER)  # not every study trains or prepares
DECIDING = dict.fromkeys(STORES, _TRAINING)  # by store or study
DECIDING |= {name: (*_BEYOND, f"beyond.{name}", *more) for name, more in STUDIES.items()}
DECIDING["beyond"] = tuple(sorted({module for name in STUDIES for module in DECIDING[name]}))


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
    files = [PACKAGE / f"{module.replace('.', '/')}.py" for module in DECIDING[name]]
    forms = [code_form(file.read_text(encoding="utf-8")) for file in files]
    return sha256("\0".join([*DECIDING[name], *forms]).encode())[:16]


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
