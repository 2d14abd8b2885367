"""The chapter *What the optimum is*: values of its sentences, their guards, its drawing.

The chapter certifies optima of linear DRO-COX with the paper's constant and compares them with what
500 steps of Adam reach. Most functions here take the tables that the chapter has computed.
"""

from collections.abc import Callable, Mapping
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

import drocox
from drocox.bookstyle import guard, say
from drocox.paper import protocol
from drocox.paper.prepare import prepare
from drocox.solver import Solution

RATES = (0.01, 0.001, 0.0001)
RANKED = ["flc", "seer"]  # data sets whose ranks survive at small α


def guard_proofs(proofs: pd.DataFrame) -> None:
    """Section *A bound from below*: one more Newton step shrinks the gap more than a hundredfold.

    Parameters
    ----------
    proofs : DataFrame
        "risk − bound" and "risk − naive" after three, four and six steps.
    """
    gaps = proofs["risk − bound"]
    naive = proofs["risk − naive"]
    guard(gaps[0] > 100 * gaps[1], "one more Newton step shrinks the gap more than a hundredfold")
    guard(gaps[2] < 1e-12, "after six both ends of the interval agree to rounding")
    guard((naive[:2] < gaps[:2]).all(), "the naive bound is a little stronger")


def tell_null(null: pd.DataFrame, c_squared: float) -> None:
    """Section *When the best model is no model*: ten splits of SUPPORT at α = 0.1.

    Parameters
    ----------
    null : DataFrame
        "κ", "α₀", "‖θ*‖" and "null" of each split.
    c_squared : float
        The paper's c² at α = 0.1.
    """
    say("null-splits", int(null["null"].sum()))
    other = null[~null["null"]]
    narrowly = len(other) == 1 and other["‖θ*‖"].max() < 0.01
    guard(narrowly, "one split misses it narrowly")
    say("null-other", other.index[0])
    say("null-other-kappa", f"{other['κ'].iloc[0]:.1f}")
    say("null-other-norm", f"{other['‖θ*‖'].iloc[0]:.3f}")
    say("null-c2", f"{c_squared:.0f}")
    lowest = null["α₀"].min()
    guard(0.09 < lowest < 0.1 < null["α₀"].max() < 0.15, "below the lowest α₀ all ten are null")
    say("null-lowest", f"{lowest:.4f}")
    sharp = 1 / null["κ"].min()
    guard(sharp < 0.01, "with the sharp constant the same happens only for tiny α")
    say("null-sharp", f"{100 * sharp:.1f}")


def optima_beside_adam(
    optimum: Callable[[str, int, float], Solution], runs: pd.DataFrame
) -> pd.DataFrame:
    """Figure of the opening: the optimum on test patients, beside what Adam reached there.

    Parameters
    ----------
    optimum : callable
        The certified optimum of a data set, a repeat and an α.
    runs : DataFrame
        Stored corrected runs of DRO-COX at one learning rate, by data set, repeat and α.

    Returns
    -------
    DataFrame
        A line per data set, one of three splits, and α: the number "m" of patients at the first
        death time, of the optimum the "gap", the "norm", spread and "ratio" of hazards and the
        metrics, and Adam's metrics in columns ``adam_...``.
    """
    parts_of_f_a = ["f_i", "f_g_age", "f_cap"]
    rows = []
    for dataset, repeat in product(protocol.ATTRIBUTES, (1, 2, 3)):
        split = prepare("corrected", dataset, repeat)
        deaths = split.train.time[split.train.event]
        for alpha in protocol.ALPHAS:
            solution = optimum(dataset, repeat, alpha)
            scores = split.X[2] @ solution.coef  # of test patients
            got = split.judges[1].fairness(split.X[0] @ solution.coef, scores, ["age"])
            adam = runs.loc[dataset, repeat, alpha]
            rows.append(
                {
                    "dataset": dataset,
                    "repeat": repeat,
                    "alpha": alpha,
                    "m": (deaths == deaths.min()).sum(),
                    "gap": solution.gap,
                    "norm": np.linalg.norm(solution.coef),
                    "SD": scores.std(),
                    "ratio": np.exp(np.ptp(np.quantile(scores, [0.05, 0.95]))),
                    "c_index": got["c_index"],
                    "ci": got["ci_percent_age"],
                    "f_a": np.mean([got[name] for name in parts_of_f_a]),
                    "adam_c_index": adam["test_c_index"],
                    "adam_ci": adam["test_ci_percent_age"],
                    "adam_f_a": adam[[f"test_{name}" for name in parts_of_f_a]].mean(),
                }
            )
    return pd.DataFrame(rows)


def draw_optima(mean: pd.DataFrame) -> Figure:
    """Norm, F_A, c-index and CI against α, at the optimum (lines) and by Adam (circles).

    Parameters
    ----------
    mean : DataFrame
        Means over splits, by data set and α; Adam's in columns ``adam_...``.

    Returns
    -------
    Figure
    """
    panels = {"norm": "‖θ*‖", "f_a": "$F_A$", "c_index": "c-index", "ci": "CI (%)"}
    styles = dict(zip(protocol.ATTRIBUTES, ("-", "--", ":"), strict=True))
    figure, axes = plt.subplots(2, 2, figsize=(7.6, 5.6), sharex=True, layout="constrained")
    for panel, (name, label) in zip(axes.flat, panels.items(), strict=True):
        for k, (dataset, style) in enumerate(styles.items()):
            colour = f"C{k}"
            rows = mean.loc[dataset]
            positive = rows[name].where(rows[name] > 0)
            panel.plot(positive.index, positive, style, color=colour, label=dataset.upper())
            if name != "norm":
                adam = rows[f"adam_{name}"]
                panel.plot(rows.index, adam, "o", color=colour, mfc="none", ms=6)
            elif positive.isna().any():
                _mark_zero(panel, positive.index[positive.isna()], colour)
        panel.set(ylabel=label, yscale="log" if name in ("norm", "f_a") else "linear")
        if panel.get_yscale() == "log":
            panel.yaxis.set_major_formatter(lambda x, _: f"{x:g}")
            panel.yaxis.set_minor_locator(NullLocator())
    axes[0, 0].legend()
    axes[1, 1].set_ylim(0, None)
    for panel in axes[1]:
        panel.set(xlabel="α", xticks=[0.1, 0.2, 0.3, 0.4, 0.5])
    return figure


def _mark_zero(panel, alphas: pd.Index, colour: str) -> None:
    """Crosses for coefficients that are exactly 0, below a logarithmic axis's lines."""
    height = 0.004
    panel.plot(alphas, [height] * len(alphas), "x", color=colour, ms=8)
    style = {"textcoords": "offset points", "va": "center"}
    panel.annotate("0", (alphas[0], height), (7, 0), **style)


def tell_optima(optima: pd.DataFrame, mean: pd.DataFrame, c_squared: float) -> None:
    """Section *The optimum against α*: how flat it is, what survives.

    Parameters
    ----------
    optima : DataFrame
        A line per data set, split and α.
    mean : DataFrame
        Means over splits, by data set and α.
    c_squared : float
        The paper's c² at α = 0.1.
    """
    others = optima[optima["dataset"] != "support"]
    few = (others["m"] * c_squared < 2000).all()
    guard(few and (others["norm"] > 0).all(), "FLC and SEER have few first deaths: case (b)")
    for dataset in protocol.ATTRIBUTES:
        for alpha, short in ((0.1, "01"), (0.5, "05")):
            row = mean.loc[(dataset, alpha)]
            say(f"opt-c-{dataset}-{short}", f"{row['c_index']:.3f}")
            say(f"opt-ratio-{dataset}-{short}", f"{row['ratio']:.3g}")
    low = mean.xs(0.1, level="alpha")
    high = mean.xs(0.5, level="alpha")
    flat = (low["ratio"] < 1.06).all() and low["norm"].max() < 0.04
    guard(flat, "at α = 0.1 the optimum predicts nearly constant hazards")
    guard(mean.xs(0.2, level="alpha")["norm"].max() < 0.05, "for small α the optimum is flat")
    guard((high["ratio"][RANKED] > 7).all(), "at α = 0.5 hazards differ by large factors")
    kept = (low["c_index"] - 0.5) / (high["c_index"] - 0.5)
    guard(
        kept["flc"] > 0.9 and 0.5 < kept["seer"] < 0.8 and kept["support"] == 0,
        "ranks survive well on FLC, in part on SEER, not on SUPPORT",
    )
    guard(0 < low["f_a"]["support"] < 0.005, "the null model's F_A is smoothing")
    say("opt-fa-null", f"{low['f_a']['support']:.4f}")
    _guard_scales(optima, mean)
    moves = high["ci"] - low["ci"]
    guard(moves.min() < 0 < moves.max(), "CI has no common direction")


def _guard_scales(optima: pd.DataFrame, mean: pd.DataFrame) -> None:
    for name in ("SD", "f_a"):
        for dataset in protocol.ATTRIBUTES:
            rises = mean.loc[dataset, name].is_monotonic_increasing
            guard(rises, "F_A follows the scale of the scores")
    seer = optima[(optima["dataset"] == "seer") & (optima["repeat"] == 1)].set_index("alpha")
    guard(
        seer["norm"][0.1] > seer["norm"][0.15] and seer["SD"].is_monotonic_increasing,
        "on SEER's first split the norm is larger at 0.1, although the scores spread less",
    )


def by_rate(adam: pd.DataFrame) -> pd.DataFrame:
    """The chapter's comparison of Adam with the optimum: α × (quantity, rate), fast rates first.

    Parameters
    ----------
    adam : DataFrame
        A line per learning rate and α.

    Returns
    -------
    DataFrame
    """
    wide = adam.pivot(index="α", columns="rate")
    return wide.sort_index(axis=1, ascending=[True, False])


def shown_adam(adam: pd.DataFrame, best: Mapping[float, Solution]) -> pd.DataFrame:
    """How far above the bound Adam stopped, and the norms, as texts.

    Parameters
    ----------
    adam : DataFrame
        A line per learning rate and α.
    best : mapping of float to Solution
        The optima.

    Returns
    -------
    DataFrame
    """
    wide = by_rate(adam)
    excess = {("risk − bound", "θ = 0"): wide["null", RATES[0]]}
    norms = {("‖θ‖", "θ*"): norms_of(best)}
    for rate in RATES:
        excess["risk − bound", f"{rate:g}"] = wide["excess", rate]
        norms["‖θ‖", f"{rate:g}"] = wide["norm", rate]
    text = pd.DataFrame(excess).map(lambda x: f"{x:.0e}" if x > 1e-3 else "< 1e-3")
    text = text.join(pd.DataFrame(norms).map("{:.2f}".format))
    text.index = [f"α = {alpha:g}" for alpha in text.index]
    return text


def norms_of(best: Mapping[float, Solution]) -> pd.Series:
    """Norms of the optimal coefficients, by α.

    Parameters
    ----------
    best : mapping of float to Solution

    Returns
    -------
    Series
    """
    norms = {alpha: np.linalg.norm(solution.coef) for alpha, solution in best.items()}
    return pd.Series(norms).rename_axis("α")


def tell_adam(adam: pd.DataFrame, best: Mapping[float, Solution], start: np.ndarray) -> None:
    """Section *How far Adam stopped*, on SEER.

    Parameters
    ----------
    adam : DataFrame
        A line per learning rate and α.
    best : mapping of float to Solution
        The optima.
    start : array
        The initial draw.
    """
    wide = by_rate(adam)
    excess = wide["excess"]
    fast = excess[0.01]
    guard(fast.drop(0.1).max() < 1e-5, "at 0.01 training is at the optimum")
    # where an oscillation is cut off after 500 steps depends on the machine's last digits
    guard(fast[0.1] < 5e-3, "at α = 0.1 it oscillates around the optimum")
    guard(excess.loc[0.1, 0.001] < fast[0.1], "at α = 0.1 the rate 0.001 gets closer")
    _tell_slowest(wide, start)
    exact = norms_of(best)
    say("adam-exact-low", f"{exact.min():.2f}")
    say("adam-exact-high", f"{exact.max():.2f}")
    norm = wide.loc[0.5, ("norm", 0.001)]
    away = wide.loc[0.5, ("to optimum", 0.001)]
    above = excess.loc[0.5, 0.001]
    guard(
        abs(norm - exact[0.5]) < 0.02 and away > 0.5 and above < 0.01,
        "at 0.001 and α = 0.5 the norm is nearly right and the coefficients are far away",
    )
    say("adam-middle-norm", f"{norm:.2f}")
    say("adam-middle-away", f"{away:.2f}")
    say("adam-middle-excess", f"{above:.3f}")


def _tell_slowest(wide: pd.DataFrame, start: np.ndarray) -> None:
    """Learning rate 0.0001, which does not arrive anywhere."""
    excess = wide["excess", 0.0001]
    moved = wide["to start", 0.0001]
    norm = wide["norm", 0.0001]
    guard((excess > 0.05).all(), "at 0.0001 it does not arrive anywhere")
    worse = list(wide.index[excess > wide["null", 0.0001]])
    guard(worse == [0.1, 0.15, 0.2], "for α up to 0.2 its risk is larger than that of θ = 0")
    near_start = moved.max() < 0.16 and 0.3 < norm.min() and norm.max() < 0.45
    guard(near_start, "500 steps hardly move the initial draw")
    guard(
        (wide["to optimum", 0.0001] > 2 * moved).all(),
        "less than half as far from its initial draw as from its optimum",
    )
    say("adam-start", f"{np.linalg.norm(start):.2f}")
    say("adam-moved", f"{moved.max():.2f}")
    say("adam-low", f"{norm.min():.2f}")
    say("adam-high", f"{norm.max():.2f}")


def tell_figure(optima: pd.DataFrame, mean: pd.DataFrame, runs: pd.DataFrame) -> None:
    """Section *What is left of the α figure?*

    Parameters
    ----------
    optima, mean : DataFrame
        As in :func:`tell_optima`.
    runs : DataFrame
        Stored corrected runs of DRO-COX at learning rate 0.01, by data set, repeat and α.
    """
    guard(len(optima) == 54, "the three splits cover 54 runs")
    c_off = (optima["adam_c_index"] - optima["c_index"]).abs()
    f_a_off = (optima["adam_f_a"] / optima["f_a"] - 1).abs()
    right = optima["alpha"] >= 0.2
    guard(c_off[right].max() < 0.0005, "for α ≥ 0.2 c-indices agree to 0.0005")
    guard(f_a_off[right].max() < 0.01, "for α ≥ 0.2 F_A agrees to 1 %")
    differ = c_off > 0.001
    guard(optima["alpha"][differ].max() == 0.15, "all that differ are at α ≤ 0.15")
    say("left-off", int(differ.sum()))

    keys = {"index": ["dataset", "repeat"], "columns": "alpha"}
    c = optima.pivot(values="c_index", **keys)
    rises = (c.loc[RANKED, 0.3] > c.loc[RANKED, 0.1]).all()
    rises_later = (c.loc["support", 0.5] > c.loc["support", 0.3]).all()
    guard(rises and rises_later, "the c-index is larger at the end of the paper's ranges")
    f_a = optima.pivot(values="f_a", **keys)
    guard((f_a[0.5] > 10 * f_a[0.1]).all(), "F_A is more than ten times larger at 0.5 than at 0.1")
    rising = int((f_a.diff(axis=1).iloc[:, 1:] > 0).all(axis=1).sum())
    guard(6 <= rising <= 9, "it rises with each step of α on most splits")
    say("left-rising", rising)
    spread = mean["SD"].unstack("alpha")
    widened = (spread[0.5] / spread[0.1])[RANKED].min()
    guard(widened > 30, "the scale of the scores grows more than thirtyfold")
    guard(spread.loc["support", 0.1] == 0, "on SUPPORT it grows from nothing")

    ten = runs.loc["support"].xs(0.1, level="alpha")["test_c_index"]
    guard(len(ten) == 10 and ten.min() > 0.51, "the ten stored runs are all above 0.51")
    say("left-ten", f"{ten.mean():.3f}")
    cox = drocox.load_runs("corrected")
    cox = cox[(cox["method"] == "Cox") & (cox["learning_rate"] == 0.01)]
    of_cox = cox[cox["dataset"] == "support"]["test_c_index"].mean()
    guard(of_cox > ten.mean(), "Cox ranks better than the oscillation around zero")
