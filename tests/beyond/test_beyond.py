"""Studies beyond the paper: theorems by independent solvers, fits by literal losses, runs."""

import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import literal
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize

from drocox import dro_risk, dual_constant, risk_sets, worst_case_weights
from drocox.accuracy import concordance_index
from drocox.beyond import STUDIES, methods, protection, rivals, run
from drocox.beyond.free import free_baseline
from drocox.beyond.protection import nominal_alpha, protected_share
from drocox.beyond.weighted_gap import weighted_gap
from drocox.data import SurvivalData
from drocox.heldout import HeldOut, default_horizon
from drocox.paper import store
from drocox.paper.protocol import ATTRIBUTES
from drocox.paper.sweep import verify_plan
from drocox.solver import minimise
from drocox.tuning import choose

pytestmark = pytest.mark.slow  # of the study beyond the paper; `make check` is for the package


def patients(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    time = rng.integers(1, 25, n).astype(float)
    event = rng.random(n) < 0.5
    event[:2] = True, False
    return X, time, event


def ball(losses, c):
    """Largest mean in the ball, by a solver that knows no dual."""
    n = len(losses)
    inside = {"type": "ineq", "fun": lambda q: c**2 - n * q @ q, "jac": lambda q: -2 * n * q}
    whole = {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": lambda q: np.ones(n)}
    how = {"method": "SLSQP", "bounds": [(0, 1)] * n, "constraints": [inside, whole]}
    how |= {"jac": lambda q: -losses, "options": {"ftol": 1e-13, "maxiter": 500}}
    return -optimize.minimize(lambda q: -q @ losses, np.full(n, 1 / n), **how).fun


def tail(losses, alpha):
    """CVaR as a linear programme."""
    n = len(losses)
    bounds = [(0, 1 / (alpha * n))] * n
    return -optimize.linprog(-losses, A_eq=np.ones((1, n)), b_eq=[1], bounds=bounds).fun


# How much alpha protects.


@pytest.mark.parametrize("rule", ["paper", "definition", "sharp"])
@pytest.mark.parametrize("alpha", [0.2, 0.35, 0.5, 0.8])
def test_a_ball_covers_groups_of_the_protected_share_and_no_smaller_ones(rule, alpha):
    n = 60
    c = dual_constant(alpha, rule=rule)
    edge = n * protected_share(alpha, rule)
    assert edge == pytest.approx(n / c**2)
    covered = int(np.ceil(edge - 1e-9))
    for size in {max(1, covered - 1), covered}:
        losses = (np.arange(n) < size).astype(float)
        worst = ball(losses, c)
        dual = dro_risk(torch.tensor(losses), alpha, rule=rule).item()
        assert worst == pytest.approx(dual, abs=1e-5)
        assert (worst > 1 - 1e-5) == (size == covered)


def test_nominal_alpha_inverts_the_protected_share():
    for share in (0.006, 0.1, 0.5, 0.9):
        for rule in ("paper", "definition", "sharp", "cvar"):
            assert protected_share(nominal_alpha(share, rule), rule) == pytest.approx(share)
        constants = [dual_constant(nominal_alpha(share, r), rule=r) for r in ("paper", "sharp")]
        assert constants[0] == pytest.approx(constants[1])


@pytest.mark.parametrize("seed", [0, 1])
def test_cvar_beyond_the_share_of_events_is_cox(seed):
    X, time, event = patients(seed=seed)
    rng = np.random.default_rng(seed)
    for alpha in (event.mean(), 0.9):
        for _ in range(3):
            losses = literal.cox_losses(X @ rng.standard_normal(2), time, event)
            assert tail(losses, alpha) == pytest.approx(losses.mean() / alpha, rel=1e-9)
    below = 0.5 * event.mean()
    assert tail(losses, below) < 0.99 * losses.mean() / below

    def cox(theta):
        return literal.cox_losses(X @ theta, time, event).mean()

    by_scipy = optimize.minimize(cox, np.zeros(2), method="BFGS").x
    found = minimise(X, risk_sets(time, event), event.mean(), rule="cvar").coef
    np.testing.assert_allclose(found, by_scipy, atol=1e-4)


def test_above_its_threshold_a_ball_weighs_everyone_and_is_mean_and_deviation():
    X, time, event = patients(n=30, seed=3)
    losses = literal.cox_losses(X @ [0.5, -0.2], time, event)
    own = losses[event]
    edge = event.mean() / (1 + own.var() / own.mean() ** 2)
    for share in (0.97 * edge, 1.03 * edge):
        q = worst_case_weights(torch.tensor(losses), share, rule="sharp")
        assert (q > 0).all().item() == (share > edge)
    risk = losses.mean() + np.sqrt((1 / share - 1) * losses.var())
    assert ball(losses, share**-0.5) == pytest.approx(risk, abs=1e-6)


# Rivals.


def part_of(X, time, event, codes):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return methods.Part(SurvivalData("few", frame, time, event, {"g": codes}), X, seed=0)


def test_weighted_and_penalised_cox_minimise_what_they_say():
    X, time, event = patients()
    weights = np.random.default_rng(1).random(40)

    def weighted(theta):
        return weights @ literal.cox_losses(X @ theta, time, event)

    found = methods.weighted_cox(X, risk_sets(time, event), weights)
    best = optimize.minimize(weighted, np.zeros(2), method="BFGS")
    np.testing.assert_allclose(found, best.x, atol=1e-4)
    assert weighted(found) <= best.fun + 1e-10

    def ridge(theta):
        return literal.cox_losses(X @ theta, time, event).sum() / event.sum() + 0.15 * theta @ theta

    part = part_of(X, time, event, np.arange(40) % 2)
    best = optimize.minimize(ridge, np.zeros(2), method="BFGS").x
    np.testing.assert_allclose(methods.fit(part, "ridge Cox", 0.3, "g"), best, atol=1e-4)


def test_a_free_baseline_is_certified_and_no_other_solver_finds_less():
    X, time, event = patients(n=25, seed=4)
    coef, risk, below = free_baseline(X, time, event, 0.6)
    assert -1e-9 < risk - below < 1e-6
    times = np.unique(time[event])
    c = dual_constant(0.6, rule="sharp")

    def full(point):
        """The full losses, patient by patient."""
        f, hazards = X @ point[:2], np.exp(point[2:])
        losses = np.exp(f) * np.array([hazards[times <= t].sum() for t in time])
        for i in np.flatnonzero(event):
            losses[i] -= f[i] + np.log(hazards[times == time[i]].item())
        return losses

    def printed(point):
        above = np.maximum(full(point[:-1]) - point[-1], 0)
        return c * np.sqrt(np.mean(above**2)) + point[-1]

    start = np.concatenate([coef, np.full(len(times), -2.0), [0.0]])
    best = optimize.minimize(printed, start, method="BFGS", options={"maxiter": 2000})
    assert below - 1e-9 <= best.fun < risk + 1e-3


def test_for_fixed_weights_the_best_free_baseline_is_a_case_weighted_cox_model():
    X, time, event = patients(n=25, seed=5)
    q = np.random.default_rng(0).dirichlet(np.ones(25))
    times = np.unique(time[event])
    deaths = np.array([q[event & (time == t)].sum() for t in times])

    def full(point):
        f, hazards = X @ point[:2], np.exp(point[2:])
        cumulative = np.array([hazards[times <= t].sum() for t in time])
        own = np.log(hazards[np.searchsorted(times, time[event])])
        return q @ (np.exp(f) * cumulative) - q[event] @ (f[event] + own)

    best = optimize.minimize(full, np.full(2 + len(times), -1.0), method="BFGS").fun
    cox = minimise(X, risk_sets(time, event), 1, weights=25 * q).risk - np.log(25) * deaths.sum()
    assert best == pytest.approx(cox + deaths.sum() - deaths @ np.log(deaths), abs=1e-6)


def test_the_papers_rule():
    assert choose([0.7, 0.66, 0.6], [3, 2, 1], plain=0.69) == 1  # the last ranks too badly
    assert choose([0.7, 0.71], [2, 2], plain=0.7) == 1  # a tie: the larger c-index
    assert choose([0.7, 0.7], [2, 2], plain=0.7) == 0  # the first
    assert choose([0.5, 0.6], [1, 2], plain=0.8) == 1  # nobody is eligible


def test_every_patient_is_tested_once_a_repeat_and_never_trained_on():
    folds = methods.prepared_folds("seer", False)[0]
    tested = []
    for fold in folds:
        train, test = fold.train, fold.test
        assert len(train.data) + len(fold.rows) == 4024 and len(test.data) == len(fold.rows)
        fit, validate = fold.inner
        assert len(validate.data) == pytest.approx(0.25 * len(train.data), abs=4)
        assert len(fit.data) + len(validate.data) == len(train.data)
        assert not set(train.data.X.index) & set(test.data.X.index)
        assert not set(fit.data.X.index) & set(validate.data.X.index)
        np.testing.assert_allclose(train.X.std(axis=0), 1)  # scaled by the training part
        tested.extend(fold.rows)
    assert sorted(tested) == list(range(4024))
    for attribute in ("age", "race"):  # evenly by the groups of all attributes
        shares = [fold.test.data.groups[attribute].mean() for fold in folds]
        assert np.ptp(shares) < 0.005


def test_a_shrunken_cox_model_has_the_ranks_of_cox_and_the_spread_of_dro_cox():
    fold = methods.prepared_folds("seer", False)[0][0]
    scores = {}
    for name in ("Cox", "shrunken Cox", "DRO-COX"):
        scores[name] = fold.train.X @ methods.fit_tuned(fold, name, "race")[0]
    assert np.corrcoef(scores["Cox"], scores["shrunken Cox"])[0, 1] == pytest.approx(1)
    assert scores["shrunken Cox"].std() == pytest.approx(scores["DRO-COX"].std())


def test_group_weights_weigh_events_of_the_groups():
    X, time, event = patients()
    codes = np.arange(40) % 2

    def weighted(theta):
        losses = literal.cox_losses(X @ theta, time, event)
        return sum(w * losses[event & (codes == g)].mean() for g, w in ((0, 0.9), (1, 0.1)))

    best = optimize.minimize(weighted, np.zeros(2), method="BFGS").x
    part = part_of(X, time, event, codes)
    np.testing.assert_allclose(methods.fit(part, "group weights", 0.1, "g"), best, atol=1e-4)


def test_interactions_give_the_second_group_effects_of_its_own():
    X, time, event = patients(n=200)
    codes = np.arange(200) % 2
    part = part_of(X, time, event, codes)
    wide = part.features(methods.CROSSED, "g")
    np.testing.assert_array_equal(wide[:, 2:4], X * codes[:, None])
    np.testing.assert_array_equal(wide[:, 4], codes)
    assert part.features("Cox", "g") is part.X

    def penalised(theta):
        mean = literal.cox_losses(wide @ theta, time, event).mean()
        return mean + methods.SLIGHT / 2 * theta @ theta

    best = optimize.minimize(penalised, np.zeros(5), method="BFGS").x
    np.testing.assert_allclose(methods.fit(part, methods.CROSSED, 1.0, "g"), best, atol=1e-3)


def test_cvar_beyond_the_share_of_events_is_fitted_as_cox():
    X, time, event = patients()
    part = part_of(X, time, event, np.arange(40) % 2)
    cox = methods.fit(part, "Cox", 1.0, "g")
    beyond = methods.fit(part, "CVaR", event.mean() + 0.01, "g")
    np.testing.assert_array_equal(beyond, cox)
    solved = minimise(X, part.risk, event.mean() + 0.01, rule="cvar").coef
    np.testing.assert_allclose(beyond, solved, atol=1e-6)
    assert np.abs(methods.fit(part, "CVaR", 0.5 * event.mean(), "g") - cox).max() > 1e-3


def test_fits_that_do_not_depend_on_the_attribute_are_shared():
    X, time, event = patients()
    part = part_of(X, time, event, np.arange(40) % 2)
    part.data.groups["h"] = (np.arange(40) < 20).astype(int)
    for method in ("DRO-COX", methods.CROSSED):
        methods.fit(part, method, 0.5, "g")
        methods.fit(part, method, 0.5, "h")
    told = [key for key in part.fits if key[2] is not None]
    assert len(part.fits) == 3 and {key[2] for key in told} == {"g", "h"}


def test_cox_is_stopped_where_its_validation_c_index_is_nearest_to_that_of_dro_cox():
    inner = methods.prepared_folds("seer", False)[0][0].inner
    train, val = inner

    def c_index(method, setting):
        scores = val.X @ methods.fit(train, method, setting, "race")
        return concordance_index(scores, val.data.time, val.data.event)

    wanted = c_index("DRO-COX", methods.tune(inner, "DRO-COX", "race"))
    apart = [abs(c_index(methods.STOPPED, steps) - wanted) for steps in methods.FINE_STEPS]
    steps = methods.tune(inner, methods.STOPPED, "race")
    assert apart[methods.FINE_STEPS.index(steps)] == min(apart)


def test_age_in_years_takes_the_place_of_a_cut():
    plain = methods.prepared_folds("support", False)[0][0]
    years = methods.prepared_folds("support", True)[0][0]
    np.testing.assert_array_equal(plain.rows, years.rows)
    assert set(plain.train.data.X["age>65"]) == {0.0, 1.0}
    assert ((years.train.data.X["age>65"] > 65) == plain.train.data.X["age>65"]).all()


# Judging rivals.


def scored_patients(n=120, seed=0):
    X, time, event = patients(n=n, d=1, seed=seed)
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, 2, n)
    scores = np.round(X[:, 0] - 0.1 * time, 1)  # some are tied
    return HeldOut(scores, time, event, fold, rng.random(n)), rng.integers(0, 2, n)


def without(held_out, codes, k):
    rows = np.arange(len(codes)) != k
    return held_out.subset(rows), codes[rows]


def literal_weighted_gap(held_out, codes, at=None):
    """Pair by pair; ``at``: whose censoring curves and horizon are taken."""
    whole, of_whole = at or (held_out, codes)
    horizon = default_horizon(whole.time, whole.event)
    points, pairs = np.zeros((2, 2))
    for i, j in permutations(range(len(codes)), 2):
        t, s = held_out.time[i], held_out.time[j]
        counts = held_out.event[i] and t < horizon and held_out.fold[i] == held_out.fold[j]
        if counts and (s > t or (s == t and not held_out.event[j])):
            weight = 1.0
            for g in (codes[i], codes[j]):
                own = of_whole == g
                weight /= literal.censoring_survival(whole.time[own], whole.event[own], t)
            apart = held_out.scores[i] - held_out.scores[j]
            for g in (codes[i], codes[j]):
                points[g] += weight * (np.sign(apart) + 1) / 2
                pairs[g] += weight
    fractions = points / pairs
    return fractions[1] - fractions[0]


def test_the_weighted_gap_and_its_jackknife_equal_a_loop_over_pairs():
    held_out, codes = scored_patients(n=60)
    found = weighted_gap(held_out, codes)
    assert found.value == pytest.approx(literal_weighted_gap(held_out, codes))
    for k in (0, 7, 31):
        left = literal_weighted_gap(*without(held_out, codes, k), at=(held_out, codes))
        assert found.without[k] == pytest.approx(left)


@pytest.mark.slow
def test_weights_remove_a_gap_that_is_due_to_censoring():
    rng = np.random.default_rng(0)
    n = 12_000
    codes = np.arange(n) % 2
    f = rng.standard_normal(n)
    death = rng.exponential(np.exp(-f))
    lost = rng.exponential(np.where(codes == 1, 0.2, 10.0))  # at rates 5 and 0.1
    time = np.minimum(death, lost)
    folds = np.arange(n) // 2_000  # small matrices of pairs
    held_out = HeldOut(f, time, death <= lost, folds)
    early = replace(held_out, horizon=0.3)  # while a fifth of either group is still observed
    plain = held_out.concordance(codes == 1).value - held_out.concordance(codes == 0).value
    assert abs(plain) > 0.01
    assert abs(weighted_gap(early, codes).value) < 0.5 * abs(plain)


def test_metrics_of_repeats_are_averaged_and_compared_on_the_same_patients():
    held_out, codes = scored_patients()
    other, _ = scored_patients(seed=1)
    other = replace(held_out, scores=other.scores)
    worst = np.arange(120) < 50
    ours = rivals.mean_figures([rivals.figures(held_out, codes, worst)] * 2)
    theirs = rivals.figures(other, codes, worst)
    row = rivals.compared(ours, theirs)
    ci = 100 * (held_out.concordance(codes == 1).value - held_out.concordance(codes == 0).value)
    assert row["ci"] == pytest.approx(ci) == pytest.approx(row["cf_1"] - row["cf_0"])
    assert row["ci_sum"] == pytest.approx(row["ci"] + theirs["ci"].value)
    assert row["own_0"] == pytest.approx(100 * held_out.subset(codes == 0).c_index(
        np.full((codes == 0).sum(), True)).value)  # fmt: skip
    assert row["oe_1"] == pytest.approx(
        held_out.event[codes == 1].sum() / held_out.expected[codes == 1].sum()
    )
    # the jackknife, by leaving out one patient after another
    values = []
    for k in range(120):
        left, some = without(held_out, codes, k)
        rest, _ = without(other, codes, k)
        gaps = [one.concordance(some == 1).value - one.concordance(some == 0).value
                for one in (left, rest)]  # fmt: skip
        values.append(100 * (gaps[0] + gaps[1]))
    error = np.sqrt(119 * np.var(values))
    assert row["ci_sum_se"] == pytest.approx(error, rel=1e-6)
    same = rivals.compared(ours, ours)
    assert same["c_diff"] == 0 and same["c_diff_se"] == 0


@pytest.mark.slow
def test_a_rival_has_a_row_for_each_attribute():
    rows = rivals.rows("seer", "DRO-COX, sharp 0.5")
    assert list(rows["attribute"]) == ["age", "race"] and (rows["against"] == "Cox").all()
    assert rows["c"].nunique() == 1  # one model, whatever the attribute
    plain = rivals.rows("seer", "Cox")
    np.testing.assert_allclose(rows["ci"] - plain["ci"], rows["ci_diff"])
    np.testing.assert_allclose(rows["own_1"] - plain["own_1"], rows["own_1_diff"])


# Runs.


class Study:
    """Four jobs, one without a data set."""

    def __init__(self):
        self.done = []

    def jobs(self):
        return [{"dataset": "seer", "repeat": r} for r in (1, 2, 3)] + [{"design": "invented"}]

    def rows(self, **job):
        self.done.append(job)
        return pd.DataFrame({"value": [1 / 3, float(job.get("repeat", 0))], "word": "a"})


@pytest.fixture
def tiny(monkeypatch):
    studies = {name: Study() for name in STUDIES}
    monkeypatch.setattr(run, "study", studies.__getitem__)
    run._settings.cache_clear()
    yield studies
    run._settings.cache_clear()


def test_studies_are_swept_resumed_and_verified(tiny, tmp_path, monkeypatch):
    how = {"jobs": 1, "out": tmp_path, "progress": False}
    assert run.sweep(methods=["rivals"], repeats=[2], **how) == 1
    assert tiny["rivals"].done == [{"dataset": "seer", "repeat": 2}] and not tiny["groups"].done
    assert len(store.load_runs("beyond", out=tmp_path)) == 2
    assert run.sweep(**how) == 4 * len(STUDIES) - 1
    assert len(tiny["rivals"].done) == 4
    runs = store.load_runs("beyond", out=tmp_path)
    assert len(runs) == 8 * len(STUDIES) and list(runs["study"].unique()) == list(STUDIES)
    assert runs["dataset"].isna().sum() == 2 * len(STUDIES)
    record = store.load_provenance(tmp_path)["beyond"]
    assert set(record["core_minutes"]) == set(STUDIES) and record["rows"] == len(runs)
    monkeypatch.setattr(run, "SAMPLE", {name: ["seer-2"] for name in STUDIES})
    assert run.verify(out=tmp_path, jobs=1) == []
    tiny["rivals"].rows = lambda **job: pd.DataFrame({"value": [0.3, 1.0], "word": "a"})
    assert run.verify(out=tmp_path, jobs=1)[0].startswith("rivals: seer-2: value")


def test_jobs_have_unique_names():
    for name in STUDIES:
        jobs = run.jobs_of(name)
        assert len({job.name for job in jobs}) == len(jobs)
    assert [job.job for job in run.jobs_of("protection", ["seer"], [1])] == ["seer-1"]
    assert len(protection.jobs()) == 30
    assert len(rivals.jobs()) == 3 * len(methods.METHODS) - 2  # ages of FLC are in years


def test_the_sample_of_every_study_has_all_its_methods():
    runs = store.load_runs("beyond")
    for name in STUDIES:
        stored = runs[runs["study"] == name]
        by = "method" if stored["method"].notna().any() else "kind"
        sample = stored[stored["job"].isin([job.job for job in run.plan(name).sample])]
        assert set(sample[by]) == set(stored[by]), name


def test_the_stored_rivals_are_whole():
    runs = store.load_runs("beyond").query("study == 'rivals'")
    pairs = {(name, a) for name, attributes in ATTRIBUTES.items() for a in attributes}
    assert {tuple(key) for key in runs[["dataset", "attribute"]].to_numpy()} == pairs
    for (dataset, _), rows in runs.groupby(["dataset", "attribute"]):
        missing = set(methods.METHODS) - set(rows["method"])
        in_years = {name for name in methods.METHODS if "age in years" in name}
        assert missing == (in_years if dataset == "flc" else set())
    # one model for all attributes has one c-index
    gentle = runs[(runs["method"] == "DRO-COX, sharp 0.5") & (runs["dataset"] == "support")]
    assert np.ptp(gentle["c"]) < 1e-9


def test_a_broken_rival_is_found(monkeypatch):
    """The fault that a drawn sample once missed: ridge Cox with another penalty."""
    whole = run.plan("rivals")
    ridge = [job for job in whole.sample if job.job == "seer-ridge Cox"]
    few = replace(whole, sample=ridge)
    assert verify_plan(few, jobs=1, progress=False).problems == []
    broken = replace(methods.METHODS["ridge Cox"], settings=(10.0,))
    monkeypatch.setitem(methods.METHODS, "ridge Cox", broken)
    rivals.judged.cache_clear()
    methods.prepared_folds.cache_clear()  # with the fits
    problems = verify_plan(few, jobs=1, progress=False).problems
    rivals.judged.cache_clear()
    methods.prepared_folds.cache_clear()
    assert any(problem.startswith("seer-ridge Cox: c: ") for problem in problems)


def test_rows_without_stability_are_compared(tiny):
    rows = run.run_job(run.Job("rivals", "invented"))
    assert (rows["moved"] == 0).all() and list(rows)[:2] == ["study", "job"]
    assert "dataset" not in rows


def test_imports_go_one_way():
    """Library, reproduction, studies, notebooks; only ``__init__`` and ``cli`` look upward."""
    upward_too = ("cli.py", "__init__.py")
    package = Path(store.__file__).parents[1]
    notebooks = "exercises|explorables|bookstyle"
    library = [
        file
        for file in package.glob("*.py")
        if file.name not in upward_too and file.stem not in notebooks.split("|")
    ]
    paper = [file for file in (package / "paper").glob("*.py") if file.name not in upward_too]
    beyond = list((package / "beyond").glob("*.py"))
    importers = {
        f"paper|beyond|{notebooks}": library,
        f"beyond|{notebooks}": paper,
        notebooks: beyond,
    }
    for above, files in importers.items():
        upward = re.compile(
            rf"^\s*(from|import) drocox\.({above})\b|from drocox import .*\b({above})\b"
            rf"|[\"']drocox\.({above})\b",  # nor by a string
            re.MULTILINE,
        )
        assert len(files) > 4
        assert [file.name for file in files if upward.search(file.read_text("utf8"))] == []
