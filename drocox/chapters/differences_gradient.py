"""The chapter *Paper, released code, this book*: the ten rows that need a missing gradient.

No selection rule brings the published rows of nonlinear SPLIT back. They come back if the reference
sum of the loss gets no gradient (the store "forensic"), at learning rate 0.0001 and α = 0.5. Here
are distances with and without it, and what else was tried. The distance is that of
:mod:`drocox.chapters.differences_choice`.
"""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pandas as pd

from drocox.bookstyle import guard, say
from drocox.chapters.differences import MAIN_ATTRIBUTE, TABLE, Ledger
from drocox.chapters.differences_choice import DEEP_SPLIT, TEST_COLUMNS, as_printed, distance
from drocox.paper import protocol, selection, tables


def by_setting(runs: pd.DataFrame, dataset: str) -> pd.Series:
    """Distance of nonlinear SPLIT to its published row, for every setting taken in all repeats.

    Parameters
    ----------
    runs : DataFrame
        A store.
    dataset : {"flc", "support", "seer"}

    Returns
    -------
    Series
        By learning rate and α.
    """
    rows = selection.candidates(runs, dataset, MAIN_ATTRIBUTE[dataset])
    rows = rows[rows["method"] == DEEP_SPLIT]
    printed = Ledger().paper.loc[(TABLE[dataset], DEEP_SPLIT)].loc[list(tables.METRICS)]
    grid = rows.groupby(["learning_rate", "alpha"])[TEST_COLUMNS].mean()
    return pd.Series(distance(grid.to_numpy(), printed), grid.index)


def tell_gradient(distances: pd.DataFrame, by_rule: pd.DataFrame) -> None:
    """Section *Ten rows and a gradient*: distances of nonlinear SPLIT with and without it.

    Parameters
    ----------
    distances : DataFrame
        :func:`by_setting` under "cut" and "full", a column per data set.
    by_rule : DataFrame
        Distances of all published rows by every rule.
    """
    at = distances.loc[(0.0001, 0.5)]
    guard(at["cut"].max() < 0.5 and at["full"].min() > 3, "with α = 0.5 all three rows come back")
    say("cut-largest", f"{at['cut'].max():.2f}")
    say("cut-support", f"{at['cut']['SUPPORT']:.2f}")
    say("full-at", f"{at['full'].min():.0f} to {at['full'].max():.0f}")
    nearest = distances["full"].min().min()
    guard(nearest > 1, "no single setting comes back with the full gradient")
    say("full-nearest", f"{nearest:.1f}")
    say("t16-cut", f"{by_rule.loc[['t16', 't17'], 'no gradient'].max():.2f}")
    linear = [by_rule.loc[(t, "linear", "DRO-COX (SPLIT)")].min() for t in TABLE.values()]
    guard(max(linear) < 1, "the linear rows of SPLIT fit the full gradient")


def growth(forensic: pd.DataFrame) -> tuple[float, int, int]:
    """How far F_I grows at the larger learning rates when the reference sum has no gradient.

    Hazards at learning rate 0.01 exceed the largest double, about 10 to the power of 308; their
    median has no finite value. At 0.001 they are finite and the exponent is the median of
    :math:`\\log_{10} F_I`.

    Parameters
    ----------
    forensic : DataFrame
        The store of that name.

    Returns
    -------
    exponent : float
        Median of the exponents at learning rate 0.001.
    overflowed, runs : int
        Runs at learning rate 0.01 whose F_I exceeds the largest double, and all of them.
    """
    slower = forensic.loc[forensic["learning_rate"] == 0.001, "test_f_i"]
    faster = forensic.loc[forensic["learning_rate"] == 0.01, "test_f_i"]
    exponent = float(np.log10(slower).median())
    return exponent, int(np.isinf(faster).sum()), len(faster)


def tell_growth(forensic: pd.DataFrame) -> None:
    """The sentence on scores that grow without bound, from :func:`growth`.

    Parameters
    ----------
    forensic : DataFrame
        The store of that name.
    """
    exponent, overflowed, runs = growth(forensic)
    guard(3 < exponent < 308, "at the larger learning rates scores grow without bound")
    guard(overflowed == runs, "at 0.01 all exceed the largest double")
    say("fast-f-i", f"{exponent:.0f}")
    say("fast-overflow", overflowed)


def tell_picks(forensic: pd.DataFrame, runs: pd.DataFrame) -> None:
    """Does the paper's rule take learning rate 0.0001 and α = 0.5 from these runs?

    Parameters
    ----------
    forensic, runs : DataFrame
        The stores "forensic" and "as_published".
    """
    stated = []
    one_setting = []
    for dataset, attribute in MAIN_ATTRIBUTE.items():
        rows = selection.candidates(runs, dataset, attribute)
        deepsurv = rows[rows["method"] == "DeepSurv"]
        mine = selection.candidates(forensic.assign(protocol="as_published"), dataset, attribute)
        stated.append(str(_taken(selection.select(mine, deepsurv, "stated CI"))))
        picked = _taken(selection.select(mine, deepsurv, "one setting CI"))
        one_setting.append("yes" if picked else "no")
    say("picks-stated", ", ".join(stated))
    say("picks-one", ", ".join(one_setting))


def _taken(chosen: pd.DataFrame) -> int:
    """Repeats in which the setting in question was chosen."""
    return int(_at_setting(chosen).sum())


def _at_setting(rows: pd.DataFrame) -> pd.Series:
    return (rows["learning_rate"] == 0.0001) & (rows["alpha"] == 0.5)


def note_gradient(ledger: Ledger, forensic: pd.DataFrame, runs: pd.DataFrame) -> None:
    """The ledger's line on the missing gradient: the c-index on SUPPORT with and without it.

    Parameters
    ----------
    ledger : Ledger
    forensic, runs : DataFrame
        The stores "forensic" and "as_published".
    """
    cut = forensic[_at_setting(forensic) & (forensic["dataset"] == "support")]
    full = runs[_at_setting(runs) & (runs["dataset"] == "support")]
    full = full[full["method"] == DEEP_SPLIT]
    ledger.note(
        "reference sum of nonlinear SPLIT without gradient",
        ("support", DEEP_SPLIT, "c_index"),
        cut["test_c_index"].mean(),
        full["test_c_index"].mean(),
        "full gradient",
    )


def tell_tried(ledger: Ledger, procedure: Callable, judged: Callable) -> None:
    """What does not help on FLC: α = 0.05 or 256 hidden units instead of a missing gradient.

    Parameters
    ----------
    ledger : Ledger
    procedure, judged : callable
        The chapter's functions that train with some pieces replaced, and judge.
    """
    metrics = [m for m in tables.METRICS if m != "f_a"]
    printed = ledger.paper.loc[("t2", DEEP_SPLIT)].loc[metrics]
    far = {}
    for name, alpha, units, through in (
        ("cut", 0.5, 24, False),
        ("alpha", 0.05, 24, True),
        ("units", 0.5, 256, True),
    ):
        grid = {"LEARNING_RATES": (0.0001,), "ALPHAS": (alpha,)}
        with patch.dict(protocol.HIDDEN, nonlinear=units):
            trained = procedure("flc", DEEP_SPLIT, grid=grid, reference_gradient=through)
        row = as_printed(judged(*trained))
        far[name] = distance(row[printed.index].to_numpy(), printed).item()
        say(f"tried-{name}", f"{far[name]:.1f}")
    guard(far["cut"] < 1 and min(far["alpha"], far["units"]) > 4, "nor does it help to take these")


def tell_linear_control(procedure: Callable, judged: Callable) -> None:
    """The control: linear SPLIT on FLC with and without the gradient, at α = 0.1 and 0.5.

    Parameters
    ----------
    procedure, judged : callable
        The chapter's functions that train with some pieces replaced, and judge.
    """
    rows = {}
    for through in (True, False):
        grid = {"ALPHAS": (0.1, 0.5)}
        trained = procedure("flc", "DRO-COX (SPLIT)", grid=grid, reference_gradient=through)
        rows[through] = as_printed(judged(*trained))
    full_half = rows[True]["f_i"].iloc[1]
    cut_half = rows[False]["f_i"].iloc[1]
    guard(cut_half > 1e30 and full_half < 1e3, "at α = 0.5 hazards overflow when cut")
    printed = tables.published_table("t16")
    printed = printed[(printed["model"] == "linear") & (printed["method"] == "0.5n")]
    printed = printed[printed["metric"] != "f_a"].set_index("metric")
    full = distance(rows[True].iloc[0][printed.index].to_numpy(float), printed)
    cut = distance(rows[False].iloc[0][printed.index].to_numpy(float), printed)
    guard(abs(full - cut) < 0.5, "at α = 0.1 they could not tell")
    say("linear-full", f"{full:.1f}")
    say("linear-cut", f"{cut:.1f}")
