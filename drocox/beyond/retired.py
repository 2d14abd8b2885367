"""Rows of studies that were superseded and whose code is gone. Nothing else loads them.

**The first study** on many data sets compared linear DRO-COX, α = ½ with the sharp constant
(*gentle DRO-COX*), and nine other linear models with Cox. Its plan is ``plans/preregistration.md``.
Where fewer than half of the patients have an event, DRO-COX at α = ½ is nearly Cox, so that on half
of the data sets it could find nothing; the study of :mod:`drocox.beyond.many_data_sets` protects a
share of the *events* instead. Its code stands in commit 78fbc0f as ``drocox/beyond/many.py``, whose
``rows`` explains the columns; ``provenance.json`` has its origin under "retired".
"""

import gzip

import pandas as pd

from drocox import _checks
from drocox.paper.store import DEFAULT, from_csv

FOLDER = DEFAULT / "beyond" / "retired"
NAMES = ("first_study", "first_study_controls")


def load(name: str = "first_study") -> pd.DataFrame:
    """Rows of the first study, one for each data set, model and attribute; or of its controls."""
    _checks.one_of(name, "retired study", NAMES)
    return from_csv(gzip.decompress((FOLDER / f"{name}.csv.gz").read_bytes()))
