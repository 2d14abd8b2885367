"""The answer from rows of known effects: its words follow from them, and its guards can fail."""

from functools import cache

import pandas as pd
import pytest
from perturbed import failed, told
from scipy import stats
from synthetic_many import study

from drocox.beyond import evidence
from drocox.chapters import answer

LEVELS = ["dataset", "attribute", "method"]


@cache
def costly():
    """Rows in which the paper's constant costs c-index and the preregistered model nothing."""
    rows = study({"c_diff": 0.0, "joint_closing": 0.0, "worst_own_diff": 0.0})
    paper = rows["rule"] == "paper"
    rows.loc[paper, "c_diff"] -= 1.5
    return rows


def test_numbers_are_those_of_the_analysis():
    values = told(answer, "tell_answer", costly()).values
    primary = evidence.primary_table(costly()).loc["closing"]
    assert float(values["many-closing"].split()[0]) == pytest.approx(primary["mean"], abs=0.005)
    effects = evidence.effects(costly(), "c_diff")["effect"]
    low, high = stats.ttest_1samp(effects, 0).confidence_interval()
    row = answer.alike(costly()).loc["c"]
    assert [row["mean"] - row["half"], row["mean"] + row["half"]] == pytest.approx([low, high])


def test_guards_can_fail():
    result = told(answer, "tell_answer", costly())
    moving = study({"c_diff": -2.0, "joint_closing": 3.0, "worst_own_diff": 3.0})
    cheap = study({"c_diff": 2.0, "joint_closing": 0.0, "worst_own_diff": 0.0})
    without_ridge = costly()[costly()["penalty"] != 0.1]
    variants = [(moving,), (cheap,), (without_ridge,)]
    assert failed(answer, "tell_answer", *variants) == set(result.held)


def test_figure_and_table():
    table = answer.effects_of_models(costly())
    figure = answer.draw_answer(table)
    assert len(figure.axes) == 3
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == list(
        answer.SHOWN.values()
    )
    shown = answer.show_answer(table)
    assert shown.shape == (len(answer.SHOWN), 3)


def league(c_of_gentle=0.1, gap_of_stopped=-1.5):
    methods = ["Cox", "DRO-COX, sharp 0.5", "DRO-COX", "Cox stopped at equal c-index",
               "Cox with interactions", "group weights"]  # fmt: skip
    rows = pd.DataFrame(
        {"ci": -2.0, "ci_diff": 1.0, "c_diff": -1.5, "cf_0_diff": -1.0, "cf_1_diff": 0.2},
        pd.MultiIndex.from_product([["support"], ["age"], methods], names=LEVELS),
    )
    rows.loc[("support", "age", "DRO-COX, sharp 0.5"), "c_diff"] = c_of_gentle
    rows.loc[("support", "age", "Cox stopped at equal c-index"), "ci"] = gap_of_stopped
    errors = {f"{name}_se": 0.2 for name in ("ci_diff", "c_diff", "cf_0_diff", "cf_1_diff")}
    return rows.assign(**errors)


def test_support_by_age():
    result = told(answer, "tell_support_by_age", league())
    assert result.values["gentle-ci_diff"] == "+1.00 ± 0.39"
    worse = -league(c_of_gentle=-3.0, gap_of_stopped=0.0)
    worse = worse.assign(**{c: 0.2 for c in worse if c.endswith("_se")})
    assert failed(answer, "tell_support_by_age", (worse,)) == set(result.held)
