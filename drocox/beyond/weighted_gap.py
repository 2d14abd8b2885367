r"""The gap between two groups' concordance, corrected for censoring.

The fraction :math:`CF_g` of Algorithm B.1 counts the pairs that censoring leaves. If more of the
late pairs are left in one group than in the other, the fractions differ even if every patient is
ranked equally well. Weights by the inverse probability that a pair is left correct this, as in
Uno's c: with :math:`G_g` the survival curve of the censoring times in group g, an event i before
the horizon and a patient j observed longer have

.. math:: w_{ij} = \frac{1}{G_{g(i)}(Y_i) \, G_{g(j)}(Y_i)} , \qquad
          CF_g = \frac{\sum_{i \in g} \sum_j w_{ij} p_{ij} + \sum_{j \in g} \sum_i w_{ij} p_{ij}}
                      {\sum_{i \in g} \sum_j w_{ij} + \sum_{j \in g} \sum_i w_{ij}} ,

where :math:`p_{ij}` is 1 if :math:`f_i > f_j` and one half if the scores are tied. Censoring has to
be independent of the event within each group; between groups it may differ.
"""

import numpy as np

from drocox.curves import kaplan_meier
from drocox.heldout import Estimate, HeldOut


def weighted_gap(held_out: HeldOut, codes: np.ndarray) -> Estimate:
    """The second group's weighted concordance with everybody minus the first's.

    The jackknife keeps the weights fixed when a patient is left out.
    """
    members = codes == np.array([[0], [1]])
    # points and pairs of each group's fraction, and what each patient would take away
    total = np.zeros((2, 2))
    lost = np.zeros((2, 2, len(codes)))
    for fold in np.unique(held_out.fold):
        rows = np.flatnonzero(held_out.fold == fold)
        weights = _pair_weights(held_out, codes, rows)
        higher = np.subtract.outer(held_out.scores[rows], held_out.scores[rows])
        points = (np.sign(higher) + 1) / 2 * weights
        for k, of_pairs in enumerate((points, weights)):
            both_ways = of_pairs + of_pairs.T
            for group in (0, 1):
                inside = members[group, rows]
                with_members = inside @ both_ways
                total[group, k] += both_ways.sum(axis=1) @ inside
                lost[group, k, rows] = inside * both_ways.sum(axis=1) + with_members
    left = total[:, :, None] - lost
    fractions = total[:, 0] / total[:, 1]
    without = left[:, 0] / left[:, 1]
    return Estimate(float(fractions[1] - fractions[0]), without[1] - without[0])


def _pair_weights(held_out: HeldOut, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Weight of each pair (event, patient observed longer) of a fold, 0 where it does not count."""
    time = held_out.time[rows]
    event = held_out.event[rows]
    inverse = np.empty((2, len(rows)))  # one over G of either group, at each patient's time
    for group in (0, 1):
        own = codes == group
        share = kaplan_meier(held_out.time[own], held_out.event[own], censoring=True)
        inverse[group] = 1 / np.maximum(share(time), 1e-12)
    later = np.less.outer(time, time) | (np.equal.outer(time, time) & ~event)
    counted = later & (event & (time < held_out.until))[:, None]
    of_event = inverse[codes[rows], np.arange(len(rows))]
    return np.where(counted, of_event[:, None] * inverse[codes[rows]].T, 0.0)
