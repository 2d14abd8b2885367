"""The decks of the course, from book/teaching/slides/."""

import html
import re
from string import Template

import explore
from quotes import colophon, fetched, rendered, source, title

DECKS = ("lecture", "session-1", "session-2", "session-3")


def deck(name: str) -> str:
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


def slides_of(name: str) -> list[str]:
    """The slides of a deck in Markdown."""
    return re.split(r"^---\n", source(f"slides/{name}.md"), flags=re.MULTILINE)
