"""Write the editions for a course into _build/course/, from the chapters, the twins and the site.

    python book/_ext/course.py

What the folder then holds:

    student/X/X.ipynb      chapter X with stubs and checks, without solutions, graded by nbgrader
    solutions/X/X.ipynb    the same with solutions, executed
    nbgrader_config.py     makes the folder a course of nbgrader
    sheets/                problem sheets, and the same with solutions, by part and as a whole (PDF)
    lecture/index.html     slides of a lecture of 90 minutes
    book.pdf               the whole book

Run it after `make book` and `make golden`: it computes nothing itself.
"""

import ast
import functools
import os
import re
import shutil
import sys
import time
from pathlib import Path

import jupytext
import nbformat
import yaml

sys.path.insert(0, str(Path(__file__).parent))
import golden
import plain
import printed
import slides

ROOT = golden.ROOT
SOLUTION = re.compile(r"^```\{solution-start\}.*?^```\{solution-end\}\s*^```$", re.M | re.S)
EXERCISE = re.compile(r"### (Exercise [\d.]+): (.*)")
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


@functools.cache
def with_exercises(root=ROOT):
    """The chapters that have exercises."""
    texts = {page: page.read_text(encoding="utf8") for page in golden.chapters(root)}
    return [page for page, text in texts.items() if "{exercise-start}" in text]


def student(source, twin):
    """The student's edition of a chapter.

    Parameters
    ----------
    source : Path
        The chapter.
    twin : notebook
        Its executed twin, which has the numbers of its sentences.

    Returns
    -------
    notebook
        Without solutions and outputs. A graded cell follows each stub, a cell for an answer in
        words each exercise without one.
    """
    text = SOLUTION.sub("", source.read_text(encoding="utf8"))
    cells = plain.cells(jupytext.reads(text, fmt="md:myst"), source, plain.values(twin))
    names = {name: label for label, (name, page) in plain.labels().items() if page == source}
    done = []
    label = None
    points = 0
    waits = False  # is there an exercise without anything to be graded?
    for cell in cells:
        title = EXERCISE.match(cell.source)
        tags = cell.metadata.get("tags", [])
        stub = "stub" in tags
        if label and "remove-cell" in tags:  # guards the numbers of a solution
            continue
        if waits and not stub:
            done.append(answer_cell(label, points))
        waits = title is not None
        if title:
            label, points = names[title[1]], title[2].count("★") or 1
        done.append(cell)
        if stub:
            done += graded(cell, points)
    if waits:
        done.append(answer_cell(label, points))
    for number, cell in enumerate(done, start=1):
        cell.id = f"{source.stem}-{number}"
    return portable(nbformat.v4.new_notebook(cells=done, metadata=golden.METADATA), source)


def marked(kind, name, **flags):
    """The metadata by which nbgrader knows a cell."""
    known = {"grade": False, "solution": False, "locked": False, "task": False}
    return known | {"schema_version": 3, "grade_id": f"{kind}-{name}"} | flags


def answer_cell(label, points):
    """A place for an answer in words, marked by hand."""
    cell = nbformat.v4.new_markdown_cell("*Your answer.*")
    cell.metadata["nbgrader"] = marked("answer", label, grade=True, solution=True, points=points)
    return cell


def graded(stub, points):
    """Mark a stub as the student's; the cells that grade it."""
    calls = [
        node
        for node in ast.walk(ast.parse(stub.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check"
    ]
    tests = []
    for call in calls:
        name = call.args[0].value
        stub.metadata.setdefault("nbgrader", marked("stub", name, solution=True))
        code = TEST.format(call=ast.unparse(call)).strip()
        test = nbformat.v4.new_code_cell(code, metadata={"tags": ["graded"]})
        test.metadata["nbgrader"] = marked("check", name, grade=True, locked=True, points=points)
        tests.append(test)
    return tests


def portable(notebook, source):
    """Let links lead to the other notebooks of the course; those to other pages become words."""
    chapters = {page.with_suffix(".ipynb"): page.stem for page in with_exercises()}

    def link(found):
        words, path, place = found.groups()
        name = chapters.get(Path(os.path.normpath(source.parent / path)))
        return f"[{words}](../{name}/{name}.ipynb{place or ''})" if name else words

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(link, cell.source)
    return notebook


def write_notebooks(out):
    """Both editions of all chapters with exercises."""
    for source in with_exercises():
        path = source.with_suffix(".ipynb")
        wrong = golden.problems(source)
        if wrong:
            raise SystemExit("\n".join([*wrong, "`make golden` brings the notebooks up to date"]))
        twin = nbformat.read(path, as_version=4)
        for edition, notebook in (
            ("student", student(source, twin)),
            ("solutions", portable(twin, source)),
        ):
            target = out / edition / source.stem / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            golden.write(notebook, target)
    shutil.copy(ROOT / "book" / "teaching" / "nbgrader_config.py", out)


def parts(root=ROOT):
    """Captions of the parts and their pages, named as in _toc.yml."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf8"))
    return {part["caption"]: [c["file"] for c in part["chapters"]] for part in toc["parts"]}


def main():
    """Write everything, and say what takes how long."""
    out = ROOT / "_build" / "course"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    site = printed.Site(ROOT / "_build" / "html")
    steps = {
        "notebooks": lambda: write_notebooks(out),
        "slides": lambda: slides.write(ROOT, out / "lecture"),
        "sheets": lambda: printed.write_sheets(site, parts(), out / "sheets"),
        "book.pdf": lambda: printed.write_book(site, parts(), out / "book.pdf"),
    }
    for name, step in steps.items():
        start = time.perf_counter()
        step()
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    print(f"written into {out.relative_to(ROOT)}/")


if __name__ == "__main__":
    main()
