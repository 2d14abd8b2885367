"""The claims that need no runs: Table 1, the theory and the metrics, each computed anew.

The functions use the real data, the losses of Cox models fitted to them, and random losses. Like
those of :mod:`drocox.paper.claims` they accept a view and a folder, and ignore both.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial.distance import pdist

from drocox import dro, fairness
from drocox.cox import cox_losses
from drocox.estimator import DROCox
from drocox.paper import tables
from drocox.paper.prepare import Prepared, prepare
from drocox.paper.protocol import ATTRIBUTES


class Count(NamedTuple):
    """The number behind a claim, out of how many cases, and where it holds."""

    value: float
    of: int
    where: str = ""


def table_one(*_) -> Count:
    """Cells of Table 1 that equal the printed digits."""
    t = tables.dataset_table().query("quantity != 'sensitive attributes'")
    others = t[t["ours"] != t["paper"]]
    where = ", ".join(others["dataset"] + " " + others["quantity"])
    return Count(len(t) - len(others), len(t), f"differs: {where}" if where else "all")


@cache
def _cox(dataset: str) -> tuple[Prepared, np.ndarray, np.ndarray]:
    """Training and test scores of a Cox model of 1,000 patients, and the parts they belong to."""
    ready = prepare("corrected", dataset, 1)
    model = DROCox().fit(ready.X[0][:1000], ready.train.y[:1000])
    return ready, model.predict(ready.X[0]), model.predict(ready.X[2])


def _some_losses() -> list[torch.Tensor]:
    draw = np.random.default_rng(0)
    made = [draw.exponential(size=n) for n in (5, 50, 500)] + [draw.normal(size=200)]
    of_test = [(scores, ready.judges[1].risk) for ready, _, scores in map(_cox, ATTRIBUTES)]
    real = [cox_losses(torch.from_numpy(scores), risk) for scores, risk in of_test]
    return [*map(torch.from_numpy, made), *real]


def bound_holds(*_) -> Count:
    """2 if the ball of Proposition 2 holds every group of probability alpha in (0, 1); 1 if some.

    A group of mass alpha has all the loss: the risk over the ball must reach 1.
    """
    held = []
    for percent in range(1, 100):
        losses = (torch.arange(100) < percent).double()
        if float(dro.dro_risk(losses, percent / 100, rule="definition")) >= 1 - 1e-9:
            held.append(percent / 100)
    return Count(int(len(held) == 99) + int(len(held) > 0), 2, f"alpha up to {max(held):.2f}")


def dual_equals_primal(*_) -> Count:
    """2 if the printed dual constant gives the primal value, 1 if it only bounds it.

    The worst-case distribution of the definition's constant lies in the ball and its expected loss
    equals the dual value, so both are the primal value; the printed constant is compared with it.
    """
    excess = []
    for losses in _some_losses():
        for alpha in (0.1, 0.2, 0.3, 0.5):
            q = dro.worst_case_weights(losses, alpha, rule="definition")
            inside = float((len(q) * q - 1).square().mean()) <= (1 / alpha - 1) ** 2 + 1e-9
            primal = float((q * losses).sum())
            attained = abs(float(dro.dro_risk(losses, alpha, rule="definition")) - primal) < 1e-6
            if not (inside and attained):
                return Count(0, 2, "the worst-case distribution leaves the ball")
            excess.append(float(dro.dro_risk(losses, alpha, rule="paper")) - primal)
    value = 2 if max(map(abs, excess)) < 1e-6 else int(min(excess) > -1e-9)
    return Count(value, 2, f"printed constant above the primal by up to {max(excess):.3f}")


def convex_and_blind(*_) -> Count:
    """2 if the dual objective is convex in eta and losses below its minimiser have no influence."""
    convex = blind = True
    for losses in _some_losses():
        for alpha in (0.1, 0.3, 0.5):
            c = dro.dual_constant(alpha, rule="paper")
            low, high = float(losses.min()) - 5, float(losses.max()) + 1
            at = torch.linspace(low, high, 301, dtype=torch.float64)
            above = (losses - at[:, None]).clamp(min=0)
            value = c * above.square().mean(-1).sqrt() + at
            convex &= bool((value[2:] - 2 * value[1:-1] + value[:-2] > -1e-9).all())
            below = losses < dro.optimal_eta(losses, c)
            lower = torch.where(below, losses - 7.0, losses)
            risk = dro.dro_risk(losses, alpha, rule="paper")
            risk_of_lower = dro.dro_risk(lower, alpha, rule="paper")
            blind &= bool((risk_of_lower - risk).abs() < 1e-9)
    return Count(convex + blind, 2, f"convex {convex}, no influence {blind}")


def lipschitz(*_) -> Count:
    """2 if F_I = 0 exactly when the hazard is gamma-Lipschitz between test patients, on real data.

    Hazards are scaled up and down around the factor at which their largest slope is gamma.
    """
    forward = backward = True
    for dataset in ATTRIBUTES:
        ready, _train, scores = _cox(dataset)
        X = ready.X[2][:300]
        hazards = np.exp(scores[:300])
        apart = pdist(X / np.linalg.norm(X, axis=1, keepdims=True))
        gap = pdist(hazards[:, None], "cityblock")
        slope = (gap[apart > 0] / apart[apart > 0]).max()
        for factor in (0.1, 0.5, 0.99, 1.01, 2.0, 100.0):
            unfair = fairness.individual(factor * 0.01 / slope * hazards, X)
            forward &= unfair <= 1e-15 or factor > 1
            backward &= unfair > 0 or factor < 1
    return Count(forward + backward, 2, f"to 0 {forward}, back {backward}")


def shrinking_fools(*_) -> Count:
    """Data sets on which halved scores lower F_I and F_G, keep the c-index and change the IBS."""
    fooled = []
    for dataset, attributes in ATTRIBUTES.items():
        ready, train, test = _cox(dataset)
        judge = ready.judges[1]
        full = judge.fairness(train, test) | judge.accuracy(train, test)
        half = judge.fairness(train / 2, test / 2) | judge.accuracy(train / 2, test / 2)
        lower = all(half[m] < full[m] for m in ("f_i", f"f_g_{attributes[0]}"))
        same_order = abs(half["c_index"] - full["c_index"]) < 1e-12
        if lower and same_order and abs(half["ibs"] - full["ibs"]) > 1e-6:
            fooled.append(dataset)
    return Count(len(fooled), len(ATTRIBUTES), ", ".join(fooled))
