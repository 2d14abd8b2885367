"""Drawings and values of the chapter on survival curves."""

import numpy as np
import pytest

from drocox.chapters import survival_curves as chapter

YEARS = np.array([1.0, 2.0, 3.0])
PREDICTED = [np.array([0.9, 0.8, 0.7]) ** k for k in range(1, 6)]


def test_calibration_is_drawn_by_fifths():
    observed = [curve + 0.01 for curve in PREDICTED]
    axes = chapter.draw_calibration(YEARS, PREDICTED, observed).axes[0]
    for k in range(5):
        assert np.array_equal(axes.lines[2 * k].get_ydata(), PREDICTED[k])
        assert np.array_equal(axes.lines[2 * k + 1].get_ydata(), observed[k])


def test_the_largest_gap_is_told(said):
    observed = [curve.copy() for curve in PREDICTED]
    observed[2][1] += 0.07
    chapter.tell_calibration(PREDICTED, observed)
    assert said == {"gap": "0.07"}
    with pytest.raises(AssertionError, match="close to each curve"):
        chapter.tell_calibration(PREDICTED, [curve - 0.2 for curve in PREDICTED])
