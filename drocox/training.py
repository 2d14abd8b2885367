r"""Training: linear and one-hidden-layer score functions, a whole stack of models at once.

A stack is a set of models of one shape on one training set that differ in learning rate, penalty
weight, :math:`\alpha` or initial weights. Their parameters are the rows of one matrix; each step
computes all scores and the gradient of an objective, and updates every row by Adam with its own
learning rate. Rows do not interact, so each model is the same as if it were trained alone.

The objectives are the paper's: the mean Cox loss of the events plus :math:`\lambda` times a
penalty; the DRO risk of all patients' losses (7); the sum of the two split risks (9).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

import numpy as np
import torch
from tqdm import tqdm

from drocox import dual, kernels
from drocox.cox import RiskSets, unchecked_losses
from drocox.dro import chi_square_risk, tail
from drocox.regularizers import Pairs, hinge_gradient

N_ITER = 500

Objective = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Ball:
    """The adversary of a chi-square ball, with one dual constant or one for each model."""

    c: float | np.ndarray  # 1 gives the mean

    def worst_cases(self, losses: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Risk (models,) and worst case (models, n) under the case weights ``mass`` (n,)."""
        constants = np.ones(len(losses)) * self.c
        _, worst_mean, worst = kernels.worst_cases(losses, mass, constants)
        return worst_mean, worst

    def risk(self, losses: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
        """The risk (models,) as a differentiable function of the losses (models, n)."""
        return chi_square_risk(losses, self.c, mass)

    def of_model(self, m: int) -> "Ball":
        """The adversary of one model of the stack."""
        constants = np.asarray(self.c)
        if constants.ndim == 0:
            return self
        return Ball(float(constants[m]))


@dataclass(frozen=True)
class Tail:
    """The adversary of CVaR, with all weight on the share ``alpha`` with the largest losses."""

    alpha: float

    def worst_cases(self, losses: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Risk (models,) and worst case (models, n) under the case weights ``mass`` (n,)."""
        worst = dual.tail(losses, self.alpha, mass)
        return (worst * losses).sum(axis=1), worst

    def risk(self, losses: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
        """The risk (models,) as a differentiable function of the losses (models, n)."""
        return (tail(losses, self.alpha, mass) * losses).sum(-1)

    def of_model(self, m: int) -> "Tail":
        """The adversary of one model of the stack: the same for all."""
        return self


class _ValueWithGradient(torch.autograd.Function):
    """Passes a precomputed gradient to autograd."""

    @staticmethod
    def forward(ctx, scores, evaluate):
        value, ctx.gradient = evaluate(scores.detach())
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return upstream[:, None] * ctx.gradient, None


@dataclass(eq=False, repr=False)
class RiskObjective:
    r"""Worst-case mean Cox loss of every model of a stack, with its gradient.

    With the sums :math:`T_i = \sum_{j \in R_i} w_j e^{f_j}` of the paper's (3), or those of a split
    (8), :math:`T_i = e^{f_i} + \sum_{j \in D' \cap R_i} e^{f_j}`, and the adversary's worst case
    :math:`q` in each part of the patients,

    .. math:: R(f) = \sum_{\text{parts}} \max_q \sum_i q_i \delta_i (\log T_i - f_i), \qquad
              \frac{\partial R}{\partial f_k} = w_k e^{f_k} \sum_{i:\, k \in R_i}
              \frac{q_i \delta_i}{T_i} - q_k \delta_k.

    Both sums are running sums over patients in time order, in compiled loops, for models whose
    scores lie within ``kernels.SAFE_SPREAD``. Other models, and all models with Efron's ties, use
    the slower differentiable losses of :mod:`drocox.cox`.

    ``parts`` (k, n) are the case weights of the patients in each part whose risks are added, 0
    outside the part. ``first`` marks D1 and selects the split losses; ``weights`` enter the sums
    :math:`T_i` and exclude ``first``. With ``reference_gradient=False``, :math:`\log T_i` passes no
    gradient.
    """

    risk: RiskSets
    adversary: Ball | Tail
    parts: np.ndarray
    _: KW_ONLY
    ties: str = "breslow"
    first: np.ndarray | None = None
    weights: np.ndarray | None = None
    reference_gradient: bool = True

    def __post_init__(self) -> None:
        self.parts = np.asarray(self.parts, dtype=float)
        # from here on patients are in time order, latest first
        risk = self.risk
        order = risk.order[0]
        n = len(order)
        self.order = order
        self.inverse = np.argsort(order)
        self.ordered_parts = np.take(self.parts, order, axis=1)
        self.event = risk.event[0]
        self.widest = kernels.SAFE_SPREAD
        if self.weights is not None:
            self.mass = self.weights[order]
            self.event = self.event & (self.mass > 0)  # rows with weight 0 are ignored
            self.widest -= np.abs(np.log(self.mass[self.mass > 0])).max()
        stop = np.arange(1, n + 1)[None] if self.ties == "order" else risk.stop
        enters = np.zeros((1, n), int)
        meets = enters
        if self.first is not None:
            # one sum for each half: a patient enters its own, reads the other
            enters = self.first[order].astype(int)[None]
            meets = 1 - enters
        self.sets = (stop, enters, meets, risk.begin)

    def __call__(self, scores: torch.Tensor) -> torch.Tensor:
        """One differentiable value for each model, from scores (models, n)."""
        if self.ties == "efron":
            return self._slowly(scores, self.adversary)
        return _ValueWithGradient.apply(scores, self._evaluate)

    def _evaluate(self, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Value and gradient of all models."""
        x = np.take(scores.numpy(), self.order, axis=1)  # rows stay contiguous
        x -= x.max(axis=1, keepdims=True)
        unsafe = ~(x.min(axis=1) > -self.widest)
        x[unsafe] = 0.0  # evaluated by autograd below
        hazard = np.exp(x)
        if self.weights is not None:
            hazard *= self.mass
        total = self._sums(hazard)
        losses = np.log(total)
        losses -= x
        losses *= self.event
        value, pull = self._worst_case(losses)
        slope = self._slope(pull, hazard, total)
        gradient = np.take(slope, self.inverse, axis=1)
        for m in np.flatnonzero(unsafe):
            value[m], gradient[m] = self._evaluate_slowly(scores[m : m + 1], int(m))
        return torch.from_numpy(value), torch.from_numpy(gradient)

    def _sums(self, hazard: np.ndarray) -> np.ndarray:
        """The sums T_i, with 1 in place of those that are not used."""
        total = kernels.risk_sums(hazard, *self.sets)
        if self.first is not None:
            total += hazard  # the patient's own term
        if self.weights is not None:
            total[:, ~self.event] = 1.0  # sums of ignored rows may be 0
        return total

    def _worst_case(self, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of each model, and the weight of each event's loss in it."""
        value = np.zeros(len(losses))
        pull = np.zeros_like(losses)
        for mass in self.ordered_parts:
            worst_mean, worst = self.adversary.worst_cases(losses, mass)
            value += worst_mean
            pull += worst
        pull *= self.event
        return value, pull

    def _slope(self, pull: np.ndarray, hazard: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Gradient with respect to the scores, in time order."""
        push = pull / total if self.reference_gradient else np.zeros_like(pull)
        slope = kernels.risk_sums_back(push, *self.sets)
        if self.first is not None:
            slope += push
        slope *= hazard
        slope -= pull
        return slope

    def _slowly(self, scores: torch.Tensor, adversary: Ball | Tail) -> torch.Tensor:
        """The same value by differentiable losses."""
        losses = unchecked_losses(
            scores,
            self.risk,
            self.ties,
            self.weights,
            first=None if self.first is None else self.first[None],
            through=self.reference_gradient,
        )
        return sum(adversary.risk(losses, mass) for mass in torch.from_numpy(self.parts))

    def _evaluate_slowly(self, scores: torch.Tensor, m: int) -> tuple[float, np.ndarray]:
        """Value and gradient of model ``m`` alone, by autograd."""
        with torch.enable_grad():
            leaf = scores.clone().requires_grad_()
            value = self._slowly(leaf, self.adversary.of_model(m))
            (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return float(value.detach()), gradient[0].numpy()


def cox_objective(risk: RiskSets, ties: str = "breslow", penalty=None, lam=None) -> Objective:
    r"""Mean Cox loss per event, plus :math:`\lambda` times a penalty on the hazards.

    ``penalty`` maps hazards (models, n) to one value per model, or is the prepared ``Pairs`` of a
    hinge penalty; ``lam`` has one weight per model. With ``Pairs`` the value omits the margins of
    the penalty, but its gradient is complete.
    """
    event = np.empty_like(risk.event[0])
    event[risk.order[0]] = risk.event[0]
    cox = RiskObjective(risk, Ball(1.0), event[None], ties=ties)
    if penalty is None:
        return cox
    weight = torch.as_tensor(lam, dtype=torch.float64)

    def objective(scores: torch.Tensor) -> torch.Tensor:
        hazards = scores.exp()
        if isinstance(penalty, Pairs):
            # linear in h with the gradient of the penalty: training needs no value
            return cox(scores) + weight * (hazards * hinge_gradient(hazards, penalty)).sum(-1)
        return cox(scores) + weight * penalty(hazards)

    return objective


def dro_objective(risk: RiskSets, c, ties: str = "breslow") -> Objective:
    """DRO risk of the Cox losses of all patients, the paper's (7); one ``c`` or one per model."""
    everybody = np.ones((1, risk.order.shape[1]))
    return RiskObjective(risk, Ball(c), everybody, ties=ties)


def split_objective(
    risk: RiskSets, first, c, sides: int = 2, reference_gradient: bool = True
) -> Objective:
    """Split DRO risk (9) of D1 (``first``) against D2, plus D2 against D1 if ``sides`` is 2.

    ``reference_gradient=False`` detaches the logarithm of the sum in the paper's (8), to study the
    effect of its gradient.
    """
    first = np.asarray(first, dtype=bool)
    halves = np.stack([first, ~first])[:sides]
    return RiskObjective(risk, Ball(c), halves, first=first, reference_gradient=reference_gradient)


def initial_parameters(n_features: int, hidden: int | None, seed: int) -> np.ndarray:
    """Initial weights of ``torch.nn.Linear``, in float32 after ``manual_seed(seed)``, flat.

    In the order W1 (hidden x features), b1, w2, b2; a linear model (``hidden=None``) has weights
    only.
    """
    generator = torch.Generator().manual_seed(seed)  # the global one is shared by threads
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
    offset: np.ndarray  # (models,), subtracted from scores: the mean training score or 0

    def scores(self, X) -> np.ndarray:
        """Scores (models, rows) of the rows of ``X`` under every model."""
        network = _Network(np.asarray(X, dtype=float), len(self.theta), self.hidden)
        return network.scores(self.theta) - self.offset[:, None]


class _Network:
    """Scores of a stack on its training features, and the gradient of its parameters.

    Written by hand, with hidden layers kept between steps: twice as fast as autograd.
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
        d = self.X.shape[1]
        hidden = len(self.passed)
        w1, b1, w2, b2 = np.split(theta, np.cumsum([hidden * d, hidden, hidden]), axis=1)
        return [w1.reshape(len(theta), hidden, d), b1, w2, b2]

    def weight_mask(self) -> np.ndarray:
        """1 for the parameters that are weights, 0 for biases, in one row of ``theta``."""
        d = self.X.shape[1]
        if self.hidden is None:
            return np.ones(d)
        mask = np.ones(self.hidden * (d + 2) + 1)
        _, b1, _, b2 = self._layers(mask[None])
        b1[:] = 0.0
        b2[:] = 0.0
        return mask

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
    penalty: float | np.ndarray = 0.0,
) -> ScoreStack:
    r"""Train a stack of models by full-batch steps of Adam.

    ``objective`` maps scores (models, n) to one differentiable value per model; ``theta`` holds the
    initial parameters of each model (see :func:`initial_parameters`) and
    ``learning_rates`` one number per model. ``centre`` subtracts the mean training score inside the
    model, which fixes the constant that the Cox loss does not determine. ``penalty`` is weight
    decay: it adds :math:`\frac\lambda2 \lVert w \rVert^2`, with the weights :math:`w` of both
    layers but not the biases, to every model's objective; one number, or one for each model.
    """
    X = np.ascontiguousarray(X, dtype=float)
    theta = np.array(theta, dtype=float, ndmin=2)
    rate = np.asarray(learning_rates, dtype=float).reshape(-1, 1)
    network = _Network(X, len(theta), hidden)
    first = np.zeros_like(theta)
    second = np.zeros_like(theta)
    decay = np.reshape(penalty, (-1, 1)) * network.weight_mask()
    # By hand: torch.optim.Adam has one learning rate per parameter group, so a stack of nine models
    # would be nine groups: 1.0 ms a step instead of 0.02 (linear) to 0.07 (networks), and results
    # that differ in the last digit.
    b1, b2, eps = 0.9, 0.999, 1e-8  # Adam's usual constants
    for step in tqdm(range(1, n_iter + 1), disable=not verbose, desc="training", leave=False):
        grad = network.gradient(theta, _upstream(objective, network.scores(theta), centre))
        if decay.any():
            grad += decay * theta
        first += (1 - b1) * (grad - first)
        second += (1 - b2) * (grad * grad - second)
        scale = np.sqrt(second) / np.sqrt(1 - b2**step) + eps
        theta -= rate / (1 - b1**step) * first / scale
    offset = network.scores(theta).mean(-1) if centre else np.zeros(len(theta))
    return ScoreStack(theta, hidden, offset)


def _upstream(objective: Objective, scores: np.ndarray, centre: bool) -> np.ndarray:
    """Gradient of the objectives with respect to the scores, before they are centred."""
    leaf = torch.from_numpy(scores)
    if isinstance(objective, RiskObjective) and objective.ties != "efron":
        with torch.no_grad():  # the same digits as below, without the overhead of a graph
            used = leaf - leaf.mean(-1, keepdim=True) if centre else leaf
            _, gradient = objective._evaluate(used)
            if centre:
                gradient = gradient + -gradient.sum(-1, keepdim=True) / gradient.shape[1]
        return gradient.numpy()
    with torch.enable_grad():  # also where the caller has switched gradients off
        leaf.requires_grad_()
        used = leaf - leaf.mean(-1, keepdim=True) if centre else leaf
        objective(used).sum().backward()
    return leaf.grad.numpy()
