"""The paper's tables from the stored runs, beside the published numbers.

Tables are long frames (model, method, metric, mean, std, paper_mean, paper_std): means and standard
deviations (``ddof=0``, as published) over the ten repeats of the selected models. :func:`show` lays
one out as the paper does, and :func:`fidelity_table` measures how close each rule of selection
comes to the published rows. The published numbers are in ``results/published``.
"""

import html
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper import store
from drocox.paper.datasets import dataset_summary
from drocox.paper.protocol import ATTRIBUTES, DRO, METHODS, MODELS, N2_SHARES, PROTOCOLS, SPLIT
from drocox.paper.selection import (
    SELECTION_RULES,
    add_f_a,
    by_method,
    candidates,
    plain_of,
    rule_of,
    select,
    selected,
)

Folder = Path | str | None  # of a store; None: the book's

EXHIBITS = {  # the main tables: data set, sensitive attribute, the metric that selection minimises
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
}
SPLIT_EXHIBITS = ("t16", "t17")  # SPLIT on FLC (age): shares of patients; one side and two
EXHIBIT_OF = {  # exhibits with published numbers, and their names in published/results.csv
    "t2": "general_performance_CI",
    "t3": "general_performance_SUPPORT_gender_CI",
    "t4": "general_performance_SEER_race_CI",
    "t16": "performance_of_diff_split",
    "t17": "performance_of_one_side_split",
}
TABLE_1 = {  # as printed
    "flc": ("7,874", "6", "0.725", "age, gender"),
    "support": ("9,105", "14", "0.319", "age, race, gender"),
    "seer": ("4,024", "13", "0.847", "age, race"),
}
TABLE_1_COLUMNS = ("samples", "features", "censoring rate", "sensitive attributes")
METRICS = {  # in the order of the tables: name in the header, whether higher is better
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
DIGITS = dict.fromkeys(METRICS, 3) | {"ci_percent": 2}  # decimals that :func:`show` writes
ROW = ["model", "method"]  # columns that identify a row of a table
FIDELITY_ROW = ["exhibit", "where", *ROW, "rule", "recovered"]


# Published numbers


def published() -> pd.DataFrame:
    """The 558 published cells: table, model, method, metric, mean, std, bold, green."""
    return pd.read_csv(store.DEFAULT / "published" / "results.csv")


def published_figure() -> pd.DataFrame:
    """The 90 points of the published figure: dataset, alpha, metric, mean, std."""
    frame = pd.read_csv(store.DEFAULT / "published" / "figure1.csv")
    return frame.assign(dataset=frame["dataset"].str.lower())


def published_table(exhibit: str) -> pd.DataFrame:
    """The published cells of one exhibit; empty if its numbers are not known."""
    cells = published()
    return cells[cells["table"] == EXHIBIT_OF.get(exhibit)].copy()


def exhibit_id(dataset: str, attribute: str, tune_by: str) -> str:
    """The id of a main table, such as "t2"."""
    return next(e for e, what in EXHIBITS.items() if what == (dataset, attribute, tune_by))


# The runs behind a table


def _runs_of(protocol: str, out: Folder, forensic: bool = False) -> pd.DataFrame:
    """Runs of a protocol; with ``forensic`` also those of the forensic store, as published only."""
    _checks.one_of(protocol, "protocol", PROTOCOLS)
    runs = store.load_runs(protocol, out=out)
    beside = store.Store(Path(out or store.DEFAULT), "forensic")
    if forensic and protocol == "as_published" and beside.is_finished():
        runs = pd.concat([runs, store.load_runs("forensic", out=out)], ignore_index=True)
    return runs


def metrics_of(rows: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """The nine test metrics of runs under the names of :data:`METRICS`."""
    # the published Brier scores pair predictions and outcomes of different rows
    ibs = "ibs_misaligned" if protocol == "as_published" else "ibs"
    names = {f"test_{ibs if metric == 'ibs' else metric}": metric for metric in METRICS}
    return rows[list(names)].rename(columns=names)


def main_runs(
    dataset: str,
    attribute: str,
    tune_by: str = "ci_percent",
    protocol: str = "as_published",
    selection: str = "stated",
    out: Folder = None,
) -> pd.DataFrame:
    """The runs behind a main table: the chosen one of every method and repeat, in wide form.

    F_G, CI and F_A of the attribute are ``test_f_g``, ``test_ci_percent`` and ``test_f_a``;
    :func:`drocox.paper.comparisons.chosen_runs` has all seven pairs in long form.
    """
    runs = _runs_of(protocol, out, forensic=selection == "recovered")
    return selected(runs, dataset, attribute, tune_by=tune_by, selection=selection)


def exhibit_runs(
    exhibit: str, *, protocol: str = "as_published", selection: str = "stated", out: Folder = None
) -> pd.DataFrame:
    """The runs behind any of T2 to T17: the chosen one of every row and repeat.

    In T16 and T17 (SPLIT on FLC, age) the choice is made for each share or side, and
    ``method`` is the name of the table's row.
    """
    _checks.one_of(exhibit, "exhibit", [*EXHIBITS, *SPLIT_EXHIBITS])
    if exhibit in EXHIBITS:
        return main_runs(*EXHIBITS[exhibit], protocol, selection, out)
    runs = _runs_of(protocol, out, forensic=selection == "recovered")
    chosen = []
    for (_, _, model, name), rows, plain in _split_rows(runs, exhibit):
        rule = rule_of("n2", SPLIT[model], selection)
        chosen.append(select(rows, plain, rule).assign(method=name))
    if not chosen:
        raise ValueError(f"the store holds no runs of {SPLIT['linear']} on flc; train some first")
    return pd.concat(chosen, ignore_index=True)


def alpha_runs(dataset: str, *, protocol: str = "as_published", out: Folder = None) -> pd.DataFrame:
    """The runs behind F1: linear DRO-COX at learning rate 0.01, with F_G, CI and F_A of age."""
    rows = candidates(_runs_of(protocol, out), dataset, "age")
    method = DRO["linear"]
    rows = rows[(rows["method"] == method) & (rows["learning_rate"] == 0.01)]
    if rows.empty:
        raise ValueError(f"the store holds no runs of {method} on {dataset}; train some first")
    return rows


def _split_rows(runs: pd.DataFrame, exhibit: str) -> Iterator[tuple]:
    """The rows of T16 (a share each) or T17 (one side, two sides), of both models.

    Yields (exhibit, "n2", model, method), the runs to choose from, and the runs of Cox or DeepSurv
    that they are compared with.
    """
    flc = add_f_a(runs[runs["dataset"] == "flc"], "age")
    for model in MODELS:
        split = flc[flc["method"] == SPLIT[model]]
        if exhibit == "t16":
            parts = split[split["sides"] == 2].groupby("n2_share")
            names = {share: f"{share:g}n" for share in N2_SHARES}
        else:
            parts = split[split["n2_share"] == 0.5].groupby("sides")
            names = {1: SPLIT[model].replace(")", ", ONE SIDE)"), 2: SPLIT[model]}
        for key, rows in parts:
            yield (exhibit, "n2", model, names[key]), rows, plain_of(flc, model)


# Tables


def _summary(
    rows: pd.DataFrame, by: list[str], protocol: str, printed: pd.DataFrame
) -> pd.DataFrame:
    """Mean and deviation of each metric over the repeats, long, beside the published ones.

    A row of the table is identified by the columns ``by``, a published cell by the columns that
    both frames have.
    """
    grouped = metrics_of(rows, protocol).groupby([rows[name] for name in by], sort=False)
    mean = grouped.mean().rename_axis(columns="metric").stack()
    std = grouped.std(ddof=0).rename_axis(columns="metric").stack()
    table = pd.DataFrame({"mean": mean, "std": std}).reset_index()
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    return table.merge(printed, how="left")[[*table, "paper_mean", "paper_std"]]


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
        (forensic) the rule that reproduces the published row: see :mod:`drocox.paper.selection`.
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
    rows = main_runs(dataset, attribute, tune_by, protocol, selection, out)
    printed = published_table(exhibit_id(dataset, attribute, tune_by))
    return _summary(rows, ROW, protocol, printed)


def _split_table(
    model: str, exhibit: str, protocol: str, selection: str, out: Folder
) -> pd.DataFrame:
    """The rows of T16 or T17 that belong to one model."""
    _checks.one_of(model, "model", MODELS)
    rows = exhibit_runs(exhibit, protocol=protocol, selection=selection, out=out)
    rows = rows[rows["model"] == model]
    if rows.empty:
        raise ValueError(f"the store holds no runs of {SPLIT[model]} on flc; train some first")
    return _summary(rows, ROW, protocol, published_table(exhibit))


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
    """Any of T2 to T17 by its id; T16 and T17 with both models."""
    rows = exhibit_runs(exhibit, protocol=protocol, selection=selection, out=out)
    return _summary(rows, ROW, protocol, published_table(exhibit))


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
    return _summary(rows, ["alpha"], protocol, printed)


def dataset_table() -> pd.DataFrame:
    """T1 (Table 1): samples, features, censoring rate and attributes, with the printed values.

    Returns
    -------
    DataFrame
        dataset, quantity, ours, paper.
    """
    facts = dataset_summary()
    rows = []
    for name, printed in TABLE_1.items():
        f = facts.loc[name]
        ours = (f"{f['rows']:,}", str(f["features"]), f"{f['censoring_rate']:.3f}", f["attributes"])
        rows += [(name, *row) for row in zip(TABLE_1_COLUMNS, ours, printed, strict=True)]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "ours", "paper"])


# How close each rule of selection comes to the published numbers


def _published_rows(runs: pd.DataFrame) -> Iterator[tuple]:
    """The 62 published rows that have runs, in the form of :func:`_split_rows`.

    The second label is the data set in T2 to T4.
    """
    for exhibit in EXHIBIT_OF:
        if exhibit in SPLIT_EXHIBITS:
            yield from _split_rows(runs, exhibit)
            continue
        dataset, attribute, _ = EXHIBITS[exhibit]
        of_table = candidates(runs, dataset, attribute)
        for method, rows, plain in by_method(of_table):
            yield (exhibit, dataset, METHODS[method].model, method), rows, plain


def fidelity_cells(protocol: str = "as_published", *, out: Folder = None) -> pd.DataFrame:
    """Every rule of the closed list against every one of the 558 published cells.

    Columns: those of :func:`fidelity_table` up to ``recovered`` (whether the rule is the row's
    recovered one), metric, mean, paper_mean, paper_std, distance (in published SDs).
    """
    chosen = []
    labels = []  # of each chosen row
    for row, rows, plain in _published_rows(_runs_of(protocol, out, forensic=True)):
        _, where, model, method = row
        name = SPLIT[model] if where == "n2" else method
        recovered = rule_of(where, name, "recovered")
        for rule in SELECTION_RULES:
            of_rule = select(rows, plain, rule)  # none where a rule does not apply
            chosen.append(of_rule)
            labels += [(*row, rule, rule == recovered)] * len(of_rule)
    if not chosen:
        raise ValueError("the store holds no runs of a published row; train some first")
    exhibits = {name: exhibit for exhibit, name in EXHIBIT_OF.items()}
    printed = published()
    printed["exhibit"] = printed["table"].map(exhibits)
    runs = pd.concat(chosen, ignore_index=True).drop(columns=ROW)
    runs = pd.concat([runs, pd.DataFrame(labels, columns=FIDELITY_ROW)], axis=1)
    table = _summary(runs, FIDELITY_ROW, protocol, printed)
    gap = (table["mean"] - table["paper_mean"]) / table["paper_std"]
    return table.drop(columns="std").assign(distance=gap.abs())


def fidelity_table(protocol: str = "as_published", *, out: Folder = None) -> pd.DataFrame:
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
    grouped = cells.assign(within=cells["distance"] <= 1).groupby(FIDELITY_ROW, sort=False)
    return grouped.agg(
        distance=("distance", "mean"), worst=("distance", "max"), within=("within", "sum")
    ).reset_index()


# The paper's layout


def _to_maximise(table: pd.DataFrame) -> pd.Series:
    """Means, negative where lower is better."""
    higher = table["metric"].map(lambda metric: METRICS[metric][1])
    return table["mean"].where(higher, -table["mean"])


def best_by(table: pd.DataFrame) -> pd.Series:
    """Whether each row has the best mean of its model and metric."""
    goal = _to_maximise(table)
    return goal == goal.groupby([table["model"], table["metric"]]).transform("max")


def wins(table: pd.DataFrame) -> pd.Series:
    """Whether each row is a DRO variant whose mean beats all baselines of its model and metric.

    Nothing wins in a table without baselines (T16, T17).
    """
    goal = _to_maximise(table)
    ours = table["method"].str.contains("DRO-COX")
    bar = goal.where(~ours).groupby([table["model"], table["metric"]]).transform("max")
    return ours & (goal > bar)


class Shown:
    """HTML of a table or figure, and what it is in words where only text is shown."""

    def __init__(self, markup: str, words: str):
        self.markup = markup
        self.words = words

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return f"<{self.words}>"


def show(
    table: pd.DataFrame,
    caption: str = "test scores",
    distances: bool = True,
    other: pd.DataFrame | None = None,
) -> Shown:
    """Lay a table out as the paper does.

    The best mean of each model and metric is bold; a DRO variant that beats all baselines is
    shaded. The paper's mean and SD, where published, are small beside ours. Where our mean is more
    than one of the paper's SDs away from the paper's, that distance is below. Unlike in the paper,
    CI and F_A come first.

    Parameters
    ----------
    table : DataFrame
        As :func:`main_table` gives it.
    caption : str
    distances : bool
        Whether to show the paper's means: not where the runs were judged on other patients.
    other : DataFrame, optional
        The same table under another reading of the paper's rule. Its distance stands behind each
        distance that is shown.

    Returns
    -------
    Shown
        Displayed as HTML by a notebook.
    """
    marked = table.assign(best=best_by(table), win=wins(table), other_mean=np.nan)
    if other is not None:
        cell = [*ROW, "metric"]
        means = other.set_index(cell)["mean"]
        marked["other_mean"] = means.reindex(pd.MultiIndex.from_frame(marked[cell])).to_numpy()
    # the metrics that the book is about come first
    metrics = dict.fromkeys(["ci_percent", "f_a", *METRICS])
    order = [metric for metric in metrics if metric in set(table["metric"])]
    twice = table.groupby("method")["model"].nunique().max() > 1  # T16: the same shares in both
    head = "".join(f"<th>{_heading(metric)}</th>" for metric in order)
    body = []
    for (model, method), of_method in marked.groupby(["model", "method"], sort=False):
        cells = of_method.set_index("metric").loc[order]
        data = "".join(_cell(cell, distances) for _, cell in cells.iterrows())
        row = html.escape(f"{model}, {method}" if twice else method)
        name = written(row).replace("(", "<wbr>(")
        body.append(f'<tr class="{model}"><th data-csv="{row}">{name}</th>{data}</tr>')
    markup = (
        f'<div class="wide-table"><table class="results"><caption>{html.escape(caption)}'
        f"</caption><thead><tr><th>method</th>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
    return Shown(markup, f"table: {caption}")


def written(method: str) -> str:
    """The name of a method for readers: "Cox_cap(Keya)" is "Cox_∩(Keya)"."""
    return method.replace("_cap", "_∩")


def _heading(metric: str) -> str:
    """Name of a metric, with an arrow in the direction that is better."""
    name, higher_is_better = METRICS[metric]
    return f"{name} {'↑' if higher_is_better else '↓'}"


def _number(value: float, digits: int) -> str:
    """A number with a proper minus sign; large ones with one decimal."""
    text = f"{value:.{digits if abs(value) < 10 else 1}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _cell(cell: pd.Series, distances: bool) -> str:
    """Our mean and SD and, if published and wanted, the paper's; below, large distances.

    ``data-csv`` has more decimals, for the file that the book offers below a table.
    """
    marks = " ".join(mark for mark in ("best", "win") if cell[mark])
    digits = DIGITS[cell.name]
    mean = _number(cell["mean"], digits)
    below = f"<small>({_number(cell['std'], digits)})</small>"
    kept = f"{cell['mean']:.4f} ({cell['std']:.4f})"
    if distances and np.isfinite(cell["paper_mean"]):
        away = (cell[["mean", "other_mean"]] - cell["paper_mean"]) / cell["paper_std"]
        away = away.astype(float).dropna()
        mean += f"<small>&nbsp;{_number(cell['paper_mean'], digits)}</small>"
        # all printed decimals, so that a distance can be checked, in as little width as possible
        below += f"<small>&nbsp;{cell['paper_std']:.4f}</small>".replace(";0.", ";.")
        kept += f" {cell['paper_mean']:.4f} ({cell['paper_std']:.4f})"
        kept += "".join(f" {distance:+.1f}" for distance in away)
        if abs(away["mean"]) > 1:
            both = " | ".join(f"{distance:+.1f}" for distance in away)
            below += f"<br><small><i>{both}</i></small>".replace("-", "\N{MINUS SIGN}")
    return f'<td class="{marks}" data-csv="{kept}">{mean}<br>{below}</td>'
