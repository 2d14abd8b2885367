"""The landing page: values for sentences, guards of the answer, and the picture of the verdict."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import norm

from drocox import load_runs
from drocox.bookstyle import guard, say
from drocox.chapters.sentences import BOTH_READINGS, SHORT, WRITTEN, lost_to_noise
from drocox.chapters.should_you_use_it import against_cox, clearly_better, clearly_worse
from drocox.paper import claims, tables

TITLES = {
    "as published": "as published (inferred choice)",
    "stated rule": "the paper's rule",
    "corrected": "corrected",
}
TOLD_THE_GROUPS = ("group weights", "group DRO", "group DRO by regret")


def tell_page(gaps: dict[str, pd.DataFrame]) -> None:
    """Every number on the page, and the guards of the answer.

    Parameters
    ----------
    gaps : dict of DataFrame
        Of :func:`leads_in_ci`.
    """
    league = load_runs("beyond").query("study == 'rivals'")
    tell_ci(gaps)
    tell_fit(tables.fidelity_cells())
    tell_theory()
    tell_answer(against_cox_in_both_readings())
    tell_rivals(league.set_index(["dataset", "method"]))


def leads_in_ci() -> dict[str, pd.DataFrame]:
    """Leads of the best DRO variant over the best baseline in CI, in three views.

    Returns
    -------
    dict of DataFrame
    """
    return {view: claims.leads(view, metric="ci_percent", pairs=claims.PAIRS) for view in TITLES}


def draw_verdict(gaps: dict[str, pd.DataFrame]) -> Figure:
    """CI of the best DRO variant minus that of the best baseline, with intervals.

    Parameters
    ----------
    gaps : dict of DataFrame
        Of :func:`leads_in_ci`.

    Returns
    -------
    Figure
    """
    names = list(gaps["corrected"].index)
    figure, axes = plt.subplots(
        1, 3, figsize=(8.6, 3.6), sharey=True, sharex=True, layout="constrained"
    )
    for panel, (view, leads) in zip(axes, gaps.items(), strict=True):
        for name, (lead, half, _) in leads.iterrows():
            better = lead > 0
            colour = "C0" if better else "C1"
            panel.errorbar(
                -lead, -names.index(name), xerr=half, fmt="o" if better else "s",
                color=colour, mfc=colour if better else "none", ms=5,
            )  # fmt: skip
        panel.axvline(0, color="0.5", lw=1)
        ahead = (leads["mean"] > 0).sum()
        title = f"{TITLES[view]}:\nDRO ahead in {ahead} of {len(leads)}"
        panel.set_title(title, fontsize="medium")
    labels = []
    for name in names:
        dataset, attribute, model = name.split()
        labels.append(f"{WRITTEN[dataset]} {attribute}, {model}")
    axes[0].set_yticks([-y for y in range(len(names))], labels, fontsize="small")
    axes[1].set_xlabel("difference in CI, percentage points (left: DRO fairer)")
    return figure


def tell_ci(gaps: dict[str, pd.DataFrame]) -> None:
    """For "A DRO variant has the lowest CI in …" and "within their error".

    Parameters
    ----------
    gaps : dict of DataFrame
        Of :func:`leads_in_ci`.
    """
    for view, key in SHORT.items():
        say(f"{key}-3", claims.best(view, metric="ci_percent", pairs=claims.MAIN_PAIRS).value)
    names = list(gaps["corrected"].index)
    main = [name for name in names if tuple(name.split()[:2]) in claims.MAIN_PAIRS]
    guard(len(names) == 14, "of fourteen differences")
    guard(list(gaps["as published"].index) == main, "only where numbers were published")
    undecided = lost_to_noise(gaps["corrected"])
    guard(undecided >= 12, "most of fourteen differences are within their error")
    say("undecided", undecided)


def tell_fit(cells: pd.DataFrame) -> None:
    """For "All 62 published rows come back" and the cells by the paper's own rule.

    Parameters
    ----------
    cells : DataFrame
        Of :func:`drocox.paper.tables.fidelity_cells`.
    """
    recovered = cells[cells["recovered"]]
    rows = recovered.groupby(["exhibit", "model", "method"])["distance"].mean()
    all_rows = len(rows) == 62 and (rows <= 1).all()
    guard(all_rows, "All 62 published rows come back within one published SD on average")
    for rule, key in (("stated CI", "stated"), ("one setting CI", "one")):
        distance = cells.loc[cells["rule"] == rule, "distance"]
        say(f"within-{key}", f"{100 * (distance <= 1).mean():.0f}")


def tell_theory() -> None:
    """For the claims about data, theory and metrics."""
    verdicts = [
        claims.verdict(claim, claims.JUDGES[name](claims.CHECKED))
        for name, claim in claims.claims().items()
        if claim["kind"] == "mathematics"
    ]
    say("theory", len(verdicts))
    say("hold", verdicts.count("reproduced"))
    say("partly", verdicts.count("partly"))


def tell_answer(leads: dict[tuple[str, str], pd.DataFrame]) -> None:
    """For the answer: fairness on one attribute at most, accuracy lost on SUPPORT.

    Parameters
    ----------
    leads : dict of DataFrame
        DRO-COX against Cox by view and metric ("ci_percent" and "c_index"), both readings.
    """
    for view in BOTH_READINGS:
        ci = leads[view, "ci_percent"]
        clear = clearly_better(ci) + clearly_worse(ci)
        attributes = {name.rsplit(" ", 1)[0] for name in clear}
        guard(attributes <= {"support age"}, "not fairer on any but one of seven attributes")
        c = leads[view, "c_index"]
        on_support = [name for name in clearly_worse(c) if name.startswith("support")]
        guard(len(on_support) == 6 and not clearly_better(c), "lost accuracy on SUPPORT")


def against_cox_in_both_readings() -> dict[tuple[str, str], pd.DataFrame]:
    """What :func:`tell_answer` takes.

    Returns
    -------
    dict of DataFrame
    """
    return {
        (view, metric): against_cox(view, metric, claims.PAIRS)
        for view in BOTH_READINGS
        for metric in ("ci_percent", "c_index")
    }


def tell_rivals(league: pd.DataFrame) -> None:
    """For "Rivals who are told the groups did no better".

    Parameters
    ----------
    league : DataFrame
        The study of rivals, by data set and method.
    """
    rivals = league.index.unique("method").size - 1
    strict = norm.ppf(1 - 0.025 / rivals)  # all rivals at once
    cox = league.xs("Cox", level="method")["ci"].abs()
    for name in TOLD_THE_GROUPS:
        told = league.xs(name, level="method")
        beyond_noise = told["ci_diff"].abs() > strict * told["ci_diff_se"]
        better = beyond_noise & (told["ci"].abs() < cox)
        guard(not better.any(), "Rivals who are told the groups did no better")
