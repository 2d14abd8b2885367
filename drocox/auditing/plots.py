"""Figures of an audit by matplotlib, which the library imports here only, and only on request.

The drawings of the audit's page need no matplotlib: see :mod:`drocox.auditing.pictures`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.auditing.funnel import Funnel
from drocox.auditing.judging import MEASURES

PLAIN_TEXT = {"text.parse_math": False}  # a group may be called $x$


def plot_groups(table: pd.DataFrame) -> Figure:
    """c-index and calibration of every group, with intervals, and everybody's as a dotted line.

    Parameters
    ----------
    table : DataFrame
        Of an audit. Where nothing is known of calibration, its slopes or observed risks are drawn.

    Returns
    -------
    matplotlib Figure
    """
    names = ["c_index", "calibration"]
    if table["calibration"].isna().all():
        names[1] = "slope" if table["slope"].notna().any() else "risk_observed"
    known = table[table[names].notna().any(axis=1)]
    place = -np.arange(len(known))
    size = (6.4, 1.2 + 0.28 * len(known))
    with plt.rc_context(PLAIN_TEXT):
        figure, axes = plt.subplots(1, 2, sharey=True, figsize=size, layout="constrained")
        for ax, name in zip(axes, names, strict=True):
            ax.hlines(place, known[f"{name}_low"], known[f"{name}_high"])
            ax.plot(known[name], place, "o")
            ax.axvline(known[name].iloc[0], color="0.5", linestyle=":")
            ax.set(xlabel=MEASURES[name].title, yticks=place, yticklabels=known["group"])
    return figure


def plot_funnels(funnels: list[Funnel]) -> Figure:
    """The c-index of many groups by their events, and where they would lie by chance.

    Parameters
    ----------
    funnels : list of Funnel

    Returns
    -------
    matplotlib Figure
    """
    size = (6.4, 3.6 * len(funnels))
    with plt.rc_context(PLAIN_TEXT):
        figure, axes = plt.subplots(
            len(funnels), 1, squeeze=False, figsize=size, layout="constrained"
        )
        for ax, one in zip(axes[:, 0], funnels, strict=True):
            _draw_funnel(ax, one)
    return figure


def _draw_funnel(ax, one: Funnel) -> None:
    """One attribute: groups beyond noise are triangles with their names."""
    groups = one.groups
    for beyond, marker in ((False, "o"), (True, "^")):
        rows = groups[groups["beyond_noise"] == beyond]
        ax.plot(rows["events"], rows["c_index"], marker, label="beyond noise" if beyond else "")
    for row in groups[groups["beyond_noise"]].itertuples():
        ax.annotate(row.group, (row.events, row.c_index))
    sizes = np.geomspace(groups["events"].min(), groups["events"].max(), 100)
    for at_once, style in ((False, ":"), (True, "--")):
        for limit in one.limits(sizes, at_once):
            ax.plot(sizes, limit, style, color="0.5")
    ax.axhline(one.centre, color="0.5", linewidth=0.8)
    ax.set(xlabel="events", ylabel="c-index", xscale="log", title=one.attribute)


def plot_calibration(curves: pd.DataFrame) -> Figure:
    """Observed against predicted risk, a panel for each attribute and a curve for each group.

    Parameters
    ----------
    curves : DataFrame
        Of :meth:`drocox.auditing.audit.Audit.calibration_curves`.

    Returns
    -------
    matplotlib Figure
    """
    attributes = list(curves["attribute"].unique())
    size = (3.2 * len(attributes), 3.4)
    with plt.rc_context(PLAIN_TEXT):
        figure, axes = plt.subplots(
            1, len(attributes), squeeze=False, figsize=size, layout="constrained"
        )
        for ax, name in zip(axes[0], attributes, strict=True):
            ax.axline((0, 0), slope=1, color="0.5", linestyle=":")
            of_attribute = curves[curves["attribute"] == name]
            for label, curve in of_attribute.groupby("group", sort=False):
                ax.plot(curve["predicted"], curve["observed"], "o-", label=label)
            ax.set(xlabel="predicted risk", ylabel="observed risk")
            ax.legend()
    return figure
