"""What predictions promise: against loops over pairs, refits, and simulated truth."""

from dataclasses import replace

import numpy as np
import pytest
from leave_one_out import drawn
from scipy import special
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression
from test_uno_and_slope import patients_and_group, value_without_each

from drocox.heldout import HeldOut, promise
from drocox.heldout.intervals import jackknife, simultaneous


def compared(patients, members):
    """The pairs that Harrell's c-index compares among members, the event first."""
    for i in np.flatnonzero(members & patients.event):
        for j in np.flatnonzero(members & (patients.fold == patients.fold[i])):
            later = patients.time[j] > patients.time[i]
            if later or (patients.time[j] == patients.time[i] and not patients.event[j]):
                yield i, j


def literal_slope(patients, pairs):
    """Logistic regression of the order of events on differences of scores, without intercept."""
    apart = np.array([patients.scores[i] - patients.scores[j] for i, j in pairs])
    return brentq(lambda b: (apart * special.expit(-b * apart)).sum(), -9, 9, xtol=1e-14)


def kept(patients):
    """Everybody's pairs without each two patients."""
    everybody = np.full(len(patients.time), True)
    pairs = list(compared(patients, everybody))
    return lambda i, j: [pair for pair in pairs if i not in pair and j not in pair]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_slope_and_promise_equal_loops_over_pairs(seed, exact, monkeypatch):
    """Ties in times and scores, one to three folds; with few different scores a grid is exact."""
    data, patients = drawn(seed)
    monkeypatch.setattr(promise, "EXACT", 1000 if exact else 0)
    members = data.groups["site"] == 0
    everybody = np.full(len(data), True)
    arrays = patients.scores, patients.time, patients.event, patients.fold
    slope, without = promise.pair_slope(*arrays)
    assert slope == pytest.approx(literal_slope(patients, compared(patients, everybody)), rel=1e-9)
    sums = np.zeros(len(data))
    total = []
    for i, j in compared(patients, members):
        apart = abs(patients.scores[i] - patients.scores[j])
        value = special.expit(slope * apart) if apart > 1e-8 else 0.5
        change = apart * value * (1 - value)
        # each pair by the slope without its two patients, to first order
        total.append(value + (without[i] + without[j] - 2 * slope) * change)
        sums[[i, j]] += value
    found = patients.alone(members).implied_pairs(slope)[:, 0]
    np.testing.assert_allclose(found, sums[members], rtol=1e-10)
    promised = patients.c_promised(members)
    assert promised.value == pytest.approx(np.mean(total), rel=1e-10)
    difference = patients.c_minus_promised(members)
    apart = patients.c_index(members).value - promised.value
    assert difference.value == pytest.approx(apart, rel=1e-12)


def test_each_pair_has_the_slope_without_its_two_patients():
    """To first order: against a slope refitted for every pair."""
    patients, members = patients_and_group(0, n=60)
    without = kept(patients)
    total = []
    for i, j in compared(patients, members):
        slope = literal_slope(patients, without(i, j))
        total.append(special.expit(slope * abs(patients.scores[i] - patients.scores[j])))
    assert patients.c_promised(members).value == pytest.approx(np.mean(total), abs=1e-3)
    in_sample = literal_slope(patients, without(-1, -1))
    every = [abs(patients.scores[i] - patients.scores[j]) for i, j in compared(patients, members)]
    naive = special.expit(in_sample * np.array(every)).mean()
    assert abs(np.mean(total) - naive) > 2 * abs(
        np.mean(total) - patients.c_promised(members).value
    )


@pytest.mark.parametrize("seed", range(3))
def test_leaving_out_an_outlier_changes_the_slope_nearly_as_a_refit_does(seed):
    """A high score that lives longest carries most of the information, which goes with it."""
    patients, _ = patients_and_group(seed, n=60)
    far = np.flatnonzero(~patients.event)[0]
    scores, time = patients.scores.copy(), patients.time.copy()
    scores[far], time[far] = 4 * np.abs(scores).max(), 1.5 * time.max()
    patients = replace(patients, scores=scores, time=time)
    slope, without = promise.pair_slope(scores, time, patients.event, patients.fold)
    refit = literal_slope(patients, kept(patients)(far, far))
    assert 0.6 < (without[far] - slope) / (refit - slope) < 1.1


@pytest.mark.parametrize("name", ["c_minus_promised", "auc_minus_promised"])
@pytest.mark.parametrize("seed", range(4))
def test_leave_one_out_values_approximate_refits(seed, name):
    """They include the change of everybody's slope, so that patients of other groups count."""
    patients, members = patients_and_group(seed, n=200)
    risk = special.expit(patients.scores - 0.5)
    patients = replace(patients, risk=risk)
    exact = value_without_each(name, patients, members)
    without = getattr(patients, name)(members).without
    for rows in (members, ~members):
        assert np.corrcoef(without[rows], exact[rows])[0, 1] > 0.99
        assert without[rows].std() == pytest.approx(exact[rows].std(), rel=0.1)


@pytest.mark.parametrize("outlier", [None, 30.0])
def test_a_grid_keeps_to_its_bound(outlier, monkeypatch):
    rng = np.random.default_rng(0)
    n = 400
    scores = rng.standard_normal(n)
    if outlier:
        scores[7] = outlier
    time = np.ceil(40 * rng.exponential(np.exp(-scores)))
    event = rng.random(n) < 0.5
    arrays = scores, time, event, np.zeros(n, int)
    slope, _ = promise.pair_slope(*arrays)
    exact = promise.pair_sums(*arrays, slope)[:, 0]
    monkeypatch.setattr(promise, "EXACT", 0)
    binned = promise.pair_sums(*arrays, slope)[:, 0]
    assert promise.pair_slope(*arrays)[0] == pytest.approx(slope, rel=3e-3)
    nodes = promise.grid(scores)
    assert len(nodes) <= promise.NODES < n
    cell = np.clip(np.searchsorted(nodes, scores, side="right") - 1, 0, len(nodes) - 2)
    width = np.diff(nodes)[cell]
    bound = np.zeros(n)
    patients = HeldOut(*arrays)
    for i, j in compared(patients, np.full(n, True)):
        error = slope**2 * (width[i] ** 2 + width[j] ** 2) / (48 * np.sqrt(3))
        error += slope * width[i] / 8 * (cell[i] == cell[j])
        bound[[i, j]] += error
    assert (np.abs(binned - exact) <= bound).all()
    pairs = patients.harrell_pairs[:, 1].sum()
    assert bound.sum() / pairs < 1e-3
    # nodes between an outlier and the others serve nobody
    assert abs(binned.sum() - exact.sum()) / pairs < (2e-4 if outlier else 3e-5)


# At a horizon -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_promised_auc_equals_loops_and_a_weighted_logistic_regression(seed):
    patients, members = patients_and_group(seed, n=120)
    scores = np.round(patients.scores, 1)  # ties
    patients = replace(patients, scores=scores, risk=special.expit(scores - 0.5))
    until = patients.until
    case = patients.event & (patients.time <= until)
    control = patients.time > until
    last = np.argmax(np.where(control, -np.inf, patients.time))
    weight = np.where(case, patients.weights.weight, control * patients.weights.weight[last])
    logit = special.logit(patients.risk)
    theirs = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    used = weight > 0
    theirs.fit(logit[used, None], case[used], weight[used])
    coef, shift = promise.recalibrated(
        patients.risk, patients.time, patients.event, patients.weights, until
    )
    assert coef == pytest.approx([theirs.intercept_[0], theirs.coef_[0, 0]], rel=1e-6)
    p = special.expit(coef[0] + coef[1] * logit)
    points = pairs = 0.0
    for i in np.flatnonzero(members):
        for j in np.flatnonzero(members & (patients.fold == patients.fold[i])):
            if i == j:
                continue
            # to first order, by coefficients without the two patients
            eta = [coef @ [1, logit[k]] + (shift[i] + shift[j]) @ [1, logit[k]] for k in (i, j)]
            first, second = special.expit(eta)
            share = first * (1 - second)
            points += share * (0.5 if scores[i] == scores[j] else float(scores[i] > scores[j]))
            pairs += share
    assert patients.auc_promised(members).value == pytest.approx(points / pairs, abs=2e-3)
    plain = np.full(2, 0.0)
    for i in np.flatnonzero(members):
        for j in np.flatnonzero(members & (patients.fold == patients.fold[i])):
            if i != j:
                share = p[i] * (1 - p[j])
                half = 0.5 if scores[i] == scores[j] else float(scores[i] > scores[j])
                plain += share * half, share
    alone = patients.alone(members)
    terms = np.zeros(2)
    for fold in np.unique(alone.fold):
        rows = alone.fold == fold
        of_fold = promise.implied_auc_terms(alone.scores[rows], logit[members][rows], coef)
        terms += of_fold[0].sum(axis=0) / 2
    np.testing.assert_allclose(terms, plain, rtol=1e-12)


def test_recalibration_without_each_patient_is_a_refit_with_new_censoring_weights():
    """Fixed weights of cases would be off by 0.18 of the spread, those of controls by 0.3."""
    rng = np.random.default_rng(0)
    n = 400
    scores = rng.normal(size=n)
    death, leaves = rng.exponential(np.exp(-scores)), rng.exponential(0.5, n)
    outcomes = np.minimum(death, leaves), death <= leaves, np.zeros(n, int)
    patients = HeldOut(scores, *outcomes, risk=special.expit(scores - 0.5))

    def fit(rows):
        some = patients.subset(rows)
        return promise.recalibrated(some.risk, some.time, some.event, some.weights, patients.until)

    coef, shift = fit(np.full(n, True))
    refitted = np.array([fit(np.arange(n) != k)[0] - coef for k in range(n)])
    error = np.sqrt(((shift - refitted) ** 2).mean(axis=0)) / refitted.std(axis=0)
    assert (error < 0.12).all()


def test_risks_of_exactly_0_and_1_promise_to_be_right():
    patients, members = patients_and_group(1, n=200)
    risk = special.expit(patients.scores - 0.5)
    early = patients.event & (patients.time <= patients.until)
    risk = np.where(np.arange(200) < 10, early.astype(float), risk)
    scores = np.clip(special.logit(risk), -50, 50)
    found = replace(patients, scores=scores, risk=risk).auc_promised(members)
    assert 0.5 < found.value < 1 and np.isfinite(found.without).all()
    certain = replace(patients, scores=early - 0.5, risk=early.astype(float))
    assert np.isnan(certain.auc_promised(members).value)  # nothing is left to recalibrate by


# What it sees -------------------------------------------------------------------------------


def interval(estimate):
    covariance, df = jackknife(estimate.without[:, None])
    half = simultaneous(covariance, df)[0].item() * np.sqrt(covariance.item())
    return estimate.value - half, estimate.value + half


def simulated_groups(seed, n, censoring, truth, shown=1.0, distinct=None):
    """Two groups, a tenth with alike patients; ``truth`` gives log-hazards by score and group."""
    rng = np.random.default_rng(seed)
    few = rng.random(n) < 0.1
    scores = rng.normal(0, np.where(few, 0.3, 1.2))
    death = rng.exponential(np.exp(-truth(scores, few, rng)))
    leaves = rng.exponential(censoring, n)
    time = np.minimum(death, leaves)
    if distinct:
        time = np.ceil(distinct * time)
    return HeldOut(shown * scores, time, death <= leaves, np.zeros(n, int)), few


@pytest.mark.parametrize("distinct", [None, 5])
@pytest.mark.parametrize("censoring", [1.0, 0.1])
def test_a_perfect_model_keeps_its_promise_in_groups_with_a_gap(censoring, distinct):
    """Whatever the censoring, and with times in coarse units."""
    values = []
    for seed in range(12):
        patients, few = simulated_groups(
            seed, 1500, censoring, lambda f, few, rng: f, distinct=distinct
        )
        gap = patients.c_index(~few).value - patients.c_index(few).value
        both = [patients.c_minus_promised(group).value for group in (few, ~few)]
        values.append([gap, *both])
    gap, of_few, of_others = np.mean(values, axis=0)
    assert gap > 0.1
    assert abs(of_others) < 0.004 and abs(of_few) < 0.03


def test_one_scale_for_everybody_changes_nothing():
    shrunken, few = simulated_groups(0, 800, 1.0, lambda f, few, rng: f, shown=0.3)
    plain, _ = simulated_groups(0, 800, 1.0, lambda f, few, rng: f)
    for group in (few, ~few):
        one, two = shrunken.c_minus_promised(group), plain.c_minus_promised(group)
        assert one.value == pytest.approx(two.value, abs=1e-6)


def test_a_group_for_which_the_model_is_wrong_is_below_its_promise():
    patients, few = simulated_groups(0, 4000, 1.0, lambda f, few, rng: np.where(few, -f, f))
    assert interval(patients.c_minus_promised(few))[1] < 0
    assert abs(patients.c_minus_promised(~few).value) < 0.01


def test_a_constant_score_keeps_its_promise_of_nothing():
    patients, few = simulated_groups(0, 500, 1.0, lambda f, few, rng: f, shown=0.0)
    patients = replace(patients, risk=np.full(500, 0.3))
    for name in ("c", "auc"):
        assert getattr(patients, f"{name}_promised")(few).value == 0.5
        found = getattr(patients, f"{name}_minus_promised")(few)
        assert found.value == 0 and not np.ptp(found.without)


def test_scores_that_order_events_perfectly_promise_nothing_finite():
    time = np.arange(1.0, 31)
    patients = HeldOut(-time, time, np.full(30, True), np.zeros(30, int))
    assert np.isnan(patients.c_promised(time > 10).value)


def test_the_order_of_rows_makes_no_difference():
    patients, few = simulated_groups(3, 1500, 1.0, lambda f, few, rng: f)
    patients = replace(patients, risk=special.expit(patients.scores))
    rows = np.random.default_rng(0).permutation(1500)
    for name in ("c_minus_promised", "auc_minus_promised"):
        one = getattr(patients, name)(few)
        two = getattr(patients.subset(rows), name)(few[rows])
        assert one.value == pytest.approx(two.value, abs=1e-9)
        np.testing.assert_allclose(one.without[rows], two.without, atol=1e-9)
