"""The chapter *Groups nobody named*: planted minorities, which no model is told of.

Rows come from :mod:`drocox.beyond.groups` (minorities of five designs) and
:mod:`drocox.beyond.censoring` (the designs, followed for longer or less). Here are values of
sentences, their guards, and drawings; those on real patients are in
:mod:`drocox.chapters.groups_nobody_named_real`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import drocox
from drocox.beyond import groups
from drocox.bookstyle import guard, say

SHARE = 0.2  # of the planted minority in the chapter's tables
PATIENTS = 4000  # in a draw of them
GENTLE = 0.5  # the largest alpha
HARD = ["opposite", "other", "other-early", "other-late"]  # designs that Cox serves badly


def means_by_design(planted: pd.DataFrame, marker: float = 1.0) -> pd.DataFrame:
    """Means over draws of the planted study with 4,000 patients, 20 % in the minority.

    Parameters
    ----------
    planted : DataFrame
        Rows of planted minorities.
    marker : float
        By how many standard deviations the marker is higher in the minority.

    Returns
    -------
    DataFrame
        Indexed by method and design.
    """
    same_size = (planted["share"] == SHARE) & (planted["n"] == PATIENTS)
    rows = planted[same_size & (planted["marker"] == marker)]
    columns = ["c_minority", "c_majority", "oe_minority", "q_minority", "q_first_fifth"]
    return rows.groupby(["method", "design"])[columns].mean()


def gains_by_follow_up(
    censoring: pd.DataFrame, alpha: float, method: str = "DRO-COX"
) -> pd.DataFrame:
    """What the minority's c-index gains over Cox, by the share of deaths that are seen.

    Parameters
    ----------
    censoring : DataFrame
        Rows of the study of that name.
    alpha : float
    method : str

    Returns
    -------
    DataFrame
        Means over draws, judged on patients who are followed until death: a row per share, most
        deaths first; a column per design.
    """
    of_method = (censoring["method"] == method) & (censoring["alpha"] == alpha)
    keys = ["seen", "design"]
    c = censoring[of_method].groupby(keys)["c_minority_followed"].mean()
    cox = censoring[censoring["method"] == "Cox"].groupby(keys)["c_minority_followed"].mean()
    gains = (c - cox).unstack("design")
    return gains[list(groups.DESIGNS)].sort_index(ascending=False)


def draw_follow_up(censoring: pd.DataFrame) -> Figure:
    """Gain of the planted minority by the share of deaths that are seen, for two alphas.

    Parameters
    ----------
    censoring : DataFrame
        Rows of the study of that name.

    Returns
    -------
    Figure
    """
    shared = {"sharey": True, "layout": "constrained"}
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), **shared)
    marks = dict(zip(groups.DESIGNS, "ovDs^", strict=True))
    for panel, alpha in zip(axes, (SHARE, GENTLE), strict=True):
        gains = gains_by_follow_up(censoring, alpha)
        for design, mark in marks.items():
            width = 2.2 if design == "other-early" else 1.2
            panel.plot(100 * gains.index, gains[design], f"{mark}-", lw=width, ms=4, label=design)
        panel.axhline(0, color="0.5", lw=1)
        panel.set(title=f"α = {alpha:g}", xlabel="deaths that are seen (%)")
    axes[0].set_ylabel("gain in c-index over Cox")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure


def tell_follow_up(censoring: pd.DataFrame) -> None:
    """Section *How long were they followed?*: the headline by the share of deaths that are seen.

    Parameters
    ----------
    censoring : DataFrame
        Rows of the study of that name.
    """
    gains = gains_by_follow_up(censoring, SHARE)
    early = gains["other-early"]
    say("follow-all", f"{early[1.0]:+.3f}")
    say("follow-fifth", f"{early[SHARE]:+.3f}")
    say("follow-least", f"{early[0.15]:+.3f}")
    guard((early.diff().dropna() < 0).all(), "the fewer deaths are seen, the smaller the gain")
    guard(early[1.0] > 0.05, "with all deaths seen those who die early gain")
    guard(early[[0.2, 0.15]].max() < 0.01, "with a fifth of the deaths next to nothing is left")
    late = gains["other-late"]
    say("follow-late", f"{late[1.0]:+.3f}")
    guard(late[1.0] < -0.04, "those who die late pay, if all deaths are seen")
    guard(abs(late[0.15]) < 0.01, "with few deaths they do not")
    gentle = gains_by_follow_up(censoring, GENTLE)
    say("follow-gentle", f"{gentle['other-early'][1.0]:+.3f}")
    say("follow-gentle-late", f"{gentle['other-late'][1.0]:+.3f}")
    most = gentle.loc[1.0]
    guard(most["other-early"] < early[1.0] / 2, "at alpha = 0.5 less than half of it is left")
    guard(most["other-late"] < -0.04, "and those who die late pay as much")
    rows = censoring[(censoring["method"] == "DRO-COX") & (censoring["alpha"] == SHARE)]
    majority = rows.groupby(["seen", "design"])["c_majority_followed"].mean()
    of_cox = censoring[censoring["method"] == "Cox"]
    cox = of_cox.groupby(["seen", "design"])["c_majority_followed"].mean()
    cost = (cox - majority)[1.0]["other-early"]
    say("follow-cost", f"{cost:.3f}")
    guard(cost > 0.03, "the majority pays, if all deaths are seen")


def tell_censoring() -> None:
    """Shares of deaths that are seen: in the study of planted minorities, on FLC and SEER."""
    seen = [100 * groups.share_of_events(name, SHARE, groups.CENSORING) for name in groups.DESIGNS]
    say("hidden-seen", f"{min(seen):.0f} to {max(seen):.0f}")
    for name, alpha in (("flc", GENTLE), ("seer", SHARE)):
        share = drocox.load_dataset(name).event.mean()
        guard(1 / alpha < 1 / share, "few deaths: everybody has weight at this alpha")
        say(f"hidden-{name}-p", f"{100 * share:.0f}")


def tell_designs(planted: pd.DataFrame) -> None:
    """Section *A disease of our own making*: what DRO-COX changes for the minority.

    Parameters
    ----------
    planted : DataFrame
        Rows of planted minorities.
    """
    mean = means_by_design(planted)
    cox = mean.loc["Cox", "c_minority"]
    dro = mean.loc["DRO-COX", "c_minority"]
    alone = mean.loc["minority alone", "c_minority"]
    for design in groups.DESIGNS:
        say(f"hidden-cox-{design}", f"{cox[design]:.3f}")
        say(f"hidden-dro-{design}", f"{dro[design]:.3f}")
        say(f"hidden-alone-{design}", f"{alone[design]:.3f}")
    gain = dro - cox
    room = alone - cox
    say("hidden-share", f"{100 * gain['other-early'] / room['other-early']:.0f}")
    others = gain.drop("other-early").abs().max()
    guard(others < 0.03 < gain["other-early"], "DRO-COX changes one of them")
    guard(gain["other-late"] < 0, "if it dies late, it is a little worse off")
    guard(
        room.drop("early").min() > 0.15 and abs(room["early"]) < 0.02,
        "four of the five minorities are badly served by Cox, and could be served",
    )
    split = (mean.loc["DRO-COX (SPLIT)", "c_minority"] - dro).abs()
    guard(split.max() < 0.005, "splitting gives the same models")
    say("hidden-split", f"{split.max():.4f}")
    cost = mean.loc["Cox", "c_majority"] - mean.loc["DRO-COX", "c_majority"]
    say("hidden-cost", f"{cost['other-early']:.3f}")


def tell_sizes(gains: pd.DataFrame) -> None:
    """The sentence that it is not a matter of size.

    Parameters
    ----------
    gains : DataFrame
        What the minority gains over Cox, by share and number of patients; a column per design.
    """
    guard((gains["other-early"] > 0.01).all(), "those who die early gain at every size")
    others = gains.drop(columns="other-early")
    guard(others.abs().max().max() < 0.045, "in other designs next to nothing happens")
    guard((gains.idxmax(axis=1) == "other-early").all(), "other-early gains most at every size")
    guard((gains["other-late"] < 0).all(), "those who die late lose at every size")
    large = gains.loc[(0.2, 50000)]
    largest = large.drop("other-early").max()
    guard(largest < 0.01, "with 50,000 patients no other design gains more")
    say("hidden-large", f"{largest:.3f}")
    say("hidden-large-late", f"{-large['other-late']:.3f}")


def tell_weights(planted: pd.DataFrame, correlations: pd.DataFrame) -> None:
    """Section *He picks the early deaths*: where the adversary's weight goes.

    Parameters
    ----------
    planted : DataFrame
        Rows of planted minorities.
    correlations : DataFrame
        The chapter's rank correlations of losses, a column per model.
    """
    with_time = correlations.loc["loss and log |R|", "DRO-COX"]
    guard(with_time > 0.9, "under DRO-COX a loss is the time of death, almost to the letter")
    with_minority = correlations.loc["loss and in the minority"].abs().max()
    guard(with_minority < 0.25, "being in the minority hardly matters for the loss")
    say("hidden-rank", f"{with_time:.2f}")
    weights = means_by_design(planted).loc["DRO-COX"]
    minority = weights["q_minority"]
    for design in groups.DESIGNS:
        say(f"hidden-q-{design}", f"{100 * minority[design]:.0f}")
    first_fifth = weights["q_first_fifth"]
    guard(first_fifth.min() > 0.5, "the first fifth of deaths carries most of the weight")
    say("hidden-fifth", f"{100 * first_fifth.min():.0f}")
    say("hidden-fifth-max", f"{100 * first_fifth.max():.0f}")
    guard(minority[["other-early", "early"]].min() > 0.35, "early death attracts the weight")
    guard(minority["other-late"] < 0.15, "late death repels it")
    middle = minority[["opposite", "other"]]
    guard(middle.between(0.2, 0.32).all(), "being misranked adds a little")


def draw_answers(planted: pd.DataFrame) -> Figure:
    """C-index within the minority, by what a model was told, for a weak and a clear marker.

    Parameters
    ----------
    planted : DataFrame
        Rows of planted minorities.

    Returns
    -------
    Figure
    """
    marks = {
        "Cox": ("o", "C0"),
        "DRO-COX": ("s", "C1"),
        "regret, known": ("^", "C2"),
        "own, known": ("D", "C2"),
        "regret, found": ("^", "C3"),
        "own, found": ("D", "C3"),
    }
    shared = {"sharey": True, "sharex": True, "layout": "constrained"}
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), **shared)
    titles = ("weak marker", "clear marker")
    heights = -np.arange(len(groups.DESIGNS))
    for panel, marker, title in zip(axes, (1, 3), titles, strict=True):
        c = means_by_design(planted, marker)["c_minority"]
        for name, (shape, colour) in marks.items():
            values = c.loc[name].loc[list(groups.DESIGNS)]
            fill = "none" if "found" in name else colour
            panel.plot(values, heights, shape, color=colour, mfc=fill, ms=7, label=name)
        panel.set(xlabel="c-index within the minority", title=title)
        panel.axvline(0.5, color="0.5", ls=":", lw=1)
    axes[0].set_yticks(heights, list(groups.DESIGNS))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def tell_answers(planted: pd.DataFrame) -> None:
    """Section *An adversary who must describe*: mean loss, regret, own coefficients.

    Parameters
    ----------
    planted : DataFrame
        Rows of planted minorities.
    """
    weak = means_by_design(planted, 1.0)
    _tell_known(weak)
    _tell_found(planted, weak)


def _tell_known(weak: pd.DataFrame) -> None:
    minority = weak["c_minority"]
    majority = weak["c_majority"]
    harm = minority["loss, known"] - minority["Cox"]
    harm_to_others = majority["loss, known"] - majority["Cox"]
    ruined = max(harm["early"], harm_to_others["early"]) < -0.05
    guard(ruined, "in the design early, mean loss with known groups ruins both")
    say("hidden-loss-early", f"{minority['loss, known']['early']:.3f}")

    regret = minority["regret, known"]
    apart = (regret - majority["regret, known"])[HARD].abs().max()
    guard(apart < 0.06, "by regret the two kinds are ranked about equally well")
    guard((regret - minority["Cox"])[HARD].min() > 0.08, "regret does what DRO promised")
    guard(abs(regret["opposite"] - 0.5) < 0.1, "for opposite effects the compromise is no model")
    told = (minority["own, known"] - minority["minority alone"]).abs().max()
    guard(told < 0.02, "own coefficients with known groups reach the yardstick")
    paid = (majority["own, known"] - majority["Cox"]).min()
    guard(paid > -0.01, "own coefficients cost the majority nothing")

    early = weak["oe_minority"].xs("other-early", level="design")
    for name, short in (("Cox", "cox"), ("regret, known", "regret"), ("own, known", "own")):
        say(f"hidden-oe-{short}", f"{early[name]:.1f}")
    guard(
        early["regret, known"] > early["Cox"] > 1.5 > early["own, known"],
        "regret is about ranks: its observed over expected deaths are worse than Cox's",
    )


def _tell_found(planted: pd.DataFrame, weak: pd.DataFrame) -> None:
    minority = weak["c_minority"]
    lift = (minority["own, found"] - minority["Cox"]).max()
    guard(lift < 0.08, "by a weak marker nobody can be helped")
    say("hidden-found-weak", f"{lift:.3f}")
    clear = means_by_design(planted, 3.0)["c_minority"]
    way = (clear["own, found"] - clear["Cox"]) / (clear["own, known"] - clear["Cox"])
    for design in HARD:
        say(f"hidden-reach-{design}", f"{100 * way[design]:.0f}")
    hardest = way["other-late"] < way[["opposite", "other"]].min() - 0.2
    guard(hardest, "few deaths, few misranked pairs for the tree to see")
    jobs = planted[(planted["share"] == SHARE) & (planted["n"] == PATIENTS)].drop_duplicates("job")
    purity = jobs.groupby(["marker", "design"])["purity"].mean()
    say("hidden-pure-weak", f"{100 * purity[1.0][HARD].max():.0f}")
    say("hidden-pure-clear", f"{100 * purity[3.0][['opposite', 'other']].min():.0f}")
