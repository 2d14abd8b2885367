r"""Sphinx extension: the course, written into the site beside the book, as ``course/``.

    session-1.html …, lecture.html      decks, from book/teaching/slides/
    sheet-1.html …, handout.html, quiz.html, exam.html, each ``-solutions.html``
                                        pages to print, from book/teaching/sheets/
    quiz-1.html …, quiz-1.gift.txt …    the quiz by session, to print and for Moodle
    session-1.pdf …, lecture.pdf        decks on paper, if the machine has Chromium
    notebooks/session-1/ …              notebooks of the sessions, from book/teaching/notebooks/
    notebooks/X/                        chapter X for students: stubs and checks, no solutions
    students.zip                        start.html, the notebooks of the sessions, the package
    course.zip                          all of it, with a README, for a room without a network

    python book/_ext/course.py exam my-exam.toml    another exam, see sheets/exam.toml
    python book/_ext/course.py prints               what sessions print, which tests compare

Sources are Markdown. What the book has is not written again but fetched by a reference:

    {formula}`eq-dual-bound`            a formula by its label, with its number
    {figure}`fig-next`                  a figure by its label, with its caption
    {figure}`fig-next :: step 4`        the same; its fourth panel is shown in a second step
    {figure}`fig-next :: one by one`    the same; its panels fill the slide one after the other
    {explore}`dual`                     an explorable by the name of its script
    {explore}`dual :: eta=-0.5 plain`   the same with another start; plain: without formulas
    {glue:text}`method/dual :: name`    a number of a chapter's text
    {exercise}`dual-by-hand`            an exercise, by its label or the name of its check
    {quiz}`dual 3`                      the third question of a chapter's quiz
    {rows}`5`                           empty lines to write on
    {asks}`0.833 5/12`                  shows nothing: from here on these numbers are asked for
    {answer}`who-is-protected 6`        in a notebook: a cell for an answer in words, and its points

Slides are separated by ``---``; what follows ``Note:`` is for the speaker.
"""

import ast
import base64
import contextlib
import copy
import functools
import html
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from string import Template
from typing import NamedTuple
from xml.etree import ElementTree

import exams
import explore
import formulas
import gift
import jupytext
import nbformat
import numpy as np
import plain
import twins
import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from plain import ROOT

from drocox.exercises import question, quiz
from drocox.exercises._answers import RIGHT

TEACHING = ROOT / "book" / "teaching"
EXAM = TEACHING / "sheets" / "exam.toml"
ONE_BY_ONE = "one by one"
SVG_NAME = "{http://www.w3.org/2000/svg}"
ElementTree.register_namespace("", SVG_NAME[1:-1])
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
DECKS = ("lecture", "session-1", "session-2", "session-3")
SHEETS = ("sheet-1", "sheet-2", "sheet-3", "handout", "quiz", "exam")
SESSIONS = ("session-1", "session-2", "session-3")
QUIZZES = ("quiz-1", "quiz-2", "quiz-3")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
# What a notebook needs: modules, extras of the package, and the arguments of pip that install them.
# Sessions 1 and 2 need neither torch nor anything else that drocox depends on.
LIGHT = ("drocox numpy pandas", "", ("numpy pandas", '--no-deps "{package}"'))
NEEDS = {
    "session-1": LIGHT,
    "session-2": LIGHT,
    "session-3": ("drocox torch sklearn sksurv", "[torch]", ('"{package}"',)),
}
OF_CHAPTERS = ("drocox torch lifelines myst_nb", "[notebooks]", ('"{package}"',))
REFERENCE = re.compile(
    r"\{(glue:text|formula|figure|explore|exercise|quiz|rows|answer|asks)\}`([^`]+)`"
)
CAPTION = re.compile(r"\*\*(Fig\. [\d.]+):\*\* (.*)", re.DOTALL)
EXERCISE = re.compile(r"### (Exercise [\d.]+): (.*?)\s*\n(.*)", re.DOTALL)
SOLUTION = re.compile(r"^```\{solution-start\}.*?^```\{solution-end\}\s*^```$", re.M | re.S)
CHECKED = re.compile(r'check\("([\w-]+)"')
VERDICT = re.compile(r"[✓≈○✗] [\w-]+: ")
CALLS = re.compile(r"^(?:answer = \.\.\.|check\(|assert ).*$\n?", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^][]*)\]\(([^()\s:#]+)(#[^()\s]*)?\)")
# Hints are for the notebook.
HINTS = re.compile(
    r'\s*\([^()]*`hint\("[^"]*"\)`[^()]*\)|\s*Hints?:\s+`hint\("[^"]*"\)`\.?', re.DOTALL
)
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


def source(name):
    """A source of the course, such as "slides/session-1.md"."""
    return (TEACHING / name).read_text(encoding="utf8")


# What is fetched from the book


@functools.cache
def executed_page(page):
    """The executed notebook of a chapter, named as "method/dual"."""
    path = ROOT / "book" / f"{page}.ipynb"
    if not path.exists():
        raise LookupError(f"the course refers to {page!r}, and no chapter is called so")
    return twins.load(path)


def all_executed():
    """The executed notebooks of all chapters, in the order of the book."""
    pages = [page.relative_to(ROOT / "book").with_suffix("") for page in twins.chapters()]
    return [executed_page(page.as_posix()) for page in pages]


def fetched(text):
    """Markdown with its references replaced by their targets, as Markdown or HTML."""
    fetch = {"glue:text": number, "formula": formula, "figure": figure, "explore": explorable}
    fetch["asks"] = lambda numbers: ""
    return REFERENCE.sub(lambda found: fetch[found[1]](*found[2].split(" :: ")), text)


def number(page, name):
    """A number of a chapter's text."""
    values = plain.values(executed_page(page))
    return plain.Page(ROOT / "book" / f"{page}.md", values).text(name)


def formula(label):
    """A formula of the book, with its number."""
    if label not in plain.labels():
        raise LookupError(f"the course refers to {label!r}, and no formula is called so")
    name, page = plain.labels()[label]
    text = page.read_text(encoding="utf8")
    tex = re.search(rf"\$\$((?:(?!\$\$).)*?)\$\$ \({re.escape(label)}\)", text, re.DOTALL)
    return f"$$\n{tex[1].strip()} \\tag{{{name}}}\n$$"


def figure(label, steps=""):
    """A figure of the book with its caption; panels may be shown in later steps, or one by one."""
    for notebook in all_executed():
        for cell, below in itertools.pairwise(notebook.cells):
            if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == label:
                name, words = CAPTION.fullmatch(below.source).groups()
                words = rendered(unlinked(words), inline=True)
                if steps == ONE_BY_ONE:
                    picture = panels(cell, label)
                else:
                    step = re.findall(r"\d+", steps)
                    picture = stepwise(cell, label, step) if step else shown(cell)
                caption = f"<figcaption><b>{name}</b> <span>{words}</span></figcaption>"
                return one_block(f'<figure class="quoted">{picture}{caption}</figure>')
    raise LookupError(f"the course refers to {label!r}, and no figure is called so")


def explorable(kind, start=""):
    """An explorable of the book by the name of its script, perhaps with another start."""
    for notebook in all_executed():
        for cell in twins.code_cells(notebook):
            for output in cell.outputs:
                if f'data-explore="{kind}"' in output.get("data", {}).get("text/html", ""):
                    return started(shown(cell), start.split())
    raise LookupError(f"the course refers to {kind!r}, and no chapter has such an explorable")


def started(markup, words):
    """An explorable with ``name=value`` in its data; words without a value are classes."""
    names = [word for word in words if "=" not in word]
    values = [word.split("=") for word in words if "=" in word]
    for name, value in values:
        markup, count = re.subn(rf'("{name}":)-?[\d.]+', rf"\g<1>{float(value)}", markup)
        if count != 1:
            raise LookupError(f"the course sets {name!r}, and the explorable has no such number")
    return markup.replace('class="explore"', f'class="{" ".join(["explore", *names])}"')


def described(cell):
    """The alternative text of a cell's picture."""
    return html.escape(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", ""))


def shown(cell):
    """The output of an executed cell, as HTML."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if "scrapbook" in output.get("metadata", {}):
            continue  # a value for the text
        if twins.SVG in data:
            svg = base64.b64encode(data[twins.SVG].encode()).decode()
            parts.append(f'<img alt="{described(cell)}" src="data:image/svg+xml;base64,{svg}">')
        else:
            text = html.escape(output.get("text") or data.get("text/plain", ""))
            parts.append(data.get("text/html") or f"<pre>{text}</pre>")
    return one_block(f'<div class="output">{"".join(parts)}</div>')


def stepwise(cell, name, steps):
    """A picture as part of the page, some of whose panels are shown in later steps."""
    svg = svg_of(cell)
    for step in steps:
        panel = f'<g id="axes_{step}"'
        if panel not in svg:
            raise LookupError(f"{name} has no panel {step}")
        svg = svg.replace(panel, f'{panel} class="fragment"')
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{described(cell)}" ', 1)
    return f'<div class="output">{with_own_ids(svg, name)}</div>'


def panels(cell, name):
    """A picture whose panels fill the slide one after the other; on paper the whole picture.

    A panel gets the tick labels of the axis that it shares with another.
    """
    whole = ElementTree.fromstring(svg_of(cell))
    count = len(axes_of(whole))
    views = [*(one_panel(copy.deepcopy(whole), place) for place in range(count)), whole]
    markup = []
    for place, view in enumerate(views):
        later = "fragment current-visible" if place < count else "whole"
        view.set("class", later if place else "first")
        view.set("role", "img")
        view.set("aria-label", html.unescape(described(cell)))
        svg = ElementTree.tostring(view, encoding="unicode")
        markup.append(one_block(with_own_ids(svg, f"{name}-{place}")))
    return f'<div class="output panels">{"".join(markup)}</div>'


def svg_of(cell):
    """The picture that an executed cell has drawn."""
    svg = next(o.data[twins.SVG] for o in cell.outputs if twins.SVG in o.get("data", {}))
    return svg[svg.index("<svg") :]


def with_own_ids(svg, name):
    """A picture whose ids begin with a name, as a page has other pictures beside it."""
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)


def axes_of(picture):
    """The panels of a picture: each element with its box (left, right, top, bottom)."""
    found = []
    for element in picture.iter(f"{SVG_NAME}g"):
        if element.get("id", "").startswith("axes_"):
            path = element.find(f"{SVG_NAME}g/{SVG_NAME}path").get("d")
            numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
            xs, ys = numbers[::2], numbers[1::2]
            found.append((element, (min(xs), max(xs), min(ys), max(ys))))
    return found


def one_panel(picture, place):
    """A picture cut to one of its panels, with the margins of the whole picture.

    Names that all panels share stand where they stood, in the middle of the left or of the bottom.
    """
    found = axes_of(picture)
    boxes = np.array([box for _, box in found])
    _, _, width, height = map(float, picture.get("viewBox").split())
    near = np.array([boxes[:, 0].min(), width - boxes[:, 1].max()])
    far = np.array([boxes[:, 2].min(), height - boxes[:, 3].max()])
    mine, box = found[place]
    axis_of = {
        element: [each for each in element if each.get("id", "").startswith("matplotlib")]
        for element, _ in found
    }
    for kind, shared in enumerate((slice(0, 2), slice(2, 4))):
        if labels_of(axis_of[mine][kind]):
            continue
        for other, at in found:
            words = labels_of(axis_of[other][kind])
            if words and np.allclose(at[shared], box[shared]):
                shift = (0, box[3] - at[3]) if kind == 0 else (box[0] - at[0], 0)
                moved = ElementTree.SubElement(mine, f"{SVG_NAME}g")
                moved.set("transform", f"translate({shift[0]:.2f} {shift[1]:.2f})")
                moved.extend(copy.deepcopy(words))
                for label in moved.iter():
                    label.attrib.pop("id", None)  # it keeps it on the axis of the other
                break
    for element in picture.find(f"{SVG_NAME}g"):
        if element is not mine and element.tag == f"{SVG_NAME}g":
            element.set("visibility", "hidden")
    corner = np.array([box[0] - near[0], box[2] - far[0]])
    size = np.array([box[1] - box[0] + near.sum(), box[3] - box[2] + far.sum()])
    centred = corner + size / 2 - np.array([width, height]) / 2
    for words in picture.findall(f"{SVG_NAME}g/{SVG_NAME}g"):
        if not words.get("id", "").startswith("text_"):
            continue
        x, y = place_of(words)
        if x < boxes[:, 0].min() and boxes[:, 2].min() < y:  # the name of all vertical axes
            shift = corner[0], centred[1]
        elif y > boxes[:, 3].max():  # of all horizontal ones
            shift = centred[0], corner[1] + size[1] - height
        else:
            continue
        words.set("transform", f"translate({shift[0]:.2f} {shift[1]:.2f})")
        del words.attrib["visibility"]
    picture.set("viewBox", " ".join(f"{number:.2f}" for number in (*corner, *size)))
    return picture


def place_of(words):
    """Where the words of a picture begin."""
    moved = words.find(f"{SVG_NAME}g").get("transform")
    return [float(number) for number in re.findall(r"-?[\d.]+", moved)[:2]]


def labels_of(axis):
    """The labels of an axis, and its name."""
    return [each for each in axis.iter() if each.get("id", "").startswith("text_")]


def one_block(text):
    """HTML without empty lines, at which a block of HTML ends for Markdown."""
    return re.sub(r"\n\s*\n", "\n", text)


def unlinked(text):
    """Markdown in which links are replaced by their text."""
    return re.sub(r"(?<!!)\[([^][]*)\]\([^()\s]*\)", r"\1", text)


# Markdown


@functools.cache
def parser(mathml=False):
    """Markdown with tables and formulas."""

    def typeset(content, options):
        return formulas.typeset(content, options["display_mode"], mathml)

    markdown = MarkdownIt("commonmark").enable("table")
    markdown.use(dollarmath_plugin, renderer=typeset, allow_space=True)
    markdown.core.ruler.push("steps", step_by_step)
    markdown.core.ruler.push("hold", hold)
    return markdown


def rendered(text, inline=False, mathml=False):
    """Markdown as HTML. Items of lists with ``+`` or ``1)`` are shown one by one."""
    return parser(mathml).renderInline(text) if inline else parser(mathml).render(text)


def step_by_step(state):
    """Mark the items of lists with ``+`` or ``1)`` for reveal.js."""
    for token in state.tokens:
        if token.type == "list_item_open" and token.markup in {"+", ")"}:
            token.attrJoin("class", "fragment")


def hold(state):
    """Let brackets and commas that touch a formula in a line belong to it: see formulas.hold."""
    for block in state.tokens:
        for before, token in itertools.pairwise(block.children or []):
            if before.type == "text" and token.type == "math_inline":
                opening = formulas.OPENING.search(before.content)
                if opening:
                    token.content = rf"\text{{{opening[0]}}}{token.content}"
                    before.content = before.content[: opening.start()]
            if before.type == "math_inline" and token.type == "text":
                closing = formulas.CLOSING.match(token.content)
                if closing:
                    before.content = rf"{before.content}\text{{{closing[0]}}}"
                    token.content = token.content[closing.end() :]


# Decks


def deck(name):
    """A deck as a page of HTML."""
    sections = []
    for count, slide in enumerate(slides_of(name)):
        body, _, note = slide.partition("\nNote:\n")
        body = rendered(fetched(body)) + ("" if count else colophon())
        # The speaker's window has no style for formulas; browsers set MathML without one.
        note = rendered(fetched(note), mathml=True)
        kind = "" if count else ' class="title"'
        sections.append(f'<section{kind}>\n{body}<aside class="notes">{note}</aside>\n</section>')
    slides = "\n".join(sections)
    return Template(source("slides/deck.html")).substitute(
        title=html.escape(title(source(f"slides/{name}.md"))),
        style=source("slides/deck.css"),
        explorables=explore.tags(slides, "../_static"),
        slides=slides,
    )


def slides_of(name):
    """The slides of a deck in Markdown."""
    return re.split(r"^---\n", source(f"slides/{name}.md"), flags=re.MULTILINE)


@functools.cache
def colophon():
    """Title, authors, address and licence, from CITATION.cff."""
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))
    authors = ", ".join(each["name"] for each in about["authors"])
    words = f"{about['title']}. {authors}. {plain.base()} Text and figures: CC BY 4.0, code: MIT."
    return f'<p class="colophon">{html.escape(words)}</p>'


def title(text):
    """The first heading of a Markdown text."""
    return re.search(r"^# (.*)$", text, re.MULTILINE)[1]


# Sheets


class Exercise(NamedTuple):
    """An exercise of the book; cells are those of a notebook, in plain Markdown."""

    label: str
    number: str
    title: str
    points: int
    problem: list
    solution: list

    @property
    def words(self):
        """All of the problem, code included."""
        return "\n".join(cell.source for cell in self.problem)


@functools.cache
def exercises(page):
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
def with_exercises():
    """The chapters that have exercises."""
    return [page for page in twins.chapters() if "{exercise-start}" in page.read_text("utf8")]


def exercise(name):
    """An exercise by its label or by the name of its check."""
    for page in with_exercises():
        if name in page.read_text(encoding="utf8"):
            for found in exercises(page):
                if name == found.label or f'"{name}"' in found.words:
                    return found
    raise LookupError(f"the course refers to {name!r}, and no exercise is called so")


def page_of(text):
    """Markdown of a sheet as HTML."""
    return rendered(unlinked(fetched(text)))


def head():
    """The table of the six patients, which every sheet has."""
    return f'<div class="head">{page_of(source("sheets/head.md"))}</div>'


def cells_as_html(cells):
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


def is_verdict(output):
    """Whether an output is the verdict of a check."""
    return VERDICT.match(output.get("data", {}).get("text/plain", "")) is not None


def problem(found, solved):
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


def with_solution(asked, answer):
    """A problem followed by its answer."""
    asked = f'<div class="asked">{asked}</div>'
    return f'<section class="problem">{asked}<div class="solution">{answer}</div></section>'


def with_room(asked, points, least=0):
    """A problem with lines for its answer; the first stay on its page, others may go overleaf."""
    first, *others = room(max(points, least / LINES))
    kept = f'<div class="asked">{asked}{first}</div>'
    return f'<section class="problem">{kept}{"".join(others)}</section>'


def room(points):
    """Lines for an answer, in blocks without page breaks."""
    count = round(LINES * points)
    blocks = [min(LINES, count - start) for start in range(0, count, LINES)]
    return [f'<div class="room">{"<p></p>" * lines}</div>' for lines in blocks]


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
    return ", ".join(map(printed, values))


def printed(value):
    """A number as written in an answer: whole, or with three decimals, or more if it is small."""
    whole = abs(value - round(value)) < 1e-9
    text = f"{value:.0f}" if whole else f"{value:.3f}" if abs(value) >= 0.1 else f"{value:#.3g}"
    return text.replace("-", "−")


def quiz_question(chapter, place, solved):
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


def placed(kind, what, solved):
    """An exercise of the book, a question of a quiz, or empty lines."""
    if kind == "exercise":
        return problem(exercise(what), solved)
    if kind == "quiz":
        return quiz_question(*what.split(), solved)
    return "" if solved else "".join(room(float(what) / LINES))


def points_of(text):
    """How many points a sheet has, those of a bonus apart."""
    regular, _, bonus = text.partition(BONUS)
    more = f", and {counted(bonus)} for the bonus" if bonus else ""
    return f"{counted(regular)}{more}"


def counted(text):
    """The points of exercises, of questions, and those that a text names."""
    points = sum(map(int, re.findall(r"(\d+) points", text)))
    for kind, what in REFERENCE.findall(text):
        if kind == "exercise":
            points += exercise(what).points
        elif kind == "quiz":
            points += 1
    return points


def sheet(name, solved=False):
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


def sheet_source(name):
    """The Markdown of a sheet; a quiz of one session is a part of the quiz."""
    if name not in QUIZZES:
        return source(f"sheets/{name}.md")
    text, _, _ = source("sheets/quiz.md").partition(MARKS)
    intro, *sections = re.split(r"^(?=## Session )", text, flags=re.MULTILINE)
    return intro.replace("# Quiz:", "# A short quiz:", 1) + sections[QUIZZES.index(name)]


def exam(solved=False, numbers=None):
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


def sheets():
    """All pages to print: HTML of the body by name."""
    pages = {}
    for name in SHEETS:
        make = exam if name == "exam" else functools.partial(sheet, name)
        pages[name] = make()
        if name != "handout":
            pages[f"{name}-solutions"] = make(solved=True)
    return pages | {name: sheet(name) for name in QUIZZES}


def printable(body):
    """A page of HTML that prints well and needs only the formulas' style beside it."""
    heading = html.unescape(re.sub(r"<.*?>", "", re.search(r"<h1>(.*?)</h1>", body)[1]))
    return Template(source("sheets/sheet.html")).substitute(
        title=html.escape(heading), style=source("sheets/sheet.css"), body=body + colophon()
    )


# Notebooks

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


def student(page):
    """The student's edition of a chapter, which nbgrader grades.

    It has no solutions and no outputs. A graded cell follows each stub. Exercises without a stub
    get a cell for an answer in words, preceded by one for code if code is asked for.
    """
    text = SOLUTION.sub("", page.read_text(encoding="utf8"))
    values = plain.values(twins.load(page.with_suffix(".ipynb")))
    cells = plain.cells(jupytext.reads(text, fmt="md:myst"), page, values)
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


def session(name):
    """The notebook of a session: its cells, with exercises of the book put in."""
    cells = []
    for cell in jupytext.reads(source(f"notebooks/{name}.md"), fmt="md:myst").cells:
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


def notebook(cells, name, folder):
    """Cells as a notebook whose first cell finds the package; links lead to other notebooks."""
    chapters = {page.with_suffix(".ipynb"): page.stem for page in with_exercises()}

    def link(found):
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


def marked(kind, name, **flags):
    """The nbgrader metadata of a cell."""
    known = {"grade": False, "solution": False, "locked": False, "task": False}
    return known | {"schema_version": 3, "grade_id": f"{kind}-{name}"} | flags


def answer_cells(label, points, in_code):
    """Cells for an answer that is graded by hand: for code if code is asked for, and for words."""
    words = nbformat.v4.new_markdown_cell("*Type your answer here.*")
    words.metadata["nbgrader"] = marked("answer", label, grade=True, solution=True, points=points)
    if not in_code:
        return [words]
    code = nbformat.v4.new_code_cell("# Type your code here.", metadata={"tags": ["stub"]})
    code.metadata["nbgrader"] = marked("code", label, solution=True)
    return [code, words]


def graded(stub, points):
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


def write_wheel(target):
    """The package as a wheel, made from a copy so that nothing is left beside the sources."""
    with tempfile.TemporaryDirectory() as folder:
        skipped = shutil.ignore_patterns("__pycache__", "parts", ".lock", "*.tmp")
        shutil.copytree(ROOT / "drocox", Path(folder, "drocox"), ignore=skipped)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(target), folder]
        subprocess.run(command, check=True)


# The folder


def write(site):
    """Write the course into a built site, as its folder ``course``."""
    out = site / "course"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(TEACHING / "reveal", out / "reveal")
    for name in DECKS:
        (out / f"{name}.html").write_text(deck(name), encoding="utf8")
    for name, body in sheets().items():
        (out / f"{name}.html").write_text(printable(body), encoding="utf8")
    notebooks = {name: session(name) for name in SESSIONS}
    notebooks |= {page.stem: student(page) for page in with_exercises()}
    for name, made in notebooks.items():
        folder = out / "notebooks" / name  # as nbgrader wants it
        folder.mkdir(parents=True)
        twins.write(made, folder / f"{name}.ipynb")
    shutil.copy(TEACHING / "nbgrader_config.py", out)
    write_wheel(out)
    for name in QUIZZES:
        (out / f"{name}.gift.txt").write_text(for_moodle(name), encoding="utf8")
    start = printable(rendered(source("notebooks/start.md")))
    (out / "start.html").write_text(start, encoding="utf8")
    (out / "README.md").write_text(printed_only(source("notebooks/README.md")), encoding="utf8")
    if CHROMIUM:
        print_decks(out)
    else:
        print("The decks were not printed, and the pages do not speak of it: no Chromium here.")
    own = [out / "notebooks" / name / f"{name}.ipynb" for name in SESSIONS]
    pack(out / "students.zip", [out / "start.html", *own, *out.glob("*.whl")], out)
    styles = [(site / "_static" / folder).rglob("*") for folder in ("katex", "explore")]
    everything = (file for file in out.rglob("*") if file.suffix != ".zip")
    pack(out / "course.zip", [*everything, *itertools.chain(*styles)], site)


def for_moodle(name):
    """A quiz as Moodle imports it: each question carries what it needs, as any may be drawn."""
    text = sheet_source(name)
    symbols = "".join(re.findall(r"^\*\*Symbols\.\*\*.*\n", text, re.MULTILINE))
    questions = []
    for kind, what in REFERENCE.findall(text):
        if kind == "quiz":
            chapter, place = what.split()
            asked = quiz(chapter)[int(place) - 1]
            data = "" if asked.choices or "{head}" not in text else source("sheets/head.md")
            questions.append((symbols + data, asked))
    return gift.written(questions, f"drocox/session {name[-1]}")


def print_decks(out):
    """The decks as PDF, by Chromium."""
    for name in DECKS:
        page = (out / f"{name}.html").resolve().as_uri()
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
        ]
        command += ["--virtual-time-budget=5000", f"--print-to-pdf={out / name}.pdf", page]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def pack(target, files, root):
    """Files as a zip, whose bytes depend only on them."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            if file.is_file():
                entry = zipfile.ZipInfo(file.relative_to(root).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes())


def finish(app, error):
    """On build-finished, after the twins were refreshed."""
    if error is None and app.builder.name == "html":
        for cached in (executed_page, exercises, with_exercises):
            cached.cache_clear()
        write(Path(app.outdir))


def printed_only(text):
    """A text without the lines that name PDFs, where no browser makes them."""
    return text if CHROMIUM else re.sub(r"^.*\.pdf.*\n", "", text, flags=re.MULTILINE)


def only_what_is_there(app, docname, text):
    """On source-read. The pages for lecturers name only files that are made."""
    if "/teaching/" in docname:
        text[0] = printed_only(text[0])


def prints(name):
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


def write_exam(path):
    """An exam with the numbers of a file, beside the course of the built site."""
    out = ROOT / "_build" / "html" / "course"
    if not out.exists():
        sys.exit("First build the site: make book, or make preview.")
    try:
        numbers = exams.read(Path(path))
        bodies = {"": exam(False, numbers), "-solutions": exam(True, numbers)}
    except (OSError, ValueError) as problem:
        sys.exit(f"No exam was written. {problem}")
    for ending, body in bodies.items():
        page = out / f"{Path(path).stem}{ending}.html"
        page.write_text(printable(body), encoding="utf8")
        print(page)


def setup(app):
    """Called by Sphinx."""
    app.connect("build-finished", finish, priority=900)
    app.connect("source-read", only_what_is_there)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    if sys.argv[1:2] == ["exam"] and len(sys.argv) == 3:
        write_exam(sys.argv[2])
    elif sys.argv[1:] == ["prints"]:
        for each in SESSIONS:
            (TEACHING / "notebooks" / f"{each}.txt").write_text(prints(each), encoding="utf8")
    else:
        sys.exit(__doc__)
