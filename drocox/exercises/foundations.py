"""Exercises of part I: survival data, the Cox loss, curves and metrics."""
