"""Exercises of part I: survival data, the Cox loss, curves and metrics."""

from drocox.exercises import metrics, survival  # noqa: F401
