"""Simulated patients on whom the studies' code is tried."""

import numpy as np
import pandas as pd

from drocox.beyond.datasets import Patients
from drocox.data import SurvivalData


def draw(patients: int, censoring: float, seed: int) -> Patients:
    r"""Simulated patients whose hazard depends on the features in a way that differs by sex.

    With eight standard normal features, of which the first is age, and :math:`s = \pm 1` by sex,

    .. math:: \log h = 0.5\, x_1 + 0.5\, x_2 + 0.4\, x_3 + 0.4\, s\, x_3 + 0.3\, s\, x_4 .

    ``censoring`` is the hazard of censoring; the baseline hazard of events is 1. Sex and the first
    three features describe groups.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(patients, 8))
    women = rng.random(patients) < 0.5
    sign = np.where(women, 1.0, -1.0)
    log_hazard = 0.5 * x[:, 0] + 0.5 * x[:, 1] + 0.4 * (1 + sign) * x[:, 2] + 0.3 * sign * x[:, 3]
    event_time = rng.exponential(size=patients) / np.exp(log_hazard)
    censored = rng.exponential(size=patients) / censoring
    columns = ["age", *(f"x{j}" for j in range(2, 9))]
    X = pd.DataFrame(x, columns=columns).assign(sex=women.astype(float))
    data = SurvivalData("invented", X, np.minimum(event_time, censored), event_time <= censored)
    attributes = {"sex": women.astype(float), "age": x[:, 0]}
    return Patients(data, X[["age", "x2", "x3", "sex"]], attributes).in_order()
