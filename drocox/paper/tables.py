"""The paper's tables from the stored runs, beside the published numbers.

Tables are long frames (model, method, metric, mean, std, paper_mean, paper_std): means and
standard deviations (``ddof=0``, as published) over the ten repeats of the selected models.
:func:`show` lays one out as the paper does.
"""

import html
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from drocox import _checks
from drocox.paper import store
from drocox.paper.datasets import dataset_summary
from drocox.paper.protocol import ATTRIBUTES, METHODS, MODELS, N2_SHARES, PLAIN, SPLIT
from drocox.paper.selection import RULES, add_f_a, candidates, rule_of, select, selected

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
VIEWS = {
    "as published": {"protocol": "as_published", "selection": "recovered"},
    "stated rule": {"protocol": "as_published", "selection": "stated"},
    "corrected": {"protocol": "corrected", "selection": "stated"},
}
FIDELITY = ["exhibit", "where", "model", "method", "rule", "recovered"]
PRINTED_T1 = {
    "flc": ("7,874", "6", "0.725", "age, gender"),
    "support": ("9,105", "14", "0.319", "age, race, gender"),
    "seer": ("4,024", "13", "0.847", "age, race"),
}


@cache
def published() -> pd.DataFrame:
    """The 558 published cells: table, model, method, metric, mean, std, bold, green."""
    return pd.read_csv(store.DEFAULT / "published" / "results.csv")


@cache
def published_figure() -> pd.DataFrame:
    """The 90 numbers behind the published figure."""
    frame = pd.read_csv(store.DEFAULT / "published" / "figure1.csv")
    return frame.assign(dataset=frame["dataset"].str.lower())


def _summary(rows: pd.DataFrame, by: list[str], protocol: str) -> pd.DataFrame:
    """Mean and deviation of each metric over the repeats, long."""
    ibs = "ibs_misaligned" if protocol == "as_published" else "ibs"
    values = {m: rows[f"test_{ibs if m == 'ibs' else m}"] for m in METRICS}
    grouped = pd.DataFrame(values).groupby([rows[c] for c in by], sort=False)
    mean, std = (
        getattr(grouped, f)(**k).rename_axis(columns="metric").stack()
        for f, k in (("mean", {}), ("std", {"ddof": 0}))
    )
    return pd.DataFrame({"mean": mean, "std": std}).reset_index()


def _beside_paper(table: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    keys = ["model", "method", "metric"]
    columns = [*keys, "mean", "std", "paper_mean", "paper_std"]
    return table.merge(printed[[*keys, "paper_mean", "paper_std"]], "left", keys)[columns]


@cache
def chosen_runs(
    dataset: str, attribute: str, tune_by: str, protocol: str, selection: str
) -> pd.DataFrame:
    """The 160 runs behind a main table: the chosen one of every method and repeat."""
    return selected(
        store.load_runs(protocol), dataset, attribute, tune_by=tune_by, selection=selection
    )


def main_table(
    dataset: str,
    attribute: str,
    *,
    tune_by: str = "ci_percent",
    protocol: str = "as_published",
    selection: str = "stated",
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
    selection : {"stated", "recovered"}
        The paper's rule on validation data, or (forensic) the rule that gives the published row
        back, see :mod:`drocox.selection`.

    Returns
    -------
    DataFrame
        model, method, metric, mean, std, paper_mean, paper_std (NaN where unpublished).
    """
    dataset = _checks.one_of(str(dataset).lower(), "data set", ATTRIBUTES)
    _checks.one_of(attribute, "attribute", ATTRIBUTES[dataset])
    rows = chosen_runs(dataset, attribute, tune_by, protocol, selection)
    exhibit = {cells: e for e, cells in EXHIBITS.items()}[dataset, attribute, tune_by]
    printed = published()[published()["table"] == EXHIBIT_OF.get(exhibit)]
    return _beside_paper(_summary(rows, ["model", "method"], protocol), printed)


@cache
def _split_runs(exhibit: str, protocol: str, selection: str) -> pd.DataFrame:
    """The runs behind T16 or T17, the choice made apart for each share or side."""
    return pd.concat(
        [
            select(row.rows, row.plain, rule_of("n2", SPLIT[row.model], selection)).assign(
                method=row.method
            )
            for row in _published_rows(store.load_runs(protocol), exhibit)
        ]
    )


def _split_table(model: str, exhibit: str, protocol: str, selection: str) -> pd.DataFrame:
    """T16 or T17: SPLIT on FLC (age)."""
    _checks.one_of(model, "model", MODELS)
    rows = _split_runs(exhibit, protocol, selection).query("model == @model")
    printed = published()[published()["table"] == EXHIBIT_OF[exhibit]]
    return _beside_paper(_summary(rows, ["model", "method"], protocol), printed)


def split_share_table(
    model: str, *, protocol: str = "as_published", selection: str = "stated"
) -> pd.DataFrame:
    """T16 (Table E.12): SPLIT on FLC (age) with n2 = 0.1n to 0.5n; ``method`` holds the share."""
    return _split_table(model, "t16", protocol, selection)


def one_side_table(
    model: str, *, protocol: str = "as_published", selection: str = "stated"
) -> pd.DataFrame:
    """T17 (Table E.13): SPLIT on FLC (age), one side against both."""
    return _split_table(model, "t17", protocol, selection)


def alpha_table(dataset: str, *, protocol: str = "as_published") -> pd.DataFrame:
    """The numbers behind F1: linear DRO-COX at learning rate 0.01, by alpha (attribute age)."""
    dataset = _checks.one_of(str(dataset).lower(), "data set", ATTRIBUTES)
    rows = candidates(store.load_runs(protocol), dataset, "age")
    rows = rows[(rows["method"] == "DRO-COX") & (rows["learning_rate"] == 0.01)]
    printed = published_figure()[published_figure()["dataset"] == dataset]
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    table = _summary(rows, ["alpha"], protocol)
    return table.merge(
        printed[["alpha", "metric", "paper_mean", "paper_std"]], "left", ["alpha", "metric"]
    )


def dataset_table() -> pd.DataFrame:
    """T1 (Table 1): samples, features, censoring rate and attributes, with the printed values."""
    facts = dataset_summary()
    rows = []
    for name, printed in PRINTED_T1.items():
        f = facts.loc[name]
        ours = (f"{f['rows']:,}", str(f["features"]), f"{f['censoring_rate']:.3f}", f["attributes"])
        names = ("samples", "features", "censoring rate", "sensitive attributes")
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


def _published_rows(runs: pd.DataFrame, *exhibits: str) -> Iterator[_Row]:
    """The 62 published rows, or those of the named exhibits."""
    for exhibit in exhibits or EXHIBIT_OF:
        if exhibit in ("t16", "t17"):
            flc = add_f_a(runs[runs["dataset"] == "flc"], "age")
            share = exhibit == "t16"
            for model, value in product(MODELS, N2_SHARES if share else (1, 2)):
                rows = flc[flc["method"] == SPLIT[model]]
                rows = rows[
                    (rows["n2_share"] == value) & (rows["sides"] == 2)
                    if share
                    else (rows["n2_share"] == 0.5) & (rows["sides"] == value)
                ]
                name = SPLIT[model].replace(")", ", ONE SIDE)") if value == 1 else SPLIT[model]
                yield _Row(
                    exhibit,
                    "n2",
                    model,
                    f"{value:g}n" if share else name,
                    rows,
                    flc[flc["method"] == PLAIN[model]],
                )
            continue
        dataset, attribute, _ = EXHIBITS[exhibit]
        rows = candidates(runs, dataset, attribute)
        for method, m in METHODS.items():
            yield _Row(
                exhibit,
                dataset,
                m.model,
                method,
                rows[rows["method"] == method],
                rows[rows["method"] == PLAIN[m.model]],
            )


@cache
def fidelity_cells(protocol: str = "as_published") -> pd.DataFrame:
    """Every rule of the closed list against every one of the 558 published cells.

    Columns: exhibit, where, model, method, rule, recovered (whether the rule is the row's recovered
    one), metric, mean, paper_mean, paper_std, distance (in published SDs).
    """
    chosen = []
    for row in _published_rows(store.load_runs(protocol)):
        name = SPLIT[row.model] if row.where == "n2" else row.method
        recovered = rule_of(row.where, name, "recovered")
        chosen += [
            select(row.rows, row.plain, rule).assign(
                exhibit=row.exhibit,
                where=row.where,
                method=row.method,
                rule=rule,
                recovered=rule == recovered,
            )
            for rule in RULES
        ]  # none where a rule does not apply
    table = _summary(pd.concat(chosen), FIDELITY, protocol)
    exhibits = {name: exhibit for exhibit, name in EXHIBIT_OF.items()}
    printed = published().assign(exhibit=published()["table"].map(exhibits))
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    on = ["exhibit", "model", "method", "metric"]
    table = table.drop(columns="std").merge(printed[[*on, "paper_mean", "paper_std"]], "left", on)
    gap = (table["mean"] - table["paper_mean"]) / table["paper_std"]
    return table.assign(distance=gap.abs())


def fidelity_table(protocol: str = "as_published") -> pd.DataFrame:
    """Distance of every rule's row to the published one, for the 62 published rows.

    Columns: exhibit, where, model, method, rule, recovered, distance (mean over the nine metrics,
    in published SDs), worst (the largest of the nine), within (how many lie within 1 SD).
    """
    grouped = fidelity_cells(protocol).groupby(FIDELITY, sort=False)["distance"]
    return grouped.agg(
        distance="mean", worst="max", within=lambda d: int((d <= 1).sum())
    ).reset_index()


def best_by(table: pd.DataFrame) -> pd.Series:
    """Whether each row has the best mean of its model and metric."""
    sign = table["metric"].map(lambda m: 1 if METRICS[m][1] else -1)
    goal = table["mean"] * sign
    return goal == goal.groupby([table["model"], table["metric"]]).transform("max")


def wins(table: pd.DataFrame) -> pd.Series:
    """Whether each row is a DRO variant whose mean beats all baselines of its model and metric."""
    sign = table["metric"].map(lambda m: 1 if METRICS[m][1] else -1)
    goal, ours = table["mean"] * sign, table["method"].str.contains("DRO-COX")
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
