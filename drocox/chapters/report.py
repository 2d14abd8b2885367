"""The reproducibility report: every number on its page.

``cells`` is what :func:`drocox.paper.tables.fidelity_cells` gives, ``ledger`` what
:func:`drocox.paper.claims.ledger` gives.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drocox import dual_constant
from drocox.bookstyle import guard, say
from drocox.chapters.claims import agreed, of_experiments
from drocox.chapters.gaps import decided
from drocox.chapters.sentences import BOTH_READINGS, SHORT
from drocox.paper import claims, protocol, signed, store, tables

ROW = ["exhibit", "model", "method"]
SELECTIONS = {
    "recovered": "rules that fit",
    "stated": "the paper's rule",
    "one": "the paper's rule, one setting",
}
FARTHEST = 5  # published SDs on the figure's axis


def tell_page(cells: pd.DataFrame) -> None:
    """Every number on the page.

    Parameters
    ----------
    cells : DataFrame
    """
    points = pd.concat([tables.alpha_table(dataset) for dataset in protocol.ATTRIBUTES])
    ledger = claims.ledger().replace({"view": {new: old for old, new in claims.OLD.items()}})
    tell_fit(cells, points.dropna(subset="paper_mean"))
    tell_counts(ledger)
    tell_verdicts(ledger)
    tell_gaps({view: signed.gaps(view) for view in BOTH_READINGS})
    tell_cost(store.load_provenance(), store.load_runs())


def by_selection(cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The cells under three selections: recovered, stated, and one setting.

    Parameters
    ----------
    cells : DataFrame

    Returns
    -------
    dict of DataFrame
    """
    return {
        "recovered": cells[cells["recovered"]],
        "stated": cells[cells["rule"] == "stated CI"],
        "one": cells[cells["rule"] == "one setting CI"],
    }


def draw_distances(cells: pd.DataFrame) -> Figure:
    """How many cells come back: the share within so many published SDs, by choice of models.

    Parameters
    ----------
    cells : DataFrame

    Returns
    -------
    Figure
    """
    figure, panel = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    styles = ("-", "--", ":")
    for (name, part), style in zip(by_selection(cells).items(), styles, strict=True):
        distance = np.sort(part["distance"].to_numpy())
        share = 100 * np.arange(1, len(distance) + 1) / len(distance)
        panel.step(distance, share, where="post", ls=style, lw=2, label=SELECTIONS[name])
    panel.axvline(1, color="0.4", lw=1)
    panel.set(
        xlim=(0, FARTHEST), ylim=(0, 100), ylabel="cells (%)",
        xlabel="distance from the printed mean, in printed SDs",
    )  # fmt: skip
    panel.legend(loc="lower right")
    return figure


def tell_fit(cells: pd.DataFrame, points: pd.DataFrame) -> None:
    """For "Do the published numbers come back?".

    Parameters
    ----------
    cells : DataFrame
    points : DataFrame
        Tables of F1, as published, rows with a printed mean.
    """
    kinds = by_selection(cells)
    for name, part in kinds.items():
        rows = part.groupby(ROW)["distance"].mean()
        say(f"cells-{name}", f"{100 * (part['distance'] <= 1).mean():.0f}")
        say(f"rows-{name}", int((rows <= 1).sum()))
    recovered = kinds["recovered"]
    distance = recovered.groupby(ROW)["distance"].mean()
    say("cells", len(recovered))
    say("rows", len(distance))
    guard((distance <= 1).all(), "All rows do, within one published standard deviation on average")
    by_test = recovered[recovered["rule"].str.startswith("test")]
    guard(by_test.groupby(ROW).ngroups == 2, "two look at test data")
    gap = (points["mean"] - points["paper_mean"]).abs() / points["paper_std"]
    say("points", len(points))
    say("points-within", int((gap <= 1).sum()))


def tell_counts(ledger: pd.DataFrame) -> None:
    """For "Is DRO fairer?" and "Claims about experiments": counts in six views.

    Parameters
    ----------
    ledger : DataFrame
    """
    compared = [
        ("ci_percent", claims.MAIN_PAIRS),
        ("ci_percent", claims.PAIRS),
        ("f_a", claims.PAIRS),
    ]
    for view, key in SHORT.items():
        rows = ledger[ledger["view"] == view]
        verdicts = rows["verdict"].value_counts()
        three = [verdicts.get(word, 0) for word in ("reproduced", "partly", "not")]
        say(f"{key}-counts", " / ".join(str(number) for number in three))
        say(f"{key}-open", int(rows["undecided"].sum()))
        for metric, pairs in compared:
            count = claims.best(view, metric=metric, pairs=pairs, tune_by=metric)
            say(f"{key}-{metric}-{len(pairs)}", count.value)
    checked = ledger.loc[ledger["view"] == claims.CHECKED, "verdict"].value_counts()
    say("checked-reproduced", int(checked.get("reproduced", 0)))
    say("checked-partly", int(checked.get("partly", 0)))


def tell_verdicts(ledger: pd.DataFrame) -> None:
    """For "What remains?" and what the other reading changes.

    Parameters
    ----------
    ledger : DataFrame
    """
    wide = of_experiments(ledger)
    verdict = wide["verdict"]
    say("experiments", len(verdict))
    say("by-reading", int((verdict["stated rule"] != verdict["one setting"]).sum()))
    expected = {"C4": "not", "C6": "reproduced", "C9": "reproduced", "C11": "not"}
    four = dict(agreed(wide, BOTH_READINGS)) == expected
    guard(four, "four verdicts are decided and the same in both readings: C9, C6; not C4, C11")
    say("protects", f"{100 / dual_constant(0.1, rule='paper') ** 2:.1f}")


def tell_gaps(gaps_by_view: dict[str, pd.DataFrame]) -> None:
    """For "Is DRO fairer?": what signed gaps say.

    Parameters
    ----------
    gaps_by_view : dict of DataFrame
        Of :func:`drocox.paper.signed.gaps`, both readings.
    """
    for table in gaps_by_view.values():
        moved = decided(table)
        guard(
            moved == ["support age linear"], "the gap moves beyond noise on SUPPORT (age), linear"
        )
        words = table.loc[moved, ["alone", "together"]].to_numpy().tolist()
        expected = [[signed.CLOSER, signed.MOVED]]
        guard(words == expected, "closer to equal if looked at alone, over all fourteen moved")
    table = gaps_by_view["corrected"]
    say("undecided", len(table) - len(decided(table)))
    firm = table.loc["support age linear"]
    say("firm", f"{firm['difference']:+.2f} ± {firm['difference_half']:.2f}")
    power = signed.power(table).drop("support age linear")
    say("power-most", f"{100 * power['closer_point'].max():.0f}")


def tell_cost(record: dict[str, dict], runs: pd.DataFrame) -> None:
    """For the table of costs, and the share of unstable runs.

    Parameters
    ----------
    record : dict
        Of :func:`drocox.paper.store.load_provenance`.
    runs : DataFrame
        Stored runs, as published.
    """
    for name in protocol.PROTOCOLS:
        say(f"{name}-models", f"{record[name]['rows']:,}")
        say(f"{name}-wall", f"{record[name]['wall_minutes']:.0f}")
        say(f"{name}-core", f"{record[name]['core_hours']:.1f}")
        say(f"{name}-peak", f"{record[name]['peak_gb_per_worker']:.1f}")
    # an hour of one core is half an hour of two
    idle = [30 * record[name]["core_hours"] for name in protocol.PROTOCOLS]
    say("idle", " and ".join(f"{minutes:.0f}" for minutes in idle))
    say("cores", record["as_published"]["cores"])
    say("machine", record["as_published"]["machine"])
    nonlinear = runs.loc[runs["model"] == "nonlinear", "unstable"]
    say("unstable", f"{100 * nonlinear.mean():.0f}")
