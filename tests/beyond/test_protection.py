"""How much alpha protects: theorems, compared with independent solvers."""

import literal
import numpy as np
import pytest
import torch
from cohort import patients
from scipy import optimize

from drocox import dro_risk, dual_constant, risk_sets, worst_case_weights
from drocox.beyond.protection import nominal_alpha, protected_share
from drocox.solver import minimise

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package


def tail(losses, alpha):
    """CVaR as a linear programme."""
    n = len(losses)
    bounds = [(0, 1 / (alpha * n))] * n
    return -optimize.linprog(-losses, A_eq=np.ones((1, n)), b_eq=[1], bounds=bounds).fun


@pytest.mark.parametrize("rule", ["paper", "definition", "sharp"])
@pytest.mark.parametrize("alpha", [0.2, 0.35, 0.5, 0.8])
def test_a_ball_covers_groups_of_the_protected_share_and_no_smaller_ones(rule, alpha):
    n = 60
    c = dual_constant(alpha, rule=rule)
    edge = n * protected_share(alpha, rule)
    assert edge == pytest.approx(n / c**2)
    covered = int(np.ceil(edge - 1e-9))
    for size in {max(1, covered - 1), covered}:
        losses = (np.arange(n) < size).astype(float)
        worst, _ = literal.dro_primal(losses, c)
        dual = dro_risk(torch.tensor(losses), alpha, rule=rule).item()
        assert worst == pytest.approx(dual, abs=1e-5)
        assert (worst > 1 - 1e-5) == (size == covered)


def test_nominal_alpha_inverts_the_protected_share():
    for share in (0.006, 0.1, 0.5, 0.9):
        for rule in ("paper", "definition", "sharp", "cvar"):
            assert protected_share(nominal_alpha(share, rule), rule) == pytest.approx(share)
        constants = [dual_constant(nominal_alpha(share, r), rule=r) for r in ("paper", "sharp")]
        assert constants[0] == pytest.approx(constants[1])


@pytest.mark.parametrize("seed", [0, 1])
def test_cvar_beyond_the_share_of_events_is_cox(seed):
    X, time, event = patients(seed=seed)
    rng = np.random.default_rng(seed)
    for alpha in (event.mean(), 0.9):
        for _ in range(3):
            losses = literal.cox_losses(X @ rng.standard_normal(2), time, event)
            assert tail(losses, alpha) == pytest.approx(losses.mean() / alpha, rel=1e-9)
    below = 0.5 * event.mean()
    assert tail(losses, below) < 0.99 * losses.mean() / below

    def cox(theta):
        return literal.cox_losses(X @ theta, time, event).mean()

    by_scipy = optimize.minimize(cox, np.zeros(2), method="BFGS").x
    found = minimise(X, risk_sets(time, event), event.mean(), rule="cvar").coef
    np.testing.assert_allclose(found, by_scipy, atol=1e-4)


def test_above_its_threshold_a_ball_weighs_everyone_and_is_mean_and_deviation():
    """From a share on that depends on the losses, the worst case gives every patient some weight,
    also those with loss 0; the risk is then the mean plus a multiple of the standard deviation."""
    X, time, event = patients(n=30, seed=3)
    losses = literal.cox_losses(X @ [0.5, -0.2], time, event)
    own = losses[event]
    edge = event.mean() / (1 + own.var() / own.mean() ** 2)
    for share in (0.97 * edge, 1.03 * edge):
        q = worst_case_weights(torch.tensor(losses), share, rule="sharp")
        assert (q > 0).all().item() == (share > edge)
    risk = losses.mean() + np.sqrt((1 / share - 1) * losses.var())
    worst, _ = literal.dro_primal(losses, share**-0.5)
    assert worst == pytest.approx(risk, abs=1e-6)
