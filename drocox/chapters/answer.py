"""The answer in short, for several pages: many data sets first, then the one gap that moved.

``many`` are the rows of the study "many" of the store ``beyond``, analysed as preregistered by
:mod:`drocox.beyond.evidence`; ``league`` those of the study "rivals".
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from drocox.beyond import evidence
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import with_minus

GENTLE = "DRO-COX, sharp, α = 0.5"  # the preregistered contrast
STRONG = "DRO-COX, paper, α = 0.2"
# what is shown, by the name of the analysis
SHOWN = {
    GENTLE: "gentle DRO: sharp, α = 0.5",
    "DRO-COX, paper, α = 0.5": "the paper's constant, α = 0.5",
    STRONG: "the paper's constant, α = 0.2",
    "CVaR, α = 0.5": "CVaR, α = 0.5",
    "ridge Cox, penalty 0.1": "ridge Cox, penalty 0.1",
}
OUTCOMES = {"c": "c-index", "closing": "closing of the gap", "worst": "c-index of the worst group"}


def effects_of_models(many: pd.DataFrame) -> pd.DataFrame:
    """Pooled effects of the models shown, less Cox.

    Parameters
    ----------
    many : DataFrame

    Returns
    -------
    DataFrame
        Rows (model, outcome), of :func:`drocox.beyond.evidence.all_models`.
    """
    table = evidence.all_models(many)
    return table[table.index.get_level_values(0).isin(list(SHOWN))]


def draw_answer(table: pd.DataFrame) -> Figure:
    """Forest plot: models less Cox on three outcomes, with margins and prediction intervals.

    Parameters
    ----------
    table : DataFrame
        Of :func:`effects_of_models`.

    Returns
    -------
    Figure
    """
    models = [model for model in SHOWN if model in table.index.get_level_values(0)]
    figure, axes = plt.subplots(
        1, len(OUTCOMES), figsize=(8.6, 0.42 * len(models) + 1.5), sharey=True, layout="constrained"
    )
    for panel, (outcome, title) in zip(axes, OUTCOMES.items(), strict=True):
        margin = table.xs(outcome, level=1)["margin"].iloc[0]
        panel.axvspan(-margin, margin, color="C5", alpha=0.15, lw=0)
        panel.axvline(0, color="0.3", lw=1)
        for place, model in enumerate(models):
            row = table.loc[(model, outcome)]
            colour = "C0" if model == GENTLE else "0.4"
            panel.plot(
                [row["predicted_low"], row["predicted_high"]], 2 * [-place], color=colour, lw=0.8
            )
            panel.plot([row["low"], row["high"]], 2 * [-place], color=colour, lw=3)
            panel.plot(row["mean"], -place, "D", color=colour, ms=5)
        panel.set(title=title, xlabel="points, right is better")
        panel.title.set_fontsize("medium")
    axes[0].set_yticks([-place for place in range(len(models))], [SHOWN[m] for m in models])
    axes[0].set_ylim(0.6 - len(models), 0.6)
    return figure


def show_answer(table: pd.DataFrame) -> pd.DataFrame:
    """The same as text: mean and 95 % interval.

    Parameters
    ----------
    table : DataFrame
        Of :func:`effects_of_models`.

    Returns
    -------
    DataFrame of str
    """
    rows = {}
    for (model, outcome), row in table.iterrows():
        words = f"{row['mean']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"
        rows.setdefault(SHOWN[model], {})[OUTCOMES[outcome]] = with_minus(words)
    return pd.DataFrame.from_dict(rows, orient="index")


def _interval(row: pd.Series) -> str:
    """Mean and 95 % interval in a sentence."""
    return f"{row['mean']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"


def _words_of_claims(said: evidence.Claims, equivalent: pd.Series) -> dict[str, str]:
    """What the preregistration allows to be said, in words."""
    words = {}
    words["accuracy"] = "it costs no accuracy that matters" if equivalent["c"] else "unsettled"
    if said.c_differs and not equivalent["c"]:
        words["accuracy"] = "it changes the c-index"
    words["harmless"] = "harmless" if said.harmless else "not shown to be harmless"
    words["closing"] = "no closing of gaps is shown"
    if said.moves:
        words["closing"] = "gaps move, perhaps past equality"
    if said.closes:
        words["closing"] = "gaps by sex and age close"
    words["worst"] = "the worst group gains" if said.worst_gains else "no gain of the worst group"
    if not said.worst_gains:
        words["worst"] += " is shown"
    return words


def tell_answer(many: pd.DataFrame) -> None:
    """Every number of the answer that comes from many data sets.

    Parameters
    ----------
    many : DataFrame
    """
    primary = evidence.primary_table(many)
    said = evidence.claims(many)
    for name, words in _words_of_claims(said, primary["equivalent"].astype(bool)).items():
        say(f"many-says-{name}", words)
    say("many-data-sets", int(primary.loc["c", "data_sets"]))
    say("many-with-groups", int(primary.loc["closing", "data_sets"]))
    for name in evidence.PRIMARIES:
        say(f"many-{name}", _interval(primary.loc[name]))
        within = "within" if primary.loc[name, "equivalent"] else "not within"
        say(f"many-{name}-margin", within)
    say("many-bound", f"{said.bound:+.2f}")
    share = evidence.share_of_gap(many)
    say(
        "many-share", f"{100 * share.value:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f})"
    )
    table = effects_of_models(many)
    strong = table.loc[(STRONG, "c")]
    say("many-strong-c", _interval(strong))
    guard(strong["high"] < 0, "the paper's constant at 0.2 costs c-index")
    guard(
        strong["mean"] < table.loc[(GENTLE, "c"), "mean"],
        "the paper's constant costs more than gentle DRO",
    )
    guard(len(table) == len(SHOWN) * len(OUTCOMES), "every model shown was judged")


# SUPPORT (age), where the gap moved, with every patient judged


def tell_support_by_age(league: pd.DataFrame) -> None:
    """What gentle DRO, the paper's constant, and rivals do to the gap by age on SUPPORT.

    Parameters
    ----------
    league : DataFrame
        By data set, attribute and method: differences to Cox in points and jackknife errors.
    """
    rows = league.loc[("support", "age")]
    for key, method in (
        ("gentle", "DRO-COX, sharp 0.5"),
        ("paper", "DRO-COX"),
        ("stopped", "Cox stopped at equal c-index"),
        ("interactions", "Cox with interactions"),
        ("weights", "group weights"),
    ):
        row = rows.loc[method]
        for name in ("ci_diff", "c_diff", "cf_0_diff", "cf_1_diff"):
            half = 1.96 * row[f"{name}_se"]
            say(f"{key}-{name}", f"{row[name]:+.2f} ± {half:.2f}")
    gentle = rows.loc["DRO-COX, sharp 0.5"]
    paper = rows.loc["DRO-COX"]
    guard(gentle["ci_diff"] > 1.96 * gentle["ci_diff_se"], "gentle DRO closes a part of the gap")
    guard(abs(gentle["c_diff"]) < 1.96 * gentle["c_diff_se"], "without a loss of c-index")
    guard(paper["c_diff"] < -1.96 * paper["c_diff_se"], "the paper's constant loses c-index")
    stopped = rows.loc["Cox stopped at equal c-index"]
    keeps = abs(stopped["ci"]) > 0.5 * abs(rows.loc["Cox", "ci"])
    guard(keeps, "a Cox model stopped at an equal c-index keeps most of its gap")
