"""Splitting, tested (T16 and T17): tables, values for sentences, guards, and two drawings.

``shares`` and ``sides`` are T16 and T17 with both models, by view. ``ranges`` and ``ahead`` are
what the chapter computes of them, model by metric, by view and for the printed numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.chapters.sentences import ALL_VIEWS, dashed, interval_width, judged, keep
from drocox.paper import claims, protocol, selection, tables

MODELS = protocol.MODELS
LABELS = ["c-index", "AUC", "LPL", "IBS", "$F_I$", "$F_G$", r"$F_\cap$", "$F_A$", "CI"]
MARKERS = {"printed": "o", "as published": "^", "stated rule": "s", "corrected": "D"}
ACCURACY = ["c_index", "auc", "lpl", "ibs"]
OF_HAZARDS = ["f_i", "f_g", "f_cap", "f_a"]


def keep_tables(shares: dict[str, pd.DataFrame], sides: dict[str, pd.DataFrame]) -> None:
    """Lay out T16 and T17 in three views.

    Parameters
    ----------
    shares, sides : dict of DataFrame
    """
    for view in tables.VIEWS:
        distances = "corrected" not in view
        caption = f"FLC (age) by the size of D₂, {view}: five rows linear, five nonlinear"
        keep(f"t16-{dashed(view)}", tables.show(shares[view], caption, distances))
        caption = f"one side or both on FLC (age), {view}"
        keep(f"t17-{dashed(view)}", tables.show(sides[view], caption, distances))


def tell_fit(shares: pd.DataFrame, sides: pd.DataFrame) -> None:
    """For the cells within one published SD, and for how little the forensic networks differ.

    Parameters
    ----------
    shares, sides : DataFrame
        T16 and T17, as published.
    """
    for exhibit, table in (("t16", shares), ("t17", sides)):
        gap = ((table["mean"] - table["paper_mean"]) / table["paper_std"]).abs()
        for model in MODELS:
            of_model = gap[table["model"] == model]
            say(f"{exhibit}-within-{model}", int((of_model <= 1).sum()))
            say(f"{exhibit}-of-{model}", len(of_model))
            if exhibit == "t16":
                say(f"t16-median-{model}", f"{of_model.median():.1f}")
    c = shares[(shares["model"] == "nonlinear") & (shares["metric"] == "c_index")]
    ours = np.ptp(c["mean"])
    printed = np.ptp(c["paper_mean"])
    guard(max(ours, printed) < 0.0011, "the printed nonlinear rows say little about D₂")
    say("cut-range", f"{ours:.4f}")
    say("cut-range-printed", f"{printed:.4f}")
    deep = sides[(sides["model"] == "nonlinear") & (sides["metric"] != "ibs")]
    by_metric = deep.groupby("metric")
    apart = (by_metric["mean"].max() - by_metric["mean"].min()) / by_metric["std"].mean()
    say("cut-sides", f"{apart.max():.1f}")


def tell_claims() -> None:
    """For counts and verdicts of C12 and C13."""
    for name in ("C12", "C13"):
        for view in ("printed", *ALL_VIEWS):
            claim = judged(name, view)
            key = f"{name}-{dashed(view)}"
            say(key, claim.number)
            say(f"{key}-where", claim.count.where)
            say(f"{key}-verdict", claim.words)


# T16: the size of D2


def _draw_views(panel: Axes, values: dict[str, pd.DataFrame], model: str) -> None:
    """Nine metrics of a model, a marker for each view."""
    for k, (view, marker) in enumerate(MARKERS.items()):
        x = np.arange(9) + 0.15 * (k - 1.5)
        filled = "none" if view == "printed" else None
        panel.plot(x, values[view].loc[model], marker, ms=5, mfc=filled, label=view)


def ranges_over_shares() -> dict[str, pd.DataFrame]:
    """Range of the means over the shares, in pooled SDs: printed, and in all views.

    Returns
    -------
    dict of DataFrame
        Model by metric.
    """
    made = {view: tables.exhibit_table("t16", **how) for view, how in ALL_VIEWS.items()}
    found = {"printed": _range(made["as published"], "paper_mean", "paper_std")}
    return found | {view: _range(table, "mean", "std") for view, table in made.items()}


def _range(table: pd.DataFrame, mean: str, std: str) -> pd.DataFrame:
    """Range of a column of means over the shares, in pooled SDs."""
    by_metric = table.assign(square=table[std] ** 2).groupby(["model", "metric"])
    spread = by_metric[mean].max() - by_metric[mean].min()
    return (spread / np.sqrt(by_metric["square"].mean())).unstack()[list(tables.METRICS)]


def draw_ranges(ranges: dict[str, pd.DataFrame]) -> Figure:
    """Range of the means over the shares, in pooled SDs.

    Parameters
    ----------
    ranges : dict of DataFrame

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
    for panel, model in zip(axes, MODELS, strict=True):
        _draw_views(panel, ranges, model)
        panel.axhline(2, linestyle="--", color="0.4", linewidth=1)
        panel.set_xticks(range(9), LABELS, fontsize="small")
        panel.set(title=model, ylim=(-0.1, 2.3))
    axes[0].set(ylabel="range / pooled SD")
    axes[1].legend(fontsize="small", ncol=2, loc="upper center", bbox_to_anchor=(0.5, 0.85))
    return figure


def tell_ranges(ranges: dict[str, pd.DataFrame], corrected: pd.DataFrame) -> None:
    """For "All nine metrics stay below the line" and "Why?".

    Parameters
    ----------
    ranges : dict of DataFrame
    corrected : DataFrame
        T16, corrected.
    """
    for view in ("printed", *tables.VIEWS):
        below = (ranges[view] <= 2).all(axis=None)
        guard(below, "All nine metrics stay below the line for both models")
        say(f"range-{dashed(view)}", f"{ranges[view].max(axis=None):.1f}")
    claim = claims.claims()["C12"]
    needed = claim.get("partly", claim["reproduced"])
    for view in tables.READINGS:
        stay = (ranges[view] <= 2).sum(axis=1).min()
        guard(stay < needed, "With one setting for each share they do not")
    of_f_a = corrected[(corrected["model"] == "linear") & (corrected["metric"] == "f_a")]
    share = of_f_a["std"] / of_f_a["mean"]
    say("f-a-spread", f"{100 * share.min():.0f} to {100 * share.max():.0f}")
    guard((share > 0.7).all(), "the spread over repeats is large, and it is")


def c_of_networks(flc: pd.DataFrame) -> pd.DataFrame:
    """c-index of nonlinear SPLIT with halves minus that with the smallest D2.

    Parameters
    ----------
    flc : DataFrame
        Runs on FLC.

    Returns
    -------
    DataFrame
        Repeat by alpha, at learning rate 0.01.
    """
    of_method = (flc["method"] == protocol.SPLIT["nonlinear"]) & (flc["sides"] == 2)
    rows = flc[of_method & (flc["learning_rate"] == 0.01)]
    c = rows.pivot(index="repeat", columns=["n2_share", "alpha"], values="test_c_index")
    return c[0.5] - c[0.1]


def tell_small_share(gap: pd.DataFrame) -> None:
    """For "For the nonlinear model a small D₂ costs accuracy from α = 0.3 on".

    Parameters
    ----------
    gap : DataFrame
        Of :func:`c_of_networks`.
    """
    half_width = interval_width() * gap.std()
    large = gap.loc[:, 0.3:]
    guard((large > 0).all(axis=None), "in all ten repeats")
    clear = (large.mean() > half_width[0.3:]).all()
    guard(clear, "a small D₂ costs accuracy from α = 0.3 on")
    small = gap[[0.1, 0.15]].mean()
    within = (small < 0).all() and (small.abs() < half_width[[0.1, 0.15]]).all()
    guard(within, "below 0.2 the difference is within its error")
    say("deep-share-half", f"{gap[0.5].mean():.3f}")
    say("deep-share-most", f"{gap[0.3].mean():.3f}")


# T17: one side or both


def draw_sides(ahead: dict[str, pd.DataFrame]) -> Figure:
    """Both sides minus one side, in pooled SDs.

    Parameters
    ----------
    ahead : dict of DataFrame

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for panel, model in zip(axes, MODELS, strict=True):
        _draw_views(panel, ahead, model)
        panel.axhline(0, color="0.4", linewidth=1)
        panel.set_yscale("symlog", linthresh=1)
        panel.set_yticks([-100, -10, -1, 0, 1, 10], ["−100", "−10", "−1", "0", "1", "10"])
        panel.set_xticks(range(9), LABELS, fontsize="small")
        panel.set(title=model, ylim=(-130, 10))
    axes[0].set(ylabel="advantage of both sides / SD")
    axes[0].legend(fontsize="small", loc="lower right")
    return figure


def tell_sides(corrected: pd.DataFrame, published: pd.DataFrame) -> None:
    """For "Corrected, repeat by repeat, no difference reaches one pooled SD" and the ties in print.

    Parameters
    ----------
    corrected : DataFrame
        Advantage of both sides, model by metric, corrected.
    published : DataFrame
        T17, as published.
    """
    linear = corrected.loc["linear"]
    guard((linear[ACCURACY] > 0).all(), "both sides are ahead on the four accuracy metrics")
    guard(abs(linear["ci_percent"]) < 0.05, "level on CI")
    guard((linear[OF_HAZARDS] < 0).all(), "behind on the four that depend on the scale of hazards")
    deep = corrected.loc["nonlinear"]
    ahead = (deep.drop("ibs") > 0).all() and abs(deep["ibs"]) < 0.05
    guard(ahead, "nonlinear: ahead but for the IBS")
    most = corrected.abs().max(axis=None)
    say("ahead-most", f"{most:.1f}")
    guard(most < 1, "no difference reaches one pooled SD")
    printed = published[published["model"] == "linear"].groupby("metric")["paper_mean"]
    tied = set(printed.nunique().index[printed.nunique() == 1])
    guard(tied == {"f_cap", "f_a"}, "two of the linear metrics are ties in the printed digits")


def tell_chosen_settings(flc: pd.DataFrame) -> None:
    """For "That lag comes from selection".

    Parameters
    ----------
    flc : DataFrame
        Runs on FLC, corrected, with F_A of age.
    """
    split = flc[(flc["method"] == "DRO-COX (SPLIT)") & (flc["n2_share"] == 0.5)]
    cox = flc[flc["method"] == "Cox"]
    rule = selection.rule_of("n2", "DRO-COX (SPLIT)", "stated")
    both = selection.select(split[split["sides"] == 2], cox, rule).set_index("repeat")
    one = selection.select(split[split["sides"] == 1], cox, rule).set_index("repeat")
    setting = ["learning_rate", "alpha"]
    same = (both[setting] == one[setting]).all(axis=1)
    gap = both["test_f_a"] - one["test_f_a"]
    say("same-setting", int(same.sum()))
    say("other-setting", int((~same).sum()))
    say("same-gap", f"{gap[same].mean():.3f}")
    say("all-gap", f"{gap.mean():.2f}")
    elsewhere = abs(gap[same].sum()) < 0.1 * gap.sum()
    guard(elsewhere, "the difference over all repeats is due almost entirely to the others")


def tell_fixed_sides(fixed_sides: pd.DataFrame) -> None:
    """For both sides against one at a fixed setting.

    Parameters
    ----------
    fixed_sides : DataFrame
        By alpha, for each model: mean difference of the c-index, half-width, repeats above 0.
    """
    deep = fixed_sides["nonlinear"]
    clear = deep.index[deep["mean"] > deep["±"]]
    guard(list(clear) == [0.2, 0.3, 0.4, 0.5], "from α = 0.2 on the intervals exclude zero")
    large = deep.loc[0.2:]
    guard(large["repeats > 0"].eq(10).all(), "both sides are more accurate in all ten repeats")
    guard(not (deep["mean"] < -deep["±"]).any(), "For the nonlinear model the answer is clear")
    say("deep-least", f"{large['mean'].min():.3f}")
    say("deep-most", f"{large['mean'].max():.3f}")
    linear = fixed_sides["linear"]
    guard(not (linear["mean"] > linear["±"]).any(), "but no interval excludes zero")
    often = linear.loc[:0.2, "repeats > 0"].ge(8).all() and (linear["mean"] > 0).all()
    guard(often, "ahead in eight or nine of ten repeats for α up to 0.2")
    guard(linear["mean"].is_monotonic_decreasing, "the difference vanishes as α grows")
    guard(linear.loc[0.3:, "mean"].lt(0.001).all(), "from 0.3 on there is nothing to choose")
    say("linear-most", f"{linear['mean'].max():.3f}")


def tell_ibs(ibs: pd.DataFrame) -> None:
    """For the lead of one side in IBS, as published and scored alike.

    Parameters
    ----------
    ibs : DataFrame
        By model and sides: IBS as published, and scored alike.
    """
    lead = ibs.xs("both sides", level=1) - ibs.xs("one side", level=1)
    for model in MODELS:
        say(f"ibs-published-{model}", f"{lead.loc[model, 'as published']:.4f}")
        say(f"ibs-alike-{model}", f"{lead.loc[model, 'scored alike']:.4f}")
    guard((lead["as published"] > 0.005).all(), "On IBS one side is ahead in print")
    guard(lead["scored alike"].abs().max() < 0.001, "it is one of scoring")


# Exercises


def tell_fixed_shares(table: pd.DataFrame, drop: dict[float, pd.Series]) -> None:
    """For the exercise "hold the setting fixed".

    Parameters
    ----------
    table : DataFrame
        Range over the shares in pooled SDs: metric by alpha, and "chosen" as in T16.
    drop : dict of Series
        By alpha: c-index with halves minus that with the smallest D2, by repeat.
    """
    guard((table <= 2).all(axis=None), "All metrics stay within two SDs at every α")
    accuracy = table.loc[["c_index", "auc"]]
    chosen = accuracy["chosen"]
    more = accuracy[[0.1, 0.15]].gt(1.4 * chosen, axis=0).all(axis=None)
    guard(more, "more sensitive than T16 says for α ≤ 0.15")
    less = accuracy[[0.3, 0.4, 0.5]].lt(0.7 * chosen, axis=0).all(axis=None)
    guard(less, "and less for α ≥ 0.3")
    others = table.drop(index=["c_index", "auc"])
    guard(others.max(axis=None) < 1, "the other metrics range over less than one SD throughout")
    small = drop[0.1]
    within = 0.01 < small.mean() < interval_width() * small.std()
    guard(within, "The linear one is lower at 0.1, within its error")
    guard(abs(drop[0.5].mean()) < 0.001, "and the same at 0.5")
    say("fixed-drop", f"{small.mean():.3f}")
