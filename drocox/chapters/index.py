"""The landing page: values for sentences, and guards of the answer."""

import pandas as pd

from drocox.bookstyle import guard, say
from drocox.chapters.gaps import decided
from drocox.chapters.sentences import BOTH_READINGS, SHORT
from drocox.chapters.should_you_use_it import against_cox, clearly_better, clearly_worse
from drocox.paper import claims, signed, tables

FIRM = "support age linear"  # the comparison whose gap moves


def tell_page(tables_by_view: dict[str, pd.DataFrame]) -> None:
    """Every number on the page, and the guards of the answer.

    Parameters
    ----------
    tables_by_view : dict of DataFrame
        Of :func:`gaps_in_both_readings`.
    """
    tell_lowest()
    tell_gaps(tables_by_view)
    tell_fit(tables.fidelity_cells())
    tell_theory()
    tell_accuracy({view: against_cox(view, "c_index", claims.PAIRS) for view in BOTH_READINGS})


def gaps_in_both_readings() -> dict[str, pd.DataFrame]:
    """Signed gaps of Cox and DRO-COX in fourteen comparisons, corrected, in both readings.

    Returns
    -------
    dict of DataFrame
    """
    return {view: signed.gaps(view) for view in BOTH_READINGS}


def tell_lowest() -> None:
    """For the table of how often a DRO variant has the lowest CI."""
    for view, key in SHORT.items():
        say(f"{key}-3", claims.best(view, metric="ci_percent", pairs=claims.MAIN_PAIRS).value)
        of_all = claims.best(view, metric="ci_percent", pairs=claims.PAIRS)
        say(f"{key}-7", of_all.value if of_all.of == 14 else "–")


def tell_gaps(tables_by_view: dict[str, pd.DataFrame]) -> None:
    """For what DRO-COX moves: one comparison of fourteen, in both readings.

    Parameters
    ----------
    tables_by_view : dict of DataFrame
        Of :func:`gaps_in_both_readings`.
    """
    for table in tables_by_view.values():
        guard(len(table) == 14, "fourteen comparisons")
        only = decided(table) == decided(table, "together") == [FIRM]
        guard(only, "in one of fourteen comparisons, SUPPORT (age) with linear models, it moves")
        firm = table.loc[FIRM]
        words = firm["alone"] == signed.CLOSER and firm["together"] == signed.MOVED
        guard(words, "looked at alone it comes closer to equal; over all fourteen it moves")
    table = tables_by_view["corrected"]
    firm = table.loc[FIRM]
    say("firm-cox", f"{firm['theirs']:+.1f}")
    say("firm-dro", f"{firm['ours']:+.1f}")
    say("firm-difference", f"{abs(firm['difference']):.1f} ± {firm['difference_half']:.1f}")
    say("undecided", len(table) - len(decided(table)))
    others = signed.power(table).drop(FIRM)
    say("power-most", f"{100 * others['closer_point'].max():.0f}")
    guard(others["closer_point"].max() < 0.2, "one point that closes would hardly have been seen")


def tell_fit(cells: pd.DataFrame) -> None:
    """For "All 62 published rows come back" and the cells by the paper's own rule.

    Parameters
    ----------
    cells : DataFrame
        Of :func:`drocox.paper.tables.fidelity_cells`.
    """
    recovered = cells[cells["recovered"]]
    rows = recovered.groupby(["exhibit", "model", "method"])["distance"].mean()
    all_rows = len(rows) == 62 and (rows <= 1).all()
    guard(all_rows, "All 62 published rows come back within one published SD on average")
    for rule, key in (("stated CI", "stated"), ("one setting CI", "one")):
        distance = cells.loc[cells["rule"] == rule, "distance"]
        say(f"within-{key}", f"{100 * (distance <= 1).mean():.0f}")


def tell_theory() -> None:
    """For the claims about data, theory and metrics."""
    verdicts = [
        claims.verdict(claim, claims.JUDGES[name](claims.CHECKED))
        for name, claim in claims.claims().items()
        if claim["kind"] == "mathematics"
    ]
    say("theory", len(verdicts))
    say("hold", verdicts.count("reproduced"))
    say("partly", verdicts.count("partly"))


def tell_accuracy(leads: dict[str, pd.DataFrame]) -> None:
    """For "lost accuracy on SUPPORT".

    Parameters
    ----------
    leads : dict of DataFrame
        c-index of DRO-COX minus that of Cox by view, both readings.
    """
    for lead in leads.values():
        on_support = [name for name in clearly_worse(lead) if name.startswith("support")]
        guard(len(on_support) == 6 and not clearly_better(lead), "lost accuracy on SUPPORT")
