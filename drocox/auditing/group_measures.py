"""Measures by group, with intervals, and differences between groups.

Each measure is an :class:`drocox.heldout.Estimate`. On the scale g where it is nearly normal (the
logarithm of a ratio, the logit of a share), its interval is :math:`g^{-1}(g(v) \\pm t \\sigma)`
with the jackknife's standard error :math:`\\sigma` and the quantile t of Student's distribution
(:mod:`drocox.heldout.intervals`). Differences have intervals
(:mod:`drocox.auditing.contrasts`) that hold for all attributes at once, those of
ranking and calibration together, or for the pairs of one attribute and measure. Of more than six
groups each is compared with everybody. AUC and Brier score at a horizon need some patients on
either side of it. What is a difference itself, such as the c-index minus the expected one, is
compared with 0.
"""

from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special
from tqdm import tqdm

from drocox.auditing.contrasts import Contrast, contrast, critical_values, estimable
from drocox.auditing.disclosure import Hidden
from drocox.auditing.groupings import EVERYBODY, Group, Grouping
from drocox.auditing.measures import LOG, MEASURES, UNCHANGED, Measure, Scale
from drocox.auditing.predictions import Predictions
from drocox.curves import kaplan_meier
from drocox.heldout import DIFFERENCE_COLUMNS, FEWEST_EVENTS, Estimate, HeldOut, difference, ties
from drocox.heldout.horizon import observed_risk, risk_interval
from drocox.heldout.intervals import LEVEL, half_width, jackknife

MOST_PAIRED = 6  # groups that are compared with each other; more are compared with everybody
MOST_CROSSED = 20_000_000  # groups times patients, up to which members are compared with everybody
FEW_EVENTS = 30  # below which a group's intervals are rough
FEWEST_AT_HORIZON = 5  # of either kind, that a group needs for a measure at the horizon

TABLE_COLUMNS = ["attribute", "group", "patients", "events"]
TABLE_COLUMNS += ["events_by_horizon", "censored", "follow_up"]
COMPARISON_COLUMNS = [*DIFFERENCE_COLUMNS[:3], "measure", *DIFFERENCE_COLUMNS[3:]]


def with_interval(name: str, measure: Measure, estimate: Estimate) -> dict[str, float]:
    """A measure with the ends of its 95 % interval, if it has one, as columns of a row."""
    scale = measure.scale
    if estimate.limits is not None:
        low, high = estimate.limits(special.ndtri((1 + LEVEL) / 2))
        return {name: estimate.value, f"{name}_low": float(low), f"{name}_high": float(high)}
    centre = scale.forward(estimate.value)
    if scale is LOG and not np.isfinite(centre):
        centre = np.nan  # hazards beyond the largest number
    half = _half(scale, estimate) if measure.interval else np.nan
    return {
        name: scale.back(centre),
        f"{name}_low": scale.back(centre - half),
        f"{name}_high": scale.back(centre + half),
    }


def _half(scale: Scale, estimate: Estimate) -> float:
    """Half the width of an interval on a scale."""
    half = half_width(scale.forward(estimate.without), estimate.df)
    if np.isfinite(half):
        return half
    # without one of the patients it is at the end of the scale
    slope = float(scale.derivative(np.float64(estimate.value)))
    return slope * half_width(estimate.without, estimate.df)


class Measured(NamedTuple):
    """The tables of an audit: measures of groups, their differences, and concordance imparity."""

    table: pd.DataFrame
    comparisons: pd.DataFrame
    imparity: pd.DataFrame  # differences of the concordance by Algorithm B.1
    hanging: tuple[str, ...]  # measures of groups whose interval one or two patients decide
    tails: tuple[str, ...]  # groups whose slope a few extreme scores decide


def measure_groups(
    predictions: Predictions, groupings: list[Grouping], hidden: Hidden, familywise: bool
) -> Measured:
    """Measures of all groups, everybody first, and their differences within an attribute."""
    rows, comparisons, worded, hanging, tails = _measured(
        predictions, groupings, hidden, familywise
    )
    described = predictions.described
    comparisons += differences(worded, described, familywise)
    attributes = [grouping.attribute for grouping in groupings]
    names = list(described)
    comparisons.sort(
        key=lambda row: (attributes.index(row["attribute"]), names.index(row["measure"]))
    )
    columns = [name + end for name in described for end in ("", "_low", "_high")]
    table = pd.DataFrame(rows).reindex(columns=TABLE_COLUMNS + columns)
    compared = pd.DataFrame(comparisons, columns=COMPARISON_COLUMNS)
    with_floor = compared["measure"].isin([name for name in names if described[name].imparity])
    imparity = compared[with_floor].drop(columns="measure").reset_index(drop=True)
    return Measured(table, compared, imparity, tuple(hanging), tuple(tails))


def _measured(
    predictions: Predictions, groupings: list[Grouping], hidden: Hidden, familywise: bool
) -> tuple[list[dict], list[dict], dict[str, list[list[Contrast]]], list[str], list[str]]:
    """Rows of all groups, of all differences but the worded ones, these themselves, and notes.

    What else it computes can be let go when they are compared: of a million patients it is much.
    """
    order = np.argsort(predictions.patients.time, kind="stable")  # times are sorted again and again
    everybody = predictions.patients.subset(order)
    if "own_model_gain" in predictions.more:
        everybody = replace(everybody, row=order)
    groupings = [grouping._replace(codes=grouping.codes[order]) for grouping in groupings]
    rows: dict[tuple[str, str], dict] = {}
    measurable: list[list[Group]] = []
    for grouping in groupings:
        groups = grouping.groups(everybody)
        measurable.append(_measurable(groups, grouping, hidden))
        for group in groups:
            key = (grouping.attribute, group.label)
            rows[key] = {"attribute": grouping.attribute, "group": group.label}
            if key not in hidden.groups:
                rows[key] |= _described(group.alone)
            if key in hidden.at_horizon:
                rows[key]["events_by_horizon"] = np.nan
    comparisons: list[dict] = []
    worded: dict[str, list[list[Contrast]]] = {}
    slopes: dict[str, dict[str, Estimate]] = {}
    hanging: list[str] = []
    tails: list[str] = []
    described = predictions.described
    for name, method in tqdm(
        predictions.measures.items(), "audit", leave=False, disable=None, delay=5
    ):
        measure = described[name]
        contrasts: list[list[Contrast]] = []
        of_all: dict[str, Estimate] = {}
        for grouping, groups in zip(groupings, measurable, strict=True):
            shown = _shown(grouping, groups, measure, hidden)
            of_groups = {group.label: method(everybody, group.members) for group in shown}
            of_all = of_all if grouping.attribute else of_groups  # everybody comes first
            for label, estimate in of_groups.items():
                row = rows[grouping.attribute, label]
                row |= with_interval(name, measure, estimate)
                enough = measure.on_page and measure.interval and row["events"] >= FEW_EVENTS
                if enough and _one_or_two_decide(estimate):
                    hanging.append(f"{measure.title} of {label}")
                if name == "central_slope":
                    tails += _tails_decide(label, slopes[grouping.attribute].pop(label), estimate)
            if name == "slope":
                slopes[grouping.attribute] = of_groups
            if grouping.compared and measure.compared and not predictions.backwards:
                slack = {}
                if measure.slack and of_groups:
                    slack = {group.label: ties.c_index_slack(group.alone) for group in groups}
                    slack[EVERYBODY] = ties.c_index_slack(everybody)
                contrasts.append(_contrasts(of_groups, of_all, grouping, measure, slack))
        if measure.worded:
            worded[name] = contrasts
        else:
            comparisons += differences({name: contrasts}, described, familywise)
    return list(rows.values()), comparisons, worded, hanging, tails


def _tails_decide(label: str, slope: Estimate, central: Estimate) -> list[str]:
    """A group with its slopes, if that of the central scores is another one by more than noise."""
    apart = difference(slope, central)._replace(df=slope.df)
    if abs(apart.value) < max(_half(UNCHANGED, apart), MEASURES["slope"].margin or 0.0):
        return []
    return [f"{label} ({slope.value:.2f}, and {central.value:.2f} without them)"]


def _described(patients: HeldOut) -> dict[str, float]:
    """Sizes of a group, and for how long it was observed."""
    leaves = kaplan_meier(patients.time, ~patients.event)  # follow-up, which events cut short
    times = np.unique(patients.time)
    half = np.flatnonzero(leaves(times) <= 0.5)
    return {
        "patients": len(patients.time),
        "events": patients.event.sum(),
        "events_by_horizon": (patients.event & (patients.time <= patients.until)).sum(),
        "censored": (~patients.event).mean(),
        "follow_up": times[half[0]] if len(half) else np.nan,
    }


def _one_or_two_decide(estimate: Estimate) -> bool:
    """Whether nearly all of the jackknife's variance is that of leaving out one or two patients."""
    known = estimate.df is not None or estimate.limits is not None  # how uncertain the variance is
    return not known and bool(
        np.ptp(estimate.without) > 0 and jackknife(estimate.without[:, None])[1] < 2
    )


def _measurable(groups: list[Group], grouping: Grouping, hidden: Hidden) -> list[Group]:
    """The groups that are not hidden and have enough events."""
    measurable = []
    for group in groups:
        shown = (grouping.attribute, group.label) not in hidden.groups
        if shown and group.alone.event.sum() >= FEWEST_EVENTS:
            measurable.append(group)
    return measurable


def group_estimates(
    predictions: Predictions, grouping: Grouping, name: str, hidden: Hidden
) -> dict[str, Estimate]:
    """One measure of the groups for which it is known and may be shown."""
    method = predictions.measures.get(name)
    if method is None:
        return {}
    measurable = _measurable(grouping.groups(predictions.patients), grouping, hidden)
    shown = _shown(grouping, measurable, predictions.described[name], hidden)
    return {group.label: method(predictions.patients, group.members) for group in shown}


def _contrasts(
    of_groups: dict[str, Estimate],
    of_all: dict[str, Estimate],
    grouping: Grouping,
    measure: Measure,
    slack: dict[str, tuple[float, float]],
) -> list[Contrast]:
    """Differences of every two groups; of many groups, of each and everybody.

    A measure that is a difference itself is compared with 0 in each group. Differences allow for
    the ``slack`` of coarse times in either group.
    """
    pairs = list(combinations(of_groups.items(), 2))
    if measure.versus:
        nothing = {measure.versus: Estimate(0.0, np.zeros(len(grouping.codes)))}
        pairs = list(product(nothing.items(), of_groups.items()))
    elif len(grouping.labels) > MOST_PAIRED:
        pairs = list(product(of_all.items(), of_groups.items()))
    out = []
    for (versus, second), (group, first) in pairs:
        names = {"attribute": grouping.attribute, "group": group, "versus": versus}
        lower, higher = slack.get(group, (0.0, 0.0))
        lower_of_other, higher_of_other = slack.get(versus, (0.0, 0.0))
        allowed = lower + higher_of_other, higher + lower_of_other
        out.append(Contrast(names, first, second, allowed))
    return out


def _shown(
    grouping: Grouping, measurable: list[Group], measure: Measure, hidden: Hidden
) -> list[Group]:
    """The groups for which a measure is known and may be shown."""
    if hidden.decisions and grouping.attribute and measure.needs == "threshold":
        return []
    many = len(grouping.labels) > MOST_PAIRED
    crossed = many and len(grouping.labels) * len(grouping.codes) > MOST_CROSSED
    if measure.imparity and crossed:
        return []
    if measure.needs == "features" and (many or (grouping.attribute and not grouping.compared)):
        return []
    shown = []
    for group in measurable:
        if (grouping.attribute, group.label) in hidden.of(measure.whole_follow_up):
            continue
        early = group.alone.time <= group.alone.until
        if measure.at_horizon and (group.alone.event & early).sum() < FEWEST_AT_HORIZON:
            continue
        if measure.beyond_horizon and (~early).sum() < FEWEST_AT_HORIZON:
            continue
        if measure.by_exact_times and ties.many_tied(group.alone):
            continue
        shown.append(group)
    return shown


def differences(
    contrasts: dict[str, list[list[Contrast]]], described: dict[str, Measure], familywise: bool
) -> list[dict]:
    """Differences with intervals that hold together, as rows with the measure's name.

    The pairs come by measure and attribute. If ``familywise``, intervals hold for all of them at
    once; otherwise for the pairs of one attribute and measure.
    """
    known = {}
    for name, by_attribute in contrasts.items():
        known[name] = [estimable(described[name], pairs) for pairs in by_attribute]
    together = [one for parts in known.values() for pairs in parts for one in pairs]
    values = iter(critical_values(together)[0] if together and familywise else ())
    rows = []
    for name, by_attribute in known.items():
        for pairs in by_attribute:
            critical = np.array([next(values) for _ in pairs]) if familywise else None
            for row in contrast(described[name], pairs, critical):
                rows.append({"measure": name, **row})
    return rows


def calibration_curve(patients: HeldOut, bins: int) -> pd.DataFrame:
    """Observed and predicted risk of patients in parts of equal size, by predicted risk.

    The interval of the observed risk is NaN where nobody or everybody had the event.
    """
    risk = np.asarray(patients.risk)
    part = np.argsort(np.argsort(risk, kind="stable")) * bins // len(risk)
    rows = []
    for k in np.unique(part):
        time, event = patients.time[part == k], patients.event[part == k]
        low, high = risk_interval(time, event, patients.until)
        rows.append(
            {
                "patients": len(time),
                "events": (event & (time <= patients.until)).sum(),
                "predicted": risk[part == k].mean(),
                "observed": observed_risk(time, event, patients.until)[0],
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(rows)
