"""The paper's tables from the stored runs, beside the published numbers.

Tables are long frames (model, method, metric, mean, std, paper_mean, paper_std): means and
standard deviations (``ddof=0``, as published) over the ten repeats of the selected models.
:func:`show` lays one out as the paper does.
"""

import html
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper import selection as choice
from drocox.paper import store
from drocox.paper.datasets import dataset_summary
from drocox.paper.protocol import ATTRIBUTES, DRO, METHODS, MODELS, N2_SHARES, PROTOCOLS, SPLIT

Folder = Path | str | None  # of a store; None: the book's

# fmt: off
METRICS = {  # name in the header, whether higher is better
    "c_index": ("c-index", True), "auc": ("AUC", True), "lpl": ("LPL", True),
    "ibs": ("IBS", False), "f_i": ("F<sub>I</sub>", False), "f_g": ("F<sub>G</sub>", False),
    "f_cap": ("F<sub>∩</sub>", False), "f_a": ("F<sub>A</sub>", False),
    "ci_percent": ("CI (%)", False),
}
EXHIBITS = {  # data set, attribute, what the selection minimises
    "t2": ("flc", "age", "ci_percent"), "t3": ("support", "gender", "ci_percent"),
    "t4": ("seer", "race", "ci_percent"), "t5": ("flc", "gender", "ci_percent"),
    "t6": ("support", "age", "ci_percent"), "t7": ("support", "race", "ci_percent"),
    "t8": ("seer", "age", "ci_percent"), "t9": ("flc", "age", "f_a"),
    "t10": ("flc", "gender", "f_a"), "t11": ("support", "age", "f_a"),
    "t12": ("support", "race", "f_a"), "t13": ("support", "gender", "f_a"),
    "t14": ("seer", "age", "f_a"), "t15": ("seer", "race", "f_a"),
}
EXHIBIT_OF = {  # names in results.csv
    "t2": "general_performance_CI", "t3": "general_performance_SUPPORT_gender_CI",
    "t4": "general_performance_SEER_race_CI",
    "t16": "performance_of_diff_split", "t17": "performance_of_one_side_split",
}
# fmt: on
SPLIT_EXHIBITS = ("t16", "t17")
VIEWS = {
    "as published": {"protocol": "as_published", "selection": "recovered"},
    "stated rule": {"protocol": "as_published", "selection": "stated"},
    "corrected": {"protocol": "corrected", "selection": "stated"},
}
CELL = ["model", "method", "metric"]  # what a cell of a table is
FIDELITY = ["exhibit", "where", "model", "method", "rule", "recovered"]
T1 = ("samples", "features", "censoring rate", "sensitive attributes")
PRINTED_T1 = {
    "flc": ("7,874", "6", "0.725", "age, gender"),
    "support": ("9,105", "14", "0.319", "age, race, gender"),
    "seer": ("4,024", "13", "0.847", "age, race"),
}


def published() -> pd.DataFrame:
    """The published cells of the tables.

    Returns
    -------
    DataFrame
        558 rows: table, model, method, metric, mean, std, bold, green.
    """
    return pd.read_csv(store.DEFAULT / "published" / "results.csv")


def published_figure() -> pd.DataFrame:
    """The numbers behind the published figure.

    Returns
    -------
    DataFrame
        90 rows: dataset, alpha, metric, mean, std.
    """
    frame = pd.read_csv(store.DEFAULT / "published" / "figure1.csv")
    return frame.assign(dataset=frame["dataset"].str.lower())


def _runs(protocol: str, out: Folder) -> pd.DataFrame:
    _checks.one_of(protocol, "protocol", PROTOCOLS)
    return store.load_runs(protocol, out=out)


def _summary(
    rows: pd.DataFrame, by: list[str], protocol: str, printed: pd.DataFrame, keys: list[str]
) -> pd.DataFrame:
    """Mean and deviation of each metric over the repeats, long, beside the published ones.

    ``keys`` identify a published cell; where there is none, paper_mean and paper_std are NaN.
    """
    columns = {f"test_{metric}": metric for metric in METRICS}
    if protocol == "as_published":
        del columns["test_ibs"]
        columns["test_ibs_misaligned"] = "ibs"
    values = rows[[*by, *columns]].rename(columns=columns)[[*by, *METRICS]]
    grouped = values.groupby(by, sort=False)
    mean = grouped.mean().rename_axis(columns="metric").stack()
    std = grouped.std(ddof=0).rename_axis(columns="metric").stack()
    table = pd.DataFrame({"mean": mean, "std": std}).reset_index()
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    return table.merge(printed[[*keys, "paper_mean", "paper_std"]], how="left", on=keys)


def chosen_runs(
    dataset: str,
    attribute: str,
    tune_by: str = "ci_percent",
    protocol: str = "as_published",
    selection: str = "stated",
    out: Folder = None,
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
    return choice.selected(runs, dataset, attribute, tune_by=tune_by, selection=selection)


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
    return _summary(rows, ["model", "method"], protocol, printed, CELL)


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
    return next(e for e, what in EXHIBITS.items() if what == (dataset, attribute, tune_by))


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
    cells = published()
    return cells[cells["table"] == EXHIBIT_OF.get(exhibit)].copy()


def _split_table(
    model: str, exhibit: str, protocol: str, selection: str, out: Folder
) -> pd.DataFrame:
    """T16 or T17: SPLIT on FLC (age), the choice made apart for each share or side."""
    _checks.one_of(model, "model", MODELS)
    rule = choice.rule_of("n2", SPLIT[model], selection)
    chosen = [
        choice.select(rows, plain, rule).assign(method=method)
        for (_, _, its_model, method), rows, plain in _split_rows(_runs(protocol, out), exhibit)
        if its_model == model
    ]
    if not chosen:
        raise ValueError(f"the store holds no runs of {SPLIT[model]} on flc; train some first")
    rows = pd.concat(chosen)
    return _summary(rows, ["model", "method"], protocol, published_table(exhibit), CELL)


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
    _checks.one_of(exhibit, "exhibit", [*EXHIBITS, *SPLIT_EXHIBITS])
    how = {"protocol": protocol, "selection": selection, "out": out}
    if exhibit in EXHIBITS:
        dataset, attribute, tune_by = EXHIBITS[exhibit]
        return main_table(dataset, attribute, tune_by=tune_by, **how)
    make = split_share_table if exhibit == "t16" else one_side_table
    return pd.concat([make(model, **how) for model in MODELS], ignore_index=True)


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
    rows = choice.candidates(_runs(protocol, out), dataset, "age")
    method = DRO["linear"]
    rows = rows[(rows["method"] == method) & (rows["learning_rate"] == 0.01)]
    if rows.empty:
        raise ValueError(f"the store holds no runs of {method} on {dataset}; train some first")
    printed = published_figure().query("dataset == @dataset")
    return _summary(rows, ["alpha"], protocol, printed, ["alpha", "metric"])


def dataset_table() -> pd.DataFrame:
    """T1 (Table 1): samples, features, censoring rate and attributes, with the printed values.

    Returns
    -------
    DataFrame
        dataset, quantity, ours, paper.
    """
    facts = dataset_summary()
    rows = []
    for name, printed in PRINTED_T1.items():
        f = facts.loc[name]
        ours = (f"{f['rows']:,}", str(f["features"]), f"{f['censoring_rate']:.3f}", f["attributes"])
        rows += [(name, *row) for row in zip(T1, ours, printed, strict=True)]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "ours", "paper"])


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


def _split_rows(runs: pd.DataFrame, exhibit: str) -> Iterator[tuple]:
    """The rows of T16 (a share each) or T17 (one side, two sides), of both models.

    Each is three things: exhibit, "n2", model and method; the runs it was chosen from; and those of
    Cox (DeepSurv) to compare with.
    """
    flc = choice.add_f_a(runs[runs["dataset"] == "flc"], "age")
    for model in MODELS:
        split = flc[flc["method"] == SPLIT[model]]
        if exhibit == "t16":
            parts = split[split["sides"] == 2].groupby("n2_share")
            names = {share: f"{share:g}n" for share in N2_SHARES}
        else:
            parts = split[split["n2_share"] == 0.5].groupby("sides")
            names = {1: one_side(model), 2: SPLIT[model]}
        for key, rows in parts:
            yield (exhibit, "n2", model, names[key]), rows, choice.plain_of(flc, model)


def _published_rows(runs: pd.DataFrame) -> Iterator[tuple]:
    """The 62 published rows, as far as there are runs: as above, with a data set for "n2"."""
    for exhibit in EXHIBIT_OF:
        if exhibit in SPLIT_EXHIBITS:
            yield from _split_rows(runs, exhibit)
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
        As in :func:`main_table`.

    Returns
    -------
    DataFrame
        exhibit, where, model, method, rule, recovered (whether the rule is the row's recovered
        one), metric, mean, paper_mean, paper_std, distance (in published SDs).
    """
    chosen = []
    for row, rows, plain in _published_rows(_runs(protocol, out)):
        _, where, model, method = row
        name = SPLIT[model] if where == "n2" else method
        recovered = choice.rule_of(where, name, "recovered")
        for rule in choice.RULES:
            found = choice.select(rows, plain, rule)  # none where a rule does not apply
            label = dict(zip(FIDELITY, (*row, rule, rule == recovered), strict=True))
            chosen.append(found.assign(**label))
    if not chosen:
        raise ValueError("the store holds no runs of a published row; train some first")
    exhibits = {name: exhibit for exhibit, name in EXHIBIT_OF.items()}
    printed = published()
    printed["exhibit"] = printed["table"].map(exhibits)
    table = _summary(pd.concat(chosen), FIDELITY, protocol, printed, ["exhibit", *CELL])
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
    cells["within"] = cells["distance"] <= 1
    grouped = cells.groupby(FIDELITY, sort=False)
    return grouped.agg(
        distance=("distance", "mean"), worst=("distance", "max"), within=("within", "sum")
    ).reset_index()


def signed(table: pd.DataFrame) -> pd.Series:
    """Means with the sign that makes higher better.

    Parameters
    ----------
    table : DataFrame
        With the columns metric and mean.

    Returns
    -------
    Series
    """
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
    goal = signed(table)
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
    goal = signed(table)
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
