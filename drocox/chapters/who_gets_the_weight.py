"""What the chapter "Who gets the weight?" draws and tells: DRO-COX on FLC and SEER, by alpha.

A trained stack has a model for each alpha, the smallest first; the last, of alpha = 1, is the
ordinary Cox model. All weights are those of the paper's constant.
"""

from collections.abc import Sequence
from typing import Protocol

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

import drocox
from drocox.bookstyle import guard, say
from drocox.data import SurvivalData

SMALL = 0.1  # the alpha of which the text speaks most
DRO = 0  # the model of that alpha in a stack
COX = -1  # the ordinary Cox model
DAYS_PER_YEAR = 365.25
OLD = "over 65"
YOUNG = "65 or younger"


class Trained(Protocol):
    """A stack of models on the training part of a data set."""

    data: SurvivalData
    scores: torch.Tensor  # (models, patients), like losses and q
    losses: torch.Tensor
    q: np.ndarray
    when: np.ndarray  # (patients,): log of the size of the risk set of each event


def _weights(losses: torch.Tensor, alpha: float) -> np.ndarray:
    return drocox.worst_case_weights(losses, alpha, rule="paper").numpy()


def tell_sizes(table: pd.DataFrame, flc: Trained, seer: Trained) -> None:
    """How many patients a step is worth, and how much weight the censored get.

    Parameters
    ----------
    table : DataFrame
        A row for each alpha; columns of both data sets.
    flc, seer : Trained
    """
    small = table.loc[SMALL]
    half = table.loc[0.5]
    square = small["", "C²"]
    say("who-c2", f"{square:.0f}")
    say("who-share", f"{100 / square:.1f}")
    say("who-flc-eff", f"{len(flc.data) / square:.0f}")
    say("who-flc-n", len(flc.data))
    say("who-flc-active", f"{small['FLC', 'active']:.0f}")
    say("who-seer-eff", f"{len(seer.data) / square:.0f}")
    say("who-seer-cens", f"{100 * half['SEER', 'censored']:.0f}")
    say("who-flc-cens", f"{100 * half['FLC', 'censored']:.0f}")
    say("who-flc-p", f"{flc.data.event.mean():.2f}")
    say("who-seer-p", f"{seer.data.event.mean():.2f}")
    eta = table.xs("η", axis=1, level=1)
    guard(eta["FLC"][0.5] < 0 < eta["FLC"][0.4], "on FLC eta is below zero at 0.5")
    guard(eta["SEER"][0.4] < 0 < eta["SEER"][0.3], "on SEER eta is below zero from 0.4 on")


def tell_surprises(groups: pd.DataFrame) -> None:
    """Weight of FLC's patients over 65 against the Cox model, and their share of the deaths.

    Parameters
    ----------
    groups : DataFrame
        Weight of groups by alpha, and shares; the first column is that of patients over 65.
    """
    old = groups.iloc[:, 0]
    say("who-old-before", f"{100 * old[SMALL]:.0f}")
    say("who-old-deaths", f"{100 * old['deaths']:.0f}")


def weight_of_earliest(flc: Trained, share: float) -> float:
    """Weight, against the Cox model, of the earliest deaths.

    Parameters
    ----------
    flc : Trained
    share : float
        Of the deaths.

    Returns
    -------
    float
    """
    event = flc.data.event
    time = flc.data.time
    q = _weights(flc.losses[COX], SMALL)
    return q[event & (time <= np.quantile(time[event], share))].sum()


def tell_when(effects: pd.DataFrame, flc: Trained) -> None:
    """What training does to scores, c-index and the weight of early deaths.

    Parameters
    ----------
    effects : DataFrame
        A row for each alpha; columns of both data sets.
    flc : Trained
    """
    cox = effects.loc[1.0]
    dro = effects.loc[SMALL]
    fifth = weight_of_earliest(flc, 0.2)
    half = weight_of_earliest(flc, 0.5)
    guard(0.2 < dro["FLC", "before"] < 0.5 < fifth, "the earliest fifth has most of the weight")
    guard(half > 0.8, "nearly all weight is in the earlier half")
    guard(dro["FLC", "after"] > 0.9, "after training the earliest tenth has it")
    guard(dro["SEER", "before"] < dro["SEER", "after"], "on SEER training moves it forward, too")
    say("who-sd-cox", f"{cox['FLC', 'SD']:.2f}")
    say("who-sd-dro", f"{dro['FLC', 'SD']:.2f}")
    say("who-c-cox", f"{cox['FLC', 'c-index']:.2f}")
    say("who-c-dro", f"{dro['FLC', 'c-index']:.2f}")
    say("who-c-seer-cox", f"{cox['SEER', 'c-index']:.2f}")
    say("who-c-seer-dro", f"{dro['SEER', 'c-index']:.2f}")
    say("who-corr-dro", f"{dro['FLC', 'corr.']:.3f}")
    say("who-corr-cox", f"{cox['FLC', 'corr.']:.2f}")
    say("who-early-before", f"{100 * dro['FLC', 'before']:.0f}")
    say("who-early-after", f"{100 * dro['FLC', 'after']:.0f}")
    say("who-fifth-before", f"{100 * fifth:.0f}")
    say("who-log-n", f"{np.log(len(flc.data)):.2f}")
    say("who-max-cox", f"{flc.losses[COX].max().item():.2f}")


def tell_who(flc: Trained) -> None:
    """What makes a loss of the Cox model large, and who has weight against it.

    Parameters
    ----------
    flc : Trained
    """
    event = flc.data.event
    years = flc.data.time / DAYS_PER_YEAR
    age = flc.data.X["age"].to_numpy()
    loss = flc.losses[COX].numpy()[event]
    when = flc.when[event]
    who = loss - when
    with_who = np.corrcoef(loss, who)[0, 1]
    with_when = np.corrcoef(loss, when)[0, 1]
    guard(who.var() > 5 * when.var(), "the variance of who is many times that of when")
    guard(with_who > 0.9 and with_when < 0.3, "a loss goes with who, hardly with when")
    say("who-var-who", f"{who.var():.2f}")
    say("who-var-when", f"{when.var():.3f}")
    say("who-corr-who", f"{with_who:.2f}")
    say("who-corr-when", f"{with_when:.2f}")

    chosen = _weights(flc.losses[COX], SMALL) > 0
    earliest = event & (flc.data.time <= np.quantile(flc.data.time[event], 0.1))
    early_and_chosen = (earliest & chosen).sum()
    guard(event[chosen].all(), "who has weight died")
    guard(age[chosen].max() <= 65, "the patients with weight are all 65 or younger")
    spread = np.ptp(years[chosen]) / np.ptp(years[event])
    guard(spread > 0.5, "they die early and late")
    guard(early_and_chosen < earliest.sum() / 5, "of the earliest tenth only few have weight")
    say("who-age-least", f"{age.min():.0f}")
    say("who-age-most", f"{age.max():.0f}")
    say("who-chosen", int(chosen.sum()))
    say("who-chosen-oldest", f"{age[chosen].max():.0f}")
    say("who-chosen-first", f"{years[chosen].min():.2f}")
    say("who-chosen-last", f"{years[chosen].max():.1f}")
    say("who-early-n", int(earliest.sum()))
    say("who-early-chosen", int(early_and_chosen))


def draw_when(flc: Trained) -> Figure:
    r"""Losses of those who died against time, of the Cox model and of DRO-COX; who has weight.

    Parameters
    ----------
    flc : Trained

    Returns
    -------
    Figure
    """
    event = flc.data.event
    years = flc.data.time / DAYS_PER_YEAR
    in_order = np.argsort(years[event], kind="stable")
    constant = drocox.dual_constant(SMALL, rule="paper")
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.8), sharey=True)
    models = {"Cox": flc.losses[COX], "DRO-COX, α = 0.1": flc.losses[DRO]}
    for axes, (title, losses) in zip(panels, models.items(), strict=True):
        chosen = _weights(losses, SMALL) > 0
        calm = event & ~chosen
        heavy = event & chosen
        axes.plot(years[calm], losses.numpy()[calm], "C0.", ms=3, alpha=0.35)
        axes.plot(years[heavy], losses.numpy()[heavy], "C1o", ms=4, mfc="none")
        axes.plot(years[event][in_order], flc.when[event][in_order], "k", lw=1)
        eta = drocox.optimal_eta(losses, constant).item()
        axes.axhline(eta, color="k", ls="--", lw=0.8)
        axes.set(title=title, xlabel="time of death (years)")
    panels[0].set_ylabel("loss")
    return figure


def percent_so_far(years: np.ndarray, weights: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Percent of weights that lies at or before some times.

    Parameters
    ----------
    years, weights : arrays of shape (n,)
    at : array of shape (m,)

    Returns
    -------
    array of shape (m,)
    """
    past = years <= at[:, None]
    return 100 * past @ (weights / weights.sum())


def keep_when(flc: Trained, alphas: Sequence) -> None:
    """Hold the text to when the patients die who have the weight, before and after training.

    Parameters
    ----------
    flc : Trained
    alphas : sequence of float
        Of the models.
    """
    grid = np.linspace(0, 14, 57)
    event = flc.data.event
    years = flc.data.time[event] / DAYS_PER_YEAR
    against_cox = [_weights(flc.losses[COX], alpha)[event] for alpha in alphas]
    before = np.array([percent_so_far(years, q, grid) for q in against_cox])
    after = np.array([percent_so_far(years, q[event], grid) for q in flc.q])
    deaths = percent_so_far(years, np.ones(len(years)), grid)
    guard(abs(after[5] - deaths).max() < 3, "at alpha = 0.5 the weight follows the deaths")
    guard(np.allclose(before[COX], after[COX]), "at alpha = 1 it is the Cox model itself")
    two_years = grid == 2
    guard((np.diff(after[:, two_years], axis=0) < 0).all(), "the smaller alpha, the earlier")
    gain = after[:3, two_years] - before[:3, two_years]
    guard((gain > 10).all(), "most of all after training")


def mean_losses_by_age(flc: Trained) -> dict:
    """Mean loss of both age groups in each model, over all patients and over those who died.

    Parameters
    ----------
    flc : Trained

    Returns
    -------
    dict of (per, group) to array of shape (models,)
        ``per`` is "per patient" or "per death".
    """
    old = flc.data.groups["age"] == 1
    died = flc.data.event
    losses = flc.losses.numpy()
    return {
        ("per patient", OLD): losses[:, old].mean(axis=1),
        ("per patient", YOUNG): losses[:, ~old].mean(axis=1),
        ("per death", OLD): losses[:, old & died].mean(axis=1),
        ("per death", YOUNG): losses[:, ~old & died].mean(axis=1),
    }


def draw_ages(alphas: Sequence, means: dict) -> Figure:
    """Mean losses of both age groups by alpha, per patient (left) and per death (right).

    Parameters
    ----------
    alphas : sequence of float
    means : dict
        From :func:`mean_losses_by_age`.

    Returns
    -------
    Figure
    """
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.4))
    for axes, per in zip(panels, ("per patient", "per death"), strict=True):
        axes.plot(alphas, means[per, OLD], "C0o-", ms=4, label=OLD)
        axes.plot(alphas, means[per, YOUNG], "C1s--", ms=4, label=YOUNG)
        axes.set(title=per, xlabel="α", ylabel="mean loss")
    panels[0].legend()
    return figure


def tell_ages(means: dict, flc: Trained) -> None:
    """Losses by age, of the surprises, and the bound, of the Cox model and of DRO-COX.

    Parameters
    ----------
    means : dict
        From :func:`mean_losses_by_age`.
    flc : Trained
    """
    bounds = [drocox.dro_risk(losses, SMALL, rule="paper").item() for losses in flc.losses]
    guard(bounds[DRO] < bounds[COX] - 1, "the bound falls")
    old = means["per patient", OLD]
    guard((np.diff(old) < 1e-3).all(), "the risk of patients over 65 rises as alpha falls")
    gaps = means["per death", YOUNG] - means["per death", OLD]
    guard(abs(gaps[DRO]) < 0.1 < 1 < gaps[COX], "per death, the losses are levelled")
    surprises = _weights(flc.losses[COX], SMALL)
    for name, model in (("cox", COX), ("dro", DRO)):
        say(f"who-old-{name}", f"{old[model]:.2f}")
        say(f"who-death-old-{name}", f"{means['per death', OLD][model]:.2f}")
        say(f"who-death-young-{name}", f"{means['per death', YOUNG][model]:.2f}")
        say(f"who-surprise-{name}", f"{surprises @ flc.losses[model].numpy():.2f}")
        say(f"who-bound-{name}", f"{bounds[model]:.2f}")
