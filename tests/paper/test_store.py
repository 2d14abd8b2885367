"""The committed results: whole, complete, and still what the code computes."""

import pytest

from drocox.paper import store, sweep
from drocox.paper.protocol import PROTOCOLS
from drocox.paper.run import TWICE


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_store_verifies(protocol):
    """Completeness, hashes, and linear stacks chosen by the code's hash recomputed to 1e-6."""
    assert sweep.verify(protocol, size=2, progress=False) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_recomputed_sample_has_rows_to_compare(protocol):
    runs = store.load_runs(protocol)
    for stack in sweep._sample(protocol, 2):
        assert (store.rows_of(runs, stack)["unstable"] == 0).any()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_stability_is_known_where_it_was_measured(protocol):
    runs = store.load_runs(protocol)
    measured = runs["repeat"].isin(TWICE)
    assert runs.loc[measured, "unstable"].isin([0, 1]).all()
    assert runs.loc[~measured, "unstable"].isna().all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_provenance_says_what_it_cost(protocol):
    record = store.load_provenance()[protocol]
    assert record["rows"] == 8280
    assert {"command", "cores", "machine", "packages", "wall_minutes", "core_hours"} <= set(record)
