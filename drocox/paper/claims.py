"""The paper's claims, judged: ``results/claims.yml`` holds words and thresholds, this the numbers.

Each claim is a number that must reach a threshold, in four views: *printed* (the published numbers,
where known), *as published* (our runs, the selection that gives published rows back), *stated rule*
(the same runs, the paper's rule) and *corrected*. Mathematics has the view *checked* alone.

A judge is a function of the view and of the folder of the store (None: the book's) that returns a
:class:`Count`; those of mathematics need neither.
"""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import yaml
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drocox import dro, fairness
from drocox.cox import cox_losses
from drocox.paper import protocol, store, tables
from drocox.paper.prepare import Prepared, prepare
from drocox.paper.protocol import ATTRIBUTES, METHODS, MODELS, PLAIN, PROTOCOLS, SPLIT, stacks
from drocox.paper.tables import EXHIBITS, VIEWS

PRINTED = "printed"
CHECKED = "checked"
MAIN = [EXHIBITS[e][:2] for e in ("t2", "t3", "t4")]
PAIRS = [(d, a) for d, attributes in ATTRIBUTES.items() for a in attributes]
FAIR = ["f_i", "f_g", "f_cap", "f_a", "ci_percent"]
DRO = {model: [protocol.DRO[model], SPLIT[model]] for model in MODELS}
BASELINES = {
    model: [name for name, m in METHODS.items() if m.model == model and not m.robust]
    for model in MODELS
}  # the plain model first


class Count(NamedTuple):
    """What a judge found: a number, out of how many it could look at, and where it holds."""

    value: float
    of: int
    where: str = ""


def _count(found: dict[str, bool]) -> Count:
    return Count(int(sum(found.values())), len(found), ", ".join(k for k, v in found.items() if v))


@cache
def _table(view: str, exhibit: str, out: Path | None) -> pd.DataFrame:
    """T2 to T17, long, with signed means (higher is better); empty if printed and not known."""
    if view == PRINTED:
        long = tables.published_table(exhibit)
    else:
        long = tables.exhibit_table(exhibit, out=out, **VIEWS[view])
    return long.assign(mean=tables.signed(long))


def _comparisons(
    view: str, out: Path | None, pairs, models=MODELS, tune_by: str = "ci_percent"
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Name, kind of model, and signed means of its eight methods, for each pair and kind."""
    for dataset, attribute in pairs:
        table = _table(view, tables.exhibit_of(dataset, attribute, tune_by), out)
        for model, part in table[table["model"].isin(models)].groupby("model"):
            means = part.pivot(index="method", columns="metric", values="mean")
            yield f"{dataset} {attribute} {model}", model, means


def best(
    view: str,
    out: Path | None = None,
    *,
    metric: str,
    pairs,
    models=MODELS,
    variants: bool = True,
    tune_by: str = "ci_percent",
) -> Count:
    """Comparisons in which DRO-COX (or either variant) beats every baseline on a metric.

    Parameters
    ----------
    view, out
        What a judge takes.
    metric : str
    pairs : list of (data set, attribute)
    models : sequence of {"linear", "nonlinear"}
    variants : bool
        Whether SPLIT counts as well.
    tune_by : {"ci_percent", "f_a"}

    Returns
    -------
    Count
    """
    found = {}
    for name, model, t in _comparisons(view, out, pairs, models, tune_by):
        ours = DRO[model] if variants else DRO[model][:1]
        found[name] = t.loc[ours, metric].max() > t.loc[BASELINES[model], metric].max()
    return _count(found)


def keeps_accuracy(view: str, out: Path | None = None) -> Count:
    """Comparisons in which DRO-COX has at least 95 % of the c-index of Cox (DeepSurv)."""
    found = {}
    for name, model, t in _comparisons(view, out, PAIRS):
        c = t["c_index"]
        found[name] = c[DRO[model][0]] >= 0.95 * c[PLAIN[model]]
    return _count(found)


def not_clear_cut(view: str, out: Path | None = None) -> Count:
    """Percentage of main cells won by the rarer winner of DRO-COX and SPLIT."""
    gaps = pd.concat(
        t.loc[DRO[model][0]] - t.loc[DRO[model][1]] for _, model, t in _comparisons(view, out, MAIN)
    )
    won = int((gaps > 0).sum())
    lost = int((gaps < 0).sum())
    where = f"DRO-COX better in {won}, SPLIT in {lost}"
    return Count(100 * min(won, lost) / len(gaps), len(gaps), where)


def plain_accurate_unfair(view: str, out: Path | None = None) -> Count:
    """Main comparisons with Cox (DeepSurv) in the top 3 on c, the bottom half on CI and F_A."""
    found = {}
    for name, model, t in _comparisons(view, out, MAIN):
        rank = t.rank(ascending=False, method="min").loc[PLAIN[model]]
        found[name] = rank["c_index"] <= 3 and min(rank["ci_percent"], rank["f_a"]) > 4
    return _count(found)


def baselines_not_fair_throughout(view: str, out: Path | None = None) -> Count:
    """Main comparisons where no regularised baseline is in the top 3 on four fairness metrics."""
    found = {}
    for name, model, t in _comparisons(view, out, MAIN):
        rank = t.rank(ascending=False, method="min").loc[BASELINES[model][1:]]
        found[name] = not (rank[["f_i", "f_g", "f_cap", "ci_percent"]] <= 3).all(axis=1).any()
    return _count(found)


def best_cells(view: str, out: Path | None = None) -> Count:
    """Percentage of (comparison, fairness metric) cells whose best mean is a DRO variant's."""
    counts = {metric: best(view, out, metric=metric, pairs=PAIRS) for metric in FAIR}
    won = sum(count.value for count in counts.values())
    cells = sum(count.of for count in counts.values())
    where = ", ".join(f"{metric} {count.value}" for metric, count in counts.items())
    return Count(100 * won / max(cells, 1), cells, where)


@cache
def _alpha(view: str, dataset: str, out: Path | None) -> pd.DataFrame:
    """Linear DRO-COX by alpha: columns ("mean", metric) and ("std", metric)."""
    if view == PRINTED:
        long = tables.published_figure().query("dataset == @dataset")
    else:
        long = tables.alpha_table(dataset, protocol=VIEWS[view]["protocol"], out=out)
    return long.pivot(index="alpha", columns="metric", values=["mean", "std"])


def accuracy_rises(view: str, out: Path | None = None) -> Count:
    """Data sets on which the c-index rises over the named alphas by more than a standard error."""
    found = {}
    for dataset in ATTRIBUTES:
        c = _alpha(view, dataset, out).xs("c_index", axis=1, level="metric")
        part = c.loc[[0.3, 0.5] if dataset == "support" else [0.1, 0.3]]
        # deviations have ddof 0: over ten repeats the squared error of a mean has 9 below
        error = np.sqrt((part["std"] ** 2).sum() / 9)
        found[dataset] = part["mean"].diff().iloc[1] > error
    return _count(found)


def fairness_worsens(view: str, out: Path | None = None) -> Count:
    """Fairness metrics and data sets whose mean rises with alpha: Spearman >= 0.6."""
    found = {}
    for dataset in ATTRIBUTES:
        mean = _alpha(view, dataset, out)["mean"]
        for metric in (m for m in FAIR if m in mean):
            found[f"{dataset} {metric}"] = spearmanr(mean.index, mean[metric])[0] >= 0.6 - 1e-12
    return _count(found)


def alpha_trades(view: str, out: Path | None = None) -> Count:
    """Data sets on which the more accurate alpha is the less fair one: Spearman >= 0.5."""
    found = {}
    for dataset in ATTRIBUTES:
        mean = _alpha(view, dataset, out)["mean"]
        found[dataset] = spearmanr(mean["c_index"], mean["f_a"])[0] >= 0.5 - 1e-12
    return _count(found)


def insensitive_to_share(view: str, out: Path | None = None) -> Count:
    """Metrics whose means range over at most 2 pooled SD across n2: the smaller of two models."""
    counts = {}
    for model, table in _table(view, "t16", out).groupby("model"):
        grouped = table.groupby("metric")
        spread = grouped["mean"].max() - grouped["mean"].min()
        pooled = grouped["std"].apply(lambda s: np.sqrt((s**2).mean()))
        counts[model] = int((spread <= 2 * pooled).sum())
    return Count(min(counts.values()), 9, ", ".join(f"{m} {n}" for m, n in counts.items()))


def two_sides_win(view: str, out: Path | None = None) -> Count:
    """Models for which both sides have the better mean than one on at least 6 of 9 metrics."""
    wins = {}
    for model, table in _table(view, "t17", out).groupby("model"):
        means = table.pivot(index="metric", columns="method", values="mean")
        wins[model] = int((means[SPLIT[model]] > means[tables.one_side(model)]).sum())
    where = ", ".join(f"{m} {n} of 9" for m, n in wins.items())
    return Count(sum(n >= 6 for n in wins.values()), 2, where)


def table_one(view: str, out: Path | None = None) -> Count:
    """Cells of Table 1 that equal the printed digits."""
    t = tables.dataset_table().query("quantity != 'sensitive attributes'")
    others = t[t["ours"] != t["paper"]]
    where = ", ".join(others["dataset"] + " " + others["quantity"])
    return Count(len(t) - len(others), len(t), f"differs: {where}" if where else "all")


@cache
def _cox(dataset: str) -> tuple[Prepared, np.ndarray, np.ndarray]:
    """Training and test scores of a Cox model of 1,000 patients, and the parts they belong to."""
    ready = prepare("corrected", dataset, 1)
    model = CoxPHSurvivalAnalysis().fit(ready.X[0][:1000], ready.train.y[:1000])
    return ready, model.predict(ready.X[0]), model.predict(ready.X[2])


def _some_losses() -> list[torch.Tensor]:
    draw = np.random.default_rng(0)
    made = [draw.exponential(size=n) for n in (5, 50, 500)] + [draw.normal(size=200)]
    real = [
        cox_losses(torch.from_numpy(scores), ready.test.time, ready.test.event)
        for ready, _, scores in map(_cox, ATTRIBUTES)
    ]
    return [*map(torch.from_numpy, made), *real]


def bound_holds(view: str, out: Path | None = None) -> Count:
    """2 if the ball of Proposition 2 holds every group of probability alpha in (0, 1); 1 if some.

    One group of mass alpha has all the loss: the risk over the ball must reach 1.
    """
    held = []
    for percent in range(1, 100):
        losses = (torch.arange(100) < percent).double()
        if float(dro.dro_risk(losses, percent / 100, rule="definition")) >= 1 - 1e-9:
            held.append(percent / 100)
    return Count(int(len(held) == 99) + int(len(held) > 0), 2, f"alpha up to {max(held):.2f}")


def dual_equals_primal(view: str, out: Path | None = None) -> Count:
    """2 if the printed dual constant gives the primal value, 1 if it only bounds it.

    The worst-case distribution of the definition's constant lies in the ball and its expected loss
    equals the dual value, so both are the primal value; the printed constant is held against it.
    """
    excess = []
    for losses in _some_losses():
        for alpha in (0.1, 0.2, 0.3, 0.5):
            q = dro.worst_case_weights(losses, alpha, rule="definition")
            inside = float((len(q) * q - 1).square().mean()) <= (1 / alpha - 1) ** 2 + 1e-9
            primal = float((q * losses).sum())
            attained = abs(float(dro.dro_risk(losses, alpha, rule="definition")) - primal) < 1e-6
            if not (inside and attained):
                return Count(0, 2, "the worst-case distribution leaves the ball")
            excess.append(float(dro.dro_risk(losses, alpha)) - primal)
    value = 2 if max(map(abs, excess)) < 1e-6 else int(min(excess) > -1e-9)
    return Count(value, 2, f"printed constant above the primal by up to {max(excess):.3f}")


def convex_and_blind(view: str, out: Path | None = None) -> Count:
    """2 if the dual objective is convex in eta and losses below its minimiser have no influence."""
    convex = blind = True
    for losses in _some_losses():
        for alpha in (0.1, 0.3, 0.5):
            c = dro.dual_constant(alpha)
            low, high = float(losses.min()) - 5, float(losses.max()) + 1
            at = torch.linspace(low, high, 301, dtype=torch.float64)
            above = (losses - at[:, None]).clamp(min=0)
            value = c * above.square().mean(-1).sqrt() + at
            convex &= bool((value[2:] - 2 * value[1:-1] + value[:-2] > -1e-9).all())
            below = losses < dro.optimal_eta(losses, c)
            lower = torch.where(below, losses - 7.0, losses)
            blind &= bool((dro.dro_risk(lower, alpha) - dro.dro_risk(losses, alpha)).abs() < 1e-9)
    return Count(convex + blind, 2, f"convex {convex}, no influence {blind}")


def lipschitz(view: str, out: Path | None = None) -> Count:
    """2 if F_I = 0 exactly when the hazard is gamma-Lipschitz between test patients, on real data.

    Hazards are scaled up and down around the factor at which their largest slope is gamma.
    """
    forward = backward = True
    for dataset in ATTRIBUTES:
        ready, _, scores = _cox(dataset)
        X = ready.X[2][:300]
        hazards = np.exp(scores[:300])
        apart = pdist(X / np.linalg.norm(X, axis=1, keepdims=True))
        gap = pdist(hazards[:, None], "cityblock")
        slope = (gap[apart > 0] / apart[apart > 0]).max()
        for factor in (0.1, 0.5, 0.99, 1.01, 2.0, 100.0):
            unfair = fairness.individual(factor * 0.01 / slope * hazards, X)
            forward &= unfair <= 1e-15 or factor > 1
            backward &= unfair > 0 or factor < 1
    return Count(forward + backward, 2, f"to 0 {forward}, back {backward}")


def shrinking_fools(view: str, out: Path | None = None) -> Count:
    """Data sets on which halved scores lower F_I and F_G, keep the c-index and move the IBS."""
    found = {}
    for dataset, attributes in ATTRIBUTES.items():
        ready, train, test = _cox(dataset)
        full, half = (
            ready.judges[1].fairness(s * train, s * test)
            | ready.judges[1].accuracy(s * train, s * test)
            for s in (1.0, 0.5)
        )
        lower = all(half[m] < full[m] for m in ("f_i", f"f_g_{attributes[0]}"))
        same_order = abs(half["c_index"] - full["c_index"]) < 1e-12
        found[dataset] = lower and same_order and abs(half["ibs"] - full["ibs"]) > 1e-6
    return _count(found)


# fmt: off
JUDGES = {
    "C1": table_one,
    "C2": partial(best, metric="ci_percent", pairs=MAIN, models=("linear",), variants=False),
    "C3": partial(best, metric="ci_percent", pairs=MAIN, models=("nonlinear",), variants=False),
    "C4": partial(best, metric="ci_percent", pairs=[p for p in PAIRS if p not in MAIN]),
    "C5": keeps_accuracy, "C6": not_clear_cut, "C7": plain_accurate_unfair,
    "C8": baselines_not_fair_throughout, "C9": accuracy_rises, "C10": fairness_worsens,
    "C11": partial(best, metric="f_a", pairs=PAIRS, tune_by="f_a"),
    "C12": insensitive_to_share, "C13": two_sides_win, "C14": best_cells, "C15": alpha_trades,
    "C16": bound_holds, "C17": dual_equals_primal, "C18": convex_and_blind, "C19": lipschitz,
    "C20": shrinking_fools,
}
# fmt: on


def claims() -> dict[str, dict]:
    """The claims file: words, thresholds and recorded verdicts.

    Returns
    -------
    dict
        By id, "C1" to "C20".
    """
    text = (store.DEFAULT / "claims.yml").read_text(encoding="utf-8")
    return {claim["id"]: claim for claim in yaml.safe_load(text)}


def verdict(claim: dict, count: Count) -> str:
    """The verdict that a claim's thresholds give.

    Parameters
    ----------
    claim : dict
        Of :func:`claims`.
    count : Count
        Of the claim's judge.

    Returns
    -------
    str
        "reproduced", "partly", "not", or "unknown" where not every case is published.
    """
    if count.of < claim["of"]:
        return "unknown"
    if count.value >= claim["reproduced"]:
        return "reproduced"
    return "partly" if count.value >= claim.get("partly", np.inf) else "not"


def ledger(*, out: Path | str | None = None) -> pd.DataFrame:
    """All claims in all views.

    Parameters
    ----------
    out : path, optional
        Folder of the store, by default the book's. It must hold both protocols in full.

    Returns
    -------
    DataFrame
        id, view, value, of, where, verdict.
    """
    out = None if out is None else Path(out)
    for name in PROTOCOLS:
        wanted = sum(len(stack.grid()) for stack in stacks(name))
        there = len(store.load_runs(name, out=out))
        if there < wanted:
            raise store.StoreError(
                f"the claims need all {wanted:,} models of {name!r}, and the store holds "
                f"{there:,}; run: {store.command(name, out)}"
            )
    _table.cache_clear()  # the store may have changed since the last call
    _alpha.cache_clear()
    rows = []
    for name, claim in claims().items():
        views = [CHECKED] if claim["kind"] == "mathematics" else [PRINTED, *VIEWS]
        for view in views:
            count = JUDGES[name](view, out)
            rows.append((name, view, *count, verdict(claim, count)))
    return pd.DataFrame(rows, columns=["id", "view", *Count._fields, "verdict"])
