r"""Methods compared over the repeats: one long frame of chosen runs, and groupbys on it.

A *comparison* is a data set, an attribute and a kind of model, such as "flc age linear"; eight
methods compete in it. :func:`leads` compares methods by any metric but CI, :func:`gaps` by signed
gaps, because averages of absolute values fold noise upwards and hide a gap that changes its side.

The paper's concordance imparity (CI) is :math:`|\Delta|`, with :math:`\Delta = 100\,(CF_1 - CF_0)`
the gap between two groups' concordance fractions, in points. With :math:`\Delta_C` of one model
(Cox) and :math:`\Delta_D` of another (DRO-COX),

.. math:: (\Delta_C - \Delta_D)(\Delta_C + \Delta_D) = \Delta_C^2 - \Delta_D^2,

so the second model is closer to equal if and only if difference and sum have the same sign. Both
are means over J repeats that share patients; their standard errors are those of Nadeau and Bengio
(2003), :math:`s \sqrt{1/J + n_{test}/n_{learn}}`, with Student's quantile for J - 1 degrees of
freedom. An interval *alone* has 95 %; intervals that hold *together*, over m comparisons, have
:math:`1 - 0.05/m` each (Bonferroni). :data:`CLOSER` is said if both intervals exclude 0 on the same
side. It needs both, so it is wrong in at most 5 % of cases without any correction for two tests.
"""

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import nct as noncentral
from scipy.stats import t as student

from drocox.paper import protocol as section_4
from drocox.paper import tables
from drocox.paper.protocol import ATTRIBUTES, METHODS, MODELS
from drocox.paper.tables import EXHIBIT_OF, EXHIBITS, METRICS

MAIN_PAIRS = [EXHIBITS[e][:2] for e in ("t2", "t3", "t4")]
PAIRS = [(d, a) for d, attributes in ATTRIBUTES.items() for a in attributes]
N_REPEATS = len(section_4.REPEATS)
WANTED = 0.8  # probability with which a detectable difference is found
# patients tested per patient learned from (Nadeau and Bengio); 0: one test set for all repeats
TESTED_PER_LEARNED = {"as_published": 0.0, "corrected": 0.2 / 0.8}

# methods of both kinds of model
PLAIN_COX = [*section_4.PLAIN.values()]  # Cox and DeepSurv
BASELINE = [name for name, method in METHODS.items() if not method.robust]
PENALISED = [name for name in BASELINE if name not in PLAIN_COX]
DRO_COX = [*section_4.DRO.values()]
SPLIT_COX = [*section_4.SPLIT.values()]
EITHER_DRO = DRO_COX + SPLIT_COX

CLOSER = "closer to equal"
FARTHER = "farther from equal"
CHANGED = "changed, perhaps past equality"
NOT_SEEN = "no change seen"
WORDS = (CLOSER, FARTHER, CHANGED, NOT_SEEN)


# The long frame


def _long_runs(
    exhibit: str, protocol: str, selection: str, out: Path | str | None = None
) -> pd.DataFrame:
    """The chosen runs of a main table in long form: the columns of :func:`chosen_runs`."""
    rows = tables.exhibit_runs(exhibit, protocol=protocol, selection=selection, out=out)
    dataset, attribute, _ = EXHIBITS[exhibit]
    values = tables.metrics_of(rows, protocol).assign(ci_signed=rows[f"test_ci_signed_{attribute}"])
    names = rows[["model", "method", "repeat"]]
    names.insert(0, "attribute", attribute)
    names.insert(0, "dataset", dataset)
    names.insert(0, "exhibit", exhibit)
    return names.join(values).melt([*names], var_name="metric")


@cache
def _of_the_book(exhibit: str, protocol: str, selection: str) -> pd.DataFrame:
    """:func:`_long_runs` of the book's own store, which does not change."""
    return _long_runs(exhibit, protocol, selection)


def chosen_runs(
    protocol: str = "corrected",
    selection: str = "stated",
    *,
    tune_by: str = "ci_percent",
    out: Path | str | None = None,
) -> pd.DataFrame:
    """The run that each method chose in each repeat, on all seven pairs: a row per metric.

    Parameters
    ----------
    protocol, selection, tune_by, out
        As in :func:`drocox.paper.tables.main_table`. The "recovered" rules exist only where
        numbers were published (T2 to T4), and so do the rows.

    Returns
    -------
    DataFrame
        exhibit, dataset, attribute, model, method, repeat, metric, value. Metrics are the nine of
        the tables and ``ci_signed``, the gap in points whose absolute value is ``ci_percent``.
    """
    exhibits = [tables.exhibit_id(*pair, tune_by) for pair in PAIRS]
    if selection == "recovered":
        exhibits = [exhibit for exhibit in exhibits if exhibit in EXHIBIT_OF]
    frames = []
    for exhibit in exhibits or ["t2"]:
        if out is None:
            frames.append(_of_the_book(exhibit, protocol, selection))
        else:
            frames.append(_long_runs(exhibit, protocol, selection, out))
    runs = pd.concat(frames, ignore_index=True)
    return runs if exhibits else runs.head(0)


def of_comparisons(
    runs: pd.DataFrame, pairs: Sequence, models: Collection[str] = MODELS
) -> pd.DataFrame:
    """The rows of some pairs and models, with the name of their comparison."""
    names = runs["dataset"] + " " + runs["attribute"] + " " + runs["model"]
    wanted = [f"{dataset} {attribute} {model}" for dataset, attribute in pairs for model in models]
    return runs.assign(comparison=names)[names.isin(wanted)]


def best_of(means: pd.Series, methods: Collection[str]) -> pd.Series:
    """The rows of the method with the highest mean of some, in each comparison (and metric)."""
    rows = means[means.index.isin(methods, level="method")]
    cell = [name for name in rows.index.names if name != "method"]
    return rows[rows.groupby(cell, sort=False).idxmax()]


def _values_of_best(rows: pd.DataFrame, methods: Collection[str], goal: pd.Series) -> pd.DataFrame:
    """Values of the method whose mean goal is the highest: repeats x comparisons."""
    row = ["comparison", "method"]
    best = best_of(rows.assign(goal=goal).groupby(row, sort=False)["goal"].mean(), methods)
    values = rows.set_index([*row, "repeat"])["value"].unstack("repeat").loc[best.index]
    return values.droplevel("method").T


# Intervals


class Interval(NamedTuple):
    """Mean paired difference, half-width of its 95 % interval, and the detectable difference."""

    mean: np.ndarray
    half: np.ndarray
    detectable: np.ndarray  # the true difference that is found with probability 80 %


def chance_detected(shift, repeats: int):
    """Probability that the 95 % interval of a true difference, in standard errors, excludes 0."""
    degrees = repeats - 1
    quantile = student.ppf(0.975, degrees)
    above = noncentral.sf(quantile, degrees, shift)
    return above + noncentral.cdf(-quantile, degrees, shift)


@cache
def detectable_errors(repeats: int) -> float:
    """The true difference, in standard errors, that is detected with probability 80 %."""
    return float(brentq(lambda shift: chance_detected(shift, repeats) - WANTED, 0, 10))


def standard_error(values: np.ndarray, protocol: str) -> np.ndarray:
    """Standard error of means over the first axis, by Nadeau and Bengio."""
    return values.std(axis=0, ddof=1) * np.sqrt(1 / len(values) + TESTED_PER_LEARNED[protocol])


def interval(differences, protocol: str) -> Interval:
    r"""95 % interval of mean paired differences over J repeats, the first axis.

    :math:`\bar d \pm t_{J-1}\, s \sqrt{1/J + n_{test}/n_{learn}}`, which allows for repeats that
    share patients (Nadeau and Bengio, 2003). In the protocol as published all repeats share one
    test set: there the second term is left out, and the interval holds for that test set only.
    """
    d = np.asarray(differences, dtype=float, order="C")
    error = standard_error(d, protocol)
    half = student.ppf(0.975, len(d) - 1) * error
    return Interval(d.mean(axis=0), half, detectable_errors(len(d)) * error)


def leads(
    metric: str,
    protocol: str = "corrected",
    selection: str = "stated",
    *,
    pairs: Sequence[tuple[str, str]] = PAIRS,
    models: Collection[str] = MODELS,
    ours: Collection[str] = EITHER_DRO,
    theirs: Collection[str] = BASELINE,
    tune_by: str = "ci_percent",
    out: Path | str | None = None,
) -> pd.DataFrame:
    """By how much the best of some methods leads the best of others, in each comparison.

    Not in CI: an interval of differences of absolute values says little. :func:`gaps` compares
    signed gaps.

    Parameters
    ----------
    metric : str
        Of :data:`drocox.paper.tables.METRICS`, any but "ci_percent".
    protocol, selection, tune_by, out
        As in :func:`chosen_runs`.
    pairs : list of (data set, attribute), optional
    models : sequence of {"linear", "nonlinear"}, optional
    ours, theirs : list of str, optional
        Names of methods: by default :data:`EITHER_DRO` and :data:`BASELINE`.

    Returns
    -------
    DataFrame
        By comparison: mean, half and detectable, the :func:`interval` of the lead of the best mean
        of ours over the best of theirs, positive where ours is better.
    """
    if metric == "ci_percent":
        raise ValueError("CI is an absolute value; compare signed gaps: comparisons.gaps")
    runs = chosen_runs(protocol, selection, tune_by=tune_by, out=out)
    rows = of_comparisons(runs[runs["metric"] == metric], pairs, models)
    sign = 1 if METRICS[metric][1] else -1
    goal = sign * rows["value"]
    lead = sign * (_values_of_best(rows, ours, goal) - _values_of_best(rows, theirs, goal))
    return pd.DataFrame(interval(lead, protocol)._asdict(), [*lead])


# Signed gaps


def verdict_words(difference: np.ndarray, total: np.ndarray, bar: float) -> np.ndarray:
    """The verdict, one of :data:`WORDS`, from two t statistics.

    ``difference`` and ``total`` are the difference and the sum of two gaps divided by their
    standard errors; a statistic beyond ``bar``, Student's quantile, excludes 0.
    """
    differ = np.abs(difference) > bar
    known = np.abs(total) > bar
    same_side = np.sign(difference) == np.sign(total)
    cases = [differ & known & same_side, differ & known, differ]
    return np.select(cases, [CLOSER, FARTHER, CHANGED], NOT_SEEN)


def compare(
    theirs: np.ndarray,
    ours: np.ndarray,
    names: list[str],
    protocol: str,
    *,
    family: int | None = None,
) -> pd.DataFrame:
    """Two models' signed gaps, their paired difference and sum, and a verdict for each comparison.

    ``theirs`` (of the reference, Cox) and ``ours`` are gaps in points of shape (repeats,
    comparisons). ``family`` and the columns are those of :func:`gaps`. In the protocol as published
    all repeats share one test set, and intervals hold for it only.
    """
    theirs = np.asarray(theirs, dtype=float, order="C")
    ours = np.asarray(ours, dtype=float, order="C")
    degrees = len(theirs) - 1
    family = theirs.shape[1] if family is None else family
    bar_alone = student.ppf(0.975, degrees)
    bar_together = student.ppf(1 - 0.025 / family, degrees)
    columns = {}
    for name, values in (("theirs", theirs), ("ours", ours)):
        columns[name] = values.mean(axis=0)
        columns[f"{name}_half"] = bar_alone * standard_error(values, protocol)
    statistics = {}
    for name, values in (("difference", theirs - ours), ("sum", theirs + ours)):
        error = standard_error(values, protocol)
        statistics[name] = values.mean(axis=0) / error
        columns[name] = values.mean(axis=0)
        columns[f"{name}_error"] = error
        columns[f"{name}_p"] = 2 * student.sf(np.abs(statistics[name]), degrees)
        columns[f"{name}_half"] = bar_alone * error
        columns[f"{name}_half_together"] = bar_together * error
    pairs = zip((theirs - ours).T, (theirs + ours).T, strict=True)
    columns["correlation"] = [np.corrcoef(d, s)[0, 1] for d, s in pairs]
    for word, bar in (("alone", bar_alone), ("together", bar_together)):
        columns[word] = verdict_words(statistics["difference"], statistics["sum"], bar)
    return pd.DataFrame(columns, names)


def gaps(
    protocol: str = "corrected",
    selection: str = "stated",
    *,
    pairs: Sequence[tuple[str, str]] = PAIRS,
    models: Collection[str] = MODELS,
    ours: Collection[str] = DRO_COX,
    theirs: Collection[str] = PLAIN_COX,
    tune_by: str = "ci_percent",
    family: int | None = None,
    out: Path | str | None = None,
) -> pd.DataFrame:
    """Compare DRO-COX with Cox (DeepSurv), or other methods, by signed gaps: fourteen comparisons.

    Parameters
    ----------
    protocol, selection, tune_by, out
        As in :func:`chosen_runs`.
    pairs : list of (data set, attribute)
    models : sequence of {"linear", "nonlinear"}
    ours, theirs : list of str
        Names of methods. Of several the one with the lowest mean CI is taken, as in the paper's
        tables.
    family : int, optional
        Over how many comparisons intervals shall hold together; by default those given.

    Returns
    -------
    DataFrame
        By comparison: ``theirs`` and ``ours`` with half-widths ``_half``; ``difference`` (theirs
        minus ours) and ``sum``, each with ``_error``, ``_p``, ``_half`` and ``_half_together``;
        ``correlation`` of the two; the verdicts ``alone`` and ``together``.
    """
    runs = chosen_runs(protocol, selection, tune_by=tune_by, out=out)
    rows = of_comparisons(runs[runs["metric"] == "ci_signed"], pairs, models)
    if rows.empty:
        raise ValueError(
            "there is nothing to compare: check pairs and models; with selection='recovered' there "
            "are rows for T2 to T4 only, so pass tune_by='ci_percent'"
        )
    fairness = -rows["value"].abs()
    of_theirs = _values_of_best(rows, theirs, fairness)
    of_ours = _values_of_best(rows, ours, fairness)
    return compare(of_theirs, of_ours, [*of_theirs], protocol, family=family)


# Power: verdicts at effects fixed in advance

POINT = 1.0  # the difference of two gaps at which power is computed


def power(table: pd.DataFrame) -> pd.DataFrame:
    """Power of the comparisons of a table at an effect fixed in advance, never the observed one.

    Each interval is considered alone; the probability is that of Student's t, not central.

    Parameters
    ----------
    table : DataFrame
        Of :func:`gaps`.

    Returns
    -------
    DataFrame
        By comparison: ``point``, the probability that the interval of a true difference of one
        point excludes 0; ``detectable``, the difference, in points, whose interval excludes 0 with
        probability 80 %.
    """
    error = table["difference_error"]
    detectable = error * detectable_errors(N_REPEATS)
    return pd.DataFrame(
        {"point": chance_detected(POINT / error, N_REPEATS), "detectable": detectable}
    )
