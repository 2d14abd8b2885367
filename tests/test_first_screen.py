"""What a reader sees without scrolling."""

import pytest
from pages import CHROMIUM

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no page was looked at"),
]
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SECTION = ".bd-article > section > section"
LOWEST = """() => {
  const shown = [...document.querySelectorAll("article :is(p, li, tr)")]
    .filter((e) => e.checkVisibility());
  return Math.max(...shown.map((e) => e.getBoundingClientRect().bottom));
}"""


def test_how_to_use_fits_one_screen(chromium, site):
    context = chromium.new_context(viewport=DESK)
    page = context.new_page()
    page.goto(site + "book/how-to-use.html")
    page.evaluate("() => document.fonts.ready.then(() => null)")
    assert page.evaluate("scrollY") == 0
    assert 300 < page.evaluate(LOWEST) < DESK["height"]
    context.close()


@pytest.fixture
def phone(chromium):
    context = chromium.new_context(viewport=PHONE)
    yield context.new_page()
    context.close()


def left_out(page):
    """Sections that the browser has not laid out."""
    return page.evaluate(f"""[...document.querySelectorAll("{SECTION}")]
      .map((section) => section.querySelector("h2"))
      .filter((title) => !title.checkVisibility({{ contentVisibilityAuto: true }})).length""")


def test_a_phone_lays_out_what_is_below_when_all_is_there(phone, site):
    held = []
    # A picture of the page is on its way
    phone.route("**/_images/*", lambda route: held.append(route))
    phone.goto(site + "book/method/dro-cox.html", wait_until="domcontentloaded")
    phone.wait_for_function("() => new Promise(requestAnimationFrame)")
    sections = phone.locator(SECTION).count()
    assert sections > 5 and left_out(phone) >= sections - 2
    for route in held:
        route.continue_()
    phone.unroute_all()
    phone.wait_for_function(f"() => !document.querySelector('{SECTION}:not(.laid-out)')")
    assert left_out(phone) == 0


def test_a_link_into_a_chapter_leads_there_on_a_phone(phone, site):
    phone.goto(site + "book/method/dual.html#exercises")
    phone.wait_for_function(f"() => !document.querySelector('{SECTION}:not(.laid-out)')")
    phone.wait_for_timeout(300)  # frames in which the browser keeps the place
    top = phone.locator("#exercises > h2").bounding_box()["y"]
    assert 0 <= top < PHONE["height"] / 2


def test_a_desk_lays_out_everything_at_once(chromium, site):
    context = chromium.new_context(viewport=DESK, java_script_enabled=False)
    page = context.new_page()
    page.goto(site + "book/method/dual.html")
    section = page.locator(SECTION).last
    assert section.evaluate("e => getComputedStyle(e).contentVisibility") == "visible"
    context.close()


@pytest.mark.parametrize("address", ["index", "verdict/claims", "beyond/rivals"])
def test_small_tables_fit_a_phone(phone, site, address):
    phone.goto(f"{site}book/{address}.html")
    boxes = phone.locator(".pst-scrollable-table-container").evaluate_all(
        "boxes => boxes.map((box) => [box.scrollWidth, box.clientWidth])"
    )
    assert boxes and all(width <= room + 1 for width, room in boxes)
