"""Kernels that nbval starts get the environment that the build of the book gives them."""

import os
import sys
from pathlib import Path
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from cache_key import kernel_environment


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    with mock.patch.dict(os.environ, kernel_environment()):
        return (yield)
