r"""The paper's rule for choosing one of several models, on validation data.

Of the candidates that keep 95 % of the plain model's c-index the fairest wins. Every choice in this
package is made here: of a configuration in the paper's tables, of :math:`\alpha` on one's own data,
of a rival's setting.
"""

import numpy as np
from numpy.typing import ArrayLike

KEPT = 0.95  # share of the plain model's c-index that an eligible candidate keeps


def most_accurate(c_index: ArrayLike) -> int:
    """Choose the candidate with the largest c-index.

    Parameters
    ----------
    c_index : array of shape (k,)
        Of each candidate; NaN never wins.

    Returns
    -------
    int
        Position of the choice, of equal ones the first.
    """
    c_index = np.asarray(c_index, dtype=float)
    if np.isnan(c_index).all():
        raise ValueError("c_index holds no number; pass the c-index of at least one candidate")
    return int(np.nanargmax(c_index))


def choose(
    c_index: ArrayLike, imparity: ArrayLike, plain: float, *, ties: ArrayLike | None = None
) -> int:
    """Choose one of several candidates by the paper's rule: of those that keep 95 % of the plain
    model's c-index, the one with the smallest imparity.

    Parameters
    ----------
    c_index, imparity : arrays of shape (k,)
        Of each candidate; one whose imparity or c-index is NaN is not eligible.
    plain : float
        The plain model's c-index.
    ties : array of shape (k,), optional
        Of equal imparities the smallest of these wins; by default the larger c-index does.

    Returns
    -------
    int
        Position of the choice; of candidates equal in all this the first. If no candidate is
        eligible, the largest c-index wins.
    """
    best = most_accurate(c_index)
    c_index = np.asarray(c_index, dtype=float)
    imparity = np.asarray(imparity, dtype=float)
    eligible = (c_index >= KEPT * plain) & ~np.isnan(imparity)
    if not eligible.any():
        return best
    ties = -c_index if ties is None else np.asarray(ties)
    order = np.lexsort((ties, imparity, ~eligible))  # by the last key, then by those before it
    return int(order[0])
