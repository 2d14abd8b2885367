r"""Signed gaps of two models, their difference and their sum: which one is closer to equal?

The paper's CI is :math:`|\Delta|`, with :math:`\Delta = 100\,(CF_1 - CF_0)` the gap between two
groups' concordance fractions, in points. Its tables keep CI. Comparisons of models are made with
the signed gap, because averages of absolute values fold noise upwards and hide a gap that changes
its side. With :math:`\Delta_C` of one model (Cox) and :math:`\Delta_D` of another (DRO-COX),

.. math:: (\Delta_C - \Delta_D)(\Delta_C + \Delta_D) = \Delta_C^2 - \Delta_D^2,

so the second model is closer to equal if and only if difference and sum have the same sign. Both
are means over J repeats that share patients; their standard errors are those of Nadeau and Bengio
(2003), :math:`s \sqrt{1/J + n_{test}/n_{learn}}`, with Student's quantile for J - 1 degrees of
freedom. An interval *alone* has 95 %; those that hold *together*, over m comparisons, have
:math:`1 - 0.05/m` each (Bonferroni).

:data:`CLOSER` is said if both intervals exclude 0 on the same side. It needs both, so it is wrong
in at most 5 % of cases without any correction for two tests.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import t as student

from drocox.paper import protocol, tables
from drocox.paper.comparisons import (
    DRO_COX,
    PAIRS,
    TESTED_PER_LEARNED,
    UNPENALISED,
    WANTED,
    compared,
    detectable_errors,
)
from drocox.paper.protocol import MODELS
from drocox.paper.tables import EXHIBITS, READINGS, VIEWS

CLOSER = "closer to equal"
FARTHER = "farther from equal"
MOVED = "moved, perhaps past equality"
UNDECIDED = "undecided"
WORDS = (CLOSER, FARTHER, MOVED, UNDECIDED)

POINT = 1.0  # the effect of which the power is told: a gap of one point that vanishes
REPEATS = len(protocol.REPEATS)
DRAWS = 20_000  # simulated experiments


def _standard_error(values: np.ndarray, which: str) -> np.ndarray:
    """Of means over the first axis, by Nadeau and Bengio."""
    return values.std(axis=0, ddof=1) * np.sqrt(1 / len(values) + TESTED_PER_LEARNED[which])


def verdict_words(difference: np.ndarray, total: np.ndarray, bar: float) -> np.ndarray:
    """What two t statistics say.

    Parameters
    ----------
    difference, total : array
        Difference and sum of two gaps, each divided by its standard error.
    bar : float
        Student's quantile: a statistic beyond it excludes 0.

    Returns
    -------
    array of str
        Of :data:`WORDS`.
    """
    moved = np.abs(difference) > bar
    known = np.abs(total) > bar
    same_side = np.sign(difference) == np.sign(total)
    cases = [moved & known & same_side, moved & known, moved]
    return np.select(cases, [CLOSER, FARTHER, MOVED], UNDECIDED)


def compare(
    theirs: np.ndarray, ours: np.ndarray, names: list[str], which: str, *, family: int | None = None
) -> pd.DataFrame:
    """Two models' signed gaps, their paired difference and sum, and a word for each comparison.

    Parameters
    ----------
    theirs, ours : array of shape (repeats, comparisons)
        Signed gaps in points, of the model compared with (Cox) and of the other one.
    names : list of str
        Of the comparisons.
    which : {"as_published", "corrected"}
        The protocol. As published all repeats share one test set, and intervals speak of that one.
    family : int, optional
        Over how many comparisons intervals shall hold together; by default those given.

    Returns
    -------
    DataFrame
        By comparison: ``theirs`` and ``ours`` with half-widths ``_half``; ``difference`` (theirs
        minus ours) and ``sum``, each with ``_error``, ``_p``, ``_half`` and ``_half_together``;
        ``correlation`` of the two; the words ``alone`` and ``together``.
    """
    theirs = np.asarray(theirs, dtype=float)
    ours = np.asarray(ours, dtype=float)
    degrees = len(theirs) - 1
    family = theirs.shape[1] if family is None else family
    bar_alone = student.ppf(0.975, degrees)
    bar_together = student.ppf(1 - 0.025 / family, degrees)
    columns = {}
    for name, values in (("theirs", theirs), ("ours", ours)):
        columns[name] = values.mean(axis=0)
        columns[f"{name}_half"] = bar_alone * _standard_error(values, which)
    statistics = {}
    for name, values in (("difference", theirs - ours), ("sum", theirs + ours)):
        error = _standard_error(values, which)
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


@cache
def exhibit_gaps(view: str, exhibit: str, out: Path | None = None) -> np.ndarray:
    """Signed gaps of all methods of T2 to T15, in the order of the paper.

    Parameters
    ----------
    view : str
        A key of :data:`drocox.paper.tables.VIEWS` or ``READINGS``.
    exhibit : str
    out : path, optional
        Folder of the store, by default the book's.

    Returns
    -------
    array of shape (repeats, models, methods)
    """
    attribute = EXHIBITS[exhibit][1]
    runs = tables.exhibit_runs(exhibit, out=out, **(VIEWS | READINGS)[view])
    by_row = runs.groupby(["model", "method"], sort=False)[f"test_ci_signed_{attribute}"]
    of_rows = np.stack([of_row.to_numpy() for _, of_row in by_row], axis=1)
    return of_rows.reshape(len(of_rows), len(MODELS), -1)


def _of_fairest(signed: np.ndarray, methods: slice) -> np.ndarray:
    """Gaps of that one of some methods whose mean CI is the lowest: one per repeat."""
    ci = np.abs(signed[:, methods]).mean(axis=0)
    return signed[:, methods][:, ci.argmin()]


def gaps(
    view: str,
    out: Path | None = None,
    *,
    pairs: list[tuple[str, str]] = PAIRS,
    models: tuple[str, ...] = MODELS,
    ours: slice = DRO_COX,
    theirs: slice = UNPENALISED,
    tune_by: str = "ci_percent",
    family: int | None = None,
) -> pd.DataFrame:
    """DRO-COX against Cox (DeepSurv), or other methods, by signed gaps: fourteen comparisons.

    Parameters
    ----------
    view : str
        A key of :data:`drocox.paper.tables.VIEWS` or ``READINGS``; "as published" has comparisons
        only where numbers were published.
    out : path, optional
        Folder of the store, by default the book's.
    pairs : list of (data set, attribute)
    models : sequence of {"linear", "nonlinear"}
    ours, theirs : slice
        Methods of :mod:`drocox.paper.comparisons`. Of several the one with the lowest mean CI
        stands for all, as in the paper's tables.
    tune_by : {"ci_percent", "f_a"}
    family : int, optional
        As in :func:`compare`.

    Returns
    -------
    DataFrame
        Of :func:`compare`, rows as in :func:`drocox.paper.comparisons.leads`.
    """
    places = compared(view, pairs, models, tune_by)
    of_theirs = []
    of_ours = []
    for exhibit, model in places.values():
        signed = exhibit_gaps(view, exhibit, out)[:, model]
        of_theirs.append(_of_fairest(signed, theirs))
        of_ours.append(_of_fairest(signed, ours))
    which = (VIEWS | READINGS)[view]["protocol"]
    theirs_by_name = np.stack(of_theirs, axis=1)
    ours_by_name = np.stack(of_ours, axis=1)
    return compare(theirs_by_name, ours_by_name, list(places), which, family=family)


# Power: what the words would have been for effects that were fixed beforehand


@cache
def _normals() -> np.ndarray:
    """Standard normals, (draws, repeats, 2): the first of the repeats serves for the mean."""
    return np.random.default_rng(0).standard_normal((DRAWS, REPEATS, 2))


class Simulated:
    """Experiments in which difference and sum scatter as estimated; effects are given.

    The mean over J repeats is normal with the standard error of Nadeau and Bengio, the variance
    between repeats independent of it and :math:`\\chi^2_{J-1}`: what their interval assumes.
    Errors of difference and sum are correlated as between repeats.

    Parameters
    ----------
    row : Series
        Of :func:`compare`.
    """

    def __init__(self, row: pd.Series):
        self.errors = np.array([row["difference_error"], row["sum_error"]])
        along = row["correlation"]
        across = np.sqrt(max(1 - along**2, 0.0))
        normals = _normals()
        second = along * normals[..., 0] + across * normals[..., 1]
        correlated = np.stack([normals[..., 0], second], axis=-1)
        self.noise = correlated[:, 0]  # of the mean, in standard errors
        self.scale = np.sqrt((correlated[:, 1:] ** 2).mean(axis=1))  # estimated / true error
        self.bar = student.ppf(0.975, REPEATS - 1)

    def words(self, theirs: float, ours: float) -> np.ndarray:
        """The word of each experiment when these are the true gaps.

        Parameters
        ----------
        theirs, ours : float

        Returns
        -------
        array of str
        """
        truth = np.array([theirs - ours, theirs + ours]) / self.errors
        statistics = (truth + self.noise) / self.scale
        return verdict_words(statistics[:, 0], statistics[:, 1], self.bar)

    def moved(self, effect: float) -> float:
        """Probability that the interval of the difference alone excludes 0.

        Parameters
        ----------
        effect : float
            The true difference.

        Returns
        -------
        float
        """
        statistic = (effect / self.errors[0] + self.noise[:, 0]) / self.scale[:, 0]
        return float((np.abs(statistic) > self.bar).mean())

    def closer(self, theirs: float, ours: float) -> float:
        """Probability of :data:`CLOSER` when these are the true gaps.

        Parameters
        ----------
        theirs, ours : float

        Returns
        -------
        float
        """
        return float((self.words(theirs, ours) == CLOSER).mean())

    def detectable_closing(self) -> float:
        """The gap whose vanishing is called :data:`CLOSER` with probability 80 %.

        Returns
        -------
        float
        """
        largest = 20 * self.errors.max()
        return float(brentq(lambda gap: self.closer(gap, 0) - WANTED, 0, largest))


def power(table: pd.DataFrame) -> pd.DataFrame:
    """What the comparisons of a table could have shown, at effects fixed beforehand.

    The effects are never the observed ones: a gap of one point that vanishes, and Cox's gap, as
    large as it was found, halved. All are for intervals that are looked at alone.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compare`.

    Returns
    -------
    DataFrame
        By comparison: ``moved_point``, the probability that a difference of one point is told from
        0; ``closer_point`` and ``closer_half``, those of :data:`CLOSER` for both effects;
        ``detectable``, the difference that is told from 0 with probability 80 %, and
        ``detectable_closing``, of :class:`Simulated`, in points.
    """
    rows = {}
    for name, row in table.iterrows():
        experiments = Simulated(row)
        rows[name] = {
            "moved_point": experiments.moved(POINT),
            "closer_point": experiments.closer(POINT, 0.0),
            "closer_half": experiments.closer(row["theirs"], row["theirs"] / 2),
            "detectable": row["difference_error"] * detectable_errors(REPEATS),
            "detectable_closing": experiments.detectable_closing(),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def times_the_patients(detectable: pd.Series, wanted: float = 0.5) -> pd.Series:
    """How many times as many patients a smaller difference would need.

    Errors fall like one over the root of the number of patients.

    Parameters
    ----------
    detectable : Series
        Differences that are detectable now.
    wanted : float
        The one that should be.

    Returns
    -------
    Series
    """
    return (detectable / wanted) ** 2
