"""What tests of the chapters' modules share: guards stop, and figures are closed."""

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
