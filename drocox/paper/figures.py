"""Figures from the stored runs."""

from typing import TYPE_CHECKING

from drocox.paper.tables import Folder, alpha_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# fmt: off
LABELS = {
    "c_index": "c-index (higher is better)", "f_i": "$F_I$", "f_g": "$F_G$",
    "f_cap": r"$F_\cap$", "f_a": "$F_A$", "ci_percent": "CI (%)",
}
POINTS = {"fmt": "o", "mfc": "none", "capsize": 3, "label": "paper"}
# fmt: on


def alpha_sensitivity(
    dataset: str, *, protocol: str = "as_published", out: Folder = None
) -> "Figure":
    """F1: accuracy and fairness of linear DRO-COX against alpha, with the published points.

    Lines are means over ten repeats at learning rate 0.01, bands one standard deviation; circles
    with bars are the published means and deviations (CI was not published in the figure).

    Parameters
    ----------
    dataset : {"flc", "support", "seer"}
    protocol : {"as_published", "corrected"}
    out : path, optional
        Folder of the store, by default the book's.

    Returns
    -------
    Figure
    """
    import matplotlib.pyplot as plt  # slow to import, and nothing else here needs it

    table = alpha_table(dataset, protocol=protocol, out=out)
    figure, axes = plt.subplots(2, 3, figsize=(9, 4.8), sharex=True, layout="constrained")
    for ax, (metric, label) in zip(axes.flat, LABELS.items(), strict=True):
        part = table[table["metric"] == metric]
        ax.plot(part["alpha"], part["mean"], label="this book")
        low = part["mean"] - part["std"]
        if metric.startswith("f_"):  # they span orders of magnitude
            ax.set_yscale("log")
            low = low.clip(lower=part["mean"] / 10)
        ax.fill_between(part["alpha"], low, part["mean"] + part["std"], alpha=0.2)
        printed = part.dropna(subset="paper_mean")
        if len(printed):
            values = (printed[name] for name in ("alpha", "paper_mean", "paper_std"))
            ax.errorbar(*values, **POINTS)
        ax.set_title(label, fontsize="medium")
    for ax in axes[1]:
        ax.set_xlabel(r"$\alpha$")
    axes[0, 0].legend()
    return figure
