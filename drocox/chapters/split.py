r"""What the chapter on sample splitting draws: who enters whose loss."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure


def draw_jacobians(by_cox: np.ndarray, by_split: np.ndarray) -> Figure:
    """Whose score enters whose loss, for patients ordered by half and then by time.

    Parameters
    ----------
    by_cox, by_split : arrays of shape (n, n)
        Not 0 where the score of patient j (column) enters the loss of patient i (row); the first
        half of the patients is D1.

    Returns
    -------
    Figure
    """
    n = len(by_cox)
    middle = n / 2 - 0.5
    halves = [n / 4 - 0.5, 3 * n / 4 - 0.5]
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.5), layout="constrained", sharey=True)
    matrices = {"Cox loss": by_cox, "split loss": by_split}
    for panel, (title, matrix) in zip(axes, matrices.items(), strict=True):
        i, j = np.nonzero(matrix)
        panel.scatter(j, i, marker="s", s=26, color="C0", linewidths=0)
        panel.axvline(middle, color="C1", linewidth=1)
        panel.axhline(middle, color="C1", linewidth=1)
        panel.set(
            title=title,
            xticks=halves,
            xticklabels=["j in $D_1$", "j in $D_2$"],
            aspect="equal",
            xlim=(-0.7, n - 0.3),
            ylim=(n - 0.3, -0.7),
        )
        panel.grid(False)
    axes[0].set(yticks=halves, yticklabels=["i in $D_1$", "i in $D_2$"])
    return figure
