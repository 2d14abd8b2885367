"""The paper's tables from the stored runs, beside the published numbers.

Tables are long frames (model, method, metric, mean, std, paper_mean, paper_std): means and
standard deviations (``ddof=0``, as published) over the ten repeats of the selected models.
:func:`show` lays one out as the paper does.
"""

import html
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper import store
from drocox.paper.datasets import dataset_summary
from drocox.paper.protocol import ATTRIBUTES, DRO, METHODS, MODELS, N2_SHARES, PROTOCOLS, SPLIT
from drocox.paper.selection import (
    RULES,
    TUNE_BY,
    add_f_a,
    candidates,
    plain_of,
    rule_of,
    select,
    selected,
)

# name in the header, whether higher is better
METRICS = {
    "c_index": ("c-index", True),
    "auc": ("AUC", True),
    "lpl": ("LPL", True),
    "ibs": ("IBS", False),
    "f_i": ("F<sub>I</sub>", False),
    "f_g": ("F<sub>G</sub>", False),
    "f_cap": ("F<sub>∩</sub>", False),
    "f_a": ("F<sub>A</sub>", False),
    "ci_percent": ("CI (%)", False),
}
EXHIBITS = {
    "t2": ("flc", "age", "ci_percent"),
    "t3": ("support", "gender", "ci_percent"),
    "t4": ("seer", "race", "ci_percent"),
    "t5": ("flc", "gender", "ci_percent"),
    "t6": ("support", "age", "ci_percent"),
    "t7": ("support", "race", "ci_percent"),
    "t8": ("seer", "age", "ci_percent"),
    "t9": ("flc", "age", "f_a"),
    "t10": ("flc", "gender", "f_a"),
    "t11": ("support", "age", "f_a"),
    "t12": ("support", "race", "f_a"),
    "t13": ("support", "gender", "f_a"),
    "t14": ("seer", "age", "f_a"),
    "t15": ("seer", "race", "f_a"),
}  # data set, attribute, what the selection minimises
EXHIBIT_OF = {
    "t2": "general_performance_CI",
    "t3": "general_performance_SUPPORT_gender_CI",
    "t4": "general_performance_SEER_race_CI",
    "t16": "performance_of_diff_split",
    "t17": "performance_of_one_side_split",
}  # names in results.csv
SPLIT_EXHIBITS = ("t16", "t17")
VIEWS = {
    "as published": {"protocol": "as_published", "selection": "recovered"},
    "stated rule": {"protocol": "as_published", "selection": "stated"},
    "corrected": {"protocol": "corrected", "selection": "stated"},
}
ROW = ["model", "method", "metric"]  # what a cell of a table is
FIDELITY = ["exhibit", "where", "model", "method", "rule", "recovered"]
PRINTED_T1 = {
    "flc": ("7,874", "6", "0.725", "age, gender"),
    "support": ("9,105", "14", "0.319", "age, race, gender"),
    "seer": ("4,024", "13", "0.847", "age, race"),
}


@cache
def _csv(name: str) -> pd.DataFrame:
    """A file of published numbers; callers copy what they hand out."""
    return pd.read_csv(store.DEFAULT / "published" / name)


def published() -> pd.DataFrame:
    """The published cells of the tables.

    Returns
    -------
    DataFrame
        558 rows: table, model, method, metric, mean, std, bold, green.
    """
    return _csv("results.csv").copy()


def published_figure() -> pd.DataFrame:
    """The numbers behind the published figure.

    Returns
    -------
    DataFrame
        90 rows: dataset, alpha, metric, mean, std.
    """
    frame = _csv("figure1.csv")
    return frame.assign(dataset=frame["dataset"].str.lower())


def _runs(protocol: str, out: Path | str | None) -> pd.DataFrame:
    _checks.one_of(protocol, "protocol", PROTOCOLS)
    return store.load_runs(protocol, out=out)


def _summary(rows: pd.DataFrame, by: list[str], protocol: str) -> pd.DataFrame:
    """Mean and deviation of each metric over the repeats, long."""
    columns = {f"test_{metric}": metric for metric in METRICS}
    if protocol == "as_published":
        del columns["test_ibs"]
        columns["test_ibs_misaligned"] = "ibs"
    values = rows[[*by, *columns]].rename(columns=columns)[[*by, *METRICS]]
    grouped = values.groupby(by, sort=False)
    mean = grouped.mean().rename_axis(columns="metric").stack()
    std = grouped.std(ddof=0).rename_axis(columns="metric").stack()
    return pd.DataFrame({"mean": mean, "std": std}).reset_index()


def _beside_paper(table: pd.DataFrame, printed: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """A table with the columns paper_mean and paper_std, NaN where nothing is published."""
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    return table.merge(printed[[*keys, "paper_mean", "paper_std"]], how="left", on=keys)


def chosen_runs(
    dataset: str,
    attribute: str,
    tune_by: str = "ci_percent",
    protocol: str = "as_published",
    selection: str = "stated",
    out: Path | str | None = None,
) -> pd.DataFrame:
    """The runs behind a main table: the chosen one of every method and repeat.

    Parameters
    ----------
    dataset, attribute, tune_by, protocol, selection, out
        As in :func:`main_table`.

    Returns
    -------
    DataFrame
        160 stored rows (fewer if the store has fewer), with F_G, CI and F_A of the attribute under
        plain names.
    """
    runs = _runs(protocol, out)
    return selected(runs, dataset, attribute, tune_by=tune_by, selection=selection)


def main_table(
    dataset: str,
    attribute: str,
    *,
    tune_by: str = "ci_percent",
    protocol: str = "as_published",
    selection: str = "stated",
    out: Path | str | None = None,
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
    _checks.one_of(tune_by, "tune_by", TUNE_BY)
    rows = chosen_runs(dataset, attribute, tune_by, protocol, selection, out)
    printed = published_table(exhibit_of(dataset, attribute, tune_by))
    return _beside_paper(_summary(rows, ["model", "method"], protocol), printed, ROW)


def exhibit_of(dataset: str, attribute: str, tune_by: str) -> str:
    """The id of a main table.

    Parameters
    ----------
    dataset, attribute, tune_by : str
        As in :func:`main_table`.

    Returns
    -------
    str
        ``"t2"`` to ``"t15"``.
    """
    ids = {what: exhibit for exhibit, what in EXHIBITS.items()}
    return ids[dataset, attribute, tune_by]


def published_table(exhibit: str) -> pd.DataFrame:
    """The published cells of one exhibit.

    Parameters
    ----------
    exhibit : str
        ``"t2"`` to ``"t17"``.

    Returns
    -------
    DataFrame
        Rows of :func:`published`; none if the exhibit's numbers are not known.
    """
    cells = _csv("results.csv")
    return cells[cells["table"] == EXHIBIT_OF.get(exhibit)].copy()


def _split_table(
    model: str, exhibit: str, protocol: str, selection: str, out: Path | str | None
) -> pd.DataFrame:
    """T16 or T17: SPLIT on FLC (age), the choice made apart for each share or side."""
    _checks.one_of(model, "model", MODELS)
    rule = rule_of("n2", SPLIT[model], selection)
    chosen = [
        select(row.rows, row.plain, rule).assign(method=row.method)
        for row in _published_rows(_runs(protocol, out), exhibit)
        if row.model == model
    ]
    if not chosen:
        raise ValueError(f"the store holds no runs of {SPLIT[model]} on flc; train some first")
    table = _summary(pd.concat(chosen), ["model", "method"], protocol)
    return _beside_paper(table, published_table(exhibit), ROW)


def split_share_table(
    model: str,
    *,
    protocol: str = "as_published",
    selection: str = "stated",
    out: Path | str | None = None,
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
    model: str,
    *,
    protocol: str = "as_published",
    selection: str = "stated",
    out: Path | str | None = None,
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


def alpha_table(
    dataset: str, *, protocol: str = "as_published", out: Path | str | None = None
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
    rows = candidates(_runs(protocol, out), dataset, "age")
    rows = rows[(rows["method"] == DRO["linear"]) & (rows["learning_rate"] == 0.01)]
    if rows.empty:
        raise ValueError(
            f"the store holds no runs of {DRO['linear']} on {dataset}; train some first"
        )
    printed = published_figure()
    printed = printed[printed["dataset"] == dataset]
    return _beside_paper(_summary(rows, ["alpha"], protocol), printed, ["alpha", "metric"])


def dataset_table() -> pd.DataFrame:
    """T1 (Table 1): samples, features, censoring rate and attributes, with the printed values.

    Returns
    -------
    DataFrame
        dataset, quantity, ours, paper.
    """
    facts = dataset_summary()
    names = ("samples", "features", "censoring rate", "sensitive attributes")
    rows = []
    for name, printed in PRINTED_T1.items():
        f = facts.loc[name]
        ours = (f"{f['rows']:,}", str(f["features"]), f"{f['censoring_rate']:.3f}", f["attributes"])
        rows += [
            {"dataset": name, "quantity": q, "ours": o, "paper": p}
            for q, o, p in zip(names, ours, printed, strict=True)
        ]
    return pd.DataFrame(rows)


class _Row(NamedTuple):
    """A published row: where it stands, and the runs it was chosen from."""

    exhibit: str
    where: str  # data set, or "n2" for T16 and T17: what the recovered rules go by
    model: str
    method: str
    rows: pd.DataFrame
    plain: pd.DataFrame  # runs of Cox (DeepSurv), which the stated rule compares with


def one_side(model: str) -> str:
    """The name of one-sided SPLIT in T17.

    Parameters
    ----------
    model : {"linear", "nonlinear"}

    Returns
    -------
    str
    """
    return SPLIT[model].replace(")", ", ONE SIDE)")


def _split_rows(runs: pd.DataFrame, exhibit: str) -> Iterator[_Row]:
    """The rows of T16 (a share each) or T17 (one side, two sides), of both models."""
    flc = add_f_a(runs[runs["dataset"] == "flc"], "age")
    of = dict(list(flc.groupby("method", sort=False)))
    for model in MODELS:
        if SPLIT[model] not in of:
            continue
        split = of[SPLIT[model]]
        plain = plain_of(of, model, "flc")
        if exhibit == "t16":
            both = split[split["sides"] == 2]
            parts = {f"{share:g}n": both[both["n2_share"] == share] for share in N2_SHARES}
        else:
            half = split[split["n2_share"] == 0.5]
            names = {1: one_side(model), 2: SPLIT[model]}
            parts = {name: half[half["sides"] == sides] for sides, name in names.items()}
        for name, rows in parts.items():
            yield _Row(exhibit, "n2", model, name, rows, plain)


def _published_rows(runs: pd.DataFrame, *exhibits: str) -> Iterator[_Row]:
    """The 62 published rows, or those of the named exhibits, as far as there are runs."""
    for exhibit in exhibits or EXHIBIT_OF:
        if exhibit in SPLIT_EXHIBITS:
            found = _split_rows(runs, exhibit)
        else:
            dataset, attribute, _ = EXHIBITS[exhibit]
            of = dict(list(candidates(runs, dataset, attribute).groupby("method", sort=False)))
            found = (
                _Row(exhibit, dataset, m.model, name, of[name], plain_of(of, m.model, dataset))
                for name, m in METHODS.items()
                if name in of
            )
        yield from (row for row in found if len(row.rows))


def fidelity_cells(
    protocol: str = "as_published", *, out: Path | str | None = None
) -> pd.DataFrame:
    """Every rule of the closed list against every one of the 558 published cells.

    Parameters
    ----------
    protocol, out
        As in :func:`main_table`.

    Returns
    -------
    DataFrame
        exhibit, where, model, method, rule, recovered (whether the rule is the row's recovered
        one), metric, mean, paper_mean, paper_std, distance (in published SDs).
    """
    runs = _runs(protocol, out)
    chosen = []
    for row in _published_rows(runs):
        name = SPLIT[row.model] if row.where == "n2" else row.method
        recovered = rule_of(row.where, name, "recovered")
        for rule in RULES:
            found = select(row.rows, row.plain, rule)  # none where a rule does not apply
            label = dict(zip(FIDELITY, (*row[:4], rule, rule == recovered), strict=True))
            chosen.append(found.assign(**label))
    if not chosen:
        raise ValueError("the store holds no runs of a published row; train some first")
    table = _summary(pd.concat(chosen), FIDELITY, protocol).drop(columns="std")
    exhibits = {name: exhibit for exhibit, name in EXHIBIT_OF.items()}
    printed = published()
    printed["exhibit"] = printed["table"].map(exhibits)
    table = _beside_paper(table, printed, ["exhibit", *ROW])
    gap = (table["mean"] - table["paper_mean"]) / table["paper_std"]
    return table.assign(distance=gap.abs())


def fidelity_table(
    protocol: str = "as_published", *, out: Path | str | None = None
) -> pd.DataFrame:
    """Distance of every rule's row to the published one, for the 62 published rows.

    Parameters
    ----------
    protocol, out
        As in :func:`main_table`.

    Returns
    -------
    DataFrame
        exhibit, where, model, method, rule, recovered, distance (mean over the nine metrics, in
        published SDs), worst (the largest of the nine), within (how many lie within 1 SD).
    """
    cells = fidelity_cells(protocol, out=out)
    grouped = cells.groupby(FIDELITY, sort=False)["distance"]
    table = grouped.agg(distance="mean", worst="max").reset_index()
    within = cells["distance"].le(1).groupby([cells[k] for k in FIDELITY], sort=False).sum()
    return table.assign(within=within.to_numpy())


def _signed(table: pd.DataFrame) -> pd.Series:
    """Means with the sign that makes higher better."""
    return table["mean"].where(table["metric"].map(lambda m: METRICS[m][1]), -table["mean"])


def best_by(table: pd.DataFrame) -> pd.Series:
    """Whether each row has the best mean of its model and metric.

    Parameters
    ----------
    table : DataFrame
        As :func:`main_table` gives it.

    Returns
    -------
    Series of bool
    """
    goal = _signed(table)
    return goal == goal.groupby([table["model"], table["metric"]]).transform("max")


def wins(table: pd.DataFrame) -> pd.Series:
    """Whether each row is a DRO variant whose mean beats all baselines of its model and metric.

    Parameters
    ----------
    table : DataFrame
        As :func:`main_table` gives it.

    Returns
    -------
    Series of bool
        False throughout where a table has no baselines (T16, T17).
    """
    goal = _signed(table)
    ours = table["method"].str.contains("DRO-COX")
    bar = goal.where(~ours).groupby([table["model"], table["metric"]]).transform("max")
    return ours & (goal > bar)


class Shown:
    """A table as HTML, with its caption where only text is shown."""

    def __init__(self, markup: str, caption: str):
        self.markup, self.caption = markup, caption

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return f"<table: {self.caption}>"


def show(table: pd.DataFrame, caption: str = "test scores") -> Shown:
    """Lay a table out as the paper does.

    The best mean of each model and metric is bold; a DRO variant that beats all baselines is
    shaded; below each mean stand its SD and, where published, the paper's mean and our distance to
    it in the paper's SDs.

    Parameters
    ----------
    table : DataFrame
        As :func:`main_table` gives it.
    caption : str

    Returns
    -------
    Shown
        Displayed as HTML by a notebook.
    """
    marks = pd.DataFrame({"best": best_by(table), "win": wins(table)})
    head = "".join(f"<th>{name} {'↑' if up else '↓'}</th>" for name, up in METRICS.values())
    twice = table.groupby("method")["model"].nunique().max() > 1  # T16: the same shares in both
    body = []
    for (model, method), part in table.groupby(["model", "method"], sort=False):
        cells = []
        for index, row in part.set_index("metric", append=True).iterrows():
            names = " ".join(m for m in marks.columns if marks.loc[index[0], m])
            text = f"{row['mean']:.4f}<br><small>({row['std']:.4f})</small>"
            if np.isfinite(row["paper_mean"]):
                gap = f"{(row['mean'] - row['paper_mean']) / row['paper_std']:+.1f}"
                gap = gap.replace("-", "\N{MINUS SIGN}")
                text += f"<br><small>{row['paper_mean']:.4f} <i>{gap}</i></small>"
            cells.append(f'<td class="{names}">{text}</td>')
        name = html.escape(f"{model}, {method}" if twice else method).replace("(", "<wbr>(")
        body.append(f'<tr class="{model}"><th>{name}</th>{"".join(cells)}</tr>')
    markup = (
        f'<div class="wide-table"><table class="results"><caption>{html.escape(caption)}'
        f"</caption><thead><tr><th>method</th>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
    return Shown(markup, caption)
