"""Explorables: figures of the chapters that readers change with a slider, a choice or a button.

A function here takes the chapter's own figure, which notebooks show and pages without scripts, and
computes the data. On a page of the book a script of ``book/_static/explore`` draws every state from
the data, in place of the figure.
"""

from drocox.explorables.ball import ball_slider
from drocox.explorables.next_death import who_is_next
from drocox.explorables.results import results_browser
from drocox.explorables.survival_steps import kaplan_meier
from drocox.explorables.water import six_losses, water_level
from drocox.explorables.weights import losses_by_alpha, who_gets_the_weight

__all__ = [
    "ball_slider",
    "kaplan_meier",
    "losses_by_alpha",
    "results_browser",
    "six_losses",
    "water_level",
    "who_gets_the_weight",
    "who_is_next",
]
