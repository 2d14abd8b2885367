"""The slope of a recalibrated model: how much its held-out scores should count.

Scores that minimise another risk than the likelihood rank patients, but lie too close together or
too far apart for survival curves. One coefficient puts that right, fitted to scores of models that
had not seen the patient.
"""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from drocox.cox import risk_sets
from drocox.sample import Sample
from drocox.solver import minimise

FOLDS = 5


def cross_fitted_slope(model: BaseEstimator, sample: Sample) -> float:
    """Coefficient of the held-out scores of five folds in a Cox regression.

    Folds are dealt out in order of event, time and features, so the slope depends on no seed and
    not on the order of the rows.

    Parameters
    ----------
    model : DROCox
        What to fit to four folds each, without recalibration.
    sample : Sample

    Returns
    -------
    float
        At least 0: less would say that the scores do not rank.
    """
    present = sample.weights > 0
    if (sample.event & present).sum() < FOLDS:
        raise ValueError(f"recalibrate=True needs {FOLDS} events; pass more, or leave it out")
    order = np.lexsort((*sample.X.T, sample.time, sample.event, present))
    fold = np.empty(len(order), int)
    fold[order] = np.arange(len(order)) % FOLDS
    held_out = np.empty(len(order))
    for k in range(FOLDS):
        held_out[fold == k] = _held_out_scores(model, sample, fold == k)
    # models of different folds may differ by a constant: compare within folds
    strata = fold if sample.strata is None else fold + FOLDS * sample.strata
    risk = risk_sets(sample.time, sample.event, strata=strata)
    weights = None if sample.first is not None else sample.weights
    slope = minimise(held_out[:, None], risk, 1.0, weights=weights).coef[0]
    return max(0.0, float(slope))


def _held_out_scores(model: BaseEstimator, sample: Sample, left_out: np.ndarray) -> np.ndarray:
    """Scores of some patients by a model of all others."""
    others = sample.rows(~left_out)
    weights = None if sample.first is not None else others.weights  # a split takes none
    copy = clone(model).set_params(recalibrate=False, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the whole model's will do
        copy.fit(others.X, others.y, sample_weight=weights, strata=others.strata)
    return copy.predict(sample.X[left_out])
