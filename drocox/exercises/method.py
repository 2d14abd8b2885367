"""Exercises of part II: the worst case, its dual, DRO-COX and sample splitting."""
