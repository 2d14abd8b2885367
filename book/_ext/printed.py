"""The built pages on paper: problem sheets, their solutions, and the whole book as PDF.

Chromium prints what the browser shows, so numbers, references, formulas and tables are those of the
site. LaTeX would need a second version of every slider, tab and styled table.
"""

import contextlib
import html
import posixpath
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
SHEET = Path(__file__).resolve().parents[1] / "teaching" / "print.css"
FOLDED = "details.hide, .headerlink, .stub-output, script[src]"
DEST = re.compile(rb"\[(\d+) 0 R /XYZ")


class Site:
    """The built book; pages are named as in _toc.yml, such as "book/method/dual"."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self._articles = {}
        if not (self.folder / "book").exists():
            raise SystemExit(f"{self.folder}: no book here; `make book` builds it")

    def soup(self, page):
        """A page as it was built."""
        text = (self.folder / f"{page}.html").read_text(encoding="utf8")
        return BeautifulSoup(text, "html.parser")

    def article(self, page):
        """The text of a page, addresses seen from the site's root, ids unique in the book."""
        if page not in self._articles:
            article = self.soup(page).select_one("article.bd-article")
            for cell in article.select(".tag_stub .cell_output"):
                cell.decompose()  # "no answer yet" is for the screen
            for node in article.select(FOLDED):
                node.decompose()
            for details in article.select("details"):
                details["open"] = ""
            for node in article.select("[id]"):
                if node.find_parent(class_="cell_output") is None:  # sliders know their own ids
                    node["id"] = anchor(page, node["id"])
            for node in article.select("[src], [href]"):
                key = "src" if node.has_attr("src") else "href"
                node[key] = self.address(page, node[key])
            article.section["id"] = anchor(page)
            self._articles[page] = article
        return BeautifulSoup(str(self._articles[page]), "html.parser")

    def address(self, page, link):
        """A link on a page, from the site's root; a link to another page leads to its chapter."""
        parts = urlsplit(link)
        if parts.scheme or link.startswith("data:"):
            return link
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), parts.path))
        target = path.removesuffix(".html") if parts.path else page
        if path.endswith(".html") or not parts.path:
            return "#" + anchor(target, parts.fragment)
        return path

    def head(self, page, title):
        """Styles and formulas of the built pages, without the scripts of their menus."""
        soup = self.soup(page)
        kept = soup.select("link[rel=stylesheet]")
        kept += [s for s in soup.select("head script") if "mathjax" in str(s).lower()]
        for node in kept:
            for key in {"href", "src"} & set(node.attrs):
                path = node[key].partition("?")[0]
                node[key] = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        style = f"<style>{SHEET.read_text(encoding='utf8')}</style>"
        title = f"<meta charset='utf-8'><title>{html.escape(title)}</title>"
        return title + "".join(map(str, kept)) + style


def anchor(page, name=""):
    """The id of a place in the printed book."""
    return f"{page}--{name}".rstrip("-").replace("/", "-")


def exercises(site, page):
    """The exercises of a page: pairs of an exercise and its solution, None if there is none."""
    boxes = site.article(page).select(".exercise.admonition, .solution.admonition")
    found = []
    for box in boxes:
        if "exercise" in box["class"]:
            found.append([box, None])
        elif found:
            found[-1][1] = box
    return found


def sheet(site, pages, title, solutions):
    """A problem sheet as HTML: the exercises of some pages, with or without solutions."""
    parts = [f"<h1>{html.escape(title)}</h1>"]
    for page in pages:
        pairs = exercises(site, page)
        if pairs:
            parts.append(f"<h2>{heading(site, page)}</h2>")
        for problem, solution in pairs:
            parts.append(str(problem))
            if solutions and solution is not None:
                parts.append(str(solution))
    return "\n".join(parts)


def heading(site, page):
    """The title of a page with its number."""
    return site.article(page).h1.decode_contents()


@contextlib.contextmanager
def printer(site):
    """A function that prints HTML into a PDF; one browser for all of them."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        raise SystemExit(
            "PDF needs Chromium, and there is none on the path: install it "
            "(Debian: `apt install chromium`; elsewhere Chrome will do) and run this again"
        )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)

        def to_pdf(body, title, target, style_of):
            source = site.folder / "print.html"  # beside the pages, whose pictures it shows
            source.write_text(
                f'<!DOCTYPE html><html lang="en" data-theme="light"><head>'
                f'{site.head(style_of, title)}</head><body><article class="bd-article">'
                f"{body}</article></body></html>",
                encoding="utf8",
            )
            page = browser.new_page(color_scheme="light")
            page.set_default_timeout(600_000)
            page.goto(source.as_uri())
            page.evaluate("MathJax.startup.promise.then(() => document.fonts.ready)")
            footer = "font-size:8px;width:100%;text-align:center"
            page.pdf(
                path=str(target),
                format="A4",
                print_background=True,
                outline=True,
                tagged=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=f'<div style="{footer}"><span class="pageNumber"></span></div>',
                margin={"top": "18mm", "bottom": "20mm", "left": "18mm", "right": "18mm"},
            )
            page.close()
            source.unlink()

        yield to_pdf
        browser.close()
