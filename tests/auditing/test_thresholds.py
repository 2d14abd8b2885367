"""Decisions at a threshold in the audit: asked for, by group, and hidden where they must be."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from cohort import simulated

import drocox
from drocox import cli
from drocox.auditing.measures import DECISIONS
from drocox.auditing.page import page
from drocox.auditing.predictions import predictions, with_threshold

pytestmark = pytest.mark.usefixtures("undrawn")


def given(n=800, seed=3, minority=0.4):
    """Patients of a fast and a slow group, and survival up to time 0.5 by the right model."""
    data, scores = simulated(seed, n=n, minority=minority, effects=(0.8, 0.5, 0))
    return data, {"survival": np.exp(-0.5 * np.exp(scores)), "times": 0.5}


def test_decisions_are_shown_if_they_are_asked_for():
    data, survival = given()
    plain = drocox.audit(data, **survival)
    found = drocox.audit(data, **survival, threshold=0.4)
    columns = [name + end for name in DECISIONS for end in ("", "_low", "_high")]
    assert not set(columns) & set(plain.table.columns) and plain.threshold is None
    assert not set(DECISIONS) & set(plain.differences["measure"])
    assert "Decisions" not in page({"": plain}) and "threshold" not in plain.sentence
    pd.testing.assert_frame_equal(found.table[plain.table.columns], plain.table)
    assert list(found.table.columns) == [*plain.table.columns, *columns]
    kept = found.differences[~found.differences["measure"].isin(DECISIONS)]
    pd.testing.assert_frame_equal(kept.reset_index(drop=True), plain.differences)

    row = found.table.set_index("group").loc["sex = 1"]
    members = data.groups["sex"] == 1
    flagged = members & (survival["survival"] <= 0.6)
    assert row["flagged"] == pytest.approx(flagged.sum() / members.sum())
    early = data.event & (data.time <= 0.5)
    assert row["ppv"] == pytest.approx(early[flagged].sum() / flagged.sum(), abs=0.1)
    for name in DECISIONS:
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"], name
        mine = found.differences[found.differences["measure"] == name]
        compared = name != "net_benefit"  # which differs where risks do
        assert set(mine["attribute"]) == ({"group", "sex"} if compared else set())
    assert json.loads(found.to_json())["threshold"] == 0.4
    assert json.loads(plain.to_json())["threshold"] is None


def test_a_line_and_a_table_say_what_a_threshold_does():
    """The model is wrong for group 1, where it predicts a third of the hazard."""
    data, survival = given()
    survival["survival"] **= np.where(data.groups["group"] == 1, 1 / 3, 1.0)
    found = drocox.audit(data, **survival, threshold=0.4)
    everybody = found.table.iloc[0]
    said = "At a threshold of 0.4 for the risk up to time 0.5, of everybody: flagged "
    assert f"{said}{everybody['flagged']:.3f} (95 % interval 0." in found.sentence
    ends = f"{everybody['ppv_low']:.3f} to {everybody['ppv_high']:.3f}"
    assert f"PPV {everybody['ppv']:.3f} ({ends})." in found.sentence
    by_group, by_sex = found.sentence.split("By sex, ")
    said = r"- Flagged: differs, which need not be a fault\. It is 0\.\d+ for group = 1"
    assert re.search(said, by_group)
    for title in ("Flagged", "Sensitivity", "Specificity", "PPV"):
        assert f"- {title}: cannot tell. It is 0." in by_sex
    assert max(map(len, str(found).splitlines())) <= 80 and "At a threshold of 0.4" in str(found)
    table = BeautifulSoup(page({"": found}), "html.parser").select_one("table.decisions")
    rows = [[cell.get_text(" ") for cell in row.select("td")] for row in table.select("tr")[1:]]
    assert [row[0] for row in rows[:2]] == ["everybody", "group = 0"]
    assert rows[0][1].startswith(f"{everybody['flagged']:.3f} ")
    pair = next(row for row in rows if row[0] == "group = 1 against group = 0")
    difference = found.differences.set_index(["measure", "group"]).loc["flagged", "group = 1"]
    assert pair[1].startswith(f"{difference['difference']:.3f}".replace("-", "−"))
    assert table.select("b")


def test_models_are_compared_in_their_decisions():
    data, survival = given()
    noise = np.exp(1.5 * np.random.default_rng(0).normal(size=len(data)))
    survival["survival"] = {"right": survival["survival"], "noisy": survival["survival"] ** noise}
    both = drocox.audit(data, **survival, threshold=0.4)
    rows = both.paired[both.paired["measure"] == "net_benefit"].set_index("group")
    assert rows.loc["everybody", "says"] == "differ" and rows.loc["everybody", "difference"] < 0
    assert {"group = 0", "group = 1", "sex = 0"} <= set(rows.index)


@pytest.mark.parametrize("threshold", [0, 1, 20, -0.1, "0.2", True, np.nan])
def test_a_threshold_is_a_risk(threshold):
    data, survival = given(n=100)
    with pytest.raises((TypeError, ValueError), match=r"threshold must .* between 0 and 1"):
        drocox.audit(data, **survival, threshold=threshold)


def test_a_threshold_needs_risks():
    data, scores = simulated(n=300)
    words = "threshold needs risks up to the horizon; pass risk= with horizon=, survival= with"
    with pytest.raises(ValueError, match=words):
        drocox.audit(data, scores, threshold=0.2)
    known = drocox.audit(data, scores, train=(data, scores), threshold=0.2).table
    assert known["net_benefit"].notna().all()


def test_decisions_tell_of_no_small_group():
    """Few of group 1 are flagged: with smallest, its decisions and those of others are hidden."""
    data, survival = given()
    few = np.flatnonzero(data.groups["group"] == 1)[12:]
    survival["survival"][few] = 0.9
    shown = drocox.audit(data, **survival, threshold=0.4)
    assert shown.table["ppv"].notna().sum() > 3
    found = drocox.audit(data, **survival, threshold=0.4, smallest=10)
    assert found.table["patients"].notna().all()
    assert found.table["ppv"].notna().tolist() == [True] + [False] * 8
    assert not set(DECISIONS) & set(found.differences["measure"])
    assert "Decisions are shown for everybody only: in some group fewer than 10" in found.sentence
    assert set(found.compare(shown).query("measure == 'ppv'")["group"]) == {"everybody"}
    data, survival = given(n=4000)
    large = drocox.audit(data, **survival, threshold=0.4, smallest=10)
    assert large.table["ppv"].notna().all() and "everybody only" not in large.sentence
    with pytest.raises(ValueError, match=r"threshold 0\.999 flags, or leaves, fewer than 10"):
        drocox.audit(data, **survival, threshold=0.999, smallest=10)


def test_the_command_judges_decisions(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, survival = given(n=400)
    frame = pd.DataFrame({"time": data.time, "died": data.event.astype(int)})
    frame = frame.assign(sex=data.groups["sex"], risk=1 - survival["survival"])
    frame.to_csv("p.csv", index=False)
    command = "audit p.csv --time time --event died --groups sex --horizon 0.5".split()

    def said(*more, status=0):
        try:
            assert cli.main([*command, *more]) == status
        except SystemExit as stop:
            assert stop.code == status
        return " ".join("".join(capsys.readouterr()).split())

    assert "At a threshold of 0.4 for the risk up to time 0.5, of everybody: " in said(
        "--risk", "risk", "--threshold", "0.4"
    )
    assert "Decisions: flagged from a risk of 0.4" in (tmp_path / "p-audit.html").read_text("utf-8")
    assert "--threshold must lie between 0 and 1, as in --threshold 0.2 for 20 %" in said(
        "--risk", "risk", "--threshold", "40", status=2
    )
    assert "--threshold needs risks; name them with --risk or --survival" in said(
        "--score", "risk", "--threshold", "0.4", status=2
    )
    assert "as in --risk p5 --horizon 5 --threshold 0.2" in said("--help")


@pytest.mark.parametrize("kind", ["risk", "survival"])
@pytest.mark.parametrize("single", [False, True])
def test_a_risk_equal_to_the_threshold_is_flagged(kind, single):
    """Whatever rounding does between a file's 0.07 and the hazards that the audit computes."""
    data, _ = given(n=300)
    for threshold in np.arange(0.01, 0.6, 0.01).round(2):
        risk = np.where(np.arange(300) % 3 == 0, threshold, threshold / 2)
        risk = risk.astype(np.float32) if single else risk
        if kind == "survival":
            one = predictions(data, survival=1 - risk, times=0.5)
        else:
            one = predictions(data, risk=risk, horizon=0.5)
        assert with_threshold(one, threshold).patients.flags.sum() == 100, threshold
