"""Drawings and values of the chapter on fair baselines."""

import numpy as np
import pandas as pd
import pytest

from drocox import load_dataset
from drocox.chapters import fair_baselines as chapter


def test_patients_per_event(said):
    data = load_dataset("flc")
    chapter.tell_patients_per_event({"flc": data})
    assert said == {"base-flc": f"{1 / data.event.mean():.1f}"}


def test_likelihoods_are_held():
    models = pd.DataFrame({"LPL": [-5.0, -5.01]}, index=["no penalty", "I (R&P)"])
    chapter.guard_likelihoods(models)
    with pytest.raises(AssertionError, match="nearly what they were"):
        chapter.guard_likelihoods(models * 10)


def test_a_marker_for_each_model():
    rows = {(name, lam): {"F_I": lam, "LPL": -lam} for name in chapter.STYLES for lam in (0.4, 1.0)}
    models = pd.DataFrame(rows).T
    shrunk = pd.DataFrame({"F_I": [0.0, 1.0], "LPL": [-2.0, -1.0]})
    axes = chapter.draw_frontier(models, shrunk).axes[0]
    assert len(axes.collections) == len(chapter.STYLES)
    for markers in axes.collections:
        assert np.allclose(markers.get_offsets(), [[0.4, -0.4], [1.0, -1.0]])
        assert np.allclose(markers.get_sizes(), [38, 65])
