"""Methods compared: their metrics in every view, whose lead is how large, and how sure that is.

A *comparison* is a data set, an attribute and a kind of model; it has eight methods. Values are
signed, so that higher is better, and have four axes: repeats, comparisons, methods in the order of
the paper, metrics in that of :data:`METRICS`. Means are taken over all repeats and over every three
of the ten: these *draws* then take the place of the repeats.
"""

from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import nct as noncentral
from scipy.stats import t as student

from drocox.paper import tables
from drocox.paper.checked import Count
from drocox.paper.protocol import ATTRIBUTES, MODELS
from drocox.paper.tables import EXHIBIT_OF, EXHIBITS, METRICS, READINGS, VIEWS

PRINTED = "printed"
SMALL = 3  # repeats in a resample
WANTED = 0.8  # probability with which a detectable difference is told from 0
# patients tested per patient learned from (Nadeau and Bengio); 0: one test set for all repeats
TESTED_PER_LEARNED = {"as_published": 0.0, "corrected": 0.2 / 0.8}
MAIN_PAIRS = [EXHIBITS[e][:2] for e in ("t2", "t3", "t4")]
PAIRS = [(d, a) for d, attributes in ATTRIBUTES.items() for a in attributes]

# places of methods among the eight of a comparison
ALL_METHODS = slice(0, 8)
UNPENALISED = slice(0, 1)  # Cox, or DeepSurv
ALL_OTHERS = slice(1, 8)
BASELINE = slice(0, 6)
PENALISED = slice(1, 6)
DRO_COX = slice(6, 7)
SPLIT_COX = slice(7, 8)
EITHER_DRO = slice(6, 8)
AT = {metric: i for i, metric in enumerate(METRICS)}  # place of a metric
SIGN = np.array([1 if higher else -1 for _, higher in METRICS.values()])


def over_draws(values: np.ndarray, statistic=np.mean) -> np.ndarray:
    """A statistic over all repeats, and over those of each resample.

    Parameters
    ----------
    values : array of shape (repeats, ...)
    statistic : callable
        Called with an array and ``axis``.

    Returns
    -------
    array of shape (draws, ...)
        The draw of all repeats first.
    """
    resamples = list(combinations(range(len(values)), SMALL))
    draws = np.array(resamples, dtype=int).reshape(-1, SMALL)
    of_all = statistic(values, axis=0)[None]
    of_draws = statistic(values[draws], axis=1)
    return np.concatenate([of_all, of_draws])


class Comparisons(NamedTuple):
    """Names of comparisons, and signed metrics of their eight methods."""

    names: list[str]
    values: np.ndarray  # repeats (or draws) x comparisons x methods x metrics

    def means(self) -> "Comparisons":
        """Means over the repeats.

        Returns
        -------
        Comparisons
            With draws for repeats.
        """
        return self._replace(values=over_draws(self.values))

    def of(self, metric: str, methods: slice = ALL_METHODS) -> np.ndarray:
        """One metric of some methods.

        Parameters
        ----------
        metric : str
        methods : slice

        Returns
        -------
        array of shape (repeats, comparisons, methods)
        """
        return self.values[:, :, methods, AT[metric]]


@cache
def exhibit_values(view: str, exhibit: str, out: Path | None, printed: str = "mean") -> np.ndarray:
    """Signed metrics of T2 to T17.

    Parameters
    ----------
    view : str
        A key of :data:`VIEWS` or :data:`READINGS`, or "printed".
    exhibit : str
    out : path, optional
        Folder of the store, by default the book's.
    printed : {"mean", "std"}
        What the printed view gives; it counts as one repeat.

    Returns
    -------
    array of shape (repeats, models, rows, metrics)
    """
    if view == PRINTED:
        cells = tables.published_table(exhibit)
        rows = cells.pivot_table(printed, ["model", "method"], "metric", sort=False)
        values = SIGN * rows[list(METRICS)].to_numpy()
        return values.reshape(1, len(MODELS), -1, len(METRICS))
    reading = (VIEWS | READINGS)[view]
    runs = tables.exhibit_runs(exhibit, out=out, **reading)
    values = SIGN * tables.metrics_of(runs, reading["protocol"])
    by_row = values.groupby([runs["model"], runs["method"]], sort=False)
    of_rows = np.stack([of_row for _, of_row in by_row], axis=1)  # repeats x rows x metrics
    return of_rows.reshape(len(of_rows), len(MODELS), -1, len(METRICS))


class Compared(NamedTuple):
    """Where a comparison is found: a table, and one kind of model in it."""

    exhibit: str
    model: int  # place among MODELS


def compared(view: str, pairs, models=MODELS, tune_by: str = "ci_percent") -> dict[str, Compared]:
    """Comparisons by name; of the first two views, those whose numbers were published.

    Parameters
    ----------
    view : str
    pairs : list of (data set, attribute)
    models : sequence of {"linear", "nonlinear"}
    tune_by : {"ci_percent", "f_a"}

    Returns
    -------
    dict of Compared
        By data set, attribute and model: "flc age linear".
    """
    by_name = {}
    for dataset, attribute in pairs:
        exhibit = tables.exhibit_id(dataset, attribute, tune_by)
        if exhibit in EXHIBIT_OF or view not in (PRINTED, "as published"):
            for model in models:
                name = f"{dataset} {attribute} {model}"
                by_name[name] = Compared(exhibit, MODELS.index(model))
    return by_name


def comparisons(
    view: str, out: Path | None, pairs, models=MODELS, tune_by: str = "ci_percent"
) -> Comparisons:
    """The methods on some data sets; of the first two views, where numbers were published.

    Parameters
    ----------
    view, out
        As in :func:`exhibit_values`.
    pairs : list of (data set, attribute)
    models : sequence of {"linear", "nonlinear"}
    tune_by : {"ci_percent", "f_a"}

    Returns
    -------
    Comparisons
    """
    by_name = {}
    for name, (exhibit, model) in compared(view, pairs, models, tune_by).items():
        by_name[name] = exhibit_values(view, exhibit, out)[:, model]
    if not by_name:
        return Comparisons([], np.empty((1, 0, 8, len(METRICS))))
    return Comparisons(list(by_name), np.stack(list(by_name.values()), axis=1))


class Interval(NamedTuple):
    """Mean paired difference, half-width of its 95 % interval, and what could be detected."""

    mean: np.ndarray
    half: np.ndarray
    detectable: np.ndarray  # the true difference that is told from 0 with probability 80 %


@cache
def detectable_errors(repeats: int) -> float:
    r"""The true difference, in standard errors, that is told from 0 with probability 80 %.

    The :math:`\delta` for which Student's t with noncentrality :math:`\delta` lies beyond the 95 %
    quantiles with that probability.

    Parameters
    ----------
    repeats : int

    Returns
    -------
    float
    """
    degrees = repeats - 1
    bar = student.ppf(0.975, degrees)

    def missing(shift: float) -> float:
        told = noncentral.sf(bar, degrees, shift) + noncentral.cdf(-bar, degrees, shift)
        return WANTED - told

    return float(brentq(missing, 0, 10))


def interval(differences, protocol: str) -> Interval:
    r"""95 % interval of mean paired differences over J repeats.

    :math:`\bar d \pm t_{J-1}\, s \sqrt{1/J + n_{test}/n_{learn}}`, which allows for repeats that
    share patients (Nadeau and Bengio, 2003). As published all repeats share one test set: there the
    second term is left out, and the interval speaks of that test set only.

    Parameters
    ----------
    differences : array of shape (J, ...)
    protocol : {"as_published", "corrected"}

    Returns
    -------
    Interval
    """
    d = np.asarray(differences, dtype=float)
    error = d.std(axis=0, ddof=1) * np.sqrt(1 / len(d) + TESTED_PER_LEARNED[protocol])
    half = student.ppf(0.975, len(d) - 1) * error
    return Interval(d.mean(axis=0), half, detectable_errors(len(d)) * error)


def _of_best(values: np.ndarray) -> np.ndarray:
    """Values of the method with the best mean, of each comparison: repeats x comparisons."""
    best_method = values.mean(axis=0).argmax(axis=-1)
    return np.take_along_axis(values, best_method[None, :, None], axis=2)[..., 0]


def leads(
    view: str,
    out: Path | None = None,
    *,
    metric: str,
    pairs,
    models=MODELS,
    ours: slice = EITHER_DRO,
    theirs: slice = BASELINE,
    tune_by: str = "ci_percent",
) -> pd.DataFrame:
    """By how much the best of some methods leads the best of others, in each comparison.

    Not in CI: an interval of differences of absolute values says little. Signed gaps are compared
    by :func:`drocox.paper.signed.gaps`.

    Parameters
    ----------
    view, out
        As in :func:`exhibit_values`; not the printed view, which has no repeats.
    metric : str
        Any but "ci_percent".
    pairs : list of (data set, attribute)
    models : sequence of {"linear", "nonlinear"}, optional
    ours, theirs : slice, optional
        Methods: by default :data:`EITHER_DRO` and :data:`BASELINE`.
    tune_by : {"ci_percent", "f_a"}, optional

    Returns
    -------
    DataFrame
        By comparison: mean, half and detectable, the :func:`interval` of the lead of the best mean
        of ours over the best of theirs, positive where ours is better.
    """
    if metric == "ci_percent":
        raise ValueError("CI is an absolute value; compare signed gaps: drocox.paper.signed.gaps")
    values = comparisons(view, out, pairs, models, tune_by)
    lead = _of_best(values.of(metric, ours)) - _of_best(values.of(metric, theirs))
    protocol = (VIEWS | READINGS)[view]["protocol"]
    return pd.DataFrame(interval(lead, protocol)._asdict(), values.names)


def count_cases(holds: np.ndarray, names: list[str]) -> Count:
    """The number of cases that hold.

    Parameters
    ----------
    holds : bool array of shape (draws, cases)
        The draw of all repeats first.
    names : list of str
        Of the cases.

    Returns
    -------
    Count
    """
    value, *resampled = holds.sum(axis=1).tolist()
    where = ", ".join(name for name, yes in zip(names, holds[0], strict=True) if yes)
    return Count(value, len(names), where, tuple(resampled))


def best(
    view: str,
    out: Path | None = None,
    *,
    metric: str,
    pairs,
    models=MODELS,
    ours: slice = EITHER_DRO,
    theirs: slice = BASELINE,
    tune_by: str = "ci_percent",
) -> Count:
    """Comparisons in which the best of some methods has a better mean than that of others.

    Parameters
    ----------
    view, out, metric, pairs, models, ours, theirs, tune_by
        As in :func:`leads`; the printed view too.

    Returns
    -------
    Count
    """
    values = comparisons(view, out, pairs, models, tune_by)
    best_of_ours = over_draws(values.of(metric, ours)).max(axis=-1)
    best_of_theirs = over_draws(values.of(metric, theirs)).max(axis=-1)
    return count_cases(best_of_ours > best_of_theirs, values.names)
