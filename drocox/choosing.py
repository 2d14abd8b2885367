"""Deprecated: the names of this module are in :mod:`drocox.tuning`."""

from warnings import warn

import drocox.tuning as _new


def __getattr__(name: str) -> object:
    found = getattr(_new, name)
    if not name.startswith("__"):
        warn(f"drocox.choosing.{name} has moved to drocox.tuning.{name}", DeprecationWarning, 2)
    return found
