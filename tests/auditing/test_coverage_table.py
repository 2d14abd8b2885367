"""Coverage of the audit's intervals, by the script of the stored table."""

from pathlib import Path

import numpy as np
import pytest


@pytest.mark.slow
def test_intervals_cover_the_truth_in_a_few_data_sets_of_the_table(monkeypatch):
    """Two dozen draws cannot tell 95 % from 90, but would show intervals of half their width."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import audit_coverage

    monkeypatch.setattr(audit_coverage, "LARGE", 20_000)
    design = audit_coverage.Design(2, 0.3, "one model")
    shares = audit_coverage.covered(design, sets=24, seed=0)
    assert {"slope", "uno_c", "c_minus_expected"} < shares.keys() and min(shares.values()) > 0.7
    assert np.mean(list(shares.values())) > 0.88
