"""From 76 data sets to those that are used: the table and the diagram of *On many data sets*.

The rules and the counts come from :mod:`drocox.beyond.survset`; here they are laid out.
"""

import textwrap

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from drocox.beyond import survset

STAYING = ("included", "beside")
NAMED = 8  # most data sets that a box names


def tell_data_sets() -> pd.DataFrame:
    """The data sets that stay, with source, sizes and attributes.

    Returns
    -------
    DataFrame
        Index: name, those included first, then FLC and SUPPORT. Columns: who is followed, source,
        patients, events, features, attributes (those that are judged), shown.
    """
    flow = survset.flow()
    rows = {}
    for step in STAYING:
        stays = flow[flow["step"] == step].sort_index(key=lambda names: names.str.lower())
        for name, row in stays.iterrows():
            judged = [attribute for attribute in survset.ATTRIBUTES if row[attribute]]
            rows[name] = {
                "who is followed": row["what"],
                "source": row["source"],
                "patients": row["patients"],
                "events": row["events"],
                "features": row["features"],
                "attributes": ", ".join(judged),
                "shown": step,
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("data set")


def tell_exclusions() -> pd.DataFrame:
    """The data sets that leave, with the reason of each.

    Returns
    -------
    DataFrame
        Index: name, in the order of the rules. Columns: who is followed, patients, events, reason.
    """
    flow = survset.flow()
    parts = [flow[flow["step"] == step] for step in survset.STEPS if step not in STAYING]
    left = pd.concat(parts).rename(columns={"what": "who is followed"})
    table = left[["who is followed", "patients", "events", "reason"]]
    return table.rename_axis("data set")


def _words(names: list[str]) -> str:
    """Names of a box, or how many there are besides the first."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more"


def draw_flow() -> Figure:
    """Draw the flow from 76 data sets to those included, with a box for each rule.

    Returns
    -------
    Figure
    """
    counts = survset.flow_counts()
    leaving = counts.drop(index="included")
    height = 0.8 * (len(leaving) + 1)
    fig, ax = plt.subplots(figsize=(8, height))
    box = {"boxstyle": "round,pad=0.4", "facecolor": "none", "edgecolor": "0.5"}
    arrow = {"arrowstyle": "-|>", "color": "0.5", "shrinkA": 0, "shrinkB": 0}
    final = -len(leaving)
    ax.annotate("", (0.1, final + 0.35), (0.1, -0.35), arrowprops=arrow)
    ax.text(0.1, 0, f"{counts['leaving'].sum()} data sets", ha="center", va="center", bbox=box)
    for place, row in enumerate(leaving.itertuples()):
        y = -place - 0.5
        ax.annotate("", (0.25, y), (0.1, y), arrowprops=arrow)
        names = textwrap.fill(_words(row.names), 50)
        text = f"{row.leaving}: {row.reason}\n{names}"
        ax.text(0.27, y, text, ha="left", va="center", fontsize=8)
    last = f"{counts.loc['included', 'leaving']} included"
    ax.text(0.1, final, last, ha="center", va="center", bbox=box, weight="bold")
    ax.set(xlim=(0, 1), ylim=(final - 0.5, 0.5))
    ax.axis("off")
    return fig
