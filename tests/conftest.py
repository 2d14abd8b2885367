"""What all tests share: repeatable property tests, the built book, and a browser.

Warnings are errors (see ``pyproject.toml``). Property tests draw the same examples on every run;
``pytest --hypothesis-profile=explore`` draws fresh ones, and more of them.
"""

from pathlib import Path

import absent
import pages
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# The first example of a test may have to compile a kernel, so neither the time of one example nor
# the speed of drawing says anything.
slow_start = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, max_examples=40, **slow_start)
settings.register_profile("explore", max_examples=1000, **slow_start)
settings.load_profile("repeatable")


absent.stand_in()  # for packages without a wheel


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Tests of the paper's data are skipped, too, where the package that has them is absent."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        absent.skipped(error)


JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"  # as its command does
# Workers take files in order: the long ones first, then those that need the built book.
LONGEST_FIRST = ("test_book.py", "test_sweep.py", "test_store.py", "test_newton.py", ".ipynb")


def pytest_collection_modifyitems(items):
    """Long files first, so that at the end no worker is left alone with one."""
    items.sort(key=lambda item: not item.path.name.endswith(LONGEST_FIRST))


@pytest.fixture(scope="session")
def built(testrun_uid):
    """The folder of the built book, with the outputs that nbval compares (see ``bookbuild``).

    The first worker that needs it builds it, and the others wait. Building is quick when nothing
    has changed. `make book` has a folder of its own.
    """
    import fresh  # needs the sources of the book, which a copy of package and tests lacks

    folder = ROOT / "_build" / "tested"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / ".by"
    with FileLock(folder / ".lock"):
        if not stamp.exists() or stamp.read_text() != testrun_uid:
            command = ["build", ".", "-W", "--keep-going", "-q", "--path-output", folder]
            done = fresh.run("-c", JUPYTER_BOOK, *command, DROCOX_OUTPUTS="twins")
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
            stamp.write_text(testrun_uid)
    return folder / "_build" / "html"


@pytest.fixture(scope="module")
def site(built):
    """The address of the built book."""
    with pages.served(built) as address:
        yield address


@pytest.fixture(scope="module")  # while it runs, no other test can start one
def chromium():
    """A browser for the tests of one file."""
    with pages.browser() as program:
        yield program
