"""Decisions at a threshold: against dcurves, a literal computation, and leaving patients out."""

from dataclasses import replace

import literal
import numpy as np
import pytest
from sksurv.datasets import load_whas500
from test_horizon import predicted

from drocox.heldout import HeldOut

NAMES = ["flagged", "sensitivity", "specificity", "ppv", "net_benefit"]

# Share flagged, true positives and net benefit by dcurves 1.1.7 on WHAS500 (scikit-survival), with
# the predicted risk 1 / (1 + exp((75 - age) / 8)) and time=730: everybody, men and women
DCURVES = {
    ("everybody", 0.2): (0.67, 0.31943106067841204, 0.23178882584801502),
    ("everybody", 0.75): (0.196, 0.1336331425160748, -0.053467429935700805),
    (0, 0.2): (0.58, 0.27735637768082466, 0.20169547210103084),
    (0, 0.4): (0.41333333333333333, 0.24454970883283683, 0.1320272924991725),
    (1, 0.2): (0.805, 0.38247521129159695, 0.27684401411449616),
    (1, 0.75): (0.29, 0.18500537056928026, -0.1299785177228789),
}


@pytest.mark.parametrize(("whom", "threshold"), list(DCURVES))
def test_net_benefit_equals_dcurves(whom, threshold):
    X, y = load_whas500()
    n = len(X)
    risk = 1 / (1 + np.exp((75 - X["age"].to_numpy(float)) / 8))
    fold = np.zeros(n, int)
    given = {"horizon": 730.0, "risk": risk, "threshold": threshold}
    patients = HeldOut(risk, y["lenfol"], y["fstat"], fold, **given)
    members = np.full(n, True) if whom == "everybody" else X["gender"].to_numpy(float) == whom
    share, positive, benefit = DCURVES[whom, threshold]
    assert patients.flagged(members).value == pytest.approx(share, rel=1e-12)
    found = patients.ppv(members).value
    assert found == pytest.approx(positive / share, rel=1e-12)
    found = patients.net_benefit(members).value
    assert found == pytest.approx(benefit, rel=1e-12, abs=1e-15)


def decided(patients, members):
    """All five by their definitions, with Kaplan and Meier's risk of flagged and of others."""
    threshold = patients.threshold
    sizes = {}
    events = {}
    for flag in (True, False):
        rows = members & ((patients.risk >= threshold) == flag)
        sizes[flag] = rows.sum()
        events[flag] = 0.0
        if rows.any():
            time, event = patients.time[rows], patients.event[rows]
            alive = literal.kaplan_meier(time, event, patients.until)
            unknown = alive > 0 and time.max() < patients.until  # once all died, nobody is alive
            events[flag] = np.nan if unknown else rows.sum() * (1 - alive)
    n = members.sum()
    false_positive = sizes[True] - events[True]
    negative = n - events[True] - events[False]
    return {
        "flagged": sizes[True] / n,
        "sensitivity": events[True] / (events[True] + events[False]),
        "specificity": (sizes[False] - events[False]) / negative,
        "ppv": events[True] / sizes[True],
        "net_benefit": events[True] / n - threshold / (1 - threshold) * false_positive / n,
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_decisions_equal_their_definitions_with_and_without_each_patient(seed, name):
    patients, members = predicted(seed)
    threshold = (0.2, 0.5, patients.risk[7])[seed % 3]  # a patient at the threshold is flagged
    patients = replace(patients, threshold=threshold)
    estimate = getattr(patients, name)(members)
    expected = decided(patients, members)[name]
    assert estimate.value == pytest.approx(expected, rel=1e-12)
    everyone = np.arange(len(members))
    exact = []
    for i in everyone:
        rest = members & (everyone != i)
        exact.append(decided(patients, rest)[name])
    np.testing.assert_allclose(estimate.without, exact, rtol=1e-10, atol=1e-15)


def test_nobody_or_everybody_may_be_flagged():
    patients, members = predicted(0)

    def values(threshold):
        flagging = replace(patients, threshold=threshold)
        return [getattr(flagging, name)(members).value for name in NAMES]

    flagged, sensitivity, specificity, ppv, benefit = values(patients.risk.max() + 1e-6)
    assert (flagged, sensitivity, specificity, benefit) == (0, 0, 1, 0) and np.isnan(ppv)
    low = patients.risk.min()
    observed = patients.risk_observed(members).value
    flagged, sensitivity, specificity, ppv, benefit = values(low)
    assert (flagged, sensitivity, specificity) == (1, 1, 0)
    assert ppv == pytest.approx(observed)
    assert benefit == pytest.approx(observed - low / (1 - low) * (1 - observed))


def test_flagged_patients_must_be_observed_up_to_the_horizon():
    """The last flagged patient leaves at the horizon; without them nothing is known of the rest."""
    patients, _ = predicted(0)
    everyone = np.full(90, True)
    flagged = patients.risk >= 0.6
    time = np.where(flagged, np.minimum(patients.time, 0.5 * patients.until), patients.time)
    last = np.flatnonzero(flagged)[0]
    late = np.where(np.arange(90) == last, patients.until, time)
    patients = replace(patients, time=late, threshold=0.6)
    for name in ("sensitivity", "ppv", "net_benefit"):
        value, without, *_ = getattr(patients, name)(everyone)
        assert np.isfinite(value) and list(np.flatnonzero(np.isnan(without))) == [last]
        assert np.isnan(getattr(replace(patients, time=time), name)(everyone).value)
    for gap in ("risk", "threshold"):
        with pytest.raises(ValueError, match="risk or threshold is missing; pass both"):
            replace(patients, **{gap: None}).ppv(everyone)
