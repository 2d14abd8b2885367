"""Drawings and values of the chapter on DRO-COX."""

import numpy as np
import pytest
import torch

import drocox
from drocox.chapters import dro_cox as chapter

HAZARDS = np.array([2.0, 0.5])


def test_the_mixture_is_drawn():
    shares = np.array([0.2, 0.8])
    means = np.arange(8.0).reshape(2, 2, 2)
    limits = np.array([[0.0, 1.0], [2.0, 3.0]])
    left, right = chapter.draw_mixture(shares, means, shares, limits).axes
    assert np.array_equal(left.lines[2].get_ydata(), limits[1])
    assert np.array_equal(left.lines[3].get_ydata(), means[0, 1])
    assert np.array_equal(right.lines[1].get_ydata(), means[1, 1])


def test_losses_cross():
    rising = np.linspace(0, 1, 9)
    chapter.keep_crossing(np.array([1 - rising, rising]))
    with pytest.raises(AssertionError, match="when it is common"):
        chapter.keep_crossing(np.array([rising, 1 - rising]))
    with pytest.raises(AssertionError, match="when that is common"):
        chapter.keep_crossing(np.array([2 - rising, rising]))
    wavy = rising + 0.2 * (np.arange(9) % 2)
    with pytest.raises(AssertionError, match="the larger are their losses"):
        chapter.keep_crossing(np.array([1 - rising, wavy]))
    with pytest.raises(AssertionError, match="those of the fast"):
        chapter.keep_crossing(np.array([1.1 - wavy, rising]))


def test_a_square_for_whom_a_loss_contains():
    time = np.array([1.0, 2.0, 3.0])
    event = np.array([True, False, True])
    scores = torch.zeros(3, dtype=torch.float64)
    by_cox = torch.autograd.functional.jacobian(lambda f: drocox.cox_losses(f, time, event), scores)
    left, right = chapter.draw_who_enters("ABC", by_cox.numpy(), np.eye(3)).axes
    squares = {tuple(place) for place in left.collections[0].get_offsets().astype(int)}
    assert squares == {
        (0, 0),
        (1, 0),
        (2, 0),
    }  # the last death, alone, has loss 0 whatever its score
    assert len(right.collections[0].get_offsets()) == 3
    with pytest.raises(AssertionError, match="only the diagonal"):
        chapter.draw_who_enters("ABC", np.eye(3), np.ones((3, 3)))


def test_metrics_are_drawn_by_alpha():
    metrics = np.array([[0.7, 4.0], [0.8, 2.0], [0.81, 1.0]])
    order, imparity = chapter.draw_by_alpha([0.1, 0.5, 1.0], metrics).axes
    assert list(order.lines[0].get_ydata()) == [0.7, 0.8]
    assert list(imparity.lines[1].get_ydata()) == [1.0, 1.0]


@pytest.fixture
def training():
    risks = np.array([[9.0, 9.0, 9.0], [5.0, 6.0, np.log(500)]])
    spread = np.array([[0.5, 0.5, 0.5], [1.2, 0.08, 0.01]])
    metrics = np.array([[[0.7, 3.0]] * 3, [[0.8, 2.0], [0.79, 1.0], [0.78, 1.0]]])
    return risks, spread, metrics


def test_training_is_drawn(training):
    risks, spread, metrics = training
    figure = chapter.draw_training([1.0, 0.2, 0.1], risks, np.array([0, 500]), spread, metrics)
    risk, scores, order, imparity = figure.axes
    assert list(risk.lines[0].get_ydata()) == [4.0, 1e-6]
    assert np.array_equal(scores.lines[2].get_ydata(), spread[:, 2])
    assert np.array_equal(order.lines[1].get_ydata(), metrics[:, 1, 0])
    assert np.array_equal(imparity.lines[1].get_ydata(), metrics[:, 1, 1])


def test_training_is_told(training, said):
    risks, spread, metrics = training
    chapter.tell_training(500, risks, spread, metrics)
    assert said["sd-01"] == "0.010"
    assert said["risk-01"] == said["log-n"] == "6.21"
    with pytest.raises(AssertionError, match="close to log n"):
        chapter.tell_training(1000, risks, spread, metrics)
    with pytest.raises(AssertionError, match="flat"):
        chapter.tell_training(500, risks, spread[::-1], metrics)
