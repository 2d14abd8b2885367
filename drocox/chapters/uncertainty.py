"""The chapter *How sure are we?*: the sampling error of test patients.

A bootstrap draw is a vector of counts :math:`w_i`. The c-index, the concordance fractions behind CI
and F_I are averages over pairs,

.. math::

   M(w) = \\sum_{i \\in g} \\sum_j w_i w_j a_{ij} \\Big/ \\sum_{i \\in g} \\sum_j w_i w_j b_{ij},

with matrices that do not depend on the draw (:func:`pair_matrices`), so hundreds of draws are two
matrix products (:func:`metrics_of_draws`). The chapter's other ideas have modules of their own:
the noise floor of CI (:mod:`~drocox.chapters.uncertainty_floor`), paired differences
(:mod:`~drocox.chapters.uncertainty_paired`), what a larger grid is worth
(:mod:`~drocox.chapters.uncertainty_choice`) and how few patients carry F_∩
(:mod:`~drocox.chapters.uncertainty_cells`).
"""

from collections.abc import Mapping
from functools import cache
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import drocox
from drocox import training
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import WRITTEN
from drocox.paper import tables
from drocox.paper.claims import MAIN_PAIRS
from drocox.paper.prepare import Prepared

RETRAINED = ("Cox", "DRO-COX")  # trained once more on each data set


@cache
def chosen(dataset: str, attribute: str, metric: str, which: str) -> pd.DataFrame:
    """A test metric of the models that the stated rule chooses.

    F_A is taken from the models tuned by F_A, the rest from those tuned by CI.

    Parameters
    ----------
    dataset, attribute, metric : str
    which : {"as_published", "corrected"}

    Returns
    -------
    DataFrame
        Repeats × methods.
    """
    tune_by = "f_a" if metric == "f_a" else "ci_percent"
    rows = tables.chosen_runs(dataset, attribute, tune_by, which, "stated")
    return rows.pivot(index="repeat", columns="method", values=f"test_{metric}")


def chosen_by_ci(dataset: str, attribute: str, which: str, method: str) -> pd.DataFrame:
    """The runs of a method that the stated rule chooses by CI, one per repeat.

    Parameters
    ----------
    dataset, attribute, which, method : str

    Returns
    -------
    DataFrame
    """
    rows = tables.chosen_runs(dataset, attribute, "ci_percent", which, "stated")
    return rows[rows["method"] == method]


def train_again(dataset: str, attribute: str, method: str, ready: Prepared) -> list[np.ndarray]:
    """Train the linear model that the stated rule chooses in repeat 1, and check it.

    Parameters
    ----------
    dataset, attribute : str
    method : {"Cox", "DRO-COX"}
    ready : Prepared
        Repeat 1 as published.

    Returns
    -------
    list of array
        Scores of the training, validation and test part.
    """
    rows = chosen_by_ci(dataset, attribute, "as_published", method)
    row = rows[rows["repeat"] == 1].iloc[0]
    start = training.initial_parameters(ready.X[0].shape[1], None, ready.weight_seed)
    if method == "Cox":
        objective = training.cox_objective(ready.risk, ready.procedure.ties)
    else:
        c = drocox.dual_constant(row["alpha"], rule="paper")
        objective = training.dro_objective(ready.risk, c, ready.procedure.ties)
    model = training.fit_stack(ready.X[0], objective, start, [row["learning_rate"]])
    scores = [model.scores(X)[0] for X in ready.X]
    again = ready.judges[1].fairness(scores[2], scores[2])
    for metric in ("c_index", "f_cap", f"ci_percent_{attribute}"):
        equal = abs(again[metric] - row[f"test_{metric}"]) < 1e-6
        guard(equal, "trained once more and checked against the store")
    return scores


def pair_matrices(f: np.ndarray, time: np.ndarray, event: np.ndarray) -> tuple:
    """Points and comparable pairs of the c-index, then of the concordance fractions behind CI.

    Parameters
    ----------
    f, time, event : array of shape (n,)
        Scores, times, deaths.

    Returns
    -------
    tuple of four arrays of shape (n, n)
        a and b of the c-index, a and b of the concordance fractions; all with empty diagonals.
    """
    died = event[:, None]
    tied = time[:, None] == time
    before = died & (time[:, None] < time)
    alone = died & ~event & tied  # i died on the day j left alive
    both = died & event & tied
    np.fill_diagonal(both, False)  # nobody is compared with a copy
    higher = f[:, None] > f
    equal = f[:, None] == f
    won = higher + 0.5 * equal
    pairs = before | alone
    points = before * won + alone * np.where(higher, 1, 0.5)
    points = points + points.T + both * np.where(equal, 1, 0.5)
    return pairs * won, pairs, points, pairs | pairs.T | both


def hinges(h: np.ndarray, X: np.ndarray, gamma: float = 0.01) -> np.ndarray:
    """The terms of F_I, on feature rows of unit length.

    .. math:: \\max(|h_i - h_j| - \\gamma \\|x_i - x_j\\|, 0)

    Parameters
    ----------
    h : array of shape (n,)
        Hazards.
    X : array of shape (n, p)
    gamma : float

    Returns
    -------
    array of shape (n, n)
    """
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    apart = np.sqrt(np.maximum(2 - 2 * unit @ unit.T, 0))
    return np.maximum(np.abs(h[:, None] - h) - gamma * apart, 0)


def metrics_of_draws(w: np.ndarray, f: np.ndarray, ready: Prepared) -> pd.DataFrame:
    """All fairness metrics and the c-index of bootstrap draws of the test part.

    Parameters
    ----------
    w : float array of shape (draws, n)
        How often each test patient came up.
    f : array of shape (n,)
        Scores of the test part.
    ready : Prepared

    Returns
    -------
    DataFrame
        A line per draw.
    """
    test = ready.test
    n = len(f)
    h = np.exp(f)

    def share(matrix):
        """What each patient contributes to the double sum."""
        return w * (w @ matrix.astype("f4"))

    def smoothed_means(codes):
        members = np.eye(codes.max() + 1)[codes]
        return ((w * h) @ members + 0.5) / (w @ members + 1)

    matrices = pair_matrices(f, test.time, test.event)
    won, comparable, points, pairs = [share(matrix) for matrix in matrices]
    out = {"c_index": won.sum(1, float) / comparable.sum(1, float)}
    out["f_i"] = share(hinges(h, ready.X[2])).sum(1, float) / 2
    out["f_i"] /= n**2 - np.square(w, dtype=float).sum(1)
    cells = test.group_matrix @ 2 ** np.arange(len(test.groups))
    out["f_cap"] = np.ptp(np.log(smoothed_means(cells)), axis=1)
    for name, codes in test.groups.items():
        everybody = (w * h).sum(1, float)[:, None] / n
        out[f"f_g_{name}"] = np.abs(smoothed_means(codes) - everybody).max(1)
        out[f"f_a_{name}"] = (out["f_i"] + out["f_cap"] + out[f"f_g_{name}"]) / 3
        fraction = {}
        for group in (0, 1):
            members = codes == group
            fraction[group] = points[:, members].sum(1, float) / pairs[:, members].sum(1, float)
            out[f"cf_{group}_{name}"] = fraction[group]
        out[f"ci_signed_{name}"] = 100 * (fraction[1] - fraction[0])
        out[f"ci_percent_{name}"] = np.abs(out[f"ci_signed_{name}"])
    return pd.DataFrame(out)


def check_first_draw(metrics: pd.DataFrame, f: np.ndarray, ready: Prepared) -> None:
    """The sentence that counts of one give every metric as the package does.

    Parameters
    ----------
    metrics : DataFrame
        From :func:`metrics_of_draws`; the first draw has all counts one.
    f : array
        Scores of the test part.
    ready : Prepared
    """
    for metric, value in ready.judges[1].fairness(f, f).items():
        if "centred" not in metric:
            equal = np.isclose(metrics[metric][0], value, atol=1e-6)
            guard(
                equal, "the first row of counts, all ones, gives every metric as the package does"
            )


def tell_folding(gaps: pd.DataFrame) -> None:
    """Section *Two biases*: the six gaps Δ against their standard errors.

    Parameters
    ----------
    gaps : DataFrame
        "CI", "Δ", "SE of Δ" and "mean CI" of six models.
    """
    guard(len(gaps) == 6, "six gaps")
    z = (gaps["Δ"].abs() / gaps["SE of Δ"]).sort_values()
    furthest = z.index[-1] == "SUPPORT (gender) Cox" and z.iloc[-2] < 0.6
    guard(furthest, "the furthest from 0 is Cox on SUPPORT")
    say("z-max", f"{z.iloc[-1]:.1f}")
    say("seer-ci", f"{gaps.loc['SEER (race) Cox', 'CI']:.1f}")
    say("seer-mean-ci", f"{gaps.loc['SEER (race) Cox', 'mean CI']:.1f}")


def three_spreads(boot: Mapping) -> pd.DataFrame:
    """Three SDs of the same metric: published repeats, bootstrap draws, corrected repeats.

    Parameters
    ----------
    boot : mapping of (dataset, method) to DataFrame
        Metrics of the draws; the first line is the sample itself.

    Returns
    -------
    DataFrame
        Columns "row", "metric", "repeats", "bootstrap", "corrected".
    """
    rows = []
    for (dataset, attribute), method in product(MAIN_PAIRS, RETRAINED):
        published = chosen_by_ci(dataset, attribute, "as_published", method)
        corrected = chosen_by_ci(dataset, attribute, "corrected", method)
        for metric in ("c_index", "ci_percent", "f_a"):
            drawn = metric if metric == "c_index" else f"{metric}_{attribute}"
            rows.append(
                {
                    "row": f"{WRITTEN[dataset]} {method}",
                    "metric": metric,
                    "repeats": published[f"test_{metric}"].std(),
                    "bootstrap": boot[dataset, method][drawn].iloc[1:].std(),
                    "corrected": corrected[f"test_{metric}"].std(),
                }
            )
    return pd.DataFrame(rows)


def draw_three_spreads(spread: pd.DataFrame) -> Figure:
    """The three standard deviations of :func:`three_spreads`, one panel per metric.

    Parameters
    ----------
    spread : DataFrame

    Returns
    -------
    Figure
    """
    titles = {"c_index": "c-index", "ci_percent": "CI (points)", "f_a": "$F_A$"}
    marks = {
        "repeats": ("o", "published repeats"),
        "bootstrap": ("s", "bootstrap"),
        "corrected": ("^", "corrected repeats"),
    }
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 3.5), sharey=True, layout="constrained")
    for ax, (metric, title) in zip(axes, titles.items(), strict=True):
        rows = spread[spread["metric"] == metric]
        low = rows[list(marks)].min(axis=1)
        high = rows[list(marks)].max(axis=1)
        ax.hlines(rows["row"], low, high, color="0.7", lw=1)
        for k, (name, (mark, label)) in enumerate(marks.items()):
            ax.plot(rows[name], rows["row"], mark, color=f"C{k}", label=label, ms=7)
        ax.set(xscale="log", title=title, xlabel="SD")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
    axes[0].invert_yaxis()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=3)
    return figure


def tell_three_spreads(spread: pd.DataFrame, expected: pd.Series) -> None:
    """Section *The published SD against the other two*: ratios of the three SDs.

    Parameters
    ----------
    spread : DataFrame
        From :func:`three_spreads`.
    expected : Series
        The corrected SD that the other two let expect.
    """
    off = spread["corrected"] / expected
    close = off.between(0.75, 1.25)
    guard(close.mean() > 0.6, "the parts add up, as well as can be seen")
    say("within-quarter", f"{int(close.sum())} of {len(off)}")
    furthest = spread.loc[np.log(off).abs().nlargest(2).index]
    named = set(furthest["row"]) == {"SEER Cox", "SUPPORT DRO-COX"}
    guard(named and set(furthest["metric"]) == {"f_a"}, "the furthest ratios are of F_A")
    say("furthest", " and ".join(f"{off[i]:.1f} ({furthest['row'][i]})" for i in furthest.index))

    times = spread["bootstrap"] / spread["repeats"]
    say("boot-larger", f"{int((times > 1).sum())} of {len(spread)}")
    dro = spread["row"].str.contains("DRO")
    of_ci = times[spread["metric"] == "ci_percent"]
    of_c_cox = times[(spread["metric"] == "c_index") & ~dro]
    of_c_dro = times[(spread["metric"] == "c_index") & dro]
    of_f_a = times[spread["metric"] == "f_a"]
    guard((of_ci > 3).all() and (of_c_cox > 10).all(), "the test set's error is the larger one")
    guard(of_c_dro.between(0.8, 1.7).all(), "the c-index of DRO-COX is different")
    say("times-ci", f"{of_ci.min():.1f} to {of_ci.max():.1f}")
    say("times-c-cox", f"{of_c_cox.min():.0f} to {of_c_cox.max():.0f}")
    say("times-c-dro", f"{of_c_dro.min():.1f} to {of_c_dro.max():.1f}")
    say("fa-smaller", int((of_f_a < 1).sum()))
    _tell_configurations()


def _tell_configurations() -> None:
    """How many configurations the rule takes in ten repeats."""
    counts = []
    for dataset, attribute in MAIN_PAIRS:
        rows = chosen_by_ci(dataset, attribute, "as_published", "DRO-COX")
        counts.append(len(rows[["learning_rate", "alpha"]].drop_duplicates()))
    guard(min(counts) >= 4, "the rule takes different configurations, so its repeats scatter")
    say("configs", f"{counts[0]}, {counts[1]} and {counts[2]}")
