"""What decks, sheets and notebooks of the course take from the book, and their Markdown as HTML.

What the book has is not written again but fetched by a reference; ``course.py`` lists them.
"""

import base64
import functools
import html
import itertools
import re

import formulas
import numpy as np
import plain
import twins
import yaml
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode
from plain import ROOT

TEACHING = ROOT / "book" / "teaching"
ONE_BY_ONE = "one by one"
REFERENCE = re.compile(
    r"\{(glue:text|formula|figure|explore|exercise|quiz|rows|answer|asks)\}`([^`]+)`"
)
CAPTION = re.compile(r"\*\*(Fig\. [\d.]+):\*\* (.*)", re.DOTALL)


def source(name: str) -> str:
    """A source of the course, such as "slides/session-1.md"."""
    return (TEACHING / name).read_text(encoding="utf8")


# What is fetched from the book


@functools.cache
def executed_page(page: str) -> NotebookNode:
    """The executed notebook of a chapter, named as "method/dual"."""
    path = ROOT / "book" / f"{page}.ipynb"
    if not path.exists():
        raise LookupError(f"the course refers to {page!r}, and no chapter is called so")
    return twins.load(path)


def all_executed() -> list[NotebookNode]:
    """The executed notebooks of all chapters, in the order of the book."""
    pages = [page.relative_to(ROOT / "book").with_suffix("") for page in twins.chapters()]
    return [executed_page(page.as_posix()) for page in pages]


def fetched(text: str) -> str:
    """Markdown with its references replaced by their targets, as Markdown or HTML."""
    fetch = {"glue:text": number, "formula": formula, "figure": figure, "explore": explorable}
    fetch["asks"] = lambda numbers: ""
    return REFERENCE.sub(lambda found: fetch[found[1]](*found[2].split(" :: ")), text)


def number(page: str, name: str) -> str:
    """A number of a chapter's text."""
    values = plain.values(executed_page(page))
    return plain.Page(ROOT / "book" / f"{page}.md", values).text(name)


def formula(label: str) -> str:
    """A formula of the book, with its number."""
    if label not in plain.labels():
        raise LookupError(f"the course refers to {label!r}, and no formula is called so")
    name, page = plain.labels()[label]
    text = page.read_text(encoding="utf8")
    tex = re.search(rf"\$\$((?:(?!\$\$).)*?)\$\$ \({re.escape(label)}\)", text, re.DOTALL)
    return f"$$\n{tex[1].strip()} \\tag{{{name}}}\n$$"


def figure(label: str, steps: str = "") -> str:
    """A figure of the book with its caption; panels may be shown in later steps, or one by one."""
    for notebook in all_executed():
        for cell, below in itertools.pairwise(notebook.cells):
            if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == label:
                name, words = CAPTION.fullmatch(below.source).groups()
                words = rendered(unlinked(words), inline=True)
                if steps == ONE_BY_ONE:
                    picture = panels(cell, label)
                else:
                    step = re.findall(r"\d+", steps)
                    picture = stepwise(cell, label, step) if step else shown(cell)
                caption = f"<figcaption><b>{name}</b> <span>{words}</span></figcaption>"
                return one_block(f'<figure class="quoted">{picture}{caption}</figure>')
    raise LookupError(f"the course refers to {label!r}, and no figure is called so")


def explorable(kind: str, start: str = "") -> str:
    """An explorable of the book by the name of its script, perhaps with another start."""
    for notebook in all_executed():
        for cell in twins.code_cells(notebook):
            for output in cell.outputs:
                if f'data-explore="{kind}"' in output.get("data", {}).get("text/html", ""):
                    return started(shown(cell), start.split())
    raise LookupError(f"the course refers to {kind!r}, and no chapter has such an explorable")


def started(markup: str, words: list[str]) -> str:
    """An explorable with ``name=value`` in its data; words without a value are classes."""
    names = [word for word in words if "=" not in word]
    values = [word.split("=") for word in words if "=" in word]
    for name, value in values:
        markup, count = re.subn(rf'("{name}":)-?[\d.]+', rf"\g<1>{float(value)}", markup)
        if count != 1:
            raise LookupError(f"the course sets {name!r}, and the explorable has no such number")
    return markup.replace('class="explore"', f'class="{" ".join(["explore", *names])}"')


def described(cell: NotebookNode) -> str:
    """The alternative text of a cell's picture."""
    return html.escape(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", ""))


def shown(cell: NotebookNode) -> str:
    """The output of an executed cell, as HTML."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if "scrapbook" in output.get("metadata", {}):
            continue  # a value for the text
        if twins.SVG in data:
            svg = base64.b64encode(data[twins.SVG].encode()).decode()
            parts.append(f'<img alt="{described(cell)}" src="data:image/svg+xml;base64,{svg}">')
        else:
            text = html.escape(output.get("text") or data.get("text/plain", ""))
            parts.append(data.get("text/html") or f"<pre>{text}</pre>")
    return one_block(f'<div class="output">{"".join(parts)}</div>')


def stepwise(cell: NotebookNode, name: str, steps: list[str]) -> str:
    """A picture as part of the page, some of whose panels are shown in later steps."""
    svg = svg_of(cell)
    for step in steps:
        panel = f'<g id="axes_{step}"'
        if panel not in svg:
            raise LookupError(f"{name} has no panel {step}")
        svg = svg.replace(panel, f'{panel} class="fragment"')
    return f'<div class="output">{with_own_ids(svg, name)}</div>'


def panels(cell: NotebookNode, name: str) -> str:
    """A picture whose panels fill the slide one after the other; on paper the whole picture.

    A panel is cut out with the margins of the picture, so it needs tick labels of its own. Names
    that panels share are left out; the slide says them.
    """
    svg = svg_of(cell)
    boxes = boxes_of(svg)
    size = np.array(re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups(), float)
    every = np.array(list(boxes.values()))
    near, far = every[:, :2].min(axis=0), size - every[:, 2:].max(axis=0)
    views = []
    for place, (panel, box) in enumerate(boxes.items()):
        corner, opposite = box[:2] - near, box[2:] + far
        window = " ".join(f"{number:.2f}" for number in (*corner, *(opposite - corner)))
        shown = "fragment current-visible" if place else "first"
        view = re.sub(r'viewBox="[^"]*"', f'viewBox="{window}" class="{shown}"', svg, count=1)
        others = rf'^  <g id="(?!{panel}")'  # all that stands beside it in the picture
        view = re.sub(others, '  <g visibility="hidden" id="', view, flags=re.MULTILINE)
        views.append(with_own_ids(view, f"{name}-{place}"))
    views.append(with_own_ids(svg, name))
    return one_block(f'<div class="output panels">{"".join(views)}</div>')


def boxes_of(svg: str) -> dict[str, np.ndarray]:
    """The panels of matplotlib's picture by their ids, each as left, top, right, bottom."""
    found = {}
    frame = r'^  <g id="(axes_\d+)">\s*<g id="patch_\d+">\s*<path d="([^"]*)"'
    for panel, path in re.findall(frame, svg, re.MULTILINE):
        corners = np.reshape([float(n) for n in re.findall(r"[\d.]+", path)], (-1, 2))
        found[panel] = np.concatenate([corners.min(axis=0), corners.max(axis=0)])
    return found


def svg_of(cell: NotebookNode) -> str:
    """The picture that an executed cell has drawn, with its description."""
    svg = next(o.data[twins.SVG] for o in cell.outputs if twins.SVG in o.get("data", {}))
    label = f'<svg role="img" aria-label="{described(cell)}" '
    return svg[svg.index("<svg") :].replace("<svg ", label, 1)


def with_own_ids(svg: str, name: str) -> str:
    """A picture whose ids begin with a name, as a page has other pictures beside it."""
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)


def one_block(text: str) -> str:
    """HTML without empty lines, at which a block of HTML ends for Markdown."""
    return re.sub(r"\n\s*\n", "\n", text)


def unlinked(text: str) -> str:
    """Markdown in which links are replaced by their text."""
    return re.sub(r"(?<!!)\[([^][]*)\]\([^()\s]*\)", r"\1", text)


# Markdown


@functools.cache
def parser(mathml: bool = False) -> MarkdownIt:
    """Markdown with tables and formulas."""

    def typeset(content: str, options: dict) -> str:
        return formulas.typeset(content, options["display_mode"], mathml)

    markdown = MarkdownIt("commonmark").enable("table")
    markdown.use(dollarmath_plugin, renderer=typeset, allow_space=True)
    markdown.core.ruler.push("steps", step_by_step)
    markdown.core.ruler.push("hold", hold)
    return markdown


def rendered(text: str, inline: bool = False, mathml: bool = False) -> str:
    """Markdown as HTML. Items of lists with ``+`` or ``1)`` are shown one by one."""
    return parser(mathml).renderInline(text) if inline else parser(mathml).render(text)


def step_by_step(state: StateCore) -> None:
    """Mark the items of lists with ``+`` or ``1)`` for reveal.js."""
    for token in state.tokens:
        if token.type == "list_item_open" and token.markup in {"+", ")"}:
            token.attrJoin("class", "fragment")


def hold(state: StateCore) -> None:
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


@functools.cache
def colophon() -> str:
    """Title, authors, address and licence, from CITATION.cff."""
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))
    authors = ", ".join(each["name"] for each in about["authors"])
    words = f"{about['title']}. {authors}. {plain.base()} Text and figures: CC BY 4.0, code: MIT."
    return f'<p class="colophon">{html.escape(words)}</p>'


def title(text: str) -> str:
    """The first heading of a Markdown text."""
    return re.search(r"^# (.*)$", text, re.MULTILINE)[1]
