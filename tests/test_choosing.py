"""The paper's rule for choosing, against the rule spelt out as a loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drocox.tuning import KEPT, choose, most_accurate

few = st.sampled_from([0.6, 0.65, KEPT * 0.7, 0.7, 0.72])
unfairness = st.sampled_from([0.0, 1.0, 2.0, np.inf])


def literal(c_index, imparity, plain, ties):
    """One candidate after the other; a later one has to be better."""
    best = None
    for i in range(len(c_index)):
        if not c_index[i] >= KEPT * plain:
            continue
        if best is None or (imparity[i], ties[i]) < (imparity[best], ties[best]):
            best = i
    return c_index.index(max(c_index)) if best is None else best


@given(st.lists(st.tuples(few, unfairness, st.integers(0, 2)), min_size=1, max_size=6))
def test_the_rule_equals_the_loop(candidates):
    c_index, imparity, ties = map(list, zip(*candidates, strict=True))
    negative = [-c for c in c_index]
    assert choose(c_index, imparity, 0.7) == literal(c_index, imparity, 0.7, negative)
    assert choose(c_index, imparity, 0.7, ties=ties) == literal(c_index, imparity, 0.7, ties)


def test_the_bar_itself_is_enough():
    assert choose([0.7, KEPT * 0.7], [2.0, 1.0], 0.7) == 1
    assert choose([0.7, np.nextafter(KEPT * 0.7, 0)], [2.0, 1.0], 0.7) == 0


def test_missing_numbers_never_win():
    assert choose([np.nan, 0.69, 0.70], [1.0, 3.0, np.nan], 0.7) == 1
    assert most_accurate([np.nan, 0.6, 0.6]) == 1
    with pytest.raises(ValueError, match="c_index holds no number"):
        most_accurate([np.nan])
