"""Exercises on DRO-COX and on sample splitting."""

import numpy as np
import torch

import drocox
from drocox.exercises._answers import Question, letters_question, numbers_question
from drocox.exercises._core import asks, asks_function
from drocox.exercises.survival import EVENT, IN_A, PATIENTS, TIME, chances


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
        "the loss of a censored patient is 0 in any company": rise,
        "not all deaths rise alike: G joins risk sets of different sizes": EVENT * rise[0],
        "not everybody rises alike: the censored have loss 0, and risk sets shrink": (
            np.full(6, rise[0])
        ),
        "this is what happens if a patient leaves, not if one arrives": before - after,
        "your log is to base 2; the book's is the natural one": (after - before) / np.log(2),
        "your log is to base 10; the book's is the natural one": (after - before) / np.log(10),
    }
    return numbers_question(after - before, mistakes, labels=PATIENTS)


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


@dro_gradient.mistake("all have the same say in yours: whom does q favour?")
def _gradient_of_the_mean(scores, time, event, alpha):
    return _weighted_gradient(scores, time, event, np.full(len(scores), 1 / len(scores)))


@dro_gradient.mistake("this is the way down; the gradient points up")
def _way_down(scores, time, event, alpha):
    return -dro_gradient(scores, time, event, alpha)


@dro_gradient.mistake("the log of the sum depends on the scores as well")
def _gradient_without_company(scores, time, event, alpha):
    return -_worst_weights(scores, time, event, alpha, "paper") * event


@dro_gradient.mistake('weights of another constant; take rule="paper"')
def _gradient_of_another_constant(scores, time, event, alpha):
    weights = _worst_weights(scores, time, event, alpha, "sharp")
    return _weighted_gradient(scores, time, event, weights)


asks(
    "dro-cox-valid",
    letters_question(
        "ad",
        {
            "a": "(a) has h_i and Y_i in it: is there a second patient?",
            "b": "subtracting log |R_i| does not take the others out of the loss",
            "c": "an estimated baseline is made of patients: of which, in each case?",
            "d": "what was fixed before these patients came does not tie them to each other",
            "e": "a pair has two patients",
        },
    ),
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
        "you compare patients within their half; the company is the other half": same,
        "B and E are censored: there is no death to be surprised by": np.log(sums),
        "these are the sums; the loss of a death with score 0 is a log": np.where(EVENT, sums, 0),
        "your log is to base 2; the book's is the natural one": right / np.log(2),
        "your log is to base 10; the book's is the natural one": right / np.log(10),
    }
    return numbers_question(right, mistakes, labels=PATIENTS)


asks("split-six", _split_six())


def _fold_cases():
    rng = np.random.default_rng(1)
    time = np.array([2.0, 1, 3, 2, 5, 5])
    event = np.array([1, 1, 0, 1, 1, 1])
    fold = np.array([0, 1, 2, 1, 2, 0])
    two_folds = np.minimum(fold, 1)
    return [(rng.normal(size=6), time, event, fold), (np.zeros(6), time, event, two_folds)]


def _losses_in_company(scores, event, company):
    """Minus the log of a patient's share of the hazards in each row; 0 for the censored."""
    return event * (np.log(company @ np.exp(scores)) - scores)


@asks_function("split-folds", _fold_cases())
def fold_losses(scores, time, event, fold):
    """The comparison is with the patients at risk in other folds, and the patient."""
    others = (fold != fold[:, None]) & (time >= time[:, None])
    return _losses_in_company(scores, event, others + np.eye(len(fold)))


@fold_losses.mistake("the patient's own term is missing from the sum")
def _own_term_missing(scores, time, event, fold):
    others = (fold != fold[:, None]) & (time >= time[:, None])
    return _losses_in_company(scores, event, others)


@fold_losses.mistake("your company is the patient's own fold, not the others")
def _own_fold(scores, time, event, fold):
    same = (fold == fold[:, None]) & (time >= time[:, None])
    return _losses_in_company(scores, event, same + np.eye(len(fold)))


@fold_losses.mistake("you compare with everybody: that is the Cox loss")
def _everybody(scores, time, event, fold):
    return _losses_in_company(scores, event, time >= time[:, None])


@fold_losses.mistake("is somebody who dies at the same time at risk?")
def _without_ties(scores, time, event, fold):
    others = (fold != fold[:, None]) & (time > time[:, None])
    return _losses_in_company(scores, event, others + np.eye(len(fold)))


_OWN_HALF = "who else is in the half of A does not enter its loss: that is why one splits"
asks(
    "split-company",
    letters_question(
        "bc",
        {
            "a": _OWN_HALF,
            "b": "F is company of A, and alive when A dies",
            "c": "follow a patient of the other half whose time changes: at risk when A dies?",
            "d": _OWN_HALF,
            "e": "the company counts by being at risk; how it ends later is not in the sum",
            "f": "a constant added to all scores cancels between f_i and the log of the sum",
        },
    ),
)
