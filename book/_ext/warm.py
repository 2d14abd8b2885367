"""Kernels that begin with what every chapter imports already in memory.

Importing torch, scikit-survival and lifelines takes longer than many a chapter, and a build starts
a kernel for each of more than thirty chapters. Here one process imports them once and then waits.
For every kernel it makes a copy of itself (a *fork*), and the copy becomes the kernel: it has its
own memory from then on, and so the next chapter sees nothing of it.

Run as a program, this file is that waiting process. Imported, it lets Jupyter ask it for kernels
(:func:`use`): a *provisioner* is Jupyter's name for what starts a kernel. Only on Linux, as a fork
after such imports is not safe elsewhere; on other systems kernels start in the usual way.
"""

import atexit
import gc
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

NAME = "drocox-warm"
LAUNCHER = "ipykernel_launcher"  # what a kernel of this Python is started with
# What chapters import. Neither pyplot nor the inline backend: they look for the kernel they are in.
MODULES = (
    "drocox.paper.run",
    "lifelines",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
)


class Parent:
    """The waiting process, as seen from the one that wants kernels.

    A question is a line of JSON, and so is its answer.
    """

    def __init__(self, environment):
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.end)

    def ask(self, **question):
        with self.lock:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def end(self):
        """The process ends when there are no more questions; its kernels notice, and end too."""
        self.process.stdin.close()
        self.process.wait()


@cache
def parent(process_id):
    """The waiting process of this process, started when the first kernel is wanted."""
    return Parent(os.environ)


class Kernel:
    """A kernel that was started by the waiting process, with what Jupyter uses of ``Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, of, arguments, environment, folder):
        self.of = of
        self.ended = None
        self.pid = of.ask(arguments=arguments, environment=environment, folder=folder)

    def poll(self):
        if self.ended is None:
            self.ended = self.of.ask(poll=self.pid)
        return self.ended

    def wait(self):
        while self.poll() is None:
            time.sleep(0.05)
        return self.ended

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)


class Provisioner(LocalProvisioner):
    """Starts kernels of this Python warm, and others as usual."""

    async def launch_kernel(self, cmd, *, env, cwd=None, **options):
        if LAUNCHER not in cmd or cmd[0] != sys.executable:
            return await super().launch_kernel(cmd, env=env, cwd=cwd, **options)
        arguments = cmd[cmd.index(LAUNCHER) + 1 :]
        self.process = Kernel(parent(os.getpid()), arguments, env, cwd or os.getcwd())
        self.pid = self.pgid = self.process.pid
        self.cwd = cwd or Path.cwd()
        return self.connection_info


def use():
    """Let kernels be started warm from now on, where that is safe."""
    if sys.platform != "linux":
        return
    factory = KernelProvisionerFactory.instance()
    place = f"{Provisioner.__module__}:{Provisioner.__name__}"
    factory.provisioners[NAME] = EntryPoint(NAME, place, factory.GROUP_NAME)
    factory.default_provisioner_name = NAME


def ended(process_id):
    """How a kernel ended, as ``Popen`` tells it; None while it runs."""
    found, status = os.waitpid(process_id, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def wait_for_questions():
    """Answer questions until there are no more.

    Returns
    -------
    dict or None
        In a copy of this process, the question that it was made for; in the process itself nothing.
    """
    answers = os.dup(1)
    os.dup2(2, 1)  # what a kernel prints by itself is no answer
    with os.fdopen(os.dup(0)) as questions, os.fdopen(answers, "w") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for line in questions:
            question = json.loads(line)
            if "poll" in question:
                answer = ended(question["poll"])
            else:
                answer = os.fork()
                if answer == 0:
                    return question
            print(json.dumps(answer), file=answers, flush=True)


def become_kernel(arguments, environment, folder):
    """In the copy: what a new process would have been given, then the kernel itself."""
    os.setsid()  # signals to the kernel reach its children, and nothing else
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    ends_with = f"--IPKernelApp.parent_handle={os.getppid()}"
    IPKernelApp.launch_instance(argv=[*arguments, ends_with])


if __name__ == "__main__":
    from ipykernel.kernelapp import IPKernelApp

    for name in MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what all kernels share is not looked through again by each
    kernel = wait_for_questions()
    if kernel:
        become_kernel(**kernel)
