"""Every page in headless Chromium as readers see it: on desk and phone, by day and by night."""

import gzip
import re
import sys
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import axe_playwright_python
import pytest
from pages import CHROMIUM, PACKED

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import plain  # noqa: E402
import twins  # noqa: E402

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PAPER = {"width": 718, "height": 1047}  # A4 in pixels, without margins of 1 cm
PAGES = [page.relative_to(ROOT).with_suffix(".html").as_posix() for page in plain.pages()]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf8")
AT_ONCE = """const sheet = new CSSStyleSheet();
sheet.replaceSync("* { transition: none !important }");
document.adoptedStyleSheets = [sheet];"""  # colours do not fade from light to dark
CHECKS = Path(__file__).with_name("browser.js").read_text(encoding="utf8")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no page was looked at")


@pytest.fixture(scope="module")
def screen(chromium):
    """A tab; all tests share it, as opening another takes seconds."""
    context = chromium.new_context(viewport=DESK, color_scheme="light")
    context.add_init_script(AT_ONCE)
    page = context.new_page()
    yield page
    context.close()


@pytest.fixture
def visit(screen, site):
    """A function that opens a page; ``visit.trouble`` lists what went wrong meanwhile."""
    host = urlsplit(site).netloc
    trouble = []

    def on_console(message):
        if message.type == "error":
            trouble.append(f"console: {message.text}")

    def on_request(request):
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.netloc != host:
            trouble.append(f"another host: {request.url}")

    def on_response(response):
        if response.status >= 400:
            trouble.append(f"{response.status}: {response.url}")

    events = {
        "console": on_console,
        "request": on_request,
        "response": on_response,
        "requestfailed": lambda request: trouble.append(f"failed: {request.url}"),
        "pageerror": lambda error: trouble.append(f"script: {error}"),
    }
    for event, handler in events.items():
        screen.on(event, handler)

    def go(address):
        screen.goto(site + address)
        screen.evaluate("() => document.fonts.ready.then(() => null)")
        return screen

    go.trouble = trouble
    yield go
    for event, handler in events.items():
        screen.remove_listener(event, handler)
    screen.goto("about:blank")  # nothing of this test goes on in the next
    screen.set_viewport_size(DESK)
    screen.emulate_media(media="screen", color_scheme="light")


# When a page gets another width, other pictures may belong into it; one that fails is found later.
DECODED = """() => Promise.allSettled(
  [...document.querySelectorAll("article img")].map((i) => i.decode())
).then(() => null)"""


@pytest.mark.parametrize("address", PAGES)
def test_every_page_can_be_read_on_desk_phone_and_paper(visit, screen, address):
    """On a desk, dark and light; with everything open, also on a phone; closed again, on paper.

    Every change of colours or of width is a new layout of the page, so there are as few as can be.
    """
    screen.emulate_media(color_scheme="dark")
    page = visit(address)

    def check(name):
        return page.evaluate(f"({CHECKS}).{name}()")

    bad = {"TeX left as text": check("leftover"), "formulas": check("formulas")}
    bad["wrapped code"] = check("wrapped")
    bad["cut off"] = check("cut")
    bad["lines too long to read"] = check("long")
    bad["links that only a colour shows"] = check("hidden_links")
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"() => document.documentElement.dataset.theme === '{scheme}'")
        bad[f"faint when {scheme}"] = check("faint")

    bad["open before a click"] = check("open")
    click_on_some(page)
    bad["closed after a click"] = check("stuck")
    bad["ids used twice"] = check("twice")
    bad["sliders without effect"] = idle_sliders(page)
    bad["links that set nothing in a figure"] = check("idle_links")
    bad["axe"] = findings(page)
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        page.evaluate(DECODED)
        width = size["width"]
        bad[f"wider than a screen of {width}"] = check("wide")
        bad[f"pictures at {width}"] = check("pictures")
        bad[f"out of the keyboard's reach at {width}"] = check("unreachable")
        bad[f"tables that do not hold still at {width}"] = check("loose")
    bad["figures with small letters on a phone"] = check("small")

    bad["open after a second click"] = check("closed_again")
    page.emulate_media(media="print")
    page.set_viewport_size(PAPER)
    bad["lost in print"] = check("paper") + check("wide")
    bad["while loading"] = visit.trouble
    bad = {what: found for what, found in bad.items() if found}
    assert not bad, "\n".join(f"{what}: {found}" for what, found in bad.items())


# Colours are left to ``faint`` of browser.js, which looks at all text, light and dark, and links to
# ``hidden_links``, which wants every one underlined: axe's own rules for them take longer than all
# of its others. Style sheets are not fetched again.
AXE_OPTIONS = {
    "resultTypes": ["violations"],
    "iframes": False,
    "preload": False,
    "rules": {"color-contrast": {"enabled": False}, "link-in-text-block": {"enabled": False}},
}
# Runs axe without what only the eye sees, and puts it back.
RUN = """async (options) => {
  const rest = [];
  for (const e of document.querySelectorAll("article .katex, article pre")) {
    const plain = document.createElement(e.tagName);
    plain.textContent = (e.querySelector("math > semantics > mrow") ?? e).textContent;
    for (const {name, value} of e.attributes) plain.setAttribute(name, value);
    if (plain.matches(".katex")) plain.style.overflow = "hidden"; // text is longer than its formula
    e.replaceWith(plain);
    rest.push([plain, e]);
  }
  const result = await axe.run({exclude: [".katex"]}, options);
  for (const [plain, e] of rest) plain.replaceWith(e);
  const words = (id, node) => `${id}: ${node.html.slice(0, 100)}`;
  return result.violations.flatMap(({id, nodes}) => nodes.map((node) => words(id, node)));
}"""


def findings(page):
    """What axe finds: the rule and the element.

    Formulas and lines of code stand there as plain text, which is what assistive programs get of
    them. Their elements are most of what a page holds, and without them axe is faster.
    """
    page.evaluate(f"() => {{ {AXE} }}")
    return page.evaluate(RUN, AXE_OPTIONS)


def click_on_some(page):
    """On the first dropdown of a cell and of a solution, as a reader does, where it stands.

    The others are clicked by script (``stuck``), which takes a hundredth of the time.
    """
    summaries = page.locator("article details > summary")
    titles = page.locator("article .admonition.dropdown > :is(.admonition-title, .toggle-button)")
    for buttons in (summaries, titles):
        if buttons.count():
            buttons.first.click()


def idle_sliders(page):
    """Labels of range inputs that change neither picture nor numbers when moved by the keyboard."""
    idle, parts = [], "e.querySelectorAll('svg, .explore-readout')"
    looks = f"e => [...{parts}].map(part => part.innerHTML).join()"
    for figure in page.locator("article .explore").all():
        if figure.locator("input[type=radio]").count():  # a guess comes first
            figure.locator("input[type=radio]").first.check()
        for control in figure.locator("input[type=range]").all():
            before = figure.evaluate(looks)
            at_left = control.input_value() == control.get_attribute("min")
            control.focus()
            for _ in range(3):
                page.keyboard.press("ArrowRight" if at_left else "ArrowLeft")
            if figure.evaluate(looks) == before:
                idle.append(control.evaluate("e => e.labels[0].textContent"))
    return idle


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_landing_page_is_light(visit, built, size):
    """Compressed as servers do it; fonts and PNGs are compressed already."""
    addresses = []
    page = visit("book/notation.html")
    page.set_viewport_size(size)
    page.on("response", lambda response: addresses.append(urlsplit(response.url).path))
    visit("book/index.html").wait_for_load_state("networkidle")
    files = {built / unquote(address).lstrip("/") for address in addresses}
    weight = sum(
        file.stat().st_size if file.suffix in PACKED else len(gzip.compress(file.read_bytes()))
        for file in files
    )
    assert 100_000 < weight < 600_000


def test_how_to_use_shows_where_to_start_on_one_screen(visit):
    box = visit("book/how-to-use.html").locator("article table").first.bounding_box()
    assert 300 < box["y"] + box["height"] < DESK["height"]


@pytest.mark.parametrize("address", ["how-to-use", "verdict/uncertainty", "beyond/rivals"])
def test_small_tables_fit_a_phone(visit, screen, address):
    screen.set_viewport_size(PHONE)
    boxes = (
        visit(f"book/{address}.html")
        .locator(".pst-scrollable-table-container")
        .evaluate_all("boxes => boxes.map((box) => [box.scrollWidth, box.clientWidth])")
    )
    assert boxes and all(width <= room + 1 for width, room in boxes)


def test_a_first_visit_has_its_colours_before_any_script_of_the_theme(chromium, site):
    context = chromium.new_context(color_scheme="dark")
    page = context.new_page()
    page.route("**/pydata-sphinx-theme.js*", lambda route: route.abort())
    page.goto(site + "book/index.html", wait_until="domcontentloaded")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    context.close()


def test_the_tab_key_skips_formulas(visit):
    page = visit("book/method/dual.html")
    reached = page.locator("article .katex :is([tabindex], a, button)").count()
    assert page.locator("article .katex").count() > 100 and reached == 0


def test_every_link_to_a_figure_goes_there_and_back_returns(visit):
    page = visit("book/method/dual.html")
    links = page.locator('article a[href^="?"][href$="#explore-dual"]')
    assert links.count() >= 2
    for place in (0, 1, 1):  # all lead to the same anchor
        links.nth(place).scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        before = page.evaluate("scrollY")
        links.nth(place).click()
        assert 0 <= page.locator("#explore-dual").bounding_box()["y"] < DESK["height"] / 2
    page.go_back()
    page.wait_for_function(f"Math.abs(scrollY - {before}) < 50")


def test_no_formula_is_cut_by_its_box(visit):
    """At one pixel per point, where a row of pixels is the bar of a mean or the head of a 1."""
    page = visit("book/foundations/fairness-metrics.html")
    boxed = page.screenshot(full_page=True)
    page.add_style_tag(content=".katex-display { overflow: visible !important }")
    assert page.screenshot(full_page=True) == boxed


def test_search_works_without_a_server_of_its_own(visit):
    page = visit("search.html?q=alpha")
    first = page.locator("#search-results li").first
    first.wait_for(timeout=10_000)
    assert "α" in first.inner_text()
    page.get_by_text("Search finished").wait_for()
    found = page.locator("#search-results li > a").evaluate_all(
        "all => all.map(a => [-Math.round(a.dataset.score), parseFloat(a.textContent) || 0])"
    )
    assert found == sorted(found)  # by score, then by chapter
    assert not visit.trouble


FIRST_HITS = [
    ("Table 3", "book/experiments/main-tables.html"),
    ("license", "book/running-it.html"),
    ("CVaR", "book/method/worst-case.html"),
    ("audit", "book/beyond/your-own-data.html"),
    ("install", "book/running-it.html"),
    ("cite", "book/running-it.html"),
]
FURNITURE = re.compile(r"Contents|\.ipynb|Print to PDF|Binder|Open issue|Back to top")


@pytest.mark.parametrize(("words", "address"), FIRST_HITS)
def test_search_finds_what_readers_ask_for(visit, words, address):
    page = visit(f"search.html?q={quote(words)}")
    first = page.locator("#search-results li").first
    first.locator("p.context").wait_for(timeout=10_000)
    assert address in first.locator("a").first.get_attribute("href")
    excerpt = first.locator("p.context").inner_text()
    assert len(excerpt) > 60 and not FURNITURE.search(excerpt)
    assert not visit.trouble


def test_notebooks_number_formulas_and_boxes_as_the_site_does(built):
    for page in plain.pages():
        html = (built / page.relative_to(ROOT)).with_suffix(".html").read_text(encoding="utf8")
        shown = re.findall(r'class="caption-number">([^<]*)<', html)
        shown += re.findall(r'class="eqno">\(([\d.]+)\)', html)
        names = [name for name, where in plain.labels().values() if where == page]
        numbers = [name for name in names if re.fullmatch(r"(\w+\.? )?[\d.]+", name)]
        assert sorted(numbers) == sorted(text.strip() for text in shown), page


def test_launch_and_download_buttons_give_the_twin(built):
    for chapter in twins.chapters():
        address = chapter.relative_to(ROOT).with_suffix("").as_posix()
        html = (built / f"{address}.html").read_text(encoding="utf8")
        assert f"/blob/main/{address}.ipynb" in html  # Colab
        assert f"lab/tree/{address}.ipynb" in html  # Binder
        download = built / "_sources" / f"{address}.ipynb"
        assert download.read_bytes() == chapter.with_suffix(".ipynb").read_bytes()
