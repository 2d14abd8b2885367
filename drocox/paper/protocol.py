"""The paper's Section 4 as data: methods, grids, procedures and the stacks of models to train.

Nothing is executed here. Two protocols run the same methods on the same grids: ``as_published``
follows the procedure that reproduces the published numbers, ``corrected`` removes its leaks and
misalignments:

==================  ==============================================  ===========================
step                as_published                                    corrected
==================  ==============================================  ===========================
missing values      medians of each intersectional group, all rows  medians of the training part
row order           group by group, then unstable sort by time      as in the file
test set            one for all repeats (seed 7)                    one for each repeat (seed r)
validation, D1/D2   seed r                                          seed r
scaling of SPLIT    by D1                                           by the whole training part
initial weights     seed 1                                          seed r
score of an MLP     with its free constant                          centred on the training mean
ties                by position                                     as in the paper's (3)
==================  ==============================================  ===========================

A third set of runs, ``forensic``, is nonlinear SPLIT as published with one change: the logarithm of
the reference sum in the paper's (8) passes no gradient. It exists to explain published rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from drocox import _checks

# fmt: off
ATTRIBUTES = {
    "flc": ("age", "gender"), "support": ("age", "gender", "race"), "seer": ("age", "race"),
}
# fmt: on
MODELS = ("linear", "nonlinear")
HIDDEN = {"linear": None, "nonlinear": 24}
REPEATS = tuple(range(1, 11))
LEARNING_RATES = (0.01, 0.001, 0.0001)
LAMBDAS = (1.0, 0.7, 0.4)
ALPHAS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
N2_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
MAIN_SPLIT = {"n2_share": 0.5, "sides": 2}  # SPLIT in all tables but T16 and T17

# first key slowest: how the released code sorts the rows of each data set
SORTED_BY = ATTRIBUTES | {"flc": ("gender", "age")}

# the columns that identify a stored run
KEYS = ["protocol", "dataset", "model", "method", "attribute", "repeat"]
KEYS += ["learning_rate", "lam", "alpha", "n2_share", "sides"]


@dataclass(frozen=True)
class Procedure:
    """The steps in which protocols differ; by default as published."""

    sorted_by_group: bool = True  # impute and sort by demographic group; unstable sort inside parts
    test_seed: int | None = 7  # None: the number of the repeat
    weight_seed: int | None = 1  # of the initial weights; None: the number of the repeat
    split_scaled_by_first: bool = True  # whether SPLIT scales features by D1 instead of by all
    centred: bool = False  # whether the score of an MLP is centred on the training mean
    ties: str = "order"  # in the Cox loss and the log partial likelihood
    reference_gradient: bool = True  # whether the log-sum of the paper's (8) passes a gradient


PROCEDURES = {
    "as_published": Procedure(),
    "corrected": Procedure(
        sorted_by_group=False, test_seed=None, weight_seed=None,
        split_scaled_by_first=False, centred=True, ties="breslow",
    ),
    "forensic": Procedure(reference_gradient=False),
}  # fmt: skip
PROTOCOLS = ("as_published", "corrected")  # the two that tables are made of


@dataclass(frozen=True)
class Method:
    """A row of the paper's tables: score function, loss, and the penalty added to it."""

    model: str
    loss: str  # "cox" | "dro" | "split"
    penalty: str | None = None  # one of PENALTIES

    @property
    def by_attribute(self) -> bool:
        """Whether the sensitive attribute enters training."""
        return self.penalty in ("keya_g", "rp_g")

    @property
    def robust(self) -> bool:
        """Whether this is a DRO variant."""
        return self.loss != "cox"


PENALTIES = {  # suffix of a method's name, and the penalty
    "": None, "_I(Keya)": "keya_i", "_I(R&P)": "rp_i",
    "_G(Keya)": "keya_g", "_G(R&P)": "rp_g", "_cap(Keya)": "keya_cap",
}  # fmt: skip
PLAIN = {"linear": "Cox", "nonlinear": "DeepSurv"}
DRO = {"linear": "DRO-COX", "nonlinear": "Deep DRO-COX"}
SPLIT = {"linear": "DRO-COX (SPLIT)", "nonlinear": "Deep DRO-COX (SPLIT)"}
METHODS: dict[str, Method] = {}
for _model in MODELS:
    METHODS |= {PLAIN[_model] + end: Method(_model, "cox", PENALTIES[end]) for end in PENALTIES}
    METHODS[DRO[_model]] = Method(_model, "dro")
    METHODS[SPLIT[_model]] = Method(_model, "split")
METHODS_OF = dict.fromkeys(PROCEDURES, tuple(METHODS)) | {"forensic": (SPLIT["nonlinear"],)}


class Setting(NamedTuple):
    """Hyperparameters of one model; None where a method has none."""

    learning_rate: float
    lam: float | None
    alpha: float | None


@dataclass(frozen=True)
class Stack:
    """Models trained together: one method on one repeat, over its whole grid."""

    protocol: str
    dataset: str
    method: str
    repeat: int
    attribute: str = ""  # of a group penalty
    n2_share: float | None = None  # of SPLIT
    sides: int | None = None  # of SPLIT

    @property
    def model(self) -> str:
        """Kind of score function, linear or nonlinear."""
        return METHODS[self.method].model

    def grid(self) -> list[Setting]:
        """Hyperparameters of the models, in the order in which they are stored."""
        lambdas = LAMBDAS if METHODS[self.method].penalty else (None,)
        alphas = ALPHAS if METHODS[self.method].robust else (None,)
        return [Setting(*values) for values in product(LEARNING_RATES, lambdas, alphas)]

    def keys(self) -> list[dict]:
        """The values of :data:`KEYS` that identify each model, in the order of the grid."""
        of_stack = vars(self) | {"model": self.model}
        return [{**of_stack, **setting._asdict()} for setting in self.grid()]

    @property
    def name(self) -> str:
        """A file name: lower-case letters, digits, dots, underscores and hyphens."""
        parts = [self.dataset, self.method, self.attribute, f"r{self.repeat}"]
        if METHODS[self.method].loss == "split":
            parts += [f"n{self.n2_share}", f"s{self.sides}"]
        raw = "_".join(part for part in parts if part).lower()
        return "".join(c if c.isalnum() or c in "._-" else "-" for c in raw)


def _variants(dataset: str, method: Method) -> list[dict]:
    """The attributes, or the shares and sides, for which a method is trained on a data set."""
    if method.by_attribute:
        return [{"attribute": name} for name in ATTRIBUTES[dataset]]
    if method.loss != "split":
        return [{}]
    out = [MAIN_SPLIT]
    if dataset == "flc":
        out += [{"n2_share": share, "sides": 2} for share in N2_SHARES if share != 0.5]  # T16
        out += [{"n2_share": 0.5, "sides": 1}]  # T17
    return out


def stacks(
    protocol: str,
    datasets: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    repeats: Iterable[int] | None = None,
) -> Iterator[Stack]:
    """All stacks of a protocol: the main tables, T16 (other n2) and T17 (one side).

    Parameters
    ----------
    protocol : {"as_published", "corrected", "forensic"}
        The last has nonlinear SPLIT only.
    datasets, methods, repeats : sequences, optional
        Restrict the stacks to some data sets, methods and repeats; by default all that the protocol
        has. A method that it lacks is refused.

    Returns
    -------
    iterator of Stack
    """
    _checks.one_of(protocol, "protocol", PROCEDURES)
    datasets = ATTRIBUTES if datasets is None else datasets
    methods = METHODS_OF[protocol] if methods is None else methods
    repeats = REPEATS if repeats is None else repeats
    for dataset, method in product(datasets, methods):
        _checks.one_of(dataset, "data set", ATTRIBUTES)
        _checks.one_of(method, f"method of {protocol}", METHODS_OF[protocol])
        for variant, repeat in product(_variants(dataset, METHODS[method]), repeats):
            yield Stack(protocol, dataset, method, repeat, **variant)
