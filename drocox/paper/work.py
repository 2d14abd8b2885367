"""The work behind a store: its units, and who lists and runs them.

A *unit* is what one worker does at a time and one file of an unfinished store keeps: a stack of
models of the paper, or a job of a study. Every store is registered here under the name of its
protocol. A package that builds on this one registers its own store, so the sweep, the store and the
command line serve it without importing it.
"""

from importlib import import_module
from types import ModuleType
from typing import NamedTuple, Protocol, runtime_checkable


class StoreError(RuntimeError):
    """A store is incomplete, damaged, or made by other code; the message says what to do."""


@runtime_checkable
class Unit(Protocol):
    """What the sweep and the store need to know of a unit of work."""

    protocol: str
    dataset: str | None  # None: invented patients
    method: str  # what costs are summed by
    model: str  # "linear" or "nonlinear"
    name: str  # of its file
    code: str  # whose code decides its rows, a key of Work.begins

    def keys(self) -> list[dict]:
        """What identifies its rows.

        Returns
        -------
        list of dict
        """


class Work(NamedTuple):
    """Who lists and runs the units of a store, and where the code that decides its rows begins."""

    module: str  # with functions ``stacks``, ``run_stack``, ``cost`` and ``drawn``
    methods: tuple[str, ...]  # what a sweep can be restricted to
    begins: dict[str, str]  # module in which the computing of rows begins, by Unit.code
    uniform: bool = True  # whether units share all columns and have one row for each of their keys


WORK: dict[str, Work] = {}


def register(protocol: str, work: Work) -> None:
    """Make a store known.

    Parameters
    ----------
    protocol : str
        Name of the store.
    work : Work
    """
    WORK[protocol] = work


def runner_of(protocol: str) -> ModuleType:
    """Module that lists and runs the units of a store.

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic", "beyond"}

    Returns
    -------
    module
        With ``stacks(protocol, datasets=None, methods=None, repeats=None)``, ``run_stack(unit)``,
        ``cost(unit)`` and ``drawn(runs, protocol)``.
    """
    return import_module(WORK[protocol].module)
