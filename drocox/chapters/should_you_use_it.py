"""Should you use it? Values for sentences and guards on DRO-COX against plain Cox."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drocox.bookstyle import guard, say
from drocox.chapters import rivals
from drocox.chapters.gaps import comparison, decided
from drocox.chapters.sentences import BOTH_READINGS, by_method, with_minus
from drocox.data import SurvivalData
from drocox.paper import claims, signed, tables

KEYS = dict(zip(BOTH_READINGS, ("", "-one"), strict=True))  # ends of names of values
FIRM = "support age linear"  # the comparison whose gap moves


def tell_ladder(ladder: dict[float, float]) -> None:
    """For what α protects.

    Parameters
    ----------
    ladder : dict
        By alpha: the share of the smallest group that the printed constant protects.
    """
    for alpha in (0.1, 0.2, 0.5):
        say(f"share-{alpha}", f"{100 * ladder[alpha]:.1f}".removesuffix(".0"))
    shown = [f"{100 * share:.2g}" for share in ladder.values()]
    expected = ["0.61", "1.5", "3", "8.4", "18", "33"]
    guard(shown == expected, "which is far less than α")


def against_cox(
    view: str, metric: str, pairs: list[tuple[str, str]], tune_by: str = "ci_percent"
) -> pd.DataFrame:
    """DRO-COX minus plain Cox (DeepSurv), positive where DRO-COX is better.

    Parameters
    ----------
    view : str
    metric : str
        Any but "ci_percent": gaps are compared by :func:`drocox.paper.signed.gaps`.
    pairs : list of (data set, attribute)
    tune_by : {"ci_percent", "f_a"}
        What both were tuned by.

    Returns
    -------
    DataFrame
        By comparison: mean, half-width and what could be detected.
    """
    return claims.leads(
        view, metric=metric, pairs=pairs, tune_by=tune_by, ours=claims.DRO_COX,
        theirs=claims.UNPENALISED,
    )  # fmt: skip


def clearly_better(lead: pd.DataFrame) -> list[str]:
    """Comparisons whose interval lies above 0.

    Parameters
    ----------
    lead : DataFrame
        Of :func:`against_cox`.

    Returns
    -------
    list of str
    """
    return list(lead.index[lead["mean"] > lead["half"]])


def clearly_worse(lead: pd.DataFrame) -> list[str]:
    """Comparisons whose interval lies below 0.

    Parameters
    ----------
    lead : DataFrame
        Of :func:`against_cox`.

    Returns
    -------
    list of str
    """
    return list(lead.index[lead["mean"] < -lead["half"]])


def draw_leads(leads: dict[str, pd.DataFrame]) -> Figure:
    """Forest plot: DRO-COX minus Cox on several metrics, right is better.

    Parameters
    ----------
    leads : dict of DataFrame
        By the name of a metric, of :func:`against_cox` for the same comparisons.

    Returns
    -------
    Figure
    """
    names = list(next(iter(leads.values())).index)
    rows = -np.arange(len(names), dtype=float)
    figure, panels = plt.subplots(
        1, len(leads), figsize=(6.8, 0.3 * len(names) + 1.2), sharey=True, layout="constrained"
    )
    for panel, (metric, lead) in zip(panels, leads.items(), strict=True):
        is_sure = (lead["mean"].abs() > lead["half"]).to_numpy()
        for mask, colour, fill in ((~is_sure, "0.45", "none"), (is_sure, "C1", "C1")):
            some = lead[mask]
            panel.errorbar(
                some["mean"], rows[mask], xerr=some["half"], fmt="o", ms=5, lw=1.8, color=colour,
                mfc=fill,
            )  # fmt: skip
        panel.axvline(0, color="0.3", lw=1)
        panel.set_title(metric, fontsize="medium")
        panel.xaxis.set_major_locator(MaxNLocator(2))
        panel.tick_params(axis="x", labelsize="small")
    panels[0].set_yticks(rows, [comparison(name) for name in names], fontsize="small")
    return figure


def all_leads() -> dict[tuple[str, str], pd.DataFrame]:
    """DRO-COX against Cox in fourteen comparisons, in both readings.

    Returns
    -------
    dict of DataFrame
        By view and metric: tuned by CI; "f_a" tuned by F_A.
    """
    leads = {}
    for view in BOTH_READINGS:
        for metric in ("c_index", "lpl", "ibs"):
            leads[view, metric] = against_cox(view, metric, claims.PAIRS)
        leads[view, "f_a"] = against_cox(view, "f_a", claims.PAIRS, tune_by="f_a")
    return leads


def tell_evidence(leads: dict[tuple[str, str], pd.DataFrame]) -> None:
    """For the answer, and the list of F_A, c-index and survival curves.

    Parameters
    ----------
    leads : dict of DataFrame
        Of :func:`all_leads`.
    """
    for view, key in KEYS.items():
        c = leads[view, "c_index"]
        worse = clearly_worse(c)
        say(f"c-worse{key}", len(worse))
        guard(not clearly_better(c), "nowhere is the c-index clearly higher")
        on_support = [name for name in worse if name.startswith("support")]
        guard(len(on_support) == 6, "lost accuracy on SUPPORT")
        elsewhere = [name for name in worse if name not in on_support]
        expected = ["seer race linear"] if view == "corrected, one setting" else []
        guard(elsewhere == expected, "all on SUPPORT (one setting: also SEER race, linear)")

        f_a = leads[view, "f_a"]
        say(f"fa-better{key}", len(clearly_better(f_a)))
        guard(not clearly_worse(f_a), "F_A is nowhere clearly higher")
        for metric in ("lpl", "ibs"):
            behind = int((leads[view, metric]["mean"] < 0).sum())
            say(f"{metric}-behind{key}", behind)
            guard(behind >= 11, "survival curves are worse nearly throughout")


def tell_gaps(gaps_by_view: dict[str, pd.DataFrame]) -> None:
    """For what DRO-COX moves: SUPPORT (age), linear, in both readings; and what could be seen.

    Parameters
    ----------
    gaps_by_view : dict of DataFrame
        Of :func:`drocox.paper.signed.gaps`, both readings.
    """
    for table in gaps_by_view.values():
        only = decided(table) == decided(table, "together") == [FIRM]
        guard(only, "In one of the fourteen the difference excludes 0, alone and over all")
        firm = table.loc[FIRM]
        guard(firm["alone"] == signed.CLOSER, "Looked at alone, DRO-COX is closer to equal there")
        guard(firm["together"] == signed.MOVED, "Over all fourteen it has moved, perhaps past")
    table = gaps_by_view["corrected"]
    firm = table.loc[FIRM]
    for name in ("theirs", "ours", "difference", "sum"):
        say(f"firm-{name}", f"{firm[name]:+.2f} ± {firm[f'{name}_half']:.2f}")
    say("firm-p", f"{firm['difference_p'] * 1e5:.1f}")  # times 10^-5
    guard(firm["difference_p"] < 0.05 / len(table), "it survives a correction for fourteen")
    say("firm-sum-p", f"{firm['sum_p']:.2f}")
    tell_power(table)


def tell_power(table: pd.DataFrame) -> None:
    """For the power beside "undecided", and the patients that smaller differences would need.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drocox.paper.signed.gaps`.
    """
    power = signed.power(table)
    others = power.drop(FIRM)
    for name in ("moved_point", "closer_point", "closer_half"):
        low, high = 100 * others[name].min(), 100 * others[name].max()
        say(name.replace("_", "-"), f"{low:.0f} to {high:.0f}")
    guard(others["closer_point"].max() < 0.2, "a gap of one point that closes is hardly ever seen")
    is_main = [tuple(name.split()[:2]) in claims.MAIN_PAIRS for name in table.index]
    detectable = power.loc[is_main, "detectable"]
    say("detectable", f"{detectable.min():.1f} to {detectable.max():.1f}")
    needed = signed.times_the_patients(detectable)
    say("needed", f"{needed.min():.0f} to {needed.max():.0f}")
    closing = power["detectable_closing"]
    say("detectable-closing", f"{closing.min():.1f} to {closing.max():.0f}")


def groups_of_support() -> pd.DataFrame:
    """Concordance of either age group of SUPPORT, Cox and DRO-COX, linear, corrected.

    Returns
    -------
    DataFrame
        By group: percent of pairs that Cox and DRO-COX order correctly, the change, its half-width.
    """
    runs = tables.chosen_runs("support", "age", protocol="corrected")
    rows = {}
    for name, column in (("65 or younger", "test_cf_0_age"), ("over 65", "test_cf_1_age")):
        share = 100 * runs.pivot(index="repeat", columns="method", values=column)
        change = claims.interval(share["DRO-COX"] - share["Cox"], "corrected")
        rows[name] = {
            "Cox": share["Cox"].mean(),
            "DRO-COX": share["DRO-COX"].mean(),
            "change": float(change.mean),
            "half": float(change.half),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def tell_groups(groups: pd.DataFrame) -> None:
    """For "the gap closes because the better-ranked group falls".

    Parameters
    ----------
    groups : DataFrame
        Of :func:`groups_of_support`.
    """
    younger = groups.loc["65 or younger"]
    older = groups.loc["over 65"]
    guard(younger["Cox"] > older["Cox"], "the younger are ranked better by Cox")
    guard(younger["change"] < -younger["half"], "the younger fall")
    guard(abs(older["change"]) < older["half"], "no gain of the over-65s is seen")
    for key, row in (("younger", younger), ("older", older)):
        say(f"{key}-change", with_minus(f"{row['change']:+.1f} ± {row['half']:.1f}"))


def tell_support(table: pd.DataFrame) -> None:
    """For the c-index on SUPPORT (gender).

    Parameters
    ----------
    table : DataFrame
        T3, corrected.
    """
    c = by_method(table, "c_index")
    say("c-cox", f"{c['Cox']:.3f}")
    say("c-dro", f"{c['DRO-COX']:.3f}")


def tell_rivals(runs: pd.DataFrame) -> None:
    """For what the comparisons with Cox say, on seven pairs and over the whole league.

    Parameters
    ----------
    runs : DataFrame
        The study of rivals, by data set, attribute and method.
    """
    league = rivals.of_league(runs)
    closer = league[league["together"] == signed.CLOSER]
    only_there = {key[:2] for key in closer.index} == {rivals.AGE}
    guard(only_there, "concordance came closer to equal on SUPPORT (age) only")
    gentle = league.loc[(*rivals.AGE, rivals.GENTLE)]
    guard(gentle["together"] == signed.CLOSER, "gentle DRO-COX is among them")
    higher, lower = rivals.firm(league, "c")
    guard(higher.empty, "ranked worse, none better")
    guard((*rivals.AGE, "DRO-COX") in lower.index, "DRO-COX ranked worse on SUPPORT")
    say("rivals-compared", len(league))
    say("rivals-closer", len(closer))
    say("rivals-gentle", rivals.plus_minus(gentle, "ci_diff"))
    say("rivals-gentle-c", rivals.plus_minus(gentle, "c_diff"))
    say("rivals-c", len(lower))


def tell_planted(c: pd.DataFrame) -> None:
    """For planted minorities that Cox misjudges.

    Parameters
    ----------
    c : DataFrame
        c-index of the minority: design by method.
    """
    gain = c["DRO-COX"] - c["Cox"]
    lack = c["minority alone"] - c["Cox"]
    only = gain.drop("other-early").max() < 0.03 < gain["other-early"]
    guard(only, "gained from DRO-COX only where they also die early")
    say("hidden-gain", f"{gain['other-early']:.2f}")
    say("hidden-lack", f"{lack['other-early']:.2f}")


def tell_shrunk(shrunk: pd.DataFrame) -> None:
    """For "Multiplied by that factor, Cox has as low an F_A".

    Parameters
    ----------
    shrunk : DataFrame
        By data set: the scale, and the c-index of DRO-COX and of Cox.
    """
    guard((shrunk["scale"] < 1).all(), "F_A falls when scores shrink")
    kept = shrunk["c, Cox"] > shrunk["c, DRO-COX"] - 0.005
    guard(kept.all(), "its c-index and CI do not move at all")


def tell_few_events(test: SurvivalData) -> None:
    """For the events among the smaller group of a test part of SEER.

    Parameters
    ----------
    test : SurvivalData
    """
    smaller = test.groups["race"] == 0
    say("few-events", int(test.event[smaller].sum()))
