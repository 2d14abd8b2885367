"""The paper's claims, judged: ``results/claims.yml`` holds words and thresholds, this the numbers.

Each claim is a number that must reach a threshold, in six views: *printed* (the published numbers,
where known), *as published* (our runs, the selection that gives published rows back; only where
there are published rows), *stated rule* and *one setting* (the same runs, the paper's rule in its
two readings), and *corrected* in both readings. Mathematics has the view *checked* alone.

A judge is a function of the view and of the folder of the store (None: the book's) that returns a
:class:`Count`; those that need neither are in :mod:`drocox.paper.checked`. A count is taken over
all repeats and over every three of the ten: a verdict that recurs in fewer than 90 % of these 120
resamples is *undecided*.
"""

from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from scipy.stats import rankdata

from drocox.paper import checked, protocol, signed, store, tables
from drocox.paper.checked import Count
from drocox.paper.comparisons import (  # some of them for those who read the claims
    ALL_OTHERS,
    AT,
    BASELINE,
    DRO_COX,
    EITHER_DRO,
    MAIN_PAIRS,
    PAIRS,
    PENALISED,
    PRINTED,
    SMALL,  # noqa: F401
    SPLIT_COX,
    TESTED_PER_LEARNED,  # noqa: F401
    UNPENALISED,
    best,
    comparisons,
    count_cases,
    detectable_errors,
    exhibit_values,
    interval,  # noqa: F401
    leads,
    over_draws,
)
from drocox.paper.protocol import ALPHAS, ATTRIBUTES, METHODS, MODELS, SPLIT, STORES
from drocox.paper.tables import METRICS, READINGS, VIEWS
from drocox.tuning import KEPT

CHECKED = "checked"
IN_ORDER = [PRINTED, "as published", "stated rule", "one setting"]  # views, as they are shown
IN_ORDER += ["corrected", "corrected, one setting"]
MARKS = ["recurs", "undecided", "detectable"]  # what the ledger says beside a verdict
RECURS = 0.9  # share of the resamples in which a decided verdict recurs
FAIR = ["f_i", "f_g", "f_cap", "f_a", "ci_percent"]
DRO = {model: [protocol.DRO[model], SPLIT[model]] for model in MODELS}
BASELINES = {
    model: [name for name, m in METHODS.items() if m.model == model and not m.robust]
    for model in MODELS
}  # the plain model first


def _keeps_accuracy(view: str, out: Path | None = None) -> Count:
    """Comparisons in which DRO-COX has at least 95 % of the c-index of Cox (DeepSurv)."""
    means = comparisons(view, out, PAIRS).means()
    of_dro = means.of("c_index", DRO_COX)[..., 0]
    of_cox = means.of("c_index", UNPENALISED)[..., 0]
    return count_cases(of_dro >= KEPT * of_cox, means.names)


def _percentage(won: np.ndarray, of: int, where: str) -> Count:
    value, *resampled = (100 * won / max(of, 1)).tolist()
    return Count(value, of, where, tuple(resampled))


def _not_clear_cut(view: str, out: Path | None = None) -> Count:
    """Percentage of main cells won by the rarer winner of DRO-COX and SPLIT."""
    means = comparisons(view, out, MAIN_PAIRS).means()
    by_metric = [means.of(metric, DRO_COX) - means.of(metric, SPLIT_COX) for metric in METRICS]
    gaps = np.concatenate(by_metric, axis=2)  # draws x comparisons x metrics
    won = (gaps > 0).sum(axis=(1, 2))
    lost = (gaps < 0).sum(axis=(1, 2))
    where = f"DRO-COX better in {won[0]}, SPLIT in {lost[0]}"
    return _percentage(np.minimum(won, lost), gaps[0].size, where)


def _plain_accurate_unfair(view: str, out: Path | None = None) -> Count:
    """Main comparisons with Cox (DeepSurv) in the top 3 on c, the bottom half on CI and F_A."""
    means = comparisons(view, out, MAIN_PAIRS).means()

    def better(metric: str) -> np.ndarray:
        """How many methods are better than Cox (DeepSurv): draws x comparisons."""
        return (means.of(metric) > means.of(metric, UNPENALISED)).sum(axis=2)

    accurate = better("c_index") < 3
    unfair = (better("ci_percent") >= 4) & (better("f_a") >= 4)
    return count_cases(accurate & unfair, means.names)


def _baselines_not_fair_throughout(view: str, out: Path | None = None) -> Count:
    """Main comparisons where no regularised baseline is in the top 3 on four fairness metrics."""
    means = comparisons(view, out, MAIN_PAIRS).means()
    in_top_three = []
    for metric in ("f_i", "f_g", "f_cap", "ci_percent"):
        everyone = means.of(metric)[:, :, None, :]
        rivals = means.of(metric, PENALISED)[:, :, :, None]
        better = (everyone > rivals).sum(axis=-1)  # how many methods are, than each rival
        in_top_three.append(better < 3)
    fair_throughout = np.all(in_top_three, axis=0)  # draws x comparisons x rivals
    return count_cases(~fair_throughout.any(axis=-1), means.names)


def _best_cells(view: str, out: Path | None = None) -> Count:
    """Percentage of (comparison, fairness metric) cells whose best mean is a DRO variant's."""
    means = comparisons(view, out, PAIRS).means()
    by_metric = []
    for metric in FAIR:
        ours = means.of(metric, EITHER_DRO).max(axis=2)
        theirs = means.of(metric, BASELINE).max(axis=2)
        by_metric.append(ours > theirs)
    won = np.stack(by_metric, axis=2)  # draws x comparisons x metrics
    where = ", ".join(f"{m} {n}" for m, n in zip(FAIR, won[0].sum(axis=0), strict=True))
    return _percentage(won.sum(axis=(1, 2)), won[0].size, where)


def _squared_error(values: np.ndarray, axis: int) -> np.ndarray:
    """Of a mean."""
    return values.var(axis=axis, ddof=1) / values.shape[axis]


@cache
def _by_alpha(view: str, dataset: str, out: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Means of linear DRO-COX and their squared errors: draws x alphas x metrics."""
    if view == PRINTED:
        points = tables.published_figure().query("dataset == @dataset")
        wide = points.pivot(index="alpha", columns="metric", values=["mean", "std"])
        mean = wide["mean"].reindex(columns=[*METRICS]).to_numpy()
        std = wide["std"].reindex(columns=[*METRICS]).to_numpy()
        squared_error = std**2 / 9  # published deviations of ten repeats have ddof 0
        return mean[None], squared_error[None]
    name = (VIEWS | READINGS)[view]["protocol"]
    rows = tables.metrics_of(tables.alpha_runs(dataset, protocol=name, out=out), name)
    values = rows.to_numpy().reshape(-1, len(ALPHAS), len(METRICS))
    return over_draws(values), over_draws(values, _squared_error)


def _accuracy_rises(view: str, out: Path | None = None) -> Count:
    """Data sets on which the c-index rises over the named alphas by more than a standard error."""
    rises = []
    for dataset in ATTRIBUTES:
        low, high = (0.3, 0.5) if dataset == "support" else (0.1, 0.3)
        ends = [ALPHAS.index(low), ALPHAS.index(high)]
        means, squared_errors = _by_alpha(view, dataset, out)
        mean = means[:, ends, AT["c_index"]]
        difference = mean[:, 1] - mean[:, 0]
        standard_error = np.sqrt(squared_errors[:, ends, AT["c_index"]].sum(axis=1))
        rises.append(difference > standard_error)
    return count_cases(np.stack(rises, axis=1), [*ATTRIBUTES])


def _spearman(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rank correlation of each row of ``a`` with that of ``b``."""
    middle = (a.shape[1] + 1) / 2
    a = rankdata(a, axis=1) - middle
    b = rankdata(b, axis=1) - middle
    return (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))


def _fairness_worsens(view: str, out: Path | None = None) -> Count:
    """Fairness metrics and data sets whose mean rises with alpha: Spearman >= 0.6."""
    by_case = {}
    for dataset in ATTRIBUTES:
        means = _by_alpha(view, dataset, out)[0]
        for metric in FAIR:
            mean = means[..., AT[metric]]
            if np.isfinite(mean).all():  # CI is not in the published figure
                rises = _spearman(np.tile(ALPHAS, (len(mean), 1)), mean) >= 0.6 - 1e-12
                by_case[f"{dataset} {metric}"] = rises
    return count_cases(np.stack([*by_case.values()], axis=1), [*by_case])


def _alpha_trades(view: str, out: Path | None = None) -> Count:
    """Data sets on which the more accurate alpha is the less fair one: Spearman >= 0.5."""
    means = [_by_alpha(view, dataset, out)[0] for dataset in ATTRIBUTES]
    rho = [_spearman(m[..., AT["c_index"]], m[..., AT["f_a"]]) for m in means]
    return count_cases(np.stack(rho, axis=1) >= 0.5 - 1e-12, [*ATTRIBUTES])


def _insensitive_to_share(view: str, out: Path | None = None) -> Count:
    """Metrics whose means range over at most 2 pooled SD across n2: the smaller of two models."""
    values = exhibit_values(view, "t16", out)
    std = over_draws(values, np.std) if view != PRINTED else exhibit_values(view, "t16", out, "std")
    pooled = np.sqrt((std**2).mean(axis=2))
    stay = (np.ptp(over_draws(values), axis=2) <= 2 * pooled).sum(axis=-1)
    where = ", ".join(f"{m} {n}" for m, n in zip(MODELS, stay[0], strict=True))
    value, *resampled = stay.min(axis=1).tolist()
    return Count(value, len(METRICS), where, tuple(resampled))


def _two_sides_win(view: str, out: Path | None = None) -> Count:
    """Models for which both sides have the better mean than one on at least 6 of 9 metrics."""
    means = over_draws(exhibit_values(view, "t17", out))
    wins = (means[:, :, 1] > means[:, :, 0]).sum(axis=-1)  # rows: one side, both sides
    where = ", ".join(f"{m} {n} of 9" for m, n in zip(MODELS, wins[0], strict=True))
    return count_cases(wins >= 6, [*MODELS])._replace(where=where)


# What some claims compare: how :func:`best` counts, and what a "not" could have detected.
_MAIN_CI = {"metric": "ci_percent", "pairs": MAIN_PAIRS}
_OTHER_PAIRS = [pair for pair in PAIRS if pair not in MAIN_PAIRS]
COMPARISON_OF = {
    "C2": _MAIN_CI | {"models": ("linear",), "ours": DRO_COX},
    "C3": _MAIN_CI | {"models": ("nonlinear",), "ours": DRO_COX},
    "C4": {"metric": "ci_percent", "pairs": _OTHER_PAIRS},
    "C5": {"metric": "c_index", "pairs": PAIRS, "ours": DRO_COX, "theirs": UNPENALISED},
    "C7": _MAIN_CI | {"ours": UNPENALISED, "theirs": ALL_OTHERS},
    "C11": {"metric": "f_a", "pairs": PAIRS, "tune_by": "f_a"},
    "C14": {"metric": "ci_percent", "pairs": PAIRS},
}
JUDGES = {
    "C1": checked.table_one,
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
    "C16": checked.bound_holds,
    "C17": checked.dual_equals_primal,
    "C18": checked.convex_and_blind,
    "C19": checked.lipschitz,
    "C20": checked.shrinking_fools,
}


def claims() -> dict[str, dict]:
    """The claims file: words, thresholds and recorded verdicts.

    Returns
    -------
    dict
        By id, "C1" to "C20".
    """
    written = (store.DEFAULT / "claims.yml").read_text("utf-8")
    return {claim["id"]: claim for claim in yaml.safe_load(written)}


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


def recurrence(claim: dict, count: Count) -> float:
    """Share of the resamples, three repeats each, that give the same verdict.

    Parameters
    ----------
    claim, count
        As in :func:`verdict`.

    Returns
    -------
    float
        NaN where there is no verdict or nothing to resample.
    """
    word = verdict(claim, count)
    again = [verdict(claim, count._replace(value=value)) == word for value in count.resampled]
    return float(np.mean(again)) if again and word != "unknown" else np.nan


def _detectable(name: str, view: str, out: Path | None) -> pd.Series:
    """What the comparisons of a claim could have shown; of CI, in signed gaps."""
    wanted = dict(COMPARISON_OF[name])
    if wanted["metric"] != "ci_percent":
        return leads(view, out, **wanted)["detectable"]
    del wanted["metric"]
    wanted = {"ours": EITHER_DRO, "theirs": BASELINE} | wanted
    table = signed.gaps(view, out, **wanted)
    return table["difference_error"] * detectable_errors(len(protocol.REPEATS))


def ledger(*, out: Path | str | None = None) -> pd.DataFrame:
    """All claims in all views.

    Parameters
    ----------
    out : path, optional
        Folder of the store, by default the book's. It must hold all protocols in full.

    Returns
    -------
    DataFrame
        id, view, value, of, where, verdict, recurs (see :func:`recurrence`), undecided (whether
        that is below 90 %), and beside a "not" detectable: the smallest and the largest difference
        that the comparisons would have shown with probability 80 %, as text; of CI, the difference
        of signed gaps.
    """
    out = None if out is None else Path(out)
    for name in STORES:
        wanted = sum(len(stack.grid()) for stack in protocol.stacks(name))
        there = len(store.load_runs(name, out=out))
        if there < wanted:
            what = f"the claims need all {wanted:,} models of {name!r}, the store holds {there:,}"
            raise store.StoreError(f"{what}; run: {store.command(name, out)}")
    exhibit_values.cache_clear()  # the store may have changed since the last call
    signed.exhibit_gaps.cache_clear()
    _by_alpha.cache_clear()
    rows = []
    for name, claim in claims().items():
        views = [CHECKED] if claim["kind"] == "mathematics" else IN_ORDER
        for view in views:
            count = JUDGES[name](view, out)
            word = verdict(claim, count)
            recurs = recurrence(claim, count)
            seen = ""
            if word == "not" and name in COMPARISON_OF and view != PRINTED:
                could = _detectable(name, view, out)
                seen = f"{could.min():.2g} to {could.max():.2g}"
            rows.append((name, view, *count[:3], word, recurs, recurs < RECURS, seen))
    return pd.DataFrame(rows, columns=["id", "view", *Count._fields[:3], "verdict", *MARKS])
