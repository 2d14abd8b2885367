"""The plan's power: what simultaneous intervals over 16 data sets can find, by simulation."""

import re

import numpy as np
import pytest

from drocox.beyond.datasets import PLANS
from drocox.heldout.intervals import simultaneous

pytestmark = pytest.mark.slow  # of a study beyond the paper; `make check` is for the package

PLAN = (PLANS / "plan.md").read_text(encoding="utf-8")
STUDIES = 500  # the plan's numbers are from 2000
DATA_SETS = 16
SAME_OUTCOME = 0.5  # correlation of two objectives' effects over data sets: not known
SAME_OBJECTIVE = 0.17  # of worst group and closing: that of the second study


@pytest.fixture(scope="module")
def drawn():
    """Mean errors in units of the spread, and half widths of the intervals, (studies, 4)."""
    objectives, outcomes = ([[1, rho], [rho, 1]] for rho in (SAME_OUTCOME, SAME_OBJECTIVE))
    root = np.linalg.cholesky(np.kron(objectives, outcomes))
    rng = np.random.default_rng(0)
    means, halves = np.empty((2, STUDIES, 4))
    for k in range(STUDIES):
        errors = rng.standard_normal((DATA_SETS, 4)) @ root.T
        covariance = np.cov(errors.T) / DATA_SETS
        critical, _ = simultaneous(covariance, DATA_SETS - 1)
        means[k], halves[k] = errors.mean(axis=0), critical * np.sqrt(np.diag(covariance))
    return means, halves


def test_all_four_intervals_cover_together(drawn):
    means, halves = drawn
    assert (np.abs(means) <= halves).all(axis=1).mean() == pytest.approx(0.95, abs=0.03)


def test_power_is_what_the_plan_says(drawn):
    means, halves = drawn
    rows = re.findall(r"^\| (?:worst|closing) \|(.+)\|$", PLAN, re.MULTILINE)
    assert len(rows) == 7
    for row in rows:
        spread, effect, margin, differs, small = (float(cell) for cell in row.split("|"))
        at = means + effect / spread
        found = (np.abs(at) > halves).mean()
        inside = (np.abs(at) + halves < margin / spread).mean()
        assert [differs, small] == pytest.approx([found, inside], abs=0.03), row
