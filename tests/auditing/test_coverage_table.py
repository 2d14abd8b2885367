"""The stored table of coverage is the one that its script makes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def audit_coverage(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import audit_coverage

    return audit_coverage


def test_every_design_has_as_many_data_sets_as_the_script_draws(audit_coverage):
    rows = pd.read_csv(audit_coverage.COVERAGE)
    assert list(rows.columns) == audit_coverage.COLUMNS
    designs = rows[rows["censored"].notna()]
    sizes = designs.groupby(["groups", "censored", "kind"]).size()
    assert set(sizes.index.get_level_values("groups")) == set(audit_coverage.SETS)
    assert set(sizes.index.get_level_values("censored")) == {0.3, 0.8}
    assert sizes.nunique() == 1 and designs["share"].between(0, 1).all()
    for row in rows.itertuples():
        usual = audit_coverage.SETS
        if row.kind == "cross-fitting":
            usual = audit_coverage.SETS_OF_FIVE_MODELS
        if row.kind == "no difference":
            usual = {2: audit_coverage.SETS_WITHOUT_DIFFERENCE}
        assert row.sets == usual[row.groups]


@pytest.mark.slow
def test_intervals_cover_the_truth_in_a_few_data_sets_of_the_table(monkeypatch):
    """Two dozen draws cannot tell 95 % from 90, but would show intervals of half their width."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import audit_coverage

    monkeypatch.setattr(audit_coverage, "LARGE", 20_000)
    design = audit_coverage.Design(2, 0.3, "tied times")
    shares = audit_coverage.covered(design, sets=24, seed=0)
    assert len(shares) == 17 and min(shares.values()) > 0.7
    assert np.mean(list(shares.values())) > 0.88
