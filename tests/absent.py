"""Packages that tests compare with, where they have no wheel: using one skips the test."""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder
from importlib.util import spec_from_loader

import pytest

PACKAGES = {"sksurv": "scikit-survival", "survivors": "survivors", "lifelines": "lifelines"}
ABSENT = {name: text for name, text in PACKAGES.items() if PathFinder.find_spec(name) is None}


class Unusable:
    """Anything of such a package."""

    def __init__(self, package: str):
        self._reason = f"{PACKAGES[package]} is not installed; it may have no wheel here"

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments, **options):
        pytest.skip(self._reason, allow_module_level=True)


class Finder(MetaPathFinder, Loader):
    """Finds modules of which every name is unusable."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            return spec_from_loader(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        package = module.__name__.partition(".")[0]
        module.__getattr__ = Unusable(package).__getattr__


def stand_in() -> None:
    """Let tests import what is absent."""
    sys.meta_path.append(Finder())


def skipped(error: ModuleNotFoundError) -> None:
    """Skip a test that has asked for data of an absent package."""
    if any(repr(name) in str(error) for name in ABSENT):
        pytest.skip(str(error))
    raise error
