r"""What the chapter on DRO-COX (SPLIT) draws and tells: the error of the split loss, and halves.

For an event the split loss is the Cox loss plus an offset :math:`\log(n_2 / n)`, an own term, a
term from Jensen's inequality, and scatter from split to split.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.explorables.element import Explorable
from drocox.explorables.sliders import slider


def tell_error(
    n: int, sizes: Sequence, errors: Sequence, predicted: np.ndarray, losses: np.ndarray
) -> None:
    """Offset, systematic rest and scatter with equal halves; offsets with unequal ones.

    Parameters
    ----------
    n : int
        Patients.
    sizes : sequence of m ints
        Of D2; the last is that of equal halves.
    errors : sequence of m arrays
        Split loss - Cox loss - offset, of each death in each split; NaN if it is in D2.
    predicted : array of shape (m, 2)
        Own term and Jensen's.
    losses : array
        Cox losses of the deaths.
    """
    say("half-bias", f"{predicted[-1].sum():.4f}")
    say("half-sd", f"{np.nanstd(errors[-1]):.3f}")
    say("least", f"{losses.min():.0f}")
    say("most", f"{losses.max():.0f}")
    say("offset-half", f"{np.log(sizes[-1] / n):.2f}")
    say("offset-small", f"{np.log(0.1):.2f}")
    say("offset-large", f"{np.log(0.9):.2f}")


def draw_bias(n: int, sizes: Sequence, bias: np.ndarray, predicted: np.ndarray) -> Figure:
    """Mean error of the split loss after the offset: simulated, and by the equation.

    Parameters
    ----------
    n : int
        Patients.
    sizes : sequence of m ints
        Of D2.
    bias : array of shape (m,)
        Simulated.
    predicted : array of shape (m, 2)
        Own term and Jensen's.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots()
    axes.plot(sizes, bias, "o", color="C0", label="simulated")
    axes.plot(sizes, predicted.sum(axis=1), color="C0", label="own term + Jensen")
    axes.plot(sizes, predicted[:, 0], "--", color="C2", label="own term")
    axes.plot(sizes, predicted[:, 1], ":", color="C1", label="Jensen")
    axes.set(
        xscale="log", xlabel=f"size of D₂, out of {n:,} patients", ylabel="mean error after offset"
    )
    axes.legend()
    return figure


def histograms(errors: Sequence, bins: np.ndarray) -> np.ndarray:
    """Percent of the errors in each bin.

    Parameters
    ----------
    errors : sequence of m arrays
        NaN is left out.
    bins : array of shape (k + 1,)
        Edges.

    Returns
    -------
    array of shape (m, k)
    """
    counts = np.array([np.histogram(error, bins)[0] for error in errors])
    return 100 * counts / counts.sum(axis=1, keepdims=True)


def error_slider(n: int, sizes: Sequence, errors: Sequence, bias: np.ndarray) -> Explorable:
    """Distribution of the error after the offset, by the size of D2.

    Parameters
    ----------
    n : int
        Patients.
    sizes : sequence of m ints
        Of D2.
    errors : sequence of m arrays
        Split loss - Cox loss - offset, of each death in each split; NaN if it is in D2.
    bias : array of shape (m,)
        Their means, without noise.

    Returns
    -------
    Explorable
    """
    bins = np.linspace(-0.6, 0.6, 61)
    return slider(
        "n2",
        {"size of D₂": sizes},
        (bins[1:] + bins[:-1]) / 2,
        {"percent of deaths": histograms(errors, bins)},
        start={"size of D₂": 6},
        readouts={
            "offset log(n₂/n)": np.log(np.array(sizes) / n),
            "mean": bias,
            "SD": np.array([np.nanstd(error) for error in errors]),
        },
        formats={
            "size of D₂": "{:d}",
            "offset log(n₂/n)": "{:.2f}",
            "mean": "{:.3f}",
            "SD": "{:.3f}",
        },
        bars=["percent of deaths"],
        xlabel="split loss − Cox loss − offset",
        ylabel="percent of deaths",
        alt="Histogram of the error of the split loss after the offset; "
        "the slider changes the size of D2, and the histogram narrows as D2 "
        "grows.",
    )


def tell_halves(table: pd.DataFrame, paths: Mapping) -> None:
    """What stacked halves do to a model that is trained on one side.

    Parameters
    ----------
    table : DataFrame
        Columns ``sides``, ``test c`` and the shares of men in both halves, ``men D1`` and ``D2``; a
        row for each way to halve and number of sides.
    paths : mapping of (way, sides) to list of float
        Coefficient of sex during training.
    """
    c_index = table.set_index("sides", append=True)["test c"]
    men = table.loc["stacked", ["men D1", "D2"]]
    guard((men["men D1"] == 0).all(), "stacked, D1 is all women")
    guard(men["D2"].between(0.8, 1, inclusive="left").all(), "stacked, D2 has few women")
    guard(
        c_index["stacked", 1] < c_index["random", 1] - 0.1,
        "stacked, with one side, the c-index falls",
    )
    end_stacked = paths["stacked", 1][-1]
    end_random = paths["random", 1][-1]
    guard(abs(end_stacked) > 3 * abs(end_random), "the coefficient of sex runs away")
    say("stacked-women", f"{100 * (1 - men['D2'].iloc[0]):.0f}")
    say("c-random", f"{c_index['random', 2]:.3f}")
    say("c-stacked-1", f"{c_index['stacked', 1]:.3f}")


def tell_latest_first(losses: np.ndarray) -> None:
    """How many deaths of D1 have loss zero when D1 holds the latest times.

    Parameters
    ----------
    losses : array
        Split losses of the deaths in D1.
    """
    zero = (losses == 0).sum()
    guard(zero >= len(losses) - 5, "one side has nothing to learn from")
    say("late-deaths", len(losses))
    say("late-zero", zero)


def draw_paths(paths: Mapping) -> Figure:
    """The coefficient of sex during training, with random and with stacked halves.

    Parameters
    ----------
    paths : mapping of (way, sides) to list of float

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots()
    styles = {
        ("random", 2): ("-", "random, both sides"),
        ("random", 1): ("--", "random, one side"),
        ("stacked", 2): ("-.", "stacked, both sides"),
        ("stacked", 1): (":", "stacked, one side"),
    }
    for k, (key, (style, label)) in enumerate(styles.items()):
        axes.plot(paths[key], style, color=f"C{k}", label=label)
    axes.set(xlabel="step", ylabel="coefficient of sex")
    axes.legend(loc="lower left")
    return figure
