"""Deprecated: the names of this module are in :mod:`drocox.auditing.audit`."""

from warnings import warn

import drocox.auditing.audit as _new


def __getattr__(name: str) -> object:
    found = getattr(_new, name)
    if not name.startswith("__"):
        warn(
            f"drocox.report.{name} has moved to drocox.auditing.audit.{name}", DeprecationWarning, 2
        )
    return found
