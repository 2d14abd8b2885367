"""How nbval runs the twins: in the environment of the build, and what it compares.

A cell passes if a reader sees the same output as in the twin, see :func:`twins.as_before`.
"""

import os
import sys
from pathlib import Path
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
import twins
from bookbuild import kernel_environment

KINDS = ("cells", "figures", "values")


def compared(item):
    """How many cells with output, one or none, and how many figures and glued values it has."""
    if not item.options["check"]:
        return False, 0, 0
    outputs = item.cell.outputs
    values = sum("scrapbook" in output.get("metadata", {}) for output in outputs)
    figures = sum(twins.SVG in output.get("data", {}) for output in outputs)
    return bool(outputs), figures, values


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    if item.path.suffix == ".ipynb":
        item.user_properties += zip(KINDS, compared(item), strict=True)
        source, compare = item.path.with_suffix(".md"), item.compare_outputs
        item.compare_outputs = lambda new, old: compare(twins.as_before(source, new, old), old)
    with mock.patch.dict(os.environ, kernel_environment()):
        return (yield)


def pytest_terminal_summary(terminalreporter):
    passed = [dict(report.user_properties) for report in terminalreporter.getreports("passed")]
    cells, figures, values = (sum(each.get(kind, 0) for each in passed) for kind in KINDS)
    if cells:
        terminalreporter.line(
            f"book: the output of {cells} cells is the same for a reader, with {figures} figures "
            f"and {values} values in sentences"
        )
