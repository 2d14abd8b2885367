"""Linear Cox and DRO-COX models to a certified optimum: :func:`minimise`."""

from drocox.solver.newton import Solution, minimise

__all__ = ["Solution", "minimise"]
