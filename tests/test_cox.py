"""Cox losses and survival curves against literal loops, lifelines, scikit-survival and limits."""

import literal
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import CoxPHFitter, datasets
from refused import bad_calls
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.linear_model.coxph import BreslowEstimator
from sksurv.util import Surv
from torch.autograd import gradcheck

import drocox

ORACLES = {
    "breslow": literal.cox_losses,
    "efron": literal.cox_losses_efron,
    "order": literal.cox_losses_order,
}
TIES = tuple(ORACLES)

sizes = st.integers(1, 30)
shares = st.sampled_from([0.0, 0.5, 0.8, 0.95, 1.0])  # of tied times
scales = st.sampled_from([0.0, 1e-3, 1.0, 30.0, 500.0, 1e4])
seeds = st.integers(0, 2**32 - 1)
stack_shapes = st.sampled_from([(), (1,), (3,), (2, 3), (2, 1, 2)])


def draw(seed: int, n: int, share: float, scale: float, shape: tuple = ()):
    """Scores of shape (*shape, n), half of them rounded so that some tie, and n outcomes."""
    rng = np.random.default_rng(seed)
    _, time, event = literal.random_survival(rng, n, share)
    scores = rng.uniform(-1, 1, (*shape, n))
    scores = np.where(rng.random(n) < 0.5, scores, scores.round(1)) * scale
    return rng, torch.from_numpy(scores), time, event


def random_sides(rng, n: int) -> np.ndarray:
    """D1 of a split of n >= 2 patients, with somebody on both sides."""
    first = rng.random(n) < rng.uniform(0.1, 0.9)
    first[rng.permutation(n)[:2]] = [True, False]
    return first


def gradient(function, scores: torch.Tensor, upstream=None) -> torch.Tensor:
    """Gradient of the (weighted) sum of ``function(scores)``."""
    scores = scores.detach().clone().requires_grad_()
    values = function(scores)
    values.backward(torch.ones_like(values) if upstream is None else upstream)
    return scores.grad


def equal(got, expected, atol=1e-10):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-12, atol=atol)


# Values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", TIES)
@given(n=sizes, share=shares, scale=scales, seed=seeds)
def test_losses_equal_the_formula(ties, n, share, scale, seed):
    _, scores, time, event = draw(seed, n, share, scale)
    got = drocox.cox_losses(scores, time, event, ties=ties)
    equal(got, ORACLES[ties](scores.numpy(), time, event))
    assert (got.numpy()[~event] == 0).all()
    assert (got > -1e-10).all() or ties == "efron"  # Efron's shared terms may be negative


@given(n=st.integers(2, 30), share=shares, scale=scales, seed=seeds)
def test_split_losses_equal_the_formula(n, share, scale, seed):
    rng, scores, time, event = draw(seed, n, share, scale)
    first = random_sides(rng, n)
    got = drocox.split_cox_losses(scores, time, event, first)
    equal(got, literal.split_cox_losses(scores.numpy(), time, event, first))
    assert torch.equal(got, drocox.split_cox_losses(scores, time, event, ~first))


def test_losses_of_four_patients_by_hand():
    # Hazards 1, 2, 3, 4; the events of patients 1 and 2 tie with the censoring of patient 3.
    scores = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64).log()
    time, event = [1, 2, 2, 2], [1, 1, 1, 0]
    by_hand = {
        "breslow": [10, 9 / 2, 9 / 3, 1],
        "efron": [10, np.sqrt(9 * 6.5) / 2, np.sqrt(9 * 6.5) / 3, 1],
        "order": [10, 2 / 2, 5 / 3, 1],
    }
    for ties, expected in by_hand.items():
        equal(drocox.cox_losses(scores, time, event, ties=ties).exp(), expected, atol=1e-13)
    split = drocox.split_cox_losses(scores, time, event, [True, True, False, False])
    equal(split.exp(), [8, 9 / 2, 5 / 3, 1], atol=1e-13)


# Stacks, types, prepared order --------------------------------------------------------------


@given(
    shape=stack_shapes, n=st.integers(2, 20), share=shares, scale=scales, seed=seeds,
    own_times=st.booleans(), own_events=st.booleans(), own_sides=st.booleans(),
)  # fmt: skip
@pytest.mark.slow
def test_a_stack_equals_its_rows(shape, n, share, scale, seed, own_times, own_events, own_sides):
    rng, scores, time, event = draw(seed, n, share, scale, shape)
    first = random_sides(rng, n)
    rows = [literal.random_survival(rng, n, share) for _ in range(scores.numel() // n)]
    if own_times:
        time = np.array([row.time for row in rows]).reshape(scores.shape)
    if own_events:
        event = np.array([row.event for row in rows]).reshape(scores.shape)
    if own_sides:
        first = np.array([random_sides(rng, n) for _ in range(scores.numel() // n)])
        first = first.reshape(scores.shape)
    upstream = torch.from_numpy(rng.standard_normal(scores.shape))
    losses = [(lambda f, t, e, d, k=k: drocox.cox_losses(f, t, e, ties=k)) for k in TIES]
    for loss in [*losses, drocox.split_cox_losses]:
        whole = loss(scores, time, event, first)
        assert whole.shape == scores.shape
        slope = gradient(lambda f, call=loss: call(f, time, event, first), scores, upstream)
        for at in np.ndindex(shape):
            row = (
                time[at] if own_times else time,
                event[at] if own_events else event,
                first[at] if own_sides else first,
            )
            equal(whole[at], loss(scores[at], *row), atol=1e-13)
            alone = gradient(lambda f, call=loss, row=row: call(f, *row), scores[at], upstream[at])
            equal(slope[at], alone, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_dtype_is_kept(dtype):
    rng, scores, time, event = draw(3, 25, 0.8, 1.0)
    first = random_sides(rng, 25)
    low, tolerance = scores.to(dtype), 4 * torch.finfo(dtype).eps
    calls = {k: lambda f, k=k: drocox.cox_losses(f, time, event, ties=k) for k in TIES}
    calls["split"] = lambda f: drocox.split_cox_losses(f, time, event, first)
    if dtype in (torch.float32, torch.float64):
        calls["survival"] = lambda f: drocox.breslow_survival(f, time, event, f, [1.0, 3.0])
    for call in calls.values():
        got, exact = call(low), call(low.double())
        assert got.dtype == dtype and exact.dtype == torch.float64
        assert torch.allclose(got.double(), exact, rtol=tolerance, atol=tolerance)
        assert gradient(call, low).dtype == dtype


class OnApple(torch.Tensor):
    """A tensor that says it is on a device without float64."""

    device = torch.device("mps")


def test_a_device_without_float64_is_refused():
    scores = torch.zeros(3).as_subclass(OnApple)
    for call, name in (
        (lambda: drocox.cox_losses(scores, [1, 2, 3], [1, 1, 1]), "scores"),
        (lambda: drocox.dro_risk(scores, 0.5), "losses"),
        (lambda: drocox.regularizers.group_keya(scores, [0, 1, 0]), "hazards"),
    ):
        with pytest.raises(TypeError, match=rf"{name} is on mps.*float64; pass {name}\.cpu\(\)"):
            call()


def read_only(values):
    values.setflags(write=False)
    return values


@pytest.mark.parametrize(
    "scores",
    [
        [1.0, 0.0, 2.0],
        [1, 0, 2],
        torch.tensor([1, 0, 2]),
        np.array([1.0, 0.0, 2.0]),
        np.array([2.0, 0.0, 1.0])[::-1],
        read_only(np.array([1.0, 0.0, 2.0])),
        pd.Series([1.0, 0.0, 2.0], index=[4, 9, 2]),
    ],
    ids=["list", "whole", "whole tensor", "array", "reversed view", "read-only", "rows of a frame"],
)
def test_any_array_of_scores_is_accepted(scores):
    expected = drocox.cox_losses(torch.tensor([1.0, 0.0, 2.0]).double(), [3, 1, 2], [1, 1, 0])
    got = drocox.cox_losses(scores, torch.tensor([3, 1, 2]), torch.tensor([True, True, False]))
    assert got.dtype == torch.float64
    equal(got, expected)


@given(n=st.integers(2, 25), share=shares, seed=seeds, rows=st.integers(1, 3))
def test_prepared_risk_sets_equal_stateless_calls(n, share, seed, rows):
    rng, scores, time, event = draw(seed, n, share, 1.0, (rows,))
    first = random_sides(rng, n)
    if rows > 1:
        time, event = rng.permuted(np.tile(time, (rows, 1)), axis=1), np.tile(event, (rows, 1))
    risk = drocox.risk_sets(time, event)
    for ties in TIES:
        prepared = drocox.cox_losses(scores, risk, ties=ties)
        assert torch.equal(prepared, drocox.cox_losses(scores, time, event, ties=ties))
    prepared = drocox.split_cox_losses(scores, risk, first=first)
    assert torch.equal(prepared, drocox.split_cox_losses(scores, time, event, first))
    if rows == 1:
        baseline = drocox.breslow_survival(scores, time, event, scores, time)
        assert torch.equal(drocox.breslow_survival(scores, risk, None, scores, time), baseline)


# Invariances --------------------------------------------------------------------------------


@given(
    n=st.integers(2, 30), share=shares, seed=seeds,
    shift=st.sampled_from([-1e4, -500.0, -1.0, 0.5, 500.0, 1e4]),
    time_scale=st.sampled_from([1e-6, 0.3, 1e6]),
)  # fmt: skip
def test_losses_ignore_a_constant_and_the_unit_of_time(n, share, seed, shift, time_scale):
    rng, scores, time, event = draw(seed, n, share, 1.0)
    first = random_sides(rng, n)
    for ties in TIES:
        kept = drocox.cox_losses(scores, time, event, ties=ties)
        moved = drocox.cox_losses(scores + shift, time * time_scale, event, ties=ties)
        equal(moved, kept, atol=1e-10)
    kept = drocox.split_cox_losses(scores, time, event, first)
    equal(drocox.split_cox_losses(scores + shift, time * time_scale, event, first), kept)
    curves = drocox.breslow_survival(scores, time, event, scores, time)
    equal(drocox.breslow_survival(scores + shift, time, event, scores + shift, time), curves)


# Gradients ----------------------------------------------------------------------------------


@settings(max_examples=15)
@given(n=st.integers(2, 9), share=shares, seed=seeds, rows=st.integers(1, 2))
def test_gradients_equal_finite_differences(n, share, seed, rows):
    rng, scores, time, event = draw(seed, n, share, 2.0, (rows,))
    first = random_sides(rng, n)
    scores.requires_grad_()
    for ties in TIES:
        assert gradcheck(lambda f, k=ties: drocox.cox_losses(f, time, event, ties=k), scores)
    assert gradcheck(lambda f: drocox.split_cox_losses(f, time, event, first), scores)


@settings(max_examples=10)
@given(n=st.integers(2, 8), share=shares, seed=seeds)
def test_gradients_of_survival_curves_equal_finite_differences(n, share, seed):
    rng, scores, time, event = draw(seed, n, share, 1.0)
    new = torch.from_numpy(rng.standard_normal(3)).requires_grad_()
    times = np.append(rng.choice(time, 3), 0.0)
    scores.requires_grad_()
    assert gradcheck(lambda f, g: drocox.breslow_survival(f, time, event, g, times), (scores, new))


def literal_gradient(scores, time, event, upstream, first=None) -> np.ndarray:
    """Gradient of sum(upstream * losses): each event pushes itself down and its risk set up."""
    n = len(scores)
    out = np.zeros(n)
    for i in np.flatnonzero(event):
        risk = [j for j in range(n) if time[j] >= time[i]]
        if first is not None:
            risk = [j for j in risk if j == i or first[j] != first[i]]
        total = literal.log_sum_exp(scores[j] for j in risk)
        out[i] -= upstream[i]
        out[risk] += upstream[i] * np.exp(scores[risk] - total)
    return out


EXTREMES = {
    "equal scores": lambda rng, n: np.zeros(n),
    "equal large scores": lambda rng, n: np.full(n, 500.0),
    "plus and minus 500": lambda rng, n: rng.choice([-500.0, 500.0], n),
    "plus and minus 1e4": lambda rng, n: rng.choice([-1e4, 0.0, 1e4], n),
    "spread over 2e4": lambda rng, n: rng.uniform(-1e4, 1e4, n),
    "one far above": lambda rng, n: np.where(np.arange(n) == n // 2, 1e4, 0.0),
    "one far below": lambda rng, n: np.where(np.arange(n) == n // 2, -1e4, 0.0),
    "just safe": lambda rng, n: rng.choice([0.0, 599.0], n),  # either side of the switch to a
    "just unsafe": lambda rng, n: rng.choice([0.0, 601.0], n),  # running maximum
    "too far for one shift": lambda rng, n: rng.choice([0.0, 800.0], n),  # exp(-800) is 0
}
OUTCOMES = {
    "ties": lambda rng, n: literal.random_survival(rng, n, 0.8)[1:],
    "distinct": lambda rng, n: literal.random_survival(rng, n, 0.0)[1:],
    "all at one time": lambda rng, n: (np.ones(n), rng.permutation(n) < n // 2),
    "all events": lambda rng, n: (rng.integers(1, 6, n) * 1.0, np.ones(n, bool)),
    "ties at the top": lambda rng, n: (np.minimum(np.arange(n), n // 2) * 1.0, np.ones(n, bool)),
    "one event, first": lambda rng, n: (np.arange(n) * 1.0, np.arange(n) == 0),
    "one event, last": lambda rng, n: (np.arange(n) * 1.0, np.arange(n) == n - 1),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("extreme", EXTREMES)
def test_losses_and_gradients_of_extreme_scores_are_finite_and_correct(extreme, outcome):
    rng, n = np.random.default_rng(11), 24
    time, event = OUTCOMES[outcome](rng, n)
    scores = torch.from_numpy(EXTREMES[extreme](rng, n))
    upstream, first = rng.uniform(0, 1, n), random_sides(rng, n)
    for ties, oracle in ORACLES.items():
        got = drocox.cox_losses(scores, time, event, ties=ties)
        equal(got, oracle(scores.numpy(), time, event))
        slope = gradient(lambda f, k=ties: drocox.cox_losses(f, time, event, ties=k), scores)
        assert torch.isfinite(slope).all()
        assert abs(slope.sum()) < 1e-10  # a constant is invisible
        low = scores.float()
        slope = gradient(lambda f, k=ties: drocox.cox_losses(f, time, event, ties=k), low)
        assert torch.isfinite(slope).all()
    weights = torch.from_numpy(upstream)
    slope = gradient(lambda f: drocox.cox_losses(f, time, event), scores, weights)
    equal(slope, literal_gradient(scores.numpy(), time, event, upstream))
    slope = gradient(lambda f: drocox.split_cox_losses(f, time, event, first), scores, weights)
    equal(slope, literal_gradient(scores.numpy(), time, event, upstream, first))


# Against lifelines and scikit-survival ------------------------------------------------------

LIFELINES = {
    "rossi": (lambda: datasets.load_rossi(), "week", "arrest"),
    "larynx": (lambda: datasets.load_larynx(), "time", "death"),
    "lung": (lambda: datasets.load_lung().dropna(), "time", "status"),
    "leukemia": (lambda: datasets.load_leukemia(), "t", "status"),
    "regression": (lambda: datasets.load_regression_dataset(), "T", "E"),
    "kidney": (lambda: datasets.load_kidney_transplant(), "time", "death"),
    "gbsg2": (lambda: datasets.load_gbsg2().select_dtypes("number"), "time", "cens"),
}


@pytest.mark.parametrize("name", LIFELINES)
def test_efron_and_breslow_fits_equal_other_packages(name):
    load, duration, status = LIFELINES[name]
    frame = load()
    time, event = frame[duration].to_numpy(float), frame[status].to_numpy() == 1
    X = frame.drop(columns=[duration, status]).to_numpy(float)
    X = (X - X.mean(0)) / X.std(0)

    fit = CoxPHFitter().fit(frame, duration_col=duration, event_col=status)
    scores = torch.from_numpy(fit.predict_log_partial_hazard(frame).to_numpy())
    losses = drocox.cox_losses(scores, time, event, ties="efron")
    assert -float(losses.sum()) == pytest.approx(fit.log_likelihood_, rel=1e-10)
    times = np.unique(time)
    expected = fit.predict_survival_function(frame.head(7), times=times).to_numpy().T
    got = drocox.breslow_survival(scores, time, event, scores[:7], times)
    equal(got, expected, atol=1e-9)

    for ties in ("efron", "breslow"):
        other = CoxPHSurvivalAnalysis(ties=ties, tol=1e-13).fit(X, Surv.from_arrays(event, time))
        scores = torch.from_numpy(other.predict(X))
        slope = gradient(lambda f, k=ties: drocox.cox_losses(f, time, event, ties=k), scores)
        assert np.abs(X.T @ slope.numpy()).max() < 1e-6  # the maximum: flat along every feature
    curves = BreslowEstimator().fit(scores.numpy(), event, time)
    curves = curves.get_survival_function(scores.numpy()[:7])
    got = drocox.breslow_survival(scores, time, event, scores[:7], times)
    equal(got, np.array([curve(times) for curve in curves]))


# Survival curves ----------------------------------------------------------------------------


@given(
    n=sizes, share=shares, scale=st.sampled_from([0.0, 1.0, 20.0, 200.0]), seed=seeds,
    shape=stack_shapes, m=st.integers(1, 4),
)  # fmt: skip
def test_survival_equals_the_formula_and_falls_with_time(n, share, scale, seed, shape, m):
    rng, train_scores, time, event = draw(seed, n, share, scale, shape)
    scores = torch.from_numpy(rng.uniform(-1, 1, (*shape, m)) * scale)
    times = np.sort(np.concatenate([[0.0], rng.choice(time, 4), rng.uniform(0, time.max() + 1, 3)]))
    got = drocox.breslow_survival(train_scores, time, event, scores, times)
    assert got.shape == (*shape, m, len(times))
    assert (got >= 0).all() and (got <= 1).all()
    assert (got.diff(dim=-1) <= 0).all()
    assert (got[..., times < time[event].min()] == 1).all()
    for at in np.ndindex(shape):
        expected = literal.breslow_survival(
            train_scores[at].numpy(), time, event, scores[at].numpy(), times
        )
        equal(got[at], expected)
    # Times are taken in any order, one curve per column.
    mixed = rng.permutation(len(times))
    moved = drocox.breslow_survival(train_scores, time, event, scores, times[mixed])
    equal(moved, got[..., mixed], atol=0)


def test_survival_of_extreme_scores():
    train = torch.tensor([1e4, -1e4, 0.0, 500.0], dtype=torch.float64)
    time, event = [1, 2, 3, 4], [1, 1, 1, 1]
    got = drocox.breslow_survival(train, time, event, [1e4, -1e4], [0, 1, 2, 9])
    equal(got, [[1, np.exp(-1), 0, 0], [1, 1, 1, 1]])
    high = drocox.breslow_survival(train + 1e4, time, event, [2e4, 0.0], [0, 1, 2, 9])
    equal(high, got)


# Bad input ----------------------------------------------------------------------------------

N = 4
GOOD = {
    "scores": torch.zeros(N),
    "time": np.arange(1.0, N + 1),
    "event": np.array([1, 0, 1, 1]),
    "first": np.array([True, False, True, False]),
    "train_scores": torch.zeros(N),
    "times": np.array([1.5, 2.5]),
}
CALLS = {
    "risk_sets": ["time", "event"],
    "cox_losses": ["scores", "time", "event"],
    "split_cox_losses": ["scores", "time", "event", "first"],
    "breslow_survival": ["train_scores", "time", "event", "scores", "times"],
}
BAD = [
    ("scores", [0.0, np.nan, 0.0, 0.0], "scores holds NaN or infinite.*check the model"),
    ("scores", [0.0, np.inf, 0.0, 0.0], "scores holds NaN or infinite.*check the model"),
    ("scores", [], "scores is empty; pass"),
    ("scores", torch.zeros(2, 0), "scores is empty; pass"),
    ("time", [1, 2, np.nan, 4], "time holds 1 NaN or infinite.*impute or drop"),
    ("time", [1, 2, np.inf, 4], "time holds 1 NaN or infinite.*impute or drop"),
    ("time", [1, -2, 3, 4], "time holds negative values; durations start at 0"),
    ("time", [1, 2, 3], "time has .*3.*event .*4.*; pass one"),
    ("time", [], "time is empty; pass at least one patient"),
    ("time", list("abcd"), "time must be numeric; encode"),
    ("event", [1, 0, 2, 1], r"event must be 0/1 or boolean \(1 = event"),
    ("event", [1, 0, 0.5, 1], "event must be 0/1"),
    ("event", [1, 0, np.nan, 1], "event holds 1 NaN"),
    ("event", [0, 0, 0, 0], "nobody has an event.*at least one event"),
    ("event", [1, 0], "time has .*4.*event .*2.*; pass one"),
    ("event", [], "event is empty; pass"),
    ("event", list("abcd"), "event must be numeric; encode"),
    ("first", [True] * N, "first leaves one side .*empty; put patients on both sides"),
    ("first", [False] * N, "first leaves one side .*empty; put patients on both sides"),
    ("first", [2, 0, 1, 1], "first must be boolean or 0/1"),
    ("first", [1, 0, np.nan, 1], "first must be boolean or 0/1"),
    ("first", [True, False], "first has .*2.*; pass one"),
    ("first", [], "first has .*0.*; pass one"),
    ("first", True, "first has .*; pass one"),
    ("first", None, "first .*; pass .*boolean"),
    ("times", [1.0, np.nan], "times holds 1 NaN"),
    ("times", [], "times is empty"),
    ("times", [[1.0]], "times must have 1 dimension"),
    ("train_scores", [], "^train_scores is empty"),
    ("train_scores", torch.zeros(N - 1), "train_scores has .*3.*time .*4"),
]


@pytest.mark.parametrize(("function", "name", "value", "message"), bad_calls(CALLS, BAD))
def test_bad_input_is_refused_by_name(function, name, value, message):
    arguments = {**GOOD, name: value}
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(drocox, function)(*(arguments[each] for each in CALLS[function]))


def test_shapes_that_do_not_fit_are_refused():
    scores, time, event, first = (GOOD[k] for k in ("scores", "time", "event", "first"))
    two, two_events = np.tile(time, (2, 1)), np.tile(event, (2, 1))
    with pytest.raises(ValueError, match=r"scores has .*5.*time .*4.*; pass one score"):
        drocox.cox_losses(torch.zeros(N + 1), time, event)
    with pytest.raises(ValueError, match=r"scores has shape \(4,\), time \(2, 4\).* and time of"):
        drocox.cox_losses(scores, two, two_events)
    with pytest.raises(ValueError, match=r"(2 rows.*3 rows|3, 4.*2, 4).*; pass one"):
        drocox.cox_losses(torch.zeros(3, N), drocox.risk_sets(two, two_events))
    for rows in (1, 3):
        with pytest.raises(ValueError, match=r"first has .*pass one"):
            drocox.split_cox_losses(torch.zeros(rows, N), time, event, np.array([first, ~first]))
    with pytest.raises(ValueError, match=r"time must have shape \(n,\)"):
        drocox.breslow_survival(torch.zeros(2, N), two, two_events, torch.zeros(2, N), [1.0])
    with pytest.raises(ValueError, match="nobody has an event"):  # in the second row
        drocox.cox_losses(torch.zeros(2, N), two, np.array([[1, 1, 1, 1], [0, 0, 0, 0]]))
    with pytest.raises(TypeError, match=r"event.*risk_sets\(time, event\)"):
        drocox.cox_losses(scores, drocox.risk_sets(time, event), event)
    with pytest.raises(TypeError, match=r"event.* pass .*time and event"):
        drocox.cox_losses(scores, time)
    with pytest.raises(TypeError, match=r"event.* pass .*time and event"):
        drocox.split_cox_losses(scores, time, first=first)
