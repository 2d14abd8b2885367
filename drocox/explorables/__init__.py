"""Explorables: pictures of the chapters that readers change with a slider, a choice or a button.

Python computes the data and draws the first state, which shows without scripts, on paper and in a
notebook. In the page a small script of ``book/_static/explore`` computes and draws every other
state by the same formulas; tests set the inputs and compare what is drawn with what Python draws.
"""

from drocox.explorables.cox_loss import who_is_next
from drocox.explorables.dual import six_losses, water_level
from drocox.explorables.results import Gathered, results_browser
from drocox.explorables.survival_steps import kaplan_meier
from drocox.explorables.weights import losses_by_alpha, who_gets_the_weight

__all__ = [
    "Gathered",
    "kaplan_meier",
    "losses_by_alpha",
    "results_browser",
    "six_losses",
    "water_level",
    "who_gets_the_weight",
    "who_is_next",
]
