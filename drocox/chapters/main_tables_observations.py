"""The chapter on T2 to T4: the paper's four observations, counted over its comparisons.

``wide`` are means of the main tables, method by metric, the printed ones beside them. ``every`` are
the tables of all seven pairs, fourteen comparisons. The tables themselves and what is said beside
them are in :mod:`drocox.chapters.main_tables`.
"""

import re

import pandas as pd
from IPython.display import HTML

from drocox.bookstyle import guard, say
from drocox.chapters.main_tables import MAIN_EXHIBITS, Tables
from drocox.chapters.sentences import ALL_VIEWS, BOTH_READINGS, SHORT, by_method, keep
from drocox.paper import claims, protocol, selection, signed, tables

PERCENTAGES = ("C6", "C14")  # claims whose count is a percentage
OWN_METRIC = {"_I(": "f_i", "_G(": "f_g", "_cap(": "f_cap"}  # of a penalty
# DRO-COX against the best baseline in the six main comparisons: :func:`drocox.paper.signed.gaps`
AGAINST_BEST = {"pairs": claims.MAIN_PAIRS, "theirs": claims.BASELINE}


# Four observations


def wide_means(found: Tables) -> Tables:
    """Means of T2 to T4, method by metric; the printed ones under the view "printed".

    Parameters
    ----------
    found : dict
        As in :func:`~drocox.chapters.main_tables.keep_tables`.

    Returns
    -------
    dict
        By exhibit and view.
    """
    wide = {}
    for key, table in found.items():
        wide[key] = table.pivot(index="method", columns="metric", values="mean")
    for exhibit in MAIN_EXHIBITS:
        table = found[exhibit, "corrected"]
        printed = table.pivot(index="method", columns="metric", values="paper_mean")
        wide[exhibit, "printed"] = printed
    return wide


def ci_of_dro_and_baseline(wide: Tables) -> dict[str, dict[str, tuple[float, float]]]:
    """CI of DRO-COX and of the best baseline in the six main comparisons.

    Parameters
    ----------
    wide : dict
        Of :func:`wide_means`.

    Returns
    -------
    dict
        By view and comparison.
    """
    gaps = {}
    for view in claims.IN_ORDER:
        gaps[view] = {}
        for exhibit, title in MAIN_EXHIBITS.items():
            ci = wide[exhibit, view]["ci_percent"]
            for model in protocol.MODELS:
                dro_cox = claims.DRO[model][0]
                pair = ci[dro_cox], ci[claims.BASELINES[model]].min()
                gaps[view][f"{title}, {model}"] = pair
    return gaps


def show_gaps(gaps: dict[str, dict[str, tuple[float, float]]]) -> HTML:
    """The CI of DRO-COX and, in parentheses, that of the best baseline; shaded: DRO-COX is lower.

    Parameters
    ----------
    gaps : dict
        Of :func:`ci_of_dro_and_baseline`.

    Returns
    -------
    HTML
    """
    head = "".join(f"<th>{view}</th>" for view in gaps)
    body = ""
    for comparison in gaps["printed"]:
        body += f"<tr><th>{comparison}</th>"
        for view in gaps:
            ours, baseline = gaps[view][comparison]
            shade = ' class="win"' if ours < baseline else ""
            body += f"<td{shade}>{ours:.2f} ({baseline:.2f})</td>"
        body += "</tr>"
    return HTML(
        f"<table><thead><tr><th>comparison</th>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def tell_counts(counts: pd.DataFrame) -> None:
    """For all sentences that count claims: "2 of 3", "47 %", where.

    Parameters
    ----------
    counts : DataFrame of Count
        Claim by view.
    """
    for view, short in SHORT.items():
        say(f"C6-where-{short}", counts.loc["C6", view].where)
        for name in counts.index:
            count = counts.loc[name, view]
            unit = "%" if name in PERCENTAGES else f"of {count.of}"
            say(f"{name}-{short}", f"{count.value:.0f} {unit}")
    wins = [int(n) for n in re.findall(r"in (\d+)", counts.loc["C6", "corrected"].where)]
    guard(abs(wins[0] - wins[1]) <= 6, "it costs nothing and gains nothing")


def tell_lowest_ci(
    gaps: dict[str, dict[str, tuple[float, float]]], moved: dict[str, pd.DataFrame]
) -> None:
    """For observation 1: which comparisons change sides, and by which rule rows come back.

    Parameters
    ----------
    gaps : dict
        Of :func:`ci_of_dro_and_baseline`.
    moved : dict of DataFrame
        By view: signed gaps of DRO-COX and of the best baseline, of
        :func:`drocox.paper.signed.gaps`.
    """
    ahead = {
        view: [name for name, (ours, baseline) in pairs.items() if ours < baseline]
        for view, pairs in gaps.items()
    }
    rules = {
        f"{title}, {model}": selection.rule_of(
            tables.EXHIBITS[exhibit][0], claims.DRO[model][0], "recovered"
        )
        for exhibit, title in MAIN_EXHIBITS.items()
        for model in protocol.MODELS
    }
    flips = [
        name
        for name in gaps["printed"]
        if (name in ahead["as published"]) != (name in ahead["stated rule"])
    ]
    expected = {
        "FLC (age), linear": "test CI",
        "SEER (race), linear": "test CI",
        "SEER (race), nonlinear": "one setting CI",
    }
    guard(flips == list(expected), "three of the six comparisons change sides by the choice alone")
    recovered = {name: rules[name] for name in flips}
    guard(recovered == expected, "for two, the printed row comes back only by the CI on test data")
    others = [rule for name, rule in rules.items() if name not in flips]
    guard("test CI" not in others, "for the other three the printed row needs no test data")
    left = ["SUPPORT (gender), linear", "SEER (race), linear"]
    guard(ahead["corrected"] == left, "Corrected, repeat by repeat, two leads are left")
    by = [gaps["corrected"][name][1] - gaps["corrected"][name][0] for name in ahead["corrected"]]
    say("ahead-by", " and ".join(f"{points:.2f}" for points in by))
    for view in BOTH_READINGS:
        within = (moved[view]["alone"] == signed.UNDECIDED).all()
        guard(within, "Corrected, none of the six signed differences can be told from 0")
    stated = moved["stated rule"]
    one = list(stated.index[stated["alone"] == signed.CLOSER]) == ["support gender linear"]
    guard(one, "by the stated rule SUPPORT (gender), linear, can, on that one test set")
    of_support = stated.loc["support gender linear"]
    say("stated-lead", f"{of_support['difference']:.2f} ± {of_support['difference_half']:.2f}")


def other_tables() -> Tables:
    """The tables of all seven pairs, in the views without forensic rules.

    Returns
    -------
    dict
        By pair and view.
    """
    return {
        (pair, view): tables.main_table(*pair, **options)
        for pair in claims.PAIRS
        for view, options in ALL_VIEWS.items()
        if view != "as published"
    }


def kept_c_index(every: Tables, view: str) -> pd.Series:
    """Share of the c-index of Cox (DeepSurv) that DRO-COX has, in fourteen comparisons.

    Parameters
    ----------
    every : dict
        Of :func:`other_tables`.
    view : str

    Returns
    -------
    Series
        By data set, attribute and model.
    """
    shares = {}
    for dataset, attribute in claims.PAIRS:
        c = by_method(every[(dataset, attribute), view], "c_index")
        for model in protocol.MODELS:
            dro_cox = claims.DRO[model][0]
            shares[dataset, attribute, model] = c[dro_cox] / c[protocol.PLAIN[model]]
    return pd.Series(shares)


def tell_kept(every: Tables, counts: pd.DataFrame) -> None:
    """For "Reasonably high accuracy": where DRO-COX misses 95 % of the c-index, and by how much.

    Parameters
    ----------
    every : dict
        Of :func:`other_tables`.
    counts : DataFrame of Count
        As in :func:`tell_counts`.
    """
    for view in ("stated rule", "corrected"):
        share = kept_c_index(every, view)
        missed = share[share < 0.95]
        as_counted = len(missed) == 14 - counts.loc["C5", view].value
        guard(as_counted, "at least 95 % of the test c-index, in fourteen comparisons")
        on_support = set(missed.index.get_level_values(0)) == {"support"}
        guard(on_support, "Repeat by repeat all misses are on SUPPORT")
        say(f"kept-{SHORT[view]}", f"{100 * share.min():.1f} %")
    models = set(missed.index.get_level_values(2))  # corrected
    guard(models == {"nonlinear"}, "corrected: nonlinear ones")
    for view in ("one setting", "corrected, one setting"):
        say(f"kept-{SHORT[view]}", f"{100 * kept_c_index(every, view).min():.1f} %")


def tell_often(often: pd.DataFrame) -> None:
    """For "Often on the other fairness metrics too".

    Parameters
    ----------
    often : DataFrame
        Metric by view: in how many of six comparisons a DRO variant is best.
    """
    for view in ("corrected", "corrected, one setting"):
        say(f"often-{SHORT[view]}", f"{often[view].min()} to {often[view].max()}")


def tell_ranks(ranks: pd.DataFrame) -> None:
    """For observation 3: ranks of the plain models.

    Parameters
    ----------
    ranks : DataFrame
        Comparison by metric, corrected; 1 is the best of eight.
    """
    say("top3-c", int((ranks["c_index"] <= 3).sum()))
    say("bottom-ci", int((ranks["ci_percent"] > 4).sum()))
    say("bottom-fa", int((ranks["f_a"] > 4).sum()))
    guard((ranks["c_index"] <= 3).all(), "among the three best in c-index")
    guard((ranks[["lpl", "ibs"]] == 1).all(axis=None), "first on LPL and IBS everywhere")
    guard((ranks["f_a"] > 4).all(), "in the lower half on F_A")
    first_on_flc = ranks.loc["FLC (age), linear", "ci_percent"] == 1
    guard(first_on_flc, "on FLC, Cox has the lowest CI of the linear methods")


def tell_penalties(wide: Tables, counts: pd.DataFrame) -> None:
    """For observation 4: penalties on their own metric, on CI, and on all four metrics.

    Parameters
    ----------
    wide : dict
        Of :func:`wide_means`.
    counts : DataFrame of Count
        As in :func:`tell_counts`.
    """
    better_on_own = []
    better_on_ci = []
    exceptions = []
    for exhibit, title in MAIN_EXHIBITS.items():
        means = wide[exhibit, "corrected"]
        for model in protocol.MODELS:
            plain, *penalised = claims.BASELINES[model]
            eight = means.loc[claims.BASELINES[model] + claims.DRO[model]]
            places = eight[["f_i", "f_g", "f_cap", "ci_percent"]].rank(method="min")
            for method in penalised:
                metric = next(m for letter, m in OWN_METRIC.items() if letter in method)
                better_on_own.append(means.loc[method, metric] < means.loc[plain, metric])
                lower_ci = means.loc[method, "ci_percent"] < means.loc[plain, "ci_percent"]
                better_on_ci.append(lower_ci)
                if (places.loc[method] <= 3).all():
                    exceptions.append(f"{method} on {title}")
    guard(len(better_on_own) == 30, "of 30 cases (five penalties, six comparisons)")
    say("own-better", sum(better_on_own))
    say("own-ci", sum(better_on_ci))
    is_one = len(exceptions) == 1 == 6 - counts.loc["C8", "corrected"].value
    guard(is_one, "Corrected, repeat by repeat, the exception is one")
    say("C8-who", ", ".join(exceptions))


# Fourteen comparisons


def show_winners(every: Tables, metric: str) -> HTML:
    """Who has the lowest mean of a metric in fourteen comparisons; shaded: a DRO method.

    Parameters
    ----------
    every : dict
        Of :func:`other_tables`.
    metric : {"ci_percent", "f_a"}

    Returns
    -------
    HTML
    """
    views = claims.IN_ORDER[2:]
    head = "".join(f"<th>{view}</th>" for view in views)
    body = ""
    for dataset, attribute in claims.PAIRS:
        for model in protocol.MODELS:
            body += f"<tr><th>{dataset.upper()} {attribute}, {model}</th>"
            for view in views:
                table = every[(dataset, attribute), view]
                means = by_method(table[table["model"] == model], metric)
                winner = means.idxmin()
                name = winner.replace("&", "&amp;").replace("_cap", "_∩")
                shade = "win" if "DRO-COX" in winner else ""
                body += f'<td class="{shade}">{name} <small>{means[winner]:.2f}</small></td>'
            body += "</tr>"
    return HTML(
        f"<table><thead><tr><th>comparison</th>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def tell_winners(every: Tables) -> None:
    """For "Fourteen comparisons": both tables of winners, and the table of counts.

    Parameters
    ----------
    every : dict
        Of :func:`other_tables`.
    """
    for metric in ("ci_percent", "f_a"):
        keep(f"winners-{metric}", show_winners(every, metric))
        of_all = {}
        for view, short in SHORT.items():
            of_main = claims.best(view, metric=metric, pairs=claims.MAIN_PAIRS)
            of_all[view] = claims.best(view, metric=metric, pairs=claims.PAIRS)
            say(f"wins-{metric}-6-{short}", of_main.value)
            is_known = of_all[view].of == 14
            say(f"wins-{metric}-14-{short}", of_all[view].value if is_known else "–")
        near_luck = all(3 <= of_all[view].value <= 6 for view in claims.IN_ORDER[4:])
        guard(near_luck, f"corrected, wins are about what luck gives, 3.5 of 14: {metric}")
        above = all(6 <= of_all[view].value <= 8 for view in claims.IN_ORDER[2:4])
        guard(above, f"on the published splits, about half of 14 are won: {metric}")


# Exercises


def tell_front(times: pd.Series) -> None:
    """For the exercise "without a rule": who is always on the front.

    Parameters
    ----------
    times : Series
        By method: in how many of six comparisons it is on the front.
    """
    always = times.index[times == 6]
    only_two = list(always) == ["Cox_I(Keya)", "Cox_I(R&P)"]
    guard(only_two, "Only Cox_I(Keya) and Cox_I(R&P) are always there")
    say("front-always", " and ".join(always))
    say("front-dro", " and ".join(str(times[method]) for method in claims.DRO["linear"]))


def tell_luck(table: pd.DataFrame, comparisons: list[str]) -> None:
    """For the exercise "lower, or luckily lower?".

    Parameters
    ----------
    table : DataFrame
        By comparison: the printed lead of DRO-COX, and our signed gaps, corrected.
    comparisons : list of str
        What the printed leads belong to: "FLC (age), linear" is "flc age linear" in ``table``.
    """
    names = [re.sub("[(),]", "", name).lower() for name in comparisons]
    guard(names == list(table.index), "the printed leads stand beside ours")
    half = table["difference_half"]
    within = (table["difference"].abs() < half).all()
    guard(within, "None is larger than the half-width of its 95 % interval")
    guard((table["printed"] < half).all(), "The printed leads are smaller than that too")
    say("lucky-printed", f"{table['printed'].min():.2f} to {table['printed'].max():.2f}")
    say("lucky-half", f"{half.min():.2f} to {half.max():.2f}")
