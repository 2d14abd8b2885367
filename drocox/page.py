"""The audit as one HTML page: no script, style, font or picture from elsewhere; names escaped.

``page.html`` beside this module holds the layout and the words that are on every page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from drocox.report import Audit

HEADINGS = {
    "concordance": "Concordance",
    "c_index": "c-index within",
    "calibration": "Observed / expected",
    "mean_risk": "Mean risk",
}


def _table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table whose cells, given as HTML, carry their headings for narrow screens."""
    heads = [escape(head) for head in heads]
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    body = ""
    for row in rows:
        cells = zip(heads, row, strict=True)
        body += "<tr>" + "".join(f'<td data-label="{h}"><div>{c}</div></td>' for h, c in cells)
        body += "</tr>\n"
    return f"<table><caption>{caption}</caption><thead><tr>{top}</tr></thead>\n{body}</table>"


def _number(value: float, low: float, high: float, digits: int) -> str:
    """A value with its interval on the next line; a dash for what does not exist."""
    if value != value:
        return "–"
    said = "" if low != low else f"<span>{low:.{digits}f} to {high:.{digits}f}</span>"
    return f"{value:.{digits}f}{said}".replace("-", "−")


def _differences(caption: str, table: pd.DataFrame) -> str:
    """A table of signed differences."""
    rows = []
    for row in table.itertuples():
        verdict = '<b class="bad">yes</b>' if row.beyond_noise else "no"
        size = _number(row.difference, row.low, row.high, 1)
        name = f"{escape(row.group)} less {escape(row.versus)}"
        rows.append([name, size, f"{row.noise_floor:.1f}", verdict])
    return _table(caption, ["Pair", "Difference", "Noise floor", "Beyond noise"], rows)


def _forest(table: pd.DataFrame) -> str:
    """Concordance of every group as a picture, 400 wide, a line of text above each interval."""
    table = table[table["concordance"].notna()].reset_index()
    low = min(0.5, table[["concordance", "concordance_low"]].min(axis=None))
    high = max(0.8, table[["concordance", "concordance_high"]].max(axis=None))

    def x(value: float) -> float:
        return round(10 + 380 * (value - low) / (high - low), 1)

    bottom = 36 * len(table) + 8
    drawn = []
    for row in table.itertuples():
        y = 36 * row.Index + 14
        label = row.group if len(row.group) <= 60 else row.group[:59] + "…"
        drawn.append(f'<text x="10" y="{y}">{escape(label)}</text>')
        if row.concordance_low == row.concordance_low:
            ends = f'x1="{x(row.concordance_low)}" x2="{x(row.concordance_high)}"'
            drawn.append(f'<line {ends} y1="{y + 9}" y2="{y + 9}" stroke-width="2"/>')
        drawn.append(f'<circle cx="{x(row.concordance)}" cy="{y + 9}" r="4"/>')
    middle = x(table["concordance"][0])
    drawn.append(f'<path d="M{middle} 0V{bottom}" stroke-dasharray="2 4"/>')
    for k in range(11):
        if low <= k / 10 <= high:
            place = f'x="{x(k / 10)}" y="{bottom + 12}" text-anchor="middle"'
            drawn.append(f"<text {place}>{k / 10:.1f}</text>")
    alt = "; ".join(f"{row.group} {row.concordance:.2f}" for row in table.itertuples())
    said = escape(f"Concordance of each group: {alt}.")
    return (
        f'<figure><svg viewBox="0 0 400 {bottom + 18}" role="img" aria-label="{said}">'
        + "".join(drawn)
        + "</svg><figcaption>Concordance, 95 % interval; dotted: everybody.</figcaption></figure>"
    )


def _section(title: str, audit: Audit) -> str:
    """Everything about one model."""
    rows = []
    for _, row in audit.table.iterrows():
        cells = [escape(row["group"]), f"{row['patients']:,}", f"{row['events']:,}"]
        for name in HEADINGS:
            cells.append(_number(row[name], row[f"{name}_low"], row[f"{name}_high"], 2))
        rows.append(cells)
    found = "Worst groups found by search, judged on other patients"
    return "\n".join(
        [
            f"<h2>{escape(title)}</h2>" if title else "",
            f'<p class="lead">{escape(audit.sentence)}</p>',
            _forest(audit.table),
            _differences("Concordance imparity: differences between groups", audit.ci),
            _table("Groups", ["Group", "Patients", "Events", *HEADINGS.values()], rows),
            _differences(found, audit.slices) if len(audit.slices) else f"<p>{found}: none.</p>",
        ]
    )


def page(audits: Mapping[str, Audit]) -> str:
    """The audits of one or several models as a page.

    Parameters
    ----------
    audits : mapping of str to Audit
        By the name of the model, which may be empty.

    Returns
    -------
    str
        HTML.
    """
    first = next(iter(audits.values()))
    template = files("drocox").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        name=escape(first.name),
        patients=f"{first.table['patients'][0]:,}",
        events=f"{first.table['events'][0]:,}",
        sections="\n".join(_section(title, audit) for title, audit in audits.items()),
    )
