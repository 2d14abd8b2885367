"""The estimator: DRO-COX for a user's own data, in the style of scikit-survival."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
import torch
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data
from sksurv.base import SurvivalAnalysisMixin
from sksurv.functions import StepFunction
from sksurv.util import check_array_survival

from drocox import _checks, accuracy, kernels, training
from drocox.cox import RiskSets, cox_losses, risk_sets, split_cox_losses
from drocox.dro import RULES, dro_risk, dual_constant, worst_case_weights
from drocox.solver import Solution, minimise


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

    Linear models are solved to a certified optimum by :func:`drocox.solver.minimise`, whatever the
    units of the features. Networks are trained by full-batch Adam: put a ``StandardScaler`` in
    front. Their scores are centred on the training patients, as Cox losses cannot see a constant.
    The order of the rows matters to the split only.

    Parameters
    ----------
    alpha : float in (0, 1]
        Smallest share of the patients to protect as a group; 1 is the ordinary Cox model.
    rule : {"sharp", "paper", "definition", "cvar"}
        What ``alpha`` means. "sharp", the constant above, protects every group of at least that
        share and no smaller ones; "paper" is the printed :math:`C = \sqrt{2(1/\alpha - 1)^2 + 1}`,
        which protects much smaller groups too: those of 0.6, 3, 8.4 and 33 % for an ``alpha`` of
        0.1, 0.2, 0.3 and 0.5. See :func:`drocox.dual_constant` and, for "cvar",
        :func:`drocox.dro_risk`.
    split : bool
        Whether to split the sample, at random and stratified by event.
    hidden_units : int, optional
        ReLU units of a hidden layer; by default scores are linear, :math:`f(x) = \beta^T x`.
    solver : {"auto", "convex", "adam"}
        "convex" for linear models, "adam" (as in the paper) for all; "auto" takes "convex" where it
        applies.
    learning_rate : float > 0
        Step size of Adam.
    n_iter : int >= 1
        Number of steps of Adam; most Newton steps of "convex".
    tol : float > 0
        A linear model with a larger ``gap_`` than this gives a ``ConvergenceWarning``.
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
    gap_ : float or None
        How far the risk can be from the smallest possible one: ``loss_`` minus a lower bound of the
        minimum, divided by the larger of 1 and ``loss_``. None for networks, which have no bound.
    c_ : float or None
        The dual constant that was used; None with ``rule="cvar"``.
    loss_, n_iter_, unique_times_
        Risk after training (if split, the sum of both); steps taken; distinct training times.

    Examples
    --------
    >>> from drocox import load_dataset
    >>> data = load_dataset("seer")
    >>> model = DROCox(alpha=0.5).fit(data.X, data.y)
    >>> curve = model.predict_survival_function(data.X[:1])[0]
    >>> print(f"c-index {model.score(data.X, data.y):.2f}, survival to month 60 {curve(60):.2f}")
    c-index 0.73, survival to month 60 0.82
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "rule": [StrOptions(set(RULES))],
        "hidden_units": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"auto", "convex", "adam"})],
        "tol": [Interval(Real, 0, np.inf, closed="right")],
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
        solver: str = "auto",
        learning_rate: float = 0.01,
        n_iter: int = 500,
        tol: float = 1e-6,
        random_state=0,
        verbose: bool = False,
    ):
        self.alpha = alpha
        self.rule = rule
        self.split = split
        self.hidden_units = hidden_units
        self.solver = solver
        self.learning_rate = learning_rate
        self.n_iter = n_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y: np.ndarray, sample_weight=None) -> DROCox:
        """Train the model.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Numeric features without missing values.
        y : structured array of shape (n_samples,)
            Events (bool) and times, as ``sksurv.util.Surv`` makes it.
        sample_weight : array of shape (n_samples,), optional
            Case weights >= 0: whole numbers stand for repeated rows. Not with ``split``.

        Returns
        -------
        DROCox
            This object.
        """
        how = {"dtype": None, "ensure_all_finite": False, "ensure_min_samples": 2}
        X = validate_data(self, X, None if y is None else "no_validation", **how)
        X = _checks.numbers(X, "X")
        time, event = _outcomes(X, y)
        convex = self.solver != "adam" and self.hidden_units is None
        if self.solver == "convex" and not convex:
            raise ValueError(
                "solver='convex' is for linear models; set hidden_units=None, or solver='adam'"
            )
        weights = None
        if sample_weight is not None:
            if self.split:
                raise ValueError("sample_weight cannot be used with split=True; leave out one")
            weights = _checks.weights(sample_weight, len(X))
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        first = _half(event, seed) if self.split else None

        order = slice(None)
        if not convex:  # steps amplify rounding: take them in one order, whatever the given one
            order = np.lexsort((*X.T, event, time))
        X = X[order]
        sample = _Sample(
            risk_sets(time[order], event[order]),
            None if first is None else first[order],
            None if weights is None else weights[order],
        )
        self.c_ = None if self.rule == "cvar" else dual_constant(self.alpha, rule=self.rule)
        solution = None
        if self.hidden_units is None:  # Adam's linear models want the bound of the minimum
            how = {"tol": self.tol, "n_iter": self.n_iter, "verbose": self.verbose}
            how = {"rule": self.rule} | vars(sample) | (how if convex else {})
            solution = minimise(X, how.pop("risk"), self.alpha, **how)
        if convex:
            self._model = training.ScoreStack(solution.coef[None], X.shape[1], None, np.zeros(1))
        else:
            self._model = self._trained(X, sample, int(seed))
        self.n_iter_ = solution.n_iter if convex else self.n_iter
        for name in ("coef_", "first_"):  # of an earlier fit
            vars(self).pop(name, None)
        if self.hidden_units is None:
            self.coef_ = self._model.theta[0]
        if self.split:
            self.first_ = first
        with np.errstate(over="ignore", invalid="ignore"):
            scores = torch.from_numpy(self._model.scores(X)[0])
        losses = sample.losses(_finite(scores))
        self.worst_case_weights_ = np.empty(len(event))
        self.worst_case_weights_[order] = self._keep_worst_case(losses, sample)
        self._keep_baseline(scores, losses, sample)
        self._keep_gap(solution)
        return self

    def _trained(self, X: np.ndarray, sample: _Sample, seed: int) -> training.ScoreStack:
        """The model after some steps of Adam."""
        if self.c_ is None or sample.weights is not None:

            def robust(scores: torch.Tensor) -> torch.Tensor:
                losses = sample.losses(scores)
                how = {"rule": self.rule, "weights": sample.weights}
                return sum(dro_risk(losses[:, p], self.alpha, **how) for p in sample.parts)

        elif self.split:
            robust = training.split_objective(sample.risk, sample.first, self.c_)
        else:
            robust = training.dro_objective(sample.risk, self.c_)
        with np.errstate(over="ignore", invalid="ignore"):  # the objective reports it
            model = training.fit_stack(
                X,
                lambda scores: robust(_finite(scores)),
                training.initial_parameters(X.shape[1], self.hidden_units, seed),
                [self.learning_rate],
                hidden=self.hidden_units,
                n_iter=self.n_iter,
                centre=self.hidden_units is not None,
                verbose=self.verbose,
            )
        if self.hidden_units is not None and sample.weights is not None:
            centre = np.average(model.scores(X), axis=1, weights=sample.weights)
            model = replace(model, offset=model.offset + centre)
        return model

    def _keep_worst_case(self, losses: torch.Tensor, sample: _Sample) -> np.ndarray:
        """Risk and minimiser of the trained model; returns its worst case."""
        worst = np.empty(len(losses))
        etas = []
        self.loss_ = 0.0
        for part in sample.parts:
            own = losses[part]
            mass = np.ones(len(own)) if sample.weights is None else sample.weights[part]
            if self.c_ is None:
                q = worst_case_weights(own, self.alpha, rule="cvar", weights=mass).numpy()
                eta = own.numpy()[q > 0].min()  # the smallest loss in the tail
                risk = q @ own.numpy()
            else:
                found = kernels.worst_cases(own.numpy()[None], mass[None], np.array([self.c_]))
                eta, risk, q = (values[0] for values in found)
            etas.append(float(eta))
            self.loss_ += float(risk)
            worst[part] = q / len(sample.parts)
        self.eta_ = np.array(etas) if self.split else etas[0]
        return worst

    def _keep_baseline(self, scores: torch.Tensor, losses: torch.Tensor, sample: _Sample) -> None:
        """Breslow's baseline: loss plus score of an event is the log sum over its risk set."""
        risk = sample.risk
        if self.split:
            losses = cox_losses(scores, risk)
        died = risk.order[0][risk.event[0]][::-1]  # earliest first
        steps = -(losses + scores).numpy()[died]
        if sample.weights is not None:
            with np.errstate(divide="ignore"):  # a weight of 0 is nobody
                steps += np.log(sample.weights[died])
        time = risk.time[0][::-1]
        self.unique_times_ = np.unique(time)
        self._grid = np.union1d(0.0, self.unique_times_)  # curves start at time 0
        happened = np.searchsorted(time[risk.event[0][::-1]], self._grid, side="right")
        self._log_baseline = np.append(-np.inf, np.logaddexp.accumulate(steps))[happened]

    def _keep_gap(self, solution: Solution | None) -> None:
        """How far the model can be from the best one, with a warning if that is far."""
        self.gap_ = None
        if solution is None:
            return
        self.gap_ = max(0.0, self.loss_ - solution.bound) / max(1.0, self.loss_)
        if solution.separated:
            problem = (
                "coefficients run away: a combination of the features separates those with an "
                "event from all others at risk, so that no coefficients are the best; drop or "
                "merge the features with very large coefficients"
            )
        elif self.gap_ > self.tol:
            remedy = "use solver='convex'" if self.solver == "adam" else "raise n_iter"
            problem = (
                f"the risk {self.loss_:.6g} may be above its minimum by {self.gap_:.1e} of it, "
                f"more than tol={self.tol:g}; {remedy}, or accept it with a larger tol"
            )
        else:
            return
        warnings.warn(problem, ConvergenceWarning, stacklevel=4)

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


@dataclass(frozen=True)
class _Sample:
    """The training patients: who is at risk when, the split and the case weights."""

    risk: RiskSets
    first: np.ndarray | None
    weights: np.ndarray | None

    @property
    def parts(self) -> list:
        """The groups whose risks are added: everybody, or the two halves."""
        return [slice(None)] if self.first is None else [self.first, ~self.first]

    def losses(self, scores: torch.Tensor) -> torch.Tensor:
        if self.first is not None:
            return split_cox_losses(scores, self.risk, first=self.first)
        return cox_losses(scores, self.risk, weights=self.weights)


def _finite(scores: torch.Tensor) -> torch.Tensor:
    if not torch.isfinite(scores).all():
        raise ValueError(
            "training diverged to NaN or infinite scores; scale X (put a StandardScaler in front) "
            "or lower learning_rate"
        )
    return scores


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
