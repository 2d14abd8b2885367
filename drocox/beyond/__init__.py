"""The third floor: experiments beyond the paper, on its data and on invented patients.

It uses the library and the reproduction; neither uses it, except that the sweep, the store and the
command line know its runs by the name ``beyond``. Each study is a module, see
:mod:`drocox.beyond.run`.
"""

from importlib import import_module
from types import ModuleType

# by name, with the modules that decide its numbers beside its own and those of all studies
STUDIES = {
    "protection": (),
    "groups": ("report", "beyond.described"),
    "rivals": ("report", "beyond.described", "beyond.protection"),
}


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
