"""Exercises on the worst case, its dual and who gets the weight; they need no torch."""

import numpy as np

from drocox.exercises._core import asks_function, asks_numbers
from drocox.exercises.survival import SCORES, losses_of_six


def _over(losses, eta):
    return np.maximum(losses - eta, 0)


def _share(weights):
    return weights / weights.sum()


def _eta(losses, c, passes=99):
    """The active-set iteration of the chapter on the dual, or what it has after some passes."""
    active = losses
    for _ in range(passes):
        eta = active.mean() - active.std() / np.sqrt(c**2 * len(active) / len(losses) - 1)
        active = active[active > eta]
    return eta


# Losses of the six patients under hazards 2**x, the two largest of them, and some other losses.
LOSSES = losses_of_six(SCORES)
TWO = np.sort(LOSSES)[:-3:-1]
OTHERS = np.array([0.1, 2.0, 0.7, 1.5, 0.0, 0.0, 3.1, 0.2])

asks_numbers(
    "worst-case-cvar",
    TWO @ [2 / 3, 1 / 3],
    {
        "this is the worst patient alone: one and a half patients count": TWO[0],
        "both count whole here, which is a third of the six": TWO.mean(),
        "the sum is right; divide by the patients that were counted": TWO @ [1 / 2, 1 / 4],
        "divide by the patients in the tail, not by all": TWO @ [1 / 6, 1 / 12],
    },
)

_w = 6 * np.array([1 / 2, 0, 1 / 4, 1 / 4, 0, 0])
asks_numbers(
    "worst-case-divergence",
    np.mean((_w - 1) ** 2),
    {
        "this is the mean of the squared density; its distance from 1 is asked": np.mean(_w**2),
        "D is about densities, which are 6 times these weights": np.sum((_w / 6 - 1 / 6) ** 2),
        "the patients without weight are 1 away from P as well": np.sum((_w[_w > 0] - 1) ** 2) / 6,
        "an average under P is a sum over six, divided by six": np.sum((_w - 1) ** 2),
        "this is half of it; the definition has no factor ½": np.mean((_w - 1) ** 2) / 2,
        "this is the Kullback–Leibler divergence; D has a square where that has a log": np.sum(
            _w[_w > 0] * np.log(_w[_w > 0])
        )
        / 6,
    },
)


@asks_function("worst-case-share", [(0.1,), (0.3,), (0.5,)])
def protected_share(alpha):
    """One over the square of the paper's constant."""
    return 1 / (2 * (1 / alpha - 1) ** 2 + 1)


@protected_share.mistake("the radius of Proposition 2; the paper's C has more")
def _share_by_the_definition(alpha):
    return 1 / (1 + (1 / alpha - 1) ** 2)


@protected_share.mistake("alpha itself is what the sharp radius protects; the paper's is larger")
def _share_by_the_sharp_radius(alpha):
    return alpha


@protected_share.mistake("1/C: the share goes with the square of the constant")
def _share_without_square(alpha):
    return np.sqrt(protected_share(alpha))


@protected_share.mistake("this is one over the radius: solve for the share again")
def _inverse_radius(alpha):
    return (1 / alpha - 1) ** -2 / 2


_c = np.sqrt(1 / 0.3)  # sharp
asks_numbers(
    "dual-by-hand",
    _eta(LOSSES, _c),
    {
        "η after one pass: some patients are below it, drop them and go on": _eta(LOSSES, _c, 1),
        "η after two passes: compare it with the smallest loss left": _eta(LOSSES, _c, 2),
        "this is the risk, above the mean of the active losses; η is below": TWO @ [2 / 3, 1 / 3],
        "the variance has divisor k here, not k - 1": TWO.mean() - 3 * TWO.std(ddof=1),
        "s has the share k/n in it: s = c²k/n - 1": TWO.mean() - TWO.std() / np.sqrt(_c**2 - 1),
    },
)


@asks_function("dual-weights", [(LOSSES, 0.4), (OTHERS, 0.9), (OTHERS, -0.5)])
def dual_weights(losses, eta):
    """Weights proportional to the excess over the threshold."""
    return _share(_over(losses, eta))


dual_weights.mistake("they do not sum to one: divide by their sum")(_over)


@dual_weights.mistake("patients below η get negative weight: cut at 0 first")
def _weights_not_cut(losses, eta):
    return _share(losses - eta)


@dual_weights.mistake("all above η weigh the same; those farther up weigh more")
def _weights_all_alike(losses, eta):
    return _share(losses > eta)


@dual_weights.mistake("proportional to the loss, not to how far it is above η")
def _weights_of_whole_losses(losses, eta):
    return _share(losses * (losses > eta))


@dual_weights.mistake("a softmax: the weights of this ball grow in a straight line above η")
def _softmax(losses, eta):
    return _share(np.exp(losses))


@dual_weights.mistake(
    "a softmax of those above η; the weights of this ball grow in a straight line"
)
def _softmax_above(losses, eta):
    return _share(np.exp(losses) * (losses > eta))


@dual_weights.mistake(
    "a softmax of the excess gives weight to those below η, too; divide by the sum"
)
def _softmax_of_excess(losses, eta):
    return _share(np.exp(_over(losses, eta)))


@dual_weights.mistake("no square: the squares are in the risk, the weights are its slope")
def _squared_excess(losses, eta):
    return _share(_over(losses, eta) ** 2)


@asks_function("dual-eta", [(LOSSES, 1.6), (LOSSES, 1.2), (OTHERS, 2.0), (OTHERS, 1.3)], near=0.02)
def best_eta(losses, c):
    """The threshold of the dual."""
    return _eta(losses, c)


@best_eta.mistake("this is η with everybody active: look for the k that fits")
def _eta_of_everybody(losses, c):
    return _eta(losses, c, passes=1)


@best_eta.mistake("this is the risk, not the threshold")
def _risk_for_eta(losses, c):
    return losses @ _share(_over(losses, _eta(losses, c)))


@best_eta.mistake("the square of c belongs in c²k/n - 1")
def _eta_without_square(losses, c):
    return _eta(losses, np.sqrt(c))


@best_eta.mistake("the largest loss is η only if c² is n or more")
def _largest_loss(losses, c):
    return losses.max()


@best_eta.mistake("η may be negative: do not cut it off at 0")
def _eta_not_below_zero(losses, c):
    return max(_eta(losses, c), 0.0)


_ten = np.array([2.0] * 4 + [0.0] * 6)
_censored = _share(_over(_ten, _eta(_ten, np.sqrt(1 / 0.5))))[4:].sum()
asks_numbers(
    "who-censored-weight",
    _censored,
    {
        "loss 0 does not mean weight 0: find the sign of η": 0.0,
        "this is the weight of one of them; all six are asked": _censored / 6,
        "equal weights are α = 1; here the adversary moves some weight away": 0.6,
        "this is what the four deaths have": 1 - _censored,
    },
)


@asks_function("who-effective-size", [(_share(OTHERS),), (_share(LOSSES),), (np.full(5, 0.2),)])
def effective_size(q):
    """The effective number of patients: as many of equal weight."""
    return 1 / np.sum(q**2)


effective_size.mistake("this counts patients with any weight, however little")(np.count_nonzero)


@effective_size.mistake("this is its inverse: the more even the weights, the smaller")
def _sum_of_squares(q):
    return q @ q


@effective_size.mistake("the largest weight alone does not tell how the others share")
def _size_of_the_largest(q):
    return 1 / q.max()


@effective_size.mistake("the weights add up to one already: n does not come in")
def _size_times_n(q):
    return len(q) / np.sum(q**2)


@effective_size.mistake("no root: it is one over the sum of squares itself")
def _root_of_the_size(q):
    return 1 / np.sqrt(np.sum(q**2))


@effective_size.mistake("this is n over the effective size, the c² of these weights")
def _constant_of_weights(q):
    return len(q) * (q @ q)


@asks_function("who-needed-alpha", [(5000, 500), (5000, 31), (100, 100)])
def needed_alpha(n, m):
    """The paper's label at which m of n patients can have all weight."""
    return 1 / (1 + np.sqrt((n / m - 1) / 2))


@needed_alpha.mistake("right for the sharp constant, c² = 1/alpha; the paper's is asked")
def _alpha_of_the_sharp_constant(n, m):
    return m / n


@needed_alpha.mistake("the factor 2 of the constant is missing")
def _alpha_without_the_two(n, m):
    return 1 / (1 + np.sqrt(n / m - 1))


@needed_alpha.mistake("the square root is missing")
def _alpha_without_root(n, m):
    return 1 / (1 + (n / m - 1) / 2)


@needed_alpha.mistake("this is c², not alpha")
def _squared_constant(n, m):
    return n / m
