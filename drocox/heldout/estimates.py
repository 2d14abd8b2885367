r"""Held-out patients: how well scores serve a group of them, with and without each patient.

Each figure of a group is a ratio of sums over patients or pairs of patients. Its value without
patient :math:`i` follows from what that patient adds to numerator and denominator,

.. math:: \hat\vartheta = \frac{\sum_i a_i}{\sum_i b_i}, \qquad
          \hat\vartheta_{(-i)} = \frac{\sum_j a_j - a_i}{\sum_j b_j - b_i},

for all patients at once, in :math:`O(n \log n)`; :mod:`drocox.heldout.intervals` makes standard
errors of these values. Where several models scored the patients (cross-fitting), only patients of
one *fold*, scored by one model, are compared. The calibration slope and Uno's c are no such ratios;
:mod:`drocox.heldout.slope` and :mod:`drocox.heldout.uno` follow them without each patient in as
many steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from drocox import _checks, concordance
from drocox.data import SurvivalData
from drocox.heldout import horizon, uno
from drocox.heldout.censoring import Censoring, censoring
from drocox.heldout.intervals import jackknife, simultaneous
from drocox.heldout.slope import calibration_slope

FEWEST_EVENTS = 5  # that a group needs to be judged
STILL_OBSERVED = 10  # one patient in so many, at the horizon, unless another one is given
# the scale on which each figure is nearly normal, and the way back; a slope is as it is
_LOGIT = (special.logit, special.expit)
_LOG = (np.log, np.exp)
SCALES = {
    "c_index": _LOGIT,
    "concordance": _LOGIT,
    "uno_c": _LOGIT,
    "calibration": _LOG,
    "risk_observed": _LOGIT,
    "risk_predicted": _LOGIT,
    "auc": _LOGIT,
    "brier": _LOG,
    "mean_risk": _LOG,
}
DIFFERENCE_COLUMNS = [
    "attribute",
    "group",
    "versus",
    "difference",
    "low",
    "high",
    "noise_floor",
    "beyond_noise",
]


class Estimate(NamedTuple):
    """A figure, and its values without each patient in turn."""

    value: float
    without: np.ndarray


@dataclass(frozen=True)
class HeldOut:
    """Scores of patients whom the model has not seen, and what happened to them.

    Methods named after a figure take a mask of patients, the members of a group.
    """

    scores: np.ndarray
    time: np.ndarray
    event: np.ndarray
    fold: np.ndarray  # 0, 1, ...: which model scored each patient
    expected: np.ndarray | None = None  # events of each patient, by the baseline of a training part
    horizon: float | None = None  # of Uno's c and risks; by default that of `default_horizon`
    risk: np.ndarray | None = None  # predicted risk of each patient up to the horizon
    log_hazards: np.ndarray | None = None  # where these are not the scores that rank

    def subset(self, rows: np.ndarray) -> "HeldOut":
        """Some of the patients.

        Parameters
        ----------
        rows : bool array of shape (n,)

        Returns
        -------
        HeldOut
        """
        return HeldOut(
            self.scores[rows],
            self.time[rows],
            self.event[rows],
            self.fold[rows],
            None if self.expected is None else self.expected[rows],
            self.until if rows.any() else None,
            None if self.risk is None else self.risk[rows],
            None if self.log_hazards is None else self.log_hazards[rows],
        )

    @property
    def linear(self) -> np.ndarray:
        """Log-hazards, the scores unless others were given."""
        return self.scores if self.log_hazards is None else self.log_hazards

    @cached_property
    def until(self) -> float:
        """The horizon that was given, or that of all these patients."""
        if self.horizon is not None:
            return self.horizon
        return default_horizon(self.time, self.event)

    @cached_property
    def weights(self) -> Censoring:
        """Censoring weights of all these patients."""
        return censoring(self.time, self.event)

    @cached_property
    def counts(self) -> np.ndarray:
        """Points and pairs of each patient with all others of their fold, shape (n, 4).

        By Algorithm B.1, then by Harrell's rules; see :mod:`drocox.concordance`.
        """
        out = np.zeros((len(self.time), 4))
        for fold in np.unique(self.fold[self.event]):
            rows = np.flatnonzero(self.fold == fold)
            counts = concordance.count(self.scores[rows], self.time[rows], self.event[rows])
            columns = (counts.points, counts.pairs, counts.harrell_points, counts.harrell_pairs)
            out[rows] = np.column_stack(columns)
        return out

    @property
    def all_pairs(self) -> np.ndarray:
        """Points and pairs of each patient by Algorithm B.1, shape (n, 2)."""
        return self.counts[:, :2]

    @property
    def harrell_pairs(self) -> np.ndarray:
        """Points and pairs of each patient by Harrell's rules, shape (n, 2)."""
        return self.counts[:, 2:]

    def alone(self, members: np.ndarray) -> "HeldOut":
        """The members, compared among themselves.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        HeldOut
        """
        return self if members.all() else self.subset(members)

    def _of_all(self, members: np.ndarray, value: float, left: np.ndarray) -> Estimate:
        """A figure of the members, which does not depend on others."""
        without = np.full(len(members), value)
        without[members] = left
        return Estimate(value, without)

    def c_index(self, members: np.ndarray) -> Estimate:
        """Harrell's c-index among the members.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
        """
        # every pair is in the counts of both its patients and leaves with either
        total, left = _ratio(2 * self.alone(members).harrell_pairs, counted=2)
        return self._of_all(members, total, left)

    def concordance(
        self, members: np.ndarray, alone: "HeldOut | None" = None, others: "HeldOut | None" = None
    ) -> Estimate:
        """Concordance fraction of Algorithm B.1: members compared with everybody.

        Parameters
        ----------
        members : bool array of shape (n,)
        alone, others : HeldOut, optional
            The members, and all who are none, where they were counted before.

        Returns
        -------
        Estimate
        """
        # A patient takes away their pairs as a member, and those of members with them. The latter
        # are known for members; for others they are what is left without other others.
        lost = 2 * self.all_pairs
        alone = alone or self.alone(members)
        lost[members] = self.all_pairs[members] + alone.all_pairs
        if not members.all():
            others = others or self.subset(~members)
            lost[~members] = self.all_pairs[~members] - others.all_pairs
        return _ratio(lost, counted=2)

    def uno_c(self, members: np.ndarray) -> Estimate:
        """Uno's c among the members, with censoring weights of their own.

        Only events before the horizon are compared with later patients; the horizon stays where it
        is when a patient is left out.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
            NaN where there is no pair.
        """
        alone = self.alone(members)
        counted = alone.event & (alone.time < self.until)
        if not counted.any():
            return self._of_all(members, np.nan, np.full(len(counted), np.nan))
        total, left = uno.sums(alone.scores, alone.event, alone.fold, alone.weights, counted)
        with np.errstate(divide="ignore", invalid="ignore"):  # what does not exist is NaN
            return self._of_all(members, float(total[0] / total[1]), left[:, 0] / left[:, 1])

    def slope(self, members: np.ndarray) -> Estimate:
        """Calibration slope of the scores among the members: see :mod:`drocox.heldout.slope`.

        Members whose log-hazard is infinite, since their risk is exactly 0 or 1, are left out. This
        selects patients by what was predicted, not by what happened, so the slope of the others is
        unbiased.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
            NaN where there is no slope. Its values without a patient are one Newton step from it.
        """
        finite = members & np.isfinite(self.linear)
        alone = self.alone(finite)
        fewest = 1 if finite.sum() == members.sum() else FEWEST_EVENTS
        if alone.event.sum() < fewest:
            return Estimate(np.nan, np.full(len(members), np.nan))
        slope = calibration_slope(alone.linear, alone.time, alone.event, alone.fold)
        return self._of_all(finite, *slope)

    def calibration(self, members: np.ndarray) -> Estimate:
        """Observed by expected events of the members.

        Without expected events of a training part the baseline is that of the patients themselves,
        in each fold.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
            With the patients' own baseline, its values without a patient are those to second order
            in that patient's share of the risk sets.
        """
        observed = members & self.event
        if self.expected is not None:
            return _ratio(np.column_stack([observed, members * self.expected]))
        lost = np.zeros(len(members))
        second = np.zeros(len(members))
        for fold in np.unique(self.fold):
            rows = self.fold == fold
            hazard = np.exp(self.scores[rows] - self.scores[rows].max())
            outcomes = self.time[rows], self.event[rows]
            lost[rows], second[rows] = _expected_lost(hazard, *outcomes, members[rows])
        return _ratio(np.column_stack([observed, lost]), second=second)

    def risk_observed(self, members: np.ndarray) -> Estimate:
        """Observed risk of the members up to the horizon, by Kaplan and Meier.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
        """
        alone = self.alone(members)
        return self._of_all(members, *horizon.observed_risk(alone.time, alone.event, self.until))

    def risk_predicted(self, members: np.ndarray) -> Estimate:
        """Mean of the members' predicted risks, which must be given.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
        """
        return _ratio(np.column_stack([members * self.risk, members]))

    def risk_ratio(self, members: np.ndarray) -> Estimate:
        """Observed by predicted risk of the members, at the horizon.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
        """
        observed = self.risk_observed(members)
        predicted = self.risk_predicted(members)
        with np.errstate(divide="ignore", invalid="ignore"):
            return Estimate(observed.value / predicted.value, observed.without / predicted.without)

    def auc(self, members: np.ndarray) -> Estimate:
        """AUC among the members: those with an event up to the horizon against those without.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
        """
        alone = self.alone(members)
        outcomes = alone.time, alone.event
        value = horizon.auc(alone.scores, *outcomes, alone.fold, alone.weights, self.until)
        return self._of_all(members, *value)

    def brier(self, members: np.ndarray) -> Estimate:
        """Brier score of the members' predicted risks, which must be given, at the horizon.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
        """
        alone = self.alone(members)
        if alone.risk is None:
            raise ValueError("risk is not known; pass the risks that were predicted up to a time")
        outcomes = alone.time, alone.event
        value = horizon.brier_score(alone.risk, *outcomes, alone.weights, self.until)
        return self._of_all(members, *value)

    def mean_risk(self, members: np.ndarray) -> Estimate:
        """Geometric mean of the members' hazards relative to everybody's, in each fold.

        Parameters
        ----------
        members : bool array of shape (n,)

        Returns
        -------
        Estimate
            NaN if some hazard is 0 or infinite.
        """
        if not np.isfinite(self.linear).all():
            return Estimate(np.nan, np.full(len(members), np.nan))
        patients = np.bincount(self.fold)
        mean = np.bincount(self.fold, self.linear) / patients
        score = self.linear - mean[self.fold]
        log_risk, without = _ratio(np.column_stack([members * score, members]))
        # Without a patient, the mean of the fold falls by score / (n - 1), and as much is added to
        # the log-risk of each member of this fold who is left.
        of_fold = np.bincount(self.fold, members)[self.fold] - members
        share = of_fold / (members.sum() - members)
        others = np.maximum(patients[self.fold] - 1, 1)
        return Estimate(np.exp(log_risk), np.exp(without + share * score / others))


def default_horizon(time: np.ndarray, event: np.ndarray) -> float:
    """The last time of an event after which a tenth of the patients is still observed.

    Parameters
    ----------
    time, event : arrays of shape (n,)

    Returns
    -------
    float
        Of the first event, where nobody else is observed as long.
    """
    events = np.sort(time[event])
    later = len(time) - np.searchsorted(np.sort(time), events, side="right")
    enough = STILL_OBSERVED * later >= len(time)
    return float(max(events[enough].max(initial=0.0), events[0]))


def _ratio(lost: np.ndarray, counted: int = 1, second: np.ndarray | float = 0.0) -> Estimate:
    """A ratio of two totals, with and without each patient.

    ``lost`` holds what numerator and denominator lose with each patient, shape (n, 2). Pairs are
    lost with either of their patients, so that the sum has ``counted`` them twice. ``second`` is
    what the denominator loses to second order.
    """
    total = lost.sum(axis=0) / counted
    left = total - lost
    with np.errstate(divide="ignore", invalid="ignore"):  # what does not exist is NaN
        return Estimate(total[0] / total[1], left[:, 0] / (left[:, 1] - second))


def _expected_lost(hazard, time, event, members) -> tuple[np.ndarray, np.ndarray]:
    r"""What the members' expected events lose without each patient, to first and second order.

    With deaths :math:`d_t`, hazards at risk :math:`S_t` and the members' share :math:`p_t` of them,
    they expect :math:`E = \sum_t d_t p_t`. Patient i takes away the own death and the own hazard:

    .. math:: \delta_i \, p_{Y_i} + h_i \sum_{t \le Y_i} \frac{d_t}{S_t} (m_i - p_t) +
              h_i^2 \sum_{t \le Y_i} \frac{d_t}{S_t^2} (m_i - p_t) + \dots,

    where :math:`m_i` is 1 for members. Summed over the patients, the first order is E.
    """
    rank, at_risk, step = breslow_steps(hazard, time, event)
    members_at_risk = np.cumsum(np.bincount(rank, hazard * members)[::-1])[::-1]
    share = members_at_risk / at_risk

    def until_own_time(step: np.ndarray) -> np.ndarray:
        """Sum of step (m_i - p_t) over the times up to each patient's own."""
        return members * np.cumsum(step)[rank] - np.cumsum(share * step)[rank]

    first = event * share[rank]
    first = first + hazard * until_own_time(step)
    second = hazard**2 * until_own_time(step / at_risk)
    return first, second


def breslow_steps(hazard, time, event) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps of Breslow's baseline hazard: deaths by the sum of hazards at risk.

    Parameters
    ----------
    hazard, time, event : arrays of shape (n,)

    Returns
    -------
    rank, at_risk, step : arrays
        Rank of each patient's time among the distinct times, from 0; by rank, the sum of hazards
        at risk and the step.
    """
    rank = np.unique(time, return_inverse=True)[1]
    at_risk = np.cumsum(np.bincount(rank, hazard)[::-1])[::-1]
    return rank, at_risk, np.bincount(rank, event) / at_risk


def expected_events(train: SurvivalData, train_scores, scores, time) -> np.ndarray:
    """Expected events of patients by the baseline hazard of a training part.

    Parameters
    ----------
    train : SurvivalData
    train_scores : array of shape (len(train),)
        Log-hazards of the training patients.
    scores, time : arrays of shape (n,)
        Log-hazards and observed times of other patients.

    Returns
    -------
    array of shape (n,)
    """
    train_scores = _checks.numbers(train_scores, "scores in train", 1)
    _checks.same_length(**{"scores in train": train_scores, "train": train.time})
    top = train_scores.max()
    step = breslow_steps(np.exp(train_scores - top), train.time, train.event)[2]
    baseline = np.append(0, np.cumsum(step))
    passed = np.searchsorted(np.unique(train.time), time, side="right")
    return baseline[passed] * np.exp(scores - top)


def assign_folds(strata: ArrayLike, folds: int, seed: int) -> np.ndarray:
    """Deal patients into folds at random, each stratum as evenly as possible.

    Parameters
    ----------
    strata : array of shape (n,)
        For example events, or events by group.
    folds, seed : int

    Returns
    -------
    array of shape (n,)
        Fold of each patient, from 0.
    """
    # Like sklearn's StratifiedKFold, except that a stratum may have fewer patients than there are
    # folds; and stored results depend on these very folds.
    strata = np.asarray(strata)
    shuffled = np.random.default_rng(seed).permutation(len(strata))
    order = shuffled[np.argsort(strata[shuffled], kind="stable")]
    return np.argsort(order) % folds  # where each patient stands in that order


def compare(
    names: Sequence[dict], differences: Sequence[Estimate], unit: float = 100
) -> list[dict]:
    """Rows of differences in percentage points, with intervals that hold for all of them at once.

    Parameters
    ----------
    names : sequence of dict
        What each row says beside its numbers.
    differences : sequence of Estimate
        Those that do not exist without some patient are left out.
    unit : float
        100 for percentage points, 1 for differences as they are.

    Returns
    -------
    list of dict
        With ``difference``, ``low``, ``high``, ``noise_floor`` and ``beyond_noise``.
    """
    known = [k for k, one in enumerate(differences) if np.isfinite(one.without).all()]
    if not known:
        return []
    values = unit * np.array([differences[k].value for k in known])
    without = unit * np.column_stack([differences[k].without for k in known])
    covariance, df = jackknife(without)
    critical, floor = simultaneous(covariance, df)
    half = critical * np.sqrt(np.diag(covariance))
    rows = pd.DataFrame([names[k] for k in known])
    rows = rows.assign(difference=values, low=values - half, high=values + half)
    rows = rows.assign(noise_floor=floor, beyond_noise=np.abs(values) > half)
    return rows.to_dict("records")
