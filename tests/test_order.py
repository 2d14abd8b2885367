"""Imports go one way through the rooms of the package."""

import ast
import re
from pathlib import Path

import pytest

import drocox

PACKAGE = Path(drocox.__file__).parent
# A module imports from its own room and from those before it, inside of functions, too.
ORDER = [
    "compiled",
    "kernels",
    "terminal",
    "_checks",
    "data",
    "risksets",
    "curves",
    "concordance",
    "cox",
    "dual",
    "dro",
    "pairs",
    "regularizers",
    "training",
    "accuracy",
    "fairness",
    "evaluation",
    "heldout",
    "solver",
    "estimator",
    "tuning",
    "auditing",
    "paper",
    "beyond",
    "exercises",
    "bookstyle",
    "explorables",
]
LOOK_UPWARD = {"__init__.py", "cli.py", "paper/cli.py"}  # for names that others use


def rooms_used(source: str) -> set[str]:
    """Rooms that some code names: in imports, as attributes of ``drocox``, in strings."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            paths = [f"{node.value.id}.{node.attr}"]
        elif isinstance(node, ast.Constant) and re.fullmatch(r"drocox(\.\w+)+", str(node.value)):
            paths = [node.value]
        else:
            continue
        for path in paths:
            package, _, name = path.partition(".")
            if package == "drocox":
                found.add(name)
    public = drocox._NAMES | drocox._PUBLIC_MODULES
    paths = {public.get(name, f"drocox.{name}") for name in found}
    return {path.split(".")[1] for path in paths} - {"", "__version__"}


def upward(room: str, source: str) -> set[str]:
    """Rooms that a module of ``room`` uses though they come after it, or have no place."""
    return rooms_used(source) - set(ORDER[: ORDER.index(room) + 1])


def modules():
    """Path and room of each module, but for those that look upward."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in LOOK_UPWARD:
            yield path, name.partition("/")[0].removesuffix(".py")


def test_every_room_has_its_place():
    assert {room for _, room in modules()} == set(ORDER)


@pytest.mark.parametrize("room", ORDER)
def test_a_room_uses_those_before_it_only(room):
    for path, own in modules():
        if own == room:
            assert upward(room, path.read_text(encoding="utf-8")) == set(), path


@pytest.mark.parametrize(
    "line",
    [
        "from drocox.paper import store",
        "import drocox.paper.store as store",
        "from drocox import paper",
        "from drocox import load_runs",
        "def f():\n    from drocox.paper.store import load_runs",
        "import_module('drocox.paper.store')",
        "drocox.load_runs('corrected')",
    ],
    ids=["from", "import", "room", "public name", "function", "string", "attribute"],
)
def test_a_planted_import_is_seen(line):
    for room in ORDER:
        before = ORDER.index(room) < ORDER.index("paper")
        assert upward(room, line) == ({"paper"} if before else set())
