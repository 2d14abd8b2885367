"""The element that every explorable is, and its inputs.

The element is a ``figure`` that holds a picture (of :mod:`drocox.explorables.svg`), the inputs
(hidden until a script works them), a read-out and the data as JSON. ``book/_ext/explore.py`` gives
a page the scripts it needs.
"""

import json
from collections.abc import Mapping, Sequence

from drocox.explorables.svg import escape

MOST_DATA = 400_000  # characters of JSON in a page


class Explorable:
    """HTML of an explorable, with a sentence in its place where only text is shown."""

    def __init__(self, markup: str, description: str) -> None:
        self.markup = markup
        self.description = description

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return f"<interactive figure: {self.description}>"


def element(
    kind: str,
    name: str,
    *,
    title: str,
    alt: str,
    pictures: Sequence[str],
    inputs: Sequence[str],
    readout: str,
    data: Mapping,
    prompt: str = "",
) -> Explorable:
    """Put the parts of an explorable together.

    Parameters
    ----------
    kind : str
        Name of its script in ``book/_static/explore``.
    name : str
        Unique in the chapter; the HTML id is ``explore-<name>``.
    title : str
        What the whole is called.
    alt : str
        What the picture shows, for those who do not see it.
    pictures : sequence of str
        Each an ``svg`` element, of :func:`drocox.explorables.svg.picture`.
    inputs : sequence of str
        HTML of the inputs, which only a script shows.
    readout : str
        HTML of the numbers below the picture, read aloud when they change.
    data : mapping
        What the script computes from.
    prompt : str
        HTML of what there is to do; only a script shows it.

    Returns
    -------
    Explorable
        Equal input gives equal bytes.
    """
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    if len(packed) > MOST_DATA:
        raise ValueError(f"{len(packed)} characters of data: take fewer values or fewer points")
    shown = "".join(f'<div class="explore-picture">{svg}</div>' for svg in pictures)
    task = f'<p class="explore-prompt" hidden>{prompt}</p>' if prompt else ""
    named = f'id="explore-{name}" data-explore="{kind}" aria-label="{escape(title)}"'
    markup = f"""\
<figure class="explore" {named}>{task}
<div class="explore-pictures" role="img" aria-label="{escape(alt)}">{shown}</div>
<div class="explore-inputs" hidden>{"".join(inputs)}</div>
<p class="explore-readout" aria-live="polite">{readout}</p>
<script type="application/json">{packed}</script>
</figure>"""
    return Explorable(markup, alt)


def output(name: str, text: str) -> str:
    """A place in the read-out that the script fills anew.

    Parameters
    ----------
    name : str
    text : str
        What it shows at first.

    Returns
    -------
    str
    """
    return f'<span class="explore-value" data-out="{name}">{escape(text)}</span>'


def range_input(
    figure: str,
    name: str,
    label: str,
    low: float,
    high: float,
    step: float,
    value: float,
    text: str,
) -> str:
    """A slider with its label and the value that it shows.

    Parameters
    ----------
    figure, name : str
        Name of the explorable, and of the input within it.
    label : str
        HTML.
    low, high, step, value : float
    text : str
        The value as text.

    Returns
    -------
    str
    """
    key = f"explore-{figure}-{name}"
    return (
        f'<div class="explore-range"><label for="{key}">{label}</label>'
        f'<input type="range" id="{key}" data-in="{name}" min="{low:g}" max="{high:g}"'
        f' step="{step:g}" value="{value:g}" aria-valuetext="{escape(text)}">'
        f'<span class="explore-value" aria-hidden="true" data-out="{name}">{escape(text)}</span>'
        "</div>"
    )


def choice(figure: str, name: str, label: str, options: Mapping[str, str], chosen: str) -> str:
    """A list to choose one option from, with its label.

    Parameters
    ----------
    figure, name : str
        Name of the explorable, and of the input within it.
    label : str
        HTML.
    options : mapping of str to str
        Value to what is shown.
    chosen : str
        The value chosen at first.

    Returns
    -------
    str
    """
    key = f"explore-{figure}-{name}"
    entries = ""
    for value, shown in options.items():
        mark = " selected" if value == chosen else ""
        entries += f'<option value="{escape(value)}"{mark}>{escape(shown)}</option>'
    return (
        f'<div class="explore-choice"><label for="{key}">{label}</label>'
        f'<select id="{key}" data-in="{name}">{entries}</select></div>'
    )


def checkbox(figure: str, name: str, label: str, checked: bool) -> str:
    """A box to tick, with its label.

    Parameters
    ----------
    figure, name : str
        Name of the explorable, and of the input within it.
    label : str
        HTML.
    checked : bool

    Returns
    -------
    str
    """
    key = f"explore-{figure}-{name}"
    mark = " checked" if checked else ""
    return (
        f'<div class="explore-check"><input type="checkbox" id="{key}" data-in="{name}"{mark}>'
        f'<label for="{key}">{label}</label></div>'
    )


def button(name: str, label: str) -> str:
    """A button.

    Parameters
    ----------
    name, label : str

    Returns
    -------
    str
    """
    return f'<button type="button" data-do="{name}">{label}</button>'
