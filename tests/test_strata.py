"""Strata: each is a data set of its own, for losses, split losses, sums and survival."""

import numpy as np
import pytest
import torch

import drocox

rng = np.random.default_rng(0)
N = 60
TIME = rng.integers(1, 20, N) * 1.0
EVENT = rng.random(N) < 0.7
SITE = rng.choice(["a", "b", "c"], N)
FIRST = rng.random(N) < 0.5
SCORES = torch.from_numpy(rng.standard_normal(N))
RISK = drocox.risk_sets(TIME, EVENT, strata=SITE)
TIMES = [3.0, 5.0, 10.0]


@pytest.mark.parametrize("ties", ["breslow", "efron", "order"])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_losses_equal_those_of_each_stratum_alone(ties, scale):
    got = drocox.cox_losses(scale * SCORES, RISK, ties=ties)
    for site in ("a", "b", "c"):
        who = SITE == site
        alone = drocox.cox_losses(scale * SCORES[who], TIME[who], EVENT[who], ties=ties)
        np.testing.assert_allclose(got[who], alone, atol=1e-9)


def test_split_losses_and_survival_equal_those_of_each_stratum_alone():
    losses = drocox.split_cox_losses(SCORES, RISK, first=torch.from_numpy(FIRST))
    survival = drocox.breslow_survival(SCORES, RISK, None, SCORES, TIMES, strata=SITE)
    for site in ("a", "b", "c"):
        who = SITE == site
        part = (SCORES[who], TIME[who], EVENT[who])
        np.testing.assert_allclose(losses[who], drocox.split_cox_losses(*part, FIRST[who]))
        np.testing.assert_allclose(survival[who], drocox.breslow_survival(*part, part[0], TIMES))


def test_strata_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="strata must hold one group label per patient"):
        drocox.risk_sets(TIME, EVENT, strata=SITE[:5])
    with pytest.raises(ValueError, match="pass strata="):
        drocox.breslow_survival(SCORES, RISK, None, SCORES, TIMES)
    with pytest.raises(ValueError, match="strata: the training patients have none"):
        drocox.breslow_survival(SCORES, TIME, EVENT, SCORES, TIMES, strata=SITE)
    with pytest.raises(ValueError, match="strata holds 'd', a stratum without training patients"):
        drocox.breslow_survival(SCORES, RISK, None, SCORES[:1], TIMES, strata=["d"])
