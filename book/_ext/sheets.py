"""Problem sheets, handout, quiz and exam: pages of HTML that stand alone, for the printer.

Sheets of sessions, handout, quiz and exam have sources in book/teaching/sheets/, in the language of
:mod:`quoted` and with two words more:

    {exercise}`dual-by-hand`       a problem of the book, by the name of its check or its label
    {quiz}`dual 3`                 the third question of a chapter's quiz

Sheets of parts are made from the chapters: all exercises, each chapter with the formulas,
propositions and figures that its problems name. Solutions are files of their own.
"""

import functools
import html
import re
from pathlib import Path
from typing import NamedTuple

import nbformat
import plain
import quoted
import yaml

from drocox.exercises import question, quiz
from drocox.exercises._answers import RIGHT

EXERCISE = re.compile(r"### (Exercise [\d.]+): (.*?)\s*\n(.*)", re.DOTALL)
PLACE = re.compile(r"^\{(exercise|quiz|rows)\}`([^`]+)`$", re.MULTILINE)
# an exam: a heading with points, the question, the model answer, and for what there are marks
QUESTION = re.compile(
    r"^## (?P<title>.*?) \((?P<points>\d+) points\)\n(?P<text>.*?)\nAnswer:\n(?P<answer>.*?)"
    r"\nMarks:\n(?P<marks>.*?)(?=^## |\Z)",
    re.DOTALL | re.MULTILINE,
)
NAME = '<p class="name">Name <i></i> Points <b></b> of {points}</p>'
IN_CODE = """<p><i>Problems in code are worked in the notebook of their chapter, where
<code>check</code> judges them; the lines are for what you found.</i></p>"""
CALLS = re.compile(r"^(?:answer = \.\.\.|check\(|assert ).*$\n?", re.MULTILINE)
LINES = 3  # for an answer, for each point
POINTS_OF_EXAM = 2.6  # that are worth one of a problem
# Hints are for the notebook.
HINTS = re.compile(
    r'\s*\([^()]*`hint\("[^"]*"\)`[^()]*\)|\s*Hints?:\s+`hint\("[^"]*"\)`\.?', re.DOTALL
)
CHECKED = re.compile(r'check\("([\w-]+)"')
VERDICT = re.compile(r"[✓≈○✗] [\w-]+: ")
MARKS = "\nMarks:\n"


class Exercise(NamedTuple):
    """An exercise of the book; cells are those of a notebook, in plain Markdown."""

    label: str
    number: str
    title: str
    points: int
    page: Path
    problem: list
    solution: list

    @property
    def words(self):
        """All of the problem, code included."""
        return "\n".join(cell.source for cell in self.problem)


@functools.cache
def of_chapter(page, root=plain.ROOT):
    """The exercises of a chapter, in their order, with the outputs of its executed twin."""
    twin = nbformat.read(page.with_suffix(".ipynb"), as_version=4)
    outputs = {cell.source: cell.outputs for cell in twin.cells if cell.cell_type == "code"}
    notebook = exercises_only(plain.read(page))
    cells = plain.cells(notebook, page, plain.values(twin), root)
    names = {name: label for label, (name, at) in plain.labels(root).items() if at == page}
    found = []
    solved = False
    for cell in cells:
        start = EXERCISE.match(cell.source)
        if cell.cell_type == "code":
            cell.outputs = outputs.get(cell.source, [])
        if start:
            number, title, text = start.groups()
            stars = title.count("★")
            problem = [nbformat.v4.new_markdown_cell(text)]
            title = title.replace("★", "").strip()
            found.append(Exercise(names[number], number, title, stars or 2, page, problem, []))
            solved = False
        elif cell.source.startswith(plain.SOLUTION):
            solved = True
        elif re.match(r"##? ", cell.source):
            break  # the exercises are over
        elif found and "remove-cell" not in cell.metadata.get("tags", []):
            (found[-1].solution if solved else found[-1].problem).append(cell)
    return found


def exercises_only(notebook):
    """A chapter from its first exercise on."""
    for place, cell in enumerate(notebook.cells):
        if "{exercise-start}" in cell.source:
            start = cell.source.index("```{exercise-start}")
            notebook.cells[place].source = cell.source[start:]
            notebook.cells = notebook.cells[place:]
            return notebook
    notebook.cells = []
    return notebook


def exercise(name, root=plain.ROOT):
    """An exercise by its label or by the name of its check."""
    for page in plain.pages(root):
        text = page.read_text(encoding="utf8")
        if "{exercise-start}" not in text or name not in text:
            continue
        for found in of_chapter(page, root):
            if name == found.label or f'"{name}"' in found.words:
                return found
    raise LookupError(f"a sheet has the exercise {name!r}, and the book has none of this name")


class Sheets:
    """Makes HTML of sheets."""

    def __init__(self, chapters):
        self.chapters = chapters
        self.root = chapters.root

    def html(self, text):
        """Markdown in the language of :mod:`quoted`, as HTML."""
        return quoted.rendered(quoted.unlinked(self.chapters.fill(text)))

    def head(self):
        """The six patients and the symbols, which every sheet has."""
        return (
            f'<div class="head">{self.html(quoted.of_teaching("sheets/head.md", self.root))}</div>'
        )

    def cells(self, cells):
        """Cells of a notebook as HTML; calls to check and their verdicts are left out."""
        parts = []
        for cell in cells:
            if cell.cell_type == "markdown":
                words = quoted.unlinked(HINTS.sub("", cell.source))
                parts.append(quoted.rendered(words))
                continue
            wanted = re.findall(r"^answer = \.\.\. *# (.*)$", cell.source, re.MULTILINE)
            parts += [f"<p><i>Answer: {html.escape(words)}.</i></p>" for words in wanted]
            code = CALLS.sub("", cell.source).strip()
            if code:
                parts.append(f"<pre>{html.escape(code)}</pre>")
            shows = [output for output in cell.outputs if not is_verdict(output)]
            if shows:
                parts.append(quoted.shown(nbformat.from_dict(cell | {"outputs": shows})))
        return "".join(parts)

    def problem(self, found, solved=False, opening=""):
        """An exercise with room for an answer, or with its solution; an opening stays with it."""
        marks = f"{found.points} point{'s' * (found.points > 1)}"
        title = f"<h3>{found.number}. {html.escape(found.title)} <small>{marks}</small></h3>"
        asked = f"{opening}{title}{self.cells(found.problem)}"
        if not solved:
            return with_room(asked, found.points)
        answer = f"<p><b>Solution.</b> {right_answer(found.words)}</p>"
        answer = f'<div class="solution">{answer}{self.cells(found.solution)}</div>'
        return f'<section class="problem"><div class="asked">{asked}</div>{answer}</section>'

    def used(self, found):
        """What the problems of a chapter need: formulas, propositions, figures, words, as HTML."""
        page = found[0].page
        keys = yaml.safe_load(quoted.of_teaching("sheets/formulas.yml", self.root))
        needed = keys.get(page.stem, {"formulas": [], "words": ""})
        wanted = list(needed["formulas"])
        by_name = {name: label for label, (name, _) in plain.labels(self.root).items()}
        named = re.findall(
            r"\((\d+\.\d+)\)|((?:Proposition|Theorem|Definition|Fig\.) \d+\.\d+)",
            "\n".join(one.words for one in found),
        )
        wanted += [by_name[name] for names in named for name in names if name in by_name]
        parts = [self.quote(label) for label in dict.fromkeys(wanted)]
        parts += [self.html(needed["words"])] if needed["words"] else []
        return f'<div class="used">{"".join(parts)}</div>' if parts else ""

    def quote(self, label):
        """A formula, a proposition or a figure by its label, as HTML."""
        name, page = plain.labels(self.root)[label]
        if name.startswith("Fig."):
            return self.chapters.figure(label)
        if name[0].isdigit():
            return quoted.rendered(self.chapters.formula(label))
        for cell in plain.read(page).cells:
            for token in plain.blocks(cell.source):
                box = plain.directive(token)
                if box is not None and box.options.get("label") == label:
                    words = plain.Page(page, {}, self.root).directive(box)
                    return quoted.rendered(quoted.unlinked(words))
        raise LookupError(f"nothing in {page.name} has the label {label!r}")

    def of_part(self, caption, pages, solved=False):
        """All exercises of some chapters."""
        kind = "Solutions" if solved else "Problems"
        parts = [f"<h1>{kind}. {html.escape(caption)}</h1>"]
        if not solved:
            points = sum(one.points for page in pages for one in of_chapter(page, self.root))
            parts += [NAME.format(points=points), quoted.rendered(IN_CODE), self.head()]
        for page in pages:
            found = of_chapter(page, self.root)
            if found:
                title = re.search(r"^# (.*)$", page.read_text(encoding="utf8"), re.MULTILINE)[1]
                number = plain.pages(self.root)[page]
                numbered = f"{number}. {title}" if number else title
                heading = f"<h2>{quoted.rendered(numbered, inline=True)}</h2>"
                opening = heading if solved else heading + self.used(found)
                parts.append(self.problem(found[0], solved, opening))
                parts += [self.problem(one, solved) for one in found[1:]]
        return "".join(parts)

    def written(self, name, solved=False):
        """A sheet with a source of its own: of a session, handout or quiz."""
        text, _, marks = quoted.of_teaching(f"sheets/{name}.md", self.root).partition(MARKS)
        points = self.points(text)
        if solved:  # only the problems, and how the others are marked
            title = re.search(r"^# (.*)$", text, re.MULTILINE)[1]
            places = (place[0] for place in PLACE.finditer(text))
            text = "\n\n".join([f"# Solutions: {title}", *places, marks])
        text = text.replace("{name}", NAME.format(points=points)).replace("{head}", self.head())
        parts = []
        at = 0
        for place in PLACE.finditer(text):
            parts.append(self.html(text[at : place.start()]))
            parts.append(self.placed(*place.groups(), solved))
            at = place.end()
        return "".join([*parts, self.html(text[at:])])

    def points(self, text):
        """How many points a sheet has: of exercises, of questions, and those that it names."""
        points = sum(map(int, re.findall(r"(\d+) points", text)))
        for kind, what in PLACE.findall(text):
            if kind == "exercise":
                points += exercise(what, self.root).points
            elif kind == "quiz":
                points += 1
        return points

    def placed(self, kind, what, solved):
        """A problem of the book, a question of a quiz, or empty lines."""
        if kind == "exercise":
            return self.problem(exercise(what, self.root), solved)
        if kind == "rows":
            return "" if solved else "".join(room(float(what)))
        chapter, number = what.split()
        return quiz_question(quiz(chapter)[int(number) - 1], solved)

    def exam(self, solved=False):
        """The exam, or its model answers with the marking scheme."""
        text = quoted.of_teaching("sheets/exam.md", self.root)
        points = sum(int(found["points"]) for found in QUESTION.finditer(text))
        name = "" if solved else NAME.format(points=points)
        intro = text[: text.index("\n## ")].replace("{name}", name)
        intro = intro.replace("{head}", "" if solved else self.head())
        if solved:
            intro = intro.replace("# ", "# Model answers and marks: ", 1)
        parts = [self.html(intro)]
        for number, found in enumerate(QUESTION.finditer(text), start=1):
            title = f"<h3>{number}. {found['title']} <small>{found['points']} points</small></h3>"
            asked = title + self.html(found["text"])
            if solved:
                answer = f'<div class="solution">{self.html(found["answer"])}</div>'
                answer += f'<div class="marks">{self.html(found["marks"])}</div>'
                asked = f'<div class="asked">{asked}</div>'
                parts.append(f'<section class="problem">{asked}{answer}</section>')
            else:
                parts.append(with_room(asked, int(found["points"]) / POINTS_OF_EXAM))
        return "".join(parts)


def with_room(asked, points):
    """A problem with lines for its answer; the first stay with it, others may go on overleaf."""
    first, *others = room(points)
    kept = f'<div class="asked">{asked}{first}</div>'
    return f'<section class="problem">{kept}{"".join(others)}</section>'


def room(points):
    """Lines for an answer, as many blocks of them as there are points."""
    count = round(LINES * points)
    blocks = [min(LINES, count - start) for start in range(0, count, LINES)]
    return [f'<div class="room">{"<p></p>" * lines}</div>' for lines in blocks]


def is_verdict(output):
    """Whether an output is what a check says."""
    return VERDICT.match(output.get("data", {}).get("text/plain", "")) is not None


def right_answer(words):
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
    return ", ".join(three_digits(value) for value in values)


def three_digits(value):
    """A number as it stands in an answer: whole, or with three digits."""
    whole = abs(value - round(value)) < 1e-9
    return (f"{value:.0f}" if whole else f"{value:#.3g}").replace("-", "−")


def quiz_question(found, solved):
    """A question of a quiz with boxes to tick; solved: which is right, and what the others show."""
    text = quoted.rendered(found.text)
    if not found.choices:
        right = (
            f"<p><b>{found.right:.4g}</b></p>"
            if solved
            else '<p class="number">Answer: <i></i></p>'
        )
        return f'<section class="problem question">{text}{right}</section>'
    items = []
    for letter, words in found.choices.items():
        words = quoted.rendered(words, inline=True)
        mark = "☒" if solved and letter == found.right else "☐"
        why = (
            f" <em>{html.escape(found.shows[letter])}</em>"
            if solved and letter in found.shows
            else ""
        )
        items.append(f"<li>{mark} {words}{why}</li>")
    return f'<section class="problem question">{text}<ul>{"".join(items)}</ul></section>'


def pages(parts, chapters):
    """All sheets.

    Parameters
    ----------
    parts : dict of str to list of Path
        Captions of the parts of the book and their chapters.
    chapters : quoted.Chapters

    Returns
    -------
    dict of str to (str, str)
        By name of the file: title, and HTML of the body.
    """
    sheets = Sheets(chapters)
    found = {}
    for session in (1, 2, 3):
        name = f"session-{session}"
        found[f"{name}-problems"] = sheets.written(name)
        found[f"{name}-solutions"] = sheets.written(name, solved=True)
    number = 0
    for caption, chapter_pages in parts.items():
        exercised = [
            page for page in chapter_pages if "{exercise-start}" in page.read_text(encoding="utf8")
        ]
        if not exercised:
            continue
        name = caption.lower().replace(" ", "-")
        if caption.startswith("Part "):
            number += 1
            name = f"part-{number}"
        found[f"{name}-problems"] = sheets.of_part(caption, exercised)
        found[f"{name}-solutions"] = sheets.of_part(caption, exercised, solved=True)
    found["handout"] = sheets.written("handout")
    found["quiz"] = sheets.written("quiz")
    found["quiz-solutions"] = sheets.written("quiz", solved=True)
    found["exam"] = sheets.exam()
    found["exam-solutions"] = sheets.exam(solved=True)
    titles = {name: re.search(r"<h1>(.*?)</h1>", body)[1] for name, body in found.items()}
    return {name: (titles[name], body) for name, body in found.items()}
