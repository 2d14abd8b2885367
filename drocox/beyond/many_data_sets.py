"""The study on many data sets: what do DRO-COX, its tuning and sample splitting do, one at a time?

31 data sets, five splits into halves: the models of :mod:`drocox.beyond.models` and of
:mod:`drocox.beyond.by_adam` are learned on one half (:mod:`drocox.beyond.halves`) and evaluated on
the other (:mod:`drocox.beyond.outcomes`). The plan is ``plans/plan.md``, its analysis is
:mod:`drocox.beyond.analysis`. A job is one split of one data set.

Rows have the columns ``name`` and ``split``; ``model`` and ``choice``, the rule by which its
setting was chosen, empty for certified models; ``against`` and ``against_choice`` of a contrast;
``measure``, ``attribute`` ("": all of them together), ``value``, and:

- ``se``: rows of estimates and contrasts, means over starts and both halves in this split, with the
  jackknife's error;
- ``half``, ``start`` and ``dealt``: rows of one model. Outcomes ``c``, ``worst`` and ``gap`` in
  points, and facts: ``learning_rate``, ``alpha``, ``penalty``, ``draw_of_weights``; ``eligible``,
  the number of candidates that the paper's rule permits, and ``none_eligible``; ``validation_c`` in
  points; ``constant``, 1 if scores are; ``protected``, the protected share divided by that of
  events; and of certified models ``certificate`` and the ``rank_correlation`` on A with Cox. Under
  imparity ``attribute`` is the one for which the model was chosen;
- ``draw``: closings with permuted labels.

``moved`` says how far rounding in the initial weights moves a score on B, of all models that enter
a row; it is missing for certified models.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from drocox.beyond import datasets
from drocox.beyond.by_adam import BRIDGE, DRO, MAIN, PENALISED, PLAIN_3, PLAIN_18, STARTS
from drocox.beyond.datasets import BESIDE, FRESH, REGISTERED, TESTED, Patients
from drocox.beyond.halves import SPLITS, STORED, Learned, deal, learn
from drocox.beyond.outcomes import (
    AT_START_0,
    BOTH,
    THREE,
    Average,
    Contrast,
    Estimates,
    evaluate,
    mean_of_halves,
    permuted_closings,
    scored,
)
from drocox.paper.sweep import HELD

PERMUTED = "permuted closing"
DECIMALS = 7
SEVERAL = (PLAIN_3, *MAIN)  # networks with several starts
SAME_OBJECTIVE = {PENALISED: PLAIN_18, BRIDGE: DRO}  # for the spread over starts
OF_ONE = ("c", "worst", "gap")  # outcomes of one model that are stored
COLUMNS = ["model", "choice", "against", "against_choice", "start", "dealt", "half"]
COLUMNS += ["measure", "attribute", "value", "se", "draw", "moved"]
NETWORKS = (*TESTED, *BESIDE, *FRESH)  # data sets on which networks are trained


@dataclass(frozen=True)
class Half:
    """All models, learned on one half and evaluated on the other."""

    tested: np.ndarray  # rows of the patients of half B
    estimates: dict[Average | Contrast, Estimates]
    of_models: list[dict]  # rows of each model
    moved: dict[str, float]  # by model, how far rounding moves a score
    permuted: pd.DataFrame | None  # closings with permuted labels


def half_of(
    patients: Patients, learned: Learned, rows_b: np.ndarray, half: int, permutations: bool
) -> Half:
    """A half whose models are evaluated on the patients in ``rows_b``."""
    b = patients.subset(rows_b)
    held = scored(learned, b)
    by_key, estimates = evaluate(held, learned, b)
    rows = []
    moved: dict[str, float] = {}
    for key, model in learned.models.items():
        far = model.moved(b)
        names = [key.name, *([key.name + AT_START_0] if key.start == 0 else [])]
        for name in names if not key.dealt else []:
            moved[name] = np.maximum(moved.get(name, 0.0), far)
        of = {"model": key.name, "choice": key.choice, "half": half, "moved": far}
        of |= {"start": key.start, "dealt": key.dealt, "attribute": key.attribute}
        rows += [of | {"measure": fact, "value": value} for fact, value in model.facts.items()]
        for (measure, attribute), estimate in by_key[key].items():
            if measure in OF_ONE:
                about = {"measure": measure, "attribute": attribute or key.attribute}
                rows.append(of | about | {"value": estimate.value})
    permuted = permuted_closings(held, learned, patients, rows_b) if permutations else None
    return Half(rows_b, estimates, rows, moved, permuted)


def study(
    patients: Patients,
    split: int,
    *,
    networks: bool = True,
    permutations: bool = True,
    starts: Sequence[int] = STARTS,
    forms: Sequence[str] = STORED,
) -> pd.DataFrame:
    """All models on one split of sorted patients: the rows without ``name`` and ``split``.

    ``split`` is the seed by which patients are dealt; ``starts`` restricts the initial weights of
    networks, ``forms`` the certified DRO-COX models. Measures are explained in
    :mod:`drocox.beyond.outcomes`: ``c_diff``, for example, is a difference of c-indices in points.
    With your own patients, a :class:`SurvivalData` of all features, covariates that may describe
    groups, and sex (0, 1) or age (a number), NaN where unknown::

        from drocox.beyond.datasets import Patients

        data = drocox.SurvivalData.from_frame(df, time="days", event="died")
        attributes = {"age": df["age"].to_numpy(float), "sex": df["male"].to_numpy(float)}
        patients = Patients(data, df[["age", "stage"]], attributes)
        rows = study(patients.in_order(), 0, networks=False)
        rows[rows["model"].eq("DRO-COX, half of the events") & rows["against"].eq("Cox")]
    """
    both = []
    for half, (rows_a, rows_b) in enumerate(deal(patients.data.event, split)):
        a = patients.subset(rows_a)
        learned = learn(a, split, half, networks=networks, starts=starts, forms=forms)
        both.append(half_of(patients, learned, rows_b, half, networks and permutations))
    rows = [*_estimates(both), *(row for half in both for row in half.of_models)]
    frame = pd.DataFrame([*rows, *_permuted(both)]).reindex(columns=COLUMNS)
    frame["moved"] = [float(f"{moved:.0e}") for moved in frame["moved"]]
    return frame.round({"value": DECIMALS, "se": DECIMALS})


def _estimates(both: Sequence[Half]) -> Iterable[dict]:
    """Means over halves, with errors."""
    for one in both[0].estimates:
        if not all(one in half.estimates for half in both):
            continue
        estimates = mean_of_halves(
            [half.tested for half in both], [half.estimates[one] for half in both]
        )
        names = {one.model, getattr(one, "against", one.model)}
        parts = {part for name in names for part in _parts(name)}
        moved = np.max([half.moved[part] for half in both for part in parts])
        for (measure, attribute), estimate in estimates.items():
            about = {"measure": measure, "attribute": attribute, "moved": moved}
            value = {"value": estimate.value, "se": estimate.error}
            yield one._asdict() | about | value


def _parts(name: str) -> list[str]:
    """The models of which a name is the mean."""
    if not name.endswith(THREE):
        return [name]
    return [name.removesuffix(THREE) + model for model in MAIN]


def _permuted(both: Sequence[Half]) -> Iterable[dict]:
    """Mean closings with permuted labels, a row for each contrast and draw."""
    draws = [half.permuted for half in both if half.permuted is not None]
    if len(draws) < len(both):
        return
    for model, closings in (sum(draws) / len(draws)).round(3).items():
        of = Contrast(model, BOTH, PLAIN_18, BOTH)._asdict() | {"measure": PERMUTED}
        for draw, closing in closings.items():
            yield of | {"attribute": "", "value": closing, "draw": draw}


def jobs() -> list[dict]:
    """A job for each split of each data set, the longest first.

    The key is ``name``, because ``dataset`` means the paper's three in the store.
    """
    registered = REGISTERED["included"] | REGISTERED["beside"]
    patients = {name: facts["patients"] for name, facts in registered.items()}
    patients |= dict.fromkeys(FRESH, 2000)
    longest = sorted(patients, key=lambda name: (name not in NETWORKS, -patients[name]))
    return [{"name": name, "split": split} for name in longest for split in range(SPLITS)]


def rows(name: str, split: int, starts: Sequence[int] = STARTS) -> pd.DataFrame:
    """All models on one split of a data set."""
    out = study(
        datasets.load(name),
        split,
        networks=name in NETWORKS,
        permutations=name in TESTED,
        starts=starts,
    )
    out.insert(0, "name", name)
    out.insert(1, "split", split)
    return out


# Verification ------------------------------------------------------------------------------------


def again(name: str, split: int) -> pd.DataFrame:
    """The rows of a job, with networks of the first start only."""
    return rows(name, split, starts=(0,))


def part(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that the first start gives: none of means over starts, nor of later ones.

    Rows of certified models count as stable.
    """
    over_starts = rows[["model", "against"]].isin([*SEVERAL, THREE]).any(axis=1)
    later = rows["start"] > 0
    return rows[~later & ~(over_starts & rows["half"].isna())].fillna({"moved": 0.0})


def means(stored: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """Mean outcomes of unstable models at the first start that are too far from the stored ones.

    Of each data set and arm, with the three-fold error of a difference that the spread over starts
    gives: the data set's own, or the root mean square over the tested ones if that is larger; of
    arms with one start that of the same objective.
    """
    arm = ["name", "model", "choice", "dealt", "measure", "attribute"]
    of_one = stored[stored["half"].notna() & stored["measure"].isin(OF_ONE) & stored["start"].ge(0)]
    at_starts = of_one[of_one["model"].isin(SEVERAL)].groupby([*arm, "start"])["value"].mean()
    own = at_starts.groupby(arm).std()
    tested = own[own.index.get_level_values("name").isin(TESTED)]
    usual = (tested**2).groupby(arm[1:]).mean() ** 0.5
    first = [
        one[one["half"].notna() & one["measure"].isin(OF_ONE) & one["start"].eq(0)].groupby(arm)
        for one in (stored, rows)
    ]
    far = first[1]["value"].mean() - first[0]["value"].mean()
    moved = np.maximum(*(one["moved"].max() for one in first))
    out = []
    for (name, model, choice, _, *outcome), difference in far[moved > HELD].items():
        objective = model.removeprefix("linear ")
        about = (SAME_OBJECTIVE.get(objective, objective), choice, 0.0, *outcome)
        allowed = 3 * np.sqrt(2) * max(own.get((name, *about), 0.0), usual.get(about, 0.0))
        if not abs(difference) <= allowed:
            which = f"{name}: {model}, {choice}, {' '.join(outcome).strip()}"
            out.append(f"mean of {which}: {difference:.2g} apart, {allowed:.2g} allowed")
    return out
