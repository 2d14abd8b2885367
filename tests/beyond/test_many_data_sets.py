"""The study on many data sets: against literal computations, without leaks."""

import dataclasses
from functools import partial
from itertools import product

import invented_patients
import literal
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from drocox import concordance, training
from drocox.beyond import by_adam, datasets, halves, many_data_sets, models, outcomes, run
from drocox.beyond.by_adam import BRIDGE, DRO, PENALISED, PLAIN_3, PLAIN_18, Arm, Judged, Quarters
from drocox.beyond.models import AGAINST, ALONE, FORMS, GENTLE, HALF, HALF_SPLIT, PLAIN, Key
from drocox.beyond.outcomes import Average, Contrast
from drocox.evaluation import scaled_features
from drocox.heldout import assign_folds
from drocox.paper import store
from drocox.paper.sweep import train_missing, verify_plan
from drocox.solver import minimise

pytestmark = pytest.mark.slow  # of a study beyond the paper; `make check` is for the package

STEPS = 20  # of Adam, in place of 500: what is tested does not depend on how many there are
STARTS = (0, 1)


@pytest.fixture(scope="module", autouse=True)
def few_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "fit_stack", partial(training.fit_stack, n_iter=STEPS))
        yield


@pytest.fixture(scope="module")
def patients():
    return invented_patients.draw(240, 0.4, seed=3)


@pytest.fixture(scope="module")
def dealt(patients):
    return next(halves.deal(patients.data.event, 0))


@pytest.fixture(scope="module")
def learned(few_steps, patients, dealt):
    return halves.learn(patients.subset(dealt[0]), 0, 0, starts=STARTS)


@pytest.fixture(scope="module")
def evaluated(patients, dealt, learned):
    b = patients.subset(dealt[1])
    return outcomes.evaluate(outcomes.scored(learned, b), learned, b)[1]


@pytest.fixture(scope="module")
def quarters():
    return Quarters.of(invented_patients.draw(80, 0.4, seed=1), {"sex": 0.5}, split=3, half=1)


# What is trained ----------------------------------------------------------------------------------


def test_budgets_are_equal():
    sizes = {objective: len(set(some)) for objective, some in by_adam.CANDIDATES.items()}
    assert sizes.pop(PLAIN_3) == 3
    assert set(sizes.values()) == {18}
    rates = [one.learning_rate for one in by_adam.CANDIDATES[DRO]]
    assert rates == [0.01] * 6 + [0.001] * 6 + [0.0001] * 6
    alphas = [one.alpha for one in by_adam.CANDIDATES[by_adam.SPLIT]]
    assert alphas[:6] == [0.1, 0.15, 0.2, 0.3, 0.4, 0.5]
    assert {one.alpha for one in by_adam.CANDIDATES[BRIDGE]} == {0.3}
    penalties = [one.penalty for one in by_adam.CANDIDATES[PENALISED]]
    assert penalties[:6] == [0, 0.003, 0.01, 0.03, 0.1, 0.3]
    assert len(list(by_adam.arms("nonlinear"))) == 3 + 3 + 3 + 5 + 1 + 1
    assert len(list(by_adam.arms("linear"))) == 5 + 3


@pytest.mark.parametrize("objective", by_adam.CANDIDATES)
def test_objectives_are_the_papers(quarters, objective):
    data = quarters.inside.data
    settings = by_adam.CANDIDATES[objective][:3]
    scores = np.random.default_rng(0).normal(size=(len(settings), len(data)))
    arm = Arm("nonlinear", objective, dealt=2)
    value = quarters.objective(arm, settings)(torch.from_numpy(scores)).numpy()
    first = assign_folds(data.event, 2, 10000 + 1000 * 2 + 2 * 3 + 1) == 0
    for setting, own, found in zip(settings, scores, value, strict=True):
        losses = literal.cox_losses(own, data.time, data.event)
        if objective == by_adam.SPLIT:
            losses = literal.split_cox_losses(own, data.time, data.event, first)
        if setting.alpha is None:
            expected = losses.sum() / data.event.sum()
        else:
            c = literal.dual_constant(setting.alpha)
            parts = [first, ~first] if objective == by_adam.SPLIT else [np.full(len(own), True)]
            expected = sum(literal.dro_by_search(losses[part], c)[0] for part in parts)
        assert found == pytest.approx(expected, rel=1e-9)
    share = data.event.mean() if objective == BRIDGE else 1.0
    expected = [share * (setting.penalty or 0.0) for setting in settings]
    np.testing.assert_allclose(quarters.decay(settings), expected)


def test_halves_of_sample_splitting_are_stratified_and_serve_all_candidates(quarters):
    event = quarters.inside.data.event
    drawn = [quarters.first(dealt) for dealt in by_adam.DEALT]
    for first in drawn:
        assert abs(2 * first.sum() - len(event)) <= 1
        assert abs(2 * event[first].sum() - event.sum()) <= 1
    assert (drawn[0] != drawn[1]).any() and (drawn[1] != drawn[2]).any()


def test_objectives_share_initial_weights(quarters, monkeypatch):
    seen = {}

    def fit_stack(X, objective, theta, rates, **how):
        seen.setdefault(arm, []).extend(theta)
        return training.ScoreStack(np.array(theta), how["hidden"], np.zeros(len(theta)))

    monkeypatch.setattr(training, "fit_stack", fit_stack)
    for arm in by_adam.arms("nonlinear"):
        by_adam.train(quarters, arm, by_adam.CANDIDATES[arm.objective])
    for arm, thetas in seen.items():
        for setting, theta in zip(by_adam.CANDIDATES[arm.objective], thetas, strict=True):
            draw = setting.draw if arm.objective == PLAIN_18 else 0
            seed = 1000 * arm.start + 100 * draw + 2 * 3 + 1
            expected = training.initial_parameters(quarters.X.shape[1], 24, seed)
            np.testing.assert_array_equal(theta, expected)


def test_each_candidate_is_as_if_it_were_trained_alone(quarters):
    for objective in (by_adam.SPLIT, PENALISED, BRIDGE):
        arm, settings = Arm("nonlinear", objective), by_adam.CANDIDATES[objective]
        stack = by_adam.train(quarters, arm, settings)
        for at in (0, 5, 17):
            alone = by_adam.train(quarters, arm, [settings[at]])
            np.testing.assert_allclose(alone.theta[0], stack.theta[at], rtol=1e-12, atol=1e-14)


# What is chosen -----------------------------------------------------------------------------------


def literal_choice(c, imparity, plain):
    """The paper's rule, candidate by candidate."""
    best = None
    for i in range(len(c)):
        if np.isnan(c[i]) or np.isnan(imparity[i]) or not c[i] >= 0.95 * plain:
            continue
        if best is None or (imparity[i], -c[i]) < (imparity[best], -c[best]):
            best = i
    if best is not None:
        return best
    return max((i for i in range(len(c)) if not np.isnan(c[i])), key=lambda i: (c[i], -i))


def test_choices_are_those_of_the_plan():
    rng = np.random.default_rng(0)
    for draw in range(200):
        c = rng.integers(50, 60, 18) / 100.0
        imparity = rng.integers(0, 6, 18) / 100.0
        c[rng.random(18) < 0.1] = np.nan
        imparity[rng.random(18) < 0.1] = np.nan
        plain = (0.55, 0.6, 0.7)[draw % 3]  # the last: none is eligible
        judged = Judged(c, {"sex": imparity, "age": np.full(18, np.nan)})
        found = judged.choices(plain)
        assert found["c-index", ""] == literal_choice(c, np.full(18, np.nan), plain)
        assert found["imparity", "sex"] == literal_choice(c, imparity, plain)
        assert found["imparity", "age"] == found["c-index", ""]
        eligible = (c >= 0.95 * plain) & ~np.isnan(imparity)
        assert judged.eligible("sex", plain) == eligible.sum()
        assert judged.eligible("age", plain) == 0


def test_candidates_without_finite_scores_have_no_c_index(quarters):
    scores = np.random.default_rng(0).normal(size=(3, len(quarters.out)))
    scores[1, 0] = np.nan
    judged = by_adam.judge(scores, quarters.out, quarters.cuts)
    assert np.isnan(judged.c_index).tolist() == [False, True, False]
    assert np.isnan(judged.imparity["sex"]).tolist() == [False, True, False]


def test_eligible_are_95_percent_of_plain_3_of_the_same_start(patients, dealt, learned):
    a = patients.subset(dealt[0])
    last = assign_folds(a.data.event, 4, 0) == 0
    inside, out = a.subset(np.flatnonzero(~last)), a.subset(np.flatnonzero(last))
    quarters = Quarters.of(a, learned.cuts, 0, 0)
    X = scaled_features(inside.data, out.data)[1]
    for start, objective in product(STARTS, (PLAIN_18, DRO)):
        plain = learned.models[Key(PLAIN_3, "", "c-index", start, 0)].facts["validation_c"]
        arm = Arm("nonlinear", objective, start)
        c, imparity = [], []
        for setting in by_adam.CANDIDATES[objective]:
            alone = by_adam.train(quarters, arm, [setting])  # one by one, not a stack
            counts = concordance.count(np.round(alone.scores(X)[0], 9), out.risk)
            c.append(counts.index())
            codes = datasets.codes_of(out, learned.cuts)["sex"]
            fractions = counts.fractions(codes)
            imparity.append(abs(fractions[1] - fractions[0]))
        best = literal_choice(c, imparity, plain / 100)
        by_c = learned.models[Key(objective, "", "c-index", start, 0)].facts
        assert by_c["validation_c"] == pytest.approx(100 * max(c))
        facts = learned.models[Key(objective, "sex", "imparity", start, 0)].facts
        setting = by_adam.CANDIDATES[objective][best]
        assert facts["learning_rate"] == setting.learning_rate
        assert facts.get("alpha") == setting.alpha
        assert facts["validation_c"] == pytest.approx(100 * c[best])
        assert facts["eligible"] == sum(np.array(c) >= 0.95 * plain / 100)


# Outcomes -----------------------------------------------------------------------------------------


def test_outcomes_of_the_other_half_decide_nothing(patients, dealt, learned):
    rows_a, rows_b = dealt
    data = patients.data
    rng = np.random.default_rng(0)
    time, event = data.time.copy(), data.event.copy()
    time[rows_b] = rng.permutation(time[rows_b]) * 2
    event[rows_b] = rng.random(len(rows_b)) < 0.3
    changed = dataclasses.replace(patients, data=dataclasses.replace(data, time=time, event=event))
    again = halves.learn(changed.subset(rows_a), 0, 0, starts=STARTS)
    assert again.gaps == learned.gaps
    assert again.signs == learned.signs
    assert again.worst == learned.worst
    assert again.own_worst == learned.own_worst
    assert again.horizon == learned.horizon
    b = changed.subset(rows_b)
    assert list(again.models) == list(learned.models)
    for key, model in learned.models.items():
        np.testing.assert_array_equal(again.models[key].scores(b), model.scores(b))


def literal_difference(scores, time, event):
    """The first model's c-index minus the second's, in points."""
    first, second = (literal.concordance_index(one, time, event) for one in scores)
    return 100 * (first - second)


@pytest.mark.parametrize(
    "wanted",
    [
        Contrast(HALF, "", PLAIN, ""),
        Contrast("SPLIT", "c-index", PLAIN_18, "c-index"),
        Contrast(DRO, "imparity", PLAIN_18, "imparity"),
        Contrast("linear SPLIT", "imparity", "linear plain-18", "c-index"),
        Contrast("linear bridge", "imparity", "linear plain-18 with penalty", "imparity"),
    ],
)
def test_contrasts_equal_literal_computations(patients, dealt, learned, evaluated, wanted):
    b = patients.subset(dealt[1])
    time, event = b.data.time, b.data.event
    members = learned.worst.members(b.covariates)
    single = not wanted.choice or wanted.model.startswith("linear")
    starts = [None] if not wanted.choice else [0] if single else STARTS
    worst, of_own, c, closings = [], [], [], []
    for start, attribute in product(starts, ("sex", "age")):
        scores, keys = [], []
        for model, choice in (wanted[:2], wanted[2:]):
            of = attribute if choice == "imparity" else ""
            keys.append(Key(model, of, choice, start, None if start is None else 0))
            scores.append(learned.models[keys[-1]].scores(b))
        scores = np.array(scores)
        c.append(literal_difference(scores, time, event))
        worst.append(literal_difference(scores[:, members], time[members], event[members]))
        if keys[0] in learned.own_worst:
            mine = learned.own_worst[keys[0]].members(b.covariates)
            of_own.append(literal_difference(scores[:, mine], time[mine], event[mine]))
        codes = datasets.codes_of(b, learned.cuts)[attribute]
        gaps = []
        for own in scores:
            fractions = concordance.count(own, time, event).fractions(codes)
            gaps.append(100 * (fractions[1] - fractions[0]))
        closings.append(np.sign(learned.gaps[attribute]) * (gaps[1] - gaps[0]))
    found = evaluated[wanted]
    assert found["c_diff", ""].value == pytest.approx(np.mean(c), abs=1e-9)
    assert found["worst_diff", ""].value == pytest.approx(np.mean(worst), abs=1e-9)
    assert found["closing", ""].value == pytest.approx(np.mean(closings), abs=1e-9)
    of_age = found["closing", "age"].value
    assert of_age == pytest.approx(np.mean(closings[1::2]), abs=1e-9)
    if of_own:
        assert found["worst_own_diff", ""].value == pytest.approx(np.mean(of_own), abs=1e-9)


def test_combinations_of_choices_are_means_and_differences(evaluated):
    def closing(*contrast):
        return evaluated[Contrast(*contrast)]["closing", ""].value

    c, imparity = "c-index", "imparity"
    by_c = closing(DRO, c, PLAIN_18, c)
    by_imparity = closing(DRO, imparity, PLAIN_18, imparity)
    both = closing(DRO, "both", PLAIN_18, "both")
    assert both == pytest.approx((by_c + by_imparity) / 2, abs=1e-9)
    interaction = closing(DRO, "price", PLAIN_18, "price")
    assert interaction == pytest.approx(by_imparity - by_c, abs=1e-9)
    prices = [closing(name, imparity, name, c) for name in by_adam.MAIN]
    assert interaction == pytest.approx(prices[1] - prices[0], abs=1e-9)
    three = closing(outcomes.THREE, imparity, outcomes.THREE, c)
    assert three == pytest.approx(np.mean(prices), abs=1e-9)


def test_calibration_counts_events_up_to_the_horizon(patients, dealt, learned, evaluated):
    a, b = (patients.subset(rows) for rows in dealt)
    horizon = np.median(a.data.time[a.data.event])
    members = learned.worst.members(b.covariates)
    model = learned.models[Key(PLAIN)]
    on_a, on_b = np.exp(model.scores(a)), np.exp(model.scores(b))
    expected = np.zeros(len(b))
    for k in np.flatnonzero(a.data.event & (a.data.time <= horizon)):
        jump = 1 / on_a[a.data.time >= a.data.time[k]].sum()
        expected += jump * on_b * (b.data.time >= a.data.time[k])
    observed = (b.data.event & (b.data.time <= horizon))[members].sum()
    literal = 100 * learned.signs["worst"] * np.log(observed / expected[members].sum())
    assert evaluated[Average(PLAIN)]["oe_worst", ""].value == pytest.approx(literal, abs=1e-9)


def test_half_of_the_events_doubles_the_weight_of_the_worst(patients, dealt):
    # below pi_0 the weights of the events have a squared coefficient of variation of s/alpha - 1
    a = patients.subset(dealt[0])
    found = FORMS[HALF].fit(scaled_features(a.data)[0], a, 0)
    weights = found.weights[a.data.event]
    assert found.weights[~a.data.event].max() == pytest.approx(0, abs=1e-12)
    assert weights.var() / weights.mean() ** 2 == pytest.approx(1, abs=1e-6)


def test_gentle_protects_half_of_the_patients_and_split_half_of_the_events(patients, dealt):
    a = patients.subset(dealt[0])
    X = scaled_features(a.data)[0]
    share = a.data.event.mean()
    first = models.assign_folds(a.data.event, 2, 7) == 0
    for name, alpha, halves_of_split in ((GENTLE, 0.5, None), (HALF_SPLIT, share / 2, first)):
        found = FORMS[name].fit(X, a, seed=7)
        literal = minimise(X, a.risk, alpha, first=halves_of_split, penalty=1e-6)
        np.testing.assert_array_equal(found.coef, literal.coef)
        assert found.gap < 1e-6
        assert FORMS[name].protected(a) == pytest.approx(alpha / share)


def test_a_matched_dose_reorders_the_patients(patients, dealt):
    a = patients.subset(dealt[0])
    X = scaled_features(a.data)[0]
    of_cox = X @ models.COX.fit(X, a, 0).coef
    ranks = {
        share: stats.spearmanr(X @ models.Form(share).fit(X, a, 0).coef, of_cox)[0]
        for share in (0.5, 0.25, 0.125)
    }
    matched = models.matched_dose(a, 0).share
    assert ranks[matched] <= models.REORDERED
    assert all(ranks[share] > models.REORDERED for share in ranks if share > matched)


def test_constant_scores_have_no_order():
    assert np.isnan(models.rank_correlation(np.zeros(4), np.arange(4.0)))


def test_a_ridge_does_not_depend_on_the_scale_of_weights(patients, dealt):
    a = patients.subset(dealt[0])
    X = scaled_features(a.data)[0]
    weights = models.balanced(a.data.event, (X[:, 0] > 0).astype(int))
    one, two = (models.ridge(X, a, factor * weights, 0)[0].coef for factor in (1, 3))
    np.testing.assert_allclose(one, two, atol=1e-8)


def test_weights_give_both_groups_events_the_same_total():
    event = np.array([True, True, True, True, False, True])
    codes = np.array([1, 0, 0, 0, 1, -1])
    weights = models.balanced(event, codes)
    assert weights.tolist() == pytest.approx([2, 2 / 3, 2 / 3, 2 / 3, 2, 1])


def test_permuted_labels_give_the_closing_of_these_labels(patients, dealt, learned):
    rows_b = dealt[1]
    b = patients.subset(rows_b)
    held = outcomes.scored(learned, b)
    draws = outcomes.permuted_closings(held, learned, patients, rows_b)
    order = np.random.default_rng(7).permutation(len(patients))[rows_b]
    for name in ("SPLIT", DRO):
        closings = []
        for attribute, codes in datasets.codes_of(patients, learned.cuts).items():
            for start, choice in product(STARTS, outcomes.CHOICES):
                of = "" if choice == "c-index" else attribute
                base, own = (
                    halves.gap_of(held[Key(one, of, choice, start, 0)], codes[order]).value
                    for one in (PLAIN_18, name)
                )
                closings.append(np.sign(learned.gaps[attribute]) * (base - own))
        assert draws.loc[7, name] == pytest.approx(np.mean(closings), abs=1e-9)


# The store ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(few_steps, patients):
    """A split as it is read back from a store."""
    of_split = many_data_sets.study(patients, 0).assign(name="follic", split=0)
    return store.from_csv(store.to_csv(of_split))


@pytest.fixture(scope="module")
def again(few_steps, patients):
    """The split once more, with the first start only."""
    return many_data_sets.study(patients, 0, starts=(0,)).assign(name="follic", split=0)


def test_a_row_for_each_outcome_of_the_plan(rows):
    of = ["split", "model", "choice", "against", "against_choice", "measure", "attribute"]
    known = rows[rows["se"].notna()]
    assert not known.duplicated(of).any()
    assert (known["se"] >= 0).all()
    found = set(
        known[["model", "choice", "against", "against_choice"]]
        .fillna("")
        .itertuples(index=False, name=None)
    )
    assert {tuple(contrast) for contrast in outcomes.planned()} <= found
    assert {
        (name, "", against, "") for name, against in AGAINST.items() if name in set(rows["model"])
    } <= found
    for prefix, objective, choice in product(("", "linear "), by_adam.CANDIDATES, outcomes.CHOICES):
        assert (prefix + objective, choice, "", "") in found
    assert {HALF, GENTLE, HALF_SPLIT, models.QUARTER, models.DOSE, models.RIDGE_COX} <= set(
        rows["model"]
    )
    of_alone = known[known["model"] == ALONE]
    assert set(of_alone["measure"]) == {"worst", "worst_diff"}
    optimism = known[known["measure"] == "optimism"]
    assert optimism["model"].nunique() == 12
    ones = rows[rows["half"].notna()]
    assert not ones.duplicated(
        ["split", "model", "choice", "attribute", "start", "dealt", "half", "measure"]
    ).any()
    split = ones[(ones["model"] == "SPLIT") & (ones["measure"] == "c")]
    dealings = {(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)}
    assert set(split[["start", "dealt"]].itertuples(index=False, name=None)) == dealings
    assert split["attribute"].value_counts().to_dict() == {"": 10, "sex": 10, "age": 10}
    draws = rows[rows["draw"].notna()]
    assert (draws.groupby(["split", "model"]).size() == 1000).all()
    assert set(draws["model"]) == {"SPLIT", DRO}
    certified = rows[rows["moved"].isna() & rows["draw"].isna()]
    assert set(certified["model"]) == {*AGAINST, PLAIN} & set(rows["model"])


def test_effects_are_means_over_starts_and_halves(rows):
    ones = rows[rows["half"].notna() & (rows["dealt"] == 0) & (rows["measure"] == "worst")]
    wanted = rows[(rows["measure"] == "worst_diff") & (rows["model"] == "SPLIT")]
    wanted = wanted[(wanted["against"] == PLAIN_18) & (wanted["choice"] == "imparity")]
    wanted = wanted[wanted["against_choice"] == "imparity"].set_index("split")["value"]
    by_rule = ones[ones["choice"] == "imparity"]
    means = by_rule.groupby(["split", "model"])["value"].mean().unstack()
    np.testing.assert_allclose(wanted, means["SPLIT"] - means[PLAIN_18], atol=1e-6)


def test_the_first_start_gives_the_rows_by_which_the_store_is_verified(rows, again):
    again = many_data_sets.part(again).reset_index(drop=True)
    stored = many_data_sets.part(rows).reset_index(drop=True)
    assert len(again) == len(stored)
    keys = ["model", "choice", "against", "against_choice", "start", "half", "measure", "attribute"]
    pd.testing.assert_frame_equal(
        again[keys].fillna(""), stored[keys].fillna(""), check_dtype=False
    )
    np.testing.assert_allclose(again["value"], stored["value"], atol=1e-6)
    assert not {"permuted closing"} & set(stored["measure"])


def test_means_of_unstable_models_may_differ_by_as_much_as_starts_do(rows):
    part = many_data_sets.part(rows).assign(moved=1.0)
    assert many_data_sets.means(rows, part) == []
    spread = (
        rows[(rows["model"] == "plain-18") & (rows["measure"] == "c") & rows["half"].notna()]
        .query("choice == 'c-index'")
        .groupby("start")["value"]
        .mean()
        .std()
    )
    of_penalised = (part["model"] == PENALISED) & (part["measure"] == "c")
    for factor, problems in ((0.99, 0), (1.01, 1)):
        shift = factor * 3 * np.sqrt(2) * spread
        moved = part.assign(value=part["value"].where(~of_penalised, part["value"] + shift))
        found = many_data_sets.means(rows, moved)
        by_c = [
            one
            for one in found
            if one.startswith("mean of follic: plain-18 with penalty, c-index, c")
        ]
        assert len(by_c) == problems
    stable = rows.assign(moved=0.0)
    assert many_data_sets.means(stable, moved.assign(moved=0.0)) == []


def test_the_study_is_swept_and_verified_by_its_first_start(rows, again, tmp_path, monkeypatch):
    def study(patients, split, *, networks, permutations, starts):
        found = {(0, 1, 2): rows, (0,): again}[starts].drop(columns=["name", "split"])
        return found if networks else found[~found["model"].isin(by_adam.CANDIDATES)]

    monkeypatch.setattr(many_data_sets, "study", study)
    plan = run.plan("many_data_sets", tmp_path)
    jobs = [job for job in plan.jobs if job.job in ("follic-0", "cancer-0")]
    plan = dataclasses.replace(plan, jobs=jobs, sample=jobs)
    assert train_missing(plan, jobs=1, progress=False) == 2
    rows = plan.store.read()
    networks = rows["model"].isin(by_adam.CANDIDATES)
    assert set(rows["name"]) == {"follic", "cancer"} and set(rows.loc[networks, "name"]) == {
        "follic"
    }
    verdict = verify_plan(plan, jobs=1, progress=False)
    assert verdict.problems == []
    assert any(line.startswith("stable: ") for line in verdict.lines)
    outcome = rows["half"].notna() & rows["measure"].eq("c")
    wrong = rows.assign(
        value=rows["value"] + 50 * outcome, moved=rows["moved"].where(rows["moved"].isna(), 1.0)
    )
    monkeypatch.setattr(store.Store, "read", lambda self: wrong)
    problems = verify_plan(plan, jobs=1, progress=False).problems
    assert any(
        problem.startswith("mean of follic: bridge, c-index, c: -50 apart") for problem in problems
    )
    assert any(problem.startswith("cancer-0: value") for problem in problems)
