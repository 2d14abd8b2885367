"""Invented runs for the tests of selection and tables."""

import invented
import pytest

from drocox.paper import store


@pytest.fixture(scope="session")
def runs():
    return invented.runs()


@pytest.fixture(scope="session")
def forensic():
    return invented.runs("forensic")


@pytest.fixture
def stored(runs, forensic, monkeypatch):
    made = {"forensic": forensic}
    monkeypatch.setattr(store, "load_runs", lambda name, out=None: made.get(name, runs).copy())
