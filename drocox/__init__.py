"""drocox: distributionally robust Cox models, and a reproduction of Hu & Chen (2022).

The library is what stands in this folder: losses, the worst case over subpopulations, metrics and
an estimator for one's own data. Everything that exists because of the paper is in ``drocox.paper``;
its four public names (``load_dataset``, ``load_runs``, ``tables``, ``figures``) are here too.

A name is imported when it is first used, so ``import drocox`` costs nothing.
"""

from importlib import import_module

__version__ = "0.2.0"

# where each public name lives; a name that is its own module stands for the module
_HOMES = {
    "DROCox": "drocox.estimator",
    "SurvivalData": "drocox.data",
    "accuracy": "drocox.accuracy",
    "audit": "drocox.report",
    "breslow_survival": "drocox.cox",
    "choose_alpha": "drocox.tuning",
    "cox_losses": "drocox.cox",
    "dro_risk": "drocox.dro",
    "dual_constant": "drocox.dro",
    "evaluate": "drocox.evaluation",
    "fairness": "drocox.fairness",
    "figures": "drocox.paper.figures",
    "load_dataset": "drocox.paper.datasets",
    "load_runs": "drocox.paper.store",
    "optimal_eta": "drocox.dro",
    "regularizers": "drocox.regularizers",
    "risk_sets": "drocox.cox",
    "split_cox_losses": "drocox.cox",
    "tables": "drocox.paper.tables",
    "worst_case_weights": "drocox.dro",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'drocox' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    value = home if _HOMES[name].rpartition(".")[2] == name else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
