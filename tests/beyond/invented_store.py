"""An invented store of the study on many data sets, whose analysis is tried on it.

The engine's own rows for a few splits of simulated patients are mixed: the value of a row in one
data set and split is a random combination of its values in these. Means over starts, halves and
choices, and differences of models, remain means and differences in every mixture, so an effect can
be computed from the rows of models as well as from the stored contrasts.
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
MIXED = 2  # splits of simulated patients
OF_MODEL = {"certificate", "constant", "eligible", "none_eligible", "learning_rate", "alpha"}
OF_NETWORKS = {*CANDIDATES, THREE, *(name + AT_START_0 for name in CANDIDATES)}


def parts() -> list[pd.DataFrame]:
    """The engine's rows of a few splits, read back from a file, each with the same rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "fit_stack", partial(training.fit_stack, n_iter=STEPS))
        out = [
            store.from_csv(store.to_csv(many_data_sets.study(patients, seed, permutations=False)))
            for seed in range(MIXED)
            for patients in [invented_patients.draw(160, 0.3, seed=3 + seed)]
        ]
    keys = [name for name in many_data_sets.COLUMNS if name not in ("value", "se", "moved")]
    of_rows = [pd.Index(store.lines(one, keys)) for one in out]
    in_all = [line for line in of_rows[0] if all(line in lines for lines in of_rows)]
    return [
        one.set_axis(lines).loc[in_all].reset_index(drop=True)
        for one, lines in zip(out, of_rows, strict=True)
    ]


def mixed(parts: list[pd.DataFrame], seed: int = 0) -> pd.DataFrame:
    """The rows of every job. Closings with permuted labels are random numbers around 0."""
    values = np.array([part["value"] for part in parts])
    facts = parts[0]["measure"].isin(OF_MODEL).to_numpy()
    of_network = parts[0]["model"].isin(OF_NETWORKS).to_numpy()
    frames = []
    for job in many_data_sets.jobs():
        rng = np.random.default_rng([seed, *job["name"].encode(), job["split"]])
        value = np.where(facts, values[0], rng.normal(size=len(parts)) @ values)
        rows = parts[0].assign(value=value, se=parts[0]["se"] * rng.uniform(0.5, 1.5))
        rows = rows[np.full(len(rows), job["name"] in NETWORKS) | ~of_network]
        permuted = [_permuted(model, rng) for model in CONTROLLED if job["name"] in TESTED]
        frames.append(pd.concat([rows, *permuted]).assign(study="many_data_sets", **job))
    return pd.concat(frames, ignore_index=True)


def _permuted(model: str, rng: np.random.Generator) -> pd.DataFrame:
    of = {"model": model, "choice": BOTH, "against": PLAIN_18, "against_choice": BOTH}
    draws = {"draw": np.arange(PERMUTATIONS), "value": rng.normal(size=PERMUTATIONS)}
    return pd.DataFrame(draws).assign(measure=PERMUTED, attribute="", **of)
