r"""Many data sets: DRO-COX against Cox wherever patients, outcomes and covariates are public.

**Two halves.** The patients of a data set are split into halves A and B, stratified by event.
Everything is learned on A: medians and scales of features, the models and, from scores cross-fitted
inside A, the sign :math:`s` of Cox's gap and the group that Cox serves worst. The models are
evaluated on B; then the halves change roles. Five such splits are averaged.

**Outcomes.** With the gap :math:`\Delta = 100\,(CF_1 - CF_0)` of two groups' concordance fractions
on B,

.. math:: \text{closing} = s\,(\Delta_{\mathrm{Cox}} - \Delta_{\mathrm{DRO}}), \qquad
          \text{guard} = s\,(\Delta_{\mathrm{Cox}} + \Delta_{\mathrm{DRO}}) .

A gap that shrinks has a positive closing; if it shrinks without changing sign, its guard is
positive, too: :math:`\text{closing} \cdot \text{guard} = \Delta_{\mathrm{Cox}}^2 -
\Delta_{\mathrm{DRO}}^2`. Since :math:`s` is independent of B, both have mean 0 if there is no
effect. The other outcomes are Harrell's c-index of everybody, and of the worst group among its
members.

**Standard errors** have patients as their unit. Every outcome is a ratio of sums over pairs, whose
value without each patient is known (:mod:`drocox.heldout`); in one split each patient is in a test
half once, so the jackknife gives the variance of the mean of both halves. The splits reuse the same
patients: the variance of their mean is at most the mean of their variances (the variance of a mean
of equally correlated numbers is at most that of one of them), and this bound is used. It is never
divided by the number of splits.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import accuracy
from drocox.beyond import cohorts
from drocox.beyond.cohorts import PRIMARY, Patients, codes_of
from drocox.beyond.learning import COX, SETTINGS, TUNED, Learned, Setting, gap_of, learn, scores_of
from drocox.cox import breslow_survival
from drocox.evaluation import scaled_features
from drocox.heldout import Estimate, HeldOut
from drocox.heldout.intervals import jackknife
from drocox.solver import minimise

SPLITS = 5
EXACT = 1e-12  # gap of an optimum whose digits do not depend on the platform
REGISTERED = tomllib.loads(Path(__file__).with_name("preregistration.toml").read_text("utf-8"))


# Evaluation on half B --------------------------------------------------------------------------

Name = tuple[str, str]  # a column of the study's rows, and the attribute; "" if there is none


def combined(*terms: tuple[float, Estimate]) -> Estimate:
    """Sum of estimates, each times a factor."""
    value = sum(factor * one.value for factor, one in terms)
    return Estimate(value, np.sum([factor * one.without for factor, one in terms], axis=0))


def estimates_of(
    held: HeldOut, codes: dict[str, np.ndarray], worst: dict[str, np.ndarray | None]
) -> dict[Name, Estimate]:
    """Concordances of one model on half B in points, without those of groups that are None."""
    out = {("c", ""): combined((100, held.c_index(np.full(len(held.time), True))))}
    for attribute, values in codes.items():
        out["gap", attribute] = gap_of(held, values)
    for name, members in worst.items():
        if members is not None:
            out[name, ""] = combined((100, held.c_index(members)))
    return out


def contrasts(
    own: dict[Name, Estimate], cox: dict[Name, Estimate], signs: dict[str, float]
) -> dict[Name, Estimate]:
    """Contrasts of a model with Cox; ``signs`` are those of Cox's gaps on half A."""
    out = {}
    for (name, attribute), ours in own.items():
        theirs = cox[name, attribute]
        if name == "gap":
            sign = signs[attribute]
            out["closing", attribute] = combined((sign, theirs), (-sign, ours))
            out["guard", attribute] = combined((sign, theirs), (sign, ours))
        else:
            out[f"{name}_diff", ""] = combined((1, ours), (-1, theirs))
    primary = [attribute for attribute in PRIMARY if attribute in signs]
    if primary:
        for name in ("closing", "guard"):
            parts = [(1 / len(primary), out[name, attribute]) for attribute in primary]
            out[f"joint_{name}", ""] = combined(*parts)
    return out


def _accuracy(train: Patients, test: Patients, X, X_out, coef) -> tuple[float, float]:
    """Integrated Brier score and calibration slope on half B, with the baseline hazard of half A.

    Follow-up is truncated at the 90 % quantile of A's times.
    """
    horizon = np.quantile(train.data.time, 0.9)
    time = np.minimum(test.data.time, horizon)
    event = test.data.event & (test.data.time <= horizon)
    times = accuracy.brier_times(train.data.time, time)
    scores = X_out @ coef
    curves = breslow_survival(X @ coef, train.risk, None, scores, times).numpy()
    outcomes = train.data.time, train.data.event, time, event
    brier = accuracy.BrierScore(*outcomes, times)(curves)
    if scores.std() < 1e-6:
        return brier, np.nan
    return brier, float(minimise(scores[:, None], test.risk, 1).coef[0])


@dataclass(frozen=True)
class Half:
    """One model, learned on one half and evaluated on the other."""

    estimates: dict[Name, Estimate]
    numbers: dict[Name, float]  # without standard errors


def evaluate_half(
    a: Patients, b: Patients, learned: Learned, settings: Sequence[Setting]
) -> dict[Setting, Half]:
    """Evaluate on half B the models learned on half A, as far as they were learned."""
    X, X_out = scaled_features(a.data, b.data)
    codes = codes_of(b, learned.cuts)
    worst = {}
    for name, model in (("worst_own", "cox"), ("worst_dro", "dro")):
        group = learned.worst[model]
        worst[name] = None if group is None else group.members(b.covariates)
    estimates = {}
    for setting, solution in learned.models.items():
        scores = scores_of(X_out, solution.coef)
        held = HeldOut(scores, b.data.time, b.data.event, np.zeros(len(b), int))
        estimates[setting] = estimates_of(held, codes, worst)
    cox = estimates[COX]
    out = {}
    for setting in settings:
        if setting not in learned.models:
            continue
        own = estimates[setting]
        solution = learned.models[setting]
        brier, slope = _accuracy(a, b, X, X_out, solution.coef)
        numbers = {("ibs", ""): brier, ("slope", ""): slope, ("certificate", ""): solution.gap}
        for attribute, gap in learned.gaps.items():
            numbers["product", attribute] = gap * own["gap", attribute].value
            numbers["product_cox", attribute] = gap * cox["gap", attribute].value
        out[setting] = Half(own | contrasts(own, cox, learned.signs), numbers)
    return out


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


@dataclass
class Results:
    """One model on all halves of a data set."""

    splits: list[dict[Name, Estimate]] = field(default_factory=list)
    halves: list[dict[Name, float]] = field(default_factory=list)  # numbers without errors

    def means(self) -> dict[Name, float]:
        """Means over the splits where a value exists, and their standard errors (``..._se``)."""
        numbers = pd.DataFrame(self.halves)
        out = numbers.mean().to_dict()
        out["slope", ""] = numbers["slope", ""].median()
        out["certificate", ""] = numbers["certificate", ""].max()
        for (name, attribute), (value, se) in mean_of_splits(self.splits).items():
            out[name, attribute] = value
            out[f"{name}_se", attribute] = se
        return out


COLUMNS = (
    *("method", "alpha", "rule", "penalty", "patients", "events", "features", "attribute"),
    *("c", "c_se", "c_diff", "c_diff_se", "gap", "closing", "closing_se", "guard", "guard_se"),
    *("worst_own", "worst_own_diff", "worst_own_diff_se", "ibs", "slope"),
    *("joint_closing", "joint_closing_se", "joint_guard", "joint_guard_se"),
    *("worst_dro", "worst_dro_diff", "worst_dro_diff_se", "certificate"),
    *("product", "product_cox", "moved", "inside_c", "inside_gap"),
)


def study(
    patients: Patients,
    settings: Sequence[Setting] = SETTINGS,
    splits: Sequence[int] = range(SPLITS),
) -> pd.DataFrame:
    """All models on one data set of sorted patients (``Patients.in_order``): see :func:`rows`."""
    results: dict[Setting, Results] = {}
    inside = []
    for split in splits:
        both = []
        tested = []
        for rows_a, rows_b in cohorts.halves(patients.data.event, split):
            a = patients.subset(rows_a)
            learned = learn(a, settings, split)
            both.append(evaluate_half(a, patients.subset(rows_b), learned, settings))
            tested.append(rows_b)
            gaps = [abs(learned.gaps[name]) for name in PRIMARY if name in learned.gaps]
            gap = np.mean(gaps) if gaps else np.nan
            inside.append({"inside_c": learned.c, "inside_gap": gap, "chosen": learned.tuned})
        for setting in both[0]:
            result = results.setdefault(setting, Results())
            halves = [half[setting] for half in both]
            result.splits.append(mean_of_halves(tested, [half.estimates for half in halves]))
            result.halves += [half.numbers for half in halves]
    of_halves = pd.DataFrame(inside).mean()
    out = []
    for setting, result in results.items():
        means = result.means()
        # at a kink, or away from an exact optimum, the last digits depend on the platform
        exact = means["certificate", ""] <= EXACT and setting.rule != "cvar"
        model = {
            "method": setting.method,
            "alpha": of_halves["chosen"] if setting == TUNED else setting.alpha,
            "rule": setting.rule,
            "penalty": setting.penalty,
            "patients": len(patients),
            "events": int(patients.data.event.sum()),
            "features": patients.data.X.shape[1],
            "moved": 0.0 if exact else np.nan,
            "inside_c": of_halves["inside_c"],
            "inside_gap": of_halves["inside_gap"],
        }
        for attribute in patients.attributes or ("",):
            here = {name: value for (name, of), value in means.items() if of in ("", attribute)}
            out.append(model | {"attribute": attribute} | here)
    return pd.DataFrame(out).reindex(columns=COLUMNS)


# The study as jobs ----------------------------------------------------------------------------


def jobs() -> list[dict]:
    """One job for each registered data set, the largest first.

    The key is ``name``, because ``dataset`` means the paper's three in the store.
    """
    registered = REGISTERED["included"] | REGISTERED["beside"]
    by_size = sorted(registered, key=lambda name: -registered[name]["patients"])
    return [{"name": name} for name in by_size]


def rows(name: str) -> pd.DataFrame:
    """All models on one data set: a row for each method and attribute (or one without attribute).

    After ``dataset``, ``method``, ``alpha``, ``rule``, ``penalty``, ``patients``, ``events``,
    ``features`` and ``attribute``: the c-index ``c``, its difference from Cox's (``c_diff``),
    ``gap`` (signed), ``closing``, ``guard``, the c-index among members of the group that Cox serves
    worst (``worst_own``) and its difference (``..._diff``), each with its standard error
    (``..._se``) and in points; ``ibs``; ``slope`` of calibration. Then, the same in all rows of a
    method: closing and guard averaged over sex and age (``joint_...``), the worst group of DRO-COX
    (``worst_dro...``), Cox's c-index and gap inside the other half (``inside_...``), the largest
    duality gap of an optimum (``certificate``); and by attribute the products of A's gap under Cox
    with B's (``product``) and with B's under Cox (``product_cox``).
    """
    out = study(cohorts.load(name))
    out.insert(0, "dataset", name)
    return out
