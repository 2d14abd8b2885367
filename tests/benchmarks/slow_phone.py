"""How long a slow phone takes until a page of the built book can be read.

``python tests/benchmarks/slow_phone.py [FOLDER]`` opens pages in Chromium with a quarter of this
machine's speed, 1.6 Mbit/s, answers 150 ms late, a screen of 390 by 844 pixels and an empty cache.
FOLDER is that of the built book. The server compresses text. Each page is opened several times; the
median is printed. The goal: formulas are readable within 3 s of the first paint.

*Fonts* is when the last font of formulas has arrived. What follows is work of the processor, so the
other times are right on an idle machine only; the load is printed below.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from pages import Compressing, browser, served  # noqa: E402

PAGES = (
    "book/index.html",
    "book/method/dual.html",
    "book/method/dro-cox.html",
    "book/experiments/main-tables.html",
)
PHONE = {"width": 390, "height": 844}
SLOWER = 4  # times, than this machine
LINE = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1.6e6 / 8,
    "uploadThroughput": 0.75e6 / 8,
}
GOAL = 3.0  # seconds from the first paint to formulas that can be read
# Formulas are HTML of the page. They can be read when it is there, painted, and has its fonts.
WATCH = """
const painted = new Promise((resolve) => {
  new PerformanceObserver((list) => {
    const first = list.getEntriesByName("first-contentful-paint");
    if (first.length) resolve(first[0].startTime);
  }).observe({ type: "paint", buffered: true });
});
const parsed = new Promise((resolve) => {
  document.addEventListener("readystatechange", resolve, { once: true });
});
const frame = () => new Promise(requestAnimationFrame);
const fonts = () => Promise.all([...document.fonts]
  .filter((font) => font.family.includes("KaTeX") && font.status === "loading")
  .map((font) => font.loaded));
window.readable = Promise.all([painted, parsed.then(frame).then(frame).then(fonts)])
  .then(([paint]) => [paint / 1000, performance.now() / 1000]);
"""
FONTS = """Math.max(0, ...performance.getEntriesByType("resource")
  .filter((file) => file.name.includes("KaTeX")).map((file) => file.responseEnd)) / 1000"""
END = "(performance.timing.loadEventEnd - performance.timing.navigationStart) / 1000"


def visit(program, address):
    """Seconds to first paint, readable formulas, their fonts, the end; formulas; KB on the line."""
    context = program.new_context(viewport=PHONE, is_mobile=True, has_touch=True)
    page = context.new_page()
    session = context.new_cdp_session(page)
    loaded = []
    session.on("Network.loadingFinished", lambda event: loaded.append(event["encodedDataLength"]))
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.send("Network.emulateNetworkConditions", LINE)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.add_init_script(WATCH)
    page.goto(address, wait_until="load", timeout=120_000)
    seconds = [*page.evaluate("readable"), page.evaluate(FONTS), page.evaluate(END)]
    formulas = page.locator(".katex").count()
    context.close()
    return [*seconds, formulas, sum(loaded) / 1000]


def main():
    """Print a line for each page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--visits", type=int, default=3, help="of each page (default: 3)")
    options = parser.parse_args()
    if not (options.folder / PAGES[0]).exists():
        parser.error(f"{options.folder} holds no built book: run make book, or name its folder")
    print(
        "page                first paint    fonts  readable  after paint  all loaded  formulas   KB"
    )
    with served(options.folder, Compressing) as site, browser() as program:
        for page in PAGES:
            visits = [visit(program, site + page) for _ in range(options.visits)]
            medians = map(statistics.median, zip(*visits, strict=True))
            paint, readable, fonts, end, formulas, weight = medians
            name = page.removeprefix("book/").removesuffix(".html")
            late = "" if readable - paint <= GOAL else f"  more than {GOAL:g} s"
            print(
                f"{name:22} {paint:6.1f} s {fonts:6.1f} s {readable:7.1f} s"
                f" {readable - paint:10.1f} s {end:9.1f} s {formulas:9.0f} {weight:4.0f}{late}"
            )
    print(f"{os.getloadavg()[0]:.1f} processes at work on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
