r"""The planned analysis of the study on many data sets, from its stored rows.

The rows are those of :mod:`drocox.beyond.many_data_sets`, the plan is ``plans/plan.md``. A data set
has one effect, the mean over its splits; the unit is the data set, and all count the same.

**Simultaneous intervals** (single-step max-t). The primary effects :math:`y_{kj}`, with j for the
four contrasts and k for the K data sets that have all of them, have means :math:`\bar y_j` whose
covariance is estimated by that of the effects across data sets, divided by K. The intervals

.. math:: \bar y_j \pm c\, s_j / \sqrt{K}

have one critical value c, the 95 % quantile of the largest :math:`|t_j|` of a multivariate t with
K - 1 degrees of freedom and these correlations. All other intervals hold one at a time.

**Shares** are ratios of sums over data sets, :math:`\sum_k y_k / \sum_k g_k`, where :math:`g_k` is
the plain model's gap, or its distance between everybody's c-index and the worst group's. Their
errors leave out one data set at a time.

**Precision.** Beside equal weights stands the random-effects mean of :mod:`drocox.beyond.pooled`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from drocox.beyond.by_adam import (
    BRIDGE,
    BY_C_INDEX,
    DRO,
    MAIN,
    PENALISED,
    PLAIN_3,
    PLAIN_18,
    PREFIX,
    SPLIT,
)
from drocox.beyond.datasets import REGISTERED, TESTED
from drocox.beyond.many_data_sets import OF_ONE, PERMUTED, jobs
from drocox.beyond.models import AGAINST
from drocox.beyond.outcomes import AT_START_0, BOTH, CHOICES, PERMUTATIONS, Average, Contrast
from drocox.beyond.pooled import holm, pool
from drocox.heldout.intervals import LEVEL, simultaneous
from drocox.paper.store import DEFAULT, Store
from drocox.paper.sweep import HELD

INCLUDED = tuple(REGISTERED["included"])  # the 27 on which certified and linear models are fitted
MARGINS = {"worst": 0.46, "closing": 0.23}  # points that matter, fixed by the plan
WORDS = {"worst": ("falls", "gains"), "closing": ("opens", "closes")}
SMALL, UNKNOWN = "too small to matter", "not known"
WHOLES = {"worst": "distance", "closing": "gap"}  # of which an effect is a share
MEASURES = {"c-index": "c_diff", "worst": "worst_diff", "closing": "closing"}
CHANCE = (33, 69)  # rejections among them, with probability 99 % if the test keeps 5 %
SMALLEST_ERROR = 0.01  # points: an error below it is set to it
LARGEST_CERTIFICATE = 1e-4  # relative gap of a model that is analysed


class Mean(NamedTuple):
    """A mean over data sets with a 95 % interval by Student's t, and the p-value of 0."""

    k: int
    mean: float
    low: float
    high: float
    p: float


def _by_t(k: int, value: float, se: float, df: int) -> Mean:
    half = stats.t.ppf((1 + LEVEL) / 2, df) * se
    p = 2 * stats.t.sf(abs(value) / se, df) if se > 0 else float(value == 0)
    return Mean(k, float(value), float(value - half), float(value + half), float(p))


def mean_of(effect: ArrayLike) -> Mean:
    """The mean of one effect per data set when all count the same.

    >>> [round(one, 3) for one in mean_of([0.1, 0.3, 0.2, 0.4])]
    [4, 0.25, 0.045, 0.455, 0.03]
    """
    effect = np.asarray(effect, float)
    k = len(effect)
    return _by_t(k, effect.mean(), effect.std(ddof=1) / np.sqrt(k), k - 1)


def ratio_of_sums(parts: ArrayLike, wholes: ArrayLike) -> Mean:
    """The sum of ``parts`` divided by that of ``wholes``, jackknifed over data sets.

    >>> [round(one, 3) for one in ratio_of_sums([1, 2, 1], [4, 4, 4])]
    [3, 0.333, -0.025, 0.692, 0.057]
    """
    parts, wholes = np.asarray(parts, float), np.asarray(wholes, float)
    k = len(parts)
    without = (parts.sum() - parts) / (wholes.sum() - wholes)
    se = np.sqrt((k - 1) / k * ((without - without.mean()) ** 2).sum())
    return _by_t(k, parts.sum() / wholes.sum(), se, k - 1)


def slope(effect: pd.Series, events: pd.Series) -> Mean:
    """The least-squares slope of effects on the decimal logarithm of the number of events.

    >>> events = pd.Series({"a": 100, "b": 1000, "c": 10000})
    >>> round(slope(pd.Series({"a": 0.1, "b": 0.4, "c": 0.5}), events).mean, 3)
    0.2
    """
    x = np.log10(events[effect.index].to_numpy(float))
    fit = stats.linregress(x, effect.to_numpy(float))
    return _by_t(len(x), fit.slope, fit.stderr, len(x) - 2)


def effective_number(weights: ArrayLike) -> float:
    """How many data sets of equal weight would be as many.

    >>> round(effective_number([10, 1, 1, 1]), 2)
    1.64
    """
    weights = np.asarray(weights, float)
    return float(weights.sum() ** 2 / (weights**2).sum())


# Stored rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Study:
    """The rows of the whole study, in the three forms that the analysis needs."""

    estimates: dict[tuple, pd.DataFrame]  # by average or contrast, measure and attribute
    models: pd.DataFrame  # rows of one model: outcomes in a half, and facts
    permuted: pd.DataFrame  # closings with permuted labels


def whole(runs: pd.DataFrame) -> Study:
    """The study from stored runs, if all its jobs are there."""
    if "study" in runs:
        runs = runs[runs["study"] == "many_data_sets"]
    wanted = {(job["name"], job["split"]) for job in jobs()}
    there = runs[["name", "split"]].drop_duplicates().itertuples(index=False, name=None)
    missing = sorted(wanted.difference(there))
    if missing:
        raise ValueError(
            f"runs lack {len(missing)} jobs of the study on many data sets, the first one "
            f"{missing[0]}: its plan allows no analysis of a part"
        )
    text = {name: "" for name in (*Contrast._fields, "attribute")}
    runs = runs.fillna(text).astype(dict.fromkeys([*text, "measure"], "category"))
    permuted = runs["measure"] == PERMUTED
    of_one = runs["half"].notna()
    rows = runs[~permuted & ~of_one].assign(squares=lambda rows: rows["se"] ** 2)
    keys = [*Contrast._fields, "measure", "attribute"]
    means = rows.groupby([*keys, "name"], observed=True).agg(
        effect=("value", "mean"), se=("squares", "mean"), splits=("value", "size")
    )
    means["se"] = np.sqrt(means["se"]).clip(lower=SMALLEST_ERROR)
    by_name = means.reset_index("name").groupby(level=keys, observed=True)
    estimates = {key: one.set_index("name") for key, one in by_name}
    return Study(estimates, runs[of_one], runs[permuted])


def load() -> Study:
    """The study from the book's store."""
    return whole(Store(DEFAULT, "beyond/many_data_sets").read())


def uncertified(study: Study) -> pd.Series:
    """The largest certificate of models on data sets where it exceeds 1e-4: they are left out."""
    rows = study.models[study.models["measure"] == "certificate"]
    largest = rows.groupby(["model", "name"], observed=True)["value"].max()
    return largest[largest > LARGEST_CERTIFICATE]


def effects(
    study: Study,
    of: Average | Contrast,
    measure: str,
    attribute: str = "",
    on: Sequence[str] | None = None,
) -> pd.DataFrame:
    """``effect``, ``se`` and ``splits`` of one measure, by data set.

    ``on`` are names of data sets, by default the tested ones of models by Adam and the 27 of
    certified models; those that lack the measure are left out. Errors are upper bounds, see
    :mod:`drocox.beyond.outcomes`.
    """
    key = (*of, *[""] * (4 - len(of)), measure, attribute)
    if key not in study.estimates:
        raise ValueError(f"the study has no measure {measure!r} ({attribute!r}) of {of}")
    rows = study.estimates[key]
    names = (TESTED if of.choice else INCLUDED) if on is None else on
    left_out = uncertified(study)
    of_pair = left_out.index.get_level_values("model").isin({*of})
    left = set(left_out[of_pair].index.get_level_values("name"))
    return rows.loc[[name for name in names if name in rows.index and name not in left]]


# One effect --------------------------------------------------------------------------------------


class Summary(NamedTuple):
    """An effect with equal weights, and what other weights and omissions make of it."""

    k: int
    mean: float
    low: float
    high: float
    p: float
    omissions: int  # of one data set, after which the interval differs in whether it excludes 0
    reml: float  # weighted by precision
    reml_low: float
    reml_high: float
    effective: float  # number of data sets, by precision


def summary(effects: pd.DataFrame) -> Summary:
    """The mean of effects with errors, by both weightings."""
    effect = effects["effect"].to_numpy()
    found = mean_of(effect)
    without = (mean_of(np.delete(effect, i)) for i in range(len(effect)))
    omissions = sum(_side(one) != _side(found) for one in without)
    return Summary(*found, omissions, *_by_precision(effects))


def _side(found: Mean) -> int:
    """1 if the interval lies above 0, -1 below it."""
    return int(found.low > 0) - int(found.high < 0)


def _by_precision(effects: pd.DataFrame) -> tuple[float, float, float, float]:
    """The random-effects mean with its interval, and the effective number of data sets."""
    random = pool(effects["effect"], effects["se"])
    weights = 1 / (effects["se"] ** 2 + random.tau2)
    return random.mean, *random.interval(), effective_number(weights)


def share(study: Study, of: Contrast, outcome: str) -> Mean:
    """A mean effect as a share of the gap, or distance, of the model that it is compared with."""
    parts = effects(study, of, MEASURES[outcome])["effect"]
    choices = CHOICES if of.against_choice == BOTH else (of.against_choice,)
    wholes = [
        effects(study, Average(of.against, choice), WHOLES[outcome])["effect"] for choice in choices
    ]
    return ratio_of_sums(parts, (sum(wholes) / len(wholes))[parts.index])


# Primary -----------------------------------------------------------------------------------------


def primary(against: str = PLAIN_18) -> dict[tuple[str, str], Contrast]:
    """The four primary contrasts of networks, by objective and outcome, in the plan's order.

    Against *plain-18 with penalty* robust networks are those of the first start.
    """
    start = AT_START_0 if against == PENALISED else ""
    choices = {"worst": BY_C_INDEX, "closing": BOTH}
    return {
        (name, outcome): Contrast(name + start, choice, against, choice)
        for name in (SPLIT, DRO)
        for outcome, choice in choices.items()
    }


def together(study: Study, against: str = PLAIN_18) -> pd.DataFrame:
    """The primary effects of the data sets that have all four."""
    columns = {
        name: effects(study, of, MEASURES[name[1]])["effect"]
        for name, of in primary(against).items()
    }
    return pd.DataFrame(columns).reindex(list(TESTED)).dropna()


def intervals(together: pd.DataFrame) -> pd.DataFrame:
    """``mean``, ``low`` and ``high`` of several effects: simultaneous 95 % intervals."""
    k = len(together)
    covariance = np.cov(together.to_numpy().T) / k
    critical, _ = simultaneous(covariance, k - 1)
    half = critical * np.sqrt(np.diag(covariance))
    mean = together.mean()
    return pd.DataFrame({"mean": mean, "low": mean - half, "high": mean + half})


def word(outcome: str, low: float, high: float) -> str:
    """What an interval lets one say of an outcome.

    >>> word("worst", -0.4, -0.1)
    'falls, too small to matter'
    """
    below, above = WORDS[outcome]
    differs = above if low > 0 else below if high < 0 else ""
    margin = MARGINS[outcome]
    small = SMALL if -margin < low and high < margin else ""
    return ", ".join(one for one in (differs, small) if one) or UNKNOWN


def _words(together: pd.DataFrame) -> pd.Series:
    found = intervals(together)
    return pd.Series(
        {name: word(name[1], row["low"], row["high"]) for name, row in found.iterrows()}
    )


def primary_table(study: Study, against: str = PLAIN_18) -> pd.DataFrame:
    """A row for each primary contrast, by objective and outcome.

    ``k`` data sets, and ``spread``, the standard deviation of their effects; ``mean``, ``low`` and
    ``high``: simultaneous intervals, and the ``word`` that they allow; ``omissions``: how many, of
    one data set each and with all four intervals anew, change the word; ``holm``: adjusted
    p-values; ``reml`` to ``effective`` as in :class:`Summary`; ``share`` with its interval;
    ``guard_low``, ``guard_high``: of *sign kept*, for closing.
    """
    effect = together(study, against)
    table = intervals(effect)
    table.insert(0, "k", len(effect))
    table.insert(1, "spread", effect.std())
    table["word"] = _words(effect)
    without = [_words(effect.drop(name)) for name in effect.index]
    table["omissions"] = sum((one != table["word"]).astype(int) for one in without)
    table["holm"] = holm([mean_of(effect[name]).p for name in effect])
    rows = {}
    for name, of in primary(against).items():
        outcome = name[1]
        some = effects(study, of, MEASURES[outcome]).loc[effect.index]
        row = dict(zip(Summary._fields[-4:], _by_precision(some), strict=True))
        if against == PLAIN_18:
            found = share(study, of, outcome)
            row |= {"share": found.mean, "share_low": found.low, "share_high": found.high}
        if outcome == "closing":
            guard = mean_of(effects(study, of, "guard")["effect"])
            row |= {"guard_low": guard.low, "guard_high": guard.high}
        rows[name] = row
    return table.join(pd.DataFrame(rows).T)


# Tables ------------------------------------------------------------------------------------------


def objective_table(
    study: Study, kind: str = "nonlinear", on: Sequence[str] = TESTED
) -> pd.DataFrame:
    """Each objective and choice minus *plain-18 by c-index*: the table of the chapter.

    A row has the model and the choice, the ``outcome`` and its :class:`Summary`; and ``optimism``,
    the c-index on the validation part minus that on B. ``kind`` is that of the score function. The
    penalised arms are compared with the first start of plain-18.
    """
    prefix = PREFIX[kind]
    base = prefix + PLAIN_18
    start = "" if prefix else AT_START_0
    rows = []
    for objective in (*MAIN, PLAIN_3, PENALISED, BRIDGE):
        for choice in CHOICES:
            name = prefix + objective
            first = start if objective in (PENALISED, BRIDGE) else ""
            about = {"objective": objective, "choice": choice}
            optimism = effects(study, Average(name, choice), "optimism", on=on)["effect"].mean()
            for outcome, measure in MEASURES.items():
                row = about | {"outcome": outcome, "optimism": optimism}
                if (objective, choice) != (PLAIN_18, BY_C_INDEX):
                    of = Contrast(name, choice, base + first, BY_C_INDEX)
                    row |= summary(effects(study, of, measure, on=on))._asdict()
                rows.append(row)
    return pd.DataFrame(rows).set_index(["objective", "choice", "outcome"])


def certified_table(study: Study) -> pd.DataFrame:
    """Every certified model minus the one that it is compared with, by model and outcome."""
    table = {}
    for model, against in AGAINST.items():
        for outcome, measure in MEASURES.items():
            of = Contrast(model, "", against, "")
            if (*of, measure, "") in study.estimates:
                table[model, outcome] = summary(effects(study, of, measure))._asdict()
    return pd.DataFrame(table).T


# Starts, choices and controls --------------------------------------------------------------------


def spreads(study: Study) -> pd.DataFrame:
    """How far outcomes of networks differ between starts, and between the halves of splitting.

    Standard deviations over three draws of a data set's mean outcome, as root mean squares over the
    tested data sets: by model and choice a column for each outcome and source.
    """
    rows = study.models[study.models["name"].isin(TESTED) & study.models["measure"].isin(OF_ONE)]
    rows = rows[rows["model"].isin(MAIN)]
    table = {}
    for source, other in (("start", "dealt"), ("dealt", "start")):
        some = rows[rows[other] == 0]
        by = ["model", "choice", "measure", "name"]
        means = some.groupby([*by, source], observed=True)["value"].mean()
        own = means.groupby(by, observed=True).std()  # NaN: one draw only
        mean_square = (own**2).groupby(by[:-1], observed=True).mean()
        table[source] = np.sqrt(mean_square).unstack("measure")[list(OF_ONE)]
    return pd.concat(table, axis=1).dropna(axis=1, how="all")


def counts(study: Study) -> pd.DataFrame:
    """Counts of chosen models by score function, objective and choice, on all data sets.

    ``chosen`` models of a half, start and draw of the halves; of these ``unstable`` (rounding moves
    a score on B by more than 1e-9), ``constant``, and without an eligible candidate
    (``none_eligible``); ``eligible``: the mean number of candidates that the paper's rule permits.
    """
    rows = study.models[study.models["choice"] != ""].assign(unstable=study.models["moved"] > HELD)
    by = rows.groupby(["measure", "model", "choice"], observed=True)
    sums = by["value"].sum()
    table = {
        "chosen": by.size()["constant"],  # each of them has this fact
        "unstable": by["unstable"].sum()["constant"],
        "constant": sums["constant"].astype(int),
        "none_eligible": sums["none_eligible"],
        "eligible": by["value"].mean()["eligible"],
    }
    return pd.DataFrame(table)


def rejections(draws: np.ndarray) -> int:
    """In how many draws (draws, data sets) the mean differs from 0 by Student's t at 5 %."""
    k = draws.shape[1]
    error = draws.std(axis=1, ddof=1) / np.sqrt(k)
    return int((np.abs(draws.mean(axis=1)) > stats.t.ppf(0.975, k - 1) * error).sum())


def control_table(study: Study) -> pd.DataFrame:
    """Rejections without an effect, of 1,000 draws; outside 33 to 69 a control has failed.

    Labels are permuted for the closings, and names swapped for all four primary contrasts.
    """
    table = {}
    for (model, outcome), of in primary().items():
        effect = effects(study, of, MEASURES[outcome])["effect"]
        if outcome == "closing":
            rows = study.permuted[study.permuted["model"] == model]
            draws = rows.groupby(["draw", "name"], observed=True)["value"].mean().unstack()
            table["labels permuted", model, outcome] = rejections(draws.to_numpy())
        rngs = map(np.random.default_rng, range(PERMUTATIONS))
        signs = np.array([rng.choice([-1.0, 1.0], len(effect)) for rng in rngs])
        swapped = signs * effect.to_numpy()
        table["names swapped", model, outcome] = rejections(swapped)
    frame = pd.Series(table).to_frame("rejected")
    low, high = CHANCE
    frame["control"] = np.select(
        [frame["rejected"] < low, frame["rejected"] > high],
        ["failed: rejects too rarely", "failed: rejects too often"],
        "passed",
    )
    return frame
