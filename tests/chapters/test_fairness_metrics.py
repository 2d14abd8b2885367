"""Drawings and values of the chapter on fairness metrics."""

import literal
import numpy as np
import pandas as pd
import pytest

from drocox import fairness
from drocox.bookstyle import SIX
from drocox.chapters import fairness_metrics as chapter


def test_the_smallest_cell(said):
    chapter.tell_smallest_cell(pd.DataFrame({"patients": [12, 80], "events": [1, 30]}))
    assert said == {"few": 12, "few_events": "one"}


def test_the_published_deviation(said):
    chapter.tell_published_deviation()
    assert float(said["published_sd"]) > 0


def metrics(f_i, f_g, f_cap):
    return {"f_i": f_i, "f_g_age": f_g, "f_g_race": f_g, "f_cap": f_cap}


def test_four_metrics_end_with_the_mean():
    assert list(chapter.four_metrics(metrics(1.0, 2.0, 6.0), "age")) == [1, 2, 6, 3]


def test_a_shift_is_told_and_held(said):
    flc = (metrics(1.0, 1.0, 1.0), metrics(0.0, 0.1, 0.5))
    seer = (metrics(0.1, 0.1, 0.4), metrics(0.0, 0.0, 3.0))
    chapter.tell_shift(flc, seer)
    assert said == {"f-cap": "0.40 to 3.00", "f-a": "0.20 to 1.00"}
    with pytest.raises(AssertionError, match="raises F_∩ and F_A"):
        chapter.tell_shift(flc, (seer[0], metrics(0.0, 0.0, 0.5)))
    with pytest.raises(AssertionError, match="on FLC"):
        chapter.tell_shift(flc[::-1], seer)


def test_scores_far_from_zero(said):
    chapter.tell_scores_far_from_zero()
    hazards = np.exp([-6.0, -5.0, -4.0, -3.0])
    gaps = [abs(a - b) for i, a in enumerate(hazards) for b in hazards[:i]]
    assert said["far"].startswith(f"{np.mean(gaps):.3f} to ")


@pytest.fixture
def frames():
    grid = np.linspace(0.1, 1, 4)
    still = np.ones(4)
    by_scale = {"c_index": still, "ci_percent_age": still, "ibs": 1.2 - grid / 5}
    by_scale |= dict.fromkeys(("f_i", "f_g_age", "f_cap"), grid)
    by_shift = {"c_index": still, "ibs": still, "f_g_age": grid, "f_cap": grid}
    by_shift |= {"f_i": [0, 0, 0, 1]}
    return grid, pd.DataFrame(by_scale), grid - 1, pd.DataFrame(by_shift)


def test_traps_are_drawn(frames):
    scales, by_scale, _, by_shift = frames
    left, right = chapter.draw_traps(*frames).axes
    labels = [line.get_label() for line in left.lines]
    assert labels == [label for label, _ in chapter.STYLES.values()]
    assert np.array_equal(left.lines[1].get_ydata(), by_scale["ibs"])
    assert np.array_equal(left.lines[1].get_xdata(), scales)
    assert np.array_equal(right.lines[2].get_ydata(), by_shift["f_i"])


@pytest.mark.parametrize(
    ("part", "column", "sentence"),
    [(1, "f_i", "falls"), (1, "c_index", "stay"), (1, "ibs", "notices"), (3, "ibs", "prediction")],
)
def test_traps_are_held_to_the_sentences(frames, part, column, sentence):
    frames = list(frames)
    wrong = np.ones(4) if column == "ibs" and part == 1 else np.array([2.0, 1.0, 1.0, 1.0])
    frames[part] = frames[part].assign(**{column: wrong})
    with pytest.raises(AssertionError, match=sentence):
        chapter.draw_traps(*frames)


def test_the_slider_has_a_curve_for_each_patient():
    cell = {key: 0.5 for key in chapter.READOUTS.values()}
    grids = np.linspace(0.2, 1, 5), np.linspace(-8, 2, 6)
    survival = np.full((5, 6, 3, 4), 0.5)
    figure = chapter.traps_slider(*grids, np.linspace(0, 365.25, 4), survival, [[cell] * 6] * 5)
    for name in ("low risk", "middle", "high risk", "F_∩"):
        assert name in figure.markup


@pytest.mark.slow
def test_own_concordance_of_seer(said):
    table = chapter.own_concordance(["seer"])
    data = chapter.load_dataset("seer")
    held_out = chapter.cross_fitted(data)
    members = data.groups["race"] == 1
    points, pairs = 0.0, 0
    for k in range(5):
        rows = members & (held_out.fold == k)
        score, time, event = held_out.scores[rows], data.time[rows], data.event[rows]
        for i in np.flatnonzero(event):
            later = (time > time[i]) | ((time == time[i]) & ~event)
            pairs += later.sum()
            points += (score[i] > score[later]).sum() + 0.5 * (score[i] == score[later]).sum()
    assert table.loc[("seer", "race"), "second"] == pytest.approx(100 * points / pairs)
    assert chapter.show_own(table).shape == (2, 4)


def test_what_ci_hides_is_told_and_held(said):
    columns = ["first", "second", "difference", "ci"]
    values = {("flc", "age"): [66, 73, 7, -0.2], ("support", "age"): [61, 56, -4, -2.0]}
    table = pd.DataFrame(values, columns).T
    table = table.assign(**{f"{name}_half": 1.5 for name in columns})
    chapter.tell_own(table)
    assert said == {"own-flc-ci": "0.2", "own-flc-young": "66.0", "own-flc-old": "73.0"}
    for sign, message in ((10, "look equal"), (0.01, "apart"), (-1, "apart")):
        with pytest.raises(AssertionError, match=message):
            chapter.tell_own(table.assign(**{c: sign * table[c] for c in columns}))


def test_the_gap_of_two_groups_is_the_signed_imparity():
    drawn = literal.random_survival(np.random.default_rng(4), 60, ties=0.3, d=1)
    scores = drawn.X[:, 0]
    codes = np.arange(60) % 2
    gap, error = chapter.gap_and_error(scores, drawn.time, drawn.event, codes)
    ci = fairness.concordance_imparity(scores, drawn.time, drawn.event, codes)
    assert abs(gap) == pytest.approx(ci)
    assert error > 0


def test_follow_up_is_told_and_held(said):
    gaps = {(0, 0): (0.1, 0.2), (0.2, 2): (0.5, 0.2), (0.1, 5): (1.0, 0.3)}
    chapter.tell_followed(gaps)
    assert said == {"followed-ci": "0.5 and 1.0"}
    with pytest.raises(AssertionError, match="perfect model"):
        chapter.tell_followed({key: (gap, 1.0) for key, (gap, _) in gaps.items()})


def test_two_questions_are_drawn_for_the_six():
    figure = chapter.draw_two_questions(SIX)
    heights = [bar.get_height() for bar in figure.axes[1].patches]
    assert heights == pytest.approx([1100 / 12, 700 / 8])
    assert figure.axes[0].lines[1].get_ydata()[0] == pytest.approx(5.5 / 3)
    with pytest.raises(AssertionError, match="11 of 12 pairs"):
        chapter.draw_two_questions(SIX.assign(x=-SIX["x"]))
    other_groups = SIX.assign(group=SIX["group"].map({"a": "b", "b": "a"}))
    with pytest.raises(AssertionError):
        chapter.draw_two_questions(other_groups)
