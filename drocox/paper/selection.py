"""Choosing one model per method and repeat from the grid: the paper's rule, and forensic ones.

The stated rule uses validation data only. Cox and DeepSurv take the learning rate with the largest
validation c-index. Every other method keeps configurations whose validation c-index is at least
95 % of that of the selected Cox (DeepSurv) and takes the smallest validation CI (or F_A); ties go
to the larger c-index, then to grid order; if none is eligible, the largest c-index wins.

The paper does not say whether this is done apart in each repeat (``"stated"``) or once for all ten,
by the means over the repeats (``"one_setting"``); both readings are selections here.

The other rules exist to find out which choice gives a published row back. Some of them look at
test data: they explain numbers, and nothing in this project is concluded from them.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper.protocol import METHODS, PLAIN

TOLERANCE = 0.95  # share of Cox's c-index that an eligible configuration keeps
TUNE_BY = ("ci_percent", "f_a")
SELECTIONS = ("stated", "one_setting", "recovered")
NAMED = {"flc": 0.3, "support": 0.5, "seer": 0.15}  # alpha in the released instructions
SETTING = ["learning_rate", "lam", "alpha"]


@dataclass(frozen=True)
class Rule:
    """A way to choose among the configurations of a method.

    Configurations are first restricted, then kept if their c-index reaches the bar, 95 % of Cox's
    (DeepSurv's), then ranked.
    """

    words: str
    metric: str | None = "ci_percent"  # what is minimised; None: the largest c-index wins
    part: str = "val"  # whose metrics decide: "val" or "test"
    decimals: int | None = None  # of the rounded metric; ties then go to the smaller setting
    learning_rate: float | None = None  # configurations are restricted to it
    named_alpha: bool = False  # configurations are restricted to the alpha of NAMED
    bar_learning_rate: float | None = None  # of the Cox that sets the bar; None: the best of all
    one_setting: bool = False  # one configuration for all repeats, by means over them


# The closed list that every published row is held against.
RULES = {
    "stated CI": Rule("smallest validation CI, validation c >= 95 % of Cox's"),
    "stated F_A": Rule("smallest validation F_A, validation c >= 95 % of Cox's", metric="f_a"),
    "stated CI, 2 decimals": Rule(
        "validation CI rounded to 2 decimals; ties to the smaller learning rate, "
        "then the smaller lambda or alpha",
        decimals=2,
    ),
    "validation c-index": Rule("largest validation c-index", metric=None),
    "learning rate 0.01": Rule(
        "learning rate 0.01; lambda or alpha by the stated rule", learning_rate=0.01
    ),
    "test CI": Rule(
        "smallest test CI, test c >= 95 % of Cox's at learning rate 0.01",
        part="test",
        bar_learning_rate=0.01,
    ),
    "test F_A": Rule(
        "smallest test F_A, test c >= 95 % of Cox's at learning rate 0.01",
        part="test",
        metric="f_a",
        bar_learning_rate=0.01,
    ),
    "named setting": Rule(
        "learning rate 0.01 and the alpha named in the released instructions",
        metric=None,
        learning_rate=0.01,
        named_alpha=True,
    ),
}
ONE_SETTING = {
    "one setting CI": Rule(
        "smallest mean validation CI, mean validation c >= 95 % of Cox's", one_setting=True
    ),
    "one setting F_A": Rule(
        "smallest mean validation F_A, mean validation c >= 95 % of Cox's",
        metric="f_a",
        one_setting=True,
    ),
}
BY_F_A = {
    "stated CI": "stated F_A",
    "stated CI, 2 decimals": "stated F_A",
    "test CI": "test F_A",
    "one setting CI": "one setting F_A",
}  # what a rule becomes when F_A is minimised

# Which rule gives a published row back ("n2": T16 and T17): an inference, as no tuning code was
# released. A row keeps the stated rule, with or without rounding, if that comes within 1 SD on
# average over its nine cells; else it gets the closest rule within 1 SD, one that looks at test
# data only if no other comes so near. All others keep the stated rule, though for some none fits.
RECOVERED = {
    ("flc", "Cox"): "learning rate 0.01",
    ("flc", "Cox_I(Keya)"): "stated CI, 2 decimals",
    ("flc", "Cox_G(R&P)"): "validation c-index",
    ("flc", "DRO-COX"): "test CI",
    ("flc", "DRO-COX (SPLIT)"): "learning rate 0.01",
    ("flc", "DeepSurv_I(R&P)"): "validation c-index",
    ("flc", "DeepSurv_G(R&P)"): "validation c-index",
    ("flc", "DeepSurv_cap(Keya)"): "test F_A",
    ("flc", "Deep DRO-COX"): "validation c-index",
    ("support", "Cox_I(Keya)"): "stated CI, 2 decimals",
    ("support", "Cox_I(R&P)"): "stated CI, 2 decimals",
    ("support", "Cox_G(Keya)"): "stated CI, 2 decimals",
    ("support", "Cox_G(R&P)"): "stated CI, 2 decimals",
    ("support", "DRO-COX"): "validation c-index",
    ("support", "DeepSurv_G(R&P)"): "validation c-index",
    ("seer", "Cox_cap(Keya)"): "stated CI, 2 decimals",
    ("seer", "DRO-COX"): "test CI",
    ("seer", "DeepSurv_I(R&P)"): "stated CI, 2 decimals",
    ("seer", "Deep DRO-COX"): "test CI",
    ("n2", "DRO-COX (SPLIT)"): "stated F_A",
}


def add_f_a(runs: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Runs with F_G, CI and F_A of one attribute under their plain names.

    Parameters
    ----------
    runs : DataFrame
        Stored runs.
    attribute : str
        Sensitive attribute of F_G and CI.

    Returns
    -------
    DataFrame
        A copy with the columns ``f_g``, ``ci_percent`` and ``f_a = (f_i + f_g + f_cap) / 3`` of
        both parts, ``val_...`` and ``test_...``.
    """
    out = runs.copy()
    for part in ("val", "test"):
        for metric in ("f_g", "ci_percent"):
            out[f"{part}_{metric}"] = out[f"{part}_{metric}_{attribute}"]
        out[f"{part}_f_a"] = (out[f"{part}_f_i"] + out[f"{part}_f_g"] + out[f"{part}_f_cap"]) / 3
    return out


def candidates(runs: pd.DataFrame, dataset: str, attribute: str) -> pd.DataFrame:
    """Runs that the main table of a data set and attribute chooses from.

    Parameters
    ----------
    runs : DataFrame
        Stored runs.
    dataset, attribute : str

    Returns
    -------
    DataFrame
        In grid order, with the columns of :func:`add_f_a`; of SPLIT, two equal halves only.
    """
    mine = (runs["dataset"] == dataset) & runs["attribute"].isin(["", attribute])
    main = runs["sides"].isna() | ((runs["sides"] == 2) & (runs["n2_share"] == 0.5))
    return add_f_a(runs[mine & main], attribute)


def _ranked(rows: pd.DataFrame, bar: np.ndarray | None, how: Rule) -> np.ndarray:
    """Positions of rows by repeat, and within a repeat from the best row to the worst.

    ``bar`` is the c-index that each row has to reach; None: the largest c-index is the best.
    """
    repeat = rows["repeat"].to_numpy()
    c = rows[f"{how.part}_c_index"].to_numpy()
    if bar is None:
        return np.lexsort((-c, repeat))
    eligible = c >= bar
    chance = (np.bincount(repeat, eligible) > 0)[repeat]  # whether the repeat has an eligible row
    goal = rows[f"{how.part}_{how.metric}"].to_numpy()
    goal = np.where(chance, goal, -c)
    if how.decimals is None:
        ties = [-c]
    else:
        goal = goal.round(how.decimals)
        ties = [rows[name].to_numpy() for name in SETTING]
    # lexsort takes the last key first, and leaves what is equal in all keys in grid order
    return np.lexsort((*reversed(ties), goal, chance & ~eligible, repeat))


def _means(rows: pd.DataFrame, how: Rule) -> pd.DataFrame:
    """Means over the repeats, one row per configuration, in grid order; ``repeat`` is 0."""
    needed = [f"{how.part}_c_index", f"{how.part}_{how.metric}"]
    means = rows.groupby(SETTING, sort=False, dropna=False)[needed].mean()
    return means.reset_index().assign(repeat=0)


def select(rows: pd.DataFrame, plain: pd.DataFrame, rule: str) -> pd.DataFrame:
    """One run per repeat of one method.

    Parameters
    ----------
    rows : DataFrame
        All runs of the method, from :func:`candidates`.
    plain : DataFrame
        Those of Cox (DeepSurv), which set the bar. A repeat that they lack is left out.
    rule : str
        One of :data:`RULES` or :data:`ONE_SETTING`. Rules that read validation data give Cox and
        DeepSurv their largest validation c-index.

    Returns
    -------
    DataFrame
        The chosen rows, by repeat; none where the rule does not apply to the method.
    """
    known = RULES | ONE_SETTING
    how = known[_checks.one_of(rule, "rule", known)]
    rows = rows[rows["repeat"].isin(plain["repeat"].unique())]
    if how.learning_rate is not None:
        rows = rows[rows["learning_rate"] == how.learning_rate]
    if how.named_alpha:
        rows = rows[rows["alpha"] == rows["dataset"].map(NAMED)]
    if rows.empty:
        return rows
    if how.bar_learning_rate is not None:
        plain = plain[plain["learning_rate"] == how.bar_learning_rate]
    pool = rows
    if how.one_setting:
        plain = plain[plain["repeat"].isin(rows["repeat"].unique())]
        pool = _means(rows, how)
        plain = _means(plain, how)

    is_plain = rows["method"].iloc[0] in PLAIN.values()
    if how.metric is None or (is_plain and how.part == "val"):
        bar = None
    else:
        best = plain.groupby("repeat")[f"{how.part}_c_index"].max()
        bar = TOLERANCE * best.reindex(pool["repeat"]).to_numpy()
    order = _ranked(pool, bar, how)
    first = np.unique(pool["repeat"].to_numpy()[order], return_index=True)[1]  # of each repeat
    chosen = pool.iloc[order[first]]
    if not how.one_setting:
        return chosen
    setting = chosen[SETTING].iloc[0]
    same = [(rows[k] == setting[k]) | (rows[k].isna() & pd.isna(setting[k])) for k in SETTING]
    return rows[np.logical_and.reduce(same)].sort_values("repeat", kind="stable")


def rule_of(where: str, method: str, selection: str, tune_by: str = "ci_percent") -> str:
    """The rule that a selection uses for a row of a table.

    Parameters
    ----------
    where : str
        Data set, or ``"n2"`` for T16 and T17.
    method : str
    selection : {"stated", "one_setting", "recovered"}
    tune_by : {"ci_percent", "f_a"}

    Returns
    -------
    str
        Name of a rule.
    """
    _checks.one_of(selection, "selection", SELECTIONS)
    _checks.one_of(tune_by, "tune_by", TUNE_BY)
    rule = "stated CI"
    if selection == "one_setting":
        rule = "one setting CI"
    elif selection == "recovered":
        rule = RECOVERED.get((where, method), rule)
    return BY_F_A.get(rule, rule) if tune_by == "f_a" else rule


def plain_of(of: dict[str, pd.DataFrame], model: str, dataset: str) -> pd.DataFrame:
    """Runs of Cox (DeepSurv), by which every rule judges the other methods.

    Parameters
    ----------
    of : dict
        Runs by method.
    model : {"linear", "nonlinear"}
    dataset : str
        For the message if they are missing.

    Returns
    -------
    DataFrame
    """
    name = PLAIN[model]
    if name not in of:
        raise ValueError(
            f"the store holds no runs of {name} on {dataset}, which every selection compares "
            "with; train them too"
        )
    return of[name]


def selected(
    runs: pd.DataFrame,
    dataset: str,
    attribute: str,
    *,
    tune_by: str = "ci_percent",
    selection: str = "stated",
) -> pd.DataFrame:
    """The chosen run of every method and repeat, for one data set and attribute.

    Parameters
    ----------
    runs : DataFrame
        Stored runs; methods and repeats that are not there are left out.
    dataset, attribute : str
    tune_by : {"ci_percent", "f_a"}
        Validation metric that the selection minimises.
    selection : {"stated", "one_setting", "recovered"}

    Returns
    -------
    DataFrame
        Runs in the order of the paper's methods, with the columns of :func:`add_f_a`.
    """
    rows = candidates(runs, dataset, attribute)
    of = dict(list(rows.groupby("method", sort=False)))
    if not of:
        raise ValueError(
            f"the store holds no runs on {dataset}; train some, or choose another data set"
        )
    chosen = []
    for method, m in METHODS.items():
        if method not in of:
            continue
        rule = rule_of(dataset, method, selection, tune_by)
        chosen.append(select(of[method], plain_of(of, m.model, dataset), rule))
    return pd.concat(chosen, ignore_index=True)
