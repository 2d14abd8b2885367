"""Would the tests notice? Thirty small faults, put one by one into the code that users trust most.

    make mutants                         draw thirty, try each, list their fates
    make mutants ARGS="--list"           only say which are drawn
    make mutants ARGS="--jobs 1"         one at a time

A *mutant* is a module with one small change: a comparison turned, a sign, a constant or the end of
a slice moved, ``min`` for ``max``, ``and`` for ``or``, a ``not`` dropped. All that can be made of
the solver, the intervals, the audit and the concordance are listed from their syntax trees, and
thirty are drawn by a seed. Each is put into a copy of the package, where the tests of its module
run until the first fails (or all take far longer than without the change): the mutant is *killed*.
One that *survives* is a line that no test holds in place, unless the change cannot be seen from
outside; such mutants are listed in :data:`EQUIVALENT` with the reason.

The stored results are stamped as current in the copy, so that no test fails only because the code
is not the code that made them. Fates are kept in ``_build/mutants.json`` for as long as neither the
package nor these tests change: what was stopped is resumed. The exit status is 1 if one survives.
"""

import argparse
import ast
import copy
import hashlib
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / "_build" / "mutants.json"
# Modules, and the tests that hold them besides tests/test_<module>*.py, where they exist.
TARGETS = {
    "solver": ["test_weights"],
    "objective": ["test_solver", "test_solver_options", "test_weights"],
    "coordinates": ["test_solver", "test_solver_options", "test_weights"],
    "tail": ["test_solver", "test_solver_options", "test_weights"],
    "intervals": ["test_heldout", "test_report", "test_concordance"],
    "heldout": ["test_report", "test_uno_and_slope", "test_horizon"],
    "contrasts": ["test_heldout", "test_report"],
    "judging": ["test_heldout", "test_contrasts", "test_report", "test_any_model"],
    "report": ["test_heldout", "test_audit_cli", "test_any_model"],
    "slices": ["test_heldout", "test_report"],
    "concordance": ["test_fairness", "test_accuracy", "test_report"],
}
PATIENCE = 4  # a mutant has this many times the time of the unchanged module, and half a minute
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add}
EXTREMES = {"min": "max", "minimum": "maximum", "argmin": "argmax", "fmin": "fmax", "amin": "amax"}
EXTREMES |= {most: least for least, most in EXTREMES.items()}
# Changes that nobody can see from outside: (module, line of code, change) -> why.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "coordinates",
        "BLOCK = 2**15  # numbers at a time that the processor keeps at hand",
        "15 → 14",
    ): "the same rows are multiplied, fewer at a time",
    ("objective", "if x >= SMALL_ARGUMENT:", "GtE → Gt"): (
        "at this one number both formulas agree to rounding"
    ),
    ("solver", "NOTHING = 1e-20", "1e-20 → -1.0"): (
        "a step that gains nothing is then refused by the comparison of slopes after it"
    ),
    ("solver", "WELL_CONDITIONED = 1e-8", "1e-08 → 1.00000001"): (
        "eigenvalues give the same direction as Cholesky's factor, only later"
    ),
    ("tail", "few = 10 + 3 * len(hessian)", "10 → 9"): (
        "when the second stage takes over, which is exact from any start"
    ),
    ("intervals", "DRAWS = 20_000  # of the largest of several errors", "20000 → 20001"): (
        "one draw more moves a simulated quantile by less than its error"
    ),
    ("judging", '"risk_observed": Measure("Observed risk", 100, False),', "100 → 99"): (
        "no difference of observed risks is made: groups are not compared by it, nor are models"
    ),
    (
        "report",
        'return json.loads(frame.to_json(orient="records", double_precision=12))',
        "12 → 13",
    ): "a digit more of a number that has twelve",
}


@dataclass(frozen=True)
class Mutant:
    """A change of one node: which module, the number of the change in it, line, words."""

    module: str
    number: int
    line: int
    change: str
    code: str

    @property
    def name(self) -> str:
        """Unique among the mutants of one state of the code."""
        return f"{self.module}.py:{self.line} {self.change} [{self.number}]"

    @property
    def source(self) -> str:
        """The changed module."""
        tree = ast.parse(text_of(self.module))
        parent, field, index, _, other = list(nodes_of(tree))[self.number]
        put(parent, field, index, other)
        return ast.unparse(ast.fix_missing_locations(tree))

    @property
    def excuse(self) -> str:
        """Why it cannot be killed; empty if it can."""
        return EQUIVALENT.get((self.module, self.code, self.change), "")


def digest(text: str) -> str:
    """Hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Each simple change of a node: in words, and the node that takes its place."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            turned = copy.deepcopy(node)
            turned.ops[place] = COMPARISONS[type(operator)]()
            yield f"{type(operator).__name__} → {type(turned.ops[place]).__name__}", turned
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in SIGNS:
        if not any(is_text(part) for part in ast.iter_child_nodes(node)):
            turned = copy.deepcopy(node)
            turned.op = SIGNS[type(node.op)]()
            yield f"{type(node.op).__name__} → {type(turned.op).__name__}", turned
    elif isinstance(node, ast.BoolOp):
        turned = copy.deepcopy(node)
        turned.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"{type(node.op).__name__} → {type(turned.op).__name__}", turned
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield f"{type(node.op).__name__} dropped", node.operand
    elif isinstance(node, ast.Constant):
        yield from other_constants(node)
    elif isinstance(node, ast.Call):
        yield from other_extremes(node)
    elif isinstance(node, ast.Slice):
        yield from other_ends(node)


def is_text(node: ast.AST) -> bool:
    """Whether a node is a string, with or without values in it."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def other_constants(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    """A number moved by one and set to zero; a truth value turned."""
    value = node.value
    if isinstance(value, bool):
        yield f"{value} → {not value}", ast.Constant(not value)
    elif isinstance(value, (int, float)):
        for other in dict.fromkeys((value + 1, value - 1, 0 * value)):
            if other != value:
                yield f"{value} → {other}", ast.Constant(other)


def other_extremes(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    """The largest for the smallest, as a function or a method, and the other way round."""
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", None))
    if name in EXTREMES:
        turned = copy.deepcopy(node)
        field = "attr" if isinstance(function, ast.Attribute) else "id"
        setattr(turned.func, field, EXTREMES[name])
        yield f"{name} → {EXTREMES[name]}", turned


def other_ends(node: ast.Slice) -> Iterator[tuple[str, ast.AST]]:
    """A slice that starts one later or ends one earlier; constants are moved by themselves."""
    for end, operator in (("lower", ast.Add()), ("upper", ast.Sub())):
        part = getattr(node, end)
        if part is not None and not isinstance(part, (ast.Constant, ast.UnaryOp)):
            turned = copy.deepcopy(node)
            setattr(turned, end, ast.BinOp(part, operator, ast.Constant(1)))
            yield f"{end} end of a slice moved", turned


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Where nodes that compute stand: parent, field and index. Types and messages do not count."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list"}:
            continue
        parts = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, part in parts:
            if isinstance(part, ast.AST) and not isinstance(part, (ast.Raise, ast.JoinedStr)):
                yield node, field, index
                yield from places(part)


def text_of(module: str) -> str:
    """The source of a module of the library."""
    return (ROOT / "drocox" / f"{module}.py").read_text(encoding="utf8")


def nodes_of(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, str, ast.AST]]:
    """Every simple change of a syntax tree: the place, the change in words, the new node."""
    for parent, field, index in places(tree):
        value = getattr(parent, field)
        for change, other in changes(value if index is None else value[index]):
            yield parent, field, index, change, other


def mutants_of(module: str) -> Iterator[Mutant]:
    """All simple mutants of a module, in the order of its lines."""
    text = text_of(module)
    lines = text.splitlines()
    for number, (parent, field, index, change, _) in enumerate(nodes_of(ast.parse(text))):
        value = getattr(parent, field)
        node = value if index is None else value[index]
        line = getattr(node, "lineno", getattr(parent, "lineno", 0))
        yield Mutant(module, number, line, change, lines[line - 1].strip())


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    """Set a child of a node of a syntax tree."""
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def tests_of(module: str) -> list[str]:
    """The test files that hold a module, as paths from the root."""
    files = {path.stem for path in (ROOT / "tests").glob(f"test_{module}*.py")}
    files |= {name for name in TARGETS[module] if (ROOT / "tests" / f"{name}.py").exists()}
    return [f"tests/{name}.py" for name in sorted(files)]


def state_key(modules: list[str]) -> str:
    """Hash of the package and of the tests that are run."""
    tests = {ROOT / name for module in modules for name in tests_of(module)}
    files = sorted([*(ROOT / "drocox").glob("*.py"), *tests, ROOT / "tests" / "literal.py"])
    return digest("".join(digest(file.read_text(encoding="utf8")) for file in files))


class Workshop:
    """A copy of the package and its tests, in which one module at a time is changed."""

    def __init__(self, folder: Path):
        self.folder = folder
        skipped = shutil.ignore_patterns("__pycache__", "parts", ".lock")
        for name in ("drocox", "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=skipped)
        shutil.copy(ROOT / "pyproject.toml", folder)
        self.environment = os.environ | {
            "PYTHONPATH": str(folder),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, module: str, source: str | None, limit: float | None) -> tuple[str, float]:
        """The fate of a changed module, or of the module as it is, and the seconds it took."""
        path = self.folder / "drocox" / f"{module}.py"
        before = path.read_text(encoding="utf8")
        written = path.stat()
        if source is not None:
            path.write_text(source, encoding="utf8")
        start = time.monotonic()
        try:
            self.stamp()
            fate = self.test(module, limit)
        finally:
            path.write_text(before, encoding="utf8")
            os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))  # compiled kernels stay
        return fate, time.monotonic() - start

    def stamp(self) -> None:
        """Let the stored runs pass as made by the code of this copy."""
        code = "from drocox.paper import store\nfor name in store.load_provenance(store.DEFAULT):\n"
        code += "    store.stamp(store.DEFAULT, name)"
        command = [sys.executable, "-c", code]
        subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True)

    def test(self, module: str, limit: float | None) -> str:
        """Run the tests of a module up to the first that fails."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        with subprocess.Popen(
            [*command, *tests_of(module)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)  # its own children, too
                return "killed (time)"
            except BaseException:
                os.killpg(process.pid, 9)
                raise
        return {0: "survived", 1: "killed"}.get(status, "killed (import)")


class Fates:
    """What became of mutants so far, in a file that knows for which code it holds."""

    def __init__(self, key: str):
        self.key = key
        self.lock = threading.Lock()
        stored = json.loads(STATE.read_text()) if STATE.exists() else {}
        self.known: dict = stored if stored.get("key") == key else {"key": key}

    def get(self, name: str):
        """A fate or a time, or None."""
        return self.known.get(name)

    def put(self, name: str, value) -> None:
        """Keep it, now."""
        with self.lock:
            self.known[name] = value
            STATE.parent.mkdir(exist_ok=True)
            unfinished = STATE.with_suffix(".tmp")
            unfinished.write_text(json.dumps(self.known, indent=1))
            unfinished.replace(STATE)


def judge(drawn: list[Mutant], fates: Fates, jobs: int) -> None:
    """Try the mutants whose fate is not known, some at a time, and say what becomes of each."""
    waiting = [mutant for mutant in drawn if not mutant.excuse and not fates.get(mutant.name)]
    workshops: queue.Queue = queue.Queue()

    def measure(module: str) -> None:
        workshop = workshops.get()
        fate, seconds = workshop.run(module, None, None)
        workshops.put(workshop)
        if fate != "survived":
            raise SystemExit(f"the tests of {module}.py fail without any change: nothing to learn")
        fates.put(f"seconds of {module}", round(seconds, 1))
        print(f"{module}.py as it is: {seconds:.0f} s", flush=True)

    def attempt(mutant: Mutant) -> None:
        limit = PATIENCE * fates.get(f"seconds of {mutant.module}") + 30
        workshop = workshops.get()
        fate, seconds = workshop.run(mutant.module, mutant.source, limit)
        workshops.put(workshop)
        fates.put(mutant.name, fate)
        print(f"{fate}: {mutant.name} ({seconds:.0f} s)", flush=True)

    modules = sorted({mutant.module for mutant in waiting})
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs if waiting else 0):
            workshops.put(Workshop(Path(folder, str(number))))
        unknown = [module for module in modules if fates.get(f"seconds of {module}") is None]
        for step, items in ((measure, unknown), (attempt, waiting)):
            for _ in pool.map(step, items):
                pass


def main(arguments: list[str] | None = None) -> int:
    """Draw, try, list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=30, help="how many are drawn (30)")
    parser.add_argument("--seed", type=int, default=2022, help="of the draw (2022)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    parser.add_argument("--module", help="draw from one module only, such as intervals")
    parser.add_argument("--list", action="store_true", help="try none, only list them")
    options = parser.parse_args(arguments)
    modules = [name for name in TARGETS if (ROOT / "drocox" / f"{name}.py").exists()]
    key = state_key(modules)
    if options.module:
        modules = [options.module]
    every = [mutant for module in modules for mutant in mutants_of(module)]
    drawn = random.Random(options.seed).sample(every, min(options.count, len(every)))
    print(f"{len(drawn)} of {len(every)} mutants of {', '.join(modules)}")
    fates = Fates(key)
    if not options.list:
        judge(drawn, fates, options.jobs)
    print()
    for mutant in sorted(drawn, key=lambda mutant: (mutant.module, mutant.line)):
        fate = "equivalent" if mutant.excuse else fates.get(mutant.name) or "not tried"
        place = f"{mutant.module}.py:{mutant.line}"
        print(f"{fate:15} {place:20} {mutant.change:28} {mutant.excuse or mutant.code}")
    survived = [mutant for mutant in drawn if fates.get(mutant.name) == "survived"]
    print(f"\n{len(survived)} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
