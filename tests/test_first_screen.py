"""What a reader sees without scrolling."""

import pytest
from pages import CHROMIUM

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no page was looked at"),
]
DESK = {"width": 1280, "height": 900}
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
