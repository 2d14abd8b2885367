"""How nbval runs the twins: in the environment of the build, and what it compares.

What a cell prints or shows as a table is compared on every platform, to the last digit. Figures
hold byte for byte on the platform that made the twin, and are compared there.
"""

import os
import sys
from pathlib import Path
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
import twins
from bookbuild import kernel_environment

KINDS = ("cells", "figures")


def compared(item):
    """How many cells with output, one or none, and how many figures of it are compared."""
    if not item.options["check"]:
        return False, 0
    data = [output.get("data", {"text": ""}) for output in item.cell.outputs]
    kinds = [kind for each in data for kind in each if kind not in item.parent.skip_compare]
    return bool(kinds), kinds.count(twins.SVG)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    collectors = yield
    for collector in collectors:
        # nbval's collector of notebooks, which has a list of what it leaves out
        if hasattr(collector, "skip_compare") and file_path.suffix == ".ipynb":
            if twins.made_on(twins.load(file_path)) != twins.here():
                collector.skip_compare += (twins.SVG,)
    return collectors


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    if item.path.suffix == ".ipynb":
        item.user_properties += zip(KINDS, compared(item), strict=True)
    with mock.patch.dict(os.environ, kernel_environment()):
        return (yield)


def pytest_terminal_summary(terminalreporter):
    passed = [dict(report.user_properties) for report in terminalreporter.getreports("passed")]
    cells, figures = (sum(each.get(kind, 0) for each in passed) for kind in KINDS)
    if cells:
        terminalreporter.line(
            f"book: the output of {cells} cells is as printed, {figures} figures byte for byte "
            f"({twins.here()})"
        )
