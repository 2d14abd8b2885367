"""Sphinx extension: what a page says about itself, and how its wide parts are marked.

Each page gets a description for search engines and previews, made from its first paragraph, and ids
that are its only ones. Chapters of the method show where in its diagram they are. Wide tables and
pictures are marked for the style sheet. The search knows Greek letters by name and lists chapters
in their order. The footer tells version and licences.
"""

import html
import re
import tomllib
import unicodedata
from collections import defaultdict
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.search.en import SearchEnglish

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 200  # characters of a description; search engines show about 160, previews up to 200
OWN_STYLE = re.compile(r'<table[^>]*class="[^"]*\b(results|ledger|marks)\b')
COLUMN = 690  # pixels for the text where there is a margin
SENTENCE = 28  # characters from which on a cell is made of several lines
LABEL = 20  # the same for what stands at the left of a row
WIDE_PICTURE = 500  # points. Narrower ones can be read on a phone when they are made to fit it
# Which box of the diagram of the method, by its id in the picture, a chapter is about.
BOXES = {
    "book/foundations/survival-data": "patients",
    "book/foundations/cox-loss": "losses",
    "book/foundations/deep-cox": "scores",
    "book/method/worst-case": "weights",
    "book/method/dual": "weights",
    "book/method/who-gets-the-weight": "weights",
    "book/method/dro-cox": "step",
    "book/method/split": "losses",
}


def latin(letter):
    """The name of a Greek letter, such as "alpha"; empty for any other character."""
    found = re.fullmatch(r"GREEK (?:SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(letter, ""))
    return found.group(1).lower().replace("lamda", "lambda") if found else ""


class SearchWithGreek(SearchEnglish):
    """Index of English in which every Greek letter also counts as its name."""

    def split(self, input):
        """Words of a text, then the names of its Greek letters."""
        return super().split(input) + list(filter(None, map(latin, input)))


def readable(tex):
    """A short formula as text: Greek letters stay, other commands and braces go."""

    def symbol(command):
        name = command.group(1)
        letter = "CAPITAL" if name[0].isupper() else "SMALL"
        name = name.upper().replace("LAMBDA", "LAMDA")
        try:
            return unicodedata.lookup(f"GREEK {letter} LETTER {name}")
        except KeyError:
            return "ℓ" if name == "ELL" else ""

    return re.sub(r"[{}\\]", "", re.sub(r"\\([A-Za-z]+)\s?", symbol, tex))


def description(doctree):
    """The first sentences of the first paragraph that stands in no box; empty if there is none."""
    paragraphs = doctree.findall(nodes.paragraph)
    first = next((p for p in paragraphs if isinstance(p.parent, nodes.section)), None)
    if first is None:
        return ""
    pieces = [
        readable(text) if isinstance(text.parent, nodes.math) else text
        for text in first.findall(nodes.Text)
    ]
    words = " ".join("".join(pieces).split())
    if len(words) <= LENGTH:
        return words
    sentences = re.match(rf".{{60,{LENGTH - 1}}}[.?!](?= )", words)
    return sentences.group() if sentences else words[: LENGTH - 1].rsplit(" ", 1)[0] + "…"


def describe(app, pagename, templatename, context, doctree):
    """On html-page-context. Description and Open Graph tags; the book's title said once."""
    book = html.unescape(context["docstitle"])
    title = html.unescape(re.sub("<[^>]+>", "", context.get("title", ""))) or book
    if title == book:
        context["docstitle"] = ""
    if doctree is None:
        return
    about = description(doctree)
    tags = {
        "og:type": "website" if pagename == app.config.root_doc else "article",
        "og:site_name": book,
        "og:title": title,
    }
    if about:
        tags["og:description"] = about
    if app.config.html_baseurl:
        tags["og:url"] = app.config.html_baseurl + pagename + ".html"
    if about and 'name="description"' not in context["metatags"]:  # a page may bring its own
        context["metatags"] += f'\n<meta name="description" content="{html.escape(about)}" />'
    for key, text in tags.items():
        context["metatags"] += f'\n<meta property="{key}" content="{html.escape(text)}" />'


def mark(app, doctree, docname):
    """On doctree-resolved. Unique ids; wide tables and pictures get the classes of the style."""
    if app.builder.format != "html":
        return
    if docname in BOXES:
        locate(doctree, docname)
    number_ids(doctree)
    headings = [t for t in doctree.findall(nodes.title) if isinstance(t.parent, nodes.section)]
    for table in [raw for raw in doctree.findall(nodes.raw) if "<table" in raw.astext()]:
        own = OWN_STYLE.search(table.astext())
        wide = own and own[1] != "marks"
        if not own:
            text, pixels = laid_out(table.astext())
            table[:] = [nodes.Text(text)]
            wide = pixels > COLUMN
        if wide and len(headings) > 1:  # else there is no margin
            widen(table)
    for picture in list(doctree.findall(nodes.image)):
        if width(Path(app.srcdir, picture["uri"])) > WIDE_PICTURE:
            box = nodes.container(classes=["wide-picture"])
            picture.replace_self(box)
            box += picture


def locate(doctree, docname):
    """The diagram of the method beside a chapter's goals; the fragment marks one of its boxes."""
    goals = next(box for box in doctree.findall(nodes.admonition) if "goals" in box["classes"])
    address = "../" * docname.count("/") + f"_static/method.svg#{BOXES[docname]}"
    says = f"The method in five boxes; this chapter is about the one called {BOXES[docname]}."
    picture = f'<img class="where" src="{address}" width="360" height="332" alt="{says}" />'
    goals.insert(1, nodes.raw("", picture, format="html"))


def number_ids(doctree):
    """Exercises and proofs come with ids such as "exercise-content", each with the same."""
    seen = set()
    for node in doctree.findall(nodes.Element):
        for place, name in enumerate(node.get("ids", ())):
            number = 1
            while name in seen:
                number += 1
                name = f"{node['ids'][place]}-{number}"
            seen.add(name)
            node["ids"][place] = name


def laid_out(table):
    """A computed table with its columns of long cells marked, and how many pixels it may need."""
    soup = BeautifulSoup(table, "html.parser")
    columns = defaultdict(list)  # counted from the right: on the left a label may span rows
    for row in soup.select("tr"):
        cells = row.find_all(["th", "td"]) if not row.find(colspan=True) else []
        for place, cell in enumerate(reversed(cells)):
            columns[place].append(cell)
    pixels = 0.0
    for cells in columns.values():
        body = [len(cell.get_text(strip=True)) for cell in cells if cell.find_parent("tbody")]
        words = [len(word) for cell in cells for word in cell.get_text().split()]
        length = max(body, default=0)
        kind, least = ("label", LABEL) if cells[-1].name == "th" else ("sentence", SENTENCE)
        if length >= least:
            for cell in cells:
                cell["class"] = [*cell.get("class", ()), kind]
        pixels += 17 + 7.8 * max(min(length, SENTENCE), *words, 0)
    return str(soup), pixels


def widen(node):
    """Let the outermost cell or set of tabs around a node use the right margin, too."""
    boxes = []
    while node.parent is not None:
        node = node.parent
        if {"cell", "sd-tab-set"} & set(node.get("classes", ())):
            boxes.append(node)
    if boxes and "full-width" not in boxes[-1]["classes"]:
        boxes[-1]["classes"].append("full-width")


def width(picture):
    """Points, for an SVG that says so, else zero."""
    if picture.suffix != ".svg" or not picture.exists():
        return 0.0
    found = re.search(r'<svg[^>]*\swidth="([\d.]+)pt"', picture.read_text(encoding="utf8"))
    return float(found.group(1)) if found else 0.0


# The theme decides late whether a first visit is dark; until then the page would be white.
COLOURS = """
if (document.documentElement.dataset.theme === "auto")
  document.documentElement.dataset.theme =
    matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
"""


def lighten(app, error):
    """On build-finished. Drop what pages would load in vain.

    The theme draws its icons with a font; its script of 1.5 MB is for icons that pages add.
    """
    scripts = Path(app.outdir, "_static", "scripts")
    if error is None and scripts.exists():
        (scripts / "fontawesome.js").write_text("", encoding="utf8")
        for source_map in scripts.glob("*.map"):
            source_map.unlink()


def configure(app, config):
    """On config-inited. The order of search results, and the version in the footer."""
    config.html_search_scorer = str(ROOT / "book" / "_static" / "scorer.js")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    options = config.html_theme_options
    options["extra_footer"] = options.get("extra_footer", "").format(version=project["version"])


def setup(app):
    """Called by Sphinx."""
    app.add_search_language(SearchWithGreek)
    app.add_js_file(None, body=COLOURS, priority=0)
    app.connect("config-inited", configure)
    app.connect("build-finished", lighten)
    app.connect("doctree-resolved", mark, priority=900)
    app.connect("html-page-context", describe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
