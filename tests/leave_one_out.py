"""Figures of held-out patients by loops over pairs, and leaving out one patient after the other."""

import numpy as np
import pandas as pd

import drocox
from drocox.heldout import HeldOut

SEEDS = range(16)
EACH_KIND = range(6)  # one to three folds, two or three sites, with and without a baseline


def drawn(seed):
    """Few patients with ties in times and scores, in one to three folds, some with a baseline."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(24, 45))
    time = rng.integers(1, 12, n).astype(float)
    event = rng.random(n) < rng.uniform(0.5, 0.9)
    scores = rng.integers(-3, 4, n) / 2 + 0.1 * (rng.random(n) < 0.3)
    fold = rng.permutation(np.arange(n) % (1 + seed % 3))
    expected = rng.uniform(0.1, 2.0, n) if seed % 2 else None
    groups = {"site": rng.permutation(np.arange(n) % (2 + seed % 2)), "sex": rng.integers(0, 2, n)}
    data = drocox.SurvivalData("d", pd.DataFrame({"x": scores}), time, event, groups)
    return data, HeldOut(scores, time, event, fold, expected)


def b1_point(f, time, event, i, j):
    """Points of a pair in Algorithm B.1; None if the pair cannot be compared."""
    if time[i] == time[j]:
        if event[i] and event[j]:
            return 1.0 if f[i] == f[j] else 0.5
        if not event[i] and not event[j]:
            return None
        dead, alive = (i, j) if event[i] else (j, i)
        return 1.0 if f[dead] > f[alive] else 0.5
    first, last = (i, j) if time[i] < time[j] else (j, i)
    if not event[first]:
        return None
    return 1.0 if f[first] > f[last] else 0.5 if f[first] == f[last] else 0.0


def harrell_point(f, time, event, i, j):
    """Points of a pair in Harrell's c-index; None if the pair cannot be compared."""
    for dead, other in ((i, j), (j, i)):
        later = time[other] > time[dead] or (time[other] == time[dead] and not event[other])
        if event[dead] and later:
            apart = f[dead] - f[other]
            return 1.0 if apart > 1e-8 else 0.5 if apart >= -1e-8 else 0.0
    return None


def points_and_pairs(patients, i, others, point):
    """Points and number of the pairs of a patient with others of the same fold."""
    found = []
    for j in np.flatnonzero(others & (patients.fold == patients.fold[i])):
        if i != j:
            found.append(point(patients.scores, patients.time, patients.event, i, j))
    known = [one for one in found if one is not None]
    return np.array([sum(known), len(known)])


def concordance(patients, members, others=None, point=b1_point):
    """Of the pairs of members with others, by default with everybody, the share ordered rightly."""
    others = np.full(len(members), True) if others is None else others
    of_each = [points_and_pairs(patients, i, others, point) for i in np.flatnonzero(members)]
    points, pairs = np.sum(of_each, axis=0)
    return points / pairs


def c_index(patients, members):
    return concordance(patients, members, members, harrell_point)


def calibration(patients, members):
    return patients.event[members].sum() / patients.expected[members].sum()


def mean_risk(patients, members):
    logs = []
    for i in np.flatnonzero(members):
        others = patients.scores[patients.fold == patients.fold[i]]
        logs.append(patients.scores[i] - others.mean())
    return np.exp(np.mean(logs))


LITERAL = {
    "c_index": c_index,
    "calibration": calibration,
    "concordance": concordance,
    "mean_risk": mean_risk,
}


def left_out(loop, patients, members):
    """The estimate without each patient in turn."""
    everyone = np.arange(len(members))
    return np.array(
        [loop(patients.subset(everyone != i), members[everyone != i]) for i in everyone]
    )


def standard_error(without):
    n = len(without)
    return np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
