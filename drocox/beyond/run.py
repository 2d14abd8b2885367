"""Studies as lists of independent jobs, which a sweep runs and stores keep.

A study is a module of this folder with two functions: ``jobs()`` lists small dictionaries, with the
``dataset`` among the keys unless patients are simulated, and ``rows(**job)`` runs one of them and
returns a frame of numbers and strings. The frame may have a column ``moved``, as in
:mod:`drocox.paper.run`; a missing value means that the last digits depend on the platform. A study
with ``again(**job)``, ``part(rows)`` and ``means(stored, rows)`` is verified in part, see
:class:`drocox.paper.sweep.Plan`.

``drocox sweep --protocol beyond`` runs all studies, with ``--method`` some of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from drocox import _checks
from drocox.beyond import STUDIES
from drocox.beyond.rival_methods import RIVALS
from drocox.paper.store import DEFAULT, Store
from drocox.paper.sweep import Plan, train_missing, writable

# Jobs to train again in order to verify a study: the cheapest that have all its methods.
SAMPLE = {
    "protection": ["seer-1"],
    "groups": ["opposite-0.2-1000-1.0-1", "opposite-0.2-4000-3.0-1", "seer-1"],
    "censoring": ["opposite-1.0-1"],
    "rivals": [f"seer-{method}" for method in RIVALS],
    "many_data_sets": [f"{name}-{split}" for name in ("follic", "cancer") for split in range(5)],
}


@dataclass(frozen=True)
class StudyJob:
    """One job of a study, as a stack is one of a protocol of the paper.

    Its fields are the first columns of its rows.
    """

    study: str
    job: str  # the values of its dictionary, in one word
    dataset: str | None = None  # None: invented patients

    @property
    def name(self) -> str:
        """A file name."""
        return self.job

    @property
    def method(self) -> str:
        """The study, by which costs are summed."""
        return self.study

    def keys(self) -> list[dict]:
        """The key of the rows: one dictionary for all of them."""
        return [{"study": self.study, "job": self.job}]


def module_of(name: str) -> ModuleType:
    """The module of a study."""
    return import_module(f"drocox.beyond.{name}")


@cache
def _settings(name: str) -> dict[str, dict]:
    """The jobs of a study by name."""
    return {"-".join(map(str, job.values())): job for job in module_of(name).jobs()}


def jobs_of(
    name: str, datasets: Sequence[str] | None = None, repeats: Sequence[int] | None = None
) -> list[StudyJob]:
    """The jobs of a study, or those on some data sets and repeats."""
    return [
        StudyJob(name, job, setting.get("dataset"))
        for job, setting in _settings(name).items()
        if datasets is None or setting.get("dataset") in datasets
        if repeats is None or setting.get("repeat") in repeats
    ]


def run_job(job: StudyJob) -> pd.DataFrame:
    """Run one job: the rows of the study, with the fields of the job as first columns."""
    return _framed(job, module_of(job.study).rows)


def run_again(job: StudyJob) -> pd.DataFrame:
    """Run that part of a job by which its study is verified."""
    return _framed(job, module_of(job.study).again)


def _framed(job: StudyJob, run: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    rows = run(**_settings(job.study)[job.job])
    for key, value in reversed(vars(job).items()):
        if key not in rows:
            rows.insert(0, key, value)
    return (rows if "moved" in rows else rows.assign(moved=0.0)).dropna(axis=1, how="all")


def plan(name: str, out: Path | str | None = None) -> Plan:
    """The jobs of a study, and its store in the folder ``out`` (by default the book's)."""
    _checks.one_of(name, "method of beyond", STUDIES)
    jobs = jobs_of(name)
    sample = [job for job in jobs if job.job in SAMPLE[name]]
    module = module_of(name)
    partly = {}
    if hasattr(module, "again"):
        partly = {"again": run_again, "part": module.part, "means": module.means}
    return Plan(Store(Path(out or DEFAULT), f"beyond/{name}"), jobs, run_job, sample, **partly)


def sweep(
    *,
    jobs: int = -1,
    out: Path | str | None = None,
    progress: bool = True,
    dry_run: bool = False,
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    repeats: Sequence[int] | None = None,
) -> int:
    """Run the jobs of studies that the stores lack, and return how many.

    ``methods`` are names of studies, by default all; ``datasets`` and ``repeats`` restrict the
    jobs; the other arguments are those of :func:`drocox.paper.sweep.sweep`.
    """
    studies = STUDIES if methods is None else methods
    for name in studies:
        _checks.one_of(name, "method of beyond", STUDIES)
    wanted = {name: jobs_of(name, datasets, repeats) for name in studies}
    if not any(wanted.values()):
        raise ValueError("beyond has none of these datasets, methods and repeats together")
    folder = writable(out)
    how: dict[str, Any] = {"jobs": jobs, "progress": progress, "dry_run": dry_run}
    return sum(
        train_missing(plan(name, folder), some, **how) for name, some in wanted.items() if some
    )
