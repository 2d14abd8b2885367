"""What the chapter on survival data draws and tells: six patients, naive curves, seven groups.

The chapter itself computes Kaplan-Meier curves, their bands and log-rank statistics; here they are
drawn and put into a table.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import stats

from drocox.bookstyle import guard, say
from drocox.cox import cox_losses, risk_sets
from drocox.data import SurvivalData
from drocox.evaluation import scaled_features
from drocox.solver import minimise

YEAR = {"flc": 365.25, "support": 365.25, "seer": 12.0}  # days or months
ATTRIBUTES = ["age", "gender", "race"]
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
CHI2_ONE = 3.84  # one case of twenty lies above, when the hazards are equal
CHI2_SEVEN = 7.24  # of seven such tests, the largest lies above in at most one case of twenty


def draw_six(six: pd.DataFrame) -> Figure:
    """Follow-up of each patient as a line: a full dot for a death, an open circle for censoring.

    Parameters
    ----------
    six : DataFrame
        Columns ``time`` and ``event``, a row per patient.

    Returns
    -------
    Figure
    """
    end = 14  # months
    figure, axes = plt.subplots(figsize=(6.4, 2.6))
    for row, patient in enumerate(six.itertuples()):
        colour = "C0" if patient.event else "C1"
        axes.plot([0, patient.time], [row, row], color=colour, linewidth=2)
        if not patient.event:
            axes.plot([patient.time, end], [row, row], ":>", color=colour, markevery=[1])
        inside = colour if patient.event else "white"
        axes.plot(patient.time, row, "o", color=colour, markerfacecolor=inside)
    axes.set(
        xlabel="months since entry",
        ylabel="patient",
        xlim=(0, end + 0.3),
        yticks=range(len(six)),
        yticklabels=six.index,
    )
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    return figure


def naive_curves(time: np.ndarray, event: np.ndarray, at: np.ndarray) -> tuple:
    r"""Shares with :math:`Y > t` among everyone and among the events only, both wrong for S(t).

    Parameters
    ----------
    time, event : arrays of shape (n,)
    at : array of shape (m,)
        Times t.

    Returns
    -------
    tuple of two arrays of shape (m,)
    """
    everyone = (time > at[:, None]).mean(axis=1)
    events_only = (time[event] > at[:, None]).mean(axis=1)
    return everyone, events_only


def draw_truth(
    time: np.ndarray, event: np.ndarray, at: np.ndarray, truth: np.ndarray, curve: np.ndarray
) -> Figure:
    """The truth of a simulation, its Kaplan-Meier curve, and the two naive curves.

    Parameters
    ----------
    time, event : arrays of shape (n,)
        The simulated patients.
    at : array of shape (m,)
        Times at which the curves are drawn.
    truth, curve : arrays of shape (m,)
        True survival, and the Kaplan-Meier curve.

    Returns
    -------
    Figure
    """
    everyone, events_only = naive_curves(time, event, at)
    near = np.abs(curve - truth)[at < 5].max()
    guard(near < 0.04, "the Kaplan-Meier curve agrees with the truth")
    guard((truth - everyone).max() > 0.3, "the naive curve misses the truth")
    figure, axes = plt.subplots()
    axes.plot(at, truth, color="black", linewidth=1, label="truth")
    axes.step(at, curve, where="post", linewidth=2, label="Kaplan–Meier")
    axes.plot(at, everyone, "--", label="share with $Y > t$, everyone")
    axes.plot(at, events_only, ":", linewidth=2, label="share with $Y > t$, events only")
    axes.set(xlabel="years since entry", ylabel="probability of survival", ylim=(0, 1.02))
    axes.legend()
    return figure


def draw_groups(curves: Mapping, labels: Mapping) -> Figure:
    """Survival curves with bands, a panel for each data set and sensitive attribute.

    Parameters
    ----------
    curves : mapping of (name, attribute, code) to (times, survival, band)
        Times in the units of the file; the band is a lower and an upper curve.
    labels : mapping of name to mapping of attribute to pair of str
        What groups 0 and 1 are called.

    Returns
    -------
    Figure
    """
    names = list(YEAR)
    figure, panels = plt.subplots(3, 3, figsize=(6.4, 6.4), sharey=True, layout="constrained")
    for (name, attribute, code), (at, survival, band) in curves.items():
        axes = panels[names.index(name), ATTRIBUTES.index(attribute)]
        years = at / YEAR[name]
        colour = f"C{1 - code}"
        axes.fill_between(years, *band, step="post", color=colour, alpha=0.25, linewidth=0)
        style = "-" if code else "--"
        label = labels[name][attribute][code]
        axes.step(years, survival, style, where="post", color=colour, label=label)
        axes.set(ylim=(0, 1.02))
        axes.set_title(f"{name.upper()}, {attribute}", fontsize=11)
        place = "upper right" if name == "support" else "lower left"
        axes.legend(fontsize=9.5, handlelength=1.4, loc=place)
    for axes in panels.flat:
        axes.set_visible(bool(axes.lines))
    panels[1, 0].set_ylabel("probability of survival")
    figure.supxlabel("years since entry", fontsize=11)
    return figure


def five_year_table(survival: Mapping, chi2: Mapping) -> pd.DataFrame:
    """Survival of both groups at five years, their difference, and the log-rank statistic.

    Parameters
    ----------
    survival : mapping of (name, attribute, code) to float
        At five years.
    chi2 : mapping of (name, attribute) to float

    Returns
    -------
    DataFrame
        Indexed by data set and attribute, not rounded.
    """
    table = pd.Series(survival).unstack().loc[list(YEAR), [1, 0]]
    table["difference"] = table[1] - table[0]
    table["χ²"] = pd.Series(chi2)
    return table.rename(columns={1: "over 65, male, white", 0: "others"})


def show_five_years(table: pd.DataFrame) -> pd.DataFrame:
    """The table of five years, rounded, with one name for each row.

    Parameters
    ----------
    table : DataFrame
        From :func:`five_year_table`.

    Returns
    -------
    DataFrame
    """
    shown = table.round(3)
    shown["χ²"] = table["χ²"].round(1)
    shown.index = [", ".join(pair) for pair in table.index]
    return shown


def tell_five_years(table: pd.DataFrame) -> None:
    """Two of the differences for the text, and what it says of all.

    Parameters
    ----------
    table : DataFrame
        From :func:`five_year_table`.
    """
    gap = table["difference"].abs()
    say("km-flc-age", f"{gap['flc', 'age']:.2f}")
    say("km-support-gender", f"{gap['support', 'gender']:.2f}")
    chi2 = table["χ²"]
    for name, attribute in (("support", "gender"), ("flc", "gender"), ("support", "race")):
        say(f"km-chi-{name}-{attribute}", f"{chi2[name, attribute]:.1f}")
    by_age = {(name, "age") for name in YEAR}
    beyond_seven = set(chi2.index[chi2 > CHI2_SEVEN])
    guard(beyond_seven == by_age, "age divides all three, and of the others none passes the bar")
    alone = set(chi2.index[chi2 > CHI2_ONE]) - by_age
    guard(alone == {("support", "gender")}, "looked at alone, gender in SUPPORT would pass")
    just_missed = chi2["flc", "gender"], chi2["support", "race"]
    guard(min(just_missed) > CHI2_ONE - 0.3, "two others would just miss")
    guard(gap["support", "gender"] < 0.04, "the difference between genders in SUPPORT is little")


def leaving_test(data: SurvivalData) -> dict[str, float]:
    """Likelihood-ratio test of a Cox model in which leaving is the event and death the censoring.

    Parameters
    ----------
    data : SurvivalData

    Returns
    -------
    dict
        ``χ²``, ``df`` (independent features) and ``p``.
    """
    X = scaled_features(data)[0]
    risk = risk_sets(data.time, ~data.event)
    without_features = torch.zeros(len(X), dtype=torch.float64)
    loss_without = cox_losses(without_features, risk).sum().item()
    loss_with = len(X) * minimise(X, risk, 1).risk
    statistic = 2 * (loss_without - loss_with)
    df = int(np.linalg.matrix_rank(X))
    return {"χ²": statistic, "df": df, "p": stats.chi2.sf(statistic, df)}


def tell_leaving(tests: pd.DataFrame) -> None:
    """Whether leaving depends on the features, by data set.

    Parameters
    ----------
    tests : DataFrame
        A row for each data set, with the columns of :func:`leaving_test` and ``log-rank, age``.
    """
    p = tests["p"]
    power = int(np.ceil(np.log10(p["flc"])))
    say("leave-flc", "10" + str(power).translate(SUPERSCRIPTS))
    guard(p["flc"] < 1e-20, "on FLC leaving depends on the features beyond any doubt")
    guard(tests.loc["flc", "log-rank, age"] > CHI2_SEVEN, "on FLC it depends on age")
    guard(p["support"] < 0.01, "on SUPPORT clearly")
    guard(0.05 / len(p) < p["seer"] < 0.1, "on SEER perhaps")
