"""Drawings and values of the chapter on survival data."""

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter, KaplanMeierFitter
from scipy import stats

from drocox import SurvivalData, load_dataset
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
    chi2 |= {("support", "gender"): 5.0, ("flc", "gender"): 3.8, ("support", "race"): 3.7}
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
    clear = table["χ²"].where(table["χ²"] != 5.0, 8.0)
    with pytest.raises(AssertionError, match="of the others none passes"):
        chapter.tell_five_years(table.assign(**{"χ²": clear}))
    far = table["χ²"].where(table["χ²"] != 3.7, 1.0)
    with pytest.raises(AssertionError, match="just miss"):
        chapter.tell_five_years(table.assign(**{"χ²": far}))


def test_seven_tests_have_one_bar():
    assert stats.chi2.sf(chapter.CHI2_ONE, 1) == pytest.approx(0.05, abs=1e-3)
    assert stats.chi2.sf(chapter.CHI2_SEVEN, 1) == pytest.approx(0.05 / 7, abs=1e-4)


def test_leaving_is_tested_as_lifelines_would():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.standard_normal((400, 3)), columns=["a", "b", "c"])
    time = rng.exponential(np.exp(-0.3 * X["a"].to_numpy()))  # no ties
    event = rng.random(400) < 0.5
    ours = chapter.leaving_test(SurvivalData("invented", X, time, event, {}))
    fit = CoxPHFitter().fit(X.assign(time=time, left=~event), "time", "left")
    theirs = fit.log_likelihood_ratio_test()
    assert ours["df"] == 3
    assert ours["χ²"] == pytest.approx(theirs.test_statistic, rel=1e-5)
    assert ours["p"] == pytest.approx(theirs.p_value, rel=1e-4)


def test_leaving_is_told_and_held(said):
    names = list(chapter.YEAR)
    tests = pd.DataFrame({"p": [2e-51, 4e-4, 0.03], "log-rank, age": [65.0, 0.4, 0.0]}, names)
    chapter.tell_leaving(tests)
    assert said == {"leave-flc": "10⁻⁵⁰"}
    for column, name, value in (
        ("p", "flc", 0.2),
        ("p", "support", 0.2),
        ("p", "seer", 0.2),
        ("log-rank, age", "flc", 1.0),
    ):
        changed = tests.copy()
        changed.loc[name, column] = value
        with pytest.raises(AssertionError):
            chapter.tell_leaving(changed)


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
