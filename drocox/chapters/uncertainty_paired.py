"""The chapter *How sure are we?*: paired differences over repeats, with intervals.

With :math:`d_r` the metric of a method minus that of a baseline in repeat r, the interval of their
mean is that of :func:`drocox.paper.claims.interval`: plain for the published test set, after Nadeau
and Bengio for the corrected protocol.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.chapters.sentences import WRITTEN
from drocox.chapters.uncertainty import chosen
from drocox.chapters.uncertainty_floor import ci_exhibits
from drocox.paper import claims, signed, tables
from drocox.paper.claims import BASELINES, DRO, MAIN_PAIRS, PAIRS


def differences(
    dataset: str, attribute: str, metric: str, which: str, method: str, model: str
) -> pd.DataFrame:
    """A test metric of a method minus that of each baseline of its kind.

    Parameters
    ----------
    dataset, attribute, metric : str
    which : {"as_published", "corrected"}
    method : str
    model : {"linear", "nonlinear"}

    Returns
    -------
    DataFrame
        Repeats × baselines.
    """
    table = chosen(dataset, attribute, metric, which)
    return table[BASELINES[model]].rsub(table[method], axis=0)


def interval(d: pd.DataFrame, which: str) -> pd.DataFrame:
    """Mean and half-width of the 95 % interval of each column of differences.

    Parameters
    ----------
    d : DataFrame
        Repeats × comparisons.
    which : {"as_published", "corrected"}

    Returns
    -------
    DataFrame
        Columns as in :func:`drocox.paper.claims.interval`.
    """
    return pd.DataFrame(claims.interval(d, which)._asdict(), d.columns)


def draw_forest() -> Figure:
    """Signed gap of DRO-COX minus that of each baseline, with intervals, on three data sets.

    Returns
    -------
    Figure
    """
    styles = {
        "as_published": ("o", "stated, published splits", -0.16),
        "corrected": ("s", "corrected", 0.16),
    }
    figure, axes = plt.subplots(2, 3, figsize=(7.4, 5.6), sharey="row", layout="constrained")
    for row, model in enumerate(BASELINES):
        for ax, (dataset, attribute) in zip(axes[row], MAIN_PAIRS, strict=True):
            for k, (which, (mark, label, shift)) in enumerate(styles.items()):
                method = DRO[model][0]
                gap = f"ci_signed_{attribute}"
                d = differences(dataset, attribute, gap, which, method, model)
                lead = interval(d, which)
                heights = np.arange(6) + shift
                style = {"fmt": mark, "color": f"C{k}", "ms": 5, "label": label}
                ax.errorbar(lead["mean"], heights, xerr=lead["half"], **style)
            ax.axvline(0, color="0.4", lw=1)
            names = [_short_name(baseline) for baseline in BASELINES[model]]
            ax.set(yticks=range(6), yticklabels=names, ylim=(5.6, -0.6))
            if row == 0:
                ax.set_title(f"{WRITTEN[dataset]} ({attribute})")
            else:
                ax.set_xlabel("difference of Δ (points)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=2)
    return figure


def _short_name(baseline: str) -> str:
    name = baseline.replace("_cap", "_∩")
    return name.replace("DeepSurv_", "Deep ").replace("Cox_", "Cox ")


def printed_leads() -> pd.Series:
    """Printed lead of DRO-COX over the best baseline in CI, for each main table and model.

    Returns
    -------
    Series
    """
    leads = {}
    for (dataset, attribute), model in product(MAIN_PAIRS, BASELINES):
        printed = tables.published_table(ci_exhibits()[dataset, attribute])
        printed = printed[printed["metric"] == "ci_percent"].set_index("method")["mean"]
        best = printed[BASELINES[model]].min()
        leads[f"{dataset} {attribute} {model}"] = best - printed[DRO[model][0]]
    return pd.Series(leads)


def tell_power(table: pd.DataFrame) -> None:
    """Could the intervals have shown a lead of the printed size?

    Parameters
    ----------
    table : DataFrame
        "printed" leads, "half" and "detectable" of the signed differences of six comparisons.
    """
    guard((table["printed"] < table["half"]).all(), "printed leads are below every half-width")
    guard(
        table["detectable"].min() > table["printed"].max(),
        "a true difference of the printed size would mostly be missed",
    )
    say("printed-lead", f"{table['printed'].min():.2f} to {table['printed'].max():.2f}")
    for name in ("half", "detectable"):
        say(f"power-{name}", f"{table[name].min():.1f} to {table[name].max():.1f}")


def against_best(view: str, metric: str, ours: slice) -> pd.Series:
    """Each of 14 comparisons in a word: is DRO better, undecided or worse?

    On c-index and F_A it is compared with the best baseline. On CI it is compared with Cox
    (DeepSurv) by signed gaps: better is "closer to equal", worse "farther from equal".

    Parameters
    ----------
    view : str
    metric : {"ci_percent", "f_a", "c_index"}
    ours : slice
        The DRO variant.

    Returns
    -------
    Series of str
    """
    if metric == "ci_percent":
        words = signed.gaps(view, ours=ours)["alone"]
        known = {signed.CLOSER: "better", signed.FARTHER: "worse"}
        return words.map(lambda word: known.get(word, "undecided"))
    tune_by = "f_a" if metric == "f_a" else "ci_percent"
    lead = claims.leads(view, metric=metric, pairs=PAIRS, ours=ours, tune_by=tune_by)
    better = lead["mean"] > lead["half"]
    worse = lead["mean"] < -lead["half"]
    return pd.Series(np.select([better, worse], ["better", "worse"], "undecided"), lead.index)


def tell_decided(words: pd.DataFrame, decided: pd.DataFrame, views: list[str]) -> None:
    """Section *Paired differences*: comparisons of 14 that are decided.

    Parameters
    ----------
    words : DataFrame
        "better", "undecided" or "worse", comparisons × (view, metric, method).
    decided : DataFrame
        Their counts.
    views : list of str
        Stated and one setting, as published and corrected.
    """
    for view, short in zip(views, ("stated", "one", "corrected", "corrected-one"), strict=True):
        for metric in ("ci_percent", "f_a", "c_index"):
            for word, count in decided.loc[view, metric, "DRO-COX"].items():
                say(f"{short}-{metric}-{word}", count)
    ci = words["corrected", "ci_percent", "DRO-COX"]
    one_decided = (ci != "undecided").sum() == 1 and ci["support age linear"] == "better"
    guard(one_decided, "on CI, one of 14 comparisons is decided: linear models on SUPPORT (age)")
    before = words["stated rule", "ci_percent", "DRO-COX"]
    say("decided-before", int((before != "undecided").sum()))
    guard((ci[before != "undecided"] == "undecided").all(), "those are all undecided now")
    guard(not (before == "worse").any(), "decided on the published splits, all for DRO-COX")

    flc = ci.index.str.startswith("flc")
    support = ci.index.str.startswith("support")
    seer = ci.index.str.startswith("seer")
    linear = ci.index.str.endswith(" linear")
    f_a = words["corrected", "f_a", "DRO-COX"]
    guard((f_a[flc] == "better").all(), "on F_A DRO-COX is better on FLC")
    guard((f_a[seer & linear] == "better").all(), "on F_A, linear, it is better on SEER")
    guard((f_a[seer & ~linear] == "undecided").all(), "on F_A, nonlinear, SEER is undecided")
    guard((f_a[support] == "worse").all(), "on F_A it is worse on SUPPORT")
    c = words["corrected", "c_index", "DRO-COX"]
    guard((c[support] == "worse").all(), "on the c-index it is decidedly below on SUPPORT")
    guard((c[~support] == "undecided").all(), "on the c-index it is undecided elsewhere")


def tell_all_pairs() -> None:
    """The sentences on all seven pairs: intervals that exclude 0, F_A, c-index, one p-value."""
    excluded = {}
    for (dataset, attribute), model in product(PAIRS, BASELINES):
        where = (dataset, attribute)
        method = DRO[model][0]
        gap = differences(*where, f"ci_signed_{attribute}", "corrected", method, model)
        ci = interval(gap, "corrected")
        excluded[dataset, attribute, model] = int((ci["mean"].abs() > ci["half"]).sum())
        f_a = differences(*where, "f_a", "corrected", method, model)
        plain = interval(f_a, "corrected").iloc[0]  # Cox or DeepSurv
        better = plain["mean"] + plain["half"] < 0
        guard(better, "against plain Cox and DeepSurv its F_A is better in all 14")
        if dataset == "support":
            penalised = f_a.mean().idxmax().endswith("_I(Keya)")
            guard(penalised, "the baseline that beats it penalises individual unfairness")
        c = differences(*where, "c_index", "corrected", method, model)
        guard(c.mean().min() < 0, "on the c-index it is below the best baseline everywhere")
    where = ("support", "age", "linear")
    elsewhere = [count for key, count in excluded.items() if key != where]
    guard(excluded[where] == 6, "There all six intervals exclude 0")
    guard(sum(elsewhere) <= 6, "elsewhere about as many of 78 as chance gives")
    say("excluded-elsewhere", sum(elsewhere))

    row = signed.gaps("corrected").loc["support age linear"]
    guard(row["difference_p"] < 0.05 / 14, "it passes Bonferroni's 0.05/14")
    say("p-value", f"{row['difference_p'] * 1e5:.1f}")  # times 10^-5
    say("support-win", f"{abs(row['difference']):.1f}")
