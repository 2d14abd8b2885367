"""What tables there are: their published numbers, and the stored runs behind each of them.

``results/exhibits.toml`` lists the exhibits T2 to T15, the metrics and the views; published numbers
are in ``results/published``. The runs behind an exhibit are the chosen one of every row and repeat.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from drocox import _checks
from drocox.paper import selection as choice
from drocox.paper import store
from drocox.paper.protocol import DRO, MODELS, N2_SHARES, PROTOCOLS, SPLIT

Folder = Path | str | None  # of a store; None: the book's

WRITTEN = tomllib.loads((store.DEFAULT / "exhibits.toml").read_text(encoding="utf-8"))
# of T2 to T15: data set, attribute, what the selection minimises
EXHIBITS = {exhibit: tuple(what) for exhibit, what in WRITTEN["tables"].items()}
EXHIBIT_OF = WRITTEN["published"]  # names in results.csv
SPLIT_EXHIBITS = ("t16", "t17")
VIEWS = WRITTEN["views"]
READINGS = WRITTEN["readings"]
METRICS = WRITTEN["metrics"]  # name in the header, whether higher is better
# What was chosen already, by exhibit, view and version of the store: chapters ask for the same
# table many times.
_CHOSEN: dict[tuple, pd.DataFrame] = {}


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


def exhibit_of(dataset: str, attribute: str, tune_by: str) -> str:
    """The id of a main table.

    Parameters
    ----------
    dataset, attribute, tune_by : str
        As in :func:`drocox.paper.tables.main_table`.

    Returns
    -------
    str
        ``"t2"`` to ``"t15"``.
    """
    return next(e for e, what in EXHIBITS.items() if what == (dataset, attribute, tune_by))


def runs_of(protocol: str, out: Folder, forensic: bool = False) -> pd.DataFrame:
    """Runs of a protocol; as published and on request, those of the forensic store below them.

    Parameters
    ----------
    protocol : {"as_published", "corrected"}
    out : path, optional
        Folder of the store, by default the book's.
    forensic : bool
        Whether the runs of the forensic store are wanted, too.

    Returns
    -------
    DataFrame
    """
    _checks.one_of(protocol, "protocol", PROTOCOLS)
    runs = store.load_runs(protocol, out=out)
    if forensic and protocol == "as_published" and store.is_finished("forensic", out):
        runs = pd.concat([runs, store.load_runs("forensic", out=out)], ignore_index=True)
    return runs


def metrics_of(rows: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """The nine test metrics of runs under their plain names.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`exhibit_runs`.
    protocol : {"as_published", "corrected"}
        Under ``as_published`` the metric ``ibs`` is the misaligned one.

    Returns
    -------
    DataFrame
    """
    ibs = "ibs_misaligned" if protocol == "as_published" else "ibs"
    names = {f"test_{ibs if metric == 'ibs' else metric}": metric for metric in METRICS}
    return rows[list(names)].rename(columns=names)


def summary(
    rows: pd.DataFrame, by: list[str], protocol: str, printed: pd.DataFrame
) -> pd.DataFrame:
    """Mean and deviation of each metric over the repeats, long, beside the published ones.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`exhibit_runs`.
    by : list of str
        Columns of a row of the table.
    protocol : {"as_published", "corrected"}
    printed : DataFrame
        Published cells with mean and std; columns in common identify a cell.

    Returns
    -------
    DataFrame
        ``by``, metric, mean, std, paper_mean, paper_std (NaN where unpublished).
    """
    grouped = metrics_of(rows, protocol).groupby([rows[name] for name in by], sort=False)
    mean = grouped.mean().rename_axis(columns="metric").stack()
    std = grouped.std(ddof=0).rename_axis(columns="metric").stack()
    table = pd.DataFrame({"mean": mean, "std": std}).reset_index()
    printed = printed.rename(columns={"mean": "paper_mean", "std": "paper_std"})
    return table.merge(printed, how="left")[[*table, "paper_mean", "paper_std"]]


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
        As in :func:`drocox.paper.tables.main_table`.

    Returns
    -------
    DataFrame
        160 stored rows (fewer if the store has fewer), with F_G, CI and F_A of the attribute under
        plain names.
    """
    runs = runs_of(protocol, out, forensic=selection == "recovered")
    version = store.version(protocol, out)
    if version is None:  # an unfinished store may grow between two calls
        return choice.selected(runs, dataset, attribute, tune_by=tune_by, selection=selection)
    what = (dataset, attribute, tune_by, protocol, selection, version)
    if what not in _CHOSEN:
        _CHOSEN[what] = choice.selected(
            runs, dataset, attribute, tune_by=tune_by, selection=selection
        )
    return _CHOSEN[what].copy()


def exhibit_runs(
    exhibit: str, *, protocol: str = "as_published", selection: str = "stated", out: Folder = None
) -> pd.DataFrame:
    """The runs behind any of T2 to T17: the chosen one of every row and repeat.

    In T16 and T17 (SPLIT on FLC, age) the choice is made apart for each share or side.

    Parameters
    ----------
    exhibit : str
        ``"t2"`` to ``"t17"``.
    protocol, selection, out
        As in :func:`drocox.paper.tables.main_table`.

    Returns
    -------
    DataFrame
        Stored rows; ``method`` is the name of the table's row.
    """
    _checks.one_of(exhibit, "exhibit", [*EXHIBITS, *SPLIT_EXHIBITS])
    if exhibit in EXHIBITS:
        return chosen_runs(*EXHIBITS[exhibit], protocol, selection, out)
    runs = runs_of(protocol, out, forensic=selection == "recovered")
    chosen = []
    for (_, _, model, name), rows, plain in split_rows(runs, exhibit):
        rule = choice.rule_of("n2", SPLIT[model], selection)
        chosen.append(choice.select(rows, plain, rule).assign(method=name))
    return pd.concat(chosen or [runs.head(0)], ignore_index=True)


def alpha_runs(dataset: str, *, protocol: str = "as_published", out: Folder = None) -> pd.DataFrame:
    """The runs behind F1: linear DRO-COX at learning rate 0.01.

    Parameters
    ----------
    dataset : {"flc", "support", "seer"}
    protocol, out
        As in :func:`drocox.paper.tables.main_table`.

    Returns
    -------
    DataFrame
        Stored rows, with F_G, CI and F_A of age under plain names.
    """
    rows = choice.candidates(runs_of(protocol, out), dataset, "age")
    method = DRO["linear"]
    rows = rows[(rows["method"] == method) & (rows["learning_rate"] == 0.01)]
    if rows.empty:
        raise ValueError(f"the store holds no runs of {method} on {dataset}; train some first")
    return rows


def split_rows(runs: pd.DataFrame, exhibit: str) -> Iterator[tuple]:
    """The rows of T16 (a share each) or T17 (one side, two sides), of both models.

    Parameters
    ----------
    runs : DataFrame
        Of :func:`runs_of`.
    exhibit : {"t16", "t17"}

    Returns
    -------
    iterator
        Of three things for each row: exhibit, "n2", model and method; the runs it was chosen from;
        and those of Cox (DeepSurv) to compare with.
    """
    flc = choice.add_f_a(runs[runs["dataset"] == "flc"], "age")
    for model in MODELS:
        split = flc[flc["method"] == SPLIT[model]]
        if exhibit == "t16":
            parts = split[split["sides"] == 2].groupby("n2_share")
            names = {share: f"{share:g}n" for share in N2_SHARES}
        else:
            parts = split[split["n2_share"] == 0.5].groupby("sides")
            names = {1: SPLIT[model].replace(")", ", ONE SIDE)"), 2: SPLIT[model]}
        for key, rows in parts:
            yield (exhibit, "n2", model, names[key]), rows, choice.plain_of(flc, model)
