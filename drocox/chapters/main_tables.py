"""The chapter on T2 to T4: the tables, the first figure, and the sentences beside them.

``found`` is what the chapter computes first: a table for each exhibit and view. What the paper
observes in them is counted in :mod:`drocox.chapters.main_tables_observations`.
"""

import numpy as np
import pandas as pd

import drocox
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import SHORT, by_method, dashed, keep, within_one_sd
from drocox.paper import claims, store, tables
from drocox.paper.prepare import prepare

MAIN_EXHIBITS = {"t2": "FLC (age)", "t3": "SUPPORT (gender)", "t4": "SEER (race)"}
FAMILY = {
    "plain": ("C0", "s"),
    "penalised": ("grey", "o"),
    "DRO-COX": ("C1", "D"),
    "SPLIT": ("C2", "^"),
}  # colour and marker
VIEW_LABELS = ("as pub-\nlished", "paper's\nrule", "cor-\nrected")
Tables = dict[tuple[str, str], pd.DataFrame]


def keep_tables(found: Tables) -> None:
    """Lay out T2 to T4 in all views.

    Parameters
    ----------
    found : dict
        By exhibit and view: tables of :func:`drocox.paper.tables.main_table`.
    """
    for (exhibit, view), table in found.items():
        caption = f"{MAIN_EXHIBITS[exhibit]}, {view}"
        shown = tables.show(table, caption, distances="corrected" not in view)
        keep(f"{exhibit}-{dashed(view)}", shown)


def tell_figure(found: Tables) -> None:
    """For what the figure shows of the linear methods, as published.

    Parameters
    ----------
    found : dict
        As in :func:`keep_tables`.
    """
    for exhibit in MAIN_EXHIBITS:
        ci = by_method(found[exhibit, "as published"], "ci_percent")
        of_dro = ci[claims.DRO["linear"]].min()
        guard(of_dro < ci[claims.BASELINES["linear"]].min(), "a DRO variant is the fairest")


# How to read the tables; T2 to T4


def tell_tables(found: Tables) -> None:
    """For the sentences below the figure and beside each table.

    Parameters
    ----------
    found : dict
        As in :func:`keep_tables`.
    """
    for exhibit in MAIN_EXHIBITS:
        for view in ("stated rule", "one setting"):
            say(f"{exhibit}-close-{SHORT[view]}", within_one_sd(found[exhibit, view]))
        corrected = found[exhibit, "corrected"]
        cox = by_method(corrected, "c_index")["Cox"]
        say(f"{exhibit}-cox", f"{cox:.3f}")
        say(f"{exhibit}-above", f"{5 * cox / (cox - 0.5):.0f} %")
        mean = by_method(corrected, "ci_percent")
        sd = by_method(corrected, "ci_percent", "std").median()
        say(f"{exhibit}-low", f"{mean.min():.2f}")
        say(f"{exhibit}-high", f"{mean.max():.2f}")
        printed = by_method(corrected, "ci_percent", "paper_mean")
        say(f"{exhibit}-low-printed", f"{printed.min():.2f}")
        say(f"{exhibit}-sd", f"{sd:.2f}")
        published_sd = by_method(found[exhibit, "stated rule"], "ci_percent", "std").median()
        guard(sd > 1.5 * published_sd, "The median SD of CI grows")
        if exhibit != "t3":
            is_narrow = mean.max() - mean.min() < sd
            guard(is_narrow, "on FLC and SEER all 16 means lie within a band narrower than one SD")
    close = [within_one_sd(found[exhibit, "as published"]) for exhibit in MAIN_EXHIBITS]
    guard(close == [16, 16, 16], "all 48 rows are within 1 SD of the printed one on average")


def tell_groups() -> None:
    """For the shares of groups and of events in the sentences on T2 to T4; the sweep's cost."""
    for exhibit in MAIN_EXHIBITS:
        dataset, attribute, _ = tables.EXHIBITS[exhibit]
        data = drocox.load_dataset(dataset)
        codes = data.groups[attribute]
        share = codes.mean()
        say(f"{exhibit}-share", f"{100 * min(share, 1 - share):.0f} %")
        rates = [100 * data.event[codes == group].mean() for group in (0, 1)]
        say(f"{exhibit}-rates", "{:.0f} % and {:.0f} %".format(*rates))
    tests = [prepare("corrected", "seer", repeat).test for repeat in (1, 2, 3)]
    patients = [(test.groups["race"] == 0).sum() for test in tests]
    events = [test.event[test.groups["race"] == 0].sum() for test in tests]
    say("t4-few", f"{np.mean(patients):.0f}")
    say("t4-few-events", f"{np.mean(events):.0f}")
    hours = [record["core_hours"] for record in store.load_provenance().values()]
    say("core-hours", f"{sum(hours):.1f}")


def tell_flc(table: pd.DataFrame, chosen: pd.DataFrame) -> None:
    """For the sentences on T2, corrected: the lowest CI, and an F_I that one repeat makes.

    Parameters
    ----------
    table : DataFrame
        T2, corrected.
    chosen : DataFrame
        The runs behind it.
    """
    blown = chosen.loc[chosen["method"] == "DeepSurv_cap(Keya)", "test_f_i"]
    say("blown-mean", f"{blown.mean():.0f}")
    say("blown-max", f"{blown.max():.0f}")
    guard(blown.max() > 0.9 * blown.sum(), "The F_I of DeepSurv_cap comes from one repeat of ten")
    linear = by_method(table[table["model"] == "linear"], "ci_percent")
    guard(linear.idxmin() == "Cox", "The lowest of the linear methods is plain Cox")
    guard(by_method(table, "ci_percent").min() > 1, "what each new test part adds does not average")


def tell_support(found: Tables) -> None:
    """For the sentences on T3: linear DRO methods have the lowest CI, at a price.

    Parameters
    ----------
    found : dict
        As in :func:`keep_tables`.
    """
    c = by_method(found["t3", "corrected"], "c_index")
    say("t3-dro", f"{c['DRO-COX']:.3f}")
    say("t3-given", f"{100 * (c['Cox'] - c['DRO-COX']) / (c['Cox'] - 0.5):.0f} %")
    for view in ("stated rule", "corrected"):
        ci = by_method(found["t3", view], "ci_percent")
        best_baseline = ci[claims.BASELINES["linear"]].min()
        is_lower = ci[claims.DRO["linear"]].max() < best_baseline
        guard(is_lower, "Both linear DRO methods have a lower CI than all linear baselines")
    say("t3-lead", f"{best_baseline - ci['DRO-COX']:.2f}")  # corrected
