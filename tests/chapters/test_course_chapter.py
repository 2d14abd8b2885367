"""Numbers of decks, sheets and exam: against lifelines, a literal loop and by hand."""

import numpy as np
import pytest
from lifelines import KaplanMeierFitter

from drocox.bookstyle import SIX
from drocox.chapters import course

TIME = SIX["time"].to_numpy()
EVENT = SIX["event"].to_numpy(bool)


def test_the_curve_is_that_of_lifelines():
    for e_dies in (False, True):
        event = EVENT.copy()
        event[4] |= e_dies
        fitted = KaplanMeierFitter().fit(TIME, event)
        steps = course.survival_of_six(event)
        assert [month for month, _, _ in steps] == sorted(TIME[event])
        for month, at_risk, curve in steps:
            assert float(curve) == pytest.approx(fitted.predict(month))
            assert at_risk == (month <= TIME).sum()


@pytest.mark.parametrize("theta", [np.log(2), 0.0, -np.log(2)])
def test_losses_are_those_of_the_formula_read_aloud(theta):
    scores = theta * SIX["x"].to_numpy()
    expected = np.zeros(6)
    for i in np.flatnonzero(EVENT):
        at_risk = TIME[i] <= TIME
        expected[i] = np.log(np.exp(scores[at_risk]).sum()) - scores[i]
    assert course.losses_of_six(theta) == pytest.approx(expected)


def test_what_the_slides_and_the_exam_say_by_hand():
    values = course.values()
    assert values["km-8"] == "0.417" and values["km-e-dies-9-fraction"] == "5/24"
    assert values["loss-A"] == f"{np.log(10 / 4):.3f}" and values["loss-F"] == "0.000"
    assert values["loss-C"] == values["loss-blind-C"]  # exam: C was expected as much as by chance
    assert values["hazards-at-C"] == values["at-risk-C"] == "4"
    assert values["risk-set-D"] == "DEF"
    assert values["c2-sharp-0.1"] == "10" and values["c2-paper-0.2"] == "33"
    expected = 2 / 10 + 2 / 4 + 2 / 3
    assert values["expected-D"] == f"{expected:.3f}"
    assert values["gradient-D"] == f"{expected - 1:.3f}"


@pytest.mark.parametrize("alpha", [0.3, 0.4, 0.5])
def test_weights_use_up_the_ball_and_give_the_risk(alpha):
    values = course.values()
    losses = course.losses_of_six(np.log(2))
    weights = np.array([float(values[f"q-{letter}-{alpha}"]) for letter in "ABCDEF"])
    eta = float(values[f"eta-{alpha}"].replace("−", "-"))
    excess = np.maximum(losses - eta, 0)
    assert weights == pytest.approx(excess / excess.sum(), abs=2e-3)
    assert 6 * (weights**2).sum() == pytest.approx(1 / alpha, rel=5e-3)
    assert weights @ losses == pytest.approx(float(values[f"risk-{alpha}"]), abs=3e-3)


def test_no_number_is_nothing():
    assert all(value.strip() and "nan" not in value for value in course.values().values())
