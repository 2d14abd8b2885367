"""Sphinx extension: descriptions, ids, tables as CSV and other additions to the HTML of pages.

Each page gets a description for search engines and previews, made from its first paragraph, and
unique ids. Wide tables are marked for the style sheet. Tables of results can be downloaded as CSV,
with more decimals than they show. A number stays on the line of its percent sign. HTML that hinders
assistive programs is mended. The search knows Greek letters by name. The footer has the version.
"""

import csv
import html
import re
import unicodedata
from collections import defaultdict
from functools import cache
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.search.en import SearchEnglish

from drocox import __version__

LENGTH = 200  # characters of a description; search engines show about 160, previews up to 200
OWN_STYLE = re.compile(r'<table[^>]*class="[^"]*\b(results|ledger)\b')
LINE = 88  # characters of what a cell prints that fit the column
COLUMN = 690  # pixels for the text where there is a margin
SENTENCE = 28  # characters from which on a cell is made of several lines
LABEL = 20  # the same for what stands at the left of a row
TABLES = "_downloads/tables"
NO_BREAK = "\N{NO-BREAK SPACE}"
CODE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)
EMPTY_HEADING = re.compile(r"<th\b([^>]*)>(?:\s|&nbsp;|&#160;|<p>\s*</p>)*</th>")


@cache
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
    """The first sentences of the first paragraph outside of boxes; empty if there is none."""
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
        context["metatags"] += f'\n<meta name="description" content="{html.escape(about)}" />'
    if base := app.config.html_baseurl:
        tags |= {"og:url": f"{base}{pagename}.html", "og:image": f"{base}_static/preview.png"}
    for key, text in tags.items():
        context["metatags"] += f'\n<meta property="{key}" content="{html.escape(text)}" />'


def mark(app, doctree, docname):
    """On doctree-resolved. Unique ids; wide tables get the class of the style."""
    if app.builder.format != "html":
        return
    number_ids(doctree)
    keep_together(doctree)
    headings = [t for t in doctree.findall(nodes.title) if isinstance(t.parent, nodes.section)]
    computed = [raw for raw in doctree.findall(nodes.raw) if "<table" in raw.astext()]
    for number, table in enumerate(computed, start=1):
        name = f"{docname.removeprefix('book/').replace('/', '-')}-{number}.csv"
        if "data-csv" in table.astext():
            offer(table, Path(app.outdir) / TABLES / name, "../" * docname.count("/"))
        own = OWN_STYLE.search(table.astext())
        wide = bool(own)
        if not own:
            text, pixels = laid_out(table.astext())
            table[:] = [nodes.Text(text)]
            wide = pixels > COLUMN
        if wide and len(headings) > 1:  # else there is no margin
            widen(table)
    for printed in doctree.findall(nodes.literal_block):
        longest = max(map(len, printed.astext().splitlines()), default=0)
        if "output" in printed["classes"] and longest > LINE and len(headings) > 1:
            widen(printed)


def keep_together(doctree):
    """Use no-break spaces between a number and its percent sign, and around a plus-minus."""
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, CODE):
            continue
        joined = re.sub(r"(?<!\S) (?=%)|(?<=\d) (?=%)", NO_BREAK, text)
        joined = re.sub(r" ± ", f"{NO_BREAK}±{NO_BREAK}", joined)
        if joined != text:
            text.parent.replace(text, nodes.Text(joined))


def rows_of(table):
    """The cells of an HTML table: the numbers that they know in ``data-csv``, else their text."""
    return [
        [
            cell.get("data-csv", " ".join(cell.get_text(" ").split()))
            for cell in line.find_all(["th", "td"])
        ]
        for line in BeautifulSoup(table, "html.parser").select("tr")
    ]


def offer(table, file, up):
    """Write a table of results as CSV, and put a link to it below."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows(rows_of(table.astext()))
    link = f'<p class="csv"><a href="{up}{TABLES}/{file.name}" download>This table as CSV</a></p>'
    box = table.parent if "output" in table.parent.get("classes", ()) else table
    box.parent.insert(box.parent.index(box) + 1, nodes.raw("", link, format="html"))


def mend(app, pagename, templatename, context, doctree):
    """On html-page-context. Mend HTML of other packages that accessibility checkers complain about.

    A column heading without text becomes an empty cell. A list of references loses its roles.
    """
    if doctree is None:
        return
    body = EMPTY_HEADING.sub(r"<td\1></td>", context["body"])
    body = body.replace('<div role="list" class="citation-list">', '<div class="citation-list">')
    context["body"] = body.replace(' role="doc-biblioentry"', "")


def number_ids(doctree):
    """Make the ids of exercises and proofs unique; all come as "exercise-content" or the like."""
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
    """A computed table with its columns of long cells marked, and the pixels it may need."""
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


# The theme decides late whether a first visit is dark; until then the page would be white.
COLOURS = """
if (document.documentElement.dataset.theme === "auto")
  document.documentElement.dataset.theme =
    matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
"""


def finish(app, error):
    """On build-finished. Empty a script of 1.5 MB: its icons are none that a page shows."""
    if error is not None or app.builder.name != "html":
        return
    Path(app.outdir, "_static", "scripts", "fontawesome.js").write_text("", encoding="utf8")


def configure(app, config):
    """On config-inited. The version in the footer."""
    options = config.html_theme_options
    options["extra_footer"] = options.get("extra_footer", "").format(version=__version__)


def setup(app):
    """Called by Sphinx."""
    app.add_search_language(SearchWithGreek)
    app.add_js_file(None, body=COLOURS, priority=0)
    app.connect("config-inited", configure)
    app.connect("build-finished", finish)
    app.connect("doctree-resolved", mark, priority=900)
    app.connect("html-page-context", describe, priority=900)
    app.connect("html-page-context", mend, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
