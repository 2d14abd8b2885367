"""The study on many data sets: does DRO-COX help the group that is served worst?

27 data sets and two beside them, five splits into halves: the models of
:mod:`drocox.beyond.models` are learned on one half (:mod:`drocox.beyond.halves`) and evaluated on
the other (:mod:`drocox.beyond.outcomes`). The plan is ``plans/acting_plan.md``, its analysis is
:mod:`drocox.beyond.analysis`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from drocox.beyond import datasets
from drocox.beyond.datasets import PRIMARY, REGISTERED, Patients
from drocox.beyond.halves import SPLITS, STORED, deal, learn
from drocox.beyond.models import AGAINST
from drocox.beyond.outcomes import (
    evaluate,
    mean_of_halves,
    mean_of_splits,
    permuted_closings,
    scored,
)
from drocox.heldout import Estimate

PERMUTED = "permuted closing"


@dataclass(frozen=True)
class Half:
    """All models, learned on one half and evaluated on the other."""

    tested: np.ndarray  # rows of the patients of half B
    estimates: dict[tuple, Estimate]
    facts: list[dict]  # about each model
    moved: dict[str, float]  # by model, how far rounding moves a score
    permuted: pd.DataFrame | None  # closings with permuted labels


def halves_of(
    patients: Patients, split: int, forms: Sequence[str], permutations: bool
) -> list[Half]:
    """Both halves of a split."""
    out = []
    for half, (rows_a, rows_b) in enumerate(deal(patients.data.event, split)):
        learned = learn(patients.subset(rows_a), split, half, forms)
        b = patients.subset(rows_b)
        held = scored(learned, b)
        facts = []
        moved: dict[str, float] = {}
        for (name, attribute), model in learned.models.items():
            of = {"model": name, "attribute": attribute, "half": 2 * split + half}
            facts.append(of | model.facts)
            moved[name] = np.maximum(moved.get(name, 0.0), model.moved(b))
        labelled = permutations and set(PRIMARY) & set(learned.cuts)
        permuted = permuted_closings(held, learned, patients, rows_b) if labelled else None
        out.append(Half(rows_b, evaluate(held, learned, b), facts, moved, permuted))
    return out


def study(
    patients: Patients,
    splits: Sequence[int] = range(SPLITS),
    forms: Sequence[str] = STORED,
    permutations: bool = True,
) -> pd.DataFrame:
    """All models on one data set of sorted patients: see :func:`rows`."""
    of_splits = [halves_of(patients, split, forms, permutations) for split in splits]
    halves = [half for both in of_splits for half in both]
    frame = pd.concat([_estimates(of_splits), _facts(halves)])
    frame["moved"] = frame["model"].map(_moved(halves))
    draws = _permuted([half.permuted for half in halves if half.permuted is not None])
    return pd.concat([frame, draws]).reset_index(drop=True)


def _estimates(of_splits: Sequence[Sequence[Half]]) -> pd.DataFrame:
    """Means over halves and splits, with errors."""
    means = [
        mean_of_halves([half.tested for half in both], [half.estimates for half in both])
        for both in of_splits
    ]
    rows = []
    for name, (value, se) in mean_of_splits(means).items():
        of = dict(zip(("model", "measure", "attribute"), name, strict=True))
        rows.append(of | {"value": value, "se": se, "splits": sum(name in one for one in means)})
    return pd.DataFrame(rows)


def _facts(halves: Sequence[Half]) -> pd.DataFrame:
    """A row for each model, half and fact."""
    facts = pd.DataFrame([one for half in halves for one in half.facts])
    long = facts.melt(["model", "attribute", "half"], var_name="measure")
    return long.dropna(subset="value")


def _moved(halves: Sequence[Half]) -> dict[str, float]:
    """How far rounding moves a score of a model, or of the one that it is compared with."""
    largest = pd.DataFrame([half.moved for half in halves]).max(skipna=False)
    return {
        name: np.maximum(largest[name], largest[AGAINST.get(name, name)]) for name in largest.index
    }


def _permuted(draws: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Mean closings with permuted labels, a row for each model and draw."""
    if not draws:
        return pd.DataFrame()
    closings = (sum(draws) / len(draws)).round(4)
    long = closings.rename_axis("draw").reset_index().melt("draw", var_name="model")
    return long.assign(attribute="", measure=PERMUTED)


def jobs() -> list[dict]:
    """One job for each registered data set, the largest first.

    The key is ``name``, because ``dataset`` means the paper's three in the store.
    """
    registered = REGISTERED["included"] | REGISTERED["beside"]
    by_size = sorted(registered, key=lambda name: -registered[name]["patients"])
    return [{"name": name} for name in by_size]


def rows(name: str) -> pd.DataFrame:
    """All models on one data set: a row for each model, measure and attribute ("": joint).

    ``value`` and its standard error ``se`` have the units of :mod:`drocox.beyond.outcomes`;
    ``splits`` counts the splits that have the measure in both halves. Rows with a ``half`` are
    facts about the models learned there: ``certificate``; ``penalty``; ``learning_rate`` and
    ``alpha``; ``protected``, the protected share divided by the share of events; ``constant``, 1 if
    the scores are; and the ``rank_correlation`` on A with Cox and (``..._base``) with the model in
    ``AGAINST``. Rows with a ``draw`` are closings with permuted labels.
    """
    out = study(datasets.load(name))
    out.insert(0, "dataset", name)
    return out
