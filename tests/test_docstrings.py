"""Public names can be imported, are listed in the reference and described; examples run."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import fresh
import pytest

import drocox
from drocox.auditing.measures import MEASURES

PACKAGE = Path(drocox.__file__).parent
REFERENCE = PACKAGE.parent / "book" / "api"
WITH_EXAMPLES = [
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in file.read_text(encoding="utf8")
]
LISTED = sorted(
    re.findall(
        r"auto(?:function|class|module):: ([\w.]+)",
        "".join(page.read_text(encoding="utf8") for page in REFERENCE.glob("*.md")),
    )
)


@pytest.mark.parametrize("name", LISTED)
def test_parameters_and_returns_are_described(name):
    thing = resolve_name(name)
    text = inspect.getdoc(thing) or ""
    assert text, "no docstring"
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        if signature.parameters:
            assert "Parameters\n----------" in text
        assert not [argument for argument in signature.parameters if argument not in text]
        if signature.return_annotation not in (None, "None"):
            assert "Returns\n-------" in text


def untyped(function):
    """Parameters without a type, and "return" if that of the result is missing."""
    signature = inspect.signature(function)
    given = {name: one.annotation for name, one in signature.parameters.items()}
    given["return"] = signature.return_annotation
    missing = {name for name, type_ in given.items() if type_ is inspect.Signature.empty}
    return sorted(missing - {"self", "cls"})


@pytest.mark.parametrize("name", LISTED)
def test_parameters_and_results_have_types(name):
    thing = resolve_name(name)
    home = thing.__name__ if inspect.ismodule(thing) else thing.__module__
    members = {name: thing} if inspect.isfunction(thing) else vars(thing)
    for member, function in members.items():
        function = getattr(function, "__func__", function)  # of a classmethod
        own = inspect.isfunction(function) and function.__module__ == home
        if own and not member.startswith("_"):
            assert untyped(function) == [], member


def entries(text):
    """Names that have an entry of their own in the section of parameters."""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\w+\n---|\Z)", text, re.DOTALL)[1]
    heads = [line.partition(" : ")[0] for line in section.splitlines() if line[:1].strip()]
    return {name.strip(" *") for head in heads for name in head.split(",")}


METHODS = [
    (name, method)
    for name in LISTED
    if inspect.isclass(resolve_name(name))
    for method, member in sorted(vars(resolve_name(name)).items())
    if inspect.isfunction(member) and not method.startswith("_")
    if "Parameters\n" in (inspect.getdoc(member) or "")
]


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_every_parameter_of_a_method_has_an_entry(name, method):
    member = getattr(resolve_name(name), method)
    described = entries(inspect.getdoc(member))
    assert {*inspect.signature(member).parameters} - {"self"} <= described


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_of_the_audit_is_described(name):
    assert f"``{name}``" in inspect.getdoc(drocox.audit)


def test_every_public_name_has_a_place_in_the_reference():
    for name in sorted(drocox.__all__):
        module = getattr(drocox, name)
        where = getattr(module, "__name__", "") if inspect.ismodule(module) else f"drocox.{name}"
        inside = [listed for listed in LISTED if listed.startswith(f"{where}.")]
        assert where in LISTED or inside, f"{name} is in no page of book/api"


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_run(module):
    assert doctest.testmod(import_module(module)).failed == 0


@pytest.mark.slow
def test_modules_of_the_library_are_found_by_their_names():
    """``import drocox; drocox.solver`` works whether or not something has imported the solver."""
    code = "import drocox, sys; assert not any(m in sys.modules for m in ('numpy', 'torch'))"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import drocox; assert drocox.solver.minimise and drocox.exercises\n"
    code += "assert drocox.tables.main_table"
    assert fresh.run("-c", code).returncode == 0


def test_public_names_are_found_when_asked_for():
    assert set(dir(drocox)) == {*drocox.__all__, "__version__"}
    for name in drocox.__all__:
        assert getattr(drocox, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        drocox.nothing  # noqa: B018


def test_type_checkers_see_the_public_names():
    block = inspect.getsource(drocox).partition("if TYPE_CHECKING:")[2].partition("__version__")[0]
    lines = re.findall(r"from (\S+) import (\w+) as \2", block)
    found = {name: module for module, name in lines}
    modules = {name: at.rpartition(".")[0] for name, at in drocox._PUBLIC_MODULES.items()}
    assert found == drocox._NAMES | modules
