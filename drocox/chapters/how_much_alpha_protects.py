"""The chapter *How much α protects*: values of its sentences, their guards, its drawings.

A χ² ball with dual constant c has the protected share :math:`\\pi = 1/c^2`. The rows of the study
come from :mod:`drocox.beyond.protection`: certified optima on the corrected splits, over a grid of
shares, for the ball ("chi2"), for CVaR ("cvar") and for Cox.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.beyond.protection import nominal_alpha, protected_share
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import WRITTEN, with_minus
from drocox.paper import claims, signed
from drocox.paper.comparisons import MAIN_PAIRS, PAIRS
from drocox.paper.protocol import ALPHAS, ATTRIBUTES

MAIN_ATTRIBUTE = dict(MAIN_PAIRS)  # by data set
CVAR_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)  # at which the two adversaries are compared
CI_SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)  # at which CI is compared with Cox's
SHOWN = [  # rows of the table of models
    ("cox", 1.0),
    ("chi2", 0.5),
    ("chi2", 0.2),
    ("chi2", 0.1),
    ("chi2", 0.05),
    ("chi2", 0.02),
    ("cvar", 0.2),
    ("cvar", 0.1),
]


def at(runs: pd.DataFrame, kind: str, share: float, column: str, dataset: str) -> pd.Series:
    """Values of the ten splits at a share.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.
    kind : {"chi2", "cvar", "cox"}
    share : float
        Protected share.
    column, dataset : str

    Returns
    -------
    Series
        By repeat.
    """
    rows = runs[(runs["dataset"] == dataset) & (runs["kind"] == kind)]
    rows = rows[np.isclose(rows["share"], share, rtol=1e-6, atol=0)]
    guard(len(rows) == 10, "the ten corrected splits of each data set")
    return rows.set_index("repeat")[column]


def interval(values: pd.Series) -> tuple[float, float]:
    """Mean and half-width of the 95 % interval of ten overlapping splits.

    Parameters
    ----------
    values : Series

    Returns
    -------
    mean, half : float
    """
    whole = claims.interval(values, "corrected")
    return whole[0], whole[1]


def draw_shares() -> Figure:
    """What α is called and what it protects, on logarithmic axes.

    Returns
    -------
    Figure
    """
    grid = np.linspace(0.05, 0.95, 200)
    figure, axes = plt.subplots(figsize=(5.6, 3.8))
    for rule, colour, line in (("paper", "C0", "-"), ("definition", "C1", "--")):
        shares = [protected_share(alpha, rule) for alpha in grid]
        axes.plot(grid, shares, colour, ls=line, label=rule)
    axes.plot(grid, grid, "k:", label="sharp, CVaR")
    axes.plot(ALPHAS, [protected_share(alpha, "paper") for alpha in ALPHAS], "C0o")
    axes.set(
        xscale="log", yscale="log", xlabel="α, as given", ylabel="protected share of the patients"
    )
    ticks = [0.05, 0.1, 0.2, 0.5, 0.9]
    axes.set_xticks(ticks, ticks)
    heights = [0.002, 0.01, 0.05, 0.2, 0.5, 0.9]
    axes.set_yticks(heights, ["0.2 %", "1 %", "5 %", "20 %", "50 %", "90 %"])
    axes.minorticks_off()
    axes.legend()
    return figure


def tell_shares(shares: pd.DataFrame) -> None:
    """Section *The protected share*: what the clinic ordered.

    Parameters
    ----------
    shares : DataFrame
        Protected shares of the paper's six α, a column per rule.
    """
    ordered = shares.loc[0.2, "paper"]
    guard(0.029 < ordered < 0.031, "it ordered protection for every group of 3 %")
    say("share-paper-02", f"{100 * ordered:.0f}")
    say("share-paper-01", f"{100 * shares.loc[0.1, 'paper']:.1f}")
    below_half = shares[shares.index < 0.5]
    guard(
        (below_half["definition"] < below_half["sharp"]).all()
        and np.isclose(shares.loc[0.5, "definition"], 0.5),
        "on the diagonal α means what it says; below it smaller groups are protected",
    )
    for rule in shares.columns:
        back = [nominal_alpha(share, rule) for share in shares[rule]]
        guard(np.allclose(back, shares.index), "the formulas turned round")
    say("alpha-for-20", f"{nominal_alpha(0.2, 'paper'):.2f}")


def draw_cost(runs: pd.DataFrame, mean: pd.DataFrame, edges: pd.DataFrame) -> Figure:
    """Mean test c-index against the protected share, one panel per data set.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.
    mean : DataFrame
        Their means, by data set, kind and share.
    edges : DataFrame
        "events, %" of each data set.

    Returns
    -------
    Figure
    """
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.4), layout="constrained")
    for axes, name in zip(panels, MAIN_ATTRIBUTE, strict=True):
        ball = mean.loc[(name, "chi2"), "c_index"]
        tail = mean.loc[(name, "cvar"), "c_index"]
        axes.axhline(mean.loc[(name, "cox", 1.0), "c_index"], color="0.4", ls="--", lw=1)
        axes.axvline(edges.loc[name.upper(), "events, %"], color="0.4", ls=":", lw=1)
        axes.plot(100 * ball.index, ball, "C0", label="χ² ball")
        axes.plot(100 * tail.index, tail, "C1x", label="CVaR")
        for rule, mark in (("paper", "o"), ("sharp", "s")):
            shares = np.array([protected_share(alpha, rule) for alpha in (0.1, 0.2, 0.5)])
            c = [at(runs, "chi2", share, "c_index", name).mean() for share in shares]
            axes.plot(100 * shares, c, f"k{mark}", mfc="none", ms=8, label=rule)
        axes.set(xscale="log", xlabel="protected share, %", title=name.upper())
        axes.set_xticks([1, 5, 20, 80], [1, 5, 20, 80])
        axes.minorticks_off()
    panels[0].set_ylabel("test c-index")
    panels[0].legend(fontsize=9)
    return figure


def shown_cost(cost: pd.DataFrame) -> pd.DataFrame:
    """The table of what protection and the constant cost, in points of c-index.

    Parameters
    ----------
    cost : DataFrame
        "ordered", "label", their half-widths "ordered ±" and "label ±", and "part", the constant's
        part of both, by data set and α.

    Returns
    -------
    DataFrame
        Texts; the part is left out where less than 0.3 points are lost.
    """
    lines = {}
    for (name, alpha), row in cost.iterrows():
        part = f"{100 * min(1, row['part']):.0f} %"
        whole = row["ordered"] + row["label"]
        lines[f"{name.upper()}, α = {alpha:g}"] = {
            "as ordered (sharp)": f"{row['ordered']:.2f} ± {row['ordered ±']:.2f}",
            "on top (paper's constant)": f"{row['label']:.2f} ± {row['label ±']:.2f}",
            "constant's part": part if whole > 0.3 else "",
        }
    return pd.DataFrame(lines).T.map(with_minus)


def tell_cost(cost: pd.DataFrame) -> None:
    """Section *What protection costs*: the order's price and the constant's.

    Parameters
    ----------
    cost : DataFrame
        As in :func:`shown_cost`.
    """
    two = cost.loc[["flc", "seer"]]
    within_noise = (two["ordered"].abs() < two["ordered ±"]).all()
    guard(
        within_noise and (two["ordered"] < 0.25).all(),
        "protection of the share that was asked for costs little, within noise everywhere",
    )
    clear = two.index[two["label"] > two["label ±"]]
    guard(
        list(clear) == [("flc", 0.1), ("seer", 0.1), ("seer", 0.2)],
        "the constant costs beyond noise at α = 0.1, and on SEER at 0.2",
    )
    lost = two["ordered"] + two["label"] > 0.3
    guard((two["part"][lost] > 0.95).all(), "what is lost is lost to the constant")
    say("ordered-most", f"{two['ordered'].max():.2f}")
    say("label-flc-01", f"{cost.loc[('flc', 0.1), 'label']:.1f}")
    say("label-seer-01", f"{cost.loc[('seer', 0.1), 'label']:.0f}")
    say("label-seer-02", f"{cost.loc[('seer', 0.2), 'label']:.1f}")

    support = cost.loc["support"]
    fifth = support.loc[0.2]
    guard(
        0.1 < fifth["part"] < 0.5 and fifth["ordered"] > fifth["ordered ±"],
        "on SUPPORT the constant is only a part",
    )
    half = support.loc[0.5]
    guard(half["ordered"] < 0.1 and half["label"] > 1, "at α = 0.5 the constant is everything")
    say("support-part-02", f"{100 * fifth['part']:.0f}")
    say("support-ordered-02", f"{fifth['ordered']:.1f}")
    say("support-label-05", f"{half['label']:.1f}")


def shown_models(mean: pd.DataFrame) -> pd.DataFrame:
    """Likeness to Cox's scores, their spread, and F_A, at some shares.

    Parameters
    ----------
    mean : DataFrame
        Means of the study, by data set, kind and share.

    Returns
    -------
    DataFrame
        Texts.
    """
    title = {"chi2": "χ² ball", "cvar": "CVaR"}
    labels = ["Cox"]
    for kind, share in SHOWN[1:]:
        labels.append(f"{title[kind]}, {100 * share:g} %")
    columns = {}
    for name in MAIN_ATTRIBUTE:
        rows = mean.loc[[(name, kind, share) for kind, share in SHOWN]]
        f_a = f"f_a_{MAIN_ATTRIBUTE[name]}"
        for heading, column in (("like Cox", "like_cox"), ("SD", "spread"), ("F_A", f_a)):
            columns[name.upper(), heading] = [f"{value:.3f}" for value in rows[column]]
    return pd.DataFrame(columns, index=labels)


def tell_models(runs: pd.DataFrame, mean: pd.DataFrame, edges: pd.DataFrame) -> None:
    """Section *Is it still a model?*: scores like Cox's, CVaR beside the ball, CI.

    Parameters
    ----------
    runs, mean, edges : DataFrame
        As in :func:`draw_cost`.
    """
    for name in MAIN_ATTRIBUTE:
        ball = mean.loc[(name, "chi2")]
        events = edges.loc[name.upper(), "events, %"] / 100
        above = ball[ball.index > 1.02 * events]
        guard(above["like_cox"].min() > 0.999, "above the share of events the scores are Cox's")
        f_a = ball[f"f_a_{MAIN_ATTRIBUTE[name]}"]
        together = np.corrcoef(np.log(ball["spread"]), np.log(f_a))[0, 1]
        guard(together > 0.9, "F_A follows the spread of the scores")
    say("like-least", "0.999")
    say("like-support-10", f"{mean.loc[('support', 'chi2', 0.1), 'like_cox']:.2f}")

    apart = adversaries_apart(runs)
    guard(apart < 0.6, "the two adversaries hardly differ")
    say("cvar-apart", f"{apart:.1f}")


def adversaries_apart(runs: pd.DataFrame) -> float:
    """Largest difference of mean c-index between CVaR and the ball at equal shares, in points.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.

    Returns
    -------
    float
    """
    apart = []
    for name in MAIN_ATTRIBUTE:
        for share in CVAR_SHARES:
            tail = at(runs, "cvar", share, "c_index", name)
            ball = at(runs, "chi2", share, "c_index", name)
            apart.append(100 * (tail - ball).mean())
    return np.abs(apart).max()


def gaps_by_share(runs: pd.DataFrame) -> pd.DataFrame:
    """Signed gaps of the ball beside Cox's, on all pairs and at some shares.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.

    Returns
    -------
    DataFrame
        Of :func:`drocox.paper.signed.compare`, by data set, attribute and share; ``together`` is
        for all of them.
    """
    names = []
    of_cox = []
    of_ball = []
    for dataset, attribute in PAIRS:
        column = f"ci_signed_{attribute}"
        for share in CI_SHARES:
            names.append((dataset, attribute, share))
            of_cox.append(at(runs, "cox", 1.0, column, dataset))
            of_ball.append(at(runs, "chi2", share, column, dataset))
    table = signed.compare(np.transpose(of_cox), np.transpose(of_ball), names, "corrected")
    index = pd.MultiIndex.from_tuples(names, names=["dataset", "attribute", "share"])
    return table.set_axis(index)


def tell_gaps(runs: pd.DataFrame) -> None:
    """Section *Does protection bring groups closer?*

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.
    """
    gaps = gaps_by_share(runs)
    is_age = (gaps.index.get_level_values("dataset") == "support") & (
        gaps.index.get_level_values("attribute") == "age"
    )
    others = gaps[~is_age]
    moved = int((others["alone"] != signed.UNDECIDED).sum())
    guard(moved <= 1, "on six pairs nothing can be told")
    say("gap-others", len(others))
    say("gap-others-moved", moved or "none")
    age = gaps[is_age].droplevel(["dataset", "attribute"])
    guard((age["alone"] != signed.UNDECIDED).all(), "on SUPPORT by age all five do")
    half = age.loc[0.5]
    fifth = age.loc[0.2]
    guard(half["alone"] == signed.CLOSER, "at one half closer to equal, looked at alone")
    guard(fifth["alone"] == signed.MOVED, "at a fifth moved, perhaps past equality")
    say("gap-cox", f"{half['theirs']:+.1f}")
    say("gap-half", f"{half['ours']:+.1f}")
    say("gap-fifth", f"{fifth['ours']:+.1f}")
    # towards 0 from below: rival less Cox
    say("gap-half-difference", f"{-half['difference']:+.2f} ± {half['difference_half']:.2f}")
    say("gap-half-sum", f"{half['sum']:+.2f} ± {half['sum_half']:.2f}")
    say("gap-fifth-difference", f"{-fifth['difference']:+.2f} ± {fifth['difference_half']:.2f}")


def draw_gaps(mean: pd.DataFrame) -> Figure:
    """Mean signed gap of the ball against the protected share, a line for each attribute.

    Parameters
    ----------
    mean : DataFrame
        Means of the study, by data set, kind and share.

    Returns
    -------
    Figure
    """
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.4), sharey=True, layout="constrained")
    styles = {"age": ("C0", "o"), "gender": ("C1", "s"), "race": ("C2", "^")}
    for axes, (dataset, attributes) in zip(panels, ATTRIBUTES.items(), strict=True):
        for attribute in attributes:
            colour, mark = styles[attribute]
            column = f"ci_signed_{attribute}"
            ball = mean.loc[(dataset, "chi2"), column]
            axes.plot(100 * ball.index, ball, colour, marker=mark, ms=4, label=attribute)
            cox = mean.loc[(dataset, "cox", 1.0), column]
            axes.axhline(cox, color=colour, ls="--", lw=1)
        axes.axhline(0, color="0.5", lw=1)
        axes.set(xscale="log", xlabel="protected share, %", title=WRITTEN[dataset])
        axes.set_xticks([1, 5, 20, 80], [1, 5, 20, 80])
        axes.minorticks_off()
        axes.legend(fontsize=9)
    panels[0].set_ylabel("signed gap Δ, points")
    return figure
