"""The ledger: verdicts are locked, thresholds mean what they say, counts equal counts by hand."""

import re

import pandas as pd
import pytest

from drocox.paper import claims, tables
from drocox.paper.protocol import METHODS


@pytest.fixture(scope="module")
def ledger():
    return claims.ledger()


def test_every_claim_has_a_judge_and_a_chapter():
    assert list(claims.claims()) == list(claims.JUDGES) == [f"C{i}" for i in range(1, 21)]
    for claim in claims.claims().values():
        assert (claims.store.DEFAULT.parent / claim["chapter"]).exists()


@pytest.mark.parametrize("name", claims.JUDGES)
def test_verdicts_are_the_recorded_ones(ledger, name):
    """Change book/claims.yml with open eyes: a verdict there is what readers are told."""
    found = ledger[ledger["id"] == name].set_index("view")["verdict"].to_dict()
    assert found == claims.claims()[name]["verdicts"]


@pytest.mark.parametrize(
    ("value", "of", "expected"),
    [
        (14, 14, "reproduced"),
        (13, 14, "partly"),
        (10, 14, "partly"),
        (9, 14, "not"),
        (6, 6, "unknown"),
    ],
)
def test_thresholds(value, of, expected):
    assert claims.verdict(claims.claims()["C5"], claims.Count(value, of)) == expected


def test_the_only_threshold_of_table_one_is_all_cells():
    assert claims.verdict(claims.claims()["C1"], claims.Count(8, 9)) == "not"


@pytest.mark.parametrize("view", tables.VIEWS)
def test_best_fairness_cells_by_hand(view, ledger):
    """C14 from the long tables, cell by cell."""
    won = cells = 0
    for dataset, attribute in claims.PAIRS:
        table = tables.main_table(dataset, attribute, **tables.VIEWS[view])
        for model in ("linear", "nonlinear"):
            for metric in ("f_i", "f_g", "f_cap", "f_a", "ci_percent"):
                part = table[(table["model"] == model) & (table["metric"] == metric)]
                won += "DRO-COX" in part.loc[part["mean"].idxmin(), "method"]
                cells += 1
    row = ledger[(ledger["id"] == "C14") & (ledger["view"] == view)].iloc[0]
    assert cells == row["of"] == 70
    assert row["value"] == pytest.approx(100 * won / cells)


def test_printed_counts_by_hand(ledger):
    """C2 and C3 from the published numbers alone."""
    printed = tables.published()
    for name, model in (("C2", "linear"), ("C3", "nonlinear")):
        count = 0
        for exhibit in ("t2", "t3", "t4"):
            part = printed[
                (printed["table"] == tables.EXHIBIT_OF[exhibit])
                & (printed["metric"] == "ci_percent")
                & (printed["model"] == model)
            ]
            ci = part.set_index("method")["mean"]
            ours = "DRO-COX" if model == "linear" else "Deep DRO-COX"
            rivals = [m for m in ci.index if METHODS[m].loss == "cox"]
            count += ci[ours] < ci[rivals].min()
        row = ledger[(ledger["id"] == name) & (ledger["view"] == "printed")].iloc[0]
        assert row["value"] == count


def test_the_command_prints_number_threshold_verdict_and_link(capsys, monkeypatch, ledger):
    from drocox import cli

    monkeypatch.setattr(claims, "ledger", lambda: ledger)
    assert cli.main(["claims"]) == 0
    out = capsys.readouterr().out
    for name, claim in claims.claims().items():
        block = re.search(rf"^{name}  .*?(?=^C|\Z)", out, re.MULTILINE | re.DOTALL).group()
        assert f"reproduced from {claim['reproduced']}" in block
        assert f"book/{claim['chapter']}" in block
        assert all(v in block for v in claim["verdicts"].values())


def test_judges_can_say_no(monkeypatch):
    """With all DRO rows made worse than the baselines, no fairness claim survives."""
    real = tables.main_table

    def worse(*args, **kwargs):
        table = real(*args, **kwargs)
        bad = table["method"].str.contains("DRO-COX")
        low = table["metric"].map(lambda m: not tables.METRICS[m][1])
        return table.assign(mean=table["mean"].where(~(bad & low), 1e3))

    monkeypatch.setattr(tables, "main_table", worse)
    claims._means.cache_clear()
    try:
        for name in ("C2", "C3", "C4", "C11", "C14"):
            count = claims.JUDGES[name]("stated rule")
            assert count.value == 0 and claims.verdict(claims.claims()[name], count) == "not"
    finally:
        claims._means.cache_clear()


def test_the_ledger_is_one_row_per_claim_and_view(ledger):
    views = {"experiment": 4, "mathematics": 1}
    expected = pd.Series({n: views[c["kind"]] for n, c in claims.claims().items()})
    assert ledger.groupby("id").size().reindex(expected.index).equals(expected)
