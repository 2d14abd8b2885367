"""Figures of held-out patients by group, with jackknife errors.

What tuning, auditing and the studies stand on.
"""

from drocox.heldout.estimates import (
    DIFFERENCE_COLUMNS,
    FEWEST_EVENTS,
    SCALES,
    Estimate,
    HeldOut,
    assign_folds,
    breslow_steps,
    compare,
    default_horizon,
    expected_events,
)

__all__ = [
    "DIFFERENCE_COLUMNS",
    "FEWEST_EVENTS",
    "SCALES",
    "Estimate",
    "HeldOut",
    "assign_folds",
    "breslow_steps",
    "compare",
    "default_horizon",
    "expected_events",
]
