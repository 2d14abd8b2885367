"""Running the protocol."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drocox import regularizers
from drocox.dro import dual_constant
from drocox.protocol import HIDDEN, METHODS, Prepared, Stack, prepare
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
