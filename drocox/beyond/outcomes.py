r"""Outcomes of models on half B: estimates and contrasts with the errors that patients give.

**Estimates**, by model. In points: ``c``, the c-index of everybody; ``worst``, that of the members
of the group that Cox serves worst; ``distance``, the first minus the second; ``kept``, ``worst``
minus what the scores lead one to expect there; ``gap`` of an attribute, the difference
:math:`\Delta = 100\, (CF_1 - CF_0)` of two groups' concordance fractions, signed as Cox's gap on A.
Up to the horizon, with the baseline hazard of the patients to whom the model was fitted, and for
Cox, DRO-COX and models by Adam once more after one slope from A (``..._slope``): ``oe``, the
difference between two groups' log O/E, and ``oe_worst``, the log O/E of the worst group, both
signed as Cox's on A and times 100; ``brier`` and ``brier_worst``, Brier scores times 100.

**Contrasts** of a model with another one, of certified models with that in ``AGAINST``: ``c_diff``
and ``worst_diff``; ``worst_own_diff``, among members of the first model's own worst group; and with
the sign :math:`s` of Cox's gap on A

.. math:: \text{closing} = s\,(\Delta_{\text{other}} - \Delta_{\text{first}}), \qquad
          \text{guard} = s\,(\Delta_{\text{other}} + \Delta_{\text{first}}) .

A gap that shrinks has a positive closing; if it shrinks without changing sign, its guard is
positive, too, because the product of both is the difference of the squared gaps. Since :math:`s` is
independent of B, both have mean 0 if there is no effect. Models that were fitted or chosen for one
attribute are averaged over sex and age, and so are closings and guards. Outcomes of models by Adam
are averaged over starts (:func:`averages_of`), never scores; ``optimism`` is the c-index on the
part of A that chose the setting, minus that on B.

**Standard errors** have patients as their unit. Every outcome is a ratio of sums over pairs, whose
value without each patient is known (:mod:`drocox.heldout`); in one split each patient is in a test
half once, so the jackknife gives the variance of the mean of both halves. The splits reuse the same
patients: the variance of their mean is at most the mean of their variances (the variance of a mean
of equally correlated numbers is at most that of one of them), which is never divided by the number
of splits.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd

from drocox.beyond.by_adam import (
    BRIDGE,
    BY_C_INDEX,
    BY_IMPARITY,
    DRO,
    MAIN,
    PENALISED,
    PLAIN_3,
    PLAIN_18,
    PREFIX,
    SPLIT,
)
from drocox.beyond.datasets import Patients, codes_of, present
from drocox.beyond.halves import Learned, gap_of, sign_of
from drocox.beyond.models import AGAINST, ALONE, Key, Model
from drocox.heldout import Estimate, HeldOut, expected_events
from drocox.heldout.ties import many_tied

PERMUTATIONS = 1000
CONTROLLED = (SPLIT, DRO)  # against plain-18, closing averaged over both choices
OF_WORST = (("worst", ""), ("worst_diff", ""), ("worst_own_diff", ""))
CHOICES = (BY_C_INDEX, BY_IMPARITY)
BOTH = "both"  # the mean over the two choices
PRICE = "price"  # by imparity minus by c-index
AT_START_0 = ", start 0"
THREE = "the three objectives"  # the mean over plain-18, DRO-COX and SPLIT
CONTRASTED = ("c", "worst", "gap")

Name = TypeVar("Name")
Estimates = dict[tuple[str, str], Estimate]  # by measure, and attribute or ""


class Average(NamedTuple):
    """What is averaged over starts: all models with one name and one rule of choice."""

    model: str
    choice: str = ""


class Contrast(NamedTuple):
    """One average minus another."""

    model: str
    choice: str
    against: str
    against_choice: str


def combined(*terms: tuple[float, Estimate]) -> Estimate:
    """Sum of estimates, each times a factor."""
    value = sum(factor * one.value for factor, one in terms)
    return Estimate(value, np.sum([factor * one.without for factor, one in terms], axis=0))


def _logarithm(one: Estimate) -> Estimate:
    with np.errstate(divide="ignore", invalid="ignore"):
        return Estimate(float(np.log(one.value)), np.log(one.without))


def scored(learned: Learned, b: Patients) -> dict[Key, HeldOut]:
    """Patients of half B with the scores of each model; keys of one model share them."""
    of_model: dict[int, HeldOut] = {}
    for model in learned.models.values():
        if id(model.score) not in of_model:
            of_model[id(model.score)] = b.held_out(model.scores(b))
    return {key: of_model[id(model.score)] for key, model in learned.models.items()}


def is_calibrated(key: Key) -> bool:
    """Whether calibration and Brier scores are computed."""
    return not key.choice or (
        key.choice == BY_C_INDEX and key.dealt == 0 and key.name.removeprefix("linear ") in MAIN
    )


def estimates_of(key: Key, held: HeldOut, learned: Learned, b: Patients) -> Estimates:
    """Estimates of one model on half B, as far as they are defined."""
    model = learned.models[key]
    everybody = np.full(len(b), True)
    worst = learned.worst
    members = None if worst is None else worst.members(b.covariates)
    # all attributes, unless it was fitted or chosen for one
    attributes = [key.attribute] if key.attribute else present(learned.cuts)
    codes = codes_of(b, {name: learned.cuts[name] for name in attributes})
    out = {("c", ""): combined((100, held.c_index(everybody)))}
    if "validation_c" in model.facts:
        on_b = out["c", ""]
        chosen_by = model.facts["validation_c"]
        out["optimism", ""] = Estimate(chosen_by - on_b.value, chosen_by - on_b.without)
    for attribute, values in codes.items():
        sign = sign_of(learned.gaps[attribute])
        out["gap", attribute] = combined((sign, gap_of(held, values)))
    if members is not None:
        out["worst", ""] = combined((100, held.c_index(members)))
        out["distance", ""] = combined((1, out["c", ""]), (-1, out["worst", ""]))
        if not many_tied(held):
            out["kept", ""] = combined((100, held.c_minus_expected(members)))
    for ending, slope in (("", 1.0), ("_slope", model.slope)) if is_calibrated(key) else ():
        if np.isnan(slope):
            continue
        until = up_to(model, slope, held, learned.horizon)
        out[f"brier{ending}", ""] = combined((100, until.brier(everybody)))
        for attribute, values in codes.items():
            second, first = (_logarithm(until.calibration(values == code)) for code in (1, 0))
            sign = 100 * learned.signs[attribute]
            out[f"oe{ending}", attribute] = combined((sign, second), (-sign, first))
        if members is not None:
            sign = 100 * learned.signs["worst"]
            own = _logarithm(until.calibration(members))
            out[f"oe_worst{ending}", ""] = combined((sign, own))
            out[f"brier_worst{ending}", ""] = combined((100, until.brier(members)))
    return {name: one for name, one in out.items() if np.isfinite(one.without).all()}


def up_to(model: Model, slope: float, held: HeldOut, horizon: float) -> HeldOut:
    """Patients observed up to a horizon, with expected events and risks by scores times a slope."""
    train = model.fitted.data
    on_train = slope * model.scores(model.fitted)
    scores = slope * held.scores
    at_horizon = np.full(len(scores), horizon)
    expected = expected_events(train, on_train, scores, np.minimum(held.time, at_horizon))
    risk = -np.expm1(-expected_events(train, on_train, scores, at_horizon))
    event = held.event & (held.time <= horizon)
    return HeldOut(scores, held.time, event, held.fold, expected, horizon, risk)


def contrast(own: Estimates, other: Estimates, guard: bool = True) -> Estimates:
    """The contrasts of one model, or average, with another."""
    out = {}
    for (measure, attribute), ours in own.items():
        theirs = other.get((measure, attribute))
        if theirs is None or measure not in CONTRASTED:
            continue
        if measure == "gap":
            out["closing", attribute] = combined((1, theirs), (-1, ours))
            if guard:
                out["guard", attribute] = combined((1, theirs), (1, ours))
        else:
            out[f"{measure}_diff", attribute] = combined((1, ours), (-1, theirs))
    return out


def joint(models: Sequence[Estimates], attributes: Sequence[str]) -> Estimates:
    """Estimates of a model, averaged over the attributes for which it was fitted.

    By attribute they are kept, too. A measure of attributes is averaged if all of them have it.
    """
    parts: dict[tuple, list[Estimate]] = {}
    for one in models:
        for name, estimate in one.items():
            parts.setdefault(name, []).append(estimate)
    means = {name: several for name, several in parts.items() if len(several) == len(models)}
    for measure, attribute in parts:
        if attribute and all((measure, one) in parts for one in attributes):
            means[measure, ""] = [parts[measure, one][0] for one in attributes]
        if attribute:
            means[measure, attribute] = parts[measure, attribute]
    return {name: combined(*((1 / len(some), one) for one in some)) for name, some in means.items()}


def mean(
    several: Sequence[dict[Name, Estimate]], signs: Sequence[float] | None = None
) -> dict[Name, Estimate]:
    """Means of what all of them have; with ``signs`` the sum with these factors."""
    factors = signs or [1 / len(several)] * len(several)
    return {
        name: combined(*zip(factors, (one[name] for one in several), strict=True))
        for name in several[0]
        if all(name in one for one in several)
    }


def averages_of(
    by_key: dict[Key, Estimates], attributes: Sequence[str]
) -> dict[Average, Estimates]:
    """Estimates by name and choice, averaged over attributes and starts, with their combinations.

    Networks are there at start 0, too. Of sample splitting only the first halves enter.
    """
    groups: dict[tuple[Average, int | None], list[Estimates]] = {}
    for key, estimates in by_key.items():
        if not key.dealt:
            groups.setdefault((Average(key.name, key.choice), key.start), []).append(estimates)
    of_starts: dict[Average, list[Estimates]] = {}
    for (average, start), models in groups.items():
        one = joint(models, attributes)
        of_starts.setdefault(average, []).append(one)
        if start == 0 and average.model in MAIN:
            of_starts[Average(average.model + AT_START_0, average.choice)] = [one]
    out = {average: mean(several) for average, several in of_starts.items()}
    for name in dict.fromkeys(average.model for average in out):
        wanted = [Average(name, choice) for choice in CHOICES]
        if out.keys() >= set(wanted):
            both = [out[one] for one in wanted]
            out[Average(name, BOTH)] = mean(both)
            out[Average(name, PRICE)] = mean(both, [-1, 1])
    for prefix, choice in product(PREFIX.values(), CHOICES):
        wanted = [Average(prefix + name, choice) for name in MAIN]
        if out.keys() >= set(wanted):
            out[Average(prefix + THREE, choice)] = mean([out[one] for one in wanted])
    return out


def planned() -> Iterator[Contrast]:
    """The contrasts of models by Adam that the plan names."""
    c, imparity = CHOICES
    for prefix in PREFIX.values():
        plain, dro, split = (prefix + name for name in MAIN)
        for name in (dro, split):
            yield Contrast(name, c, plain, c)
            yield Contrast(name, imparity, plain, c)
            yield Contrast(name, imparity, plain, imparity)
            yield Contrast(name, BOTH, plain, BOTH)
            yield Contrast(name, PRICE, plain, PRICE)  # the interaction
        for name in (plain, dro, split, prefix + THREE):  # the price of choosing by imparity
            yield Contrast(name, imparity, name, c)
        for choice in (c, imparity, BOTH):
            yield Contrast(split, choice, dro, choice)
        for choice in (c, imparity):
            yield Contrast(prefix + PLAIN_3, choice, plain, choice)
        yield Contrast(prefix + PLAIN_3, imparity, plain, c)
        yield Contrast(dro, imparity, prefix + PLAIN_3, c)
        start = "" if prefix else AT_START_0
        for name, choice in product((PENALISED, BRIDGE), (c, imparity)):
            yield Contrast(prefix + name, choice, plain + start, c)
        for name in (plain + start, dro + start, split + start, prefix + BRIDGE):
            for choice in (c, imparity, BOTH):
                yield Contrast(name, choice, prefix + PENALISED, choice)


def in_own_worst(
    held: dict[Key, HeldOut], learned: Learned, b: Patients, wanted: Contrast
) -> Estimate | None:
    """A contrast among members of the first models' own worst groups, at the same start."""
    found = []
    for key in held:
        if (key.name, key.choice, key.dealt or 0) != (wanted.model, wanted.choice, 0):
            continue
        attribute = key.attribute if wanted.against_choice == BY_IMPARITY else ""
        other = Key(wanted.against, attribute, wanted.against_choice, key.start, key.dealt)
        group = learned.own_worst.get(key)
        if group is None or other not in held:
            return None
        members = group.members(b.covariates)
        ours, theirs = (held[one].c_index(members) for one in (key, other))
        found.append(combined((100, ours), (-100, theirs)))
    if not found:
        return None
    of_all = combined(*((1 / len(found), one) for one in found))
    return of_all if np.isfinite(of_all.without).all() else None


def evaluate(
    held: dict[Key, HeldOut], learned: Learned, b: Patients
) -> tuple[dict[Key, Estimates], dict[Average | Contrast, Estimates]]:
    """Estimates of each model on half B, and those of averages and contrasts."""
    by_key = {key: estimates_of(key, held[key], learned, b) for key in held}
    averages = averages_of(by_key, present(learned.cuts))
    out: dict[Average | Contrast, Estimates] = {
        average: estimates
        for average, estimates in averages.items()
        if average.choice not in (BOTH, PRICE) and not average.model.endswith((AT_START_0, THREE))
    }
    certified = [Contrast(name, "", against, "") for name, against in AGAINST.items()]
    for wanted in [*certified, *planned()]:
        own = averages.get(Average(wanted.model, wanted.choice))
        other = averages.get(Average(wanted.against, wanted.against_choice))
        if own is None or other is None:
            continue
        out[wanted] = contrast(own, other, guard=wanted.choice != PRICE)
        if not wanted.choice or wanted.against.removeprefix("linear ") == PLAIN_18:
            of_own = in_own_worst(held, learned, b, wanted)
            if of_own is not None:
                out[wanted]["worst_own_diff", ""] = of_own
    for one, estimates in out.items():
        if one.model == ALONE:  # only its group is meant
            out[one] = {name: estimates[name] for name in estimates if name in OF_WORST}
    return by_key, out


def permuted_closings(
    held: dict[Key, HeldOut], learned: Learned, patients: Patients, rows_b: np.ndarray
) -> pd.DataFrame | None:
    """Closings of the primary contrasts on half B when labels are permuted, a row for each draw.

    Half A has decided before. A draw permutes the labels of all patients, in the same way for all
    halves. As in the contrast, gaps are averaged over choices, starts and attributes. None if the
    contrasts are not there.
    """
    n = len(patients)
    draws = [np.random.default_rng(draw).permutation(n)[rows_b] for draw in range(PERMUTATIONS)]
    orders = np.array(draws)
    codes = codes_of(patients, learned.cuts)
    attributes = present(learned.cuts)
    starts = sorted({key.start or 0 for key in held if key.name == PLAIN_18})
    if not attributes or not starts:
        return None
    out = pd.DataFrame(0.0, index=range(PERMUTATIONS), columns=list(CONTROLLED))
    for attribute in attributes:
        labels = codes[attribute][orders]
        wanted = {
            name: [
                held[Key(name, "" if choice == BY_C_INDEX else attribute, choice, start, 0)]
                for choice in CHOICES
                for start in starts
            ]
            for name in (PLAIN_18, *CONTROLLED)
        }
        gaps = {name: _mean_gap(several, labels) for name, several in wanted.items()}
        sign = sign_of(learned.gaps[attribute]) / len(attributes)
        for name in CONTROLLED:
            out[name] += sign * (gaps[PLAIN_18] - gaps[name])
    return out


def _mean_gap(several: Sequence[HeldOut], labels: np.ndarray) -> np.ndarray:
    """Mean gap in points over models, for each row of labels (draws, n)."""
    points = sum(held.all_pairs[:, 0] for held in several) / len(several)
    pairs = np.column_stack([points, several[0].all_pairs[:, 1]])  # of patients: of all models
    second, first = ((labels == code).astype(float) @ pairs for code in (1, 0))
    return 100 * (second[:, 0] / second[:, 1] - first[:, 0] / first[:, 1])


# Means over halves -----------------------------------------------------------------------------


def mean_of_halves(
    rows: Sequence[np.ndarray], both: Sequence[dict[tuple, Estimate]]
) -> dict[tuple, Estimate]:
    """Estimates of one split: means over the halves, without those that a half lacks.

    Each patient is tested in one half, whose ``rows`` are given; without the patient the mean moves
    by half as much as the estimate there.
    """
    out = {}
    for name in both[0]:
        if any(name not in half for half in both):
            continue
        halves = [half[name] for half in both]
        value = float(np.mean([one.value for one in halves]))
        without = np.empty(sum(map(len, rows)))
        for tested, one in zip(rows, halves, strict=True):
            without[tested] = value + (one.without - one.value) / len(both)
        out[name] = Estimate(value, without)
    return out
