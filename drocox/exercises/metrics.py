"""Exercises on survival curves, fairness metrics and the penalties made of them."""

import numpy as np
import torch

from drocox import SurvivalData, evaluate, fairness, regularizers, risk_sets
from drocox.exercises._answers import Question, numbers_question, parts_question
from drocox.exercises._core import asks, asks_function
from drocox.exercises.patients import SIX
from drocox.exercises.survival import EVENT, IN_A, PATIENTS, SCORES, TIME
from drocox.solver import minimise

OUTCOME = TIME, EVENT
HAZARDS = np.exp(SCORES)


def _month_six() -> Question:
    def weights(now, of_c=1.0, of_b=0.0):
        return np.array([1, of_b, of_c, now, now, now])

    now = 1 / (1 - 1 / 4)  # B leaves four, the dead C not among them
    mistakes = {
        "C counts with G after B has left; take G just before C's death": weights(now, now),
        "at a tie deaths come first: is C still there when B leaves?": weights(1 / (1 - 1 / 5)),
        "nobody speaks for B; dropping those who left overstates the dead": weights(1),
        "patients with a small chance of staying must count more, not less": weights(1 / now),
        "nobody knows whether B is alive at month 6": weights(now, of_b=1),
    }
    return numbers_question(weights(now), mistakes, labels=PATIENTS)


asks("curves-weights", _month_six())


def _forecast() -> Question:
    dead, alive = 1 + 5 / 4, 3 * 5 / 4  # weights at month 6
    best = alive / 6  # Kaplan-Meier

    def score(p, dead=dead, alive=alive, patients=6):
        """The Brier score of the forecast p, with these weights of the dead and the living."""
        return (dead * p**2 + alive * (1 - p) ** 2) / patients

    of_half = {
        1 / 2: "this is the error; the score is its square",
        score(1 / 2, 2, 3): "the weights are missing: patients who stayed stand in for B",
        6 / 4: "this is the sum; the score is a mean",
    }
    of_best = {
        1 / 4: "some other forecast does better; how many of the six does the curve have alive?",
        best: "this is the best forecast; its score was asked for",
        score(3 / 5, 2, 3, 5): "B was left out from the start",
        score(3 / 6, 2, 3): "the weights are missing: patients who stayed stand in for B",
        0.0: "the cases want a forecast of 0 and the controls 1; there is only one",
    }
    return parts_question(
        {"one half": (score(1 / 2), of_half), "the smallest": (score(best), of_best)}
    )


asks("curves-forecast", _forecast())


def _observed_over_expected(hazards, at_risk, time, event, members):
    """Observed over expected events of the members, with hazards ``at_risk`` in the risk sets."""
    jumps = event / (at_risk * (time >= time[:, None])).sum(axis=1)
    expected = hazards * (jumps * (time <= time[:, None])).sum(axis=1)
    return event[members].sum() / expected[members].sum()


_tied = np.array([2.0, 3, 5, 5, 9, 9])


@asks_function("curves-expected", [(HAZARDS, *OUTCOME, IN_A), (HAZARDS, _tied, EVENT, HAZARDS > 1)])
def observed_over_expected(hazards, time, event, members):
    """Observed over expected events of the members."""
    return _observed_over_expected(hazards, hazards, time, event, members)


@observed_over_expected.mistake(
    "is your baseline from the members alone? Then it is calibrated to them"
)
def _always_calibrated(hazards, time, event, members):
    return 1.0


@observed_over_expected.mistake("the baseline alone is for a hazard of 1")
def _baseline_alone(hazards, time, event, members):
    return _observed_over_expected(np.ones_like(hazards), hazards, time, event, members)


@observed_over_expected.mistake("your jumps count heads where hazards belong")
def _heads_at_risk(hazards, time, event, members):
    return _observed_over_expected(hazards, np.ones_like(hazards), time, event, members)


@observed_over_expected.mistake("the censored were at risk as well")
def _expected_of_the_dead(hazards, time, event, members):
    return observed_over_expected(hazards, time, event, members & event)


@observed_over_expected.mistake("upside down: it should grow with the deaths that happened")
def _expected_over_observed(hazards, time, event, members):
    return 1 / observed_over_expected(hazards, time, event, members)


def _noticed() -> Question:
    six = SurvivalData.from_frame(SIX, time="time", event="event", groups=["group"])
    metrics = {"c-index": "c_index", "AUC": "auc", "LPL": "lpl", "IBS": "ibs"}

    def metrics_of(scores):
        values = evaluate(six, six, scores, scores, "group")
        return np.array([values[metric] for metric in metrics.values()])

    before = metrics_of(SCORES)
    noticed = np.zeros(4)
    for changed in (SCORES + 5, 2 * SCORES, SCORES**3):
        noticed += np.abs(metrics_of(changed) - before) > 1e-9
    order = dict.fromkeys((1, 2, 3), "does any of the three change who has the higher score?")
    moved = "what does moving do to a ratio of hazards, and to the baseline beside it?"
    lpl = {3: moved, 0: "it is made of ratios of hazards, not of ranks"}
    ibs = {3: moved, 0: "do the curves of high and low risk stay where they are?"}
    mistakes = [order, order, lpl, ibs]
    parts = {label: (noticed[k], mistakes[k]) for k, label in enumerate(metrics)}
    return parts_question(parts, digits=None)


asks("curves-notice", _noticed())


def _fair_by_hand() -> Question:
    men = np.array([1, 1, 0, 0, 0, 0])
    smooth = np.array([4.5 / 5, 6.5 / 3])  # women, men
    ci = fairness.concordance_imparity(SCORES, *OUTCOME, men)
    of_group = {
        np.ptp(smooth): "compare each group with everybody, not the groups with each other",
        fairness.group(HAZARDS, men, smoothing=False): "the means are not smoothed yet",
        np.abs(smooth - 10.5 / 7).max(): "the mean of everybody is not smoothed",
        abs(smooth[1] - 10 / 6): "smoothing may change which group is farther away",
    }
    of_ci = {
        ci / 100: "a share; CI is in percent",
        100 * (1 / 1 - 4 / 5): "pairs across the sexes count too, for the group of each",
        fairness.concordance_imparity(SCORES, *OUTCOME, IN_A): "that is CI of groups a and b",
    }
    return parts_question({"F_G": (fairness.group(HAZARDS, men), of_group), "CI": (ci, of_ci)})


asks("fair-hand", _fair_by_hand())


@asks_function("fair-slope", [(factor * SCORES, *OUTCOME) for factor in (0.3, 2.0)], atol=1e-3)
def calibration_slope(scores, time, event):
    """The coefficient of a Cox model with the score as its only feature."""
    return minimise(scores[:, None], risk_sets(time, event), alpha=1).coef[0]


@calibration_slope.mistake("upside down: the factor is what the scores are multiplied by")
def _inverse_slope(scores, time, event):
    return 1 / calibration_slope(scores, time, event)


@calibration_slope.mistake("a standard deviation of 1 is no aim; what of outcomes?")
def _standardised(scores, time, event):
    return 1 / scores.std()


@calibration_slope.mistake("everybody died in your fit; is event passed on?")
def _slope_without_censoring(scores, time, event):
    return calibration_slope(scores, time, np.ones_like(event))


@calibration_slope.mistake("the sign is turned: higher scores mean earlier deaths")
def _slope_turned(scores, time, event):
    return -calibration_slope(scores, time, event)


def _zero() -> Question:
    one, old = np.ones(5), np.array([1, 1, 0, 0, 0])
    cells = np.column_stack([old, [1, 0, 1, 1, 0]])
    values = {
        "F_I": fairness.individual(one, np.eye(5)),
        "F_G printed": fairness.group(one, old, smoothing=False),
        "F_G smoothed": fairness.group(one, old),
        "F_∩ printed": fairness.intersectional(one, cells, smoothing=False),
        "F_∩ smoothed": fairness.intersectional(one, cells),
        "CI": fairness.concordance_imparity(one, [3, 1, 3, 2, 1], [1, 1, 0, 1, 1], old),
    }
    equal = "all hazards are equal: what is left of a difference, or of the log of a ratio?"
    pulled = "an imaginary patient of hazard one half pulls small groups more than large ones"
    ties = "pairs of equal scores do not all get the same points: who died together?"
    says = [equal, equal, pulled, equal, pulled, ties]
    parts = {}
    for (label, value), text in zip(values.items(), says, strict=True):
        is_zero = float(abs(value) < 1e-12)
        parts[label] = (is_zero, {1 - is_zero: text})
    return parts_question(parts, digits=None, kind="several")


asks("fair-zero", _zero())


def _penalties_by_hand() -> Question:
    given = torch.tensor(HAZARDS), np.eye(6), *OUTCOME
    individual = regularizers.individual_rp(*given, gamma=0.0).item()
    group = regularizers.group_rp(*given, IN_A, gamma=0.0).item()
    gap = np.abs(HAZARDS[:, None] - HAZARDS)
    possible = ~EVENT[:, None] & EVENT  # row censored, column an event
    later = possible & (TIME >= TIME[:, None])
    inside = IN_A[:, None] == IN_A

    def mistakes(pairs):
        return {
            gap[later & pairs].mean(): "divide by censored times events, not by the pairs used",
            gap[possible & pairs].sum() / 8: "only events after the censoring are compared",
            gap[later & pairs].sum(): "your sum is not divided yet",
        }

    of_groups = mistakes(inside) | {individual: "a pair must lie inside one group"}
    everybody = np.full((6, 6), True)
    return parts_question(
        {"I (R&P)": (individual, mistakes(everybody)), "G (R&P)": (group, of_groups)}
    )


asks("base-hand", _penalties_by_hand())


_features = np.array([[2.0, 1.5], [1, 0.75], [0, 2], [1, 0], [-1, 0], [-1, 0.75]])


@asks_function("base-push", [(HAZARDS, _features, gamma) for gamma in (0.01, 1.0)])
def push(hazards, X, gamma):
    """Derivative of the individual penalty in each score."""
    scores = torch.tensor(np.log(hazards), requires_grad=True)
    penalty = regularizers.individual_keya(scores.exp(), X, gamma)
    return torch.autograd.grad(penalty, scores)[0].numpy()


@push.mistake("that is the derivative in the hazard, not in the score")
def _push_of_hazards(hazards, X, gamma):
    return push(hazards, X, gamma) / hazards


@push.mistake("pairs that their distance excuses pull as well")
def _push_of_all_pairs(hazards, X, gamma):
    return push(hazards, X, 0.0)


@push.mistake("twice too much; how often does a pair stand in the sum?")
def _push_twice(hazards, X, gamma):
    return 2 * push(hazards, X, gamma)


@push.mistake("the sign is turned: raising the highest hazard costs more")
def _push_turned(hazards, X, gamma):
    return -push(hazards, X, gamma)


def _escapes() -> Question:
    def spread(values):
        return np.abs(values[:, None] - values).sum()

    changed = SCORES - 3, SCORES / 2
    moved, halved = [spread(np.exp(scores)) / spread(HAZARDS) for scores in changed]
    moved_scores, halved_scores = [spread(scores) / spread(SCORES) for scores in changed]
    still = "still the hazards; here scores are subtracted from each other"
    shift = "the Cox loss does not see a constant, but do the hazards?"
    factor = "does a factor drop out of a difference?"
    return parts_question(
        {
            "hazards, moved": (moved, {1: shift}),
            "hazards, halved": (halved, {0.5: "halved scores are not halved hazards"}),
            "scores, moved": (moved_scores, {moved: still}),
            "scores, halved": (halved_scores, {halved: still, 1: factor}),
        }
    )


asks("base-repair", _escapes())
