r"""What the chapter on fairness metrics draws and tells: two traps, scale and shift.

Scores :math:`s f_i + c` rank patients as :math:`f_i` do, and for :math:`s = 1` predict the same
curves; the metrics of hazards :math:`e^{f}` are others.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist

from drocox.bookstyle import guard, say
from drocox.cox import risk_sets
from drocox.data import SurvivalData
from drocox.evaluation import scaled_features
from drocox.explorables.element import Explorable
from drocox.explorables.sliders import slider
from drocox.heldout import HeldOut, assign_folds
from drocox.heldout.intervals import jackknife
from drocox.paper.datasets import load_dataset
from drocox.paper.tables import published
from drocox.solver import minimise

NUMBER_WORDS = ["no", "one", "two", "three"]
STYLES = {
    "c_index": ("c-index", "k-"),
    "ibs": ("IBS", "C4-."),
    "f_i": ("$F_I$", "C0o-"),
    "f_g_age": ("$F_G$", "C1s--"),
    "f_cap": (r"$F_\cap$", "C2^:"),
}
READOUTS = {
    "c-index": "c_index",
    "F_I": "f_i",
    "F_I centred": "f_i_centred",
    "F_G": "f_g_age",
    "F_∩": "f_cap",
    "IBS": "ibs",
}


def draw_two_questions(six: pd.DataFrame) -> Figure:
    """Hazards by group on the left, shares of pairs in the right order on the right.

    Parameters
    ----------
    six : DataFrame
        Columns ``time``, ``event``, ``x`` and ``group``; hazards are :math:`2^x`.

    Returns
    -------
    Figure
    """
    hazards = 2.0 ** six["x"].to_numpy()
    in_b = (six["group"] == "b").to_numpy()
    scores, time, event = (six[name].to_numpy() for name in ("x", "time", "event"))
    held_out = HeldOut(scores, time, event, np.zeros(len(six), int))
    right = [held_out.concordance(in_b == code).value for code in (False, True)]
    means = [hazards[in_b == code].mean() for code in (False, True)]
    guard(np.allclose(right, [11 / 12, 7 / 8]), "11 of 12 pairs, and 7 of 8")
    guard(means[0] > means[1], "group a has a higher mean than group b")

    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
    for code, colour in enumerate(("C0", "C1")):
        members = np.flatnonzero(in_b == code)
        spread = np.linspace(-0.18, 0.18, len(members))
        axes[0].plot(code + spread, hazards[members], "o", color=colour)
        for place, i in zip(code + spread, members, strict=True):
            axes[0].annotate(
                six.index[i], (place, hazards[i]), (0, 5), textcoords="offset points", ha="center"
            )
        axes[0].plot([code - 0.3, code + 0.3], [means[code]] * 2, color=colour, lw=3)
        axes[1].bar(code, 100 * right[code], color=colour, width=0.6)
    axes[0].axhline(hazards.mean(), color="black", ls=":")
    axes[0].set(ylabel="predicted hazard", ylim=(0, 4.6), title="Predicts alike?")
    for code, share in enumerate(("11 of 12", "7 of 8")):
        axes[1].annotate(share, (code, 50), ha="center", color="white", weight="bold")
    axes[1].set(ylabel="pairs in the right order (%)", ylim=(0, 100), title="Right as often?")
    for panel in axes:
        panel.set(xticks=[0, 1], xticklabels=["group a", "group b"], xlim=(-0.6, 1.6))
        panel.grid(axis="x", visible=False)
    return figure


def tell_smallest_cell(summary: pd.DataFrame) -> None:
    """How many patients and events the smallest cell has.

    Parameters
    ----------
    summary : DataFrame
        Columns ``patients`` and ``events``, the smallest cell first.
    """
    smallest = summary.iloc[0]
    say("few", int(smallest["patients"]))
    say("few_events", NUMBER_WORDS[int(smallest["events"])])


def tell_published_deviation() -> None:
    """The published standard deviation of F_∩ of the Cox model on SEER."""
    row = "table == 'general_performance_SEER_race_CI' and method == 'Cox'"
    metrics = published().query(row).set_index("metric")
    say("published_sd", f"{metrics.loc['f_cap', 'std']:.2f}")


def four_metrics(metrics: Mapping, attribute: str) -> np.ndarray:
    """F_I, F_G and F_∩ with their mean F_A.

    Parameters
    ----------
    metrics : mapping of str to float
        From a judge of :mod:`drocox.paper.run`.
    attribute : str
        Of the groups of F_G.

    Returns
    -------
    array of shape (4,)
    """
    three = [metrics["f_i"], metrics[f"f_g_{attribute}"], metrics["f_cap"]]
    return np.array([*three, np.mean(three)])


def tell_shift(flc: Sequence, seer: Sequence) -> None:
    """What a shift of all scores does: on FLC all four fall, on SEER F_∩ and F_A rise.

    Parameters
    ----------
    flc, seer : pairs of mappings of str to float
        Metrics of the trained model, and of the model with all scores lowered.
    """
    flc_before = four_metrics(flc[0], "age")
    flc_after = four_metrics(flc[1], "age")
    guard((flc_after < flc_before).all(), "on FLC the limit is less than before")
    before = four_metrics(seer[0], "race")
    after = four_metrics(seer[1], "race")
    guard((after[:2] < 0.1 * before[:2]).all(), "F_I and F_G fall")
    guard((after[2:] > 3 * before[2:]).all(), "on SEER the shift raises F_∩ and F_A")
    say("f-cap", f"{before[2]:.2f} to {after[2]:.2f}")
    say("f-a", f"{before[3]:.2f} to {after[3]:.2f}")


def tell_scores_far_from_zero() -> None:
    """Mean hazard difference of the scores -6, -5, -4, -3, and when they are halved."""
    hazards = np.exp([[-6.0], [-5.0], [-4.0], [-3.0]])
    whole = pdist(hazards).mean()
    halved = pdist(hazards**0.5).mean()
    guard(halved > 3 * whole, "far from 0 the metrics may rise first")
    say("far", f"{whole:.3f} to {halved:.3f}")


def draw_traps(
    scales: np.ndarray, by_scale: pd.DataFrame, shifts: np.ndarray, by_shift: pd.DataFrame
) -> Figure:
    """Metrics relative to those of the trained model, by scale (left) and by shift (right).

    Parameters
    ----------
    scales, shifts : arrays of shape (m,)
        In increasing order.
    by_scale, by_shift : DataFrames of m rows
        A column for each metric.

    Returns
    -------
    Figure
    """
    for metric in ("f_i", "f_g_age", "f_cap"):
        guard(by_scale[metric].is_monotonic_increasing, f"{metric} falls as scores shrink")
    by_order = by_scale[["c_index", "ci_percent_age"]]
    guard(np.ptp(by_order, axis=0).max() < 1e-4, "the c-index and CI stay")
    guard(np.ptp(by_scale["ibs"]) > 0.1, "IBS notices scale")
    guard(np.ptp(by_shift["ibs"]) < 1e-6, "a shift changes no prediction")
    guard(by_shift["f_i"].iloc[0] < 1e-3, "F_I vanishes as the shift becomes negative")
    figure, axes = plt.subplots(1, 2, sharey=True, figsize=(6.4, 3.7), layout="constrained")
    panels = ((axes[0], scales, by_scale), (axes[1], shifts, by_shift))
    for panel, at, frame in panels:
        for metric, (label, style) in STYLES.items():
            panel.plot(at, frame[metric], style, label=label, ms=5)
    axes[0].set(
        xlabel="scores multiplied by", ylabel="relative to the trained model", ylim=(-0.05, 1.35)
    )
    axes[1].set(xlabel="added to all scores")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncol=5)
    return figure


def traps_slider(
    scales: np.ndarray,
    shifts: np.ndarray,
    days: np.ndarray,
    survival: np.ndarray,
    metrics: Sequence,
) -> Explorable:
    """Curves of three patients and the metrics of the model, by scale and shift of the scores.

    Parameters
    ----------
    scales, shifts : arrays of shapes (a,) and (b,)
    days : array of shape (m,)
    survival : array of shape (a, b, 3, m)
        Of a patient of low, middle and high risk.
    metrics : a sequences of b mappings of str to float

    Returns
    -------
    Explorable
    """
    percent = 100 * survival
    lines = {
        "low risk": percent[:, :, 0],
        "middle": percent[:, :, 1],
        "high risk": percent[:, :, 2],
    }
    readouts = {
        name: np.array([[cell[key] for cell in row] for row in metrics])
        for name, key in READOUTS.items()
    }
    formats = dict.fromkeys(readouts, "{:.3f}")
    return slider(
        "traps",
        {"scale": scales, "shift": shifts},
        days / 365.25,
        lines,
        readouts=readouts,
        start={"scale": 4, "shift": 4},
        ylim=(0, 102),
        xlabel="years since entry",
        ylabel="predicted to be alive (%)",
        formats=formats | {"scale": "{:.1f}", "shift": "{:.0f}"},
        alt="Survival curves of three FLC patients; the scale slider pulls "
        "them together, the shift slider leaves them where they are while the "
        "fairness metrics below change.",
    )


def cross_fitted(data: SurvivalData, folds: int = 5) -> HeldOut:
    """Scores of a Cox model for patients whom it has not seen.

    Parameters
    ----------
    data : SurvivalData
    folds : int

    Returns
    -------
    HeldOut
    """
    fold = assign_folds(data.event, folds, seed=0)
    scores = np.empty(len(data))
    for k in range(folds):
        train = data.subset(fold != k)
        test = data.subset(fold == k)
        X, Z = scaled_features(train, test)
        coef = minimise(X, risk_sets(train.time, train.event), 1).coef
        scores[fold == k] = Z @ coef
    return HeldOut(scores, data.time, data.event, fold)


def own_concordance(names: Sequence[str]) -> pd.DataFrame:
    """Each group's own c-index and the signed CI of a cross-fitted Cox model, in percent.

    Parameters
    ----------
    names : sequence of str
        Of data sets.

    Returns
    -------
    DataFrame
        Indexed by data set and attribute: ``first``, ``second`` (group 0 and 1), ``difference`` of
        the two, ``ci`` (signed), each with the half-width of its 95 % interval (``..._half``).
    """
    rows = {}
    for name in names:
        data = load_dataset(name)
        held_out = cross_fitted(data)
        for attribute, codes in data.groups.items():
            first = held_out.c_index(codes == 0)
            second = held_out.c_index(codes == 1)
            of_second = held_out.concordance(codes == 1)
            of_first = held_out.concordance(codes == 0)
            values = [first.value, second.value, second.value - first.value]
            values.append(of_second.value - of_first.value)
            without = [first.without, second.without, second.without - first.without]
            without.append(of_second.without - of_first.without)
            variance = np.diag(jackknife(np.column_stack(without))[0])
            row = {}
            columns = ("first", "second", "difference", "ci")
            for column, value, square in zip(columns, values, variance, strict=True):
                row[column] = 100 * value
                row[f"{column}_half"] = 196 * np.sqrt(square)
            rows[name, attribute] = row
    return pd.DataFrame(rows).T


def show_own(table: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`own_concordance` as it is read: value ± half-width.

    Parameters
    ----------
    table : DataFrame

    Returns
    -------
    DataFrame
    """
    titles = {
        "first": "c-index of ≤ 65, women, non-white",
        "second": "c-index of > 65, men, white",
        "difference": "difference",
        "ci": "signed CI",
    }
    shown = {}
    for column, title in titles.items():
        pairs = zip(table[column], table[f"{column}_half"], strict=True)
        shown[title] = [f"{value:.1f} ± {half:.1f}" for value, half in pairs]
    index = [f"{name.upper()}, {attribute}" for name, attribute in table.index]
    return pd.DataFrame(shown, index=index)


def tell_own(table: pd.DataFrame) -> None:
    """What CI hides on FLC, and that SUPPORT's age points one way.

    Parameters
    ----------
    table : DataFrame
        From :func:`own_concordance`.
    """
    flc = table.loc["flc", "age"]
    guard(abs(flc["ci"]) < flc["ci_half"], "on FLC the age groups look equal by CI")
    guard(flc["difference"] > flc["difference_half"], "their own c-indices are apart")
    support = table.loc["support", "age"]
    apart = (
        support["ci"] < -support["ci_half"] and support["difference"] < -support["difference_half"]
    )
    guard(apart, "on SUPPORT the two point the same way")
    say("own-flc-ci", f"{abs(flc['ci']):.1f}")
    say("own-flc-young", f"{flc['first']:.1f}")
    say("own-flc-old", f"{flc['second']:.1f}")


def gap_and_error(scores, time, event, codes) -> tuple[float, float]:
    """Signed CI of two groups, the second less the first, and its standard error, in percent.

    Parameters
    ----------
    scores, time, event, codes : arrays of shape (n,)
        Codes 0 and 1.

    Returns
    -------
    float, float
    """
    held_out = HeldOut(scores, time, event, np.zeros(len(scores), int))
    first = held_out.concordance(codes == 0)
    second = held_out.concordance(codes == 1)
    without = (second.without - first.without)[:, None]
    error = np.sqrt(jackknife(without)[0][0, 0])
    return 100 * (second.value - first.value), 100 * error


def tell_followed(gaps: Mapping) -> None:
    """CI of a perfect model whose groups are followed for unequal times.

    Parameters
    ----------
    gaps : mapping of (rate, rate) to (float, float)
        Signed CI and standard error, equal follow-up first, the most unequal last.
    """
    values = [gap for gap, _ in gaps.values()]
    errors = [error for _, error in gaps.values()]
    guard(abs(values[0]) < 3 * errors[0], "with equal follow-up CI is 0 up to noise")
    guard(values[-1] > 2 * errors[-1], "with unequal follow-up the perfect model has a CI")
    guard(values == sorted(values), "the more unequal, the larger")
    say("followed-ci", " and ".join(f"{value:.1f}" for value in values[1:]))
