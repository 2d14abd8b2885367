"""Training against torch.optim.Adam with autograd, and models fitted alone.

The reference objectives here are dense: masks over all pairs of patients, and worst-case weights
from the primal solver. Nothing of the package enters them.
"""

from concurrent.futures import ThreadPoolExecutor

import literal
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drocox import cox_losses, dro_risk, dual_constant, fairness, regularizers, risk_sets
from drocox.training import (
    Ball,
    RiskObjective,
    ScoreStack,
    Tail,
    cox_objective,
    dro_objective,
    fit_stack,
    initial_parameters,
    split_objective,
)

N, D, HIDDEN = 36, 3, 5
LAM, ALPHA, GAMMA = 0.7, 0.4, 0.01
RNG = np.random.default_rng(20)
X, TIME, EVENT = literal.random_survival(RNG, N, 0.7, D)
FIRST = RNG.permutation(N) < N // 3
CODES = RNG.permutation(np.arange(N) % 2)
CODES_2D = np.column_stack([CODES, RNG.permutation(np.arange(N) % 3)])
RISK = risk_sets(TIME, EVENT)
C = dual_constant(ALPHA, rule="paper")


# The dense reference ------------------------------------------------------------------------


def dense_losses(scores: torch.Tensor, ties: str = "breslow", split: bool = False):
    """Losses of one model with all risk sets as rows of an n x n mask."""
    at_risk = TIME[None, :] >= TIME[:, None]
    if ties == "order":
        place = np.empty(N)
        place[np.argsort(-TIME, kind="stable")] = np.arange(N)
        at_risk = place[None, :] <= place[:, None]
    if split:
        at_risk &= (FIRST[None, :] != FIRST[:, None]) | np.eye(N, dtype=bool)
    masked = scores[None, :].masked_fill(torch.from_numpy(~at_risk), -torch.inf)
    log_sum = masked.logsumexp(-1)
    if ties == "efron":
        tied = torch.from_numpy((TIME[None, :] == TIME[:, None]) & EVENT[None, :]).double()
        deaths, terms = tied.sum(-1), torch.zeros(N, dtype=torch.float64)
        everyone, dying = log_sum.exp(), tied @ scores.exp()
        for k in range(int(deaths.max())):
            part = torch.where(k < deaths, everyone - k / deaths.clamp(min=1) * dying, 1.0)
            terms = terms + part.log() / deaths.clamp(min=1)
        log_sum = terms
    return torch.where(torch.from_numpy(EVENT), log_sum - scores, 0.0)


def dense_dro(losses: torch.Tensor, c: float) -> torch.Tensor:
    """DRO risk whose gradient is the primal solution."""
    return torch.from_numpy(literal.dro_primal(losses.detach().numpy(), c)[1]) @ losses


def dense_hinges(h: torch.Tensor, meets: np.ndarray, divisor: float) -> torch.Tensor:
    rows = torch.tensor(literal.unit_rows(X), dtype=torch.float64)
    margins = GAMMA * (rows[:, None] - rows).square().sum(-1).sqrt()
    hinges = ((h[:, None] - h).abs() - margins).clamp(min=0)
    return hinges[torch.from_numpy(meets)].sum() / divisor


def dense_means(h: torch.Tensor, codes: np.ndarray, size: int) -> torch.Tensor:
    members = [torch.from_numpy(codes == g) for g in range(size)]
    return torch.stack([(h[m].sum() + 0.5) / (m.sum() + 1) for m in members])


LATER = ~EVENT[:, None] & EVENT[None, :] & (TIME[:, None] <= TIME[None, :])
EVENTS, CENSORED = int(EVENT.sum()), int((~EVENT).sum())
DENSE_PENALTIES = {
    "keya_i": lambda h: dense_hinges(h, np.tri(N, k=-1) > 0, N * (N - 1)),
    "rp_i": lambda h: dense_hinges(h, LATER, EVENTS * CENSORED),
    "rp_g": lambda h: dense_hinges(
        h, LATER & (CODES[:, None] == CODES[None, :]), EVENTS * CENSORED),
    "keya_g": lambda h: (dense_means(h, CODES, 2) - h.mean()).abs().max(),
    "keya_cap": lambda h: (
        lambda m: m.log().max() - m.log().min()
    )(dense_means(h, CODES_2D[:, 0] * 3 + CODES_2D[:, 1], 6)),
}  # fmt: skip
PENALTIES = {
    "keya_i": regularizers.all_pairs(X, GAMMA),
    "rp_i": regularizers.censored_event_pairs(X, TIME, EVENT, gamma=GAMMA),
    "rp_g": regularizers.censored_event_pairs(X, TIME, EVENT, CODES, GAMMA),
    "keya_g": lambda h: regularizers.group_keya(h, CODES),
    "keya_cap": lambda h: regularizers.intersectional_keya(h, CODES_2D),
}


def plain(f, ties):
    return dense_losses(f, ties).sum() / EVENTS


# name: (objective of the package for m models, dense objective of one model's scores)
OBJECTIVES = {
    **{
        f"cox, {ties}": (lambda m, k=ties: cox_objective(RISK, k), lambda f, k=ties: plain(f, k))
        for ties in ("breslow", "efron", "order")
    },
    **{
        f"cox + {name}": (
            lambda m, p=name: cox_objective(RISK, "breslow", PENALTIES[p], np.full(m, LAM)),
            lambda f, p=name: plain(f, "breslow") + LAM * DENSE_PENALTIES[p](f.exp()),
        )
        for name in PENALTIES
    },
    "dro": (lambda m: dro_objective(RISK, np.full(m, C)), lambda f: dense_dro(dense_losses(f), C)),
    "dro, order": (
        lambda m: dro_objective(RISK, np.full(m, C), "order"),
        lambda f: dense_dro(dense_losses(f, "order"), C),
    ),
    "split": (
        lambda m: split_objective(RISK, FIRST, np.full(m, C)),
        lambda f: (
            dense_dro(dense_losses(f, split=True)[FIRST], C)
            + dense_dro(dense_losses(f, split=True)[~FIRST], C)
        ),
    ),
    "split, one side": (
        lambda m: split_objective(RISK, FIRST, np.full(m, C), sides=1),
        lambda f: dense_dro(dense_losses(f, split=True)[FIRST], C),
    ),
}


def module(theta: np.ndarray, hidden: int | None, d: int = D) -> torch.nn.Module:
    """The score function as a PyTorch module with the given parameters, in float64."""
    if hidden is None:
        net = torch.nn.Sequential(torch.nn.Linear(d, 1, bias=False))
    else:
        net = torch.nn.Sequential(
            torch.nn.Linear(d, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1)
        )
    torch.nn.utils.vector_to_parameters(torch.from_numpy(theta), net.double().parameters())
    return net


def adam(theta, hidden, objective, steps: int, centre: bool = False, penalty: float = 0.0):
    """Parameters after full-batch steps of torch.optim.Adam on autograd's gradient."""
    net = module(theta.copy(), hidden)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    features = torch.from_numpy(X)
    weights = [p for name, p in net.named_parameters() if "weight" in name]  # no biases
    for _ in range(steps):
        optimiser.zero_grad()
        scores = net(features)[:, 0]
        squares = sum(p.square().sum() for p in weights)
        value = objective(scores - scores.mean() if centre else scores)
        (value + penalty / 2 * squares).backward()
        optimiser.step()
    return torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()


@pytest.mark.parametrize("hidden", [None, HIDDEN], ids=["linear", "mlp"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_steps_equal_torch_adam(name, hidden):
    ours, dense = OBJECTIVES[name]
    theta = initial_parameters(D, hidden, seed=4)
    for centre in (False, True):
        got = fit_stack(X, ours(1), theta, [0.01], hidden=hidden, n_iter=10, centre=centre)
        expected = adam(theta, hidden, dense, 10, centre)
        np.testing.assert_allclose(got.theta[0], expected, atol=1e-10)
        assert np.abs(got.theta[0] - theta).max() > 0.02  # it moved


# One compiled pass --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in OBJECTIVES if "_" not in n])
def test_scores_that_spread_too_far_give_the_same_gradients(name):
    """One shift of the exponent does not serve them; their neighbours in the stack do not care."""
    ours, dense = OBJECTIVES[name]
    spread = np.array([1.0, 700.0, 0.1, 5000.0])[:, None]
    scores = torch.from_numpy(spread * np.random.default_rng(8).uniform(-1, 1, (4, N)))
    scores.requires_grad_()
    value = ours(4)(scores)
    (slope,) = torch.autograd.grad(value.sum(), scores)
    for m in range(4):
        one = scores[m].detach().requires_grad_()
        expected = dense(one)
        if "efron" in name and spread[m] > 1:  # the dense reference of Efron overflows there
            continue
        assert value[m].item() == pytest.approx(expected.item(), rel=1e-10)
        (expected,) = torch.autograd.grad(expected, one)
        np.testing.assert_allclose(slope[m], expected, atol=1e-8)


@pytest.mark.parametrize("sides", [0, 2])
def test_scores_that_spread_too_far_keep_the_constant_of_their_model(sides):
    constants = np.array([1.2, 2.5, 4.0])
    spread = np.array([1.0, 900.0, 3000.0])[:, None]
    scores = torch.from_numpy(spread * np.random.default_rng(3).uniform(-1, 1, (3, N)))
    if sides:
        objective = split_objective(RISK, FIRST, constants)
    else:
        objective = dro_objective(RISK, constants)
    for m in range(3):
        losses = dense_losses(scores[m], split=sides == 2)
        parts = [FIRST, ~FIRST] if sides else [np.full(N, True)]
        expected = sum(float(dense_dro(losses[part], constants[m])) for part in parts)
        assert objective(scores)[m].item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("adversary", [Ball(1.8), Tail(0.3)], ids=["ball", "tail"])
def test_objective_with_weights_and_strata_is_the_printed_risk(adversary, weighted):
    """Value and gradient against the public functions, whose derivatives are torch's."""
    rng = np.random.default_rng(7)
    weights = rng.integers(0, 4, N).astype(float) if weighted else np.ones(N)
    strata = rng.integers(0, 3, N)
    risk = risk_sets(TIME, EVENT, strata=strata)
    scores = torch.from_numpy(np.array([[1.0], [800.0]]) * rng.normal(size=(2, N)))
    scores.requires_grad_()
    objective = RiskObjective(risk, adversary, weights[None], weights=weights)
    value = objective(scores)
    (slope,) = torch.autograd.grad(value.sum(), scores)
    alpha, rule = (0.3, "cvar") if isinstance(adversary, Tail) else (1 / 1.8**2, "sharp")
    losses = cox_losses(scores, risk, weights=weights)
    expected = dro_risk(losses, alpha, rule=rule, weights=weights)
    np.testing.assert_allclose(value.detach(), expected.detach(), rtol=1e-10)
    (expected,) = torch.autograd.grad(expected.sum(), scores)
    np.testing.assert_allclose(slope, expected, atol=1e-9)


@pytest.mark.parametrize("hidden", [None, HIDDEN], ids=["linear", "mlp"])
def test_weight_decay_is_half_the_square_of_the_weights_without_biases(hidden):
    ours, dense = OBJECTIVES["dro"]
    theta = initial_parameters(D, hidden, seed=4)
    expected = adam(theta, hidden, dense, 25, penalty=0.3)
    got = fit_stack(X, ours(1), theta, [0.01], hidden=hidden, n_iter=25, penalty=0.3)
    np.testing.assert_allclose(got.theta[0], expected, atol=1e-10)


@pytest.mark.parametrize("sides", [1, 2])
def test_without_reference_gradient_only_the_own_score_has_one(sides):
    rng = np.random.default_rng(9)
    scores = torch.from_numpy(np.array([[1.0], [800.0]]) * rng.normal(size=(2, N)))
    scores.requires_grad_()
    whole = split_objective(RISK, FIRST, np.full(2, C), sides)
    cut = split_objective(RISK, FIRST, np.full(2, C), sides, reference_gradient=False)
    np.testing.assert_allclose(cut(scores).detach(), whole(scores).detach(), rtol=1e-12)
    (slope,) = torch.autograd.grad(cut(scores).sum(), scores)
    for m in range(2):
        losses = dense_losses(scores[m].detach(), split=True).numpy()
        expected = np.zeros(N)
        for half in (FIRST, ~FIRST)[:sides]:
            expected[half] = -literal.dro_primal(losses[half], C)[1]
        np.testing.assert_allclose(slope[m], np.where(EVENT, expected, 0.0), atol=1e-8)


# Stacks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [None, HIDDEN], ids=["linear", "mlp"])
@pytest.mark.parametrize(
    "kind", ["breslow", "order", *PENALTIES, "dro", "split", "split, one side"]
)
def test_a_stack_equals_each_model_alone(hidden, kind):
    rng = np.random.default_rng(0)
    theta = np.stack([initial_parameters(D, hidden, m) for m in range(4)])
    rates, lams = 10.0 ** rng.uniform(-4, -1.5, 4), rng.uniform(0, 2, 4)
    c = np.array([dual_constant(alpha) for alpha in rng.uniform(0.05, 1.0, 4)])

    def fit(rows):
        if kind in PENALTIES:
            objective = cox_objective(RISK, "breslow", PENALTIES[kind], lams[rows])
        elif kind == "dro":
            objective = dro_objective(RISK, c[rows])
        elif kind.startswith("split"):
            objective = split_objective(RISK, FIRST, c[rows], 2 if kind == "split" else 1)
        else:
            objective = cox_objective(RISK, kind)
        how = {"hidden": hidden, "n_iter": 15, "centre": True}
        return fit_stack(X, objective, theta[rows], rates[rows], **how)

    whole = fit(np.arange(4))
    for m in range(4):
        alone = fit(np.array([m]))
        tolerance = 1e-10 if hidden is None else 1e-8
        np.testing.assert_allclose(whole.theta[m], alone.theta[0], atol=tolerance)
        np.testing.assert_allclose(whole.scores(X)[m], alone.scores(X)[0], atol=tolerance)


# Initial weights and scores -----------------------------------------------------------------


@given(
    d=st.integers(1, 14), hidden=st.one_of(st.none(), st.integers(1, 24)),
    seed=st.integers(0, 2**31),
)  # fmt: skip
def test_initial_parameters_are_the_default_draws_in_single_precision(d, hidden, seed):
    torch.manual_seed(seed)
    if hidden is None:
        layers = [torch.nn.Linear(d, 1, bias=False)]
    else:
        layers = [torch.nn.Linear(d, hidden), torch.nn.Linear(hidden, 1)]
    drawn = [p.detach().flatten() for layer in layers for p in layer.parameters()]
    expected = torch.cat(drawn).numpy().astype(np.float64)

    torch.manual_seed(99)
    state, default = torch.random.get_rng_state(), torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)  # whatever the user has set
        got = initial_parameters(d, hidden, seed)
    finally:
        torch.set_default_dtype(default)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, expected)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_initial_parameters_are_the_same_in_threads():
    """Two stacks may start at the same time in one process, as on a worker with threads."""
    alone = [initial_parameters(30, 50, seed) for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda seed: initial_parameters(30, 50, seed % 40), range(400)))
    assert all(np.array_equal(alone[k % 40], found) for k, found in enumerate(together))


@given(
    d=st.integers(1, 6), hidden=st.one_of(st.none(), st.integers(1, 8)), rows=st.integers(1, 9),
    models=st.integers(1, 4), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_scores_equal_a_torch_module(d, hidden, rows, models, seed):
    rng = np.random.default_rng(seed)
    theta = np.stack([initial_parameters(d, hidden, seed + m) for m in range(models)])
    features, offset = rng.standard_normal((rows, d)), rng.standard_normal(models)
    got = ScoreStack(theta, hidden, offset).scores(features)
    assert got.shape == (models, rows)
    for m in range(models):
        expected = module(theta[m].copy(), hidden, d)(torch.from_numpy(features))[:, 0]
        np.testing.assert_allclose(got[m], expected.detach() - offset[m], atol=1e-13)


# Centring -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cox, breslow", "dro", "split"])
def test_centring_fixes_the_constant_and_nothing_else(name):
    objective = OBJECTIVES[name][0](1)
    theta = initial_parameters(D, HIDDEN, seed=2)
    free, centred = (
        fit_stack(X, objective, theta, [0.01], hidden=HIDDEN, n_iter=30, centre=centre)
        for centre in (False, True)
    )
    assert free.offset.tolist() == [0.0]
    assert np.abs(centred.scores(X).mean()) < 1e-12
    assert np.abs(free.scores(X).mean()) > 1e-2
    np.testing.assert_allclose(
        centred.scores(X)[0], fairness.centred(free.scores(X)[0], free.scores(X)[0]), atol=1e-8
    )
    losses = [cox_losses(torch.from_numpy(m.scores(X)), RISK).numpy() for m in (free, centred)]
    np.testing.assert_allclose(*losses, atol=1e-8)
    np.testing.assert_allclose(centred.scores(X + 1) - free.scores(X + 1), -free.scores(X).mean(),
                               atol=1e-8)  # fmt: skip


def test_initial_weights_are_not_modified():
    theta = np.zeros((2, D))
    fit_stack(X, cox_objective(RISK), theta, [0.01, 0.01], n_iter=2)
    assert (theta == 0).all()
