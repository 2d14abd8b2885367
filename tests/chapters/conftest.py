"""What tests of the chapters' modules share: guards stop, figures are closed, values are kept."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """As in the build: a sentence that does not hold is an error; leave no figure open."""
    monkeypatch.setenv("DROCOX_STRICT", "1")
    yield
    plt.close("all")


@pytest.fixture
def said(monkeypatch, request):
    """Values for the text, by name, that the module ``chapter`` of a test says."""
    values = {}
    monkeypatch.setattr(request.module.chapter, "say", values.__setitem__)
    return values
