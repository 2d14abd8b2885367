"""Drawings and values of the chapter on the Cox loss."""

import numpy as np
import pytest
import torch

import drocox
from drocox.bookstyle import SIX
from drocox.chapters import cox_loss as chapter

TIME = SIX["time"].to_numpy()
EVENT = SIX["event"].to_numpy()
SCORES = np.log(2) * SIX["x"].to_numpy()


def losses(scores=SCORES, ties="breslow"):
    return drocox.cox_losses(torch.tensor(scores), TIME, EVENT, ties=ties).numpy()


def test_bars_are_the_softmax_over_the_risk_set():
    figure = chapter.draw_next(SCORES, TIME, EVENT, losses(), SIX.index)
    deaths = np.flatnonzero(EVENT)
    for axes, i in zip(figure.axes, deaths, strict=True):
        heights = [bar.get_height() for bar in axes.patches]
        hazards = [2.0 ** SIX["x"].iloc[j] for j in range(6) if TIME[j] >= TIME[i]]
        assert heights[:-1] == pytest.approx(np.array(hazards) / sum(hazards))
        assert heights[-1] == pytest.approx(np.exp(-losses()[i]))


def test_bars_are_held_to_the_losses():
    with pytest.raises(AssertionError, match="minus the logarithm"):
        chapter.draw_next(SCORES, TIME, EVENT, losses() + 1, SIX.index)


def test_tied_share():
    assert chapter.tied_share(np.array([1.0, 2.0, 2.0, 3.0, 3.0])) == 4 / 5


def test_conventions_differ_only_where_patients_are_tied():
    without = chapter.losses_by_convention(torch.tensor(SCORES), TIME, EVENT)
    for values in without.values():
        assert values.numpy() == pytest.approx(losses())
    tied = TIME.copy()
    tied[3] = tied[2]  # C and D die in the same month
    with_ties = chapter.losses_by_convention(torch.tensor(SCORES), tied, EVENT)
    moved = (with_ties["order"] - with_ties["rows reversed"]).abs().numpy() > 1e-12
    assert list(SIX.index[moved]) == ["C", "D"]
    breslow = drocox.cox_losses(torch.tensor(SCORES), tied, EVENT)
    assert torch.equal(with_ties["breslow"], breslow)


def test_losses_by_time_and_age():
    old = np.array([True, False] * 3)
    blank = losses(np.zeros(6))
    axes = chapter.draw_losses_by_time(TIME, EVENT, old, losses(), blank).axes[0]
    assert axes.lines[0].get_ydata() == pytest.approx(losses()[EVENT & old], abs=1e-3)
    sizes = [np.sum(time <= TIME) for time in TIME[EVENT]]
    assert axes.lines[2].get_ydata() == pytest.approx(np.log(sizes))


def test_sentences_on_age_are_held():
    event = np.array([True, True, True, False])
    old = np.array([True, True, False, False])
    blank = np.full(4, 1.5)
    surprised = np.array([1.0, 1.0, 1.8, 0.0])
    chapter.tell_losses_by_age(event, old, surprised, blank)
    with pytest.raises(AssertionError, match="nobody expected it"):
        chapter.tell_losses_by_age(event, old, np.array([2.0, 2.0, 1.0, 0.0]), blank)


@pytest.mark.slow
def test_most_patients_are_tied():
    table = chapter.ties_table()
    for name in chapter.DATASETS:
        time = drocox.load_dataset(name).time
        tied = sum(np.sum(time == t) > 1 for t in time) / len(time)
        assert table.loc[name, "tied"] == f"{tied:.0%}"
