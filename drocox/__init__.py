"""drocox: distributionally robust Cox models, and the experiments of Hu & Chen (2022)."""

from drocox import accuracy, fairness, figures, regularizers, tables
from drocox.cox import breslow_survival, cox_losses, risk_sets, split_cox_losses
from drocox.data import SurvivalData, load_dataset
from drocox.dro import dro_risk, dual_constant, optimal_eta, worst_case_weights
from drocox.estimator import DROCox
from drocox.evaluation import evaluate
from drocox.results import load_runs

__version__ = "0.1.0"

__all__ = ["DROCox", "SurvivalData", "accuracy", "breslow_survival", "cox_losses", "dro_risk",
           "dual_constant", "evaluate", "fairness", "figures", "load_dataset",
           "load_runs", "optimal_eta", "regularizers", "risk_sets", "split_cox_losses",
           "tables", "worst_case_weights"]
