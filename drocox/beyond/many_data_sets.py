r"""The study where DRO-COX can act: 27 data sets, models that protect a share of the events.

Data sets, encoding, halves, seeds and attributes are those of :mod:`drocox.beyond.many`, so that
the two studies can be compared pair by pair. The plan is ``acting_plan.md``, the models are those
of :mod:`drocox.beyond.acting_models`. Everything is learned on half A and evaluated on half B.

**Estimates**, by model. In points: ``c``, the c-index of everybody; ``worst``, that of the members
of the group that Cox serves worst; ``distance``, the first minus the second; ``kept``, ``worst``
minus what the scores promise there; ``gap`` of an attribute, signed as Cox's gap on A. Up to the
horizon, with the baseline hazard of the patients to whom the model was fitted, and for Cox, DRO-COX
and models by Adam once more after one slope from A (``..._slope``): ``oe``, the difference between
two groups' log O/E, and ``oe_worst``, the log O/E of the worst group, both signed as Cox's on A and
times 100; ``brier`` and ``brier_worst``, Brier scores times 100.

**Contrasts** with the model named in ``AGAINST``: ``c_diff``, ``worst_diff``; ``worst_own_diff``,
among members of the robust model's own worst group; ``closing`` and ``guard`` as in the first
study; and differences ``..._diff`` of the other estimates. Models that were fitted for one
attribute are averaged over sex and age, and so are closings and guards.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from drocox.beyond import cohorts, many
from drocox.beyond.acting_models import (
    AGAINST,
    ALONE,
    HALF,
    PLAIN,
    PUBLISHED,
    Key,
    Learned,
    Model,
    learn,
)
from drocox.beyond.cohorts import PRIMARY, Patients, codes_of
from drocox.beyond.learning import gap_of
from drocox.beyond.many import SPLITS, combined, mean_of_halves, mean_of_splits
from drocox.heldout import Estimate, HeldOut, expected_events
from drocox.heldout.ties import many_tied

PERMUTATIONS = 1000
PERMUTED = "permuted closing"
CONTROLLED = (HALF, PUBLISHED["nonlinear"])  # models of the primary contrasts

OF_WORST = (("worst", ""), ("worst_diff", ""))

Name = tuple[str, str, str]  # model, measure, attribute or ""


def _sign(value: float) -> float:
    return -1.0 if value < 0 else 1.0


def _logarithm(one: Estimate) -> Estimate:
    with np.errstate(divide="ignore", invalid="ignore"):
        return Estimate(float(np.log(one.value)), np.log(one.without))


def scored(learned: Learned, b: Patients) -> dict[Key, HeldOut]:
    """Patients of half B with the scores of each model."""
    fold = np.zeros(len(b), int)
    return {
        key: HeldOut(model.scores(b), b.data.time, b.data.event, fold)
        for key, model in learned.models.items()
    }


def estimates_of(key: Key, held: HeldOut, learned: Learned, b: Patients) -> dict[tuple, Estimate]:
    """Estimates of one model on half B by measure and attribute, as far as they are defined."""
    model = learned.models[key]
    everybody = np.full(len(b), True)
    worst = learned.worst[PLAIN, ""]
    members = None if worst is None else worst.members(b.covariates)
    codes = {name: values for name, values in codes_of(b, learned.cuts).items() if name in PRIMARY}
    if key[1]:  # fitted for one attribute
        codes = {key[1]: codes[key[1]]}
    out = {("c", ""): combined((100, held.c_index(everybody)))}
    for attribute, values in codes.items():
        sign = _sign(learned.gaps[attribute])
        out["gap", attribute] = combined((sign, gap_of(held, values)))
    if members is not None:
        out["worst", ""] = combined((100, held.c_index(members)))
        out["distance", ""] = combined((1, out["c", ""]), (-1, out["worst", ""]))
        if not many_tied(held):
            out["kept", ""] = combined((100, held.c_minus_promised(members)))
    for ending, slope in (("", 1.0), ("_slope", model.slope)):
        if np.isnan(slope):
            continue
        until = up_to(model, slope, held, learned.horizon)
        out[f"brier{ending}", ""] = combined((100, until.brier(everybody)))
        for attribute, values in codes.items():
            second, first = (_logarithm(until.calibration(values == code)) for code in (1, 0))
            sign = 100 * learned.signs[attribute]
            out[f"oe{ending}", attribute] = combined((sign, second), (-sign, first))
        if members is not None:
            sign = 100 * learned.signs["worst"]
            own = _logarithm(until.calibration(members))
            out[f"oe_worst{ending}", ""] = combined((sign, own))
            out[f"brier_worst{ending}", ""] = combined((100, until.brier(members)))
    return {name: one for name, one in out.items() if np.isfinite(one.without).all()}


def up_to(model: Model, slope: float, held: HeldOut, horizon: float) -> HeldOut:
    """Patients observed up to a horizon, with expected events and risks by scores times a slope."""
    train = model.fitted.data
    on_train = slope * model.scores(model.fitted)
    scores = slope * held.scores
    at_horizon = np.full(len(scores), horizon)
    expected = expected_events(train, on_train, scores, np.minimum(held.time, at_horizon))
    risk = -np.expm1(-expected_events(train, on_train, scores, at_horizon))
    event = held.event & (held.time <= horizon)
    return HeldOut(scores, held.time, event, held.fold, expected, horizon, risk)


def contrasts(own: dict[tuple, Estimate], other: dict[tuple, Estimate]) -> dict[tuple, Estimate]:
    """Contrasts of one model with another on half B."""
    out = {}
    for (measure, attribute), ours in own.items():
        theirs = other.get((measure, attribute))
        if theirs is None:
            continue
        if measure == "gap":
            out["closing", attribute] = combined((1, theirs), (-1, ours))
            out["guard", attribute] = combined((1, theirs), (1, ours))
        else:
            out[f"{measure}_diff", attribute] = combined((1, ours), (-1, theirs))
    return out


def evaluate(held: dict[Key, HeldOut], learned: Learned, b: Patients) -> dict[Name, Estimate]:
    """Estimates and contrasts of all models on half B."""
    by_key = {key: estimates_of(key, held[key], learned, b) for key in held}
    for key, own in by_key.items():
        if key[0] not in AGAINST:
            continue
        base = AGAINST[key[0]], ""
        own |= contrasts(own, by_key[base])
        group = learned.worst.get(key)
        if group is not None:
            members = group.members(b.covariates)
            ours, theirs = (held[one].c_index(members) for one in (key, base))
            own["worst_own_diff", ""] = combined((100, ours), (-100, theirs))
    if (ALONE, "") in by_key:  # only its group is meant
        alone = by_key[ALONE, ""]
        by_key[ALONE, ""] = {name: alone[name] for name in alone if name in OF_WORST}
    out: dict[Name, Estimate] = {}
    attributes = [attribute for attribute in PRIMARY if attribute in learned.cuts]
    for name in dict.fromkeys(name for name, _ in by_key):
        mine = [by_key[key] for key in by_key if key[0] == name]
        out |= {(name, *one): value for one, value in _joint(mine, attributes).items()}
    return out


def _joint(
    models: Sequence[dict[tuple, Estimate]], attributes: Sequence[str]
) -> dict[tuple, Estimate]:
    """Estimates of a model, averaged over the attributes for which it was fitted.

    By attribute they are kept, too. A measure of attributes is averaged if all of them have it.
    """
    parts: dict[tuple, list[Estimate]] = {}
    for one in models:
        for name, estimate in one.items():
            parts.setdefault(name, []).append(estimate)
    means = {name: several for name, several in parts.items() if len(several) == len(models)}
    for measure, attribute in parts:
        if attribute and all((measure, one) in parts for one in attributes):
            means[measure, ""] = [parts[measure, one][0] for one in attributes]
        if attribute:
            means[measure, attribute] = parts[measure, attribute]
    return {
        name: combined(*((1 / len(several), estimate) for estimate in several))
        for name, several in means.items()
    }


def permuted_closings(
    held: dict[Key, HeldOut], learned: Learned, patients: Patients, rows_b: np.ndarray
) -> pd.DataFrame:
    """Closings of the primary contrasts on half B when labels are permuted, a row for each draw.

    Half A has decided before. A draw permutes the labels of all patients, in the same way for all
    halves.
    """
    n = len(patients)
    draws = [np.random.default_rng(draw).permutation(n)[rows_b] for draw in range(PERMUTATIONS)]
    orders = np.array(draws)
    codes = codes_of(patients, learned.cuts)
    attributes = [name for name in PRIMARY if name in codes]
    out = pd.DataFrame(0.0, index=range(PERMUTATIONS), columns=list(CONTROLLED))
    for name in CONTROLLED:
        for attribute in attributes:
            labels = codes[attribute][orders]
            own = (name, attribute) if (name, attribute) in held else (name, "")
            gaps = [_gaps(held[key], labels) for key in ((AGAINST[name], ""), own)]
            out[name] += _sign(learned.gaps[attribute]) * (gaps[0] - gaps[1]) / len(attributes)
    return out


def _gaps(held: HeldOut, labels: np.ndarray) -> np.ndarray:
    """Gaps in points for each row of labels (draws, n)."""
    second, first = ((labels == code).astype(float) @ held.all_pairs for code in (1, 0))
    return 100 * (second[:, 0] / second[:, 1] - first[:, 0] / first[:, 1])


# The study as jobs -----------------------------------------------------------------------------


def study(
    patients: Patients, splits: Sequence[int] = range(SPLITS), permutations: bool = True
) -> pd.DataFrame:
    """All models on one data set of sorted patients: see :func:`rows`."""
    of_splits = []
    facts = []
    moved: dict[str, list[float]] = {}
    shuffled = []
    for split in splits:
        both = []
        tested = []
        for half, (rows_a, rows_b) in enumerate(cohorts.halves(patients.data.event, split)):
            learned = learn(patients.subset(rows_a), split, half)
            b = patients.subset(rows_b)
            held = scored(learned, b)
            both.append(evaluate(held, learned, b))
            tested.append(rows_b)
            for (name, attribute), model in learned.models.items():
                of = {"model": name, "attribute": attribute, "half": 2 * split + half}
                facts.append(of | model.facts)
                moved.setdefault(name, []).append(model.moved(b))
            if permutations and set(PRIMARY) & set(learned.cuts):
                shuffled.append(permuted_closings(held, learned, patients, rows_b))
        of_splits.append(mean_of_halves(tested, both))
    out = []
    for (model, measure, attribute), (value, se) in mean_of_splits(of_splits).items():
        known = sum((model, measure, attribute) in split for split in of_splits)
        of = {"model": model, "attribute": attribute, "measure": measure}
        out.append(of | {"value": value, "se": se, "splits": known})
    of_halves = pd.DataFrame(facts).melt(["model", "attribute", "half"], var_name="measure")
    frame = pd.concat([pd.DataFrame(out), of_halves.dropna(subset="value")])
    largest = {name: float(np.max(several)) for name, several in moved.items()}
    both_of = {
        name: np.maximum(largest[name], largest[AGAINST.get(name, name)]) for name in largest
    }
    frame["moved"] = frame["model"].map(both_of)
    if shuffled:
        closings = (sum(shuffled) / len(shuffled)).round(4)
        draws = closings.rename_axis("draw").reset_index().melt("draw", var_name="model")
        frame = pd.concat([frame, draws.assign(attribute="", measure=PERMUTED)])
    return frame.reset_index(drop=True)


jobs = many.jobs  # the same data sets


def rows(name: str) -> pd.DataFrame:
    """All models on one data set: a row for each model, measure and attribute ("": joint).

    ``value`` and its standard error ``se`` have the units given above; ``splits`` counts the splits
    that have the measure in both halves. Rows with a ``half`` are facts about the models learned
    there: ``certificate``; ``penalty``; ``learning_rate`` and ``alpha``; ``protected``, the
    protected share divided by the share of events; ``constant``, 1 if the scores are; and the
    ``rank_correlation`` on A with Cox and (``..._base``) with the model in ``AGAINST``. Rows with a
    ``draw`` are closings with permuted labels.
    """
    out = study(cohorts.load(name))
    out.insert(0, "dataset", name)
    return out
