"""Evaluation: all metrics of a model on one part of the data.

:func:`evaluate` is for one model. The sweep keeps a :class:`Judge` for each part, which prepares
everything that does not depend on the model: time grids, censoring, pairs of patients, group codes.
"""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from drocox import _checks, accuracy, concordance, fairness, pairs
from drocox.curves import log_baseline, log_risk_sums
from drocox.data import SurvivalData, scaled_features
from drocox.risksets import risk_sets

EVALUATED = ("c_index", "auc", "lpl", "ibs", "f_i", "f_g", "f_cap", "f_a", "ci_percent")


class Judge:
    """Metrics of any number of models on one ``part``.

    The training part gives the censoring distribution and the baseline hazard; ``X`` are the scaled
    features of ``part``. ``ties`` is for the log partial likelihood, ``order`` the row order of the
    predictions in the published, misaligned Brier score. ``keep`` stores the distances of all pairs
    of patients, for repeated use.
    """

    def __init__(
        self, train: SurvivalData, part: SurvivalData, X, ties="breslow", order=None, keep=True
    ):
        self.part = part
        self.outcomes = (train.time, train.event, part.time, part.event)
        self.ties = ties
        self.order = order
        self.pairs = pairs.all_pairs(X, keep=keep)
        self.times = accuracy.brier_times(train.time, part.time)
        self.risk = risk_sets(part.time, part.event)
        self.train_risk = risk_sets(train.time, train.event)

    @cached_property
    def _codes(self) -> dict[str, np.ndarray]:
        """Codes of the groups by attribute."""
        n = len(self.part)
        return {name: _checks.codes(codes, name, n) for name, codes in self.part.groups.items()}

    @cached_property
    def _cells(self) -> tuple[np.ndarray, int]:
        """Codes of the intersections, and their number."""
        return pairs.cells(np.column_stack(list(self._codes.values())), len(self.part))

    @cached_property
    def _auc(self) -> accuracy.CumulativeAUC:
        return accuracy.CumulativeAUC(*self.outcomes)

    @cached_property
    def _brier(self) -> accuracy.BrierScore:
        return accuracy.BrierScore(*self.outcomes, self.times)

    def fairness(self, train_scores, scores, attributes=None) -> dict[str, float]:
        """c-index and fairness metrics, by name.

        ``c_index``; ``f_i``, ``f_cap`` and for each attribute ``f_g_<attribute>``, for scores as
        they are and (``..._centred``) minus the mean training score; ``ci_percent_<attribute>``
        and, for two groups, their concordance fractions ``cf_0_...`` and ``cf_1_...`` with
        ``ci_signed_...``, 100 times the second minus the first.
        """
        names = attributes or self.part.groups
        scores = _checks.numbers(scores, "scores", 1)
        counts = concordance.count(scores, self.risk)
        out = {"c_index": counts.index()}
        out |= self._hazard_fairness(scores, names, "")
        out |= self._hazard_fairness(scores - np.mean(train_scores), names, "_centred")
        for name in names:
            fractions = counts.fractions(self.part.groups[name], name)
            out[f"ci_percent_{name}"] = 100 * float(np.ptp(fractions))
            if len(fractions) == 2:
                out[f"ci_signed_{name}"] = 100 * float(fractions[1] - fractions[0])
                out |= {f"cf_{k}_{name}": float(share) for k, share in enumerate(fractions)}
        return out

    def _hazard_fairness(self, scores: np.ndarray, names, suffix: str) -> dict[str, float]:
        """F_I, F_cap and, for each attribute, F_G; all infinite where hazards overflow."""
        keys = [f"f_i{suffix}", f"f_cap{suffix}", *(f"f_g{suffix}_{name}" for name in names)]
        with np.errstate(over="ignore"):
            h = np.exp(scores)
            huge = not np.isfinite(h.sum())
        if huge:
            return dict.fromkeys(keys, np.inf)
        values = [
            fairness.individual(h, self.pairs),
            fairness.log_range(h, *self._cells),
            *(fairness.group_gap(h, self._codes[name]) for name in names),
        ]
        return dict(zip(keys, values, strict=True))

    def _curves(self, baseline_scores, scores) -> np.ndarray:
        log_sums = log_risk_sums(baseline_scores, self.train_risk)
        (baseline,) = log_baseline(log_sums, self.train_risk, self.times)
        with np.errstate(over="ignore"):
            return np.exp(-np.exp(np.add.outer(scores, baseline)))

    def accuracy(self, train_scores, scores, published_baseline=None) -> dict[str, float]:
        """AUC, log partial likelihood and integrated Brier score, by name.

        With an ``order``, also ``ibs_misaligned``, whose baseline comes from
        ``published_baseline``, the training scores that the published procedure used.
        """
        out = {
            "auc": self._auc(scores),
            "lpl": accuracy.log_partial_likelihood(scores, self.risk, ties=self.ties),
            "ibs": self._brier(self._curves(train_scores, scores)),
        }
        if self.order is not None:
            published = self._curves(published_baseline, scores)
            out["ibs_misaligned"] = self._brier(published[self.order])
        return out


def evaluate(
    train: SurvivalData,
    test: SurvivalData,
    train_scores: ArrayLike,
    test_scores: ArrayLike,
    attribute: str,
) -> dict[str, float]:
    """All nine metrics of one model, for one sensitive attribute.

    Parameters
    ----------
    train, test : SurvivalData
        The training part gives censoring, baseline hazard, and (for F_I) the medians, means and
        deviations that features are imputed and scaled by.
    train_scores, test_scores : arrays of shape (n_train,) and (n_test,)
        The model's scores, higher for earlier events.
    attribute : str
        A key of ``test.groups``.

    Returns
    -------
    dict of str to float
        With the keys c_index, auc, lpl, ibs, f_i, f_g, f_cap, f_a, ci_percent.
    """
    _checks.one_of(attribute, "attribute", test.groups)
    train_scores = _checks.numbers(train_scores, "train_scores", 1)
    test_scores = _checks.numbers(test_scores, "test_scores", 1)
    _checks.same_length(train_scores=train_scores, train=train.time)
    _checks.same_length(test_scores=test_scores, test=test.time)
    judge = Judge(train, test, scaled_features(train, test)[1], keep=False)
    metrics = judge.fairness(train_scores, test_scores, [attribute])
    metrics |= judge.accuracy(train_scores, test_scores)
    metrics["f_g"] = metrics[f"f_g_{attribute}"]
    metrics["ci_percent"] = metrics[f"ci_percent_{attribute}"]
    metrics["f_a"] = (metrics["f_i"] + metrics["f_g"] + metrics["f_cap"]) / 3
    return {name: metrics[name] for name in EVALUATED}
