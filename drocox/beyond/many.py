r"""Many data sets: DRO-COX against Cox wherever patients, outcomes and covariates are public.

**Two halves.** The patients of a data set are dealt into halves A and B, evenly by event. All that
is learned is learned on A: medians and scales of features, the models, and, from scores that are
cross-fitted inside A, the sign :math:`s` of Cox's gap and the group that Cox serves worst. A's
models are judged on B; then the halves change places. Five such splits are averaged.

**What is judged.** With the gap :math:`\Delta = 100\,(CF_1 - CF_0)` of two groups' concordance
fractions on B,

.. math:: \text{closing} = s\,(\Delta_{\mathrm{Cox}} - \Delta_{\mathrm{DRO}}), \qquad
          \text{guard} = s\,(\Delta_{\mathrm{Cox}} + \Delta_{\mathrm{DRO}}) .

A gap that shrinks has a closing above 0; one that shrinks without being turned round has a guard
above 0, too: :math:`\text{closing} \cdot \text{guard} = \Delta_{\mathrm{Cox}}^2 -
\Delta_{\mathrm{DRO}}^2`. Since :math:`s` does not know B, both are 0 on average where there is
nothing. Beside them stand Harrell's c-index of everybody and of the worst group, among its members.

**Errors** have patients as their unit. Every figure is a ratio of sums over pairs, whose value
without each patient is known (:mod:`drocox.heldout`); in one split each patient is judged once, so
the jackknife gives the variance of the mean of both halves. The splits reuse the same patients:
that of their mean is at most the mean of their variances (the variance of a mean of equally
correlated numbers is at most that of one), and this is what is used. It is never divided by the
number of splits.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import accuracy, concordance
from drocox.beyond import survset
from drocox.choosing import choose
from drocox.cox import RiskSets, breslow_survival, risk_sets
from drocox.data import SurvivalData
from drocox.evaluation import scaled_features
from drocox.heldout import Estimate, HeldOut, assign_folds
from drocox.intervals import jackknife
from drocox.paper.protocol import ALPHAS
from drocox.solver import Solution, minimise

SPLITS = 5
FOLDS = 5  # of the cross-fit inside a half
FEWEST_EVENTS = 30  # of a described group, in the half where it is found
SMALLEST, LARGEST = 0.1, 0.9  # its share of the patients there
RIDGE = 1e-6  # of every model, so that each has a minimum, also where a feature separates
ROUNDED = 9  # decimals of scores, so that equal covariates have equal scores everywhere
EXACT = 1e-12  # gap of an optimum whose digits do not depend on the platform
PRIMARY = ("sex", "age")  # attributes whose closings are averaged
ATTRIBUTES = (*PRIMARY, "race")
REGISTERED = tomllib.loads(Path(__file__).with_name("preregistration.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Setting:
    """A method and its settings: the columns that identify a model."""

    method: str
    alpha: float
    rule: str = ""
    penalty: float = 0.0  # with the mean loss of an event

    @property
    def split(self) -> bool:
        """Whether losses are those of sample splitting."""
        return "SPLIT" in self.method


COX = Setting("Cox", 1.0)
DRO = Setting("DRO-COX", 0.5, "sharp")  # the primary contrast
TUNED = Setting("DRO-COX, tuned", np.nan, "paper")  # alpha by the paper's rule, inside A
SETTINGS = (
    COX,
    DRO,
    Setting("DRO-COX", 0.5, "paper"),
    Setting("DRO-COX", 0.2, "paper"),
    Setting("CVaR", 0.5, "cvar"),
    Setting("DRO-COX (SPLIT)", 0.5, "sharp"),
    Setting("ridge Cox", 1.0, penalty=0.01),
    Setting("ridge Cox", 1.0, penalty=0.1),
    Setting("ridge Cox", 1.0, penalty=1.0),
    TUNED,
)


# Patients and groups --------------------------------------------------------------------------


@dataclass(frozen=True)
class Patients:
    """Patients of a data set, or some of them."""

    data: SurvivalData
    covariates: pd.DataFrame  # that describe groups, before encoding: numbers or text
    attributes: dict[str, np.ndarray]  # sex, race: 0, 1; age: a number; NaN: not known

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def risk(self) -> RiskSets:
        """The time order."""
        return risk_sets(self.data.time, self.data.event)

    def subset(self, rows: np.ndarray) -> "Patients":
        """Some of the patients.

        Parameters
        ----------
        rows : int array

        Returns
        -------
        Patients
        """
        some = {name: values[rows] for name, values in self.attributes.items()}
        return Patients(self.data.subset(rows), self.covariates.iloc[rows], some)

    def in_order(self) -> "Patients":
        """The same in an order of their own, so that the order of the file means nothing.

        Returns
        -------
        Patients
            Sorted by time, event, features and attributes.
        """
        columns = [self.data.time, self.data.event, *self.data.X.to_numpy().T]
        columns += list(self.attributes.values())
        return self.subset(np.lexsort([np.nan_to_num(one, nan=-np.inf) for one in columns[::-1]]))


@dataclass(frozen=True)
class Group:
    """Patients whom one covariate describes: a level of a factor, or one side of a cut."""

    covariate: str
    value: float | str
    side: str  # "=", ">" or "≤"

    def members(self, covariates: pd.DataFrame) -> np.ndarray:
        """Who belongs to it.

        Parameters
        ----------
        covariates : DataFrame
            Before encoding; whose covariate is missing is no member.

        Returns
        -------
        bool array of shape (n,)
        """
        values = covariates[self.covariate]
        if self.side == "=":
            return (values == self.value).to_numpy(bool)
        return ((values > self.value) if self.side == ">" else (values <= self.value)).to_numpy()


def described_groups(patients: Patients) -> list[Group]:
    """Groups that one covariate describes: a level of a factor, either side of a median.

    A number with two values is cut between them.

    Parameters
    ----------
    patients : Patients
        Of the half on which groups are found.

    Returns
    -------
    list of Group
        With at least 30 events and 10 to 90 % of the patients, in the order of the covariates.
    """
    candidates = []
    for name, values in patients.covariates.items():
        distinct = values.dropna().unique()
        if not pd.api.types.is_numeric_dtype(values):
            candidates += [Group(name, level, "=") for level in sorted(distinct)]
        elif len(distinct) > 1:
            cut = float(distinct.min() if len(distinct) == 2 else values.median())
            candidates += [Group(name, cut, ">"), Group(name, cut, "≤")]
    found = []
    for group in candidates:
        members = group.members(patients.covariates)
        events = patients.data.event[members].sum()
        if SMALLEST <= members.mean() <= LARGEST and events >= FEWEST_EVENTS:
            found.append(group)
    return found


def codes_of(patients: Patients, cuts: dict[str, float]) -> dict[str, np.ndarray]:
    """Group codes by attribute, 0 and 1; -1: not known. Age: 1 above the cut.

    Parameters
    ----------
    patients : Patients
    cuts : dict of str to float
        What values of each attribute are compared with.

    Returns
    -------
    dict of str to int arrays of shape (n,)
    """
    out = {}
    for name, cut in cuts.items():
        values = patients.attributes[name]
        out[name] = np.where(np.isnan(values), -1, values > cut)
    return out


def cuts_of(patients: Patients) -> dict[str, float]:
    """Where each attribute is cut: age at the median of these patients.

    Parameters
    ----------
    patients : Patients

    Returns
    -------
    dict of str to float
    """
    out = {}
    for name, values in patients.attributes.items():
        out[name] = float(np.nanmedian(values)) if name == "age" else 0.5
    return out


def load(name: str) -> Patients:
    """Patients of a data set, in an order of their own, with the attributes that are judged.

    Parameters
    ----------
    name : str
        A data set of SurvSet that has been registered.

    Returns
    -------
    Patients
    """
    one = survset.load(name)
    attributes = {
        attribute: np.asarray(getattr(one, attribute), dtype=float)
        for attribute in ATTRIBUTES
        if survset.eligible(one, attribute)
    }
    data = SurvivalData(name, one.X, one.time, one.event)
    return Patients(data, one.covariates[one.describing], attributes).in_order()


# What half A decides --------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    """What one half decides: everything but the outcomes by which it is judged."""

    models: dict[Setting, Solution]
    tuned: float  # the alpha that the paper's rule chose; NaN: no attribute to tune by
    cuts: dict[str, float]
    gaps: dict[str, float]  # Cox's, cross-fitted inside, in points
    c: float  # Cox's c-index, likewise, in percent
    worst: dict[str, Group | None]  # lowest c-index among members under Cox, and under DRO-COX

    @property
    def signs(self) -> np.ndarray:
        """Direction of each gap."""
        return np.array([1.0 if gap >= 0 else -1.0 for gap in self.gaps.values()])


def halves(event: np.ndarray, split: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn on and rows to judge on: two halves, evenly by event, both ways.

    Parameters
    ----------
    event : array of shape (n,)
    split : int
        The seed.

    Returns
    -------
    iterator of (int array, int array)
    """
    dealt = assign_folds(event, 2, split)
    for half in (0, 1):
        yield np.flatnonzero(dealt == half), np.flatnonzero(dealt != half)


def fit(X: np.ndarray, patients: Patients, setting: Setting, seed: int) -> Solution:
    """One certified model.

    Parameters
    ----------
    X : array of shape (n, d)
        Scaled features.
    patients : Patients
    setting : Setting
    seed : int
        Of the halves of sample splitting.

    Returns
    -------
    Solution
    """
    event = patients.data.event
    return minimise(
        X,
        patients.risk,
        setting.alpha,
        rule=setting.rule or "sharp",
        first=assign_folds(event, 2, seed) == 0 if setting.split else None,
        penalty=RIDGE + setting.penalty * event.mean(),
    )


def scores_of(X: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Scores, equal for equal covariates on every platform.

    Parameters
    ----------
    X : array of shape (n, d)
    coef : array of shape (d,)

    Returns
    -------
    array of shape (n,)
    """
    return np.round(X @ coef, ROUNDED) + 0.0  # no negative zeros


def cross_fitted(patients: Patients, seed: int) -> dict[Setting, HeldOut]:
    """Scores of Cox and of DRO-COX for patients whom the model has not seen, within one half.

    Parameters
    ----------
    patients : Patients
    seed : int

    Returns
    -------
    dict of Setting to HeldOut
    """
    data = patients.data
    fold = assign_folds(data.event, FOLDS, seed)
    scores = {setting: np.empty(len(data)) for setting in (COX, DRO)}
    for k in range(FOLDS):
        inside = patients.subset(np.flatnonzero(fold != k))
        X, X_out = scaled_features(inside.data, data.subset(fold == k))
        for setting, values in scores.items():
            values[fold == k] = scores_of(X_out, fit(X, inside, setting, seed).coef)
    return {
        setting: HeldOut(values, data.time, data.event, fold) for setting, values in scores.items()
    }


def tuned_alpha(patients: Patients, attributes: Sequence[str], seed: int) -> float:
    """Alpha by the paper's rule: three quarters fit, one validates.

    Of the paper's six alphas, with its constant, those are eligible that keep 95 % of Cox's
    c-index; the smallest imparity wins, a mean over attributes.

    Parameters
    ----------
    patients : Patients
        One half.
    attributes : sequence of str
    seed : int

    Returns
    -------
    float
        NaN without attributes.
    """
    if not attributes:
        return np.nan
    quarter = assign_folds(patients.data.event, 4, seed) == 0
    inside = patients.subset(np.flatnonzero(~quarter))
    out = patients.subset(np.flatnonzero(quarter))
    X, X_out = scaled_features(inside.data, out.data)
    codes = codes_of(out, cuts_of(inside))
    c_index = []
    imparity = []
    for setting in (COX, *(Setting("DRO-COX", alpha, "paper") for alpha in ALPHAS)):
        scores = scores_of(X_out, fit(X, inside, setting, seed).coef)
        counts = concordance.count(scores, out.risk)
        c_index.append(counts.index())
        apart = [abs(_fraction(counts, codes[a] == 1) - _fraction(counts, codes[a] == 0))
                 for a in attributes]  # fmt: skip
        imparity.append(np.mean(apart))
    return ALPHAS[choose(c_index[1:], imparity[1:], c_index[0])]


def _fraction(counts: concordance.Counts, members: np.ndarray) -> float:
    """Concordance fraction of a group; NaN without pairs."""
    pairs = counts.pairs[members].sum()
    return float(counts.points[members].sum() / pairs) if pairs > 0 else np.nan


def gap_of(held: HeldOut, codes: np.ndarray) -> Estimate:
    """Gap of an attribute: the second group's concordance fraction less the first's, in points.

    Parameters
    ----------
    held : HeldOut
    codes : int array of shape (n,)
        0, 1, and -1 for patients who are compared with others but in neither group.

    Returns
    -------
    Estimate
    """
    second = held.concordance(codes == 1)
    first = held.concordance(codes == 0)
    return Estimate(
        100 * (second.value - first.value), 100 * (second.without - first.without)
    )  # fmt: skip


def learn(patients: Patients, settings: Sequence[Setting], seed: int) -> Learned:
    """Everything that a half decides.

    Parameters
    ----------
    patients : Patients
        The half.
    settings : sequence of Setting
        Models to fit, besides Cox and DRO-COX.
    seed : int
        Of folds inside.

    Returns
    -------
    Learned
    """
    cuts = cuts_of(patients)
    held = cross_fitted(patients, seed)
    codes = codes_of(patients, cuts)
    gaps = {name: gap_of(held[COX], values).value for name, values in codes.items()}
    everybody = np.full(len(patients), True)
    groups = described_groups(patients)
    worst = {}
    for name, setting in (("cox", COX), ("dro", DRO)):
        own = [held[setting].c_index(group.members(patients.covariates)).value for group in groups]
        worst[name] = groups[int(np.nanargmin(own))] if groups else None
    tuned = np.nan
    if TUNED in settings:
        tuned = tuned_alpha(patients, [a for a in PRIMARY if a in cuts], seed)
    X = scaled_features(patients.data)[0]
    models = {}
    for setting in dict.fromkeys((COX, DRO, *settings)):
        if setting != TUNED:
            models[setting] = fit(X, patients, setting, seed)
        elif not np.isnan(tuned):
            models[setting] = fit(X, patients, Setting("DRO-COX", tuned, "paper"), seed)
    c = 100 * held[COX].c_index(everybody).value
    return Learned(models, tuned, cuts, gaps, c, worst)


# What half B judges ---------------------------------------------------------------------------


def figures(
    held: HeldOut, codes: dict[str, np.ndarray], worst: Sequence[np.ndarray | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Concordances of one model on half B, and how they move without each patient.

    Parameters
    ----------
    held : HeldOut
    codes : dict of str to int arrays of shape (n,)
        Groups by attribute.
    worst : sequence of bool arrays of shape (n,), or None
        Groups whose own c-index is wanted; None: there is none.

    Returns
    -------
    values, moves : arrays of shape (k,) and (n, k)
        c-index, gap of each attribute, c-index among the members of each group: in points.
    """
    estimates = [_percent(held.c_index(np.full(len(held.time), True)))]
    estimates += [gap_of(held, values) for values in codes.values()]
    nothing = Estimate(np.nan, np.full(len(held.time), np.nan))
    for members in worst:
        estimates.append(nothing if members is None else _percent(held.c_index(members)))
    values = np.array([one.value for one in estimates])
    without = np.column_stack([one.without for one in estimates])
    return values, without - values


def _percent(one: Estimate) -> Estimate:
    return Estimate(100 * one.value, 100 * one.without)


@dataclass(frozen=True)
class Contrasts:
    """Names of what is compared, and the linear map that makes it of two models' figures."""

    attributes: tuple[str, ...]

    @cached_property
    def names(self) -> list[str]:
        """Of each contrast."""
        out = ["c", "c_diff"]
        for kind in ("gap", "closing", "guard"):
            out += [f"{kind}_{name}" for name in self.attributes]
        out += ["joint_closing", "joint_guard"]
        return [*out, "worst_own", "worst_own_diff", "worst_dro", "worst_dro_diff"]

    def of(self, own: np.ndarray, cox: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Contrasts of a model with Cox.

        Parameters
        ----------
        own, cox : arrays of shape (..., k)
            Figures of both models, or how they move without a patient.
        signs : array with a sign for each attribute

        Returns
        -------
        array of shape (..., number of names)
        """
        a = len(self.attributes)
        gap = own[..., 1 : 1 + a]
        closing = signs * (cox[..., 1 : 1 + a] - gap)
        guard = signs * (cox[..., 1 : 1 + a] + gap)
        primary = [j for j, name in enumerate(self.attributes) if name in PRIMARY]
        nothing = np.full((*own.shape[:-1], 1), np.nan)
        joint = [
            part[..., primary].mean(axis=-1, keepdims=True) if primary else nothing
            for part in (closing, guard)
        ]
        worst = own[..., 1 + a :]
        diff = worst - cox[..., 1 + a :]
        first = [own[..., :1], own[..., :1] - cox[..., :1]]
        last = [worst[..., :1], diff[..., :1], worst[..., 1:], diff[..., 1:]]
        return np.concatenate([*first, gap, closing, guard, *joint, *last], axis=-1)


def _mean(values: Sequence[np.ndarray]) -> np.ndarray:
    """Mean over the splits in which a figure exists, NaN where it never does."""
    stacked = np.array(values)
    known = np.isfinite(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def split_variance(moves: np.ndarray) -> np.ndarray:
    """Jackknife variances of figures that are means over both halves of a split.

    Parameters
    ----------
    moves : array of shape (n, k)
        How each figure of a patient's own half moves without that patient.

    Returns
    -------
    array of shape (k,)
        NaN where a figure does not exist without some patient.
    """
    out = np.full(moves.shape[1], np.nan)
    known = np.isfinite(moves).all(axis=0)
    if known.any():
        out[known] = np.diag(jackknife(moves[:, known] / 2)[0])
    return out


def _accuracy(train: Patients, judged: Patients, X, X_out, coef) -> tuple[float, float]:
    """Integrated Brier score and calibration slope on half B, by the baseline of half A.

    Follow-up ends where nine tenths of A's does.
    """
    horizon = np.quantile(train.data.time, 0.9)
    time = np.minimum(judged.data.time, horizon)
    event = judged.data.event & (judged.data.time <= horizon)
    times = accuracy.brier_times(train.data.time, time)
    scores = X_out @ coef
    curves = breslow_survival(X @ coef, train.risk, None, scores, times).numpy()
    outcomes = train.data.time, train.data.event, time, event
    brier = accuracy.BrierScore(*outcomes, times)(curves)
    if scores.std() < 1e-6:
        return brier, np.nan
    return brier, float(minimise(scores[:, None], judged.risk, 1).coef[0])


@dataclass(frozen=True)
class Half:
    """One model, learned on one half and judged on the other."""

    values: np.ndarray  # of the contrasts
    moves: np.ndarray  # how they move without each patient of the half that judges
    products: np.ndarray  # of each attribute: A's gap under Cox times B's
    brier: float
    slope: float
    certificate: float


def judge(
    a: Patients, b: Patients, learned: Learned, settings: Sequence[Setting]
) -> dict[Setting, Half]:
    """Models of half A on half B.

    Parameters
    ----------
    a, b : Patients
    learned : Learned
        What A has decided.
    settings : sequence of Setting
        Of the models, Cox first; those that were not learned are left out.

    Returns
    -------
    dict of Setting to Half
    """
    contrasts = Contrasts(tuple(b.attributes))
    X, X_out = scaled_features(a.data, b.data)
    codes = codes_of(b, learned.cuts)
    worst = [
        None if group is None else group.members(b.covariates) for group in learned.worst.values()
    ]
    inside = np.array(list(learned.gaps.values()))
    cox_values, cox_moves = np.empty(0), np.empty(0)
    out = {}
    for setting in settings:
        if setting not in learned.models:
            continue
        solution = learned.models[setting]
        scores = scores_of(X_out, solution.coef)
        held = HeldOut(scores, b.data.time, b.data.event, np.zeros(len(b), int))
        values, moves = figures(held, codes, worst)
        if setting == COX:
            cox_values, cox_moves = values, moves
        brier, slope = _accuracy(a, b, X, X_out, solution.coef)
        out[setting] = Half(
            values=contrasts.of(values, cox_values, learned.signs),
            moves=contrasts.of(moves, cox_moves, learned.signs),
            products=inside * values[1 : 1 + len(inside)],
            brier=brier,
            slope=slope,
            certificate=solution.gap,
        )
    return out


@dataclass
class Results:
    """One model on all halves of a data set."""

    halves: list[Half] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)  # of each split
    variances: list[np.ndarray] = field(default_factory=list)  # likewise

    def add(self, rows: Sequence[np.ndarray], both: Sequence[Half]) -> None:
        """Take in one split.

        Parameters
        ----------
        rows : two int arrays
            Patients that judge in each half.
        both : two Half
        """
        self.halves += both
        self.values.append(np.mean([half.values for half in both], axis=0))
        moves = np.empty((sum(map(len, rows)), len(both[0].values)))
        for some, half in zip(rows, both, strict=True):
            moves[some] = half.moves
        self.variances.append(split_variance(moves))

    def row(self, contrasts: Contrasts) -> dict[str, float]:
        """Means over the splits, and their errors (``..._se``).

        Parameters
        ----------
        contrasts : Contrasts

        Returns
        -------
        dict of str to float
        """
        value = dict(zip(contrasts.names, _mean(self.values), strict=True))
        error = dict(zip(contrasts.names, np.sqrt(_mean(self.variances)), strict=True))
        slopes = [half.slope for half in self.halves if not np.isnan(half.slope)]
        products = np.mean([half.products for half in self.halves], axis=0)
        return {
            **value,
            **{f"{name}_se": one for name, one in error.items()},
            **{
                f"product_{name}": one
                for name, one in zip(contrasts.attributes, products, strict=True)
            },
            "ibs": float(np.mean([half.brier for half in self.halves])),
            "slope": float(np.median(slopes)) if slopes else np.nan,
            "certificate": max(half.certificate for half in self.halves),
        }


OF_ATTRIBUTE = ("gap", "closing", "closing_se", "guard", "guard_se")
AFTER = (  # the same in all rows of a model, after the columns that every study would have
    "joint_closing",
    "joint_closing_se",
    "joint_guard",
    "joint_guard_se",
    "worst_dro",
    "worst_dro_diff",
    "worst_dro_diff_se",
    "certificate",
)


def _row(setting: Setting, own: dict, cox: dict, attribute: str) -> dict:
    """One row: a model, and an attribute or none."""
    row = {
        "attribute": attribute,
        "c": own["c"],
        "c_se": own["c_se"],
        "c_diff": own["c_diff"],
        "c_diff_se": own["c_diff_se"],
    }
    for name in OF_ATTRIBUTE:
        kind, _, error = name.partition("_")
        key = f"{kind}_{attribute}_{error}" if error else f"{kind}_{attribute}"
        row[name] = own.get(key, np.nan)
    for name in ("worst_own", "worst_own_diff", "worst_own_diff_se", "ibs", "slope", *AFTER):
        row[name] = own[name]
    row["product"] = own.get(f"product_{attribute}", np.nan)
    row["product_cox"] = cox.get(f"product_{attribute}", np.nan)
    # at a kink, or away from an exact optimum, the last digits depend on the platform
    exact = own["certificate"] <= EXACT and setting.rule != "cvar"
    return row | {"moved": 0.0 if exact else np.nan}


def study(
    patients: Patients,
    settings: Sequence[Setting] = SETTINGS,
    splits: Sequence[int] = range(SPLITS),
) -> pd.DataFrame:
    """All models on one data set.

    Parameters
    ----------
    patients : Patients
        In an order of their own, see :meth:`Patients.in_order`.
    settings : sequence of Setting
        Of the models; Cox comes first.
    splits : sequence of int
        Their seeds.

    Returns
    -------
    DataFrame
        The rows of :func:`rows`.
    """
    results: dict[Setting, Results] = {}
    inside = []  # of each half: Cox's c-index and gap inside, and the alpha that was chosen
    for split in splits:
        both = []
        judging = []
        for rows_a, rows_b in halves(patients.data.event, split):
            a = patients.subset(rows_a)
            learned = learn(a, settings, split)
            both.append(judge(a, patients.subset(rows_b), learned, settings))
            judging.append(rows_b)
            gaps = [abs(learned.gaps[name]) for name in PRIMARY if name in learned.gaps]
            inside.append([learned.c, np.mean(gaps) if gaps else np.nan, learned.tuned])
        for setting in both[0]:
            result = results.setdefault(setting, Results())
            result.add(judging, [half[setting] for half in both])
    inside_c, inside_gap, chosen = _mean(inside)
    contrasts = Contrasts(tuple(patients.attributes))
    of_model = {setting: result.row(contrasts) for setting, result in results.items()}
    out = []
    for setting, values in of_model.items():
        model = {
            "method": setting.method,
            "alpha": chosen if setting == TUNED else setting.alpha,
            "rule": setting.rule,
            "penalty": setting.penalty,
            "patients": len(patients),
            "events": int(patients.data.event.sum()),
            "features": patients.data.X.shape[1],
        }
        for attribute in contrasts.attributes or ("",):
            out.append(model | _row(setting, values, of_model[COX], attribute))
    return pd.DataFrame(out).assign(inside_c=inside_c, inside_gap=inside_gap)


# The study as jobs ----------------------------------------------------------------------------


def jobs() -> list[dict]:
    """One job for each data set that was registered, the largest first.

    Returns
    -------
    list of dict
        Not by the key ``dataset``, which in the store means the paper's.
    """
    registered = REGISTERED["included"] | REGISTERED["beside"]
    by_size = sorted(registered, key=lambda name: -registered[name]["patients"])
    return [{"name": name} for name in by_size]


def rows(name: str) -> pd.DataFrame:
    """All models on one data set.

    Parameters
    ----------
    name : str
        See :func:`load`.

    Returns
    -------
    DataFrame
        A row for each method and attribute (or one without attribute). After ``dataset``,
        ``method``, ``alpha``, ``rule``, ``penalty``, ``patients``, ``events``, ``features`` and
        ``attribute``: the c-index ``c``, its difference to Cox's (``c_diff``), ``gap`` (signed),
        ``closing``, ``guard``, c-index among members of the group that Cox serves worst
        (``worst_own``) and its difference (``..._diff``), each with its standard error (``..._se``)
        and in points; ``ibs``; ``slope`` of calibration. Then, the same in all rows of a method:
        closing and guard averaged over sex and age (``joint_...``), the worst group of DRO-COX
        (``worst_dro...``), Cox's c-index and gap inside the other half (``inside_...``), the
        largest gap of an optimum (``certificate``); and by attribute the products of A's gap under
        Cox with B's (``product``) and with B's under Cox (``product_cox``).
    """
    out = study(load(name))
    out.insert(0, "dataset", name)
    return out
