"""The audit: measures against loops, intervals against theory, the page against hostile names."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import literal
import matplotlib.pyplot as plt
import numpy as np
import pytest
from cohort import simulated
from scipy import stats
from sksurv.linear_model import CoxPHSurvivalAnalysis

import drocox
from drocox import accuracy, fairness, terminal
from drocox.auditing import findings
from drocox.auditing.group_measures import FEWEST_AT_HORIZON
from drocox.auditing.measures import MEASURES
from drocox.auditing.page import page
from drocox.heldout import FEWEST_EVENTS, HeldOut
from drocox.heldout.intervals import jackknife, simultaneous

AT_HORIZON = [name for name, measure in MEASURES.items() if measure.at_horizon]
HOSTILE = ["<script>alert(1)</script>", "--> </svg><b>", '=HYPERLINK("x")', "$\\frac{1}$", "a & b"]


def tied(seed=1, n=40):
    """Scores, times, events with many ties, folds and the members of a group."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 9, n).astype(float)
    return (
        rng.integers(0, 6, n) / 2,
        time,
        rng.random(n) < 0.6,
        rng.integers(0, 2, n),
        (rng.random(n) < 0.4),
    )


# Measures -----------------------------------------------------------------------------------


def test_calibration_with_and_without_each_patient():
    def loop(scores, time, event, members):
        at_risk = (time >= time[:, None]) @ np.exp(scores)  # at each patient's time
        expected = np.exp(scores) * ((time <= time[:, None]) @ (event / at_risk))
        return event[members].sum() / expected[members].sum()

    scores, time, event, fold, members = tied(n=200)
    value, without = HeldOut(scores, time, event, 0 * fold).calibration(members)
    assert value == pytest.approx(loop(scores, time, event, members), rel=1e-12)
    curves = literal.breslow_survival(scores, time, event, scores[:3], time[:3])
    alone = HeldOut(scores, time, event, 0 * fold).calibration(np.arange(200) < 3)[0]
    assert alone == pytest.approx(event[:3].sum() / -np.log(np.diag(curves)).sum(), rel=1e-12)
    exact = []
    for i in range(200):
        rows = np.arange(200) != i
        exact.append(loop(scores[rows], time[rows], event[rows], members[rows]))
    # the baseline moves to first order only
    assert np.corrcoef(without, exact)[0, 1] > 0.995
    ratio = jackknife(without[:, None])[0] / jackknife(np.array(exact)[:, None])[0]
    assert 0.95 < ratio.item() < 1.06
    folds = HeldOut(scores, time, event, fold)
    moved = HeldOut(scores + 9 * fold, time, event, fold)
    np.testing.assert_allclose(moved.calibration(members)[1], folds.calibration(members)[1])


def test_measures_equal_those_of_the_package():
    data, scores = simulated(n=90)
    found = drocox.audit(data, scores)
    everybody = found.table.iloc[0]
    c_index = accuracy.concordance_index(scores, data.time, data.event)
    assert everybody["c_index"] == pytest.approx(c_index, rel=1e-12)
    for attribute, codes in data.groups.items():
        (row,) = found.imparity[found.imparity["attribute"] == attribute].itertuples()
        outcomes = (scores, data.time, data.event)
        signed = np.diff(fairness.concordance_fractions(*outcomes, {"a": codes})["a"]).item()
        assert row.difference == pytest.approx(100 * signed, rel=1e-12)
        assert abs(row.difference) == pytest.approx(literal.concordance_imparity(*outcomes, codes))
        for k, label in enumerate(data.group_labels[attribute]):
            of = found.table[found.table["group"] == label].iloc[0]
            mine = codes == k
            alone = literal.concordance_index(*(part[mine] for part in outcomes))
            assert of["c_index"] == pytest.approx(alone, rel=1e-12)
            assert (of["patients"], of["events"]) == (mine.sum(), data.event[mine].sum())
            risk = np.exp(scores[mine].mean() - scores.mean())
            assert of["mean_risk"] == pytest.approx(risk, rel=1e-12)
    assert list(found.table["attribute"]).count("group × sex") == 4
    assert found.table["patients"][5:].sum() == len(data)
    names = ["c_index", "concordance", "uno_c", "slope", "risk_observed", "auc", "mean_risk"]
    values = found.table[names].to_numpy()
    lows = found.table[[f"{name}_low" for name in names]].to_numpy()
    highs = found.table[[f"{name}_high" for name in names]].to_numpy()
    for name in ("calibration", "risk_predicted", "brier"):  # which scores alone cannot tell
        assert found.table[name].isna().all()
    assert not (lows > values + 1e-12).any() and not (values > highs + 1e-12).any()


def test_every_measure_has_values_with_intervals():
    """Log-hazards with a training part answer all; a measure that is NaN everywhere is a fault."""
    data, scores = simulated(n=300)
    found = drocox.audit(data, scores, train=(data, scores))
    for name, measure in MEASURES.items():
        known = found.table[[f"{name}_low", name, f"{name}_high"]].dropna().to_numpy()
        assert len(known), name
        assert (np.diff(known, axis=1) >= -1e-12).all() and np.ptp(known) > 0, name
        compared = (found.differences["measure"] == name).any()
        assert compared == measure.compared, name


def test_calibration_with_a_training_part():
    data, scores = simulated(n=80)
    train, test = data.subset(slice(0, 40)), data.subset(slice(40, 80))
    found = drocox.audit(test, scores[40:], train=(train, scores[:40]))
    curves = literal.breslow_survival(scores[:40], train.time, train.event, scores[40:], test.time)
    expected = -np.log(np.diag(curves))
    members = test.groups["sex"] == 1
    row = found.table[found.table["group"] == "sex = 1"].iloc[0]
    ratio = test.event[members].sum() / expected[members].sum()
    assert row["calibration"] == pytest.approx(ratio, rel=1e-10)
    by_fold = {"a": (train, scores[:40]), "b": (train, scores[:40])}
    again = drocox.audit(test, scores[40:], folds=["a", "b"] * 20, train=by_fold)
    np.testing.assert_allclose(again.table["calibration"], found.table["calibration"])


def test_models_of_several_folds_are_not_compared():
    data, scores = simulated(n=150)
    fold = np.arange(150) % 3
    found = drocox.audit(data, scores, folds=fold)
    moved = drocox.audit(data, scores + 10.0 * fold, folds=fold + 7)
    numbers = found.table.columns[2:]
    np.testing.assert_allclose(moved.table[numbers], found.table[numbers], rtol=1e-9)
    assert np.allclose(moved.imparity["low"], found.imparity["low"])
    assert drocox.audit(data, scores).imparity["difference"][0] != found.imparity["difference"][0]


def test_the_old_name_of_imparity_warns():
    data, scores = simulated(n=90)
    found = drocox.audit(data, scores)
    with pytest.warns(DeprecationWarning, match="Audit.ci is now called Audit.imparity"):
        assert found.ci is found.imparity


# Intervals ----------------------------------------------------------------------------------


def test_critical_values():
    assert simultaneous(np.eye(1), 9)[0] == pytest.approx(stats.t.ppf(0.975, 9))
    assert simultaneous(4 * np.eye(1), 9)[1] == pytest.approx(2 * np.sqrt(2 / np.pi))
    for k in (2, 5):
        exact = stats.norm.ppf((1 + 0.95 ** (1 / k)) / 2)
        critical, floor = simultaneous(np.eye(k), 1e9)
        assert critical == pytest.approx(exact, abs=0.03)
        draws = np.abs(np.random.default_rng(1).standard_normal((100_000, k)))
        assert floor == pytest.approx(draws.max(axis=1).mean(), rel=0.02)
        critical, floor = simultaneous(4 * np.ones((k, k)), 1e9)
        assert critical == pytest.approx(1.96, abs=0.03)
        assert floor == pytest.approx(2 * np.sqrt(2 / np.pi), rel=0.02)
    critical, floor = simultaneous(np.diag([1.0, 0.0]), 1e9)
    assert critical == pytest.approx(1.96, abs=0.03)
    assert floor == pytest.approx([np.sqrt(2 / np.pi), 0], rel=0.02)


def test_each_estimate_has_degrees_of_freedom_of_its_own():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((200, 2))
    x[3:, 1] = 0  # three patients decide
    df = jackknife((x.sum(axis=0) - x) / 199)[1]
    assert df[0] > 50 and df[1] < 3
    together = simultaneous(np.eye(2), df)[0]
    assert together[0] == simultaneous(np.eye(2), df[0])[0][0]
    assert together[1] == simultaneous(np.eye(2), df[1])[0][0]
    assert together[0] < 2.4 < 4 < together[1]


def test_intervals_of_uneven_estimates_hold_together():
    rng = np.random.default_rng(4)
    root = np.linalg.cholesky([[1.0, 0.5, 0.2], [0.5, 4.0, 0.3], [0.2, 0.3, 9.0]])
    df = np.array([60.0, 4.0, 2.0])
    critical, _ = simultaneous(root @ root.T, df)
    errors = rng.standard_normal((100_000, 3)) @ root.T / np.linalg.norm(root, axis=1)
    errors /= np.sqrt(rng.chisquare(df, (100_000, 3)) / df)
    assert (np.abs(errors) <= critical).all(axis=1).mean() > 0.935


def test_a_small_group_leaves_the_others_their_intervals():
    """It is one more comparison, and no more than that."""
    data, scores = simulated(n=2000, minority=0.5, effects=(0.4, 0.2, 0.6))
    data = data.subset(data.event)
    scores = data.X[["a", "b", "c"]].to_numpy() @ [0.8, 0.5, 0]
    alone = replace(data, groups={"group": data.groups["group"]}, group_labels={})
    before = drocox.audit(alone, scores).imparity.iloc[0]
    assert before["beyond_noise"]
    sites = data.groups["group"].copy()
    sites[:7], sites[7:14] = 2, 3
    found = drocox.audit(replace(alone, groups={"group": sites}, group_labels={}), scores)
    after = found.imparity.set_index(["versus", "group"]).loc[("group = 0", "group = 1")]
    assert after["beyond_noise"] and found.sentence.startswith(
        "By group, ranking differs beyond noise."
    )
    wider = (after["high"] - after["low"]) / (before["high"] - before["low"])
    assert 1.2 < wider < 1.4  # 2.6 by 1.96: six pairs instead of one
    assert 1 < after["noise_floor"] / before["noise_floor"] < 2
    small = found.imparity.iloc[-1]
    assert small["group"] == "group = 3" and small["high"] - small["low"] > 30


def test_several_groups_are_compared_pair_by_pair_and_together():
    data, scores = simulated(n=300, groups=3)
    rows = drocox.audit(data, scores).imparity
    three = rows[rows["attribute"] == "group"]
    pairs = [("group = 1", "group = 0"), ("group = 2", "group = 0"), ("group = 2", "group = 1")]
    assert list(zip(three["group"], three["versus"], strict=True)) == pairs
    a, b, c = three["difference"]
    assert c == pytest.approx(b - a)
    pair = {"pair": (data.groups["group"] == 2).astype(int)}
    alone = replace(data, groups=pair, group_labels={})
    assert three["noise_floor"].min() > drocox.audit(alone, scores).imparity["noise_floor"].iloc[0]


def test_few_events_are_counted_and_not_judged():
    data, scores = simulated(n=100)
    few = np.zeros(100, int)
    few[np.flatnonzero(data.event)[:4]] = 1
    found = drocox.audit(replace(data, groups={"few": few}, group_labels={}), scores)
    last = found.table.iloc[-1]
    assert last["events"] == 4 and found.table.iloc[-1][[*MEASURES]].isna().all()
    assert found.imparity.empty
    assert found.sentence.startswith("By few, nothing to compare")
    assert "–" in page({"": found})
    assert "few = 1" in str(found)
    one = replace(data, groups={"one": np.zeros(100, int)}, group_labels={})
    assert drocox.audit(one, scores).sentence.startswith("By one, nothing to compare")


def test_scores_without_information():
    data, _ = simulated(n=100)
    found = drocox.audit(data, np.zeros(100))
    assert (found.table["c_index"] == 0.5).all() and (found.table["c_index_high"] == 0.5).all()
    assert not found.imparity["beyond_noise"].any() and found.slices.empty


def test_the_sentence_names_the_better_group_first():
    data, scores = simulated(n=1000, minority=0.4, effects=(-0.8, -0.5, 0))
    found = drocox.audit(data, scores)
    first, second = found.sentence.splitlines()[:2]
    assert first.startswith("By group, ranking differs beyond noise. group = 0 is ranked better")
    assert second.startswith("By sex, ranking does not differ beyond noise. The c-index is 0.")
    row = found.differences.iloc[0]
    assert row["measure"] == "c_index" and row["difference"] < 0 and row["high"] < 0
    assert f"{-row['difference']:.1f} points (95 % interval {-row['high']:.1f} to" in first
    assert "fair" not in found.sentence


# Groups nobody named ------------------------------------------------------------------------


def test_a_planted_group_is_found_and_judged_on_others():
    data, scores = simulated(n=2000, minority=0.25, effects=(-0.8, -0.5, 0))
    found = drocox.audit(data, scores).slices
    worst = found.iloc[0]
    assert worst["group"].startswith("member = 1")
    assert worst["high"] < 0 and worst["beyond_noise"]
    assert 0 < worst["patients"] < 0.35 * 1000  # of one half
    assert (found["noise_floor"] > 0).all()


def test_nothing_is_found_where_the_scores_say_all():
    alarms = 0
    for seed in range(5):
        data, scores = simulated(seed, n=800, effects=(0.8, 0.5, 0))
        alarms += drocox.audit(data, scores).slices["beyond_noise"].any()
    assert alarms <= 1


def test_descriptions_of_leaves():
    data, scores = simulated(n=1500, minority=0.3, effects=(-0.8, -0.5, 0))
    X = data.X.rename(columns={"member": "arm=B", "a": "dose"})
    X.loc[::7, "dose"] = np.nan
    names = drocox.audit(replace(data, X=X), scores).slices["group"]
    assert names[0].startswith("arm=B") and not names.str.contains("0.5").any()


# Input --------------------------------------------------------------------------------------


def test_wrong_input_is_named():
    data, scores = simulated(n=50)
    with pytest.raises(TypeError, match="SurvivalData with groups"):
        drocox.audit(data.X, scores)
    with pytest.raises(TypeError, match="SurvivalData with groups"):
        drocox.audit(replace(data, groups={}, group_labels={}), scores)
    with pytest.raises(ValueError, match="scores has 49, data has 50"):
        drocox.audit(data, scores[1:])
    with pytest.raises(ValueError, match="folds has 3"):
        drocox.audit(data, scores, folds=[1, 2, 3])
    with pytest.raises(ValueError, match="scores holds 1 NaN"):
        drocox.audit(data, np.append(scores[1:], np.nan))
    with pytest.raises(ValueError, match="the first in row 49; score these patients, or leave"):
        drocox.audit(data, np.append(scores[1:], np.nan))
    with pytest.raises(ValueError, match="scores in train has 3"):
        drocox.audit(data, scores, train=(data, scores[:3]))
    with pytest.raises(ValueError, match="folds leaves nobody to be compared with; use fewer"):
        drocox.audit(data, scores, folds=np.arange(50))
    with pytest.raises(ValueError, match="one label per patient, and none may be missing"):
        drocox.audit(data, scores, folds=np.append(np.ones(49), np.nan))
    rare = replace(data, event=np.arange(50) < 4)
    with pytest.raises(ValueError, match="4 event"):
        drocox.audit(rare, scores)


def test_wrong_training_parts_are_named():
    data, scores = simulated(n=50)
    fold = np.arange(50) % 3
    pair = (data, scores)
    with pytest.raises(ValueError, match=r"train lacks fold 1, 2; pass a pair \(SurvivalData, sc"):
        drocox.audit(data, scores, folds=fold, train={0: pair})
    with pytest.raises(ValueError, match="train is a mapping by fold; pass folds=, the fold of ea"):
        drocox.audit(data, scores, train={0: pair, 1: pair})
    for train in (scores, data, pair[:1], (scores, data), {0: pair, 1: scores, 2: pair}):
        folds = fold if isinstance(train, dict) else None
        with pytest.raises(TypeError, match=r"train must be a pair \(SurvivalData, scores"):
            drocox.audit(data, scores, folds=folds, train=train)


def test_eight_patients_are_enough():
    """Half of them may hold nobody to be compared with."""
    for seed in range(8):
        data, scores = simulated(seed, n=8)
        data = replace(data, event=np.arange(8) < 5)
        found = drocox.audit(data, scores, folds=np.arange(8) // 2)
        assert found.slices.empty and found.table["events"].iloc[0] == 5


def test_numbers_beyond_all_measure():
    data, scores = simulated(n=200)
    for factor in (1e3, 1e300):
        train = (data, scores)
        for found in (
            drocox.audit(data, factor * scores),
            drocox.audit(data, factor * scores, train=train),
        ):
            text = str(found) + page({"": found})
            assert max(map(len, str(found).splitlines())) <= 80
            assert "inf" not in text and "nan" not in text
            assert max(map(len, re.findall(r"\d+", text))) < 15
    assert findings.number_text(123.456) == "123.46" and findings.number_text(-2.25, 1) == "-2.2"
    assert findings.number_text(34443856993814.87) == "3.4e+13"


def test_a_feature_in_odd_units_is_searched():
    data, scores = simulated(n=800, minority=0.3, effects=(-0.8, -0.5, 0))
    X = data.X.assign(huge=1e39 * (1 + data.X["a"]), member=1e39 * data.X["member"])
    names = drocox.audit(replace(data, X=X), scores).slices["group"]
    assert names[0].startswith("member > ")


def test_labels_stay_distinct_when_they_are_shortened():
    alike = [
        f"black_male = {a}, other = {b}, black_female = {c}"
        for a in "01"
        for b in "01"
        for c in "01"
    ]
    for labels in (["short", *alike], alike[:2], [f"{'a' * 40}{k}{'b' * 40}" for k in range(12)]):
        short = terminal.short_labels(labels)
        assert len(set(short)) == len(labels) and max(map(len, short)) <= terminal.LABEL_WIDTH
    assert terminal.short_labels(alike[:2])[0] == "black_male =…k_female = 0"
    assert terminal.short_labels(["short"]) == ["short"]


def load(name):
    """A data set as its owner has it, and how to read it."""
    if name in ("rossi", "lung"):
        from lifelines import datasets

        df = getattr(datasets, f"load_{name}")()
        if name == "lung":
            return df.assign(status=df["status"] - df["status"].min()), "time", "status", ["sex"]
        return df, "week", "arrest", ["fin", "wexp"]
    from sksurv import datasets

    X, y = getattr(datasets, f"load_{name}")()
    event, time = y.dtype.names
    df = X.assign(**{time: y[time], event: y[event].astype(int)})
    groups = {"whas500": ["gender"], "gbsg2": ["menostat", "horTh"]}
    return df, time, event, groups.get(name, ["Treatment", "Prior_therapy"])


@pytest.mark.parametrize("name", ["rossi", "lung", "whas500", "gbsg2", "veterans_lung_cancer"])
def test_data_sets_of_other_packages(name):
    df, time, event, groups = load(name)
    data = drocox.SurvivalData.from_frame(df, time=time, event=event, groups=groups, name=name)
    half = np.arange(len(data)) % 2 == 0
    X = data.X.fillna(data.X.median()).to_numpy()
    model = CoxPHSurvivalAnalysis(alpha=1e-3).fit(X[half], data.y[half])
    train = (data.subset(half), model.predict(X[half]))
    found = drocox.audit(data.subset(~half), model.predict(X[~half]), train=train)
    judged = found.table[found.table["events"] >= FEWEST_EVENTS].set_index(["attribute", "group"])
    assert judged[[name for name in MEASURES if name not in AT_HORIZON]].notna().all(axis=None)
    patients = found._predictions.patients
    case = patients.event & (patients.time <= found.horizon)
    later = patients.time > found.horizon
    for grouping in found._groupings:
        for code, label in enumerate(grouping.labels):
            members = grouping.codes == code
            if (grouping.attribute, label) in judged.index:
                row = judged.loc[(grouping.attribute, label), [*AT_HORIZON]]
                fewest = min(case[members].sum(), later[members].sum())
                assert row.notna().all() == row.notna().any() == (fewest >= FEWEST_AT_HORIZON)
    assert set(found.imparity["attribute"]) == set(groups)
    assert found.sentence.count("beyond noise.") == len(groups)


# The page -----------------------------------------------------------------------------------


class Checked(HTMLParser):
    """Collects tags, and refuses tags that are closed by others."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def hostile():
    """The audit of data whose owner has a strange taste in names."""
    data, scores = simulated(n=400)
    labels = {"group": HOSTILE[:2], "sex": HOSTILE[2:4]}
    data = replace(data, name=HOSTILE[4], group_labels=labels)
    return drocox.audit(data, scores)


def test_the_page_is_whole_and_names_are_only_names(hostile, tmp_path):
    path = hostile.to_html(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    seen = Checked()
    seen.feed(text)
    seen.close()
    assert seen.open == []
    assert {"script", "link", "img", "iframe", "b"} & set(seen.tags) <= {"b"}
    assert not {"src", "href", "onclick"} & {name for name, _ in seen.attributes}
    links = [value for name, value in seen.attributes if name == "xlink:href"]
    links += re.findall(r"url\((.*?)\)", text)
    assert links and all(link.startswith("#") for link in links)  # to parts of the same drawing
    assert "http" not in text and "@import" not in text
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[4]):
        assert name not in text
    assert text.count("&lt;script&gt;") > 3 and "a &amp; b" in text
    labels = [value for name, value in seen.attributes if name == "aria-label"]
    assert HOSTILE[0] in labels[0]  # of the picture; the others are those of tables
    assert text.index("beyond noise.") < text.index("<figure>") < text.index("<table")
    assert 'name="viewport"' in text and "@media print" in text and "max-width: 40rem" in text
    assert hostile.to_html(tmp_path / "again.html").read_bytes() == path.read_bytes()


def test_text_and_picture(hostile):
    assert max(map(len, str(hostile).splitlines())) <= 80
    figure = hostile.plot()
    assert len(figure.axes) == 2
    figure.canvas.draw()  # a dollar in a name is no formula
    plt.close(figure)
