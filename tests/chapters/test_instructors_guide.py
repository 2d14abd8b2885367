"""The guide's table of wrong answers, and its counts."""

import numpy as np
import pytest
from perturbed import failed, told

from drocox.bookstyle import SIX
from drocox.chapters import instructors_guide as chapter
from drocox.exercises import names

KNOWN = [wrong.exercise for wrong in chapter.WRONG]


def test_losses_with_everybody_at_risk_by_a_loop():
    hazards = [2.0**-x for x in SIX["x"]]
    expected = []
    for died, h in zip(SIX["event"], hazards, strict=True):
        expected.append(np.log(sum(hazards) / h) if died else 0.0)
    assert np.allclose(chapter.all_at_risk(), expected)


def test_wrong_ways_to_weights():
    losses = np.array([0.0, 1.0, 3.0])
    assert chapter.equal_above(losses, 0.5).tolist() == [0, 0.5, 0.5]
    eta = chapter.everybody_active(losses, 2.0)
    assert np.isclose(eta, losses.mean() - losses.std() / np.sqrt(3))


@pytest.mark.parametrize("number", range(len(KNOWN)))
def test_the_check_knows_the_mistake(number):
    wrong = chapter.WRONG[number]
    assert wrong.exercise in names()
    result = chapter.reply(wrong)
    assert result and not result.startswith("✗")


def test_an_unknown_mistake_is_noticed():
    unknown = chapter.WRONG[0]._replace(answer=[9, 9, 9, 9])
    assert failed(chapter, "reply", (unknown,))


def test_table_and_counts():
    html = chapter.misconceptions().data
    assert html.count("<tr>") == len(KNOWN) and "misconceptions" in html
    values = told(chapter, "tell_counts").values
    assert values["guide-checks"] == str(len(names())) and values["guide-known"] == str(len(KNOWN))
