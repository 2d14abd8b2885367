"""The effect of alpha: is what it buys more than scores of a smaller scale?

What DRO-COX has learned at each alpha, a Cox model with shrunken scores beside it, and, since scale
changes neither, c-index and signed gaps against Cox. F1 itself and the trade-off are in
:mod:`drocox.chapters.alpha`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox import accuracy
from drocox.bookstyle import guard, say
from drocox.chapters.alpha import DATASETS, plain_log
from drocox.chapters.sentences import with_minus
from drocox.paper import claims, signed
from drocox.paper.prepare import prepare

THREE_PARTS = ["test_f_i", "test_f_g_age", "test_f_cap"]  # of F_A


def tell_learned(alpha: pd.DataFrame, runs: pd.DataFrame, learned: pd.DataFrame) -> None:
    """For what DRO-COX has learned, by LPL and by c-index.

    Parameters
    ----------
    alpha : DataFrame
    runs : DataFrame
        Cox and DRO-COX at learning rate 0.01, corrected.
    learned : DataFrame
        Share of Cox's gain in LPL: alpha by data set.
    """
    of_c = alpha[(alpha["protocol"] == "corrected") & (alpha["metric"] == "c_index")]
    c = of_c.pivot(index="alpha", columns="dataset", values="mean")
    cox = runs[runs["method"] == "Cox"].groupby("dataset")["test_c_index"].mean()
    for dataset in DATASETS:
        kept = (c[dataset].iloc[0] - 0.5) / (cox[dataset] - 0.5)
        say(f"learned-{dataset}", f"{100 * learned[dataset].iloc[0]:.1f}")
        say(f"kept-{dataset}", f"{100 * kept:.0f}")
    say("learned-support-half", f"{100 * learned['support'].iloc[-1]:.1f}")
    guard((learned.iloc[0] < 0.03).all(), "At α = 0.1 the model has learned less than 3 %")
    at_half = learned.loc[0.5]
    guard(at_half[["flc", "seer"]].gt(0.95).all(), "it has caught up with Cox on FLC and SEER")
    guard(at_half["support"] < 0.3, "and has not on SUPPORT")
    rising = all(learned[dataset].is_monotonic_increasing for dataset in DATASETS)
    guard(rising, "A small α acts like a brake on training")


def first_repeat(runs: pd.DataFrame) -> pd.DataFrame:
    """Linear DRO-COX at learning rate 0.01 in the first repeat, with F_A of age.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, corrected.

    Returns
    -------
    DataFrame
        Sorted by alpha.
    """
    of_method = (runs["method"] == "DRO-COX") & (runs["learning_rate"] == 0.01)
    first = runs[of_method & (runs["repeat"] == 1)]
    return first.assign(f_a=first[THREE_PARTS].mean(axis=1)).sort_values("alpha")


def draw_shrunk(first: pd.DataFrame, control: dict[str, dict]) -> Figure:
    """DRO-COX for six alphas against one Cox model whose scores are shrunk.

    Parameters
    ----------
    first : DataFrame
        Of :func:`first_repeat`.
    control : dict
        By data set: F_A of the Cox model at each scale, its c-index and its CI.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(2, 3, figsize=(9, 4.8), layout="constrained", sharex="col")
    for column, dataset in zip(axes.T, DATASETS, strict=True):
        points = first[first["dataset"] == dataset]
        of_cox = control[dataset]
        metrics = (("c_index", "test_c_index"), ("ci_percent", "test_ci_percent_age"))
        for panel, (metric, name) in zip(column, metrics, strict=True):
            level = np.full(len(of_cox["f_a"]), of_cox[metric])
            panel.plot(of_cox["f_a"], level, color="C1", label="Cox, shrunken")
            panel.plot(points["f_a"], points[name], "o:", color="C0", ms=4, label="DRO-COX")
            last = points.iloc[-1:]
            panel.plot(last["f_a"], last[name], "o", color="C0", ms=8)
            panel.set(xscale="log")
        column[0].set(title=f"{dataset.upper()} (age)")
        column[1].set(xlabel="$F_A$ (log scale)", ylim=(0, 1.08 * column[1].dataLim.ymax))
        plain_log(column[1].xaxis)
    axes[0, 0].set(ylabel="c-index")
    axes[1, 0].set(ylabel="CI (%)")
    axes[0, 0].legend(fontsize="small")
    return figure


def tell_shrunk(first: pd.DataFrame, control: dict[str, dict]) -> None:
    """For "All 18 points have an F_A that the shrunken Cox model reaches too".

    Parameters
    ----------
    first, control
        As in :func:`draw_shrunk`.
    """
    inside = 0
    leads = []
    for dataset in DATASETS:
        points = first[first["dataset"] == dataset]
        reached = control[dataset]["f_a"]
        inside += int(points["f_a"].between(min(reached), max(reached)).sum())
        leads += list(points["test_c_index"] - control[dataset]["c_index"])
    guard(inside == len(leads) == 18, "All 18 points have an F_A that the Cox model reaches too")
    say("shrunk-ahead", sum(lead > 0 for lead in leads))
    say("shrunk-lead", f"{max(leads):.4f}")
    guard(max(leads) < 0.01, "more accurate than it is, by little")


def tell_test_parts(constant: dict[tuple[str, int], float]) -> None:
    """The test parts behind what is learned are the protocol's.

    Parameters
    ----------
    constant : dict
        By data set and repeat: LPL of constant scores.
    """
    for dataset in DATASETS:
        test = prepare("corrected", dataset, 1).test
        lpl = accuracy.log_partial_likelihood(np.zeros(len(test)), test.time, test.event)
        guard(np.isclose(constant[dataset, 1], lpl), "its gain in test LPL over constant scores")


def tell_against_cox(against_cox: dict[tuple[str, str], pd.DataFrame]) -> None:
    """For the two findings, accuracy and CI.

    Parameters
    ----------
    against_cox : dict of DataFrame
        By data set and metric: mean and half-width of DRO-COX minus Cox, by alpha.
    """
    c = pd.concat({dataset: against_cox[dataset, "c_index"] for dataset in DATASETS})
    say("best-c-gap", f"{c['mean'].max():.4f}")
    guard(not (c["mean"] > c["half"]).any(), "no α is clearly more accurate than Cox")
    guard(0 < c["mean"].max() < 0.0005, "the largest mean lead is tiny")
    on_support = c.loc["support"]
    guard((on_support["mean"] < -on_support["half"]).all(), "on SUPPORT every α is less accurate")
    say("support-c-half", f"{-on_support.loc[0.5, 'mean']:.3f}")


def gaps_by_alpha(runs: pd.DataFrame) -> pd.DataFrame:
    """Signed gaps between age groups of Cox and of linear DRO-COX, by data set and alpha.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, corrected.

    Returns
    -------
    DataFrame
        Of :func:`drocox.paper.signed.compare`; eighteen comparisons, named "support 0.5".
    """
    runs = runs[runs["learning_rate"] == 0.01]
    of_cox = []
    of_dro = []
    names = []
    for dataset in DATASETS:
        rows = runs[runs["dataset"] == dataset]
        cox = rows[rows["method"] == "Cox"].set_index("repeat")["test_ci_signed_age"]
        robust = rows[rows["method"] == "DRO-COX"].pivot(
            index="repeat", columns="alpha", values="test_ci_signed_age"
        )
        for alpha, gaps in robust.items():
            of_cox.append(cox[robust.index])
            of_dro.append(gaps)
            names.append(f"{dataset} {alpha:g}")
    theirs = np.stack(of_cox, axis=1)
    return signed.compare(theirs, np.stack(of_dro, axis=1), names, "corrected")


def draw_gaps_by_alpha(table: pd.DataFrame) -> Figure:
    """Signed gaps of DRO-COX against alpha, with Cox's gap as a band.

    Parameters
    ----------
    table : DataFrame
        Of :func:`gaps_by_alpha`.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(1, 3, figsize=(8.4, 3), layout="constrained")
    for panel, dataset in zip(axes, DATASETS, strict=True):
        rows = table[table.index.str.startswith(f"{dataset} ")]
        alphas = [float(name.split()[1]) for name in rows.index]
        cox = rows.iloc[0]
        low = cox["theirs"] - cox["theirs_half"]
        high = cox["theirs"] + cox["theirs_half"]
        panel.axhspan(low, high, color="C1", alpha=0.15, lw=0)
        panel.axhline(cox["theirs"], color="C1", ls="--", label="Cox")
        panel.errorbar(
            alphas, rows["ours"], yerr=rows["ours_half"], fmt="o", color="C0", label="DRO-COX"
        )
        panel.axhline(0, color="0.3", lw=1)
        panel.set(title=f"{dataset.upper()} (age)", xlabel="α")
    axes[0].set(ylabel="Δ, points")
    axes[0].legend(fontsize="small")
    return figure


def show_gaps_by_alpha(table: pd.DataFrame) -> pd.DataFrame:
    """Difference, sum and words, as text.

    Parameters
    ----------
    table : DataFrame
        Of :func:`gaps_by_alpha`.

    Returns
    -------
    DataFrame of str
    """
    rows = {}
    for name, row in table.iterrows():
        dataset, alpha = name.split()
        rows[f"{dataset.upper()}, α = {alpha}"] = {
            "Δ DRO-COX": with_minus(f"{row['ours']:+.2f} ± {row['ours_half']:.2f}"),
            "difference": with_minus(f"{row['difference']:+.2f} ± {row['difference_half']:.2f}"),
            "sum": with_minus(f"{row['sum']:+.2f} ± {row['sum_half']:.2f}"),
            "alone": row["alone"],
            "over all 18": row["together"],
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def tell_gaps_by_alpha(table: pd.DataFrame) -> None:
    """For what alpha does to the gap between age groups.

    Parameters
    ----------
    table : DataFrame
        Of :func:`gaps_by_alpha`.
    """
    on_support = table.index.str.startswith("support")
    moved = table["alone"] != signed.UNDECIDED
    guard((moved == on_support).all(), "The gap moves at every α on SUPPORT, and nowhere else")
    together = table.index[table["together"] != signed.UNDECIDED]
    expected = [f"support {alpha}" for alpha in (0.2, 0.3, 0.4, 0.5)]
    guard(list(together) == expected, "over all 18 comparisons it does from α = 0.2 on")
    closer = list(table.index[table["alone"] == signed.CLOSER]) == ["support 0.5"]
    guard(closer, "closer to equal, looked at alone, only at α = 0.5")
    support = table[on_support]
    guard((support["ours"].iloc[:-1] > 0).all(), "below 0.5 the gap has changed its side")
    say("support-cox", f"{support['theirs'].iloc[0]:+.1f}")
    half = table.loc["support 0.5"]
    say("support-half-gap", f"{half['ours']:+.1f}")
    say("support-half-difference", f"{abs(half['difference']):.2f} ± {half['difference_half']:.2f}")


def tell_stopped(runs: pd.DataFrame) -> None:
    """For the Cox model that has barely started.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, corrected.
    """
    of_cox = (runs["dataset"] == "support") & (runs["method"] == "Cox")
    stopped = runs[of_cox & (runs["learning_rate"] == 0.0001)]
    gap = claims.interval(stopped["test_ci_signed_age"], "corrected")
    c = stopped["test_c_index"].mean()
    say("stopped-gap", f"{gap.mean:+.1f} ± {gap.half:.1f}")
    say("stopped-c", f"{c:.2f}")
    guard(abs(gap.mean) < gap.half and c < 0.53, "a Cox model that has barely started has no gap")
