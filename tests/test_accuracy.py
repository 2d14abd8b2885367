"""Accuracy metrics against hand-computed values, literal loops, scikit-survival and lifelines."""

import inspect

import literal
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lifelines import datasets
from lifelines.utils import concordance_index as lifelines_concordance_index
from sksurv.metrics import (
    concordance_index_censored,
    cumulative_dynamic_auc,
    integrated_brier_score,
)
from sksurv.util import Surv
from test_cox import LIFELINES

from drocox import accuracy

many = settings(max_examples=60)
shares = st.sampled_from([0.0, 0.3, 0.8, 0.95])  # of tied times
scales = st.sampled_from([1e-3, 1.0, 37.5, 1e4])
seeds = st.integers(0, 2**32 - 1)

# Six patients, small enough to work through by hand. The censoring curve G falls to 3/4 at time 2
# and to 3/8 at time 4; the survival curve S to 5/6, 2/3, 4/9 at times 1, 2, 3.
TIME = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 5.0])
EVENT = np.array([1, 1, 0, 1, 0, 1])
SCORES = np.array([3.0, 2.0, 2.0, 0.0, 1.0, -1.0])


def two_parts(seed: int, n: int, ties: float, time_scale: float):
    """Draw a training and a test part; the training follow-up ends last, with an event."""
    rng = np.random.default_rng(seed)
    train, test = (literal.random_survival(rng, n, ties) for _ in range(2))
    train_time = np.append(train.time, max(train.time.max(), test.time.max()) + 1) * time_scale
    return rng, train_time, np.append(train.event, True), test.time * time_scale, test.event


# By hand ------------------------------------------------------------------------------------


def test_concordance_of_six_patients():
    # Patient 0 wins 5 of 5 pairs, patient 1 wins 3 and ties 1 of 4, patient 3 wins 1 of 2.
    assert accuracy.concordance_index(SCORES, TIME, EVENT) == 9.5 / 11


def test_auc_of_six_patients():
    # AUC is 1 at the first percentile and at 2; at 3.2 the cases 0, 1, 3 weigh 1, 4/3, 4/3 and win
    # 2, 2, 1 of 2 controls: 9/11. S falls by 1/6, 1/6, 2/9 on the way, by 5/9 in all.
    expected = (1 / 6 + 1 / 6 + 2 / 9 * 9 / 11) / (5 / 9)
    assert expected == pytest.approx(51 / 55)
    got = accuracy.cumulative_auc(TIME, EVENT, SCORES, TIME, EVENT)
    assert got == pytest.approx(expected, abs=1e-14)


def test_brier_score_of_six_patients():
    # At 2.5 and at 3.5 the weights add up to 1 + 4/3 + 3 * 4/3 = 1 + 2 * 4/3 + 2 * 4/3 = 19/3.
    half = np.full((6, 2), 0.5)
    got = accuracy.integrated_brier_score(TIME, EVENT, half, TIME, EVENT, [2.5, 3.5])
    assert got == pytest.approx(0.25 * 19 / 3 / 6, abs=1e-15)


def test_brier_times_are_fifty_points_before_the_last_time():
    times = accuracy.brier_times([3.0, 8.0], [1.0, 5.5])
    np.testing.assert_allclose(times, 3.0 + 0.05 * np.arange(50), rtol=1e-14)
    assert accuracy.brier_times([0.0, 2.0], [1.0, 5.5])[0] == 1.0


# Against literal loops ----------------------------------------------------------------------


@many
@given(n=st.integers(1, 40), ties=st.sampled_from([0.0, 0.5, 0.9, 1.0]), scale=scales, seed=seeds)
def test_concordance_equals_the_pairs(n, ties, scale, seed):
    rng = np.random.default_rng(seed)
    _, time, event = literal.random_survival(rng, n, ties)
    scores = rng.integers(0, n, n) * scale
    try:
        expected = literal.concordance_index(scores, time, event)
    except ZeroDivisionError:
        with pytest.raises(ValueError, match=r"no comparable pair.*pass more patients"):
            accuracy.concordance_index(scores, time, event)
        return
    got = accuracy.concordance_index(scores, time, event)
    assert got == pytest.approx(expected, abs=1e-12)
    assert accuracy.concordance_index(-scores, time, event) == pytest.approx(1 - got, abs=1e-12)
    rows = rng.permutation(n)
    moved = accuracy.concordance_index(scores[rows], time[rows] * scale, event[rows])
    assert moved == pytest.approx(got, abs=1e-12)


@many
@given(n=st.integers(6, 40), ties=shares, scale=scales, seed=seeds)
def test_auc_equals_the_pairs_or_is_refused(n, ties, scale, seed):
    rng, train_time, train_event, time, event = two_parts(seed, n, ties, scale)
    scores = rng.integers(0, n, n) * scale
    arguments = (train_time, train_event, scores, time, event)
    try:
        expected = literal.cumulative_auc(*arguments)
    except ZeroDivisionError:
        with pytest.raises(ValueError, match=r"no (cases|controls)"):
            accuracy.cumulative_auc(*arguments)
        return
    assert accuracy.cumulative_auc(*arguments) == pytest.approx(expected, abs=1e-12)


@many
@given(
    n=st.integers(1, 40),
    ties=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 500.0]),
    shift=st.sampled_from([0.0, -20.0, 500.0]),
    seed=seeds,
)
def test_log_partial_likelihood_equals_the_loops(n, ties, scale, shift, seed):
    rng = np.random.default_rng(seed)
    _, time, event = literal.random_survival(rng, n, ties)
    scores = rng.uniform(-1, 1, n) * scale
    oracles = {
        "breslow": literal.cox_losses,
        "efron": literal.cox_losses_efron,
        "order": literal.cox_losses_order,
    }
    for name, losses in oracles.items():
        expected = literal.log_partial_likelihood(losses(scores, time, event), event)
        got = accuracy.log_partial_likelihood(scores + shift, time, event, ties=name)
        assert got == pytest.approx(expected, rel=1e-10, abs=1e-10)


@many
@given(n=st.integers(4, 25), ties=shares, scale=scales, seed=seeds, cut=st.booleans())
def test_brier_scores_equal_the_loops(n, ties, scale, seed, cut):
    rng, train_time, train_event, time, event = two_parts(seed, n, ties, scale)
    time[0] = time.max() + 0.75 * scale  # at least two distinct times; training ends later still
    if cut:  # training ends earlier, with somebody censored: G is 0 from there on
        end = rng.uniform(time.min(), time.max())
        train_time, train_event = np.minimum(train_time, end), train_event & (train_time < end)
        train_time, train_event = np.append(train_time, end / 2), np.append(train_event, True)
    times = accuracy.brier_times(train_time, time)[:: rng.integers(1, 20)]
    survival = np.sort(rng.random((n, len(times))), axis=1)[:, ::-1]
    parts = (time, event, times)
    expected = literal.integrated_brier_score(train_time, train_event, survival, *parts)
    got = accuracy.integrated_brier_score(train_time, train_event, survival, *parts)
    assert got == pytest.approx(expected, rel=1e-12)


# Against other packages ---------------------------------------------------------------------


@pytest.mark.parametrize("name", LIFELINES)
def test_concordance_equals_lifelines(name):
    load, duration, status = LIFELINES[name]
    frame = load()
    time, event = frame[duration], frame[status]
    for column in frame.columns.drop([duration, status]):
        scores = frame[column].to_numpy(float)
        expected = lifelines_concordance_index(time, -scores, event)
        got = accuracy.concordance_index(scores, time, event)
        assert got == pytest.approx(expected, abs=1e-12), column


@many
@given(
    n=st.integers(20, 200), ties=shares, scale=scales, seed=seeds,
    near=st.sampled_from([1.0, 1e-8, 0.6e-8, 1e-9]), cut=st.booleans(),
)  # fmt: skip
def test_all_metrics_equal_scikit_survival(n, ties, scale, seed, near, cut):
    """Tied times; scores tied, or in chains of distances around its tolerance of 1e-8."""
    rng, train_time, train_event, time, event = two_parts(seed, n, ties, scale)
    if cut:  # training ends first, with somebody censored: G is 0 from there on
        end = np.quantile(time, 0.9)
        train_event = train_event & (train_time < end)
        train_time = np.minimum(train_time, end)
        event = event & (time < end)
    assume(train_event.any() and event.any())
    train, test = Surv.from_arrays(train_event, train_time), Surv.from_arrays(event, time)
    scores = rng.integers(0, n, n) * near + rng.integers(0, 3, n)
    try:
        got = accuracy.cumulative_auc(train_time, train_event, scores, time, event)
    except ValueError:
        assume(False)  # refusals are tested against the loops
    percentiles = np.percentile(time, accuracy.AUC_PERCENTILES)
    expected = cumulative_dynamic_auc(train, test, scores, percentiles)[1]
    assert got == pytest.approx(expected, rel=0, abs=1e-12)
    times = accuracy.brier_times(train_time, time)
    survival = np.sort(rng.random((n, len(times))), axis=1)[:, ::-1]
    got = accuracy.integrated_brier_score(train_time, train_event, survival, time, event, times)
    expected = integrated_brier_score(train, test, survival, times)
    assert got == pytest.approx(expected, rel=1e-12)
    expected = concordance_index_censored(event, time, scores)[0]
    assert accuracy.concordance_index(scores, time, event) == expected


# Forms of input -----------------------------------------------------------------------------

SURVIVAL = np.linspace(0.9, 0.1, 12).reshape(6, 2)
GOOD = {
    "train_time": TIME,
    "train_event": EVENT,
    "scores": SCORES,
    "survival": SURVIVAL,
    "time": TIME,
    "event": EVENT,
    "times": np.array([2.5, 3.5]),
}
METRIC_FUNCTIONS = [
    accuracy.concordance_index,
    accuracy.cumulative_auc,
    accuracy.log_partial_likelihood,
    accuracy.integrated_brier_score,
    accuracy.brier_times,
]


def call(metric, **changes):
    """Call ``metric`` on the six patients with some arguments changed."""
    names = inspect.signature(metric).parameters
    return metric(**{name: v for name, v in (GOOD | changes).items() if name in names})


@pytest.mark.parametrize("metric", METRIC_FUNCTIONS[:-1])
def test_tensors_lists_and_series_give_the_same_float(metric):
    expected = call(metric)
    assert type(expected) is float
    assert call(metric, **{name: torch.tensor(v.copy()) for name, v in GOOD.items()}) == expected
    assert call(metric, **{name: v.tolist() for name, v in GOOD.items()}) == expected
    assert call(metric, event=pd.Series(EVENT == 1), time=pd.Series(TIME)) == expected
    scores = torch.tensor(SCORES, dtype=torch.float32, requires_grad=True)
    if "scores" in inspect.signature(metric).parameters:
        assert call(metric, scores=scores) == pytest.approx(expected, rel=1e-6)


BAD = [
    ("scores", np.array([np.nan, 2, 2, 0, 1, -1]), "scores.*NaN.*impute or drop"),
    ("scores", SCORES[:5], "scores has 5.*one value per patient"),
    ("scores", SCORES[None], "scores must have 1 dimension"),
    ("time", -TIME, "time holds negative values"),
    ("time", np.where(TIME == 5, np.nan, TIME), "time holds 1 NaN"),
    ("event", EVENT + 1, "event must be 0/1"),
    ("event", EVENT[:4], "event has 4"),
    ("train_time", -TIME, "train_time holds negative values"),
    ("train_time", np.append(TIME[:5], np.nan), "train_time holds 1 NaN"),
    ("train_time", TIME[:3], "train_time has 3"),
    ("train_event", EVENT * 0.5, "train_event must be 0/1"),
    ("survival", SURVIVAL[:, :1], r"one row per test patient \(6\) and one column .*\(2\)"),
    ("survival", SURVIVAL[0], "survival must have 2 dimension"),
    ("survival", -SURVIVAL, r"survival must lie in \[0, 1\]; pass probabilities"),
    ("survival", SURVIVAL * np.nan, "survival holds 12 NaN"),
    ("times", [3.5, 2.5], "times must hold two or more increasing.*sort them"),
    ("times", [2.5, 2.5], "increasing"),
    ("times", [0.5, 2.5], r"times must lie in \[1, 5\).*brier_times"),
    ("times", [2.5, 5.0], r"times must lie in \[1, 5\)"),
    ("ties", "exact", r"unknown ties 'exact'; .*breslow, efron, order"),
]


def bad_calls():
    for metric in METRIC_FUNCTIONS:
        for name, value, message in BAD:
            # brier_times reads times only, and needs them finite only
            if metric is accuracy.brier_times and "NaN" not in message:
                continue
            if name in inspect.signature(metric).parameters:
                yield pytest.param(metric, name, value, message, id=f"{metric.__name__}-{message}")


@pytest.mark.parametrize(("metric", "name", "value", "message"), list(bad_calls()))
def test_bad_input_is_refused_by_name(metric, name, value, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(metric, **{name: value})


def test_auc_without_cases_or_controls_is_refused():
    with pytest.raises(ValueError, match=r"no event up to the 5th percentile.*larger test part"):
        call(accuracy.cumulative_auc, event=[0, 1, 0, 1, 0, 1])
    frame = datasets.load_rossi()  # 318 of 432 patients are censored at the last week
    week, arrest = frame["week"], frame["arrest"]
    with pytest.raises(ValueError, match=r"81st percentile of time is its maximum \(52\)"):
        accuracy.cumulative_auc(week, arrest, np.zeros(len(week)), week, arrest)


def test_outcomes_beyond_the_training_follow_up_are_refused_where_their_weight_is_unknown():
    beyond = np.append(TIME[:5], 9.0)
    with pytest.raises(ValueError, match=r"beyond the last of train_time \(5\).*censor them"):
        call(accuracy.cumulative_auc, time=beyond)
    with pytest.raises(ValueError, match="end the test follow-up there"):
        call(accuracy.integrated_brier_score, time=beyond)
    # A training part that ends with a censored patient: G is 0 at its end, not unknown.
    censored_last = [1, 1, 0, 1, 0, 0]
    with pytest.raises(ValueError, match="at or beyond the last of train_time"):
        call(accuracy.cumulative_auc, train_event=censored_last)
    assert call(accuracy.cumulative_auc, train_event=censored_last, event=censored_last) > 0.5
    got = call(accuracy.integrated_brier_score, train_event=censored_last, time=beyond)
    expected = literal.integrated_brier_score(
        TIME, censored_last, SURVIVAL, beyond, EVENT, GOOD["times"]
    )
    assert got == pytest.approx(expected, rel=1e-14)


def test_brier_times_need_overlapping_parts():
    with pytest.raises(ValueError, match=r"no times between 7.*overlapping parts"):
        accuracy.brier_times([7.0, 9.0], TIME)
    with pytest.raises(ValueError, match="no times between"):
        accuracy.brier_times(TIME, [3.0, 3.0])
