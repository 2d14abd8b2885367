"""The built book as readers get it: a server, and Chromium. Shared by the tests that open pages."""

import functools
import http.server
import shutil
import threading
from contextlib import contextmanager

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PACKED = {".png", ".woff2"}  # compressed already; servers compress the other files


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve files without log messages."""

    def log_message(self, *arguments):
        pass


@contextmanager
def served(folder):
    """The address under which the files of a folder can be read, while the context lasts."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@contextmanager
def browser():
    """Chromium without a window, with the scrollbars that most readers see."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = driver.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, ignore_default_args=["--hide-scrollbars"]
        )
        yield program
        program.close()
