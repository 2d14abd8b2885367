"""Other sensitive attributes (T5 to T8): tables, values for sentences, guards, and the figure."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.chapters.gaps import comparison, decided
from drocox.chapters.sentences import (
    ALL_VIEWS,
    by_method,
    dashed,
    judged,
    keep_unpublished,
    with_minus,
)
from drocox.paper import claims, protocol, signed, tables

VIEWS = claims.IN_ORDER[2:]  # those that judge T5 to T8
FOUR_FAIR = ["f_i", "f_g", "f_cap", "ci_percent"]
SHORT_NAMES = {"DRO-COX": "linear", "Deep DRO-COX": "deep"}


def keep_tables() -> None:
    """Lay out T5 to T8 in three views."""
    for exhibit in ("t5", "t6", "t7", "t8"):
        dataset, attribute, _ = tables.EXHIBITS[exhibit]
        for view, options in tables.VIEWS.items():
            table = tables.main_table(dataset, attribute, **options)
            keep_unpublished(exhibit, view, table)


def tell_same_model(same: pd.DataFrame, chosen: list[str]) -> None:
    """For "keep their model in … percent of the cases".

    Parameters
    ----------
    same : DataFrame
        Pair by view: share of cases in which another attribute chooses the same model.
    chosen : list of str
        Methods that meet the attribute only when a model is chosen.
    """
    say("same-low", f"{100 * same['corrected'].min():.0f}")
    say("same-high", f"{100 * same['corrected'].max():.0f}")
    say("n-chosen", len(chosen))
    guard(same["corrected"].max() < 0.5, "ten may differ because another model is picked")


# Do the findings hold?


def observations(view: str, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    """The paper's four observations, comparison by comparison.

    Parameters
    ----------
    view : str
    pairs : list of (data set, attribute)

    Returns
    -------
    DataFrame
        A row per comparison, a column per observation: whether it holds; of the third, DRO-COX or
        SPLIT, in how many of nine metrics DRO-COX is ahead.
    """
    sign = pd.Series({m: 1 if up else -1 for m, (_, up) in tables.METRICS.items()})
    rows = []
    for dataset, attribute in pairs:
        table = tables.main_table(dataset, attribute, **ALL_VIEWS[view])
        for model, part in table.groupby("model"):
            goal = part.pivot(index="method", columns="metric", values="mean") * sign
            place = goal.rank(ascending=False, method="min")
            plain, *penalised = claims.BASELINES[model]
            dro, split = claims.DRO[model]
            accurate = place.loc[plain, "c_index"] <= 3
            unfair = place.loc[plain, ["ci_percent", "f_a"]].min() > 4
            fair_throughout = (place.loc[penalised, FOUR_FAIR] <= 3).all(axis=1)
            kept = goal.loc[dro, "c_index"] >= 0.95 * goal.loc[plain, "c_index"]
            rows.append({
                "best CI: a DRO variant": "DRO" in goal["ci_percent"].idxmax(),
                "DRO-COX keeps 95 % of c-index": kept,
                "DRO-COX ahead of SPLIT, of 9 metrics": (goal.loc[dro] > goal.loc[split]).sum(),
                "plain: accurate, unfair": accurate and unfair,
                "no baseline fair throughout": not fair_throughout.any(),
            })  # fmt: skip
    return pd.DataFrame(rows)


def counted(rows: pd.DataFrame) -> pd.Series:
    """How often each observation holds: "3 of 8", and of 72 where nine metrics are counted.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`observations`.

    Returns
    -------
    Series of str
    """
    counts = {}
    for name, holds in rows.items():
        cases = len(rows) * (9 if "of 9" in name else 1)
        counts[name] = f"{int(holds.sum())} of {cases}"
    return pd.Series(counts)


def tell_findings(counts: pd.DataFrame) -> None:
    """For the paragraph on "Still holds": claim C4, accuracy, and the main tables beside them.

    Parameters
    ----------
    counts : DataFrame of str
        Observation by view and tables ("main", "T5–T8"), of :func:`counted`.
    """
    say("c4-need", claims.claims()["C4"]["reproduced"])
    for view in VIEWS:
        claim = judged("C4", view)
        say(f"c4-{dashed(view)}", claim.number)
        say(f"c4-verdict-{dashed(view)}", claim.words)
        as_judged = counts[view, "T5–T8"].iloc[0] == claim.number
        guard(as_judged, "the best CI is a DRO variant's: counted here as in the ledger")
    say("main-best", counts["corrected", "main"].iloc[0])
    say("kept", counts["corrected", "T5–T8"].iloc[1])
    say("kept-stated", counts["stated rule", "T5–T8"].iloc[1])


def show_lowest(lowest: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Who has the lowest CI, and what signed gaps say of DRO-COX against Cox, as text.

    Parameters
    ----------
    lowest : DataFrame of str
        Comparison by view: the method with the lowest CI.
    table : DataFrame
        Of :func:`drocox.paper.signed.gaps`.

    Returns
    -------
    DataFrame of str
    """
    columns = {view: list(lowest.loc[table.index, view]) for view in lowest}
    for name in ("difference", "sum"):
        values = zip(table[name], table[f"{name}_half"], strict=True)
        columns[name] = [with_minus(f"{mean:+.2f} ± {half:.2f}") for mean, half in values]
    columns["DRO-COX"] = list(table["alone"])
    return pd.DataFrame(columns, [comparison(name) for name in table.index])


def tell_lowest(lowest: pd.DataFrame, table: pd.DataFrame) -> None:
    """For "Who has the lowest CI, and is it closer to equal?".

    Parameters
    ----------
    lowest, table
        As in :func:`show_lowest`.
    """
    moved = decided(table)
    say("decided", len(moved))
    guard(moved == ["support age linear"], "In one of the eight the difference excludes 0")
    word = table.loc["support age linear", "alone"]
    guard(word == signed.CLOSER, "SUPPORT (age), linear, closer to equal if looked at alone")
    power = signed.power(table)
    detectable = power["detectable"]
    say("detectable", f"{detectable.min():.1f} to {detectable.max():.1f}")
    say("power-most", f"{100 * power['closer_point'].max():.0f}")
    by_dro = lowest.apply(lambda winners: winners.str.contains("DRO"))
    lost = lowest.loc[~by_dro["corrected"], "corrected"]
    guard(len(lost) == 5, "The five that DRO does not win")
    sees_groups = lost.str.contains("_G|_cap").all()
    guard(sees_groups, "go to baselines whose penalty sees groups (G or ∩)")
    turned = lowest.index[by_dro["stated rule"] & ~by_dro["corrected"]]
    expected = ["flc gender nonlinear", "support race linear", "support race nonlinear"]
    guard(list(turned) == expected, "Three comparisons change hands, two of them on SUPPORT (race)")


def tell_race(stated: pd.DataFrame, corrected: pd.DataFrame) -> None:
    """For the CIs of SUPPORT (race) in both columns.

    Parameters
    ----------
    stated, corrected : DataFrame
        T7 by the stated rule, and corrected.
    """
    for key, table in (("stated", stated), ("corrected", corrected)):
        ci = by_method(table, "ci_percent")
        for plain, dro in (("Cox", "DRO-COX"), ("DeepSurv", "Deep DRO-COX")):
            for method in (plain, dro):
                say(f"race-{key}-{method.lower().replace(' ', '-')}", f"{ci[method]:.2f}")
            changes_hands = (ci[dro] < ci[plain]) == (key == "stated")
            guard(changes_hands, f"{dro} against {plain} changes hands on SUPPORT (race)")


# Fair to whom?


def _draw_pairs(panel: Axes, judged_by: pd.Series, plain: str, method: str) -> None:
    """Mean test CI of a method and of the plain model, a position for each pair."""
    for position, (dataset, by) in enumerate(claims.PAIRS):
        is_first = position == 0  # the only one with labels
        for tuned, value in judged_by[method, dataset, by].items():
            same = tuned == by
            colour = "C0" if same else "C1"
            label = "tuned by it" if same else "by another"
            panel.plot(
                position, value, "o", color=colour, zorder=2 + same, mfc=colour if same else "none",
                ms=7, label=label if is_first else None,
            )  # fmt: skip
        value = judged_by[plain, dataset, by, by]
        label = "plain model" if is_first else None
        panel.plot(position, value, "_", color="C2", ms=18, mew=2.5, label=label)


def draw_tuned(judged_by: pd.Series) -> Figure:
    """Test CI by one attribute of models tuned by the same or by another one.

    Parameters
    ----------
    judged_by : Series
        Mean test CI by method, data set, attribute judged by, and attribute tuned by.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(
        2, 1, figsize=(6.4, 5.4), layout="constrained", sharex=True, sharey=True
    )
    pairs = (("Cox", "DRO-COX"), ("DeepSurv", "Deep DRO-COX"))
    for panel, (plain, method) in zip(axes, pairs, strict=True):
        _draw_pairs(panel, judged_by, plain, method)
        panel.set(title=f"{method} (plain: {plain})", ylabel="test CI (%)")
    axes[0].set_ylim(0, None)
    names = [f"{dataset.upper()}\n{attribute}" for dataset, attribute in claims.PAIRS]
    axes[1].set_xticks(range(len(claims.PAIRS)), names)
    axes[1].set(xlabel="judged by")
    handles, labels = axes[0].get_legend_handles_labels()
    order = [labels.index(name) for name in ("tuned by it", "by another", "plain model")]
    figure.legend(
        [handles[i] for i in order], [labels[i] for i in order], loc="outside upper center", ncol=3
    )
    return figure


def tell_tuning(judged_by: pd.Series, wins: dict[str, int]) -> None:
    """For "Fair to whom?": own tuning against tuning by lot, and SUPPORT (age).

    Parameters
    ----------
    judged_by : Series
        As in :func:`draw_tuned`.
    wins : dict
        By method: for how many of seven pairs own tuning is the best.
    """
    by_lot = sum(1 / len(protocol.ATTRIBUTES[dataset]) for dataset, _ in claims.PAIRS)
    say("wins-linear", wins["DRO-COX"])
    say("wins-deep", wins["Deep DRO-COX"])
    say("wins-chance", f"{by_lot:.0f}")
    guard(max(wins.values()) <= by_lot + 1e-9, "tuning did not visibly do anything for it")
    age = judged_by["DRO-COX", "support", "age"]
    cox = judged_by["Cox", "support", "age", "age"]
    say("age-low", f"{age.min():.2f}")
    say("age-high", f"{age.max():.2f}")
    say("age-cox", f"{cox:.2f}")
    guard(age.max() < 0.5 * cox, "The one clear gain in the figure: SUPPORT (age)")
    guard(age.idxmin() != "age", "the smallest of the three does not belong to tuning by age")


def tell_price(table: pd.DataFrame) -> None:
    """For "It has a price".

    Parameters
    ----------
    table : DataFrame
        T6, corrected.
    """
    c = by_method(table, "c_index")
    say("age-c-cox", f"{c['Cox']:.3f}")
    say("age-c-dro", f"{c['DRO-COX']:.3f}")
    guard(c["DRO-COX"] < c["Cox"], "It has a price")


def tell_correlations(correlations: dict[str, tuple[float, float, float]]) -> None:
    """For the exercise "does a validation CI know the test CI?" and the sentence that refers to it.

    Parameters
    ----------
    correlations : dict
        By method: mean correlation for the same attribute, for another one, and the share of grids
        in which the first is negative.
    """
    for method, key in SHORT_NAMES.items():
        same, another, negative = correlations[method]
        guard(max(abs(same), abs(another)) < 0.2, "These are close to a lottery")
        guard(negative > 1 / 3, "the correlation for the same attribute is negative, often")
        say(f"rho-own-{key}", f"{same:.2f}")
        say(f"negative-{key}", f"{100 * negative:.0f}")
