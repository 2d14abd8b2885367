"""Patients whom several files of this folder audit, and pages that are made quickly."""

import pytest
from cohort import simulated

from drocox.auditing import page


@pytest.fixture(scope="module")
def model():
    """Patients and their log-hazards; the baseline hazard is 1."""
    data, scores = simulated(3, n=500, effects=(0.8, 0.5, 0))
    return data, scores


@pytest.fixture
def undrawn(monkeypatch):
    """Pages with an empty drawing for each figure: drawing takes longer than the audit."""
    monkeypatch.setattr(page, "as_svg", lambda draw, *content, salt: "<svg></svg>")
