r"""A funnel for sites by the dozen: the c-index by the number of events, and limits of chance.

The standard error of a group's c-index, on the scale of logits, falls with its events e like
:math:`k / \sqrt e`; k is the median over the groups. Around everybody's c-index :math:`c_0` the
limits are

.. math:: \mathrm{logit}^{-1}\Big(\mathrm{logit}(c_0) \pm z \, \frac{k}{\sqrt e}\Big) ,

with z = 1.96 for limits that hold 95 % of the groups, and z such that :math:`(2 \Phi(z) - 1)^m =
0.95` for limits that hold all m groups with 95 %.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from drocox.heldout import Estimate
from drocox.heldout.intervals import DIFFER, LEVEL


class Funnel(NamedTuple):
    """The groups of one attribute, and what is needed for the limits."""

    attribute: str
    groups: pd.DataFrame  # group, events, c_index, differs
    centre: float  # everybody's c-index
    spread: float  # standard error of a group with one event, on the scale of logits

    def limits(self, events: np.ndarray, at_once: bool) -> tuple[np.ndarray, np.ndarray]:
        """Where groups lie by chance.

        Parameters
        ----------
        events : array
            Sizes of groups.
        at_once : bool
            Whether all groups are to lie inside, or each.

        Returns
        -------
        low, high : arrays
        """
        inside = LEVEL ** (1 / len(self.groups)) if at_once else LEVEL
        half = special.ndtri((1 + inside) / 2) * self.spread / np.sqrt(events)
        centre = special.logit(self.centre)
        return special.expit(centre - half), special.expit(centre + half)


def funnel(
    attribute: str, table: pd.DataFrame, differences: pd.DataFrame, estimates: dict[str, Estimate]
) -> Funnel:
    """The funnel of an attribute's groups, from an audit and the c-index of each group."""
    rows = table[(table["attribute"] == attribute) & table["c_index"].notna()]
    mine = differences["attribute"].eq(attribute) & differences["measure"].eq("c_index")
    beyond = differences["group"][mine & differences["says"].eq(DIFFER)]
    groups = rows[["group", "events", "c_index"]].assign(differs=rows["group"].isin(beyond))
    of_one_event = np.full(len(rows), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # at the end of the scale
        for k, row in enumerate(rows.itertuples()):
            estimate = estimates[row.group]
            on_scale = estimate._replace(without=special.logit(estimate.without))
            of_one_event[k] = on_scale.error * np.sqrt(row.events)
    known = of_one_event[np.isfinite(of_one_event) & (of_one_event > 0)]
    spread = float(np.median(known)) if len(known) else np.nan
    return Funnel(attribute, groups.reset_index(drop=True), float(table["c_index"].iloc[0]), spread)
