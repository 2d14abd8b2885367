"""Rows of studies that were superseded and whose code is gone. Nothing else loads them.

**The first study** on many data sets compared linear DRO-COX, α = ½ with the sharp constant
(*gentle DRO-COX*), and nine other linear models with Cox. Its plan is ``plans/preregistration.md``.
Where fewer than half of the patients have an event, DRO-COX at α = ½ is nearly Cox, so that on half
of the data sets it could find nothing. Its code stands in commit 78fbc0f as
``drocox/beyond/many.py``, whose ``rows`` explains the columns; ``provenance.json`` has its origin
under "retired".

**The second study** protects a share of the *events* instead, and compares the published network
with DeepSurv, which differ in the loss, in the rule of choice and in the number of settings at
once. Its plan is ``plans/acting_plan.md``; its code stands in commit 50ce601 as
``drocox/beyond/many_data_sets.py``, and in its rows its name is "acting".
"""

import gzip

import pandas as pd

from drocox import _checks
from drocox.paper.store import DEFAULT, from_csv

FOLDER = DEFAULT / "beyond" / "retired"
NAMES = ("first_study", "first_study_controls", "second_study")


def load(name: str = "first_study") -> pd.DataFrame:
    """Rows of the first study, one for each data set, model and attribute; or of its controls.

    Or of the second study, one for each data set, model, measure and attribute.
    """
    _checks.one_of(name, "retired study", NAMES)
    return from_csv(gzip.decompress((FOLDER / f"{name}.csv.gz").read_bytes()))
