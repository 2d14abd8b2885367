"""Drawings and values of the chapter on deep Cox models."""

import numpy as np
import pandas as pd
import pytest

from drocox.chapters import deep_cox as chapter

STEPS = np.array([0, 10, 20])
TRAIN = [0.1, 0.5, 0.9]
VAL = [0.1, 0.4, 0.3]


def test_gains_are_drawn_and_told():
    axes = chapter.draw_gains(STEPS, TRAIN, VAL, 0.35).axes[0]
    assert list(axes.lines[0].get_xdata()) == [1, 11, 21]
    assert list(axes.lines[1].get_ydata()) == VAL
    chapter.tell_gains(STEPS, TRAIN, VAL, 0.35)


def test_gains_are_held_to_the_sentences():
    with pytest.raises(AssertionError, match="better than the linear model"):
        chapter.tell_gains(STEPS, TRAIN, VAL, 0.5)
    with pytest.raises(AssertionError, match="by heart"):
        chapter.tell_gains(STEPS, [0.1, 0.5, 0.6], VAL, 0.35)


def test_a_line_cannot_bend():
    x = np.linspace(-2, 2, 101)
    truth = x**2
    fits = {"linear": 0.1 * x, "network": truth + 7 + 0.01 * x}
    axes = chapter.draw_curved(x, truth, fits).axes[0]
    assert [line.get_label() for line in axes.lines] == ["truth", "linear", "network"]
    assert abs(axes.lines[2].get_ydata().mean()) < 0.01
    with pytest.raises(AssertionError, match="the line can do nothing"):
        chapter.draw_curved(x, truth, fits | {"linear": x})
    with pytest.raises(AssertionError, match="finds the truth"):
        chapter.draw_curved(x, truth, fits | {"network": 0.1 * x})


def test_rates_are_held_to_the_sentence():
    rows = {"Cox, rate 0.01": [0.4, 0.4, 0.3], "DeepSurv, rate 0.01": [1.0, -0.5, -1.0]}
    gains = pd.DataFrame(rows, ["training", "validation", "test"]).T
    chapter.keep_rates(gains)
    with pytest.raises(AssertionError, match="far better"):
        chapter.keep_rates(gains.assign(training=0.4))
    with pytest.raises(AssertionError, match="worse than nothing"):
        chapter.keep_rates(gains.assign(test=0.1))


def test_factors(said):
    free, centred = "mean hazard", "mean hazard, centred"
    table = pd.DataFrame({"gain, test": [0.1, 0.12], free: [1.0, 5.0], centred: [1.0, 1.5]})
    chapter.tell_factors(table)
    assert said == {"deep-factor": "5.0", "deep-factor-centred": "1.5"}
    with pytest.raises(AssertionError, match="a number that means nothing"):
        chapter.tell_factors(table.assign(**{centred: table[free]}))
    with pytest.raises(AssertionError, match="equally well"):
        chapter.tell_factors(table.assign(**{"gain, test": [0.1, 0.5]}))
