"""Drawing of the chapter on sample splitting."""

import numpy as np

from drocox.chapters import split as chapter


def test_a_square_for_each_entry():
    cox = np.tril(np.ones((24, 24)))
    left, right = chapter.draw_jacobians(cox, np.eye(24)).axes
    assert len(left.collections[0].get_offsets()) == 24 * 25 / 2
    assert np.array_equal(right.collections[0].get_offsets(), np.column_stack([range(24)] * 2))
    assert left.lines[0].get_xdata()[0] == 11.5  # between the halves
