"""The explorable of the χ² ball on three patients."""

import itertools

import numpy as np
import pytest
import torch

import drocox
from drocox.explorables import ball

RADIUS = {
    "sharp": lambda a: 1 / a - 1,
    "definition": lambda a: (1 / a - 1) ** 2,
    "paper": lambda a: 2 * (1 / a - 1) ** 2,
}
LOSSES = np.log([10 / 4, 4 / 1, 3 / 2])


@pytest.mark.parametrize("alpha", [0.25, 1 / 3, 0.5, 2 / 3, 0.9])
def test_corners_are_those_of_the_set_under_the_ceiling(alpha):
    """The largest mean loss over the set, by linear programming by hand, is the CVaR."""
    corners = ball.under_ceiling(alpha)
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
            assert ball.farthest_divergence(size / 3) == pytest.approx(divergence)


def test_the_ball_is_held_to_the_text(monkeypatch):
    monkeypatch.setenv("DROCOX_STRICT", "1")
    with pytest.raises(AssertionError, match="holds every group"):
        ball.ball_slider("ball", LOSSES, "ACD", RADIUS | {"sharp": lambda a: 0.9 * (1 / a - 1)})
    with pytest.raises(AssertionError, match="the whole triangle"):
        ball.ball_slider("ball", LOSSES, "ACD", RADIUS | {"paper": RADIUS["definition"]})
