"""Patients whom several files of this folder audit, and pages that are made quickly."""

from types import SimpleNamespace

import jinja2
import pytest
from cohort import simulated

from drocox.auditing import page


@pytest.fixture(scope="module")
def model():
    """Patients and their log-hazards; the baseline hazard is 1."""
    data, scores = simulated(3, n=500, effects=(0.8, 0.5, 0))
    return data, scores


COMPILED = {}


class Environment(jinja2.Environment):
    """Compiles the layout of the page once, not again for each of some hundred pages."""

    def compile(self, source):
        if source not in COMPILED:
            COMPILED[source] = super().compile(source)
        return COMPILED[source]


@pytest.fixture(autouse=True)
def _one_layout(monkeypatch):
    monkeypatch.setattr(page, "jinja2", SimpleNamespace(Environment=Environment))


@pytest.fixture
def undrawn(monkeypatch):
    """Pages with an empty drawing for each figure: drawing takes longer than the audit."""
    monkeypatch.setattr(page, "as_svg", lambda draw, *content, salt: "<svg></svg>")
