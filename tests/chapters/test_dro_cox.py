"""Drawings and values of the chapter on DRO-COX."""

import numpy as np
import pytest
import torch

import drocox
from drocox.chapters import dro_cox as chapter

HAZARDS = np.array([2.0, 0.5])


def test_the_limit_is_that_of_large_samples():
    """The loss of a patient among 40,000, half of them slow, minus log n."""
    rng = np.random.default_rng(0)
    group = np.arange(40_000) % 2
    time = rng.exponential(1 / HAZARDS[group])
    scores = torch.tensor(np.log(HAZARDS[group]))
    losses = drocox.cox_losses(scores, time, np.ones(len(time))).numpy()
    limits = chapter.losses_without_log_n(HAZARDS, np.array([0.1, 1.0]))
    half = np.flatnonzero(chapter.SHARES == 0.5)[0]
    for k in (0, 1):
        for i, y in enumerate((0.1, 1.0)):
            near = (group == k) & (np.abs(time - y) < 0.02)
            simulated = losses[near].mean() - np.log(len(time))
            assert simulated == pytest.approx(limits[k, half, i], abs=0.03)


def test_the_mixture_is_drawn():
    shares = np.array([0.2, 0.8])
    means = np.arange(8.0).reshape(2, 2, 2)
    limits = np.array([[0.0, 1.0], [2.0, 3.0]])
    left, right = chapter.draw_mixture(shares, means, shares, limits).axes
    assert np.array_equal(left.lines[2].get_ydata(), limits[1])
    assert np.array_equal(left.lines[3].get_ydata(), means[0, 1])
    assert np.array_equal(right.lines[1].get_ydata(), means[1, 1])


def test_losses_cross_on_the_slider():
    rising = np.linspace(0, 1, len(chapter.SHARES))
    figure = chapter.mixture_slider(HAZARDS, np.array([1 - rising, rising]))
    assert "share of the slow" in figure.markup
    with pytest.raises(AssertionError, match="when it is common"):
        chapter.mixture_slider(HAZARDS, np.array([rising, 1 - rising]))


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


def test_training_is_told(training, monkeypatch):
    values = {}
    monkeypatch.setattr(chapter, "say", values.__setitem__)
    risks, spread, metrics = training
    chapter.tell_training(500, risks, spread, metrics)
    assert values["sd-01"] == "0.010"
    assert values["risk-01"] == values["log-n"] == "6.21"
    with pytest.raises(AssertionError, match="close to log n"):
        chapter.tell_training(1000, risks, spread, metrics)
    with pytest.raises(AssertionError, match="flat"):
        chapter.tell_training(500, risks, spread[::-1], metrics)
