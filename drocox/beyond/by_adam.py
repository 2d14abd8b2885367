r"""Models by Adam of the study on many data sets: objectives, starts, and the choice of a setting.

Every model is trained as published, by 500 full-batch steps, on three quarters of a half (the
*inside*); the last quarter, the *validation part*, chooses among the 18 candidates of an objective
(:data:`CANDIDATES`). A *start* is a draw of the initial weights that all objectives share; only
*plain-18* has more draws, six of them, as its candidates. Sample splitting deals the inside into
halves, stratified by event, the same for all candidates; *dealt* counts the draws of these halves.

**Choice.** By c-index: the largest. By imparity, for one attribute: the paper's rule, the smallest
imparity among candidates whose c-index is at least 95 % of the best one of *plain-3* at the same
start. Every half, start and draw of the halves has a choice of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from drocox import concordance, training
from drocox.beyond.datasets import Patients, codes_of, present
from drocox.beyond.models import ROUNDED, Key, Model, Scorer, slope_of
from drocox.dro import dual_constant
from drocox.heldout import assign_folds
from drocox.paper.protocol import ALPHAS, HIDDEN, LEARNING_RATES
from drocox.paper.run import PERTURBATION, in_chunks
from drocox.tuning import KEPT, choose, most_accurate

# Names in the store; linear models have a prefix
PLAIN_3 = "plain-3"
PLAIN_18 = "plain-18"
DRO = "DRO-COX"
SPLIT = "SPLIT"
PENALISED = "plain-18 with penalty"
BRIDGE = "bridge"
MAIN = (PLAIN_18, DRO, SPLIT)  # with several starts, as networks
PREFIX = {"linear": "linear ", "nonlinear": ""}

BY_C_INDEX = "c-index"
BY_IMPARITY = "imparity"

STARTS = (0, 1, 2)
DEALT = (0, 1, 2)  # halves of sample splitting, on the first start
DRAWS = (0, 1, 2, 3, 4, 5)  # of the initial weights, candidates of plain-18
PENALTIES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
OF_BRIDGE = 0.3  # its alpha


class Candidate(NamedTuple):
    """Settings of a model among those of which one is chosen."""

    learning_rate: float
    draw: int = 0  # of the initial weights
    alpha: float | None = None  # None: no adversary
    penalty: float | None = None  # None: as 0


CANDIDATES = {  # plain-3 first: its c-index decides which others are eligible
    PLAIN_3: [Candidate(rate) for rate in LEARNING_RATES],
    PLAIN_18: [Candidate(rate, draw=draw) for rate, draw in product(LEARNING_RATES, DRAWS)],
    DRO: [Candidate(rate, alpha=alpha) for rate, alpha in product(LEARNING_RATES, ALPHAS)],
    SPLIT: [Candidate(rate, alpha=alpha) for rate, alpha in product(LEARNING_RATES, ALPHAS)],
    PENALISED: [Candidate(rate, penalty=lam) for rate, lam in product(LEARNING_RATES, PENALTIES)],
    BRIDGE: [
        Candidate(rate, alpha=OF_BRIDGE, penalty=lam)
        for rate, lam in product(LEARNING_RATES, PENALTIES)
    ],
}


class Arm(NamedTuple):
    """Candidates that are trained together, and from which one is chosen."""

    kind: str  # of score function, a key of HIDDEN
    objective: str
    start: int = 0
    dealt: int = 0

    @property
    def name(self) -> str:
        """The name of its models in the store."""
        return PREFIX[self.kind] + self.objective


def arms(kind: str, starts: Sequence[int] = STARTS) -> Iterator[Arm]:
    """The arms with one kind of score function; linear models have the first start only."""
    for start, objective in product(starts, CANDIDATES):
        several = kind == "nonlinear" and objective in (PLAIN_3, *MAIN)
        if start == 0 or several:
            for dealt in DEALT if objective == SPLIT and start == 0 else (0,):
                yield Arm(kind, objective, start, dealt)


@dataclass(frozen=True)
class Quarters:
    """A half of the patients, divided for training and choosing."""

    inside: Patients
    out: Patients  # the validation part
    cuts: dict[str, float]  # of the attributes, from the whole half
    seed: int  # 2 * split + half

    @classmethod
    def of(cls, patients: Patients, cuts: dict[str, float], split: int, half: int) -> "Quarters":
        """The quarters of a half."""
        last = assign_folds(patients.data.event, 4, split) == 0
        inside, out = (patients.subset(np.flatnonzero(rows)) for rows in (~last, last))
        return cls(inside, out, cuts, 2 * split + half)

    @cached_property
    def X(self) -> np.ndarray:
        """Scaled features of the inside."""
        return self.inside.scaled(self.inside)

    def weights(self, kind: str, start: int, draw: int) -> np.ndarray:
        """Initial weights, the same for all objectives."""
        seed = 1000 * start + 100 * draw + self.seed
        return training.initial_parameters(self.X.shape[1], HIDDEN[kind], seed)

    def first(self, dealt: int) -> np.ndarray:
        """D1 of sample splitting, with half of the events."""
        return assign_folds(self.inside.data.event, 2, 10000 + 1000 * dealt + self.seed) == 0

    def objective(self, arm: Arm, settings: Sequence[Candidate]) -> training.Objective:
        """What the models of an arm minimise, without the penalty."""
        alphas = [one.alpha for one in settings if one.alpha is not None]
        if not alphas:
            return training.cox_objective(self.inside.risk)
        c = np.array([dual_constant(alpha, rule="paper") for alpha in alphas])
        if arm.objective == SPLIT:
            return training.split_objective(self.inside.risk, self.first(arm.dealt), c)
        return training.dro_objective(self.inside.risk, c)

    def decay(self, settings: Sequence[Candidate]) -> np.ndarray:
        """Penalty of each model, in the unit of its objective: a mean over events or patients."""
        unit = 1.0 if settings[0].alpha is None else self.inside.data.event.mean()
        return np.array([unit * (one.penalty or 0.0) for one in settings])


def train(
    quarters: Quarters, arm: Arm, settings: Sequence[Candidate], factor: float = 1.0
) -> training.ScoreStack:
    """Models of an arm by 500 steps of Adam; ``factor`` scales the initial weights."""
    hidden = HIDDEN[arm.kind]

    def fitted(some: Sequence[Candidate]) -> training.ScoreStack:
        return training.fit_stack(
            quarters.X,
            quarters.objective(arm, some),
            factor * np.array([quarters.weights(arm.kind, arm.start, s.draw) for s in some]),
            [one.learning_rate for one in some],
            hidden=hidden,
            centre=hidden is not None,
            penalty=quarters.decay(some),
        )

    return in_chunks(settings, fitted)


# Choice ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """Candidates on the validation part; NaN where scores are not finite or groups lack pairs."""

    c_index: np.ndarray
    imparity: dict[str, np.ndarray]  # by attribute

    def choices(self, plain: float) -> dict[tuple[str, str], int]:
        """Positions chosen by c-index, and by imparity for each attribute."""
        chosen = {(BY_C_INDEX, ""): most_accurate(self.c_index)}
        for attribute, imparity in self.imparity.items():
            chosen[BY_IMPARITY, attribute] = choose(self.c_index, imparity, plain)
        return chosen

    def eligible(self, attribute: str, plain: float) -> int:
        """How many candidates the paper's rule permits."""
        return int(((self.c_index >= KEPT * plain) & ~np.isnan(self.imparity[attribute])).sum())


def judge(scores: np.ndarray, out: Patients, cuts: dict[str, float]) -> Judged:
    """C-index and imparity of candidates with rounded ``scores`` (candidates, patients)."""
    codes = codes_of(out, cuts)
    c_index = np.full(len(scores), np.nan)
    imparity = {attribute: np.full(len(scores), np.nan) for attribute in present(cuts)}
    for i in np.flatnonzero(np.isfinite(scores).all(axis=1)):
        counts = concordance.count(scores[i], out.risk)
        c_index[i] = counts.index()
        for attribute, found in imparity.items():
            found[i] = imparity_of(counts, codes[attribute])
    return Judged(c_index, imparity)


def imparity_of(counts: concordance.Counts, codes: np.ndarray) -> float:
    """The distance between two groups' concordance fractions; NaN where one has no pairs."""
    fractions = []
    for code in (1, 0):
        members = codes == code
        pairs = counts.pairs[members].sum()
        fractions.append(counts.points[members].sum() / pairs if pairs > 0 else np.nan)
    return float(abs(fractions[0] - fractions[1]))


# One half ----------------------------------------------------------------------------------------


def chosen(quarters: Quarters, kind: str, starts: Sequence[int] = STARTS) -> dict[Key, Model]:
    """The chosen models with one kind of score function.

    Each is trained once more from initial weights that differ by rounding.
    """
    plain = np.nan
    models: dict[Key, Model] = {}
    for arm in arms(kind, starts):
        settings = CANDIDATES[arm.objective]
        stack = train(quarters, arm, settings)
        scores = np.round(stack.scores(quarters.inside.scaled(quarters.out)), ROUNDED)
        judged = judge(scores, quarters.out, quarters.cuts)
        if arm.objective == PLAIN_3:
            known = judged.c_index[~np.isnan(judged.c_index)]
            plain = known.max() if len(known) else np.nan  # NaN: no other is eligible
        if np.isnan(judged.c_index).all():  # no model
            continue
        models |= _chosen_of(arm, quarters, stack, scores, judged, plain)
    return models


def _chosen_of(
    arm: Arm,
    quarters: Quarters,
    stack: training.ScoreStack,
    scores: np.ndarray,
    judged: Judged,
    plain: float,
) -> dict[Key, Model]:
    """The chosen models of one arm."""
    choices = judged.choices(plain)
    places = sorted(set(choices.values()))
    settings = [CANDIDATES[arm.objective][at] for at in places]
    again = train(quarters, arm, settings, 1 + PERTURBATION)
    scorers = [(_one_of(stack, at), _one_of(again, i)) for i, at in enumerate(places)]
    models = {}
    for (choice, attribute), at in choices.items():
        i = places.index(at)
        facts = facts_of(settings[i], quarters.inside)
        facts["validation_c"] = 100 * judged.c_index[at]
        if choice == BY_IMPARITY:
            facts["eligible"] = judged.eligible(attribute, plain)
            facts["none_eligible"] = float(facts["eligible"] == 0)
        slope = slope_of(quarters.out.held_out(scores[at]))
        key = Key(arm.name, attribute, choice, arm.start, arm.dealt)
        models[key] = Model(quarters.inside, scorers[i][0], slope, facts, scorers[i][1])
    return models


def facts_of(setting: Candidate, inside: Patients) -> dict[str, float]:
    """The settings of a model that its objective tunes; with α also what it protects."""
    facts: dict[str, float] = {"learning_rate": setting.learning_rate}
    if setting.penalty is not None:
        facts["penalty"] = setting.penalty
    if setting.alpha is None:
        return facts | {"draw_of_weights": setting.draw}
    share = dual_constant(setting.alpha, rule="paper") ** -2
    return facts | {"alpha": setting.alpha, "protected": share / inside.data.event.mean()}


def _one_of(stack: training.ScoreStack, at: int) -> Scorer:
    alone = training.ScoreStack(stack.theta[[at]], stack.hidden, stack.offset[[at]])
    return lambda X, patients: alone.scores(X)[0]
