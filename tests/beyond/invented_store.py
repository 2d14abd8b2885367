"""An invented store of the study on many data sets, whose analysis is tried on it.

The values of the engine's own rows for one split of simulated patients are multiplied by a random
number for each data set and split. Means over starts, halves and choices, and differences of
models, remain means and differences, so an effect can be computed from the rows of models as well
as from the stored contrasts.
"""

from functools import partial

import invented_patients
import numpy as np
import pandas as pd
import pytest

from drocox import training
from drocox.beyond import many_data_sets
from drocox.beyond.by_adam import CANDIDATES, PLAIN_18
from drocox.beyond.datasets import TESTED
from drocox.beyond.many_data_sets import NETWORKS, PERMUTED
from drocox.beyond.outcomes import AT_START_0, BOTH, CONTROLLED, PERMUTATIONS, THREE
from drocox.paper import store

STEPS = 5  # of Adam, in place of 500
OF_MODEL = {"certificate", "constant", "eligible", "none_eligible", "learning_rate", "alpha"}
OF_NETWORKS = {*CANDIDATES, THREE, *(name + AT_START_0 for name in CANDIDATES)}


def whole() -> pd.DataFrame:
    """The rows of every job. Closings with permuted labels are random numbers around 0."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "fit_stack", partial(training.fit_stack, n_iter=STEPS))
        patients = invented_patients.draw(160, 0.3, seed=3)
        one = many_data_sets.study(patients, 0, permutations=False)
    one = store.from_csv(store.to_csv(one))
    facts = one["measure"].isin(OF_MODEL).to_numpy()
    of_network = one["model"].isin(OF_NETWORKS).to_numpy()
    frames = []
    for job in many_data_sets.jobs():
        rng = np.random.default_rng([*job["name"].encode(), job["split"]])
        value = np.where(facts, one["value"], rng.normal() * one["value"])
        rows = one.assign(value=value, se=one["se"] * rng.uniform(0.5, 1.5))
        rows = rows[np.full(len(rows), job["name"] in NETWORKS) | ~of_network]
        permuted = [_permuted(model, rng) for model in CONTROLLED if job["name"] in TESTED]
        frames.append(pd.concat([rows, *permuted]).assign(study="many_data_sets", **job))
    return pd.concat(frames, ignore_index=True)


def _permuted(model: str, rng: np.random.Generator) -> pd.DataFrame:
    of = {"model": model, "choice": BOTH, "against": PLAIN_18, "against_choice": BOTH}
    draws = {"draw": np.arange(PERMUTATIONS), "value": rng.normal(size=PERMUTATIONS)}
    return pd.DataFrame(draws).assign(measure=PERMUTED, attribute="", **of)
