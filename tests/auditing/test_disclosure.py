"""Small cells: what the audit hides, and that it cannot be worked out from what it shows."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cohort import simulated

import drocox
from drocox.auditing.page import page


def members(data):
    """The members of each row of an audit's table, by its attribute and group."""
    inside = {("", "everybody"): np.full(len(data), True)}
    for name, codes in data.groups.items():
        for k, label in enumerate(data.group_labels[name]):
            inside[name, label] = codes == k
    if len(data.groups) > 1:
        matrix = np.column_stack(list(data.groups.values()))
        for cell in np.unique(matrix, axis=0):
            labels = [data.group_labels[a][k] for a, k in zip(data.groups, cell, strict=True)]
            inside[" × ".join(data.groups), ", ".join(labels)] = (matrix == cell).all(axis=1)
    return inside


@pytest.mark.parametrize("shape", [(4,), (2, 2), (3, 2), (3, 3), (2, 2, 2), (3, 2, 2)])
@pytest.mark.parametrize("seed", range(8))
def test_no_hidden_count_is_a_combination_of_shown_ones(seed, shape):
    """By rank: the row of a hidden group is no linear combination of rows that are shown."""
    rng = np.random.default_rng(seed)
    data, scores = simulated(seed, n=int(rng.integers(60, 200)))
    groups = {}
    for k, size in enumerate(shape):
        groups[f"a{k}"] = rng.choice(size, len(data), p=rng.dirichlet(np.full(size, 2.0)))
        groups[f"a{k}"][:size] = np.arange(size)  # nobody is missing
    data = replace(data, groups=groups, group_labels={})
    table = drocox.audit(data, scores, smallest=6).table
    inside = members(data)
    assert list(zip(table["attribute"], table["group"], strict=True)) == list(inside)
    rows = np.array(list(inside.values()), float)
    shown = table["patients"].notna().to_numpy()
    assert (shown == table["events"].notna()).all()
    rank = np.linalg.matrix_rank(rows[shown])
    for k, who in enumerate(inside.values()):
        events = data.event[who].sum()
        if not shown[k]:
            assert np.linalg.matrix_rank(np.vstack([rows[shown], rows[k]])) > rank
        elif k:
            assert min(events, who.sum() - events) >= 6
        if shown[k]:  # what is missing from its parts is a difference of shown counts
            for attribute in table["attribute"].unique()[1:]:
                inside_it = (rows @ ~who == 0) & (table["attribute"] == attribute).to_numpy()
                missing = rows[inside_it & ~shown].any(axis=0)
                if missing.any() and (inside_it & shown).any():
                    some = data.event[missing].sum()
                    if rows[inside_it].sum() == who.sum():  # all of its parts
                        assert min(some, (~data.event[missing]).sum()) >= 6


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


def test_a_second_group_is_hidden_so_that_a_small_one_cannot_be_worked_out():
    data, scores = sites([100, 50, 30, 6], [100, 50, 30, 6])
    found = drocox.audit(data, scores, smallest=10)
    table = found.table.set_index("group")
    assert list(table.index[table["patients"].isna()]) == ["site = 2", "site = 3"]
    compared = set(found.differences["group"]) | set(found.differences["versus"])
    assert compared - {"promised", "this model"} == {"site = 0", "site = 1"}
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


def test_groups_found_by_search_are_not_counted():
    """All who die at once: "32 patients, 32 events" says that nobody was censored."""
    data, scores = simulated(n=2000, minority=0.25, effects=(-0.8, -0.5, 0))
    found = drocox.audit(data, scores)
    assert found.slices["group"][0].startswith("member = 1")
    hidden = drocox.audit(data, scores, smallest=10)
    assert len(hidden.slices) and hidden.slices[["patients", "events"]].isna().all(axis=None)
    told = json.loads(hidden.to_json())["slices"][0]
    assert told["patients"] is None and told["events"] is None
    everybody = replace(data, event=data.event | (data.groups["group"] == 1))
    dead = drocox.audit(everybody, scores).slices
    assert dead["patients"][0] == dead["events"][0]
    shy = drocox.audit(everybody, scores, smallest=10).slices
    assert dead["group"][0] not in set(shy["group"])
    few = found.slices["events"].min() + 1
    assert len(drocox.audit(data, scores, smallest=int(few)).slices) < len(found.slices)


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
