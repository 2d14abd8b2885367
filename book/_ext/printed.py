"""PDF by Chromium: sheets, and the whole book from its built pages.

Chromium prints what the browser shows, so numbers, references, formulas and tables are those of the
site. LaTeX would need a second version of every slider, tab and styled table. Bookmarks and page
numbers are put in with pypdf.
"""

import contextlib
import html
import io
import posixpath
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup
from pypdf import PdfReader, PdfWriter

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
STYLES = Path(__file__).resolve().parents[1] / "teaching" / "sheets"
# Not for paper: folded code, and what a stub says before there is an answer.
LEFT_OUT = "details.hide, .headerlink, .tag_stub .cell_output"
# Formulas a second time, for those who listen: nobody hears paper, and parsing them takes long.
SPOKEN = re.compile(r'<span class="katex-mathml">.*?</math></span>', re.DOTALL)
FOOTER = '<div style="font-size:8px;width:100%;text-align:center"><span class="pageNumber"></div>'
PAPER = {
    "format": "A4",
    "print_background": True,
    "display_header_footer": True,
    "header_template": " ",
    "footer_template": FOOTER,
    "margin": {"top": "18mm", "bottom": "20mm", "left": "18mm", "right": "18mm"},
}
# Only the numbers of the contents' pages are to be seen, to be laid over the pages without them.
NUMBERS = """pages => {
  document.body.style.background = "none";
  document.querySelectorAll("article *").forEach((node) => (node.style.color = "transparent"));
  document.querySelectorAll(".contents a").forEach((link) => {
    link.dataset.page = pages[link.getAttribute("href").slice(1)] || "";
    link.classList.add("numbered");
  });
}"""


class Site:
    """The built book; pages are named as in _toc.yml, such as "book/method/dual"."""

    def __init__(self, folder):
        self.folder = Path(folder)
        if not (self.folder / "book").exists():
            raise SystemExit(f"{self.folder}: no book here; `make book` builds it")

    def text(self, page):
        """The HTML of a page, as it was built."""
        return (self.folder / f"{page}.html").read_text(encoding="utf8")

    def article(self, page):
        """The text of a page, addresses seen from the front page, ids unique in the book."""
        text = self.text(page)  # menus need not be parsed
        start = text.index('<article class="bd-article"')
        end = text.index("</article>", start)
        article = BeautifulSoup(SPOKEN.sub("", text[start:end]), "html.parser").article
        for node in article.select(LEFT_OUT):
            node.decompose()
        for details in article.find_all("details"):
            details["open"] = ""
        for node in article.find_all(id=True):
            if node.find_parent(class_="cell_output") is None:  # sliders know their own ids
                node["id"] = anchor(page, node["id"])
        for key in ("src", "href"):
            for node in article.find_all(**{key: True}):
                node[key] = self.address(page, node[key])
        article.section["id"] = anchor(page)
        return article

    def address(self, page, link):
        """A link on a page, seen from the front page; one to another page leads to its chapter."""
        parts = urlsplit(link)
        if parts.scheme:
            return link
        path = posixpath.normpath(posixpath.join(page, "..", parts.path)) if parts.path else page
        if path.endswith(".html") or path == page:
            return "#" + anchor(path.removesuffix(".html"), parts.fragment)
        return f"../{path}#{parts.fragment}" if parts.fragment else f"../{path}"

    def styles(self):
        """Styles of the built pages, without the scripts of their menus."""
        head = BeautifulSoup(self.text("book/index").partition("</head>")[0], "html.parser")
        return "".join(str(link) for link in head.select("link[rel=stylesheet]"))


class Chapter:
    """A page of the book for the printer."""

    def __init__(self, site, page):
        article = site.article(page)
        self.page = page
        self.heading = article.h1.decode_contents()
        self.title = article.h1.get_text().strip()
        self.solutions = solutions(article)
        self.sections = [link_to_itself(node) for node in article.find_all("h2")]
        self.body = article.decode_contents()


def solutions(article):
    """Take the solutions out of a page; their HTML, each under the number of its exercise."""
    taken = []
    number = ""
    for box in article.select(".exercise.admonition, .solution.admonition"):
        if "exercise" in box["class"]:
            number = box.select_one(".caption-number").get_text(strip=True)
        else:
            box.select_one(".admonition-title").string = f"Solution of {number}"
            taken.append(str(box.extract()))
    return taken


def link_to_itself(heading):
    """Make a heading a place that Chromium names in the PDF, since a link leads there.

    Returns
    -------
    (str, str)
        Its words and its name.
    """
    words = heading.get_text().strip()
    name = heading.find_parent("section")["id"]
    link = BeautifulSoup(f'<a class="place" href="#{name}"></a>', "html.parser").a
    for child in list(heading.contents):
        link.append(child.extract())
    heading.append(link)
    return words, name


def anchor(page, name=""):
    """The id of a place in the printed book."""
    return f"{page}--{name}".rstrip("-").replace("/", "-")


def book_parts(site, parts):
    """The chapters of the book, read once, by the captions of its parts."""
    return {caption: [Chapter(site, page) for page in pages] for caption, pages in parts.items()}


def front_matter(site, chapters):
    """Cover and contents as HTML."""
    front = BeautifulSoup(site.text("book/index"), "html.parser")
    title = front.select_one("meta[property='og:site_name']")["content"]
    edition = front.select_one(".extra_footer").decode_contents()
    lines = [f'<div class="cover"><h1>{html.escape(title)}</h1><p>{edition}</p></div>']
    lines.append('<div class="contents"><h2>Contents</h2>')
    for caption, found in chapters.items():
        lines.append(f'<p class="part">{html.escape(caption)}</p>')
        for chapter in found:
            place = anchor(chapter.page)
            lines.append(f'<a href="#{place}"><span>{chapter.heading}</span></a>')
    lines.append('<p class="part"><a href="#solutions">Solutions of the exercises</a></p></div>')
    return title, "".join(lines)


def write_book(site, parts, target):
    """The whole book: cover, contents, chapters without solutions, solutions at the end."""
    chapters = book_parts(site, parts)
    title, front = front_matter(site, chapters)
    every = [chapter for found in chapters.values() for chapter in found]
    body = [Chapter(site, "book/index").body, *(chapter.body for chapter in every)]
    body.append('<section id="solutions"><h1>Solutions of the exercises</h1>')
    for chapter in every:
        if chapter.solutions:
            body += [f"<h2>{chapter.heading}</h2>", *chapter.solutions]
    body.append("</section>")
    style = (STYLES / "book.css").read_text(encoding="utf8")
    head = f"{site.styles()}<style>{style}</style>"
    beside = site.folder / "book" / "print.html"  # addresses are seen from the front page
    with printer() as browser:
        pdf = browser.pdf(page_of(title, head, front + "".join(body)), beside)
        places = page_numbers(pdf)
        numbers = browser.pdf(
            page_of(title, head, front), beside, places, display_header_footer=False
        )
    target.write_bytes(bound(pdf, numbers, chapters, places))


def bound(pdf, numbers, chapters, places):
    """A PDF with the numbers of its contents laid over them, and with bookmarks."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    for page, overlay in zip(writer.pages, PdfReader(io.BytesIO(numbers)).pages, strict=False):
        page.merge_page(overlay)
    for caption, found in chapters.items():
        first = places[anchor(found[0].page)]
        part = writer.add_outline_item(caption, first - 1)
        for chapter in found:
            mark = writer.add_outline_item(chapter.title, places[anchor(chapter.page)] - 1, part)
            for words, name in chapter.sections:
                if name in places:
                    writer.add_outline_item(words, places[name] - 1, mark)
    writer.add_outline_item("Solutions of the exercises", places["solutions"] - 1)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def page_numbers(pdf):
    """On which page each place of a PDF is that a link leads to, by its name."""
    reader = PdfReader(io.BytesIO(pdf))
    return {
        name.removeprefix("/"): reader.get_destination_page_number(place) + 1
        for name, place in reader.named_destinations.items()
    }


def write_sheets(pages, katex, target):
    """Sheets as PDF.

    Parameters
    ----------
    pages : dict of str to (str, str)
        By name: title and HTML of the body, see :func:`sheets.pages`.
    katex : Path
        Folder with the style of formulas.
    target : Path
    """
    target.mkdir(parents=True, exist_ok=True)
    style = (STYLES / "sheet.css").read_text(encoding="utf8")
    formulas = (katex / "katex.css").as_uri()
    head = f'<link rel="stylesheet" href="{formulas}"><style>{style}</style>'
    with printer() as browser:
        for name, (title, body) in pages.items():
            page = page_of(title, head, body)
            pdf = browser.pdf(page, target / "print.html", tagged=True, outline=True)
            (target / f"{name}.pdf").write_bytes(pdf)


def page_of(title, head, body):
    """A page of HTML."""
    words = html.escape(re.sub(r"<.*?>", "", html.unescape(title)))
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{words}</title>{head}</head>"
        f'<body><article class="bd-article">{body}</article></body></html>'
    )


class Printer:
    """Chromium, started once for all that is to be printed."""

    def __init__(self, chromium):
        self.chromium = chromium

    def pdf(self, text, beside, places=None, **options):
        """A page of HTML as PDF.

        Parameters
        ----------
        text : str
        beside : Path
            Where the page is put for a moment, so that its addresses lead somewhere.
        places : dict of str to int, optional
            Print nothing but these numbers of pages, in the contents.
        options : dict
            Of Chromium's printing.

        Returns
        -------
        bytes
        """
        beside.write_text(text, encoding="utf8")
        page = self.chromium.new_page(color_scheme="light")
        page.set_default_timeout(0)  # a whole book takes minutes
        page.goto(beside.as_uri())
        page.evaluate("document.fonts.ready.then(() => null)")
        if places is not None:
            page.evaluate(NUMBERS, places)
        pdf = page.pdf(**(PAPER | options))
        page.close()
        beside.unlink()
        return pdf


@contextlib.contextmanager
def printer():
    """A :class:`Printer`, while its browser runs."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        raise SystemExit(
            "PDF needs Chromium, and there is none on the path: install it "
            "(Debian: `apt install chromium`; elsewhere Chrome will do) and run this again"
        )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield Printer(browser)
        browser.close()
