"""The first paragraph: alike, differ or cannot tell, by the intervals that the audit prints."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from cohort import simulated

import drocox
from drocox.auditing.findings import NOT_ASKED, paragraphs, sentences
from drocox.auditing.measures import MEASURES
from drocox.auditing.page import page
from drocox.heldout.intervals import says

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def wrong():
    """A model that is wrong for one of two groups."""
    data, scores = simulated(0, n=1500, minority=0.2, effects=(-0.4, 0.2, 0.9))
    return drocox.audit(data, scores, train=(data, scores), features=list(data.X))


def two_groups(n=2000, seed=0):
    """Log-hazards of two groups, in one of which patients are alike."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    truth = rng.normal(0, np.where(group == 1, 0.3, 1.2))
    death, leaves = rng.exponential(np.exp(-truth)), rng.exponential(2, n)
    groups = {"group": group}
    return drocox.SurvivalData.from_arrays(
        np.minimum(death, leaves), death <= leaves, groups=groups
    ), truth


@pytest.fixture(scope="module")
def perfect():
    return two_groups()


# Which word ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.04, 0.04, "alike"),
        (0.01, 0.04, "alike"),  # a small difference is told, and does not matter
        (-0.06, 0.04, "cannot tell"),
        (-0.04, 0.05, "cannot tell"),  # the margin itself is outside
        (0.01, 0.06, "differ"),
        (-0.09, -0.06, "differ"),
    ],
)
def test_what_an_interval_says(low, high, word):
    assert says(low, high, (-0.05, 0.05)) == word
    assert says(low, high) == ("differ" if low > 0 or high < 0 else "cannot tell")


def paragraph(*rows, c_index=(0.7, 0.7), events=(90, 40), expected=None):
    """What is said of two groups with these differences: measure, group, difference, low, high."""
    names = ["a", "b"]
    table = pd.DataFrame({"attribute": ["", "x", "x"], "group": ["everybody", *names]})
    table["c_index"] = [0.7, *c_index]
    table["c_expected"] = np.nan if expected is None else [0.7, *expected]
    table[["calibration", "c_minus_expected"]] = 1.0
    table["events"] = [sum(events), *events]
    ends = [
        f"{name}_{end}" for name in ("c_index", "calibration", "slope") for end in ("low", "high")
    ]
    table[ends] = np.nan
    found = []
    for measure, group, *numbers in rows:
        row = dict(zip(("difference", "low", "high"), numbers, strict=True))
        versus = MEASURES[measure].versus or "a"
        limits = {"c_index": (-0.05, 0.05), "c_minus_expected": (-0.05, np.inf)}.get(measure)
        word = says(row["low"], row["high"], limits)
        if measure == "calibration":
            ends = np.log([row["low"], row["high"]])
            word = says(*ends, (-np.log(1.25), np.log(1.25)))
        found.append({"attribute": "x", "group": group, "versus": versus, "measure": measure})
        found[-1] |= row | {"says": word}
    lines = sentences(table, pd.DataFrame(found), pd.DataFrame(columns=["high"]), ())
    return paragraphs([line for line in lines if line[0] in "B-"])


def test_alike_differ_and_cannot_tell():
    said = paragraph(("c_index", "b", 0.01, -0.02, 0.04))
    assert said == (
        "By x, with 95 % intervals:\n- Ranking (c-index): alike. It is 0.700 for b and 0.700 for "
        "a, a difference of 0.010 (-0.020 to 0.040), within ±0.05."
    )
    assert "small but not 0, within" in paragraph(("c_index", "b", 0.02, 0.01, 0.04))
    said = paragraph(("c_index", "b", 0.1, 0.06, 0.14))
    assert "- Ranking (c-index): differs. It is 0.700 for b" in said
    said = paragraph(("calibration", "b", 1.5, 1.2, 1.9))
    assert "- Observed / expected: differs. It is 1.00 for b and 1.00 for a, a ratio of 1" in said
    assert said.endswith(" a ratio of 1.50 (1.20 to 1.90).")
    said = paragraph(("calibration", "b", 1.05, 0.9, 1.2))
    assert ": alike. " in said and "(0.90 to 1.20), within 0.80 to 1.25." in said


def test_what_cannot_be_told_names_the_events_that_would_be_needed():
    """Of 130 events, an interval of 0.30 where 0.05 is asked for: 36 times as many."""
    said = paragraph(("c_index", "b", 0.02, -0.13, 0.17))
    assert said.endswith(
        "- Ranking (c-index): cannot tell. It is 0.700 for b and 0.700 for a, a difference of "
        "0.020 (-0.130 to 0.170): 0 is possible, and so are values below -0.05 or above 0.05. "
        "About 36 times as many events, 4,700 instead of 130, would decide."
    )
    said = paragraph(("c_index", "b", -0.02, -0.06, 0.01))  # narrow, across 0 and the margin
    assert ": 0 is possible, and so are values below -0.05. About" in said
    assert said.endswith("About 2.0 times as many events, 260 instead of 130, would decide.")
    said = paragraph(("c_index", "b", 0.0, -0.3, 0.3))  # 144 times as many
    assert said.endswith("0 is possible, and so are values below -0.05 or above 0.05.")
    half = 3 * np.log(1.25)
    said = paragraph(("calibration", "b", 1.0, np.exp(-half), np.exp(half)))
    assert said.endswith(
        ": 1 is possible, and so are values below 0.80 or above 1.25. About 36 times as many "
        "events, 4,700 instead of 130, would decide."
    )
    lower = ("c_minus_expected", "a", -0.04, -0.09, 0.01)
    wider = ("c_minus_expected", "b", 0.02, -0.08, 0.12)
    said = paragraph(lower, wider, expected=(0.74, 0.68))
    assert "The c-index is 0.700 for a, where 0.740 is expected, a difference of -0.040 (" in said
    assert "); 0.700 for b, where 0.680 is expected, a difference of 0.020 (" in said
    assert "About 16 times as many events, 2,100 instead of 130, would decide." in said


def test_only_a_lower_c_index_than_expected_counts():
    label = "- Ranking, beside what the model's own predictions lead one to expect: "
    better = ("c_minus_expected", "b", 0.09, 0.06, 0.12)
    fine = ("c_minus_expected", "a", 0.0, -0.03, 0.03)
    said = paragraph(better, fine, expected=(0.7, 0.6))
    assert f"{label}as expected. The c-index is 0.700 for a, where 0.700 is expected, a" in said
    assert said.endswith("; no group is worse by more than 0.05.")
    worse = ("c_minus_expected", "b", -0.09, -0.12, -0.06)
    said = paragraph(worse, fine, expected=(0.7, 0.79))
    assert f"{label}worse for b. The c-index is 0.700 for b, where 0.790 is expected, a dif" in said
    assert " a difference of -0.090 (-0.120 to -0.060); 0.700 for a, where 0.700 is " in said
    unclear = ("c_minus_expected", "b", -0.02, -0.12, 0.5)  # the lower limit decides
    said = paragraph(unclear, fine, expected=(0.7, 0.72))
    assert f"{label}cannot tell. The c-index is 0.700 for b, where 0.720" in said
    assert ": as expected is possible, and so is worse by more than 0.05. About 16 times" in said


def test_case_mix_is_not_read_as_unfairness(perfect):
    """The part that is expected is told in the same sentence."""
    lower = ("c_index", "b", -0.1, -0.14, -0.06)
    fine = [("c_minus_expected", one, 0.0, -0.03, 0.03) for one in "ab"]
    kwargs = {"c_index": (0.7, 0.6)}
    said = paragraph(lower, *fine, **kwargs, expected=(0.7, 0.6))
    assert "(-0.140 to -0.060). A difference of -0.100 is expected, since" in said
    assert "since the hazards predicted for b are relatively more alike.\n- " in said
    said = paragraph(lower, *fine, **kwargs, expected=(0.7, 0.71))
    assert "A difference of 0.010 is expected, " in said and " less alike." in said
    assert "is expected" not in paragraph(lower, **kwargs)
    data, truth = perfect
    found = drocox.audit(data, truth, expected=data.time * np.exp(truth))
    assert "- Ranking (c-index): differs. It is 0.5" in found.sentence
    assert "A difference of -0.1" in found.sentence and ": worse for" not in found.sentence


def test_a_group_that_is_not_judged_forbids_the_word_alike():
    data, scores = two_groups(6000, seed=1)
    site = data.groups["group"].copy()
    site[np.flatnonzero(data.event)[:3]] = 2
    site[site == 1] = 0
    site[::2] = np.where(site[::2] == 0, 1, site[::2])
    both = replace(data, groups={"site": site}, group_labels={})
    found = drocox.audit(both, scores)
    assert set(found.differences.loc[found.differences["measure"] == "c_index", "says"]) == {
        "alike"
    }
    said = found.sentence
    assert "(c-index): cannot tell. " in said and "), but not every group is judged." in said
    assert re.search(r"\n- Not judged: site = 2 \(\d events?\)\.\n", said)
    assert ": alike" not in said and ": as expected." not in said


def test_a_group_whose_own_ratio_is_not_1_is_named(perfect):
    data, truth = perfect
    twice = np.where(data.groups["group"] == 1, 2.0, 1.0)  # as many events as there will be
    found = drocox.audit(data, truth, expected=data.time * np.exp(truth) * twice)
    alone = r"By intervals that hold alone, 1 is excluded: 0\.[45]\d \(0\.[^)]*\) for group = 1\.\n"
    assert re.search(alone, found.sentence)


def test_a_group_without_five_events_up_to_the_horizon_is_not_judged_by_risks(perfect):
    data, truth = perfect
    late = (data.groups["group"] == 1) & (data.time < 0.2) & data.event
    data = data.subset(~late)
    truth = truth[~late]
    found = drocox.audit(data, risk=-np.expm1(-0.2 * np.exp(truth)), horizon=0.2)
    early = found.table.set_index("group").loc["group = 1"]
    assert early["events_by_horizon"] == 0 < early["events"] and np.isnan(early["calibration"])
    assert "Not judged by observed / predicted risk: group = 1." in found.sentence


def test_of_many_groups_it_is_told_how_many_differ():
    rng = np.random.default_rng(0)
    data, scores = simulated(0, n=3000)
    site = rng.integers(0, 9, 3000)
    scores = np.where(site == 3, -scores, scores)
    found = drocox.audit(replace(data, groups={"site": site}, group_labels={}), scores)
    assert ": differs. 1 of 9 groups differs from everybody. It is 0." in found.sentence
    assert "lead one to expect: worse for site = 3. " in found.sentence


def test_another_margin_gives_another_word(perfect):
    data, truth = perfect
    plain = drocox.audit(data, truth)
    wide = drocox.audit(data, truth, margin={"c_index": 0.3})
    assert "(c-index): differs." in plain.sentence and "(c-index): alike." in wide.sentence
    assert "small but not 0, within ±0.30" in wide.sentence
    of_risks = {"risk": np.exp(-np.exp(-truth)), "horizon": 1.0}  # also of a ratio of risks
    wide = drocox.audit(data, **of_risks, margin={"calibration": 9})
    assert (
        "within 0.11 to 9.00" in wide.sentence
        and "0.11 to 9.00" in page({"": wide}).split("The margins")[1]
    )
    for margin in (0.1, {"auc": 0.1}, {"c_index": -1}, {"calibration": 0.8}, {"c_index": "x"}):
        with pytest.raises((TypeError, ValueError), match="margin"):
            drocox.audit(data, truth, margin=margin)


# Words, tables and page agree ----------------------------------------------------------------


def test_words_are_those_of_the_printed_intervals(wrong):
    rows = wrong.differences
    for row in rows.itertuples():
        excludes = row.low > 1 or row.high < 1
        if row.measure != "calibration":
            excludes = row.low > 0 or row.high < 0
        assert (row.says == "differ") <= excludes and (row.says == "cannot tell") <= (not excludes)
    soup = BeautifulSoup(page({"": wrong}), "html.parser")
    bold = {}
    for table in soup.select("table.differences"):
        for cells in (row.select("td") for row in table.select("tr")[1:]):
            bold[cells[0].get_text()] = [cell.b is not None for cell in cells[1:]]
    known = {
        (row.group, row.versus, row.measure): row.says == "differ" for row in rows.itertuples()
    }
    for label in ("group = 0", "group = 1", "sex = 0", "sex = 1"):
        own = known[label, "this model", "own_model_gain"]
        assert bold[label][1] == own
    pair = ("group = 1", "group = 0")
    shown = [name for name, measure in MEASURES.items() if measure.pairs_on_page]
    assert bold["group = 1 against group = 0"] == [known[*pair, name] for name in shown]
    assert any(bold["group = 1"]) and not any(bold["sex = 1 against sex = 0"])
    words = [one.get_text().strip().split(": ")[-1] for one in soup.select(".lead .item b")]
    assert {"differs.", "cannot tell.", "worse for group = 1."} <= set(words)


def test_a_shortfall_is_told_in_the_group_that_has_it(wrong):
    first, second = wrong.sentence.split("\nBy sex, ")
    assert "lead one to expect: worse for group = 1. " in first
    assert ": worse for" not in second
    row = wrong.differences.set_index(["measure", "group"]).loc[("c_minus_expected", "group = 1")]
    assert f"of {row['difference']:.3f} ({row['low']:.3f} to {row['high']:.3f}" in first


def test_slopes_that_differ_are_told_by_group_and_not_on_the_whole(wrong):
    """One scale for everybody would spoil the group for which the model is right."""
    slopes = wrong.table.set_index("group")["slope"]
    said = (
        f"differs. It is {slopes['group = 1']:.2f} for group = 1 and {slopes['group = 0']:.2f} for"
    )
    assert said in wrong.sentence
    own = f"By intervals that hold alone, 1 is excluded: {slopes['group = 1']:.2f} ("
    assert own in wrong.sentence
    assert wrong.table["slope_high"].iloc[0] < 1 and "On the whole" not in wrong.sentence


def test_what_other_models_gain_is_told_beside_everybody(wrong):
    row = wrong.differences.set_index(["measure", "group"]).loc[("own_model_gain", "group = 1")]
    assert (
        "of a, b, c and member, fitted to one group alone, ranks its patients bet" in wrong.sentence
    )
    assert f"by {row['difference']:.3f} (" in wrong.sentence
    data, scores = simulated(1, n=500, effects=(0.8, 0.5, 0))
    names = list(data.X)
    said = drocox.audit(data, scores, features=names).sentence
    assert "fitted to one group alone, is not seen to rank any group better: in " in said
    assert NOT_ASKED in drocox.audit(data, scores).sentence.splitlines()
    assert "It was not tried in" not in said
    site = np.isin(np.arange(500), np.flatnonzero(data.event)[:19]).astype(int)
    few = replace(data, groups={"site": site}, group_labels={})
    said = drocox.audit(few, scores, features=names).sentence
    assert ". It was not tried in site = 1." in said
    weak = drocox.audit(data, data.X["b"].to_numpy(), features=names)
    assert weak.table["own_model_gain_low"].iloc[0] > 0
    assert "ranks patients in general better than this model, by" in weak.sentence


def test_scores_on_another_scale_have_no_expected_c_index(perfect):
    data, truth = perfect
    found = drocox.audit(data, np.round(10 * (truth - truth.min())))
    assert found.table["c_expected"].isna().all() and "Whole numbers" in found.sentence
    assert "By group, with 95 % intervals:\n- Ranking (c-index): differs. " in found.sentence


def test_a_perfect_model_is_as_expected_where_censoring_differs_by_group():
    """Of probabilities, too: nothing of what is expected depends on weights for censoring."""
    worse = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        group = rng.random(1500) < 0.5
        truth = rng.normal(np.where(group, 1.0, -0.5), 0.7)
        death = rng.exponential(size=1500) * np.exp(-truth)
        leaves = rng.exponential(size=1500) / np.where(group, 4, 0.05)
        time, event = np.minimum(death, leaves), death <= leaves
        data = drocox.SurvivalData.from_arrays(time, event, groups={"g": group})
        found = drocox.audit(data, risk=1 - np.exp(-np.exp(truth) * 0.5), horizon=0.5)
        assert found.table["c_expected"].notna().all()
        worse += ": worse for" in found.sentence
    assert worse <= 1


# One outlying score --------------------------------------------------------------------------


@pytest.mark.parametrize("far", [10.0, 1000.0])
def test_one_outlying_score_leaves_the_other_group_alone_and_is_told(far):
    data, scores = simulated(0, n=600, effects=(0.8, 0.5, 0))
    sex = data.groups["sex"]

    def width(found):
        rows = found.differences.set_index(["measure", "group"])
        row = rows.loc[("c_minus_expected", "sex = 0")]
        return row["high"] - row["low"]

    before = drocox.audit(data, scores)
    outlying = scores.copy()
    one = np.flatnonzero((sex == 1) & ~data.event)[0]
    outlying[one] = far
    found = drocox.audit(data, outlying)
    assert "1 of 600 scores lies far outside all others" in found.sentence
    assert width(found) < 2 * width(before)
    assert "far outside" not in before.sentence


def test_a_few_extreme_scores_that_decide_the_slope_are_told():
    data, scores = simulated(0, n=900, effects=(0.8, 0.5, 0))
    assert not any("extreme scores" in line for line in drocox.audit(data, scores).cautions)
    far = np.argsort(scores)[-15:]
    scores[far] *= 4
    found = drocox.audit(data, scores)
    row = found.table.iloc[0]
    assert row["slope"] < 0.8 < row["central_slope"]
    (said,) = [line for line in found.cautions if "extreme scores decide the slope" in line]
    assert f"everybody ({row['slope']:.2f}, and {row['central_slope']:.2f} without them)" in said


# Pictures and files --------------------------------------------------------------------------


def test_one_meets_a_target_only_where_there_is_one(wrong):
    """Dotted is perfect calibration; everybody's c-index would look like a target."""
    figure = wrong.plot()
    dotted = [[x for x in ax.lines if x.get_linestyle() == ":"] for ax in figure.axes]
    assert not dotted[0] and {tuple(line.get_xdata()) for line in dotted[1]} == {(1, 1)}
    plt.close(figure)


def test_the_expected_c_index_is_drawn_and_printed(wrong):
    figure = wrong.plot()
    ticks = [line for line in figure.axes[0].lines if line.get_marker() == "|"]
    np.testing.assert_allclose(ticks[0].get_xdata(), wrong.table["c_expected"])
    assert not [line for line in figure.axes[1].lines if line.get_marker() == "|"]
    plt.close(figure)
    words = BeautifulSoup(page({"": wrong}), "html.parser").select_one("figure div")["aria-label"]
    row = wrong.table.iloc[2]
    assert f"group = 1 {row['c_index']:.2f}, expected {row['c_expected']:.2f};" in words
    line = [line for line in str(wrong).splitlines() if line.startswith("group = 1")][-1]
    assert line.split()[-2] == f"{row['c_expected']:.2f}"
