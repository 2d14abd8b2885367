"""Evaluation: all metrics of a model on one part of the data.

:func:`evaluate` is for one model. The sweep keeps a :class:`Judge` for each part, which prepares
once what does not depend on the model: time grids, censoring, pairs of patients, group codes.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from drocox import _checks, accuracy, fairness, regularizers
from drocox.cox import breslow_survival
from drocox.data import SurvivalData


def scaled_features(train: SurvivalData, *others: SurvivalData) -> list[np.ndarray]:
    """Features of all parts, imputed by medians and scaled by means and deviations of ``train``."""
    imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(train.X)
    scaler = StandardScaler().fit(imputer.transform(train.X))
    return [scaler.transform(imputer.transform(part.X)) for part in (train, *others)]


class Judge:
    """Metrics of any number of models on one part, whose scaled features are ``X``.

    ``train`` gives censoring and baseline hazard; ``ties`` is for the log partial likelihood;
    ``order``, if given, is the order of the predictions in the misaligned Brier score.
    """

    def __init__(
        self, train: SurvivalData, part: SurvivalData, X, ties: str = "breslow", order=None
    ):
        self.train, self.part, self.ties, self.order = train, part, ties, order
        self.pairs = regularizers.all_pairs(X)
        self.times = accuracy.brier_times(train.time, part.time)

    def fairness(self, train_scores, scores, attributes=None) -> dict[str, float]:
        """c-index and fairness metrics, for every attribute or those named."""
        part = self.part
        groups = {name: part.groups[name] for name in attributes or part.groups}
        out = {"c_index": accuracy.concordance_index(scores, part.time, part.event)}
        for suffix, shift in (("", 0.0), ("_centred", np.mean(train_scores))):
            hazards = np.exp(scores - shift)
            out[f"f_i{suffix}"] = fairness.individual(hazards, self.pairs)
            out[f"f_cap{suffix}"] = fairness.intersectional(hazards, part.group_matrix)
            for name, codes in groups.items():
                out[f"f_g{suffix}_{name}"] = fairness.group(hazards, codes)
        imparity = fairness.concordance_imparities(scores, part.time, part.event, groups)
        return out | {f"ci_percent_{name}": value for name, value in imparity.items()}

    def _curves(self, baseline_scores, scores) -> torch.Tensor:
        return breslow_survival(
            torch.as_tensor(baseline_scores),
            self.train.time,
            self.train.event,
            torch.as_tensor(scores),
            self.times,
        )

    def accuracy(self, train_scores, scores, published_baseline=None) -> dict[str, float]:
        """AUC, log partial likelihood and Brier scores.

        ``published_baseline`` holds the training scores behind the baseline of the misaligned Brier
        score, which is left out where the judge has no order for it.
        """
        train, part = self.train, self.part
        outcomes, score = (train.time, train.event), (part.time, part.event, self.times)
        curves = self._curves(train_scores, scores)
        out = {
            "auc": accuracy.cumulative_auc(*outcomes, scores, part.time, part.event),
            "lpl": accuracy.log_partial_likelihood(scores, part.time, part.event, self.ties),
            "ibs": accuracy.integrated_brier_score(*outcomes, curves, *score),
        }
        if self.order is not None:
            out["ibs_misaligned"] = accuracy.misaligned_brier_score(
                *outcomes, self._curves(published_baseline, scores), *score, self.order
            )
        return out


def evaluate(
    train: SurvivalData, test: SurvivalData, train_scores, test_scores, attribute: str
) -> dict[str, float]:
    """All nine metrics of one model, for one sensitive attribute, a key of ``test.groups``.

    ``train_scores`` (n_train,) and ``test_scores`` (n_test,) are the model's, higher for earlier
    events. The training part gives censoring, baseline hazard, and (for F_I) the medians, means and
    deviations that features are imputed and scaled by. Returns a dict with the keys c_index, auc,
    lpl, ibs, f_i, f_g, f_cap, f_a, ci_percent.
    """
    _checks.one_of(attribute, "attribute", test.groups)
    train_scores = _checks.numbers(train_scores, "train_scores", 1)
    test_scores = _checks.numbers(test_scores, "test_scores", 1)
    _checks.same_length(train_scores=train_scores, train=train.time)
    _checks.same_length(test_scores=test_scores, test=test.time)
    judge = Judge(train, test, scaled_features(train, test)[1])
    fair = judge.fairness(train_scores, test_scores, [attribute])
    f_g = fair[f"f_g_{attribute}"]
    return (
        {"c_index": fair["c_index"]}
        | judge.accuracy(train_scores, test_scores)
        | {
            "f_i": fair["f_i"],
            "f_g": f_g,
            "f_cap": fair["f_cap"],
            "f_a": (fair["f_i"] + f_g + fair["f_cap"]) / 3,
            "ci_percent": fair[f"ci_percent_{attribute}"],
        }
    )
