r"""DRO-COX with a free baseline: one hazard for each event time, solved and certified.

With a hazard :math:`\lambda_k` at each event time the full loss is

.. math:: \ell_i = -\delta_i (f_i + \log \lambda_{k(i)}) + e^{f_i} \sum_{t_k \le Y_i} \lambda_k ,

a function of patient :math:`i` alone. The worst case over it is convex in :math:`\theta` and
:math:`\log \lambda`. For fixed weights :math:`q` the best hazards are Breslow's, and the remaining
problem is Cox regression with case weights :math:`q`, whose minimum is a lower bound.
"""

import numpy as np
from scipy import optimize

from drocox import kernels
from drocox.cox import risk_sets
from drocox.dro import dual_constant
from drocox.solver import minimise


def free_baseline(X, time, event, alpha: float) -> tuple:
    """Minimise the DRO risk of the full loss over coefficients and hazards, by L-BFGS.

    Returns the coefficients, the risk, and a bound below which no coefficients and hazards can go.
    """
    n, d = X.shape
    c = np.array([dual_constant(alpha, rule="sharp")])
    times, own = np.unique(time[event], return_inverse=True)
    seen = np.searchsorted(times, time, side="right")  # event times up to each patient's own
    ones = np.ones(n)

    def losses(point: np.ndarray) -> tuple:
        f, logs = X @ point[:d], point[d:]
        expected = np.append(0, np.cumsum(np.exp(logs)))[seen] * np.exp(f)
        loss = expected.copy()
        loss[event] -= f[event] + logs[own]
        return loss, expected, np.exp(f)

    def value(point: np.ndarray) -> tuple[float, np.ndarray]:
        loss, expected, hazard = losses(point)
        _, worst, q = (found[0] for found in kernels.worst_cases(loss[None], ones, c))
        at_risk = np.cumsum(np.bincount(seen, q * hazard, len(times) + 1)[::-1])[::-1][1:]
        slope = np.exp(point[d:]) * at_risk - np.bincount(own, q[event], len(times))
        return worst, np.append((q * (expected - event)) @ X, slope)

    risk = risk_sets(time, event)
    coef = minimise(X, risk, 1).coef
    at_risk = np.cumsum(np.bincount(seen, np.exp(X @ coef), len(times) + 1)[::-1])[::-1][1:]
    start = np.append(coef, np.log(np.bincount(own) / at_risk))
    tight = {"ftol": 1e-13, "gtol": 1e-7, "maxiter": 3000, "maxfun": 6000, "maxcor": 50}
    point = optimize.minimize(value, start, jac=True, method="L-BFGS-B", options=tight).x
    loss = losses(point)[0]
    _, worst, q = (found[0] for found in kernels.worst_cases(loss[None], ones, c))
    deaths = np.bincount(own, q[event])
    deaths = deaths[deaths > 0]
    # case weights are counts of mean 1, n q, whose factor n adds log n to the loss of each death
    cox = minimise(X, risk, 1, weights=n * q).bound - np.log(n) * deaths.sum()
    below = cox + deaths.sum() - deaths @ np.log(deaths)
    return point[:d], worst, below
