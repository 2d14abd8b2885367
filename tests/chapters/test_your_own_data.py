"""Values of *your own data* on small tables; guards that can fail."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from perturbed import failed, told

from drocox.chapters import your_own_data as chapter


def audit(gap=-4.0, men=0.8, low=0.9, group="gender = women", noise=False):
    ci = {"attribute": "gender", "group": group, "difference": gap, "low": gap - 2}
    ci |= {"high": gap + 2, "beyond_noise": gap < -2, "noise_floor": 1.3}
    table = {"group": ["gender = men", "gender = women"], "c_index": [men, 0.7]}
    table |= {"calibration": 1.0, "calibration_low": low, "calibration_high": 1.1}
    slices = pd.DataFrame({"beyond_noise": [noise]})
    return SimpleNamespace(imparity=pd.DataFrame([ci]), table=pd.DataFrame(table), slices=slices)


def test_audit():
    result = told(chapter, "tell_audit", audit())
    assert result.values["gap-low"] == "-6.0" and result.values["c-men"] == "0.80"
    other = audit(gap=1.0, men=0.5, low=1.05, group="gender = men")
    assert failed(chapter, "tell_audit", (other,)) == set(result.held)


def test_choice():
    table = pd.DataFrame(
        {
            "ci_percent": [6.8, 7.1, 7.5],
            "ci_low": [0.0, -0.1, -0.2],
            "ci_high": [0.0, 0.7, 0.8],
            "eligible": True,
        },
        index=pd.Index([1.0, 0.5, 0.2], name="alpha"),
    )
    chosen = SimpleNamespace(alpha=1.0, table=table)
    result = told(chapter, "tell_choice", chosen)
    assert result.values == {"alpha": "0.5", "best-ci": "7.1", "cox-ci": "6.8"}
    other = table.assign(ci_percent=1.0, ci_low=-2.0, ci_high=-1.0)
    fairer = SimpleNamespace(alpha=0.5, table=other)
    assert failed(chapter, "tell_choice", (fairer,)) == set(result.held)


def test_search_and_page():
    assert not told(chapter, "guard_search", audit()).failed
    assert failed(chapter, "guard_search", (audit(noise=True),))
    result = told(chapter, "guard_page", 0, "a difference beyond noise")
    assert failed(chapter, "guard_page", (1, "see http://")) == set(result.held)


ALARMS = ["c_index, any attribute", "c_index, any, family-wise"]
ALARMS += ["calibration, any, family-wise", "search"]


def designs(figure=0.95, difference=0.96, auc=0.98, concordance=0.93, alarms=(0.3, 0.08, 0.1, 0)):
    rows = []
    for groups in (2, 20):
        for name in chapter.SHOWN_FIGURES:
            rows.append((groups, 0.3, "one model", 100, 200, name, figure))
            share = auc if name == "auc" and groups == 20 else difference
            rows.append((groups, 0.3, "one model", 100, 200, f"{name}, differences", share))
        rows.append((groups, 0.3, "one model", 100, 200, "concordance", concordance))
    for name, share in zip(ALARMS, alarms, strict=True):
        rows.append((2, np.nan, "no difference", 800, 100, f"false alarm: {name}", share))
    columns = ["groups", "censored", "kind", "patients", "sets", "figure", "share"]
    return pd.DataFrame(rows, columns=columns)


def test_coverage():
    result = told(chapter, "tell_coverage", designs())
    assert result.values["held-figures"] == "95" and result.values["held-auc"] == "97"
    assert result.values["held-auc-many"] == "98" and result.values["held-least"] == "93"
    assert result.values["held-error"] == "2"
    assert result.values["held-concordance"] == "93" and result.values["entries-low"] == "0"
    assert result.values["alarm-apart"] == "30" and result.values["alarm-together-oe"] == "10"
    wrong = {"concordance": 0.95, "alarms": (0.1, 0.5, 0.5, 0.5)}
    other = designs(figure=0.8, difference=0.8, auc=0.8, **wrong)
    assert failed(chapter, "tell_coverage", (other,)) == set(result.held)
    table = chapter.show_coverage(designs())
    assert table.loc[1, "ΔAUC"] == 98 and list(table["groups"]) == [2, 20]
