"""Patients whom several files of this folder audit."""

import pytest
from cohort import simulated


@pytest.fixture(scope="module")
def model():
    """Patients and their log-hazards; the baseline hazard is 1."""
    data, scores = simulated(3, n=500, effects=(0.8, 0.5, 0))
    return data, scores
