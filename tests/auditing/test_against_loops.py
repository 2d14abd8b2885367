"""The audit's table and differences, against loops over pairs and explicit leave-one-out."""

import numpy as np
import pytest
from leave_one_out import (
    EACH_KIND,
    LITERAL,
    calibration,
    concordance,
    drawn,
    left_out,
    standard_error,
)
from scipy import special, stats

import drocox


def logit_slope(share):
    return 1 / (share * (1 - share))


SCALES = {  # there, back, and the slope of the way there
    "c_index": (special.logit, special.expit, logit_slope),
    "concordance": (special.logit, special.expit, logit_slope),
    "mean_risk": (np.log, np.exp, np.reciprocal),
}


@pytest.mark.parametrize("seed", EACH_KIND)
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
            assert np.isnan(row["calibration"])  # unknown without a baseline
        else:
            assert row["calibration"] == pytest.approx(calibration(patients, members), rel=1e-10)
        for name, (forward, back, slope) in SCALES.items():
            value = LITERAL[name](patients, members)
            assert row[name] == pytest.approx(value, rel=1e-10)
            if members.all():  # long loops, and nothing that the groups do not have
                continue
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


@pytest.mark.parametrize("seed", EACH_KIND)
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
            assert (row.says == "differ") <= (row.low > 0 or row.high < 0)
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
