"""Signed gaps by the names that views had before; see :mod:`drocox.paper.comparisons`."""

from pathlib import Path

import pandas as pd

from drocox.paper import comparisons
from drocox.paper.claims import _methods, reading
from drocox.paper.comparisons import (  # noqa: F401
    CLOSER,
    FARTHER,
    MOVED,
    UNDECIDED,
    WORDS,
    Simulated,
    compare,
    power,
    times_the_patients,
    verdict_words,
)


def gaps(view: str, out: Path | None = None, **how) -> pd.DataFrame:
    """:func:`drocox.paper.comparisons.gaps` by the name of a view."""
    how |= {name: _methods(how[name]) for name in ("ours", "theirs") if name in how}
    return comparisons.gaps(*reading(view), out=out, **how)
