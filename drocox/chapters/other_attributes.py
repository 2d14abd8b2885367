"""Other sensitive attributes (T5 to T8): tables, values for sentences, guards, and the figure."""

import pandas as pd

from drocox.bookstyle import guard, say
from drocox.chapters.gaps import decided
from drocox.chapters.sentences import by_method, dashed, judged, keep_unpublished
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
