"""Selection rules on invented runs, against rules spelt out by hand."""

import literal
import numpy as np
import pandas as pd
import pytest

from drocox.paper import selection, tables
from drocox.paper.protocol import METHODS, PLAIN


@pytest.mark.parametrize("method", ["Cox_I(Keya)", "DRO-COX", "Deep DRO-COX (SPLIT)"])
@pytest.mark.parametrize(
    ("rule", "metric"), [("stated CI", "val_ci_percent"), ("stated F_A", "val_f_a")]
)
def test_the_stated_rule_chooses_repeat_by_repeat(runs, method, rule, metric):
    rows = selection.candidates(runs, "support", "race")
    plain = rows[rows["method"] == PLAIN[METHODS[method].model]]
    mine = rows[rows["method"] == method]
    found = selection.select(mine, plain, rule).sort_values("repeat").index.tolist()
    assert found == literal.stated_rule(mine, plain, metric)


COX = pd.DataFrame({"repeat": [1], "val_c_index": [0.7]})


def four(c, ci, method="DRO-COX"):
    """Four configurations of one repeat, in grid order."""
    rows = pd.DataFrame({"val_c_index": c, "val_ci_percent": ci}, index=list("ABCD"))
    return rows.assign(method=method, repeat=1)


@pytest.mark.parametrize(
    ("c", "ci", "expected"),
    [
        ([0.67, 0.69, 0.68, 0.70], [1.0, 1.0, 1.0, 2.0], "B"),  # ties: the larger c-index
        ([0.67, 0.68, 0.69, 0.69], [2.0, 1.0, 1.0, 1.0], "C"),  # and then grid order
    ],
)
def test_the_stated_rule_breaks_ties_by_c_index_and_grid_order(c, ci, expected):
    assert selection.select(four(c, ci), COX, "stated CI").index.tolist() == [expected]


def test_rounded_ties_go_to_the_smaller_setting():
    rows = four([0.70, 0.69, 0.68, 0.67], [1.001, 1.002, 1.003, 1.004])
    rows = rows.assign(learning_rate=[0.01, 0.001, 0.001, 0.001], lam=np.nan)
    rows = rows.assign(alpha=[0.1, 0.3, 0.2, 0.2])
    assert selection.select(rows, COX, "stated CI, 2 decimals").index.tolist() == ["C"]


def two_repeats(method, c, ci, settings):
    """Configurations in grid order, repeat 1 and then repeat 2."""
    frames = [
        pd.DataFrame(settings, columns=["learning_rate", "alpha"]).assign(
            val_c_index=c[i], val_ci_percent=ci[i], val_f_a=ci[i][::-1], repeat=i + 1
        )
        for i in range(2)
    ]
    return pd.concat(frames, ignore_index=True).assign(method=method, lam=np.nan)


RATES = [(0.01, np.nan), (0.001, np.nan)]
ALPHAS = [(0.01, 0.1), (0.01, 0.2), (0.001, 0.1)]


def test_one_setting_is_chosen_by_means_over_repeats():
    """Means over the repeats decide, as worked out here by hand."""
    cox = two_repeats("Cox", [[0.70, 0.72], [0.74, 0.70]], [[0, 0], [0, 0]], RATES)
    chosen = selection.select(cox, cox, "one setting CI")
    assert chosen["learning_rate"].tolist() == [0.01, 0.01]  # means 0.72 and 0.71
    assert chosen["repeat"].tolist() == [1, 2]
    # the bar is 0.95 x 0.72 = 0.684
    c = [[0.69, 0.75, 0.66], [0.68, 0.61, 0.69]]  # means 0.685, 0.680, 0.675: the first alone
    ci = [[4.0, 0.0, 1.0], [4.0, 0.0, 1.0]]
    dro = two_repeats("DRO-COX", c, ci, ALPHAS)
    chosen = selection.select(dro, cox, "one setting CI")
    assert chosen[["learning_rate", "alpha"]].values.tolist() == [[0.01, 0.1]] * 2
    assert selection.select(dro, cox, "stated CI")["alpha"].tolist() == [0.2, 0.1]
    # all eligible: means of CI 2.0, 1.5, 2.5, though the first has the smallest value
    eligible = [[0.7] * 3] * 2
    dro = two_repeats("DRO-COX", eligible, [[0.0, 1.5, 2.5], [4.0, 1.5, 2.5]], ALPHAS)
    assert selection.select(dro, cox, "one setting CI")["alpha"].tolist() == [0.2, 0.2]
    # F_A has the values in reverse: means 2.5, 1.5, 2.0 for CI, so 3.0, 1.5, 1.0
    dro = two_repeats("DRO-COX", eligible, [[0.5, 1.5, 3.0], [1.5, 1.5, 3.0]], ALPHAS)
    assert selection.select(dro, cox, "one setting F_A")["learning_rate"].tolist() == [0.001] * 2
    # equal means of CI: the larger mean c; equal again: grid order
    tied = [[1.0, 2.0, 1.5], [2.0, 1.0, 1.5]]
    dro = two_repeats("DRO-COX", [[0.70, 0.72, 0.71], [0.70, 0.71, 0.72]], tied, ALPHAS)
    chosen = selection.select(dro, cox, "one setting CI")
    assert chosen[["learning_rate", "alpha"]].values.tolist() == [[0.01, 0.2]] * 2
    # none eligible: the largest mean c
    dro = two_repeats("DRO-COX", [[0.5, 0.6, 0.64], [0.5, 0.6, 0.58]], tied, ALPHAS)
    assert selection.select(dro, cox, "one setting CI")["learning_rate"].tolist() == [0.001] * 2


def test_one_setting_compares_with_cox_on_the_same_repeats():
    """Cox has a second repeat, with a c-index that no configuration of the first could keep."""
    cox = two_repeats("Cox", [[0.70, 0.60], [0.98, 0.98]], [[0, 0], [0, 0]], RATES)
    both = two_repeats("DRO-COX", [[0.70, 0.68, 0.69]] * 2, [[3.0, 1.0, 2.0]] * 2, ALPHAS)
    first = both[both["repeat"] == 1]
    chosen = selection.select(first, cox, "one setting CI")
    assert chosen[["repeat", "alpha"]].values.tolist() == [[1, 0.2]]
    # against both repeats none would be eligible, and the largest c-index would win
    assert selection.select(both, cox, "one setting CI")["alpha"].tolist() == [0.1, 0.1]


def test_one_setting_gives_every_method_a_single_configuration(runs):
    chosen = selection.selected(runs, "support", "race", selection="one_setting")
    settings = chosen.groupby("method")[selection.SETTING].nunique(dropna=False)
    assert (settings == 1).all().all() and len(chosen) == 160
    by_f_a = selection.selected(
        runs, "support", "race", selection="one_setting", tune_by="f_a"
    ).set_index(["method", "repeat"])
    means = selection.candidates(runs, "support", "race").query("method == 'DRO-COX'")
    means = means.groupby(["learning_rate", "alpha"])[["val_c_index", "val_f_a"]].mean()
    bar = selection.candidates(runs, "support", "race").query("method == 'Cox'")
    bar = bar.groupby("learning_rate")["val_c_index"].mean().max()
    best = means[means["val_c_index"] >= 0.95 * bar]["val_f_a"].idxmin()
    found = by_f_a.loc["DRO-COX", ["learning_rate", "alpha"]]
    assert set(found.itertuples(index=False, name=None)) == {best}


def test_cox_takes_the_largest_validation_c_index(runs):
    rows = selection.candidates(runs, "flc", "age")
    mine = rows[rows["method"] == "Cox"]
    found = selection.select(mine, mine, "stated CI").set_index("repeat")["val_c_index"]
    assert found.sort_index().equals(mine.groupby("repeat")["val_c_index"].max())


@pytest.mark.parametrize("how", ["stated", "one_setting"])
def test_the_papers_rule_ignores_test_data(runs, how):
    moved = runs.copy()
    columns = [c for c in runs if c.startswith("test_")]
    moved[columns] = np.random.default_rng(1).permutation(moved[columns].to_numpy())
    keys = ["method", "repeat", "learning_rate", "lam", "alpha"]
    one, two = (selection.selected(r, "seer", "age", selection=how)[keys] for r in (runs, moved))
    assert one.equals(two)


def test_unknown_names_are_listed(runs):
    with pytest.raises(ValueError, match=r"stated CI.*one setting F_A"):
        selection.select(runs, runs, "best")
    with pytest.raises(ValueError, match="ci_percent, f_a"):
        selection.selected(runs, "seer", "age", tune_by="c")
    with pytest.raises(ValueError, match="stated, one_setting, recovered"):
        selection.selected(runs, "seer", "age", selection="mine")
    with pytest.raises(ValueError, match="age, race"):
        tables.main_table("seer", "gender")
    with pytest.raises(ValueError, match=r"unknown exhibit 't1'; choose one of: t2, .*, t17"):
        tables.exhibit_table("t1")
    for make in (
        lambda: tables.main_table("seer", "age", protocol="forensic"),
        lambda: tables.split_share_table("linear", protocol="forensic"),
        lambda: tables.alpha_table("flc", protocol="forensic"),
        lambda: tables.fidelity_cells("forensic"),
    ):
        with pytest.raises(ValueError, match=r"choose one of: as_published, corrected$"):
            make()


def test_recovered_selection_uses_the_rule_of_each_row(runs):
    chosen = selection.selected(runs, "flc", "age", selection="recovered")
    assert set(chosen.loc[chosen["method"] == "DRO-COX (SPLIT)", "learning_rate"]) == {0.01}
    for (_, method), rule in selection.RECOVERED.items():
        assert method in METHODS and rule in selection.SELECTION_RULES
    stated = selection.selected(runs, "flc", "age")
    unnamed = "Cox_I(R&P)"
    pd.testing.assert_frame_equal(
        chosen[chosen["method"] == unnamed].reset_index(drop=True),
        stated[stated["method"] == unnamed].reset_index(drop=True),
    )


@pytest.mark.parametrize(
    ("dataset", "attribute", "tune_by", "method"),
    [
        ("seer", "race", "ci_percent", "DRO-COX"),
        ("flc", "age", "f_a", "DRO-COX"),  # the rules follow, with F_A in the place of CI
        ("flc", "age", "f_a", "DRO-COX (SPLIT)"),
    ],
)
def test_recovered_rules_are_those_spelt_out(runs, dataset, attribute, tune_by, method):
    """Of DRO-COX by test data, beside Cox at learning rate 0.01; of SPLIT at that rate only."""
    how = {"tune_by": tune_by, "selection": "recovered"}
    chosen = selection.selected(runs, dataset, attribute, **how)
    rows = selection.candidates(runs, dataset, attribute)
    mine, plain = (rows[rows["method"] == m] for m in (method, "Cox"))
    part, bars = "val", plain
    if method == "DRO-COX":
        part, bars = "test", plain[plain["learning_rate"] == 0.01]
    else:
        mine = mine[mine["learning_rate"] == 0.01]
    bar = 0.95 * bars.groupby("repeat")[f"{part}_c_index"].max()
    expected = []
    for repeat, grid in mine.groupby("repeat"):
        fair = grid[grid[f"{part}_c_index"] >= bar[repeat]]
        best = fair[f"{part}_{tune_by}"].idxmin() if len(fair) else grid[f"{part}_c_index"].idxmax()
        expected.append(tuple(grid.loc[best, ["learning_rate", "alpha"]]))
    found = chosen.loc[chosen["method"] == method, ["learning_rate", "alpha"]]
    assert list(found.itertuples(index=False, name=None)) == expected


@pytest.mark.parametrize(
    ("method", "expected"),
    [("DRO-COX", (0.01, 0.2)), ("Deep DRO-COX (SPLIT)", (0.0001, 0.2)), ("Cox_I(Keya)", None)],
)
def test_named_settings_are_those_of_the_method(runs, method, expected):
    rows = selection.candidates(runs, "seer", "race")
    mine, plain = (rows[rows["method"] == m] for m in (method, PLAIN[METHODS[method].model]))
    named = selection.select(mine, plain, "named setting")
    found = set(zip(named["learning_rate"], named["alpha"], strict=True))
    assert found == ({expected} if expected else set())
