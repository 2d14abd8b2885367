"""The chapter *Paper, released code, this book*: metrics as published and defined otherwise.

Brier scores of other patients, divisors, smoothing, grids, and the free constant of deep models:
values of the chapter's sentences, with the guards that hold them. The ledger is in
:mod:`drocox.chapters.differences`.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from scipy.spatial.distance import pdist
from sksurv import metrics as sksurv_metrics

import drocox
from drocox import accuracy, fairness
from drocox.bookstyle import guard, say
from drocox.chapters.differences import AS_PUBLISHED, MAIN_ATTRIBUTE, TABLE, Ledger
from drocox.paper import protocol, store, tables
from drocox.paper.prepare import Prepared
from drocox.training import ScoreStack


def beaten(scores: pd.Series) -> int:
    """In how many methods of a table a metric is below that of Cox or DeepSurv.

    Parameters
    ----------
    scores : Series
        The metric of the sixteen methods.

    Returns
    -------
    int
    """
    won = 0
    for name, method in protocol.METHODS.items():
        won += scores[name] < scores[protocol.PLAIN[method.model]]
    return int(won)


def tell_brier(ledger: Ledger, rows: Mapping) -> None:
    """Section *Brier scores of other patients*: who beats the plain model, aligned and not.

    Parameters
    ----------
    ledger : Ledger
    rows : mapping
        The chapter's Brier scores: "aligned", "misaligned" and "with its baseline" of each model.
    """
    cox = rows["FLC Cox"]
    flat = rows["FLC, one curve for all"]
    split = rows["SUPPORT SPLIT, α = 0.5"]
    guard(cox["aligned"] < flat["aligned"], "aligned, Cox is better than one curve for all")
    guard(cox["misaligned"] > flat["misaligned"], "misaligned, it is worse")
    guard(split["with its baseline"] > 2 * split["misaligned"], "the baseline explains SPLIT's IBS")
    flc_cox = ("flc", "Cox", "ibs_misaligned")
    ledger.note("IBS on misaligned rows", flc_cox, cox["misaligned"], cox["aligned"], "aligned")
    ledger.note(
        "SPLIT baseline from unscaled features",
        ("support", "DRO-COX (SPLIT)", "ibs_misaligned"),
        split["with its baseline"],
        split["misaligned"],
        "scaled, all training patients",
    )

    printed = ledger.paper.xs("ibs", level="metric")["mean"]
    beats = {"paper": 0, "misaligned": 0, "aligned": 0, "corrected": 0}
    for dataset in MAIN_ATTRIBUTE:
        beats["paper"] += beaten(printed[TABLE[dataset]])
        beats["misaligned"] += beaten(_chosen_mean(dataset, "as_published", "ibs_misaligned"))
        beats["aligned"] += beaten(_chosen_mean(dataset, "as_published", "ibs"))
        beats["corrected"] += beaten(_chosen_mean(dataset, "corrected", "ibs"))
    comparisons = len(MAIN_ATTRIBUTE) * (len(protocol.METHODS) - len(protocol.PLAIN))
    for kind, count in beats.items():
        say(f"beats-{kind}", count)
    say("beats-all", comparisons)
    fewest = min(beats["paper"], beats["misaligned"])
    guard(fewest > 0.7 * comparisons, "misaligned, most methods beat the plain model")
    guard(beats["aligned"] <= 2 and beats["corrected"] == 0, "aligned, hardly any does")
    _tell_split_baseline(printed)


def _chosen_mean(dataset: str, which: str, metric: str) -> pd.Series:
    """Mean over repeats of a test metric of what the stated rule chooses by CI, by method."""
    rows = tables.chosen_runs(dataset, MAIN_ATTRIBUTE[dataset], "ci_percent", which, "stated")
    return rows.groupby("method")[f"test_{metric}"].mean()


def _tell_split_baseline(printed: pd.Series) -> None:
    aligned = _chosen_mean("support", "as_published", "ibs")
    misaligned = _chosen_mean("support", "as_published", "ibs_misaligned")
    for short, method in {"linear": "DRO-COX (SPLIT)", "deep": "Deep DRO-COX (SPLIT)"}.items():
        mine = misaligned[method]
        theirs = printed["t3", method]
        guard(mine > 2 * aligned[method], "the large IBS of SUPPORT's SPLIT rows")
        guard(abs(mine / theirs - 1) < 0.1, "the unscaled baseline explains the large IBS")
        say(f"split-{short}", f"{mine:.3f}")
        say(f"split-{short}-paper", f"{theirs:.3f}")


def printed_individual(hazards: np.ndarray, X: np.ndarray, gamma: float = 0.01) -> np.ndarray:
    """Terms of F_I as the paper prints it, on feature rows as they are.

    .. math:: \\max(|h_i - h_j| - \\gamma \\|x_i - x_j\\|, 0), \\quad i < j

    Parameters
    ----------
    hazards : array of shape (n,)
    X : array of shape (n, p)
    gamma : float

    Returns
    -------
    array of shape (n (n - 1) / 2,)
    """
    return np.maximum(pdist(hazards[:, None]) - gamma * pdist(X), 0)


def auc_at(ready: Prepared, scores: np.ndarray, percentiles: list[float]) -> float:
    """Cumulative AUC of test scores at percentiles of the test times.

    Parameters
    ----------
    ready : Prepared
    scores : array
        Of the test part.
    percentiles : list of float

    Returns
    -------
    float
    """
    times = np.percentile(ready.test.time, percentiles)
    return sksurv_metrics.cumulative_dynamic_auc(ready.train.y, ready.test.y, scores, times)[1]


def ibs_until(ready: Prepared, model: ScoreStack, percentile: float) -> float:
    """Aligned integrated Brier score until a percentile of the test times.

    Parameters
    ----------
    ready : Prepared
    model : ScoreStack
        Its first model is scored.
    percentile : float

    Returns
    -------
    float
    """
    train = ready.train
    test = ready.test
    train_scores = torch.tensor(model.scores(ready.X[0])[0])
    test_scores = torch.tensor(model.scores(ready.X[2])[0])
    times = np.linspace(ready.judges[1].times[0], np.percentile(test.time, percentile), 50)
    curves = drocox.breslow_survival(train_scores, train.time, train.event, test_scores, times)
    return accuracy.integrated_brier_score(
        train.time, train.event, curves, test.time, test.event, times
    )


def other_definitions(as_is: Mapping, plain: Mapping) -> pd.DataFrame:
    """Section *Normalisers, smoothing, grids*: each metric as published and defined otherwise.

    Parameters
    ----------
    as_is : mapping of str to (Prepared, ScoreStack)
        Cox as published on "flc" and "seer".
    plain : mapping of str to Series
        Its test metrics.

    Returns
    -------
    DataFrame
        Columns "quantity", "published", "value", "instead", "value ".
    """
    ready, model = as_is["flc"]
    flc = plain["flc"]
    scores = model.scores(ready.X[2])[0]
    hinges = printed_individual(np.exp(scores), ready.X[2])
    halved = hinges.mean() / 2  # Σ_{i<j} / (N (N - 1))
    guard(np.isclose(halved, flc.f_i, atol=0.01), "unit rows hardly show")

    hazards = {}
    codes = {}
    for name, (prepared, models) in as_is.items():
        hazards[name] = np.exp(models.scores(prepared.X[2])[0])
        codes[name] = prepared.test.group_matrix
    race = as_is["seer"][0].test.groups["race"]
    f_g = fairness.group(hazards["seer"], race)
    f_g_printed = fairness.group(hazards["seer"], race, smoothing=False)
    cap = {}
    cap_printed = {}
    for name, h in hazards.items():
        cap[name] = fairness.intersectional(h, codes[name])
        cap_printed[name] = fairness.intersectional(h, codes[name], smoothing=False)
    floor = fairness.intersectional(np.ones(len(codes["seer"])), codes["seer"])

    divided = "N(N−1), unit rows"
    rows = [
        ("F_I, FLC", divided, flc.f_i, "N(N−1), rows as they are", halved),
        ("F_I, FLC", divided, flc.f_i, "the printed sum", hinges.sum()),
        ("LPL, FLC", "per event", flc.lpl, "per patient", flc.lpl * ready.test.event.mean()),
        ("F_G, SEER", "smoothed", f_g, "as printed", f_g_printed),
        ("F_∩, FLC", "smoothed", cap["flc"], "as printed", cap_printed["flc"]),
        ("F_∩, SEER", "smoothed", cap["seer"], "as printed", cap_printed["seer"]),
        ("F_∩ of equal hazards, SEER", "smoothed", floor, "as printed", 0.0),
        ("AUC, FLC", "percentiles 5–81", flc.auc, "quartiles", auc_at(ready, scores, [25, 50, 75])),
        (
            "IBS aligned, FLC",
            "until the last time",
            flc.ibs,
            "until the median",
            ibs_until(ready, model, 50),
        ),
    ]
    return pd.DataFrame(rows, columns=["quantity", "published", "value", "instead", "value "])


def tell_definitions(ledger: Ledger, small: pd.DataFrame, seer_codes: np.ndarray) -> None:
    """Section *Normalisers, smoothing, grids*: the floor that smoothing puts under F_∩.

    Parameters
    ----------
    ledger : Ledger
    small : DataFrame
        From :func:`other_definitions`.
    seer_codes : int array
        Groups of SEER's test patients, a column per attribute.
    """
    value = small["value"]
    instead = small["value "]
    guard(
        abs(instead[7] - value[7]) > 3 * ledger.sd("flc", "Cox", "auc"),
        "the grid of AUC moves its column by many SDs",
    )
    guard(
        abs(instead[8] - value[8]) > 3 * ledger.sd("flc", "Cox", "ibs"),
        "the grid of IBS moves its column by many SDs",
    )
    f_i = ("flc", "Cox", "f_i")
    lpl = ("flc", "Cox", "lpl")
    divisor = "LPL per event or per patient"
    smoothed = "smoothed group means"
    ledger.note("F_I without unit rows", f_i, value[0], instead[0], "unit rows")
    ledger.note("F_I as the printed sum", f_i, value[1], instead[1], "N(N−1)", factor=True)
    ledger.note(divisor, lpl, value[2], instead[2], "per event", factor=True)
    ledger.note(smoothed, ("seer", "Cox", "f_cap"), value[5], instead[5], "smoothed")
    ledger.note(smoothed, ("seer", "Cox", "f_g"), value[3], instead[3], "smoothed")
    ledger.note(smoothed, ("flc", "Cox", "f_cap"), value[4], instead[4], "smoothed")
    ledger.note("AUC grid", ("flc", "Cox", "auc"), value[7], instead[7], AS_PUBLISHED)
    ledger.note("IBS grid", ("flc", "Cox", "ibs"), value[8], instead[8], AS_PUBLISHED)

    floor = value[6]
    published = ledger.paper.loc[("t4", "DRO-COX", "f_cap"), "mean"]
    guard(floor > 0.05, "smoothing puts a floor under a model that treats everybody alike")
    say("floor", f"{floor:.3f}")
    say("dro-cap", f"{published:.4f}")
    say("floor-share", f"{100 * floor / published:.0f} %")
    say("fewest", np.bincount(seer_codes @ [2, 1]).min())
    say("smooth-seer", f"{value[5] - instead[5]:+.2f}")


def tell_constant(ledger: Ledger, deep: pd.DataFrame) -> None:
    """Section *The free constant of deep models*: places in F_I with and without it.

    Parameters
    ----------
    ledger : Ledger
    deep : DataFrame
        The chapter's table of nonlinear methods on FLC: "F_I", "F_I centred" and their places.
    """
    factor = deep["F_I centred"] / deep["F_I"]
    widest = factor.drop("DeepSurv").idxmax()
    before = deep.loc[widest, "F_I"]
    after = deep.loc[widest, "F_I centred"]
    where = ("flc", widest, "f_i")
    ledger.note("free constant of deep models", where, before, after, "centred scores", factor=True)
    say("widest", widest)
    say("widest-factor", f"{factor[widest]:.3g}")
    first_four = set(deep.index[deep["place"] <= 4])
    penalised = {"DeepSurv_I(Keya)", "DeepSurv_I(R&P)", "DeepSurv_G(Keya)", "DeepSurv_G(R&P)"}
    guard(first_four == penalised, "uncentred, the first four places go to penalised methods")
    first_two = set(deep.index[deep["place, centred"] <= 2])
    variants = {"Deep DRO-COX", "Deep DRO-COX (SPLIT)"}
    guard(first_two == variants, "centred, the first two go to the DRO variants")

    rows = tables.chosen_runs("flc", "age", "ci_percent", "corrected", "stated")
    rows = rows[rows["model"] == "nonlinear"]
    corrected = rows.groupby("method")["test_f_i_centred"].mean().sort_values()
    leaders = ["DeepSurv_I(Keya)", "Deep DRO-COX (SPLIT)", "Deep DRO-COX"]
    guard(list(corrected.index[:3]) == leaders, "DeepSurv_I(Keya) leads, corrected")
    for name, method in zip(("keya", "split", "dro"), leaders, strict=True):
        say(f"constant-{name}", f"{corrected[method]:.2f}")


def tell_smaller_ones() -> None:
    """Section *Smaller ones*: the divisor of SDs, and the share of unstable nonlinear runs."""
    say("ddof", f"{100 * (np.sqrt(10 / 9) - 1):.0f} %")
    runs = store.load_runs("as_published")
    unstable = runs.loc[runs["model"] == "nonlinear", "unstable"].dropna()
    say("shaky", f"{100 * unstable.mean():.0f} %")
