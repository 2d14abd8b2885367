"""``drocox audit``: from someone's file to a page, with errors that say what to correct."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sksurv.datasets import load_whas500
from test_audit_page import Checked

import drocox
from drocox import cli, estimator
from drocox.auditing import audit, files

ARGUMENTS = ["--time", "days", "--event", "died", "--groups", "sex"]
SCORED = [*ARGUMENTS, "--score", "risk"]
pytestmark = pytest.mark.usefixtures("undrawn")


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


BAD_COLUMNS = {
    "time misspelt": (
        {},
        ["--time", "day"],
        "--time: no column 'day'; did you mean 'days'? the columns are: days, d",
    ),
    "score misspelt": ({}, ["--score", "rsik"], "--score: no column 'rsik'; did you mean 'risk'?"),
    "group unknown": (
        {},
        ["--groups", "sex,race"],
        "--groups: no column 'race'; the columns are: days",
    ),
    "cut column unknown": ({}, ["--groups", "years>65"], "--groups: no column 'years'"),
    "cut at a word": (
        {},
        ["--groups", "age>old"],
        "'age>old' needs a number after >, as in age>65",
    ),
    "edge with two points": (
        {},
        ["--groups", "age:50,50.5.5"],
        "--groups: no column '50.5.5'; the columns are: days",
    ),
    "cut at a word, or equal": (
        {},
        ["--groups", "age>=old"],
        "'age>=old' needs a number after >=, as in age>65",
    ),
    "measurement as a group": (
        {},
        ["--groups", "age"],
        "distinct values; cut a measurement, as in --groups 'age>65' or 'age:50,65,75'; write "
        "numbers that are labels as text, such as 'no 12'",
    ),
    "time as a group": ({}, ["--groups", "days"], "--groups: 'days' is the outcome; leave it out"),
    "event as a group": ({}, ["--groups", "died"], "--groups: 'died' is the outcome; leave it out"),
    "cut time as a group": (
        {},
        ["--groups", "days>9"],
        "--groups: 'days' is the outcome; leave it out",
    ),
    "time is the event": (
        {},
        ["--time", "died"],
        "--time and --event are both 'died'; name two columns",
    ),
    "event as a score": ({}, ["--score", "died"], "--score: 'died' is the outcome; leave it out"),
    "event with a value as a score": (
        {},
        ["--event", "died=1", "--score", "died"],
        "--score: 'died' is the outcome; leave it",
    ),
    "value of the event unknown": (
        {},
        ["--event", "died=2"],
        "--event: 'died' never holds '2'; it holds: 0, 1",
    ),
    "event missing": (
        {"died": [np.nan]},
        ["--event", "died=1"],
        "--event: 'died' is missing for 1 patient, in",
    ),
    "event misspelt": ({}, ["--event", "did=1"], "--event: no column 'did'; did you mean 'died'?"),
    "page over the patients": (
        {},
        ["--out", "p.csv"],
        "p.csv is the file with the patients; name another one to write",
    ),
    "page in no folder": (
        {},
        ["--out", "nowhere/page.html"],
        "cannot write nowhere/page.html; name a file in a fo",
    ),
    "page is a folder": ({}, ["--out", "."], "cannot write .; name a file"),
    "page in a file": (
        {},
        ["--out", "p.csv/page.html"],
        "cannot write p.csv/page.html; name a file in a folder",
    ),
    "word among times": (
        {"days": ["x"]},
        [],
        "--time: 'days' holds 'x' in line 2, which is no number; write digits",
    ),
    "unit among times": (
        {"days": [1, "123 days"]},
        [],
        "'days' holds '123 days' in line 3, which is no number; wr",
    ),
    "point of thousands": (
        {"days": [1, 2, "1,234"]},
        [],
        "'1,234' in line 4, which is no number; write digits",
    ),
    "times are dates": (
        {"days": ["2020-01-31"] * 60},
        [],
        "--time: 'days' holds dates, such as 2020-01-31; pass",
    ),
    "times are German dates": (
        {"days": ["31.1.2020"] * 60},
        [],
        "'days' holds dates, such as 31.1.2020; pass the time",
    ),
    "event of words, name with a blank": (
        {"vital status": ["alive", "dead"] * 30},
        ["--event", "vital status"],
        "say which of them is the event, as in --event 'vital status=dead'",
    ),
    "event of words": (
        {"died": ["alive", "dead"] * 30},
        [],
        "'died' holds alive, dead; say which of them is the event, as in --event died=dead",
    ),
    "event of two numbers": (
        {"died": [1, 2] * 30},
        [],
        "--event: 'died' holds 1, 2; say which of them is the event, as in --event died=2",
    ),
    "event of three words": (
        {"died": ["alive", "dead", "lost"] * 20},
        [],
        "as in --event died=dead",
    ),
    "event of many numbers": (
        {"died": np.arange(60)},
        [],
        "'died' holds 0, 1, 10, 11, 12, 13, 14, 15, 16, 17, …; say",
    ),
    "nobody has the event": ({"died": 0}, [], "--event: nobody in p.csv has the event 'died'"),
    "negative time": ({"days": [-3]}, [], "--time: 'days' holds -3 in line 2; times start at 0"),
    "time missing": (
        {"days": [np.nan]},
        [],
        "--time: 'days' is missing for 1 patient, in line 2; complete it, or leave such patients "
        "out with --missing drop",
    ),
    "two times missing": (
        {"days": [1, None, None]},
        [],
        "missing for 2 patients, the first in line 3; complete it",
    ),
    "infinite time": (
        {"days": [np.inf]},
        [],
        "--time: 'days' holds 'inf' in line 2, which is no number",
    ),
    "word in a cut column": (
        {"age": ["old"]},
        ["--groups", "age>65"],
        "--groups: 'age' holds 'old' in line 2, which",
    ),
    "word in a feature": (
        {"age": ["old"]},
        [],
        "drocox: column 'age' holds 'old' among numbers; correct or blank",
    ),
    "one label": ({"sex": "f"}, [], "--groups: 'sex' holds one label, f; groups need two"),
    "too many labels": (
        {"sex": [f"s{i}" for i in range(60)]},
        ["--score", "risk"],
        "--groups: 'sex' holds 60 distinct labels, more than 50; merge",
    ),
    "word among scores": (
        {"risk": ["high"]},
        ["--score", "risk"],
        "--score: 'risk' holds 'high' in line 2, which",
    ),
    "score missing": (
        {"risk": [0, None]},
        ["--score", "risk"],
        "--score: 'risk' is missing for 1 patient, in l",
    ),
    "names as a feature": (
        {"name": [f"p{i}" for i in range(60)]},
        ["--features", "age,name"],
        "60 distinct labels, not 2 to 50; leave it out of --features",
    ),
    "time as a feature": ({}, ["--features", "days"], "--features: 'days' is the outcome"),
    "feature misspelt": (
        {},
        ["--features", "aeg"],
        "--features: no column 'aeg'; did you mean 'age'",
    ),
    "two events, scored": (
        {"died": [0] * 57},
        ["--score", "risk"],
        "p.csv has 2 event(s); an audit needs 5 or more",
    ),
    "two events, fitted": (
        {"died": [0] * 57},
        ["--features", "age"],
        "p.csv has 2 event(s); an audit needs 5 or more",
    ),
}


@pytest.mark.parametrize(("change", "arguments", "expected"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_bad_columns_are_refused_with_column_line_and_remedy(capsys, change, arguments, expected):
    df = frame().astype(object)
    for name, values in change.items():
        if isinstance(values, list):
            df.loc[: len(values) - 1, name] = values
        else:
            df[name] = values
    df.to_csv("p.csv", index=False)
    given = dict(zip(ARGUMENTS[::2], ARGUMENTS[1::2], strict=True))
    given |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    if not {"--score", "--features"} & set(given):
        given["--features"] = "age"
    pairs = [word for pair in given.items() for word in pair]
    said = answer(capsys, "p.csv", *pairs)
    assert expected in said
    assert not [name for name in os.listdir() if name.endswith(".html")]


@pytest.mark.slow
def test_scores_in_a_file_are_judged_without_torch():
    frame(120).to_csv("p.csv", index=False)
    program = "import sys; from drocox import cli; cli.main(); sys.exit('torch' in sys.modules)"
    arguments = ["audit", "p.csv", *ARGUMENTS, "--score", "risk"]
    run = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True)
    assert run.returncode == 0, run.stderr
    assert b"wrote p-audit.html" in run.stdout


def test_missing_files_folders_and_addresses_are_refused(capsys):
    assert "cannot read none.csv: there is no such file" in answer(capsys, "none.csv", *SCORED)
    os.mkdir("folder.csv")
    assert "folder.csv: [Errno 21] Is a directory" in answer(capsys, "folder.csv", *SCORED)
    for address in ("https://example.org/p.csv", "HTTP://example.org/p.csv", "s3://b/p.csv"):
        assert f"{address}: it is an address; download" in answer(capsys, address, *SCORED)


DAMAGED = {
    "empty": (b"", "p.csv: it is empty; pass a line of names"),
    "names only": (b"days,died,sex,age\n", "it holds no patient; pass at least one line"),
    "no text": (b"\x89PNG\r\n\x1a\n\x00\xff", "cannot read p.csv: it is no UTF-8 text; save it as"),
    "row too long": (
        b"days,died,sex\n1,1,f\n2,1,m,x,y\n",
        "cannot read p.csv: Expected 3 fields in line 3, s",
    ),
    "rows too long": (
        b"days,died,sex\n1,1,f,x\n2,1,m,x\n",
        "line 2 has 4 fields, and the first line 3 names;",
    ),
    "name twice but for a blank": (
        b"days,died,sex,days \n1,1,f,1\n",
        "it names 'days' twice; rename one",
    ),
}


@pytest.mark.parametrize(("content", "expected"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused_with_the_line(capsys, content, expected):
    Path("p.csv").write_bytes(content)
    assert expected in answer(capsys, "p.csv", *SCORED)


@pytest.mark.parametrize("suffix", ["xlsx", "dta", "SAV", "sas7bdat", "csv.zst"])
def test_files_of_unsupported_programs_are_refused_with_a_remedy(capsys, suffix):
    name = f"p.{suffix}"
    Path(name).write_bytes(b"PK\x03\x04\xff")
    said = answer(capsys, name, *SCORED)
    assert f"cannot read {name}: " in said and "; save it as CSV" in said


@pytest.mark.parametrize(("suffix", "package"), [("parquet", "pyarrow"), ("XLS", "xlrd")])
def test_a_package_that_is_missing_is_named(capsys, monkeypatch, suffix, package):
    monkeypatch.setattr(files.importlib.util, "find_spec", lambda name: None)
    name = f"p.{suffix}"
    Path(name).write_bytes(b"PK\x03\x04\xff")
    said = answer(capsys, name, *SCORED)
    assert f"run: pip install {package}; or save the file as CSV" in said


def written(df, suffix):
    """The name of a file with the table in it; skips where a package is missing."""
    path = Path(f"p.{suffix}")
    if suffix == "xlsx":
        pytest.importorskip("openpyxl")
        df.to_excel(path)  # with row numbers, whose column has no name
    elif suffix == "parquet":
        pytest.importorskip("pyarrow")
        df.to_parquet(path)
    else:
        df.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
def test_csv_excel_and_parquet_files_are_read(capsys, suffix):
    df = frame(120).assign(status=pd.Categorical(np.where(np.arange(120) % 2, "dead", "alive")))
    df.loc[3, "age"] = np.nan
    path = written(df, suffix)
    read = files.read_table(path)
    assert list(read) == list(df)
    read = read.reset_index(drop=True)
    pd.testing.assert_frame_equal(read, df, check_dtype=False, check_categorical=False)
    arguments = ["--time", "days", "--event", "status=dead", "--groups", "sex,age>65"]
    said = answer(capsys, path, *arguments, "--score", "risk", status=0)
    assert "sex = f" in said and "age = missing" in said and "wrote p-audit.html" in said


def test_a_sheet_that_names_a_column_twice_is_refused():
    pytest.importorskip("openpyxl")
    frame().rename(columns={"age": "days"}).to_excel("p.xlsx", index=False)
    with pytest.raises(ValueError, match="names 'days' twice"):
        files.read_table(Path("p.xlsx"))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["", "end"])
def test_any_separator_is_recognised(separator, ending):
    df = frame().assign(risk=np.round(frame()["risk"], 3))
    text = df.to_csv(index=False, sep=separator)
    if separator == ";":
        text = text.replace(".", ",")  # as in half of Europe
    if ending:
        head, *rows = text.splitlines()
        text = "\n".join([head, *(row + separator for row in rows)])
    Path("p.csv").write_text(text)
    read = files.read_table(Path("p.csv"))
    assert read.index.name == "line" and read.index.tolist() == list(range(2, 62))
    pd.testing.assert_frame_equal(read.reset_index(drop=True), df)


def test_columns_without_a_name_are_left_out():
    frame().to_csv("p.csv")  # with row numbers
    assert list(files.read_table(Path("p.csv"))) == list(frame())
    Path("p.csv").write_text("days,died,\n1,0,\n2,1,\n")
    assert list(files.read_table(Path("p.csv"))) == ["days", "died"]
    Path("p.csv").write_text("days,died\n1,0,,\n2,1,,\n")
    assert files.read_table(Path("p.csv")).to_numpy().tolist() == [[1, 0], [2, 1]]


def test_the_patients_are_never_overwritten(capsys):
    frame().to_csv("p.csv", index=False)
    before = Path("p.csv").read_bytes()
    os.symlink("p.csv", "link.html")
    os.link("p.csv", "twin.html")
    os.mkdir("folder")
    Path("notes.txt").write_text("precious")
    arguments = [*ARGUMENTS, "--score", "risk", "--out"]
    for name in ("p.csv", "link.html", "twin.html", "folder/../p.csv", Path("p.csv").absolute()):
        assert "is the file with the patients" in answer(capsys, "p.csv", *arguments, name)
    assert "is the file with the pat" in answer(capsys, "link.html", *arguments, "p.csv")
    assert "notes.txt exists and is no page" in answer(capsys, "p.csv", *arguments, "notes.txt")
    assert Path("p.csv").read_bytes() == before and Path("notes.txt").read_text() == "precious"
    os.symlink("later.html", "hanging.html")  # a link that leads nowhere stays, and nothing else
    files.check_target(Path("hanging.html"), Path("p.csv"))
    assert Path("hanging.html").is_symlink() and not Path("later.html").exists()
    for _ in range(2):  # a page may be written again
        assert "wrote new.html" in answer(capsys, "p.csv", *arguments, "new.html", status=0)


def test_a_page_that_cannot_be_written_in_the_end_is_said_in_a_line(capsys, monkeypatch):
    frame().to_csv("p.csv", index=False)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    said = answer(capsys, "p.csv", *ARGUMENTS, "--score", "risk")
    assert "drocox: [Errno 28] No space left on device" in said


def test_scores_need_no_other_column_and_fit_no_model(capsys):
    """However closely a column follows the outcome, it is used only if it is named."""
    df = frame(120).assign(note=[f"text {i}" for i in range(120)], entry="2020-01-01")
    df["lab"] = np.where(df["age"] > 80, np.inf, 1.0)
    df["months"] = df["days"] / 30.4
    df.to_csv("p.csv", index=False)
    said = answer(capsys, "p.csv", *ARGUMENTS, "--score", "risk", status=0)
    assert "was not asked, since no columns were named" in said and "months" not in said
    df[["days", "died", "sex", "risk"]].to_csv("q.csv", index=False)
    alone = answer(capsys, "q.csv", *ARGUMENTS, "--score", "risk", status=0)
    assert alone.split("events risk")[1].split("wrote")[0] in said
    more = [*ARGUMENTS, "--score", "risk", "--features", "age,months"]
    said = answer(capsys, "p.csv", *more, status=0)
    assert "No model was fitted here: months alone tells nearly who has the event" in said
    assert "ridge Cox" not in said and "Found by search" not in said
    named = answer(capsys, "p.csv", *more[:-1], "age", status=0)
    assert "A ridge Cox model of age, fitted to one group alone" in named
    assert "<dt>Features</dt><dd>age</dd>" in Path("p-audit.html").read_text(encoding="utf-8")


def test_missing_labels_are_a_group_of_their_own(capsys):
    df = frame(120).assign(site=np.arange(120) % 3 + 1.0, dose=np.arange(120.0))
    df.loc[:39, ["sex", "age", "site", "dose"]] = np.nan
    df["sex"] = df["sex"].replace("f", "missing")  # a label that somebody chose before
    df.to_csv("p.csv", index=False)
    groups = [*ARGUMENTS[:-1], "sex,age>=65,site,dose:60,90", "--score", "risk"]
    said = answer(capsys, "p.csv", *groups, status=0)
    assert "sex = missing" in said
    for column in ("age", "site", "dose"):
        assert f"{column} = missing 40 20" in said
    assert f"age = 65 or more {(df['age'] >= 65).sum()} " in said and "site = 1 " in said


def test_an_event_may_be_named_by_its_label(capsys):
    df = frame(120)
    df["status"] = np.where(df["died"] == 1, "dead", "alive")
    df["code"] = df["died"] + 1.0
    df["died=1"] = df["status"]  # a name with the sign in it
    df["cause"] = np.where(df["died"] == 1, "a=b", "c")
    rest = ["--time", "days", "--groups", "sex", "--score", "risk"]
    saying = set()
    df.to_csv("p.csv", index=False)
    for event in ("died", "status=dead", "code=2", "died=1=dead", "cause=a=b"):
        saying.add(answer(capsys, "p.csv", "--event", event, *rest, status=0))
    assert len(saying) == 1


def test_a_competing_event_is_warned_of(capsys):
    df = frame(120).rename(columns={"died": "status"})
    df.loc[df.index % 4 == 2, "status"] = 2
    df.to_csv("p.csv", index=False)
    rest = ["--time", "days", "--groups", "sex", "--score", "risk"]
    said = answer(capsys, "p.csv", *rest, "--event", "status=1", status=0)
    assert "Warning. status: 0, 2 all count as censored. If one of them is a competing" in said
    assert "0, 2 all count as censored" in Path("p-audit.html").read_text(encoding="utf-8")
    df["status"] = df["status"].replace(2, 0)
    df.to_csv("p.csv", index=False)
    said = answer(capsys, "p.csv", *rest, "--event", "status=1", status=0)
    assert "count as censored" not in said


def test_given_scores_are_judged(capsys):
    df = frame(120).rename(columns={"sex": " sex"})
    df[" sex"] = df[" sex"].map({"f": "=1+1", "m": "<b>\x1b[31mred"})
    df.to_csv("p.csv", index=False, encoding="utf-8-sig")
    groups = [*ARGUMENTS[:-1], "sex,age>65"]
    said = answer(capsys, "p.csv", *groups, "--score", "risk", "--unit", "weeks", status=0)
    start = "p.csv: 120 patients, 60 events risk By sex, with 95 % intervals: - Ranking (c-index): "
    assert said.startswith(start)
    assert said.endswith("wrote p-audit.html") and "\x1b" not in said
    page = Path("p-audit.html").read_text(encoding="utf-8")
    assert "<h2>risk</h2>" in page and "age = above 65" in page and "<b>\x1b" not in page
    assert re.search(r"50 % censored; median follow-up \d+ weeks\.", page)
    Checked().feed(page)


def test_without_scores_a_ridge_cox_model_of_the_named_columns_is_fitted(capsys):
    X, y = load_whas500()
    event, time = y.dtype.names
    df = X.assign(**{time: y[time], event: y[event].astype(int), "patient": range(len(X))})
    df.to_csv("heart.csv", index=False)
    arguments = ["heart.csv", "--time", time, "--event", event, "--groups", "gender,age>70"]
    said = answer(capsys, *arguments)
    assert "or --features, the columns of a Cox model to be fitted here" in said
    names = ["age", "bmi", "chf"]
    said = answer(capsys, *arguments, "--features", ",".join(names), status=0)
    assert "ridge Cox By gender, " in said and "in general better" not in said
    page = Path("heart-audit.html").read_text(encoding="utf-8")
    assert "by models fitted here, each to patients other than those it scores" in page
    data = drocox.SurvivalData.from_frame(df, time=time, event=event, features=names)
    plain = drocox.cross_fit(data)["scores"]  # with an event for seven patients: hardly shrunken
    c_index = drocox.accuracy.concordance_index(plain, data.time, data.event)
    everybody = said.split("everybody 500 215 ")[1].split()[0]
    assert float(everybody) == pytest.approx(c_index, abs=0.02)


def test_no_model_is_fitted_to_a_column_that_knows_the_outcome(capsys):
    df = frame(80).assign(visits=lambda df: df["days"] + 5 * (1 - df["died"]))
    df.to_csv("p.csv", index=False)
    said = answer(capsys, "p.csv", *ARGUMENTS, "--features", "age,visits")
    assert "visits alone tells nearly who has the event" in said and "leave it out" in said
    said = answer(capsys, "p.csv", *ARGUMENTS, "--score", "visits", "--later", status=0)
    assert "The predictions rank the patients almost perfectly" in said


def test_models_fitted_here_are_not_blamed_on_the_file(capsys, monkeypatch):
    """If their scores are far too extreme, there is no advice to pass other scores."""
    df = frame(120)
    df["risk"] -= df["days"] / 15
    df.to_csv("p.csv", index=False)
    monkeypatch.setattr(estimator.DROCox, "fit", _far_too_extreme)
    said = answer(capsys, "p.csv", *ARGUMENTS, "--features", "age,risk", status=0)
    assert "or far too extreme: their ranking is judged. Mean risk and slope are not sh" in said
    assert "Calibration is not shown" in said
    assert "pass log-hazards" not in said and "survival=" not in said


def _far_too_extreme(self, X, y):
    """A fit that does not train: scores are the last scaled feature, risk, three hundred times."""
    self.slope_ = 1.0
    self.predict = lambda X: 300 * np.asarray(X)[:, -1]
    return self


@pytest.mark.parametrize("name", ["p.csv.gz", "p.csv.zip", "p.csv.bz2", "p.csv.xz"])
def test_compressed_files_are_read(capsys, name):
    frame().to_csv(name, index=False)
    read = files.read_table(Path(name)).reset_index(drop=True)
    pd.testing.assert_frame_equal(read, frame())
    Path(name).write_bytes(b"damaged")
    assert f"cannot read {name}: " in answer(capsys, name, *SCORED)


def test_groups_may_be_sites_by_number_and_ages_in_bins(capsys):
    df = frame(480).assign(site=np.arange(480) % 12 + 1)
    df.to_csv("p.csv", index=False)
    groups = [*ARGUMENTS[:-1], "site,age:50,65,75", "--score", "risk"]
    said = answer(capsys, "p.csv", *groups, status=0)
    assert "site = 12 40 " in said and " for everybody, a difference of " in said
    page = Path("p-audit.html").read_text(encoding="utf-8")
    for label in ("below 50", "50 to below 65", "65 to below 75", "75 or more"):
        assert f"age = {label}" in page
    assert "By age, " in said and "age:50,65,75 =" not in page  # as the column is called
    wrong = [*ARGUMENTS[:-1], "age:65,50", "--score", "risk"]
    assert "edges must grow" in answer(capsys, "p.csv", *wrong)


def test_numbers_of_sites_are_labels_not_measurements(capsys, monkeypatch):
    """Neither a model nor the search asks whether a site has a number above six."""
    seen = []
    monkeypatch.setattr(audit, "audit", lambda data, **_: seen.extend(data.feature_names) or 1 / 0)
    df = frame(480).assign(site=np.arange(480) % 12 + 1, member=np.arange(480) % 2)
    df.to_csv("p.csv", index=False)
    with pytest.raises(ZeroDivisionError):
        cli.main(["audit", "p.csv", *ARGUMENTS[:-1], "site,member", "--score", "risk"])
    assert seen[-12:] == [*(f"site={k}" for k in range(2, 13)), "member"]


def test_survival_folds_and_small_cells_on_the_command_line(capsys):
    df = frame(240).assign(fold=np.arange(240) % 3)
    df["alive"] = 1 / (1 + np.exp(df["risk"]))
    df.to_csv("p.csv", index=False)
    at = str(df["days"].median())
    arguments = ["p.csv", *ARGUMENTS, "--survival", "alive", "--horizon", at]
    said = answer(capsys, *arguments, "--fold", "fold", "--smallest", "5", status=0)
    assert " alive " in said and "Observed / predicted risk: " in said
    page = Path("p-audit.html").read_text(encoding="utf-8")
    assert "--survival alive" in page and "240 read" in page and "TRIPOD+AI" in page
    said = answer(capsys, "p.csv", *ARGUMENTS, "--survival", "alive")
    assert "--survival needs --horizon" in said
    assert "--fold goes with --score" in answer(capsys, "p.csv", *ARGUMENTS, "--fold", "fold")


def test_risks_on_the_command_line_are_one_minus_survival(capsys):
    df = frame(240)
    df["alive"] = np.exp(-0.5 * np.exp(df["risk"]))
    df["dies"] = 1 - df["alive"]
    df["percent"] = 100 * df["dies"]
    df.to_csv("p.csv", index=False)
    rest = ["--horizon", "20"]
    by_survival = answer(capsys, "p.csv", *ARGUMENTS, *rest, "--survival", "alive", status=0)
    by_risk = answer(capsys, "p.csv", *ARGUMENTS, *rest, "--risk", "dies", status=0)
    assert "Observed / predicted risk: " in by_risk
    assert by_risk == by_survival.replace(" alive ", " dies ", 1)
    without_time = answer(capsys, "p.csv", *ARGUMENTS, "--risk", "dies")
    assert "--risk needs --horizon, the time of these probabilities" in without_time
    said = answer(capsys, "p.csv", *ARGUMENTS, *rest, "--risk", "percent")
    assert "--risk: 'percent' holds" in said and "divide percentages by 100" in said
    said = answer(capsys, "p.csv", *ARGUMENTS, *rest, "--survival", "risk")
    assert "which is no probability; pass scores with --score" in said
    said = answer(capsys, "p.csv", *ARGUMENTS, *rest, "--risk", "died")
    assert "--risk: 'died' is the outcome" in said


@pytest.mark.parametrize("other", ["--score", "--survival"])
def test_one_kind_of_prediction_at_a_time(capsys, other):
    frame().to_csv("p.csv", index=False)
    both = ["--risk", "age", other, "risk", "--horizon", "20"]
    said = answer(capsys, "p.csv", *ARGUMENTS, *both)
    assert f"{other} and --risk are both given; name columns of one kind of" in said


# Notes about the file ----------------------------------------------------------------


@pytest.mark.parametrize("argument", ["--score", "--risk"])
def test_two_models_of_one_file_are_compared(capsys, argument):
    df = frame(240)
    df["a"] = 1 / (1 + np.exp(-df["risk"]))
    df["b"] = 1 - df["a"] ** 2
    df.to_csv("p.csv", index=False)
    horizon = [] if argument == "--score" else ["--horizon", "20"]
    both = [*ARGUMENTS, *horizon, argument, "a", argument, "b"]
    said = answer(capsys, "p.csv", *both, status=0)
    assert "b against a: c-index 0." in said and said.count(" By sex, ") == 2
    page = Path("p-audit.html").read_text(encoding="utf-8")
    assert "<h2>a and b, side by side</h2>" in page and "b minus a" in page
    assert f"given in the file, as {argument[2:]}: a, b" in page
    twice = [*ARGUMENTS, *horizon, argument, "a", argument, "a"]
    assert f"{argument} names a column twice; name two" in answer(capsys, "p.csv", *twice)


@pytest.mark.parametrize(
    ("name", "value"), [("--time", "age"), ("--event", "age=1"), ("--out", "x")]
)
def test_no_argument_is_silently_lost(capsys, name, value):
    frame().to_csv("p.csv", index=False)
    said = answer(capsys, "p.csv", *ARGUMENTS, "--out", "a.html", name, value)
    assert f"{name} is given twice; give it once" in said


def test_groups_and_features_may_be_named_one_by_one(capsys):
    frame(240).assign(lab=np.arange(240) % 7).to_csv("p.csv", index=False)
    more = ["--groups", "age>65", "--features", "age", "--features", "lab", "--score", "risk"]
    said = answer(capsys, "p.csv", *ARGUMENTS, *more, status=0)
    assert "By sex," in said and "By age," in said and "of age and lab" in said


def test_names_may_contain_a_comma(capsys):
    df = frame(240).rename(columns={"age": "age, years", "sex": "sex, at birth", "days": "t, d"})
    df["lab, first"] = np.arange(240) % 7
    df.to_csv("p.csv", index=False)
    groups = "sex, at birth,age, years>65,age, years:50,65"
    rest = ["--time", "t, d", "--event", "died", "--score", "risk"]
    rest += ["--features", "age, years,lab, first"]
    said = answer(capsys, "p.csv", *rest, "--groups", groups, status=0)
    for label in ("sex, at birth = f", "age, years>65 = above 65", "= 50 to below 65"):
        assert label in " ".join(Path("p-audit.html").read_text(encoding="utf-8").split()).replace(
            "&gt;", ">"
        )
    assert "of age, years and lab, first" in said


def test_patients_without_follow_up_are_left_out_and_counted(capsys):
    df = frame(240).astype({"days": float, "died": float})
    df.loc[[3, 4], "days"] = np.nan
    df.loc[7, "died"] = np.nan
    df.loc[[4, 9], "risk"] = np.nan
    df.to_csv("p.csv", index=False)
    arguments = [*ARGUMENTS, "--score", "risk"]
    assert "leave such patients out with --missing drop" in answer(capsys, "p.csv", *arguments)
    said = answer(capsys, "p.csv", *arguments, "--missing", "drop", status=0)
    words = "240 read, 236 used; left out: 2 without days, 1 without died, 2 without risk"
    assert f"Rows: {words}." in said and said.startswith("p.csv: 236 patients,")
    assert words in Path("p-audit.html").read_text(encoding="utf-8")
    df.dropna().to_csv("q.csv", index=False)
    alone = answer(capsys, "q.csv", *arguments, status=0)
    assert alone.split("events risk")[1].split("Rows")[0].split("wrote")[0] in said


def test_times_of_0_and_imputed_values_are_mentioned(capsys):
    df = frame(120)
    df.loc[[0, 5], "days"] = 0
    df.loc[:6, "age"] = np.nan
    df.to_csv("p.csv", index=False)
    named = [*ARGUMENTS, "--features", "age"]
    said = answer(capsys, "p.csv", *named, "--score", "risk", status=0)
    assert "Times: 2 patients have a time of 0; check that this is meant." in said
    assert "Missing values: replaced by medians where a model is fitted: age (7)." in said
    assert "a time of 0" in Path("p-audit.html").read_text(encoding="utf-8")


def test_errors_name_the_line_of_the_file(capsys):
    """Lines may be empty, and a text in quotes may go over several."""
    named = [*ARGUMENTS, "--features", "sex"]
    text = 'days,died,sex,note\n1,1,f,a\n\n2,0,m,"over\ntwo lines"\n3,1,f,b\nx,1,m,c\n'
    Path("p.csv").write_text(text)
    assert "'days' holds 'x' in line 7, which is no" in answer(capsys, "p.csv", *named)
    text = "days;died;sex\n1,5;1;f\n2,5;0;m\n3,5;1;f\n4,5 days;1;m\n"
    Path("p.csv").write_text(text)
    assert "'days' holds '4,5 days' in line 5, which" in answer(capsys, "p.csv", *named)


def test_folds_are_kept_apart(capsys):
    """The scores of the second fold are far higher, so that patients of both cannot be compared."""
    df = frame(240)
    df["fold"] = np.where(np.arange(240) % 2, "one", "two")
    df["risk"] = -df["days"] / 10 + 9 * (df["fold"] == "two") + df["risk"]
    df.to_csv("p.csv", index=False)
    data = drocox.SurvivalData.from_frame(df, time="days", event="died", groups=["sex"])
    c_index = drocox.audit(data, df["risk"], folds=df["fold"]).table["c_index"][0]
    apart = answer(capsys, "p.csv", *ARGUMENTS, "--score", "risk", "--fold", "fold", status=0)
    mixed = answer(capsys, "p.csv", *ARGUMENTS, "--score", "risk", status=0)
    assert f"everybody 240 {df['died'].sum()} {c_index:.2f} " in apart
    assert f"everybody 240 {df['died'].sum()} {c_index:.2f} " not in mixed


def test_predicted_times_need_no_other_file(capsys):
    df = frame(240)
    df["lasts"] = df["days"] * np.exp(df["risk"] / 4)
    df["early"] = -df["lasts"]
    df.to_csv("p.csv", index=False)
    by_sign = answer(capsys, "p.csv", *ARGUMENTS, "--score", "early", status=0)
    by_word = answer(capsys, "p.csv", *ARGUMENTS, "--score", "lasts", "--later", status=0)
    assert by_word == by_sign.replace(" early ", " lasts ")
    said = answer(capsys, "p.csv", *ARGUMENTS, "--risk", "lasts", "--horizon", "9", "--later")
    assert "--later says what scores mean; it goes with --score" in said


def test_options_are_not_abbreviated(capsys):
    frame().to_csv("p.csv", index=False)
    said = answer(capsys, "p.csv", *ARGUMENTS, "--scor", "risk")
    assert "unrecognized arguments: --scor" in said
