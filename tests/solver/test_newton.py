"""The solver against formulas written out, solvers of SciPy, and scikit-survival."""

import fuzz_solver
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines.datasets import load_rossi
from scipy.optimize import minimize
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

import drocox
from drocox.dro import RULES
from drocox.paper.prepare import prepare
from drocox.solver import minimise
from drocox.solver import newton as solver

# The formulas, patient by patient ---------------------------------------------------------------


def literal_losses(X, time, event, theta, first=None, weights=None):
    """Equation (3), or (8) with ``first``, and the gradient of each loss."""
    f = X @ theta
    w = np.ones(len(X)) if weights is None else weights
    losses = np.zeros(len(X))
    slopes = np.zeros(X.shape)
    for i in np.flatnonzero(event):
        who = [j for j in range(len(X)) if time[j] >= time[i] and w[j] > 0]
        if first is not None:
            who = [j for j in who if j == i or first[j] != first[i]]
        top = f[who].max()
        share = w[who] * np.exp(f[who] - top)
        losses[i] = np.log(share.sum()) + top - f[i]
        slopes[i] = share @ X[who] / share.sum() - X[i]
    return losses, slopes


def saddle(X, time, event, alpha, rule, first=None):
    """max over q of min over theta, by two solvers of SciPy, one inside the other."""
    n = len(X)
    halves = [np.full(n, True)] if first is None else [first, ~first]
    start = sum(h / h.sum() for h in halves)
    theta = np.zeros(X.shape[1])

    def inner(q):
        def mean(theta):
            losses, slopes = literal_losses(X, time, event, theta, first)
            return q @ losses, q @ slopes

        nonlocal theta
        theta = minimize(mean, theta, jac=True, method="BFGS", options={"gtol": 1e-10}).x
        losses, _ = literal_losses(X, time, event, theta, first)
        return -q @ losses, -losses

    rules = [{"type": "eq", "fun": lambda q, h=h: q[h].sum() - 1} for h in halves]
    cap = 1.0
    if rule == "cvar":
        cap = start / alpha
    else:
        square = drocox.dual_constant(alpha, rule=rule) ** 2
        rules += [
            {"type": "ineq", "fun": lambda q, h=h: square - h.sum() * (q[h] ** 2).sum()}
            for h in halves
        ]
    found = minimize(
        inner,
        start,
        jac=True,
        method="SLSQP",
        bounds=list(zip(np.zeros(n), np.broadcast_to(cap, n), strict=True)),
        constraints=rules,
        options={"ftol": 1e-13, "maxiter": 300},
    )
    return -found.fun


def patients(seed, n=14, d=2, distinct=8):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, distinct + 1, n).astype(float)
    event = rng.random(n) < 0.7
    event[rng.integers(n)] = True
    first = rng.permutation(n) < n // 2
    for half in (first, ~first):
        event[np.flatnonzero(half)[0]] = True
    return rng.standard_normal((n, d)), time, event, first


def made_up(n, d, seed=0, events=0.5):
    """Patients whose first feature matters."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d))
    time = rng.exponential(np.exp(-0.7 * Z[:, 0]))
    event = rng.random(n) < events
    event[0] = True
    return Z, time, event


# The optimum ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("alpha", "split"), [(0.2, False), (0.5, True)])
def test_the_risk_equals_the_value_of_the_primal_problem(alpha, rule, split):
    Z, time, event, first = patients(1 if alpha == 0.2 else 2)
    first = first if split else None
    found = minimise(Z, drocox.risk_sets(time, event), alpha, rule=rule, first=first)
    assert found.gap <= 1e-8
    assert found.bound <= found.risk
    assert found.risk == pytest.approx(saddle(Z, time, event, alpha, rule, first), abs=2e-6)
    literal = fuzz_solver.literal_objective(found.coef, Z, time, event, alpha, rule, first)
    assert found.risk == pytest.approx(literal, abs=1e-9)


def rossi():
    frame = load_rossi()
    return (
        frame.drop(columns=["week", "arrest"]).to_numpy(float),
        frame.week.to_numpy(float),
        frame.arrest.to_numpy(bool),
    )


X, TIME, EVENT = rossi()
RISK = drocox.risk_sets(TIME, EVENT)


@pytest.mark.parametrize("rule", RULES)
def test_alpha_one_is_cox_regression(rule):
    cox = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-14)
    expected = cox.fit(X, Surv.from_arrays(EVENT, TIME)).coef_
    found = minimise(X, RISK, 1, rule=rule)
    np.testing.assert_allclose(found.coef, expected, rtol=0, atol=1e-8)
    assert found.gap <= 1e-10
    np.testing.assert_allclose(found.weights, 1 / len(X))


def test_cvar_with_many_censored_patients_in_the_tail():
    """All events and some of the censored are in the tail: the mean loss over its share."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20_000, 3))
    risk = drocox.risk_sets(rng.exponential(np.exp(-Z[:, 0])), rng.random(20_000) < 0.3)
    found = minimise(Z, risk, 0.5, rule="cvar")
    assert found.gap <= 1e-9
    assert found.risk == pytest.approx(minimise(Z, risk, 1).risk / 0.5, abs=1e-9)


@pytest.mark.parametrize("rule", ["paper", "cvar"])
def test_units_and_order_do_not_matter(rule):
    plain = minimise(X, RISK, 0.2, rule=rule, tol=1e-9)
    unit = np.array([1e-6, 1e6, 1.0, 1e20, 3.0, 1e-20, 7.0])
    rows = np.random.default_rng(0).permutation(len(X))
    shifted = X[rows] / unit + 5 * X.std(axis=0) / unit
    other = minimise(shifted, drocox.risk_sets(TIME[rows], EVENT[rows]), 0.2, rule=rule, tol=1e-9)
    np.testing.assert_allclose(other.coef / unit, plain.coef, atol=1e-6)
    assert other.risk == pytest.approx(plain.risk, rel=1e-10)


def test_constant_features_give_the_null_model():
    found = minimise(np.ones((len(X), 2)), RISK, 0.2, rule="cvar")
    assert found.coef.tolist() == [0, 0]
    assert found.gap <= 1e-8


@pytest.mark.parametrize("alpha", [1, 0.2, 0.05])
@pytest.mark.parametrize("split", [False, True])
def test_starting_from_a_sample_gives_the_same_model(alpha, split, monkeypatch):
    first = np.arange(len(X)) % 2 == 0 if split else None
    expected = minimise(X, RISK, alpha, rule="paper", first=first)
    monkeypatch.setattr(solver, "SAMPLE", 40)
    found = minimise(X, RISK, alpha, rule="paper", first=first)
    assert found.gap <= 1e-8
    assert found.risk == pytest.approx(expected.risk, rel=1e-9)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-5)


def test_a_sample_without_events_is_not_used(monkeypatch):
    few = np.isin(np.arange(len(X)), RISK.order[0][[1, 2, 3, 101, 102, 201]])
    risk = drocox.risk_sets(TIME, few)
    expected = minimise(X[:, :1], risk, 0.2, rule="paper")
    monkeypatch.setattr(solver, "SAMPLE", 40)
    np.testing.assert_array_equal(minimise(X[:, :1], risk, 0.2, rule="paper").coef, expected.coef)


# The null model ---------------------------------------------------------------------------------


def test_the_null_optimum_is_exact_zeros():
    rng = np.random.default_rng(4)
    n, d, dead = 300, 3, 60
    Z = rng.standard_normal((n, d))
    time = np.where(np.arange(n) < dead, 1.0, 1 + rng.exponential(size=n))
    found = minimise(Z, drocox.risk_sets(time, rng.random(n) < 2), 0.1, rule="paper")
    assert found.coef.tolist() == [0.0] * d
    assert found.risk == pytest.approx(np.log(n))
    assert found.gap <= 1e-9
    # the certificate: weights on the first deaths, in the ball, with the features' overall mean
    q = found.weights
    assert q[dead:].max() < 1e-6
    assert n * (q**2).sum() <= drocox.dual_constant(0.1, rule="paper") ** 2
    np.testing.assert_allclose(q @ Z, Z.mean(axis=0), atol=1e-4)


def test_the_optimum_on_support_is_the_null_model_for_small_alpha():
    ready = prepare("corrected", "support", 1)
    found = minimise(ready.X[0], ready.risk, 0.1, rule="paper")
    assert found.coef.tolist() == [0.0] * 14
    assert found.gap <= 1e-9
    n = len(ready.X[0])
    assert n * (found.weights**2).sum() == pytest.approx(120.0, abs=0.1)
    assert minimise(ready.X[0], ready.risk, 0.15, rule="paper").coef.any()


# The certificate --------------------------------------------------------------------------------


@st.composite
def problems(draw):
    n = draw(st.integers(2, 12))
    seed = draw(st.integers(0, 10**6))
    Z, time, event, first = patients(seed, n, draw(st.integers(1, 3)), draw(st.integers(1, n)))
    rng = np.random.default_rng(seed)
    how = {"rule": draw(st.sampled_from(RULES))}
    kind = draw(st.sampled_from(["plain", "split", "weights"]))
    if kind == "split":
        how["first"] = first
    if kind == "weights":
        how["weights"] = rng.choice([0.0, 0.5, 1.0, 2.5], n)
        how["weights"][np.flatnonzero(event)[0]] = 1.5
    return Z * rng.choice([0.1, 1.0, 10.0]), time, event, draw(st.floats(0.02, 1)), how, rng


@given(problems())
def test_no_coefficients_have_a_risk_below_the_bound(problem):
    Z, time, event, alpha, how, rng = problem
    found = minimise(Z, drocox.risk_sets(time, event), alpha, **how)
    assert found.gap <= 1e-6 or found.separated
    for scale in (0.0, 0.1, 1.0, 10.0):
        theta = found.coef * (scale < 10) + scale * rng.standard_normal(Z.shape[1])
        assert (
            found.bound <= fuzz_solver.literal_objective(theta, Z, time, event, alpha, **how) + 1e-9
        )


# Separation and bad input -----------------------------------------------------------------------


def test_separation_is_reported():
    late = np.column_stack([X, TIME == TIME.max()]).astype(float)
    for alpha in (1, 0.3):
        found = minimise(late, RISK, alpha, rule="paper")
        assert found.separated
        assert found.coef[-1] < -10
    three = drocox.risk_sets([1, 2, 3], [1, 1, 1])
    perfect = minimise([[3.0], [2.0], [1.0]], three, 0.5, rule="paper")
    assert perfect.separated and perfect.coef[0] > 10
    assert not minimise(X, RISK, 0.05, rule="paper").separated


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": X[:, 0]}, "X must have 2 dim"),
        ({"X": X[:10]}, "risk has shape .1, 432., X .10, 7."),
        ({"X": np.where(X > 40, np.nan, X)}, "X holds .* NaN"),
        ({"alpha": 0}, r"alpha must lie in \(0, 1\]"),
        ({"alpha": -0.5}, r"alpha must lie in \(0, 1\]"),
        ({"alpha": 1.5}, r"alpha must lie in \(0, 1\]"),
        ({"rule": "blunt"}, "unknown rule 'blunt'"),
        ({"first": EVENT}, "first: one half has no event"),
        ({"first": EVENT[:5]}, "first has 5"),
        ({"weights": np.ones(432), "first": EVENT}, "weights cannot be used with first"),
        ({"weights": np.ones(3)}, "weights must hold one number per patient"),
        ({"weights": ~EVENT}, "no event has a weight above 0"),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    arguments = {"X": X, "risk": RISK, "alpha": 0.2} | change
    with pytest.raises(ValueError, match=message):
        minimise(**arguments)


def test_a_certified_optimum_with_an_outlier_is_not_called_separated():
    """The outlier's score is 100 from all others, but the certificate holds."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200, 1))
    time = rng.exponential(np.exp(-z[:, 0]))
    z[time.argmin()] = 150.0
    found = minimise(z, drocox.risk_sets(time, np.ones(200)), 1.0)
    assert np.ptp(z @ found.coef) > 100
    assert found.gap <= 1e-6 and not found.separated


# Ridge -------------------------------------------------------------------------------------------


def test_ridge_with_more_columns_than_patients_equals_scikit_survival():
    Z, time, event = made_up(40, 100)
    Z[:, ::3] *= 5.0  # features as given: units matter
    found = minimise(Z, drocox.risk_sets(time, event), 1, penalty=0.05)
    peer = CoxPHSurvivalAnalysis(alpha=0.05 * 40, tol=1e-14, n_iter=500)
    expected = peer.fit(Z, Surv.from_arrays(event, time)).coef_
    np.testing.assert_allclose(found.coef, expected, atol=1e-5)
    assert found.gap <= 1e-9 and not found.separated


@pytest.mark.parametrize("rule", RULES)
def test_ridge_gives_separated_data_a_minimum(rule):
    late = np.column_stack([X, TIME == TIME.max()]).astype(float)
    assert minimise(late, RISK, 0.3, rule=rule).separated
    found = minimise(late, RISK, 0.3, rule=rule, penalty=1e-3)
    assert found.gap <= 1e-6 and not found.separated
    assert np.abs(found.coef).max() < 20


@pytest.mark.parametrize("rule", ["sharp", "cvar"])
def test_ridge_with_many_columns_is_certified(rule):
    Z, time, event = made_up(198, 80, events=0.26)
    found = minimise(Z, drocox.risk_sets(time, event), 0.3, rule=rule, penalty=0.01)
    assert found.gap <= 1e-6 and not found.separated


def test_more_columns_than_patients_are_reported_as_separated_quickly():
    Z, time, event = made_up(60, 90)
    for rule in ("sharp", "cvar"):
        found = minimise(Z, drocox.risk_sets(time, event), 0.3, rule=rule)
        assert found.separated and found.n_iter < 30


@pytest.mark.parametrize(("penalty", "error"), [(-1.0, ValueError), ("x", TypeError)])
def test_bad_penalties_are_refused(penalty, error):
    with pytest.raises(error, match=r"penalty must be a .*number >= 0"):
        minimise(X, RISK, 1, penalty=penalty)


# The gap, steps and samples ----------------------------------------------------------------------


def test_the_gap_is_relative_to_risks_above_one():
    found = minimise(X, RISK, 1, n_iter=1)
    assert found.risk > max(1.0, found.bound)
    assert found.gap == pytest.approx((found.risk - found.bound) / found.risk, rel=1e-9)


def test_the_gap_is_absolute_for_risks_below_one():
    risk = drocox.risk_sets([4, 3, 2, 1], [0, 1, 0, 1])
    found = minimise([[0.0], [5.0], [1.0], [3.0]], risk, 0.5, rule="cvar", n_iter=1)
    assert found.bound < found.risk < 1
    assert found.gap == pytest.approx(found.risk - found.bound, rel=1e-9)


@pytest.mark.parametrize("rule", ["sharp", "cvar"])
def test_at_least_one_step_is_taken(rule):
    found = minimise(X, RISK, 0.3, rule=rule, n_iter=0)
    assert found.n_iter == 1
    assert not found.separated


def test_starting_from_a_sample_works_with_strata(monkeypatch):
    risk = drocox.risk_sets(TIME, EVENT, strata=np.arange(len(X)) % 3)
    expected = minimise(X, risk, 0.2)
    monkeypatch.setattr(solver, "SAMPLE", 40)
    np.testing.assert_allclose(minimise(X, risk, 0.2).coef, expected.coef, atol=1e-6)


def test_starting_from_a_sample_works_with_an_outlier(monkeypatch):
    """The sample's optimum may put an outlier's score out of range."""
    Z, time, event = made_up(400, 2)
    Z[time.argmin() - 1 if time.argmin() % 4 == 0 else time.argmin(), 0] = -1e5
    risk = drocox.risk_sets(time, event)
    monkeypatch.setattr(solver, "SAMPLE", 40)
    found = minimise(Z, risk, 0.3)
    assert found.gap <= 1e-6 or found.separated


# Awkward data ------------------------------------------------------------------------------------


def test_an_outlier_whose_score_leaves_the_range_is_refused_by_row_and_column():
    """The best model puts an outlier, who dies first, more than 600 from the others."""
    problem = fuzz_solver.draw_problem(527)
    distance = np.abs(problem["X"] - np.median(problem["X"], axis=0))
    far = distance / np.median(distance, axis=0)
    row, column = np.unravel_index(far.argmax(), far.shape)
    with pytest.raises(ValueError, match=f"outlier in column {column}, row {row}: .*clip or tran"):
        fuzz_solver.solve(problem)


@pytest.mark.parametrize("rule", ["sharp", "cvar"])
def test_a_penalty_too_small_for_separated_data_is_refused(rule):
    """No patient is an outlier: the scores of all of them spread."""
    time = np.arange(1.0, 61.0)
    risk = drocox.risk_sets(time, np.ones(60))
    with pytest.raises(ValueError, match=r"nearly perfectly: with penalty=1e-08 .*larger penalty"):
        minimise(-time[:, None], risk, 0.3, rule=rule, penalty=1e-8)


def test_steps_continue_while_scores_move_far():
    """With units of 1e-13 and a small penalty, steps with a small decrease may move scores far."""
    assert fuzz_solver.judge(747, others=False) == "certified"


def test_patients_in_no_risk_set_have_no_influence():
    """An outlier of weight 0, whose score would leave the range of floating-point numbers."""
    assert fuzz_solver.judge(147, others=False) == "certified"


@pytest.mark.parametrize("seed", range(25))
def test_random_problems_equal_literal_formulas(seed):
    """The first of the random problems of ``fuzz_solver.py``."""
    assert fuzz_solver.judge(seed, others=False) in ("certified", "separated")
