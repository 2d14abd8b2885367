"""Values of *rivals* from the stored study; guards that can fail."""

import pandas as pd
import pytest
from perturbed import failed, rescaled, shuffled, told

import drocox
from drocox.chapters import rivals as chapter


@pytest.fixture(scope="module")
def runs():
    rows = drocox.load_runs("beyond")
    return rows[rows["study"] == "rivals"].set_index(["dataset", "method"])


def test_league(runs):
    result = told(chapter, "tell_league", runs)
    _, lower = chapter.beyond_noise(runs, "c")
    assert result.values["c-lose"] == str(len(lower))
    for dataset, method in sorted(lower):
        row = runs.loc[(dataset, method)]
        assert row["c_diff"] < -chapter.STRICT * row["c_diff_se"]
    variants = [(shuffled(runs, seed),) for seed in range(4)] + [(rescaled(runs, -1.0),)]
    lost = failed(chapter, "tell_league", *variants)
    assert len(set(result.held) - lost) <= 3


def test_detectable():
    names = [f"{name}, DRO-COX" for name in ("FLC", "SUPPORT", "SEER")]
    detectable = pd.DataFrame({"CI": [0.3, 0.8, 1.0]}, index=names)
    result = told(chapter, "tell_detectable", detectable)
    assert result.values["see-ci-support"] == "0.8"
    assert failed(chapter, "tell_detectable", (detectable / 100,)) == set(result.held)
