"""Should you use it? Values for sentences and guards on DRO-COX against plain Cox."""

import numpy as np
import pandas as pd
from scipy.stats import norm

from drocox.bookstyle import guard, say
from drocox.chapters.sentences import BOTH_READINGS, by_method
from drocox.data import SurvivalData
from drocox.paper import claims

KEYS = dict(zip(BOTH_READINGS, ("", "-one"), strict=True))  # ends of names of values


def tell_ladder(ladder: dict[float, float]) -> None:
    """For what α protects.

    Parameters
    ----------
    ladder : dict
        By alpha: the share of the smallest group that the printed constant protects.
    """
    for alpha in (0.1, 0.2, 0.5):
        say(f"share-{alpha}", f"{100 * ladder[alpha]:.1f}".removesuffix(".0"))
    shown = [f"{100 * share:.2g}" for share in ladder.values()]
    expected = ["0.61", "1.5", "3", "8.4", "18", "33"]
    guard(shown == expected, "which is far less than α")


def against_cox(
    view: str, metric: str, pairs: list[tuple[str, str]], tune_by: str = "ci_percent"
) -> pd.DataFrame:
    """DRO-COX minus plain Cox (DeepSurv), positive where DRO-COX is better.

    Parameters
    ----------
    view : str
    metric : str
    pairs : list of (data set, attribute)
    tune_by : {"ci_percent", "f_a"}
        What both were tuned by.

    Returns
    -------
    DataFrame
        By comparison: mean, half-width and what could be detected.
    """
    return claims.leads(
        view, metric=metric, pairs=pairs, tune_by=tune_by, ours=claims.DRO_COX,
        theirs=claims.UNPENALISED,
    )  # fmt: skip


def clearly_better(lead: pd.DataFrame) -> list[str]:
    """Comparisons whose interval lies above 0.

    Parameters
    ----------
    lead : DataFrame
        Of :func:`against_cox`.

    Returns
    -------
    list of str
    """
    return list(lead.index[lead["mean"] > lead["half"]])


def clearly_worse(lead: pd.DataFrame) -> list[str]:
    """Comparisons whose interval lies below 0.

    Parameters
    ----------
    lead : DataFrame
        Of :func:`against_cox`.

    Returns
    -------
    list of str
    """
    return list(lead.index[lead["mean"] < -lead["half"]])


def all_leads() -> dict[tuple[str, str], pd.DataFrame]:
    """DRO-COX against Cox in fourteen comparisons, in both readings.

    Returns
    -------
    dict of DataFrame
        By view and metric: tuned by CI; "f_a" tuned by F_A.
    """
    leads = {}
    for view in BOTH_READINGS:
        for metric in ("ci_percent", "c_index", "lpl", "ibs"):
            leads[view, metric] = against_cox(view, metric, claims.PAIRS)
        leads[view, "f_a"] = against_cox(view, "f_a", claims.PAIRS, tune_by="f_a")
    return leads


def tell_evidence(leads: dict[tuple[str, str], pd.DataFrame]) -> None:
    """For the answer, and the list of CI, F_A, c-index and survival curves.

    Parameters
    ----------
    leads : dict of DataFrame
        Of :func:`all_leads`.
    """
    for view, key in KEYS.items():
        ci = leads[view, "ci_percent"]
        better = clearly_better(ci)
        attributes = {name.rsplit(" ", 1)[0] for name in better}
        guard(attributes <= {"support age"}, "not fairer on any but one of seven attributes")
        guard(not clearly_worse(ci), "in favour of DRO-COX and on SUPPORT (age) only")
        say(f"ci-better{key}", len(better))

        c = leads[view, "c_index"]
        worse = clearly_worse(c)
        say(f"c-worse{key}", len(worse))
        guard(not clearly_better(c), "nowhere is the c-index clearly higher")
        on_support = [name for name in worse if name.startswith("support")]
        guard(len(on_support) == 6, "lost accuracy on SUPPORT")
        elsewhere = [name for name in worse if name not in on_support]
        expected = ["seer race linear"] if view == "corrected, one setting" else []
        guard(elsewhere == expected, "all on SUPPORT (one setting: also SEER race, linear)")

        f_a = leads[view, "f_a"]
        say(f"fa-better{key}", len(clearly_better(f_a)))
        guard(not clearly_worse(f_a), "F_A is nowhere clearly higher")
        for metric in ("lpl", "ibs"):
            behind = int((leads[view, metric]["mean"] < 0).sum())
            say(f"{metric}-behind{key}", behind)
            guard(behind >= 11, "survival curves are worse nearly throughout")
    corrected = leads["corrected", "ci_percent"]
    small = corrected["mean"].abs() < corrected["detectable"]
    guard(small.mean() > 0.5, "most differences in CI are smaller than what these data could show")


def tell_detectable(lead: pd.DataFrame) -> None:
    """For the differences that could be seen, and the patients that smaller ones would need.

    Parameters
    ----------
    lead : DataFrame
        Of :func:`against_cox`, in CI, main comparisons, corrected.
    """
    detectable = lead["detectable"]
    say("detectable", f"{detectable.min():.1f} to {detectable.max():.1f}")
    needed = (detectable / 0.5) ** 2  # errors fall like one over the root of the patients
    say("needed", f"{needed.min():.0f} to {needed.max():.0f}")


def tell_support(table: pd.DataFrame) -> None:
    """For the c-index on SUPPORT (gender).

    Parameters
    ----------
    table : DataFrame
        T3, corrected.
    """
    c = by_method(table, "c_index")
    say("c-cox", f"{c['Cox']:.3f}")
    say("c-dro", f"{c['DRO-COX']:.3f}")


def beyond_noise(rivals: pd.DataFrame, name: str) -> pd.Series:
    """Differences to Cox whose interval, for all rivals at once, excludes 0.

    Parameters
    ----------
    rivals : DataFrame
        Methods other than Cox, by data set and method.
    name : {"ci", "c"}

    Returns
    -------
    Series
    """
    count = rivals.index.get_level_values("method").nunique()
    strict = norm.ppf(1 - 0.025 / count)
    difference = rivals[f"{name}_diff"]
    noise = np.maximum(strict * rivals[f"{name}_diff_se"], 1e-9)
    return difference[difference.abs() > noise]


def tell_rivals(league: pd.DataFrame) -> None:
    """For "concordance came closer to equal in none" of the comparisons with rivals.

    Parameters
    ----------
    league : DataFrame
        The study of rivals, by data set and method.
    """
    rivals = league.drop("Cox", level="method")
    cox = league.xs("Cox", level="method")["ci"].abs()
    moved_ci = beyond_noise(rivals, "ci")
    closer = [key for key in moved_ci.index if abs(league.loc[key, "ci"]) < cox[key[0]]]
    guard(not closer, "concordance came closer to equal in none")
    moved_c = beyond_noise(rivals, "c")
    guard((moved_c < 0).all(), "ranked worse, none better")
    guard(("support", "DRO-COX") in moved_c.index, "DRO-COX ranked worse on SUPPORT")
    say("rivals-compared", len(rivals))
    say("rivals-c", len(moved_c))


def tell_planted(c: pd.DataFrame) -> None:
    """For planted minorities that Cox misjudges.

    Parameters
    ----------
    c : DataFrame
        c-index of the minority: design by method.
    """
    gain = c["DRO-COX"] - c["Cox"]
    lack = c["minority alone"] - c["Cox"]
    only = gain.drop("other-early").max() < 0.03 < gain["other-early"]
    guard(only, "gained from DRO-COX only where they also die early")
    say("hidden-gain", f"{gain['other-early']:.2f}")
    say("hidden-lack", f"{lack['other-early']:.2f}")


def tell_shrunk(shrunk: pd.DataFrame) -> None:
    """For "Multiplied by that factor, Cox has as low an F_A".

    Parameters
    ----------
    shrunk : DataFrame
        By data set: the scale, and the c-index of DRO-COX and of Cox.
    """
    guard((shrunk["scale"] < 1).all(), "F_A falls when scores shrink")
    kept = shrunk["c, Cox"] > shrunk["c, DRO-COX"] - 0.005
    guard(kept.all(), "its c-index and CI do not move at all")


def tell_few_events(test: SurvivalData) -> None:
    """For the events among the smaller group of a test part of SEER.

    Parameters
    ----------
    test : SurvivalData
    """
    smaller = test.groups["race"] == 0
    say("few-events", int(test.event[smaller].sum()))
