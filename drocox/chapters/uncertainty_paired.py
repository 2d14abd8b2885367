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
from scipy import stats

from drocox.bookstyle import guard, say
from drocox.chapters.sentences import WRITTEN
from drocox.chapters.uncertainty import chosen, ci_exhibits
from drocox.paper import claims, tables
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
    """CI of DRO-COX minus CI of each baseline, with intervals, on three data sets.

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
                d = differences(dataset, attribute, "ci_percent", which, method, model)
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
                ax.set_xlabel("CI difference (points)")
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


def tell_power(power: pd.DataFrame) -> None:
    """Could the intervals have shown a lead of the printed size?

    Parameters
    ----------
    power : DataFrame
        "printed", "half" and "detectable" of six comparisons.
    """
    guard((power["printed"] < power["half"]).all(), "printed leads are below every half-width")
    guard(
        power["detectable"].min() > power["printed"].max(),
        "a true lead of the printed size would not be detected",
    )
    say("printed-lead", f"{power['printed'].min():.2f} to {power['printed'].max():.2f}")
    for name in ("half", "detectable"):
        say(f"power-{name}", f"{power[name].min():.1f} to {power[name].max():.1f}")


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
    guard((before == "better").sum() == (before == "worse").sum(), "half for and half against")

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
        ci = interval(differences(*where, "ci_percent", "corrected", method, model), "corrected")
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
    guard(excluded[where] > 0 and not any(elsewhere), "elsewhere none of 78 intervals excludes 0")
    say("excluded", excluded[where])

    d = differences("support", "age", "ci_percent", "corrected", "DRO-COX", "linear")
    d = d[d.mean().idxmax()]
    p = p_value(d)
    guard(0.05 / 14 < p < 0.05, "this one does not pass Bonferroni's 0.05/14")
    say("p-value", f"{p:.3f}")
    say("support-win", f"{-d.mean():.1f}")


def p_value(d: pd.Series) -> float:
    """Two-sided p-value of a mean difference over ten corrected repeats, by Nadeau and Bengio.

    .. math:: t_9 = \\bar d \\,/\\, \\bigl(s \\sqrt{1/10 + n_{test}/n_{learn}}\\bigr)

    Parameters
    ----------
    d : Series
        Differences of ten repeats.

    Returns
    -------
    float
    """
    error = d.std() * np.sqrt(1 / 10 + claims.TESTED_PER_LEARNED["corrected"])
    return 2 * stats.t.sf(abs(d.mean()) / error, 9)
