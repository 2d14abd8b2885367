"""Exercises of part I: survival data, the Cox loss, curves and metrics."""

from drocox.exercises import survival  # noqa: F401
