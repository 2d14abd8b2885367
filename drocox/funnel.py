"""Deprecated: the names of this module are in :mod:`drocox.auditing.funnel`."""

from warnings import warn

import drocox.auditing.funnel as _new


def __getattr__(name: str) -> object:
    found = getattr(_new, name)
    if not name.startswith("__"):
        warn(
            f"drocox.funnel.{name} has moved to drocox.auditing.funnel.{name}",
            DeprecationWarning,
            2,
        )
    return found
