"""The chapter *Your own data*: values of its sentences on ``heart.csv``, and their guards."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import drocox.auditing
from drocox.auditing.audit import Audit
from drocox.bookstyle import guard, say
from drocox.tuning import Choice

COVERAGE = Path(drocox.auditing.__file__).with_name("coverage.csv")
SHORT = 0.93  # share of intervals below which an entry of the table is looked at
SHORT_KINDS = {"one model": "one", "tied times": "ties", "cross-fitting": "folds"}
SHOWN_FIGURES = {
    "c_index": "c",
    "calibration": "O/E",
    "slope": "slope",
    "auc": "AUC",
    "brier": "Brier",
}


def tell_audit(found: Audit) -> None:
    """Sections *Scores for patients the model has not seen* and *Is that a lot?*

    Parameters
    ----------
    found : Audit
        The audit of Cox on ``heart.csv``.
    """
    row = found.imparity.set_index("attribute").loc["gender"]
    guard(row["group"] == "gender = women", "the signed difference, women less men")
    guard(row["high"] < 0 and row["beyond_noise"], "there is a difference, and it is not noise")
    say("gap", f"{row['difference']:.1f}")
    say("gap-low", f"{row['low']:.1f}")
    say("gap-high", f"{row['high']:.1f}")
    say("floor", f"{row['noise_floor']:.1f}")
    by_group = found.table.set_index("group")
    for name in ("men", "women"):
        group = by_group.loc[f"gender = {name}"]
        say(f"c-{name}", f"{group['c_index']:.2f}")
        say(f"oe-{name}", f"{group['calibration']:.2f}")
        contains_one = group["calibration_low"] < 1 < group["calibration_high"]
        guard(contains_one, "expected numbers of deaths are about right for both")
    c = by_group["c_index"]
    guard(c["gender = men"] > c["gender = women"], "the model is less sure who of the women dies")


def tell_choice(chosen: Choice) -> None:
    """Section *Which α?*

    Parameters
    ----------
    chosen : Choice
        For the attribute gender.
    """
    table = chosen.table
    guard(chosen.alpha == 1, "plain Cox is the choice")
    robust = table.iloc[1:]
    best = robust.loc[robust["ci_percent"].idxmin()]
    guard(best["ci_low"] <= 0 <= best["ci_high"], "the interval of the difference contains 0")
    guard((table["ci_high"] >= 0).all(), "no α is fairer beyond noise")
    eligible = table.loc[table["eligible"], "ci_percent"]
    guard((eligible > 2).all(), "none of the robust models removes the gap")
    say("alpha", f"{best.name:g}")
    say("best-ci", f"{best['ci_percent']:.1f}")
    say("cox-ci", f"{table['ci_percent'].iloc[0]:.1f}")


def guard_search(found: Audit) -> None:
    """Section *Groups nobody named*: only large failures can be seen; none is.

    Parameters
    ----------
    found : Audit
    """
    guard(not found.slices["beyond_noise"].any(), "only large failures can be seen; none is")


def guard_page(status: int, page: str) -> None:
    """Section *All of it in one line*: the command's page.

    Parameters
    ----------
    status : int
        What the command returned.
    page : str
        The page that it wrote.
    """
    guard(status == 0 and "beyond noise" in page, "a plain sentence first")
    guard("http" not in page, "no other file")


def coverage() -> pd.DataFrame:
    """How often intervals held the truth in simulated data sets, by design and figure.

    Returns
    -------
    DataFrame
    """
    return pd.read_csv(COVERAGE)


def show_coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """Percent of intervals that held the truth, and of data sets whose differences all did.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`coverage`.

    Returns
    -------
    DataFrame
        A row for each design.
    """
    designs = rows[rows["censored"].notna()]
    index = ["groups", "censored", "kind", "sets"]
    wide = (100 * designs.set_index([*index, "figure"])["share"]).unstack("figure")
    columns = {}
    for ending, word in (("", ""), (", differences", "Δ")):
        for name, title in SHOWN_FIGURES.items():
            columns[word + title] = wide[f"{name}{ending}"]
    table = pd.DataFrame(columns).round(0).astype(int).reset_index()
    return table.assign(kind=table["kind"].map(SHORT_KINDS))


def tell_coverage(rows: pd.DataFrame) -> None:
    """Section *Is that a lot?*: how often the intervals hold the truth.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`coverage`.
    """
    designs = rows[rows["censored"].notna()]
    of_differences = designs["figure"].str.endswith(", differences")
    figures = designs.loc[~of_differences, "share"]
    guard(0.93 < figures.mean() < 0.97, "intervals of figures hold as often as they promise")
    guard(figures.min() >= 0.9, "those of single figures, by design")
    say("held-figures", f"{100 * figures.mean():.0f}")
    say("held-least", f"{100 * figures.min():.0f}")
    say("held-most", f"{100 * figures.max():.0f}")
    weights = designs["sets"]

    def together(figure: str, chosen: pd.Series | bool = True) -> float:
        """Share of all data sets in which the differences of an attribute hold together."""
        mine = (designs["figure"] == f"{figure}, differences") & chosen
        return float(np.average(designs.loc[mine, "share"], weights=weights[mine]))

    many = designs["groups"] == designs["groups"].max()
    for name in SHOWN_FIGURES:
        guard(together(name) > 0.93, f"differences in {name} hold together")
        guard(together(name, many) > 0.93, f"those of twenty small groups in {name}, too")
    for name, short in (("c_index", "c"), ("calibration", "oe"), ("auc", "auc")):
        say(f"held-{short}", f"{100 * together(name):.0f}")
    say("held-auc-many", f"{100 * together('auc', many):.0f}")
    error = np.sqrt(0.95 * 0.05 / weights[of_differences])
    close = designs.loc[of_differences, "share"] > 0.95 - 3 * error
    guard(close.all(), "differences of no design hold less often than chance explains")
    _tell_short_intervals(designs)
    _tell_false_alarms(rows)
    fewest = int(weights.min())
    say("held-sets", f"{fewest} to {int(weights.max())}")
    say("held-error", f"{100 * np.sqrt(0.95 * 0.05 / fewest):.0f}")


def _tell_short_intervals(designs: pd.DataFrame) -> None:
    """How many entries are low, how many would be by chance, and the figure that is too short."""
    of_differences = designs["figure"].str.endswith(", differences")
    judged = np.where(of_differences, designs["sets"], designs["sets"] * designs["groups"])
    fewer = np.ceil(SHORT * judged) - 1
    by_chance = stats.binom.cdf(fewer, judged, 0.95).sum()
    low = int((designs["share"] < SHORT).sum())
    guard(low < by_chance + 3 * np.sqrt(by_chance), "no more entries are low than by chance")
    say("entries", f"{len(designs)}")
    say("entries-low", f"{low}")
    say("entries-chance", f"{by_chance:.0f}")

    censored = designs[~of_differences & (designs["censored"] == designs["censored"].max())]
    size = censored["sets"] * censored["groups"]
    held = (censored["share"] * size).groupby(censored["figure"]).sum()
    held = held / size.groupby(censored["figure"]).sum()
    guard(held.idxmin() == "concordance", "concordance is the figure that holds least often")
    guard(held["concordance"] < 0.94, "its intervals are a little short")
    guard(held.drop("concordance").min() > 0.94, "those of no other figure are")
    say("held-concordance", f"{100 * held['concordance']:.0f}")


def _tell_false_alarms(rows: pd.DataFrame) -> None:
    """How often a difference is seen, or a group found, though there is none."""
    alarms = rows[rows["censored"].isna()].set_index("figure")
    share = alarms["share"]
    sets = int(alarms["sets"].iloc[0])
    apart = share["false alarm: c_index, any attribute"]
    together = share["false alarm: c_index, any, family-wise"]
    of_risks = share["false alarm: calibration, any, family-wise"]
    search = share["false alarm: search"]
    error = np.sqrt(0.05 * 0.95 / sets)
    guard(apart > 0.2, "of eight attributes one often stands out by chance")
    guard(max(together, of_risks, search) < 0.05 + 3 * error, "about as often as promised")
    say("alarm-sets", f"{sets}")
    say("alarm-apart", f"{100 * apart:.0f}")
    say("alarm-together", f"{100 * together:.0f}")
    say("alarm-together-oe", f"{100 * of_risks:.0f}")
    say("alarm-search", f"{100 * search:.0f}")
    say("alarm-error", f"{100 * error:.0f}")
