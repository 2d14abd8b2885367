"""The ledger: verdicts are locked, thresholds mean what they say, counts equal counts by hand."""

from itertools import permutations
from pathlib import Path

import invented
import numpy as np
import pandas as pd
import pytest

from drocox.paper import claims, store, tables
from drocox.paper.protocol import ALPHAS, ATTRIBUTES, METHODS

pytestmark = pytest.mark.slow  # the ledger counts every claim in six views

BOOK = Path(__file__).parents[2] / "book"


@pytest.fixture(scope="module")
def ledger():
    return claims.ledger()


def test_every_claim_is_counted_and_has_a_chapter():
    assert list(claims.claims()) == [f"C{i}" for i in range(1, 21)]
    assert set(claims.claims()) == set(claims.COUNTS)
    for claim in claims.claims().values():
        assert (BOOK / claim["chapter"]).exists()


@pytest.mark.parametrize("name", claims.COUNTS)
def test_verdicts_are_the_recorded_ones(ledger, name):
    """Change claims.yml with open eyes: a verdict there is what readers are told."""
    rows = ledger[ledger["id"] == name].set_index("view")
    assert rows["verdict"].to_dict() == claims.claims()[name]["verdicts"]


@pytest.mark.parametrize(
    ("name", "value", "of", "expected"),
    [
        ("C5", 14, 14, "reproduced"),
        ("C5", 13, 14, "partly"),
        ("C5", 10, 14, "partly"),
        ("C5", 9, 14, "not"),
        ("C5", 6, 6, "unknown"),
        ("C1", 8, 9, "not"),  # the only threshold of Table 1 is all of its cells
    ],
)
def test_verdicts_follow_the_thresholds(name, value, of, expected):
    assert claims.verdict(claims.claims()[name], claims.Count(value, of)) == expected


@pytest.mark.parametrize("view", ["corrected", "one setting"])
def test_best_fairness_cells_are_those_counted_by_hand(view, ledger):
    """C14 from the long tables, cell by cell."""
    won = cells = 0
    for dataset, attribute in claims.PAIRS:
        protocol, selection = claims.VIEWS[view]
        table = tables.main_table(dataset, attribute, protocol=protocol, selection=selection)
        for model in ("linear", "nonlinear"):
            for metric in ("f_i", "f_g", "f_cap", "f_a", "ci_percent"):
                part = table[(table["model"] == model) & (table["metric"] == metric)]
                won += "DRO-COX" in part.loc[part["mean"].idxmin(), "method"]
                cells += 1
    row = ledger[(ledger["id"] == "C14") & (ledger["view"] == view)].iloc[0]
    assert cells == row["of"] == 70
    assert row["value"] == pytest.approx(100 * won / cells)


def test_printed_counts_are_those_counted_by_hand(ledger):
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


def test_nothing_is_recovered_about_comparisons_without_published_numbers(ledger):
    rows = ledger[ledger["view"].isin(["printed", "recovered"])].set_index(["id", "view"])
    for name in ("C4", "C5", "C11", "C14"):
        assert set(rows.loc[name, "verdict"]) == {"unknown"}
        assert rows.loc[name, "of"].max() == {"C5": 6, "C14": 30}.get(name, 0)
    assert rows.loc[("C2", "recovered"), "of"] == 3


def test_a_claim_that_is_not_reproduced_states_what_was_detectable(ledger):
    rows = ledger[(ledger["verdict"] == "not") & ledger["id"].isin(claims.COMPARISON_OF)]
    assert len(rows) and rows["detectable"].str.fullmatch(r"[\d.e-]+ to [\d.e-]+").all()
    others = ledger.drop(index=rows.index)
    assert (others["detectable"] == "").all()
    assert set(others[others["verdict"] == "not"]["id"]) <= {"C12", "C15"}  # no two methods there


def by_alpha(monkeypatch, **values):
    """Make up the numbers behind F1: six means of each metric, all with SD 0.03 (ddof 0)."""
    rows = {
        (dataset, metric, alpha): mean
        for dataset in ATTRIBUTES
        for metric, six in values.items()
        for alpha, mean in zip(ALPHAS, six, strict=True)
    }
    mean = pd.Series(rows).rename_axis(["dataset", "metric", "alpha"]).sort_index()
    squared = mean * 0 + 0.03**2 / 9
    monkeypatch.setattr(claims, "_by_alpha", lambda view, out: (mean, squared))


@pytest.mark.parametrize(("rise", "expected"), [(0.0138, 0), (0.0145, 3), (-0.05, 0)])
def test_accuracy_rises_by_more_than_a_standard_error(monkeypatch, rise, expected):
    """Over ten repeats with deviations (ddof 0) of 0.03 it is sqrt(2 x 0.03^2 / 9) = 0.01414."""
    steps = {0.1: 0, 0.15: 0, 0.2: 0, 0.3: 1, 0.4: 1, 0.5: 2}  # 0.1 to 0.3, and 0.3 to 0.5
    by_alpha(monkeypatch, c_index=[0.7 + rise * steps[alpha] for alpha in ALPHAS])
    assert claims.COUNTS["C9"]("corrected").value == expected


def test_standard_errors_over_alpha_are_those_computed_by_hand():
    """Published deviations have ddof 0; those of our runs come from ten test scores."""
    std = tables.published_figure().query("dataset == 'seer' and metric == 'c_index'")["std"]
    printed = claims._by_alpha(claims.PRINTED)[1].loc["seer", "c_index"]
    assert np.allclose(printed, std**2 / 9)
    ours = claims._by_alpha("corrected")[1].loc["seer", "c_index"]
    runs = tables.alpha_runs("seer", protocol="corrected")
    scores = runs.groupby("alpha")["test_c_index"]
    assert np.allclose(ours, scores.std() ** 2 / 10)


def with_correlation(rho):
    """An order of six numbers whose Spearman correlation with their positions is ``rho``."""
    rank = np.arange(6)
    for order in permutations(range(6)):
        if abs(1 - 6 * ((rank - order) ** 2).sum() / 210 - rho) < 1e-9:
            return list(order)
    raise ValueError(rho)


def test_fairness_worsens_from_a_correlation_of_six_tenths_on(monkeypatch):
    at = with_correlation(0.6)
    below = with_correlation(19 / 35)  # 0.543, the next possible
    by_alpha(monkeypatch, f_i=at, f_g=below, f_cap=at[::-1], c_index=at)
    count = claims.COUNTS["C10"]("corrected")
    assert (count.value, count.of) == (3, 9)
    assert count.where == "flc f_i, support f_i, seer f_i"


@pytest.mark.parametrize(("rho", "expected"), [(19 / 35, 3), (17 / 35, 0)])
def test_alpha_trades_from_a_correlation_of_one_half_on(monkeypatch, rho, expected):
    by_alpha(monkeypatch, c_index=list(range(6)), f_a=with_correlation(rho))
    assert claims.COUNTS["C15"]("corrected").value == expected


def test_counts_read_the_given_store(monkeypatch, tmp_path):
    runs = invented.runs(repeats=(1, 2))
    asked = []

    def load(protocol, out=None):
        asked.append((protocol, out))
        return runs

    monkeypatch.setattr(store, "load_runs", load)
    for name in ("C2", "C9", "C13", "C14"):
        assert claims.COUNTS[name]("corrected", tmp_path).of > 0
    assert set(asked) == {("corrected", tmp_path)}


def test_the_ledger_needs_every_run(tmp_path):
    invented.save(tmp_path, datasets=["seer"], methods=["Cox"], repeats=(1,))
    with pytest.raises(store.StoreError, match=rf"8,280 .* holds 3; .*--out {tmp_path}"):
        claims.ledger(out=tmp_path)


def test_the_claims_cannot_be_edited_by_accident():
    claims.claims()["C1"]["reproduced"] = 0
    assert claims.claims()["C1"]["reproduced"] == 9
