"""Exercises of part II: the worst case, its dual, DRO-COX and sample splitting."""

from drocox.exercises import training, worst_case  # noqa: F401
