r"""Measures of the user's own: a function of patients and a group, with an interval.

Nothing is known about the function but its values, so its error is that of a jackknife over 100
blocks of patients (or over patients, if there are fewer). With :math:`\hat\vartheta_{(-b)}` the
value without block b of B,

.. math:: \widehat{\mathrm{Var}} = \frac{B - 1}{B} \sum_b \big(\hat\vartheta_{(-b)} -
          \bar\vartheta\big)^2 .

Each patient gets an equal share of the block's deviation, so that differences of groups, and of
models, have errors as all measures have. Blocks are dealt at random, but to patients in the order
of their times, whatever the order of the rows.
"""

from collections.abc import Callable, Mapping
from numbers import Real

import numpy as np

from drocox.auditing.measures import MEASURES
from drocox.heldout import Estimate, HeldOut

BLOCKS = 100
COLUMNS = ("attribute", "group", "patients", "events", "model", "versus", "measure")


class OwnMeasure:
    """A function of all patients and a group's mask that returns a number, with its error."""

    def __init__(self, name: str, function: Callable[[HeldOut, np.ndarray], float]):
        self.name = name
        self.function = function

    def __call__(self, patients: HeldOut, members: np.ndarray) -> Estimate:
        """The value and what stands for its leave-one-out values."""
        n = len(members)
        blocks = min(n, BLOCKS)
        order = np.lexsort((patients.scores, patients.event, patients.time))
        block = np.empty(n, int)
        block[order] = np.random.default_rng(0).permutation(n) % blocks
        value = self._value(patients, members)
        without = np.empty(blocks)
        for k in range(blocks):
            left = block != k
            without[k] = self._value(patients.subset(left), members[left])
        share = np.sqrt((blocks - 1) / (n - 1))
        return Estimate(value, value + share * (without - value)[block])

    def _value(self, patients: HeldOut, members: np.ndarray) -> float:
        try:
            value = self.function(patients, members)
        except Exception as error:
            raise ValueError(
                f"measures: {self.name!r} fails for a group of {members.sum()} patients, "
                f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(value, Real | np.number) or isinstance(value, complex):
            raise TypeError(
                f"measures: {self.name!r} returns {type(value).__name__}; return one number, or "
                "NaN where it does not exist"
            )
        return float(value)


def own_measures(measures: Mapping[str, Callable] | None) -> dict[str, OwnMeasure]:
    """Check the functions and their names."""
    if measures is None:
        return {}
    if not isinstance(measures, Mapping) or not all(map(callable, measures.values())):
        raise TypeError(
            "measures must map names to functions of patients and members, such as "
            'measures={"share over 1": lambda patients, members: (patients.scores[members] > '
            "1).mean()}"
        )
    taken = set(COLUMNS)
    for name in [*MEASURES, *measures]:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"measures: {name!r} is no name; use a word or two")
        columns = {name, f"{name}_low", f"{name}_high"}
        if taken & columns:
            raise ValueError(f"measures: the name {name!r} is taken; choose another one")
        taken |= columns
    return {name: OwnMeasure(name, function) for name, function in measures.items()}
