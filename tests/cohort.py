"""Simulated patients."""

from dataclasses import replace

import numpy as np
import pandas as pd

import drocox


def simulated(seed=0, n=300, minority=0.3, effects=(0.2, 0.3, 0.6), groups=2):
    """Patients of several groups, and scores that are right for all groups but the last."""
    rng = np.random.default_rng(seed)
    score = np.array([0.8, 0.5, 0.0])
    group = rng.choice(groups, n, p=[*[(1 - minority) / (groups - 1)] * (groups - 1), minority])
    x = rng.standard_normal((n, 3))
    hazard = np.exp(np.where(group == groups - 1, x @ np.array(effects), x @ score))
    death = rng.exponential(1 / hazard)
    leaves = rng.exponential(1.5, n)
    X = pd.DataFrame(x, columns=list("abc")).assign(member=group == groups - 1)
    data = drocox.SurvivalData("cohort", X, np.minimum(death, leaves), death <= leaves)
    groups = {"group": group, "sex": rng.integers(0, 2, n)}
    return replace(data, groups=groups), x @ score


def patients(n=40, d=2, seed=0):
    """Features, tied times and events that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    time = rng.integers(1, 25, n).astype(float)
    event = rng.random(n) < 0.5
    event[:2] = True, False
    return X, time, event
