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
from functools import cached_property
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


def concordances(
    held: HeldOut, codes: dict[str, np.ndarray], worst: Sequence[np.ndarray | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Concordances of one model on half B in points, and their changes without each patient.

    Arrays of shape (k,) and (n, k): the c-index, the gap of each attribute in ``codes``, and the
    c-index among the members of each group in ``worst``, NaN for None.
    """
    estimates = [_percent(held.c_index(np.full(len(held.time), True)))]
    estimates += [gap_of(held, values) for values in codes.values()]
    nothing = Estimate(np.nan, np.full(len(held.time), np.nan))
    for members in worst:
        estimates.append(nothing if members is None else _percent(held.c_index(members)))
    values = np.array([one.value for one in estimates])
    without = np.column_stack([one.without for one in estimates])
    return values, without - values


def _percent(one: Estimate) -> Estimate:
    return Estimate(100 * one.value, 100 * one.without)


@dataclass(frozen=True)
class Contrasts:
    """Names of the contrasts with Cox, and the linear map that computes them from concordances."""

    attributes: tuple[str, ...]

    @cached_property
    def names(self) -> list[str]:
        """Names of the contrasts, in order."""
        out = ["c", "c_diff"]
        for kind in ("gap", "closing", "guard"):
            out += [f"{kind}_{name}" for name in self.attributes]
        out += ["joint_closing", "joint_guard"]
        return [*out, "worst_own", "worst_own_diff", "worst_dro", "worst_dro_diff"]

    def of(self, own: np.ndarray, cox: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Contrasts of a model with Cox, from concordances or their changes (last axis)."""
        a = len(self.attributes)
        gap = own[..., 1 : 1 + a]
        closing = signs * (cox[..., 1 : 1 + a] - gap)
        guard = signs * (cox[..., 1 : 1 + a] + gap)
        primary = [j for j, name in enumerate(self.attributes) if name in PRIMARY]
        nothing = np.full((*own.shape[:-1], 1), np.nan)
        joint = [
            part[..., primary].mean(axis=-1, keepdims=True) if primary else nothing
            for part in (closing, guard)
        ]
        worst = own[..., 1 + a :]
        diff = worst - cox[..., 1 + a :]
        first = [own[..., :1], own[..., :1] - cox[..., :1]]
        last = [worst[..., :1], diff[..., :1], worst[..., 1:], diff[..., 1:]]
        return np.concatenate([*first, gap, closing, guard, *joint, *last], axis=-1)


def _mean(values: Sequence[np.ndarray]) -> np.ndarray:
    """Mean over the splits in which a value exists, NaN where it never does."""
    stacked = np.array(values)
    known = np.isfinite(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def split_variance(moves: np.ndarray) -> np.ndarray:
    """Jackknife variances of means over both halves of a split, from each patient's influence.

    NaN where a metric does not exist without some patient.
    """
    out = np.full(moves.shape[1], np.nan)
    known = np.isfinite(moves).all(axis=0)
    if known.any():
        out[known] = np.diag(jackknife(moves[:, known] / 2)[0])
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

    values: np.ndarray  # of the contrasts
    moves: np.ndarray  # how they move without each patient of the test half
    products: np.ndarray  # of each attribute: A's gap under Cox times B's
    brier: float
    slope: float
    certificate: float


def evaluate_half(
    a: Patients, b: Patients, learned: Learned, settings: Sequence[Setting]
) -> dict[Setting, Half]:
    """Evaluate on half B the models learned on half A, as far as they were learned."""
    contrasts = Contrasts(tuple(b.attributes))
    X, X_out = scaled_features(a.data, b.data)
    codes = codes_of(b, learned.cuts)
    worst = [
        None if group is None else group.members(b.covariates) for group in learned.worst.values()
    ]
    inside = np.array(list(learned.gaps.values()))
    cox_values, cox_moves = np.empty(0), np.empty(0)
    out = {}
    for setting in settings:
        if setting not in learned.models:
            continue
        solution = learned.models[setting]
        scores = scores_of(X_out, solution.coef)
        held = HeldOut(scores, b.data.time, b.data.event, np.zeros(len(b), int))
        values, moves = concordances(held, codes, worst)
        if setting == COX:
            cox_values, cox_moves = values, moves
        brier, slope = _accuracy(a, b, X, X_out, solution.coef)
        out[setting] = Half(
            values=contrasts.of(values, cox_values, learned.signs),
            moves=contrasts.of(moves, cox_moves, learned.signs),
            products=inside * values[1 : 1 + len(inside)],
            brier=brier,
            slope=slope,
            certificate=solution.gap,
        )
    return out


@dataclass
class Results:
    """One model on all halves of a data set."""

    halves: list[Half] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)  # of each split
    variances: list[np.ndarray] = field(default_factory=list)  # likewise

    def add(self, rows: Sequence[np.ndarray], both: Sequence[Half]) -> None:
        """Add one split: test rows and results of both halves."""
        self.halves += both
        self.values.append(np.mean([half.values for half in both], axis=0))
        moves = np.empty((sum(map(len, rows)), len(both[0].values)))
        for some, half in zip(rows, both, strict=True):
            moves[some] = half.moves
        self.variances.append(split_variance(moves))

    def row(self, contrasts: Contrasts) -> dict[str, float]:
        """Means over the splits, and their standard errors (``..._se``)."""
        value = dict(zip(contrasts.names, _mean(self.values), strict=True))
        error = dict(zip(contrasts.names, np.sqrt(_mean(self.variances)), strict=True))
        slopes = [half.slope for half in self.halves if not np.isnan(half.slope)]
        products = np.mean([half.products for half in self.halves], axis=0)
        return {
            **value,
            **{f"{name}_se": one for name, one in error.items()},
            **{
                f"product_{name}": one
                for name, one in zip(contrasts.attributes, products, strict=True)
            },
            "ibs": float(np.mean([half.brier for half in self.halves])),
            "slope": float(np.median(slopes)) if slopes else np.nan,
            "certificate": max(half.certificate for half in self.halves),
        }


OF_ATTRIBUTE = ("gap", "closing", "closing_se", "guard", "guard_se")
AFTER = (  # the same in all rows of a model, after the columns that every study would have
    "joint_closing",
    "joint_closing_se",
    "joint_guard",
    "joint_guard_se",
    "worst_dro",
    "worst_dro_diff",
    "worst_dro_diff_se",
    "certificate",
)


def _row(setting: Setting, own: dict, cox: dict, attribute: str) -> dict:
    """One row: a model and one attribute, or no attribute."""
    row = {
        "attribute": attribute,
        "c": own["c"],
        "c_se": own["c_se"],
        "c_diff": own["c_diff"],
        "c_diff_se": own["c_diff_se"],
    }
    for name in OF_ATTRIBUTE:
        kind, _, error = name.partition("_")
        key = f"{kind}_{attribute}_{error}" if error else f"{kind}_{attribute}"
        row[name] = own.get(key, np.nan)
    for name in ("worst_own", "worst_own_diff", "worst_own_diff_se", "ibs", "slope", *AFTER):
        row[name] = own[name]
    row["product"] = own.get(f"product_{attribute}", np.nan)
    row["product_cox"] = cox.get(f"product_{attribute}", np.nan)
    # at a kink, or away from an exact optimum, the last digits depend on the platform
    exact = own["certificate"] <= EXACT and setting.rule != "cvar"
    return row | {"moved": 0.0 if exact else np.nan}


def study(
    patients: Patients,
    settings: Sequence[Setting] = SETTINGS,
    splits: Sequence[int] = range(SPLITS),
) -> pd.DataFrame:
    """All models on one data set of sorted patients (``Patients.in_order``): see :func:`rows`."""
    results: dict[Setting, Results] = {}
    inside = []  # of each half: Cox's c-index and gap inside, and the alpha that was chosen
    for split in splits:
        both = []
        tested = []
        for rows_a, rows_b in cohorts.halves(patients.data.event, split):
            a = patients.subset(rows_a)
            learned = learn(a, settings, split)
            both.append(evaluate_half(a, patients.subset(rows_b), learned, settings))
            tested.append(rows_b)
            gaps = [abs(learned.gaps[name]) for name in PRIMARY if name in learned.gaps]
            inside.append([learned.c, np.mean(gaps) if gaps else np.nan, learned.tuned])
        for setting in both[0]:
            result = results.setdefault(setting, Results())
            result.add(tested, [half[setting] for half in both])
    inside_c, inside_gap, chosen = _mean(inside)
    contrasts = Contrasts(tuple(patients.attributes))
    of_model = {setting: result.row(contrasts) for setting, result in results.items()}
    out = []
    for setting, values in of_model.items():
        model = {
            "method": setting.method,
            "alpha": chosen if setting == TUNED else setting.alpha,
            "rule": setting.rule,
            "penalty": setting.penalty,
            "patients": len(patients),
            "events": int(patients.data.event.sum()),
            "features": patients.data.X.shape[1],
        }
        for attribute in contrasts.attributes or ("",):
            out.append(model | _row(setting, values, of_model[COX], attribute))
    return pd.DataFrame(out).assign(inside_c=inside_c, inside_gap=inside_gap)


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
