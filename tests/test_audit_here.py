"""The page that audits a visitor's file in the browser, with the Python that visitors get.

The addresses of Pyodide are answered from a wheel of the package index that holds its distribution;
its lock file has a hash of every package, which the loader checks.
"""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import fresh
import numpy as np
import pytest
from bs4 import BeautifulSoup
from lifelines import datasets
from pages import CHROMIUM

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "_build" / "pyodide"
WHEEL = "open_webui-0.12.4-py3-none-any.whl"
SHA256 = "02e9caba96234db3fa17a92e56163b3f7f2b8ca8227fa886b85c178d696483f6"
DISTRIBUTION = "https://cdn.jsdelivr.net/pyodide/v314.0.3/full/"
KINDS = {".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
PATIENCE = 900_000  # milliseconds, on a busy machine

pytestmark = pytest.mark.slow


def absent(reason):
    """Skip, but not where all pages must be tried."""
    (pytest.fail if os.environ.get("DROCOX_ALL_PAGES") else pytest.skip)(reason)


@pytest.fixture(scope="module")
def distribution():
    """The archive with Pyodide; fetched once, and kept."""
    if CHROMIUM is None:
        absent("no Chromium here: no file was audited in a page")
    path = FOLDER / WHEEL
    if not path.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        name = "open_webui==0.12.4"
        wanted = ["--no-deps", "--python-version", "3.12", "--only-binary=:all:", "--dest", FOLDER]
        if subprocess.run([*pip, *wanted, name]).returncode:
            absent(f"{name}, which holds Pyodide, cannot be fetched here")
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    with zipfile.ZipFile(path) as archive:
        yield archive


class Visit:
    """A tab with the page, and the hosts that it asked."""

    def __init__(self, browser, site):
        self.context = browser.new_context()
        self.page = self.context.new_page()
        self.asked = []
        self.page.on("request", lambda request: self.asked.append(urlsplit(request.url).netloc))
        self.site = site

    def open(self):
        self.page.goto(f"{self.site}book/audit-here.html", wait_until="networkidle")

    def start(self):
        """Press the button; what the page says then."""
        self.page.get_by_role("button", name="Start Python").click()
        return self.answer()

    def choose(self, path):
        """Choose a file; what the page says then."""
        self.page.locator("[name=file]").set_input_files(path)
        return self.answer()

    def answer(self):
        """What the page says when it has done what it was asked to do."""
        idle = "() => !document.getElementById('audit-here').inert"
        self.page.wait_for_function(idle, timeout=PATIENCE)
        return self.page.get_by_role("status").inner_text()


@pytest.fixture(scope="module")
def visit(chromium, site, distribution):
    """The page with Python running in it."""

    def answer(route):
        name = PurePosixPath(route.request.url.removeprefix(DISTRIBUTION))
        kind = KINDS.get(name.suffix, "application/octet-stream")
        headers = {"access-control-allow-origin": "*", "content-type": kind}
        body = distribution.read(f"open_webui/frontend/pyodide/{name}")
        route.fulfill(status=200, headers=headers, body=body)

    visit = Visit(chromium, site)
    visit.page.route(f"{DISTRIBUTION}**", answer)
    visit.open()
    assert set(visit.asked) == {urlsplit(site).netloc}
    assert "ready" in visit.start()
    assert set(visit.asked) == {urlsplit(site).netloc, urlsplit(DISTRIBUTION).netloc}
    visit.asked.clear()
    yield visit
    visit.context.close()


def rossi(path):
    """A score for prisoners, higher for earlier arrests; where they are, with the command."""
    df = datasets.load_rossi()
    df["score"] = (0.1 * df["prio"] - 0.06 * df["age"]).round(3)
    df.to_csv(path, index=False)
    return {
        "time": "week",
        "event": "arrest",
        "prediction": "score",
        "groups": ["race", "mar"],
        "cuts": "age>23",
    }


def gbsg2(path):
    """Risks of patients up to three years, which are too low for some of them."""
    df = datasets.load_gbsg2()
    df["risk"] = (1 / (1 + np.exp(1 - 0.09 * df["pnodes"]))).round(4)
    df["cens"] = df["cens"].map({0: "free", 1: "again"})
    df.to_csv(path, index=False)
    return {
        "time": "time",
        "event": "cens=again",
        "kind": "--risk",
        "prediction": "risk",
        "horizon": "1095",
        "groups": ["menostat"],
        "cuts": "age:45,60",
    }


def words(page):
    """All text of a report outside of its figures."""
    soup = BeautifulSoup(page, "html.parser")
    for part in soup.select("svg, style"):
        part.decompose()
    return [text for text in soup.get_text("\n").splitlines() if text.strip()]


@pytest.mark.parametrize("data", [rossi, gbsg2])
def test_the_report_in_the_page_is_that_of_the_command(visit, tmp_path, data):
    path = tmp_path / f"{data.__name__}.csv"
    chosen = data(path)
    assert f"{data.__name__}.csv: " in visit.choose(path)

    fill_in(visit.page, chosen)
    visit.page.get_by_role("button", name="Audit", exact=True).click()
    assert visit.answer().startswith("The report of ")
    assert visit.asked == []  # once a file was chosen, nothing is asked of any server

    kind = chosen.get("kind", "--score")
    arguments = ["--time", chosen["time"], "--event", chosen["event"]]
    for group in [*chosen["groups"], chosen["cuts"]]:
        arguments += ["--groups", group]
    arguments += [kind, chosen["prediction"]]
    arguments += ["--horizon", chosen["horizon"]] if "horizon" in chosen else []
    done = fresh.run("-m", "drocox.cli", "audit", path.name, *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    native = (tmp_path / f"{path.stem}-audit.html").read_text(encoding="utf8")
    shown = visit.page.locator("#audit-here iframe").get_attribute("srcdoc")
    assert len(words(native)) > 100
    assert words(shown) == words(native)
    with visit.page.expect_download() as saved:
        visit.page.get_by_role("link", name="Save the report").click()
    assert saved.value.suggested_filename == f"{path.stem}-audit.html"
    assert saved.value.path().read_text(encoding="utf8") == shown


def fill_in(page, chosen):
    for name, value in chosen.items():
        field = page.locator(f"#audit-here [name={name}]")
        if isinstance(value, list):
            for column in value:
                page.get_by_label(column, exact=True).and_(field).check()
        elif field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def test_the_example_is_audited_with_one_more_click(visit):
    visit.page.get_by_role("button", name="500 invented").click()
    assert visit.answer() == "patients.csv: 500 patients, 6 columns."
    visit.page.get_by_role("button", name="Audit", exact=True).click()
    assert visit.answer().startswith("The report of 500 patients is below")


def test_errors_are_those_of_the_command(visit, tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("a,a\n1,2\n")
    assert visit.choose(path) == (
        "cannot read twice.csv: it names 'a' twice; rename one of the columns"
    )
    path = tmp_path / "early.csv"
    path.write_text("t,e,g,s\n-1,1,a,2\n2,0,b,1\n")
    visit.choose(path)
    fill_in(
        visit.page,
        {"time": "t", "event": "e", "kind": "--score", "prediction": "s", "groups": ["g"]},
    )
    visit.page.get_by_role("button", name="Audit", exact=True).click()
    assert visit.answer() == "--time: 't' holds -1 in line 2; times start at 0"
    assert visit.page.locator("#audit-here iframe").is_hidden()


def test_a_large_file_is_left_to_the_command(visit, tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("t,e\n" + "1,1\n" * 100_000)
    assert visit.choose(path).startswith("many.csv has 100,000 patients, and this page takes at")
    assert visit.page.locator("[name=choice]").is_hidden()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no page was looked at")
def test_without_network_the_page_says_so_and_can_be_asked_again(chromium, site):
    visit = Visit(chromium, site)
    visit.page.route(f"{DISTRIBUTION}**", lambda route: route.abort())
    visit.open()
    assert "Check the connection to cdn.jsdelivr.net" in visit.start()
    assert "Check the connection to cdn.jsdelivr.net" in visit.start()
    visit.context.close()


def test_only_that_page_has_the_script(built):
    having = {page.name for page in built.rglob("*.html") if "python/audit.js" in page.read_text()}
    assert having == {"audit-here.html"}
