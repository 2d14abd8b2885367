r"""Whether another model of the same features would rank a group better.

A ridge Cox model is fitted to the group alone, in five parts: each part is scored by a model of the
other four, whose penalty is the one with the highest partial likelihood when each of these four is
left out in turn.
Its gain is the c-index of these scores minus that of the model under audit, over the same pairs,
those within a part. Below 0 the group has too few patients for a better model of its own, or there
is none; above 0 its features say more about it than the model does. It is for these models and
other patients like these, as all intervals of an audit are.
"""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pandas as pd

from drocox import _checks, concordance
from drocox.accuracy import log_partial_likelihood
from drocox.heldout import Estimate, HeldOut
from drocox.risksets import risk_sets
from drocox.solver import ridge_path

FOLDS = 5
EVENTS_NEEDED = 20  # of a group, for a model of its own
MOST_PATIENTS = 4000  # of a larger group every second or third is used, in the order of times
MOST_FEATURES = 50  # of more, as many principal components are used
LARGEST = 5.0  # standard deviations of a feature from its mean
PENALTIES = np.geomspace(1.0, 1e-3, 6)  # for standardised features, the strongest first
KNOWS = 0.9  # c-index, or AUC for the event, that no honest column is likely to have


def named_features(X: pd.DataFrame, names: Iterable[str] | None) -> pd.DataFrame:
    """The columns that may be used; the name of a category stands for all of its columns."""
    columns: list[str] = []
    for name in [names] if isinstance(names, str) else names or ():
        of_category = [one for one in X.columns if str(one).startswith(f"{name}=")]
        if name not in X.columns and not of_category:
            _checks.one_of(name, "features", X.columns)
        columns += [name] if name in X.columns else of_category
    return X[list(dict.fromkeys(columns))]


def knows_outcome(X: pd.DataFrame, time: np.ndarray, event: np.ndarray) -> list[str]:
    """Columns that alone tell who has the event, or in which order."""
    found = []
    for name in X.columns:
        values = X[name].fillna(X[name].median()).fillna(0).to_numpy(float)
        order = concordance.count(values, time, event).index()
        below = concordance.weight_below(values, (~event).astype(float))
        who = order if event.all() else below[event].mean() / (~event).sum()
        if max(order, 1 - order, who, 1 - who) >= KNOWS:
            found.append(str(name))
    return found


class OwnModelGain:
    """The gain of groups by their own models, which serve several audits, as a measure."""

    def __init__(self, X: pd.DataFrame):
        self.X = X.to_numpy()
        self.scored: dict[bytes, np.ndarray] = {}
        self.knows = False  # whether some group's own model ranks it almost perfectly

    def __call__(self, patients: HeldOut, members: np.ndarray) -> Estimate:
        """The c-index of the group's own model minus that of the scores; NaN with few events."""
        nothing = Estimate(np.nan, np.full(len(members), np.nan))
        rows = np.flatnonzero(members)
        time, event, scores = patients.time[rows], patients.event[rows], patients.scores[rows]
        order = np.lexsort((scores, event, time))
        used = rows[order[:: -(-len(rows) // MOST_PATIENTS)]]
        part = patients.fold[used] % FOLDS  # pairs within a fold of the audit stay together
        if len(np.unique(part)) < FOLDS:
            part = np.arange(len(used)) % FOLDS
        if len(np.unique(part[patients.event[used]])) < FOLDS or event.sum() < EVENTS_NEEDED:
            return nothing
        key = used.tobytes() + part.tobytes()
        if key not in self.scored:
            row = used if patients.row is None else patients.row[used]
            self.scored[key] = own_scores(
                self.X[row], patients.time[used], patients.event[used], part
            )
        # the folds of the audit within each part
        fold = np.unique(FOLDS * patients.fold[used] + part, return_inverse=True)[1]
        outcomes = patients.time[used], patients.event[used], fold
        everybody = np.full(len(used), True)
        own = HeldOut(self.scored[key], *outcomes).c_index(everybody)
        model = HeldOut(patients.scores[used], *outcomes).c_index(everybody)
        self.knows |= own.value >= KNOWS
        without = np.full(len(members), own.value - model.value)
        without[used] = own.without - model.without
        return Estimate(own.value - model.value, without)


def own_scores(X: np.ndarray, time: np.ndarray, event: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Scores of each part's patients by a ridge Cox model of the others."""
    Z = _prepared(X)
    by_penalty = {}  # scores of everybody by models without one or two parts
    for left_out in [*combinations(range(FOLDS), 1), *combinations(range(FOLDS), 2)]:
        train = ~np.isin(part, left_out)
        by_penalty[left_out] = Z @ _path(Z[train], time[train], event[train])
    scores = np.empty(len(time))
    for k in range(FOLDS):
        likelihood = np.zeros(len(PENALTIES))
        for other in range(FOLDS):
            if other != k:
                rows = part == other
                tried = by_penalty[min(k, other), max(k, other)][rows]
                risk = risk_sets(time[rows], event[rows])
                of_event = [log_partial_likelihood(scores, risk) for scores in tried.T]
                likelihood += event[rows].sum() * np.array(of_event)
        scores[part == k] = by_penalty[(k,)][part == k, np.argmax(likelihood)]
    return scores


def _prepared(X: np.ndarray) -> np.ndarray:
    """Features that vary, with medians for missing values, standardised; of many, components."""
    frame = pd.DataFrame(X)
    Z = frame.fillna(frame.median()).fillna(0).to_numpy()
    Z = Z[:, np.ptp(Z, axis=0) > 0]
    if not Z.shape[1]:
        return np.zeros((len(X), 1))
    Z = np.clip((Z - Z.mean(axis=0)) / Z.std(axis=0), -LARGEST, LARGEST)
    if Z.shape[1] > MOST_FEATURES:  # a ridge penalty is the same in any orthogonal coordinates
        u, size, _ = np.linalg.svd(Z, full_matrices=False)
        Z = (u * size)[:, :MOST_FEATURES]
    return Z


def _path(Z: np.ndarray, time: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Coefficients for each penalty, a column each; 0 where there is nothing to fit."""
    if not Z.any() or not event.any():
        return np.zeros((Z.shape[1], len(PENALTIES)))
    return ridge_path(Z, risk_sets(time, event), PENALTIES)
