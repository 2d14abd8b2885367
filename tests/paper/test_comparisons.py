"""Signed gaps against literal t tests, and how often the words are wrong in simulated repeats."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from drocox.paper import comparisons, tables
from drocox.paper.comparisons import detectable_errors

LONGER = np.sqrt((1 / 10 + 0.2 / 0.8) * 10)  # a corrected interval, over a plain one


def repeats(theirs, ours, n, *, within=((1.0, 0.9), (0.9, 1.0)), seed=0):
    """Ten repeats of n experiments that share patients, as Nadeau and Bengio assume.

    A part of the error is common to all repeats of an experiment: a quarter of the variance
    between repeats, as with a test part of one fifth.
    """
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.array(within)).T
    common = 0.5 * rng.standard_normal((1, n, 2)) @ root
    values = np.array([theirs, ours]) + common + rng.standard_normal((10, n, 2)) @ root
    return values[..., 0], values[..., 1]


def rates(theirs, ours, n=4000, family=1, **options):
    """Share of each word over experiments, words of intervals that hold together."""
    values = repeats(theirs, ours, n, **options)
    names = [str(i) for i in range(n)]
    words = comparisons.compare(*values, names, "corrected", family=family)["together"]
    return words.value_counts(normalize=True).reindex(comparisons.WORDS, fill_value=0.0)


def test_a_detectable_difference_is_found_in_four_of_five_t_tests():
    d = np.random.default_rng(0).normal(0.3, 1, (10, 2))
    found = comparisons.interval(d, "corrected")
    shift = found.detectable / (found.half / stats.t.ppf(0.975, 9))
    assert np.ptp(shift) < 1e-9
    told = np.random.default_rng(1).normal(shift[0] / np.sqrt(10), 1, (10, 20000))
    assert (stats.ttest_1samp(told, 0).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.01)


def test_gaps_and_intervals_are_those_of_literal_t_tests():
    rng = np.random.default_rng(1)
    theirs, ours = rng.normal(0.5, 1, (2, 10, 3))
    table = comparisons.compare(theirs, ours, ["a", "b", "c"], "as_published")
    longer = comparisons.compare(theirs, ours, ["a", "b", "c"], "corrected")
    for k, name in enumerate(["a", "b", "c"]):
        row = table.loc[name]
        paired = stats.ttest_rel(theirs[:, k], ours[:, k])
        assert row["difference_p"] == pytest.approx(paired.pvalue)
        low = paired.confidence_interval().low
        assert row["difference"] - row["difference_half"] == pytest.approx(low)
        together = paired.confidence_interval(1 - 0.05 / 3)
        assert row["difference"] + row["difference_half_together"] == pytest.approx(together.high)
        of_sum = stats.ttest_1samp(theirs[:, k] + ours[:, k], 0)
        assert row["sum_p"] == pytest.approx(of_sum.pvalue)
        own = stats.ttest_1samp(theirs[:, k], 0).confidence_interval()
        assert row["theirs"] + row["theirs_half"] == pytest.approx(own.high)
        assert longer.loc[name, "sum_half"] == pytest.approx(LONGER * row["sum_half"])
        statistic = of_sum.statistic / LONGER
        assert longer.loc[name, "sum_p"] == pytest.approx(2 * stats.t.sf(abs(statistic), 9))


def test_verdict_words_follow_difference_and_sum():
    difference = np.array([3.0, -3.0, 3.0, -3.0, 3.0, -3.0, 1.0, 1.0])
    total = np.array([3.0, -3.0, -3.0, 3.0, 1.0, -1.0, 3.0, 1.0])
    expected = 2 * [comparisons.CLOSER] + 2 * [comparisons.FARTHER] + 2 * [comparisons.CHANGED]
    expected += 2 * [comparisons.NOT_SEEN]
    assert comparisons.verdict_words(difference, total, 2.0).tolist() == expected


def test_the_gap_of_support_by_age_is_the_one_computed_by_hand():
    """The one firm shift, from the table's runs by plain formulas."""
    runs = tables.main_runs("support", "age", protocol="corrected")
    gap = runs.pivot(index="repeat", columns="method", values="test_ci_signed_age")
    d = gap["Cox"] - gap["DRO-COX"]
    error = d.std() * np.sqrt(0.1 + 0.25)
    row = comparisons.gaps().loc["support age linear"]
    assert row["difference"] == pytest.approx(d.mean())
    assert row["difference_error"] == pytest.approx(error)
    assert row["difference_p"] == pytest.approx(2 * stats.t.sf(abs(d.mean()) / error, 9))
    total = gap["Cox"] + gap["DRO-COX"]
    assert row["sum_half"] == pytest.approx(stats.t.ppf(0.975, 9) * total.std() * np.sqrt(0.35))
    numbers = row[["theirs", "theirs_half", "ours", "ours_half", "difference", "difference_half"]]
    assert numbers.astype(float).round(2).tolist() == [-2.19, 1.18, -0.22, 1.15, -1.96, 0.53]
    assert [row["alone"], row["together"]] == [comparisons.CLOSER, comparisons.CHANGED]


@pytest.mark.parametrize(
    ("selection", "tune_by"),
    [
        ("stated", "f_a"),
        ("one_setting", "ci_percent"),
        ("recovered", "ci_percent"),
        ("recovered", "f_a"),
    ],
)
def test_chosen_runs_are_those_of_the_tables(selection, tune_by):
    runs = comparisons.chosen_runs("as_published", selection, tune_by=tune_by)
    if selection == "recovered":  # rules are known where numbers were published
        assert set(runs["exhibit"]) == ({"t2", "t3", "t4"} if tune_by == "ci_percent" else set())
    means = runs.groupby(["dataset", "attribute", "method", "metric"])["value"].mean()
    for dataset, attribute in runs[["dataset", "attribute"]].drop_duplicates().itertuples(index=0):
        table = tables.main_table(dataset, attribute, selection=selection, tune_by=tune_by)
        found = [means[dataset, attribute, row.method, row.metric] for row in table.itertuples()]
        np.testing.assert_allclose(found, table["mean"])


def test_of_several_methods_the_fairest_is_compared():
    runs = tables.main_runs("seer", "race", protocol="corrected")
    wide = runs.pivot(index="repeat", columns="method", values="test_ci_signed_race")
    linear_baselines = [name for name in comparisons.BASELINE if name.startswith("Cox")]
    fairest = wide[linear_baselines].abs().mean().idxmin()
    table = comparisons.gaps(pairs=[("seer", "race")], theirs=comparisons.BASELINE)
    assert table.loc["seer race linear", "theirs"] == pytest.approx(wide[fairest].mean())
    assert list(table.index) == ["seer race linear", "seer race nonlinear"]


# How often are the words wrong?


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [(0.0, 0.0), (3.0, 3.0), (3.0, -3.0), (9.0, -9.0)])
def test_equal_gaps_are_told_apart_in_at_most_five_percent(gaps):
    """Neither is closer to equal: said in at most 5 %, up to binomial error."""
    rate = rates(*gaps)
    at_most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
    assert rate[comparisons.CLOSER] + rate[comparisons.FARTHER] < at_most


@pytest.mark.slow
def test_simultaneous_intervals_err_in_at_most_five_percent_of_tables():
    """Fourteen comparisons without an effect: one of them moves in at most 5 % of tables."""
    values = repeats(3.0, 3.0, 14 * 1000)
    names = [str(i) for i in range(14 * 1000)]
    table = comparisons.compare(*values, names, "corrected", family=14)
    some = (table["together"] != comparisons.NOT_SEEN).to_numpy().reshape(1000, 14).any(axis=1)
    assert some.mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)
    alone = (table["alone"] != comparisons.NOT_SEEN).mean()
    assert alone == pytest.approx(0.05, abs=0.01)


# Power


@pytest.mark.slow
@pytest.mark.parametrize("within", [((1.0, 0.9), (0.9, 1.0)), ((1.0, 0.2), (0.2, 0.5))])
def test_power_is_the_rate_at_which_intervals_exclude_zero(within):
    (a, ab), (_, b) = within
    error = np.sqrt((a + b - 2 * ab) * 0.35)
    power = comparisons.power(pd.DataFrame({"difference_error": [error]})).iloc[0]
    for difference, expected in ((comparisons.POINT, power["point"]), (power["detectable"], 0.8)):
        rate = rates(difference, 0.0, n=6000, within=within)
        assert 1 - rate[comparisons.NOT_SEEN] == pytest.approx(expected, abs=0.02)
    assert detectable_errors(10) == pytest.approx(3.15, abs=0.01)


def test_leads_are_those_computed_by_hand():
    found = comparisons.leads("f_a", pairs=[("seer", "race")])
    runs = tables.main_runs("seer", "race", protocol="corrected")
    for model, rows in runs.groupby("model"):
        wide = rows.pivot(index="repeat", columns="method", values="test_f_a")
        robust = wide.columns.str.contains("DRO")
        ours, theirs = (wide[wide.loc[:, some].mean().idxmin()] for some in (robust, ~robust))
        row = found.loc[f"seer race {model}"]
        half = stats.t.ppf(0.975, 9) * (theirs - ours).std() * np.sqrt(0.35)
        assert row["mean"] == pytest.approx((theirs - ours).mean())
        assert row["half"] == pytest.approx(half)


def test_leads_in_absolute_imparity_are_refused():
    with pytest.raises(ValueError, match=r"comparisons\.gaps"):
        comparisons.leads("ci_percent")


def test_gaps_say_why_there_is_nothing_to_compare():
    with pytest.raises(ValueError, match="rows for T2 to T4 only, so pass tune_by='ci_percent'"):
        comparisons.gaps("as_published", "recovered", tune_by="f_a")
