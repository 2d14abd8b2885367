"""Values of *groups nobody named* from the stored study; guards that can fail."""

import numpy as np
import pytest
from perturbed import failed, rescaled, told

import drocox
from drocox.beyond import groups
from drocox.chapters import groups_nobody_named as chapter


@pytest.fixture(scope="module")
def planted():
    runs = drocox.load_runs("beyond")
    runs = runs[runs["study"] == "groups"]
    return runs[runs["design"].notna()]


def test_designs(planted):
    result = told(chapter, "tell_designs", planted)
    rows = planted[(planted["design"] == "other-early") & (planted["method"] == "DRO-COX")]
    rows = rows[(rows["share"] == 0.2) & (rows["n"] == 4000) & (rows["marker"] == 1)]
    assert result.values["hidden-dro-other-early"] == f"{rows['c_minority'].mean():.3f}"
    backwards = planted.assign(c_minority=1 - planted["c_minority"])
    noisy = planted.assign(c_minority=np.random.default_rng(0).random(len(planted)))
    variants = [(backwards,), (noisy,)]
    assert failed(chapter, "tell_designs", *variants) == set(result.held)


def test_answers_and_their_drawing(planted):
    result = told(chapter, "tell_answers", planted)
    assert float(result.values["hidden-oe-regret"]) > float(result.values["hidden-oe-cox"])
    noisy = planted.copy()
    columns = ["c_minority", "c_majority", "oe_minority"]
    noisy[columns] = np.random.default_rng(1).random((len(planted), 3))
    assert len(failed(chapter, "tell_answers", (noisy,))) > 4
    figure = chapter.draw_answers(planted)
    assert [panel.get_title() for panel in figure.axes] == ["weak marker", "clear marker"]


def test_sizes(planted):
    rows = planted[(planted["marker"] == 1) & planted["method"].isin(["Cox", "DRO-COX"])]
    c = rows.pivot_table("c_minority", ["share", "n", "design"], "method")
    gains = (c["DRO-COX"] - c["Cox"]).unstack("design")[list(groups.DESIGNS)]
    result = told(chapter, "tell_sizes", gains)
    variants = [(-gains,), (rescaled(gains, 100.0, 1.0),)]
    assert failed(chapter, "tell_sizes", *variants) == set(result.held)


def test_expected_deaths_sum_to_the_observed_ones():
    minority = np.arange(300) < 60
    data = groups.planted("other", minority, 1.0, seed=0)
    expected = chapter.expected_deaths(data, np.arange(300) % 3)
    assert (expected >= 0).all()
    assert abs(expected.sum() / data.event.sum() - 1) < 0.2
