"""Values for the sentences on the protocol against plain computations; guards that can fail."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from perturbed import check, shuffled, told

import drocox
from drocox.chapters import protocol as chapter
from drocox.chapters import protocol_rules as rules
from drocox.paper import protocol, selection, store, tables


@cache
def fidelity():
    """As the chapter computes them: cells, distances by rule, distances by selection."""
    cells = tables.fidelity_cells()
    by_rule = cells.groupby([*rules.ROW, "rule"])["distance"].mean().unstack()
    rows = cells.drop_duplicates(rules.ROW).set_index(rules.ROW).index
    by_rule = by_rule.loc[rows, list(selection.SELECTION_RULES)]
    recovered = cells[cells["recovered"]].groupby(rules.ROW)["distance"].mean()
    fit = pd.DataFrame({
        "stated": by_rule["stated CI"],
        "one setting": by_rule["one setting CI"],
        "recovered": recovered,
        "best of list": by_rule.min(axis=1),
    })  # fmt: skip
    return cells, by_rule, fit.loc[rows]


@pytest.mark.slow
def test_rows_that_come_back():
    cells, by_rule, fit = fidelity()
    fewer = cells[cells["exhibit"] != "t17"]
    values = check(rules, "tell_fit", cells, by_rule, fit, variants=[(fewer, by_rule, 99 * fit)])
    assert values["rows-recovered"] == "62"
    stated = cells[cells["rule"] == "stated CI"]
    within = np.mean([abs(r.mean - r.paper_mean) <= r.paper_std for r in stated.itertuples()])
    assert values["cells-stated"] == f"{100 * within:.0f} %"
    assert rules.show_rows(cells, by_rule, fit).data.count("<tr") == 63
    assert len(rules.draw_fit(fit).axes[0].lines) == 5


@pytest.mark.slow
def test_cautions():
    cells, by_rule, fit = fidelity()
    recovered = rules.recovered_rules(cells)
    other = recovered.where(recovered != "test CI", "stated CI").replace("no gradient", "stated CI")
    variants = [
        (by_rule, fit / 99, other.replace("named setting", "stated CI")),
        (by_rule / 99, fit, recovered),
        (by_rule[:-4], fit[:-4], recovered[:-4]),
    ]
    values = check(rules, "tell_cautions", by_rule, fit, recovered, variants=variants)
    assert values["n2-rows"] == "7"
    counts = rules.choices(by_rule)
    row = by_rule.iloc[0].dropna()
    assert counts["distinct"].iloc[0] == len({round(distance, 9) for distance in row})


def test_printed_numbers():
    printed = tables.published()
    points = pd.concat([tables.alpha_table(dataset) for dataset in protocol.ATTRIBUTES])
    points = points.dropna(subset="paper_mean")
    values = check(
        rules, "tell_printed", printed, points, variants=[(shuffled(printed, 0), points.iloc[1:])]
    )
    assert values["points-within"] == "90"
    cell = told(chapter, "tell_example", printed).values["example"]
    table = tables.main_table("flc", "age").query("method == 'DRO-COX' and metric == 'ci_percent'")
    assert cell == f"{table['paper_mean'].item():.4f} ({table['paper_std'].item():.4f})"


def test_unstable_runs():
    runs = pd.concat(drocox.load_runs(name) for name in protocol.PROTOCOLS)
    known = runs.dropna(subset="unstable")
    chosen = known.iloc[:10].assign(unstable=[True] * 2 + [False] * 8)
    values = check(chapter, "tell_unstable", known, chosen, variants=[(shuffled(known, 0), chosen)])
    assert values["unstable-chosen"] == "2 of 10"
    linear = [row.moved <= 1e-9 for row in known.itertuples() if row.model == "linear"]
    assert values["held-linear"] == f"{100 * np.mean(linear):.0f} %"


def test_costs_and_their_figure():
    stacks = [vars(stack) | {"models": len(stack.grid())} for stack in protocol.stacks("corrected")]
    minutes = store.load_provenance()["corrected"]["core_minutes"]
    cost = chapter.cost_by_method(pd.DataFrame(stacks), minutes)
    assert cost["models"].sum() == 8280
    assert cost.loc["Cox", "seconds"] == pytest.approx(60 * minutes["Cox"] / (3 * 3 * 10))
    check(chapter, "tell_cost", cost, variants=[(cost.assign(seconds=range(16), models=1),)])
    assert len(chapter.draw_cost(cost).axes[0].patches) == 16


def test_counts_of_models_and_rules():
    plan = pd.DataFrame({"all": [1440, 6480, 8280]}, ["T16", "T2–T15, F1", "all"])
    assert told(chapter, "tell_plan", plan).values == {"n-models": "8,280", "n-main": "6,480"}
    assert told(rules, "tell_rules").values["n-rules"] == str(len(selection.SELECTION_RULES))


def test_every_method_is_shown():
    page = chapter.show_methods().data
    assert page.count("<tr") == 9
    for name in protocol.METHODS:
        assert f"<td>{name.replace('&', '&amp;')}</td>" in page
    assert "3 learning rates × 6 α" in page


def test_the_flow_names_all_sizes():
    page = chapter.show_flow([1000, 200, 300], 18).data
    for words in ("1,500 patients", ">1,000<", ">200<", ">300<", "judge all 18"):
        assert words in page


def test_exercises():
    control = pd.DataFrame({"as_published": [0.1] * 24, "corrected": [0.5] * 6 + [3.0] * 18})
    other = pd.DataFrame({"as_published": [2.0] * 24, "corrected": [0.05] * 24})
    values = check(rules, "tell_control", control, variants=[(other,)])
    assert values["control-nearer"] == "24"
    spread = pd.DataFrame({"flc": [0.001, 0.01], "seer": [0.001, 0.02]}, ["as_published",
                          "corrected"])  # fmt: skip
    assert check(chapter, "tell_spread", spread, variants=[(spread**0,)])["sd-ratio"] == "10 to 20"
