"""``drocox audit``: from someone's file to a page, and what is said of files that are no good."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_report import Checked, load

from drocox import cli, estimator

ARGUMENTS = ["--time", "days", "--event", "died", "--groups", "sex"]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def frame(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "days": rng.integers(1, 50, n),
            "died": np.arange(n) % 2,
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
            "age": rng.integers(40, 90, n),
            "risk": rng.standard_normal(n),
        }
    )


def answer(capsys, *arguments, status=2):
    """What is said on the terminal, in one line, once status and width are checked."""
    try:
        assert cli.main(["audit", *map(str, arguments)]) == status
    except SystemExit as stop:
        assert stop.code == status
    out, err = capsys.readouterr()
    said = out + err
    assert max(map(len, said.splitlines())) <= 80 and "Traceback" not in said
    return " ".join(said.split())


@pytest.mark.parametrize(
    ("change", "arguments", "expected"),
    [
        (
            {},
            ["--time", "day"],
            "time: no column 'day'; did you mean 'days'? the columns are: days, d",
        ),
        ({}, ["--score", "rsik"], "--score: no column 'rsik'; did you mean 'risk'?"),
        ({}, ["--groups", "sex,race"], "--groups: no column 'race'; the columns are: days"),
        ({}, ["--groups", "years>65"], "--groups: no column 'years'"),
        ({}, ["--groups", "age>old"], "'age>old' needs a number after >, as in age>65"),
        ({}, ["--groups", "age"], "distinct values; bin them, as in --groups 'age>65'"),
        ({}, ["--groups", "days"], "groups['days'] has"),
        ({}, ["--out", "nowhere/page.html"], "cannot write nowhere/page.html; name a file in a fo"),
        ({}, ["--out", "."], "cannot write .; name a file"),
        ({"days": ["x"]}, [], "time column 'days' must be numeric, not object; convert to"),
        ({"died": ["yes"]}, [], "event column 'died' must be numeric, not object"),
        ({"died": [2]}, [], "event column 'died' must be 0/1 or boolean"),
        ({"died": 0}, [], "nobody has an event"),
        ({"days": [-3]}, [], "time column 'days' holds negative values; durations start at 0"),
        ({"days": [np.nan]}, [], "time column 'days' holds 1 NaN or infinite value(s)"),
        ({"days": [np.inf]}, [], "time column 'days' holds 1 NaN or infinite value(s)"),
        ({"sex": [np.nan]}, [], "groups['sex'] holds missing values; give every patient a group"),
        ({"age": [np.nan]}, ["--groups", "age>65"], "groups['age>65'] holds missing values"),
        ({"age": ["old"]}, ["--groups", "age>65"], 'Unable to parse string "old" at position 0'),
        ({"age": ["old"]}, [], "feature column 'age' holds 'old' among numbers; correct or"),
        ({"sex": "f"}, [], "groups['sex'] holds a single group"),
        ({"risk": ["high"]}, ["--score", "risk"], "scores must be numeric"),
        ({"risk": [np.nan]}, ["--score", "risk"], "scores holds 1 NaN"),
        (
            {"name": [f"p{i}" for i in range(60)]},
            [],
            "60 distinct labels, not 2 to 50; leave it out with --drop",
        ),
        ({"died": [0] * 57}, ["--score", "risk"], "data has 2 event(s); an audit needs 5 or more"),
        ({"died": [0] * 57}, [], "data has 2 event(s), too few for folds=5"),
    ],
)
def test_what_the_owner_of_a_bad_file_reads(capsys, change, arguments, expected):
    df = frame().astype(object)
    for name, values in change.items():
        if isinstance(values, list):
            df.loc[: len(values) - 1, name] = values
        else:
            df[name] = values
    df.to_csv("p.csv", index=False)
    given = dict(zip(ARGUMENTS[::2], ARGUMENTS[1::2], strict=True))
    given |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    pairs = [word for pair in given.items() for word in pair]
    said = answer(capsys, "p.csv", *pairs)
    assert expected in said
    assert ("--drop COLUMN" in said) == ("distinct labels" in said)
    assert not [name for name in os.listdir() if name.endswith(".html")]


def test_files_that_are_none(capsys):
    assert "cannot read none.csv: there is no such file" in answer(capsys, "none.csv", *ARGUMENTS)
    os.mkdir("folder.csv")
    assert "folder.csv: [Errno 21] Is a directory" in answer(capsys, "folder.csv", *ARGUMENTS)
    open("empty.csv", "w").close()
    assert "empty.csv: No columns to parse" in answer(capsys, "empty.csv", *ARGUMENTS)
    with open("header.csv", "w") as file:
        file.write("days,died,sex,age\n")
    assert "is empty; pass at least one patient" in answer(capsys, "header.csv", *ARGUMENTS)
    with open("picture.csv", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n\x00\xff")
    assert "cannot read picture.csv: " in answer(capsys, "picture.csv", *ARGUMENTS)
    with open("ragged.csv", "w") as file:
        file.write("days,died,sex\n1,1,f\n2,1,m,x,y\n")
    assert "cannot read ragged.csv: " in answer(capsys, "ragged.csv", *ARGUMENTS)


def test_given_scores_are_judged(capsys):
    df = frame(120).rename(columns={"sex": " sex"})
    df[" sex"] = df[" sex"].map({"f": "=1+1", "m": "<b>\x1b[31mred"})
    df.to_csv("p.csv", index=False, encoding="utf-8-sig")
    said = answer(capsys, "p.csv", *ARGUMENTS[:-1], "sex,age>65", "--score", "risk", status=0)
    assert said.startswith("risk By sex, no difference beyond noise:")
    assert said.endswith("wrote p-audit.html") and "\x1b" not in said
    page = Path("p-audit.html").read_text(encoding="utf-8")
    assert "<h2>risk</h2>" in page and "age&gt;65 = True" in page and "<b>\x1b" not in page
    Checked().feed(page)


def test_without_scores_two_models_are_fitted(capsys, monkeypatch):
    df, time, event, _ = load("whas500")
    df.assign(patient=range(len(df))).to_csv("heart.csv", index=False)
    fitted = []
    monkeypatch.setattr(estimator.DROCox, "fit", _quick(fitted))
    arguments = ["--time", time, "--event", event, "--groups", "gender,age>70", "--drop", "patient"]
    said = answer(capsys, "heart.csv", *arguments, "--out", "page.html", status=0)
    assert said.startswith("Cox By gender,") and "DRO-COX, α = 0.2 By gender," in said
    assert fitted == [1.0] * 5 + [0.2] * 5
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.count("<h2>") == 3 and page.count("<svg") == 2 and "heart.csv" in page


def _quick(fitted):
    """A fit that does not train: scores are the first scaled feature, age."""

    def fit(self, X, y):
        fitted.append(self.alpha)
        self.predict = lambda X: np.asarray(X)[:, 0]
        return self

    return fit


def test_a_million_patients(capsys):
    """Reading and judging as many takes a minute at most; the judging alone is tried here."""
    rows = frame(20_000)
    rows.to_csv("many.csv", index=False)
    said = answer(capsys, "many.csv", *ARGUMENTS, "--score", "risk", status=0)
    assert "everybody 20000 10000" in said
