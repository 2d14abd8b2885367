"""Drawings and values of the chapter "Who gets the weight?", on scores that flatten with alpha."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import drocox
from drocox.chapters import who_gets_the_weight as chapter
from drocox.paper import protocol

ALPHAS = (*protocol.ALPHAS, 1.0)
FLAT = np.array([0.0, 0.02, 0.05, 0.2, 0.5, 0.9, 1.0])  # factor of the scores, by alpha


@pytest.fixture(scope="module")
def flc():
    """Age as the score, less and less of it as alpha falls."""
    data = drocox.load_dataset("flc")
    rows = np.random.default_rng(0).permutation(len(data))[:1500]
    data = data.subset(np.sort(rows))
    age = data.X["age"].to_numpy()
    scores = torch.tensor(FLAT[:, None] * 0.1 * (age - age.mean()))
    losses = drocox.cox_losses(scores, data.time, data.event)
    pairs = zip(losses, ALPHAS, strict=True)
    q = [drocox.worst_case_weights(row, alpha, rule="paper").numpy() for row, alpha in pairs]
    when = drocox.cox_losses(torch.zeros(len(age)).double(), data.time, data.event).numpy()
    return SimpleNamespace(data=data, scores=scores, losses=losses, q=np.array(q), when=when)


def test_percent_so_far_ends_at_100():
    years = np.array([1.0, 2.0, 3.0])
    at = np.array([0.5, 1.0, 2.5, 3.0])
    percent = chapter.percent_so_far(years, np.array([1.0, 1.0, 2.0]), at)
    assert list(percent) == [0, 25, 50, 100]


def test_weight_of_the_earliest_deaths(flc):
    event, time = flc.data.event, flc.data.time
    q = drocox.worst_case_weights(flc.losses[-1], 0.1, rule="paper").numpy()
    edge = np.sort(time[event])[int(0.2 * (event.sum() - 1))]
    by_hand = sum(q[i] for i in np.flatnonzero(event) if time[i] <= edge)
    assert chapter.weight_of_earliest(flc, 0.2) == pytest.approx(by_hand, abs=0.02)
    assert chapter.weight_of_earliest(flc, 1.0) == pytest.approx(q[event].sum())


def test_what_makes_a_loss_large_is_told_and_held(flc, said):
    chapter.tell_who(flc)
    event = flc.data.event
    loss = flc.losses[-1].numpy()[event]
    sizes = [(flc.data.time >= t).sum() for t in flc.data.time[event]]
    surprise = loss - np.log(sizes)
    assert said["who-corr-who"] == f"{np.corrcoef(loss, surprise)[0, 1]:.2f}"
    q = drocox.worst_case_weights(flc.losses[-1], 0.1, rule="paper").numpy()
    assert said["who-chosen"] == (q > 0).sum()
    assert int(said["who-chosen-oldest"]) == flc.data.X["age"].to_numpy()[q > 0].max()
    ages = flc.data.X["age"]
    assert (said["who-age-least"], said["who-age-most"]) == (f"{min(ages):.0f}", f"{max(ages):.0f}")
    flat = SimpleNamespace(**{**vars(flc), "losses": flc.losses[1:2]})  # after training
    with pytest.raises(AssertionError, match="many times"):
        chapter.tell_who(flat)


def test_losses_are_drawn_with_the_line_of_the_risk_sets(flc):
    event, time = flc.data.event, flc.data.time
    for axes, model in zip(chapter.draw_when(flc).axes, (-1, 0), strict=True):
        calm, heavy, line, level = axes.lines
        assert len(calm.get_xdata()) + len(heavy.get_xdata()) == event.sum()
        sizes = [(time >= t).sum() for t in np.sort(time[event])]
        assert line.get_ydata() == pytest.approx(np.log(sizes))
        if len(heavy.get_ydata()):
            assert heavy.get_ydata().min() > level.get_ydata()[0]
        drawn = np.sort(np.r_[calm.get_ydata(), heavy.get_ydata()])
        assert drawn == pytest.approx(np.sort(flc.losses[model].numpy()[event]))


def test_mean_losses_by_age(flc):
    means = chapter.mean_losses_by_age(flc)
    old = flc.data.groups["age"] == 1
    losses = flc.losses.numpy()
    for m in range(len(ALPHAS)):
        parts = means["per patient", chapter.OLD][m] * old.sum()
        parts += means["per patient", chapter.YOUNG][m] * (~old).sum()
        assert parts == pytest.approx(losses[m].sum())
    axes = chapter.draw_ages(ALPHAS, means).axes[1]
    assert np.array_equal(axes.lines[0].get_ydata(), means["per death", chapter.OLD])


def test_ages_are_held_to_the_text(flc):
    means = chapter.mean_losses_by_age(flc)
    turned = {key: values[::-1] for key, values in means.items()}
    with pytest.raises(AssertionError):
        chapter.tell_ages(turned, flc)
    backwards = SimpleNamespace(**{**vars(flc), "losses": flc.losses.flip(0)})
    with pytest.raises(AssertionError, match="the bound falls"):
        chapter.tell_ages(means, backwards)


def test_the_time_of_weight_is_held_to_the_text(flc):
    backwards = SimpleNamespace(**{**vars(flc), "q": flc.q[::-1]})
    with pytest.raises(AssertionError):
        chapter.keep_when(backwards, ALPHAS)


def test_sizes_are_told(flc, said):
    square = np.array([drocox.dual_constant(alpha, rule="paper") ** 2 for alpha in ALPHAS])
    eta = {0.5: -1.0, 0.4: 1.0, 0.3: 1.0}
    columns = {("", "C²"): square}
    for name, at_four_tenths in (("FLC", 1.0), ("SEER", -1.0)):
        row = eta | {0.4: at_four_tenths}
        columns[name, "η"] = [row.get(alpha, 0.5) for alpha in ALPHAS]
        columns[name, "active"] = 7
        columns[name, "censored"] = 0.25
    table = pd.DataFrame(columns, index=pd.Index(ALPHAS))
    chapter.tell_sizes(table, flc, flc)
    assert said["who-c2"] == "163"  # 1 + 2 · 9²
    assert said["who-flc-eff"] == f"{1500 / 163:.0f}"
    assert said["who-seer-cens"] == "25"
    with pytest.raises(AssertionError, match="below zero"):
        chapter.tell_sizes(table.abs(), flc, flc)


def test_surprises_are_told(said):
    groups = pd.DataFrame({"old": [0.2, 0.8]}, index=pd.Index([0.1, "deaths"]))
    chapter.tell_surprises(groups)
    assert said == {"who-old-before": "20", "who-old-deaths": "80"}


def test_what_training_does_is_told_and_held(flc, said, monkeypatch):
    monkeypatch.setattr(chapter, "weight_of_earliest", lambda _, share: {0.2: 0.6, 0.5: 0.9}[share])
    names = ["SD", "c-index", "corr.", "before", "after"]
    columns = pd.MultiIndex.from_product([["FLC", "SEER"], names])
    rows = [[0.01, 0.7, 0.999, 0.3, 0.95] * 2, [1.0, 0.8, 0.2, 0.1, 0.1] * 2]
    effects = pd.DataFrame(rows, columns=columns, index=[0.1, 1.0])
    chapter.tell_when(effects, flc)
    assert (said["who-sd-cox"], said["who-sd-dro"]) == ("1.00", "0.01")
    assert said["who-corr-dro"] == "0.999"
    with pytest.raises(AssertionError, match="earliest tenth"):
        chapter.tell_when(effects * 0.8, flc)
