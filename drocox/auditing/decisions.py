"""Decisions at a threshold of the risk: which groups may be shown, and the findings in words.

The measures are estimated by :mod:`drocox.heldout.decisions`.
"""

import numpy as np
import pandas as pd

from drocox.auditing.disclosure import small_counts
from drocox.auditing.findings import digits_for, number_text
from drocox.auditing.groupings import EVERYBODY, Grouping
from drocox.auditing.measures import DECISIONS, MEASURES
from drocox.heldout import HeldOut


def small_cells(patients: HeldOut, groupings: list[Grouping], smallest: int) -> bool:
    """Whether decisions would tell of a small number of patients.

    Shares of flagged patients and their risks tell numbers of flagged and other patients with and
    without an event up to the horizon. All sums and differences of groups are safe if these
    numbers are large enough in each intersection of all attributes.
    """
    codes = np.column_stack([grouping.codes for grouping in groupings])
    cell = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    flagged = np.asarray(patients.risk) >= patients.threshold
    early = patients.event & (patients.time <= patients.until)
    cells = cell.max() + 1
    for part in (flagged, ~flagged):
        everybody = np.bincount(cell[part], minlength=cells)
        events = np.bincount(cell[part], early[part], minlength=cells)
        if small_counts(everybody, events, smallest).any():
            return True
    return False


def decision_sentence(
    table: pd.DataFrame, differences: pd.DataFrame, threshold: float, horizon: float
) -> str:
    """What the threshold does to everybody, and where groups differ beyond noise."""
    everybody = table[table["group"] == EVERYBODY].iloc[0]
    values = []
    for name in DECISIONS[1:]:
        title, digits = MEASURES[name].title, MEASURES[name].digits
        short = title if title.isupper() else title.lower()
        values.append(f"{short} {number_text(everybody[name], digits).replace('nan', 'unknown')}")
    text = (
        f"At a threshold of {threshold:.3g} for the risk up to time {horizon:.4g}, "
        f"{100 * everybody['flagged']:.0f} % of the patients are flagged: {', '.join(values)}."
    )
    rows = differences[differences["measure"].isin(DECISIONS)]
    for attribute in rows["attribute"].unique():
        mine = rows[rows["attribute"] == attribute]
        loud = [_most_striking(mine[mine["measure"] == name]) for name in DECISIONS]
        loud = [words for words in loud if words]
        text += f" By {attribute}, " + ("; ".join(loud) if loud else "none of these differs")
        text += " beyond noise."
    return text


def _most_striking(rows: pd.DataFrame) -> str:
    """The largest difference of a measure that is beyond noise, if there is one."""
    rows = rows[rows["beyond_noise"]]
    if rows.empty:
        return ""
    row = rows.loc[rows["difference"].abs().idxmax()]
    measure = MEASURES[row["measure"]]
    digits = digits_for(row["low"], row["high"], 1 if measure.unit == 100 else measure.digits)
    size, low, high = (number_text(row[name], digits) for name in ("difference", "low", "high"))
    unit = " points" if measure.unit == 100 else ""
    return (
        f"{measure.title} differs ({row['group']} minus {row['versus']}: {size}{unit}, {low} to "
        f"{high})"
    )
