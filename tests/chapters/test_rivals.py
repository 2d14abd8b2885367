"""Values of *rivals* from the stored study; guards that can fail."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from perturbed import failed, rescaled, shuffled, told

import drocox
from drocox.beyond.methods import YEARS
from drocox.chapters import rivals as chapter
from drocox.chapters import rivals_sentences as sentences
from drocox.paper.comparisons import PAIRS
from drocox.paper.signed import CLOSER, FARTHER, MOVED, UNDECIDED


@pytest.fixture(scope="module")
def runs():
    rows = drocox.load_runs("beyond")
    rows = rows[rows["study"] == "rivals"]
    return rows.set_index(["dataset", "attribute", "method"]).sort_index()


def perturbations(runs):
    """Other numbers at the same places: shuffled, reversed, all alike, without noise."""
    numbers = [(shuffled(runs, seed),) for seed in range(6)]
    numbers += [(rescaled(runs, -1.0),), (rescaled(runs, 0.0, 1.0),), (rescaled(runs, 40.0),)]
    sure = runs.copy()
    errors = [column for column in runs if column.endswith("_se")]
    sure[errors] = 1e-3 * runs[errors]
    unsure = runs.copy()
    unsure[errors] = 50 * runs[errors]
    return [*numbers, (sure,), (unsure,)]


@pytest.mark.parametrize("tell", ["tell_pairs", "tell_league", "tell_groups", "tell_censoring"])
def test_sentences_hold_and_each_can_fail(runs, tell):
    result = told(sentences, tell, runs)
    assert failed(sentences, tell, *perturbations(runs)) == set(result.held)


def test_values_are_those_of_the_rows(runs):
    values = told(sentences, "tell_league", runs).values
    row = runs.loc[("support", "age", "DRO-COX, sharp 0.5")]
    half = 1.959964 * row["ci_diff_se"]
    assert values["age-gentle-gap"] == f"{row['ci_diff']:+.2f} ± {half:.2f}"
    league = chapter.of_league(runs)
    assert values["league-compared"] == str(len(league)) == "131"
    assert int(values["closer-count"]) == (league["together"] == CLOSER).sum()


def test_all_seven_pairs_are_there_with_what_the_paper_has_no_attribute_for(runs):
    assert {key[:2] for key in runs.index} == set(PAIRS)
    for pair in PAIRS:
        rivals = set(runs.loc[pair].index)
        assert set(chapter.SERVED) <= rivals
        assert set(chapter.LEAGUE) - rivals <= {YEARS}
    # one model for all attributes has one c-index
    same = runs.xs("DRO-COX, sharp 0.5", level="method").loc["support"]
    assert np.ptp(same["c"]) < 1e-9


def test_words_of_the_league():
    """Signs of Cox's gap and of a rival's, with errors of 0.1 each."""
    import pandas as pd

    cases = {  # Cox's gap, rival's gap
        "shrunken Cox": (-2.0, -2.0),
        "ridge Cox": (-2.0, -1.0),
        "DRO-COX": (-2.0, 2.0),
        "CVaR": (2.0, 3.0),
        "free baseline": (2.0, -1.0),
    }
    rows = []
    for method, (cox, rival) in cases.items():
        rows.append(("support", "age", method, rival - cox, 0.1, rival + cox, 0.1))
    columns = ["dataset", "attribute", "method", "ci_diff", "ci_diff_se", "ci_sum", "ci_sum_se"]
    keys = ["dataset", "attribute", "method"]
    league = chapter.of_league(pd.DataFrame(rows, columns=columns).set_index(keys))
    words = league["together"].droplevel(["dataset", "attribute"])
    assert words.to_dict() == {
        "shrunken Cox": UNDECIDED,
        "ridge Cox": CLOSER,
        "DRO-COX": MOVED,
        "CVaR": FARTHER,
        "free baseline": CLOSER,
    }


def test_tables_and_drawings(runs):
    league = chapter.of_league(runs)
    pairs = chapter.shown_pairs(runs, league)
    assert list(pairs.index) == [chapter.pair_name(*pair) for pair in PAIRS]
    assert (
        not pairs.drop(columns=[c for c in pairs if "verdict" in c])
        .map(lambda text: "-" in text)
        .any(axis=None)
    )
    groups = chapter.shown_groups(runs, "support", "age")
    assert groups.shape == (7, 6) and ("own c-index", "age ≤ 65") in groups
    assert len(chapter.draw_pairs(runs).axes) == 2
    assert len(chapter.draw_league(league, "flc", "gender").axes) == 4
    assert len(chapter.draw_levels(runs).axes) == 3
    plt.close("all")


def test_detectable(runs):
    detectable = chapter.shown_detectable(chapter.of_league(runs))
    row = runs.loc[("seer", "age", "DRO-COX")]
    expected = (1.959964 + 0.84) * row["ci_diff_se"]
    assert detectable.loc["SEER (age)", "DRO-COX: gap"] == pytest.approx(expected, abs=0.006)
    result = told(sentences, "tell_detectable", detectable)
    turned = detectable.set_axis(detectable.columns[::-1], axis=1)
    variants = [(detectable / 100,), (turned,)]
    assert failed(sentences, "tell_detectable", *variants) == set(result.held)
