"""The chapter *Rivals on equal terms*: values of its sentences, and their guards.

The rows come from :mod:`drocox.beyond.rivals`: one for each data set and rival, with differences to
Cox in points (``c_diff``, ``ci_diff``, ``worst_diff``) and their jackknife errors (``..._se``).
"""

import numpy as np
import pandas as pd
from scipy import stats

from drocox.beyond.free import free_baseline
from drocox.bookstyle import guard, say
from drocox.paper.comparisons import MAIN_PAIRS
from drocox.paper.prepare import prepare

MAIN_ATTRIBUTE = dict(MAIN_PAIRS)  # by data set
TRIED = [
    "shrunken Cox",
    "ridge Cox",
    "early-stopped Cox",
    "group weights",
    "group DRO",
    "group DRO by regret",
    "CVaR",
    "DRO-COX, sharp",
    "DRO-COX",
    "DRO-COX (SPLIT)",
    "DRO-COX, Adam",
    "DRO-COX (SPLIT), Adam",
    "free baseline",
]
STRICT = stats.norm.ppf(1 - 0.025 / len(TRIED))  # 95 % for all rivals of a data set at once
ROUNDING = 1e-9  # a shrunken Cox has the same ranks: its differences are rounding


def beyond_noise(runs: pd.DataFrame, name: str) -> tuple[set, set]:
    """Rivals with a difference to Cox that holds up when all are tested at once.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set and method.
    name : {"c", "ci", "worst"}

    Returns
    -------
    higher, lower : set of (dataset, method)
    """
    others = runs.drop("Cox", level="method")
    diff = others[f"{name}_diff"]
    bound = np.maximum(STRICT * others[f"{name}_diff_se"], ROUNDING)
    higher = set(others.index[diff > bound])
    lower = set(others.index[diff < -bound])
    return higher, lower


def in_order(values: pd.Series, form: str) -> str:
    """Values of FLC, SUPPORT and SEER as the chapter lists them.

    Parameters
    ----------
    values : Series
    form : str
        A format such as ``{:.2f}``.

    Returns
    -------
    str
    """
    return ", ".join(form.format(values[dataset]) for dataset in MAIN_ATTRIBUTE)


def tell_league(runs: pd.DataFrame) -> None:
    """Section *What the tables say*.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set and method.
    """
    say("league-rivals", len(TRIED))
    say("league-compared", len(TRIED) * len(MAIN_ATTRIBUTE))
    _tell_imparity(runs)
    _tell_ranks(runs)
    _tell_shrinkage(runs)
    _tell_adam(runs)


def _tell_imparity(runs: pd.DataFrame) -> None:
    cox = runs.xs("Cox", level="method")
    half = 1.96 * cox["ci_se"]
    guard((cox["ci"].abs() < half).all(), "there is hardly anything to repair")
    say("ci-cox", ", ".join(f"{cox['ci'][d]:+.1f} ± {half[d]:.1f}" for d in MAIN_ATTRIBUTE))
    moved = set.union(*beyond_noise(runs, "ci"))
    for dataset, method in moved:
        closer = abs(runs.loc[(dataset, method), "ci"]) < abs(cox.loc[dataset, "ci"])
        guard(not closer, "nobody repairs it, those who were told the groups included")
    say("ci-moved", len(moved))
    named = [f"{method} on {dataset.upper()}" for dataset, method in sorted(moved)]
    say("ci-away", ", ".join(named) or "none")


def _tell_ranks(runs: pd.DataFrame) -> None:
    higher, lower = beyond_noise(runs, "c")
    guard(not higher, "nobody ranks better")
    say("c-lose", len(lower))
    robust = [name for name in TRIED if "DRO-COX" in name]
    for name in [*robust, "CVaR"]:
        guard(("support", name) in lower, "all forms of DRO-COX and CVaR lose ranks on SUPPORT")
    dro = runs.xs("DRO-COX", level="method")
    say("c-support", f"{-dro['c_diff']['support']:.1f}")
    say("worst-support", f"{-dro['worst_diff']['support']:.1f}")
    helped, harmed = beyond_noise(runs, "worst")
    guard(("support", "DRO-COX") in harmed, "DRO-COX loses in the worst group found on SUPPORT")
    guard(not helped, "the worst group found, which nobody helps")
    regret = runs.xs("group DRO by regret", level="method")
    guard(regret["c_diff"].min() > -0.6, "measured by regret, group DRO does little harm")
    sharp = runs.xs("DRO-COX, sharp", level="method")["c_diff"]
    guard(min(sharp["flc"], sharp["seer"]) > 0, "with the sharp constant nothing is lost")
    free = runs.xs("free baseline", level="method")["c_diff"]
    guard(free[["flc", "seer"]].abs().max() < 0.1, "the free baseline loses nothing there either")
    say("c-free", f"{-free['support']:.1f}")


def _tell_shrinkage(runs: pd.DataFrame) -> None:
    cox = runs.xs("Cox", level="method")
    dro = runs.xs("DRO-COX", level="method")
    shrunken = runs.xs("shrunken Cox", level="method")
    # not quite 0: scores that come within 1e-8 count as tied
    guard((shrunken["c_diff"].abs() < 1e-5).all(), "shrunken scores change no rank")
    guard((shrunken["f_a"] < 1.3 * dro["f_a"]).all(), "shrunken Cox has DRO-COX's F_A")
    guard((shrunken["f_a"] < 0.5 * cox["f_a"]).all(), "shrunken Cox has far less F_A than Cox")
    say("fa-cox", in_order(cox["f_a"], "{:.2f}"))
    say("fa-dro", in_order(dro["f_a"], "{:.2f}"))
    say("fa-shrunken", in_order(shrunken["f_a"], "{:.2f}"))
    guard(((cox["slope"] - 1).abs() < 0.1).all(), "Cox's slope is near 1")
    for rows, least in ((dro, 1.5), (runs.xs("CVaR", level="method"), 1.2)):
        flat = (rows["slope"] > least).all() and (rows["ibs"] > cox["ibs"]).all()
        guard(flat, "DRO-COX and CVaR lose calibration everywhere")
    say("slope-dro", f"{dro['slope'].min():.1f} to {dro['slope'].max():.1f}")


def _tell_adam(runs: pd.DataFrame) -> None:
    c = runs["c"]
    apart = []
    for dataset in MAIN_ATTRIBUTE:
        for method in ("DRO-COX", "DRO-COX (SPLIT)"):
            apart.append(abs(c[dataset, method] - c[dataset, f"{method}, Adam"]))
    guard(max(apart) < 0.15, "Adam is not the culprit")
    say("adam-apart", f"{max(apart):.2f}")


def guard_null_model() -> None:
    """The sentence that at α = 0.2 L-BFGS stops next to the null model on SUPPORT."""
    train = prepare("corrected", "support", 1)
    time = train.train.time
    event = train.train.event
    coef, risk, bound = free_baseline(train.X[0], time, event, 0.2, n_iter=1000)
    guard(risk - bound > 1e-3, "at 0.2 L-BFGS stops without a certificate")
    guard(np.linalg.norm(coef) < 0.01, "it stops next to the null model")
    equal_losses = np.log(len(np.unique(time[event])))
    guard(abs(risk - equal_losses) < 0.02, "there all deaths have the log of the event times")


def tell_detectable(detectable: pd.DataFrame) -> None:
    """Section *How small a difference could be seen?*

    Parameters
    ----------
    detectable : DataFrame
        Differences that would be found with probability 80 %, by data set and rival.
    """
    ci = detectable["CI"]
    guard(ci.min() > 0.05, "tenths of a point are the smallest that can be seen")
    guard(0.7 < ci["SEER, DRO-COX"] < 1.3, "on SEER this design could not confirm them either")
    for dataset in MAIN_ATTRIBUTE:
        say(f"see-ci-{dataset}", f"{ci[f'{dataset.upper()}, DRO-COX']:.1f}")
