"""The paper's tables from the stored runs, beside the published numbers.

Tables are long frames (model, method, metric, mean, std, paper_mean, paper_std): means and
standard deviations (``ddof=0``, as published) over the ten repeats of the selected models.
:func:`show` lays one out as the paper does.
"""

from __future__ import annotations

import html
from functools import cache

import numpy as np
import pandas as pd

from drocox import _checks, results
from drocox.data import dataset_summary
from drocox.protocol import ATTRIBUTES, METHODS, MODELS, N2_SHARES, PLAIN
from drocox.selection import RULES, add_f_a, candidates, select, selected

# name in the header, whether higher is better
METRICS = {"c_index": ("c-index", True), "auc": ("AUC", True), "lpl": ("LPL", True),
           "ibs": ("IBS", False), "f_i": ("F<sub>I</sub>", False), "f_g": ("F<sub>G</sub>", False),
           "f_cap": ("F<sub>∩</sub>", False), "f_a": ("F<sub>A</sub>", False),
           "ci_percent": ("CI (%)", False)}
PUBLISHED = {"general_performance_CI": ("flc", "age"),
             "general_performance_SUPPORT_gender_CI": ("support", "gender"),
             "general_performance_SEER_race_CI": ("seer", "race")}
SPLIT = {"linear": "DRO-COX (SPLIT)", "nonlinear": "Deep DRO-COX (SPLIT)"}
PRINTED_T1 = {"flc": ("7,874", "6", "0.725", "age, gender"),
              "support": ("9,105", "14", "0.319", "age, race, gender"),
              "seer": ("4,024", "13", "0.847", "age, race")}


@cache
def published() -> pd.DataFrame:
    """The 558 published cells: table, model, method, metric, mean, std, bold, green."""
    return pd.read_csv(results.DEFAULT / "paper" / "results.csv")


@cache
def published_figure() -> pd.DataFrame:
    """The 90 numbers behind the published figure."""
    frame = pd.read_csv(results.DEFAULT / "paper" / "figure1.csv")
    return frame.assign(dataset=frame["dataset"].str.lower())


def _summary(rows: pd.DataFrame, by: list[str], protocol: str) -> pd.DataFrame:
    """Mean and deviation of each metric over the repeats, long."""
    ibs = "ibs_misaligned" if protocol == "as_published" else "ibs"
    values = {m: rows[f"test_{ibs if m == 'ibs' else m}"] for m in METRICS}
    grouped = pd.DataFrame(values).groupby([rows[c] for c in by], sort=False)
    mean, std = (getattr(grouped, f)(**k).rename_axis(columns="metric").stack()
                 for f, k in (("mean", {}), ("std", {"ddof": 0})))
    return pd.DataFrame({"mean": mean, "std": std}).reset_index()


def _beside_paper(table: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    keys = ["model", "method", "metric"]
    columns = [*keys, "mean", "std", "paper_mean", "paper_std"]
    return table.merge(printed[[*keys, "paper_mean", "paper_std"]], "left", keys)[columns]


def main_table(dataset: str, attribute: str, *, tune_by: str = "ci_percent",
               protocol: str = "as_published", selection: str = "stated") -> pd.DataFrame:
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
    rows = selected(results.load_runs(protocol), dataset, attribute, tune_by=tune_by,
                    selection=selection)
    printed = published()
    where = printed["table"].map(PUBLISHED) == (dataset, attribute)
    printed = printed[where & (tune_by == "ci_percent")]
    return _beside_paper(_summary(rows, ["model", "method"], protocol), printed)


def _split_runs(protocol: str, model: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """SPLIT runs of FLC (age) with any share or side, and the Cox runs they are held against."""
    runs = add_f_a(results.load_runs(protocol), "age")
    runs = runs[runs["dataset"] == "flc"]
    return (runs[runs["method"] == SPLIT[_checks.one_of(model, "model", MODELS)]],
            runs[runs["method"] == PLAIN[model]])


def _split_choice(rows: pd.DataFrame, plain: pd.DataFrame, selection: str) -> pd.DataFrame:
    if selection == "recovered" and rows["model"].iloc[0] == "linear":
        return rows[(rows["learning_rate"] == 0.01) & (rows["alpha"] == 0.1)]
    return select(rows, plain, "stated CI")


def split_share_table(model: str, *, protocol: str = "as_published",
                      selection: str = "stated") -> pd.DataFrame:
    """T16 (Table E.12): SPLIT on FLC (age) with n2 = 0.1n to 0.5n; ``method`` holds the share."""
    rows, plain = _split_runs(protocol, model)
    both = rows[rows["sides"] == 2]
    chosen = [_split_choice(both[both["n2_share"] == s], plain, selection) for s in N2_SHARES]
    table = pd.concat(chosen).assign(method=lambda d: d["n2_share"].map("{:g}n".format))
    printed = published()[published()["table"] == "performance_of_diff_split"]
    return _beside_paper(_summary(table, ["model", "method"], protocol), printed)


def one_side_table(model: str, *, protocol: str = "as_published",
                   selection: str = "stated") -> pd.DataFrame:
    """T17 (Table E.13): SPLIT on FLC (age), one side against both."""
    rows, plain = _split_runs(protocol, model)
    half = rows[rows["n2_share"] == 0.5]
    chosen = [_split_choice(half[half["sides"] == s], plain, selection) for s in (1, 2)]
    one = SPLIT[model].replace(")", ", ONE SIDE)")
    table = pd.concat(chosen)
    table["method"] = np.where(table["sides"] == 1, one, table["method"])
    printed = published()[published()["table"] == "performance_of_one_side_split"]
    return _beside_paper(_summary(table, ["model", "method"], protocol), printed)


def alpha_table(dataset: str, *, protocol: str = "as_published") -> pd.DataFrame:
    """The numbers behind F1: linear DRO-COX at learning rate 0.01, by alpha (attribute age)."""
    dataset = _checks.one_of(str(dataset).lower(), "data set", ATTRIBUTES)
    rows = candidates(results.load_runs(protocol), dataset, "age")
    rows = rows[(rows["method"] == "DRO-COX") & (rows["learning_rate"] == 0.01)]
    printed = published_figure()[published_figure()["dataset"] == dataset]
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    table = _summary(rows, ["alpha"], protocol)
    return table.merge(printed[["alpha", "metric", "paper_mean", "paper_std"]], "left",
                       ["alpha", "metric"])


def dataset_table() -> pd.DataFrame:
    """T1 (Table 1): samples, features, censoring rate and attributes, with the printed values."""
    facts = dataset_summary()
    rows = []
    for name, printed in PRINTED_T1.items():
        f = facts.loc[name]
        ours = (f"{f['rows']:,}", str(f["features"]), f"{f['censoring_rate']:.3f}",
                f["attributes"])
        names = ("samples", "features", "censoring rate", "sensitive attributes")
        rows += [{"dataset": name, "quantity": q, "ours": o, "paper": p}
                 for q, o, p in zip(names, ours, printed, strict=True)]
    return pd.DataFrame(rows)


def fidelity_table(protocol: str = "as_published") -> pd.DataFrame:
    """Distance of every rule's row to the published one, for the 48 rows of Tables 2 to 4.

    Columns: dataset, method, rule, distance (mean over the nine metrics, in published SDs), worst
    (the largest of the nine), within (how many of the nine lie within 1 SD).
    """
    runs = results.load_runs(protocol)
    out = []
    for table, (dataset, attribute) in PUBLISHED.items():
        rows = candidates(runs, dataset, attribute)
        printed = published()[published()["table"] == table]
        for method, m in METHODS.items():
            mine = rows[rows["method"] == method]
            for rule in RULES:
                chosen = select(mine, rows[rows["method"] == PLAIN[m.model]], rule)
                if len(chosen) == 0:  # the rule does not apply to this method
                    continue
                t = _beside_paper(_summary(chosen, ["model", "method"], protocol), printed)
                distance = ((t["mean"] - t["paper_mean"]) / t["paper_std"]).abs()
                out.append({"dataset": dataset, "method": method, "rule": rule,
                            "distance": distance.mean(), "worst": distance.max(),
                            "within": int((distance <= 1).sum())})
    return pd.DataFrame(out)


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
    shaded; below each mean stand its SD and, where published, the distance to the paper's mean in
    the paper's SDs.
    """
    marks = pd.DataFrame({"best": best_by(table), "win": wins(table)})
    head = "".join(f"<th>{name} {'↑' if up else '↓'}</th>" for name, up in METRICS.values())
    body = []
    for (model, method), part in table.groupby(["model", "method"], sort=False):
        cells = []
        for index, row in part.set_index("metric", append=True).iterrows():
            names = " ".join(m for m in marks.columns if marks.loc[index[0], m])
            text = f"{row['mean']:.4f}<br><small>({row['std']:.4f})"
            if np.isfinite(row["paper_mean"]):
                gap = (row["mean"] - row["paper_mean"]) / row["paper_std"]
                text += f" <i>{gap:+.1f}</i>".replace("-", "\N{MINUS SIGN}")
            cells.append(f'<td class="{names}">{text}</small></td>')
        body.append(f'<tr class="{model}"><th>{html.escape(method)}</th>{"".join(cells)}</tr>')
    markup = (f'<div class="wide-table"><table class="results"><caption>{html.escape(caption)}'
              f"</caption><thead><tr><th>method</th>{head}</tr></thead>"
              f"<tbody>{''.join(body)}</tbody></table></div>")
    return Shown(markup, caption)
