"""The planned analysis of the study on many data sets: stored rows and planted effects."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from drocox.beyond import analysis
from drocox.beyond.analysis import PLAIN_18, SPLIT
from drocox.beyond.datasets import FRESH, TESTED
from drocox.beyond.models import HALF, PLAIN
from drocox.beyond.outcomes import Average, Contrast
from drocox.beyond.pooled import pool
from drocox.paper.store import DEFAULT, Store

pytestmark = pytest.mark.slow  # of a study beyond the paper; `make check` is for the package

BY_C = Contrast(SPLIT, "c-index", PLAIN_18, "c-index")


@pytest.fixture(scope="module")
def runs():
    return Store(DEFAULT, "beyond/many_data_sets").read()


@pytest.fixture(scope="module")
def study(runs):
    return analysis.whole(runs)


def planted(study, effects):
    """The study with given primary effects of the tested data sets, by objective and outcome."""
    estimates = dict(study.estimates)
    for name, values in effects.items():
        key = (*analysis.primary()[name], analysis.MEASURES[name[1]], "")
        estimates[key] = estimates[key].copy()
        estimates[key].loc[list(TESTED), "effect"] = values
    return replace(study, estimates=estimates)


def drawn(mean, spread, seed=0):
    """Effects of the tested data sets with exactly this mean and standard deviation."""
    values = np.random.default_rng(seed).normal(size=len(TESTED))
    return mean + spread * (values - values.mean()) / values.std(ddof=1)


# The main table, in other words ------------------------------------------------------------------


def literal_table(runs, prefix, names):
    """Objective by choice minus plain-18 by c-index, from the rows of models: means only."""
    rows = runs[runs["half"].notna() & (runs["dealt"] == 0) & runs["name"].isin(names)]
    rows = rows[rows["measure"].isin(["c", "worst", "gap"])]
    means = {}
    for (model, choice), some in rows.groupby(["model", "choice"]):
        if not model.startswith(prefix) or (not prefix and model.startswith("linear ")):
            continue
        for first_start in (True, False):
            there = some[some["start"] == 0] if first_start else some
            by_half = there.groupby(["measure", "name", "split", "half"])["value"].mean()
            both = by_half.unstack("half").dropna().mean(axis=1)
            by_name = both.groupby(["measure", "name"]).mean().unstack("measure")
            means[model.removeprefix(prefix), choice, first_start] = by_name
    table = {}
    for objective, choice, first_start in means:
        at_start_0 = objective in ("bridge", "plain-18 with penalty")
        if first_start == at_start_0:
            base = means["plain-18", "c-index", first_start]
            own = means[objective, choice, first_start]
            difference = own - base
            differences = {"c-index": difference["c"], "worst": difference["worst"]}
            differences["closing"] = -difference["gap"]
            for outcome, values in differences.items():
                found = stats.ttest_1samp(values.dropna(), 0)
                interval = found.confidence_interval()
                table[objective, choice, outcome] = [values.mean(), *interval]
    return pd.DataFrame(table, index=["mean", "low", "high"]).T


@pytest.mark.parametrize("kind", ["nonlinear", "linear"])
def test_the_main_table_follows_from_the_rows_of_models(runs, study, kind):
    table = analysis.objective_table(study, kind).sort_index()
    expected = literal_table(runs, analysis.PREFIX[kind], TESTED).sort_index()
    assert len(table) == len(expected) == 36
    base = ("plain-18", "c-index")
    assert table.loc[base, "mean"].isna().all()
    found = table.drop(base)[["mean", "low", "high"]]
    assert list(found.index) == list(expected.drop(base).index)
    np.testing.assert_allclose(found, expected.drop(base), atol=2e-6)


# Rows --------------------------------------------------------------------------------------------


def test_a_part_of_the_study_is_refused(runs):
    part = runs[(runs["name"] != "uis") | (runs["split"] != 3)]
    with pytest.raises(ValueError, match=r"lack 1 jobs .* \('uis', 3\)"):
        analysis.whole(part)


def test_the_effect_of_a_data_set_is_the_mean_over_its_splits(runs, study):
    found = analysis.effects(study, BY_C, "worst_diff")
    rows = runs[runs["model"].eq(SPLIT) & runs["measure"].eq("worst_diff") & runs["name"].eq("uis")]
    rows = rows[rows[["choice", "against_choice"]].eq("c-index").all(axis=1)]
    rows = rows[rows["against"] == PLAIN_18]
    assert len(rows) == found.loc["uis", "splits"] == 5
    assert found.loc["uis", "effect"] == pytest.approx(rows["value"].mean())
    assert found.loc["uis", "se"] == pytest.approx(np.sqrt((rows["se"] ** 2).mean()))


def test_networks_are_tested_on_16_and_certified_models_on_27_data_sets(study):
    certified = Contrast(HALF, "", PLAIN, "")
    assert list(analysis.effects(study, BY_C, "closing").index) == list(TESTED)
    assert len(analysis.effects(study, certified, "worst_diff")) == 27
    fresh = analysis.effects(study, BY_C, "closing", on=FRESH)
    assert list(fresh.index) == list(FRESH)


def test_an_unknown_measure_is_refused(study):
    with pytest.raises(ValueError, match="no measure 'worst' "):
        analysis.effects(study, BY_C, "worst")


@pytest.mark.parametrize("model", [HALF, PLAIN])
def test_a_pair_is_left_out_where_either_model_is_uncertified(study, model):
    wanted = Contrast(HALF, "", PLAIN, "")
    of_pbc = study.models["name"].eq("pbc") & study.models["measure"].eq("certificate")
    wrong = of_pbc & study.models["model"].eq(model)
    models = study.models.assign(value=study.models["value"].mask(wrong, 1e-3))
    changed = replace(study, models=models)
    assert (model, "pbc") in analysis.uncertified(changed).index
    assert "pbc" in analysis.effects(study, wanted, "closing").index
    assert "pbc" not in analysis.effects(changed, wanted, "closing").index


# Means, intervals and words ----------------------------------------------------------------------


def test_means_are_those_of_students_t():
    effect = np.random.default_rng(1).normal(0.3, 1, 16)
    found = analysis.mean_of(effect)
    expected = stats.ttest_1samp(effect, 0)
    assert found.p == pytest.approx(expected.pvalue)
    assert found[2:4] == pytest.approx(tuple(expected.confidence_interval()))


def test_a_summary_has_both_weightings_and_counts_omissions():
    effect = [0.2, 0.3, 0.25, 0.28, 0.22, -0.12]
    rows = pd.DataFrame({"effect": effect, "se": [0.1, 0.2, 0.1, 0.3, 0.1, 0.1]})
    found = analysis.summary(rows)
    omitted = [analysis.mean_of(np.delete(effect, i)) for i in range(6)]
    assert found.omissions == sum((one.low > 0) != (found.low > 0) for one in omitted) > 0
    assert found.reml == pytest.approx(pool(rows["effect"], rows["se"]).mean)
    assert 1 < found.effective <= 6


def test_a_slope_has_the_interval_of_least_squares():
    rng = np.random.default_rng(0)
    events = pd.Series(rng.integers(300, 2000, 16), index=list(TESTED))
    effect = pd.Series(rng.normal(size=16), index=list(TESTED))
    X = np.column_stack([np.ones(16), np.log10(events)])
    coef = np.linalg.solve(X.T @ X, X.T @ effect)
    variance = ((effect - X @ coef) ** 2).sum() / 14 * np.linalg.inv(X.T @ X)[1, 1]
    found = analysis.slope(effect[::-1], events)
    assert found.mean == pytest.approx(coef[1])
    assert found.high - coef[1] == pytest.approx(stats.t.ppf(0.975, 14) * np.sqrt(variance))


def test_equal_effects_share_one_interval_and_others_have_wider_ones():
    one = drawn(0.2, 1.0)
    equal = pd.DataFrame({0: one, 1: one, 2: one, 3: one})
    alone = analysis.mean_of(one)
    assert analysis.intervals(equal)["high"].to_numpy() == pytest.approx(alone.high, rel=0.02)
    apart = pd.DataFrame({k: drawn(0.2, 1.0, seed=k) for k in range(4)})
    assert (analysis.intervals(apart)["high"] > alone.high * 1.05).all()


@pytest.mark.parametrize(
    ("outcome", "mean", "spread", "words"),
    [
        ("worst", -1.0, 0.5, "falls"),
        ("worst", 1.0, 0.5, "gains"),
        ("worst", 0.0, 0.3, "too small to matter"),
        ("worst", -0.2, 0.1, "falls, too small to matter"),
        ("worst", 0.0, 1.7, "not known"),
        ("closing", 0.4, 0.2, "closes"),
        ("closing", -0.4, 0.2, "opens"),
        ("closing", 0.1, 0.05, "closes, too small to matter"),
    ],
)
def test_planted_effects_get_the_planned_words(study, outcome, mean, spread, words):
    table = analysis.primary_table(planted(study, {(SPLIT, outcome): drawn(mean, spread)}))
    row = table.loc[(SPLIT, outcome)]
    assert row["word"] == words
    assert row["mean"] == pytest.approx(mean)
    assert row["spread"] == pytest.approx(spread)


def test_an_effect_that_one_data_set_hides_changes_its_word_without_it(study):
    values = drawn(-0.5, 0.1)
    values[3] = 6.0
    row = analysis.primary_table(planted(study, {(SPLIT, "worst"): values})).loc[(SPLIT, "worst")]
    assert (row["word"], row["omissions"]) == ("not known", 1)


def test_a_data_set_that_lacks_one_primary_effect_leaves_all_four(study):
    of = (*analysis.primary()[SPLIT, "worst"], "worst_diff", "")
    estimates = study.estimates | {of: study.estimates[of].drop("uis")}
    part = replace(study, estimates=estimates)
    assert "uis" not in analysis.together(part).index
    assert (analysis.primary_table(part)["k"] == 15).all()


def test_the_primary_effects_are_those_of_the_table_and_of_the_first_start(study):
    table = analysis.objective_table(study)
    of_primary = analysis.primary_table(study)
    worst = table.loc[(SPLIT, "c-index", "worst"), "mean"]
    assert of_primary.loc[(SPLIT, "worst"), "mean"] == pytest.approx(worst)
    by_c, by_rule = (
        analysis.effects(study, Contrast(SPLIT, choice, PLAIN_18, choice), "closing")["effect"]
        for choice in ("c-index", "imparity")
    )
    found = of_primary.loc[(SPLIT, "closing"), "mean"]
    assert found == pytest.approx((by_c + by_rule).mean() / 2, abs=1e-6)
    penalised = analysis.primary_table(study, analysis.PENALISED)
    of = Contrast(f"{SPLIT}, start 0", "c-index", "plain-18 with penalty", "c-index")
    mean = analysis.effects(study, of, "worst_diff")["effect"].mean()
    assert penalised.loc[(SPLIT, "worst"), "mean"] == pytest.approx(mean)


def test_a_share_is_a_ratio_of_means(study):
    of = analysis.primary()[SPLIT, "closing"]
    closing = analysis.effects(study, of, "closing")["effect"].mean()
    gaps = [
        analysis.effects(study, Average(PLAIN_18, choice), "gap")["effect"].mean()
        for choice in ("c-index", "imparity")
    ]
    found = analysis.share(study, of, "closing")
    assert found.mean == pytest.approx(closing / np.mean(gaps))


# Starts, choices and controls --------------------------------------------------------------------


def test_spreads_are_those_of_a_data_sets_outcomes_between_draws(runs, study):
    found = analysis.spreads(study)
    rows = runs[runs["half"].notna() & runs["name"].isin(TESTED) & runs["measure"].eq("worst")]
    rows = rows[rows["model"].eq(SPLIT) & rows["choice"].eq("c-index")]
    for source, other in (("start", "dealt"), ("dealt", "start")):
        means = rows[rows[other] == 0].groupby(["name", source])["value"].mean().unstack()
        expected = np.sqrt(means.var(axis=1, ddof=1).mean())
        assert found.loc[(SPLIT, "c-index"), (source, "worst")] == pytest.approx(expected)
    assert found.loc[(PLAIN_18, "c-index"), "dealt"].isna().all()


def test_chosen_models_are_counted(study):
    some = study.models["model"].eq(SPLIT) & study.models["name"].eq("uis")
    constant = study.models["measure"].eq("constant")
    moved = np.where(some, 1e-6, 0.0)
    value = study.models["value"].mask(constant, some.astype(float))
    table = analysis.counts(replace(study, models=study.models.assign(moved=moved, value=value)))
    row = table.loc[(SPLIT, "c-index")]
    # 20 networks' data sets, 5 splits, 2 halves, 5 starts and draws of halves
    assert row["chosen"] == 20 * 5 * 2 * 5
    assert row["unstable"] == row["constant"] == 5 * 2 * 5
    of_one = study.models[study.models["model"].eq(SPLIT) & study.models["measure"].eq("eligible")]
    row = table.loc[(SPLIT, "imparity")]
    assert row["eligible"] == pytest.approx(of_one["value"].mean())
    assert row["none_eligible"] == (of_one["value"] == 0).sum()


def test_controls_reject_as_often_as_they_should_without_an_effect(study):
    effects = {name: drawn(0.0, 1.0, seed=k) for k, name in enumerate(analysis.primary(), 4)}
    table = analysis.control_table(planted(study, effects))
    assert len(table) == 6
    assert (table["control"] == "passed").all()


def test_a_control_that_finds_something_has_failed(study):
    permuted = study.permuted.assign(value=study.permuted["value"] + 0.5)
    table = analysis.control_table(replace(study, permuted=permuted))
    failed = table.loc[("labels permuted", SPLIT, "closing"), "control"]
    assert failed == "failed: rejects too often"
