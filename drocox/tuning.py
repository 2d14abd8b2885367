r"""Cross-fitting, and the choice of alpha by repeated cross-validation with valid intervals.

The folds of one data set share training patients, so the variance of a mean over :math:`J` folds is
more than :math:`S^2 / J`. Nadeau & Bengio (2003) propose, for a test part of :math:`n_2` and a
training part of :math:`n_1` patients,

.. math:: \widehat{\mathrm{Var}} = \Big(\frac1J + \frac{n_2}{n_1}\Big) S^2 .
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Required, TypedDict

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from tqdm import tqdm

from drocox import _checks
from drocox.data import SurvivalData, scaled_features

NOT_ADVISED = "Tuning α on fairness is not advised."
KEPT = 0.95  # eligible candidates have at least this share of the plain model's c-index
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7)
PATIENCE = 5.0  # seconds before a progress bar is shown, on a terminal
CURVE_TIMES = 100  # number of times at which survival curves are evaluated


def most_accurate(c_index: ArrayLike) -> int:
    """Position of the largest c-index, the first among equal ones; NaN is skipped."""
    c_index = np.asarray(c_index, dtype=float)
    if np.isnan(c_index).all():
        raise ValueError("c_index holds no number; pass the c-index of at least one candidate")
    return int(np.nanargmax(c_index))


def choose(
    c_index: ArrayLike, imparity: ArrayLike, plain: float, *, ties: ArrayLike | None = None
) -> int:
    """Choose a candidate by the paper's rule: smallest imparity among those with enough accuracy.

    A candidate is eligible if it keeps 95 % of the plain model's c-index.

    Parameters
    ----------
    c_index, imparity : arrays of shape (k,)
        Of each candidate; one whose imparity or c-index is NaN is not eligible.
    plain : float
        The plain model's c-index.
    ties : array of shape (k,), optional
        Breaks ties in imparity, smallest first; by default the larger c-index wins.

    Returns
    -------
    int
        Position of the choice, the first of equal candidates. If no candidate is eligible, the
        largest c-index wins.
    """
    best = most_accurate(c_index)
    c_index = np.asarray(c_index, dtype=float)
    imparity = np.asarray(imparity, dtype=float)
    eligible = (c_index >= KEPT * plain) & ~np.isnan(imparity)
    if not eligible.any():
        return best
    ties = -c_index if ties is None else np.asarray(ties)
    order = np.lexsort((ties, imparity, ~eligible))  # by the last key, then by those before it
    return int(order[0])


@dataclass(frozen=True, eq=False)
class Choice:
    """Result of :func:`choose_alpha`.

    Attributes
    ----------
    alpha : float
        The choice; 1 is plain Cox.
    table : DataFrame
        A row for plain Cox and each alpha.
    sentence : str
        The choice in words, whether it is beyond noise, and that tuning on fairness is not advised.
    """

    alpha: float
    table: pd.DataFrame

    @property
    def sentence(self) -> str:
        """The chosen alpha, or else the best alternative, beside plain Cox, and the advice."""
        table = self.table
        if self.alpha < 1:
            does = _beside_cox(table, self.alpha, ": plain Cox is as good a choice.")
            return f"{does} {NOT_ADVISED}"
        robust = table.iloc[1:]
        kept = f"keeps {100 * KEPT:g} % of plain Cox's c-index"
        why = f"No α {kept}. "
        if robust["eligible"].any():
            why = f"No α that {kept} has a smaller imparity: plain Cox is the choice. "
        best = choose(robust["c_index"], robust["ci_percent"], table["c_index"].iloc[0])
        return f"{why}{_beside_cox(table, robust.index[best], '.')} {NOT_ADVISED}"


class Model(Protocol):
    """Anything that is fitted and predicts as a model of scikit-survival."""

    def fit(self, X: Any, y: Any, /) -> Any:
        """The fitted model itself."""

    def predict(self, X: Any, /) -> Any:
        """Scores, higher for earlier events."""


class CrossFitted(TypedDict, total=False):
    """What :func:`cross_fit` returns, arguments of :func:`drocox.audit`."""

    scores: Required[np.ndarray]
    folds: Required[np.ndarray]
    train: dict[int, tuple[SurvivalData, np.ndarray]]
    survival: np.ndarray
    times: np.ndarray


def cross_fit(
    data: SurvivalData,
    model: Model | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    by: ArrayLike = 0,
) -> CrossFitted:
    """Score every patient by a model that has not seen them.

    Parameters
    ----------
    data : SurvivalData
        Missing features are imputed by medians, and all are scaled, by each training part.
    model : estimator, optional
        Anything with ``fit(X, y)``, which returns it, and ``predict(X)``, as in scikit-survival;
        each part is fitted by a copy. By default
        :class:`drocox.DROCox` with ``alpha=1``, the ordinary Cox model.
    folds, seed : int
        Number of parts, dealt at random and evenly by event.
    by : array of shape (n,), optional
        Group codes by which the parts are even, too.

    Returns
    -------
    dict
        Arguments of :func:`drocox.audit`: ``scores`` and ``folds``; with them ``train`` for
        :class:`drocox.DROCox` and for models without survival curves, whose scores are then taken
        for log-hazards, or ``survival`` and ``times`` for another model that has
        ``predict_survival_function``, whose scores need not be log-hazards.
    """
    from drocox import DROCox
    from drocox.heldout import assign_folds

    _check_data(data)
    folds = _checks.whole_number(folds, "folds", least=2)
    if data.event.sum() < folds:
        raise ValueError(
            f"data has {data.event.sum()} event(s), too few for folds={folds}; lower folds"
        )
    if model is None:  # not `model or ...`: an unfitted ensemble has no truth value
        model = DROCox(alpha=1.0)
    ours = isinstance(model, DROCox)
    fold = assign_folds(2 * np.asarray(by) + data.event, folds, seed)
    scores = np.empty(len(data))
    train = {}
    curves = not ours and hasattr(model, "predict_survival_function")
    times = np.unique(np.quantile(data.time[data.event], np.linspace(0, 1, CURVE_TIMES)))
    times = times[times > 0]
    survival = np.empty((len(data), len(times)))
    for k in tqdm(range(folds), "cross-fitting", leave=False, disable=None, delay=PATIENCE):
        part = data.subset(fold != k)
        X, X_out = scaled_features(part, data.subset(fold == k))
        fitted = clone(model, safe=False).fit(X, part.y)  # of anything with fit and predict
        # with recalibration the log-hazards of the survival curves are slope_ times the scores
        slope = fitted.slope_ if ours else 1.0
        scores[fold == k] = slope * fitted.predict(X_out)
        curves = curves and _gives_curves(fitted, X_out)
        if curves:
            survival[fold == k] = _survival(fitted, X_out, times)
        else:
            train[k] = (part, slope * fitted.predict(X))
    if curves:
        return {"scores": scores, "folds": fold, "survival": survival, "times": times}
    return {"scores": scores, "folds": fold, "train": train}


def _gives_curves(fitted, X: np.ndarray) -> bool:
    """Whether the model returns survival curves; Coxnet does only with its baseline option."""
    try:
        fitted.predict_survival_function(X[:1])
    except ValueError:
        return False
    return True


def _survival(fitted, X: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Survival probabilities at the given times, constant beyond the end of a curve."""
    rows = []
    for curve in fitted.predict_survival_function(X):
        first, last = curve.domain
        rows.append(curve(np.clip(times, first, last)))
    return np.clip(np.array(rows), 0.0, 1.0)


def choose_alpha(
    data: SurvivalData,
    attribute: str,
    *,
    alphas: Sequence[float] = ALPHAS,
    model: Model | None = None,
    rule: str = "sharp",
    folds: int = 5,
    repeats: int = 2,
) -> Choice:
    """Choose alpha by the paper's rule, by repeated cross-validation, with plain Cox beside it.

    Deprecated: it will be gone in the next edition. *Your own data* shows the gap by alpha.

    Of the models that keep 95 % of plain Cox's c-index, plain Cox among them, the rule chooses the
    one with the smallest concordance imparity.

    This shows what tuning would do; it is not advised. The smallest of several noisy imparities is
    small by chance, and on the book's 27 data sets the rule, with the paper's constant, cost
    accuracy and on average closed no gap.

    Pairs are formed within a fold, and each group's concordance fraction is averaged over the folds
    before groups are compared: the mean of the folds' own imparities would be mostly noise.

    Parameters
    ----------
    data : SurvivalData
    attribute : str
        A key of ``data.groups``.
    alphas : sequence of float in (0, 1)
    model : estimator, optional
        With a parameter ``alpha``, as :class:`drocox.DROCox` with other options, which is the
        default; 1 must be the plain model.
    rule : {"sharp", "paper", "definition", "cvar"}
        As in :class:`drocox.DROCox`; a ``model`` brings its own.
    folds, repeats : int
        The patients are dealt ``repeats`` times, evenly by group and event.

    Returns
    -------
    Choice
        ``alpha``, 1 (plain Cox) where no other is better; ``table``, a row for plain Cox and each
        alpha, with ``c_index``, ``ci_percent`` (imparity), ``eligible`` (whether 95 % of
        plain Cox's c-index are kept) and differences to plain Cox, whose intervals (``..._low``,
        ``..._high``) hold for all alphas at once with 95 %; and ``sentence``, which says whether
        the difference in imparity is beyond noise, and that tuning on fairness is not advised.
    """
    from drocox import DROCox, concordance

    warnings.warn(
        "choose_alpha will be gone in the next edition; scikit-learn chooses penalties, and tuning "
        "α on fairness is not advised",
        DeprecationWarning,
        stacklevel=2,
    )
    _check_data(data)
    _checks.one_of(attribute, "attribute", data.groups)
    grid = sorted({1.0, *alphas}, reverse=True)  # plain Cox first
    folds = _checks.whole_number(folds, "folds", least=2)
    repeats = _checks.whole_number(repeats, "repeats", least=1)
    if len(grid) < 2 or folds * repeats < 3:
        raise ValueError("alphas, folds, repeats: pass an alpha below 1, and 3 folds in all")
    codes = _checks.codes(data.groups[attribute], attribute, len(data))
    fewest = np.bincount(codes, data.event).min()
    if fewest < folds:
        raise ValueError(
            f"a group of {attribute} has {fewest:.0f} events, too few for folds={folds}; lower "
            "folds or merge groups"
        )
    models = []
    for alpha in grid:
        if model is None:
            models.append(DROCox(alpha=alpha, rule=rule) if alpha < 1 else DROCox())
        else:
            models.append(clone(model).set_params(alpha=alpha))
    c_index = []
    fractions = []
    for repeat in range(repeats):
        with warnings.catch_warnings():  # the table shows which alphas give nearly Cox
            warnings.filterwarnings("ignore", "alpha=.* hardly acts", UserWarning)
            fits = [cross_fit(data, one, folds=folds, seed=repeat, by=codes) for one in models]
        for k in range(folds):
            out = fits[0]["folds"] == k
            outcomes = data.time[out], data.event[out]
            counts = [concordance.count(fit["scores"][out], *outcomes) for fit in fits]
            c_index.append([count.index() for count in counts])
            fractions.append([count.fractions(codes[out]) for count in counts])
    test_to_training = 1 / (folds - 1)  # patients
    table = _table(grid, np.array(c_index), np.array(fractions), test_to_training)
    position = choose(table["c_index"], table["ci_percent"], table["c_index"].iloc[0])
    return Choice(table.index[position], table)


def _check_data(data: SurvivalData) -> None:
    if not isinstance(data, SurvivalData):
        raise TypeError(
            f"data must be a SurvivalData, not {type(data).__name__}; see SurvivalData.from_frame"
        )


def _table(
    grid: list[float], c_index: np.ndarray, fractions: np.ndarray, test_to_training: float
) -> pd.DataFrame:
    """The table of :func:`choose_alpha`, from values by fold and alpha, plain Cox first.

    Imparity is not a mean over folds, so its variance is the jackknife's, which for a mean over J
    folds is S^2 / J. Because folds share training patients, it is multiplied by 1 + J times the
    ratio of test to training patients (Nadeau and Bengio).
    """
    from drocox.heldout.intervals import jackknife, simultaneous

    n_folds = len(c_index)

    def mean_c_index(folds) -> np.ndarray:
        return c_index[folds].mean(axis=0)

    def imparity(folds) -> np.ndarray:
        """In percent, for each alpha; fractions of groups are averaged over folds first."""
        return 100 * np.ptp(fractions[folds].mean(axis=0), axis=-1)

    all_folds = slice(None)
    everyone = mean_c_index(all_folds)
    table = pd.DataFrame({"alpha": grid, "eligible": everyone >= KEPT * everyone[0]})
    for name, short, estimate in (("c_index", "c", mean_c_index), ("ci_percent", "ci", imparity)):
        value = estimate(all_folds)
        without = np.array([estimate(np.arange(n_folds) != k) for k in range(n_folds)])
        of_differences, _ = jackknife(without[:, 1:] - without[:, :1])
        covariance = (1 + n_folds * test_to_training) * of_differences
        critical, _ = simultaneous(covariance, n_folds - 1)
        half = np.append(0, critical * np.sqrt(np.diag(covariance)))  # 0: plain Cox with itself
        difference = value - value[0]
        table[name] = value
        table[f"{short}_difference"] = difference
        table[f"{short}_low"] = difference - half
        table[f"{short}_high"] = difference + half
    return table.set_index("alpha")


def _beside_cox(table: pd.DataFrame, alpha: float, if_noise: str) -> str:
    """Difference between an alpha and plain Cox; ``if_noise`` ends it if it is not beyond noise."""
    cox = table.iloc[0]
    row = table.loc[alpha]
    low = row["ci_low"]
    high = row["ci_high"]
    compared = (
        f"α = {alpha:g} has concordance imparity {row['ci_percent']:.1f} % and c-index "
        f"{row['c_index']:.3f}, plain Cox {cox['ci_percent']:.1f} % and {cox['c_index']:.3f}; "
        f"imparity differs by {row['ci_difference']:+.1f} points "
        f"(95 % interval, all α at once: {low:.1f} to {high:.1f}). "
    )
    if low <= 0 <= high:
        return f"{compared}No difference beyond noise{if_noise}"
    return f"{compared}Beyond noise: {'fairer' if high < 0 else 'less fair'} than plain Cox."
