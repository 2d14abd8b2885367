"""Two published rows, trained from scratch as the paper's authors did, to the fourth decimal.

Ten repeats each, less than half a minute in all.
"""

import numpy as np
import pandas as pd
import pytest

from drocox import dual_constant
from drocox.paper.prepare import prepare
from drocox.paper.protocol import REPEATS, Stack
from drocox.paper.run import run_stack
from drocox.training import dro_objective, fit_stack, initial_parameters

pytestmark = pytest.mark.slow


def compare(found: pd.Series, published: dict, tolerance: float):
    """Compare means over repeats with published ones, and show all that differ at once."""
    near = {key: abs(found[key] - value) <= tolerance for key, value in published.items()}
    assert not {key: (found[key], published[key]) for key, close in near.items() if not close}


def test_cox_on_seer_gives_the_published_row():
    """Table 4, Cox: learning rate of the largest validation c-index in every repeat."""
    chosen = []
    for repeat in REPEATS:
        frame = run_stack(Stack("as_published", "seer", "Cox", repeat))
        chosen.append(frame.loc[frame["val_c_index"].idxmax()])
    runs = pd.DataFrame(chosen).filter(like="test_").rename(columns=lambda c: c[len("test_") :])
    runs["f_a"] = (runs["f_i"] + runs["f_g_race"] + runs["f_cap"]) / 3
    mean = runs.astype(float).mean()
    published = {
        "c_index": 0.7409,
        "auc": 0.7624,
        "lpl": -5.9427,
        "ibs_misaligned": 0.0964,
        "f_i": 0.6105,
        "f_g_race": 0.1183,
        "f_cap": 0.6750,
        "f_a": 0.4679,
    }
    compare(mean, published, 0.0002)
    compare(mean, {"ci_percent_race": 1.188}, 0.005)
    assert mean["ibs"] < 0.09  # aligned with their own outcomes, the same curves are better


def test_dro_cox_on_support_gives_the_published_row():
    """Table 3, DRO-COX: learning rate 0.01 and alpha 0.5 in every repeat."""
    rows = []
    for repeat in REPEATS:
        ready = prepare("as_published", "support", repeat)
        start = initial_parameters(ready.X[0].shape[1], None, ready.weight_seed)
        objective = dro_objective(
            ready.risk, dual_constant(0.5, rule="paper"), ready.procedure.ties
        )
        models = fit_stack(ready.X[0], objective, start, [0.01])
        train_scores, _, scores = (models.scores(X)[0] for X in ready.X)
        judge = ready.judges[1]
        fair = judge.fairness(train_scores, scores)
        rows.append(fair | judge.accuracy(train_scores, scores, train_scores))
    mean = pd.DataFrame(rows).mean()
    published = {"c_index": 0.5734, "auc": 0.6083, "lpl": -6.9388, "f_i": 0.0378, "f_cap": 0.0731}
    compare(mean, published, 0.0003)
    assert np.isfinite(mean).all()
