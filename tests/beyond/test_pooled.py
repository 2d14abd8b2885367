"""Random-effects meta-analysis against literal maximisation, published numbers and simulation."""

import numpy as np
import pytest
from scipy import optimize, stats

from drocox.beyond import pooled

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package

# Colditz et al. (1994): 13 trials of the BCG vaccine against tuberculosis. Cases and patients
# without disease among the vaccinated and among the controls. metafor's documentation gives for
# the log risk ratios, by REML: mean -0.7145, tau^2 0.3132, standard error 0.1798 (Wald).
BCG = np.array(
    [
        [4, 119, 11, 128], [6, 300, 29, 274], [3, 228, 11, 209], [62, 13536, 248, 12619],
        [33, 5036, 47, 5761], [180, 1361, 372, 1079], [8, 2537, 10, 619], [505, 87886, 499, 87892],
        [29, 7470, 45, 7232], [17, 1699, 65, 1600], [186, 50448, 141, 27197], [5, 2493, 3, 2338],
        [27, 16886, 29, 17825],
    ]
)  # fmt: skip


def bcg():
    a, b, c, d = BCG.T.astype(float)
    effect = np.log((a / (a + b)) / (c / (c + d)))
    variance = 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)
    return effect, np.sqrt(variance)


def literal_loglik(effect, se, tau2):
    """The restricted likelihood of the mean, written out."""
    w = 1 / (se**2 + tau2)
    mean = (w * effect).sum() / w.sum()
    out = 0.0
    for k in range(len(effect)):
        out += 0.5 * np.log(w[k]) - 0.5 * w[k] * (effect[k] - mean) ** 2
    return out - 0.5 * np.log(w.sum())


def test_a_published_meta_analysis_is_reproduced():
    effect, se = bcg()
    result = pooled.pool(effect, se)
    assert result.mean == pytest.approx(-0.7145, abs=5e-5)
    assert result.tau2 == pytest.approx(0.3132, abs=5e-5)
    w = 1 / (se**2 + result.tau2)
    assert w.sum() ** -0.5 == pytest.approx(0.1798, abs=5e-5)
    half = stats.t.ppf(0.975, 12) * result.se
    assert result.interval() == pytest.approx((result.mean - half, result.mean + half))


@pytest.mark.parametrize("seed", range(12))
def test_tau2_is_the_maximum_of_the_literal_likelihood(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 30))
    se = rng.uniform(0.1, 2.0, k)
    effect = rng.normal(0.3, np.hypot(se, rng.choice([0.0, 0.5, 2.0])))
    result = pooled.pool(effect, se)
    grid = np.append(0, np.geomspace(1e-6, 50, 4000))
    values = [literal_loglik(effect, se, tau2) for tau2 in grid]
    best = grid[int(np.argmax(values))]
    if best > 0:
        near = optimize.minimize_scalar(
            lambda t: -literal_loglik(effect, se, t), bounds=(best / 1.1, best * 1.1),
            method="bounded", options={"xatol": 1e-12},
        )  # fmt: skip
        best = near.x
    assert result.tau2 == pytest.approx(best, rel=1e-4, abs=1e-7)
    w = 1 / (se**2 + result.tau2)
    mean = (w * effect).sum() / w.sum()
    assert result.mean == pytest.approx(mean)
    q = (w * (effect - mean) ** 2).sum() / (k - 1)
    assert result.se == pytest.approx(np.sqrt(q / w.sum()))


def test_an_interval_is_never_narrower_than_that_of_fixed_effects():
    se = np.full(5, 1.0)
    result = pooled.pool([0.2, 0.201, 0.199, 0.2, 0.2], se)
    low, high = result.interval()
    assert high - low == pytest.approx(2 * 1.959964 / np.sqrt(5), rel=1e-5)
    assert result.tau2 == 0


def test_holm_rejects_what_the_step_down_procedure_rejects():
    p = np.array([0.02, 0.001, 0.5, 0.03])
    adjusted = pooled.holm(p)
    rejected = set()
    for step, k in enumerate(np.argsort(p)):  # step down, stop at the first that is not rejected
        if p[k] > 0.05 / (4 - step):
            break
        rejected.add(int(k))
    assert set(np.flatnonzero(adjusted <= 0.05)) == rejected


@pytest.mark.parametrize(
    ("effect", "se"), [([1, 2], [1, 1]), ([1, 2, 3], [1, 0, 1]), ([1, np.nan, 3], [1, 1, 1])]
)
def test_bad_input_is_refused(effect, se):
    with pytest.raises(ValueError, match="effect and se"):
        pooled.pool(effect, se)
