"""Invented runs: rows as a sweep stores them, with metrics drawn at random."""

import numpy as np
import pandas as pd

from drocox.paper import store
from drocox.paper.protocol import KEYS, stacks
from drocox.paper.run import columns

METRICS = [name for name in columns() if name not in (*KEYS, "unstable")]


def rows_of(*some):
    """Rows of stacks, for each stack the same on every call."""
    keys, drawn = [], []
    for stack in some:
        draw = np.random.default_rng(list(stack.name.encode()))
        drawn.append(draw.uniform(0.5, 0.9, (len(stack.grid()), len(METRICS))))
        keys += stack.keys()
    values = pd.DataFrame(np.vstack(drawn), columns=METRICS)
    return pd.concat([pd.DataFrame(keys, columns=KEYS), values], axis=1).assign(unstable=0)


def runs(protocol="as_published", **which):
    """Runs of a protocol as they are read back; ``which`` restricts them as in ``stacks``."""
    return store.from_csv(store.to_csv(rows_of(*stacks(protocol, **which))))


def save(out, protocol="as_published", **which):
    """An unfinished store: the parts of a protocol that ``which`` names."""
    unfinished = store.Store(out, protocol)
    for stack in stacks(protocol, **which):
        unfinished.save_part(stack, rows_of(stack), cpu=1.0, peak=0.5, wall=0.5)
