"""What the chapter on the Cox loss draws and tells: who is next, ties, and who has a large loss."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

import drocox
from drocox.bookstyle import guard, say
from drocox.paper.prepare import prepare
from drocox.training import cox_objective, fit_stack, initial_parameters

DATASETS = ["flc", "support", "seer"]
DAYS_PER_YEAR = 365.25


def chances(scores: np.ndarray, time: np.ndarray, i: int) -> pd.Series:
    r"""Probability of each patient at risk to be the one who has the event of patient i.

    It is the softmax :math:`e^{f_k} / \sum_{j \in R_i} e^{f_j}` over the risk set.

    Parameters
    ----------
    scores, time : arrays of shape (n,)
    i : int
        A patient with an event.

    Returns
    -------
    Series
        Indexed by the patients at risk.
    """
    at_risk = np.flatnonzero(time >= time[i])
    hazards = np.exp(scores[at_risk])
    return pd.Series(hazards / hazards.sum(), index=at_risk)


def draw_next(
    scores: np.ndarray, time: np.ndarray, event: np.ndarray, losses: np.ndarray, names: pd.Index
) -> Figure:
    """A panel for each event: who might have had it, with what probability, and who had it.

    Parameters
    ----------
    scores, time, event, losses : arrays of shape (n,)
        Of patients of whom four have an event.
    names : Index
        What they are called.

    Returns
    -------
    Figure
    """
    figure, panels = plt.subplots(
        2, 2, figsize=(6.4, 4.4), sharey=True, sharex=True, layout="constrained"
    )
    for axes, i in zip(panels.flat, np.flatnonzero(event), strict=True):
        chance = chances(scores, time, i)
        guard(
            np.isclose(-np.log(chance[i]), losses[i]),
            "minus the logarithm of the solid bar is the loss",
        )
        axes.bar(chance.index, chance, color="none", edgecolor="C0")
        axes.bar(i, chance[i], color="C1", edgecolor="C1")
        axes.set_title(f"month {time[i]:.0f}, loss {losses[i]:.2f}", fontsize=11)
        axes.set(xticks=range(len(names)), xticklabels=names, xlim=(-0.6, len(names) - 0.4))
    figure.supylabel("probability to have the event", fontsize=11)
    figure.supxlabel("patient", fontsize=11)
    return figure


def tied_share(time: np.ndarray) -> float:
    """Share of patients whose time is also another patient's.

    Parameters
    ----------
    time : array of shape (n,)

    Returns
    -------
    float
    """
    count = pd.Series(time).value_counts()
    return count[count > 1].sum() / len(time)


def losses_by_convention(scores: torch.Tensor, time: np.ndarray, event: np.ndarray) -> dict:
    """Losses by each convention for ties; "by order" also with the rows of the file reversed.

    Parameters
    ----------
    scores : tensor of shape (n,)
    time, event : arrays of shape (n,)

    Returns
    -------
    dict of str to tensor of shape (n,)
        Breslow, Efron, by order, and by order with the rows reversed.
    """
    losses = {
        ties: drocox.cox_losses(scores, time, event, ties=ties)
        for ties in ("breslow", "efron", "order")
    }
    back = np.arange(len(time))[::-1].copy()
    reverse = drocox.cox_losses(scores[back], time[back], event[back], ties="order")
    losses["rows reversed"] = reverse[back]
    return losses


def ties_table() -> pd.DataFrame:
    """How many patients are tied, and the loss per event of a linear fit by each convention.

    Returns
    -------
    DataFrame
        A row for each data set; the last column is the largest change of one patient's loss when
        ties go by order and the rows are reversed.
    """
    rows = {}
    for name in DATASETS:
        part = prepare("corrected", name, 1)
        X = part.X[0]
        event = part.train.event
        start = initial_parameters(X.shape[1], None, seed=1)
        model = fit_stack(X, cox_objective(part.risk, ties="efron"), start, [0.05], n_iter=200)
        scores = torch.tensor(model.scores(X)[0])
        losses = losses_by_convention(scores, part.train.time, event)
        share = tied_share(drocox.load_dataset(name).time)
        moved = (losses["order"] - losses["rows reversed"]).abs().max()
        per_event = {way: f"{loss.sum() / event.sum():.3f}" for way, loss in losses.items()}
        rows[name] = {"tied": f"{share:.0%}", **per_event, "largest move": f"{moved:.3f}"}
    table = pd.DataFrame(rows).T
    guard(list(table["tied"]) == ["81%", "96%", "100%"], "most patients are tied")
    return table


def draw_losses_by_time(
    time: np.ndarray, event: np.ndarray, old: np.ndarray, losses: np.ndarray, blank: np.ndarray
) -> Figure:
    r"""Losses of those who died against time, by age, with :math:`\log |R_i|` as a line.

    Parameters
    ----------
    time, event : arrays of shape (n,)
        Time in days.
    old : bool array of shape (n,)
        Who is over 65.
    losses, blank : arrays of shape (n,)
        Losses of the model, and of scores that are all 0.

    Returns
    -------
    Figure
    """
    years = time / DAYS_PER_YEAR
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    for who, style, label in ((old, "o", "over 65"), (~old, "^", "65 or younger")):
        died = event & who
        rounded = np.round(losses[died], 3)
        axes.plot(years[died], rounded, style, markersize=3, alpha=0.5, label=label)
    in_order = np.flatnonzero(event)[np.argsort(time[event])]
    axes.plot(years[in_order], blank[in_order], color="black", linewidth=1.5, label="$\\log |R_i|$")
    axes.set(xlabel="years until death", ylabel="loss")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, markerscale=2)
    return figure


def tell_losses_by_age(
    event: np.ndarray, old: np.ndarray, losses: np.ndarray, blank: np.ndarray
) -> None:
    """Mean losses of both age groups, over those who died and over all.

    Parameters
    ----------
    event, old : bool arrays of shape (n,)
    losses, blank : arrays of shape (n,)
        Losses of the model, and of scores that are all 0.
    """
    dead_old = losses[event & old].mean()
    dead_young = losses[event & ~old].mean()
    all_old = losses[old].mean()
    all_young = losses[~old].mean()
    guard(
        dead_young > blank[event].mean() > dead_old,
        "young people who die have a large loss, because nobody expected it",
    )
    guard(all_old > all_young, "averaged over all members of a group it is the reverse")
    say("cox-dead-old", f"{dead_old:.2f}")
    say("cox-dead-young", f"{dead_young:.2f}")
    say("cox-all-old", f"{all_old:.2f}")
    say("cox-all-young", f"{all_young:.2f}")
    say("cox-died-old", f"{event[old].mean():.0%}")
    say("cox-died-young", f"{event[~old].mean():.0%}")
