"""The chapter *How sure are we?*: what a larger grid is worth, and how few patients carry F_∩.

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
from sklearn.model_selection import train_test_split

import drocox
from drocox import fairness
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import WRITTEN
from drocox.chapters.uncertainty import RETRAINED, chosen, chosen_by_ci
from drocox.chapters.uncertainty_paired import interval
from drocox.choosing import KEPT
from drocox.paper import protocol, selection, store
from drocox.paper.claims import BASELINES, DRO, MAIN_PAIRS, PAIRS

VIEWS = ("as_published", "corrected")
BUDGETS = ("random", 3, 9, 18)
KINDS = ("Cox, DeepSurv", "penalised", "DRO-COX", "DRO-COX (SPLIT)")
WORDS = {"age": ("up to 65", "over 65"), "gender": ("women", "men"), "race": ("non-white", "white")}


def kind_of(method: str) -> str:
    """Which of the four kinds of the chapter's tables a method is.

    Parameters
    ----------
    method : str

    Returns
    -------
    str
    """
    if "SPLIT" in method:
        return "DRO-COX (SPLIT)"
    if "DRO" in method:
        return "DRO-COX"
    return "penalised" if "_" in method else "Cox, DeepSurv"


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
    for which in VIEWS:
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
    for which in VIEWS:
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
    for which, title in zip(VIEWS, ("stated", "corrected"), strict=True):
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
        "its floor" of each pair, from :func:`drocox.chapters.uncertainty.noise_floors`.

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
    for which, short in zip(VIEWS, ("stated", "corrected"), strict=True):
        dro = effect_of_choice(grids, which, "DRO-COX")
        gap = interval(dro - effect_of_choice(grids, which, "penalised"), which).loc["ci"]
        undecided = abs(gap["mean"]) < gap["half"]
        expected = which == "corrected"
        guard(
            undecided == expected and gap["mean"] < 0,
            "DRO-COX's CI differs from the penalised baselines', decidedly on the published splits",
        )
        say(f"pooled-{short}", f"{gap['mean']:.2f} ± {gap['half']:.2f}")


def cell_names(groups: Mapping) -> np.ndarray:
    """The intersectional cell of every patient in words.

    Parameters
    ----------
    groups : mapping of str to int array
        Codes 0 and 1 of each attribute.

    Returns
    -------
    array of str
    """
    columns = [
        np.where(codes == 1, WORDS[name][1], WORDS[name][0]) for name, codes in groups.items()
    ]
    return np.array([", ".join(words) for words in zip(*columns, strict=True)])


def leave_one_out(h: np.ndarray, cell: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    """F_∩, and F_∩ without each patient of cell k in turn.

    Parameters
    ----------
    h : array of shape (n,)
        Hazards.
    cell : int array of shape (n,)
        Cell of each patient.
    k : int

    Returns
    -------
    value : float
    without : array
        One value per patient of the cell.
    """
    sums = np.bincount(cell, h)
    sizes = np.bincount(cell)
    means = np.tile((sums + 0.5) / (sizes + 1), (1 + sizes[k], 1))
    means[1:, k] = (sums[k] - h[cell == k] + 0.5) / sizes[k]
    value, *without = np.ptp(np.log(means), axis=1)
    return value, np.array(without)


def smallest_cells(data: drocox.SurvivalData) -> list[int]:
    """Patients in the smallest cell of the test part, for each corrected repeat.

    Parameters
    ----------
    data : SurvivalData

    Returns
    -------
    list of int
    """
    cells = cell_names(data.groups)
    fewest = []
    for repeat in protocol.REPEATS:
        split = {"test_size": 0.2, "stratify": data.event, "random_state": repeat}
        test = train_test_split(np.arange(len(data)), **split)[1]
        fewest.append(int(np.unique(cells[test], return_counts=True)[1].min()))
    return fewest


def small_cells(parts: Mapping, scores: Mapping) -> tuple[pd.DataFrame, dict]:
    """What the smallest cell of each test part does to F_∩.

    Parameters
    ----------
    parts : mapping of str to Prepared
    scores : mapping of (dataset, method) to array
        Scores of the test parts.

    Returns
    -------
    table : DataFrame
        As the chapter shows it.
    drops : dict
        F_∩ and its values without each patient of the smallest cell.
    """
    rows = []
    drops = {}
    for dataset, ready in parts.items():
        test = ready.test
        few = smallest_cells(drocox.load_dataset(dataset))
        cells = cell_names(test.groups)
        names, sizes = np.unique(cells, return_counts=True)
        smallest = sizes.argmin()
        members = np.flatnonzero(cells == names[smallest])
        for method in RETRAINED:
            h = np.exp(scores[dataset, method])
            value, without = leave_one_out(h, np.searchsorted(names, cells), smallest)
            drops[dataset, method] = (value, without)
            rows.append(
                {
                    "": f"{WRITTEN[dataset]} {method}",
                    "smallest": names[smallest],
                    "n": len(members),
                    "deaths": test.event[members].sum(),
                    "F_cap": value,
                    "without one": f"{min(without):.3f} to {max(without):.3f}",
                    "unsmoothed": fairness.intersectional(h, test.group_matrix, smoothing=False),
                    "corrected n": f"{min(few)} to {max(few)}",
                }
            )
            _check_leave_one_out(h, test.group_matrix, members[-1], value, without[-1])
    table = pd.DataFrame(rows).set_index("").rename_axis(None)
    return table.round({"F_cap": 3, "unsmoothed": 3}), drops


def _check_leave_one_out(h, codes, last, value, without_last) -> None:
    whole = fairness.intersectional(h, codes)
    rest = fairness.intersectional(np.delete(h, last), np.delete(codes, last, axis=0))
    guard(np.isclose(value, whole), "F_∩ as the package has it")
    guard(np.isclose(without_last, rest), "leaving out one patient as the package would")


def tell_small_cells(table: pd.DataFrame, drops: Mapping, scores: np.ndarray, groups) -> None:
    """Section *How few patients carry F_∩*.

    Parameters
    ----------
    table, drops : DataFrame, dict
        From :func:`small_cells`.
    scores : array
        Scores of DRO-COX on the test part of SEER.
    groups : mapping of str to int array
        Groups of these patients.
    """
    seer = table.loc["SEER DRO-COX"]
    say("seer-n", seer["n"])
    say("seer-deaths", ["none", "one", "two", "three"][seer["deaths"]])
    say("seer-corrected", seer["corrected n"])
    cox, cox_without = drops["seer", "Cox"]
    moved = np.abs(cox_without - cox).max()
    sd = chosen_by_ci("seer", "race", "as_published", "Cox")["test_f_cap"].std()
    guard(moved > max(0.05, sd), "leaving out one of them moves Cox's F_∩ by more than the SD")
    say("drop-cox", f"{moved:.3f}")
    say("sd-cox", f"{sd:.3f}")
    dro, dro_without = drops["seer", "DRO-COX"]
    say("drop-dro", f"{100 * np.abs(dro_without / dro - 1).max():.0f}")
    say("dro-smoothed", f"{dro:.3f}")
    say("dro-unsmoothed", f"{seer['unsmoothed']:.3f}")
    hazards = np.exp(scores)[cell_names(groups) == seer["smallest"]]
    say("hazard-low", f"{hazards.min():.2f}")
    say("hazard-high", f"{hazards.max():.2f}")
    others = []
    for (dataset, _), (value, without) in drops.items():
        if dataset != "seer":
            others.append(np.abs(without / value - 1).max())
    say("drop-others", f"{100 * max(others):.0f}")
    say("flc-n", table.loc["FLC Cox", "n"])
    say("support-n", table.loc["SUPPORT Cox", "n"])
