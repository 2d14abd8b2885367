"""Notebooks of the course: those of the sessions, and each chapter as a student gets it.

The sources of the sessions are in book/teaching/notebooks/. nbgrader grades them.
"""

import ast
import contextlib
import io
import os
import re
from pathlib import Path
from string import Template

import nbformat
import plain
import twins
from nbformat import NotebookNode
from quotes import REFERENCE, TEACHING, source
from sheets import EXERCISE, exercise, with_exercises

SESSIONS = ("session-1", "session-2", "session-3")
# What a notebook needs: modules, extras of the package, and the arguments of pip that install them.
# Sessions 1 and 2 need neither torch nor anything else that drocox depends on.
LIGHT = ("drocox numpy pandas", "", ("numpy pandas", '--no-deps "{package}"'))
NEEDS = {
    "session-1": LIGHT,
    "session-2": LIGHT,
    "session-3": ("drocox torch sklearn sksurv", "[torch]", ('"{package}"',)),
}
OF_CHAPTERS = ("drocox torch lifelines myst_nb", "[notebooks]", ('"{package}"',))
SOLUTION = re.compile(r"^```\{solution-start\}.*?^```\{solution-end\}\s*^```$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[([^][]*)\]\(([^()\s:#]+)(#[^()\s]*)?\)")
# No assert: the book's style turns asserts into notes, so that everybody would get the points. The
# import undoes what a student may have called check.
TEST = """\
# Graded: fails until the answer above is right.
from drocox.exercises import check

verdict = {call}
if not verdict:
    raise AssertionError(verdict)
"""


KEEP = "# Keep the name of the function: the graded cell below calls it."


def student(page: Path) -> NotebookNode:
    """The student's edition of a chapter, which nbgrader grades.

    It has no solutions and no outputs. A graded cell follows each stub. Exercises without a stub
    get a cell for an answer in words, preceded by one for code if code is asked for.
    """
    text = SOLUTION.sub("", page.read_text(encoding="utf8"))
    values = plain.values(twins.load(page.with_suffix(".ipynb")))
    cells = plain.cells(plain.notebook(text), page, values)
    names = {name: label for label, (name, at) in plain.labels().items() if at == page}
    done = []
    points = 0
    asked = None  # the exercise that has no place for an answer yet: label, points, in code?
    for cell in cells:
        start = EXERCISE.match(cell.source)
        tags = cell.metadata.get("tags", [])
        stub = "stub" in tags
        if points and "remove-cell" in tags:  # belongs to a solution
            continue
        if asked and not stub:
            done += answer_cells(*asked)
            asked = None
        if start:
            points = start[2].count("★") or 1
            asked = names[start[1]], points, start[2].startswith("In code")
        done.append(cell)
        if stub:
            done += graded(cell, points)
            asked = None
    if asked:
        done += answer_cells(*asked)
    return notebook(done, page.stem, page.parent)


def session(name: str) -> NotebookNode:
    """The notebook of a session: its cells, with exercises of the book put in."""
    cells = []
    for cell in plain.notebook(source(f"notebooks/{name}.md")).cells:
        named = REFERENCE.fullmatch(cell.source.strip())
        if named is None:
            cells.append(cell)
            continue
        if named[1] == "answer":
            label, points = named[2].split()
            cells += answer_cells(label, int(points), in_code=False)
            continue
        found = exercise(named[2])
        first, *others = found.problem
        words = f"### {found.title}\n\n{first.source}"
        cells.append(nbformat.v4.new_markdown_cell(words))
        for other in others:
            other = nbformat.v4.new_code_cell(other.source, metadata=other.metadata)
            cells += [other, *graded(other, found.points)]
    return notebook(cells, name, TEACHING)


def notebook(cells: list[NotebookNode], name: str, folder: Path) -> NotebookNode:
    """Cells as a notebook whose first cell finds the package; links lead to other notebooks."""
    chapters = {page.with_suffix(".ipynb"): page.stem for page in with_exercises()}

    def link(found: re.Match) -> str:
        words, path, place = found.groups()
        target = chapters.get(Path(os.path.normpath(folder / path)))
        return f"[{words}](../{target}/{target}.ipynb{place or ''})" if target else words

    for count, cell in enumerate(cells, start=1):
        cell.id = f"{name}-{count}"
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(link, cell.source)
    needed, extra, arguments = NEEDS.get(name, OF_CHAPTERS)
    commands = "\n".join(f"    %pip install {each}" for each in arguments)
    first = Template(source("notebooks/first_cell.py.txt"))
    code = first.substitute(needed=needed, extra=extra, install=commands)
    install = nbformat.v4.new_code_cell(code.strip(), id="install")
    return nbformat.v4.new_notebook(cells=[install, *cells], metadata=twins.METADATA)


def marked(kind: str, name: str, **flags: bool | int) -> dict:
    """The nbgrader metadata of a cell."""
    known = {"grade": False, "solution": False, "locked": False, "task": False}
    return known | {"schema_version": 3, "grade_id": f"{kind}-{name}"} | flags


def answer_cells(label: str, points: int, in_code: bool) -> list[NotebookNode]:
    """Cells for an answer that is graded by hand: for code if code is asked for, and for words."""
    words = nbformat.v4.new_markdown_cell("*Type your answer here.*")
    words.metadata["nbgrader"] = marked("answer", label, grade=True, solution=True, points=points)
    if not in_code:
        return [words]
    code = nbformat.v4.new_code_cell("# Type your code here.", metadata={"tags": ["stub"]})
    code.metadata["nbgrader"] = marked("code", label, solution=True)
    return [code, words]


def graded(stub: NotebookNode, points: int) -> list[NotebookNode]:
    """Mark a stub as the student's, and return the cells that grade it."""
    tests = []
    if re.search(r"^def ", stub.source, re.MULTILINE):
        stub.source = f"{KEEP}\n{stub.source.strip()}"
    for call in ast.walk(ast.parse(stub.source)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "check":
            name = call.args[0].value
            stub.metadata.setdefault("nbgrader", marked("stub", name, solution=True))
            code = TEST.format(call=ast.unparse(call)).strip()
            test = nbformat.v4.new_code_cell(code, metadata={"tags": ["graded"]})
            grade = marked("check", name, grade=True, locked=True, points=points)
            test.metadata["nbgrader"] = grade
            tests.append(test)
    return tests


def prints(name: str) -> str:
    """What the notebook of a session prints, cell by cell, without its graded cells."""
    space, shown = {}, []
    for count, cell in enumerate(twins.code_cells(session(name))[1:], start=1):
        if "graded" in cell.metadata.get("tags", []):
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            *lines, last = ast.parse(cell.source).body
            exec(compile(ast.Module(lines, []), name, "exec"), space)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), name, "eval"), space)
                print(value if value is not None else "", end="")
            else:
                exec(compile(ast.Module([last], []), name, "exec"), space)
        if out.getvalue().strip():
            shown.append(f"# cell {count}\n{out.getvalue().strip()}\n")
    return "\n".join(shown)
