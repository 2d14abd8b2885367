"""From one stack of the protocol to one row per trained model.

In the repeats ``TWICE`` every model is trained twice, the second time from initial weights
multiplied by ``1 + PERTURBATION``. A run whose test c-index moves by more than ``MOVED`` is marked
unstable: its digits hold on the same machine and versions only. In the other repeats nobody knows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from drocox import accuracy, regularizers
from drocox.dro import dual_constant
from drocox.protocol import ATTRIBUTES, HIDDEN, METHODS, Prepared, Stack, prepare
from drocox.training import (
    N_ITER,
    ScoreStack,
    cox_objective,
    dro_objective,
    fit_stack,
    initial_parameters,
    split_objective,
)

CHUNK = 9  # models per pass: their hidden layers stay in the processor's cache
TWICE = (1, 2, 3)  # repeats in which stability is measured: it costs a second training
PERTURBATION = 1e-12  # relative change of the initial weights that a stable run does not notice
MOVED = 1e-3  # change of the test c-index from which a run counts as unstable


def _penalty(name: str | None, ready: Prepared, attribute: str):
    """The penalty of a method on the training part: prepared pairs or a function of hazards."""
    X, train = ready.X[0], ready.train
    if name == "keya_i":
        return regularizers.all_pairs(X)
    if name in ("rp_i", "rp_g"):
        codes = train.groups[attribute] if name == "rp_g" else None
        return regularizers.censored_event_pairs(X, train.time, train.event, codes)
    if name == "keya_g":
        belongs = regularizers.membership(train.groups[attribute], 2)
        return partial(regularizers.group_gap, belongs=belongs)
    if name == "keya_cap":
        belongs = regularizers.membership(*regularizers.cells(train.group_matrix, len(train)))
        return partial(regularizers.log_range, belongs=belongs)
    return None


def fit(stack: Stack, ready: Prepared, scales=(1.0,), n_iter: int = N_ITER) -> ScoreStack:
    """Train the models of a stack, once for each factor ``scales`` of the initial weights."""
    method, hidden = METHODS[stack.method], HIDDEN[stack.model]
    start = initial_parameters(ready.X[0].shape[1], hidden, ready.weight_seed)
    grid = stack.grid()
    scale = np.repeat(scales, len(grid))
    grid = pd.concat([grid] * len(scales), ignore_index=True)
    penalty = _penalty(method.penalty, ready, stack.attribute)
    done = []
    for low in range(0, len(grid), CHUNK):
        part = grid.iloc[low : low + CHUNK]
        if method.loss == "cox":
            objective = cox_objective(ready.risk, ready.ties, penalty, part["lam"].to_numpy())
        else:
            c = np.array([dual_constant(alpha) for alpha in part["alpha"]])
            objective = (dro_objective(ready.risk, c, ready.ties) if method.loss == "dro"
                         else split_objective(ready.risk, ready.first, c, stack.sides))
        done.append(fit_stack(ready.X[0], objective, np.outer(scale[low : low + CHUNK], start),
                              part["learning_rate"], hidden=hidden, n_iter=n_iter,
                              centre=ready.centre and hidden is not None))
    return ScoreStack(np.vstack([d.theta for d in done]), done[0].n_features, hidden,
                      np.concatenate([d.offset for d in done]))


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
    twice = stack.repeat in TWICE
    models = fit(stack, ready, (1.0, 1 + PERTURBATION) if twice else (1.0,))
    on_train, on_val, on_test = (models.scores(X) for X in ready.X)
    on_baseline = models.scores(ready.baseline_X)
    val, test = ready.judges
    rows = stack.grid()
    for i in rows.index:
        found = {f"val_{k}": v for k, v in val.fairness(on_train[i], on_val[i]).items()}
        judged = test.fairness(on_train[i], on_test[i])
        judged |= test.accuracy(on_train[i], on_test[i], on_baseline[i])
        found |= {f"test_{k}": v for k, v in judged.items()}
        if twice:
            twin = accuracy.concordance_index(on_test[i + len(rows)], ready.test.time,
                                              ready.test.event)
            found["unstable"] = int(abs(twin - found["test_c_index"]) > MOVED)
        for key, value in found.items():
            rows.loc[i, key] = value
    keys = {k: getattr(stack, k) for k in KEYS if k not in rows}
    return rows.assign(**keys).reindex(columns=columns())
