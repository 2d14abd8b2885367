r"""Predictions of any kind of model, checked and prepared for the audit.

Three kinds of prediction can be judged, alone or together.

*Scores* rank the patients. Where they are log-hazards :math:`f_i`, their scale can be judged, too;
with a training part, its Breslow baseline :math:`\hat H_0` gives expected events
:math:`\hat H_0(Y_i)\, e^{f_i}` and the risk up to a horizon t,
:math:`1 - \exp(-\hat H_0(t) e^{f_i})`.

*Survival probabilities* :math:`S_i(t)` at one or several times rank the patients by
:math:`\log(-\log S_i(t))` at the horizon, and say how high the risk is. Between the times
:math:`-\log S_i` is interpolated, or :math:`S_i` itself where it falls to 0. Probabilities of
exactly 0 or 1, which rounding gives, have no finite log-hazard. These patients are ranked, and left
out of the slope.

*Expected events* allow calibration, but do not rank the patients.

Scores on another scale than that of log-hazards are noticed by their slope
(:mod:`drocox.heldout.slope`), and a note says what they look like.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.auditing.disclosure import count_text
from drocox.auditing.measures import MEASURES, RISK_RATIO, Measure, own_measure, with_margins
from drocox.data import SurvivalData
from drocox.heldout import FEWEST_EVENTS, Estimate, HeldOut, default_horizon, expected_events
from drocox.heldout.intervals import half_width
from drocox.heldout.ties import many_tied, tied_events

BEYOND = 1e3  # by how much risks of 0 and 1 rank outside all others, whose log-hazards are smaller
RISING = 1e-6  # that a survival curve may do by rounding
CLIPPED = 2.0  # times as far from the median as the central 95 % of the scores reach
OUTLYING = 2.0  # times as far again: a note says so
FAR = 10  # times as steep or as flat as log-hazards: another scale, or far too extreme
REPEATED = 0.5  # share of the rows that are copies of others, from which on a note says so
MANY_TIES = 0.05  # share of the pairs in which an event and another patient have the same time


class Predictions(NamedTuple):
    """Patients with what was predicted for them, and which questions that can answer."""

    patients: HeldOut
    ranks: bool  # whether it ranks the patients
    scaled: bool  # whether it is on the scale of log-hazards
    backwards: bool  # whether it ranks the wrong way round, so that groups are not compared
    notes: tuple[str, ...]  # what the reader should know about it
    more: Mapping[str, Callable[[HeldOut, np.ndarray], Estimate]] = {}  # other measures
    margin: Mapping[str, float] | None = None  # differences that do not matter

    @property
    def described(self) -> dict[str, Measure]:
        """All measures of the audit, known or not, and how they are shown."""
        measures = dict(MEASURES)
        if self.patients.risk is not None and self.patients.expected is None:
            measures["calibration"] = RISK_RATIO
        measures |= {name: own_measure(name) for name in self.more if name not in MEASURES}
        measures = with_margins(measures, self.margin)
        if self.patients.threshold is None:  # decisions are there if they are asked for
            measures = {k: one for k, one in measures.items() if one.needs != "threshold"}
        return measures

    @property
    def measures(self) -> dict[str, Callable[[HeldOut, np.ndarray], Estimate]]:
        """Measures that can be known, as functions of all patients and a group's mask."""
        risks = self.patients.risk is not None
        answers = {
            "nothing": True,
            "ranking": self.ranks,
            "log-hazards": self.scaled,
            "log-hazards as scores": self.scaled
            and not many_tied(self.patients),  # or slopes are off
            "features": "own_model_gain" in self.more,
            "risks": risks,
            "risks or expected events": risks or self.patients.expected is not None,
            "threshold": self.patients.threshold is not None,
        }
        methods = {k: one.method or k for k, one in self.described.items() if answers[one.needs]}
        return {k: self.more.get(k) or getattr(HeldOut, name) for k, name in methods.items()}


def same_measure(name: str, one: Predictions, two: Predictions, members: np.ndarray) -> bool:
    """Whether a measure of a group means the same for two models of the same patients.

    Calibration may be a ratio of events or of risks, and slopes may leave out different patients.
    """
    if name == "slope":
        first, second = (np.isfinite(model.patients.linear[members]) for model in (one, two))
        return np.array_equal(first, second)
    return one.measures.get(name) == two.measures.get(name)


def predictions(
    data: SurvivalData,
    scores=None,
    *,
    risk=None,
    survival=None,
    times=None,
    expected=None,
    horizon: float | None = None,
    folds=None,
    train=None,
    smallest: int = 0,
) -> Predictions:
    """Check what was predicted, given as to :func:`drocox.audit`, and add what happened."""
    given = {"scores": scores, "risk": risk, "survival": survival}
    for name, values in (given | {"expected": expected, "folds": folds}).items():
        _refuse_other_index(values, data, name)
    if risk is not None:
        survival = _complement(risk, survival, horizon)
    _check_call(scores, survival, times, expected, train)
    n = len(data)
    labels, fold = _checked_folds(folds, n)
    until = _horizon(data, survival, times, horizon)
    risk = None
    log_hazards = None
    events = None
    notes: list[str] = []
    if survival is not None:
        curves = _Curves(survival, times, horizon, n)
        hazard = curves.hazard_at(np.full(n, until))
        risk = -np.expm1(-hazard)
        with np.errstate(divide="ignore"):
            log_hazards = np.log(hazard)
        events = curves.expected_events(data)
        notes += _exact_risks(log_hazards, smallest)
    if events is not None and expected is None and not np.isfinite(events).all():
        notes.append(
            f"Survival of {count_text(np.isinf(events).sum(), smallest)} of {n} patients falls to "
            "exactly 0 before they leave, so that expected events are unknown. Calibration is "
            "observed / predicted risk."
        )
        events = None
    if expected is not None:
        events = _checked_expected(expected, data)
    ranks = scores is not None or survival is not None
    rank_by = np.zeros(n)  # expected events alone say nothing about who is next
    if scores is not None:
        rank_by = _predicted(scores, "scores", 1)
        _checks.same_length(scores=rank_by, data=data.time)
    elif log_hazards is not None:
        rank_by = np.clip(log_hazards, -BEYOND, BEYOND)
    patients = HeldOut(rank_by, data.time, data.event, fold, events, until, risk, log_hazards)
    if ranks and not patients.all_pairs.any():
        raise ValueError("folds leaves nobody to be compared with; use fewer, larger folds")
    parts = [] if train is None else _training_parts(train, folds, labels)

    backwards = _backwards(patients, survival is not None) if ranks else ""
    strange = ""
    if scores is not None and survival is None and not backwards:
        strange = _strange_scale(patients)
    notes = [note for note in (backwards, strange) if note] + notes
    scaled = ranks and not strange and not backwards
    if parts and not scaled:
        notes.append("Calibration is not shown, since it needs log-hazards or survival.")
    if parts and scaled:
        patients = _with_baseline(patients, parts)
    if ranks:
        notes += _coarse_times(patients)
    notes += _repeated_rows(data, rank_by)
    if scaled:
        patients, outliers = _clipped(patients, smallest)
        notes += outliers
    return Predictions(patients, ranks, scaled, bool(backwards), tuple(notes))


def _clipped(patients: HeldOut, smallest: int) -> tuple[HeldOut, list[str]]:
    """The patients with less extreme scores where some are far from all others, and a note.

    One such score would decide by which factor everybody's scores are multiplied, and so which
    c-index is expected of other groups.
    """
    low, middle, high = np.quantile(patients.scores, [0.025, 0.5, 0.975])
    reach = CLIPPED * (high - low) / 2
    apart = np.abs(patients.scores - middle)
    if not reach > 0 or not (apart > reach).any():
        return patients, []
    less_far = np.clip(patients.scores, middle - reach, middle + reach)
    clipped = patients.with_others(less_far=less_far)
    outlying = int((apart > OUTLYING * reach).sum())
    if not outlying:
        return clipped, []
    verb = "lies" if outlying == 1 else "lie"
    return clipped, [
        f"{count_text(outlying, smallest).capitalize()} of {len(apart)} scores {verb} far outside "
        "all others; for the expected c-index they count as less far."
    ]


def _refuse_other_index(values, data: SurvivalData, name: str) -> None:
    """Refuse a Series or frame whose rows are labelled otherwise than the patients."""
    if not isinstance(values, pd.Series | pd.DataFrame) or len(values) != len(data):
        return
    if not values.index.equals(data.X.index):
        raise ValueError(
            f"{name} has another index than data.X; pass {name}.reindex(data.X.index) to align "
            f"them, or {name}.to_numpy() if the rows are in the order of data"
        )


def _complement(risk, survival, horizon) -> np.ndarray:
    """Survival up to the horizon, from risks."""
    if survival is not None:
        raise TypeError("risk and survival both give risks; pass one of them")
    if horizon is None:
        raise TypeError("risk needs horizon=, the time up to which it is the risk of an event")
    return 1 - _predicted(risk, "risk", 1)


def _exact_risks(log_hazards: np.ndarray, smallest: int) -> list[str]:
    """A note where risks are exactly 0 or 1."""
    exact = ~np.isfinite(log_hazards)
    if not exact.any():
        return []
    count = count_text(exact.sum(), smallest).capitalize()
    return [
        f"{count} of {len(exact)} predicted risks are exactly 0 or 1, as rounded ones can be. The "
        "slope is that of the other patients, and mean risk is unknown."
    ]


def _repeated_rows(data: SurvivalData, scores: np.ndarray) -> list[str]:
    """A note where at least half of the rows are copies of others, in all that is known of them."""
    rows = pd.DataFrame({"time": data.time, "event": data.event, "scores": scores})
    if rows.duplicated().mean() < REPEATED:
        return []
    known = np.column_stack([rows, data.X, data.group_matrix])
    if pd.DataFrame(known).duplicated().mean() < REPEATED:
        return []
    return [
        "At least half of the rows are copies of others. If these are the same patients, intervals "
        "are too narrow: leave the copies out."
    ]


def _coarse_times(patients: HeldOut) -> list[str]:
    """A note where many pairs have the same time, so that the order of events is unknown."""
    distinct, rank = np.unique(patients.time, return_inverse=True)
    place = patients.fold * len(distinct) + rank
    tied = float(np.bincount(place, patients.event) @ np.bincount(place, ~patients.event))
    both = tied_events(patients)
    share = (tied + both) / (patients.harrell_pairs[:, 1].sum() / 2 + both)
    if share < MANY_TIES:
        return []
    return [
        f"Times are coarse: in {100 * share:.0f} % of the pairs of patients the order of events is "
        "unknown, for both have the same time. This can make the c-index of groups differ that are "
        "ranked alike. Intervals of differences between groups allow for it; slopes and expected "
        "c-indices are not shown where many events are tied."
    ]


def with_threshold(predicted: Predictions, threshold) -> Predictions:
    """The predictions, and a threshold from which patients are flagged by their risk."""
    if not _checks.is_number(threshold) or not 0 < threshold < 1:
        raise ValueError(f"threshold must be a risk between 0 and 1, as 0.2, got {threshold!r}")
    if predicted.patients.risk is None:
        raise ValueError(
            "threshold needs risks up to the horizon; pass risk= with horizon=, survival= with "
            "times=, or log-hazards with train="
        )
    return predicted._replace(patients=predicted.patients.with_others(threshold=float(threshold)))


def check_data(data: SurvivalData) -> None:
    """Refuse data without groups or with too few events."""
    if not isinstance(data, SurvivalData) or not data.groups:
        raise TypeError(
            "data must be a SurvivalData with groups; see SurvivalData.from_frame and from_arrays"
        )
    if data.event.sum() < FEWEST_EVENTS:
        raise ValueError(
            f"{data.name} has {data.event.sum()} event(s); an audit needs {FEWEST_EVENTS} or more"
        )


def _check_call(scores, survival, times, expected, train) -> None:
    """Refuse predictions that do not go together."""
    if scores is None and survival is None and expected is None:
        raise TypeError(
            "nothing to judge: pass scores (log-hazards), or risk= with horizon=, or survival= "
            "with times=, or expected="
        )
    if survival is None and times is not None:
        raise TypeError("times goes with survival=, which is missing; horizon= is for scores")
    if scores is None and train is not None:
        raise TypeError("train is the baseline of scores, which are missing; leave it out")
    if survival is not None and train is not None:
        raise TypeError("train and survival both give risks; leave train out")


def _checked_expected(expected, data: SurvivalData) -> np.ndarray:
    """Expected events of each patient."""
    events = _checks.numbers(expected, "expected", 1)
    _checks.same_length(expected=events, data=data.time)
    if (events < 0).any() or not events.any():
        raise ValueError("expected holds negative numbers, or only 0; pass expected events")
    return events


def _evaluated(survival, times: np.ndarray):
    """Survival probabilities; functions of time, which scikit-survival gives, at these times."""
    functions = isinstance(survival, list | np.ndarray) and len(survival) and callable(survival[0])
    if not functions:
        return survival
    try:
        return np.array([curve(times) for curve in survival])
    except ValueError as error:  # beyond the times of training
        raise ValueError(f"times go beyond those of the survival curves: {error}") from error


class _Curves:
    """Survival probabilities as cumulative hazards at some times, from 0 at time 0."""

    def __init__(self, survival, times, horizon, n: int):
        if times is None:
            times = horizon
        if times is None:
            raise TypeError("survival needs times=, the time or times of its columns")
        times = np.atleast_1d(_checks.numbers(times, "times"))
        survival = _predicted(_evaluated(survival, times), "survival")
        if survival.ndim == 1:
            survival = survival[:, None]
        if survival.shape != (n, len(times)) or times.ndim != 1:
            transposed = survival.shape == (len(times), n)
            advice = "; that is survival.T" if transposed else ""
            raise ValueError(
                f"survival has shape {survival.shape}; pass one row for each of {n} patients and "
                f"one column for each of {len(times)} time(s){advice}"
            )
        if (survival < 0).any() or (survival > 1).any():
            raise ValueError(
                "risk and survival must lie between 0 and 1; divide percentages by 100, and pass "
                "what is no probability as scores"
            )
        if (times <= 0).any() or len(np.unique(times)) < len(times):
            raise ValueError("times must be positive and different from each other")
        order = np.argsort(times)
        survival = survival[:, order]
        if (np.diff(survival, axis=1) > RISING).any():
            raise ValueError(
                "survival rises with time, so it is no probability of surviving; pass "
                "1 - survival, if these are risks"
            )
        self.times = times[order]
        with np.errstate(divide="ignore"):
            self.hazard = -np.log(survival)  # infinite where nobody survives

    def hazard_at(self, time: np.ndarray) -> np.ndarray:
        """Cumulative hazard of each patient at a time of its own, up to the last time given."""
        grid = np.append(0.0, self.times)
        time = np.minimum(time, grid[-1])
        after = np.clip(np.searchsorted(grid, time), 1, len(grid) - 1)
        rows = np.arange(len(time))
        high = self.hazard[rows, after - 1]
        low = np.where(after > 1, self.hazard[rows, np.maximum(after - 2, 0)], 0.0)
        share = (time - grid[after - 1]) / (grid[after] - grid[after - 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            between = np.where(np.isinf(high), low - np.log1p(-share), low + share * (high - low))
        return np.where(np.isinf(low), np.inf, between)

    def expected_events(self, data: SurvivalData) -> np.ndarray | None:
        """Expected events of each patient, if there are several times up to the last event."""
        if len(self.times) == 1 or self.times[-1] < data.time[data.event].max():
            return None
        return self.hazard_at(data.time)


def _horizon(data: SurvivalData, survival, times, horizon) -> float:
    """The time up to which risks are judged."""
    usual = default_horizon(data.time, data.event)
    if horizon is not None:
        horizon = _checks.number_in(horizon, "horizon", 0, np.inf)
        if horizon > data.time.max():
            raise ValueError(
                f"horizon {horizon:g} is beyond the last observed time, {data.time.max():g}; "
                "choose an earlier one"
            )
    if survival is None or times is None:
        return usual if horizon is None else horizon
    last = float(np.max(_checks.numbers(times, "times")))
    if np.size(times) == 1:
        if horizon not in (None, last):
            raise ValueError(
                f"horizon is {horizon:g}, and survival is that at {last:g}; leave horizon out"
            )
        return last
    if horizon is not None and horizon > last:
        raise ValueError(f"horizon {horizon:g} is beyond the last of times, {last:g}; lower it")
    return min(usual, last) if horizon is None else horizon


def _predicted(values, name: str, ndim: int | None = None) -> np.ndarray:
    """Predictions as numbers; those that some patients lack are refused."""
    values = _checks.array(values)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.argwhere(~np.isfinite(values))
        raise ValueError(
            f"{name} holds {len(bad)} NaN or infinite value(s), the first in row {bad[0][0]}; "
            f"score these patients, or leave them out of data and {name}"
        )
    return _checks.numbers(values, name, ndim)


def _checked_folds(folds, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the folds, and which of them each patient is in, from 0."""
    if folds is None:
        return np.zeros(1, int), np.zeros(n, int)
    folds = _checks.array(folds)
    _checks.same_length(folds=folds, data=np.empty(n))
    if folds.ndim != 1 or pd.isna(folds).any():
        raise ValueError("folds must hold one label per patient, and none may be missing")
    return np.unique(folds, return_inverse=True)


def _training_parts(train, folds, labels: np.ndarray) -> list[tuple]:
    """Training part and its scores for each fold."""
    parts = [train] * len(labels)
    if isinstance(train, Mapping):
        if folds is None:
            raise ValueError("train is a mapping by fold; pass folds=, the fold of each patient")
        if missing := [str(label) for label in labels if label not in train]:
            raise ValueError(
                f"train lacks fold {', '.join(missing)}; pass a pair (SurvivalData, scores) for "
                "each label in folds"
            )
        parts = [train[label] for label in labels]
    for part in parts:
        pair = isinstance(part, tuple | list) and len(part) == 2
        if not pair or not isinstance(part[0], SurvivalData):
            raise TypeError(
                "train must be a pair (SurvivalData, scores of its patients), or a mapping of fold "
                "to such pairs"
            )
        _refuse_other_index(part[1], part[0], "scores in train")
    return parts


def _with_baseline(patients: HeldOut, parts: list[tuple]) -> HeldOut:
    """The patients with risks and, unless they were given, expected events of a training part."""
    n = len(patients.time)
    hazard = np.empty(n)
    events = np.empty(n)
    for k, (train, train_scores) in enumerate(parts):
        rows = patients.fold == k
        scores = patients.scores[rows]
        horizon = np.full(rows.sum(), patients.until)
        hazard[rows] = expected_events(train, train_scores, scores, horizon)
        events[rows] = expected_events(train, train_scores, scores, patients.time[rows])
    given = events if patients.expected is None else patients.expected
    return patients.with_others(expected=given, risk=-np.expm1(-hazard))


def _backwards(patients: HeldOut, probabilities: bool) -> str:
    """What to do where higher scores go with later events."""
    c_index = patients.c_index(np.full(len(patients.time), True))
    if not c_index.value + half_width(c_index.without) < 0.5:
        return ""
    lowest, highest = patients.scores.min(), patients.scores.max()
    looks = "Higher scores must mean earlier events: pass -scores, or add --later to the command"
    if probabilities:
        looks = "Risks and survival, or events and their absence, look exchanged"
    elif lowest >= 0:
        looks = "They look like times to the event: pass -scores, or add --later to the command"
        if highest <= 1:
            looks = (
                "Scores between 0 and 1 look like survival: pass them as survival, with a horizon"
            )
    return (
        f"Backwards: the c-index is {c_index.value:.2f}, below one half. {looks}. Groups are not "
        "compared, and slope and mean risk are not shown."
    )


def _strange_scale(patients: HeldOut) -> str:
    """What scores look like that are no log-hazards, and what to pass instead."""
    slope = patients.slope(np.full(len(patients.scores), True))
    half = half_width(slope.without, slope.df)
    low, high = slope.value - half, slope.value + half
    looks = "" if low <= 1 <= high else _looks_like(patients, slope.value, low, high)
    if not looks:
        return ""
    start = "These scores are no log-hazards."
    if np.isfinite(slope.value):
        start = f"A unit of these scores is worth {slope.value:.2g} in the log-hazard, not 1."
    return f"{start} {looks}. Mean risk and slope are not shown."


def _looks_like(patients: HeldOut, slope: float, low: float, high: float) -> str:
    """What scores look like whose slope is not 1, and what to do; empty for log-hazards.

    The slope of hazards with an outlier may be NaN.
    """
    scores = patients.scores
    if scores.min() >= 0 and (scores % 1 == 0).all() and scores.max() > 1:
        return "Whole numbers, they look like points: their ranking is judged"
    if scores.min() >= 0 and scores.max() <= 1:
        return "Between 0 and 1 they look like risks: pass them as risks, with a horizon"
    if scores.min() > 0:
        logs = HeldOut(np.log(scores), patients.time, patients.event, patients.fold)
        of_logs = abs(logs.slope(np.full(len(scores), True)).value - 1)
        nearer = of_logs < 0.5 * min(1.0, abs(slope - 1)) or slope < 0.5
        if nearer or (np.isnan(slope) and of_logs < 0.5):
            return "All above 0 they look like hazards or numbers of events: pass their logarithms"
    if (0 < low and high < 1 / FAR) or low > FAR:  # noise has a slope near 0, too
        return "They are on another scale, or far too extreme: their ranking is judged"
    return ""
