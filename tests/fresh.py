"""Start Python programs in their own processes, as users do."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1800  # seconds that a program may take on a busy machine


def _command(arguments):
    return [
        sys.executable,
        "-P",
        *map(str, arguments),
    ]  # -P: the folder is not searched for modules


def start(*arguments, folder=ROOT, outputs=(), **environment):
    """Start Python in a session of its own; standard output and errors go to ``outputs``."""
    with ExitStack() as files:
        opened = [files.enter_context(open(path, "w")) for path in outputs]
        streams = dict(zip(("stdout", "stderr"), opened, strict=False))
        return subprocess.Popen(
            _command(arguments),
            cwd=folder,
            env=os.environ | environment,
            start_new_session=True,
            **streams,
        )


def run(*arguments, folder=ROOT, **environment):
    """Run Python to its end and return the process with its output."""
    return subprocess.run(
        _command(arguments),
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
