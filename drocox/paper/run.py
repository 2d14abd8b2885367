"""From one stack of the protocol to one row per trained model: training and evaluation.

In the repeats ``TWICE`` every model is trained twice, the second time from initial weights
multiplied by ``1 + PERTURBATION``. ``moved`` is the largest change of a test score, which says
whether digits can be expected to agree across platforms; a run whose test c-index changes by more
than ``UNSTABLE`` is marked ``unstable``. In the other repeats stability is unknown.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from drocox import accuracy, regularizers, training
from drocox.dro import dual_constant
from drocox.paper.prepare import Prepared, prepare
from drocox.paper.protocol import ATTRIBUTES, HIDDEN, KEYS, METHODS, Setting, Stack
from drocox.training import Objective, ScoreStack

CHUNK = 9  # models per pass: their hidden layers stay in the processor's cache
TWICE = (1, 2, 3)  # repeats in which stability is measured: it costs a second training
PERTURBATION = 1e-12  # relative change of the initial weights that a stable run does not notice
UNSTABLE = 1e-3  # change of the test c-index from which a run counts as unstable

_prepared = lru_cache(maxsize=4)(prepare)  # shared by several stacks, which do not change it


def _penalty(name: str | None, ready: Prepared, attribute: str):
    """The penalty of a method on the training part: prepared pairs or a function of hazards."""
    X = ready.X[0]
    train = ready.train
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


def _objective(stack: Stack, ready: Prepared, settings: Sequence[Setting], penalty) -> Objective:
    """The function that the models with these settings minimise."""
    method = METHODS[stack.method]
    ties = ready.procedure.ties
    if method.loss == "cox":
        return training.cox_objective(ready.risk, ties, penalty, [s.lam for s in settings])
    alphas = [setting.alpha for setting in settings if setting.alpha is not None]
    c = np.array([dual_constant(alpha, rule="paper") for alpha in alphas])
    if method.loss == "dro":
        return training.dro_objective(ready.risk, c, ties)
    through = ready.procedure.reference_gradient
    return training.split_objective(ready.risk, ready.first, c, stack.sides or 2, through)


def in_chunks(jobs: Sequence, fit: Callable[[Sequence], ScoreStack]) -> ScoreStack:
    """The models of all jobs in one stack, fitted a few at a time."""
    done = [fit(jobs[low : low + CHUNK]) for low in range(0, len(jobs), CHUNK)]
    theta = np.vstack([trained.theta for trained in done])
    return ScoreStack(theta, done[0].hidden, np.concatenate([trained.offset for trained in done]))


def fit(stack: Stack, ready: Prepared, scales=(1.0,), n_iter: int = training.N_ITER) -> ScoreStack:
    """Train the models of a stack by Adam, once for each factor of the initial weights.

    ``ready`` is the stack's repeat; the models of the first factor in ``scales`` come first.
    """
    hidden = HIDDEN[stack.model]
    start = training.initial_parameters(ready.X[0].shape[1], hidden, ready.weight_seed)
    jobs = [(scale, setting) for scale in scales for setting in stack.grid()]
    penalty = _penalty(METHODS[stack.method].penalty, ready, stack.attribute)
    centre = ready.procedure.centred and hidden is not None

    def fitted(some: Sequence[tuple[float, Setting]]) -> ScoreStack:
        factors, settings = zip(*some, strict=True)
        objective = _objective(stack, ready, settings, penalty)
        rates = [setting.learning_rate for setting in settings]
        starts = np.outer(factors, start)
        return training.fit_stack(
            ready.X[0], objective, starts, rates, hidden=hidden, n_iter=n_iter, centre=centre
        )

    return in_chunks(jobs, fitted)


def columns() -> list[str]:
    """Columns of the stored rows: keys, validation metrics, test metrics, stability."""
    names = sorted({name for attributes in ATTRIBUTES.values() for name in attributes})
    val = ["c_index", "f_i", "f_cap", "f_i_centred", "f_cap_centred"]
    test = ["c_index", "auc", "lpl", "ibs", "ibs_misaligned", *val[1:]]
    for name in names:
        both = [f"f_g_{name}", f"f_g_centred_{name}", f"ci_percent_{name}"]
        val += both
        test += [*both, f"ci_signed_{name}", f"cf_0_{name}", f"cf_1_{name}"]
    return [*KEYS, *(f"val_{c}" for c in val), *(f"test_{c}" for c in test), "moved", "unstable"]


def run_stack(stack: Stack) -> pd.DataFrame:
    """Train and evaluate the models of a stack.

    Parameters
    ----------
    stack : Stack

    Returns
    -------
    DataFrame
        One row per model, in the order of the stack's grid, with the columns of :func:`columns`.
    """
    ready = _prepared(stack.protocol, stack.dataset, stack.repeat, stack.n2_share, stack.sides)
    twice = stack.repeat in TWICE
    models = fit(stack, ready, (1.0, 1 + PERTURBATION) if twice else (1.0,))
    on_train, on_val, on_test = (models.scores(X) for X in ready.X)
    on_baseline = models.scores(ready.baseline_X)
    judge_val, judge_test = ready.judges
    rows = stack.keys()
    for i, row in enumerate(rows):
        val = judge_val.fairness(on_train[i], on_val[i])
        test = judge_test.fairness(on_train[i], on_test[i])
        test |= judge_test.accuracy(on_train[i], on_test[i], on_baseline[i])
        row.update({f"val_{name}": value for name, value in val.items()})
        row.update({f"test_{name}": value for name, value in test.items()})
        if twice:
            again = on_test[i + len(rows)]
            c_index = accuracy.concordance_index(again, ready.test.time, ready.test.event)
            row["moved"] = float(np.abs(again - on_test[i]).max())
            row["unstable"] = int(abs(c_index - test["c_index"]) > UNSTABLE)
    return pd.DataFrame(rows, columns=columns())
