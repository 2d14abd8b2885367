"""The panel of the landing page: what DRO-COX does to fourteen gaps, in three views.

It is plain HTML: a list for each view, dots and intervals placed by percentages, radio buttons that
say which list is seen. Style does the rest, so it works without scripts, on a phone and on paper,
and starts with the view that conclusions come from.
"""

import html
from typing import NamedTuple

import pandas as pd

from drocox.chapters.gaps import comparison
from drocox.chapters.sentences import with_minus
from drocox.paper import signed


class View(NamedTuple):
    """One of the panel's views."""

    key: str  # in ids
    button: str
    words: str  # what one looks at


# by the name of the view in the ledger; the last is shown first
PANEL_VIEWS = {
    "as published": View(
        "published",
        "as published",
        "Chosen by rules that give the printed numbers back; one test set.",
    ),
    "stated rule": View(
        "rule", "the paper’s rule", "Chosen by the rule that the paper states; still one test set."
    ),
    "corrected": View(
        "corrected", "corrected", "The procedure put right: a new test set in every repeat."
    ),
}
STARTS = "corrected"
SHORT_WORDS = {
    signed.CLOSER: "closer to equal",
    signed.FARTHER: "farther",
    signed.MOVED: "moved",
    signed.UNDECIDED: "undecided",
}

STYLE = """
.gap-panel { max-width: 46rem; margin: 0.5rem 0; padding-right: 0.8rem;
  font-size: 0.88rem; line-height: 1.25; }
.gap-panel p { margin: 0.35rem 0; line-height: 1.35; }
.gap-panel .views { display: flex; flex-wrap: wrap; gap: 0.3rem 0.4rem; align-items: center; }
.gap-panel .views input { position: absolute; opacity: 0; pointer-events: none; }
.gap-panel .views label { margin: 0; padding: 0.2rem 0.7rem; cursor: pointer;
  border: 1px solid currentColor; border-radius: 1rem; }
.gap-panel .views input:checked + label { color: var(--pst-color-background, #fff);
  background: var(--pst-color-primary, #005a8f); border-color: var(--pst-color-primary, #005a8f); }
.gap-panel .views input:focus-visible + label { outline: 2px solid currentColor;
  outline-offset: 2px; }
.gap-panel:has(#panel-published:checked) .view:not(.view-published),
.gap-panel:has(#panel-rule:checked) .view:not(.view-rule),
.gap-panel:has(#panel-corrected:checked) .view:not(.view-corrected) { display: none; }
.gap-panel ul { list-style: none; max-width: none; margin: 0; padding: 0; }
.gap-panel p { max-width: none; }
.gap-panel .word { white-space: nowrap; }
.gap-panel li { display: grid; grid-template-columns: 12.4rem 1fr 7.4rem; gap: 0.6rem;
  margin: 0; line-height: 1.32; }
.gap-panel .strip { position: relative; min-height: 1.3em; }
.gap-panel .strip > * { position: absolute; top: 50%; }
.gap-panel .strip::before { content: ""; position: absolute; left: 50%; top: 0; bottom: 0;
  border-left: 1px solid currentColor; opacity: 0.55; }
.gap-panel .line { height: 3px; margin-top: -1.5px; background: currentColor; opacity: 0.5; }
.gap-panel .dot { width: 0.62em; height: 0.62em; margin: -0.31em; border-radius: 50%;
  border: 2px solid currentColor; background: var(--pst-color-background, #fff); }
.gap-panel .sure .line, .gap-panel .sure .dot { color: var(--dc-1, #c35500); opacity: 1; }
.gap-panel .sure .dot { background: currentColor; }
.gap-panel .sure { font-weight: 600; }
.gap-panel .axis .strip::before { border: none; }
.gap-panel .axis .strip > * { transform: translate(-50%, -50%); white-space: nowrap; }
@media (max-width: 576px) {
  .gap-panel .views label { padding: 0.2rem 0.5rem; font-size: 0.8rem; }
  .gap-panel li { grid-template-columns: 10.6rem 1fr; font-size: 0.76rem; }
  .gap-panel li .word { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); white-space: nowrap; }
}
@media print { .gap-panel .views { display: none; } }
"""


class Panel:
    """HTML of the panel; in plain text the number of moves in each view.

    Parameters
    ----------
    tables_by_view : dict of DataFrame
        Of :func:`drocox.paper.signed.gaps`, by the keys of :data:`PANEL_VIEWS`.
    """

    def __init__(self, tables_by_view: dict[str, pd.DataFrame]):
        self.tables_by_view = tables_by_view
        self.names = list(tables_by_view[STARTS].index)
        self.reach = max(largest_end(table) for table in tables_by_view.values())

    def _repr_html_(self) -> str:
        inputs = "".join(self._input(view) for view in PANEL_VIEWS)
        lists = "".join(self._list(view) for view in PANEL_VIEWS)
        buttons = f'<div class="views" role="radiogroup" aria-label="Which numbers">{inputs}</div>'
        return f'<style>{STYLE}</style>\n<div class="gap-panel">{buttons}{lists}</div>'

    def __repr__(self) -> str:
        counts = [f"{view} {beyond_noise(table)}" for view, table in self.tables_by_view.items()]
        return f"<panel of gaps that move beyond noise: {', '.join(counts)}>"

    def _input(self, name: str) -> str:
        """One of the three buttons."""
        view = PANEL_VIEWS[name]
        checked = " checked" if name == STARTS else ""
        control = f'<input type="radio" name="panel-view" id="panel-{view.key}"{checked}>'
        return f'{control}<label for="panel-{view.key}">{view.button}</label>'

    def _list(self, name: str) -> str:
        """All comparisons in one view."""
        view = PANEL_VIEWS[name]
        table = self.tables_by_view[name]
        rows = "".join(self._row(each, table) for each in self.names)
        title = (
            f"<p><b>Moved beyond noise: {beyond_noise(table)}.</b> {html.escape(view.words)}</p>"
        )
        return (
            f'<div class="view view-{view.key}">{title}'
            f'<ul aria-label="{view.button}">{rows}</ul>{self._axis()}</div>'
        )

    def _row(self, name: str, table: pd.DataFrame) -> str:
        """One comparison: its name, dot and interval, and a word."""
        label = f"<span>{comparison(name)}</span>"
        if name not in table.index:
            return (
                f'<li>{label}<span class="strip"></span><span class="word">not printed</span></li>'
            )
        row = table.loc[name]
        mean = row["difference"]
        half = row["difference_half"]
        left = self._percent(mean - half)
        width = self._percent(mean + half) - left
        numbers = with_minus(f"{mean:+.2f} ± {half:.2f}")
        strip = (
            f'<span class="strip" role="img" aria-label="{numbers}" title="{numbers}">'
            f'<span class="line" style="left:{left:.1f}%;width:{width:.1f}%"></span>'
            f'<span class="dot" style="left:{self._percent(mean):.1f}%"></span></span>'
        )
        kind = "" if row["alone"] == signed.UNDECIDED else ' class="sure"'
        word = f'<span class="word">{SHORT_WORDS[row["alone"]]}</span>'
        return f"<li{kind}>{label}{strip}{word}</li>"

    def _axis(self) -> str:
        """Numbers below the dots."""
        last = int(self.reach)
        marks = ""
        for tick in range(-last, last + 1, 2):
            number = with_minus(f"{tick:+d}") if tick else "0"
            marks += f'<span style="left:{self._percent(tick):.1f}%">{number}</span>'
        row = f'<li><span></span><span class="strip">{marks}</span><span class="word"></span></li>'
        return f'<ul class="axis" aria-hidden="true">{row}</ul>'

    def _percent(self, value: float) -> float:
        """Where a number of points lies, 0 at the left end and 100 at the right one."""
        return 50 + 50 * value / self.reach


def largest_end(table: pd.DataFrame) -> float:
    """The end of an interval that is farthest from 0.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drocox.paper.signed.gaps`.

    Returns
    -------
    float
    """
    return float((table["difference"].abs() + table["difference_half"]).max())


def beyond_noise(table: pd.DataFrame) -> str:
    """How many gaps move, "1 of 14": their interval, looked at alone, excludes 0.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drocox.paper.signed.gaps`.

    Returns
    -------
    str
    """
    moved = int((table["alone"] != signed.UNDECIDED).sum())
    return f"{moved} of {len(table)}"
