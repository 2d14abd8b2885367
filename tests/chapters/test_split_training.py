"""Drawings and values of the chapter on DRO-COX (SPLIT)."""

import numpy as np
import pandas as pd
import pytest

from drocox.chapters import split_training as chapter

PATHS = {
    ("random", 2): [0.0, 0.1],
    ("random", 1): [0.0, 0.2],
    ("stacked", 2): [0.0, 0.3],
    ("stacked", 1): [0.0, -1.0],
}


def test_the_error_is_told(said):
    errors = [np.array([0.0]), np.array([0.1, np.nan, -0.1])]
    predicted = np.array([[0.0, 0.0], [0.03, -0.02]])
    chapter.tell_error(100, [10, 50], errors, predicted, np.array([2.0, 8.0]))
    assert said["half-bias"] == "0.0100"
    assert said["half-sd"] == "0.100"
    assert said["offset-half"] == "-0.69"
    assert (said["least"], said["most"]) == ("2", "8")


def test_the_bias_is_drawn_beside_its_parts():
    predicted = np.array([[0.3, -0.1], [0.2, -0.1]])
    axes = chapter.draw_bias(1000, [10, 50], np.array([0.2, 0.1]), predicted).axes[0]
    simulated, total, own_term, jensen = [line.get_ydata() for line in axes.lines]
    assert np.allclose(simulated, total)
    assert np.allclose(own_term + jensen, total)
    assert "1,000" in axes.get_xlabel()


def test_histograms_are_percent_without_missing():
    bins = np.array([0.0, 1.0, 2.0])
    percent = chapter.histograms([np.array([0.5, 1.5, 1.6, np.nan, 1.7])], bins)
    assert percent == pytest.approx(np.array([[25.0, 75.0]]))


def test_the_slider_has_a_histogram_for_each_size():
    rng = np.random.default_rng(0)
    errors = [rng.normal(0, 0.1, 100) for _ in range(7)]
    sizes = [50, 100, 250, 500, 1000, 1500, 2519]
    figure = chapter.error_slider(5038, sizes, errors, np.zeros(7))
    assert f"{np.std(errors[-1]):.3f}" in figure.markup


def test_halves_are_told_and_held(said):
    rows = [
        ("random", 2, 0.81, 0.45, 0.44),
        ("random", 1, 0.80, 0.45, 0.44),
        ("stacked", 2, 0.79, 0.0, 0.89),
        ("stacked", 1, 0.60, 0.0, 0.89),
    ]
    columns = ["D1 is", "sides", "test c", "men D1", "D2"]
    table = pd.DataFrame(rows, columns=columns).set_index("D1 is")
    chapter.tell_halves(table, PATHS)
    assert said == {"c-random": "0.810", "c-stacked-1": "0.600", "stacked-women": "11"}
    for column, share, broken in [
        ("men D1", 0.1, "all women"),
        ("D2", 1, "few"),
        ("D2", 0.5, "few"),
    ]:
        with pytest.raises(AssertionError, match=broken):
            chapter.tell_halves(table.assign(**{column: share}), PATHS)
    with pytest.raises(AssertionError, match="runs away"):
        chapter.tell_halves(table, PATHS | {("stacked", 1): [0.0, 0.2]})
    with pytest.raises(AssertionError, match="c-index falls"):
        chapter.tell_halves(table.assign(**{"test c": 0.8}), PATHS)


def test_deaths_without_company(said):
    chapter.tell_latest_first(np.array([0.0] * 20 + [0.1]))
    assert said == {"late-deaths": 21, "late-zero": 20}
    with pytest.raises(AssertionError, match="nothing to learn"):
        chapter.tell_latest_first(np.ones(6))


def test_paths_are_drawn_in_order():
    axes = chapter.draw_paths(PATHS).axes[0]
    assert [line.get_ydata()[-1] for line in axes.lines] == [0.1, 0.2, 0.3, -1.0]
    assert axes.lines[3].get_label() == "stacked, one side"
