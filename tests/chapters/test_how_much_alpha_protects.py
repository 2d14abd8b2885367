"""Values of *how much α protects* from the stored study; guards that can fail."""

import numpy as np
import pandas as pd
import pytest
from perturbed import failed, told

import drocox
from drocox.beyond.protection import protected_share
from drocox.chapters import how_much_alpha_protects as chapter
from drocox.chapters.how_much_alpha_protects import MAIN_ATTRIBUTE
from drocox.paper.protocol import ALPHAS

RULES = ["paper", "definition", "sharp", "cvar"]


@pytest.fixture(scope="module")
def runs():
    rows = drocox.load_runs("beyond")
    rows = rows[rows["study"] == "protection"]
    return rows.drop_duplicates(["dataset", "repeat", "kind", "share"])


def cost_of(runs):
    rows = []
    for name in MAIN_ATTRIBUTE:
        cox = chapter.at(runs, "cox", 1.0, "c_index", name)
        for alpha in (0.1, 0.2, 0.3, 0.5):
            share = protected_share(alpha, "paper")
            paper = chapter.at(runs, "chi2", share, "c_index", name)
            sharp = chapter.at(runs, "chi2", alpha, "c_index", name)
            ordered = chapter.interval(100 * (cox - sharp))
            rows.append([name, alpha, *ordered, *chapter.interval(100 * (sharp - paper))])
    columns = ["data", "α", "ordered", "ordered ±", "label", "label ±"]
    cost = pd.DataFrame(rows, columns=columns)
    cost["part"] = cost["label"] / (cost["label"] + cost["ordered"])
    return cost.set_index(["data", "α"])


def test_shares():
    shares = {rule: [protected_share(a, rule) for a in ALPHAS] for rule in RULES}
    shares = pd.DataFrame(shares, index=pd.Index(ALPHAS, name="α"))
    result = told(chapter, "tell_shares", shares)
    assert result.values["share-paper-02"] == f"{100 / (1 + 2 * 4**2):.0f}"
    assert failed(chapter, "tell_shares", (shares / 2,), (1.5 * shares,)) == set(result.held)
    assert len(chapter.draw_shares().axes) == 1


def test_cost(runs):
    cost = cost_of(runs)
    result = told(chapter, "tell_cost", cost)
    assert result.values["label-seer-01"] == f"{cost.loc[('seer', 0.1), 'label']:.0f}"
    variants = [(-cost,), (0 * cost + 1,), (cost.assign(part=0.5),), (30 * cost,)]
    assert failed(chapter, "tell_cost", *variants) == set(result.held)
    shown = chapter.shown_cost(cost)
    assert shown.shape == (12, 3) and not shown.map(lambda text: "-" in text).any().any()


def test_models(runs):
    mean = runs.groupby(["dataset", "kind", "share"]).mean(numeric_only=True)
    events = {
        name.upper(): {"events, %": 100 * drocox.load_dataset(name).event.mean()}
        for name in MAIN_ATTRIBUTE
    }
    edges = pd.DataFrame(events).T
    result = told(chapter, "tell_models", runs, mean, edges)
    noise = np.random.default_rng(0).random((len(runs), 2))
    noisy = runs.assign(c_index=noise[:, 0])
    other = mean.assign(like_cox=0.5, spread=noise[: len(mean), 1])
    assert failed(chapter, "tell_models", (noisy, other, edges)) >= {
        "above the share of events the scores are Cox's",
        "F_A follows the spread of the scores",
        "the two adversaries hardly differ",
    } & set(result.held)
    assert chapter.shown_models(mean).shape == (8, 9)
    assert len(chapter.draw_cost(runs, mean, edges).axes) == 3
    assert len(chapter.draw_gaps(mean).axes) == 3


def test_gaps(runs):
    result = told(chapter, "tell_gaps", runs)
    cox = chapter.at(runs, "cox", 1.0, "ci_signed_age", "support")
    half = chapter.at(runs, "chi2", 0.5, "ci_signed_age", "support")
    mean, width = chapter.interval(half - cox)
    assert result.values["gap-half-difference"] == f"{mean:+.2f} ± {width:.2f}"
    assert result.values["gap-others"] == "30"
    signed = [column for column in runs if column.startswith("ci_signed")]
    rng = np.random.default_rng(0)
    noise = runs.assign(**{column: rng.standard_normal(len(runs)) for column in signed})
    apart = runs.copy()
    ball = runs["kind"] == "chi2"
    apart.loc[ball, signed] = 10 + runs.loc[ball, signed]
    fewer = runs[runs["repeat"] < 10]
    variants = [(noise,), (apart,), (fewer,)]
    assert failed(chapter, "tell_gaps", *variants) == set(result.held)
    assert len(chapter.gaps_by_share(runs)) == 35
