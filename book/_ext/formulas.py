"""Sphinx extension: formulas are typeset during the build; pages need no script for them.

KaTeX, a file beside the book, turns TeX into HTML, and into MathML for screen readers. It runs in
the JavaScript engine of the package ``mini-racer``. Slides use the same function.

A formula that KaTeX cannot parse is a warning that names the chapter, hence an error of the build.
"""

import html
import re
from functools import cache
from pathlib import Path

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

KATEX = Path(__file__).resolve().parents[1] / "_static" / "katex"
NEEDED = ("KaTeX_Main-Regular", "KaTeX_Math-Italic")  # fonts of nearly every formula
OPENING = re.compile(r"[(\[“]+$")
CLOSING = re.compile(r"(?:[-–.,;:!?)\]”…]|[’']s?)+")
logger = logging.getLogger(__name__)


class FormulaError(ValueError):
    """TeX that KaTeX cannot parse; the message says where it stopped."""


@cache
def engine() -> MiniRacer:
    """A JavaScript engine that knows KaTeX."""
    context = MiniRacer()
    context.eval((KATEX / "katex.min.js").read_text(encoding="utf8"))
    return context


@cache
def typeset(tex: str, display: bool = False, mathml: bool = False) -> str:
    """HTML of an inline formula or of a display; or MathML, which needs no style."""
    options = {"displayMode": display, "throwOnError": True, "strict": "ignore"}
    if mathml:
        options["output"] = "mathml"
    try:
        return engine().call("katex.renderToString", tex, options)
    except JSEvalException as error:
        message = str(error).split("KaTeX parse error: ")[-1].splitlines()[0]
        raise FormulaError(f"{message} in {tex!r}") from None


def aligned(tex: str) -> str:
    """TeX of a display as Sphinx means it: paragraphs and lines are set below each other."""
    parts = [part for part in tex.split("\n\n") if part.strip()]
    lines = [
        rf"\begin{{aligned}}{part}\end{{aligned}}" if r"\\" in part else part for part in parts
    ]
    if len(lines) == 1:
        return lines[0]
    return r"\begin{gathered}" + r"\\".join(lines) + r"\end{gathered}"


def _typeset(node: nodes.Element, tex: str, display: bool = False) -> str:
    try:
        return typeset(tex, display)
    except FormulaError as error:
        logger.warning("formula: %s", error, location=node)
        return html.escape(tex)


def hold(app, doctree, docname):
    """On doctree-resolved. Keep characters that touch an inline formula on its line.

    Browsers break a line between a formula and the comma after it, or the bracket before it.
    """
    for node in list(doctree.findall(nodes.math)):
        siblings = node.parent.children
        place = siblings.index(node)
        before = siblings[place - 1] if place > 0 else None
        after = siblings[place + 1] if place + 1 < len(siblings) else None
        tex = node.astext()
        if isinstance(before, nodes.Text) and (opening := OPENING.search(before)):
            tex = rf"\text{{{opening[0]}}}{tex}"
            node.parent[place - 1] = nodes.Text(before[: opening.start()])  # texts may be equal
        if isinstance(after, nodes.Text) and (closing := CLOSING.match(after)):
            tex = rf"{tex}\text{{{closing[0]}}}"
            node.parent[place + 1] = nodes.Text(after[closing.end() :])
        node[:] = [nodes.Text(tex)]


def visit_inline(translator, node):
    """Write an inline formula."""
    start = translator.starttag(node, "span", "", CLASS="math notranslate nohighlight")
    translator.body.append(start + _typeset(node, node.astext()) + "</span>")
    raise nodes.SkipNode


def visit_display(translator, node):
    """Write a displayed formula with its number."""
    body = translator.body
    body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, _("Link to this equation"))
        body.append("</span>")
    tex = node.astext() if node["nowrap"] else aligned(node.astext())
    body.append(_typeset(node, tex, display=True))
    body.append("</div>\n")
    raise nodes.SkipNode


def load_fonts(app, pagename, templatename, context, doctree):
    """On html-page-context. Preload the fonts of formulas."""
    if 'class="katex"' not in context.get("body", ""):
        return
    for name in NEEDED:
        address = context["pathto"](f"_static/katex/fonts/{name}.woff2", resource=True)
        link = f'<link rel="preload" as="font" type="font/woff2" href="{address}" crossorigin />'
        context["metatags"] += f"\n{link}"


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    app.add_css_file("katex/katex.css")
    app.connect("doctree-resolved", hold)
    app.connect("html-page-context", load_fonts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
