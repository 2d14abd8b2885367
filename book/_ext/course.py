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

import itertools
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import exams
import gift
import twins
from decks import DECKS, deck
from notebooks import SESSIONS, prints, session, student
from plain import ROOT
from quotes import REFERENCE, TEACHING, executed_page, rendered, source
from sheets import QUIZZES, exam, exercises, printable, sheet_source, sheets, with_exercises
from sphinx.application import Sphinx

from drocox.exercises import quiz

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def write(site: Path) -> None:
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


def write_wheel(target: Path) -> None:
    """The package as a wheel, made from a copy so that nothing is left beside the sources."""
    with tempfile.TemporaryDirectory() as folder:
        skipped = shutil.ignore_patterns("__pycache__", "parts", ".lock", "*.tmp")
        shutil.copytree(ROOT / "drocox", Path(folder, "drocox"), ignore=skipped)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(target), folder]
        subprocess.run(command, check=True)


def for_moodle(name: str) -> str:
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


def print_decks(out: Path) -> None:
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


def pack(target: Path, files: Iterable[Path], root: Path) -> None:
    """Files as a zip, whose bytes depend only on them."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            if file.is_file():
                entry = zipfile.ZipInfo(file.relative_to(root).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes())


def finish(app: Sphinx, error: Exception | None) -> None:
    """On build-finished, after the twins were refreshed."""
    if error is None and app.builder.name == "html":
        for cached in (executed_page, exercises, with_exercises):
            cached.cache_clear()
        write(Path(app.outdir))


def printed_only(text: str) -> str:
    """A text without the lines that name PDFs, where no browser makes them."""
    return text if CHROMIUM else re.sub(r"^.*\.pdf.*\n", "", text, flags=re.MULTILINE)


def only_what_is_there(app: Sphinx, docname: str, text: list[str]) -> None:
    """On source-read. The pages for lecturers name only files that are made."""
    if "/teaching/" in docname:
        text[0] = printed_only(text[0])


def write_exam(path: str | Path) -> None:
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


def setup(app: Sphinx) -> dict:
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
