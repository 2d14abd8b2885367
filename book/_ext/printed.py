"""The built pages on paper: problem sheets, their solutions, and the whole book as PDF.

Chromium prints what the browser shows, so numbers, references, formulas and tables are those of the
site. LaTeX would need a second version of every slider, tab and styled table.
"""

import contextlib
import copy
import functools
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
# Not for paper: folded code, and what a stub says before there is an answer.
LEFT_OUT = "details.hide, .headerlink, .tag_stub .cell_output"
FOOTER = '<div style="font-size:8px;width:100%;text-align:center"><span class="pageNumber"></div>'
PAPER = {
    "format": "A4",
    "print_background": True,
    "outline": True,
    "tagged": True,
    "display_header_footer": True,
    "header_template": " ",
    "footer_template": FOOTER,
    "margin": {"top": "18mm", "bottom": "20mm", "left": "18mm", "right": "18mm"},
}
FILL = """pages => document.querySelectorAll(".contents a").forEach(
  (link) => (link.dataset.page = pages[link.getAttribute("href").slice(1)] || ""))"""


class Site:
    """The built book; pages are named as in _toc.yml, such as "book/method/dual"."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.soup = functools.cache(self.soup)
        self.article = functools.cache(self.article)
        self.exercises = functools.cache(self.exercises)
        if not (self.folder / "book").exists():
            raise SystemExit(f"{self.folder}: no book here; `make book` builds it")

    def soup(self, page):
        """A page as it was built."""
        text = (self.folder / f"{page}.html").read_text(encoding="utf8")
        return BeautifulSoup(text, "html.parser")

    def article(self, page):
        """The text of a page, addresses seen from the front page, ids unique in the book."""
        article = self.soup(page).select_one("article.bd-article")
        for node in article.select(LEFT_OUT):
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
        return article

    def exercises(self, page):
        """Pairs of an exercise and its solution, which is "" if there is none, as HTML."""
        found = []
        for box in self.article(page).select(".exercise.admonition, .solution.admonition"):
            if "exercise" in box["class"]:
                name = box.select_one(".caption-number").get_text(strip=True)
                found.append([str(box), ""])
            else:
                box.select_one(".admonition-title").string = f"Solution of {name}"
                found[-1][1] = str(box)
        return found

    def chapter(self, page):
        """A page without its solutions, as HTML."""
        article = copy.copy(self.article(page))
        for box in article.select(".solution.admonition"):
            box.decompose()
        return article.decode_contents()

    def heading(self, page):
        """The title of a page with its number, as HTML."""
        return self.article(page).h1.decode_contents()

    def address(self, page, link):
        """A link on a page, seen from the front page; one to another page leads to its chapter."""
        parts = urlsplit(link)
        if parts.scheme:
            return link
        path = posixpath.normpath(posixpath.join(page, "..", parts.path)) if parts.path else page
        if path.endswith(".html") or path == page:
            return "#" + anchor(path.removesuffix(".html"), parts.fragment)
        return f"../{path}#{parts.fragment}" if parts.fragment else f"../{path}"

    def head(self, title):
        """Styles of the built pages, without the scripts of their menus."""
        soup = self.soup("book/index")
        kept = soup.select("link[rel=stylesheet]")
        style = f"<style>{SHEET.read_text(encoding='utf8')}</style>"
        title = f"<meta charset='utf-8'><title>{html.escape(title)}</title>"
        return title + "".join(map(str, kept)) + style


def anchor(page, name=""):
    """The id of a place in the printed book."""
    return f"{page}--{name}".rstrip("-").replace("/", "-")


def sheet(site, pages, title, problems=True, solutions=False):
    """Exercises of some pages, or their solutions, or both, as HTML."""
    parts = [f"<h1>{html.escape(title)}</h1>"]
    for page in pages:
        if site.exercises(page):
            parts.append(f"<h2>{site.heading(page)}</h2>")
        for problem, solution in site.exercises(page):
            parts += [problem] * problems + [solution] * solutions
    return "\n".join(parts)


def write_sheets(site, parts, target):
    """Problem sheets and solutions of every part that has exercises, and of the whole book."""
    target.mkdir(parents=True, exist_ok=True)
    sheets = {
        Path(pages[0]).parent.name: (caption, pages)
        for caption, pages in parts.items()
        if any(site.exercises(page) for page in pages)
    }
    sheets["all"] = ("All parts", [page for _, pages in sheets.values() for page in pages])
    with printer(site) as to_pdf:
        for name, (caption, pages) in sheets.items():
            for kind in ("Problems", "Solutions"):
                title = f"{kind}. {caption}"
                body = sheet(site, pages, title, solutions=kind == "Solutions")
                to_pdf(body, title, target / f"{name}-{kind.lower()}.pdf")


def write_book(site, parts, target):
    """The whole book: cover, contents, chapters without solutions, solutions at the end."""
    front = site.soup("book/index")
    title = front.select_one("meta[property='og:site_name']")["content"]
    edition = front.select_one(".extra_footer").decode_contents()
    cover = f'<div class="cover"><h1>{html.escape(title)}</h1><p>{edition}</p></div>'
    contents = ['<div class="contents"><h2>Contents</h2>']
    body = [site.chapter("book/index")]
    for caption, pages in parts.items():
        contents.append(f'<p class="part">{html.escape(caption)}</p>')
        for page in pages:
            contents.append(f'<a href="#{anchor(page)}"><span>{site.heading(page)}</span></a>')
            body.append(site.chapter(page))
    contents.append('<p class="part"><a href="#solutions">Solutions of the exercises</a></p></div>')
    pages = [page for pages in parts.values() for page in pages]
    solutions = sheet(site, pages, "Solutions of the exercises", problems=False, solutions=True)
    body.append(f'<section id="solutions">{solutions}</section>')
    with printer(site) as to_pdf:
        to_pdf(cover + "".join(contents) + "\n".join(body), title, target)
    target.write_bytes(said_once(target.read_bytes()))


def said_once(pdf):
    """A PDF by Chromium without the stutter of its bookmarks ("1. 1. OneOne").

    Blanks take the place of what goes: a PDF knows its objects by where they are.
    """

    def once(title):
        return b"".join(title.groups()).ljust(len(title[0]))

    return re.sub(rb"(/Title (?:\(|<FEFF))(.*?)\2(.+?)\3([)>])(?=\n)", once, pdf)


def page_numbers(pdf):
    """On which page each linked place of a PDF by Chromium is, by its id."""
    leaves = set(re.findall(rb"(\d+) 0 obj\s*<<\s*/Type /Page\b", pdf))
    kids = re.findall(rb"(\d+) 0 R", b" ".join(re.findall(rb"/Kids \[(.*?)\]", pdf, re.DOTALL)))
    order = [kid for kid in kids if kid in leaves]
    places = re.findall(rb"/([\w.-]+) \[(\d+) 0 R /XYZ", pdf)
    return {name.decode(): order.index(page) + 1 for name, page in places}


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

        def to_pdf(body, title, target):
            source = site.folder / "book" / "print.html"  # beside the front page
            source.write_text(
                f'<!DOCTYPE html><html lang="en" data-theme="light"><head>{site.head(title)}</head>'
                f'<body><article class="bd-article">{body}</article></body></html>',
                encoding="utf8",
            )
            page = browser.new_page(color_scheme="light")
            page.set_default_timeout(0)  # a whole book takes minutes
            page.goto(source.as_uri())
            page.evaluate("document.fonts.ready.then(() => null)")
            pdf = page.pdf(**PAPER)
            if page.query_selector(".contents"):  # now it is known which chapter is where
                page.evaluate(FILL, page_numbers(pdf))
                pdf = page.pdf(**PAPER)
            target.write_bytes(pdf)
            page.close()
            source.unlink()

        yield to_pdf
        browser.close()
