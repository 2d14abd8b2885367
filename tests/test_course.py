"""The editions for a course: a chapter's notebooks, decks in a browser, sheets, the book's PDF."""

import io
import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from pypdf import PdfReader

from drocox.exercises import check, names, question

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import course  # noqa: E402
import formulas  # noqa: E402
import golden  # noqa: E402
import plain  # noqa: E402
import printed  # noqa: E402
import quoted  # noqa: E402
import sheets  # noqa: E402
import slides  # noqa: E402

SOURCE = ROOT / "book" / "method" / "dual.md"
BROWSER = pytest.mark.skipif(
    not any(map(shutil.which, printed.BROWSERS)), reason="no Chromium here"
)


@pytest.fixture(scope="module")
def twin():
    return nbformat.read(SOURCE.with_suffix(".ipynb"), as_version=4)


@pytest.fixture(scope="module")
def student(twin):
    return course.student(SOURCE, twin)


@pytest.fixture(scope="module")
def chapters():
    return quoted.Chapters(ROOT)


def marks(notebook):
    """``{grade_id: (cell, what nbgrader reads)}``"""
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    found = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in cells}
    assert len(found) == len(cells)  # ids are unique
    return {name: (cell, cell.metadata["nbgrader"]) for name, cell in found.items()}


# Notebooks


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


def test_the_student_installs_the_package_with_the_first_cell(student):
    first = student.cells[0].source
    assert first == course.INSTALL.strip()
    code = "".join(line for line in first.splitlines(True) if "%pip" not in line)
    compile(code + "    pass", "first cell", "exec")
    requirement = re.search(r'"(.*?)"', golden.COLAB.partition("%pip")[2])[0]
    assert requirement in first  # the twins install the same
    assert student.cells[0].cell_type == "code" and "nbgrader" not in student.cells[0].metadata


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
        flags["code"] = flags["stub"]
        expected = flags.get(kind, (True, True, False))
        assert (mark["grade"], mark["solution"], mark["locked"]) == expected
        assert cell.cell_type == ("markdown" if kind == "answer" else "code")


def test_an_exercise_in_code_has_a_cell_for_code(student):
    """With a check it is the stub; without one, an empty cell before that for words."""
    cells = student.cells
    for place, cell in enumerate(cells):
        title = course.EXERCISE.match(cell.source)
        if title and title[2].startswith("In code"):
            assert cells[place + 1].cell_type == "code"
            assert "stub" in cells[place + 1].metadata["tags"]
    assert "code-ex-dual-code" in marks(student)


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


def test_the_guide_names_exercises_that_exist():
    text = (ROOT / "book" / "teaching" / "instructors-guide.md").read_text(encoding="utf8")
    named = set(re.findall(r"(?<!\})`([a-z]+(?:-[a-z]+)+)`", text))  # no roles
    assert len(named) > 20
    assert named <= set(names())


def test_the_guide_links_to_files_of_the_course_that_are_written_and_published():
    base = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))["html"]["baseurl"]
    guide = (ROOT / "book" / "teaching" / "instructors-guide.md").read_text(encoding="utf8")
    linked = set(re.findall(rf"\({re.escape(base)}course/([^)]*)\)", guide))
    sheets_linked = {link for link in linked if link.startswith("sheets/")}
    known = {f"sheets/session-{number}-problems.pdf" for number in (1, 2, 3)}
    known |= {f"sheets/{name}.pdf" for name in ("handout", "quiz", "exam")}
    assert sheets_linked == known
    decks = {f"slides/{deck}.html" for deck in slides.DECKS}
    files = {"", "slides.zip", "student.zip", "solutions.zip", "book.pdf"}
    assert linked - sheets_linked == files | decks
    workflow = (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf8")
    steps = yaml.safe_load(workflow)["jobs"]["build"]["steps"]
    published = next(step["with"]["path"] for step in steps if "pages" in step.get("uses", ""))
    assert f"--out {published}/course" in workflow


def test_the_paper_on_the_course_cites_what_it_lists_and_counts_right(chapters):
    folder = ROOT / "book" / "teaching" / "jose"
    text = (folder / "paper.md").read_text(encoding="utf8")
    listed = re.findall(r"^@\w+\{(\w+),", (folder / "paper.bib").read_text(encoding="utf8"), re.M)
    assert set(re.findall(r"@([a-z]+\d{4}[a-z]+)", text)) == set(listed)
    assert len(text.split()) < 1100
    data_sets = chapters.fill("{glue:text}`verdict/should-you-use-it :: many-data-sets`")
    assert f"on {data_sets} data sets" in text
    exercises = sum(page.read_text("utf8").count("{exercise-start}") for page in plain.pages())
    assert 90 <= exercises <= 120  # "about a hundred"
    assert 28 <= sum(number != "" for number in plain.pages().values()) <= 34  # "some thirty"


# Decks


@pytest.mark.parametrize("deck", slides.DECKS)
def test_a_deck_takes_everything_from_the_chapters_and_keeps_to_its_minutes(deck, chapters):
    page = slides.sections(deck, chapters)
    assert not re.search(r"\{(glue|value|formula|figure|output|explore|slide)", page)
    found = slides.slides(deck)
    assert page.count("<section>") == len(found)
    assert 'alt=""' not in page and 'aria-label=""' not in page
    minutes = [slide.minute for slide in found]
    assert minutes == sorted(minutes) and minutes[0] == 0 and minutes[-1] < 90
    rows = slides.timing(deck)
    late = [row.title for row in rows if row.needed > row.given + 0.5]
    assert not late
    assert sum(row.needed for row in rows) < 80  # a first time takes longer


# what is used in decks, and what its definition looks like
DEFINED = [
    (r"\\delta_i", r"\\delta_i\$ \| "),
    (r"Y_[ij]", r"\$Y_i = |\$Y_i\$, "),
    (r"\|R_i\|", r"\|R_i\|\$: how many"),
    (r"fig-loss-by-time", r"\|R_i\|\$: how many"),
    (r"eq-gradient", r"1\\\{\\cdot\\\}\$ is 1 if"),
    (r"eq-wc-rmax", r"\\mathbb\{E\}_\{P_k\}\$: its mean"),
    (r"eq-wc-ceiling", r"dP_k / dP\$: how many times"),
    (r"eq-dual-primal", r"\*\*risk\*\* \$R\$"),
    (r"SEER", r"\*\*SEER\*\* \(|^\| FLC, SEER, SUPPORT \|"),
    (r"SUPPORT", r"\*\*SUPPORT\*\* \(|^\| FLC, SEER, SUPPORT \|"),
    (r"R_i", r"R_i = |\$R_i\$ \|"),
    (r"f_i", r"\$f_i = f\(X_i|\$f_i\$, \$\\ell_i\$ \|"),
    (r"c-index", r"\*\*c-index\*\* \|"),
    (r"IBS", r"\*\*IBS\*\* \|"),
    (r"FLC", r"\*\*FLC\*\* \(|^\| FLC, "),
    (r"[sS]harp", r"\*\*sharp\*\* \||\*Sharp\*: \$c\^2"),
    (r"c\^2|c \\sqrt", r"c\^2 = 1 \+ r|constant of the ball"),
]


@pytest.mark.parametrize("deck", slides.DECKS)
@pytest.mark.parametrize(("use", "definition"), DEFINED)
def test_a_deck_defines_what_it_uses_on_the_same_slide_or_before(deck, use, definition):
    bodies = [slide.body for slide in slides.slides(deck)]
    uses = [number for number, body in enumerate(bodies) if re.search(use, body)]
    defines = [n for n, body in enumerate(bodies) if re.search(definition, body, re.MULTILINE)]
    assert not uses or (defines and defines[0] <= uses[0])


@BROWSER
@pytest.mark.slow
def test_every_slide_can_be_read_in_a_browser(tmp_path):
    slides.write(tmp_path)
    check = (ROOT / "tests" / "slides.js").read_text(encoding="utf8")
    problems = []
    with printed.printer() as browser:
        page = browser.chromium.new_page(viewport={"width": 1280, "height": 720})
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: problems.append(request.url))
        for deck in slides.DECKS:
            page.goto((tmp_path / f"{deck}.html").as_uri())
            page.wait_for_function("window.Reveal && Reveal.isReady()")
            assert page.evaluate("Reveal.getTotalSlides()") == len(slides.slides(deck))
            for number in range(len(slides.slides(deck))):
                found = page.evaluate(check, number)
                problems += [f"{deck} {number + 1}: {problem}" for problem in found]
    assert problems == []


def test_a_comma_stays_with_its_formula():
    page = quoted.rendered("Weights ($q_i$), one for each $i$; $n$ of them.")
    tex = re.findall(r"<annotation[^>]*>(.*?)</annotation>", page)
    assert tex == [r"\text{(}q_i\text{),}", r"i\text{;}", r"n"]


def test_decks_say_which_reference_is_wrong(chapters):
    for wrong in (
        "{figure}`fig-none`",
        "{formula}`eq-none`",
        "{output}`method/none :: x`",
        "{output}`method/dual :: §`",
    ):
        with pytest.raises(LookupError, match="refers to"):
            chapters.fill(wrong)
    with pytest.raises(LookupError, match="no panel 9"):
        chapters.fill("{figure}`fig-next :: step 9`")
    with pytest.raises(LookupError, match="called"):
        slides.same("session-1", "No such slide")


# Sheets


@pytest.fixture(scope="module")
def made(chapters):
    return sheets.Sheets(chapters)


def test_a_sheet_of_a_part_stands_alone(made):
    problems = made.of_part("Part II", [SOURCE])
    text = re.sub(r"<[^>]+>", " ", problems)
    assert "The six patients" in text and "check(" not in text and "hint(" not in text
    assert problems.count('class="asked"') == len(sheets.of_chapter(SOURCE)) >= 5
    points = sum(one.points for one in sheets.of_chapter(SOURCE))
    assert problems.count('class="room"') == points  # a block of lines for each point
    assert "Solution" not in text and 'class="name"' in problems
    by_name = {name: label for label, (name, _) in plain.labels().items()}
    for number in set(re.findall(r"\((\d+\.\d+)\)", text)):
        assert number in by_name
        assert f"tag{{{number}}}" in problems  # the formula is in print, its TeX beside it
    solved = made.of_part("Part II", [SOURCE], solved=True)
    assert solved.count('class="solution"') == len(sheets.of_chapter(SOURCE))
    assert 'class="room"' not in solved


def exercised():
    return [page for page in plain.pages() if "{exercise-start}" in page.read_text("utf8")]


def test_every_chapter_with_problems_has_words_for_its_symbols(made):
    words = yaml.safe_load(quoted.of_teaching("sheets/formulas.yml"))
    assert set(words) == {page.stem for page in exercised()}
    for page in exercised():
        box = made.used(sheets.of_chapter(page))
        assert words[page.stem]["words"] and not quoted.REFERENCE.search(box)
        problems = "".join(made.problem(one) for one in sheets.of_chapter(page))
        assert "hint(" not in problems and "&lt;sub" not in problems


def test_solutions_print_answers_that_the_checks_call_right():
    said = 0
    for page in exercised():
        for one in sheets.of_chapter(page):
            answer = sheets.right_answer(one.words)
            if not answer:
                continue
            said += 1
            name = sheets.CHECKED.search(one.words)[1]
            values = [
                part if part.isalpha() else float(part.replace("−", "-"))
                for part in answer.replace("True", "1").replace("False", "0").split(", ")
            ]
            if isinstance(values[0], str):
                assert check(name, "".join(values))
            else:
                assert check(name, values if question(name).labels else values[0]), name
    assert said >= 30


def test_verdicts_are_left_out_of_solutions_and_prints_are_not(made):
    solved = made.problem(sheets.exercise("dual-by-hand"), solved=True)
    assert "✓" not in solved
    assert "eta 0.446" in solved


def test_sheets_say_how_many_points_there_are(made):
    assert "of 60</p>" in made.exam()
    assert "of 12</p>" in made.written("quiz")
    points = sum(sheets.exercise(name).points for name in ("dro-cox-valid", "who-effective-size"))
    assert f"of {points + 6}</p>" in made.written("session-3")
    marks = re.findall(r"<li>(\d) for", made.written("session-3", solved=True))
    assert sum(map(int, marks)) == 6
    assert "surprised" not in made.written("session-3")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_sheet_of_a_session_has_the_homework_of_the_guide(made, number):
    guide = (ROOT / "book" / "teaching" / "instructors-guide.md").read_text(encoding="utf8")
    row = next(line for line in guide.splitlines() if line.startswith(f"| {number}. "))
    homework = re.findall(r"`([a-z-]+)`", row.split(" | ")[-1])
    text = quoted.of_teaching(f"sheets/session-{number}.md")
    placed = re.findall(r"\{exercise\}`([\w-]+)`", text)
    assert placed and placed == homework
    problems = made.written(f"session-{number}")
    solutions = made.written(f"session-{number}", solved=True)
    for name in placed:
        title = sheets.exercise(name).number
        assert title in problems and title in solutions
    assert "Solution." not in problems and "Solution." in solutions


def test_the_exam_has_eight_questions_with_marks_that_add_up(made):
    text = quoted.of_teaching("sheets/exam.md")
    found = list(sheets.QUESTION.finditer(text))
    assert len(found) == 8 == text.count("\n## ")
    assert sum(int(question["points"]) for question in found) == 60
    for asked in found:
        lines = [line for line in asked["marks"].splitlines() if line.startswith("- ")]
        assert len(lines) >= 2
    assert "Answer" not in made.exam() and "Cauchy" not in made.exam()
    assert made.exam(solved=True).count('class="marks"') == 8


def test_the_quiz_asks_and_its_solutions_answer(made):
    asked = made.written("quiz")
    solved = made.written("quiz", solved=True)
    assert asked.count('class="problem question"') == solved.count('class="problem question"') == 12
    assert "☒" not in asked and "☒" in solved


@BROWSER
@pytest.mark.slow
def test_the_handout_is_one_page_and_a_sheet_of_a_session_one_leaf(made, tmp_path):
    pages = {"handout": ("Handout", made.written("handout"))}
    for number in (1, 2, 3):
        pages[f"session-{number}"] = (f"Sheet {number}", made.written(f"session-{number}"))
    printed.write_sheets(pages, formulas.KATEX, tmp_path)
    reader = PdfReader(tmp_path / "handout.pdf")
    assert len(reader.pages) == 1 and reader.metadata.title == "Handout"
    assert "The six patients" in reader.pages[0].extract_text()
    for number in (1, 2, 3):
        front, back = PdfReader(tmp_path / f"session-{number}.pdf").pages
        # both sides have something to be answered
        assert re.search(r"Exercise \d|Before next time", front.extract_text())
        assert "Exercise" in back.extract_text()


def test_a_problem_keeps_its_first_lines_and_may_go_on_overleaf():
    assert [block.count("<p>") for block in sheets.room(7 / 3)] == [3, 3, 1]
    page = sheets.with_room("Why?", 2)
    kept, _, others = page.partition("</div></div>")
    assert kept.count("<p>") == others.count("<p>") == sheets.LINES and "Why?" in kept


# The book


PAGE = """<html><head><link rel="stylesheet" href="../../_static/a.css?v=1"></head><body>
<article class="bd-article"><section id="dual"><h1>8. The dual</h1>
<section id="part"><h2>A part</h2><span class="katex">
<span class="katex-mathml"><math>said</math></span><span>set</span></span>
<div class="exercise admonition" id="ex-a"><p class="admonition-title">
<span class="caption-number">Exercise 8.1 </span>(By hand)</p><p>Find it.</p>
<div class="cell tag_stub"><pre>answer = ...</pre><div class="cell_output">no answer</div></div>
<a href="#eq">(8.2)</a> <a href="../index.html">front</a> <img src="../../_images/b.svg"></div>
<div class="solution admonition" id="s"><p class="admonition-title">Solution</p><p>Two.</p></div>
<details class="hide">folded</details></section></section></article></body></html>"""
FRONT = (
    PAGE.replace("../../", "../")
    .replace("</head>", '<meta property="og:site_name" content="A book"></head>')
    .replace("</body>", '<div class="extra_footer">First edition</div></body>')
)


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "html"
    (folder / "book" / "method").mkdir(parents=True)
    (folder / "book" / "method" / "dual.html").write_text(PAGE, encoding="utf8")
    (folder / "book" / "index.html").write_text(FRONT, encoding="utf8")
    return printed.Site(folder)


def test_a_chapter_on_paper_has_its_solutions_apart(site):
    chapter = printed.Chapter(site, "book/method/dual")
    assert "Find it." in chapter.body and "answer = ..." in chapter.body
    assert "Two." not in chapter.body and "no answer" not in chapter.body
    assert "folded" not in chapter.body
    assert "said" not in chapter.body and "set" in chapter.body  # no formula twice
    assert len(chapter.solutions) == 1
    assert "Solution of Exercise 8.1" in chapter.solutions[0] and "Two." in chapter.solutions[0]
    assert 'href="#book-method-dual--eq"' in chapter.body
    assert 'href="#book-index"' in chapter.body
    assert 'src="../_images/b.svg"' in chapter.body
    assert chapter.sections == [("A part", "book-method-dual--part")]


@BROWSER
@pytest.mark.slow
def test_the_book_has_page_numbers_and_bookmarks(site, tmp_path):
    printed.write_book(site, {"Part I": ["book/method/dual"]}, tmp_path / "book.pdf")
    reader = PdfReader(io.BytesIO((tmp_path / "book.pdf").read_bytes()))
    places = printed.page_numbers((tmp_path / "book.pdf").read_bytes())
    page = places["book-method-dual"]
    contents = reader.pages[1].extract_text()
    assert re.search(rf"8\. The dual\s*{page}\b", contents)
    part, chapters, solutions = reader.outline
    assert part.title == "Part I" and solutions.title == "Solutions of the exercises"
    assert chapters[0].title == "8. The dual" and chapters[1][0].title == "A part"
    assert reader.get_destination_page_number(chapters[0]) + 1 == page


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match="make book"):
        printed.Site(tmp_path / "nowhere")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="install it"), printed.printer():
        pass
