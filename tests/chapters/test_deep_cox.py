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


def test_factors():
    metrics = pd.DataFrame({"f_i": [1.0, 5.0], "f_i_centred": [1.0, 1.5]})
    chapter.tell_factors(metrics)
    with pytest.raises(AssertionError, match="a number that means nothing"):
        chapter.tell_factors(metrics.assign(f_i_centred=metrics["f_i"]))


def growing(rate):
    """Differences of three copies that grow by a factor in each step."""
    return 1e-13 * rate ** np.arange(500.0)[:, None] * np.array([1.0, 1.1, 1.2])


def test_departure_is_the_first_step_a_million_away():
    record = growing(1.1)
    assert chapter.step_of_departure(record) == np.ceil(6 * np.log(10) / np.log(1.1))
    assert chapter.step_of_departure(growing(1.0)) == np.inf


def test_fates():
    runs = {"a": growing(1.2), "b": growing(1.1), "c": growing(1.0), "d": growing(1.0)}
    assert list(chapter.fates(runs).values()) == ["drifts apart", "drifts apart", "calm", "calm"]
    with pytest.raises(AssertionError, match="the network drifts first"):
        chapter.fates({**runs, "a": growing(1.05)})
    with pytest.raises(AssertionError, match="runs are calm"):
        chapter.fates({**runs, "d": growing(1.1)})
