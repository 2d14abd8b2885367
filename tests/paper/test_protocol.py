"""The protocols: which models are trained."""

import re
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

from drocox.paper import protocol
from drocox.paper.protocol import METHODS, Stack

PROTOCOLS = ("as_published", "corrected")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_trains_the_models_of_every_exhibit(name):
    count = Counter()
    for stack in protocol.stacks(name):
        assert stack.protocol == name
        exhibit = "main"
        if METHODS[stack.method].loss == "split":
            exhibit = {(0.5, 2): "main", (0.5, 1): "T17"}.get((stack.n2_share, stack.sides), "T16")
            assert stack.dataset == "flc" or exhibit == "main"
        count[exhibit] += len(stack.grid())
    assert count == {"main": 6480, "T16": 1440, "T17": 360}
    assert sum(count.values()) == 8280


def test_forensic_runs_are_nonlinear_split_as_published_without_one_gradient():
    found = list(protocol.stacks("forensic"))
    assert sum(len(stack.grid()) for stack in found) == 1440
    assert {stack.method for stack in found} == {"Deep DRO-COX (SPLIT)"}
    published = [s for s in protocol.stacks("as_published") if s.method == "Deep DRO-COX (SPLIT)"]
    assert [replace(s, protocol="as_published") for s in found] == published
    as_published, forensic = (protocol.PROCEDURES[p] for p in ("as_published", "forensic"))
    assert replace(forensic, reference_gradient=True) == as_published != forensic


def test_the_sixteen_methods_have_the_grids_of_the_paper():
    assert len(METHODS) == 16
    for name, method in METHODS.items():
        deep = name.startswith("Deep")
        assert method.model == ("nonlinear" if deep else "linear")
        stack = Stack("corrected", "seer", name, 1)
        assert stack.model == method.model
        grid = pd.DataFrame(stack.grid(), dtype=float)
        assert not grid.duplicated().any()
        assert set(grid["learning_rate"]) == {0.01, 0.001, 0.0001}
        if "DRO" in name:
            assert set(grid["alpha"]) == {0.1, 0.15, 0.2, 0.3, 0.4, 0.5}
            assert grid["lam"].isna().all() and len(grid) == 18
        elif "(" in name:
            assert set(grid["lam"]) == {1.0, 0.7, 0.4}
            assert grid["alpha"].isna().all() and len(grid) == 9
        else:
            assert grid[["lam", "alpha"]].isna().all(axis=None) and len(grid) == 3
    assert METHODS["DeepSurv_G(R&P)"].by_attribute and METHODS["Cox_G(Keya)"].by_attribute
    assert sum(method.by_attribute for method in METHODS.values()) == 4
    published = {"Cox", "Cox_I(Keya)", "Cox_I(R&P)", "Cox_G(Keya)", "Cox_G(R&P)", "Cox_cap(Keya)",
                 "DRO-COX", "DRO-COX (SPLIT)"}  # fmt: skip
    assert {name for name, m in METHODS.items() if m.model == "linear"} == published


@pytest.mark.parametrize("name", PROTOCOLS)
def test_stacks_have_unique_names_that_are_safe_as_file_names(name):
    names = [stack.name for stack in protocol.stacks(name)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*", each) for each in names)
    assert max(map(len, names)) < 100
