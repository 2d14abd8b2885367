"""Estimates by group on held-out patients, with jackknife standard errors.

Tuning, auditing and the studies of :mod:`drocox.beyond` use them.
"""

from drocox.heldout.estimates import (
    DIFFERENCE_COLUMNS,
    FEWEST_EVENTS,
    Estimate,
    HeldOut,
    assign_folds,
    breslow_steps,
    compare,
    default_horizon,
    difference,
    expected_events,
)

__all__ = [
    "DIFFERENCE_COLUMNS",
    "FEWEST_EVENTS",
    "Estimate",
    "HeldOut",
    "assign_folds",
    "breslow_steps",
    "compare",
    "default_horizon",
    "difference",
    "expected_events",
]
