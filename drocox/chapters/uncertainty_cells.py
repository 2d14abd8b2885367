"""The chapter *How sure are we?*: how few patients carry F_∩.

F_∩ compares the intersectional cells of all attributes, and is set by the extreme ones. So it is
computed again without each patient of the smallest cell in turn.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import drocox
from drocox import fairness
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import WRITTEN
from drocox.chapters.uncertainty import RETRAINED, chosen_by_ci
from drocox.paper import protocol

WORDS = {"age": ("up to 65", "over 65"), "gender": ("women", "men"), "race": ("non-white", "white")}


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
