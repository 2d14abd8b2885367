"""The paper's claims: ``results/claims.yml`` has words and thresholds, this module the numbers.

Each claim is a number that must reach a threshold, in six views: *printed* (the published numbers,
where known), *recovered* (our runs, under the rules that reproduce published rows; only where there
are published rows), *reproduced* and *one setting* (the same runs, with the selections "stated" and
"one_setting"), and *corrected* with either selection. Mathematical claims have the single view
*checked*.

:data:`COUNTS` maps each claim to a function of the view and of the folder of the store (None: the
book's) that returns a :class:`Count`; claims that need no runs are in :mod:`drocox.paper.theory`.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from drocox.paper import comparisons, protocol, store, tables, theory
from drocox.paper.comparisons import (
    BASELINE,
    DRO_COX,
    EITHER_DRO,
    MAIN_PAIRS,
    PAIRS,
    PENALISED,
    PLAIN_COX,
    SPLIT_COX,
)
from drocox.paper.protocol import ATTRIBUTES, MODELS, PROCEDURES
from drocox.paper.tables import EXHIBITS, METRICS
from drocox.paper.theory import Count
from drocox.tuning import KEPT

CHECKED = "checked"
PRINTED = "printed"
VIEWS = {  # of our runs: protocol and selection
    "recovered": ("as_published", "recovered"),
    "reproduced": ("as_published", "stated"),
    "one setting": ("as_published", "one_setting"),
    "corrected": ("corrected", "stated"),
    "corrected, one setting": ("corrected", "one_setting"),
}
FAIR = ["f_i", "f_g", "f_cap", "f_a", "ci_percent"]
SIGN = {metric: 1 if higher else -1 for metric, (_, higher) in METRICS.items()}


# Means over the repeats


def _printed(tune_by: str) -> pd.DataFrame:
    """The published means of the tables tuned by one metric, in long form; none by F_A."""
    frames = []
    for exhibit, (dataset, attribute, tuned_by) in EXHIBITS.items():
        if tuned_by == tune_by:
            cells = tables.published_table(exhibit)
            frames.append(cells.assign(dataset=dataset, attribute=attribute))
    return pd.concat(frames, ignore_index=True).rename(columns={"mean": "value"})


@cache
def means(view: str, out: Path | None = None, tune_by: str = "ci_percent") -> pd.Series:
    """Means of the methods in each comparison, negative where lower is better.

    The index is comparison, method and metric. The views "printed" and "recovered" have only the
    comparisons whose numbers were published.
    """
    if view == PRINTED:
        runs = _printed(tune_by)
    else:
        runs = comparisons.chosen_runs(*VIEWS[view], tune_by=tune_by, out=out)
    runs = comparisons.of_comparisons(runs[runs["metric"].isin(METRICS)], PAIRS)
    value = runs["value"] * runs["metric"].map(SIGN)
    row = ["comparison", "method", "metric"]
    return runs.assign(value=value).groupby(row, sort=False)["value"].mean()


def _of(
    view: str,
    out: Path | None,
    pairs: Sequence,
    metrics: Sequence[str],
    models: Collection[str] = MODELS,
    tune_by: str = "ci_percent",
) -> pd.Series:
    """The rows of :func:`means` that a claim is about."""
    table = means(view, out, tune_by)
    names = [f"{dataset} {attribute} {model}" for dataset, attribute in pairs for model in models]
    wanted = table.index.isin(names, level="comparison")
    return table[wanted & table.index.isin(metrics, level="metric")]


def _one(table: pd.Series, methods: Collection[str]) -> pd.Series:
    """The rows of the one method of each comparison that is in a list: by comparison, metric."""
    return table[table.index.isin(methods, level="method")].droplevel("method")


def _best(table: pd.Series, methods: Collection[str]) -> pd.Series:
    """The best mean among some methods: by comparison, metric."""
    return comparisons.best_of(table, methods).droplevel("method")


def _rank(table: pd.Series) -> pd.Series:
    """The rank of each method in its comparison, 1 for the best."""
    return table.groupby(["comparison", "metric"]).rank(method="min", ascending=False)


def count_cases(holds: pd.Series) -> Count:
    """The number of cases that hold."""
    return Count(int(holds.sum()), len(holds), ", ".join(holds.index[holds.astype(bool)]))


# The counts


def best(
    view: str,
    out: Path | None = None,
    *,
    metric: str,
    pairs: Sequence,
    models: Collection[str] = MODELS,
    ours: Collection[str] = EITHER_DRO,
    theirs: Collection[str] = BASELINE,
    tune_by: str = "ci_percent",
) -> Count:
    """Comparisons in which the best of some methods has a better mean than the best of others.

    Arguments as in :func:`means` and :func:`drocox.paper.comparisons.leads`.
    """
    table = _of(view, out, pairs, [metric], models, tune_by)
    return count_cases((_best(table, ours) > _best(table, theirs)).droplevel("metric"))


def _keeps_accuracy(view: str, out: Path | None = None) -> Count:
    """Comparisons in which DRO-COX has at least 95 % of the c-index of Cox (DeepSurv)."""
    table = _of(view, out, PAIRS, ["c_index"]).droplevel("metric")
    return count_cases(_one(table, DRO_COX) >= KEPT * _one(table, PLAIN_COX))


def _not_clear_cut(view: str, out: Path | None = None) -> Count:
    """Percentage of main cells won by the rarer winner of DRO-COX and SPLIT."""
    table = _of(view, out, MAIN_PAIRS, [*METRICS])
    lead = _one(table, DRO_COX) - _one(table, SPLIT_COX)
    won, lost = (lead > 0).sum(), (lead < 0).sum()
    where = f"DRO-COX better in {won}, SPLIT in {lost}"
    return Count(100 * min(won, lost) / len(lead), len(lead), where)


def _plain_accurate_unfair(view: str, out: Path | None = None) -> Count:
    """Main comparisons with Cox (DeepSurv) in the top 3 on c, the bottom half on CI and F_A."""
    rank = _one(_rank(_of(view, out, MAIN_PAIRS, ["c_index", "ci_percent", "f_a"])), PLAIN_COX)
    accurate = rank.xs("c_index", level="metric") <= 3
    unfair = (rank.xs("ci_percent", level="metric") > 4) & (rank.xs("f_a", level="metric") > 4)
    return count_cases(accurate & unfair)


def _baselines_not_fair_throughout(view: str, out: Path | None = None) -> Count:
    """Main comparisons where no regularised baseline is in the top 3 on four fairness metrics."""
    rank = _rank(_of(view, out, MAIN_PAIRS, ["f_i", "f_g", "f_cap", "ci_percent"]))
    in_top_three = (rank <= 3).groupby(["comparison", "method"], sort=False).all()
    fair_throughout = in_top_three[in_top_three.index.isin(PENALISED, level="method")]
    return count_cases(~fair_throughout.groupby("comparison", sort=False).any())


def _best_cells(view: str, out: Path | None = None) -> Count:
    """Percentage of (comparison, fairness metric) cells whose best mean is a DRO variant's."""
    table = _of(view, out, PAIRS, FAIR)
    won = _best(table, EITHER_DRO) > _best(table, BASELINE)
    by_metric = won.groupby("metric").sum()
    where = ", ".join(f"{metric} {by_metric[metric]}" for metric in FAIR)
    return Count(100 * won.mean(), len(won), where)


@cache
def _by_alpha(view: str, out: Path | None = None) -> tuple[pd.Series, pd.Series]:
    """Means of linear DRO-COX and their squared errors, by data set, metric and alpha."""
    if view == PRINTED:
        points = tables.published_figure()
    else:
        points = pd.concat(
            tables.alpha_table(dataset, protocol=VIEWS[view][0], out=out).assign(dataset=dataset)
            for dataset in ATTRIBUTES
        )
    points = points.set_index(["dataset", "metric", "alpha"]).sort_index()
    return points["mean"], points["std"] ** 2 / 9  # deviations of ten have ddof 0


def _accuracy_rises(view: str, out: Path | None = None) -> Count:
    """Data sets on which the c-index rises over the named alphas by more than a standard error."""
    mean, squared_error = _by_alpha(view, out)
    rises = {}
    for dataset in ATTRIBUTES:
        low, high = (0.3, 0.5) if dataset == "support" else (0.1, 0.3)
        first, last = (dataset, "c_index", low), (dataset, "c_index", high)
        error = np.sqrt(squared_error.loc[first] + squared_error.loc[last])
        rises[dataset] = mean.loc[last] - mean.loc[first] > error
    return count_cases(pd.Series(rises))


def _spearman(a: pd.Series, b: pd.Series) -> float:
    """Rank correlation of two series of the same index."""
    return a.rank().corr(b.rank())


def _fairness_worsens(view: str, out: Path | None = None) -> Count:
    """Fairness metrics and data sets whose mean rises with alpha: Spearman >= 0.6."""
    means_by_alpha = _by_alpha(view, out)[0]
    rises = {}
    for dataset, metric in product(ATTRIBUTES, FAIR):
        if (dataset, metric) in means_by_alpha.index:  # CI is not in the published figure
            mean = means_by_alpha.loc[(dataset, metric)]
            alpha = mean.index.to_series()
            rises[f"{dataset} {metric}"] = _spearman(mean, alpha) >= 0.6 - 1e-12
    return count_cases(pd.Series(rises))


def _alpha_trades(view: str, out: Path | None = None) -> Count:
    """Data sets on which the more accurate alpha is the less fair one: Spearman >= 0.5."""
    mean = _by_alpha(view, out)[0]
    trades = {}
    for dataset in ATTRIBUTES:
        accuracy, unfairness = mean.loc[(dataset, "c_index")], mean.loc[(dataset, "f_a")]
        trades[dataset] = _spearman(accuracy, unfairness) >= 0.5 - 1e-12
    return count_cases(pd.Series(trades))


def _of_split(view: str, exhibit: str, out: Path | None) -> pd.DataFrame:
    """Mean and SD (ddof 0) of the rows of T16 or T17, by model, method and metric."""
    if view == PRINTED:
        rows = tables.published_table(exhibit)
    else:
        which, selection = VIEWS[view]
        rows = tables.exhibit_table(exhibit, protocol=which, selection=selection, out=out)
    return rows.set_index(["model", "method", "metric"])[["mean", "std"]]


def _insensitive_to_share(view: str, out: Path | None = None) -> Count:
    """Metrics whose means range over at most 2 pooled SD across n2: the smaller of two models."""
    rows = _of_split(view, "t16", out).groupby(["model", "metric"])
    pooled = np.sqrt(rows["std"].agg(lambda std: (std**2).mean()))
    stay = (rows["mean"].max() - rows["mean"].min() <= 2 * pooled).groupby("model").sum()
    where = ", ".join(f"{model} {stay[model]}" for model in MODELS)
    return Count(int(stay.min()), len(METRICS), where)


def _two_sides_win(view: str, out: Path | None = None) -> Count:
    """Models for which both sides have the better mean than one on at least 6 of 9 metrics."""
    mean = _of_split(view, "t17", out)["mean"]
    mean = mean * mean.index.get_level_values("metric").map(SIGN)
    both = mean.index.isin(SPLIT_COX, level="method")
    better = mean[both].droplevel("method") > mean[~both].droplevel("method")
    wins = better.groupby("model").sum()
    where = ", ".join(f"{model} {wins[model]} of 9" for model in MODELS)
    return count_cases(wins >= 6)._replace(where=where)


# The comparisons of some claims: arguments of :func:`best` and of :func:`_detectable`.
_MAIN_CI: dict[str, Any] = {"metric": "ci_percent", "pairs": MAIN_PAIRS}
_OTHER_PAIRS = [pair for pair in PAIRS if pair not in MAIN_PAIRS]
COMPARISON_OF: dict[str, dict[str, Any]] = {
    "C2": _MAIN_CI | {"models": ("linear",), "ours": DRO_COX},
    "C3": _MAIN_CI | {"models": ("nonlinear",), "ours": DRO_COX},
    "C4": {"metric": "ci_percent", "pairs": _OTHER_PAIRS},
    "C5": {"metric": "c_index", "pairs": PAIRS, "ours": DRO_COX, "theirs": PLAIN_COX},
    "C7": _MAIN_CI | {"ours": PLAIN_COX, "theirs": PENALISED + EITHER_DRO},
    "C11": {"metric": "f_a", "pairs": PAIRS, "tune_by": "f_a"},
    "C14": {"metric": "ci_percent", "pairs": PAIRS},
}
COUNTS: dict[str, Callable[..., Count]] = {
    "C1": theory.table_one,
    "C2": partial(best, **COMPARISON_OF["C2"]),
    "C3": partial(best, **COMPARISON_OF["C3"]),
    "C4": partial(best, **COMPARISON_OF["C4"]),
    "C5": _keeps_accuracy,
    "C6": _not_clear_cut,
    "C7": _plain_accurate_unfair,
    "C8": _baselines_not_fair_throughout,
    "C9": _accuracy_rises,
    "C10": _fairness_worsens,
    "C11": partial(best, **COMPARISON_OF["C11"]),
    "C12": _insensitive_to_share,
    "C13": _two_sides_win,
    "C14": _best_cells,
    "C15": _alpha_trades,
    "C16": theory.bound_holds,
    "C17": theory.dual_equals_primal,
    "C18": theory.convex_and_blind,
    "C19": theory.lipschitz,
    "C20": theory.shrinking_fools,
}


def claims() -> dict[str, dict]:
    """The claims file by id, "C1" to "C20": words, thresholds and recorded verdicts."""
    written = (store.DEFAULT / "claims.yml").read_text("utf-8")
    return {claim["id"]: claim for claim in yaml.safe_load(written)}


def verdict(claim: dict, count: Count) -> str:
    """The verdict on a claim: "reproduced", "partly", "not", or "unknown" if unpublished."""
    if count.of < claim["of"]:
        return "unknown"
    if count.value >= claim["reproduced"]:
        return "reproduced"
    return "partly" if count.value >= claim.get("partly", np.inf) else "not"


def _detectable(name: str, view: str, out: Path | None) -> pd.Series:
    """The detectable differences of a claim's comparisons; for CI, of signed gaps."""
    wanted = {"ours": EITHER_DRO, "theirs": BASELINE} | COMPARISON_OF[name]
    metric = wanted.pop("metric")
    if metric != "ci_percent":
        return comparisons.leads(metric, *VIEWS[view], out=out, **wanted)["detectable"]
    return comparisons.power(comparisons.gaps(*VIEWS[view], out=out, **wanted))["detectable"]


def ledger(*, out: Path | str | None = None) -> pd.DataFrame:
    """All claims in all views.

    Parameters
    ----------
    out : path, optional
        Folder of the store, by default the book's. It must hold all protocols in full.

    Returns
    -------
    DataFrame
        id, view, value, of, where, verdict, and beside a "not" detectable: the smallest and the
        largest difference that the comparisons would have shown with probability 80 %, as text; of
        CI, the difference of signed gaps.
    """
    out = None if out is None else Path(out)
    for name in PROCEDURES:
        wanted = sum(len(stack.grid()) for stack in protocol.stacks(name))
        there = len(store.load_runs(name, out=out))
        if there < wanted:
            what = f"the claims need all {wanted:,} models of {name!r}, the store holds {there:,}"
            raise store.StoreError(f"{what}; run: {store.command(name, out)}")
    for remembered in (means, _by_alpha):
        remembered.cache_clear()  # the store may have changed since the last call
    rows = []
    for name, claim in claims().items():
        views = [CHECKED] if claim["kind"] == "mathematics" else [PRINTED, *VIEWS]
        for view in views:
            count = COUNTS[name](view, out)
            word = verdict(claim, count)
            seen = ""
            if word == "not" and name in COMPARISON_OF and view != PRINTED:
                could = _detectable(name, view, out)
                seen = f"{could.min():.2g} to {could.max():.2g}"
            rows.append((name, view, *count, word, seen))
    return pd.DataFrame(rows, columns=["id", "view", *Count._fields, "verdict", "detectable"])
