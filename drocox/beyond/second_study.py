r"""Results of the second study on many data sets: its planned analysis, from stored rows.

``runs`` are rows of :mod:`drocox.beyond.retired`, the plan is ``plans/acting_plan.md``.
The unit is the data set, and every data set counts the same: a mean with Student's :math:`t`. The
random-effects mean of :mod:`drocox.beyond.pooled` is the sensitivity analysis.

**Shares** are ratios of sums over data sets, :math:`\sum_k y_k / \sum_k g_k`, where :math:`g_k` is
the gap of the plain model, or the distance between everybody's c-index and the worst group's.
Their errors leave out one data set at a time.

**Heterogeneity.** With weights :math:`w_k = 1 / (\sigma_k^2 + \tau^2)` the statistic
:math:`Q(\tau) = \sum_k w_k (y_k - \bar y_w)^2` has a :math:`\chi^2_{K-1}` distribution at the
true :math:`\tau`, so the interval holds all :math:`\tau` with :math:`Q` between its quantiles
(Q-profile).
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import optimize, stats

from drocox.beyond.datasets import REGISTERED
from drocox.beyond.many_data_sets import PERMUTED
from drocox.beyond.models import ADAM, AGAINST, BY_C_INDEX, HALF, PUBLISHED
from drocox.beyond.pooled import holm, pool

DRAWS = 1000
CHANCE = (33, 69)  # rejections among 1,000 draws, with probability 99 % if the test keeps 5 %
ENOUGH_FOR_ADAM = 300  # events of a data set on which models by Adam are tested
SMALLEST_ERROR = 0.01  # points: an error below it is set to it
LARGEST_CERTIFICATE = 1e-4  # relative gap of a model that is analysed
HARMLESS = -0.5  # points of c-index that a model that is not worse loses at most
BY_ADAM = {*ADAM.values(), *PUBLISHED.values(), *BY_C_INDEX.values()}
CONTRASTS = (HALF, PUBLISHED["nonlinear"])


# what is not known where the plain model has no sure gap
UNSURE = ("matters", "share", "share_low", "share_high", "share_low90", "share_high90")


class Outcome(NamedTuple):
    """A difference from the plain model, and what it is a share of."""

    measure: str
    whole: str  # measure of the plain model
    matters: float  # share of the whole that matters


OUTCOMES = {
    "worst": Outcome("worst_diff", "distance", 0.1),
    "closing": Outcome("closing", "gap", 0.25),
}


class Mean(NamedTuple):
    """A mean over data sets with an interval by Student's t, and the p-value of 0."""

    k: int
    mean: float
    low: float
    high: float
    p: float


def mean_of(effect: ArrayLike, level: float = 0.95) -> Mean:
    """The mean of one effect per data set when all count the same.

    >>> [round(one, 3) for one in mean_of([0.1, 0.3, 0.2, 0.4])]
    [4, 0.25, 0.045, 0.455, 0.03]
    """
    effect = np.asarray(effect, float)
    k = len(effect)
    mean, se = effect.mean(), effect.std(ddof=1) / np.sqrt(k)
    half = stats.t.ppf((1 + level) / 2, k - 1) * se
    p = 2 * stats.t.sf(abs(mean) / se, k - 1) if se > 0 else float(mean == 0)
    return Mean(k, float(mean), float(mean - half), float(mean + half), float(p))


def ratio_of_sums(parts: ArrayLike, wholes: ArrayLike, level: float = 0.95) -> Mean:
    """The sum of ``parts`` divided by that of ``wholes``, jackknifed over data sets.

    >>> [round(one, 3) for one in ratio_of_sums([1, 2, 1], [4, 4, 4])]
    [3, 0.333, -0.025, 0.692, 0.057]
    """
    parts, wholes = np.asarray(parts, float), np.asarray(wholes, float)
    k = len(parts)
    value = parts.sum() / wholes.sum()
    without = (parts.sum() - parts) / (wholes.sum() - wholes)
    se = np.sqrt((k - 1) / k * ((without - without.mean()) ** 2).sum())
    half = stats.t.ppf((1 + level) / 2, k - 1) * se
    p = 2 * stats.t.sf(abs(value) / se, k - 1) if se > 0 else float(value == 0)
    return Mean(k, float(value), float(value - half), float(value + half), float(p))


def heterogeneity(effect: ArrayLike, se: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """The Q-profile interval of the standard deviation of true effects."""
    effect, se = np.asarray(effect, float), np.asarray(se, float)

    def q(tau: float) -> float:
        weights = 1 / (se**2 + tau**2)
        return float(weights @ (effect - np.average(effect, weights=weights)) ** 2)

    ends = []
    for quantile in stats.chi2.ppf([(1 + level) / 2, (1 - level) / 2], len(effect) - 1):
        far = 10 * (np.ptp(effect) + se.max())
        falls = q(0.0) > quantile  # Q falls as tau grows
        ends.append(optimize.brentq(lambda tau, at=quantile: q(tau) - at, 0, far) if falls else 0.0)
    return ends[0], ends[1]


def effective_number(weights: ArrayLike) -> float:
    """How many data sets of equal weight would be as many.

    >>> round(effective_number([10, 1, 1, 1]), 2)
    1.64
    """
    weights = np.asarray(weights, float)
    return float(weights.sum() ** 2 / (weights**2).sum())


# Stored rows ------------------------------------------------------------------------------------


def whole(runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of the study, if all its data sets are there."""
    rows = runs[runs["study"].isin(["acting", "many_data_sets"])]  # its first name, and its next
    missing = {*REGISTERED["included"], *REGISTERED["beside"]} - set(rows["dataset"])
    if missing:
        raise ValueError(f"runs lack {sorted(missing)}: the plan allows no analysis of a part")
    return rows.astype(dict.fromkeys(["model", "measure", "attribute"], "category"))  # fast


def uncertified(runs: pd.DataFrame) -> pd.DataFrame:
    """Models and data sets with a certificate above 1e-4 in a half: they are left out."""
    of_halves = runs[runs["measure"] == "certificate"]
    largest = of_halves.groupby(["model", "dataset"], observed=True)["value"].max()
    return largest[largest > LARGEST_CERTIFICATE].reset_index()


def where_tested(model: str) -> set[str]:
    """The data sets on which a model is tested: those with enough events if it is by Adam."""
    return {
        name
        for name, facts in REGISTERED["included"].items()
        if model not in BY_ADAM or facts["events"] >= ENOUGH_FOR_ADAM
    }


def effects(
    runs: pd.DataFrame, model: str, measure: str, attribute: str = "", *, shown: bool = False
) -> pd.DataFrame:
    """``effect`` and ``se`` of one measure of a model by data set.

    They are the data sets on which it is tested; with ``shown`` all that have it.
    """
    rows = runs[(runs["model"] == model) & (runs["measure"] == measure) & runs["se"].notna()]
    rows = rows[rows["attribute"] == attribute].set_index("dataset")
    left_out = uncertified(runs)
    left_out = left_out[left_out["model"].isin([model, AGAINST.get(model)])]
    rows = rows[~rows.index.isin(left_out["dataset"])]
    if not shown:
        rows = rows[rows.index.isin(where_tested(model))]
    se = rows["se"].clip(lower=SMALLEST_ERROR)
    return pd.DataFrame({"effect": rows["value"], "se": se}).sort_index()


# The analysis -----------------------------------------------------------------------------------


def share(runs: pd.DataFrame, model: str, outcome: Outcome, level: float = 0.95) -> Mean:
    """A mean difference as a share of the plain model's gap or distance."""
    parts = effects(runs, model, outcome.measure)["effect"]
    base = runs[runs["dataset"].isin(parts.index)]
    wholes = effects(base, AGAINST[model], outcome.whole, shown=True)["effect"]
    return ratio_of_sums(parts, wholes[parts.index], level)


def plain(runs: pd.DataFrame, model: str, outcome: Outcome) -> Mean:
    """The plain model's mean gap or distance, on the data sets where a model is tested."""
    there = effects(runs, model, outcome.measure).index
    wholes = effects(runs, AGAINST[model], outcome.whole, shown=True)
    return mean_of(wholes.loc[there, "effect"])


def primary_table(runs: pd.DataFrame) -> pd.DataFrame:
    """A row for each primary contrast and outcome, by both weightings.

    ``mean``, ``low``, ``high`` and ``p`` count data sets equally, ``holm`` adjusts for all four.
    ``share`` with 95 % (``share_low``, ``share_high``) and 90 % intervals (``share_low90`` …) is
    missing where the plain model has no sure gap. ``reml`` …: random effects, with the
    ``effective`` number of data sets. ``tau_low``, ``tau_high``: the spread of true effects;
    ``matters``: what matters in points; ``whole``: the plain model's mean gap or distance.
    """
    table = {}
    for model in CONTRASTS:
        for name, outcome in OUTCOMES.items():
            rows = effects(runs, model, outcome.measure)
            random = pool(rows["effect"], rows["se"])
            row = mean_of(rows["effect"])._asdict()
            row |= {"reml": random.mean, "tau": np.sqrt(random.tau2)}
            row["reml_low"], row["reml_high"] = random.interval()
            row["effective"] = effective_number(1 / (rows["se"] ** 2 + random.tau2))
            row["tau_low"], row["tau_high"] = heterogeneity(rows["effect"], rows["se"])
            of_plain = plain(runs, model, outcome)
            row["whole"] = of_plain.mean
            row["matters"] = outcome.matters * of_plain.mean
            for level, end in ((0.95, ""), (0.9, "90")):
                some = share(runs, model, outcome, level)
                row["share"] = some.mean
                row |= {f"share_low{end}": some.low, f"share_high{end}": some.high}
            if of_plain.low <= 0:
                row |= dict.fromkeys(UNSURE, np.nan)
            table[model, name] = row
    frame = pd.DataFrame(table).T.infer_objects().astype(float).astype({"k": int})
    frame.insert(5, "holm", holm(frame["p"]))
    return frame


class Claim(NamedTuple):
    """What the plan lets one say of a contrast and an outcome."""

    says: str  # "gains", "falls", "closes", "opens" or "" where no claim is allowed
    lacks: str  # what a gain lacks
    irrelevant: bool  # "no effect that matters"


def claims(runs: pd.DataFrame) -> dict[tuple[str, str], Claim]:
    """The planned claims of the primary contrasts, by model and outcome."""
    table = primary_table(runs)
    out = {}
    for (model, name), row in table.iterrows():
        sure, above = row["holm"] < 0.05, row["mean"] > 0
        says, lacks = "", ""
        if name == "worst" and sure:
            says = "gains" if above else "falls"
            own = mean_of(effects(runs, model, "worst_own_diff")["effect"])
            if above and own.low <= 0:
                lacks = "its own worst group"
        elif sure and not above:
            says = "opens"
        elif sure:
            there = effects(runs, model, "closing").index
            worst = effects(runs, model, "worst_diff")["effect"]
            worst = worst[worst.index.isin(there)].mean()
            kept = mean_of(effects(runs, model, "guard")["effect"]).low > 0
            says = "closes" if kept and worst >= 0 else ""
        matters = OUTCOMES[name].matters
        within = row["share_low90"] > -matters and row["share_high90"] < matters
        out[model, name] = Claim(says, lacks, bool(within))
    return out


def accuracy(runs: pd.DataFrame, model: str) -> tuple[Mean, bool]:
    """The difference of everybody's c-index, and whether it is *not worse*."""
    found = mean_of(effects(runs, model, "c_diff")["effect"])
    return found, found.low > HARMLESS


def default_changes(runs: pd.DataFrame) -> bool:
    """Whether the plan changes the default of ``DROCox`` to a share of the events."""
    gain = claims(runs)[HALF, "worst"]
    return gain.says == "gains" and not gain.lacks and accuracy(runs, HALF)[1]


def secondary_table(
    runs: pd.DataFrame, measures: tuple[str, ...], attribute: str = ""
) -> pd.DataFrame:
    """Means with intervals of every model that is compared with another, by model and measure."""
    table = {}
    for model in AGAINST:
        for measure in measures:
            rows = effects(runs, model, measure, attribute)
            if len(rows) > 1:
                table[model, measure] = mean_of(rows["effect"])._asdict()
    return pd.DataFrame(table).T.astype({"k": int})


# Controls ---------------------------------------------------------------------------------------


def permuted_rejections(runs: pd.DataFrame, model: str) -> int:
    """Draws of permuted labels, of 1,000, in which the mean closing differs from 0 at 5 %."""
    rows = runs[(runs["measure"] == PERMUTED) & (runs["model"] == model)]
    there = effects(runs, model, "closing").index
    draws = rows[rows["dataset"].isin(there)].pivot(index="draw", columns="dataset", values="value")
    return sum(mean_of(draw).p < 0.05 for draw in draws.to_numpy())


def swapped_rejections(runs: pd.DataFrame, model: str, measure: str) -> int:
    """Draws of signs, of 1,000, in which the mean difference differs from 0 at 5 %."""
    effect = effects(runs, model, measure)["effect"].to_numpy()
    signs = (np.random.default_rng(draw).choice([-1.0, 1.0], len(effect)) for draw in range(DRAWS))
    return sum(mean_of(sign * effect).p < 0.05 for sign in signs)


def control_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Rejections without an effect, of 1,000 draws; outside 33 to 69 the control has failed."""
    table = {}
    for model in CONTRASTS:
        table["labels permuted", model, "closing"] = permuted_rejections(runs, model)
        for name, outcome in OUTCOMES.items():
            found = swapped_rejections(runs, model, outcome.measure)
            table["names swapped", model, name] = found
    frame = pd.Series(table).to_frame("rejected")
    low, high = CHANCE
    frame["control"] = np.select(
        [frame["rejected"] < low, frame["rejected"] > high],
        ["failed: rejects too rarely", "failed: rejects too often"],
        "passed",
    )
    return frame
