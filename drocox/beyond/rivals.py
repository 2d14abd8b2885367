r"""Rivals on equal terms, a study: :mod:`drocox.beyond.rival_methods`, evaluated on every patient.

Pairs of patients are compared within a test fold only. A metric is the mean of the two repeats, and
so are its values without each patient in turn, from which the jackknife gives standard errors, so
that a patient who is tested twice counts once. The errors are conditional on the fitted models, and
describe how the metrics vary with the test patients.

With :math:`\Delta` the second group's concordance minus the first's, a rival is compared with Cox
by

.. math:: \Delta_{rival} - \Delta_{Cox} \qquad \text{and} \qquad \Delta_{rival} + \Delta_{Cox} :

:math:`|\Delta_{rival}| < |\Delta_{Cox}|` exactly if these two have opposite signs.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from drocox.beyond.group_search import found_groups
from drocox.beyond.outcomes import combined, mean
from drocox.beyond.rival_methods import IN_YEARS, RIVALS, Fold, fit_tuned, prepared_folds
from drocox.beyond.weighted_gap import weighted_gap
from drocox.evaluation import Judge
from drocox.heldout import Estimate, HeldOut, expected_events
from drocox.paper.datasets import load_dataset
from drocox.paper.protocol import ATTRIBUTES

OBSERVED = 0.1  # share of the patients who are still observed at the horizon


@dataclass
class Tested:
    """Test scores of all patients by a method that was tuned for one attribute."""

    repeats: list[HeldOut]
    chosen: list[str]  # settings, fold by fold
    of_folds: list[dict[str, float]]  # metrics that are averaged over folds


def try_out(dataset: str, method: str) -> dict[str, Tested]:
    """Train and test a method on all folds; the result is by attribute."""
    tested = {attribute: Tested([], [], []) for attribute in ATTRIBUTES[dataset]}
    for folds in prepared_folds(dataset, RIVALS[method].in_years):
        parts: dict[str, list[pd.DataFrame]] = {attribute: [] for attribute in tested}
        for number, fold in enumerate(folds):
            known = {}  # by coefficients, which are the same for several attributes
            for attribute, one in tested.items():
                coef, setting = fit_tuned(fold, method, attribute)
                on_train = fold.train.features(method, attribute) @ coef
                on_test = fold.test.features(method, attribute) @ coef
                parts[attribute].append(_predicted(fold, number, on_train, on_test))
                one.chosen.append(f"{setting:g}")
                key = coef.tobytes()
                if key not in known:
                    known[key] = _of_fold(fold, on_train, on_test)
                one.of_folds.append(known[key])
        for attribute, one in tested.items():
            patients = pd.concat(parts[attribute]).sort_index()
            columns = {name: patients[name].to_numpy() for name in patients}
            until = horizon(columns["time"], columns["event"])
            one.repeats.append(HeldOut(**columns, horizon=until))
    return tested


def horizon(time: np.ndarray, event: np.ndarray) -> float:
    """Time up to which censoring weights are used.

    The last event up to the 90 % quantile of the observed times.
    """
    late = np.quantile(time, 1 - OBSERVED)
    return float(time[event & (time <= late)].max())


def _predicted(fold: Fold, number: int, on_train, on_test) -> pd.DataFrame:
    """The test patients of a fold, as :class:`HeldOut` wants them, by row of the data set."""
    test = fold.test.data
    columns = {
        "scores": on_test,
        "time": test.time,
        "event": test.event,
        "fold": number,
        "expected": expected_events(fold.train.data, on_train, on_test, test.time),
    }
    return pd.DataFrame(columns, index=fold.rows)


def _of_fold(fold: Fold, on_train, on_test) -> dict[str, float]:
    """Metrics that are averaged over folds: F_A for each attribute, the Brier score, the spread."""
    judge = Judge(fold.train.data, fold.test.data, fold.test.X, keep=False)
    fair = judge.fairness(on_train, on_test)
    out = {"ibs": judge.accuracy(on_train, on_test)["ibs"], "spread": on_test.std()}
    for attribute in fold.test.data.groups:
        parts = (fair["f_i"], fair[f"f_g_{attribute}"], fair["f_cap"])
        out[f"f_a_{attribute}"] = np.mean(parts)
    return out


@lru_cache(maxsize=1)
def worst_groups(dataset: str) -> list[np.ndarray]:
    """Masks by repeat of the test patients in the worst group found on their training part."""
    out = []
    for folds in prepared_folds(dataset, False):
        members = []
        for fold in folds:
            worst = next(iter(found_groups(fold.train.data).values()))
            members.append(pd.Series(worst(fold.test.data), fold.rows))
        out.append(pd.concat(members).sort_index().to_numpy())
    return out


def estimates_of(held_out: HeldOut, codes: np.ndarray, worst: np.ndarray) -> dict[str, Estimate]:
    """Metrics of everybody, of both groups of an attribute, and of the worst group found.

    In percent: ``c`` and ``uno``, c-indices of everybody by Harrell's and by Uno's weights; for
    group g, ``cf_g``, its concordance with everybody, and ``own_g`` and ``uno_g``, c-indices among
    its members; ``ci``, the second ``cf`` minus the first, and ``ci_weighted``, the same with
    censoring weights; ``worst``, the concordance of the worst group. ``slope`` of calibration,
    ``slope_g``, and ``oe_g``, observed / expected events, are ratios.
    """
    everybody = np.full(len(codes), True)
    first = held_out.concordance(codes == 0)
    second = held_out.concordance(codes == 1)
    shares = {
        "c": held_out.c_index(everybody),
        "uno": held_out.uno_c(everybody),
        "cf_0": first,
        "cf_1": second,
        "ci": combined((1, second), (-1, first)),
        "ci_weighted": weighted_gap(held_out, codes),
        "worst": held_out.concordance(worst),
    }
    ratios = {"slope": held_out.slope(everybody)}
    for group in (0, 1):
        members = codes == group
        shares[f"own_{group}"] = held_out.c_index(members)
        shares[f"uno_{group}"] = held_out.uno_c(members)
        ratios[f"oe_{group}"] = held_out.calibration(members)
        ratios[f"slope_{group}"] = held_out.slope(members)
    return {name: combined((100, one)) for name, one in shares.items()} | ratios


def contrasts(ours: dict[str, Estimate], theirs: dict[str, Estimate]) -> dict[str, float]:
    """Metrics of one model, and their paired differences from another's on the same patients.

    For each metric: its value, the standard error (``..._se``), the difference (``..._diff``) and
    its standard error (``..._diff_se``); for ``ci`` also the sum of both (``ci_sum``).
    """
    out = {}
    for name, own in ours.items():
        difference = combined((1, own), (-1, theirs[name]))
        for ending, one in (("", own), ("_diff", difference)):
            out[f"{name}{ending}"] = one.value
            out[f"{name}{ending}_se"] = one.error
    both = combined((1, ours["ci"]), (1, theirs["ci"]))
    out["ci_sum"] = both.value
    out["ci_sum_se"] = both.error
    return out


def jobs() -> list[dict]:
    """One job for each data set and method.

    Methods that use age in years are left out where the data set has it in years anyway.
    """
    return [
        {"dataset": dataset, "method": name}
        for dataset in ATTRIBUTES
        for name, method in RIVALS.items()
        if not method.in_years or dataset in IN_YEARS
    ]


@lru_cache(maxsize=4)  # the models that others are compared with are among them
def results_of(dataset: str, method: str) -> dict[str, tuple[Tested, dict[str, Estimate]]]:
    """The scores and metrics of a method on every patient of a data set, by attribute."""
    groups = load_dataset(dataset).groups
    worst = worst_groups(dataset)
    out = {}
    for attribute, tested in try_out(dataset, method).items():
        by_repeat = []
        for held_out, members in zip(tested.repeats, worst, strict=True):
            by_repeat.append(estimates_of(held_out, groups[attribute], members))
        out[attribute] = tested, mean(by_repeat)
    return out


def rows(dataset: str, method: str) -> pd.DataFrame:
    """A method on every patient of a data set: a row for each attribute.

    The columns of :func:`compared`, ``against`` the named model; ``f_a``, ``ibs`` and ``spread`` of
    the scores (means of the ten folds); the ``chosen`` settings.
    """
    against = RIVALS[method].against
    theirs = results_of(dataset, against)
    out = []
    for attribute, (tested, ours) in results_of(dataset, method).items():
        row = {
            "attribute": attribute,
            "method": method,
            "against": against,
            "chosen": " ".join(tested.chosen),
            "moved": 0.0 if RIVALS[method].stable else np.nan,
        }
        row |= contrasts(ours, theirs[attribute][1])
        of_folds = pd.DataFrame(tested.of_folds).mean()
        row["f_a"] = of_folds[f"f_a_{attribute}"]
        row["ibs"] = of_folds["ibs"]
        row["spread"] = of_folds["spread"]
        out.append(row)
    return pd.DataFrame(out)
