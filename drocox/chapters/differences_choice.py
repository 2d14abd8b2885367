"""The chapter *Paper, released code, this book*: how the published models were chosen.

Distances of published rows to ours under each of the
:data:`~drocox.paper.selection.SELECTION_RULES`, what chance would give, and the paper's marks. The
distance of a row is the mean over its nine metrics of |ours - published|, in published SDs. The ten
rows that no rule explains are in :mod:`drocox.chapters.differences_gradient`, the chapter's other
values in :mod:`drocox.chapters.differences`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.chapters.differences import MAIN_ATTRIBUTE, TABLE, Ledger
from drocox.paper import protocol, selection, tables

TEST_COLUMNS = [f"test_{'ibs_misaligned' if m == 'ibs' else m}" for m in tables.METRICS]
RULES_IN_TABLES = ("stated CI", "one setting CI", "test CI")  # the rules of the chapter's tables
SHORT = {"stated CI": "stated", "one setting CI": "one", "test CI": "test"}
DEEP_SPLIT = protocol.SPLIT["nonlinear"]
DRAWS = 2000  # random choices


def distance(means: np.ndarray, printed: pd.DataFrame) -> np.ndarray:
    """Mean distance over metrics, in published SDs.

    Parameters
    ----------
    means : array of shape (..., metrics)
    printed : DataFrame
        "mean" and "std" of the same metrics, in the same order.

    Returns
    -------
    array of shape (...)
    """
    away = np.abs(means - printed["mean"].to_numpy())
    return (away / printed["std"].to_numpy()).mean(axis=-1)


def as_printed(metrics: pd.DataFrame) -> pd.DataFrame:
    """The same metrics, with the misaligned Brier score, which is the printed one, as ``ibs``.

    Parameters
    ----------
    metrics : DataFrame

    Returns
    -------
    DataFrame
    """
    return metrics.drop(columns="ibs").rename(columns={"ibs_misaligned": "ibs"})


def by_chance(rows: pd.DataFrame, printed: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Distances to a published row of random choices, one configuration per repeat.

    Parameters
    ----------
    rows : DataFrame
        All runs of a method.
    printed : DataFrame
        Its published row.
    rng : Generator

    Returns
    -------
    array of shape (DRAWS,)
    """
    values = np.stack([repeat[TEST_COLUMNS] for _, repeat in rows.groupby("repeat")])
    repeats = np.arange(len(values))
    picked = rng.integers(values.shape[1], size=(DRAWS, len(values)))
    return distance(values[repeats, picked].mean(axis=1), printed)


def best_single(rows: pd.DataFrame, printed: pd.DataFrame) -> float:
    """Distance of the setting that is nearest when taken in all ten repeats.

    Parameters
    ----------
    rows, printed : DataFrame
        As in :func:`by_chance`.

    Returns
    -------
    float
    """
    grid = rows.groupby(selection.SETTING, dropna=False)[TEST_COLUMNS].mean()
    return distance(grid.to_numpy(), printed).min()


def is_dro(index: pd.MultiIndex) -> np.ndarray:
    """Which rows (exhibit, model, method) belong to a DRO variant.

    Parameters
    ----------
    index : MultiIndex

    Returns
    -------
    bool array
    """
    of_split_tables = index.get_level_values("exhibit").isin(["t16", "t17"])
    return of_split_tables | index.get_level_values("method").str.contains("DRO")


def evidence(runs: pd.DataFrame, cells: pd.DataFrame, side: pd.DataFrame) -> pd.DataFrame:
    """CI, distance and chance of every row of Tables 2 to 4 under three rules.

    "By chance" is the share of random choices that come at least as close as the rule.

    Parameters
    ----------
    runs : DataFrame
        The store as published.
    cells : DataFrame
        From :func:`drocox.paper.tables.fidelity_cells`.
    side : DataFrame
        Distances by rule, with "closest rule" and "its distance".

    Returns
    -------
    DataFrame
        Indexed by data set and method; the columns of a rule are pairs such as ("CI", rule).
    """
    rng = np.random.default_rng(0)
    paper = Ledger().paper
    of_ci = cells[cells["metric"] == "ci_percent"]
    our_ci = of_ci.pivot_table("mean", ["exhibit", "model", "method"], "rule", sort=False)
    lines = []
    for dataset, attribute in MAIN_ATTRIBUTE.items():
        rows = selection.candidates(runs, dataset, attribute)
        for method, mine in rows.groupby("method", sort=False):
            key = (TABLE[dataset], protocol.METHODS[method].model, method)
            printed = paper.loc[(TABLE[dataset], method)].loc[list(tables.METRICS)]
            luck = by_chance(mine, printed, rng)
            line = {
                "row": f"{dataset.upper()} {method}",
                "paper": printed.loc["ci_percent", "mean"],
                "best single": best_single(mine, printed),
            }
            for rule in RULES_IN_TABLES:
                line["CI", rule] = our_ci.loc[key, rule]
                line["distance", rule] = side.loc[key, rule]
                line["chance", rule] = (luck <= side.loc[key, rule]).mean()
            line["closest rule"] = side.loc[key, "closest rule"]
            line["its distance"] = side.loc[key, "its distance"]
            lines.append(line)
    return pd.DataFrame(lines).set_index("row")


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of :func:`evidence` as the chapter shows them.

    Parameters
    ----------
    rows : DataFrame

    Returns
    -------
    DataFrame
        Texts, under two rows of headings.
    """
    three_digits = "{:.3f}".format
    out = {}
    for what, title in {
        "distance": "distance (SDs)",
        "CI": "CI (%)",
        "chance": "by chance",
    }.items():
        if what == "CI":
            out[title, "paper"] = rows["paper"].map(three_digits)
        for rule in RULES_IN_TABLES:
            out[title, rule.removesuffix(" CI")] = rows[what, rule].map(three_digits)
    out["closest of the list", "rule"] = rows["closest rule"]
    out["closest of the list", "distance"] = rows["its distance"].map(three_digits)
    return pd.DataFrame(out).rename_axis(None)


def draw_rules(side: pd.DataFrame) -> Figure:
    """Distances under the stated rule against those under its test-data twin.

    Parameters
    ----------
    side : DataFrame
        Distances by rule, a line per published row.

    Returns
    -------
    Figure
    """
    dro = is_dro(side.index)
    figure, axes = plt.subplots(figsize=(5.2, 4.4))
    for rows, marker, colour, label in (
        (~dro, "o", "C0", "baselines"),
        (dro, "^", "C1", "DRO variants"),
    ):
        stated = side["stated CI"][rows]
        axes.plot(stated, side["test CI"][rows], marker, color=colour, alpha=0.8, label=label)
    both = side[["stated CI", "test CI"]]
    ends = [both.min().min() / 1.3, both.max().max() * 1.3]
    axes.plot(ends, ends, "k--", linewidth=1)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=ends,
        aspect="equal",
        xlabel="stated rule: mean distance (published SDs)",
        ylabel="test rule: mean distance (published SDs)",
    )
    axes.legend(loc="upper left")
    return figure


def tell_rules(side: pd.DataFrame, by_rule: pd.DataFrame) -> None:
    """Section *How were the published models chosen?*: rows within 1 SD, by rule.

    Parameters
    ----------
    side : DataFrame
        Distances by the three rules, with "closest rule" and "its distance".
    by_rule : DataFrame
        Distances by every rule.
    """
    dro = is_dro(side.index)
    in_main = side.index.get_level_values("exhibit").isin(list(TABLE.values()))
    either = side[["stated CI", "one setting CI"]].min(axis=1)
    readings = {"stated": side["stated CI"], "one": side["one setting CI"], "either": either}
    for name, rows in {"dro": in_main & dro, "base": in_main & ~dro}.items():
        say(f"{name}-rows", int(rows.sum()))
        for rule, far in readings.items():
            say(f"{name}-{rule}", int((far[rows] <= 1).sum()))
    guard((in_main & dro).sum() == 12, "twelve DRO rows in Tables 2 to 4")
    guard((in_main & ~dro).sum() == 36, "36 baseline rows in Tables 2 to 4")
    guard((side["its distance"] <= 1).all(), "all 62 published rows come back within 1 SD")
    say("all-rows", int((side["its distance"] <= 1).sum()))
    say("n-rows", len(side))
    say("n-rules", len(selection.SELECTION_RULES))

    linear = by_rule.loc[["t16", "t17"]].xs("linear", level="model")
    guard(len(linear) == 7, "seven linear rows of T16 and T17")
    guard(linear["named setting"].max() < 1, "they come back with the named setting")
    guard(linear["stated CI"].min() > 40, "they do not come back under the stated rule")
    say("n2-linear", f"{linear['named setting'].max():.2f}")
    _tell_deep_split(side, by_rule)
    _tell_test_data(side, by_rule, either)
    plain = [
        by_rule.loc[(exhibit, model, name), "validation c-index"]
        for exhibit in ("t3", "t4")
        for model, name in protocol.PLAIN.items()
    ]
    say("unaided", f"{max(plain):.2f}")


def of_deep_split(index: pd.MultiIndex) -> np.ndarray:
    """Which rows (exhibit, model, method) belong to nonlinear SPLIT.

    Parameters
    ----------
    index : MultiIndex

    Returns
    -------
    bool array
    """
    in_split_tables = index.get_level_values("exhibit").isin(["t16", "t17"])
    nonlinear = index.get_level_values("model") == "nonlinear"
    named = index.get_level_values("method") == DEEP_SPLIT
    return in_split_tables & nonlinear | named


def _tell_deep_split(side: pd.DataFrame, by_rule: pd.DataFrame) -> None:
    deep = of_deep_split(side.index)
    others = by_rule.drop(columns="no gradient").min(axis=1)
    needs_it = list(others.index[others > 1]) == list(side.index[deep])
    guard(needs_it and deep.sum() == 10, "ten rows, those of nonlinear SPLIT, fit no other rule")
    say("open-nearest", f"{others[deep].min():.1f}")


def _tell_test_data(side: pd.DataFrame, by_rule: pd.DataFrame, either: pd.Series) -> None:
    test_rules = [name for name, rule in selection.SELECTION_RULES.items() if rule.part == "test"]
    say("n-test-rules", len(test_rules))
    without_test = by_rule.drop(columns=test_rules).min(axis=1)
    only_test = set(side.index[without_test > 1])
    guard(
        only_test == {("t2", "linear", "DRO-COX"), ("t4", "linear", "DRO-COX")},
        "for two rows only rules that look at test data come within 1 SD",
    )
    near_test = side["test CI"] <= 0.5
    clear = side.index[near_test & (either > 1) & ~of_deep_split(side.index)]
    say("clear", len(clear))
    say("clear-also", int((without_test.loc[clear] <= 1).sum()))


def tell_two_rows(ledger: Ledger, found: pd.DataFrame, runs: pd.DataFrame) -> None:
    """The two rows, linear DRO-COX on SEER and FLC, that only test data explain.

    Parameters
    ----------
    ledger : Ledger
    found : DataFrame
        From :func:`evidence`.
    runs : DataFrame
        The store as published.
    """
    seer = found.loc["SEER DRO-COX"]
    flc = found.loc["FLC DRO-COX"]
    say("seer-paper", f"{seer['paper']:.4f}")
    for rule, short in SHORT.items():
        say(f"seer-{short}", f"{seer['CI', rule]:.4f}")
        say(f"seer-{short}-distance", f"{seer['distance', rule]:.2f}")
        say(f"flc-{short}-distance", f"{flc['distance', rule]:.2f}")
    say("seer-single", f"{seer['best single']:.2f}")
    say("flc-single", f"{flc['best single']:.2f}")
    stated = min(seer["distance", "stated CI"], seer["distance", "one setting CI"])
    guard(seer["distance", "test CI"] < 0.1 < 1 < stated, "SEER's row fits the test rule only")
    lucky = max(seer["chance", "test CI"], flc["chance", "test CI"])
    guard(lucky == 0, "none of the 2,000 random choices is as close")
    guard(
        flc["distance", "test CI"] < 0.5 * flc["best single"]
        and seer["distance", "test CI"] < 0.1 * seer["best single"]
        and max(seer["best single"], flc["best single"]) < 1,
        "the best single setting is not as close as the test rule",
    )
    by_test = seer["CI", "test CI"]
    by_stated = seer["CI", "stated CI"]
    where = ("seer", "DRO-COX", "ci_percent")
    _tell_sds(ledger, runs)
    ledger.note("selection: test or validation CI", where, by_test, by_stated, "stated rule")


def _tell_sds(ledger: Ledger, runs: pd.DataFrame) -> None:
    """The nine SDs of SEER's row, which the distance does not use."""
    rows = selection.candidates(runs, "seer", "race")
    mine = rows[rows["method"] == "DRO-COX"]
    cox = rows[rows["method"] == "Cox"]
    printed = ledger.paper.loc[("t4", "DRO-COX")].loc[list(tables.METRICS), "std"].to_numpy()
    by_test = selection.select(mine, cox, "test CI")[TEST_COLUMNS].std(ddof=0)
    by_stated = selection.select(mine, cox, "stated CI")[TEST_COLUMNS].std(ddof=0)
    rounding = 0.00005 + 0.02 * printed
    agree = (abs(by_test - printed) <= rounding).all()
    guard(
        agree and (by_stated > 2 * printed).all(), "the nine SDs agree with the test rule as well"
    )
    say("sd-paper", f"{printed[-1]:.3f}")
    say("sd-test", f"{by_test.iloc[-1]:.3f}")
    say("sd-stated", f"{by_stated.iloc[-1]:.3f}")


def tell_marks(marks: pd.DataFrame) -> None:
    """Section *The paper's marks against its own means*.

    Parameters
    ----------
    marks : DataFrame
        The marks that differ, from the chapter.
    """
    published = tables.published()
    say("bold-all", int(published["bold"].sum()))
    say("bold-wrong", int((marks["mark"] == "bold").sum()))
    say("green-all", int(published["green"].sum()))
    guard((marks["mark"] == "bold").sum() == 3, "three bold marks differ")
    guard((marks["mark"] == "green").sum() == 2, "two green marks are missing")
    printed_on_dro = marks["printed on"].str.count("DRO-COX")
    belongs_to_dro = marks["by the means"].str.count("DRO-COX")
    guard((belongs_to_dro >= printed_on_dro).all(), "no slip favours a DRO variant")
    rows = published.pivot(index=["table", "model", "method"], columns="metric", values="mean")
    f_a = rows[["f_i", "f_g", "f_cap"]].mean(axis=1)
    agree = (rows["f_a"] - f_a).abs().max() < 1e-4
    guard(agree and len(rows) == 62, "F_A is the mean of its three parts in all 62 rows")
