"""The decks of the course, from book/teaching/slides/: one for a lecture, one for each session.

Slides are separated by ``---``. What follows a line ``Note:`` is for the speaker and begins with
the minute at which the slide appears, and how many of its minutes are the students':
``Minute 20 (4 for the room).`` A slide of another deck is shown again by a line

    {slide}`session-1 :: A loss for each patient`

What else can be fetched from the chapters is in :mod:`quoted`.

    python book/_ext/slides.py session-1       print how its words and steps fit into its minutes
"""

import html
import re
import shutil
import sys
from pathlib import Path
from string import Template
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
import explore
import formulas
import quoted
from plain import ROOT

DECKS = ("lecture", "session-1", "session-2", "session-3")
REVEAL = Path("book/teaching/reveal")  # reveal.js 6.0.2, its licence beside it
MINUTE = re.compile(r"Minute (\d+)(?: \((\d+) for the room\))?")
AGAIN = re.compile(r"^\{slide\}`([\w-]+) :: ([^`]+)`$", re.MULTILINE)
# How long things take. People say 120 words a minute, and half as much again as is written.
WORDS_A_MINUTE = 80
MINUTES_A_STEP = 0.25
MINUTES_A_FORMULA = 0.75
MINUTES_A_FIGURE = 1.0


class Slide(NamedTuple):
    """A slide: its title, what is shown, and what is for the speaker, in Markdown."""

    title: str
    body: str
    note: str

    @property
    def minute(self):
        """When it appears."""
        return int(MINUTE.match(self.note)[1])

    @property
    def room(self):
        """For how many minutes the students work."""
        return int(MINUTE.match(self.note)[2] or 0)


def slides(deck, root=ROOT):
    """The slides of a deck, those of other decks put in."""
    found = []
    for text in re.split(r"^---\n", quoted.of_teaching(f"slides/{deck}.md", root), flags=re.M):
        body, _, note = text.partition("\nNote:\n")
        again = AGAIN.search(body)
        if again:
            body = body.replace(again[0], same(again[1], again[2], root).body)
        title = re.search(r"^##? (.*)$", body, re.MULTILINE)
        if title is None or not MINUTE.match(note.strip()):
            raise ValueError(f"{deck}: a slide needs a title and a minute: {text[:60]!r}")
        found.append(Slide(title[1], body.strip(), note.strip()))
    return found


def same(deck, title, root=ROOT):
    """The slide of a deck that has a title."""
    for slide in slides(deck, root):
        if slide.title == title:
            return slide
    raise LookupError(f"no slide of {deck} is called {title!r}")


def sections(deck, chapters, root=ROOT):
    """The slides of a deck as HTML."""
    done = []
    for slide in slides(deck, root):
        body = quoted.rendered(chapters.fill(slide.body))
        note = quoted.rendered(chapters.fill(slide.note))
        done.append(f'<section>\n{body}<aside class="notes">{note}</aside>\n</section>')
    return "\n".join(done)


def write(target, root=ROOT):
    """All decks as a folder that a browser opens without any other host."""
    target.mkdir(parents=True, exist_ok=True)
    chapters = quoted.Chapters(root)
    frame = Template(quoted.of_teaching("slides/deck.html", root))
    style = quoted.of_teaching("slides/deck.css", root)
    for deck in DECKS:
        title = html.escape(slides(deck, root)[0].title)
        content = sections(deck, chapters, root)
        scripts = explore.tags(content, ".")
        page = frame.substitute(title=title, style=style, explorables=scripts, slides=content)
        (target / f"{deck}.html").write_text(page, encoding="utf8")
    shutil.copytree(root / REVEAL, target / "reveal", dirs_exist_ok=True)
    shutil.copytree(formulas.KATEX, target / "katex", dirs_exist_ok=True)
    explorables = root / "book" / "_static" / "explore"
    shutil.copytree(explorables, target / "explore", dirs_exist_ok=True)


class Timing(NamedTuple):
    """What a slide takes, counted, beside the minutes that its deck gives it."""

    title: str
    given: int
    room: int
    words: int
    steps: int
    needed: float


def timing(deck, end=90, root=ROOT):
    """How the words and steps of each slide fit into its minutes.

    Words are those of the slide and of its note, as if all were said; what the room does is taken
    as the note has it.
    """
    all_slides = slides(deck, root)
    starts = [slide.minute for slide in all_slides] + [end]
    rows = []
    for slide, start, stop in zip(all_slides, starts, starts[1:], strict=False):
        said = re.sub(r"\$\$?[^$]+\$\$?|\{[\w:]+\}`[^`]*`|[|*#_-]", " ", slide.body + slide.note)
        words = len(re.findall(r"[\w’]+", said))
        steps = len(re.findall(r"^\s*(?:\+|\d\)) ", slide.body, re.MULTILINE))
        panels = " ".join(re.findall(r":: step ([\d ]+)", slide.body))
        steps += len(panels.split())
        formula_count = slide.body.count("{formula}") + slide.body.count("$$") // 2
        figures = len(re.findall(r"\{(?:figure|output|explore)\}", slide.body))
        needed = (
            words / WORDS_A_MINUTE
            + steps * MINUTES_A_STEP
            + formula_count * MINUTES_A_FORMULA
            + figures * MINUTES_A_FIGURE
            + slide.room
        )
        rows.append(Timing(slide.title, stop - start, slide.room, words, steps, needed))
    return rows


def main(deck):
    """Print the timing of a deck."""
    rows = timing(deck)
    print(f"{'slide':<50} given  room words steps needed")
    for row in rows:
        print(
            f"{row.title[:50]:<50} {row.given:5} {row.room:5} {row.words:5} {row.steps:5}"
            f" {row.needed:6.1f}"
        )
    given = sum(row.given for row in rows)
    needed = sum(row.needed for row in rows)
    print(
        f"{'in all':<50} {given:5} {sum(r.room for r in rows):5} {sum(r.words for r in rows):5}"
        f" {sum(r.steps for r in rows):5} {needed:6.1f}"
    )


if __name__ == "__main__":
    main(sys.argv[1])
