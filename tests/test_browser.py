"""Every page in headless Chromium, as a reader sees it: on a desk and on a phone, by day and by night."""

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import golden  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
PAGES = [page.relative_to(ROOT).with_suffix(".html").as_posix() for page in golden.pages()]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no page was looked at")

# Text nodes outside code and scripts: TeX that MathJax should have turned into a picture.
LEFTOVER = r"""() => {
  const found = [];
  const walk = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (node.parentElement.closest('pre, code, script, style, mjx-container, title')) continue;
    if (/\\\(|\\\[|\$\$|\\[a-z]{3,}|\$[^$\s][^$]*\$/.test(node.textContent)) found.push(node.textContent.trim().slice(0, 80));
  }
  return found;
}"""

FORMULAS = r"""() => {
  const places = [...document.querySelectorAll('article .math')];
  return {
    'not rendered': places.filter(p => !p.querySelector('mjx-container')).map(p => p.textContent.slice(0, 80)),
    'not valid TeX': [...document.querySelectorAll('[data-mml-node="merror"], [data-mjx-error]')].map(e => e.textContent.slice(0, 80)),
    'rendered as nothing': places.filter(p => p.offsetParent && !p.querySelector('svg')?.getBoundingClientRect().width).map(p => p.outerHTML.slice(0, 80)),
  };
}"""

# Elements that reach beyond the screen and do not stand in a box that scrolls by itself.
TOO_WIDE = r"""() => {
  const root = document.documentElement;
  const scrolls = e => { for (let p = e.parentElement; p; p = p.parentElement) {
    const o = getComputedStyle(p).overflowX; if (o === 'auto' || o === 'scroll' || o === 'hidden') return true; } return false; };
  const wide = [...document.querySelectorAll('article *')].filter(e => {
    const r = e.getBoundingClientRect();
    return r.width && r.right > root.clientWidth + 1 && !scrolls(e); });
  const result = wide.map(e => e.outerHTML.slice(0, 120));
  if (root.scrollWidth > root.clientWidth + 1) result.push('the page scrolls sideways');
  return result;
}"""

PICTURES = """() => [...document.querySelectorAll('article img')]
  .filter(i => i.alt.length < 3 || !i.complete || !i.naturalWidth).map(i => i.outerHTML.slice(0, 120))"""

# Contrast of plain text with the ground behind it, after WCAG 2.
FAINT = r"""() => {
  const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const ground = e => { for (let p = e; p; p = p.parentElement) {
    const c = parse(getComputedStyle(p).backgroundColor); if (c.length === 3 || c[3] > 0.9) return c; } return [255, 255, 255]; };
  const seen = new Map();
  for (const e of document.querySelectorAll('article p, article li, article td, article th, article h1, article h2, article h3, article a, article figcaption, article label, article output, article .paper')) {
    if (!e.textContent.trim() || !e.offsetParent || e.closest('.headerlink, mjx-container, pre')) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) seen.set(e.tagName + ' ' + e.textContent.trim().slice(0, 50), ratio.toFixed(2));
  }
  return [...seen];
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def site():
    """The address of the built book. Building is quick when nothing has changed."""
    program = Path(sys.executable).with_name("jupyter-book")
    command = [program, "build", ".", "-W", "--keep-going", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(params=SCREENS)
def visit(request, chromium, site):
    """A function that opens a page and lists what went wrong meanwhile in ``visit.trouble``."""
    width, height = SCREENS[request.param]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme="light")
    page = context.new_page()
    trouble = []
    host = urlsplit(site).netloc
    page.on("console", lambda m: trouble.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(f"script: {error}"))
    page.on("requestfailed", lambda r: trouble.append(f"failed: {r.url}"))
    page.on("response", lambda r: trouble.append(f"{r.status}: {r.url}") if r.status >= 400 else None)

    def look(request):
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.netloc != host:
            trouble.append(f"another host: {request.url}")

    page.on("request", look)

    def go(address):
        page.goto(site + address)
        page.evaluate("() => window.MathJax?.startup?.promise")
        return page

    go.trouble = trouble
    yield go
    context.close()


@pytest.mark.parametrize("address", PAGES)
def test_page(visit, address):
    page = visit(address)
    bad = {"TeX left as text": page.evaluate(LEFTOVER)}
    bad |= page.evaluate(FORMULAS)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"() => document.documentElement.dataset.theme === '{scheme}'")
        bad[f"faint when {scheme}"] = page.evaluate(FAINT)
    bad["pictures"] = page.evaluate(PICTURES)
    open_everything(page)
    bad["wider than the screen"] = page.evaluate(TOO_WIDE)
    move_sliders(page)
    for table in page.locator("article .output.text_html table").all():
        assert_head_and_first_column_stay(table)
    bad["loading"] = visit.trouble
    assert {what: found for what, found in bad.items() if found} == {}


def open_everything(page):
    """Dropdowns of cells and of solutions open at a click and then show what they hold."""
    for summary in page.locator("article details > summary").all():
        summary.click()
        assert summary.evaluate("e => e.parentElement.open")
    for solution in page.locator("article .admonition.dropdown").all():
        content = solution.locator(":scope > *:not(.admonition-title):not(.toggle-button)").first
        assert not content.is_visible()
        solution.locator(".admonition-title, .toggle-button").first.click()
        content.wait_for(state="visible", timeout=3000)


def move_sliders(page):
    """Each range input changes its picture, by script-free means of the reader: the arrow keys."""
    for figure in page.locator("article .slider-figure").all():
        for control in figure.locator("input[type=range]").all():
            before = figure.evaluate("e => e.querySelector('svg').innerHTML + e.textContent")
            control.focus()
            for _ in range(3):
                page.keyboard.press("ArrowLeft")
            assert figure.evaluate("e => e.querySelector('svg').innerHTML + e.textContent") != before


def assert_head_and_first_column_stay(table):
    """Scroll the table's own box to its far corner: head and first column are still at its edge."""
    edges = table.evaluate(
        """t => {
          const box = t.closest('.output.text_html');
          box.scrollTo(1e5, 1e5);
          const b = box.getBoundingClientRect();
          const result = [t.querySelector('tbody tr > *').getBoundingClientRect().left - b.left,
                          t.tHead ? t.tHead.getBoundingClientRect().top - b.top : 0];
          box.scrollTo(0, 0);
          return result;
        }"""
    )
    assert max(map(abs, edges)) < 12


def test_launch_and_download_buttons_give_the_twin(site):
    for chapter in golden.chapters():
        address = chapter.relative_to(ROOT).with_suffix("").as_posix()
        html = (SITE / f"{address}.html").read_text(encoding="utf8")
        assert f"/blob/main/{address}.ipynb" in html  # Colab
        assert f"lab/tree/{address}.ipynb" in html  # Binder
        download = SITE / "_sources" / f"{address}.ipynb"
        assert download.read_bytes() == chapter.with_suffix(".ipynb").read_bytes()
