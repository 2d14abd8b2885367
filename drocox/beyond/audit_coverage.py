"""How often the audit's intervals hold the truth in simulated data sets, stored as a table.

``tests/benchmarks/audit_coverage.py`` explains the designs, simulates them and writes the table.
"""

import pandas as pd

from drocox.paper.store import DEFAULT

FILE = DEFAULT / "beyond" / "coverage.csv"


def load() -> pd.DataFrame:
    """A row for each design and figure, with the share of simulated data sets that show it.

    ``groups``, ``censored`` (a share), ``kind`` and ``patients`` describe a design, ``sets`` is its
    number of data sets. A ``figure`` named after a measure is the share of intervals that hold the
    truth; with ", differences", that of data sets in which all differences of an attribute do.
    """
    return pd.read_csv(FILE)
