"""Drawings and values of the chapter on survival data."""

import numpy as np
import pytest
from lifelines import KaplanMeierFitter

from drocox import load_dataset
from drocox.bookstyle import SIX
from drocox.chapters import survival_data as chapter

AT = np.linspace(0, 5.9, 60)


@pytest.fixture(scope="module")
def simulated():
    rng = np.random.default_rng(0)
    lives = rng.exponential(5.0, 2000)
    censoring = rng.uniform(0, 6.0, 2000)
    return np.minimum(lives, censoring), lives <= censoring


def test_six_lines_end_where_observation_ends():
    axes = chapter.draw_six(SIX).axes[0]
    ends = [line.get_xdata()[-1] for line in axes.lines if line.get_linestyle() == "-"]
    assert ends[: len(SIX)] == list(SIX["time"])
    assert sum(line.get_linestyle() == ":" for line in axes.lines) == (~SIX["event"]).sum()


def test_naive_curves_are_shares():
    time = np.array([1.0, 2.0, 4.0])
    event = np.array([True, False, True])
    everyone, events_only = chapter.naive_curves(time, event, np.array([0.0, 1.5, 3.0]))
    assert everyone == pytest.approx([1, 2 / 3, 1 / 3])
    assert events_only == pytest.approx([1, 1 / 2, 1 / 2])


def test_the_curve_is_drawn_and_held_to_the_truth(simulated):
    time, event = simulated
    truth = np.exp(-AT / 5)
    fit = KaplanMeierFitter().fit(time, event)
    curve = fit.survival_function_at_times(AT).to_numpy()
    axes = chapter.draw_truth(time, event, AT, truth, curve).axes[0]
    assert np.array_equal(axes.lines[0].get_ydata(), truth)
    assert np.array_equal(axes.lines[1].get_ydata(), curve)
    with pytest.raises(AssertionError, match="agrees with the truth"):
        chapter.draw_truth(time, event, AT, truth, truth**2)


@pytest.fixture(scope="module")
def five_years():
    survival, chi2 = {}, {}
    for name, years in chapter.YEAR.items():
        data = load_dataset(name)
        for attribute, codes in data.groups.items():
            chi2[name, attribute] = 10.0 if attribute == "age" else 1.0
            for code in (1, 0):
                who = codes == code
                fit = KaplanMeierFitter().fit(data.time[who], data.event[who])
                survival[name, attribute, code] = fit.predict(5 * years)
    chi2["support", "gender"] = 10.0
    return survival, chi2


def test_the_table_of_five_years(five_years):
    survival, chi2 = five_years
    table = chapter.five_year_table(survival, chi2)
    assert len(table) == len(chi2)
    for name, attribute in chi2:
        row = table.loc[(name, attribute)]
        gap = survival[name, attribute, 1] - survival[name, attribute, 0]
        assert row["difference"] == pytest.approx(gap)
        assert row["χ²"] == chi2[name, attribute]
    assert chapter.show_five_years(table).index[0] == "flc, age"
    chapter.tell_five_years(table)
    with pytest.raises(AssertionError, match="age divides all three"):
        chapter.tell_five_years(table.assign(**{"χ²": 1.0}))


def test_a_panel_for_each_pair():
    band = np.array([[0.8, 0.4], [1.0, 0.6]])
    groups = [("flc", "age", 1), ("flc", "age", 0), ("seer", "race", 1)]
    curves = {group: (np.array([0.0, 730.5]), np.array([0.9, 0.5]), band) for group in groups}
    labels = {"flc": {"age": ("young", "old")}, "seer": {"race": ("others", "white")}}
    figure = chapter.draw_groups(curves, labels)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == ["FLC, age", "SEER, race"]
    assert shown[0].lines[0].get_xdata()[-1] == 2.0
    names = [text.get_text() for text in shown[0].get_legend().get_texts()]
    assert names == ["old", "young"]
