"""Processes that start with others' packages in memory are otherwise like any other process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import fresh
import nbformat
import pytest
import warm
from nbclient import NotebookClient

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes start in the usual way here"
)

PROGRAMS = {
    "arguments": "import sys; print(sys.argv)",
    "folder": "import os; print(os.getcwd())",
    "variables": "import os; print(os.environ['DROCOX_WORD'], os.environ['PYTHONPATH'])",
    "name": "print(__name__)",
    "modules of its own": "import mine; print(mine.WORD)",
    "input": "import sys; print(repr(sys.stdin.read()))",
    "errors": "import sys; print('no', file=sys.stderr)",
    "status": "import sys; sys.exit(3)",
    "message": "import sys; sys.exit('what is wrong')",
    "large status": "import sys; sys.exit(257)",
    "its end": "import atexit; atexit.register(print, 'ended')",
    "threads": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start()",
    "an error at its end": "import atexit; atexit.register(int, 'x')",
}


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_finds_what_a_new_process_gives_it(tmp_path, code):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.py").write_text("WORD = 'own'\n")
    environment = {"PYTHONPATH": str(tmp_path / "own"), "DROCOX_WORD": "α"}
    done = fresh.run("-c", code, "one", "2", folder=tmp_path, **environment)
    usual = subprocess.run(
        [sys.executable, "-P", "-c", code, "one", "2"],
        cwd=tmp_path,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        usual.returncode,
        usual.stdout,
        usual.stderr,
    )


def test_a_module_is_run_as_a_program():
    done = fresh.run("-m", "json.tool", os.devnull)
    assert done.returncode == 1 and "Expecting value" in done.stderr


def test_an_error_ends_in_a_traceback():
    done = fresh.run("-c", "1 / 0")
    assert done.returncode == 1 and done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_an_interrupted_program_ends_by_that_signal():
    done = fresh.run("-c", "raise KeyboardInterrupt")
    assert done.returncode == -signal.SIGINT and done.stderr.endswith("\nKeyboardInterrupt\n")


def test_nothing_of_the_package_is_there_and_nothing_that_another_program_left():
    changes = "import pandas, sys; pandas.left = sys.left = 1"
    assert fresh.run("-c", changes).returncode == 0
    looks = "import pandas, sys, threading\n"
    looks += "print(hasattr(pandas, 'left'), hasattr(sys, 'left'), threading.active_count(),"
    looks += " any(name.split('.')[0] == 'drocox' for name in sys.modules), 'torch' in sys.modules)"
    assert fresh.run("-c", looks).stdout == "False False 1 False True\n"


def test_a_process_that_is_killed_is_told_as_such():
    process = fresh.start("-c", "import time; time.sleep(60)")
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def test_a_program_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(fresh, "LIMIT", 0.1)
    with pytest.raises(subprocess.TimeoutExpired):
        fresh.run("-c", "import time; time.sleep(60)")


def test_a_process_that_cannot_wait_says_what_to_do(monkeypatch, tmp_path):
    program = tmp_path / "waiting.py"
    program.write_text("import nothing_of_this_name")
    monkeypatch.setattr(warm, "WAITING", program)
    parent = warm.Parent()
    parent.process.wait()
    with pytest.raises(
        RuntimeError, match=r"has ended, with status 1; .* install it by make setup"
    ):
        parent.ask(ended=1)
    parent.end()


def test_a_process_is_told_who_its_parent_is():
    """By this number a kernel sees that its parent has ended, and ends too."""
    code = "import os; print(os.environ['JPY_PARENT_PID'] == str(os.getppid()))"
    assert fresh.run("-c", code).stdout == "True\n"


@pytest.fixture
def kernels():
    """Kernels as the build starts them; afterwards as before, which for notebooks is the same."""
    factory = warm.KernelProvisionerFactory.instance()
    before = factory.default_provisioner_name
    warm.use()
    yield
    factory.default_provisioner_name = before


def test_a_kernel_shows_figures_and_tables_as_any_other(kernels, tmp_path, monkeypatch):
    """The inline backend and pandas ask when they are imported whether they are in a kernel."""
    for name, value in warm.kernel_environment().items():
        monkeypatch.setenv(name, value)
    cells = ["import matplotlib.pyplot as plt; plt.plot([1, 2]);", "import os; os.getcwd()"]
    cells.append("import pandas; pandas.get_option('display.max_columns')")
    cells = [nbformat.v4.new_code_cell(source) for source in cells]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    figure, folder, columns = (cell.outputs[0].data for cell in notebook.cells)
    assert "image/png" in figure
    assert Path(folder["text/plain"].strip("'")) == tmp_path
    assert columns["text/plain"] == "20"
