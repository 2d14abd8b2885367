"""numba's ``njit``; where numba does not exist, as in a browser, loops run as they are written.

A loop that would be too slow there has a function of arrays beside it.
"""

from collections.abc import Callable

try:
    from numba import njit

    COMPILES = True
except ModuleNotFoundError:
    COMPILES = False

    def njit(**options) -> Callable:
        """Leave a function as it is: right, and slow."""
        return lambda function: function


def njit_or(instead: Callable) -> Callable:
    """Compile a loop; where that is impossible, take a function of arrays with the same result."""
    return lambda loop: njit(cache=True)(loop) if COMPILES else instead


__all__ = ["njit", "njit_or"]
