"""Small cells: what the audit hides, and that it cannot be worked out from what it shows."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from cohort import simulated
from scipy.optimize import linprog

import drocox
from drocox.auditing.disclosure import hidden_groups, small_counts
from drocox.auditing.groupings import groupings_of
from drocox.auditing.measures import MEASURES, UNCHANGED, Measure
from drocox.auditing.page import page
from drocox.auditing.slices import find_slices
from drocox.heldout import Estimate, HeldOut


def crossed(events, others, empty=()):
    """Patients of the cells of a table, of whom some have an event; cells may be left out."""
    cells = np.argwhere(np.full(np.shape(events), True))
    sizes = np.add(events, others).ravel()
    sizes[list(empty)] = 0
    codes = np.repeat(cells, sizes, axis=0)
    dead = [np.arange(n) < d for n, d in zip(sizes, np.ravel(events), strict=True)]
    n = len(codes)
    time = np.random.default_rng(0).permutation(n) + 1.0
    X = pd.DataFrame({"x": np.arange(n)})
    groups = {
        f"a{k}": np.unique(column, return_inverse=True)[1] for k, column in enumerate(codes.T)
    }
    return drocox.SurvivalData("d", X, time, np.concatenate(dead), groups)


def largest(sums, counts, cell):
    """The largest count of a cell that agrees with the sums."""
    return -linprog(-np.eye(len(counts))[cell], A_eq=sums, b_eq=sums @ counts).fun


def worked_out(sums, counts):
    """All sets of cells, as rows of zeros and ones, whose count follows from sums that are shown.

    Counts are not negative. So a cell may follow to be empty, by a linear program; then a count
    follows if it is a linear combination of the sums and of such cells.
    """
    empty = [cell for cell in np.flatnonzero(counts == 0) if largest(sums, counts, cell) < 1e-7]
    known = np.vstack([sums, np.eye(len(counts))[empty]])
    _, length, axes = np.linalg.svd(known, full_matrices=False)
    axes = axes[length > 1e-8]
    unions = np.array(list(product((0.0, 1.0), repeat=len(counts))))[1:]
    return unions[np.abs(unions - unions @ axes.T @ axes).max(axis=1) < 1e-8]


def shown_sums(groupings, event, hidden):
    """The cells of each group that is not hidden, as zeros and ones, and both counts of cells."""
    codes = np.column_stack([grouping.codes for grouping in groupings if grouping.compared])
    cell = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    sums = []
    for grouping in groupings:
        for code, label in enumerate(grouping.labels):
            if (grouping.attribute, label) not in hidden:
                inside = np.bincount(cell[grouping.codes == code], minlength=cell.max() + 1)
                sums.append(inside > 0)
    return np.array(sums, float), (np.bincount(cell, event), np.bincount(cell, ~event))


def leaks(groupings, event, hidden, smallest):
    """Small counts that follow from those of the groups that are not hidden."""
    sums, kinds = shown_sums(groupings, event, hidden)
    found = []
    for counts in kinds:
        known = worked_out(sums, counts) @ counts
        found += list(known[known < smallest])
    return found


def needed(groupings, event, hidden, one, smallest):
    """Whether a cell would be known to be small if this group were not hidden."""
    sums, kinds = shown_sums(groupings, event, hidden - {one})
    for counts in kinds:
        few = np.flatnonzero(counts < smallest)
        if any(largest(sums, counts, cell) < smallest - 1e-6 for cell in few):
            return True
    return False


@pytest.mark.parametrize("shape", [(4,), (2, 2), (3, 2), (3, 3), (2, 2, 2), (3, 2, 2)])
def test_no_small_count_can_be_worked_out(shape):
    """By a linear program over all that is shown, also where some cells are empty."""
    hidden_in_all = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        events, others = rng.negative_binomial(1, 1 / rng.choice([5, 15, 30], 2)[:, None], (2, 12))
        size = np.prod(shape)
        counts = events[:size].reshape(shape), others[:size].reshape(shape)
        data = crossed(*counts, empty=rng.choice(size, seed % 3, replace=False))
        if min(data.event.sum(), (~data.event).sum()) < 6:
            continue  # everybody is small
        groupings, _ = groupings_of(data)
        hidden, _ = hidden_groups(groupings, data.event, 6)
        assert not leaks(groupings, data.event, hidden, 6)
        hidden_in_all += len(hidden) > 0
        if seed < 5:
            assert all(needed(groupings, data.event, hidden, one, 6) for one in hidden)
    assert hidden_in_all > 5


def test_a_group_within_a_group_is_not_revealed_by_their_difference():
    """Ward 2 is in hospital 1 but for three patients, all of whom died."""
    data = crossed([[40, 0], [3, 60]], [[40, 0], [0, 60]])
    table = drocox.audit(data, -data.time, smallest=10).table.set_index("group")
    shown = set(table.index[table["patients"].notna()])
    assert not {"a0 = 0", "a1 = 0"} <= shown and not {"a0 = 1", "a1 = 1"} <= shown


def test_everything_that_is_shown_is_of_groups_that_are_not_hidden():
    data = crossed([[30, 20], [25, 4]], [[30, 20], [25, 4]])
    hidden, _ = hidden_groups(groupings_of(data)[0], data.event, 10)
    found = drocox.audit(data, -data.time, smallest=10)
    rows = found.table.set_index(["attribute", "group"])
    values = rows.drop(columns=["patients", "events"])
    for name, row in rows.iterrows():
        assert row[["patients", "events"]].isna().all() == (name in hidden)
        assert values.loc[name].isna().all() == (name in hidden)
    named = json.loads(found.to_json())
    for row in (*named["differences"], *named["imparity"]):
        assert not {(row["attribute"], row["group"]), (row["attribute"], row["versus"])} & hidden


def risks_by_site(early, late, without, **options):
    """An audit of sites with some deaths up to time 30, others later, and patients without."""
    site = np.repeat(np.arange(len(early)), np.add(np.add(early, late), without))
    time = []
    for counts in zip(early, late, without, strict=True):
        time += [*np.linspace(1, 29, counts[0]), *np.linspace(31, 300, counts[1] + counts[2])]
    died = np.concatenate(
        [np.arange(a + b + c) < a + b for a, b, c in zip(early, late, without, strict=True)]
    )
    X = pd.DataFrame({"x": np.zeros(len(site))})
    data = drocox.SurvivalData("d", X, np.array(time), died, {"site": site})
    survival = np.random.default_rng(0).uniform(0.1, 0.9, len(site))
    found = drocox.audit(data, survival=survival, times=30, smallest=10, **options)
    return found, found.table.set_index("group")


def test_risks_do_not_tell_few_events_up_to_the_horizon():
    """Patients times observed risk is the number of these events, also of the sites left out."""
    found, table = risks_by_site([400, 300, 200, 2], [20, 20, 20, 40], [600, 600, 600, 780])
    assert table["patients"].notna().all() and table["events"].notna().all()
    of_horizon = ["risk_observed", "risk_predicted", "calibration", "auc", "brier"]
    shown = table[of_horizon].notna().all(axis=1)
    assert list(table.index[shown]) == ["everybody", "site = 0", "site = 1"]
    assert table.loc[~shown, of_horizon].isna().all(axis=None)
    assert table["c_index"].notna().all()
    measured = found.differences[found.differences["measure"].isin(of_horizon)]
    assert set(measured["group"]) | set(measured["versus"]) == {"site = 0", "site = 1"}
    assert set(found.compare(found).query("measure == 'brier'")["group"]) == set(table.index[shown])
    assert set(found.calibration_curves()["group"]) == {"site = 0", "site = 1"}
    assert "with fewer than 10 events up to time 30" in found.sentence
    late, table = risks_by_site([400, 300, 200, 200], [20, 20, 20, 300], [600, 600, 600, 5])
    assert table["patients"].isna().tolist() == [False, False, False, True, True]
    assert set(late.calibration_curves()["group"]) == {"site = 0", "site = 1"}
    open_ = risks_by_site([40, 30, 20, 10], [20, 20, 20, 40], [60, 60, 60, 78])[1]
    assert open_["risk_observed"].notna().all()
    nobody = risks_by_site([2, 2, 2, 2], [40, 40, 40, 40], [60, 60, 60, 60])[1]
    assert nobody["risk_observed"].isna().all() and nobody["patients"].notna().all()


def test_cells_that_several_sums_reveal_together_are_hidden():
    """Each sum lacks two counts, so no sum alone reveals one; the three together do."""
    counts = np.full((2, 2, 2), 40)
    counts[1, 0, 0], counts[0, 1, 0], counts[0, 0, 1] = 4, 5, 6
    cells = np.repeat(np.indices((2, 2, 2)).reshape(3, 8), counts.ravel(), axis=1)
    data, scores = simulated(n=cells.shape[1])
    groups = dict(zip("abc", cells, strict=True))
    found = drocox.audit(replace(data, groups=groups, group_labels={}), scores, smallest=8)
    note = next(note for note in found.notes if "not shown" in note)
    assert "nor are" in note and "from which the counts of these could be worked out" in note
    assert found.table["patients"].notna().sum() > 5  # and not everything


def sites(deaths, others):
    """Patients of sites, of whom some die."""
    n = sum(deaths) + sum(others)
    data, scores = simulated(n=n)
    event = np.concatenate([np.arange(a + b) < a for a, b in zip(deaths, others, strict=True)])
    site = np.repeat(np.arange(len(deaths)), np.add(deaths, others))
    return replace(data, event=event, groups={"site": site}, group_labels={}), scores


@pytest.mark.parametrize("few", ["events", "survivors"])
def test_the_smallest_counts_that_are_shown(few):
    """Ten events and ten patients without are enough; nine of either are not."""
    counts = [100, 10, 9, 9], [100, 30, 80, 80]
    data, scores = sites(*(counts if few == "events" else counts[::-1]))
    table = drocox.audit(data, scores, smallest=10).table.set_index("group")
    shown = table["patients"].notna()
    assert shown[["site = 0", "site = 1"]].all() and not shown[["site = 2", "site = 3"]].any()
    assert drocox.audit(data, scores).table["patients"].notna().all()


@pytest.mark.usefixtures("undrawn")
def test_a_second_group_is_hidden_so_that_a_small_one_cannot_be_worked_out():
    data, scores = sites([100, 50, 30, 6], [100, 50, 30, 6])
    found = drocox.audit(data, scores, smallest=10)
    table = found.table.set_index("group")
    assert list(table.index[table["patients"].isna()]) == ["site = 2", "site = 3"]
    compared = set(found.differences["group"]) | set(found.differences["versus"])
    assert compared == {"site = 0", "site = 1", "expected"}
    assert (
        "fewer than 10 events" in found.sentence and "nor are others, 1 in all," in found.sentence
    )
    assert "hidden" in str(found) and "hidden" in page({"": found})


def test_two_groups_without_an_event_are_not_revealed_by_their_sum():
    """If all events are those of other sites, these have none."""
    data, scores = sites([100, 50, 30, 0, 0], [100, 50, 30, 20, 20])
    table = drocox.audit(data, scores, smallest=10).table.set_index("group")
    assert list(table.index[table["patients"].isna()]) == ["site = 2", "site = 3", "site = 4"]


def test_two_models_are_compared_in_groups_that_both_audits_show():
    data, scores = sites([100, 50, 30, 6], [100, 50, 30, 6])
    shy, open_ = drocox.audit(data, scores, smallest=10), drocox.audit(data, scores / 2)
    for found in (shy.compare(open_), open_.compare(shy)):
        assert set(found["group"]) == {"everybody", "site = 0", "site = 1"}
    assert "site = 3" in set(open_.compare(open_)["group"])


@pytest.mark.slow
def test_groups_found_by_search_are_not_counted():
    """All who die at once: "32 patients, 32 events" says that nobody was censored."""
    data, scores = simulated(n=2000, minority=0.25, effects=(-0.8, -0.5, 0))
    used = {"features": data.feature_names}
    found = drocox.audit(data, scores, **used)
    assert found.slices["group"][0].startswith("member = 1")
    hidden = drocox.audit(data, scores, **used, smallest=10)
    assert len(hidden.slices) and hidden.slices[["patients", "events"]].isna().all(axis=None)
    told = json.loads(hidden.to_json())["slices"][0]
    assert told["patients"] is None and told["events"] is None
    everybody = replace(data, event=data.event | (data.groups["group"] == 1))
    dead = drocox.audit(everybody, scores, **used).slices
    assert dead["patients"][0] == dead["events"][0]
    shy = drocox.audit(everybody, scores, **used, smallest=10).slices
    assert dead["group"][0] not in set(shy["group"])
    few = found.slices["events"].min() + 1
    assert len(drocox.audit(data, scores, **used, smallest=int(few)).slices) < len(found.slices)


def test_calibration_curves_show_no_small_count():
    """A curve has five parts, each with patients, events and survivors enough; others have none."""
    data, scores = simulated(0, n=2100, effects=(0.8, 0.5, 0))
    sizes = {"large": 1300, "middle": 700, "small": 100}
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(3), list(sizes.values())))
    data = replace(data, groups={"site": codes}, group_labels={"site": tuple(sizes)})
    at = np.median(data.time)
    given = {"survival": np.exp(-at * np.exp(scores)), "times": at}
    assert set(drocox.audit(data, **given).calibration_curves()["group"]) == set(sizes)
    curves = drocox.audit(data, **given, smallest=12).calibration_curves()
    assert set(curves["group"]) == {"large", "middle"}
    assert (curves[["patients", "events"]] >= 12).all(axis=None)
    assert (curves["patients"] - curves["events"] >= 12).all()
    secret = replace(data, event=data.event & (codes != 2))  # "small" has no event
    hidden = drocox.audit(secret, **given, smallest=12)
    assert set(hidden.table.loc[hidden.table["patients"].isna(), "group"]) == {"middle", "small"}
    assert set(hidden.calibration_curves()["group"]) == {"large"}


@pytest.mark.usefixtures("undrawn")
def test_the_search_names_no_hidden_group():
    """Site 3 is ranked backwards, and hidden, because otherwise site 0 could be worked out."""
    data, scores = simulated(0, n=3000, effects=(0.8, 0.5, 0))
    rng = np.random.default_rng(0)
    site = rng.choice(4, len(data), p=[0.005, 0.4, 0.4, 0.195])
    X = data.X[["a"]].assign(site=site)
    data = replace(data, X=X, groups={"site": site}, group_labels={})
    scores = np.where(site == 3, -scores, scores)
    assert drocox.audit(data, scores, features=["a", "site"]).slices["group"][0] == "site > 2.5"
    shy = drocox.audit(data, scores, features=["a", "site"], smallest=30)
    hidden = shy.table.loc[shy.table["patients"].isna(), "group"]
    assert list(hidden) == ["site = 0", "site = 3"]
    assert not shy.slices["group"].str.fullmatch("site . 2.5").any()
    assert "site > 2.5" not in page({"": shy}) + shy.to_json() + str(shy)
    # all others together would tell as much of it
    alone = pd.DataFrame({"third": site == 3}).astype(float)
    good = np.where(site == 3, -scores, rng.normal(size=len(site)))
    patients = replace(shy._predictions.patients, scores=good, log_hazards=None)
    assert list(find_slices(patients, alone)["group"]) == ["third = 0"]
    assert find_slices(patients, alone, [site == 3]).empty


def test_notes_tell_no_small_number_of_patients():
    data, scores = simulated(n=600)
    survival = np.exp(-np.outer(np.exp(scores), [0.5, 1.0, data.time.max()]))
    survival[np.argsort(-data.time)[:3]] = 1, 0.5, 0  # three who leave late
    times = [0.5, 1.0, data.time.max()]
    risk = np.append(np.ones(2), np.full(598, 0.4) + scores[2:] / 100)
    for options in ({"survival": survival, "times": times}, {"survival": 1 - risk, "times": 1.0}):
        counted = drocox.audit(data, **options).sentence
        assert " of 600 " in counted and "ewer than" not in counted
        shy = drocox.audit(data, **options, smallest=10).sentence
        assert "ewer than 10 of 600 p" in shy
    enough = np.append(np.ones(10), risk[10:])
    assert (
        "10 of 600 predicted"
        in drocox.audit(data, survival=1 - enough, times=1.0, smallest=10).sentence
    )


def test_few_patients_without_an_event_are_as_small_as_few_events():
    patients, events = np.array([20, 20, 19, 20]), np.array([11, 10, 10, 9])
    assert small_counts(patients, events, 10).tolist() == [True, False, True, True]


def test_everybody_is_shown_however_few_they_are():
    data, scores = sites([5, 3], [40, 60])
    table = drocox.audit(data, scores, smallest=10).table
    assert table["patients"].notna().tolist() == [True, False, False]
    assert table["risk_observed"].isna().all()


def test_a_measure_that_is_added_tells_no_hidden_count(monkeypatch):
    """By the recipe of the module: a method and a row; what it needs is all that the row says."""

    def excess(self, members):
        observed, predicted = self.risk_observed(members), self.risk_predicted(members)
        return Estimate(observed.value - predicted.value, observed.without - predicted.without)

    monkeypatch.setattr(HeldOut, "excess", excess, raising=False)
    monkeypatch.setitem(MEASURES, "excess", Measure("Excess", "risks", UNCHANGED))
    own = {"own": lambda patients, members: patients.event[members].mean()}
    few = [400, 300, 200, 2], [20, 20, 20, 40], [600, 600, 600, 780]
    _, table = risks_by_site(*few, measures=own)
    for name in ("risk_observed", "excess", "own"):
        assert table[name].notna().tolist() == [True, True, True, False, False], name


def test_decisions_and_a_calibration_curve_tell_nobody_between_them():
    """A part of a curve less the flagged patients in it may be one or two patients."""
    data, scores = simulated(0, n=2100, effects=(0.8, 0.5, 0))
    given = {"risk": -np.expm1(-0.5 * np.exp(scores)), "horizon": 0.5, "threshold": 0.4}
    assert len(drocox.audit(data, **given).calibration_curves())
    assert drocox.audit(data, **given, smallest=10).calibration_curves().empty


def test_decisions_need_enough_events_before_the_horizon():
    """Two of the flagged in each cell have an event before it, as shares would tell."""
    data, _ = simulated(0, n=800, effects=(0.8, 0.5, 0))
    risk = np.where(np.arange(800) % 2, 0.6, 0.1)
    deaths = data.event & (risk > 0.5)
    late = np.where(deaths | ~data.event, 5 + data.time, data.time)
    for cell in range(4):
        late[np.flatnonzero(deaths & (data.group_matrix @ [2, 1] == cell))[:2]] = 0.1
    given = {"risk": risk, "horizon": 4.0, "threshold": 0.2}
    for smallest, shown in ((2, 9), (3, 1)):
        found = drocox.audit(replace(data, time=late), **given, smallest=smallest)
        assert found.table["ppv"].notna().sum() == shown
