"""Linear Cox and DRO-COX models to a certified optimum: :func:`minimise`."""

from drocox.solver.newton import Solution, minimise, ridge_path

__all__ = ["Solution", "minimise", "ridge_path"]
