"""Write the editions for a course, from the chapters, the twins and the site.

    python book/_ext/course.py                            into _build/course/
    python book/_ext/course.py --site HTML --out FOLDER   from another build, into another folder

What the folder then holds:

    index.html             a list of all of it
    student/X/X.ipynb      chapter X with stubs and checks, without solutions, graded by nbgrader
    solutions/X/X.ipynb    the same with solutions, executed
    student.zip, solutions.zip, nbgrader_config.py        the same in one file, and a course of it
    sheets/                problems and solutions by session and by part; handout, quiz, exam (PDF)
    slides/                four decks: lecture.html, session-1.html, session-2.html, session-3.html
    slides.zip             the same in one file, for a room without a network
    book.pdf               the whole book

Run it after `make book`: it computes nothing but the numbers of the six patients.
"""

import argparse
import ast
import functools
import html
import os
import re
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jupytext
import nbformat
import yaml

sys.path.insert(0, str(Path(__file__).parent))
import formulas
import golden
import plain
import printed
import quoted
import sheets
import slides

ROOT = plain.ROOT
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


# Unlike the twins' cell it works in any Jupyter, not only on Colab.
INSTALL = """\
# Installs the package where it is missing, which takes some minutes; elsewhere it does nothing.
import importlib.util

if importlib.util.find_spec("drocox") is None:
    %pip install --quiet "drocox[notebooks] @ git+https://github.com/drocox/drocox"
"""


@functools.cache
def with_exercises():
    """The chapters that have exercises."""
    texts = {page: page.read_text(encoding="utf8") for page in golden.chapters()}
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
        words each exercise without one, and one for code before it where code is asked for.
    """
    text = SOLUTION.sub("", source.read_text(encoding="utf8"))
    cells = plain.cells(jupytext.reads(text, fmt="md:myst"), source, plain.values(twin))
    names = {name: label for label, (name, page) in plain.labels().items() if page == source}
    done = []
    label = None
    points = 0
    in_code = False
    waits = False  # is there an exercise without anything to be graded?
    for cell in cells:
        title = EXERCISE.match(cell.source)
        tags = cell.metadata.get("tags", [])
        stub = "stub" in tags
        if label and "remove-cell" in tags:  # guards the numbers of a solution
            continue
        if waits and not stub:
            done += answer_cells(label, points, in_code)
        waits = title is not None
        if title:
            label, points = names[title[1]], title[2].count("★") or 1
            in_code = title[2].startswith("In code")
        done.append(cell)
        if stub:
            done += graded(cell, points)
    if waits:
        done += answer_cells(label, points, in_code)
    for number, cell in enumerate(done, start=1):
        cell.id = f"{source.stem}-{number}"
    done.insert(0, install_cell())
    return portable(nbformat.v4.new_notebook(cells=done, metadata=golden.METADATA), source)


def install_cell():
    """A first cell that installs the package where there is none, as students' machines."""
    cell = nbformat.v4.new_code_cell(INSTALL.strip(), id="install")
    cell.metadata["jupyter"] = {"source_hidden": True}
    return cell


def marked(kind, name, **flags):
    """The metadata by which nbgrader knows a cell."""
    known = {"grade": False, "solution": False, "locked": False, "task": False}
    return known | {"schema_version": 3, "grade_id": f"{kind}-{name}"} | flags


def answer_cells(label, points, in_code):
    """Places for an answer that is marked by hand: for code if that is asked for, and for words."""
    words = nbformat.v4.new_markdown_cell("*Your answer.*")
    words.metadata["nbgrader"] = marked("answer", label, grade=True, solution=True, points=points)
    if not in_code:
        return [words]
    code = nbformat.v4.new_code_cell("# Your code.", metadata={"tags": ["stub"]})
    code.metadata["nbgrader"] = marked("code", label, solution=True)
    return [code, words]


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
        if wrong := golden.problem(source):
            raise SystemExit(wrong)
        twin = golden.load(path)
        for edition, notebook in (
            ("student", student(source, twin)),
            ("solutions", portable(twin, source)),
        ):
            target = out / edition / source.stem / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            golden.write(notebook, target)
    for edition in ("student", "solutions"):
        shutil.make_archive(str(out / edition), "zip", out, edition)
    shutil.copy(ROOT / "book" / "teaching" / "nbgrader_config.py", out)


def parts(root=ROOT):
    """Captions of the parts and their pages, named as in _toc.yml."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf8"))
    return {part["caption"]: [c["file"] for c in part["chapters"]] for part in toc["parts"]}


def write_sheets(out):
    """Problem sheets, handout, quiz and exam."""
    chapters = {
        caption: [ROOT / f"{name}.md" for name in names] for caption, names in parts().items()
    }
    pages = sheets.pages(chapters, quoted.Chapters(ROOT))
    printed.write_sheets(pages, formulas.KATEX, out / "sheets")


def write_index(out):
    """A page with links to all files, for whoever finds the folder on the site."""
    frame = quoted.of_teaching("course.html")
    decks = {f"slides/{name}.html": slides.slides(name)[0].title for name in slides.DECKS}
    files = [*decks, "slides.zip", "student.zip", "solutions.zip", "nbgrader_config.py", "book.pdf"]
    files += sorted(path.relative_to(out).as_posix() for path in out.glob("sheets/*.pdf"))
    rows = []
    for file in files:
        size = (out / file).stat().st_size / 1e6
        words = html.escape(decks.get(file, Path(file).stem.replace("-", " ")))
        rows.append(f'<li><a href="{file}">{words}</a> <small>{file}, {size:.1f} MB</small></li>')
    (out / "index.html").write_text(frame.replace("$files", "\n".join(rows)), encoding="utf8")


def do(step, out, site):
    """One step by its name, and how long it took."""
    start = time.perf_counter()
    if step == "notebooks":
        write_notebooks(out)
    elif step == "slides":
        slides.write(out / "slides")
        shutil.make_archive(str(out / "slides"), "zip", out, "slides")
    elif step == "sheets":
        write_sheets(out)
    else:
        printed.write_book(printed.Site(site), parts(), out / "book.pdf")
    return f"{step}: {time.perf_counter() - start:.0f} s"


def main(arguments=None):
    """Write everything, two things at a time, and say what takes how long."""
    parser = argparse.ArgumentParser(description="Write the editions for a course.")
    parser.add_argument("--site", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "course")
    options = parser.parse_args(arguments)
    options.site, options.out = options.site.resolve(), options.out.resolve()
    printed.Site(options.site)  # is there one?
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    steps = ["book.pdf", "notebooks", "sheets", "slides"]  # the longest first
    with ProcessPoolExecutor(2) as pool:
        for line in pool.map(functools.partial(do, out=options.out, site=options.site), steps):
            print(line, flush=True)
    write_index(options.out)
    print(f"written into {options.out}")


if __name__ == "__main__":
    main()
