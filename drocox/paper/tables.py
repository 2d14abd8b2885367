"""The paper's tables from the stored runs, beside the published numbers.

Tables are long frames (model, method, metric, mean, std, paper_mean, paper_std): means and
standard deviations (``ddof=0``, as published) over the ten repeats of the selected models.
:func:`show` lays one out as the paper does (:mod:`drocox.paper.layout`), :func:`fidelity_table`
says how near each rule comes to the published rows (:mod:`drocox.paper.fidelity`), and what tables
there are stands in :mod:`drocox.paper.exhibits`: their names are here, too.
"""

import pandas as pd

from drocox import _checks
from drocox.paper.datasets import dataset_summary
from drocox.paper.exhibits import (
    EXHIBIT_OF,
    EXHIBITS,
    METRICS,
    READINGS,
    SPLIT_EXHIBITS,
    VIEWS,
    WRITTEN,
    Folder,
    alpha_runs,
    chosen_runs,
    exhibit_of,
    exhibit_runs,
    metrics_of,
    published,
    published_figure,
    published_table,
    summary,
)
from drocox.paper.fidelity import fidelity_cells, fidelity_table
from drocox.paper.layout import Shown, best_by, show, signed, wins
from drocox.paper.protocol import ATTRIBUTES, MODELS, SPLIT

__all__ = [
    "EXHIBITS",
    "EXHIBIT_OF",
    "Folder",
    "METRICS",
    "READINGS",
    "SPLIT_EXHIBITS",
    "Shown",
    "VIEWS",
    "alpha_runs",
    "alpha_table",
    "best_by",
    "chosen_runs",
    "dataset_table",
    "exhibit_of",
    "exhibit_runs",
    "exhibit_table",
    "fidelity_cells",
    "fidelity_table",
    "main_table",
    "metrics_of",
    "one_side_table",
    "published",
    "published_figure",
    "published_table",
    "show",
    "signed",
    "split_share_table",
    "wins",
]

ROW = ["model", "method"]  # what a row of a table is
T1 = ("samples", "features", "censoring rate", "sensitive attributes")


def main_table(
    dataset: str,
    attribute: str,
    *,
    tune_by: str = "ci_percent",
    protocol: str = "as_published",
    selection: str = "stated",
    out: Folder = None,
) -> pd.DataFrame:
    """Test scores of the 16 methods on one data set: T2 to T15.

    Parameters
    ----------
    dataset : {"flc", "support", "seer"}
    attribute : str
        Sensitive attribute of F_G and CI.
    tune_by : {"ci_percent", "f_a"}
        Validation metric that the selection minimises.
    protocol : {"as_published", "corrected"}
        Under ``as_published`` the metric ``ibs`` is the misaligned one.
    selection : {"stated", "one_setting", "recovered"}
        The paper's rule on validation data, applied repeat by repeat or once for all of them, or
        (forensic) the rule that gives the published row back: see :mod:`drocox.paper.selection`.
        The last takes nonlinear SPLIT from the store ``forensic``, and leaves it out without that.
    out : path, optional
        Folder of the store, by default the book's. Of an unfinished store the table has what is
        there.

    Returns
    -------
    DataFrame
        model, method, metric, mean, std, paper_mean, paper_std (NaN where unpublished).
    """
    dataset = _checks.one_of(str(dataset).lower(), "data set", ATTRIBUTES)
    _checks.one_of(attribute, "attribute", ATTRIBUTES[dataset])
    rows = chosen_runs(dataset, attribute, tune_by, protocol, selection, out)
    printed = published_table(exhibit_of(dataset, attribute, tune_by))
    return summary(rows, ROW, protocol, printed)


def _split_table(
    model: str, exhibit: str, protocol: str, selection: str, out: Folder
) -> pd.DataFrame:
    """The rows of T16 or T17 that belong to one model."""
    _checks.one_of(model, "model", MODELS)
    rows = exhibit_runs(exhibit, protocol=protocol, selection=selection, out=out)
    rows = rows[rows["model"] == model]
    if rows.empty:
        raise ValueError(f"the store holds no runs of {SPLIT[model]} on flc; train some first")
    return summary(rows, ROW, protocol, published_table(exhibit))


def split_share_table(
    model: str, *, protocol: str = "as_published", selection: str = "stated", out: Folder = None
) -> pd.DataFrame:
    """T16 (Table E.12): SPLIT on FLC (age) with n2 = 0.1n to 0.5n.

    Parameters
    ----------
    model : {"linear", "nonlinear"}
    protocol, selection, out
        As in :func:`main_table`.

    Returns
    -------
    DataFrame
        The columns of :func:`main_table`; ``method`` holds the share.
    """
    return _split_table(model, "t16", protocol, selection, out)


def one_side_table(
    model: str, *, protocol: str = "as_published", selection: str = "stated", out: Folder = None
) -> pd.DataFrame:
    """T17 (Table E.13): SPLIT on FLC (age), one side against both.

    Parameters
    ----------
    model : {"linear", "nonlinear"}
    protocol, selection, out
        As in :func:`main_table`.

    Returns
    -------
    DataFrame
        The columns of :func:`main_table`.
    """
    return _split_table(model, "t17", protocol, selection, out)


def exhibit_table(
    exhibit: str, *, protocol: str = "as_published", selection: str = "stated", out: Folder = None
) -> pd.DataFrame:
    """Any of T2 to T17 by its id; T16 and T17 with both models.

    Parameters
    ----------
    exhibit : str
        ``"t2"`` to ``"t17"``.
    protocol, selection, out
        As in :func:`main_table`.

    Returns
    -------
    DataFrame
        The columns of :func:`main_table`.
    """
    rows = exhibit_runs(exhibit, protocol=protocol, selection=selection, out=out)
    return summary(rows, ROW, protocol, published_table(exhibit))


def alpha_table(
    dataset: str, *, protocol: str = "as_published", out: Folder = None
) -> pd.DataFrame:
    """The numbers behind F1: linear DRO-COX at learning rate 0.01, by alpha (attribute age).

    Parameters
    ----------
    dataset : {"flc", "support", "seer"}
    protocol, out
        As in :func:`main_table`.

    Returns
    -------
    DataFrame
        alpha, metric, mean, std, paper_mean, paper_std (NaN where unpublished).
    """
    dataset = _checks.one_of(str(dataset).lower(), "data set", ATTRIBUTES)
    rows = alpha_runs(dataset, protocol=protocol, out=out)
    printed = published_figure().query("dataset == @dataset")
    return summary(rows, ["alpha"], protocol, printed)


def dataset_table() -> pd.DataFrame:
    """T1 (Table 1): samples, features, censoring rate and attributes, with the printed values.

    Returns
    -------
    DataFrame
        dataset, quantity, ours, paper.
    """
    facts = dataset_summary()
    rows = []
    for name, printed in WRITTEN["table_1"].items():
        f = facts.loc[name]
        ours = (f"{f['rows']:,}", str(f["features"]), f"{f['censoring_rate']:.3f}", f["attributes"])
        rows += [(name, *row) for row in zip(T1, ours, printed, strict=True)]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "ours", "paper"])
