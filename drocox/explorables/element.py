"""The HTML of an explorable: its data as JSON, and the chapter's figure for when no script runs."""

import html
import io
import json
import re
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from drocox.paper.tables import Shown

DIGITS = re.compile(r"(\d+\.\d)\d+")  # a tenth of a point is enough for a place
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "drocox"}


def element(kind: str, name: str, *, title: str, alt: str, figure: Figure, data: Mapping) -> Shown:
    """An explorable run by ``book/_static/explore/<kind>.js``, with the id ``explore-<name>``.

    The figure is shown until the script replaces it. Equal input gives equal bytes.
    """
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    packed = packed.replace("</", "<\\/")
    markup = f"""\
<figure class="explore" id="explore-{name}" data-explore="{kind}" aria-label="{html.escape(title)}">
<div class="explore-pictures" role="img" aria-label="{html.escape(alt)}">
<div class="explore-picture">{picture(figure)}</div></div>
<script type="application/json">{packed}</script>
</figure>"""
    return Shown(markup, f"interactive figure: {alt}")


def picture(figure: Figure) -> str:
    """A figure as an inline SVG; it is closed, so that a notebook does not show it once more.

    Black becomes the colour of the page's text, so that the picture is readable on a dark
    background.
    """
    written = io.StringIO()
    about = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with plt.rc_context(STYLE):
        figure.savefig(written, format="svg", metadata=about, transparent=True)
    plt.close(figure)
    svg = written.getvalue()
    svg = re.sub(r"\s+", " ", svg[svg.index("<svg ") :])
    # Only ids that something refers to: a page may hold several pictures.
    used = set(re.findall(r"#(\w+)[\")]", svg))
    svg = re.sub(r' id="(\w+)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: DIGITS.sub(r"\1", tag[0]), svg)
    svg = svg.replace("#000000", "currentColor").replace("> <", "><")
    size = f'style="display:block;max-width:{100 * figure.get_figwidth():.0f}px"'
    return re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>',
        rf'<svg \1 width="100%" {size} fill="currentColor">',
        svg,
        count=1,
    )


def rounded(values: np.ndarray | Sequence, digits: int = 6) -> list:
    """Nested lists of numbers, rounded to ``digits`` significant digits."""
    return [
        rounded(value, digits) if np.ndim(value) else float(f"{value:.{digits}g}")
        for value in values
    ]
