"""The course beside the book: decks, sheets to print, notebooks that students open anywhere."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pages
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from pypdf import PdfReader

import drocox
from drocox.exercises import check, names, question
from drocox.exercises.patients import SIX
from drocox.paper.datasets import dataset_summary

ROOT = Path(__file__).resolve().parents[1]
TEACHING = ROOT / "book" / "teaching"
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import course  # noqa: E402
import plain  # noqa: E402
import twins  # noqa: E402

DUAL = ROOT / "book" / "method" / "dual.md"
COX_LOSS = ROOT / "book" / "foundations" / "cox-loss.md"
BROWSER = pytest.mark.skipif(pages.CHROMIUM is None, reason="no Chromium here")
SOURCES = [*TEACHING.glob("slides/*.md"), *TEACHING.glob("sheets/*.md")]


def written(name):
    return (TEACHING / name).read_text(encoding="utf8")


# What decks and sheets say


def numbers_of_the_six():
    """Every number with three digits that decks and sheets may say of the six patients."""
    time, event, x = (SIX[name].to_numpy() for name in ("time", "event", "x"))
    found = []
    for died in (event, event | (SIX.index == "E"), event | (SIX.index == "B")):
        steps = [1 - (died & (time == t)).sum() / (time >= t).sum() for t in time[died]]
        found += [*np.cumprod(steps)]
    for theta in (np.log(2), 0.0, -np.log(2), -1.0):
        losses = drocox.cox_losses(torch.tensor(theta * x), time, event).numpy()
        found += [*losses, losses.sum(), losses.mean()]
    riskier = np.log(2) * (x + (SIX.index == "D"))  # D's hazard doubled
    found += [*drocox.cox_losses(torch.tensor(riskier), time, event).numpy()]
    losses = drocox.cox_losses(torch.tensor(np.log(2) * x), time, event)
    by_group = losses.numpy()[:, None] * (SIX[["group"]].to_numpy() == ["a", "b"])
    found += [*by_group.sum(axis=0) / 3, losses.sort().values[-2:].mean()]
    for alpha in (0.3, 0.35, 0.4, 0.5):
        found += [*drocox.worst_case_weights(losses, alpha).numpy()]
        found += [drocox.dro_risk(losses, alpha)]
        found += [drocox.optimal_eta(losses, drocox.dual_constant(alpha))]
    # by hand, at the threshold for alpha = 0.35
    excess = (losses.numpy().round(3) - 0.291).clip(0)
    rounded = (excess / excess.sum()).round(3)
    found += [*excess, excess.sum(), 6 * (rounded**2).sum(), drocox.dual_constant(0.35) ** 2]
    found += [1 / drocox.dual_constant(0.2, rule="paper") ** 2]
    at_risk = (time >= time[:, None]) * 2.0**x
    expected = event @ (at_risk / at_risk.sum(axis=1, keepdims=True))
    found += [
        *expected,
        *(expected - event),
        1 / 4 - 1,
        100 / drocox.dual_constant(0.1, rule="paper") ** 2,
    ]
    return {f"{abs(float(value)):.3f}" for value in found}


def test_every_number_of_the_six_patients_is_a_computed_one():
    known = numbers_of_the_six()
    for path in SOURCES:
        said = set(re.findall(r"(?<![\d.])\d\.\d{3}(?!\d)", path.read_text(encoding="utf8")))
        assert said <= known, path.name


def test_decks_and_sheets_say_how_large_flc_is():
    flc = dataset_summary().loc["flc"]
    text = "\n".join(path.read_text(encoding="utf8") for path in SOURCES)
    assert set(re.findall(r"(\d+,\d{3}) people", text)) == {f"{flc['rows']:,}"}
    assert set(re.findall(r"(\d+) % censored", text)) == {f"{100 * flc['censoring_rate']:.0f}"}


@pytest.mark.parametrize("deck", course.DECKS)
def test_a_deck_is_complete_and_its_minutes_go_on(deck):
    page = course.deck(deck)
    assert not course.REFERENCE.search(page)
    assert 'alt=""' not in page and 'aria-label=""' not in page
    minutes = [int(minute) for minute in re.findall(r"Minute (\d+)", written(f"slides/{deck}.md"))]
    assert minutes == sorted(minutes) and minutes[0] == 0 and minutes[-1] <= 73


def test_the_speakers_formulas_need_no_style():
    notes = re.findall(r'<aside class="notes">.*?</aside>', course.deck("session-2"), re.DOTALL)
    assert any("<math" in note for note in notes)
    assert not any("katex-html" in note for note in notes)


@BROWSER
@pytest.mark.slow
def test_every_slide_can_be_read_in_a_browser(chromium, site):
    check_slide = (ROOT / "tests" / "slides.js").read_text(encoding="utf8")
    problems = []
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(request.url))
    for deck in course.DECKS:
        page.goto(f"{site}course/{deck}.html")
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        for number in range(page.evaluate("Reveal.getTotalSlides()")):
            found = page.evaluate(check_slide, number)
            problems += [f"{deck} {number + 1}: {problem}" for problem in found]
    assert problems == []


@pytest.mark.parametrize(
    "wrong", ["{figure}`fig-none`", "{formula}`eq-none`", "{explore}`none`", "{glue:text}`no :: x`"]
)
def test_a_wrong_reference_is_named(wrong):
    with pytest.raises(LookupError, match="the course refers to"):
        course.fetched(wrong)


def test_a_panel_or_an_exercise_that_is_not_there_is_named():
    with pytest.raises(LookupError, match="no panel 9"):
        course.fetched("{figure}`fig-next :: step 9`")
    with pytest.raises(LookupError, match="no exercise"):
        course.exercise("none")


# Sheets


def test_sheets_ask_and_their_solutions_answer():
    made = course.sheets()
    for number in (1, 2, 3):
        problems, solutions = made[f"sheet-{number}"], made[f"sheet-{number}-solutions"]
        assert "Solution." not in problems and "check(" not in problems and "hint(" not in problems
        assert problems.count("<h3>") == problems.count('class="asked"')
        assert solutions.count("Solution.") == problems.count("<h3>")
    asked = [made[name].count('class="problem question"') for name in ("quiz", "quiz-solutions")]
    assert asked == [12, 12]
    assert "☒" not in made["quiz"] and "☒" in made["quiz-solutions"]
    assert "eta 0.446" in made["sheet-2-solutions"] and "✓" not in made["sheet-2-solutions"]


def test_the_handout_tells_no_answer():
    """Neither the losses nor the curve that decks ask the room for."""
    assert not re.search(r"\d\.\d{3}", written("sheets/handout.md"))


def test_sheets_say_how_many_points_there_are():
    made = course.sheets()
    assert "of 60</p>" in made["exam"] and "of 12</p>" in made["quiz"]
    points = sum(course.exercise(name).points for name in ("dro-cox-valid", "who-effective-size"))
    assert f"of {points + 6}</p>" in made["sheet-3"]
    marks = re.findall(r"<li>(\d) for", made["sheet-3-solutions"])
    assert sum(map(int, marks)) == 6


def test_the_exam_has_eight_questions_and_its_answers_stand_apart():
    text = written("sheets/exam.md")
    asked = list(course.QUESTION.finditer(text))
    assert len(asked) == 8 == text.count("\n## ")
    assert sum(int(question["points"]) for question in asked) == 60
    assert "Cauchy" not in course.exam() and "Cauchy" in course.exam(solved=True)
    assert course.exam(solved=True).count('class="marks"') == 8


@pytest.mark.parametrize("number", [1, 2, 3])
def test_deck_sheet_notebook_and_guide_have_the_same_homework(number):
    row = re.search(rf"^\| {number}\. .*$", written("instructors-guide.md"), re.MULTILINE)[0]
    homework = re.findall(r"`([a-z-]+)`", row.split(" | ")[-1])
    for name in (f"sheets/sheet-{number}.md", f"notebooks/session-{number}.md"):
        assert re.findall(r"\{exercise\}`([\w-]+)`", written(name)) == homework


def test_solutions_print_answers_that_the_checks_call_right():
    said = 0
    for page in course.with_exercises():
        for one in course.exercises(page):
            answer = course.right_answer(one.words)
            if not answer:
                continue
            said += 1
            name = course.CHECKED.search(one.words)[1]
            values = [
                part if part.isalpha() else float(part.replace("−", "-"))
                for part in answer.replace("True", "1").replace("False", "0").split(", ")
            ]
            if isinstance(values[0], str):
                assert check(name, "".join(values))
            else:
                assert check(name, values if question(name).labels else values[0]), name
    assert said >= 30


@BROWSER
@pytest.mark.slow
def test_the_handout_is_one_page_and_a_sheet_one_leaf(chromium, site):
    sizes = {}
    page = chromium.new_page()
    margin = dict.fromkeys(("top", "bottom", "left", "right"), "15mm")
    for name in ("handout", "sheet-1", "sheet-2", "sheet-3"):
        page.goto(f"{site}course/{name}.html")
        for paper in ("A4", "Letter"):
            pdf = page.pdf(format=paper, margin=margin)
            sizes[name, paper] = len(PdfReader(io.BytesIO(pdf)).pages)
    wanted = {(name, paper): 1 if name == "handout" else 2 for name, paper in sizes}
    assert sizes == wanted


# Notebooks


@pytest.fixture(scope="module")
def student():
    return course.student(DUAL)


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
    solutions = "".join(f[0] for f in course.SOLUTION.finditer(DUAL.read_text(encoding="utf8")))
    lines = {line for line in solutions.splitlines() if line.startswith("    return ")}
    assert lines and not lines & set(text.splitlines())
    assert all(not cell.get("outputs") for cell in student.cells)


def test_every_exercise_can_be_graded(student):
    titles = [t for cell in student.cells if (t := course.EXERCISE.match(cell.source))]
    found = marks(student)
    graded = [mark for _, mark in found.values() if mark["grade"]]
    assert [mark["points"] for mark in graded] == [title[2].count("★") for title in titles]
    # nbgrader's rules: words are graded and written in one cell, code in two
    flags = {"stub": (False, True, False), "check": (True, False, True)}
    flags |= {"code": flags["stub"], "answer": (True, True, False)}
    for name, (cell, mark) in found.items():
        kind = name.partition("-")[0]
        assert mark["schema_version"] == 3
        assert (mark["grade"], mark["solution"], mark["locked"]) == flags[kind]
        assert cell.cell_type == ("markdown" if kind == "answer" else "code")
    assert "code-ex-dual-code" in found  # an exercise in code without a check


def test_no_code_of_a_student_needs_a_solution():
    for page in course.with_exercises():
        cells = course.student(page).cells
        first = next(i for i, cell in enumerate(cells) if course.EXERCISE.match(cell.source))
        left = [cell for cell in cells[first:] if cell.cell_type == "code"]
        assert all({"stub", "graded"} & set(cell.metadata.get("tags", [])) for cell in left), page


def test_an_open_stub_fails_its_graded_cell_and_a_right_answer_passes(student):
    found = marks(student)
    checks = [name.removeprefix("check-") for name in found if name.startswith("check-")]
    assert len(checks) >= 3
    for name in checks:
        space = {"check": lambda *answer: True}  # a student's own check does not count
        exec(found[f"stub-{name}"][0].source, space)
        with pytest.raises(AssertionError, match=name):
            exec(found[f"check-{name}"][0].source, space)
    right = "import numpy as np\ndef worst_weights(losses, eta):\n"
    right += "    excess = np.maximum(losses - eta, 0)\n    return excess / excess.sum()\n"
    space = {}
    exec(right, space)
    exec(found["check-dual-weights"][0].source, space)


def code_of(notebook):
    """The code of a notebook but for graded cells, which are to fail until there are answers."""
    cells = twins.code_cells(notebook)[1:]
    return "\n".join(c.source for c in cells if "graded" not in c.metadata.get("tags", []))


@pytest.mark.parametrize("name", ["session-1", "session-2"])
def test_the_first_sessions_run_without_torch(name, tmp_path):
    absent = ("torch", "numba", "scipy", "matplotlib", "sklearn", "sksurv", "lifelines")
    start = f"import sys\nsys.modules.update(dict.fromkeys({absent}))\n"
    (tmp_path / "run.py").write_text(start + code_of(course.session(name)), encoding="utf8")
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_third_session_runs():
    exec(code_of(course.session("session-3")), {})


@pytest.mark.parametrize(
    ("name", "needed", "wheel", "advice"),
    [
        ("session-1", "drocox_absent", False, "drocox could not be installed: download notebooks"),
        ("session-1", "numpy pandas_absent", True, "run once:   pip install pandas_absent"),
        ("session-3", "drocox torch_absent", True, 'run once:   pip install "drocox-9.whl"'),
        ("cox-loss", "lifelines_absent", True, 'pip install "drocox-9.whl[notebooks]"'),
        ("session-1", "a_folder", True, "run once:   pip install a_folder"),
    ],
)
def test_a_missing_package_is_one_sentence_below_every_cell(
    name, needed, wheel, advice, tmp_path, monkeypatch
):
    """Also below cells that are run all the same; nothing fails in a second way."""
    monkeypatch.chdir(tmp_path)
    if wheel:
        (tmp_path / "drocox-9.whl").touch()
    (tmp_path / "a_folder").mkdir()
    notebook = course.session(name) if name in course.SESSIONS else course.student(COX_LOSS)
    code = re.sub('(?<=needed = ")[^"]*', needed, notebook.cells[0].source)
    code = code.replace("subprocess.run(command, capture_output=True)", "assert package in command")
    shell = InteractiveShell()
    for cell in (code, "np.log(2)"):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert not shell.run_cell(cell).success
        assert advice in printed.getvalue() and printed.getvalue().count("\n") == 1


def test_the_first_cell_changes_nothing_where_all_is_installed():
    shell = InteractiveShell()
    assert shell.run_cell(course.session("session-1").cells[0].source).success
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert not shell.run_cell("nothing_of_this_name").success
    assert "NameError" in printed.getvalue()


def test_links_between_notebooks_lead_somewhere(student):
    known = {page.stem for page in course.with_exercises()}
    assert twins.dumps(student) == twins.dumps(course.student(DUAL))
    for cell in student.cells:
        if cell.cell_type == "markdown":
            for link in re.findall(r"\]\((?!https?:|#|attachment:)([^)\s]+)\)", cell.source):
                folder, name = re.fullmatch(r"\.\./([\w-]+)/([\w-]+)\.ipynb.*", link).groups()
                assert folder == name and name in known


# The pages for lecturers


@pytest.mark.slow
def test_pages_link_to_files_of_the_course_that_are_there(built):
    linked = set()
    for name in ("teach-tomorrow", "instructors-guide"):
        linked |= set(re.findall(r"\(course:([^)]*)\)", written(f"{name}.md")))
        html = (built / "book" / "teaching" / f"{name}.html").read_text(encoding="utf8")
        assert 'href="../../course/' in html and "course:" not in html
    assert linked
    assert [file for file in linked if not (built / "course" / file).exists()] == []
    tomorrow = written("teach-tomorrow.md")
    assert "solutions" not in "".join(re.findall(r"\(course:([^)]*)\)", tomorrow))


def test_the_guide_names_exercises_that_exist():
    named = set(re.findall(r"(?<!\})`([a-z]+(?:-[a-z]+)+)`", written("instructors-guide.md")))
    assert named and named <= set(names())


def test_the_paper_on_the_course_cites_what_it_lists_and_counts_right():
    text = written("jose/paper.md")
    listed = re.findall(r"^@\w+\{(\w+),", written("jose/paper.bib"), re.MULTILINE)
    assert set(re.findall(r"@([a-z]+\d{4}[a-z]+)", text)) == set(listed)
    data_sets = course.fetched("{glue:text}`verdict/should-you-use-it :: many-data-sets`")
    assert f"on {data_sets} data sets" in text
    exercises = sum(page.read_text("utf8").count("{exercise-start}") for page in plain.pages())
    assert 90 <= exercises <= 120  # "about a hundred"
