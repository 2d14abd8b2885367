"""Measures of the user's own: columns, intervals, differences, a place on the page."""

from dataclasses import replace

import numpy as np
import pytest
from bs4 import BeautifulSoup
from cohort import simulated

import drocox
from drocox.auditing.measures import OwnMeasure
from drocox.auditing.page import page
from drocox.heldout import HeldOut
from drocox.heldout.intervals import jackknife

pytestmark = pytest.mark.usefixtures("undrawn")


def share_at_top(patients, members):
    """The share of a group among the tenth of patients at highest risk: it needs everybody."""
    top = patients.scores >= np.quantile(patients.scores, 0.9)
    return members[top].mean()


def mean_score(patients, members):
    return patients.scores[members].mean()


def test_a_measure_may_compare_a_group_with_everybody():
    data, scores = simulated(n=400)
    scores = scores + data.groups["group"]
    found = drocox.audit(data, scores, measures={"at the top": share_at_top})
    table = found.table.set_index("group")
    top = scores >= np.quantile(scores, 0.9)
    for attribute, codes in data.groups.items():
        for code in (0, 1):
            label = f"{attribute} = {code}"
            row = table.loc[label]
            assert row["at the top"] == (codes[top] == code).mean()
            assert row["at the top_low"] < row["at the top"] < row["at the top_high"]
    assert table.loc["everybody", "at the top"] == 1
    mine = found.differences[found.differences["measure"] == "at the top"].set_index("group")
    apart = table.loc["group = 1", "at the top"] - table.loc["group = 0", "at the top"]
    row = mine.loc["group = 1"]
    assert row["difference"] == pytest.approx(apart) and row["says"] == "differ"


def test_a_measure_has_its_place_on_the_page_and_between_models():
    data, scores = simulated(n=300)
    noisy = scores + np.random.default_rng(0).normal(size=300)
    name = "mean <score>"
    both = drocox.audit(data, {"a": scores, "b": noisy}, measures={name: mean_score})
    soup = BeautifulSoup(page(both), "html.parser")
    heads = [[head.get_text() for head in table.select("th")] for table in soup.select("table")]
    assert any(name in of_table for of_table in heads if "Patients" in of_table)
    assert any(name in of_table for of_table in heads if "Pair" in of_table)
    assert name in soup.select_one("table.measured").get_text()
    rows = both.paired[both.paired["measure"] == name].set_index("group")
    assert rows.loc["sex = 1", "difference"] == pytest.approx(
        (noisy - scores)[data.groups["sex"] == 1].mean()
    )


@pytest.mark.parametrize("n", [60, 5000])
def test_the_error_is_that_of_a_jackknife(n):
    """Of patients, if there are few; of a hundred blocks otherwise: the mean's is s / sqrt(n)."""
    rng = np.random.default_rng(0)
    patients = HeldOut(rng.normal(size=n), rng.random(n), np.full(n, True), np.zeros(n, int))
    members = rng.random(n) < 0.7
    mine = patients.scores[members]
    estimate = OwnMeasure("mean", mean_score)(patients, members)
    assert estimate.value == mine.mean()
    error = np.sqrt(jackknife(estimate.without[:, None])[0].item())
    known = mine.std(ddof=1) / np.sqrt(len(mine))
    assert error == pytest.approx(known, rel=0.01 if n == 60 else 0.2)
    rows = rng.permutation(n)
    again = OwnMeasure("mean", mean_score)(patients.subset(rows), members[rows])
    np.testing.assert_allclose(again.without, estimate.without[rows], rtol=1e-12)


def test_a_method_and_the_same_function_have_like_intervals():
    data, scores = simulated(n=400)
    data = replace(data, groups={"sex": data.groups["sex"]}, group_labels={})

    def c_index(patients, members):
        return patients.c_index(members).value

    found = drocox.audit(data, scores, measures={"mine": c_index}).table
    np.testing.assert_allclose(found["mine"], found["c_index"])
    width = (found["mine_high"] - found["mine_low"]) / (
        found["c_index_high"] - found["c_index_low"]
    )
    assert width.between(0.6, 1.5).all()


def test_a_number_may_not_exist():
    data, scores = simulated(n=200)
    found = drocox.audit(data, scores, measures={"none": lambda patients, members: np.nan})
    assert found.table["none"].isna().all()
    assert "none" not in set(found.differences["measure"])


def fails(patients, members):
    return 1 / int(members.all())


@pytest.mark.parametrize(
    ("measures", "error", "words"),
    [
        ({"c_index": mean_score}, ValueError, "the name 'c_index' is taken"),
        ({"auc_low": mean_score}, ValueError, "the name 'auc_low' is taken"),
        ({"patients": mean_score}, ValueError, "the name 'patients' is taken"),
        ({"m": mean_score, "m_high": mean_score}, ValueError, "the name 'm_high' is taken"),
        ({" ": mean_score}, TypeError, "' ' is no name"),
        ({3: mean_score}, TypeError, "3 is no name"),
        (mean_score, TypeError, "measures must map names to functions"),
        ({"m": "c_index"}, TypeError, "measures must map names to functions"),
        ({"m": fails}, ValueError, r"'m' fails for a group of \d+ patients, ZeroDivisionError"),
        ({"m": lambda *_: "high"}, TypeError, "'m' returns str; return one number"),
        ({"m": lambda *_: np.ones(3)}, TypeError, "'m' returns ndarray; return one number"),
        ({"m": lambda patients: 1.0}, ValueError, "'m' fails for a group of .* TypeError"),
    ],
)
def test_measures_that_cannot_be_used_are_refused_by_name(measures, error, words):
    data, scores = simulated(n=100)
    with pytest.raises(error, match=words):
        drocox.audit(data, scores, measures=measures)


def test_hidden_groups_are_hidden_in_own_measures():
    data, scores = simulated(n=300)
    site = np.where(np.arange(300) < 12, 1, 0)
    data = replace(data, groups={"site": site}, group_labels={})
    seen = []

    def watched(patients, members):
        seen.append(members.sum())
        return 1.0

    found = drocox.audit(data, scores, measures={"w": watched}, smallest=10)
    assert found.table["w"].isna().tolist() == [False, True, True]
    assert min(seen) > 250
