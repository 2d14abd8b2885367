"""Signed gaps of two models on a page: the forest plot, and the table of what could be seen.

``table`` is what :func:`drocox.paper.signed.gaps` gives.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.chapters.sentences import WRITTEN, with_minus
from drocox.paper import signed

UNEQUAL = "Δ: group 1 minus group 0, points"


def comparison(name: str) -> str:
    """The name of a comparison for readers: "flc age linear" is "FLC age, linear".

    Parameters
    ----------
    name : str

    Returns
    -------
    str
    """
    dataset, attribute, model = name.split()
    return f"{WRITTEN[dataset]} {attribute}, {model}"


def decided(table: pd.DataFrame, how: str = "alone") -> list[str]:
    """Comparisons whose difference excludes 0.

    Parameters
    ----------
    table : DataFrame
    how : {"alone", "together"}

    Returns
    -------
    list of str
    """
    return list(table.index[table[how] != signed.UNDECIDED])


def draw_gaps(table: pd.DataFrame) -> Figure:
    """Forest plot: both models' gaps, and their paired difference.

    Parameters
    ----------
    table : DataFrame

    Returns
    -------
    Figure
    """
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8.4, 0.31 * len(table) + 1.3), sharey=True, layout="constrained"
    )
    rows = -np.arange(len(table), dtype=float)
    models = (("theirs", "Cox, DeepSurv", "s", "C1", 0.14), ("ours", "DRO-COX", "o", "C0", -0.14))
    for name, label, marker, colour, shift in models:
        left.errorbar(
            table[name], rows + shift, xerr=table[f"{name}_half"], fmt=marker, ms=4.5, lw=1.2,
            color=colour, mfc="none" if name == "theirs" else colour, label=label,
        )  # fmt: skip
    is_open = (table["alone"] == signed.UNDECIDED).to_numpy()
    for mask, colour, filled in ((is_open, "0.45", False), (~is_open, "C2", True)):
        some = table[mask]
        shown = {"fmt": "D", "color": colour, "mfc": colour if filled else "none", "ms": 4.5}
        right.errorbar(
            some["difference"], rows[mask], xerr=some["difference_half_together"], fmt="none",
            ecolor=colour, elinewidth=0.8,
        )  # fmt: skip
        right.errorbar(
            some["difference"], rows[mask], xerr=some["difference_half"], elinewidth=2.4, **shown
        )
    for panel in (left, right):
        panel.axvline(0, color="0.3", lw=1)
    left.set(xlabel=UNEQUAL, title="gaps of both models (0: equal)")
    right.set(xlabel="Δ Cox − Δ DRO-COX, points", title="what DRO-COX moves")
    left.set_yticks(rows, [comparison(name) for name in table.index], fontsize="small")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def show_power(table: pd.DataFrame) -> pd.DataFrame:
    """What each comparison says and could have said, as text.

    Parameters
    ----------
    table : DataFrame

    Returns
    -------
    DataFrame of str
        By comparison: difference and sum with intervals, the words, and beside each "undecided"
        the power at effects fixed beforehand.
    """
    power = signed.power(table)
    rows = {}
    for name, row in table.iterrows():
        could = power.loc[name]
        is_open = row["alone"] == signed.UNDECIDED
        rows[comparison(name)] = {
            "difference": with_minus(f"{row['difference']:+.2f} ± {row['difference_half']:.2f}"),
            "sum": with_minus(f"{row['sum']:+.2f} ± {row['sum_half']:.2f}"),
            "alone": row["alone"],
            "over all": row["together"],
            "power: moved 1 point": f"{100 * could['moved_point']:.0f} %",
            "1 point closes": f"{100 * could['closer_point']:.0f} %" if is_open else "",
            "Cox's gap halved": f"{100 * could['closer_half']:.0f} %" if is_open else "",
        }
    return pd.DataFrame.from_dict(rows, orient="index")
