"""The chapter *Rivals on equal terms*: values of its sentences, and guards that they hold.

What is firm, the drawings and the tables are in :mod:`drocox.chapters.rivals`.
"""

import numpy as np
import pandas as pd
from scipy import stats

from drocox.beyond.free import free_baseline
from drocox.beyond.methods import CROSSED, STOPPED, YEARS
from drocox.bookstyle import guard, say
from drocox.chapters.rivals import (
    AGE,
    ALONE,
    GENTLE,
    LEAGUE,
    PAPER,
    ROUNDING,
    firm,
    in_errors,
    of_league,
    pair_name,
    plus_minus,
    together_bar,
)
from drocox.paper.comparisons import MAIN_PAIRS, PAIRS
from drocox.paper.prepare import prepare
from drocox.paper.signed import CLOSER, FARTHER, MOVED

TOLD = ("group weights", "group DRO", "group DRO by regret")
SHRUNK = ("Cox", PAPER, "shrunken Cox")


def _listed(pairs: list[tuple[str, str]]) -> str:
    return ", ".join(pair_name(*pair) for pair in pairs) or "none"


def tell_pairs(runs: pd.DataFrame) -> None:
    """For *Seven pairs in one picture*: where Cox itself has a gap.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.
    """
    cox = runs.xs("Cox", level="method")
    with_gap = [pair for pair in PAIRS if abs(in_errors(cox.loc[[pair]], "ci")[0]) > ALONE]
    guard(set(with_gap) == {AGE, ("flc", "gender"), ("support", "race")}, "a gap on three pairs")
    guard(not set(with_gap) & set(MAIN_PAIRS), "not among those of the paper's main tables")
    say("gap-pairs", _listed(with_gap))
    say("gap-count", len(with_gap))
    for pair in with_gap:
        say("gap-" + "-".join(pair), plus_minus(cox.loc[pair], "ci"))
    strict = stats.norm.ppf(1 - 0.025 / len(PAIRS))
    firm_gaps = [pair for pair in PAIRS if abs(in_errors(cox.loc[[pair]], "ci")[0]) > strict]
    guard(firm_gaps == [AGE], "for seven looks only that of SUPPORT by age is told from 0")
    barely = (
        abs(cox.loc[("support", "race"), "ci"])
        < 1.05 * ALONE * cox.loc[("support", "race"), "ci_se"]
    )
    guard(barely, "and that of SUPPORT by race barely")


def tell_league(runs: pd.DataFrame) -> None:
    """For *What the league says*.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.
    """
    league = of_league(runs)
    say("league-rivals", len(LEAGUE))
    say("league-compared", len(league))
    say("league-bar", f"{together_bar(league):.1f}")
    _tell_closing(league)
    _tell_told(league)
    _tell_elsewhere(league)
    _tell_ranks(league)
    _tell_shrinkage(runs)
    _tell_adam(runs)


def _tell_closing(league: pd.DataFrame) -> None:
    """SUPPORT by age."""
    gentle = league.loc[(*AGE, GENTLE)]
    paper = league.loc[(*AGE, PAPER)]
    guard(gentle["together"] == CLOSER, "closer to equal, over all comparisons of the league")
    guard(paper["alone"] == CLOSER, "the paper's constant: closer to equal if looked at alone")
    guard(paper["together"] == MOVED, "over the whole league it has moved, perhaps past equality")
    half = league.loc[(*AGE, "CVaR 0.5")]
    guard(half["alone"] == CLOSER, "CVaR at 0.5 closes, too")
    free = abs(gentle["c_diff"]) < ALONE * gentle["c_diff_se"]
    guard(free and gentle["c_diff_se"] < 0.25, "at no cost in ranks that can be seen")
    costs = paper["c_diff"] < -ALONE * paper["c_diff_se"]
    guard(costs, "the paper's constant costs ranks")
    same = league.loc[(*AGE, "DRO-COX (SPLIT), sharp 0.5")]
    guard(abs(same["ci_diff"] - gentle["ci_diff"]) < 0.05, "splitting changes nothing")
    stopped = league.loc[(*AGE, STOPPED)]
    guard(stopped["ci_diff"] < 0.5 * paper["ci_diff"], "equally bad ranks keep most of the gap")
    guard(abs(stopped["c"] - paper["c"]) < 0.5, "a Cox model with ranks as bad as DRO-COX's")
    for name, row in (("gentle", gentle), ("paper", paper), ("cvar", half), ("stopped", stopped)):
        say(f"age-{name}-gap", plus_minus(row, "ci_diff"))
        say(f"age-{name}-c", plus_minus(row, "c_diff"))
        say(f"age-{name}-sum", plus_minus(row, "ci_sum"))


def _tell_told(league: pd.DataFrame) -> None:
    """Those who are told the groups, on SUPPORT by age."""
    rows = league.loc[AGE].loc[list(TOLD)]
    weights, groups, regret = (rows.loc[name] for name in TOLD)
    gentle = league.loc[(*AGE, GENTLE)]
    for row in (weights, groups):
        guard(0 < row["ci_diff"] < 0.6 * gentle["ci_diff"], "told the groups, less than that")
        guard(row["c_diff"] < -1 and row["slope"] < 0.5, "at a high price")
    guard(regret["ci_diff"] < 0.05, "by regret nothing")
    say("told-gap", f"{groups['ci_diff']:.1f} to {weights['ci_diff']:.1f}")
    say("told-c", f"{min(weights['c_diff'], groups['c_diff']):.1f}")
    say("told-oe", f"{groups['oe_0']:.1f} to {weights['oe_0']:.1f}")


def _tell_elsewhere(league: pd.DataFrame) -> None:
    """The six other pairs."""
    others = league.drop(AGE)
    robust = others[others.index.get_level_values("method").isin([GENTLE, PAPER])]
    guard(not (robust["together"] == CLOSER).any(), "elsewhere nothing is told")
    closer = league[league["together"] == CLOSER]
    names = [method for _, _, method in closer.index]
    say("closer-names", ", ".join(names))
    guard(set(closer.index.droplevel("method")) == {AGE}, "only there anybody comes closer")
    say("closer-count", len(closer))
    say("closer-alone", int((league["alone"] == CLOSER).sum()))
    farther = league[league["together"] == FARTHER]
    away = [f"{method} on {pair_name(d, a)}" for d, a, method in farther.index]
    say("farther", ", ".join(away) or "none")
    moved = league[league["together"] == MOVED].drop(AGE, errors="ignore")
    say("moved-elsewhere", ", ".join(f"{m} on {pair_name(d, a)}" for d, a, m in moved.index))


def _tell_ranks(league: pd.DataFrame) -> None:
    higher, lower = firm(league, "c")
    guard(higher.empty, "nobody ranks better, all comparisons looked at")
    say("c-lose", len(lower))
    say("c-lose-pairs", len(set(lower.index.droplevel("method"))))
    strong = [name for name in LEAGUE if name.startswith("DRO-COX") and "0.5" not in name]
    tuned = [name for name in strong if "sharp" not in name]
    lost = lower.loc[AGE].index
    guard(set(tuned) <= set(lost), "with the paper's constant all forms lose ranks on SUPPORT")
    gentle = league.xs(GENTLE, level="method")
    least = gentle["c_diff"] - ALONE * gentle["c_diff_se"]
    guard(least.min() > -0.3, "the gentle form loses hardly a rank anywhere")
    say("gentle-c-least", f"{-least.min():.1f}")
    helped, _ = firm(league, "worst")
    guard(helped.empty, "the worst group found, which nobody helps")
    paper = league.xs(PAPER, level="method").loc[AGE]
    say("worst-support", f"{-paper['worst_diff']:.1f}")
    guard(paper["worst_diff"] < -ALONE * paper["worst_diff_se"], "DRO-COX loses there")


def _tell_shrinkage(runs: pd.DataFrame) -> None:
    main = runs.loc[[(*pair, method) for pair in MAIN_PAIRS for method in SHRUNK]]
    cox = main.xs("Cox", level="method")
    dro = main.xs(PAPER, level="method")
    shrunken = main.xs("shrunken Cox", level="method")
    guard((shrunken["c_diff"].abs() < ROUNDING).all(), "shrunken scores change no rank")
    guard((shrunken["f_a"] < 1.3 * dro["f_a"]).all(), "shrunken Cox has DRO-COX's F_A")
    guard((shrunken["f_a"] < 0.5 * cox["f_a"]).all(), "shrunken Cox has far less F_A than Cox")
    guard(((cox["slope"] - 1).abs() < 0.1).all(), "Cox's slope is near 1")
    guard((dro["slope"] > 1.15).all(), "DRO-COX's scores should be larger")
    guard((dro["ibs"] > cox["ibs"]).all(), "DRO-COX has the worse Brier score")
    support = ("support", "gender")
    dearer = shrunken.loc[support, "slope"] > 1.3 * dro.loc[support, "slope"]
    guard(dearer, "on SUPPORT the shrunken scores are further off than DRO-COX's")
    for name, rows in (("cox", cox), ("dro", dro), ("shrunken", shrunken)):
        say(f"fa-{name}", ", ".join(f"{rows.loc[pair, 'f_a']:.2f}" for pair in MAIN_PAIRS))
        say(f"slope-{name}", ", ".join(f"{rows.loc[pair, 'slope']:.1f}" for pair in MAIN_PAIRS))


def _tell_adam(runs: pd.DataFrame) -> None:
    c = runs["c"]
    apart = []
    for pair in PAIRS:
        for method in (PAPER, "DRO-COX (SPLIT)"):
            apart.append(abs(c[(*pair, method)] - c[(*pair, f"{method}, Adam")]))
    guard(max(apart) < 0.25, "Adam is not the culprit")
    say("adam-apart", f"{max(apart):.2f}")


def tell_groups(runs: pd.DataFrame) -> None:
    """For *Who levels up, who levels down*.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.
    """
    rows = runs.loc[AGE]
    cox = rows.loc["Cox"]
    say("own-cox", f"{cox['own_0']:.1f} and {cox['own_1']:.1f}")
    gentle = rows.loc[GENTLE]
    paper = rows.loc[PAPER]
    guard(_sides(gentle) == (-1, 1), "sharp 0.5 gives to the over-65s what the younger lose")
    guard(_sides(paper) == (-1, 0), "the paper's constant takes from the younger, gives nothing")
    guard(_sides(rows.loc["CVaR 0.5"]) == (-1, 1), "CVaR does the same on a smaller scale")
    guard(_sides(rows.loc[CROSSED]) == (0, 1), "interactions give and take nothing away")
    guard(_sides(rows.loc[YEARS]) == (0, 1), "so does age in years")
    guard(_sides(rows.loc[STOPPED]) == (-1, -1), "stopping early takes from both")
    models = (("gentle", gentle), ("paper", paper), ("crossed", rows.loc[CROSSED]))
    for name, row in (*models, ("years", rows.loc[YEARS]), ("stopped", rows.loc[STOPPED])):
        for group in (0, 1):
            say(f"own-{name}-{group}", plus_minus(row, f"own_{group}_diff"))
        say(f"gap-{name}", plus_minus(row, "ci_diff"))
    for name, row in models[:2]:
        say(f"oe-{name}", f"{row['oe_0']:.2f} and {row['oe_1']:.2f}")
    off = min(gentle["oe_1"], paper["oe_1"]) > 1.05 and max(gentle["oe_0"], paper["oe_0"]) < 0.95
    guard(off, "over-65s die more often than robust models say, the younger less")
    right = rows.loc[[CROSSED, YEARS], ["oe_0", "oe_1"]]
    guard((right - 1).abs().max().max() < 0.03, "models of the groups' differences are right")
    guard(gentle["slope"] > 2, "scores at sharp 0.5 are less than half as large as they should be")
    say("slope-gentle", f"{gentle['slope']:.1f}")
    seer = runs.loc[("seer", "age", CROSSED)]
    guard(_sides(seer) == (0, -1), "on SEER interactions take from the over-65s")
    say("seer-crossed-1", plus_minus(seer, "own_1_diff", 1))
    # what robust training adds to a model that has been told more
    for name, method in (("years", "DRO-COX, sharp 0.5, age in years"),
                         ("crossed", "DRO-COX with interactions, sharp 0.5")):  # fmt: skip
        say(f"more-{name}", plus_minus(rows.loc[method], "ci_diff"))
    more = rows.loc["DRO-COX, sharp 0.5, age in years"]
    guard(0 < more["ci_diff"] < gentle["ci_diff"], "with age in years there is less to gain")


def _sides(row: pd.Series) -> tuple[int, int]:
    """Whether either group's own c-index rose (1), fell (-1), or cannot be told (0), alone."""
    out = []
    for group in (0, 1):
        difference = row[f"own_{group}_diff"]
        told = abs(difference) > ALONE * row[f"own_{group}_diff_se"]
        out.append(int(np.sign(difference)) if told else 0)
    return out[0], out[1]


def tell_censoring(runs: pd.DataFrame) -> None:
    """For *Is it the censoring?*: weighted versions beside Harrell's.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study, by data set, attribute and method.
    """
    rows = runs.loc[AGE]
    gentle = rows.loc[GENTLE]
    paper = rows.loc[PAPER]
    for name, row in (("gentle", gentle), ("paper", paper)):
        say(f"weighted-{name}-gap", plus_minus(row, "ci_weighted_diff"))
        say(f"uno-{name}-c", plus_minus(row, "uno_diff"))
        for group in (0, 1):
            say(f"uno-{name}-{group}", plus_minus(row, f"uno_{group}_diff"))
    say("weighted-cox", plus_minus(rows.loc["Cox"], "ci_weighted"))
    closes = gentle["ci_weighted_diff"] > ALONE * gentle["ci_weighted_diff_se"]
    guard(closes and rows.loc["Cox", "ci_weighted"] < -1, "the gap and its closing stay")
    less = gentle["uno_diff"] < gentle["c_diff"] and paper["uno_diff"] < paper["c_diff"]
    guard(less, "ranks look worse by Uno's weights")
    within = abs(gentle["uno_diff"]) < ALONE * gentle["uno_diff_se"]
    guard(within, "still not told from 0")
    guard(gentle["uno_0_diff"] < gentle["own_0_diff"] < 0, "the younger lose more")
    crossed = rows.loc[CROSSED]
    vanishes = abs(crossed["ci_weighted_diff"]) < ALONE * crossed["ci_weighted_diff_se"]
    guard(vanishes, "what interactions close is not told from 0 any more")
    say("weighted-crossed-gap", plus_minus(crossed, "ci_weighted_diff"))
    race = runs.loc[("support", "race", "Cox")]
    gone = abs(race["ci_weighted"]) < ALONE * race["ci_weighted_se"]
    guard(gone, "SUPPORT by race has no gap that is told from 0 with weights")
    say("weighted-race", plus_minus(race, "ci_weighted"))
    gender = runs.loc[("flc", "gender", "Cox")]
    stays = abs(gender["ci_weighted"]) > ALONE * gender["ci_weighted_se"]
    guard(stays, "FLC by gender keeps it")
    say("weighted-gender", plus_minus(gender, "ci_weighted"))


def guard_null_model() -> None:
    """The sentence that at α = 0.2 L-BFGS stops next to the null model on SUPPORT."""
    train = prepare("corrected", "support", 1)
    time = train.train.time
    event = train.train.event
    coef, risk, bound = free_baseline(train.X[0], time, event, 0.2, n_iter=1000)
    guard(risk - bound > 1e-3, "at 0.2 L-BFGS stops without a certificate")
    guard(np.linalg.norm(coef) < 0.01, "it stops next to the null model")
    equal_losses = np.log(len(np.unique(time[event])))
    guard(abs(risk - equal_losses) < 0.02, "there all deaths have the log of the event times")


def tell_detectable(detectable: pd.DataFrame) -> None:
    """For *How small a difference could be seen?*

    Parameters
    ----------
    detectable : DataFrame
        Of :func:`~drocox.chapters.rivals.shown_detectable`.
    """
    gap = detectable[f"{PAPER}: gap"]
    gentle = detectable[f"{GENTLE}: gap"]
    guard(gap.min() > 0.05, "tenths of a point are the smallest that can be seen")
    guard((gentle < gap).all(), "a gentle model stays nearer to Cox, so that less can be seen")
    say("see-least", f"{gap.min():.1f}")
    say("see-most", f"{gap.max():.1f}")
    say("see-gentle-most", f"{gentle.max():.1f}")
