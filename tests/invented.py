"""Invented runs: rows as a sweep stores them, with metrics drawn at random."""

import numpy as np
import pandas as pd

from drocox.paper import store
from drocox.paper.protocol import KEYS, stacks
from drocox.paper.run import columns


def rows_of(stack):
    """Rows of a stack, the same on every call."""
    settings = [setting._asdict() for setting in stack.grid()]
    keys = [[one.get(k, getattr(stack, k, None)) for k in KEYS] for one in settings]
    metrics = [c for c in columns() if c not in (*KEYS, "unstable")]
    draw = np.random.default_rng(list(stack.name.encode()))
    values = pd.DataFrame(draw.uniform(0.5, 0.9, (len(keys), len(metrics))), columns=metrics)
    return pd.concat([pd.DataFrame(keys, columns=KEYS), values], axis=1).assign(unstable=0)


def runs(protocol="as_published", **which):
    """Runs of a protocol as they are read back; ``which`` restricts them as in ``stacks``."""
    made = [store.to_csv(rows_of(stack)) for stack in stacks(protocol, **which)]
    header = made[0].partition(b"\n")[0] + b"\n"
    return store.from_csv(header + b"".join(part.removeprefix(header) for part in made))


def save(out, protocol="as_published", **which):
    """An unfinished store: the parts of a protocol that ``which`` names."""
    unfinished = store.Store(out, protocol)
    for stack in stacks(protocol, **which):
        unfinished.save_part(stack, rows_of(stack), cpu=1.0, peak=0.5, wall=0.5)
