"""Values of *what the optimum is* on small tables; guards that can fail."""

import numpy as np
import pandas as pd
from perturbed import failed, told

from drocox.chapters import what_the_optimum_is as chapter
from drocox.paper import protocol


def test_proofs():
    proofs = pd.DataFrame({"risk − bound": [1e-3, 1e-6, 0.0], "risk − naive": [9e-4, 9e-7, 0.0]})
    result = told(chapter, "guard_proofs", proofs)
    other = pd.DataFrame({"risk − bound": [1.0, 1.0, 1.0], "risk − naive": [2.0, 2.0, 2.0]})
    assert failed(chapter, "guard_proofs", (other,)) == set(result.held)


def test_null_models():
    null = pd.DataFrame({"κ": 120.0, "α₀": 0.12, "‖θ*‖": 0.0, "null": True}, index=range(1, 11))
    null.loc[4, ["κ", "α₀", "‖θ*‖"]] = [170.0, 0.098, 0.004]
    null.loc[4, "null"] = False
    result = told(chapter, "tell_null", null, 163.0)
    assert result.values["null-splits"] == "9" and result.values["null-other"] == "4"
    assert result.values["null-sharp"] == "0.8"
    other = null.assign(**{"κ": 2.0, "α₀": 0.5, "‖θ*‖": 1.0})
    assert failed(chapter, "tell_null", (other, 163.0)) == set(result.held)


def trained():
    """A table like the chapter's, of three rates and six α."""
    rows = []
    for rate in chapter.RATES:
        for alpha in protocol.ALPHAS:
            slow = rate == 0.0001
            close = {0.01: 2e-6 if alpha > 0.1 else 1e-4, 0.001: 1e-5, 0.0001: 0.1}[rate]
            rows.append(
                {
                    "rate": rate,
                    "α": alpha,
                    "excess": close,
                    "norm": 0.4 if slow else 1.0,
                    "to start": 0.1,
                    "to optimum": 0.6,
                    "null": 0.05 if alpha <= 0.2 else 0.5,
                }
            )
    return pd.DataFrame(rows)


class Optimum:
    """A solution with coefficients of norm one."""

    coef = np.array([0.6, 0.8])


def test_adam():
    best = {alpha: Optimum() for alpha in protocol.ALPHAS}
    result = told(chapter, "tell_adam", trained(), best, np.array([3.0, 4.0]))
    assert result.values["adam-start"] == "5.00"
    assert result.values["adam-exact-low"] == "1.00"
    far = trained().assign(excess=1.0)
    near = trained().assign(excess=0.0, norm=5.0, **{"to optimum": 0.0})
    worse = trained().assign(null=0.0)
    variants = [(table, best, np.ones(2)) for table in (far, near, worse)]
    assert failed(chapter, "tell_adam", *variants) == set(result.held)
    shown = chapter.shown_adam(trained(), best)
    assert shown.shape == (6, 8) and shown.iloc[0, 0] == "5e-02"


def test_drawing():
    index = pd.MultiIndex.from_product([protocol.ATTRIBUTES, protocol.ALPHAS])
    columns = ["norm", "f_a", "c_index", "ci", "adam_f_a", "adam_c_index", "adam_ci"]
    mean = pd.DataFrame(0.5, index, columns)
    mean.loc[("support", 0.1), "norm"] = 0.0
    figure = chapter.draw_optima(mean)
    assert [panel.get_yscale() for panel in figure.axes] == ["log", "log", "linear", "linear"]
