"""Drawings and values of the chapter on the worst case."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

import drocox
from drocox.chapters import worst_case as chapter

RADIUS = {
    "sharp": lambda a: 1 / a - 1,
    "definition": lambda a: (1 / a - 1) ** 2,
    "paper": lambda a: 2 * (1 / a - 1) ** 2,
}
LOSSES = np.log([10 / 4, 4 / 1, 3 / 2])


def binary_risk(p, r):
    return min(1.0, p + np.sqrt(r * p * (1 - p)))


@pytest.mark.parametrize("alpha", [0.25, 1 / 3, 0.5, 2 / 3, 0.9])
def test_corners_are_those_of_the_set_under_the_ceiling(alpha):
    """The largest mean loss over the set, by linear programming by hand, is the CVaR."""
    corners = chapter.under_ceiling(alpha)
    assert np.allclose(corners.sum(axis=1), 1)
    assert corners.min() > -1e-12
    assert corners.max() <= 1 / (3 * alpha) + 1e-12
    cvar = drocox.dro_risk(torch.tensor(LOSSES), alpha, rule="cvar").item()
    assert (corners @ LOSSES).max() == pytest.approx(cvar)


def test_divergence_of_subsets_is_the_sharp_radius():
    for size in (1, 2, 3):
        for group in itertools.combinations(range(3), size):
            q = np.zeros(3)
            q[list(group)] = 1 / size
            divergence = np.mean((3 * q - 1) ** 2)
            assert chapter.farthest_divergence(size / 3) == pytest.approx(divergence)


def test_the_slider_shows_the_packages_bounds():
    figure = chapter.ball_slider("ball", LOSSES, "ACD", RADIUS)
    start = chapter.SHARES[7]
    for rule in ("sharp", "definition", "paper", "cvar"):
        value = drocox.dro_risk(torch.tensor(LOSSES), start, rule=rule).item()
        assert f"{value:.3f}" in figure.markup
    assert "C: loss 1.39" in figure.markup


def test_the_ball_is_held_to_the_text():
    with pytest.raises(AssertionError, match="holds every group"):
        chapter.ball_slider("ball", LOSSES, "ACD", RADIUS | {"sharp": lambda a: 0.9 * (1 / a - 1)})
    with pytest.raises(AssertionError, match="the whole triangle"):
        chapter.ball_slider("ball", LOSSES, "ACD", RADIUS | {"paper": RADIUS["definition"]})


def test_sentences_beyond_one_half(said):
    chapter.tell_beyond_one_half(binary_risk, RADIUS)
    assert said == {"wc-counter": "0.900", "wc-counter-paper": "0.941"}
    with pytest.raises(AssertionError, match="1/2 for r_max"):
        chapter.tell_beyond_one_half(lambda p, r: min(1.0, 0.5 * p + 0.5), RADIUS)


@pytest.fixture
def patients():
    number = np.arange(600)
    old = number % 5 < 2
    men = number // 5 % 2 == 0
    event = number // 10 % 3 == 0  # a third of every group
    losses = np.where(event, (1 + 4 * old + men) * (1 + number / 6000), 0.0)
    groups = {
        "over 65": old,
        "65 or younger": ~old,
        "men": men,
        "women": ~men,
        "men over 65": men & old,
        "women over 65": ~men & old,
        "younger men": men & ~old,
        "younger women": ~men & ~old,
    }
    return losses, event, groups


def test_groups_and_ladder_are_told(patients, said):
    losses, event, groups = patients
    chapter.tell_groups(losses, groups, event)
    assert said["wc-old"] == f"{losses[groups['over 65']].mean():.2f}"
    table = pd.DataFrame({"worst named group": [1.0], "CVaR": [2.0], "paper": [3.0]}, index=[0.1])
    chapter.tell_ladder(table, losses, event)
    assert said["wc-deaths"] == f"{losses.sum() / event.sum():.2f}"
    with pytest.raises(AssertionError, match="those who died"):
        chapter.tell_ladder(table, losses + 2.0 * ~event, event)


def test_groups_are_held_to_the_picture(patients):
    losses, event, groups = patients
    swapped = groups | {"over 65": groups["65 or younger"]}
    with pytest.raises(AssertionError, match="far above"):
        chapter.tell_groups(losses, swapped, event)
    with pytest.raises(AssertionError, match="near the mean"):
        chapter.tell_groups(losses + 5 * groups["men"], groups, event)
    with pytest.raises(AssertionError, match="men over 65 are worst"):
        chapter.tell_groups(losses, groups | {"younger men": groups["over 65"] & event}, event)


def test_bars_are_as_thick_as_the_groups(patients):
    losses, _, groups = patients
    axes = chapter.draw_lists(losses, groups).axes[0]
    names = [name for names in chapter.LISTS.values() for name in names]
    assert [label.get_text() for label in axes.get_yticklabels()] == names
    for bar, name in zip(axes.patches, names, strict=True):
        assert bar.get_width() == pytest.approx(losses[groups[name]].mean())
        assert bar.get_height() == pytest.approx(groups[name].mean())
    areas = [bar.get_height() * bar.get_width() for bar in axes.patches]
    assert sum(areas) == pytest.approx(3 * losses.mean())


def test_the_ladder_is_drawn(patients):
    losses, _, groups = patients
    axes = chapter.draw_ladder(losses, groups).axes[0]
    drawn = {line.get_label(): line for line in axes.lines}
    alphas = drawn["CVaR (exact)"].get_xdata()
    ordered = np.sort(losses)[::-1]
    half = np.flatnonzero(np.isclose(alphas, 0.5))[0]
    assert drawn["CVaR (exact)"].get_ydata()[half] == pytest.approx(ordered[:300].mean())
    assert drawn["DRO, sharp"].get_ydata()[-1] == pytest.approx(losses.mean())
    assert len(drawn["named groups"].get_xdata()) == len(groups)
