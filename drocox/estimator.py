"""The estimator: DRO-COX for a user's own data, in the style of scikit-survival."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import torch
from sklearn.base import BaseEstimator, _fit_context
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data
from sksurv.base import SurvivalAnalysisMixin
from sksurv.functions import StepFunction
from sksurv.util import check_array_survival

from drocox import _checks, accuracy, training
from drocox.cox import RiskSets, cox_losses, risk_sets, split_cox_losses
from drocox.dro import RULES, dro_risk, dual_constant, optimal_eta, worst_case_weights


class DROCox(SurvivalAnalysisMixin, BaseEstimator):
    r"""Distributionally robust Cox model, linear or with one hidden layer.

    The scores :math:`f(x; \theta)` minimise the worst mean Cox loss over all distributions near
    the data (DRO-COX, equation (7) of Hu & Chen, PMLR 193, 2022), to protect every group of at
    least a share :math:`\alpha` of the patients without knowing the groups:

    .. math:: \min_{\theta,\, \eta}\; C \sqrt{\tfrac1n \sum_i [\ell_i(\theta) - \eta]_+^2} + \eta,
              \qquad C = 1/\sqrt\alpha,

    with :math:`\ell_i` the Cox loss of patient :math:`i` (Breslow's ties, 0 if censored). With
    ``split=True`` (DRO-COX (SPLIT), equations (8) and (9)) a random half :math:`D_1` is compared
    with the rest, :math:`D_2`, and the reverse, and the two risks are added.

    Training is full-batch Adam; the order of the rows matters to the split only. Features are
    used as they are: put a ``StandardScaler`` in front. Scores of a network are centred on the
    training patients, as Cox losses cannot see a constant.

    Parameters
    ----------
    alpha : float in (0, 1]
        Smallest share of the patients to protect as a group; 1 is the ordinary Cox model.
    rule : {"sharp", "paper", "definition", "cvar"}
        What ``alpha`` means. "sharp", the constant above, protects every group of at least that
        share and no smaller ones; "paper" is the printed :math:`C = \sqrt{2(1/\alpha - 1)^2 + 1}`,
        which protects much smaller groups too; see :func:`drocox.dual_constant` and, for "cvar",
        :func:`drocox.dro_risk`.
    split : bool
        Whether to split the sample, at random and stratified by event.
    hidden_units : int, optional
        ReLU units of a hidden layer; by default scores are linear, :math:`f(x) = \beta^T x`.
    learning_rate, n_iter : float > 0, int >= 1
        Step size and number of steps of Adam.
    random_state : int, RandomState or None
        Decides the initial weights and the split.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients :math:`\beta`; linear models only.
    eta_ : float, or array of shape (2,) if ``split``
        Minimiser :math:`\eta` after training; ``-inf`` with ``alpha=1``, whose mean is a limit
        (except for "cvar": the smallest loss in the tail).
    worst_case_weights_ : array of shape (n_samples,)
        Worst-case distribution over the training patients; sums to 1. If split, the even mixture
        of the worst cases of :math:`D_1` and :math:`D_2`.
    first_ : bool array of shape (n_samples,)
        True for the patients of :math:`D_1`; only if ``split``.
    c_ : float or None
        The dual constant that was used; None with ``rule="cvar"``.
    loss_, n_iter_, unique_times_
        Risk after training (if split, the sum of both); steps taken; distinct training times.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from drocox import load_dataset
    >>> data = load_dataset("seer")
    >>> model = make_pipeline(StandardScaler(), DROCox(alpha=0.5)).fit(data.X, data.y)
    >>> curve = model.predict_survival_function(data.X[:1])[0]
    >>> print(f"c-index {model.score(data.X, data.y):.2f}, survival to month 60 {curve(60):.2f}")
    c-index 0.73, survival to month 60 0.82
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "rule": [StrOptions(set(RULES))],
        "hidden_units": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, np.inf, closed="neither")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "split": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        alpha: float = 0.2,
        rule: str = "sharp",
        split: bool = False,
        hidden_units: int | None = None,
        learning_rate: float = 0.01,
        n_iter: int = 500,
        random_state=0,
        verbose: bool = False,
    ):
        self.alpha = alpha
        self.rule = rule
        self.split = split
        self.hidden_units = hidden_units
        self.learning_rate = learning_rate
        self.n_iter = n_iter
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y: np.ndarray) -> DROCox:
        """Train the model.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Numeric features without missing values.
        y : structured array of shape (n_samples,)
            Events (bool) and times, as ``sksurv.util.Surv`` makes it.

        Returns
        -------
        DROCox
            This object.
        """
        how = {"dtype": None, "ensure_all_finite": False, "ensure_min_samples": 2}
        X = validate_data(self, X, None if y is None else "no_validation", **how)
        X = _checks.numbers(X, "X")
        time, event = _outcomes(X, y)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        first = _half(event, seed) if self.split else np.full(len(event), True)

        # Small alpha amplifies rounding: train in one order, whatever the order of the rows given
        order = np.lexsort((*X.T, event, time))
        X = X[order]
        time = time[order]
        event = event[order]
        risk = risk_sets(time, event)
        parts = [first[order], ~first[order]] if self.split else [first[order]]
        objective = self._objective(risk, parts)
        with np.errstate(over="ignore", invalid="ignore"):  # the objective reports it
            model = training.fit_stack(
                X,
                objective,
                training.initial_parameters(X.shape[1], self.hidden_units, int(seed)),
                [self.learning_rate],
                hidden=self.hidden_units,
                n_iter=self.n_iter,
                centre=self.hidden_units is not None,
                verbose=self.verbose,
            )
            scores = torch.from_numpy(model.scores(X))
            self.loss_ = float(objective(scores))
        self._model = model
        self.n_iter_ = self.n_iter
        for name in ("coef_", "first_"):  # of an earlier fit
            vars(self).pop(name, None)
        if self.hidden_units is None:
            self.coef_ = model.theta[0]
        if self.split:
            self.first_ = first
        self._keep_worst_case(self._losses(scores[0], risk, parts), parts, order)
        self._keep_baseline(scores[0], risk, time, event)
        return self

    def _losses(self, scores: torch.Tensor, risk: RiskSets, parts: list) -> torch.Tensor:
        if self.split:
            return split_cox_losses(scores, risk, first=parts[0])
        return cox_losses(scores, risk)

    def _objective(self, risk: RiskSets, parts: list) -> training.Objective:
        """What is minimised, as a function of the scores (1, n)."""
        self.c_ = None if self.rule == "cvar" else dual_constant(self.alpha, rule=self.rule)

        def objective(scores: torch.Tensor) -> torch.Tensor:
            if not torch.isfinite(scores).all():
                raise ValueError(
                    "training diverged to NaN or infinite scores; scale X (put a "
                    "StandardScaler in front) or lower learning_rate"
                )
            if self.c_ is not None:
                return robust(scores)
            losses = self._losses(scores, risk, parts)
            return sum(dro_risk(losses[:, p], self.alpha, rule="cvar") for p in parts)

        if self.split:
            robust = training.split_objective(risk, parts[0], self.c_)
        else:
            robust = training.dro_objective(risk, self.c_)
        return objective

    def _keep_worst_case(self, losses: torch.Tensor, parts: list, order: np.ndarray) -> None:
        """Minimiser and worst case of the trained model; patients in the order they were given."""
        self.worst_case_weights_ = np.empty(len(order))
        eta = []
        for part in parts:
            weights = worst_case_weights(losses[part], self.alpha, rule=self.rule)
            self.worst_case_weights_[order[part]] = weights.numpy() / len(parts)
            if self.c_ is None:  # the smallest loss in the tail
                eta.append(float(losses[part][weights > 0].min()))
            else:
                eta.append(float(optimal_eta(losses[part], self.c_)))
        self.eta_ = np.array(eta) if self.split else eta[0]

    def _keep_baseline(self, scores: torch.Tensor, risk: RiskSets, time, event) -> None:
        """Breslow's baseline: loss plus score of an event is the log sum over its risk set."""
        log_sum = (cox_losses(scores, risk) + scores).numpy()[event]
        steps = np.logaddexp.accumulate(-log_sum)
        self.unique_times_ = np.unique(time)
        self._grid = np.union1d(0.0, self.unique_times_)  # curves start at time 0
        happened = np.searchsorted(time[event], self._grid, side="right")
        self._log_baseline = np.append(-np.inf, steps)[happened]

    def predict(self, X) -> np.ndarray:
        """Scores: the higher, the higher the risk.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self, "unique_times_")
        X = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
        return self._model.scores(_checks.numbers(X, "X"))[0]

    def score(self, X, y: np.ndarray) -> float:
        """Harrell's concordance index of the predictions.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
        y : structured array of shape (n,)
            Events and times.

        Returns
        -------
        float
        """
        scores = self.predict(X)
        return accuracy.concordance_index(scores, *_outcomes(scores, y))

    def predict_survival_function(self, X, return_array: bool = False) -> np.ndarray:
        r"""Survival :math:`S(t \mid x) = \exp(-H_0(t) e^{f(x)})`, a callable for each row of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
        return_array : bool
            Whether to return the values at ``unique_times_`` instead of functions.

        Returns
        -------
        array of n StepFunctions, or of shape (n, number of times)
            The functions are defined from 0 to the last training time.
        """
        return self._functions(X, lambda hazard: np.exp(-hazard), return_array)

    def predict_cumulative_hazard_function(self, X, return_array: bool = False) -> np.ndarray:
        r"""Cumulative hazard :math:`H_0(t) e^{f(x)}`, with Breslow's :math:`H_0`.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
        return_array : bool
            Whether to return the values at ``unique_times_`` instead of functions.

        Returns
        -------
        array of n StepFunctions, or of shape (n, number of times)
        """
        return self._functions(X, lambda hazard: hazard, return_array)

    def _functions(self, X, transform, return_array: bool) -> np.ndarray:
        with np.errstate(over="ignore"):
            values = transform(np.exp(self.predict(X)[:, None] + self._log_baseline))
        if return_array:
            return values[:, -len(self.unique_times_) :]
        return np.array([StepFunction(self._grid, row) for row in values], dtype=object)


def _outcomes(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and events of ``y``, as many as rows of ``X``."""
    try:
        event, time = check_array_survival(X, y, allow_all_censored=True)
    except ValueError as error:
        raise ValueError(
            f"y is refused: {str(error).rstrip('.')}; make it with sksurv.util.Surv."
            "from_arrays(event, time), a time >= 0 for each row of X"
        ) from error
    return _checks.outcomes(time, event, ("time in y", "event in y"))


def _half(event: np.ndarray, seed: int) -> np.ndarray:
    """Mask of D1, a random half, stratified by event where there are enough of both kinds."""
    strata = event if min(event.sum(), (~event).sum()) > 1 else None
    rows = np.arange(len(event))
    chosen, _ = train_test_split(rows, test_size=0.5, stratify=strata, random_state=seed)
    first = np.isin(rows, chosen)
    if not event[first].any() or not event[~first].any():
        raise ValueError(
            "split=True needs an event in each half, but y has too few; pass more "
            "patients with an event, or split=False"
        )
    return first
