"""How nbval runs the twins: in the environment of the build, compared where they were made.

Outputs hold to the last printed digit on one platform. On another one every cell is executed and an
error fails, but outputs are not compared.
"""

import os
import sys
from pathlib import Path
from unittest import mock

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from cache_key import here, kernel_environment, made_on

TWINS = sorted(Path(__file__).parent.rglob("*.ipynb"))


def is_foreign(path):
    """Whether a twin was made on another platform than this one."""
    return made_on(nbformat.read(path, as_version=4)) != here()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    collectors = yield
    for collector in collectors:
        # nbval's collector of notebooks; the attribute is what --nbval-lax sets for all of them
        if hasattr(collector, "compare_outputs") and is_foreign(file_path):
            collector.compare_outputs = False
    return collectors


def pytest_report_header(config):
    if config.getoption("nbval", False):
        foreign = sum(map(is_foreign, TWINS))
        if foreign:
            return (
                f"book: {foreign} of {len(TWINS)} notebooks were not made on {here()}: "
                "executed, outputs not compared"
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    # nbval compares no metadata, where variants of figures for phones are: none are drawn
    with mock.patch.dict(os.environ, kernel_environment() | {"DROCOX_NARROW": ""}):
        return (yield)
