"""numba's ``njit``; where numba does not exist, as in a browser, loops run as they are written."""

from collections.abc import Callable

try:
    from numba import njit
except ModuleNotFoundError:

    def njit(**options) -> Callable:
        """Leave a function as it is: right, and slow."""
        return lambda function: function


__all__ = ["njit"]
