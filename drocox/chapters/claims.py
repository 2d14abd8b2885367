"""The ledger of claims: its three tables, values for sentences, and guards.

``ledger`` is what :func:`drocox.paper.claims.ledger` gives: a row per claim and view.
"""

import html
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.chapters.sentences import BOTH_READINGS, dashed
from drocox.paper import claims, signed

SHOWN_VIEWS = claims.IN_ORDER
MARK = {
    "reproduced": ("win", "✓"),
    "partly": ("part", "◐"),
    "not": ("loss", "✗"),
    "unknown": ("", "?"),
}  # class of the cell, and sign
LETTERS = {
    "F_A": "F<sub>A</sub>",
    "F_I": "F<sub>I</sub>",
    "F_G": "F<sub>G</sub>",
    "alpha": "α",
    "eta": "η",
    "gamma": "γ",
    "theta": "θ",
    "n2": "n₂",
}
# every claim in about five words
NAMES = {
    "C1": "Table 1, data sets",
    "C2": "linear DRO-COX: lowest CI",
    "C3": "Deep DRO-COX: lowest CI",
    "C4": "lowest CI, other attributes",
    "C5": "DRO-COX keeps accuracy",
    "C6": "neither DRO variant clearly better",
    "C7": "plain models accurate, unfair",
    "C8": "penalties fail some fairness metric",
    "C9": "accuracy rises with α",
    "C10": "fairness worsens with α",
    "C11": "tuned by F_A: lowest F_A",
    "C12": "splitting insensitive to its share",
    "C13": "two split losses beat one",
    "C14": "DRO often fairest",
    "C15": "α trades accuracy for fairness",
    "C16": "DRO risk bounds groups",
    "C17": "dual equals primal",
    "C18": "convex in η, few matter",
    "C19": "F_I zero means Lipschitz",
    "C20": "shrinking lowers F_I, F_G",
}
SHARES = {"reproduced": "C2", "partly": "C4", "not": "C1", "unknown": "0.8"}  # colours of verdicts
READINGS_OF = {"published": ("stated rule", "one setting"), "corrected": BOTH_READINGS}


# The tables


def _mark(row: pd.Series) -> str:
    """A verdict as a sign; in parentheses if undecided."""
    kind, sign = MARK[row["verdict"]]
    words = row["verdict"]
    if row["undecided"]:
        words += ", undecided"
        sign = f"({sign})"
    return f'<td class="{kind}" title="{words}">{sign}</td>'


def show_marks(ledger: pd.DataFrame) -> HTML:
    """All verdicts on claims about experiments, a sign each.

    Parameters
    ----------
    ledger : DataFrame

    Returns
    -------
    HTML
    """
    lines = ""
    for name, rows in ledger.groupby("id", sort=False):
        by_view = rows.set_index("view")
        if claims.CHECKED not in by_view.index:
            marks = "".join(_mark(by_view.loc[view]) for view in SHOWN_VIEWS)
            link = f'<a href="#{name.lower()}">{name}</a> {_letters(NAMES[name])}'
            lines += f"<tr><th>{link}</th>{marks}</tr>"
    head = "".join(f"<th>{view}</th>" for view in SHOWN_VIEWS)
    return HTML(
        '<table class="marks"><caption>The verdicts on claims about experiments</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _cell(row: pd.Series, number: str) -> str:
    """A verdict with its count, how often it recurs, and what a "not" could have detected."""
    kind, sign = MARK[row["verdict"]]
    unit = " %" if number.startswith("per cent") else f" of {row['of']}"
    value = f"{row['value']:.0f}{unit}" if row["of"] else "–"
    beside = []
    if not np.isnan(row["recurs"]):
        is_open = ", open" if row["undecided"] else ""
        beside.append(f"{100 * row['recurs']:.0f} %{is_open}")
    if row["detectable"]:
        beside.append(f"≥ {row['detectable']}")
    small = "".join(f"<br><small>{text}</small>" for text in beside)
    verdict = f'<span title="{row["verdict"]}">{sign}</span>'
    return f'<td class="{kind}" data-view="{row.name}">{verdict} {value}{small}</td>'


def _words(claim: dict) -> str:
    """A claim with its place in the paper, what is counted, and both thresholds."""
    needs = f"≥ {claim['reproduced']}"
    if "partly" in claim:
        needs += f" / {claim['partly']}"
    place = f"({claim['paper']}; {claim['number']}: {needs})"
    name = NAMES[claim["id"]]
    return _letters(f"<b>{name}.</b> {html.escape(claim['claim'])} <small>{place}</small>")


def _letters(words: str) -> str:
    """Greek letters and indices instead of their names."""
    for plain, letter in LETTERS.items():
        words = re.sub(rf"\b{plain}\b", letter, words)  # "eta", but not inside "theta"
    return words


def draw_verdicts(ledger: pd.DataFrame) -> Figure:
    """How many claims about experiments are reproduced, partly or not, in each view.

    Parameters
    ----------
    ledger : DataFrame

    Returns
    -------
    Figure
    """
    shown = ledger[ledger["view"].isin(SHOWN_VIEWS)]
    counts = shown.groupby("view")["verdict"].value_counts().unstack(fill_value=0)
    figure, panel = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
    for place, view in enumerate(SHOWN_VIEWS):
        left = 0
        for verdict, colour in SHARES.items():
            number = int(counts.loc[view].get(verdict, 0))
            panel.barh(-place, number, left=left, color=colour, alpha=0.75, height=0.7)
            if number:
                panel.text(left + number / 2, -place, number, ha="center", va="center")
            left += number
    panel.set_yticks([-place for place in range(len(SHOWN_VIEWS))], SHOWN_VIEWS)
    panel.set(xlabel="claims about experiments")
    panel.grid(visible=False)
    patches = [plt.Rectangle((0, 0), 1, 1, color=c, alpha=0.75) for c in SHARES.values()]
    figure.legend(patches, list(SHARES), loc="outside upper center", ncols=4)
    return figure


def show_claims(ledger: pd.DataFrame, kind: str) -> HTML:
    """Claims of one kind, each with its counts.

    Parameters
    ----------
    ledger : DataFrame
    kind : {"experiment", "mathematics"}

    Returns
    -------
    HTML
    """
    if kind == "experiment":
        views = SHOWN_VIEWS
        caption = "Claims about experiments"
    else:
        views = [claims.CHECKED]
        caption = "Claims about data, theory and metrics"
    lines = ""
    for name, claim in claims.claims().items():
        if claim["kind"] == kind:
            by_view = ledger[ledger["id"] == name].set_index("view")
            link = "../" + claim["chapter"].replace(".md", ".html")
            cells = "".join(_cell(by_view.loc[view], claim["number"]) for view in views)
            lines += (
                f'<tr id="{name.lower()}"><th><a href="{link}">{name}</a></th>'
                f'<td class="words">{_words(claim)}</td>{cells}</tr>'
            )
    head = "".join(f"<th>{view}</th>" for view in views)
    return HTML(
        f'<table class="ledger"><caption>{caption}</caption><thead><tr><th></th>'
        f'<th class="words">claim</th>{head}</tr></thead><tbody>{lines}</tbody></table>'
    )


# Values and guards


def of_experiments(ledger: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The ledger of claims about experiments as tables of claim by view.

    Parameters
    ----------
    ledger : DataFrame

    Returns
    -------
    dict of DataFrame
        By column of the ledger.
    """
    names = [name for name, claim in claims.claims().items() if claim["kind"] == "experiment"]
    wide = ledger.pivot(index="id", columns="view").loc[names]
    return {column: wide[column][SHOWN_VIEWS] for column in wide.columns.levels[0]}


def agreed(wide: dict[str, pd.DataFrame], views: tuple[str, str]) -> pd.Series:
    """Verdicts that are decided and the same in both readings of the paper's rule.

    Parameters
    ----------
    wide : dict of DataFrame
        Of :func:`of_experiments`.
    views : tuple of two str

    Returns
    -------
    Series of str
        By claim.
    """
    one, other = views
    verdict = wide["verdict"]
    undecided = wide["undecided"].astype(bool)
    same = verdict[one] == verdict[other]
    return verdict.loc[same & ~undecided[one] & ~undecided[other], one]


def tell_errors() -> None:
    """For the scatter of a mean of three repeats out of ten, and the error that is appropriate."""
    small = np.sqrt((1 / claims.SMALL) * (1 - claims.SMALL / 10))
    say("small-error", f"{small:.2f}")
    appropriate = np.sqrt(1 / 10 + claims.TESTED_PER_LEARNED["corrected"])
    say("nadeau-error", f"{appropriate:.2f}")


def tell_numbers(ledger: pd.DataFrame) -> None:
    """For "In numbers, reproduced / partly / not" and for the claims about theory.

    Parameters
    ----------
    ledger : DataFrame
    """
    for view in (*SHOWN_VIEWS, claims.CHECKED):
        counts = ledger.loc[ledger["view"] == view, "verdict"].value_counts()
        three = [counts.get(verdict, 0) for verdict in ("reproduced", "partly", "not")]
        name = view.replace(" ", "-")  # keeps the comma
        say(f"{name}-counts", "{} / {} / {}".format(*three))
        say(f"{name}-open", int(ledger.loc[ledger["view"] == view, "undecided"].sum()))
    say("checked-reproduced", counts["reproduced"])  # the last view
    say("checked-partly", counts["partly"])
    kinds = [claim["kind"] for claim in claims.claims().values()]
    say("experiments", kinds.count("experiment"))
    say("mathematics", kinds.count("mathematics"))
    where = ledger[ledger["view"] == claims.CHECKED].set_index("id")["where"]
    for name in ("C16", "C17"):
        say(name, where[name].replace("alpha", "α"))


def tell_readings(wide: dict[str, pd.DataFrame]) -> None:
    """For "What does not depend on the reading".

    Parameters
    ----------
    wide : dict of DataFrame
        Of :func:`of_experiments`.
    """
    verdict = wide["verdict"]
    for key, (one, other) in READINGS_OF.items():
        same = verdict[one] == verdict[other]
        say(f"same-{key}", int(same.sum()))
        say(f"differ-{key}", ", ".join(verdict.index[~same]) or "none")
        firm = agreed(wide, (one, other))
        say(f"firm-{key}", ", ".join(f"{name} {word}" for name, word in firm.items()))
    expected = {"C4": "not", "C6": "reproduced", "C9": "reproduced", "C11": "not"}
    four = dict(agreed(wide, BOTH_READINGS)) == expected
    guard(four, "Decided and the same in both readings are four: C9 and C6, not C4 and C11")
    for name in ("C4", "C6", "C9", "C11"):
        for view in BOTH_READINGS:
            unit = "%" if name == "C6" else f"of {wide['of'].loc[name, view]:.0f}"
            say(f"{name}-{dashed(view)}", f"{wide['value'].loc[name, view]:.0f} {unit}")
    say("C4-detectable", wide["detectable"].loc["C4", "corrected"])


def tell_exceptions(wide: dict[str, pd.DataFrame]) -> None:
    """For unknown verdicts, "Easy and hard claims" and "Where we fall short".

    Parameters
    ----------
    wide : dict of DataFrame
        Of :func:`of_experiments`.
    """
    verdict = wide["verdict"]
    four = verdict.loc[["C4", "C5", "C11", "C14"], ["printed", "as published"]]
    guard((four == "unknown").all(axis=None), "As published, four claims have no verdict")
    one = verdict.loc["C12", ["one setting", "corrected, one setting"]]
    fails = one["corrected, one setting"] == "not" and one["one setting"] != verdict.loc[
        "C12", "stated rule"
    ]  # fmt: skip
    guard(fails, "with one setting per share C12 fails")
    rising = wide["where"].loc["C10", "corrected"]
    guard("ci_percent" not in rising, "CI is what does not rise with α")
    ours = verdict["as published"]
    worse = (verdict["printed"] == "reproduced") & ~ours.isin(["reproduced", "unknown"])
    missed = list(verdict.index[worse])
    say("missed", ", ".join(missed))
    c3 = wide["value"].loc["C3"]
    fewer = "C3" in missed and c3["printed"] == 3 and c3["as published"] == 1
    guard(fewer, "Our runs as published do worse than the print on C3")


def tell_words(rows: pd.DataFrame) -> None:
    """For what signed gaps say in fourteen comparisons.

    Parameters
    ----------
    rows : DataFrame
        View by word: in how many of fourteen comparisons :func:`drocox.paper.signed.gaps` says it.
    """
    undecided = rows[signed.UNDECIDED]
    for view, key in zip(BOTH_READINGS, ("undecided", "undecided-one"), strict=True):
        say(key, undecided[view])
        guard(undecided[view] > 10, "neither 'fairer' nor 'not fairer' can be read from them")
    published = rows.loc[list(READINGS_OF["published"])]
    more = published[signed.UNDECIDED].max() < undecided[list(BOTH_READINGS)].min() - 3
    guard(more, "On the published test set far more is decided")
    both = published[[signed.CLOSER, signed.FARTHER]].sum().gt(0).all()
    guard(both, "On the published test set, in both directions")
