"""drocox: distributionally robust Cox models, and a reproduction of Hu & Chen (2022).

The modules of this folder are the library: losses, the worst case over subpopulations, metrics and
an estimator for your own data. The reproduction is in ``drocox.paper``; its four public names
(``load_dataset``, ``load_runs``, ``tables``, ``figures``) are available here, too. The studies of
part V are in ``drocox.beyond``; ``exercises``, ``bookstyle`` and ``explorables`` serve the book.

Names are imported when they are first used, so ``import drocox`` itself is fast. Losses with
gradients, networks and the reproduction need torch, which the extra ``drocox[torch]`` installs.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # editors and type checkers do not run __getattr__
    from drocox import accuracy as accuracy
    from drocox import fairness as fairness
    from drocox import regularizers as regularizers
    from drocox.auditing.audit import audit as audit
    from drocox.cox import breslow_survival as breslow_survival
    from drocox.cox import cox_losses as cox_losses
    from drocox.cox import split_cox_losses as split_cox_losses
    from drocox.data import SurvivalData as SurvivalData
    from drocox.dro import dro_risk as dro_risk
    from drocox.dro import optimal_eta as optimal_eta
    from drocox.dro import worst_case_weights as worst_case_weights
    from drocox.dual import dual_constant as dual_constant
    from drocox.estimator import DROCox as DROCox
    from drocox.evaluation import evaluate as evaluate
    from drocox.paper import figures as figures
    from drocox.paper import tables as tables
    from drocox.paper.datasets import load_dataset as load_dataset
    from drocox.paper.store import load_runs as load_runs
    from drocox.risksets import risk_sets as risk_sets
    from drocox.tuning import choose_alpha as choose_alpha
    from drocox.tuning import cross_fit as cross_fit

__version__ = "0.6.0"

# public names, by the module where they live
_NAMES = {
    "SurvivalData": "drocox.data",
    "DROCox": "drocox.estimator",
    "audit": "drocox.auditing.audit",
    "breslow_survival": "drocox.cox",
    "choose_alpha": "drocox.tuning",
    "cox_losses": "drocox.cox",
    "cross_fit": "drocox.tuning",
    "dro_risk": "drocox.dro",
    "dual_constant": "drocox.dual",
    "evaluate": "drocox.evaluation",
    "load_dataset": "drocox.paper.datasets",
    "load_runs": "drocox.paper.store",
    "optimal_eta": "drocox.dro",
    "risk_sets": "drocox.risksets",
    "split_cox_losses": "drocox.cox",
    "worst_case_weights": "drocox.dro",
}
# modules among the public names, by their location; other modules are found by their own names
_PUBLIC_MODULES = {
    "accuracy": "drocox.accuracy",
    "fairness": "drocox.fairness",
    "figures": "drocox.paper.figures",
    "regularizers": "drocox.regularizers",
    "tables": "drocox.paper.tables",
}
__all__ = sorted([*_NAMES, *_PUBLIC_MODULES])


def __getattr__(name: str) -> Any:
    """Import a public name, or a module such as ``drocox.solver``, when it is first asked for."""
    try:
        if name in _NAMES:
            thing = getattr(import_module(_NAMES[name]), name)
        elif name in _PUBLIC_MODULES:
            thing = import_module(_PUBLIC_MODULES[name])
        elif not name.startswith("_") and find_spec(f"drocox.{name}"):
            thing = import_module(f"drocox.{name}")
        else:
            raise AttributeError(f"module 'drocox' has no attribute {name!r}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from drocox import _checks

        raise _checks.missing(f"drocox.{name} needs torch", "torch") from None
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
