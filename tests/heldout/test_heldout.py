"""Estimates by group and their intervals, against loops over pairs and explicit leave-one-out."""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from sksurv.metrics import concordance_index_censored

import drocox
from drocox import heldout
from drocox.auditing import slices
from drocox.heldout import HeldOut

SEEDS = range(16)


def drawn(seed):
    """Few patients with ties in times and scores, in one to three folds, some with a baseline."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(24, 45))
    time = rng.integers(1, 12, n).astype(float)
    event = rng.random(n) < rng.uniform(0.5, 0.9)
    scores = rng.integers(-3, 4, n) / 2 + 0.1 * (rng.random(n) < 0.3)
    fold = rng.permutation(np.arange(n) % (1 + seed % 3))
    expected = rng.uniform(0.1, 2.0, n) if seed % 2 else None
    groups = {"site": rng.permutation(np.arange(n) % (2 + seed % 2)), "sex": rng.integers(0, 2, n)}
    data = drocox.SurvivalData("d", pd.DataFrame({"x": scores}), time, event, groups)
    return data, HeldOut(scores, time, event, fold, expected)


# Literal formulas: loops over patients and pairs ---------------------------------------------


def b1_point(f, time, event, i, j):
    """What a pair is worth in Algorithm B.1; None where it cannot be compared."""
    if time[i] == time[j]:
        if event[i] and event[j]:
            return 1.0 if f[i] == f[j] else 0.5
        if not event[i] and not event[j]:
            return None
        dead, alive = (i, j) if event[i] else (j, i)
        return 1.0 if f[dead] > f[alive] else 0.5
    first, last = (i, j) if time[i] < time[j] else (j, i)
    if not event[first]:
        return None
    return 1.0 if f[first] > f[last] else 0.5 if f[first] == f[last] else 0.0


def concordance(patients, members):
    points = pairs = 0.0
    for i in np.flatnonzero(members):
        for j in range(len(members)):
            if i != j and patients.fold[i] == patients.fold[j]:
                point = b1_point(patients.scores, patients.time, patients.event, i, j)
                if point is not None:
                    points += point
                    pairs += 1
    return points / pairs


def c_index(patients, members):
    points = pairs = 0.0
    for k in np.unique(patients.fold):
        rows = members & (patients.fold == k)
        if not patients.event[rows].any():
            continue
        for i in np.flatnonzero(rows & patients.event):
            for j in np.flatnonzero(rows):
                later = patients.time[j] > patients.time[i]
                if later or (patients.time[j] == patients.time[i] and not patients.event[j]):
                    apart = patients.scores[i] - patients.scores[j]
                    points += 1.0 if apart > 1e-8 else 0.5 if apart >= -1e-8 else 0.0
                    pairs += 1
    return points / pairs


def calibration(patients, members):
    expected = 0.0
    for i in np.flatnonzero(members):
        if patients.expected is not None:
            expected += patients.expected[i]
            continue
        mine = patients.fold == patients.fold[i]
        for j in np.flatnonzero(mine & patients.event):
            if patients.time[j] <= patients.time[i]:
                at_risk = mine & (patients.time >= patients.time[j])
                expected += np.exp(patients.scores[i]) / np.exp(patients.scores[at_risk]).sum()
    return patients.event[members].sum() / expected


def mean_risk(patients, members):
    logs = []
    for i in np.flatnonzero(members):
        others = patients.scores[patients.fold == patients.fold[i]]
        logs.append(patients.scores[i] - others.mean())
    return np.exp(np.mean(logs))


LITERAL = {
    "c_index": c_index,
    "calibration": calibration,
    "concordance": concordance,
    "mean_risk": mean_risk,
}


def left_out(loop, patients, members):
    """The estimate without each patient in turn."""
    everyone = np.arange(len(members))
    return np.array(
        [loop(patients.subset(everyone != i), members[everyone != i]) for i in everyone]
    )


def standard_error(without):
    n = len(without)
    return np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())


# The estimates ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(LITERAL))
@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_and_leave_one_out_values_equal_loops(seed, name):
    data, patients = drawn(seed)
    members = data.groups["site"] == 0
    estimate = getattr(patients, name)(members)
    assert estimate.value == pytest.approx(LITERAL[name](patients, members), rel=1e-12)
    exact = left_out(LITERAL[name], patients, members)
    if name == "calibration" and patients.expected is None:
        # to second order: a rough guide where folds have a dozen patients
        assert np.corrcoef(estimate.without, exact)[0, 1] > 0.95
        assert standard_error(estimate.without) == pytest.approx(standard_error(exact), rel=0.12)
    else:
        np.testing.assert_allclose(estimate.without, exact, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_c_index_equals_scikit_survival(seed):
    data, patients = drawn(seed)
    table = drocox.audit(data, patients.scores).table.set_index("group")
    for code, label in enumerate(data.group_labels["site"]):
        mine = data.groups["site"] == code
        if data.event[mine].sum() < heldout.FEWEST_EVENTS:
            assert np.isnan(table.loc[label, "c_index"])
            continue
        theirs = concordance_index_censored(data.event[mine], data.time[mine], data.X["x"][mine])
        assert table.loc[label, "c_index"] == pytest.approx(theirs[0], rel=1e-12)


# The audit ----------------------------------------------------------------------------------


def logit_slope(share):
    return 1 / (share * (1 - share))


SCALES = {  # there, back, and the slope of the way there
    "c_index": (special.logit, special.expit, logit_slope),
    "concordance": (special.logit, special.expit, logit_slope),
    "mean_risk": (np.log, np.exp, np.reciprocal),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_audit_table_equals_loops_over_pairs(seed):
    data, patients = drawn(seed)
    table = drocox.audit(
        data, patients.scores, folds=patients.fold, expected=patients.expected
    ).table
    matrix = np.column_stack(list(data.groups.values()))
    cells = [np.full(len(data), True)]
    cells += [codes == k for codes in data.groups.values() for k in np.unique(codes)]
    cells += [(matrix == cell).all(axis=1) for cell in np.unique(matrix, axis=0)]
    assert len(cells) == len(table)
    for members, row in zip(cells, table.to_dict("records"), strict=True):
        assert row["patients"] == members.sum() and row["events"] == data.event[members].sum()
        if row["events"] < 5:
            assert all(np.isnan(row[name]) for name in LITERAL)
            continue
        if patients.expected is None:
            assert np.isnan(row["calibration"])  # nobody knows
        else:
            assert row["calibration"] == pytest.approx(calibration(patients, members), rel=1e-10)
        if members.all():  # long loops, and nothing that the groups do not have
            continue
        for name, (forward, back, slope) in SCALES.items():
            value = LITERAL[name](patients, members)
            assert row[name] == pytest.approx(value, rel=1e-10)
            if not 0 < value < 1 and name != "mean_risk":
                assert np.isnan(row[f"{name}_low"])
                continue
            without = left_out(LITERAL[name], patients, members)
            with np.errstate(all="ignore"):
                moved = forward(without)
                error = standard_error(moved)
            if not np.isfinite(error):  # without some patient it is at the end of the scale
                moved = without
                error = slope(value) * standard_error(without)
            squares = (moved - moved.mean()) ** 2
            df = squares.sum() ** 2 / (squares**2).sum() - 1 if squares.any() else 1
            half = stats.t.ppf(0.975, max(df, 1)) * error
            ends = [row[f"{name}_low"], row[f"{name}_high"]]
            expected = [back(forward(value) - half), back(forward(value) + half)]
            np.testing.assert_allclose(ends, expected, rtol=1e-9)


def literal_ends(values, errors, correlation, critical):
    """Zou and Donner's interval of a difference of shares, each with limits by its log-odds."""
    below, above = [], []
    for value, error in zip(values, errors, strict=True):
        half = critical * logit_slope(value) * error
        below.append(value - special.expit(special.logit(value) - half))
        above.append(special.expit(special.logit(value) + half) - value)
    first, second = values
    down = below[0] ** 2 + above[1] ** 2 - 2 * correlation * below[0] * above[1]
    up = above[0] ** 2 + below[1] ** 2 - 2 * correlation * above[0] * below[1]
    return first - second - np.sqrt(down), first - second + np.sqrt(up)


@pytest.mark.parametrize("seed", SEEDS)
def test_audit_differences_equal_loops_over_pairs(seed):
    data, patients = drawn(seed)
    rows = drocox.audit(data, patients.scores, folds=patients.fold, familywise=False).imparity
    for attribute, codes in data.groups.items():
        mine = rows[rows["attribute"] == attribute]
        labels = data.group_labels[attribute]
        judged = [k for k in range(len(labels)) if data.event[codes == k].sum() >= 5]
        pairs = [(a, b) for a in judged for b in judged if a < b]
        assert [labels.index(label) for label in mine["versus"]] == [a for a, _ in pairs]
        assert [labels.index(label) for label in mine["group"]] == [b for _, b in pairs]
        for (a, b), row in zip(pairs, mine.itertuples(), strict=True):
            values = [concordance(patients, codes == k) for k in (b, a)]
            figures = [left_out(concordance, patients, codes == k) for k in (b, a)]
            errors = [standard_error(figure) for figure in figures]
            correlation = np.corrcoef(figures)[0, 1]
            without = figures[0] - figures[1]
            error = standard_error(without)
            squares = (without - without.mean()) ** 2
            df = squares.sum() ** 2 / (squares**2).sum() - 1
            one = stats.t.ppf(0.975, df)
            assert row.difference == pytest.approx(100 * (values[0] - values[1]), abs=1e-9)
            assert row.beyond_noise == (row.low > 0 or row.high < 0)
            if len(pairs) == 1:
                low, high = literal_ends(values, errors, correlation, one)
                assert [row.low, row.high] == pytest.approx([100 * low, 100 * high], rel=1e-6)
                assert row.noise_floor == pytest.approx(100 * np.sqrt(2 / np.pi) * error, rel=1e-6)
            else:  # more than for one pair alone, less than Bonferroni's; both are simulated
                bonferroni = stats.t.ppf(1 - 0.025 / len(pairs), df)
                least = literal_ends(values, errors, correlation, 0.98 * one)
                most = literal_ends(values, errors, correlation, 1.02 * bonferroni)
                assert 100 * most[0] < row.low < 100 * least[0]
                assert 100 * least[1] < row.high < 100 * most[1]
                floor = row.noise_floor / (100 * error)
                assert np.sqrt(2 / np.pi) < floor < np.sqrt(len(pairs))


# The search ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_slices_are_compared_with_others_of_similar_scores(seed):
    data, patients = drawn(seed)
    members = data.groups["sex"] == 1
    half = (patients.scores > np.median(patients.scores)).astype(float)
    pairs = np.zeros(2)
    for i in np.flatnonzero(members):
        for j in range(len(members)):
            if i != j and patients.fold[i] == patients.fold[j]:
                point = b1_point(patients.scores, patients.time, patients.event, i, j)
                pairs[int(half[i])] += point is not None
    expected = concordance(patients, members)
    exact = left_out(concordance, patients, members)
    for k in (0, 1):
        if pairs[k]:
            others = ~members & (half == k)
            expected -= pairs[k] / pairs.sum() * concordance(patients, others)
            exact = exact - pairs[k] / pairs.sum() * left_out(concordance, patients, others)
    estimate = slices._less_like_scores(patients, members, half)
    assert estimate.value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(estimate.without, exact, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaf_values_are_means_weighted_by_pairs(seed):
    data, patients = drawn(seed)
    n = len(data)
    points = np.zeros(n)
    pairs = np.zeros(n)
    for i in range(n):
        for j in range(n):
            if i != j and patients.fold[i] == patients.fold[j]:
                point = b1_point(patients.scores, patients.time, patients.event, i, j)
                points[i] += point or 0
                pairs[i] += point is not None
    half = patients.scores > np.median(patients.scores)
    usual = np.empty(n)
    for like in (half, ~half):
        usual[like] = points[like].sum() / pairs[like].sum()
    excess = np.where(pairs > 0, usual - points / np.maximum(pairs, 1), 0)
    X = np.column_stack([data.groups["site"], data.groups["sex"]])
    tree = slices.grow_tree(patients, half, X, leaves=3)
    leaf = tree.apply(X)
    for node in np.unique(leaf):
        mean = np.average(excess[leaf == node], weights=pairs[leaf == node])
        assert tree.tree_.value.ravel()[node] == pytest.approx(mean, abs=1e-12)


def test_slices_impute_medians_of_the_half_that_finds_them(monkeypatch):
    rng = np.random.default_rng(0)
    n = 200
    event = rng.random(n) < 0.7
    finding = heldout.assign_folds(event, 2, seed=0) == 0
    x = np.where(finding, 1.0, 5.0) + rng.random(n)
    x[::10] = np.nan
    X = pd.DataFrame({"x": x, "none": np.nan})
    seen = []
    grow_tree = slices.grow_tree

    def watched(patients, tenth, features, leaves):
        seen.append(features)
        return grow_tree(patients, tenth, features, leaves)

    monkeypatch.setattr(slices, "grow_tree", watched)
    patients = HeldOut(rng.standard_normal(n), rng.random(n), event, np.zeros(n, int))
    slices.find_slices(patients, X)
    (features,) = seen
    median = np.nanmedian(x[finding])
    assert median < 2 < np.nanmedian(x)
    np.testing.assert_array_equal(features[:, 0], np.where(np.isnan(x), median, x)[finding])
    assert (features[:, 1] == 0).all()
