"""The stacks of the paper as units of work: what they cost, and which of them to recompute."""

import numpy as np
import pandas as pd

from drocox.paper import provenance, store
from drocox.paper.protocol import METHODS, Stack, stacks
from drocox.paper.run import TWICE, run_stack

__all__ = ["cost", "drawn", "run_stack", "stacks"]

PATIENTS = {"flc": 5.0, "support": 5.8, "seer": 2.6}  # in a training part, in thousands


def cost(stack: Stack) -> float:
    """Rough cost of a stack, for the order of work and the time left.

    Parameters
    ----------
    stack : Stack

    Returns
    -------
    float
        In no particular unit.
    """
    method = METHODS[stack.method]
    n = PATIENTS[stack.dataset]
    deep = method.model == "nonlinear"
    pairs = n * (2.0 if deep else 0.5) if method.penalty == "keya_i" else 0.0
    step = n * (1 + 2 * deep + (method.loss == "split") + pairs)
    return len(stack.grid()) * step * (2 if stack.repeat in TWICE else 1)


def drawn(runs: pd.DataFrame, protocol: str) -> list[Stack]:
    """Stored stacks whose stability is measured, in the order in which to recompute them.

    They are linear and cheap, in an order that follows from the hash of the code. Of a store
    without linear models they are networks, the cheapest first.

    Parameters
    ----------
    runs : DataFrame
        Stored runs.
    protocol : {"as_published", "corrected", "forensic"}

    Returns
    -------
    list of Stack
    """
    pool = [s for s in stacks(protocol, repeats=TWICE) if len(store.rows_of(runs, s))]
    linear = [s for s in pool if s.model == "linear" and METHODS[s.method].penalty != "keya_i"]
    pool = linear or pool
    draw = np.random.default_rng(int(provenance.code_hash(protocol), 16)).permutation(len(pool))
    in_order = [pool[i] for i in draw]
    return in_order if linear else sorted(in_order, key=cost)
