"""Several models of the same patients, side by side."""

import json

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from cohort import simulated

import drocox
from drocox.auditing.page import page


@pytest.fixture(scope="module")
def given():
    """Data, good scores and scores with noise."""
    data, scores = simulated(n=500)
    return data, scores, scores + np.random.default_rng(0).normal(size=500)


@pytest.fixture(scope="module")
def both(given):
    """The audit of two models, by the columns of a table."""
    data, good, bad = given
    return drocox.audit(data, pd.DataFrame({"good": good, "bad": bad}))


def test_scores_of_two_models_side_by_side(given, both, tmp_path, undrawn):
    data, good, bad = given
    assert list(both) == ["good", "bad"]
    for name, scores in (("good", good), ("bad", bad)):
        alone = drocox.audit(data, scores)
        pd.testing.assert_frame_equal(both[name].table, alone.table)
        pd.testing.assert_frame_equal(both[name].differences, alone.differences)
    paired = both["bad"].compare(both["good"])
    shown = both.paired.drop(columns=["model", "versus"])
    pd.testing.assert_frame_equal(shown, paired)
    assert (both.paired["model"] == "bad").all() and (both.paired["versus"] == "good").all()
    row = paired[(paired["group"] == "everybody") & (paired["measure"] == "c_index")].iloc[0]
    assert row["says"] == "differ" and row["difference"] < 0
    assert f"a difference of {row['difference']:.3f} " in both.sentence
    assert max(map(len, str(both).splitlines())) <= 80
    assert "\nbad:\nBy group, " in str(both) and "\ngood:\nBy group, " in str(both)
    text = both.to_html(tmp_path / "p.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(text, "html.parser")
    titles = [title.get_text() for title in soup.select("h2")]
    assert titles[:3] == ["good and bad, side by side", "good", "bad"]
    heads = [cell.get_text() for cell in soup.select_one("table").select("th")]
    assert heads == ["Group", "Measure", "good", "bad", "bad minus good"]
    told = json.loads(both.to_json(tmp_path / "p.json"))
    assert len(told["paired"]) == len(paired) and list(told["models"]) == ["good", "bad"]
    assert both.table["model"].value_counts().to_dict() == {"good": 9, "bad": 9}


def test_models_may_have_predictions_of_any_kind(given):
    data, good, bad = given
    survival = {"good": np.exp(-np.exp(good)), "bad": np.exp(-np.exp(bad))}
    both = drocox.audit(data, survival=survival, times=1.0)
    assert "Brier score 0." in both.sentence and both["bad"].horizon == 1
    fitted = {"Cox": drocox.cross_fit(data), "a": data.X["a"].to_numpy(), "bad": bad}
    found = drocox.audit(data, fitted)
    alone = drocox.audit(data, **fitted["Cox"])
    pd.testing.assert_frame_equal(found["Cox"].table, alone.table)
    assert set(found.paired["model"]) == {"a", "bad"} and set(found.paired["versus"]) == {"Cox"}
    assert len(found.sentence.splitlines()) == 2


def test_models_that_cannot_be_compared_are_refused(given):
    data, good, bad = given
    for arguments, words in (
        ({"scores": {"a": good}}, r"scores names 1 model\(s\); name two or more"),
        ({"scores": {"a": good, "b": bad}, "expected": {"a": good**2}}, "name the same models"),
        ({"scores": {"a": good, "b": bad}, "expected": good**2}, "name the same models in each"),
    ):
        with pytest.raises(ValueError, match=words):
            drocox.audit(data, **arguments)
    curves = {"survival": np.exp(-np.exp(good)), "times": 1.0}
    with pytest.raises(ValueError, match=r"judged up to .* and 1; pass one horizon="):
        drocox.audit(data, {"scores": bad, "curves": curves})


@pytest.mark.slow
def test_intervals_hold_for_all_groups_and_models():
    """Models without any difference: one audit in twenty may say that one differs."""
    alarms = 0
    for seed in range(8):
        data, scores = simulated(seed, n=200, effects=(0.8, 0.5, 0))
        rng = np.random.default_rng(seed)
        models = {name: scores + rng.normal(size=200) for name in "abc"}
        rows = drocox.audit(data, models).paired
        alarms += (rows.loc[rows["measure"] == "c_index", "says"] == "differ").any()
    assert alarms <= 1


def test_intervals_of_models_may_hold_for_one_attribute_only(given, both):
    data, good, bad = given
    apart = drocox.audit(data, {"good": good, "bad": bad}, familywise=False)
    width = {}
    for familywise, found in ((True, both), (False, apart)):
        rows = found.paired[found.paired["measure"] == "c_index"].set_index("group")
        width[familywise] = rows["high"] - rows["low"]
    apart = width[True] / width[False]
    assert apart["everybody"] == 1 and (apart[["sex = 0", "sex = 1", "group = 0"]] > 1.05).all()


def test_two_models_are_compared_on_the_same_patients(model):
    data, scores = model
    noise = 0.6 * np.random.default_rng(0).normal(size=500)
    first, second = drocox.audit(data, scores), drocox.audit(data, scores + noise)
    found = first.compare(second)
    everybody = found[(found["group"] == "everybody") & (found["measure"] == "c_index")].iloc[0]
    apart = first.table["c_index"][0] - second.table["c_index"][0]
    assert everybody["difference"] == pytest.approx(apart) and everybody["says"] == "differ"
    alone = first.table["c_index_high"][0] - first.table["c_index_low"][0]
    assert everybody["high"] - everybody["low"] < alone  # paired
    backwards = second.compare(first)
    np.testing.assert_allclose(backwards["difference"], -found["difference"])
    itself = first.compare(first)
    assert (itself["difference"] == 0).all() and not (itself["says"] == "differ").any()
    with pytest.raises(ValueError, match="same data and groups"):
        first.compare(drocox.audit(data.subset(slice(0, 400)), scores[:400]))


def test_models_are_compared_in_one_measure():
    """Events for one model and risks for the other: the same model twice is no better calibrated.

    Survival of one of 300 patients falls to 0 late, so that expected events are unknown.
    """
    data, scores = simulated(n=300, effects=(0.8, 0.5, 0))
    times = np.linspace(0.1, data.time.max(), 40)
    curves = np.exp(-1.2 * np.outer(np.exp(scores), times))
    late = curves.copy()
    late[np.argmax(data.time), 30:] = 0
    given = {"survival": {"A": curves, "B": late}, "times": times, "horizon": 0.5}
    both = drocox.audit(data, **given)
    values = both.table[both.table["group"] == "everybody"].set_index("model")["calibration"]
    assert abs(values["A"] - values["B"]) > 0.02  # events, and risks
    assert "calibration" not in set(both.paired["measure"])
    assert {"c_index", "brier", "slope"} <= set(both.paired["measure"])
    assert not (both.paired["says"] == "differ").any()
    assert "calibration" not in set(both["B"].compare(both["A"])["measure"])
    alike = drocox.audit(data, **(given | {"survival": {"A": late, "B": late**2}}))
    assert "calibration" in set(alike.paired["measure"])
    soup = BeautifulSoup(page(both), "html.parser")
    side, *tables = soup.select("table.measured, table.groups")
    assert "bserved / " not in side.get_text()
    assert ["Observed / expected" in t.get_text() for t in tables] == [True, False]
    assert ["Observed / predicted risk" in t.get_text() for t in tables] == [False, True]
    figure = soup.select_one("svg").get_text()
    assert "Observed / " not in figure and "Slope" in figure


def test_slopes_of_other_patients_are_not_compared():
    """One model has risks of exactly 1 in one group, where its slope leaves out these patients."""
    data, scores = simulated(n=600, effects=(0.8, 0.5, 0))
    survival = np.exp(-0.5 * np.exp(scores))
    rounded = survival.copy()
    member = data.groups["group"] == 1
    rounded[np.flatnonzero(member & (data.time > 0.5))[:10]] = 0.0
    both = drocox.audit(data, survival={"A": survival, "B": rounded}, times=0.5)
    slopes = both.paired[both.paired["measure"] == "slope"].set_index("group")
    assert "group = 0" in slopes.index and not slopes.index.isin(["everybody", "group = 1"]).any()
    again = drocox.audit(data, survival={"A": rounded, "B": rounded**2}, times=0.5).paired
    assert {"everybody", "group = 1"} <= set(again.loc[again["measure"] == "slope", "group"])


def test_rounding_is_no_difference():
    """Two models that agree to ten digits, and any two in the mean risk of everybody: it is 1."""
    data, scores = simulated(n=200)
    other = scores * (1 + 1e-10 * np.random.default_rng(0).normal(size=200))
    train = {"train": (data, scores)}
    both = drocox.audit(data, {"A": {"scores": scores} | train, "B": {"scores": other} | train})
    assert set(both.paired["measure"]) >= {"slope", "mean_risk", "brier", "calibration"}
    assert not (both.paired["says"] == "differ").any()
    apart = drocox.audit(data, {"A": scores, "B": scores + data.X["c"].to_numpy()}).paired
    mean_risk = apart[(apart["measure"] == "mean_risk") & (apart["group"] == "everybody")]
    assert mean_risk["difference"].tolist() == [0.0] and (mean_risk["says"] != "differ").all()


def test_the_sentence_names_the_values_of_each_model(both):
    table = both.table[both.table["group"] == "everybody"].set_index("model")["c_index"]
    assert table["good"] > table["bad"] + 0.02
    said = f"bad against good: c-index {table['bad']:.3f} against {table['good']:.3f}, a difference"
    assert both.sentence.startswith(said)
