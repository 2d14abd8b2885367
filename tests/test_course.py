"""The editions for a course: one chapter's notebooks, a sheet, and the lecture."""

import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest

from drocox.exercises import names

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import course  # noqa: E402
import golden  # noqa: E402
import printed  # noqa: E402
import slides  # noqa: E402

SOURCE = ROOT / "book" / "method" / "dual.md"


@pytest.fixture(scope="module")
def twin():
    return nbformat.read(SOURCE.with_suffix(".ipynb"), as_version=4)


@pytest.fixture(scope="module")
def student(twin):
    return course.student(SOURCE, twin)


def marks(notebook):
    """``{grade_id: (cell, what nbgrader reads)}``"""
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    found = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in cells}
    assert len(found) == len(cells)  # ids are unique
    return {name: (cell, cell.metadata["nbgrader"]) for name, cell in found.items()}


def test_the_student_gets_stubs_and_no_solution(student):
    nbformat.validate(student)
    text = "\n".join(cell.source for cell in student.cells)
    assert "Solution" not in text
    chapter = SOURCE.read_text(encoding="utf8")
    solutions = "".join(found[0] for found in course.SOLUTION.finditer(chapter))
    lines = {line for line in solutions.splitlines() if line.startswith("    return ")}
    assert lines and not lines & set(text.splitlines())
    assert chapter.count("{solution-start}") == len(course.SOLUTION.findall(chapter))
    assert all(not cell.get("outputs") for cell in student.cells)


def test_every_exercise_can_be_graded(student):
    titles = [t for cell in student.cells if (t := course.EXERCISE.match(cell.source))]
    found = marks(student)
    graded = {name: mark for name, (_, mark) in found.items() if mark["grade"]}
    assert len(graded) == len(titles)
    stars = [title[2].count("★") for title in titles]
    assert [mark["points"] for mark in graded.values()] == stars
    for name, (cell, mark) in found.items():
        kind = name.partition("-")[0]
        assert re.fullmatch(r"[\w-]+", name) and mark["schema_version"] == 3
        # nbgrader's rules: words are graded and written in one cell, code in two
        flags = {"stub": (False, True, False), "check": (True, False, True)}
        expected = flags.get(kind, (True, True, False))
        assert (mark["grade"], mark["solution"], mark["locked"]) == expected
        assert cell.cell_type == ("markdown" if kind == "answer" else "code")


@pytest.mark.parametrize("name", ["method/dual", "experiments/tuned-by-fa"])
def test_no_code_of_the_student_needs_a_solution(name):
    source = ROOT / "book" / f"{name}.md"
    notebook = course.student(source, nbformat.read(source.with_suffix(".ipynb"), as_version=4))
    first = next(i for i, c in enumerate(notebook.cells) if course.EXERCISE.match(c.source))
    left = [cell for cell in notebook.cells[first:] if cell.cell_type == "code"]
    assert all({"stub", "graded"} & set(cell.metadata.get("tags", [])) for cell in left)


def test_an_open_stub_fails_its_graded_cell_and_a_right_answer_passes(student):
    found = marks(student)
    names = [name.removeprefix("check-") for name in found if name.startswith("check-")]
    assert len(names) >= 3
    for name in names:
        space = {"check": lambda *answer: True}  # a student's own check does not count
        stub = found[f"stub-{name}"][0].source
        exec(stub, space)
        with pytest.raises(AssertionError, match=name):
            exec(found[f"check-{name}"][0].source, space)
    right = "import numpy as np\ndef worst_weights(losses, eta):\n"
    right += "    excess = np.maximum(losses - eta, 0)\n    return excess / excess.sum()\n"
    space = {}
    exec(right, space)
    exec(found["check-dual-weights"][0].source, space)


def test_editions_are_the_same_every_time_and_their_links_lead_somewhere(student, twin):
    assert golden.dumps(student) == golden.dumps(course.student(SOURCE, twin))
    names = {page.stem for page in course.with_exercises()}
    assert len(names) == len(course.with_exercises())  # folders of the course
    for notebook in (student, course.portable(twin, SOURCE)):
        for cell in notebook.cells:
            links = re.findall(r"\]\((?!https?:|#|attachment:)([^)\s]+)\)", cell.source)
            if cell.cell_type == "markdown":
                for link in links:
                    folder, name = re.fullmatch(r"\.\./([\w-]+)/([\w-]+)\.ipynb.*", link).groups()
                    assert folder == name and name in names


def test_the_lecture_takes_everything_from_the_chapters():
    text = (ROOT / "book" / "teaching" / "lecture.md").read_text(encoding="utf8")
    page = slides.sections(text, slides.Chapters(ROOT))
    assert not re.search(r"\{(glue|formula|figure|output)", page)
    assert page.count("<section>") == text.count("\n---\n") + 1
    assert page.count("<img ") == len(re.findall(r"\{figure\}", text))
    assert 'alt=""' not in page
    minutes = [int(minute) for minute in re.findall(r"^Minute (\d+)", text, re.MULTILINE)]
    assert minutes == sorted(minutes) and minutes[0] == 0 and minutes[-1] < 90


def test_the_guide_names_exercises_that_exist():
    text = (ROOT / "book" / "teaching" / "instructors-guide.md").read_text(encoding="utf8")
    named = set(re.findall(r"(?<!\})`([a-z]+(?:-[a-z]+)+)`", text))  # no roles
    assert len(named) > 20
    assert named <= set(names())


def test_the_lecture_says_which_reference_is_wrong():
    chapters = slides.Chapters(ROOT)
    for wrong in ("{figure}`fig-none`", "{output}`method/none :: x`", "{output}`method/dual :: §`"):
        with pytest.raises(LookupError, match="refers to"):
            slides.sections(wrong, chapters)


PAGE = """<html><head><link rel="stylesheet" href="../../_static/a.css?v=1"></head><body>
<article class="bd-article"><section id="dual"><h1>8. The dual</h1>
<div class="exercise admonition" id="ex-a"><p class="admonition-title">
<span class="caption-number">Exercise 8.1 </span>(By hand)</p><p>Find it.</p>
<div class="cell tag_stub"><pre>answer = ...</pre><div class="cell_output">no answer</div></div>
<a href="#eq">(8.2)</a> <a href="../index.html">front</a> <img src="../../_images/b.svg"></div>
<div class="solution admonition" id="s"><p class="admonition-title">Solution</p><p>Two.</p></div>
<details class="hide">folded</details></section></article></body></html>"""
FRONT = PAGE.replace("../../", "../")


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "html"
    (folder / "book" / "method").mkdir(parents=True)
    (folder / "book" / "method" / "dual.html").write_text(PAGE, encoding="utf8")
    (folder / "book" / "index.html").write_text(FRONT, encoding="utf8")
    return printed.Site(folder)


def test_a_sheet_has_problems_and_only_on_demand_solutions(site):
    problems = printed.sheet(site, ["book/method/dual"], "Problems")
    assert "Find it." in problems and "answer = ..." in problems
    assert "Two." not in problems and "no answer" not in problems
    solved = printed.sheet(site, ["book/method/dual"], "Solutions", solutions=True)
    assert "Solution of Exercise 8.1" in solved and "Two." in solved
    assert 'href="#book-method-dual--eq"' in problems and 'href="#book-index"' in problems
    assert 'src="../_images/b.svg"' in problems
    chapter = site.chapter("book/method/dual")
    assert "Two." not in chapter and "folded" not in chapter and "Find it." in chapter
    assert site.exercises("book/method/dual")[0][1]  # leaving it out there leaves it here


@pytest.mark.skipif(not any(map(shutil.which, printed.BROWSERS)), reason="no Chromium here")
def test_chromium_prints_contents_with_page_numbers(site, tmp_path):
    body = '<div class="contents"><a href="#there">There</a></div><h1 id="there">There</h1>'
    with printed.printer(site) as to_pdf:
        to_pdf(body, "Two pages", tmp_path / "two.pdf")
    pdf = (tmp_path / "two.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and printed.page_numbers(pdf)["there"] == 2


def test_what_is_missing_is_said(tmp_path, monkeypatch, site):
    with pytest.raises(SystemExit, match="make book"):
        printed.Site(tmp_path / "nowhere")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="install npm"):
        slides.reveal(tmp_path)
    with pytest.raises(SystemExit, match="install it"), printed.printer(site):
        pass


def test_bookmarks_of_a_pdf_say_everything_once():
    doubled = b"<</Title (2. 2. OneOne)\n/Title (Two two)\n/Title <FEFF03B103B1>\n/Dest"
    once = b"<</Title (2. One)      \n/Title (Two two)\n/Title <FEFF03B1>    \n/Dest"
    assert printed.said_once(doubled) == once
