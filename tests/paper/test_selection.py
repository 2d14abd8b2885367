"""Selection rules and tables on invented runs, against rules spelt out by hand."""

import re

import invented
import numpy as np
import pandas as pd
import pytest

from drocox.paper import selection, store, tables
from drocox.paper.protocol import METHODS, PLAIN


@pytest.fixture(scope="module")
def runs():
    return invented.runs()


@pytest.fixture(scope="module")
def forensic():
    return invented.runs("forensic")


@pytest.fixture
def stored(runs, forensic, monkeypatch):
    made = {"forensic": forensic}
    monkeypatch.setattr(store, "load_runs", lambda name, out=None: made.get(name, runs).copy())
    monkeypatch.setattr(store, "is_finished", lambda name, out=None: True)


def by_hand(rows, plain, metric):
    """The stated rule, one repeat after the other."""
    chosen = []
    for repeat in range(1, 11):
        mine = rows[rows["repeat"] == repeat]
        best = plain.loc[plain["repeat"] == repeat, "val_c_index"].max()
        fair = mine[mine["val_c_index"] >= 0.95 * best]
        if len(fair) == 0:
            chosen.append(mine["val_c_index"].idxmax())
        else:
            chosen.append(fair[metric].idxmin())
    return chosen


@pytest.mark.parametrize("method", ["Cox_I(Keya)", "DRO-COX", "Deep DRO-COX (SPLIT)"])
@pytest.mark.parametrize(
    ("rule", "metric"), [("stated CI", "val_ci_percent"), ("stated F_A", "val_f_a")]
)
def test_the_stated_rule(runs, method, rule, metric):
    rows = selection.candidates(runs, "support", "race")
    plain = rows[rows["method"] == PLAIN[METHODS[method].model]]
    mine = rows[rows["method"] == method]
    found = selection.select(mine, plain, rule).sort_values("repeat").index.tolist()
    assert found == by_hand(mine, plain, metric)


COX = pd.DataFrame({"repeat": [1], "val_c_index": [0.7]})


def four(c, ci, method="DRO-COX"):
    """Four configurations of one repeat, in grid order."""
    rows = pd.DataFrame({"val_c_index": c, "val_ci_percent": ci}, index=list("ABCD"))
    return rows.assign(method=method, repeat=1)


@pytest.mark.parametrize(
    ("c", "ci", "expected"),
    [
        ([0.70, 0.69, 0.68, 0.60], [3.0, 2.0, 2.5, 0.0], "B"),  # D misses the bar of 0.665
        ([0.70, 0.95 * 0.7, 0.68, 0.60], [3.0, 2.0, 2.5, 0.0], "B"),  # the bar is enough
        ([0.67, 0.69, 0.68, 0.70], [1.0, 1.0, 1.0, 2.0], "B"),  # ties: the larger c-index
        ([0.67, 0.68, 0.69, 0.69], [2.0, 1.0, 1.0, 1.0], "C"),  # and then grid order
        ([0.60, 0.62, 0.64, 0.63], [1.0, 2.0, 3.0, 0.0], "C"),  # none eligible: the largest c
        ([0.60, 0.64, 0.64, 0.63], [1.0, 3.0, 2.0, 0.0], "B"),  # CI does not break that tie
    ],
)
def test_the_stated_rule_and_its_ties(c, ci, expected):
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


def test_one_setting_for_all_repeats():
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


def test_an_incomplete_store_gives_tables_of_its_runs(tmp_path):
    invented.save(tmp_path, datasets=["seer"], methods=["Cox", "DRO-COX"], repeats=(1, 3))
    table = tables.main_table("seer", "race", out=tmp_path)
    assert table["method"].unique().tolist() == ["Cox", "DRO-COX"]
    chosen = tables.main_runs("seer", "race", out=tmp_path)
    assert chosen.groupby("method")["repeat"].apply(list).to_dict() == {
        "Cox": [1, 3],
        "DRO-COX": [1, 3],
    }
    cell = table.set_index(["method", "metric"]).loc[("DRO-COX", "auc")]
    values = chosen.loc[chosen["method"] == "DRO-COX", "test_auc"]
    assert cell["mean"] == pytest.approx(values.mean())
    assert cell["std"] == pytest.approx(values.std(ddof=0)) and cell["paper_mean"] == 0.7494
    assert len(tables.alpha_table("seer", out=tmp_path)) == 6 * 9
    assert set(tables.fidelity_table(out=tmp_path)["method"]) == {"Cox", "DRO-COX"}
    with pytest.raises(ValueError, match="no runs on flc"):
        tables.main_table("flc", "age", out=tmp_path)
    with pytest.raises(ValueError, match=r"no runs of DRO-COX \(SPLIT\) on flc"):
        tables.one_side_table("linear", out=tmp_path)
    with pytest.raises(ValueError, match="no runs of DRO-COX on flc"):
        tables.alpha_table("flc", out=tmp_path)


def test_repeats_without_cox_are_left_out_or_refused(tmp_path):
    invented.save(tmp_path, datasets=["seer"], methods=["DRO-COX"], repeats=(1, 2, 3))
    with pytest.raises(ValueError, match="no runs of Cox on seer"):
        tables.main_table("seer", "race", out=tmp_path)
    invented.save(tmp_path, datasets=["seer"], methods=["Cox"], repeats=(1, 3))
    for how in selection.SELECTIONS:
        chosen = tables.main_runs("seer", "race", selection=how, out=tmp_path)
        assert chosen.groupby("method")["repeat"].apply(list).tolist() == [[1, 3], [1, 3]]


@pytest.mark.slow
def test_editing_a_result_changes_no_later_table(stored):
    """Frames are the caller's own."""
    makers = [
        tables.published,
        tables.published_figure,
        lambda: tables.published_table("t2"),
        lambda: tables.main_runs("seer", "race"),
        lambda: tables.main_table("seer", "race"),
        lambda: tables.alpha_table("seer"),
        lambda: tables.fidelity_cells(),
    ]
    for make in makers:
        mine = make()
        before = mine.copy()
        numbers = mine.select_dtypes("number").columns
        mine.loc[:, numbers] = mine[numbers] * 0
        assert (before[numbers] != mine[numbers]).any().any()
        pd.testing.assert_frame_equal(make(), before)


def test_main_table_has_the_papers_rows_and_numbers(stored, runs):
    table = tables.main_table("flc", "age")
    assert len(table) == 16 * 9 and table["paper_mean"].notna().all()
    chosen = selection.selected(runs, "flc", "age")
    cell = table[(table["method"] == "DRO-COX") & (table["metric"] == "ibs")].iloc[0]
    values = chosen.loc[chosen["method"] == "DRO-COX", "test_ibs_misaligned"]
    assert cell["mean"] == pytest.approx(values.mean())
    assert cell["std"] == pytest.approx(values.std(ddof=0))
    assert (cell["paper_mean"], cell["paper_std"]) == (0.1408, 0.0050)
    assert tables.main_table("flc", "gender")["paper_mean"].isna().all()
    assert tables.main_table("flc", "age", tune_by="f_a")["paper_mean"].isna().all()
    corrected = tables.main_table("flc", "age", protocol="corrected")
    cell = corrected[(corrected["method"] == "DRO-COX") & (corrected["metric"] == "ibs")].iloc[0]
    values = chosen.loc[chosen["method"] == "DRO-COX", "test_ibs"]
    assert cell["mean"] == pytest.approx(values.mean())


def test_other_exhibits_have_their_rows(stored):
    for model in ("linear", "nonlinear"):
        share = tables.split_share_table(model)
        assert list(share["method"].unique()) == ["0.1n", "0.2n", "0.3n", "0.4n", "0.5n"]
        assert share["paper_mean"].notna().all()
        side = tables.one_side_table(model)
        assert side["method"].nunique() == 2 and side["paper_mean"].notna().all()
    figure = tables.alpha_table("SUPPORT")
    assert len(figure) == 6 * 9
    assert figure["paper_mean"].notna().sum() == 6 * 5


def test_an_exhibit_by_its_id_is_the_table(stored):
    how = {"protocol": "corrected", "selection": "one_setting"}
    expected = tables.main_table("seer", "age", tune_by="f_a", **how)
    pd.testing.assert_frame_equal(tables.exhibit_table("t14", **how), expected)
    for exhibit, make in (("t16", tables.split_share_table), ("t17", tables.one_side_table)):
        both = tables.exhibit_table(exhibit, **how).groupby("model")
        for model, part in both:
            pd.testing.assert_frame_equal(part.reset_index(drop=True), make(model, **how))
        assert len(both) == 2


def test_shares_and_sides_have_the_right_runs(stored, runs):
    """T17's two-sided row is T16's 0.5n; one side has rows of its own."""
    share = tables.split_share_table("linear").set_index(["method", "metric"])["mean"]
    side = tables.one_side_table("linear").set_index(["method", "metric"])["mean"]
    assert share["0.5n"].equals(side["DRO-COX (SPLIT)"])
    mine = selection.add_f_a(runs[(runs["dataset"] == "flc")], "age")
    cox = mine[mine["method"] == "Cox"]
    one = mine[(mine["method"] == "DRO-COX (SPLIT)") & (mine["sides"] == 1)]
    chosen = one.loc[by_hand(one, cox, "val_ci_percent")]
    assert side["DRO-COX (SPLIT, ONE SIDE)"]["auc"] == pytest.approx(chosen["test_auc"].mean())


def test_table_1_equals_the_paper():
    table = tables.dataset_table()
    same = table["ours"].str.split(", ").map(sorted) == table["paper"].str.split(", ").map(sorted)
    assert len(table) == 12 and same.all()


# DRO-COX has the best CI and not the best c-index, SPLIT beats it on c-index but not Cox
MARKED = pd.DataFrame(
    [
        ("Cox", "c_index", 0.80, False, True),
        ("Cox", "ci_percent", 2.0, False, False),
        ("Cox_I(Keya)", "c_index", 0.70, False, False),
        ("Cox_I(Keya)", "ci_percent", 1.0, False, False),
        ("DRO-COX", "c_index", 0.75, False, False),
        ("DRO-COX", "ci_percent", 0.5, True, True),
        ("DRO-COX (SPLIT)", "c_index", 0.79, False, False),
        ("DRO-COX (SPLIT)", "ci_percent", 0.9, True, False),
    ],
    columns=["method", "metric", "mean", "wins", "best"],
).assign(model="linear", std=0.1, paper_mean=np.nan, paper_std=np.nan)


def test_best_and_wins_by_hand():
    assert tables.wins(MARKED).tolist() == MARKED["wins"].tolist()
    assert tables.best_by(MARKED).tolist() == MARKED["best"].tolist()


def test_show_marks_best_and_wins():
    markup = tables.show(MARKED)._repr_html_()
    cells = re.findall(r'<td class="([^"]*)" data-csv="[^"]*">([\d.]+)', markup)
    shown = pd.concat([part[::-1] for _, part in MARKED.groupby("method", sort=False)])  # CI first
    marks = zip(shown["best"], shown["wins"], strict=True)
    expected = [" ".join(["best"] * best + ["win"] * win) for best, win in marks]
    assert [names for names, _ in cells] == expected
    assert [float(mean) for _, mean in cells] == shown["mean"].tolist()


def test_show_writes_the_printed_mean_beside_ours_and_only_large_distances():
    table = MARKED.assign(paper_mean=MARKED["mean"] + 0.01, paper_std=0.004).iloc[:4]
    table.loc[2:, "paper_std"] = 0.1
    markup = tables.show(table.replace("Cox_I(Keya)", "Cox_cap(Keya)"))._repr_html_()
    far = "0.800<small>&nbsp;0.810</small><br><small>(0.100)</small>"
    far += "<small>&nbsp;<i>\N{MINUS SIGN}2.5</i></small>"
    near = "0.700<small>&nbsp;0.710</small><br><small>(0.100)</small></td>"
    assert far in markup and near in markup and "1.00<small>&nbsp;1.01</small>" in markup
    assert '<th data-csv="Cox_cap(Keya)">Cox_∩<wbr>(Keya)</th>' in markup
    assert 'data-csv="0.8000 (0.1000) 0.8100 -2.5"' in markup
    alone = tables.show(table, distances=False)._repr_html_()
    assert "0.810" not in alone and "<i>" not in alone


def test_show_has_every_row_of_a_main_table(stored):
    table = tables.main_table("seer", "race")
    markup = tables.show(table)._repr_html_()
    assert markup.count("<td") == len(table) == 144
    assert markup.count('class="best') == 18
    assert markup == tables.show(table)._repr_html_()


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


@pytest.mark.parametrize("method", ["DRO-COX", "DRO-COX (SPLIT)"])
def test_tuned_by_f_a_the_recovered_rules_follow(runs, method):
    """With F_A in the place of CI, by test data and at learning rate 0.01."""
    chosen = selection.selected(runs, "flc", "age", tune_by="f_a", selection="recovered")
    rows = selection.candidates(runs, "flc", "age")
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
        best = fair[f"{part}_f_a"].idxmin() if len(fair) else grid[f"{part}_c_index"].idxmax()
        expected.append(grid.loc[best, "alpha"])
    assert chosen.loc[chosen["method"] == method, "alpha"].tolist() == expected


def test_forensic_runs_are_used_by_one_rule_only(stored, runs, forensic):
    deep = "Deep DRO-COX (SPLIT)"
    for selected, source in (("recovered", forensic), ("stated", runs)):
        for exhibit in ("t3", "t16"):
            chosen = tables.exhibit_runs(exhibit, selection=selected)
            row = deep if exhibit == "t3" else "0.2n"
            mine = chosen[(chosen["method"] == row) & (chosen["model"] == "nonlinear")]
            assert len(mine) == 10 and set(mine["protocol"]) == set(source["protocol"])
            if selected == "recovered":
                assert (mine[["learning_rate", "alpha"]] == [0.0001, 0.5]).all(axis=None)
    others = chosen[chosen["model"] == "linear"]
    assert set(others["protocol"]) == {"as_published"}
    rows = selection.candidates(runs, "flc", "age")
    mine, plain = (rows[rows["method"] == m] for m in (deep, "DeepSurv"))
    assert selection.select(mine, plain, "no gradient").empty


def test_rules_that_look_at_test_data_compare_with_cox_at_one_learning_rate(runs):
    rows = selection.candidates(runs, "seer", "race")
    mine, plain = (rows[rows["method"] == m] for m in ("DRO-COX", "Cox"))
    plain = plain[plain["learning_rate"] == 0.01].set_index("repeat")["test_c_index"]
    expected = []
    for repeat, part in mine.groupby("repeat"):
        fair = part[part["test_c_index"] >= 0.95 * plain[repeat]]
        expected.append(fair["test_ci_percent"].idxmin())
    found = selection.select(mine, rows[rows["method"] == "Cox"], "test CI")
    assert found.index.tolist() == expected


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
