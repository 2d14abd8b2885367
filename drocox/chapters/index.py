"""The landing page: values for its tables and sentences, and guards of the answer."""

import pandas as pd

import drocox
from drocox.bookstyle import guard, say
from drocox.chapters.gaps import decided
from drocox.chapters.panel import PANEL_VIEWS
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
    tell_version()
    tell_gaps(tables_by_view)
    tell_table(gaps_of_panel(), accuracy_of_panel())
    tell_fit(tables.fidelity_cells())
    tell_theory()
    tell_accuracy({view: against_cox(view, "c_index", claims.PAIRS) for view in BOTH_READINGS})


def tell_version() -> None:
    """For the citation."""
    say("version", drocox.__version__)


def gaps_in_both_readings() -> dict[str, pd.DataFrame]:
    """Signed gaps of Cox and DRO-COX in fourteen comparisons, corrected, in both readings.

    Returns
    -------
    dict of DataFrame
    """
    return {view: signed.gaps(view) for view in BOTH_READINGS}


def gaps_of_panel() -> dict[str, pd.DataFrame]:
    """Signed gaps of Cox and DRO-COX in the three views of the panel.

    Returns
    -------
    dict of DataFrame
        Of :func:`drocox.paper.signed.gaps`.
    """
    return {view: signed.gaps(view) for view in PANEL_VIEWS}


def accuracy_of_panel() -> dict[str, pd.DataFrame]:
    """c-index of DRO-COX minus that of Cox in the three views of the panel.

    Returns
    -------
    dict of DataFrame
        Of :func:`drocox.chapters.should_you_use_it.against_cox`.
    """
    pairs = {"as published": claims.MAIN_PAIRS}
    return {
        view: against_cox(view, "c_index", pairs.get(view, claims.PAIRS)) for view in PANEL_VIEWS
    }


def tell_table(
    gaps_by_view: dict[str, pd.DataFrame], leads_by_view: dict[str, pd.DataFrame]
) -> None:
    """For the table of three rows: gaps, c-index, lowest CI.

    Parameters
    ----------
    gaps_by_view : dict of DataFrame
        Of :func:`gaps_of_panel`.
    leads_by_view : dict of DataFrame
        Of :func:`accuracy_of_panel`.
    """
    for view, gaps in gaps_by_view.items():
        key = SHORT[view]
        lead = leads_by_view[view]
        guard(len(gaps) == len(lead), "gaps and c-index are of the same comparisons")
        closer = int((gaps["alone"] == signed.CLOSER).sum())
        say(f"closer-{key}", f"{closer} of {len(gaps)}")
        say(f"lower-{key}", f"{len(clearly_worse(lead))} of {len(lead)}")
        guard(not clearly_better(lead), "in no view is the c-index clearly higher")
        pairs = claims.PAIRS if len(gaps) == 14 else claims.MAIN_PAIRS
        lowest = claims.best(view, metric="ci_percent", pairs=pairs)
        say(f"lowest-{key}", f"{lowest.value} of {lowest.of}")


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
