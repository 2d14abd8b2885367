"""Misaligned Brier scores and runs that drift apart: drawings and guards."""

import numpy as np
import pytest

from drocox import accuracy
from drocox.chapters import protocol_digits as chapter


def test_random_pairing_is_the_mean_over_all_rotations():
    """In the n rotations of the rows each outcome meets each curve once."""
    rng = np.random.default_rng(0)
    time = rng.exponential(2.0, 30)
    event = rng.random(30) < 0.7
    times = np.linspace(0.2, 2.0, 7)
    curves = np.sort(rng.random((30, 7)))[:, ::-1]
    known = time, event
    outcomes = time, event, times
    scores = [
        accuracy.integrated_brier_score(*known, np.roll(curves, k, axis=0), *outcomes)
        for k in range(30)
    ]
    expected = chapter.random_pairing(curves, *known, *outcomes)
    assert expected == pytest.approx(np.mean(scores), abs=1e-12)


def test_misaligned_scores():
    scales = np.linspace(0, 1.2, 13)
    aligned = 0.2 - 0.1 * scales
    misaligned = 0.2 + 0.1 * scales
    expected = misaligned[::2]
    axes = chapter.draw_misaligned(scales, aligned, misaligned, expected, 0.3).axes[0]
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert np.array_equal(drawn["aligned"], aligned)
    assert np.array_equal(drawn["expected, if random"], expected)
    with pytest.raises(AssertionError, match="the trained model is best"):
        chapter.draw_misaligned(scales, misaligned, misaligned, expected, 0.3)
    with pytest.raises(AssertionError, match="a random pairing"):
        chapter.draw_misaligned(scales, aligned, misaligned, expected + 0.01, 0.3)


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


def test_the_farthest_copy_is_drawn():
    runs = dict.fromkeys("abcd", growing(1.1))
    axes = chapter.draw_drift(runs).axes[0]
    assert np.array_equal(axes.lines[0].get_ydata(), growing(1.1).max(axis=1))
    assert list(axes.lines[0].get_xdata()[:2]) == [1, 2]
