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

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.beyond import STUDIES
from drocox.paper import provenance


@dataclass(frozen=True)
class Job:
    """One job of a study: what a stack is to a protocol of the paper.

    Its fields are the first columns of its rows.
    """

    study: str
    job: str  # the values of its dictionary, in one word
    dataset: str | None = None  # None: invented patients

    @property
    def protocol(self) -> str:
        """Name of the store."""
        return "beyond"

    @property
    def model(self) -> str:
        """Kind of score function: the studies that are compared are of linear ones."""
        return "linear"

    @property
    def code(self) -> str:
        """Whose code decides its rows: that of its study."""
        return self.study

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
    name : {"protection", "groups", "censoring", "rivals", "many", "controls"}

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
        Restrict the jobs to some data sets, studies and repeats. An unknown study is refused.

    Returns
    -------
    iterator of Job
    """
    studies = STUDIES if methods is None else methods
    for name in studies:
        _checks.one_of(name, f"method of {protocol}", STUDIES)
        for job, setting in _settings(name).items():
            of_dataset = datasets is None or setting.get("dataset") in datasets
            of_repeat = repeats is None or setting.get("repeat") in repeats
            if of_dataset and of_repeat:
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


def drawn(runs: pd.DataFrame, protocol: str) -> list[Job]:
    """Stored jobs with rows to compare, in an order that follows from the code's hash.

    Parameters
    ----------
    runs : DataFrame
        Stored rows.
    protocol : {"beyond"}

    Returns
    -------
    list of Job
    """
    stable = runs[runs["moved"].notna()]
    names = set(zip(stable["study"], stable["job"], strict=True))
    pool = [job for job in stacks(protocol) if (job.study, job.job) in names]
    draw = np.random.default_rng(int(provenance.code_hash(protocol), 16)).permutation(len(pool))
    return [pool[i] for i in draw]
