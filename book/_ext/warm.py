"""New processes that begin with what chapters import already in memory.

Importing torch, scikit-learn and pandas takes longer than many a chapter, and a build starts a
kernel for each of more than thirty chapters. Here one process (:mod:`waiting`) imports them once
and then waits. For every kernel it makes a copy of itself (a *fork*), and the copy becomes the
kernel: it has its own memory from then on, and so the next chapter sees nothing of it. Of this
project nothing is imported beforehand.

Only on Linux, as a fork after such imports is not safe elsewhere; on other systems processes start
in the usual way.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

from cache_key import kernel_environment
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

WAITING = Path(__file__).with_name("waiting.py")
NAME = "drocox-warm"


class Process:
    """A process that the waiting one has started, with what Jupyter uses of ``Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, parent, **question):
        self.parent = parent
        self.returncode = None
        self.pid = parent.ask(**question)

    def poll(self):
        if self.returncode is None:
            self.returncode = self.parent.ask(ended=self.pid)
        return self.returncode

    def wait(self, timeout=None):
        start = time.monotonic()
        while self.poll() is None:
            if timeout is not None and time.monotonic() - start > timeout:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(0.02)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)


class Parent:
    """The waiting process, as seen from here. A question is a line of JSON, and so is its answer.

    It starts in the environment of the chapters: the seed of hashes and the number of threads are
    settled when Python and its libraries are loaded.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [sys.executable, "-P", WAITING],
            env=os.environ | kernel_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.end)

    def ask(self, **question):
        answer = ""
        with self.lock, suppress(BrokenPipeError):
            print(json.dumps(question), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(
                f"{WAITING.name} has ended, with status {self.process.wait()}; its own message is "
                "above: if a package is missing, install it by make setup"
            )
        return json.loads(answer)

    def end(self):
        """The process ends when no more questions can come, and kernels end with it."""
        with suppress(BrokenPipeError):  # if it has ended already
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@cache
def parent():
    """The waiting process of this process, started when it is needed first."""
    return Parent()


def start(arguments, environment, folder, outputs=()):
    """Start Python with some arguments.

    Parameters
    ----------
    arguments : list of str
        As on the command line: ``-m`` and a module or ``-c`` and code, and what follows.
    environment : dict of str
    folder : path
    outputs : pair of paths
        Files for what the process prints and for its errors, if not where this process has them.

    Returns
    -------
    Process or subprocess.Popen
        In both cases in a session of its own.
    """
    if sys.platform == "linux":
        return Process(
            parent(),
            arguments=list(map(str, arguments)),
            environment=dict(environment),
            folder=str(folder),
            outputs=list(map(str, outputs)),
        )
    command = [sys.executable, "-P", *arguments]
    options = {"env": environment, "cwd": folder, "start_new_session": True}
    if not outputs:
        return subprocess.Popen(command, **options)
    with open(outputs[0], "w") as printed, open(outputs[1], "w") as errors:
        return subprocess.Popen(command, stdout=printed, stderr=errors, **options)


class Provisioner(LocalProvisioner):
    """What starts a kernel, in Jupyter's words: those of this Python warm, others as usual."""

    async def launch_kernel(self, cmd, *, env, cwd=None, **options):
        if cmd[0] != sys.executable or "-m" not in cmd:
            return await super().launch_kernel(cmd, env=env, cwd=cwd, **options)
        self.cwd = cwd or Path.cwd()
        self.process = start(cmd[cmd.index("-m") :], env, self.cwd)
        self.pid = self.pgid = self.process.pid
        return self.connection_info


def use():
    """Let Jupyter start kernels this way, where that is safe."""
    if sys.platform != "linux":
        return
    factory = KernelProvisionerFactory.instance()
    place = f"{__name__}:{Provisioner.__name__}"
    factory.provisioners[NAME] = EntryPoint(NAME, place, factory.GROUP_NAME)
    factory.default_provisioner_name = NAME
