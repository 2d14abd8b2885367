"""The committed results: whole, complete, and still what the code computes."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drocox.paper import store, sweep
from drocox.paper.protocol import ATTRIBUTES, KEYS, METHODS_OF, PROCEDURES
from drocox.paper.run import TWICE, columns

pytestmark = pytest.mark.slow

MODELS = {"as_published": 8280, "corrected": 8280, "forensic": 1440}


@pytest.fixture(scope="module", params=PROCEDURES)
def protocol(request):
    return request.param


@pytest.fixture(scope="module")
def runs(protocol):
    return store.load_runs(protocol)


def test_every_model_is_there_once_with_every_column(protocol, runs):
    assert list(runs) == columns()
    assert len(runs) == MODELS[protocol] and not runs.duplicated(KEYS).any()
    assert (runs["protocol"] == protocol).all()


def test_metrics_are_known_for_every_attribute_of_a_data_set(protocol, runs):
    for dataset, rows in runs.groupby("dataset"):
        others = {"age", "gender", "race"} - set(ATTRIBUTES[dataset])
        unknown = {
            name for name in rows if name.startswith(("val_", "test_")) and rows[name].isna().any()
        }
        expected = {name for name in columns() if name.endswith(tuple(f"_{a}" for a in others))}
        assert unknown - {"test_ibs_misaligned"} == expected
        assert ("test_ibs_misaligned" in unknown) == (protocol == "corrected")


def test_signed_differences_and_fractions_are_those_of_ci(runs):
    for dataset, rows in runs.groupby("dataset"):
        for name in ATTRIBUTES[dataset]:
            gap = 100 * (rows[f"test_cf_1_{name}"] - rows[f"test_cf_0_{name}"])
            np.testing.assert_allclose(rows[f"test_ci_signed_{name}"], gap, atol=1e-6)
            np.testing.assert_allclose(rows[f"test_ci_percent_{name}"], gap.abs(), atol=1e-6)


def test_stability_is_known_where_it_was_measured(runs):
    measured = runs["repeat"].isin(TWICE)
    assert (runs.loc[measured, "moved"] >= 0).all()
    assert runs.loc[measured, "unstable"].isin([0, 1]).all()
    assert runs.loc[~measured, ["moved", "unstable"]].isna().all(axis=None)


def test_the_sample_has_every_method_with_rows_to_compare(protocol, runs):
    sample = sweep.plan(protocol).sample
    on_seer = [stack.method for stack in sample if stack.dataset == "seer"]
    assert sorted(on_seer) == sorted(METHODS_OF[protocol])
    assert {stack.dataset for stack in sample} == {"flc", "support", "seer"}
    assert len(sample) == len(on_seer) + 2
    for stack in sample:
        assert (store.rows_of(runs, stack)["moved"] <= sweep.HELD).any(), stack


def test_provenance_records_the_cost(protocol):
    record = store.load_provenance()[protocol]
    assert record["rows"] == MODELS[protocol]
    assert {"command", "cores", "machine", "packages", "data", "wall_minutes"} <= set(record)
    minutes = record["core_minutes"]
    assert set(minutes) == set(METHODS_OF[protocol])
    assert sum(minutes.values()) / 60 == pytest.approx(record["core_hours"], abs=0.02)


@pytest.mark.parametrize("name", ["as_published", "corrected"])
def test_a_part_of_the_sample_trained_again_gives_the_stored_rows(name):
    """Linear and nonlinear, all data sets; `drocox verify` trains all methods again."""
    plan = sweep.plan(name)
    few = [stack for stack in plan.sample if stack.method in ("Cox", "DRO-COX", "DeepSurv")]
    assert len(few) == 5
    assert sweep.verify_plan(replace(plan, sample=few), jobs=1, progress=False).problems == []


# Where runs are written, and what is advised.


def test_an_installed_package_writes_into_the_current_folder(tmp_path, monkeypatch):
    assert store.own_folder() == store.DEFAULT  # in this checkout
    monkeypatch.setattr(store, "__file__", str(tmp_path / "drocox" / "paper" / "store.py"))
    assert store.own_folder() == Path("results")


def test_advice_repeats_folder_and_study():
    assert store.command("corrected", store.DEFAULT) == "drocox sweep --protocol corrected"
    advice = store.command("beyond/rivals", Path("my try"))
    assert advice == "drocox sweep --protocol beyond --method rivals --out 'my try'"


@pytest.mark.parametrize("text", ['{"corrected": {"rows"', "[]", '{"corrected": {"sha256": "0"}}'])
def test_damaged_provenance_is_named_with_the_fix(tmp_path, text):
    path = tmp_path / "provenance.json"
    path.write_text(text)
    for read in (store.load_provenance, lambda out: store.load_runs("corrected", out=out)):
        with pytest.raises(
            store.DamagedError, match=f"{path} is truncated or was edited; restore it"
        ):
            read(tmp_path)


def test_runs_are_read_again_when_their_file_has_changed(tmp_path):
    """They are kept in memory, by the time at which the file was last written."""
    path = tmp_path / "corrected.csv.gz"
    for i, value in enumerate((0.25, 0.75)):
        content = f"attribute,test_auc\n,{value}\n".encode()
        path.write_bytes(gzip.compress(content))
        os.utime(path, (1e9 + i, 1e9 + i))
        record = {"corrected": {"sha256": {"corrected": store.sha256(content)}}}
        (tmp_path / "provenance.json").write_text(json.dumps(record))
        runs = store.load_runs("corrected", out=tmp_path)
        assert runs["test_auc"].tolist() == [value]
        runs["test_auc"] = 0.0  # the caller's own
        assert store.load_runs("corrected", out=tmp_path)["test_auc"].tolist() == [value]
