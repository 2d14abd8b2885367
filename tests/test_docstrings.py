"""Every public function says what it takes and returns, and its examples run."""

import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import fresh
import pytest

import drocox
import drocox.chapters

PACKAGE = Path(drocox.__file__).parent
FOLDERS = ("", "beyond", "chapters", "explorables", "paper")  # without the checks of exercises
NO_PARAMETERS = {"kernels"}  # compiled, and described by what calls them
MODULES = [
    f"{folder}.{file.stem}".lstrip(".")
    for folder in FOLDERS
    for file in sorted((PACKAGE / folder).glob("*.py"))
    if not file.stem.startswith("_") and file.stem not in NO_PARAMETERS
]


def public(module):
    """Functions of a module, and methods of its classes, that have public names."""
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(thing) or hasattr(thing, "cache_info"):
            yield name, inspect.unwrap(thing)
        elif inspect.isclass(thing):
            for method, value in vars(thing).items():
                value = getattr(value, "__func__", value)
                if inspect.isfunction(value) and not method.startswith("_"):
                    yield f"{name}.{method}", value


FUNCTIONS = [
    pytest.param(function, id=f"{module}.{name}")
    for module in MODULES
    for name, function in public(import_module(f"drocox.{module}"))
]


def test_there_is_something_to_check():
    assert len(FUNCTIONS) > 80


@pytest.mark.parametrize("function", FUNCTIONS)
def test_parameters_and_returns_are_described(function):
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    arguments = [name for name in signature.parameters if name not in ("self", "cls", "_")]
    assert text, "no docstring"
    if arguments:
        assert "Parameters\n----------" in text
    assert not [name for name in arguments if name not in text]
    returns = signature.return_annotation
    assert returns is not inspect.Signature.empty, "no type hint of what it returns"
    if returns not in (None, "None") and not inspect.isgeneratorfunction(function):
        assert "Returns\n-------" in text


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    assert doctest.testmod(import_module(f"drocox.{module}")).failed == 0


@pytest.mark.slow
def test_modules_of_the_library_are_found_by_their_names():
    """``import drocox; drocox.solver`` works whether or not something has imported the solver."""
    code = "import drocox, sys; assert not any(m in sys.modules for m in ('numpy', 'torch'))"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import drocox; assert drocox.solver.minimise and drocox.exercises\n"
    code += "assert drocox.tables.main_table"
    assert fresh.run("-c", code).returncode == 0


def test_public_names_are_found_when_asked_for():
    assert set(drocox.__all__) <= set(dir(drocox))
    for name in drocox.__all__:
        assert getattr(drocox, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        drocox.nothing  # noqa: B018
