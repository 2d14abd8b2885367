r"""Outcomes of models on half B: estimates and contrasts with the errors that patients give.

**Estimates**, by model. In points: ``c``, the c-index of everybody; ``worst``, that of the members
of the group that Cox serves worst; ``distance``, the first minus the second; ``kept``, ``worst``
minus what the scores promise there; ``gap`` of an attribute, the difference :math:`\Delta = 100\,
(CF_1 - CF_0)` of two groups' concordance fractions, signed as Cox's gap on A. Up to the horizon,
with the baseline hazard of the patients to whom the model was fitted, and for Cox, DRO-COX and
models by Adam once more after one slope from A (``..._slope``): ``oe``, the difference between two
groups' log O/E, and ``oe_worst``, the log O/E of the worst group, both signed as Cox's on A and
times 100; ``brier`` and ``brier_worst``, Brier scores times 100.

**Contrasts** with the model named in ``AGAINST``: ``c_diff``, ``worst_diff``; ``worst_own_diff``,
among members of the robust model's own worst group; differences ``..._diff`` of the other
estimates; and with the sign :math:`s` of Cox's gap on A

.. math:: \text{closing} = s\,(\Delta_{\text{plain}} - \Delta_{\text{robust}}), \qquad
          \text{guard} = s\,(\Delta_{\text{plain}} + \Delta_{\text{robust}}) .

A gap that shrinks has a positive closing; if it shrinks without changing sign, its guard is
positive, too, because the product of both is the difference of the squared gaps. Since :math:`s` is
independent of B, both have mean 0 if there is no effect. Models that were fitted for one attribute
are averaged over sex and age, and so are closings and guards.

**Standard errors** have patients as their unit. Every outcome is a ratio of sums over pairs, whose
value without each patient is known (:mod:`drocox.heldout`); in one split each patient is in a test
half once, so the jackknife gives the variance of the mean of both halves. The splits reuse the same
patients: the variance of their mean is at most the mean of their variances (the variance of a mean
of equally correlated numbers is at most that of one of them), and this bound is used. It is never
divided by the number of splits.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from drocox.beyond.datasets import PRIMARY, Patients, codes_of
from drocox.beyond.halves import Learned, gap_of, sign_of
from drocox.beyond.models import AGAINST, ALONE, HALF, PUBLISHED, Key, Model
from drocox.heldout import Estimate, HeldOut, expected_events
from drocox.heldout.intervals import jackknife
from drocox.heldout.ties import many_tied

PERMUTATIONS = 1000
CONTROLLED = (HALF, PUBLISHED["nonlinear"])  # models of the primary contrasts
OF_WORST = (("worst", ""), ("worst_diff", ""))

Name = tuple[str, str, str]  # model, measure, attribute or ""


def combined(*terms: tuple[float, Estimate]) -> Estimate:
    """Sum of estimates, each times a factor."""
    value = sum(factor * one.value for factor, one in terms)
    return Estimate(value, np.sum([factor * one.without for factor, one in terms], axis=0))


def _logarithm(one: Estimate) -> Estimate:
    with np.errstate(divide="ignore", invalid="ignore"):
        return Estimate(float(np.log(one.value)), np.log(one.without))


def scored(learned: Learned, b: Patients) -> dict[Key, HeldOut]:
    """Patients of half B with the scores of each model."""
    fold = np.zeros(len(b), int)
    return {
        key: HeldOut(model.scores(b), b.data.time, b.data.event, fold)
        for key, model in learned.models.items()
    }


def estimates_of(key: Key, held: HeldOut, learned: Learned, b: Patients) -> dict[tuple, Estimate]:
    """Estimates of one model on half B by measure and attribute, as far as they are defined."""
    model = learned.models[key]
    everybody = np.full(len(b), True)
    worst = learned.worst
    members = None if worst is None else worst.members(b.covariates)
    codes = {name: values for name, values in codes_of(b, learned.cuts).items() if name in PRIMARY}
    if key[1]:  # fitted for one attribute
        codes = {key[1]: codes[key[1]]}
    out = {("c", ""): combined((100, held.c_index(everybody)))}
    for attribute, values in codes.items():
        sign = sign_of(learned.gaps[attribute])
        out["gap", attribute] = combined((sign, gap_of(held, values)))
    if members is not None:
        out["worst", ""] = combined((100, held.c_index(members)))
        out["distance", ""] = combined((1, out["c", ""]), (-1, out["worst", ""]))
        if not many_tied(held):
            out["kept", ""] = combined((100, held.c_minus_promised(members)))
    for ending, slope in (("", 1.0), ("_slope", model.slope)):
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


def contrasts(own: dict[tuple, Estimate], other: dict[tuple, Estimate]) -> dict[tuple, Estimate]:
    """Contrasts of one model with another on half B."""
    out = {}
    for (measure, attribute), ours in own.items():
        theirs = other.get((measure, attribute))
        if theirs is None:
            continue
        if measure == "gap":
            out["closing", attribute] = combined((1, theirs), (-1, ours))
            out["guard", attribute] = combined((1, theirs), (1, ours))
        else:
            out[f"{measure}_diff", attribute] = combined((1, ours), (-1, theirs))
    return out


def evaluate(held: dict[Key, HeldOut], learned: Learned, b: Patients) -> dict[Name, Estimate]:
    """Estimates and contrasts of all models on half B."""
    by_key = {key: estimates_of(key, held[key], learned, b) for key in held}
    for key, own in by_key.items():
        if key[0] not in AGAINST:
            continue
        base = AGAINST[key[0]], ""
        own |= contrasts(own, by_key[base])
        group = learned.own_worst.get(key)
        if group is not None:
            members = group.members(b.covariates)
            ours, theirs = (held[one].c_index(members) for one in (key, base))
            own["worst_own_diff", ""] = combined((100, ours), (-100, theirs))
    if (ALONE, "") in by_key:  # only its group is meant
        alone = by_key[ALONE, ""]
        by_key[ALONE, ""] = {name: alone[name] for name in alone if name in OF_WORST}
    out: dict[Name, Estimate] = {}
    attributes = [attribute for attribute in PRIMARY if attribute in learned.cuts]
    for name in dict.fromkeys(name for name, _ in by_key):
        mine = [by_key[key] for key in by_key if key[0] == name]
        out |= {(name, *one): value for one, value in _joint(mine, attributes).items()}
    return out


def _joint(
    models: Sequence[dict[tuple, Estimate]], attributes: Sequence[str]
) -> dict[tuple, Estimate]:
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
    return {
        name: combined(*((1 / len(several), estimate) for estimate in several))
        for name, several in means.items()
    }


def permuted_closings(
    held: dict[Key, HeldOut], learned: Learned, patients: Patients, rows_b: np.ndarray
) -> pd.DataFrame:
    """Closings of the primary contrasts on half B when labels are permuted, a row for each draw.

    Half A has decided before. A draw permutes the labels of all patients, in the same way for all
    halves.
    """
    n = len(patients)
    draws = [np.random.default_rng(draw).permutation(n)[rows_b] for draw in range(PERMUTATIONS)]
    orders = np.array(draws)
    codes = codes_of(patients, learned.cuts)
    attributes = [name for name in PRIMARY if name in codes]
    out = pd.DataFrame(0.0, index=range(PERMUTATIONS), columns=list(CONTROLLED))
    for name in CONTROLLED:
        for attribute in attributes:
            labels = codes[attribute][orders]
            own = (name, attribute) if (name, attribute) in held else (name, "")
            gaps = [_gaps(held[key], labels) for key in ((AGAINST[name], ""), own)]
            out[name] += sign_of(learned.gaps[attribute]) * (gaps[0] - gaps[1]) / len(attributes)
    return out


def _gaps(held: HeldOut, labels: np.ndarray) -> np.ndarray:
    """Gaps in points for each row of labels (draws, n)."""
    second, first = ((labels == code).astype(float) @ held.all_pairs for code in (1, 0))
    return 100 * (second[:, 0] / second[:, 1] - first[:, 0] / first[:, 1])


# Means over halves and splits --------------------------------------------------------------------


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
        value = np.mean([one.value for one in halves])
        without = np.empty(sum(map(len, rows)))
        for tested, one in zip(rows, halves, strict=True):
            without[tested] = value + (one.without - one.value) / len(both)
        out[name] = Estimate(value, without)
    return out


def mean_of_splits(splits: Sequence[dict[tuple, Estimate]]) -> dict[tuple, tuple[float, float]]:
    """Means over the splits where a value exists, and the bound of their standard errors."""
    out = {}
    for name in dict.fromkeys(name for split in splits for name in split):
        some = [split[name] for split in splits if name in split]
        variances = [jackknife(one.without[:, None])[0].item() for one in some]
        value = float(np.mean([one.value for one in some]))
        out[name] = value, float(np.sqrt(np.mean(variances)))
    return out
