"""The chapter *How sure are we?*: what a larger grid is worth.

The stated rule ranks the m configurations of a grid; of any subset it takes the first. With k
configurations drawn at random from the grid, rank p is taken with probability

.. math:: \\binom{m - p}{k - 1} \\Big/ \\binom{m}{k}

(:func:`taken`), which gives the expected outcome at equal budgets without a single draw.
"""

from collections.abc import Mapping
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import comb

from drocox.bookstyle import guard, say
from drocox.chapters.sentences import WRITTEN
from drocox.chapters.uncertainty import chosen
from drocox.chapters.uncertainty_paired import interval
from drocox.explorables.results import family
from drocox.paper import protocol, selection, store
from drocox.paper.claims import BASELINES, DRO, MAIN_PAIRS, PAIRS
from drocox.tuning import KEPT

BUDGETS = ("random", 3, 9, 18)
KIND_OF_FAMILY = {
    "plain": "Cox, DeepSurv",
    "penalised": "penalised",
    "DRO-COX": "DRO-COX",
    "SPLIT": "DRO-COX (SPLIT)",
}
KINDS = tuple(KIND_OF_FAMILY.values())


def kind_of(method: str) -> str:
    """Which of the four kinds of the chapter's tables a method is.

    Parameters
    ----------
    method : str

    Returns
    -------
    str
    """
    return KIND_OF_FAMILY[family(method)]


def taken(m: int, k: int) -> np.ndarray:
    """Chances of the ranks 1 to m to be the first of k; no more than m can be tried.

    Parameters
    ----------
    m, k : int
        Configurations of the grid, and of the subset.

    Returns
    -------
    array of shape (m,)
    """
    tried = min(k, m)
    return comb(m - np.arange(1, m + 1), tried - 1) / comb(m, tried)


def ranked(rows: pd.DataFrame, plain: pd.DataFrame, is_plain: bool) -> tuple:
    """A grid in the order of the stated rule: eligible ones by validation CI, then by c-index.

    Parameters
    ----------
    rows, plain : DataFrame
        Runs of the method and of Cox or DeepSurv, repeat by repeat.
    is_plain : bool
        Whether the method is Cox or DeepSurv, which goes by c-index.

    Returns
    -------
    tuple of three arrays of shape (repeats, ranks)
        Validation CI, test CI, eligible.
    """
    c = rows["val_c_index"].to_numpy().reshape(10, -1)
    ci = rows["val_ci_percent"].to_numpy().reshape(10, -1)
    test_ci = rows["test_ci_percent"].to_numpy().reshape(10, -1)
    best = plain["val_c_index"].to_numpy().reshape(10, -1).max(axis=1, keepdims=True)
    eligible = (c >= KEPT * best) | is_plain
    by_ci = eligible & (not is_plain)
    order = np.lexsort((-c, np.where(by_ci, ci, -c), ~by_ci), axis=1)
    in_order = [np.take_along_axis(values, order, axis=1) for values in (ci, test_ci, eligible)]
    return tuple(in_order)


def ranked_grids() -> dict:
    """The grids of every method on every pair, by :func:`ranked`, checked against the tables.

    Returns
    -------
    dict
        Keys (view, data set, attribute, method).
    """
    grids = {}
    for which in protocol.PROTOCOLS:
        runs = store.load_runs(which)
        for dataset, attribute in PAIRS:
            rows = selection.candidates(runs, dataset, attribute)
            of_method = dict(list(rows.groupby("method")))
            for name, method in protocol.METHODS.items():
                plain = protocol.PLAIN[method.model]
                grid = ranked(of_method[name], of_method[plain], name == plain)
                in_table = chosen(dataset, attribute, "ci_percent", which)[name]
                guard(np.allclose(grid[1][:, 0], in_table), "k = m gives the tables")
                grids[which, dataset, attribute, name] = grid
    for which in protocol.PROTOCOLS:
        sizes = [
            grids[which, "flc", "age", m][0].shape[1] for m in ("Cox", "Cox_I(Keya)", "DRO-COX")
        ]
        guard(sizes == [3, 9, 18], "DRO-COX chooses among 18 configurations, Cox among 3")
    return grids


def check_subsets(grids: Mapping, dataset: str, attribute: str) -> None:
    """The formula against all 84 subsets of 3 out of 9, by the package's own rule.

    Parameters
    ----------
    grids : mapping
        From :func:`ranked_grids`.
    dataset, attribute : str
    """
    rows = selection.candidates(store.load_runs("as_published"), dataset, attribute)
    rows = rows[rows["repeat"] == 1]
    nine = rows[rows["method"] == "Cox_G(Keya)"]
    cox = rows[rows["method"] == "Cox"]
    outcomes = []
    for subset in combinations(range(9), 3):
        picked = selection.select(nine.iloc[list(subset)], cox, "stated CI")
        outcomes.append(picked["test_ci_percent"].item())
    exact = grids["as_published", dataset, attribute, "Cox_G(Keya)"][1][0] @ taken(9, 3)
    guard(np.isclose(np.mean(outcomes), exact), "rank p is taken with the stated probability")


def at_random(values: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """Mean of the eligible configurations in each repeat; where none is, the first of the ranking.

    Parameters
    ----------
    values, eligible : array of shape (repeats, ranks)

    Returns
    -------
    array of shape (repeats,)
    """
    mean = (values * eligible).sum(1) / np.maximum(eligible.sum(1), 1)
    return np.where(eligible.any(1), mean, values[:, 0])


def outcome(grid: tuple, budget: int | str) -> float:
    """Mean over repeats of the test CI at a budget, or of a choice at "random".

    Parameters
    ----------
    grid : tuple
        From :func:`ranked`.
    budget : int or "random"

    Returns
    -------
    float
    """
    test_ci, eligible = grid[1], grid[2]
    if budget == "random":
        return at_random(test_ci, eligible).mean()
    return test_ci.mean(0) @ taken(test_ci.shape[1], budget)


def at_budgets(grids: Mapping) -> pd.DataFrame:
    """:func:`outcome` of every grid at every budget.

    Parameters
    ----------
    grids : mapping
        From :func:`ranked_grids`.

    Returns
    -------
    DataFrame
        Indexed by view, data set, attribute and method; a column per budget.
    """
    outcomes = {key: [outcome(grid, k) for k in BUDGETS] for key, grid in grids.items()}
    frame = pd.DataFrame(outcomes, index=BUDGETS).T
    frame.index.names = ["which", "dataset", "attribute", "method"]
    return frame


def by_kind(grids: Mapping, at_budget: pd.DataFrame) -> pd.DataFrame:
    """Averages over the 14 comparisons for each kind of method.

    Parameters
    ----------
    grids : mapping
        From :func:`ranked_grids`.
    at_budget : DataFrame
        From :func:`at_budgets`.

    Returns
    -------
    DataFrame
        Indexed by view and kind: test CI at each budget, validation CI, share of eligible ones.
    """
    more = {}
    for key, (val_ci, _, eligible) in grids.items():
        more[key] = {
            "val random": at_random(val_ci, eligible).mean(),
            "val chosen": val_ci[:, 0].mean(),
            "eligible %": 100 * eligible.mean(),
        }
    more = pd.DataFrame(more).T
    frame = at_budget.join(more.rename_axis(at_budget.index.names))
    kind = at_budget.index.get_level_values("method").map(kind_of)
    return frame.groupby(["which", kind]).mean()


def wins_of_dro(at_budget: pd.DataFrame) -> pd.DataFrame:
    """Comparisons of 14 whose smallest CI of eight is a DRO variant's, at each budget.

    Parameters
    ----------
    at_budget : DataFrame
        From :func:`at_budgets`.

    Returns
    -------
    DataFrame
        Budgets × "stated", "corrected".
    """
    won = {}
    for which, title in zip(protocol.PROTOCOLS, ("stated", "corrected"), strict=True):
        counts = dict.fromkeys(BUDGETS, 0)
        for dataset, attribute in PAIRS:
            ci = at_budget.loc[which].loc[dataset].loc[attribute]
            for model in BASELINES:
                ahead = ci.loc[DRO[model]].min() < ci.loc[BASELINES[model]].min()
                for budget in BUDGETS:
                    counts[budget] += ahead[budget]
        won[title] = [int(counts[budget]) for budget in BUDGETS]
    return pd.DataFrame(won, index=pd.Index(BUDGETS, name="budget"))


def draw_budgets(grids: Mapping, floors: pd.DataFrame) -> Figure:
    """Validation and test CI of the chosen linear model against the configurations tried.

    Parameters
    ----------
    grids : mapping
        From :func:`ranked_grids`.
    floors : DataFrame
        "its floor" of each pair, from :func:`drocox.chapters.uncertainty_floor.noise_floors`.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(2, 3, figsize=(7.4, 5), sharex=True, layout="constrained")
    for column, (dataset, attribute) in enumerate(MAIN_PAIRS):
        for method in BASELINES["linear"][1:] + DRO["linear"]:
            grid = grids["corrected", dataset, attribute, method]
            m = grid[0].shape[1]
            style = {"color": "0.6", "lw": 1, "label": "penalised baselines"}
            if method in DRO["linear"]:
                k = DRO["linear"].index(method)
                style = {"color": f"C{k}", "ls": ("-", "--")[k], "lw": 2.2, "label": method}
            for ax, values in zip(axes[:, column], grid[:2], strict=True):
                line = [values.mean(0) @ taken(m, k) for k in range(1, m + 1)]
                ax.plot(range(1, m + 1), line, **style)
        axes[0, column].set(title=f"{WRITTEN[dataset]} ({attribute})", xticks=[1, 3, 9, 18])
        floor = floors.loc[f"{WRITTEN[dataset]} {attribute}", "its floor"]
        axes[1, column].axhline(floor, color="C2", ls=":", label="noise floor")
        for ax in axes[:, column]:
            ax.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("validation CI (%)")
    axes[1, 0].set_ylabel("test CI (%)")
    axes[1, 1].set_xlabel("configurations tried")
    handles = {line.get_label(): line for line in axes[1, 0].get_lines()}
    style = {"loc": "outside lower center", "ncol": 4, "fontsize": "small"}
    figure.legend(handles.values(), handles.keys(), **style)
    return figure


def effect_of_choice(grids: Mapping, which: str, kind: str) -> pd.DataFrame:
    """What choosing changes against an eligible configuration at random, in each repeat.

    Parameters
    ----------
    grids : mapping
        From :func:`ranked_grids`.
    which : {"as_published", "corrected"}
    kind : str
        One of ``KINDS``; its methods are averaged.

    Returns
    -------
    DataFrame
        Repeats × "val", "test" (the changes) and "ci", the test CI of the chosen.
    """
    mine = [grid for key, grid in grids.items() if key[0] == which and kind_of(key[3]) == kind]
    validation = [val[:, 0] - at_random(val, eligible) for val, _, eligible in mine]
    tested = [test[:, 0] - at_random(test, eligible) for _, test, eligible in mine]
    test_ci = [test[:, 0] for _, test, _ in mine]
    return pd.DataFrame(
        {
            "val": np.mean(validation, axis=0),
            "test": np.mean(tested, axis=0),
            "ci": np.mean(test_ci, axis=0),
        }
    )


def tell_budgets(summary: pd.DataFrame, at_budget: pd.DataFrame, won: pd.DataFrame) -> None:
    """Section *What is a larger grid worth?*: CI at equal budgets.

    Parameters
    ----------
    summary : DataFrame
        From :func:`by_kind`.
    at_budget : DataFrame
        From :func:`at_budgets`.
    won : DataFrame
        From :func:`wins_of_dro`.
    """
    dro = summary.loc["corrected"].loc["DRO-COX"]
    for name in ("random", 3, 18, "val random", "val chosen"):
        say(f"dro-{name}".replace(" ", "-"), f"{dro[name]:.2f}")
    ratio = dro["val random"] / dro["random"]
    guard(abs(ratio - np.sqrt(0.2 / 0.16)) < 0.05, "as the smaller part's higher floor suggests")
    say("val-over-test", f"{ratio:.2f}")
    for dataset, attribute in MAIN_PAIRS:
        line = at_budget.loc["corrected", dataset, attribute, "DRO-COX"]
        rises = line[18] > line[3]
        guard(rises == (dataset == "flc"), "it rises on FLC and falls on the other two")
        guard(line[18] - line[3] < 0.2, "no benefit of the larger grid is seen on test patients")
    say("won-corrected", ", ".join(str(won["corrected"][k]) for k in (18, 9)))
    say("won-corrected-3", won["corrected"][3])
    say("won-random", won["corrected"]["random"])
    say("won-stated", ", ".join(str(won["stated"][k]) for k in (18, 9)))
    say("won-stated-3", won["stated"][3])
    small = won["corrected"][["random", 3]]
    guard((small >= won["corrected"][18]).all(), "DRO variants win as often at small budgets")


def tell_optimism(grids: Mapping) -> None:
    """The same section: choosing changes validation CI, and no effect on test CI is seen.

    Parameters
    ----------
    grids : mapping
        From :func:`ranked_grids`.
    """
    for kind in KINDS[1:]:
        effect = interval(effect_of_choice(grids, "corrected", kind), "corrected")
        lower = effect.loc["val", "mean"] + effect.loc["val", "half"] < 0
        guard(lower, "choosing lowers validation CI; SPLIT and the penalised baselines alike")
        seen = abs(effect.loc["test", "mean"]) > effect.loc["test", "half"]
        guard(not seen, "no effect on test CI is seen")
        if kind == "DRO-COX":
            for part in ("val", "test"):
                mean, half = effect.loc[part, "mean"], effect.loc[part, "half"]
                say(f"effect-{part}", f"{mean:+.2f} ± {half:.2f}")
    for which, short in zip(protocol.PROTOCOLS, ("stated", "corrected"), strict=True):
        dro = effect_of_choice(grids, which, "DRO-COX")
        gap = interval(dro - effect_of_choice(grids, which, "penalised"), which).loc["ci"]
        undecided = abs(gap["mean"]) < gap["half"]
        expected = which == "corrected"
        guard(
            undecided == expected and gap["mean"] < 0,
            "DRO-COX's CI differs from the penalised baselines', decidedly on the published splits",
        )
        say(f"pooled-{short}", f"{gap['mean']:.2f} ± {gap['half']:.2f}")
