"""Choosing one model per method and repeat from the grid: the paper's rule, and forensic ones.

The stated rule uses validation data only. Cox and DeepSurv take the learning rate with the largest
validation c-index. Every other method keeps configurations whose validation c-index is at least 95
% of that of the selected Cox (DeepSurv) and takes the smallest validation CI (or F_A); ties go to
the larger c-index, then to grid order; if none is eligible, the largest c-index wins.

The paper does not say whether this is done separately in each repeat (``"stated"``) or once for all
ten, by the means over the repeats (``"one_setting"``); either is a selection here.

The other rules exist to find out which choice reproduces a published row. Two of them look at test
data, one at the runs of the store ``forensic``. They explain published numbers; whether the paper's
claims hold is decided without them. All rules are in ``results/rules.toml``, with the rule that
reproduces each published row.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper import store
from drocox.paper.protocol import METHODS, PLAIN
from drocox.tuning import choose, most_accurate

TUNE_BY = ("ci_percent", "f_a")
SELECTIONS = ("stated", "one_setting", "recovered")
SETTING = ["learning_rate", "lam", "alpha"]


@dataclass(frozen=True)
class Rule:
    """A way to choose among the configurations of a method.

    Configurations are first restricted, then kept if their c-index reaches the bar, 95 % of Cox's
    (DeepSurv's), then ranked.
    """

    words: str
    metric: str = "ci_percent"  # minimised; "c_index" instead: the largest wins, without a bar
    part: str = "val"  # the part whose metrics decide: "val" or "test"
    decimals: int | None = None  # of the rounded metric; ties then go to the smaller setting
    learning_rate: float | None = None  # configurations are restricted to it
    alpha: float | None = None  # and to this
    named: bool = False  # or to the settings in the released instructions: NAMED
    bar_learning_rate: float | None = None  # of the Cox that sets the bar; None: the best of all
    one_setting: bool = False  # one configuration for all repeats, by means over them
    forensic: bool = False  # chosen among the runs of the store "forensic"


_WRITTEN = tomllib.loads((store.DEFAULT / "rules.toml").read_text(encoding="utf-8"))
SELECTION_RULES = {
    name: Rule(**fields) for name, fields in _WRITTEN["rules"].items()
}  # the closed list
_KNOWN = SELECTION_RULES | {name: Rule(**fields) for name, fields in _WRITTEN["carried"].items()}
NAMED = _WRITTEN["named"]
RECOVERED = {
    (where, method): rule
    for where, rows in _WRITTEN["recovered"].items()
    for method, rule in rows.items()
}


def add_f_a(runs: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """A copy of the runs with F_G, CI and F_A of one attribute in columns without its name.

    Adds ``f_g``, ``ci_percent`` and ``f_a = (f_i + f_g + f_cap) / 3``, as ``val_...`` and
    ``test_...``.
    """
    out = runs.copy()
    for part in ("val", "test"):
        for metric in ("f_g", "ci_percent"):
            out[f"{part}_{metric}"] = out[f"{part}_{metric}_{attribute}"]
        out[f"{part}_f_a"] = (out[f"{part}_f_i"] + out[f"{part}_f_g"] + out[f"{part}_f_cap"]) / 3
    return out


def candidates(runs: pd.DataFrame, dataset: str, attribute: str) -> pd.DataFrame:
    """The runs, in grid order, from which the main table of a data set and attribute chooses.

    They have the columns of :func:`add_f_a`; of SPLIT only two equal halves take part.
    """
    mine = (runs["dataset"] == dataset) & runs["attribute"].isin(["", attribute])
    main = runs["sides"].isna() | ((runs["sides"] == 2) & (runs["n2_share"] == 0.5))
    return add_f_a(runs[mine & main], attribute)


def _numbers(rows: pd.DataFrame, metric: str, rule: Rule) -> pd.Series:
    """A metric of each row on the part that decides; for ``one_setting`` its setting's mean."""
    values = rows[f"{rule.part}_{metric}"]
    if rule.one_setting:
        values = values.groupby([rows[name] for name in SETTING], dropna=False).transform("mean")
    return values


def select(rows: pd.DataFrame, plain: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Choose one run per repeat of one method.

    Parameters
    ----------
    rows : DataFrame
        All runs of the method, from :func:`candidates`.
    plain : DataFrame
        Those of Cox (DeepSurv), which set the bar. Repeats that they lack are left out.
    rule : str
        One of :data:`SELECTION_RULES`. Under rules that use validation data, Cox and DeepSurv take
        their largest validation c-index.

    Returns
    -------
    DataFrame
        The chosen rows, by repeat; none where the rule does not apply to the method.
    """
    chosen_by = _KNOWN[_checks.one_of(rule, "rule", _KNOWN)]
    method = rows["method"].iloc[0]
    wanted = [chosen_by.learning_rate, chosen_by.alpha]
    if chosen_by.named:
        nothing = [np.nan, np.nan]  # no run has it
        wanted = NAMED.get(method, {}).get(rows["dataset"].iloc[0], nothing)
    allowed = np.isin(rows["repeat"], plain["repeat"].unique())
    if "protocol" in rows:
        allowed &= (rows["protocol"].to_numpy() == "forensic") == chosen_by.forensic
    for name, value in zip(["learning_rate", "alpha"], wanted, strict=True):
        if value is not None:
            allowed &= rows[name].to_numpy() == value
    rows = rows[allowed]
    if rows.empty:
        return rows
    c_index = _numbers(rows, "c_index", chosen_by).to_numpy()
    metric = _numbers(rows, chosen_by.metric, chosen_by).to_numpy()
    place = None
    if chosen_by.decimals is not None:
        metric = metric.round(chosen_by.decimals)
        place = rows.groupby(SETTING, dropna=False).ngroup().to_numpy()  # in the grid
    sets_bar = plain["repeat"].isin(rows["repeat"])
    if chosen_by.bar_learning_rate is not None:
        sets_bar &= plain["learning_rate"] == chosen_by.bar_learning_rate
    plain = plain[sets_bar]
    bars = _numbers(plain, "c_index", chosen_by).groupby(plain["repeat"]).max()
    by_c_index = method in PLAIN.values() and chosen_by.part == "val"
    chosen = []
    for repeat, at in rows.groupby("repeat").indices.items():
        if chosen_by.metric == "c_index" or by_c_index:  # without a bar
            best = most_accurate(c_index[at])
        else:
            ties = None if place is None else place[at]
            best = choose(c_index[at], metric[at], bars[repeat], ties=ties)
        chosen.append(at[best])
    return rows.iloc[chosen]


def rule_of(where: str, method: str, selection: str, tune_by: str = "ci_percent") -> str:
    """The rule that a selection uses for a row; ``where`` is a data set, or "n2" (T16, T17)."""
    _checks.one_of(selection, "selection", SELECTIONS)
    _checks.one_of(tune_by, "tune_by", TUNE_BY)
    rule = "one setting CI" if selection == "one_setting" else "stated CI"
    if selection == "recovered":
        rule = RECOVERED.get((where, method), rule)
    return _WRITTEN["by_f_a"].get(rule, rule) if tune_by == "f_a" else rule


def plain_of(rows: pd.DataFrame, model: str) -> pd.DataFrame:
    """Runs of Cox (DeepSurv) on one data set, with which every rule compares the other methods."""
    plain = rows[rows["method"] == PLAIN[model]]
    if plain.empty:
        what = f"the store holds no runs of {PLAIN[model]} on {rows['dataset'].iloc[0]}"
        raise ValueError(f"{what}, which every selection compares with; train them too")
    return plain


def by_method(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Each method with runs, in the paper's order, with its runs and those of Cox or DeepSurv."""
    runs_of = dict(iter(rows.groupby("method", sort=False)))
    plain = {}
    for method, settings in METHODS.items():
        if method in runs_of:
            if settings.model not in plain:
                plain[settings.model] = plain_of(rows, settings.model)
            yield method, runs_of[method], plain[settings.model]


def selected(
    runs: pd.DataFrame,
    dataset: str,
    attribute: str,
    *,
    tune_by: str = "ci_percent",
    selection: str = "stated",
) -> pd.DataFrame:
    """The chosen run of every method and repeat, for one data set and attribute.

    Methods are in the paper's order; those without stored runs are left out, and so are missing
    repeats.
    """
    rows = candidates(runs, dataset, attribute)
    if rows.empty:
        raise ValueError(f"the store holds no runs on {dataset}; train some first")
    chosen = [
        select(mine, plain, rule_of(dataset, method, selection, tune_by))
        for method, mine, plain in by_method(rows)
    ]
    return pd.concat(chosen, ignore_index=True)
