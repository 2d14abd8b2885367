"""How near each rule of selection comes to the published numbers, row by row and cell by cell."""

from collections.abc import Iterator

import pandas as pd

from drocox.paper import selection as choice
from drocox.paper.exhibits import (
    EXHIBIT_OF,
    EXHIBITS,
    SPLIT_EXHIBITS,
    Folder,
    published,
    runs_of,
    split_rows,
    summary,
)
from drocox.paper.protocol import METHODS, SPLIT

FIDELITY = ["exhibit", "where", "model", "method", "rule", "recovered"]  # of a row


def _published_rows(runs: pd.DataFrame) -> Iterator[tuple]:
    """The 62 published rows, as far as there are runs: as above, with a data set for "n2"."""
    for exhibit in EXHIBIT_OF:
        if exhibit in SPLIT_EXHIBITS:
            yield from split_rows(runs, exhibit)
            continue
        dataset, attribute, _ = EXHIBITS[exhibit]
        candidates = choice.candidates(runs, dataset, attribute)
        for method, rows, plain in choice.by_method(candidates):
            yield (exhibit, dataset, METHODS[method].model, method), rows, plain


def fidelity_cells(protocol: str = "as_published", *, out: Folder = None) -> pd.DataFrame:
    """Every rule of the closed list against every one of the 558 published cells.

    Parameters
    ----------
    protocol, out
        As in :func:`drocox.paper.tables.main_table`.

    Returns
    -------
    DataFrame
        exhibit, where, model, method, rule, recovered (whether the rule is the row's recovered
        one), metric, mean, paper_mean, paper_std, distance (in published SDs).
    """
    chosen = []
    labels = []  # of each chosen row
    for row, rows, plain in _published_rows(runs_of(protocol, out, forensic=True)):
        _, where, model, method = row
        name = SPLIT[model] if where == "n2" else method
        recovered = choice.rule_of(where, name, "recovered")
        for rule in choice.SELECTION_RULES:
            of_rule = choice.select(rows, plain, rule)  # none where a rule does not apply
            chosen.append(of_rule)
            labels += [(*row, rule, rule == recovered)] * len(of_rule)
    if not chosen:
        raise ValueError("the store holds no runs of a published row; train some first")
    exhibits = {name: exhibit for exhibit, name in EXHIBIT_OF.items()}
    printed = published()
    printed["exhibit"] = printed["table"].map(exhibits)
    runs = pd.concat(chosen, ignore_index=True).drop(columns=["model", "method"])
    runs = pd.concat([runs, pd.DataFrame(labels, columns=FIDELITY)], axis=1)
    table = summary(runs, FIDELITY, protocol, printed)
    gap = (table["mean"] - table["paper_mean"]) / table["paper_std"]
    return table.drop(columns="std").assign(distance=gap.abs())


def fidelity_table(protocol: str = "as_published", *, out: Folder = None) -> pd.DataFrame:
    """Distance of every rule's row to the published one, for the 62 published rows.

    Parameters
    ----------
    protocol, out
        As in :func:`drocox.paper.tables.main_table`.

    Returns
    -------
    DataFrame
        exhibit, where, model, method, rule, recovered, distance (mean over the nine metrics, in
        published SDs), worst (the largest of the nine), within (how many lie within 1 SD).
    """
    cells = fidelity_cells(protocol, out=out)
    grouped = cells.assign(within=cells["distance"] <= 1).groupby(FIDELITY, sort=False)
    return grouped.agg(
        distance=("distance", "mean"), worst=("distance", "max"), within=("within", "sum")
    ).reset_index()
