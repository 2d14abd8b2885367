"""The process that waits: imports what takes long, then becomes what it is asked for.

A question is a line of JSON, and so is its answer (see :mod:`warm`, which asks). A program is
started in a copy of this process, and the number of the copy is the answer.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import sys
from functools import partial

KERNEL = "ipykernel_launcher"
# Neither pyplot nor the inline backend nor ipykernel: they look around when they are imported.
MODULES = (
    "IPython",
    "jupyter_client",
    "lifelines",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "numba",
    "pandas",
    "sksurv.linear_model",
    "sksurv.metrics",
    "torch",
)


def ended(process_id):
    """How a process ended, as ``Popen`` tells it; None while it runs."""
    found, status = os.waitpid(process_id, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def answer_questions():
    """Answer until there are no more questions.

    Returns
    -------
    dict or None
        In a copy of this process, the question that it was made for; in the process itself nothing.
    """
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a copy prints is no answer
    with questions, answers:
        for line in questions:
            question = json.loads(line)
            if "ended" in question:
                answer = ended(question["ended"])
            else:
                answer = os.fork()
                if answer == 0:
                    return question
            print(json.dumps(answer), file=answers, flush=True)


def as_in_a_notebook():
    """Set what pandas would have found: it asks when it is imported whether it is in a kernel."""
    import pandas

    pandas.set_option("display.max_columns", 20)


def compile_something():
    """Let numba make itself ready, which it does when it first compiles."""
    import numba

    numba.njit(lambda number: number)(1.0)


class QuickEnd:
    """Ends a copy without taking its memory apart, which would take longer than many a program.

    What was registered first is called last: by then all threads and what programs want done at
    their end have ended, too.
    """

    def __init__(self):
        self.status = None  # not known; the end is the usual one
        atexit.register(self)

    def __call__(self):
        if self.status is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)

    def watch(self, program):
        """Call a function and note with which status the process will end."""
        try:
            program()
            self.status = 0
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                self.status = (end.code or 0) & 0xFF
            else:  # a message
                self.status = 1
            raise
        except Exception:
            self.status = 1
            raise


def become(arguments, environment, folder, outputs):
    """In the copy: what a new process would have been given, then its program."""
    os.setsid()  # signals reach this process and its children, and nothing else
    os.environ.clear()
    os.environ.update(environment)
    os.environ["JPY_PARENT_PID"] = str(os.getppid())  # a kernel ends with its parent
    os.chdir(folder)
    for number, path in enumerate(outputs, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = filter(None, paths)
    kind, program, *others = arguments
    if program == KERNEL:
        as_in_a_notebook()
    if kind == "-m":
        sys.argv = [program, *others]
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *others]
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    quick_end = QuickEnd()
    for name in MODULES:
        importlib.import_module(name)
    compile_something()
    gc.collect()
    gc.freeze()  # what all copies share is not looked through again by each
    question = answer_questions()
    if question is not None:
        quick_end.watch(partial(become, **question))
