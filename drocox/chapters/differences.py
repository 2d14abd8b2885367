"""The chapter *Paper, released code, this book*: what each replaced piece does to the numbers.

The chapter trains models as published, replaces one piece of the procedure and looks at what moves.
Here are the ledger that closes the chapter and the values of its sentences on data and losses, with
the guards that hold them. Those on metrics are in :mod:`drocox.chapters.differences_metrics`, those
on the choice of the published models in :mod:`drocox.chapters.differences_choice`, those on the
missing gradient in :mod:`drocox.chapters.differences_gradient`.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

import drocox
from drocox.bookstyle import guard, say
from drocox.explorables.results import METRICS
from drocox.paper import protocol, tables
from drocox.paper.comparisons import MAIN_PAIRS

MAIN_ATTRIBUTE = dict(MAIN_PAIRS)  # of each data set, in Tables 2 to 4
TABLE = {"flc": "t2", "support": "t3", "seer": "t4"}
NAMES = METRICS | {"ibs_misaligned": "IBS"}  # of metrics, as printed
AS_PUBLISHED = "as published"  # said in the ledger where the corrected protocol changes nothing


def published_rows() -> pd.DataFrame:
    """The printed means and SDs of Tables 2 to 4.

    Returns
    -------
    DataFrame
        Indexed by exhibit ("t2", "t3", "t4"), method and metric.
    """
    exhibit_of = {table: exhibit for exhibit, table in tables.EXHIBIT_OF.items()}
    printed = tables.published()
    printed = printed.assign(exhibit=printed["table"].map(exhibit_of))
    printed = printed[printed["exhibit"].isin(list(TABLE.values()))]
    return printed.set_index(["exhibit", "method", "metric"]).sort_index()


def side_by_side(rows: Mapping, columns: list[str], digits: int = 4) -> pd.DataFrame:
    """Test metrics of several models, one below the other.

    Parameters
    ----------
    rows : mapping of str to Series
        What was replaced, and the metrics of the model trained so.
    columns : list of str
        The metrics to show.
    digits : int

    Returns
    -------
    DataFrame
        With the metrics' printed names.
    """
    frame = pd.DataFrame(rows).T[list(columns)].astype(float).round(digits)
    return frame.rename(columns=NAMES | {"ibs_misaligned": "IBS (misaligned)"})


class Ledger:
    """The closing table of the chapter: one line per difference, its size in published SDs."""

    def __init__(self) -> None:
        self.paper = published_rows()
        self.lines = []

    def sd(self, dataset: str, method: str, metric: str) -> float:
        """The published SD of a metric in the table of a data set.

        Parameters
        ----------
        dataset, method, metric : str

        Returns
        -------
        float
        """
        row = (TABLE[dataset], method, metric.removesuffix("_misaligned"))
        return self.paper.loc[row, "std"]

    def note(
        self,
        difference: str,
        where: tuple[str, str, str],
        published: float,
        replaced: float,
        corrected: str,
        factor: bool = False,
    ) -> None:
        """Add a line.

        Parameters
        ----------
        difference : str
            What was replaced.
        where : tuple of str
            Data set, method, metric.
        published, replaced : float
            The metric before and after.
        corrected : str
            What the corrected protocol does.
        factor : bool
            Whether the size is a factor, because the unit changes; else it is in published SDs.
        """
        dataset, method, metric = where
        size = f"× {replaced / published:.3g}"
        if not factor:
            size = f"{abs(replaced - published) / self.sd(*where):.1f} SD"
        self.lines.append(
            {
                "difference": difference,
                "size": size,
                "metric": NAMES[metric],
                "as published": f"{published:.4g}",
                "replaced": f"{replaced:.4g}",
                "where": f"{dataset.upper()} {method}",
                "corrected protocol": corrected,
            }
        )

    def note_between(self, difference: str, where: tuple, before, after, corrected: str) -> None:
        """Add a line for a metric of two models, each a Series of metrics.

        Parameters
        ----------
        difference : str
        where : tuple of str
            As in :meth:`note`.
        before, after : Series
        corrected : str
            As there.
        """
        metric = where[2]
        self.note(difference, where, before[metric], after[metric], corrected)

    def frame(self) -> pd.DataFrame:
        """All lines, as the chapter shows them.

        Returns
        -------
        DataFrame
        """
        return pd.DataFrame(self.lines).set_index("difference").rename_axis(None)


def tell_data(ledger: Ledger, rows: Mapping) -> None:
    """Section *The data*: imputation, the coding of age, the order of rows, the test seed.

    Parameters
    ----------
    ledger : Ledger
    rows : mapping of str to Series
        Metrics of the models of that section, by the words of its table.
    """
    flc = rows["FLC as published"]
    filled = rows["FLC, training medians"]
    binary = rows["FLC, age over 65 or not"]
    seer = rows["SEER as published"]
    years = rows["SEER, age in years"]
    in_file = rows["SEER, rows in file order"]
    other_seed = rows["SEER, test seed 8"]

    imputed = "imputed before the split, by group"
    coding = "age in years or over 65"
    order = "rows stacked by group or in file order"
    drawn = "test set drawn with seed 7 or 8"
    flc_ci = ("flc", "Cox", "ci_percent")
    seer_ci = ("seer", "Cox", "ci_percent")
    seer_c = ("seer", "Cox", "c_index")
    medians = "training medians, over everybody"
    ledger.note_between(imputed, ("flc", "Cox", "f_i"), flc, filled, medians)
    ledger.note_between(coding, ("flc", "Cox", "c_index"), flc, binary, AS_PUBLISHED)
    ledger.note_between(coding, flc_ci, flc, binary, AS_PUBLISHED)
    ledger.note_between(coding, seer_ci, seer, years, AS_PUBLISHED)
    ledger.note_between(order, seer_c, seer, in_file, "file order")
    ledger.note_between(drawn, seer_c, seer, other_seed, "seed r in repeat r")

    _tell_gaps(flc, filled)
    _tell_age(ledger.paper, flc, binary)
    _tell_rows(ledger.paper, {"as-is": seer, "file": in_file, "seed": other_seed})


def _tell_gaps(published, filled) -> None:
    moved = abs(filled - published)[["c_index", "auc", "ibs"]].max()
    guard(moved < 1e-3, "a leak in principle, not in the numbers")
    say("filled-moved", f"{np.ceil(1e4 * moved) / 1e4:.4f}")
    with_gaps = drocox.load_dataset("flc").X.isna().any(axis=1)
    say("gaps", f"{int(with_gaps.sum()):,}")


def _tell_age(paper: pd.DataFrame, published, binary) -> None:
    guard(published.c_index - binary.c_index > 0.02, "the coding of age takes the c-index down")
    ci = paper.xs("ci_percent", level="metric").loc["t2"]
    plain = ci["model"].map(protocol.PLAIN).map(ci["mean"])
    largest_step = (ci["mean"] - plain).abs().max()
    step = abs(binary.ci_percent - published.ci_percent)
    guard(step > largest_step, "a larger step in CI than between plain Cox and any method")
    say("binary-c", f"{binary.c_index:.3f}")
    say("plain-c", f"{published.c_index:.3f}")
    say("binary-ci", f"{binary.ci_percent:.1f}")
    say("plain-ci", f"{published.ci_percent:.1f}")


def _tell_rows(paper: pd.DataFrame, rows: Mapping) -> None:
    no_gaps = not drocox.load_dataset("seer").X.isna().any().any()
    guard(no_gaps, "SEER in file order has nothing to fill")
    printed = paper.loc[("t4", "Cox", "c_index")]
    away = {name: abs(row.c_index - printed["mean"]) / printed["std"] for name, row in rows.items()}
    nearest = min(away["file"], away["seed"])
    guard(nearest > 2 * away["as-is"], "other rows are further from the published c-index")
    for name, value in away.items():
        say(f"off-{name}", f"{value:.0f}")


def tell_splits(ledger: Ledger, spread: Mapping) -> None:
    """Section *The data*, splits: what stratifying by event does to the spread of test sets.

    Parameters
    ----------
    ledger : Ledger
    spread : mapping
        "stratified" and "random", each with "fewest events", "most" and "SD".
    """
    stratified = spread["stratified"]
    random = spread["random"]
    published_sd = ledger.sd("seer", "Cox", "c_index")
    ratio = stratified["SD"] / published_sd
    guard(stratified["fewest events"] == stratified["most"], "stratified parts have equal events")
    guard(abs(stratified["SD"] - random["SD"]) < 0.01, "stratifying narrows the spread a little")
    guard(ratio > 5, "the draw itself matters more")
    say("seer-sd", f"{stratified['SD']:.3f}")
    say("seer-random-sd", f"{random['SD']:.3f}")
    say("seer-paper-sd", f"{published_sd:.4f}")
    say("seer-ratio", f"{ratio:.0f}")
    ledger.lines.append(
        {
            "difference": "stratified or random splits",
            "size": f"{abs(stratified['SD'] - random['SD']) / published_sd:.1f} SD",
            "metric": "SD of c-index",
            "as published": f"{stratified['SD']:.3f}",
            "replaced": f"{random['SD']:.3f}",
            "where": "SEER Cox, over test sets",
            "corrected protocol": "stratified, another test set in each repeat",
        }
    )


def tell_losses(ledger: Ledger, rows: Mapping, per_event: float) -> None:
    """Section *The losses*: ties, divisor, halves, initial weights, α = 0.05.

    Parameters
    ----------
    ledger : Ledger
    rows : mapping of str to Series
        Metrics of the models of that section, by the words of its table.
    per_event : float
        Training patients per event on SEER.
    """
    cox = rows["SEER Cox, as published"]
    sort = rows["… judged after another sort"]
    equation = rows["… ties by equation (3)"]
    drawn = rows["… other initial weights"]
    keya = rows["SEER Cox_G(Keya), λ = 0.4"]
    keya_by_n = rows["… loss divided by n"]
    split = rows["SEER SPLIT, α = 0.5"]
    split_first = rows["… D₁ the first n₁ rows"]
    dro = rows["FLC DRO-COX, α = 0.1"]
    dro_small = rows["… α = 0.05"]

    halves = "D₁ random or first n₁"
    stratified = "random, stratified"
    split_f_i = ("seer", "DRO-COX (SPLIT)", "f_i")
    split_ci = ("seer", "DRO-COX (SPLIT)", "ci_percent")
    misaligned = ("seer", "Cox", "ibs_misaligned")
    divided = ("seer", "Cox_G(Keya)", "f_g")
    started = ("seer", "Cox", "c_index")
    beside = ("flc", "DRO-COX", "c_index")
    divisor = "Cox loss per event or per patient"
    ledger.note_between(
        "ties by position or paper's (3)", ("seer", "Cox", "lpl"), cox, equation, "paper's (3)"
    )
    ledger.note_between("order among ties", misaligned, cox, sort, "irrelevant")
    ledger.note_between(divisor, divided, keya, keya_by_n, "per event")
    ledger.note_between(halves, split_f_i, split, split_first, stratified)
    ledger.note_between(halves, split_ci, split, split_first, stratified)
    ledger.note_between(
        "one draw of initial weights", started, cox, drawn, "another in each repeat"
    )
    ledger.note_between("α 0.05 beside 0.1", beside, dro, dro_small, "printed grid")

    _tell_ties(cox, equation, sort)
    guard(abs(drawn.c_index - cox.c_index) < 0.001, "initial weights hardly show")
    guard(keya_by_n.f_g < keya.f_g, "the divisor multiplies λ")
    guard(dro_small.c_index < dro.c_index, "α = 0.05 ranks worse than 0.1")
    for metric in ("c_index", "f_g", "ci_percent"):
        one_sd = ledger.sd("seer", "Cox_G(Keya)", metric)
        guard(abs(keya_by_n[metric] - keya[metric]) < one_sd, "this row moves by less than 1 SD")
    for metric in ("c_index", "f_i", "f_g"):
        one_sd = ledger.sd("seer", "DRO-COX (SPLIT)", metric)
        moved = abs(split_first[metric] - split[metric])
        guard(moved < one_sd, "halves by position move c-index, F_I and F_G by less than 1 SD")
    moved = abs(split_first.ci_percent - split.ci_percent)
    say("halves-ci", f"{moved / ledger.sd(*split_ci):.1f}")
    say("per-event", f"{per_event:.1f}")


def _tell_ties(cox, equation, sort) -> None:
    c_moved = abs(equation.c_index - cox.c_index)
    lpl_moved = abs(equation.lpl - cox.lpl)
    guard(c_moved < 0.001 < lpl_moved, "ties hardly touch what is learned; LPL shifts")
    ibs_moved = abs(sort.ibs - cox.ibs)
    misaligned_moved = abs(sort.ibs_misaligned - cox.ibs_misaligned)
    guard(misaligned_moved > 0.001 > ibs_moved, "the published IBS sees the order of ties")
    tied = []
    for name in MAIN_ATTRIBUTE:
        times = pd.Series(drocox.load_dataset(name).time)
        tied.append(f"{name.upper()} {100 * times.duplicated(keep=False).mean():.0f} %")
    say("tied", ", ".join(tied))
    say("sort-from", f"{cox.ibs_misaligned:.4f}")
    say("sort-to", f"{sort.ibs_misaligned:.4f}")
