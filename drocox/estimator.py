r"""The estimator: DRO-COX for a user's own data, in the style of scikit-survival.

:class:`DROCox` minimises the worst-case risk (7), or its split form (9), plus a penalty,

.. math:: \min_\theta\; R\big(\ell(\theta)\big) + \tfrac\lambda2 \lVert\theta\rVert^2,

with :func:`drocox.solver.minimise` for linear models and :func:`drocox.training.fit_stack` for
networks. Predicted survival is :math:`S(t \mid x) = \exp(-H_0(t)\, e^{s f(x)})` with Breslow's
:math:`H_0` and a slope :math:`s`, which is 1 unless scores are recalibrated.
"""

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from drocox import _checks, accuracy, kernels
from drocox.curves import StepFunction, log_baseline, log_risk_sums, stratum_of_each
from drocox.data import structured
from drocox.dual import RULES, dual_constant, tail
from drocox.risksets import RiskSets, risk_sets
from drocox.solver import Solution, minimise

if TYPE_CHECKING:
    import torch

LARGEST_FOR_ADAM = 1e10  # largest feature: Adam's steps have the size of the learning rate
FOLDS = 5  # of the cross-fitting for recalibration
SMALLEST_GROUP = 1e-3  # patients in a share alpha: one patient or less is the same, up to rounding


# --- Training data --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Training patients; arrays of n rows."""

    X: np.ndarray
    time: np.ndarray
    event: np.ndarray
    weights: np.ndarray
    strata: np.ndarray | None = None  # codes
    first: np.ndarray | None = None  # of a split

    @cached_property
    def risk(self) -> RiskSets:
        """Risk sets."""
        return risk_sets(self.time, self.event, strata=self.strata)

    @cached_property
    def times(self) -> np.ndarray:
        """Distinct times."""
        return np.unique(self.risk.time[0, ::-1])  # already sorted if there are no strata

    @property
    def y(self) -> np.ndarray:
        """Events and times as scikit-survival's structured array."""
        return structured(self.event, self.time)

    @property
    def masses(self) -> np.ndarray:
        """Case weights of each part whose risks are added: all patients, or the two halves."""
        if self.first is None:
            return self.weights[None]
        return np.stack([self.first, ~self.first]).astype(float)

    def rows(self, rows: np.ndarray) -> "Sample":
        """The patients at the given positions or in a mask."""
        return Sample(
            self.X[rows],
            self.time[rows],
            self.event[rows],
            self.weights[rows],
            None if self.strata is None else self.strata[rows],
            None if self.first is None else self.first[rows],
        )


def outcomes_of(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and events of ``y``, one for each row of ``X``."""
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if fields is None or len(fields) < 2:
        raise ValueError(
            "y must be a structured array of events and times, as SurvivalData.y or "
            "sksurv.util.Surv.from_arrays(event, time) makes it"
        )
    _refuse_other_designs(y, fields)
    event, time = (y[field] for field in fields)
    if event.dtype != bool:
        raise TypeError(f"{fields[0]} in y, the first field, must be boolean; convert it")
    if len(y) != len(X):
        raise ValueError(f"y has {len(y)} rows, X {len(X)}; pass one event and time for each row")
    return _checks.outcomes(time, event, ("time in y", "event in y"))


def _refuse_other_designs(y, fields: tuple[str, ...]) -> None:
    """Raise for delayed entry and competing risks, which ``y`` cannot represent."""
    if len(fields) > 2:
        raise ValueError(
            f"y has {len(fields)} fields ({', '.join(fields)}), not event and time alone: for "
            "delayed entry use lifelines' CoxPHFitter.fit(..., entry_col=...), for competing risks "
            "make other causes censored, Surv.from_arrays(cause == 1, time)"
        )
    codes = y[fields[0]]
    if codes.dtype.kind in "iuf" and not np.isin(codes, (0, 1)).all():
        raise ValueError(
            f"{fields[0]} in y holds codes other than 0 and 1: with competing risks, model the "
            "hazard of one cause, others censored, Surv.from_arrays(cause == 1, time); for "
            "cumulative incidences use sksurv.nonparametric.cumulative_incidence_competing_risks"
        )


def random_half(event: np.ndarray, seed: int) -> np.ndarray:
    """Mask of D1, a random half, stratified by event if there are enough of both kinds."""
    strata = event if min(event.sum(), (~event).sum()) > 1 else None
    rows = np.arange(len(event))
    chosen, _ = train_test_split(rows, test_size=0.5, stratify=strata, random_state=seed)
    first = np.isin(rows, chosen)
    if not event[first].any() or not event[~first].any():
        raise ValueError("split=True needs an event in each half; pass more, or split=False")
    return first


# --- The estimator --------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class DROCox(BaseEstimator):
    r"""Distributionally robust Cox model, linear or with one hidden layer.

    The scores :math:`f(x; \theta)` minimise the worst mean Cox loss over all distributions near
    the data (DRO-COX, equation (7) of Hu & Chen, PMLR 193, 2022), to protect every group of at
    least a share :math:`\alpha` of the patients without knowing the groups:

    .. math:: \min_{\theta,\, \eta}\; c \sqrt{\tfrac1n \sum_i [\ell_i(\theta) - \eta]_+^2} + \eta
              + \tfrac\lambda2 \lVert\theta\rVert^2, \qquad c = 1/\sqrt\alpha,

    with :math:`\ell_i` the Cox loss of patient :math:`i` (Breslow's ties, 0 if censored). With
    ``split=True`` (DRO-COX (SPLIT), its (8) and (9)) a random half :math:`D_1` is compared
    with the rest, :math:`D_2`, and the reverse, and the two risks are added.

    Linear models are solved to a certified optimum by :func:`drocox.solver.minimise`, whatever the
    units of the features. Networks are trained by full-batch Adam: put a ``StandardScaler`` in
    front. Their scores are centred on the training patients, because Cox losses do not determine a
    constant. The order of the rows matters for the split only.

    **Survival curves need** ``recalibrate=True`` **unless** ``alpha=1``. A Cox model's scores are
    log hazard ratios because they maximise a likelihood. DRO-COX minimises another risk: its scores
    rank patients, but their scale is wrong, and survival curves computed from them are too close
    together or too far apart. Recalibration fits one slope to held-out scores. With ``alpha=0.2``
    the integrated Brier score falls from 0.179 to 0.165 with it in five-fold cross-validation on
    WHAS500; that of the Cox model is 0.159.

    Delayed entry, competing risks and Efron's ties raise an error that names an alternative.

    Parameters
    ----------
    alpha : float in (0, 1]
        Smallest share of the patients to protect as a group. The default, 1, is the ordinary Cox
        model; ``rule`` and ``split`` need a smaller one. Where fewer patients than a share
        ``alpha`` have events, the model is nearly Cox (``acts_``): the worst case contains all
        events, since censored patients have loss 0. Compare a robust model with a Cox model that
        has a ``penalty``, on patients left out: the book's chapter on many data sets says why.
        No relation to ``alpha`` of scikit-survival's
        ``CoxPHSurvivalAnalysis``, the weight of a ridge penalty: that is ``penalty`` here, per
        patient instead of in all, so that ``CoxPHSurvivalAnalysis(alpha=a, ties="breslow")`` is
        ``DROCox(alpha=1, penalty=a / n)``.
    rule : {"sharp", "paper", "definition", "cvar"}
        What ``alpha`` means. "sharp", the constant above, protects every group of at least that
        share and no smaller ones; "paper" is the printed :math:`c = \sqrt{2(1/\alpha - 1)^2 + 1}`,
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
    penalty : float >= 0
        The :math:`\lambda` of the ridge penalty on the coefficients of features as given, or of the
        weight decay of a network: on the weights of both layers, not on biases. Wide data, data
        that a linear score separates, and networks need one.
    recalibrate : bool
        Whether survival curves use a slope times the scores: the coefficient of a Cox regression on
        the scores of models fitted to the other four of five folds, stratified by fold. Folds are
        dealt out in order of event, time and features, so the result depends on no seed and not on
        the order of rows. A row with a whole weight is dealt out as so many patients, one with
        another weight as a single one. Scores of ``predict`` stay as they are.
    ties : {"breslow"}
        Tied events have the same risk set. Efron's ties raise an error: the lower bound holds for
        Breslow's losses.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients :math:`\beta`; linear models only.
    summary_ : DataFrame
        Coefficients with hazard ratios; linear models only. Standard errors, tests and intervals
        for ``alpha=1`` without penalty and split: only there is the risk a log likelihood, whose
        curvature is the precision of its maximiser.
    slope_ : float
        Factor on the scores in survival curves; 1 without ``recalibrate``. At least 0, since a
        negative slope would reverse the ranking.
    eta_ : float, or array of shape (2,) if ``split``
        Minimiser :math:`\eta` after training; ``-inf`` with ``alpha=1``, whose mean is a limit
        (except for "cvar": the smallest loss in the tail).
    worst_case_weights_ : array of shape (n_samples,)
        Worst-case distribution over the training patients; sums to 1. If split, the even mixture
        of the worst cases of :math:`D_1` and :math:`D_2`.
    first_ : bool array of shape (n_samples,)
        True for the patients of :math:`D_1`; only if ``split``.
    gap_ : float or None
        How far risk plus penalty can be from the smallest possible value: the difference to a lower
        bound of the minimum, divided by the larger of 1 and the value. None for networks, which
        have no bound.
    separated_ : bool or None
        Whether coefficients diverge because a combination of features separates events from
        others (monotone likelihood); there is a warning, too. None for networks.
    c_ : float or None
        The dual constant that was used; None with ``rule="cvar"``.
    acts_ : bool
        False where the worst case contains all patients, so that the weights of events vary no more
        than their losses do (coefficient of variation) and the model is nearly Cox, with scores a
        little closer together; with ``rule="cvar"``, where ``alpha`` is at least the share of
        events, and the model is exactly Cox. There is a warning, too, unless ``alpha=1``. If split,
        True if either half has a worst case that acts.
    strata_ : array or None
        Labels of the strata, sorted.
    loss_, n_iter_, unique_times_
        Risk after training, without penalty (if split, the sum of both); steps taken; distinct
        training times.

    Examples
    --------
    >>> from drocox import load_dataset
    >>> data = load_dataset("seer")
    >>> model = DROCox(alpha=0.1, recalibrate=True).fit(data.X, data.y)
    >>> curve = model.predict_survival_function(data.X[:1])[0]
    >>> print(f"c-index {model.score(data.X, data.y):.2f}, survival to month 60 {curve(60):.2f}")
    c-index 0.73, survival to month 60 0.81
    """

    # parameters of the constructor, kept as they are; fit checks them
    alpha: float = 1.0
    rule: str = "sharp"
    split: bool = False
    hidden_units: int | None = None
    solver: str = "auto"
    learning_rate: float = 0.01
    n_iter: int = 500
    tol: float = 1e-6
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False
    _: KW_ONLY
    penalty: float = 0.0
    recalibrate: bool = False
    ties: str = "breslow"

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
        "penalty": [Interval(Real, 0, np.inf, closed="left")],
        "recalibrate": ["boolean"],
        "ties": [str],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: np.ndarray,
        sample_weight: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> "DROCox":
        r"""Train the model.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Numeric features without missing values.
        y : structured array of shape (n_samples,)
            Events (bool) and times, as ``sksurv.util.Surv`` makes it.
        sample_weight : array of shape (n_samples,), optional
            Counts of patients: whole numbers stand for repeated rows, and rows with weight 0 are
            ignored. For ``alpha`` below 1 the scale matters, since the loss of an event,
            :math:`\log \sum_{j \in R_i} w_j e^{f_j} - f_i`, grows with it while that of a censored
            patient stays 0: divide weights that are not counts by their mean. Not with ``split``.
        strata : array of shape (n_samples,), optional
            Label of each patient's stratum. Patients are compared within their stratum only, and
            each stratum has its own baseline hazard.

        Returns
        -------
        DROCox
            This object.
        """
        # the sample: validated and split
        self._check_options()
        sample = self._checked_sample(X, y, sample_weight, strata)
        seed = _seed(self.random_state)
        for name in ("coef_", "_network", "first_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.split:
            self.first_ = random_half(sample.event, seed)
            sample = replace(sample, first=self.first_)

        # the model: coefficients or a network, and the losses of the patients
        self.c_ = None if self.rule == "cvar" else dual_constant(self.alpha, rule=self.rule)
        linear = self.hidden_units is None
        solution: Solution | None = None
        if linear and self.solver != "adam":
            solution = self._solve(sample, tol=self.tol, n_iter=self.n_iter)
            self.coef_, self.n_iter_, losses = solution.coef, solution.n_iter, solution.losses
        else:
            losses = self._train(sample, seed)
            self.n_iter_ = self.n_iter
            if linear:
                solution = self._solve(sample)  # for its lower bound

        # its worst case, survival curves and certificate
        self.worst_case_weights_ = self._keep_worst_case(losses, sample)
        self.slope_ = cross_fitted_slope(self, sample) if self.recalibrate else 1.0
        self._baseline = breslow_baseline(self.slope_ * self._scores(sample.X), sample)
        self.unique_times_ = sample.times
        self.gap_: float | None = None
        self.separated_: bool | None = None
        if solution is not None:
            self._standard_errors = solution.standard_errors
            self._keep_certificate(solution)
        if not self.acts_ and self.alpha < 1:
            self._warn_of_no_action(sample)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check_options(self) -> None:
        """Raise for options that are not available, or not together."""
        if self.alpha == 1 and (self.split or self.rule != "sharp"):
            option = "split=True" if self.split else f"rule={self.rule!r}"
            raise ValueError(
                f"{option} needs an alpha below 1, the share of the patients to protect; alpha=1, "
                f"the default, is the ordinary Cox model: pass alpha, or leave {option} out"
            )
        if self.solver == "convex" and self.hidden_units is not None:
            raise ValueError("solver='convex' is for linear models; set hidden_units=None")
        if self.ties != "breslow":
            raise ValueError(
                f"ties={self.ties!r} is not offered, only 'breslow'; for Efron's Cox model use "
                "scikit-survival's CoxPHSurvivalAnalysis(ties='efron') or lifelines' CoxPHFitter, "
                "for its losses drocox.cox_losses(..., ties='efron')"
            )

    def _checked_sample(self, X, y, sample_weight, strata) -> Sample:
        """The training data, validated."""
        X = validate_data(
            self,
            X,
            None if y is None else "no_validation",
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=2,
        )
        X = _checks.numbers(X, "X")
        n = len(X)
        time, event = outcomes_of(X, y)
        if self.split and sample_weight is not None:
            raise ValueError("sample_weight cannot be used with split=True; leave out one")
        weights = np.ones(n) if sample_weight is None else _checks.weights(sample_weight, n)
        if not event[weights > 0].any():
            raise ValueError(
                "nobody has an event and a weight above 0; give some event a positive sample_weight"
            )
        counted = int((weights > 0).sum())
        if self.alpha * counted < SMALLEST_GROUP:
            raise ValueError(
                f"alpha={self.alpha:g} is far less than one of {counted} patients, and no group is "
                f"smaller; choose {1 / counted:.2g} or more"
            )
        self.strata_ = None
        if strata is not None:
            self.strata_, strata = _checks.labels(strata, "strata", n)
        return Sample(X, time, event, weights, strata)

    def _solve(self, sample: Sample, **options: Any) -> Solution:
        """The certified optimum."""
        options |= {"rule": self.rule, "penalty": self.penalty, "first": sample.first}
        weights = None if self.split else sample.weights
        return minimise(sample.X, sample.risk, self.alpha, weights=weights, **options)

    def _train(self, sample: Sample, seed: int) -> np.ndarray:
        """Train by Adam, set ``coef_`` or the network, and return the losses.

        Networks are centred on the training patients.
        """
        try:
            from drocox import cox, training
        except ModuleNotFoundError as error:
            raise _checks.missing("a network or solver='adam' needs torch", "torch") from error
        if (largest := np.abs(sample.X).max()) > LARGEST_FOR_ADAM:
            raise ValueError(f"X holds {largest:.1g}, too large for Adam; use a StandardScaler")
        # Adam amplifies rounding: train in an order that ignores the given one
        order = np.lexsort((*sample.X.T, sample.event, sample.time))
        sample = sample.rows(order)
        adversary = training.Tail(self.alpha) if self.c_ is None else training.Ball(self.c_)
        weights = None if self.split or (sample.weights == 1).all() else sample.weights
        risk = training.RiskObjective(
            sample.risk, adversary, sample.masses, first=sample.first, weights=weights
        )
        start = training.initial_parameters(sample.X.shape[1], self.hidden_units, seed)
        with np.errstate(over="ignore", invalid="ignore"):  # _finite reports it
            model = training.fit_stack(
                sample.X,
                lambda scores: risk(_finite(scores)),
                start,
                [self.learning_rate],
                hidden=self.hidden_units,
                n_iter=self.n_iter,
                verbose=self.verbose,
                penalty=self.penalty,
            )
            if self.hidden_units is not None:
                centre = np.average(model.scores(sample.X), axis=1, weights=sample.weights)
                model = replace(model, offset=centre)
            scores = _finite(training.torch.from_numpy(model.scores(sample.X)[0]))
        if self.hidden_units is None:
            self.coef_ = model.theta[0]
        else:
            self._network = model
        losses = np.empty(len(order))
        first = None if sample.first is None else sample.first[None]
        losses[order] = cox.unchecked_losses(scores, sample.risk, weights=weights, first=first)
        return losses

    def _scores(self, X: np.ndarray) -> np.ndarray:
        """Scores of checked features."""
        return X @ self.coef_ if hasattr(self, "coef_") else self._network.scores(X)[0]

    def _keep_worst_case(self, losses: np.ndarray, sample: Sample) -> np.ndarray:
        """Set ``loss_``, ``eta_`` and ``acts_`` of the trained model; return its worst case."""
        worst = np.zeros(len(losses))
        etas = []
        self.acts_ = False
        for mass in sample.masses:
            if self.c_ is None:
                q = tail(losses, self.alpha, mass)
                eta = losses[q > 0].min()  # the smallest loss in the tail
                self.acts_ |= bool(self.alpha < np.average(sample.event, weights=mass))
            else:
                (eta,), _, (q,) = kernels.worst_cases(losses[None], mass, np.array([self.c_]))
                self.acts_ |= bool((q[mass > 0] == 0).any())
            etas.append(float(eta))
            worst += q / len(sample.masses)
        self.loss_ = len(etas) * float(worst @ losses)
        self.eta_ = np.array(etas) if self.split else etas[0]
        return worst

    def _keep_certificate(self, solution: Solution) -> None:
        """Set ``gap_`` and ``separated_``, with a warning if the model may not be optimal."""
        value = self.loss_
        if self.penalty > 0:  # without one, squares of coefficients may be infinite
            value += 0.5 * self.penalty * float(self.coef_ @ self.coef_)
        gap = max(0.0, value - solution.bound) / max(1.0, value)
        self.gap_ = float(gap)
        self.separated_ = bool(solution.separated)
        if self.separated_:
            problem = "coefficients diverge: a combination of features separates events from others"
            remedy = "drop or merge the features with very large coefficients, or set a penalty"
        elif gap > self.tol:
            problem = f"the risk {value:.6g} may exceed its minimum by a relative gap of {gap:.1e}"
            remedy = "use solver='convex'" if self.solver == "adam" else "raise n_iter"
            remedy += f", or accept the gap with a tol above {self.tol:g}"
        else:
            return
        warnings.warn(f"{problem}; {remedy}", ConvergenceWarning, stacklevel=4)

    def _warn_of_no_action(self, sample: Sample) -> None:
        """Warn that the model is nearly Cox, and say why."""
        share = np.average(sample.event, weights=sample.weights)
        warnings.warn(
            f"alpha={self.alpha:g} hardly acts: {100 * share:.0f} % of the patients have events, "
            "and the worst case contains all of them with nearly equal weights, so that this is "
            "nearly a Cox model (alpha=1)",
            UserWarning,
            stacklevel=4,
        )

    @property
    def summary_(self) -> pd.DataFrame:
        r"""Coefficients of a linear model, a row for each feature.

        Columns ``coefficient`` and ``hazard_ratio``, its exponential; for ``alpha=1`` without
        penalty and split also ``standard_error``, ``z``, ``p`` and ``low`` and ``high``, the 95 %
        interval of the coefficient, by the inverse of the observed information :math:`\sum_i
        \delta_i \mathrm{Var}_{R_i}(x)`. Other risks are not log likelihoods: a worst case depends
        on few patients and has kinks, and a penalty adds a bias that a standard error ignores.
        Bootstrap those.
        """
        check_is_fitted(self, "unique_times_")
        if not hasattr(self, "coef_"):
            raise AttributeError("summary_ is for linear models; a network has no coefficients")
        names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(len(self.coef_))])
        with np.errstate(over="ignore"):
            columns = {"coefficient": self.coef_, "hazard_ratio": np.exp(self.coef_)}
        errors = self._standard_errors
        if errors is not None:
            z = self.coef_ / errors
            reach = special.ndtri(0.975) * errors
            columns |= {"standard_error": errors, "z": z, "p": 2 * special.ndtr(-np.abs(z))}
            columns |= {"low": self.coef_ - reach, "high": self.coef_ + reach}
        return pd.DataFrame(columns, index=pd.Index(names, name="feature"))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Scores: the higher, the higher the risk; raw ones, also with ``recalibrate``.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)

        Returns
        -------
        array of shape (n,)
            Times ``slope_`` they are the log hazards of the survival curves.
        """
        check_is_fitted(self, "unique_times_")
        X = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
        return self._scores(_checks.numbers(X, "X"))

    def score(
        self,
        X: ArrayLike,
        y: np.ndarray,
        strata: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Harrell's concordance index of the predictions.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
        y : structured array of shape (n,)
            Events and times.
        strata : array of shape (n,), optional
            Stratum of each patient: only pairs within a stratum are compared. Needed if the model
            was fitted with strata.
        sample_weight : array of shape (n,), optional
            How many patients each row stands for, as in ``fit``.

        Returns
        -------
        float
        """
        scores = self.predict(X)
        if self.strata_ is not None and strata is None:
            raise ValueError("the training patients have strata; pass strata= for those of X")
        time, event = outcomes_of(scores, y)
        counted = {"strata": strata, "weights": sample_weight}
        return accuracy.concordance_index(scores, time, event, **counted)

    def predict_survival_function(
        self,
        X: ArrayLike,
        return_array: bool = False,
        *,
        times: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> np.ndarray:
        r"""Survival :math:`\exp(-H_0(t) e^{s f(x)})`, a function of t for each row of ``X``.

        The slope :math:`s` is 1 without ``recalibrate``. Scores of DRO-COX are not log hazard
        ratios, except with ``alpha=1``, and mostly lie too close together, so that predicted
        survival is too low for patients at low risk and too high for those at high risk. Fit with
        ``recalibrate=True`` before you use probabilities.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
        return_array : bool
            Whether to return the values at ``unique_times_`` instead of functions.
        times : array of shape (k,), optional
            Times for which to return an array, in memory for its n x k numbers.
        strata : array of shape (n,), optional
            Stratum of each patient; needed if, and only if, the model was fitted with strata.

        Returns
        -------
        array of n StepFunctions, or of shape (n, number of times)
            The functions are defined from 0 to the last training time.
        """
        hazards = self._cumulative_hazards(X, return_array, times, strata)
        survival = np.negative(hazards, out=hazards)
        np.exp(survival, out=survival)
        return survival if return_array or times is not None else self._functions(survival)

    def predict_cumulative_hazard_function(
        self,
        X: ArrayLike,
        return_array: bool = False,
        *,
        times: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> np.ndarray:
        r"""Cumulative hazard :math:`H_0(t) e^{s f(x)}`, with Breslow's :math:`H_0`.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
        return_array : bool
            Whether to return the values at ``unique_times_`` instead of functions.
        times : array of shape (k,), optional
            Times for which to return an array, in memory for its n x k numbers.
        strata : array of shape (n,), optional
            Stratum of each patient; needed if, and only if, the model was fitted with strata.

        Returns
        -------
        array of n StepFunctions, or of shape (n, number of times)
        """
        hazards = self._cumulative_hazards(X, return_array, times, strata)
        return hazards if return_array or times is not None else self._functions(hazards)

    def _cumulative_hazards(self, X, return_array: bool, times, strata) -> np.ndarray:
        """Cumulative hazards at the given times, at ``unique_times_``, or on the whole grid."""
        scores = self.predict(X) * self.slope_
        stratum = stratum_of_each(strata, self.strata_, len(scores))
        if times is None:
            times = self.unique_times_ if return_array else self._baseline.grid
        return self._baseline.cumulative_hazards(scores, stratum, times)

    def _functions(self, values: np.ndarray) -> np.ndarray:
        """A step function for each row of values on the grid."""
        return np.array([StepFunction(self._baseline.grid, row) for row in values], dtype=object)


def _finite(scores: "torch.Tensor") -> "torch.Tensor":
    """The scores; an error if training diverged."""
    if not scores.isfinite().all():
        raise ValueError("training diverged; use a StandardScaler or lower learning_rate")
    return scores


def _seed(random_state) -> int:
    """The given seed, or one drawn from a random generator."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


# --- Breslow's baseline hazard --------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """The baseline hazard of each stratum, all on one grid of times."""

    grid: np.ndarray  # 0, then the training times in order
    log_hazards: np.ndarray  # (strata, times of the grid): logarithms of the cumulative hazard

    def cumulative_hazards(
        self, scores: np.ndarray, stratum: np.ndarray, times: np.ndarray
    ) -> np.ndarray:
        """Cumulative hazards (n, k) of patients, computed in place."""
        times = _checks.numbers(times, "times", 1)
        last = self.grid[-1]
        if times.min() < 0 or times.max() > last:
            raise ValueError(
                f"times must lie between 0 and the last training time ({last:g}), beyond "
                "which no hazard is known; leave out the others"
            )
        at = np.searchsorted(self.grid, times, side="right") - 1
        baseline = self.log_hazards[:, at]
        hazards = baseline[stratum] if len(baseline) > 1 else np.repeat(baseline, len(scores), 0)
        hazards += scores[:, None]
        with np.errstate(over="ignore"):
            return np.exp(hazards, out=hazards)


def breslow_baseline(scores: np.ndarray, sample: Sample) -> Baseline:
    """Breslow's baseline hazard, from the log hazard ratios of the training patients."""
    times = sample.times
    grid = times if times[0] == 0 else np.append(0.0, times)
    log_sums = log_risk_sums(scores, sample.risk, sample.weights)
    return Baseline(grid, log_baseline(log_sums, sample.risk, grid, sample.weights))


# --- The slope of a recalibrated model ------------------------------------------------------------


def cross_fitted_slope(model: BaseEstimator, sample: Sample) -> float:
    """Coefficient of the held-out scores of five folds in a Cox regression, at least 0.

    Patients are dealt out in order of event, time and features, so the slope depends on no seed and
    not on the order of the rows. A row whose weight is a whole number is so many patients.
    """
    whole = (sample.weights % 1 == 0).all()
    patients = sample.weights if whole else (sample.weights > 0).astype(float)
    if patients[sample.event].sum() < FOLDS:
        raise ValueError(f"recalibrate=True needs {FOLDS} events; pass more, or leave it out")
    weight_of_one = sample.weights / np.maximum(patients, 1)
    alike = () if sample.strata is None else (sample.strata,)
    order = np.lexsort((*alike, *sample.X.T, sample.time, sample.event))
    last = np.cumsum(patients[order])
    rows = []
    weights = []
    scores = []
    for k in range(FOLDS):  # its patients have the numbers k, k + 5, k + 10, ...
        up_to = (last + FOLDS - 1 - k) // FOLDS
        left_out = np.empty(len(order))
        left_out[order] = weight_of_one[order] * np.diff(up_to, prepend=0.0)
        rows.append(np.flatnonzero(left_out > 0))
        weights.append(left_out[rows[k]])
        others = replace(sample, weights=np.maximum(sample.weights - left_out, 0.0))
        scores.append(_held_out_scores(model, others.rows(others.weights > 0), sample.X[rows[k]]))
    held_out = sample.rows(np.concatenate(rows))
    # scores of different folds may differ by a constant: stratify by fold
    strata = np.repeat(np.arange(FOLDS), [len(one) for one in rows])
    if held_out.strata is not None:
        strata += FOLDS * held_out.strata
    risk = risk_sets(held_out.time, held_out.event, strata=strata)
    solved = minimise(np.concatenate(scores)[:, None], risk, 1.0, weights=np.concatenate(weights))
    return max(0.0, float(solved.coef[0]))


def _held_out_scores(model: BaseEstimator, others: Sample, X: np.ndarray) -> np.ndarray:
    """Scores by a model fitted to other patients."""
    weights = None if others.first is not None else others.weights  # a split takes none
    copy = clone(model).set_params(recalibrate=False, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the final model warns
        copy.fit(others.X, others.y, sample_weight=weights, strata=others.strata)
    return copy.predict(X)
