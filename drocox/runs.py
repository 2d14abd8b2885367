"""From one stack of the protocol to one row per trained model.

Nonlinear stacks are trained twice, the second time from initial weights multiplied by
``1 + PERTURBATION``. A run whose test c-index moves by more than ``MOVED`` is marked unstable: its
digits hold on the same machine and versions only. Linear runs are not, and have no such mark.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from drocox import accuracy, regularizers
from drocox.dro import dual_constant
from drocox.protocol import ATTRIBUTES, HIDDEN, METHODS, Prepared, Stack, prepare
from drocox.training import (
    CHUNK,
    ScoreStack,
    cox_objective,
    dro_objective,
    fit_stack,
    initial_parameters,
    split_objective,
)

PERTURBATION = 1e-12  # relative change of the initial weights that a stable run does not notice
MOVED = 1e-3  # change of the test c-index from which a run counts as unstable


def _penalty(name: str | None, ready: Prepared, attribute: str):
    """The penalty of a method on the training part: prepared pairs or a function of hazards."""
    X, train = ready.X[0], ready.train
    if name == "keya_i":
        return regularizers.all_pairs(X)
    if name == "rp_i":
        return regularizers.censored_event_pairs(X, train.time, train.event)
    if name == "rp_g":
        codes = train.groups[attribute]
        return regularizers.censored_event_pairs(X, train.time, train.event, codes)
    if name == "keya_g":
        return lambda hazards: regularizers.group_keya(hazards, train.groups[attribute])
    if name == "keya_cap":
        return lambda hazards: regularizers.intersectional_keya(hazards, train.group_matrix)
    return None


def fit(stack: Stack, ready: Prepared, scale: float = 1.0) -> ScoreStack:
    """Train the models of a stack; ``scale`` multiplies the initial weights."""
    method, grid = METHODS[stack.method], stack.grid()
    hidden = HIDDEN[stack.model]
    start = scale * initial_parameters(ready.X[0].shape[1], hidden, ready.weight_seed)
    penalty = _penalty(method.penalty, ready, stack.attribute)
    thetas, offsets = [], []
    for low in range(0, len(grid), CHUNK):
        part = grid.iloc[low : low + CHUNK]
        if method.loss == "cox":
            objective = cox_objective(ready.risk, ready.ties, penalty, part["lam"].to_numpy())
        else:
            c = np.array([dual_constant(alpha) for alpha in part["alpha"]])
            objective = (dro_objective(ready.risk, c, ready.ties) if method.loss == "dro"
                         else split_objective(ready.risk, ready.first, c, stack.sides))
        models = fit_stack(ready.X[0], objective, np.tile(start, (len(part), 1)),
                           part["learning_rate"], hidden=hidden,
                           centre=ready.centre and hidden is not None)
        thetas.append(models.theta)
        offsets.append(models.offset)
    return ScoreStack(np.vstack(thetas), models.n_features, hidden, np.concatenate(offsets))


KEYS = ["protocol", "dataset", "model", "method", "attribute", "repeat", "learning_rate", "lam",
        "alpha", "n2_share", "sides"]


def columns() -> list[str]:
    """Columns of the results: keys, validation metrics, test metrics, mark of instability."""
    names = sorted({a for attributes in ATTRIBUTES.values() for a in attributes})
    fair = ["c_index", "f_i", "f_cap", "f_i_centred", "f_cap_centred"]
    fair += [f"{metric}_{name}" for name in names
             for metric in ("f_g", "f_g_centred", "ci_percent")]
    exact = ["auc", "lpl", "ibs", "ibs_misaligned"]
    return [*KEYS, *(f"val_{c}" for c in fair), *(f"test_{c}" for c in fair[:1] + exact + fair[1:]),
            "unstable"]


def run_stack(stack: Stack) -> pd.DataFrame:
    """Train and judge the models of a stack; one row per model, columns of :func:`columns`."""
    ready = prepare(stack.protocol, stack.dataset, stack.repeat, stack.n2_share, stack.sides)
    models = fit(stack, ready)
    on_train, on_val, on_test = (models.scores(X) for X in ready.X)
    on_baseline = models.scores(ready.baseline_X)
    moved = None
    if models.hidden is not None:
        moved = fit(stack, ready, 1 + PERTURBATION).scores(ready.X[2])
    val, test = ready.judges
    rows = stack.grid()
    for i in rows.index:
        found = {f"val_{k}": v for k, v in val.fairness(on_train[i], on_val[i]).items()}
        judged = test.fairness(on_train[i], on_test[i])
        judged |= test.accuracy(on_train[i], on_test[i], on_baseline[i])
        found |= {f"test_{k}": v for k, v in judged.items()}
        if moved is not None:
            other = accuracy.concordance_index(moved[i], ready.test.time, ready.test.event)
            found["unstable"] = int(abs(other - found["test_c_index"]) > MOVED)
        for key, value in found.items():
            rows.loc[i, key] = value
    keys = {k: getattr(stack, k) for k in KEYS if k not in rows}
    return rows.assign(**keys).reindex(columns=columns())
