r"""Held-out patients: estimates for a group of them, with leave-one-out values for the jackknife.

Most estimates are ratios of sums over patients or pairs of patients. The value without patient
:math:`i` follows from that patient's contributions to numerator and denominator,

.. math:: \hat\vartheta = \frac{\sum_i a_i}{\sum_i b_i}, \qquad
          \hat\vartheta_{(-i)} = \frac{\sum_j a_j - a_i}{\sum_j b_j - b_i},

for all patients at once, in :math:`O(n \log n)`; :mod:`drocox.heldout.intervals` turns these values
into standard errors. Where several models scored the patients (cross-fitting), pairs are formed
within a *fold*, the patients scored by one model. The calibration slope and Uno's c are not such
ratios; :mod:`drocox.heldout.slope` and :mod:`drocox.heldout.uno` have their leave-one-out values,
also in :math:`O(n \log n)`. The c-index that predictions lead one to expect,
:mod:`drocox.heldout.expected`, depends on other patients by a slope for everybody, and changes with
it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from drocox import _checks, concordance
from drocox.concordance import TOLERANCE
from drocox.data import SurvivalData
from drocox.heldout import decisions, expected, horizon, uno
from drocox.heldout.censoring import Censoring, censoring
from drocox.heldout.intervals import jackknife, says, simultaneous, wilson
from drocox.heldout.slope import calibration_slope

FEWEST_EVENTS = 5  # a group with fewer gets no estimates
TAIL = 0.025  # of the scores, on each side, that `central_slope` leaves out
SAME_RISK = 1e-7  # as the threshold, in single precision, too: such patients are flagged
STILL_OBSERVED = 10  # the default horizon leaves one patient in so many under observation
DIFFERENCE_COLUMNS = [
    "attribute",
    "group",
    "versus",
    "difference",
    "low",
    "high",
    "noise_floor",
    "says",
]


class Estimate(NamedTuple):
    """An estimate and its leave-one-out values: ``without[i]`` leaves out patient i."""

    value: float
    without: np.ndarray
    df: float | None = None  # of its variance, where they are known; else by the jackknife
    limits: Callable | None = None  # by a critical value, where they are not from the jackknife

    @property
    def error(self) -> float:
        """The jackknife's standard error."""
        return float(np.sqrt(jackknife(self.without[:, None])[0].item()))


@dataclass(frozen=True)
class HeldOut:
    """Scores and outcomes of patients whom the model has not seen in training.

    Methods named after an estimate take a mask ``members`` of shape (n,), True in the group, and
    return an :class:`Estimate`. They are called on everybody, since some compare the members with
    other patients; what they compute of the members alone is shared while somebody holds it.
    """

    scores: np.ndarray
    time: np.ndarray
    event: np.ndarray
    fold: np.ndarray  # 0, 1, ...: the model that scored each patient
    expected: np.ndarray | None = None  # expected events of each patient, by a training baseline
    horizon: float | None = None  # of Uno's c, AUC, Brier score and risks; see `default_horizon`
    risk: np.ndarray | None = None  # predicted risk of each patient up to the horizon
    log_hazards: np.ndarray | None = None  # where they differ from the scores that rank
    threshold: float | None = None  # of the predicted risk, from which patients are flagged
    row: np.ndarray | None = None  # of each patient in the data, if they are in another order
    less_far: np.ndarray | None = None  # scores of the expected c-index, if some are far apart

    def subset(self, rows: np.ndarray) -> "HeldOut":
        """The patients of a mask, with the same horizon."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        of_rows = {name: one[rows] for name, one in given.items() if isinstance(one, np.ndarray)}
        return replace(self, **of_rows, horizon=self.until if rows.any() else None)

    def with_others(self, **predictions: Any) -> "HeldOut":
        """The same patients with other predictions, whose pairs are not counted again."""
        patients = replace(self, **predictions)
        if "counts" in vars(self):
            vars(patients)["counts"] = self.counts
        return patients

    @property
    def linear(self) -> np.ndarray:
        """Log-hazards: the scores, unless ``log_hazards`` were given."""
        return self.scores if self.log_hazards is None else self.log_hazards

    @cached_property
    def until(self) -> float:
        """The horizon: the one given, or the default for all these patients."""
        if self.horizon is not None:
            return self.horizon
        return default_horizon(self.time, self.event)

    @cached_property
    def weights(self) -> Censoring:
        """Inverse-probability-of-censoring weights, from all these patients."""
        return censoring(self.time, self.event)

    @cached_property
    def counts(self) -> np.ndarray:
        """Points and pairs of each patient with all others of their fold, shape (n, 4).

        Two columns for Algorithm B.1, then two for Harrell's rules; see :mod:`drocox.concordance`.
        """
        if not self.event.any():
            return np.zeros((len(self.time), 4))
        outcomes = self.scores, self.time, self.event
        return _columns(concordance.count(*outcomes, strata=self.fold))

    def pairs_with(self, members: np.ndarray) -> np.ndarray:
        """Points and pairs of each patient with the members, in the columns of ``counts``."""
        if members.all():
            return self.counts.copy()
        lines = concordance.lines(self.scores, self.time, self.event, strata=self.fold)
        return _columns(concordance.pairs_with(members.astype(float), lines))

    @property
    def all_pairs(self) -> np.ndarray:
        """Points and pairs of each patient by Algorithm B.1, shape (n, 2)."""
        return self.counts[:, :2]

    @property
    def harrell_pairs(self) -> np.ndarray:
        """Points and pairs of each patient by Harrell's rules, shape (n, 2)."""
        return self.counts[:, 2:]

    def __getstate__(self) -> dict:
        # what is shared while somebody holds it is no part of the patients
        return {name: one for name, one in vars(self).items() if name != "_parts"}

    @cached_property
    def _parts(self) -> WeakValueDictionary:
        """Groups of these patients that are in use, by the bits of their mask."""
        return WeakValueDictionary()

    def alone(self, members: np.ndarray) -> "HeldOut":
        """The members by themselves, so that pairs and weights come from members only.

        As long as the returned patients are in use, the same mask gives the same object, so that
        their pairs are counted once.
        """
        if members.all():
            return self
        key = np.packbits(members).tobytes()
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = self.subset(members)
        return part

    def _of_all(self, members: np.ndarray, value: float, left: np.ndarray) -> Estimate:
        """Extend leave-one-out values of the members to everybody: others change nothing."""
        without = np.full(len(members), value)
        without[members] = left
        return Estimate(value, without)

    def c_index(self, members: np.ndarray) -> Estimate:
        """Harrell's c-index among the members."""
        # every pair is in the counts of both its patients, and both counts lose it with either
        value, left = _ratio(2 * self.alone(members).harrell_pairs, losses_per_term=2)[:2]
        return self._of_all(members, value, left)

    @property
    def _of_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What the c-index that the scores imply is made of."""
        scores = self.scores if self.less_far is None else self.less_far
        return scores, self.time, self.event, self.fold

    @cached_property
    def _implied(self) -> dict[float, np.ndarray]:
        return {}

    def implied_pairs(self, slope: float) -> np.ndarray:
        """The points expected of each patient's pairs, at a slope of the scores, shape (n, 2).

        The second column has the derivative; see :mod:`drocox.heldout.expected`.
        """
        if slope not in self._implied:
            self._implied[slope] = expected.pair_sums(*self._of_pairs, slope)
        return self._implied[slope]

    @cached_property
    def _pair_slope(self) -> tuple[float, np.ndarray]:
        """The slope of everybody's scores that fits their pairs best."""
        return expected.pair_slope(*self._of_pairs)

    def c_expected(self, members: np.ndarray) -> Estimate:
        """The members' c-index that the scores imply (:mod:`drocox.heldout.expected`).

        Scores are log-hazards up to one slope for everybody.
        """
        alone = self.alone(members)
        slope, without = self._pair_slope
        implied = alone.implied_pairs(slope)
        lost = np.array([implied[:, 0], alone.harrell_pairs[:, 1]]).T
        shift = without - slope
        return Estimate(*expected.expected_ratio(lost, implied[:, 1], shift, members))

    def c_minus_expected(self, members: np.ndarray) -> Estimate:
        """Harrell's c-index among the members, minus the one that the scores imply."""
        return difference(self.c_index(members), self.c_expected(members))

    def concordance(self, members: np.ndarray) -> Estimate:
        """Concordance fraction of Algorithm B.1: members compared with everybody."""
        return self._with_everybody(members, slice(0, 2))

    def harrell_concordance(self, members: np.ndarray) -> Estimate:
        """The same by Harrell's rules: share of the pairs of members and anybody ranked rightly."""
        return self._with_everybody(members, slice(2, 4))

    def _with_everybody(self, members: np.ndarray, columns: slice) -> Estimate:
        # The sum runs over pairs (member, anybody), so that a pair of two members counts twice.
        # Without a patient it loses their pairs with members and, of a member, their own.
        lost = self.pairs_with(members)[:, columns]
        lost[members] += self.counts[members, columns]
        return _ratio(lost, losses_per_term=2)

    def uno_c(self, members: np.ndarray) -> Estimate:
        """Uno's c among the members, with censoring weights estimated from them; NaN without pairs.

        Events before the horizon are compared with later patients. The horizon stays fixed when a
        patient is left out.
        """
        alone = self.alone(members)
        counted = alone.event & (alone.time < self.until)
        if not counted.any():
            return self._of_all(members, np.nan, np.full(len(counted), np.nan))
        total, left = uno.sums(alone.scores, alone.event, alone.fold, alone.weights, counted)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is NaN: not defined
            return self._of_all(members, float(total[0] / total[1]), left[:, 0] / left[:, 1])

    def slope(self, members: np.ndarray) -> Estimate:
        """Calibration slope of the members (:mod:`drocox.heldout.slope`); NaN if undefined.

        Members with an infinite log-hazard (a predicted risk of exactly 0 or 1) are excluded. This
        selects by prediction, not by outcome, so the slope among the others stays unbiased.
        Leave-one-out values are one Newton step from the estimate.
        """
        finite = members & np.isfinite(self.linear)
        alone = self.alone(finite)
        fewest = 1 if finite.sum() == members.sum() else FEWEST_EVENTS
        if alone.event.sum() < fewest:
            return Estimate(np.nan, np.full(len(members), np.nan))
        slope = calibration_slope(alone.linear, alone.time, alone.event, alone.fold)
        return self._of_all(finite, *slope)._replace(df=max(1.0, alone.event.sum() - 1.0))

    def central_slope(self, members: np.ndarray) -> Estimate:
        """The slope of the members without the lowest and the highest 2.5 % of their scores."""
        low, high = np.quantile(self.linear[members], [TAIL, 1 - TAIL])
        return self.slope(members & (self.linear >= low) & (self.linear <= high))

    def calibration(self, members: np.ndarray) -> Estimate:
        """Ratio of observed to expected events among the members; needs ``expected``."""
        expected = self._given("expected", "expected_events(train, ...)")
        return _ratio(np.array([members & self.event, members * expected]).T)

    def risk_observed(self, members: np.ndarray) -> Estimate:
        """Observed risk of the members up to the horizon, by Kaplan and Meier."""
        alone = self.alone(members)
        return self._of_all(members, *horizon.observed_risk(alone.time, alone.event, self.until))

    def risk_predicted(self, members: np.ndarray) -> Estimate:
        """Mean predicted risk of the members; needs ``risk``."""
        risk = self._given("risk", "the predicted risks up to the horizon")
        return _ratio(np.array([members * risk, members]).T)

    def risk_ratio(self, members: np.ndarray) -> Estimate:
        """Ratio of observed to predicted risk of the members at the horizon."""
        observed = self.risk_observed(members)
        predicted = self.risk_predicted(members)
        with np.errstate(divide="ignore", invalid="ignore"):
            return Estimate(observed.value / predicted.value, observed.without / predicted.without)

    def auc(self, members: np.ndarray) -> Estimate:
        """AUC among the members: events up to the horizon against patients observed longer."""
        alone = self.alone(members)
        outcomes = alone.time, alone.event
        value = horizon.auc(alone.scores, *outcomes, alone.fold, alone.weights, self.until)
        return self._of_all(members, *value)

    def brier(self, members: np.ndarray) -> Estimate:
        """Brier score of the members' predicted risks at the horizon; needs ``risk``."""
        risk = self._given("risk", "the predicted risks up to the horizon")[members]
        alone = self.alone(members)
        value = horizon.brier_score(risk, alone.time, alone.event, alone.weights, self.until)
        return self._of_all(members, *value)

    def _given(self, name: str, what: str) -> np.ndarray:
        """What was predicted; an error says what to pass if it was not."""
        values = getattr(self, name)
        if values is None:
            raise ValueError(f"{name} is missing; pass {what} as {name}=")
        return values

    def flagged(self, members: np.ndarray) -> Estimate:
        """Share of the members who are flagged; needs ``risk`` and ``threshold``."""
        share = _ratio(np.array([members & self.flags, members], float).T)
        return _wilson(share, float(members.sum()))

    def sensitivity(self, members: np.ndarray) -> Estimate:
        """Share of the flagged among members with an event up to the horizon."""
        counted = self._decided(members)
        cases = self.alone(members).event_by_horizon
        return self._share(members, counted.true_positive, counted.false_negative, cases)

    def specificity(self, members: np.ndarray) -> Estimate:
        """Share of those not flagged among members without an event up to the horizon."""
        counted = self._decided(members)
        cases = self.alone(members).time > self.until
        return self._share(members, counted.true_negative, counted.false_positive, cases)

    def ppv(self, members: np.ndarray) -> Estimate:
        """Observed risk of the flagged members, the positive predictive value."""
        counted = self._decided(members)
        alone = self.alone(members)
        cases = alone.flags & (alone.event_by_horizon | (alone.time > self.until))
        return self._share(members, counted.true_positive, counted.false_positive, cases)

    def net_benefit(self, members: np.ndarray) -> Estimate:
        """Net benefit of flagging members (:mod:`drocox.heldout.decisions`)."""
        counted = self._decided(members)
        assert self.threshold is not None
        odds = self.threshold / (1 - self.threshold)
        values = counted.true_positive - odds * counted.false_positive
        flagged, ppv = self.flagged(members), self.ppv(members)
        if ppv.limits is None or flagged.limits is None:  # too few patients are flagged
            return Estimate(float(values[0]), np.full(len(members), np.nan))
        gain = ppv.value / (1 - self.threshold) - odds  # of each patient who is flagged
        of_ppv, of_flagged = ppv.limits, flagged.limits
        share = flagged.value / (1 - self.threshold)

        def limits(critical: float) -> tuple[float, float]:
            """The distances of PPV and share flagged, which are independent, put together."""
            by_ppv = share * (np.array(of_ppv(critical)) - ppv.value)
            by_share = gain * (np.array(of_flagged(critical)) - flagged.value)
            down, up = np.hypot(min(by_ppv), min(by_share)), np.hypot(max(by_ppv), max(by_share))
            return values[0] - down, values[0] + up

        return self._of_all(members, float(values[0]), values[1:])._replace(limits=limits)

    @property
    def flags(self) -> np.ndarray:
        """Whether each patient has a predicted risk of the threshold or more."""
        if self.risk is None or self.threshold is None:
            raise ValueError("risk or threshold is missing; pass both as risk= and threshold=")
        return self.risk >= self.threshold - SAME_RISK

    def _decided(self, members: np.ndarray) -> decisions.Shares:
        """True and false positives and negatives among the members."""
        alone = self.alone(members)
        return decisions.shares(alone.flags, alone.time, alone.event, self.until)

    def _share(
        self, members: np.ndarray, part: np.ndarray, rest: np.ndarray, cases: np.ndarray
    ) -> Estimate:
        """The share of a part in the part and the rest, each with the value first.

        Its size is that of a sample without censoring that would have the same variance, at most
        the number of ``cases`` among the members, whose outcome is known; unknown with few of them.
        """
        with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: not defined
            values = part / (part + rest)
        share = self._of_all(members, float(values[0]), values[1:])
        size = float(cases.sum())
        if size < FEWEST_EVENTS or np.isnan(share.value):
            return Estimate(np.nan, np.full(len(members), np.nan))
        spread = share.value * (1 - share.value)
        if spread > 0:
            known = share.without[np.isfinite(share.without)]
            size = min(size, spread / jackknife(known[:, None])[0].item())
        else:  # Kish's size of the weighted cases
            weight = self.alone(members).weights.weight[cases]
            size = float(weight.sum() ** 2 / (weight**2).sum())
        return _wilson(share, size)

    @property
    def event_by_horizon(self) -> np.ndarray:
        """Who has an event up to the horizon."""
        return self.event & (self.time <= self.until)

    def mean_risk(self, members: np.ndarray) -> Estimate:
        """Geometric mean hazard of the members relative to everybody in their fold.

        NaN if some hazard is 0 or infinite.
        """
        if not np.isfinite(self.linear).all():
            return Estimate(np.nan, np.full(len(members), np.nan))
        patients = np.bincount(self.fold)
        mean = np.bincount(self.fold, self.linear) / patients
        score = self.linear - mean[self.fold]
        log_risk, without = _ratio(np.array([members * score, members]).T)[:2]
        # Without a patient the fold's mean falls by score / (n - 1), so the centred score of every
        # remaining patient of that fold rises by as much.
        of_fold = np.bincount(self.fold, members)[self.fold] - members
        share = of_fold / (members.sum() - members)
        others = np.maximum(patients[self.fold] - 1, 1)
        return Estimate(np.exp(log_risk), np.exp(without + share * score / others))


def _columns(counts: concordance.Counts) -> np.ndarray:
    """Points and pairs by either rules as four columns."""
    by_rule = counts.points, counts.pairs, counts.harrell_points, counts.harrell_pairs
    return np.array(by_rule).T


def _wilson(share: Estimate, size: float) -> Estimate:
    """A share among a number of patients, with Wilson's limits."""
    return share._replace(limits=partial(wilson, share.value, size))


def default_horizon(time: np.ndarray, event: np.ndarray) -> float:
    """The last event time after which at least a tenth of the patients is still under observation.

    It is the first event time where no event time qualifies.
    """
    events = np.sort(time[event])
    later = len(time) - np.searchsorted(np.sort(time), events, side="right")
    enough = STILL_OBSERVED * later >= len(time)
    return float(max(events[enough].max(initial=0.0), events[0]))


def _ratio(lost: np.ndarray, losses_per_term: int = 1) -> Estimate:
    """A ratio of two totals with its leave-one-out values, from the contribution of each patient.

    Row i of ``lost`` is the amount by which numerator and denominator fall without patient i::

          lost                     total = column sums / losses_per_term
          ┌ a_0  b_0 ┐  patient 0
          │ a_1  b_1 │  patient 1  left  = total - lost        row i: both sums without patient i
          │ a_2  b_2 │  patient 2
          └   ...    ┘             value = total a / total b   without = left a / left b

    A term of one patient is lost with that patient only. A term of a pair is lost with either
    patient, so it stands in two rows and the column sums count it twice: ``losses_per_term=2``.
    """
    total = lost.sum(axis=0) / losses_per_term
    left = total - lost
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is NaN: not defined
        return Estimate(total[0] / total[1], left[:, 0] / left[:, 1])


def breslow_steps(hazard, time, event) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Breslow's baseline hazard: rank of each patient's time, total hazard at risk, jumps.

    Ranks count the distinct times from 0; hazards at risk and jumps (deaths / hazard at risk) are
    indexed by rank.
    """
    rank = np.unique(time, return_inverse=True)[1]
    at_risk = np.cumsum(np.bincount(rank, hazard)[::-1])[::-1]
    return rank, at_risk, np.bincount(rank, event) / at_risk


def expected_events(train: SurvivalData, train_scores, scores, time) -> np.ndarray:
    """Expected events up to ``time``, by Breslow's baseline hazard of a training part.

    ``train_scores`` and ``scores`` are log-hazards, of the training patients and of the patients
    whose expected events are returned.
    """
    train_scores = _checks.numbers(train_scores, "scores in train", 1)
    _checks.same_length(**{"scores in train": train_scores, "train": train.time})
    top = train_scores.max()
    step = breslow_steps(np.exp(train_scores - top), train.time, train.event)[2]
    baseline = np.append(0, np.cumsum(step))
    passed = np.searchsorted(np.unique(train.time), time, side="right")
    return baseline[passed] * np.exp(scores - top)


def assign_folds(strata: ArrayLike, folds: int, seed: int) -> np.ndarray:
    """Random folds 0, 1, ... of all patients, balanced within each stratum."""
    # Like sklearn's StratifiedKFold, but a stratum may be smaller than the number of folds, and
    # stored results depend on exactly these folds.
    strata = np.asarray(strata)
    shuffled = np.random.default_rng(seed).permutation(len(strata))
    order = shuffled[np.argsort(strata[shuffled], kind="stable")]
    return np.argsort(order) % folds  # position of each patient in that order


def difference(first: Estimate, second: Estimate) -> Estimate:
    """The first estimate minus the second; exactly 0 where they agree but for rounding."""
    # the jackknife takes rounding for noise, beyond which a difference by rounding may well be
    if np.allclose(first.value, second.value, TOLERANCE, TOLERANCE) and np.allclose(
        first.without, second.without, TOLERANCE, TOLERANCE
    ):
        return Estimate(0.0, np.zeros(len(first.without)))
    return Estimate(first.value - second.value, first.without - second.without)


def compare(names: Sequence[dict], differences: Sequence[Estimate], unit: float = 1) -> list[dict]:
    """Table rows of differences, with simultaneous 95 % intervals.

    Each row has the entries of ``names``, then ``difference``, ``low``, ``high``, ``noise_floor``
    (see :func:`drocox.heldout.intervals.simultaneous`) and what the interval ``says``. ``unit=100``
    gives percentage points. Differences that are undefined without some patient are left out.
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
    said = [says(value - h, value + h) for value, h in zip(values, half, strict=True)]
    rows = rows.assign(noise_floor=floor, says=said)
    return rows.to_dict("records")
