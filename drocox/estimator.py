"""The estimator: DRO-COX for a user's own data, in the style of scikit-survival."""

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


@dataclass(eq=False, repr=False)
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
        Show a progress bar of Adam.

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

    # parameters of the constructor, kept as they are; fit checks them
    alpha: float = 0.2
    rule: str = "sharp"
    split: bool = False
    hidden_units: int | None = None
    solver: str = "auto"
    learning_rate: float = 0.01
    n_iter: int = 500
    tol: float = 1e-6
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    _parameter_constraints = {  # noqa: RUF012
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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y: np.ndarray, sample_weight=None) -> "DROCox":
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
        linear = self.hidden_units is None
        convex = linear and self.solver != "adam"
        if self.solver == "convex" and not linear:
            raise ValueError("solver='convex' is for linear models; set hidden_units=None")
        if self.split and sample_weight is not None:
            raise ValueError("sample_weight cannot be used with split=True; leave out one")
        ones = np.ones(len(X))
        weights = ones if sample_weight is None else _checks.weights(sample_weight, len(X))
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        for name in ("coef_", "first_"):  # of an earlier fit
            vars(self).pop(name, None)
        parts = [ones > 0]  # everybody, or two halves
        if self.split:
            self.first_ = _half(event, seed)
            parts = [self.first_, ~self.first_]
        # Adam's steps amplify rounding: take them in one order, whatever the given one
        order = slice(None) if convex else np.lexsort((*X.T, event, time))
        X, weights, *parts = (rows[order] for rows in (X, weights, *parts))
        risk = risk_sets(time[order], event[order])

        def losses_of(scores: torch.Tensor) -> torch.Tensor:
            if not torch.isfinite(scores).all():
                raise ValueError("training diverged; use a StandardScaler or lower learning_rate")
            if self.split:
                return split_cox_losses(scores, risk, first=parts[0])
            return cox_losses(scores, risk, weights=weights)

        self.c_ = None if self.rule == "cvar" else dual_constant(self.alpha, rule=self.rule)
        if linear:  # with Adam for the bound of the minimum alone
            how = {"first": parts[0]} if self.split else {"weights": weights}
            how |= {"tol": self.tol, "n_iter": self.n_iter} if convex else {}
            solution = minimise(X, risk, self.alpha, rule=self.rule, **how)
        if convex:
            self._model = training.ScoreStack(solution.coef[None], None, np.zeros(1))
        else:
            self._model = self._trained(X, losses_of, parts, weights, int(seed))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = torch.from_numpy(self._model.scores(X)[0])
        losses = losses_of(scores)
        self.worst_case_weights_ = np.empty(len(X))
        self.worst_case_weights_[order] = self._keep_worst_case(losses.numpy(), parts, weights)
        log_sums = (cox_losses(scores, risk) if self.split else losses) + scores
        self._keep_baseline(log_sums.numpy(), risk, weights)
        self.n_iter_ = solution.n_iter if convex else self.n_iter
        self.gap_ = None
        if linear:
            self.coef_ = self._model.theta[0]
            self._keep_gap(solution)
        return self

    def _trained(self, X, losses_of, parts, weights, seed: int) -> training.ScoreStack:
        """The model after some steps of Adam; a network is centred on the training patients."""

        def objective(scores: torch.Tensor) -> torch.Tensor:
            losses = losses_of(scores)
            how = {"alpha": self.alpha, "rule": self.rule}
            return sum(dro_risk(losses[:, p], weights=weights[p], **how) for p in parts)

        start = training.initial_parameters(X.shape[1], self.hidden_units, seed)
        how = {"hidden": self.hidden_units, "n_iter": self.n_iter, "verbose": self.verbose}
        with np.errstate(over="ignore", invalid="ignore"):  # losses_of reports it
            model = training.fit_stack(X, objective, start, [self.learning_rate], **how)
            if self.hidden_units is None:
                return model
            return replace(model, offset=np.average(model.scores(X), axis=1, weights=weights))

    def _keep_worst_case(self, losses, parts, weights) -> np.ndarray:
        """Risk and minimiser of the trained model; returns its worst case."""
        worst = np.empty(len(losses))
        etas = []
        for part in parts:
            own, mass = losses[part], weights[part]
            if self.c_ is None:
                q = worst_case_weights(own, self.alpha, rule="cvar", weights=mass).numpy()
                eta = own[q > 0].min()  # the smallest loss in the tail
            else:
                (eta,), _, (q,) = kernels.worst_cases(own[None], mass, np.array([self.c_]))
            etas.append(float(eta))
            worst[part] = q / len(parts)
        self.loss_ = len(parts) * float(worst @ losses)
        self.eta_ = np.array(etas) if self.split else etas[0]
        return worst

    def _keep_baseline(self, log_sums: np.ndarray, risk: RiskSets, weights: np.ndarray) -> None:
        """Breslow's baseline, from the logarithms of the sums over the events' risk sets."""
        died = risk.order[risk.event][::-1]  # earliest first
        with np.errstate(divide="ignore"):  # a weight of 0 is nobody
            steps = np.log(weights[died]) - log_sums[died]
        self.unique_times_ = np.unique(risk.time)
        self._grid = np.union1d(0.0, self.unique_times_)  # curves start at time 0
        happened = np.searchsorted(risk.time[risk.event][::-1], self._grid, side="right")
        self._log_baseline = np.append(-np.inf, np.logaddexp.accumulate(steps))[happened]

    def _keep_gap(self, solution: Solution) -> None:
        """How far the model can be from the best one, with a warning if that is far."""
        self.gap_ = max(0.0, self.loss_ - solution.bound) / max(1.0, self.loss_)
        if solution.separated:
            said = "coefficients run away: a combination of features separates events from others"
            remedy = "drop or merge the features with very large coefficients"
        elif self.gap_ > self.tol:
            said = f"the risk {self.loss_:.6g} may be above its minimum by {self.gap_:.1e} of it"
            remedy = "use solver='convex'" if self.solver == "adam" else "raise n_iter"
            remedy += f", or accept that by a tol above {self.tol:g}"
        else:
            return
        warnings.warn(f"{said}; {remedy}", ConvergenceWarning, stacklevel=4)

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
        how = "use sksurv.util.Surv.from_arrays(event, time), a time >= 0 for each row of X"
        raise ValueError(f"y is refused: {str(error).rstrip('.')}; {how}") from error
    return _checks.outcomes(time, event, ("time in y", "event in y"))


def _half(event: np.ndarray, seed: int) -> np.ndarray:
    """Mask of D1, a random half, stratified by event where there are enough of both kinds."""
    strata = event if min(event.sum(), (~event).sum()) > 1 else None
    rows = np.arange(len(event))
    chosen, _ = train_test_split(rows, test_size=0.5, stratify=strata, random_state=seed)
    first = np.isin(rows, chosen)
    if not event[first].any() or not event[~first].any():
        raise ValueError("split=True needs an event in each half; pass more, or split=False")
    return first
