r"""Training: linear and one-hidden-layer score functions, a whole stack of models at once.

A stack is a set of models of one shape on one training set that differ in learning rate, penalty
weight, :math:`\alpha` or initial weights. Their parameters are the rows of one matrix; each step
computes all scores, asks an objective for its gradient, and moves every row by Adam with its own
learning rate. No row sees another, so each model gets what it would get alone.

The objectives are the paper's: the mean Cox loss of the events plus :math:`\lambda` times a
penalty; the DRO risk of all patients' losses (7); the sum of the two split risks (9).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from tqdm import tqdm

from drocox import kernels
from drocox.cox import RiskSets, unchecked_losses
from drocox.dro import chi_square_risk
from drocox.regularizers import Pairs, hinge_gradient

N_ITER = 500

Objective = Callable[[torch.Tensor], torch.Tensor]


class _Objective(torch.autograd.Function):
    """An objective that finds value and gradient of all models in one go."""

    @staticmethod
    def forward(ctx, scores, evaluate):
        value, ctx.gradient = evaluate(scores.detach())
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return upstream[:, None] * ctx.gradient, None


def _objective(
    risk: RiskSets, parts: np.ndarray, c=1.0, ties="breslow", first=None, through=True
) -> Objective:
    """Sum of the risks of some parts of the patients, from compiled passes over all of them.

    Each row of ``parts`` (k, n) marks a part, in time order. ``c`` (models,) holds dual constants;
    1 is the mean. ``first`` marks D1 of split losses; ``through`` says whether the logarithm of a
    sum passes a gradient. Models whose scores spread too far for one shift of the exponent take the
    slow way of differentiable losses, and so do all with Efron's ties.
    """
    order = risk.order[0]
    event = risk.event[0]
    n = len(order)
    split = first is not None
    parts = parts.astype(float)
    inverse = np.argsort(order)
    unordered = np.take(parts, inverse, axis=1)

    def slow(scores: torch.Tensor, c) -> torch.Tensor:
        halves = first[None] if split else None
        losses = unchecked_losses(scores, risk, ties, first=halves, through=through)
        return sum(chi_square_risk(losses, c, part) for part in torch.from_numpy(unordered))

    if ties == "efron":
        return lambda scores: slow(scores, c)
    stop = np.arange(1, n + 1)[None] if ties == "order" else risk.stop
    enters = first[order].astype(int)[None] if split else np.zeros((1, n), int)
    sets = (stop, enters, 1 - enters if split else enters)

    def evaluate(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # patients in time order, latest first, from here on
        x = np.take(scores.numpy(), order, axis=1)  # rows stay contiguous, unlike with [:, order]
        x -= x.max(axis=1, keepdims=True)
        unsafe = ~(x.min(axis=1) > -kernels.SAFE_SPREAD)
        x[unsafe] = 0.0  # left to the slow way below
        hazard = np.exp(x)
        total = kernels.risk_sums(hazard, *sets)
        if split:
            total += hazard  # the patient's own term of its sum
        losses = np.log(total)
        losses -= x
        losses *= event
        value = np.zeros(len(x))
        pull = np.zeros_like(x)  # what each loss weighs in the objective
        constants = np.ones(len(x)) * c
        for part in parts:
            _, worst_mean, worst = kernels.worst_cases(losses, part, constants)
            value += worst_mean
            pull += worst
        pull *= event
        # an event pulls its own score up, and pushes everybody in its sum down by their hazard
        push = pull / total if through else np.zeros_like(x)
        slope = kernels.risk_sums_back(push, *sets)
        if split:
            slope += push
        slope *= hazard
        slope -= pull
        gradient = np.take(slope, inverse, axis=1)
        for m in np.flatnonzero(unsafe):
            with torch.enable_grad():
                leaf = scores[m : m + 1].clone().requires_grad_()
                alone = slow(leaf, constants[m])
                gradient[m] = torch.autograd.grad(alone.sum(), leaf)[0].numpy()
            value[m] = float(alone)
        return torch.from_numpy(value), torch.from_numpy(gradient)

    return lambda scores: _Objective.apply(scores, evaluate)


def cox_objective(risk: RiskSets, ties: str = "breslow", penalty=None, lam=None) -> Objective:
    r"""Mean Cox loss per event, plus :math:`\lambda` times a penalty on the hazards.

    Parameters
    ----------
    risk : RiskSets
        Of the training part.
    ties : {"breslow", "efron", "order"}
    penalty : callable or Pairs, optional
        Maps hazards (models, n) to one value per model, or is the prepared pairs of a hinge
        penalty.
    lam : sequence of float, optional
        Weight of the penalty in each model.

    Returns
    -------
    callable
        Maps scores (models, n) to one differentiable value per model. With pairs the value lacks
        the margins of the penalty; its gradient is that of the whole.
    """
    cox = _objective(risk, risk.event[:1], ties=ties)
    if penalty is None:
        return cox
    weight = torch.as_tensor(lam, dtype=torch.float64)

    def objective(scores: torch.Tensor) -> torch.Tensor:
        hazards = scores.exp()
        if isinstance(penalty, Pairs):
            # linear in h with the penalty's own gradient: the loop needs no value of it
            return cox(scores) + weight * (hazards * hinge_gradient(hazards, penalty)).sum(-1)
        return cox(scores) + weight * penalty(hazards)

    return objective


def dro_objective(risk: RiskSets, c, ties: str = "breslow") -> Objective:
    """DRO risk of the Cox losses of all patients, equation (7).

    Parameters
    ----------
    risk : RiskSets
        Of the training part.
    c : float or array of shape (models,)
        Dual constant of each model.
    ties : {"breslow", "efron", "order"}

    Returns
    -------
    callable
        Maps scores (models, n) to one differentiable value per model.
    """
    return _objective(risk, np.ones((1, risk.order.shape[1])), c, ties)


def split_objective(
    risk: RiskSets, first, c, sides: int = 2, reference_gradient: bool = True
) -> Objective:
    """Split DRO risk (9) of D1 against D2 and, with two sides, of D2 against D1 added to it.

    Parameters
    ----------
    risk : RiskSets
        Of the training part.
    first : bool array of shape (n,)
        True for the patients of D1.
    c : float or array of shape (models,)
        Dual constant of each model.
    sides : {1, 2}
    reference_gradient : bool
        Whether the logarithm of the sum in equation (8) passes a gradient. It does; False is for
        finding out what happens when it does not.

    Returns
    -------
    callable
        Maps scores (models, n) to one differentiable value per model.
    """
    first = np.asarray(first, dtype=bool)
    halves = np.stack([first, ~first])[:sides, risk.order[0]]
    return _objective(risk, halves, c, first=first, through=reference_gradient)


def initial_parameters(n_features: int, hidden: int | None, seed: int) -> np.ndarray:
    """Initial weights of ``torch.nn.Linear``, in float32 as after ``manual_seed(seed)``, flat.

    Parameters
    ----------
    n_features : int
    hidden : int or None
        Number of hidden units; None for a linear model.
    seed : int

    Returns
    -------
    array of shape (parameters,)
        In the order W1 (hidden x features), b1, w2, b2; a linear model has weights only.
    """
    generator = torch.Generator().manual_seed(seed)  # of its own: threads share the global one
    weights = []
    for inputs, outputs in pairwise([n_features, *([hidden] if hidden else []), 1]):
        layer = torch.empty(outputs, inputs, dtype=torch.float32)
        weights.append(torch.nn.init.kaiming_uniform_(layer, a=5**0.5, generator=generator))
        if hidden:
            bias = torch.empty(outputs, dtype=torch.float32)
            weights.append(bias.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator))
    return torch.nn.utils.parameters_to_vector(weights).double().numpy()


@dataclass(frozen=True)
class ScoreStack:
    """A stack of trained score functions."""

    theta: np.ndarray  # (models, parameters), in the order of initial_parameters
    hidden: int | None  # None: linear models
    offset: np.ndarray  # (models,), subtracted: the mean training score if centred, else 0

    def scores(self, X) -> np.ndarray:
        """Scores of the rows of ``X`` under every model.

        Parameters
        ----------
        X : array of shape (rows, d)

        Returns
        -------
        array of shape (models, rows)
        """
        network = _Network(np.asarray(X, dtype=float), len(self.theta), self.hidden)
        return network.scores(self.theta) - self.offset[:, None]


class _Network:
    """Scores of a stack on its training features, and the gradient of its parameters.

    Written out by hand, with hidden layers kept between steps: twice as fast as autograd.
    """

    def __init__(self, X: np.ndarray, models: int, hidden: int | None):
        self.X = X
        self.hidden = hidden
        if hidden is not None:
            self.with_ones = np.column_stack([X, np.ones(len(X))])  # the last column is the bias
            self.across = np.ascontiguousarray(self.with_ones.T)
            self.units = np.empty((models, hidden, len(X)))
            self.passed = np.empty((hidden, len(X)))

    def _layers(self, theta: np.ndarray) -> list[np.ndarray]:
        """Views of the layers in the rows of ``theta``."""
        d, hidden = self.X.shape[1], self.hidden
        w1, b1, w2, b2 = np.split(theta, np.cumsum([hidden * d, hidden, hidden]), axis=1)
        return [w1.reshape(len(theta), hidden, d), b1, w2, b2]

    def scores(self, theta: np.ndarray) -> np.ndarray:
        if self.hidden is None:
            return theta @ self.X.T
        out = np.zeros((len(theta), len(self.X)))
        for m, (w1, b1, w2, b2) in enumerate(zip(*self._layers(theta), strict=True)):
            np.matmul(np.column_stack([w1, b1]), self.across, out=self.units[m])
            out[m] = b2
            kernels.activate(self.units[m], w2, out[m])
        return out

    def gradient(self, theta: np.ndarray, upstream: np.ndarray) -> np.ndarray:
        if self.hidden is None:
            return upstream @ self.X
        grad = np.empty_like(theta)
        outer = self._layers(theta)[2]
        grad_w1, grad_b1, grad_w2, grad_b2 = self._layers(grad)
        for m in range(len(theta)):
            kernels.deactivate(self.units[m], upstream[m], grad_w2[m], self.passed)
            both = (self.passed @ self.with_ones) * outer[m][:, None]
            grad_w1[m] = both[:, :-1]
            grad_b1[m] = both[:, -1]
            grad_b2[m] = upstream[m].sum()
        return grad


def fit_stack(
    X,
    objective: Objective,
    theta,
    learning_rates,
    *,
    hidden: int | None = None,
    n_iter: int = N_ITER,
    centre: bool = False,
    verbose: bool = False,
) -> ScoreStack:
    """Train a stack of models by full-batch steps of Adam.

    Parameters
    ----------
    X : array of shape (n, d)
        Scaled training features.
    objective : callable
        Maps scores (models, n) to one differentiable value per model.
    theta : array of shape (models, parameters)
        Initial parameters, from :func:`initial_parameters`.
    learning_rates : sequence of float
        One for each model.
    hidden : int, optional
        Number of hidden units; None for linear models.
    n_iter : int
        Number of steps.
    centre : bool
        Whether to subtract the mean training score inside the model, which fixes the constant that
        the Cox loss cannot see.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    ScoreStack
    """
    X = np.ascontiguousarray(X, dtype=float)
    theta = np.array(theta, dtype=float, ndmin=2)
    rate = np.asarray(learning_rates, dtype=float).reshape(-1, 1)
    network = _Network(X, len(theta), hidden)
    first = np.zeros_like(theta)
    second = np.zeros_like(theta)
    b1, b2, eps = 0.9, 0.999, 1e-8  # Adam's usual constants
    for step in tqdm(range(1, n_iter + 1), disable=not verbose, desc="training", leave=False):
        with torch.enable_grad():  # also where the caller has switched gradients off
            scores = torch.from_numpy(network.scores(theta)).requires_grad_()
            used = scores - scores.mean(-1, keepdim=True) if centre else scores
            objective(used).sum().backward()
        grad = network.gradient(theta, scores.grad.numpy())
        first += (1 - b1) * (grad - first)
        second += (1 - b2) * (grad * grad - second)
        scale = np.sqrt(second) / np.sqrt(1 - b2**step) + eps
        theta -= rate / (1 - b1**step) * first / scale
    offset = network.scores(theta).mean(-1) if centre else np.zeros(len(theta))
    return ScoreStack(theta, hidden, offset)
