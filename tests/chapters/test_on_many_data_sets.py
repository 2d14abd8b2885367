"""Values of *on many data sets* from the stored study; guards that can fail."""

import hashlib

import numpy as np
import pandas as pd
import pytest
import synthetic_many
from perturbed import failed, rescaled, told

import drocox
from drocox.beyond import cohorts, control_evidence, evidence, learning, many, survset
from drocox.chapters import on_many_data_sets as chapter
from drocox.chapters import on_many_data_sets_sentences as sentences


@pytest.fixture(scope="module")
def store():
    return drocox.load_runs("beyond")


@pytest.fixture(scope="module")
def runs(store):
    return store[store["study"] == "many"]


@pytest.fixture(scope="module")
def controls(store):
    return store[store["study"] == "controls"]


@pytest.fixture(scope="module")
def others():
    """Studies with other effects."""
    none = dict.fromkeys(synthetic_many.EFFECTS, 0.0)
    strong = dict.fromkeys(synthetic_many.EFFECTS, 3.0)
    harmful = dict.fromkeys(synthetic_many.EFFECTS, -3.0)
    found = []
    for effects in (none, strong, harmful):
        rows = synthetic_many.study(effects, tau=1.0)
        rows["joint_guard"] -= 2.0
        rows["closing"] -= 1.0
        rows["guard"] = 0.1
        rows.loc[rows["dataset"] == "mgus", ["joint_closing", "worst_own_diff"]] = np.nan
        rows.loc[(rows["dataset"] == "mgus") & (rows["method"] == "CVaR"), "certificate"] = 1.0
        found.append(rows)
    return found


def test_the_study_is_whole(runs, controls):
    registered = many.REGISTERED["included"] | many.REGISTERED["beside"]
    assert set(runs["dataset"]) == set(registered)
    for name, rows in runs.groupby("dataset"):
        facts = registered[name]
        assert (rows["patients"] == facts["patients"]).all()
        assert set(rows["attribute"]) == set(facts["attributes"] or [""])
        models = rows.groupby("attribute")["method"].count()
        assert (models >= len(learning.SETTINGS) - 1).all()
    assert (runs["certificate"] <= evidence.LARGEST_CERTIFICATE).all()
    draws = controls[controls["kind"] == "permuted"].groupby("dataset")["draw"].nunique()
    assert (draws == 200).all() and len(draws) == 25
    designs = controls[controls["kind"] == "coverage"].groupby("dataset")["draw"].nunique()
    assert designs.to_dict() == {"large": 200, "small": 200}


def test_answer(runs, others):
    table = evidence.primary_table(runs)
    result = told(sentences, "tell_answer", runs, table)
    assert result.values["many-c-mean"] == f"{table.loc['c', 'mean']:+.2f}"
    assert float(result.values["many-p"]) < 0.05
    variants = [(rows, evidence.primary_table(rows)) for rows in others]
    assert len(set(result.held) - failed(sentences, "tell_answer", *variants)) <= 1


def test_models(runs, others):
    arguments = runs, evidence.all_models(runs), evidence.accuracy_table(runs)
    result = told(sentences, "tell_models", *arguments)
    assert float(result.values["many-strong-c-loss"]) > 1
    variants = []
    for rows in others:
        accuracy = rescaled(evidence.accuracy_table(rows), -3.0)
        variants.append((rows, evidence.all_models(rows), accuracy))
    assert len(set(result.held) - failed(sentences, "tell_models", *variants)) <= 2


def test_controls(runs, controls):
    power = control_evidence.power_table(runs, controls)
    coverage = control_evidence.coverage_table(controls)
    result = told(sentences, "tell_controls", power, coverage)
    variants = [(1 - power, 1 - coverage), (power * 0 + 0.3, coverage * 0.5), (power, 2 * coverage)]
    assert failed(sentences, "tell_controls", *variants) == set(result.held)


def test_moderators(runs):
    table = evidence.moderator_table(runs)
    result = told(sentences, "tell_moderators", table)
    apart = table.assign(low=table["low"] + 10, high=table["high"] + 10)
    assert failed(sentences, "tell_moderators", (apart,)) == set(result.held)


@pytest.mark.slow
def test_flow():
    flow = survset.flow()
    result = told(sentences, "tell_flow", flow)
    assert result.values["many-all"] == "76"
    fewer = flow.assign(patients=flow["patients"] + 1)
    fewer.loc["zinc", "step"] = "size"
    fewer.loc["flchain", "step"] = "included"
    lost = failed(sentences, "tell_flow", (fewer,))
    assert set(result.held) - lost == {"and the registered files"}


def test_registration(monkeypatch):
    result = told(sentences, "tell_registration")
    assert result.values["many-commit"] == sentences.COMMIT[:12]
    monkeypatch.setitem(sentences.SHA256, "preregistration.md", hashlib.sha256(b"").hexdigest())
    assert failed(sentences, "tell_registration", ()) == set(result.held)
    assert "## Deviations" in chapter.registration()


def test_lines_of_the_registration(capsys):
    chapter.print_registration()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 76
    words = " ".join(" ".join(lines).split())
    assert words == " ".join(chapter.registration().split())


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.004, "0.00"), (0.004, "0.00"), (0.046, "+0.05"), (-1.0, "-1.00")]
)
def test_no_sign_before_zero(value, shown):
    assert chapter.signed(value) == shown


def test_drawings_and_tables(runs):
    rows = synthetic_many.study()
    table = evidence.primary_table(rows)
    chapter.draw_answer(table)
    for name in evidence.PRIMARIES:
        axes = chapter.draw_forest(rows, name).axes[0]
        labels = [label.get_text() for label in axes.get_yticklabels()]
        effects = evidence.effects(rows, evidence.PRIMARIES[name].column)
        assert sorted(labels[: len(effects)]) == list(effects.index)
        assert labels[-2:] == ["flchain (beside)", "support2 (beside)"]
    shown = chapter.show_primary(table)
    assert list(shown.index) == [chapter.OUTCOME_WORDS[name] for name in table.index]
    planted = list(control_evidence.PLANTED)
    power = pd.DataFrame(0.5, index=list(evidence.PRIMARIES), columns=planted)
    chapter.draw_power(power)
    assert (chapter.show_power(power) == "50.0 %").all().all()
    models = chapter.show_models(evidence.all_models(runs), evidence.accuracy_table(runs))
    assert len(models) == len(learning.SETTINGS)
    moderators = chapter.show_moderators(evidence.moderator_table(runs))
    assert moderators.shape == (len(evidence.MODERATORS), 3)
    coverage = chapter.show_coverage(control_evidence.coverage_table(synthetic_many.controls()))
    assert coverage.shape == (3, 2)
    group = cohorts.Group("stage", "III", "=")
    assert chapter.describe(group) == "stage = III"
    assert chapter.describe(cohorts.Group("age", np.float64(60), "≤")) == "age ≤ 60"
