"""Tuned by F_A (T9 to T15): tables, values for sentences, guards, and the figure of costs.

``every`` are the chapter's tables, by view, data set, attribute and goal of the tuning ("CI" or
"F_A"), each indexed by model, method and metric.
"""

from itertools import product

import numpy as np
import pandas as pd

from drocox import accuracy
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import dashed, judged, keep_unpublished
from drocox.paper import claims, protocol, selection, store, tables
from drocox.paper.prepare import prepare

PLAIN = list(protocol.PLAIN.values())
Tables = dict[tuple[str, str, str, str], pd.DataFrame]


def keep_tables(every: Tables) -> None:
    """Lay out T9 to T15 in three views.

    Parameters
    ----------
    every : dict
        Tables by view, data set, attribute and goal.
    """
    for exhibit, (dataset, attribute, tune_by) in tables.EXHIBITS.items():
        if tune_by == "f_a":
            for view in tables.VIEWS:
                table = every[view, dataset, attribute, "F_A"].reset_index()
                keep_unpublished(exhibit, view, table)


# Who has the best F_A?


def tell_claim() -> None:
    """For the paragraph on claim C11: counts, verdicts, and where one setting fails."""
    claim = claims.claims()["C11"]
    say("c11-partly", claim["partly"])
    say("c11-need", claim["reproduced"])
    for view in claims.IN_ORDER[2:]:
        result = judged("C11", view)
        say(f"c11-{dashed(view)}", result.number)
        say(f"c11-{dashed(view)}-verdict", result.words)


def tell_one_setting(lead: pd.Series) -> None:
    """For "(with one setting on SEER too)".

    Parameters
    ----------
    lead : Series
        Mean lead of DRO in F_A by comparison, corrected, one setting.
    """
    behind = {name.split()[0] for name in lead.index[lead <= 0]}
    guard(behind == {"support", "seer"}, "all exceptions are on SUPPORT (with one setting SEER)")


def tell_exceptions(winners: pd.DataFrame) -> None:
    """For "Repeat by repeat all exceptions are on SUPPORT" and who wins there.

    Parameters
    ----------
    winners : DataFrame of str
        Pair by view and model: the method with the lowest F_A.
    """
    lost = ~winners.apply(lambda names: names.str.contains("DRO"))
    rivals = set(winners.to_numpy()[lost.to_numpy()])
    by_keya = rivals == {"Cox_I(Keya)", "DeepSurv_I(Keya)"}
    guard(by_keya, "the winner there is always the individual penalty of Keya et al.")
    on_support = winners.index.str.startswith("support")
    stated = (lost["stated rule", "linear"] == on_support).all()
    guard(stated, "by the stated rule for linear models")
    guard(not lost["stated rule", "nonlinear"].any(), "by the stated rule for linear models only")
    corrected = [(lost["corrected", model] == on_support).all() for model in protocol.MODELS]
    guard(all(corrected), "corrected for both kinds")


def lead_in_f_a(every: Tables) -> pd.Series:
    """F_A of the best baseline over that of the best DRO variant, corrected, tuned by F_A.

    Parameters
    ----------
    every : dict
        As in :func:`keep_tables`.

    Returns
    -------
    Series
        By data set, attribute and model; above 1 where DRO is ahead.
    """
    ratios = {}
    for pair in claims.PAIRS:
        f_a = every["corrected", *pair, "F_A"]["mean"].xs("f_a", level="metric")
        for model in protocol.MODELS:
            ours = f_a[model][claims.DRO[model]].min()
            theirs = f_a[model][claims.BASELINES[model]].min()
            ratios[*pair, model] = theirs / ours
    return pd.Series(ratios)


def tell_factors(ahead: pd.Series) -> None:
    """For the factors by which F_A is smaller, and the two ties on SEER.

    Parameters
    ----------
    ahead : Series
        Of :func:`lead_in_f_a`.
    """
    behind = 1 / ahead["support"]
    ties = ahead["seer"].xs("nonlinear", level=1)
    clear = pd.concat([ahead["flc"], ahead["seer"].xs("linear", level=1)])
    guard(((ties > 1) & (ties < 1.03)).all(), "the two networks on SEER are ties")
    guard(clear.min() > 3, "in the other six its F_A is smaller by a factor")
    guard(behind.min() > 3, "an F_A that is smaller than the best DRO variant's by a factor")
    say("behind-low", f"{behind.min():.1f}")
    say("behind-high", f"{behind.max():.1f}")
    say("tie", f"{100 * (ties.max() - 1):.0f}")
    say("clear-low", f"{clear.min():.1f}")
    say("clear-high", f"{clear.max():.0f}")


def tell_offer(offer: pd.DataFrame) -> None:
    """For "What is special about SUPPORT?".

    Parameters
    ----------
    offer : DataFrame
        By method and knob (alpha or lambda): eligible repeats of ten, and means of c, F_A, LPL.
    """
    dro = offer.loc["DRO-COX"]
    penalty = offer.loc["Cox_I(Keya)"].loc[1.0]
    smallest = (dro["F_A"].iloc[:3] < penalty["F_A"]).all()
    guard(smallest, "Small α gives DRO-COX the smallest F_A of all")
    rarely = dro["eligible"].iloc[:4].max() <= 1
    guard(rarely, "the bar on the c-index lets it pass in hardly any of the ten repeats")
    guard(dro.loc[0.5, "eligible"] == 10, "what passes is mostly α = 0.5")
    guard(penalty["eligible"] == 10, "The penalty at λ = 1 passes always")
    guard(penalty["LPL"] < dro.loc[0.5, "LPL"], "it shrinks the scores")
    guard(penalty["c"] > dro["c"].max(), "and leaves their order alone")
    say("small-fa", f"{dro['F_A'].min():.4f}")
    say("strong-fa", f"{penalty['F_A']:.4f}")
    say("half-fa", f"{dro.loc[0.5, 'F_A']:.4f}")


def tell_costs(corrected: pd.DataFrame, stated: pd.DataFrame) -> None:
    """For the paragraph on what each tuning gains and costs.

    Parameters
    ----------
    corrected, stated : DataFrame
        As in :func:`draw_costs`, with the change of the c-index, in two views.
    """
    helped_f_a = corrected["F_A"] > 1
    helped_ci = corrected["CI"] > 1
    say("helped-fa", int(helped_f_a.sum()))
    say("helped-ci", int(helped_ci.sum()))
    say("cost-n", len(corrected))
    say("median-fa", f"{corrected['F_A'].median():.2f}")
    say("median-ci", f"{corrected['CI'].median():.2f}")
    say("median-c", f"{corrected['c-index'].median():.4f}")
    guard(len(corrected) == 98, "each of the 14 tuned methods on each of the seven pairs")
    guard(helped_f_a.all(), "Tuning by F_A gave the smaller test F_A in all cases")
    coin = 0.98 < corrected["CI"].median() < 1.03 and 0.4 < helped_ci.mean() < 0.6
    guard(coin, "hardly better than a coin")
    guard(-0.01 < corrected["c-index"].median() < 0, "It costs little in c-index")
    by_kind = corrected.groupby(["model", "DRO"])["F_A"].median().unstack()
    guard((by_kind[True] > by_kind[False]).all(), "and a larger one for DRO variants")
    say("stated-fa", int((stated["F_A"] > 1).sum()))
    say("stated-ci", int((stated["CI"] > 1).sum()))
    guard((stated["CI"] > 1).mean() < 0.5, "tuning by CI bought nothing")


def tell_agreement(agree: pd.DataFrame) -> None:
    """For "The table says why".

    Parameters
    ----------
    agree : DataFrame
        Correlations of validation and test within each grid, of ci_percent and f_a.
    """
    say("rho-ci", f"{agree['ci_percent'].mean():.2f}")
    say("rho-fa", f"{agree['f_a'].mean():.2f}")
    guard(agree["f_a"].mean() > 0.9, "validation patients rank the models almost as test patients")
    guard(agree["ci_percent"].mean() < 0.2, "CI depends on which patients happened to die")


def tell_learned(learned: pd.Series, winners: pd.DataFrame, strongest: pd.Series) -> None:
    """For "the method with the best F_A is also the one that has learned least", and λ = 1.

    Parameters
    ----------
    learned : Series
        Of :func:`share_learned`.
    winners : DataFrame of str
        As in :func:`tell_exceptions`.
    strongest : Series
        By goal: share of λ = 1 among penalised models.
    """
    of_winner = []
    is_least = []
    for pair, model in product(winners.index, protocol.MODELS):
        share = learned["F_A", pair, model]
        winner = winners.loc[pair, ("corrected", model)]
        of_winner.append(share[winner])
        is_least.append(share[winner] <= share.min() + 0.5)
    say("least", sum(is_least))
    guard(all(is_least), "In all comparisons the method with the best F_A has learned least")
    say("winner-low", f"{min(of_winner):.0f}")
    say("winner-high", f"{max(of_winner):.0f}")
    say("lam-fa", f"{100 * strongest['F_A']:.0f}")
    say("lam-ci", f"{100 * strongest['CI']:.0f}")


def tell_test_parts(constant: pd.Series) -> None:
    """The test parts of :func:`constant_lpl` are the protocol's.

    Parameters
    ----------
    constant : Series
        Of :func:`constant_lpl`.
    """
    test = prepare("corrected", "seer", 1).test
    lpl = accuracy.log_partial_likelihood(np.zeros(len(test)), test.time, test.event)
    guard(np.isclose(constant["seer", 1], lpl), "the gain in test LPL over constant scores")


def smallest_passing_alpha(pair: tuple[str, str], method: str) -> pd.Series:
    """The smallest alpha that keeps 95 % of the validation c-index, corrected.

    Parameters
    ----------
    pair : (data set, attribute)
    method : str
        A DRO variant.

    Returns
    -------
    Series
        By repeat; only those in which some alpha passes.
    """
    grid = selection.candidates(store.load_runs("corrected"), *pair)
    plain = protocol.PLAIN[protocol.METHODS[method].model]
    bar = 0.95 * grid[grid["method"] == plain].groupby("repeat")["val_c_index"].max()
    models = grid[grid["method"] == method]
    passing = models[models["val_c_index"] >= models["repeat"].map(bar)]
    return passing.groupby("repeat")["alpha"].min()


def tell_smallest_alpha(picked: pd.DataFrame) -> None:
    """For "F_A picks for a DRO variant the smallest α that passes the bar".

    Parameters
    ----------
    picked : DataFrame
        As in :func:`share_learned`.
    """
    dro = picked[(picked["tuned"] == "F_A") & picked["alpha"].notna()]
    hits = 0
    for pair, model in product(claims.PAIRS, protocol.MODELS):
        for method in claims.DRO[model]:
            smallest = smallest_passing_alpha(pair, method)
            runs = dro[(dro["method"] == method) & (dro["pair"] == " ".join(pair))]
            hits += int((runs["alpha"].to_numpy() == smallest.reindex(runs["repeat"])).sum())
    guard(len(dro) == 280, "F_A picks for a DRO variant: 4 variants, 7 pairs, 10 repeats")
    guard(hits > 250, "F_A picks for a DRO variant the smallest α that passes the bar")
    say("smallest-alpha", f"{100 * hits / len(dro):.0f}")


# The constant of a network


def tell_shift(factor: pd.Series, same: int) -> None:
    """For "A factor above 1 is fairness that came from the constant".

    Parameters
    ----------
    factor : Series
        Centred F_A over F_A, by pair and method.
    same : int
        In how many pairs the winner stays the same.
    """
    pair, method = factor.idxmax()
    dataset, attribute = pair.split()
    say("shift-largest", f"{factor.max():.1f}")
    say("shift-method", method)
    say("shift-pair", f"{dataset.upper()}, {attribute}")
    say("shift-same", same)
    medians = factor.groupby("method", sort=False).median()
    is_dro = medians.index.str.contains("DRO")
    guard(medians[is_dro].between(0.95, 1.05).all(), "next to nothing for DRO")
    penalised = medians[~is_dro].drop("DeepSurv")
    guard(penalised.min() > 1.05, "in the median for penalised networks")
    say("shift-low", f"{penalised.min():.1f}")
    say("shift-high", f"{penalised.max():.1f}")


def tell_constant(runs: dict[str, pd.DataFrame]) -> None:
    """For F_I of DeepSurv_I(Keya) on SUPPORT, with and without the constant.

    Parameters
    ----------
    runs : dict of DataFrame
        Stored runs by protocol.
    """
    for name, frame in runs.items():
        of_method = (frame["dataset"] == "support") & (frame["method"] == "DeepSurv_I(Keya)")
        of_setting = (frame["lam"] == 1) & (frame["learning_rate"] == 0.001)
        means = frame.loc[of_method & of_setting, ["test_f_i", "test_f_i_centred"]].mean()
        say(f"{name}-f_i", f"{means['test_f_i']:.3f}")
        say(f"{name}-f_i_centred", f"{means['test_f_i_centred']:.3f}")
        served = means["test_f_i_centred"] > 10 * means["test_f_i"]
        guard(served == (name == "as_published"), "its penalty was served by a shift")


# Exercises


def tell_luck(halves: pd.DataFrame) -> None:
    """For the exercise "report both, tune by one?": what a larger grid gains.

    Parameters
    ----------
    halves : DataFrame
        By pair: CI of the whole grid and of half of it, on validation and on test data.
    """
    for part in ("val", "test"):
        saved = halves[f"{part}, 9"] - halves[f"{part}, 18"]
        say(f"luck-{part}", int((saved > 0).sum()))
        say(f"luck-{part}-by", f"{saved.mean():.2f}")
    smaller = (halves["val, 18"] < halves["val, 9"]).all()
    guard(smaller, "The larger grid has the smaller CI on validation data")
