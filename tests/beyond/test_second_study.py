"""The planned analysis of the study on many data sets, on invented results."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from drocox.beyond import retired
from drocox.beyond import second_study as analysis
from drocox.beyond.datasets import REGISTERED
from drocox.beyond.models import AGAINST, HALF, PLAIN, PUBLISHED

DEEP = PUBLISHED["nonlinear"]

pytestmark = pytest.mark.slow  # of a study beyond the paper; `make check` is for the package

DATASETS = [*REGISTERED["included"], *REGISTERED["beside"]]


def invented(effects=None, spread=0.3, seed=0, draws=0):
    """Rows of a store in which differences have given means, by model and measure."""
    rng = np.random.default_rng(seed)
    effects = effects or {}
    rows = []
    for dataset in DATASETS:
        for model in (HALF, DEEP):
            base = {"dataset": dataset, "model": AGAINST[model], "attribute": "", "se": 0.4}
            rows.append(base | {"measure": "gap", "value": 1 + 0.1 * rng.normal()})
            rows.append(base | {"measure": "distance", "value": 4 + 0.1 * rng.normal()})
            for measure in ("c_diff", "worst_diff", "worst_own_diff", "closing", "guard"):
                mean = effects.get((model, measure), 2.0 if measure == "guard" else 0.0)
                value = mean + spread * rng.normal()
                rows.append(base | {"model": model, "measure": measure, "value": value})
            for draw in range(draws):
                row = {"dataset": dataset, "model": model, "attribute": "", "draw": draw}
                value = spread * rng.normal()
                rows.append(row | {"measure": analysis.PERMUTED, "value": value})
        of = {"dataset": dataset, "model": HALF, "attribute": "", "half": 0}
        rows.append(of | {"measure": "certificate", "value": 1e-9})
    columns = ["dataset", "model", "measure", *(["draw"] if draws else [])]
    return pd.DataFrame(rows).drop_duplicates(columns).assign(study="many_data_sets")


@pytest.fixture(scope="module")
def nothing():
    return analysis.whole(invented(draws=1000))


def test_a_part_of_the_study_is_refused():
    runs = invented()
    with pytest.raises(ValueError, match=r"runs lack \['pbc'\]"):
        analysis.whole(runs[runs["dataset"] != "pbc"])


def test_means_are_those_of_students_t():
    effect = np.random.default_rng(1).normal(0.3, 1, 16)
    found = analysis.mean_of(effect)
    expected = stats.ttest_1samp(effect, 0)
    assert found.p == pytest.approx(expected.pvalue)
    assert found[2:4] == pytest.approx(tuple(expected.confidence_interval()))


def test_heterogeneity_is_that_of_metafor():
    # log risk ratios of the BCG vaccine; confint(rma(yi, vi)) gives tau^2 from 0.1197 to 1.1115
    y = [-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.0120, -0.4694,
         -1.3713, -0.3394, 0.4459, -0.0173]  # fmt: skip
    v = [0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564,
         0.0730, 0.0124, 0.5325, 0.0714]  # fmt: skip
    low, high = analysis.heterogeneity(y, np.sqrt(v))
    assert (low**2, high**2) == pytest.approx((0.1197, 1.1115), abs=1e-3)


def test_models_by_adam_are_tested_where_events_suffice(nothing):
    assert len(analysis.where_tested(HALF)) == 27
    assert len(analysis.where_tested(DEEP)) == 16
    assert len(analysis.effects(nothing, DEEP, "closing")) == 16
    assert len(analysis.effects(nothing, DEEP, "closing", shown=True)) == 29


@pytest.mark.parametrize("model", [HALF, PLAIN])
def test_a_pair_is_left_out_where_either_model_is_uncertified(nothing, model):
    of = {"dataset": "pbc", "model": model, "attribute": "", "half": 1}
    row = of | {"measure": "certificate", "value": 1e-3, "study": "many_data_sets"}
    runs = pd.concat([nothing, pd.DataFrame([row])])
    assert "pbc" in analysis.effects(nothing, HALF, "closing").index
    assert "pbc" not in analysis.effects(runs, HALF, "closing").index


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("errors", "irrelevant"), [(1.88, True), (1.5, False)])
def test_no_effect_that_matters_needs_the_90_percent_interval_within(sign, errors, irrelevant):
    # a share of 10 % is `errors` standard errors below 25 %; t quantiles: 1.71 (90 %), 2.06 (95 %)
    runs = analysis.whole(invented())
    of_half = runs["model"].eq(HALF) & runs["measure"].eq("closing")
    tested = of_half & runs["dataset"].isin(REGISTERED["included"])
    drawn = np.random.default_rng(0).normal(size=27)
    drawn = (drawn - drawn.mean()) / drawn.std(ddof=1)
    error = (0.25 - 0.1) / errors
    runs.loc[tested, "value"] = sign * (0.1 + np.sqrt(27) * error * drawn)
    runs.loc[runs["model"].eq(PLAIN) & runs["measure"].eq("gap"), "value"] = 1.0
    assert analysis.claims(runs)[HALF, "closing"].irrelevant == irrelevant


def test_without_an_effect_nothing_is_claimed_and_small_effects_are_excluded(nothing):
    for claim in analysis.claims(nothing).values():
        assert not claim.says
    assert analysis.claims(nothing)[HALF, "closing"].irrelevant
    assert not analysis.default_changes(nothing)
    table = analysis.control_table(nothing)
    assert (table["control"] == "passed").all()


@pytest.mark.parametrize(
    ("effects", "name", "says", "lacks"),
    [
        ({"worst_diff": 1, "worst_own_diff": 1}, "worst", "gains", ""),
        ({"worst_diff": 1, "worst_own_diff": 0}, "worst", "gains", "its own worst group"),
        ({"worst_diff": -1}, "worst", "falls", ""),
        ({"closing": 0.5, "worst_diff": 0.2}, "closing", "closes", ""),
        ({"closing": 0.5, "guard": 0, "worst_diff": 0.2}, "closing", "", ""),
        ({"closing": 0.5, "worst_diff": -1}, "closing", "", ""),
        ({"closing": -0.5}, "closing", "opens", ""),
    ],
    ids=[
        "the worst group gains",
        "not in its own worst group",
        "the worst group falls",
        "the gap closes",
        "past equality",
        "closed at the worst group's cost",
        "the gap opens",
    ],
)
def test_planted_effects_are_claimed_as_planned(effects, name, says, lacks):
    runs = invented({(HALF, measure): mean for measure, mean in effects.items()})
    found = analysis.claims(analysis.whole(runs))
    assert found[HALF, name][:2] == (says, lacks)
    assert not found[DEEP, name].says
    assert analysis.default_changes(runs) == (says == "gains" and not lacks)


def test_the_default_needs_accuracy():
    gain = {(HALF, "worst_diff"): 1.0, (HALF, "worst_own_diff"): 1.0, (HALF, "c_diff"): -1.0}
    assert not analysis.default_changes(analysis.whole(invented(gain)))


def test_a_share_is_a_ratio_of_means(nothing):
    outcome = analysis.OUTCOMES["closing"]
    found = analysis.share(nothing, HALF, outcome)
    rows = nothing[nothing["dataset"].isin(REGISTERED["included"]) & nothing["se"].notna()]
    closing = rows[(rows["model"] == HALF) & (rows["measure"] == "closing")]["value"].mean()
    gap = rows[(rows["model"] == PLAIN) & (rows["measure"] == "gap")]["value"].mean()
    assert found.mean == pytest.approx(closing / gap)
    row = analysis.primary_table(nothing).loc[(HALF, "closing")]
    assert row["matters"] == pytest.approx(gap / 4)
    assert row["share_low"] < row["share_low90"] < row["share_high90"] < row["share_high"]


def test_a_plain_model_without_a_gap_has_no_share():
    runs = invented()
    gaps = (runs["measure"] == "gap") & (runs["model"] == PLAIN)
    runs.loc[gaps, "value"] = np.random.default_rng(0).normal(0, 1, gaps.sum())
    table = analysis.primary_table(analysis.whole(runs))
    assert np.isnan(table.loc[(HALF, "closing"), "matters"])
    assert not analysis.claims(runs)[HALF, "closing"].irrelevant


def test_the_stored_study_says_what_the_readme_says():
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text("utf-8").split())
    runs = analysis.whole(retired.load("second_study"))
    claims = analysis.claims(runs)
    assert f"over {len(analysis.where_tested(HALF))} data sets" in readme
    table = analysis.primary_table(runs)
    loss, half = table.loc[(DEEP, "worst")], table.loc[(HALF, "worst")]
    low, high = -loss["high"], -loss["low"]
    words = f"{-loss['mean']:.1f} points worse than the same network trained in the ordinary way"
    assert f"{words} (95 % interval {low:.1f} to {high:.1f};" in readme
    assert claims[DEEP, "worst"].says == "falls"
    # "a gain of that group that matters is excluded, and a loss is not"
    assert half["high"] < half["matters"] < -half["low"]
    assert not claims[HALF, "worst"].says
    # "For both, a closing of the gap … by a quarter is excluded"
    assert claims[DEEP, "closing"].irrelevant and claims[HALF, "closing"].irrelevant
    assert not analysis.default_changes(runs)
