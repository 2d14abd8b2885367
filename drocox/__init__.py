"""drocox: distributionally robust Cox models, and a reproduction of Hu & Chen (2022).

The library is what stands in this folder: losses, the worst case over subpopulations, metrics and
an estimator for one's own data. Everything that exists because of the paper is in ``drocox.paper``;
its four public names (``load_dataset``, ``load_runs``, ``tables``, ``figures``) are here too. Above
both are the studies of ``drocox.beyond``; ``exercises``, ``bookstyle``, ``sliders`` and
``drocox.chapters`` serve the book.

A name is imported when it is first used, so ``import drocox`` costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# public names by the module where they live; a module's own name stands for the module
_NAMES = {
    "accuracy": "accuracy",
    "cox": "breslow_survival cox_losses risk_sets split_cox_losses",
    "data": "SurvivalData",
    "dro": "dro_risk dual_constant optimal_eta worst_case_weights",
    "estimator": "DROCox",
    "evaluation": "evaluate",
    "fairness": "fairness",
    "paper.datasets": "load_dataset",
    "paper.figures": "figures",
    "paper.store": "load_runs",
    "paper.tables": "tables",
    "regularizers": "regularizers",
    "report": "audit",
    "tuning": "choose_alpha",
}
_HOMES = {name: f"drocox.{home}" for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'drocox' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    globals()[name] = getattr(home, name, home)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
