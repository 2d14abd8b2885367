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
from drocox.dro import chi_square_risk, tail
from drocox.regularizers import Pairs, hinge_gradient

N_ITER = 500

Objective = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Ball:
    """The adversary of the chi-square ball: dual constants, one for all models or one for each."""

    c: float | np.ndarray  # 1: the mean

    def worst_cases(self, losses: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Risk and worst-case distribution of each model.

        Parameters
        ----------
        losses : array of shape (models, n)
        mass : array of shape (n,)
            Case weights; 0 for patients of another part.

        Returns
        -------
        arrays of shape (models,) and (models, n)
        """
        constants = np.ones(len(losses)) * self.c
        _, worst_mean, worst = kernels.worst_cases(losses, mass, constants)
        return worst_mean, worst

    def risk(self, losses: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
        """The risk as a differentiable function of the losses.

        Parameters
        ----------
        losses : tensor of shape (models, n)
        mass : tensor of shape (n,)

        Returns
        -------
        tensor of shape (models,)
        """
        return chi_square_risk(losses, self.c, mass)

    def of_model(self, m: int) -> "Ball":
        """The adversary of one model of the stack.

        Parameters
        ----------
        m : int

        Returns
        -------
        Ball
        """
        constants = np.asarray(self.c)
        if constants.ndim == 0:
            return self
        return Ball(float(constants[m]))


@dataclass(frozen=True)
class Tail:
    """The adversary of CVaR, who chooses the worst share ``alpha`` of the patients."""

    alpha: float

    def worst_cases(self, losses: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Risk and worst-case distribution of each model.

        Parameters
        ----------
        losses : array of shape (models, n)
        mass : array of shape (n,)
            Case weights; 0 for patients of another part.

        Returns
        -------
        arrays of shape (models,) and (models, n)
        """
        worst = tail(torch.from_numpy(losses), self.alpha, torch.from_numpy(mass)).numpy()
        return (worst * losses).sum(axis=1), worst

    def risk(self, losses: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
        """The risk as a differentiable function of the losses.

        Parameters
        ----------
        losses : tensor of shape (models, n)
        mass : tensor of shape (n,)

        Returns
        -------
        tensor of shape (models,)
        """
        return (tail(losses, self.alpha, mass) * losses).sum(-1)

    def of_model(self, m: int) -> "Tail":
        """The adversary of one model of the stack: the same for all.

        Parameters
        ----------
        m : int

        Returns
        -------
        Tail
        """
        return self


class _ValueWithGradient(torch.autograd.Function):
    """An objective that finds value and gradient of all models in one go."""

    @staticmethod
    def forward(ctx, scores, evaluate):
        value, ctx.gradient = evaluate(scores.detach())
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return upstream[:, None] * ctx.gradient, None


class RiskObjective:
    r"""Worst-case mean Cox loss of every model of a stack, with its gradient.

    With the sums :math:`T_i = \sum_{j \in R_i} w_j e^{f_j}` of the paper's (3), or those of a split
    (8), :math:`T_i = e^{f_i} + \sum_{j \in D' \cap R_i} e^{f_j}`, and the adversary's worst case
    :math:`q` in each part of the patients,

    .. math:: R(f) = \sum_{\text{parts}} \max_q \sum_i q_i \delta_i (\log T_i - f_i), \qquad
              \frac{\partial R}{\partial f_k} = w_k e^{f_k} \sum_{i:\, k \in R_i}
              \frac{q_i \delta_i}{T_i} - q_k \delta_k:

    an event pulls its own score up, and pushes everybody in its sum down by their hazard. Both sums
    are running sums over patients in time order, in compiled loops. One shift of the exponents
    serves a model whose scores lie within ``kernels.SAFE_SPREAD``; any other, and all models with
    Efron's ties, take the slow way of differentiable losses.

    Parameters
    ----------
    risk : RiskSets
        Of the training part, with strata or without.
    adversary : Ball or Tail
    parts : array of shape (k, n)
        Case weights of the patients in each part of the sum: 0 for those of another part.
    ties : {"breslow", "efron", "order"}
    first : bool array of shape (n,), optional
        True for the patients of D1: losses are those of a split.
    weights : array of shape (n,), optional
        Case weights in the sums :math:`T_i`; not with ``first``.
    reference_gradient : bool
        Whether :math:`\log T_i` passes a gradient.
    """

    def __init__(
        self,
        risk: RiskSets,
        adversary: Ball | Tail,
        parts,
        *,
        ties: str = "breslow",
        first=None,
        weights=None,
        reference_gradient: bool = True,
    ):
        self.risk = risk
        self.adversary = adversary
        self.parts = np.asarray(parts, dtype=float)
        self.ties = ties
        self.first = first
        self.weights = weights
        self.reference_gradient = reference_gradient
        # from here on patients stand in time order, latest first
        order = risk.order[0]
        n = len(order)
        self.order = order
        self.inverse = np.argsort(order)
        self.ordered_parts = np.take(self.parts, order, axis=1)
        self.event = risk.event[0]
        self.widest = kernels.SAFE_SPREAD
        if weights is not None:
            self.mass = weights[order]
            self.event = self.event & (self.mass > 0)  # a weight of 0 is nobody
            self.widest -= np.abs(np.log(weights[weights > 0])).max()
        stop = np.arange(1, n + 1)[None] if ties == "order" else risk.stop
        enters = np.zeros((1, n), int)
        meets = enters
        if first is not None:  # one sum for each half: a patient enters its own, meets the other
            enters = first[order].astype(int)[None]
            meets = 1 - enters
        begin = kernels.NO_STRATA if risk.labels is None else risk.begin
        self.sets = (stop, enters, meets, begin)

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
        x[unsafe] = 0.0  # left to the slow way below
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
        """T_i, whose logarithm is compared with the score."""
        total = kernels.risk_sums(hazard, *self.sets)
        if self.first is not None:
            total += hazard  # the patient's own term of its sum
        if self.weights is not None:
            total[:, ~self.event] = 1.0  # nobody may be left in the sums of the absent
        return total

    def _worst_case(self, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of each model, and what each event's loss weighs in it."""
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
        """Value and gradient of model ``m`` alone."""
        with torch.enable_grad():
            leaf = scores.clone().requires_grad_()
            value = self._slowly(leaf, self.adversary.of_model(m))
            (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return float(value.detach()), gradient[0].numpy()


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
    event = np.empty_like(risk.event[0])
    event[risk.order[0]] = risk.event[0]
    cox = RiskObjective(risk, Ball(1.0), event[None], ties=ties)
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
    """DRO risk of the Cox losses of all patients, the paper's (7).

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
    everybody = np.ones((1, risk.order.shape[1]))
    return RiskObjective(risk, Ball(c), everybody, ties=ties)


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
        Whether the logarithm of the sum in the paper's (8) passes a gradient. It does; False is for
        finding out what happens when it does not.

    Returns
    -------
    callable
        Maps scores (models, n) to one differentiable value per model.
    """
    first = np.asarray(first, dtype=bool)
    halves = np.stack([first, ~first])[:sides]
    return RiskObjective(risk, Ball(c), halves, first=first, reference_gradient=reference_gradient)


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
    penalty: float = 0.0,
) -> ScoreStack:
    r"""Train a stack of models by full-batch steps of Adam.

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
    penalty : float
        Weight decay :math:`\lambda`: every model's objective gets :math:`\frac\lambda2 \lVert w
        \rVert^2` added, with :math:`w` its weights of both layers, or coefficients; not biases.

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
    decay = penalty * network.weight_mask()
    # By hand: torch.optim.Adam knows one learning rate per group of parameters, so it takes a stack
    # of nine models as nine groups: 1.0 ms a step instead of 0.02 (linear) to 0.07 (networks), and
    # another last digit.
    b1, b2, eps = 0.9, 0.999, 1e-8  # Adam's usual constants
    for step in tqdm(range(1, n_iter + 1), disable=not verbose, desc="training", leave=False):
        with torch.enable_grad():  # also where the caller has switched gradients off
            scores = torch.from_numpy(network.scores(theta)).requires_grad_()
            used = scores - scores.mean(-1, keepdim=True) if centre else scores
            objective(used).sum().backward()
        grad = network.gradient(theta, scores.grad.numpy())
        if penalty:
            grad += decay * theta
        first += (1 - b1) * (grad - first)
        second += (1 - b2) * (grad * grad - second)
        scale = np.sqrt(second) / np.sqrt(1 - b2**step) + eps
        theta -= rate / (1 - b1**step) * first / scale
    offset = network.scores(theta).mean(-1) if centre else np.zeros(len(theta))
    return ScoreStack(theta, hidden, offset)
