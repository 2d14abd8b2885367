r"""Training: linear and one-hidden-layer score functions, a whole stack of models at once.

A stack is a set of models of one shape on one training set that differ in learning rate, penalty
weight, :math:`\alpha` or initial weights. Their parameters are the rows of one matrix; each step
computes all scores, asks an objective for its gradient, and moves every row by Adam with its own
learning rate. No row sees another, so each model gets what it would get alone.

The objectives are the paper's: the mean Cox loss of the events plus :math:`\lambda` times a
penalty; the DRO risk of all patients' losses (7); the sum of the two split risks (9).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from tqdm import tqdm

from drocox import kernels
from drocox.cox import RiskSets, _losses, _split_losses
from drocox.dro import _DRORisk
from drocox.regularizers import Pairs, hinge_gradient

N_ITER = 500

Objective = Callable[[torch.Tensor], torch.Tensor]


def cox_objective(risk: RiskSets, ties: str = "breslow", penalty=None, lam=None) -> Objective:
    r"""Mean Cox loss per event, plus :math:`\lambda` times a penalty on the hazards.

    ``penalty`` maps hazards (models, n) to one value per model, or is the prepared pairs of a hinge
    penalty; ``lam`` (models,) holds its weights.
    """
    events = int(risk.event[0].sum())
    weight = None if penalty is None else torch.as_tensor(lam, dtype=torch.float64)

    def objective(scores: torch.Tensor) -> torch.Tensor:
        value = _losses(scores, risk, ties).sum(-1) / events
        if isinstance(penalty, Pairs):
            # linear in h with the penalty's own gradient: the loop needs no value of it
            hazards = scores.exp()
            value = value + weight * (hazards * hinge_gradient(hazards, penalty)).sum(-1)
        elif penalty is not None:
            value = value + weight * penalty(scores.exp())
        return value

    return objective


def dro_objective(risk: RiskSets, c, ties: str = "breslow") -> Objective:
    """DRO risk of the Cox losses of all patients, equation (7), with one constant ``c`` a model."""

    def objective(scores: torch.Tensor) -> torch.Tensor:
        return _DRORisk.apply(_losses(scores, risk, ties), c)

    return objective


def split_objective(
    risk: RiskSets, first, c, sides: int = 2, reference_gradient: bool = True
) -> Objective:
    """Split DRO risk (9) of D1 against D2 and, with two sides, of D2 against D1 added to it."""
    first = np.ascontiguousarray(first)[None]
    in_first, in_second = (torch.from_numpy(np.flatnonzero(side)) for side in (first, ~first))

    def objective(scores: torch.Tensor) -> torch.Tensor:
        losses = _split_losses(scores, risk, first)
        value = _DRORisk.apply(losses[:, in_first], c)
        if sides == 2:
            value = value + _DRORisk.apply(losses[:, in_second], c)
        return value

    return objective


def initial_parameters(n_features: int, hidden: int | None, seed: int) -> np.ndarray:
    """PyTorch's default initial weights, drawn in float32 after ``manual_seed(seed)``, flat.

    The order is W1 (hidden x features), b1, w2, b2; a linear model has weights only.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if hidden is None:
            layers = [torch.nn.Linear(n_features, 1, bias=False, dtype=torch.float32)]
        else:
            layers = [
                torch.nn.Linear(n_features, hidden, dtype=torch.float32),
                torch.nn.Linear(hidden, 1, dtype=torch.float32),
            ]
    weights = [p.detach().reshape(-1) for layer in layers for p in layer.parameters()]
    return torch.cat(weights).double().numpy()


@dataclass(frozen=True)
class ScoreStack:
    """A stack of trained score functions."""

    theta: np.ndarray  # (models, parameters), in the order of initial_parameters
    n_features: int
    hidden: int | None  # None: linear models
    offset: np.ndarray  # (models,), subtracted: the mean training score if centred, else 0

    def scores(self, X) -> np.ndarray:
        """Scores of the rows of ``X`` under every model, shape (models, rows)."""
        layers = _layers(self.theta, self.n_features, self.hidden)
        X = np.ascontiguousarray(X, dtype=float)
        if self.hidden is None:
            return layers[0] @ X.T - self.offset[:, None]
        out = np.empty((len(self.theta), len(X)))
        for m, (w1, b1, w2, b2) in enumerate(zip(*layers, strict=True)):
            out[m] = w2 @ np.maximum(w1 @ X.T + b1[:, None], 0.0) + b2
        return out - self.offset[:, None]


def _layers(theta: np.ndarray, d: int, hidden: int | None) -> list[np.ndarray]:
    """Views of the layers in the rows of ``theta``."""
    if hidden is None:
        return [theta]
    cuts = np.cumsum([hidden * d, hidden, hidden])
    w1, b1, w2, b2 = np.split(theta, cuts, axis=1)
    return [w1.reshape(len(theta), hidden, d), b1, w2, b2]


class _Network:
    """Scores of a stack on its training features, and the gradient of its parameters.

    Written out by hand, with hidden layers kept between steps: twice as fast as autograd.
    """

    def __init__(self, X: np.ndarray, models: int, hidden: int | None):
        self.X, self.XT, self.hidden = X, np.ascontiguousarray(X.T), hidden
        if hidden is not None:
            self.ones = np.vstack([self.XT, np.ones(len(X))])
            self.units = np.empty((models, hidden, len(X)))
            self.masked = np.empty((hidden, len(X)))

    def scores(self, theta: np.ndarray) -> np.ndarray:
        layers = _layers(theta, self.X.shape[1], self.hidden)
        if self.hidden is None:
            return layers[0] @ self.XT
        out = np.zeros((len(theta), len(self.X)))
        for m, (w1, b1, w2, b2) in enumerate(zip(*layers, strict=True)):
            np.matmul(np.column_stack([w1, b1]), self.ones, out=self.units[m])
            out[m] = b2
            kernels.activate(self.units[m], w2, out[m])
        return out

    def gradient(self, theta: np.ndarray, upstream: np.ndarray) -> np.ndarray:
        if self.hidden is None:
            return upstream @ self.X
        grad = np.empty_like(theta)
        layers = _layers(theta, self.X.shape[1], self.hidden)
        grads = _layers(grad, self.X.shape[1], self.hidden)
        for m in range(len(theta)):
            w2 = layers[2][m]
            kernels.deactivate(self.units[m], upstream[m], grads[2][m], self.masked)
            both = (self.masked @ self.ones.T) * w2[:, None]
            grads[0][m], grads[1][m] = both[:, :-1], both[:, -1]
            grads[3][m] = upstream[m].sum()
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
    """Train a stack of models by ``n_iter`` full-batch steps of Adam.

    ``X`` (n, d) are scaled training features. ``objective`` maps scores (models, n) to one
    differentiable value per model. ``theta`` (models, parameters) are initial parameters, from
    :func:`initial_parameters`, and ``learning_rates`` (models,). ``hidden`` is the number of hidden
    units, None for linear models. ``centre`` subtracts the mean training score inside the model,
    which fixes the constant that the Cox loss cannot see; ``verbose`` shows a progress bar.
    """
    X = np.ascontiguousarray(X, dtype=float)
    theta = np.array(theta, dtype=float, ndmin=2)
    rate = np.asarray(learning_rates, dtype=float).reshape(-1, 1)
    network = _Network(X, len(theta), hidden)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    b1, b2, eps = 0.9, 0.999, 1e-8
    for step in tqdm(range(1, n_iter + 1), disable=not verbose, desc="training", leave=False):
        scores = torch.from_numpy(network.scores(theta)).requires_grad_()
        used = scores - scores.mean(-1, keepdim=True) if centre else scores
        objective(used).sum().backward()
        grad = network.gradient(theta, scores.grad.numpy())
        first += (1 - b1) * (grad - first)
        second += (1 - b2) * (grad * grad - second)
        scale = np.sqrt(second) / np.sqrt(1 - b2**step) + eps
        theta -= rate / (1 - b1**step) * first / scale
    offset = network.scores(theta).mean(-1) if centre else np.zeros(len(theta))
    return ScoreStack(theta, X.shape[1], hidden, offset)
