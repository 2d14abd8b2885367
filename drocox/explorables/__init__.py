"""Explorables: pictures of the chapters that readers change with a slider, a choice or a button.

Python computes the data and draws one plain figure, which shows on paper, in notebooks and wherever
no script runs. On a page of the book a script of ``book/_static/explore`` puts the explorable in
its place and draws every state from the data.
"""

from drocox.explorables.ball import ball_slider
from drocox.explorables.cox_loss import who_is_next
from drocox.explorables.dual import six_losses, water_level
from drocox.explorables.results import Gathered, results_browser
from drocox.explorables.survival_steps import kaplan_meier
from drocox.explorables.weights import losses_by_alpha, who_gets_the_weight

__all__ = [
    "Gathered",
    "ball_slider",
    "kaplan_meier",
    "losses_by_alpha",
    "results_browser",
    "six_losses",
    "water_level",
    "who_gets_the_weight",
    "who_is_next",
]
