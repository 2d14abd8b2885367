"""Columns of somebody's file: labels with spaces, edges of cuts, columns that are not features."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cohort import simulated

import drocox
from drocox import cli
from drocox.auditing import files
from drocox.auditing.columns import group_column
from drocox.auditing.groupings import groupings_of


@pytest.fixture
def said(capsys, monkeypatch, tmp_path, undrawn):
    """What the command says about a table."""
    monkeypatch.chdir(tmp_path)

    def run(df, *arguments, file="p.csv"):
        if file.endswith(".csv"):
            df.to_csv(file, index=False)
        else:
            df.to_excel(file, index=False)
        options = ["--time", "days", "--event", "died", *arguments]
        assert cli.main(["audit", file, *options]) == 0
        return " ".join(capsys.readouterr().out.split())

    return run


def frame(n=400, seed=0, **columns):
    data, scores = simulated(seed, n=n)
    days, died = data.time, data.event.astype(int)
    return pd.DataFrame({"days": days, "died": died, "risk": scores} | columns)


@pytest.mark.parametrize("file", ["p.csv", "p.xlsx"])
def test_spaces_around_labels_in_a_file_are_ignored(said, file):
    sex = np.tile(["male", "male ", " female", "female", "  "], 80)
    text = said(frame(sex=sex), "--groups", "sex", "--score", "risk", file=file)
    for label in ("male 160", "female 160", "missing 80"):
        assert text.count(f"sex = {label} ") == 1


def test_patients_at_an_edge_belong_to_the_part_above(said):
    age = np.repeat([49, 50, 64, 65, 66], 80)
    text = said(frame(age=age), "--groups", "age:50,65", "--score", "risk")
    for label in ("age = below 50 80 ", "age = 50 to below 65 160 ", "age = 65 or more 160 "):
        assert label in text


def test_the_search_uses_the_columns_that_are_named(said):
    """Patients of one arm with high scores are badly served; only the arm may be named."""
    rng = np.random.default_rng(0)
    n = 2000
    scores, arm = rng.normal(size=n), rng.integers(0, 2, n)
    hazard = np.exp(np.where((arm == 1) & (scores > 0), -2 * scores, 1.5 * scores))
    death, leaves = rng.exponential(1 / hazard), rng.exponential(2, n)
    df = pd.DataFrame({"days": np.minimum(death, leaves), "died": (death <= leaves).astype(int)})
    df["site"], df["arm"], df["given"] = rng.integers(0, 2, n), arm, scores
    options = ["--groups", "site", "--score", "given"]
    assert "Found by search: arm = 1" in said(df, *options, "--features", "arm")
    assert "Found by search" not in said(df, *options)


@pytest.mark.parametrize("number", [9, 10])
def test_a_page_tells_no_small_number_of_patients(said, number):
    """Neither of gaps, nor of times at 0, nor of patients who are left out."""
    rng = np.random.default_rng(0)
    df = frame(sex=np.tile(["f", "m"], 200), bmi=rng.normal(size=400), dose=rng.normal(size=400))
    df.loc[: number - 1, "bmi"] = np.nan
    df.loc[20 : 19 + number, "days"] = 0
    df.loc[60 : 59 + number, "risk"] = np.nan
    options = ["--groups", "sex", "--score", "risk", "--missing", "drop", "--features", "bmi,dose"]
    words = [f"bmi ({number})", f"{number} patients have a time of 0", f"{number} without risk"]
    text = said(df, *options)
    shy = said(df, *options, "--smallest", "10")
    page = " ".join(Path("p-audit.html").read_text(encoding="utf-8").split())
    assert all(word in text for word in words)
    if number < 10:
        assert "bmi (fewer than 10)" in shy and "fewer than 10 patients have a time of 0" in shy
        assert "391 used, fewer than 10 left out" in shy
        for told in (shy, page):
            assert not any(word in told for word in words) and "400 read" not in told
    else:
        assert all(word in shy and word in page for word in words)


def test_few_gaps_of_one_column_cannot_be_told_from_those_of_others(said):
    df = frame(sex=np.tile(["f", "m"], 200))
    df.loc[:19, "risk"] = np.nan
    df.loc[30:32, "days"] = np.nan
    options = ["--groups", "sex", "--score", "risk", "--missing", "drop", "--smallest", "10"]
    text = said(df, *options)
    assert "left out: those without days or risk" in text and "20 without" not in text


def test_labels_that_look_the_same_are_one_group(said):
    sex = np.tile(["féminin", "fe\u0301minin", "f\u200béminin", "masculin", "masculin\ufeff"], 80)
    text = said(frame(sex=sex), "--groups", "sex", "--score", "risk")
    assert "sex = féminin 240 " in text and "sex = masculin 160 " in text
    data = drocox.SurvivalData.from_arrays(np.arange(400), np.ones(400), groups={"sex": sex})
    assert data.group_labels["sex"] == ("sex = féminin", "sex = masculin")
    assert np.bincount(data.groups["sex"]).tolist() == [240, 160]


def test_labels_that_differ_in_capitals_only_are_noted(said):
    sex = np.tile(["FEMALE", "female", "male", "male"], 100)
    text = said(frame(sex=sex), "--groups", "sex", "--score", "risk")
    assert "sex = FEMALE and sex = female differ in capital letters only; they are judged" in text
    assert "sex = female 100 " in text


@pytest.mark.parametrize("label", ["nan", "None", "", "NaN"])
def test_labels_that_look_like_none_are_noted(label):
    data, scores = simulated(n=200)
    groups = {"sex": np.tile(["m", label], 100)}
    given = drocox.SurvivalData.from_arrays(data.time, data.event, groups=groups)
    found = drocox.audit(given, scores)
    assert f"'sex = {label}' looks like a missing label; it is judged as a group." in found.sentence
    assert found.table.set_index("group").loc[f"sex = {label}", "patients"] == 100
    plain = drocox.SurvivalData.from_arrays(data.time, data.event, groups={"sex": [*"mf"] * 100})
    assert "looks like" not in drocox.audit(plain, scores).sentence


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"sex": ("x", "x")}, r"group_labels\['sex'\] names 'x' twice; give each code its own"),
        ({"sex": ("everybody", "x")}, "holds 'everybody', the name of all patients; choose anoth"),
        (
            {"sex": ("x, y", "x"), "site": ("z", "y, z")},
            "two intersections would be called 'x, y, z'; leave commas out",
        ),
    ],
    ids=["equal labels", "everybody", "commas"],
)
def test_labels_that_would_lose_a_group_are_refused(labels, message):
    data, scores = simulated(n=200)
    codes = {"sex": np.arange(200) % 2, "site": np.arange(200) // 2 % 2}
    groups = {name: codes[name] for name in labels}
    with pytest.raises(ValueError, match=message):
        drocox.audit(replace(data, groups=groups, group_labels=labels), scores)


@pytest.mark.parametrize("cells", [64, 65])
def test_sixty_four_intersections_are_judged_and_no_more(cells):
    a, b = np.unravel_index(np.arange(cells), (8, 9))
    X = pd.DataFrame({"x": np.zeros(cells)})
    groups = {"a": a, "b": b}
    data = drocox.SurvivalData("d", X, np.ones(cells), np.full(cells, True), groups)
    groupings, notes = groupings_of(data)
    assert (groupings[-1].attribute == "a × b") == (cells == 64)
    note = "The 65 intersections of 2 attributes are not judged; judge fewer attributes together."
    assert notes == [note] * (cells == 65)


@pytest.mark.parametrize("ending", ["", ";"])
def test_points_of_thousands_are_not_taken_for_decimal_points(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)

    def read(*costs):
        rows = [f"{k};1;f;{cost}{ending}" for k, cost in enumerate(costs, 1)]
        Path("p.csv").write_text("\n".join(["days;died;sex;cost", *rows]))
        return files.read_table(Path("p.csv"))["cost"].tolist()

    for costs in (("1.234", "999"), ("0", "12.000", ""), ("-1.234", "1.000")):
        with pytest.raises(ValueError, match=r"'cost' holds .* in line \d, which may be \d*"):
            read(*costs)
    assert read("1.234", "0.5") == [1.234, 0.5]
    assert read("1.2340", "999") == [1.234, 999]
    assert read("1,234", "999") == [1.234, 999]
    assert read("0.123", "0.456") == [0.123, 0.456]


def test_rows_that_occur_twice_are_noted(said):
    df = frame(n=200, sex=np.tile(["f", "m"], 100))
    options = ["--groups", "sex", "--score", "risk"]
    words = "At least half of the rows are copies of others."
    assert words not in said(df, *options)
    assert words in said(pd.concat([df, df]), *options)
    other = df.assign(dose=1.0)
    assert words not in said(pd.concat([df.assign(dose=0.0), other]), *options)


@pytest.mark.parametrize(
    ("cut", "labels"),
    [
        ("age>65", ["65 or less", "65 or less", "above 65", "above 65"]),
        ("age<=65", ["65 or less", "65 or less", "above 65", "above 65"]),
        ("age>=65", ["below 65", "65 or more", "65 or more", "65 or more"]),
        ("age<65", ["below 65", "65 or more", "65 or more", "65 or more"]),
        ("age:65,70", ["below 65", "65 to below 70", "65 to below 70", "70 or more"]),
    ],
)
def test_a_value_at_an_edge_is_in_the_group_that_its_sign_names(cut, labels):
    df = pd.DataFrame({"age": [64, 65, 66, 70]})
    assert group_column(df, cut, ()).tolist() == labels
