"""What decks and sheets quote from the chapters, so that nothing is written twice.

Their sources, in book/teaching/, are Markdown. Formulas, figures, sliders, exercises and numbers
are not written there but fetched from where the book has them:

    {glue:text}`method/dual :: dual-active`    a number of a chapter's text
    {value}`loss-A`                            a number of :mod:`drocox.chapters.course`
    {output}`method/dual :: beside(`           what the cell with these words in its code shows
    {formula}`eq-dual-bound`                   a formula by its label
    {figure}`fig-next`                         a figure with its caption, by its label
    {figure}`fig-next :: step 4`               the same; its fourth panel is shown in a second step
    {explore}`dual :: fig-dual-six`            an explorable by the name of its script, live;
                                               where no chapter shows it, a figure or an output
"""

import base64
import functools
import html
import itertools
import re
from pathlib import Path

import formulas
import nbformat
import plain
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from drocox.chapters import course as numbers

REFERENCE = re.compile(r"\{(glue:text|value|formula|figure|output|explore)\}`([^`]+)`")
CAPTION = re.compile(r"\*\*(Fig\. [\d.]+):\*\* (.*)", re.DOTALL)


class Chapters:
    """What can be quoted; chapters are named without "book/", such as "method/dual"."""

    def __init__(self, root=plain.ROOT):
        self.root = root
        self.sources = {
            page.relative_to(root / "book").with_suffix("").as_posix(): page
            for page in plain.pages(root)
        }
        self.executed = [
            name for name, page in self.sources.items() if page.with_suffix(".ipynb").exists()
        ]
        self.twin = functools.cache(self.twin)

    def twin(self, name):
        """The executed notebook of a chapter."""
        if name not in self.sources:
            raise LookupError(f"a deck or sheet refers to {name!r}, and no chapter is called so")
        return nbformat.read(self.sources[name].with_suffix(".ipynb"), as_version=4)

    def fill(self, text):
        """The text with its references replaced by what they stand for."""
        return REFERENCE.sub(self.fetch, text)

    def fetch(self, found):
        """What a reference stands for, as Markdown or HTML."""
        kind, what = found.groups()
        name, _, key = what.partition(" :: ")
        if kind == "value":
            return numbers.values()[what]
        if kind == "formula":
            return self.formula(what)
        if kind == "figure":
            return self.figure(name, steps=[int(number) for number in re.findall(r"\d+", key)])
        if kind == "explore":
            return self.explorable(name) or self.instead(key)
        if kind == "output":
            return self.output(name, key)
        twin = self.twin(name)
        return plain.Page(self.sources[name], plain.values(twin), self.root).text(key)

    def formula(self, label):
        """A formula of the book by its label, with its number."""
        if label not in plain.labels(self.root):
            raise LookupError(f"a deck or sheet refers to {label!r}, and no formula is called so")
        number, page = plain.labels(self.root)[label]
        text = page.read_text(encoding="utf8")
        tex = re.search(rf"\$\$((?:(?!\$\$).)*?)\$\$ \({re.escape(label)}\)", text, re.DOTALL)
        return f"$$\n{tex[1].strip()} \\tag{{{number}}}\n$$"

    def figure(self, label, steps=()):
        """A figure of the book by its label, with its number and caption.

        Parameters
        ----------
        label : str
        steps : list of int
            Panels, counted from 1, that appear one after the other.

        Returns
        -------
        str
            HTML
        """
        for name in self.executed:
            cells = self.twin(name).cells
            for place, cell in enumerate(cells):
                if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == label:
                    return framed(cell, cells[place + 1].source, steps)
        raise LookupError(f"a deck or sheet refers to {label!r}, and no figure is called so")

    def explorable(self, kind):
        """An explorable of the book by the name of its script; None if no chapter shows it."""
        for name in self.executed:
            for cell in self.twin(name).cells:
                if f'data-explore="{kind}"' in "".join(markup(cell)):
                    return shown(cell)
        return None

    def instead(self, key):
        """What stands for an explorable that no chapter shows: a figure, or a cell's output."""
        name, _, words = key.partition(" :: ")
        return self.output(name, words) if words else self.figure(name)

    def output(self, name, words):
        """What the last cell of a chapter shows that has some words in its code."""
        cells = [c for c in self.twin(name).cells if c.cell_type == "code" and words in c.source]
        if not cells:
            raise LookupError(f"a deck or sheet refers to {words!r} in {name}; no cell has it")
        return shown(cells[-1])


def markup(cell):
    """The HTML among the outputs of a cell."""
    return [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", [])]


def framed(cell, caption, steps=()):
    """Picture and caption of a figure as HTML."""
    number, words = CAPTION.fullmatch(caption).groups()
    key = rendered(unlinked(words), inline=True)
    picture = shown(cell) if not steps else stepwise(cell, steps)
    return one_block(
        f'<figure class="quoted">{picture}<figcaption><b>{number}</b> {key}</figcaption></figure>'
    )


def described(cell):
    """The words that describe a cell's picture."""
    return html.escape(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", ""))


def shown(cell):
    """What an executed cell shows, as HTML; pictures with the words that describe them."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if "scrapbook" in output.get("metadata", {}):
            continue  # a value for the text
        if "image/svg+xml" in data:
            svg = base64.b64encode(data["image/svg+xml"].encode()).decode()
            parts.append(f'<img alt="{described(cell)}" src="data:image/svg+xml;base64,{svg}">')
        else:
            text = html.escape(output.get("text") or data.get("text/plain", ""))
            parts.append(data.get("text/html") or f"<pre>{text}</pre>")
    if not parts:
        raise LookupError(f"a deck or sheet refers to a cell that shows nothing: {cell.source!r}")
    return one_block(f'<div class="output">{"".join(parts)}</div>')


def stepwise(cell, steps):
    """A picture as part of the page, some of whose panels are shown in later steps."""
    svg = next(o.data["image/svg+xml"] for o in cell.outputs if "image/svg+xml" in o.data)
    svg = svg[svg.index("<svg") :]
    name = cell.metadata["mystnb"]["figure"]["name"]
    for step in steps:
        panel = f'<g id="axes_{step}"'
        if panel not in svg:
            raise LookupError(f"{name} has no panel {step}")
        svg = svg.replace(panel, f'{panel} class="fragment"')
    # Ids are unique in a picture, not in a page of many.
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{described(cell)}" ', 1)
    return f'<div class="output">{svg}</div>'


def one_block(text):
    """HTML without empty lines, at which a block of HTML ends for Markdown."""
    return re.sub(r"\n\s*\n", "\n", text)


def unlinked(text):
    """Markdown whose links are only their words."""
    return re.sub(r"(?<!!)\[([^][]*)\]\([^()\s]*\)", r"\1", text)


@functools.cache
def parser():
    """Markdown with tables and formulas."""
    markdown = MarkdownIt("commonmark").enable("table")
    markdown.use(dollarmath_plugin, renderer=_tex, allow_space=True)
    markdown.core.ruler.push("steps", _steps)
    markdown.core.ruler.push("hold", _hold)
    return markdown


def rendered(text, inline=False):
    """Markdown as HTML. Lists with ``+`` or ``1)`` are shown step by step."""
    return parser().renderInline(text) if inline else parser().render(text)


def _tex(content, options):
    return formulas.typeset(content, options["display_mode"])


def _steps(state):
    """Mark the items of lists with ``+`` or ``1)``, which reveal.js then shows one by one."""
    for token in state.tokens:
        if token.type == "list_item_open" and token.markup in {"+", ")"}:
            token.attrJoin("class", "fragment")


def _hold(state):
    """Let brackets and commas that touch a formula in a line belong to it: see formulas.hold."""
    for block in state.tokens:
        for before, token in itertools.pairwise(block.children or []):
            if before.type == "text" and token.type == "math_inline":
                opening = formulas.OPENING.search(before.content)
                if opening:
                    token.content = rf"\text{{{opening[0]}}}{token.content}"
                    before.content = before.content[: opening.start()]
            if before.type == "math_inline" and token.type == "text":
                closing = formulas.CLOSING.match(token.content)
                if closing:
                    before.content = rf"{before.content}\text{{{closing[0]}}}"
                    token.content = token.content[closing.end() :]


def of_teaching(name, root=plain.ROOT):
    """A source of the course, such as "slides/session-1.md"."""
    return (Path(root) / "book" / "teaching" / name).read_text(encoding="utf8")
