"""The built book as readers get it: a server, and Chromium. Shared by the tests that open pages."""

import functools
import gzip
import http.server
import io
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

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
PACKED = {".png", ".woff2"}  # compressed already


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *arguments):
        pass


class Compressing(Quiet):
    """Serves text compressed, and several files on one connection, as servers on the web do."""

    protocol_version = "HTTP/1.1"

    def send_head(self):
        file = Path(self.translate_path(self.path))
        if not file.is_file() or file.suffix in PACKED:
            return super().send_head()
        content = gzip.compress(file.read_bytes())
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)


@contextmanager
def served(folder, handler=Quiet):
    """The address under which the files of a folder can be read, while the context lasts."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
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
