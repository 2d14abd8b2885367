"""What is printed: sheets of exercises, handout, quizzes and exam, from book/teaching/sheets/."""

import functools
import html
import re
from pathlib import Path
from string import Template
from typing import NamedTuple

import exams
import nbformat
import plain
import twins
from nbformat import NotebookNode
from quotes import REFERENCE, TEACHING, colophon, fetched, rendered, shown, source, title, unlinked

from drocox.exercises import question, quiz
from drocox.exercises._answers import RIGHT

EXAM = TEACHING / "sheets" / "exam.toml"
SHEETS = ("sheet-1", "sheet-2", "sheet-3", "handout", "quiz", "exam")
QUIZZES = ("quiz-1", "quiz-2", "quiz-3")
EXERCISE = re.compile(r"### (Exercise [\d.]+): (.*?)\s*\n(.*)", re.DOTALL)
CHECKED = re.compile(r'check\("([\w-]+)"')
VERDICT = re.compile(r"[✓≈○✗] [\w-]+: ")
CALLS = re.compile(r"^(?:answer = \.\.\.|check\(|assert ).*$\n?", re.MULTILINE)
# Hints are for the notebook.
HINTS = re.compile(r'\s*\([^()]*`hint\("[^"]*"\)`[^()]*\)')
# a question of an exam: heading with points, text, model answer, and for what there are marks
QUESTION = re.compile(
    r"^## (?P<title>.*?) \((?P<points>\d+) points\)\n(?P<text>.*?)\nAnswer:\n(?P<answer>.*?)"
    r"\nMarks:\n(?P<marks>.*?)(?=^## |\Z)",
    re.DOTALL | re.MULTILINE,
)
MARKS = "\nMarks:\n"
IN_CODE = "<p><i>Work in the notebook of the session, where <code>check</code> judges it.</i></p>"
NAME = '<p class="name">Name <i></i> Points <b></b> of {points}</p>'
BONUS = "\n## Bonus\n"
LINES = 3  # for an answer, for each point; at least one for each number


class Exercise(NamedTuple):
    """An exercise of the book; cells are those of a notebook, in plain Markdown."""

    label: str
    number: str
    title: str
    points: int
    problem: list
    solution: list

    @property
    def words(self) -> str:
        """All of the problem, code included."""
        return "\n".join(cell.source for cell in self.problem)


@functools.cache
def exercises(page: Path) -> list[Exercise]:
    """The exercises of a chapter in their order, with the outputs of its executed twin."""
    executed = twins.load(page.with_suffix(".ipynb"))
    outputs = {cell.source: cell.outputs for cell in twins.code_cells(executed)}
    names = {name: label for label, (name, at) in plain.labels().items() if at == page}
    found = []
    solved = False
    for cell in plain.cells(plain.read(page), page, plain.values(executed)):
        start = EXERCISE.match(cell.source)
        if cell.cell_type == "code":
            cell.outputs = outputs.get(cell.source, [])
        if start:
            name, words, text = start.groups()
            points = words.count("★") or 2
            problem = [nbformat.v4.new_markdown_cell(text)]
            words = words.replace("★", "").strip()
            found.append(Exercise(names[name], name, words, points, problem, []))
            solved = False
        elif cell.source.startswith(plain.SOLUTION):
            solved = True
        elif found and re.match(r"##? ", cell.source):
            break  # the exercises are over
        elif found and "remove-cell" not in cell.metadata.get("tags", []):
            (found[-1].solution if solved else found[-1].problem).append(cell)
    return found


@functools.cache
def with_exercises() -> list[Path]:
    """The chapters that have exercises."""
    return [page for page in twins.chapters() if "{exercise-start}" in page.read_text("utf8")]


def exercise(name: str) -> Exercise:
    """An exercise by its label or by the name of its check."""
    for page in with_exercises():
        if name in page.read_text(encoding="utf8"):
            for found in exercises(page):
                if name == found.label or f'"{name}"' in found.words:
                    return found
    raise LookupError(f"the course refers to {name!r}, and no exercise is called so")


def page_of(text: str) -> str:
    """Markdown of a sheet as HTML."""
    return rendered(unlinked(fetched(text)))


def head() -> str:
    """The table of the six patients, which every sheet has."""
    return f'<div class="head">{page_of(source("sheets/head.md"))}</div>'


def cells_as_html(cells: list[NotebookNode]) -> str:
    """Cells of a notebook as HTML; calls to check and their verdicts are left out."""
    parts = []
    for cell in cells:
        if cell.cell_type == "markdown":
            parts.append(rendered(unlinked(HINTS.sub("", cell.source))))
            continue
        wanted = re.findall(r"^answer = \.\.\. *# (.*)$", cell.source, re.MULTILINE)
        parts += [f"<p><i>Answer: {html.escape(words)}.</i></p>" for words in wanted]
        code = CALLS.sub("", cell.source).strip()
        if code:
            parts.append(f"<pre>{html.escape(code)}</pre>")
        prints = [output for output in cell.outputs if not is_verdict(output)]
        if prints:
            parts.append(shown(nbformat.from_dict(cell | {"outputs": prints})))
    return "".join(parts)


def is_verdict(output: NotebookNode) -> bool:
    """Whether an output is the verdict of a check."""
    return VERDICT.match(output.get("data", {}).get("text/plain", "")) is not None


def problem(found: Exercise, solved: bool) -> str:
    """An exercise with lines for an answer, or with its solution."""
    marks = f"{found.points} point{'s' * (found.points > 1)}"
    heading = f"<h3>{found.number}. {html.escape(found.title)} <small>{marks}</small></h3>"
    asked = heading + cells_as_html(found.problem)
    if not solved and found.title.startswith("In code"):
        return f'<section class="problem"><div class="asked">{asked}{IN_CODE}</div></section>'
    if not solved:
        checked = CHECKED.search(found.words)
        wanted = question(checked[1]) if checked else None
        return with_room(asked, found.points, len(wanted.labels) if wanted else 0)
    answer = f"<p><b>Solution.</b> {right_answer(found.words)}</p>{cells_as_html(found.solution)}"
    return with_solution(asked, answer)


def with_solution(asked: str, answer: str) -> str:
    """A problem followed by its answer."""
    asked = f'<div class="asked">{asked}</div>'
    return f'<section class="problem">{asked}<div class="solution">{answer}</div></section>'


def with_room(asked: str, points: float, least: int = 0) -> str:
    """A problem with lines for its answer; the first stay on its page, others may go overleaf."""
    first, *others = room(max(points, least / LINES))
    kept = f'<div class="asked">{asked}{first}</div>'
    return f'<section class="problem">{kept}{"".join(others)}</section>'


def room(points: float) -> list[str]:
    """Lines for an answer, in blocks without page breaks."""
    count = round(LINES * points)
    blocks = [min(LINES, count - start) for start in range(0, count, LINES)]
    return [f'<div class="room">{"<p></p>" * lines}</div>' for lines in blocks]


def right_answer(words: str) -> str:
    """The right answer to a problem whose check asks for numbers or letters, as words."""
    checked = CHECKED.search(words)
    asked = question(checked[1]) if checked else None
    if asked is None:
        return ""
    case = next(case for case in asked.cases if case.says == RIGHT)
    values = [known[0][0] for known in case.numbers if known]
    if asked.letters:
        return ", ".join(name for name, value in zip(asked.labels, values, strict=True) if value)
    if "True or False" in words:
        return ", ".join(str(bool(value)) for value in values)
    return ", ".join(map(printed, values))


def printed(value: float) -> str:
    """A number as written in an answer: whole, or with three decimals, or more if it is small."""
    whole = abs(value - round(value)) < 1e-9
    text = f"{value:.0f}" if whole else f"{value:.3f}" if abs(value) >= 0.1 else f"{value:#.3g}"
    return text.replace("-", "−")


def quiz_question(chapter: str, place: str, solved: bool) -> str:
    """A question of a quiz with boxes to tick; solved: which is right, and why others are not."""
    found = quiz(chapter)[int(place) - 1]
    text = rendered(found.text)
    if not found.choices:
        right = f"<p><b>{printed(found.right)}</b></p>"
        answer = right if solved else '<p class="number">Answer: <i></i></p>'
        return f'<section class="problem question">{text}{answer}</section>'
    items = []
    for letter, words in found.choices.items():
        mark = "☒" if solved and letter == found.right else "☐"
        why = f"No: {html.escape(found.shows[letter])}." if solved and letter in found.shows else ""
        items.append(f"<li>{mark} {rendered(words, inline=True)} <em>{why}</em></li>")
    return f'<section class="problem question">{text}<ul>{"".join(items)}</ul></section>'


def placed(kind: str, what: str, solved: bool) -> str:
    """An exercise of the book, a question of a quiz, or empty lines."""
    if kind == "exercise":
        return problem(exercise(what), solved)
    if kind == "quiz":
        return quiz_question(*what.split(), solved)
    return "" if solved else "".join(room(float(what) / LINES))


def points_of(text: str) -> str:
    """How many points a sheet has, those of a bonus apart."""
    regular, _, bonus = text.partition(BONUS)
    more = f", and {counted(bonus)} for the bonus" if bonus else ""
    return f"{counted(regular)}{more}"


def counted(text: str) -> int:
    """The points of exercises, of questions, and those that a text names."""
    points = sum(map(int, re.findall(r"(\d+) points", text)))
    for kind, what in REFERENCE.findall(text):
        if kind == "exercise":
            points += exercise(what).points
        elif kind == "quiz":
            points += 1
    return points


def sheet(name: str, solved: bool = False) -> str:
    """A sheet, handout or quiz as HTML; solved: only problems with answers, and the marks."""
    text, _, marks = sheet_source(name).partition(MARKS)
    points = points_of(text)
    if solved:
        problems = re.findall(r"^(?:\{(?:exercise|quiz)\}`[^`]+`|## Session .*)$", text, re.M)
        text = "\n\n".join([f"# {title(text).replace(':', ', solutions:', 1)}", *problems, marks])
    text = text.replace("{name}", NAME.format(points=points)).replace("{head}", head())
    text = text.replace("{fold}", '<p class="fold">fold here, and read on when you are told to</p>')
    parts = []
    for piece in re.split(r"^(\{(?:exercise|quiz|rows)\}`[^`]+`)$", text, flags=re.MULTILINE):
        found = REFERENCE.fullmatch(piece)
        parts.append(placed(*found.groups(), solved) if found else page_of(piece))
    return "".join(parts)


def sheet_source(name: str) -> str:
    """The Markdown of a sheet; a quiz of one session is a part of the quiz."""
    if name not in QUIZZES:
        return source(f"sheets/{name}.md")
    text, _, _ = source("sheets/quiz.md").partition(MARKS)
    intro, *sections = re.split(r"^(?=## Session )", text, flags=re.MULTILINE)
    return intro.replace("# Quiz:", "# A short quiz:", 1) + sections[QUIZZES.index(name)]


def exam(solved: bool = False, numbers: dict | None = None) -> str:
    """The exam, or its model answers with the marking scheme; numbers: of another exam."""
    text = exams.filled(source("sheets/exam.md"), numbers or exams.read(EXAM))
    points = sum(int(found["points"]) for found in QUESTION.finditer(text))
    intro = text[: text.index("\n## ")]
    if solved:
        intro = intro.replace("# ", "# Model answers and marks: ", 1)
        intro = intro.partition("{name}")[0]
    intro = intro.replace("{name}", NAME.format(points=points))
    parts = [page_of(intro)]
    for place, found in enumerate(QUESTION.finditer(text), start=1):
        heading = f"<h3>{place}. {found['title']} <small>{found['points']} points</small></h3>"
        asked = heading + page_of(found["text"])
        marks = f'<div class="marks">{page_of(found["marks"])}</div>'
        answer = page_of(found["answer"]) + marks
        room_for = int(found["points"]) / 2.6  # a point here is worth less than in a sheet
        parts.append(with_solution(asked, answer) if solved else with_room(asked, room_for))
    return "".join(parts)


def sheets() -> dict[str, str]:
    """All pages to print: HTML of the body by name."""
    pages = {}
    for name in SHEETS:
        make = exam if name == "exam" else functools.partial(sheet, name)
        pages[name] = make()
        if name != "handout":
            pages[f"{name}-solutions"] = make(solved=True)
    return pages | {name: sheet(name) for name in QUIZZES}


def printable(body: str) -> str:
    """A page of HTML that prints well and needs only the formulas' style beside it."""
    heading = html.unescape(re.sub(r"<.*?>", "", re.search(r"<h1>(.*?)</h1>", body)[1]))
    return Template(source("sheets/sheet.html")).substitute(
        title=html.escape(heading), style=source("sheets/sheet.css"), body=body + colophon()
    )
