"""Programs in processes of their own, as a stranger starts them, without the wait for imports.

What the package imports from others is in memory already, and nothing of the package is (see
``book/_ext/warm.py``).
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 300  # seconds that a program may take
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import warm  # noqa: E402


def start(*arguments, folder=ROOT, outputs=(), **environment):
    """A process of Python with some arguments; with names of variables also their values."""
    return warm.start(arguments, os.environ | environment, folder, outputs)


def run(*arguments, folder=ROOT, **environment):
    """The same when it has ended, with what it printed."""
    with tempfile.TemporaryDirectory() as own:
        outputs = [Path(own, "stdout"), Path(own, "stderr")]
        process = start(*arguments, folder=folder, outputs=outputs, **environment)
        try:
            process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            raise
        texts = [path.read_text(encoding="utf8") for path in outputs]
        return subprocess.CompletedProcess(arguments, process.returncode, *texts)
