"""Exercises on DRO-COX and on sample splitting."""

import numpy as np
import torch

import drocox
from drocox.exercises._answers import Question, numbers_question
from drocox.exercises._core import asks, asks_function, asks_letters
from drocox.exercises.survival import EVENT, IN_A, PATIENTS, TIME, chances, other_logs


def equal_losses(time, event) -> np.ndarray:
    """Cox losses of patients with equal scores."""
    return drocox.cox_losses(torch.zeros(len(time), dtype=torch.float64), time, event).numpy()


def _newcomer() -> Question:
    before = equal_losses(TIME, EVENT)
    after = equal_losses([*TIME, 15.0], [*EVENT, False])[:-1]
    everyone = np.ones(6)
    rise = equal_losses([*TIME, 15.0], [*everyone, 0])[:-1] - equal_losses(TIME, everyone)
    mistakes = {
        "these are the losses with G; asked is by how much each has risen": after,
        "the loss of a censored patient is 0, whoever else is at risk": rise,
        "not all deaths rise alike: G joins risk sets of different sizes": EVENT * rise[0],
        "not all six rise alike: the censored have loss 0, and risk sets shrink": (
            np.full(6, rise[0])
        ),
        "this is what happens if a patient leaves, not if one arrives": before - after,
    }
    right = after - before
    return numbers_question(right, mistakes | other_logs(right), labels=PATIENTS)


asks("dro-cox-newcomer", _newcomer())


def _weighted_gradient(scores, time, event, weights):
    """Weighted mean of the gradients of Cox losses."""
    return (weights * event) @ (chances(scores, time) - np.eye(len(scores)))


def _worst_weights(scores, time, event, alpha, rule):
    losses = -event * np.log(np.diag(chances(scores, time)))
    return drocox.worst_case_weights(torch.tensor(losses), alpha, rule=rule).numpy()


def _gradient_cases():
    rng = np.random.default_rng(0)
    time = np.array([3.0, 1, 4, 4, 6, 9, 2])
    event = np.array([1, 0, 1, 1, 0, 1, 1])
    return [(rng.normal(size=7), time, event, alpha) for alpha in (0.5, 0.7)]


@asks_function("dro-cox-gradient", _gradient_cases())
def dro_gradient(scores, time, event, alpha):
    """Gradient of the worst-case risk with the paper's constant."""
    weights = _worst_weights(scores, time, event, alpha, "paper")
    return _weighted_gradient(scores, time, event, weights)


@dro_gradient.mistake("all have the same weight in yours: whom does q favour?")
def _gradient_of_the_mean(scores, time, event, alpha):
    return _weighted_gradient(scores, time, event, np.full(len(scores), 1 / len(scores)))


@dro_gradient.mistake("this is the way down; the gradient points up")
def _way_down(scores, time, event, alpha):
    return -dro_gradient(scores, time, event, alpha)


@dro_gradient.mistake("the log of the sum depends on the scores as well")
def _gradient_of_own_term(scores, time, event, alpha):
    return -_worst_weights(scores, time, event, alpha, "paper") * event


@dro_gradient.mistake('weights of another constant; take rule="paper"')
def _gradient_of_another_constant(scores, time, event, alpha):
    weights = _worst_weights(scores, time, event, alpha, "sharp")
    return _weighted_gradient(scores, time, event, weights)


asks_letters(
    "dro-cox-valid",
    "ad",
    {
        "a": "(a) has f_i and Y_i in it: is there a second patient?",
        "b": "subtracting log |R_i| does not take the others out of the loss",
        "c": "an estimated baseline is made of patients: of which, in each case?",
        "d": "what was fixed before these patients came does not tie them to each other",
        "e": "a pair has two patients",
    },
)


def _split_six() -> Question:
    everyone = np.ones(6)
    sums = np.exp(drocox.split_cox_losses(torch.zeros(6).double(), TIME, everyone, IN_A).numpy())
    right = EVENT * np.log(sums)
    same = np.zeros(6)
    for half in (IN_A, ~IN_A):
        same[half] = equal_losses(TIME[half], EVENT[half])
    mistakes = {
        "these are Cox losses: the patient's own half is in their sums": equal_losses(TIME, EVENT),
        "the patient's own term is missing": EVENT * np.log(np.maximum(sums - 1, 1)),
        "you compare patients within their half; the split loss compares with the other half": same,
        "B and E are censored, and have the loss 0": np.log(sums),
        "these are the sums; the loss of a death with score 0 is a log": np.where(EVENT, sums, 0),
    }
    return numbers_question(right, mistakes | other_logs(right), labels=PATIENTS)


asks("split-six", _split_six())


def _fold_cases():
    rng = np.random.default_rng(1)
    time = np.array([2.0, 1, 3, 2, 5, 5])
    event = np.array([1, 1, 0, 1, 1, 1])
    fold = np.array([0, 1, 2, 1, 2, 0])
    two_folds = np.minimum(fold, 1)
    return [(rng.normal(size=6), time, event, fold), (np.zeros(6), time, event, two_folds)]


def _losses_compared_with(scores, event, at_risk):
    """Minus the log of a patient's share of the hazards in each row; 0 for the censored."""
    return event * (np.log(at_risk @ np.exp(scores)) - scores)


@asks_function("split-folds", _fold_cases())
def fold_losses(scores, time, event, fold):
    """The comparison is with the patients at risk in other folds, and the patient."""
    others = (fold != fold[:, None]) & (time >= time[:, None])
    return _losses_compared_with(scores, event, others + np.eye(len(fold)))


@fold_losses.mistake("the patient's own term is missing from the sum")
def _own_term_missing(scores, time, event, fold):
    others = (fold != fold[:, None]) & (time >= time[:, None])
    return _losses_compared_with(scores, event, others)


@fold_losses.mistake("you compare with the patient's own fold, not with the others")
def _own_fold(scores, time, event, fold):
    same = (fold == fold[:, None]) & (time >= time[:, None])
    return _losses_compared_with(scores, event, same + np.eye(len(fold)))


@fold_losses.mistake("you compare with all patients at risk: that is the Cox loss")
def _all_at_risk(scores, time, event, fold):
    return _losses_compared_with(scores, event, time >= time[:, None])


@fold_losses.mistake("is a patient who dies at the same time at risk?")
def _without_ties(scores, time, event, fold):
    others = (fold != fold[:, None]) & (time > time[:, None])
    return _losses_compared_with(scores, event, others + np.eye(len(fold)))


def _sorted_by_time() -> Question:
    early = np.arange(6) < 3  # A, B, C

    def sums(loss, event=EVENT):
        """Of each side's losses, for both hazards of D2."""
        found = [loss(np.where(early, 0.0, np.log(u)), event) for u in (1, 0.5)]
        return np.array([found[0][early], found[1][early], found[0][~early], found[1][~early]]).sum(
            axis=1
        )

    def split(scores, event):
        return drocox.split_cox_losses(torch.tensor(scores), TIME, event, early).numpy()

    def cox(scores, event):
        return drocox.cox_losses(torch.tensor(scores), TIME, event).numpy()

    right = sums(split)
    own_half = np.array([*right[:2], *sums(cox)[2:]])
    mistakes = {
        "these are Cox losses: the patient's own half is in their sums": sums(cox),
        "who of D₁ is still at risk when D and F die?": own_half,
        "B is censored, and has the loss 0": sums(split, np.ones(6)) * [1, 1, 0, 0],
        "the patient's own term is missing": np.array([2 * np.log(3), 2 * np.log(1.5), 0, 0]),
        "this is one loss; two patients of D₁ die": right / 2,
        "these are means over a half; the sums are asked": right / 3,
        "this is the product of the sums; add up their logs": np.exp(right),
    }
    sides = ("D₁, u = 1", "D₁, u = 1/2", "D₂, u = 1", "D₂, u = 1/2")
    return numbers_question(right, mistakes | other_logs(right), labels=sides)


asks("split-sorted", _sorted_by_time())

asks_letters(
    "split-safe",
    "ace",
    {
        "a": "a coin knows nothing of the patients; the halves need not have the same size",
        "b": "these losses are independent, but whose are they? D₁ contains the young only",
        "c": "what does a number of this registry say about the patient who gets it?",
        "d": "this choice looks at the times: each lies between two of the other half",
        "e": "look up what the proposition says of a choice that looks at events only",
        "f": "to pick one of many random halves by the data is to choose it by the data",
    },
)


def _pull_cases():
    rng = np.random.default_rng(2)
    time = np.array([4.0, 1, 3, 2, 3, 5, 6])
    event = np.array([1, 1, 1, 0, 1, 1, 0])
    first = np.array([1, 0, 1, 1, 0, 1, 0], dtype=bool)
    return [(rng.normal(size=7), time, event, half) for half in (first, ~first)]


def _pushes(scores, time, event, first, *, strict=False, all_=False):
    """Share of the other half in each event's sum."""
    at_risk = time > time[:, None] if strict else time >= time[:, None]
    other = first != first[:, None]
    B = (at_risk & other) @ np.exp(scores)
    own = (at_risk & ~other) @ np.exp(scores) if all_ else np.exp(scores)
    return event * B / (own + B)


@asks_function("split-pull", _pull_cases())
def pulls(scores, time, event, first, **mistake):
    """Derivatives of both sides' losses if all scores of D2 rise."""
    push = _pushes(scores, time, event, first, **mistake)
    return np.array([push[first].sum(), -push[~first].sum()])


@pulls.mistake("if the scores of D₂ rise, do the losses of D₂ rise as well? Mind their own terms")
def _both_upwards(scores, time, event, first):
    return np.abs(pulls(scores, time, event, first))


@pulls.mistake("these signs are turned: more hazard in D₂ means larger sums for D₁")
def _signs_turned(scores, time, event, first):
    return -pulls(scores, time, event, first)


@pulls.mistake("the losses of the censored are 0 and do not pull")
def _censored_pull(scores, time, event, first):
    return pulls(scores, time, np.ones(len(time)), first)


@pulls.mistake("the patient's own half is in your sums: these are Cox losses")
def _pulls_of_cox(scores, time, event, first):
    return pulls(scores, time, event, first, all_=True)


@pulls.mistake("is a patient who dies at the same time at risk?")
def _pulls_without_ties(scores, time, event, first):
    return pulls(scores, time, event, first, strict=True)


@pulls.mistake("these are the derivatives of means; the sums are asked")
def _pulls_on_means(scores, time, event, first):
    return pulls(scores, time, event, first) / [first.sum(), (~first).sum()]


_OWN_HALF = "who else is in the half of A does not enter its loss: that is why one splits"
asks_letters(
    "split-company",
    "bc",
    {
        "a": _OWN_HALF,
        "b": "F is in the comparison set of A, and alive when A dies",
        "c": "follow a patient of the other half whose time changes: at risk when A dies?",
        "d": _OWN_HALF,
        "e": "the other half counts by being at risk; how it ends later is not in the sum",
        "f": "a constant added to all scores cancels between f_i and the log of the sum",
    },
)
