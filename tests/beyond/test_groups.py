"""Groups nobody named: found groups, the adversary restricted to them, and models compared in them.

The independent solver works without derivatives on the losses of ``literal``, loops over patients.
"""

from functools import partial

import literal
import numpy as np
import pytest
from scipy import optimize

import drocox
from drocox import heldout
from drocox.beyond import censoring, group_models, group_search, groups

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package


@pytest.fixture(scope="module")
def patients():
    """Six hundred patients, a fifth of them with opposite effects and a clear marker."""
    return groups.planted("opposite", np.arange(600) % 5 == 0, 3.0, seed=5)


@pytest.fixture(scope="module")
def few():
    """Fifty patients with tied times, two features, and three groups, two of which overlap."""
    drawn = literal.random_survival(np.random.default_rng(3), 50, ties=0.5, d=2)
    members = np.array([drawn.X[:, 0] > 0, drawn.X[:, 0] <= 0, drawn.X[:, 1] > 0.3])
    return drawn, members


def _literal_loss(drawn, rows, theta):
    """Cox loss per event among some patients."""
    own = (drawn.X[rows] @ theta, drawn.time[rows], drawn.event[rows])
    return literal.cox_losses(*own).sum() / own[2].sum()


def _without_derivatives(function, d):
    """Minimum by the simplex method, started again where it stops."""
    point = np.zeros(d)
    for _ in range(2):
        how = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000}
        point = optimize.minimize(function, point, method="Nelder-Mead", options=how).x
    return point, function(point)


@pytest.mark.parametrize("family", list(groups.TOLD_FAMILIES))
def test_groups_are_few_large_and_recognised_among_other_patients(patients, family):
    half = patients.subset(slice(0, 300))
    found = group_search.found_groups(half, family)
    masks = np.array([group(patients) for group in found.values()])
    assert 1 < len(found) <= 5
    assert (masks[:, :300].mean(axis=1) >= 0.08).all()  # of leaves, 0.1 of those who grow the tree
    assert (masks.sum(axis=0) == 1).all()
    backwards = patients.subset(np.arange(600)[::-1])
    for group, mask in zip(found.values(), masks, strict=True):
        assert (group(backwards)[::-1] == mask).all()


def test_groups_of_each_attribute_overlap_and_small_ones_are_left_out(patients):
    rank = np.arange(600)
    codes = {"site": np.where(rank < 30, 2, rank % 2), "old": (rank % 3 == 0).astype(int)}
    data = drocox.SurvivalData("two", patients.X, patients.time, patients.event, codes)
    told = group_search.found_groups(data, "attributes")
    assert list(told) == ["site = 0", "site = 1", "old = 0", "old = 1"]
    assert (told["site = 1"](data) == (codes["site"] == 1)).all()
    assert (told["old = 1"](data.subset(rank[::-1])) == (codes["old"] == 1)[::-1]).all()
    assert sum(group(data).sum() for group in told.values()) == 600 + 570


def test_small_intersections_are_left_out(patients):
    codes = np.where(np.arange(600) < 30, 0, np.arange(600) % 2 + 1)
    data = drocox.SurvivalData("three", patients.X, patients.time, patients.event, {"site": codes})
    found = group_search.found_groups(data, "named")
    assert set(found) == {"site = 1", "site = 2"}
    assert (found["site = 2"](data) == (codes == 2)).all()


def test_the_worst_leaf_is_the_planted_minority(patients):
    worst = next(iter(group_search.found_groups(patients, share=0.15).values()))
    assert patients.groups["minority"][worst(patients)].mean() > 0.6


@pytest.mark.parametrize("regret", [False, True])
def test_group_dro_is_the_minimum_of_the_literal_maximum(few, regret):
    drawn, members = few
    everybody = np.full(50, True)

    def of_group(row, theta):
        if regret:  # members compared with members only
            return _literal_loss(drawn, row, theta)
        return literal.cox_losses(drawn.X @ theta, drawn.time, drawn.event)[row].mean()

    least = np.zeros(3)
    if regret:
        least = [_without_derivatives(partial(of_group, row), 2)[1] for row in members]

    def value(theta):
        worst = max(of_group(row, theta) - low for row, low in zip(members, least, strict=True))
        return worst + group_models.EPSILON * _literal_loss(drawn, everybody, theta)

    coef = group_models.group_dro(*drawn, members, regret=regret)
    point, smallest = _without_derivatives(value, 2)
    assert value(coef) == pytest.approx(smallest, abs=1e-8)
    assert np.allclose(coef, point, atol=1e-4)


def test_the_loss_of_everybody_determines_what_groups_leave_open(few):
    """A feature that is constant in each group changes no loss inside a group, so its coefficient
    is the one that minimises the loss of everybody."""
    drawn, _ = few
    side = drawn.X[:, 0] > 0
    X = np.column_stack([drawn.X[:, 1], side])
    coef = group_models.group_dro(X, drawn.time, drawn.event, [side, ~side], regret=True)
    rest = optimize.minimize_scalar(
        lambda level: literal.cox_losses(X @ [coef[0], level], drawn.time, drawn.event).sum()
    )
    assert coef[1] == pytest.approx(rest.x, abs=1e-5)


def test_own_effects_are_the_minimum_of_the_literal_sum(few):
    drawn, members = few
    wide = np.hstack(
        [drawn.X, *(np.column_stack([drawn.X, np.ones(50)]) * row[:, None] for row in members[:2])]
    )

    def value(theta):
        losses = literal.cox_losses(wide @ theta, drawn.time, drawn.event)
        return losses.sum() + 2 * (theta[2:] ** 2).sum()

    coef = group_models.own_effects(*drawn, members[:2])
    assert np.allclose(group_models.by_group(drawn.X, members[:2]), wide)
    assert np.abs(optimize.approx_fprime(coef, value, 1e-6)).max() < 1e-3
    assert value(coef) <= optimize.minimize(value, coef, method="Powell").fun + 1e-8


def test_a_search_that_stops_early_is_refused(few, monkeypatch):
    drawn, members = few
    stay = optimize.OptimizeResult(x=np.ones(3))
    monkeypatch.setattr(group_models.optimize, "minimize", lambda *_, **__: stay)
    with pytest.raises(RuntimeError, match="has not converged"):
        group_models.group_dro(*drawn, members)


@pytest.mark.parametrize("members", [np.ones((2, 49), bool), np.zeros((1, 50), bool)])
def test_groups_need_members_with_events(few, members):
    with pytest.raises(ValueError, match="an event in each group"):
        group_models.group_dro(*few[0], members)


def test_likelihood_of_a_group_and_its_jackknife(few):
    drawn, members = few
    rng = np.random.default_rng(1)
    f = 0.3 * rng.standard_normal(50)
    fold = np.arange(50) % 2
    event = drawn.event | (np.arange(50) < 10)
    tested = heldout.HeldOut(f, drawn.time, event, fold)

    def value(inside):
        total = 0.0
        for k in (0, 1):
            rows = inside & (fold == k)
            total -= literal.cox_losses(f[rows], drawn.time[rows], event[rows]).sum()
        return total / event[inside].sum()

    found, without = groups.lpl(tested, members[0])
    assert found == pytest.approx(value(members[0]))
    exact = [value(members[0] & (np.arange(50) != i)) for i in range(50)]
    assert np.abs(without - exact).max() < 0.25 * np.ptp(exact)  # risk sets of two or three
    assert np.corrcoef(without, exact)[0, 1] > 0.98


def test_intervals_cover_all_groups_at_once():
    rng = np.random.default_rng(2)
    together = 0
    for _ in range(100):
        sample = rng.standard_normal((80, 4))
        mean = sample.mean(axis=0)
        without = ((80 * mean - sample) / 79).T
        columns = groups._intervals("m", mean, without)
        together += ((columns["m_low"] < 0) & (columns["m_high"] > 0)).all()
    assert 0.91 < together / 100 <= 0.99


def test_planted_patients_are_what_the_design_says():
    minority = np.arange(4000) < 800
    for design, (features, effect, level) in groups.DESIGNS.items():
        data = groups.planted(design, minority, 2.0, seed=1)
        risk = drocox.risk_sets(data.time[minority], data.event[minority])
        coef = drocox.solver.minimise(data.X[minority].to_numpy(), risk, 1).coef
        truth = np.zeros(9)
        truth[features] = effect
        assert np.abs(coef - truth).max() < 0.25
        early = data.event[minority].mean() - data.event[~minority].mean()
        assert np.sign(round(early, 1)) == np.sign(level)


@pytest.mark.parametrize("design", list(groups.DESIGNS))
def test_the_censoring_rate_gives_the_wanted_share_of_deaths(design):
    n = 40_000
    minority = np.arange(n) < 0.2 * n
    for events in (0.8, 0.45, 0.15):
        rate = groups.censoring_rate(design, 0.2, events)
        data = groups.planted(design, minority, 1.0, seed=3, rate=rate)
        assert data.event.mean() == pytest.approx(events, abs=0.01)
    as_in_the_study = groups.planted(design, minority, 1.0, seed=3).event.mean()
    expected = groups.share_of_events(design, 0.2, groups.CENSORING)
    assert as_in_the_study == pytest.approx(expected, abs=0.01)
    assert groups.censoring_rate(design, 0.2, 1.0) == 0


def test_censoring_ends_the_follow_up_and_changes_nothing_else():
    minority = np.arange(500) < 100
    followed = groups.planted("other", minority, 1.0, seed=4, rate=0.0)
    assert followed.event.all()
    before = followed
    for rate in (0.5, 5.0):
        data = groups.planted("other", minority, 1.0, seed=4, rate=rate)
        assert data.X.equals(followed.X)
        assert (data.time[data.event] == followed.time[data.event]).all()
        assert (data.time[~data.event] < followed.time[~data.event]).all()
        assert before.event[data.event].all()  # whoever is seen to die now was before
        before = data


def test_cvar_is_left_out_where_it_is_cox():
    few = groups.planted("other", np.arange(200) < 40, 1.0, seed=6, rate=3.0)
    X = np.array(few.X)
    share = few.event.mean()
    fitted = groups.fits(few, X, [share / 2, share])
    models = {(name, alpha): coef for name, alpha, coef in fitted}
    assert next(iter(models)) == ("Cox", 1.0)
    assert ("CVaR", share / 2) in models and ("CVaR", share) not in models


def test_censoring_hides_deaths_in_training_and_keeps_the_test_patients():
    tables = {seen: censoring.rows("other-early", seen, 1) for seen in (1.0, 0.3)}
    for seen, table in tables.items():
        assert list(table["method"][:2]) == ["Cox", "DRO-COX"]
        assert table["events"].iloc[0] == pytest.approx(seen * censoring.COHORT, rel=0.06)
        same = table["c_minority"] == table["c_minority_followed"]
        assert same.all() == (seen == 1.0)
        assert table["q_minority"].notna().sum() == len(censoring.PLANTED_ALPHAS)


def test_rows_of_a_job_are_reproducible():
    job = {"design": "other-early", "share": 0.2, "n": 300, "marker": 1.0, "draw": 1}
    table = groups.rows(**job)
    assert list(table["method"][:2]) == ["Cox", "DRO-COX"]
    assert 0.2 < table.loc[1, "q_minority"] < 1
    assert table.equals(groups.rows(**job))
