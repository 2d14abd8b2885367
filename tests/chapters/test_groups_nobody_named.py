"""Values of *groups nobody named* from the stored studies; guards that can fail."""

import numpy as np
import pytest
from perturbed import failed, rescaled, told

import drocox
from drocox.beyond import groups
from drocox.chapters import groups_nobody_named as chapter
from drocox.chapters import groups_nobody_named_real as real_patients


@pytest.fixture(scope="module")
def runs():
    return drocox.load_runs("beyond")


@pytest.fixture(scope="module")
def planted(runs):
    rows = runs[runs["study"] == "groups"]
    return rows[rows["design"].notna()]


@pytest.fixture(scope="module")
def censoring(runs):
    return runs[runs["study"] == "censoring"]


@pytest.fixture(scope="module")
def real(runs):
    rows = runs[runs["study"] == "groups"]
    return real_patients.with_models(rows[rows["family"].notna()])


@pytest.fixture(scope="module")
def told_groups(real):
    found = ~real["family"].isin(["everybody", "attributes"])
    return real[found & (real["method"] != "Cox")]


def test_designs(planted):
    result = told(chapter, "tell_designs", planted)
    rows = planted[(planted["design"] == "other-early") & (planted["method"] == "DRO-COX")]
    rows = rows[(rows["share"] == 0.2) & (rows["n"] == 4000) & (rows["marker"] == 1)]
    assert result.values["hidden-dro-other-early"] == f"{rows['c_minority'].mean():.3f}"
    backwards = planted.assign(c_minority=1 - planted["c_minority"])
    noisy = planted.assign(c_minority=np.random.default_rng(0).random(len(planted)))
    variants = [(backwards,), (noisy,)]
    assert failed(chapter, "tell_designs", *variants) == set(result.held)


def test_gains_by_follow_up_are_differences_of_means(censoring):
    gains = chapter.gains_by_follow_up(censoring, 0.5)
    assert list(gains.index) == sorted(gains.index, reverse=True)
    rows = censoring[(censoring["design"] == "other") & (censoring["seen"] == 0.3)]
    dro = rows[(rows["method"] == "DRO-COX") & (rows["alpha"] == 0.5)]
    cox = rows[rows["method"] == "Cox"]
    by_hand = dro["c_minority_followed"].mean() - cox["c_minority_followed"].mean()
    assert gains.loc[0.3, "other"] == pytest.approx(by_hand)
    figure = chapter.draw_follow_up(censoring)
    assert [panel.get_title() for panel in figure.axes] == ["α = 0.2", "α = 0.5"]
    assert len(figure.axes[0].get_legend_handles_labels()[0]) == len(groups.DESIGNS)


def test_follow_up(censoring):
    result = told(chapter, "tell_follow_up", censoring)
    columns = ["c_minority_followed", "c_majority_followed"]
    backwards = censoring.assign(**{name: 1 - censoring[name] for name in columns})
    equal = censoring.assign(**dict.fromkeys(columns, 0.6))
    noisy = censoring.copy()
    noisy[columns] = np.random.default_rng(0).random((len(noisy), 2))
    helped = censoring.copy()
    helped.loc[helped["method"] == "DRO-COX", columns] += 0.1
    variants = [(backwards,), (equal,), (noisy,), (helped,)]
    assert failed(chapter, "tell_follow_up", *variants) == set(result.held)


def test_shares_of_deaths_that_are_seen():
    values = told(chapter, "tell_censoring").values
    low, high = values["hidden-seen"].split(" to ")
    assert 50 < int(low) < int(high) < 75
    assert values["hidden-flc-p"] == f"{100 * drocox.load_dataset('flc').event.mean():.0f}"


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


def test_models_are_named_by_method_and_alpha(real):
    names = set(real["model"])
    assert {"Cox", "DRO-COX 0.1", "DRO-COX, paper's C 0.5", "own, leaves"} <= names
    assert not any(name.endswith("nan") or name == "Cox 1" for name in names)


def test_verdicts_are_counts_of_intervals(told_groups):
    counts = real_patients.verdicts(told_groups, "c_index")
    rows = told_groups[(told_groups["model"] == "DRO-COX 0.1") & (told_groups["dataset"] == "seer")]
    assert counts.loc["DRO-COX 0.1", ("seer", "worse")] == (rows["c_index_gain_high"] < 0).sum()
    assert "Cox" not in counts.index


def test_real_groups_and_their_drawing(told_groups):
    ranks = real_patients.verdicts(told_groups, "c_index")
    likelihoods = real_patients.verdicts(told_groups, "lpl")
    result = told(real_patients, "tell_real", told_groups, ranks, likelihoods)
    one = told_groups[told_groups["model"] == "DRO-COX 0.1"]
    assert result.values["hidden-groups"] == str(len(one))
    wide = told_groups.assign(c_index_gain_high=told_groups["c_index_gain_high"] + 1)
    all_better = ranks * 0 + 34
    none = ranks * 0
    variants = [(wide, all_better, likelihoods), (told_groups, none, likelihoods)]
    assert failed(real_patients, "tell_real", *variants) == set(result.held)
    assert len(real_patients.draw_real(told_groups).axes) == 3


def test_groups_with_names(real):
    sides = real[real["family"] == "attributes"]
    result = told(real_patients, "tell_sides", sides)
    assert result.values["sides-n"] == "42"  # 14 groups of seven pairs, three times
    columns = ["c_index_gain", "c_index_gain_low", "c_index_gain_high"]
    shifts = [(sides.assign(**{c: sides[c] + by for c in columns}),) for by in (-1, 1)]
    assert failed(real_patients, "tell_sides", *shifts) == set(result.held)


def test_expected_deaths_sum_to_the_observed_ones():
    minority = np.arange(300) < 60
    data = groups.planted("other", minority, 1.0, seed=0)
    expected = real_patients.expected_deaths(data, np.arange(300) % 3)
    assert (expected >= 0).all()
    assert abs(expected.sum() / data.event.sum() - 1) < 0.2
