"""Results of the study on many data sets: its preregistered analysis, from stored rows.

``runs`` are the rows of :mod:`drocox.beyond.many` (study "many"); the statistics are those of
:mod:`drocox.beyond.pooled`, and the controls are analysed in :mod:`drocox.beyond.control_evidence`.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from drocox.beyond.cohorts import ATTRIBUTES, PRIMARY
from drocox.beyond.learning import COX, DRO, SETTINGS, Setting
from drocox.beyond.many import REGISTERED
from drocox.beyond.pooled import Pooled, Share, holm, moderated, pool, share_closed

SMALLEST_ERROR = 0.01  # points: an error below it is set to it
LARGEST_CERTIFICATE = 1e-4  # relative gap of a model that is analysed
FEWEST_DATA_SETS = 5  # that are pooled in an exploratory row
HARMLESS = -0.5  # points of c-index that the next data set loses at most, with 95 %


class Outcome(NamedTuple):
    """A column of the rows, and the margin within which a difference is irrelevant."""

    column: str
    margin: float
    words: str


PRIMARIES = {
    "c": Outcome("c_diff", 0.5, "c-index"),
    "closing": Outcome("joint_closing", 1.0, "closing of the gap"),
    "worst": Outcome("worst_own_diff", 1.0, "worst group"),
}
SECONDS = {  # what a claim needs besides
    "guard": Outcome("joint_guard", 1.0, "guard"),
    "worst of DRO-COX": Outcome("worst_dro_diff", 1.0, "worst group of DRO-COX"),
}


def of_model(runs: pd.DataFrame, setting: Setting = DRO) -> pd.DataFrame:
    """Rows of one model whose optima are certified."""
    rows = runs[runs["method"] == setting.method]
    if not np.isnan(setting.alpha):  # where alpha is tuned it is a mean
        rows = rows[np.isclose(rows["alpha"], setting.alpha)]
    same_rule = rows["rule"].fillna("") == setting.rule
    same_penalty = np.isclose(rows["penalty"], setting.penalty)
    certified = rows["certificate"] <= LARGEST_CERTIFICATE
    return rows[same_rule & same_penalty & certified]


def effects(
    runs: pd.DataFrame, column: str, setting: Setting = DRO, *, which: str = "included"
) -> pd.DataFrame:
    """``effect`` and ``se`` by data set, of an outcome that does not depend on the attribute.

    ``which`` is "included", the data sets that count, or "beside", those that suggested the
    contrast.
    """
    rows = of_model(runs, setting).drop_duplicates("dataset").set_index("dataset")
    rows = rows[rows.index.isin(list(REGISTERED[which]))]
    se = rows[f"{column}_se"].clip(lower=SMALLEST_ERROR)
    return pd.DataFrame({"effect": rows[column], "se": se}).dropna().sort_index()


def pooled(runs: pd.DataFrame, column: str, setting: Setting = DRO) -> Pooled:
    """The mean effect over the included data sets."""
    rows = effects(runs, column, setting)
    return pool(rows["effect"], rows["se"])


class Mean(NamedTuple):
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


def equal_weights(runs: pd.DataFrame, column: str) -> Mean:
    """The mean effect when every data set counts the same, by Student's t over data sets.

    It was added after the results were known: where two models nearly agree, standard errors are
    small, and such data sets have the largest weights in :func:`pooled`.
    """
    effect = effects(runs, column)["effect"]
    k = len(effect)
    half = stats.t.ppf(0.975, k - 1) * effect.std(ddof=1) / np.sqrt(k)
    return Mean(effect.mean(), effect.mean() - half, effect.mean() + half)


def _described(result: Pooled, margin: float) -> dict:
    """A mean with its intervals, as a row of a table."""
    low, high = result.interval()
    low90, high90 = result.interval(0.9)
    predicted_low, predicted_high = result.prediction()
    return {
        "data_sets": result.k,
        "mean": result.mean,
        "low": low,
        "high": high,
        "low90": low90,
        "high90": high90,
        "predicted_low": predicted_low,
        "predicted_high": predicted_high,
        "tau": np.sqrt(result.tau2),
        "p": result.p,
        "margin": margin,
        "equivalent": result.equivalent(margin),
    }


def primary_table(runs: pd.DataFrame) -> pd.DataFrame:
    """A row for each outcome, primary ones with Holm's p-values (``p_holm``)."""
    table = {
        name: _described(pooled(runs, outcome.column), outcome.margin)
        for name, outcome in (PRIMARIES | SECONDS).items()
    }
    frame = pd.DataFrame(table).T.infer_objects()
    frame.loc[list(PRIMARIES), "p_holm"] = holm(frame.loc[list(PRIMARIES), "p"].astype(float))
    return frame


class Claims(NamedTuple):
    """The preregistered claims, and the lower bound of the next change in c-index."""

    c_differs: bool
    closes: bool
    moves: bool  # closing without guard: perhaps past equality
    worst_gains: bool
    harmless: bool
    bound: float  # the next data set's c-index changes by more than this, with 95 %


def claims(runs: pd.DataFrame) -> Claims:
    """The preregistered claims, evaluated on these rows."""
    table = primary_table(runs)
    significant = table["p_holm"] < 0.05
    above = table["mean"] > 0
    sure = table["low"] > 0
    closing = bool(significant["closing"] and above["closing"])
    bound = pooled(runs, PRIMARIES["c"].column).lower_bound()
    return Claims(
        c_differs=bool(significant["c"]),
        closes=closing and bool(sure["guard"]),
        moves=closing and not sure["guard"],
        worst_gains=bool(significant["worst"] and above["worst"] and sure["worst of DRO-COX"]),
        harmless=bool(bound > HARMLESS),
        bound=float(bound),
    )


def share_of_gap(runs: pd.DataFrame) -> Share:
    """The share of Cox's gaps by sex and age that gentle DRO-COX closes."""
    rows = of_model(runs)
    counts = rows["dataset"].isin(list(REGISTERED["included"])) & rows["attribute"].isin(PRIMARY)
    sums = rows[counts].groupby("dataset")[["product_cox", "product"]].sum()
    return share_closed(sums["product_cox"], sums["product"])


def by_attribute(runs: pd.DataFrame) -> pd.DataFrame:
    """Closing and guard of each attribute alone, pooled where enough data sets have it."""
    rows = of_model(runs)
    rows = rows[rows["dataset"].isin(list(REGISTERED["included"]))]
    table = {}
    for attribute in ATTRIBUTES:
        some = rows[rows["attribute"] == attribute]
        for name in ("closing", "guard"):
            if len(some) >= FEWEST_DATA_SETS:
                se = some[f"{name}_se"].clip(lower=SMALLEST_ERROR)
                table[attribute, name] = _described(pool(some[name], se), 1.0)
    return pd.DataFrame(table).T.infer_objects()


def label(setting: Setting) -> str:
    """Name of a model for readers."""
    if setting.method == "ridge Cox":
        return f"ridge Cox, penalty {setting.penalty:g}"
    if np.isnan(setting.alpha):
        return "DRO-COX, paper, α tuned"
    rule = f", {setting.rule}" if setting.rule in ("sharp", "paper") else ""
    return f"{setting.method}{rule}, α = {setting.alpha:g}"


def all_models(runs: pd.DataFrame) -> pd.DataFrame:
    """Every model against Cox on the three outcomes; exploratory except for the first model."""
    table = {}
    for setting in SETTINGS:
        for name, outcome in PRIMARIES.items():
            if setting != COX and len(effects(runs, outcome.column, setting)) >= FEWEST_DATA_SETS:
                result = pooled(runs, outcome.column, setting)
                table[label(setting), name] = _described(result, outcome.margin)
    return pd.DataFrame(table).T.infer_objects()


def accuracy_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Brier scores and calibration slopes by model, with data sets as the unit.

    ``ibs_diff`` is the mean difference from Cox times 100, with its 95 % interval (Student's t over
    data sets); ``slope`` is the median, with quartiles.
    """
    cox = of_model(runs, COX).drop_duplicates("dataset").set_index("dataset")["ibs"]
    table = {}
    for setting in SETTINGS:
        rows = of_model(runs, setting).drop_duplicates("dataset").set_index("dataset")
        rows = rows[rows.index.isin(list(REGISTERED["included"]))]
        difference = 100 * (rows["ibs"] - cox[rows.index])
        k = len(difference)
        half = stats.t.ppf(0.975, k - 1) * difference.std(ddof=1) / np.sqrt(k)
        quartiles = rows["slope"].quantile([0.25, 0.5, 0.75])
        table[label(setting) if setting != COX else "Cox"] = {
            "ibs_diff": difference.mean(),
            "low": difference.mean() - half,
            "high": difference.mean() + half,
            "slope": quartiles[0.5],
            "slope_25": quartiles[0.25],
            "slope_75": quartiles[0.75],
        }
    return pd.DataFrame(table).T


MODERATORS = {
    "log events per feature": lambda rows: np.log(rows["events"] / rows["features"]),
    "share of events": lambda rows: rows["events"] / rows["patients"],
    "log patients": lambda rows: np.log(rows["patients"]),
    "c-index of Cox": lambda rows: rows["inside_c"],
    "gap of Cox": lambda rows: rows["inside_gap"],
}


def moderator_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How the primary outcomes change with one standard deviation of each moderator."""
    facts = of_model(runs).drop_duplicates("dataset").set_index("dataset")
    table = {}
    for moderator, value in MODERATORS.items():
        known = value(facts).dropna()
        for name, outcome in PRIMARIES.items():
            rows = effects(runs, outcome.column)
            rows = rows[rows.index.isin(known.index)]
            result = moderated(rows["effect"], rows["se"], known[rows.index])
            low, high = result.interval()
            row = {"slope": result.mean, "low": low, "high": high, "p": result.p}
            table[moderator, name] = row | {"data_sets": result.k}
    return pd.DataFrame(table).T
