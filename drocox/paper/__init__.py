"""The reproduction of Hu & Chen (2022): data, protocol, runs, tables, figure and claims.

Data flows one way through the modules: ``datasets`` and ``protocol`` describe, ``prepare`` splits
and scales, ``run`` trains and judges one stack of models, ``sweep`` does so for all of them into a
``store``, with the ``provenance`` of its rows; ``selection``, ``tables``, ``figures`` and
``claims`` read the stored rows, called *runs*; claims that need none are ``checked``. The library
never imports this package. The studies of :mod:`drocox.beyond` build on it and are kept like its
runs; here they are known by name only.
"""

from importlib import import_module
from types import ModuleType

# studies beyond the paper, with the modules that decide their numbers beside their own
STUDIES = {
    "protection": ("paper.prepare",),
    "groups": ("heldout", "slices", "intervals", "beyond.described"),
}
STUDIES["rivals"] = (*STUDIES["groups"], *STUDIES["protection"], "beyond.protection", "training")


class StoreError(RuntimeError):
    """A store is incomplete, damaged, or made by other code; the message says what to do."""


def home(protocol: str) -> ModuleType:
    """Module that lists and runs the stacks of a protocol, or the jobs of the studies beyond.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic", "beyond"}

    Returns
    -------
    module
        With ``stacks``, ``run_stack``, ``cost`` and ``_drawn``.
    """
    return import_module("drocox.beyond.run" if protocol == "beyond" else "drocox.paper.sweep")
