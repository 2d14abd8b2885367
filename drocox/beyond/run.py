"""Studies as lists of independent jobs, which the sweep runs and the store keeps.

A study is a module of this folder with two functions: ``jobs()`` lists small dictionaries, the
``dataset`` among them unless patients are invented, and ``rows(**job)`` does one of them and
returns a frame of numbers and strings. A frame may say of its rows how far they ``moved``, as in
:mod:`drocox.paper.run`: what is not known to be stable is not compared when the store is verified.

``drocox sweep --protocol beyond`` runs all studies, with ``--method`` some of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import ClassVar

import numpy as np
import pandas as pd

from drocox.paper import STUDIES, provenance


@dataclass(frozen=True)
class Job:
    """One job of a study: what a stack is to a protocol of the paper.

    Its fields are the first columns of its rows.
    """

    study: str
    job: str  # the values of its dictionary, in one word
    dataset: str | None = None  # None: invented patients
    protocol: ClassVar[str] = "beyond"
    model: ClassVar[str] = "linear"

    @property
    def name(self) -> str:
        """A file name."""
        return f"{self.study}_{self.job}"

    @property
    def method(self) -> str:
        """What costs are summed by."""
        return self.study

    def keys(self) -> list[dict]:
        """What identifies the rows.

        Returns
        -------
        list of dict
            One for all of them.
        """
        return [{"study": self.study, "job": self.job}]


def study(name: str) -> ModuleType:
    """Module of a study.

    Parameters
    ----------
    name : {"protection", "groups", "rivals"}

    Returns
    -------
    module
    """
    return import_module(f"drocox.beyond.{name}")


@cache
def _settings(name: str) -> dict[str, dict]:
    """The jobs of a study by name."""
    return {"-".join(map(str, job.values())): job for job in study(name).jobs()}


def stacks(protocol: str, datasets=None, methods=None, repeats=None) -> Iterator[Job]:
    """The jobs of all studies.

    Parameters
    ----------
    protocol : {"beyond"}
    datasets, methods, repeats : sequences, optional
        Restrict the jobs to some data sets, studies and repeats.

    Returns
    -------
    iterator of Job
    """
    wanted = {"dataset": datasets, "repeat": repeats}
    for name in methods or STUDIES:
        for job, setting in _settings(name).items() if name in STUDIES else ():
            if all(some is None or setting.get(key) in some for key, some in wanted.items()):
                yield Job(name, job, setting.get("dataset"))


def run_stack(job: Job) -> pd.DataFrame:
    """Do one job.

    Parameters
    ----------
    job : Job

    Returns
    -------
    DataFrame
        The rows of the study, with the fields of the job before them.
    """
    rows = study(job.study).rows(**_settings(job.study)[job.job])
    for key, value in reversed(vars(job).items()):
        if key not in rows:
            rows.insert(0, key, value)
    return (rows if "moved" in rows else rows.assign(moved=0.0)).dropna(axis=1, how="all")


def cost(job: Job) -> float:
    """Rough cost of a job, for the time left.

    Parameters
    ----------
    job : Job

    Returns
    -------
    float
        The same for all.
    """
    return 1.0


def _drawn(runs: pd.DataFrame, protocol: str) -> list[Job]:
    """Stored jobs with rows to compare, in an order that follows from the code's hash."""
    stable = runs[runs["moved"].notna()]
    names = set(zip(stable["study"], stable["job"], strict=True))
    pool = [job for job in stacks(protocol) if (job.study, job.job) in names]
    draw = np.random.default_rng(int(provenance.code_hash(protocol), 16)).permutation(len(pool))
    return [pool[i] for i in draw]
