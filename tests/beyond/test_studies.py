"""Studies beyond the paper: sweeping, resuming, verifying."""

from dataclasses import replace

import pandas as pd
import pytest

from drocox.beyond import STUDIES, protection, retired, rival_methods, rivals, run
from drocox.paper import store
from drocox.paper.sweep import missing, verify_plan

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package

STORED = [name for name in STUDIES if run.plan(name).store.is_finished()]  # those that have run


class Study:
    """Four jobs, one without a data set."""

    def __init__(self):
        self.done = []

    def jobs(self):
        return [{"dataset": "seer", "repeat": r} for r in (1, 2, 3)] + [{"design": "invented"}]

    def rows(self, **job):
        self.done.append(job)
        return pd.DataFrame({"value": [1 / 3, float(job.get("repeat", 0))], "word": "a"})


@pytest.fixture
def tiny(monkeypatch):
    studies = {name: Study() for name in STUDIES}
    monkeypatch.setattr(run, "module_of", studies.__getitem__)
    run._settings.cache_clear()
    yield studies
    run._settings.cache_clear()


def test_studies_are_swept_resumed_and_verified(tiny, tmp_path, monkeypatch):
    how = {"jobs": 1, "out": tmp_path, "progress": False}
    assert run.sweep(methods=["rivals"], repeats=[2], **how) == 1
    assert tiny["rivals"].done == [{"dataset": "seer", "repeat": 2}] and not tiny["groups"].done
    assert len(store.load_runs("beyond", out=tmp_path)) == 2
    assert run.sweep(**how) == 4 * len(STUDIES) - 1
    assert len(tiny["rivals"].done) == 4
    runs = store.load_runs("beyond", out=tmp_path)
    assert len(runs) == 8 * len(STUDIES) and list(runs["study"].unique()) == list(STUDIES)
    assert runs["dataset"].isna().sum() == 2 * len(STUDIES)
    record = store.load_provenance(tmp_path)["beyond"]
    assert set(record["core_minutes"]) == set(STUDIES) and record["rows"] == len(runs)
    monkeypatch.setattr(run, "SAMPLE", {name: ["seer-2"] for name in STUDIES})
    assert not any(verify_plan(run.plan(name, tmp_path), jobs=1).problems for name in STUDIES)
    tiny["rivals"].rows = lambda **job: pd.DataFrame({"value": [0.3, 1.0], "word": "a"})
    (problem, *_) = verify_plan(run.plan("rivals", tmp_path), jobs=1).problems
    assert problem.startswith("seer-2: value")


def test_jobs_have_unique_names():
    for name in STUDIES:
        jobs = run.jobs_of(name)
        assert len({job.name for job in jobs}) == len(jobs)
    assert [job.job for job in run.jobs_of("protection", ["seer"], [1])] == ["seer-1"]
    assert len(protection.jobs()) == 30
    assert len(rivals.jobs()) == 3 * len(rival_methods.RIVALS) - 2  # ages of FLC are in years


@pytest.mark.parametrize("name", STORED)
def test_every_store_is_whole_and_its_sample_has_all_methods(name):
    whole = run.plan(name)
    stored = whole.store.read()
    assert missing(whole.jobs, stored) == []
    by = next(one for one in ("method", "model", "kind") if one in stored)
    sample = stored["job"].isin([job.job for job in whole.sample])
    assert set(stored.loc[sample, by]) == set(stored[by])


def test_a_retired_study_is_whole_and_apart_from_the_others():
    record = store.load_provenance()["beyond"]
    for name in retired.NAMES:
        facts = record["retired"][f"beyond/retired/{name}"]
        rows = retired.load(name)
        assert store.sha256(store.to_csv(rows)) == facts["sha256"] and len(rows) == facts["rows"]
    assert list(record["stored"]) == [f"beyond/{name}" for name in STORED]
    with pytest.raises(ValueError, match="retired study"):
        retired.load("many")


def test_ridge_cox_trained_again_gives_the_stored_rows():
    """`drocox verify` trains the other rivals again."""
    whole = run.plan("rivals")
    ridge = [job for job in whole.sample if job.job == "seer-ridge Cox"]
    assert len(ridge) == 1
    assert verify_plan(replace(whole, sample=ridge), jobs=1, progress=False).problems == []


def test_rows_of_a_study_without_stability_count_as_stable(tiny):
    rows = run.run_job(run.StudyJob("rivals", "invented"))
    assert (rows["moved"] == 0).all() and list(rows)[:2] == ["study", "job"]
    assert "dataset" not in rows
