"""The answer in short, for several pages: many data sets first, then the one gap that moved.

``many`` are the rows of the study "many" of the store ``beyond``, analysed as preregistered by
:mod:`drocox.beyond.evidence`; ``league`` those of the study "rivals".
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import t as student

from drocox.beyond import evidence
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import with_minus

GENTLE = "DRO-COX, sharp, α = 0.5"  # the preregistered contrast
STRONG = "DRO-COX, paper, α = 0.2"
TUNED = "DRO-COX, paper, α tuned"
RIDGE = "ridge Cox, penalty 0.1"
# what is shown, by the name of the analysis
SHOWN = {
    GENTLE: "gentle DRO: sharp, α = 0.5",
    "DRO-COX, paper, α = 0.5": "the paper's constant, α = 0.5",
    STRONG: "the paper's constant, α = 0.2",
    TUNED: "the paper's constant, α by its rule",
    RIDGE: "ridge Cox, penalty 0.1",
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
        rows.setdefault(SHOWN[model], {})[OUTCOMES[outcome]] = with_minus(_interval(row))
    return pd.DataFrame.from_dict(rows, orient="index")


def _interval(row: pd.Series) -> str:
    """Mean and 95 % interval in a sentence; a rounded 0 has no sign."""
    values = (round(float(row[name]), 2) for name in ("mean", "low", "high"))
    mean, low, high = (f"{value:+.2f}" if value else "0.00" for value in values)
    return f"{mean} ({low} to {high})"


def alike(many: pd.DataFrame) -> pd.DataFrame:
    """Effects of the preregistered model if every data set counts alike: Student's interval.

    Parameters
    ----------
    many : DataFrame

    Returns
    -------
    DataFrame
        By primary outcome: mean and half-width of the 95 % interval.
    """
    rows = {}
    for name, outcome in evidence.PRIMARIES.items():
        effects = evidence.effects(many, outcome.column)["effect"]
        error = effects.std(ddof=1) / np.sqrt(len(effects))
        half = student.ppf(0.975, len(effects) - 1) * error
        rows[name] = {"mean": effects.mean(), "half": half}
    return pd.DataFrame.from_dict(rows, orient="index")


def tell_answer(many: pd.DataFrame) -> None:
    """Every number of the answer that comes from many data sets.

    Parameters
    ----------
    many : DataFrame
    """
    primary = evidence.primary_table(many)
    claims = evidence.claims(many)
    same = primary["equivalent"].astype(bool)
    guard(claims.harmless and same["c"], "Gentle DRO is harmless")
    guard(same["closing"] and not (claims.closes or claims.moves), "It closes no gap on average")
    guard(same["worst"] and not claims.worst_gains, "Nor does the worst group gain")
    say("many-data-sets", int(primary.loc["c", "data_sets"]))
    say("many-with-groups", int(primary.loc["closing", "data_sets"]))
    counted_alike = alike(many)
    for name in evidence.PRIMARIES:
        say(f"many-{name}", _interval(primary.loc[name]))
        row = counted_alike.loc[name]
        say(f"alike-{name}", f"{row['mean']:+.2f} ± {row['half']:.2f}")
    say("many-bound", f"{claims.bound:+.2f}")
    table = effects_of_models(many)
    guard(len(table) == len(SHOWN) * len(OUTCOMES), "every model shown was judged")
    for key, model in (("strong", STRONG), ("tuned", TUNED)):
        row = table.loc[(model, "c")]
        say(f"{key}-c", _interval(row))
        guard(row["high"] < 0, "The paper's constant costs c-index, at α = 0.2 and tuned")
    ridge = table.loc[(RIDGE, "c")]
    say("ridge-c", _interval(ridge))


# SUPPORT (age), where the gap moved, with every patient judged


def tell_support_by_age(league: pd.DataFrame) -> None:
    """What gentle DRO, the paper's constant, and rivals do to the gap by age on SUPPORT.

    Parameters
    ----------
    league : DataFrame
        By data set, attribute and method: differences to Cox in points and jackknife errors.
    """
    rows = league.xs("support", level="dataset").xs("age", level="attribute")
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
