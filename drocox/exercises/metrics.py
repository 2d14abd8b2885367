"""Exercises on survival curves, fairness metrics and the penalties made of them."""

import numpy as np
import torch
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

from drocox import SurvivalData, evaluate, fairness, regularizers
from drocox.bookstyle import SIX
from drocox.exercises._core import exercise, judged, judged_function
from drocox.exercises.survival import EVENT, IN_A, SCORES, TIME

OUTCOME = TIME, EVENT
HAZARDS = np.exp(SCORES)


def _parts(answer, right, known, atol=1e-6):
    """Judge an array entry by entry; ``known`` has a label and mistakes (value: text) for each."""
    wrong = judged(answer, right, {}, atol=atol)
    if wrong is None or not wrong.startswith("not right"):
        return wrong
    given = np.asarray(answer, float)
    for value, truth, (label, mistakes) in zip(given, right, known.items(), strict=True):
        if abs(value - truth) > atol:
            said = [text for mistake, text in mistakes.items() if abs(value - mistake) <= atol]
            return f"{label}: {[*said, wrong][0]}"


@exercise("curves-weights")
def _curves_weights(answer):
    def weights(now, of_c=1.0, of_b=0.0):
        return np.array([1, of_b, of_c, now, now, now])

    now = 1 / (1 - 1 / 4)  # B leaves four, the dead C not among them
    mistakes = {
        "C counts with G after B has left; take G just before C's death": weights(now, now),
        "at a tie deaths come first: is C still there when B leaves?": weights(1 / (1 - 1 / 5)),
        "nobody speaks for B; dropping those who left overstates the dead": weights(1),
        "whoever had a small chance to stay must count more, not less": weights(1 / now),
        "nobody knows whether B is alive at month 6": weights(now, of_b=1),
    }
    return judged(answer, weights(now), mistakes, atol=5e-3)


def _ratio(h, t, e, m, at_risk=None):
    """Observed over expected events of the members m; ``at_risk`` fills the risk sets."""
    jumps = e / ((h if at_risk is None else at_risk) * (t >= t[:, None])).sum(1)
    expected = h * (jumps * (t <= t[:, None])).sum(1)
    return e[m].sum() / expected[m].sum()


@exercise("curves-expected")
def _curves_expected(answer):
    one = np.ones(6)
    mistakes = {
        "is your baseline from the members alone? Then it is calibrated to them": lambda *a: 1.0,
        "the baseline alone is for a hazard of 1": lambda h, t, e, m: _ratio(one, t, e, m, h),
        "your jumps count heads where hazards belong": lambda h, t, e, m: _ratio(h, t, e, m, one),
        "the censored were at risk as well": lambda h, t, e, m: _ratio(h, t, e, m & e),
        "upside down: it should grow with the deaths that happened": lambda *a: 1 / _ratio(*a),
    }
    tied = np.array([2.0, 3, 5, 5, 9, 9])
    cases = [(HAZARDS, *OUTCOME, IN_A), (HAZARDS, tied, EVENT, HAZARDS > 1)]
    return judged_function(answer, cases, _ratio, mistakes)


@exercise("curves-notice")
def _curves_notice(answer):
    six = SurvivalData.from_frame(SIX, time="time", event="event", groups=["group"])

    def four(f):
        found = evaluate(six, six, f, f, "group")
        return np.array([found[metric] for metric in ("c_index", "auc", "lpl", "ibs")])

    changed = SCORES + 5, 2 * SCORES, SCORES**3
    right = sum(np.abs(four(f) - four(SCORES)) > 1e-9 for f in changed)
    order = dict.fromkeys((1, 2, 3), "does any of the three change who has the higher score?")
    moved = "what does moving do to a ratio of hazards, and to the baseline beside it?"
    lpl = {3: moved, 0: "it is made of ratios of hazards, not of ranks"}
    ibs = {3: moved, 0: "do the curves of high and low risk stay where they are?"}
    return _parts(answer, right, {"c-index": order, "AUC": order, "LPL": lpl, "IBS": ibs})


@exercise("fair-hand")
def _fair_hand(answer):
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
    right = fairness.group(HAZARDS, men), ci
    return _parts(answer, right, {"F_G": of_group, "CI": of_ci}, atol=6e-3)


def _slope(f, t, e):
    return CoxPHSurvivalAnalysis().fit(f[:, None], Surv.from_arrays(e, t)).coef_[0]


@exercise("fair-slope")
def _fair_slope(answer):
    mistakes = {
        "upside down: the factor is what the scores are multiplied by": lambda *a: 1 / _slope(*a),
        "a standard deviation of 1 is no aim; what of outcomes?": lambda f, t, e: 1 / f.std(),
        "everybody died in your fit; is event passed on?": lambda f, t, e: _slope(f, t, e | True),
        "the sign is turned: higher scores mean earlier deaths": lambda *a: -_slope(*a),
    }
    cases = [(k * SCORES, *OUTCOME) for k in (0.3, 2.0)]
    return judged_function(answer, cases, _slope, mistakes, atol=1e-3)


@exercise("fair-zero")
def _fair_zero(answer):
    one, old = np.ones(5), np.array([1, 1, 0, 0, 0])
    cells = np.column_stack([old, [1, 0, 1, 1, 0]])
    metrics = (fairness.group, old), (fairness.intersectional, cells)
    values = [of(one, codes, smoothing) for of, codes in metrics for smoothing in (False, True)]
    values.insert(0, fairness.individual(one, np.eye(5)))
    values.append(fairness.concordance_imparity(one, [3, 1, 3, 2, 1], [1, 1, 0, 1, 1], old))
    equal = {0: "all hazards are equal: what is left of a difference, or of the log of a ratio?"}
    pulled = {1: "an imaginary patient of hazard one half pulls small groups more than large ones"}
    ties = {1: "pairs of equal scores do not all get the same points: who died together?"}
    labels = "F_I", "F_G printed", "F_G smoothed", "F_∩ printed", "F_∩ smoothed", "CI"
    known = dict(zip(labels, (equal, equal, pulled, equal, pulled, ties), strict=True))
    return _parts(answer, [float(abs(v) < 1e-12) for v in values], known)


@exercise("base-hand")
def _base_hand(answer):
    given = torch.tensor(HAZARDS), np.eye(6), *OUTCOME
    first = regularizers.individual_rp(*given, gamma=0.0).item()
    right = first, regularizers.group_rp(*given, IN_A, gamma=0.0).item()
    gap = np.abs(HAZARDS[:, None] - HAZARDS)
    possible = ~EVENT[:, None] & EVENT  # row censored, column an event
    later = possible & (TIME >= TIME[:, None])
    inside = IN_A[:, None] == IN_A
    known = {
        label: {
            gap[later & of].mean(): "divide by censored times events, not by the pairs used",
            gap[possible & of].sum() / 8: "only events after the censoring are compared",
            gap[later & of].sum(): "your sum is not divided yet",
        }
        for label, of in (("I (R&P)", inside | True), ("G (R&P)", inside))
    }
    known["G (R&P)"][first] = "a pair must lie inside one group"
    return _parts(answer, right, known, atol=1e-3)


@exercise("base-push")
def _base_push(answer):
    def right(h, X, gamma):
        f = torch.tensor(np.log(h), requires_grad=True)
        return torch.autograd.grad(regularizers.individual_keya(f.exp(), X, gamma), f)[0].numpy()

    mistakes = {
        "that is the derivative in the hazard, not in the score": lambda h, *a: right(h, *a) / h,
        "pairs that their distance excuses pull as well": lambda h, X, gamma: right(h, X, 0.0),
        "twice too much; how often does a pair stand in the sum?": lambda *a: 2 * right(*a),
        "the sign is turned: raising the highest hazard costs more": lambda *a: -right(*a),
    }
    X = np.array([[2.0, 1.5], [1, 0.75], [0, 2], [1, 0], [-1, 0], [-1, 0.75]])
    return judged_function(answer, [(HAZARDS, X, gamma) for gamma in (0.01, 1.0)], right, mistakes)


@exercise("base-repair")
def _base_repair(answer):
    def spread(values):
        return np.abs(values[:, None] - values).sum()

    changed = SCORES - 3, SCORES / 2
    hazards = [spread(np.exp(f)) / spread(HAZARDS) for f in changed]
    scores = [spread(f) / spread(SCORES) for f in changed]
    still = "still the hazards; here scores are subtracted from each other"
    known = {
        "hazards, moved": {1: "the Cox loss does not see a constant, but do the hazards?"},
        "hazards, halved": {0.5: "halved scores are not halved hazards"},
        "scores, moved": {hazards[0]: still},
        "scores, halved": {hazards[1]: still, 1: "does a factor drop out of a difference?"},
    }
    return _parts(answer, hazards + scores, known, atol=1e-3)
