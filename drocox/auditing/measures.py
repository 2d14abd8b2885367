r"""The measures of an audit: the list that its table, its page and its comparisons follow.

To add a measure, write a method of :class:`drocox.heldout.HeldOut` that returns an
:class:`drocox.heldout.Estimate` for a group, and add a row with the method's name to
:data:`MEASURES`: all that other modules know of a measure, they read there. The docstring of
:func:`drocox.audit` says what it means.

Nothing is known about a measure of the user's own but its values, so its error is that of a
jackknife over 100 blocks of the group's patients (or over patients, if there are fewer) and 100 of
the others. With :math:`\hat\vartheta_{(-b)}` the value without block b of B, either has

.. math:: \widehat{\mathrm{Var}} = \frac{B - 1}{B} \sum_b \big(\hat\vartheta_{(-b)} -
          \bar\vartheta\big)^2 .

The two are added, with B - 1 degrees of freedom for the group's B. Each patient gets an equal share
of the block's deviation, so that differences of groups, and of models, have errors as all measures
have. Blocks are dealt at random, but to patients in the order
of their times, whatever the order of the rows.
"""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy import special

from drocox import _checks
from drocox.heldout import Estimate, HeldOut

BLOCKS = 100  # of patients, for the jackknife of own measures
TAKEN = ("attribute", "group", "patients", "events", "model", "versus", "measure")  # columns


class Scale(NamedTuple):
    """A scale on which a measure is nearly normal: there, back, and the derivative."""

    forward: Callable
    back: Callable
    derivative: Callable


LOGIT = Scale(special.logit, special.expit, lambda value: np.reciprocal(value * (1 - value)))
LOG = Scale(np.log, np.exp, np.reciprocal)
UNCHANGED = Scale(np.positive, np.positive, np.ones_like)


class Measure(NamedTuple):
    """How a measure is named, computed, compared and shown."""

    title: str
    needs: str  # one of the questions that `Predictions.measures` answers
    scale: Scale
    method: str = ""  # of HeldOut, unless it has the name of the measure
    unit: float = 1  # of differences; 100: percentage points
    margin: float | None = None  # differences below it do not matter; of a ratio, its larger end
    ratio: bool = False  # whether groups are compared by the ratio of their values
    said: str = ""  # in the findings, if not the title
    worded: bool = False  # in the first paragraph; intervals of all such differences hold together
    digits: int = 2  # after the point
    between_models: bool = True  # whether two models are compared in it
    at_horizon: bool = False  # needs patients with an event by the horizon
    beyond_horizon: bool = False  # needs patients who are observed longer
    whole_follow_up: bool = False  # tells nothing of the events up to the horizon alone
    by_exact_times: bool = False  # unknown where many events have the same time
    slack: bool = False  # whether intervals of differences are wider where times are tied
    compared: bool = True  # between groups
    imparity: bool = False  # members are compared with everybody; differences have a noise floor
    versus: str = ""  # instead of other groups, if the measure is a difference itself
    interval: bool = True  # whether it has one of its own
    on_page: bool = True  # in the table of groups
    pairs_on_page: bool = False  # differences between groups, too
    explained: str = ""  # under "How to read this"


def _at_threshold(title: str) -> Measure:
    """A measure of decisions."""
    measure = Measure(title, "threshold", LOGIT, digits=3, on_page=False)
    return measure._replace(at_horizon=True, beyond_horizon=True)


MEASURES = {
    "c_index": Measure(
        "c-index",
        "ranking",
        LOGIT,
        said="Ranking (c-index)",
        digits=3,
        margin=0.05,
        worded=True,
        slack=True,
        pairs_on_page=True,
        explained="Of the pairs of a group's own patients whose order of events is known, the "
        "share that the model orders rightly (ties count half); 0.5 is chance. Where several "
        "models scored the patients, only pairs of one fold count.",
        whole_follow_up=True,
    ),
    "c_expected": Measure(
        "Expected c-index",
        "log-hazards as scores",
        LOGIT,
        digits=3,
        between_models=False,
        compared=False,
        interval=False,
        explained="The c-index that the model's own predictions lead one to expect in this group, "
        "after all scores are multiplied by the one factor that fits these data best (model-based "
        "concordance; Gönen and Heller 2005, van Klaveren and others 2016). It is low where "
        "patients are alike, and no upper bound: a model that knows more ranks better, and expects "
        "more.",
        whole_follow_up=True,
    ),
    "c_minus_expected": Measure(
        "c-index minus expected",
        "log-hazards as scores",
        UNCHANGED,
        said="Ranking, beside what the model's own predictions lead one to expect",
        digits=3,
        margin=0.05,
        worded=True,
        slack=True,
        between_models=False,
        versus="expected",
        on_page=False,
        whole_follow_up=True,
    ),
    "own_model_gain": Measure(
        "Gain of a model of its own",
        "features",
        UNCHANGED,
        digits=3,
        between_models=False,
        versus="this model",
        on_page=False,
        explained="The c-index of a ridge Cox model of the named columns that is fitted to the "
        "group alone, by cross-fitting, minus that of this model, over the same patients, 4,000 at "
        "most. Where it is above 0 for everybody, too, the model is weak in general.",
        whole_follow_up=True,
    ),
    "concordance": Measure(
        "Concordance",
        "ranking",
        LOGIT,
        unit=100,
        imparity=True,
        on_page=False,
        whole_follow_up=True,
    ),
    "uno_c": Measure(
        "Uno's c", "ranking", LOGIT, by_exact_times=True, on_page=False, whole_follow_up=True
    ),
    "calibration": Measure(
        "Observed / expected",
        "risks or expected events",
        LOG,
        margin=1.25,
        ratio=True,
        worded=True,
        pairs_on_page=True,
        explained="Events by those that the model expects; above 1 it expects too few. Two groups "
        "are compared by the ratio of the two.",
        whole_follow_up=True,
    ),
    "slope": Measure(
        "Slope",
        "log-hazards",
        UNCHANGED,
        said="Calibration slope",
        by_exact_times=True,
        margin=0.2,
        pairs_on_page=True,
        explained="1 if differences between patients are as large as predicted, below 1 if they "
        "are smaller.",
        whole_follow_up=True,
    ),
    "central_slope": Measure(
        "Central slope",
        "log-hazards",
        UNCHANGED,
        by_exact_times=True,
        between_models=False,
        compared=False,
        explained="The slope without the lowest and the highest 2.5 % of the group's scores. Where "
        "it is far from the slope, a few extreme scores decide that one.",
        whole_follow_up=True,
    ),
    "risk_observed": Measure(
        "Observed risk", "nothing", LOGIT, between_models=False, compared=False, at_horizon=True
    ),
    "risk_predicted": Measure("Predicted risk", "risks", LOGIT, compared=False),
    "auc": Measure("AUC", "ranking", LOGIT, digits=3, at_horizon=True, beyond_horizon=True),
    "brier": Measure("Brier score", "risks", LOGIT, digits=3, at_horizon=True, beyond_horizon=True),
    "mean_risk": Measure(
        "Mean risk", "log-hazards", LOG, compared=False, on_page=False, whole_follow_up=True
    ),
    # decisions at a threshold of the risk, which have a table of their own on the page
    "flagged": Measure(
        "Flagged", "threshold", LOGIT, digits=3, on_page=False, whole_follow_up=True
    ),
    "sensitivity": _at_threshold("Sensitivity"),
    "specificity": _at_threshold("Specificity"),
    "ppv": _at_threshold("PPV"),
    "net_benefit": _at_threshold("Net benefit")._replace(scale=UNCHANGED, compared=False),
}
DECISIONS = [name for name, measure in MEASURES.items() if measure.needs == "threshold"]
RISK_RATIO = MEASURES["calibration"]._replace(  # in its place, without expected events
    title="Observed / predicted risk",
    method="risk_ratio",
    whole_follow_up=False,
    at_horizon=True,
    explained="Kaplan and Meier's risk up to the time given above by the mean of the predicted "
    "risks; above 1 these are too low.",
)


def inside(measure: Measure) -> tuple[float, float] | None:
    """Between which values a difference does not matter; being better than expected never does."""
    if measure.margin is None:
        return None
    if measure.ratio:
        return 1 / measure.margin, measure.margin
    return -measure.margin, np.inf if measure.versus else measure.margin


def with_margins(measures: Mapping[str, Measure], margin) -> dict[str, Measure]:
    """The measures with other margins, given by name."""
    margin = {} if margin is None else margin
    known = [name for name in MEASURES if MEASURES[name].margin and not MEASURES[name].versus]
    if not isinstance(margin, Mapping) or not set(margin) <= set(known):
        raise ValueError(
            f"margin must map some of {', '.join(known)} to numbers, as in "
            "margin={'c_index': 0.03}"
        )
    changed = dict(measures)
    for name, value in margin.items():
        least = 1.0 if MEASURES[name].ratio else 0.0
        value = _checks.number_in(value, f"margin[{name!r}]", least, np.inf)
        for one in (name, "c_minus_expected") if name == "c_index" else (name,):
            if one in changed:
                changed[one] = changed[one]._replace(margin=value)
    return changed


def own_measure(name: str) -> Measure:
    """How a measure of the user's own is shown; its function is the user's."""
    return Measure(name, "nothing", UNCHANGED, digits=3, pairs_on_page=True)


class OwnMeasure:
    """A function of all patients and a group's mask that returns a number, with its error."""

    def __init__(self, name: str, function: Callable[[HeldOut, np.ndarray], float]):
        self.name = name
        self.function = function

    def __call__(self, patients: HeldOut, members: np.ndarray) -> Estimate:
        """The value and what stands for its leave-one-out values."""
        n = len(members)
        value = self._value(patients, members)
        order = np.lexsort((patients.scores, patients.event, patients.time))
        without = np.full(n, value)
        of_members = 0
        for part in (order[members[order]], order[~members[order]]):
            blocks = min(len(part), BLOCKS)
            of_members = of_members or blocks
            block = np.random.default_rng(0).permutation(len(part)) % max(blocks, 1)
            left_out = [part[block == k] for k in range(blocks)]
            kept = (np.setdiff1d(np.arange(n), one) for one in left_out)
            values = np.array([self._value(patients.subset(k), members[k]) for k in kept])
            for rows, one in zip(left_out, values, strict=True):
                share = (1 - 1 / blocks) / ((1 - 1 / n) * len(rows))
                without[rows] += np.sqrt(share) * (one - values.mean())
        return Estimate(value, without, df=max(1.0, of_members - 1.0))

    def _value(self, patients: HeldOut, members: np.ndarray) -> float:
        try:
            value = self.function(patients, members)
        except Exception as error:
            raise ValueError(
                f"measures: {self.name!r} fails for a group of {members.sum()} patients, "
                f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(value, Real | np.number) or isinstance(value, complex):
            raise TypeError(
                f"measures: {self.name!r} returns {type(value).__name__}; return one number, or "
                "NaN where it does not exist"
            )
        return float(value)


def own_measures(measures: Mapping[str, Callable] | None) -> dict[str, OwnMeasure]:
    """Check the functions and their names."""
    if measures is None:
        return {}
    if not isinstance(measures, Mapping) or not all(map(callable, measures.values())):
        raise TypeError(
            "measures must map names to functions of patients and members, such as "
            'measures={"share over 1": lambda patients, members: (patients.scores[members] > '
            "1).mean()}"
        )
    taken = set(TAKEN)
    for name in [*MEASURES, *measures]:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"measures: {name!r} is no name; use a word or two")
        columns = {name, f"{name}_low", f"{name}_high"}
        if taken & columns:
            raise ValueError(f"measures: the name {name!r} is taken; choose another one")
        taken |= columns
    return {name: OwnMeasure(name, function) for name, function in measures.items()}
